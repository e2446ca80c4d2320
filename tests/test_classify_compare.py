"""The command compare, from files to answers; files that do not fit are refused."""

import csv
import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.svm import SVC

import grassmann_sc as core
from grassmann_classify import compare, evaluation, inputs, rows
from grassmann_classify.__main__ import main
from grassmann_classify.arrays import load_npz
from grassmann_classify.bank import Bank
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, Collection
from grassmann_classify.evaluation import evaluate, shares_of
from grassmann_classify.first_tries import kernel_predictions
from grassmann_classify.options import parse, split
from grassmann_classify.page import MANY, draw_results, tell_where_wrong
from grassmann_classify.results import Results, save_predictions, save_results
from grassmann_classify.settings import Settings
from grassmann_classify.splits import folds, split_at_random, strangers
from grassmann_classify.tables import Comparison, compared, natural_classes
from grassmann_classify.words import one_line
from grassmann_sc import subspaces, tuning
from textures import simulated_textures, texture_systems

FIRST = [
    "frames: SVM",
    "mean frame: SVM",
    "mean and spread: SVM",
]
METHODS = [
    "nearest subspace",
    "nearest",
    "subspaces: SVM",
    "gSC",
    "gLC",
    "kernel: nearest",
    "kernel: SVM",
    "kgSC",
    "kgLC",
    "gSC, 4 learned atoms",
    "gLC, 4 learned atoms",
]


def accuracies(text):
    """{row: accuracy} from a printed table."""
    cells = re.findall(r"^(\w.*?\w) {2,}(\d+\.\d) .*\d$", text, re.MULTILINE)
    return {name: float(number) for name, number in cells}


def small_file(**changes):
    """Arrays of a legal file: 12 sets of 5 to 7 byte images, two classes, two splits."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(5, 8, 12)
    label = np.repeat(["left", "right"], 6)
    sets = []
    for size, c in zip(sizes, label):
        bright = np.arange(6) // 3 == (c == "right")
        sets.append(rng.integers(0, 60, (size, 4, 6)) + 180 * bright)
    even = np.arange(0, 12, 2)
    odd = np.arange(1, 12, 2)
    arrays = {
        "frames": np.concatenate(sets).astype(np.uint8),
        "offset": np.concatenate([[0], np.cumsum(sizes)]),
        "label": label,
        "group": np.arange(12),
        "train0": even,
        "test0": odd,
        "train1": odd,
        "test1": even,
    }
    return {
        key: value for key, value in {**arrays, **changes}.items() if value is not None
    }


def write(folder, **changes):
    path = folder / "sets.npz"
    np.savez(path, **small_file(**changes))
    return str(path)


FEW = [
    "--center",
    "--lam",
    "0.2",
    "--neighbors",
    "3",
    "40",
    "--C",
    "1",
    "--iterations",
    "1",
]


@pytest.mark.parametrize(
    "options",
    [[], FEW, ["--resample", "5", "--stack", "2"]],
    ids=["default", "few", "stacked"],
)
def test_classify_prints_every_method(tmp_path, capsys, options):
    main(
        [
            "compare",
            write(tmp_path),
            "--out",
            str(tmp_path / "out"),
            "--no-pictures",
            "--p",
            "2",
            "--atoms",
            "100",
            *options,
        ]
    )
    printed = accuracies(capsys.readouterr().out)
    assert list(printed) == FIRST + METHODS
    assert printed["nearest subspace"] == 100 or "--center" in options


def test_frames_are_resampled_and_stacked(tmp_path):
    pattern = np.eye(2, 3)
    ramp = np.arange(5.0)[:, None, None] * np.ones((5, 2, 3)) + pattern
    words = ["--p", "2", "--resample", "9", "--stack", "3"]
    options = parse(["compare", str(tmp_path), *words])
    clip = Clip("ramp", "a", None, [ramp])
    (prepared,) = build_all([clip], split(options)[0]).sets
    prepared = prepared - np.tile(pattern.ravel(), 3)
    assert prepared.shape == (7, 18)
    assert np.allclose(np.sort(prepared[1])[[0, 6, 12]], [0.5, 1, 1.5])


@pytest.mark.parametrize("group", [None, np.repeat(np.arange(8), 3)])
def test_parameters_are_chosen_on_the_training_part_alone(group):
    """The choice does not depend on the test part; groups stay together in folds."""
    label = np.arange(24) % 2
    train = np.arange(15)
    test = np.arange(15, 24)
    sets = np.random.default_rng(0).standard_normal((24, 5, 6))
    X = subspaces.from_sets(sets, 2)
    chosen = []
    for label[test] in (0, 1):
        X[test] = X[test][::-1]
        sets[test] = 9 * sets[test][::-1]
        collection = Collection(X, list(sets), None, label, None, ())
        inputs = Bank(collection, None, Settings([2]))
        outcomes = evaluate(inputs, label, group, (train, test), Settings([2]))
        chosen.append([outcome.chosen for outcome in outcomes])
    assert chosen[0] == chosen[1]
    assert all(chosen[0][4:])
    of_train = None if group is None else group[train]
    for first, second in folds(label[train], of_train, 0):
        assert sorted([*first, *second]) == list(range(15))
        assert group is None or not np.intersect1d(group[first], group[second]).size


@pytest.mark.parametrize("noise", [0.1, 3.0])
def test_machines_of_every_c_are_those_fitted_one_by_one(noise):
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 20)
    X = np.repeat(3 * np.eye(3, 8), 20, axis=0) + noise * rng.standard_normal((60, 8))
    K = X @ X.T
    C = [100.0, 0.01, 1.0]
    answers = kernel_predictions(C)(K[::2, ::2], K[1::2, ::2], y[::2])
    assert list(answers) == [(("C", c),) for c in sorted(C, reverse=True)]
    for c in C:
        alone = SVC(kernel="precomputed", C=c).fit(K[::2, ::2], y[::2])
        assert np.array_equal(answers[("C", c),], alone.predict(K[1::2, ::2]))


def test_a_machine_that_any_c_makes_perfect_in_folds_does_not_answer_the_largest_class():
    """One set of a class to learn from in a fold, two or one in the training part."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(8), 2)[:-4]
    X = np.eye(8)[y] + 0.02 * rng.standard_normal((12, 8))
    pairs = [(np.arange(0, 8, 2), np.arange(1, 8, 2))]
    search = tuning.Search(y, pairs, kernel_predictions([0.1, 1, 10, 100]))
    choice = search.choose({("x",): X @ X.T})
    assert choice.score == 1 and dict(choice.parameters) == {"C": 100}


def test_a_method_that_fails_is_named_and_the_others_go_on(
    tmp_path, capsys, monkeypatch
):
    summed = rows.Split.summed

    def fail(split, linear):
        if linear:
            return summed(split, linear)
        raise ValueError("no such kernel today")

    monkeypatch.setattr(rows.Split, "summed", fail)
    with pytest.raises(SystemExit, match="kgSC failed: no such kernel today"):
        main(
            [
                "compare",
                write(tmp_path),
                "--out",
                str(tmp_path / "out"),
                "--recipe",
                "plain",
                "--p",
                "2",
                "--dpi",
                "40",
            ]
        )
    printed = capsys.readouterr().out
    assert re.search(r"\nkgLC +failed\n", printed)
    assert "kgSC: failed in 2 of 2 splits: no such kernel today" in printed
    assert accuracies(printed)["nearest subspace"] == 100
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["methods"][METHODS[7]]["failed"] == ["no such kernel today"] * 2
    assert results["methods"][METHODS[7]]["mean"] is None
    assert results["methods"][METHODS[0]]["mean"] == 100
    comparison = results["comparison"]
    assert (
        METHODS[7] not in comparison["behind"]
        and METHODS[7] not in comparison["as_good"]
    )
    assert (tmp_path / "out/pictures/confusion_nearest_subspace.png").exists()


def test_results_are_there_after_the_first_look_and_every_split(tmp_path, monkeypatch):
    calls = []

    def far():
        try:
            kept = json.loads((tmp_path / "out" / "results.json").read_text())
        except FileNotFoundError:
            return None
        assert kept["provisional"] == (not kept["splits_done"])
        return kept["splits_done"]

    for script in (compare, evaluation):
        monkeypatch.setattr(
            script,
            "to_stderr",
            lambda *texts: calls.extend((text, far()) for text in texts),
        )
    main(
        [
            "compare",
            write(tmp_path),
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--no-pictures",
            "--p",
            "2",
            "--jobs",
            "1",
        ]
    )
    splits = [(text[:7], count) for text, count in calls if text.startswith("split")]
    assert {*splits} == {("split 1", 1), ("split 2", 2)} and far() == 2


def test_every_p_up_to_the_rank_of_the_smallest_set_is_searched(tmp_path, capsys):
    path = write(tmp_path)
    main(
        [
            "compare",
            path,
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--no-pictures",
            "--no-kernels",
        ]
    )
    assert "9 candidates ranked" in capsys.readouterr().err
    main(
        [
            "compare",
            path,
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--no-pictures",
            "--no-kernels",
            "--p",
            "3",
            "2",
            "9",
        ]
    )
    assert "2 candidates ranked" in capsys.readouterr().err
    with pytest.raises(
        SystemExit, match=r"--p must hold a dimension up to 5, .* got \[7, 8"
    ):
        main(
            [
                "compare",
                path,
                "--out",
                str(tmp_path / "out"),
                "--recipe",
                "plain",
                "--p",
                "7",
                "8",
            ]
        )


def test_what_is_too_large_for_kernels_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_PRODUCTS", 1)
    main(["compare", write(tmp_path), "--out", str(tmp_path / "out"), "--no-pictures"])
    printed = capsys.readouterr()
    assert "left out the rows in a kernel's space: Gram matrices take" in printed.err
    assert "kgSC" not in printed.out and "gSC" in printed.out
    monkeypatch.setattr(inputs, "MOST_ROWS", 100)
    main(["compare", write(tmp_path), "--out", str(tmp_path / "out"), "--no-pictures"])
    assert "all frames take more than" in capsys.readouterr().err


def test_a_whole_number_of_sets_of_each_class_trains():
    label = np.repeat(["a", "b"], [5, 7])
    for train, test in split_at_random(label, 3, 4, 0):
        assert sorted([*train, *test]) == list(range(12))
        assert np.unique(label[train], return_counts=True)[1].tolist() == [3, 3]
    with pytest.raises(
        ValueError, match="--train 5 needs 6 clips of each class, a has 5"
    ):
        split_at_random(label, 5, 4, 0)


def test_no_seconds_leave_the_first_row_of_the_first_look(tmp_path, capsys):
    main(
        [
            "compare",
            write(tmp_path),
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--no-pictures",
            "--kernels",
            "--seconds",
            "0",
        ]
    )
    printed = capsys.readouterr().out
    assert "provisional: one split, nothing searched" in printed
    assert list(accuracies(printed)) == FIRST[:1]
    kept = json.loads((tmp_path / "out" / "results.json").read_text())
    assert kept["provisional"] and list(kept["methods"]) == [*accuracies(printed)]
    for name in ("predictions.csv", "report.html"):
        assert (tmp_path / "out" / name).exists()


def test_results_and_predictions_are_those_of_their_split(tmp_path):
    """Two splits by hand: one row failed in one, another has not reached the second."""
    label = np.array(["c2", "c2", "c10", "c10", "c9", "c9"])
    names = [f"clip {i}" for i in range(6)]
    collection = Collection(np.ones((6, 4, 1)), None, names, label, None, ())
    pairs = [
        (np.array([0, 2, 4]), np.array([5, 1, 3])),
        (np.array([1, 3, 5]), np.array([0, 4, 2])),
    ]

    def split(answers, failed=None):
        shares = {} if failed else shares_of(label[pairs[0][1]], np.array(answers))
        return {
            **dict.fromkeys(("accuracy", "balanced", "f1")),
            **shares,
            "seconds": 0.1,
            "chosen": {},
            "predicted": answers if failed else np.array(answers),
            "failed": failed,
        }

    results = {
        "both": [split(["c9", "c2", "c2"]), split(["c10", "c9", "c10"])],
        "once": [split(None, "no kernel"), split(["c2", "c9", "c9"])],
        "not yet": [split(["c10", "c10", "c10"])],
    }
    with Results(tmp_path / "out") as out:
        save_predictions(out, collection, pairs, results)
        save_results(out, {}, collection, pairs, results, 2, Comparison())
    assert (tmp_path / "out" / "predictions.csv").read_text().splitlines() == [
        "clip,split,truth,both,once,not yet",
        "clip 5,0,c9,c9,,c10",
        "clip 1,0,c2,c2,,c10",
        "clip 3,0,c10,c2,,c10",
        "clip 0,1,c2,c10,c2,",
        "clip 4,1,c9,c9,c9,",
        "clip 2,1,c10,c10,c9,",
    ]
    kept = json.loads((tmp_path / "out" / "results.json").read_text())
    assert kept["classes"] == ["c2", "c9", "c10"] and kept["splits_done"] == 2
    shares = kept["methods"]["both"]["accuracy"]
    assert kept["methods"]["both"]["std"] == pytest.approx(
        abs(shares[0] - shares[1]) / 2**0.5
    )
    confusion = {name: row["confusion"] for name, row in kept["methods"].items()}
    assert confusion == {
        "both": [[1, 0, 1], [0, 2, 0], [1, 0, 1]],  # truth a row
        "once": [[1, 0, 0], [0, 1, 0], [0, 1, 0]],
        "not yet": [[0, 0, 1], [0, 0, 1], [0, 0, 1]],
    }


@pytest.mark.parametrize(
    "two", [[0.5, 1.5], [b"x", b"y "], [-1, 1], ["a", "a "], [True, False]]
)
def test_labels_of_every_kind_that_a_file_holds_are_compared(tmp_path, two):
    path = write(tmp_path, label=np.repeat(two, 6), group=None)
    words = [
        "--no-pictures",
        "--p",
        "2",
        "--methods",
        "nearest,subspaces",
        "--no-kernels",
    ]
    main(["compare", path, "--out", str(tmp_path / "out"), *words])
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["classes"] == [
        c.decode() if isinstance(c, bytes) else c for c in sorted(two)
    ]
    assert all(row["accuracy"] == [100, 100] for row in results["methods"].values())
    lines = (tmp_path / "out" / "predictions.csv").read_text().splitlines()[1:]
    assert len(lines) == 12 and all(
        len(set(line.split(",")[2:])) == 1 for line in lines
    )


@pytest.mark.parametrize(
    "two, rule",
    [
        ([np.nan, 1.0], "be finite numbers, .*nan"),
        ([1j, 2j], "be finite numbers, strings or bools, .*, got 1j, 2j"),
        (
            np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
            "be finite numbers, .*, got datetime.date",
        ),
    ],
)
def test_other_labels_are_named_before_they_are_compared(tmp_path, two, rule):
    path = write(tmp_path, label=np.repeat(two, 6), group=None)
    words = ["compare", path, "--out", str(tmp_path / "out"), "--no-kernels"]
    with pytest.raises(SystemExit, match=f"^grassmann-classify: labels must {rule}"):
        main(words, "grassmann-classify")


def test_classes_that_are_tested_without_clips_to_train_are_said(tmp_path, capsys):
    label = np.repeat(["one", "two", "three"], 4)
    splits = {
        "train0": np.array([0, 1, 4, 5]),
        "test0": np.array([2, 6, 8]),
        "train1": np.array([0, 1, 4, 5, 8]),
        "test1": np.array([2, 6, 9]),
    }
    path = write(tmp_path, label=label, group=None, **splits)
    words = ["--no-pictures", "--p", "2", "--methods", "nearest", "--no-kernels"]
    main(["compare", path, "--out", str(tmp_path / "out"), *words])
    note = (
        "class three has clips to test and none to train in 1 of 2 splits: no answer "
        "there can be right"
    )
    assert note in capsys.readouterr().err.splitlines()
    assert note in (tmp_path / "out" / "report.html").read_text()
    pairs = [(np.array([0]), np.array([4, 8])), (np.array([8]), np.array([4, 5, 0]))]
    assert [line[:9] for line in strangers(label, pairs)] == [
        "class thr",
        "class two",
        "class one",
    ]
    assert "in 2 of 2 splits" in strangers(label, pairs)[1]
    assert strangers(label, [(np.array([0, 4]), np.array([1, 5]))]) == []


def test_a_row_is_one_method_in_splits_of_any_sizes(tmp_path, capsys):
    """The number of learned atoms, which the row's name holds, is one in all splits."""
    path = write(
        tmp_path,
        train0=np.array([0, 1, 2, 6, 7, 8]),
        test0=np.array([5, 10, 11]),
        train1=np.array([0, 1, 2, 3, 4, 6, 7, 8, 9, 10]),
        test1=np.array([5, 11]),
    )
    main(
        [
            "compare",
            path,
            "--out",
            str(tmp_path / "out"),
            "--no-pictures",
            "--p",
            "2",
            "--atoms",
            "100",
            "--methods",
            "nearest,gsc,glc",
            "--no-kernels",
            "--lam",
            "0.1",
        ]
    )
    out, err = capsys.readouterr()
    assert err.count("dictionaries of 4 atoms for --atoms 100: the smallest") == 1
    printed = accuracies(out)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    rows = [*METHODS[:2], *METHODS[3:5], *METHODS[9:]]
    assert (
        list(printed) == list(results["methods"]) == rows
        and results["splits_done"] == 2
    )
    for row in results["methods"].values():
        assert len(row["accuracy"]) == 2 and np.sum(row["confusion"]) == 5


def test_classes_are_in_natural_order():
    assert natural_classes(np.array(["c10", "c2", "c1"])) == [
        "c1",
        "c2",
        "c10",
    ]
    assert natural_classes(np.array([10, 9, 2])) == [2, 9, 10]


def test_nothing_is_done_for_a_folder_that_takes_no_results(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(SystemExit, match="--out must be a folder that can be made"):
        out = str(tmp_path / "out" / "results")
        main(["compare", write(tmp_path), "--out", out, "--p", "2"])


def test_one_set_a_class_cannot_be_cross_validated():
    with pytest.raises(
        ValueError, match="needs two training sets of a class: every class has one"
    ):
        folds(np.arange(4), None, 0)


def test_classes_of_one_training_set_are_said_once_and_not_by_others(
    tmp_path, capsys, recwarn
):
    """Neither five times a split, nor once a split, nor in scikit-learn's words."""
    label = np.array(["one"] * 2 + ["many"] * 5 + ["some"] * 5)
    pairs = (
        ([0, 2, 3, 7, 8], [1, 4, 9]),
        ([1, 4, 5, 9, 10], [0, 2, 7]),
        ([2, 3, 7, 8], [1, 4, 9]),
    )
    splits = {
        f"{side}{i}": np.array(pair[k])
        for i, pair in enumerate(pairs)
        for k, side in enumerate(("train", "test"))
    }
    path = write(tmp_path, label=label, group=None, **splits)
    main(
        [
            "compare",
            path,
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--no-pictures",
            "--no-kernels",
            "--p",
            "2",
            "--methods",
            "nearest,dcc,msm",
        ]
    )
    printed = capsys.readouterr()
    assert "populated" not in printed.err + printed.out and not len(recwarn)
    lines = [
        line for line in printed.err.splitlines() if "sets of a class to train" in line
    ]
    assert lines == [
        "2 of 3 splits: cross-validation needs two sets of a class to train and tells "
        "nothing of 1 class with one: one"
    ]
    main(
        [
            "predict",
            "--data",
            path,
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--methods",
            "nearest",
            "--p",
            "2",
            "--save",
            str(tmp_path / "model.npz"),
        ]
    )
    assert "to train" not in capsys.readouterr().err


def test_classify_takes_features_and_a_single_split(tmp_path, capsys):
    n_frames = len(small_file()["frames"])
    frames = np.random.default_rng(0).standard_normal((n_frames, 9)).astype(np.float32)
    path = write(tmp_path, frames=frames, train1=None, test1=None)
    main(
        [
            "compare",
            path,
            "--out",
            str(tmp_path / "out"),
            "--recipe",
            "plain",
            "--no-pictures",
            "--p",
            "3",
        ]
    )
    out = capsys.readouterr().out
    assert list(accuracies(out)) == [*FIRST, *METHODS[:9]]
    assert "±" not in out


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"frames": None}, "must hold the arrays frames"),
        ({"offset": None}, "must hold the arrays offset, or X of"),
        ({"test0": None}, "test0 is missing among test1, train0, train1"),
        (
            {"frames": np.zeros((80, 3), complex)},
            "frames must be real numbers .* got complex128",
        ),
        (
            {"offset": np.array([0.0, 5.0])},
            r"offset must hold n_sets \+ 1 >= 2 integers, got float64",
        ),
        (
            {"offset": np.array([0, 5, 5, 9])},
            r"offset must rise from 0 to \d+, the number of frames, .*, 5 to 5 for set 1",
        ),
        (
            {"offset": np.array([0, 5, 999])},
            r"offset must rise from 0 to \d+, the number of frames, .* got 0 to 999",
        ),
        (
            {"group": np.arange(3)},
            r"group must have length 12, one a set, got shape \(3,\)",
        ),
        (
            {"label": np.arange(11)},
            r"label must have length 12, one a set, got shape \(11,\)",
        ),
        ({"test1": None}, "test1 is missing among test0, train0, train1"),
        (
            {"train0": np.array([], int)},
            r"splits: train0 must hold integers \(k,\), at least one",
        ),
        (
            {"train1": np.array([1, 3, 5, 3])},
            "train1 must hold no set twice, got set 3 more than once",
        ),
        (
            {"test1": np.arange(12) % 2 == 0},
            r"test1 must hold integers \(k,\), at least one, got bool \(12,\)",
        ),
        (
            {"test0": np.array([1, 12])},
            r"test0 must hold indices in 0\.\.11, got 1 to 12",
        ),
        (
            {"test1": np.array([1, 3, 4])},
            "train1 and test1 must not overlap, both hold set 1 and 1 more",
        ),
        ({"label": np.array([None] * 12)}, "Object arrays cannot be .* as text by"),
        (
            {"frames": np.array([None] * 12)},
            "Object arrays .* frames, offset and label",
        ),
    ],
)
def test_bad_files_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        load_npz(write(tmp_path, **changes))


def test_an_array_of_objects_is_refused_whatever_its_file_is_called(tmp_path):
    path = tmp_path / "sets.npz"
    with open(path, "wb") as file:
        np.save(file, np.array([None]), allow_pickle=True)
    with pytest.raises(
        ValueError, match="sets.npz must be .* frames, offset and label"
    ):
        load_npz(path)


@pytest.mark.parametrize("content", [b"not a zip", b"", b"PK\x03\x04broken"])
def test_what_is_no_npz_file_is_refused(tmp_path, content):
    path = tmp_path / "sets.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="sets.npz must be an .npz file"):
        load_npz(path)


def test_a_lone_array_is_refused(tmp_path):
    np.save(tmp_path / "sets.npy", np.zeros(3))
    with pytest.raises(ValueError, match="X must hold real numbers"):
        load_npz(tmp_path / "sets.npy")


def test_errors_are_one_line(tmp_path, capsys):
    words = "--out", str(tmp_path / "out")
    few = "has 5 frames, and p = 6 needs 6; --skip goes on without "
    few += "what cannot be used"
    with pytest.raises(SystemExit, match=f"^grassmann-classify: .*{few}$"):
        main(["compare", write(tmp_path), "--p", "6", *words], "grassmann-classify")
    capsys.readouterr()
    with pytest.raises(SystemExit, match="^2$"):
        main(["compare", "nowhere.npz", *words], "grassmann-classify")
    assert capsys.readouterr().err == (
        "grassmann-classify compare: error: DIR must be a folder, an .npz file or a "
        "recording (.csv, .tsv), got nowhere.npz, which is not there; see grassmann-classify compare "
        "--help\n"
    )


def test_a_reader_that_has_enough_is_no_error(capsys):
    """As head, which closes the pipe."""
    with pytest.raises(SystemExit, match="^141$"), one_line("grassmann-classify"):
        raise BrokenPipeError
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        "--p 0",
        "--p 2 --lam nan",
        "--p 2 --lam -1",
        "--p 2 --neighbors 5 0",
        "--p 2 --C -1",
        "--p 2 --stack 0",
        "--p 2 --atoms -1",
    ],
)
def test_options_are_checked(arguments, tmp_path, capsys):
    with pytest.raises(SystemExit):
        parse(["compare", str(tmp_path), *arguments.split()])
    printed = capsys.readouterr().err
    assert re.search(r"must be (at least [01]|positive), got (0|nan|-1)", printed)


def test_baselines_are_rows_of_the_same_table(tmp_path, capsys):
    main(
        [
            "compare",
            write(tmp_path),
            "--out",
            str(tmp_path / "out"),
            "--no-pictures",
            "--p",
            "1",
            "2",
            "--baselines",
            "--recipe",
            "plain",
            "--no-kernels",
        ]
    )
    printed = accuracies(capsys.readouterr().out)
    hulls = {"affine hulls", "convex hulls"}
    tangent = {"iSC", "lE-SC", "lE-SC-adaptive"}
    assert {"GDA", "GGDA", "DCC", "MSM", "CMSM"} | hulls | tangent <= set(printed)
    assert min(printed.values()) >= 90


def test_baselines_on_videos_are_rows_where_sets_are_clips(tmp_path, capsys):
    pytest.importorskip("skimage", reason="DL-Pegasos needs the extra 'image'")
    videos, label = simulated_textures(6, texture_systems(12)[::4], n_frames=12)
    split = np.arange(18) % 6 < 4
    np.savez(
        tmp_path / "clips.npz",
        frames=np.concatenate(videos),
        label=label,
        offset=12 * np.arange(19),
        train0=np.flatnonzero(split),
        test0=np.flatnonzero(~split),
    )
    main(
        [
            "compare",
            str(tmp_path / "clips.npz"),
            "--out",
            str(tmp_path / "out"),
            "--no-pictures",
            "--p",
            "3",
            "--stack",
            "2",
            "--baselines",
            "--no-kernels",
            "--lam",
            "0.1",
            "--neighbors",
            "3",
            "--C",
            "1",
        ]
    )
    printed = accuracies(capsys.readouterr().out)
    assert {"PM", "TCCA", "LDS", "CS-LDS", "DFS", "DL-PEGASOS"} <= set(printed)
    assert printed["LDS"] >= 60


def test_sets_of_one_frame_have_baselines_too(tmp_path, capsys):
    """The hulls of one point are that point."""
    rng = np.random.default_rng(0)
    label = np.arange(20) % 2
    bright = np.arange(6) // 3 == label[:, None, None]
    frames = (120 * rng.random((20, 4, 6)) + 100 * bright).astype(np.uint8)
    main(
        [
            "compare",
            write(
                tmp_path,
                frames=frames,
                label=label,
                offset=np.arange(21),
                group=None,
                train0=np.arange(10),
                test0=np.arange(10, 20),
                train1=None,
                test1=None,
            ),
            "--out",
            str(tmp_path / "out"),
            "--no-pictures",
            "--baselines",
            "--recipe",
            "plain",
            "--no-kernels",
        ]
    )
    printed = accuracies(capsys.readouterr().out)
    assert printed["convex hulls"] == printed["affine hulls"] > 90


def predictions(folder, arrays, *options):
    """{row: predicted labels of the test part} of all rows of the table."""
    folder.mkdir()
    np.savez(folder / "sets.npz", **arrays)
    words = ["compare", str(folder / "sets.npz"), "--out", str(folder / "out")]
    main([*words, "--no-pictures", "--baselines", *options])
    with open(folder / "out" / "predictions.csv", newline="", encoding="utf-8") as file:
        lines = [*csv.DictReader(file)]
    rows = [
        name for name in lines[0] if name not in ("clip", "group", "split", "truth")
    ]
    return {row: [line[row] for line in lines] for row in rows}


def image_sets():
    """Sets of features of overlapping classes, so that no candidate is perfect."""
    rng = np.random.default_rng(0)
    label = np.arange(36) % 3
    looks = rng.standard_normal((3, 2, 12))
    frames = [
        rng.standard_normal((6, 2)) @ looks[c] + 0.8 * rng.standard_normal((6, 12))
        for c in label
    ]
    return np.concatenate(frames), label


def textures():
    videos, label = simulated_textures(6, texture_systems(12)[::4], n_frames=10)
    return np.concatenate(videos), label


ON_SETS = {
    "nearest subspace",
    "gSC, 4 learned atoms",
    "gLC, 4 learned atoms",
    "GDA",
    "GGDA",
    "kernel: GDA",
    "DCC",
    "iSC",
    "lE-SC",
    "lE-SC-adaptive",
    "affine hulls",
    "convex hulls",
    "kernel: affine hulls",
    "MSM",
    "CMSM",
    "OMSM",
    "KMSM",
    "KCMSM",
    "KOMSM",
    *METHODS[:9],
}
ON_VIDEOS = {"PM", "TCCA", "LDS", "CS-LDS", "DFS", "DL-PEGASOS"}


@pytest.mark.parametrize(
    "sets, options, rows",
    [
        (
            image_sets,
            "--kernels --atoms 4 --iterations 1 --p 1 2 --lam 0.1 --C 1",
            ON_SETS,
        ),
        (textures, "--no-kernels --p 3 --lam 0.1 --C 1", ON_VIDEOS),
    ],
    ids=["sets", "videos"],
)
def test_no_label_of_the_test_part_reaches_a_method(tmp_path, sets, options, rows):
    """Each row predicts the same when all labels of the test part are others."""
    pytest.importorskip("skimage", reason="DL-Pegasos needs the extra 'image'")
    frames, label = sets()
    n = len(label)
    train = np.flatnonzero(np.arange(n) // 3 % 2)
    test = np.setdiff1d(np.arange(n), train)
    arrays = {
        "frames": frames,
        "offset": len(frames) // n * np.arange(n + 1),
        "train0": train,
        "test0": test,
    }
    words = options.split()
    first = predictions(tmp_path / "first", {**arrays, "label": label}, *words)
    permuted = label.copy()
    permuted[test] = (label[test] + 1) % 3
    assert sorted(permuted[test]) == sorted(label[test])
    again = predictions(tmp_path / "again", {**arrays, "label": permuted}, *words)
    assert rows <= first.keys()
    assert again == first


class Sheets:
    """In place of a Report: the sheets and the names of other pictures."""

    paths = SimpleNamespace(data=Path("data.npz"))

    def __init__(self):
        self.sheets = {}
        self.drawn = []
        self.folded = set()
        self.tables = []
        self.parts = []

    def draw(self, name, *_, folded=False, **__):
        self.drawn.append(name)
        self.folded |= {name} if folded else set()

    def sheet(self, name, title, rows):
        self.sheets[name] = title, [row[0][1].split("\n") for row in rows]

    def table(self, table, anchors=()):
        self.tables.append((table, anchors))

    def section(self, heading):
        pass

    def text(self, words):
        pass


def sheets_of(label, pairs, results):
    """The Sheets of the wrong clips and the pictures of a comparison."""
    names = [f"{c}/{i}" for i, c in enumerate(label)]
    clips = [Clip(name, None, None, [np.ones((3, 4, 5))]) for name in names]
    label = np.array(label)
    n = np.arange(len(label))
    X = core.random_subspaces(len(label), 6, 2, rng=0)
    collection = Collection(X, None, names, label, None, (), n)
    bank = SimpleNamespace(collection=collection)
    run = SimpleNamespace(bank=bank, clips=clips, recipe=SimpleNamespace(key=None))
    pairs = [tuple(map(np.array, pair)) for pair in pairs]
    report = Sheets()
    comparison = compared(results, pairs, collection)
    tell_where_wrong(report, run, pairs, results, comparison.first, True)
    draw_results(report, run, pairs, results, comparison)
    return report


def answers_of(accuracy, *answers):
    """A split with answers, or without, where it failed."""
    return {
        "accuracy": accuracy,
        "failed": None if answers else "disk full",
        "predicted": np.array(answers) if answers else None,
        "reasons": None,
        "chosen": {},
    }


def test_the_clip_that_was_wrong_most_often_comes_first():
    """With its most frequent answer."""
    answers = [["b", "c"], ["a", "b"], ["a", "b"], ["b", "a"]]  # of the first two clips
    reasons = [(2, 0.5), (1, 0.2), (0, 0.1)]
    reasons = {"reasons": {0: reasons, 1: reasons}}
    row = [answers_of(50.0, *two) | reasons for two in answers]
    report = sheets_of([*"aab"], [([2], [0, 1])] * 4, {"row": row})
    title, words = report.sheets["wrong"]
    assert words == [["a, not b", "3 times", "1"], ["a, not b", "2 times", "0"]]
    assert title == "row, data\n2 clips with a wrong answer"
    wrong, anchors = report.tables[-1]
    assert [row[:3] + row[4:] for row in wrong.rows] == [
        ["a/1", "a", "b", 3],
        ["a/0", "a", "b", 2],
    ]
    assert anchors == ["c0-1", "c0-1-1"]
    assert {row[3] for row in wrong.rows} == {"b/2 0.5; a/1 0.2"}  # two that decided
    (matrix,) = report.parts
    shades = [float(shade) for shade in re.findall(r"178, ([\d.]+)\)", matrix)]
    # of 8 answers to a, 3 are a, 4 are b, 1 is c
    assert shades == pytest.approx([0.6 * n / 8 for n in (3, 4, 1)], abs=0.0051)
    assert matrix.count('href="#c0-1"') == 1 and "#c0-2" not in matrix


def test_a_method_that_failed_everywhere_is_not_the_best():
    """The picture of wrong answers is that of a method which has some."""
    results = {"dcc": [answers_of(np.nan)], "gda": [answers_of(0.0, "bee")]}
    report = sheets_of(["ape", "bee"], [([1], [0])], results)
    title, _ = report.sheets["wrong"]
    assert title == "gda, data\n1 clip with a wrong answer"
    assert "confusion_gda" in report.drawn and "confusion_dcc" not in report.drawn


@pytest.mark.parametrize("n", [4, MANY, MANY + 2])
def test_a_confusion_is_folded_unless_it_is_the_only_one_of_the_row_in_front(n):
    """Of up to MANY classes the page has a table of that row."""
    label = [f"c{i}" for i in range(n)]
    results = {
        "gSC": [answers_of(100.0, *label)],
        "worse": [answers_of(0.0, *label[::-1])],
    }
    report = sheets_of(label, [([0], range(n))], results)
    names = {"confusion_gsc", "confusion_worse"}
    assert names <= {*report.drawn} and len(report.parts) == (n <= MANY)
    assert report.folded == (names if n <= MANY else {"confusion_worse"})
