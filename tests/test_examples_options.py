"""What scripts are asked: --help waits for no import, mistakes are named."""

import subprocess
import sys

import matplotlib.pyplot as plt
import pytest

from examples import options, paper_experiments, pictures
from processes import ROOT, run_python

SCRIPTS = sorted(
    f"{folder}.{path.stem}"
    for folder in ("examples", "benchmarks", "docs")
    for path in (ROOT / folder).glob("*.py")
    if '__name__ == "__main__"' in path.read_text(encoding="utf-8")
)
SLOW = {"numpy", "numba", "sklearn", "matplotlib", "scipy"}


def test_every_script_is_looked_at():
    assert {"examples.classify", "benchmarks.lasso", "docs.floorplan"} <= set(SCRIPTS)


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
    "arguments, told",
    [
        (["quickstart", "--fomat", "pdf"], "unrecognized arguments: --fomat"),
        (["quickstart", "--dpi", "3"], "argument --dpi: must be 10 to 2400, got 3"),
        (["table_digits", "--format", "gif"], "invalid choice: 'gif'"),
        (["table_synthetic", "now"], "unrecognized arguments: now"),
        (["paper_experiments", "--data", "x"], "NAME is needed, one of casia, cambridge"),
        (["paper_experiments", "casia"], "--data is needed, or --help-data"),
    ],
)
def test_mistakes_are_named_before_anything_is_done(arguments, told):
    script, *others = arguments
    done = subprocess.run(
        [sys.executable, "-m", f"examples.{script}", *others],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2 and told in done.stderr and not done.stdout


def test_help_on_data_is_of_one_experiment_or_of_all(capsys):
    assert list(paper_experiments.PRESETS) == options.EXPERIMENTS
    paper_experiments.main(["--help-data"])
    everything = capsys.readouterr().out
    assert all(preset.data in everything for preset in paper_experiments.PRESETS.values())
    paper_experiments.main(["ballet", "--help-data"])
    one = capsys.readouterr().out
    assert one.strip() in everything and one.count("Download:") == 1


@pytest.mark.parametrize("kind, start", [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_pictures_have_the_format_and_size_that_were_asked_for(tmp_path, kind, start):
    asked = options.of_pictures("examples.quickstart", ["--format", kind, "--dpi", "50"])
    figure, ax = plt.subplots(figsize=(4, 2))
    path = pictures.save_picture(tmp_path / "new" / "a.b", ax, asked)
    assert path == tmp_path / "new" / f"a.b.{kind}" and path.read_bytes().startswith(start)
    assert not plt.fignum_exists(figure.number)
    if kind == "png":
        assert plt.imread(path).shape[:2] == (100, 200)
