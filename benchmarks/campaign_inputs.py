"""Bad inputs of the campaign: every argument of every valid call in turn replaced by
bad values.

A case holds if the call raises a ValueError or TypeError (ImportError for an extra,
OSError for a path) from a file of the project that names the argument, or, for a value
of the right type, another that it does not fit; or if it returns a finite result in the
form of the valid one's, and the value is not of those that nobody can mean.
"""

import copy
import functools
import inspect
import os
import re
import resource
import signal
import traceback
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks import campaign_calls as calls
from benchmarks.campaign_calls import Done, Failed, hold, place_of, rng_of, run

WATCHDOG = 10  # seconds of a call
MEMORY = 6 * 2**30  # bytes that a call may take
CLEAR_ELSEWHERE = ("sklearn/utils/validation.py",)  # whose errors name the argument
# What was not asked in time has no share; zeros have no exponent.
MAY_BE_NAN = {
    ("tuning.Search.choose", "choose.seconds"),
    ("textures.fractal_exponents", "measure"),
}
ENDLESS = {"n_epochs"}  # what is asked for with 10**30 of them may be done
# constants of the code that calls it
OF_CODE = {
    "files.write_arrays": {"kind", "arrays"},
    "files.read_arrays": {"kind", "dtype_kinds", "needed"},
}
HELD = {  # what an error may call the values of an argument whose own name is X
    "X": "sets frames clips videos systems bases labels",
    "y": "labels",
    "clips2": "clips",
    "sets": "frames",
    "sets2": "sets",
    "atom_sets": "sets frames",
    "videos": "sets frames",
    "silhouettes": "frames",
    "kernels": "bases",
}


class Hang(BaseException):
    """The watchdog's bark."""


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
    "a generator": (),  # made anew for each call
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


def constant(name, valid, rng):
    """A bad value that does not depend on the valid one."""
    return (
        (i for i in range(3)) if name == "a generator" else copy.copy(CONSTANTS[name])
    )


def with_entry(value):
    """The change of a random entry to the value."""

    def change(A, rng):
        A = np.array(A, float)
        A.flat[rng.integers(A.size)] = value
        return A

    return change


def masked(A, rng):
    return np.ma.array(
        A, mask=np.arange(A.size).reshape(A.shape) == rng.integers(A.size)
    )


BAD_ARRAYS = {  # in place of an array, made of it
    "a NaN in it": with_entry(np.nan),
    "an inf in it": with_entry(np.inf),
    "a masked entry": masked,
    "an entry of 4e307": with_entry(4e307),
    "as complex": lambda A, rng: A + 0.5j,
    "as objects": lambda A, rng: A.astype(object),
    "as texts": lambda A, rng: A.astype(str),
    "an axis more": lambda A, rng: A[None],
    "an axis less": lambda A, rng: A[0],
    "a row less": lambda A, rng: A[:-1],
    "a row more": lambda A, rng: np.concatenate([A, A[:1]]),
    "another d": lambda A, rng: A[:, :-1] if A.ndim > 1 else A[:-1],
    "a column less": lambda A, rng: A[..., :-1],
    "no row": lambda A, rng: A[:0],
    "no column": lambda A, rng: A[..., :0],
    "times 4e307": lambda A, rng: np.multiply(A, 4e307, dtype=float),
    "times 1e-320": lambda A, rng: np.multiply(A, 1e-320, dtype=float),
    "negative": lambda A, rng: -np.asarray(A, float),
    "zeros": lambda A, rng: np.zeros(A.shape),
    "transposed": lambda A, rng: A.T,
}
REFUSED_ARRAYS = {
    "a NaN in it",
    "an inf in it",
    "a masked entry",
    "as complex",
    "as texts",
}
BAD_LABELS = {
    "one less": lambda y, rng: y[:-1],
    "one more": lambda y, rng: [*y, "z"],
    "unhashable": lambda y, rng: [[label] for label in y],
    "a column": lambda y, rng: np.array(y)[:, None],
    "one NaN": lambda y, rng: [float("nan"), *y[1:]],
    "mixed types": lambda y, rng: [1, 2.5, *y[2:]],
    "a masked label": lambda y, rng: np.ma.array(
        np.arange(len(y)), mask=np.arange(len(y)) == 0
    ),
}
REFUSED_LABELS = {"one less", "one more", "a masked label"}


def bad_values(valid):
    """{name: function} of what to put in place of this valid value; names that must be
    refused.
    """
    found = {name: functools.partial(constant, name) for name in CONSTANTS}
    refused = set()
    if isinstance(valid, np.ndarray) and valid.dtype.kind in "buif":
        found |= BAD_ARRAYS
        refused = {*NO_NUMBERS} | REFUSED_ARRAYS
    elif isinstance(valid, list) and valid and isinstance(valid[0], np.ndarray):
        for name, change in BAD_ARRAYS.items():
            found[f"{name} of one set"] = lambda valid, rng, change=change: [
                change(valid[0], rng),
                *valid[1:],
            ]
        found |= {"a set less": lambda valid, rng: valid[:-1]}
        refused = {*NO_NUMBERS} | {f"{name} of one set" for name in REFUSED_ARRAYS}
    elif isinstance(valid, list) and valid and isinstance(valid[0], str):
        found |= BAD_LABELS
        refused = {*NO_NUMBERS} - {"objects", "a generator"} | REFUSED_LABELS
    elif isinstance(valid, (int, float)) and not isinstance(valid, bool):
        refused = {*NO_NUMBERS}
    return found, refused


Input = namedtuple("Input", "call argument name make refused")


@functools.cache
def all_inputs():
    """Every Input: the calls as they are (argument None), and with each argument
    replaced.
    """
    found = []
    for call in calls.all_calls():
        found.append(Input(call, None, None, None, False))
        found += inputs_of(call)
    limit_memory()
    return found


@functools.cache
def limit_memory():
    """A call that takes more than MEMORY ends in a MemoryError, not in swapping."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    taken = (
        int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    )
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, hard))


def inputs_of(call):
    """A bad value must be refused where the call gives a value of its own."""
    # hypothesis' own
    for argument in call.tested if "strategies." not in call.name else ():
        default = call.parameters[argument].default
        values, refused = bad_values(call.arguments.get(argument, default))
        if argument.rpartition(".")[2] == "paths":
            refused = refused - REFUSED_LABELS
        if argument not in call.arguments or may_be_unused(call, argument, default):
            refused = set()
        for name, make in values.items():
            endless = argument.rpartition(".")[2] in ENDLESS and name in (
                "10**30",
                "10**400",
            )
            of_code = argument in OF_CODE.get(call.name, ())
            if not (
                endless
                or of_code
                or name == "None"
                and (default is None or argument == "base")
            ):
                yield Input(call, argument, name, make, name in refused)


def may_be_unused(call, argument, default):
    """Estimators keep what another option leaves unused; those without memory learn
    from no X.
    """
    if default is None and argument.endswith(".y"):
        return True
    if "estimators" not in call.name:
        return False
    kept = (
        inspect.getsource(call.function.args[0].fit)
        if argument == "fit.X"
        else "self.x_ ="
    )
    return (
        default is None
        or type(default) in (int, float)
        or "first_of(" in kept
        or not re.search(r"\w_\b.* =", kept)
    )


def inputs(seed, case):
    if case >= len(all_inputs()):
        raise Done
    tried = all_inputs()[rng_of("inputs", seed, 0).permutation(len(all_inputs()))[case]]
    call, argument, name, make, _ = tried
    changes = {}
    if argument is not None:
        valid = call.arguments.get(argument, call.parameters[argument].default)
        changes = {argument: make(valid, rng_of("inputs", seed, case))}
    try:
        with watchdog():
            result = run(call, **changes)
            # of a Dask array errors come when it is asked for
            if hasattr(result, "compute"):
                result = result.compute()
    except Hang:
        what = described(tried)
        raise Failed(
            f"{what} does not return within {WATCHDOG} s", f"{what} hangs"
        ) from None
    except BaseException as error:
        judge_error(tried, changes.get(argument), error)
    else:
        judge_result(tried, changes.get(argument), result)


def described(tried):
    return f"{tried.call.name}({tried.argument} = {tried.name})"


@contextmanager
def watchdog():
    """Raise Hang in this thread after WATCHDOG seconds."""

    def bark(number, frame):
        raise Hang

    signal.signal(signal.SIGALRM, bark)
    signal.alarm(WATCHDOG)
    try:
        yield
    finally:
        signal.alarm(0)


def judge_error(tried, value, error):
    """Failed unless the error is clear: its type, where it was raised, what it names."""
    name = str(tried.argument).rpartition(".")[2]
    place = place_of(error)
    told = f"{described(tried)}: {type(error).__name__}: {str(error)[:300]} ({place})"
    hold(
        tried.argument is not None,
        f"valid call fails: {told}",
        f"valid call fails: {place}",
    )
    parameter = tried.call.parameters[tried.argument]
    hints = calls.hints_of(parameter)
    if {"Callable", "Kernel", "Any"} & hints and tried.name in ("a lambda", "a type"):
        return  # it raised this itself
    shown = os.fsdecode(value) if isinstance(value, bytes) else str(value)
    of_file = isinstance(error, (OSError, ValueError)) and shown in str(error)
    if {"PathLike", "Any"} & hints and of_file:
        return
    kind = type(error).__name__
    hold(
        isinstance(error, (ValueError, TypeError, ImportError)),
        told,
        f"{kind} at {place}",
    )
    origin = traceback.extract_tb(error.__traceback__)[-1].filename
    clear = calls.is_ours(origin) or origin.endswith(CLEAR_ELSEWHERE)
    hold(clear, told, f"{kind} from elsewhere, {place}")
    accepted = [name]
    valid = tried.call.arguments.get(tried.argument)
    texts = isinstance(valid, list) and isinstance(valid[0], str) or name == "labels"
    of_another = parameter.default is None or texts  # told by what it does not fit
    if of_another or tried.name not in NO_NUMBERS:
        accepted += [other.rpartition(".")[2] for other in tried.call.parameters]
    accepted += [held for word in accepted for held in HELD.get(word, "").split()]
    named = any(re.search(rf"\b{word}\b", str(error)) for word in accepted)
    hold(named, told, f"does not name {name}, {place}")


def judge_result(tried, made, result):
    """Failed unless the value may be accepted and the result is finite, in the valid
    one's form.
    """
    call, argument, name, _, refused = tried
    what = described(tried)
    last = str(argument).rpartition(".")[2]
    hold(not refused, f"{what} was accepted", f"{name} accepted in {last}")
    bad = calls.unfit(result)
    hold(
        bad is None or (call.name, argument) in MAY_BE_NAN,
        f"{what} gives {bad}",
        f"{call.name}({argument}) gives {bad}",
    )
    if alike(made, call.arguments.get(argument)):
        usual = USUAL.get(id(call)) or USUAL.setdefault(id(call), form(run(call)))
        hold(
            form(result) <= usual,
            f"{what} gives arrays of {form(result)} (dimensions, numbers?),"
            f" not {usual}",
            f"{call.name}({argument}) gives another form",
        )


def alike(made, valid):
    """Numbers both, or arrays of one number of axes? Then results have one form."""
    kinds = [
        np.asarray(value).dtype.kind
        if isinstance(value, (int, float, np.ndarray))
        else "O"
        for value in (made, valid)
    ]
    return set(kinds) <= set("iuf") and np.ndim(made) == np.ndim(valid)


USUAL = {}  # forms of the results of valid calls


def form(result):
    return {(leaf.ndim, leaf.dtype.kind in "biuf") for leaf in calls.leaves(result)}
