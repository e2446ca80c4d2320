"""The wheel: what it installs, and what it leaves alone."""

import ast
import importlib
import subprocess
import sys
import zipfile

import setup
from processes import CORE, KIT, ROOMS, ROOT, run_python


def version_in_the_core():
    for node in ast.parse((ROOT / f"{CORE}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__version__":
            return ast.literal_eval(node.value)
    raise AssertionError("no __version__")


def test_wheel_holds_the_modules_and_the_command_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    dist_info = f"{KIT}-{version_in_the_core()}.dist-info/"
    modules = {name for name in names if not name.startswith(dist_info)}
    command = {
        "answers",
        "baselines",
        "check",
        "classify",
        "clips",
        "clusters",
        "command",
        "comparison",
        "first_tries",
        "recipes",
        "report",
        "options",
        "own",
        "pictures",
    }
    assert set(setup.command()) == command
    package = {f"{room.replace('.', '/')}.py" for room in ROOMS} | {
        "__init__.py",
        "py.typed",
    }
    examples = {f"{name}.py" for name in ("__init__", *command)}
    assert modules == {f"{CORE}/{name}" for name in package} | {
        f"{KIT}/examples/{name}" for name in examples
    }


RUN_COMMAND = """
import sys, time
from importlib.metadata import entry_points
start = time.perf_counter()
command, = entry_points(group="console_scripts", name="grassmann-classify")
sys.argv[:] = ["grassmann-classify", *sys.argv[1:]]
try:
    command.load()()
except SystemExit as end:
    assert not end.code, end.code
if "--help" in sys.argv:
    assert not {"numpy", "numba", "sklearn"} & set(sys.modules)
print(*(name for name in ("kernels", "learn", "files") if name in sys.modules))
"""


def test_the_command_answers_help_at_once(installed, tmp_path):
    python, _ = installed
    lines = run_python(RUN_COMMAND, "--help", cwd=tmp_path, python=python)
    assert lines[0].startswith("usage: grassmann-classify ")
    assert any(
        "by coding subspaces: grassmann-classify --data DIR" in line for line in lines
    )
    assert lines[-1] == ""


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
    extras = "sklearn skimage imageio av tqdm hypothesis dask distributed"
    lines = run_python(
        RUN_WITHOUT, extras, "--data", "nowhere", cwd=tmp_path, python=python
    )
    assert lines == [
        "grassmann-classify: error: scikit-learn is not installed: "
        f"{python} -m pip install scikit-learn"
    ]
    helped = run_python(RUN_WITHOUT, extras, "--help", cwd=tmp_path, python=python)
    assert helped[0].startswith("usage: ") and helped[-1] == "0"
    rest = extras.replace("sklearn ", "")
    lines = run_python(
        RUN_WITHOUT, rest, "--data", "nowhere", cwd=tmp_path, python=python
    )
    assert "nowhere" in lines[-1]


def test_the_command_goes_from_a_file_to_answers(installed, tmp_path):
    python, _ = installed
    code = """
import numpy as np
rng = np.random.default_rng(0)
centres = np.repeat(rng.standard_normal((2, 1, 3, 8)), 6, axis=1).reshape(12, 3, 8)
frames = (centres + 0.1 * rng.standard_normal((12, 3, 8))).reshape(36, 8)
np.savez("sets.npz", frames=frames, offset=np.arange(0, 37, 3), label=np.arange(12) // 6,
         train0=np.arange(0, 12, 2), test0=np.arange(1, 12, 2))
"""
    run_python(code, cwd=tmp_path, python=python)
    lines = run_python(
        RUN_COMMAND,
        "--data",
        "sets.npz",
        "--p",
        "2",
        "--no-kernels",
        "--format",
        "svg",
        cwd=tmp_path,
        python=python,
        NUMBA_DISABLE_JIT="1",
    )
    (accuracy,) = [
        line.split()[5] for line in lines if line.startswith("gSC, labelled sets as ")
    ][:1]
    assert accuracy == "100.0"
    assert lines[-1] == ""
    assert {path.suffix for path in (tmp_path / "out").iterdir()} >= {
        ".svg",
        ".json",
        ".npz",
    }


def test_wheel_leaves_other_top_level_names_alone(installed, tmp_path):
    python, _ = installed
    code = "import sys, importlib.util as util; print(*filter(util.find_spec, sys.argv[1:]))"
    found = run_python(
        code,
        CORE,
        KIT,
        *(room.partition(".")[0] for room in ROOMS),
        cwd=tmp_path,
        python=python,
    )
    assert found == [f"{CORE} {KIT}"]


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
    for module in (CORE, *(f"{CORE}.{room}" for room in ROOMS)):
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
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    *errors, last = done.stdout.splitlines()
    wrong = [error.partition(": error: ")[2] for error in errors]
    array = 'variable has type "int")  [assignment]'
    assert [error for error in wrong if not error.endswith(array)] == [
        'Module has no attribute "no_such_name"  [attr-defined]',
        f'Module "{CORE}.learn" has no attribute "no_such_name"  [attr-defined]',
    ], done.stdout
    assert len(wrong) == 4 and last.startswith("Found 4 errors"), (
        done.stdout + done.stderr
    )


def test_versions_are_one(installed, tmp_path):
    python, _ = installed
    code = f"""
import importlib.metadata
import {CORE}
print({CORE}.__version__, importlib.metadata.version("{KIT}"))
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
print(read_attr("grassmann_sc.__version__", {"grassmann_sc_kit": "."}, sys.argv[1]))
"""
    assert run_python(blocked, ROOT, cwd=tmp_path) == [version_in_the_core()]


def test_every_installed_module_imports(installed, tmp_path):
    python, site = installed
    code = """
import importlib, sys
for name in sys.argv[1:]:
    print(importlib.import_module(name).__file__)
"""
    files = run_python(
        code, CORE, *(f"{CORE}.{room}" for room in ROOMS), cwd=tmp_path, python=python
    )
    places = ["__init__", *(room.replace(".", "/") for room in ROOMS)]
    assert files == [str(site / CORE / f"{place}.py") for place in places]
