"""Recordings: windows know their time, join to stretches, and are compared with the truth."""

import csv
import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from grassmann_classify import Recipe, Settings, fit, load, predict
from grassmann_classify.__main__ import main
from grassmann_classify.arrays import labelled_stretches, new_stretches
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, some_sets
from grassmann_classify.finding import find_new_clips
from grassmann_classify.tables import MOST, Table, words_of
from grassmann_classify.timeline import (
    Stretch,
    answers_at,
    border_error,
    labelled_rows,
    median_border,
    score_of,
    stretches_of,
    timeline,
)
from grassmann_classify.words import UNLIKE, printable

RATE = 20  # rows a second
BEATS = {"sit": 0.3, "walk": 1.8, "run": 3.0, "swim": 4.5}  # a second
PLAIN = ["--recipe", "plain", "--p", "2", "--stack", "8", "--no-kernels"]
PLAIN += ["--methods", "gsc", "--lam", "0.01"]
CUT = ["--window", "40", "--step", "20"]


def recording(person, plan, rng):
    """(Rows (n, 6), labels (n,)): each activity moves in a plane, at a pace, of its own.

    plan: [(activity, seconds), ...]. Persons turn the sensor and have a pace.
    """
    planes = np.random.default_rng(5).standard_normal((len(BEATS), 6, 2))
    own = np.random.default_rng(person)
    turn = np.linalg.qr(np.eye(6) + 0.05 * own.standard_normal((6, 6)))[0]
    turn *= np.sign(np.diag(turn))
    pace = own.uniform(0.97, 1.03)
    parts = []
    for label, seconds in plan:
        plane = np.linalg.qr(planes[[*BEATS].index(label)])[0]
        angle = 2 * np.pi * pace * BEATS[label] * np.arange(seconds * RATE) / RATE
        moved = np.stack([np.sin(angle), np.cos(angle)], axis=1) @ (turn @ plane).T
        parts.append(moved + 0.3 * rng.standard_normal(moved.shape))
    return np.concatenate(parts), np.repeat(*zip(*[(a, s * RATE) for a, s in plan]))


def write(path, rows, labels=None, clock="{:.2f}"):
    """A table of a clock, six channels and, if there are any, labels."""
    path.parent.mkdir(parents=True, exist_ok=True)
    names = "t,a,b,c,d,e,f" + ",activity" * (labels is not None)
    lines = [names]
    for i, row in enumerate(rows):
        cells = [clock.format(i / RATE), *(f"{value:.4f}" for value in row)]
        lines.append(",".join(cells + ([] if labels is None else [labels[i]])))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def cwd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ------------------------------------------------------------------------ when rows are


def spans_of(recipe, n=23, **clip):
    rows = np.random.default_rng(0).standard_normal((n, 3))
    made = build_all([Clip("x", None, None, [rows], **clip)], recipe)
    return made.spans


@pytest.mark.parametrize(
    "how, expected",
    [
        ({"window": 10, "step": 5}, [(0, 10), (5, 15), (10, 20)]),
        ({"window": 10, "rate": 4.0}, [(0, 2.5), (2.5, 5)]),
        ({"window": 4, "every": 3}, [(0, 12), (12, 23)]),
        ({"window": 4, "evenly": 8}, [(0, 13), (13, 23)]),
        ({"window": 5, "resample": 10}, [(0, 11.5), (11.5, 23)]),
        ({"window": 3, "every": 4, "rate": 2.0}, [(0, 6), (6, 11.5)]),
        ({}, None),
    ],
)
def test_windows_know_when_they_begin_and_end(how, expected):
    spans = spans_of(Recipe(2, **how))
    if expected is None:
        assert spans is None
    else:
        np.testing.assert_allclose(spans, expected, rtol=1e-12)


def test_a_clip_of_several_sources_goes_on_in_time():
    rows = np.random.default_rng(0).standard_normal((12, 3))
    clip = Clip("x", None, None, [rows[:5], rows[5:]])
    made = build_all([clip], Recipe(2, window=4, every=2))
    np.testing.assert_array_equal(made.spans, [(0, 7)])  # rows 0, 2, 4 and 5, 7, 9, 11
    assert made.recordings == ["x"]


def test_the_rows_of_files_are_counted_as_they_were_chosen(cwd):
    np.save("x.npy", np.random.default_rng(0).standard_normal((24, 3)))
    clip = Clip("x.npy", None, None, [cwd / "x.npy"])
    spans = build_all([clip], Recipe(2, window=4, every=2, rate=2.0)).spans
    np.testing.assert_array_equal(spans, [(0, 4), (4, 8), (8, 12)])
    spans = build_all([clip], Recipe(2, window=4, evenly=8)).spans
    np.testing.assert_array_equal(spans, [(0, 4), (4, 8)])


@pytest.mark.parametrize(
    "clock, start",
    [
        ("{:.2f}", 100),
        ("1{:08.2f}", 100),
        ("2026-01-31T12:00:{:06.3f}Z", 0),
        ("2026-01-31 12:00:{:06.3f}", 0),
    ],
)
def test_a_clock_tells_seconds_or_iso_times_and_is_no_sensor(cwd, capsys, clock, start):
    rows, labels = recording(0, [("sit", 3), ("walk", 3)], np.random.default_rng(0))
    if start:
        clock = clock.replace("{", "1{", 1) if "1{" not in clock else clock
    write(cwd / "day.csv", rows, labels, clock)
    recipe = Recipe(2, window=40, clock="t")
    clips, recipe = labelled_stretches(cwd / "day.csv", recipe, "activity")
    assert [*recipe.columns] == [*"abcdef"] and recipe.unit == "seconds"
    assert "as a clock does" not in capsys.readouterr().err
    made = build_all(clips, recipe)
    first = float(clock.format(0)) if start else 0
    expected = np.array([(0, 2), (3, 5)])
    if clock == "1{:.2f}":  # 10.00 to 15.95, which is no number of equal steps
        assert first == 10
    np.testing.assert_allclose(made.spans - first, expected, atol=1e-9)
    assert made.recordings == ["day.csv"] * 2
    some = some_sets(made, [1])
    assert some.recordings == ["day.csv"] and some.spans.tolist() == [[*made.spans[1]]]


@pytest.mark.parametrize(
    "cells, message",
    [
        (
            ["0", "2", "1"],
            "column t must hold finite times that never fall, got 1 in row 2",
        ),
        (["0", "inf", "1"], "finite times that never fall, got inf in row 1"),
        (["0", "noon", "1"], "must hold seconds or ISO times, .*'noon' in row 1"),
        (["", "", ""], "must hold seconds or ISO times, .*'' in row 0"),
        (
            ["0", "2026-01-31"],
            "must hold seconds or ISO times, .*'2026-01-31' in row 1",
        ),
    ],
)
def test_a_clock_that_is_none_is_an_error_of_its_table(cwd, cells, message):
    lines = [f"{cell},{i},1,walk" for i, cell in enumerate(cells)]
    (cwd / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    recipe = Recipe(2, window=2, clock="t")
    with pytest.raises(ValueError, match=f"day.csv: .*{message}"):
        labelled_stretches(cwd / "day.csv", recipe, "activity")


@pytest.mark.parametrize("first, span", [("0", [0, 2]), ("", [1.5, 3])])
def test_a_row_without_a_time_ends_a_stretch_and_no_table(cwd, capsys, first, span):
    cells = [first, 1, 2, "", 4, 5, "nan", 7, 8, ""]
    lines = [f"{cell},{i % 2},{i % 3},walk" for i, cell in enumerate(cells)]
    (cwd / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    recipe = Recipe(1, window=2, clock="t")
    clips, _ = labelled_stretches(cwd / "day.csv", recipe, "activity")
    assert build_all(clips, recipe).spans.tolist()[:2] == [span, [4, 6]]
    assert len(clips) == 3
    assert "rows with a missing number" in capsys.readouterr().err


def test_clocks_may_stand_still_and_the_last_row_lasts_as_most_do(cwd):
    cells = [0, 1, 1, 2, 3, 5]
    lines = [f"{cell},{i % 2},{i % 3},walk" for i, cell in enumerate(cells)]
    (cwd / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    recipe = Recipe(1, window=3, clock="t")
    clips, _ = labelled_stretches(cwd / "day.csv", recipe, "activity")
    assert build_all(clips, recipe).spans.tolist() == [[0, 2], [2, 6]]


def test_rows_of_one_time_share_what_passes_until_the_next(cwd):
    """As of four rows a second by a clock in whole seconds: no window is empty."""
    lines = [f"{i // 4},{i % 2},{i % 3},walk" for i in range(10)]
    (cwd / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    recipe = Recipe(1, window=2, clock="t")
    clips, _ = labelled_stretches(cwd / "day.csv", recipe, "activity")
    spans = build_all(clips, recipe).spans
    np.testing.assert_allclose(spans[:, 0], np.arange(0, 2.5, 0.5))
    np.testing.assert_allclose(spans[:, 1], np.arange(0.5, 3, 0.5))


@pytest.mark.parametrize(
    "name, unit", [("time (ms)", 1e3), ("Timestamp_US", 1e6), ("time [ns]", 1e9)]
)
def test_a_clock_whose_name_tells_its_unit_tells_seconds(cwd, name, unit):
    lines = [f"{i * unit / 20:.0f},{i % 2},{i % 3},walk" for i in range(10)]
    (cwd / "day.csv").write_text("\n".join([f"{name},x,y,activity", *lines]))
    recipe = Recipe(1, window=5, clock=name)
    clips, recipe = labelled_stretches(cwd / "day.csv", recipe, "activity")
    assert recipe.columns == ("x", "y")
    spans = build_all(clips, recipe).spans
    np.testing.assert_allclose(spans, [(0, 0.25), (0.25, 0.5)])


@pytest.mark.parametrize("each", [1, 5])
def test_a_hole_in_a_clock_ends_a_stretch_and_was_not_recorded(cwd, each):
    """Thirty rows, an hour of nothing, thirty rows; five rows a time, or one."""
    times = np.arange(30) // each * each
    cells = [*times, *(3600 + times)]
    lines = [f"{cell},{i % 2},{i % 3},walk" for i, cell in enumerate(cells)]
    (cwd / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    recipe = Recipe(1, window=12, step=9, clock="t")
    clips, _ = labelled_stretches(cwd / "day.csv", recipe, "activity")
    assert [clip.name for clip in clips] == ["day.csv@0", "day.csv@30"]
    spans = [(0, 12), (9, 21), (18, 30)]
    expected = [*spans, *np.add(spans, 3600)]
    np.testing.assert_allclose(build_all(clips, recipe).spans, expected, atol=1e-9)
    # a window of so many rows is longer than the hole
    lines = [f"{i + 40 * (i > 70)},{i % 2},{i % 3},walk" for i in range(140)]
    (cwd / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    for window, n in ((12, 2), (50, 1)):
        recipe = Recipe(1, window=window, clock="t")
        clips, _ = labelled_stretches(cwd / "day.csv", recipe, "activity")
        assert len(clips) == n


def test_a_column_that_no_new_recording_has_is_told(cwd, capsys):
    rows, labels = recording(0, [("sit", 3)], np.random.default_rng(0))
    write(cwd / "day.csv", rows, labels)
    write(cwd / "bare.csv", rows)
    recipe = Recipe(2, window=20, columns=tuple("abcdef"))
    for label, group, names in (
        ("activity", None, []),
        ("activty", None, ["activty"]),
        ("activity", "who", ["who"]),
        ("activty", "who", ["activty", "who"]),
    ):
        new_stretches(find_new_clips(cwd), recipe, label, group)
        lines = [f"no new recording has the column {name}" for name in names]
        assert capsys.readouterr().err.splitlines() == lines
    whole = replace(recipe, window=None)
    assert len(new_stretches(find_new_clips(cwd), whole, "activity")) == 2
    assert "each new recording is one clip" in capsys.readouterr().err
    new_stretches(find_new_clips(cwd), whole)
    assert not capsys.readouterr().err
    (cwd / "day.csv").write_text("a,b,c,d,e,f\n1,2,3,4,5,6\n1,2,3,4,5,x\n")  # damaged
    new_stretches(find_new_clips(cwd / "day.csv"), recipe, "activity")
    assert not capsys.readouterr().err


def test_clusters_read_the_same_columns_of_all_tables_in_any_order(cwd, capsys):
    rng = np.random.default_rng(0)
    for k in range(8):
        rows, _ = recording(k, [(("sit", "run")[k % 2], 3)], rng)
        write(cwd / "clips" / f"{k}.csv", rows)
        text = (cwd / "clips" / f"{k}.csv").read_text()
        lines = text.replace("t,", "time,", 1).splitlines()
        order = rng.permutation(7)
        cells = [np.array(line.split(","))[order] for line in lines]
        (cwd / "clips" / f"{k}.csv").write_text("\n".join(map(",".join, cells)))
    main(["cluster", "clips", "-k", "2", "--no-pictures"])
    assert re.search("columns of 0.csv: [a-f, ]{16}\n", capsys.readouterr().err)
    number = [row["cluster"] for row in rows_of(cwd / "out" / "clusters.csv")]
    assert number[::2] == number[:1] * 4 and number[1::2] == number[1:2] * 4
    assert number[0] != number[1]


# ------------------------------------------------------------------------------ joining


def joined(spans, votes, unlike=None, smooth=0, recordings=None):
    n = len(spans)
    recordings = ["r"] * n if recordings is None else recordings
    unlike = np.zeros(n, bool) if unlike is None else np.array(unlike, bool)
    how = np.array(spans, float), np.array(votes, float), unlike
    return timeline(recordings, *how, ["a", "b"], smooth)


def test_overlapping_windows_vote_by_probability():
    spans = [(0, 10), (5, 15), (10, 20), (15, 25)]
    votes = [(0.9, 0.1), (0.8, 0.2), (0.1, 0.9), (0.4, 0.6)]
    first, second = joined(spans, votes)
    assert first[:4] == ("r", 0, 10, "a") and second[:4] == ("r", 10, 25, "b")
    assert first.probability == pytest.approx((0.9 + 0.85) / 2)
    assert second.probability == pytest.approx((0.55 + 0.75 + 0.6) / 3)
    assert first.agree == 1
    # of five windows' parts in it, one says a
    assert second.agree == pytest.approx(4 / 5)


def test_the_order_of_windows_does_not_count_and_recordings_are_apart():
    rng = np.random.default_rng(0)
    spans = np.stack([np.arange(30), np.arange(30) + 4], axis=1)
    votes = rng.dirichlet([1, 1], 30)
    names = np.array(["r", "s"])[np.arange(30) // 15]
    expected = joined(spans, votes, recordings=names.tolist())
    assert {s.recording for s in expected} == {"r", "s"}
    alone = joined(spans[:15], votes[:15])
    assert expected[: len(alone)] == alone
    order = rng.permutation(30)
    again = joined(spans[order], votes[order], recordings=names[order].tolist())
    assert [s[:4] for s in sorted(again)] == [s[:4] for s in sorted(expected)]
    shares = [[s[4:] for s in sorted(some)] for some in (again, expected)]
    np.testing.assert_allclose(*shares, rtol=1e-12)


def test_stretches_tile_the_windows_and_no_two_that_touch_have_one_answer():
    """Against the definition, at the middle of each unit of time."""
    rng = np.random.default_rng(1)
    begin = np.sort(rng.choice(120, 40, replace=False))
    spans = np.stack([begin, begin + rng.integers(1, 9, 40)], axis=1)
    votes = rng.dirichlet([1, 1], 40)
    unlike = rng.random(40) < 0.4
    stretches = joined(spans, votes, unlike)
    answers = set()
    for t in np.arange(130) + 0.5:
        cover = (spans[:, 0] < t) & (t < spans[:, 1])
        inside = [s for s in stretches if s.start < t < s.end]
        assert len(inside) == cover.any()
        if not inside:
            continue
        answers.add(inside[0].answer)
        if unlike[cover].mean() > 0.5:
            assert inside[0].answer == UNLIKE
        else:
            mean = votes[cover & ~unlike].mean(axis=0)
            assert inside[0].answer == "ab"[mean.argmax()]
    assert answers == {"a", "b", UNLIKE}
    for before, behind in zip(stretches, stretches[1:]):
        assert before.end < behind.start or before.answer != behind.answer


def test_half_of_the_windows_unlike_is_not_most():
    spans = [(0, 4), (0, 4)]
    (stretch,) = joined(spans, [(1, 0), (0, 1)], [False, True])
    assert stretch == Stretch("r", 0, 4, "a", 1, 0.5)
    (stretch,) = joined([*spans, (0, 4)], [(1, 0)] * 3, [False, True, True])
    assert stretch.answer == UNLIKE and np.isnan(stretch.probability)
    assert stretch.agree == pytest.approx(2 / 3)


def test_a_gap_ends_a_stretch():
    stretches = joined([(0, 4), (4, 8), (9, 12)], [(1, 0)] * 3)
    assert [s[1:4] for s in stretches] == [(0, 8, "a"), (9, 12, "a")]


def test_smoothing_takes_medians_over_time_weighted_by_duration():
    spans = [(0, 10), (10, 12), (12, 20), (20, 30)]
    votes = [(0.9, 0.1), (0, 1), (0.8, 0.2), (0.1, 0.9)]
    assert [s.answer for s in joined(spans, votes)] == ["a", "b", "a", "b"]
    smooth = joined(spans, votes, smooth=6)
    assert [s[1:4] for s in smooth] == [(0, 20, "a"), (20, 30, "b")]
    # what is told of the stretch is what its windows voted
    assert smooth[0].probability == pytest.approx((9 + 0 + 8 * 0.8) / 20)
    assert smooth[0].agree == pytest.approx(18 / 20)
    # where all windows are unlike, no class loses for it
    lone = joined(spans, np.fliplr(votes), [0, 1, 0, 0], smooth=4)
    assert [s[1:4] for s in lone] == [(0, 20, "b"), (20, 30, "a")]
    # a short one beside a long one of another answer is outvoted, two long ones are not
    assert len(joined(spans, votes, smooth=1)) == 4
    lone = joined(spans, votes, [0, 1, 0, 0], smooth=6)
    assert [s[1:4] for s in lone] == [(0, 20, "a"), (20, 30, "b")]
    # of the two seconds in which nobody voted no probability is known
    assert lone[0].probability == pytest.approx((9 + 8 * 0.8) / 18)
    both = joined(spans, votes, [0, 1, 1, 0], smooth=6)
    assert [s[1:4] for s in both] == [(0, 10, "a"), (10, 20, UNLIKE), (20, 30, "b")]


def test_where_medians_are_equal_the_segments_own_votes_decide():
    """One-hot votes of three classes, none of which has half of the time."""
    spans = np.array([(0, 1), (1, 2), (2, 3)], float)
    like = np.zeros(3, bool)
    stretches = timeline(["r"] * 3, spans, np.eye(3)[[2, 1, 0]], like, "abc", 9)
    assert [s.answer for s in stretches] == ["c", "b", "a"]


# -------------------------------------------------------------------------------- truth


def of(*parts, recording="r"):
    return [Stretch(recording, *part, 1, 1) for part in parts]


def test_answers_at_times_are_those_of_the_stretch_there():
    stretches = of((0, 4, "a"), (6, 9, "b")) + of((2, 5, "c"), recording="q")
    names = ["r", "r", "r", "r", "r", "q", "q", "other"]
    times = [0, 3.9, 4, 6, 9, 3, 0, 3]
    expected = ["a", "a", "", "b", "", "c", "", ""]
    assert answers_at(stretches, names, times).tolist() == expected


def test_borders_are_measured_to_the_nearest_of_the_same_two_answers():
    spans = np.array([[0, 2.0]])
    truth = of((0, 10, "a"), (10, 20, "b"), (20, 30, "a"))
    answers = of((0, 9, "a"), (9, 19, "b"), (19, 19.5, "c"), (19.5, 30, "a"))
    # a to b is off by 1; there is no b to a: the nearest is c to a
    assert median_border(truth, answers, spans) == (0.75, 2)
    assert median_border(truth, truth, spans) == (0, 2)
    assert median_border(truth, of((0, 30, "a")), spans) == (30, 2)
    assert median_border(of((0, 30, "a")), answers, spans) == (None, 0)
    # borders of another recording do not count
    other = [s._replace(recording="q") for s in truth]
    assert median_border(truth, of((0, 30, "a")) + other, spans) == (30, 2)
    # the nearer border of other answers does not count if there is one of the same
    answers = of((0, 6, "a"), (6, 9, "b"), (9, 9.9, "a"), (9.9, 30, "c"))
    assert median_border(truth[:2], answers, spans) == (4, 1)
    truth = of((0, 10, "a"), (10, 20, "b"), (20, 30, "a"), (30, 40, "c"))
    answers = of((0, 10, "a"), (10, 20, "b"), (20, 36, "a"), (36, 40, "c"))
    assert median_border(truth, answers, spans) == (0, 3)


def test_a_border_lies_where_the_second_begins_within_the_longest_window():
    truth = of((0, 10, "a"), (12, 20, "b"))
    answers = of((0, 10, "a"), (11, 20, "b"))
    assert median_border(truth, answers, np.array([[0, 2.0]])) == (1, 1)
    assert median_border(truth, answers, np.array([[0, 1.9]])) == (None, 0)
    # windows begin further apart than they are long
    assert median_border(truth, answers, np.array([[0, 1], [2, 3], [4, 5]])) == (1, 1)
    other = [s._replace(recording="q") for s in of((12, 20, "b"))]
    assert median_border(truth[:1] + other, answers, np.array([[0, 9.0]])) == (None, 0)


def test_a_score_counts_windows_by_their_middle_and_time_that_has_both():
    rows = (
        np.array(["r"] * 10),
        np.stack([np.arange(10), np.arange(1, 11)], axis=1),
        np.array([*"aaaab", *"bbbb", UNLIKE]),
    )
    rows = [values[np.arange(10) != 2] for values in rows]  # without a label
    spans = np.array([(0, 2), (2, 4), (3, 5), (5, 8), (8, 10), (2, 3)], float)
    answers = np.array(["a", "a", "b", "a", UNLIKE, "a"])  # the last: no truth
    stretches = of((0, 4, "a"), (4, 6, "b"), (6, 9, "a"))
    score = score_of(rows, stretches, ["r"] * 6, spans, answers)
    late = [values[:1] for values in rows]  # no label at the middle of a window
    assert score_of(late, stretches, ["r"], spans[4:5], answers[4:5]) is None
    # middles 1, 3, 4, 6.5, 9: a, a, b, b, unlike
    assert score.n_windows == 5 and score.windows == pytest.approx(4 / 5)
    # 8 labelled seconds with an answer: a a a b b right, b b b not
    assert score.time == pytest.approx(5 / 8)
    assert (score.border, score.n_borders) == (1.5, 2)


def test_labels_of_new_recordings_are_truth_and_cut_nothing(cwd):
    rows, labels = recording(0, [("sit", 3), ("walk", 2)], np.random.default_rng(0))
    labels[:10] = ""
    labels[10:20] = "swim"
    write(cwd / "day.csv", rows, labels)
    write(cwd / "bare.csv", rows)
    recipe = Recipe(2, window=20, rate=20.0, columns=tuple("abcdef"))
    clips = new_stretches(find_new_clips(cwd), recipe, "activity")
    assert [clip.name for clip in clips] == ["bare.csv@0", "day.csv@0"]
    parts = labelled_rows(clips, ["sit", "walk"], {"day.csv", "bare.csv"})
    truth = [s[:4] for s in stretches_of(*parts)]
    assert truth == [
        ("day.csv", 0.5, 1, UNLIKE),
        ("day.csv", 1, 3, "sit"),
        ("day.csv", 3, 5, "walk"),
    ]
    assert labelled_rows(clips, ["sit"], {"bare.csv"}) == []
    # as pandas writes whole numbers of a column that lacks some
    write(cwd / "day.csv", rows, np.where(labels == "sit", "1.0", "2.50"))
    numbers = new_stretches(find_new_clips(cwd), recipe, "activity")
    *_, row_labels = labelled_rows(numbers, ["1", "2.5", "x"], {"day.csv"})
    assert {*row_labels} == {"1", "2.5"}
    *_, row_labels = labelled_rows(numbers, [1.0, 3.0], {"day.csv"})
    assert {*row_labels} == {"1.0", UNLIKE}
    labels[10:20] = "nan"  # no label in training either
    labels = np.where(np.arange(100) < 60, labels, "wa\tlk")
    write(cwd / "day.csv", rows, labels)
    clips = new_stretches(find_new_clips(cwd), recipe, "activity")
    (name,) = {printable("wa\tlk", but="")}
    parts = labelled_rows(clips, ["sit", name], {"day.csv"})
    assert [s[1:4] for s in stretches_of(*parts)] == [(1, 3, "sit"), (3, 5, name)]


def test_compare_measures_borders_of_test_sets(cwd):
    rows, labels = recording(
        0, [("sit", 5), ("walk", 5), ("run", 5)], np.random.default_rng(0)
    )
    write(cwd / "day.csv", rows, labels)
    recipe = Recipe(2, window=20, clock="t")
    clips, _ = labelled_stretches(cwd / "day.csv", recipe, "activity")
    made = build_all(clips, recipe)
    every = np.arange(15)
    assert border_error(made, every, made.label) == 0
    predicted = made.label.copy()
    predicted[3:5] = "walk"  # the first border is off by two seconds, the other by none
    assert border_error(made, every, predicted) == 1
    assert border_error(made, every[:5], made.label[:5]) is None
    assert border_error(made, every[:8], predicted[:8]) == 2
    predicted[10] = "walk"
    assert border_error(made, every[6:], predicted[6:]) == 1
    # no border between answers that touch: as far off as all of them are long
    assert border_error(made, every[[4, 5, 9, 10]], [*"aabb"]) == 7
    assert border_error(made._replace(spans=None), every, predicted) is None


# -------------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A folder with a model of six persons, and recordings of another."""
    folder = tmp_path_factory.mktemp("learned")
    rng = np.random.default_rng(0)
    for person in range(6):
        plan = [("sit", 8), ("walk", 8), ("run", 8)] * 2
        write(folder / "train" / f"p{person}.csv", *recording(person, plan, rng))
    plan = [("sit", 10), ("run", 12), ("swim", 30), ("walk", 11)]
    rows, labels = recording(9, plan, rng)
    write(folder / "new" / "day.csv", rows, labels)
    rows, _ = recording(8, [("walk", 6)], rng)
    write(folder / "new" / "bare.csv", rows)
    words = ["--label-column", "activity", "--clock", "t", *CUT, *PLAIN]
    out = ["--out", str(folder / "learning")]
    kept = ["--data", str(folder / "train"), "--save", str(folder / "m.npz")]
    main(["predict", *kept, *words, *out])
    return folder


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def test_a_model_knows_its_clock_and_answers_by_stretches(learned, cwd, capsys):
    recipe = load(learned / "m.npz").recipe
    assert (recipe.clock, recipe.rate, recipe.window) == ("t", pytest.approx(20), 40)
    words = ["--model", str(learned / "m.npz"), "--label-column", "activity"]
    words += ["--coverage", "0.99"]
    main(["predict", str(learned / "new"), *words, "--smooth", "6"])
    out = capsys.readouterr().out
    stretches = rows_of(cwd / "out" / "stretches.csv")
    assert [*stretches[0]] == [*Stretch._fields]
    assert [s["recording"] for s in stretches] == ["bare.csv"] + ["day.csv"] * 4
    answers = [s["answer"] for s in stretches]
    assert answers == ["walk", "sit", "run", UNLIKE, "walk"]
    assert [not s["probability"] for s in stretches] == [a == UNLIKE for a in answers]
    borders = [float(s["start"]) for s in stretches[1:]]
    np.testing.assert_allclose(borders, [0, 10, 22, 52], atol=1.5)
    first, columns, *lines, score = out.splitlines()
    assert re.fullmatch(r"gSC: [\d.]+ % right in cross-validation", first)
    assert columns.split("  ")[0] == "recording" and "from (seconds)" in columns
    assert [re.split("  +", line)[1] for line in lines] == answers
    pattern = (
        r"([\d.]+) % of 62 windows right, ([\d.]+) % of the time; 3 borders off by (.*)"
    )
    windows, time, border = re.fullmatch(pattern, score).groups()
    assert float(windows) > 80 and float(time) > 90
    assert re.fullmatch(r"[\d.]+ seconds in the median", border)
    rows = rows_of(cwd / "out" / "predictions.csv")
    assert [*rows[0]][:4] == ["clip", "start", "end", "answer"]
    assert [(row["start"], row["end"]) for row in rows[:2]] == [
        ("0.0", "2.0"),
        ("1.0", "3.0"),
    ]
    page = (cwd / "out" / "report.html").read_text()
    assert "hatched where" in page and "<td>unlike all classes</td>" in page
    assert "<th>start (seconds)</th><th>end (seconds)</th><th>answer</th>" in page
    assert "@0#1</td><td>1</td><td>3</td>" in page
    assert (cwd / "out" / "pictures" / "timeline.png").exists()


def test_a_short_pause_is_smoothed_away_only_if_that_is_asked_for(learned, cwd, capsys):
    plan = [("walk", 12), ("swim", 3), ("walk", 12)]
    rows, _ = recording(9, plan, np.random.default_rng(2))
    write(cwd / "new.csv", rows)
    for words, answers in (
        ([], ["walk", UNLIKE, "walk"]),
        (["--smooth", "9"], ["walk"]),
    ):
        words += ["--coverage", "0.97"]
        main(["predict", "new.csv", "--model", str(learned / "m.npz"), *words])
        folder = "out-2" if "--smooth" in words else "out"
        stretches = rows_of(cwd / folder / "stretches.csv")
        assert [s["answer"] for s in stretches] == answers
        assert "windows right" not in capsys.readouterr().out


def test_json_is_an_object_a_clip_and_nothing_else(learned, cwd, capsys):
    (cwd / "new").mkdir()
    rows, _ = recording(8, [("walk", 3), ("swim", 4)], np.random.default_rng(1))
    write(cwd / "new" / "a.csv", rows)
    (cwd / "new" / "z.csv").write_text("x\n1\n")
    model = str(learned / "m.npz")
    main(["predict", "new", "--model", model, "--json", "--no-pictures"])
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    table = rows_of(cwd / "out" / "predictions.csv")
    assert [o["clip"] for o in objects] == [row["clip"] for row in table]
    assert objects[-1]["clip"] == "z.csv" and objects[-1]["answer"] is None
    assert "must have one column t, got" in objects[-1]["failed"]
    assert len({tuple(record) for record in objects}) == 1  # the same keys
    for record, row in zip(objects[:-1], table):
        assert record["failed"] is None and record["end"] - record["start"] == 2
        assert (record["answer"] or "") == row["answer"]
        assert record["nearest class"] == row["nearest class"]
        shares = record["probability"]
        assert sorted(shares) == ["run", "sit", "walk"]
        assert sum(shares.values()) == pytest.approx(1, abs=0.01)
        assert "; ".join(record["possible"]) == row["possible"]
        assert "; ".join(record["because"]) == row["because"] and record["because"]
    answers = [record["answer"] for record in objects[:-1]]
    assert answers[0] == "walk" and answers[-1] is None


def test_smoothing_without_windows_is_refused(cwd):
    rng = np.random.default_rng(0)
    for label in ("walk", "run"):
        for k in range(3):
            rows, _ = recording(k, [(label, 2)], rng)
            write(cwd / "data" / label / f"{k}.csv", rows)
    with pytest.raises(SystemExit, match="--smooth goes with a model of recordings"):
        words = ["--smooth", "2", "--save", "kept.npz"]
        main(["predict", "data", "--data", "data", *words, *PLAIN])
    assert not (cwd / "kept.npz").exists()


def test_many_clips_are_counted_and_the_unsure_named(cwd, capsys):
    rng = np.random.default_rng(0)
    for label in ("sit", "walk", "run"):
        for k in range(8):
            rows, _ = recording(k, [(label, 3)], rng)
            write(cwd / "data" / label / f"{k}.csv", rows)
            rows, _ = recording(k, [(label, 3)], rng)
            write(cwd / "new" / f"{label}_{k}.csv", rows)
    rows, _ = recording(0, [("swim", 3)], rng)
    write(cwd / "new" / "strange.csv", rows)
    options = ["--columns", *"abcdef", *PLAIN, "--no-pictures"]
    main(["predict", "new", "--data", "data", *options])
    lines = capsys.readouterr().out.splitlines()[1:]
    rows = rows_of(cwd / "out" / "predictions.csv")
    assert len(rows) == 25 and "strange.csv" in [row["clip"] for row in rows]
    answers = [row["answer"] or UNLIKE for row in rows]
    names = ["run", "sit", "walk", UNLIKE]
    each = ", ".join(f"{name} ({answers.count(name)})" for name in names)
    assert lines[0] == f"25 clips: {each}"
    unlike = [row["clip"] for row in rows if not row["answer"]]
    assert "strange.csv" in unlike and lines[1].split("  ")[0] == UNLIKE
    assert [line.split()[0] for line in lines[2 : 2 + len(unlike)]] == unlike
    unsure = [line.split() for line in lines[3 + len(unlike) :]]
    assert lines[2 + len(unlike)].split()[0] == "unsure" and len(unsure) > 1
    shares = [float(share) for _, _, share, *_ in unsure]
    assert shares == sorted(shares)  # the least sure first
    assert all("unusual for it" in " ".join(words) for words in unsure)
    alone = {row["clip"] for row in rows if row["answer"] and not row["possible"]}
    assert alone == {name for name, *_ in unsure}
    # of 24 labelled clips none rules out a class at 99.9 %
    main(["predict", "new", "--data", "data", *options, "--coverage", "0.999"])
    lines = capsys.readouterr().out.splitlines()
    unsure = [line.split() for line in lines if "any class" in line]
    assert len(unsure) == 20 == len(lines) - 4
    shares = [float(share) for _, _, share, *_ in unsure]
    assert shares == sorted(shares) and len({*shares}) > 1
    assert lines[-1] == "and 5 more"
    main(["predict", "new/strange.csv", "--data", "data", *options])
    assert re.search(
        r"\nstrange.csv: unlike all classes; nearest \w+/\d.csv\n",
        capsys.readouterr().out,
    )


def test_of_many_the_unlike_come_before_the_unsure_and_no_column_is_empty():
    columns = ["clip", "answer", "probability", "also possible", "nearest"]
    sure = [[f"{k}.npy", "run", "0.99", "", "a"] for k in range(25)]
    unsure = [[f"u{k}", "sit", "0.5", "run", "b"] for k in range(MOST + 2)]
    strange = ["x", UNLIKE, "", "", "c"]
    table = Table(columns, [*sure, *unsure, strange], numbers=0)
    lines = "\n".join(words_of(table, "clip", unsure)).splitlines()
    assert (
        lines[0] == f"{26 + MOST + 2} clips: run (25), sit ({MOST + 2}), {UNLIKE} (1)"
    )
    assert lines[1:4] == [
        f"{UNLIKE}  nearest",
        f"x{' ' * len(UNLIKE)} c",
        "unsure  answer  probability  also possible  nearest",
    ]
    assert [line.split()[0] for line in lines[4:-1]] == [
        row[0] for row in unsure[:MOST]
    ]
    assert lines[-1] == "and 2 more"
    few = Table(columns, sure[:MOST])
    assert (
        words_of(few, "clip")[0].splitlines()[0]
        == "clip    answer  probability  nearest"
    )
    assert len(words_of(few, "clip")[0].splitlines()) == 1 + MOST
    (line,) = words_of(Table(columns, [unsure[0]]), "clip")
    assert line == "u0: sit; probability 0.5; also possible run; nearest b"
    unusual = ["u", "sit", "0.5", "unusual for it", "b"]
    (line,) = words_of(Table(columns, [unusual]), "clip")
    assert line == "u: sit; probability 0.5; unusual for it; nearest b"
    assert words_of(Table(columns, []), "clip") == []


# ------------------------------------------------------------------------------ groups


def groups_in(path):
    return {row["clip"]: row["group"] for row in rows_of(path)}


def test_new_recordings_have_their_groups_and_are_cut_where_these_change(cwd):
    """By a column, where a table has it, or by the names of files."""
    rng = np.random.default_rng(0)
    for person in "ab":
        plan = [("sit", 8), ("walk", 8)]
        rows, labels = recording(ord(person), plan, rng)
        labels = [f"{label},{person}" for label in labels]
        write(cwd / "data" / f"p{person}.csv", rows, labels)
    rows, _ = recording(1, [("sit", 6)], rng)
    write(cwd / "new" / "x1.csv", rows, ["sit,c"] * 50 + ["sit,"] * 70)
    write(cwd / "new" / "x2.csv", rows, ["sit"] * 120)
    write(cwd / "new" / "y.csv", rows)
    for path in (*(cwd / "data").iterdir(), cwd / "new" / "x1.csv"):
        path.write_text(path.read_text().replace("activity", "activity,person"))
    words = ["--label-column", "activity", *CUT, *PLAIN, "--no-pictures"]
    names = ["x1.csv@0", "x1.csv@50#0", "x1.csv@50#1", "x1.csv@50#2"]
    kept = ["--data", "data", "--save", "m.npz"]
    main(["predict", "new", *kept, *words, "--group-column", "person"])
    groups = groups_in(cwd / "out" / "predictions.csv")
    assert [*groups][:3] == names[:3] and groups[names[0]] == "c"
    assert not any(groups[name] for name in groups if name != names[0])
    assert {name.partition("@")[0] for name in groups} == {"x1.csv", "x2.csv", "y.csv"}
    stretches = rows_of(cwd / "out" / "stretches.csv")
    assert {s["recording"] for s in stretches} == {"x1.csv", "x2.csv", "y.csv"}
    main(["predict", "new", "--model", "m.npz", "--group-by", r"x\d"])
    groups = groups_in(cwd / "out-2" / "predictions.csv")
    for name, group in groups.items():
        assert group == ("" if name.startswith("y") else name[:2])
    main(["predict", "new", "--model", "m.npz"])
    assert "group" not in rows_of(cwd / "out-3" / "predictions.csv")[0]
    # persons without labels
    text = ["person" if i == 0 else "bd"[i > 60] for i in range(121)]
    lines = (cwd / "new" / "y.csv").read_text().splitlines()
    table = "\n".join(f"{line},{who}" for line, who in zip(lines, text))
    (cwd / "bare").mkdir()
    (cwd / "bare" / "y.csv").write_text(table)
    names = ["--label-column", "activity", "--group-column", "person"]
    main(["predict", "bare", "--model", "m.npz", *names])
    groups = groups_in(cwd / "out-4" / "predictions.csv")
    groups = {name.partition("#")[0]: group for name, group in groups.items()}
    assert groups == {"y.csv@0": "b", "y.csv@60": "d"}


# ------------------------------------------------------------------------- in a program


def model_and_sets():
    rng = np.random.default_rng(0)
    pairs = [recording(k, [(a, 2)], rng)[0] for k in range(6) for a in ("sit", "run")]
    settings = Settings(methods=["gsc"], kernels=False, lam=[0.01], p=[2])
    return pairs, [0, 1] * 6, settings


def test_a_program_hears_nothing_unless_it_asks(capsys):
    sets, labels, settings = model_and_sets()
    model = fit(sets, labels, settings=settings)
    predict(model, sets[:2])
    assert capsys.readouterr() == ("", "")
    model = fit(sets, labels, settings=settings, verbose=True)
    assert "gSC" in capsys.readouterr().err
    predict(model, sets[:2])
    assert capsys.readouterr() == ("", "")


class FakePandas:
    """What is asked of pandas."""

    class DataFrame(dict):
        def __init__(self, records):
            super().__init__({name: [r[name] for r in records] for name in records[0]})

        def _repr_html_(self):
            return "<table>"


def test_answers_become_a_frame_of_pandas(monkeypatch):
    sets, labels, settings = model_and_sets()
    model = fit(sets, labels, settings=settings)
    strange = np.random.default_rng(1).standard_normal((40, 6))
    answers = predict(model, [sets[0], strange])
    monkeypatch.setitem(sys.modules, "pandas", FakePandas)
    frame = answers.to_frame(coverage=0.5)
    columns = ["clip", "answer", "nearest class", "probability 0", "probability 1"]
    assert [*frame] == [*columns, "possible", "because"]
    assert frame["nearest class"] == answers.labels.tolist()
    assert frame["answer"].dtype == object and frame["answer"].tolist() == [0, None]
    shares = np.stack([frame["probability 0"], frame["probability 1"]], axis=1)
    np.testing.assert_allclose(shares, answers.scores, rtol=1e-3)
    assert frame["because"] == answers.because.tolist()
    assert answers._repr_html_() == "<table>"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="to_frame needs pandas.*pip install pandas"):
        answers.to_frame()
    assert answers._repr_html_() is None


def test_time_counts_by_how_long_rows_last():
    times = np.array([(0, 1), (1, 2), (2, 10)], float)
    rows = [np.array(["r"] * 3), times, np.array(["a", "a", "b"])]
    spans = np.array([(0, 2), (2, 10)], float)
    answers = np.array(["a", "a"])
    score = score_of(rows, of((0, 10, "a")), ["r"] * 2, spans, answers)
    assert score.time == pytest.approx(2 / 10)


def test_a_gap_as_long_as_a_window_that_overlaps_others_has_a_border():
    truth = of((0, 10, "a"), (15, 20, "b"))
    spans = np.array([(0, 10), (1, 11), (2, 12)], float)
    assert median_border(truth, truth, spans) == (0, 1)


def test_a_border_that_is_missed_is_off_by_the_length_of_its_own_recording():
    truth = of((0, 10, "a"), (10, 30, "b"))
    longer = of((0, 90, "a"), recording="q")
    spans = np.array([(0, 2.0)])
    assert median_border(truth, of((0, 30, "a")) + longer, spans) == (30, 1)


@pytest.mark.parametrize(
    "times, every, starts",
    [
        (np.arange(80) + 14 * (np.arange(80) > 40), 1, [0, 41]),
        # of which a window of 20 rows lasts longer than the hole
        (np.arange(80) + 14 * (np.arange(80) > 40), 4, [0]),
        (np.arange(80) / 20 + 2 * (np.arange(80) >= 40), 1, [0, 40]),
    ],
)
def test_a_hole_ends_a_stretch_if_it_is_longer_than_rows_and_windows(
    tmp_path, times, every, starts
):
    lines = [f"{time},{i % 2},{i % 3},walk" for i, time in enumerate(times)]
    (tmp_path / "day.csv").write_text("\n".join(["t,x,y,activity", *lines]))
    recipe = Recipe(1, window=5, every=every, clock="t")
    clips, _ = labelled_stretches(tmp_path / "day.csv", recipe, "activity")
    assert [clip.name for clip in clips] == [f"day.csv@{start}" for start in starts]
