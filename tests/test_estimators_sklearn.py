"""Estimators leave no trace, work in scikit-learn's machinery and refuse what does not
fit.
"""

import importlib
import inspect
import multiprocessing
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import estimator_checks, get_tags

import grassmann_sc as core
from grassmann_sc import estimators, subspaces
from grassmann_sc.baselines import estimators as baselines
from grassmann_sc.baselines.estimators import TangentDictionary
from oracles import LOOSE, TIGHT, error, noisy_image_sets
from processes import ROOT, run_python
from rows import OnRows, answers_before_and_after_reuse, check_as_scikit_learn_does

PATIENCE = 600  # seconds after which a process or thread counts as hung
SETS, Y = noisy_image_sets()
X = subspaces.from_sets(SETS, 2)
TRAIN = slice(0, 40)
TEST = slice(40, 60)
D = X[TRAIN]
Q = X[TEST]
LABELS = Y[TRAIN]
K_DD = core.projection_kernel(D)
K_QD = core.projection_kernel(Q, D)

CLASSIFIERS = [
    estimators.NearestSubspace(),
    estimators.NearestSubspace("geodesic", 3),
    estimators.NearestSubspace("projection", 2),
    estimators.CodingClassifier(),
    estimators.CodingClassifier("local", n_neighbors=6),
    estimators.CodingClassifier(lam=0.05, lam_scale="max", rule="sum"),
    estimators.CodingClassifier("local", rule="max"),
    estimators.NearestSubspace(shrinkage=0.1),
    estimators.CodingClassifier(shrinkage=0.1),
    estimators.DiscriminativeDictionary(2, max_iter=5, random_state=0),
    estimators.DiscriminativeDictionary(
        1, sharpness=3.0, random_state=np.random.default_rng(1)
    ),
]
LEARNERS = [
    estimators.GrassmannDictionary(5, max_iter=3, random_state=0),
    estimators.GrassmannDictionary(
        5, "local", n_neighbors=2, max_iter=3, random_state=np.random.default_rng(1)
    ),
    estimators.GrassmannDictionary(5, lam_scale="max", max_iter=2, random_state=0),
    estimators.OnlineGrassmannDictionary(
        5, batch_size=16, random_state=np.random.default_rng(1)
    ),
    TangentDictionary(5, max_iter=2, random_state=0),
    TangentDictionary(
        4, "intrinsic", max_iter=2, random_state=np.random.default_rng(1)
    ),
    estimators.ProjectionKernel(),
]
CLUSTERERS = [
    estimators.SubspaceClustering(3, random_state=0),
    estimators.SubspaceClustering(2, lam=0.3, lam_scale=None, random_state=1),
]
TRANSFORMERS = [
    *LEARNERS,
    estimators.CodingClassifier(),
    estimators.CodingClassifier("local"),
]
ON_SETS = [
    estimators.ImageSetSubspaces(2),
    estimators.KernelLift(p=2),
    estimators.KernelLift("polynomial", p=2, n_landmarks=30, random_state=0),
]
ALL = [*CLASSIFIERS, *LEARNERS, *CLUSTERERS, *ON_SETS]


def name(estimator):
    return repr(estimator).replace("\n", "").partition("(PCG64")[0].replace(" ", "")


def data_of(estimator):
    on_sets = isinstance(
        estimator, (estimators.ImageSetSubspaces, estimators.KernelLift)
    )
    return SETS if on_sets else X


def answers(estimator, Z):
    """What each method says of Z; clusters are those of fit."""
    methods = ["predict", "predict_proba", "decision_function", "transform"]
    outputs = [
        getattr(estimator, method)(Z)
        for method in methods
        if hasattr(estimator, method)
    ]
    return outputs or [estimator.labels_]


def equal(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


each_estimator = pytest.mark.parametrize("estimator", ALL, ids=name)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)


# ---------------------------------------------------------------------------- no traces


def state_of(estimator):
    """Its parameters, and the state of its generator if it has one."""
    parameters = estimator.get_params()
    bits = getattr(parameters.get("random_state"), "bit_generator", None)
    return {key: repr(value) for key, value in parameters.items()}, repr(
        bits and bits.state
    )


@each_estimator
def test_refitting_leaves_no_trace_and_arguments_stay(estimator):
    Z = data_of(estimator)
    estimator = clone(estimator)
    before = state_of(estimator)
    once = answers(clone(estimator).fit(Z[:45], Y[:45]), Z[45:])
    if Z is SETS:
        other = [np.eye(9)[:4]] * 30
    else:
        other = subspaces.from_sets(
            noisy_image_sets(n=30, d=9, n_classes=4, seed=5)[0], 3
        )
    estimator.fit(other, np.arange(30) % 4)
    twice = answers(estimator.fit(Z[:45], Y[:45]), Z[45:])
    assert equal(once, twice)
    assert state_of(estimator) == before


@each_estimator
def test_what_is_learned_belongs_to_the_estimator(estimator):
    Z = data_of(estimator)
    before, after = answers_before_and_after_reuse(
        estimator, Z[:45], Y[:45], lambda fitted: answers(fitted, Z[45:])
    )
    assert equal(before, after)


@pytest.mark.parametrize(
    "estimator",
    [
        estimators.CodingClassifier(kernel="precomputed"),
        baselines.GDA("precomputed"),
        baselines.GGDA("precomputed"),
    ],
    ids=name,
)
def test_a_gram_matrix_that_was_learned_from_belongs_to_the_estimator(estimator):
    before, after = answers_before_and_after_reuse(
        estimator, K_DD, LABELS, lambda fitted: answers(fitted, K_QD)
    )
    assert equal(before, after)


def test_arrays_that_are_given_as_parameters_can_be_used_again():
    """They are read in fit; scikit-learn keeps the parameters themselves as they were
    given.
    """
    for estimator, name in [
        (estimators.GrassmannDictionary(3, init=D[:3].copy(), max_iter=0), "init"),
        (estimators.OnlineGrassmannDictionary(3, init=D[:3].copy()), "init"),
        (TangentDictionary(3, init=D[:3].copy(), max_iter=0, base=None), "init"),
        (TangentDictionary(3, base=D[0].copy(), max_iter=1, random_state=0), "base"),
    ]:
        fitted = estimator.fit(D)
        before = fitted.transform(Q)
        getattr(estimator, name)[...] = 7
        assert np.array_equal(fitted.transform(Q), before)


def test_each_estimator_has_its_case_of_these_laws():
    """Those that only compute rows of frames learn no more than a length."""
    learned = {type(estimator).__name__ for estimator in ALL}
    rows = {
        name
        for name in estimators.__all__
        if issubclass(getattr(estimators, name), estimators.SetsTransformer)
    }
    assert learned | rows >= set(estimators.__all__)


DRAWING = [estimator for estimator in ALL if "random_state" in estimator.get_params()]
GENERATORS = [np.random.default_rng, np.random.RandomState, np.random.SeedSequence]


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("estimator", DRAWING, ids=name)
def test_each_fit_draws_what_a_clone_with_an_equal_generator_does(estimator, generator):
    Z = data_of(estimator)
    ours = clone(estimator).set_params(random_state=generator(7))
    twin = clone(estimator).set_params(random_state=generator(7))
    once = answers(ours.fit(Z[:45], Y[:45]), Z[45:])
    assert equal(once, answers(twin.fit(Z[:45], Y[:45]), Z[45:]))
    assert equal(once, answers(ours.fit(Z[:45], Y[:45]), Z[45:]))


@pytest.mark.parametrize("estimator", DRAWING, ids=name)
def test_a_wrong_random_state_is_named(estimator):
    with pytest.raises(
        TypeError, match="random_state must be None, an integer .*got 'seed'"
    ):
        clone(estimator).set_params(random_state="seed").fit(data_of(estimator), Y)


def test_parameters_are_called_as_in_scikit_learn():
    """rng, seed and ridge are names of functions; n_iter of those that have no tol."""
    for module in (estimators, baselines):
        for name in module.__all__:
            parameters = set(inspect.signature(getattr(module, name)).parameters)
            assert not parameters & {"rng", "seed", "ridge"}
            assert not {"n_iter", "tol"} <= parameters


@each_estimator
def test_a_copy_on_disk_answers_alike(estimator, tmp_path):
    Z = data_of(estimator)
    estimator = clone(estimator).fit(Z, Y)
    joblib.dump(estimator, tmp_path / "fitted.joblib")
    assert equal(
        answers(estimator, Z), answers(joblib.load(tmp_path / "fitted.joblib"), Z)
    )


def test_pickles_name_one_module_and_load_in_a_fresh_process(tmp_path):
    fitted = [clone(estimator).fit(data_of(estimator), Y) for estimator in ALL]
    homes = {type(estimator).__module__ for estimator in fitted}
    assert homes == {"grassmann_sc.estimators", "grassmann_sc.baselines.estimators"}
    data = [SETS if data_of(estimator) is SETS else Q for estimator in fitted]
    (tmp_path / "fitted").write_bytes(pickle.dumps(list(zip(fitted, data))))
    program = """
import pickle
with open("fitted", "rb") as file:
    fitted = pickle.load(file)
def of(estimator, Z):
    for method in ("predict", "transform"):
        if hasattr(estimator, method):
            return getattr(estimator, method)(Z)
    return estimator.labels_
told = [of(estimator, Z) for estimator, Z in fitted]
with open("told", "wb") as file:
    pickle.dump(told, file)
"""
    run_python(program, cwd=tmp_path, PYTHONPATH=str(ROOT))
    outputs = pickle.loads((tmp_path / "told").read_bytes())
    for estimator, Z, theirs in zip(fitted, data, outputs, strict=True):
        ours = answers(estimator, Z)[0]
        same = np.array_equal(ours, theirs)
        assert same or ours.dtype.kind == "f" and error(ours, theirs) <= TIGHT


@each_estimator
def test_read_only_input_is_taken_and_not_changed(estimator):
    Z = SETS if data_of(estimator) is SETS else X.copy()
    kept = [np.array(part) for part in Z]
    for part in Z:
        part.setflags(write=False)
    answers(clone(estimator).fit(Z, Y), Z)
    assert equal(kept, Z)


# ---------------------------------------------------------- in scikit-learn's machinery


def grid(seed=0, **options):
    """A search over p, lambda and C."""
    dictionary = estimators.GrassmannDictionary(6, max_iter=2, random_state=seed)
    pipeline = make_pipeline(
        estimators.ImageSetSubspaces(2), dictionary, StandardScaler(), SVC()
    )
    parameters = {
        "imagesetsubspaces__p": [1, 2],
        "grassmanndictionary__lam": [0.05, 0.2],
        "svc__C": [1, 10],
    }
    return GridSearchCV(pipeline, parameters, cv=3, error_score="raise", **options)


def test_search_over_a_pipeline_with_two_processes_equals_one():
    serial = grid().fit(SETS, Y)
    parallel = grid(n_jobs=2).fit(SETS, Y)
    assert serial.best_score_ > 0.8
    assert serial.best_params_ == parallel.best_params_
    assert np.array_equal(
        serial.cv_results_["mean_test_score"], parallel.cv_results_["mean_test_score"]
    )
    assert np.array_equal(serial.predict(SETS), parallel.predict(SETS))


def test_search_in_threads_equals_one():
    serial = grid().fit(SETS, Y)
    with joblib.parallel_backend("threading"):
        threaded = grid(n_jobs=2).fit(SETS, Y)
    assert np.array_equal(
        serial.cv_results_["mean_test_score"], threaded.cv_results_["mean_test_score"]
    )


def test_kernel_rows_in_a_pipeline_and_search():
    pipeline = make_pipeline(
        estimators.ImageSetSubspaces(2),
        estimators.ProjectionKernel(),
        SVC(kernel="precomputed"),
    )
    parameters = {"imagesetsubspaces__p": [1, 2, 3], "svc__C": [0.1, 10]}
    search = GridSearchCV(pipeline, parameters, cv=3, error_score="raise").fit(
        SETS[TRAIN], LABELS
    )
    p = search.best_params_["imagesetsubspaces__p"]
    K = core.projection_kernel(subspaces.from_sets(SETS, p))
    svm = SVC(C=search.best_params_["svc__C"], kernel="precomputed").fit(
        K[TRAIN, TRAIN], LABELS
    )
    assert np.array_equal(search.predict(SETS[TEST]), svm.predict(K[TEST, TRAIN]))
    assert search.score(SETS[TEST], Y[TEST]) > 0.8


def test_search_on_a_gram_matrix_equals_the_search_on_subspaces():
    lams = {"lam": [0.003, 0.03, 0.3, 0.9]}
    precomputed = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")
    on_gram = GridSearchCV(precomputed, lams, cv=4).fit(K_DD, LABELS)
    on_subspaces = estimators.CodingClassifier(lam_scale="max")
    on_subspaces = GridSearchCV(on_subspaces, lams, cv=4).fit(D, LABELS)
    for key in ("mean_test_score", "std_test_score"):
        assert np.array_equal(on_gram.cv_results_[key], on_subspaces.cv_results_[key])
    assert np.array_equal(on_gram.predict(K_QD), on_subspaces.predict(Q))


@each_classifier
def test_probabilities_rise_with_the_decision(estimator):
    estimator = clone(estimator).fit(D, LABELS)
    shares = estimator.predict_proba(Q)
    assert error(shares.sum(axis=1), 1) <= TIGHT
    assert (shares >= 0).all()
    assert np.array_equal(
        estimator.classes_[shares.argmax(axis=1)], estimator.predict(Q)
    )
    if hasattr(estimator, "decision_function"):
        order = estimator.decision_function(Q).argsort(axis=1, kind="stable")
        assert np.array_equal(shares.argsort(axis=1, kind="stable"), order)


@each_classifier
def test_cross_validation_is_better_than_chance(estimator):
    assert cross_val_score(estimator, X, Y, cv=3, error_score="raise").mean() > 0.6


def test_four_threads_that_code_at_once_get_the_same_codes():
    fitted = [
        estimators.CodingClassifier().fit(D, LABELS),
        estimators.CodingClassifier("local").fit(D, LABELS),
    ]
    alone = [estimator.transform(Q) for estimator in fitted]
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(fitted[i % 2].transform, Q) for i in range(16)]
        codes = [job.result(timeout=PATIENCE) for job in jobs]
    assert equal(codes, alone * 8)


START_METHODS = [
    method
    for method in ("fork", "spawn")
    if method in multiprocessing.get_all_start_methods()
]


@pytest.mark.parametrize("method", START_METHODS)
def test_a_child_process_codes_after_its_parent_did(method):
    estimator = estimators.CodingClassifier().fit(D, LABELS)
    codes = estimator.transform(Q)
    with multiprocessing.get_context(method).Pool(1) as pool:
        job = pool.apply_async(estimator.transform, (Q,))
        assert np.array_equal(job.get(timeout=PATIENCE), codes)


def test_weights_are_routed_to_the_step_that_asks_for_them():
    weights = np.linspace(0.1, 3, 40)
    with config_context(enable_metadata_routing=True):
        svm = SVC(kernel="precomputed").set_fit_request(sample_weight=True)
        pipeline = make_pipeline(estimators.ProjectionKernel(), svm)
        decision = pipeline.fit(D, LABELS, sample_weight=weights).decision_function(Q)
    weighted = SVC(kernel="precomputed").fit(K_DD, LABELS, weights)
    plain = SVC(kernel="precomputed").fit(K_DD, LABELS)
    assert error(decision, weighted.decision_function(K_QD)) <= LOOSE
    assert error(decision, plain.decision_function(K_QD)) > 1e-3


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name)
def test_columns_have_names(estimator):
    estimator = clone(estimator).fit(D, LABELS)
    names = estimator.get_feature_names_out()
    n_columns = estimator.transform(Q).shape[1]
    assert list(names) == [
        f"{type(estimator).__name__.lower()}{i}" for i in range(n_columns)
    ]
    pipeline = make_pipeline(estimators.ImageSetSubspaces(2), estimator).fit(SETS, Y)
    pipeline.set_output(transform="default")
    assert (
        len(pipeline.get_feature_names_out()) == pipeline.transform(SETS[:2]).shape[1]
    )


@each_estimator
def test_tags_tell_of_input_and_kind(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.three_d_array
    assert not tags.input_tags.two_d_array
    assert not tags.input_tags.pairwise
    assert (
        is_classifier(estimator)
        == hasattr(estimator, "predict")
        == tags.target_tags.required
    )
    assert (tags.transformer_tags is not None) == hasattr(estimator, "transform")


def test_tags_tell_of_gram_rows():
    tags = get_tags(estimators.CodingClassifier(kernel="precomputed")).input_tags
    assert tags.pairwise
    assert tags.two_d_array
    assert not tags.three_d_array


# ------------------------------------------------------------ scikit-learn's own checks


class NearestSubspaceOnRows(OnRows, estimators.NearestSubspace):
    pass


class CodingClassifierOnRows(OnRows, estimators.CodingClassifier):
    pass


class DiscriminativeDictionaryOnRows(OnRows, estimators.DiscriminativeDictionary):
    pass


class GrassmannDictionaryOnRows(OnRows, estimators.GrassmannDictionary):
    pass


class SubspaceClusteringOnRows(OnRows, estimators.SubspaceClustering):
    pass


class ProjectionKernelOnRows(OnRows, estimators.ProjectionKernel):
    pass


# Checks that do not apply, with the reason. Two estimators cannot run any:
# ImageSetSubspaces, whose input is a sequence of arrays and whose output has three
# axes, and CodingClassifier(kernel= "precomputed"), as the Gram matrices of the checks
# have diagonals that vary. The tests above are theirs.
DRAWN = (
    "the first atoms are drawn, others from repeated samples: as KMeans in scikit-learn"
)
NOT_APPLICABLE = {
    "GrassmannDictionaryOnRows": {
        "check_fit2d_1sample": "one sample cannot start two atoms: the error names n_atoms",
        "check_sample_weight_equivalence_on_dense_data": DRAWN,
    },
    "DiscriminativeDictionaryOnRows": {
        "check_sample_weight_equivalence_on_dense_data": DRAWN,
    },
}
# By scikit-learn itself: SCIPY_ARRAY_API is not set, and pandas is missing.
CHECKED_CLASSIFIERS = [
    CodingClassifierOnRows(),
    CodingClassifierOnRows("local", n_neighbors=1),
]
CHECKED_TRANSFORMERS = [
    *CHECKED_CLASSIFIERS,
    GrassmannDictionaryOnRows(2, max_iter=1, random_state=0),
    ProjectionKernelOnRows(),
]
CHECKED = [
    NearestSubspaceOnRows(),
    NearestSubspaceOnRows("geodesic"),
    DiscriminativeDictionaryOnRows(1, max_iter=3, random_state=0),
    SubspaceClusteringOnRows(2, random_state=0),
    *CHECKED_TRANSFORMERS,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED, ids=name)
def test_scikit_learns_estimator_checks(estimator):
    expected = NOT_APPLICABLE.get(type(estimator).__name__, {})
    check_as_scikit_learn_does(estimator, expected)


@pytest.mark.parametrize("estimator", CHECKED_TRANSFORMERS, ids=name)
def test_scikit_learns_checks_of_output(estimator):
    kind = type(estimator).__name__
    estimator_checks.check_transformer_get_feature_names_out(kind, estimator)
    estimator_checks.check_set_output_transform(kind, estimator)


# -------------------------------------------------------------------------- wrong input


def test_a_class_that_is_alone_once_weights_are_zero_is_named():
    model = estimators.DiscriminativeDictionary(1, random_state=0)
    with pytest.raises(ValueError, match="with weight must hold at least two classes"):
        model.fit(D[:4], list("abab"), sample_weight=[1, 0, 1, 0])


OTHER_D = core.random_subspaces(3, 11, 2)
BAD_CALLS = {
    "none": (
        lambda e: e.fit(D, None),
        r"y must be one label a subspace, \(n,\), got None",
    ),
    "one class": (
        lambda e: e.fit(D, ["one"] * 40),
        "y must hold at least two classes, got one class: .*one",
    ),
    "length": (
        lambda e: e.fit(D, LABELS[:39]),
        "y must have length 40, one for each of the subspaces, got 39",
    ),
    "continuous": (
        lambda e: e.fit(D, np.linspace(0, 1, 40)),
        r"Unknown label type: continuous numbers such as 0\.0256",
    ),
    "missing": (
        lambda e: e.fit(D, np.array([None, *LABELS[1:]], object)),
        "y must have no missing labels, got None",
    ),
    "nan": (
        lambda e: e.fit(D, [np.nan, *range(39)]),
        "y must have no missing labels, got nan",
    ),
    "other d": (
        lambda e: e.fit(D, LABELS).predict(OTHER_D),
        "X must have d = 12, as in fit, got d = 11",
    ),
}


@each_classifier
@pytest.mark.parametrize("call, message", BAD_CALLS.values(), ids=BAD_CALLS)
def test_classifiers_refuse(estimator, call, message):
    with pytest.raises(ValueError, match=message):
        call(clone(estimator))


METHODS = [
    "predict",
    "predict_proba",
    "decision_function",
    "transform",
    "distances",
    "kneighbors",
]


@each_estimator
def test_use_before_fit_is_refused(estimator):
    message = f"This {type(estimator).__name__} instance is not fitted yet"
    for method in METHODS:
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError, match=message):
                getattr(clone(estimator), method)(data_of(estimator))


WITH_NAN = D.copy()
WITH_NAN[7] = np.nan


@pytest.mark.parametrize("estimator", [*CLASSIFIERS, *LEARNERS], ids=name)
@pytest.mark.parametrize(
    "Z, error, message",
    [
        (
            2 * D,
            ValueError,
            "X must have orthonormal columns: .* differs from I by 3 at index 0",
        ),
        (
            D[:, :, 0],
            ValueError,
            r"X must have 3 dimensions \(n, d, p\), got shape \(40, 12\)",
        ),
        (
            D[:0],
            ValueError,
            r"X must hold at least one subspace, got shape \(0, 12, 2\)",
        ),
        (
            WITH_NAN,
            ValueError,
            "X must be finite, got NaN or infinity in the basis at index 7",
        ),
        (1j * D, TypeError, "X must hold real numbers, got dtype complex128"),
        (D.astype(str), TypeError, "X must hold real numbers, got dtype <U"),
    ],
    ids=["scaled", "2-D", "empty", "NaN", "complex", "text"],
)
def test_what_are_no_subspaces_is_refused(estimator, Z, error, message):
    with pytest.raises(error, match=message):
        clone(estimator).fit(Z, LABELS)


NO_SETS = "sets must hold at least one set of frames, got none"


@pytest.mark.parametrize(
    "p, sets, error, message",
    [
        (13, SETS, ValueError, "p must be at most d = 12"),
        (0, SETS, ValueError, "p must be >= 1, got 0"),
        (1.5, SETS, TypeError, "p must be an integer, got 1.5"),
        (2, [], ValueError, NO_SETS),
    ],
    ids=["13", "0", "1.5", "no sets"],
)
def test_wrong_parameters_of_image_set_subspaces_are_named(p, sets, error, message):
    for method in ("fit", "fit_transform"):
        with pytest.raises(error, match=message):
            getattr(estimators.ImageSetSubspaces(p), method)(sets)


def test_sets_of_several_d_are_refused():
    with pytest.raises(ValueError, match=r"sets\[0\] has d = 12, sets\[3\] has d = 11"):
        estimators.ImageSetSubspaces(2).fit_transform([*SETS[:3], np.ones((4, 11))])


@pytest.mark.parametrize(
    "sets, message",
    [
        ([np.eye(9)], r"X must give vectors of d = 12, as in fit: X\[0\] gives 9"),
        ([], NO_SETS),
    ],
)
def test_sets_unlike_those_of_fit_are_refused(sets, message):
    with pytest.raises(ValueError, match=message):
        estimators.ImageSetSubspaces(2).fit(SETS).transform(sets)


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"metric": "cosine"},
            "metric must be 'chordal', 'geodesic' or 'projection', got 'cosine'",
        ),
        ({"n_neighbors": 41}, r"n_neighbors must be in 1\.\.40, got 41"),
    ],
)
def test_wrong_parameters_of_the_nearest_subspace_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        estimators.NearestSubspace(**options).fit(D, LABELS)


@pytest.mark.parametrize(
    "options, error, message",
    [
        (
            {"coding": "dense"},
            ValueError,
            "coding must be 'sparse' or 'local', got 'dense'",
        ),
        (
            {"rule": "min"},
            ValueError,
            "rule must be None, 'residual', 'sum' or 'max', got 'min'",
        ),
        (
            {"lam_scale": "mean"},
            ValueError,
            "lam_scale must be None or 'max', got 'mean'",
        ),
        (
            {"kernel": "rbf"},
            ValueError,
            "kernel must be 'projection' or 'precomputed', got 'rbf'",
        ),
        (
            {"coding": "local", "n_neighbors": 41},
            ValueError,
            r"n_neighbors must be in 1\.\.40, got 41",
        ),
        ({"lam": -1}, ValueError, "lam must be >= 0, got -1"),
        ({"lam": [0.1, 0.2]}, ValueError, r"lam must be one number, got shape \(2,\)"),
        ({"lam": "0.1"}, TypeError, "lam must hold real numbers"),
    ],
)
def test_wrong_parameters_of_the_coding_classifier_are_named(options, error, message):
    with pytest.raises(error, match=message):
        estimators.CodingClassifier(**options).fit(D, LABELS)


@pytest.mark.parametrize(
    "K, message",
    [
        (K_QD, r"X must be a square matrix .* got shape \(20, 40\)"),
        (K_DD * np.arange(1, 41), "X must be symmetric, got entries that differ by"),
        (
            K_DD * np.outer(np.arange(1, 41), np.arange(1, 41)),
            "constant positive diagonal, .* got 2 to 3200",
        ),
    ],
)
def test_wrong_gram_matrices_are_refused(K, message):
    with pytest.raises(ValueError, match=message):
        estimators.CodingClassifier(kernel="precomputed").fit(K, LABELS)


def test_wrong_gram_rows_are_refused():
    fitted = estimators.CodingClassifier(kernel="precomputed").fit(K_DD, LABELS)
    with pytest.raises(
        ValueError, match=r"X must have shape \(n, 40\), .* got \(20, 9\)"
    ):
        fitted.predict(K_QD[:, :9])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"atoms_per_class": 0}, "atoms_per_class must be >= 1, got 0"),
        ({"sharpness": -1.0}, r"sharpness must be in \(0, .*, got -1.0"),
        ({"reg": 0}, "reg must be >= 0.0001, got 0"),
        ({"max_iter": -1}, "max_iter must be >= 0, got -1"),
    ],
)
def test_wrong_parameters_of_the_discriminative_dictionary_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        estimators.DiscriminativeDictionary(**options).fit(D, LABELS)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_atoms": 0}, "n_atoms must be .* got 0"),
        ({"n_atoms": 41}, r"n_atoms must be in 1\.\.40, got 41"),
        (
            {"n_atoms": 5, "coding": "dense"},
            "coding must be 'sparse' or 'local', got 'dense'",
        ),
        (
            {"n_atoms": 5, "lam": np.nan, "lam_scale": "max"},
            "lam must be finite, got nan",
        ),
        (
            {"n_atoms": 5, "coding": "local", "n_neighbors": 6},
            r"n_neighbors must be in 1\.\.5, got 6",
        ),
        ({"n_atoms": 5, "init": "best"}, "got 'best'"),
    ],
)
def test_wrong_parameters_of_the_dictionary_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        estimators.GrassmannDictionary(**options).fit(D)


@pytest.mark.parametrize("estimator", LEARNERS, ids=name)
def test_subspaces_unlike_those_of_fit_are_refused(estimator):
    fitted = clone(estimator).fit(D)
    with pytest.raises(ValueError, match="X must have d = 12, as in fit, got d = 11"):
        fitted.transform(OTHER_D)


@pytest.mark.parametrize(
    "options, error, message",
    [
        (
            {"kernel": "best"},
            ValueError,
            "kernel must be 'rbf', .*'linear'.*, got 'best'",
        ),
        ({"gamma": -1.0}, ValueError, "gamma must be positive, got -1"),
        (
            {"gamma_scale": "mean"},
            ValueError,
            "gamma_scale must be None or 'median', got 'mean'",
        ),
        ({"p": 0}, ValueError, "p must be >= 1, got 0"),
        ({"p": 7}, ValueError, r"sets\[0\] must hold p = 7 .* numerical rank 4 "),
        ({"n_landmarks": 0}, ValueError, "n_landmarks must be >= 1, got 0"),
    ],
)
def test_wrong_parameters_of_the_kernel_lift_are_named(options, error, message):
    with pytest.raises(error, match=message):
        estimators.KernelLift(**{"p": 2, **options}).fit_transform(SETS[TRAIN])


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    for module in list(sys.modules):
        if module.partition(".")[0] == "sklearn" or module == "grassmann_sc.estimators":
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"pip install scikit-learn"):
        importlib.import_module("grassmann_sc.estimators")
