"""What headers tell of clips before any of them is decoded."""

from collections import Counter, namedtuple

import numpy as np

from grassmann_classify.clips import (
    Basis,
    axes_of_clip,
    check_any,
    chosen_frames,
    read_options,
    reason_of,
    threaded,
)
from grassmann_classify.recipes import describe
from grassmann_classify.settings import GIVEN
from grassmann_classify.words import first_of, plural, to_stderr
from grassmann_sc import frames

MANY = 200  # a progress bar is shown for the headers of so many clips
OWN = "rows of the user's own function"  # of a length that only reading tells

EXAMPLES = {
    "size": "--size 32 32 brings the frames to one size",
    "key": "--key {} takes that array of each file",
    "run": "--run 10 cuts the images of a class into clips of 10",
}
# What headers tell. shapes: {name: (n_frames, height, width) or (n_frames, d)},
# n_frames None where a video does not tell it; why: {name: reason} of the clips that
# cannot be used; avoidable: {name: advice} of those that an option, or another layout
# of the files, would make usable
Survey = namedtuple("Survey", "shapes why avoidable")


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
    why = {name: reason_of(clip, error) for name, (clip, error) in failed.items()}
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
            why[name] = (
                f"{name}: has frames of {size_in_words(here)} and {who} {size_in_words(fit)}"
            )
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
                f"{clip.name}: frames must have one size, got {size_in_words(first)} "
                f"and {size_in_words(shape)}",
                "size",
                "(height, width)",
            )
    counts = [n for n, *_ in shapes]
    return None if None in counts else sum(counts), *first


def _shape_of_source(source, recipe):
    if isinstance(source, Exception):
        raise source
    if isinstance(source, Basis) != (recipe.features == GIVEN):
        words = ("frames", "a ready-made subspace")
        held = isinstance(source, Basis)
        raise ValueError(f"holds {words[held]}, the others hold {words[not held]}")
    if recipe.features == GIVEN:
        return source.columns.shape[::-1]
    if not isinstance(source, np.ndarray):
        shape = frames.read_shape(source, **read_options(recipe))
        if recipe.axes and len(shape) != len(axes_of_clip(recipe)):
            raise ValueError(
                f"{source}: must have the axes {','.join(axes_of_clip(recipe))} that are "
                f"named, got {len(shape)} axes"
            )
        return shape
    n_frames = len(frames.pick(range(len(source)), **chosen_frames(recipe)))
    if recipe.size is None:
        return n_frames, *source.shape[1:]
    return n_frames, *frames.prepared(source[0], size=recipe.size).shape


def _row_length(shape, recipe):
    """The length of the recipe's rows for frames of this shape.

    The shape itself for raw frames. That of a function of the user's own is known when
    the clip is read: here it stands for any.
    """
    if recipe.describe is not None:
        return OWN
    if recipe.features in ("raw", GIVEN):
        return shape
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
    if recipe.describe is not None:
        return OWN, "the model has"
    if recipe.features == "raw" and frame:
        return tuple(frame), "the model has"
    length = d // (recipe.arma or recipe.stack)
    raw = recipe.features in ("raw", GIVEN)
    return (length,) if raw else length, "the model has"


def size_in_words(shape):
    """The size of frames, in words."""
    if np.ndim(shape) == 0:
        return f"another size, whose rows have length {shape}"
    if len(shape) == 1:
        return plural(shape[0], "feature")
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
    check_any(set(seen.shapes) - set(seen.why), seen.why, advice)
    what = "direction" if recipe.features == GIVEN else "frame"
    to_stderr(_overview(clips, seen, what))
    if recipe.axes is None and recipe.features != GIVEN:
        _say_transposed(seen)
    if strict:
        check_all(seen)
    damaged = [
        reason for name, reason in seen.why.items() if name not in seen.avoidable
    ]
    if damaged:
        to_stderr(
            f"{plural(len(damaged), 'clip')} cannot be read:\n  "
            + first_of(damaged, "\n  ")
        )
    lines = _lost(clips, seen)
    if lines and skip:
        to_stderr("\n".join(["these clips are lost:", *lines]))
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


def _say_transposed(seen):
    """Say if clips seem to have a channel a row in place of a time step."""
    shapes = {*seen.shapes.values()}
    (shape,) = shapes if len(shapes) == 1 else [()]
    if len(seen.shapes) > 1 and len(shape) == 2 and shape[0] < shape[1]:
        n, d = shape
        to_stderr(
            f"all clips have {plural(n, 'frame')} of {d} features, which looks transposed: "
            f"if these are {plural(n, 'channel')} of {plural(d, 'time step')}, --axes "
            "channels,time says so, or n,channels,time of one array of all clips"
        )


def look_at_new(clips, recipe, shape, strict=False):
    """Print which new clips cannot be answered; ValueError if none can.

    strict: ValueError if any cannot. shape: as in build_all.
    """
    seen = survey(clips, recipe, shape)
    check_any(set(seen.shapes) - set(seen.why), seen.why)
    if strict:
        check_all(seen)
    if seen.why:
        to_stderr(
            f"{plural(len(seen.why), 'new clip')} will have no answer:\n  "
            + first_of([*seen.why.values()], "\n  ")
        )


def check_all(seen):
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
            of_class = "" if label is None else f"{label}: "
            lines[whole].append(f"  {of_class}{share}, as {example}")
    return lines[True] + lines[False]


def _overview(clips, seen, what):
    """The numbers of clips, classes and frames, and the frames' sizes, in words.

    what: the frames are, in the singular.
    """
    sizes = Counter(shape[1:] for shape in seen.shapes.values())
    counts = [shape[0] for shape in seen.shapes.values()]
    total = (
        f"unknown numbers of {what}s" if None in counts else plural(sum(counts), what)
    )
    each = [
        f"{size_in_words(size)} in {plural(n, 'clip')}"
        for size, n in sizes.most_common()
    ]
    where = size_in_words(*sizes) if len(sizes) == 1 else first_of(each, ", ")
    classes = {clip.label for clip in clips} - {None}
    of_classes = f" of {plural(len(classes), 'class')}" if classes else ""
    return f"{plural(len(clips), 'clip')}{of_classes}, {total} of {where}"
