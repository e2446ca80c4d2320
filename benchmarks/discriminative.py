"""What labels are worth while atoms are learned: accuracy at 1, 2, 4 and 8 atoms a class,
discriminative atoms beside gDL.

    python -m benchmarks.discriminative --data FILE.npz:p ... [--splits 3] [--out DIR]

Files are as in examples/classify.py, p is the dimension of their subspaces. gDL learns each class
alone; over its atoms, sparse codes are classified by residuals, by sums of coefficients and by a
ridge classifier of the codes, each with the lambda that three folds of the training part choose;
discriminative atoms take their defaults. Seconds are those of one choice and fit; those of learning
without any choice follow. The pictures: accuracy against atoms for each file, and cost against
iteration.
"""

import time
import warnings
from pathlib import Path

from benchmarks.options import parser_of_files

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parser = parser_of_files("discriminative", __doc__, splits=10)
    parser.add_argument("--atoms", type=int, nargs="+", default=[1, 2, 4, 8],
                        help="a class (default: 1 2 4 8)")
    options = parser.parse_args()

import matplotlib
import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold

import grassmann_sc as gs
from benchmarks.common import header
from examples import clips
from grassmann_sc import discriminative, learn

matplotlib.use("agg")
import matplotlib.pyplot as plt

SHARES = [0.02, 0.05, 0.1, 0.2, 0.4]  # lambda over each query's lam_max
LEARNING = 0.1  # the same, of the samples' median, while gDL learns
RIDGE = 0.1  # of the ridge classifier
RULES = ["residual", "sum", "ridge"]
NAMES = {
    "residual": "gDL, residuals",
    "sum": "gDL, sums",
    "ridge": "gDL, ridge on codes",
    "labels": "discriminative",
}
COLOURS = ["#56B4E9", "#0072B2", "#009E73", "#D55E00"]
MARKERS = "o^sD"
FOLDS = 3


def main(options):
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore", "The least populated class")  # two sets a class
    header("Discriminative dictionaries")
    for argument in options.data:
        contest(argument, options)


def contest(argument, options):
    name, X, y, splits = read(argument, options)
    n_train = len(splits[0][0])
    print(
        f"{name}: {n_train} sets of {len(np.unique(y))} classes to train, p = {X.shape[2]}, "
        f"{len(splits)} splits",
        flush=True,
    )
    print(
        f"  {'atoms':>5}"
        + "".join(f"{NAMES[key]:>29}" for key in NAMES)
        + "   learning alone, s: gDL, discriminative"
    )
    curves = {key: [] for key in NAMES}
    descents = {}
    for m in options.atoms:
        found, seconds = accuracies(X, y, splits, m, descents)
        cells = []
        for key in NAMES:
            mean = np.mean(found[key])
            spread = np.std(found[key], ddof=len(splits) > 1)
            curves[key].append((mean, spread))
            cells.append(f"{mean:13.1f} ± {spread:4.1f} {np.mean(seconds[key]):6.2f} s")
        alone = ", ".join(f"{np.mean(seconds[key]):.2f}" for key in ("gdl", "labels"))
        print(f"  {m:5d}" + "".join(cells) + f"   {alone}", flush=True)
    draw_curves(options.out / f"discriminative_{name}.png", name, options.atoms, curves)
    draw_descents(options.out / f"discriminative_{name}_cost.png", name, descents)


def read(argument, options):
    """(name, subspaces, labels, splits) of FILE.npz:p."""
    path, _, p = argument.rpartition(":")
    sets, pairs = clips.load_npz(path)
    recipe = clips.Recipe(
        int(p), resample=options.resample, stack=options.stack, center=options.center
    )
    X = np.concatenate([clips.build(one, recipe).bases for one in sets])
    labels = np.array([one.label for one in sets])
    return Path(path).stem, X, labels, pairs[: options.splits]


def accuracies(X, y, splits, m, descents):
    """Accuracy in % and seconds of each method on each split; the first split's costs are kept."""
    found = {key: [] for key in NAMES}
    seconds = {key: [] for key in [*NAMES, "gdl"]}
    for seed, (train, test) in enumerate(splits):
        A = X[train], y[train]
        B = X[test], y[test]
        folds = folds_of(*A, seed)
        learned, took = timed(learn_gdl, *A, m, seed)
        in_folds, more = timed(lambda: [learn_gdl(*fit, m, seed) for fit, _ in folds])
        seconds["gdl"].append(took)
        for rule in RULES:
            start = time.perf_counter()
            share = best(
                SHARES,
                [
                    [score_codes(atoms, *fit, *check, rule, share) for share in SHARES]
                    for atoms, (fit, check) in zip(in_folds, folds)
                ],
            )
            found[rule].append(score_codes(learned, *A, *B, rule, share))
            seconds[rule].append(took + more + time.perf_counter() - start)
        plain, took = timed(learn_with_labels, *A, m, seed)
        seconds["labels"].append(took)
        found["labels"].append(score(plain, *B))
        descents.setdefault(m, plain.costs)
    return found, seconds


def folds_of(X, y, seed):
    """[((X, y) to fit, (X, y) to check), ...]; those without a class of the check are left out."""
    k = min(FOLDS, np.unique(y, return_counts=True)[1].max())
    pairs = StratifiedKFold(k, shuffle=True, random_state=seed).split(X, y)
    return [((X[a], y[a]), (X[b], y[b])) for a, b in pairs]


def timed(call, *arguments):
    start = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - start


def best(candidates, scores):
    """The candidate of the highest mean score over the folds, the middle one of several."""
    mean = np.mean(scores, axis=0)
    tied = np.flatnonzero(mean >= mean.max() - 1e-9)
    return candidates[tied[len(tied) // 2]]


def learn_gdl(X, y, m, seed):
    return learn.class_dictionaries(X, y, m, LEARNING, lam_scale="max", rng=seed)


def learn_with_labels(X, y, m, seed):
    return discriminative.discriminative_atoms(X, y, m, rng=seed)


def score(learned, X, y):
    errors, classes = discriminative.ridge_residuals(X, learned.atoms, learned.labels)
    return 100 * np.mean(classes[errors.argmin(axis=1)] == y)


def score_codes(learned, X, y, Q, truth, rule, share):
    """Accuracy in % on Q of a rule on the codes over labelled atoms; X, y train the ridge rule."""
    codes = gs.gsc(Q, learned.atoms, share, lam_scale="max")
    if rule == "ridge":
        known = gs.gsc(X, learned.atoms, share, lam_scale="max")
        return 100 * np.mean(RidgeClassifier(RIDGE).fit(known, y).predict(codes) == truth)
    if rule == "residual":
        K_dd = gs.projection_kernel(learned.atoms)
        K_xd = gs.projection_kernel(Q, learned.atoms)
        scores, classes = gs.class_scores(codes, K_dd, K_xd, learned.labels, norm2=Q.shape[2])
        return 100 * np.mean(classes[scores.argmax(axis=1)] == truth)
    classes = np.unique(learned.labels)
    sums = np.stack([codes[:, learned.labels == c].sum(axis=1) for c in classes], axis=1)
    return 100 * np.mean(classes[sums.argmax(axis=1)] == truth)


def draw_curves(path, name, atoms, curves):
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for i, (key, points) in enumerate(curves.items()):
        mean, spread = np.transpose(points)
        place = np.array(atoms) * 1.035 ** (i - 1.5)  # side by side, so that the bars can be read
        ax.errorbar(
            place,
            mean,
            spread,
            color=COLOURS[i],
            marker=MARKERS[i],
            markersize=5,
            capsize=2,
            linewidth=1.2,
            linestyle="-" if key == "labels" else "--",
            label=NAMES[key],
        )
    ax.set_xscale("log", base=2)
    ax.set_xticks(atoms, [str(m) for m in atoms])
    ax.minorticks_off()
    ax.set(xlabel="atoms a class", ylabel="accuracy in %, mean ± sd over the splits", title=name)
    ax.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def draw_descents(path, name, descents):
    figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    for i, (m, costs) in enumerate(descents.items()):
        ax.plot(
            np.arange(len(costs)),
            costs / costs[0],
            color=COLOURS[i % 4],
            linewidth=1.2,
            marker=MARKERS[i % 4],
            markersize=3,
            label=str(m),
        )
    ax.set_yscale("log")
    ax.set(xlabel="iteration", ylabel="cost over that of the first atoms", title=name)
    ax.legend(frameon=False, fontsize=8, title="atoms a class", title_fontsize=8)
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    main(options)
