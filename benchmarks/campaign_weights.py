"""Weights of the campaign: of whatever takes them a weight of k acts as k repetitions,
of 0 as absence, and a factor of all weights as nothing.
"""

import warnings

import numpy as np

import grassmann_sc as core
from benchmarks.campaign_calls import failing, hold, rng_of
from benchmarks.campaign_learning import draw_bases
from grassmann_sc import discriminative, estimators, intrinsic, learn, streams, tuning
from oracles import hat

SAME = 1e-6  # of atoms learned in sums of another order
FACTORS = [1e-300, 1e-30, 0.3, 2.0**-20, 1e30, 1e300]

# What takes weights: function (X, y, weights, seed) -> bases (N, d, p), and its costs.
OF_BASES = {
    "chordal_mean": lambda X, y, w, seed: (core.chordal_mean(X, w)[None], []),
    "karcher_mean": lambda X, y, w, seed: (
        intrinsic.karcher_mean(core.orthonormalize(X[:1] + 0.1 * X), w)[None],
        [],  # of points far apart there are several means
    ),
    "update_atoms": lambda X, y, w, seed: (
        learn.update_atoms(
            X, X[[0, -1]], core.gsc(X, X[[0, -1]], 0.1), sample_weight=w
        ),
        [],
    ),
    "gdl": lambda X, y, w, seed: learned(
        learn.gdl(X, 2, 0.3, n_iter=2, tol=0, sample_weight=w, rng=seed), w
    ),
    "gdl, local": lambda X, y, w, seed: learned(
        learn.gdl(X, 2, n_neighbors=1, n_iter=2, tol=0, sample_weight=w, rng=seed), w
    ),
    "gdl, relative": lambda X, y, w, seed: learned(
        learn.gdl(
            X, 2, 0.2, lam_scale="max", n_iter=2, tol=0, sample_weight=w, rng=seed
        ),
        w,
    ),
    "init_atoms": lambda X, y, w, seed: (
        learn.init_atoms(X, 2, rng=seed, sample_weight=w),
        [],
    ),
    "class_dictionaries": lambda X, y, w, seed: (
        learn.class_dictionaries(
            X, y, 1, 0.3, n_iter=2, sample_weight=w, rng=seed
        ).atoms,
        [],
    ),
    "discriminative_atoms": lambda X, y, w, seed: learned(
        discriminative.discriminative_atoms(
            X, y, 1, n_iter=3, tol=0, sample_weight=w, rng=seed
        ),
        w,
    ),
    "OnlineGDL": lambda X, y, w, seed: (
        streams.OnlineGDL(2, 0.3, rng=seed).partial_fit(X, w).atoms,
        [],
    ),
    "GrassmannDictionary": lambda X, y, w, seed: (
        estimators.GrassmannDictionary(2, lam=0.3, max_iter=2, random_state=seed)
        .fit(X, sample_weight=w)
        .components_,
        [],
    ),
    "OnlineGrassmannDictionary": lambda X, y, w, seed: (
        estimators.OnlineGrassmannDictionary(2, lam=0.3, random_state=seed)
        .partial_fit(X, sample_weight=w)
        .components_,
        [],
    ),
    "DiscriminativeDictionary": lambda X, y, w, seed: (
        estimators.DiscriminativeDictionary(1, max_iter=3, random_state=seed)
        .fit(X, y, sample_weight=w)
        .components_,
        [],
    ),
}


def learned(found, weights):
    """Atoms, and the last cost for each unit of weight."""
    return found.atoms, found.costs[-1:] / weights.sum()


def weights(seed, case):
    """One function in turn; every 14th case votes."""
    rng = rng_of("weights", seed, case)
    names = [*OF_BASES, "vote"]
    name = names[case % len(names)]
    with warnings.catch_warnings(), failing(name):
        warnings.simplefilter("ignore")
        if name == "vote":
            votes(rng)
        else:
            of_bases(rng, name)


def of_bases(rng, name):
    """Integer weights beside repetition and absence, and beside themselves times a
    factor.
    """
    d = int(rng.integers(2, 8))
    p = int(rng.integers(1, d))
    n = int(rng.integers(4, 14))
    X = draw_bases(rng, n, d, p).astype(
        rng.choice([np.float64, np.float64, np.float32])
    )
    y = np.array(["b", "a"])[np.arange(n) % 2]
    counts = rng.integers(0, 4, n)
    counts[[0, 1, -2, -1]] = rng.integers(
        1, 4, 4
    )  # both ends and both classes are there
    factor = float(rng.choice(FACTORS))
    seed = int(rng.integers(100))
    rows = np.repeat(np.arange(n), counts)
    used = np.flatnonzero(counts)
    w = counts.astype(float)

    def made(rows, weights):
        return OF_BASES[name](X[rows], y[rows], weights, seed)

    whole = made(np.arange(n), w)
    what = f"{X.dtype} {X.shape}, weights {counts.tolist()}, seed {seed}"
    with failing(f"beside repetition: {what}"):
        check_same(whole, made(rows, np.ones(len(rows))), X.dtype)
    with failing(f"beside absence: {what}"):
        check_same(whole, made(used, w[used]), X.dtype)
    with failing(f"times {factor:g}: {what}"):
        check_same(whole, made(np.arange(n), factor * w), X.dtype)


def check_same(ours, theirs, dtype):
    tol = SAME if dtype == np.float64 else 1e-2
    D, costs = ours
    D2, costs2 = theirs
    hold(D.shape == D2.shape, f"{D.shape} bases, not {D2.shape}", "other shapes")
    hold(
        np.abs(hat(D.astype(float)) - hat(D2.astype(float))).max() <= tol,
        f"other subspaces: by {np.abs(hat(D) - hat(D2)).max():.2g}",
        "other subspaces",
    )
    hold(
        np.allclose(costs, costs2, atol=tol),
        f"costs {costs}, not {costs2}",
        "other costs",
    )


def votes(rng):
    """Of several labels with most votes the one that is named first, in a plain loop."""
    n_voters = int(rng.integers(1, 7))
    labels = rng.choice(["b", "a", "c", ""], (n_voters, int(rng.integers(1, 6))))
    counts = rng.integers(0, 4, n_voters)
    counts[0] += not counts.any()
    factor = float(rng.choice(FACTORS))
    winners = []
    for column in labels.T:
        total = {}
        for label, count in zip(column, counts):
            if count:
                total[label] = total.get(label, 0) + count
        winners.append(max(total, key=total.get))
    for given, w in (
        (labels, counts),
        (labels, factor * counts),
        (np.repeat(labels, counts, axis=0), None),
    ):
        found = tuning.vote(given, w).tolist()
        hold(
            found == winners,
            f"{found}, not {winners}: of {labels.tolist()}, weights {w}",
            "other winners",
        )
