"""Image sets of handwritten digits, classified by coding their subspaces: python -m examples.quickstart

Three images of a digit span a plane in R^64. Planes of labelled sets are the dictionary of gSC and gLC, or the samples from which a
smaller dictionary is learned. Prints one table and leaves pictures in out/. Needs scikit-learn (digits, SVC).
"""

import os
import sys
import time
from pathlib import Path

import matplotlib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/quickstart.py

from grassmann_sc import classify, glc, gsc, locality_codes, projection_kernel, sparse_codes
from learn import gdl
from plots import plot_atoms, plot_codes, plot_convergence, plot_principal_angles
from subspaces import from_sets

# The sizes and parameters were chosen by accuracy on other splits of the same images than those of these seeds.
SEEDS = range(10, 20)  # a split each
SET_SIZE, P = 3, 2  # images in a set, dimension of its subspace
TRAIN_SETS = 8  # of each digit; all other images make test sets
LAM, NEIGHBORS = 0.05, 15
N_ATOMS, N_ITER = 40, 10  # of the learned dictionaries
SVM_C = 1
OUT = Path("out")

began = time.perf_counter()
matplotlib.use("agg")
threadpool_limits(1, user_api="blas")  # on matrices as small as 64 x 64, BLAS' own threads cost more than they bring
digits = load_digits()
images, digit = digits.images / 16, digits.target
scores = {}  # method -> [(accuracy, seconds) of each split]


def score(method, predicted, truth, start):
    scores.setdefault(method, []).append((100 * np.mean(predicted == truth), time.perf_counter() - start))


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
        gsc(D[:2], D[:2], LAM), glc(D[:2], D[:2], 1)

    start = time.perf_counter()
    K_dd, K_xd = projection_kernel(D), projection_kernel(X, D)
    score("nearest subspace", y[K_xd.argmax(axis=1)], truth, start)

    start = time.perf_counter()
    codes = sparse_codes(K_dd, K_xd, LAM, norm2=P)
    score("gSC, labelled sets as atoms, residuals", classify(codes, K_dd, K_xd, y, norm2=P), truth, start)

    start = time.perf_counter()
    local = locality_codes(K_dd, K_xd, NEIGHBORS, norm2=P)
    score("gLC, labelled sets as atoms, residuals", classify(local, K_dd, K_xd, y, norm2=P), truth, start)

    start = time.perf_counter()
    learned = gdl(D, N_ATOMS, LAM, n_iter=N_ITER, rng=seed)
    svm = SVC(C=SVM_C, kernel="linear").fit(learned.codes, y)
    score(f"gSC, {N_ATOMS} learned atoms, SVM", svm.predict(gsc(X, learned.atoms, LAM)), truth, start)

    start = time.perf_counter()
    atoms, local, _ = gdl(D, N_ATOMS, n_neighbors=NEIGHBORS, n_iter=N_ITER, rng=seed)
    svm = SVC(C=SVM_C, kernel="linear").fit(local, y)
    score(f"gLC, {N_ATOMS} learned atoms, SVM", svm.predict(glc(X, atoms, NEIGHBORS)), truth, start)
    print(f"split {seed - SEEDS[0] + 1} of {len(SEEDS)}: " + ", ".join(f"{rows[-1][0]:.1f}" for rows in scores.values()), flush=True)

print(f"\n{len(train)} sets of {SET_SIZE} images to train, {len(test)} to test, {P}-dimensional subspaces of R^64, {len(SEEDS)} splits")
print(f"{'':42}{'accuracy in %':>15}{'s a split':>12}")
for method, rows in scores.items():
    accuracy, seconds = np.transpose(rows)
    print(f"{method:42}{accuracy.mean():8.1f} ± {accuracy.std(ddof=1):.1f} {seconds.mean():13.3f}")

print("\npictures of the last split:")
OUT.mkdir(exist_ok=True)
save("atoms", plot_atoms(learned.atoms, (8, 8)))
save("convergence", plot_convergence(learned.costs))
save("codes", plot_codes(codes, truth, atom_labels=y))
save("codes_learned", plot_codes(learned.codes, y))
save("angles", plot_principal_angles(D, labels=y))
near = K_xd[0].argmax()
save("angles_pair", plot_principal_angles(X[0], D[near]))
print(f"\n{time.perf_counter() - began:.0f} seconds in all")
