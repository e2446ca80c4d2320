"""The wheel: what it installs, and what it leaves alone."""

import ast
import importlib
import json
import re
import subprocess
import sys
import zipfile

from processes import APPLICATION, CORE, MODULES, ROOT, run_python


def version_in_the_core():
    for node in ast.parse((ROOT / f"{CORE}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__version__":
            return ast.literal_eval(node.value)
    raise AssertionError("no __version__")


def test_wheel_holds_the_modules_and_the_command_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    dist_info = f"{CORE}-{version_in_the_core()}.dist-info/"
    modules = {name for name in names if not name.startswith(dist_info)}
    package = {f"{module.replace('.', '/')}.py" for module in MODULES} | {
        "__init__.py",
        "py.typed",
    }
    files = {path.name for path in (ROOT / APPLICATION).glob("*.py")}
    assert modules == {f"{CORE}/{name}" for name in package} | {
        f"{APPLICATION}/{name}" for name in files
    }


RUN_COMMANDS = """
import json, sys
from importlib.metadata import entry_points
command, = entry_points(group="console_scripts", name="grassmann-classify")
for asked in json.loads(sys.argv[1]):
    sys.argv[:] = ["grassmann-classify", *asked]
    try:
        command.load()()
    except SystemExit as end:
        assert not end.code, end.code
if "--help" in sys.argv:
    assert not {"numpy", "numba", "sklearn"} & set(sys.modules)
print(*(name for name in ("kernels", "learn", "files") if name in sys.modules))
"""


def printed_by(commands, python, folder, **environment):
    """The lines that the installed command prints, run by run; none is a top-level
    module.
    """
    words = json.dumps(commands)
    *lines, modules = run_python(
        RUN_COMMANDS, words, cwd=folder, python=python, **environment
    )
    assert modules == ""
    return lines


def test_the_command_answers_help_at_once(installed, tmp_path):
    python, _ = installed
    lines = printed_by([["--help"]], python, tmp_path)
    assert lines[0].startswith("grassmann-classify tells clips apart")
    of_compare = printed_by([["compare", "--help"]], python, tmp_path)
    assert of_compare[0].startswith("usage: grassmann-classify compare ")


RUN_WITHOUT = """
import sys
from importlib.machinery import PathFinder
from importlib.metadata import entry_points

without = sys.argv.pop(1).split()

class Finder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in without:
            return PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
command, = entry_points(group="console_scripts", name="grassmann-classify")
try:
    command.load()()
except SystemExit as end:
    print(end.code)
"""


def test_the_command_says_first_what_is_not_installed(installed, tmp_path):
    """Of what only the extras install; the rest of that it does not need to begin."""
    python, _ = installed
    extras = "sklearn skimage imageio av hypothesis dask distributed"
    words = "check", tmp_path
    lines = run_python(RUN_WITHOUT, extras, *words, cwd=tmp_path, python=python)
    assert lines == [
        "grassmann-classify: error: scikit-learn is not installed: "
        f"{python} -m pip install scikit-learn"
    ]
    helped = run_python(RUN_WITHOUT, extras, "--help", cwd=tmp_path, python=python)
    assert helped[0].startswith("grassmann-classify tells") and helped[-1] == "0"
    rest = extras.replace("sklearn ", "")
    lines = run_python(RUN_WITHOUT, rest, *words, cwd=tmp_path, python=python)
    assert f"{tmp_path}: must hold 2 class folders" in lines[-1]


CLIPS = """
import os
import numpy as np
rng = np.random.default_rng(0)
centres = rng.standard_normal((2, 3, 8))
for i in range(20):
    folder = f"{'data' if i < 12 else 'more'}/{'ab'[i % 2]}"
    os.makedirs(folder, exist_ok=True)
    np.save(f"{folder}/{i}.npy", centres[i % 2] + 0.1 * rng.standard_normal((3, 8)))
"""


def test_the_five_commands_answer_from_an_empty_folder(installed, tmp_path):
    python, _ = installed
    run_python(CLIPS, cwd=tmp_path, python=python)
    plain = ["--p", "2", "--lam", "0.1"]
    rows = ["--no-kernels", "--methods", "gsc,glc"]
    lines = printed_by(
        [
            ["compare", "data", *plain, *rows, "--repeats", "2", "--format", "svg"],
            ["predict", "more", "--data", "data", "--save", "m.npz", *plain, *rows],
            ["add", "more", "--model", "m.npz", "--save", "n.npz"],
            ["check", "data", *plain, "--out", "sus"],
            ["cluster", "more", "-k", "2", "--p", "2", "--out", "clu"],
        ],
        python,
        tmp_path,
        NUMBA_DISABLE_JIT="1",
    )
    printed = "\n".join(lines)
    assert re.search(r"gSC +100.0", printed)
    assert len(re.findall(r"^[ab]/\d+.npy  ", printed, re.MULTILINE)) == 8
    assert "8 sets more, 2 classes" in printed and (tmp_path / "n.npz").exists()
    assert "0 of 12 labels may be wrong" in printed
    assert "clusters of 4 + 4" in printed
    for folder, kinds in (
        ("out", {".svg", ".json", ".csv", ".html"}),
        ("sus", {".csv", ".html"}),
        ("clu", {".png", ".csv", ".html"}),
    ):
        assert {path.suffix for path in (tmp_path / folder).rglob("*")} >= kinds


def test_wheel_leaves_other_top_level_names_alone(installed, tmp_path):
    python, _ = installed
    code = "import sys, importlib.util as util; print(*filter(util.find_spec, sys.argv[1:]))"
    lines = run_python(
        code,
        CORE,
        APPLICATION,
        *(module.partition(".")[0] for module in MODULES),
        cwd=tmp_path,
        python=python,
    )
    assert lines == [f"{CORE} {APPLICATION}"]


USER = """
import grassmann_sc as gs
from grassmann_sc import subspaces
from grassmann_sc.baselines import hulls

labels: int = gs.classify([], [], [])
bases: int = subspaces.from_sets([], 1)
gs.no_such_name
"""
LIBRARIES = (
    "dask.*,distributed.*,hypothesis.*,matplotlib.*,numba.*,PIL.*,scipy.*,sklearn.*"
)


def test_a_type_checker_resolves_every_public_name(installed, tmp_path):
    """In a script of a user; their hints are seen too, and names that are not there."""
    python, _ = installed
    script = USER
    for module in (CORE, *(f"{CORE}.{module}" for module in MODULES)):
        prefix = "_".join(module.split("."))
        for name in importlib.import_module(module).__all__:
            script += f"from {module} import {name} as {prefix}_{name}\n"
    (tmp_path / "script.py").write_text(
        f"{script}from {CORE}.learn import no_such_name\n"
    )
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\ncache_dir = cache\n[mypy-{LIBRARIES}]\nfollow_imports = skip\n"
    )
    command = [sys.executable, "-m", "mypy", "--python-executable", python, "script.py"]
    process = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    *errors, last = process.stdout.splitlines()
    wrong = [error.partition(": error: ")[2] for error in errors]
    array = 'variable has type "int")  [assignment]'
    assert [error for error in wrong if not error.endswith(array)] == [
        'Module has no attribute "no_such_name"  [attr-defined]',
        f'Module "{CORE}.learn" has no attribute "no_such_name"  [attr-defined]',
    ], process.stdout
    assert len(wrong) == 4 and last.startswith("Found 4 errors"), (
        process.stdout + process.stderr
    )


def test_versions_are_one(installed, tmp_path):
    python, _ = installed
    code = f"""
import importlib.metadata
import {CORE}
print({CORE}.__version__, importlib.metadata.version("{CORE}"))
"""
    version = version_in_the_core()
    assert run_python(code, cwd=tmp_path, python=python) == [f"{version} {version}"]


def test_the_version_is_read_without_importing_anything(wheel, tmp_path):
    """A build needs setuptools alone: the wheel names the version though numba was not
    there.
    """
    (metadata,) = (
        name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("/METADATA")
    )
    text = zipfile.ZipFile(wheel).read(metadata).decode()
    assert f"\nVersion: {version_in_the_core()}\n" in text
    blocked = """
import sys
for name in ("numpy", "numba", "scipy"):
    sys.modules[name] = None
from setuptools.config.expand import read_attr
print(read_attr("grassmann_sc.__version__", {"": "."}, sys.argv[1]))
"""
    assert run_python(blocked, ROOT, cwd=tmp_path) == [version_in_the_core()]
