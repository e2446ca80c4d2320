"""A first look, splits shared by processes, and what a stop leaves behind."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from docs.sources import ROOT
from grassmann_classify import evaluation
from grassmann_classify.__main__ import main
from grassmann_classify.learning import fit
from grassmann_classify.recipes import shortened
from grassmann_classify.settings import Settings
from grassmann_classify.words import to_stderr

FILES = ("results.json", "predictions.csv", "report.html")
ASKED = [
    "--no-pictures",
    "--features",
    "raw",
    "--p",
    "1",
    "2",
    "--lam",
    "0.1",
    "--C",
    "1",
]


def clips_of(side=16, n=16, noise=40):
    """n sets of 9 to 11 images of two classes, and their labels."""
    rng = np.random.default_rng(0)
    label = np.repeat(["left", "right"], n // 2)
    bright = 60 * (np.arange(side) * 2 // side)
    sets = []
    for c in label:
        pattern = bright if c == "right" else bright[::-1]
        size = rng.integers(9, 12), side, side
        sets.append(np.clip(90 + pattern + noise * rng.standard_normal(size), 0, 255))
    return [clip.astype(np.uint8) for clip in sets], label


def file_of(folder, n_splits, **how):
    """The path of an .npz file with so many splits."""
    sets, label = clips_of(**how)
    rng = np.random.default_rng(1)
    arrays = {"frames": np.concatenate(sets), "label": label}
    arrays["offset"] = np.concatenate([[0], np.cumsum([len(clip) for clip in sets])])
    for k in range(n_splits):
        halves = [rng.permutation(np.flatnonzero(label == c)) for c in np.unique(label)]
        arrays[f"train{k}"] = np.concatenate([half[::2] for half in halves])
        arrays[f"test{k}"] = np.concatenate([half[1::2] for half in halves])
    path = folder / "clips.npz"
    np.savez(path, **arrays)
    return str(path)


def kept_in(folder):
    """results.json without what differs from run to run, predictions.csv."""
    kept = json.loads((folder / "results.json").read_text())
    methods = kept["methods"]
    for row in methods.values():
        del row["seconds"]
    table = (folder / "predictions.csv").read_text()
    return methods, kept["comparison"], table


def test_processes_give_what_one_gives(tmp_path, capsys):
    """The same numbers and lines; one line may tell of several splits that are done."""
    path = file_of(tmp_path, 3)
    kept = []
    progress = []
    for jobs in "12":
        out = tmp_path / jobs
        words = ["--jobs", jobs, "--verbose", *ASKED]
        main(["compare", path, "--out", str(out), *words])
        printed = capsys.readouterr()
        lines = [line.partition("; about")[0] for line in printed.err.splitlines()]
        progress.append([line for line in lines if line.startswith("split")])
        kept.append(kept_in(out))
    assert kept[0] == kept[1] and progress[0][-1] == progress[1][-1]
    rows = [[line for line in lines if "best so far" not in line] for lines in progress]
    assert sorted(rows[0]) == sorted(rows[1]) and len(rows[0]) == 36
    assert "kgSC" in "".join(progress[0][9:12]) and len(progress[0]) == 36 + 3


# several splits may be done at once, which one line says
SOME = tuple(f"split {k} of 24" for k in range(2, 12))


def run_until(path, out, until):
    """A run in a session of its own, and its lines on stderr until one begins so."""
    words = ["compare", path, "--out", str(out), "--jobs", "2", *ASKED]
    words += ["--methods", "gsc,glc"]
    process = subprocess.Popen(
        [sys.executable, "-m", "grassmann_classify", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith(until):
            break
    return process, "".join(lines)


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal to a group")
def test_ctrl_c_leaves_the_splits_that_are_done(tmp_path):
    """As a terminal does, it reaches the processes of the team too; none is left."""
    out = tmp_path / "out"
    process, before = run_until(file_of(tmp_path, 24), out, SOME)
    os.killpg(process.pid, signal.SIGINT)
    printed, more = process.communicate(timeout=200)  # until all have closed the pipes
    assert process.returncode == 0, before + more
    assert "Traceback" not in more
    (n_done,) = re.findall(r"after (\d+) of 24 splits", printed)
    methods, comparison, table = kept_in(out)
    assert {len(row["accuracy"]) for row in methods.values()} == {int(n_done)}
    splits = {line.split(",")[1] for line in table.splitlines()[1:]}
    answered = [line for line in table.splitlines()[1:] if not line.endswith(",")]
    assert len(splits) >= int(n_done) and len(answered) == 8 * int(n_done)
    assert all((out / name).stat().st_size for name in FILES)
    assert f"after {n_done} of 24 splits" in (out / "report.html").read_text()
    assert json.loads((out / "results.json").read_text())["splits_done"] == int(n_done)


@pytest.mark.skipif(os.name != "posix", reason="it looks for processes in /proc")
def test_a_process_that_dies_leaves_what_is_done(tmp_path):
    """In a sentence, with the table."""
    process, before = run_until(file_of(tmp_path, 24), tmp_path / "out", SOME)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    workers = [
        int(child)
        for child in children.split()
        if "LokyProcess" in Path(f"/proc/{child}/cmdline").read_text()
    ]
    os.kill(workers[0], signal.SIGKILL)
    printed, more = process.communicate(timeout=200)
    assert process.returncode == 0, before + more
    assert re.search(r"after \d+ of 24 splits", printed) and "gSC" in printed
    assert more.count("a process ended, perhaps for want of memory") == 1
    assert "Traceback" not in more and "pipe" not in more.lower()


def test_rows_of_the_first_split_are_kept_beside_a_first_look(
    tmp_path, capsys, monkeypatch
):
    """Where time is over, or Ctrl-C comes, within the first split."""
    searched = evaluation.records_of
    monkeypatch.setattr(
        evaluation,
        "records_of",
        lambda work, i, methods: [
            row
            for row in (searched(work, i, methods) if i == 0 else [])
            if row[0].startswith(("frames", "gSC"))
        ],
    )
    out = tmp_path / "out"
    main(["compare", file_of(tmp_path, 2), "--out", str(out), "--jobs", "1", *ASKED])
    printed = capsys.readouterr().out
    assert "2 of 12 rows of the first split" in printed
    assert "\ngLC: of a first look" in printed
    assert "\ngSC: of a first look" not in printed
    methods, _, table = kept_in(out)
    assert methods["gSC"]["chosen"][0]["lam"] == 0.1
    assert methods["gLC"]["chosen"] == [{}]
    assert len(table.splitlines()) == 1 + 8


def test_seconds_bound_all_splits(tmp_path, capsys):
    path = file_of(tmp_path, 60)
    out = tmp_path / "out"
    main(["compare", path, "--out", str(out), "--seconds", "2", "--jobs", "2", *ASKED])
    kept = json.loads((out / "results.json").read_text())
    assert kept["splits"] == (1 if kept["provisional"] else 60)
    assert kept["splits_done"] < 60
    printed = capsys.readouterr().out
    how_far = f"after {kept['splits_done']} of 60 splits"
    if kept["splits_done"]:
        assert how_far in printed
    else:
        assert "provisional: one split" in printed or "of the first split" in printed


def test_results_alone_go_to_stdout_and_a_program_may_silence_the_rest(tmp_path, capfd):
    path = file_of(tmp_path, 1)
    sets, label = clips_of()
    words = ["--methods", "nearest,gsc", "--C", "1", "--recipe", "plain"]
    words += ["--no-pictures", "--p", "2", "--out", str(tmp_path / "out")]
    with contextlib.redirect_stderr(io.StringIO()):
        fit(sets, label, settings=Settings(methods=["nearest"], kernels=False))
        for name in ("compare", "predict", "check"):
            given = ["predict", path, "--data"] if name == "predict" else [name]
            options = words[4:] if name == "check" else words
            main([*given, path, *options])
    out, err = capfd.readouterr()
    assert not err
    assert [line for line in out.splitlines() if "accuracy, %" in line]
    assert "reading" not in out and "split 1 of" not in out and "sets to" not in out


# --------------------------------------------------------------------------- processes


# ------------------------------------------------------------------- computed but once


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shortened_rows_have_the_same_inner_products(dtype):
    rng = np.random.default_rng(0)
    sets = [100 + rng.standard_normal((n, 300)).astype(dtype) for n in (7, 1, 12)]
    sets[2][3] = sets[2][5]
    short = shortened(sets)
    assert [rows.shape for rows in short] == [(7, 20), (1, 20), (12, 20)]
    assert {rows.dtype for rows in short} == {np.dtype(dtype)}
    whole = np.concatenate(sets).astype(float)
    reduced = np.concatenate(short).astype(float)
    np.testing.assert_allclose(reduced @ reduced.T, whole @ whole.T, rtol=2e-6)
    assert len(shortened([rows[:, :79] for rows in sets])[0][0]) == 79  # nothing to win


def test_splits_of_a_file_hold_where_a_set_is_left_out(tmp_path):
    """The numbers of sets are those in the file."""
    sets, label = clips_of()
    sets[2] = np.full(sets[2].shape, np.nan)
    even = np.arange(0, 16, 2)
    np.savez(
        tmp_path / "c.npz",
        frames=np.concatenate([rows.astype(float) for rows in sets]),
        offset=np.concatenate([[0], np.cumsum([len(rows) for rows in sets])]),
        label=label,
        train0=even,
        test0=even + 1,
    )
    words = ["--skip", "--methods", "nearest", "--no-kernels", "--recipe", "plain"]
    out = tmp_path / "out"
    main(["compare", str(tmp_path / "c.npz"), *words, *ASKED, "--out", str(out)])
    lines = (out / "predictions.csv").read_text().splitlines()[1:]
    assert re.findall(r"\bset \d+", " ".join(lines)) == [f"set {i}" for i in even + 1]


@pytest.fixture
def slow_rows(monkeypatch):
    """The names of the rows that began; each takes half a second longer than it would."""
    began = []
    attempt = evaluation.attempt

    def slowly(method, *arguments):
        began.append(method.name)
        time.sleep(0.5)
        return attempt(method, *arguments)

    monkeypatch.setattr(evaluation, "attempt", slowly)
    return began


def test_seconds_end_the_first_look(tmp_path, capsys, slow_rows):
    path = file_of(tmp_path, 2)
    main(["compare", path, "--out", str(tmp_path / "out"), "--seconds", "1", *ASKED])
    printed = capsys.readouterr()
    assert "provisional: one split" in printed.out
    assert "1 seconds are over: splits, rows and settings" in printed.err
    assert 1 <= len(slow_rows) <= 3, "a row takes half a second"


def test_nobody_reads_what_is_told_to_a_closed_stderr(capsys, monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    for stream in (None, Broken()):
        monkeypatch.setattr(sys, "stderr", stream)
        to_stderr("advice")
    assert not capsys.readouterr().out
