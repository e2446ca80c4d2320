"""Sparse codes: optimality conditions, agreement with other solvers, invariances, hard
cases, NumPy twins of the lasso.
"""

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from hypothesis import given, settings
from sklearn.linear_model import Lasso

import grassmann_sc as gs
from grassmann_sc import plots, shared
from grassmann_sc.strategies import bases, coding_problem, coding_problems, rotation
from oracles import (
    LOOSE,
    TIGHT,
    booleans,
    cost,
    error,
    regular_problems,
    rounding,
    seeds,
    vectors,
    violation,
    worst_violation,
)

laws = settings(deadline=None, max_examples=40)


def code(problem, **options):
    return gs.sparse_codes(
        problem.K_dd, problem.K_xd, problem.lam, norm2=problem.norm2, **options
    )


# --------------------------------------------------------------------------- optimality


def descended(K, k, lam, positive):
    """The code of one query by coordinate descent, to the end."""
    y = np.zeros(len(k))
    change = 1.0
    while change > 1e-15:
        before = y.copy()
        for j in range(len(k)):
            u = k[j] - K[j] @ y + K[j, j] * y[j]
            size = max((u if positive else abs(u)) - lam / 2, 0)
            y[j] = np.copysign(size, u) / K[j, j]
        change = error(y, before)
    return y


@laws
@given(regular_problems(), booleans)
def test_codes_are_those_of_coordinate_descent(problem, positive):
    codes = code(problem, positive=positive, tol=1e-14)
    for k, y in zip(problem.K_xd, codes):
        twin = descended(problem.K_dd, k, problem.lam, positive)
        np.testing.assert_allclose(y, twin, rtol=0, atol=LOOSE)


@laws
@given(coding_problems(), booleans)
def test_lasso_satisfies_kkt_and_certifies_the_gap(problem, positive):
    codes, gap, n_iter = code(problem, positive=positive, return_info=True)
    assert codes.shape == problem.K_xd.shape
    assert gap.shape == n_iter.shape == (len(problem.X),)
    assert worst_violation(problem, codes, positive) <= LOOSE * problem.norm2
    assert (gap <= LOOSE * problem.norm2).all()
    assert not positive or (codes >= 0).all()


@laws
@given(
    coding_problems(), seeds, st.sampled_from([1.0, 1e-1, 1e-2, 1e-4, 1e-10]), booleans
)
def test_tol_bounds_both_the_gap_and_the_violation(problem, seed, tol, positive):
    start = np.random.default_rng(seed).standard_normal(problem.K_xd.shape)
    init = np.abs(start) * 10 * tol
    codes, gap, _ = code(
        problem, positive=positive, tol=tol, init=init, return_info=True
    )
    assert (gap <= tol * problem.norm2).all()
    assert worst_violation(problem, codes, positive) <= tol * problem.norm2 + TIGHT


@laws
@given(regular_problems(), booleans)
def test_small_inner_products_are_coded_as_accurately_as_large_ones(problem, positive):
    """The gap of a start whose violation is a thousandth of lam_max is within tol of
    norm2, where inner products are small; the violation is not within tol of lam_max.
    """
    k = 1e-6 * problem.K_xd
    lam = 1e-6 * problem.lam
    options = dict(norm2=problem.norm2, positive=positive)
    best = gs.sparse_codes(problem.K_dd, k, lam, **options)
    codes = gs.sparse_codes(
        problem.K_dd, k, lam, init=1.002 * best, tol=1e-4, **options
    )
    for own, y in zip(k, codes):
        excess = violation(problem.K_dd, own, y, lam, positive)
        assert excess <= 1e-4 * np.abs(own).max() + 1e-20


@laws
@given(coding_problems(d=st.integers(1, 4)), booleans)
def test_lasso_costs_as_much_as_scikit_learn(problem, positive):
    A = vectors(problem.D).T
    codes = code(problem, positive=positive)
    lasso = Lasso(
        problem.lam / (2 * len(A)),
        fit_intercept=False,
        positive=positive,
        tol=1e-14,
        max_iter=100_000,
    )
    slack = LOOSE / 10 * problem.norm2
    for x, own in zip(vectors(problem.X), cost(problem, codes)):
        with warnings.catch_warnings():
            # it stops at rounding, or late on nearly equal atoms, and says so
            warnings.simplefilter("ignore")
            lasso.fit(A, x)
        theirs = (
            np.square(x - A @ lasso.coef_).sum()
            + problem.lam * np.abs(lasso.coef_).sum()
        )
        their_gap = 2 * len(A) * lasso.dual_gap_
        assert -their_gap - slack <= own - theirs <= slack


@laws
@given(regular_problems(share=st.just(0.0)))
def test_without_lambda_codes_are_least_squares(problem):
    expected = np.linalg.lstsq(vectors(problem.D).T, vectors(problem.X).T)[0].T
    assert error(code(problem), expected) < LOOSE


@laws
@given(coding_problems(share=0.0, kinds=["random", "repeated", "orthogonal"]))
def test_without_lambda_no_code_fits_better(problem):
    best = np.linalg.lstsq(vectors(problem.D).T, vectors(problem.X).T, rcond=1e-7)[0].T
    slack = LOOSE / 10 * problem.norm2
    assert (cost(problem, code(problem)) <= cost(problem, best) + slack).all()


@pytest.mark.parametrize("least, digits", [(1e-10, 12), (1e-13, 10)])
def test_without_lambda_small_eigenvalues_cost_few_digits(least, digits):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    K = (Q * np.geomspace(1, least, 8)) @ Q.T
    k = rng.standard_normal((5, 8)) @ K
    result = gs.sparse_codes((K + K.T) / 2, k, 0.0, norm2=30.0, return_info=True)
    assert np.abs(k - result.codes @ K).max() < 10.0**-digits
    assert (result.gap >= 0).all() and result.gap.max() < TIGHT


@pytest.mark.parametrize("lam", [1e-6, [1e-4, 1e-5, 1e-2]])
@pytest.mark.parametrize("sparse", [False, True])
def test_in_float32_the_gap_is_that_of_the_rounded_code(lam, sparse):
    """Of nearly equal atoms coefficients are large, and to round them costs more than tol."""
    D = gs.random_subspaces(30, 12, 2, rng=0)
    noise = 1e-4 * np.random.default_rng(1).standard_normal(D[:15].shape)
    D[15:] = gs.orthonormalize(D[:15] + noise)
    K = gs.projection_kernel(D).astype(np.float32)
    k = gs.projection_kernel(gs.random_subspaces(20, 12, 2, rng=2), D).astype(K.dtype)
    how = dict(norm2=2.0, max_iter=10**4, return_info=True)
    own = gs.sparse_codes(K, k, lam, sparse_output=sparse, **how)
    K = K.astype(float)
    k = k.astype(float)
    best = gs.sparse_codes(K, k, lam, **how)
    codes = own.codes if isinstance(own.codes, list) else [own.codes]
    codes = np.reshape([gs.dense_codes(y) for y in codes], best.codes.shape)

    def costs(y):
        y = y.astype(np.longdouble)
        l1 = np.abs(y).sum(axis=-1)
        return (y * (y @ K - 2 * k)).sum(axis=-1) + np.reshape(lam, (-1, 1)) * l1

    rise = np.reshape(costs(codes) - costs(best.codes), best.gap.shape)
    assert rise.max() > 100 * TIGHT
    assert error(own.gap, best.gap + rise) < 1e-3 * rise.max()


def test_without_lambda_repeated_atoms_share_the_least_norm_code():
    D = bases(np.random.default_rng(0), 3, 6, 2)[[0, 1, 2, 0]]
    codes = gs.gsc(D[:1], D, 0)
    assert error(codes, [[0.5, 0, 0, 0.5]]) < TIGHT


@laws
@given(coding_problems(share=0.0))
def test_positive_codes_without_lambda_are_nnls(problem):
    codes = code(problem, positive=True)
    theirs = [
        scipy.optimize.nnls(vectors(problem.D).T, x)[0] for x in vectors(problem.X)
    ]
    assert (codes >= 0).all()
    assert (
        error(cost(problem, codes), cost(problem, np.array(theirs)))
        <= LOOSE * problem.norm2
    )


@laws
@given(coding_problems(share=st.sampled_from([1.0, 1 + 1e-12, 2.0])), booleans)
def test_sparse_codes_are_zero_from_lam_max_on(problem, positive):
    assert problem.lam >= gs.lam_max(problem.K_xd).max()
    assert not code(problem, positive=positive).any()


@laws
@given(coding_problems())
def test_lam_max_is_the_smallest_lambda_of_a_zero_code(problem):
    for x, k, top in zip(problem.X, problem.K_xd, gs.lam_max(problem.K_xd)):
        case = problem._replace(X=x[None], K_xd=k[None], lam=top * (1 - 1e-3))
        assert top == 2 * np.abs(k).max() and (not top or code(case).any())


@laws
@given(st.integers(1, 6), seeds, st.floats(0.01, 0.9))
def test_code_of_an_atom_is_itself_shrunk(p, seed, share):
    """Orthogonal to all others, an atom gets 1 - lam / (2 p) on itself and 0 elsewhere."""
    Q = rotation(np.random.default_rng(seed), 3 * p)
    D = np.stack([Q[:, i * p : (i + 1) * p] for i in range(3)])
    assert error(gs.gsc(D, D, 2 * p * share), (1 - share) * np.eye(3)) < TIGHT


def test_a_lambda_whose_half_is_none_is_still_one(recwarn):
    D = bases(np.random.default_rng(0), 3, 6, 2)
    assert error(gs.gsc(D, D, 5e-324), np.eye(3)) < TIGHT
    tiny = gs.sparse_codes(
        1e-250 * np.eye(2), [[5e-251, 2e-251]], 1e-80, norm2=1, lam_scale="max"
    )
    # rounding hides this lambda: the code is that of 1e-11 of lam_max
    assert error(tiny, [[0.5, 0.2]]) < 1e-11
    assert not recwarn.list


@pytest.mark.parametrize(
    "dtype, N, d, p, lams",
    [
        (np.float32, 200, 12, 2, [1e-8, 1e-7, 3e-7]),
        (np.float32, 1000, 6, 3, [1e-8, 1e-6]),
        (np.float64, 20, 10, 2, [1e-80, 1e-14, 1e-12]),
    ],
)
def test_a_lambda_that_rounding_hides_has_codes_of_nearly_the_least_cost(
    dtype, N, d, p, lams, recwarn
):
    """In float32 K of more atoms than dimensions is indefinite: there is no least cost."""
    D, X = (gs.random_subspaces(n, d, p, rng=i) for i, n in enumerate((N, 20)))
    K = gs.projection_kernel(D)
    k = gs.projection_kernel(X, D)
    for lam in lams:
        codes = gs.gsc(X.astype(dtype), D.astype(dtype), lam).astype(float)
        known = gs.sparse_codes(K, k, 1e-6, norm2=p)

        def costs(y):
            residual = (y * (y @ K - 2 * k)).sum(axis=1) + p
            return residual, np.abs(y).sum(axis=1)

        rest, l1 = costs(codes)
        rest_of_known, l1_of_known = costs(known)
        assert (rest <= rest_of_known + 1e-5 * p).all()
        assert (l1 <= 2 * l1_of_known).all()
    assert not recwarn.list


@pytest.mark.filterwarnings("ignore:.* did not converge")
def test_the_last_round_is_never_spent_on_beginning_anew():
    D, X = (gs.random_subspaces(n, 12, 2, rng=n).astype("f") for n in (200, 10))
    for max_iter in range(28, 52):
        assert gs.gsc(X, D, 1e-9, max_iter=max_iter).any(axis=1).all()


def test_lam_max_is_of_negative_inner_products_too():
    assert gs.lam_max([[-0.5, 0.2], [0.1, 0.3]]).tolist() == [1.0, 0.6]


@laws
@given(st.floats(0.01, 0.9), st.integers(1, 4))
def test_repeated_atoms_have_together_the_code_of_one(share, copies):
    X = bases(np.random.default_rng(copies), 1, 5, 2)
    codes = gs.gsc(X, np.repeat(X, copies, axis=0), 4 * share)
    assert (codes >= 0).all() and error(codes.sum(), 1 - share) < TIGHT


@pytest.mark.parametrize("positive", [False, True])
def test_one_atom_is_soft_thresholding(positive):
    K_xd = np.array([[1.5], [0.0], [-1.0], [0.04]])
    for lam in (0, 0.1, 3):
        shrunk = np.sign(K_xd) * np.maximum(np.abs(K_xd) - lam / 2, 0) / 2
        codes = gs.sparse_codes([[2.0]], K_xd, lam, norm2=2, positive=positive)
        assert error(codes, np.maximum(shrunk, 0) if positive else shrunk) < TIGHT


def test_lines_are_coded_as_their_quadratic_monomials_whatever_their_signs():
    """The paper's special case: on G(1, d) it is sparse coding of f(x) = [x_1^2, x_1
    x_2, ..., x_d^2], which has length 1 and f(-x) = f(x).
    """
    rng = np.random.default_rng(0)
    x = bases(rng, 6, 5, 1)
    atoms = bases(rng, 20, 5, 1)
    f, A = (np.einsum("nap,nbp->nab", Z, Z).reshape(-1, 25) for Z in (x, atoms))
    assert error(np.linalg.norm(f, axis=1), 1) <= TIGHT
    lasso = Lasso(0.1 / (2 * 25), fit_intercept=False, tol=1e-14, max_iter=100_000)
    codes = gs.gsc(x, atoms, 0.1)
    assert error(codes, lasso.fit(A.T, f.T).coef_) <= LOOSE
    flipped = atoms * rng.choice([-1, 1], (20, 1, 1))
    assert error(codes, gs.gsc(-x, flipped, 0.1)) <= TIGHT


# -------------------------------------------------------------------------- invariances


@laws
@given(regular_problems(), seeds, booleans)
def test_sparse_codes_ignore_choice_of_basis_and_of_axes(problem, seed, positive):
    rng = np.random.default_rng(seed)
    Q = rotation(rng, problem.X.shape[1])
    X = Q @ problem.X @ rotation(rng, problem.X.shape[2])
    D = Q @ problem.D @ rotation(rng, problem.X.shape[2])
    turned = gs.gsc(X, D, problem.lam, positive=positive)
    assert error(turned, code(problem, positive=positive)) < LOOSE


def with_atoms(problem, chosen):
    """The problem with the chosen atoms, by index or mask."""
    return problem._replace(
        D=problem.D[chosen],
        K_dd=problem.K_dd[np.ix_(chosen, chosen)],
        K_xd=problem.K_xd[:, chosen],
    )


@laws
@given(regular_problems(), seeds, booleans)
def test_sparse_codes_are_permuted_with_the_atoms(problem, seed, positive):
    order = np.random.default_rng(seed).permutation(len(problem.D))
    permuted = code(with_atoms(problem, order), positive=positive)
    assert error(permuted, code(problem, positive=positive)[:, order]) < LOOSE


@laws
@given(coding_problems(), seeds)
def test_cost_ignores_the_order_of_degenerate_atoms(problem, seed):
    permuted = with_atoms(
        problem, np.random.default_rng(seed).permutation(len(problem.D))
    )
    own = cost(problem, code(problem))
    assert error(cost(permuted, code(permuted)), own) < LOOSE * problem.norm2


@laws
@given(regular_problems(), booleans)
def test_unused_atoms_do_not_change_codes(problem, positive):
    codes = code(problem, positive=positive)
    used = codes.any(axis=0)
    used[0] = True
    assert (
        error(code(with_atoms(problem, used), positive=positive), codes[:, used])
        < LOOSE
    )


@laws
@given(
    regular_problems(),
    st.sampled_from([1e-200, 1e-100, 1e-6, 1e6, 1e100, 1e200]),
    booleans,
)
def test_sparse_codes_ignore_the_scale_of_everything(problem, scale, positive):
    scaled = gs.sparse_codes(
        scale * problem.K_dd,
        scale * problem.K_xd,
        scale * problem.lam,
        norm2=scale * problem.norm2,
        positive=positive,
    )
    assert error(scaled, code(problem, positive=positive)) < LOOSE


@laws
@given(
    regular_problems(), seeds, st.sampled_from([1e-9, 1.0, 1e9, 1e100, 1e300]), booleans
)
def test_init_does_not_change_the_solution(problem, seed, scale, positive):
    init = scale * np.random.default_rng(seed).standard_normal(problem.K_xd.shape)
    codes = code(problem, positive=positive)
    assert error(code(problem, positive=positive, init=init), codes) < LOOSE
    again, _, n_iter = code(
        problem, positive=positive, init=scipy.sparse.csr_array(codes), return_info=True
    )
    assert np.array_equal(again, codes) and not n_iter.any()


@laws
@given(coding_problems(), seeds, st.sampled_from([1e-3, 1.0, 1e8, 1e300]), booleans)
def test_any_init_of_a_degenerate_problem_ends_at_an_optimum(
    problem, seed, scale, positive
):
    init = scale * np.random.default_rng(seed).standard_normal(problem.K_xd.shape)
    codes = code(problem, init=init, positive=positive)
    assert worst_violation(problem, codes, positive) <= LOOSE * problem.norm2


def test_a_code_of_either_sign_is_no_optimum_of_positive_ones():
    """Not even where it is to start from."""
    K_xd = [[0.5, -0.3]]
    free = gs.sparse_codes(np.eye(2), K_xd, 0.2, norm2=1)
    assert error(free, [[0.4, -0.2]]) < TIGHT
    kept = gs.sparse_codes(np.eye(2), K_xd, 0.2, norm2=1, positive=True, init=free)
    assert error(kept, [[0.4, 0]]) < TIGHT


@laws
@given(coding_problems(), seeds, st.sampled_from([1e9, 1e150, 1e300]), booleans)
def test_a_start_worse_than_zero_is_not_used(problem, seed, scale, positive):
    share = np.random.default_rng(seed).random(problem.K_xd.shape)
    start = scale * (1 + share)  # of one sign: no two cancel
    ours = code(problem, init=start, positive=positive, return_info=True)
    zero = code(problem, positive=positive, return_info=True)
    assert all(np.array_equal(a, b) for a, b in zip(ours, zero))


def test_a_sparse_path_is_in_the_order_of_its_lambdas():
    X = bases(np.random.default_rng(0), 12, 6, 2)
    D = bases(np.random.default_rng(1), 5, 6, 2)
    path = [0.1, 1.0, 0.01, 0.3]
    sparse = gs.gsc(X, D, path, sparse_output=True)
    dense = gs.gsc(X, D, path)
    assert all(np.array_equal(a.toarray(), b) for a, b in zip(sparse, dense))
    assert len({codes.nnz for codes in sparse}) == 4


@laws
@given(coding_problems(), booleans)
def test_sparse_output_equals_dense(problem, positive):
    dense = code(problem, positive=positive)
    sparse = code(problem, positive=positive, sparse_output=True)
    assert sparse.format == "csr" and sparse.dtype == dense.dtype
    assert np.array_equal(sparse.toarray(), dense)
    assert sparse.nnz == np.count_nonzero(dense)


@laws
@given(coding_problems(d=st.integers(1, 4)))
def test_norm2_may_differ_from_query_to_query(problem):
    scale = np.arange(1, len(problem.X) + 1)
    codes = gs.sparse_codes(
        problem.K_dd,
        problem.K_xd * scale[:, None],
        problem.lam,
        norm2=problem.norm2 * scale**2,
    )
    for i, s in enumerate(scale):
        alone = gs.sparse_codes(
            problem.K_dd,
            problem.K_xd[i : i + 1] * s,
            problem.lam,
            norm2=problem.norm2 * s**2,
        )
        assert np.array_equal(codes[i : i + 1], alone)


@laws
@given(regular_problems(), booleans)
def test_float32_codes_are_those_of_float64_rounded(problem, positive):
    X = problem.X.astype(np.float32)
    D = problem.D.astype(np.float32)
    codes = gs.gsc(X, D, problem.lam, positive=positive)
    assert codes.dtype == np.float32
    assert error(codes, code(problem, positive=positive)) < rounding(np.float32)
    local = gs.glc(X, D, len(D))
    assert local.dtype == np.float32
    assert error(local.sum(axis=1), 1) < rounding(np.float32)
    mixed = problem._replace(K_dd=problem.K_dd.astype(np.float32))
    assert code(mixed).dtype == np.float64


def test_queries_and_atoms_may_differ_in_dimension():
    X = gs.random_subspaces(4, 6, 3, rng=0)
    D = gs.random_subspaces(5, 6, 2, rng=1)
    problem = coding_problem(X, D, 0.1)
    assert error(gs.gsc(X, D, 0.1), code(problem)) < LOOSE
    assert worst_violation(problem, code(problem)) < LOOSE
    local = gs.locality_codes(problem.K_dd, problem.K_xd, 4, norm2=3, reg=0.1)
    assert error(gs.glc(X, D, 4, reg=0.1), local) < TIGHT


# ----------------------------------------------------------- hard cases end, and say so


def crowd(n):
    """Queries, and more atoms than the space of projectors has dimensions."""
    return gs.random_subspaces(n, 6, 2, rng=1), gs.random_subspaces(40, 6, 2, rng=0)


@pytest.mark.parametrize("lam", [0, 1e-14, 1e-10, 1e-6, 1e-3])
@pytest.mark.parametrize("positive", [False, True])
def test_small_lambda_on_a_singular_gram_matrix_converges(lam, positive):
    problem = coding_problem(*crowd(20), lam)
    codes, gap, _ = code(problem, positive=positive, return_info=True)
    assert (gap <= LOOSE * 2).all()
    assert worst_violation(problem, codes, positive) <= LOOSE * 2


@pytest.mark.parametrize("distance", [0, 1e-15, 1e-9, 1e-8, 1e-7, 1e-5])
@pytest.mark.parametrize("lam", [1e-3, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_nearly_repeated_atoms_are_coded_exactly(distance, lam, positive):
    rng = np.random.default_rng(0)
    B = bases(rng, 8, 8, 2)
    near = np.linalg.qr(B + distance * rng.standard_normal(B.shape))[0]
    D = np.concatenate([B, near, B])
    problem = coding_problem(np.concatenate([bases(rng, 4, 8, 2), B]), D, lam)
    assert (
        worst_violation(problem, code(problem, positive=positive), positive)
        <= LOOSE * 2
    )


@pytest.mark.filterwarnings("error")
def test_many_atoms_that_leave_together_leave_a_good_factor_behind():
    """From codes of many atoms to those of few, and from these on to many."""
    rng = np.random.default_rng(0)
    G = rng.standard_normal((60, 70))
    x = rng.standard_normal((20, 70))
    options = dict(norm2=(x * x).sum(axis=1), lam_scale="max")
    many = gs.sparse_codes(G @ G.T, x @ G.T, 1e-3, **options)
    path = gs.sparse_codes(G @ G.T, x @ G.T, [0.5, 1e-4], init=many, **options)
    for lam, codes in zip([0.5, 1e-4], path):
        assert error(gs.sparse_codes(G @ G.T, x @ G.T, lam, **options), codes) < LOOSE


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seed", range(3))
def test_codes_of_many_alike_atoms_converge_though_many_signs_are_lost(seed):
    rng = np.random.default_rng(seed)
    G = 0.3 * rng.standard_normal((60, 70)) + rng.standard_normal(70)
    x = rng.standard_normal((20, 70))
    norm2 = (x * x).sum(axis=1)
    _, gap, _ = gs.sparse_codes(
        G @ G.T, x @ G.T, 0.01, norm2=norm2, lam_scale="max", return_info=True
    )
    assert (gap <= LOOSE * norm2).all()


def test_a_warning_tells_the_gap_that_is_farthest_above_its_own_tolerance():
    """Not a larger one of a longer query that is within its tolerance."""
    rng = np.random.default_rng(0)
    G = gs.orthonormalize(rng.standard_normal((30, 40, 1)))[:, :, 0]
    x = gs.orthonormalize(rng.standard_normal((40, 1)))[:, 0]
    short = G @ x
    lam = 0.05 * gs.lam_max(short)
    long = np.zeros(30)
    long[0] = lam / 2 * (1 + 5e-4)
    with pytest.warns(UserWarning, match="1 of 2 .* tolerance 0.001$"):
        _, gap, _ = gs.sparse_codes(
            G @ G.T,
            [long, short],
            lam,
            norm2=[1e8, 1],
            tol=1e-3,
            max_iter=1,
            return_info=True,
        )
    assert gap[0] > gap[1] > 1e-3


@pytest.mark.parametrize("options", [dict(max_iter=1), dict(tol=1e-300)], ids=str)
@pytest.mark.parametrize("positive", [False, True])
def test_a_code_that_is_not_certified_is_reported(options, positive):
    problem = coding_problem(*crowd(8), 0.1)
    with pytest.warns(
        UserWarning,
        match=r"[1-8] of 8 codes did not converge.* largest gap "
        r".*e?-?\d+, tolerance \d",
    ):
        codes, gap, _ = code(problem, positive=positive, return_info=True, **options)
    excess = cost(problem, codes) - cost(problem, code(problem, positive=positive))
    assert (gap > options.get("tol", LOOSE) * 2).any() and (excess <= gap + TIGHT).all()


@pytest.mark.parametrize("positive", [False, True])
def test_an_indefinite_gram_matrix_is_not_coded_in_silence(positive):
    with pytest.warns(
        UserWarning, match="K_dd must be positive semidefinite, .* fails by 1"
    ):
        gs.sparse_codes(
            [[1.0, 2], [2, 1]], [[0.5, 0.9]], 0.1, norm2=1, positive=positive
        )
    # of pairs that could be
    K_dd = np.array([[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]])
    # whatever block of queries meets it
    for at in (0, 512, 1099):
        K_xd = np.zeros((1100, 3))
        K_xd[at] = 0.9
        with pytest.warns(UserWarning, match=r"there is a v with v\^T K_dd v = -"):
            gs.sparse_codes(K_dd, K_xd, 1e-3, norm2=1)
    with pytest.warns(UserWarning, match=r"there is a v with v\^T K_dd v = -0\.8 v"):
        gs.sparse_codes(K_dd, K_xd, 0, norm2=1)


def test_no_sparse_code_that_is_not_finite_leaves_the_core(monkeypatch):
    """The query is named, whatever tile it is in."""
    monkeypatch.setattr(gs, "TILE", 1)
    K_dd = np.array([[1, -1e200], [-1e200, 1]])
    K_xd = np.zeros((100, 2))
    K_xd[70] = 0.5, 0.6
    with pytest.warns(UserWarning, match="K_dd must be positive semidefinite"):
        with pytest.raises(
            ValueError, match="codes must be finite, got .* for query 70: K_dd"
        ):
            gs.sparse_codes(K_dd, K_xd, 0.1, norm2=1, positive=True)


@pytest.mark.filterwarnings("error")
def test_rounding_alone_is_not_called_indefinite():
    """More atoms than dimensions, in float32: the Gram matrix has eigenvalues of -1e-7."""
    rng = np.random.default_rng(0)
    patterns = rng.standard_normal((5, 6, 2))[np.arange(70) % 5]
    X = gs.orthonormalize(patterns + 0.3 * rng.standard_normal((70, 6, 2))).astype(
        np.float32
    )
    codes = gs.gsc(X[60:], X[:60], 1e-3, lam_scale="max", tol=1e-4)
    assert np.isfinite(codes).all() and (codes != 0).any(axis=1).all()


@pytest.mark.parametrize("scale", [1e-320, 1e-300, 4e307])
def test_gram_matrices_that_are_too_small_or_large_are_refused(scale):
    with pytest.raises(
        ValueError, match="K_dd must have a largest entry of 0 or between 1e-250"
    ):
        gs.sparse_codes(scale * np.eye(2), np.zeros((1, 2)), 0.1, norm2=1)
    with pytest.raises(
        ValueError, match="^K must have a largest entry of 0 or between"
    ):
        plots.plot_map(scale * np.eye(2))


def test_masked_entries_are_refused():
    K = np.ma.masked_array(np.eye(2), mask=[[0, 1], [1, 0]])
    with pytest.raises(
        ValueError, match="K_dd must have no masked entries, got 2 of them"
    ):
        gs.sparse_codes(K, np.zeros((1, 2)), 0.1, norm2=1)
    frames = np.ma.masked_invalid([[1.0, np.nan], [0, 1]])
    with pytest.raises(
        ValueError, match="frames must have no masked entries, got 1 of them"
    ):
        shared.check_frames(frames, "frames")
    # none is masked
    assert gs.finite_array(np.ma.masked_array([1.0, 2]), "A").tolist() == [1, 2]


@pytest.mark.parametrize("lam", [0, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_zero_atoms_and_zero_queries_get_zero(lam, positive):
    K_dd = np.diag([1.0, 0, 1])
    K_xd = np.array([[0.5, 0, 0.2], [0, 0, 0]])
    codes = gs.sparse_codes(K_dd, K_xd, lam, norm2=[1, 0], positive=positive)
    assert error(codes, np.maximum(K_xd - lam / 2, 0)) < TIGHT


@pytest.mark.parametrize("lam", [0, 0.1])
@pytest.mark.parametrize("positive", [False, True])
def test_orthogonal_blocks_known_only_to_rounding_are_coded_exactly(lam, positive):
    Q = rotation(np.random.default_rng(0), 8)
    D = np.stack([Q[:, columns] for columns in [[0, 1], [2, 3], [4, 5], [1, 0]]])
    X = np.stack([Q[:, columns] for columns in [[0, 1], [6, 7], [0, 4]]])
    codes = gs.gsc(X, D, lam, positive=positive)
    own = 1 - lam / 4
    # first and last are one
    together = codes @ [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]
    assert error(together, [[own, 0, 0], [0, 0, 0], [own - 0.5, 0, own - 0.5]]) < TIGHT


# --------------------------------------------- parts of the lasso, by their NumPy twins


@laws
@given(seeds)
def test_factor_and_solve_twins(seed):
    """On its support S a code solves K_SS y_S = k_S - lam/2 sign y_S, to the last
    digits.
    """
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((6, 9))
    x = rng.standard_normal(9)
    K = G @ G.T
    k = G @ x
    lam = 0.1 * gs.lam_max(k)
    y = gs.sparse_codes(K, k[None], lam, norm2=x @ x)[0]
    S = np.flatnonzero(y)
    right = k[S] - lam / 2 * np.sign(y[S])
    np.testing.assert_allclose(K[np.ix_(S, S)] @ y[S], right, rtol=TIGHT, atol=TIGHT)
    expected = np.linalg.solve(K[np.ix_(S, S)], right)
    np.testing.assert_allclose(y[S], expected, rtol=LOOSE, atol=LOOSE)


@laws
@given(coding_problems(), seeds, booleans)
def test_certificate_twin(problem, seed, positive):
    """The gap of any start, from d x d matrices: the dual point is the residual, scaled
    into the feasible set. A tol that everything meets returns the start with its gap.
    """
    X, D, K, K_xd, p, lam, _ = problem
    start = np.random.default_rng(seed).standard_normal(K_xd.shape) / len(D)
    codes, gap, n_iter = code(
        problem, positive=positive, init=start, tol=1e9, return_info=True
    )
    assert not n_iter.any()
    best = cost(problem, code(problem, positive=positive))
    for i, (a, y) in enumerate(zip(vectors(X), codes)):
        own = np.maximum(start[i], 0) if positive else start[i]
        assert np.array_equal(y, own) or not y.any()
        A = vectors(D)
        r = a - y @ A
        peak = (A @ r).max() if positive else np.abs(A @ r).max()
        u = r * min(1, lam / 2 / peak) if peak > 0 else r
        primal = r @ r + lam * np.abs(y).sum()
        excess = violation(K, K_xd[i], y, lam, positive)
        scaled = max(primal - (2 * u @ a - u @ u), excess)
        assert max(primal - best[i] - LOOSE * p, excess - TIGHT * p) <= gap[i]
        assert gap[i] <= scaled + TIGHT * p and (
            positive or abs(gap[i] - scaled) < TIGHT * p
        )


@pytest.mark.parametrize("seed", [196, 1452, 3046])
def test_a_shifted_dual_point_counts_only_if_it_is_feasible(seed):
    """Where a product is negative, the shift that mends one atom breaks another: the gap
    of these starts would be less than what they lack.
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 4)) * 10.0 ** rng.uniform(-1.5, 1, 6)[:, None]
    x = rng.standard_normal(4)
    K = A @ A.T
    k = A @ x
    lam = rng.choice([0.01, 0.1, 0.3]) * 2 * k.max()
    start = np.maximum(rng.standard_normal(6), 0) * rng.choice([0.05, 0.2, 0.5])
    costs = []
    gaps = []
    for tol in (1e9, 1e-12):  # the start itself, and the best
        coded = gs.sparse_codes(
            K,
            k[None],
            lam,
            norm2=x @ x,
            positive=True,
            init=start[None],
            tol=tol,
            return_info=True,
        )
        y = coded.codes[0]
        costs.append(y @ K @ y - 2 * y @ k + lam * y.sum())
        gaps.append(coded.gap[0])
    assert costs[0] - costs[1] <= gaps[0]


@laws
@given(seeds, booleans)
def test_uncoupled_atoms_of_any_norm_are_soft_thresholded(seed, positive):
    rng = np.random.default_rng(seed)
    norms = 10.0 ** rng.uniform(-2, 2, 7)
    K_xd = rng.standard_normal((3, 7)) * norms
    codes = gs.sparse_codes(np.diag(norms**2), K_xd, 0.5, norm2=100, positive=positive)
    u = K_xd if positive else np.abs(K_xd)
    expected = np.sign(K_xd) * np.maximum(u - 0.25, 0) / norms**2
    np.testing.assert_allclose(codes, expected, rtol=TIGHT)


@pytest.mark.parametrize("N", [500, 512, 700])
def test_the_largest_step_is_found_wherever_it_lies(N):
    """With orthonormal atoms a query that is one of them has one coefficient."""
    codes = gs.sparse_codes(np.eye(N), np.eye(N), 0.2, norm2=1)
    np.testing.assert_allclose(codes, 0.9 * np.eye(N), atol=1e-12)
