"""From clips to subspaces: what headers tell of all, then each clip by a thread."""

from collections import Counter, namedtuple
from dataclasses import replace

import numpy as np

from grassmann_classify.clips import (
    Basis,
    Collection,
    decoded,
    forget_the_oldest,
    threaded,
)
from grassmann_classify.recipes import (
    SMALL,
    describe,
    in_colour,
    kept_rows,
    padded,
    rank_of,
    resampled,
    standardised,
)
from grassmann_classify.settings import READY_MADE, USUAL_P
from grassmann_classify.words import (
    each_once,
    first_of,
    grouped,
    plural,
    printable,
    to_stderr,
)
from grassmann_sc import frames, shared, subspaces

ADVICE = {  # for arguments of frames.Avoidable
    "size": "--size 32 32 brings the frames to one size",
    "key": "--key {} takes that array of each file",
    "window": "--window {0} cuts the images of a class into clips of {0}",
}
# Of a clip before it is decoded. n_frames: None where a video does not tell it; size:
# (height, width) or (d,) of its frames
Header = namedtuple("Header", "n_frames size")
# Of a clip that cannot be used. avoidable: would an option, or another layout of its
# files, make it usable; header: if that could be read; missing: the package that reads
# it, in words that are the same for all of its clips
Failure = namedtuple("Failure", "why avoidable header missing", defaults=[None, None])
# Of a clip that was read. spectra: {number: (U (d, r), s (r,))} of its windows, singular
# directions, or bases, whose s is 1; rows: their arrays of rows, or None; frame, spans
# and colours: as a Collection has them; lost {number: why} of the other windows
Built = namedtuple(
    "Built", "spectra rows frame spans lost colours", defaults=[None, {}, ()]
)


def _results_of(job, clips, what, advised):
    """{name: job(clip), or the Failure in which it ends}, by threads.

    advised: do Failures have ADVICE?
    """

    def result_of(clip):
        try:
            return job(clip)
        except Exception as error:  # whatever a damaged file raises
            why = printable(
                getattr(error, "what", None) or str(error) or type(error).__name__
            )
            why = why if clip.name in why else f"{clip.name}: {why}"
            if advised and getattr(error, "argument", None):
                value = str(error.value).strip("'\"")
                why += f"; {ADVICE[error.argument].format(value)}"
            avoidable = isinstance(error, (frames.Avoidable, ImportError))
            missing = str(error) if isinstance(error, ImportError) else None
            return Failure(why, avoidable, missing=missing)

    return dict(zip([clip.name for clip in clips], threaded(result_of, clips, what)))


def check_usable(results, strict=False):
    """{name: why} of the Failures among results; ValueError if nothing else is there.

    strict: ValueError if there is any.
    """
    failures = {name: r for name, r in results.items() if isinstance(r, Failure)}
    why = {name: failure.why for name, failure in failures.items()}
    if len(why) == len(results):
        words = dict.fromkeys(r.missing or r.why for r in failures.values())
        raise ValueError(f"no clip could be read: {'; '.join([*words][:3])}")
    if strict and why:
        raise ValueError(next(iter(why.values())))
    return why


# ------------------------------------------------------------------- what headers tell


def survey(clips, recipe, shape=None):
    """{name: Header or Failure} of clips, before any of them is decoded.

    Clips of raw frames cannot be used whose frames have not the size of most, or that of
    a model of this shape; what descriptors of frames of several sizes have in common,
    build_all sees. shape: as build_all has it.
    """
    headers = _results_of(
        lambda clip: _header_of(clip, recipe),
        clips,
        "headers read",
        advised=shape is None,  # no option changes the recipe of a model
    )
    if not recipe.is_raw:
        return headers
    sizes = {
        name: header.size
        for name, header in headers.items()
        if isinstance(header, Header)
    }
    who = "most clips have" if shape is None else "the model has"
    if shape is not None:
        usual = tuple(shape[2]) or (shape[0] // recipe.n_blocks,)
    elif sizes:
        ((usual, _),) = Counter(sizes.values()).most_common(1)
    for name, size in sizes.items():
        if size != usual:
            here, there = map(size_in_words, (size, usual))
            can_resize = shape is None and len(size) == len(usual) == 2
            advice = f"; {ADVICE['size']}" * can_resize
            if shape is not None and usual == (headers[name].n_frames,):
                advice = "; it looks transposed"
            why = f"{name}: has frames of {here} and {who} {there}{advice}"
            headers[name] = Failure(why, True, headers[name])
    return headers


def _header_of(clip, recipe):
    """The Header of a clip that can be used."""
    counts, sizes = zip(*[_shape_of(source, recipe) for source in clip.sources])
    if recipe.is_raw and len({*sizes}) > 1:
        words = " and ".join(map(size_in_words, dict.fromkeys(sizes)))
        raise frames.Avoidable(
            f"{clip.name}: frames must have one size, got {words}", "size", "(H, W)"
        )
    n_frames = None if None in counts else sum(counts)
    needs = _needs(recipe)
    if n_frames is not None and n_frames < max(needs, default=0):
        raise frames.Avoidable(
            f"{clip.name}: has {plural(n_frames, 'frame')}, and {needs[max(needs)]} needs "
            f"{max(needs)}"
        )
    return Header(n_frames, sizes[0])


def _needs(recipe):
    """{how many frames a clip needs: what needs them}, as far as a recipe alone tells."""
    if recipe.resample or recipe.features == READY_MADE:
        return {}
    needs = {recipe.window: f"a window of {recipe.window}"} if recipe.window else {}
    kind = frames.DESCRIPTORS[recipe.features]
    if recipe.steps or recipe.describe or not kind.per_frame:
        return needs
    p = 1 if recipe.fewer else recipe.p
    if recipe.arma:
        return {max(p, recipe.arma): f"ARMA of {recipe.arma} blocks, p = {p},"} | needs
    words = [f"p = {p}"] * (p > 1) + [f"a stack of {recipe.stack}"] * (recipe.stack > 1)
    return {p + recipe.stack - 1: " with ".join(words) or "a clip"} | needs


def _shape_of(source, recipe):
    """(n_frames, (height, width) or (d,)) of the source of a clip."""
    if isinstance(source, Exception):
        raise source
    is_basis = isinstance(source, Basis)
    if is_basis != (recipe.features == READY_MADE):
        words = ("frames", "a ready-made subspace")
        raise ValueError(
            f"holds {words[is_basis]}, the others hold {words[not is_basis]}"
        )
    if is_basis:
        return source.columns.shape[1], source.columns.shape[:1]
    if isinstance(source, np.ndarray):
        n_frames = len(frames.pick(range(len(source)), **recipe.choosing))
        if recipe.size is None:
            return n_frames, source.shape[1:3]
        return n_frames, frames.prepared(source[0], size=recipe.size).shape
    n_frames, *size = frames.read_shape(source, **recipe.reading)
    axes = recipe.clip_axes
    if recipe.axes and 1 + len(size) != min(len(axes), 3):  # colours count as grey
        raise ValueError(
            f"{source}: must have the axes {','.join(axes)} that are named, got "
            f"{1 + len(size)} axes"
        )
    return n_frames, tuple(size)


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
    check_usable(headers, strict)
    shapes = [r.header if isinstance(r, Failure) else r for r in headers.values()]
    to_stderr(_overview(clips, [*filter(None, shapes)], recipe))
    lost = "\n".join(_lost(clips, headers))
    if lost and not skip:
        raise ValueError(
            f"these clips would be lost:\n{lost}\n--skip goes on without them"
        )
    if lost:
        to_stderr(f"these clips are lost:\n{lost}")
    return headers


def look_at_new(clips, recipe, shape, strict=False):
    """Print which new clips cannot be answered; ValueError if none can.

    strict: ValueError if any cannot. shape: as build_all has it.
    """
    why = check_usable(survey(clips, recipe, shape), strict)
    if why:
        to_stderr(
            f"{plural(len(why), 'new clip')} will have no answer:\n  "
            + first_of(each_once(why), "\n  ")
        )


def _lost(clips, headers):
    """A line for each reason for which classes lose usable clips, or all clips."""
    lines = {}
    classes = grouped((clip.label, headers[clip.name]) for clip in clips)
    for label, members in classes.items():
        failures = [r for r in members if isinstance(r, Failure)]
        avoidable = [failure for failure in failures if failure.avoidable]
        if avoidable or len(failures) == len(members):
            first, *more = avoidable or failures
            share = f"{1 + len(more)} of {plural(len(members), 'clip')}"
            name = "" if label is None else f"{label}: "
            lines.setdefault(first.missing or first.why, []).append(name + share)
    return [f"  {', '.join(whose)}, as {why}" for why, whose in lines.items()]


def _overview(clips, shapes, recipe):
    """The numbers of clips, classes and frames, and the frames' sizes, in words.

    Also that clips seem to have a channel a row in place of a time step.
    """
    what = "direction" if recipe.features == READY_MADE else "frame"
    counts, sizes = zip(*shapes)
    is_known = None not in counts
    total = plural(sum(counts), what) if is_known else f"unknown numbers of {what}s"
    each = [
        f"{size_in_words(size)} in {plural(n, 'clip')}"
        for size, n in Counter(sizes).most_common()
    ]
    where = first_of(each, ", ") if len(each) > 1 else size_in_words(sizes[0])
    n_classes = len({clip.label for clip in clips} - {None})
    among = f" of {plural(n_classes, 'class')}" * bool(n_classes)
    words = f"{plural(len(clips), 'clip')}{among}, {total} of {where}"
    flat = [(n, *size) for n, size in shapes if len(size) == 1]
    whole = what == "frame" and recipe.axes is None and len(flat) == len(clips)
    if whole and shared.look_transposed(flat):
        n, d = flat[0]
        words += (
            f"\nall clips have {plural(n, 'frame')} of {d} features, which looks "
            f"transposed: if these are {plural(n, 'channel')} of "
            f"{plural(d, 'time step')}, --axes channels,time says so, or "
            "n,channels,time of one array of all clips"
        )
    return words


# ------------------------------------------------------------------------ one clip


def _build(clip, recipe, keep_rows):
    """The subspaces of a clip, one for each window, as Built.

    keep_rows: with the rows (n_rows, d) of each window: normalised frames or
    descriptors, stacked as stack or arma says (the span of stacked frames models the
    same dynamics). Of ready-made subspaces the first p columns are taken.
    """
    if recipe.features == READY_MADE:
        bases = [source.columns[:, : recipe.p] for source in clip.sources]
        return Built(
            {k: (B, np.ones(B.shape[1])) for k, B in enumerate(bases)}, None, ()
        )
    parts, rows = _rows_of(clip, recipe)
    rows = resampled(rows, recipe.resample)
    if recipe.single:
        rows = rows.astype(np.float32, copy=False)
    length = recipe.window or len(rows)
    if len(rows) < length:
        raise ValueError(f"a window takes {length} frames, got {len(rows)}")
    firsts = range(0, len(rows) - length + 1, recipe.step or length)
    windows = [rows[i : i + length] for i in firsts]
    if recipe.standardised:
        windows = [*map(standardised, windows)]
    windows = [resampled(some, recipe.steps) for some in windows]
    spectra = {}
    lost = {}
    for k, some in enumerate(windows):
        try:
            spectra[k] = _spectrum(some, recipe)
        except ValueError as error:  # as where a sensor was off
            lost[k] = str(error)
    if not spectra:
        raise ValueError(lost[0])
    kept = [kept_rows(windows[k], recipe) for k in spectra] if keep_rows else None
    colours = [None] * len(spectra)
    grey = all(isinstance(A, np.ndarray) and A.ndim == 3 for A in clip.sources)
    if recipe.colour and parts[0].ndim == 3 and keep_rows and not grey:
        _, small = _rows_of(clip, replace(recipe, features="colour"))
        colours = [small[firsts[k] : firsts[k] + length] for k in spectra]
    edges = _edges(clip, parts, len(rows), recipe)
    spans = [(edges[firsts[k]], edges[firsts[k] + length]) for k in spectra]
    frame = parts[0].shape[1:] if recipe.is_raw else ()
    return Built(spectra, kept, frame, spans, lost, colours)


def _edges(clip, parts, n_rows, recipe):
    """When the rows of a clip begin, and the last ends (n_rows + 1,).

    parts: the frames that were chosen of each source. A row lasts until the next begins.
    Of files frames are counted as --every took them, and as --evenly left them.
    """
    edges = []
    n = 0
    every = 1 if recipe.evenly else recipe.every
    for source, part in zip(clip.sources, parts):
        is_array = isinstance(source, np.ndarray)
        length = len(source) if is_array else len(part) * every
        choosing = recipe.choosing if is_array else {"every": every}
        edges += [n + place for place in frames.pick(range(length), **choosing)]
        n += length
    edges = np.array([*edges, n])
    edges = edges / (recipe.rate or 1) if clip.edges is None else clip.edges[edges]
    m = len(edges) - 1
    return np.interp(np.linspace(0, m, n_rows + 1), np.arange(m + 1), edges)


def _spectrum(rows, recipe):
    """(U (d, r), s (r,)) of a window; s is 1 where bases are wanted."""
    if recipe.is_weighted:
        return subspaces.singular_directions(
            subspaces.block_hankel(rows, recipe.stack), recipe.p, center=recipe.center
        )
    if recipe.arma:
        basis = subspaces.from_video(rows, recipe.p, recipe.arma, center=recipe.center)
    else:
        basis = subspaces.from_image_set(
            subspaces.block_hankel(rows, recipe.stack), recipe.p, center=recipe.center
        )
    return basis, np.ones(basis.shape[1])


def _rows_of(clip, recipe):
    """(The frames of each source of a clip, their descriptors in one array (n, d))."""
    parts = [_frames_of(source, recipe) for source in clip.sources]
    return parts, np.concatenate([describe(part, recipe) for part in parts])


def _frames_of(source, recipe):
    grey = None if in_colour(recipe) else True
    size = SMALL if in_colour(recipe) else recipe.size
    if not isinstance(source, np.ndarray):
        return decoded(source, recipe.reading | {"grey": grey, "size": size})
    chosen = source[frames.pick(range(len(source)), **recipe.choosing)]
    if size is None and chosen.ndim < 4:
        return chosen
    return np.stack([frames.prepared(frame, grey, size) for frame in chosen])


# ------------------------------------------------------------------------ all clips


def build_all(clips, recipe, strict=False, most_rows=np.inf, shape=None, headers=None):
    """A Collection of all clips that can be built, by threads, one clip each.

    strict: ValueError if one cannot be built. most_rows: bytes of the rows of all sets, which are
    kept if they take less. shape: d, the least p and the (height, width) of frames that
    all clips must have; None: those of most clips. headers: the survey of these clips;
    those that it tells unusable are not decoded.
    """
    headers = survey(clips, recipe, shape) if headers is None else headers
    sizes = []

    def job(clip):
        if isinstance(headers[clip.name], Failure):
            return headers[clip.name]
        made = _build(clip, recipe, keep_rows=sum(sizes) < most_rows)
        sizes.extend(rows.nbytes for rows in made.rows or [])
        return made

    results = _results_of(job, clips, "clips read", shape is None)
    forget_the_oldest()
    check_usable(results, strict)
    results |= _misfits(results, shape)
    unusable = check_usable(results, strict)
    clips = [clip for clip in clips if clip.name not in unusable]
    made = [results[clip.name] for clip in clips]
    lost = {
        f"{clip.name}#{k}": f"{clip.name}#{k}: {why}"
        for clip, parts in zip(clips, made)
        for k, why in parts.lost.items()
    }
    if strict and lost:
        raise ValueError(next(iter(lost.values())))
    unusable |= lost
    if sum(sizes) >= most_rows:
        made = [parts._replace(rows=None) for parts in made]
    return _collect(clips, made, recipe, unusable)


def _misfits(results, shape):
    """{name: Failure} of the clips that differ from most, or from a model.

    They must have d of most clips, and p at least the smaller of the median and USUAL_P;
    or d and the least p of a model's shape.
    """
    shapes = {
        name: (
            len(next(iter(made.spectra.values()))[0]),
            min(np.count_nonzero(s) for _, s in made.spectra.values()),
        )
        for name, made in results.items()
        if isinstance(made, Built)
    }
    who = "the model has"
    cure = ""
    if shape is None:
        who = "most clips have"
        cure = "; --p {} takes it"
        d, p = zip(*shapes.values())
        shape = Counter(d).most_common(1)[0][0], min(USUAL_P, int(np.median(p)))
    misfits = {}
    for name, (d, p) in shapes.items():
        if d != shape[0]:
            misfits[name] = f"{name}: has d = {d} and {who} {shape[0]}"
        elif p < shape[1]:
            misfits[name] = (
                f"{name}: has frames of rank {p} and {who} {shape[1]} or more"
                f"{cure.format(p)}"
            )
    return {name: Failure(why, False) for name, why in misfits.items()}


def _collect(clips, made, recipe, unusable):
    """The Collection of Clips and of what was Built of each."""
    U, s = padded([pair for parts in made for pair in parts.spectra.values()])
    number = np.repeat(np.arange(len(clips)), [len(parts.spectra) for parts in made])
    sets = [rows for parts in made for rows in parts.rows or []]
    groups = [clip.group for clip in clips]
    cut = {}
    if recipe.window is not None:
        cut = {
            "recordings": [clips[i].recording or clips[i].name for i in number],
            "spans": np.array([span for parts in made for span in parts.spans]),
        }
    return Collection(
        X=U[:, :, : rank_of(s)],
        sets=sets or None,
        names=[
            f"{clip.name}#{k}" if len(parts.spectra) > 1 else clip.name
            for clip, parts in zip(clips, made)
            for k in parts.spectra
        ],
        label=np.array([clip.label for clip in clips])[number],
        group=None if None in groups else np.array([*map(str, groups)])[number],
        frame=made[0].frame,
        clip=number,
        unusable=unusable,
        spectra=(U, s) if recipe.is_weighted else None,
        colours=[rows for parts in made for rows in parts.colours],
        **cut,
    )
