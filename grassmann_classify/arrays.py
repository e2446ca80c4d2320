"""Clips that are arrays: the sets of an .npz file, and stretches of long recordings.

A stretch holds the rows of a table of one label and group. It is named by the table and
its first row, as day.csv@1200: rows count from 0, below a first line of names. Windows
are the sets of a stretch, see Recipe.window: they never cross its ends, and stay
together in folds and splits.
"""

import re
from collections import Counter, namedtuple
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np

import grassmann_sc as core
from grassmann_classify.clips import Basis, Clip, threaded
from grassmann_classify.finding import (
    content_in_words,
    find_new_clips,
    group_of,
    is_table,
    say_alone,
)
from grassmann_classify.splits import Parts
from grassmann_classify.words import (
    UNNAMED,
    as_number,
    first_of,
    group_named,
    is_unnamed,
    plural,
    printable,
    to_stderr,
)
from grassmann_sc import files, frames, tuning

LABELS = ("label", "labels", "y")  # names of the array of labels
GROUPS = ("group", "groups")
BASES = "bases"
SETS = ("frames", "X", BASES)  # names of arrays of sets
HALVES = ("X_train", "y_train", "X_test", "y_test")  # of a split, in one file
PARTS = r"(train|test)\d+"
IN_ONE = (".npy", ".npz")  # files that may hold one array of all sets
USUAL_AXES = {2: "n,time", 3: "n,time,channels", 4: "n,time,height,width"}
# of rows, or a window of them: where a row lasts longer, nothing was recorded
HOLE = 10
# A frames.Table that was read. texts: {LABEL or GROUP: its column (n,)} of those that are
# there; begins, ends (n,): when its rows do; gaps (n,): which of them lack a number
Recording = namedtuple("Recording", [*frames.Table._fields, "begins", "ends", "gaps"])
LABEL = "label"
GROUP = "group"
CONSTANT = "never changes, as the name of a person"
FEWEST_STEPS = 20  # of a column that may be a clock
EVEN = 0.9  # the share of a clock's steps that are near the median
RATES_DIFFER = 0.1  # by so much of the first
UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9}  # of clocks, in a second


# ------------------------------------------------------------------ sets of an .npz file


def load_npz(path, key=None, axes=None):
    """Clips of a file of sets, and the Parts of its splits or None.

    The file holds all frames stacked, and offset, which tells where each set begins; or
    X, all sets of one length (n, time, channels), of which NaN at the end is cut off; or
    X_train, y_train, X_test and y_test, a split of these; or bases (n, d, p) of
    subspaces. key: the name of the array of frames or sets. axes: of X, as
    n,channels,time. ValueError if the file does not fit together.
    """
    arrays, clips = read_sets(path, key, axes)
    others = sorted({*_names(path)} - {*HALVES, *arrays})
    if others:
        to_stderr(f"passed over the arrays {first_of(others, ', ')} of {path}")
    n = len(clips)
    name = next((name for name in LABELS if name in arrays), None)
    if name is None:
        raise ValueError(
            f"{path} must hold the labels of its sets, as {' or '.join(LABELS)}"
        )
    label = files.labels_to_keep(arrays[name], n, "sets")
    if label.dtype.kind == "S":
        label = np.char.decode(label, "utf-8", "backslashreplace")
    if label.dtype.kind == "U":
        label = np.array([printable(text, but="") for text in label.tolist()])
    names = np.array([clip.name for clip in clips])
    parts = [
        (f"{path}: split {i}", *(names[part] for part in pair))
        for i, pair in enumerate(_npz_splits(arrays, n))
    ]
    clips = [
        clip._replace(label=c) for clip, c in zip(clips, label) if not is_unnamed(c)
    ]
    if len(clips) < n:
        to_stderr(
            f"{plural(n - len(clips), 'set')} of {path} without a label: passed over"
        )
    say_alone(clips, "have none")
    return clips, Parts(
        f"splits of {printable(Path(path).name)}", parts
    ) if parts else None


def holds_sets(path, key=None, axes=None):
    """Is this a file of sets, by the names of its arrays or of their axes?"""
    names = {*_names(path)}
    in_one = (
        axes is not None and "n" in axes.split(",") and path.suffix.lower() in IN_ONE
    )
    if in_one or names & {"offset", BASES} or names >= {*HALVES}:
        return True
    name = key or "X"  # of (n_frames, d) alone it is a clip
    return name in names and bool(
        names & {*LABELS} or frames.read_shape(path, key=name)[2:]
    )


def with_bases(clips, key=None):
    """The clips; those whose .npz file holds subspaces have these as their sources.

    Such a file holds bases (d, p), or (n, d, p), and no frames unless bases is the key.
    What is wrong with it is the error of its clip.
    """

    def bases_of(path):
        try:
            return _sources(path, _npz_arrays(path, key), key, None)
        except Exception as error:
            return [error]

    return [
        clip._replace(sources=bases_of(clip.sources[0]))
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


def read_sets(path, key=None, axes=None):
    """(The arrays of a file of sets, or X of an .npy file; Clips, labels as they are)."""
    arrays = _npz_arrays(path, key, axes)
    sources = _sources(path, arrays, key, axes)
    n = len(sources)
    for name in (*GROUPS, *LABELS):
        if name in arrays and arrays[name].shape != (n,):
            raise ValueError(
                f"{path}: {name} must have length {n}, one a set, got shape "
                f"{arrays[name].shape}"
            )
    entries = (
        next((arrays[name].tolist() for name in names if name in arrays), [None] * n)
        for names in (LABELS, GROUPS)
    )
    clips = [
        Clip(
            f"set {i}",
            label,
            None if is_unnamed(group) else group_named(group),
            [source],
        )
        for i, (source, label, group) in enumerate(zip(sources, *entries))
    ]
    return arrays, clips


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
    missing = [array for array in [name, *["offset"] * stacked] if array not in arrays]
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
        return [*map(_unpadded, _sets_in_one(arrays[name], f"{path}: {name}", axes))]
    if axes is not None:
        raise ValueError(
            f"{path} must hold one array of all sets to have axes, got stacked frames"
        )
    return _stacked_sets(arrays[name], arrays["offset"])


def _sets_in_one(X, name, axes):
    """The array of all sets, (n, time, channels) or (n, time, height, width)."""
    axes = axes or USUAL_AXES.get(X.ndim, USUAL_AXES[3])
    names = axes.split(",")
    fits = X.ndim == len(names) and "n" in names
    if not fits or X.dtype.kind not in "biuf" or not X.size:
        raise ValueError(
            f"{name} must hold real numbers along the axes {axes}, n among them, got "
            f"{X.dtype} {X.shape}"
        )
    X = np.moveaxis(X, [names.index("n"), names.index("time")], [0, 1])
    return X[:, :, None] if X.ndim == 2 else X


def _unpadded(rows):
    """A set without the time steps at its end that are NaN, as tslearn fills up sets."""
    full = np.flatnonzero((rows == rows).reshape(len(rows), -1).any(axis=1))
    return rows[: full[-1] + 1] if len(full) else rows


def _npz_arrays(path, key=None, axes=None):
    """The arrays of the file that are used here; that of an .npy file is X."""
    names = {*LABELS, *GROUPS, *SETS, *HALVES, "offset", key or "frames"}
    used = "|".join([*map(re.escape, names), PARTS])
    single = str(path).lower().endswith(".npy")
    name = "X"  # of a file that is one array, whatever its own name
    try:
        if single:
            return {"X": np.load(path, allow_pickle=False)}
        arrays = {}
        with np.load(path, allow_pickle=False) as data:
            for name in data.files:
                if re.fullmatch(used, name):
                    arrays[name] = np.asarray(data[name])
    except Exception as error:  # whatever NumPy raises for damaged bytes
        if isinstance(error, OSError) and error.filename:
            raise
        kind = ".npy file, as np.save" if single else ".npz file, as np.savez"
        cure = ""
        if "Object arrays" in str(error):
            cure = (
                "; labels are saved as text by y.astype(str)"
                if name in (*LABELS, *GROUPS)
                else "; sets of several lengths are saved as frames, offset and label"
            )
        elif "allow_pickle=" in str(error):  # NumPy's guess of any other content
            error = "it is no such file"
        raise ValueError(
            f"{path} must be an {kind} writes it: {error or type(error).__name__}{cure}"
        ) from None
    return _with_halves(path, arrays, axes) if arrays.keys() >= {*HALVES} else arrays


def _with_halves(path, arrays, axes):
    """The arrays, X, y, train0 and test0 in place of HALVES."""
    X_train, y_train, X_test, y_test = (arrays[name] for name in HALVES)
    names = axes.split(",") if axes else ["n"]
    place = names.index("n") if "n" in names else 0
    try:
        X = np.concatenate([X_train, X_test], axis=place)
        y = np.concatenate([y_train, y_test])
        n = len(y_train)
        if X_train.shape[place] != n or X.shape[place] != len(y):
            raise ValueError
    except ValueError:
        shapes = [f"{name} {arrays[name].shape}" for name in HALVES]
        raise ValueError(
            f"{path}: X_train and X_test must have one shape but for their numbers of "
            f"sets, which y_train and y_test have too, got {', '.join(shapes)}"
        ) from None
    return {
        **{name: array for name, array in arrays.items() if name not in HALVES},
        "X": X,
        "y": y,
        "train0": np.arange(n),
        "test0": np.arange(n, len(y)),
    }


def _stacked_sets(rows, offset):
    """The sets of stacked frames, each from its offset to the next."""
    in_colour = rows.ndim == 4 and rows.shape[3] in (1, 3, 4)
    if not (rows.ndim in (2, 3) or in_colour) or rows.dtype.kind not in "biuf":
        raise ValueError(
            "frames must be real numbers (total, d) or (total, height, width), or these "
            f"with an axis of 1, 3 or 4 behind them, got {rows.dtype} {rows.shape}"
        )
    if offset.ndim != 1 or len(offset) < 2 or offset.dtype.kind not in "iu":
        raise ValueError(
            "offset must hold n_sets + 1 >= 2 integers, got "
            f"{offset.dtype} {offset.shape}"
        )
    falls = np.flatnonzero(offset[1:] <= offset[:-1])
    if len(falls) or offset[0] != 0 or offset[-1] != len(rows):
        where = "".join(
            f", {offset[i]} to {offset[i + 1]} for set {i}" for i in falls[:1]
        )
        raise ValueError(
            f"offset must rise from 0 to {len(rows)}, the number of frames, every set "
            f"holding a frame, got {offset[0]} to {offset[-1]}{where}"
        )
    return [rows[start:stop] for start, stop in zip(offset, offset[1:])]


def _npz_splits(arrays, n):
    """[(train, test), ...], indices, from the arrays train0, test0, ..., if any."""
    parts = {name for name in arrays if re.fullmatch(PARTS, name)}
    names = [(f"train{i}", f"test{i}") for i in range((len(parts) + 1) // 2)]
    missing = {name for pair in names for name in pair} - parts
    if missing:
        raise ValueError(
            "the splits must be train0, test0, train1, test1, ...: "
            f"{min(missing)} is missing among {', '.join(sorted(parts))}"
        )
    pairs = [tuple(arrays[name] for name in pair) for pair in names]
    return tuning.check_splits(pairs, n) if pairs else []


# ------------------------------------------------------------- stretches of recordings


def labelled_stretches(
    path, recipe, label_column, group_column=None, group_by=None, strict=False
):
    """(The Clips of the stretches of tables, the Recipe with the columns of numbers).

    path: a table, or a folder of tables. label_column, group_column: of tables, by name
    or number; group_by: of the names of tables, as in find_clips. The first table that
    has these columns tells those of numbers, unless the recipe names them. Rows without
    a label, or with a missing number, belong to no stretch. It says what is left out.
    strict: ValueError if a table cannot be read.
    """
    tables = find_new_clips(path, recordings=True)
    if not is_table(tables[0].sources[0]):  # all of them are, or none
        raise ValueError(
            f"{path}: must hold recordings, .csv or .tsv files, got "
            f"{content_in_words(path)}"
        )
    texts = [label_column, *filter(None, [group_column])]
    recipe = say_columns(tables, recipe, texts)
    results = _read_tables(tables, recipe, [dict(zip((LABEL, GROUP), texts))])
    errors = [table for table in results if isinstance(table, Exception)]
    if errors and (strict or len(errors) == len(tables)):
        raise errors[0]
    to_stderr(*(f"left out: {error}" for error in errors))
    read = [
        # a column of groups, if there is one, says more
        (clip._replace(group=group_of(clip.sources[0], None, group_by)), table)
        for clip, table in zip(tables, results)
        if isinstance(table, Recording)
    ]
    _say_rates(read, recipe)
    parts = [
        part._replace(label=printable(part.truth[0], but=""))
        for clip, table in read
        for part in _stretches(clip, table, [LABEL, GROUP])
        if not is_unnamed(part.truth[0])
    ]
    without = [part for part in parts if group_column and part.group is None]
    clips = [part for part in parts if not group_column or part.group is not None]
    cells = np.concatenate([table.texts[LABEL] for _, table in read])
    labelled = ~np.isin(np.char.lower(cells), UNNAMED)
    gaps = np.concatenate([table.gaps for _, table in read])
    left_out = Counter(
        {
            f"without {group_column}": sum(len(part.truth) for part in without),
            f"without {label_column}": np.sum(~labelled),
            "with a missing number": np.sum(labelled & gaps),
        }
    )
    long = _long_enough(clips, recipe, left_out)
    if clips and not long:
        longest = max(_n_rows(clip, recipe) for clip in clips)
        raise ValueError(
            f"{path}: --window {recipe.window} is longer than every stretch of one "
            f"{' and '.join(texts)}: the longest has {plural(longest, 'row')}"
        )
    to_stderr(
        f"{plural(len(read), 'recording')} of {plural(len(cells), 'row')}: "
        f"{plural(len(long), 'stretch')} of one {' and '.join(texts)}"
        f"{_in_words(left_out)}"
    )
    lost = sorted({clip.label for clip in clips} - {clip.label for clip in long})
    if lost:
        to_stderr(f"no window lies in a stretch of {first_of(lost, ', ')}: left out")
    return long, recipe


def new_stretches(clips, recipe, label_column=None, group_column=None):
    """Clips without labels: where the recipe cuts windows, tables as their stretches.

    Stretches end where a number is missing. What is wrong with a table is its clip's
    error. label_column: the truth of tables that have it; group_column: their groups.
    """
    tables = [clip for clip in clips if is_table(clip.sources[0])]
    if recipe.window is None and tables and label_column:
        to_stderr(
            "without --window each new recording is one clip: its labels are passed over"
        )
    if recipe.window is None or not tables:
        return clips
    others = [clip for clip in clips if not is_table(clip.sources[0])]
    stretches = []
    wanted = {LABEL: label_column, GROUP: group_column}
    wanted = {what: name for what, name in wanted.items() if name}
    fewer = [wanted, *({what: name} for what, name in wanted.items()), {}]
    results = _read_tables(tables, recipe, fewer)
    pairs = [*zip(tables, results)]
    read = [(clip, table) for clip, table in pairs if isinstance(table, Recording)]
    _say_rates(read, recipe)
    missing = sum(table.gaps.sum() for _, table in read)
    left_out = Counter({"with a missing number": missing})
    for clip, table in pairs:
        if isinstance(table, Exception):
            others.append(clip._replace(sources=[table]))
            continue
        parts = _stretches(clip, table, [GROUP])
        long = _long_enough(parts, recipe, left_out)
        stretches += long
        if not long:
            why = (
                f"no stretch holds a window of {plural(recipe.window, 'row')}"
                if parts
                else "a number is missing in each row"
            )
            others.append(clip._replace(sources=[ValueError(f"{clip.name}: {why}")]))
    for what, name in wanted.items():
        if read and not any(what in table.texts for _, table in read):
            to_stderr(f"no new recording has the column {name}")
    if any(left_out.values()):
        to_stderr(f"{plural(len(stretches), 'stretch')}{_in_words(left_out)}")
    return others + stretches


def _read_tables(tables, recipe, texts):
    """[the Recording or the error of each Clip of a table, ...].

    texts: [{LABEL or GROUP: its column}, ...], the first that a table has.
    """
    clock = [recipe.clock] * bool(recipe.clock)

    def read(clip, wanted):
        path = clip.sources[0]
        columns = [*wanted.values(), *clock]
        table = frames.read_table(path, recipe.columns, columns, gaps=True)
        edges = np.arange(len(table.numbers) + 1) / (recipe.rate or 1)
        times = edges[:-1], edges[1:]
        if clock:
            hole = max(HOLE, recipe.every * (recipe.window or 0))
            cells = table.texts[-1]
            blank = np.isin(np.char.lower(cells), UNNAMED)
            table.numbers[blank] = np.nan  # a row without a time ends a stretch
            first = (~blank).argmax()
            before = np.maximum.accumulate(
                np.where(blank, first, np.arange(len(cells)))
            )
            named = re.fullmatch(frames.CLOCK, recipe.clock, re.IGNORECASE)
            each = UNITS.get((named and named[4] or "s").lower(), 1)
            column = f"{path}: column {recipe.clock}"
            times = _times(column, cells[before], each, hole)
        gaps = ~np.isfinite(table.numbers).all(axis=1)
        return Recording(*table, *times, gaps)._replace(
            texts=dict(zip(wanted, table.texts))
        )

    def read_first(clip):
        for wanted in texts:
            try:
                return read(clip, wanted)
            except Exception as error:
                why = error
        return why

    return threaded(read_first, tables, "recordings")


def _say_rates(read, recipe):
    """Say which of the Recordings, in pairs (Clip, Recording), are of another rate."""
    others = [
        f"{clip.name} ({_rate(table):.3g})"
        for clip, table in read
        if recipe.clock and recipe.rate
        if abs(_rate(table) / recipe.rate - 1) > RATES_DIFFER
    ]
    if others:
        to_stderr(
            f"other rows a second than the {recipe.rate:.3g} of the first recording: "
            f"{first_of(others, ', ')}; a window has as many rows in all"
        )


def _rate(table):
    """Rows a second of a Recording with a clock."""
    return float(1 / np.median(table.ends - table.begins))


def _times(column, cells, each_second, hole):
    """When the rows of a clock's cells begin (n,), and when they end, in seconds.

    Numbers are so many a second; ISO times become seconds from the first on. Rows
    of one time share evenly what passes until the next. If they then last `hole` times
    what is usual, they last as usual: nothing was recorded behind them.
    """
    times = []
    start = None
    try:
        for cell in cells:
            time = as_number(cell.replace(",", "."))
            if isinstance(time, str):
                time = datetime.fromisoformat(cell.replace("Z", "+00:00"))
            start = time if start is None else start
            since = time - start  # not of a number and a moment
            times.append(
                time / each_second if isinstance(time, float) else since.total_seconds()
            )
    except (TypeError, ValueError):
        raise ValueError(
            f"{column} must hold seconds or ISO times, as 2026-01-31T12:00:00, got "
            f"{str(cell)!r} in row {len(times)}"
        ) from None
    times = np.array(times)
    with np.errstate(invalid="ignore"):
        steps = np.diff(times, prepend=-np.inf)
    is_time = np.isfinite(times) & (steps >= 0)
    if not is_time.all():
        k = is_time.argmin()
        raise ValueError(
            f"{column} must hold finite times that never fall, got {cells[k]} in row {k}"
        )
    # rows of one time, as of a clock in whole seconds, share the time until the next
    moments, first, number = np.unique(times, return_index=True, return_counts=True)
    each = np.diff(moments) / number[:-1]
    if len(moments) == 1 < len(times):
        raise ValueError(f"{column} must hold times that rise, got {cells[0]} alone")
    usual = np.median(each) if len(each) else 1
    lasts = first[1:][each > hole * usual] - 1  # the rows before holes
    each[each > hole * usual] = usual
    each = np.repeat([*each, usual], number)
    before = np.arange(len(times)) - np.repeat(first, number)  # rows of the same time
    begins = np.repeat(moments, number) + each * before
    ends = np.append(begins[1:], begins[-1] + usual)
    ends[lasts] = begins[lasts] + usual
    return begins, ends


def say_columns(clips, recipe, texts=()):
    """The Recipe with the columns of tables, by the first clip that has them; says them.

    By their names, also those that the recipe numbers: all tables have them, in any
    order. The recipe as it is if no clip is such a table.
    """
    for clip in [clip for clip in clips if is_table(clip.sources[0])]:
        (table,) = _read_tables([clip], recipe, [dict(enumerate(texts))])
        if isinstance(table, Exception):  # the clip's error, which reading says
            continue
        dropped = [
            f"{column}, whose first cell is {cell!r}"
            if cell
            else f"{column}, empty at first"
            for column, cell in table.dropped
        ]
        left_out = f"; no numbers: {first_of(dropped, '; ')}" if dropped else ""
        to_stderr(f"columns of {clip.name}: {', '.join(table.names)}{left_out}")
        for name, column in zip(table.names, table.numbers.T):
            odd = recipe.columns is None and _no_sensor(column)
            if odd:
                may_be_clock = odd != CONSTANT and not recipe.clock
                clock = f", --clock {name} if it tells seconds" * may_be_clock
                to_stderr(f"column {name} {odd}: --columns names the others{clock}")
        rate = recipe.rate or recipe.clock and _rate(table)
        return replace(recipe, columns=tuple(table.names), rate=rate)
    return recipe


def _no_sensor(column):
    """What a column of a table does that no sensor's does, in words, or ''."""
    steps = np.diff(column[np.isfinite(column)])
    if len(steps) < FEWEST_STEPS:
        return ""
    usual = np.median(steps)
    if usual > 0 and np.mean(np.abs(steps - usual) < usual / 2) > EVEN:
        return "rises by even steps, as a clock or a counter"
    return "" if steps.any() else CONSTANT


def _stretches(clip, table, alike):
    """The Clips, without labels, of rows without gaps and holes.

    alike: LABEL or GROUP, those of which a stretch has one.
    """
    texts = [table.texts[name] for name in alike if name in table.texts]
    ends_here = table.ends[:-1] < table.begins[1:]
    for column in (table.gaps, *texts):
        ends_here |= column[1:] != column[:-1]
    starts = [0, *(1 + np.flatnonzero(ends_here)).tolist()]
    labels = table.texts.get(LABEL)
    groups = table.texts.get(GROUP, [clip.group] * len(table.gaps))
    return [
        clip._replace(
            name=f"{clip.name}@{start}",
            group=None if is_unnamed(groups[start]) else groups[start],
            sources=[table.numbers[start:stop]],
            recording=clip.name,
            edges=np.append(table.begins[start:stop], table.ends[stop - 1]),
            truth=None if labels is None else labels[start:stop],
        )
        for start, stop in zip(starts, [*starts[1:], len(table.gaps)])
        if not table.gaps[start]
    ]


def _long_enough(clips, recipe, left_out):
    """The clips that hold a window; counts the rows of stretches that are in none."""
    window = recipe.window
    if window is None:
        return clips
    long = []
    for clip in clips:
        n = _n_rows(clip, recipe)
        step = recipe.step or window
        n_windows = max(0, (n - window) // step + 1)
        covered = n_windows and window + (n_windows - 1) * min(step, window)
        left_out["in no window"] += (n - covered) * len(clip.sources[0]) // n
        long += [clip] * bool(n_windows)
    return long


def _n_rows(clip, recipe):
    """How many rows a recipe makes of a stretch, before it is cut into windows."""
    rows = range(len(clip.sources[0]))
    return recipe.resample or len(frames.pick(rows, **recipe.choosing))


def _in_words(left_out):
    parts = [f"{plural(n, 'row')} {why}" for why, n in left_out.items() if n]
    return f"; left out: {', '.join(parts)}" if parts else ""
