"""Codes that the paper names beside gSC and gLC: known answers, enumeration of all
signs, plain programs, and the proofs that each method has of itself.
"""

import functools
import itertools
import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.decomposition import SparseCoder
from sklearn.linear_model import orthogonal_mp_gram

import grassmann_sc as gs
from grassmann_sc import learn, variants
from grassmann_sc.strategies import coding_problem, coding_problems
from oracles import LOOSE, TIGHT, dtypes, error, hat, rounding, vectors

laws = settings(deadline=None, max_examples=60)


def random_problem(rng, n, N, d, p, lam=0.0):
    """A coding problem of well-separated atoms."""
    X = gs.random_subspaces(n, d, p, rng=rng)
    return coding_problem(X, gs.random_subspaces(N, d, p, rng=rng), lam)


def problems(seed, count):
    """Random problems of up to six independent atoms; of some an atom is a query."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        lam = 10 ** rng.uniform(-3, 1)
        problem = random_problem(rng, 2, rng.integers(1, 7), 5, rng.integers(1, 4), lam)
        if i % 4 == 0:
            problem = coding_problem(problem.D[:1], problem.D, lam)
        yield problem


# ------------------------------------------------------------------ affine sparse codes


def affine(problem, **options):
    return variants.affine_sparse_codes(
        problem.K_dd, problem.K_xd, problem.lam, norm2=problem.norm2, **options
    )


def best_affine_code(K, k, half):
    """The least of y^T K y - 2 y^T k + 2 half ||y||_1 with sum 1 over all signs."""
    N = len(K)
    least = np.inf
    for signs in itertools.product([-1, 0, 1], repeat=N):
        s = np.array(signs)
        on = np.flatnonzero(s)
        if len(on) == 0:
            continue
        M = np.ones((len(on) + 1, len(on) + 1))
        M[:-1, :-1] = K[np.ix_(on, on)]
        M[-1, -1] = 0
        y = np.zeros(N)
        y[on] = np.linalg.solve(M, np.append(k[on] - half * s[on], 1))[:-1]
        cost = y @ K @ y - 2 * y @ k + 2 * half * np.abs(y).sum()
        if (y * s >= 0).all() and cost < least:
            least = cost
            best = y
    return best


def test_affine_codes_are_the_best_of_all_signs():
    for problem in problems(0, 60):
        best = [
            best_affine_code(problem.K_dd, k, problem.lam / 2) for k in problem.K_xd
        ]
        assert error(affine(problem), best) <= LOOSE


def affine_violation(K, k, y, lam):
    """Of the optimality conditions in the docstring, mu as the support has it."""
    g = k - K @ y
    mu = (g - lam / 2 * np.sign(y))[y != 0].mean()
    on_support = np.abs(g - mu - lam / 2 * np.sign(y))
    return np.where(y != 0, on_support, np.abs(g - mu) - lam / 2).max()


@laws
@given(coding_problems())
def test_affine_codes_satisfy_the_optimality_conditions_and_certify_the_gap(problem):
    lam = problem.lam or 0.1
    codes, gap, _ = affine(problem._replace(lam=lam), return_info=True)
    size = np.abs(codes).sum(axis=1)
    assert (np.abs(codes.sum(axis=1) - 1) <= TIGHT * size).all()
    for k, y in zip(problem.K_xd, codes):
        assert affine_violation(problem.K_dd, k, y, lam) <= LOOSE * (1 + problem.norm2)
    assert (gap <= LOOSE * (1 + problem.norm2)).all() and (gap >= -TIGHT * size).all()


def affine_costs(problem, codes):
    residual = vectors(problem.X) - codes @ vectors(problem.D)
    return np.square(residual).sum(axis=1) + problem.lam * np.abs(codes).sum(axis=1)


@pytest.mark.parametrize("lam", [0.003, 0.1, 1.0])
def test_the_gap_bounds_what_other_affine_codes_save(lam):
    """Also of codes that are not the best yet."""
    problem = random_problem(np.random.default_rng(3), 20, 40, 8, 2, lam)
    least = affine_costs(problem, affine(problem, tol=1e-12))
    for max_iter in range(1, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged
            result = affine(problem, max_iter=max_iter, return_info=True)
        saved = affine_costs(problem, result.codes) - least
        assert (saved <= result.gap + LOOSE).all()
        assert max_iter > 1 or saved.max() > 1e-3


def test_known_affine_codes():
    K = np.eye(2)
    known = {  # of g = k - K y, g_1 - g_2 = 0 or lam
        (0.2, 0.2): [0.5, 0.5],
        (0.9, 0.1): [0.9, 0.1],
        (1.0, -0.8): [1.3, -0.3],
    }
    for k, y in known.items():
        codes = variants.affine_sparse_codes(K, [k], 0.2, norm2=2.0)
        assert error(codes, [y]) <= TIGHT
    single = variants.affine_sparse_codes([[2.0]], [[-1.0]], 0.2, norm2=2.0)
    assert single.tolist() == [[1.0]]


def test_a_query_that_is_an_atom_has_code_one_on_it():
    D = gs.random_subspaces(6, 5, 2, rng=0)
    problem = coding_problem(D[2:3], D, 0.3)
    assert error(affine(problem), np.eye(6)[2:3]) <= LOOSE


def test_a_large_lambda_gives_the_nearest_point_of_the_convex_hull():
    rng = np.random.default_rng(1)
    problem = random_problem(rng, 20, 30, 6, 2)
    codes = affine(problem._replace(lam=1e3))
    assert (codes >= 0).all() and error(codes.sum(axis=1), 1) <= TIGHT
    assert error(codes, affine(problem._replace(lam=1e4))) <= LOOSE


def test_affine_codes_do_not_depend_on_the_origin():
    """Only differences of points count: adding a constant to all inner products, as a
    common direction does, changes nothing.
    """
    problem = random_problem(np.random.default_rng(2), 5, 12, 8, 2, 0.2)
    moved = problem._replace(
        K_dd=problem.K_dd + 3, K_xd=problem.K_xd + 3, norm2=problem.norm2 + 3
    )
    assert error(affine(problem), affine(moved)) <= LOOSE


def test_unconverged_affine_codes_warn():
    problem = random_problem(np.random.default_rng(3), 5, 40, 8, 2, 1e-3)
    with pytest.warns(UserWarning, match="of 5 affine codes did not converge"):
        result = affine(problem, max_iter=1, return_info=True)
    assert result.gap.max() > 1e-3 and result.n_iter.max() == 1


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-4])
def test_affine_codes_end_in_the_first_round_within_the_tolerance(tol):
    """Both the gap and the violation of the optimality conditions are within it then,
    and one of them was not a round before.
    """
    problem = random_problem(np.random.default_rng(4), 12, 40, 8, 2, 0.05)
    result = affine(problem, tol=tol, return_info=True)
    assert 1 < result.n_iter.max() and len(set(result.n_iter.tolist())) > 1
    for i, n_iter in enumerate(result.n_iter):
        alone = problem._replace(K_xd=problem.K_xd[i : i + 1])
        for rounds, is_within in [(n_iter, True), (n_iter - 1, False)]:
            if rounds == 0:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # not converged
                code, gap, _ = affine(alone, tol=tol, max_iter=rounds, return_info=True)
            excess = affine_violation(alone.K_dd, alone.K_xd[0], code[0], alone.lam)
            worst = max(gap[0], excess)
            assert (worst <= tol * alone.norm2 * (1 + TIGHT)) == is_within


# --------------------------------------------------------------------- matching pursuit


def plain_pursuit(problem, n_atoms, tol=0.0):
    """Codes by least squares on d x d matrices."""
    A = vectors(problem.D).T
    codes = np.zeros(problem.K_xd.shape)
    for i, x in enumerate(vectors(problem.X)):
        chosen = []
        r = x
        while len(chosen) < n_atoms and r @ r > max(tol, 1e-20) * (x @ x):
            fit = np.abs(A.T @ r)
            fit[chosen] = -1
            chosen.append(int(fit.argmax()))
            y = np.linalg.lstsq(A[:, chosen], x, rcond=None)[0]
            r = x - A[:, chosen] @ y
        codes[i, chosen] = y if chosen else 0
    return codes


def pursuit(problem, n_atoms, **options):
    return variants.pursuit_codes(
        problem.K_dd, problem.K_xd, n_atoms, norm2=problem.norm2, **options
    )


@pytest.mark.parametrize("tol", [0.0, 0.3])
def test_pursuit_is_that_of_a_plain_program_and_of_scikit_learn(tol):
    for problem in problems(4, 60):
        for n_atoms in range(1, len(problem.D) + 1):
            codes = pursuit(problem, n_atoms, tol=tol)
            assert error(codes, plain_pursuit(problem, n_atoms, tol)) <= LOOSE
    problem = random_problem(np.random.default_rng(5), 10, 30, 9, 2)
    twin = orthogonal_mp_gram(problem.K_dd, problem.K_xd.T, n_nonzero_coefs=7)
    assert error(pursuit(problem, 7), twin.T) <= LOOSE


@laws
@given(coding_problems(), st.integers(1, 5), dtypes)
def test_the_residual_of_a_pursuit_is_orthogonal_to_the_chosen(problem, m, dtype):
    m = min(m, len(problem.D))
    K_dd = problem.K_dd.astype(dtype)
    K_xd = problem.K_xd.astype(dtype)
    codes = variants.pursuit_codes(K_dd, K_xd, m, norm2=problem.norm2)
    assert codes.dtype == dtype and (np.count_nonzero(codes, axis=1) <= m).all()
    g = K_xd - codes @ K_dd
    size = problem.norm2 * np.maximum(1, np.abs(codes).sum(axis=1, keepdims=True))
    assert (np.abs(g[codes != 0]) <= rounding(dtype) * size.max()).all()


def test_a_pursuit_ends_where_the_residual_is_small_or_no_atom_is_left():
    D = gs.random_subspaces(4, 6, 2, rng=6)
    K = coding_problem(D, np.concatenate([D, D]))  # each atom twice
    assert error(pursuit(K, 8), np.eye(4, 8)) <= TIGHT
    axes = np.eye(4)[:, :, None]  # e_1 e_1^T and e_2 e_2^T explain half each
    halves = coding_problem(np.eye(4)[None, :, :2], axes)
    assert pursuit(halves, 4).tolist() == [[1, 1, 0, 0]]
    assert pursuit(halves, 4, tol=0.6).tolist() == [[1, 0, 0, 0]]
    assert pursuit(halves, 4, tol=1.0).tolist() == [[0, 0, 0, 0]]


def test_a_pursuit_ends_once_the_residual_is_a_share_of_the_query():
    """At the share itself too; the share is of norm2, not of 1."""
    k = [[1.0, 0.5, 0.25]]  # ||r||^2 of norm2 = 4: 3, then 2.75, then 2.6875
    for tol, n_nonzeros in [(0.75, 1), (0.74, 2), (0.6875, 2), (0.68, 3)]:
        codes = variants.pursuit_codes(np.eye(3), k, 3, norm2=4.0, tol=tol)
        assert np.count_nonzero(codes) == n_nonzeros


def test_the_atom_that_explains_most_comes_first():
    """Not that of the largest product: a long atom explains by its direction alone."""
    K_dd = np.diag([100.0, 1.0])
    codes = variants.pursuit_codes(K_dd, [[2.0, 0.9]], 1, norm2=1.0)
    assert codes.tolist() == [[0.0, 0.9]]


def test_a_dictionary_learned_for_pursuit_codes_explains_more():
    """As the public code of the paper's authors learns."""
    X = gs.random_subspaces(60, 6, 2, rng=7)
    coding = functools.partial(variants.pursuit_codes, n_atoms=3)
    learned = learn.gdl(X, 8, coding=coding, n_iter=10, rng=0)
    assert (np.count_nonzero(learned.codes, axis=1) <= 3).all()
    assert learned.costs.min() < 0.85 * learned.costs[0]
    problem = coding_problem(X, learned.atoms)
    assert error(learned.codes, pursuit(problem, 3)) <= LOOSE


# ------------------------------------------------------------------ penalty of locality


def plain_penalised(problem, sigma, reg):
    """The code by its conditions of first order, and its cost, from d x d matrices."""
    A = vectors(problem.D)
    codes = []
    for X in hat(problem.X):
        w = np.exp(np.linalg.norm(A - X.ravel(), axis=1) / sigma)
        N = len(A)
        M = np.ones((N + 1, N + 1))
        M[:N, :N] = A @ A.T + reg * np.diag(w**2)
        M[N, N] = 0
        codes.append(np.linalg.solve(M, np.append(A @ X.ravel(), 1))[:N])
    return np.array(codes)


def penalised(problem, sigma, reg):
    return variants.penalised_locality_codes(
        problem.K_dd, problem.K_xd, sigma, reg, norm2=problem.norm2
    )


@pytest.mark.parametrize("sigma, reg", [(1.0, 1e-2), (0.3, 1e-4), (5.0, 2.0)])
def test_penalised_codes_solve_the_dense_system(sigma, reg):
    for problem in problems(8, 40):
        codes = penalised(problem, sigma, reg)
        assert error(codes, plain_penalised(problem, sigma, reg)) <= LOOSE
        assert error(codes.sum(axis=1), 1) <= TIGHT


def test_penalised_codes_between_the_limits_of_the_penalty():
    problem = random_problem(np.random.default_rng(9), 3, 5, 6, 2)
    free = gs.locality_codes(problem.K_dd, problem.K_xd, 5, norm2=2, reg=0)
    assert error(penalised(problem, 1.0, 1e-11), free) <= 1e-8
    assert error(penalised(problem, 1e9, 1e9), 1 / 5) <= 1e-8  # w = 1
    nearest = np.eye(5)[problem.K_xd.argmax(axis=1)]
    for sigma in [1e-3, 1e-300]:  # of w that overflow
        assert error(penalised(problem, sigma, 1.0), nearest) <= TIGHT


def test_penalised_codes_of_an_atom_and_of_repeated_atoms():
    D = gs.random_subspaces(4, 6, 2, rng=10)
    problem = coding_problem(D[1:2], np.concatenate([D, D]))
    codes = penalised(problem, 0.1, 1e-3)
    assert error(codes, np.tile(np.eye(4)[1] / 2, 2)) <= 1e-3


# ----------------------------------------------------------------------- whitened form


@laws
@given(coding_problems(), dtypes)
def test_the_whitened_form_has_the_same_inner_products(problem, dtype):
    K_dd = problem.K_dd.astype(dtype)
    K_xd = problem.K_xd.astype(dtype)
    A, x = variants.whitened(K_dd, K_xd)
    r = len(A)
    assert A.shape == (r, len(K_dd)) and x.shape == (len(K_xd), r)
    assert A.dtype == x.dtype == dtype
    scale = len(K_dd) * problem.norm2
    assert error(A.T @ A, K_dd) <= rounding(dtype) * scale
    # dropped eigenvalues of size eps N hold sqrt(eps N) of a point
    assert error(x @ A, K_xd) <= np.sqrt(rounding(dtype)) * scale


def test_other_solvers_give_the_same_codes_from_the_whitened_form():
    problem = random_problem(np.random.default_rng(11), 4, 20, 4, 2, 0.2)
    A, x = variants.whitened(problem.K_dd, problem.K_xd)
    assert len(A) == 10  # d (d + 1) / 2: the Gram matrix of 20 atoms is singular
    coder = SparseCoder(
        A.T, transform_algorithm="lasso_lars", transform_alpha=problem.lam / 2
    )
    codes = gs.sparse_codes(problem.K_dd, problem.K_xd, 0.2, norm2=2)
    assert error(coder.transform(x), codes) <= LOOSE
    residual = np.square(x - codes @ A.T).sum(axis=1) + 2 - np.square(x).sum(axis=1)
    explicit = np.square(vectors(problem.X) - codes @ vectors(problem.D)).sum(axis=1)
    assert error(residual, explicit) <= TIGHT


def test_the_rank_rule_keeps_eigenvalues_above_it_largest_first():
    K = np.diag([1e-3, 1.0, 0.5])
    A, x = variants.whitened(K, [[1e-3, 1.0, 0.5]])
    assert error(np.abs(A), np.sqrt(K[[1, 2, 0]])) <= TIGHT
    A, x = variants.whitened(K, [[1e-3, 1.0, 0.5]], rtol=0.01)
    assert error(x @ A, [[0, 1.0, 0.5]]) <= TIGHT


# --------------------------------------------------------------------- all of the codes

CODINGS = {
    "affine_sparse_codes": (0.2,),
    "pursuit_codes": (3,),
    "penalised_locality_codes": (0.5, 0.1),
}
each_coding = pytest.mark.parametrize("name", CODINGS)


@each_coding
def test_a_query_has_the_same_code_alone_and_without_others(name):
    problem = random_problem(np.random.default_rng(12), 40, 25, 7, 2)
    code = functools.partial(getattr(variants, name), problem.K_dd)
    together = code(problem.K_xd, *CODINGS[name], norm2=2)
    for i in [0, 17, 39]:
        alone = code(problem.K_xd[i : i + 1], *CODINGS[name], norm2=2)
        assert np.array_equal(alone[0], together[i])
    assert code(problem.K_xd[:0], *CODINGS[name], norm2=2).shape == (0, 25)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1e200])
def test_codes_ignore_the_scale_of_everything(scale):
    problem = random_problem(np.random.default_rng(14), 5, 12, 7, 2, 0.2)
    large = problem._replace(
        K_dd=scale * problem.K_dd,
        K_xd=scale * problem.K_xd,
        norm2=scale * problem.norm2,
        lam=scale * problem.lam,
    )
    assert error(affine(large), affine(problem)) <= LOOSE
    assert error(pursuit(large, 4), pursuit(problem, 4)) <= LOOSE
    codes = penalised(large, 0.5 * np.sqrt(scale), 0.1 * scale)
    assert error(codes, penalised(problem, 0.5, 0.1)) <= LOOSE
    A, x = variants.whitened(large.K_dd, large.K_xd)
    assert error(x @ A / scale, problem.K_xd) <= TIGHT


@each_coding
def test_float32_stays_and_agrees(name):
    problem = random_problem(np.random.default_rng(13), 10, 12, 7, 2)
    code = getattr(variants, name)
    exact = code(problem.K_dd, problem.K_xd, *CODINGS[name], norm2=2)
    single = [K.astype(np.float32) for K in (problem.K_dd, problem.K_xd)]
    codes = code(*single, *CODINGS[name], norm2=2)
    assert codes.dtype == np.float32 and error(codes, exact) <= 1e-4


@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("affine_sparse_codes", (0,), "lam must be positive, got 0"),
        ("pursuit_codes", (0,), "n_atoms must be in 1..3, got 0"),
        ("pursuit_codes", (4,), "n_atoms must be in 1..3, got 4"),
        ("penalised_locality_codes", (0, 1), "sigma must be positive, got 0"),
        ("penalised_locality_codes", (1, 0), "reg must be positive, got 0"),
    ],
)
def test_errors_name_the_argument(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        getattr(variants, name)(np.eye(3), [[0.5, 0.1, 0.2]], *arguments, norm2=1)


TINY = np.float32([[1e-38]])
HUGE = np.float32([[1e10]])


@pytest.mark.parametrize(
    "code, message",
    [
        (lambda: variants.pursuit_codes(TINY, HUGE, 1, norm2=1e60), "codes .* got inf"),
        (lambda: variants.whitened(TINY, 1e10 * HUGE), "x must be finite, got inf"),
        (
            lambda: variants.penalised_locality_codes(
                [[1, 2], [2, 1]], [[0, 0]], 1e300, 1, norm2=0
            ),
            "K_dd must be positive semidefinite, got G . reg diag.w..2 that is singular",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:K_dd must be positive semidefinite")
def test_codes_beyond_their_type_are_an_error(code, message):
    with pytest.raises(ValueError, match=message):
        code()


def test_the_whitened_form_needs_a_positive_semidefinite_gram_matrix():
    with pytest.raises(ValueError, match=r"got eigenvalues from -1 to 1"):
        variants.whitened([[0.0, 1.0], [1.0, 0.0]], [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"K_xd must have shape \(n, 2\)"):
        variants.whitened(np.eye(2), [[0.5, 0.5, 0.5]])
