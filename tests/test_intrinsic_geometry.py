"""Exp, log, geodesics and the Karcher mean at all their edges."""

import warnings

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as gs
from grassmann_sc import intrinsic
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import bases, rotation, sizes
from oracles import TIGHT, error, seeds

# of the maps, relative to norms above 1: fifty times the rounding of one number
EXACT = 1e-14
RIGHT = np.pi / 2
ANGLES = {
    "random": lambda rng, m: rng.uniform(0, RIGHT, m),
    "near": lambda rng, m: 1e-12 * rng.uniform(0, 1, m),
    "small": lambda rng, m: rng.choice([0, 1e-3, 1e-6, 1e-8, 1e-9], m),
    "far": lambda rng, m: np.r_[RIGHT - 1e-9, rng.uniform(0, 1.5, m)][:m],
    "equal": lambda rng, m: np.full(m, rng.uniform(0, 1.5)),
    "right": lambda rng, m: np.full(m, RIGHT),
    "mixed": lambda rng, m: rng.choice(
        [0, 1e-12, 1e-8, 0.3, 1.2, RIGHT - 1e-7, RIGHT], m
    ),
}
NO_RIGHT_ANGLE = ["random", "near", "small", "far", "equal"]
laws = settings(deadline=None, max_examples=60)
quiet = pytest.mark.filterwarnings("ignore:.*right angles")


def pair(rng, d, p, kind):
    """X, Y (d, p), the tangent vector H at X that reaches Y, and its p singular values,
    the principal angles.
    """
    Q = rotation(rng, d)
    m = min(p, d - p)
    theta = np.zeros(p)
    E = np.zeros((d, p))
    U = rotation(rng, p)
    theta[:m] = ANGLES[kind](rng, m)
    E[:, :m] = Q[:, p : p + m]
    X = Q[:, :p]
    Y = (X @ U * np.cos(theta) + E * np.sin(theta)) @ rotation(rng, p)
    return X, Y, E * theta @ U.T, theta


def gap_between(X, Y):
    """||(I - X X^T) Y||: sines of the angles between the subspaces."""
    return np.linalg.norm(Y - X @ (X.T @ Y), 2)


shapes = st.one_of(sizes(), st.sampled_from([(20, 5), (60, 10), (100, 3)]))
cases = st.tuples(shapes, seeds)


# ------------------------------------------------------------------ exp, log, geodesics


@quiet
@laws
@given(cases, st.sampled_from(sorted(ANGLES)))
def test_exp_of_log_arrives(case, kind):
    X, Y, _, theta = pair(np.random.default_rng(case[1]), *case[0], kind)
    H = intrinsic.log_map(X, Y)
    length = np.linalg.norm(H)
    assert gap_between(intrinsic.exp_map(X, H), Y) < EXACT
    assert error(X.T @ H, 0) < EXACT
    assert abs(length - np.linalg.norm(theta)) < EXACT * max(1, np.linalg.norm(theta))
    distance = gs.geodesic_distance(X[None], Y[None])
    assert abs(length - distance) < EXACT * max(1, np.linalg.norm(theta))


@laws
@given(cases, st.sampled_from(NO_RIGHT_ANGLE))
def test_log_of_exp_is_the_tangent_vector(case, kind):
    X, _, H, _ = pair(np.random.default_rng(case[1]), *case[0], kind)
    assert error(intrinsic.log_map(X, intrinsic.exp_map(X, H)), H) < EXACT


def log_to_50_digits(X, Y):
    """Q arctan(S) W^T with (I - X X^T) Y (X^T Y)^-1 = Q S W^T, for the rounded
    matrices.
    """
    with mpmath.workdps(50):
        X, Y = (mpmath.qr(mpmath.matrix(A.tolist()), mode="skinny")[0] for A in (X, Y))
        C = X.T * Y
        Q, S, Wt = mpmath.svd_r((Y - X * C) * C**-1)
        return np.array(
            (Q * mpmath.diag([mpmath.atan(s) for s in S]) * Wt).tolist(), float
        ), X


@pytest.mark.parametrize("kind", NO_RIGHT_ANGLE)
@pytest.mark.parametrize("d, p", [(4, 2), (6, 3), (9, 2)])
def test_log_is_that_of_50_digits(kind, d, p):
    X, Y, _, _ = pair(np.random.default_rng(0), d, p, kind)
    exact, Q = log_to_50_digits(X, Y)
    R = np.array(Q.tolist(), float).T @ X  # QR of X may choose other signs
    assert error(intrinsic.log_map(X, Y), exact @ R) < EXACT


@pytest.mark.parametrize(
    "angles, d, norm",
    [
        ([1.346e-9, 0], 6, 1.346e-9),
        ([0, 0], 6, 0),
        ([RIGHT, 0.42426407], 6, 1.62708),
        ([RIGHT, RIGHT], 4, 2.2214415),
        ([1e-10, 1.5], 6, 1.5),
        ([0.3, 1.1, 0, 0], 6, np.hypot(0.3, 1.1)),
    ],
)
@quiet
def test_pairs_at_which_other_libraries_fail(angles, d, norm):
    p = len(angles)
    m = min(p, d - p)
    X = np.eye(d, p)
    Y = np.zeros((d, p))
    Y[np.arange(p), np.arange(p)] = np.cos(angles)
    Y[p + np.arange(m), np.arange(m)] = np.sin(angles)[:m]
    H = intrinsic.log_map(X, Y)
    assert abs(np.linalg.norm(H) - np.linalg.norm(angles)) < EXACT
    assert np.linalg.norm(H) == pytest.approx(norm, rel=1e-5)
    assert gap_between(intrinsic.exp_map(X, H), Y) < EXACT


@pytest.mark.parametrize(
    "angle, p, count",
    [(RIGHT, 1, 1), (RIGHT, 3, 1), (RIGHT - 1e-13, 3, 0), (0.0, 3, 0)],
)
@pytest.mark.parametrize(
    "call",
    [
        intrinsic.log_map,
        lambda X, Y: intrinsic.geodesic(X, Y, 0.5),
        lambda X, Y: tangent.intrinsic_codes(X[None], Y[None], 1.0),
        lambda X, Y: tangent.tangent_grams(X[None], Y[None]),
        lambda X, Y: tangent.log_euclidean_codes(X[None], Y[None], 0.1),
    ],
)
def test_right_angles_warn_and_only_they(call, angle, p, count, recwarn):
    X = np.eye(8, p)
    Y = np.eye(8, p)
    Y[0, 0] = 0.0 if angle == RIGHT else np.cos(angle)
    Y[p, 0] = np.sin(angle)
    call(X, Y)
    assert len(recwarn) == count
    if count:
        assert "not unique for 1 pair(s)" in str(recwarn[0].message)
        assert recwarn[0].filename == __file__


@laws
@given(sizes(), seeds)
def test_log_turns_with_the_basis_of_the_base_alone(size, seed):
    rng = np.random.default_rng(seed)
    X, Y = bases(rng, 2, *size)
    R = rotation(rng, size[1])
    S = rotation(rng, size[1])
    H = intrinsic.log_map(X, Y)
    if np.linalg.svd(X.T @ Y, compute_uv=False).min() > 1e-2:  # else nearly not unique
        assert error(intrinsic.log_map(X @ R, Y @ S), H @ R) < TIGHT
        assert error(intrinsic.log_map(X, Y), H) == 0


def test_maps_broadcast_and_leave_their_arguments():
    rng = np.random.default_rng(0)
    X = bases(rng, 3, 7, 2)
    Y = bases(rng, 20, 7, 2).reshape(4, 5, 7, 2)
    for A in (X, Y):
        A.flags.writeable = False
    H = intrinsic.log_map(X[0], Y)
    assert H.shape == Y.shape
    assert error(H[2, 3], intrinsic.log_map(X[0], np.asfortranarray(Y[2, 3]))) < EXACT
    nowhere = intrinsic.exp_map(X[:, None], np.zeros((1, 5, 7, 2)))
    assert error(nowhere, np.broadcast_to(X[:, None], (3, 5, 7, 2))) < EXACT
    assert intrinsic.log_map(X[:, None, None], Y).shape == (3, 4, 5, 7, 2)
    assert intrinsic.log_map(X[:0], X[:0]).shape == (0, 7, 2)
    assert intrinsic.exp_map(X[:0], X[:0]).shape == (0, 7, 2)
    assert intrinsic.log_map(np.float32(X), np.float32(Y[0, :3])).dtype == np.float32
    assert (
        intrinsic.exp_map(np.float32(X), np.zeros((7, 2), np.float32)).dtype
        == np.float32
    )


@pytest.mark.parametrize("d, p, n", [(40, 3, 2000), (4000, 9, 20)])
def test_many_pairs_are_mapped_as_one_is(d, p, n):
    """More than one block; the second shape's products go to BLAS one after the other."""
    X = gs.random_subspaces(n, d, p, rng=0)
    H = intrinsic.log_map(X[0], X)
    for i in (1, n // 2, n - 1):
        assert error(H[i], intrinsic.log_map(X[0], X[i])) < EXACT
        assert gap_between(intrinsic.exp_map(X[0], H)[i], X[i]) < TIGHT


@laws
@given(sizes(), seeds)
def test_geodesics_have_constant_speed(size, seed):
    X, Y = bases(np.random.default_rng(seed), 2, *size)
    t = np.array([0, 0.25, 0.5, 1])
    Z = intrinsic.geodesic(X, Y, t)
    length = np.linalg.norm(intrinsic.log_map(X, Y))
    assert gap_between(Z[0], X) < EXACT
    # the SVD of X^T Y (p, p) is exact to some p roundings: 1.06e-14 was seen at p = 3
    assert gap_between(Z[-1], Y) < EXACT * size[1]
    assert error(gs.geodesic_distance(Z), length * np.abs(t[:, None] - t)) < TIGHT


def test_geodesics_broadcast():
    X = bases(np.random.default_rng(0), 6, 5, 2)
    assert intrinsic.geodesic(X[:3], X[3:], [0, 0.5, 1]).shape == (3, 5, 2)
    assert intrinsic.geodesic(X[0], X[1:], np.zeros((4, 1))).shape == (4, 5, 5, 2)
    assert intrinsic.geodesic(X[:3], X[3:], 2).shape == (3, 5, 2)


def test_a_vector_that_is_not_tangent_is_named_by_its_index_among_all():
    """Vectors are mapped a block at a time, but are counted from the first."""
    X = np.array([[1.0], [0.0]])
    H = np.tile([[0.0], [1.0]], (intrinsic.CACHE, 1, 1))
    bad = intrinsic.CACHE - 7
    H[bad] = 0.5
    with pytest.raises(ValueError, match=f"got entries up to 0.5 at index {bad};"):
        intrinsic.exp_map(X, H)


@pytest.mark.parametrize("off, good", [(1e-7, True), (1e-5, False)])
def test_a_vector_is_tangent_to_a_millionth_of_its_norm(off, good):
    X = np.eye(4, 2)
    H = np.eye(4, 2, -2) + off * X
    if good:
        assert error(intrinsic.exp_map(X, H), intrinsic.exp_map(X, H - off * X)) < TIGHT
    else:
        with pytest.raises(ValueError, match="H must be tangent at X"):
            intrinsic.exp_map(X, H)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda X: intrinsic.exp_map(X[0], X[1]),
            "H must be tangent at X, X.T H = 0: got entries up to",
        ),
        (
            lambda X: intrinsic.exp_map(X, X[:, :, :1]),
            r"H must have shape \(..., 5, 2\) as X, got \(4, 5, 1\)",
        ),
        (
            lambda X: intrinsic.log_map(X, X[:, :, :1]),
            "Y must have the p of X, got 1 and 2",
        ),
        (
            lambda X: intrinsic.log_map(X, X[:3]),
            r"X and Y must have leading axes that broadcast, got shapes \(4, 5, 2\) and \(3, 5, 2\)",
        ),
        (
            lambda X: intrinsic.geodesic(X[0], X, [0, 1]),
            r"t, X and Y must have leading axes that broadcast, got shapes \(2, 1, 1\) and \(4, 5, 2\)",
        ),
        (
            lambda X: intrinsic.karcher_mean(X, [1, 1, 1, -1]),
            "weights must be 4 numbers >= 0, .*-1",
        ),
        (lambda X: intrinsic.karcher_mean(X, np.zeros(4)), "not all zero"),
        (lambda X: intrinsic.karcher_mean(X, tol=0), "tol must be positive, got 0"),
    ],
)
def test_errors_name_argument_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call(bases(np.random.default_rng(0), 4, 5, 2))


# ------------------------------------------------------------------------- Karcher mean


def cluster(rng, n, d, p, spread):
    """n points within spread of one point."""
    X = bases(rng, 1, d, p)[0]
    H = rng.standard_normal((n, d, p))
    H -= X @ (X.T @ H)
    norm = np.linalg.norm(H, axis=(1, 2))  # rounding if p = d
    length = spread * rng.uniform(0, 1, n)
    scale = np.where(norm > 1e-9, length / np.maximum(norm, 1e-9), 0)
    return intrinsic.exp_map(X, H * scale[:, None, None])


@laws
@given(sizes(), seeds, st.integers(1, 6))
def test_karcher_mean_is_stationary_and_ignores_bases_and_order(size, seed, n):
    rng = np.random.default_rng(seed)
    X = cluster(rng, n, *size, 0.7)
    weights = rng.uniform(0, 1, n) + 0.01
    mean = intrinsic.karcher_mean(X, weights)
    gradient = np.tensordot(weights / weights.sum(), intrinsic.log_map(mean, X), 1)
    assert np.linalg.norm(gradient) <= TIGHT
    order = rng.permutation(n)
    R = rotation(rng, size[1])
    again = intrinsic.karcher_mean(X[order] @ R, weights[order])
    assert gap_between(again, mean) < 10 * TIGHT


def test_karcher_mean_of_two_points_is_the_midpoint():
    X = cluster(np.random.default_rng(0), 2, 9, 3, 0.7)
    half, three_quarters = intrinsic.geodesic(X[0], X[1], [0.5, 0.75])
    assert gap_between(intrinsic.karcher_mean(X), half) < TIGHT
    assert gap_between(intrinsic.karcher_mean(X, [1, 3]), three_quarters) < TIGHT


def test_karcher_mean_takes_weights_whose_sum_overflows():
    """Only the ratios of weights matter, at any scale."""
    X = cluster(np.random.default_rng(1), 4, 8, 2, 0.7)
    weights = np.array([0.5, 1.0, 0.25, 1.0])
    huge = intrinsic.karcher_mean(X, 1e308 * weights)
    assert gap_between(huge, intrinsic.karcher_mean(X, weights)) < TIGHT


def test_karcher_mean_counts_weights_as_repetitions():
    X = cluster(np.random.default_rng(1), 4, 8, 2, 0.7)
    repeated = intrinsic.karcher_mean(X[[0, 0, 2, 3, 3, 3]])
    assert gap_between(intrinsic.karcher_mean(X, [2, 0, 1, 3]), repeated) < TIGHT


def test_karcher_mean_agrees_with_the_chordal_mean_to_second_order():
    far = []
    for spread in (0.1, 0.05, 0.025):
        X = cluster(np.random.default_rng(2), 6, 8, 2, spread)
        far.append(gap_between(intrinsic.karcher_mean(X), gs.chordal_mean(X)))
    assert far[0] < 0.1**2
    assert far[1] < far[0] / 4
    assert far[2] < far[1] / 4


def test_karcher_mean_warns_only_outside_of_a_convexity_ball():
    rng = np.random.default_rng(3)
    angles = (0, 0, 0, 0, 0, 0, 0, 1.5)
    line = np.array([np.r_[np.cos(a), np.sin(a), 0, 0] for a in angles])[:, :, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # the farthest is 1.3 from the mean: one ball holds all
        intrinsic.karcher_mean(line)
        intrinsic.karcher_mean(np.float32(cluster(rng, 5, 6, 2, 0.5)))
    with pytest.warns(
        UserWarning, match="no ball of radius pi/4 around the points was found"
    ):
        intrinsic.karcher_mean(gs.random_subspaces(12, 6, 2, rng=0))
    with pytest.warns(UserWarning, match="did not converge in 1 steps: gradient norm"):
        intrinsic.karcher_mean(cluster(rng, 5, 6, 2, 0.7), max_iter=1)


def test_steps_to_the_mean_begin_at_the_chordal_mean():
    X = cluster(np.random.default_rng(0), 5, 6, 2, 0.3)
    with pytest.warns(UserWarning, match="did not converge in 0 steps"):
        start = intrinsic.karcher_mean(X, max_iter=0)
    assert gap_between(start, gs.chordal_mean(X)) < TIGHT
