"""
The embedding, seen
===================

A subspace X becomes the projector X̂ = XXᵀ, a point in a space of symmetric matrices.
Distances between such points are chordal; along the manifold they are geodesic. How do
the two compare?
"""

import matplotlib.pyplot as plt
import numpy as np

from grassmann_sc import (
    chordal_distance,
    geodesic_distance,
    orthonormalize,
    plots,
    principal_angles,
    random_subspaces,
)

# %%
# Two planes in R⁵ have two principal angles. They are accurate at both ends of [0°,
# 90°], where an arccos of inner products would lose half its digits.

X = np.eye(5)[:, :2]
Y = orthonormalize(X + [[0, 0], [0, 0], [1e-12, 0], [0, 1], [0, 0]])
print("angles in radians:", principal_angles(X, Y))
ax = plots.plot_angles_pair(X, Y, names=("X", "Y"))

# %%
# One angle grows from 0° to 90°: the chord ‖X̂ − Ŷ‖/√2 = ‖sin θ‖ falls behind the arc
# ‖θ‖. Near 0 they agree, which is why coding in the embedding can do without
# logarithms.

theta = np.linspace(0, np.pi / 2, 91)
turned = np.zeros((91, 5, 2))
turned[:, 0, 0] = np.cos(theta)
turned[:, 2, 0] = np.sin(theta)
turned[:, 1, 1] = 1
chord = chordal_distance(turned, X[None])[:, 0] / np.sqrt(2)
arc = geodesic_distance(turned, X[None])[:, 0]

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(np.degrees(theta), arc, color="#0072B2", label="geodesic, ‖θ‖")
ax.plot(np.degrees(theta), chord, "--", color="#D55E00", label="chordal / √2, ‖sin θ‖")
ax.set(xlabel="angle (degrees)", ylabel="distance", title="One angle from 0° to 90°")
ax.legend(frameon=False)

# %%
# All pairs of subspaces obey 2/π · geodesic ≤ chordal/√2 ≤ geodesic. The picture shows
# 210 random pairs in R²⁰ for each dimension.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for p, color, marker in [(1, "#0072B2", "o"), (3, "#D55E00", "s"), (8, "#009E73", "^")]:
    Z = random_subspaces(21, 20, p, rng=p)
    pairs = np.triu_indices(21, 1)
    ax.scatter(
        geodesic_distance(Z)[pairs],
        chordal_distance(Z)[pairs] / np.sqrt(2),
        s=12,
        color=color,
        marker=marker,
        label=f"p = {p}",
    )
most = ax.get_xlim()[1]
ax.plot([0, most], [0, most], color="0.6", linewidth=1, label="bounds")
ax.plot([0, most], [0, most * 2 / np.pi], color="0.6", linewidth=1)
ax.set(
    xlabel="geodesic distance",
    ylabel="chordal distance / √2",
    xlim=(0, most),
    ylim=(0, most),
    title="Random subspaces of R²⁰",
)
ax.legend(frameon=False)
