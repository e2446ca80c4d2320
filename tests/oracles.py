"""What only this suite needs beside grassmann_sc.strategies: explicit oracles, samples of a seed,
tolerances.

The suite knows two tolerances. For float32, `rounding` scales them from the rounding of float64 to
that of float32.
"""

import hypothesis.strategies as st
import numpy as np

from grassmann_sc.strategies import KINDS, bases, coding_problem, explicit_gram, sizes

TIGHT = 1e-12
LOOSE = 1e-8

seeds = st.integers(0, 2**32 - 1)
booleans = st.booleans()
dtypes = st.sampled_from([np.float64, np.float64, np.float32])


def rounding(dtype, tol=TIGHT):
    return tol * np.finfo(dtype).eps / np.finfo(np.float64).eps


def hat(X):
    """X^ = X X^T of each basis, (..., d, d)."""
    return X @ np.swapaxes(X, -1, -2)


def vectors(X):
    """vec(X X^T) of each subspace, (n, d^2)."""
    return hat(X).reshape(len(X), -1)


def error(A, B):
    return np.abs(np.asarray(A) - B).max(initial=0)


def cost(problem, codes):
    """||X^ - sum_j y_j D_j^||^2 + lam ||y||_1 of each query, from d x d matrices."""
    residual = vectors(problem.X) - codes @ vectors(problem.D)
    return np.square(residual).sum(axis=1) + problem.lam * np.abs(codes).sum(axis=1)


def violation(K, k, y, lam, positive=False):
    """Largest violation of the optimality conditions: <D_j^, r> = lam/2 sign y_j, and at most lam/2
    in size where y_j = 0."""
    g = k - K @ y
    on_support = np.abs(g - lam / 2 * np.sign(y))
    elsewhere = np.maximum((g if positive else np.abs(g)) - lam / 2, 0)
    return np.where(y != 0, on_support, elsewhere).max()


def worst_violation(problem, codes, positive=False):
    return max(violation(problem.K_dd, k, y, problem.lam, positive)
               for k, y in zip(problem.K_xd, codes))


@st.composite
def regular_problems(draw, share=st.sampled_from([1e-2, 0.1, 0.5])):
    """Coding problems of one well-conditioned solution: random atoms, fewer than half of
    d(d+1)/2."""
    d = draw(st.integers(3, 7))
    rng = np.random.default_rng(draw(seeds))
    p = draw(st.integers(1, d // 2))
    N = draw(st.integers(1, d * (d + 1) // 5))
    X = bases(rng, draw(st.integers(1, 4)), d, p)
    D = bases(rng, N, d, p)
    return coding_problem(X, D, draw(share) * 2 * np.abs(explicit_gram(X, D)).max())


def noisy_image_sets(n=60, d=12, n_classes=3, seed=0):
    """(sets of 4 to 6 noisy frames, labels): each class has a pattern space of dimension 3."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((n_classes, 3, d))
    y = np.arange(n) % n_classes
    sets = []
    for c, size in zip(y, rng.integers(4, 7, n)):
        frames = rng.standard_normal((size, 3)) @ patterns[c]
        sets.append(frames + 0.8 * rng.standard_normal((size, d)))
    return sets, np.array(["ape", "bee", "cat", "dog"])[y]


# -------------------------------------------------------------------------- dictionary learning


def explicit_cost(X, D, codes, lam=0.0):
    """sum_i ||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1 with d x d matrices."""
    R = hat(X) - np.einsum("nj,jab->nab", codes, hat(D))
    return (R ** 2).sum() + lam * np.abs(codes).sum()


def clusters(rng, n, d, p, n_clusters):
    """n subspaces close to n_clusters centres, taken in turn."""
    centres = bases(rng, n_clusters, d, p)
    noise = 0.01 * rng.standard_normal((n, d, p))
    return np.linalg.qr(centres[np.arange(n) % n_clusters] + noise)[0]


@st.composite
def samples_and_atoms(draw):
    """(X, n_atoms, seed): random, clustered, repeated, nearly repeated or orthogonal samples."""
    d, p = draw(sizes(st.integers(1, 7)))
    seed = draw(seeds)
    rng = np.random.default_rng(seed)
    n = draw(st.integers(1, 12))
    kind = draw(st.sampled_from(["clustered", *KINDS]))
    X = clusters(rng, n, d, p, min(n, 3)) if kind == "clustered" else bases(rng, n, d, p, kind)
    return X, draw(st.integers(1, n)), seed
