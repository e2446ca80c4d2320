"""What is told of an answer does not depend on which row gives it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_classify import (
    Recipe,
    Settings,
    add,
    fit,
    load,
    next_labels,
    predict,
    save,
)
from grassmann_classify.__main__ import main
from grassmann_classify.model import build_new, build_to_add, clips_of
from grassmann_classify.reasons import differs, possible_classes
from grassmann_classify.rows import most_telling
from grassmann_sc import files
from grassmann_sc.estimators import CodingClassifier

pytestmark = pytest.mark.usefixtures("few_kernels")


def image_sets(n=24, noise=0.6, seed=0):
    """Sets of six frames in R^12 of three classes, each near a plane; their labels."""
    rng = np.random.default_rng(seed)
    label = np.arange(n) % 3
    looks = np.random.default_rng(0).standard_normal((3, 2, 12))
    return [
        3 * looks[c][0]
        + rng.standard_normal((6, 2)) @ looks[c]
        + noise * rng.standard_normal((6, 12))
        for c in label
    ], np.array(["ape", "bee", "cat"])[label]


def learned(*methods, **more):
    sets, labels = image_sets()
    usual = {"p": [2], "lam": [0.1], "neighbors": [3], "C": [1.0], "kernels": False}
    settings = Settings(methods=[*methods], **usual | more)
    return fit(sets, labels, recipe=Recipe(4, fewer=True), settings=settings)


# ----------------------------------------------------------------------- which row


RIGHT = [1, 1, 1, 1, 1, 1, 0, 1]
LESS = [1, 1, 1, 1, 0, 1, 1, 0]  # by one set of eight, which may be chance


@pytest.mark.parametrize(
    "shares, expected",
    [
        ({"frames: SVM": RIGHT, "gLC, labelled sets as atoms": RIGHT}, "gLC"),
        ({"nearest subspace": RIGHT, "SVM on": RIGHT}, "nearest"),
        ({"gSC, 4 learned atoms, ridge": [0] * 8, "SVM on": RIGHT}, "SVM"),
        ({"SVM on": [1] * 8, "gSC, labelled sets as atoms": [0] * 8}, "SVM"),
        (
            {"SVM on": RIGHT, "kgSC, labelled": LESS[::-1], "gSC, labelled": RIGHT},
            "gSC",
        ),
        ({"a": [0.1, 0.2, 0.3], "b": [0.3, 0.2, 0.1]}, "a"),
        ({"a": [np.nan, 1], "gSC, labelled": [1, np.nan], "b": [1, 1]}, None),
    ],
)
def test_of_rows_within_chance_of_the_best_the_best_that_codes_answers(
    shares, expected
):
    if expected is None:
        with pytest.raises(ValueError, match="a set that all candidates were asked"):
            most_telling(shares)
    else:
        assert most_telling(shares).startswith(expected)


def test_a_row_that_codes_answers_only_within_chance():
    """Half a standard error of the difference, as in the search."""
    rng = np.random.default_rng(0)
    best = (rng.random(400) < 0.9).astype(float)
    for lost, within in ((0, True), (2, False), (40, False)):
        coding = best.copy()
        coding[np.flatnonzero(best)[:lost]] = 0
        shares = {"SVM": best, "gSC, labelled sets": coding}
        assert (most_telling(shares) != "SVM") == within


# --------------------------------------------------------------- the model that codes


def test_the_model_that_codes_changes_no_choice_and_no_label():
    """A row with a dictionary takes the p that gSC found best, if that is asked for."""
    sets, _ = image_sets(30, seed=1)
    alone = learned("gSC, labelled", p=[1, 2])
    for name in ("mean frame", "DCC", "gSC, 4 learned"):
        model = learned(name, p=[1, 2], atoms=4, iterations=1)
        assert model.coder.method in (alone.method, "gLC, labelled sets as atoms")
        found = predict(model, sets)
        by_codes = predict(model.coder, sets)
        assert np.array_equal(found.p_values, by_codes.p_values)
        assert np.array_equal(found.known, by_codes.known)
        assert found.coded.tolist() == by_codes.labels.tolist()
        queries = model.estimator.predict(model.asked(points_of(model, sets)))
        assert found.labels.tolist() == model.classes[queries].tolist()


def points_of(model, sets):
    labels = ["?"] * len(sets)
    made = build_new(model, clips_of("set", sets, labels, None))
    return model.reader.points(made)


def test_a_clip_that_cannot_be_coded_has_a_label_alone():
    model = learned("mean frame")
    sets, labels = image_sets(6, seed=2)
    flat = np.repeat(sets[0].mean(axis=0)[None], 6, axis=0)
    found = predict(model, [sets[0], flat, *sets[1:]])
    whole = predict(model, sets)
    assert found.names == [f"set {i}" for i in range(7)] and not found.failed
    assert found.labels[1] in model.classes and found.coded[1] is None
    assert np.isnan(found.p_values[1]).all() and np.isnan(found.known[1])
    assert np.isnan(found.ahead[1]) and found.because[1] == found.instead[1] == ""
    others = [0, *range(2, 7)]
    assert possible_classes(found, 0.9)[1] == "" and not differs(found)[1]
    assert np.array_equal(found.p_values[others], whole.p_values)
    assert found.because[others].tolist() == whole.because.tolist()
    only = predict(model, [flat])
    assert only.labels.tolist() == [found.labels[1]] and np.isnan(only.known).all()


def test_a_model_of_before_answers_without_reasons(tmp_path):
    """Its file has no coder; a file of now must have both parts of it, or none."""
    model = learned("SVM on the projection")
    path = tmp_path / "model.npz"
    save(path, model)
    with np.load(path) as file:
        arrays = {one: file[one] for one in file if one not in ("format", "version")}
    content = json.loads(str(arrays["model"]))
    coder = content.pop("coder")
    sets, _ = image_sets(6, seed=2)
    bases = arrays.pop("coder_bases")
    arrays["model"] = files.as_json(content)
    files.write_arrays(path, "model", arrays)
    found = predict(load(path), sets)
    assert found.labels.tolist() == predict(model, sets).labels.tolist()
    assert found.p_values is None and set(found.because) == {""}
    assert possible_classes(found, 0.9) == [""] * 6
    other = {**coder, "method": "SVM on the projection kernel", "parameters": {}}
    for content_of, more, message in (
        (coder, {}, "must hold bases"),
        (None, {"coder_bases": bases}, "coder must be there for bases"),
        (other, {"coder_bases": bases}, "coder must be of a row that codes"),
        (coder, {"coder_bases": bases[1:]}, "must fit the other parts"),
        (coder, {"coder_bases": 2 * bases}, "bases must have orthonormal"),
    ):
        parts = {"model": files.as_json({**content, "coder": content_of})}
        files.write_arrays(path, "model", {**arrays, **parts, **more})
        with pytest.raises(ValueError, match=f"damaged or another file: .*{message}"):
            load(path)


def test_the_model_that_codes_may_read_clips_by_another_recipe(tmp_path):
    """Kept and grown as well; a clip that one of both cannot take is not learned."""
    sets, labels = image_sets(30)
    row = learned("mean frame")
    settings = Settings(methods=["gsc"], p=[2], lam=[0.1], kernels=False)
    recipe = Recipe(2, center=True)
    coder = fit(sets[:24], labels[:24], recipe=recipe, settings=settings)
    model = replace(row, coder=replace(coder, pictures=None))
    save(tmp_path / "model.npz", model)
    grown = add(load(tmp_path / "model.npz"), sets[24:], labels[24:])
    for one, by_codes in ((model, coder), (grown, grown.coder)):
        found = predict(one, sets)
        expected = predict(by_codes, sets)
        assert np.array_equal(found.p_values, expected.p_values)
        assert found.coded.tolist() == expected.labels.tolist()
    assert grown.coder.recipe == recipe and len(grown.coder.labels) == 30
    flat = np.repeat(sets[0].mean(axis=0)[None], 6, axis=0)
    clips = clips_of("set", [sets[0], flat, sets[1]], [*labels[:2], labels[1]], None)
    for made in build_to_add(model, clips):
        assert made.names == ["set 0", "set 2"] and [*made.unread] == ["set 1"]
    with pytest.raises(ValueError, match="clips must be those that gSC, labelled"):
        build_to_add(model, clips[1:2])
    assert predict(model, [flat]).label_next.tolist() == [0]


def test_both_models_learn_more():
    sets, labels = image_sets(30)
    model = learned("mean and standard")
    grown = add(model, sets[24:], labels[24:])
    assert len(grown.coder.labels) == len(grown.labels) == 30
    assert grown.coder.names == grown.names
    K = core.projection_kernel(grown.coder.points)
    assert np.allclose(K, grown.coder.estimator.gram_)
    assert len(model.coder.labels) == 24


# --------------------------------------------------------------------- what to label next


def by_hand(rows, sure):
    """Ranks by a plain loop."""
    n = len(rows)
    square = np.array([[((a - b) ** 2).sum() for b in rows] for a in rows])
    unit = np.median([square[i, j] for i in range(n) for j in range(i)])
    taken = []
    while len(taken) < n:
        worth = {}
        for i in {*range(n)} - {*taken}:
            far = min([1.0, *(square[i, j] / unit for j in taken)])
            worth[i] = max(1 - sure[i], 1e-6) * max(far, 1e-6)
        taken.append(max(sorted(worth, key=lambda i: sure[i]), key=worth.get))
    return [taken.index(i) + 1 for i in range(n)]


def test_ranks_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    for n in (2, 3, 9, 30):
        rows = rng.random((n, 5))
        sure = rng.uniform(-1, 1, n)
        assert next_labels.ranks(rows, sure).tolist() == by_hand(rows, sure)
    assert next_labels.ranks(np.ones((1, 4)), np.array([2.0])).tolist() == [1]
    assert next_labels.ranks(np.ones((3, 4)), np.array([0.2, 0.1, 0.3])).tolist() == [
        2,
        1,
        3,
    ]


def test_of_nearly_the_same_clips_one_comes_early(monkeypatch):
    """The others of its heap come behind what is surer, but elsewhere."""
    rng = np.random.default_rng(1)
    heaps = rng.random((4, 6))[np.arange(20) % 4]
    rows = heaps + 1e-4 * rng.random((20, 6))
    sure = np.select([np.arange(20) % 4 == c for c in range(4)], [-0.5, 0.1, 0.5, 0.9])
    order = np.argsort(next_labels.ranks(rows, sure))
    assert sorted(order[:4] % 4) == [0, 1, 2, 3] and order[0] % 4 == 0
    monkeypatch.setattr(next_labels, "MOST", 5)
    few = next_labels.ranks(rows, sure)
    assert sorted(few) == [*range(1, 21)]
    assert (sure[np.argsort(few)[5:]][1:] >= sure[np.argsort(few)[5:]][:-1]).all()


@pytest.mark.parametrize("name", ["gSC, labelled", "mean frame"])
def test_answers_rank_what_to_label_next(name):
    model = learned(name)
    sets, _ = image_sets(12, seed=3, noise=1.0)
    rng = np.random.default_rng(4)
    sets[7] = rng.standard_normal((6, 12))
    flat = np.repeat(sets[0].mean(axis=0)[None], 6, axis=0)
    found = predict(model, [*sets, flat][: 12 + (name == "mean frame")])
    of_coded = found.label_next[:12]
    if name == "mean frame":
        assert sorted(of_coded) == [*range(1, 13)] and found.label_next[12] == 0
    first = found.label_next.tolist().index(1)
    sure = np.where(found.known <= 0.1, np.minimum(found.ahead, 0), found.ahead)
    assert found.known[7] <= 0.1 and found.ahead[7] > 0
    rows = model.coding.asked(points_of(model.coding, sets))
    assert of_coded[:12].tolist() == next_labels.ranks(rows, sure[:12]).tolist()
    assert sure[first] == np.nanmin(sure) and sure[first] <= 0


def test_add_says_how_many_of_its_sets_are_right_now(tmp_path, capsys):
    sets, labels = image_sets(30, noise=2.0)
    labels[24:27] = labels[25:28]  # wrong ones
    for i, (one, label) in enumerate(zip(sets, labels)):
        for part in ["data"] * (i < 18) + ["more"] * (i >= 18):
            (tmp_path / part / label).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / part / label / f"{i}.npy", one)
    data = ["--data", str(tmp_path / "data"), "--save", str(tmp_path / "m.npz")]
    fixed = ["--methods", "gsc", "--recipe", "plain", "--p", "2", "--no-kernels"]
    out = ["--out", str(tmp_path / "out")]
    main(["predict", *data, *fixed, *out])
    capsys.readouterr()
    kept = ["--model", str(tmp_path / "m.npz"), "--save", str(tmp_path / "n.npz")]
    main(["add", str(tmp_path / "more"), *kept, *out])
    model = load(tmp_path / "n.npz")
    K = core.projection_kernel(model.points)
    how = model.estimator.get_params()
    right = 0
    for i in range(30):
        rest = np.arange(30) != i
        one = CodingClassifier(lam=how["lam"], lam_scale="max", rule=how["rule"])
        one.set_params(kernel="precomputed").fit(
            K[np.ix_(rest, rest)], model.labels[rest]
        )
        right += one.predict(K[i : i + 1, rest])[0] == model.labels[i]
    assert 15 < right < 30
    words = (
        f"of its 30 sets now, each coded over the others, {100 * right / 30:.1f} % are"
    )
    assert words in capsys.readouterr().out
