"""Intrinsic codes: their optimality conditions, a general solver, and the cases that
break naive code.
"""

import hypothesis.strategies as st
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import grassmann_sc as gs
from grassmann_sc import intrinsic
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import KINDS, bases, rotation, sizes
from oracles import LOOSE, TIGHT, error, seeds

quiet = pytest.mark.filterwarnings("ignore:.*right angles")


def logs(x, D):
    """log_x(D_j) as vectors (N, d p)."""
    return intrinsic.log_map(x, D).reshape(len(D), -1)


def cluster(rng, n, d, p, spread):
    """n points within spread of one point."""
    X = bases(rng, 1, d, p)[0]
    H = rng.standard_normal((n, d, p))
    H -= X @ (X.T @ H)
    length = spread * rng.uniform(0, 1, n) / np.linalg.norm(H, axis=(1, 2))
    return intrinsic.exp_map(X, H * length[:, None, None])


# --------------------------------------------------------------------------- optimality


@st.composite
def intrinsic_problems(draw):
    """(X, D, lam): queries equal to atoms, repeated, near and orthogonal atoms, more
    atoms than dimensions.
    """
    d, p = draw(sizes())
    rng = np.random.default_rng(draw(seeds))
    X = bases(rng, 3, d, p)
    D = bases(rng, draw(st.integers(1, 14)), d, p, draw(st.sampled_from(KINDS)))
    if draw(st.booleans()):
        D[-1] = X[0] @ rotation(rng, p)
    return X, D, draw(st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0]))


def violation(H, y, lam):
    """Largest violation of the conditions of min ||sum y_j H_j||^2 + lam ||y||_1 with
    sum 1.
    """
    g = 2 * H @ (y @ H)
    nu = y @ g + lam * np.abs(y).sum()
    on_support = np.abs(g + lam * np.sign(y) - nu)
    return max(
        abs(y.sum() - 1), np.where(y != 0, on_support, np.abs(g - nu) - lam).max()
    )


@quiet
@settings(deadline=None, max_examples=150)
@given(intrinsic_problems())
def test_intrinsic_codes_satisfy_the_optimality_conditions(problem):
    X, D, lam = problem
    codes, gap, _ = tangent.intrinsic_codes(X, D, lam, return_info=True)
    for x, y, bound in zip(X, codes, gap):
        cosines = np.linalg.svd(np.swapaxes(D, 1, 2) @ x, compute_uv=False)
        if cosines.min() > 1e-6:  # else log is not unique, nearly
            assert violation(logs(x, D), y, lam) < LOOSE
        assert -TIGHT * 10 < bound < LOOSE * (10 + lam)


def by_a_general_solver(H, lam):
    """The minimum over y = a - b, a, b >= 0, by sequential quadratic programming."""
    G = H @ H.T
    N = len(H)

    def cost(z):
        y = z[:N] - z[N:]
        slope = 2 * G @ y
        return y @ G @ y + lam * z.sum(), np.concatenate([slope, -slope]) + lam

    sign = np.repeat([1.0, -1.0], N)
    sum_one = {"type": "eq", "fun": lambda z: sign @ z - 1, "jac": lambda z: sign}
    solution = minimize(
        cost,
        np.repeat([1 / N, 0], N),
        jac=True,
        bounds=[(0, None)] * (2 * N),
        method="SLSQP",
        constraints=sum_one,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return solution.fun


def test_intrinsic_codes_cost_no_more_than_those_of_a_general_solver():
    rng = np.random.default_rng(0)
    for _ in range(200):
        d = rng.integers(3, 7)
        N = rng.integers(1, 9)
        lam = 10 ** rng.uniform(-4, 0.5)
        p = rng.integers(1, d)
        x = bases(rng, 1, d, p)[0]
        D = bases(rng, N, d, p)
        H = logs(x, D)
        y = tangent.intrinsic_codes(x[None], D, lam)[0]
        mine = ((y @ H) ** 2).sum() + lam * np.abs(y).sum()
        assert abs(mine - by_a_general_solver(H, lam)) < LOOSE * (1 + mine)


@pytest.mark.filterwarnings("error")
def test_large_supports_and_negative_codes_are_exact():
    rng = np.random.default_rng(0)
    base = bases(rng, 1, 40, 2)[0]
    D = cluster(rng, 120, 40, 2, 0.5)
    X = intrinsic.geodesic(base, D[:8], 0.6)
    for lam in (1e-5, 1e-3):
        codes = tangent.intrinsic_codes(X, D, lam)
        assert max(violation(logs(x, D), y, lam) for x, y in zip(X, codes)) < LOOSE
    assert (codes != 0).sum(axis=1).max() > 50
    assert (codes < 0).any()


def test_a_query_equal_to_an_atom_is_that_atom():
    D = bases(np.random.default_rng(0), 9, 7, 3)
    assert error(tangent.intrinsic_codes(D, D, 0.1), np.eye(9)) < TIGHT


@pytest.mark.parametrize("N", [6, 40])
def test_without_lambda_the_code_is_the_affine_least_squares_of_least_norm(N):
    rng = np.random.default_rng(0)
    X = bases(rng, 3, 6, 2)
    D = bases(rng, N, 6, 2)
    codes, gap, _ = tangent.intrinsic_codes(X, D, 0, return_info=True)
    for x, y in zip(X, codes):
        H = logs(x, D)
        # y = (1 - sum z, z): minimise ||H_0 - first^T z||, then the norm of y
        first = H[0] - H[1:]
        rank = np.linalg.matrix_rank(first)
        Z = np.linalg.svd(first.T)[2][rank:]  # directions that change nothing
        z = np.linalg.lstsq(first.T, H[0], rcond=None)[0]
        full = np.r_[1 - z.sum(), z]
        N0 = np.vstack([-Z.sum(axis=1), Z.T])  # the same in terms of y
        if N0.shape[1]:
            full -= N0 @ np.linalg.lstsq(N0, full, rcond=None)[0]
        assert error(y, full) < LOOSE
    assert gap.max() < LOOSE


# ---------------------------------------------------------------------- ways to compute


def test_codes_ignore_how_the_inner_products_are_computed(monkeypatch):
    rng = np.random.default_rng(0)
    X = bases(rng, 5, 12, 3)
    D = bases(rng, 30, 12, 3)
    for lam in (0, 0.05):
        codes = tangent.intrinsic_codes(X, D, lam)
        with monkeypatch.context() as changed:
            changed.setattr(tangent, "ALL_PAIRS", 0)
            assert error(tangent.intrinsic_codes(X, D, lam), codes) < LOOSE


def test_codes_ignore_tiles_and_threads(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.repeat(bases(rng, 5, 12, 3), 40, axis=0)
    D = bases(rng, 30, 12, 3)
    many = []
    for threads in (1, 2):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        many.append(tangent.intrinsic_codes(X, D, 0.05))
    assert np.array_equal(*many)
    monkeypatch.setattr(gs, "TILE", 3 * 30 * 3 * 7)  # seven queries
    assert error(tangent.intrinsic_codes(X, D, 0.05), many[0]) < TIGHT


def test_tight_clusters_are_coded_as_their_tangent_vectors_are():
    """Distances of 1e-5: traces of size p would cancel."""
    rng = np.random.default_rng(0)
    X = cluster(rng, 25, 8, 2, 1e-5)
    D = X[5:]
    X = X[:5]
    for x, y in zip(X, tangent.intrinsic_codes(X, D, 1e-13)):
        assert violation(logs(x, D) * 1e5, y, 1e-3) < LOOSE


def test_float32_codes_stay_float32():
    rng = np.random.default_rng(0)
    X = bases(rng, 4, 6, 2)
    D = bases(rng, 9, 6, 2)
    codes = tangent.intrinsic_codes(np.float32(X), np.float32(D), 0.1)
    assert codes.dtype == np.float32
    assert error(codes, tangent.intrinsic_codes(X, D, 0.1)) < 1e-4
    assert tangent.intrinsic_codes(X[:0], D, 0.1).shape == (0, 9)


# -------------------------------------------------------------------- classes, warnings


def test_classes_are_told_by_the_extrinsic_residual_of_intrinsic_codes():
    rng = np.random.default_rng(0)
    sets = [cluster(rng, 12, 10, 2, 0.6) for _ in range(3)]
    D = np.concatenate([A[:5] for A in sets])
    X = np.concatenate([A[5:] for A in sets])
    labels = np.repeat(["a", "b", "c"], 5)
    codes = tangent.intrinsic_codes(X, D, 0.05)
    residuals, classes = gs.class_residuals(
        codes, gs.projection_kernel(D), gs.projection_kernel(X, D), labels, norm2=2
    )
    predicted = classes[residuals.argmin(axis=1)]
    assert np.array_equal(predicted, np.repeat(["a", "b", "c"], 7))


def test_codes_that_do_not_converge_warn():
    rng = np.random.default_rng(0)
    D = cluster(rng, 40, 20, 2, 0.5)
    X = cluster(rng, 6, 20, 2, 0.5)
    message = (
        r"of 6 intrinsic codes did not converge \(max_iter = 1\): worst duality gap"
    )
    with pytest.warns(UserWarning, match=message):
        tangent.intrinsic_codes(X, D, 1e-4, max_iter=1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda X: tangent.intrinsic_codes(X, X, -1), "lam must be >= 0, got -1"),
        (
            lambda X: tangent.intrinsic_codes(X, X[:, :, :1], 1),
            "D must have the p of X, got 1 and 2",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call(bases(np.random.default_rng(0), 4, 5, 2))
