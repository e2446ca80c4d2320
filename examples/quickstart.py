"""Sets of images, classified by coding their subspaces: python -m examples.quickstart

The plane in R^64 that fits three images of a handwritten digit best is their subspace.
Eight planes of each digit are labelled, all others are coded over these. Prints a
table, leaves three pictures in out/. Needs scikit-learn.
"""

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from grassmann_sc import chordal_distance, classify, gsc, plots
from grassmann_sc.subspaces import from_sets

images, digit = load_digits(return_X_y=True)  # (1797, 64): 8 x 8 pixels a row
order = np.random.default_rng(10).permutation(len(images))
# the images of each digit, shuffled
mine = [images[order][digit[order] == c] for c in range(10)]
# (80, 64, 2)
D = from_sets([rows[3 * i : 3 * i + 3] for rows in mine for i in range(8)], p=2)
X = from_sets(
    [rows[i : i + 3] for rows in mine for i in range(24, len(rows) - 2, 3)], p=2
)
y = np.repeat(range(10), 8)  # the digits of the labelled planes D
# and of the 516 planes X
truth = np.repeat(range(10), [len(rows) // 3 - 8 for rows in mine])

methods = {
    "nearest subspace": lambda: y[chordal_distance(X, D).argmin(axis=1)],
    "gSC": lambda: classify(X, D, y, lam=0.03, lam_scale="max"),
    "gLC": lambda: classify(X, D, y, n_neighbors=15),
}
print("Sets of three handwritten digits, one split:")
print(
    f"{len(D)} labelled sets, {len(X)} queries\n{'':20}{'accuracy in %':>15}{'seconds':>12}"
)
for name, method in methods.items():
    method()  # compiles, so that the next call is the run alone
    start = time.perf_counter()
    predicted = method()
    seconds = time.perf_counter() - start
    print(f"{name:20}{100 * np.mean(predicted == truth):15.1f}{seconds:12.3f}")

codes = gsc(X, D, lam=0.03, lam_scale="max")
pictures = {
    "planes": (
        "A plane of each digit: 2 directions of 3 images",
        plots.plot_atoms(D[::8], (8, 8), labels=y[::8]),
    ),
    "angles": (
        "Angles between 80 planes of digits",
        plots.plot_principal_angles(D, labels=y),
    ),
    "codes": (
        "gSC, λ = 0.03 λ_max: 516 sets of digits over 80 planes",
        plots.plot_codes(codes, truth, atom_labels=y),
    ),
}
Path("out").mkdir(exist_ok=True)
print("\nPictures:")
for name, (title, ax) in pictures.items():
    ax.set_title(title)
    ax.figure.savefig(f"out/{name}.png", dpi=120)
    print(f"  out/{name}.png: {title}")
