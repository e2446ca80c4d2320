"""The README's first block prints what it says; the examples run, and refuse files that do not fit together."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from examples import classify, clips
from subspaces import from_sets

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
METHODS = ["nearest subspace", "gSC, labelled sets as atoms, residuals", "gLC, labelled sets as atoms, residuals",
           "kgSC, labelled sets as atoms, residuals", "kgLC, labelled sets as atoms, residuals",
           "SVM on the projection kernel", "gSC, learned atoms, SVM", "gLC, learned atoms, SVM"]


def blocks(language):
    fenced = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


def accuracies(text):
    """{method: accuracy} from a printed table."""
    return {method: float(number) for method, number in re.findall(r"^(\w.*?\w) {2,}(\d+\.\d) .*\d$", text, re.MULTILINE)}


def small_file(**changes):
    """Arrays of a legal file: 12 sets of 5 to 7 byte images, two classes, two splits."""
    rng = np.random.default_rng(0)
    sizes, label = rng.integers(5, 8, 12), np.repeat(["left", "right"], 6)
    frames = np.concatenate([rng.integers(0, 60, (size, 4, 6)) + 180 * (np.arange(6) // 3 == (c == "right")) for size, c in zip(sizes, label)])
    arrays = {"frames": frames.astype(np.uint8), "offset": np.concatenate([[0], np.cumsum(sizes)]), "label": label,
              "group": np.arange(12), "train0": np.arange(0, 12, 2), "test0": np.arange(1, 12, 2),
              "train1": np.arange(1, 12, 2), "test1": np.arange(0, 12, 2)}
    return {key: value for key, value in {**arrays, **changes}.items() if value is not None}


def write(folder, **changes):
    path = folder / "sets.npz"
    np.savez(path, **small_file(**changes))
    return str(path)


def test_readme_prints_what_it_says(capsys):
    program, output, names = blocks("python")[0], blocks("")[0], {}
    exec(compile(program, "README.md", "exec"), names)
    assert capsys.readouterr().out == output
    exec(compile(blocks("python")[2], "README.md", "exec"), names)
    assert float(capsys.readouterr().out) > 0.9


def test_readme_writes_a_file_that_classify_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a = small_file()
    program = "\n".join(line.strip() for line in blocks("python")[1].splitlines())
    exec(compile(program, "README.md", "exec"), {"frames": a["frames"], "sizes": np.diff(a["offset"]), "labels": a["label"],
                                                 "train": a["train0"], "test": a["test0"]})
    found, pairs = clips.load_npz("FILE.npz")
    assert np.array_equal(np.concatenate([clip.sources[0] for clip in found]), a["frames"]) and len(pairs) == 1
    assert [clip.label for clip in found] == list(a["label"]) and all(clip.group is None for clip in found)


def test_readme_makes_a_tree_that_classify_reads(tmp_path):
    for command in blocks("sh")[0].splitlines():
        assert command.strip().startswith(".venv/bin/python ")
        arguments = shlex.split(command)[1:]
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8",
                              env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"})
        assert done.returncode == 0, done.stderr
    assert "120 sets, 10 classes, 3-dimensional subspaces of R^64, 10 splits" in done.stdout
    assert len(accuracies(done.stdout)) == 4 and min(accuracies(done.stdout).values()) > 90
    assert {"results.json", "codes.npz", "map.png", "atoms.png", "cache"} <= {path.name for path in (tmp_path / "out").iterdir()}


def test_quickstart_prints_the_table_of_the_readme(tmp_path):
    done = subprocess.run([sys.executable, "-m", "examples.quickstart"], cwd=tmp_path, capture_output=True, text=True,
                          encoding="utf-8", env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"})
    assert done.returncode == 0, done.stderr
    printed, promised = accuracies(done.stdout), accuracies(blocks("")[1])
    assert len(printed) == 8 and printed.keys() == promised.keys()
    assert all(abs(printed[method] - promised[method]) <= 0.5 for method in printed), printed
    assert printed["nearest subspace"] < 95
    pictures = {path.name for path in (tmp_path / "out").iterdir()}
    assert pictures == {f"{name}.png" for name in ["atoms", "convergence", "codes", "codes_learned", "angles", "angles_pair"]}


@pytest.mark.parametrize("options", [[], ["--center", "--lam", "0.2", "--neighbors", "3", "40", "--C", "1", "--iterations", "1"],
                                     ["--resample", "5", "--stack", "2"]])
def test_classify_prints_every_method(tmp_path, capsys, options):
    classify.main(["--data", write(tmp_path), "--out", str(tmp_path), "--no-pictures", "--p", "2", "--atoms", "100", *options])
    printed = accuracies(capsys.readouterr().out)
    assert list(printed) == METHODS
    assert printed["nearest subspace"] == 100 or "--center" in options


def test_frames_are_resampled_and_stacked():
    ramp = np.arange(5.0)[:, None, None] * np.ones((5, 2, 3)) + np.eye(2, 3)
    options = classify.parse(["--data", "x.npz", "--p", "2", "--resample", "9", "--stack", "3"])
    prepared, = clips.build(clips.Clip("ramp", "a", None, [ramp]), classify.recipe_of(options), keep_rows=True).rows
    prepared = prepared - np.tile(np.eye(2, 3).ravel(), 3)
    assert prepared.shape == (7, 18) and np.allclose(np.sort(prepared[1])[[0, 6, 12]], [0.5, 1, 1.5])


@pytest.mark.parametrize("group", [None, np.repeat(np.arange(8), 3)])
def test_parameters_are_chosen_on_the_training_part_alone(group):
    """Whatever stands in the test part, the same is chosen; and groups stay together in every fold."""
    rng, label, train, test = np.random.default_rng(0), np.arange(24) % 2, np.arange(15), np.arange(15, 24)
    sets = rng.standard_normal((24, 5, 6))
    X = from_sets(sets, 2)
    options = classify.parse(["--data", "x.npz", "--p", "2", "--kernels"])
    chosen = []
    for label[test] in (0, 1):
        X[test], sets[test] = X[test][::-1], 9 * sets[test][::-1]
        inputs = {"sets": list(sets), "subspaces": X, "gram": classify.core.projection_kernel(X)}
        chosen.append([found for *_, found, _ in classify.evaluate(inputs, label, group, train, test, classify.methods, options)])
    assert chosen[0] == chosen[1] and all(chosen[0][1:])
    for first, second in classify.folds(label[train], None if group is None else group[train], 0):
        assert sorted([*first, *second]) == list(range(15))
        assert group is None or not np.intersect1d(group[first], group[second]).size


def test_classify_takes_features_and_a_single_split(tmp_path, capsys):
    frames = np.random.default_rng(0).standard_normal((len(small_file()["frames"]), 9)).astype(np.float32)
    classify.main(["--data", write(tmp_path, frames=frames, train1=None, test1=None), "--out", str(tmp_path), "--no-pictures", "--p", "3"])
    out = capsys.readouterr().out
    assert list(accuracies(out)) == METHODS[:6] and "±" not in out.split("subspaces of R^9")[1]


@pytest.mark.parametrize("changes, message", [
    ({"frames": None}, "must hold the arrays frames"),
    ({"offset": None, "test0": None}, "must hold the arrays offset, test0"),
    ({"frames": np.zeros((80, 3), complex)}, "frames must be real numbers .* got complex128"),
    ({"offset": np.array([0.0, 5.0])}, r"offset must hold n_sets \+ 1 >= 2 integers, got float64"),
    ({"offset": np.array([0, 5, 5, 9])}, "offset must rise, every set holding a frame, got 5 and 5 for set 1"),
    ({"offset": np.array([0, 5, 999])}, r"offset must go from 0 to \d+, the number of frames, got 0 to 999"),
    ({"group": np.arange(3)}, r"group must have length 12, one a set, got shape \(3,\)"),
    ({"label": np.arange(11)}, r"label must have length 12, one a set, got shape \(11,\)"),
    ({"test1": None}, "test1 is missing among test0, train0, train1"),
    ({"train0": np.array([], int)}, r"train0 must hold at least one index of a set, got int64 \(0,\)"),
    ({"test0": np.array([1, 12])}, r"test0 must hold indices in 0\.\.11, got 1 to 12"),
    ({"test1": np.array([1, 3, 4])}, "train1 and test1 must not overlap, both hold set 1 and 1 more"),
    ({"train0": np.array([0, 2])}, "train0 must hold sets of at least two classes, got one: left"),
    ({"label": np.array([None] * 12)}, "Object arrays cannot be loaded"),
])
def test_bad_files_are_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        clips.load_npz(write(tmp_path, **changes))


@pytest.mark.parametrize("content", [b"not a zip", b"", b"PK\x03\x04broken"])
def test_what_is_no_npz_file_is_refused(tmp_path, content):
    path = tmp_path / "sets.npz"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="sets.npz must be an .npz file"):
        clips.load_npz(path)


def test_a_lone_array_is_refused(tmp_path):
    np.save(tmp_path / "sets.npy", np.zeros(3))
    with pytest.raises(ValueError, match="sets.npy must be an .npz file"):
        clips.load_npz(tmp_path / "sets.npy")


@pytest.mark.parametrize("arguments, message", [
    (["--p", "6"], "must hold p = 6 independent frames, got 5 frames"),
    (["--p", "2", "--data", "nowhere.npz"], "nowhere.npz"),
])
def test_errors_are_one_line(tmp_path, arguments, message):
    with pytest.raises(SystemExit, match=f"^examples.classify: .*{message}"):
        classify.main(["--data", write(tmp_path), *arguments])


@pytest.mark.parametrize("arguments", ["--p 0", "--p 2 --lam nan", "--p 2 --lam -1", "--p 2 --neighbors 5 0", "--p 2 --C -1", "--p 2 --stack 0", "--p 2 --atoms -1"])
def test_options_are_checked(arguments, capsys):
    with pytest.raises(SystemExit):
        classify.parse(["--data", "x.npz", *arguments.split()])
    assert re.search(r"must be at least [01], got (0|nan|-1)", capsys.readouterr().err)
