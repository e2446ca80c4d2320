"""Long recordings in tables, cut into stretches of one label and group.

A stretch is a clip, named by its table and its first row, as day.csv@1200: rows count
from 0, below a first line of names. Windows are the sets of a stretch, see Recipe.run:
they never cross its ends, and stay together in folds and splits.
"""

import numpy as np

from grassmann_classify.clips import Clip, chosen_frames, threaded
from grassmann_classify.finding import (
    find_new_clips,
    group_of,
    held_in,
    is_table,
    say_alone,
)
from grassmann_classify.words import plural, printable, to_stderr
from grassmann_sc import frames

UNLABELLED = {"", "nan"}
ENOUGH = 20  # rows that tell a clock from a sensor


def find_tables(path):
    """The Clips, without labels, of a table, or of all tables in a folder."""
    tables = [clip for clip in find_new_clips(path) if is_table(clip.sources[0])]
    if not tables:
        raise ValueError(
            f"{path}: must hold recordings, .csv or .tsv files, got {held_in(path)}"
        )
    return tables


def labelled_stretches(
    tables, recipe, label_column, group_column=None, group_by=None, strict=False
):
    """(The Clips of the stretches of these tables, the columns of numbers).

    recipe: a Recipe, or options of the same names. label_column, group_column: of
    tables, by name or number; group_by: of the names of tables, as in find_clips. Rows
    without a label, or with a missing number, belong to no stretch. It says what is left
    out. strict: ValueError if a table cannot be read.
    """
    texts = [label_column, *filter(None, [group_column])]
    first = frames.read_table(tables[0].sources[0], recipe.columns, texts, gaps=True)
    columns = recipe.columns or first.names

    def read(clip):
        try:
            return frames.read_table(clip.sources[0], columns, texts, gaps=True)
        except ValueError as error:
            if strict:
                raise
            return error

    held = [first, *threaded(read, tables[1:], "recordings" if tables[1:] else None)]
    for error in held:
        if isinstance(error, ValueError):
            to_stderr(f"left out: {error}")
    both = [pair for pair in zip(tables, held) if not isinstance(pair[1], ValueError)]
    tables, held = zip(*both)
    clips = []
    left_out = {}
    for clip, table in zip(tables, held):
        label, *group = table.texts
        labelled = ~np.isin(np.char.lower(label), [*UNLABELLED])
        _count(left_out, f"without {label_column}", (~labelled).sum())
        for start, stop in _stretches(table, *table.texts):
            if labelled[start]:
                of_name = group_of(clip.sources[0], None, group_by)
                of_stretch = group[0][start] if group else of_name
                known = printable(label[start], but=""), of_stretch or None
                name = f"{clip.name}@{start}"
                clips.append(Clip(name, *known, [table.numbers[start:stop]]))
        _count(left_out, "with a missing number", (labelled & _gaps(table)).sum())
    clips = _long_enough(clips, recipe, left_out)
    n_rows = sum(len(table.numbers) for table in held)
    words = " and ".join(texts)
    to_stderr(
        f"{plural(len(tables), 'recording')} of {plural(n_rows, 'row')}: "
        f"{plural(len(clips), 'stretch')} of one {words}{_in_words(left_out)}"
    )
    _say_columns(tables[0].name, first)
    say_alone(clips, f"have no {group_column or 'group'}")
    return clips, [*columns]


def new_stretches(clips, recipe):
    """Clips without labels: where the recipe cuts windows, tables as their stretches.

    These end where a number is missing. What is wrong with a table is its clip's error.
    """
    found = []
    left_out = {}
    for clip in clips:
        if recipe.run is None or not is_table(clip.sources[0]):
            found.append(clip)
            continue
        try:
            table = frames.read_table(clip.sources[0], recipe.columns, gaps=True)
        except Exception as error:
            found.append(clip._replace(sources=[error]))
            continue
        _count(left_out, "with a missing number", _gaps(table).sum())
        parts = [
            Clip(f"{clip.name}@{start}", None, None, [table.numbers[start:stop]])
            for start, stop in _stretches(table)
        ]
        why = ValueError(f"{clip.name}: a number is missing in each row")
        found += parts or [clip._replace(sources=[why])]
    kept = _long_enough(found, recipe, left_out)
    if left_out:
        to_stderr(f"{plural(len(kept), 'stretch')}{_in_words(left_out)}")
    return kept or found


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
    to_stderr(f"columns of {name}: {', '.join(table.names)}")
    rises = (np.diff(table.numbers[: 10 * ENOUGH], axis=0) > 0).all(axis=0)
    if len(table.numbers) >= ENOUGH and rises.any() and not rises.all():
        others = [one for one, clock in zip(table.names, rises) if not clock]
        clocks = [one for one, clock in zip(table.names, rises) if clock]
        to_stderr(
            f"{name}: {', '.join(clocks)} rises in each row, as a clock does: "
            f"--columns {' '.join(others)} leaves it out"
        )


def _stretches(table, *of_rows):
    """[(start, stop), ...] of the rows without gaps in which nothing of_rows changes."""
    gaps = _gaps(table)
    begins = np.arange(len(gaps)) == 0
    for of_row in (gaps, *of_rows):
        begins[1:] |= of_row[1:] != of_row[:-1]
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
    choice = chosen_frames(recipe)
    step = recipe.step or recipe.run
    kept = []
    for clip in clips:
        source = clip.sources[0]
        if not isinstance(source, np.ndarray):
            kept.append(clip)
            continue
        n = len(frames.pick(range(len(source)), **choice))
        behind = (n - recipe.run) % step if step <= recipe.run else 0
        if n >= recipe.run:
            kept.append(clip)
            _count(left_out, "behind the last window of a stretch", behind)
        else:
            _count(left_out, f"in stretches shorter than {recipe.run} rows", n)
    return kept


def _count(left_out, why, number):
    if number:
        left_out[why] = left_out.get(why, 0) + int(number)


def _in_words(left_out):
    parts = [f"{plural(n, 'row')} {why}" for why, n in left_out.items()]
    return f"; left out: {', '.join(parts)}" if parts else ""
