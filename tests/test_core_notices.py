"""What is said about compilation: once, before it, and through logging."""

import pytest

from processes import run_python

CODE = """
import logging, sys
sys.stderr = sys.stdout
import grassmann_sc as gs
gs.COMPILED_IN = 0.1  # so that short functions are worth a word
{setting}
gs.bases_gram(gs.random_subspaces(3, 4, 2, 0))
"""
EVERY_RUN = "in every run: no folder can keep it"


def told(cache, setting=""):
    """The lines on stderr."""
    return run_python(CODE.format(setting=setting), NUMBA_CACHE_DIR=str(cache))


def test_what_is_not_on_disk_is_announced_once(tmp_path):
    first = told(tmp_path)
    assert [line.partition(", about ")[0] for line in first] == [
        "grassmann_sc: compiling sum squares",
        "grassmann_sc: compiling mirror",
    ]
    assert all(line.endswith(" s, this once") for line in first)
    assert told(tmp_path) == []


def test_what_nothing_can_keep_is_announced_in_every_run(tmp_path):
    outside = {
        "HOME": "/dev/null/no",
        "XDG_CACHE_HOME": "/dev/null/no",
        "LOCALAPPDATA": "/dev/null",
    }
    code = CODE.format(setting="").replace("import grassmann_sc", "import copied")
    (root,) = run_python("import grassmann_sc; print(grassmann_sc.__file__)")
    with open(root, encoding="utf-8") as file:
        (tmp_path / "copied.py").write_text(file.read(), encoding="utf-8")
    (tmp_path / "__pycache__").touch()  # a file where the folder would be
    for _ in range(2):
        lines = run_python(code, cwd=tmp_path, NUMBA_CACHE_DIR="/dev/null/no", **outside)
        assert [line.rpartition(" s, ")[2] for line in lines] == [EVERY_RUN] * 2


@pytest.mark.parametrize(
    "setting",
    [
        "logging.getLogger('grassmann_sc').setLevel('ERROR')",
        "logging.disable()",
        "gs.COMPILED_IN = 1e-9",
    ],
)
def test_notices_can_be_silenced(tmp_path, setting):
    assert told(tmp_path, setting) == []
