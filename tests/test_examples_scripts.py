"""Scripts: --help waits for no import, mistakes are named, what they share."""

import os
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from examples import ballet_atoms, common, paper_experiments
from grassmann_sc import chordal_distance, learn, plots, random_subspaces
from processes import ROOT, run_python

SCRIPTS = sorted(
    f"{folder}.{path.stem}"
    for folder in ("examples", "benchmarks", "docs")
    for path in (ROOT / folder).glob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)
plot_atoms = plots.plot_atoms
SLOW = {"numpy", "numba", "sklearn", "matplotlib", "scipy"}


def test_every_script_is_looked_at():
    assert {"examples.table_digits", "benchmarks.lasso", "docs.layout"} <= set(SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_waits_for_no_import(script):
    code = f"""
import runpy, sys
sys.argv[1:] = ["--help"]
try:
    runpy.run_module("{script}", run_name="__main__", alter_sys=True)
except SystemExit as end:
    assert not end.code
assert not {SLOW} & set(sys.modules)
"""
    text = "\n".join(run_python(code))
    assert text.startswith(f"usage: python -m {script} [-h]")
    path = ROOT / f"{script.replace('.', '/')}.py"
    docstring = path.read_text(encoding="utf-8").split('"""')[1]
    assert docstring.strip().splitlines()[0] in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["table_digits", "--fomat", "pdf"], "unrecognized arguments: --fomat"),
        (["table_digits", "--dpi", "3"], "argument --dpi: must be 10 to 2400, got 3"),
        (["table_digits", "--format", "gif"], "invalid choice: 'gif'"),
        (["table_synthetic", "now"], "unrecognized arguments: now"),
        (
            ["paper_experiments", "--data", "x"],
            "NAME is needed, one of casia, cambridge",
        ),
        (["paper_experiments", "casia"], "--data is needed, or --help-data"),
    ],
)
def test_mistakes_are_named_before_anything_is_done(arguments, message):
    script, *others = arguments
    process = subprocess.run(
        [sys.executable, "-m", f"examples.{script}", *others],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 2 and message in process.stderr and not process.stdout


def test_help_on_data_is_of_one_experiment_or_of_all(capsys):
    assert list(paper_experiments.PRESETS) == paper_experiments.EXPERIMENTS
    paper_experiments.main(["--help-data"])
    everything = capsys.readouterr().out
    assert all(
        preset.data in everything for preset in paper_experiments.PRESETS.values()
    )
    paper_experiments.main(["ballet", "--help-data"])
    single = capsys.readouterr().out
    assert single.strip() in everything and single.count("Download:") == 1


@pytest.mark.parametrize(
    "kind, start", [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_pictures_have_the_format_and_size_that_were_asked_for(tmp_path, kind, start):
    options = common.of_pictures(
        "examples.table_digits", ["--format", kind, "--dpi", "50"]
    )
    figure, ax = plt.subplots(figsize=(4, 2))
    path = common.save_picture(tmp_path / "new" / "a.b", ax, options)
    assert path == tmp_path / "new" / f"a.b.{kind}" and path.read_bytes().startswith(
        start
    )
    assert not plt.fignum_exists(figure.number)
    if kind == "png":
        assert plt.imread(path).shape[:2] == (100, 200)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path):
    """A module of the working folder, found in place of NumPy, sends Ctrl-C."""
    (tmp_path / "numpy.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    )
    program = (
        "import runpy; runpy.run_module('examples.table_digits', run_name='__main__')"
    )
    process = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.stderr == "stopped\n" and process.returncode != 0


def test_atoms_of_a_file_of_bases_are_drawn(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "clips.npz"
    bases = random_subspaces(12, 25, 4, rng=0).astype(np.float32)
    np.savez(path, bases=bases, label=np.arange(12))
    options = common.of_these(
        "examples.ballet_atoms",
        ballet_atoms.OPTIONS,
        ["--data", str(path), "--atoms", "3", "--dpi", "30"],
    )
    drawn = []
    monkeypatch.setattr(
        plots, "plot_atoms", lambda D, shape: drawn.append(D) or plot_atoms(D, shape)
    )
    ballet_atoms.main(options)
    clips = np.linalg.qr(bases[:, :, :3].astype(float))[0]
    learned = learn.gdl(clips, 3, 0.1, rng=0).atoms  # of clips, and none of these
    assert np.array_equal(drawn[0], learned)
    assert chordal_distance(learned, clips).min() > 0.1
    first, last = map(float, re.findall(r"\d+\.\d", capsys.readouterr().out))
    assert last < first
    assert (tmp_path / "out" / "ballet_atoms.png").exists()
    np.savez(path, bases=bases[:, :24])
    with pytest.raises(SystemExit, match="square frames, got d = 24"):
        ballet_atoms.main(options)
    np.savez(path, frames=bases)
    with pytest.raises(SystemExit, match="must hold bases"):
        ballet_atoms.main(options)
