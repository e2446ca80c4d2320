"""Every method on sets of handwritten digits, in ten random splits.

Run: python -m examples.table_digits

Three images of a digit become a subspace of R^64. Those of labelled sets are the
dictionary of gSC and gLC, or the samples from which a smaller dictionary is learned.
kgSC and kgLC do the same in the feature space of a kernel. The first two rows take no
subspace: support vector machines on the images, or on their mean. Lambda, the
neighbours, C and the kernel, linear or Gaussian, are chosen by cross-validation on the
training sets alone. Prints one table and leaves pictures of the last split in out/.
Needs scikit-learn (digits, SVC, GridSearchCV).
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples.common import of_pictures, parsed

options = parsed(__name__, of_pictures, "examples.table_digits")

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import grassmann_sc as core
from examples.common import save_picture
from grassmann_classify import first_tries
from grassmann_classify.rows import on_codes
from grassmann_sc import estimators, learn, plots, subspaces

SEEDS = range(10, 20)  # a split each
P = 2  # dimension of a set's subspace
FOLDS = 3
LAM = [0.01, 0.03, 0.1]  # in units of each query's lam_max
NEIGHBORS = [10, 15, 20]
C = [1, 10, 100]
RIDGE = [0.1, 1, 10, 100]
N_ATOMS = 40  # of the learned dictionaries
N_ITER = 3
KERNELS = [  # gamma in units of median_gamma; of equal scores the first parameters win
    "linear",
    ("rbf", 0.25),
    ("rbf", 1),
    ("rbf", 4),
]
OUT = Path("out")


def split_digits(seed, size=3, n_train=8):
    """[(sets of images (n, size, 8, 8), their digits (n,))] to train and to test."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.images))
    train = []
    test = []
    for c in range(10):
        # the images of digit c; none is in two sets
        mine = order[digits.target[order] == c]
        sets = mine[: len(mine) // size * size].reshape(-1, size)
        train.append(sets[:n_train])
        test.append(sets[n_train:])
    parts = np.concatenate(train), np.concatenate(test)
    return [(digits.images[part] / 16, digits.target[part[:, 0]]) for part in parts]


def frames_of(sets):
    """Sets of images (n, size, 8, 8) as sets of rows (n, size, 64)."""
    return sets.reshape(len(sets), -1, 64)


def mean_frames_of(sets):
    return frames_of(sets).mean(axis=1, keepdims=True)


def tried_first():
    """{name: (estimator, candidates for its parameters)} without any subspace."""
    grid = {"framessvm__C": C, "framessvm__scale": [*first_tries.SCALES]}
    return {
        name: (
            make_pipeline(FunctionTransformer(features), first_tries.FramesSVM()),
            grid,
        )
        for name, features in (
            ("frames: SVM", frames_of),
            ("mean frame: SVM", mean_frames_of),
        )
    }


def methods_on_subspaces():
    """The same on subspaces."""
    learning = {"max_iter": N_ITER, "random_state": 0}
    sparse = estimators.GrassmannDictionary(N_ATOMS, lam_scale="max", **learning)
    local = estimators.GrassmannDictionary(N_ATOMS, "local", **learning)
    return {
        "nearest subspace": (estimators.NearestSubspace(), {}),
        "gSC": (
            estimators.CodingClassifier(lam_scale="max", calibrate=False),
            {"lam": LAM},
        ),
        "gLC": (
            estimators.CodingClassifier("local", calibrate=False),
            {"n_neighbors": NEIGHBORS},
        ),
        "subspaces: SVM": (
            make_pipeline(estimators.ProjectionKernel(), SVC(kernel="precomputed")),
            {"svc__C": C},
        ),
        f"gSC, {N_ATOMS} learned atoms": (
            on_codes(sparse, RIDGE),
            {"grassmanndictionary__lam": LAM},
        ),
        f"gLC, {N_ATOMS} learned atoms": (
            on_codes(local, RIDGE),
            {"grassmanndictionary__n_neighbors": NEIGHBORS},
        ),
    }


def methods_on_sets():
    """The same on sets of images, in a kernel's feature space."""
    lift = estimators.KernelLift(gamma_scale="median", p=P)
    return {
        "kgSC": (
            make_pipeline(
                lift, estimators.CodingClassifier(lam_scale="max", calibrate=False)
            ),
            {"kernellift__kernel": KERNELS, "codingclassifier__lam": LAM},
        ),
        "kgLC": (
            make_pipeline(lift, estimators.CodingClassifier("local", calibrate=False)),
            {"kernellift__kernel": KERNELS, "codingclassifier__n_neighbors": NEIGHBORS},
        ),
    }


def evaluate(methods, labelled, y, queries, truth):
    """Of each method (name, accuracy in %, seconds, the fitted estimator)."""
    for name, (estimator, grid) in methods.items():
        start = time.perf_counter()
        best = GridSearchCV(estimator, grid, cv=FOLDS).fit(labelled, y).best_estimator_
        accuracy = 100 * best.score(queries, truth)
        yield name, accuracy, time.perf_counter() - start, best


def print_table(scores):
    """scores: {method: (accuracy, seconds) of each split}."""
    print(f"{'':22}{'accuracy in %':>15}{'seconds':>12}")
    for name, rows in scores.items():
        accuracy, seconds = np.transpose(rows)
        spread = accuracy.std(ddof=1)
        print(f"{name:22}{accuracy.mean():8.1f} ± {spread:.1f} {seconds.mean():13.3f}")


def short(name):
    """The first word of a method's name, and the number of its learned atoms."""
    return name.split()[0].rstrip(",:") + (f" {N_ATOMS}" if "learned" in name else "")


def save(name, ax, title, options):
    ax.set_title(title, fontsize=10)
    print(f"  {save_picture(OUT / name, ax, options)}")


def save_pictures(fitted, D, y, X, options):
    """Save pictures of the last split: {method: estimator}, labelled D, queries X."""
    learned, *_ = fitted[f"gSC, {N_ATOMS} learned atoms"]
    how = f"gDL, {N_ATOMS} atoms, λ = {learned.lam:g} of the median λ_max, digits"
    save("atoms", plots.plot_atoms(learned.components_, (8, 8)), how, options)
    save("convergence", plots.plot_convergence(learned.costs_), how, options)
    save(
        "codes_learned",
        plots.plot_codes(learned.transform(D), y),
        f"Codes: {how}",
        options,
    )
    _, near = fitted["nearest subspace"].kneighbors(X[:1])
    nearest = near[0, 0]
    names = "first query", f"nearest labelled set, a {y[nearest]}"
    save(
        "angles_pair",
        plots.plot_angles_pair(X[0], D[nearest], names=names),
        "Nearest subspace, digits",
        options,
    )


# for matrices this small BLAS' threads cost more
@threadpool_limits.wrap(limits=1, user_api="blas")
def main(options=None):
    began = time.perf_counter()
    matplotlib.use("agg")
    scores = {}
    for i, seed in enumerate(SEEDS, start=1):
        (sets, y), (queries, truth) = split_digits(seed)
        D = subspaces.from_sets(sets, P)  # (80, 64, P)
        X = subspaces.from_sets(queries, P)  # (516, 64, P)
        if i == 1:  # compile, so that the table shows the time of the methods
            core.gsc(D[:2], D[:2], 0.1)
            core.glc(D[:2], D[:2], 1)
            learn.gdl(D[:4], 2, 0.1, n_iter=1, rng=0)
        rows = [
            *evaluate(tried_first(), sets, y, queries, truth),
            *evaluate(methods_on_subspaces(), D, y, X, truth),
            *evaluate(methods_on_sets(), sets, y, queries, truth),
        ]
        for name, accuracy, seconds, _ in rows:
            scores.setdefault(name, []).append((accuracy, seconds))
        if i == 1:
            heads = "".join(f"{short(name):>10}" for name in scores)
            print("\nSets of three handwritten digits, every method, accuracy in %:")
            print(f"{'':15}{heads}")
        cells = "".join(f"{accuracy:10.1f}" for _, accuracy, *_ in rows)
        print(f"split {i:2} of {len(SEEDS)}:{cells}", flush=True)
    print(
        f"\n{len(D)} sets of {sets.shape[1]} images to train, {len(X)} to test, {P}-dimensional "
        f"subspaces of R^{D.shape[1]}, {len(SEEDS)} splits; ± is over the splits, "
        "seconds are of one"
    )
    print_table(scores)
    print("\nPictures of the last split:")
    save_pictures({name: best for name, *_, best in rows}, D, y, X, options)
    print(f"\n{time.perf_counter() - began:.0f} seconds in all")


if __name__ == "__main__":
    main(options)
