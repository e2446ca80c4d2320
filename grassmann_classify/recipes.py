"""Recipes to choose from, and the descriptors that they name.

A recipe is what lies between a clip and its subspace: descriptor, centring, stacking.
Its name is what differs between the candidates, as "LBP, stack 4".
"""

import importlib.util
import itertools
import threading
from dataclasses import replace

import numpy as np
import scipy.linalg

from grassmann_sc import checks, frames

STACK = 4  # frames
HALF = "half a clip"  # in place of a number of frames
STEPS = 32  # frames, at most, to which a clip is resampled before half is stacked
SMALLEST = 16  # pixels of a side of frames that HOG and LBP are tried on
CELLS = 5  # of HOG, about, along the shorter side
LBP_GRID = (2, 2)
PER_FRAME = ("raw", "hog", "lbp")  # descriptors that give a row a frame
# rows are shortened if there are at most so many, and each of so many times more numbers
MOST_SHORTENED = 4000
SHORTER = 4


def _fitted_options(features, shape):
    """Options of a descriptor that suit frames of this shape, where none are given."""
    if features == "hog" and len(shape) == 2:
        cell = max(4, min(shape) // CELLS)
        return {"pixels_per_cell": [cell, cell], "cells_per_block": [2, 2]}
    return {"grid": [*LBP_GRID]} if features == "lbp" and len(shape) == 2 else {}


def recipes_of(plain, shape, lengths, features=None, center=None, stack=None):
    """{name: Recipe} of the candidates; None for what is to be chosen.

    plain: the Recipe that they are variants of. shape: that of a frame; lengths: the
    numbers of rows of the sets. Images: raw, HOG, LBP, raw centred. Other frames, which
    follow each other: as they are, stacks of 4, and stacks of half a clip that is
    resampled to at most STEPS frames, each also centred. Of several descriptors, HOG has
    cells of about a fifth of the frame, and LBP a grid of 2 x 2 cells; a single one has
    the options of plain.
    """
    images = len(shape) == 2 and min(shape) >= SMALLEST and plain.resample is None
    images = images and plain.describe is None
    images = images and importlib.util.find_spec("skimage") is not None
    if features is None:
        features = PER_FRAME if images else ["raw"]
    steps = plain.resample or min(STEPS, int(np.median(lengths)))
    if stack is None:
        stack = [1]
        if not images:
            stack += [STACK] * (min(lengths) > STACK) + [HALF] * (steps > STACK)
    found = {}
    for kind, m, centred in itertools.product(features, stack, center or [False, True]):
        if centred and center is None and kind != "raw":
            continue
        options = plain.feature_options
        if len(features) > 1:
            options = _fitted_options(kind, shape)
        words = [kind.upper() if kind != "raw" else "raw"] * (len(features) > 1)
        words += ["centred"] * (centred and center != [True])
        stacked = m if m == HALF else f"stack {m}"
        words += [stacked] * (m != 1 and len(stack) > 1)
        half = {"resample": steps, "stack": steps // 2} if m == HALF else {"stack": m}
        found[", ".join(words) or "plain"] = replace(
            plain,
            features=kind,
            feature_options=options if kind != "raw" else {},
            center=centred,
            **half,
        )
    return found


def base_of(recipe):
    """The Recipe of rows from which those of all its variants can be made.

    They are raw, or made by a function of the user's own, which no variant changes.
    """
    return replace(recipe, features="raw", feature_options={}, center=False, stack=1)


# clips are read by threads, of which a user's function knows nothing
ONE_AT_A_TIME = threading.RLock()


def describe(clip, recipe):
    """The descriptors (n, d) of a clip's frames by a Recipe.

    ValueError if the user's own function does not return finite numbers.
    """
    if recipe.describe is None:
        return frames.describe(clip, recipe.features, **recipe.feature_options)
    with ONE_AT_A_TIME:
        try:
            rows = np.asarray(recipe.describe(clip))
        except Exception as error:
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise ValueError(f"describe raised {what}") from error
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"describe must return real numbers (n, d), got {rows.dtype} {rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise ValueError("describe must return finite numbers, got NaN or inf")
    return rows


def described_set(rows, shape, recipe):
    """The descriptors of raw rows of frames of this shape, by a Recipe."""
    rows = describe(rows.reshape(-1, *shape), recipe)
    return rows.astype(np.float32, copy=False) if recipe.single else rows


def shortened(sets):
    """Sets of rows (n_i, n) of the inner products of sets (n_i, d), n rows in all.

    They are the factor L of R = L Q, R being all rows and Q orthogonal, as exact as
    the rows themselves. The sets as they are where that would win little.
    """
    lengths = [len(one) for one in sets]
    n = sum(lengths)
    if n > MOST_SHORTENED or SHORTER * n > sets[0].shape[1]:
        return sets
    rows = np.concatenate(sets, dtype=np.float64)
    (upper,) = scipy.linalg.qr(rows.T, overwrite_a=True, mode="r", check_finite=False)
    turned = upper[:n].T.astype(checks.float_type(*sets), order="C")
    return np.split(turned, np.cumsum(lengths[:-1]))
