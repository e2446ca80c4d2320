"""Estimators equal the functions that they are named after."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import grassmann_sc as core
from grassmann_sc import (
    discriminative,
    estimators,
    kernels,
    learn,
    subspaces,
)
from grassmann_sc.baselines import tangent
from grassmann_sc.baselines.estimators import TangentDictionary
from grassmann_sc.large import streams
from oracles import LOOSE, TIGHT, error, noisy_image_sets

SETS, Y = noisy_image_sets()
X = subspaces.from_sets(SETS, 2)
TRAIN = slice(0, 40)
TEST = slice(40, 60)
D = X[TRAIN]
Q = X[TEST]
LABELS = Y[TRAIN]
K_DD = core.projection_kernel(D)
K_QD = core.projection_kernel(Q, D)
MEDIAN_GAMMA = kernels.median_gamma(SETS[TRAIN])


# ------------------------------------------------------------------ frames to subspaces


@pytest.mark.parametrize("center", [False, True])
def test_image_sets_become_the_subspaces_of_from_sets(center):
    estimator = estimators.ImageSetSubspaces(2, center=center)
    bases = subspaces.from_sets(SETS, 2, center=center)
    assert np.array_equal(estimator.fit(SETS[:5]).transform(SETS), bases)
    images = np.random.default_rng(0).integers(0, 255, (6, 5, 4, 3), dtype=np.uint8)
    bases = subspaces.from_sets(images, 2, center=center)
    assert np.array_equal(estimator.fit_transform(images), bases)


def test_fitting_and_transforming_reads_each_set_once(monkeypatch):
    made = subspaces.subspaces_of
    read = []

    def count(sets, *args, **options):
        read.append(len(sets))
        return made(sets, *args, **options)

    monkeypatch.setattr(subspaces, "subspaces_of", count)
    estimators.ImageSetSubspaces(2).fit_transform(SETS)
    assert read == [len(SETS)]


LIFTS = [
    (estimators.KernelLift(gamma=0.02, p=2), kernels.rbf(0.02)),
    (estimators.KernelLift(p=2), kernels.rbf(MEDIAN_GAMMA)),
    (
        estimators.KernelLift(gamma=2.0, p=2, gamma_scale="median"),
        kernels.rbf(2 * MEDIAN_GAMMA),
    ),
    (
        estimators.KernelLift("polynomial", p=2, degree=3, coef0=0.5),
        kernels.polynomial(3, 0.5),
    ),
    (estimators.KernelLift("linear", p=2), kernels.linear()),
    (estimators.KernelLift(kernels.rbf(0.1), p=2), kernels.rbf(0.1)),
]


@pytest.mark.parametrize("lift, kernel", LIFTS, ids=str)
def test_kernel_lift_and_coding_classifier_are_kernel_coding(lift, kernel):
    fitted = make_pipeline(lift, estimators.CodingClassifier()).fit(SETS[TRAIN], LABELS)
    codes = kernels.kgsc(SETS[TEST], SETS[TRAIN], 0.1, kernel=kernel, p=2)
    assert error(fitted.transform(SETS[TEST]), codes) <= 1e4 * LOOSE
    local = make_pipeline(lift, estimators.CodingClassifier("local")).fit(
        SETS[TRAIN], LABELS
    )
    codes = kernels.kglc(SETS[TEST], SETS[TRAIN], 5, kernel=kernel, p=2)
    assert error(local.transform(SETS[TEST]), codes) <= 1e4 * LOOSE
    assert fitted.score(SETS[TEST], Y[TEST]) > 0.8


# -------------------------------------------------------------------------- classifiers


@pytest.mark.parametrize(
    "metric, distance",
    [
        ("chordal", core.chordal_distance(Q, D)),
        ("geodesic", core.geodesic_distance(Q, D)),
        ("projection", np.sqrt(2 - K_QD)),
    ],
)
def test_nearest_subspace_votes_as_k_nearest_neighbours(metric, distance):
    nearest = estimators.NearestSubspace(metric).fit(D, LABELS)
    assert np.array_equal(nearest.distances(Q), distance)
    assert np.array_equal(nearest.predict(Q), LABELS[distance.argmin(axis=1)])
    for k in range(1, 8):
        ours = estimators.NearestSubspace(metric, k).fit(D, LABELS)
        twin = KNeighborsClassifier(k, metric="precomputed").fit(
            np.zeros((40, 40)), LABELS
        )
        assert np.array_equal(ours.predict(Q), twin.predict(distance))
        assert error(ours.predict_proba(Q), twin.predict_proba(distance)) <= TIGHT
        for a, b in zip(ours.kneighbors(Q), twin.kneighbors(distance)):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("metric", ["chordal", "geodesic"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_one_subspace_in_several_bases_the_first_is_nearest(metric, dtype):
    rng = np.random.default_rng(0)
    turns = np.linalg.qr(rng.standard_normal((3, 1, 2, 2)))[0]
    first, second, queries = (D[:20] @ turns).astype(dtype)
    atoms = np.concatenate([first, second])
    nearest = estimators.NearestSubspace(metric).fit(atoms, np.arange(40))
    assert np.array_equal(nearest.predict(queries), np.arange(20))


@pytest.mark.parametrize(
    "metric, angles",
    [
        ("chordal", [2e-9, 1e-9, 3e-9]),
        ("geodesic", [2e-9, 1e-9, 3e-9]),
        ("chordal", np.pi / 2 - np.array([1e-9, 2e-9, 0])),
        ("projection", np.pi / 2 - np.array([1e-9, 2e-9, 0])),
    ],
)
def test_the_nearest_is_found_where_distances_or_inner_products_are_equal_to_rounding(
    metric, angles
):
    """Lines at tiny angles to the query, whose squared cosines are 1, or at right
    angles but for as much, whose distances are the square root of 2.
    """
    lines = np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, :, None]
    if angles[0] > 1:
        lines[:, 0, 0] = np.pi / 2 - np.array(angles)
    fitted = estimators.NearestSubspace(metric).fit(lines, ["b", "a", "c"])
    assert fitted.predict(np.eye(2)[None, :, :1]).tolist() == ["a"]


@pytest.mark.parametrize(
    "options, code, on_grams, coding, rule",
    [
        ({"lam": 0.1}, core.gsc, core.sparse_codes, {"lam": 0.1}, "residual"),
        (
            {"coding": "local", "n_neighbors": 6},
            core.glc,
            core.locality_codes,
            {"n_neighbors": 6},
            "sum",
        ),
    ],
)
def test_coding_classifier_equals_the_functions(options, code, on_grams, coding, rule):
    estimator = estimators.CodingClassifier(**options).fit(D, LABELS)
    codes = on_grams(K_DD, K_QD, norm2=2, **coding)
    scores, classes = core.class_scores(codes, K_DD, K_QD, LABELS, norm2=2, rule=rule)
    assert np.array_equal(estimator.transform(Q), codes)
    assert np.array_equal(codes, code(Q, D, **coding))
    assert np.array_equal(estimator.decision_function(Q), scores)
    assert list(estimator.classes_) == list(classes)
    assert np.array_equal(estimator.predict(Q), core.classify(Q, D, LABELS, **coding))
    by_class = [codes[:, LABELS == c] for c in classes]
    residual, _ = core.class_scores(codes, K_DD, K_QD, LABELS, norm2=2)
    estimator.set_params(rule="residual").fit(D, LABELS)
    assert np.array_equal(estimator.decision_function(Q), residual)
    for rule, h in [("sum", np.sum), ("max", np.max)]:
        scores = np.transpose([h(part, axis=1) for part in by_class])
        estimator.set_params(rule=rule).fit(D, LABELS)
        np.testing.assert_allclose(
            estimator.decision_function(Q), scores, rtol=1e-12, atol=0
        )
        assert np.array_equal(estimator.predict(Q), classes[scores.argmax(axis=1)])


def test_lam_is_taken_by_lam_max_of_each_query():
    codes = (
        estimators.CodingClassifier(lam=0.2, lam_scale="max")
        .fit(D, LABELS)
        .transform(Q)
    )
    for i, lam in enumerate(0.2 * core.lam_max(K_QD)):
        assert error(codes[i], core.gsc(Q[i : i + 1], D, lam)[0]) <= LOOSE
    assert (
        not estimators.CodingClassifier(lam=1, lam_scale="max")
        .fit(D, LABELS)
        .transform(Q)
        .any()
    )


def test_decision_of_two_classes_is_positive_for_the_second():
    two = LABELS != "bee"
    estimator = estimators.CodingClassifier().fit(D[two], LABELS[two])
    decision = estimator.decision_function(Q)
    assert decision.shape == (20,)
    assert np.array_equal(
        estimator.classes_[(decision > 0).astype(int)], estimator.predict(Q)
    )
    assert np.array_equal(
        decision.argsort(), estimator.predict_proba(Q)[:, 1].argsort()
    )


# ---------------------------------------------------------------- dictionary and kernel


@pytest.mark.parametrize(
    "options, coding",
    [
        ({"lam": 0.1}, {"lam": 0.1}),
        ({"coding": "local", "n_neighbors": 3}, {"n_neighbors": 3}),
        ({"init": "random"}, {"lam": 0.1, "init": "random"}),
        ({"init": D[:5]}, {"lam": 0.1, "init": D[:5]}),
    ],
    ids=["sparse", "local", "random", "given"],
)
def test_dictionary_equals_gdl(options, coding):
    estimator = estimators.GrassmannDictionary(5, max_iter=4, random_state=3, **options)
    codes = estimator.fit_transform(D)
    atoms, learned, costs = learn.gdl(D, 5, **coding, n_iter=4, rng=3)
    assert np.array_equal(estimator.components_, atoms)
    assert np.array_equal(codes, learned)
    assert np.array_equal(estimator.costs_, costs)
    assert 1 <= estimator.n_iter_ <= 4
    assert len(costs) == 1 + 2 * estimator.n_iter_
    code = core.glc(Q, atoms, 3) if "n_neighbors" in coding else core.gsc(Q, atoms, 0.1)
    assert np.array_equal(estimator.transform(Q), code)
    assert error(estimator.transform(D), codes) <= LOOSE


def test_dictionary_takes_lam_by_lam_max_of_the_training_set():
    estimator = estimators.GrassmannDictionary(
        5, lam=0.1, lam_scale="max", max_iter=2, random_state=3
    ).fit(D)
    first = learn.init_atoms(D, 5, rng=3)
    lam = 0.1 * np.median(core.lam_max(core.projection_kernel(D, first)))
    assert estimator.lam_ == lam
    assert np.array_equal(
        estimator.components_, learn.gdl(D, 5, lam, n_iter=2, rng=3).atoms
    )


@pytest.mark.parametrize(
    "options", [{"lam": 0.1, "lam_scale": "max"}, {"n_neighbors": 3}]
)
def test_online_dictionary_equals_online_gdl(options, tmp_path):
    coding = "local" if "n_neighbors" in options else "sparse"
    estimator = estimators.OnlineGrassmannDictionary(
        5, coding, random_state=3, rank=4, **options
    )
    learner = streams.OnlineGDL(5, rng=3, rank=4, **options)
    with pytest.raises(NotFittedError):
        estimator.partial_fit(D[:4]).transform(Q)
    learner.partial_fit(D[:4])
    for batch in (D[4:20], D[20:]):
        estimator.partial_fit(batch)
        learner.partial_fit(batch)
    assert np.array_equal(estimator.components_, learner.atoms)
    assert estimator.lam_ == learner.lam and estimator.n_iter_ == 2
    codes = (
        core.glc(Q, learner.atoms, 3)
        if coding == "local"
        else core.gsc(Q, learner.atoms, learner.lam)
    )
    assert np.array_equal(estimator.transform(Q), codes)
    np.save(tmp_path / "D.npy", D)
    mapped = np.load(tmp_path / "D.npy", mmap_mode="r")
    for X in (D, mapped):
        estimator.set_params(batch_size=8, n_epochs=2).fit(X)
        learner = streams.OnlineGDL(5, rng=3, rank=4, **options).fit(X, 8, 2)
        assert np.array_equal(estimator.components_, learner.atoms)


WEIGHTS = np.arange(40) % 4  # integers: as often is a sample there


def test_weights_of_a_dictionary_are_repetitions():
    estimator = estimators.GrassmannDictionary(5, init=D[4:9], max_iter=3)
    codes = estimator.fit_transform(D, sample_weight=WEIGHTS)
    learned = learn.gdl(D, 5, 0.1, init=D[4:9], n_iter=3, sample_weight=WEIGHTS)
    assert np.array_equal(estimator.components_, learned.atoms)
    assert np.array_equal(codes, learned.codes)
    repeated = estimators.GrassmannDictionary(5, init=D[4:9], max_iter=3)
    repeated.fit(np.repeat(D, WEIGHTS, axis=0))
    alike = core.projection_kernel(
        estimator.components_, repeated.components_
    ).diagonal()
    assert error(alike, 2) < LOOSE
    fitted = estimator.fit(D).components_
    assert (
        error(core.projection_kernel(fitted, repeated.components_).diagonal(), 2) > 1e-3
    )
    pipeline = make_pipeline(estimators.ImageSetSubspaces(2), estimator)
    pipeline.fit(SETS[TRAIN], grassmanndictionary__sample_weight=WEIGHTS)
    assert np.array_equal(estimator.components_, learned.atoms)


def test_weights_of_batches_are_those_of_online_gdl():
    estimator = estimators.OnlineGrassmannDictionary(5, random_state=3)
    learner = streams.OnlineGDL(5, 0.1, rng=3)
    for some in (slice(0, 20), slice(20, 40)):
        estimator.partial_fit(D[some], sample_weight=WEIGHTS[some])
        learner.partial_fit(D[some], WEIGHTS[some])
    assert np.array_equal(estimator.components_, learner.atoms)


def test_weights_of_a_discriminative_dictionary_are_those_of_the_function():
    weights = np.where(LABELS == "bee", 0, WEIGHTS)
    learned = discriminative.discriminative_atoms(
        D, LABELS, 2, n_iter=3, rng=1, sample_weight=weights
    )
    model = estimators.DiscriminativeDictionary(2, max_iter=3, random_state=1)
    model.fit(D, LABELS, sample_weight=weights)
    assert np.array_equal(model.components_, learned.atoms)
    assert (
        list(model.classes_)
        == sorted(set(LABELS) - {"bee"})
        == sorted(set(learned.labels))
    )
    errors, classes = discriminative.ridge_residuals(Q, learned.atoms, learned.labels)
    assert np.array_equal(model.predict(Q), classes[errors.argmin(axis=1)])


@pytest.mark.parametrize("sharpness", [None, 0.5, 3.0])
def test_probabilities_of_a_discriminative_dictionary_are_what_its_learning_fits(
    sharpness,
):
    """Their log-loss on the training set is the cost, so that the sharpness is in them."""
    model = estimators.DiscriminativeDictionary(
        1, sharpness=sharpness, max_iter=2, random_state=0
    )
    shares = model.fit(D, LABELS).predict_proba(D)
    assert log_loss(LABELS, shares) == pytest.approx(
        model.costs_[-1] / len(D), rel=1e-9
    )
    errors, _ = discriminative.ridge_residuals(Q, model.components_, model.labels_)
    odds = np.log(model.predict_proba(Q))
    expected = -model.sharpness_ * errors
    assert error(odds - odds[:, :1], expected - expected[:, :1]) <= LOOSE


@pytest.mark.parametrize(
    "model",
    [
        estimators.CodingClassifier(lam=0.1),
        estimators.DiscriminativeDictionary(1, max_iter=2, random_state=0),
    ],
)
def test_logarithms_of_probabilities_are_finite_where_these_round_to_zero(model):
    model.fit(D, LABELS)
    logarithms = model.predict_log_proba(Q)
    assert error(np.exp(logarithms), model.predict_proba(Q)) <= TIGHT
    model.temperature_ = 1e-4
    model.sharpness_ = 1e4
    assert (model.predict_proba(Q) == 0).any()
    assert np.isfinite(model.predict_log_proba(Q)).all()


@pytest.mark.parametrize(
    "model",
    [
        estimators.CodingClassifier(),
        estimators.NearestSubspace(),
        estimators.ProjectionKernel(),
    ],
)
@pytest.mark.parametrize("kind", ["ragged", "wide", "tall", "images"])
def test_errors_of_sets_of_frames_in_place_of_subspaces_name_what_makes_them(
    model, kind
):
    rng = np.random.default_rng(0)
    sets = {
        "ragged": [rng.random((n, 9)) for n in (3, 4, 5, 6)],
        "wide": rng.random((4, 3, 9)),
        "tall": rng.random((4, 9, 3)),
        "images": rng.random((4, 5, 3, 3)),
    }
    with pytest.raises(ValueError, match=r"of sets of frames ImageSetSubspaces\(p\)"):
        model.fit(sets[kind], ["a", "b"] * 2)


def test_kernel_lift_and_dictionary_are_kgdl():
    lift = estimators.KernelLift(gamma=0.02, p=2)
    dictionary = estimators.GrassmannDictionary(5, max_iter=3, random_state=0)
    fitted = make_pipeline(lift, dictionary).fit(SETS[TRAIN])
    learned = learn.kgdl(
        SETS[TRAIN], 5, 0.1, lift=kernels.Lift(kernels.rbf(0.02), 2), n_iter=3, rng=0
    )
    assert error(fitted[-1].components_, learned.atoms) == 0
    assert (np.diff(learned.costs) <= TIGHT * learned.costs[0]).all()


def test_projection_kernel_gives_gram_rows():
    assert np.array_equal(estimators.ProjectionKernel().fit_transform(D), K_DD)
    assert np.array_equal(estimators.ProjectionKernel().fit(D).transform(Q), K_QD)


@pytest.mark.parametrize(
    "options",
    [{}, {"coding": "local"}, {"rule": "max", "lam": 0.1, "lam_scale": "max"}],
    ids=str,
)
def test_classifier_on_gram_rows_equals_the_one_on_subspaces(options):
    on_subspaces = estimators.CodingClassifier(**options).fit(D, LABELS)
    classifier = estimators.CodingClassifier(**options, kernel="precomputed")
    on_rows = make_pipeline(estimators.ProjectionKernel(), classifier).fit(D, LABELS)
    assert np.array_equal(on_subspaces.predict(Q), on_rows.predict(Q))
    for method in ("predict_proba", "decision_function", "transform"):
        assert (
            error(getattr(on_subspaces, method)(Q), getattr(on_rows, method)(Q))
            <= LOOSE
        )


@pytest.mark.parametrize(
    "kernel, atoms, queries, checks",
    [("projection", D, Q, 0), ("precomputed", K_DD, K_QD, 1)],
    ids=["projection", "precomputed"],
)
def test_coding_then_residuals_check_their_gram_matrices_once(
    kernel, atoms, queries, checks, monkeypatch
):
    fitted = estimators.CodingClassifier(kernel=kernel).fit(atoms, LABELS)
    check_grams = core.check_grams
    checked = []

    def count(*grams):
        checked.append(grams)
        return check_grams(*grams)

    monkeypatch.setattr(core, "check_grams", count)
    fitted.predict(queries)
    assert len(checked) == checks


def test_float32_stays_float32():
    single = D.astype(np.float32)
    dictionary = estimators.GrassmannDictionary(4, max_iter=1, random_state=0)
    for estimator in (
        dictionary,
        estimators.ProjectionKernel(),
        estimators.CodingClassifier(),
    ):
        fitted = estimator.fit(single, LABELS)
        assert fitted.transform(Q.astype(np.float32)).dtype == np.float32
        assert fitted.transform(Q).dtype == np.float64
    frames = [frames.astype(np.float32) for frames in SETS]
    assert estimators.ImageSetSubspaces(2).fit_transform(frames).dtype == np.float32


@pytest.mark.parametrize("method", ["log-euclidean", "intrinsic"])
@pytest.mark.filterwarnings("ignore:.*right angles", "ignore:karcher_mean")
def test_tangent_dictionary_is_its_function(method):
    estimator = TangentDictionary(4, method, lam=0.2, max_iter=3, random_state=3)
    codes = estimator.fit_transform(D)
    if method == "intrinsic":
        learned = tangent.intrinsic_dictionary(D, 4, 0.2, n_iter=3, rng=3)
        coded = tangent.intrinsic_codes(Q, learned.atoms, 0.2)
    else:
        learned = tangent.log_euclidean_dictionary(
            D, 4, 0.2, base="mean", n_iter=3, rng=3
        )
        coded = tangent.log_euclidean_codes(Q, learned.atoms, 0.2, learned.base)
    assert np.array_equal(estimator.components_, learned.atoms)
    assert np.array_equal(estimator.costs_, learned.costs)
    assert np.array_equal(codes, learned.codes)
    assert np.array_equal(estimator.transform(Q), coded)


# ---------------------------- probabilities


@pytest.mark.parametrize("metric", ["chordal", "projection"])
def test_of_neighbours_at_one_distance_the_first_comes_first(metric):
    """Even where inner products tell that the second is nearer by less than rounding."""
    axes = np.eye(3)[:, :, None]
    query = np.array([[[1e-12], [2e-12], [1.0]]])
    model = estimators.NearestSubspace(metric, 2).fit(axes[:2], ["ape", "bee"])
    distances, nearest = model.kneighbors(query)
    assert distances[0, 0] == distances[0, 1] and nearest.tolist() == [[0, 1]]


FAR = [
    estimators.NearestSubspace(),
    estimators.NearestSubspace("projection"),
    estimators.CodingClassifier(lam=0.1, lam_scale="max"),
    estimators.CodingClassifier(lam=0.1, lam_scale="max", rule="sum"),
    estimators.CodingClassifier("local", n_neighbors=1),
    estimators.CodingClassifier("local", n_neighbors=1, rule="max"),
    estimators.DiscriminativeDictionary(1, max_iter=0),
]


@pytest.mark.parametrize("estimator", FAR, ids=repr)
def test_far_queries_get_the_class_of_the_larger_inner_product(estimator):
    """Lines all but orthogonal to those of two classes: distances and residuals round
    alike.
    """
    axes = np.eye(4)[:, :, None]
    estimator.fit(axes[[0, 0, 1, 1]], ["ape", "ape", "bee", "bee"])
    for small in (1e-3, 1e-7, 1e-12, 1e-30):
        queries = np.array([[small, 2 * small, 1, 0], [2 * small, small, 1, 0]])[
            :, :, None
        ]
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        assert estimator.predict(queries).tolist() == ["bee", "ape"]


# ----------------------------------------------------------------- whose the arrays are


def test_what_functions_learn_shares_no_memory_with_what_they_were_given():
    atoms = D[:3].copy()
    labels = LABELS[:3].copy()
    base = D[0].copy()
    sets = [np.asarray(frames, float) for frames in SETS[:5]]
    lift = kernels.Lift(kernels.rbf(MEDIAN_GAMMA), 2).fit(sets)
    learned = [
        *learn.gdl(D, 3, 0.1, init=atoms, n_iter=0),
        learn.init_atoms(D, len(D), "random", rng=0),
        learn.update_atoms(D, atoms, np.zeros((40, 3))),
        *discriminative.discriminative_atoms(
            D[:3], labels, 1, init=(atoms, labels), n_iter=0
        )[:2],
        *tangent.log_euclidean_dictionary(D, 3, 0.1, base=base, init=atoms, n_iter=0),
        *tangent.intrinsic_dictionary(D, 3, 0.1, init=atoms, n_iter=0),
        streams.OnlineGDL(3, 0.1, init=atoms).init,
        lift.landmarks_,
    ]
    for array in learned:
        for given in (D, atoms, labels, base, *sets):
            assert not np.may_share_memory(array, given)


def test_a_stream_whose_batches_come_in_one_buffer_learns_what_others_do():
    """Before there are atoms, batches wait; then they pile up, and the worst samples
    are kept.
    """
    atoms = D[:6].copy()
    weights = np.linspace(0.5, 2, 5)
    for init in ("kmeans++", atoms):
        plain, reused = (streams.OnlineGDL(6, 0.1, init=init, rng=0) for _ in range(2))
        if init is atoms:
            plain = streams.OnlineGDL(6, 0.1, init=D[:6], rng=0)
            atoms[...] = 7
        buffer = np.empty_like(X[:5])
        sizes = np.empty(5)
        for i in range(0, 60, 5):
            buffer[...] = X[i : i + 5]
            sizes[...] = weights
            reused.partial_fit(buffer, sizes)
            plain.partial_fit(X[i : i + 5], weights)
            buffer[...] = 7
            sizes[...] = 7
        assert np.array_equal(reused.atoms, plain.atoms)


# ------------------------------------------------------------ why, and more labelled sets


@pytest.mark.parametrize("coding", ["sparse", "local"])
@pytest.mark.parametrize("rule", [None, "residual", "sum", "max"])
def test_explain_gives_the_shares_of_the_scores(coding, rule):
    model = estimators.CodingClassifier(coding, lam=0.1, rule=rule).fit(D, LABELS)
    indices, values = model.explain(Q)
    scores = model.class_scores(Q)
    _, index = np.unique(LABELS, return_inverse=True)
    for c in range(len(model.classes_)):
        mine = (index[indices] == c) & (indices >= 0)
        present = mine.any(axis=1)
        sums = np.where(mine, values, 0).sum(axis=1)
        assert error(sums[present], scores[present, c]) < TIGHT


@pytest.mark.parametrize("coding", ["sparse", "local"])
def test_partial_fit_is_fit_on_all(coding):
    order = np.argsort(LABELS, kind="stable")  # the last class comes later
    X = D[order]
    y = LABELS[order]
    half = np.flatnonzero(y == y[-1])[0]
    whole = estimators.CodingClassifier(coding, lam=0.05).fit(X, y)
    model = estimators.CodingClassifier(coding, lam=0.05)
    model.partial_fit(X[:half], y[:half])
    for i in range(half, len(X), 2):
        assert model.partial_fit(X[i : i + 2], y[i : i + 2]) is model
    assert np.array_equal(model.classes_, whole.classes_)
    assert np.array_equal(model.predict_proba(Q), whole.predict_proba(Q))
    assert np.array_equal(model.explain(Q).values, whole.explain(Q).values)
    before = vars(model).copy()
    with pytest.raises(ValueError, match="subspaces of the kind of the atoms, whose"):
        model.partial_fit(X[:1, :, :1], y[:1])
    with pytest.raises(ValueError, match="y must have length 1"):
        model.partial_fit(X[:1], y[:2])
    assert vars(model) == before
    grams = estimators.CodingClassifier(kernel="precomputed").fit(K_DD, LABELS)
    with pytest.raises(ValueError, match="kernel must be 'projection' for partial_fit"):
        grams.partial_fit(K_DD, LABELS)


# ------------------------------------------------------------------- without labels


def grouped(rng, n_clusters=3, n=8):
    centres = core.random_subspaces(n_clusters, 12, 2, rng)
    noise = 0.1 * rng.standard_normal((n_clusters * n, 12, 2))
    return core.orthonormalize(np.repeat(centres, n, axis=0) + noise)


@pytest.mark.parametrize("seed", range(5))
def test_clusters_are_found_whatever_the_order(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat(range(3), 8)
    order = rng.permutation(24)
    X = grouped(rng)[order]
    model = estimators.SubspaceClustering(3, random_state=0).fit(X)
    same = model.labels_[:, None] == model.labels_
    assert np.array_equal(same, truth[order][:, None] == truth[order])
    assert np.array_equal(np.unique(model.labels_), range(3))
    graph = model.affinity_matrix_
    assert np.array_equal(graph, graph.T) and not graph.diagonal().any()
    K = core.projection_kernel(X)
    grams = estimators.SubspaceClustering(3, kernel="precomputed", random_state=0)
    assert np.array_equal(grams.fit_predict(K), model.labels_)


def test_clustering_names_what_is_wrong():
    X = grouped(np.random.default_rng(0))
    with pytest.raises(ValueError, match="n_clusters must be >= 1, got 0"):
        estimators.SubspaceClustering(0).fit(X)
    with pytest.raises(
        ValueError, match="at least 2 subspaces, and n_clusters = 25, got 24 sample"
    ):
        estimators.SubspaceClustering(25).fit(X)
    # copies alone, and subspaces that explain nothing of each other
    copies = estimators.SubspaceClustering(2, random_state=0).fit(X[[0] * 6])
    assert np.isin(copies.labels_, [0, 1]).all()
    apart = np.eye(12).reshape(12, 6, 2).swapaxes(0, 1)
    assert len(estimators.SubspaceClustering(3, random_state=0).fit_predict(apart)) == 6


def test_the_sharpness_has_the_range_of_beta():
    X = core.random_subspaces(6, 8, 2, rng=0)
    with pytest.raises(ValueError, match=r"sharpness must be .*1e\+06.*, got 4e\+307"):
        estimators.DiscriminativeDictionary(sharpness=4e307).fit(X, [0, 1] * 3)


def test_neighbours_are_at_most_the_atoms_that_there_are():
    few = estimators.CodingClassifier("local", n_neighbors=3).fit(D[:3], LABELS[:3])
    message = r"n_neighbors must be in 1..3, got 9"
    with pytest.raises(ValueError, match=message):
        few.set_params(n_neighbors=9).transform(Q)
    with pytest.raises(ValueError, match=message):
        few.fit(D[:3], LABELS[:3])


@pytest.mark.parametrize("state", [(i for i in range(3)), "no", 1.5], ids=type)
def test_a_random_state_that_is_no_seed_is_refused_by_its_name(state):
    X = core.random_subspaces(6, 5, 2, rng=0)
    model = estimators.GrassmannDictionary(2, max_iter=1, random_state=state)
    with pytest.raises((TypeError, ValueError), match="random_state must be None, an"):
        model.fit(X)


@pytest.mark.parametrize(
    "first, wrong",
    [
        (
            estimators.GrassmannDictionary(4, random_state=0),
            core.random_subspaces(3, 10, 2, rng=0),  # fewer than atoms
        ),
        (TangentDictionary(4, random_state=0), core.random_subspaces(3, 10, 2, rng=0)),
    ],
)
def test_a_pipeline_whose_fit_fails_answers_as_before(first, wrong):
    X = core.random_subspaces(20, 8, 2, rng=0)
    y = np.arange(20) % 2
    model = make_pipeline(first, RidgeClassifier()).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="n_atoms"):
        model.fit(wrong, [0, 1, 0])
    assert np.array_equal(model.predict(X), before)


def test_a_first_batch_that_fails_leaves_nothing():
    learner = estimators.OnlineGrassmannDictionary(4, random_state=0)
    with pytest.raises(ValueError, match="sample_weight"):
        learner.partial_fit(
            core.random_subspaces(3, 10, 2, rng=0), sample_weight=[-1, 1, 1]
        )
    learner.partial_fit(core.random_subspaces(20, 8, 2, rng=0))
    assert learner.components_.shape == (4, 8, 2)


def test_views_of_frames_are_not_written_out():
    """A stack of blocks holds each frame many times, and takes no memory."""
    videos = list(np.random.default_rng(0).random((8, 200, 50)))
    stacks = estimators.BlockHankel(40).fit_transform(videos)
    step = estimators.ImageSetSubspaces(2)
    peaks = []
    bases = []
    for make in (
        lambda: subspaces.from_sets(stacks, 2),
        lambda: step.fit_transform(stacks),
    ):
        make()  # compiled
        tracemalloc.start()
        bases.append(make())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert np.array_equal(*bases)
    assert peaks[1] < 1.5 * peaks[0]


def test_a_subclass_may_hide_a_method():
    class Fixed(estimators.CodingClassifier):
        partial_fit = None

    assert Fixed().partial_fit is None
