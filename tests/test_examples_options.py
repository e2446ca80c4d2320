"""What scripts are asked: --help waits for no import, mistakes are named."""

import os
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
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


def own_kernel(A, B):
    return A @ B.T


@pytest.mark.parametrize(
    "field, value, rule",
    [
        ("p", 3, "p must be a list of integers, got 3"),
        ("p", np.array(3), "p must be a list of integers, got 3"),
        ("p", [], "p must hold integers, got none"),
        ("p", [2, 0], "p must be at least 1, got 0"),
        ("p", [True], r"p must be a list of integers, got \[True\]"),
        ("lam", 0.1, "lam must be a list of numbers, got 0.1"),
        ("lam", [0.1, -1], "lam must be at least 0, got -1"),
        ("lam", [np.nan], "lam must be at least 0, got nan"),
        ("lam", [np.inf], "lam must be finite, got inf"),
        ("neighbors", [2.0], r"neighbors must be a list of integers, got \[2\.0\]"),
        ("C", [1, 0], "C must be positive, got 0"),
        (
            "kernels",
            [own_kernel],
            r"kernels must be True or False, got \[<function own_kernel",
        ),
        ("kernels", None, "kernels must be True or False, got None"),
        ("atoms", -1, "atoms must be at least 0, got -1"),
        ("iterations", "3", "iterations must be an integer, got '3'"),
        ("seconds", -1.0, "seconds must be at least 0, got -1"),
        ("seed", 2**31, "seed must be at most 2147483647, got 2147483648"),
        (
            "methods",
            "gsc",
            "methods must be a list of the first words of rows, got 'gsc'",
        ),
        ("methods", ["gsc", " "], "methods must be the first words of a row, got ' '"),
        ("baselines", 1, "baselines must be True or False, got 1"),
    ],
)
def test_every_field_of_settings_is_checked_whenever_it_is_set(field, value, rule):
    """kernels=[own_kernel], which no comparison would use, among them."""
    with pytest.raises((TypeError, ValueError), match=f"^{rule}"):
        options.Settings(**{field: value})
    settings = options.Settings()
    with pytest.raises((TypeError, ValueError), match=f"^{rule}"):
        setattr(settings, field, value)
    assert settings == options.Settings()


def test_settings_take_what_they_should_as_pythons_own_and_no_other_name():
    settings = options.Settings(
        p=np.arange(1, 3),
        lam=(0, 0.5),
        kernels=np.False_,
        seconds=np.float32(2),
        methods=["gsc"],
    )
    assert (settings.p, settings.lam, settings.kernels) == ([1, 2], [0, 0.5], False)
    assert [type(value) for value in (*settings.p, settings.seconds)] == [
        int,
        int,
        float,
    ]
    assert options.Settings(p=None, seconds=None, methods=None) == options.Settings()
    with pytest.raises(
        AttributeError, match="must have the fields p, lam, .*, got 'gamma'"
    ):
        settings.gamma = 1
    for kernel in (False, "rbf", "a:b:c"):
        with pytest.raises(
            (TypeError, ValueError), match="kernel must be named as package.module:func"
        ):
            settings.kernel = kernel


def test_the_command_is_asked_by_the_rules_of_settings(capsys):
    fields = options.Settings.__dataclass_fields__
    assert list(options.RULES)[: len(fields)] == list(fields)
    asked = options.of_classify(["--data", "x"])
    assert all(
        getattr(asked, name) == getattr(options.Settings(), name)
        for name in fields
        if name != "kernels"
    )
    for arguments, rule in (
        (["--seed", "2147483648"], "--seed must be at most 2147483647"),
        (["--lam", "0.1", "inf"], "--lam must be finite, got inf"),
        (["--methods", " , "], "--methods must hold the first words of rows"),
        (["--splits", "1"], "--splits must be a CSV file, got 1; --repeats 1"),
    ):
        with pytest.raises(SystemExit):
            options.of_classify(["--data", "x", *arguments])
        assert rule in capsys.readouterr().err


def test_help_on_data_is_of_one_experiment_or_of_all(capsys):
    assert list(paper_experiments.PRESETS) == options.EXPERIMENTS
    paper_experiments.main(["--help-data"])
    everything = capsys.readouterr().out
    assert all(
        preset.data in everything for preset in paper_experiments.PRESETS.values()
    )
    paper_experiments.main(["ballet", "--help-data"])
    one = capsys.readouterr().out
    assert one.strip() in everything and one.count("Download:") == 1


@pytest.mark.parametrize(
    "kind, start", [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_pictures_have_the_format_and_size_that_were_asked_for(tmp_path, kind, start):
    asked = options.of_pictures(
        "examples.table_digits", ["--format", kind, "--dpi", "50"]
    )
    figure, ax = plt.subplots(figsize=(4, 2))
    path = pictures.save_picture(tmp_path / "new" / "a.b", ax, asked)
    assert path == tmp_path / "new" / f"a.b.{kind}" and path.read_bytes().startswith(
        start
    )
    assert not plt.fignum_exists(figure.number)
    if kind == "png":
        assert plt.imread(path).shape[:2] == (100, 200)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path):
    """A module of the working folder, found in place of NumPy, presses."""
    (tmp_path / "numpy.py").write_text(
        "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    )
    program = "import runpy; runpy.run_module('examples.classify', run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", program, "--data", "x"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == "stopped\n" and done.returncode != 0
