"""Which rows are as good as the best within chance, and what is concluded of a table."""

import numpy as np
import pytest

from grassmann_classify.clips import Collection
from grassmann_classify.evaluation import best_so_far, shares_of
from grassmann_classify.rows import FEWEST, front, unit_shares, within_chance
from grassmann_classify.tables import (
    Comparison,
    accuracies,
    compared,
    conclusion,
    each_class,
    each_group,
)


def collection_of(label, group=None, clip=None):
    """A Collection of sets of these labels, a clip each unless clip says otherwise."""
    clip = np.arange(len(label)) if clip is None else clip
    names = [f"clip {i}" for i in range(len(label))]
    return Collection(None, None, names, np.array(label), group, (), clip)


def rows_of(right, pairs, label, measure=None):
    """{row: its splits} in which row r is right for set i in split k if right[r][k, i].

    measure(truth, predicted): what else is told of a split.
    """
    results = {}
    for name, table in right.items():
        results[name] = []
        for answers, (_, test) in zip(
            np.broadcast_to(table, (len(pairs), len(label))), pairs
        ):
            predicted = np.where(answers[test], label[test], -1)
            split = {"predicted": predicted, "failed": None, "seconds": 0.0}
            split |= measure(label[test], predicted) if measure else {}
            results[name].append(split)
    return results


def table_of(rng, n, n_rows, behind=0.0, n_splits=10):
    """Answers of rows that are right for 87 % of n clips, some of which are hard for all.

    The last row is right for so many points less. Of 10 splits each tests half of the clips.
    """
    ease = rng.beta(0.87, 0.13, n)
    chances = np.tile(ease, (n_rows, 1))
    less = rng.beta(0.87 - behind, 0.13 + behind, n)
    if behind:  # what is hard stays hard
        chances[-1] = np.sort(less)[ease.argsort().argsort()]
    chances = rng.beta(
        2 * chances.clip(1e-3, 0.999), 2 * (1 - chances.clip(1e-3, 0.999))
    )
    label = np.arange(n) % 3
    pairs = [tuple(np.split(rng.permutation(n), 2)) for _ in range(n_splits)]
    right = {f"row {r}": rng.random((n_splits, n)) < chances[r] for r in range(n_rows)}
    return compared(rows_of(right, pairs, label), pairs, collection_of(label))


@pytest.mark.parametrize("n_splits", [1, 10])
def test_rows_that_are_equal_are_all_called_so_in_95_of_100_tables(n_splits):
    rng = np.random.default_rng(0)
    tables = [table_of(rng, 60, 12, n_splits=n_splits) for _ in range(200)]
    assert sum(len(table.as_good) == 12 for table in tables) >= 190


def test_a_row_15_points_behind_on_60_clips_is_not_called_as_good():
    rng = np.random.default_rng(0)
    tables = [table_of(rng, 60, 12, behind=0.15) for _ in range(100)]
    assert sum("row 11" not in table.as_good for table in tables) >= 80
    assert sum(len({*table.as_good} - {"row 11"}) == 11 for table in tables) >= 95


def test_a_difference_is_told_from_six_clips_on():
    """All six favour the same row by chance in 2 of 64 draws, five in 2 of 32."""
    for n in range(1, 12):
        shares = {"a": np.full(n, 1 / n), "b": np.zeros(n)}
        difference, names = within_chance(shares)
        assert (names == ["a"]) == (n >= 6)
        assert 0 <= difference <= 1


def test_a_hopeless_row_does_not_hide_the_difference_of_others():
    """What is left out is compared no more: the rest as if it had not been there."""
    rng = np.random.default_rng(1)
    easy = rng.random(80) < 0.95
    rows = {
        "a": easy,
        "b": easy & (rng.random(80) < 0.98),
        "c": easy & (rng.random(80) < 0.85),
    }
    rows = {name: right / 80 for name, right in rows.items()}
    hopeless = (rng.random(80) < 0.1) / 80
    assert within_chance({**rows, "d": hopeless}) == within_chance(rows)
    assert within_chance(rows)[1] == ["a", "b"]


def test_the_row_in_front_codes_where_one_that_codes_is_as_good():
    n = 40
    best = np.arange(n) < 38
    near = np.arange(n) < 37
    far = np.arange(n) < 20
    rows = {"subspaces: SVM": best, "gLC": near, "gSC": near, "kgSC": far}
    shares = {name: right / n for name, right in rows.items()}
    assert front(shares) == "gLC"
    assert (
        front({name: shares[name] for name in ("subspaces: SVM", "kgSC")})
        == "subspaces: SVM"
    )
    assert front({"nearest": near / n, "affine hulls": near / n}) == "nearest"


def test_sets_of_a_unit_are_summed_and_those_that_a_row_was_not_asked_left_out():
    shares = {"a": np.array([1, 0, 1, np.nan]), "b": np.array([1, 1, 0, 0.5])}
    sums = unit_shares(shares, np.array([0, 1, 1, 2]))
    assert sums["a"] == pytest.approx([1 / 3, 1 / 3, 0])
    assert sums["b"] == pytest.approx([1 / 3, 1 / 3, 0])


def test_the_accuracy_is_the_mean_of_the_splits_whatever_their_sizes():
    label = np.array([0, 0, 0, 0, 1, 1])
    pairs = [(np.arange(2), np.array([2, 3, 4, 5])), (np.arange(5), np.array([5]))]
    right = {
        "gSC": np.array([1, 1, 1, 0, 1, 1], bool),
        "GDA": np.array([1, 1, 1, 1, 1, 0], bool),
    }
    results = rows_of(right, pairs, label, shares_of)
    results["DCC"] = [
        results["gSC"][0],
        {"predicted": None, "failed": "x", "seconds": 0},
    ]
    result = compared(results, pairs, collection_of(label))
    assert result.accuracy == pytest.approx({"gSC": 87.5, "GDA": 37.5})
    assert result.first == "gSC" and result.behind == {"GDA": 50.0}
    assert result.as_good == []  # four clips tell nothing
    assert result.n_units == 4 and result.unit == "clip"
    # of class 1 are half of the first part, and all of the second
    assert result.chance == pytest.approx(75)
    assert result.pooled["gSC"]["accuracy"] == pytest.approx(80)  # four of five
    # recalls of one half and of all three; class 0 is not in the second part
    assert result.pooled["GDA"]["balanced"] == pytest.approx((100 + 100 / 3) / 2)
    first, *_ = conclusion(result, np.arange(4), "clip")
    assert first == (
        "gSC is right for 87.5 % of the clips of a split in the mean, 80.0 % of 4 test "
        "clips (chance: 75 %, which is as good)."
    )
    first, *_ = conclusion(result._replace(chance=100.0), np.arange(4), "clip")
    assert first.endswith("80.0 % of 4 test clips.")  # one class alone was tested
    table = accuracies(results, ["accuracy", "balanced", "f1"], result)
    assert table.columns[3:5] == ["balanced, %", "±"]
    (cells,) = (row for row in table.rows if row[0] == "GDA")
    assert cells[3:5] == ["66.7", ""]


def test_parts_of_several_sizes_with_all_classes_keep_their_spread():
    label = np.array([0, 1, 0, 1, 1, 0, 1])
    pairs = [(np.arange(2), np.array([2, 3, 4])), (np.arange(5), np.array([5, 6]))]
    right = {"gSC": np.array([1, 1, 1, 0, 1, 1, 1], bool)}
    results = rows_of(right, pairs, label, shares_of)
    result = compared(results, pairs, collection_of(label))
    assert result.pooled == {"gSC": {"accuracy": 80.0}}
    (cells,) = accuracies(results, ["accuracy", "balanced"], result).rows
    assert cells[3:5] == ["87.5", "17.7"]


def test_chance_is_that_of_one_class_in_all_splits():
    label = np.array([0, 1, 0, 0, 1, 1, 1, 0])
    pairs = [(np.arange(2), np.array([2, 3, 4])), (np.arange(2), np.array([5, 6, 7]))]
    results = rows_of({"gSC": np.ones(8, bool)}, pairs, label)
    result = compared(results, pairs, collection_of(label))
    assert result.chance == pytest.approx(50) and result.pooled == {}


def test_groups_are_compared_in_place_of_clips_and_clips_in_place_of_windows():
    """Windows of a clip, and clips of a person, are no news beside each other."""
    label = np.arange(48) % 2
    pairs = [(np.arange(24), np.arange(24, 48)), (np.arange(24, 48), np.arange(24))]
    right = {"gSC": np.ones(48, bool), "GDA": np.arange(48) % 4 > 0}
    results = rows_of(right, pairs, label)
    for n, good in ((48, ["gSC"]), (8, ["gSC"]), (FEWEST, ["gSC"]), (4, [])):
        unit = np.arange(48) // (48 // n)
        result = compared(results, pairs, collection_of(label, clip=unit))
        assert (result.n_units, result.unit, result.as_good) == (n, "clip", good)
        group = unit.astype(str)
        result = compared(results, pairs, collection_of(label, group))
        assert result.as_good == ["gSC"]
        # few groups tell nothing: their clips are compared
        assert result.n_units == (n if n > 4 else 48)
        assert result.unit == ("group" if n > 4 else "clip")


def test_nothing_is_in_front_where_every_row_failed():
    label = np.arange(8) % 2
    pairs = [(np.arange(4), np.arange(4, 8))]
    failed = {"gSC": [{"predicted": None, "failed": "no rank"}]}
    result = compared(failed, pairs, collection_of(label))
    assert (result.first, result.as_good, result.difference) == (None, [], None)
    assert conclusion(result, np.arange(4), "clip") == [
        "No row has an answer for every test part."
    ]


def test_the_best_so_far_is_that_of_the_highest_mean_and_no_row_that_failed():
    splits = {"gSC": [70, 80], "GDA": [90, 50], "DCC": [100, None]}
    results = {
        name: [{"accuracy": share, "failed": share is None} for share in shares]
        for name, shares in splits.items()
    }
    assert best_so_far(results) == "best so far gSC, 75.0 %"
    assert best_so_far({"DCC": results["DCC"]}) == "no row has an answer"


ROWS = "gSC gLC MSM DCC GDA PM".split()


@pytest.mark.parametrize(
    "rows, good, n, lines",
    [
        (1, ROWS[:1], 30, []),
        (3, ROWS[:3], 30, ["As good within chance: gLC and MSM."]),
        (3, ROWS[:1], 30, ["No other row is as good within chance."]),
        (6, ROWS, 30, ["As good within chance: all other rows."]),
        (6, ROWS[:5], 30, ["As good within chance: all rows but PM."]),
        (6, ROWS[:4], 30, ["As good within chance: gLC, MSM and DCC."]),
        (6, ROWS, 5, None),
    ],
)
def test_a_conclusion_names_the_row_in_front_those_as_good_and_what_cannot_be_told(
    rows, good, n, lines
):
    accuracy = dict.fromkeys(ROWS[:rows], 50.0) | {"gSC": 87.4}
    comparison = Comparison("gSC", accuracy, {}, good, 12.3, 33.3, n, "group")
    first, *others = conclusion(comparison, np.arange(60), "clip")
    assert first == "gSC is right for 87.4 % of 60 test clips (chance: 33 %)."
    often, *_ = conclusion(comparison, np.arange(240) % 60, "clip")
    assert often.startswith("gSC is right for 87.4 % of 240 answers on 60 test clips (")
    if lines is None:
        assert others == [
            "With 5 groups no difference of rows can be told from chance."
        ]
        return
    line = "With 30 groups differences of these rows up to 12.3 points cannot be told from chance."
    assert others == [*lines, *[line] * (rows > 1)]
    none = conclusion(comparison._replace(difference=0.0), np.arange(60), "clip")
    assert none == [first, *lines]


def test_classes_and_groups_have_their_shares_and_what_they_are_taken_for():
    truth = np.array(["c10"] * 4 + ["c2"] * 5 + ["c1"])
    predicted = np.array(["c10", "c2", "c2", "c1"] + ["c2"] * 4 + ["c1"] + ["c1"])
    rows = [
        ["c1", "", 1, "100"],
        ["c2", "c1 (20 %)", 5, "80"],
        ["c10", "c2 (50 %)", 4, "25"],
    ]
    assert each_class(truth, predicted).rows == rows
    assert each_class(truth, predicted, most=5).rows == [rows[2], rows[1]]
    assert each_class(truth, predicted, most=1).rows == [rows[2]]
    group = np.array(["p1"] * 4 + ["p10"] * 6)
    assert each_group(truth == predicted, group).rows == [
        ["p1", 4, "25"],
        ["p10", 6, "83"],
    ]


def test_groups_that_are_not_tested_are_none_to_compare():
    label = np.arange(24) % 2
    group = np.repeat([*"abcdefgh"], 3)
    pairs = [(np.arange(12), np.arange(12, 24))]  # four groups are tested
    results = rows_of({"gSC": np.ones(24, bool)}, pairs, label)
    result = compared(results, pairs, collection_of(label, group))
    assert (result.n_units, result.unit) == (12, "clip")
