"""
How many labelled sets, which p, which λ
========================================

scikit-learn draws what accuracy depends on: the number of labelled sets
(``LearningCurveDisplay``), or a parameter of the pipeline (``ValidationCurveDisplay``).
Lines are means over ten random splits, bands one standard deviation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import (
    LearningCurveDisplay,
    StratifiedShuffleSplit,
    ValidationCurveDisplay,
)
from sklearn.pipeline import make_pipeline

from grassmann_sc.estimators import CodingClassifier, ImageSetSubspaces

# %%
# Forty sets of four images of each digit: frames (400, 4, 64). A pipeline makes
# subspaces of them and codes these over the labelled ones.

images, target = load_digits(return_X_y=True)
order = np.random.default_rng(0).permutation(len(images))
images = images[order]
target = target[order]
sets = [images[target == c][4 * i : 4 * i + 4] for c in range(10) for i in range(40)]
sets = np.stack(sets)
labels = np.repeat(range(10), 40)


def pipeline(p=2, spectrum=None):
    coding = CodingClassifier(lam=0.03, lam_scale="max", calibrate=False)
    return make_pipeline(ImageSetSubspaces(p, spectrum=spectrum), coding)


# %%
# Where the line still rises at its end, more labelled sets pay.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
shown = dict(score_type="test", score_name="accuracy")
splits = StratifiedShuffleSplit(10, test_size=80, random_state=0)
LearningCurveDisplay.from_estimator(
    pipeline(),
    sets,
    labels,
    train_sizes=[20, 40, 80, 160, 320],
    cv=splits,
    ax=ax,
    **shown,
)
ax.set(xlabel="labelled sets", title="gSC, sets of four images of a digit")
ax.get_legend().remove()

# %%
# A parameter is named as in any pipeline: the step, two underscores, the parameter. Here
# four sets of each digit are labelled, and p, λ, or alpha differs: then all directions
# count, weighted by their singular value to the power 2 alpha.

few = StratifiedShuffleSplit(10, train_size=40, test_size=200, random_state=0)

fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, model, name, values, meaning in (
    (axes[0], pipeline(), "imagesetsubspaces__p", [1, 2, 3, 4], "p"),
    (
        axes[1],
        pipeline(None, 0.25),
        "imagesetsubspaces__spectrum",
        [0.0625, 0.125, 0.25, 0.5, 1],
        "alpha",
    ),
    (
        axes[2],
        pipeline(),
        "codingclassifier__lam",
        np.geomspace(0.003, 0.6, 6),
        "λ / λ_max",
    ),
):
    display = ValidationCurveDisplay.from_estimator(
        model,
        sets,
        labels,
        param_name=name,
        param_range=values,
        cv=few,
        ax=ax,
        **shown,
    )
    best = display.test_scores.mean(axis=1).max()
    ax.set(xlabel=meaning, title=f"at most {100 * best:.1f} %")
    ax.get_legend().remove()
