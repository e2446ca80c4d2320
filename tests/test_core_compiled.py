"""What is compiled is kept on disk, and compiled anew where a change of a file asks for it."""

import pytest

from processes import copy_modules, run_python

PART = """

@jit_part
def times(x):
    return {} * x
"""
ROOM = """
import grassmann_sc as core


@core.jit
def function(x):
    return core.times(x) + {}
"""
RUN = """
import room
print(room.function(10), sum(room.function.stats.cache_hits.values()))
"""


@pytest.fixture
def house(tmp_path):
    """A folder with the core, to which a compiled part is added, and a module that calls it."""
    copy_modules(tmp_path, "grassmann_sc")
    core = (tmp_path / "grassmann_sc.py").read_text(encoding="utf-8")

    def write(name, text):
        path = tmp_path / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # else as old as it was
            path.write_text(text, encoding="utf-8")

    def build(factor, summand):
        write("grassmann_sc.py", core + PART.format(factor))
        write("room.py", ROOM.format(summand))
        line, = run_python(RUN, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        return line

    return build


def test_a_function_of_another_module_sees_that_a_part_of_the_core_has_changed(house):
    assert [house(2, 1), house(2, 1)] == ["21 0", "21 1"]
    assert house(3, 1) == "31 0"  # the core alone has changed
    assert house(3, 2) == "32 0"  # the module alone
    assert house(3, 2) == "32 1"
