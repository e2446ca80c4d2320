"""Paths of lambda, and lambda in units of each query's lam_max."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as gs
from grassmann_sc.strategies import bases, coding_problem, coding_problems
from oracles import (
    LOOSE,
    TIGHT,
    booleans,
    cost,
    error,
    regular_problems,
    worst_violation,
)

laws = settings(deadline=None, max_examples=40)


def code(problem, **options):
    return gs.sparse_codes(
        problem.K_dd, problem.K_xd, problem.lam, norm2=problem.norm2, **options
    )


def large_problem(n, N, d, p):
    """Gram matrices of n random queries and N random atoms."""
    D = gs.random_subspaces(N, d, p, 0)
    return gs.projection_kernel(D), gs.projection_kernel(
        gs.random_subspaces(n, d, p, 1), D
    )


# ---------------------------------------------------------------------------- paths


@laws
@given(regular_problems(), booleans, booleans)
def test_path_equals_single_solves(problem, positive, sparse_output):
    lams = problem.lam * np.array([0.1, 3, 1, 0, 30])
    options = dict(norm2=problem.norm2, positive=positive, sparse_output=sparse_output)
    path = gs.sparse_codes(
        problem.K_dd, problem.K_xd, lams, **options, return_info=True
    )
    assert path.gap.shape == path.n_iter.shape == (5, len(problem.X))
    assert (path.gap <= LOOSE * problem.norm2).all()
    for codes, lam in zip(path.codes, lams):
        single = gs.sparse_codes(problem.K_dd, problem.K_xd, lam, **options)
        assert scipy.sparse.issparse(codes) == sparse_output
        assert error((codes - single).max(), 0) < LOOSE


@pytest.mark.parametrize("d", [6, 40])
def test_path_over_a_large_dictionary_is_certified(d):
    """Hundreds of atoms enter and leave: every code of the path meets the optimality
    conditions.
    """
    K_dd, K_xd = large_problem(3, 200, d, 3)
    lam = gs.lam_max(K_xd).max() * np.geomspace(0.9, 0.001, 12)
    codes = gs.sparse_codes(K_dd, K_xd, lam, norm2=3)
    # lam sign(y) on the support, within +-lam elsewhere
    slope = 2 * (K_xd - codes @ K_dd)
    for y, s, penalty in zip(codes, slope, lam):
        assert np.abs(s).max() <= penalty + LOOSE * 3
        assert np.abs(s - penalty * np.sign(y))[y != 0].max(initial=0) <= LOOSE * 3


def test_rows_are_rotated_out_of_the_factor():
    """Along a fine path a few atoms leave large supports at a time: what remains of the
    factor is that of the smaller matrix, so each code is exact to the last digits in
    few rounds.
    """
    K_dd, K_xd = large_problem(20, 100, 20, 3)
    lam = gs.lam_max(K_xd).max() * np.geomspace(0.9, 0.001, 40)
    codes, gap, n_iter = gs.sparse_codes(K_dd, K_xd, lam, norm2=3, return_info=True)
    assert n_iter.max() <= 4
    exits = (codes[:-1] != 0) & (codes[1:] == 0)
    assert (exits.any(axis=2) & (np.count_nonzero(codes[1:], axis=2) > 48)).sum() > 20
    for penalty, Y in zip(lam, codes):
        for k, y in zip(K_xd, Y):
            S = np.flatnonzero(y)
            expected = np.linalg.solve(
                K_dd[np.ix_(S, S)], k[S] - penalty / 2 * np.sign(y[S])
            )
            np.testing.assert_allclose(y[S], expected, rtol=TIGHT, atol=TIGHT)


def test_path_starts_from_codes_that_are_already_exact():
    """The first lambda then takes no round, and leaves no factor to the next."""
    K_dd, K_xd = large_problem(40, 60, 9, 2)
    lams = [0.2, 0.19, 0.05]
    init = gs.sparse_codes(K_dd, K_xd, 0.2, norm2=2, tol=1e-12)
    path = gs.sparse_codes(K_dd, K_xd, lams, norm2=2, init=init, return_info=True)
    assert (path.n_iter[0] == 0).all() and path.n_iter[1:].max() < 15
    for codes, lam in zip(path.codes, lams):
        assert np.abs(codes - gs.sparse_codes(K_dd, K_xd, lam, norm2=2)).max() < LOOSE


# ---------------------------------------------------------------------- lam_scale="max"


@laws
@given(coding_problems(), booleans, st.sampled_from([1e-3, 0.1, 0.9]))
def test_lam_relative_to_lam_max_is_certified_at_each_querys_own_lambda(
    problem, positive, lam
):
    codes, gap, _ = gs.sparse_codes(
        problem.K_dd,
        problem.K_xd,
        lam,
        norm2=problem.norm2,
        lam_scale="max",
        positive=positive,
        return_info=True,
    )
    for i, own in enumerate(lam * gs.lam_max(problem.K_xd)):
        case = problem._replace(
            X=problem.X[i : i + 1], K_xd=problem.K_xd[i : i + 1], lam=own
        )
        best = cost(case, code(case, positive=positive))
        assert abs(cost(case, codes[i : i + 1]) - best) <= 2 * LOOSE * problem.norm2
        assert gap[i] <= LOOSE * problem.norm2
        assert (
            worst_violation(case, codes[i : i + 1], positive)
            <= 2 * LOOSE * problem.norm2
        )


@laws
@given(regular_problems())
def test_lam_relative_to_lam_max_takes_paths_starts_and_tiles(problem):
    lams = [1.0, 0.3, 0.01]
    options = dict(norm2=problem.norm2, lam_scale="max")
    path = gs.sparse_codes(problem.K_dd, problem.K_xd, lams, **options)
    assert not path[0].any()
    for codes, lam in zip(path, lams):
        started = gs.sparse_codes(
            problem.K_dd, problem.K_xd, lam, init=path[2], **options
        )
        assert error(started, codes) < LOOSE
        assert error(gs.gsc(problem.X, problem.D, lam, lam_scale="max"), codes) < LOOSE


def test_codes_and_gap_at_relative_lam_grow_with_the_queries():
    X, D = (bases(np.random.default_rng(seed), 20, 6, 2) for seed in (0, 1))
    problem = coding_problem(X, D, 0.1)

    def scaled(s):
        return gs.sparse_codes(
            problem.K_dd,
            s * problem.K_xd,
            0.1,
            norm2=2 * s**2,
            lam_scale="max",
            tol=1e-2,
            return_info=True,
        )

    codes, gap, _ = scaled(1)
    more, larger, _ = scaled(4)
    assert np.array_equal(more, 4 * codes)
    assert np.array_equal(larger, 16 * gap) and gap.max() > TIGHT


def test_lam_relative_to_lam_max_of_nothing_is_zero():
    K_xd = np.array([[0.0, 0.0], [1e-200, 0], [1e-40, 0], [1, 0]])
    codes, gap, _ = gs.sparse_codes(
        np.eye(2), K_xd, 0.5, norm2=1, lam_scale="max", return_info=True
    )
    assert (
        error(codes, [[0, 0], [0, 0], [0, 0], [0.5, 0]]) <= TIGHT
        and (gap <= LOOSE).all()
    )
