"""
Videos by ARMA models
=====================

The span of a video's frames does not depend on their order. The observability matrix of
an ARMA model keeps the order, and so does a block Hankel matrix.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from grassmann_sc.estimators import (
    BlockHankel,
    ImageSetSubspaces,
    NearestSubspace,
    VideoSubspaces,
)

# %%
# Waves that run across the picture, slowly or fast, forwards or backwards: each video
# of a class shows the same frames as those of the others, in another order.

SPEEDS = {"slow": 0.3, "fast": 0.6, "slow, backwards": -0.3, "fast, backwards": -0.6}


def video(speed, rng, n_frames=40, side=12):
    """Frames (n_frames, side, side) of a plane wave in noise."""
    x = np.arange(side) * 2 * np.pi / side
    t = np.arange(n_frames)[:, None] * speed + rng.uniform(0, 2 * np.pi)
    wave = np.cos(x[None] - t)[:, None, :]  # (n_frames, 1, side)
    return wave + 0.7 * rng.standard_normal((n_frames, side, side))


rng = np.random.default_rng(0)
y = np.repeat(list(SPEEDS), 10)
videos = [video(SPEEDS[name], rng) for name in y]
fig, axes = plt.subplots(1, 5, figsize=(7, 1.7), layout="constrained")
for k, ax in enumerate(axes):
    ax.imshow(videos[0][2 * k], cmap="gray")
    ax.set(xticks=[], yticks=[], title=f"frame {2 * k}")

# %%
# Ten-fold cross-validation of the nearest subspace, from raw videos.

first_steps = {
    "frames in any order": make_pipeline(ImageSetSubspaces(2)),
    "block Hankel, 5 blocks": make_pipeline(BlockHankel(5), ImageSetSubspaces(2)),
    "ARMA, 5 blocks": make_pipeline(VideoSubspaces(n_states=2, n_blocks=5)),
}
for name, steps in first_steps.items():
    scores = cross_val_score(make_pipeline(steps, NearestSubspace()), videos, y, cv=10)
    print(f"{name:24}{100 * scores.mean():6.1f} %")
