"""Arrays: in any layout; those in a result, and how far they are from others."""

import inspect
import tempfile

import numpy as np
import scipy.sparse


def leaves(value):
    """The numbers and texts in a result as a list of arrays, in a fixed order."""
    kind = type(value).__module__
    if scipy.sparse.issparse(value):
        return [value.toarray()]
    if isinstance(value, (bool, int, float, complex, str, np.generic, np.ndarray)):
        return [np.asarray(value)]
    if kind.startswith("dask"):
        return leaves(value.compute())
    if kind.startswith("grassmann_sc") and hasattr(value, "__dict__"):
        return leaves(vars(value))
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=str)]
    if isinstance(value, (tuple, list)) or inspect.isgenerator(value):
        return [leaf for part in value for leaf in leaves(part)]
    return []


def worst_difference(result, expected, least=0.0):
    """Largest difference relative to the largest number of its array, or to the least
    unit if that is larger; inf of different forms.
    """
    ours = leaves(result)
    theirs = leaves(expected)
    if [leaf.shape for leaf in ours] != [leaf.shape for leaf in theirs]:
        return np.inf
    worst = [difference_of_arrays(a, b, least) for a, b in zip(ours, theirs)]
    return max(worst, default=0.0)


def difference_of_arrays(a, b, least):
    numbers = b.dtype.kind in "biuf"
    if np.array_equal(a, b, equal_nan=numbers):
        return 0.0
    if not numbers:
        return np.inf
    apart = ~((a == b) | np.isnan(a) & np.isnan(b))
    unit = max(np.abs(b.astype(float)).max(), least)
    worst = (np.abs(a.astype(float) - b)[apart] / unit).max()
    return float(worst) if worst < np.inf else np.inf  # NaN too


def is_finite(result):
    """Are all numbers in a result finite?"""
    numbers = [leaf for leaf in leaves(result) if leaf.dtype.kind in "fc"]
    return all(np.isfinite(leaf).all() for leaf in numbers)


# ------------------------------------------------------------------- layouts of arrays


def strided(A):
    """A as every second entry of each axis, backwards along the last."""
    wide = np.zeros([2 * side for side in A.shape], A.dtype)
    part = tuple(slice(None, None, 2) for _ in A.shape[1:]) + (slice(None, None, -2),)
    wide[part] = A
    return wide[part]


def read_only(A):
    return np.frombuffer(A.tobytes(), A.dtype).reshape(A.shape)


def mapped(A):
    """A read from a file as it is used."""
    path = tempfile.mkstemp(suffix=".npy", dir=".")[1]  # workers open it by its name
    np.save(path, A)
    return np.load(path, mmap_mode="r")


LAYOUTS = {
    "plain": np.array,
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "read-only": read_only,
    "byte-swapped": lambda A: A.astype(A.dtype.newbyteorder()),
    "memory-mapped": mapped,
}


def changed_arrays(value, change):
    """The value with each array in it changed."""
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, (list, tuple)):
        parts = [changed_arrays(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def contents(value):
    """The bytes of all arrays in a value and its parts."""
    blocks = []
    changed_arrays(value, lambda array: blocks.append(array.tobytes()))
    return blocks
