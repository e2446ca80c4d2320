"""
The whole method on a circle
============================

The paper draws its manifold as a hemisphere. For lines in the plane the picture is
exact: their projectors form a circle, and every step of the method can be seen on it.
"""

import matplotlib.pyplot as plt
import numpy as np

from grassmann_sc import glc, gsc, proj, reconstruct

# %%
# The line at the angle t has the projector X̂ = XXᵀ, a symmetric 2 × 2 matrix of trace 1.
# These matrices form a plane. In an orthonormal basis of it, X̂ is the point (cos 2t, sin
# 2t)/√2: lines are a circle of radius 1/√2, and a right angle of lines is a diameter.


def lines(degrees):
    """Bases (n, 2, 1) of lines at these angles to the first axis."""
    t = np.radians(degrees)
    return np.stack([np.cos(t), np.sin(t)], axis=-1)[..., None]


def in_plane(S):
    """Coordinates (n, 2) of symmetric matrices (n, 2, 2) of trace 1."""
    return np.stack([S[:, 0, 0] - S[:, 1, 1], 2 * S[:, 0, 1]], axis=1) / np.sqrt(2)


def projectors(X):
    return X @ X.swapaxes(1, 2)


def combination(codes, D):
    """Σ yⱼD̂ⱼ / Σ yⱼ (n, 2, 2): the division brings it to trace 1."""
    S = np.einsum("nj,jab->nab", codes, projectors(D))
    return S / codes.sum(axis=1)[:, None, None]


D = lines([0, 65, 100, 145])
X = lines([28])

# %%
# gSC writes the query as a sparse combination of atoms. With coefficients ≥ 0, divided
# by their sum, it is a point inside the circle, between the atoms in use. A larger λ
# draws it along their chord to the nearest atom. gLC takes the two nearest atoms and
# coefficients that sum to 1: the point of the chord that is nearest to the query. None
# of these points is the projector of a line. Proj brings them back: the line of the
# largest eigenvalue, which is the nearest point of the circle.

codes = {
    "gSC, λ = 0.02": gsc(X, D, lam=0.02, positive=True),
    "gSC, λ = 0.6": gsc(X, D, lam=0.6, positive=True),
    "gSC, λ = 1": gsc(X, D, lam=1.0, positive=True),
    "gLC, 2 neighbours": glc(X, D, n_neighbors=2),
}
for name, y in codes.items():
    back = proj(combination(y, D), 1)
    (x,) = back[:, :, 0]
    angle = np.degrees(np.arctan2(x[1], x[0])) % 180
    print(f"{name:18} y = {y[0].round(2)}, sum {y.sum():.2f}, Proj at {angle:4.1f}°")
    # reconstruct does the same from codes
    assert np.allclose(projectors(back), projectors(reconstruct(y, D)))

# %%
# Left the lines, then their projectors: the circle, the combinations inside it, and Proj
# of each.

BLUE = "#0072B2"
GREEN = "#009E73"
REDS = ["#D55E00", "#CC79A7", "#E69F00"]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.9), layout="constrained")
for basis, color, width in [*((atom, GREEN, 1.5) for atom in D), (X[0], BLUE, 2.5)]:
    axes[0].plot(*np.concatenate([-basis.T, basis.T]).T, color=color, linewidth=width)
axes[0].set(title="lines in the plane", xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))

circle = in_plane(projectors(lines(np.linspace(0, 180, 181))))
atoms = in_plane(projectors(D))
(query,) = in_plane(projectors(X))
for ax, coding in zip(axes[1:], ["gSC", "gLC"]):
    ax.plot(*circle.T, color="0.7", linewidth=1)
    ax.plot(*atoms[:2].T, color=GREEN, linewidth=1, linestyle="--")
    ax.plot(*atoms.T, "s", color=GREEN)
    ax.plot(*query, "o", color=BLUE, markersize=9)
    shown = {name: y for name, y in codes.items() if name.startswith(coding)}
    for color, (name, y) in zip(REDS, shown.items()):
        S = combination(y, D)
        (inside,) = in_plane(S)
        (back,) = in_plane(projectors(proj(S, 1)))
        ax.plot(*np.transpose([[0, 0], back]), color="0.7", linewidth=1, linestyle=":")
        ax.annotate("", back, inside, arrowprops={"arrowstyle": "->", "color": color})
        ax.plot(*inside, "D", color=color, label=name)
        ax.plot(*back, "x", color=color, markersize=9, markeredgewidth=2)
    ax.set(title=f"{coding}: projectors", xlim=(-0.85, 0.85), ylim=(-0.85, 0.85))
    ax.legend(frameon=False, fontsize=8, loc="center", bbox_to_anchor=(0.42, 0.35))
for ax in axes:
    ax.set_aspect("equal")
    ax.axis("off")
for marker, color, name in [
    ("s", GREEN, "atoms"),
    ("o", BLUE, "query"),
    ("D", "0.4", "combination"),
    ("x", "0.4", "its Proj"),
]:
    axes[0].plot([], marker, color=color, label=name)
fig.legend(
    *axes[0].get_legend_handles_labels(),
    loc="outside lower center",
    ncols=4,
    frameon=False,
)

# %%
# For p > 1 or d > 2 the projectors are no longer a circle, but all of this holds: the
# combination has trace p after the division, Proj takes its p leading eigenvectors, and
# no subspace is nearer.
