"""Models answer the same before and after they are saved, whatever the method.

New clips must have what the labelled ones had.
"""

import contextlib
import csv
import json
import os
import re
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import grassmann_sc as core
from grassmann_classify import add, fit, load, model_file, predict, save
from grassmann_classify.__main__ import main
from grassmann_classify.answers import answers_of, kinds_of_scores
from grassmann_classify.bank import Bank
from grassmann_classify.baseline_rows import every_method, is_in_kernel
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, Recipe, pictures_of
from grassmann_classify.evaluation import evaluate
from grassmann_classify.model import (
    PARAMETERS,
    Model,
    build_both,
    build_new,
    inputs_for,
)
from grassmann_classify.options import parse
from grassmann_classify.reasons import differs, possible_classes
from grassmann_classify.settings import Settings
from grassmann_classify.words import told
from grassmann_sc import files, kernels, plots, tuning
from textures import simulated_textures, texture_systems

pytestmark = pytest.mark.usefixtures("few_kernels")

ON_SETS = [
    "frames: SVM, mean of their scores",
    "mean frame: SVM",
    "mean and standard deviation: SVM",
    "nearest subspace",
    "SVM on the projection kernel",
    "nearest subspace in a kernel's space",
    "SVM on a kernel's Gram matrix",
    "gSC, labelled sets as atoms",
    "gLC, labelled sets as atoms",
    "kgSC, labelled sets as atoms",
    "kgLC, labelled sets as atoms",
    "gSC, 4 learned atoms, ridge",
    "gLC, 4 learned atoms, ridge",
    "GDA",
    "GGDA",
    "GDA in a kernel's space",
    "DCC",
    "iSC",
    "lE-SC",
    "lE-SC-adaptive",
    "KAHM, affine hulls",
    "KAHM, convex hulls",
    "KAHM, affine hulls in a kernel's space",
    "MSM",
    "CMSM",
    "OMSM",
    "KMSM",
    "KCMSM",
    "KOMSM",
]
ON_VIDEOS = ["PM", "TCCA", "LDS", "CS-LDS", "DFS", "DL-PEGASOS"]


def image_sets(n=24, noise=0.6):
    """Sets of features of three classes that overlap."""
    rng = np.random.default_rng(0)
    label = np.arange(n) % 3
    looks = rng.standard_normal((3, 2, 12))
    return [
        rng.standard_normal((6, 2)) @ looks[c] + noise * rng.standard_normal((6, 12))
        for c in label
    ], np.array(["ape", "bee", "cat"])[label]


def clips_of(sets, labels=None, groups=None):
    """The Clips of arrays of frames, as add makes them."""
    none = [None] * len(sets)
    labels = none if labels is None else labels
    groups = none if groups is None else groups
    return [
        Clip(f"added set {i}", label, group, [one])
        for i, (one, label, group) in enumerate(zip(sets, labels, groups))
    ]


def settings_of(name, **more):
    """Settings under which no other row has the name."""
    usual = {
        "methods": [name],
        "lam": [0.1],
        "neighbors": [3],
        "C": [1.0, 10.0],
        "atoms": 4,
        "iterations": 1,
    }
    return Settings(**usual | more)


def same(first, second):
    """Are these Answers the same, to the bit?"""
    arrays = "scores p_values known ahead".split()
    others = "labels classes because runner_up instead coded label_next".split()
    return (
        first.names == second.names
        and first.failed == second.failed
        and [*first.reasons] == [*second.reasons]
        and all(bits(first, name) == bits(second, name) for name in arrays)
        and all(
            getattr(first, name).tolist() == getattr(second, name).tolist()
            for name in others
        )
    )


def bits(found, name):
    array = getattr(found, name)
    return None if array is None else (array.shape, array.dtype, array.tobytes())


def learned_and_kept(tmp_path, sets, labels, name, **more):
    """Answers of a model before and after it is saved, and those of its row."""
    recipe = more.pop("recipe", Recipe(3, fewer=True))
    model = fit(
        sets[::2], labels[::2], recipe=recipe, settings=settings_of(name, **more)
    )
    save(tmp_path / "model.npz", model)
    kept = load(tmp_path / "model.npz")
    assert kept.method == model.method and kept.method.startswith(name)
    return predict(model, sets[1::2]), predict(kept, sets[1::2])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ON_SETS)
def test_a_model_answers_after_it_is_kept_as_before(tmp_path, name):
    sets, labels = image_sets()
    before, after = learned_and_kept(tmp_path, sets, labels, name, p=[1, 2])
    assert same(before, after)
    # the mean of these frames tells nothing
    assert name == "mean frame: SVM" or (before.labels == labels[1::2]).mean() > 0.4
    assert before.scores.shape == (12, 3) and np.isfinite(before.scores).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ON_VIDEOS)
def test_a_model_of_videos_does_too(tmp_path, name):
    pytest.importorskip("skimage", reason="DL-Pegasos needs the extra 'image'")
    videos, labels = simulated_textures(6, texture_systems(12)[::4], n_frames=12)
    before, after = learned_and_kept(tmp_path, videos, labels, name, kernels=False)
    assert same(before, after) and len(before.labels) == 9


@pytest.mark.parametrize("coding", [["gsc", "glc"], []])
def test_of_rows_that_are_right_as_often_one_that_codes_answers_else_the_first(coding):
    sets, labels = image_sets(noise=0.01)
    methods = ["nearest subspace", "svm", *coding]
    settings = settings_of(None, methods=methods, p=[2], kernels=False)
    model = fit(sets, labels, settings=settings, recipe=Recipe(2))
    first = "gSC, labelled sets as atoms" if coding else "nearest subspace"
    assert model.score == 1 and model.method == first
    assert (model.coder is None) == bool(coding) and model.coding.method.startswith(
        "gSC"
    )


def test_rows_that_were_normalised_after_stacking_are_no_videos():
    """The frames of a clip cannot be told from them."""
    rng = np.random.default_rng(0)
    clips = [Clip(str(i), i % 2, None, [rng.random((8, 3, 4))]) for i in range(4)]
    settings = settings_of("lds")
    for more, as_videos in (
        ({}, True),
        ({"center": True}, False),
    ):
        recipe = Recipe(2, stack=2, **more)
        collection = build_all(clips, recipe, keep_rows=True, strict=True)
        videos = inputs_for(collection, recipe, settings).videos
        assert (videos is not None) == as_videos
        if as_videos:
            np.testing.assert_array_equal(videos, [clip.sources[0] for clip in clips])


@pytest.mark.parametrize("rule", core.RULES)
def test_a_kept_model_answers_by_the_rule_that_it_was_kept_with(tmp_path, rule):
    """Files of local codes name their rule, which stays when the usual rule changes."""
    sets, labels = image_sets(noise=1.5)
    model = fit(
        sets[::2], labels[::2], recipe=Recipe(2), settings=settings_of("glc", p=[2])
    )
    # what the search chose
    assert model.estimator.rule in tuning.RULES_OF_CODES["local"]
    model = replace(model, parameters={**model.parameters, "rule": rule})
    save(tmp_path / "model.npz", model)
    kept = load(tmp_path / "model.npz")
    assert kept.estimator.rule == rule
    K_dd = kept.estimator.gram_
    new = build_new(kept, clips_of(sets[1::2]))
    K_xd = kept.reader.asked(kept.reader.points(new), kept.points)
    codes = core.locality_codes(K_dd, K_xd, 3, norm2=2)
    scores, classes = core.class_scores(
        codes, K_dd, K_xd, labels[::2], norm2=2, rule=rule
    )
    found = predict(kept, sets[1::2]).labels
    assert found.tolist() == classes[scores.argmax(axis=1)].tolist()


def test_every_row_that_can_be_chosen_is_tried_here():
    """Those of compare --baselines --kernels --atoms 4, but for the two votes."""
    sets, labels = image_sets()
    inputs = Bank(
        build_all(
            clips_of(sets, labels),
            Recipe(3),
            keep_rows=True,
        )
    )
    inputs.videos = [np.zeros((12, 16, 16))] * 3
    every = [*every_method(inputs)(24, 18, settings_of("gsc"))]
    assert sorted(row.name for row in every) == sorted(ON_SETS + ON_VIDEOS)
    for row in every:  # a file keeps what a grid chooses
        chosen = {key.rpartition("__")[2] for key in row.grid}
        assert row.predict or chosen <= PARAMETERS.keys()


@pytest.mark.parametrize(
    "name",
    [
        "gsc",
        "kglc",
        "svm on a kernel",
        "kahm affine hulls",
        "kahm convex",
        "dcc",
        "msm",
        "gsc 4 learned",
    ],
)
def test_the_answers_are_those_of_the_row_that_was_evaluated(name):
    """A model's answers and scores are those of its row, whatever the sets' rank."""
    sets, labels = image_sets(noise=1.0)
    recipe = Recipe(3)
    collection = build_all(clips_of(sets, labels), recipe, keep_rows=True)
    train = np.arange(0, 24, 2)
    settings = settings_of(name, p=[2])
    inputs = inputs_for(collection, recipe, settings)
    model = fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    rows = evaluate(
        inputs, labels, None, train, train + 1, every_method(inputs), settings
    )
    outcome = next(row for row in rows if row.method.name == model.method)
    assert told(outcome.chosen) == model.chosen
    found = predict(model, sets[1::2])
    assert found.labels.tolist() == outcome.predicted.tolist()
    kind = (
        "predict_proba"
        if kinds_of_scores(model) == "probability"
        else ("decision_function")
    )
    scores = getattr(outcome.estimator, kind)(outcome.queries)
    assert np.allclose(found.scores, scores, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["gsc", "svm on the", "nearest subspace", "gda", "gsc 4 learned"]
)
def test_of_two_classes_the_one_of_the_higher_score_is_the_answer(name):
    sets, labels = image_sets(noise=1.5)
    two = np.flatnonzero(labels != "cat")
    sets = [sets[i] for i in two]
    model = fit(
        sets[:10], labels[two[:10]], settings=settings_of(name, p=[2]), recipe=Recipe(2)
    )
    found = predict(model, sets)
    assert set(found.labels) == {"ape", "bee"} and found.scores.shape == (16, 2)
    assert found.labels.tolist() == found.classes[found.scores.argmax(axis=1)].tolist()


def test_groups_are_kept_together_in_cross_validation():
    """Each group of three sets has its own look and label.

    Sets of a group find each other unless folds keep the group together.
    """
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(8), 3)
    looks = rng.standard_normal((8, 2, 30))
    sets = [rng.standard_normal((6, 2)) @ looks[g] for g in group]
    settings = settings_of("nearest subspace", p=[2])
    for groups, low, high in (
        (None, 0.95, 1),
        (group, 0, 0.75),
        ([*map(str, group)], 0, 0.75),
    ):
        model = fit(sets, group % 2, groups, settings=settings, recipe=Recipe(2))
        assert low <= model.score <= high


def test_a_video_too_short_for_dynamics_costs_no_other():
    """What all sets together cannot have is asked of each alone."""
    videos, labels = simulated_textures(4, texture_systems(12)[::6], n_frames=8)
    model = fit(
        videos,
        labels,
        settings=settings_of("pm", kernels=False),
        recipe=Recipe(2, fewer=True),
    )
    found = predict(model, [videos[0], videos[1][:2], *videos[2:]])
    assert found.failed == {"set 1": "a video needs three frames or more"}
    assert found.names == [f"set {i}" for i in range(len(videos)) if i != 1]
    unread = build_both(
        model,
        [
            Clip("a", None, None, [videos[0]]),
            Clip("b", None, None, [videos[1][:2]]),
            Clip("c", None, None, [videos[0][:, 1:]]),
        ],
    )
    assert set(answers_of(model, *unread).failed) == {"b", "c"}
    alone = predict(model, [videos[0], *videos[2:]])
    assert found.labels.tolist() == alone.labels.tolist()
    assert found.scores.shape == (len(videos) - 1, 2)


def test_the_best_in_cross_validation_answers():
    sets, labels = image_sets(noise=3.0)
    many = fit(
        sets, labels, settings=settings_of("gsc", methods=None, p=[1, 2], atoms=0)
    )
    assert re.fullmatch(
        r"Model\(.* \(.*\): [\d.]+ % right in cross-validation on the labelled sets; \d+ "
        r"classes\)",
        repr(many),
    )
    alone = [
        fit(sets, labels, settings=settings_of(name, p=[1, 2])) for name in ON_SETS[:8]
    ]
    scores = [model.score for model in alone]
    assert many.score == max(scores) > min(scores)


def test_what_a_new_set_must_have_is_what_the_labelled_ones_had(tmp_path):
    rng = np.random.default_rng(0)
    sets = [rng.random((6, 4, 6)) + 3 * (np.arange(6) // 3 == i % 2) for i in range(12)]
    labels = np.arange(12) % 2
    model = fit(
        sets, labels, recipe=Recipe(3, center=True), settings=settings_of("gsc", p=[3])
    )
    new = [
        sets[0],
        rng.random((6, 6, 4)),
        rng.random((6, 5, 6)),
        rng.random((2, 4, 6)),
        sets[1],
    ]
    found = predict(model, new)
    assert found.names == ["set 0", "set 4"] and found.labels.dtype == labels.dtype
    assert list(found.failed) == ["set 1", "set 2", "set 3"]
    assert "has frames of 6 x 4 and the model has 4 x 6" in found.failed["set 1"]
    assert "has frames of 5 x 6 and the model has 4 x 6" in found.failed["set 2"]
    assert "must hold p = 3 independent frames" in found.failed["set 3"]


def test_a_set_that_a_kernel_cannot_have_costs_no_other():
    sets, labels = image_sets()
    model = fit(
        sets, labels, settings=settings_of("kgsc", p=[3]), recipe=Recipe(3, fewer=True)
    )
    flat = np.repeat(sets[0][:1], 6, axis=0)
    found = predict(model, [sets[0], flat, sets[1]])
    assert found.names == ["set 0", "set 2"] and re.search(
        "rank", found.failed["set 1"]
    )
    assert found.labels.tolist() == predict(model, [sets[0], sets[1]]).labels.tolist()


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "foreign", "dictionary", "stranger"]
)
def test_damaged_and_foreign_files_are_refused(tmp_path, damage):
    sets, labels = image_sets()
    path = tmp_path / "model.npz"
    save(path, fit(sets, labels, settings=settings_of("gsc")))
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 2] ^= 1
    elif damage == "foreign":
        content = b"a letter"
    path.write_bytes(content)
    if damage == "dictionary":
        files.save(path, np.eye(4)[None, :, :2])
    elif damage == "stranger":
        files.write_arrays(
            path, "model", {"model": files.as_json({"Popen": {"dict": []}})}
        )
    with pytest.raises(ValueError, match="path must be a model"):
        load(path)


KEPT_LABELS = {
    "ints": [10, 9, -2],
    "short ints": np.array([3, 1, 2], np.int8),
    "large": np.array([2**64 - 1, 0, 1], np.uint64),
    "floats": [0.5, 1.5, -1.0],
    "float32": np.array([0.1, 0.2, 0.3], np.float32),
    "bools": [True, False, True],
    "text": ["ä ", "ä", "\u732b\t"],
    "empty": ["", " ", "a\0b"],
    "objects": np.array(["b", "a", "c"], object),
    "scalars": [np.int16(4), np.int16(2), np.int16(3)],
}


@pytest.mark.parametrize("kind", KEPT_LABELS)
def test_labels_come_back_as_they_were_given(tmp_path, kind):
    """Out of a model and out of a file of atoms: the same values of the same type."""
    given = KEPT_LABELS[kind]
    plain = [getattr(label, "item", lambda label=label: label)() for label in given]
    sets, _ = image_sets(noise=0.1)
    labels = [given[i % 3] for i in range(24)]
    if isinstance(given, np.ndarray):
        labels = np.array(labels, given.dtype)
    model = fit(
        sets, labels, settings=settings_of("nearest subspace", p=[2]), recipe=Recipe(2)
    )
    save(tmp_path / "model.npz", model)
    found = predict(load(tmp_path / "model.npz"), sets[:3])
    if kind == "bools":  # two classes
        assert found.labels.dtype == bool
    else:
        assert [(type(label), label) for label in found.labels.tolist()] == [
            (type(label), label) for label in plain
        ]
        assert found.classes.tolist() == sorted(plain)
    if isinstance(given, np.ndarray) and given.dtype != object:
        assert found.labels.dtype == found.classes.dtype == given.dtype
    files.save(
        tmp_path / "atoms.npz", np.eye(6).reshape(6, 3, 2).swapaxes(0, 1), labels=given
    )
    kept = files.load(tmp_path / "atoms.npz").labels.tolist()
    assert [(type(label), label) for label in kept] == [
        (type(label), label) for label in plain
    ]


@pytest.mark.parametrize(
    "label, rule",
    [
        (None, "'a', None, 'b'"),
        ((1, 2), r"'a', \(1, 2\), 'b'"),
        (1j, "'a', 1j, 'b'"),
        (np.datetime64("2020-01-01"), r"'a', .*datetime64"),
        (2, "'a', 2, 'b'"),
        ("a\0", r"'a', 'a\\x00', 'b'"),
    ],
)
def test_a_label_that_no_file_holds_is_named_before_anything_is_learned(
    tmp_path, monkeypatch, label, rule
):
    """By every way into a file."""
    monkeypatch.setattr("grassmann_classify.model.build_all", None)
    labels = ["a", label, "b"]
    with pytest.raises(
        (TypeError, ValueError), match=f"^labels must be numbers but .*{rule}"
    ):
        fit([np.eye(3)] * 3, labels)
    with pytest.raises(
        (TypeError, ValueError), match=f"^labels must be numbers but .*{rule}"
    ):
        files.save(tmp_path / "atoms.npz", [np.eye(3)[:, :1]] * 3, labels=labels)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "labels, rule",
    [
        ([2**70, 0, 1], "be numbers but NaN, .* got 0, 1, 1180591620717411303424"),
        ([0.5, np.nan, 1.0], "be numbers but NaN, .*nan"),
        (np.array([1, np.nan, 1]), "be numbers but NaN, .*nan"),
    ],
)
def test_numbers_that_an_array_would_alter_are_no_labels_of_a_file(
    tmp_path, labels, rule
):
    with pytest.raises((TypeError, ValueError), match=f"^labels must {rule}"):
        fit([np.eye(3)] * 3, labels)
    with pytest.raises((TypeError, ValueError), match=f"^labels must {rule}"):
        files.save(tmp_path / "atoms.npz", [np.eye(3)[:, :1]] * 3, labels=labels)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (
            dict(labels=[0, 1]),
            "labels must have length 3, one for each of the sets, got 2",
        ),
        (dict(labels=["a"] * 3), "chosen on sets of at least two classes, got one: a"),
        (dict(sets=[], labels=[]), "chosen on sets of at least two classes, got none"),
        (
            dict(groups=[0, 1]),
            "groups must have length 3, one for each of the sets, got 2",
        ),
        (dict(groups=[0, None, 1]), "groups must name a group for every set, got None"),
        (dict(groups=7), "groups must be a sequence of hashables, got 7"),
        (dict(sets=5), "sets must be a sequence of arrays of frames, got int"),
        (dict(settings={"p": [2]}), "settings must be a Settings, got {'p': \\[2\\]}"),
        (dict(recipe=3), "recipe must be a Recipe, got 3"),
    ],
)
def test_what_a_model_is_asked_to_learn_from_is_checked_first(
    monkeypatch, arguments, message
):
    monkeypatch.setattr("grassmann_classify.model.build_all", None)
    with pytest.raises((TypeError, ValueError), match=message):
        fit(**{"sets": [np.eye(3)] * 3, "labels": [0, 1, 0], **arguments})


def test_what_is_asked_without_a_model_or_sets_is_refused():
    sets, labels = image_sets()
    with pytest.raises(TypeError, match="model must be a Model, .* got 'model.npz'"):
        predict("model.npz", sets)
    model = fit(sets, labels, settings=settings_of("nearest subspace", p=[2]))
    with pytest.raises(ValueError, match="sets must hold at least one set, got none"):
        predict(model, [])


# -------------------------------------------------------------- files with other parts


ABSURD = [None, "x", True, [], {}, [1e9, -1], -1, 0, 1, 0.5, 7, 2**70]
ABSURD += [1000, 1e-320, -1e-9, 1e308, np.inf, np.nan]


def changed_json(tree, value):
    """JSON with the value in the place of one part, for each part."""
    yield value
    if isinstance(tree, dict):
        for name, old in tree.items():
            for part in changed_json(old, value):
                yield {**tree, name: part}
    elif isinstance(tree, list):
        for i, old in enumerate(tree[:20]):
            for part in changed_json(old, value):
                yield [*tree[:i], part, *tree[i + 1 :]]


def without_one(tree):
    """JSON that lacks one part of its objects, or has one more, for each."""
    if isinstance(tree, dict):
        yield {**tree, "more": 1}
        for name, old in tree.items():
            yield {other: tree[other] for other in tree if other != name}
            for part in without_one(old):
                yield {**tree, name: part}


def of_others(tree):
    """JSON with a method, a parameter or a way of reading that other models have."""
    for name in ON_SETS + ON_VIDEOS:
        yield {**tree, "method": name}
        yield {**tree, "method": name, "parameters": {}}
    for name in PARAMETERS:
        for value in (1, 2, 0.1, "max", "unit length", [1, 2], None):
            yield {**tree, "parameters": {**tree["parameters"], name: value}}
    reader = tree["reader"]
    for reads in model_file.READS:
        for more in (
            {},
            {"share": 0.9},
            {"bound": 1.0},
            {"kernel": {"gamma": 0.1}},
            {"kernel": {"gamma": 0.1}, "share": 0.9},
            {"kernel": None},
            {"p": None},
            {"n_blocks": 3},
        ):
            other = {**tree, "reader": {**reader, "reads": reads, **more}}
            yield other
            if not more or "share" in more or "bound" in more:
                for name in ON_SETS[::3] + ON_VIDEOS:
                    yield {**other, "method": name, "parameters": {}}
    for p in (1, 3, 4, 12, 13):
        yield {**tree, "reader": {**reader, "p": p}}
        yield {**tree, "recipe": {**tree["recipe"], "p": p}}
    for value in (1, 2, 100):
        for name in ("stack", "arma", "every", "evenly", "resample", "run"):
            yield {**tree, "recipe": {**tree["recipe"], name: value}}
    for features in ("hog", "lbp", "gei", "raw ", "os:system"):
        yield {**tree, "recipe": {**tree["recipe"], "features": features}}


def changed_array(array):
    """Arrays in place of one: cut, turned, of other types and shapes, out of range."""
    yield from (
        array[:-1],
        array[1:],
        array[:0],
        array[::-1],
        array[None],
        array[..., None],
    )
    yield np.concatenate([array, array])
    yield np.concatenate([array[:1], array[:-1]])  # the first twice, not the last
    yield np.repeat(array[:1], len(array), axis=0)  # one for all
    yield array.ravel()[0]
    if array.ndim > 1:
        yield from (
            array.swapaxes(0, -1),
            array[:, :-1],
            array[..., :-1],
            array.ravel(),
        )
    if array.dtype.kind == "U":
        yield from (np.arange(len(array)), array.astype("U1"), array.astype("S"))
        yield np.where(np.arange(len(array)) == 1, "\n\udc80\x1b", array)
        return
    for dtype in (np.int8, np.uint64, np.float16, np.float32, bool, complex, str):
        yield array.astype(dtype)
    yield from (2 * array, -array.astype(np.int64), array.astype(float) + 1e-3)
    other = array.copy()
    for value in (0, 1, -1, 3, 10**6, 1e300, 1e-300, np.nan, np.inf, 2**62):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for place in (0, 1, -1):
                try:
                    other = array.copy()
                    other[place] = value
                except (OverflowError, ValueError):
                    continue
                yield other
            with contextlib.suppress(OverflowError, ValueError):
                yield np.full_like(array, value)


def answers_or_refuses(path, arrays, content, new):
    """Is the file of these parts loaded? Then its answers are consistent."""
    files.write_arrays(path, "model", {**arrays, "model": files.as_json(content)})
    try:
        model = load(path)
    except ValueError as error:
        assert str(path) in str(error)
        return False
    n = len(model.labels)
    assert len(model.names) == len(model.clips) == n > 1
    assert 0 <= model.score <= 1 and str(model)
    try:
        found = predict(model, new)
    except ValueError:  # no clip has answers by such a recipe
        return True
    k = len(found.names)
    every = [*found.names, *found.failed]
    assert len({one.partition("#")[0] for one in every}) == len(new)
    assert len({*every}) == len(every) and (len(every) == len(new) or model.recipe.run)
    assert found.classes.tolist() == np.unique(model.labels).tolist()
    assert {*found.labels.tolist()} <= {*found.classes.tolist()}
    assert found.labels.dtype == model.labels.dtype and len(found.labels) == k
    assert found.scores.shape == (k, len(found.classes))
    if found.p_values is not None:
        assert found.p_values.shape == found.scores.shape and found.known.shape == (k,)
        p_values = found.p_values[~np.isnan(found.known)]
        assert ((p_values > 0) & (p_values <= 1)).all()
    if k:
        for for_own, for_other in found.reasons:
            assert all(0 <= i < n for i, _ in [*for_own, *for_other])
        assert possible_classes(found, 0.9)
    return True


@pytest.fixture
def kept(tmp_path, monkeypatch, request):
    """(The path of a model of a row, its arrays, its JSON, new sets for it)."""
    name = request.param
    if name in ON_VIDEOS:
        sets, labels = simulated_textures(4, texture_systems(12)[::6], n_frames=9)
    else:
        sets, labels = image_sets(12, noise=1.5)
        sets = [one.reshape(len(one), 3, 4) for one in sets]
    p = None if name in ON_VIDEOS else [2]
    settings = settings_of(name, p=p, kernels=is_in_kernel(name))
    groups = [f"g{i // 2}" for i in range(len(sets))]
    model = fit(sets, labels, groups, recipe=Recipe(3, fewer=True), settings=settings)
    if name.startswith("kg") and model.reader.reads == "gram":
        reader = replace(model.reader, reads="kernels", kernel=kernels.rbf(0.05))
        rows = [one.reshape(len(one), -1) for one in sets]
        model = replace(model, reader=reader, points=rows)
    path = tmp_path / "model.npz"
    save(path, model)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files
    with np.load(path) as file:
        arrays = {one: file[one] for one in file if one not in ("format", "version")}
    content = json.loads(str(arrays.pop("model")))
    assert answers_or_refuses(path, arrays, content, sets[:3])
    return path, arrays, content, sets[:3]


OF_FILES = ["gSC, labelled", "kgSC", "gSC, 4 learned", "mean frame", "MSM", "DCC"]
OF_FILES += ["KAHM, affine hulls", "KAHM, convex hulls", "SVM on the", "LDS", "PM"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kept", [*OF_FILES[:3], "PM"], indirect=True)
def test_a_file_with_other_arrays_is_refused_or_consistent(kept):
    path, arrays, content, new = kept
    refused = 0
    loaded = 0
    for name, array in arrays.items():
        for other in changed_array(array):
            done = answers_or_refuses(path, {**arrays, name: other}, content, new)
            loaded += done
            refused += not done
        less = {one: arrays[one] for one in arrays if one != name}
        optional = name == "groups"
        assert answers_or_refuses(path, less, content, new) == optional
    assert loaded > 10 and refused > 50


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kept", OF_FILES, indirect=True)
def test_a_file_with_other_json_is_refused_or_consistent(kept, monkeypatch, request):
    path, arrays, content, new = kept
    held = {}  # in place of thousands of files
    monkeypatch.setattr(files, "write_arrays", lambda *given: held.update(given[2]))
    monkeypatch.setattr(model_file, "arrays_of", lambda *_: {**held})
    cases = [one for value in ABSURD for one in changed_json(content, value)]
    cases += of_others(content)
    place = OF_FILES.index(request.node.callspec.params["kept"])
    some = cases[place::11]  # each in the file of one row
    loaded = sum(answers_or_refuses(path, arrays, one, new) for one in some)
    assert 0 < loaded < len(some) / 2
    for other in without_one(content):
        done = answers_or_refuses(path, arrays, other, new)
        free = [one and freed(one) for one in (other, other.get("coder"))]
        of_before = "coder" not in other
        whole = [freed(content), content["coder"] and freed(content["coder"])]
        assert not done or of_before or free == whole
        assert not of_before or done == ("coder_bases" not in arrays)


def freed(content):
    """JSON without what may be missing, and without its coder."""
    free = {**content, "parameters": None, "coder": None}
    if "recipe" in content:
        before = dict.fromkeys(["columns", "axes", "step"])  # there were tables
        free["recipe"] = {**before, **content["recipe"], "feature_options": {}}
    if "reader" in content:  # files of before there were spectra have none
        free["reader"] = {"spectrum": None, **content["reader"]}
    return free if "parameters" in content else {}


@pytest.mark.parametrize("kept", ["gSC, labelled"], indirect=True)
@pytest.mark.parametrize(
    "part, value, message",
    [
        ("score", True, "score must be a number, got True"),
        ("score", 1.5, "score must be at most 1, got 1.5"),
        ("judged", 0, "judged must be at least 1, got 0"),
        ("method", "gsc", "there is no row 'gsc'; the rows are: frames: SVM"),
        ("method", "gSC, 4 learned atoms, ridge", "parameters must be those of gSC, 4"),
        ("parameters", {"C": 1.0}, "parameters must be those of gSC, .*, got 'C'"),
        ("parameters", {"lam": -1}, "lam must be at least 0, got -1"),
        ("parameters", None, "parameters must be a dict, got None"),
        ("frame", [2, 2, 2], "frame must be the shape of a frame, got"),
        ("reader", None, "reader must hold bound, kernel, n_blocks, .*, got NoneType"),
        ("reads", "all", "reader's reads must be 'gram', .*, got 'all'"),
        ("reads", "sets", "a model that reads sets must hold offset, rows, got bases"),
        ("p", 1, "bases must have p = 1, got"),
        ("p", 0, "reader's p must be at least 1, got 0"),
        ("n_blocks", 2.5, "reader's n_blocks must be an integer, got 2.5"),
        ("kernel", {"gamma": 1.0}, "reader must have no kernel to read gram"),
        ("features", "hug", "recipe's features must be known, got 'hug'"),
        ("size", [2], "recipe's size must be two numbers, got"),
        ("stack", 0, "recipe's stack must be .*1, got 0"),
        ("key", 3, "recipe's key must be a text, got 3"),
        ("labels", lambda a: a[:-1], "(names|labels) must fit the other parts"),
        ("labels", lambda a: np.repeat("a", len(a)), "labels must be of two classes"),
        ("groups", lambda a: a[None], "groups must fit the other parts"),
        ("bases", lambda a: 2 * a, "bases must have orthonormal columns"),
        ("bases", lambda a: a * np.nan, "bases must be finite"),
        ("bases", lambda a: a[..., 0], "bases must have the axes"),
        ("pixels", lambda a: a[:-1], "pixels must be those of all sides"),
        ("pixels", lambda a: a.astype(np.uint64), "pixels must be those of all sides"),
        ("sides", lambda a: -a, "pixels must be those of all sides"),
        ("offset", lambda _: np.arange(13), "a model that .*, got bases, offset"),
    ],
)
def test_what_is_absurd_in_a_file_is_named(kept, part, value, message):
    path, arrays, content, _ = kept
    if callable(value):
        arrays = {**arrays, part: value(arrays.get(part))}
    else:
        homes = [content, content["reader"], content["recipe"]]
        next(home for home in homes if part in home)[part] = value
    files.write_arrays(path, "model", {**arrays, "model": files.as_json(content)})
    with pytest.raises(ValueError, match=f"is damaged or another file: {message}"):
        load(path)


@pytest.mark.parametrize("kept", ["gSC, 4 learned"], indirect=True)
def test_atoms_are_in_a_file_if_they_were_learned_and_only_then(kept):
    path, arrays, content, _ = kept
    atoms = arrays.pop("atoms")
    arrays.pop("coder_bases")
    content["coder"] = None
    other = {**content, "method": "gSC, labelled sets as atoms", "parameters": {}}
    for parts, of_row in ((arrays, content), ({**arrays, "atoms": atoms}, other)):
        files.write_arrays(path, "model", {**parts, "model": files.as_json(of_row)})
        with pytest.raises(
            ValueError, match="atoms must be there if they were learned"
        ):
            load(path)
    for wrong, message in ((2 * atoms, "atoms must have ortho"), (atoms[:, 1:], "fit")):
        parts = {**arrays, "atoms": wrong, "model": files.as_json(content)}
        files.write_arrays(path, "model", parts)
        with pytest.raises(ValueError, match=f"damaged or another file: .*{message}"):
            load(path)


@pytest.mark.parametrize("kept", ["MSM", "kgSC", "LDS"], indirect=True)
def test_what_is_absurd_in_a_file_of_rows_is_named(kept):
    path, arrays, content, _ = kept
    rows = "videos" if "videos" in arrays else "rows"
    cases = [
        ({rows: arrays[rows] * np.nan}, f"{rows} must be finite, got NaN or inf"),
        ({rows: arrays[rows][:-1]}, "offset must rise from 0 to"),
        ({"offset": arrays["offset"][::-1]}, "offset must rise from 0 to"),
        ({"offset": np.r_[-1, arrays["offset"][1:]]}, "offset must rise from 0 to"),
        ({"offset": arrays["offset"][:-1]}, "must fit the other parts"),
        ({"bases": np.eye(3)[None].repeat(12, axis=0)}, "must (hold|fit)"),
    ]
    if content["reader"]["reads"] == "kernels":
        for gamma in (-1.0, 0.0, np.inf, np.nan, "x"):
            kernel = {"kernel": {"gamma": gamma}}
            cases.append(({}, "reader's gamma must be", kernel))
        cases.append(
            ({}, "reader must have a kernel to read kernels", {"kernel": None})
        )
    for changed, message, *reader in cases:
        other = {**content, "reader": {**content["reader"], **dict(*reader)}}
        parts = {**arrays, **changed, "model": files.as_json(other)}
        files.write_arrays(path, "model", parts)
        with pytest.raises(ValueError, match=f"damaged or another file: .*{message}"):
            load(path)


# -------------------------------------------------------------------------- the command


@pytest.fixture
def data(tmp_path):
    """Two classes of six clips; four new ones, at several depths, one turned."""
    rng = np.random.default_rng(0)
    pattern = {"run": rng.random((3, 192)), "walk": rng.random((3, 192))}

    def clip(label, shape=(12, 16)):
        rows = rng.random((8, 3)) @ pattern[label] / 3 + 0.1 * rng.random((8, 192))
        return (255 * rows / rows.max()).astype(np.uint8).reshape(8, *shape)

    for label in pattern:
        (tmp_path / "data" / label).mkdir(parents=True)
        for k in range(6):
            np.save(tmp_path / "data" / label / f"{k}.npy", clip(label))
    deep = tmp_path / "new" / "some" / "deep"
    deep.mkdir(parents=True)
    np.save(tmp_path / "new" / "a.npy", clip("run"))
    np.save(deep / "b.npy", clip("walk"))
    np.save(deep / "turned.npy", clip("walk", (16, 12)))
    (tmp_path / "new" / "c").mkdir()
    for i, frame in enumerate(clip("run")):
        Image.fromarray(frame).save(tmp_path / "new" / "c" / f"{i}.png")
    (tmp_path / "new" / "notes.txt").write_text("no clip")
    return tmp_path


def command(folder, *arguments):
    more = [] if "--model" in arguments else ["--no-pictures"]
    main([*map(str, arguments), *more, "--out", str(folder / "out")])
    with open(folder / "out" / "predictions.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_command_answers_learns_keeps_and_answers_again(data, capsys):
    kept = data / "model.npz"
    first = command(
        data, "predict", data / "new", "--data", data / "data", "--save", kept
    )
    printed = capsys.readouterr()
    assert "right in cross-validation on the labelled sets" in printed.out
    assert "  run: 2 clips\n  walk: 1 clip\n" in printed.out
    assert [row["clip"] for row in first] == [
        "a.npy",
        "c",
        "some/deep/b.npy",
        "some/deep/turned.npy",
    ]
    assert [row["label"] for row in first] == ["run", "run", "walk", ""]
    assert "has frames of 16 x 12 and the model has 12 x 16" in first[-1]["failed"]
    names = {"clip", "label", "possible", "because", "method", "chosen", "failed"}
    names |= {"by coding", "label_next"}
    scores = [name for name in first[0] if name not in names]
    assert [name.split()[1] for name in scores] == ["run", "walk"]
    shutil.rmtree(data / "data")
    assert command(data, "predict", data / "new", "--model", kept) == first
    alone = command(data, "predict", data / "new" / "a.npy", "--model", kept)
    assert [row["label"] for row in alone] == ["run"]


@pytest.mark.parametrize(
    "where, message",
    [
        ("data", "--save must be the path of a file, got .*data, which is a folder"),
        (
            "data/run/0.npy/model.npz",
            "--save must be a path that a file can be written to, got .*Not a directory",
        ),
    ],
)
def test_a_model_that_cannot_be_kept_is_not_learned(data, monkeypatch, where, message):
    never = lambda *_: pytest.fail("learned in vain")  # noqa: E731
    monkeypatch.setattr("grassmann_classify.answer.learn", never)
    with pytest.raises(SystemExit, match=message):
        command(data, "predict", "--data", data / "data", "--save", data / where)


def test_a_model_replaces_no_file_but_a_model_and_none_that_is_read(data, monkeypatch):
    kept = data / "model.npz"
    learning = "predict", "--data", data / "data", "--methods", "gsc", "--no-kernels"
    command(data, *learning, data / "new", "--save", kept)
    command(data, *learning, data / "new", "--save", kept)  # a model of ours
    content = kept.read_bytes()
    (data / "more" / "run").mkdir(parents=True)
    shutil.copy(data / "new" / "a.npy", data / "more" / "run")
    (data / "link.npz").symlink_to(kept)
    adding = "add", data / "more", "--model", kept
    for arguments, path, message in (
        (adding, kept, "--save must not be what this run reads"),
        (adding, data / "link.npz", "--save must not be what this run reads"),
        (adding, data / "more" / "run" / "a.npy", "--save must not be what this run"),
        (learning, data / "data" / "run" / "0.npy", "--save must not be what this run"),
        (learning, data / "new" / "notes.txt", "--save must be a new file, or a model"),
    ):
        before = path.read_bytes()
        with pytest.raises(SystemExit, match=message):
            command(data, *arguments, "--save", path)
        assert path.read_bytes() == before
    assert kept.read_bytes() == content
    kept.write_bytes(content[:-1] + b"x")
    with pytest.raises(SystemExit, match="--save must be a new file, or a model that"):
        command(data, *learning, "--save", kept)


def test_an_evaluation_says_which_clip_was_wrong_and_chooses_rows(data, capsys):
    np.save(data / "data" / "walk" / "6.npy", np.load(data / "data" / "run" / "0.npy"))
    rows = command(
        data,
        "compare",
        data / "data",
        "--repeats",
        2,
        "--methods",
        "gsc,SVM on the",
        "--f1",
        "--lam",
        0.1,
    )
    header = [
        "clip",
        "split",
        "truth",
        "SVM on the projection kernel",
        "gSC, labelled sets as atoms",
    ]
    assert list(rows[0]) == header
    assert {row["split"] for row in rows} == {"0", "1"} and len(rows) == 2 * 7
    out = capsys.readouterr().out
    assert re.search(r"accuracy in % +balanced +F1 +seconds", out)
    assert (
        "2 classes" in out
        and "2 splits: random splits, 50 % to train; ± is over the" in out
    )
    wrong = [row for row in rows if row["clip"] == "walk/6.npy"]
    assert all(row["truth"] == "walk" for row in wrong)


def sheets_drawn(monkeypatch):
    """The rows of each sheet, as they are drawn from now on."""
    shown = []
    draw = plots.plot_sheet

    def keep(rows, **choices):
        shown.append(rows)
        return draw(rows, **choices)

    monkeypatch.setattr(plots, "plot_sheet", keep)
    return shown


def test_the_clips_that_were_wrong_are_pictured(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    np.save(data / "data" / "walk" / "6.npy", np.load(data / "data" / "run" / "0.npy"))
    main(
        [
            "compare",
            str(data / "data"),
            "--out",
            str(data / "out"),
            "--repeats",
            "2",
            "--methods",
            "nearest",
            "--no-kernels",
            "--dpi",
            "30",
        ]
    )
    with open(data / "out" / "predictions.csv", newline="", encoding="utf-8") as file:
        wrong = {
            (row["clip"], row["truth"], row["nearest subspace"])
            for row in csv.DictReader(file)
            if row["truth"] != row["nearest subspace"]
        }
    (rows,) = shown
    leads = [row[0][1] for row in rows]
    assert wrong and len(leads) == len({clip for clip, _, _ in wrong})
    for lead, row in zip(leads, rows):
        told, *_, clip = lead.split("\n")
        truth, _, answer = told.partition(", not ")
        assert (f"{truth}/{clip}.npy", truth, answer) in wrong
        # the nearest labelled clip, alone
        (reason,) = row[2:]
        share, name = reason[1].split("\n")
        assert row[1] is None and share == f"{answer} 1"
        assert name in [*"0123456"]
    assert any(lead.startswith(("walk, not run", "run, not walk")) for lead in leads)
    assert (data / "out" / "wrong.png").exists()


def test_a_run_replaces_all_that_the_last_one_left_and_nothing_else(data):
    command(data, "compare", data / "data", "--repeats", 1, "--methods", "gsc,nearest")
    assert (data / "out" / "results.json").exists() and (
        data / "out" / "codes.npz"
    ).exists()
    (data / "out" / "mine.csv").write_text("")
    command(data, "predict", data / "new", "--data", data / "data", "--methods", "gsc")
    left = {path.name for path in (data / "out").iterdir()}
    assert left == {"predictions.csv", "report.html", ".grassmann-classify", "mine.csv"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("predict NEW", "--data is needed, or --model"),
        ("predict NEW --data DIR --model M", "--data is needed, or --model, and not"),
        ("predict --model M", "NEW is needed, or --save"),
        ("predict --data DIR", "NEW is needed, or --save"),
        ("predict NEW --model M --save N", "--save and --model exclude each other"),
        ("predict NEW --model M --size 8 8", "--size and --model exclude each other"),
        ("add NEW --model M", "the following arguments are required: --save"),
        (
            "add NONE --model M --save N",
            "MORE must be a folder, an .npz file or a reco",
        ),
        (
            "compare DIR --methods ,",
            "--methods must hold the first words of rows, got none",
        ),
    ],
)
def test_what_does_not_go_together_is_said_at_once(
    tmp_path, monkeypatch, arguments, message, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("NEW", "DIR"):
        (tmp_path / name).mkdir()
    (tmp_path / "M").write_bytes(b"")
    with pytest.raises(SystemExit):
        parse(arguments.split())
    assert message in capsys.readouterr().err


def test_a_row_that_is_not_there_is_named_with_those_that_are(data):
    with pytest.raises(
        SystemExit,
        match=r"got 'gsx' \(did you mean gsc\?\); the rows are: frames: SVM; mean frame",
    ):
        command(data, "compare", data / "data", "--methods", "gsc,gsx")
    with pytest.raises(SystemExit, match="vote"):
        command(
            data, "predict", data / "new", "--data", data / "data", "--methods", "vote"
        )


# ------------------------------------------------------------- why, and none of these


def test_answers_say_why_and_what_is_unlike_all_classes(tmp_path):
    rng = np.random.default_rng(3)
    looks = rng.standard_normal((4, 2, 12))
    place = np.arange(64) % 4
    sets = [
        rng.standard_normal((6, 2)) @ looks[c] + 0.2 * rng.standard_normal((6, 12))
        for c in place
    ]
    labels = np.array(["ape", "bee", "cat", "dog"])[place]
    known = np.flatnonzero(place < 3)[:36]
    new = [i for i in range(64) if i not in set(known)]
    settings = settings_of("gSC, labelled", p=[2])
    model = fit(
        [sets[i] for i in known],
        labels[known],
        recipe=Recipe(2, fewer=True),
        settings=settings,
    )
    save(tmp_path / "model.npz", model)
    found = predict(load(tmp_path / "model.npz"), [sets[i] for i in new])
    before = predict(model, [sets[i] for i in new])
    assert np.array_equal(found.p_values, before.p_values)
    assert np.array_equal(found.known, before.known)
    assert found.because.tolist() == before.because.tolist()
    unknown = labels[new] == "dog"
    assert (found.known[unknown] <= 0.1).all() and (
        found.known[~unknown] > 0.1
    ).sum() >= 9
    for i in np.flatnonzero(~unknown):
        assert found.p_values[i].argmax() == found.classes.tolist().index(
            found.labels[i]
        )
        for words in found.because[i].split("; "):
            name, label, share = words.rsplit(" ", 2)
            assert label == f"({labels[new][i]})" and float(share)
            assert labels[known][int(name.split()[1])] == labels[new][i]
    words = possible_classes(found, 0.9)
    assert [one == "unlike all classes" for one in words] == (
        found.known <= 0.1
    ).tolist()
    others = [found.classes[p > 0.1] for p in found.p_values]
    for one, classes, p in zip(words, others, found.known):
        assert p <= 0.1 or one == ("; ".join(classes) or "none")
    assert model.estimator.noticed(0.9, left_out=model.left_out) > 0.9
    assert model.estimator.noticed(1 - 1e-9, left_out=model.left_out) == 0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", ["SVM on the projection", "mean frame", "gLC, labelled"]
)
def test_each_method_says_why_by_coding(name):
    """By itself or by the model beside it, whose labels may be others."""
    sets, labels = image_sets()
    settings = settings_of(name, p=[2])
    recipe = Recipe(3, fewer=True)
    model = fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    found = predict(model, sets[1::2])
    assert len(found.because) == 12 and (model.coder is None) == (name[:3] == "gLC")
    alone = predict(model.coding, sets[1::2])
    assert found.p_values.tolist() == alone.p_values.tolist()
    assert found.known.tolist() == alone.known.tolist()
    assert found.coded.tolist() == alone.labels.tolist()
    differ = found.labels != alone.labels
    assert differs(found) == differ.tolist() and any(differ) == (name == "mean frame")
    assert (found.ahead[differ] < 0).all() and (found.ahead[~differ] > 0).all()
    assert found.runner_up[differ].tolist() == alone.labels[differ].tolist()
    assert found.instead[differ].tolist() == alone.because[differ].tolist()
    assert found.because[~differ].tolist() == alone.because[~differ].tolist()
    assert all(1 <= len(why.split("; ")) <= 3 for why in alone.because)


# ------------------------------------------------------------------------ more labelled


def whole_of(model, sets, labels, names, clips=None, groups=None):
    """The Model that the choices of a model make of all sets at once."""
    made = build_new(model, clips_of(sets, labels), strict=True)
    given = sets, labels, names, clips, groups
    return Model(
        model.recipe,
        model.frame,
        model.method,
        model.parameters,
        model.reader,
        model.reader.points(made),
        np.array(labels),
        names,
        names if clips is None else clips,
        groups,
        model.chosen,
        model.score,
        model.judged,
        coder=model.coder and whole_of(model.coder, *given),
    )


def check_added(path, few, parts, sets, labels, new):
    """A model grown part by part answers as the one of all sets, kept or not.

    parts: indices of the sets, the first those of the model few.
    """
    before = predict(few, new)
    grown = few
    for part in parts[1:]:
        grown = add(grown, [sets[i] for i in part], [labels[i] for i in part])
    assert same(predict(few, new), before)  # it is not changed
    order = np.concatenate(parts)
    n, k, m = map(len, parts)
    names = [f"set {i}" for i in range(n)] + [f"added set {i}" for i in range(k)]
    names += [f"added set {i}{' (2)' * (i < k)}" for i in range(m)]
    given = [sets[i] for i in order], [labels[i] for i in order]
    whole = whole_of(few, *given, names)
    assert grown.labels.dtype == whole.labels.dtype
    expected = predict(whole, new)
    assert same(predict(grown, new), expected)
    save(path, grown)
    assert same(predict(load(path), new), expected)
    return expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [one for one in ON_SETS if "learned" not in one])
def test_a_model_that_learned_more_is_one_that_learned_all(tmp_path, name):
    """In two steps, of which one brings a new class."""
    sets, labels = image_sets(noise=1.5)
    first = np.flatnonzero((labels != "cat") & (np.arange(24) < 12))
    rest = np.setdiff1d(np.arange(18), first)
    parts = first, rest[:4], rest[4:]
    settings = settings_of(name, p=[2], kernels=is_in_kernel(name))
    few = fit(
        [sets[i] for i in first],
        labels[first],
        recipe=Recipe(3, fewer=True),
        settings=settings,
    )
    assert few.method == name
    if is_in_kernel(name) and few.reader.reads == "gram":  # it chose the linear one
        rows = [sets[i] for i in first]
        reader = replace(few.reader, reads="kernels", kernel=kernels.rbf(0.05))
        few = replace(few, reader=reader, points=rows)
    found = check_added(tmp_path / "grown.npz", few, parts, sets, labels, sets[18:])
    assert found.classes.tolist() == ["ape", "bee", "cat"]
    assert found.p_values.shape == (6, 3)
    words = [one for why in [*found.because, *found.instead] for one in why.split("; ")]
    names = [one.rsplit(" ", 1)[0] for one in words]
    assert any(one.endswith("(cat)") for one in names)
    assert any("added set" in one for one in names)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [one for one in ON_VIDEOS if one != "CS-LDS"])
def test_a_model_of_videos_that_learned_more_is_one_that_learned_all(tmp_path, name):
    pytest.importorskip("skimage", reason="DL-Pegasos needs the extra 'image'")
    videos, labels = simulated_textures(6, texture_systems(12)[::4], n_frames=12)
    parts = np.array([0, 1, 2, 6, 7, 8, 12, 13]), np.array([3, 9, 14]), np.array([15])
    first = parts[0]
    few = fit(
        [videos[i] for i in first],
        [labels[i] for i in first],
        recipe=Recipe(3, fewer=True),
        settings=settings_of(name, kernels=False),
    )
    new = [videos[i] for i in (4, 5, 10, 11, 16, 17)]
    check_added(tmp_path / "grown.npz", few, parts, videos, labels, new)


@pytest.mark.parametrize("name", ["gSC, labelled", "kgSC", "MSM", "frames"])
def test_sets_in_single_and_double_precision_are_kept_to_the_bit(tmp_path, name):
    sets, labels = image_sets(noise=1.5)
    sets = [s.astype(np.float32) if i % 4 < 2 else s for i, s in enumerate(sets)]
    order = [0, 1, 4, 5, 8, 9, 3, 6, 12, 7, 10, 13]
    parts = order[:6], order[6:9], order[9:]  # all single, two double, one single
    settings = settings_of(name, p=[2])
    few = fit(
        [sets[i] for i in parts[0]],
        labels[parts[0]],
        recipe=Recipe(3, fewer=True),
        settings=settings,
    )
    check_added(tmp_path / "grown.npz", few, parts, sets, labels, sets[14:])
    grown = add(few, sets[14:18], labels[14:18])
    with (
        pytest.warns(UserWarning, match="passed over 2 that the model has already"),
        pytest.raises(ValueError, match="sets must hold one that the model has not"),
    ):
        add(grown, [sets[0], sets[15]], labels[:2])


@pytest.mark.parametrize(
    "kind",
    [
        [-7, 3, -1],
        [True, False, True],
        ["b", "a", "long"],
        [0.5, -1.5, 2.0],
    ],
    ids=lambda kind: type(kind[0]).__name__,
)
@pytest.mark.parametrize("name", ["gSC, labelled", "SVM on the projection", "MSM"])
def test_labels_of_any_kind_may_join(tmp_path, name, kind):
    """As the indices of classes are, and their order, so that a new class moves others."""
    sets, labels = image_sets(noise=1.5)
    place = np.unique(labels, return_inverse=True)[1]
    labels = [kind[c] for c in place]
    first = np.flatnonzero(place[:12] > 0)
    rest = np.setdiff1d(np.arange(18), first)
    if len({*kind}) == 2:
        first = np.arange(12)
        rest = np.arange(12, 18)
    few = fit(
        [sets[i] for i in first],
        [labels[i] for i in first],
        recipe=Recipe(3, fewer=True),
        settings=settings_of(name, p=[2]),
    )
    parts = first, rest[:4], rest[4:]
    found = check_added(tmp_path / "grown.npz", few, parts, sets, labels, sets[18:])
    assert found.classes.tolist() == sorted({*kind})
    assert {type(one) for one in found.labels.tolist()} == {type(kind[0])}
    assert {*found.labels.tolist()} <= {*kind}


def test_a_group_in_both_calls_is_one_group(tmp_path):
    """Sets of a person do not explain each other, whichever call brought them."""
    sets, labels = image_sets(30, noise=1.0)
    person = [f"person {i // 3 % 4}" for i in range(24)]
    recipe = Recipe(3, fewer=True)
    settings = settings_of("gSC, labelled", p=[2])
    few = fit(sets[:15], labels[:15], person[:15], recipe=recipe, settings=settings)
    grown = add(few, sets[15:20], labels[15:20], person[15:20])
    grown = add(grown, sets[20:24], labels[20:24], np.array(person[20:24]))
    assert grown.groups == person and len({*grown.clips}) == 24
    names = grown.names
    given = sets[:24], labels[:24], names
    whole = whole_of(few, *given, groups=person)
    expected = predict(whole, sets[24:])
    save(tmp_path / "grown.npz", grown)
    for model in (grown, load(tmp_path / "grown.npz")):
        assert same(predict(model, sets[24:]), expected)
    left_out = whole.estimator.left_out_scores(person)
    assert all(map(np.array_equal, grown.left_out, left_out))
    # a person is one group, not one for each call
    apart = person[:15] + [f"{one} again" for one in person[15:]]
    other = predict(whole_of(few, *given, groups=apart), sets[24:])
    assert not np.array_equal(other.p_values, expected.p_values)
    assert np.array_equal(other.scores, expected.scores)


@pytest.mark.parametrize("which", ["first", "added"])
def test_groups_that_one_call_alone_has_are_passed_over(which):
    sets, labels = image_sets(noise=1.0)
    groups = np.arange(24) // 3 % 4
    first = groups[:18] if which == "added" else None
    settings = settings_of("gSC, labelled", p=[2])
    few = fit(sets[:18], labels[:18], first, recipe=Recipe(3), settings=settings)
    with pytest.warns(UserWarning, match=f"groups are .* the {which} sets have none"):
        grown = add(few, sets[18:], labels[18:], groups[18:] if first is None else None)
    expected = predict(whole_of(few, sets, labels, grown.names), sets[:3])
    assert grown.groups is None and same(predict(grown, sets[:3]), expected)


def test_sets_of_an_added_clip_do_not_explain_each_other(data, capsys):
    """Not those of two clips of one name either, nor of one that is cut and one not."""
    (data / "more" / "run").mkdir(parents=True)
    (data / "more" / "new").mkdir()
    (data / "more" / "jump").mkdir()
    shutil.copy(data / "new" / "a.npy", data / "more" / "run" / "0.npy")
    shutil.copy(
        data / "new" / "some" / "deep" / "b.npy", data / "more" / "new" / "0.npy"
    )
    rng = np.random.default_rng(5)
    for k in range(2):
        np.save(data / "more" / "jump" / f"{k}.npy", rng.random((3 + k, 12, 16)))
    learning = "predict", "--data", data / "data", "--run", 2, "--p", 2
    only = "--methods", "gsc", "--no-kernels", "--recipe", "plain"
    out = "--out", data / "out"
    main([*map(str, [*learning, *only, "--save", data / "few.npz", *out])])
    adding = "add", data / "more", "--model", data / "few.npz"
    main([*map(str, [*adding, "--save", data / "grown.npz", *out])])
    assert "11 sets more, 4 classes" in capsys.readouterr().out
    few = load(data / "few.npz")
    grown = load(data / "grown.npz")
    clips = [
        f"{c}/{k}.npy" for c in ("run", "walk") for k in range(6) for _ in range(4)
    ]
    clips += ["jump/0.npy", *["jump/1.npy"] * 2]
    clips += [*["new/0.npy"] * 4, *["run/0.npy (2)"] * 4]
    assert sorted(grown.clips) == sorted(clips)
    assert len({*grown.names}) == len(grown.names) == 59
    for name, clip in zip(grown.names, grown.clips):
        assert re.fullmatch(re.escape(clip) + r"(#\d)?", name)
    model = grown.estimator
    held = model.left_out_scores(np.array(grown.clips))
    assert all(map(np.array_equal, grown.left_out, held))
    assert not np.array_equal(held[0], model.left_out_scores()[0])
    assert few.clips == grown.clips[: len(few.clips)]


@pytest.mark.parametrize(
    "name", ["gSC, labelled", "kgSC", "SVM on the projection", "mean frame", "MSM"]
)
def test_sets_that_the_model_has_already_are_passed_over(name):
    sets, labels = image_sets(noise=1.5)
    settings = settings_of(name, p=[2])
    model = fit(sets[:14], labels[:14], recipe=Recipe(3, fewer=True), settings=settings)
    before = predict(model, sets[18:])
    again = [3, 14, 0, 15]
    given = [sets[i] for i in again], labels[again]
    said = "passed over 2 that the model has already: added set 0, added set 2"
    with pytest.warns(UserWarning, match=said):
        grown = add(model, *given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = add(model, sets[14:16], labels[14:16])
    assert grown.names == [*model.names, "added set 1", "added set 3"]
    assert grown.labels.tolist() == labels[:16].tolist()
    expected = predict(alone, sets[18:])
    found = predict(grown, sets[18:])
    names = "scores p_values known"
    assert all(bits(found, one) == bits(expected, one) for one in names.split())
    assert found.labels.tolist() == expected.labels.tolist()
    with (
        pytest.warns(UserWarning, match="passed over 3 that the model has already"),
        pytest.raises(
            ValueError, match="one that the model has not already, got 3 that"
        ),
    ):
        add(model, sets[:3], labels[:3])
    assert same(predict(model, sets[18:]), before)


def test_the_command_passes_over_clips_that_the_model_has(data, capsys):
    learning = "predict", data / "new", "--data", data / "data", "--methods", "gsc"
    first = command(data, *learning, "--save", data / "few.npz")
    shutil.copy(data / "new" / "a.npy", data / "data" / "run" / "x.npy")
    adding = "add", data / "data", "--model", data / "few.npz", "--out", data / "out"
    capsys.readouterr()
    main([*map(str, adding), "--save", str(data / "grown.npz")])
    said = capsys.readouterr()
    assert "1 set more, 2 classes" in said.out
    assert "passed over 12 that the model has already: run/0.npy, run/1.npy" in said.err
    assert load(data / "grown.npz").names[-1] == "run/x.npy"
    (data / "data" / "run" / "x.npy").unlink()
    with pytest.raises(
        SystemExit, match="must hold one that the model has not already"
    ):
        main([*map(str, adding), "--save", str(data / "other.npz")])
    assert not (data / "other.npz").exists()
    again = "predict", data / "new", "--model", data / "few.npz"
    assert command(data, *again) == first


def test_add_names_what_is_wrong():
    sets, labels = image_sets()
    recipe = Recipe(3, fewer=True)
    learned = fit(
        sets,
        labels,
        recipe=recipe,
        settings=settings_of("gSC, 4 learned", p=[2]),
    )
    with pytest.raises(
        ValueError, match="model must be of a row without learned atoms, got gSC, 4 lea"
    ):
        add(learned, sets[:2], labels[:2])
    gsc = fit(
        sets[2:],
        labels[2:],
        recipe=recipe,
        settings=settings_of("gSC, labelled", p=[2]),
    )
    with pytest.raises(TypeError, match="labels must be of the type of the model's"):
        add(gsc, sets[:2], [1, 2])
    with pytest.raises(TypeError, match="model must be a Model"):
        add("model.npz", sets[:2], labels[:2])
    with pytest.raises(ValueError, match="labels must have length 2, one for each"):
        add(gsc, sets[:2], labels[:3])
    with pytest.raises(ValueError, match="1: has frames of 11 features and the model"):
        add(gsc, [sets[0], sets[1][:, 1:]], labels[:2])
    with pytest.raises(ValueError, match="groups must name a group for every set"):
        add(gsc, sets[:2], labels[:2], ["a", None])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["gSC, labelled", "SVM on the projection"])
def test_the_runner_up_has_the_next_score_and_reasons_of_its_class(name):
    sets, labels = image_sets()
    recipe = Recipe(3, fewer=True)
    settings = settings_of(name, p=[2])
    model = fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    found = predict(model, sets[1::2])
    by_codes = predict(model.coding, sets[1::2])
    order = np.argsort(-by_codes.scores, axis=1, kind="stable")
    first, second = found.classes[order[:, :2]].T
    expected = np.where(found.labels == first, second, first)
    assert found.runner_up.tolist() == expected.tolist()
    for (first, other), second, words in zip(
        found.reasons, found.runner_up, found.instead
    ):
        assert len(first) and words.count(f"({second})") == len(other)
    assert any(other for _, other in found.reasons)


def test_a_model_keeps_a_small_image_of_each_set_and_of_more():
    sets, labels = image_sets()
    sets = [one.reshape(len(one), -1, 4) for one in sets]
    recipe = Recipe(3, fewer=True)
    settings = settings_of("gSC, labelled", p=[2])
    model = fit(sets[:20], labels[:20], recipe=recipe, settings=settings)
    model = add(model, sets[20:], labels[20:])
    assert len(model.pictures) == len(sets)
    for one, picture in zip(sets, model.pictures):
        n, h, w = np.shape(one)
        assert picture.dtype == np.uint8 and picture.shape == (h, 3 * w + 4)
        for k, part in enumerate((picture[:, :w], picture[:, w + 2 : 2 * w + 2])):
            frame = np.asarray(one[(2 * k + 1) * n // 6], float)
            assert np.corrcoef(part.ravel(), frame.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("low, high", [(0, 1), (-3, 2), (0, 255), (0, 60000), (7, 7)])
def test_small_images_show_any_range_of_values(low, high):
    frame = np.linspace(low, high, 130 * 200).reshape(130, 200)
    made = Clip("a", None, None, [frame[None]])
    (small,) = pictures_of(["a"], np.arange(1), [made])
    assert small.shape == (32, 50) and small.dtype == np.uint8
    assert (np.diff(small.astype(int), axis=0) >= 0).all()
    assert high == low or (small.min() < 8 and small.max() > 247)
    vectors = Clip("v", None, None, [np.ones((3, 4))])
    assert pictures_of(["v"], np.arange(1), [vectors]) == [None]


def test_the_sheet_of_answers_begins_with_the_least_sure(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    out = data / "out"
    given = ["predict", data / "data", "--data", data / "data", "--out", out]
    given += ["--save", data / "model.npz"]
    main([*map(str, given), "--methods", "gsc", "--dpi", "30"])
    paths = sorted((data / "data").rglob("*.npy"))
    found = predict(load(data / "model.npz"), [np.load(path) for path in paths])
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    order = [names[i] for i in np.argsort(found.ahead, kind="stable")]
    assert [row[0][1].split("\n")[1] for row in shown[0]] == order


def test_captions_call_a_class_that_is_a_number_so(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    for label, number in {"run": "3", "walk": "10"}.items():
        (data / "data" / label).rename(data / "data" / number)
    given = ["predict", data / "new", "--data", data / "data", "--out", data / "out"]
    main([*map(str, given), "--methods", "gsc", "--dpi", "30", "--skip"])
    (rows,) = shown
    captions = [cell[1] for row in rows for cell in row if cell is not None]
    assert len(captions) > len(rows) > 1
    assert all(re.match(r"class (3|10)( [\d.e-]+)?\n", one) for one in captions)


def test_sheets_show_each_set_of_a_clip_that_was_cut(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    folder = str(data / "data")
    out = ["--out", str(data / "out"), "--dpi", "30", "--run", "2"]
    only = ["--methods", "gsc", "--no-kernels"]
    main(["predict", folder, "--data", folder, *only, *out])
    main(["cluster", folder, "-k", "2", *out])
    answers_, clusters_ = shown
    assert len(answers_) == 12 and all("#" in row[0][1] for row in answers_)
    assert [len(row) for row in clusters_] == [6, 6]
