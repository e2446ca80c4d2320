"""What methods compute where the suite itself draws no problems, against plain loops:
votes and searches, boxes and triplets of textures, and frames in float32.
"""

import itertools
from collections import Counter

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from arrays import worst_difference
from grassmann_sc import kernels, tuning
from grassmann_sc.baselines import textures
from grassmann_sc.strategies import bases, explicit_gram
from oracles import seeds

LABELS = st.sampled_from(["b", "a", "c", ""])


@given(st.lists(st.lists(LABELS, min_size=4, max_size=4), min_size=1, max_size=6))
def test_votes_are_counted(labels):
    """Of several labels with most votes the one that is named first wins."""
    winners = [Counter(column).most_common(1)[0][0] for column in zip(*labels)]
    assert tuning.vote(labels).tolist() == winners


@settings(max_examples=100)
@given(seeds, st.integers(9, 20))
def test_a_search_is_cross_validation_in_a_plain_loop(seed, n):
    rng = np.random.default_rng(seed)
    y = np.array(["ape", "bee", "cat"])[np.arange(n) % 3]
    parts = np.array_split(rng.permutation(n), 3)
    folds = [(np.setdiff1d(np.arange(n), part), part) for part in parts]
    X = bases(rng, n, 6, 3)
    grams = {("linear", p): explicit_gram(X[..., :p], X[..., :p]) for p in (1, 2, 3)}
    choice = tuning.Search(y, folds, tuning.nearest_predictions).choose(grams)
    right = np.empty(n)
    for fit, asked in folds:
        nearest = fit[grams[choice.gram][np.ix_(asked, fit)].argmax(axis=1)]
        right[asked] = y[nearest] == y[asked]
    assert np.isclose(choice.score, right.mean(), rtol=1e-12)
    assert np.array_equal(choice.shares[choice.gram, choice.parameters], right)


@settings(max_examples=100)
@given(seeds, st.tuples(*[st.integers(8, 12)] * 3))
def test_boxes_and_triplets_are_counted_one_by_one(seed, shape):
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 3, shape)
    sides = np.array([1, 2, 3])
    for level, found in enumerate(textures.box_dimensions(levels, 3, sides)):
        boxes = [{*map(tuple, np.argwhere(levels == level) // s)} for s in sides]
        fit = np.polyfit(np.log(sides), np.log([len(box) for box in boxes]), 1)
        assert abs(found + fit[0]) <= 1e-7
    y = np.arange(6) % rng.integers(2, 4)
    D = rng.uniform(size=(2, 6, 6))
    learned = textures.distance_weights(D, y, 0.1, n_iter=200, rng=0)
    w = learned.weights
    hinges = [
        max(0, 1 - w @ (D[:, i, k] - D[:, i, j]))
        for i, j, k in itertools.product(range(6), repeat=3)
        if i != j and y[i] == y[j] and y[i] != y[k]
    ]
    assert np.isclose(learned.objective[-1], 0.05 * w @ w + np.mean(hinges), rtol=1e-7)


# frames that float32 does not take lightly, of noise (20, 5, 40)
FRAMES = {
    "near": lambda noise: noise[:, :1] + 1e-3 * noise,
    "far": lambda noise: 100 + noise,
    "small": lambda noise: 1e-6 * noise,
    "large": lambda noise: 1e6 * noise,
    "walks": lambda noise: np.cumsum(noise, axis=2),
    "images": lambda noise: np.clip(np.rint(128 + 64 * noise), 0, 255),
}
KERNELS = {
    "rbf": lambda frames: kernels.rbf(kernels.median_gamma(frames)),
    "narrow": lambda frames: kernels.rbf(8 * kernels.median_gamma(frames)),
    "polynomial": lambda frames: kernels.polynomial(2),
    "linear": lambda frames: kernels.linear(),
}


@settings(max_examples=150)
@given(
    seeds, st.sampled_from([*FRAMES]), st.sampled_from([*KERNELS]), st.integers(1, 3)
)
def test_float32_costs_little(seed, frames, kernel, p):
    """Gram matrices, and what its codes cost more."""
    noise = np.random.default_rng(seed).standard_normal((20, 5, 40))
    single = FRAMES[frames](noise).astype(np.float32)
    both = [single, single.astype(float)]
    kernel = KERNELS[kernel](both[1])
    try:
        all_bases = [kernels.kernel_bases(F, kernel, p) for F in both]
    except ValueError:
        assume(False)  # refused
    K, expected = (
        kernels.kernel_gram(F, A, kernel=kernel) for F, A in zip(both, all_bases)
    )
    assert worst_difference(K, expected) <= 1e-4
    for code, how, lam in ((kernels.kgsc, 0.1, 0.1), (kernels.kglc, 3, 0)):
        y = np.array([code(F[:5], F[5:], how, kernel=kernel, p=p) for F in both], float)
        l1 = np.abs(y).sum(axis=2)
        costs = ((y @ expected[5:, 5:] - 2 * expected[:5, 5:]) * y).sum(
            axis=2
        ) + lam * l1
        assert (costs[0] - costs[1] <= 1e-5 * p * (1 + l1.max(axis=0)) ** 2).all()
