"""The inner product whitened within classes: against dense projectors, and its laws."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import DataConversionWarning
from sklearn.pipeline import make_pipeline

import grassmann_sc as core
from grassmann_sc import discriminative, subspaces
from grassmann_sc.baselines.estimators import DCC, GDA, ISC
from grassmann_sc.estimators import (
    CodingClassifier,
    DiscriminativeDictionary,
    NearestSubspace,
    ProjectionKernel,
)
from oracles import (
    LOOSE,
    TIGHT,
    dtypes,
    error,
    noisy_image_sets,
    rounding,
    seeds,
    vectors,
)

SHRINKAGES = st.sampled_from([0.001, 0.01, 0.1, 1.0, 10.0])


def dense_whitening(D, labels, shrinkage, Q):
    """K' of samples D, and of queries Q with them, by the inverse of a d^2 x d^2 matrix."""
    D = vectors(D.astype(np.float64))
    Q = vectors(Q.astype(np.float64))
    scatter = np.zeros((D.shape[1],) * 2)
    for c in np.unique(labels):
        apart = D[labels == c] - D[labels == c].mean(axis=0)
        scatter += apart.T @ apart
    rho = shrinkage * np.trace(scatter @ scatter) / np.trace(scatter)
    inverse = np.linalg.inv(np.eye(len(scatter)) + scatter / rho)
    length, of_query = (
        np.sqrt(np.einsum("ia,ab,ib->i", A, inverse, A)) for A in (D, Q)
    )
    return (
        D @ inverse @ D.T / np.outer(length, length),
        Q @ inverse @ D.T / np.outer(of_query, length),
    )


def whitened(D, labels, shrinkage, Q):
    """The same by Whitening."""
    whitening = discriminative.Whitening(core.projection_kernel(D), labels, shrinkage)
    K_qd = core.projection_kernel(Q, D)
    return whitening.K_dd, whitening.transform(K_qd, core.squared_norm(Q))


@st.composite
def labelled_samples(draw, dtype=np.float64):
    """(D, labels, Q): samples of one to four classes, one repeated, one of them asked."""
    rng = np.random.default_rng(draw(seeds))
    d = draw(st.integers(2, 6))
    p = draw(st.integers(1, d - 1))
    n = draw(st.integers(6, 20))
    D = core.orthonormalize(rng.standard_normal((n, d, p)))
    D[-1] = D[draw(st.integers(0, n - 1))]
    Q = core.orthonormalize(rng.standard_normal((3, d, p)))
    Q[0] = D[0]
    labels = rng.permutation(np.arange(n) % draw(st.integers(1, 4)))
    return D.astype(dtype), labels, Q.astype(dtype)


@given(st.data(), dtypes, SHRINKAGES)
def test_whitening_is_that_of_dense_projectors(data, dtype, shrinkage):
    D, labels, Q = data.draw(labelled_samples(dtype))
    expected = dense_whitening(D, labels, shrinkage, Q)
    tol = rounding(dtype, TIGHT if shrinkage >= 0.01 else 10 * TIGHT)
    for K, dense in zip(whitened(D, labels, shrinkage, Q), expected):
        assert K.dtype == dtype and error(K, dense) < tol


@given(labelled_samples(), SHRINKAGES, st.sampled_from([1e-200, 1e-9, 3.0, 1e200]))
def test_whitened_products_are_those_of_unit_vectors(problem, shrinkage, scale):
    """Symmetric to the bit, positive semidefinite with those of a query, in any unit."""
    D, labels, Q = problem
    K = core.projection_kernel(D)
    K_qd = core.projection_kernel(Q, D)
    whitening = discriminative.Whitening(scale * K, labels, shrinkage)
    K_dd = whitening.K_dd
    products = whitening.transform(scale * K_qd, scale * D.shape[2])
    assert np.array_equal(K_dd, K_dd.T) and (K_dd.diagonal() == 1).all()
    for row in products:
        both = np.block([[K_dd, row[:, None]], [row[None], np.ones((1, 1))]])
        assert np.linalg.eigvalsh(both)[0] > -LOOSE
    alone, of_queries = whitened(D, labels, shrinkage, Q)
    assert error(alone, K_dd) < LOOSE and error(of_queries, products) < LOOSE


@given(labelled_samples(), SHRINKAGES, seeds)
def test_whitening_ignores_bases_order_names_of_classes_and_repetition(
    problem, shrinkage, seed
):
    D, labels, Q = problem
    K_dd, K_qd = whitened(D, labels, shrinkage, Q)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((len(D), D.shape[2], D.shape[2])))[0]
    other = whitened(D @ turn, labels, shrinkage, Q)
    assert error(other[0], K_dd) < LOOSE and error(other[1], K_qd) < LOOSE
    order = rng.permutation(len(D))
    names = np.array(["dog", "cat", "bee", "ape"])[labels]
    other = whitened(D[order], names[order], shrinkage, Q)
    assert error(other[0], K_dd[np.ix_(order, order)]) < LOOSE
    assert error(other[1], K_qd[:, order]) < LOOSE
    twice = whitened(np.tile(D, (2, 1, 1)), np.tile(labels, 2), shrinkage, Q)
    assert error(twice[0], np.tile(K_dd, (2, 2))) < LOOSE
    assert error(twice[1], np.tile(K_qd, 2)) < LOOSE


@given(labelled_samples(), SHRINKAGES)
def test_a_query_alone_is_as_in_a_batch_and_a_sample_as_itself(problem, shrinkage):
    D, labels, Q = problem
    whitening = discriminative.Whitening(core.projection_kernel(D), labels, shrinkage)
    K_qd = core.projection_kernel(Q, D)
    batch = whitening.transform(K_qd, np.full(3, D.shape[2]))
    for i in range(3):
        single = whitening.transform(K_qd[i : i + 1], D.shape[2])
        assert error(single[0], batch[i]) < LOOSE
    assert error(batch[0], whitening.K_dd[0]) < LOOSE
    assert whitening.transform(K_qd[:0], 2).shape == (0, len(D))


def test_infinite_shrinkage_only_scales():
    """To the bit, and large shrinkage nearly so."""
    X = core.random_subspaces(9, 5, 2, rng=0)
    K = 4 * core.projection_kernel(X)
    labels = np.arange(9) % 2
    plain = discriminative.Whitening(K, labels, math.inf)
    length = np.sqrt(K.diagonal())
    scaled = K / np.outer(length, length)
    np.fill_diagonal(scaled, 1)
    assert np.array_equal(plain.K_dd, scaled) and plain.rho == math.inf
    assert error(plain.transform(K, 8), scaled) < TIGHT
    nearly = discriminative.Whitening(K, labels, 1e12)
    assert 0 < error(nearly.K_dd, scaled) < 1e-10


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_where_no_sample_differs_from_its_mean_nothing_is_whitened(dtype):
    """One sample a class, or repeated ones whose products differ by rounding."""
    X = core.random_subspaces(4, 6, 2, rng=0).astype(dtype)
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 2, 2)))[0]
    twice = np.concatenate([X, X @ turn.astype(dtype)])
    for D, labels in ((X, range(4)), (twice, [*range(4)] * 2)):
        K = core.projection_kernel(D)
        with pytest.warns(UserWarning, match="nothing is whitened: no sample differs"):
            whitening = discriminative.Whitening(K, labels, 0.1)
        assert whitening.rho == math.inf
        assert error(whitening.K_dd, K / 2) < rounding(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        discriminative.Whitening(K, labels, math.inf)
        discriminative.Whitening(core.projection_kernel(X), [0, 0, 1, 1], 0.1)


def test_directions_of_scatter_count_less():
    """(1 + s / rho)^-1 by hand: x and y of one class differ along the first axis."""
    K = np.array([[2.0, 0], [0, 1]])  # x = (1, 1), y = (-1, 0) + ..., of mean m
    points = np.array([[1.0, 1], [-1, 1]])
    K = points @ points.T
    # the scatter is diag(2, 0) and rho = 0.5 * 2: the first axis counts 1 / 3
    whitening = discriminative.Whitening(K, ["a", "a"], 0.5)
    assert whitening.rho == pytest.approx(1)
    assert whitening.K_dd[0, 1] == pytest.approx((1 - 1 / 3) / (1 + 1 / 3))
    along = whitening.transform(np.array([[1.0, -1]]), 1)  # (1, 0)
    assert along == pytest.approx(np.array([[1, -1]]) / 3 / np.sqrt(4 / 9))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shrinkage", [1e-3, 1e-12])
def test_what_whitening_takes_almost_whole_stays_within_bounds(dtype, shrinkage):
    """Samples of one line, with rounding: no entry is above 1, nothing is NaN."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((300, 1)) * np.array([1.0, 1e-5, 0])
    points += np.array([0, 0, 1e-4])
    points = points.astype(dtype)
    K = points @ points.T
    whitening = discriminative.Whitening(K, np.arange(300) % 2, shrinkage)
    Q = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 0]], dtype)
    products = whitening.transform(Q @ points.T, np.square(Q).sum(axis=1))
    for K in (whitening.K_dd, products):
        assert K.dtype == dtype and np.abs(K).max() <= 1 and np.isfinite(K).all()
    assert not products[2].any()
    least = np.linalg.eigvalsh(whitening.K_dd.astype(np.float64))[0]
    # K, rounded to 1e-16 or 6e-8, holds the 1e-8 that is left
    assert least > (-0.05 if dtype == np.float32 else -1e-5)


def test_whitening_names_what_is_wrong():
    K = core.projection_kernel(core.random_subspaces(4, 6, 2, rng=0))
    y = [0, 0, 1, 1]
    for shrinkage in (0, -1.0, math.nan, -math.inf, True, "small", [1.0, 2.0]):
        with pytest.raises((ValueError, TypeError), match="shrinkage must"):
            discriminative.Whitening(K, y, shrinkage)
    with pytest.raises(ValueError, match="labels must have length 4, .* got 3"):
        discriminative.Whitening(K, y[:3], 0.1)
    with pytest.raises(ValueError, match="K_dd must be symmetric"):
        discriminative.Whitening(K + np.triu(K, 1), y, 0.1)
    indefinite = np.eye(4)
    indefinite[[0, 1], [1, 0]] = 3
    with pytest.raises(
        ValueError, match="K_dd must be positive semidefinite, .* eigenvalue of -2"
    ):
        discriminative.Whitening(indefinite, [0, 1, 0, 1], 0.01)
    whitening = discriminative.Whitening(K, y, 0.1)
    with pytest.raises(ValueError, match=r"K_xd must have shape \(n, 4\), one column"):
        whitening.transform(K[:, :3], 2)
    with pytest.raises(ValueError, match="K_xd must be finite"):
        whitening.transform(np.full((1, 4), np.nan), 2)
    for norm2 in (-1, [2, 2], [[2]]):
        with pytest.raises(ValueError, match="norm2 must be a number >= 0 or 4 of"):
            whitening.transform(K, norm2)


@pytest.mark.parametrize("atoms", [np.float64, np.float32])
@pytest.mark.parametrize("queries", [np.float64, np.float32])
def test_grams_are_what_functions_that_code_take(atoms, queries):
    """Of one type, with norm2 = 1, and of no query too."""
    X = core.random_subspaces(8, 6, 2, rng=0)
    K = core.projection_kernel(X)
    whitening = discriminative.Whitening(K[:6, :6].astype(atoms), [0, 1] * 3, 0.1)
    grams = whitening.grams(K[6:, :6].astype(queries), 2)
    dtype = np.result_type(atoms, queries)
    assert grams[0].dtype == grams[1].dtype == dtype
    assert grams[2].tolist() == [1, 1] and len(whitening.grams(K[:0, :6], 2)[2]) == 0
    assert error(grams[0], whitening.K_dd) == 0
    assert np.isfinite(core.sparse_codes(*grams[:2], 0.1, norm2=grams[2])).all()


def test_whitening_keeps_what_it_is_given():
    K = core.projection_kernel(core.random_subspaces(6, 6, 2, rng=0))
    K.flags.writeable = False
    y = np.arange(6) % 2
    whitening = discriminative.Whitening(K, y, 0.1)
    strided = np.asfortranarray(np.repeat(K, 2, axis=1))[:, ::2]
    assert np.array_equal(
        whitening.transform(K, 2), whitening.transform(K.astype(">f8"), 2)
    )
    assert error(whitening.transform(strided, 2), whitening.transform(K, 2)) < TIGHT
    assert whitening.transform(K.astype(np.float32), 2).dtype == np.float64


# --------------------------------------------------------------------------- estimators

SETS, Y = noisy_image_sets(90)
X = subspaces.from_sets(SETS, 2)
D = X[:60]
Q = X[60:]
LABELS = Y[:60]
K_DD = core.projection_kernel(D)
K_QD = core.projection_kernel(Q, D)


@pytest.mark.parametrize("coding", ["sparse", "local"])
@pytest.mark.parametrize("weighted", [False, True])
def test_subspaces_inner_products_and_a_pipeline_are_whitened_alike(coding, weighted):
    points = subspaces.from_sets(SETS, None, spectrum=0.5) if weighted else X
    atoms = points[:60]
    queries = points[60:]
    grams = core.projection_kernel(atoms), core.projection_kernel(queries, atoms)
    how = dict(coding=coding, lam=0.05, n_neighbors=6)
    model = CodingClassifier(**how, shrinkage=0.1).fit(atoms, LABELS)
    other = CodingClassifier(**how, shrinkage=0.1, kernel="precomputed")
    other.fit(grams[0], LABELS)
    by_hand = discriminative.Whitening(grams[0], LABELS, 0.1)
    K_qd = by_hand.transform(grams[1], core.squared_norm(queries))
    plain = CodingClassifier(**how, kernel="precomputed").fit(by_hand.K_dd, LABELS)
    kernel = ProjectionKernel(shrinkage=0.1)
    assert error(kernel.fit_transform(atoms, LABELS), by_hand.K_dd) < TIGHT
    assert error(kernel.transform(queries), K_qd) < TIGHT
    pipeline = make_pipeline(kernel, plain).fit(atoms, LABELS)
    scores = model.class_scores(queries)
    assert error(other.class_scores(grams[1]), scores) < LOOSE
    assert error(plain.class_scores(K_qd), scores) < LOOSE
    assert error(pipeline.decision_function(queries), scores) < LOOSE
    assert model.predict(queries).tolist() == other.predict(grams[1]).tolist()
    unwhitened = CodingClassifier(**how).fit(atoms, LABELS)
    assert error(unwhitened.transform(queries), model.transform(queries)) > 0.01
    assert model.temperature_ == pytest.approx(other.temperature_, rel=1e-6)
    assert error(model.explain(queries).values, other.explain(grams[1]).values) < LOOSE


@pytest.mark.parametrize("metric", ["chordal", "projection"])
def test_nearest_subspaces_are_nearest_in_the_whitened_inner_product(metric):
    model = NearestSubspace(metric, shrinkage=0.1).fit(D, LABELS)
    K = ProjectionKernel(shrinkage=0.1).fit(D, LABELS).transform(Q)
    distances = np.sqrt((2 - 2 * K) / (2 if metric == "projection" else 1))
    assert error(model.distances(Q), distances) < LOOSE
    assert np.array_equal(model.predict(Q), LABELS[K.argmax(axis=1)])
    assert error(NearestSubspace(metric).fit(D, LABELS).distances(Q), distances) > 0.1
    assert error(model.distances(D).diagonal(), 0) < 1e-6
    with pytest.raises(ValueError, match="shrinkage must be None with metric='geo"):
        NearestSubspace("geodesic", shrinkage=0.1).fit(D, LABELS)


def test_whitening_helps_where_classes_vary_alike():
    """Accuracy of nearest subspaces: all classes vary along the same directions."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((6, 12, 2))
    common = rng.standard_normal((4, 12, 2))
    y = np.arange(180) % 6
    vary = np.einsum("nk,kdp->ndp", rng.standard_normal((180, 4)), common)
    points = core.orthonormalize(centres[y] + 1.2 * vary)
    accuracies = [
        NearestSubspace(shrinkage=shrinkage)
        .fit(points[:90], y[:90])
        .score(points[90:], y[90:])
        for shrinkage in (None, 0.1)
    ]
    assert accuracies[1] > accuracies[0] + 0.1


def test_the_kernel_is_whitened_by_labels_as_classifiers_take_them():
    with pytest.raises(ValueError, match=r"y must be one label a subspace.*got None"):
        ProjectionKernel(shrinkage=0.1).fit(D)
    alike = ProjectionKernel(shrinkage=0.1).fit_transform(D, LABELS)
    with pytest.warns(DataConversionWarning):
        column = ProjectionKernel(shrinkage=0.1).fit_transform(D, LABELS[:, None])
    assert np.array_equal(alike, column)


@pytest.mark.parametrize(
    "labels", [[1, "1", 2, "2"], [2**63, 2**63 + 1, 5, 6], [b"a", "a", "b", b"b"]]
)
def test_labels_that_an_array_would_change_are_refused(labels):
    for model in (CodingClassifier(), NearestSubspace()):
        with pytest.raises(
            ValueError, match="y must hold labels of one type, which an array"
        ):
            model.fit(D[:4], labels)
    model.fit(D[:4], (1, 2.0, 1, 2))
    assert model.classes_.tolist() == [1, 2]


@pytest.mark.parametrize(
    "first, second",
    [
        ([True, False, True, False], [1, 0, 2, 3]),
        ([b"a", b"b", b"a", b"b"], [1, 2, 3, 4]),
        ([2**62, 2**62 + 1, 1, 2], np.array([2**62 + 2, 5, 6, 7], np.uint64)),
    ],
)
def test_batches_that_would_change_labels_are_refused(first, second):
    model = CodingClassifier().fit(D[:4], first)
    with pytest.raises(ValueError, match="y must hold labels of one type with those"):
        model.partial_fit(D[4:8], second)
    assert model.classes_.tolist() == sorted({*first}) and len(model.index_) == 4


@pytest.mark.parametrize(
    "model, bad",
    [
        (CodingClassifier(), {"shrinkage": -1}),
        (NearestSubspace(), {"n_neighbors": 99}),
        (GDA(), {"reg": -1}),
        (DCC(), {"dimension": 99}),
        (ISC(), {"lam": -1}),
        (DiscriminativeDictionary(2, random_state=0), {"atoms_per_class": {0: 1}}),
    ],
    ids=repr,
)
def test_a_fit_that_fails_leaves_what_was_learned_before(model, bad):
    """Labels of the new samples beside what was learned of the old ones would be wrong."""
    y = LABELS[:30]
    model.fit(D[:30], y)
    usual = model.get_params()
    answers = model.predict(D)
    order = np.random.default_rng(0).permutation(30)
    with pytest.raises(ValueError):
        model.set_params(**bad).fit(D[order], y[order])
    assert np.array_equal(model.set_params(**usual).predict(D), answers)


def test_p_values_compare_queries_of_the_norm_of_the_atoms_alone():
    model = CodingClassifier().fit(D[:30], LABELS[:30])
    other = core.random_subspaces(4, D.shape[1], D.shape[2] + 1, rng=0)
    assert len(model.predict(other)) == 4
    with pytest.raises(ValueError, match="subspaces of the kind of the atoms, whose"):
        model.p_values(other)


def test_batches_keep_the_type_of_labels():
    model = CodingClassifier().fit(D[:30], [0, 1, 2] * 10)
    model.partial_fit(D[:0], [])
    assert model.classes_.dtype.kind == "i" and len(model.index_) == 30
    with pytest.raises(ValueError, match="labels of one type .* as .*0.*, got .*cat"):
        model.partial_fit(D[:2], ["cat", "dog"])
    with pytest.raises(ValueError, match="y must have no missing labels, got nan"):
        model.partial_fit(D[:2], [np.nan, 1])
    assert model.partial_fit(D[:2], [4, 1]).classes_.tolist() == [0, 1, 2, 4]


def test_batches_are_whitened_with_what_came_before():
    model = CodingClassifier(shrinkage=0.1).partial_fit(D[:30], LABELS[:30])
    model.partial_fit(D[30:], LABELS[30:])
    whole = CodingClassifier(shrinkage=0.1).fit(D, LABELS)
    assert np.array_equal(model.class_scores(Q), whole.class_scores(Q))
    assert model.temperature_ == whole.temperature_


def test_a_kernel_is_whitened_by_labels_alone():
    for estimator in (CodingClassifier, NearestSubspace, ProjectionKernel):
        with pytest.raises(ValueError, match="shrinkage must be positive, got 0"):
            estimator(shrinkage=0).fit(D, LABELS)
