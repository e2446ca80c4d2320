"""The project's own files, which its checks look at. What else lies beside them is not
looked at.
"""

import functools
import subprocess
from pathlib import Path

import setup

ROOT = Path(__file__).resolve().parent.parent
CORE = setup.CORE


@functools.cache
def own_files(suffix=".py"):
    """Names, below ROOT, of the project's files with this suffix.

    They are what git tracks; in a copy without git, the modules, files at the root that
    are no Python, and all that lies in the folders.
    """
    names = tracked() or packaged()
    return sorted(
        name for name in names if name.endswith(suffix) and (ROOT / name).is_file()
    )


def tracked():
    """What git tracks below ROOT; nothing where there is no git, or ROOT is not the
    project's.
    """
    try:
        process = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True
        )
    except OSError:
        return []
    names = process.stdout.decode().split("\0")
    return names if process.returncode == 0 and f"{CORE}.py" in names else []


def packaged():
    """The modules, other files at the root, and all of the folders."""
    paths = [*setup.modules(ROOT).values(), ROOT / "setup.py"]
    paths += [path for path in ROOT.glob("*") if path.suffix != ".py"]
    for folder in (
        "baselines",
        "benchmarks",
        "docs",
        "examples",
        "large",
        setup.APPLICATION,
        "tests",
    ):
        paths += (ROOT / folder).rglob("*")
    return {path.relative_to(ROOT).as_posix() for path in paths}


@functools.cache
def modules():
    """{module: its file} of the modules of the project, the core among them."""
    own = own_files()
    return {
        name: path
        for name, path in setup.modules(ROOT).items()
        if path.relative_to(ROOT).as_posix() in own
    }
