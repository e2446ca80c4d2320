"""Splits of sets into training and test parts: of a file, by groups, at random."""

import csv
import re

import numpy as np
from sklearn.model_selection import LeaveOneGroupOut, StratifiedShuffleSplit

from grassmann_classify.clips import clip_names
from grassmann_classify.words import first_of, plural, printable, to_stderr
from grassmann_sc import tuning

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with which cells begin that spreadsheets run


def read_rows(path):
    """(The first row of a CSV file, [(line, row), ...] of the others).

    Where the first line has no comma, ; or tabs separate columns, as Excel writes them in
    some countries.
    """
    try:
        # Excel writes a byte order mark
        with open(path, newline="", encoding="utf-8-sig") as file:
            first = file.readline()
            file.seek(0)
            between = next((mark for mark in ",;\t" if mark in first), ",")
            reader = csv.reader(file, delimiter=between)
            rows = [(reader.line_num, [*map(_as_meant, row)]) for row in reader if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must be a CSV file in UTF-8, got {error}") from None
    (_, header), *rows = rows or [(1, [])]
    return header, rows


def _as_meant(cell):
    """A cell without the ' that tables.write_rows puts before what looks like a formula."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def rows_by_clip(path, header, rows, name_of):
    """{clip: (line, row)} of a CSV file, each row checked.

    name_of(cell): the name of the clip that a cell of the column clip means.
    """
    by_clip = {}
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: line {line} must have {plural(len(header), 'column')}, got "
                f"{len(row)}"
            )
        cell = row[header.index("clip")].strip()
        if not cell:
            raise ValueError(f"{path}: line {line} must name a clip, got none")
        name = name_of(cell)
        if name in by_clip:
            raise ValueError(
                f"{path}: must name a clip once, got {name} in lines {by_clip[name][0]} "
                f"and {line}"
            )
        by_clip[name] = line, row
    return by_clip


def check_parts(path, line, parts):
    """ValueError unless each cell of a line is train, test or nothing."""
    wrong = sorted({*parts} - {"train", "test", ""})
    if wrong:
        raise ValueError(
            f"{path}: line {line} must hold a clip and train, test or nothing, got "
            f"{wrong[0]!r}"
        )


def check_names(path, by_clip, clips, unusable=()):
    """ValueError unless each name of {name: (line, row)} is that of a clip.

    Those of unusable clips, or of their sets, are passed over.
    """
    others = [name for name in by_clip if name not in clips]
    passed = [name for name in others if {*unusable} & {name, name.rpartition("#")[0]}]
    nowhere = [
        f"{name} in line {by_clip[name][0]}" for name in others if name not in passed
    ]
    if nowhere:
        raise ValueError(
            f"{path}: must name clips that are there, got {first_of(nowhere, ', ')}"
        )
    if passed:
        to_stderr(
            f"{path}: passed over {len(passed)} clips that could not be read: "
            f"{', '.join(passed)}"
        )


def read_split_file(path, clips=None):
    """(Names of the splits, {clip: (line, [clip, train, test or nothing, ...])}).

    clips: names of those that are there, if the names are to be checked already.
    """
    header, rows = read_rows(path)
    if len(header) < 2 or header[0] != "clip":
        raise ValueError(
            f"{path}: the first line must be clip,NAME,... with a column for each "
            f"split, got {','.join(header)!r}"
        )
    by_clip = rows_by_clip(path, header, rows, lambda cell: printable(cell, but=""))
    for line, row in by_clip.values():
        check_parts(path, line, row[1:])
    if clips is not None:
        sets = {name for name in by_clip if name.rpartition("#")[0] in clips}
        check_names(path, by_clip, {*clips} | sets)
    return header[1:], by_clip


def split_by_file(path, names, clip=None, unusable=()):
    """The splits of a CSV file, as tuning.Split; it names clips as class/clip.

    A header clip,NAME,NAME,... and a line for each clip with train, test or nothing in
    each column. If a clip was cut into several sets, a line may name one,
    class/clip#set; otherwise its sets stay together. clip (n,): the number of each
    set's clip; unusable: clips that could not be read, whose lines are skipped.
    """
    columns, by_clip = read_split_file(path)
    clips = names if clip is None else clip_names(names, clip)
    for name, whole in zip(names, clips):
        if name != whole and name in by_clip and whole in by_clip:
            raise ValueError(
                f"{path}: must name a clip or its sets, got {whole} in line "
                f"{by_clip[whole][0]} and {name} in line {by_clip[name][0]}"
            )
    check_names(path, by_clip, {*names, *clips}, unusable)
    parts = {name: row[1:] for name, (_, row) in by_clip.items()}
    return _pairs_of_parts(path, columns, parts, names, clips)


def _pairs_of_parts(path, columns, parts, names, clips):
    """The splits of {clip or set: [train, test or nothing in each column]}."""
    absent = [""] * len(columns)
    sides = [
        parts.get(name, parts.get(whole, absent)) for name, whole in zip(names, clips)
    ]
    pairs = []
    for k, split in enumerate(columns):
        train, test = (
            np.array([i for i, part in enumerate(sides) if part[k] == side], int)
            for side in ("train", "test")
        )
        if not len(train) or not len(test):
            raise ValueError(
                f"{path}: split {split!r} must have clips to train and to test, got "
                f"{len(train)} and {len(test)} that could be read"
            )
        pairs.append((train, test))
    return tuning.check_splits(pairs, len(names))


def split_by_parts(path, parts, names, clip):
    """The split of what find_labelled gave, as split_by_file."""
    return _pairs_of_parts(path, ["split"], parts, names, clip_names(names, clip))


def strangers(label, pairs):
    """What to say of classes that are tested in a split and have nothing to train."""
    found = {}
    for train, test in pairs:
        for c in np.setdiff1d(label[test], label[train]).tolist():
            found[c] = found.get(c, 0) + 1
    return [
        f"class {c} has clips to test and none to train in {n} of {len(pairs)} splits: no "
        "answer there can be right"
        for c, n in found.items()
    ]


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
    """Splits of clips as splits of sets; clip (n,): the number of each set's clip.

    Clips without sets are passed over.
    """
    most = 1 + max(int(np.max(part)) for pair in pairs for part in pair)
    counts = np.bincount(clip, minlength=most)
    sets = np.split(np.argsort(clip, kind="stable"), np.cumsum(counts)[:-1])
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
