"""The examples in docstrings: each public name has one, and all print what they say."""

import doctest
import importlib
import inspect

import matplotlib.pyplot as plt
import pytest

from processes import CORE, MODULES

NAMES = [CORE, *(f"{CORE}.{module}" for module in MODULES)]
LOADED = {name: importlib.import_module(name) for name in NAMES}
OPTIONAL = {"dask", "distributed", "skimage"}
FINDER = doctest.DocTestFinder(exclude_empty=True)


def examples(thing, name):
    """The examples of a module's or a function's docstring; of a class's and its
    methods'.
    """
    tests = FINDER.find(thing, name, module=False, globs={})
    inside = [] if thing in LOADED.values() else tests[1:]
    return [test for test in [*tests[:1], *inside] if test.examples]


PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in LOADED.values()
    for name in module.__all__
}
ALL = {
    name: examples(thing, name)
    for name, thing in {
        **{module.__name__: module for module in LOADED.values()},
        **PUBLIC,
    }.items()
}


class Runner(doctest.DocTestRunner):
    """Runs examples; those that an optional package is not there for are skipped by its
    name.
    """

    def report_unexpected_exception(self, out, test, example, exc_info):
        error = exc_info[1]
        missing = getattr(error.__cause__ or error, "name", None) or ""
        if isinstance(error, ImportError) and missing.partition(".")[0] in OPTIONAL:
            pytest.skip(f"the example of {test.name} needs {missing}")
        super().report_unexpected_exception(out, test, example, exc_info)


@pytest.fixture(autouse=True)
def figures(monkeypatch):
    """Examples of plots draw on no screen."""
    plt.switch_backend("Agg")
    yield
    plt.close("all")


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_has_an_example(name):
    assert ALL[name], f"{name} has no >>> example"


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name]])
@pytest.mark.filterwarnings("error")
def test_examples_print_what_they_say(name):
    for test in ALL[name]:
        lines = []
        Runner(verbose=False).run(test, out=lines.append)
        assert not lines, "".join(lines)


@pytest.mark.parametrize("name", ["gsc", "glc", "classify"])
def test_help_says_what_each_option_does(name):
    function = PUBLIC[f"{CORE}.{name}"]
    listed = [line.strip().partition(": ") for line in function.__doc__.splitlines()]
    described = {
        name for names, colon, _ in listed if colon for name in names.split(", ")
    }
    options = set(inspect.signature(function).parameters) - {"X", "D"}
    assert options <= described


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_import_as_a_user_would(name):
    """From the core or through it, so that they run in a clone, beside copied files,
    installed.
    """
    lines = [
        line.strip()
        for test in ALL[name]
        for example in test.examples
        for line in example.source.splitlines()
    ]
    ours = [line for line in lines if line.startswith("from grassmann")]
    assert ours and all(
        line.startswith(("from grassmann_sc import ", "from grassmann_sc."))
        and "_kit" not in line
        for line in ours
    )
