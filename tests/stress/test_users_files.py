"""The command on files of a user: commands at random, whose inputs and outputs overlap,
links, files edited between two commands. No file that is there changes, and nothing
ends in a traceback.
"""

import functools
import hashlib
import itertools
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import run
from grassmann_classify import Settings, fit, save
from oracles import booleans
from problems import generators

QUICK = "--recipe plain --no-kernels --p 1 --lam 0.1".split()
ROWS = ["nearest", "gsc", "subspaces", "mean frame", "glc"]
MINE = ["files.txt", "results.json", "report.html", "photo.png", "l.csv"]
MINE += ["suspects.csv", "model.npz", "predictions.csv", "clusters.csv", "map.png"]
PLACES = ["out", ".", "data", "data/a", "flat", "new", "out2", "data/out", "mine"]


def clip(rng, label):
    """Frames (4, 3, 4), brighter on the side of their class."""
    side = np.arange(4) // 2 == (label == "b")
    return (rng.integers(0, 99, (4, 3, 4)) + 99 * side).astype(np.uint8)


@functools.cache
def model_of_letters():
    """The bytes of a model of two classes."""
    sets = [clip(np.random.default_rng(i), label) for i, label in enumerate("abababab")]
    options = Settings(methods=["gsc"], kernels=False, p=[1], lam=[0.1])
    save("letters.npz", fit(sets, [*"abababab"], settings=options))
    return Path("letters.npz").read_bytes()


def put_all(rng):
    """Clips in class folders, in one folder, in one file, new ones, a model, and names
    that commands write too.
    """
    for label, i in itertools.product("ab", range(4)):
        for path in (f"data/{label}/{i}.npy", f"flat/{label}{i}.npy", f"new/{i}.npy"):
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            np.save(path, clip(rng, label))
    shutil.copytree("data", "more")
    lines = [f"{label}{i},{label}" for label in "ab" for i in range(4)]
    Path("labels.csv").write_text("\n".join(["clip,label", *lines, ""]))
    even = np.arange(0, 8, 2)
    sets = {"offset": 4 * np.arange(9), "label": [*"aabbaabb"], "test0": even + 1}
    stacked = np.concatenate([clip(rng, label) for label in sets["label"]])
    np.savez("sets.npz", frames=stacked, train0=even, **sets)
    Path("m.npz").write_bytes(model_of_letters())
    for place, name in zip(["out", ".", "mine", "data"], rng.permutation(MINE)):
        Path(place).mkdir(exist_ok=True)
        Path(place, name).write_bytes(rng.bytes(20))


def edit(draw):
    """The user changes, copies or links a file, or a folder of results."""
    path = draw(st.sampled_from(sorted(filter(os.path.isfile, snapshot()))))
    new = Path(draw(st.sampled_from(PLACES)), draw(st.sampled_from(MINE)))
    how = draw(st.sampled_from(["append", "copy", "hard", "soft", "folder", "clip"]))
    if how == "append" and path.endswith((".csv", ".json", ".html")):
        Path(path).write_bytes(Path(path).read_bytes() + b"\n")
    elif how == "folder" and Path("out").exists() and not Path("copy").exists():
        shutil.copytree("out", "copy", symlinks=True)
    elif how in ("copy", "hard", "soft", "clip"):
        new = Path("data/a/linked.npy") if how == "clip" else new
        new.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(new):
            make = {"copy": shutil.copy, "hard": os.link}.get(how, os.symlink)
            make(os.path.abspath(path), new)


def drawn_command(draw):
    """Words of a command line."""
    some_file = st.sampled_from(sorted(filter(os.path.isfile, snapshot())))

    def pick(*names):
        return draw(st.sampled_from(names) | some_file)

    def perhaps(*words):
        return [*words] * draw(booleans)

    model = pick("m.npz", "m2.npz", "out/model.npz")
    target = pick("m2.npz", "m.npz", "labels.csv", "out/model.npz", "x.npz")
    data = pick("data", "data", "data", ".", "sets.npz", "flat", "out", "mine")
    new = pick("new", "new", "data", ".", "out", "new/0.npy", "sets.npz")
    labels = ["--labels", pick("labels.csv", "labels.csv", "out/suspects.csv")]
    labelled = [data, *(labels if data == "flat" else [])]
    learned = [*QUICK, "--methods", draw(st.sampled_from(ROWS)), *perhaps("--skip")]
    commands = {
        "compare": [*labelled, *learned, "--repeats", "1"],
        "predict": [new, "--data", *labelled, *learned, *perhaps("--save", target)],
        "answer": [new, "--model", model],
        "add": [pick("more", "data", "."), "--model", model, "--save", target],
        "check": [
            *labelled,
            *"--recipe plain --p 1 --lam 0.1".split(),
            *perhaps("--skip"),
        ],
        "cluster": [new, *"-k 2 --p 1".split(), *perhaps("--skip")],
    }
    name = draw(st.sampled_from([*commands]))
    words = [*commands[name], "--out", draw(st.sampled_from(PLACES))]
    words += [] if name == "add" else ["--no-pictures"]
    return ["predict" if name == "answer" else name, *words]


def snapshot():
    """{path: digest} of all files and folders."""
    digests = {}
    for path in Path().rglob("*"):
        if path.is_symlink():
            content = os.fsencode(os.readlink(path))
        else:
            content = path.read_bytes() if path.is_file() else b"a folder"
        digests[str(path)] = hashlib.sha256(content).hexdigest()
    return digests


@settings(max_examples=250)
@given(st.data(), generators, st.integers(1, 3))
def test_no_command_changes_a_file_that_is_there(data, rng, n_commands):
    """What is new lies in one new folder, or is the model that was asked for."""
    model_of_letters()
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(folder)
        put_all(rng)
        for _ in range(n_commands):
            edit(data.draw)
            words = drawn_command(data.draw)
            before = snapshot()
            run(*words)
            after = snapshot()
            assert before == {path: after.get(path) for path in before}, words
            after_word = dict(zip(words, words[1:]))
            new = after.keys() - before.keys() - {after_word.get("--save")}
            made = {path for path in new if os.path.dirname(path) not in new}
            folders = {path for path in made if os.path.isdir(path)}
            assert made == folders and len(folders) <= 1, (words, new)
            assert not folders or after_word["--out"] in str(folders)
