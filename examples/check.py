"""Which labels may be wrong, and which clips are there twice: classify with --check.

Each labelled set is coded over all others, never over itself or what is kept together
with it. Suspect is a label for which less speaks than for another class.
"""

import copy
from collections import Counter, namedtuple
from itertools import combinations

import numpy as np

import grassmann_sc as core
from examples.baselines import every_method
from examples.clips import some
from examples.comparison import evaluate, of_class, say_kept_together, told
from grassmann_sc import tuning

NEAR = 1 / 3  # of the median distance to the nearest set: nearer ones are copies
SHARED = 1 / 2  # of the frames of the shorter set, at least, that copies share
COMMON = 10  # sets at most that hold a frame which tells of a copy
EXACT = 1e-6  # of the squared distance of orthogonal subspaces: rounding

# i, j: indices of sets; why: in words
Copy = namedtuple("Copy", "i j why")
# how: the method with what it chose; order (n,): the sets, most suspect first;
# suspicion is -inf where nothing else could speak for the label;
# suspicion (n,), suspected (n,): the class that another label would be; names (n,): with
# labels; reasons: of_class of each set, for that class
Suspects = namedtuple("Suspects", "how order suspicion suspected names reasons")


def copies(collection):
    """Copies among the sets of a Collection, but for sets of one clip.

    They share half of their frames, or their subspaces agree: to rounding, or three
    times as nearly as a set and its nearest do in the median. Frames are compared as
    the recipe leaves them: centred ones of different sets are not the same.
    """
    n, d, p = collection.X.shape
    p = max(1, min(p, d - 1))  # all subspaces of dimension d are the same
    X = np.ascontiguousarray(collection.X[:, :, :p])
    square = np.maximum(p - core.projection_kernel(X), 0)
    np.fill_diagonal(square, np.inf)
    near = NEAR**2 * np.median(square.min(axis=1))
    found = {}
    for i, j in np.argwhere(square <= max(near, EXACT * p)).tolist():
        same = square[i, j] <= EXACT * p
        found[i, j] = "the same subspace" if same else "nearly the same subspace"
    for (i, j), shared in _shared_frames(collection.sets).items():
        shorter = min(len(collection.sets[i]), len(collection.sets[j]))
        if shared >= SHARED * shorter:
            found[i, j] = f"{shared} of {some(shorter, 'frame')} are the same"
    clip = np.arange(n) if collection.clip is None else collection.clip
    return [
        Copy(*at, found[at])
        for at in sorted(found)
        if at[0] < at[1] and clip[at[0]] != clip[at[1]]
    ]


def _shared_frames(sets):
    """{(i, j): how many distinct frames sets i < j share}."""
    holders = {}
    for i, rows in enumerate(sets or []):
        for frame in {row.tobytes() for row in rows}:
            holders.setdefault(hash(frame), []).append(i)
    return Counter(
        pair
        for where in holders.values()
        if len(where) <= COMMON
        for pair in combinations(where, 2)
    )


def across(found, pairs):
    """The copies of which one trains and the other is tested in some split."""
    return [
        one
        for one in found
        if any(
            np.isin(first, train).all() and np.isin(second, test).all()
            for train, test in pairs
            for first, second in ((one.i, one.j), (one.j, one.i))
        )
    ]


def suspects_among(collection, inputs, settings):
    """The Suspects among the labels of a Collection, by gSC with what it chooses."""
    n = len(collection.label)
    classes, place = np.unique(collection.label, return_inverse=True)
    split = tuning.Split(np.arange(n), np.arange(0))
    (group,) = say_kept_together(collection, [split])
    settings = copy.copy(settings)
    settings.methods = None

    def methods(*arguments):
        rows = every_method(inputs)(*arguments)
        return [row for row in rows if row.name.startswith("gSC, labelled")]

    (row,) = evaluate(inputs, place, group, *split, methods, settings)
    if row.failed:
        raise ValueError(f"{row.method.name} failed: {row.failed}")
    name = row.chosen.get("recipe")
    X = (collection if name is None else inputs.by(name)).X[:, :, : row.chosen["p"]]
    K = core.projection_kernel(np.ascontiguousarray(X))
    how = {"lam": row.chosen["lam"], "lam_scale": "max"}
    rule = row.chosen["rule"]
    scores, _ = tuning.left_out_scores(K, place, group, rule=rule, **how)
    suspicion = tuning.suspicion(scores, place)
    scores[np.arange(n), place] = -np.inf
    codes = tuning.left_out_codes(K, group, **how)
    shares = core.score_shares(codes, K, K, place, norm2=X.shape[2], rule=rule)
    suspicion[_alone(place, group)] = -np.inf
    suspected = scores.argmax(axis=1)
    # a zero code would name the set itself
    shares.indices[~codes.any(axis=1)] = -1
    return Suspects(
        f"{row.method.name}, {told(row.chosen)}",
        np.argsort(-suspicion, kind="stable"),
        suspicion,
        classes[suspected],
        [labelled(collection, i) for i in range(n)],
        of_class(shares, place, suspected),
    )


def _alone(place, group):
    """Which sets (n,) have no other of their class that could speak for it."""
    kept = np.arange(len(place)) if group is None else np.asarray(group)
    alone = np.zeros(len(place), bool)
    for c in np.unique(place):
        alone |= (place == c) & (len(np.unique(kept[place == c])) < 2)
    return alone


def explained(names, reasons):
    """What explains a set, in words: the labelled sets, and their shares."""
    return "; ".join(f"{names[i]} {share:.2g}" for i, share in reasons)


def labelled(collection, i):
    """The name of a set, with its label if that is not the folder in its name."""
    name = collection.names[i]
    label = collection.label[i]
    return name if name.startswith(f"{label}/") else f"{name} ({label})"
