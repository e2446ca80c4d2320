"""What is said about compilation: once, before a long one, and through logging."""

import pytest

from processes import ROOT, run_python

MODULE = """
import logging, sys
sys.stderr = sys.stdout
import grassmann_sc as gs

@gs.jit(long=True)
def long_to_compile(x):
    return x + 1

@gs.jit
def short(x):
    return x - 1
"""
CALLS = """
for x in (1, 2, 1.0):
    assert short(long_to_compile(x)) == x
"""
LINE = "grassmann_sc: compiling long to compile, which takes some seconds, before its first use"


def notices(folder, setting="", cache=None):
    """The lines on stderr of calls with an integer and with a float."""
    if not (folder / "jitted.py").exists():  # a new one is compiled anew
        (folder / "jitted.py").write_text(MODULE, encoding="utf-8")
    code = f"import sys; sys.path.append({str(ROOT)!r}); from jitted import *; {setting}\n{CALLS}"
    return run_python(code, cwd=folder, NUMBA_CACHE_DIR=str(cache or folder))


def test_what_is_long_and_not_on_disk_is_announced_once_for_each_type(tmp_path):
    assert notices(tmp_path) == [LINE] * 2
    assert notices(tmp_path) == []


def test_what_nothing_can_keep_is_announced_in_every_run(tmp_path, monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, "/dev/null/no")
    monkeypatch.setenv("LOCALAPPDATA", "/dev/null")
    (tmp_path / "__pycache__").touch()  # a file where the folder would be
    for _ in range(2):
        assert notices(tmp_path, cache="/dev/null/no") == [LINE] * 2


@pytest.mark.parametrize(
    "setting",
    ["logging.getLogger('grassmann_sc').setLevel('ERROR')", "logging.disable()"],
)
def test_notices_can_be_silenced(tmp_path, setting):
    assert notices(tmp_path, setting) == []
