"""What is compiled is kept on disk, and compiled anew where a change of a file asks for
it.
"""

import dis
import importlib

import numba
import pytest

import grassmann_sc as gs
from processes import copy_modules, run_python

PART = """

@inlined_jit
def times(x):
    return {} * x
"""
OTHER = """
import grassmann_sc as core


@core.jit
def function(x):
    return core.times(x) + {}
"""
RUN = """
import other
print(other.function(10), sum(other.function.stats.cache_hits.values()))
"""


@pytest.fixture
def result_of(tmp_path):
    """A folder with the core, to which a compiled part is added, and a module that
    calls it.
    """
    copy_modules(tmp_path, "grassmann_sc")
    core = (tmp_path / "grassmann_sc.py").read_text(encoding="utf-8")

    def write(name, text):
        path = tmp_path / name
        # else as old as it was
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def build(factor, summand):
        write("grassmann_sc.py", core + PART.format(factor))
        write("other.py", OTHER.format(summand))
        (line,) = run_python(RUN, cwd=tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
        return line

    return build


def test_a_function_of_another_module_sees_that_a_part_of_the_core_has_changed(
    result_of,
):
    assert [result_of(2, 1), result_of(2, 1)] == ["21 0", "21 1"]
    assert result_of(3, 1) == "31 0"  # the core alone has changed
    assert result_of(3, 2) == "32 0"  # the module alone
    assert result_of(3, 2) == "32 1"


def module_named(name):
    return (
        gs
        if name == "grassmann_sc"
        else importlib.import_module(f"grassmann_sc.{name}")
    )


def compiled(module):
    return [
        value
        for value in vars(module).values()
        if isinstance(value, numba.core.dispatcher.Dispatcher)
    ]


def called(dispatcher):
    """The compiled functions that are named in this one."""
    function = dispatcher.py_func
    names = function.__code__.co_names
    values = [vars(gs).get(name) for name in names] if "core" in names else []
    values += [function.__globals__.get(name) for name in names]
    return [
        value for value in values if isinstance(value, numba.core.dispatcher.Dispatcher)
    ]


each_compiled = pytest.mark.parametrize(
    "name",
    [
        "grassmann_sc",
        "subspaces",
        "learn",
        "variants",
        "baselines.hulls",
        "baselines.tangent",
        "baselines.sets",
        "baselines.tensors",
    ],
)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@each_compiled
def test_what_counts_no_references_to_arrays_calls_nothing_that_makes_them(name):
    """Such an array would never be freed."""
    functions = compiled(module_named(name))
    assert functions
    for function in functions:
        if not function.targetoptions.get("_nrt", True):
            makers = [
                other.__name__
                for other in called(function)
                if other.targetoptions.get("_nrt", True)
            ]
            assert not makers, f"{function.__name__} calls {makers}"


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
@each_compiled
def test_a_part_that_is_put_into_its_caller_has_one(name):
    """Each further place would compile it once more."""
    functions = compiled(module_named(name))
    for function in functions:
        if function.targetoptions.get("inline") == "always":
            places = sum(
                argument == function.__name__
                for caller in functions
                for argument in calls_of(caller.py_func)
            )
            assert places == 1, f"{function.__name__} is called in {places} places"


def calls_of(function):
    """The names of the globals that a function's code loads, one for each place."""
    return [
        instruction.argval
        for instruction in dis.get_instructions(function)
        if instruction.opname == "LOAD_GLOBAL"
    ]
