"""Geometry of the core: laws, NumPy twins, and answers known to fifty digits."""

import warnings

import hypothesis.strategies as st
import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as gs
from strategies import KINDS, LOOSE, TIGHT, bases, dtypes, error, gram, pairs_of_sets, rotation, rounding, seeds, sizes, subspaces

laws = settings(deadline=None, max_examples=40)


def projectors(X):
    return X @ np.swapaxes(X, -1, -2)


# ---------------------------------------------------------------------------- bases


@laws
@given(subspaces(), seeds, st.integers(-300, 300))
def test_orthonormalize_keeps_the_column_space(X, seed, exponent):
    d, p = X.shape[1:]
    R = np.triu(np.random.default_rng(seed).uniform(1, 2, (p, p)))
    Q = gs.orthonormalize(X @ R * 10.0**exponent)
    assert error(projectors(Q), projectors(X)) < TIGHT
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
    assert np.array_equal(X, gs.random_subspaces(n, *size, rng=np.random.default_rng(seed)))


def test_random_subspaces_are_uniform():
    """The mean projector tends to (p / d) I, at the rate of 1 / sqrt(n)."""
    mean = projectors(gs.random_subspaces(20000, 4, 2, rng=0)).mean(axis=0)
    assert error(mean, np.eye(4) / 2) < 0.02


# ---------------------------------------------------------------------------- Gram matrix


@laws
@given(pairs_of_sets(dtype=dtypes))
def test_gram_is_the_inner_product_of_projectors(XD):
    X, D = XD
    K = gs.projection_kernel(X, D)
    assert K.dtype == X.dtype and error(K, gram(*map(np.float64, XD))) < rounding(X.dtype)


@laws
@given(pairs_of_sets(), seeds)
def test_gram_ignores_choice_of_basis(XD, seed):
    (X, D), rng = XD, np.random.default_rng(seed)
    turned = [A @ rotation(rng, A.shape[2]) for A in XD]
    assert error(gs.projection_kernel(*turned), gs.projection_kernel(X, D)) < TIGHT


@laws
@given(subspaces())
def test_gram_of_a_set_is_symmetric_positive_and_has_p_on_the_diagonal(X):
    K = gs.projection_kernel(X)
    assert np.array_equal(K, K.T)
    assert error(K.diagonal(), X.shape[2]) < TIGHT and np.linalg.eigvalsh(K)[0] > -TIGHT
    assert error(K, gs.projection_kernel(X, X)) < TIGHT


@pytest.mark.parametrize("n, N, d, p, q", [(260, 690, 3, 3, 3), (770, 5, 2, 1, 2), (3, 2050, 2, 1, 1)])
def test_gram_is_the_same_across_tiles(n, N, d, p, q):
    X, D = gs.random_subspaces(n, d, p, rng=0), gs.random_subspaces(N, d, q, rng=1)
    assert error(gs.projection_kernel(X, D), gram(X, D)) < TIGHT


def test_gram_of_a_set_mirrors_every_tile():
    X = gs.random_subspaces(700, 3, 3, rng=0)[:, :, :2]
    assert error(gs.projection_kernel(np.ascontiguousarray(X)), gram(X, X)) < TIGHT


def test_gram_in_high_dimension_equals_that_of_products():
    X, D = gs.random_subspaces(5, 6001, 2, rng=0), gs.random_subspaces(4, 6001, 3, rng=1)
    assert error(gs.projection_kernel(X, D), np.square(np.einsum("ndp,mdq->nmpq", X, D)).sum(axis=(2, 3))) < TIGHT
    assert error(gs.projection_kernel(X), np.square(np.einsum("ndp,mdq->nmpq", X, X)).sum(axis=(2, 3))) < TIGHT


@laws
@given(seeds, dtypes)
def test_sum_squares_twin(seed, dtype):
    """Two rows of subspaces, p = 3; five columns, q = 4, in blocks of 3 and 2."""
    product = np.random.default_rng(seed).standard_normal((3 * 2, 4 * 5)).astype(dtype)
    K = np.full((6, 9), np.nan, dtype)
    gs._sum_squares(product, 3, 4, 3, False, 2, 3, K)
    by_row = (product**2).reshape(3, 2, 20).sum(axis=0)
    expected = np.hstack([by_row[:, :12].reshape(2, 4, 3).sum(axis=1), by_row[:, 12:].reshape(2, 4, 2).sum(axis=1)])
    np.testing.assert_allclose(K[2:4, 3:8], expected, rtol=rounding(dtype))
    assert np.isnan(K).sum() == 6 * 9 - 2 * 5


# ---------------------------------------------------------------------------- principal angles


def true_angles(X, Y):
    """Principal angles of the spans of the matrices as they are, to 50 digits."""
    with mpmath.workdps(50):
        Q, P = (mpmath.qr(mpmath.matrix(A.tolist()), mode="skinny")[0] for A in (X, Y))
        cosines = mpmath.svd_r(Q.T * P, compute_uv=False)
        return np.sort([float(mpmath.acos(min(c, mpmath.mpf(1)))) for c in cosines])


def pair_at(angles, rng, d, p):
    """Two p-dimensional subspaces of R^d whose last angles are the given ones, the others 0, in random bases."""
    theta = np.zeros(p)
    theta[p - len(angles):] = angles
    Q = rotation(rng, d)
    X, Y = Q[:, :p], Q[:, :p] * np.cos(theta)
    Y[:, p - len(angles):] += Q[:, d - len(angles):] * np.sin(angles)
    return tuple(np.linalg.qr(A @ rotation(rng, p))[0] for A in (X, Y))


KNOWN_ANGLES = [[0], [1e-12], [1e-10, 1.5], [np.pi / 4], [np.pi / 2 - 1e-9], [np.pi / 2], [1e-10, np.pi / 2], [1e-12, 1e-9, 1e-5],
                [0, 1e-10, np.pi / 4, 1.5, np.pi / 2 - 1e-9, np.pi / 2], [np.pi / 4, np.pi / 4], [0.3, 0.3 + 1e-9, 1.2]]


@pytest.mark.parametrize("angles", KNOWN_ANGLES, ids=str)
@pytest.mark.parametrize("d, p", [(12, 6), (9, 6), (40, 6)], ids=str)
def test_angles_agree_with_fifty_digits(angles, d, p):
    angles = angles[:d - p]
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
    assert theta.dtype == X.dtype and theta.shape == (len(X), len(Y), min(X.shape[2], Y.shape[2]))
    assert (np.diff(theta) >= 0).all() and (theta >= 0).all() and (theta <= X.dtype.type(np.pi / 2)).all()
    assert error(theta, gs.principal_angles(Y, X[:, None])) < rounding(X.dtype)
    assert error((np.cos(theta)**2).sum(axis=-1), gs.projection_kernel(X, Y)) < rounding(X.dtype)


def test_angles_of_float32_keep_the_small_ones():
    X, Y = (A.astype(np.float32) for A in pair_at([1e-5, 1.5], np.random.default_rng(0), 10, 2))
    assert error(gs.principal_angles(X, Y), [1e-5, 1.5]) < rounding(np.float32, 3e-15)


# ---------------------------------------------------------------------------- distances


@laws
@given(pairs_of_sets())
def test_chordal_distance_is_that_of_projectors(XY):
    X, Y = XY
    explicit = np.linalg.norm(projectors(X)[:, None] - projectors(Y), axis=(2, 3))
    assert error(gs.chordal_distance(X, Y), explicit) < TIGHT
    if X.shape[2] == Y.shape[2]:
        theta = gs.principal_angles(X[:, None], Y)
        assert error(gs.chordal_distance(X, Y), np.sqrt(2) * np.linalg.norm(np.sin(theta), axis=-1)) < TIGHT


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
    chordal, geodesic = gs.chordal_distance(X) / np.sqrt(2), gs.geodesic_distance(X)
    assert (2 / np.pi * geodesic <= chordal + TIGHT).all() and (chordal <= geodesic + TIGHT).all()


def test_printed_inequality_fails_for_small_angles():
    X, Y = pair_at([1e-3], np.random.default_rng(0), 4, 1)
    assert gs.chordal_distance(X[None], Y[None]) > 1.41 * gs.geodesic_distance(X[None], Y[None])


@laws
@given(st.lists(st.floats(0.01, 1.5), min_size=1, max_size=3), seeds)
def test_embedding_is_an_isometry_up_to_sqrt_two(angles, seed):
    """The length of a geodesic measured by chords, extrapolated from two polylines, is sqrt(2) its length."""
    rng, p = np.random.default_rng(seed), len(angles)
    Q, R = rotation(rng, 2 * p), rotation(rng, p)
    curve = [(Q[:, :p] * np.cos(t * np.array(angles)) + Q[:, p:] * np.sin(t * np.array(angles))) @ R for t in np.linspace(0, 1, 129)]
    fine = gs.chordal_distance(np.array(curve)).diagonal(1).sum()
    coarse = gs.chordal_distance(np.array(curve[::2])).diagonal(1).sum()
    assert abs((4 * fine - coarse) / 3 - np.sqrt(2) * gs.geodesic_distance(np.array(curve))[0, -1]) < LOOSE


@pytest.mark.parametrize("angle", [1e-15, 1e-12, 1e-9, 1e-5, 0.2, 0.3, np.pi / 2])
def test_distances_keep_small_angles(angle):
    X, Y = (A[None] for A in pair_at([angle], np.random.default_rng(1), 6, 2))
    theta = true_angles(X[0], Y[0])
    assert abs(gs.chordal_distance(X, Y) - np.sqrt(2) * np.linalg.norm(np.sin(theta))) < 3e-15
    assert abs(gs.geodesic_distance(X, Y) - np.linalg.norm(theta)) < 3e-15


# ---------------------------------------------------------------------------- closest point and mean


def objective(Y, S):
    return np.trace(Y.T @ S @ Y)


def competitors(best, rng):
    """Random subspaces of the same shape, and perturbations of the best at every distance."""
    d, p = best.shape
    yield from bases(rng, 30, d, p)
    for exponent in np.linspace(-8, 0, 30):
        yield np.linalg.qr(best + 10.0**exponent * rng.standard_normal((d, p)))[0]


@laws
@given(sizes(), seeds, st.sampled_from(["definite", "indefinite", "negative"]))
def test_proj_is_never_beaten(size, seed, kind):
    (d, p), rng = size, np.random.default_rng(seed)
    G = rng.standard_normal((d, d))
    S = {"definite": G @ G.T, "indefinite": G + G.T, "negative": -G @ G.T}[kind]
    best = gs.proj(S, p)
    assert error(best.T @ best, np.eye(p)) < TIGHT
    assert abs(objective(best, S) - np.linalg.eigvalsh(S)[d - p:].sum()) < TIGHT * np.abs(S).max() * d
    for Y in competitors(best, rng):
        assert objective(Y, S) <= objective(best, S) + TIGHT * np.abs(S).max() * d


@laws
@given(subspaces(dtype=dtypes))
def test_proj_returns_a_projector_to_its_subspace(X):
    P = gs.proj(projectors(X), X.shape[2])
    assert P.dtype == X.dtype and error(projectors(P), projectors(X)) < rounding(X.dtype)


@laws
@given(subspaces(), seeds, st.booleans())
def test_chordal_mean_is_never_beaten(X, seed, signed):
    (n, d, p), rng = X.shape, np.random.default_rng(seed)
    w = rng.uniform(-1 if signed else 0, 1, n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # not unique: still optimal
        best = gs.chordal_mean(X, w)
    S = np.einsum("n,nij->ij", w, projectors(X))
    cost = lambda Y: w @ np.square(projectors(Y) - projectors(X)).sum(axis=(1, 2))
    assert error(best.T @ best, np.eye(p)) < TIGHT
    assert abs(objective(best, S) - np.linalg.eigvalsh(S)[d - p:].sum()) < TIGHT
    assert all(cost(best) <= cost(Y) + TIGHT for Y in competitors(best, rng))


@laws
@given(subspaces(n=st.just(1), dtype=dtypes), st.floats(1e-300, 1e300))
def test_chordal_mean_of_one_is_itself(X, weight):
    mean = gs.chordal_mean(X, [weight])
    assert mean.dtype == X.dtype and error(projectors(mean), projectors(X[0])) < rounding(X.dtype)


@laws
@given(subspaces(n=st.integers(2, 6)))
def test_chordal_mean_sees_weights_as_multiplicities(X):
    m = np.arange(1, len(X) + 1)
    S = np.einsum("n,nij->ij", m, projectors(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        means = gs.chordal_mean(X, m), gs.chordal_mean(np.repeat(X, m, axis=0)), gs.chordal_mean(X, 1e-200 * m)
    assert np.ptp([objective(Y, S) for Y in means]) < TIGHT * m.sum()


@pytest.mark.parametrize("d", [2, 3, 10])
@pytest.mark.parametrize("weight", [1, -1])
def test_chordal_mean_warns_exactly_if_it_is_not_unique(d, weight):
    """The line farthest from a line: one in the plane, any orthogonal one in space. Two orthogonal lines: all between."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gs.chordal_mean(np.eye(d)[:1, :, None], [weight])
    assert len(caught) == (weight < 0 and d > 2)
    with pytest.warns(UserWarning, match=r"chordal mean not unique in 1 case\(s\): eigenvalues p and p \+ 1 tie"):
        gs.chordal_mean(np.eye(d)[:2, :, None])


def test_proj_warns_if_the_point_is_not_unique():
    with pytest.warns(UserWarning, match=r"closest point not unique in 2 case\(s\)"):
        P = gs.proj([np.eye(3), np.zeros((3, 3)), np.diag([3.0, 2, 1])], 2)
    assert error(np.swapaxes(P, 1, 2) @ P, np.eye(2)) < TIGHT


def test_proj_takes_the_largest_eigenvalues_not_the_largest_in_magnitude():
    assert error(np.abs(gs.proj(np.diag([-9.0, 1, 2]), 1)).ravel(), [0, 0, 1]) < TIGHT
    assert error(np.abs(gs.proj(np.diag([1.7e308, 1.6e308]), 1)).ravel(), [1, 0]) < TIGHT


@pytest.mark.parametrize("same", [False, True])
def test_chordal_mean_of_many_in_high_dimension_needs_no_square_matrix(same):
    rng = np.random.default_rng(0)
    X = bases(rng, 1, 2100, 2) if same else bases(rng, 1001, 2100, 2)
    X = np.repeat(X, 1001, axis=0) if same else X
    Z = X.transpose(1, 0, 2).reshape(2100, -1)
    best = gs.chordal_mean(X)
    assert error(best.T @ best, np.eye(2)) < TIGHT
    top = 2 * 1001 if same else np.linalg.eigvalsh(Z.T @ Z)[-2:].sum()
    assert abs(np.square(best.T @ Z).sum() - top) < TIGHT * top


# ---------------------------------------------------------------------------- reconstruct


@laws
@given(subspaces(), seeds, st.booleans())
def test_reconstruct_is_proj_of_the_combination(D, seed, sparse):
    codes = np.random.default_rng(seed).standard_normal((3, len(D)))
    S = np.einsum("nj,jab->nab", codes, projectors(D))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        points = gs.reconstruct(gs.scipy.sparse.csr_array(codes) if sparse else codes, D)
    assert points.shape == (3, *D.shape[1:])
    for Y, s in zip(points, S):
        assert abs(objective(Y, s) - np.linalg.eigvalsh(s)[D.shape[1] - D.shape[2]:].sum()) < TIGHT


@laws
@given(subspaces(dtype=dtypes))
def test_reconstruct_returns_an_atom_from_its_own_code(D):
    points = gs.reconstruct(2 * np.eye(len(D)), D)
    assert points.dtype == D.dtype and error(projectors(points), projectors(D)) < rounding(D.dtype)


def test_reconstruct_warns_of_zero_codes():
    D = gs.random_subspaces(3, 5, 2, rng=0)
    with pytest.warns(UserWarning, match=r"reconstruct: point not unique in 2 case\(s\)"):
        points = gs.reconstruct([[0, 0, 0], [1, 0, 0], [0, 0, 0]], D)
    assert error(np.swapaxes(points, 1, 2) @ points, np.eye(2)) < TIGHT


# ---------------------------------------------------------------------------- threads


@pytest.mark.parametrize("kind", KINDS)
def test_geometry_does_not_depend_on_threads(kind, monkeypatch):
    X = bases(np.random.default_rng(0), 40, 4, 2, kind)
    codes = np.random.default_rng(1).standard_normal((40, 40))
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        results.append([gs.projection_kernel(X), gs.chordal_distance(X), gs.geodesic_distance(X, X[:7]), gs.reconstruct(codes, X)])
    assert all(np.array_equal(a, b) for other in results[1:] for a, b in zip(results[0], other))
