"""Recipes to choose from.

A recipe is what lies between a clip and its subspace: descriptor, centring, unit
variance, stacking. Its name is what differs between the candidates, as "LBP, stack 4".
"""

import importlib.util
import itertools
from dataclasses import replace

from grassmann_classify.settings import is_own

STACKS = [1, 4]
SMALLEST = 16  # pixels of a side of frames that HOG and LBP are tried on
CELLS = 5  # of HOG, about, along the shorter side
LBP_GRID = (2, 2)
PER_FRAME = ("raw", "hog", "lbp")  # descriptors that give a row a frame


def _fitted_options(features, shape):
    """Options of a descriptor that suit frames of this shape, where none are given."""
    if features == "hog" and len(shape) == 2:
        cell = max(4, min(shape) // CELLS)
        return {"pixels_per_cell": [cell, cell], "cells_per_block": [2, 2]}
    return {"grid": [*LBP_GRID]} if features == "lbp" and len(shape) == 2 else {}


def recipes_of(plain, shape, shortest, features=None, center=None, stack=None):
    """{name: Recipe} of the candidates; None for what is to be chosen.

    plain: the Recipe that they are variants of. shape: that of a frame; shortest: the
    least number of rows of a set. Of several descriptors, HOG has cells of about a
    fifth of the frame, and LBP a grid of 2 x 2 cells; a single one has the options of
    plain.
    """
    if features is None:
        images = len(shape) == 2 and min(shape) >= SMALLEST and plain.resample is None
        images = images and importlib.util.find_spec("skimage") is not None
        features = PER_FRAME if images else ["raw"]
    if center is None:
        center = [False, True]
    if stack is None:
        stack = [m for m in STACKS if m == 1 or shortest >= 2 * m]
    found = {}
    for kind, centred, m in itertools.product(features, center, stack):
        options = plain.feature_options
        if len(features) > 1:
            options = _fitted_options(kind, shape)
        words = [kind.upper() if kind != "raw" else "raw"] * (len(features) > 1)
        words += ["centred"] * (centred and len(center) > 1)
        words += [f"stack {m}"] * (m > 1 and len(stack) > 1)
        name = ", ".join(words) or "plain"
        found[name] = replace(
            plain,
            features=kind,
            feature_options=options if kind != "raw" else {},
            center=centred,
            stack=m,
        )
    return found


def base_of(recipe):
    """The Recipe of rows from which those of all its variants can be made.

    They are raw, or made by a function of the user's own, which no variant changes.
    """
    raw = {} if is_own(recipe.features) else {"features": "raw", "feature_options": {}}
    return replace(
        recipe,
        **raw,
        center=False,
        unit_variance=False,
        stack=1,
    )
