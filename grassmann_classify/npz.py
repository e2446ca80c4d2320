"""Clips of an .npz file, which are sets of frames or subspaces, and its splits."""

import re

import numpy as np

import grassmann_sc as core
from grassmann_classify.clips import Basis, Clip
from grassmann_sc import files, tuning

LABELS = ("label", "labels", "y")  # names of the array of labels
BASES = "bases"
SETS = ("frames", "X", BASES)  # names of arrays of sets
HALVES = ("X_train", "y_train", "X_test", "y_test")  # of a split, in one file
PARTS = r"(train|test)\d+"
IN_ONE = (".npy", ".npz")  # files that may hold one array of all sets
USUAL_AXES = {2: "n,time", 3: "n,time,channels", 4: "n,time,height,width"}


def load_npz(path, key=None, splits=True, axes=None):
    """Clips of a file of sets, and its splits [(train, test), ...] or None.

    The file holds all frames stacked, and offset, which tells where each set begins; or
    X, all sets of one length (n, time, channels), of which NaN at the end is cut off; or
    X_train, y_train, X_test and y_test, a split of these; or bases (n, d, p) of
    subspaces. key: the name of the array of frames or sets. splits: are those of the
    file wanted? axes: of X, as n,channels,time. ValueError if the file does not fit
    together.
    """
    arrays = _npz_arrays(path, key, axes)
    sources = _sources(path, arrays, key, axes)
    n = len(sources)
    name = next((name for name in LABELS if name in arrays), None)
    if name is None:
        raise ValueError(
            f"{path} must hold the labels of its sets, as {' or '.join(LABELS)}"
        )
    label = arrays[name]
    if label.shape != (n,):
        raise ValueError(
            f"{name} must have length {n}, one a set, got shape {label.shape}"
        )
    label = files.labels_to_keep(label, n, "sets")
    group = arrays.get("group")
    if group is not None and group.shape != label.shape:
        raise ValueError(
            f"group must have length {n}, one a set, got shape {group.shape}"
        )
    clips = [
        Clip(f"set {i}", label[i], None if group is None else group[i], [source])
        for i, source in enumerate(sources)
    ]
    parts = {name: arrays[name] for name in arrays if re.fullmatch(PARTS, name)}
    return clips, _npz_splits(parts, label) if splits and parts else None


def load_new_npz(path, key=None, axes=None):
    """Clips of a file of sets, or of an .npy file of X; labels, if any, are not used."""
    if path.suffix.lower() == ".npy":
        arrays = {"X": np.load(path, allow_pickle=False)}
    else:
        arrays = _npz_arrays(path, key, axes)
    sources = _sources(path, arrays, key, axes)
    return [Clip(f"set {i}", None, None, [source]) for i, source in enumerate(sources)]


def holds_sets(path, axes=None):
    """Is this a file of sets, by the names of its arrays or of their axes?"""
    names = {*_names(path)}
    in_one = axes is not None and "n" in axes.split(",") and path.suffix in IN_ONE
    if in_one or names & {"offset", BASES} or names >= {*HALVES}:
        return True
    if "X" not in names:
        return False
    if names & {*LABELS}:
        return True
    with np.load(path, allow_pickle=False) as data:
        return data["X"].ndim > 2  # X (n_frames, d) alone is a clip


def with_bases(clips, key=None):
    """The clips; those whose .npz file holds subspaces have these as their sources.

    Such a file holds bases (d, p), or (n, d, p), and no frames unless bases is the key.
    What is wrong with it is the error of its clip.
    """
    return [
        clip._replace(sources=_bases_of(clip.sources[0], key))
        if key in (None, BASES) and BASES in _names(clip.sources[0])
        else clip
        for clip in clips
    ]


def _names(path):
    """The names of the arrays of an .npz file; none of what is no such file."""
    if getattr(path, "suffix", "").lower() != ".npz":
        return []
    try:
        with np.load(path, allow_pickle=False) as data:
            return data.files
    except Exception:  # whatever NumPy raises for damaged bytes: reading it says so
        return []


def _bases_of(path, key):
    try:
        return _sources(path, _npz_arrays(path, key), key, None)
    except Exception as error:
        return [error]


def _sources(path, arrays, key, axes):
    """The sources of the sets of a file: their frames or their Basis."""
    present = [name for name in SETS if name in arrays]
    if key is None and len(present) > 1:
        raise ValueError(
            f"{path} must hold one of {', '.join(SETS)}, got {' and '.join(present)}: "
            "--key names the right one"
        )
    name = key or [*present, "frames"][0]
    stacked = "offset" in arrays or name == "frames"
    needed = [name, *["offset"] * stacked]
    missing = [array for array in needed if array not in arrays]
    if missing:
        raise ValueError(
            f"{path} must hold the arrays {' and '.join(missing)}, or X of all sets, or "
            f"bases of subspaces; it holds {', '.join(_names(path)) or 'none'}"
        )
    if name == BASES:
        bases = arrays[BASES]
        bases = bases[None] if bases.ndim == 2 else bases
        if not len(bases):
            raise ValueError(f"{path} must hold a basis, got none")
        return [*map(Basis, core.check_bases(bases, BASES))]
    if not stacked:
        return [*map(_unpadded, _sets_in_one(arrays[name], name, axes))]
    if axes is not None:
        raise ValueError(
            f"{path} must hold one array of all sets to have axes, got stacked frames"
        )
    offset = arrays["offset"]
    _check_sets(arrays[name], offset)
    return [arrays[name][start:stop] for start, stop in zip(offset, offset[1:])]


def _sets_in_one(X, name, axes):
    """The array of all sets, (n, time, channels) or (n, time, height, width)."""
    axes = axes or USUAL_AXES.get(X.ndim, USUAL_AXES[3])
    names = axes.split(",")
    fits = X.ndim == len(names) and "n" in names
    if not fits or X.dtype.kind not in "biuf" or not X.size:
        raise ValueError(
            f"{name} must hold real numbers with the axes {axes}, of which n is one, got "
            f"{X.dtype} {X.shape}"
        )
    X = np.moveaxis(X, [names.index("n"), names.index("time")], [0, 1])
    return X[:, :, None] if X.ndim == 2 else X


def _unpadded(rows):
    """A set without the time steps at its end that are NaN, as tslearn fills up sets."""
    full = np.flatnonzero((rows == rows).reshape(len(rows), -1).any(axis=1))
    return rows[: full[-1] + 1] if len(full) else rows


def _npz_arrays(path, key=None, axes=None):
    """The arrays of the file that are used here."""
    names = {*LABELS, *SETS, *HALVES, "offset", "group", key or "frames"}
    used = "|".join([*map(re.escape, names), PARTS])
    try:
        data = np.load(path, allow_pickle=False)
    except OSError:
        raise
    except Exception:  # whatever NumPy raises for damaged bytes
        data = None
    if not isinstance(data, np.lib.npyio.NpzFile):
        raise ValueError(f"{path} must be an .npz file, as np.savez writes it")
    with data:
        try:
            arrays = {key: data[key] for key in data.files if re.fullmatch(used, key)}
        except Exception as error:
            cure = "; labels are saved as text by y.astype(str)"
            raise ValueError(
                f"{path}: {error or type(error).__name__}"
                f"{cure if 'Object arrays' in str(error) else ''}"
            ) from None
    other = [key for key, array in arrays.items() if not isinstance(array, np.ndarray)]
    if other:
        raise ValueError(f"{path} must hold arrays, but {other[0]} is none")
    return _with_halves(path, arrays, axes) if arrays.keys() >= {*HALVES} else arrays


def _with_halves(path, arrays, axes):
    """The arrays, X, y, train0 and test0 in place of HALVES."""
    X_train, y_train, X_test, y_test = (arrays[name] for name in HALVES)
    names = axes.split(",") if axes else []
    place = names.index("n") if "n" in names else 0
    try:
        X = np.concatenate([X_train, X_test], axis=place)
        y = np.concatenate([y_train, y_test])
        n = len(y_train)
        fits = X_train.shape[place] == n and X.shape[place] == len(y)
    except ValueError:
        fits = False
    if not fits:
        shapes = [f"{name} {arrays[name].shape}" for name in HALVES]
        raise ValueError(
            f"{path}: X_train and X_test must have one shape but for their numbers of "
            f"sets, which y_train and y_test have too, got {', '.join(shapes)}"
        )
    arrays = {name: array for name, array in arrays.items() if name not in HALVES}
    return arrays | {
        "X": X,
        "y": y,
        "train0": np.arange(n),
        "test0": np.arange(n, len(y)),
    }


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
    if len(falls) or offset[0] != 0 or offset[-1] != len(rows):
        i = falls[0] if len(falls) else 0
        where = f", {offset[i]} to {offset[i + 1]} for set {i}" if len(falls) else ""
        raise ValueError(
            f"offset must rise from 0 to {len(rows)}, the number of frames, every set "
            f"holding a frame, got {offset[0]} to {offset[-1]}{where}"
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
