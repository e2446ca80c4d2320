"""Geometry of the core: laws, NumPy twins, and answers known to fifty digits."""

import warnings

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings

import grassmann_sc as gs
from grassmann_sc import projected
from grassmann_sc.strategies import bases, pairs_of_sets, rotation, sizes, subspaces
from oracles import LOOSE, TIGHT, booleans, dtypes, error, hat, rounding, seeds

laws = settings(deadline=None, max_examples=40)


# ---------------------------------------------------------------------------- bases


@laws
@given(subspaces(), seeds, st.integers(-300, 300))
def test_orthonormalize_keeps_the_column_space(X, seed, exponent):
    p = X.shape[2]
    R = np.triu(np.random.default_rng(seed).uniform(1, 2, (p, p)))
    Q = gs.orthonormalize(X @ R * 10.0**exponent)
    assert error(hat(Q), hat(X)) < TIGHT
    assert error(np.swapaxes(Q, 1, 2) @ Q, np.eye(p)) < TIGHT


@laws
@given(subspaces(dtype=dtypes))
def test_orthonormalize_returns_a_basis_as_it_is(X):
    Q = gs.orthonormalize(X)
    assert Q.dtype == X.dtype and error(Q, X) < rounding(X.dtype)
    assert error(gs.orthonormalize(Q[0]), Q[0]) < rounding(X.dtype)


def test_orthonormalize_accepts_columns_of_very_different_scales():
    Q = gs.orthonormalize([[1e200, 1e-200], [1e200, -1e-200], [0, 0]])
    assert error(Q, np.array([[1, 1], [1, -1], [0, 0]]) / np.sqrt(2)) < TIGHT


@laws
@given(sizes(), st.integers(0, 5), seeds)
def test_random_subspaces_are_bases_and_repeat_with_the_seed(size, n, seed):
    X = gs.random_subspaces(n, *size, rng=seed)
    assert X.shape == (n, *size) and X.dtype == np.float64
    assert error(np.swapaxes(X, 1, 2) @ X, np.eye(size[1])) < TIGHT
    assert np.array_equal(
        X, gs.random_subspaces(n, *size, rng=np.random.default_rng(seed))
    )


def test_random_subspaces_are_uniform():
    """The mean projector tends to (p / d) I, at the rate of 1 / sqrt(n)."""
    mean = hat(gs.random_subspaces(20000, 4, 2, rng=0)).mean(axis=0)
    assert error(mean, np.eye(4) / 2) < 0.02


# --------------------------------------------------------------------- principal angles


def true_angles(X, Y):
    """Principal angles of the spans of the matrices as they are, to 50 digits."""
    with mpmath.workdps(50):
        Q, P = (mpmath.qr(mpmath.matrix(A.tolist()), mode="skinny")[0] for A in (X, Y))
        cosines = mpmath.svd_r(Q.T * P, compute_uv=False)
        return np.sort([float(mpmath.acos(min(c, mpmath.mpf(1)))) for c in cosines])


def pair_at(angles, rng, d, p):
    """Two p-dimensional subspaces of R^d whose last angles are the given ones, the
    others 0, in random bases.
    """
    theta = np.zeros(p)
    theta[p - len(angles) :] = angles
    Q = rotation(rng, d)
    X = Q[:, :p]
    Y = X * np.cos(theta)
    Y[:, p - len(angles) :] += Q[:, d - len(angles) :] * np.sin(angles)
    return tuple(np.linalg.qr(A @ rotation(rng, p))[0] for A in (X, Y))


KNOWN_ANGLES = [
    [0],
    [1e-12],
    [1e-10, 1.5],
    [np.pi / 4],
    [np.pi / 2 - 1e-9],
    [np.pi / 2],
    [1e-10, np.pi / 2],
    [1e-12, 1e-9, 1e-5],
    [0, 1e-10, np.pi / 4, 1.5, np.pi / 2 - 1e-9, np.pi / 2],
    [np.pi / 4, np.pi / 4],
    [0.3, 0.3 + 1e-9, 1.2],
]


@pytest.mark.parametrize("angles", KNOWN_ANGLES, ids=str)
@pytest.mark.parametrize("d, p", [(12, 6), (9, 6), (40, 6)], ids=str)
def test_angles_agree_with_fifty_digits(angles, d, p):
    angles = angles[: d - p]
    X, Y = pair_at(angles, np.random.default_rng(len(angles)), d, p)
    assert error(gs.principal_angles(X, Y), true_angles(X, Y)) < 3e-15


@laws
@given(pairs_of_sets())
def test_angles_of_any_dimensions_agree_with_fifty_digits(XY):
    X, Y = XY
    assert error(gs.principal_angles(X[0], Y[0]), true_angles(X[0], Y[0])) < 3e-15


@laws
@given(pairs_of_sets(dtype=dtypes))
def test_angles_are_symmetric_ascending_and_batched(XY):
    X, Y = XY
    theta = gs.principal_angles(X[:, None], Y)
    assert theta.dtype == X.dtype
    assert theta.shape == (len(X), len(Y), min(X.shape[2], Y.shape[2]))
    assert (np.diff(theta) >= 0).all()
    assert (theta >= 0).all() and (theta <= X.dtype.type(np.pi / 2)).all()
    assert error(theta, gs.principal_angles(Y, X[:, None])) < rounding(X.dtype)
    K = (np.cos(theta) ** 2).sum(axis=-1)
    assert error(K, gs.projection_kernel(X, Y)) < rounding(X.dtype)


def test_angles_of_float32_keep_the_small_ones():
    X, Y = (
        A.astype(np.float32)
        for A in pair_at([1e-5, 1.5], np.random.default_rng(0), 10, 2)
    )
    assert error(gs.principal_angles(X, Y), [1e-5, 1.5]) < rounding(np.float32, 3e-15)


# ---------------------------------------------------------------------------- distances


@laws
@given(pairs_of_sets())
def test_chordal_distance_is_that_of_projectors(XY):
    X, Y = XY
    explicit = np.linalg.norm(hat(X)[:, None] - hat(Y), axis=(2, 3))
    assert error(gs.chordal_distance(X, Y), explicit) < TIGHT
    if X.shape[2] == Y.shape[2]:
        sines = np.sin(gs.principal_angles(X[:, None], Y))
        of_sines = np.sqrt(2) * np.linalg.norm(sines, axis=-1)
        assert error(gs.chordal_distance(X, Y), of_sines) < TIGHT


@laws
@given(pairs_of_sets(dtype=dtypes))
def test_geodesic_distance_is_the_norm_of_the_angles(XY):
    X, Y = XY
    explicit = np.linalg.norm(gs.principal_angles(X[:, None], Y), axis=-1)
    d = gs.geodesic_distance(X, Y)
    assert d.dtype == X.dtype and error(d, explicit) < rounding(X.dtype)


@pytest.mark.parametrize("distance", [gs.chordal_distance, gs.geodesic_distance])
@laws
@given(X=subspaces(dtype=dtypes))
def test_distances_within_a_set_are_symmetric_with_zero_diagonal(distance, X):
    D = distance(X)
    assert D.dtype == X.dtype and np.array_equal(D, D.T) and not D.diagonal().any()
    assert error(D, distance(X, X.copy())) < rounding(X.dtype)


@pytest.mark.parametrize("distance", [gs.chordal_distance, gs.geodesic_distance])
@laws
@given(X=subspaces(n=st.integers(3, 6)))
def test_triangle_inequality(distance, X):
    D = distance(X)
    assert (D[:, None] <= D[:, :, None] + D[None] + TIGHT).all()


@laws
@given(subspaces(n=st.integers(2, 6)))
def test_chordal_and_geodesic_distance_obey_the_corrected_inequality(X):
    chordal = gs.chordal_distance(X) / np.sqrt(2)
    geodesic = gs.geodesic_distance(X)
    assert (2 / np.pi * geodesic <= chordal + TIGHT).all()
    assert (chordal <= geodesic + TIGHT).all()


def test_printed_inequality_fails_for_small_angles():
    X, Y = pair_at([1e-3], np.random.default_rng(0), 4, 1)
    chordal = gs.chordal_distance(X[None], Y[None])
    assert chordal > 1.41 * gs.geodesic_distance(X[None], Y[None])


@laws
@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=3), seeds)
def test_embedding_is_an_isometry_up_to_sqrt_two(angles, seed):
    """The length of a geodesic measured by chords, extrapolated from two polylines, is
    sqrt(2) its length.
    """
    rng = np.random.default_rng(seed)
    p = len(angles)
    Q = rotation(rng, 2 * p)
    R = rotation(rng, p)
    theta = np.outer(np.linspace(0, 1, 129), angles)[:, None]  # (129, 1, p)
    curve = (Q[:, :p] * np.cos(theta) + Q[:, p:] * np.sin(theta)) @ R
    fine = gs.chordal_distance(curve).diagonal(1).sum()
    coarse = gs.chordal_distance(curve[::2]).diagonal(1).sum()
    length = gs.geodesic_distance(curve)[0, -1]
    assert abs((4 * fine - coarse) / 3 - np.sqrt(2) * length) < LOOSE


@pytest.mark.parametrize("angle", [1e-15, 1e-12, 1e-9, 1e-5, 0.2, 0.3, np.pi / 2])
def test_distances_keep_small_angles(angle):
    X, Y = (A[None] for A in pair_at([angle], np.random.default_rng(1), 6, 2))
    theta = true_angles(X[0], Y[0])
    chordal = np.sqrt(2) * np.linalg.norm(np.sin(theta))
    assert abs(gs.chordal_distance(X, Y) - chordal) < 3e-15
    assert abs(gs.geodesic_distance(X, Y) - np.linalg.norm(theta)) < 3e-15


# --------------------------------------------------------------- closest point and mean


def objective(Y, S):
    return np.trace(Y.T @ S @ Y)


def competitors(best, rng):
    """Random subspaces of the same shape, and perturbations of the best at every
    distance.
    """
    d, p = best.shape
    yield from bases(rng, 30, d, p)
    for exponent in np.linspace(-8, 0, 30):
        yield np.linalg.qr(best + 10.0**exponent * rng.standard_normal((d, p)))[0]


@laws
@given(sizes(), seeds, st.sampled_from(["definite", "indefinite", "negative"]))
def test_proj_is_never_beaten(size, seed, kind):
    d, p = size
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((d, d))
    S = {"definite": G @ G.T, "indefinite": G + G.T, "negative": -G @ G.T}[kind]
    best = gs.proj(S, p)
    slack = TIGHT * np.abs(S).max() * d
    assert error(best.T @ best, np.eye(p)) < TIGHT
    assert abs(objective(best, S) - np.linalg.eigvalsh(S)[d - p :].sum()) < slack
    for Y in competitors(best, rng):
        assert objective(Y, S) <= objective(best, S) + slack


@laws
@given(subspaces(dtype=dtypes))
def test_proj_returns_a_projector_to_its_subspace(X):
    P = gs.proj(hat(X), X.shape[2])
    assert P.dtype == X.dtype and error(hat(P), hat(X)) < rounding(X.dtype)


@laws
@given(subspaces(), seeds, booleans)
def test_chordal_mean_is_never_beaten(X, seed, signed):
    n, d, p = X.shape
    rng = np.random.default_rng(seed)
    w = rng.uniform(-1 if signed else 0, 1, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # not unique: still optimal
        best = gs.chordal_mean(X, w)

    def cost(Y):
        return w @ np.square(hat(Y) - hat(X)).sum(axis=(1, 2))

    S = np.einsum("n,nij->ij", w, hat(X))
    assert error(best.T @ best, np.eye(p)) < TIGHT
    assert abs(objective(best, S) - np.linalg.eigvalsh(S)[d - p :].sum()) < TIGHT
    assert all(cost(best) <= cost(Y) + TIGHT for Y in competitors(best, rng))


@laws
@given(subspaces(n=st.just(1), dtype=dtypes), st.floats(1e-300, 1e300))
def test_chordal_mean_of_one_is_itself(X, weight):
    mean = gs.chordal_mean(X, [weight])
    assert mean.dtype == X.dtype
    assert error(hat(mean), hat(X[0])) < rounding(X.dtype)


@laws
@given(subspaces(n=st.integers(2, 6)))
def test_chordal_mean_sees_weights_as_multiplicities(X):
    m = np.arange(1, len(X) + 1)
    S = np.einsum("n,nij->ij", m, hat(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        means = [
            gs.chordal_mean(X, m),
            gs.chordal_mean(np.repeat(X, m, axis=0)),
            gs.chordal_mean(X, 1e-200 * m),
        ]
    assert np.ptp([objective(Y, S) for Y in means]) < TIGHT * m.sum()


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("weight", [1, -1])
def test_chordal_mean_warns_exactly_if_it_is_not_unique(d, weight):
    """The line farthest from a line: one in the plane, any orthogonal one in space. Two
    orthogonal lines: all between.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gs.chordal_mean(np.eye(d)[:1, :, None], [weight])
    assert len(caught) == (weight < 0 and d > 2)
    with pytest.warns(
        UserWarning,
        match=r"chordal mean not unique in 1 case\(s\): "
        r"eigenvalues p and p \+ 1 tie",
    ):
        gs.chordal_mean(np.eye(d)[:2, :, None])


def test_proj_warns_if_the_point_is_not_unique():
    with pytest.warns(UserWarning, match=r"closest point not unique in 2 case\(s\)"):
        P = gs.proj([np.eye(3), np.zeros((3, 3)), np.diag([3.0, 2, 1])], 2)
    assert error(np.swapaxes(P, 1, 2) @ P, np.eye(2)) < TIGHT


def test_proj_takes_the_largest_eigenvalues_not_the_largest_in_magnitude():
    assert error(np.abs(gs.proj(np.diag([-9.0, 1, 2]), 1)).ravel(), [0, 0, 1]) < TIGHT
    assert (
        error(np.abs(gs.proj(np.diag([1.7e308, 1.6e308]), 1)).ravel(), [1, 0]) < TIGHT
    )


@pytest.mark.parametrize("same", [False, True])
def test_chordal_mean_of_many_in_high_dimension_needs_no_square_matrix(same):
    X = bases(np.random.default_rng(0), 1 if same else 1001, 2100, 2)
    X = np.repeat(X, 1001, axis=0) if same else X
    Z = X.transpose(1, 0, 2).reshape(2100, -1)
    best = gs.chordal_mean(X)
    assert error(best.T @ best, np.eye(2)) < TIGHT
    top = 2 * 1001 if same else np.linalg.eigvalsh(Z.T @ Z)[-2:].sum()
    assert abs(np.square(best.T @ Z).sum() - top) < TIGHT * top


def test_a_chordal_mean_that_lanczos_does_not_find_is_found(monkeypatch):
    """As where weights < 0 leave fewer than p eigenvalues above 0."""
    X = bases(np.random.default_rng(0), 30, 60, 2)
    weights = np.array([0.1] + 29 * [-1.0])
    expected = gs.chordal_mean(X, weights)
    monkeypatch.setattr(gs, "LANCZOS", 50)
    monkeypatch.setattr(gs, "RESTARTS", 1)
    assert error(hat(gs.chordal_mean(X, weights)), hat(expected)) < TIGHT


# -------------------------------------------------------------------------- reconstruct


@laws
@given(subspaces(), seeds, booleans)
def test_reconstruct_is_proj_of_the_combination(D, seed, sparse):
    codes = np.random.default_rng(seed).standard_normal((3, len(D)))
    S = np.einsum("nj,jab->nab", codes, hat(D))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        points = gs.reconstruct(scipy.sparse.csr_array(codes) if sparse else codes, D)
    _, d, p = D.shape
    assert points.shape == (3, d, p)
    for Y, s in zip(points, S):
        assert abs(objective(Y, s) - np.linalg.eigvalsh(s)[d - p :].sum()) < TIGHT


@laws
@given(subspaces(dtype=dtypes))
def test_reconstruct_returns_an_atom_from_its_own_code(D):
    points = gs.reconstruct(2 * np.eye(len(D)), D)
    assert points.dtype == D.dtype
    assert error(hat(points), hat(D)) < rounding(D.dtype)


def test_reconstruct_warns_of_zero_codes():
    D = gs.random_subspaces(3, 5, 2, rng=0)
    with pytest.warns(
        UserWarning, match=r"reconstruct: point not unique in 2 case\(s\)"
    ):
        points = gs.reconstruct([[0, 0, 0], [1, 0, 0], [0, 0, 0]], D)
    assert error(np.swapaxes(points, 1, 2) @ points, np.eye(2)) < TIGHT


def test_eigenvalues_tie_to_rounding_of_the_matrix_and_no_further():
    eps = np.finfo(float).eps
    apart = np.array([0, 1, 1 + 100 * 3 * eps])
    alike = np.array([0, 1, 1 + 3 * 3 * eps])
    assert not gs.eigenvalues_tie(apart, 1, 1.0, 3)
    assert gs.eigenvalues_tie(alike, 1, 1.0, 3)
    assert not gs.eigenvalues_tie(alike, 3, 1.0, 3)


@pytest.mark.parametrize("d", [3, 4, 10, 60])
def test_points_of_terms_that_cancel_are_said_to_be_arbitrary(d):
    """What is left is rounding, whose leading directions mean nothing."""
    A = gs.random_subspaces(1, d, 2, rng=0)[0]
    D = np.stack([A, A @ [[0.6, -0.8], [0.8, 0.6]]])
    with pytest.warns(UserWarning, match="not unique in 1 case"):
        gs.reconstruct([[0.5, -0.5]], D)
    with pytest.warns(UserWarning, match="not unique in 1 case"):
        gs.chordal_mean(D, [1, -1])
    with pytest.warns(UserWarning, match="not unique in 1 case"):
        projected.projected_losses([[0.5, -0.5]], A[None], D)


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
def test_no_scale_makes_eigenvalues_tie(scale):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        P = gs.proj(scale * np.diag([1.0, 3.0, 2.0]), 2)
    assert error(P @ P.T, np.diag([0, 1, 1])) <= TIGHT


def test_terms_that_do_not_cancel_are_not_said_to():
    """In float32 too, where there are many of them in high dimension."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.chordal_mean(gs.random_subspaces(420, 2100, 5, rng=0).astype(np.float32))
        D = gs.random_subspaces(60, 300, 5, rng=1).astype(np.float32)
        gs.reconstruct(np.random.default_rng(0).standard_normal((20, 60)), D)
