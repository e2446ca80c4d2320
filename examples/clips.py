"""From files to subspaces, for the examples: find the clips of a folder, build each clip's subspace once, split the clips.

A folder holds class folders; a class folder holds clips, or folders of clips, whose names are then the clips' groups (persons,
scenes). A clip is a folder of images, a video, or an .npy, .npz, .mat, .gif or .tif file.
"""

import csv
import hashlib
import json
import os
import re
import sys
import threading
import time
import zipfile
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numba
import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, StratifiedShuffleSplit

import subspaces
from features import describe

VERSION = 1  # of the cache: raised when the same recipe gives other numbers
CLIPS = subspaces.ARRAYS | {".gif", ".tif", ".tiff", ".avi", ".flv", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ogv", ".ts",
                            ".webm", ".wmv"}

Clip = namedtuple("Clip", "name label group sources")  # sources: files or folders, or arrays, whose frames make one set
Built = namedtuple("Built", "bases rows frame")  # (k, d, p) subspaces of a clip's runs; their k arrays of rows, or None
Collection = namedtuple("Collection", "X sets names label group frame failed")  # frame: (height, width) or (); failed: [why, ...]


@dataclass(frozen=True)
class Recipe:
    """How a clip becomes subspaces; the defaults take raw pixels of all frames."""
    p: int
    features: str = "raw"
    feature_options: dict = field(default_factory=dict)
    size: tuple | None = None
    every: int = 1
    at_most: int | None = None
    evenly: int | None = None
    resample: int | None = None  # the rows, linearly in time
    run: int | None = None  # cut the rows into sets of so many
    stack: int = 1  # blocks of the Hankel matrix
    arma: int = 0  # blocks of the observability matrix of an ARMA model with p states, 0: no such model
    center: bool = False
    unit_variance: bool = False
    stabilize: bool = False
    rank: str = "raise"
    single: bool = False  # float32 bases


# ---------------------------------------------------------------------------- clips to subspaces


def build(clip, recipe, keep_rows=False):
    """The subspaces of a clip, one a run; the rows (n_rows, d) of each if asked for, normalised frames or descriptors, stacked as
    stack or arma says (the span of stacked frames models the same dynamics); and the shape of a frame."""
    parts = [_frames(source, recipe) for source in clip.sources]
    rows = [describe(frames, recipe.features, **recipe.feature_options) for frames in parts]
    rows = _resampled(np.concatenate(rows) if len(rows) > 1 else rows[0], recipe.resample)
    runs = [rows.astype(np.float32, copy=False) if recipe.single else rows]
    if recipe.run:
        runs = [runs[0][i:i + recipe.run] for i in range(0, len(rows) - recipe.run + 1, recipe.run)]
        if not runs:
            raise ValueError(f"a run takes {recipe.run} frames, got {len(rows)}")
    normal = {name: getattr(recipe, name) for name in ("center", "unit_variance", "rank")}
    if recipe.arma:
        bases = [subspaces.from_video(rows, recipe.p, recipe.arma, recipe.stabilize, **normal) for rows in runs]
        kept = [subspaces.block_hankel(_normalised(rows, recipe), recipe.arma) for rows in runs] if keep_rows else None
    else:
        runs = [subspaces.block_hankel(rows, recipe.stack) for rows in runs]
        bases = [subspaces.from_image_set(rows, recipe.p, **normal) for rows in runs]
        kept = [_normalised(rows, recipe) for rows in runs] if keep_rows else None
    return Built(np.stack(bases), kept, parts[0].shape[1:] if recipe.features == "raw" else ())


def _resampled(rows, n):
    """The rows at n even steps in time, linearly between neighbours."""
    if n is None:
        return rows
    before, share = np.divmod(np.linspace(0, len(rows) - 1, n), 1)
    before, share = before.astype(int), share[:, None]
    return (1 - share) * rows[before] + share * rows[np.minimum(before + 1, len(rows) - 1)]


def _normalised(rows, recipe):
    if recipe.center or recipe.unit_variance:
        rows = rows - rows.mean(axis=0)
    if recipe.unit_variance:
        deviation = rows.std(axis=0)
        rows = rows / np.where(deviation > 1e-9 * deviation.max(), deviation, np.inf)
    return rows


def _frames(source, recipe):
    if isinstance(source, np.ndarray):
        return source[list(subspaces._pick(range(len(source)), recipe.every, recipe.at_most, recipe.evenly))]
    return subspaces.read_frames(source, size=recipe.size, every=recipe.every, at_most=recipe.at_most, evenly=recipe.evenly)


def build_all(clips, recipe, cache=None, keep_rows=False, strict=False):
    """A Collection of all clips that can be built, in parallel, a clip a thread in memory; strict: the first failure raises.

    cache : folder of the results by content; what was built before a Ctrl-C stays there
    """
    def job(clip):
        try:
            return clip, _cached(clip, recipe, cache, keep_rows)
        except (ValueError, TypeError, OSError) as error:
            why = str(error) if clip.name in str(error) else f"{clip.name}: {error}"
            if strict:
                raise ValueError(why) from error
            return clip, why

    pool = ThreadPoolExecutor(numba.config.NUMBA_NUM_THREADS)
    try:
        done = list(progress(pool.map(job, clips), len(clips), "clips"))
    finally:
        pool.shutdown(cancel_futures=True)
    failed = [result for _, result in done if isinstance(result, str)]
    built = [(clip, result) for clip, result in done if not isinstance(result, str)]
    if not built:
        raise ValueError("no clip could be read: " + "; ".join(failed[:3]))
    d = Counter(result.bases.shape[1] for _, result in built).most_common(1)[0][0]
    other = [f"{clip.name}: has d = {result.bases.shape[1]} and most clips have {d}; resizing the frames would make them equal"
             for clip, result in built if result.bases.shape[1] != d]
    if strict and other:
        raise ValueError(other[0])
    built = [(clip, result) for clip, result in built if result.bases.shape[1] == d]
    del done
    return _collect(built, failed + other)


def _collect(built, failed):
    """The Collection of what was built; empties that list."""
    counts = [len(result.bases) for _, result in built]
    clips, first, end = [clip for clip, _ in built], built[0][1], sum(counts)
    X, sets = np.empty((end, *first.bases.shape[1:]), first.bases.dtype), []
    while built:  # from the last to the first, so that memory is freed as X fills
        result = built.pop()[1]
        X[end - len(result.bases):end] = result.bases
        end -= len(result.bases)
        sets[:0] = result.rows or []
    each = np.repeat(np.arange(len(clips)), counts)
    names = [f"{clip.name}#{run}" if k > 1 else clip.name for clip, k in zip(clips, counts) for run in range(k)]
    groups = np.array([str(clip.group) for clip in clips])[each] if all(clip.group is not None for clip in clips) else None
    return Collection(X, sets or None, names, np.array([clip.label for clip in clips])[each], groups, first.frame, failed)


def _cached(clip, recipe, cache, keep_rows):
    if cache is None:
        return build(clip, recipe, keep_rows)
    path = Path(cache) / (_digest(clip, recipe) + ".npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            rows = [file[f"rows{i}"] for i in range(len(file["bases"]))] if keep_rows else None
            return Built(file["bases"], rows, tuple(map(int, file["frame"])))
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile):
        pass  # not there, without rows, or broken
    result = build(clip, recipe, keep_rows)
    rows = {f"rows{i}": rows for i, rows in enumerate(result.rows or [])}
    write(path, lambda file: np.savez(file, bases=result.bases, frame=np.array(result.frame, int), **rows))
    return result


def _digest(clip, recipe):
    """Hash of what a clip's subspace depends on: the bytes of its files and the recipe."""
    digest = hashlib.blake2b(json.dumps([VERSION, asdict(recipe)], default=str).encode(), digest_size=16)
    for source in clip.sources:
        if isinstance(source, np.ndarray):
            digest.update(f"{source.dtype}{source.shape}".encode() + np.ascontiguousarray(source).tobytes())
        elif source.is_dir():
            for file in sorted(source.iterdir()):
                if file.is_file():
                    digest.update(f"{file.name}\0{file.stat().st_size}\0".encode() + file.read_bytes())
        else:
            with open(source, "rb") as file:
                digest.update(source.suffix.lower().encode())
                while chunk := file.read(2**22):
                    digest.update(chunk)
    return digest.hexdigest()


# ---------------------------------------------------------------------------- finding clips


def find_clips(folder, group_by=None):
    """The clips of DIR/class/clip and DIR/class/group/clip, sorted by name: "class/clip". Other files are passed over.

    group_by : regular expression whose match in a clip's file name (its first group, if it has one) is the clip's group
    """
    folder, clips = Path(folder), []
    for class_folder in filter(Path.is_dir, visible(folder)):
        for entry in visible(class_folder):
            nested = [path for path in visible(entry) if _is_clip(path)] if entry.is_dir() and not _holds_images(entry) else []
            for path, group in [(path, entry.name) for path in nested] or [(entry, None)]:
                if path.is_dir() or _is_clip(path):  # a folder without images is reported as a broken clip
                    clips.append(Clip(path.relative_to(folder).as_posix(), class_folder.name, _group(path, group, group_by), [path]))
    if len({clip.label for clip in clips}) < 2:
        raise ValueError(f"{folder}: must hold two or more class folders of clips (videos, folders of images, arrays); found "
                         f"{len(clips)} clips of {len({clip.label for clip in clips})} classes")
    return clips


def visible(folder):
    """What a folder holds but for hidden files, sorted by name."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _holds_images(folder):
    return any(file.suffix.lower() in subspaces.IMAGES and file.is_file() for file in visible(folder))


def _is_clip(path):
    return _holds_images(path) or not visible(path) if path.is_dir() else path.suffix.lower() in CLIPS


def _group(path, group, group_by):
    if group_by is None:
        return group
    match = re.search(group_by, path.name)
    if not match:
        raise ValueError(f"{path}: the name has no group, {group_by!r} does not match it")
    return match.group(1) if match.re.groups else match.group()


def load_npz(path):
    """Clips of a file of stacked sets, and its splits [(train, test), ...]; ValueError if the file does not fit together."""
    try:
        data = np.load(path, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile, EOFError):
        data = None
    if not isinstance(data, np.lib.npyio.NpzFile):
        raise ValueError(f"{path} must be an .npz file, as np.savez writes it")
    with data:
        missing = [key for key in ("frames", "offset", "label", "train0", "test0") if key not in data.files]
        if missing:
            raise ValueError(f"{path} must hold the arrays {', '.join(missing)}; it holds {', '.join(data.files) or 'none'}")
        try:
            arrays = {key: data[key] for key in data.files if re.fullmatch(r"frames|offset|label|group|(train|test)\d+", key)}
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    frames, offset, label, group = (arrays.pop(key, None) for key in ("frames", "offset", "label", "group"))
    if frames.ndim not in (2, 3) or frames.dtype.kind not in "biuf":
        raise ValueError(f"frames must be real numbers (total, d) or (total, height, width), got {frames.dtype} {frames.shape}")
    if offset.ndim != 1 or len(offset) < 2 or offset.dtype.kind not in "iu":
        raise ValueError(f"offset must hold n_sets + 1 >= 2 integers, got {offset.dtype} {offset.shape}")
    falls = np.flatnonzero(offset[1:] <= offset[:-1])
    if len(falls):
        i = falls[0]
        raise ValueError(f"offset must rise, every set holding a frame, got {offset[i]} and {offset[i + 1]} for set {i}")
    if offset[0] != 0 or offset[-1] != len(frames):
        raise ValueError(f"offset must go from 0 to {len(frames)}, the number of frames, got {offset[0]} to {offset[-1]}")
    if label.shape != (len(offset) - 1,):
        raise ValueError(f"label must have length {len(offset) - 1}, one a set, got shape {label.shape}")
    if group is not None and group.shape != label.shape:
        raise ValueError(f"group must have length {len(label)}, one a set, got shape {group.shape}")
    clips = [Clip(f"set {i}", label[i], None if group is None else group[i], [frames[offset[i]:offset[i + 1]]])
             for i in range(len(label))]
    return clips, _npz_splits(arrays, label)


def _npz_splits(arrays, label):
    """[(train, test), ...] from the arrays train0, test0, ...: indices of sets, none on both sides."""
    pairs = []
    for i in range((len(arrays) + 1) // 2):
        pair = f"train{i}", f"test{i}"
        for key in pair:
            if key not in arrays:
                raise ValueError(f"the splits must be train0, test0, train1, test1, ...: {key} is missing among "
                                 f"{', '.join(sorted(arrays))}")
            index = arrays[key]
            if index.ndim != 1 or len(index) == 0 or index.dtype.kind not in "iu":
                raise ValueError(f"{key} must hold at least one index of a set, got {index.dtype} {index.shape}")
            if index.min() < 0 or index.max() >= len(label):
                raise ValueError(f"{key} must hold indices in 0..{len(label) - 1}, got {index.min()} to {index.max()}")
        both = np.intersect1d(arrays[pair[0]], arrays[pair[1]])
        if len(both):
            others = f" and {len(both) - 1} more" if len(both) > 1 else ""
            raise ValueError(f"{pair[0]} and {pair[1]} must not overlap, both hold set {both[0]}{others}")
        if len(np.unique(label[arrays[pair[0]]])) < 2:
            raise ValueError(f"{pair[0]} must hold sets of at least two classes, got one: {label[arrays[pair[0]][0]]}")
        pairs.append((arrays[pair[0]], arrays[pair[1]]))
    return pairs


# ---------------------------------------------------------------------------- splits


def split_by_file(path, names):
    """[(train, test), ...] from a CSV file: a header clip,NAME,NAME,... and a line a clip with train, test or nothing in each column.

    Clips are named as in the folder, class/clip; clips that could not be read are passed over.
    """
    with open(path, newline="", encoding="utf-8") as file:
        header, *lines = [row for row in csv.reader(file) if row] or [[]]
    if len(header) < 2 or header[0] != "clip":
        raise ValueError(f"{path}: the first line must be clip,NAME,... with a column for each split, got {','.join(header)!r}")
    parts = {}
    for line, row in enumerate(lines, start=2):
        if len(row) != len(header) or not set(row[1:]) <= {"train", "test", ""}:
            raise ValueError(f"{path}: line {line} must hold a clip and train, test or nothing in {len(header) - 1} columns, got {','.join(row)!r}")
        parts[row[0]] = row[1:]
    of_set = [parts.get(name.partition("#")[0], [""] * (len(header) - 1)) for name in names]
    pairs = [tuple(np.array([i for i, part in enumerate(of_set) if part[k] == side], int) for side in ("train", "test"))
             for k in range(len(header) - 1)]
    for name, (train, test) in zip(header[1:], pairs):
        if not len(train) or not len(test):
            raise ValueError(f"{path}: split {name!r} must have clips to train and to test, got {len(train)} and {len(test)} that could be read")
    return pairs


def split_by_group(label, group):
    """Each group once as the test part, the others as the training part."""
    if len(np.unique(group)) < 2:
        raise ValueError(f"leaving one group out needs two groups, got one: {group[0]}")
    return list(LeaveOneGroupOut().split(label, label, group))


def split_at_random(label, share, repeats, seed):
    """So many random splits with this share of each class in the training part."""
    classes, counts = np.unique(label, return_counts=True)
    if counts.min() < 2:
        raise ValueError(f"a random split needs two clips of each class, {classes[counts.argmin()]} has one that could be read")
    share = min(max(share, len(classes) / len(label)), 1 - len(classes) / len(label))  # a clip of each class on both sides
    return list(StratifiedShuffleSplit(repeats, train_size=share, random_state=seed).split(label, label))


# ---------------------------------------------------------------------------- what the examples share


def write(path, save):
    """save(file) into the file at path, whole or not at all; its folder is made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".unfinished_{os.getpid()}_{threading.get_ident()}_{path.name}")
    try:
        with open(unfinished, "wb") as file:
            save(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def progress(items, total, what):
    """The items, while their number is shown: by tqdm if it is there, else by a line every ten seconds."""
    try:
        from tqdm import tqdm
    except ImportError:
        return _lines(items, total, what)
    return tqdm(items, total=total, unit=" " + what, file=sys.stderr, mininterval=0.5)


def _lines(items, total, what):
    shown = time.monotonic()
    for i, item in enumerate(items, start=1):
        yield item
        if time.monotonic() - shown > 10 or i == total:
            shown = time.monotonic()
            say(f"{i} of {total} {what}")


def say(text):
    print(text, file=sys.stderr, flush=True)
