"""Exp, log and Karcher mean at all their edges; codes in tangent spaces, their optimality conditions and a general solver."""

import warnings

import hypothesis.strategies as st
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import grassmann_sc as gs
import intrinsic
from intrinsic import (exp_map, geodesic, intrinsic_classify, intrinsic_codes, karcher_mean, log_euclidean_classify,
                       log_euclidean_codes, log_map, tangent_grams)
from strategies import KINDS, LOOSE, TIGHT, bases, error, rotation, seeds, sizes

EXACT = 1e-14  # of the maps, relative to norms above 1: fifty times the rounding of one number
RIGHT = np.pi / 2
ANGLES = {
    "random": lambda rng, m: rng.uniform(0, RIGHT, m),
    "near": lambda rng, m: 1e-12 * rng.uniform(0, 1, m),
    "small": lambda rng, m: rng.choice([0, 1e-3, 1e-6, 1e-8, 1e-9], m),
    "far": lambda rng, m: np.r_[RIGHT - 1e-9, rng.uniform(0, 1.5, m)][:m],
    "equal": lambda rng, m: np.full(m, rng.uniform(0, 1.5)),
    "right": lambda rng, m: np.full(m, RIGHT),
    "mixed": lambda rng, m: rng.choice([0, 1e-12, 1e-8, 0.3, 1.2, RIGHT - 1e-7, RIGHT], m),
}
laws = settings(deadline=None, max_examples=60)
quiet = pytest.mark.filterwarnings("ignore:.*right angles")


def pair(rng, d, p, kind):
    """X, Y (d, p), the tangent vector H at X that reaches Y, and its p singular values, the principal angles."""
    Q, m = rotation(rng, d), min(p, d - p)
    theta, E, U = np.zeros(p), np.zeros((d, p)), rotation(rng, p)
    theta[:m], E[:, :m] = ANGLES[kind](rng, m), Q[:, p:p + m]
    X = Q[:, :p]
    return X, (X @ U * np.cos(theta) + E * np.sin(theta)) @ rotation(rng, p), E * theta @ U.T, theta


def gap_between(X, Y):
    """||(I - X X^T) Y||: sines of the angles between the subspaces."""
    return np.linalg.norm(Y - X @ (X.T @ Y), 2)


shapes = st.one_of(sizes(), st.sampled_from([(20, 5), (60, 10), (100, 3)]))
cases = st.tuples(shapes, seeds)


# ---------------------------------------------------------------------------- exp, log, geodesics


@quiet
@laws
@given(cases, st.sampled_from(sorted(ANGLES)))
def test_exp_of_log_arrives(case, kind):
    X, Y, _, theta = pair(np.random.default_rng(case[1]), *case[0], kind)
    H = log_map(X, Y)
    assert gap_between(exp_map(X, H), Y) < EXACT
    assert error(X.T @ H, 0) < EXACT
    assert abs(np.linalg.norm(H) - np.linalg.norm(theta)) < EXACT * max(1, np.linalg.norm(theta))
    assert abs(np.linalg.norm(H) - gs.geodesic_distance(X[None], Y[None])) < EXACT * max(1, np.linalg.norm(theta))


@laws
@given(cases, st.sampled_from(["random", "near", "small", "far", "equal"]))
def test_log_of_exp_is_the_tangent_vector(case, kind):
    X, _, H, _ = pair(np.random.default_rng(case[1]), *case[0], kind)
    assert error(log_map(X, exp_map(X, H)), H) < EXACT


@pytest.mark.parametrize("angles, d, norm", [
    ([1.346e-9, 0], 6, 1.346e-9), ([0, 0], 6, 0), ([RIGHT, 0.42426407], 6, 1.62708), ([RIGHT, RIGHT], 4, 2.2214415),
    ([1e-10, 1.5], 6, 1.5), ([0.3, 1.1, 0, 0], 6, np.hypot(0.3, 1.1)),
])
@quiet
def test_pairs_at_which_other_libraries_fail(angles, d, norm):
    p = len(angles)
    m = min(p, d - p)
    X, Y = np.eye(d, p), np.zeros((d, p))
    Y[np.arange(p), np.arange(p)] = np.cos(angles)
    Y[p + np.arange(m), np.arange(m)] = np.sin(angles)[:m]
    H = log_map(X, Y)
    assert abs(np.linalg.norm(H) - np.linalg.norm(angles)) < EXACT and np.linalg.norm(H) == pytest.approx(norm, rel=1e-5)
    assert gap_between(exp_map(X, H), Y) < EXACT


@pytest.mark.parametrize("angle, p, count", [(RIGHT, 1, 1), (RIGHT, 3, 1), (RIGHT - 1e-13, 3, 0), (0.0, 3, 0)])
def test_right_angles_warn_and_only_they(angle, p, count, recwarn):
    X, Y = np.eye(8, p), np.eye(8, p)
    Y[0, 0], Y[p, 0] = (0.0 if angle == RIGHT else np.cos(angle)), np.sin(angle)
    for call in (lambda: log_map(X, Y), lambda: geodesic(X, Y, 0.5), lambda: intrinsic_codes(X[None], Y[None], 1.0),
                 lambda: tangent_grams(X[None], Y[None])):
        recwarn.clear()
        call()
        assert len(recwarn) == count
        assert not count or "not unique for 1 pair(s)" in str(recwarn[0].message) and recwarn[0].filename == __file__


@laws
@given(sizes(), seeds)
def test_log_turns_with_the_basis_of_the_base_alone(size, seed):
    rng = np.random.default_rng(seed)
    X, Y = bases(rng, 2, *size)
    R, S = rotation(rng, size[1]), rotation(rng, size[1])
    H = log_map(X, Y)
    if np.linalg.svd(X.T @ Y, compute_uv=False).min() > 1e-2:  # else the shortest geodesic is nearly not unique
        assert error(log_map(X @ R, Y @ S), H @ R) < TIGHT
        assert error(log_map(X, Y), H) == 0


def test_maps_broadcast_and_leave_their_arguments():
    rng = np.random.default_rng(0)
    X, Y = bases(rng, 3, 7, 2), bases(rng, 20, 7, 2).reshape(4, 5, 7, 2)
    for A in (X, Y):
        A.flags.writeable = False
    H = log_map(X[0], Y)
    assert H.shape == Y.shape and error(H[2, 3], log_map(X[0], np.asfortranarray(Y[2, 3]))) < EXACT
    assert error(exp_map(X[:, None], np.zeros((1, 5, 7, 2))), np.broadcast_to(X[:, None], (3, 5, 7, 2))) < EXACT
    assert log_map(X[:, None, None], Y).shape == (3, 4, 5, 7, 2)
    assert log_map(X[:0], X[:0]).shape == (0, 7, 2) and exp_map(X[:0], X[:0]).shape == (0, 7, 2)
    assert log_map(X.astype(np.float32), Y[0, :3].astype(np.float32)).dtype == np.float32
    assert exp_map(X.astype(np.float32), np.zeros((7, 2), np.float32)).dtype == np.float32


@laws
@given(sizes(), seeds)
def test_geodesics_have_constant_speed(size, seed):
    X, Y = bases(np.random.default_rng(seed), 2, *size)
    t = np.array([0, 0.25, 0.5, 1])
    Z = geodesic(X, Y, t)
    length = np.linalg.norm(log_map(X, Y))
    assert gap_between(Z[0], X) < EXACT and gap_between(Z[-1], Y) < EXACT
    assert error(gs.geodesic_distance(Z), length * np.abs(t[:, None] - t)) < TIGHT


def test_geodesics_broadcast():
    X = bases(np.random.default_rng(0), 6, 5, 2)
    assert geodesic(X[:3], X[3:], [0, 0.5, 1]).shape == (3, 5, 2)
    assert geodesic(X[0], X[1:], np.zeros((4, 1))).shape == (4, 5, 5, 2)
    assert geodesic(X[:3], X[3:], 2).shape == (3, 5, 2)


@pytest.mark.parametrize("call, message", [
    (lambda X: exp_map(X[0], X[1]), "H must be tangent at X, X.T H = 0: got entries up to"),
    (lambda X: exp_map(X, X[:, :, :1]), r"H must have shape \(..., 5, 2\) as X, got \(4, 5, 1\)"),
    (lambda X: log_map(X, X[:, :, :1]), "Y must have the p of X, got 1 and 2"),
    (lambda X: log_map(X, X[:3]), r"X and Y must have leading axes that broadcast, got shapes \(4, 5, 2\) and \(3, 5, 2\)"),
    (lambda X: geodesic(X[0], X, [0, 1]), r"t must broadcast with the leading axes \(4,\) of X and Y, got shape \(2,\)"),
    (lambda X: karcher_mean(X, [1, 1, 1, -1]), "weights must be 4 numbers >= 0, .*-1"),
    (lambda X: karcher_mean(X, np.zeros(4)), "not all zero"),
    (lambda X: karcher_mean(X, tol=0), "tol must be positive, got 0"),
    (lambda X: tangent_grams(X, X, "median"), r"base must be None, 'mean' or a basis \(5, 2\), got 'median'"),
    (lambda X: tangent_grams(X, X, X[0, :, :1]), r"base must have shape \(5, 2\) as the atoms, got \(5, 1\)"),
    (lambda X: intrinsic_codes(X, X, -1), "lam must be >= 0 and tol > 0, got lam = -1"),
    (lambda X: intrinsic_codes(X, X[:, :, :1], 1), "D must have the p of X, got 1 and 2"),
])
def test_errors_name_argument_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call(bases(np.random.default_rng(0), 4, 5, 2))


# ---------------------------------------------------------------------------- Karcher mean


def cluster(rng, n, d, p, spread):
    """n points within spread of one point."""
    X = bases(rng, 1, d, p)[0]
    H = rng.standard_normal((n, d, p))
    H -= X @ (X.T @ H)
    norm = np.linalg.norm(H, axis=(1, 2))  # rounding if p = d
    return exp_map(X, H * np.where(norm > 1e-9, spread * rng.uniform(0, 1, n) / np.maximum(norm, 1e-9), 0)[:, None, None])


@laws
@given(sizes(), seeds, st.integers(1, 6))
def test_karcher_mean_is_stationary_and_ignores_bases_and_order(size, seed, n):
    rng = np.random.default_rng(seed)
    X, weights = cluster(rng, n, *size, 0.7), rng.uniform(0, 1, n) + 0.01
    found = karcher_mean(X, weights, return_info=True)
    gradient = np.tensordot(weights / weights.sum(), log_map(found.mean, X), 1)
    assert max(found.gradient, np.linalg.norm(gradient)) <= TIGHT
    order, R = rng.permutation(n), rotation(rng, size[1])
    assert gap_between(karcher_mean(X[order] @ R, weights[order]), found.mean) < 10 * TIGHT


def test_karcher_mean_of_two_points_is_the_midpoint():
    X = cluster(np.random.default_rng(0), 2, 9, 3, 0.7)
    assert gap_between(karcher_mean(X), geodesic(X[0], X[1], 0.5)) < TIGHT
    assert gap_between(karcher_mean(X, [1, 3]), geodesic(X[0], X[1], 0.75)) < TIGHT


def test_karcher_mean_counts_weights_as_repetitions():
    X = cluster(np.random.default_rng(1), 4, 8, 2, 0.7)
    assert gap_between(karcher_mean(X, [2, 0, 1, 3]), karcher_mean(X[[0, 0, 2, 3, 3, 3]])) < TIGHT


def test_karcher_mean_agrees_with_the_chordal_mean_to_second_order():
    far = []
    for spread in (0.1, 0.05, 0.025):
        X = cluster(np.random.default_rng(2), 6, 8, 2, spread)
        far.append(gap_between(karcher_mean(X), gs.chordal_mean(X)))
    assert far[0] < 0.1**2 and far[1] < far[0] / 4 and far[2] < far[1] / 4


def test_karcher_mean_warns_only_outside_of_a_convexity_ball():
    rng = np.random.default_rng(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line = np.array([np.r_[np.cos(a), np.sin(a), 0, 0] for a in (0, 0, 0, 0, 0, 0, 0, 1.5)])[:, :, None]
        karcher_mean(line)  # the farthest is 1.3 from the mean: one ball holds all
        karcher_mean(np.float32(cluster(rng, 5, 6, 2, 0.5)))
    with pytest.warns(UserWarning, match="no ball of radius pi/4 around the points was found"):
        karcher_mean(gs.random_subspaces(12, 6, 2, rng=0))
    with pytest.warns(UserWarning, match="did not converge in 1 steps: gradient norm"):
        karcher_mean(cluster(rng, 5, 6, 2, 0.7), max_iter=1)


# ---------------------------------------------------------------------------- log-Euclidean coding


@pytest.mark.parametrize("base", [None, "mean", "given"])
@pytest.mark.filterwarnings("ignore:karcher_mean")
def test_log_euclidean_codes_are_a_lasso_of_tangent_vectors(base):
    rng = np.random.default_rng(0)
    X, D, P = bases(rng, 5, 6, 2), bases(rng, 12, 6, 2), bases(rng, 1, 6, 2)[0]
    at = {None: np.eye(6, 2), "mean": karcher_mean(D), "given": P}[base]
    x, d = (log_map(at, A).reshape(len(A), -1) for A in (X, D))
    base = P if base == "given" else base
    grams = tangent_grams(X, D, base)
    assert error(grams.K_dd, d @ d.T) < TIGHT and error(grams.K_xd, x @ d.T) < TIGHT
    assert error(grams.norm2, (x**2).sum(axis=1)) < TIGHT
    codes, labels = log_euclidean_codes(X, D, 0.1, base), np.arange(12) % 3
    slope = 2 * (x - codes @ d) @ d.T  # = lam sign(y) on the support
    assert error(np.abs(slope[codes != 0]), 0.1) < LOOSE and np.abs(slope).max() < 0.1 + LOOSE
    residuals = [((x - codes[:, labels == c] @ d[labels == c])**2).sum(axis=1) for c in range(3)]
    assert np.array_equal(log_euclidean_classify(codes, X, D, labels, base), np.argmin(residuals, axis=0))


# ---------------------------------------------------------------------------- intrinsic coding


@st.composite
def intrinsic_problems(draw):
    """(X, D, lam): queries equal to atoms, repeated, near and orthogonal atoms, more atoms than dimensions."""
    (d, p), rng = draw(sizes()), np.random.default_rng(draw(seeds))
    X, D = bases(rng, 3, d, p), bases(rng, draw(st.integers(1, 14)), d, p, draw(st.sampled_from(KINDS)))
    if draw(st.booleans()):
        D[-1] = X[0] @ rotation(rng, p)
    return X, D, draw(st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0]))


def violation(H, y, lam):
    """Largest violation of the conditions of min ||sum y_j H_j||^2 + lam ||y||_1 with sum 1."""
    g = 2 * H @ (y @ H)
    nu = y @ g + lam * np.abs(y).sum()
    return max(abs(y.sum() - 1), np.where(y != 0, np.abs(g + lam * np.sign(y) - nu), np.abs(g - nu) - lam).max())


@quiet
@settings(deadline=None, max_examples=150)
@given(intrinsic_problems())
def test_intrinsic_codes_satisfy_the_optimality_conditions(problem):
    X, D, lam = problem
    codes, gap, _ = intrinsic_codes(X, D, lam, return_info=True)
    for x, y, bound in zip(X, codes, gap):
        H = log_map(x, D).reshape(len(D), -1)
        if np.linalg.svd(np.swapaxes(D, 1, 2) @ x, compute_uv=False).min() > 1e-6:  # else log is not unique, nearly
            assert violation(H, y, lam) < LOOSE
        assert -TIGHT * 10 < bound < LOOSE * (10 + lam)


def by_a_general_solver(H, lam):
    """The minimum over y = a - b, a, b >= 0, by sequential quadratic programming."""
    G, N = H @ H.T, len(H)

    def cost(z):
        y = z[:N] - z[N:]
        slope = 2 * G @ y
        return y @ G @ y + lam * z.sum(), np.concatenate([slope, -slope]) + lam

    sign = np.repeat([1.0, -1.0], N)
    found = minimize(cost, np.repeat([1 / N, 0], N), jac=True, bounds=[(0, None)] * (2 * N), method="SLSQP",
                     constraints={"type": "eq", "fun": lambda z: sign @ z - 1, "jac": lambda z: sign},
                     options={"ftol": 1e-14, "maxiter": 500})
    return found.fun


def test_intrinsic_codes_cost_no_more_than_those_of_a_general_solver():
    rng = np.random.default_rng(0)
    for _ in range(200):
        d, N, lam = rng.integers(3, 7), rng.integers(1, 9), 10 ** rng.uniform(-4, 0.5)
        p = rng.integers(1, d)
        x, D = bases(rng, 1, d, p)[0], bases(rng, N, d, p)
        H, y = log_map(x, D).reshape(N, -1), intrinsic_codes(x[None], D, lam)[0]
        mine = ((y @ H)**2).sum() + lam * np.abs(y).sum()
        assert abs(mine - by_a_general_solver(H, lam)) < LOOSE * (1 + mine)


def test_large_supports_and_negative_codes_are_exact():
    rng = np.random.default_rng(0)
    base = bases(rng, 1, 40, 2)[0]
    D = cluster(rng, 120, 40, 2, 0.5)
    X = geodesic(base, D[:8], 0.6)
    for lam in (1e-5, 1e-3):
        codes = intrinsic_codes(X, D, lam)
        assert max(violation(log_map(x, D).reshape(len(D), -1), y, lam) for x, y in zip(X, codes)) < LOOSE
    assert (codes != 0).sum(axis=1).max() > 50 and (codes < 0).any()


def test_a_query_equal_to_an_atom_is_that_atom():
    D = bases(np.random.default_rng(0), 9, 7, 3)
    assert error(intrinsic_codes(D, D, 0.1), np.eye(9)) < TIGHT


@pytest.mark.parametrize("N", [6, 40])
def test_without_lambda_the_code_is_the_affine_least_squares_of_least_norm(N):
    rng = np.random.default_rng(0)
    X, D = bases(rng, 3, 6, 2), bases(rng, N, 6, 2)
    codes, gap, _ = intrinsic_codes(X, D, 0, return_info=True)
    for x, y in zip(X, codes):
        H = log_map(x, D).reshape(N, -1)
        first = H[0] - H[1:]  # y = (1 - sum z, z): minimise ||H_0 - first^T z||, then the norm of y
        Z = np.linalg.svd(first.T)[2][np.linalg.matrix_rank(first):]  # directions that change nothing
        z = np.linalg.lstsq(first.T, H[0], rcond=None)[0]
        full = np.r_[1 - z.sum(), z]
        N0 = np.vstack([-Z.sum(axis=1), Z.T])  # the same in terms of y
        full -= N0 @ np.linalg.lstsq(N0, full, rcond=None)[0] if N0.shape[1] else 0
        assert error(y, full) < LOOSE
    assert gap.max() < LOOSE


def test_codes_ignore_how_the_inner_products_are_computed(monkeypatch):
    rng = np.random.default_rng(0)
    X, D = bases(rng, 5, 12, 3), bases(rng, 30, 12, 3)
    codes = intrinsic_codes(X, D, 0.05)
    monkeypatch.setattr(intrinsic, "ALL_PAIRS", 0)
    assert error(intrinsic_codes(X, D, 0.05), codes) < LOOSE
    for threads in (1, 2):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        many = intrinsic_codes(np.repeat(X, 40, axis=0), D, 0.05)
        first = many if threads == 1 else first
    assert np.array_equal(many, first)


def test_tight_clusters_are_coded_as_their_tangent_vectors_are():
    """Distances of 1e-5: traces of size p would cancel."""
    rng = np.random.default_rng(0)
    X = cluster(rng, 25, 8, 2, 1e-5)
    X, D = X[:5], X[5:]
    for x, y in zip(X, intrinsic_codes(X, D, 1e-13)):
        H = log_map(x, D).reshape(20, -1)
        assert violation(H * 1e5, y, 1e-3) < LOOSE


def test_float32_codes_stay_float32():
    rng = np.random.default_rng(0)
    X, D = bases(rng, 4, 6, 2), bases(rng, 9, 6, 2)
    codes = intrinsic_codes(np.float32(X), np.float32(D), 0.1)
    assert codes.dtype == np.float32 and error(codes, intrinsic_codes(X, D, 0.1)) < 1e-4
    assert log_euclidean_codes(np.float32(X), np.float32(D), 0.1).dtype == np.float32
    assert intrinsic_codes(X[:0], D, 0.1).shape == (0, 9)


def test_classes_are_found_by_the_extrinsic_residual_of_intrinsic_codes():
    rng = np.random.default_rng(0)
    sets = [cluster(rng, 12, 10, 2, 0.6) for _ in range(3)]
    D, X = np.concatenate([A[:5] for A in sets]), np.concatenate([A[5:] for A in sets])
    labels, truth = np.repeat(["a", "b", "c"], 5), np.repeat(["a", "b", "c"], 7)
    codes = intrinsic_codes(X, D, 0.05)
    assert np.array_equal(intrinsic_classify(codes, X, D, labels), truth)
    expected = gs.classify(codes, gs.projection_kernel(D), gs.projection_kernel(X, D), labels, norm2=2)
    assert np.array_equal(intrinsic_classify(codes, X, D, labels), expected)
