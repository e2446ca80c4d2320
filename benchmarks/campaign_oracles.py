"""What each method of the campaign computes, against dense NumPy, SciPy and plain
loops.

Each oracle draws a problem and gives pairs (result, what it must be); a case holds if
all pairs are alike to TOL of the largest number, or to the tolerance that stands third.
"""

import inspect
import itertools
import tempfile
import warnings
from collections import Counter

import numpy as np
import scipy.optimize

import grassmann_sc as core
import oracles as plain
from benchmarks.campaign_calls import client_of_threads, hold, rng_of, worst_difference
from grassmann_sc import (
    discriminative,
    intrinsic,
    kernels,
    projected,
    subspaces,
    tuning,
)
from grassmann_sc.baselines import dynamics, hulls, sets, tangent, tensors, textures
from grassmann_sc.strategies import bases, explicit_gram
from oracles import clouds, cosines, each_pair, hat

TOL = 1e-7  # squared distances and cosines near 1 lose half the digits


def oracles(seed, case):
    """One problem of one oracle, in turn."""
    oracle = ORACLES[case % len(ORACLES)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, (result, expected, *tol) in enumerate(
            oracle(rng_of("oracles", seed, case))
        ):
            error = worst_difference(np.asarray(result), np.asarray(expected))
            hold(
                error <= (tol[0] if tol else TOL),
                f"{oracle.__name__}, {k}: off by {error:.2g}",
                oracle.__name__,
            )


def two_sets(rng):
    """Two dictionaries of one d, and the p of each."""
    d = int(rng.integers(3, 10))
    p, q = rng.integers(1, d // 2 + 2, 2)
    return bases(rng, int(rng.integers(1, 5)), d, p), bases(
        rng, int(rng.integers(2, 6)), d, q
    )


def classes_of(rng, n):
    """n labels of two classes and more, two of each at least."""
    return np.arange(n) % int(rng.integers(2, n // 2 + 1))


def affine_hulls(rng):
    """Least squares over both hulls."""
    d = int(rng.integers(4, 12))
    sets, sets2 = (clouds(rng, n, d, 2, 4, 3) for n in (3, 2))
    k = int(rng.integers(0, 2))
    yield (
        hulls.affine_hull_distances(sets, sets2, dimension=k),
        each_pair(plain.affine_distance, sets, sets2, None, k),
    )


def convex_hulls(rng):
    """SciPy's nnls, and SLSQP for reduced hulls."""
    d = int(rng.integers(2, 9))
    sets, sets2 = (clouds(rng, n, d, 2, 4, 3) for n in (3, 2))
    found = hulls.convex_hull_distances
    yield found(sets, sets2), each_pair(nonnegative_distance, sets, sets2)
    bound = float(rng.uniform(0.6, 1))
    yield (
        found(sets, sets2, bound=bound),
        each_pair(plain.convex_distance, sets, sets2, bound),
        1e-4,
    )


def nonnegative_distance(A, B):
    """Of convex hulls, by least squares over weights >= 0; that they sum to 1 weighs
    1e6.
    """
    F = np.vstack([A, -B])
    sums = 1e6 * np.repeat(np.eye(2), [len(A), len(B)], axis=1)
    goal = np.append(np.zeros(F.shape[1]), [1e6, 1e6])
    weights, _ = scipy.optimize.nnls(np.vstack([F.T, sums]), goal)
    return np.linalg.norm(weights @ F)


def of_dynamics(rng):
    """Angles of observability matrices so long that A^n is gone."""
    s = int(rng.integers(1, 4))
    systems = [
        plain.random_system(rng, s, s + 3, rng.uniform(0.1, 0.9)) for _ in range(4)
    ]
    A, C = systems[0]
    blocks = np.vstack([C @ np.linalg.matrix_power(A, k) for k in range(5)])
    yield subspaces.observability(A, C, 5), blocks
    spans = plain.long_bases(systems)
    angles = each_pair(core.principal_angles, spans[:2], spans[2:])
    yield dynamics.observability_angles(systems[:2], systems[2:]), angles
    martin = np.sqrt(-2 * np.log(np.cos(angles)).sum(axis=2))
    yield dynamics.martin_distances(systems[:2], systems[2:]), martin, 1e-6


def of_tensors(rng):
    """Factors by dense SVDs of the unfoldings."""
    shape = rng.integers(3, 7, 3)
    clips = rng.standard_normal((4, *shape))
    p = int(rng.integers(1, 4))
    factors = tensors.mode_bases(clips, p)
    dense = [
        np.stack(
            [
                np.linalg.svd(
                    np.moveaxis(clip, k, 0).reshape(shape[k], -1), full_matrices=False
                )[2][:p].T
                for clip in clips
            ]
        )
        for k in range(3)
    ]
    for V, W in zip(factors, dense):
        yield hat(V), hat(W)
    square = sum(
        p - each_pair(lambda a, b: (cosines(a, b) ** 2).sum(), W, W) for W in dense
    )
    np.fill_diagonal(square, 0)
    yield tensors.product_distances(factors), np.sqrt(square)
    features = tensors.tensor_correlations(clips, p=p, modes=["ty", "yx"])
    found = [each_pair(cosines, dense[k], dense[k]) for k in (2, 0)]
    yield features, np.concatenate([A.transpose(2, 0, 1) for A in found])


def of_textures(rng):
    """Cubes and boxes, one by one; the objective over all triplets, one by one."""
    clip = rng.uniform(0.5, 2, rng.integers(7, 10, 3))
    radii = (1, 2, 3)
    exponents = textures.fractal_exponents(clip, radii=radii)
    slopes = np.empty(exponents.shape)
    for t, y, x in np.ndindex(slopes.shape):
        sums = [
            clip[
                t + 3 - r : t + 4 + r, y + 3 - r : y + 4 + r, x + 3 - r : x + 4 + r
            ].sum()
            for r in radii
        ]
        slopes[t, y, x] = np.polyfit(np.log(2 * np.array(radii) + 1), np.log(sums), 1)[
            0
        ]
    yield exponents, slopes
    levels = rng.integers(0, 3, rng.integers(8, 12, 3))
    sides = (1, 2, 3)
    counts = [
        [
            len({tuple(voxel // s) for voxel in np.argwhere(levels == level)})
            for s in sides
        ]
        for level in range(3)
    ]
    yield (
        textures.box_dimensions(levels, 3, sides),
        [-np.polyfit(np.log(sides), np.log(count), 1)[0] for count in counts],
    )
    y = classes_of(rng, 6)
    D = rng.uniform(size=(2, 6, 6))
    learned = textures.distance_weights(D, y, 0.1, n_iter=200, rng=0)
    hinges = [
        max(0, 1 - learned.weights @ (D[:, i, k] - D[:, i, j]))
        for i, j, k in itertools.product(range(6), repeat=3)
        if i != j and y[i] == y[j] and y[i] != y[k]
    ]
    yield (
        learned.objective[-1],
        0.05 * learned.weights @ learned.weights + np.mean(hinges),
    )


def similarities(rng):
    X, D = two_sets(rng)
    m = int(rng.integers(1, min(X.shape[2], D.shape[2]) + 1))
    yield (
        sets.correlation_kernel(X, D, m),
        each_pair(lambda a, b: cosines(a, b)[:m].sum(), X, D),
    )
    yield (
        sets.mutual_similarity(X, D, m),
        each_pair(lambda a, b: (cosines(a, b)[:m] ** 2).mean(), X, D),
    )
    yield sets.correlation_kernel(D), each_pair(lambda a, b: cosines(a, b).sum(), D, D)
    yield (
        sets.binet_cauchy_kernel(D),
        each_pair(lambda a, b: np.linalg.det(a.T @ b) ** 2, D, D),
    )
    T = rng.standard_normal((X.shape[1], int(rng.integers(X.shape[2], X.shape[1] + 1))))
    yield (hat(sets.transformed_bases(X, T)), hat(np.linalg.qr(T.T @ X)[0]), 1e-6)


def of_labels(rng):
    """GDA and GGDA by dense generalised eigenvalues; the objective of DCC, pair by
    pair.
    """
    n = int(rng.integers(6, 12))
    X = bases(rng, n, 8, int(rng.integers(1, 4)))
    y = classes_of(rng, n)
    K = explicit_gram(X, X)
    same = y[:, None] == y
    reg = float(10.0 ** rng.integers(-4, 0))
    for learned, matrices in (
        (sets.gda(K, y, reg=reg), plain.gda_matrices(y)),
        (sets.ggda(K, y, reg=reg, beta=0.5), plain.ggda_matrices(y, 0.5)),
    ):
        values, _ = plain.discriminants(K, *matrices, reg)
        yield learned.values, values[: len(learned.values)]
    learned = sets.dcc(X, y, n_iter=3)
    T = np.eye(8) if learned.transform is None else learned.transform
    images = sets.transformed_bases(X, T)
    apart = X.shape[2] - each_pair(lambda a, b: cosines(a, b).sum(), images, images)
    between = apart[~same].mean()
    within = apart[same & ~np.eye(n, dtype=bool)].mean()
    yield learned.objective[-1], between / (between + within), 1e-6


def ridge(rng):
    """Least squares over vectorised projectors, with the ridge as rows of its own."""
    X, D = two_sets(rng)
    labels = np.arange(len(D)) % 2
    r = float(10.0 ** rng.uniform(-3, 1))
    expected, _ = plain.explicit_errors(X, D, labels, r)
    yield discriminative.ridge_residuals(X, D, labels, ridge=r)[0], expected


def tangents(rng):
    d = int(rng.integers(2, 9))
    p = int(rng.integers(1, d // 2 + 1))
    X = bases(rng, 1, d, p)[0]
    Y = bases(rng, 4, d, p)
    H = intrinsic.log_map(X, Y)
    yield (
        np.linalg.norm(H, axis=(1, 2)),
        [np.linalg.norm(core.principal_angles(X, y)) for y in Y],
    )
    yield hat(intrinsic.exp_map(np.stack([X] * 4), H)), hat(Y)
    grams = tangent.tangent_grams(Y, Y, base=X)
    yield grams.K_xd, np.einsum("iab,jab->ij", H, H)
    codes = rng.standard_normal((4, 4))
    S = np.einsum("ij,jab->iab", codes, hat(Y))
    points = hat(np.linalg.eigh(S)[1][:, :, -p:])
    yield (
        projected.projected_losses(codes, Y, Y),
        ((hat(Y) - points) ** 2).sum(axis=(1, 2)),
    )


def feature_spaces(rng):
    """(x^T y)^2 is linear in the products x_a x_b."""
    sets = clouds(rng, 5, 4, 2, 4, 3)
    features = [(F[:, :, None] * F[:, None]).reshape(len(F), -1) for F in sets]
    kernel = kernels.polynomial(2, 0.0)
    X = np.stack([np.linalg.svd(F, full_matrices=False)[2][:2].T for F in features])
    found = kernels.kernel_bases(sets, kernel, 2)
    yield kernels.kernel_gram(sets, found, kernel=kernel), explicit_gram(X, X)
    yield hat(subspaces.from_sets(features, 2)), hat(X)
    K = explicit_gram(X, X)
    yield (
        kernels.kgsc(sets[:2], sets[2:], 0.1, kernel=kernel, p=2),
        core.sparse_codes(K[2:, 2:], K[:2, 2:], 0.1, norm2=2.0),
        1e-5,
    )


def far_ends(rng):
    """Codes do not depend on a factor of all inner products, at the ends of float64
    neither.
    """
    X, D = two_sets(rng)
    K = explicit_gram(D, D)
    k = explicit_gram(X, D)
    norm2 = float(X.shape[2])
    unit = float(rng.choice([1e-240, 1e-100, 1e100, 1e240]))
    for lam in (0.1, 0.5):
        yield (
            core.sparse_codes(
                unit * K, unit * k, lam, norm2=unit * norm2, lam_scale="max"
            ),
            core.sparse_codes(K, k, lam, norm2=norm2, lam_scale="max"),
            1e-3,
        )


def single_precision(rng):
    """Frames that float32 does not take lightly: Gram matrices, and what its codes cost
    more.
    """
    near = np.repeat(rng.standard_normal((20, 1, 40)), 5, axis=1)
    noise = rng.standard_normal((20, 5, 40))
    sets = [
        near + 1e-3 * noise,
        100 + noise,
        1e-6 * noise,
        1e6 * noise,
        np.cumsum(noise, axis=2),
        rng.integers(0, 256, noise.shape),
    ][rng.integers(6)].astype(np.float32)
    wide = sets.astype(float)
    gamma = kernels.median_gamma(wide) * 4.0 ** rng.integers(-1, 3)
    kernel = [kernels.rbf(gamma), kernels.polynomial(2), kernels.linear()][
        rng.integers(3)
    ]
    p = int(rng.integers(1, 4))
    try:
        K, K64 = (
            kernels.kernel_gram(F, kernels.kernel_bases(F, kernel, p), kernel=kernel)
            for F in (sets, wide)
        )
    except ValueError:
        return  # refused
    yield K, K64, 1e-4
    K = K.astype(float)
    for code, lam in ((kernels.kgsc, 0.1), (kernels.kglc, 3)):
        y, z = (
            code(F[:5], F[5:], lam, kernel=kernel, p=p).astype(float)
            for F in (sets, wide)
        )
        cost, least = (
            ((c @ K[5:, 5:] - 2 * K[:5, 5:]) * c).sum(axis=1)
            + (lam * np.abs(c).sum(axis=1) if lam < 1 else 0)
            for c in (y, z)
        )
        size = p * (1 + np.maximum(np.abs(y), np.abs(z)).sum(axis=1)) ** 2
        yield 1 + np.maximum((cost - least) / size, 0), np.ones(5), 1e-5


def searches(rng):
    """Cross-validation in a plain loop, and votes counted."""
    n = int(rng.integers(9, 20))
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
    yield choice.score, right.mean()
    yield choice.shares[choice.gram, choice.parameters], right
    votes = rng.choice(["a", "b", "c"], (4, 9))
    # the first of equals
    winners = [Counter(column).most_common(1)[0][0] for column in votes.T]
    yield tuning.vote(votes), winners


def workers(rng):
    """Blocks on workers, and codes that come back from disk, are those of one call."""
    from grassmann_sc import files, scale

    X = bases(rng, int(rng.integers(70, 150)), 6, 2)
    D = bases(rng, 5, 6, 2)
    lam = float(rng.uniform(0.01, 1))
    codes = core.gsc(X, D, lam)
    yield scale.code(X, D, lam, client=client_of_threads()), codes
    yield scale.gram(X, D, client=client_of_threads()), explicit_gram(X, D)
    learned = scale.gdl(
        X, 3, lam, n_iter=1, n_chains=1, rng=0, client=client_of_threads()
    )
    y = core.gsc(X, learned.atoms, lam)
    yield min(learned.costs), plain.explicit_cost(X, learned.atoms, y, lam)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        files.write_codes(f"{folder}/codes", X, D, lam, sparse_output=True)
        yield files.load_codes(f"{folder}/codes").toarray(), codes


ORACLES = [
    oracle for oracle in list(globals().values()) if inspect.isgeneratorfunction(oracle)
]
