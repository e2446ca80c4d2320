"""
Choosing λ
==========

λ weighs sparsity against residual in ‖X̂ − Σ yⱼD̂ⱼ‖² + λ‖y‖₁. Three views of it: the
code of one query along a path of λ, what λ buys on all queries, and which λ classifies
best.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV

from grassmann_sc import lam_max, projection_kernel, sparse_codes
from grassmann_sc.estimators import CodingClassifier
from grassmann_sc.subspaces import from_sets

# %%
# Each three images of a digit become the plane in R⁶⁴ that fits them best. Eight planes
# of each digit are atoms, and ten are queries.

images, target = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images = images[order]
target = target[order]
sets = [images[target == c][3 * i : 3 * i + 3] for c in range(10) for i in range(18)]
X = from_sets(sets, p=2).reshape(10, 18, 64, 2)
D = X[:, :8].reshape(-1, 64, 2)
Q = X[:, 8:].reshape(-1, 64, 2)
y = np.repeat(range(10), 8)
truth = np.repeat(range(10), 10)
K_dd = projection_kernel(D)
K_xd = projection_kernel(Q, D)

# %%
# The path begins at λ_max, the smallest λ whose code is zero. Each search starts from
# the code of the λ before.

lams = lam_max(K_xd[:1])[0] * np.geomspace(1, 0.003, 30)
path = sparse_codes(K_dd, K_xd[:1], lams, norm2=2)[:, 0]  # (30, 80)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
used = np.flatnonzero(path.any(axis=0))
for j in used:
    own = y[j] == truth[0]
    ax.plot(
        lams,
        path[:, j],
        color="#0072B2" if own else "0.7",
        linewidth=2 if own else 1,
        zorder=2 if own else 1,
    )
ax.set(
    xscale="log",
    xlabel="λ",
    ylabel="coefficient of an atom",
    title=f"gSC of a {truth[0]}: atoms of its digit in blue, others in grey",
)
print(f"{len(used)} atoms of {len(D)} are used somewhere on the path")

# %%
# The same for all queries, with λ in units of each query's λ_max: the number of nonzeros
# and the residual. The duality gap bounds how far the cost of a code is from the lowest.

grid = np.geomspace(0.003, 0.9, 12)
codes, gap, _ = sparse_codes(
    K_dd, K_xd, grid, norm2=2, lam_scale="max", return_info=True
)  # (12, 100, 80)
residual = 2 + np.einsum("lnj,lnj->ln", codes @ K_dd - 2 * K_xd, codes)
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
counts = np.count_nonzero(codes, axis=2)
ax.plot(grid, np.median(counts, axis=1), "o-", color="#0072B2")
ax.set(
    xscale="log",
    xlabel="λ / λ_max",
    ylabel="nonzeros of a code, median (blue)",
    title="gSC of digits, 80 atoms, 100 queries",
)
right = ax.twinx()
right.plot(grid, np.median(residual, axis=1) / 2, "s--", color="#D55E00")
right.set(ylim=(0, 1.05), ylabel="residual, share of ‖X̂‖², median (red)")
print(f"largest duality gap: {gap.max():.1g}")

# %%
# Cross-validation on the labelled planes chooses; the test shows how good the choice
# was. With ``lam_scale="max"`` one grid suits any data.

search = GridSearchCV(
    CodingClassifier(lam_scale="max", calibrate=False), {"lam": grid}, cv=4
)
search.fit(D, y)
scores = search.cv_results_
tested = [
    np.mean(
        CodingClassifier(lam=lam, lam_scale="max", calibrate=False).fit(D, y).predict(Q)
        == truth
    )
    for lam in grid
]
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.errorbar(
    grid,
    100 * scores["mean_test_score"],
    100 * scores["std_test_score"],
    fmt="o-",
    color="#0072B2",
    capsize=3,
    label="cross-validation, mean and spread of 4 folds",
)
ax.plot(grid, 100 * np.array(tested), "s--", color="#D55E00", label="test")
ax.axvline(search.best_params_["lam"], color="0.6", linewidth=1)
ax.set(xscale="log", xlabel="λ / λ_max", ylabel="accuracy in %", title="gSC on digits")
ax.legend(frameon=False, loc="lower left")
print(f"chosen: {search.best_params_['lam']:.3g}")
