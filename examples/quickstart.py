"""Image sets of handwritten digits, classified by coding their subspaces: python -m examples.quickstart

Three images of a digit span a plane in R^64. Planes of labelled sets are the dictionary of gSC and gLC, or the samples from which a
smaller dictionary is learned. kgSC and kgLC do the same in the feature space of a kernel. Lambda, the neighbours, C and the kernel, linear
or Gaussian, are chosen by cross-validation on the training sets alone. Prints one table and leaves pictures in out/. Needs scikit-learn (digits, SVC, GridSearchCV).
"""

import os
import sys
import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/quickstart.py

from estimators import CodingClassifier, GrassmannDictionary, KernelLift, NearestSubspace, ProjectionKernel
from grassmann_sc import glc, gsc
from plots import plot_atoms, plot_codes, plot_convergence, plot_principal_angles
from subspaces import from_sets

SEEDS = range(10, 20)  # a split each
SET_SIZE, P = 3, 2  # images in a set, dimension of its subspace
TRAIN_SETS = 8  # of each digit; all other images make test sets
FOLDS = 3
LAM = [0.01, 0.03, 0.1]  # in units of each query's lam_max
NEIGHBORS = [10, 15, 20]
N_ATOMS, N_ITER = 40, 3  # of the learned dictionaries
KERNELS = [{"kernellift__kernel": ["linear"]}, {"kernellift__gamma": [0.25, 1, 4]}]  # gamma in units of median_gamma; ties go to the linear
KERNEL_METHODS = {  # name: an estimator on sets of images, and the candidates for its parameters
    "kgSC, labelled sets as atoms, residuals": (
        make_pipeline(KernelLift(gamma_scale="median", p=P), CodingClassifier(lam_scale="max")),
        [{**kernel, "codingclassifier__lam": LAM} for kernel in KERNELS]),
    "kgLC, labelled sets as atoms, residuals": (
        make_pipeline(KernelLift(gamma_scale="median", p=P), CodingClassifier("local")),
        [{**kernel, "codingclassifier__n_neighbors": NEIGHBORS} for kernel in KERNELS]),
}
METHODS = {  # the same on subspaces
    "nearest subspace": (NearestSubspace(), {}),
    "gSC, labelled sets as atoms, residuals": (CodingClassifier(lam_scale="max"), {"lam": LAM}),
    "gLC, labelled sets as atoms, residuals": (CodingClassifier("local"), {"n_neighbors": NEIGHBORS}),
    "SVM on the projection kernel": (make_pipeline(ProjectionKernel(), SVC(kernel="precomputed")), {"svc__C": [1, 10, 100]}),
    f"gSC, {N_ATOMS} learned atoms, SVM": (
        make_pipeline(GrassmannDictionary(N_ATOMS, lam_scale="max", n_iter=N_ITER, rng=0), SVC(kernel="linear")),
        {"grassmanndictionary__lam": LAM}),
    f"gLC, {N_ATOMS} learned atoms, SVM": (
        make_pipeline(GrassmannDictionary(N_ATOMS, "local", n_iter=N_ITER, rng=0), SVC(kernel="linear")),
        {"grassmanndictionary__n_neighbors": NEIGHBORS}),
}
OUT = Path("out")

began = time.perf_counter()
matplotlib.use("agg")
threadpool_limits(1, user_api="blas")  # on matrices as small as 64 x 64, BLAS' own threads cost more than they bring
digits = load_digits()
images, digit = digits.images / 16, digits.target
scores, fitted = {}, {}  # method -> [(accuracy, seconds) of each split], and what the last split fitted


def save(name, ax):
    """The picture as a file, whole or not at all."""
    unfinished = OUT / f"unfinished_{name}.png"
    ax.figure.savefig(unfinished, dpi=120)
    os.replace(unfinished, OUT / f"{name}.png")
    print(f"  {OUT / name}.png")


for seed in SEEDS:
    order = np.random.default_rng(seed).permutation(len(images))
    train, test = [], []  # sets of images, by index; a set of one digit; no image is in two sets
    for c in range(10):
        mine = order[digit[order] == c]
        sets = mine[:len(mine) // SET_SIZE * SET_SIZE].reshape(-1, SET_SIZE)
        train.append(sets[:TRAIN_SETS])
        test.append(sets[TRAIN_SETS:])
    train, test = np.concatenate(train), np.concatenate(test)  # (80, 3), (516, 3)
    y, truth = digit[train[:, 0]], digit[test[:, 0]]
    D, X = from_sets(images[train], P), from_sets(images[test], P)  # (n, 64, P)
    if seed == SEEDS[0]:  # compile, so that the table shows the time of the methods
        gsc(D[:2], D[:2], 0.1), glc(D[:2], D[:2], 1)
    of_sets = [image.reshape(-1, SET_SIZE, 64) for image in (images[train], images[test])]
    for method, (estimator, grid) in {**METHODS, **KERNEL_METHODS}.items():
        start = time.perf_counter()
        labelled, queries = of_sets if method in KERNEL_METHODS else (D, X)
        best = GridSearchCV(estimator, grid, cv=FOLDS).fit(labelled, y).best_estimator_  # sees the training part alone
        accuracy = 100 * best.score(queries, truth)
        scores.setdefault(method, []).append((accuracy, time.perf_counter() - start))
        fitted[method] = best
    print(f"split {seed - SEEDS[0] + 1} of {len(SEEDS)}: " + ", ".join(f"{rows[-1][0]:.1f}" for rows in scores.values()), flush=True)

print(f"\n{len(train)} sets of {SET_SIZE} images to train, {len(test)} to test, {P}-dimensional subspaces of R^64, {len(SEEDS)} splits")
print(f"{'':42}{'accuracy in %':>15}{'s a split':>12}")
for method, rows in scores.items():
    accuracy, seconds = np.transpose(rows)
    print(f"{method:42}{accuracy.mean():8.1f} ± {accuracy.std(ddof=1):.1f} {seconds.mean():13.3f}")

print("\npictures of the last split:")
OUT.mkdir(exist_ok=True)
nearest, sparse, _, _, (learned, _), *_ = fitted.values()
save("atoms", plot_atoms(learned.components_, (8, 8)))
save("convergence", plot_convergence(learned.costs_))
save("codes", plot_codes(sparse.transform(X), truth, atom_labels=y))
save("codes_learned", plot_codes(learned.transform(D), y))
save("angles", plot_principal_angles(D, labels=y))
_, near = nearest.kneighbors(X[:1])
save("angles_pair", plot_principal_angles(X[0], D[near[0, 0]]))
print(f"\n{time.perf_counter() - began:.0f} seconds in all")
