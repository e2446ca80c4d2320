"""Sparse codes: optimality conditions, agreement with other solvers, invariances, hard cases, NumPy twins of the lasso."""

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from sklearn.linear_model import Lasso

import grassmann_sc as gs
from strategies import LOOSE, TIGHT, bases, error, problem_of, problems, regular_problems, rotation, rounding, seeds, vectors

laws = settings(deadline=None, max_examples=40)
never, booleans = st.just(0.0), st.booleans()


def cost(problem, codes):
    """||X^ - sum_j y_j D_j^||^2 + lam ||y||_1 of each query, from d x d matrices."""
    residual = vectors(problem.X) - codes @ vectors(problem.D)
    return np.square(residual).sum(axis=1) + problem.lam * np.abs(codes).sum(axis=1)


def violation(K, k, y, lam, positive=False):
    """Largest violation of the optimality conditions: <D_j^, r> = lam/2 sign y_j, and at most lam/2 in size where y_j = 0."""
    g = k - K @ y
    return np.where(y != 0, np.abs(g - lam / 2 * np.sign(y)), np.maximum((g if positive else np.abs(g)) - lam / 2, 0)).max()


def worst_violation(problem, codes, positive=False):
    return max(violation(problem.K_dd, k, y, problem.lam, positive) for k, y in zip(problem.K_xd, codes))


def code(problem, **options):
    return gs.sparse_codes(problem.K_dd, problem.K_xd, problem.lam, norm2=problem.p, **options)


# ---------------------------------------------------------------------------- sparse codes: optimality


@laws
@given(problems(), booleans)
def test_lasso_satisfies_kkt_and_certifies_the_gap(problem, positive):
    codes, gap, n_iter = code(problem, positive=positive, return_info=True)
    assert codes.shape == problem.K_xd.shape and gap.shape == n_iter.shape == (len(problem.X),)
    assert worst_violation(problem, codes, positive) <= LOOSE * problem.p and (gap <= LOOSE * problem.p).all()
    assert not positive or (codes >= 0).all()


@laws
@given(problems(), seeds, st.sampled_from([1.0, 1e-1, 1e-2, 1e-4, 1e-10]), booleans)
def test_tol_bounds_both_the_gap_and_the_violation(problem, seed, tol, positive):
    init = np.abs(np.random.default_rng(seed).standard_normal(problem.K_xd.shape)) * 10 * tol
    codes, gap, _ = code(problem, positive=positive, tol=tol, init=init, return_info=True)
    assert (gap <= tol * problem.p).all() and worst_violation(problem, codes, positive) <= tol * problem.p + TIGHT


@laws
@given(problems(max_d=4), booleans)
def test_lasso_costs_as_much_as_scikit_learn(problem, positive):
    A, codes = vectors(problem.D).T, code(problem, positive=positive)
    lasso = Lasso(problem.lam / (2 * len(A)), fit_intercept=False, positive=positive, tol=1e-14, max_iter=100_000)
    for x, own in zip(vectors(problem.X), cost(problem, codes)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it stops at rounding, or late on nearly equal atoms, and says so
            lasso.fit(A, x)
        theirs = np.square(x - A @ lasso.coef_).sum() + problem.lam * np.abs(lasso.coef_).sum()
        own_excess, their_gap = own - theirs, 2 * len(A) * lasso.dual_gap_
        assert -their_gap - LOOSE / 10 * problem.p <= own_excess <= LOOSE / 10 * problem.p


@laws
@given(regular_problems(lam=never))
def test_without_lambda_codes_are_least_squares(problem):
    expected = np.linalg.lstsq(vectors(problem.D).T, vectors(problem.X).T)[0].T
    assert error(code(problem), expected) < LOOSE


@laws
@given(problems(lam=never, kinds=["random", "repeated", "orthogonal"]))
def test_without_lambda_no_code_fits_better(problem):
    best = np.linalg.lstsq(vectors(problem.D).T, vectors(problem.X).T, rcond=1e-7)[0].T
    assert (cost(problem, code(problem)) <= cost(problem, best) + LOOSE / 10 * problem.p).all()


def test_without_lambda_repeated_atoms_share_the_least_norm_code():
    D = bases(np.random.default_rng(0), 3, 6, 2)[[0, 1, 2, 0]]
    codes = gs.gsc(D[:1], D, 0)
    assert error(codes, [[0.5, 0, 0, 0.5]]) < TIGHT


@laws
@given(problems(lam=never))
def test_positive_codes_without_lambda_are_nnls(problem):
    codes = code(problem, positive=True)
    theirs = np.array([scipy.optimize.nnls(vectors(problem.D).T, x)[0] for x in vectors(problem.X)])
    assert (codes >= 0).all() and error(cost(problem, codes), cost(problem, theirs)) <= LOOSE * problem.p


@laws
@given(problems(lam=st.sampled_from([1.0, 1 + 1e-12, 2.0])), booleans)
def test_codes_are_zero_from_lam_max_on(problem, positive):
    assert problem.lam >= gs.lam_max(problem.K_xd).max()
    assert not code(problem, positive=positive).any()


@laws
@given(problems())
def test_lam_max_is_the_smallest_lambda_of_a_zero_code(problem):
    for x, k, top in zip(problem.X, problem.K_xd, gs.lam_max(problem.K_xd)):
        one = problem._replace(X=x[None], K_xd=k[None], lam=top * (1 - 1e-3))
        assert top == 2 * np.abs(k).max() and (not top or code(one).any())


@laws
@given(st.integers(1, 6), seeds, st.floats(0.01, 0.9))
def test_code_of_an_atom_is_itself_shrunk(p, seed, share):
    """Orthogonal to all others, an atom gets 1 - lam / (2 p) on itself and 0 elsewhere."""
    Q = rotation(np.random.default_rng(seed), 3 * p)
    D = np.stack([Q[:, i * p:(i + 1) * p] for i in range(3)])
    assert error(gs.gsc(D, D, 2 * p * share), (1 - share) * np.eye(3)) < TIGHT


@laws
@given(st.floats(0.01, 0.9), st.integers(1, 4))
def test_repeated_atoms_share_the_code_of_one(share, copies):
    X = bases(np.random.default_rng(copies), 1, 5, 2)
    codes = gs.gsc(X, np.repeat(X, copies, axis=0), 4 * share)
    assert abs(codes.sum() - (1 - share)) < TIGHT and (codes >= 0).all()


# ---------------------------------------------------------------------------- sparse codes: invariances


@laws
@given(regular_problems(), seeds, booleans)
def test_codes_ignore_choice_of_basis_and_of_axes(problem, seed, positive):
    rng, (X, D) = np.random.default_rng(seed), problem[:2]
    Q = rotation(rng, X.shape[1])
    turned = gs.gsc(Q @ X @ rotation(rng, problem.p), Q @ D @ rotation(rng, problem.p), problem.lam, positive=positive)
    assert error(turned, code(problem, positive=positive)) < LOOSE


@laws
@given(regular_problems(), seeds, booleans)
def test_codes_are_permuted_with_the_atoms(problem, seed, positive):
    order = np.random.default_rng(seed).permutation(len(problem.D))
    permuted = problem._replace(K_dd=problem.K_dd[np.ix_(order, order)], K_xd=problem.K_xd[:, order])
    assert error(code(permuted, positive=positive), code(problem, positive=positive)[:, order]) < LOOSE


@laws
@given(problems(), seeds)
def test_cost_ignores_the_order_of_degenerate_atoms(problem, seed):
    order = np.random.default_rng(seed).permutation(len(problem.D))
    permuted = problem._replace(D=problem.D[order], K_dd=problem.K_dd[np.ix_(order, order)], K_xd=problem.K_xd[:, order])
    assert error(cost(permuted, code(permuted)), cost(problem, code(problem))) < LOOSE * problem.p


@laws
@given(regular_problems(), booleans)
def test_unused_atoms_do_not_change_codes(problem, positive):
    codes = code(problem, positive=positive)
    used = codes.any(axis=0)
    used[0] = True
    fewer = problem._replace(K_dd=problem.K_dd[np.ix_(used, used)], K_xd=problem.K_xd[:, used])
    assert error(code(fewer, positive=positive), codes[:, used]) < LOOSE


@laws
@given(regular_problems(), st.sampled_from([1e-200, 1e-100, 1e-6, 1e6, 1e100, 1e200]), booleans)
def test_codes_ignore_the_scale_of_everything(problem, scale, positive):
    K_dd, K_xd, norm2, lam = (scale * A for A in (problem.K_dd, problem.K_xd, problem.p, problem.lam))
    assert error(gs.sparse_codes(K_dd, K_xd, lam, norm2=norm2, positive=positive), code(problem, positive=positive)) < LOOSE


@laws
@given(regular_problems(), seeds, st.sampled_from([1e-9, 1.0, 1e9, 1e100, 1e300]), booleans)
def test_init_does_not_change_the_solution(problem, seed, scale, positive):
    init = scale * np.random.default_rng(seed).standard_normal(problem.K_xd.shape)
    codes = code(problem, positive=positive)
    assert error(code(problem, positive=positive, init=init), codes) < LOOSE
    again, _, n_iter = code(problem, positive=positive, init=scipy.sparse.csr_array(codes), return_info=True)
    assert np.array_equal(again, codes) and not n_iter.any()


@laws
@given(problems(), seeds, st.sampled_from([1e-3, 1.0, 1e8, 1e300]), booleans)
def test_any_init_of_a_degenerate_problem_ends_at_an_optimum(problem, seed, scale, positive):
    init = scale * np.random.default_rng(seed).standard_normal(problem.K_xd.shape)
    assert worst_violation(problem, code(problem, init=init, positive=positive), positive) <= LOOSE * problem.p


@laws
@given(problems(), seeds, st.sampled_from([1e9, 1e150, 1e300]), booleans)
def test_a_start_worse_than_zero_is_not_used(problem, seed, scale, positive):
    init = scale * (1 + np.random.default_rng(seed).random(problem.K_xd.shape))  # of one sign: no two cancel
    ours, zero = (code(problem, init=start, positive=positive, return_info=True) for start in (init, None))
    assert all(np.array_equal(a, b) for a, b in zip(ours, zero))


@laws
@given(problems(), booleans, st.sampled_from([1e-3, 0.1, 0.9]))
def test_lam_relative_to_lam_max_is_certified_at_each_querys_own_lambda(problem, positive, lam):
    codes, gap, _ = gs.sparse_codes(problem.K_dd, problem.K_xd, lam, norm2=problem.p, lam_scale="max", positive=positive, return_info=True)
    for i, own in enumerate(lam * gs.lam_max(problem.K_xd)):
        one = problem._replace(X=problem.X[i:i + 1], K_xd=problem.K_xd[i:i + 1], lam=own)
        best = cost(one, code(one, positive=positive))
        assert abs(cost(one, codes[i:i + 1]) - best) <= 2 * LOOSE * problem.p and gap[i] <= LOOSE * problem.p
        assert worst_violation(one, codes[i:i + 1], positive) <= 2 * LOOSE * problem.p


@laws
@given(regular_problems())
def test_lam_relative_to_lam_max_takes_paths_starts_and_tiles(problem):
    lams, options = [1.0, 0.3, 0.01], dict(norm2=problem.p, lam_scale="max")
    path = gs.sparse_codes(problem.K_dd, problem.K_xd, lams, **options)
    assert not path[0].any()
    for codes, lam in zip(path, lams):
        assert error(gs.sparse_codes(problem.K_dd, problem.K_xd, lam, init=path[2], **options), codes) < LOOSE
        assert error(gs.gsc(problem.X, problem.D, lam, lam_scale="max"), codes) < LOOSE


def test_codes_and_gap_at_relative_lam_grow_with_the_queries():
    problem = problem_of(*(bases(np.random.default_rng(seed), 20, 6, 2) for seed in (0, 1)), 0.1)
    (codes, gap, _), (more, larger, _) = (gs.sparse_codes(problem.K_dd, s * problem.K_xd, 0.1, norm2=2 * s**2, lam_scale="max", tol=1e-2,
                                                          return_info=True) for s in (1, 4))
    assert np.array_equal(more, 4 * codes) and np.array_equal(larger, 16 * gap) and gap.max() > TIGHT


def test_lam_relative_to_lam_max_of_nothing_is_zero():
    K_xd = np.array([[0.0, 0.0], [1e-200, 0], [1e-40, 0], [1, 0]])
    codes, gap, _ = gs.sparse_codes(np.eye(2), K_xd, 0.5, norm2=1, lam_scale="max", return_info=True)
    assert error(codes, [[0, 0], [0, 0], [0, 0], [0.5, 0]]) <= TIGHT and (gap <= LOOSE).all()


@laws
@given(regular_problems(), booleans, booleans)
def test_path_equals_single_solves(problem, positive, sparse_output):
    lams = problem.lam * np.array([0.1, 3, 1, 0, 30])
    options = dict(norm2=problem.p, positive=positive, sparse_output=sparse_output)
    path = gs.sparse_codes(problem.K_dd, problem.K_xd, lams, **options, return_info=True)
    assert path.gap.shape == path.n_iter.shape == (5, len(problem.X)) and (path.gap <= LOOSE * problem.p).all()
    for codes, lam in zip(path.codes, lams):
        single = gs.sparse_codes(problem.K_dd, problem.K_xd, lam, **options)
        assert scipy.sparse.issparse(codes) == sparse_output and error((codes - single).max(), 0) < LOOSE


@laws
@given(problems(), booleans)
def test_sparse_output_equals_dense(problem, positive):
    dense, sparse = code(problem, positive=positive), code(problem, positive=positive, sparse_output=True)
    assert sparse.format == "csr" and sparse.dtype == dense.dtype and np.array_equal(sparse.toarray(), dense)
    assert sparse.nnz == np.count_nonzero(dense)


@laws
@given(problems(max_d=4))
def test_norm2_may_differ_from_query_to_query(problem):
    scale = np.arange(1, len(problem.X) + 1)
    codes = gs.sparse_codes(problem.K_dd, problem.K_xd * scale[:, None], problem.lam, norm2=problem.p * scale**2)
    for i, s in enumerate(scale):
        alone = gs.sparse_codes(problem.K_dd, problem.K_xd[i:i + 1] * s, problem.lam, norm2=problem.p * s**2)
        assert np.array_equal(codes[i:i + 1], alone)


@laws
@given(regular_problems(), booleans)
def test_float32_codes_are_those_of_float64_rounded(problem, positive):
    X, D = problem.X.astype(np.float32), problem.D.astype(np.float32)
    codes = gs.gsc(X, D, problem.lam, positive=positive)
    assert codes.dtype == np.float32 and error(codes, code(problem, positive=positive)) < rounding(np.float32)
    local = gs.glc(X, D, len(D))
    assert local.dtype == np.float32 and error(local.sum(axis=1), 1) < rounding(np.float32)
    assert gs.sparse_codes(problem.K_dd.astype(np.float32), problem.K_xd, problem.lam, norm2=problem.p).dtype == np.float64


def test_queries_and_atoms_may_differ_in_dimension():
    X, D = gs.random_subspaces(4, 6, 3, rng=0), gs.random_subspaces(5, 6, 2, rng=1)
    problem = problem_of(X, D, 0.1)
    assert error(gs.gsc(X, D, 0.1), code(problem)) < LOOSE and worst_violation(problem, code(problem)) < LOOSE
    assert error(gs.glc(X, D, 4, reg=0.1), gs.locality_codes(problem.K_dd, problem.K_xd, 4, norm2=3, reg=0.1)) < TIGHT


# ---------------------------------------------------------------------------- sparse codes: hard cases end, and say so


def crowd(n):
    """Queries, and more atoms than the space of projectors has dimensions."""
    return gs.random_subspaces(n, 6, 2, rng=1), gs.random_subspaces(40, 6, 2, rng=0)


@pytest.mark.parametrize("lam", [0, 1e-14, 1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("positive", [False, True])
def test_small_lambda_on_a_singular_gram_matrix_converges(lam, positive):
    problem = problem_of(*crowd(20), lam)
    codes, gap, _ = code(problem, positive=positive, return_info=True)
    assert (gap <= LOOSE * 2).all() and worst_violation(problem, codes, positive) <= LOOSE * 2


@pytest.mark.parametrize("distance", [0, 1e-15, 1e-9, 1e-8, 1e-7, 1e-5])
@pytest.mark.parametrize("lam", [1e-3, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_nearly_repeated_atoms_are_coded_exactly(distance, lam, positive):
    rng = np.random.default_rng(0)
    B = bases(rng, 8, 8, 2)
    D = np.concatenate([B, np.linalg.qr(B + distance * rng.standard_normal(B.shape))[0], B])
    problem = problem_of(np.concatenate([bases(rng, 4, 8, 2), B]), D, lam)
    assert worst_violation(problem, code(problem, positive=positive), positive) <= LOOSE * 2


@pytest.mark.parametrize("options", [dict(max_iter=1), dict(tol=1e-300)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
def test_a_code_that_is_not_certified_is_reported(options, positive):
    problem = problem_of(*crowd(8), 0.1)
    with pytest.warns(UserWarning, match=r"[1-8] of 8 codes did not converge.* worst duality gap .*e?-?\d+, tolerance \d"):
        codes, gap, _ = code(problem, positive=positive, return_info=True, **options)
    excess = cost(problem, codes) - cost(problem, code(problem, positive=positive))
    assert (gap > options.get("tol", LOOSE) * 2).any() and (excess <= gap + TIGHT).all()


def test_an_indefinite_gram_matrix_is_not_coded_in_silence():
    K_dd, K_xd = np.array([[1.0, 2], [2, 1]]), np.array([[0.5, 0.9]])
    for positive in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            codes = gs.sparse_codes(K_dd, K_xd, 0.1, norm2=1, positive=positive)
        assert caught or violation(K_dd, K_xd[0], codes[0], 0.1, positive) <= LOOSE


@pytest.mark.parametrize("lam", [0, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_zero_atoms_and_zero_queries_get_zero(lam, positive):
    K_dd, K_xd = np.diag([1.0, 0, 1]), np.array([[0.5, 0, 0.2], [0, 0, 0]])
    codes = gs.sparse_codes(K_dd, K_xd, lam, norm2=[1, 0], positive=positive)
    assert error(codes, np.maximum(K_xd - lam / 2, 0)) < TIGHT


@pytest.mark.parametrize("lam", [0, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_orthogonal_blocks_known_only_to_rounding_are_coded_exactly(lam, positive):
    Q = rotation(np.random.default_rng(0), 8)
    D, X = (np.stack([Q[:, columns] for columns in blocks]) for blocks in ([[0, 1], [2, 3], [4, 5], [1, 0]], [[0, 1], [6, 7], [0, 4]]))
    codes = gs.gsc(X, D, lam, positive=positive)
    own = 1 - lam / 4
    assert error(codes @ [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]], [[own, 0, 0], [0, 0, 0], [own - 0.5, 0, own - 0.5]]) < TIGHT


# ---------------------------------------------------------------------------- kernels of the lasso, one NumPy twin each


def factored(K, m):
    L = np.zeros_like(K)
    assert gs._factor(K, np.arange(len(K)), L, 0, m) == m
    return L


@laws
@given(seeds)
def test_factor_and_solve_twins(seed):
    rng = np.random.default_rng(seed)
    G, b = rng.standard_normal((6, 9)), rng.standard_normal(6)
    L, x = factored(G @ G.T, 5), b.copy()
    gs._solve(L, x, 5)
    np.testing.assert_allclose(L[:5, :5], np.linalg.cholesky(G @ G.T)[:5, :5], rtol=TIGHT, atol=TIGHT)
    np.testing.assert_allclose(L[:5, :5] @ L[:5, :5].T @ x[:5], b[:5], rtol=TIGHT, atol=TIGHT)


@laws
@given(problems(), seeds, booleans)
def test_certificate_twin(problem, seed, positive):
    """Primal and dual values from d x d matrices: the dual point is the residual, scaled into the feasible set."""
    X, D, K, K_xd, p, lam = problem
    y = np.random.default_rng(seed).standard_normal(len(D))
    y = np.abs(y) if positive else y
    g, (a, *_), A = K_xd[0] - K @ y, vectors(X), vectors(D)
    r = a - y @ A
    value, gap, excess = gs._certificate(K_xd[0], y, g, np.arange(len(y)), len(y), lam / 2, float(p), positive, np.empty(len(y)))
    peak = (A @ r).max() if positive else np.abs(A @ r).max()
    u = r * min(1, lam / 2 / peak) if peak > 0 else r
    scaled = 2 * u @ a - u @ u
    primal = r @ r + lam * np.abs(y).sum()
    assert abs(value - primal) < TIGHT * p and abs(excess - violation(K, K_xd[0], y, lam, positive)) < TIGHT * p
    assert gap <= primal - scaled + TIGHT * p and (positive or abs(gap - (primal - scaled)) < TIGHT * p)


@laws
@given(problems(), booleans)
def test_coordinate_descent_twin(problem, positive):
    _, _, K, K_xd, _, lam = problem
    y, g, u = np.zeros(len(K)), K_xd[0].copy(), K_xd[0] if positive else np.abs(K_xd[0])
    gs._coordinate_descent(K, K.diagonal().copy(), lam / 2, positive, y, g, np.empty((2, len(K))), 1)
    j = y.argmax() if positive else np.abs(y).argmax()
    expected = np.sign(K_xd[0, j]) * max(u.max() - lam / 2, 0) / K[j, j]
    np.testing.assert_allclose([y[j], np.count_nonzero(y)], [expected, expected != 0], rtol=TIGHT)
    np.testing.assert_allclose(g, K_xd[0] - K @ y, rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize("lost", [[], [0], [99], [17, 64], [3, 4]])
def test_rows_are_rotated_out_of_the_factor(lost):
    """_delete_rows against the factor of the smaller matrix."""
    K = gs.projection_kernel(gs.random_subspaces(100, 20, 3, 0))
    L, stay = np.linalg.cholesky(K), np.setdiff1d(np.arange(100), lost)
    kept = gs._delete_rows(L, np.array(lost + [0.0] * 5), len(lost), 100, np.empty((3, 100)))
    assert kept == 100 - len(lost)
    np.testing.assert_allclose(np.tril(L[:kept, :kept]), np.linalg.cholesky(K[np.ix_(stay, stay)]), rtol=TIGHT, atol=TIGHT)


@pytest.mark.parametrize("d", [6, 40])
def test_path_over_a_large_dictionary_is_certified(d):
    """Hundreds of atoms enter and leave: every code of the path meets the optimality conditions."""
    D, X = gs.random_subspaces(200, d, 3, 0), gs.random_subspaces(3, d, 3, 1)
    K_dd, K_xd = gs.projection_kernel(D), gs.projection_kernel(X, D)
    lam = gs.lam_max(K_xd).max() * np.geomspace(0.9, 0.001, 12)
    codes = gs.sparse_codes(K_dd, K_xd, lam, norm2=3)
    slope = 2 * (K_xd - codes @ K_dd)  # lam sign(y) on the support, within +-lam elsewhere
    for y, s, half in zip(codes, slope, lam):
        assert np.abs(s).max() <= half + LOOSE * 3
        assert np.abs(s - half * np.sign(y))[y != 0].max(initial=0) <= LOOSE * 3


def test_path_starts_from_codes_that_are_already_exact():
    """The first lambda then takes no round, and leaves no factor to the next."""
    D, X = gs.random_subspaces(60, 9, 2, 0), gs.random_subspaces(40, 9, 2, 1)
    K_dd, K_xd = gs.projection_kernel(D), gs.projection_kernel(X, D)
    init = gs.sparse_codes(K_dd, K_xd, 0.2, norm2=2, tol=1e-12)
    path = gs.sparse_codes(K_dd, K_xd, [0.2, 0.19, 0.05], norm2=2, init=init, return_info=True)
    assert (path.n_iter[0] == 0).all() and path.n_iter[1:].max() < 15
    for codes, lam in zip(path.codes, [0.2, 0.19, 0.05]):
        assert np.abs(codes - gs.sparse_codes(K_dd, K_xd, lam, norm2=2)).max() < LOOSE
