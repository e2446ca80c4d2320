"""Clips of an .npz file of stacked sets, and its splits."""

import re

import numpy as np

from grassmann_classify.clips import Clip
from grassmann_sc import files, tuning


def load_npz(path, key=None, splits=True):
    """Clips of a file of stacked sets, and its splits [(train, test), ...].

    key: the name of the array of frames, "frames" unless given. splits: the file must
    have some; else None. ValueError if the file does not fit together.
    """
    key = key or "frames"
    of_splits = ("train0", "test0") if splits else ()
    arrays = _npz_arrays(path, (key, "offset", "label", *of_splits))
    rows, offset, label, group = (
        arrays.pop(name, None) for name in (key, "offset", "label", "group")
    )
    _check_sets(rows, offset)
    n = len(offset) - 1
    if label.shape != (n,):
        raise ValueError(
            f"label must have length {n}, one a set, got shape {label.shape}"
        )
    label = files.labels_to_keep(label, n, "sets")
    if group is not None and group.shape != label.shape:
        raise ValueError(
            f"group must have length {n}, one a set, got shape {group.shape}"
        )
    clips = [
        Clip(
            f"set {i}",
            label[i],
            None if group is None else group[i],
            [rows[offset[i] : offset[i + 1]]],
        )
        for i in range(n)
    ]
    return clips, _npz_splits(arrays, label) if splits else None


def load_new_npz(path, key=None):
    """Clips of a file of stacked sets; its labels, if any, are not used."""
    key = key or "frames"
    arrays = _npz_arrays(path, (key, "offset"))
    rows = arrays[key]
    offset = arrays["offset"]
    _check_sets(rows, offset)
    return [
        Clip(f"set {i}", None, None, [rows[start:stop]])
        for i, (start, stop) in enumerate(zip(offset, offset[1:]))
    ]


def _npz_arrays(path, needed):
    """The arrays of the file that are used here."""
    used = "|".join([*map(re.escape, needed), "label", "group", r"(train|test)\d+"])
    try:
        data = np.load(path, allow_pickle=False)
    except OSError:
        raise
    except Exception:  # whatever NumPy raises for damaged bytes
        data = None
    if not isinstance(data, np.lib.npyio.NpzFile):
        raise ValueError(f"{path} must be an .npz file, as np.savez writes it")
    with data:
        missing = [key for key in needed if key not in data.files]
        if missing:
            raise ValueError(
                f"{path} must hold the arrays {', '.join(missing)}; it holds "
                f"{', '.join(data.files) or 'none'}"
            )
        try:
            arrays = {key: data[key] for key in data.files if re.fullmatch(used, key)}
        except Exception as error:
            raise ValueError(f"{path}: {error or type(error).__name__}") from None
    other = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
    if other:
        raise ValueError(f"{path} must hold arrays, but {other[0]} is none")
    return arrays


def _check_sets(rows, offset):
    if rows.ndim not in (2, 3) or rows.dtype.kind not in "biuf":
        raise ValueError(
            "frames must be real numbers (total, d) or (total, height, width), got "
            f"{rows.dtype} {rows.shape}"
        )
    if offset.ndim != 1 or len(offset) < 2 or offset.dtype.kind not in "iu":
        raise ValueError(
            "offset must hold n_sets + 1 >= 2 integers, got "
            f"{offset.dtype} {offset.shape}"
        )
    falls = np.flatnonzero(offset[1:] <= offset[:-1])
    if len(falls):
        i = falls[0]
        raise ValueError(
            f"offset must rise, every set holding a frame, got {offset[i]} and "
            f"{offset[i + 1]} for set {i}"
        )
    if offset[0] != 0 or offset[-1] != len(rows):
        raise ValueError(
            f"offset must go from 0 to {len(rows)}, the number of frames, got "
            f"{offset[0]} to {offset[-1]}"
        )


def _npz_splits(arrays, label):
    """[(train, test), ...], indices, from the arrays train0, test0, ..."""
    numbers = range((len(arrays) + 1) // 2)
    missing = {f"{side}{i}" for i in numbers for side in ("train", "test")} - set(
        arrays
    )
    if missing:
        raise ValueError(
            "the splits must be train0, test0, train1, test1, ...: "
            f"{min(missing)} is missing among {', '.join(sorted(arrays))}"
        )
    pairs = tuning.check_splits(
        [(arrays[f"train{i}"], arrays[f"test{i}"]) for i in numbers], len(label)
    )
    for i, (train, _) in enumerate(pairs):
        if len(np.unique(label[train])) < 2:
            raise ValueError(
                f"train{i} must hold sets of at least two classes, got one: "
                f"{label[train[0]]}"
            )
    return pairs
