"""The house's own files, which its checks look at. What else lies beside them is not looked at."""

import configparser
import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = "grassmann_sc"


@functools.cache
def own_files(suffix=".py"):
    """Names, below ROOT, of the house's files with this suffix.

    They are what git tracks; in a copy without git, what setup.cfg packages at the root, and all
    that lies in the folders.
    """
    names = tracked() or packaged()
    return sorted(name for name in names if name.endswith(suffix) and (ROOT / name).is_file())


def tracked():
    """What git tracks below ROOT; nothing where there is no git, or ROOT is not the house's."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True)
    except OSError:
        return []
    names = done.stdout.decode().split("\0")
    return names if done.returncode == 0 and f"{CORE}.py" in names else []


def packaged():
    """The modules of setup.cfg, other files at the root, and all of the folders."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    listed = {name.rpartition(".")[2] for name in config["options"]["py_modules"].split()}
    found = [path for path in ROOT.glob("*") if path.suffix != ".py" or path.stem in listed]
    for folder in ("benchmarks", "docs", "examples", "tests"):
        found += (ROOT / folder).rglob("*")
    return [path.relative_to(ROOT).as_posix() for path in found]


def modules():
    """{module: its file} of the modules at the root, the core among them."""
    return {name.removesuffix(".py"): ROOT / name for name in own_files() if "/" not in name}
