"""Splits of sets into training and test parts, of a file, by groups, at random; folds."""

import csv
import re
import warnings
from collections import Counter

import numpy as np
from sklearn.model_selection import (
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from grassmann_classify.words import clip_names, first_of, plural, printable, to_stderr
from grassmann_sc import shared, tuning

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with which cells begin that spreadsheets run
N_FOLDS = 5
MOST_REPEATS = 5
# cross-validation on fewer sets is repeated, at most MOST_REPEATS times
FEW_SETS = 600


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
    tests = {}
    for train, test in pairs:
        for c in np.setdiff1d(label[test], label[train]).tolist():
            tests[c] = tests.get(c, 0) + 1
    return [
        f"class {c} has clips to test and none to train in {n} of {len(pairs)} splits: no "
        "answer there can be right"
        for c, n in tests.items()
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


# ------------------------------------------------------------------------------ folds


def check_classes(label, where=""):
    """ValueError unless there are two classes among the labels; where: its first words."""
    classes = np.unique(label)
    if len(classes) < 2:
        got = f"one: {classes[0]}" if len(classes) else "none"
        raise ValueError(
            f"{where}methods are chosen on sets of at least two classes, got {got}"
        )


def folds(y, group, seed, repeats=1):
    """[(train, test), ...] for cross-validation on training sets with labels y.

    group: sets of one group stay in one fold if there are two groups or more.
    """
    check_classes(y)
    counts = np.unique(y, return_counts=True)[1]
    if counts.max() < 2:
        raise ValueError(
            "parameters are chosen by cross-validation, which needs two training sets "
            "of a class: every class has one"
        )
    n = max(2, min(N_FOLDS, counts.min()))
    rng = np.random.default_rng(seed)
    if group is not None:
        group = np.unique(group, return_inverse=True)[1]
    pairs = []
    for repeat in range(repeats):
        if group is None or group.max() == 0:
            splitter = StratifiedKFold(n, shuffle=True, random_state=seed + repeat)
        else:  # of older scikit-learn, its shuffle leaves groups of alike classes in order
            n_groups = group.max() + 1
            group = rng.permutation(n_groups)[group]
            splitter = StratifiedGroupKFold(min(n, n_groups))
        with warnings.catch_warnings():  # kept_together says which classes have one set
            warnings.filterwarnings(
                "ignore", "The least populated class in y has only 1"
            )
            repeated = [*splitter.split(y, y, group)]
        pairs += [
            (fit, validate)
            for fit, validate in repeated
            if len(validate) and len(np.unique(y[fit])) > 1
        ]
    if not pairs:
        raise ValueError(
            "parameters are chosen by cross-validation, which needs a fold with two "
            "classes to learn from, got none"
        )
    return pairs


def folds_of_split(label, group, train, settings):
    """folds of a training part as indices of all sets, and how often they are repeated.

    They are repeated where the training part is small.
    """
    n_repeats = min(MOST_REPEATS, -(-FEW_SETS // len(train)))
    group = None if group is None else group[train]
    pairs = folds(label[train], group, settings.seed, n_repeats)
    return [(train[fit], train[validate]) for fit, validate in pairs], n_repeats


def say_kept_together(collection, pairs):
    """Groups for the cross-validation of each split; says what the user should know.

    Each message is said once, with the splits that it holds for.
    """
    clips = collection.clip
    if clips is not None:
        clips = np.array(clip_names(collection.names, clips))
    kept = []
    splits_of = {}
    for i, split in enumerate(pairs, 1):
        units, reasons = kept_together(collection.label, collection.group, clips, split)
        kept.append(units)
        for why in reasons:
            splits_of.setdefault(why, []).append(i)
    for why, numbers in splits_of.items():
        where = f"split {numbers[0]} of {len(pairs)}"
        if len(numbers) > 1:
            where = f"{len(numbers)} of {len(pairs)} splits"
        to_stderr(f"{where}: {why}" if len(pairs) > 1 else why)
    return kept


def kept_together(label, group, clip, split):
    """(What cross-validation on a training part keeps together (n,), messages).

    It keeps groups together, else the sets of each clip, else None. The messages say
    why it does not keep groups or clips together, and which classes it cannot judge.
    label (n,) of all sets; group, clip (n,): names of theirs, or None.
    """
    reasons = []
    label = label[split.train].tolist()
    if clip is not None and len(np.unique(clip)) == len(clip):
        clip = None
    for kind, units in (("group", group), ("clip", clip)):
        if units is None:
            continue
        torn = tuning.shared_groups(split, units)
        alone = _classes_of_one(label, units[split.train].tolist())
        if len(torn):
            reasons.append(
                f"{kind} {torn[0]} has sets in both parts, {len(torn)} in all have: "
                f"cross-validation does not keep a {kind} together"
            )
        elif len(alone) == len({*label}):
            reasons.append(
                f"no class has two {kind}s to train: cross-validation does not keep a "
                f"{kind} together"
            )
        else:
            return units, reasons + _said_of_alone(alone, label, kind)
    alone = _classes_of_one(label, range(len(label)))
    return None, reasons + _said_of_alone(alone, label, "set")


def _classes_of_one(label, unit):
    """The classes of which all sets belong to one unit."""
    counts = Counter(c for c, _ in {*zip(label, unit)})
    return sorted(
        (c for c, count in counts.items() if count == 1), key=shared.natural_order
    )


def _said_of_alone(alone, label, kind):
    """The message on classes with one group, clip or set to train."""
    n_classes = len({*label})
    if len(alone) in (0, n_classes):  # if all have one, folds raises
        return []
    who = (
        f"class {alone[0]} has"
        if len(alone) == 1
        else (f"{len(alone)} of {n_classes} classes, {alone[0]} the first, have")
    )
    whom = "it" if len(alone) == 1 else "them"
    return [
        f"{who} one {kind} to train: cross-validation, which needs two, tells nothing of "
        f"{whom}"
    ]
