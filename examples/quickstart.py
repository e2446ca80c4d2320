"""Sets of images, classified by coding their subspaces: python -m examples.quickstart

Three images of a handwritten digit span a plane in R^64. Eight planes of each digit are labelled,
all others are coded over these. Prints a table, leaves three pictures in out/. Needs scikit-learn.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples import options

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    options.of_pictures("quickstart", sys.argv[1:])

import numpy as np
from sklearn.datasets import load_digits

import grassmann_sc as core
from examples.pictures import save_picture
from grassmann_sc import plots, subspaces


def split_digits(seed, size=3, n_train=8):
    """Two pairs, to train and to test: sets of images (n, size, 8, 8), and their digits (n,)."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.images))
    train = []
    test = []
    for c in range(10):
        mine = order[digits.target[order] == c]  # the images of digit c; none is in two sets
        sets = mine[:len(mine) // size * size].reshape(-1, size)
        train.append(sets[:n_train])
        test.append(sets[n_train:])
    parts = np.concatenate(train), np.concatenate(test)
    return [(digits.images[part] / 16, digits.target[part[:, 0]]) for part in parts]


def save(ax, name, title, asked):
    ax.set_title(title)
    print(f"{save_picture(Path('out', name), ax, asked)}: {title}")


def main(argv=()):
    asked = options.of_pictures("quickstart", argv)
    (sets, y), (queries, truth) = split_digits(seed=10)
    D = subspaces.from_sets(sets, p=2)  # (80, 64, 2): orthonormal bases of the labelled planes
    X = subspaces.from_sets(queries, p=2)  # (516, 64, 2)
    methods = {
        "nearest subspace": lambda: y[core.chordal_distance(X, D).argmin(axis=1)],
        "gSC": lambda: core.classify(X, D, y, lam=0.03, lam_scale="max"),
        "gLC": lambda: core.classify(X, D, y, n_neighbors=15),
    }
    for classify in methods.values():
        classify()  # compile, and wake the threads: what is timed is the run
    print(f"{len(D)} labelled sets, {len(X)} queries\n{'':20}{'accuracy in %':>15}{'seconds':>12}")
    for name, classify in methods.items():
        start = time.perf_counter()
        predicted = classify()
        seconds = time.perf_counter() - start
        print(f"{name:20}{100 * np.mean(predicted == truth):15.1f}{seconds:12.3f}")

    codes = core.gsc(X, D, lam=0.03, lam_scale="max")
    save(plots.plot_atoms(D[::8], (8, 8), labels=y[::8]), "planes",
         "A plane of each digit: 2 directions of 3 images", asked)
    save(plots.plot_principal_angles(D, labels=y), "angles",
         "Angles between 80 planes of digits", asked)
    save(plots.plot_codes(codes, truth, atom_labels=y), "codes",
         "gSC, λ = 0.03 λ_max: 516 sets of digits over 80 planes", asked)


if __name__ == "__main__":
    main(sys.argv[1:])
