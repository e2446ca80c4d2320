"""Small valid calls of every public name, made from its signature, its hints and what
`known_values` holds. A call works in the present folder: its paths are relative.
"""

import copy
import functools
import importlib
import inspect
import itertools
import re
from operator import methodcaller

import numpy as np
from hypothesis import strategies as st

import grassmann_sc as core
from arrays import is_finite
from grassmann_sc import files, kernels, learn
from grassmann_sc.baselines import dynamics, tensors
from grassmann_sc.large import streams
from grassmann_sc.large.codes import write_codes
from setup import CORE, modules

REQUIRED = inspect.Parameter.empty
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
MOST_TRIALS = 300
# methods that scikit-learn asks for, or that classes share
FORMAL = ("get_", "set_", "check_")
ALONE = {"fit", "partial_fit", "fit_transform", "__call__"}  # methods without a fit
# given even where they need not be; codes may replace those of a call before
ALWAYS = {"rng", "random_state", "n_iter", "max_iter", "write_codes.replace"}
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
}


@functools.cache
def public_calls():
    """{name: (function, parameters)} of all that can be called of the public names, but
    for strategies, whose arguments hypothesis checks.
    """
    calls = {}
    for module in sorted({*modules()} - {"strategies"}):
        imported = importlib.import_module(f"{CORE}.{module}".removesuffix(f".{CORE}"))
        for last in [word for word in imported.__all__ if word not in NO_CALL]:
            name = f"{module.rpartition('.')[2]}.{last}"
            thing = getattr(imported, last)
            if inspect.isclass(thing):
                for steps in sequences_of(thing):
                    call = functools.partial(called_object, thing, steps)
                    calls[f"{name}.{steps[-1]}"] = call, parameters_of(thing, *steps)
            else:
                parameters = parameters_of(thing)
                way = drawn if module == "plots" else on_threads
                special = module == "plots" or "client" in parameters
                call = functools.partial(way, thing) if special else thing
                calls[name] = call, parameters
    return calls


def sequences_of(cls):
    """The public methods of a class, each after fit where there is one."""
    own = [
        name
        for name in dir(cls)
        if callable(getattr(cls, name))
        and (name == "__call__" or not name.startswith(("_", *FORMAL)))
        and getattr(cls, name).__module__.startswith(CORE)
        and name not in NO_CALL
    ]
    alone = ALONE if "fit" in own else own
    return [[name] if name in alone else ["fit", name] for name in own]


def parameters_of(thing, *steps):
    """{argument: its inspect.Parameter}, those of the methods of a class as
    "method.argument".
    """
    parameters = {}
    for step in (None, *steps):
        function = thing if step is None else getattr(thing, step)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind not in VARIABLE and name != "self":
                parameters[f"{step}.{name}" if step else name] = parameter
    return parameters


def called_object(cls, steps, **arguments):
    """The result of the last of some methods of a new object, its attributes if that is
    itself, but for what it was given.
    """
    of_step = {step: {} for step in ("", *steps)}
    for name, value in arguments.items():
        step, _, last = name.rpartition(".")
        of_step[step][last] = value
    thing = cls(**of_step[""])
    results = [getattr(thing, step)(**of_step[step]) for step in steps]
    if results[-1] is not thing:
        return results[-1]
    given = {*of_step[""], "fitted_with_"}  # a copy of some parameters
    return {name: vars(thing)[name] for name in {*vars(thing)} - given}


def on_threads(function, **arguments):
    """A call on workers that are threads of this process, unless it says otherwise."""
    return function(**{"client": client_of_threads()} | arguments)


@functools.cache
def client_of_threads():
    import distributed

    return distributed.Client(n_workers=1, processes=False, dashboard_address=None)


def drawn(plot, **arguments):
    """A picture, drawn in full; its images."""
    import matplotlib.pyplot as plt

    plt.close("all")  # the pictures of calls before
    ax = plot(**arguments)
    ax.figure.canvas.draw()
    return [np.ma.filled(image.get_array().astype(float), 0) for image in ax.images]


def run(name, arguments, changes=()):
    """The result of a call with some arguments changed, on copies of the others."""
    own = {key: value for key, value in arguments.items() if key not in changes}
    return public_calls()[name][0](**copy.deepcopy(own), **dict(changes))


def holds(name, arguments):
    """Does the call give a finite result?"""
    try:
        return is_finite(run(name, arguments))
    except Exception:
        return False


@functools.cache
def simplest(name):
    """Arguments of a valid call, those of them that must be given, and values of each
    other: those needed are tried until the call holds, if need be with one that is not.
    """
    parameters = public_calls()[name][1]
    values = {}
    given = {}
    for argument, parameter in parameters.items():
        values[argument] = values_of(name, argument) or derived_values(parameter)
        if {argument.rpartition(".")[2], f"{name}.{argument}"} & ALWAYS:
            given[argument] = values[argument][0]
        elif type(parameter.default) in (int, float):
            given[argument] = parameter.default
    needed = [key for key in parameters if parameters[key].default is REQUIRED]
    others = [key for key in parameters if key not in {*given, *needed}]
    for extra in [[], *([key] for key in others)]:
        names = [*needed, *extra]
        choices = itertools.product(*(values[key] for key in names))
        for chosen in itertools.islice(choices, MOST_TRIALS):
            arguments = given | dict(zip(names, chosen))
            if holds(name, arguments):
                least = {key: arguments[key] for key in (*given, *needed)}
                varied = {key: values[key] for key in names + others if values[key]}
                return arguments, least, varied
    raise AssertionError(f"{name} has no valid call of the values in {__file__}")


@st.composite
def valid_arguments(draw, name):
    """Arguments of a valid call: the simplest, or with another value of one."""
    arguments, least, values = simplest(name)
    argument = draw(st.sampled_from([None, *values]))
    if argument is not None:
        value = draw(st.sampled_from(values[argument]))
        for start in (arguments, least):
            if holds(name, start | {argument: value}):
                return start | {argument: value}
    return arguments


def values_of(name, argument):
    """What is known to suit the argument of a function, a class or a module, or all of
    its name.
    """
    module, thing, *_ = name.split(".")
    last = argument.rpartition(".")[2]
    owners = (name.rpartition(".")[2], thing, module)
    known = [
        known_values().get(key) for key in (*(f"{o}.{last}" for o in owners), last)
    ]
    return next((values for values in known if values), [])


def derived_values(parameter):
    """Numbers that its hint allows, and what is not the default of a switch."""
    if isinstance(parameter.default, bool):
        return [not parameter.default]
    hints = hints_of(parameter)
    return INTEGERS * bool({"int", "Size"} & hints) + FLOATS * ("float" in hints)


def hints_of(parameter):
    """The words of its type hint."""
    return {*re.findall(r"\w+", str(parameter.annotation))}


def constant_prediction(K_dd, K_xd, y):
    """predict for tuning.Search."""
    return {(): np.full(len(K_xd), y[0])}


@functools.cache
def known_values():
    """{argument: small valid values} of what no hint tells; files in the present
    folder.
    """
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
    np.save("clip.npy", images)
    np.save("codes.npy", core.gsc(X, D, 0.2))
    write_codes("parts", X, D, 0.2, sparse_output=True, replace=True)
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
        "U": [np.eye(3)[:, :2]],
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
        "coding": ["local", functools.partial(core.locality_codes, n_neighbors=2)],
        "confidence": [np.array([0.2, 0.9])],
        "answers.tested": [np.arange(3, 6)],
        "answers.candidate": [K],
        "answers.train": [np.arange(3)],
        "costs": [np.array([3.0, 2, 1])],
        "curves": [{"gSC": {1: [60.0, 70.0], 2: [80.0]}}],
        "differences": [np.array([1.0, 2, 0])],
        "dimension": [1, 4],
        "distances": [np.stack([core.chordal_distance(X)] * 2)],
        "dtype_kinds": [dict(a="f")],
        "features": [np.stack([K, K**2])],
        "folds": [[(np.arange(3), np.arange(3, 6)), (np.arange(3, 6), np.arange(3))]],
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
        "lam": [0.1],
        "sparse_codes.lam": [0.1, np.array([0.3, 0.1])],
        "gsc.lam": [0.1, np.array([0.3, 0.1])],
        "lam_scale": ["max"],
        "meaning": ["sets of a class"],
        "plot_timeline.stretches": [[("day", 0, 4, "walk"), ("day", 4.0, 6, None)]],
        "plot_timeline.truth": [[("day", 0, 3, "walk")]],
        "plot_timeline.unlike": ["walk"],
        "right.name": [("linear", 1)],
        "lams": [np.array([0.1, 0.5])],
        "levels": [rng.integers(0, 3, (8, 8, 8))],
        "lift": [kernels.Lift(kernel, 2)],
        "max_iter": [100],
        "estimators.max_iter": [2],
        "n_clusters": [2],
        "calibration.left_out": [np.random.default_rng(0).random((6, 3))],
        "p_values.scores": [np.random.default_rng(1).random((4, 3))],
        "shrinkage": [0.1],
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
        "plot_sheet.rows": [[[(images[0], "a"), None, (images[1], "b")]]],
        "predict": [constant_prediction],
        "predicted": [labels[::-1]],
        "radii": [(1, 2), (1, 1, 1)],
        "edges": [np.broadcast_to([1.0, 2.0, 4.0], (4, 5, 3)).copy()],
        "recovered": [images + 1],
        "reference": ["common"],
        "resume": ["checkpoint.npz"],
        "right": [np.array([0.0, 1])],
        "random_state": [0],
        "rng": [0],
        "rule": ["sum", "svm"],
        "s": [np.array([1.0, 0.75])],
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
