"""Weighted subspaces as candidates, models of them, and grids that grow."""

import json
from dataclasses import replace

import numpy as np
import pytest

import grassmann_sc as gs
from grassmann_classify import (
    Recipe,
    Settings,
    add,
    candidates,
    fit,
    load,
    model_file,
    predict,
    save,
)
from grassmann_classify import search as searching
from grassmann_classify.__main__ import main
from grassmann_classify.building import build_all
from grassmann_classify.candidates import Task, recipe_for
from grassmann_classify.clips import Clip
from grassmann_classify.evaluation import coding_of, evaluate
from grassmann_classify.folds import folds
from grassmann_classify.model import inputs_for
from grassmann_classify.recipes import recipes_of
from grassmann_classify.rows import Method, methods
from grassmann_classify.settings import SPECTRUM
from grassmann_sc import estimators, files, subspaces, tuning
from oracles import TIGHT, error

PLAIN = Recipe(24, fewer=True)
GSC = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")


def long_tails(n=48, lengths=(3, 9), seed=0):
    """n sets of frames in R^20 of three classes: singular values that fall slowly, and
    no p that suits all.
    """
    rng = np.random.default_rng(seed)
    places = rng.standard_normal((3, 8, 20)) * (0.7 ** np.arange(8))[:, None]
    sets = []
    for i in range(n):
        of_set = rng.standard_normal((rng.integers(*lengths), 8)) @ places[i % 3]
        sets.append(of_set + 1.6 * rng.standard_normal(of_set.shape))
    return sets, np.array(["ape", "bee", "cat"])[np.arange(n) % 3]


def inputs_of(sets, labels, settings=None, recipes=None, cache=None):
    clips = [
        Clip(f"set {i}", *of, None, [rows])
        for i, (rows, *of) in enumerate(zip(sets, labels))
    ]
    collection = build_all(clips, PLAIN, cache, keep_rows=True, strict=True)
    return inputs_for(collection, PLAIN, settings or Settings(), recipes)


def weighted_of(sets, alpha):
    return subspaces.from_sets(sets, 24, spectrum=alpha)


def test_gram_matrices_of_all_spectra_are_those_of_the_points(tmp_path):
    sets, labels = long_tails()
    for cache in (None, tmp_path, tmp_path):  # built, kept, read
        inputs = inputs_of(sets, labels, cache=cache)
        assert [alpha for _, alpha in inputs.weighted] == SPECTRUM
        for alpha in SPECTRUM:
            expected = gs.projection_kernel(weighted_of(sets, alpha))
            assert error(inputs.weighted[None, alpha], expected) < TIGHT
        p = min(map(len, sets))
        assert inputs.collection.X.shape == (48, 20, p)
        kernel = gs.projection_kernel(subspaces.from_sets(sets, p))
        assert error(inputs.gram[None, p], kernel) < TIGHT
    assert {*tmp_path.glob("*.npz")}


@pytest.mark.parametrize(
    "settings, p, spectrum",
    [
        (Settings(), True, SPECTRUM),
        (Settings(p=[1, 2]), True, []),
        (Settings(spectrum=[0.3]), False, [0.3]),
        (Settings(p=[2], spectrum=[0, 1.0]), True, [0, 1]),
    ],
)
def test_dimensions_and_spectra_to_search(settings, p, spectrum):
    inputs = inputs_of(*long_tails(), settings)
    assert inputs.spectra(None) == spectrum
    assert inputs.dimensions(None) == (settings.p or ([1, 2, 3] if p else []))


def chosen_by(sets, labels, settings=None, row="gSC"):
    inputs = inputs_of(sets, labels, settings)
    place = np.unique(labels, return_inverse=True)[1]
    train = np.arange(len(sets))
    settings = settings or Settings()
    rows = [m for m in methods(len(train), 9, settings) if m.name.startswith(row)]
    (found,) = evaluate(
        inputs, place, None, train, train[:0], lambda *_: rows, settings, 9
    )
    assert found.failed is None
    return found


def test_a_spectrum_is_chosen_where_it_is_better_and_p_where_it_is_not(monkeypatch):
    sets, labels = long_tails()
    found = chosen_by(sets, labels)
    assert "spectrum" in found.chosen and "p" not in found.chosen
    assert found.p in (1, 2, 3)
    hard = chosen_by(sets, labels, Settings(p=[1, 2, 3]))
    assert found.score > hard.score + 0.01
    monkeypatch.setattr(searching, "SURE_OF_SPECTRUM", 100)
    stayed = chosen_by(sets, labels)
    assert stayed.chosen == hard.chosen and stayed.score == hard.score
    easy = [np.eye(20)[[c, c + 5]] for c in np.arange(24) % 3]
    alike = chosen_by(easy, labels[:24])
    assert alike.chosen["p"] and alike.score == 1


def test_a_model_of_weighted_subspaces_answers_as_its_parts_do(tmp_path):
    sets, labels = long_tails(60)
    settings = Settings(spectrum=[0.25], methods=["gsc"], kernels=False)
    model = fit(sets[:30], labels[:30], recipe=PLAIN, settings=settings)
    assert model.reader.spectrum == 0.25 and model.reader.p is None
    by_hand = estimators.CodingClassifier(
        lam=model.parameters["lam"], lam_scale="max", rule=model.parameters.get("rule")
    ).fit(weighted_of(sets[:30], 0.25), labels[:30])
    found = predict(model, sets[48:])
    new = weighted_of(sets[48:], 0.25)
    assert found.labels.tolist() == by_hand.predict(new).tolist()
    assert error(found.scores, by_hand.predict_proba(new)) < 1e-6
    save(tmp_path / "model.npz", model)
    kept = load(tmp_path / "model.npz")
    np.testing.assert_array_equal(predict(kept, sets[48:]).scores, found.scores)
    more = add(kept, sets[30:48], labels[30:48])
    by_hand.fit(weighted_of(sets[:48], 0.25), labels[:48])
    again = predict(more, sets[48:])
    assert error(again.scores, by_hand.predict_proba(new)) < 1e-6
    assert again.p_values is not None
    with pytest.warns(UserWarning, match="passed over 1 that the model has already"):
        add(more, [sets[0], 3 * sets[50]], [labels[0], labels[50]])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"spectrum": None, "p": 3}, "bases must have orthonormal columns, of subsp"),
        ({"p": 3}, "reader must have a spectrum to read gram alone, without p"),
        ({"reads": "subspaces"}, "reader's p must be an integer, got None"),
        ({"spectrum": -1}, "reader's spectrum must be at least 0, got -1"),
    ],
)
def test_a_damaged_file_of_weighted_subspaces_is_refused(tmp_path, change, message):
    sets, labels = long_tails(24)
    settings = Settings(spectrum=[0.25], methods=["gsc"], kernels=False)
    path = tmp_path / "model.npz"
    save(path, fit(sets, labels, recipe=PLAIN, settings=settings))
    arrays = model_file.arrays_of(path, "path")
    content = json.loads(str(arrays["model"]))
    content["reader"] |= change
    arrays["model"] = np.array(json.dumps(content))
    files.write_arrays(path, "model", arrays)
    with pytest.raises((ValueError, TypeError), match=message):
        load(path)


# ------------------------------------------------------------------------ what grows


def right_if(name, is_right, asked):
    """A function of values that gives predict, whose answers are right for some values."""

    def make(values):
        asked.extend(values)

        def predict(K_dd, K_xd, y):
            share = np.arange(len(K_xd)) / len(K_xd)
            return {
                ((name, value),): np.where(share < is_right(value), truth(K_xd), -1)
                for value in values
            }

        return predict

    return make


def truth(K_xd):
    return K_xd[:, 0].astype(int)  # of a Gram matrix whose rows hold the labels


def row_that_grows(monkeypatch, name, better, grid, settings=None):
    """Outcome and all values asked of a row whose accuracy falls or rises with a number."""
    sets, labels = long_tails(200, (6, 9))
    label = np.arange(200) % 2
    inputs = inputs_of(sets, labels, Settings(p=[2]))
    inputs.gram[None, 2] = np.tile(label[:, None], 200).astype(float)
    made = {"lam": "sparse_predictions", "n_neighbors": "local_predictions"}
    asked = []
    make = right_if(name, better, asked)
    if name in made:
        monkeypatch.setattr(tuning, made[name], make)
    else:
        monkeypatch.setattr(searching, "svm_predictions", make)
    settings = settings or Settings(p=[2])
    row = Method("row", "gram", GSC, {}, make(grid))
    pairs = folds(label, None, 0, 1)
    split = label, np.arange(200), np.arange(0)
    task = Task(inputs, *split, settings, pairs, {}, {}, (), {})
    searched = tuning.Search(label, pairs, row.predict)
    monkeypatch.setattr(searching, "fitted_choice", lambda *_: (None, None, None))
    return searching.search(row, searched, (None, 2), task), asked


@pytest.mark.parametrize(
    "name, better, expected",
    [
        ("lam", lambda v: 0.5 - 0.1 * np.log10(v), 0.000027),
        ("lam", lambda v: 0.5 + 0.4 * v, 0.9),  # its limit
        ("C", lambda v: 0.5 + 0.08 * np.log10(v), 100_000.0),
        ("n_neighbors", lambda v: 0.3 + v / 300, 160),
        ("C", lambda v: 0.8 - 0.1 * abs(np.log10(v) - 4), 10_000.0),  # it stops there
    ],
)
def test_a_grid_of_ours_grows_at_the_end_that_is_chosen(
    monkeypatch, name, better, expected
):
    defaults = Settings()
    grid = getattr(defaults, name.removeprefix("n_"))
    found, asked = row_that_grows(monkeypatch, name, better, grid)
    assert found.chosen[name] == pytest.approx(expected)
    assert len(asked) <= len(grid) + 2 and sorted({*asked}) == sorted(asked)


def test_a_grid_of_the_user_stays_and_the_option_to_try_is_told(monkeypatch):
    given = Settings(p=[2], C=[1, 10])
    found, asked = row_that_grows(
        monkeypatch, "C", lambda v: 0.5 + 0.08 * np.log10(v), given.C, given
    )
    assert found.chosen["C"] == 10 and asked == [1, 10]
    assert found.ends == {"C": "--C 1 10 100"}


def test_spectra_grow_where_the_last_is_chosen(monkeypatch):
    sets, _ = long_tails(200, (6, 9))
    label = np.arange(200) % 2
    inputs = inputs_of(sets, label)
    inputs.asked = [], SPECTRUM

    def gram(self, name, alpha):
        return np.tile(label[:, None] + alpha / 1000, 200)

    monkeypatch.setattr(type(inputs), "weighted_gram", gram)

    def predict(K_dd, K_xd, y):  # the larger the spectrum, the better
        share = np.arange(len(K_xd)) / len(K_xd)
        alpha = 1000 * (K_xd[0, 0] % 1)
        right = share < 0.5 + 0.07 * np.log2(16 * alpha)
        return {(): np.where(right, truth(K_xd), -1)}

    pairs = folds(label, None, 0, 1)
    split = label, np.arange(200), np.arange(0)
    task = Task(inputs, *split, Settings(), pairs, {}, {}, (), {})
    monkeypatch.setattr(searching, "fitted_choice", lambda *_: (None, None, None))
    row = Method("row", "gram", GSC, {}, predict)
    searched = tuning.Search(label, pairs, predict)
    found = searching.search(row, searched, (None, 2), task)
    assert found.chosen == {"spectrum": 2} and task.grown == {None: [1, 2]}
    assert inputs.spectra(None) == SPECTRUM  # other splits begin with ours
    given = replace(task, settings=Settings(spectrum=[*SPECTRUM]), grown={})
    found = searching.search(row, searched, (None, 2), given)
    assert found.chosen == {"spectrum": 0.5} and given.grown == {}
    assert found.ends == {"spectrum": "--spectrum 0.0625 0.125 0.25 0.5 1"}


def test_a_stack_that_wins_runs_against_one_twice_as_long():
    """Classes that differ by the order of their frames alone, over eight frames."""
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((40, 6)) for _ in range(6)]
    recipes = recipes_of(PLAIN, (6,), 40, ["raw"], [False])
    inputs = inputs_of(sets, ["a", "b"] * 3, recipes=recipes)
    assert inputs.names == ["plain", "stack 4"]
    assert inputs.stacked_twice("plain") is None
    assert inputs.stacked_twice("stack 4") == "stack 8"
    stacked = [subspaces.block_hankel(rows, 8) for rows in sets]
    expected = gs.projection_kernel(weighted_of(stacked, 0.25))
    assert error(inputs.weighted["stack 8", 0.25], expected) < TIGHT
    assert inputs.stacked_twice("stack 8") == "stack 16"
    assert inputs.stacked_twice("stack 16") is None  # 32 of 40 frames leave 9 rows
    assert inputs.names == ["plain", "stack 4"]  # other splits begin with ours
    assert inputs.longer_stack(None) is None


def test_coding_rows_race_for_a_recipe_as_one():
    sets, labels = long_tails(40, (16, 20))
    recipes = recipes_of(PLAIN, (20,), 16, ["raw"])
    inputs = inputs_of(sets, labels, recipes=recipes)
    rows = [*methods(40, 9, Settings())]
    coding = coding_of(rows, Settings())
    assert len(coding) == 2  # of gSC and gLC, in a kernel's space too
    assert len(coding_of(rows, Settings(methods=["gsc", "svm"]))) == 1
    label = np.arange(40) % 3
    pairs = folds(label, None, 0, 1)
    split = label, np.arange(40), np.arange(0)
    task = Task(inputs, *split, Settings(), pairs, {}, {}, coding, {})
    assert recipe_for(coding[0], task) == recipe_for(coding[1], task)
    assert [*task.raced] == [coding]


def test_the_recipe_of_a_coding_row_is_the_one_that_all_of_them_choose(
    monkeypatch,
):
    """The evidence of each counts for the others."""
    monkeypatch.setattr(candidates, "GROWN", 0)
    sets, labels = long_tails(60, (16, 20))
    settings = Settings(p=[2])
    recipes = recipes_of(PLAIN, (20,), 16, ["raw"])
    inputs = inputs_of(sets, labels, settings, recipes)
    label = np.arange(60) % 3
    last = 10 * (len(inputs.names) - 1)
    for i, name in enumerate(inputs.names):
        inputs.gram[name, 2] = np.tile(10.0 * i + label[:, None], 60)

    def blind(K_dd, K_xd, y):
        return {(): np.zeros(len(K_xd), int)}

    def seeing(K_dd, K_xd, y):  # with the last recipe
        return {(): np.where(K_xd[:, 0] >= last, truth(K_xd) - last, -1)}

    split = label, np.arange(60), np.arange(0)
    pairs = folds(label, None, 0, 1)
    task = Task(inputs, *split, settings, pairs, {}, {}, (blind, seeing), {})
    assert recipe_for(blind, task) == inputs.names[-1] != inputs.names[0]


def test_the_commands_take_a_spectrum(tmp_path, capsys):
    sets, labels = long_tails(24)
    for i, (rows, label) in enumerate(zip(sets, labels)):
        (tmp_path / "data" / label).mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "data" / label / f"{i}.npy", rows)
    data = str(tmp_path / "data")
    out = ["--out", str(tmp_path / "out"), "--no-pictures", "--recipe", "plain"]
    rows = ["--methods", "gsc", "--no-kernels"]
    main(
        [
            "compare",
            data,
            *out,
            *rows,
            "--spectrum",
            "0.25",
            "--repeats",
            "2",
            "--choices",
        ]
    )
    assert "  gSC  all directions, alpha 0.25, " in capsys.readouterr().out
    main(["check", data, *out])
    new = str(tmp_path / "data" / "ape")
    main(["predict", new, "--data", data, *out, *rows, "--spectrum", "0.25"])
    assert "(spectrum 0.25, lam" in capsys.readouterr().out
    for wrong in (["--arma", "2"], ["--rank", "pad"]):
        with pytest.raises(SystemExit, match="^2$"):
            main(["compare", data, *out, "--spectrum", "1", *wrong])
        assert "--spectrum excludes --arma and --rank" in capsys.readouterr().err
