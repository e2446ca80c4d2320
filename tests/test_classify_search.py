"""Methods compared: candidates left out, folds, and the table."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_classify import baseline_rows, evaluation
from grassmann_classify.__main__ import main
from grassmann_classify.bank import Bank
from grassmann_classify.clips import Collection
from grassmann_classify.evaluation import evaluate, run_splits, shares_of
from grassmann_classify.rows import (
    Method,
    Nearest,
    Sets,
)
from grassmann_classify.settings import Settings
from grassmann_classify.splits import folds, kept_together
from grassmann_classify.tables import notes_of
from grassmann_classify.words import clip_names
from grassmann_sc import subspaces, tuning
from grassmann_sc.baselines.estimators import MSM

SETTINGS = Settings(C=[0.1, 1])
TRAIN = np.arange(24)
TEST = np.arange(24, 36)


def noisy_sets(noise=1.0, lengths=(5,), dimension=2):
    """36 sets of frames in R^8 of three classes, each around a subspace of its own."""
    rng = np.random.default_rng(0)
    label = np.arange(36) % 3
    spaces = rng.standard_normal((3, dimension, 8))
    sizes = np.resize(lengths, 36)
    sets = []
    for n, c in zip(sizes, label):
        exact = rng.standard_normal((n, dimension)) @ spaces[c]
        sets.append(exact + noise * rng.standard_normal((n, 8)))
    return sets, label


def inputs_of(sets, label):
    p = min(map(len, sets))
    X = subspaces.from_sets(sets, min(p, 3))
    names = [f"{i}" for i in range(len(sets))]
    return Bank(Collection(X, sets, names, label, None, (), np.arange(len(sets))))


def outcomes(inputs, label, *methods, settings=SETTINGS):
    rows = evaluate(
        inputs, label, None, (TRAIN, TEST), settings, methods_of=lambda *_: methods
    )
    return {outcome.method.name: outcome for outcome in rows}


def method(reads, estimator, grid=None, predict=None):
    return Method("row", reads, estimator, grid or {}, predict)


def kept_of(collection, split):
    clip = np.array(clip_names(collection.names, collection.clip))
    return kept_together(collection.label, collection.group, clip, split)


# ------------------------------------------------------------------------------- splits


@pytest.mark.parametrize("kind", ["group", "clip", "set"])
def test_classes_that_cross_validation_tells_nothing_of_are_named(kind):
    """Classes whose training sets are all of one group, one clip, or one set.

    No fold learns from some of these sets and asks for others.
    """
    label = np.array([*"aaaabbbbcccc", *"abc"])
    unit = np.array([0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 5, 6])
    names = [f"x{u}#{i}" for i, u in enumerate(unit)]
    collection = Collection(None, None, names, label, None, None, np.arange(15))
    if kind == "set":
        train = np.array([0, 1, 2, 4, 8])
    else:
        train = np.arange(12)
        of_kind = {"group": unit.astype(str)} if kind == "group" else {"clip": unit}
        collection = collection._replace(**of_kind)
    of_set, notes = kept_of(collection, tuning.Split(train, np.arange(12, 15)))
    assert notes == [
        f"cross-validation needs two {kind}s of a class to train and tells nothing of 2 "
        "classes with one: b, c"
    ]
    group = None if of_set is None else of_set[train]
    for fit, validate in folds(label[train], group, 0, 3):
        assert of_set is None or not set(group[fit]) & set(group[validate])
        assert set(label[train][validate]) & set(label[train][fit]) <= {"a"}


@pytest.mark.parametrize("torn", [False, True])
def test_groups_are_kept_together_before_clips_and_clips_where_groups_are_torn(torn):
    clip = np.repeat(np.arange(12), 2)
    group = np.repeat([*"pqrs"], 6)
    names = [f"x{c}#{i % 2}" for i, c in enumerate(clip)]
    collection = Collection(None, None, names, clip % 2, group, None, clip)
    train = np.arange(16 if torn else 18)
    of_set, notes = kept_of(collection, tuning.Split(train, np.arange(len(train), 24)))
    kept = clip if torn else group
    assert len(set(zip(of_set, kept))) == len(set(of_set)) == len(set(kept))
    assert [text[:7] for text in notes] == ["group r"] * torn
    pairs = folds(collection.label[train], of_set[train], 0, 3)
    assert len(pairs) == 3 * (5 if torn else 3)
    for fit, validate in pairs:
        assert not set(kept[train][fit]) & set(kept[train][validate])


def test_shares_of_uneven_classes_are_those_by_hand():
    """Right are 3 of 4 a, 1 of 2 b, 1 of 1 c; of answers 3 of 3, 1 of 2, 1 of 2."""
    shares = shares_of(np.array([*"aaaabbc"]), np.array([*"aaabbcc"]))
    assert shares["accuracy"] == pytest.approx(100 * 5 / 7)
    assert shares["balanced"] == pytest.approx(100 * (3 / 4 + 1 / 2 + 1) / 3)
    assert shares["f1"] == pytest.approx(100 * (6 / 7 + 1 / 2 + 2 / 3) / 3)


def test_what_estimators_made_of_a_fold_is_of_its_training_sets_alone():
    """made holds one fold, and nothing of other folds, which hold sets to be asked."""
    sets, label = noisy_sets()
    hits = []

    class Shares(Nearest):
        made = None

        def __init__(self, lam=1):
            self.lam = lam

        def fit(self, sets, y):
            given = [rows.tobytes() for rows in sets]
            if self.made is not None:
                hits.append("sets" in self.made)
                assert self.made.setdefault("sets", given) == given
            self.classes_ = np.unique(y)
            self.y_ = y
            return self

        def predict(self, sets):
            return self.y_[np.arange(len(sets)) % len(self.y_)]

    row = method("sets", Shares(), {"lam": [1, 2, 3]})
    outcome = outcomes(inputs_of(sets, label), label, row)["row"]
    assert outcome.failed is None and hits.count(True) > hits.count(False) > 1
    made = {}
    fits = Sets(sets, Shares(), made)
    for fit in (TRAIN[:12], TRAIN[12:], TRAIN[:12]):
        fits.parts(fit, fit)[0].made["sets"] = fit
        assert len(made) == 1


# ------------------------------------------------------------------ candidates left out


def test_a_point_of_a_grid_that_no_fold_can_have_is_left_out():
    sets, label = noisy_sets()
    inputs = inputs_of(sets, label)
    grid = {"keep": [0.7, 0.9]}
    both = method("sets", MSM(), {"p": [1, 2, 9], **grid})
    outcome = outcomes(inputs, label, both)["row"]
    alone = method("sets", MSM(), {"p": [1, 2], **grid})
    without = outcomes(inputs, label, alone)["row"]
    assert outcome.failed is None and list(outcome.left_out) == ["9 directions"]
    assert outcome.left_out["9 directions"].endswith("got 9")
    assert without.left_out == {}
    assert (
        outcome.predicted == without.predicted
    ).all() and outcome.chosen == without.chosen


def test_what_the_queries_alone_cannot_have_is_left_out():
    sets, label = noisy_sets(noise=0.1, lengths=[6] * 24 + [3] * 12, dimension=4)
    row = method("sets", MSM(), {"p": [1, 4]})
    outcome = outcomes(inputs_of(sets, label), label, row)["row"]
    assert (
        outcome.failed is None
        and outcome.chosen == {"p": 1}
        and list(outcome.left_out) == ["4 directions"]
    )


def test_a_gram_matrix_that_is_absent_is_left_out_and_none_at_all_fails():
    sets, label = noisy_sets()
    inputs = inputs_of(sets, label)
    absent = tuning.Absent("beyond the rank of set 7")

    K = core.projection_kernel(inputs.collection.X[:, :, :1])

    def some(inputs, train, recipe):
        return {
            (("share", 0.5),): tuning.Gram(K),
            (("share", 0.9),): absent,
        }

    row = method(some, Nearest(), {"share": []}, predict=tuning.nearest_predictions)
    outcome = outcomes(inputs, label, row)["row"]
    assert outcome.left_out == {"share 0.9": "beyond the rank of set 7"}
    assert outcome.chosen == {"share": 0.5}
    none = row._replace(reads=lambda inputs, train, recipe: {(("share", 0.9),): absent})
    assert outcomes(inputs, label, none)["row"].failed.endswith(
        "beyond the rank of set 7"
    )


def test_bounds_that_a_set_is_too_short_for_are_left_out(monkeypatch):
    monkeypatch.setattr(baseline_rows, "BOUNDS", [0.2, 0.5, 1.0])
    sets, label = noisy_sets(lengths=[1, 2])
    inputs = inputs_of(sets, label)
    row = method(
        baseline_rows.convex_hulls,
        Nearest(),
        {"bound": []},
        predict=tuning.nearest_predictions,
    )
    outcome = outcomes(inputs, label, row)["row"]
    assert outcome.chosen == {"bound": 1.0}
    assert "each set, got 0.2 for set 0 of 1 frame" in outcome.left_out["bound 0.2"]
    assert {"bound 0.2", "bound 0.5"} == outcome.left_out.keys()


def test_landmarks_suffice_for_the_directions_of_all_classes(monkeypatch):
    """Of many rows at least the usual number, at most so many."""
    monkeypatch.setattr(baseline_rows, "MANY_ROWS", 100)
    sets, _ = noisy_sets()
    label = np.arange(36) // 2
    bank = inputs_of(sets, label)
    for least, most, expected in [
        (10, 2000, 2 * 3 * 18),
        (10, 50, 50),
        (300, 2000, 300),
    ]:
        monkeypatch.setattr(baseline_rows, "LANDMARKS", (least, most))
        rows = baseline_rows.baselines(bank, 12, Settings(baselines=True))
        numbers = [
            row.estimator.n_landmarks for row in rows if row.name.endswith("KMSM")
        ]
        assert numbers == [expected]


def test_clips_of_one_frame_have_every_row(tmp_path, capsys):
    rng = np.random.default_rng(0)
    label = np.repeat(["left", "right"], 8)
    bright = np.where(label == "left", 0, 3)
    frames = rng.integers(1, 60, (16, 4, 6))
    for i, column in enumerate(bright):
        frames[i, :, column : column + 3] += 180
    even = np.arange(0, 16, 2)
    np.savez(
        tmp_path / "one.npz",
        frames=frames.astype(np.uint8),
        label=label,
        offset=np.arange(17),
        train0=even,
        test0=even + 1,
    )
    main(
        [
            "compare",
            str(tmp_path / "one.npz"),
            "--out",
            str(tmp_path / "out"),
            "--no-pictures",
            "--baselines",
            "--kernels",
        ]
    )
    out = capsys.readouterr().out
    assert "\nconvex hulls " in out and "KCMSM" in out and "failed" not in out


def test_regularised_baselines_are_tuned_over_their_regularisation():
    sets, label = noisy_sets()
    rows = {
        row.name: row
        for row in baseline_rows.baselines(inputs_of(sets, label), 19, Settings())
    }
    assert {"p", "reg"} <= rows["DCC"].grid.keys()
    assert {"p", "gamma"} <= rows["KMSM"].grid.keys() & rows["KCMSM"].grid.keys()
    K = np.eye(24) + 1
    for name in ("GDA", "GGDA", "kernel: GDA"):
        tried = [
            dict(point)["reg"] for point in rows[name].predict(K, K, np.arange(24) % 3)
        ]
        assert set(tried) == set(baseline_rows.REG)


def test_a_fold_tests_no_set_whose_class_it_does_not_learn_from():
    """A class of one set, and one of one person: nothing could be right."""
    y = np.array([0] * 6 + [1] * 6 + [2] + [3] * 4)
    person = np.array([*range(6), *range(6), 7, 8, 8, 8, 8])
    for group, tested in ((None, {0, 1, 3}), (person, {0, 1})):
        pairs = folds(y, group, 0, 2)
        assert {*y[np.concatenate([part for _, part in pairs])]} == tested
        assert all({*y[part]} <= {*y[fit]} for fit, part in pairs)


def test_folds_that_are_repeated_are_drawn_anew():
    label = np.arange(24) % 2
    for group in (None, np.arange(24) // 2):
        repeated = folds(label, group, 0, 3)
        parts = {tuple(validate) for _, validate in repeated}
        assert len(parts) > 2 * len(repeated) / 3


# row i of this "Gram matrix" is i
NUMBERED = np.repeat(np.arange(36.0)[:, None], 36, axis=1)


# ------------------------------------------------------------------------ ends of grids


def results_of(accuracies, **more):
    """{row: [a split, ...]} of {row: accuracies in %}."""
    usual = {
        "seconds": 0.1,
        "chosen": {},
        "failed": None,
        "left_out": {},
        "ends": {},
        "warned": (),
    }
    return {
        name: [{**usual, "accuracy": accuracy, **more} for accuracy in values]
        for name, values in accuracies.items()
    }


def test_warnings_of_candidates_belong_to_their_row(recwarn):
    sets, label = noisy_sets()

    class Warns(Nearest):
        def fit(self, K, y):
            warnings.warn("little is known", stacklevel=2)
            warnings.warn(f"of {len(K)} sets", stacklevel=2)
            return super().fit(K, y)

    row = method("gram", Warns(), predict=tuning.nearest_predictions)
    outcome = outcomes(inputs_of(sets, label), label, row)["row"]
    assert outcome.warned == ("little is known", "of 24 sets") and not len(recwarn)
    notes = [f"row: warned in 3 of 3 splits: {text}" for text in outcome.warned]
    assert notes_of(results_of({"row": [90.0] * 3}, warned=outcome.warned)) == notes


def test_what_it_will_take_is_said_after_each_split_but_the_last(capsys, monkeypatch):
    """What is to go is the mean time of a split so far, times the splits to go."""
    monkeypatch.setattr(evaluation, "WORTH_SAYING", 0)
    now = [0.0]
    monkeypatch.setattr(
        evaluation, "time", SimpleNamespace(perf_counter=lambda: now[0])
    )
    sets, label = noisy_sets(2.0)
    inputs = inputs_of(sets, label)
    nearest = method("gram", Nearest(), predict=tuning.nearest_predictions)
    pairs = [(TRAIN, TEST), (TEST, TRAIN), (TRAIN, TEST)]
    methods_of = lambda *_: [nearest]  # noqa: E731
    for progress in run_splits(inputs, pairs, SETTINGS, methods_of=methods_of):
        assert {len(splits) for splits in progress.results.values()} == {
            now[0] / 30 + 1
        }
        now[0] += 30
    lines = capsys.readouterr().err.splitlines()
    lines = [line.partition("; ")[2] for line in lines if line.startswith("split ")]
    assert lines == ["about 60 s to go", "about 30 s to go", ""]
