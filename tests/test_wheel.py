"""The wheel: what it installs, and that every module imports from it. Nothing here needs a network."""

import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE, KIT = "grassmann_sc", "grassmann_sc_kit"
PARTS = sorted(path.stem for path in ROOT.glob("*.py") if path.stem != CORE)


def run(python, code, *args, cwd):
    """Run code in an isolated interpreter, which sees neither cwd nor PYTHONPATH."""
    done = subprocess.run([python, "-I", "-c", code, *map(str, args)], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in [*ROOT.glob("*.py"), *(ROOT / name for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"))]:
        shutil.copy(path, source)
    for folder in ("benchmarks", "build", "examples", "out", "tests"):
        (source / folder).mkdir()
        (source / folder / "not_packaged.py").touch()
    run(sys.executable, "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])", target, cwd=source)
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The interpreter of a new environment that has the wheel alone, and that environment's site-packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    site, = run(python, "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    zipfile.ZipFile(wheel).extractall(site)
    return python, Path(site)


def test_wheel_holds_the_core_and_the_kit_alone(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    dist_info = f"{KIT}-{wheel.name.split('-')[1]}.dist-info/"
    assert {name for name in names if not name.startswith(dist_info)} == {f"{CORE}.py", *(f"{KIT}/{part}.py" for part in PARTS)}


def test_wheel_leaves_other_top_level_names_alone(installed, tmp_path):
    python, _ = installed
    code = "import sys, importlib.util as util; print(*filter(util.find_spec, sys.argv[1:]), sep='\\n')"
    assert run(python, code, CORE, KIT, "kernels", *PARTS, cwd=tmp_path) == [CORE, KIT]


def test_every_installed_module_imports(installed, tmp_path):
    python, site = installed
    modules = [CORE, *(f"{KIT}.{part}" for part in PARTS)]
    dependencies = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "dependencies.pth").write_text("\n".join(dependencies))
    code = "import sys, importlib; [print(importlib.import_module(name).__file__) for name in sys.argv[1:]]"
    files = run(python, code, *modules, cwd=tmp_path)
    assert [Path(file) for file in files] == [site / (module.replace(".", "/") + ".py") for module in modules]
