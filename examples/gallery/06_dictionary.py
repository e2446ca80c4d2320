"""
Learning a dictionary and looking at its atoms
==============================================

gDL alternates sparse coding and a closed-form update of the atoms. The cost never
rises.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifierCV

from grassmann_sc import gsc, learn, plots
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
# We learn sixteen atoms from 250 planes. With ``lam_scale="max"`` λ is a share of the
# median λ_max. ``learned.lam`` is the λ in use, and ``save`` keeps it.

learned = learn.gdl(X[train], 16, 0.1, lam_scale="max", n_iter=8, rng=0)
how = f"gDL, 16 atoms, λ = {learned.lam:.3g}, 250 sets of digits"
print(
    f"{how}: cost {learned.costs[0]:.1f} to {learned.costs[-1]:.1f} in {learned.n_iter} "
    "iterations"
)
ax = plots.plot_convergence(learned.costs)
ax.set_title(how)

# %%
# The atoms are subspaces: the leading direction of each is an average stroke, the
# second how it varies.

ax = plots.plot_atoms(learned.atoms, (8, 8))
ax.set_title(how)

# %%
# Codes of new sets are features for any classifier.

ridge = RidgeClassifierCV([0.1, 1, 10]).fit(learned.codes, y[train])
codes = gsc(X[~train], learned.atoms, learned.lam)
print(f"ridge on codes: {100 * ridge.score(codes, y[~train]):.1f} %")
ax = plots.plot_codes(codes, y[~train])
ax.set_title(f"Codes of new sets: {how}", fontsize=10)
