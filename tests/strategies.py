"""Subspaces and coding problems for the laws: a seed and sizes are drawn, then QR; the cases that break naive code are common.

The suite knows two tolerances. For float32, `rounding` scales them from the rounding of float64 to that of float32.
"""

from collections import namedtuple

import hypothesis.strategies as st
import numpy as np

TIGHT = 1e-12
LOOSE = 1e-8

Problem = namedtuple("Problem", "X D K_dd K_xd p lam")  # queries, atoms, explicit Gram matrices, ||X^||^2, lambda

seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float64, np.float64, np.float32])
KINDS = ["random", "repeated", "near", "orthogonal"]


def rounding(dtype, tol=TIGHT):
    return tol * np.finfo(dtype).eps / np.finfo(np.float64).eps


def bases(rng, n, d, p, kind="random"):
    """n orthonormal bases (n, d, p); every second one repeats, nearly repeats or is orthogonal to the one before."""
    X = np.linalg.qr(rng.standard_normal((n, d, p)))[0]
    for i in range(1, n, 2):
        if kind == "repeated":
            X[i] = X[i - 1] @ rotation(rng, p)
        elif kind == "near":
            X[i] = np.linalg.qr(X[i - 1] + 10.0 ** rng.integers(-9, -4) * rng.standard_normal((d, p)))[0]
        elif kind == "orthogonal":  # as far as there is room
            X[i] = np.linalg.qr(np.hstack([X[i - 1], rng.standard_normal((d, p))])[:, :d], mode="complete")[0][:, -p:]
    return X


def rotation(rng, p):
    return np.linalg.qr(rng.standard_normal((p, p)))[0]


def gram(X, D):
    """The explicit <X^, D^>, from d x d projectors."""
    return np.einsum("ndp,nep,mdq,meq->nm", X, X, D, D, optimize=True)


def problem_of(X, D, lam):
    K_dd = gram(D, D)
    return Problem(X, D, (K_dd + K_dd.T) / 2, gram(X, D), X.shape[2], lam)


def vectors(X):
    """vec(X X^T) of each subspace, (n, d^2)."""
    return (X @ np.swapaxes(X, 1, 2)).reshape(len(X), -1)


def error(A, B):
    return np.abs(np.asarray(A) - B).max(initial=0)


@st.composite
def sizes(draw, max_d=8):
    """(d, p) with p = 1 and p = d as common as the rest."""
    d = draw(st.integers(1, max_d))
    return d, draw(st.sampled_from([1, d, draw(st.integers(1, d))]))


@st.composite
def subspaces(draw, n=st.integers(1, 6), max_d=8, dtype=st.just(np.float64)):
    """A set of subspaces (n, d, p)."""
    (d, p), rng = draw(sizes(max_d)), np.random.default_rng(draw(seeds))
    return bases(rng, draw(n), d, p, draw(st.sampled_from(KINDS))).astype(draw(dtype))


@st.composite
def pairs_of_sets(draw, dtype=st.just(np.float64)):
    """Two sets in the same R^d, of any two dimensions; they share a member now and then."""
    X = draw(subspaces(dtype=dtype))
    (_, d, p), rng = X.shape, np.random.default_rng(draw(seeds))
    Y = bases(rng, draw(st.integers(1, 6)), d, draw(st.integers(1, d)), draw(st.sampled_from(KINDS))).astype(X.dtype)
    if Y.shape[2] == p and draw(st.booleans()):
        Y[0] = X[0]
    return X, Y


@st.composite
def problems(draw, max_d=6, max_atoms=12, kinds=KINDS, lam=st.sampled_from([1e-4, 1e-2, 0.1, 0.5, 1.0, 1.2])):
    """Any coding problem: repeated and nearly repeated atoms, N > d(d+1)/2, an atom equal to a query; lam by lam_max."""
    (d, p), rng = draw(sizes(max_d)), np.random.default_rng(draw(seeds))
    X = bases(rng, draw(st.integers(1, 4)), d, p)
    D = bases(rng, draw(st.integers(1, max_atoms)), d, p, draw(st.sampled_from(kinds)))
    if draw(st.booleans()):
        D[-1] = X[0] @ rotation(rng, p)
    return problem_of(X, D, draw(lam) * 2 * np.abs(gram(X, D)).max())


@st.composite
def regular_problems(draw, lam=st.sampled_from([1e-2, 0.1, 0.5])):
    """Coding problems of one well-conditioned solution: random atoms, fewer than half of d(d+1)/2."""
    d, rng = draw(st.integers(3, 7)), np.random.default_rng(draw(seeds))
    p, N = draw(st.integers(1, d // 2)), draw(st.integers(1, d * (d + 1) // 5))
    X, D = bases(rng, draw(st.integers(1, 4)), d, p), bases(rng, N, d, p)
    return problem_of(X, D, draw(lam) * 2 * np.abs(gram(X, D)).max())
