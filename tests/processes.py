"""Code in fresh interpreters, and environments that have the project installed. Nothing
needs a network.
"""

import os
import shutil
import signal
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from docs.sources import CORE, ROOT, modules
from setup import APPLICATION

MODULES = [name for name in modules() if name != CORE]


def run_python(code, *args, cwd=ROOT, python=sys.executable, **environment):
    """The lines that code prints; it must end well, and soon. cwd alone is added to the
    path.
    """
    outside = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }
    process = subprocess.run(
        [python, "-c", code, *map(str, args)],
        cwd=cwd,
        timeout=300,
        text=True,
        capture_output=True,
        env=outside | environment,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def interrupted(code, *args):
    """The last line on stderr of code that a Ctrl-C ends, and that prints nothing."""
    process = subprocess.run(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=ROOT,
        timeout=300,
        text=True,
        capture_output=True,
    )
    assert (process.returncode, process.stdout) == (-signal.SIGINT, ""), process.stderr
    return process.stderr.splitlines()[-1]


def copy_modules(target, *names):
    """Copy all modules, or some, as they stand to each other."""
    paths = modules()
    for path in [paths[name] for name in names or paths]:
        to = target / path.relative_to(ROOT)
        to.parent.mkdir(exist_ok=True)
        shutil.copy(path, to)


def copy_source(target):
    """Copy what a package is built from, beside folders with files that do not belong
    to it.
    """
    copy_modules(target)
    for name in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)
    shutil.copytree(
        ROOT / APPLICATION,
        target / APPLICATION,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for folder in ("benchmarks", "build", "examples", "out", "tests"):
        (target / folder).mkdir(exist_ok=True)
        (target / folder / "not_packaged.py").touch()


def build_wheel(source, target, editable=False):
    """Build the wheel of a copied source, or the one that `pip install -e` would
    install.
    """
    code = (
        "import sys; from setuptools import build_meta; "
        f"build_meta.build_{'editable' if editable else 'wheel'}(sys.argv[1])"
    )
    run_python(code, target, cwd=source)
    (wheel,) = target.glob("*.whl")
    return wheel


def install(wheel, folder):
    """The interpreter and site-packages of a new environment: the wheel, and what it
    depends on.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    (site,) = run_python(
        "import sysconfig; print(sysconfig.get_path('purelib'))",
        cwd=folder,
        python=python,
    )
    zipfile.ZipFile(wheel).extractall(site)
    dependencies = [
        path
        for path in sys.path
        if Path(path).name in ("site-packages", "dist-packages")
    ]
    (Path(site) / "dependencies.pth").write_text("\n".join(dependencies))
    return python, Path(site)
