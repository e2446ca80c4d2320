"""The README's blocks print what they say, and make demo the README's table."""

import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from examples import clips
from grassmann_sc import principal_angles, projection_kernel
from processes import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    fenced = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", README, re.DOTALL | re.MULTILINE)
    return [text for name, text in fenced if name == language]


def block_with(part, language=""):
    """The one block that holds this part."""
    found, = [text for text in blocks(language) if part in text]
    return found


def block_in_line(part):
    """The one `piece of code` that begins with this part."""
    found, = re.findall(rf"`({re.escape(part)}[^`]*)`", README)
    return found


def execute(program, names):
    exec(compile(program, "<README>", "exec"), names)  # no file: hypothesis looks for its lines


def run(folder, *arguments):
    """What Python prints in that folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True,
                          encoding="utf-8", env=environment, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def accuracies(text):
    """{method: accuracy} from a printed table."""
    found = re.findall(r"^(\w.*?\w) {2,}(\d+\.\d) .*\w$", text, re.MULTILINE)
    return {method: float(number) for method, number in found}


def test_readme_prints_what_it_says(capsys):
    names = {}
    execute(blocks("python")[0], names)
    assert capsys.readouterr().out == blocks("")[0]
    execute(block_with("GridSearchCV", "python"), names)
    assert float(capsys.readouterr().out) > 0.9
    execute(block_with("kernels.classify", "python"), names)
    assert float(capsys.readouterr().out) > 0.9
    execute(block_with("cauchy", "python"), names)
    assert names["codes"].shape == (20, 20)


def test_readme_finds_the_bug_of_a_stranger():
    names = {}
    execute(block_with("pairs_at_angles", "python"), names)
    with pytest.raises(AssertionError) as failure:
        names["test_my_angles"]()
    said = re.sub(r"\s+", " ", "".join(failure.value.__notes__))
    promised = block_in_line("X=array")
    assert re.sub(r"\s+", " ", promised) in said
    names["my_angles"] = principal_angles
    names["test_my_angles"]()
    execute(block_with("pairs_of_sets", "python"), names)
    with pytest.raises(AssertionError):
        names["test_my_gram"]()
    names["my_gram"] = projection_kernel
    names["test_my_gram"]()


def test_readme_codes_what_does_not_fit_in_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    execute(block_with("files.load_codes", "python"), {})
    assert capsys.readouterr().out == block_with("(10000, 8)")


def test_readme_writes_a_file_that_classify_reads(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sizes = np.array([5, 7, 6, 5])
    frames = np.random.default_rng(0).integers(0, 255, (sizes.sum(), 4, 6), dtype=np.uint8)
    labels = np.array(["left", "left", "right", "right"])
    program = block_with("np.savez", "python")
    program = "\n".join(line.strip() for line in program.splitlines())
    execute(program, {"frames": frames, "sizes": sizes, "labels": labels,
                      "train": np.array([0, 2]), "test": np.array([1, 3])})
    found, pairs = clips.load_npz("FILE.npz")
    assert np.array_equal(np.concatenate([clip.sources[0] for clip in found]), frames)
    assert [len(clip.sources[0]) for clip in found] == list(sizes)
    assert [clip.label for clip in found] == list(labels)
    assert all(clip.group is None for clip in found)
    assert len(pairs) == 1


def test_readme_makes_a_tree_that_classify_reads(tmp_path):
    for command in block_with("examples.classify", "sh").splitlines():
        assert command.strip().startswith(".venv/bin/python ")
        printed = run(tmp_path, *shlex.split(command)[1:])
    assert "subspaces of R^64 of dimension 1, 2, 3, 4, 5, 6, 7, 8, 3 splits" in printed
    printed = printed[: printed.index("Behind")]
    assert len(accuracies(printed)) == 10
    assert min(accuracies(printed).values()) > 90
    left = {path.name for path in (tmp_path / "out").iterdir()}
    assert left >= {"results.json", "codes.npz", "map.png", "atoms.png", "cache"}


def test_quickstart_prints_three_methods_and_leaves_three_pictures(tmp_path):
    printed = accuracies(run(tmp_path, "-m", "examples.quickstart"))
    assert list(printed) == ["nearest subspace", "gSC", "gLC"]
    assert printed["nearest subspace"] == 95.0
    assert min(printed["gSC"], printed["gLC"]) > 96
    pictures = {path.name for path in (tmp_path / "out").iterdir()}
    assert pictures == {"planes.png", "angles.png", "codes.png"}


def test_table_digits_prints_the_table_of_the_readme(tmp_path):
    printed = accuracies(run(tmp_path, "-m", "examples.table_digits"))
    promised = accuracies(block_with("kgSC"))
    assert len(printed) == 8
    assert printed.keys() == promised.keys()
    assert all(abs(printed[method] - promised[method]) <= 0.5 for method in printed), printed
    assert printed["nearest subspace"] < 95
    pictures = {path.stem for path in (tmp_path / "out").iterdir()}
    assert pictures == {"atoms", "convergence", "codes_learned", "angles_pair"}
