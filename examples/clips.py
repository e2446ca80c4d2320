"""Find the clips in a folder, build their subspaces once, and split them.

A folder holds class folders; a class folder holds clips, or folders of clips, whose
names are then the clips' groups (persons, scenes). A clip is a video, an .npy, .npz or
.mat file, an image file of several frames (.gif, .tif, .webp), or a folder of images of
one frame each: see frames.contents.
"""

import csv
import hashlib
import importlib.util
import json
import os
import re
import sys
import unicodedata
import warnings
from collections import Counter, namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, StratifiedShuffleSplit

import grassmann_sc as gs
from examples.options import USUAL_P, is_own
from examples.own import describe
from grassmann_sc import files, frames, subspaces, tuning

MOST_NAMED = 5  # clips, or sizes, in an error
MANY = 200  # a progress bar is shown for the headers of so many clips
SIDE = 64  # pixels of a small image
NOTHING = frames.Contents([], [], [])
DEEPEST = 3  # levels of folders in which a hint looks for an example
EXAMPLES = {
    "size": "--size 32 32 brings the frames to one size",
    "key": "--key {} takes that array of each file",
    "run": "--run 10 cuts the images of a class into clips of 10",
}
VERSION = 2  # of the cache: raise it when the same recipe gives other numbers

# sources: files, folders or arrays whose frames make one set; or one error, if the clip
# cannot be used
Clip = namedtuple("Clip", "name label group sources")
# What headers tell. shapes: {name: (n_frames, height, width) or (n_frames, d)},
# n_frames None where a video does not tell it; why: {name: reason} of the clips that
# cannot be used; avoidable: {name: advice} of those that an option, or another layout
# of the files, would make usable
Survey = namedtuple("Survey", "shapes why avoidable")
# bases (k, d, p): the subspaces of a clip's runs; rows: their k arrays of rows, or
# None; frame: (height, width) or ()
Built = namedtuple("Built", "bases rows frame")
# The sets of all clips that could be built. clip (n,): the number of each set's clip;
# unread: {name: why} of the clips that could not be built
Collection = namedtuple(
    "Collection", "X sets names label group frame clip unread", defaults=[None, {}]
)


@dataclass(frozen=True)
class Recipe:
    """How a clip becomes subspaces; the defaults take raw pixels of all frames."""

    p: int
    features: str = "raw"
    feature_options: dict = field(default_factory=dict)
    size: tuple | None = None
    key: str | None = None  # of the array in files that hold several
    every: int = 1
    at_most: int | None = None
    evenly: int | None = None
    resample: int | None = None  # the rows, linearly in time
    run: int | None = None  # number of rows in a set, of which a clip may give several
    stack: int = 1  # blocks of the Hankel matrix
    # blocks of the observability matrix of an ARMA model with p states; 0: no model
    arma: int = 0
    center: bool = False
    unit_variance: bool = False
    stabilize: bool = False
    rank: str = "raise"
    single: bool = False  # float32 bases
    fewer: bool = False  # take the largest dimension that the frames allow, at most p
    source: str = ""  # of the function that features names, if it is the user's own


# ------------------------------------------------------------------- clips to subspaces


def build(clip, recipe, keep_rows=False):
    """The subspaces of a clip, one for each run, as Built.

    keep_rows: with the rows (n_rows, d) of each run: normalised frames or descriptors,
    stacked as stack or arma says (the span of stacked frames models the same dynamics).
    """
    parts = [_frames_of(source, recipe) for source in clip.sources]
    rows = [describe(part, recipe) for part in parts]
    rows = _resampled(
        np.concatenate(rows) if len(rows) > 1 else rows[0], recipe.resample
    )
    if recipe.single:
        rows = rows.astype(np.float32, copy=False)
    shape = parts[0].shape[1:] if recipe.features == "raw" else ()
    return built(rows, recipe, keep_rows)._replace(frame=shape)


def built(rows, recipe, keep_rows=False):
    """The subspaces of descriptors (n, d), a row a frame, as Built without frame."""
    runs = _runs(rows, recipe.run)
    normal = dict(
        center=recipe.center, unit_variance=recipe.unit_variance, rank=recipe.rank
    )
    n_blocks = recipe.arma or recipe.stack
    if recipe.arma:
        bases = [
            subspaces.from_video(run, recipe.p, recipe.arma, recipe.stabilize, **normal)
            for run in runs
        ]
    else:
        if recipe.fewer:
            normal["rank"] = "fewer"
        bases = [
            subspaces.from_image_set(
                subspaces.block_hankel(run, n_blocks), recipe.p, **normal
            )
            for run in runs
        ]
        p = min(basis.shape[1] for basis in bases)
        bases = [basis[:, :p] for basis in bases]
    kept = [_kept_rows(run, recipe, n_blocks) for run in runs] if keep_rows else None
    return Built(np.stack(bases), kept, ())


def _chosen(recipe):
    return dict(every=recipe.every, at_most=recipe.at_most, evenly=recipe.evenly)


def _frames_of(source, recipe):
    if not isinstance(source, np.ndarray):
        return frames.read_frames(
            source, size=recipe.size, key=recipe.key, **_chosen(recipe)
        )
    chosen = source[frames.pick(range(len(source)), **_chosen(recipe))]
    if recipe.size is None:
        return chosen
    return np.stack([frames.prepared(frame, size=recipe.size) for frame in chosen])


def middle_frame(clip, key=None):
    """A frame (height, width) of a clip as stored; ValueError if frames are vectors."""
    source = clip.sources[len(clip.sources) // 2]
    if not isinstance(source, np.ndarray):
        source = frames.read_frames(source, evenly=3, key=key)
    if source.ndim != 3:
        raise ValueError(f"{clip.name} is made of vectors, not of images")
    return source[len(source) // 2]


def pictures_of(names, clip, clips, key=None, of=None):
    """A small image in uint8 of each set, or None where there is none.

    names, clip: of all sets of a Collection, which was built from clips; of: the
    indices of the sets that are wanted, None for all.
    """
    whose = clip_names(names, clip)
    whose = whose if of is None else [whose[i] for i in of]
    wanted = {name: None for name in whose}
    by_name = {one.name: one for one in clips if one.name in wanted}

    def small(one):
        try:
            return one.name, _small(middle_frame(one, key))
        except Exception:  # vectors, or a damaged file
            return one.name, None

    wanted |= threaded(small, [*by_name.values()])
    return [wanted[name] for name in whose]


def _small(image):
    """The image in uint8, means of blocks so that no side has more than SIDE pixels."""
    block = -(-max(image.shape) // SIDE)
    h, w = (max(1, side // block) for side in image.shape)
    image = np.asarray(image, float)[: h * block, : w * block]
    image = image.reshape(h, -1, w, image.shape[1] // w).mean(axis=(1, 3))
    low = image.min()
    high = image.max()
    if low < 0 or high > 255 or high <= 1:
        image = (image - low) * (255 / (high - low) if high > low else 0)
    return image.round().astype(np.uint8)


def _resampled(rows, n):
    """The rows at n even steps in time, interpolated linearly."""
    if n is None:
        return rows
    whole, share = np.divmod(np.linspace(0, len(rows) - 1, n), 1)
    before = whole.astype(int)
    share = share[:, None]
    return (1 - share) * rows[before] + share * rows[
        np.minimum(before + 1, len(rows) - 1)
    ]


def _runs(rows, length):
    """The rows in pieces of this length, without the remainder; None: in one piece."""
    if length is None:
        return [rows]
    if len(rows) < length:
        raise ValueError(f"a run takes {length} frames, got {len(rows)}")
    return [rows[i : i + length] for i in range(0, len(rows) - length + 1, length)]


def _kept_rows(rows, recipe, n_blocks):
    """The rows of a run that a kernel takes.

    With an ARMA model they are centred before they are stacked, as from_video does.
    """
    if recipe.arma:
        return subspaces.block_hankel(_normalised(rows, recipe), n_blocks)
    return _normalised(subspaces.block_hankel(rows, n_blocks), recipe)


def _normalised(rows, recipe):
    rows = gs.real_array(rows, "rows").copy()
    subspaces.normalise(rows, recipe.center, recipe.unit_variance)
    return rows


def build_all(
    clips,
    recipe,
    cache=None,
    keep_rows=False,
    strict=False,
    most_rows=np.inf,
    shape=None,
    seen=None,
):
    """A Collection of all clips that can be built, by threads, one clip each.

    strict: the first failure raises. cache: the folder where results are kept, by
    content; what was built before a Ctrl-C stays there; if it cannot be written to, no
    clip is lost. keep_rows: with the rows of all sets, unless they take more than
    most_rows bytes together. shape: d, the least p and the (height, width) of frames
    that all clips must have; None: those of most clips. seen: the Survey of these
    clips; those that it finds unusable are not decoded.
    """
    seen = seen or survey(clips, recipe, shape)
    if strict:
        # advice names options of commands, which this function has not
        _check_all(seen._replace(avoidable={}))
    kept = []

    def job(clip):
        try:
            keep = keep_rows and sum(kept) <= most_rows
            built, why = _cached(clip, recipe, cache, keep)
            kept.extend(rows.nbytes for rows in built.rows or [])
            return clip, built, why
        except Exception as error:  # whatever a damaged file raises
            why = _reason(clip, error)
            if strict:
                raise ValueError(why) from error
            return clip, why, None

    legible = [clip for clip in clips if clip.name not in seen.why]
    _check_any(legible, seen.why)
    done = threaded(job, legible, "reading")
    why = seen.why | {
        clip.name: result for clip, result, _ in done if isinstance(result, str)
    }
    built = [(clip, result) for clip, result, _ in done if not isinstance(result, str)]
    not_kept = [error for _, _, error in done if error]
    if not_kept:
        say(
            f"{some(len(not_kept), 'clip')} could not be kept in {cache} and would be built again: "
            f"{not_kept[0]}"
        )
    del done
    fit, other = _of_one_shape(built, shape) if built else ([], {})
    if strict and other:
        raise ValueError(next(iter(other.values())))
    why |= other
    unread = {clip.name: why[clip.name] for clip in clips if clip.name in why}
    _check_any(fit, unread)
    del built
    return _collect(fit, unread, keep_rows and sum(kept) <= most_rows)


def threaded(job, items, what=None):
    """[job(item), ...], with a progress bar if what is named and tqdm is installed."""
    pool = ThreadPoolExecutor(gs.thread_count())
    try:
        done = []
        shown = what is not None and importlib.util.find_spec("tqdm") is not None
        with gs.progress_bar(shown, total=len(items), desc=what, unit="clip") as move:
            for result in pool.map(job, items):
                done.append(result)
                move(1)
    finally:
        pool.shutdown(cancel_futures=True)
    return done


def _reason(clip, error):
    """Why a clip cannot be used, in one line with its name."""
    reason = printable(
        getattr(error, "what", None) or str(error) or type(error).__name__
    )
    return reason if clip.name in reason else f"{clip.name}: {reason}"


def _check_any(clips, unread, advice=()):
    if not clips:
        why = "; ".join([*unread.values()][:3])
        raise ValueError("\n".join([f"no clip could be read: {why}", *advice]))


def _of_one_shape(built, shape):
    """(Clips of this shape, {name: why it is left out} of the other clips).

    shape None: d as most clips have it, and p at least the smaller of the median and
    USUAL_P.
    """
    who = "most clips have" if shape is None else "the model has"
    of_built = [result.bases.shape[1:] for _, result in built]
    if shape is None:
        d = Counter(d for d, _ in of_built).most_common(1)[0][0]
        shape = d, min(USUAL_P, int(np.median([p for _, p in of_built]))), None
    d, least, frame = shape
    fit = []
    other = {}
    for clip, result in built:
        here, p = result.bases.shape[1:]
        if here != d:
            other[clip.name] = f"{clip.name}: has d = {here} and {who} {d}"
        elif frame is not None and result.frame != frame:
            other[clip.name] = (
                f"{clip.name}: has frames of {_size(result.frame)} and {who} "
                f"{_size(frame)}"
            )
        elif p < least:
            other[clip.name] = (
                f"{clip.name}: has frames of rank {p} and {who} {least} or more; "
                f"--p {p} takes it"
            )
        else:
            fit.append((clip, result))
    return fit, other


def _collect(built, unread, keep_rows):
    """The Collection of what was built; empties the list built to free memory."""
    clips = [clip for clip, _ in built]
    counts = [len(result.bases) for _, result in built]
    first = built[0][1]
    p = min(result.bases.shape[2] for _, result in built)
    end = sum(counts)
    X = np.empty((end, first.bases.shape[1], p), first.bases.dtype)
    sets = []
    while built:  # from the last to the first, so that memory is freed as X fills
        result = built.pop()[1]
        X[end - len(result.bases) : end] = result.bases[:, :, :p]
        end -= len(result.bases)
        sets[:0] = result.rows if keep_rows else []
    each = np.repeat(np.arange(len(clips)), counts)
    names = []
    for clip, k in zip(clips, counts):
        names += [f"{clip.name}#{run}" for run in range(k)] if k > 1 else [clip.name]
    groups = None
    if all(clip.group is not None for clip in clips):
        groups = np.array([str(clip.group) for clip in clips])[each]
    labels = np.array([clip.label for clip in clips])[each]
    return Collection(X, sets or None, names, labels, groups, first.frame, each, unread)


def clip_names(names, clip):
    """The name of each set's clip: that of the set without #number.

    A set has a number only where its clip was cut into several.
    """
    counts = np.bincount(clip)
    return [
        name.rpartition("#")[0] if counts[c] > 1 else name
        for name, c in zip(names, clip)
    ]


def _cached(clip, recipe, cache, keep_rows):
    """(What build gives, if possible from the cache; why it was not kept or None)."""
    if cache is None:
        return build(clip, recipe, keep_rows), None
    path = Path(cache) / (_digest(clip, recipe) + ".npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            bases = file["bases"]
            rows = [file[f"rows{i}"] for i in range(len(bases))] if keep_rows else None
            return Built(bases, rows, tuple(map(int, file["frame"]))), None
    except Exception:  # missing, without rows or damaged: built again
        pass
    result = build(clip, recipe, keep_rows)
    rows = {f"rows{i}": rows for i, rows in enumerate(result.rows or [])}
    shape = np.array(result.frame, int)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {"bases": result.bases, "frame": shape, **rows}
        files.write_whole(path, lambda file: np.savez(file, **arrays))
    except OSError as error:
        return result, str(error)
    return result, None


def _digest(clip, recipe):
    """Hash of what a clip's subspace depends on: the files' bytes and the recipe."""
    described = json.dumps([VERSION, asdict(recipe)], default=str)
    digest = hashlib.blake2b(described.encode(), digest_size=16)
    for source in clip.sources:
        if isinstance(source, np.ndarray):
            digest.update(f"{source.dtype}{source.shape}".encode())
            digest.update(np.ascontiguousarray(source).tobytes())
        elif source.is_dir():
            for file in sorted(source.iterdir()):
                if file.is_file():
                    digest.update(
                        os.fsencode(file.name) + f"\0{file.stat().st_size}\0".encode()
                    )
                    digest.update(file.read_bytes())
        else:
            digest.update(source.suffix.lower().encode())
            with open(source, "rb") as file:
                while chunk := file.read(2**22):
                    digest.update(chunk)
    return digest.hexdigest()


# ---------------------------------------------------------------------------- headers


def survey(clips, recipe, shape=None):
    """The Survey of clips: what their headers tell, before any clip is decoded.

    A clip cannot be used if its header cannot be read, or if its frames do not fit
    those of most clips or of a model of this shape, as in build_all. Raw frames fit if
    they have the same size; others if the recipe makes rows of the same length from
    them.
    """
    lengths = {}

    def look(clip):
        try:
            return _shape_of(clip, recipe, lengths)
        except Exception as error:  # whatever a damaged file raises
            return error

    found = threaded(look, clips, "headers" if len(clips) >= MANY else None)
    legible = {
        clip.name: result
        for clip, result in zip(clips, found)
        if not isinstance(result, Exception)
    }
    failed = {
        clip.name: (clip, result)
        for clip, result in zip(clips, found)
        if isinstance(result, Exception)
    }
    why = {name: _reason(clip, error) for name, (clip, error) in failed.items()}
    avoidable = {
        name: _advice(error)
        for name, (_, error) in failed.items()
        if isinstance(error, (frames.Avoidable, ImportError))
    }
    keys = {name: lengths[of_clip[1:]] for name, of_clip in legible.items()}
    usual, who = _usual(keys, recipe, shape)
    for name, key in keys.items():
        if usual is not None and key != usual:
            here = legible[name][1:]
            fit = next(
                (legible[other][1:] for other, same in keys.items() if same == usual),
                usual,
            )
            why[name] = f"{name}: has frames of {_size(here)} and {who} {_size(fit)}"
            resizable = shape is None and len(here) == len(fit) == 2
            avoidable[name] = EXAMPLES["size"] if resizable else ""
    why = {clip.name: why[clip.name] for clip in clips if clip.name in why}
    return Survey(legible, why, avoidable)


def _shape_of(clip, recipe, lengths):
    """(n_frames, height, width) or (n_frames, d) of a clip; n_frames may be None.

    Adds to lengths: {shape of frames: what must be equal for frames to fit together}.
    This is the shape itself for raw frames, else the length of the rows that the recipe
    makes.
    """
    shapes = [_shape_of_source(source, recipe) for source in clip.sources]
    first = tuple(shapes[0][1:])
    for _, *shape in shapes:
        shape = tuple(shape)
        if shape not in lengths:
            lengths[shape] = _row_length(shape, recipe)
        if lengths[shape] != lengths[first]:
            raise frames.Avoidable(
                f"{clip.name}: frames must have one size, got {_size(first)} "
                f"and {_size(shape)}",
                "size",
                "(height, width)",
            )
    counts = [n for n, *_ in shapes]
    return None if None in counts else sum(counts), *first


def _shape_of_source(source, recipe):
    if isinstance(source, Exception):
        raise source
    if not isinstance(source, np.ndarray):
        return frames.read_shape(
            source, size=recipe.size, key=recipe.key, **_chosen(recipe)
        )
    n_frames = len(frames.pick(range(len(source)), **_chosen(recipe)))
    if recipe.size is None:
        return n_frames, *source.shape[1:]
    return n_frames, *frames.prepared(source[0], size=recipe.size).shape


def _row_length(shape, recipe):
    """The length of the recipe's rows for frames of this shape.

    The shape itself for raw frames. That of a function of the user's own is known when
    the clip is read: here it stands for any.
    """
    if recipe.features == "raw":
        return shape
    if is_own(recipe.features):
        return recipe.features
    options = recipe.feature_options
    n_frames = 1
    if recipe.features == "lbp_top":
        n_frames = options.get("length") or 2 * max(options.get("radii", [1])) + 1
    probe = np.ones((n_frames, *shape), np.uint8)
    return describe(probe, recipe).shape[1]


def _usual(keys, recipe, shape):
    """(What frames must have in common, which clips have it in words)."""
    if shape is None:
        return (Counter(keys.values()).most_common(1) or [(None, 0)])[0][
            0
        ], "most clips have"
    d, _, frame = shape
    if recipe.features == "raw" and frame:
        return tuple(frame), "the model has"
    if is_own(recipe.features):
        return recipe.features, "the model has"
    length = d // (recipe.arma or recipe.stack)
    return (length,) if recipe.features == "raw" else length, "the model has"


def _size(shape):
    """The size of frames, in words."""
    if np.ndim(shape) == 0:
        return f"another size, whose rows have length {shape}"
    if len(shape) == 1:
        return f"{shape[0]} features"
    return " x ".join(map(str, shape))


def _advice(error):
    """The option that would avoid an error, or ""."""
    option = getattr(error, "argument", None)
    return EXAMPLES[option].format(str(error.value).strip("'\"")) if option else ""


def look(clips, recipe, strict=False, skip=False):
    """The Survey of clips; prints it before anything long begins.

    ValueError if clips would be lost that an option or another layout of the files
    would keep, or all clips of a class; not with skip. strict: ValueError if any would
    be lost.
    """
    seen = survey(clips, recipe)
    advice = [*filter(None, dict.fromkeys(seen.avoidable.values()))]
    _check_any(set(seen.shapes) - set(seen.why), seen.why, advice)
    say(_overview(clips, seen))
    if strict:
        _check_all(seen)
    damaged = [
        reason for name, reason in seen.why.items() if name not in seen.avoidable
    ]
    if damaged:
        say(
            f"{some(len(damaged), 'clip')} cannot be read:\n  "
            + _first_of(damaged, "\n  ")
        )
    lines = _lost(clips, seen)
    if lines and skip:
        say("\n".join(["these clips are lost:", *lines]))
    elif lines:
        raise ValueError(
            "\n".join(
                [
                    "these clips would be lost:",
                    *lines,
                    *advice,
                    "--skip goes on without them",
                ]
            )
        )
    return seen


def look_at_new(clips, recipe, shape, strict=False):
    """Print which new clips cannot be answered; ValueError if none can.

    strict: ValueError if any cannot. shape: as in build_all.
    """
    seen = survey(clips, recipe, shape)
    _check_any(set(seen.shapes) - set(seen.why), seen.why)
    if strict:
        _check_all(seen)
    if seen.why:
        say(
            f"{some(len(seen.why), 'new clip')} will have no answer:\n  "
            + _first_of([*seen.why.values()], "\n  ")
        )


def _check_all(seen):
    """ValueError unless all clips can be used."""
    for name, reason in seen.why.items():
        raise ValueError("; ".join([reason, *filter(None, [seen.avoidable.get(name)])]))


def _lost(clips, seen):
    """A line for each class that loses usable clips, or all clips; the latter first."""
    lines = {True: [], False: []}
    for label in dict.fromkeys(clip.label for clip in clips):
        names = [clip.name for clip in clips if clip.label == label]
        lost = [name for name in names if name in seen.why]
        avoidable = [name for name in lost if name in seen.avoidable]
        whole = len(lost) == len(names)
        if avoidable or whole:
            example = seen.why[(avoidable or lost)[0]]
            part = "all" if whole else f"{len(lost)} of"
            share = f"{part} {len(names)} clips" if len(names) > 1 else "its one clip"
            lines[whole].append(f"  {label}: {share}, as {example}")
    return lines[True] + lines[False]


def _overview(clips, seen):
    """The numbers of clips, classes and frames, and the frames' sizes, in words."""
    sizes = Counter(shape[1:] for shape in seen.shapes.values())
    counts = [shape[0] for shape in seen.shapes.values()]
    total = (
        "unknown numbers of frames" if None in counts else some(sum(counts), "frame")
    )
    each = [f"{_size(size)} in {some(n, 'clip')}" for size, n in sizes.most_common()]
    where = _size(*sizes) if len(sizes) == 1 else _first_of(each, ", ")
    classes = {clip.label for clip in clips} - {None}
    of_classes = f" of {some(len(classes), 'class')}" if classes else ""
    return f"{some(len(clips), 'clip')}{of_classes}, {total} of {where}"


def _first_of(texts, between):
    more = len(texts) - MOST_NAMED
    return between.join([*texts[:MOST_NAMED], *[f"and {more} more"] * (more > 0)])


# ------------------------------------------------------------------------ finding clips


def find_clips(folder, group_by=None, run=None, fewest=2):
    """The clips DIR/class/clip and DIR/class/group/clip, sorted by class/clip.

    frames.contents tells what is a clip. Other files are left out; a folder that cannot
    be opened, or holds no clip where one is expected, is a clip that will fail.
    group_by: regular expression whose match in a clip's file name (its first group, if
    it has one) is the clip's group. run: in class folders that hold nothing but images,
    this many in the order of their names make a clip. Names are made printable. fewest:
    ValueError if there are fewer classes.
    """
    folder = Path(folder)
    clips = []
    unusable = []
    notes = []
    for class_folder in frames.contents(folder).folders:
        label = printable(class_folder.name, but="")
        found, images = _clips_of_class(class_folder)
        if images and found:
            notes.append(
                f"{some(len(images), 'image')} in {label}/, as {images[0].name}, beside "
                "clips"
            )
        elif images and run is None:
            unusable.append(_of_images(folder, label, images))
        elif images:
            clips += [
                Clip(
                    f"{label}/{i // run}",
                    label,
                    _group(images[i], None, group_by),
                    images[i : i + run],
                )
                for i in range(0, len(images) - run + 1, run)
            ]
        elif not found:
            notes.append(f"{label}/, which holds no clip")
        for path, group, source in found:
            name = printable(path.relative_to(folder).as_posix(), but="")
            clips.append(Clip(name, label, _group(path, group, group_by), [source]))
    classes = {clip.label for clip in clips}
    if len(classes) < fewest:
        least = "two or more class folders" if fewest > 1 else "a class folder"
        raise ValueError(
            f"{folder}: must hold {least} of clips (videos, folders "
            f"of images, arrays); found {some(len(clips), 'clip')} of "
            f"{some(len(classes), 'class')}{_hint(folder, classes, unusable)}"
        )
    for text in notes:
        say(f"passed over: {text}")
    _say_alone(clips, "lie in no folder of a group")
    return sorted(clips + unusable, key=lambda clip: clip.label) if unusable else clips


def _of_images(folder, label, images):
    """The Clip, which cannot be used, of images that lie directly in a class folder."""
    why = frames.Avoidable(
        f"{label}/ holds {some(len(images), 'image')} directly: if {label} is a class, put each "
        "clip into a folder of its own, or --run 10 cuts them into clips of 10; if it is a clip, "
        f"put it into the folder of its class, as {printable(folder)}/CLASS/{label}",
        "run",
        10,
    )
    return Clip(label, label, None, [why])


def _hint(folder, classes, unusable):
    """What an error suggests for a folder without class folders."""
    content = frames.contents(folder)
    content = content._replace(
        folders=[path for path in content.folders if _example(path, DEEPEST)]
    )
    here = content.clips + content.images
    above = Path(os.path.abspath(folder)).parent
    beside = [path for path in _readable(above).folders if not path.samefile(folder)]
    class_beside = next((path for path in beside if _example(path, 2)), None)
    hint = ""
    if here:
        hint = (
            f"; clips of all classes lie in one folder, as {here[0].name}: put those of each "
            f"class into a folder of its own, as {folder}/CLASS/{here[0].name}"
        )
    elif classes:
        inner = content.folders
        while len(inner) == 1:
            (alone,) = inner
            inner = [
                path for path in _readable(alone).folders if _example(path, DEEPEST)
            ]
        if len(inner) > 1 and inner[0].parent != folder:
            hint = (
                f"; the classes seem to lie deeper, as {inner[0].relative_to(folder)} and "
                f"{inner[1].relative_to(folder)}: --data {inner[0].parent}"
            )
    elif unusable:
        hint = f"; {unusable[0].sources[0].what}"
    if class_beside and (here or unusable or not hint):
        hint += (
            f"; or, if {Path(folder).resolve().name} is a class as {class_beside.name} beside "
            f"it is, --data {above}"
        )
    return hint


def find_new_clips(path):
    """The clips, without labels, in a folder at any depth, or one clip."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    found = list(_clips_within(path))
    if found == [path] and path.is_dir() and not frames.contents(path).images:
        raise ValueError(
            f"{path}: must hold clips (videos, folders of images, arrays), got none"
        )
    above = path.parent if found == [path] else path
    return [
        Clip(printable(clip.relative_to(above).as_posix(), but=""), None, None, [clip])
        for clip in found
    ]


def find_labelled(folder, path):
    """(Clips in a folder at any depth that a CSV file labels, their parts or None).

    The first line names the columns clip and label, and if need be group and split, in
    any order. A clip is named by its path within the folder, without its ending if that
    tells which it is. split holds train, test or nothing; parts is then {clip: [train,
    test or nothing]}. Clips without a line, or without a label, are passed over.
    """
    header, rows = _read_rows(path)
    header = [*map(str.strip, header)]
    columns = ("clip", "label", "group", "split")
    if {"clip", "label"} - {*header} or len({*header}) < len(header):
        raise ValueError(
            f"{path}: the first line must name the columns clip and label, and if need "
            f"be group and split, each once, got {','.join(header)!r}"
        )
    there = {clip.name: clip for clip in find_new_clips(folder)}
    short = {name: str(PurePosixPath(name).with_suffix("")) for name in there}
    counts = Counter(short.values())
    named = {stem: name for name, stem in short.items() if counts[stem] == 1}
    named |= {name: name for name in there}
    lines = {}
    found = []
    parts = {}
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: line {line} must have {some(len(header), 'column')}, got "
                f"{len(row)}"
            )
        held = dict(zip(header, map(str.strip, row)))
        if not held["clip"]:
            raise ValueError(f"{path}: line {line} must name a clip, got none")
        name = printable(PurePosixPath(held["clip"].replace("\\", "/")), but="")
        name = named.get(name, name)
        if name in lines:
            raise ValueError(
                f"{path}: must name a clip once, got {name} in lines {lines[name]} "
                f"and {line}"
            )
        lines[name] = line
        parts[name] = [held.get("split", "")]
        if not {*parts[name]} <= {"train", "test", ""}:
            raise ValueError(
                f"{path}: split must be train, test or nothing, got "
                f"{held['split']!r} in line {line}"
            )
        if name in there and held["label"]:
            label = printable(held["label"], but="")
            group = held.get("group") or None
            found.append(there[name]._replace(label=label, group=group))
    _check_names(path, lines, there.keys(), set())
    if len(found) < len(there):
        say(
            f"{some(len(there) - len(found), 'clip')} of {folder} without a label in {path}: "
            "passed over"
        )
    others = [name for name in header if name not in columns]
    if others:
        say(f"{path}: passed over the columns {', '.join(others)}")
    _say_alone(found, "have none")
    return found, parts if "split" in header else None


def split_by_parts(path, parts, names, clip):
    """The split of what find_labelled gave, as split_by_file."""
    return _pairs_of_parts(path, ["split"], parts, names, clip_names(names, clip))


def _say_alone(clips, lacking):
    """Say that groups are passed over, where some clips are lacking one."""
    alone = sum(clip.group is None for clip in clips)
    if 0 < alone < len(clips):
        say(f"groups are passed over: {alone} of {len(clips)} clips {lacking}")


def _clips_within(path):
    """The paths of clips in a folder, and of folders without any clip."""
    if path.is_file():
        yield path
        return
    content = _readable(path)
    if content.images or not any(content):
        yield path
    for entry in sorted(content.clips + content.folders):
        if entry in content.folders:
            yield from _clips_within(entry)
        else:
            yield entry


def _clips_of_class(folder):
    """([(path, its group's name or None, source), ...], images) of a class folder."""
    content = _readable(folder, None)
    if content is None:
        return [(folder, None, folder)], []
    found = [(path, None, path) for path in content.clips]
    for entry in content.folders:
        inner = _readable(entry)
        nested = [(path, entry.name, path) for path in inner.clips]
        if inner.images:
            found.append((entry, entry.name if inner.clips else None, entry))
        else:
            nested += [
                (path, entry.name, _source_of(path))
                for path in inner.folders
                if not any(_readable(path)) or _example(path, DEEPEST)
            ]
        found += nested or [(entry, None, entry)] * (not inner.images)
    return sorted(found, key=lambda clip: clip[0]), content.images


def _source_of(folder):
    """A folder of images, or the error of a folder whose clips lie too deep."""
    if not any(_readable(folder)) or _readable(folder).images:
        return folder
    return frames.Avoidable(
        f"{folder}: clips lie too deep, as "
        f"{_example(folder, DEEPEST)}: they belong into the folder of a class, "
        "or of a group within it"
    )


def _example(folder, depth):
    """A clip in a folder, or in one of its folders down to this depth, or None."""
    content = _readable(folder)
    for path in content.clips + content.images:
        return path
    inner = content.folders if depth > 1 else []
    return next(filter(None, (_example(path, depth - 1) for path in inner)), None)


def _readable(folder, otherwise=NOTHING):
    """The contents of a folder, or otherwise if it cannot be opened."""
    try:
        return frames.contents(folder)
    except OSError:
        return otherwise


def _group(path, group, group_by):
    if group_by is None:
        return group
    try:
        match = re.search(group_by, path.name)
    except re.error as error:
        raise ValueError(
            f"group_by must be a regular expression, got {group_by!r}: {error}"
        ) from None
    if not match:
        raise ValueError(
            f"{path}: the name has no group, {group_by!r} does not match it"
        )
    return match.group(1) if match.re.groups else match.group()


def printable(text, but="\n"):
    """The text with control characters, but some, and bytes that are no UTF-8 escaped.

    File names may hold characters that command a terminal or that no picture can show.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ("Cc", "Cs") and c not in but
        else c
        for c in str(text)
    )


# ----------------------------------------------------------------------- a file of sets


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


# ---------------------------------------------------------------------------- splits


def split_by_file(path, names, clip=None, unread=()):
    """The splits of a CSV file, as tuning.Split; it names clips as class/clip.

    A header clip,NAME,NAME,... and a line for each clip with train, test or nothing in
    each column. If a clip was cut into several sets, a line may name one,
    class/clip#set; otherwise its sets stay together. clip (n,): the number of each
    set's clip; unread: clips that could not be read, whose lines are skipped.
    """
    header, rows = _read_rows(path)
    if len(header) < 2 or header[0] != "clip":
        raise ValueError(
            f"{path}: the first line must be clip,NAME,... with a column for each "
            f"split, got {','.join(header)!r}"
        )
    lines = {}
    parts = {}
    for line, (name, *sides) in rows:
        name = printable(name, but="")
        if len(sides) != len(header) - 1 or not set(sides) <= {"train", "test", ""}:
            raise ValueError(
                f"{path}: line {line} must hold a clip and train, test or nothing in "
                f"{len(header) - 1} columns, got {','.join([name, *sides])!r}"
            )
        if name in parts:
            raise ValueError(
                f"{path}: must name a clip once, got {name} in lines {lines[name]} "
                f"and {line}"
            )
        lines[name] = line
        parts[name] = sides
    clips = names if clip is None else clip_names(names, clip)
    for name, whole in zip(names, clips):
        if name != whole and name in parts and whole in parts:
            raise ValueError(
                f"{path}: must name a clip or its sets, got {whole} in line "
                f"{lines[whole]} and {name} in line {lines[name]}"
            )
    _check_names(path, lines, {*names, *clips}, set(unread))
    return _pairs_of_parts(path, header[1:], parts, names, clips)


def _pairs_of_parts(path, columns, parts, names, clips):
    """The splits of {clip or set: [train, test or nothing in each column]}."""
    absent = [""] * len(columns)
    of_set = [
        parts.get(name, parts.get(whole, absent)) for name, whole in zip(names, clips)
    ]
    pairs = []
    for k, split in enumerate(columns):
        train, test = (
            np.array([i for i, part in enumerate(of_set) if part[k] == side], int)
            for side in ("train", "test")
        )
        if not len(train) or not len(test):
            raise ValueError(
                f"{path}: split {split!r} must have clips to train and to test, got "
                f"{len(train)} and {len(test)} that could be read"
            )
        pairs.append((train, test))
    return tuning.check_splits(pairs, len(names))


def _read_rows(path):
    """(The first row of a CSV file, [(line, row), ...] of the others)."""
    try:
        # Excel writes a byte order mark
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file)
            (_, header), *rows = [(reader.line_num, row) for row in reader if row] or [
                (1, [])
            ]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must be a CSV file in UTF-8, got {error}") from None
    return header, rows


def _check_names(path, lines, known, unread):
    """ValueError unless each name of {name: line} is known or unread."""
    other = [name for name in lines if name not in known]
    passed = [name for name in other if unread & {name, name.rpartition("#")[0]}]
    nowhere = [f"{name} in line {lines[name]}" for name in other if name not in passed]
    if nowhere:
        raise ValueError(
            f"{path}: must name clips that are there, got {_first_of(nowhere, ', ')}"
        )
    if passed:
        say(
            f"{path}: passed over {len(passed)} clips that could not be read: {', '.join(passed)}"
        )


def split_by_group(label, group):
    """Each group once as the test part, the others as the training part."""
    if len(np.unique(group)) < 2:
        raise ValueError(f"leaving one group out needs two groups, got one: {group[0]}")
    pairs = LeaveOneGroupOut().split(label, label, group)
    return tuning.check_splits(pairs, len(label), group)


def split_at_random(label, share, repeats, seed, clip=None):
    """Random splits with this share, or whole number, of each class's clips to train.

    repeats: the number of splits. clip (n,): the number of each set's clip, whose sets
    stay together; None: each set is a clip.
    """
    clip = np.arange(len(label)) if clip is None else clip
    _, first, clip = np.unique(clip, return_index=True, return_inverse=True)
    pairs = _random_pairs(label[first], share, repeats, seed)
    return tuning.check_splits(sets_of_clips(pairs, clip), len(label), clip)


def sets_of_clips(pairs, clip):
    """Splits of clips as splits of sets; clip (n,): the number of each set's clip."""
    sets = np.split(np.argsort(clip, kind="stable"), np.cumsum(np.bincount(clip))[:-1])
    return [
        tuning.Split(*(np.concatenate([sets[c] for c in part]) for part in pair))
        for pair in pairs
    ]


def _random_pairs(label, share, repeats, seed):
    classes, counts = np.unique(label, return_counts=True)
    if counts.min() < 2:
        raise ValueError(
            "a random split needs two clips of each class, "
            f"{classes[counts.argmin()]} has one that could be read"
        )
    if share >= 1:
        rng = np.random.default_rng(seed)
        return [
            _so_many_of_each(label, classes, int(share), rng) for _ in range(repeats)
        ]
    least = len(classes) / len(label)  # a clip of each class on both sides
    share = min(max(share, least), 1 - least)
    splitter = StratifiedShuffleSplit(repeats, train_size=share, random_state=seed)
    return list(splitter.split(label, label))


def _so_many_of_each(label, classes, number, rng):
    train = []
    for name in classes:
        members = rng.permutation(np.flatnonzero(label == name))
        if len(members) <= number:
            raise ValueError(
                f"--train {number} needs {number + 1} clips of each class, {name} has "
                f"{len(members)} that could be read"
            )
        train.append(members[:number])
    train = np.sort(np.concatenate(train))
    return train, np.setdiff1d(np.arange(len(label)), train)


# ------------------------------------------------------------------ what examples share


def some(number, thing):
    """A number of things, in words.

    >>> some(1, "clip"), some(2, "clip")
    ('1 clip', '2 clips')
    """
    ending = "es" if thing.endswith("s") else "s"
    return f"{number} {thing}{ending if number != 1 else ''}"


def say(text):
    print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def one_line(script, more=""):
    """Errors, warnings and Ctrl-C as one line each, with the script's name."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: say(f"{script}: {message}")
            yield
    except (OSError, ValueError, TypeError, ImportError) as error:
        sys.exit(printable(f"{script}: {error}{more}"))
    except KeyboardInterrupt:
        sys.exit(
            f"{script}: stopped; the next run starts from the subspaces that were built"
        )
