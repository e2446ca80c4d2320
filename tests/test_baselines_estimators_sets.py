"""The estimators of the baselines on sets: what they compute, in scikit-learn's
machinery, and what they refuse.
"""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

import grassmann_sc as core
from grassmann_sc import estimators, intrinsic, kernels, subspaces
from grassmann_sc.baselines import estimators as baselines
from grassmann_sc.baselines import hulls, sets, tangent
from grassmann_sc.baselines.estimators import (
    DCC,
    GDA,
    GGDA,
    ISC,
    KAHM,
    MSM,
    LogEuclideanSC,
    first_of_ties,
)
from grassmann_sc.strategies import rotation
from oracles import LOOSE, TIGHT, error, noisy_image_sets
from rows import (
    OnRows,
    OnSetsOfRows,
    answers_before_and_after_reuse,
    check_as_scikit_learn_does,
    refuses_changes,
)

SETS, Y = noisy_image_sets()
X = subspaces.from_sets(SETS, 2)
D = X[:40]
LABELS = Y[:40]
Q = X[40:]

ON_SUBSPACES = [
    DCC(),
    DCC(5, n_angles=1, reg=0.1),
    GDA(),
    GDA("correlation", n_angles=1, rule="mean"),
    GDA("binet-cauchy", mix=0.5),
    GDA(core.projection_kernel, reg=0.1),
]
ON_SUBSPACES += [
    GGDA(),
    GGDA("projection", mix=0, beta=0.1, rule="mean"),
]
ON_SUBSPACES += [
    ISC(),
    LogEuclideanSC(lam_scale="max"),
    LogEuclideanSC("mean", lam=0.01, positive=True),
]
ON_SETS = [
    MSM(2),
    MSM(2, 3, reference="set", n_angles=1),
    MSM(2, 4, keep=0.8),
    MSM(2, 3, whiten=True),
    MSM(1, 2, kernel="rbf", whiten=True, n_landmarks=60, random_state=0),
    MSM(2, 4, kernel="rbf"),
    MSM(1, 3, kernel="polynomial", keep=0.9, n_landmarks=40, random_state=0),
]
ON_SETS += [
    KAHM(share=0.6),
    KAHM(kernel="rbf", dimension=1),
    KAHM("convex", bound=0.5),
    KAHM("convex", kernel="rbf", gamma_scale="median", gamma=0.5),
]
ALL = [*ON_SUBSPACES, *ON_SETS]


def name(estimator):
    return repr(estimator).replace("\n", "").replace(" ", "").partition("<")[0]


def data_of(estimator):
    return SETS if isinstance(estimator, tuple({type(case) for case in ON_SETS})) else X


def answers(estimator, Z):
    """What each method says of Z."""
    methods = ["predict", "decision_function", "transform", "class_scores", "distances"]
    return [
        getattr(estimator, method)(Z)
        for method in methods
        if hasattr(estimator, method)
    ]


def equal(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


each_estimator = pytest.mark.parametrize("estimator", ALL, ids=name)


# -------------------------------------------------------------------- what they compute


@pytest.mark.parametrize("rule", ["neighbor", "mean"])
def test_gda_takes_the_nearest_coordinates(rule):
    K = core.projection_kernel(D)
    coefficients = sets.gda(K, LABELS).coefficients
    train = K @ coefficients
    queries = core.projection_kernel(Q, D) @ coefficients
    if rule == "mean":
        train = np.stack([train[LABELS == c].mean(axis=0) for c in np.unique(LABELS)])
    names = LABELS if rule == "neighbor" else np.unique(LABELS)
    nearest = np.square(queries[:, None] - train).sum(axis=2).argmin(axis=1)
    fitted = GDA(rule=rule).fit(D, LABELS)
    assert np.array_equal(fitted.predict(Q), names[nearest])
    assert error(fitted.transform(Q), queries) < LOOSE


def test_gda_on_a_gram_matrix_equals_gda_on_subspaces():
    kernel = core.projection_kernel
    on_gram = GDA("precomputed")
    search = GridSearchCV(on_gram, {"reg": [1e-4, 1e-1]}, cv=3, error_score="raise")
    search.fit(kernel(D), LABELS)
    same = GridSearchCV(GDA(), {"reg": [1e-4, 1e-1]}, cv=3).fit(D, LABELS)
    assert np.array_equal(
        search.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"]
    )
    assert np.array_equal(search.predict(kernel(Q, D)), same.predict(Q))
    assert get_tags(on_gram).input_tags.pairwise


def test_mixtures_are_sums_of_kernels():
    half = GDA("correlation", mix=0.25).fit(D, LABELS)
    K = 0.25 * core.projection_kernel(D) + 0.75 * sets.correlation_kernel(D)
    assert error(half.coefficients_, sets.gda(K, LABELS).coefficients) < LOOSE


def test_ggda_is_the_function_on_a_mixture():
    K = 0.5 * core.projection_kernel(D) + 0.5 * sets.correlation_kernel(D, n_angles=1)
    result = sets.ggda(K, LABELS, beta=0.3)
    fitted = GGDA(beta=0.3).fit(D, LABELS)
    assert error(fitted.values_ / result.values, 1) < LOOSE
    assert fitted.negative_share_ == pytest.approx(result.negative_share)
    coordinates = K @ result.coefficients
    apart = np.square(coordinates[:, None] - coordinates).sum(axis=2)
    fitted = fitted.transform(D)
    assert (
        error(np.square(fitted[:, None] - fitted).sum(axis=2), apart)
        < LOOSE * apart.max()
    )


def test_dcc_without_iterations_is_the_nearest_set_by_canonical_correlations():
    nearest = sets.correlation_kernel(Q, D).argmax(axis=1)
    fitted = DCC(max_iter=0).fit(D, LABELS)
    assert fitted.transform_ is None and fitted.n_iter_ == 0
    assert np.array_equal(fitted.predict(Q), LABELS[nearest])


def test_dcc_compares_images_of_bases():
    T = sets.dcc(D, LABELS, dimension=5).transform
    bases = [sets.image_bases(some, T)[0] for some in (Q, D)]
    similarity = sets.correlation_kernel(*bases, 1)
    fitted = DCC(5, n_angles=1).fit(D, LABELS)
    assert np.array_equal(fitted.predict(Q), LABELS[similarity.argmax(axis=1)])
    assert error(fitted.class_scores(Q).max(axis=1), similarity.max(axis=1)) < LOOSE


def test_what_dcc_shares_does_not_depend_on_dimension_and_reg():
    made = {}
    for dimension in (5, None):
        for reg in (1e-3, 0.1):
            shared = DCC(dimension, reg=reg)
            shared.made = made
            alone = DCC(dimension, reg=reg).fit(D, LABELS)
            assert np.array_equal(
                shared.fit(D, LABELS).class_scores(Q), alone.class_scores(Q)
            )
    assert len(made) == 1


def test_isc_takes_the_class_of_least_residual():
    codes = tangent.intrinsic_codes(Q, D, 0.05)
    fitted = ISC(0.05).fit(D, LABELS)
    residuals, classes = core.class_residuals(
        codes, core.projection_kernel(D), core.projection_kernel(Q, D), LABELS, norm2=2
    )
    assert np.array_equal(fitted.predict(Q), classes[residuals.argmin(axis=1)])
    explicit = np.einsum("nj,jab->njab", codes, D @ D.swapaxes(1, 2))
    for label, scores in zip(fitted.classes_, fitted.class_scores(Q).T):
        rest = Q @ Q.swapaxes(1, 2) - explicit[:, LABELS == label].sum(axis=1)
        used = codes[:, LABELS == label].any(axis=1)
        residual = np.square(rest).sum(axis=(1, 2))
        assert error(2 - scores[used], residual[used]) < LOOSE


@pytest.mark.parametrize("base", [None, "mean", X[50]], ids=["axes", "mean", "basis"])
def test_log_euclidean_coding_takes_the_class_of_least_residual(base):
    fitted = LogEuclideanSC(base, lam=0.05).fit(D, LABELS)
    codes = tangent.log_euclidean_codes(Q, D, 0.05, base)
    x, d = (intrinsic.log_map(fitted.base_, A).reshape(len(A), -1) for A in (Q, D))
    of_class = [codes[:, LABELS == c] @ d[LABELS == c] for c in fitted.classes_]
    residuals = [np.square(x - part).sum(axis=1) for part in of_class]
    expected = fitted.classes_[np.argmin(residuals, axis=0)]
    apart = np.square(x).sum(axis=1) > 1e-20  # from the base, where all classes tie
    assert np.array_equal(fitted.predict(Q)[apart], expected[apart])
    assert fitted.base_.shape == (12, 2)


def test_classes_on_opposite_sides_of_the_base_are_told_apart_by_positive_codes():
    t = np.array([0.5, 0.6, -0.5, -0.6])  # angles of lines to the base, the first axis
    lines = np.stack([np.cos(t), np.sin(t)], axis=1)[..., None]
    model = LogEuclideanSC(lam=0.01, positive=True).fit(lines[::2], ["up", "down"])
    assert model.predict(lines[1::2]).tolist() == ["up", "down"]
    signed = LogEuclideanSC(lam=0.01).fit(lines[::2], ["up", "down"])
    up, down = np.sort(signed.class_scores(lines[1::2]), axis=1)
    assert error(up, down) < LOOSE  # the same for both, whichever class has it


def test_what_a_query_takes_its_label_from_is_scaled_by_its_own_lam_max():
    """At lam_max and above a code is zero, and the nearest atom wins."""
    fitted = LogEuclideanSC("mean", lam=0.5, lam_scale="max").fit(D, LABELS)
    grams = tangent.tangent_grams(Q, D, fitted.base_)
    lams = 0.5 * core.lam_max(grams.K_xd)
    for i, lam in enumerate(lams):
        alone = LogEuclideanSC("mean", lam=float(lam)).fit(D, LABELS)
        scores = alone.class_scores(Q[i : i + 1])
        assert error(scores, fitted.class_scores(Q)[i]) < LOOSE


def test_msm_is_the_mean_squared_cosine_with_the_class_subspace():
    references = [
        np.concatenate([SETS[i] for i in np.flatnonzero(LABELS == c)])
        for c in np.unique(LABELS)
    ]
    references = subspaces.from_sets(references, 4)
    c = np.linalg.svd(np.einsum("ndp,mdq->nmpq", Q, references), compute_uv=False)
    fitted = MSM(2, 4, n_angles=1).fit(SETS[:40], LABELS)
    assert error(fitted.class_scores(SETS[40:]), c[:, :, 0] ** 2) < TIGHT
    fitted = MSM(2, 4).fit(SETS[:40], LABELS)
    assert error(fitted.class_scores(SETS[40:]), np.square(c).mean(axis=2)) < TIGHT


def test_msm_of_sets_is_the_nearest_subspace():
    fitted = MSM(2, reference="set").fit(SETS[:40], LABELS)
    nearest = estimators.NearestSubspace().fit(D, LABELS)
    assert np.array_equal(fitted.predict(SETS[40:]), nearest.predict(Q))


@pytest.mark.parametrize("estimator", [MSM(2, 4), KAHM()], ids=name)
def test_a_name_or_a_pair_names_a_kernel_as_an_object_does(estimator):
    median = kernels.median_gamma(SETS[:40])
    for kernel, same in [
        ("linear", kernels.linear()),
        ("polynomial", kernels.polynomial(2, 1.0)),
        (("polynomial", 3), kernels.polynomial(3, 1.0)),
        ("rbf", kernels.rbf(median)),
        (("rbf", 0.5), kernels.rbf(0.5)),
    ]:
        named, given = (
            clone(estimator).set_params(kernel=form).fit(SETS[:40], LABELS)
            for form in (kernel, same)
        )
        assert np.array_equal(
            named.class_scores(SETS[40:]), given.class_scores(SETS[40:])
        )
    projection = GDA("projection").fit(D, LABELS).class_scores(Q)
    assert (
        error(projection, GDA(core.projection_kernel).fit(D, LABELS).class_scores(Q))
        < LOOSE
    )


@pytest.mark.parametrize(
    "options", [{}, {"keep": 0.7}, {"whiten": True}, {"n_landmarks": 12}]
)
def test_kernel_msm_of_the_linear_kernel_is_msm(options):
    """12 frames span what all do."""
    line = kernels.polynomial(1, 0.0)
    same = {name: options[name] for name in options if name != "n_landmarks"}
    plain = MSM(2, 4, **same).fit(SETS[:40], LABELS)
    lifted = MSM(2, 4, kernel=line, random_state=0, **options).fit(SETS[:40], LABELS)
    assert error(plain.class_scores(SETS[40:]), lifted.class_scores(SETS[40:])) < LOOSE


def test_constrained_msm_is_msm_of_projected_bases():
    fitted = MSM(2, 4, keep=0.6).fit(SETS[:40], LABELS)
    plain = MSM(2, 4).fit(SETS[:40], LABELS)
    G = sets.difference_subspace(plain.references_, 0.6)
    images = [sets.image_bases(bases, G)[0] for bases in (Q, plain.references_)]
    similarity = sets.cosine_sums(*images, 2, 2) / 2
    assert error(fitted.class_scores(SETS[40:]), similarity) < TIGHT
    everything = MSM(2, 4, keep=1.0).fit(SETS[:40], LABELS)
    assert (
        error(everything.class_scores(SETS[40:]), plain.class_scores(SETS[40:])) < TIGHT
    )


def whitened(D):
    """The whitening (r, d) of subspaces D by the dense sum of their projectors."""
    values, vectors = np.linalg.eigh(np.einsum("ndp,nep->de", D, D))
    kept = values > 1e-9
    return vectors[:, kept].T / np.sqrt(values[kept])[:, None]


def test_orthogonal_msm_is_msm_of_whitened_bases():
    references = MSM(2, 3).fit(SETS[:40], LABELS).references_
    W = whitened(references)
    images = np.linalg.qr(W @ references)[0]
    queries = np.linalg.qr(W @ Q)[0]
    cosines = np.linalg.svd(
        np.einsum("ndp,mdq->nmpq", queries, images), compute_uv=False
    )
    for n_angles in (1, 2):
        fitted = MSM(2, 3, n_angles=n_angles, whiten=True).fit(SETS[:40], LABELS)
        expected = np.square(cosines[..., :n_angles]).mean(axis=2)
        assert error(fitted.class_scores(SETS[40:]), expected) < LOOSE


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_whitened_references_of_independent_classes_are_orthogonal(kernel):
    """Five classes of three directions in R^20; in a kernel's space they are independent."""
    rng = np.random.default_rng(0)
    wide = [rng.standard_normal((6, 20)) for _ in range(10)]
    fitted = MSM(3, kernel=kernel, whiten=True).fit(wide, [*range(5)] * 2)
    R = np.concatenate([*fitted.references_], axis=1)
    assert error(R.T @ R, np.eye(15)) < LOOSE


def test_whitening_is_not_done_with_a_difference_subspace():
    with pytest.raises(ValueError, match="keep must be None with whiten=True, got 0.5"):
        MSM(2, keep=0.5, whiten=True).fit(SETS[:40], LABELS)


@pytest.mark.parametrize(
    "estimator", [case for case in ON_SETS if hasattr(case, "hull")], ids=name
)
def test_kahm_takes_the_nearest_hull(estimator):
    fitted = clone(estimator).fit(SETS[:40], LABELS)
    if estimator.hull == "affine":
        function = hulls.affine_hull_distances
        options = {"dimension": estimator.dimension, "share": estimator.share}
    else:
        function = hulls.convex_hull_distances
        options = {"bound": estimator.bound}
    if estimator.kernel == "rbf":
        gamma = kernels.median_gamma(SETS[:40]) * (estimator.gamma or 1)
        options["kernel"] = kernels.rbf(gamma)
    distances = function(SETS[40:], SETS[:40], **options)
    assert np.array_equal(fitted.distances(SETS[40:]), distances)
    assert np.array_equal(fitted.predict(SETS[40:]), LABELS[distances.argmin(axis=1)])


def test_kahm_warns_of_queries_that_meet_several_classes():
    rng = np.random.default_rng(0)
    crowded = [rng.standard_normal((9, 3)) for _ in range(6)]
    fitted = KAHM(share=1.0).fit(crowded[:4], [0, 0, 1, 1])
    message = "2 of 2 queries have affine hulls that meet hulls of several classes"
    with pytest.warns(UserWarning, match=message) as record:
        fitted.predict(crowded[4:])
    assert len(record) == 1
    with warnings.catch_warnings():  # a set's own hull is that of its class
        warnings.simplefilter("error")
        far = [rng.standard_normal((3, 40)) for _ in range(4)]
        KAHM().fit(far, [0, 0, 1, 1]).predict(far)


@pytest.mark.parametrize("hull", ["affine", "convex"])
def test_a_far_class_changes_no_label_of_kahm(hull):
    two = KAHM(hull).fit(SETS[:40], LABELS)
    far = [frames + 1e9 for frames in SETS[:3]]
    three = KAHM(hull).fit([*far, *SETS[:40]], [9, 9, 9, *LABELS])
    assert np.array_equal(three.predict(SETS[40:]), two.predict(SETS[40:]))
    assert error(three.distances(SETS[40:])[:, 3:], two.distances(SETS[40:])) < TIGHT


def test_msm_in_a_kernel_refuses_more_frames_than_its_matrix_can_have(monkeypatch):
    monkeypatch.setattr(hulls, "MOST_FRAMES", 100)
    message = r"n_landmarks must be given with a kernel for more than 100 frames, got None for \d+"
    with pytest.raises(ValueError, match=message):
        MSM(2, kernel="rbf").fit(SETS[:40], LABELS)
    MSM(2, kernel="rbf", n_landmarks=20, random_state=0).fit(SETS[:40], LABELS)


@pytest.mark.parametrize(
    "estimator",
    [estimator for estimator in ALL if "n_landmarks" not in name(estimator)],
    ids=name,
)  # landmarks are drawn by their place
def test_the_choice_of_basis_and_the_order_of_frames_say_nothing(estimator):
    Z = data_of(estimator)
    rng = np.random.default_rng(0)
    if Z is X:
        other = np.stack([basis @ rotation(rng, 2) for basis in X])
    else:
        other = [rng.permutation(frames) for frames in SETS]
    scores = clone(estimator).fit(Z[:40], LABELS).class_scores(Z[40:])
    others = clone(estimator).fit(other[:40], LABELS).class_scores(other[40:])
    assert error(scores, others) <= LOOSE * np.abs(scores).max()


@each_estimator
def test_one_query_is_answered_as_many_are(estimator):
    Z = data_of(estimator)
    fitted = clone(estimator).fit(Z[:40], LABELS)
    alone = np.concatenate([fitted.class_scores(Z[i : i + 1]) for i in range(40, 60)])
    together = fitted.class_scores(Z[40:])
    assert error(alone, together) <= LOOSE * np.abs(together).max()
    if Z is X:
        assert fitted.class_scores(X[:0]).shape == (0, together.shape[1])


# ---------------------------------------------------------- in scikit-learn's machinery


@each_estimator
def test_cross_validation_is_better_than_chance_and_alike_in_two_processes(estimator):
    Z = data_of(estimator)
    scores = cross_val_score(estimator, Z, Y, cv=3, error_score="raise")
    assert scores.mean() > 0.5
    if "function" not in repr(estimator):
        assert np.array_equal(cross_val_score(estimator, Z, Y, cv=3, n_jobs=2), scores)


@each_estimator
def test_refitting_leaves_no_trace(estimator):
    Z = data_of(estimator)
    estimator = clone(estimator)
    once = answers(clone(estimator).fit(Z[:45], Y[:45]), Z[45:])
    other = noisy_image_sets(n=30, d=9, n_classes=4, seed=5)[0]
    estimator.fit(
        other if Z is SETS else subspaces.from_sets(other, 3), np.arange(30) % 4
    )
    before = {key: repr(value) for key, value in estimator.get_params().items()}
    assert equal(once, answers(estimator.fit(Z[:45], Y[:45]), Z[45:]))
    assert before == {key: repr(value) for key, value in estimator.get_params().items()}


@pytest.mark.parametrize(
    "estimator",
    [
        *ALL,
        DCC(max_iter=0),  # compares the bases themselves
        MSM(2, kernel="rbf", reference="set"),
    ],
    ids=name,
)
def test_what_is_learned_belongs_to_the_estimator(estimator):
    Z = data_of(estimator)
    before, after = answers_before_and_after_reuse(
        estimator, Z[:40], LABELS, lambda fitted: answers(fitted, Z[40:])
    )
    assert equal(before, after)


def test_each_baseline_on_sets_has_its_case_of_these_laws():
    """TangentDictionary's are with those of the other learners of dictionaries."""
    every = {getattr(baselines, name) for name in baselines.__all__} - {
        baselines.TangentDictionary
    }
    assert {type(baseline) for baseline in ALL} == {
        baseline for baseline in every if not issubclass(baseline, baselines.OnVideos)
    }


@each_estimator
def test_pickles_answer_as_what_was_pickled(estimator):
    """test_estimators_sklearn loads some of this module in a fresh process."""
    Z = data_of(estimator)
    fitted = clone(estimator).fit(Z, Y)
    assert type(fitted).__module__ == "grassmann_sc.baselines.estimators"
    again = pickle.loads(pickle.dumps(fitted))
    assert equal([again.predict(Z[:9])], [fitted.predict(Z[:9])])


@each_estimator
def test_read_only_input_is_taken_and_not_changed(estimator):
    Z = [frames.copy() for frames in SETS] if data_of(estimator) is SETS else X.copy()
    kept = [np.array(part) for part in Z]
    for part in Z:
        part.setflags(write=False)
    answers(clone(estimator).fit(Z, Y), Z)
    assert equal(kept, Z)


@each_estimator
def test_float32_is_taken(estimator):
    Z = data_of(estimator)
    single = [np.float32(part) for part in Z] if Z is SETS else np.float32(Z)
    fitted = clone(estimator).fit(single[:40], LABELS)
    expected = clone(estimator).fit(Z[:40], LABELS).predict(Z[40:])
    assert fitted.class_scores(single[40:]).dtype.kind == "f"
    assert np.mean(fitted.predict(single[40:]) == expected) >= 0.95


@each_estimator
def test_two_classes_have_one_decision(estimator):
    Z = data_of(estimator)
    labels = np.arange(40) % 2
    fitted = clone(estimator).fit(Z[:40], labels)
    decision = fitted.decision_function(Z[40:])
    assert decision.shape == (20,)
    assert np.array_equal(fitted.predict(Z[40:]), (decision > 0).astype(int))


@pytest.mark.parametrize("estimator", ON_SUBSPACES, ids=name)
def test_columns_have_names(estimator):
    if not hasattr(estimator, "transform"):
        return
    fitted = clone(estimator).fit(D, LABELS)
    n_columns = fitted.transform(Q).shape[1]
    assert list(fitted.get_feature_names_out()) == [
        f"{type(fitted).__name__.lower()}{i}" for i in range(n_columns)
    ]
    pipeline = make_pipeline(estimators.ImageSetSubspaces(2), clone(estimator)).fit(
        SETS, Y
    )
    assert pipeline.predict(SETS[:5]).shape == (5,)


class GDAOnRows(OnRows, GDA):
    pass


class GGDAOnRows(OnRows, GGDA):
    pass


class DCCOnRows(OnRows, DCC):
    pass


class ISCOnRows(OnRows, ISC):
    pass


class LogEuclideanSCOnRows(OnRows, LogEuclideanSC):
    pass


class MSMOnRows(OnSetsOfRows, MSM):
    pass


class KAHMOnRows(OnSetsOfRows, KAHM):
    pass


CHECKED = [
    GDAOnRows(),
    GDAOnRows("correlation", rule="mean"),
    GGDAOnRows(),
    DCCOnRows(),
    ISCOnRows(),
    LogEuclideanSCOnRows("mean", positive=True),
    MSMOnRows(1),
    KAHMOnRows(),
    KAHMOnRows("convex"),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED, ids=name)
def test_scikit_learns_estimator_checks(estimator):
    check_as_scikit_learn_does(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("base", [None, "mean"])
def test_scikit_learns_estimator_checks_of_log_euclidean_coding(base):
    """Its blobs lie around the base, and classes on opposite sides explain each other."""
    expected = {"check_classifiers_train": "-log(D) explains as much as log(D)"}
    check_as_scikit_learn_does(LogEuclideanSCOnRows(base), expected)


# -------------------------------------------------------------------------- wrong input


@each_estimator
@pytest.mark.parametrize(
    "labels, message",
    [
        (None, "y must be one label a subspace, .*, got None"),
        (["one"] * 60, "y must hold at least two classes, got one class: .*one"),
        (Y[:39], "y must have length 60, one for each of the subspaces, got 39"),
        (np.linspace(0, 1, 60), "Unknown label type: continuous"),
    ],
    ids=["none", "one class", "length", "continuous"],
)
def test_wrong_labels_are_refused(estimator, labels, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(data_of(estimator), labels)


@each_estimator
def test_use_before_fit_is_refused(estimator):
    for method in [
        "predict",
        "decision_function",
        "transform",
        "class_scores",
        "distances",
    ]:
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError):
                getattr(clone(estimator), method)(data_of(estimator))


@each_estimator
def test_queries_of_another_d_are_refused(estimator):
    Z = data_of(estimator)
    fitted = clone(estimator).fit(Z, Y)
    other = [np.eye(9)] if Z is SETS else np.eye(9)[None, :, :2]
    with pytest.raises(
        ValueError, match="of d = 12, as in fit|d = 12, as in fit, got d = 9"
    ):
        fitted.predict(other)


@pytest.mark.parametrize("estimator", ON_SETS, ids=name)
@pytest.mark.parametrize(
    "Z, kind, message",
    [
        ([], ValueError, "X must hold at least one set of frames, got none"),
        (3, TypeError, "X must be a sequence of arrays of frames, got int"),
        (
            [np.eye(9), np.eye(8)],
            ValueError,
            r"X must share one d: X\[0\] has d = 9, X\[1\] has d = 8",
        ),
        (
            [np.eye(9), np.full((4, 9), np.nan)],
            ValueError,
            r"X\[1\] must be finite, got nan",
        ),
        (
            [np.eye(9), np.eye(9)[0]],
            ValueError,
            r"X\[1\] must have shape \(n_frames, d\)",
        ),
    ],
    ids=["none", "3", "several d", "NaN", "1-D"],
)
def test_what_are_no_sets_is_refused(estimator, Z, kind, message):
    with pytest.raises(kind, match=message):
        clone(estimator).fit(Z, [0, 1])


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"kernel": "rbf"},
            "kernel must be 'projection', 'correlation', 'binet-cauchy' or "
            "'precomputed', got 'rbf'",
        ),
        ({"mix": 1.5}, r"mix must be in \[0, 1\], got 1.5"),
        ({"mix": -1}, r"mix must be in \[0, 1\], got -1"),
        (
            {"kernel": "correlation", "n_angles": 3},
            r"n_angles must be in 1\.\.2, got 3",
        ),
        ({"rule": "vote"}, "rule must be 'neighbor' or 'mean', got 'vote'"),
        ({"reg": 0}, r"reg must be in \[1e-14, 1e\+14\]"),
        (
            {"kernel": lambda A, B: np.ones(3)},
            r"kernel\(X, D\) must have shape \(40, 40\), .* \(3,\)",
        ),
    ],
)
def test_wrong_parameters_of_gda_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        GDA(**options).fit(D, LABELS)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"beta": -1}, r"beta must be in \[0, 1e\+14\], got -1"),
        (
            {"kernel": "best"},
            "kernel must be 'projection', 'correlation', .* got 'best'",
        ),
    ],
)
def test_wrong_parameters_of_ggda_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        GGDA(**options).fit(D, LABELS)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dimension": 2}, r"dimension must be in 3\.\.12, got 2"),
        ({"n_angles": 3}, r"n_angles must be in 1\.\.2, got 3"),
        ({"max_iter": -1}, "max_iter must be >= 0, got -1"),
        ({"reg": 0}, r"reg must be in \[1e-14, 1e\+14\]"),
        ({"tol": -1}, "tol must be >= 0, got -1"),
    ],
)
def test_wrong_parameters_of_dcc_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        DCC(**options).fit(D, LABELS)


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"lam": -1}, ValueError, "lam must be >= 0, got -1"),
        ({"lam": True}, TypeError, "lam must be a number, got True"),
        (
            {"lam_scale": "min"},
            ValueError,
            "lam_scale must be None or 'max', got 'min'",
        ),
        ({"base": "median"}, ValueError, "base must be None, 'mean' or a basis"),
        ({"base": np.eye(12)}, ValueError, r"base must have shape \(12, 2\)"),
    ],
)
def test_wrong_parameters_of_coding_in_tangent_spaces_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        LogEuclideanSC(**options).fit(D, LABELS)
    if options.keys() == {"lam"}:
        with pytest.raises(kind, match=message):
            ISC(**options).fit(D, LABELS)


def test_wrong_gram_matrices_are_refused():
    precomputed = GDA("precomputed")
    with pytest.raises(
        ValueError, match=r"X must be a square matrix .* got shape \(40, 12, 2\)"
    ):
        precomputed.fit(D, LABELS)
    precomputed.fit(core.projection_kernel(D), LABELS)
    with pytest.raises(
        ValueError, match=r"X must have shape \(n, 40\), .* got \(20, 12, 2\)"
    ):
        precomputed.predict(Q)


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"p": 0}, ValueError, "p must be >= 1, got 0"),
        ({"p": 1.5}, TypeError, "p must be an integer, got 1.5"),
        ({"p_reference": 0}, ValueError, "p_reference must be >= 1, got 0"),
        ({"p_reference": 13}, ValueError, "p must be at most d = 12"),
        (
            {"reference": "frame"},
            ValueError,
            "reference must be 'class' or 'set', got 'frame'",
        ),
        ({"n_angles": 3}, ValueError, r"n_angles must be in 1\.\.2, got 3"),
        ({"keep": 2}, ValueError, r"keep must be in \(0, 1\], got 2"),
        (
            {"kernel": "best"},
            ValueError,
            "kernel must be 'rbf', .*'linear'.*, got 'best'",
        ),
        ({"p_reference": 7, "reference": "set"}, ValueError, "p = 7"),
    ],
)
def test_wrong_parameters_of_msm_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        MSM(**{"p": 2, **options}).fit(SETS[:40], LABELS)


@pytest.mark.parametrize(
    "options, kind, message",
    [
        (
            {"hull": "conic"},
            ValueError,
            "hull must be 'affine' or 'convex', got 'conic'",
        ),
        (
            {"dimension": 6},
            ValueError,
            "dimension must be below .* got 6 for set 0 of 4 frame",
        ),
        ({"dimension": 1.5}, TypeError, "dimension must be an integer, got 1.5"),
        ({"share": 2}, ValueError, r"share must be in \(0, 1\], got 2"),
        (
            {"hull": "convex", "bound": 0.1},
            ValueError,
            "bound must be at least 1 / n_frames .* 0.1 for ",
        ),
        ({"bound": -1}, ValueError, r"bound must be in \(0, 1\], got -1"),
        (
            {"kernel": "best"},
            ValueError,
            "kernel must be 'rbf', .*'linear'.*, got 'best'",
        ),
    ],
)
def test_wrong_parameters_of_kahm_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        KAHM(**options).fit(SETS[:40], LABELS)


def test_queries_of_too_few_frames_are_refused(monkeypatch):
    fitted = MSM(2).fit(SETS, Y)
    for tile in (baselines.TILE, 1):
        monkeypatch.setattr(baselines, "TILE", tile)
        with pytest.raises(ValueError, match=r"X\[1\]: sets\[0\] must .*2"):
            fitted.predict([SETS[0], SETS[1][:1]])
    with pytest.raises(ValueError, match="p_reference = 9, of one reference a set: se"):
        MSM(2, 9, reference="set").fit(SETS, Y)


# ------------------------------------------------------------------------------ sharing


@pytest.mark.parametrize("learner", [GDA("precomputed"), GGDA("precomputed")])
def test_fits_of_several_reg_are_those_of_each(learner):
    labels = np.arange(12) % 3
    K = core.projection_kernel(core.random_subspaces(12, 9, 2, rng=0))
    regs = [1e-4, 1e-1]
    for reg, fitted in zip(regs, learner.each_reg(K, labels, regs)):
        alone = clone(learner).set_params(reg=reg).fit(K, labels)
        assert np.array_equal(fitted.coefficients_, alone.coefficients_)
        assert fitted.get_params() == alone.get_params()


@pytest.mark.parametrize(
    "learner, grid",
    [
        (DCC(), [{"dimension": None}, {"dimension": 5}, {"reg": 1e-1}]),
        (LogEuclideanSC("mean"), [{"lam": 0.01}, {"base": None}, {"lam": 0.5}]),
        (
            MSM(p=2),
            [{"reference": "set"}, {"keep": 0.5}, {"p": 3}, {"kernel": ("rbf", 0.1)}],
        ),
    ],
)
def test_what_points_of_a_grid_share_changes_no_answer(learner, grid):
    frames = np.random.default_rng(0).standard_normal((12, 6, 9))
    Z = (
        frames
        if isinstance(learner, MSM)
        else core.orthonormalize(frames[:, :2].swapaxes(1, 2))
    )
    made = {}
    for point in [{}, *grid]:
        alone = clone(learner).set_params(**point).fit(Z, np.arange(12) % 3)
        sharing = clone(learner).set_params(**point)
        sharing.made = made
        sharing.fit(Z, np.arange(12) % 3)
        assert np.array_equal(sharing.class_scores(Z), alone.class_scores(Z))
    assert 0 < len(made) < 2 * (1 + len(grid))


def test_what_nobody_shares_needs_no_key():
    frames = np.random.default_rng(0).standard_normal((4, 6, 9))
    for seed in ([0, 1], np.random.default_rng(3)):
        assert MSM(p=2, random_state=seed).fit(frames, [0, 0, 1, 1]).predict(
            frames
        ).shape == (4,)


# ---------------------------- ties


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("method", [GDA, GGDA])
@pytest.mark.parametrize("seed", range(8))
def test_the_first_of_two_classes_that_hold_one_set_wins(method, n_classes, seed):
    """The query is that set in another basis: all that tells the classes apart is
    rounding.
    """
    X = core.random_subspaces(4 * n_classes, 10, 3, rng=seed)
    X[7] = X[0]
    model = method().fit(X, np.repeat(["ape", "bee", "cat"][:n_classes], 4))
    query = X[:1] @ rotation(np.random.default_rng(seed), 3)
    assert model.predict(query).tolist() == ["ape"]
    assert model.predict(np.concatenate([query, X[1:6]]))[0] == "ape"


@pytest.mark.parametrize("seed", range(20))
def test_what_is_projected_to_zero_is_a_right_angle_however_all_is_turned(seed):
    """Two references of R^4 share two directions, which the projection maps to zero."""
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((2, 5, 4))
    queries = rng.standard_normal((10, 5, 4))
    turn = rotation(rng, 4)
    scores = [
        MSM(3, keep=0.5).fit(frames @ Q, ["a", "b"]).class_scores(queries @ Q)
        for Q in (np.eye(4), turn)
    ]
    assert error(*scores) <= LOOSE


def test_labels_need_no_coordinates_of_a_table(monkeypatch):
    """scikit-learn's set_output makes one of what transform gives."""
    fitted = GDA().fit(X, Y)
    expected = fitted.predict(X)
    monkeypatch.setattr(fitted, "transform", lambda X: {}, raising=False)
    assert np.array_equal(fitted.predict(X), expected)


def test_float32_keeps_the_coordinates_of_near_pairs_of_classes():
    rng = np.random.default_rng(0)
    far = np.repeat(core.random_subspaces(10, 100, 2, rng=rng), 2, axis=0)
    centres = core.orthonormalize(far + 0.003 * rng.standard_normal(far.shape))
    many = np.repeat(centres, 4, axis=0)
    many = core.orthonormalize(many + 0.01 * rng.standard_normal(many.shape))
    for dtype in (np.float64, np.float32):
        fitted = GDA(rule="mean", reg=1e-5).fit(many.astype(dtype), np.arange(80) // 4)
        assert fitted.coefficients_.shape[1] == 19


def test_coordinates_that_rounding_alone_makes_are_left_out():
    """Copies under two labels leave the means of two classes alone apart."""
    few = X[[0, 0, 2, 3, 3, 5, 6, 7, 8]]
    labels = np.array([*"azmazmmmm"])
    sizes = set()
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(9)
        sizes.add(GDA().fit(few[order], labels[order]).transform(few).shape[1])
    assert len(sizes) == 1


@pytest.mark.parametrize("near", [1e-5, 1e-3])
def test_float32_scores_apart_by_more_than_rounding_are_no_tie(near):
    scores = np.array([[1 - near, 1.0], [1.0, 1 - near]], np.float32)
    assert first_of_ties(scores).argmax(axis=1).tolist() == [1, 0]
    equal = np.float32([[1 - 2e-7, 1.0]])
    assert first_of_ties(equal).argmax(axis=1).tolist() == [0]


def test_a_hull_or_bound_that_is_set_after_fit_reads_no_memory_of_others():
    """The training hulls may have fewer frames than the bound needs."""
    sets = [*np.random.default_rng(0).standard_normal((6, 2, 20))]
    queries = [np.random.default_rng(1).standard_normal((4, 20))]
    model = KAHM("convex", bound=0.5).fit(sets, ["ape", "bee"] * 3)
    model.distances(queries)
    for name, value in (("bound", 0.3), ("hull", "affine")):
        changed = copy.copy(model).set_params(**{name: value})
        with pytest.raises(ValueError, match=f"{name} must be as in fit, .*{value}"):
            changed.distances(queries)
    few, many = (
        hulls.convex_hulls(some, bound, None)
        for some, bound in (([np.eye(2, 20)], 0.5), (queries, 0.3))
    )
    with pytest.raises(ValueError, match="bound must be at least 1 / n_frames"):
        hulls.convex_distances(many, few, (0.3, 1e-6, 100), None)


@pytest.mark.parametrize(
    "model, changes",
    [
        (baselines.GDA(), dict(kernel="correlation", mix=0.5, n_angles=1)),
        (baselines.GGDA(), dict(kernel="projection", mix=0.1)),
        (baselines.DCC(), dict(n_angles=1)),
        (estimators.NearestSubspace(), dict(metric="geodesic", shrinkage=0.1)),
        (estimators.CodingClassifier(), dict(kernel="precomputed", shrinkage=0.1)),
        (estimators.DiscriminativeDictionary(2, random_state=0), dict(reg=0.5)),
        (
            estimators.GrassmannDictionary(3, random_state=0),
            dict(coding="local", lam=0.3, lam_scale="max"),
        ),
    ],
)
def test_what_shapes_queries_and_what_was_learned_must_not_change(model, changes):
    X = core.random_subspaces(12, 10, 2, rng=0)
    y = [0, 1, 2] * 4
    refuses_changes(model.fit(X, y), changes, X)
    if hasattr(model, "rule"):
        with pytest.raises(ValueError, match="^rule must be"):
            model.set_params(rule="no rule").predict(X)


OTHER_KERNEL = dict(kernel="polynomial", gamma=2.0, gamma_scale="median", coef0=0.5)


@pytest.mark.parametrize(
    "model, changes",
    [
        (estimators.KernelLift(p=2), dict(p=1, n_landmarks=5)),
        (MSM(p=2, reference="set"), dict(p=1, keep=0.5, whiten=True, n_landmarks=5)),
        (MSM(p=2, reference="set"), dict(p_reference=1, reference="class", n_angles=1)),
        (KAHM(), dict(share=0.5)),
    ],
)
def test_of_sets_neither(model, changes):
    sets = [*np.random.default_rng(0).standard_normal((6, 4, 20))]
    refuses_changes(model.fit(sets, [0, 1, 2] * 2), OTHER_KERNEL | changes, sets)
