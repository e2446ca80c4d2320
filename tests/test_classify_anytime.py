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

import numpy as np
import pytest

from docs.sources import ROOT
from grassmann_classify import evaluation, recipes, search
from grassmann_classify import sets as of_sets
from grassmann_classify.__main__ import main
from grassmann_classify.baseline_rows import every_method
from grassmann_classify.clips import Collection, Recipe
from grassmann_classify.evaluation import evaluate
from grassmann_classify.model import fit
from grassmann_classify.recipes import recipes_of, shortened
from grassmann_classify.search import ALL_RIGHT
from grassmann_classify.sets import Inputs
from grassmann_classify.settings import Settings
from grassmann_classify.workers import Team, computed_once
from grassmann_sc import subspaces

FILES = ("results.json", "predictions.csv", "codes.npz", "report.html")
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
    return [one.astype(np.uint8) for one in sets], label


def file_of(folder, n_splits, **how):
    """The path of an .npz file with so many splits."""
    sets, label = clips_of(**how)
    rng = np.random.default_rng(1)
    arrays = {"frames": np.concatenate(sets), "label": label}
    arrays["offset"] = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    for k in range(n_splits):
        halves = [rng.permutation(np.flatnonzero(label == c)) for c in np.unique(label)]
        arrays[f"train{k}"] = np.concatenate([one[::2] for one in halves])
        arrays[f"test{k}"] = np.concatenate([one[1::2] for one in halves])
    path = folder / "clips.npz"
    np.savez(path, **arrays)
    return str(path)


def kept_in(folder):
    """results.json without what differs from run to run, predictions.csv, codes."""
    kept = json.loads((folder / "results.json").read_text())
    methods = kept["methods"]
    for one in methods.values():
        del one["seconds"]
    with np.load(folder / "codes.npz") as file:
        codes = {name: file[name] for name in file}
    table = (folder / "predictions.csv").read_text()
    return methods, kept["comparison"], table, codes


def test_processes_give_what_one_gives(tmp_path, capsys):
    """The same numbers, and the same messages in the same order."""
    path = file_of(tmp_path, 3)
    found = []
    said = []
    for jobs in "12":
        out = tmp_path / jobs
        main(["compare", path, "--out", str(out), "--jobs", jobs, *ASKED])
        printed = capsys.readouterr()
        lines = printed.err.splitlines()
        said.append([line for line in lines if line.startswith("split")])
        found.append(kept_in(out))
    *alone, codes = found[0]
    *shared, again = found[1]
    assert alone == shared and said[0] == said[1]
    assert "kgSC" in said[0][6] + said[0][9] and len(said[0]) > 30
    assert codes.keys() == again.keys()
    for name, array in codes.items():
        if array.dtype.kind == "f":
            np.testing.assert_allclose(again[name], array, atol=1e-9)
        else:
            assert np.array_equal(array, again[name])


@pytest.mark.skipif(os.name != "posix", reason="Ctrl-C is a signal to a group")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_leaves_the_splits_that_are_done(tmp_path, jobs):
    """As a terminal does, it reaches the processes of the team too; none is left."""
    path = file_of(tmp_path, 40)
    out = tmp_path / "out"
    asked = ["compare", path, "--out", str(out), "--jobs", jobs, *ASKED]
    process = subprocess.Popen(
        [sys.executable, "-m", "grassmann_classify", *asked],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("split 2 of 40"):
            break
    os.killpg(process.pid, signal.SIGINT)
    printed, more = process.communicate(timeout=200)  # until all have closed the pipes
    assert process.returncode == 0, "".join(seen) + more
    assert "Traceback" not in more
    (done,) = re.findall(r"after (\d+) of 40 splits", printed)
    methods, comparison, table, _ = kept_in(out)
    assert {len(found["accuracy"]) for found in methods.values()} == {int(done)}
    splits = {line.split(",")[1] for line in table.splitlines()[1:]}
    answered = [line for line in table.splitlines()[1:] if not line.endswith(",")]
    assert len(splits) >= int(done) and len(answered) == 8 * int(done)
    assert all((out / name).stat().st_size for name in FILES)
    assert f"after {done} of 40 splits" in (out / "report.html").read_text()
    assert json.loads((out / "results.json").read_text())["splits_done"] == int(done)


def test_seconds_bound_all_splits(tmp_path, capsys):
    path = file_of(tmp_path, 60)
    out = tmp_path / "out"
    main(["compare", path, "--out", str(out), "--seconds", "4", "--jobs", "2", *ASKED])
    kept = json.loads((out / "results.json").read_text())
    assert kept["splits"] == 60 and kept["splits_done"] < 60
    printed = capsys.readouterr().out
    how_far = f"after {kept['splits_done']} of 60 splits"
    assert (how_far if kept["splits_done"] else "provisional: one split") in printed


def test_results_alone_go_to_stdout_and_a_program_may_silence_the_rest(tmp_path, capfd):
    path = file_of(tmp_path, 1)
    sets, label = clips_of()
    words = ["--methods", "nearest,gsc", "--C", "1", "--recipe", "plain"]
    words += ["--no-pictures", "--p", "2", "--out", str(tmp_path / "out")]
    with contextlib.redirect_stderr(io.StringIO()):
        fit(sets, label, settings=Settings(methods=["nearest"], kernels=False))
        for name in ("compare", "predict", "check"):
            given = ["predict", path, "--data"] if name == "predict" else [name]
            asked = words[4:] if name == "check" else words
            main([*given, path, *asked])
    out, err = capfd.readouterr()
    assert not err
    assert [line for line in out.splitlines() if "accuracy in %" in line]
    assert "reading" not in out and "split 1 of" not in out and "sets to" not in out


# --------------------------------------------------------------------------- processes


def doubled(given, i, seconds):
    """Late where i is small: others are done before."""
    time.sleep(0.05 * (3 - i % 4))
    given["numbers"] += 1  # a copy of its own
    yield given["numbers"][i] * 2 - 2
    yield i


def dying(given, i, seconds):
    yield i
    os._exit(3)


def failing(given, i, seconds):
    raise KeyError("no such thing")
    yield


def counting(folder, i, seconds):
    def compute():
        with open(folder / "calls", "a") as file:
            file.write("x")
        time.sleep(0.2)
        return [(np.arange(5.0) + 1, "words")]

    ((numbers, words),) = computed_once(folder, ("key", 0.1), compute)
    yield float(numbers.sum()), words


def test_a_team_gives_results_in_order_and_shares_arrays(tmp_path):
    given = {"numbers": np.arange(100.0), "name": "all", "none": np.empty(0)}
    with Team(2) as team:
        for _ in range(2):
            found = [*team.each(doubled, given, 8)]
            assert [i for i, _ in found] == np.repeat(range(8), 3).tolist()
            assert [one for _, one in found[1::3]] == list(range(8))
            assert [one for _, one in found[2::3]] == [None] * 8
            assert given["numbers"].tolist() == list(range(100))
        with pytest.raises(KeyError, match="no such thing"):
            [*team.each(failing, given, 1)]
    with Team(2) as team, pytest.raises(ValueError, match="ended with status 3"):
        [*team.each(dying, given, 4)]
    with Team(1) as team:
        assert [*team.each(doubled, given, 1)] == [(0, 0.0), (0, 0), (0, None)]


def test_what_several_ask_for_is_computed_once(tmp_path):
    with Team(2) as team:
        found = [one for _, one in team.each(counting, tmp_path, 4) if one is not None]
    assert found == [(15.0, "words")] * 4
    assert (tmp_path / "calls").read_text() == "x"
    with pytest.raises(ZeroDivisionError):
        computed_once(tmp_path, "other", lambda: 1 / 0)
    assert computed_once(tmp_path, "other", lambda: 7) == 7
    assert computed_once(tmp_path, "other", lambda: 8) == 7
    assert computed_once(None, "other", lambda: 8) == 8
    asked = []

    def at_it():
        asked.append(computed_once(tmp_path, "slow", lambda: 9, wait=False))
        return 10

    assert computed_once(tmp_path, "slow", at_it) == 10 and asked == [None]


def test_a_team_stops_at_its_end():
    numbers = {"numbers": np.zeros(1000)}
    for jobs in (1, 2):
        with Team(jobs, time.perf_counter() + 0.5) as team:
            found = [*team.each(doubled, numbers, 1000)]
        assert len(found) < 200


# ------------------------------------------------------------------- computed but once


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shortened_rows_have_the_same_inner_products(dtype):
    rng = np.random.default_rng(0)
    sets = [100 + rng.standard_normal((n, 300)).astype(dtype) for n in (7, 1, 12)]
    sets[2][3] = sets[2][5]
    short = shortened(sets)
    assert [one.shape for one in short] == [(7, 20), (1, 20), (12, 20)]
    assert {one.dtype for one in short} == {np.dtype(dtype)}
    whole = np.concatenate(sets).astype(float)
    found = np.concatenate(short).astype(float)
    np.testing.assert_allclose(found @ found.T, whole @ whole.T, rtol=2e-6)
    assert len(shortened([one[:, :79] for one in sets])[0][0]) == 79  # nothing to win


def inputs_of(sets, label, **more):
    rows = [one.reshape(len(one), -1) / 255 for one in sets]
    spectra = [subspaces.singular_directions(one, 9) for one in rows]
    U, s = (np.stack([one[k][..., :9] for one in spectra]) for k in range(2))
    shape = sets[0].shape[1:]
    collection = Collection(U, rows, None, label, None, shape, None, {}, (U, s))
    found = recipes_of(Recipe(9, fewer=True), shape, 9)
    return Inputs(collection, None, found, None, (0.25,), **more)


def test_descriptors_are_made_once_of_each_set(monkeypatch):
    pytest.importorskip("skimage")
    calls = []
    describe = recipes.describe
    monkeypatch.setattr(
        recipes,
        "describe",
        lambda clip, recipe: calls.append(recipe.features) or describe(clip, recipe),
    )
    sets, label = clips_of(side=24)
    inputs = inputs_of(sets, label, later=True)
    assert inputs.names == ["raw"] and not calls
    inputs.complete()
    assert len(inputs.names) == 12
    for name in inputs.names:
        inputs.sets(name)
        inputs.points(name)
        inputs.few(name, short=True)
    assert sorted(calls) == ["hog"] * 16 + ["lbp"] * 16


def test_gram_matrices_of_shortened_rows_are_those_of_the_rows(monkeypatch):
    pytest.importorskip("skimage")
    sets, label = clips_of(side=40)
    found = []
    for most in (0, 4000):
        monkeypatch.setattr(recipes, "MOST_SHORTENED", most)
        inputs = inputs_of(sets, label)
        inputs.compute_kernels("raw, stack 4", [of_sets.kernels.rbf(0.001)])
        grams = [K for K, _ in inputs.kernels.values()]
        found.append([*inputs.gram.values(), *inputs.weighted.values(), *grams])
    assert len(found[0]) == len(found[1]) > 60
    for whole, short in zip(*found):
        np.testing.assert_allclose(short, whole, atol=1e-7)


@pytest.mark.parametrize("why", ["all right", "some wrong", "few"])
def test_no_kernel_is_searched_where_the_linear_one_has_all_of_many_right(
    why, monkeypatch
):
    monkeypatch.setattr(search, "ENOUGH", 9 if why == "few" else 8)
    searched = why != "all right"
    sets, label = clips_of(noise=5)
    if why == "some wrong":  # labels that say nothing
        label = np.random.default_rng(0).permutation(label)
    inputs = inputs_of(sets, label)
    half = np.arange(16) % 2
    parts = np.flatnonzero(half == 0), np.flatnonzero(half)
    assert len(np.unique(label[parts[0]])) == 2
    settings = Settings(methods=["kgSC", "nearest"])
    place = (label == "right").astype(int)
    rows = evaluate(inputs, place, None, *parts, every_method(inputs), settings)
    rows = {row.method.name: row for row in rows}
    chosen = rows["kgSC, labelled sets as atoms"].chosen
    assert (chosen.get("others") == ALL_RIGHT) == (not searched)
    assert bool(inputs.kernels) == searched


def test_of_many_sets_large_p_is_tried_of_promising_recipes_alone(monkeypatch):
    """The first recipe and those that it does not beat have all p and spectra."""
    pytest.importorskip("skimage")
    sets, label = clips_of(side=16, n=60, noise=60)
    place = (label == "right").astype(int)
    parts = np.arange(0, 60, 2), np.arange(1, 60, 2)
    settings = Settings(methods=["nearest"], kernels=False)
    found = []
    for many in (10, 1000):
        monkeypatch.setattr(of_sets, "MANY_SETS", many)
        inputs = inputs_of(sets, label)
        filled = {name for name, _ in inputs.weighted}
        assert filled == ({"raw"} if many == 10 else {*inputs.names})
        rows = evaluate(inputs, place, None, *parts, every_method(inputs), settings)
        found.append(next(rows).chosen)
        filled = {name for name, _ in inputs.weighted}
        assert filled >= {"raw", found[-1]["recipe"]}
    assert found[0] == found[1]


def no_kernel(A, B):
    """A kernel that fails, in every process."""
    raise RuntimeError("no such kernel")


def test_a_kernel_that_fails_in_processes_is_left_out_as_in_one(tmp_path, capsys):
    path = file_of(tmp_path, 2)
    words = ["--methods", "kgsc", "--kernels", "--recipe", "plain", *ASKED]
    words += ["--kernel", f"{__name__}:no_kernel"]
    said = []
    for jobs in ("1", "2"):
        out = ["--out", str(tmp_path / jobs), "--jobs", jobs]
        main(["compare", path, *words, *out])
        said.append(capsys.readouterr().out)
    assert said[0].count("no such kernel") == said[1].count("no such kernel") > 0


def test_pictures_of_a_row_whose_kernel_processes_chose_are_drawn(tmp_path):
    rng = np.random.default_rng(0)
    label = np.arange(24) % 2
    # rows of length 1 beside 3: what no subspace tells apart
    sets = [rng.standard_normal((8, 5)) for _ in label]
    sets = [
        (1 + 2 * c) * one / np.linalg.norm(one, axis=1)[:, None]
        for one, c in zip(sets, label)
    ]
    parts = {"train0": np.arange(12), "test0": np.arange(12, 24)}
    parts |= {"train1": np.arange(12, 24), "test1": np.arange(12)}
    np.savez(
        tmp_path / "c.npz",
        frames=np.concatenate(sets),
        offset=8 * np.arange(25),
        label=label,
        **parts,
    )
    words = ["--methods", "kgsc", "--kernels", "--recipe", "plain", "--p", "1"]
    out = tmp_path / "out"
    main(["compare", str(tmp_path / "c.npz"), *words, "--jobs", "2", "--out", str(out)])
    assert (out / "learning.png").exists()
    text = (out / "results.json").read_text()
    chosen = json.loads(text)["methods"]["kgSC, labelled sets as atoms"]["chosen"]
    assert all("gamma" in str(one) for one in chosen)


def test_splits_of_a_file_hold_where_a_set_is_left_out(tmp_path):
    """The numbers of sets are those in the file."""
    sets, label = clips_of()
    sets[2] = np.full(sets[2].shape, np.nan)
    even = np.arange(0, 16, 2)
    np.savez(
        tmp_path / "c.npz",
        frames=np.concatenate([one.astype(float) for one in sets]),
        offset=np.concatenate([[0], np.cumsum([len(one) for one in sets])]),
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
    assert 1 <= len(slow_rows) <= 3, "the vote of those that are done is the third"


def test_seconds_end_the_second_search_of_a_model(tmp_path, capsys, slow_rows):
    """That for the row that says why: of its rows the first alone begins."""
    path = file_of(tmp_path, 0)
    words = ["--methods", "mean_frame", "--save", str(tmp_path / "m.npz"), *ASKED]
    words += ["--out", str(tmp_path / "out"), "--recipe", "plain", "--no-kernels"]
    for seconds, coding in ([], 2), (["--seconds", "0"], 1):
        slow_rows.clear()
        main(["predict", "--data", path, *words, *seconds])
        printed = capsys.readouterr()
        assert len(slow_rows) == 1 + coding
        assert ("0 seconds are over" in printed.err) == bool(seconds)
        assert "why and how sure, by" in printed.out
