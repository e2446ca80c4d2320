"""
gSC and gLC on digits
=====================

Sets of three images are coded over labelled sets: sparsely (gSC), where the class wins
whose atoms explain a set best, or over their nearest neighbours (gLC), where the class
of the largest sum of coefficients wins.
"""

import numpy as np
from sklearn.datasets import load_digits

from grassmann_sc import chordal_distance, classify, plots
from grassmann_sc.subspaces import from_sets

images, target = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images = images[order]
target = target[order]
sets = [images[target == c][3 * i : 3 * i + 3] for c in range(10) for i in range(57)]
X = from_sets(sets, p=2).reshape(10, 57, 64, 2)
D = X[:, :8].reshape(-1, 64, 2)  # (80, 64, 2): atoms
Q = X[:, 8:].reshape(-1, 64, 2)  # (490, 64, 2): queries
y = np.repeat(range(10), 8)
truth = np.repeat(range(10), 49)

# %%
# An atom is a plane: its two directions as images, red and blue of opposite sign.

ax = plots.plot_atoms(D[::8], (8, 8), labels=y[::8])
ax.set_title("A labelled plane of each digit")

# %%
# Both codings beat the nearest labelled plane.

nearest = y[chordal_distance(Q, D).argmin(axis=1)]
sparse = classify(Q, D, y, lam=0.03, lam_scale="max", return_info=True)
local = classify(Q, D, y, n_neighbors=15, return_info=True)
print("                    accuracy in %")
answers = {
    "nearest plane": nearest,
    "gSC, λ = 0.03 λ_max": sparse.labels,
    "gLC, 15 neighbours": local.labels,
}
for name, predicted in answers.items():
    print(f"{name:20}{100 * np.mean(predicted == truth):8.1f}")

# %%
# Each row is a code, and rows are sorted by class. Coefficients in the diagonal blocks
# belong to atoms of the query's own digit.

ax = plots.plot_codes(sparse.codes, truth, atom_labels=y)
ax.set_title("gSC, λ = 0.03 λ_max: 490 sets of digits over 80 planes")

# %%

ax = plots.plot_codes(local.codes, truth, atom_labels=y)
ax.set_title("gLC, 15 neighbours: the same sets and planes")

# %%
# The confusion matrix shows which digits are mistaken for which.

ax = plots.plot_confusion(truth, sparse.labels)
ax.set_title("gSC, λ = 0.03 λ_max, digits")
