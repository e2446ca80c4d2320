"""Models answer the same before and after they are saved, whatever the method.

New clips must have what the labelled ones had.
"""

import csv
import json
import os
import re
import shutil

import numpy as np
import pytest
from PIL import Image
from sklearn.base import clone

import grassmann_sc as core
from examples import answers, classify, comparison
from examples.clips import Clip, Recipe, pictures_of
from examples.options import Settings
from grassmann_sc import files, plots
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
    "KAHM, affine hulls",
    "KAHM, convex hulls",
    "KAHM, affine hulls in a kernel's space",
    "MSM",
    "CMSM",
    "KMSM",
    "KCMSM",
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
    return (
        first.names == second.names
        and first.failed == second.failed
        and first.labels.tolist() == second.labels.tolist()
        and first.scores.tobytes() == second.scores.tobytes()
    )


def learned_and_kept(tmp_path, sets, labels, name, **more):
    """Answers of a model before and after it is saved, and those of its row."""
    recipe = more.pop("recipe", Recipe(3, fewer=True))
    model = answers.fit(
        sets[::2], labels[::2], recipe=recipe, settings=settings_of(name, **more)
    )
    answers.save(tmp_path / "model.npz", model)
    kept = answers.load(tmp_path / "model.npz")
    assert kept.method == model.method and kept.method.startswith(name)
    return answers.predict(model, sets[1::2]), answers.predict(kept, sets[1::2])


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


def test_of_rows_that_are_right_as_often_the_first_answers():
    sets, labels = image_sets(noise=0.01)
    methods = ["nearest subspace", "svm", "gsc"]
    settings = settings_of(None, methods=methods, p=[2], kernels=False)
    model = answers.fit(sets, labels, settings=settings, recipe=Recipe(2))
    assert model.score == 1 and model.method == "nearest subspace"


def test_rows_that_were_normalised_after_stacking_are_no_videos():
    """The frames of a clip cannot be told from them."""
    rng = np.random.default_rng(0)
    clips = [
        answers.Clip(str(i), i % 2, None, [rng.random((8, 3, 4))]) for i in range(4)
    ]
    settings = settings_of("lds")
    for more, as_videos in (
        ({}, True),
        ({"center": True}, False),
        ({"unit_variance": True}, False),
    ):
        recipe = Recipe(2, stack=2, **more)
        collection = answers.build_all(clips, recipe, keep_rows=True, strict=True)
        videos = answers.inputs_for(collection, recipe, settings).videos
        assert (videos is not None) == as_videos
        if as_videos:
            np.testing.assert_array_equal(videos, [clip.sources[0] for clip in clips])


@pytest.mark.parametrize("rule", core.RULES)
def test_a_kept_model_answers_by_the_rule_that_it_was_kept_with(tmp_path, rule):
    """Files of local codes name their rule, which stays when the usual rule changes."""
    sets, labels = image_sets(noise=1.5)
    model = answers.fit(
        sets[::2], labels[::2], recipe=Recipe(2), settings=settings_of("glc", p=[2])
    )
    assert model.estimator.rule in core.RULES_OF_CODES["local"]  # what the search chose
    model.estimator.set_params(rule=rule)
    answers.save(tmp_path / "model.npz", model)
    kept = answers.load(tmp_path / "model.npz")
    assert kept.estimator.rule == rule
    K_dd = kept.estimator.gram_
    K_xd = kept.reader.transform(
        answers.build_new(
            kept,
            [
                answers.Clip(str(i), None, None, [one])
                for i, one in enumerate(sets[1::2])
            ],
        )
    )
    codes = core.locality_codes(K_dd, K_xd, 3, norm2=2)
    scores, classes = core.class_scores(
        codes, K_dd, K_xd, labels[::2], norm2=2, rule=rule
    )
    found = answers.predict(kept, sets[1::2]).labels
    assert found.tolist() == classes[scores.argmax(axis=1)].tolist()


def test_a_model_without_what_came_later_is_read_by_its_defaults(tmp_path):
    """Older files have no key in the recipe, and their estimator holds the labels."""
    sets, labels = image_sets()
    model = answers.fit(sets, labels, settings=settings_of("nearest", p=[2]))
    expected = answers.predict(model, sets)
    del model.recipe.__dict__["key"]
    model.estimator.classes_ = model.__dict__.pop("classes")
    answers.save(tmp_path / "old.npz", model)
    found = answers.predict(answers.load(tmp_path / "old.npz"), sets)
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.classes.tolist() == expected.classes.tolist()
    assert np.array_equal(found.scores, expected.scores)


def test_every_row_that_can_be_chosen_is_tried_here():
    """Those of classify --baselines --kernels --atoms 4, but for the two votes."""
    sets, labels = image_sets()
    inputs = answers.Inputs(
        answers.build_all(
            [
                answers.Clip(str(i), label, None, [one])
                for i, (one, label) in enumerate(zip(sets, labels))
            ],
            Recipe(3),
            keep_rows=True,
        )
    )
    inputs.videos = [np.zeros((12, 16, 16))] * 3
    every = answers.every_method(inputs)(24, 18, settings_of("gsc"))
    assert sorted(row.name for row in every) == sorted(ON_SETS + ON_VIDEOS)


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
    clips = [
        answers.Clip(str(i), label, None, [one])
        for i, (one, label) in enumerate(zip(sets, labels))
    ]
    recipe = Recipe(3)
    collection = answers.build_all(clips, recipe, keep_rows=True)
    train = np.arange(0, 24, 2)
    settings = settings_of(name, p=[2])
    inputs = answers.inputs_for(collection, recipe, settings)
    model = answers.fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    rows = comparison.evaluate(
        inputs, labels, None, train, train + 1, answers.every_method(inputs), settings
    )
    outcome = next(row for row in rows if row.method.name == model.method)
    assert comparison.told(outcome.chosen) == model.chosen
    found = answers.predict(model, sets[1::2])
    assert found.labels.tolist() == outcome.predicted.tolist()
    kind = (
        "predict_proba"
        if answers.kinds_of_scores(model) == "probability"
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
    model = answers.fit(
        sets[:10], labels[two[:10]], settings=settings_of(name, p=[2]), recipe=Recipe(2)
    )
    found = answers.predict(model, sets)
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
        model = answers.fit(
            sets, group % 2, groups, settings=settings, recipe=Recipe(2)
        )
        assert low <= model.score <= high


def test_a_video_too_short_for_dynamics_costs_no_other():
    """What all sets together cannot have is asked of each alone."""
    videos, labels = simulated_textures(4, texture_systems(12)[::6], n_frames=8)
    model = answers.fit(
        videos,
        labels,
        settings=settings_of("pm", kernels=False),
        recipe=Recipe(2, fewer=True),
    )
    found = answers.predict(model, [videos[0], videos[1][:2], *videos[2:]])
    assert found.failed == {"set 1": "a video needs three frames or more"}
    assert found.names == [f"set {i}" for i in range(len(videos)) if i != 1]
    unread = answers.build_new(
        model,
        [
            answers.Clip("a", None, None, [videos[0]]),
            answers.Clip("b", None, None, [videos[1][:2]]),
            answers.Clip("c", None, None, [videos[0][:, 1:]]),
        ],
    )
    assert set(answers.answer(model, unread).failed) == {"b", "c"}
    alone = answers.predict(model, [videos[0], *videos[2:]])
    assert found.labels.tolist() == alone.labels.tolist()
    assert found.scores.shape == (len(videos) - 1, 2)


def test_a_model_of_another_version_of_scikit_learn_says_so(
    tmp_path, monkeypatch, recwarn
):
    sets, labels = image_sets()
    path = tmp_path / "model.npz"
    answers.save(path, answers.fit(sets, labels, settings=settings_of("gsc", p=[2])))
    recwarn.clear()
    answers.load(path)
    assert not len(recwarn)
    ours = answers.sklearn.__version__
    monkeypatch.setattr(answers.sklearn, "__version__", "9.9")
    with pytest.warns(
        UserWarning, match=f"was learned with scikit-learn {ours}, this is 9.9"
    ):
        model = answers.load(path)
    assert len(answers.predict(model, sets).labels) == 24


def test_the_best_in_cross_validation_answers():
    sets, labels = image_sets(noise=3.0)
    many = answers.fit(
        sets, labels, settings=settings_of("gsc", methods=None, p=[1, 2], atoms=0)
    )
    assert re.fullmatch(
        r"Model\(.*: [\d.]+ % right in cross-validation, \d+ classes\)", repr(many)
    )
    alone = [
        answers.fit(sets, labels, settings=settings_of(name, p=[1, 2]))
        for name in ON_SETS[:8]
    ]
    scores = [model.score for model in alone]
    assert many.score == max(scores) > min(scores)


def test_what_a_new_set_must_have_is_what_the_labelled_ones_had(tmp_path):
    rng = np.random.default_rng(0)
    sets = [rng.random((6, 4, 6)) + 3 * (np.arange(6) // 3 == i % 2) for i in range(12)]
    labels = np.arange(12) % 2
    model = answers.fit(
        sets, labels, recipe=Recipe(3, center=True), settings=settings_of("gsc", p=[3])
    )
    new = [
        sets[0],
        rng.random((6, 6, 4)),
        rng.random((6, 5, 6)),
        rng.random((2, 4, 6)),
        sets[1],
    ]
    found = answers.predict(model, new)
    assert found.names == ["set 0", "set 4"] and found.labels.dtype == labels.dtype
    assert list(found.failed) == ["set 1", "set 2", "set 3"]
    assert "has frames of 6 x 4 and the model has 4 x 6" in found.failed["set 1"]
    assert "has frames of 5 x 6 and the model has 4 x 6" in found.failed["set 2"]
    assert "must hold p = 3 independent frames" in found.failed["set 3"]


def test_a_set_that_a_kernel_cannot_have_costs_no_other():
    sets, labels = image_sets()
    model = answers.fit(
        sets, labels, settings=settings_of("kgsc", p=[3]), recipe=Recipe(3, fewer=True)
    )
    flat = np.repeat(sets[0][:1], 6, axis=0)
    found = answers.predict(model, [sets[0], flat, sets[1]])
    assert found.names == ["set 0", "set 2"] and re.search(
        "rank", found.failed["set 1"]
    )
    assert (
        found.labels.tolist()
        == answers.predict(model, [sets[0], sets[1]]).labels.tolist()
    )


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "foreign", "dictionary", "stranger"]
)
def test_damaged_and_foreign_files_are_refused(tmp_path, damage):
    sets, labels = image_sets()
    path = tmp_path / "model.npz"
    answers.save(path, answers.fit(sets, labels, settings=settings_of("gsc")))
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
        answers.load(path)


KEPT_LABELS = {
    "ints": [10, 9, -2],
    "short ints": np.array([3, 1, 2], np.int8),
    "large": np.array([2**64 - 1, 0, 1], np.uint64),
    "floats": [0.5, 1.5, -1.0],
    "float32": np.array([0.1, 0.2, 0.3], np.float32),
    "bools": [True, False, True],
    "text": ["ä ", "ä", "\u732b\t"],
    "empty": ["", " ", "a\0b"],
    "bytes": [b"x", b"\xff ", b""],
    "objects": np.array(["b", "a", "c"], object),
    "scalars": [np.int16(4), np.int16(2), 3],
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
    model = answers.fit(
        sets, labels, settings=settings_of("nearest subspace", p=[2]), recipe=Recipe(2)
    )
    answers.save(tmp_path / "model.npz", model)
    found = answers.predict(answers.load(tmp_path / "model.npz"), sets[:3])
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
        (None, "numbers, strings or bools in a file, got None"),
        ((1, 2), r"numbers, strings or bools in a file, got \(1, 2\)"),
        (1j, "numbers, strings or bools in a file, got 1j"),
        (
            np.datetime64("2020-01-01"),
            "numbers, strings or bools in a file, got datetime.date",
        ),
        (2, "of one type in a file, as an array holds them, got 'a' and 2"),
        (
            "a\0",
            r"not end with a NUL character in a file, since NumPy drops it, got 'a\\x00'",
        ),
    ],
)
def test_a_label_that_no_file_holds_is_named_before_anything_is_learned(
    tmp_path, monkeypatch, label, rule
):
    """By every way into a file; a number of another type counts as another label."""
    monkeypatch.setattr(answers, "build_all", None)
    labels = ["a", label, "b"]
    with pytest.raises((TypeError, ValueError), match=f"^labels must (be )?{rule}"):
        answers.fit([np.eye(3)] * 3, labels)
    with pytest.raises((TypeError, ValueError), match=f"^labels must (be )?{rule}"):
        files.save(tmp_path / "atoms.npz", [np.eye(3)[:, :1]] * 3, labels=labels)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "labels, rule",
    [
        ([1, True, 0], "of one type in a file, as an array holds them, got 1 and True"),
        ([1, 0, 1.0], "of one type in a file, as an array holds them, got 1 and 1.0"),
        (
            [2**70, 0, 1],
            "integers of 64 bits in a file, got 1180591620717411303424 beside 0",
        ),
        (
            [2**63, -1, 1],
            "integers of 64 bits in a file, got 9223372036854775808 beside -1",
        ),
        ([0.5, np.nan, 1.0], "not be NaN, which equals no label, got nan"),
        (np.array([1, np.nan, 1]), "not be NaN, which equals no label, got nan"),
        ([b"a\0", b"a", b"b"], r"not end with a NUL character .* got b'a\\x00'"),
    ],
)
def test_numbers_that_an_array_would_alter_are_no_labels_of_a_file(
    tmp_path, labels, rule
):
    with pytest.raises((TypeError, ValueError), match=f"^labels must (be )?{rule}"):
        answers.fit([np.eye(3)] * 3, labels)
    with pytest.raises((TypeError, ValueError), match=f"^labels must (be )?{rule}"):
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
    monkeypatch.setattr(answers, "build_all", None)
    with pytest.raises((TypeError, ValueError), match=message):
        answers.fit(**{"sets": [np.eye(3)] * 3, "labels": [0, 1, 0], **arguments})


def test_what_is_asked_without_a_model_or_sets_is_refused():
    sets, labels = image_sets()
    with pytest.raises(TypeError, match="model must be a Model, .* got 'model.npz'"):
        answers.predict("model.npz", sets)
    model = answers.fit(sets, labels, settings=settings_of("nearest subspace", p=[2]))
    with pytest.raises(ValueError, match="sets must hold at least one set, got none"):
        answers.predict(model, [])


def replaced(tree, value):
    """JSON with the value in the place of one part, for each part."""
    yield value
    if isinstance(tree, dict):
        yield from (
            {name: part} for name, old in tree.items() for part in replaced(old, value)
        )
    elif isinstance(tree, list):
        for i, old in enumerate(tree[:20]):
            yield from (
                [*tree[:i], part, *tree[i + 1 :]] for part in replaced(old, value)
            )


def test_a_signed_model_with_absurd_contents_is_refused_or_loaded(
    tmp_path, monkeypatch
):
    sets, labels = image_sets()
    path = tmp_path / "model.npz"
    model = answers.fit(sets, labels, settings=settings_of("gsc"))
    answers.save(path, model)
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # hundreds of files
    whole = {
        name: array
        for name, array in np.load(path).items()
        if name not in ("format", "version")
    }
    tree = json.loads(str(whole["model"]))
    kept = 0
    for value in (None, "x", 1e308, True, {"dict": []}, {"float64": [0, [-1]]}):
        for change in replaced(tree, value):
            files.write_arrays(path, "model", whole | {"model": files.as_json(change)})
            try:
                loaded = answers.load(path)
            except ValueError as error:
                assert "path must be a model" in str(error) and str(path) in str(error)
            else:
                assert vars(loaded).keys() == vars(model).keys()
                kept += 1
    assert kept  # such as another score


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("versions", None, "Model.versions must be of type .*dict.*, got None"),
        ("versions", {}, "Model.versions must name scikit-learn's, got {}"),
        ("shape", (1, None, ()), "Model.shape must be d, p and that of frames"),
        ("score", True, "Model.score must be of type .*float.*, got True"),
        ("reader", None, "Model.reader must be known, got NoneType"),
        ("estimator", None, "Model.estimator must have classes, got NoneType"),
    ],
)
def test_what_is_absurd_in_a_model_is_named(tmp_path, name, value, message):
    sets, labels = image_sets()
    model = answers.fit(sets, labels, settings=settings_of("nearest"))
    setattr(model, name, value)
    answers.save(tmp_path / "model.npz", model)
    with pytest.raises(
        ValueError, match=f"model.npz is damaged or another file: {message}"
    ):
        answers.load(tmp_path / "model.npz")


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
    classify.main([*map(str, arguments), *more, "--out", str(folder / "out")])
    with open(folder / "out" / "predictions.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_command_answers_learns_keeps_and_answers_again(data, capsys):
    labelled = (
        "--data",
        data / "data",
        "--predict",
        data / "new",
        "--save",
        data / "model.npz",
    )
    first = command(data, *labelled)
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
    scores = [name for name in first[0] if name not in names]
    assert [name.split()[1] for name in scores] == ["run", "walk"]
    shutil.rmtree(data / "data")
    assert (
        command(data, "--model", data / "model.npz", "--predict", data / "new") == first
    )
    alone = command(
        data, "--model", data / "model.npz", "--predict", data / "new" / "a.npy"
    )
    assert [row["label"] for row in alone] == ["run"]


@pytest.mark.parametrize(
    "where, message",
    [
        ("data", "--save must be the path of a file, got .*data, which is a folder"),
        (
            "data/run/0.npy/model.npz",
            "what --save lies in must be a folder that can be written to",
        ),
    ],
)
def test_a_model_that_cannot_be_kept_is_not_learned(data, monkeypatch, where, message):
    monkeypatch.setattr(answers, "learned", lambda *_: pytest.fail("learned in vain"))
    with pytest.raises((SystemExit, ValueError), match=message):
        command(data, "--data", data / "data", "--save", data / where)


def test_an_evaluation_says_which_clip_was_wrong_and_chooses_rows(data, capsys):
    np.save(data / "data" / "walk" / "6.npy", np.load(data / "data" / "run" / "0.npy"))
    rows = command(
        data,
        "--data",
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
    assert re.search(r"accuracy in % +balanced +F1 +s a split", out)
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
    classify.main(
        [
            "--data",
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
    command(data, "--data", data / "data", "--repeats", 1, "--methods", "gsc,nearest")
    assert (data / "out" / "results.json").exists() and (
        data / "out" / "codes.npz"
    ).exists()
    (data / "out" / "mine.csv").write_text("")
    command(
        data, "--data", data / "data", "--methods", "gsc", "--predict", data / "new"
    )
    left = {path.name for path in (data / "out").iterdir()}
    ours = {"predictions.csv", "report.html", "files.txt", "cache"}
    assert left == {*ours, "mine.csv"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--predict", "new"], "--data is needed, or --model"),
        (["--model", "m.npz"], "--model needs --predict"),
        (
            ["--model", "m.npz", "--predict", "new", "--size", "8", "8"],
            "--size and --model exclude each other",
        ),
        (
            ["--data", "x", "--methods", ","],
            "--methods must hold the first words of rows, got none",
        ),
    ],
)
def test_what_does_not_go_together_is_said_at_once(arguments, message, capsys):
    with pytest.raises(SystemExit):
        classify.parse(arguments)
    assert message in capsys.readouterr().err


def test_a_row_that_is_not_there_is_named_with_those_that_are(data):
    with pytest.raises(
        SystemExit,
        match="got 'gsx'; the rows are: frames: SVM, mean of their scores; mean frame: SVM",
    ):
        command(data, "--data", data / "data", "--methods", "gsc,gsx")
    with pytest.raises(SystemExit, match="vote"):
        command(
            data,
            "--data",
            data / "data",
            "--methods",
            "vote",
            "--predict",
            data / "new",
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
    model = answers.fit(
        [sets[i] for i in known],
        labels[known],
        recipe=Recipe(2, fewer=True),
        settings=settings,
    )
    answers.save(tmp_path / "model.npz", model)
    found = answers.predict(
        answers.load(tmp_path / "model.npz"), [sets[i] for i in new]
    )
    before = answers.predict(model, [sets[i] for i in new])
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
    words = classify.possible_classes(found, 0.9)
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
def test_each_method_says_why_as_far_as_it_can(name):
    sets, labels = image_sets()
    settings = settings_of(name, p=[2])
    recipe = Recipe(3, fewer=True)
    model = answers.fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    found = answers.predict(model, sets[1::2])
    assert len(found.because) == 12
    assert (found.p_values is None) == (not name.startswith("gLC"))
    if name == "mean frame":
        assert set(found.because) == {""}
    else:
        assert all(1 <= len(why.split("; ")) <= 3 for why in found.because)
    model.names = None  # as in a file of an older version
    model.left_out = None
    old = answers.predict(model, sets[1::2])
    assert same(old, found) and set(old.because) == {""} and old.p_values is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    [
        "gSC, labelled",
        "gLC, labelled",
        "kgSC, labelled",
        "nearest subspace",
        "nearest subspace in a kernel",
    ],
)
def test_a_model_that_learned_more_is_one_that_learned_all(tmp_path, name):
    sets, labels = image_sets()
    first = np.flatnonzero((labels != "cat") & (np.arange(24) < 18))
    more = np.setdiff1d(np.arange(18), first)
    settings = settings_of(name, p=[2])
    recipe = Recipe(3, fewer=True)
    few = answers.fit(
        [sets[i] for i in first], labels[first], recipe=recipe, settings=settings
    )
    answers.save(tmp_path / "few.npz", few)
    few = answers.load(tmp_path / "few.npz")
    kept = answers.predict(few, sets[18:])
    grown = answers.add(few, [sets[i] for i in more], labels[more])
    assert same(answers.predict(few, sets[18:]), kept)  # it is not changed
    answers.save(tmp_path / "grown.npz", grown)
    found = answers.predict(answers.load(tmp_path / "grown.npz"), sets[18:])
    assert found.classes.tolist() == ["ape", "bee", "cat"]
    order = [*first, *more]
    reader = type(few.reader)(**{"p": few.reader.p} | gamma_of(few.reader))
    whole = answers.build_new(
        few, [Clip(f"{i}", labels[i], None, [sets[i]]) for i in order]
    )
    reader.fit(whole)
    estimator = clone(few.estimator).fit(
        reader.transform(whole), label_places(labels[order])
    )
    queries = answers.build_new(
        few, [Clip("q", None, None, [one]) for one in sets[18:]]
    )
    expected = estimator.predict(reader.transform(queries))
    assert found.labels.tolist() == [["ape", "bee", "cat"][i] for i in expected]
    if found.p_values is not None:
        again = estimator.p_values(reader.transform(queries))
        assert np.array_equal(found.p_values, again.classes)
    names = [
        words.rsplit(" ", 1)[0] for why in found.because for words in why.split("; ")
    ]
    assert any(one.endswith("(cat)") for one in names)


def gamma_of(reader):
    return {"gamma": reader.gamma} if hasattr(reader, "gamma") else {}


def label_places(labels):
    return np.unique(labels, return_inverse=True)[1]


def test_add_names_what_is_wrong():
    sets, labels = image_sets()
    recipe = Recipe(3, fewer=True)
    svm = answers.fit(
        sets,
        labels,
        recipe=recipe,
        settings=settings_of("SVM on the projection", p=[2]),
    )
    with pytest.raises(
        ValueError, match="model must be of a coding method .*, got SVM"
    ):
        answers.add(svm, sets[:2], labels[:2])
    gsc = answers.fit(
        sets, labels, recipe=recipe, settings=settings_of("gSC, labelled", p=[2])
    )
    with pytest.raises(TypeError, match="labels must be of the type of the model's"):
        answers.add(gsc, sets[:2], [1, 2])
    with pytest.raises(TypeError, match="model must be a Model"):
        answers.add("model.npz", sets[:2], labels[:2])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["gSC, labelled", "SVM on the projection"])
def test_the_runner_up_has_the_next_score_and_reasons_of_its_class(name):
    sets, labels = image_sets()
    recipe = Recipe(3, fewer=True)
    settings = settings_of(name, p=[2])
    model = answers.fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    found = answers.predict(model, sets[1::2])
    order = np.argsort(-found.scores, axis=1, kind="stable")
    assert found.runner_up.tolist() == found.classes[order[:, 1]].tolist()
    for (own, other), second, words in zip(
        found.reasons, found.runner_up, found.instead
    ):
        assert len(own) and words.count(f"({second})") == len(other)
    told = [other for _, other in found.reasons]
    assert any(told) == name.startswith("gSC")


def test_a_model_keeps_a_small_image_of_each_set_and_of_more():
    sets, labels = image_sets()
    sets = [one.reshape(len(one), -1, 4) for one in sets]
    recipe = Recipe(3, fewer=True)
    settings = settings_of("gSC, labelled", p=[2])
    model = answers.fit(sets[:20], labels[:20], recipe=recipe, settings=settings)
    model = answers.add(model, sets[20:], labels[20:])
    assert len(model.pictures) == len(sets)
    for one, picture in zip(sets, model.pictures):
        middle = np.asarray(one[len(one) // 2], float)
        assert picture.dtype == np.uint8 and picture.shape == middle.shape
        assert np.corrcoef(picture.ravel(), middle.ravel())[0, 1] > 0.99


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
    given = ["--data", data / "data", "--predict", data / "data", "--out", out]
    classify.main([*map(str, given), "--methods", "gsc", "--dpi", "30"])
    with open(out / "predictions.csv", newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    margin = {
        row["clip"][:-4]: abs(
            float(row["probability run"]) - float(row["probability walk"])
        )
        for row in rows
    }
    margins = [margin[row[0][1].split("\n")[1]] for row in shown[0]]
    assert len(margins) == 12 and margins == sorted(margins)


def test_sheets_show_each_set_of_a_clip_that_was_cut(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    out = ["--out", str(data / "out"), "--dpi", "30", "--run", "2"]
    given = ["--data", str(data / "data"), "--methods", "gsc", "--no-kernels"]
    classify.main([*given, *out, "--predict", str(data / "data")])
    classify.main([*given[:2], *out, "--cluster", "2"])
    answers_, clusters_ = shown
    assert len(answers_) == 12 and all("#" in row[0][1] for row in answers_)
    assert [len(row) for row in clusters_] == [6, 6]
