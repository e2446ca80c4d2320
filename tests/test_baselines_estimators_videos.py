"""The estimators of the baselines on videos: what they compute, in scikit-learn's
machinery, and what they refuse.
"""

import pickle
import warnings

import joblib
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from grassmann_sc import subspaces
from grassmann_sc.baselines import dynamics, tensors, textures
from grassmann_sc.baselines import estimators as baselines
from grassmann_sc.baselines.estimators import (
    CSLDS,
    DFS,
    LDS,
    TCCA,
    DLPegasos,
    ProductManifold,
)
from oracles import LOOSE, TIGHT, error
from rows import (
    OnRows,
    answers_before_and_after_reuse,
    check_as_scikit_learn_does,
    refuses_changes,
)
from textures import simulated_textures, texture_systems

pytestmark = pytest.mark.filterwarnings("ignore:.* cannot be recovered at compression")
pytest.importorskip("skimage", reason="DLPegasos needs the extra 'image'")

CLIPS, LABELS = simulated_textures(5, texture_systems(12)[::4], n_frames=14)
Y = np.array(["ash", "birch", "cedar"])[LABELS]
TRAIN = np.arange(15) % 5 < 3
X = [clip for clip, is_train in zip(CLIPS, TRAIN) if is_train]
Q = [clip for clip, is_train in zip(CLIPS, TRAIN) if not is_train]
SEVERAL = Y[TRAIN]

ALL = [
    LDS(3),
    LDS(3, metric="angles", rule="svm"),
    LDS(2, center=True, rule="svm", C=1.0, gamma=0.5),
    CSLDS(3, 4, rule="svm"),
    ProductManifold(),
    ProductManifold((3, 4, 2), size=(8, 10, 10), metric="geodesic"),
]
ALL += [
    TCCA(3),
    TCCA(2, n_features=None, size=(8, 10, 10)),
    DFS(6, radii=(1, 2)),
    DFS(4, radii=(1, 2, 3), rule="nearest"),
    DLPegasos(3, n_iter=300),
]
each_estimator = pytest.mark.parametrize("estimator", ALL, ids=repr)
METHODS = ["predict", "decision_function", "class_scores", "distances"]


def answers(estimator, Z):
    return [
        getattr(estimator, method)(Z)
        for method in METHODS
        if hasattr(estimator, method)
    ]


def equal(left, right):
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


# -------------------------------------------------------------------- what they compute


def test_lds_is_the_nearest_system():
    train = [subspaces.arma(clip, 3, stabilize=True) for clip in X]
    queries = [subspaces.arma(clip, 3, stabilize=True) for clip in Q]
    expected = dynamics.martin_distances(queries, train)
    fitted = LDS(3).fit(X, SEVERAL)
    assert np.array_equal(fitted.distances(Q), expected)
    assert np.array_equal(fitted.predict(Q), SEVERAL[expected.argmin(axis=1)])
    angles = dynamics.observability_angles(queries, train)
    fitted = LDS(3, metric="angles").fit(X, SEVERAL)
    assert error(fitted.distances(Q), np.linalg.norm(angles, axis=2)) < TIGHT


@pytest.mark.parametrize("gamma", [None, 0.3])
def test_the_rule_svm_is_a_machine_on_the_kernel(gamma):
    fitted = LDS(3, rule="svm", gamma=gamma, C=2.0).fit(X, SEVERAL)
    square = np.square(dynamics.martin_distances(fitted.systems_))
    scale = (1 if gamma is None else gamma) / np.median(square[square > 0])
    svm = SVC(kernel="precomputed", C=2.0).fit(np.exp(-scale * square), SEVERAL)
    K = np.exp(-scale * np.square(fitted.distances(Q)))
    assert error(fitted.decision_function(Q), svm.decision_function(K)) < LOOSE


def test_cslds_recovers_what_it_compares():
    fitted = CSLDS(3, 3).fit(X, SEVERAL)
    assert fitted.measured_ == (9, 39)  # of 144 pixels
    model = dynamics.recover(dynamics.compress(X[4], 9, 39), 3)
    assert error(fitted.systems_[4][1], model.C) < TIGHT
    assert fitted.residuals_[4] == model.residual
    measurements = dynamics.compress(Q[0], 9, 39)
    query = dynamics.recover(measurements, 3)
    expected = dynamics.martin_distances(
        [(query.A, query.C)], fitted.systems_, stabilize=True
    )
    assert error(fitted.distances(Q[:1]), expected) < LOOSE


def test_product_manifold_is_the_nearest_tensor():
    factors = [tensors.mode_bases(clips, 4) for clips in (Q, X)]
    expected = tensors.product_distances(*factors)
    fitted = ProductManifold(4).fit(X, SEVERAL)
    assert np.array_equal(fitted.distances(Q), expected)
    resized = [tensors.resize_clips(clips, (6, 9, 8)) for clips in (Q, X)]
    small = ProductManifold(4, size=(6, 9, 8)).fit(X, SEVERAL)
    plain = ProductManifold(4).fit(resized[1], SEVERAL)
    assert np.array_equal(small.distances(Q), plain.distances(resized[0]))


def test_tcca_sums_the_most_discriminative_correlations():
    fitted = TCCA(3, n_features=4).fit(X, SEVERAL)
    features = tensors.tensor_correlations(fitted.described_)
    score = tensors.separations(features, SEVERAL)
    assert set(fitted.features_) == set(np.argsort(-score)[:4])
    parts = tensors.tensor_parts(np.stack(Q), 3, tensors.MODES)
    similarity = tensors.tensor_correlations(parts, fitted.described_)[
        fitted.features_
    ].sum(axis=0)
    assert np.array_equal(fitted.predict(Q), SEVERAL[similarity.argmax(axis=1)])


def test_dfs_compares_scaled_spectra():
    fitted = DFS(6, radii=(1, 2), rule="nearest").fit(X, SEVERAL)
    spectra = [
        np.stack([textures.fractal_spectrum(clip, fitted.edges_, radii=(1, 2)).ravel()
                  for clip in clips])
        for clips in (Q, X)
    ]  # fmt: skip
    deviation = spectra[1].std(axis=0)
    deviation[deviation < 1e-9] = 1
    expected = cdist(spectra[0] / deviation, spectra[1] / deviation)
    assert error(fitted.distances(Q), expected) < LOOSE
    assert fitted.spectra_.shape == (9, 120)
    tall = [np.repeat(clip, 2, axis=1) for clip in Q]  # of another size
    assert fitted.predict(tall).shape == (6,)


def test_dl_pegasos_records_its_objective():
    fitted = DLPegasos(3).fit(X, SEVERAL)
    assert (fitted.weights_ >= 0).all()
    assert fitted.weights_.any()
    assert fitted.objective_[0] == 1
    assert fitted.objective_[-1] < 0.8
    assert error(fitted.distances(X), fitted.distances(X).T) < LOOSE
    own = np.diag(fitted.distances(X))
    # at a spectral radius of 1 - 2^-30, that of stabilised models
    assert own.max() < 1e-5
    alone = fitted.distances(Q) / 3
    assert np.array_equal(alone.argmin(axis=1), fitted.distances(Q).argmin(axis=1))


def test_where_no_weights_help_all_distances_of_dl_pegasos_weigh_the_same():
    """All clips are the same but for noise."""
    rng = np.random.default_rng(0)
    clips = rng.random((16, 16)) + 0.5 * rng.random((6, 10, 16, 16))
    with pytest.warns(UserWarning, match="no weights tell the classes of the train"):
        fitted = DLPegasos(3, cell=4, n_iter=300).fit(clips, [0, 0, 0, 1, 1, 1])
    assert fitted.predict(clips).tolist() == [0, 0, 0, 1, 1, 1]


# ---------------------------------------------------------- in scikit-learn's machinery


@each_estimator
def test_cross_validation_is_better_than_chance(estimator):
    scores = cross_val_score(estimator, CLIPS, Y, cv=3, error_score="raise")
    assert scores.mean() > 0.6


def test_parameters_are_searched_alike_in_two_threads():
    grid = {"n_states": [2, 3]}
    single = GridSearchCV(LDS(), grid, cv=3, error_score="raise").fit(CLIPS, Y)
    with joblib.parallel_config("threading", n_jobs=2):
        threaded = GridSearchCV(LDS(), grid, cv=3).fit(CLIPS, Y)
    assert single.best_params_ == threaded.best_params_
    assert equal(
        [single.cv_results_["mean_test_score"]],
        [threaded.cv_results_["mean_test_score"]],
    )


@each_estimator
def test_one_query_is_answered_as_many_are(estimator):
    fitted = clone(estimator).fit(X, SEVERAL)
    alone = np.concatenate([fitted.class_scores(Q[i : i + 1]) for i in range(3)])
    together = fitted.class_scores(Q)[:3]
    tol = LOOSE
    # a spectral radius of 1 - 2^-30 amplifies rounding
    if isinstance(estimator, CSLDS):
        tol = 1e-5
    assert error(alone, together) <= tol * np.abs(together).max()
    assert fitted.decision_function(Q).shape == (6, 3)


@each_estimator
def test_what_is_learned_belongs_to_the_estimator(estimator):
    before, after = answers_before_and_after_reuse(
        estimator, X, SEVERAL, lambda fitted: answers(fitted, Q)
    )
    assert equal(before, after)


def test_each_baseline_on_videos_has_its_case_of_these_laws():
    every = {getattr(baselines, name) for name in baselines.__all__}
    assert {type(baseline) for baseline in ALL} == {
        baseline for baseline in every if issubclass(baseline, baselines.OnVideos)
    }


@each_estimator
def test_refitting_leaves_no_trace_and_input_is_not_changed(estimator):
    Z = [clip.copy() for clip in CLIPS]
    for clip in Z:
        clip.setflags(write=False)
    estimator = clone(estimator)
    once = answers(clone(estimator).fit(Z[:9], Y[:9]), Z[9:])
    before = {key: repr(value) for key, value in estimator.get_params().items()}
    estimator.fit([2 * clip[::-1, ::-1] for clip in Z[::2]], Y[::2])
    assert equal(once, answers(estimator.fit(Z[:9], Y[:9]), Z[9:]))
    assert before == {key: repr(value) for key, value in estimator.get_params().items()}
    assert equal(Z, CLIPS)


@each_estimator
def test_float32_and_bytes_are_taken(estimator):
    expected = clone(estimator).fit(X, SEVERAL).predict(Q)
    single = [[np.float32(clip) for clip in clips] for clips in (X, Q)]
    fitted = clone(estimator).fit(single[0], SEVERAL)
    assert np.mean(fitted.predict(single[1]) == expected) >= 5 / 6
    low = min(clip.min() for clip in CLIPS)
    span = max(clip.max() for clip in CLIPS) - low
    # one array of clips
    grey = np.array([np.uint8(255 * (clip - low) / span) for clip in X])
    assert set(clone(estimator).fit(grey, SEVERAL).predict(grey)) <= set(SEVERAL)


@each_estimator
def test_two_classes_have_one_decision(estimator):
    labels = (SEVERAL == "ash").astype(int)
    fitted = clone(estimator).fit(X, labels)
    decision = fitted.decision_function(Q)
    assert decision.shape == (6,)
    assert np.array_equal(fitted.predict(Q), (decision > 0).astype(int))


@each_estimator
def test_pickles_answer_as_what_was_pickled(estimator):
    """test_estimators_sklearn loads some of this module in a fresh process."""
    fitted = clone(estimator).fit(X, SEVERAL)
    assert type(fitted).__module__ == "grassmann_sc.baselines.estimators"
    again = pickle.loads(pickle.dumps(fitted))
    assert equal([again.predict(Q[:2])], [fitted.predict(Q[:2])])


class OnVideosOfRows(OnRows):
    """A row x stands for the clip of a moving pattern whose amplitudes are x."""

    def check_input(self, X, fit=False):
        rows = super().check_input(X, fit)[:, :, 0]  # (n, features + 1)
        rng = np.random.default_rng(0)
        still = rng.standard_normal((rows.shape[1], 6, 4, 4))
        clips = np.tensordot(rows, still, 1) + 0.3 * rng.standard_normal((6, 4, 4))
        return list(
            clips.astype(X.dtype if getattr(X, "dtype", None) == np.float32 else float)
        )


class PMOnRows(OnVideosOfRows, ProductManifold):
    pass


# the others pass them too, in five seconds to two minutes each
CHECKED = [PMOnRows(3)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", CHECKED, ids=repr)
def test_scikit_learns_estimator_checks(estimator):
    check_as_scikit_learn_does(estimator)


# -------------------------------------------------------------------------- wrong input


@each_estimator
@pytest.mark.parametrize(
    "labels, message",
    [
        (None, "y must be one label a subspace, .*, got None"),
        (["one"] * 9, "y must hold at least two classes, got one class: .*one"),
        (SEVERAL[:5], "y must have length 9, one for each of the subspaces, got 5"),
    ],
    ids=["none", "one class", "length"],
)
def test_wrong_labels_are_refused(estimator, labels, message):
    with pytest.raises(ValueError, match=message):
        clone(estimator).fit(X, labels)


@each_estimator
def test_use_before_fit_is_refused(estimator):
    for method in METHODS:
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError):
                getattr(clone(estimator), method)(Q)


@each_estimator
@pytest.mark.parametrize(
    "Z, kind, message",
    [
        ([], ValueError, "X must hold at least one clip, got none"),
        (3, TypeError, "X must be a sequence of clips, got int"),
        (
            [X[0], np.full((14, 12, 12), np.nan)],
            ValueError,
            r"X\[1\] must be finite, got nan",
        ),
        (
            [X[0], X[1][0]],
            ValueError,
            r"X\[1\] must have shape \(n_frames, height, width\)",
        ),
    ],
    ids=["none", "3", "NaN", "2-D"],
)
def test_what_are_no_clips_is_refused(estimator, Z, kind, message):
    with pytest.raises(kind, match=message):
        clone(estimator).fit(Z, [0, 1])


@pytest.mark.parametrize(
    "estimator", [ALL[0], ALL[3], ALL[4], ALL[6], ALL[-1]], ids=repr
)
def test_other_frame_sizes_are_refused(estimator):
    with pytest.raises(
        ValueError,
        match=r"of \((14, )?12, 12\), as in fit, got \((14, )?12, 11\) in X\[1",
    ):
        clone(estimator).fit([X[0], X[1][:, :, :11]], [0, 1])
    fitted = clone(estimator).fit(X, SEVERAL)
    with pytest.raises(
        ValueError,
        match=r"of \((14, )?12, 12\), as in fit, got \((14, )?11, 12\) in X\[0",
    ):
        fitted.predict([Q[0][:, :11]])


@pytest.mark.parametrize("estimator", [ALL[4], ALL[6]], ids=repr)
def test_tensors_of_other_lengths_are_refused_or_resized(estimator):
    with pytest.raises(
        ValueError,
        match=r"clips, if size is None, of \(14, 12, 12\), as in fit, got \(9, 12, 12\)",
    ):
        clone(estimator).fit([X[0], X[1][:9]], [0, 1])
    sized = clone(estimator).set_params(size=(8, 8, 8)).fit([clip[i:] for i, clip in enumerate(X)],
                                                            SEVERAL)  # fmt: skip
    assert sized.predict([Q[0][:9]]).shape == (1,)


def test_short_constant_and_unstable_clips_are_named():
    short = [X[0], X[1][:3]]
    with pytest.raises(
        ValueError, match=r"X\[1\] allows no model of n_states = 3: .*n_states"
    ):
        LDS(3).fit(short, [0, 1])
    constant = [X[0], np.ones_like(X[1])]
    with pytest.raises(
        ValueError, match=r"X\[1\] allows no model of n_states = 3: .* rank 1"
    ):
        LDS(3).fit(constant, [0, 1])
    with pytest.raises(
        ValueError, match=r"X\[1\] cannot be recovered: .*independent states, got 1"
    ):
        CSLDS(3, 3).fit(constant, [0, 1])
    with pytest.raises(
        ValueError, match=r"X\[1\] cannot be recovered: n_states must be in"
    ):
        CSLDS(3, 3).fit(short, [0, 1])
    with pytest.raises(
        ValueError, match=r"X\[1\] must vary, a constant clip has no texture"
    ):
        DFS(radii=(1, 2)).fit(constant, [0, 1])
    with pytest.raises(
        ValueError, match=r"X\[1\] must have at least 5 frames, rows and col"
    ):
        DFS(radii=(1, 2)).fit(short, [0, 1])
    growing = [X[0], X[1] * 1.5 ** np.arange(14)[:, None, None]]
    with pytest.raises(ValueError, match=r"systems\[\d\] must be stable"):
        LDS(3, stabilize=False).fit(growing, [0, 1])
    LDS(3).fit(growing, [0, 1])


def test_hopeless_recoveries_are_counted():
    noise = np.random.default_rng(0).standard_normal((4, 30, 20, 20))
    with pytest.warns(
        UserWarning, match="4 of 4 clips cannot be recovered at compression 8: up"
    ):
        fitted = CSLDS(3, 8).fit(noise, [0, 0, 1, 1])
    assert fitted.residuals_.min() > 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CSLDS(3, 3).fit(X, SEVERAL)


@pytest.mark.parametrize(
    "estimator, kind, message",
    [
        (LDS(0), ValueError, "n_states must be >= 1, got 0"),
        (LDS(2, metric="flat"), ValueError, "metric must be 'martin' or 'angles'"),
        (LDS(2, rule="vote"), ValueError, "rule must be 'nearest' or 'svm', got 'vote'"),
        (LDS(2, rule="svm", C=0), ValueError, "C must be positive, got 0"),
        (LDS(2, gamma=-1), ValueError, "gamma must be positive, got -1"),
        (CSLDS(3, 1), ValueError, "compression must be > 1, got 1"),
        (CSLDS(3, 40), ValueError, "compression must leave .* 144 pixels, got 40"),
        (ProductManifold(0), ValueError, "p must be >= 1, got 0"),
        (ProductManifold(metric="flat"), ValueError, "metric must be 'chordal' or"),
        (TCCA(13), ValueError, r"p must be in 1\.\.12, got 13"),
        (TCCA(3, n_features=0), ValueError, "n_features must be >= 1, got 0"),
        (DFS(1), ValueError, r"n_levels must be in 2\.\.62, got 1"),
        (DFS(radii=(2,)), ValueError, "radii must be two integers or more"),
        (DLPegasos(2, lam=0), ValueError, "lam must be positive, got 0"),
        (DLPegasos(2, cell=0), ValueError, "cell must be >= 1, got 0"),
        (DLPegasos(2, cell=40), ValueError, "options must fit|must be|at least"),
    ],
    ids=lambda value: repr(value) if hasattr(value, "fit") else "",
)  # fmt: skip
def test_wrong_parameters_are_named(estimator, kind, message):
    with pytest.raises(kind, match=message):
        clone(estimator).fit(X, SEVERAL)


def test_one_clip_a_class():
    assert len(TCCA(3, n_features=2).fit(X[::3], [0, 1, 2]).features_) == 2
    with pytest.raises(
        ValueError, match="two members of one of them, to compare pairs"
    ):
        DLPegasos(3).fit(X[::3], [0, 1, 2])


def test_what_is_shared_changes_no_answer(monkeypatch):
    """A clip is recovered once for all training sets, and others are not its like."""
    recovered = []
    recover = dynamics.recover

    def spy(measurements, n_states):
        recovered.append(measurements)
        return recover(measurements, n_states)

    monkeypatch.setattr(dynamics, "recover", spy)
    alone = {}
    of_training = {}
    for estimator in ALL:
        clips = alone.setdefault(type(estimator), {})
        for some in ([0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]):
            trained = [X[i] for i in some]
            expected = clone(estimator).fit(trained, SEVERAL[some])
            expected = [answers(expected, Z) for Z in (Q, Q[:1])]
            made = of_training.setdefault((type(estimator), *some), {"clips": clips})
            for _ in range(2):
                shares = clone(estimator)
                shares.made = made
                shares.fit(trained, SEVERAL[some])
                for Z, wanted in zip((Q, Q[:1]), expected):
                    assert equal(answers(shares, Z), wanted)
    before = len(recovered)
    others = [clip + 1e-9 for clip in X[:8]]
    shares = CSLDS(3, 4)
    shares.made = {"clips": alone[CSLDS]}
    shares.fit(X[:8], SEVERAL[:8]).predict(Q)
    assert len(recovered) == before
    shares.fit(others, SEVERAL[:8])
    assert len(recovered) == before  # made is of one training set
    shares.made = {"clips": alone[CSLDS]}
    shares.fit(others, SEVERAL[:8])
    assert len(recovered) == before + 8


def test_a_machine_that_was_not_fitted_is_asked_for_in_words():
    clips = np.random.default_rng(0).random((4, 12, 4, 4))
    y = ["a", "b"] * 2
    model = LDS(2).fit(clips, y)
    near = model.predict(clips)
    with pytest.raises(ValueError, match="rule must be as in fit, .*got 'svm'"):
        model.set_params(rule="svm").predict(clips)
    model.fit(clips, y).set_params(rule="nearest")
    assert np.array_equal(model.predict(clips), near)
    model.fit(clips, y).set_params(rule="svm")  # the machine before is gone
    with pytest.raises(ValueError, match="rule must be as in fit"):
        model.predict(clips)


@pytest.mark.parametrize(
    "model, changes",
    [
        (LDS(2), dict(center=True, n_states=3, metric="angles", stabilize=False)),
        (TCCA(2), dict(p=4, size=(6, 4, 4))),
        (ProductManifold(2), dict(p=3, metric="geodesic")),
    ],
)
def test_clips_are_described_as_those_of_fit_were(model, changes):
    clips = np.random.default_rng(0).random((6, 12, 6, 6))
    refuses_changes(model.fit(clips, ["a", "b"] * 3), changes, clips)
