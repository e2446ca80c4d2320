"""Folds of cross-validation on a training part, and what they keep together."""

import warnings
from collections import Counter

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from grassmann_classify.clips import clip_names
from grassmann_classify.words import to_stderr
from grassmann_sc import checks, tuning

N_FOLDS = 5
MOST_REPEATS = 5
# cross-validation on fewer sets is repeated, at most MOST_REPEATS times
MANY = 600


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
    found = []
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
            pairs = [*splitter.split(y, y, group)]
        found += [
            (fit, validate)
            for fit, validate in pairs
            if len(validate) and len(np.unique(y[fit])) > 1
        ]
    if not found:
        raise ValueError(
            "parameters are chosen by cross-validation, which needs a fold with two "
            "classes to learn from, got none"
        )
    return found


def folds_of_split(label, group, train, settings):
    """folds of a training part as indices of all sets, and how often they are repeated.

    They are repeated where the training part is small.
    """
    n_repeats = min(MOST_REPEATS, -(-MANY // len(train)))
    group = None if group is None else group[train]
    pairs = folds(label[train], group, settings.seed, n_repeats)
    return [(train[fit], train[validate]) for fit, validate in pairs], n_repeats


def kept_of_splits(collection, pairs):
    """kept_together of each split of the sets of a Collection."""
    clips = None
    if collection.clip is not None:
        clips = np.array(clip_names(collection.names, collection.clip))
    return [
        kept_together(collection.label, collection.group, clips, split)
        for split in pairs
    ]


def say_kept_together(collection, pairs):
    """Groups for the cross-validation of each split; says what the user should know.

    Each message is said once, with the splits that it holds for.
    """
    kept = kept_of_splits(collection, pairs)
    splits_of = {}
    for i, (_, reasons) in enumerate(kept, 1):
        for why in reasons:
            splits_of.setdefault(why, []).append(i)
    for why, numbers in splits_of.items():
        which = f"split {numbers[0]} of {len(pairs)}"
        if len(numbers) > 1:
            which = f"{len(numbers)} of {len(pairs)} splits"
        to_stderr(f"{which}: {why}" if len(pairs) > 1 else why)
    return [of_set for of_set, _ in kept]


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
    for kind, of_set in (("group", group), ("clip", clip)):
        if of_set is None:
            continue
        torn = tuning.shared_groups(split, of_set)
        alone = _classes_of_one(label, of_set[split.train].tolist())
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
            return of_set, reasons + _said_of_one(alone, label, kind)
    alone = _classes_of_one(label, range(len(label)))
    return None, reasons + _said_of_one(alone, label, "set")


def _classes_of_one(label, unit):
    """The classes of which all sets belong to one unit."""
    counts = Counter(c for c, _ in {*zip(label, unit)})
    return sorted(
        (c for c, count in counts.items() if count == 1), key=checks.natural_order
    )


def _said_of_one(alone, label, kind):
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
