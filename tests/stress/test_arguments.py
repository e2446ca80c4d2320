"""Laws of every argument of every public call.

A value that does not suit it is refused by a ValueError or TypeError (ImportError for
an extra, OSError for a path) from a file of the project that names the argument, or, for
a value of the right type, another that it does not fit; or the result is finite and in
the form of the valid one's, and the value is not of those that nobody can mean. How an
array lies in memory changes nothing, and no call changes its arguments.
"""

import copy
import inspect
import os
import re
import resource
import traceback
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
from arrays import (
    LAYOUTS,
    changed_arrays,
    contents,
    is_finite,
    leaves,
    worst_difference,
)
from calls import hints_of, public_calls, run, valid_arguments
from hostile import BAD_ARRAYS, REFUSED_ARRAYS, limited
from problems import generators

ROOT = Path(core.__file__).parent
CLEAR_ELSEWHERE = ("sklearn/utils/validation.py",)  # whose errors name the argument
# What was not asked in time has no share.
MAY_BE_NAN = {("tuning.Search.choose", "choose.seconds")}
HUGE = {"10**30", "10**400"}
ENDLESS = {"n_epochs"}  # what is asked for with HUGE of them may be done
# constants of the code that calls it
OF_CODE = {
    "files.write_arrays": {"kind", "arrays"},
    "files.read_arrays": {"kind", "dtype_kinds", "needed"},
}
HELD = {  # what an error may call the values of an argument whose own name is X
    "X": "sets frames clips videos systems bases labels",
    "y": "labels",
    "clips2": "clips",
    "sets": "frames sample_weight",  # one a set: their number may not fit
    "sets2": "sets",
    "atom_sets": "sets frames",
    "videos": "sets frames",
    "silhouettes": "frames",
    "kernels": "bases",
}
NO_NUMBERS = {  # in place of anything; never that of a number
    "None": None,
    "text": "abc",
    "no text": "",
    "a path with a zero byte": "no/such\0path",
    "a path to nowhere": Path("no/such/folder/file.npy"),
    "bytes": b"abc",
    "complex": 1 + 2j,
    "complex numbers": np.array([1j, 2]),
    "objects": np.array([None, "a"], object),
    "ragged": [[1.0, 2.0], [3.0]],
    "NaN": float("nan"),
    "inf": float("inf"),
    "-inf": -float("inf"),
    "0-d NaN": np.array(np.nan),
    "-10**400": -(10**400),
    "a dict": {"a": 1},
    "a set": {1, 2},
    "a lambda": lambda *args, **kwargs: None,
    "an object": object(),
    "a type": int,
    "a masked number": np.ma.array([1.0, 2.0], mask=[False, True]),
    "a date": np.datetime64("2015-01-01"),
    "an iterator": iter(range(3)),
}
CONSTANTS = NO_NUMBERS | {
    "True": True,
    "zero": 0,
    "-1": -1,
    "-0.5": -0.5,
    "2.5": 2.5,
    "0-d": np.array(3.0),
    "10**30": 10**30,
    "10**400": 10**400,
    "4e307": 4e307,
    "1e-320": 1e-320,
    "[]": [],
    "an empty array": np.empty((0, 0, 0)),
    "1-d": np.ones(3),
    "2-d": np.ones((2, 3)),
    "4-d": np.ones((1, 2, 3, 2)),
}
BAD_LABELS = {
    "one less": lambda y: y[:-1],
    "one more": lambda y: [*y, "z"],
    "unhashable": lambda y: [[label] for label in y],
    "a column": lambda y: np.array(y)[:, None],
    "one NaN": lambda y: [float("nan"), *y[1:]],
    "mixed types": lambda y: [1, 2.5, *y[2:]],
    "a masked label": lambda y: np.ma.array(
        np.arange(len(y)), mask=np.arange(len(y)) < 1
    ),
}
REFUSED_LABELS = {"one less", "one more", "a masked label"}


def bad_values(valid, rng):
    """{name: what to put in place of this valid value}, and names of those that must be
    refused.
    """
    values = {name: copy.copy(constant) for name, constant in CONSTANTS.items()}
    first, *rest = valid if isinstance(valid, list) and valid else [None]
    if isinstance(valid, np.ndarray) and valid.dtype.kind in "buif":
        changed = {name: f(valid, rng) for name, f in BAD_ARRAYS.items()}
        return values | changed, {*NO_NUMBERS} | REFUSED_ARRAYS
    if isinstance(first, np.ndarray):
        changed = {name: [f(first, rng), *rest] for name, f in BAD_ARRAYS.items()}
        changed["a set less"] = rest
        return values | changed, {*NO_NUMBERS} | REFUSED_ARRAYS
    if isinstance(first, str):
        changed = {name: f(valid) for name, f in BAD_LABELS.items()}
        refused = {*NO_NUMBERS} - {"objects", "an iterator"} | REFUSED_LABELS
        return values | changed, refused
    is_number = isinstance(valid, (int, float)) and not isinstance(valid, bool)
    return values, {*NO_NUMBERS} if is_number else set()


def may_be_unused(name, argument, default, arguments):
    """Local codes need no tolerance; estimators keep what another option leaves unused;
    those without memory learn from no X.
    """
    local = arguments.get("n_neighbors") is not None
    if local and argument in ("tol", "max_iter"):
        return True
    if default is None and argument.endswith(".y"):
        return True
    if "estimators" not in name or argument != "fit.X":
        unset = default is None or type(default) in (int, float)
        return "estimators" in name and unset
    kept = inspect.getsource(public_calls()[name][0].args[0].fit)
    return "X[:1]" in kept or not re.search(r"\w_\b.* =", kept)


@pytest.fixture(scope="module", autouse=True)
def memory():
    """A call that asks for very much memory ends in a MemoryError, not in swapping."""
    with limited(resource.RLIMIT_AS, 6 * 2**30):
        yield


@pytest.mark.parametrize("name", public_calls())
@settings(max_examples=12)
@given(data=st.data(), rng=generators)
def test_what_does_not_suit_an_argument_is_refused_by_its_name(name, data, rng):
    arguments = data.draw(valid_arguments(name), "arguments")
    of_users = {*public_calls()[name][1]} - OF_CODE.get(name, set())
    argument = data.draw(st.sampled_from(sorted(of_users)))
    default = public_calls()[name][1][argument].default
    valid = arguments.get(argument, default)
    last = argument.rpartition(".")[2]
    values, refused = bad_values(valid, rng)
    unasked = {"None"} if default is None or argument == "base" else set()
    unasked |= HUGE if last in ENDLESS else set()
    unasked |= {"inf"} if last == "shrinkage" else set()  # nothing is whitened
    how = data.draw(st.sampled_from([kind for kind in values if kind not in unasked]))
    must_fail = how in refused and argument in arguments
    must_fail &= not may_be_unused(name, argument, default, arguments)
    must_fail &= last != "paths" or how not in REFUSED_LABELS
    value = values[how]
    before = contents([*arguments.values(), value])
    try:
        result = run(name, arguments, {argument: value})
        # of a Dask array errors come when it is asked for
        result = result.compute() if hasattr(result, "compute") else result
    except Exception as error:
        check_error(error, name, argument, arguments, how, value)
    else:
        assert not must_fail, f"{argument} = {how} is accepted"
        assert is_finite(result) or (name, argument) in MAY_BE_NAN
        if are_alike(value, valid):
            assert form(result) <= form(run(name, arguments))
    assert contents([*arguments.values(), value]) == before, "arguments are changed"


def check_error(error, name, argument, arguments, how, value):
    """It is of a type that tells, comes from a file of ours, and names the argument."""
    parameters = public_calls()[name][1]
    hints = hints_of(parameters[argument])
    if {"Callable", "Kernel", "Any"} & hints and how in ("a lambda", "a type"):
        return  # it raised this itself
    shown = os.fsdecode(value) if isinstance(value, bytes) else str(value)
    of_file = isinstance(error, (OSError, ValueError)) and shown in str(error)
    if {"PathLike", "Any"} & hints and of_file:
        return
    report = f"{name}({argument} = {how}): {type(error).__name__}: {error}"
    assert isinstance(error, (ValueError, TypeError, ImportError)), report
    origin = traceback.extract_tb(error.__traceback__)[-1].filename
    ours = Path(origin).parent in (ROOT, ROOT / "baselines", ROOT / "large")
    assert ours or origin.endswith(CLEAR_ELSEWHERE), f"{report}, raised in {origin}"
    accepted = [argument.rpartition(".")[2]]
    valid = arguments.get(argument)
    texts = isinstance(valid, list) and isinstance(valid[0], str)
    of_another = parameters[argument].default is None or texts or accepted == ["labels"]
    if of_another or how not in NO_NUMBERS:  # told by what it does not fit
        accepted += [other.rpartition(".")[2] for other in parameters]
    accepted += [held for word in accepted for held in HELD.get(word, "").split()]
    named = re.search(rf"\b({'|'.join(accepted)})\b", str(error))
    assert named, f"{report} does not name {argument}"


def are_alike(value, valid):
    """Numbers both, or arrays of one number of axes? Then results have one form."""
    plain = (int, float, np.ndarray)
    if not (isinstance(value, plain) and isinstance(valid, plain)):
        return False
    kinds = np.asarray(value).dtype.kind + np.asarray(valid).dtype.kind
    return {*kinds} <= {*"iuf"} and np.ndim(value) == np.ndim(valid)


def form(result):
    return {(leaf.ndim, leaf.dtype.kind in "biuf") for leaf in leaves(result)}


# --------------------------------------------------------------------------- layouts

# integers are legal
DATA = {"sets", "atom_sets", "frames", "videos", "A", "B", "silhouettes"}
SAME = 1e-9  # largest difference: another layout may be summed in another order
# of what vanishes, as a gap does, where norm2 is 2
ROUNDED = 32 * np.finfo(float).eps * 2


@pytest.mark.parametrize("name", public_calls())
@settings(max_examples=5)
@given(data=st.data())
def test_the_layout_of_arrays_changes_nothing(name, data):
    plain = data.draw(valid_arguments(name))
    whole = [key for key in plain if key.rpartition(".")[2] in DATA]
    layout = data.draw(st.sampled_from([*LAYOUTS, *["integers"][: len(whole)]]))
    if layout == "integers":
        rounded = {
            key: changed_arrays(plain[key], lambda A: np.rint(4 * A)) for key in whole
        }
        changed = {key: changed_arrays(rounded[key], np.int32) for key in whole}
        plain = plain | rounded
    else:
        changed = {key: changed_arrays(plain[key], LAYOUTS[layout]) for key in plain}
    try:
        expected = run(name, plain)
    except ValueError:
        assert layout == "integers"  # which do not suit every call
        return
    before = contents([*changed.values()])
    difference = worst_difference(run(name, plain, changed), expected, ROUNDED / SAME)
    assert difference <= SAME, f"{layout} changes the result by {difference:.2g}"
    assert contents([*changed.values()]) == before, "arguments are changed"
