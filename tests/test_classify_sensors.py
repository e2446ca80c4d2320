"""Sensors: tables, long recordings cut into windows, arrays of channels."""

import re

import numpy as np
import pytest

from grassmann_classify.__main__ import main
from grassmann_classify.building import build, build_all
from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.finding import find_clips, find_labelled, find_new_clips
from grassmann_classify.model_file import load

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
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def folders(here):
    """data/sit/0.csv, ...: three activities, six tables each, with a clock."""
    rng = np.random.default_rng(0)
    for label in DIRECTIONS:
        for i in range(6):
            rows = np.column_stack([np.arange(20 + i), signal(label, 20 + i, rng)])
            write_table(here / "data" / label / f"{i}.csv", rows, "time,ax,ay,az")
    return here / "data"


def test_folders_of_tables_are_clips(folders, capsys):
    main(["compare", "data", "--repeats", "2", "--columns", "ax", "ay", "az", *QUICK])
    out, err = capsys.readouterr()
    assert "18 clips of 3 classes, 405 frames of 3 features" in err
    assert "18 sets, 3 classes, subspaces of R^3 of dimension 1, 2 splits" in out
    assert re.search(r"nearest subspace +100\.0", out)


def test_a_broken_table_is_named_with_its_line_and_the_rule(folders, capsys):
    text = (folders / "sit" / "3.csv").read_text().splitlines()
    (folders / "sit" / "3.csv").write_text("\n".join([*text[:7], "7,1,,2", *text[8:]]))
    main(["compare", "data", "--repeats", "1", *QUICK])
    err = capsys.readouterr().err
    assert "1 clip cannot be read" in err
    assert "3.csv: line 8: column ay must hold a finite number, got ''" in err


def test_a_model_keeps_the_columns_that_it_was_learned_with(folders, capsys):
    columns = ["--columns", "ax", "ay", "az"]
    main(["predict", "--data", "data", "--save", "m.npz", *columns, *QUICK])
    assert load("m.npz").recipe.columns == ("ax", "ay", "az")
    rows = signal("walk", 30, np.random.default_rng(1))
    rows = np.column_stack([rows[:, 2], np.full(30, 7), rows[:, :2]])
    write_table(folders.parent / "new.csv", rows, "az,hours,ax,ay")
    main(["predict", "new.csv", "--model", "m.npz", "--no-pictures"])
    assert "walk: 1 clip" in capsys.readouterr().out
    write_table(folders.parent / "new.csv", rows[:, :3], "az,hours,ax")
    with pytest.raises(
        SystemExit, match="new.csv: must have one column ay, got the col"
    ):
        main(["predict", "new.csv", "--model", "m.npz"])


def test_tables_beside_other_clips_are_none(folders):
    """They tell something about these, as a file of labels does."""
    assert len(find_clips(folders)) == len(find_new_clips(folders)) == 18
    np.save(folders / "sit" / "clip.npy", np.zeros((5, 3)))
    np.save(folders / "run" / "clip.npy", np.zeros((5, 3)))
    names = [clip.name for clip in find_new_clips(folders)]
    assert names == ["run/clip.npy", "sit/clip.npy"]
    assert [clip.name for clip in find_clips(folders)] == names


def test_the_file_of_labels_among_tables_is_no_clip(here):
    for name in "ab":
        write_table(here / "data" / f"{name}.csv", np.eye(3))
    labels = here / "data" / "labels.csv"
    labels.write_text("clip,label\na,sit\nb.csv,run\n")
    found, _ = find_labelled(here / "data", labels)
    assert {clip.name: clip.label for clip in found} == {"a.csv": "sit", "b.csv": "run"}


def test_windows_overlap_by_the_step():
    rows = np.random.default_rng(0).standard_normal((23, 3))
    clip = Clip("x", None, None, [rows])
    made = build(clip, Recipe(2, run=10, step=5), keep_rows=True)
    assert len(made.bases) == 3
    for k in range(3):
        np.testing.assert_array_equal(made.rows[k], rows[5 * k : 5 * k + 10])
    assert len(build(clip, Recipe(2, run=10)).bases) == 2
    assert build_all([clip], Recipe(2, run=10, step=4)).names == [
        *(f"x#{k}" for k in range(4))
    ]


def test_windows_of_a_table_stay_together(folders, capsys):
    """--window is --run; sets of one table are in one part of a split."""
    main(["compare", "data", "--window", "10", "--step", "5", "--repeats", "1", *QUICK])
    assert "57 sets, 3 classes" in capsys.readouterr().out  # 3, 3, 3, 3, 3, 4 a class
    lines = (folders.parent / "out" / "predictions.csv").read_text().splitlines()[1:]
    tested = [line.split("#")[0] for line in lines]
    assert {tested.count(name) for name in tested} <= {3, 4}
    with pytest.raises(SystemExit):
        main(["compare", "data", "--step", "5"])
    assert "--step goes with --window, got --step 5 alone" in capsys.readouterr().err
