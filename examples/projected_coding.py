"""Is gSC close to coding on the manifold itself?

Run: python -m examples.projected_coding

The paper codes in the embedding space, takes Proj of the combination as its point, and
expects the error to be "very close" to that of coding with Proj inside the norm. This
script tests it on four classes on G(p, d), near each other or far apart, with many or
few atoms, and on files: --data FILE.npz ... with --p, the dimension of the subspaces of
each (docs/guide/arrays.rst tells their form; split 0 is used). The code of gSC is
scaled to sum 1. How much more does it cost than projected_codes? How often does the
projected code end at a tie of eigenvalues? How many atoms do the two share? Which
classes do they give? Prints a table and leaves a picture in out/.
"""

import sys
import time
import warnings
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples.common import of_files, parsed

options = parsed(__name__, of_files, "examples.projected_coding")

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import grassmann_sc as core
from examples.common import save_picture
from grassmann_sc import intrinsic, projected, subspaces

LAM = 0.3
N_CLASSES = 4
N_QUERIES = 60  # at most
N_ATOMS = 200  # at most, of a file
SEED = 0
OUT = Path("out")
COLORS = ["#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "black"]
MARKERS = "os^Dv*PX<>"
Setting = namedtuple("Setting", "d p n_atoms spread sigma")  # see draw
SETTINGS = [
    Setting(20, 2, 40, 0.6, 0.05),
    Setting(20, 2, 40, 0.6, 0.15),
    Setting(20, 2, 8, 0.6, 0.15),
    Setting(20, 2, 40, 1.5, 0.3),
    Setting(20, 6, 40, 0.6, 0.05),
    Setting(20, 6, 40, 0.6, 0.15),
    Setting(20, 6, 8, 0.6, 0.15),
]
Data = namedtuple("Data", "name atoms queries labels truth")

# Of each query; see compare.
Answer = namedtuple(
    "Answer",
    [
        "gap",  # s_p - s_{p+1} of the scaled code of gSC, over the largest |s|
        "cost",
        "best",  # of the scaled code of gSC, and of the projected code
        "closed",  # did the projected code end at a tie?
        "agreement",  # atoms in both supports over atoms in either
    ],
)


def draw(setting, rng):
    """The Data of a setting, in N_CLASSES classes around one point.

    The mean of a class is exp of a tangent vector of length spread; samples have normal
    noise of deviation sigma in each coordinate of the tangent space.
    """
    d, p, n_atoms, spread, sigma = setting
    base = core.random_subspaces(1, d, p, rng=rng)[0]
    means = rng.standard_normal((N_CLASSES, 1, d, p))
    means -= base @ (base.T @ means)
    means *= spread / np.linalg.norm(means, axis=(2, 3), keepdims=True)
    each = n_atoms // N_CLASSES + N_QUERIES // N_CLASSES
    noise = rng.standard_normal((N_CLASSES, each, d, p))
    noise -= base @ (base.T @ noise)
    X = intrinsic.exp_map(base, means + sigma * noise)
    first = n_atoms // N_CLASSES
    name = f"G({p}, {d}), classes {spread:g}, noise {sigma:g}"
    classes = np.arange(N_CLASSES)
    return Data(
        name,
        X[:, :first].reshape(-1, d, p),
        X[:, first:].reshape(-1, d, p),
        np.repeat(classes, first),
        np.repeat(classes, each - first),
    )


def read(path, p, rng):
    """The Data of a file, subspaces of dimension p of its frames."""
    with np.load(path) as archive:
        frames = archive["frames"]
        offset = archive["offset"]
        labels = archive["label"]
        train = archive["train0"]
        test = archive["test0"]
    scale = 255 if frames.dtype == np.uint8 else 1
    frames = frames.reshape(len(frames), -1).astype(np.float64) / scale
    train = rng.permutation(train)[:N_ATOMS]
    test = rng.permutation(test)[:N_QUERIES]
    sets = [frames[offset[i] : offset[i + 1]] for i in [*train, *test]]
    X = subspaces.from_sets(sets, p)
    name = f"{Path(path).stem}, G({p}, {X.shape[1]})"
    return Data(name, X[: len(train)], X[len(train) :], labels[train], labels[test])


def scaled(codes):
    """Codes with sum 1."""
    return codes / codes.sum(axis=1, keepdims=True)


def gap_of(y, atoms):
    """(s_p - s_{p+1}) / max |s|, for the eigenvalues s of sum_j y_j D_j^.

    They are computed in the span of the atoms in use.
    """
    used = np.flatnonzero(y)
    _, d, p = atoms.shape
    R = np.linalg.qr(np.hstack([*atoms[used]]), mode="r")  # (r, m p)
    s = np.linalg.eigvalsh((R * np.repeat(y[used], p)) @ R.T)
    s = np.sort(np.concatenate([s, np.zeros(min(p + 1, d - len(s)))]))
    return (s[-p] - s[-p - 1]) / np.abs(s).max()


def by_residual(codes, data):
    """The class of least ||X^ - sum_{j in c} y_j D_j^||^2."""
    K_dd = core.projection_kernel(data.atoms)
    K_xd = core.projection_kernel(data.queries, data.atoms)
    scores, classes = core.class_scores(
        codes, K_dd, K_xd, data.labels, norm2=data.queries.shape[2]
    )
    return classes[scores.argmax(axis=1)]


def by_point(codes, data):
    """The class, among those in use, whose part of the code has the nearest Proj."""
    classes = np.unique(data.labels)
    distance = np.full((len(codes), len(classes)), np.inf)
    for c, label in enumerate(classes):
        mine = data.labels == label
        used = codes[:, mine].any(axis=1)
        if used.any():
            distance[used, c] = projected.projected_losses(
                codes[np.ix_(used, mine)], data.queries[used], data.atoms[mine]
            )
    return classes[distance.argmin(axis=1)]


def compare(data):
    """(Answer, codes of gSC, projected codes, seconds a query of both)."""
    start = time.perf_counter()
    codes = core.gsc(data.queries, data.atoms, LAM)
    middle = time.perf_counter()
    best = projected.projected_codes(data.queries, data.atoms, LAM, return_info=True)
    seconds = np.diff([start, middle, time.perf_counter()]) / len(codes)
    baseline = scaled(codes)
    cost = projected.projected_losses(baseline, data.queries, data.atoms)
    cost += LAM * np.abs(baseline).sum(axis=1)
    used = codes != 0
    used_best = best.codes != 0
    agreement = (used & used_best).sum(axis=1) / (used | used_best).sum(axis=1)
    gap = np.array([gap_of(y, data.atoms) for y in baseline])
    return (
        Answer(gap, cost, best.cost, best.gap <= 2e-3, agreement),
        codes,
        best.codes,
        seconds,
    )


def print_row(data, answer, codes, best, seconds):
    excess = 100 * (answer.cost / answer.best - 1)
    still = excess[~answer.closed]
    rates = [
        100 * np.mean(rule(y, data) == data.truth)
        for y in (codes, best)
        for rule in (by_residual, by_point)
    ]
    of_open = f"{np.median(still):8.1f}" if len(still) else f"{'-':>8}"
    print(
        f"{data.name:36}{len(data.atoms):5d}{np.median(answer.gap):8.2f}"
        f"{np.median(excess):9.1f}{np.quantile(excess, 0.9):8.1f}{of_open}"
        f"{100 * answer.closed.mean():8.0f}{100 * answer.agreement.mean():8.0f}"
        + "".join(f"{rate:7.1f}" for rate in rates)
        + f"{1e3 * seconds[0]:9.2f}{1e3 * seconds[1]:8.1f}",
        flush=True,
    )


def print_header():
    print(
        f"lambda = {LAM}; excess: cost of gSC's code, scaled to sum 1, over that of the "
        "projected code, in %: median, 90 % quantile, median of the codes that ended at no tie\n"
        "accuracy in % of both codes, by residuals of the classes and by their points"
    )
    names = [
        ("", 36),
        ("N", 5),
        ("gap", 8),
        ("excess", 9),
        ("90 %", 8),
        ("no tie", 8),
        ("tie %", 8),
        ("shared%", 8),
        ("gSC", 7),
        ("point", 7),
        ("proj.", 7),
        ("point", 7),
        ("ms gSC", 9),
        ("ms proj", 8),
    ]
    print("".join(f"{name:>{width}}" for name, width in names))


def draw_picture(names, answers):
    """Plot the excess of each query against the gap of its code of gSC.

    Hollow markers: the projected code ended at a tie.
    """
    ax = plt.figure(figsize=(8, 5), layout="constrained").add_subplot()
    for i, (name, answer) in enumerate(zip(names, answers)):
        color = COLORS[i % len(COLORS)]
        marker = MARKERS[i % len(MARKERS)]
        excess = np.maximum(100 * (answer.cost / answer.best - 1), 1e-3)
        for shown, face in [(~answer.closed, color), (answer.closed, "none")]:
            ax.scatter(
                answer.gap[shown],
                excess[shown],
                s=18,
                marker=marker,
                facecolor=face,
                edgecolor=color,
                linewidth=0.8,
            )
        ax.scatter([], [], s=18, marker=marker, color=color, label=name)
    ax.set(
        yscale="log",
        xlabel="gap of eigenvalues p and p + 1 at the code of gSC, relative",
        ylabel="its cost beyond that of the projected code, in % (at least 0.001)",
    )
    ax.set_title(
        f"gSC's code and the projected one, λ = {LAM}; hollow: the latter ended where "
        "eigenvalues tie",
        fontsize=9,
    )
    ax.legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return ax


def problems(settings, options, rng):
    """What is drawn of each setting, and read of each file that was asked for."""
    for setting in settings:
        yield draw(setting, rng)
    for path, p in zip(options.data, [*options.p, *[3] * len(options.data)]):
        yield read(path, p, rng)


def main(options):
    matplotlib.use("agg")
    warnings.filterwarnings(
        "ignore", "the gap of eigenvalues|projected_losses|.*did not converge"
    )
    rng = np.random.default_rng(SEED)
    compare(draw(Setting(6, 1, 4, 0.6, 0.1), rng))  # compile
    names = []
    answers = []
    print_header()
    for data in problems(SETTINGS, options, rng):
        answer, *rest = compare(data)
        print_row(data, answer, *rest)
        names.append(f"{data.name}, N = {len(data.atoms)}")
        answers.append(answer)
    print("\npicture:")
    path = save_picture(OUT / "projected_coding", draw_picture(names, answers), options)
    print(f"  {path}")


if __name__ == "__main__":
    main(options)
