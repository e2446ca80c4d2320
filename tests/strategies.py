"""Subspaces and coding problems for the laws: a seed and sizes are drawn, then QR; the cases that
break naive code are common.

The suite knows two tolerances. For float32, `rounding` scales them from the rounding of float64 to
that of float32.
"""

from collections import namedtuple

import hypothesis.strategies as st
import numpy as np

TIGHT = 1e-12
LOOSE = 1e-8

# Queries, atoms, their explicit Gram matrices, ||X^||^2, lambda
Problem = namedtuple("Problem", "X D K_dd K_xd p lam")

KINDS = ["random", "repeated", "near", "orthogonal"]
seeds = st.integers(0, 2**32 - 1)
booleans = st.booleans()
never = st.just(0.0)  # a lambda
dtypes = st.sampled_from([np.float64, np.float64, np.float32])


def rounding(dtype, tol=TIGHT):
    return tol * np.finfo(dtype).eps / np.finfo(np.float64).eps


def bases(rng, n, d, p, kind="random"):
    """n orthonormal bases (n, d, p); every second one repeats, nearly repeats or is orthogonal to
    the one before."""
    X = np.linalg.qr(rng.standard_normal((n, d, p)))[0]
    for i in range(1, n, 2):
        if kind == "repeated":
            X[i] = X[i - 1] @ rotation(rng, p)
        elif kind == "near":
            step = 10.0 ** rng.integers(-9, -4)
            X[i] = np.linalg.qr(X[i - 1] + step * rng.standard_normal((d, p)))[0]
        elif kind == "orthogonal":  # as far as there is room
            columns = np.hstack([X[i - 1], rng.standard_normal((d, p))])[:, :d]
            X[i] = np.linalg.qr(columns, mode="complete")[0][:, -p:]
    return X


def rotation(rng, p):
    return np.linalg.qr(rng.standard_normal((p, p)))[0]


def hat(X):
    """X^ = X X^T of each basis, (..., d, d)."""
    return X @ np.swapaxes(X, -1, -2)


def vectors(X):
    """vec(X X^T) of each subspace, (n, d^2)."""
    return hat(X).reshape(len(X), -1)


def gram(X, D):
    """The explicit <X^, D^>, from d x d projectors."""
    return np.einsum("ndp,nep,mdq,meq->nm", X, X, D, D, optimize=True)


def problem_of(X, D, lam):
    K_dd = gram(D, D)
    return Problem(X, D, (K_dd + K_dd.T) / 2, gram(X, D), X.shape[2], lam)


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
def sizes(draw, max_d=8):
    """(d, p) with p = 1 and p = d as common as the rest."""
    d = draw(st.integers(1, max_d))
    return d, draw(st.sampled_from([1, d, draw(st.integers(1, d))]))


@st.composite
def subspaces(draw, n=st.integers(1, 6), max_d=8, dtype=st.just(np.float64)):
    """A set of subspaces (n, d, p)."""
    d, p = draw(sizes(max_d))
    rng = np.random.default_rng(draw(seeds))
    return bases(rng, draw(n), d, p, draw(st.sampled_from(KINDS))).astype(draw(dtype))


@st.composite
def pairs_of_sets(draw, dtype=st.just(np.float64)):
    """Two sets in the same R^d, of any two dimensions; they share a member now and then."""
    X = draw(subspaces(dtype=dtype))
    _, d, p = X.shape
    rng = np.random.default_rng(draw(seeds))
    n = draw(st.integers(1, 6))
    q = draw(st.integers(1, d))
    Y = bases(rng, n, d, q, draw(st.sampled_from(KINDS))).astype(X.dtype)
    if q == p and draw(booleans):
        Y[0] = X[0]
    return X, Y


ANY_SHARE = st.sampled_from([1e-4, 1e-2, 0.1, 0.5, 1.0, 1.2])
REGULAR_SHARE = st.sampled_from([1e-2, 0.1, 0.5])


@st.composite
def problems(draw, max_d=6, max_atoms=12, kinds=KINDS, lam=ANY_SHARE):
    """Any coding problem: repeated and nearly repeated atoms, N > d(d+1)/2, an atom equal to a
    query; lam by lam_max."""
    d, p = draw(sizes(max_d))
    rng = np.random.default_rng(draw(seeds))
    X = bases(rng, draw(st.integers(1, 4)), d, p)
    D = bases(rng, draw(st.integers(1, max_atoms)), d, p, draw(st.sampled_from(kinds)))
    if draw(booleans):
        D[-1] = X[0] @ rotation(rng, p)
    return problem_of(X, D, draw(lam) * 2 * np.abs(gram(X, D)).max())


@st.composite
def regular_problems(draw, lam=REGULAR_SHARE):
    """Coding problems of one well-conditioned solution: random atoms, fewer than half of
    d(d+1)/2."""
    d = draw(st.integers(3, 7))
    rng = np.random.default_rng(draw(seeds))
    p = draw(st.integers(1, d // 2))
    N = draw(st.integers(1, d * (d + 1) // 5))
    X = bases(rng, draw(st.integers(1, 4)), d, p)
    D = bases(rng, N, d, p)
    return problem_of(X, D, draw(lam) * 2 * np.abs(gram(X, D)).max())


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
    d, p = draw(sizes(max_d=7))
    seed = draw(seeds)
    rng = np.random.default_rng(seed)
    n = draw(st.integers(1, 12))
    kind = draw(st.sampled_from(["clustered", *KINDS]))
    X = clusters(rng, n, d, p, min(n, 3)) if kind == "clustered" else bases(rng, n, d, p, kind)
    return X, draw(st.integers(1, n)), seed
