"""Estimators equal their functions, leave no trace, work in scikit-learn's machinery and refuse what does not fit."""

import importlib
import multiprocessing
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, check_set_output_transform, check_transformer_get_feature_names_out
from sklearn.utils.validation import check_is_fitted, validate_data

import grassmann_sc as core
import kernels
import learn
from estimators import CodingClassifier, GrassmannDictionary, ImageSetSubspaces, KernelLift, NearestSubspace, ProjectionKernel
from strategies import LOOSE, TIGHT, error
from subspaces import from_sets


def image_sets(n=60, d=12, n_classes=3, seed=0):
    """(sets of 4 to 6 noisy frames, labels): each class has a pattern space of dimension 3."""
    rng = np.random.default_rng(seed)
    patterns, y = rng.standard_normal((n_classes, 3, d)), np.arange(n) % n_classes
    sets = [rng.standard_normal((size, 3)) @ patterns[c] + 0.8 * rng.standard_normal((size, d)) for c, size in zip(y, rng.integers(4, 7, n))]
    return sets, np.array(["ape", "bee", "cat", "dog"])[y]


SETS, Y = image_sets()
PATIENCE = 600  # seconds after which a process or thread counts as hung
X = from_sets(SETS, 2)
TRAIN, TEST = slice(0, 40), slice(40, 60)
D, LABELS, Q = X[TRAIN], Y[TRAIN], X[TEST]
K_DD, K_QD = core.projection_kernel(D), core.projection_kernel(Q, D)
SPARSE, LOCAL = core.sparse_codes(K_DD, K_QD, 0.1, norm2=2), core.locality_codes(K_DD, K_QD, 6, norm2=2)

CLASSIFIERS = [NearestSubspace(), NearestSubspace("geodesic", 3), NearestSubspace("projection", 2), CodingClassifier(),
               CodingClassifier("local", n_neighbors=6), CodingClassifier(lam=0.05, lam_scale="max", rule="sum"),
               CodingClassifier("local", rule="max")]
TRANSFORMERS = [GrassmannDictionary(5, n_iter=3, rng=0), GrassmannDictionary(5, "local", n_neighbors=2, n_iter=3, rng=np.random.default_rng(1)),
                GrassmannDictionary(5, lam_scale="max", n_iter=2, rng=0), ProjectionKernel(), CodingClassifier(), CodingClassifier("local")]
ALL = [*CLASSIFIERS, *TRANSFORMERS[:4], ImageSetSubspaces(2), KernelLift(p=2), KernelLift("polynomial", p=2, n_landmarks=30, rng=0)]


def name(estimator):
    return repr(estimator).replace("\n", "").partition("(PCG64")[0].replace(" ", "")


def data_of(estimator):
    return SETS if isinstance(estimator, (ImageSetSubspaces, KernelLift)) else X


def answers(estimator, Z):
    """What each method says of Z."""
    methods = ["predict", "predict_proba", "decision_function", "transform"]
    return [getattr(estimator, method)(Z) for method in methods if hasattr(estimator, method)]


each_estimator = pytest.mark.parametrize("estimator", ALL, ids=name)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)


# ---------------------------------------------------------------------------- equal to the functions


@pytest.mark.parametrize("center", [False, True])
def test_image_sets_become_the_subspaces_of_from_sets(center):
    estimator = ImageSetSubspaces(2, center=center)
    assert np.array_equal(estimator.fit(SETS[:5]).transform(SETS), from_sets(SETS, 2, center=center))
    images = np.random.default_rng(0).integers(0, 255, (6, 5, 4, 3), dtype=np.uint8)
    assert np.array_equal(estimator.fit_transform(images), from_sets(images, 2, center=center))


@pytest.mark.parametrize("metric, distance", [("chordal", core.chordal_distance(Q, D)), ("geodesic", core.geodesic_distance(Q, D)),
                                              ("projection", np.sqrt(2 - K_QD))])
def test_nearest_subspace_votes_as_k_nearest_neighbours(metric, distance):
    one = NearestSubspace(metric).fit(D, LABELS)
    assert np.array_equal(one.distances(Q), distance) and np.array_equal(one.predict(Q), LABELS[distance.argmin(axis=1)])
    for k in range(1, 8):
        ours = NearestSubspace(metric, k).fit(D, LABELS)
        twin = KNeighborsClassifier(k, metric="precomputed").fit(np.zeros((40, 40)), LABELS)
        assert np.array_equal(ours.predict(Q), twin.predict(distance)) and error(ours.predict_proba(Q), twin.predict_proba(distance)) <= TIGHT
        assert all(np.array_equal(a, b) for a, b in zip(ours.kneighbors(Q), twin.kneighbors(distance)))


@pytest.mark.parametrize("options, codes, on_subspaces", [(dict(lam=0.1), SPARSE, core.gsc(Q, D, 0.1)),
                                                          (dict(coding="local", n_neighbors=6), LOCAL, core.glc(Q, D, 6))])
def test_coding_classifier_equals_the_functions(options, codes, on_subspaces):
    estimator = CodingClassifier(**options).fit(D, LABELS)
    residuals, classes = core.class_residuals(codes, K_DD, K_QD, LABELS, norm2=2)
    assert np.array_equal(estimator.transform(Q), codes) and np.array_equal(codes, on_subspaces)
    assert np.array_equal(estimator.decision_function(Q), -residuals) and list(estimator.classes_) == list(classes)
    assert np.array_equal(estimator.predict(Q), core.classify(codes, K_DD, K_QD, LABELS, norm2=2))
    by_class = [codes[:, LABELS == c] for c in classes]
    for rule, h in [("sum", np.sum), ("max", np.max)]:
        scores = np.transpose([h(part, axis=1) for part in by_class])
        assert np.array_equal(estimator.set_params(rule=rule).fit(D, LABELS).decision_function(Q), scores)
        assert np.array_equal(estimator.predict(Q), classes[scores.argmax(axis=1)])


def test_lam_is_taken_by_lam_max_of_each_query():
    codes = CodingClassifier(lam=0.2, lam_scale="max").fit(D, LABELS).transform(Q)
    for i, lam in enumerate(0.2 * core.lam_max(K_QD)):
        assert error(codes[i], core.gsc(Q[i:i + 1], D, lam)[0]) <= LOOSE
    assert not CodingClassifier(lam=1, lam_scale="max").fit(D, LABELS).transform(Q).any()


@each_classifier
def test_probabilities_rise_with_the_decision(estimator):
    estimator = clone(estimator).fit(D, LABELS)
    shares = estimator.predict_proba(Q)
    assert error(shares.sum(axis=1), 1) <= TIGHT and (shares >= 0).all()
    assert np.array_equal(estimator.classes_[shares.argmax(axis=1)], estimator.predict(Q))
    if hasattr(estimator, "decision_function"):
        assert np.array_equal(shares.argsort(axis=1, kind="stable"), estimator.decision_function(Q).argsort(axis=1, kind="stable"))


def test_decision_of_two_classes_is_positive_for_the_second():
    two = LABELS != "bee"
    estimator = CodingClassifier().fit(D[two], LABELS[two])
    decision = estimator.decision_function(Q)
    assert decision.shape == (20,) and np.array_equal(estimator.classes_[(decision > 0).astype(int)], estimator.predict(Q))
    assert np.array_equal(decision.argsort(), estimator.predict_proba(Q)[:, 1].argsort())


@pytest.mark.parametrize("options, coding", [(dict(lam=0.1), dict(lam=0.1)), (dict(coding="local", n_neighbors=3), dict(n_neighbors=3)),
                                             (dict(init="random"), dict(lam=0.1, init="random")), (dict(init=D[:5]), dict(lam=0.1, init=D[:5]))])
def test_dictionary_equals_gdl(options, coding):
    estimator = GrassmannDictionary(5, n_iter=4, rng=3, **options)
    codes = estimator.fit_transform(D)
    atoms, learned, costs = learn.gdl(D, 5, **coding, n_iter=4, rng=3)
    assert np.array_equal(estimator.components_, atoms) and np.array_equal(codes, learned) and np.array_equal(estimator.costs_, costs)
    assert 1 <= estimator.n_iter_ <= 4 and len(costs) == 1 + 2 * estimator.n_iter_
    code = core.glc(Q, atoms, 3) if "n_neighbors" in coding else core.gsc(Q, atoms, 0.1)
    assert np.array_equal(estimator.transform(Q), code) and error(estimator.transform(D), codes) <= LOOSE


def test_dictionary_takes_lam_by_lam_max_of_the_training_set():
    estimator = GrassmannDictionary(5, lam=0.1, lam_scale="max", n_iter=2, rng=3).fit(D)
    first = learn.init_atoms(D, 5, rng=3)
    lam = 0.1 * np.median(core.lam_max(core.projection_kernel(D, first)))
    assert estimator.lam_ == lam and np.array_equal(estimator.components_, learn.gdl(D, 5, lam, n_iter=2, rng=3).atoms)


def test_projection_kernel_gives_gram_rows():
    assert np.array_equal(ProjectionKernel().fit_transform(D), K_DD)
    assert np.array_equal(ProjectionKernel().fit(D).transform(Q), K_QD)


@pytest.mark.parametrize("options", [{}, dict(coding="local"), dict(rule="max", lam=0.1, lam_scale="max")])
def test_classifier_on_gram_rows_equals_the_one_on_subspaces(options):
    on_subspaces = CodingClassifier(**options).fit(D, LABELS)
    on_rows = make_pipeline(ProjectionKernel(), CodingClassifier(**options, kernel="precomputed")).fit(D, LABELS)
    labels, *numbers = zip(answers(on_subspaces, Q), answers(on_rows, Q))
    assert np.array_equal(*labels) and all(error(a, b) <= LOOSE for a, b in numbers)


def test_float32_stays_float32():
    single = D.astype(np.float32)
    for estimator in (GrassmannDictionary(4, n_iter=1, rng=0), ProjectionKernel(), CodingClassifier()):
        assert estimator.fit(single, LABELS).transform(Q.astype(np.float32)).dtype == np.float32
    assert ImageSetSubspaces(2).fit_transform([frames.astype(np.float32) for frames in SETS]).dtype == np.float32


# ---------------------------------------------------------------------------- no traces


@each_estimator
def test_refitting_leaves_no_trace_and_arguments_stay(estimator):
    estimator, Z = clone(estimator), data_of(estimator)
    before = {key: repr(value) for key, value in estimator.get_params().items()}
    state = repr(getattr(estimator.get_params().get("rng"), "bit_generator", None) and estimator.rng.bit_generator.state)
    once = answers(clone(estimator).fit(Z[:45], Y[:45]), Z[45:])
    other = from_sets(image_sets(n=30, d=9, n_classes=4, seed=5)[0], 3)
    other = [np.eye(9)[:4]] * 30 if Z is SETS else other
    twice = answers(estimator.fit(other, np.arange(30) % 4).fit(Z[:45], Y[:45]), Z[45:])
    assert all(np.array_equal(a, b) for a, b in zip(once, twice))
    assert {key: repr(value) for key, value in estimator.get_params().items()} == before
    assert state == repr(getattr(estimator.get_params().get("rng"), "bit_generator", None) and estimator.rng.bit_generator.state)


@each_estimator
def test_a_copy_on_disk_answers_alike(estimator, tmp_path):
    estimator, Z = clone(estimator).fit(data_of(estimator), Y), data_of(estimator)
    joblib.dump(estimator, tmp_path / "fitted.joblib")
    assert all(np.array_equal(a, b) for a, b in zip(answers(estimator, Z), answers(joblib.load(tmp_path / "fitted.joblib"), Z)))


@each_estimator
def test_read_only_input_is_taken_and_not_changed(estimator):
    Z = SETS if data_of(estimator) is SETS else X.copy()
    kept = [np.array(part) for part in Z]
    for part in Z:
        part.setflags(write=False)
    answers(clone(estimator).fit(Z, Y), Z)
    assert all(np.array_equal(a, b) for a, b in zip(kept, Z))


# ---------------------------------------------------------------------------- in scikit-learn's machinery


def grid(seed=0, **options):
    """A search over p, lambda and C, and its data."""
    pipeline = make_pipeline(ImageSetSubspaces(2), GrassmannDictionary(6, n_iter=2, rng=seed), StandardScaler(), SVC())
    parameters = {"imagesetsubspaces__p": [1, 2], "grassmanndictionary__lam": [0.05, 0.2], "svc__C": [1, 10]}
    return GridSearchCV(pipeline, parameters, cv=3, error_score="raise", **options)


def test_search_over_a_pipeline_with_two_processes_equals_one():
    one, two = grid().fit(SETS, Y), grid(n_jobs=2).fit(SETS, Y)
    assert one.best_score_ > 0.8 and one.best_params_ == two.best_params_
    assert np.array_equal(one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])
    assert np.array_equal(one.predict(SETS), two.predict(SETS))


def test_search_in_threads_equals_one():
    with joblib.parallel_backend("threading"):
        two = grid(n_jobs=2).fit(SETS, Y)
    assert np.array_equal(grid().fit(SETS, Y).cv_results_["mean_test_score"], two.cv_results_["mean_test_score"])


def test_kernel_rows_in_a_pipeline_and_search():
    pipeline = make_pipeline(ImageSetSubspaces(2), ProjectionKernel(), SVC(kernel="precomputed"))
    search = GridSearchCV(pipeline, {"imagesetsubspaces__p": [1, 2, 3], "svc__C": [0.1, 10]}, cv=3, error_score="raise").fit(SETS[:40], LABELS)
    K = core.projection_kernel(from_sets(SETS, search.best_params_["imagesetsubspaces__p"]))
    svm = SVC(C=search.best_params_["svc__C"], kernel="precomputed").fit(K[:40, :40], LABELS)
    assert np.array_equal(search.predict(SETS[40:]), svm.predict(K[40:, :40])) and search.score(SETS[40:], Y[40:]) > 0.8


def test_search_on_a_gram_matrix_equals_the_search_on_subspaces():
    lams = {"lam": [0.003, 0.03, 0.3, 0.9]}
    on_gram = GridSearchCV(CodingClassifier(lam_scale="max", kernel="precomputed"), lams, cv=4).fit(K_DD, LABELS)
    on_subspaces = GridSearchCV(CodingClassifier(lam_scale="max"), lams, cv=4).fit(D, LABELS)
    assert np.array_equal(on_gram.cv_results_["mean_test_score"], on_subspaces.cv_results_["mean_test_score"])
    assert np.array_equal(on_gram.predict(K_QD), on_subspaces.predict(Q))


@each_classifier
def test_cross_validation_is_better_than_chance(estimator):
    assert cross_val_score(estimator, X, Y, cv=3, error_score="raise").mean() > 0.6


def test_four_threads_that_code_at_once_get_the_same_codes():
    estimators = [CodingClassifier().fit(D, LABELS), CodingClassifier("local").fit(D, LABELS)]
    alone = [estimator.transform(Q) for estimator in estimators]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(estimators[i % 2].transform, Q) for i in range(16)]
        assert all(np.array_equal(job.result(timeout=PATIENCE), alone[i % 2]) for i, job in enumerate(jobs))


@pytest.mark.parametrize("method", [m for m in ("fork", "spawn") if m in multiprocessing.get_all_start_methods()])
def test_a_child_process_codes_after_its_parent_did(method):
    estimator = CodingClassifier().fit(D, LABELS)
    codes = estimator.transform(Q)
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert np.array_equal(pool.apply_async(estimator.transform, (Q,)).get(timeout=PATIENCE), codes)


def test_weights_are_routed_to_the_step_that_asks_for_them():
    with config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(ProjectionKernel(), SVC(kernel="precomputed").set_fit_request(sample_weight=True))
        weights = np.linspace(0.1, 3, 40)
        decision = pipeline.fit(D, LABELS, sample_weight=weights).decision_function(Q)
    assert error(decision, SVC(kernel="precomputed").fit(K_DD, LABELS, weights).decision_function(K_QD)) <= LOOSE
    assert error(decision, SVC(kernel="precomputed").fit(K_DD, LABELS).decision_function(K_QD)) > 1e-3


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name)
def test_columns_have_names(estimator):
    estimator = clone(estimator).fit(D, LABELS)
    names = estimator.get_feature_names_out()
    n_columns = estimator.transform(Q).shape[1]
    assert list(names) == [f"{type(estimator).__name__.lower()}{i}" for i in range(n_columns)]
    pipeline = make_pipeline(ImageSetSubspaces(2), estimator).fit(SETS, Y).set_output(transform="default")
    assert len(pipeline.get_feature_names_out()) == pipeline.transform(SETS[:2]).shape[1]


@each_estimator
def test_tags_tell_of_input_and_kind(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.three_d_array and not tags.input_tags.two_d_array and not tags.input_tags.pairwise
    assert is_classifier(estimator) == hasattr(estimator, "predict") == tags.target_tags.required
    assert (tags.transformer_tags is not None) == hasattr(estimator, "transform")
    rows = get_tags(CodingClassifier(kernel="precomputed")).input_tags
    assert rows.pairwise and rows.two_d_array and not rows.three_d_array


# ---------------------------------------------------------------------------- scikit-learn's own checks


class OnRows:
    """Lets scikit-learn's checks, whose data are 2-D, run: a row x stands for the line spanned by (x, 1)."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = True, False
        return tags

    def _subspaces(self, X, fit=False):
        if not fit:
            check_is_fitted(self)
        X = validate_data(self, X, reset=fit, dtype=[np.float64, np.float32])
        lines = np.hstack([X, np.ones((len(X), 1), X.dtype)])
        return (lines / np.linalg.norm(lines, axis=1, keepdims=True))[:, :, None]


class NearestSubspaceOnRows(OnRows, NearestSubspace):
    pass


class CodingClassifierOnRows(OnRows, CodingClassifier):
    pass


class GrassmannDictionaryOnRows(OnRows, GrassmannDictionary):
    pass


class ProjectionKernelOnRows(OnRows, ProjectionKernel):
    pass


# Checks that do not apply, with the reason. Beside them scikit-learn skips check_array_api_input (SCIPY_ARRAY_API is not set)
# and, without pandas, check_classifier_data_not_an_array.
# Two estimators cannot run them: ImageSetSubspaces, whose input is a sequence of arrays and whose output has three axes, and
# CodingClassifier(kernel="precomputed"), as the Gram matrices of the checks have diagonals that vary. The tests above are theirs.
NOT_APPLICABLE = {
    "GrassmannDictionaryOnRows": {"check_fit2d_1sample": "one sample cannot start two atoms: the error names n_atoms, not the samples"},
}
CHECKED = [NearestSubspaceOnRows(), NearestSubspaceOnRows("geodesic"), CodingClassifierOnRows(), CodingClassifierOnRows("local", n_neighbors=1),
           GrassmannDictionaryOnRows(2, n_iter=1, rng=0), ProjectionKernelOnRows()]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED, ids=name)
def test_scikit_learns_estimator_checks(estimator):
    expected = NOT_APPLICABLE.get(type(estimator).__name__, {})
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    by_status = {status: {r["check_name"] for r in results if r["status"] == status} for status in ("passed", "failed", "skipped", "xfail")}
    assert not by_status["failed"], [r for r in results if r["status"] == "failed"]
    assert by_status["xfail"] == set(expected) and by_status["skipped"] <= {"check_array_api_input", "check_classifier_data_not_an_array"}
    assert len(by_status["passed"]) >= 38


@pytest.mark.parametrize("estimator", CHECKED[2:], ids=name)
def test_scikit_learns_checks_of_output(estimator):
    check_transformer_get_feature_names_out(type(estimator).__name__, estimator)
    check_set_output_transform(type(estimator).__name__, estimator)


# ---------------------------------------------------------------------------- wrong input


BAD = [
    (lambda e: e.fit(D, None), "requires y to be passed, but the target y is None"),
    (lambda e: e.fit(D, ["one"] * 40), "y must hold at least two classes, got one class: .*one"),
    (lambda e: e.fit(D, LABELS[:39]), "y must have length 40, one label a subspace, got 39"),
    (lambda e: e.fit(D, np.linspace(0, 1, 40)), r"Unknown label type: continuous numbers such as 0\.0256"),
    (lambda e: e.fit(D, LABELS).predict(core.random_subspaces(3, 11, 2)), "X must have d = 12, as in fit, got 11"),
]


@each_classifier
@pytest.mark.parametrize("call, message", BAD, ids=["none", "one class", "length", "continuous", "other d"])
def test_classifiers_refuse(estimator, call, message):
    with pytest.raises(ValueError, match=message):
        call(clone(estimator))


@each_estimator
def test_use_before_fit_is_refused(estimator):
    for method in ("predict", "predict_proba", "decision_function", "transform", "distances", "kneighbors"):
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError, match=f"This {type(estimator).__name__} instance is not fitted yet"):
                getattr(clone(estimator), method)(data_of(estimator))


@pytest.mark.parametrize("estimator", [e for e in ALL if not isinstance(e, (ImageSetSubspaces, KernelLift))], ids=name)
@pytest.mark.parametrize("Z, error, message", [
    (2 * D, ValueError, r"X must have orthonormal columns: .* differs from I by 3 at index 0"),
    (D[:, :, 0], ValueError, r"X must have 3 dimensions \(n, d, p\), got shape \(40, 12\)"),
    (D[:0], ValueError, r"X must hold at least one subspace, got shape \(0, 12, 2\)"),
    (np.where(np.arange(40)[:, None, None] == 7, np.nan, D), ValueError, "X must be finite, got NaN or infinity in the basis at index 7"),
    (1j * D, TypeError, "X must hold real numbers, got dtype complex128"),
    (D.astype(str), TypeError, "X must hold real numbers, got dtype <U"),
], ids=["scaled", "2-D", "empty", "NaN", "complex", "text"])
def test_what_are_no_subspaces_is_refused(estimator, Z, error, message):
    with pytest.raises(error, match=message):
        clone(estimator).fit(Z, LABELS)


@pytest.mark.parametrize("call, error, message", [
    (lambda: ImageSetSubspaces(2).fit_transform([*SETS[:3], np.ones((4, 11))]), ValueError, r"sets\[0\] has d = 12, sets\[3\] has d = 11"),
    (lambda: ImageSetSubspaces(2).fit(SETS).transform([np.eye(9)]), ValueError, "X must hold frames of d = 12, as in fit, got 9"),
    (lambda: ImageSetSubspaces(13).fit(SETS), ValueError, "p must be at most d = 12"),
    (lambda: ImageSetSubspaces(0).fit(SETS), ValueError, "p must be at least 1, got 0"),
    (lambda: ImageSetSubspaces(1.5).fit(SETS), TypeError, "p must be an integer, got 1.5"),
    (lambda: ImageSetSubspaces(2).fit([]), ValueError, "sets must hold at least one set of frames, got none"),
    (lambda: ImageSetSubspaces(2).fit(SETS).transform([]), ValueError, "sets must hold at least one set of frames, got none"),
    (lambda: NearestSubspace("cosine").fit(D, LABELS), ValueError, "metric must be 'chordal' or 'geodesic' or 'projection', got 'cosine'"),
    (lambda: NearestSubspace(n_neighbors=41).fit(D, LABELS), ValueError, r"n_neighbors must be in 1\.\.40, got 41"),
    (lambda: CodingClassifier("dense").fit(D, LABELS), ValueError, "coding must be 'sparse' or 'local', got 'dense'"),
    (lambda: CodingClassifier(rule="min").fit(D, LABELS), ValueError, "rule must be 'residual' or 'sum' or 'max', got 'min'"),
    (lambda: CodingClassifier(lam_scale="mean").fit(D, LABELS), ValueError, "lam_scale must be None or 'max', got 'mean'"),
    (lambda: CodingClassifier(kernel="rbf").fit(D, LABELS), ValueError, "kernel must be 'projection' or 'precomputed', got 'rbf'"),
    (lambda: CodingClassifier("local", n_neighbors=41).fit(D, LABELS), ValueError, r"n_neighbors must be in 1\.\.40, got 41"),
    (lambda: CodingClassifier(lam=-1).fit(D, LABELS), ValueError, "lam must be a number >= 0, got -1"),
    (lambda: CodingClassifier(lam=[0.1, 0.2]).fit(D, LABELS), ValueError, r"lam must be a number >= 0, got \[0.1, 0.2\]"),
    (lambda: CodingClassifier(lam="0.1").fit(D, LABELS), TypeError, "lam must hold real numbers"),
    (lambda: CodingClassifier(kernel="precomputed").fit(K_QD, LABELS), ValueError, r"X must be a square matrix .* got shape \(20, 40\)"),
    (lambda: CodingClassifier(kernel="precomputed").fit(K_DD * np.arange(1, 41), LABELS), ValueError, "constant positive diagonal, .* got 2 to 80"),
    (lambda: CodingClassifier(kernel="precomputed").fit(K_DD, LABELS).predict(K_QD[:, :9]), ValueError, r"X must have shape \(n, 40\), .* got \(20, 9\)"),
    (lambda: GrassmannDictionary(0).fit(D), ValueError, r"n_atoms must be .* got 0"),
    (lambda: GrassmannDictionary(41).fit(D), ValueError, r"n_atoms must be in 1\.\.40, got 41"),
    (lambda: GrassmannDictionary(5, "dense").fit(D), ValueError, "coding must be 'sparse' or 'local', got 'dense'"),
    (lambda: GrassmannDictionary(5, lam=np.nan, lam_scale="max").fit(D), ValueError, "lam must be finite, got nan"),
    (lambda: GrassmannDictionary(5, "local", n_neighbors=6).fit(D), ValueError, r"n_neighbors must be in 1\.\.5, got 6"),
    (lambda: GrassmannDictionary(5, init="best").fit(D), ValueError, "got 'best'"),
    (lambda: GrassmannDictionary(3, rng=0).fit(D).transform(core.random_subspaces(2, 5, 2)), ValueError, "X must have d = 12, as in fit, got 5"),
    (lambda: ProjectionKernel().fit(D).transform(core.random_subspaces(2, 5, 2)), ValueError, "X must have d = 12, as in fit, got 5"),
])
def test_bad_parameters_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    for module in [module for module in sys.modules if module.partition(".")[0] in ("sklearn", "estimators")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install 'grassmann_sc_kit\[sklearn\]'"):
        importlib.import_module("estimators")


# ---------------------------------------------------------------------------- kernel lift


@pytest.mark.parametrize("lift, kernel", [
    (KernelLift(gamma=0.02, p=2), kernels.rbf(0.02)), (KernelLift(p=2), kernels.rbf(kernels.median_gamma(SETS[TRAIN]))),
    (KernelLift(gamma=2.0, p=2, gamma_scale="median"), kernels.rbf(2 * kernels.median_gamma(SETS[TRAIN]))),
    (KernelLift("polynomial", p=2, degree=3, coef0=0.5), kernels.polynomial(3, 0.5)), (KernelLift("linear", p=2), kernels.linear()),
    (KernelLift(kernels.rbf(0.1), p=2), kernels.rbf(0.1))], ids=str)
def test_kernel_lift_and_coding_classifier_are_kernel_coding(lift, kernel):
    fitted = make_pipeline(lift, CodingClassifier()).fit(SETS[TRAIN], LABELS)
    codes = kernels.kgsc(SETS[TEST], SETS[TRAIN], 0.1, kernel=kernel, p=2)
    assert error(fitted.transform(SETS[TEST]), codes) <= 1e4 * LOOSE
    local = make_pipeline(lift, CodingClassifier("local")).fit(SETS[TRAIN], LABELS)
    assert error(local.transform(SETS[TEST]), kernels.kglc(SETS[TEST], SETS[TRAIN], 5, kernel=kernel, p=2)) <= 1e4 * LOOSE
    assert fitted.score(SETS[TEST], Y[TEST]) > 0.8


def test_kernel_lift_and_dictionary_are_kgdl():
    lift, rng = KernelLift(gamma=0.02, p=2), 0
    fitted = make_pipeline(lift, GrassmannDictionary(5, n_iter=3, rng=rng)).fit(SETS[TRAIN])
    learned = learn.kgdl(SETS[TRAIN], 5, 0.1, lift=kernels.Lift(kernels.rbf(0.02), 2), n_iter=3, rng=rng)
    assert error(fitted[-1].components_, learned.atoms) == 0 and (np.diff(learned.costs) <= TIGHT * learned.costs[0]).all()


@pytest.mark.parametrize("lift, kind, match", [
    (KernelLift("best", p=2), ValueError, "kernel must be 'rbf' or 'polynomial' or 'linear', got 'best'"),
    (KernelLift(gamma=-1.0, p=2), ValueError, "gamma must be positive, got -1"),
    (KernelLift(gamma_scale="mean", p=2), ValueError, "gamma_scale must be None or 'median', got 'mean'"),
    (KernelLift(p=0), ValueError, "p must be >= 1, got 0"),
    (KernelLift(p=7), ValueError, r"sets\[0\] must hold p = 7 .* numerical rank 4 "),
    (KernelLift(p=2, n_landmarks=0), ValueError, "n_landmarks must be >= 1, got 0")])
def test_wrong_parameters_of_the_kernel_lift_are_named(lift, kind, match):
    with pytest.raises(kind, match=match):
        lift.fit_transform(SETS[TRAIN])
