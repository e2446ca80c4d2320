"""Mutual subspace methods and discriminants of Gram matrices against their equations,
written out with d x d matrices.
"""

import warnings

import numpy as np
import pytest
import scipy.linalg
from hypothesis import assume, given

import grassmann_sc as gs
import grassmann_sc.baselines.sets as module
from grassmann_sc.baselines.sets import (
    binet_cauchy_kernel,
    correlation_kernel,
    dcc,
    difference_subspace,
    gda,
    ggda,
    image_bases,
    whitening_transform,
)
from grassmann_sc.strategies import bases, pairs_of_sets, rotation
from oracles import (
    LOOSE,
    TIGHT,
    dtypes,
    error,
    hat,
    rarely,
    rounding,
    seeds,
    vectors,
)

N_CLASSES = 3


def labelled_subspaces(n=24, d=7, p=2, seed=0, noise=0.6):
    """Subspaces scattered about one of each class, and their labels in turn."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % N_CLASSES
    centres = bases(rng, N_CLASSES, d, p)
    return np.linalg.qr(centres[labels] + noise * rng.standard_normal((n, d, p)))[
        0
    ], labels


X, LABELS = labelled_subspaces()
Q, _ = labelled_subspaces(9, seed=1)
K = gs.projection_kernel(X)
K_Q = gs.projection_kernel(Q, X)


def cosines(X, D):
    """Singular values of each X_i^T D_j, (n, N, min(p, q)), descending."""
    return np.linalg.svd(np.einsum("ndp,mdq->nmpq", X, D), compute_uv=False)


def squared_distances(A, B):
    return np.square(A[:, None] - B[None]).sum(axis=2)


def turned(X, seed=3):
    """The same subspaces in other bases."""
    rng = np.random.default_rng(seed)
    return np.stack([basis @ rotation(rng, X.shape[2]) for basis in X])


# -------------------------------------------------------------- kernels of correlations


@given(pairs_of_sets(dtype=dtypes))
def test_correlation_kernels_are_sums_and_products_of_singular_values(pair):
    X, D = pair
    c = np.minimum(cosines(X.astype(float), D.astype(float)), 1)
    tol = rounding(X.dtype)
    for t in range(1, c.shape[2] + 1):
        assert error(correlation_kernel(X, D, t), c[:, :, :t].sum(axis=2)) < tol
        similarity = module.cosine_sums(X, D, t, 2)
        assert error(similarity, np.square(c[:, :, :t]).sum(axis=2)) < tol
        assert similarity.dtype == X.dtype
    if X.shape[2] == D.shape[2]:
        assert error(binet_cauchy_kernel(X, D), np.square(c).prod(axis=2)) < tol


def test_the_sum_of_all_squared_cosines_is_the_projection_kernel():
    assert error(module.cosine_sums(Q, X, 2, 2), K_Q) < TIGHT
    assert error(correlation_kernel(X).diagonal(), 2) < TIGHT


@pytest.mark.parametrize("n", [0, 1, 70])
def test_tiles_do_not_show(n, monkeypatch):
    """Beyond rounding: a product's terms are summed in an order that may depend on the
    shape of the tile.
    """
    many = gs.random_subspaces(n, 7, 3, rng=0)
    whole = correlation_kernel(many, X, 2)
    monkeypatch.setattr(module, "PRODUCTS_AT_A_TIME", 2000)
    assert error(correlation_kernel(many, X, 2), whole) < TIGHT
    assert whole.shape == (n, 24)


# -------------------------------------------------------------- generalised differences


@pytest.mark.parametrize("d", [5, 9, 40])
@pytest.mark.parametrize("keep", [0.01, 0.5, 1.0])
def test_difference_subspace_has_the_least_eigenvectors_of_the_sum_of_projectors(
    d, keep
):
    D = gs.random_subspaces(4, d, 3, rng=0)
    G = difference_subspace(D, keep)
    total = hat(D).sum(axis=0)
    values, vectors = np.linalg.eigh(total)
    positive = vectors[:, values > 1e-9]
    m = max(1, round(keep * positive.shape[1]))
    assert error(hat(G), hat(positive[:, :m])) < LOOSE
    assert error(G.T @ G, np.eye(m)) < TIGHT


@pytest.mark.parametrize("keep, m", [(0.24, 1), (0.26, 2), (0.45, 3), (0.9, 5)])
def test_difference_subspace_has_the_nearest_number_of_directions(keep, m):
    """Of six: 0.24 keeps 1.44, 0.26 keeps 1.56."""
    D = gs.random_subspaces(3, 9, 2, rng=0)
    assert difference_subspace(D, keep).shape == (9, m)


def test_difference_subspace_drops_what_all_share():
    """The common line has the eigenvalue N, every other direction 1."""
    axes = np.eye(5)
    D = np.stack([axes[:, [0, 1]], axes[:, [0, 2]], axes[:, [0, 3]]])
    G = difference_subspace(D, 0.75)
    assert error(hat(G), np.diag([0, 1, 1, 1, 0])) < TIGHT


@pytest.mark.parametrize("d, N", [(5, 4), (9, 3), (40, 4)])
def test_whitening_makes_the_sum_of_projectors_the_identity(d, N):
    D = gs.random_subspaces(N, d, 3, rng=0)
    T = whitening_transform(D)
    values, vectors = np.linalg.eigh(hat(D).sum(axis=0))
    positive = values > 1e-9
    inverse = vectors[:, positive] / values[positive] @ vectors[:, positive].T
    assert error(T @ T.T, inverse) < LOOSE
    assert error(T.T @ hat(D).sum(axis=0) @ T, np.eye(positive.sum())) < LOOSE


def test_whitening_leaves_out_what_only_rounding_holds():
    """Two lines that differ by 1e-9 span one direction, for all that eigenvalues tell."""
    axes = np.eye(4)
    D = np.stack([axes[:, :1], axes[:, :1] + 1e-9 * axes[:, 1:2]])
    assert whitening_transform(D).shape == (4, 1)
    assert whitening_transform(D[:1]).shape == (4, 1)
    far = np.stack([axes[:, :1], gs.orthonormalize(axes[:, :1] + 1e-3 * axes[:, 1:2])])
    assert whitening_transform(far).shape == (4, 2)


def test_whitening_of_long_rows_holds_no_matrix_of_their_square():
    d = 200_000  # 320 GB
    T = whitening_transform(gs.random_subspaces(3, d, 2, rng=0))
    assert T.shape == (d, 6)


def test_difference_subspace_of_ties_is_told():
    # orthogonal: all eigenvalues are 1
    D = np.eye(6).reshape(6, 3, 2).transpose(1, 0, 2)
    with pytest.warns(UserWarning, match="not unique: eigenvalues 3 and 4 tie"):
        difference_subspace(D, 0.5)


@given(pairs_of_sets(dtype=dtypes))
def test_bases_of_images_span_them(pair):
    X, D = pair
    T = np.random.default_rng(0).standard_normal((X.shape[1], 4)).astype(X.dtype)
    Y = image_bases(X, T)[0]
    images = np.swapaxes(X, 1, 2).astype(float) @ T
    tol = rounding(X.dtype) * 100
    for basis, image in zip(Y.astype(float), images):
        k = min(X.shape[2], 4)
        assert basis.shape == (4, k)
        assert error(basis.T @ basis, np.eye(k)) < tol
        assert (
            error(image.T - basis @ (basis.T @ image.T), 0) < tol * np.abs(image).max()
        )


@pytest.mark.parametrize("factor", [1e-25, 1e25])
def test_bases_of_images_ignore_a_factor_of_the_transform(factor):
    X = gs.random_subspaces(4, 6, 2, rng=0)
    T = np.random.default_rng(0).standard_normal((6, 4))
    scaled = image_bases(X, factor * T)[0]
    assert error(hat(scaled), hat(image_bases(X, T)[0])) < TIGHT


def test_a_faint_direction_of_the_map_leaves_no_rounding_as_an_image():
    """What is lost is measured by the largest column of T, not by the least."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    mixed = np.linalg.qr(rng.standard_normal((2, 2)))[0]
    X = (Q[:, [0, 5]] @ mixed)[None]  # the second direction is mapped to zero
    (image,) = image_bases(X, Q[:, :3] * [1, 1, 1e-9])[0]
    assert error(np.abs(image), np.eye(3, 1) * [1, 0]) < TIGHT


def test_what_a_transform_loses_is_a_right_angle():
    T = np.eye(5)[:, 2:]
    lost = np.eye(5)[:, [1, 2]][None]
    Y = image_bases(lost, T)[0]
    assert error(hat(Y)[0], np.diag([1, 0, 0])) < TIGHT
    assert np.array_equal(
        image_bases(np.eye(5)[None, :, :2], T)[0], np.zeros((1, 3, 2))
    )


# ---------------------------------------------------------------------------------- DCC


def explicit_pairs(P, T, labels, counts):
    """(S_w, S_b, objective), a pair at a time, of all pairs that count."""
    d = P.shape[1]
    S = {True: np.zeros((d, d)), False: np.zeros((d, d))}
    loss = {True: [], False: []}
    for i in range(len(P)):
        for j in range(i):
            same = labels[i] == labels[j]
            if not (same or counts[i, j]):
                continue
            Pi, Pj = (
                basis @ np.linalg.inv(np.linalg.qr(T.T @ basis)[1])
                for basis in (P[i], P[j])
            )
            U, c, Vt = np.linalg.svd(Pi.T @ T @ T.T @ Pj)
            difference = Pi @ U - Pj @ Vt.T
            S[same] += difference @ difference.T
            loss[same].append((1 - c).sum())
    b = np.mean(loss[False])
    return S[True], S[False], b / (b + np.mean(loss[True]))


def explicit_dcc(X, labels, counts, m, reg, n_iter):
    d = X.shape[1]
    T = np.eye(d)
    objective = []
    for _ in range(n_iter):
        S_w, S_b, J = explicit_pairs(X, T, labels, counts)
        objective.append(J)
        s = reg * np.trace(S_w + S_b) / min(d, X.shape[0] * X.shape[2])
        T = scipy.linalg.eigh(S_b, S_w + s * np.eye(d))[1][:, ::-1][:, :m]
    return T, [*objective, explicit_pairs(X, T, labels, counts)[2]]


@pytest.mark.parametrize("d, m", [(7, 4), (7, 7), (30, 5)])
@rarely
@given(seed=seeds)
def test_dcc_equals_its_equations_a_pair_at_a_time(d, m, seed):
    """Also where d is larger than the span of the subspaces."""
    sets, labels = labelled_subspaces(9, d, seed=seed)
    counts = np.not_equal.outer(labels, labels)
    result = dcc(sets, labels, dimension=m, n_iter=2, reg=0.01, tol=0)
    T, objective = explicit_dcc(sets, labels, counts, m, 0.01, 2)
    if result.n_iter < 2:  # it ends before a step that does not raise the objective
        n = result.n_iter
        assert objective[n + 1] <= objective[n] + LOOSE
        assume(n > 0)  # else nothing was learned
        T, objective = explicit_dcc(sets, labels, counts, m, 0.01, n)
    assert error(result.objective, objective) < LOOSE
    assert error(hat(result.transform), hat(T)) < LOOSE * np.abs(hat(T)).max()


@pytest.mark.parametrize("dimension", [3, 5, None])
@pytest.mark.parametrize("noise", [0.3, 1.0])
def test_the_objective_of_dcc_never_falls(dimension, noise):
    sets, labels = labelled_subspaces(30, 8, 2, seed=4, noise=noise)
    result = dcc(sets, labels, dimension=dimension, n_iter=30, tol=0)
    assert len(result.objective) == result.n_iter + 1
    assert (np.diff(result.objective) > 0).all()
    assert result.objective.min() >= 0 and result.objective.max() <= 1
    if result.transform is not None:
        _, _, J = explicit_pairs(
            sets, result.transform, labels, np.ones((30, 30), bool)
        )
        assert error(J, result.objective[-1]) < LOOSE


def test_dcc_separates_what_noise_axes_hide():
    """Two classes differ in the first three axes; the others hold noise of greater
    size.
    """
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    signal = np.linalg.qr(rng.standard_normal((2, 3, 1)))[0][labels]
    sets = np.linalg.qr(
        np.concatenate([signal, rng.standard_normal((40, 6, 1))], axis=1)
    )[0]
    T = dcc(sets, labels, dimension=3).transform
    before = correlation_kernel(sets)
    after = correlation_kernel(image_bases(sets, T)[0])
    same = np.equal.outer(labels, labels) & ~np.eye(40, dtype=bool)
    apart = ~np.equal.outer(labels, labels)
    assert after[same].mean() > before[same].mean() + 0.3
    assert (
        after[same].mean() - after[apart].mean()
        > before[same].mean() - before[apart].mean()
    )


def test_dcc_ignores_the_basis_and_the_order():
    order = np.random.default_rng(0).permutation(24)
    result = dcc(X, LABELS, dimension=4)
    again = dcc(turned(X)[order], LABELS[order], dimension=4)
    assert (
        error(hat(result.transform), hat(again.transform))
        < LOOSE * np.abs(hat(result.transform)).max()
    )


@pytest.mark.parametrize(
    "sets, labels",
    [
        (X[:3], [0, 1, 2]),
        (X[[0, 0, 1, 1, 2, 2]], [0, 0, 1, 1, 2, 2]),
        (np.eye(8).reshape(8, 4, 2).transpose(1, 0, 2), [0, 0, 1, 1]),
        (np.eye(3)[:, :, None], [0, 0, 1]),
    ],
    ids=["one set a class", "repeated", "right angles", "lines at right angles"],
)
def test_dcc_of_degenerate_sets(sets, labels):
    result = dcc(sets, labels)
    assert np.isfinite(result.objective).all()
    assert result.transform is None or np.isfinite(result.transform).all()


def test_dcc_of_float32_stays_float32():
    result = dcc(np.float32(X), LABELS, n_iter=1)
    assert result.transform.dtype == np.float32
    assert error(result.objective, dcc(X, LABELS, n_iter=1).objective) < 1e-5


@pytest.mark.parametrize(
    "sets",
    [np.stack([np.eye(3)] * 4), X[[0] * 4]],
    ids=["p = d", "the same sets in each class"],
)
def test_dcc_of_sets_that_do_not_differ_is_refused(sets):
    with pytest.raises(
        ValueError, match="X must hold subspaces that differ between classes"
    ):
        dcc(sets, [0, 0, 1, 1])


# ---------------------------------------------------------------------------------- GDA


def scatters(Z, labels):
    """Between- and within-class scatter of the rows of Z."""
    mean = Z.mean(axis=0)
    between = np.zeros((Z.shape[1], Z.shape[1]))
    within = between.copy()
    for c in np.unique(labels):
        members = Z[labels == c]
        between += len(members) * np.outer(*2 * [members.mean(axis=0) - mean])
        centred = members - members.mean(axis=0)
        within += centred.T @ centred
    return between, within


def explicit_gda(X, Q, labels, reg):
    """LDA of vec(X X^T), with the regularisation of coefficients as a form on
    directions.
    """
    left, s, basis = np.linalg.svd(vectors(X), full_matrices=False)
    basis = basis[s > 1e-8 * s[0]]
    Z = vectors(X) @ basis.T
    between, within = scatters(Z, labels)
    K = vectors(X) @ vectors(X).T
    ridge = reg * np.square(K).sum() / len(K) * np.linalg.inv(Z.T @ Z)
    values, W = scipy.linalg.eigh(between, within + ridge)
    W = W[:, ::-1][:, : len(np.unique(labels)) - 1]
    return Z @ W, vectors(Q) @ basis.T @ W, values[::-1][: W.shape[1]]


@pytest.mark.parametrize("reg", [1e-4, 1e-2, 1.0])
@rarely
@given(seed=seeds)
def test_gda_is_linear_discriminant_analysis_of_embedded_points(reg, seed):
    X, LABELS = labelled_subspaces(seed=seed)
    K = gs.projection_kernel(X)
    K_Q = gs.projection_kernel(Q, X)
    result = gda(K, LABELS, reg=reg)
    train, queries, values = explicit_gda(X, Q, LABELS, reg)
    assert error(result.values / values, 1) < LOOSE
    ours = squared_distances(K_Q @ result.coefficients, K @ result.coefficients)
    expected = squared_distances(queries, train)
    assert error(ours, expected) < LOOSE * expected.max()
    assert result.negative_share == 0
    assert result.coefficients.shape == (24, N_CLASSES - 1)


def test_gda_has_conjugate_coordinates_of_unit_denominator():
    reg = 0.01
    result = gda(K, LABELS, reg=reg)
    member = (LABELS[:, None] == np.arange(N_CLASSES)) / np.sqrt(8)
    V = member @ member.T
    s = reg * np.trace(K @ K) / 24
    A = result.coefficients
    assert (
        error(A.T @ (K @ (np.eye(24) - V) @ K + s * np.eye(24)) @ A, np.eye(2)) < LOOSE
    )
    numerator = A.T @ K @ (V - 1 / 24) @ K @ A
    assert error(numerator, np.diag(result.values)) < LOOSE * result.values.max()


@pytest.mark.parametrize("scale", [7.0, 1e-200, 1e200])
def test_gda_ignores_the_basis_the_order_and_the_scale(scale):
    order = np.random.default_rng(0).permutation(24)
    other = gs.projection_kernel(turned(X))[np.ix_(order, order)]
    result = gda(K, LABELS)
    again = gda(scale * other, LABELS[order])
    plain = squared_distances(K @ result.coefficients, K @ result.coefficients)
    others = 2 * [scale * other @ again.coefficients]
    assert (
        error(plain[np.ix_(order, order)], squared_distances(*others))
        < LOOSE * plain.max()
    )


def test_an_indefinite_kernel_is_clipped_and_its_share_told():
    indefinite = correlation_kernel(X, n_angles=1)
    values, U = np.linalg.eigh(indefinite)
    assert values[0] < -1e-3
    positive = (U * np.maximum(values, 0)) @ U.T
    result = gda(indefinite, LABELS)
    clipped = gda(positive, LABELS)
    assert (
        error(result.negative_share, -values[values < 0].sum() / np.abs(values).sum())
        < TIGHT
    )
    assert error(result.values / clipped.values, 1) < LOOSE
    here = indefinite @ result.coefficients
    there = positive @ clipped.coefficients
    assert error(squared_distances(here, here), squared_distances(there, there)) < LOOSE


@pytest.mark.filterwarnings("error")
def test_gda_of_float32_stays_float32():
    result = gda(K.astype(np.float32), LABELS)
    assert result.coefficients.dtype == np.float32
    assert result.negative_share == 0
    assert error(result.values / gda(K, LABELS).values, 1) < 1e-3


def test_gda_of_one_set_a_class_and_of_repeated_sets():
    for some, labels in [
        (X[:3], [0, 1, 2]),
        (X[[0, 0, 1, 1, 2, 2]], [0, 0, 1, 1, 2, 2]),
    ]:
        gram = gs.projection_kernel(some)
        result = gda(gram, labels)
        coordinates = gram @ result.coefficients
        apart = squared_distances(coordinates, coordinates)
        same = np.equal.outer(labels, labels)
        assert apart[same].max() < LOOSE * apart[~same].min()


@pytest.mark.parametrize(
    "gram",
    [np.full((6, 6), 3.0), gs.projection_kernel(X[[0, 1, 2] * 2])],
    ids=["p = d", "the same sets in each class"],
)
def test_classes_whose_means_coincide_are_refused(gram):
    with pytest.raises(
        ValueError, match="labels must be of classes whose means differ"
    ):
        gda(gram, [0, 0, 0, 1, 1, 1])


# --------------------------------------------------------------------------------- GGDA


@pytest.mark.parametrize("beta", [1.0, 0.2, 0])
@rarely
@given(seed=seeds)
def test_ggda_maximises_its_trace_ratio_on_embedded_points(beta, seed):
    """Equal to the eigenproblem of vec(X X^T)."""
    X, LABELS = labelled_subspaces(seed=seed)
    K = gs.projection_kernel(X)
    K_Q = gs.projection_kernel(Q, X)
    W_b = 1.0 * np.not_equal.outer(LABELS, LABELS)
    W_w = 1 - W_b - np.eye(24)
    Z = vectors(X)
    ridge = 1e-2 * np.square(Z @ Z.T).sum() / 24
    left, s, basis = np.linalg.svd(Z, full_matrices=False)
    left = left[:, s > 1e-8 * s[0]]
    basis = basis[s > 1e-8 * s[0]]
    Z = Z @ basis.T
    up = Z.T @ (np.diag(W_b.sum(axis=1)) - W_b + beta * W_w) @ Z
    down = Z.T @ np.diag(W_w.sum(axis=1)) @ Z + ridge * np.linalg.inv(Z.T @ Z)
    values, W = scipy.linalg.eigh(up, down)
    result = ggda(K, LABELS, beta=beta, reg=1e-2)
    assert error(result.values / values[::-1][:2], 1) < LOOSE
    ours = squared_distances(K_Q @ result.coefficients, K @ result.coefficients)
    expected = squared_distances(vectors(Q) @ basis.T @ W[:, -2:], Z @ W[:, -2:])
    assert error(ours, expected) < LOOSE * expected.max()


def test_no_other_coordinates_have_a_larger_trace_ratio():
    result = ggda(K, LABELS, reg=1e-2)
    same = np.equal.outer(LABELS, LABELS)
    up = K @ (np.diag((~same).sum(axis=1)) - ~same + same - np.eye(24)) @ K
    down = 7 * K @ K + 1e-2 * np.trace(K @ K) / 24 * np.eye(24)

    def ratio(A):
        return np.trace(np.linalg.solve(A.T @ down @ A, A.T @ up @ A))

    best = ratio(result.coefficients)
    assert error(best / result.values.sum(), 1) < LOOSE
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 10):
        step = (
            size
            * rng.standard_normal(result.coefficients.shape)
            * result.coefficients.std()
        )
        assert ratio(result.coefficients + step) < best


@pytest.mark.parametrize("scale", [7.0, 1e-200, 1e200])
def test_ggda_ignores_the_basis_the_order_and_the_scale(scale):
    order = np.random.default_rng(0).permutation(24)
    other = gs.projection_kernel(turned(X))[np.ix_(order, order)]
    result = ggda(K, LABELS)
    again = ggda(scale * other, LABELS[order])
    plain = squared_distances(K @ result.coefficients, K @ result.coefficients)
    others = scale * other @ again.coefficients
    assert (
        error(plain[np.ix_(order, order)], squared_distances(others, others))
        < LOOSE * plain.max()
    )


def test_ggda_clips_an_indefinite_mixture():
    mixture = 0.1 * K + 0.9 * correlation_kernel(X, n_angles=1)
    values, U = np.linalg.eigh(mixture)
    positive = (U * np.maximum(values, 0)) @ U.T
    result = ggda(mixture, LABELS)
    clipped = ggda(positive, LABELS)
    assert result.negative_share > 1e-4 > clipped.negative_share
    here = mixture @ result.coefficients
    there = positive @ clipped.coefficients
    assert error(squared_distances(here, here), squared_distances(there, there)) < LOOSE


def test_coordinates_do_not_see_negative_eigenvectors():
    """Even if more are asked for than the positive part has."""
    mixture = correlation_kernel(X, n_angles=1)
    values, U = np.linalg.eigh(mixture)
    positive = (U * np.maximum(values, 0)) @ U.T
    A = ggda(mixture, np.arange(24)).coefficients
    assert error(mixture @ A, positive @ A) < LOOSE * np.abs(mixture @ A).max()


@pytest.mark.parametrize(
    "sets, labels",
    [
        (X[:3], [0, 1, 2]),
        (X[[0, 0, 1, 1, 2, 2]], [0, 0, 1, 1, 2, 2]),
        (X[:5], [0, 0, 0, 0, 1]),
        (np.stack([np.eye(2)] * 4), [0, 0, 1, 1]),
    ],
    ids=["one set a class", "repeated", "one set in a class", "p = d"],
)
def test_ggda_of_degenerate_sets(sets, labels):
    result = ggda(gs.projection_kernel(sets), labels)
    assert np.isfinite(result.coefficients).all()
    assert (result.values > -LOOSE).all()


# -------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    "call, error_type, message",
    [
        (
            lambda: correlation_kernel(X, Q, 3),
            ValueError,
            r"n_angles must be in 1\.\.2, got 3",
        ),
        (
            lambda: correlation_kernel(X, Q, 0),
            ValueError,
            r"n_angles must be in 1\.\.2, got 0",
        ),
        (
            lambda: correlation_kernel(X, Q[:0]),
            ValueError,
            "D must hold at least one subspace",
        ),
        (
            lambda: correlation_kernel(X, Q[:, :6]),
            ValueError,
            "D must have orthonormal columns",
        ),
        (
            lambda: binet_cauchy_kernel(X, Q[:, :, :1]),
            ValueError,
            "X and D must have the same p, got 2 and 1",
        ),
        (
            lambda: difference_subspace(X, 0),
            ValueError,
            r"keep must be in \(0, 1\], got",
        ),
        (
            lambda: difference_subspace(X, 1.5),
            ValueError,
            r"keep must be in \(0, 1\], got 1.5",
        ),
        (
            lambda: dcc(X, [0] * 24),
            ValueError,
            "labels must hold at least two classes, got one class: .*0",
        ),
        (
            lambda: dcc(X, LABELS, dimension=2),
            ValueError,
            r"dimension must be in 3\.\.7, got 2",
        ),
        (
            lambda: dcc(X, LABELS, reg=0),
            ValueError,
            r"reg must be in \[1e-14, 1e\+14\]",
        ),
        (
            lambda: dcc(X, LABELS, n_iter=-1),
            ValueError,
            "n_iter must be >= 0, got -1",
        ),
        (
            lambda: ggda(K, [0] * 24),
            ValueError,
            "labels must hold at least two classes, got one class: .*0",
        ),
        (
            lambda: ggda(K, LABELS, beta=-1),
            ValueError,
            r"beta must be in \[0, 1e\+14\], got -1",
        ),
        (
            lambda: gda(K, [0] * 24),
            ValueError,
            "labels must hold at least two classes, got one class: .*0",
        ),
        (lambda: gda(K, LABELS[:9]), ValueError, "labels must have length 24"),
        (
            lambda: gda(K_Q, LABELS),
            ValueError,
            r"K must be a square matrix .* got shape \(9, 24\)",
        ),
        (
            lambda: gda(K + np.tri(24), LABELS),
            ValueError,
            "K must be symmetric, got entries that differ by 1 across",
        ),
        (
            lambda: gda(0 * K, LABELS),
            ValueError,
            "K must have squared norms on its diagonal",
        ),
        (lambda: gda(np.nan * K, LABELS), ValueError, "K must be finite, got nan"),
        (
            lambda: gda(K, LABELS, reg=0),
            ValueError,
            r"reg must be in \[1e-14, 1e\+14\]",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(call, error_type, message):
    with pytest.raises(error_type, match=message):
        call()


def test_nothing_warns_where_nothing_is_wrong():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gda(K, LABELS)
        difference_subspace(X, 0.5)
