"""
Discriminative dictionaries
===========================

We learn a few atoms for each class, which explain their own class (gDL), or their own
class and no other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from grassmann_sc import learn, plots
from grassmann_sc.discriminative import discriminative_atoms, ridge_residuals
from grassmann_sc.subspaces import from_sets

images, target = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images = images[order]
target = target[order]
sets = [images[target == c][3 * i : 3 * i + 3] for c in range(10) for i in range(50)]
X = from_sets(sets, p=2)
y = np.repeat(range(10), 50)
train = np.arange(500) % 2 == 0

# %%
# Accuracy against the number of atoms; that of all 25 planes of a class is the line.


def accuracy(atoms, labels):
    """In %, on the test sets."""
    errors, classes = ridge_residuals(X[~train], atoms, labels)
    return 100 * np.mean(classes[errors.argmin(axis=1)] == y[~train])


numbers = [1, 2, 4]
own = []
other = []
for number in numbers:
    of_class = learn.class_dictionaries(
        X[train], y[train], number, 0.1, n_iter=5, rng=0
    )
    apart = discriminative_atoms(X[train], y[train], number, n_iter=40, rng=0)
    own.append(accuracy(of_class.atoms, of_class.labels))
    other.append(accuracy(apart.atoms, apart.labels))
    print(
        f"{number} atoms a class: gDL of each class {own[-1]:.1f} %, discriminative "
        f"{other[-1]:.1f} %"
    )
everything = accuracy(X[train], y[train])
print(f"all 25 sets of each class: {everything:.1f} %")

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(numbers, other, "o-", color="#0072B2", label="discriminative")
ax.plot(numbers, own, "s--", color="#D55E00", label="gDL of each class")
ax.axhline(everything, color="0.6", linewidth=1, label="all 25 sets of each class")
ax.set(
    xlabel="atoms a class",
    ylabel="accuracy in %",
    xticks=numbers,
    title="Digits, 250 sets to learn from, 250 to test",
)
ax.legend(frameon=False)

# %%
# The single atoms of each digit.

single = discriminative_atoms(X[train], y[train], 1, n_iter=40, rng=0)
ax = plots.plot_atoms(single.atoms, (8, 8), labels=single.labels)
ax.set_title("Discriminative atoms, one a digit")
