"""Codes against their optimality conditions in long double: of sparse coding and of
local coding, for queries and atoms of any kind, type and number.
"""

import warnings
from types import SimpleNamespace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
import oracles
from grassmann_sc import strategies
from grassmann_sc.strategies import KINDS, bases, rotation
from oracles import booleans, dtypes, seeds

LONG = np.longdouble

# A code may miss its optimality conditions by the tolerance of the solver and by the
# rounding of the Gram matrices, ROUNDING eps max(p, q) for each of the 1 + ||y||_1
# terms that make a product: within as much atoms count as repeated, and share a
# coefficient.
TOL = 1e-8
ROUNDING = 32
SHARES = st.sampled_from([0, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1, 1.2])
REGS = st.sampled_from([None, *(10.0**k for k in range(-8, 0))])


@st.composite
def problems(draw):
    """Queries and atoms, and their inner products in long double."""
    rng = np.random.default_rng(draw(seeds))
    d, p = draw(strategies.sizes(st.integers(1, 12)))
    q = draw(st.sampled_from([1, d, p, draw(st.integers(1, d))]))
    X = bases(rng, draw(st.integers(1, 4)), d, p)
    n_atoms = draw(st.integers(1, 30) | st.integers(30, 150))
    D = bases(rng, n_atoms, d, q, draw(st.sampled_from(KINDS)))
    if p == q and draw(booleans):
        D[-1] = X[0] @ rotation(rng, p)
    dtype = draw(dtypes)
    X = X.astype(dtype)
    D = D.astype(dtype)
    eps = ROUNDING * float(np.finfo(dtype).eps) * max(p, q)
    found = SimpleNamespace(X=X, D=D, eps=eps, norm2=float(p), dtype=dtype, rng=rng)
    found.K = long_gram(D, D)
    found.k = long_gram(X, D)
    found.rounded = [matrix.astype(dtype) for matrix in (found.K, found.k)]
    return found


def long_gram(X, D):
    """||X_i^T D_j||_F^2 in long double."""
    products = np.einsum("idp,jdq->ijpq", X.astype(LONG), D.astype(LONG))
    return (products**2).sum(axis=(2, 3))


@settings(max_examples=2000)
@given(
    problem=problems(),
    shares=SHARES | st.lists(SHARES, min_size=3, max_size=3),
    options=st.fixed_dictionaries(
        {
            "lam_scale": st.sampled_from([None, "max"]),
            "positive": booleans,
            "sparse_output": booleans,
        }
    ),
    from_grams=booleans,
    started=booleans,
)
def test_sparse_codes_are_optimal(problem, shares, options, from_grams, started):
    """If the toolkit warns, the gap of a code says how far from the least it is."""
    shape = problem.k.shape
    peaks = 2 * np.abs(problem.k).max(axis=1)
    relative = options["lam_scale"] is not None
    unit = 1 if relative else float(peaks.max()) or 1.0
    lam = np.multiply(unit, shares) if np.ndim(shares) else unit * shares
    if started:
        options = options | {"init": problem.rng.standard_normal(shape)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = options | {"return_info": True}
        if from_grams:
            norm2 = problem.norm2
            found = core.sparse_codes(*problem.rounded, lam, norm2=norm2, **options)
        else:
            found = core.gsc(problem.X, problem.D, lam, **options)
    codes = found.codes if isinstance(found.codes, list) else [found.codes]
    codes = np.stack([core.dense_codes(y) for y in codes]).reshape(-1, *shape)
    gaps = np.reshape(found.gap, (-1, shape[0]))
    for i, one in enumerate(np.atleast_1d(lam)):
        for j, k in enumerate(problem.k):
            weight = LONG(one) * ((peaks[j] or 1) if relative else 1)
            y = codes[i, j].astype(LONG)
            slack = max(gaps[i, j], 0) if caught else 0.0
            check_code(problem, k, weight, y, gaps[i, j], options["positive"], slack)


def check_code(problem, k, lam, y, gap, positive, slack):
    assert np.isfinite(y).all() and not (positive and (y < 0).any())
    l1 = np.abs(y).sum()
    rounding = problem.eps * (1 + l1)
    if lam == 0 and not positive:
        # no worse than least squares over the eigenvectors of K above rounding
        best = np.linalg.lstsq(
            problem.K.astype(float), k.astype(float), problem.eps * len(k)
        )[0]
        cost, least = (z @ (problem.K @ z - 2 * k) for z in (y, best))
        bound = max(gap, TOL * problem.norm2) + rounding * (1 + l1)
        assert cost - least <= bound
        return
    largest = problem.K.diagonal().max()
    bound = TOL * np.sqrt(problem.norm2 * largest) + rounding
    # a step in that coordinate would gain violation^2 / K_jj, at most the gap
    bound += np.sqrt(slack * largest)
    assert oracles.violation(problem.K, k, y, lam, positive) <= bound


@settings(max_examples=1000)
@given(problem=problems(), m=st.integers(1, 12), reg=REGS, from_grams=booleans)
def test_local_codes_solve_their_equations(problem, m, reg, from_grams):
    """Sum 1, on the nearest atoms, and (B + ridge I) y a multiple of 1."""
    m = min(m, len(problem.K))
    if from_grams:
        norm2 = problem.norm2
        codes = core.locality_codes(*problem.rounded, m, norm2=norm2, reg=reg)
    else:
        codes = core.glc(problem.X, problem.D, m, reg=reg)
    default = 1e-5 if problem.dtype == np.float32 else 1e-10
    for k, y in zip(problem.k, codes.astype(LONG)):
        check_local_code(problem, k, y, m, default if reg is None else reg)


def check_local_code(problem, k, y, m, reg):
    l1 = np.abs(y).sum()
    assert abs(y.sum() - 1) <= problem.eps * (1 + l1)
    used = np.flatnonzero(y)
    distance = problem.norm2 + problem.K.diagonal() - 2 * k
    ordered = np.sort(distance)
    assert distance[used].max() <= ordered[m - 1] + 4 * problem.eps
    same = distance <= 4 * problem.eps * problem.norm2
    tied = np.ptp(ordered[m - 1 : m + 1]) < 8 * problem.eps
    if same.any() or len(used) > m or tied:
        return  # ties, and atoms that are the query or not as rounding wants it
    nearest = np.argsort(distance, kind="stable")[:m]
    K = problem.K[np.ix_(nearest, nearest)]
    B = problem.norm2 - k[nearest][:, None] - k[nearest] + K
    image = B @ y[nearest] + reg * np.trace(B) * y[nearest]
    assert np.ptp(image) <= 4 * problem.eps * (1 + l1)
