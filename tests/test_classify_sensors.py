"""Sensors: tables, long recordings cut into windows, arrays of channels."""

import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from grassmann_classify.__main__ import main
from grassmann_classify.arrays import (
    labelled_stretches,
    load_npz,
    new_stretches,
    read_sets,
)
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip
from grassmann_classify.finding import find_new_clips
from grassmann_classify.inputs import labelled_clips, read
from grassmann_classify.model_file import load
from grassmann_classify.options import parse, split
from grassmann_classify.settings import Recipe

QUICK = ["--recipe", "plain", "--no-pictures", "--methods", "nearest", "--p", "1"]
QUICK += ["--no-kernels"]
DIRECTIONS = {"sit": [1, 0, 0], "walk": [0, 1, 0], "run": [0, 0, 1]}


def signal(label, n, rng):
    """n time steps of three channels: an activity moves along a direction of its own."""
    steps = np.arange(n)[:, None]
    moved = 3 * np.sin(steps + rng.uniform(0, 6)) * DIRECTIONS[label]
    return moved + 0.1 * rng.standard_normal((n, 3))


def write_table(path, rows, names="ax,ay,az"):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(map(str, row)) for row in rows]
    path.write_text("\n".join([names, *lines]) + "\n")


@pytest.fixture
def cwd(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folders(cwd):
    """data/sit/0.csv, ...: three activities, six tables each, with a clock."""
    rng = np.random.default_rng(0)
    for label in DIRECTIONS:
        for i in range(6):
            rows = np.column_stack([np.arange(20 + i), signal(label, 20 + i, rng)])
            write_table(cwd / "data" / label / f"{i}.csv", rows, "time,ax,ay,az")
    return cwd / "data"


def test_folders_of_tables_are_clips(folders, capsys):
    main(["compare", "data", "--repeats", "2", "--columns", "ax", "ay", "az", *QUICK])
    out, err = capsys.readouterr()
    assert "18 clips of 3 classes, 405 frames of 3 features" in err
    assert "18 sets of 3 classes; 2 splits" in out
    assert re.search(r"nearest subspace +100\.0", out)


def test_a_broken_table_is_named_with_its_line_and_the_rule(folders, capsys):
    text = (folders / "sit" / "3.csv").read_text().splitlines()
    (folders / "sit" / "3.csv").write_text("\n".join([*text[:7], "7,1,,2", *text[8:]]))
    main(["compare", "data", "--repeats", "1", *QUICK])
    err = capsys.readouterr().err
    assert "\n1 could not be used" in err
    assert "3.csv: line 8: column ay must hold a finite number, got ''" in err


def test_a_model_keeps_the_columns_that_it_was_learned_with(folders, capsys):
    columns = ["--columns", "ax", "ay", "az"]
    main(["predict", "--data", "data", "--save", "m.npz", *columns, *QUICK])
    assert load("m.npz").recipe.columns == ("ax", "ay", "az")
    rows = signal("walk", 30, np.random.default_rng(1))
    rows = np.column_stack([rows[:, 2], np.full(30, 7), rows[:, :2]])
    write_table(folders.parent / "new.csv", rows, "az,hours,ax,ay")
    main(["predict", "new.csv", "--model", "m.npz", "--no-pictures"])
    assert re.search(r"new\.\w+: walk; probability 0", capsys.readouterr().out)
    write_table(folders.parent / "new.csv", rows[:, :3], "az,hours,ax")
    with pytest.raises(
        SystemExit, match="new.csv: must have one column ay, got the col"
    ):
        main(["predict", "new.csv", "--model", "m.npz"])


def labelled(*words):
    """{name: label} of the sets that a run would read."""
    recipe, settings, paths = split(parse(["compare", *words, *QUICK]))
    clips, _, recipe = labelled_clips(recipe, settings, paths)
    collection = read(recipe, settings, paths, clips).collection
    return dict(zip(collection.names, collection.label.tolist()))


def test_tables_beside_other_clips_are_none(folders, capsys):
    """They tell something about these, as a file of labels does."""
    (folders / "sit" / "empty").mkdir()  # holds no clip of another kind
    assert len(labelled("data", "--skip")) == 18
    assert "beside clips" not in capsys.readouterr().err
    for label in ("sit", "run"):
        for i in range(4):
            clip = np.random.default_rng(i).standard_normal((6, 3))
            np.save(folders / label / f"{i}.npy", clip)
    names = labelled("data", "--skip")
    assert names == {f"{c}/{i}.npy": c for c in ("run", "sit") for i in range(4)}
    line = "passed over: 6 tables beside clips of another kind, as walk/0.csv"
    assert line in capsys.readouterr().err


def test_the_file_of_labels_among_tables_is_no_clip(cwd, capsys):
    rng = np.random.default_rng(0)
    lines = ["clip,label"]
    for i, name in enumerate("abcdefgh"):
        label = ["sit", "run"][i % 2]
        write_table(cwd / "data" / f"{name}.csv", signal(label, 9, rng))
        lines.append(f"{name}{'.csv' * (i > 3)},{label}")
    (cwd / "data" / "labels.csv").write_text("\n".join(lines))
    names = labelled("data", "--labels", "data/labels.csv")
    assert names == {
        f"{c}.csv": ["sit", "run"][i % 2] for i, c in enumerate("abcdefgh")
    }
    assert "without a label" not in capsys.readouterr().err


def test_windows_overlap_by_the_step():
    rows = np.random.default_rng(0).standard_normal((23, 3))
    clip = Clip("x", None, None, [rows])
    made = build_all([clip], Recipe(2, window=10, step=5))
    assert len(made.X) == 3
    for k in range(3):
        np.testing.assert_array_equal(made.sets[k], rows[5 * k : 5 * k + 10])
    assert len(build_all([clip], Recipe(2, window=10)).X) == 2
    assert build_all([clip], Recipe(2, window=10, step=4)).names == [
        *(f"x#{k}" for k in range(4))
    ]


def test_windows_of_a_table_stay_together(folders, capsys):
    """--window is --run; sets of one table are in one part of a split."""
    main(["compare", "data", "--window", "10", "--step", "5", "--repeats", "1", *QUICK])
    assert "57 sets of 3 classes" in capsys.readouterr().out  # 3, 3, 3, 3, 3, 4 a class
    lines = (folders.parent / "out" / "predictions.csv").read_text().splitlines()[1:]
    tested = [line.split("#")[0] for line in lines]
    assert {tested.count(name) for name in tested} <= {3, 4}
    with pytest.raises(SystemExit):
        main(["compare", "data", "--step", "5"])
    assert "--step goes with --window, got --step 5 alone" in capsys.readouterr().err


# ------------------------------------------------------------------- long recordings


def write_day(path, n=40, seed=0):
    """A recording: two subjects, each active twice, n rows an activity."""
    rng = np.random.default_rng(seed)
    lines = []
    for subject in "12":
        for _ in range(2):
            for label in DIRECTIONS:
                rows = signal(label, n, rng).round(4)
                lines += [[*row, label, subject] for row in rows]
    lines = [[k / 50, *line] for k, line in enumerate(lines)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_table(path, lines, "time,ax,ay,az,activity,subject")
    return lines


RECORDING = ["--window", "10", "--step", "5", "--label-column", "activity"]
OF_SUBJECT = ["--group-column", "subject"]


def test_windows_of_a_recording_keep_within_a_label_and_a_subject(cwd, capsys):
    lines = write_day(cwd / "day.csv")
    clips, recipe = labelled_stretches(
        cwd / "day.csv", Recipe(1, window=10), "activity", "subject"
    )
    assert [*recipe.columns] == [
        "ax",
        "ay",
        "az",
    ]  # neither the clock nor the numbers of subjects
    assert [clip.name for clip in clips] == [f"day.csv@{40 * k}" for k in range(12)]
    for clip in clips:
        start = int(clip.name.rpartition("@")[2])
        (rows,) = clip.sources
        np.testing.assert_array_equal(
            rows, [line[1:4] for line in lines[start : start + 40]]
        )
        assert {(line[4], line[5]) for line in lines[start : start + 40]} == {
            (clip.label, clip.group)
        }
    main(["compare", "day.csv", *RECORDING, *OF_SUBJECT, *QUICK])
    out, err = capsys.readouterr()
    assert "1 recording of 480 rows: 12 stretches of one activity and subject\n" in err
    assert "columns of day.csv: ax, ay, az" in err
    assert "84 sets of 3 classes" in out and "one group left out at a time" in out
    lines = (cwd / "out" / "predictions.csv").read_text().splitlines()
    assert lines[1].startswith("day.csv@0#0,1,0,sit,")
    pairs = {tuple(line.split(",")[1:3]) for line in lines[1:]}  # a group a split
    assert len({group for group, _ in pairs}) == len(pairs) > 1


def test_where_nothing_but_the_subject_changes_a_stretch_ends(cwd):
    rows = [[k, "sit", k // 30] for k in range(60)]
    write_table(cwd / "day.csv", rows, "ax,activity,who")
    recipe = Recipe(1, window=20)
    clips, _ = labelled_stretches(cwd, recipe, "activity", "who")
    assert [(clip.name, clip.group) for clip in clips] == [
        ("day.csv@0", "0"),
        ("day.csv@30", "1"),
    ]
    clips, recipe = labelled_stretches(cwd, recipe, "2")
    assert [(clip.name, clip.group) for clip in clips] == [("day.csv@0", None)]
    assert recipe.columns == ("ax", "who")


def test_what_is_left_out_of_a_recording_is_said(cwd, capsys):
    rows = [[k, "sit"] for k in range(30)]
    rows[12][0] = ""  # ends a stretch
    rows += [[k, ""] for k in range(4)]
    rows += [[k, "run"] for k in range(25)] + [[k, "sit"] for k in range(7)]
    write_table(cwd / "day.csv", rows, "ax,activity")
    recipe = Recipe(1, window=10, step=4)
    clips, _ = labelled_stretches(cwd, recipe, "activity")
    assert [(clip.name, len(clip.sources[0])) for clip in clips] == [
        ("day.csv@0", 12),
        ("day.csv@13", 17),
        ("day.csv@34", 25),
    ]
    err = capsys.readouterr().err
    assert "66 rows: 3 stretches of one activity; left out: 4 rows without act" in err
    assert "1 row with a missing number, 15 rows in no window" in err
    labelled_stretches(cwd, Recipe(1, window=20), "activity")
    assert "no window lies in a stretch of sit: left out" in capsys.readouterr().err
    with pytest.raises(ValueError, match="one activity: the longest has 25 rows$"):
        labelled_stretches(cwd, Recipe(1, window=26), "activity")
    labelled_stretches(cwd, Recipe(1, window=10, resample=22), "activity")
    # of the 12, 17, 25 and 7 rows of stretches one part in eleven is in no window
    assert "1 row with a missing number, 4 rows in no window" in capsys.readouterr().err


def test_a_window_in_which_a_sensor_is_off_costs_no_other(cwd, capsys):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3))
    rows[20:40] = 0
    clip = Clip("day", "sit", None, [rows])
    made = build_all([clip], Recipe(2, window=10, fewer=True))
    assert made.names == ["day#0", "day#1", "day#4", "day#5"]
    assert made.spans.tolist() == [[0, 10], [10, 20], [40, 50], [50, 60]]
    why = "frames must hold a frame that is not zero: got numerical rank 0"
    assert [*made.unusable] == ["day#2", "day#3"]
    assert all(
        words.startswith(f"{name}: {why}") for name, words in made.unusable.items()
    )
    with pytest.raises(ValueError, match=f"day#2: {why}"):
        build_all([clip], Recipe(2, window=10, fewer=True), strict=True)
    with pytest.raises(ValueError, match=f"no clip could be read: day: {why}"):
        build_all(
            [Clip("day", "sit", None, [0 * rows])], Recipe(2, window=10, fewer=True)
        )


def test_columns_by_number_are_kept_by_their_names(cwd, capsys):
    write_table(cwd / "first.csv", [["sit", 1, 2, 3]] * 30, "act,ax,ay,az")
    recipe = Recipe(2, window=10, columns=("2-4",))
    clips, recipe = labelled_stretches(cwd / "first.csv", recipe, "act")
    assert recipe.columns == ("ax", "ay", "az")
    assert "columns of first.csv: ax, ay, az" in capsys.readouterr().err


@pytest.mark.parametrize(
    "name, times, is_said",
    [
        ("t", 0.02 * np.arange(30) + 0.004 * (np.arange(30) % 2), True),
        ("sample", np.arange(30), True),
        ("t", np.arange(20), False),  # too few to tell
        ("x", np.arange(30) ** 2, False),  # as a hand that moves away
        ("x", -np.arange(30), False),
        ("time", np.arange(30), False),  # known by its name
    ],
)
def test_a_column_that_rises_as_a_clock_does_is_named(
    cwd, capsys, name, times, is_said
):
    rows = [["sit", when, 1 + k % 3] for k, when in enumerate(times)]
    write_table(cwd / "day.csv", rows, f"act,{name},ax")
    words = (
        f"column {name} rises by even steps, as a clock or a counter: --columns names the "
        f"others, --clock {name} if it tells seconds"
    )
    for columns in (None, (name, "ax")):
        recipe = Recipe(2, window=5, columns=columns)
        labelled_stretches(cwd / "day.csv", recipe, "act")
        said = words in capsys.readouterr().err
        assert said == (is_said and columns is None)


@pytest.mark.parametrize("n, is_said", [(20, False), (21, True)])
def test_a_column_that_never_changes_is_named(cwd, capsys, n, is_said):
    """As the number of a person, if --group-column was forgotten."""
    write_table(cwd / "day.csv", [["sit", k % 3, 7] for k in range(n)], "act,ax,person")
    labelled_stretches(cwd / "day.csv", Recipe(2, window=5), "act")
    words = "column person never changes, as the name of a person: --columns names the "
    assert (f"{words}others\n" in capsys.readouterr().err) == is_said


def test_recordings_of_other_rates_are_named(cwd, capsys):
    """By their clocks: a window of as many rows lasts longer or shorter."""
    for name, rate in (("a", 50), ("b", 51), ("c", 25)):
        rows = [[k / rate, "sit", 1 + k % 3] for k in range(30)]
        write_table(cwd / "days" / f"{name}.csv", rows, "t,act,ax")
    words = (
        "other rows a second than the 50 of the first recording: c.csv (25); a window"
    )
    recipe = Recipe(2, window=5, clock="t")
    _, recipe = labelled_stretches(cwd / "days", recipe, "act")
    assert recipe.rate == pytest.approx(50) and recipe.unit == "seconds"
    assert capsys.readouterr().err.count(words) == 1
    new_stretches(find_new_clips(cwd / "days"), recipe)
    assert words in capsys.readouterr().err
    labelled_stretches(cwd / "days" / "c.csv", recipe, "act")  # as add does
    assert capsys.readouterr().err.count(words) == 1
    new_stretches(find_new_clips(cwd / "days"), replace(recipe, clock=None))
    assert "other rows" not in capsys.readouterr().err


def test_a_folder_of_recordings_is_one_set_of_clips(cwd, capsys):
    for k in range(2):
        write_day(cwd / "days" / f"p{k}" / "day.csv", seed=k)
    main(["compare", "days", *RECORDING, "--repeats", "1", *QUICK])
    out, err = capsys.readouterr()
    assert "2 recordings of 960 rows: 24 stretches" in err
    assert "168 sets" in out and "random splits" in out
    with pytest.raises(
        SystemExit, match="the name has no group, --group-by '.z' matches"
    ):
        main(["compare", "days", *RECORDING, "--group-by", "^z"])


def test_a_foreign_table_is_left_out_wherever_it_lies(cwd, capsys):
    """Also the first; where no table has the columns, the first is the error."""
    write_day(cwd / "days" / "day.csv")
    for name in ("a", "z"):
        write_table(cwd / "days" / f"{name}.csv", [[1, 2, 3]])
    main(["compare", "days", *RECORDING, "--repeats", "1", *QUICK])
    out, err = capsys.readouterr()
    for name in ("a", "z"):
        assert f"left out: days/{name}.csv: must have one column activity, got" in err
    assert "1 recording of 480 rows: 12 stretches" in err and "84 sets" in out
    assert "columns of day.csv: ax, ay, az" in err
    with pytest.raises(SystemExit, match="days/a.csv: must have one column activity"):
        main(["compare", "days", *RECORDING, "--strict", *QUICK])
    (cwd / "days" / "day.csv").unlink()
    with pytest.raises(SystemExit, match="days/a.csv: must have one column activity"):
        main(["compare", "days", *RECORDING, *QUICK])


@pytest.mark.parametrize("cell", ['"1,5"', "\u22121", "1.234,5"])
def test_a_column_that_is_taken_for_a_text_is_named_with_its_first_cell(
    cwd, capsys, cell
):
    lines = write_day(cwd / "day.csv")
    lines[0][2] = cell
    write_table(cwd / "day.csv", lines, "time,ax,ay,az,activity,subject")
    if "," in cell.strip('"') and cell[0] != '"':
        text = (cwd / "day.csv").read_text().splitlines()
        text = [line.replace(",", ";") for line in text]
        text[1] = text[1].replace(cell.replace(",", ";"), cell)
        (cwd / "day.csv").write_text("\n".join(text))
    main(["compare", "day.csv", *RECORDING, *OF_SUBJECT, *QUICK])
    words = f"columns of day.csv: ax, az; no numbers: ay, whose first cell is {cell.strip(chr(34))!r}"
    assert words in capsys.readouterr().err


def test_labels_that_are_the_same_number_are_said_to_be_two_classes(cwd, capsys):
    lines = write_day(cwd / "day.csv")
    names = {"sit": "1", "walk": "2", "run": "3"}
    for k, line in enumerate(lines):
        line[4] = names[line[4]] + ".0" * (k % 240 < 40)
    write_table(cwd / "day.csv", lines, "time,ax,ay,az,activity,subject")
    main(["compare", "day.csv", *RECORDING, "--repeats", "1", *QUICK])
    err = capsys.readouterr().err
    assert "labels '1' and '1.0' are two classes here, and read alike" in err
    assert "labels 2" not in err


def test_no_line_names_d_and_p_of_several_recipes(cwd, capsys):
    """Of one channel d is 1, and p of stacks is up to 4."""
    rng = np.random.default_rng(0)
    for i in range(12):
        (cwd / "data" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        np.save(cwd / "data" / "ab"[i % 2] / f"{i}.npy", rng.standard_normal((20, 1)))
    usual = ["--repeats", "1", "--methods", "nearest", "--no-kernels", "--no-pictures"]
    main(["compare", "data", *usual])
    out, err = capsys.readouterr()
    assert "12 sets of frames: " in err
    assert re.search(r"^12 sets of 2 classes, \d+ recipes; 1 split", out, re.MULTILINE)
    assert "R^1" not in out + err
    main(["compare", "data", "--recipe", "plain", *usual])
    out, err = capsys.readouterr()
    assert "12 sets to 1-dimensional subspaces of R^1: " in err
    assert "12 sets of 2 classes; 1 split" in out


def test_frames_of_zeros_have_no_singular_value_above_zero(cwd, capsys):
    """Not above -0, if they are -0."""
    write_table(cwd / "data" / "sit" / "0.csv", -np.zeros((9, 3)))
    for label in DIRECTIONS:
        for i in range(3):
            rows = signal(label, 9, np.random.default_rng(i))
            write_table(cwd / "data" / label / f"{i + 1}.csv", rows)
    main(["compare", "data", "--repeats", "1", *QUICK])
    assert "(singular values above 0)" in capsys.readouterr().err


def test_a_model_cuts_new_recordings_as_those_that_it_learned(cwd, capsys):
    write_day(cwd / "day.csv")
    learning = ["predict", "--data", "day.csv", "--save", "m.npz"]
    main([*learning, *RECORDING, *OF_SUBJECT, *QUICK])
    recipe = load("m.npz").recipe
    assert (recipe.window, recipe.step, recipe.columns) == (10, 5, ("ax", "ay", "az"))
    rng = np.random.default_rng(5)
    rows = np.concatenate([signal("run", 30, rng), signal("sit", 20, rng)])
    rows = rows.round(3).tolist()
    rows[40][1] = ""
    write_table(cwd / "new.csv", rows)
    main(["predict", "new.csv", "--model", "m.npz", "--no-pictures"])
    err = capsys.readouterr().err
    assert (
        "1 stretch; left out: 1 row with a missing number, 9 rows in no window" in err
    )
    lines = (cwd / "out" / "predictions.csv").read_text().splitlines()[1:]
    answers = {line.split(",")[0]: line.split(",")[3] for line in lines}
    assert [*answers] == [f"new.csv@0#{k}" for k in range(7)]
    del answers["new.csv@0#5"]  # half of it is another activity
    assert [*answers.values()] == 5 * ["run"] + ["sit"]
    write_table(cwd / "new.csv", [["", 1, 2], [1, "", 2]])
    with pytest.raises(SystemExit, match="new.csv: a number is missing in each row"):
        main(["predict", "new.csv", "--model", "m.npz", "--no-pictures"])


def test_what_lies_beside_recordings_costs_none_of_them(cwd, capsys):
    """As a picture that was drawn of them."""
    for name in ("days", "new"):
        write_day(cwd / name / "day.csv")
        (cwd / name / "plots").mkdir()
        for path in (cwd / name / "plot.png", cwd / name / "plots" / "plot.png"):
            Image.fromarray(np.zeros((8, 8), np.uint8)).save(path)
        np.save(cwd / name / "other.npy", np.zeros((9, 3)))
    learning = ["predict", "new", "--data", "days", "--save", "m.npz"]
    main([*learning, *RECORDING, *QUICK])
    main(["predict", "new", "--model", "m.npz", "--no-pictures"])
    for out in ("out", "out-2"):
        answers = (cwd / out / "predictions.csv").read_text()
        assert answers.count("day.csv@") > 20 and "png" not in answers


def test_a_model_learns_more_recordings_as_those_that_it_learned(cwd, capsys):
    """It holds then what a model of all recordings with the same choices holds."""
    usual = [*RECORDING, *OF_SUBJECT, *QUICK]
    for seed, name in enumerate(["one/day.csv", "both/day.csv", "both/later.csv"]):
        write_day(cwd / name, seed=seed // 2)
    for name in ("one", "both"):
        main(["predict", "--data", name, "--save", f"{name}.npz", *usual])
    capsys.readouterr()
    labelled = ["--label-column", "activity", *OF_SUBJECT]
    learning = ["add", "both/later.csv", "--model", "one.npz", "--save", "more.npz"]
    main([*learning, *labelled])
    printed, err = capsys.readouterr()
    assert "84 sets more, 3 classes" in printed
    assert "1 recording of 480 rows: 12 stretches of one activity and subject" in err
    more = load("more.npz")
    whole = load("both.npz")
    np.testing.assert_array_equal(more.points.collection.X, whole.points.collection.X)
    for name in ("names", "clips", "groups"):
        assert getattr(more, name) == getattr(whole, name)
    assert more.labels.tolist() == whole.labels.tolist()
    for path in ("both/later.csv", "both"):  # folders may hold recordings too
        learning[1] = path
        (cwd / "more.npz").unlink(missing_ok=True)
        with pytest.raises(SystemExit, match="--label-column names"):
            main(learning)
    main(["predict", "one/day.csv", "--model", "one.npz", *labelled])
    lines = (cwd / "out" / "predictions.csv").read_text().splitlines()
    assert lines[0].startswith("clip,group,start,end,answer,")
    assert lines[1].startswith("day.csv@0#0,1,")


@pytest.mark.parametrize(
    "options, message",
    [
        (["--group-column", "x"], "--group-column goes with --label-column"),
        (
            ["--label-column", "x", "--labels", "day.csv"],
            "--label-column and --labels exclude",
        ),
        ([*RECORDING, *OF_SUBJECT, "--group-by", "x"], "exclude each other"),
    ],
)
def test_options_of_recordings_go_together(cwd, capsys, options, message):
    write_day(cwd / "day.csv")
    with pytest.raises(SystemExit, match="^2$"):
        main(["compare", ".", *options])
    assert message in capsys.readouterr().err


def test_a_recording_without_a_column_of_labels_is_told_of_the_option(cwd):
    write_day(cwd / "day.csv")
    with pytest.raises(SystemExit, match="day.csv is a table: --label-column names"):
        main(["compare", "day.csv"])


def test_clusters_of_few_channels_are_told_apart(cwd, capsys):
    """By weights: a dimension of all channels makes all sets the same."""
    rng = np.random.default_rng(0)
    (cwd / "flat").mkdir()
    for k in range(12):
        rows = signal([*DIRECTIONS][k % 3], 30, rng)
        write_table(cwd / "flat" / f"{k:02}.csv", rows, "ax,ay,az")
    main(["cluster", "flat", "-k", "3", "--no-pictures"])
    assert ": clusters of 4 + 4 + 4\n" in capsys.readouterr().out
    main(["cluster", "flat", "-k", "3", "--no-pictures", "--p", "3"])
    assert "apart; a smaller --p, or --stack, may" in capsys.readouterr().out


# ------------------------------------------------------------------ arrays of channels


def arrays_of_signals(n=24, length=30):
    """X (n, time, channels) and y (n,)."""
    rng = np.random.default_rng(0)
    y = np.array([*DIRECTIONS])[np.arange(n) % 3]
    return np.stack([signal(label, length, rng) for label in y]), y


@pytest.mark.parametrize(
    "axes", ["n,time,channels", "n,channels,time", "time,channels,n"]
)
def test_arrays_are_read_by_their_axes(cwd, axes):
    X, y = arrays_of_signals()
    usual = ["n", "time", "channels"]
    order = [usual.index(name) for name in axes.split(",")]
    np.savez("X.npz", X=X.transpose(order), y=y)
    clips, splits = load_npz(cwd / "X.npz", axes=axes)
    assert splits is None and [clip.label for clip in clips] == y.tolist()
    for clip, rows in zip(clips, X):
        np.testing.assert_array_equal(clip.sources[0], rows)
    np.save("X.npy", X.transpose(order))
    _, (new, *_) = read_sets(cwd / "X.npy", axes=axes)
    np.testing.assert_array_equal(new.sources[0], X[0])


def test_both_ways_round_give_the_same_table(cwd, capsys):
    """aeon has channels first, tslearn time."""
    X, y = arrays_of_signals()
    np.savez("tslearn.npz", X=X, y=y)
    np.savez("aeon.npz", X=X.swapaxes(1, 2), y=y)
    usual = ["--repeats", "2", *QUICK]
    tables = []
    for words in (["tslearn.npz"], ["aeon.npz", "--axes", "n,channels,time"]):
        main(["compare", *words, *usual])
        out, err = capsys.readouterr()
        tables.append(re.findall(r"nearest subspace +(\d+\.\d +\d\.\d)", out))
        assert "24 clips of 3 classes, 720 frames of 3 features" in err
        assert "looks transposed" not in err
    assert tables[0] == tables[1] == ["100.0  0.0"]
    main(["compare", "aeon.npz", *usual])
    err = capsys.readouterr().err
    assert "all clips have 3 frames of 30 features, which looks transposed" in err
    assert "--axes channels,time says so, or n,channels,time of one array" in err


def test_clips_in_files_have_axes_too(cwd, capsys):
    X, y = arrays_of_signals()
    for i, (rows, label) in enumerate(zip(X, y)):
        (cwd / "data" / label).mkdir(parents=True, exist_ok=True)
        np.save(cwd / "data" / label / f"{i}.npy", rows.T)
    learning = [
        "predict",
        "--data",
        "data",
        "--save",
        "m.npz",
        "--axes",
        "channels,time",
    ]
    main([*learning, *QUICK])
    assert "720 frames of 3 features" in capsys.readouterr().err
    np.save("new.npy", X[1].T)
    main(["predict", "new.npy", "--model", "m.npz", "--no-pictures"])
    assert re.search(r"new\.\w+: walk; probability 0", capsys.readouterr().out)
    np.save("new.npy", X[:2])
    with pytest.raises(
        SystemExit, match="must have the axes channels,time that are nam"
    ):
        main(["predict", "new.npy", "--model", "m.npz"])


def test_colour_films_in_files_have_axes_too(cwd):
    """As MATLAB keeps them."""
    films = np.random.default_rng(0).integers(256, size=(2, 8, 9, 3, 5), dtype=np.uint8)
    for turned, film in zip((True, False), films):
        np.save(f"{turned}.npy", film if turned else np.moveaxis(film, 3, 0))
    for axes, name in [
        ("height,width,channels,time", "True.npy"),
        ("time,height,width,channels", "False.npy"),
    ]:
        clip = find_new_clips(cwd / name)[0]
        collection = build_all([clip], Recipe(2, axes=axes))
        assert collection.frame == (8, 9) and collection.sets[0].shape == (5, 72)
    wrong = build_all(find_new_clips(cwd), Recipe(2, axes=axes))
    assert "(8, 9, 3, 5)" in wrong.unusable["True.npy"]


def test_a_model_of_an_array_answers_arrays_of_the_same_axes(cwd, capsys):
    X, y = arrays_of_signals()
    np.savez("aeon.npz", X=X.swapaxes(1, 2), y=y)
    np.savez("new.npz", X=X[:3].swapaxes(1, 2))
    learning = ["predict", "new.npz", "--data", "aeon.npz", "--save", "m.npz"]
    main([*learning, "--axes", "n,channels,time", *QUICK])
    first = capsys.readouterr().out
    main(["predict", "new.npz", "--model", "m.npz", "--no-pictures"])
    assert capsys.readouterr().out == first
    answers = re.findall(r"^set \d  (\w+) ", first, re.M)
    assert answers == ["sit", "walk", "run"]
    X, y = arrays_of_signals(30)
    np.savez("more.npz", X=X[24:].swapaxes(1, 2), y=y[24:])
    main(["add", "more.npz", "--model", "m.npz", "--save", "m2.npz"])
    assert "6 sets more, 3 classes" in capsys.readouterr().out


def test_sets_that_are_filled_up_by_nan_end_where_they_end(cwd):
    X, y = arrays_of_signals()
    X[2, 20:] = np.nan
    X[3, 4, 1] = np.nan  # no filling: reading tells of it
    np.savez("X.npz", X=X, y=y)
    clips, _ = load_npz(cwd / "X.npz")
    assert [len(clip.sources[0]) for clip in clips[1:4]] == [30, 20, 30]
    np.savez("one.npz", X=X[:, :, 0], y=y)
    clips, _ = load_npz(cwd / "one.npz")
    assert clips[2].sources[0].shape == (20, 1)


@pytest.mark.parametrize(
    "arrays, axes, message",
    [
        (
            {"X": np.zeros((4, 5, 6, 7, 8)), "y": np.arange(4)},
            None,
            "n,time,channels, n among them",
        ),
        (
            {"X": np.zeros((4, 5))},
            "n,channels,time",
            "axes n,channels,time, .* got float64",
        ),
        ({"X": np.zeros((4, 5))}, "time,channels", "time,channels, n among them"),
        (
            {"X": np.zeros((4, 0, 3)), "y": np.arange(4)},
            None,
            "X must hold real numbers",
        ),
        ({"X": np.array(["a"])}, None, "X must hold real numbers"),
        ({"X": np.zeros((4, 5, 6)), "y": np.array([None] * 4)}, None, "y.astype.str"),
        (
            {"frames": np.zeros((4, 5)), "offset": [0, 2, 4]},
            "n,time",
            "to have axes, got",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(cwd, arrays, axes, message):
    np.savez("X.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_npz(cwd / "X.npz", axes=axes)


@pytest.mark.parametrize(
    "axes", ["n,channels", "time", "n,time,time", "n,time,rows", ""]
)
def test_axes_are_known_names_with_time(cwd, capsys, axes):
    with pytest.raises(SystemExit, match="^2$"):
        main(["compare", ".", "--axes", axes])
    assert "axes must be two or more of n, time, channels" in capsys.readouterr().err


def test_files_with_other_orders_of_columns_are_read_by_the_names_of_the_first(
    folders, capsys
):
    rng = np.random.default_rng(1)
    for i, label in enumerate(DIRECTIONS):
        rows = signal(label, 20, rng)[:, [2, 0, 1]]
        write_table(folders.parent / "new" / f"{i}.csv", rows, "az,ax,ay")
    main(["predict", "new", "--data", "data", *QUICK])
    out = capsys.readouterr().out
    assert re.findall(r"^\d.csv  (\w+) ", out, re.M) == [*DIRECTIONS]


def test_rows_without_a_group_are_left_out_and_the_others_keep_theirs(cwd, capsys):
    rng = np.random.default_rng(0)
    rows = []
    for person in ["a", "b", "c", ""]:
        for label in DIRECTIONS:
            rows += [[*values, label, person] for values in signal(label, 30, rng)]
    write_table(cwd / "day.csv", rows, "ax,ay,az,activity,person")
    words = ["--label-column", "activity", "--group-column", "person", "--window", "10"]
    main(["compare", "day.csv", *words, "--repeats", "1", *QUICK])
    out, err = capsys.readouterr()
    assert "left out: 90 rows without person" in err
    assert "3 splits: one group left out at a time" in out and "3 groups" in out


@pytest.mark.parametrize(
    "cells", [["0", "1", "", *map(str, range(3, 30))], [*map(str, range(21))]]
)
def test_a_clock_with_a_gap_and_one_of_twenty_steps_are_named(cwd, capsys, cells):
    rows = [["sit", cell, 1 + k % 3] for k, cell in enumerate(cells)]
    write_table(cwd / "day.csv", rows, "act,t,ax")
    labelled_stretches(cwd / "day.csv", Recipe(2, window=5), "act")
    assert "column t rises by even steps" in capsys.readouterr().err


def test_rows_between_windows_that_do_not_touch_are_in_none(cwd, capsys):
    rows = [[i % 2, i % 3, "walk"] for i in range(21)]
    write_table(cwd / "day.csv", rows, "x,y,activity")
    labelled_stretches(cwd / "day.csv", Recipe(1, window=5, step=8), "activity")
    assert "6 rows in no window" in capsys.readouterr().err


def test_a_row_without_a_label_and_a_number_is_left_out_for_its_label(cwd, capsys):
    rows = [[1, 2, "sit"]] * 9 + [["", 2, ""]] + [[2, 1, "run"]] * 9
    write_table(cwd / "day.csv", rows, "x,y,act")
    labelled_stretches(cwd / "day.csv", Recipe(1, window=3), "act")
    err = capsys.readouterr().err
    assert "left out: 1 row without act" in err and "missing number" not in err
