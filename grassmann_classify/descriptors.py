"""Descriptors of the frames of a set, and rows turned so that few numbers tell each."""

import numpy as np
import scipy.linalg

from grassmann_classify.own import describe
from grassmann_sc import checks

# rows are shortened if there are at most so many, and each of so many times more numbers
MOST_SHORTENED = 4000
SHORTER = 4


def described_by(team, sets, shape, recipes):
    """{features: the descriptors of all sets} of Recipes, by the processes of a Team.

    Those that are missing failed, or time was up.
    """
    found = {}
    for recipe in recipes:
        given = sets, shape, recipe
        rows = [one for _, one in team.each(described_or_why, given, len(sets))]
        rows = [one for one in rows if isinstance(one, np.ndarray)]
        if len(rows) == len(sets):
            found[recipe.features] = rows
    return found


def described_or_why(given, i, seconds):
    """For a Team: the descriptors of set i of sets, or the error; see described_set."""
    sets, shape, recipe = given
    try:
        yield described_set(sets[i], shape, recipe)
    except ValueError as error:
        yield error


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
