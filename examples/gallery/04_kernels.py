"""
kgSC from end to end, with functions
====================================

In the feature space of a kernel a set of images spans a subspace too, and all that
coding needs are inner products. Choose γ, compute Gram matrices once, code with several
λ, classify.
"""

import numpy as np
from sklearn.datasets import load_digits

from grassmann_sc import class_scores, kernels, plots, sparse_codes

images, target = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images = images[order]
target = target[order]
sets = [images[target == c][4 * i : 4 * i + 4] for c in range(10) for i in range(20)]
y = np.repeat(range(10), 20)
atom = np.arange(200) % 20 < 8
atoms = [sets[i] for i in np.flatnonzero(atom)]
queries = [sets[i] for i in np.flatnonzero(~atom)]

# %%
# In one call: labels of the queries by kgSC and by kgLC.

gamma = kernels.median_gamma(atoms)
kernel = kernels.rbf(gamma)
print(f"median γ: {gamma:.3g}")
for name, options in [
    ("kgSC", {"lam": 0.03, "lam_scale": "max"}),
    ("kgLC", {"n_neighbors": 15}),
]:
    predicted = kernels.classify(queries, atoms, y[atom], kernel=kernel, p=2, **options)
    print(f"{name}: {100 * np.mean(predicted == y[~atom]):.1f} %")

# %%
# Step by step, to use the matrices again. A basis in feature space holds the
# coefficients of the set's frames; Gram matrices of the subspaces follow from it.

B_d = kernels.kernel_bases(atoms, kernel, 2)
B_x = kernels.kernel_bases(queries, kernel, 2)
K_dd = kernels.kernel_gram(atoms, B_d, kernel=kernel)
K_xd = kernels.kernel_gram(queries, B_x, atoms, B_d, kernel=kernel)
print("λ / λ_max   accuracy in %   nonzeros of a code")
for lam in [0.3, 0.1, 0.03, 0.01]:
    codes = sparse_codes(K_dd, K_xd, lam, norm2=2, lam_scale="max")
    scores, classes = class_scores(codes, K_dd, K_xd, y[atom], norm2=2)
    predicted = classes[scores.argmax(axis=1)]
    right = 100 * np.mean(predicted == y[~atom])
    print(f"{lam:9g}{right:16.1f}{np.count_nonzero(codes) / len(codes):21.1f}")

# %%
# The map of all sets, by distances in feature space.

bases = kernels.kernel_bases(sets, kernel, 2)
ax = plots.plot_map(kernels.kernel_gram(sets, bases, kernel=kernel), y)
ax.set_title("200 sets of digits, Gaussian kernel, p = 2")
