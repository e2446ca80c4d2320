"""Coding and classification: optimality conditions, agreement with other solvers, invariances, NumPy twins."""

import warnings

import hypothesis.strategies as st
import numba
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from sklearn.linear_model import Lasso

import grassmann_sc as gs
from strategies import LOOSE, TIGHT, bases, gram, problems, regular_problems, rotation, rounding, seeds, symmetric

laws = settings(deadline=None, max_examples=40)
never = st.just(0.0)
booleans = st.booleans()


def error(A, B):
    return np.abs(np.asarray(A) - B).max(initial=0)


def vectors(X):
    """vec(X X^T) of each subspace, (n, d^2)."""
    return (X @ np.swapaxes(X, 1, 2)).reshape(len(X), -1)


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
@given(regular_problems(), seeds, st.sampled_from([1e-9, 1.0, 1e9, 1e100]), booleans)
def test_init_does_not_change_the_solution(problem, seed, scale, positive):
    init = scale * np.random.default_rng(seed).standard_normal(problem.K_xd.shape)
    codes = code(problem, positive=positive)
    assert error(code(problem, positive=positive, init=init), codes) < LOOSE
    again, _, n_iter = code(problem, positive=positive, init=scipy.sparse.csr_array(codes), return_info=True)
    assert np.array_equal(again, codes) and not n_iter.any()


@laws
@given(problems(), seeds)
def test_any_init_of_a_degenerate_problem_ends_at_an_optimum(problem, seed):
    init = np.random.default_rng(seed).standard_normal(problem.K_xd.shape) * (1 + problem.lam)
    assert worst_violation(problem, code(problem, init=init)) <= LOOSE * problem.p


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


# ---------------------------------------------------------------------------- sparse codes: hard cases end, and say so


def random_problem(n=20, N=40, d=6, p=2, lam=0.1):
    X, D = gs.random_subspaces(n, d, p, rng=1), gs.random_subspaces(N, d, p, rng=0)
    return gs_problem(X, D, lam)


def gs_problem(X, D, lam):
    from strategies import Problem
    return Problem(X, D, gs.projection_kernel(D), gs.projection_kernel(X, D), X.shape[2], lam)


@pytest.mark.parametrize("lam", [0, 1e-14, 1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("positive", [False, True])
def test_small_lambda_on_a_singular_gram_matrix_converges(lam, positive):
    problem = random_problem(lam=lam)
    codes, gap, _ = code(problem, positive=positive, return_info=True)
    assert (gap <= LOOSE * 2).all() and worst_violation(problem, codes, positive) <= LOOSE * 2


@pytest.mark.parametrize("distance", [0, 1e-15, 1e-9, 1e-8, 1e-7, 1e-5])
@pytest.mark.parametrize("lam", [1e-3, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_nearly_repeated_atoms_are_coded_exactly(distance, lam, positive):
    rng = np.random.default_rng(0)
    B = bases(rng, 8, 8, 2)
    D = np.concatenate([B, np.linalg.qr(B + distance * rng.standard_normal(B.shape))[0], B])
    problem = gs_problem(np.concatenate([bases(rng, 4, 8, 2), B]), D, lam)
    assert worst_violation(problem, code(problem, positive=positive), positive) <= LOOSE * 2


@pytest.mark.parametrize("options", [dict(max_iter=1), dict(tol=1e-300)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
def test_a_code_that_is_not_certified_is_reported(options, positive):
    problem = random_problem(n=8)
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
    value, gap, excess = gs._certificate(K.diagonal(), K_xd[0], y, g, lam / 2, float(p), positive)
    peak = (A @ r).max() if positive else np.abs(A @ r).max()
    u = r * min(1, lam / 2 / peak) if peak > 0 else r
    scaled = 2 * u @ a - u @ u
    primal = r @ r + lam * np.abs(y).sum()
    assert abs(value - primal) < TIGHT * primal and abs(excess - violation(K, K_xd[0], y, lam, positive)) < TIGHT * primal
    assert gap <= primal - scaled + TIGHT * primal and (positive or abs(gap - (primal - scaled)) < TIGHT * primal)


@laws
@given(problems(), booleans)
def test_coordinate_descent_twin(problem, positive):
    _, _, K, K_xd, _, lam = problem
    y, g, u = np.zeros(len(K)), K_xd[0].copy(), K_xd[0] if positive else np.abs(K_xd[0])
    gs._coordinate_descent(K, K.diagonal().copy(), lam / 2, positive, y, g, 1)
    j = y.argmax() if positive else np.abs(y).argmax()
    expected = np.sign(K_xd[0, j]) * max(u.max() - lam / 2, 0) / K[j, j]
    np.testing.assert_allclose([y[j], np.count_nonzero(y)], [expected, expected != 0], rtol=TIGHT)
    np.testing.assert_allclose(g, K_xd[0] - K @ y, rtol=TIGHT, atol=TIGHT)


# ---------------------------------------------------------------------------- locality-constrained codes


def local(problem, m, **options):
    return gs.locality_codes(problem.K_dd, problem.K_xd, m, norm2=problem.p, **options)


@laws
@given(problems(lam=never), st.data())
def test_local_codes_sum_to_one_on_the_nearest_atoms(problem, data):
    m = data.draw(st.integers(1, len(problem.D)))
    codes = local(problem, m)
    assert error(codes.sum(axis=1), 1) < LOOSE
    distance = problem.p + problem.K_dd.diagonal() - 2 * problem.K_xd
    nearest = np.argsort(distance, axis=1, kind="stable")[:, :m]
    outside = np.ones(codes.shape, bool)
    np.put_along_axis(outside, nearest, False, axis=1)
    assert not codes[outside].any()
    assert np.array_equal(local(problem, m, sparse_output=True).toarray(), codes)


@laws
@given(regular_problems(lam=never), st.data())
def test_locality_twin(problem, data):
    """(B + reg trace(B) I) y = 1 by np.linalg.solve."""
    m, reg = data.draw(st.integers(1, len(problem.D))), data.draw(st.sampled_from([1e-3, 1e-1]))
    for k, y in zip(problem.K_xd, local(problem, m, reg=reg)):
        near = np.argsort(-2 * k, kind="stable")[:m]
        B = problem.p - k[near] - k[near][:, None] + problem.K_dd[np.ix_(near, near)]
        expected = np.linalg.solve(B + reg * np.trace(B) * np.eye(m), np.ones(m))
        np.testing.assert_allclose(y[near], expected / expected.sum(), rtol=TIGHT, atol=TIGHT)


@laws
@given(regular_problems(lam=never), st.data())
def test_local_codes_solve_the_constrained_problem(problem, data):
    """No better affine combination of the neighbours, by the equations with a Lagrange multiplier."""
    m = data.draw(st.integers(1, len(problem.D)))
    for k, y in zip(problem.K_xd, local(problem, m)):
        near = np.flatnonzero(y)
        K, ones = problem.K_dd[np.ix_(near, near)], np.ones((len(near), 1))
        expected = np.linalg.solve(np.block([[K, ones], [ones.T, 0]]), np.append(k[near], 1))[:-1]
        residual = lambda y: y @ K @ y - 2 * y @ k[near]
        assert residual(y[near]) <= residual(expected) + LOOSE


@laws
@given(st.integers(1, 12), seeds, st.sampled_from([1, 2, 5]))
def test_nearest_twin(m, seed, values):
    rng = np.random.default_rng(seed)
    K, k = np.diag(rng.integers(0, values, 12).astype(float)), rng.integers(0, values, 12).astype(float)
    nearest = np.empty(m, np.int64)
    gs._nearest(K, k, 1.0, nearest, np.empty(m))
    assert np.array_equal(nearest, np.sort(np.argsort(1 + K.diagonal() - 2 * k, kind="stable")[:m]))


@laws
@given(problems(lam=never), st.data())
def test_local_code_of_an_atom_is_itself(problem, data):
    """1 on the atom, shared equally by those of its copies that are among the neighbours; to rounding of the Gram matrix."""
    D, m = problem.D, data.draw(st.integers(1, len(problem.D)))
    codes = gs.glc(D, D, m)
    copies = gs.chordal_distance(D) <= 1e-7 * np.sqrt(problem.p)
    assert error((codes * copies).sum(axis=1), 1) < TIGHT and not codes[~copies].any()
    chosen = codes > 0
    assert error(codes, chosen / chosen.sum(axis=1, keepdims=True)) < TIGHT


@laws
@given(regular_problems(lam=never), seeds, st.sampled_from([1e-200, 1e-6, 1e6, 1e200]))
def test_local_codes_ignore_basis_order_and_scale(problem, seed, scale):
    rng, (X, D), N = np.random.default_rng(seed), problem[:2], len(problem.D)
    order, m, codes = rng.permutation(N), min(3, N), gs.glc(problem.X, problem.D, min(3, N))
    assert error(gs.glc(X @ rotation(rng, problem.p), D[order] @ rotation(rng, problem.p), m), codes[:, order]) < LOOSE
    scaled = gs.locality_codes(scale * problem.K_dd, scale * problem.K_xd, m, norm2=scale * problem.p)
    assert error(scaled, codes) < LOOSE


# ---------------------------------------------------------------------------- residuals and labels


@laws
@given(problems(), seeds, booleans)
def test_class_residuals_are_those_of_d_by_d_matrices(problem, seed, sparse):
    rng, N = np.random.default_rng(seed), len(problem.D)
    codes, labels = rng.standard_normal((len(problem.X), N)), rng.integers(0, 3, N)
    given_codes = scipy.sparse.csr_array(codes) if sparse else codes
    residuals, classes = gs.class_residuals(given_codes, problem.K_dd, problem.K_xd, labels, norm2=problem.p)
    assert np.array_equal(classes, np.unique(labels)) and residuals.shape == (len(problem.X), len(classes))
    explicit = [np.square(vectors(problem.X) - (codes * (labels == c)) @ vectors(problem.D)).sum(axis=1) for c in classes]
    assert error(residuals.T, explicit) < LOOSE / 100 and (residuals >= 0).all()
    assigned = gs.classify(given_codes, problem.K_dd, problem.K_xd, labels, norm2=problem.p)
    assert np.array_equal(assigned, classes[residuals.argmin(axis=1)])


LABELS = [[2, 0, 2, 1], ["b", "a", "b", "c"], [(1, 2), (0, 1), (1, 2), (1, 1)], [frozenset({1}), frozenset({2}), frozenset({1}), frozenset()],
          [1, "a", 1, None], [True, False, True, False], np.array([2.5, 1, 2.5, 0]), np.array(["x", None, "x", 3], object)]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_any_hashable_is_a_label(labels):
    D = bases(np.random.default_rng(0), 3, 5, 2)[[0, 1, 0, 2]]
    K = gs.projection_kernel(D)
    codes = gs.gsc(D, D, 0.01)
    residuals, classes = gs.class_residuals(codes, K, K, labels, norm2=2)
    assert residuals.shape == (4, len(set(labels))) and set(classes.tolist()) == set(labels)
    assert gs.classify(codes, K, K, labels, norm2=2).tolist() == list(labels)
    one = gs.classify(codes[:, :1], K[:1, :1], K[:, :1], labels[:1], norm2=2)
    assert one.tolist() == 4 * [labels[0]]


def test_sortable_classes_are_sorted_and_others_keep_their_order():
    K = np.eye(4)
    classes = lambda labels: gs.class_residuals(K, K, K, labels, norm2=1)[1]
    assert classes([3, 1, 2, 3]).tolist() == [1, 2, 3] and classes(["b", 1, None, "b"]).tolist() == ["b", 1, None]
    assert classes([3, 1, 2, 3]).dtype == np.array([1]).dtype and classes([(2,), (1,), (2,), (3,)]).tolist() == [(1,), (2,), (3,)]


# ---------------------------------------------------------------------------- arrays as they come


LAYOUTS = {
    "read-only": lambda A: read_only(A.copy()),
    "Fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "reversed": lambda A: np.ascontiguousarray(A[..., ::-1])[..., ::-1],
    "big-endian": lambda A: A.astype(A.dtype.newbyteorder(">")),
    "list": lambda A: A.tolist(),
    "longdouble": lambda A: A.astype(np.longdouble),
}


def read_only(A):
    A.flags.writeable = False
    return A


def results(X, D, K_dd, K_xd, codes, weights):
    """Every public function on the same input."""
    labels = [0, 1, 0, 1, 2]
    return [gs.orthonormalize(X), gs.projection_kernel(X, D), gs.projection_kernel(D), gs.principal_angles(X, X), gs.chordal_distance(X, D),
            gs.geodesic_distance(X), gs.proj(K_dd, 2), gs.chordal_mean(D, weights), gs.lam_max(K_xd), gs.gsc(X, D, 0.1, init=codes),
            gs.glc(X, D, 3), gs.sparse_codes(K_dd, K_xd, 0.1, norm2=2, init=codes), gs.sparse_codes(K_dd, K_xd, 0, norm2=2),
            gs.locality_codes(K_dd, K_xd, 3, norm2=2), gs.reconstruct(codes, D),
            gs.class_residuals(codes, K_dd, K_xd, labels, norm2=2)[0], gs.classify(codes, K_dd, K_xd, labels, norm2=2)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layout_of_the_input_changes_nothing_and_input_is_not_changed(layout, dtype):
    X, D = (gs.random_subspaces(n, 5, 2, rng=n).astype(dtype) for n in (4, 5))
    plain = [X, D, gs.projection_kernel(D), gs.projection_kernel(X, D), np.ones((4, 5), dtype), np.arange(1, 6, dtype=dtype)]
    if layout in ("list", "longdouble"):  # these become float64
        plain = [A.astype(np.float64) for A in plain]
    before, given_ = [A.copy() for A in plain], [LAYOUTS[layout](A) for A in plain]
    for ours, theirs in zip(results(*plain), results(*given_), strict=True):
        assert ours.dtype == theirs.dtype and error(ours.astype(float), theirs) < rounding(ours.dtype if ours.dtype.kind == "f" else float)
    assert all(np.array_equal(a, b) for a, b in zip(before, plain)) and all(np.array_equal(a, b) for a, b in zip(before, given_))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int32, np.float16])
def test_other_real_types_become_float64(dtype):
    X = np.stack([np.eye(4)[:, :2], np.eye(4)[:, 1:3]])
    K, codes, weights = np.eye(2), np.eye(2), np.ones(2)
    call = lambda X, K, codes, weights: [
        gs.orthonormalize(X), gs.projection_kernel(X), gs.principal_angles(X, X), gs.chordal_distance(X), gs.geodesic_distance(X),
        gs.chordal_mean(X[:1], weights[:1]), gs.lam_max(K), gs.gsc(X, X, 1), gs.glc(X, X, 1), gs.reconstruct(codes, X)]
    assert all(np.array_equal(a, b) and a.dtype == np.float64 for a, b in zip(call(X, K, codes, weights), call(
        X.astype(dtype), K.astype(dtype), codes.astype(dtype), weights.astype(dtype)), strict=True))


# ---------------------------------------------------------------------------- threads and tiles


def test_codes_do_not_depend_on_threads(monkeypatch):
    X, D = gs.random_subspaces(200, 4, 2, rng=0), gs.random_subspaces(7, 4, 2, rng=1)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found.append([gs.gsc(X, D, 0.1), gs.gsc(X, D, 0), gs.gsc(X, D, 0.1, sparse_output=True).toarray(), gs.glc(X, D, 3)])
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


@pytest.mark.parametrize("lam", [0.1, [0.3, 0, 0.1]], ids=str)
@pytest.mark.parametrize("sparse_output", [False, True])
def test_tiles_of_queries_join_to_the_whole(lam, sparse_output):
    problem = random_problem(n=9, N=5)
    call = lambda rows, **options: gs.sparse_codes(problem.K_dd, problem.K_xd[rows], lam, norm2=2, sparse_output=sparse_output, **options)
    parts = [slice(0, 4), slice(4, 9)]
    whole, joined = call(slice(9), return_info=True), gs._join([call(part, return_info=True) for part in parts])
    assert isinstance(joined, gs.SparseCodes) and np.array_equal(whole.gap, joined.gap) and np.array_equal(whole.n_iter, joined.n_iter)
    for one in (joined.codes, gs._join([call(part) for part in parts])):
        assert type(one) is type(whole.codes)
        listed = lambda codes: [A.toarray() for A in (codes if isinstance(codes, list) else [codes])] if sparse_output else codes
        assert np.array_equal(listed(one), listed(whole.codes))


def test_queries_beyond_one_tile_are_coded_alike():
    """More queries than the 64 of a tile when the dictionary is wide."""
    X, D = gs.random_subspaces(70, 3, 1, rng=0), gs.random_subspaces(1, 3, 1, rng=1)
    K_xd = gram(X, D)
    assert error(gs.gsc(X, D, 0.1), np.maximum(K_xd - 0.05, 0)) < TIGHT


# ---------------------------------------------------------------------------- legal extremes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_queries_give_empty_results(dtype):
    X, D = np.empty((0, 4, 2), dtype), gs.random_subspaces(3, 4, 2, rng=0).astype(dtype)
    K_dd, K_xd = gs.projection_kernel(D), gs.projection_kernel(X, D)
    codes, gap, n_iter = gs.gsc(X, D, 0.1, return_info=True)
    assert codes.shape == gs.glc(X, D, 2).shape == K_xd.shape == (0, 3) and gap.shape == n_iter.shape == (0,)
    assert codes.dtype == gs.glc(X, D, 2).dtype == K_xd.dtype == dtype
    assert gs.gsc(X, D, [0.1, 0.2]).shape == (2, 0, 3) and gs.gsc(X, D, 0.1, sparse_output=True).shape == (0, 3)
    assert gs.glc(X, D, 2, sparse_output=True).shape == (0, 3) and [A.shape for A in gs.gsc(X, D, [0.1], sparse_output=True)] == [(0, 3)]
    residuals, classes = gs.class_residuals(codes, K_dd, K_xd, ["a", "a", "b"], norm2=2)
    assert residuals.shape == (0, 2) and classes.tolist() == ["a", "b"]
    assert gs.classify(codes, K_dd, K_xd, ["a", "a", "b"], norm2=2).shape == (0,)
    assert gs.reconstruct(codes, D).shape == (0, 4, 2) and gs.lam_max(K_xd).shape == (0,)
    assert gs.chordal_distance(X).shape == gs.geodesic_distance(X).shape == gs.projection_kernel(X).shape == (0, 0)
    assert gs.chordal_distance(D, X).shape == gs.geodesic_distance(D, X).shape == (3, 0)
    assert gs.principal_angles(X, X).shape == (0, 2) and gs.proj(np.empty((0, 4, 4), dtype), 2).shape == (0, 4, 2)
    assert gs.orthonormalize(X).shape == X.shape and gs.random_subspaces(0, 4, 2).shape == (0, 4, 2)


@pytest.mark.parametrize("d", [1, 3])
def test_the_whole_space_is_one_point(d):
    """p = d: every basis spans R^d."""
    X, D = gs.random_subspaces(2, d, d, rng=0), gs.random_subspaces(3, d, d, rng=1)
    assert error(gs.projection_kernel(X, D), d) < TIGHT and error(gs.principal_angles(X[0], D[0]), 0) < 1e-14
    assert error(gs.chordal_distance(X, D), 0) < 1e-14 and error(gs.geodesic_distance(X, D), 0) < 1e-14
    assert error(gs.gsc(X, D, d / 2).sum(axis=1), 0.75) < TIGHT and error(gs.glc(X, D, 2).sum(axis=1), 1) < TIGHT
    assert gs.chordal_mean(X).shape == gs.proj(np.eye(d), d).shape == (d, d) and gs.reconstruct(np.zeros((1, 3)), D).shape == (1, d, d)


@pytest.mark.parametrize("positive", [False, True])
def test_one_atom_is_soft_thresholding(positive):
    K_xd = np.array([[1.5], [0.0], [-1.0], [0.04]])
    for lam in (0, 0.1, 3):
        shrunk = np.sign(K_xd) * np.maximum(np.abs(K_xd) - lam / 2, 0) / 2
        codes = gs.sparse_codes([[2.0]], K_xd, lam, norm2=2, positive=positive)
        assert error(codes, np.maximum(shrunk, 0) if positive else shrunk) < TIGHT
    assert np.array_equal(gs.locality_codes([[2.0]], K_xd, 1, norm2=2), np.ones((4, 1)))


@pytest.mark.parametrize("reg", [0, 1e-300, 1e300])
def test_local_codes_of_dependent_neighbours_are_finite_for_any_reg(reg):
    codes = gs.locality_codes(np.ones((3, 3)), np.full((1, 3), 0.5), 3, norm2=1, reg=reg)
    assert abs(codes.sum() - 1) < TIGHT and np.abs(codes).max() <= 1 + TIGHT


def test_queries_and_atoms_may_differ_in_dimension():
    X, D = gs.random_subspaces(4, 6, 3, rng=0), gs.random_subspaces(5, 6, 2, rng=1)
    from strategies import Problem
    problem = Problem(X, D, symmetric(gram(D, D)), gram(X, D), 3, 0.1)
    assert error(gs.gsc(X, D, 0.1), code(problem)) < LOOSE and worst_violation(problem, code(problem)) < LOOSE
