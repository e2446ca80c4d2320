"""Hypothesis strategies for subspaces, for tests of your own functions.

Each draws what breaks naive code as often as the rest: repeated and nearly repeated
subspaces, orthogonal ones, p = d, p = 1, angles of 0 and pi/2, a query that is an atom.
An argument n, d, p or dtype is a value or a strategy for one. Failing examples shrink
to few small subspaces along the axes, columns of the identity. Needs hypothesis; three
lines test a function:

    @given(strategies.pairs_at_angles())
    def test_my_angles(pair):
        assert np.allclose(my_angles(pair.X, pair.Y), pair.angles, rtol=0, atol=1e-14)

>>> from hypothesis import find
>>> from grassmann_sc import strategies
>>> find(strategies.subspaces(), lambda X: len(X) == 2 and X.shape[1] == 2).tolist()
[[[1.0], [0.0]], [[0.0], [1.0]]]
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

try:
    import hypothesis.strategies as st
    from hypothesis import assume
except ImportError as error:
    raise ImportError("strategies needs hypothesis: pip install hypothesis") from error

import grassmann_sc as core

__all__ = [
    "sizes",
    "subspaces",
    "pairs_of_sets",
    "pairs_at_angles",
    "tangents",
    "dictionaries",
    "grams",
    "coding_problems",
    "solved_problems",
    "image_sets",
]

# every second subspace to the one before
KINDS = ("random", "repeated", "near", "orthogonal")
# What is drawn shrinks to the first: an angle that arccos loses along the axes too.
ANGLES = (1e-12, 0.0, math.pi / 2, math.pi / 2 - 1e-9, math.pi / 4, 1e-8, 1.5)
LENGTHS = (1.0, 0.0, 1e-12, 1e-6, 0.1, 0.5)
# lambda in units of the smallest whose codes are zero
SHARES = (0.5, 0.1, 1e-2, 1e-4, 1.0, 1.2)
CLASSES = ("ape", "bee", "cat")
MOST_SOLVED = 4  # atoms whose 3^4 patterns of signs are tried

Size: TypeAlias = int | st.SearchStrategy[int]  # a number, or what draws one
Share: TypeAlias = float | st.SearchStrategy[float]
Type: TypeAlias = DTypeLike | st.SearchStrategy
SEEDS = st.integers(0, 2**32 - 1)  # drawn first: they shrink first, to 0, the axes


# ---------------------------------------------------------------------------- subspaces


@st.composite
def sizes(
    draw: st.DrawFn, d: Size = st.integers(1, 8), p: Size | None = None
) -> tuple[int, int]:
    """(d, p) with 1 <= p <= d; p = 1 and p = d are as common as all between them.

    A p that is given, or drawn, lifts a smaller d that is drawn.

    ValueError for d or p below 1, or p above d.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> find(strategies.sizes(), lambda size: size[0] > size[1] > 1)
    (3, 2)
    """
    if p is None:
        d = core.check_integer(_drawn(draw, d), "d", 1)
        return d, draw(st.sampled_from([1, d, draw(st.integers(1, d))]))
    p = core.check_integer(_drawn(draw, p), "p", 1)
    d = max(p, draw(d)) if isinstance(d, st.SearchStrategy) else d
    return core.check_integer(d, "d", p), p


@st.composite
def subspaces(
    draw: st.DrawFn,
    n: Size = st.integers(1, 6),
    d: Size = st.integers(1, 8),
    p: Size | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    dtype: Type = np.float64,
) -> np.ndarray:
    """A set of n subspaces of R^d, orthonormal bases (n, d, p).

    kinds: what every second one may be to the one before: "random", "repeated" (the
    same subspace in another basis), "near" (off by 1e-9 to 1e-5) or "orthogonal" (as
    far as d allows). So subspaces(kinds=["near"]) draws near-duplicates. p: None
    for sizes.

    ValueError for an unknown kind, or numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> near = strategies.subspaces(n=2, p=1, kinds=["near"])
    >>> find(near, lambda X: (X[0] != X[1]).any()).tolist()
    [[[1.0], [0.0]], [[1.0], [1e-09]]]
    """
    rng = _source(draw(SEEDS))
    d, p = draw(sizes(d, p))
    X = bases(rng, _drawn(draw, n), d, p, draw(st.sampled_from(kinds)))
    return X.astype(_float_type(draw, dtype))


@st.composite
def pairs_of_sets(
    draw: st.DrawFn,
    n: Size = st.integers(1, 6),
    d: Size = st.integers(1, 8),
    *,
    dtype: Type = np.float64,
) -> tuple[np.ndarray, np.ndarray]:
    """Two sets X (n, d, p), Y (N, d, q) in the same R^d, any p and q.

    Now and then Y[0] is X[0].

    ValueError for numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> X, Y = find(strategies.pairs_of_sets(), lambda pair: pair[0].shape[2] < pair[1].shape[2])
    >>> X.tolist(), Y.tolist()
    ([[[1.0], [0.0]]], [[[1.0, 0.0], [0.0, 1.0]]])
    """
    X = draw(subspaces(n, d, dtype=dtype))
    d, p = X.shape[1:]
    q = draw(st.integers(1, d))
    Y = draw(subspaces(n, d, q, dtype=X.dtype))
    if q == p and draw(st.booleans()):
        first = min(1, len(X), len(Y))
        Y[:first] = X[:first]
    return X, Y


AnglePair = namedtuple("AnglePair", "X Y angles")


@st.composite
def pairs_at_angles(
    draw: st.DrawFn,
    angles: Sequence[float] | None = None,
    *,
    most: int = 4,
    dtype: Type = np.float64,
) -> AnglePair:
    """(X (d, p), Y (d, q), angles (min(p, q),)).

    A pair of subspaces and its principal angles. Ascending, in radians, float64; X and
    Y have them to their rounding, about 1e-15 or, in float32, 1e-7. angles: None for up
    to `most` of 0, 1e-12, pi/2 - 1e-9, pi/2 and a few between, or a list of your own. d
    may be below p + q where angles are 0.

    ValueError unless angles are one or more in [0, pi/2].

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> pair = find(strategies.pairs_at_angles(), lambda pair: 0 < pair.angles[0] < 1e-3)
    >>> pair.X.tolist(), pair.Y.tolist(), pair.angles
    ([[1.0], [0.0]], [[1.0], [1e-12]], array([1.e-12]))
    """
    rng = _source(draw(SEEDS))
    if angles is None:
        angles = draw(st.lists(st.sampled_from(ANGLES), min_size=1, max_size=most))
    theta = core.finite_array(angles, "angles").astype(float)
    k = theta.size
    if theta.ndim != 1 or k == 0 or theta.min() < 0 or theta.max() > math.pi / 2:
        raise ValueError(f"angles must be one or more in [0, pi/2], got {angles!r}")
    theta.sort()
    more = draw(st.integers(0, 2))  # columns of X that meet no column of Y
    apart = np.flatnonzero(theta)
    needed = k + more + len(apart)
    d = needed + draw(st.integers(0, 2))
    Q = rotation(rng, d)
    X = Q[:, : k + more]
    Y = Q[:, :k] * np.cos(theta)
    Y[:, apart] += Q[:, k + more : needed] * np.sin(theta[apart])
    dtype = _float_type(draw, dtype)
    X = (X @ rotation(rng, k + more)).astype(dtype)
    Y = (Y @ rotation(rng, k)).astype(dtype)
    return AnglePair(Y, X, theta) if draw(st.booleans()) else AnglePair(X, Y, theta)


Tangent = namedtuple("Tangent", "X H")


@st.composite
def tangents(
    draw: st.DrawFn,
    d: Size = st.integers(1, 8),
    p: Size | None = None,
    *,
    largest: float = 1.5,
    dtype: Type = np.float64,
) -> Tangent:
    """(X, H): a point X (d, p) and a tangent vector H (d, p) there, X^T H = 0.

    The singular values of H, angles to the end of its geodesic, are 0, 1e-12, ... up to
    largest; below pi/2 H is the log of its exp.

    ValueError for numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> X, H = find(strategies.tangents(), lambda drawn: drawn.H.any())
    >>> X.tolist(), H.tolist()
    ([[1.0], [0.0]], [[0.0], [1.5]])
    """
    largest = core.check_number(largest, "largest", least=0)
    rng = _source(draw(SEEDS))
    d, p = draw(sizes(d, p))
    Q = rotation(rng, d)
    m = min(p, d - p)
    s = largest * np.array([draw(st.sampled_from(LENGTHS)) for _ in range(m)])
    H = Q[:, p : p + m] * s @ rotation(rng, p)[:m]
    dtype = _float_type(draw, dtype)
    return Tangent((Q[:, :p] @ rotation(rng, p)).astype(dtype), H.astype(dtype))


# --------------------------------------------------------------- dictionaries and codes


def dictionaries(
    n_atoms: Size = st.integers(1, 12),
    d: Size = st.integers(1, 6),
    p: Size | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    dtype: Type = np.float64,
) -> st.SearchStrategy[np.ndarray]:
    """A dictionary (N, d, p).

    Now and then atoms repeat, or are more than d (d + 1) / 2. kinds: as in subspaces.

    ValueError for an unknown kind, or numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> twice = strategies.dictionaries(d=2, kinds=["repeated"])
    >>> find(twice, lambda D: len(D) > 1).tolist()
    [[[1.0], [0.0]], [[1.0], [0.0]]]
    """
    return subspaces(n_atoms, d, p, kinds=kinds, dtype=dtype)


@st.composite
def grams(
    draw: st.DrawFn,
    n_atoms: Size = st.integers(1, 12),
    d: Size = st.integers(1, 6),
    p: Size | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    dtype: Type = np.float64,
) -> np.ndarray:
    """The Gram matrix (N, N) of a dictionary, <D_i^, D_j^> = ||D_i^T D_j||_F^2.

    Symmetric, positive semidefinite to rounding, p along the diagonal; singular where
    atoms repeat or N > d (d + 1) / 2.

    ValueError for an unknown kind, or numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> find(strategies.grams(), lambda K: len(K) == 2 and K[0, 0] == 2).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    D = draw(dictionaries(n_atoms, d, p, kinds=kinds))
    return _gram_of_atoms(D).astype(_float_type(draw, dtype))


CodingProblem = namedtuple(
    "CodingProblem", "X D K_dd K_xd norm2 lam codes", defaults=(None,)
)


@st.composite
def coding_problems(
    draw: st.DrawFn,
    n_atoms: Size = st.integers(1, 12),
    d: Size = st.integers(1, 6),
    p: Size | None = None,
    *,
    kinds: Sequence[str] = KINDS,
    share: Share = st.sampled_from(SHARES),
    dtype: Type = np.float64,
) -> CodingProblem:
    """(X, D, K_dd, K_xd, norm2, lam, None).

    Queries, any dictionary, their inner products, lambda. X (n, d, p), D (N, d, p);
    K_dd (N, N), K_xd (n, N) and norm2 = p are float64. Now and then an atom is the
    first query in another basis. lam: share of the smallest lambda whose codes are all
    zero; share=0.0 for least squares. Where atoms repeat, codes of the least cost ||X^
    - sum_j y_j D_j^||_F^2 + lam ||y||_1 are many: test the cost, or its optimality
    conditions.

    ValueError for an unknown kind, or numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> problem = find(strategies.coding_problems(), lambda problem: len(problem.D) == 1)
    >>> problem.K_dd, problem.K_xd, problem.norm2, problem.lam
    (array([[1.]]), array([[1.]]), 1.0, 1.0)
    """
    X, D = draw(_queries_and_atoms(4, n_atoms, d, p, kinds, dtype, -1))
    return _at_share(coding_problem(X, D), _drawn(draw, share))


@st.composite
def solved_problems(
    draw: st.DrawFn,
    d: Size = st.integers(1, 6),
    p: Size | None = None,
    *,
    share: Share = st.sampled_from(SHARES),
    dtype: Type = np.float64,
) -> CodingProblem:
    """(X, D, K_dd, K_xd, norm2, lam, codes).

    A coding problem and its codes (n, N), the only ones. At most four atoms, none near
    the span of those before it; so codes are known to about 1e-13, as the best of all
    patterns of signs. In float32 they are those of the rounded bases. For the rest see
    coding_problems.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> problem = find(strategies.solved_problems(share=0.5), lambda problem: problem.codes.any())
    >>> problem.X.tolist(), problem.D.tolist(), problem.lam, problem.codes
    ([[[1.0]]], [[[1.0]]], 1.0, array([[0.5]]))
    """
    X, D = draw(
        _queries_and_atoms(3, st.integers(1, MOST_SOLVED), d, p, KINDS[:1], dtype, 0)
    )
    problem = _at_share(coding_problem(X, _independent(D)), _drawn(draw, share))
    codes = [_best_code(problem.K_dd, k, problem.lam / 2) for k in problem.K_xd]
    return problem._replace(codes=np.stack(codes))


@st.composite
def _queries_and_atoms(draw, most, n_atoms, d, p, kinds, dtype, same):
    """Up to most queries, and atoms.

    Now and then that at index same is the first query.
    """
    rng = _source(draw(SEEDS))
    d, p = draw(sizes(d, p))
    X = bases(rng, draw(st.integers(1, most)), d, p)
    n_atoms = core.check_integer(_drawn(draw, n_atoms), "n_atoms", 1)
    D = bases(rng, n_atoms, d, p, draw(st.sampled_from(kinds)))
    if draw(st.booleans()):
        D[same] = X[0] @ rotation(rng, p)
    dtype = _float_type(draw, dtype)
    return X.astype(dtype), D.astype(dtype)


def coding_problem(X, D, lam=0.0):
    """The coding problem of queries X (n, d, p) and atoms D (N, d, p)."""
    return CodingProblem(
        X, D, _gram_of_atoms(D), explicit_gram(X, D), float(X.shape[2]), lam
    )


def _at_share(problem, share):
    share = core.check_number(share, "share", least=0)
    return problem._replace(lam=share * 2 * float(np.abs(problem.K_xd).max()))


def explicit_gram(X, D):
    """<X_i^, D_j^> (n, N) from the d x d projectors, in float64."""
    X = X.astype(float)
    D = D.astype(float)
    return np.einsum("ndp,nep,mdq,meq->nm", X, X, D, D, optimize=True)


def _gram_of_atoms(D):
    K = explicit_gram(D, D)
    return (K + K.T) / 2


def _independent(D):
    """The atoms whose projectors are far from the span of those before.

    Far: a distance of sqrt(0.1 p) or more.
    """
    kept = [0]
    for j in range(1, len(D)):
        K = _gram_of_atoms(D[[*kept, j]])
        along = np.linalg.solve(K[:-1, :-1], K[:-1, -1])
        if K[-1, -1] - along @ K[:-1, -1] > 0.1 * D.shape[2]:
            kept.append(j)
    return D[kept]


def _best_code(K, k, half):
    """argmin y^T K y - 2 y^T k + 2 half ||y||_1.

    The best of the minima among all codes of one pattern of signs.
    """
    best = np.zeros(len(k))
    least = 0.0
    for signs in itertools.product([-1, 0, 1], repeat=len(k)):
        on = np.flatnonzero(signs)
        s = np.array(signs)[on]
        y = np.linalg.solve(K[np.ix_(on, on)], k[on] - half * s)
        cost = y @ (half * s - k[on])
        if (y * s > 0).all() and cost < least:
            least = cost
            best = np.zeros(len(k))
            best[on] = y
    return best


# ----------------------------------------------------------------------- sets of frames


ImageSets = namedtuple("ImageSets", "sets labels")


@st.composite
def image_sets(
    draw: st.DrawFn,
    n: Size = st.integers(1, 6),
    d: Size = st.integers(1, 8),
    p: Size | None = None,
    *,
    most_frames: int = 8,
    dtype: Type = np.float64,
) -> ImageSets:
    """(sets, labels): n arrays of frames (n_i, d), and their classes.

    Each array has rank p or more. p <= n_i <= p + most_frames, labels (n,) are of up to
    three classes. The frames of a class lie in a subspace of dimension p, or near it.
    dtype: np.uint8 gives grey values.

    ValueError for numbers out of range.

    >>> from hypothesis import find
    >>> from grassmann_sc import strategies
    >>> drawn = find(strategies.image_sets(), lambda drawn: len(set(drawn.labels)) == 2)
    >>> [frames.tolist() for frames in drawn.sets], drawn.labels.tolist()
    ([[[1.0]], [[1.0]]], ['ape', 'bee'])
    """
    rng = _source(draw(SEEDS))
    d, p = draw(sizes(d, p))
    noise = draw(st.sampled_from([0.0, 1e-3, 0.3]))
    patterns = bases(rng, len(CLASSES), d, p).swapaxes(1, 2)  # (classes, p, d)
    dtype = np.dtype(_drawn(draw, dtype))
    sets = []
    labels = []
    for _ in range(core.check_integer(_drawn(draw, n), "n", 0)):
        size = p + draw(st.integers(0, most_frames))
        label = draw(st.integers(0, len(CLASSES) - 1))
        frames = rng.standard_normal((p, size)).T @ patterns[label]
        frames = frames + noise * rng.standard_normal((size, d))
        if dtype == np.uint8:  # grey values
            frames = np.clip(np.rint(128 + 32 * frames), 1, 255)
        sets.append(frames.astype(dtype))
        assume(np.linalg.matrix_rank(sets[-1]) >= p)
        labels.append(CLASSES[label])
    return ImageSets(sets, np.array(labels))


# -------------------------------------------- bases from a Generator, or along the axes


def bases(rng, n, d, p, kind="random"):
    """n orthonormal bases (n, d, p).

    kind: what every second one is to the one before.
    """
    core.check_choice(kind, "kind", *KINDS)
    n = core.check_integer(n, "n", 0)
    X = _qr_basis(rng.standard_normal((n, d, p)))
    for i in range(1, n, 2):
        if kind == "repeated":
            X[i] = X[i - 1] @ rotation(rng, p)
        elif kind == "near":
            step = 10.0 ** rng.integers(-9, -4)
            X[i] = _qr_basis(
                X[i - 1] + step * np.roll(rng.standard_normal((d, p)), 1, axis=0)
            )
        elif kind == "orthogonal":  # as far as d allows
            columns = np.hstack([X[i - 1], rng.standard_normal((d, p))])[:, :d]
            X[i] = np.linalg.qr(columns, mode="complete")[0][:, -p:]
    return X


def rotation(rng, p):
    """An orthogonal matrix (p, p)."""
    return _qr_basis(rng.standard_normal((p, p)))


def _qr_basis(A):
    Q, R = np.linalg.qr(A)
    signs = np.where(np.diagonal(R, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    return Q * signs[..., None, :] + 0.0  # no -0.0


def _source(seed):
    return np.random.default_rng(seed) if seed else _Axes()


class _Axes:
    """Stands for a Generator.

    Its Gaussian matrices are columns of the identity, one after the other.
    """

    def standard_normal(self, shape):
        *n, d, p = shape
        columns = np.arange(math.prod(n) * p) % d
        return np.eye(d)[columns].reshape(*n, p, d).swapaxes(-1, -2)

    def integers(self, low, high):
        return low


def _float_type(draw, dtype):
    """A type that holds orthonormal columns to rounding."""
    dtype = np.dtype(_drawn(draw, dtype))
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    return dtype


def _drawn(draw, value):
    return draw(value) if isinstance(value, st.SearchStrategy) else value
