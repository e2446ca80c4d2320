"""Clips that are there twice: with the same frames, or in another encoding."""

from collections import Counter, namedtuple
from itertools import combinations, pairwise

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from sklearn.neighbors import NearestNeighbors

from grassmann_classify.clips import block_means, threaded
from grassmann_classify.words import grouped

SHARED = 1 / 2  # of the frames of the shorter set, at least, that copies share
COMMON = 10  # sets at most that hold a frame which tells of a copy
LEAST = 4  # pixels a side of images: smaller ones are vectors
SMALL = 8  # pixels a side of images in small, which hide what an encoder changes
AROUND = 4  # sets in small that are looked at around each
NEAR = 1 / 3  # of the distance at which others lie: nearer ones are copies
ROUNDING = 1e-3  # of the norm of images in small
PROBES = 12  # directions whose shadows on subspaces tell these apart
EXACT = {4: 1e-3, 8: 1e-5}  # of a shadow: rounding, by the bytes of a number

# i < j: indices of sets; why: in words
Copy = namedtuple("Copy", "i j why")


def copies_of(collection):
    """The Copies among the sets of a Collection, but for sets of one clip.

    Sets are copies if they share half as many different rows as the shorter one has
    rows, or are equal, as the recipe leaves them (centred rows of different sets are not
    the same); or if the rows are images that are much alike in small, which the two sets
    of a class that has no others may well be; without rows, if their subspaces are equal.
    """
    sets = collection.sets
    clip = collection.clip
    pairs = (
        _equal_subspaces(collection.X)
        if sets is None
        else _near_in_small(sets, collection.frame, collection.label)
        | _with_equal_frames(sets)
    )
    return [Copy(i, j, pairs[i, j]) for i, j in sorted(pairs) if clip[i] != clip[j]]


def joined_copies(pairs, unit, n):
    """Units (n,) of sets, of which those of Copies are one, whatever their labels.

    unit (n,): names of what is kept together before, or None.
    """
    if not pairs:
        return unit
    index = np.arange(n) if unit is None else np.unique(unit, return_inverse=True)[1]
    first, second = index[np.array([pair[:2] for pair in pairs]).T]
    graph = coo_array((np.ones(len(pairs)), (first, second)), shape=(n, n))
    return connected_components(graph, directed=False)[1][index]


def across(pairs, splits):
    """The Copies of which one trains and the other is tested in some split."""
    parts = [({*train.tolist()}, {*test.tolist()}) for train, test in splits]
    return [
        pair
        for pair in pairs
        if any({*pair[:2]} & train and {*pair[:2]} & test for train, test in parts)
    ]


def _with_equal_frames(sets):
    """{(i, j): why} of the sets of rows that share half, told by hashes."""
    hashes = threaded(
        lambda rows: tuple(hash(row.tobytes()) for row in rows), sets, "copies"
    )
    frames = [*map(set, hashes)]
    twins = grouped((numbers, i) for i, numbers in enumerate(hashes))
    holders = grouped(
        (number, i) for i, numbers in enumerate(frames) for number in numbers
    )
    shared = Counter()
    common = Counter()
    for owners in holders.values():
        if len(owners) <= COMMON:
            shared.update(combinations(owners, 2))
        else:  # as of windows that overlap much: each with the next
            common.update(pairwise(owners))
    # a single one, as a black frame, tells nothing
    shared.update({pair: number for pair, number in common.items() if number > 1})
    # equal sets, however many, each with the next
    pairs = {
        pair: "all frames are the same"
        for owners in twins.values()
        if len(owners) > COMMON
        for pair in pairwise(owners)
    }
    for (i, j), number in shared.items():
        shorter = min(len(sets[i]), len(sets[j]))
        alike = number == len(frames[i]) == len(frames[j])  # but for order and repeats
        if alike and np.array_equal(sets[i], sets[j]):
            number = shorter
        if number >= SHARED * shorter and (i, j) not in pairs:
            pairs[i, j] = f"{number} of {shorter} frames are the same"
    return pairs


def _equal_subspaces(X):
    """{(i, j): why} of equal subspaces X (n, d, p), told by a few projections."""
    X = X[:, :, : X.shape[1] - 1]  # all subspaces of dimension d are the same
    if X.shape[2] == 0:
        return {}
    probes = np.random.default_rng(0).standard_normal((PROBES, X.shape[1]))
    shadows = np.linalg.norm(probes.astype(X.dtype) @ X, axis=2)
    bound = EXACT[X.dtype.itemsize] * shadows.mean()
    return dict.fromkeys(cKDTree(shadows).query_pairs(bound), "the same subspace")


def _near_in_small(sets, frame, label):
    """{(i, j): why} of sets of images (height, width) that are much alike in small.

    Classes of two, by label (n,) or None, tell not how far their sets lie apart.

    What is compared is sum_k s_k u_k u_k^T of a set's singular directions, so that
    faint ones, which an encoder changes, hardly count. Copies are nearer than a third
    of the median distance to the second nearest set, since the nearest may be a copy
    of most, and of either's to its fourth.
    """

    are_images = len(frame) == 2 and min(frame) >= LEAST
    if len(sets) < 2 or not are_images or sets[0].shape[1] != np.prod(frame):
        return {}

    def look(rows):
        film = block_means(rows.reshape(len(rows), *frame), SMALL)
        U, s, _ = np.linalg.svd(film.reshape(len(film), -1).T, full_matrices=False)
        norm = max(np.linalg.norm(s), np.finfo(float).tiny)
        return np.float32((U * s) @ U.T / norm).ravel()

    looks = NearestNeighbors(n_neighbors=min(AROUND, len(sets) - 1))
    apart, around = looks.fit(threaded(look, sets, "copies")).kneighbors()
    second = apart[:, min(1, apart.shape[1] - 1)]
    usual = np.minimum(apart[:, -1], np.median(second))
    near = NEAR * np.minimum(usual[:, None], usual[around])
    if label is not None:
        _, index, sizes = np.unique(label, return_inverse=True, return_counts=True)
        near[(index[:, None] == index[around]) & (sizes[index] == 2)[:, None]] = 0
    first, k = np.nonzero(apart <= np.maximum(near, ROUNDING))
    alike = np.sort([first, around[first, k]], axis=0).T.tolist()
    return dict.fromkeys(map(tuple, alike), "nearly the same images")
