"""Imports of the campaign: copied modules in folders, zips and packages of their users,
beside files that would mislead them.

Which modules can be imported is told by what was copied and by the import statements in
it; a fresh interpreter says which can.
"""

import ast
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from benchmarks.campaign_calls import hold, rng_of
from benchmarks.common import ROOT
from docs.house import CORE, modules

CHILD = """
import importlib, json, os, sys
settings = json.loads(sys.argv[1])
sys.path[:0] = settings["path"]
core = importlib.import_module(settings["core"])
D = core.random_subspaces(3, 5, 2, rng=0)
found = {"": [core.__file__, bool((core.gsc(D, D, 0.1) > 0.9).sum() == 3)]}
found["dir"] = sorted(set(dir(core)) - set(core.__all__))
for name in settings["names"]:
    folder, _, last = f"{settings['core']}.{name}".rpartition(".")
    forms = {"from": f"from {folder} import {last} as module",
             "import": f"import {folder}.{last}; module = sys.modules['{folder}.{last}']",
             "attribute": f"import {settings['core']}; module = {folder}.{last}",
             "names": f"from {folder}.{last} import *; module = sys.modules['{folder}.{last}']"}
    space = {"sys": sys}
    try:
        # Python itself gives a folder's modules as attributes only once they are imported
        exec(forms["from" if "." in name else settings["form"]], space)
        found[name] = [space["module"].__file__, space["module"].__name__]
    except (ImportError, AttributeError) as error:
        found[name] = str(error)
print(json.dumps(found))
"""
FORMS = ["from", "import", "attribute", "names"]
PLACES = ["plain", "sp ace ünï", "a/b.c/d", "zip", "package"]


@functools.cache
def needs():
    """{module: modules that its own import statements, outside functions, name}."""
    found = {}
    for name, path in modules().items():
        found[name] = set()
        for statement in ast.parse(path.read_bytes()).body:
            source = getattr(statement, "module", None) or ""
            if isinstance(statement, ast.ImportFrom) and source.startswith(CORE):
                inside = source.removeprefix(CORE).lstrip(".")
                names = [f"{inside}.{one.name}".lstrip(".") for one in statement.names]
                found[name] |= {one for one in names if one in modules()}
    return found


def imports(seed, case):
    """Some modules in some place, beside strangers; each module of all is asked for."""
    rng = rng_of("imports", seed, case)
    names = sorted(set(modules()) - {CORE})
    copied = {
        str(name) for name in rng.choice(names, int(rng.integers(0, 7)), replace=False)
    }
    if rng.random() < 0.7:  # with what they need
        while more := set().union(*(needs()[name] for name in copied)) - copied:
            copied |= more
    place = PLACES[case % len(PLACES)]
    form = FORMS[rng.integers(len(FORMS))]
    chosen = [one for one in STRANGERS if rng.random() < 0.4]
    what = f"{sorted(copied)} in {place}, by {form}, beside {[one.__name__ for one in chosen]}"
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folder = Path(folder).resolve()
        target = folder / {"zip": "unpacked", "package": "mypkg"}.get(place, place)
        for name in {CORE, *copied}:
            to = target / modules()[name].relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(modules()[name], to)
        for stranger in chosen:
            stranger(target, copied)
        core = CORE
        where = target
        if place == "zip":
            where = zipped(target, folder / "modules.zip")
        if place == "package":
            (target / "__init__.py").touch()
            core = f"mypkg.{CORE}"
        found = asked(
            folder, where if place != "package" else folder, core, form, names
        )
        check_imports(found, where, copied, place, what)


def zipped(folder, path):
    """A zip of the files of a folder; links to nowhere cannot be in it."""
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.exists():
                archive.write(file, file.relative_to(folder))
    return path


def asked(folder, path, core, form, names):
    """What a fresh interpreter answers, in a folder that holds none of the modules."""
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    settings = {"path": [str(path)], "core": core, "form": form, "names": names}
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONPATH"
    }
    done = subprocess.run(
        [sys.executable, "-c", CHILD, json.dumps(settings)],
        cwd=elsewhere,
        env=environment | {"NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    hold(
        done.returncode == 0,
        f"an interpreter says {done.stderr[-1500:]}: {form}, {path.name}",
        "imports fail: " + (done.stderr.strip().splitlines() or [""])[-1][:100],
    )
    *said, last = done.stdout.splitlines()
    hold(not said, f"something else was run, which says {said}", "a stranger was run")
    return json.loads(last)


def check_imports(found, where, copied, place, what):
    """Modules that were copied with what they need are found, there; of others it is
    said.
    """
    file, right = found.pop("")
    hold(
        file.startswith(str(where)) and right,
        f"the core is {file}, its codes right: {right}: {what}",
        "another core",
    )
    listed = found.pop("dir")
    there = set() if place == "package" else {name.partition(".")[0] for name in copied}
    hold(
        listed == sorted(there),
        f"dir(core) lists {listed}, not {sorted(there)}: {what}",
        "dir(core) lists other modules",
    )
    for name, answer in found.items():
        whole = {name}
        while more := set().union(*(needs()[one] for one in whole)) - whole:
            whole |= more
        if place != "package" and whole <= copied:
            hold(
                isinstance(answer, list)
                and answer[0].startswith(str(where))
                and answer[1] == f"{CORE}.{name}",
                f"{name} gives {answer}: {what}",
                "a module that is there is not found",
            )
        else:
            hold(
                isinstance(answer, str),
                f"{name} is {answer}, but was not copied: {what}",
                "a module is found that is not there",
            )
            missing = whole if place == "package" else whole - copied or whole
            parts = {part for one in missing for part in one.split(".")}
            hold(
                any(part in answer for part in parts),
                f"{name}: {answer!r} names nothing that is missing: {what}",
                "what is missing is not named",
            )


# ---------------------------------------------------- what else lies in a user's folder


def lock_of_an_editor(folder, copied):
    (folder / ".#notes.py").symlink_to("nobody@nowhere.1234:5678")


def dangling_module(folder, copied):
    if "plots" not in copied:
        (folder / "plots.py").symlink_to("nowhere.py")


def folders_with_names_of_files(folder, copied):
    (folder / "notes.py").mkdir()
    if "tuning" not in copied:
        (folder / "tuning.py").mkdir()


def script_of_the_user(folder, copied):
    (folder / "train.py").write_text("print('train.py was run')\nraise SystemExit(3)\n")


def modules_of_the_user(folder, copied):
    """Under names of the toolkit, but none of its modules."""
    for name in {"learn", "files", "kernels"} - copied:
        (folder / f"{name}.py").write_text(f"print('{name}.py was run')\n")


def bytes_that_are_no_text(folder, copied):
    (folder / "notes2.py").write_bytes(b"\xff\xfe\0import")


def empty_folder_of_baselines(folder, copied):
    (folder / "baselines").mkdir(exist_ok=True)


def remains(folder, copied):
    for name in (
        "learn.py~",
        "learn.py.orig",
        "grassmann_sc.cpython-39.pyc",
        "core.ipynb",
    ):
        (folder / name).write_text("old")


STRANGERS = [
    lock_of_an_editor,
    dangling_module,
    folders_with_names_of_files,
    script_of_the_user,
    modules_of_the_user,
    bytes_that_are_no_text,
    empty_folder_of_baselines,
    remains,
]
