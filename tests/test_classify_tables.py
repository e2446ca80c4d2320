"""The table of a comparison: shares, rows behind the first, chance, and notes."""

import json
import math
import re
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from grassmann_classify.baseline_rows import (
    EVERY_ROW,
    check_methods,
    is_named,
    meaning,
)
from grassmann_classify.clips import Collection
from grassmann_classify.evaluation import shares_of
from grassmann_classify.results import Results, save_results
from grassmann_classify.rows import LEARNED
from grassmann_classify.tables import (
    Comparison,
    Table,
    accuracies,
    all_answers,
    choices,
    columns_of,
    meanings,
    natural_classes,
    notes_of,
    summed,
)
from grassmann_classify.words import TERMS

# --------------------------------------------------------------------------- shares


def shares_by_hand(truth, predicted):
    """In %, as fractions: accuracy, its mean over the true classes, the mean F1 over all."""
    pairs = [*zip(truth, predicted)]
    right = sum(t == p for t, p in pairs)
    recalls = []
    f1 = []
    for c in {*truth, *predicted}:
        hit = sum(t == p == c for t, p in pairs)
        missed = sum(t == c != p for t, p in pairs)
        wrong = sum(p == c != t for t, p in pairs)
        if hit + missed:
            recalls.append(Fraction(hit, hit + missed))
        f1.append(Fraction(2 * hit, 2 * hit + missed + wrong))
    shares = Fraction(right, len(pairs)), sum(recalls) / len(recalls), sum(f1) / len(f1)
    return dict(
        zip(("accuracy", "balanced", "f1"), (float(100 * share) for share in shares))
    )


@pytest.mark.parametrize(
    "truth, predicted",
    [
        ("aabbcc", "aabbaa"),  # c is never answered
        ("aabb", "accb"),  # c is not in the test part
        ("aaaaab", "aaaaaa"),  # uneven: 5 of 6, but half of the classes
        ("aaaaab", "bbbbba"),  # none is right
        ("abc", "abc"),
        ("aaaa", "aaaa"),  # a test part of one class
        ("aaaa", "bbbb"),
        ("a", "a"),
    ],
)
def test_shares_are_those_of_plain_loops(truth, predicted):
    shares = shares_of(np.array([*truth]), np.array([*predicted]))
    assert shares == pytest.approx(shares_by_hand(truth, predicted), rel=1e-12)


def test_shares_of_any_answers_are_those_of_plain_loops():
    """Of one to twelve uneven classes, by number as evaluate has them."""
    rng = np.random.default_rng(0)
    differ = 0
    for _ in range(60):
        n_classes = rng.integers(1, 13)
        truth = np.floor(n_classes * rng.random(25) ** 2).astype(int)
        predicted = np.where(
            rng.random(25) < 0.5, truth, rng.integers(0, n_classes, 25)
        )
        shares = shares_of(truth, predicted)
        by_hand = shares_by_hand(truth.tolist(), predicted.tolist())
        assert shares == pytest.approx(by_hand, rel=1e-12)
        differ += len({round(share, 6) for share in shares.values()}) == 3
    assert differ > 40
    assert shares_of(np.array([0, 1]), np.array([1, 1]))["balanced"] == 50


@pytest.mark.parametrize(
    "labels, uneven",
    [
        ("abab", False),
        ("aabb", False),
        ("aab", True),
        ("abbb", True),
        ("abcabca", True),
        ("a", False),
    ],
)
@pytest.mark.parametrize("f1", [False, True])
def test_uneven_classes_have_a_column_of_balanced_accuracy(labels, uneven, f1):
    """Classes 1, 2, 3 of as many sets have none, however they are called."""
    options = SimpleNamespace(f1=f1)
    expected = ["accuracy", *["balanced"] * uneven, *["f1"] * f1]
    assert columns_of(options, np.array([*labels])) == expected
    numbers = np.array([ord(c) - 96 for c in labels])
    assert columns_of(options, numbers) == expected


# -------------------------------------------------------------------- answers of all


def test_answers_of_all_splits_are_those_of_the_test_parts_that_succeeded():
    label = np.array([*"abcabcab"])
    pairs = [([0], [1, 2, 3]), ([1], [0]), ([2], [7, 6]), ([3], [4, 5])]
    pairs = [tuple(map(np.array, pair)) for pair in pairs]
    splits = [
        {"failed": None, "predicted": np.array([*"xyz"])},
        {"failed": "no rank", "predicted": None},
        {"failed": None, "predicted": np.array([*"uv"])},
    ]
    truth, predicted = all_answers(label, pairs, splits)  # the last split is to come
    assert "".join(truth) == "bcaba" and "".join(predicted) == "xyzuv"
    nothing = all_answers(label, pairs, splits[1:2])
    assert [part.tolist() for part in nothing] == [[], []]
    assert all(part.dtype == label.dtype for part in nothing)


@pytest.mark.parametrize(
    "names",
    [
        ["c1", "c2", "c10", "c20"],
        ["2", "10", "101"],
        ["a2b3", "a2b12", "a10b1"],
        ["v1.9", "v1.10", "v2.1"],
        [-3, 2, 10, 100],
        [0.5, 2.0, 10.25],
        [False, True],
    ],
)
def test_classes_are_in_the_order_of_readers_each_once(names):
    order = np.random.default_rng(0).permutation(np.arange(3 * len(names)) % len(names))
    classes = natural_classes(np.array(names)[order])
    assert classes == names and type(classes[0]) is type(names[0])


def test_the_file_of_results_counts_right_and_wrong_answers_of_each_class(tmp_path):
    """Rows are true classes in natural order, columns what was answered."""
    rng = np.random.default_rng(0)
    label = np.array(["c10", "c2", "c1"])[np.arange(24) % 3]
    order = ["c1", "c2", "c10"]
    pairs = [tuple(np.split(rng.permutation(24), [14 + k])) for k in range(3)]
    splits = []
    for _, test in pairs:
        answers = rng.choice(label, len(test))
        shares = shares_of(label[test], answers)
        splits.append({**results_of({"": [0]})[""][0], **shares, "predicted": answers})
    nothing = {"accuracy": np.nan, "balanced": np.nan, "f1": np.nan, "predicted": None}
    failed = {**splits[0], **nothing, "failed": "no rank"}
    results = {"a": splits, "b": [splits[0], failed], "c": [failed] * 3}
    collection = Collection(np.zeros((24, 5, 2)), None, [], label, None, (), None)
    with Results(tmp_path / "out") as out:
        save_results(out, {}, collection, pairs, results, 3, Comparison("a"))
    content = (tmp_path / "out" / "results.json").read_bytes()
    kept = json.loads(content)
    assert not re.search(rb"\.\d{10}", content)
    assert kept["classes"] == order and kept["splits"] == kept["splits_done"] == 3
    for name, row in results.items():
        numbers = kept["methods"][name]
        counts = Counter()
        for split, (_, test) in zip(row, pairs):
            if split["failed"] is None:
                counts.update(zip(label[test], split["predicted"]))
        assert numbers["confusion"] == [[counts[t, p] for p in order] for t in order]
        for column in ("accuracy", "balanced", "f1"):
            assert numbers[column] == [
                None if split["failed"] else pytest.approx(split[column])
                for split in row
            ]
        values = [split["accuracy"] for split in row if split["failed"] is None]
        assert numbers["mean"] == (
            pytest.approx(sum(values) / len(values)) if values else None
        )
        assert (numbers["std"] is None) == (len(values) < 2)
    assert kept["methods"]["a"]["std"] == pytest.approx(
        np.std([split["accuracy"] for split in splits], ddof=1)
    )
    assert kept["comparison"]["first"] == "a" and kept["comparison"]["behind"] == {}


# --------------------------------------------------------------------------- results


def results_of(accuracies, **more):
    """{row: [a split, ...]} of {row: accuracies in %}; None is a split that failed."""
    usual = {"seconds": 0.1, "chosen": {}, "left_out": {}, "ends": {}, "warned": ()}
    usual |= {"balanced": 50.0, "f1": 40.0, **more}
    failed = {"accuracy": np.nan, "balanced": np.nan, "f1": np.nan, "failed": "no rank"}
    return {
        name: [
            {**usual, "accuracy": accuracy, "failed": None}
            if accuracy is not None
            else {**usual, **failed}
            for accuracy in values
        ]
        for name, values in accuracies.items()
    }


ACCURACIES = {
    "poor": [25.0, 12.5, 37.5, 25.0, 25.0, 12.5, 25.0],
    "good": [87.5, 100.0, 75.0, 87.5, 100.0, 87.5, 75.0],
    "as good": [100.0, 87.5, 75.0, 75.0, 100.0, 87.5, 87.5],
    "failed": [100.0, 100.0, 100.0, None, 100.0, 100.0, 100.0],
    "near": [87.5, 87.5, 75.0, 87.5, 87.5, 87.5, 75.0],
    "failed in all": [None] * 7,
    "steady": [62.5, 75.0, 50.0, 62.5, 75.0, 62.5, 50.0],  # good, less 25
    "better in one": [100.0, 75.0, 62.5, 75.0, 75.0, 75.0, 75.0],
}


# ------------------------------------------------------------------------------- tables

COLUMNS = ["accuracy", "balanced", "f1"]
HEADS = ["accuracy, %", "balanced, %", "F1, %"]


def results_with_all(k=7):
    results = results_of({name: row[:k] for name, row in ACCURACIES.items()})
    rng = np.random.default_rng(0)
    for row in results.values():
        for split in row:
            split["seconds"] = rng.uniform(0.1, 3)
            if split["failed"] is None:
                split["balanced"] = rng.uniform(20, 90)
                split["f1"] = rng.uniform(20, 90)
    return results


@pytest.mark.parametrize("columns", [COLUMNS[:1], COLUMNS[:2], COLUMNS, COLUMNS[::2]])
@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_table_has_means_and_spreads_over_the_splits_that_succeeded(columns, k):
    """Points behind the first, which rows are as good, seconds in the mean."""
    results = results_with_all(k)
    behind = {"poor": 60.25, "as good": -1.0, "near": -0.01}
    comparison = Comparison("good", {}, behind, ["as good", "good"])
    table = accuracies(results, columns, comparison)
    words_of = {"poor": "60.2", "as good": "-1.0", "near": "0.0"}
    heads = [HEADS[COLUMNS.index(column)] for column in columns]
    heads = [head for name in heads for head in (name, "±")]
    assert table.columns == ["row", *heads, "behind, points", "as good", "seconds"]
    assert table.numbers == len(table.columns) - 1
    assert [*results][table.best] == "good"
    assert [row[0] for row in table.rows] == [*results]
    for cells, (name, splits) in zip(table.rows, results.items()):
        answered = [split for split in splits if split["failed"] is None]
        assert len(cells) == len(table.columns)
        if not answered:
            assert cells[1] == "failed" and not any(cells[2:])
            continue
        for column, mean, spread in zip(columns, cells[1::2], cells[2::2]):
            shares = [split[column] for split in answered]
            assert float(mean) == pytest.approx(np.mean(shares), abs=0.051)
            middle = sum(shares) / len(shares)
            squares = sum((share - middle) ** 2 for share in shares)
            twin = math.sqrt(squares / (len(shares) - 1))
            assert float(spread) == pytest.approx(twin, abs=0.051)
        points, mark, seconds = cells[1 + 2 * len(columns) :]
        assert points == words_of.get(name, "")
        assert mark == ("yes" if name in ("good", "as good") else "")
        mean = np.mean([split["seconds"] for split in answered])
        assert float(seconds) == pytest.approx(mean, abs=5e-3)


def test_a_table_in_lines_has_its_columns_beside_each_other():
    table = Table(
        ["row", "n"], [["a", 5], ["long", 12]], "Rows", ["A note."], numbers=1
    )
    assert table.text() == "Rows\nrow    n\na      5\nlong  12\nA note."
    assert table.text(1) == "Rows\nrow  n\na    5\nA note."
    assert Table(["row"], [], "0 rows", ["none"]).text() == "0 rows\nnone"


def test_one_split_has_no_spread_and_says_nothing_of_how_often():
    results = results_of({"a": [80.0]}, chosen={"p": 3}, left_out={"p 9": "no rank"})
    results["a"][0] |= {"warned": ("little is known",)}
    table = accuracies(results, COLUMNS, Comparison("a", as_good=["a"]))
    _, shown, _ = table.text().splitlines()
    assert shown.split() == ["a", "80.0", "50.0", "40.0", "yes", "0.10"]
    assert "±" not in table.text()
    assert notes_of(results) == [
        "a: p 9 left out: no rank",
        "a: warned: little is known",
    ]
    assert choices(results).rows == [["a", "3 directions"]]


# -------------------------------------------------------------------------------- notes


def chosen_in(results):
    """What the one row chose, in words."""
    ((_, words),) = choices(results).rows
    return words


def test_the_most_frequent_notes_are_said_with_the_number_of_their_splits():
    results = results_of({"row": [90.0] * 6 + [None]})
    splits = results["row"]
    for i in (1, 2, 5, 6):
        splits[i]["left_out"] = {"p 9": "too many"}
    splits[3]["left_out"] = {"p 8": "another"}
    for i in range(7):
        splits[i]["warned"] = ("seldom", "often") if i in (2, 6) else ("often",)
    assert notes_of(results) == [
        "row: failed in 1 of 7 splits: no rank",
        "row: warned in 7 of 7 splits: often",
        "row: p 9 left out in 4 of 7 splits: too many",
        "row: 2 other notes",
    ]
    looked = results_of({"row": [90.0]}, look=True)
    assert notes_of(looked) == ["row: of a first look, nothing searched"]


def test_what_is_said_of_warnings_is_the_most_frequent_and_how_many_others():
    warned = [("a", "b", "c"), ("b", "d"), (), ("c", "b"), ()]
    results = results_of({"row": [90.0] * 5})
    for split, texts in zip(results["row"], warned):
        split["warned"] = texts
    assert notes_of(results) == [
        "row: warned in 3 of 5 splits: b",
        "row: warned in 2 of 5 splits: c",
        "row: warned in 1 of 5 splits: a",
        "row: 1 other note",
    ]


def test_what_was_chosen_most_often_is_told_with_its_number_of_splits():
    """In the order in which parameters come first; of equals the first; none is no value."""
    chosen = [
        {"recipe": "raw", "p": 3, "C": 10.0},
        {"recipe": "LBP", "p": 4, "lam": 0.1},
        {"recipe": "LBP", "p": 4, "C": 1.0},
        {"recipe": "raw", "p": None, "C": 10.0},
        {"recipe": "stack 4", "p": None},
    ]
    results = results_of({"row": [90.0] * 5})
    for split, values in zip(results["row"], chosen):
        split["chosen"] = values
    words = "raw pixels (in 2 of 5), 4 directions (in 2 of 5), C 10 (in 2 of 5)"
    assert chosen_in(results) == words


@pytest.mark.parametrize(
    "values, words",
    [
        ([3, 10, 4, 6], "3 to 10 directions"),
        ([3, 3, 4, 6], "3 to 6 directions"),  # no more than half
        ([3, 3, 3, 6], "3 directions (in 3 of 4)"),
        ([3, 3, None, None], "3 directions (in 2 of 4)"),
        ([1, 1], "1 direction"),
        ([7], "7 directions"),
    ],
)
def test_numbers_that_differ_from_split_to_split_are_a_range(values, words):
    results = results_of({"row": [90.0] * len(values)})
    for split, value in zip(results["row"], values):
        split["chosen"] = {"p": value}
    assert chosen_in(results) == words


@pytest.mark.parametrize(
    "numbers, words",
    [
        ([7], "7 candidates"),
        ([1], "1 candidate"),
        ([7, 7, 7], "7 candidates"),
        ([9, 7, 12], "7 to 12 candidates"),
        ([9, 10], "9 to 10 candidates"),
    ],
)
def test_the_least_and_the_largest_number_of_candidates_is_told(numbers, words):
    results = results_of({"row": [90.0] * len(numbers)})
    for split, number in zip(results["row"], numbers):
        split["chosen"] = {"candidates": number}
    assert chosen_in(results) == words


# -------------------------------------------------------------------------------- words

USUAL = [name for name in EVERY_ROW if LEARNED not in name]


def test_every_row_has_a_line_that_says_what_it_does():
    for name in EVERY_ROW:
        name = name.replace(LEARNED, f" 40{LEARNED}")
        assert len(name) <= 22 and 10 < len(meaning(name)) <= 80
        assert is_named(name, [name])


def test_words_take_the_rows_that_begin_so_or_else_those_behind_a_colon():
    names = [*USUAL, "gSC, 40 learned atoms"]
    for words, rows in {
        "nearest": ["nearest subspace", "nearest"],
        "gSC": ["gSC", "gSC, 40 learned atoms"],
        "kgsc": ["kgSC"],
        "GDA": ["GDA"],
        "kernel": [name for name in USUAL if name.startswith("kernel:")],
        "SVM": [name for name in USUAL if name.endswith(": SVM")],
    }.items():
        assert [name for name in names if is_named(name, [words])] == rows


def test_a_misspelt_row_is_told_of_the_one_that_was_meant():
    for word, hint in {"nerest": "nearest", "kgsk": "kgsc"}.items():
        with pytest.raises(
            ValueError, match=rf"'{word}' \(did you mean {hint}\?\); th"
        ):
            check_methods([word], USUAL)
    with pytest.raises(ValueError, match="'fly'; the rows are: frames: SVM; mean"):
        check_methods(["fly"], USUAL)


def test_the_legend_explains_the_rows_of_the_table_and_no_others():
    names = ["nearest subspace", "gSC, 40 learned atoms"]
    table = meanings(results_of(dict.fromkeys(names, [90.0])))
    assert [row[0] for row in table.rows] == names
    assert all(len(line) <= 105 for line in table.text().splitlines())


@pytest.mark.parametrize("name", TERMS)
def test_what_was_chosen_is_explained_where_it_was_chosen_alone(name):
    value = {"recipe": "centred", "kernel": "gamma 0.1", "rule": "sum"}.get(name, 3)
    results = results_of({"row": [90.0]}, chosen={name: value})
    assert choices(results).notes == [TERMS[name]]
    other = results_of({"row": [90.0]}, chosen={"x": 1, name: None})
    assert choices(other).notes == []
    for usual in ({"recipe": "plain"}, {"kernel": "linear"}):
        assert choices(results_of({"row": [90.0]}, chosen=usual)).notes == []


def test_candidates_that_several_rows_sum_stand_there_once_best_first():
    both = [("raw, 2 directions", 97.5), ("HOG, 1 direction", 95.0)]
    results = {
        name: [{"summed": pairs, "chosen": chosen}]
        for name, pairs, chosen in (
            ("nearest subspace", both[:1], {"p": 2}),
            ("gSC", both, {"candidates": 2}),
            ("gLC", both, {"candidates": 2}),
            ("kgSC", [*both, ("raw, gamma 1", 95.0)], {"candidates": 3}),
            ("MSM", None, {}),
        )
    }
    assert summed(results).rows == [
        ["gSC, gLC", "raw, 2 directions", "97.5"],
        ["", "HOG, 1 direction", "95.0"],
        ["kgSC", "raw, 2 directions", "97.5"],
        ["", "HOG, 1 direction", "95.0"],
        ["", "raw, gamma 1", "95.0"],
    ]
