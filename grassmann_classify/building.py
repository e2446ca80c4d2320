"""From clips to subspaces: what headers tell of all, then each clip by a thread."""

import contextlib
import hashlib
import json
import os
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np

from grassmann_classify.clips import (
    Basis,
    Built,
    Collection,
    axes_of_clip,
    chosen_frames,
    read_options,
    threaded,
)
from grassmann_classify.recipes import (
    common_bases,
    describe,
    kept_rows,
    padded,
    resampled,
)
from grassmann_classify.settings import GIVEN, USUAL_P
from grassmann_classify.words import first_of, plural, printable, to_stderr
from grassmann_sc import files, frames, subspaces

MANY = 200  # a progress bar is shown for the headers of so many clips
VERSION = 4  # of the cache: raise it when the same recipe gives other numbers
MOST_CACHED = 2**32  # bytes in the cache; what was not used for longest goes first
ADVICE = {  # for arguments of frames.Avoidable
    "size": "--size 32 32 brings the frames to one size",
    "key": "--key {} takes that array of each file",
    "run": "--run 10 cuts the images of a class into clips of 10",
}
# What is known of a clip before it is decoded. n_frames: None where a video does not
# tell it; size: (height, width) or (d,) of its frames; why: the reason, if the clip
# cannot be used; advice: what would make it usable, "" if another layout of the files
# would, None for a damaged clip
Header = namedtuple("Header", "n_frames size why advice", defaults=4 * [None])


# ------------------------------------------------------------------- what headers tell


def survey(clips, recipe, shape=None):
    """{name: Header} of clips, before any of them is decoded.

    Clips of raw frames cannot be used whose frames have not the size of most, or that of
    a model of this shape; what descriptors of frames of several sizes have in common,
    build_all sees. shape: as build_all has it.
    """

    def header_of(clip):
        try:
            return _header_of(clip, recipe)
        except Exception as error:  # whatever a damaged file raises
            return Header(why=reason_of(clip, error), advice=_advice(error))

    headers = threaded(header_of, clips, "headers" if len(clips) >= MANY else None)
    headers = dict(zip([clip.name for clip in clips], headers))
    legible = {name: header for name, header in headers.items() if not header.why}
    who = "most clips have" if shape is None else "the model has"
    if shape is not None:
        usual = tuple(shape[2]) or (shape[0] // (recipe.arma or recipe.stack),)
    else:
        counts = Counter(header.size for header in legible.values())
        usual = max(counts, key=counts.get, default=None)
    for name, header in legible.items() if _is_raw(recipe) else []:
        if header.size != usual:
            here, there = map(size_in_words, (header.size, usual))
            resizable = shape is None and len(header.size) == len(usual) == 2
            headers[name] = header._replace(
                why=f"{name}: has frames of {here} and {who} {there}",
                advice=ADVICE["size"] if resizable else "",
            )
    return headers


def _is_raw(recipe):
    """Are rows the frames themselves, or subspaces already?"""
    return recipe.features in ("raw", GIVEN) and recipe.describe is None


def reason_of(clip, error):
    """Why a clip cannot be used, in one line with its name."""
    reason = getattr(error, "what", None) or str(error) or type(error).__name__
    reason = printable(reason)
    return reason if clip.name in reason else f"{clip.name}: {reason}"


def _advice(error):
    """The Header.advice on an error."""
    if not isinstance(error, (frames.Avoidable, ImportError)):
        return None
    argument = getattr(error, "argument", None)
    return ADVICE[argument].format(str(error.value).strip("'\"")) if argument else ""


def _header_of(clip, recipe):
    """The Header of a clip that can be used."""
    shapes = [_shape_of(source, recipe) for source in clip.sources]
    sizes = [tuple(size) for _, *size in shapes]
    for size in sizes if _is_raw(recipe) else []:
        if size != sizes[0]:
            here, there = map(size_in_words, (size, sizes[0]))
            raise frames.Avoidable(
                f"{clip.name}: frames must have one size, got {there} and {here}",
                "size",
                "(height, width)",
            )
    counts = [n_frames for n_frames, *_ in shapes]
    return Header(None if None in counts else sum(counts), sizes[0])


def _shape_of(source, recipe):
    """(n_frames, height, width) or (n_frames, d) of the source of a clip."""
    if isinstance(source, Exception):
        raise source
    is_basis = isinstance(source, Basis)
    if is_basis != (recipe.features == GIVEN):
        words = ("frames", "a ready-made subspace")
        raise ValueError(
            f"holds {words[is_basis]}, the others hold {words[not is_basis]}"
        )
    if is_basis:
        return source.columns.shape[::-1]
    if not isinstance(source, np.ndarray):
        shape = frames.read_shape(source, **read_options(recipe))
        axes = axes_of_clip(recipe)
        if recipe.axes and len(shape) != len(axes):
            raise ValueError(
                f"{source}: must have the axes {','.join(axes)} that are named, got "
                f"{len(shape)} axes"
            )
        return shape
    n_frames = len(frames.pick(range(len(source)), **chosen_frames(recipe)))
    size = source.shape[1:]
    if recipe.size is not None:
        size = frames.prepared(source[0], size=recipe.size).shape
    return n_frames, *size


def size_in_words(size):
    """The size of frames, in words."""
    return plural(size[0], "feature") if len(size) == 1 else " x ".join(map(str, size))


def look(clips, recipe, strict=False, skip=False):
    """The survey of labelled clips, which it prints before anything long begins.

    ValueError if clips would be lost that an option or another layout of the files
    would keep, or all clips of a class; not with skip. strict: ValueError if any would
    be lost.
    """
    headers = survey(clips, recipe)
    advice = dict.fromkeys(header.advice for header in headers.values())
    advice = [*filter(None, advice)]
    check_usable(headers, strict, advice)
    to_stderr(_overview(clips, headers, recipe.features == GIVEN))
    if recipe.axes is None and recipe.features != GIVEN:
        _say_transposed([(header.n_frames, header.size) for header in headers.values()])
    damaged = [h.why for h in headers.values() if h.why and h.advice is None]
    if damaged:
        to_stderr(
            f"{plural(len(damaged), 'clip')} cannot be read:\n  "
            + first_of(damaged, "\n  ")
        )
    lost = _lost(clips, headers)
    if lost and not skip:
        lines = ["these clips would be lost:", *lost, *advice]
        raise ValueError("\n".join([*lines, "--skip goes on without them"]))
    if lost:
        to_stderr("\n".join(["these clips are lost:", *lost]))
    return headers


def look_at_new(clips, recipe, shape, strict=False):
    """Print which new clips cannot be answered; ValueError if none can.

    strict: ValueError if any cannot. shape: as build_all has it.
    """
    why = check_usable(survey(clips, recipe, shape), strict)
    if why:
        to_stderr(
            f"{plural(len(why), 'new clip')} will have no answer:\n  "
            + first_of([*why.values()], "\n  ")
        )


def check_usable(headers, strict=False, advice=()):
    """{name: why} of the clips that cannot be used; ValueError if no other is there.

    strict: ValueError if there is any. advice: lines for the end of an error.
    """
    why = {name: header.why for name, header in headers.items() if header.why}
    check_any(len(why) < len(headers), why, advice)
    if strict and why:
        raise ValueError("\n".join([next(iter(why.values())), *advice]))
    return why


def check_any(clips, unusable, advice=()):
    """ValueError, with the first reasons and the advice, if there are no clips."""
    if not clips:
        why = "; ".join([*unusable.values()][:3])
        raise ValueError("\n".join([f"no clip could be read: {why}", *advice]))


def _lost(clips, headers):
    """A line for each class that loses usable clips, or all clips; the latter first."""
    classes = {}
    for clip in clips:
        classes.setdefault(clip.label, []).append(headers[clip.name])
    lines = {True: [], False: []}
    for label, members in classes.items():
        lost = [header for header in members if header.why]
        avoidable = [header for header in lost if header.advice is not None]
        whole = len(lost) == len(members)
        if avoidable or whole:
            part = "all" if whole else f"{len(lost)} of"
            share = f"{part} {len(members)} clips"
            share = share if len(members) > 1 else "its one clip"
            name = "" if label is None else f"{label}: "
            lines[whole].append(f"  {name}{share}, as {(avoidable or lost)[0].why}")
    return lines[True] + lines[False]


def _overview(clips, headers, are_bases):
    """The numbers of clips, classes and frames, and the frames' sizes, in words."""
    legible = [header for header in headers.values() if header.size]
    sizes = Counter(header.size for header in legible)
    counts = [header.n_frames for header in legible]
    what = "direction" if are_bases else "frame"
    total = f"unknown numbers of {what}s"
    if None not in counts:
        total = plural(sum(counts), what)
    each = [
        f"{size_in_words(size)} in {plural(n, 'clip')}"
        for size, n in sizes.most_common()
    ]
    where = size_in_words(*sizes) if len(sizes) == 1 else first_of(each, ", ")
    classes = {clip.label for clip in clips} - {None}
    among = f" of {plural(len(classes), 'class')}" if classes else ""
    return f"{plural(len(clips), 'clip')}{among}, {total} of {where}"


def _say_transposed(shapes):
    """Say if clips seem to have a channel a row in place of a time step."""
    n_frames, size = shapes[0]
    alike = len(shapes) > 1 and len({*shapes}) == 1 and n_frames
    if alike and len(size) == 1 and n_frames < size[0]:
        to_stderr(
            f"all clips have {plural(n_frames, 'frame')} of {size[0]} features, which "
            f"looks transposed: if these are {plural(n_frames, 'channel')} of "
            f"{plural(size[0], 'time step')}, --axes channels,time says so, or "
            "n,channels,time of one array of all clips"
        )


# ------------------------------------------------------------------------ one clip


def build(clip, recipe, keep_rows=False):
    """The subspaces of a clip, one for each window, as Built.

    keep_rows: with the rows (n_rows, d) of each window: normalised frames or
    descriptors, stacked as stack or arma says (the span of stacked frames models the
    same dynamics). Of ready-made subspaces the first p columns are taken.
    """
    if recipe.features == GIVEN:
        bases = [source.columns[:, : recipe.p] for source in clip.sources]
        return Built(np.stack(bases), None, ())
    parts = [_frames_of(source, recipe) for source in clip.sources]
    rows = [describe(part, recipe) for part in parts]
    rows = np.concatenate(rows) if len(rows) > 1 else rows[0]
    rows = resampled(rows, recipe.resample)
    if recipe.single:
        rows = rows.astype(np.float32, copy=False)
    frame = parts[0].shape[1:] if _is_raw(recipe) else ()
    return built(rows, recipe, keep_rows)._replace(frame=frame)


def built(rows, recipe, keep_rows=False):
    """The subspaces of descriptors (n, d), a row a frame, as Built without frame."""
    windows = _windows(rows, recipe.run, recipe.step)
    n_blocks = recipe.arma or recipe.stack
    center = recipe.center
    spectra = None
    if recipe.arma:
        bases = [
            subspaces.from_video(window, recipe.p, n_blocks, center=center)
            for window in windows
        ]
    else:
        stacks = [subspaces.block_hankel(window, n_blocks) for window in windows]
        make = subspaces.from_image_set
        if recipe.fewer:
            make = subspaces.singular_directions
        bases = [make(stack, recipe.p, center=center) for stack in stacks]
    if recipe.fewer and not recipe.arma:
        spectra = padded(bases)
        bases = common_bases(spectra)
    kept = [kept_rows(window, recipe) for window in windows] if keep_rows else None
    return Built(np.stack(bases), kept, (), spectra)


def _frames_of(source, recipe):
    if not isinstance(source, np.ndarray):
        return _decoded(source, read_options(recipe))
    chosen = source[frames.pick(range(len(source)), **chosen_frames(recipe))]
    if recipe.size is None:
        return chosen
    return np.stack([frames.prepared(frame, size=recipe.size) for frame in chosen])


def _windows(rows, length, step):
    """The rows in pieces of this length, without the remainder; None: in one piece.

    step: from the first row of a piece to that of the next; None: the length.
    """
    if length is None:
        return [rows]
    if len(rows) < length:
        raise ValueError(f"a window takes {length} frames, got {len(rows)}")
    firsts = range(0, len(rows) - length + 1, step or length)
    return [rows[i : i + length] for i in firsts]


# ------------------------------------------------------------------------ all clips


def build_all(
    clips,
    recipe,
    keep_rows=False,
    strict=False,
    most_rows=np.inf,
    shape=None,
    headers=None,
):
    """A Collection of all clips that can be built, by threads, one clip each.

    strict: the first failure raises. keep_rows: with the rows of all sets, unless they
    take more than most_rows bytes together. shape: d, the least p and the (height,
    width) of frames that all clips must have; None: those of most clips. headers: the
    survey of these clips; those that it tells unusable are not decoded.
    """
    headers = survey(clips, recipe, shape) if headers is None else headers
    check_usable(headers, strict)
    sizes = []

    def job(clip):
        if headers[clip.name].why:
            return headers[clip.name].why
        try:
            made = build(clip, recipe, keep_rows and sum(sizes) <= most_rows)
        except Exception as error:  # whatever a damaged file raises
            if strict:
                raise ValueError(reason_of(clip, error)) from error
            return reason_of(clip, error)
        sizes.extend(rows.nbytes for rows in made.rows or [])
        return made

    made = threaded(job, clips, "reading")
    _forget_the_oldest()
    why = _misfits(clips, made, shape)
    if strict and why:
        raise ValueError(next(iter(why.values())))
    fit = [k for k, clip in enumerate(clips) if clip.name not in why]
    check_any(fit, why)
    made = [made[k] for k in fit]
    if sum(sizes) > most_rows:
        made = [parts._replace(rows=None) for parts in made]
    return _collect([clips[k] for k in fit], made, why)


def _misfits(clips, made, shape):
    """{name: why} of the clips that could not be built, or differ from most, or a model.

    They must have d of most clips, and p at least the smaller of the median and USUAL_P;
    or d and the least p of a model's shape.
    """
    shapes = [result.bases.shape[1:] for result in made if isinstance(result, Built)]
    who = "most clips have" if shape is None else "the model has"
    usual = shape
    if shape is None and shapes:
        usual = (
            Counter(d for d, _ in shapes).most_common(1)[0][0],
            min(USUAL_P, int(np.median([p for _, p in shapes]))),
        )
    why = {}
    for clip, result in zip(clips, made):
        if isinstance(result, str):
            why[clip.name] = result
            continue
        d, p = result.bases.shape[1:]
        if d != usual[0]:
            why[clip.name] = f"{clip.name}: has d = {d} and {who} {usual[0]}"
        elif p < usual[1]:
            words = f"{clip.name}: has frames of rank {p} and {who} {usual[1]} or more"
            why[clip.name] = words + f"; --p {p} takes it" * (shape is None)
    return why


def _collect(clips, made, unusable):
    """The Collection of Clips and of what was Built of each."""
    counts = [len(parts.bases) for parts in made]
    if all(parts.spectra for parts in made):
        spectra = padded([pair for parts in made for pair in zip(*parts.spectra)])
        X = common_bases(spectra)
    else:
        spectra = None
        p = min(parts.bases.shape[2] for parts in made)
        X = np.concatenate([parts.bases[:, :, :p] for parts in made])
    sets = None
    if all(parts.rows for parts in made):
        sets = [rows for parts in made for rows in parts.rows]
    names = []
    for clip, k in zip(clips, counts):
        names += [f"{clip.name}#{i}" for i in range(k)] if k > 1 else [clip.name]
    number = np.repeat(np.arange(len(clips)), counts)
    label = np.array([clip.label for clip in clips])[number]
    groups = None
    if all(clip.group is not None for clip in clips):
        groups = np.array([str(clip.group) for clip in clips])[number]
    frame = made[0].frame
    return Collection(X, sets, names, label, groups, frame, number, unusable, spectra)


# ------------------------------------------------------- what a second run finds again


def cache_folder():
    """The user's folder of decoded clips; it may be lost at any time."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "grassmann-classify"


def _decoded(source, options):
    """frames.read_frames, from the cache where it is kept by the content of the files.

    Arrays, and images that are single files, are read as fast as the cache is.
    """
    if source.suffix.lower() in frames.ARRAYS | frames.IMAGES and source.is_file():
        return frames.read_frames(source, **options)
    path = cache_folder() / f"{_digest(source, options)}.npz"
    with contextlib.suppress(Exception):  # missing or damaged: decoded again
        with np.load(path, allow_pickle=False) as file:
            film = file["frames"]
        os.utime(path)
        return film
    film = frames.read_frames(source, **options)
    with contextlib.suppress(OSError):  # as of a disk that is full
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, lambda file: np.savez(file, frames=film))
    return film


def _digest(source, options):
    """The hash of the bytes of a file, or of the files in a folder, and of options."""
    words = json.dumps([VERSION, source.suffix.lower(), options], default=str)
    digest = hashlib.blake2b(words.encode(), digest_size=16)
    for file in (
        filter(Path.is_file, sorted(source.iterdir())) if source.is_dir() else [source]
    ):
        if file != source:
            digest.update(
                os.fsencode(file.name) + f"\0{file.stat().st_size}\0".encode()
            )
        with open(file, "rb") as content:
            while chunk := content.read(2**22):
                digest.update(chunk)
    return digest.hexdigest()


def _forget_the_oldest():
    """Remove what was not used for longest from the cache, beyond MOST_CACHED bytes."""
    with contextlib.suppress(OSError):  # another run removes too
        kept = [(path.stat(), path) for path in cache_folder().glob("*.npz")]
        total = 0
        for state, path in sorted(kept, key=lambda file: -file[0].st_mtime):
            total += state.st_size
            if total > MOST_CACHED:
                path.unlink()
