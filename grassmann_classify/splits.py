"""Splits of sets into training and test parts, of a file, by groups, at random; folds."""

import csv
import os
import re
import unicodedata
import warnings
from collections import Counter, namedtuple
from pathlib import PurePosixPath

import numpy as np
from sklearn.model_selection import (
    LeaveOneGroupOut,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from grassmann_classify.words import (
    FORMULA,
    clip_names,
    first_of,
    grouped,
    plural,
    printable,
    to_stderr,
)
from grassmann_sc import shared, tuning

QUOTED = rf"\A'(?={FORMULA.pattern})"
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
            # tables.write_rows puts a ' before what looks like a formula
            rows = [
                (reader.line_num, [re.sub(QUOTED, "", cell) for cell in row])
                for row in reader
                if row
            ]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must be a CSV file in UTF-8, got {error}") from None
    (_, header), *rows = rows or [(1, [])]
    return header, rows


# Splits by the names of clips. how: in words; pairs: [(the split in words, names that
# train, names that are tested), ...]
Parts = namedtuple("Parts", "how pairs")


def read_parts(path, header, rows, columns, clips, how):
    """({clip: {column: cell}} of a CSV file, each row checked; the Parts of columns).

    columns: those that hold train, test or nothing; clips: the names of those that are
    there.
    """
    name_of = _meaning_clips([*clips])
    cells_of = {}
    lines = {}
    for line, row in rows:
        if not any(map(str.strip, row)):  # as spreadsheets leave it
            continue
        if len(row) != len(header):
            raise ValueError(
                f"{path}: line {line} must have {plural(len(header), 'column')}, got "
                f"{len(row)}"
            )
        cells = dict(zip(header, map(str.strip, row)))
        name = name_of(cells["clip"])
        if not cells["clip"]:
            raise ValueError(f"{path}: line {line} must name a clip, got none")
        if name in lines:
            raise ValueError(
                f"{path}: must name a clip once, got {name} in lines {lines[name]} and "
                f"{line}"
            )
        wrong = sorted({cells[column] for column in columns} - {"train", "test", ""})
        if wrong:
            raise ValueError(
                f"{path}: line {line} must hold a clip and train, test or nothing, got "
                f"{wrong[0]!r}"
            )
        cells_of[name] = cells
        lines[name] = line
    there = dict.fromkeys(clips)
    unless_labelled = " and have a label" * ("label" not in header)
    nowhere = [f"{name} in line {k}" for name, k in lines.items() if name not in there]
    if nowhere:
        raise ValueError(
            f"{path}: must name clips that are there{unless_labelled}, got "
            f"{first_of(nowhere, ', ')}"
        )
    named = [(name, cells_of[name]) for name in there if name in cells_of]
    pairs = [
        (
            f"{path}: split {column!r}",
            [name for name, cells in named if cells[column] == "train"],
            [name for name, cells in named if cells[column] == "test"],
        )
        for column in columns
    ]
    return cells_of, Parts(how, pairs)


def _meaning_clips(names):
    """A function of a cell: the name of the clip that it means, or the cell.

    A clip is named by its path, without its ending if that tells which it is.
    """
    means = _meaning_one_of(names, names)
    means_stem = _meaning_one_of((os.path.splitext(n)[0] for n in names), names)
    there = {*names}

    def name_of(cell):
        for path in (cell, cell.replace("\\", "/")):
            name = printable(PurePosixPath(path), but="")
            for meant in (means(name), means_stem(name)):
                if meant in there:
                    return meant
        return name

    return name_of


def _meaning_one_of(texts, names):
    """A function of a text: the name that it means if it means one alone, or the text.

    texts: what means each of the names. They are compared as people read them: some
    systems store ü as u and two dots.
    """
    forms = grouped(
        (unicodedata.normalize("NFC", text), name) for text, name in zip(texts, names)
    )

    def meant(text):
        alike = forms.get(unicodedata.normalize("NFC", text), [])
        return alike[0] if len(alike) == 1 else text

    return meant


def parts_of_file(path, clips):
    """The Parts of a CSV file, which names clips as class/clip.

    A header clip,NAME,NAME,... and a line for each clip with train, test or nothing in
    each column. clips: the names of those that are there.
    """
    header, rows = read_rows(path)
    columns = header[1:]
    if not columns or header[0] != "clip" or len({*header}) < len(header):
        raise ValueError(
            f"{path}: the first line must be clip,NAME,... with a column for each "
            f"split, got {','.join(header)!r}"
        )
    how = f"splits of {printable(path)}"
    return read_parts(path, header, rows, columns, clips, how)[1]


def split_by_parts(parts, names, clip):
    """The splits, as tuning.Split, of Parts; names, clip (n,): of all sets.

    If a clip was cut into several sets, its sets stay together. Clips without sets are
    passed over.
    """
    sets = grouped((name, i) for i, name in enumerate(clip_names(names, clip)))
    pairs = []
    for what, *sides in parts.pairs:
        train, test = (
            [i for name in side for i in sets.get(name, [])] for side in sides
        )
        if not train or not test:
            raise ValueError(
                f"{what} must have clips to train and to test, got {len(train)} and "
                f"{len(test)} that could be read"
            )
        pairs.append((train, test))
    return tuning.check_splits(pairs, len(names))


def splits_of(settings, paths, collection, parts):
    """[(train, test), ...] and how they came about.

    parts: Parts, or None: by groups, if there are any, else at random.
    """
    if parts:
        how = parts.how
        pairs = split_by_parts(parts, collection.names, collection.clip)
    elif collection.group is not None:
        how = "one group left out at a time"
        pairs = split_by_group(collection.label, collection.group)
    else:
        share = (
            f"{100 * settings.train:g} %"
            if settings.train < 1
            else f"{plural(int(settings.train), 'clip')} a class"
        )
        how = f"random splits, {share} to train"
        pairs = split_at_random(
            collection.label,
            settings.train,
            settings.repeats,
            settings.seed,
            collection.clip,
        )
    for train, _ in pairs:
        check_foldable(collection.label[train], f"{how}: in a training part, ")
    return pairs, how


def strangers(label, pairs):
    """What to say of classes that are tested in a split and have nothing to train."""
    tests = Counter(
        c
        for train, test in pairs
        for c in np.setdiff1d(label[test], label[train]).tolist()
    )
    return [
        f"class {c} has clips to test and none to train in {n} of {len(pairs)} splits: no "
        "answer there can be right"
        for c, n in tests.items()
    ]


def split_by_group(label, group):
    """Each group once as the test part, the others as the training part."""
    if len(np.unique(group)) < 2:
        raise ValueError(
            f"leaving one group out needs two groups, got one: {group[0]}; without groups "
            "splits are random"
        )
    return tuning.check_splits(
        LeaveOneGroupOut().split(label, label, group), len(label), group
    )


def split_at_random(label, share, repeats, seed, clip=None):
    """Random splits with this share, or whole number, of each class's clips to train.

    repeats: the number of splits. clip (n,): the number of each set's clip, whose sets
    stay together; None: each set is a clip.
    """
    clip = np.arange(len(label)) if clip is None else clip
    _, first, clip = np.unique(clip, return_index=True, return_inverse=True)
    members = np.split(
        np.argsort(clip, kind="stable"), np.cumsum(np.bincount(clip))[:-1]
    )
    pairs = [
        [np.concatenate([members[c] for c in part]) for part in pair]
        for pair in _random_pairs(label[first], share, repeats, seed)
    ]
    return tuning.check_splits(pairs, len(label), clip)


def _random_pairs(label, share, repeats, seed):
    """Pairs of indices; share: of each class, or a whole number of its clips."""
    classes, counts = np.unique(label, return_counts=True)
    needed = 1 + max(1, int(share))
    if counts.min() < needed:
        raise ValueError(
            f"--train {share:g} needs {needed} clips of each class, "
            f"{classes[counts.argmin()]} has {counts.min()} that could be read"
        )
    each = share * counts
    if share < 1 <= min(each.min(), (counts - each).min()) and (each % 1 == 0).all():
        splitter = StratifiedShuffleSplit(repeats, train_size=share, random_state=seed)
        return [*splitter.split(label, label)]
    # of a share classes of one size have as many on either side, at least one
    numbers = (
        (each + 0.5).astype(int).clip(1, counts - 1)
        if share < 1
        else np.full(len(classes), int(share))
    )
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(repeats):
        drawn = [
            rng.permutation(np.flatnonzero(label == name))[:number]
            for name, number in zip(classes, numbers)
        ]
        train = np.sort(np.concatenate(drawn))
        pairs.append((train, np.setdiff1d(np.arange(len(label)), train)))
    return pairs


# ------------------------------------------------------------------------------ folds


def check_classes(label, where=""):
    """ValueError unless there are two classes among the labels; where: its first words."""
    classes = np.unique(label)
    if len(classes) < 2:
        got = f"one: {classes[0]}" if len(classes) else "none"
        raise ValueError(
            f"{where}methods are chosen on sets of at least two classes, got {got}"
        )


def check_foldable(label, where=""):
    """check_classes, and ValueError unless a class has two sets."""
    check_classes(label, where)
    if np.unique(label, return_counts=True)[1].max() < 2:
        raise ValueError(
            f"{where}parameters are chosen by cross-validation, which needs two training "
            "sets of a class: every class has one"
        )


def folds(y, group, seed, repeats=1):
    """[(train, test), ...] for cross-validation on training sets with labels y.

    group: sets of one group stay in one fold if there are two groups or more. Sets are
    not tested whose class has none to learn from in a fold.
    """
    check_foldable(y)
    n = max(2, min(N_FOLDS, np.unique(y, return_counts=True)[1].min()))
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
        for fit, validate in repeated:
            validate = validate[np.isin(y[validate], y[fit])]
            if len(validate) and len(np.unique(y[fit])) > 1:
                pairs.append((fit, validate))
    if not pairs:
        raise ValueError(
            "parameters are chosen by cross-validation, which needs a fold with two "
            "classes to learn from, got none"
        )
    return pairs


def without_peers(label, unit=None):
    """Which sets (n,) have no other of their class, or none of another unit (n,)."""
    unit = np.arange(len(label)) if unit is None else unit
    index, unit = (np.unique(names, return_inverse=True)[1] for names in (label, unit))
    pairs = np.unique(np.stack([index, unit]), axis=1)
    return np.bincount(pairs[0])[index] < 2


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

    Each message is said once, with the number of splits that it holds for.
    """
    clips = np.array(clip_names(collection.names, collection.clip))
    kept = [
        kept_together(collection.label, collection.group, clips, split)
        for split in pairs
    ]
    messages = Counter(why for _, reasons in kept for why in reasons)
    to_stderr(
        *(
            f"{n} of {len(pairs)} splits: {why}" if len(pairs) > 1 else why
            for why, n in messages.items()
        )
    )
    return [units for units, _ in kept]


def kept_together(label, group, clip, split):
    """(What cross-validation on a training part keeps together (n,), messages).

    It keeps groups together, else the sets of each clip, else None. The messages say
    why it does not keep groups or clips together, and which classes it cannot judge.
    label (n,) of all sets; group, clip (n,): names of theirs, or None.
    """
    if clip is not None and len(np.unique(clip)) == len(clip):
        clip = None
    reasons = []
    kinds = ("group", group), ("clip", clip), ("set", np.arange(len(label)))
    for kind, units in kinds:
        if units is None:
            continue
        torn = tuning.shared_groups(split, units)
        trained = label[split.train]
        alone = without_peers(trained, units[split.train])
        if len(torn):
            reasons.append(
                f"{kind} {torn[0]} has sets in both parts, {len(torn)} in all have: "
                f"cross-validation does not keep a {kind} together"
            )
        elif kind != "set" and alone.all():
            reasons.append(
                f"no class has two {kind}s to train: cross-validation does not keep a "
                f"{kind} together"
            )
        else:
            break
    if alone.any() and not alone.all():  # if all have one, folds raises
        classes = np.unique(trained[alone]).tolist()
        names = [*map(str, sorted(classes, key=shared.natural_order))]
        reasons.append(
            f"cross-validation needs two {kind}s of a class to train and tells nothing of "
            f"{plural(len(names), 'class')} with one: {first_of(names, ', ')}"
        )
    return None if kind == "set" else units, reasons
