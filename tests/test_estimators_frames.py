"""Estimators on raw frames are the functions that they are named after, and are
searched with what follows them.
"""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from grassmann_sc import estimators, frames, kernels, shared, subspaces
from grassmann_sc.baselines.estimators import KAHM, MSM
from grassmann_sc.estimators import Descriptor

CLASSES = ["across", "down"]


def video(label, seed, n_frames=12, side=16):
    """A bar that moves across or down, on noise; its frames alone, in no order, tell
    little.
    """
    rng = np.random.default_rng(seed)
    still = np.zeros((side, side))
    still[:, :3] = 200
    frames = [np.roll(still, t + seed, axis=1) for t in range(n_frames)]
    frames = np.stack(frames) + 20 * rng.random((n_frames, side, side))
    return frames if label == "across" else frames.swapaxes(1, 2)


Y = np.array(CLASSES * 8)
VIDEOS = [video(label, seed) for seed, label in enumerate(Y)]
WALKS = [[frames > 100 for frames in VIDEOS[i : i + 3]] for i in range(4)]
HOG = {"orientations": 6, "cells_per_block": (1, 1)}
ROWS = [
    (Descriptor("hog", **HOG), lambda f: frames.hog(f, **HOG)),
    (Descriptor("lbp", grid=(2, 2)), lambda f: frames.lbp(f, grid=(2, 2))),
    (Descriptor("lbp_top", length=6), lambda f: frames.lbp_top(f, length=6)),
    (
        Descriptor("gei", align=False),
        lambda f: frames.gait_energy_image(f, align=False),
    ),
    (Descriptor(), frames.raw),
    (Descriptor(frames.raw), frames.raw),
    (estimators.BlockHankel(3), lambda f: subspaces.block_hankel(f, 3)),
]
each_row = pytest.mark.parametrize(
    "estimator, function",
    ROWS,
    ids=[f"{i} {type(row).__name__}" for i, (row, _) in enumerate(ROWS)],
)


@each_row
def test_rows_are_those_of_the_function(estimator, function):
    rows = [function(v) for v in VIDEOS[:3]]
    given = [v.copy() for v in VIDEOS[:3]]
    features = clone(estimator).fit(VIDEOS).transform(given)
    assert all(np.array_equal(a, b) for a, b in zip(features, rows, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(given, VIDEOS))
    with pytest.raises(NotFittedError):
        clone(estimator).transform(VIDEOS)


def test_a_walk_is_a_row_of_a_set_of_walks():
    gei = Descriptor("gei", size=(8, 6))
    rows = gei.fit(WALKS).transform(WALKS)
    assert [len(some) for some in rows] == [3, 3, 3, 3]
    assert np.array_equal(
        rows[1][2:], frames.gait_energy_image(WALKS[1][2], size=(8, 6))
    )
    assert len(gei.get_feature_names_out()) == 48


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unit_variance": True},
        {"center": True, "rank": "pad"},
    ],
    ids=str,
)
def test_subspaces_are_those_of_the_functions(options):
    X = estimators.ImageSetSubspaces(3, **options).fit_transform(VIDEOS)
    assert np.array_equal(X, subspaces.from_sets(VIDEOS, 3, **options))
    model = estimators.VideoSubspaces(3, 4, stabilize=True, **options).fit(VIDEOS)
    expected = subspaces.from_videos(VIDEOS[:2], 3, 4, stabilize=True, **options)
    assert np.array_equal(model.transform(VIDEOS[:2]), expected)
    assert model.n_features_in_ == 256 and len(model.get_feature_names_out()) == 4 * 256


@pytest.mark.parametrize(
    "step",
    [
        estimators.ImageSetSubspaces(2),
        estimators.VideoSubspaces(2, 1),
        estimators.BlockHankel(2),
        estimators.KernelLift("rbf", p=2),
        MSM(2),
        KAHM(),
    ],
    ids=lambda step: type(step).__name__,
)
def test_an_array_with_a_channel_a_row_is_warned_of(step):
    """Where the command says so too; of a list, and of images, nothing is said."""
    trials = np.random.default_rng(0).standard_normal((4, 6, 50))
    y = [0, 1, 0, 1]
    with pytest.warns(UserWarning, match="6 frames of 50 features: transposed"):
        step.fit(trials, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step.fit(trials.swapaxes(1, 2), y)
        step.fit(list(trials), y)
        if not hasattr(step, "predict"):  # which one set does not teach
            step.fit(trials[:1])
        step.fit(trials.reshape(4, 6, 5, 10), y)


@pytest.mark.parametrize(
    "shapes, expected",
    [
        ([(3, 5)] * 2, True),
        ([(3, 5)], False),
        ([(5, 3)] * 2, False),
        ([(3, 5), (4, 5)], False),
        ([(4, 4)] * 2, False),
    ],
)
def test_arrays_look_transposed_if_all_have_fewer_rows_than_columns(shapes, expected):
    assert shared.look_transposed(shapes) is expected


def test_missing_frames_are_padded_when_asked_for():
    few = [v[:2] for v in VIDEOS]
    with pytest.raises(ValueError, match="must hold p = 3 independent frames, got 2"):
        estimators.ImageSetSubspaces(3).fit(few)
    assert estimators.ImageSetSubspaces(3, rank="pad").fit_transform(few).shape == (
        16,
        256,
        3,
    )


def test_a_search_goes_from_raw_videos_to_answers():
    """Over descriptors, their parameters, stacks and the classifier's, in one grid."""
    steps = [
        ("frames", Descriptor()),
        ("stack", estimators.BlockHankel()),
        ("subspaces", estimators.ImageSetSubspaces(2)),
        ("classify", estimators.CodingClassifier(lam_scale="max", calibrate=False)),
    ]
    grid = {
        "frames": [
            Descriptor("lbp", grid=(2, 2)),
            Descriptor("hog", **HOG),
        ],
        "stack__n_blocks": [1, 3],
        "subspaces__unit_variance": [False, True],
        "classify__lam": [0.03, 0.1],
    }
    search = GridSearchCV(Pipeline(steps), grid, cv=2, error_score="raise").fit(
        VIDEOS, Y
    )
    assert len(search.cv_results_["params"]) == 16
    assert search.score(VIDEOS, Y) == 1


def test_videos_are_searched_too():
    pipeline = make_pipeline(estimators.VideoSubspaces(), estimators.NearestSubspace())
    grid = {"videosubspaces__n_states": [2, 3], "videosubspaces__n_blocks": [1, 4]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(VIDEOS, Y)
    assert search.best_score_ == 1


def test_one_grid_spans_kinds_of_kernels():
    sets = [v.reshape(12, -1) for v in VIDEOS]
    median = kernels.median_gamma(sets)
    lift = estimators.KernelLift(p=2, gamma_scale="median")
    for kernel, same in [
        ("linear", kernels.linear()),
        (("polynomial", 3), kernels.polynomial(3, 1.0)),
        (("rbf", 0.5), kernels.rbf(0.5 * median)),
        ("rbf", kernels.rbf(median)),
    ]:
        chosen = clone(lift).set_params(kernel=kernel).fit_transform(sets)
        assert np.array_equal(
            chosen, clone(lift).set_params(kernel=same).fit_transform(sets)
        )
    grid = {
        "kernellift__kernel": ["linear", ("polynomial", 2), ("rbf", 0.5), ("rbf", 2)]
    }
    pipeline = make_pipeline(lift, estimators.NearestSubspace())
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(sets, Y)
    assert len(search.cv_results_["params"]) == 4


BASES = subspaces.from_sets([v.reshape(12, -1) for v in VIDEOS], 3)
ON_SETS = [
    estimators.ImageSetSubspaces(2),
    estimators.KernelLift("linear", p=2),
    estimators.VideoSubspaces(2, n_blocks=1),
    MSM(2),
    KAHM("convex"),
]


@pytest.mark.parametrize("estimator", ON_SETS, ids=repr)
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
def test_bases_where_frames_are_expected_warn_from_the_line_that_gave_them(
    estimator, method
):
    message = (
        r"sets must hold frames, .* all 16 are orthonormal bases, as \(256, 3\) at"
    )
    for X in (BASES, list(BASES), BASES.astype(np.float32)):
        if hasattr(estimator, method):
            with pytest.warns(UserWarning, match=message) as record:
                getattr(clone(estimator), method)(X, Y)
            assert {warning.filename for warning in record} == {__file__}
            assert sum("orthonormal" in str(warning.message) for warning in record) == 1


@pytest.mark.parametrize("estimator", ON_SETS, ids=repr)
def test_frames_do_not_warn_even_if_some_are_orthonormal(estimator):
    frames = np.random.default_rng(0).standard_normal((40, 8))
    some = [*BASES[:3, :40, :].copy(), frames[:, :3]]
    some[0] = np.linalg.qr(some[0])[0]
    square = np.linalg.qr(frames.reshape(5, 8, 8))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for X in (some, square, list(BASES.swapaxes(1, 2))):
            clone(estimator).fit(X, np.arange(len(X)) % 2)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: Descriptor("hog").fit(3),
            TypeError,
            "X must be a sequence of sets of frames",
        ),
        (
            lambda: Descriptor("hog").fit(""),
            TypeError,
            "X must be a sequence of sets of frames",
        ),
        (
            lambda: Descriptor("lbp").fit(np.array(3)),
            TypeError,
            "X must be a sequence of sets of frames",
        ),
        (
            lambda: Descriptor("lbp").fit([]),
            ValueError,
            "at least one set of frames, got none",
        ),
        (
            lambda: estimators.BlockHankel(13).fit(VIDEOS),
            ValueError,
            r"X\[0\]: n_blocks must be at most n_frames = 12, got 13",
        ),
        (
            lambda: estimators.BlockHankel(2).fit(VIDEOS).transform([VIDEOS[0][:, :4]]),
            ValueError,
            r"vectors of d = 512, as in fit: X\[0\] gives 128",
        ),
        (
            lambda: (
                estimators.VideoSubspaces(2, 3)
                .fit(VIDEOS)
                .transform([VIDEOS[0][:, :4]])
            ),
            ValueError,
            r"vectors of d = 768, as in fit: X\[0\] gives 192",
        ),
        (
            lambda: estimators.KernelLift(("linear", 2)).fit([np.eye(3)]),
            ValueError,
            r"kernel must be .*got \('linear', 2\)",
        ),
        (
            lambda: estimators.KernelLift(("rbf", -1)).fit([np.eye(3)]),
            ValueError,
            "gamma must be",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
