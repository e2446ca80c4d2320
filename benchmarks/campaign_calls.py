"""What the kinds of the campaign share: valid small calls of every public name, made
from its signature and hints, and what came back as plain arrays. A call works in the
folder that it finds itself in: paths are relative.
"""

import copy
import functools
import importlib
import inspect
import itertools
import os
import pickle
import re
import traceback
import warnings
import zlib
from collections import namedtuple
from contextlib import contextmanager
from operator import methodcaller
from pathlib import Path

import numpy as np
import scipy.sparse

from benchmarks.common import ROOT
from docs.house import CORE, modules

REQUIRED = inspect.Parameter.empty


class Done(Exception):
    """There is no such case: all have been tried."""


class Failed(Exception):
    """A case failed; cause: what it has in common with others."""

    def __init__(self, message, cause=None):
        super().__init__(message)
        self.cause = cause or message.partition(":")[0]


def hold(condition, message, cause=None):
    """Failed unless the condition holds."""
    if not condition:
        raise Failed(message, cause)


@contextmanager
def failing(what):
    """Whatever is raised in here, but Done, fails the case and is told with what."""
    try:
        yield
    except Done:
        raise
    except Failed as error:
        raise Failed(f"{error}: {what}", error.cause) from None
    except (
        BaseException
    ) as error:  # an interrupt or an exit that comes through is a failure too
        kind = type(error).__name__
        place = place_of(error)
        told = f"{kind}: {str(error)[:300]} ({place}): {what}"
        raise Failed(told, f"{kind} at {place}") from None


def rng_of(kind, seed, case):
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), case])


def place_of(error):
    """file:line of the innermost frame of all, and of the project if that is another."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if is_ours(frame.filename)] or frames[:1]
    places = [
        f"{Path(frame.filename).name}:{frame.lineno}"
        for frame in (frames[-1], ours[-1])
    ]
    return " in ".join(dict.fromkeys(places))


def is_ours(filename):
    """Does a frame of this file belong to the toolkit or its examples?"""
    return Path(filename).parent in (ROOT, ROOT / "baselines", ROOT / "examples")


def leaves(value):
    """The numbers and texts in a result as a list of arrays, in a fixed order."""
    if value is None or callable(value) and not hasattr(value, "__dict__"):
        return []
    if scipy.sparse.issparse(value):
        return [value.toarray()]
    if isinstance(value, (bool, int, float, complex, str, np.generic, np.ndarray)):
        return [np.asarray(value)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value, key=str) for leaf in leaves(value[key])]
    if isinstance(value, (tuple, list)) or inspect.isgenerator(value):
        return [leaf for part in value for leaf in leaves(part)]
    if type(value).__module__.startswith("dask"):
        return leaves(value.compute())
    if type(value).__module__.startswith("grassmann_sc"):
        return leaves(vars(value))
    return []


def worst_difference(result, expected, least=0.0):
    """Largest difference relative to the largest number of its array, or to the least
    unit if that is larger; inf of different forms.
    """
    ours = leaves(result)
    theirs = leaves(expected)
    if [leaf.shape for leaf in ours] != [leaf.shape for leaf in theirs]:
        return np.inf
    return max(
        (difference_of_arrays(a, b, least) for a, b in zip(ours, theirs)), default=0.0
    )


def difference_of_arrays(a, b, least):
    numbers = b.dtype.kind in "biuf"
    if np.array_equal(a, b, equal_nan=numbers):
        return 0.0
    if not numbers:
        return np.inf
    apart = ~((a == b) | np.isnan(a) & np.isnan(b))
    unit = max(np.abs(b.astype(float)).max(), least)
    worst = (np.abs(a.astype(float) - b)[apart] / unit).max()
    return float(worst) if worst < np.inf else np.inf  # NaN too


def unfit(result):
    """The first NaN or infinity in a result, or None."""
    for leaf in leaves(result):
        if leaf.dtype.kind in "fc" and not np.isfinite(leaf).all():
            return leaf[~np.isfinite(leaf)][0]
    return None


# parameters: {argument: its inspect.Parameter}. An argument of a method is
# "method.argument". tested: those that this call gives first, to be replaced by bad
# values.
Call = namedtuple("Call", "name function parameters arguments tested")
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
MOST_TRIALS = 300
# methods that scikit-learn asks for, or that classes share
FORMAL = ("get_", "set_", "check_")


@functools.cache
def all_calls():
    """Valid Calls of every public name of every module, in a fixed order.

    Arguments that must be given are tried from values_of until a call holds; each other
    argument that has values is then given in turn. Failed if nothing holds. Found once
    a campaign: kept in the file that CALLS names.
    """
    kept = Path(os.environ.get("CALLS", "calls.pickle"))
    known = {one[0]: one for one in callables()}
    if not kept.exists():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seen = set()
            calls = [call for one in known.values() for call in calls_of(*one, seen)]
        kept.write_bytes(
            pickle.dumps([(call.name, call.arguments, call.tested) for call in calls])
        )
    known_values()  # its files
    return [
        Call(*known[name], arguments, tested)
        for name, arguments, tested in pickle.loads(kept.read_bytes())
    ]


def callables():
    """(name, function, parameters) of all that can be called of the public names."""
    for module in modules():
        imported = importlib.import_module(
            module if module == CORE else f"{CORE}.{module}"
        )
        for name in imported.__all__:
            thing = getattr(imported, name)
            if name in NO_CALL:
                continue
            name = f"{module.rpartition('.')[2]}.{name}"
            parameters = parameters_of(thing)
            if inspect.isclass(thing):
                for steps in sequences_of(thing):
                    yield (
                        f"{name}.{steps[-1]}",
                        functools.partial(run_object, thing, steps),
                        parameters_of(thing, *steps),
                    )
            elif module in ("strategies", "plots"):
                way = one_of if module == "strategies" else drawn
                yield name, functools.partial(way, thing), parameters
            else:
                on_workers = functools.partial(on_threads, thing)
                yield name, on_workers if "client" in parameters else thing, parameters


def sequences_of(cls):
    """The public methods of a class, each after fit where there is one."""
    own = [
        name
        for name in dir(cls)
        if callable(getattr(cls, name))
        and (name == "__call__" or not name.startswith(("_", *FORMAL)))
        and getattr(cls, name).__module__.startswith("grassmann_sc")
        and name not in NO_CALL
    ]
    own.sort(key=lambda name: name not in ("predict", "transform"))
    alone = {"fit", "partial_fit", "fit_transform", "__call__"}
    return [
        [name] if name in alone or "fit" not in own else ["fit", name] for name in own
    ]


def parameters_of(thing, *steps):
    """{argument: its inspect.Parameter}, those of the methods of a class as
    "method.argument".
    """
    found = {}
    for step in (None, *steps):
        function = thing if step is None else getattr(thing, step)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind not in VARIABLE and name != "self":
                found[f"{step}.{name}" if step else name] = parameter
    return found


def calls_of(name, function, parameters, seen):
    """A call, and one for each other value of an argument that no call of the class has
    tested; of values that the hint alone gives, one.
    """
    values = {
        argument: values_of(name, argument) or derived_values(parameter)
        for argument, parameter in parameters.items()
    }
    given = {
        argument: parameter.default
        for argument, parameter in parameters.items()
        if type(parameter.default) in (int, float)
    }
    given |= {
        argument: values[argument][0]
        for argument in parameters
        if argument.rpartition(".")[2] in ALWAYS
    }
    needed = [
        argument for argument in parameters if parameters[argument].default is REQUIRED
    ]
    others = [
        argument
        for argument in parameters
        if argument not in given | dict.fromkeys(needed)
    ]
    start = first_valid(name, function, parameters, given, needed, values)
    for extra in others if start is None else ():
        start = start or first_valid(
            name, function, parameters, given, [*needed, extra], values
        )
    hold(
        start is not None,
        f"{name} has no valid call of the values in benchmarks/campaign_calls.py",
    )
    owner = name.rpartition(".")[0] if name.count(".") == 2 else name
    new = [argument for argument in parameters if (owner, argument) not in seen]
    seen |= {(owner, argument) for argument in new}
    calls = [start._replace(tested=new)]
    least = {argument: start.arguments[argument] for argument in (*given, *needed)}
    for argument in (*needed, *others):
        if argument in new:
            most = None if values_of(name, argument) else int(argument in others)
            calls += itertools.islice(
                varied(start, least, argument, values[argument]), most
            )
    return calls


def varied(start, least, argument, values):
    """The valid ones of the calls with another value of an argument, or with it and the
    least.
    """
    for value in values:
        for arguments in (start.arguments, least):
            call = start._replace(
                arguments=arguments | {argument: value}, tested=[argument]
            )
            if value is not start.arguments.get(argument) and holds(call):
                yield call
                break


def first_valid(name, function, parameters, given, needed, values):
    choices = itertools.product(*(values[argument] for argument in needed))
    calls = (
        Call(name, function, parameters, given | dict(zip(needed, chosen)), [])
        for chosen in itertools.islice(choices, MOST_TRIALS)
    )
    return next(filter(holds, calls), None)


def holds(call):
    """Does the call give a finite result?"""
    try:
        return unfit(run(call)) is None
    except Exception:
        return False


def run(call, **changes):
    """The result of a call with some arguments changed, on copies of the others."""
    own = {name: value for name, value in call.arguments.items() if name not in changes}
    return call.function(**copy.deepcopy(own), **changes)


def run_object(cls, steps, **arguments):
    """The result of the last of some methods of a new object, its attributes if that is
    itself.
    """
    thing = cls(**{name: value for name, value in arguments.items() if "." not in name})
    for step in steps:
        own = {
            name.partition(".")[2]: value
            for name, value in arguments.items()
            if name.partition(".")[0] == step
        }
        result = getattr(thing, step)(**own)
    return vars(thing) if result is thing else result


def on_threads(function, **arguments):
    """A call on workers that are threads of this process, unless it says otherwise."""
    return function(**{"client": client_of_threads()} | arguments)


@functools.cache
def client_of_threads():
    import distributed

    return distributed.Client(n_workers=1, processes=False, dashboard_address=None)


def one_of(strategy, **arguments):
    """What a strategy draws first."""
    from hypothesis import Phase, find, settings

    first = settings(
        database=None, derandomize=True, deadline=None, phases=[Phase.generate]
    )
    return find(strategy(**arguments), lambda value: True, settings=first)


def drawn(plot, **arguments):
    """A picture, drawn in full; its images."""
    import matplotlib.pyplot as plt

    try:
        ax = plot(**arguments)
        ax.figure.canvas.draw()
        return [np.ma.filled(image.get_array().astype(float), 0) for image in ax.images]
    finally:
        plt.close("all")


# given even where they need not be
ALWAYS = {"rng", "random_state", "n_iter", "max_iter"}
INTEGERS = [2, 3, 4, 5, 12]
FLOATS = [0.1, 0.5, 2.0]
NO_CALL = {  # what starts processes, and objects that only the code of the kit handles
    "local_client",
    "Checkpoint",
    "merge",
    "update",
    "collect",
    "fill",
    "pack",
    "values",
    "once",
    "rows_of",
    "class_scores",
    "chosen_kernel",
    "codes",
    "options",
    "is_precomputed",
    "each_reg",
    "own",
}


def values_of(name, argument):
    """What is known to suit the argument of a function, a class or a module, or all of
    its name.
    """
    argument = argument.rpartition(".")[2]
    module, thing = name.split(".")[:2]
    last = name.rpartition(".")[2]
    keys = (
        f"{last}.{argument}",
        f"{thing}.{argument}",
        f"{module}.{argument}",
        argument,
    )
    return next((known_values()[key] for key in keys if key in known_values()), [])


def derived_values(parameter):
    """Numbers that its hint allows, and what is not the default of a switch."""
    if isinstance(parameter.default, bool):
        return [not parameter.default]
    hints = hints_of(parameter)
    return INTEGERS * bool({"int", "Size"} & hints) + FLOATS * ("float" in hints)


def hints_of(parameter):
    """The words of its type hint."""
    return {*re.findall(r"\w+", str(parameter.annotation))}


@functools.cache
def known_values():
    """{argument: small valid values} of what no hint tells; files in the present
    folder.
    """
    import grassmann_sc as core
    from grassmann_sc import files, kernels, learn, streams
    from grassmann_sc.baselines import dynamics, tensors

    rng = np.random.default_rng(0)
    X = core.random_subspaces(6, 6, 2, 1)
    D = core.random_subspaces(5, 6, 2, 2)
    Y = core.random_subspaces(6, 6, 2, 3)
    labels = ["a", "b", "a", "b", "c"]
    y = ["a", "b", "c"] * 2
    K = core.projection_kernel(X)
    sets = [rng.standard_normal((5, 4)) for _ in range(6)]
    atom_sets = [rng.standard_normal((4, 4)) for _ in range(5)]
    kernel = kernels.rbf(0.1)
    tangent = Y - X @ (X.swapaxes(1, 2) @ Y)
    frames = rng.standard_normal((6, 7))
    images = rng.integers(0, 256, (6, 12, 12)).astype(float)
    clips = np.stack(
        [
            images,
            images[::-1],
            images[:, ::-1],
            images[:, :, ::-1],
            images.swapaxes(1, 2),
            images[:, ::-1, ::-1],
        ]
    )
    C = rng.standard_normal((7, 2))
    A = np.array([[0.5, 0.2], [-0.1, 0.3]])
    factors = tensors.mode_bases(clips[:3], 2)
    folds = [(np.arange(3), np.arange(3, 6)), (np.arange(3, 6), np.arange(3))]
    ranges = np.broadcast_to([1.0, 4.0], (4, 5, 2)).copy()
    levels = rng.integers(0, 3, (8, 8, 8))
    np.save("clip.npy", images)
    np.save("codes.npy", core.gsc(X, D, 0.2))
    files.write_codes("parts", X, D, 0.2, sparse_output=True, replace=True)
    files.save("dictionary.npz", D, lam=0.1, labels=labels)
    files.write_arrays("arrays.npz", "thing", {"a": np.arange(3.0)})
    learn.gdl(X, 3, 0.1, n_iter=1, rng=0, checkpoint="checkpoint.npz")
    streams.OnlineGDL(3, 0.1, rng=0).fit(X).save("online.npz")
    return {
        "A": [X, frames, A],
        "B": [frames[:4]],
        "C": [C],
        "D": [D],
        "H": [tangent],
        "K": [K],
        "K_dd": [core.projection_kernel(D)],
        "K_xd": [core.projection_kernel(X, D)],
        "S": [core.projection_kernel(D) + np.eye(5)],
        "T": [np.eye(6)[:, :3]],
        "W": [tangent],
        "X": [X, sets, list(clips), factors, X[0]],
        "Y": [Y, factors, Y[0]],
        "arrays": [{"a": X}],
        "atom_labels": [labels],
        "atom_sets": [atom_sets],
        "atoms": [D],
        "atoms_per_class": [1, dict(a=1, b=1, c=2)],
        "base": ["mean", X[0]],
        "bases": [kernels.kernel_bases(sets, kernel, 2)],
        "bases2": [kernels.kernel_bases(atom_sets, kernel, 2)],
        "cells_per_block": [(1, 1)],
        "checkpoint": ["written.npz"],
        "clip": [images],
        "clips": [list(clips)],
        "clips2": [list(clips[:2])],
        "codes": [core.gsc(X, D, 0.2)],
        "coding": ["local"],
        "confidence": [np.array([0.2, 0.9])],
        "answers.asked": [np.arange(3, 6)],
        "answers.candidate": [K],
        "answers.train": [np.arange(3)],
        "costs": [np.array([3.0, 2, 1])],
        "differences": [np.array([1.0, 2, 0])],
        "dimension": [1, 4],
        "distances": [np.stack([core.chordal_distance(X)] * 2)],
        "dtype_kinds": [dict(a="f")],
        "features": [np.stack([K, K**2])],
        "folds": [folds],
        "frames": [frames, images],
        "frames.frames": [images],
        "hog.frames": [np.tile(images, (1, 2, 2))],
        "grams": [{("linear", 1): K}],
        "hull": ["convex"],
        "image_shape": [(3, 2)],
        "init": [D, core.gsc(X, D, 0.2)],
        "kernel": [kernel, "precomputed", "polynomial"],
        "kernel_grams.bases": [[kernels.kernel_bases(sets, kernel, 2)]],
        "kernels": [[kernel]],
        "kernels.kernel": [kernel],
        "kind": ["thing"],
        "describe.kind": ["raw"],
        "labels": [labels, y],
        "vote.labels": [np.array([labels, labels[::-1]])],
        "lam": [0.1],
        "sparse_codes.lam": [0.1, np.array([0.3, 0.1])],
        "gsc.lam": [0.1, np.array([0.3, 0.1])],
        "lam_scale": ["max"],
        "lams": [np.array([0.1, 0.5])],
        "levels": [levels],
        "lift": [kernels.Lift(kernel, 2)],
        "max_iter": [100],
        "estimators.max_iter": [2],
        "n_clusters": [2],
        "tuning.left_out": [np.random.default_rng(0).random((6, 3))],
        "p_values.scores": [np.random.default_rng(1).random((4, 3))],
        "measure": [images],
        "measurements": [dynamics.compress(images, 8, 40)],
        "method": ["kmeans", "random"],
        "metric": ["geodesic"],
        "n_iter": [2],
        "local_predictions.n_neighbors": [[2, 3]],
        "needed": [["a"]],
        "norm2": [2.0, np.full(6, 2.0)],
        "out": ["written.npy"],
        "path": [
            "clip.npy",
            "dictionary.npz",
            "codes.npy",
            "parts",
            "arrays.npz",
            "online.npz",
        ],
        **{
            f"{name}.path": ["saved.npz"]
            for name in ("save", "write_arrays", "write_whole")
        },
        "paths": [["clip.npy", "clip.npy"]],
        "pixels_per_cell": [(4, 4)],
        "plot_answers.frames": [list(images[:5])],
        "plot_sheet.rows": [[[(images[0], "a"), None, (images[1], "b")]]],
        "predict": [constant_prediction],
        "predicted": [labels[::-1]],
        "radii": [(1, 2), (1, 1, 1)],
        "ranges": [ranges],
        "recovered": [images + 1],
        "reference": ["common"],
        "resume": ["checkpoint.npz"],
        "right": [np.array([0.0, 1])],
        "random_state": [0],
        "rng": [0],
        "rule": ["sum", "svm"],
        "sample_weight": [np.arange(1.0, 7)],
        "sets": [sets],
        "sets2": [atom_sets],
        "shape": [(3, 6, 6)],
        "share": [0.9],
        "shares": [dict(a=np.array([1.0, 0.5]), b=np.array([0.5, 0.9]))],
        "silhouettes": [images > 200],
        "size": [(8, 8), (4, 6, 6)],
        "systems": [[(A, C), (A.T, C)]],
        "systems2": [[(A / 2, C)]],
        "t": [0.3],
        "truth": [labels],
        "videos": [sets],
        "weights": [np.arange(1.0, 7)],
        "write": [methodcaller("write", b"0")],
        "y": [y],
        "nearest_predictions.y": [labels],
    }


def constant_prediction(K_dd, K_xd, y):
    """predict for tuning.Search."""
    return {(): np.full(len(K_xd), y[0])}
