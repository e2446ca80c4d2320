"""Subspaces that are given, in place of frames: compared, learned, and answered."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_classify.__main__ import main
from grassmann_classify.arrays import load_npz, read_sets
from grassmann_classify.building import build_all
from grassmann_classify.clips import Basis, Clip
from grassmann_classify.learning import add, fit, predict
from grassmann_classify.model_file import load
from grassmann_classify.settings import Recipe, Settings
from grassmann_classify.words import group_named

QUICK = ["--no-pictures", "--methods", "nearest,gsc,svm"]


def bases_of_two_classes(n=20, p=3, noise=0.15):
    """(bases (n, 12, p), labels (n,)): those of a class share directions, in order."""
    rng = np.random.default_rng(0)
    label = np.arange(n) % 2
    centers = core.random_subspaces(2, 12, p, rng=1)
    moved = centers[label] + noise * rng.standard_normal((n, 12, p))
    return np.linalg.qr(moved)[0], np.array(["left", "right"])[label]


@pytest.fixture
def cwd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_bases_of_a_file_are_compared_by_its_splits(cwd, capsys):
    bases, label = bases_of_two_classes()
    even = np.arange(0, 20, 2) + np.arange(10) % 2
    odd = np.setdiff1d(np.arange(20), even)
    np.savez("b.npz", bases=bases, labels=label, train0=even, test0=odd)
    main(["compare", "b.npz", "--no-pictures"])
    out, err = capsys.readouterr()
    assert "20 sets of 2 classes; 1 split: splits of b.npz" in out
    assert err.count("ready-made subspaces") == 1 and "GiB" not in err
    assert "20 clips of 2 classes, 60 directions of 12 features" in err
    rows = [line.split("  ")[0] for line in out.splitlines()]
    assert {"nearest subspace", "gSC"} <= {*rows}
    assert not [row for row in rows if row.startswith(("frames", "mean", "kg"))]


def test_the_first_columns_are_the_subspaces_of_smaller_dimension(cwd, capsys):
    """Where classes share all but their first direction, p = 1 tells them apart."""
    rng = np.random.default_rng(0)
    label = np.arange(40) % 2
    first = np.eye(12)[:, :2].T[label]
    others = np.concatenate([np.zeros((40, 2, 2)), rng.standard_normal((40, 10, 2))], 1)
    bases = np.concatenate([first[:, :, None], np.linalg.qr(others)[0]], axis=2)
    np.savez("b.npz", bases=bases, label=label)
    main(["compare", "b.npz", "--repeats", "1", "--methods", "nearest", *QUICK[:1]])
    out, err = capsys.readouterr()
    assert "best so far nearest subspace, 100.0 %\n" in err
    assert "random splits, 50 % to train" in out


def test_the_first_columns_are_taken():
    bases, _ = bases_of_two_classes(n=2)
    clip = Clip("x", None, None, [*map(Basis, bases)])
    made = build_all([clip], Recipe(2, features="ready-made"))
    np.testing.assert_array_equal(made.X, bases[:, :, :2])


def test_of_frames_beside_bases_a_key_names_the_right_ones(cwd, capsys):
    bases, label = bases_of_two_classes()
    frames = np.random.default_rng(0).standard_normal((80, 12))
    sets = {"frames": frames, "offset": 4 * np.arange(21)}
    np.savez("b.npz", bases=bases, label=label, **sets)
    why = "b.npz must hold one of frames, X, bases, got frames and bases: --key names"
    with pytest.raises(SystemExit, match=why):
        main(["compare", "b.npz", *QUICK])
    assert len(load_npz(cwd / "b.npz", "frames")[0][0].sources[0]) == 4
    main(["compare", "b.npz", "--key", "bases", "--repeats", "1", *QUICK])
    assert "ready-made subspaces" in capsys.readouterr().err
    for label in ("left", "right"):  # in class folders too
        for i in range(3):
            (cwd / "data" / label).mkdir(parents=True, exist_ok=True)
            np.savez(cwd / "data" / label / f"{i}.npz", bases=bases[i], frames=frames)
    with pytest.raises(
        SystemExit, match="0.npz must hold one of frames, X, bases, got"
    ):
        main(["compare", "data", *QUICK])


@pytest.mark.parametrize("name", ["group", "groups"])
def test_groups_of_a_file_are_read_and_other_arrays_named(cwd, capsys, name):
    """Else sets of a person would train and be tested, without a word."""
    X = np.random.default_rng(0).standard_normal((6, 9, 2))
    arrays = {"X": X, "y": np.arange(6) % 2, "subject": np.arange(6), "age": 3}
    np.savez("X.npz", **arrays, **{name: list("aabbcc")})
    clips, _ = load_npz(cwd / "X.npz")
    assert [clip.group for clip in clips] == list("aabbcc")
    assert "passed over the arrays age, subject of " in capsys.readouterr().err
    np.savez("X.npz", **arrays, **{name: list("aab")})
    with pytest.raises(ValueError, match=f"{name} must have length 6, one a set"):
        load_npz(cwd / "X.npz")


def trials(n):
    """(Sets (n, 9, 3) of two classes, each near an axis of its own; labels (n,))."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 9, 1)) * np.eye(3)[y][:, None]
    return X + 0.1 * rng.standard_normal(X.shape), y


@pytest.mark.parametrize(
    "wrong",
    [
        [*"010011", "", "nan"],
        [b"0", b"1", b"0", b"0", b"1", b"1", b"", b"NaN"],
        np.array([0, 1, 0, 0, 1, 1, np.nan, np.nan]),
    ],
)
def test_labels_of_new_sets_tell_how_many_answers_are_right(cwd, capsys, wrong):
    X, y = trials(12)
    np.savez("old.npz", X=X, y=y)
    np.savez("new.npz", X=1.01 * X[:8], y=wrong)
    np.savez("bare.npz", X=X[:8])
    quick = [*QUICK, "--recipe", "plain", "--p", "1", "--no-kernels"]
    learned = "predict", "--data", "old.npz", "--save", "m.npz", "--methods", "gsc"
    main([*learned, *quick])
    capsys.readouterr()
    main(["predict", "new.npz", "--model", "m.npz", "--no-pictures"])
    out = capsys.readouterr().out
    assert "\n66.7 % of 6 labelled clips right\n" in out
    main(["predict", "new.npz", "--model", "m.npz", "--no-pictures", "--json"])
    main(["predict", "bare.npz", "--model", "m.npz", "--no-pictures"])
    assert "labelled clips right" not in capsys.readouterr().out


def test_a_file_of_another_kind_is_said_to_be_none(cwd):
    (cwd / "X.npz").write_bytes(b"MATLAB 5.0 MAT-file" + bytes(200))
    with pytest.raises(ValueError, match="as np.savez writes it: it is no such file$"):
        load_npz(cwd / "X.npz")


def test_train_and_test_parts_in_one_file_are_a_split(cwd, capsys):
    X, y = trials(20)
    parts = {"X_train": X[:12], "y_train": y[:12], "X_test": X[12:], "y_test": y[12:]}
    np.savez("both.npz", **parts)
    quick = [*QUICK, "--recipe", "plain", "--p", "1", "--no-kernels"]
    main(["compare", "both.npz", *quick])
    out, err = capsys.readouterr()
    assert "20 sets of 2 classes" in out and "1 split: splits of both.npz" in out
    assert "20 clips of 2 classes, 180 frames of 3 features" in err
    clips, split = load_npz(cwd / "both.npz")
    ((_, train, test),) = split.pairs
    names = [clip.name for clip in clips]
    assert (names[:12], names[12:]) == ([*train], [*test])
    np.testing.assert_array_equal(clips[13].sources[0], X[13])
    turned = {name: part.T if name[0] == "X" else part for name, part in parts.items()}
    np.savez("turned.npz", **turned)
    clips, _ = load_npz(cwd / "turned.npz", axes="channels,time,n")
    np.testing.assert_array_equal(clips[13].sources[0], X[13])
    for name, part in (("y_test", y[:9]), ("y_train", y[:11]), ("X_test", X[12:, 1:])):
        np.savez("wrong.npz", **parts | {name: part})
        with pytest.raises(SystemExit, match="X_train and X_test must have one shape"):
            main(["compare", "wrong.npz", *quick])


def test_groups_of_a_file_that_some_sets_lack_are_told(cwd, capsys):
    X = np.random.default_rng(0).random((6, 8, 3))
    np.savez("X.npz", X=X, y=[*"ababab"], group=[*"ppqq", "", ""])
    load_npz(cwd / "X.npz")
    err = capsys.readouterr().err
    assert "groups are passed over: 2 of 6 clips have none" in err


def test_a_model_of_bases_answers_bases_and_no_frames(cwd, capsys):
    bases, label = bases_of_two_classes()
    np.savez("b.npz", bases=bases[:14], y=label[:14])
    np.savez("new.npz", bases=bases[14:], group=[*"aabbcc"])
    main(["predict", "new.npz", "--data", "b.npz", "--save", "m.npz", *QUICK])
    first = (cwd / "out" / "predictions.csv").read_text()
    main(["predict", "new.npz", "--model", "m.npz", "--no-pictures"])
    assert (cwd / "out-2" / "predictions.csv").read_text() == first
    header, *rows = [line.split(",")[:3] for line in first.splitlines()]
    assert header == ["clip", "group", "answer"]
    assert [row[2] for row in rows] == label[14:].tolist()
    assert "".join(row[1] for row in rows) == "aabbcc"
    np.savez("new.npz", bases=bases[14:], group=[*"aab"])
    with pytest.raises(SystemExit, match="group must have length 6, one a set, got"):
        main(["predict", "new.npz", "--model", "m.npz"])
    assert load("m.npz").recipe.features == "ready-made"
    np.savez("more.npz", bases=bases[14:], y=label[14:])
    main(["add", "more.npz", "--model", "m.npz", "--save", "m2.npz"])
    assert "6 sets more, 2 classes" in capsys.readouterr().out
    np.save("frames.npy", np.zeros((3, 12)))
    with pytest.raises(SystemExit, match="holds frames, the others hold a ready-made"):
        main(["predict", "frames.npy", "--model", "m.npz"])


def test_a_model_of_frames_answers_no_bases(cwd):
    rng = np.random.default_rng(0)
    for label in "ab":
        for i in range(4):
            (cwd / "data" / label).mkdir(parents=True, exist_ok=True)
            np.save(cwd / "data" / label / f"{i}.npy", rng.standard_normal((5, 12)))
    np.savez("new.npz", bases=bases_of_two_classes()[0])
    usual = ["--recipe", "plain", *QUICK, "--no-kernels"]
    with pytest.raises(
        SystemExit, match="holds a ready-made subspace, the others hold f"
    ):
        main(["predict", "new.npz", "--data", "data", *usual])


def test_folders_hold_a_basis_a_file_or_several(cwd, capsys):
    bases, label = bases_of_two_classes()
    for i, (basis, folder) in enumerate(zip(bases, label)):
        (cwd / "data" / folder).mkdir(parents=True, exist_ok=True)
        several = basis if i > 1 else np.stack([basis, basis])
        np.savez(cwd / "data" / folder / f"{i}.npz", bases=several)
    np.savez(cwd / "data" / "left" / "bad.npz", bases=2 * bases[0])
    np.save(cwd / "data" / "left" / "frames.npy", np.zeros((5, 12)))
    main(["compare", "data", "--repeats", "1", "--no-kernels", *QUICK])
    out, err = capsys.readouterr()
    assert "22 sets of 2 classes" in out
    rows = (cwd / "out" / "predictions.csv").read_text().splitlines()[1:]
    names = {row.partition(",")[0] for row in rows}
    assert names & {"left/0.npz#0", "left/10.npz"} and "left/0.npz" not in names
    assert "\n2 could not be used" in err
    assert "left/bad.npz: bases must have orthonormal columns" in err
    assert "left/frames.npy: holds frames, the others hold a ready-made subspace" in err


@pytest.mark.parametrize(
    "option", [["--center"], ["--size", "3", "4"], ["--stack", "2"], ["--kernels"]]
)
def test_options_of_frames_are_refused(cwd, option):
    bases, label = bases_of_two_classes()
    np.savez("b.npz", bases=bases, label=label)
    with pytest.raises(
        SystemExit, match=f"{option[0]} goes with frames, and set 0 is a"
    ):
        main(["compare", "b.npz", *option])


def test_bases_of_a_file_are_checked(cwd):
    bases, label = bases_of_two_classes()
    bases[3] *= 2
    np.savez("b.npz", bases=bases, label=label)
    with pytest.raises(ValueError, match="bases must have orthonormal .* index 3"):
        load_npz(cwd / "b.npz")
    np.savez("b.npz", bases=bases.swapaxes(1, 2), label=label)
    with pytest.raises(ValueError, match="1 <= p <= d.*transposed"):
        read_sets(cwd / "b.npz")
    np.savez("b.npz", bases=bases[:0], label=label[:0])
    with pytest.raises(ValueError, match="must hold a basis, got none"):
        load_npz(cwd / "b.npz")
    np.savez("b.npz", bases=bases[:3])
    with pytest.raises(
        ValueError, match="must hold the labels of its sets, as label or"
    ):
        load_npz(cwd / "b.npz")


def test_clusters_and_checks_take_bases(cwd, capsys):
    bases, label = bases_of_two_classes(noise=0.1)
    label[5] = "left"
    np.savez("b.npz", bases=bases, label=label)
    main(["check", "b.npz", "--no-pictures"])
    assert re.search("set 5 .*right", capsys.readouterr().out)
    main(["cluster", "b.npz", "-k", "2", "--no-pictures"])
    assert "10 + 10" in capsys.readouterr().out


def test_groups_of_a_file_of_sets_are_an_array_and_no_part_of_names(tmp_path):
    X = np.random.default_rng(0).random((8, 5, 3))
    np.savez(tmp_path / "sets.npz", X=X, y=np.arange(8) % 2)
    with pytest.raises(
        SystemExit, match="--group-by goes with files of clips; in .*npz"
    ):
        main(["compare", str(tmp_path / "sets.npz"), "--group-by", r"(\d)"])


# ------------------------------------------------------------------ names in arrays


def frames_of_three_classes():
    """(X (24, 6, 5), the index of each set's class)."""
    rng = np.random.default_rng(0)
    index = np.arange(24) % 3
    centers = rng.standard_normal((3, 6, 5))
    return centers[index] + 0.2 * rng.standard_normal((24, 6, 5)), index


@pytest.mark.parametrize(
    "group",
    [
        np.array([b"p1", b"p2", b""]),
        np.array(["p1", "p2", ""]),
        np.array([1.0, 2.0, np.nan]),
    ],
)
def test_groups_of_a_file_have_one_name_whatever_their_type(cwd, capsys, group):
    X, index = frames_of_three_classes()
    np.savez("sets.npz", X=X, y=index, group=group[np.arange(24) // 3 % 3])
    clips, _ = load_npz(cwd / "sets.npz")
    names = {clip.group for clip in clips}
    assert names in ({"p1", "p2", None}, {"1", "2", None})
    alone = sum(clip.group is None for clip in clips)
    assert (
        f"groups are passed over: {alone} of 24 clips have none"
        in capsys.readouterr().err
    )


def test_groups_that_are_numbers_are_those_of_a_model(cwd):
    X, index = frames_of_three_classes()
    settings = Settings(methods=["nearest"], kernels=False, p=[2], features=["raw"])
    model = fit(X, index, np.arange(24) // 3 % 4 * 1.0, settings=settings)
    more = add(model, X[:1] + 0.1, index[:1], [0])
    assert {*more.groups} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("empty", ["", "nan", b""])
def test_sets_of_a_file_without_a_label_are_passed_over(cwd, capsys, empty):
    X, index = frames_of_three_classes()
    label = np.array(["a", empty, "c"] if empty != b"" else [b"a", b"", b"c"])[index]
    np.savez("sets.npz", X=X, y=label, train0=np.arange(12), test0=np.arange(12, 24))
    clips, parts = load_npz(cwd / "sets.npz")
    assert [clip.name for clip in clips] == [
        f"set {i}" for i in range(24) if i % 3 != 1
    ]
    assert (
        "8 sets of sets.npz without a label: passed over"
        in capsys.readouterr().err.replace(f"{cwd}/", "")
    )
    main(["compare", "sets.npz", "--no-pictures", "--methods", "nearest", "--p", "2"])
    lines = (cwd / "out" / "predictions.csv").read_text().splitlines()[1:]
    assert len(lines) == 8 and parts.how == "splits of sets.npz"


@pytest.mark.parametrize("alike", [["a", "a "], ["Walk", "walk"], ["u\u0308", "\xfc"]])
def test_labels_that_read_alike_are_told(cwd, capsys, alike):
    X, index = frames_of_three_classes()
    np.savez("sets.npz", X=X, y=np.array([*alike, "z"])[index])
    main(["compare", "sets.npz", "--no-pictures", "--methods", "nearest", "--p", "2"])
    names = " and ".join(map(repr, alike))
    message = f"labels {names} are two classes here, and read alike"
    assert message in capsys.readouterr().err


# ------------------------------------------------------------------------ in a program


def test_what_is_no_set_of_frames_is_named():
    X, index = frames_of_three_classes()
    settings = Settings(methods=["nearest"], kernels=False, p=[2], features=["raw"])
    model = fit(X, index, settings=settings)
    with pytest.raises(ValueError, match=r"set 0: a set must be an array .*\[set\]"):
        predict(model, X[0])
    with pytest.raises(ValueError, match="sets must hold at least one set, got none"):
        add(model, [], [])
    masked = np.ma.array(X[0], mask=X[0] > 1)
    with pytest.raises(ValueError, match="set 0: frames must have no masked entries"):
        predict(model, [masked])
    with pytest.warns(
        UserWarning, match="1 of 2 sets without an answer: set 0: frames"
    ):
        assert predict(model, [masked, X[1]]).names == ["set 1"]
    with pytest.raises(ValueError, match="set 1: frames must have no masked entries"):
        fit([X[0], masked, *X[2:]], index, settings=settings)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"window": 3, "step": 0}, "step must be at least 1, got 0"),
        ({"every": -1}, "every must be at least 1, got -1"),
        ({"rate": 0}, "rate must be positive, got 0"),
        ({"steps": -1}, "steps must be at least 1, got -1"),
        ({"stack": 0}, "stack must be at least 1, got 0"),
        ({"size": (8, 0)}, "size must be at least 1, got 0"),
        ({"size": 8}, r"size must be \(height, width\), got 8"),
        ({"size": (8,)}, r"size must be \(height, width\), got \(8,\)"),
    ],
)
def test_a_recipe_is_checked_when_it_is_made(options, words):
    with pytest.raises(ValueError, match=words):
        Recipe(2, **options)


@pytest.mark.parametrize(
    "features, stack, d", [("hog", 1, 324), ("hog", 2, 648), ("raw", 2, 2048)]
)
def test_settings_that_leave_no_recipe_to_choose_are_that_recipe(features, stack, d):
    rng = np.random.default_rng(0)
    sets = [rng.random((6, 32, 32)) + k % 2 * np.eye(32) for k in range(8)]
    usual = Settings(methods=["gsc"], kernels=False, p=[2], center=True, stack=[stack])
    settings = replace(usual, features=[features])
    model = fit(sets, [k % 2 for k in range(8)], settings=settings)
    assert model.d == d and predict(model, sets[:2]).labels.tolist() == [0, 1]
    with pytest.raises(ValueError, match="features must be 'raw', .* got 'nope'"):
        fit(sets, [0, 1] * 4, settings=replace(usual, features=["nope"]))


def test_progress_is_shown_where_the_settings_say_so(capsys):
    X, index = frames_of_three_classes()
    settings = Settings(methods=["nearest"], kernels=False, p=[2], verbose=True)
    fit(X, index, settings=settings)
    assert "candidates ranked" in capsys.readouterr().err


def test_labels_of_bytes_that_are_no_text_stay_apart(cwd):
    X, index = frames_of_three_classes()
    np.savez("sets.npz", X=X, y=np.array([b"M\xfc", b"M\xf6", b"c"])[index])
    clips, _ = load_npz(cwd / "sets.npz")
    assert [clip.label for clip in clips[:3]] == [r"M\xfc", r"M\xf6", "c"]


@pytest.mark.parametrize(
    "group, name",
    [(1.0, "1"), (np.float32(2), "2"), (1.5, "1.5"), (True, "True"), (3, "3")]
    + [(np.timedelta64(1, "s"), "1 seconds"), (b"p1", "p1"), (None, "None")],
)
def test_groups_are_named_by_what_they_are(group, name):
    assert group_named(group) == name


def test_labels_are_written_with_all_digits_and_without_line_feeds(cwd, capsys):
    bases, _ = bases_of_two_classes()
    label = np.array([1234567890.25, 1234567890.75])[np.arange(20) % 2]
    np.savez("b.npz", bases=bases, label=label)
    main(["compare", "b.npz", *QUICK, "--repeats", "1"])
    kept = json.loads((cwd / "out" / "results.json").read_text())
    assert kept["classes"] == [1234567890.25, 1234567890.75]
    np.savez("b.npz", bases=bases, label=np.array(["a\nb", "c"])[np.arange(20) % 2])
    assert {clip.label for clip in load_npz("b.npz")[0]} == {r"a\nb", "c"}


@pytest.mark.parametrize(
    "labels, wrong",
    [
        ([True, False], "1"),
        ([-3, 10], "1_0"),
        ([0.5, 2.0], "2_0"),
        (np.array([3, 2**63 + 1], np.uint64), "3.0"),
    ],
)
def test_names_of_folders_are_labels_of_the_models_type(cwd, labels, wrong):
    bases, _ = bases_of_two_classes(24)
    label = np.array(labels)[np.arange(24) % 2]
    np.savez("b.npz", bases=bases[:20], label=label[:20])
    words = ["predict", "--data", "b.npz", "--methods", "gsc", "--save", "m.npz"]
    main([*words, "--no-pictures"])
    for k in range(20, 24):
        folder = cwd / "more" / str(label[k])
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(folder / f"{k}.npz", bases=bases[k])
    main(["add", "more", "--model", "m.npz", "--save", "n.npz"])
    assert sorted(load("n.npz").labels.tolist()) == sorted(label.tolist())
    (cwd / "more" / str(labels[0])).rename(cwd / "more" / wrong)
    with pytest.raises(SystemExit, match=f"as those of the model are, got '{wrong}'"):
        main(["add", "more", "--model", "m.npz", "--save", "o.npz"])


def test_labels_are_finite(cwd):
    bases, _ = bases_of_two_classes()
    np.savez("b.npz", bases=bases, label=np.array([1.0, np.inf])[np.arange(20) % 2])
    with pytest.raises(SystemExit, match="labels must be finite numbers"):
        main(["predict", "--data", "b.npz", "--save", "m.npz"])


def test_too_few_sets_to_choose_on_are_said_before_a_first_look(cwd, capsys):
    bases, label = bases_of_two_classes()
    np.savez("b.npz", bases=bases, label=label)
    why = "random splits, 1 clip a class to train: in a training part, parameters are chosen"
    with pytest.raises(SystemExit, match=why):
        main(["compare", "b.npz", "--train", "1"])
    assert "provisional" not in capsys.readouterr().err and not (cwd / "out").exists()
