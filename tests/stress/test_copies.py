"""Imports of copied modules, in folders, zips and packages of their users, beside files
that would mislead them. Which can be imported is told by what was copied and by the
import statements in it; a fresh interpreter says which can.
"""

import ast
import functools
import json
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import put
from processes import copy_modules, run_python
from setup import CORE, modules

CHILD = """
import importlib, json, sys
path, core, form, *names = sys.argv[1:]
sys.path.insert(0, path)
kit = importlib.import_module(core)
D = kit.random_subspaces(3, 5, 2, rng=0)
found = {"": [kit.__file__, bool((kit.gsc(D, D, 0.1) > 0.9).sum() == 3)]}
for name in names:
    folder, _, last = f"{core}.{name}".rpartition(".")
    forms = {"from": f"from {folder} import {last} as module",
             "import": f"import {folder}.{last}; module = sys.modules['{folder}.{last}']",
             "attribute": f"import {core}; module = {folder}.{last}",
             "names": f"from {folder}.{last} import *; module = sys.modules['{folder}.{last}']"}
    space = {"sys": sys}
    try:
        # Python itself gives a folder's modules as attributes only once they are imported
        exec(forms["from" if "." in name else form], space)
        found[name] = [space["module"].__file__, space["module"].__name__]
    except (ImportError, AttributeError):
        found[name] = None
print(json.dumps(found))
"""
NAMES = sorted({*modules()} - {CORE})
# what else lies in a user's folder: links to nowhere, names of other kinds of files, a
# script, bytes that are no text, and remains
LINKS = {".#notes.py": "nobody@nowhere.1234:5678", "link.py": "nowhere.py"}
BESIDE = LINKS | {
    "notes.py": None,
    "tuning.py": None,
    "baselines": None,
    "train.py": b"print('train.py was run')\nraise SystemExit(3)\n",
    "notes2.py": b"\xff\xfe\0import",
    "learn.py~": b"old",
    "learn.py.orig": b"old",
    "grassmann_sc.cpython-39.pyc": b"old",
    "core.ipynb": b"old",
}


@functools.cache
def needs(name):
    """The module, and those that its import statements, outside functions, lead to."""
    names = {name} - {CORE}
    for statement in ast.parse(modules()[name].read_bytes()).body:
        if isinstance(statement, ast.ImportFrom):
            own = statement.module.removeprefix(f"{CORE}.")
            for inside in [own, *(f"{own}.{alias.name}" for alias in statement.names)]:
                inside = inside.removeprefix(f"{CORE}.")
                if inside in NAMES:
                    names |= needs(inside)
    return names


@pytest.mark.parametrize("place", ["plain", "sp ace ünï", "a/b.c/d", "zip", "package"])
@settings(max_examples=4)
@given(
    st.sets(st.sampled_from(NAMES), max_size=6),
    st.booleans(),
    st.sets(st.sampled_from([*BESIDE])),
    st.sampled_from(["from", "import", "attribute", "names"]),
)
def test_copied_modules_are_found_with_what_they_need(place, some, whole, beside, form):
    if whole:
        some = set().union(*map(needs, some))
    some |= needs(CORE)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        folder = Path(folder).resolve()
        where = folder / place
        where.mkdir(parents=True)
        copy_modules(where, CORE, *some)
        for name in beside - {*LINKS} if place == "zip" else beside:
            if not (where / name).exists():
                put(where / name, BESIDE[name])
        path = where
        core = CORE
        if place == "zip":
            path = Path(shutil.make_archive(where, "zip", where))
        elif place == "package":
            (where / "__init__.py").touch()
            path = folder
            core = f"package.{CORE}"
        elsewhere = tempfile.mkdtemp(dir=folder)
        lines = run_python(
            CHILD, path, core, form, *NAMES, cwd=elsewhere, NUMBA_DISABLE_JIT="1"
        )
        answers = json.loads(lines.pop())
        assert not lines, "something else was run"
        file, right = answers.pop("")
        assert file.startswith(str(path)) and right
        for name, answer in answers.items():
            if place == "package" or not needs(name) <= some:
                assert answer is None, f"{name} is found, though not all was copied"
            else:
                file, own_name = answer
                assert file.startswith(str(path)) and own_name == f"{CORE}.{name}"
