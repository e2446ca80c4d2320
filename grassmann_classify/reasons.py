"""Which labelled sets speak for an answer, and which classes are possible."""

import numpy as np

from grassmann_sc import calibration

BECAUSE = 3  # sets named as what explains another
UNLIKE = "unlike all classes"


def of_class(shares, index, places):
    """What speaks for the class places[i] of each query i: [[(set, share), ...], ...].

    The sets of the largest positive ones of the core's Shares, at most BECAUSE; index
    (N,): the classes of the labelled sets.
    """
    found = []
    for indices, values, place in zip(*shares, places):
        mine = (indices >= 0) & (index[indices] == place) & (values > 0)
        pairs = zip(indices[mine].tolist(), values[mine].tolist())
        found.append([*pairs][:BECAUSE])
    return found


def explained(names, reasons):
    """What explains a set, in words: the labelled sets, and their shares."""
    return "; ".join(f"{names[i]} {share:.2g}" for i, share in reasons)


def labelled(name, label):
    """The name of a set, with its label if that is not the folder in its name."""
    return name if name.startswith(f"{label}/") else f"{name} ({label})"


def any_of(classes):
    """In words, all of these classes."""
    return "; ".join(map(str, classes))


def possible_classes(found, coverage):
    """In words, the classes that each of the Answers can have at this coverage.

    "" where no model codes. A class is out if its p-value is at most 1 - coverage.
    """
    if found.p_values is None:
        return [""] * len(found.names)
    level = calibration.level_of(coverage)
    words = []
    for p_values, known in zip(found.p_values, found.known):
        possible = any_of(found.classes[p_values > level]) or "none"
        if np.isnan(known):
            possible = ""
        words.append(UNLIKE if known <= level else possible)
    return words


def differs(found):
    """Where the model that codes says another class than the label (n,), of Answers."""
    if found.coded is None:
        return [False] * len(found.names)
    pairs = zip(found.coded, found.labels.tolist())
    return [coded is not None and coded != label for coded, label in pairs]
