"""Long recordings in tables, cut into stretches of one label and group.

A stretch is a clip, named by its table and its first row, as day.csv@1200: rows count
from 0, below a first line of names. Windows are the sets of a stretch, see Recipe.run:
they never cross its ends, and stay together in folds and splits.
"""

from collections import Counter

import numpy as np

from grassmann_classify.clips import Clip, chosen_frames, threaded
from grassmann_classify.finding import (
    content_in_words,
    find_new_clips,
    group_of,
    is_table,
    say_alone,
)
from grassmann_classify.words import first_of, plural, printable, to_stderr
from grassmann_sc import frames

UNLABELLED = {"", "nan"}
ENOUGH = 20  # rows that tell a clock from a sensor


def find_tables(path):
    """The Clips, without labels, of a table, or of all tables in a folder."""
    tables = [clip for clip in find_new_clips(path) if is_table(clip.sources[0])]
    if not tables:
        raise ValueError(
            f"{path}: must hold recordings, .csv or .tsv files, got "
            f"{content_in_words(path)}"
        )
    return tables


def labelled_stretches(
    tables, recipe, label_column, group_column=None, group_by=None, strict=False
):
    """(The Clips of the stretches of these tables, the columns of numbers).

    label_column, group_column: of tables, by name or number; group_by: of the names of
    tables, as in find_clips. The first table that has these columns tells those of
    numbers, unless the recipe names them. Rows without a label, or with a missing
    number, belong to no stretch. It says what is left out. strict: ValueError if a table
    cannot be read.
    """
    texts = [label_column, *filter(None, [group_column])]

    def read(clip, columns):
        try:
            return frames.read_table(clip.sources[0], columns, texts, gaps=True)
        except ValueError as error:
            if strict:
                raise
            return error

    results = []
    for clip in tables:
        results.append(read(clip, recipe.columns))
        if isinstance(results[-1], frames.Table):
            break
    else:
        raise results[0]
    first = len(results) - 1
    columns = recipe.columns or results[first].names
    rest = tables[len(results) :]
    bar = "recordings" if rest else None
    results += threaded(lambda clip: read(clip, columns), rest, bar)
    clips = []
    left_out = Counter()
    counts = []
    for clip, table in zip(tables, results):
        if isinstance(table, ValueError):
            to_stderr(f"left out: {table}")
            continue
        labels, *groups = table.texts
        labelled = ~np.isin(np.char.lower(labels), [*UNLABELLED])
        for start, stop in _stretches(table, *table.texts):
            if labelled[start]:
                group = group_of(clip.sources[0], None, group_by)
                group = groups[0][start] if groups else group
                name = f"{clip.name}@{start}"
                label = printable(labels[start], but="")
                rows = table.numbers[start:stop]
                clips.append(Clip(name, label, group or None, [rows]))
        left_out[f"without {label_column}"] += np.sum(~labelled)
        left_out["with a missing number"] += np.sum(labelled & _gaps(table))
        counts.append(len(labels))
    clips = _long_enough(clips, recipe, left_out)
    to_stderr(
        f"{plural(len(counts), 'recording')} of {plural(sum(counts), 'row')}: "
        f"{plural(len(clips), 'stretch')} of one {' and '.join(texts)}"
        f"{_in_words(left_out)}"
    )
    _say_columns(tables[first].name, results[first])
    say_alone(clips, f"have no {group_column or 'group'}")
    return clips, [*columns]


def new_stretches(clips, recipe):
    """Clips without labels: where the recipe cuts windows, tables as their stretches.

    Stretches end where a number is missing. What is wrong with a table is its clip's
    error.
    """
    parts = []
    left_out = Counter()
    for clip in clips:
        if recipe.run is None or not is_table(clip.sources[0]):
            parts.append(clip)
            continue
        try:
            table = frames.read_table(clip.sources[0], recipe.columns, gaps=True)
        except Exception as error:
            parts.append(clip._replace(sources=[error]))
            continue
        left_out["with a missing number"] += np.sum(_gaps(table))
        stretches = [
            Clip(f"{clip.name}@{start}", None, None, [table.numbers[start:stop]])
            for start, stop in _stretches(table)
        ]
        why = ValueError(f"{clip.name}: a number is missing in each row")
        parts += stretches or [clip._replace(sources=[why])]
    long = _long_enough(parts, recipe, left_out)
    if any(left_out.values()):
        to_stderr(f"{plural(len(long), 'stretch')}{_in_words(left_out)}")
    return long or parts


def say_columns(clips):
    """Say which columns of tables are taken, by the first of these clips, if it is one.

    Gives their names: all tables have them, in any order.
    """
    if not clips or not is_table(clips[0].sources[0]):
        return None
    try:
        table = frames.read_table(clips[0].sources[0])
    except ValueError:  # the clip's error, which reading says
        return None
    _say_columns(clips[0].name, table)
    return table.names


def _say_columns(name, table):
    texts = [
        f"{column}, whose first cell is {cell!r}" for column, cell in table.dropped
    ]
    left_out = f"; no numbers: {first_of(texts, '; ')}" if texts else ""
    to_stderr(f"columns of {name}: {', '.join(table.names)}{left_out}")
    rises = (np.diff(table.numbers[: 10 * ENOUGH], axis=0) > 0).all(axis=0)
    if len(table.numbers) >= ENOUGH and rises.any() and not rises.all():
        clocks = [column for column, clock in zip(table.names, rises) if clock]
        others = [column for column in table.names if column not in clocks]
        to_stderr(
            f"{name}: {', '.join(clocks)} rises in each row, as a clock does: "
            f"--columns {' '.join(others)} leaves it out"
        )


def _stretches(table, *texts):
    """[(start, stop), ...] of the rows without gaps in which no text changes."""
    gaps = _gaps(table)
    begins = np.arange(len(gaps)) == 0
    for column in (gaps, *texts):
        begins[1:] |= column[1:] != column[:-1]
    starts = np.flatnonzero(begins)
    stops = [*starts[1:], len(gaps)]
    return [(a, b) for a, b in zip(starts.tolist(), stops) if not gaps[a]]


def _gaps(table):
    """Which rows (n,) lack a number."""
    return ~np.isfinite(table.numbers).all(axis=1)


def _long_enough(clips, recipe, left_out):
    """The clips that hold a window; counts the rows that belong to none."""
    if recipe.run is None:
        return clips
    step = recipe.step or recipe.run
    long = []
    for clip in clips:
        source = clip.sources[0]
        n = recipe.run
        if isinstance(source, np.ndarray):
            n = len(frames.pick(range(len(source)), **chosen_frames(recipe)))
        if n >= recipe.run:
            long.append(clip)
            behind = (n - recipe.run) % step if step <= recipe.run else 0
            left_out["behind the last window of a stretch"] += behind
        else:
            left_out[f"in stretches shorter than {recipe.run} rows"] += n
    return long


def _in_words(left_out):
    parts = [f"{plural(n, 'row')} {why}" for why, n in left_out.items() if n]
    return f"; left out: {', '.join(parts)}" if parts else ""
