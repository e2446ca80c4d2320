"""Models answer the same before and after they are saved, whatever the method.

New clips must have what the labelled ones had.
"""

import csv
import json
import re
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import grassmann_classify
import grassmann_sc as core
from grassmann_classify import add, fit, load, predict, save
from grassmann_classify.__main__ import main
from grassmann_classify.baseline_rows import is_in_kernel
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, pictures_of
from grassmann_classify.evaluation import evaluate
from grassmann_classify.inner_product import InnerProduct
from grassmann_classify.inputs import inputs_for, recipes_for
from grassmann_classify.learning import as_integers, build_new
from grassmann_classify.learning import more as learned_more
from grassmann_classify.model import Answers, answers_of, possible_classes
from grassmann_classify.options import parse
from grassmann_classify.rows import LEARNED, ROWS
from grassmann_classify.settings import Recipe, Settings
from grassmann_classify.words import all_in_words
from grassmann_sc import files, plots, tuning
from grassmann_sc.estimators import CodingClassifier

ANSWERING = [key for key in ROWS if not key.endswith(LEARNED)]
OF_EACH_KIND = [  # what they keep, and how they read it
    "frames: SVM",
    "mean and spread: SVM",
    "nearest subspace",
    "subspaces: SVM",
    "gSC",
    "gLC",
    "kgSC",
]


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
        Clip(f"added set {i}", label, group, [source])
        for i, (source, label, group) in enumerate(zip(sets, labels, groups))
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
    return all(map(equal, first, second))


def equal(first, second):
    """Are two fields of Answers the same?"""
    if not hasattr(first, "dtype") or first.dtype == object:
        return type(first) is type(second) and (
            first == second
            if first is None or isinstance(first, dict)
            else [*first] == [*second]
        )
    return (first.dtype, first.shape, first.tobytes()) == (
        second.dtype,
        second.shape,
        second.tobytes(),
    )


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
@pytest.mark.parametrize("name", ANSWERING)
def test_a_model_answers_after_it_is_kept_as_before(tmp_path, name):
    sets, labels = image_sets()
    before, after = learned_and_kept(tmp_path, sets, labels, name, p=[1, 2])
    assert same(before, after)
    # the mean of these frames tells nothing
    assert name == "mean frame: SVM" or (before.labels == labels[1::2]).mean() > 0.4
    assert before.scores.shape == (12, 3) and np.isfinite(before.scores).all()


@pytest.mark.parametrize("name", ["gsc, learned", "msm", "gda"])
def test_a_row_of_baselines_or_learned_atoms_answers_no_new_clips(name):
    sets, labels = image_sets(12)
    why = f"got '{name}', which new clips, .* leave out; the rows are: frames: SVM;"
    with pytest.raises(ValueError, match=why):
        fit(sets, labels, settings=settings_of(name))


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
        collection = build_all(clips, recipe, strict=True)
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
    K_xd = kept.queries(new)
    codes = core.locality_codes(K_dd, K_xd, 3, norm2=1)
    scores, classes = core.class_scores(
        codes, K_dd, K_xd, labels[::2], norm2=1, rule=rule
    )
    answers = predict(kept, sets[1::2]).labels
    assert answers.tolist() == classes[scores.argmax(axis=1)].tolist()


@pytest.mark.parametrize(
    "name", ["gsc", "glc", "nearest", "subspaces", "frames", "mean and spread"]
)
def test_the_answers_are_those_of_the_row_that_was_evaluated(name):
    """A model's answers and scores are those of its row, whatever the sets' rank."""
    sets, labels = image_sets(noise=1.0)
    recipe = Recipe(3)
    collection = build_all(clips_of(sets, labels), recipe)
    train = np.arange(0, 24, 2)
    settings = settings_of(name, p=[2])
    inputs = inputs_for(collection, recipe, settings)
    model = fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    rows = evaluate(inputs, labels, None, (train, train + 1), settings)
    outcome = next(row for row in rows if row.method.name == model.method)
    assert all_in_words(outcome.chosen) == model.chosen
    result = predict(model, sets[1::2])
    assert result.labels.tolist() == outcome.predicted.tolist()
    if isinstance(model.estimator, CodingClassifier):  # temperatures are of other folds
        queries = model.queries(build_new(model, clips_of(sets[1::2])))
        scores = model.estimator.class_scores(queries)
        expected = outcome.estimator.class_scores(outcome.queries)
    else:
        scores = result.scores
        expected = outcome.estimator.decision_function(outcome.queries)
    tol = 1e-3 if "SVM" in model.method else 1e-6  # where libsvm stops
    assert np.allclose(scores, expected, rtol=tol, atol=tol)


def test_rows_on_videos_read_their_frames_whatever_the_recipes():
    pytest.importorskip("skimage", reason="HOG needs the extra 'image'")
    rng = np.random.default_rng(0)
    labels = np.arange(18) % 3
    patterns = 30 * rng.standard_normal((3, 24, 24))
    waves = np.cos(np.arange(9) + rng.uniform(0, 6, (18, 1)))
    sets = waves[:, :, None, None] * patterns[labels, None]
    sets += 128 + rng.standard_normal(sets.shape)
    settings = Settings(methods=["pm"], kernels=False, features=["hog"])
    collection = build_all(clips_of(sets, labels), Recipe(3))
    inputs = inputs_for(
        collection, Recipe(3), settings, recipes_for(Recipe(3), settings, collection)
    )
    assert [*inputs.recipes] == ["HOG"]
    np.testing.assert_allclose(inputs.videos, sets, rtol=1e-6)
    (row,) = evaluate(
        inputs, labels, None, (np.arange(12), np.arange(12, 18)), settings
    )
    assert "recipe" not in row.chosen
    assert row.predicted.tolist() == labels[12:].tolist()


def test_a_machine_on_frames_keeps_the_scale_that_it_chose(tmp_path):
    """A feature of another unit hides the others unless all are standardised."""
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 3
    sets = [rng.standard_normal((6, 4)) + 3 * np.eye(4)[1 + c] for c in labels]
    sets = [rows * [300, 1, 1, 1] for rows in sets]
    before, after = learned_and_kept(tmp_path, sets, labels, "frames")
    assert load(tmp_path / "model.npz").parameters["scale"] == "standardised"
    assert same(before, after) and (before.labels == labels[1::2]).all()


@pytest.mark.parametrize("name", ["mean and spread", "nearest subspace", "gSC"])
def test_a_model_reads_new_clips_by_the_descriptor_that_it_learned_with(tmp_path, name):
    pytest.importorskip("skimage", reason="HOG needs the extra 'image'")
    rng = np.random.default_rng(0)
    labels = np.arange(18) % 3
    patterns = 30 * rng.standard_normal((3, 24, 24))
    sets = [128 + patterns[c] + rng.standard_normal((5, 24, 24)) for c in labels]
    settings = Settings(methods=[name], kernels=False, features=["hog"])
    model = fit(sets[:12], labels[:12], settings=settings)
    save(tmp_path / "model.npz", model)
    expected = predict(model, sets[12:])
    assert expected.labels.tolist() == labels[12:].tolist()
    assert same(predict(load(tmp_path / "model.npz"), sets[12:]), expected)


@pytest.mark.parametrize("name", ["gsc", "subspaces", "nearest subspace"])
def test_of_two_classes_the_one_of_the_higher_score_is_the_answer(name):
    sets, labels = image_sets(noise=1.5)
    two = np.flatnonzero(labels != "cat")
    sets = [sets[i] for i in two]
    model = fit(
        sets[:10], labels[two[:10]], settings=settings_of(name, p=[2]), recipe=Recipe(2)
    )
    result = predict(model, sets)
    assert set(result.labels) == {"ape", "bee"} and result.scores.shape == (16, 2)
    assert (
        result.labels.tolist() == result.classes[result.scores.argmax(axis=1)].tolist()
    )


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


def test_no_more_new_sets_are_answered_at_once_than_the_model_has(monkeypatch):
    """For memory: their answers, and failures, are those of all together."""
    rows, labels = image_sets(12)
    model = fit(rows, labels, settings=settings_of("kgsc"))
    new = [*image_sets(40)[0], rows[0][:, :-1], rows[1]]
    together = predict(model, new)
    monkeypatch.setattr("grassmann_classify.model.AT_ONCE", 1)
    products = InnerProduct.gram
    sizes = []

    def gram(self, *points):
        sizes.append(len(points[0].collection.X))
        return products(self, *points)

    monkeypatch.setattr(InnerProduct, "gram", gram)
    apart = predict(model, new)
    assert sizes == [12, 12, 12, 5]
    assert apart.names == together.names and apart.failed == together.failed
    np.testing.assert_allclose(apart.scores, together.scores, atol=1e-9)
    np.testing.assert_allclose(apart.p_values, together.p_values, atol=1e-9)


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
        fit(sets, labels, settings=settings_of(name, p=[1, 2]))
        for name in ANSWERING[:8]
    ]
    scores = [model.score for model in alone]
    assert many.codes and many.score > min(scores)


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
    result = predict(model, new)
    assert result.names == ["set 0", "set 4"] and result.labels.dtype == labels.dtype
    assert list(result.failed) == ["set 1", "set 2", "set 3"]
    assert "has frames of 6 x 4 and the model has 4 x 6" in result.failed["set 1"]
    assert "has frames of 5 x 6 and the model has 4 x 6" in result.failed["set 2"]
    assert "has 2 frames, and p = 3 needs 3" in result.failed["set 3"]


def test_integers_stay_integers_as_labels_of_added_sets():
    sets, labels = image_sets()
    number = np.unique(labels, return_inverse=True)[1]
    model = fit(sets[:-2], number[:-2].astype(np.uint64), settings=settings_of("gsc"))
    grown = add(model, sets[-2:], number[-2:].tolist())
    assert grown.labels.dtype.kind == "i" and grown.labels.tolist() == number.tolist()


def test_sets_of_one_name_have_an_answer_each():
    sets, labels = image_sets()
    model = fit(sets, labels, settings=settings_of("gsc"))
    clips = [Clip("a", None, None, [rows]) for rows in sets[:4]]
    result = answers_of(model, build_new(model, clips[:1])._replace(names=["a"]))
    assert result.names == ["a"]
    made = build_new(
        model, [clip._replace(name=f"{k}") for k, clip in enumerate(clips)]
    )
    result = answers_of(model, made._replace(names=["a"] * 4))
    assert result.names == ["a"] * 4 and result.labels.tolist() == labels[:4].tolist()


@pytest.mark.parametrize("row", ["gsc", "kgsc"])
def test_a_set_of_fewer_directions_than_p_is_answered_by_its_own(row):
    sets, labels = image_sets()
    model = fit(
        sets, labels, settings=settings_of(row, p=[3]), recipe=Recipe(3, fewer=True)
    )
    flat = np.repeat(sets[0][:1], 6, axis=0)
    result = predict(model, [sets[0], flat, sets[1]])
    assert result.labels.tolist() == labels[[0, 0, 1]].tolist() and not result.failed
    for alone in (flat, flat[:1]):
        scores = predict(model, [alone]).scores
        np.testing.assert_allclose(scores[0], result.scores[1], atol=1e-6)
    new = build_new(model, [Clip("new", None, None, [flat])])
    K = model.inner.gram(model.inner.points(new))
    np.testing.assert_allclose(K, 1, atol=1e-6)


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
    "scalars first": [np.int64(4), 2, np.int64(3)],
    "scalars last": [4, np.int64(2), 3],
    "texts, mixed": ["b", np.str_("a"), "c"],
    "fractions, mixed": [0.5, np.float64(1.5), -1.0],
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
    result = predict(load(tmp_path / "model.npz"), sets[:3])
    if kind == "bools":  # two classes
        assert result.labels.dtype == bool
    else:
        assert [(type(label), label) for label in result.labels.tolist()] == [
            (type(label), label) for label in plain
        ]
        assert result.classes.tolist() == sorted(plain)
    if isinstance(given, np.ndarray) and given.dtype != object:
        assert result.labels.dtype == result.classes.dtype == given.dtype
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
    monkeypatch.setattr("grassmann_classify.learning.build_all", None)
    labels = ["a", label, "b"]
    with pytest.raises(
        (TypeError, ValueError), match=f"^labels must be finite numbers, .*{rule}"
    ):
        fit([np.eye(3)] * 3, labels)
    with pytest.raises(
        (TypeError, ValueError), match=f"^labels must be finite numbers, .*{rule}"
    ):
        files.save(tmp_path / "atoms.npz", [np.eye(3)[:, :1]] * 3, labels=labels)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "labels, rule",
    [
        ([2**70, 0, 1], "be finite numbers, .* got 0, 1, 1180591620717411303424"),
        ([0.5, np.nan, 1.0], "be finite numbers, .*nan"),
        (np.array([1, np.nan, 1]), "be finite numbers, .*nan"),
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
    monkeypatch.setattr("grassmann_classify.learning.build_all", None)
    with pytest.raises((TypeError, ValueError), match=message):
        fit(**{"sets": [np.eye(3)] * 3, "labels": [0, 1, 0], **arguments})


def test_what_is_asked_without_a_model_or_sets_is_refused():
    sets, labels = image_sets()
    with pytest.raises(TypeError, match="model must be a Model, .* got 'model.npz'"):
        predict("model.npz", sets)
    model = fit(sets, labels, settings=settings_of("nearest subspace", p=[2]))
    with pytest.raises(ValueError, match="sets must hold at least one set, got none"):
        predict(model, [])


# ---------------------------------------------------------------- damaged, and forged


@pytest.fixture(scope="module")
def sealed(tmp_path_factory):
    """(The path of a model, its arrays, its JSON)."""
    sets, labels = image_sets(12)
    groups = [f"g{i // 2}" for i in range(12)]
    settings = settings_of("gSC", p=[2])
    path = tmp_path_factory.mktemp("sealed") / "model.npz"
    save(path, fit(sets, labels, groups, recipe=Recipe(3), settings=settings))
    with np.load(path) as file:
        arrays = {
            name: file[name] for name in file if name not in ("format", "version")
        }
    return path, arrays, json.loads(str(arrays.pop("model")))


def test_a_file_that_is_cut_or_flipped_anywhere_is_refused(sealed, tmp_path):
    content = sealed[0].read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "model.npz"
    for place in rng.integers(0, len(content), 20).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(rng.integers(8))
        for damaged in (content[:place], bytes(flipped), content + content[:place]):
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match="path must be a model that this tool"):
                load(path)
    path.write_bytes(content)
    assert load(path).classes.tolist() == ["ape", "bee", "cat"]


FORGED = [
    ("method", "no such row"),
    ("method", "MSM"),
    ("method", "gSC, learned atoms"),
    ("method", 3),
    ("parameters", {"memory": "/tmp"}),
    ("parameters", {"lam": "much"}),
    ("parameters", {"lam": [0.1]}),
    ("parameters", None),
    ("frame", 3),
    ("recipe", {"q": 3}),
    ("recipe", "os:system"),
    ("inner", {"kind": "sets"}),
    ("parameters", {"coding": "local"}),
    ("inner", []),
    ("labels", lambda a: a[:-1]),
    ("labels", lambda a: np.repeat("a", len(a))),
    ("labels", lambda a: a[None]),
    ("names", lambda a: a[:5]),
    ("groups", lambda a: a[1:]),
]


@pytest.mark.parametrize("part, value", FORGED)
def test_a_forged_file_that_is_sealed_anew_is_one_plain_error_or_a_model(
    sealed, tmp_path, part, value
):
    """It holds no code, and no names of functions."""
    _, arrays, content = sealed
    if callable(value):
        arrays = {**arrays, part: value(arrays.get(part))}
    else:
        content = {**content, part: value}
    path = tmp_path / "model.npz"
    files.write_arrays(path, "model", {**arrays, "model": files.as_json(content)})
    with pytest.raises(
        ValueError, match="path must be a model that this toolkit wrote"
    ):
        load(path)
    with pytest.raises(SystemExit, match="--model must be a model that this toolkit"):
        main(["predict", str(path), "--model", str(path), "--out", str(tmp_path / "o")])


def mean_rows(frames):
    """Rows of a function of the user's own."""
    return np.stack(
        [frames.reshape(len(frames), -1)[:, k::3].mean(1) for k in range(3)], 1
    )


def linear(A, B):
    """A kernel of the user's own."""
    return A @ B.T


def test_a_model_with_functions_of_the_users_own_is_given_them_again(tmp_path):
    sets, labels = image_sets(noise=0.1)
    path = tmp_path / "model.npz"
    for recipe, more, functions in (
        (Recipe(2, describe=mean_rows), {"methods": ["gsc"]}, {"describe": mean_rows}),
        (Recipe(2), {"methods": ["kgsc"], "kernel": linear}, {"kernel": linear}),
    ):
        settings = settings_of("", p=[2], spectrum=None, **more)
        model = fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
        path.unlink(missing_ok=True)
        save(path, model)
        (what,) = functions
        with pytest.raises(ValueError, match=rf"function of your own, .*{what}=\.\.\."):
            load(path)
        again = load(path, **functions)
        assert same(predict(again, sets[1::2]), predict(model, sets[1::2]))


def test_a_function_that_fails_or_gives_no_rows_is_named():
    sets, labels = image_sets()
    for function, why in (
        (lambda frames: 1 / 0, "set 0: describe raised ZeroDivisionError: division by"),
        (
            lambda frames: frames[0],
            r"describe raised ValueError: kind must return real numbers",
        ),
        (
            lambda frames: frames * np.nan,
            "describe must return finite numbers, got NaN",
        ),
    ):
        with pytest.raises(ValueError, match=why):
            fit(sets, labels, recipe=Recipe(describe=function))


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
    shutil.rmtree(folder / "out", ignore_errors=True)  # else the results go to out-2
    more = [] if "--model" in arguments else ["--no-pictures"]
    main([*map(str, arguments), *more, "--out", str(folder / "out")])
    with open(folder / "out" / "predictions.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_command_that_answers_no_clip_fails(data):
    kept = data / "model.npz"
    first = "predict", "--data", data / "data", "--save", kept
    main([*map(str, first), "--center", "--out", str(data / "out")])
    one = data / "one.npy"
    np.save(one, np.load(data / "new" / "a.npy")[:1])
    with pytest.raises(SystemExit, match="no clip has an answer: one.npy: less their"):
        command(data, "predict", one, "--model", kept, "--json")
    assert not (data / "out" / "predictions.csv").exists()


def test_the_command_answers_learns_keeps_and_answers_again(data, capsys):
    kept = data / "model.npz"
    first = command(
        data, "predict", data / "new", "--data", data / "data", "--save", kept
    )
    printed = capsys.readouterr()
    first_line, columns, *lines = printed.out.splitlines()
    assert re.fullmatch(r".*: [\d.]+ % right in cross-validation", first_line)
    assert columns.split()[:2] == ["clip", "answer"] and len(lines) == 3
    assert [line.split()[1] for line in lines] == ["run", "run", "walk"]
    assert [row["clip"] for row in first] == [
        "a.npy",
        "c",
        "some/deep/b.npy",
        "some/deep/turned.npy",
    ]
    assert [row["answer"] for row in first] == ["run", "run", "walk", ""]
    assert "has frames of 16 x 12 and the model has 12 x 16" in first[-1]["failed"]
    names = {"clip", "answer", "nearest class", "possible", "because"}
    names |= {"method", "chosen", "failed"}
    scores = [name for name in first[0] if name not in names]
    assert [name.split()[1] for name in scores] == ["run", "walk"]
    again = command(data, "predict", data / "data" / "run", "--model", kept)
    assert len(again) == 6
    err = capsys.readouterr().err
    assert "the model has learned 6 of 6 sets already, as 0.npy: how these" in err
    shutil.rmtree(data / "data")
    assert command(data, "predict", data / "new", "--model", kept) == first
    assert "has learned" not in capsys.readouterr().err
    with pytest.raises(SystemExit, match="no clip"):  # none has an answer
        command(
            data,
            "predict",
            data / "new" / "some" / "deep" / "turned.npy",
            "--model",
            kept,
        )
    alone = command(data, "predict", data / "new" / "a.npy", "--model", kept)
    assert [row["answer"] for row in alone] == ["run"]
    line = capsys.readouterr().out.splitlines()[-1]
    assert re.match(r"a.npy: run; probability 0\.\d\d", line)


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
    monkeypatch.setattr("grassmann_classify.answering.learn", never)
    with pytest.raises(SystemExit, match=message):
        command(data, "predict", "--data", data / "data", "--save", data / where)


def test_a_model_replaces_no_file(data):
    kept = data / "model.npz"
    learning = "predict", "--data", data / "data", "--methods", "gsc", "--no-kernels"
    command(data, *learning, data / "new", "--save", kept)
    (data / "link.npz").symlink_to(data / "nowhere.npz")
    adding = "add", data / "new", "--model", kept
    for path in (kept, data / "data" / "run" / "0.npy", data / "new" / "notes.txt"):
        before = path.read_bytes()
        for arguments in (adding, learning):
            with pytest.raises(SystemExit, match="--save must be a new file, got "):
                command(data, *arguments, "--save", path)
        assert path.read_bytes() == before
    with pytest.raises(SystemExit, match="--save must be a new file, got "):
        command(data, *learning, "--save", data / "link.npz")
    assert not (data / "nowhere.npz").exists()


def test_an_evaluation_says_which_clip_was_wrong_and_chooses_rows(data, capsys):
    np.save(data / "data" / "walk" / "6.npy", np.load(data / "data" / "run" / "0.npy"))
    rows = command(
        data,
        "compare",
        data / "data",
        "--repeats",
        2,
        "--methods",
        "gsc,subspaces",
        "--f1",
        "--lam",
        0.1,
    )
    header = [
        "clip",
        "split",
        "truth",
        "subspaces: SVM",
        "gSC",
    ]
    assert list(rows[0]) == header
    assert {row["split"] for row in rows} == {"0", "1"} and len(rows) == 2 * 6
    out = capsys.readouterr().out
    assert re.search(r"accuracy.*balanced.*F1", out)
    assert "2 classes" in out and "2 splits: random splits, 50 % to train" in out
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
        title, *_, clip = lead.split("\n")
        truth, _, answer = title.partition(", not ")
        assert (f"{truth}/{clip}.npy", truth, answer) in wrong
        # the nearest labelled clip, alone
        (reason,) = row[2:]
        share, name = reason[1].split("\n")
        assert row[1] is None and share == f"{answer}, share 1"
        assert name in [*"0123456"]
    assert any(lead.startswith(("walk, not run", "run, not walk")) for lead in leads)
    assert (data / "out" / "pictures" / "wrong.png").exists()


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
    of_three = np.flatnonzero(place < 3)[:36]
    new = [i for i in range(64) if i not in set(of_three)]
    settings = settings_of("gSC", p=[2])
    model = fit(
        [sets[i] for i in of_three],
        labels[of_three],
        recipe=Recipe(2, fewer=True),
        settings=settings,
    )
    save(tmp_path / "model.npz", model)
    result = predict(load(tmp_path / "model.npz"), [sets[i] for i in new])
    before = predict(model, [sets[i] for i in new])
    assert np.array_equal(result.p_values, before.p_values)
    assert np.array_equal(result.p_any, before.p_any)
    assert result.because.tolist() == before.because.tolist()
    other = labels[new] == "dog"
    assert (result.p_any[other] <= 0.1).all() and (
        result.p_any[~other] > 0.1
    ).sum() >= 9
    for i in np.flatnonzero(~other):
        assert result.p_values[i].argmax() == result.classes.tolist().index(
            result.labels[i]
        )
        for words in result.because[i].split("; "):
            name, label, share = words.rsplit(" ", 2)
            assert label == f"({labels[new][i]})" and float(share)
            assert labels[of_three][int(name.split()[1])] == labels[new][i]
    possible, unlike = possible_classes(result, 0.9)
    assert unlike.tolist() == (result.p_any <= 0.1).tolist()
    assert possible == [result.classes[p > 0.1].tolist() for p in result.p_values]
    assert model.estimator.noticed(0.9, left_out=model.left_out) > 0.9
    assert model.estimator.noticed(1 - 1e-9, left_out=model.left_out) == 0


# ------------------------------------------------------------------------ more labelled


def whole_of(model, sets, labels, names, clips=None, groups=None):
    """The Model that the choices of a model make of all sets at once."""
    made = build_new(model, clips_of(sets, labels), strict=True)
    return replace(
        model,
        points=model.inner.points(made),
        labels=np.array(labels),
        names=names,
        clips=names if clips is None else clips,
        groups=groups,
        digests=None,
        pictures=None,
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
@pytest.mark.parametrize("name", OF_EACH_KIND)
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
    result = check_added(tmp_path / "grown.npz", few, parts, sets, labels, sets[18:])
    assert result.classes.tolist() == ["ape", "bee", "cat"]
    if few.left_out is None:
        return
    assert result.p_values.shape == (6, 3)
    words = [
        reason
        for why in [*result.because, *result.instead]
        for reason in why.split("; ")
    ]
    names = [reason.rsplit(" ", 1)[0] for reason in words]
    assert any(title.endswith("(cat)") for title in names)
    assert any("added set" in title for title in names)


@pytest.mark.parametrize("name", ["gSC", "kgSC", "frames"])
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
    both = fit(sets[:14], labels[:14], recipe=few.recipe, settings=settings)
    save(tmp_path / "both.npz", both)
    again = load(tmp_path / "both.npz")
    assert same(predict(again, sets[14:]), predict(both, sets[14:]))
    grown = add(few, sets[14:18], labels[14:18])
    assert "on the 6 sets that it was chosen on, of 10; 3 classes)" in repr(grown)
    with (
        pytest.warns(UserWarning, match="passed over 2 that the model has already"),
        pytest.raises(ValueError, match="sets must hold one that the model has not"),
    ):
        add(grown, [sets[0], sets[15]], labels[[0, 15]])


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
@pytest.mark.parametrize("name", ["gSC", "frames"])
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
    result = check_added(tmp_path / "grown.npz", few, parts, sets, labels, sets[18:])
    assert result.classes.tolist() == sorted({*kind})
    assert {type(label) for label in result.labels.tolist()} == {type(kind[0])}
    assert {*result.labels.tolist()} <= {*kind}


def test_a_group_in_both_calls_is_one_group(tmp_path):
    """Sets of a person do not explain each other, whichever call brought them."""
    sets, labels = image_sets(30, noise=1.0)
    person = [f"person {i // 3 % 4}" for i in range(24)]
    recipe = Recipe(3, fewer=True)
    settings = settings_of("gSC", p=[2])
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
    apart = person[:15] + [f"{group} again" for group in person[15:]]
    other = predict(whole_of(few, *given, groups=apart), sets[24:])
    assert not np.array_equal(other.p_values, expected.p_values)
    assert np.array_equal(other.scores, expected.scores)


@pytest.mark.parametrize("which", ["first", "added"])
def test_groups_that_one_call_alone_has_are_passed_over(which):
    sets, labels = image_sets(noise=1.0)
    groups = np.arange(24) // 3 % 4
    first = groups[:18] if which == "added" else None
    settings = settings_of("gSC", p=[2])
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
    learning = "predict", "--data", data / "data", "--window", 2, "--p", 2
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
    held = np.array(model.left_out_scores(np.array(grown.clips)))
    held[:, grown.labels == "new"] = np.nan  # of one clip
    assert np.array_equal(grown.left_out, held, equal_nan=True)
    assert not np.array_equal(held[0], model.left_out_scores()[0])
    assert few.clips == grown.clips[: len(few.clips)]


def test_a_recording_that_has_grown_stays_one_clip(tmp_path, capsys):
    """Its new windows, which overlap those that the model has, do not explain these."""
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    lines = []
    for label, n in zip("ab", (90, 60)):
        rows = rng.standard_normal((n, 2)) @ rng.standard_normal((2, 4))
        lines.append([f"{','.join(map(str, row))},{label}" for row in rows])
    few = tmp_path / "data" / "day.csv"
    few.write_text("\n".join(["p,q,r,s,y", *lines[0][:60], *lines[1]]))
    options = "--label-column", "y", "--window", "10", "--step", "5", "--methods", "gsc"
    out = "--out", tmp_path / "out"
    kept = tmp_path / "m.npz"
    given = "predict", "--data", tmp_path / "data", "--save", kept
    main([*map(str, [*given, *options, *out, "--recipe", "plain", "--p", 2])])
    few.write_text("\n".join(["p,q,r,s,y", *lines[0]]))
    adding = "add", tmp_path / "data", "--model", kept, "--save", tmp_path / "m3.npz"
    main([*map(str, [*adding, "--label-column", "y", *out])])
    assert "passed over 11 that the model has already" in capsys.readouterr().err
    model = load(tmp_path / "m3.npz")
    assert model.clips.count("day.csv@0") == 17 and len({*model.clips}) == 2


def test_equal_sets_of_one_call_are_learned_as_fit_learns_them():
    sets, labels = image_sets(noise=1.5)
    few = fit(sets[:12], labels[:12], settings=settings_of("gSC", p=[2]))
    new = [sets[12], sets[13], sets[12]]
    grown = add(few, new, labels[[12, 13, 12]])
    assert [*grown.labels] == [*labels[:12], *labels[[12, 13, 12]]]
    with pytest.warns(UserWarning, match="passed over 1 .*: added set 1"):
        assert len(add(grown, [sets[14], sets[12]], labels[[14, 12]]).labels) == 16


def test_a_set_that_is_there_under_two_labels_is_said():
    sets, labels = image_sets()
    with pytest.warns(
        UserWarning, match="set 0 and set 24 .* have two labels, a and b"
    ):
        fit([*sets, sets[0]], [*"abc" * 8, "b"], settings=settings_of("gSC", p=[2]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit([*sets, sets[0]], [*"abc" * 8, "a"], settings=settings_of("gSC", p=[2]))


def test_new_clips_that_are_turned_are_said_to_look_so():
    sets, labels = image_sets()
    model = fit(sets, labels, settings=settings_of("gSC", p=[2]))
    turned = np.ones((sets[0].shape[1], 40))
    with pytest.warns(UserWarning, match="has frames of 40 .*; it looks transposed"):
        assert len(predict(model, [sets[0], turned]).labels) == 1


def test_sets_that_look_transposed_are_learned_with_a_warning():
    sets, labels = image_sets()
    with pytest.warns(UserWarning, match="have 6 frames of 12 features: transposed?"):
        fit(np.array(sets), labels, settings=settings_of("gSC", p=[2]))


def test_the_names_of_a_program_are_listed():
    assert {"fit", "predict", "add", "load", "save"} <= {*dir(grassmann_classify)}


def test_integers_of_any_type_stay_integers():
    """NumPy makes fractions of signed and unsigned ones."""
    sets, labels = image_sets(noise=1.5)
    number = np.unique(labels, return_inverse=True)[1]
    large = number.astype(np.uint64) + np.uint64(2**63)
    few = fit(sets[:12], large[:12], settings=settings_of("gSC", p=[2]))
    grown = add(few, sets[12:18], number[12:18])
    expected = [*large[:12].tolist(), *number[12:18].tolist()]
    assert grown.labels.tolist() == expected and grown.labels.dtype.kind == "u"
    with pytest.raises(ValueError, match="one type of NumPy holds, got -1 and 9223"):
        add(few, sets[12:14], [-1, -1])
    assert as_integers([2**63, 0]).tolist() == [2**63, 0]
    assert as_integers([2**63 - 1, -1]).tolist() == [2**63 - 1, -1]


def test_more_neighbors_than_sets_are_all_of_them():
    sets, labels = image_sets()
    settings = settings_of("gLC", p=[2], neighbors=[100])
    model = fit(sets[:12], labels[:12], settings=settings)
    assert model.parameters["n_neighbors"] == 12
    assert len(predict(model, sets[12:]).labels) == 12


def test_a_clip_that_the_model_cannot_compare_is_left_out_of_what_is_added(
    tmp_path, capsys
):
    rng = np.random.default_rng(0)
    for label in "12":
        (tmp_path / "data" / label).mkdir(parents=True)
        (tmp_path / "more" / label).mkdir(parents=True)
        for k in range(6):
            rows = np.hstack([rng.random((9, 4)), np.full((9, 4), 3 * int(label))])
            np.save(tmp_path / "data" / label / f"{k}.npy", rows)
    np.save(tmp_path / "more" / "1" / "short.npy", rows[:2] + 1)
    np.save(tmp_path / "more" / "2" / "long.npy", rows + 1)
    (tmp_path / "more" / "2.0").mkdir()
    np.save(tmp_path / "more" / "2.0" / "long.npy", rows + 5)
    out = "--out", tmp_path / "out"
    kept = tmp_path / "m.npz"
    given = "predict", "--data", tmp_path / "data", "--save", kept, "--methods", "gsc"
    main([*map(str, [*given, "--stack", 4, *out])])
    adding = "add", tmp_path / "more", "--model", kept, "--save"
    main([*map(str, [*adding, tmp_path / "m2.npz", *out])])
    printed = capsys.readouterr()
    assert "2 sets more" in printed.out
    assert "labels '2' and '2.0' are two classes here, and read alike" in printed.err
    shutil.rmtree(tmp_path / "more" / "2.0")
    assert "1/short.npy: n_blocks must be at most n_frames = 2" in printed.err
    with pytest.raises(SystemExit, match="1/short.npy: n_blocks must be at most"):
        main([*map(str, [*adding, tmp_path / "m3.npz", "--strict", *out])])
    model = replace(load(kept), labels=np.repeat([1, 2], 6))
    save(tmp_path / "numbers.npz", model)
    (tmp_path / "more" / "two").mkdir()
    np.save(tmp_path / "more" / "two" / "x.npy", rows + 2)
    adding = "add", tmp_path / "more", "--model", tmp_path / "numbers.npz", "--save"
    with pytest.raises(SystemExit, match="labels must be integers, .* got 'two'"):
        main([*map(str, [*adding, tmp_path / "m4.npz", *out])])
    np.save(tmp_path / "data" / "1" / "short.npy", rows[:3] * [1, 2, 3, 4, 5, 6, 7, 8])
    given = "compare", tmp_path / "data", "--stack", 4, "--methods", "gsc"
    with pytest.raises(SystemExit, match="1/short.npy: n_blocks must be at most"):
        main([*map(str, [*given, *out])])


@pytest.mark.parametrize("name", ["gSC", "kgSC", "subspaces", "mean frame"])
def test_sets_that_the_model_has_already_are_passed_over(name):
    sets, labels = image_sets(noise=1.5)
    settings = settings_of(name, p=[2])
    model = fit(sets[:14], labels[:14], recipe=Recipe(3, fewer=True), settings=settings)
    before = predict(model, sets[18:])
    again = [3, 14, 0, 15]
    given = [sets[i] for i in again], labels[again]
    message = "passed over 2 that the model has already: added set 0, added set 2"
    with pytest.warns(UserWarning, match=message):
        grown = add(model, *given)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alone = add(model, sets[14:16], labels[14:16])
    assert grown.names == [*model.names, "added set 1", "added set 3"]
    assert grown.labels.tolist() == labels[:16].tolist()
    expected = predict(alone, sets[18:])
    result = predict(grown, sets[18:])
    for name in ("scores", "p_values", "p_any", "labels"):
        assert equal(getattr(result, name), getattr(expected, name))
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
    printed = capsys.readouterr()
    assert "1 set more, 2 classes" in printed.out
    assert (
        "passed over 12 that the model has already: run/0.npy, run/1.npy" in printed.err
    )
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
    gsc = fit(
        sets[2:],
        labels[2:],
        recipe=recipe,
        settings=settings_of("gSC", p=[2]),
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


@pytest.mark.parametrize("name", ["gSC", "mean frame"])
def test_a_set_under_another_label_is_an_error_that_names_both(name):
    sets, labels = image_sets(noise=1.5)
    settings = settings_of(name, p=[2])
    model = fit(sets[:14], labels[:14], recipe=Recipe(3, fewer=True), settings=settings)
    other = np.str_("cat") if labels[3] != "cat" else np.str_("ape")
    why = f"added set 1 is labelled {other}, and the model has it as set 3, labelled {labels[3]}"
    with pytest.raises(ValueError, match=why):
        add(model, [sets[15], sets[3]], [labels[15], other])


def test_a_corrected_label_is_an_error_of_the_command_too(data):
    learning = "predict", data / "new", "--data", data / "data", "--methods", "gsc"
    command(data, *learning, "--save", data / "few.npz")
    (data / "more" / "walk").mkdir(parents=True)
    shutil.copy(data / "data" / "run" / "0.npy", data / "more" / "walk")
    adding = "add", data / "more", "--model", data / "few.npz"
    why = "walk/0.npy is labelled walk, and the model has it as run/0.npy, labelled run"
    with pytest.raises(SystemExit, match=why):
        main(
            [*map(str, adding), "--save", str(data / "g.npz"), "--out", str(data / "o")]
        )
    assert not (data / "g.npz").exists()


def test_the_runner_up_has_the_next_score_and_reasons_of_its_class():
    sets, labels = image_sets()
    settings = settings_of("gSC", p=[2])
    recipe = Recipe(3, fewer=True)
    model = fit(sets[::2], labels[::2], recipe=recipe, settings=settings)
    result = predict(model, sets[1::2])
    order = np.argsort(-result.scores, axis=1, kind="stable")
    assert result.labels.tolist() == result.classes[order[:, 0]].tolist()
    assert result.runner_up.tolist() == result.classes[order[:, 1]].tolist()
    for (first, other), second, words in zip(
        result.reasons, result.runner_up, result.instead
    ):
        assert len(first) and words.count(f"({second})") == len(other)
    assert any(other for _, other in result.reasons)


def test_a_model_keeps_a_small_image_of_each_set_and_of_more():
    sets, labels = image_sets()
    sets = [images.reshape(len(images), -1, 4) for images in sets]
    recipe = Recipe(3, fewer=True)
    settings = settings_of("gSC", p=[2])
    model = fit(sets[:20], labels[:20], recipe=recipe, settings=settings)
    with pytest.warns(UserWarning, match="passed over 1 that"):
        model = add(model, [sets[3], *sets[20:]], labels[[3, *range(20, 24)]])
    assert len(model.pictures) == len(sets)
    for images, picture in zip(sets, model.pictures):
        n, h, w = np.shape(images)
        assert picture.dtype == np.uint8 and picture.shape == (h, 3 * w + 4)
        for k, part in enumerate((picture[:, :w], picture[:, w + 2 : 2 * w + 2])):
            frame = np.asarray(images[(2 * k + 1) * n // 6], float)
            assert np.corrcoef(part.ravel(), frame.ravel())[0, 1] > 0.99


@pytest.mark.parametrize("low, high", [(0, 1), (-3, 2), (0, 255), (0, 60000), (7, 7)])
def test_small_images_show_any_range_of_values(low, high):
    frame = np.linspace(low, high, 130 * 200).reshape(130, 200)
    made = Clip("a", None, None, [frame[None]])
    (small,) = pictures_of(["a"], np.arange(1), [made], Recipe())
    assert small.shape == (32, 50) and small.dtype == np.uint8
    assert (np.diff(small.astype(int), axis=0) >= 0).all()
    assert high == low or (small.min() < 8 and small.max() > 247)
    vectors = Clip("v", None, None, [np.ones((3, 4))])
    assert pictures_of(["v"], np.arange(1), [vectors], Recipe()) == [None]


def test_the_sheet_of_answers_begins_with_the_least_sure(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    out = data / "out"
    given = ["predict", data / "data", "--data", data / "data", "--out", out]
    given += ["--save", data / "model.npz"]
    main([*map(str, given), "--methods", "gsc", "--dpi", "30"])
    paths = sorted((data / "data").rglob("*.npy"))
    result = predict(load(data / "model.npz"), [np.load(path) for path in paths])
    names = [f"{path.parent.name}/{path.stem}" for path in paths]
    two = np.sort(result.scores, axis=1)
    order = [names[i] for i in np.argsort(two[:, -1] - two[:, -2], kind="stable")]
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
    assert all(
        re.match(r"class (3|10)(, share [\d.e-]+)?\n", caption) for caption in captions
    )


def test_sheets_show_each_set_of_a_clip_that_was_cut(data, monkeypatch):
    shown = sheets_drawn(monkeypatch)
    folder = str(data / "data")
    out = ["--out", str(data / "out"), "--dpi", "30", "--window", "2"]
    only = ["--methods", "gsc", "--no-kernels"]
    main(["predict", folder, "--data", folder, *only, *out])
    main(["cluster", folder, "-k", "2", *out])
    answers_, clusters_ = shown
    assert len(answers_) == 12 and all("#" in row[0][1] for row in answers_)
    assert [len(row) for row in clusters_] == [5, 5]


def test_numbers_as_labels_are_counted_beside_what_is_unlike_all(tmp_path, capsys):
    """And added to as numbers, of any size; others are refused, not rounded."""
    rng = np.random.default_rng(0)
    spaces = rng.standard_normal((5, 2, 8))

    def write(name, labels):
        index = np.tile(np.arange(len(labels)), 12)
        exact = [rng.standard_normal((6, 2)) @ spaces[c] for c in index]
        X = np.array(exact) + 0.1 * rng.standard_normal((len(index), 6, 8))
        np.savez(tmp_path / name, X=X, y=labels[index])
        return str(tmp_path / name)

    options = "--no-pictures --p 2 --recipe plain --no-kernels --methods gSC".split()
    options += ["--out", str(tmp_path / "out")]
    old = write("old.npz", np.array([0, 1, 2], np.uint8))
    new = write("more.npz", np.array([0, 1, 2, 300, 301]))
    kept, grown = (str(tmp_path / name) for name in ("m.npz", "m2.npz"))
    main(["predict", new, "--data", old, "--save", kept, "--json", *options])
    lines = capsys.readouterr().out.splitlines()
    answers = np.array([json.loads(line)["answer"] for line in lines if line[0] == "{"])
    answers = answers.reshape(12, 5)
    assert all(column.count(c) > 6 for c, column in enumerate(answers.T[:3].tolist()))
    unlike = np.sum(answers == None)  # noqa: E711
    assert unlike > 12
    main(["predict", new, "--model", kept, "--no-pictures", *options[-2:]])
    assert f"unlike all classes ({unlike})\n" in capsys.readouterr().out
    main(["add", new, "--model", kept, "--save", grown, *options[-2:]])
    assert load(grown).classes.tolist() == [0, 1, 2, 300, 301]
    halves = write("halves.npz", np.array([0.5, 1.5]))
    grown = str(tmp_path / "m3.npz")
    with pytest.raises(SystemExit, match="type of the model's, as 0, got 0.5"):
        main(["add", halves, "--model", kept, "--save", grown, *options[-2:]])


def test_names_of_clips_that_are_added_stay_apart():
    """Also from a name that another clip of theirs has."""
    rng = np.random.default_rng(0)
    sets = rng.standard_normal((8, 6, 5))
    clips = [Clip(f"c{i}", "ab"[i % 2], None, [rows]) for i, rows in enumerate(sets)]
    model = fit(sets, list("abababab"), settings=settings_of("gSC"))
    names = ["set 0", "set 0 (2)"]
    new = [
        clip._replace(name=name, sources=[rng.standard_normal((6, 5))])
        for clip, name in zip(clips, names)
    ]
    grown = learned_more(model, build_new(model, new), new)
    assert len({*grown.names}) == len(grown.names) == 10


def test_a_reason_stays_whole_whatever_the_name_of_its_clip_holds():
    row = Answers(
        *(["q"], np.array(["a"]), np.ones((1, 1)), np.array(["a"]), {}, None),
        reasons=[([(1, 0.24), (0, 1e-5), (2, 1)], [])],
        labelled=["b;c (d)", "a; 2/take 3; $x.npy", "e"],
    )
    (record,) = row.records()
    assert record["because"] == ["a; 2/take 3; $x.npy 0.24", "b;c (d) 1e-05", "e 1"]
    assert row.because.tolist() == ["; ".join(record["because"])]
    assert row.instead.tolist() == [""]
