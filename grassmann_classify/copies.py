"""Clips that are there twice: the same frames, or nearly the same subspace."""

from collections import Counter, namedtuple
from itertools import combinations

import numpy as np

import grassmann_sc as core
from grassmann_classify.building import padded
from grassmann_classify.clips import block_means
from grassmann_classify.messages import plural
from grassmann_classify.settings import MOST_P
from grassmann_sc import checks, subspaces

NEAR = 1 / 3  # of the median distance to the nearest set: nearer ones are copies,
AROUND = 4  # if they are as much nearer than the sets that are so many'th to either
CHANCE = 0.1  # pairs, at most, that would be so near by chance
SPECTRUM = 1 / 2  # of weighted subspaces: a new encoding changes faint directions alone
SMALL = 16  # pixels a side
SHARED = 1 / 2  # of the frames of the shorter set, at least, that copies share
COMMON = 10  # sets at most that hold a frame which tells of a copy
# of the squared distance of orthogonal subspaces: rounding, by the bytes of a number.
# Two of many windows of three channels may be nearer than a larger bound
EXACT = {4: 1e-6, 8: 1e-10}

# i < j: indices of sets; why: in words; same: are they the same, not only alike?
Copy = namedtuple("Copy", "i j why same")


def copies_of(collection):
    """copies among the sets of a Collection, by weighted subspaces if it has spectra."""
    if collection.spectra is None:
        return copies(collection.X, collection.sets, collection.clip)
    U, s = collection.spectra
    small = _in_small(collection.sets, collection.frame)
    if small and all(one.any() for one in small):
        U, s = padded([subspaces.singular_directions(one, MOST_P) for one in small])
    weights = subspaces.weights_of(s, SPECTRUM)[None]
    (K,) = subspaces.weighted_grams(U, weights)
    return _with_shared(_near(K), collection.sets, collection.clip)


def _in_small(sets, frame):
    """Sets of large images in small, which hides what encoders change; else []."""
    if not sets or len(frame) != 2 or max(frame) <= SMALL:
        return []
    if sets[0].shape[1] != np.prod(frame):  # descriptors
        return []
    films = (block_means(one.reshape(len(one), *frame), SMALL) for one in sets)
    return [film.reshape(len(film), -1) for film in films]


def copies(X=None, sets=None, clip=None):
    """Copies among sets, but for sets of one clip: subspaces X, rows, or both.

    They share half of their frames, or their subspaces agree: to rounding, or three
    times as nearly as a set and its nearest do in the median, and as either and the
    sets around it do. Frames are compared as the recipe leaves them: centred ones of
    different sets are not the same. clip (n,): the number of each set's clip; None:
    each set is a clip.
    """
    near = {}
    if X is not None:
        if checks.are_bases(X):
            X = X[:, :, : X.shape[1] - 1]  # all subspaces of dimension d are the same
        if X.shape[2]:
            near = _near(core.projection_kernel(np.ascontiguousarray(X)))
    return _with_shared(near, sets, clip)


def _with_shared(found, sets, clip):
    """All copies: those found, and those that share frames."""
    frames = [{row.tobytes() for row in rows} for rows in sets or []]
    for (i, j), shared in _shared(frames).items():
        shorter = min(len(sets[i]), len(sets[j]))
        if shared >= SHARED * shorter:
            why = f"{shared} of {plural(shorter, 'frame')} are the same"
            found[i, j] = Copy(i, j, why, frames[i] == frames[j])
    return [found[i, j] for i, j in sorted(found) if clip is None or clip[i] != clip[j]]


def _near(K):
    """{(i, j): Copy} of the subspaces that are the same, or nearly, by their Gram matrix.

    Of n sets spread evenly in m dimensions about 3 n x^m have their nearest set within x
    times the distance of the fourth. So where sets are dense in few dimensions, as
    windows of three channels, copies must be nearer than elsewhere. 1 / m is estimated
    as Levina and Bickel do (2004), in the median.
    """
    norm2 = K.diagonal().mean()
    exact = EXACT[K.dtype.itemsize] * norm2
    square = np.maximum(norm2 - K, 0)
    np.fill_diagonal(square, np.inf)
    around = np.sort(square, axis=1)[:, : min(AROUND, len(K) - 1)]
    median = np.median(around[:, 0])
    beside = np.minimum(around[:, -1:], around[:, -1])
    farther = np.log(np.maximum(around[:, -1:], exact) / np.maximum(around, exact)) / 2
    inverse = np.median(farther[:, :-1].mean(axis=1)) if len(K) > 2 else 0.0
    ratio = min(NEAR, (CHANCE / ((AROUND - 1) * len(K))) ** inverse)
    near = ratio**2 * np.minimum(median, beside)
    found = {}
    for i, j in np.argwhere(np.triu(square <= np.maximum(near, exact))).tolist():
        same = bool(square[i, j] <= exact)
        why = "the same subspace" if same else "nearly the same subspace"
        found[i, j] = Copy(i, j, why, same)
    return found


def _shared(frames):
    """{(i, j): how many distinct frames sets i < j share}."""
    holders = {}
    for i, of_set in enumerate(frames):
        for frame in of_set:
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
