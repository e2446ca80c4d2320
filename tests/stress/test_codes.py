"""Codes against their optimality conditions: of sparse coding and of local coding, for
queries and atoms of any kind, type and number.
"""

import warnings

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
import oracles
from grassmann_sc.strategies import coding_problem, coding_problems, pairs_of_sets
from oracles import booleans, dtypes
from problems import ROUNDING, generators

# A code may miss its optimality conditions by the tolerance of the solver and by the
# rounding of the Gram matrices, ROUNDING eps max(p, q) for each of the 1 + ||y||_1
# terms that make a product: within as much atoms count as repeated, and share a
# coefficient.
TOL = 1e-8
SHARES = st.sampled_from([0, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1, 1.2])
REGS = st.sampled_from([None, *(10.0**k for k in range(-8, 0))])
SIZES = dict(d=st.integers(1, 12), dtype=dtypes)
N_ATOMS = st.integers(1, 30) | st.integers(30, 150)
PROBLEMS = coding_problems(N_ATOMS, **SIZES) | pairs_of_sets(N_ATOMS, **SIZES).map(
    lambda pair: coding_problem(pair[0][:4], pair[1])
)


def rounding_of(problem):
    """What rounds its Gram matrices."""
    size = max(problem.X.shape[2], problem.D.shape[2])
    return ROUNDING * float(np.finfo(problem.X.dtype).eps) * size


def grams_of(problem):
    """Its Gram matrices, in the type of its subspaces."""
    return [matrix.astype(problem.X.dtype) for matrix in (problem.K_dd, problem.K_xd)]


@settings(max_examples=2000)
@given(
    problem=PROBLEMS,
    shares=SHARES | st.lists(SHARES, min_size=3, max_size=3),
    options=st.fixed_dictionaries(
        {
            "lam_scale": st.sampled_from([None, "max"]),
            "positive": booleans,
            "sparse_output": booleans,
        }
    ),
    from_grams=booleans,
    start=st.none() | generators,
)
def test_sparse_codes_are_optimal(problem, shares, options, from_grams, start):
    """If the toolkit warns, the gap of a code says how far from the least it is."""
    k = problem.K_xd
    peaks = 2 * np.abs(k).max(axis=1)
    lam = np.array(shares)
    if options["lam_scale"] is None:
        peaks[:] = peaks.max()
        lam = lam * peaks[0]
    more = dict(init=start and start.standard_normal(k.shape), return_info=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if from_grams:
            more["norm2"] = problem.norm2
            result = core.sparse_codes(*grams_of(problem), lam, **options, **more)
        else:
            result = core.gsc(problem.X, problem.D, lam, **options, **more)
    codes = result.codes if isinstance(result.codes, list) else [result.codes]
    codes = np.reshape([*map(core.dense_codes, codes)], (-1, *k.shape)).astype(float)
    gaps = np.reshape(result.gap, (-1, len(k))) * bool(caught)
    for i, j in np.ndindex(gaps.shape):
        own = problem._replace(K_xd=k[j], lam=np.ravel(shares)[i] * peaks[j])
        check_code(own, codes[i, j], options["positive"], max(gaps[i, j], 0))


def check_code(problem, y, positive, gap):
    """The code of one query, which may miss the least cost by the gap."""
    K = problem.K_dd
    k = problem.K_xd
    assert np.isfinite(y).all() and not (positive and (y < 0).any())
    eps = rounding_of(problem)
    l1 = np.abs(y).sum()
    if problem.lam == 0 and not positive:
        # no worse than least squares over the eigenvectors of K above rounding
        best = np.linalg.lstsq(K, k, eps * len(k))[0]
        cost, least = (z @ (K @ z - 2 * k) for z in (y, best))
        assert cost - least <= max(gap, TOL * problem.norm2) + eps * (1 + l1) ** 2
        return
    largest = K.diagonal().max()
    # a step in that coordinate would gain violation^2 / K_jj, at most the gap
    bound = (
        TOL * np.sqrt(problem.norm2 * largest) + eps * (1 + l1) + np.sqrt(gap * largest)
    )
    assert oracles.violation(K, k, y, problem.lam, positive) <= bound


@settings(max_examples=1000)
@given(problem=PROBLEMS, m=st.integers(1, 12), reg=REGS, from_grams=booleans)
def test_local_codes_solve_their_equations(problem, m, reg, from_grams):
    """Sum 1, on the nearest atoms, and (B + ridge I) y a multiple of 1."""
    m = min(m, len(problem.D))
    if from_grams:
        norm2 = problem.norm2
        codes = core.locality_codes(*grams_of(problem), m, norm2=norm2, reg=reg)
    else:
        codes = core.glc(problem.X, problem.D, m, reg=reg)
    if reg is None:
        reg = 1e-5 if codes.dtype == np.float32 else 1e-10
    for k, y in zip(problem.K_xd, codes.astype(float)):
        check_local_code(problem, k, y, m, reg)


def check_local_code(problem, k, y, m, reg):
    """The code of one query, of inner products k with the atoms."""
    eps = rounding_of(problem)
    l1 = np.abs(y).sum()
    assert abs(y.sum() - 1) <= eps * (1 + l1)
    distance = problem.norm2 + problem.K_dd.diagonal() - 2 * k
    ordered = np.sort(distance)
    assert distance[y != 0].max() <= ordered[m - 1] + 4 * eps
    same = ordered[0] <= 4 * eps * problem.norm2
    tied = np.ptp(ordered[m - 1 : m + 1]) < 8 * eps
    if same or np.count_nonzero(y) > m or tied:
        return  # ties, and atoms that are the query or not as rounding wants it
    nearest = np.argsort(distance)[:m]
    K = problem.K_dd[np.ix_(nearest, nearest)]
    B = problem.norm2 - k[nearest][:, None] - k[nearest] + K
    image = B @ y[nearest] + reg * np.trace(B) * y[nearest]
    assert np.ptp(image) <= 4 * eps * (1 + l1)
