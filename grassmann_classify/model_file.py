"""A model as a file: plain arrays and JSON, of which each part is checked.

The file holds no code and no fitted estimator: a model is fitted anew when it is
loaded. Functions of the user's own are given again when it is loaded.
"""

import dataclasses
import json
import typing
from pathlib import Path

import numpy as np

import grassmann_sc as core
from grassmann_classify.answers import answered
from grassmann_classify.baseline_rows import EVERY_ESTIMATOR
from grassmann_classify.clips import Recipe
from grassmann_classify.model import PARAMETERS, Model
from grassmann_classify.points import Reader
from grassmann_classify.rows import estimator_of, is_coding
from grassmann_classify.settings import (
    DESCRIPTORS,
    GIVEN,
    Rule,
    axes_named,
    check_value,
)
from grassmann_sc import files, kernels

# The arrays of a file: kinds of dtype and shape, in which a letter is the same number
# everywhere. A model has bases, or rows of which offset tells where each set's begin;
# so has its coder, whose arrays have CODER before their names.
CODER = "coder_"
OF_CODER = {"bases", "rows", "offset"}
PARTS = {
    "model": ("U", ()),  # JSON
    "labels": ("biufUS", ("N",)),
    "names": ("U", ("N",)),
    "clips": ("U", ("N",)),
    "groups": ("U", ("N",)),
    "bases": ("f", ("N", "d", "p")),
    "rows": ("biuf", ("n", "d")),
    "videos": ("biuf", ("n", "h", "w")),
    "offset": ("i", ("N+1",)),
    "atoms": ("f", ("n_atoms", "d", "q")),
    "pixels": ("u", ("n_pixels",)),
    "sides": ("i", ("N", 2)),
}
PARTS |= {CODER + part: PARTS[part] for part in OF_CODER}
OF_SETS = {"labels", "names", "clips", "groups"}  # what a model shares with its coder
NEEDED = {"model", "labels", "names", "clips"}
MOST = 10**5  # frames, rows and pixels a side: a recipe of more would fill the memory
JSON = "recipe reader frame method parameters chosen score judged".split()
READS = ("gram", "kernels", "subspaces", "sets", "videos", "affine", "convex")
READS += ("frames", "mean", "moments")


def save(path, model):
    """Write a Model to this path, whole or not at all."""
    content = _content(model)
    content["coder"] = model.coder and _content(model.coder)
    arrays = {
        "model": files.as_json(content),
        "labels": model.labels,
        "names": np.array(model.names, str),
        "clips": np.array(model.clips, str),
        **_arrays_of_points(model),
    }
    if model.coder is not None:
        of_coder = _arrays_of_points(model.coder)
        arrays |= {CODER + part: array for part, array in of_coder.items()}
    if model.groups is not None:
        arrays["groups"] = np.array(model.groups, str)
    if model.atoms is not None:
        arrays["atoms"] = model.atoms
    if model.pictures is not None:
        shown = [np.empty((0, 0), np.uint8) if p is None else p for p in model.pictures]
        arrays["sides"] = np.array([p.shape for p in shown], np.int64)
        arrays["pixels"] = np.concatenate([p.ravel() for p in shown])
    files.write_arrays(path, "model", arrays)


def _content(model):
    """What JSON keeps of a Model."""
    content = {name: getattr(model, name) for name in JSON}
    reader = dataclasses.asdict(model.reader) | {"kernel": _described(model.reader)}
    recipe = dataclasses.asdict(model.recipe)
    recipe["describe"] = model.recipe.describe is not None
    return content | {"recipe": recipe, "reader": reader}


def _arrays_of_points(model):
    if isinstance(model.points, np.ndarray):
        return {"bases": model.points}
    kind = "videos" if model.reader.reads == "videos" else "rows"
    offset = np.cumsum([0, *map(len, model.points)], dtype=np.int64)
    return {kind: np.concatenate(model.points), "offset": offset}


def _described(reader):
    """The kernel of a Reader as JSON has it."""
    return reader.kernel and {"gamma": getattr(reader.kernel, "gamma", None)}


def load(path, *, describe=None, kernel=None, name="path"):
    """The Model that save wrote; ValueError if the file is damaged or holds no model.

    describe, kernel: the functions that the model was learned with, of Recipe and of
    Settings, which a file does not hold. name: what errors call the path.
    """
    arrays = arrays_of(path, name)
    with files.refuse_damaged(path, "model", name):
        content = _read_json(arrays.pop("model"))
    for part in filter(None, (content, content["coder"])):
        _add_functions(path, part, describe, kernel)
    with files.refuse_damaged(path, "model", name):
        return _models(content, arrays)


def _add_functions(path, content, describe, kernel):
    """Put the functions of the user's own into the parts that need them."""
    recipe = content["recipe"]
    reader = content["reader"]
    needs_kernel = isinstance(reader.kernel, dict)
    for what, needed, function in (
        ("describe", recipe.describe, describe),
        ("kernel", needs_kernel, kernel),
    ):
        if needed and function is None:
            raise ValueError(
                f"{path} needs the function that it was learned with: {what}"
            )
    describe = describe if recipe.describe else None
    content["recipe"] = dataclasses.replace(recipe, describe=describe)
    if needs_kernel:
        reader.kernel = kernel


def _read_json(array):
    """The checked JSON of a model, whose coder is None in files of before there was one."""
    content = json.loads(str(array))
    if isinstance(content, dict):
        content.setdefault("coder", None)
    content = files.check_names(content, "model", [*JSON, "coder"])
    if content["coder"] is not None:
        files.check_names(content["coder"], "coder", JSON)
    for part in filter(None, (content, content["coder"])):
        part["recipe"] = _recipe(part["recipe"])
        part["reader"] = _reader(part["reader"])
    return content


def is_model(path):
    """Is this the file of a model, as save left it?"""
    try:
        arrays_of(path, "path")
    except (OSError, ValueError):
        return False
    return True


def arrays_of(path, name):
    """The arrays of a file."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"{name} must be a file, got {path}")
    kinds = {part: kinds for part, (kinds, _) in PARTS.items()}
    return files.read_arrays(path, "model", kinds, NEEDED, name)


def _recipe(content):
    """The Recipe of JSON."""
    hints = typing.get_type_hints(Recipe)
    if isinstance(content, dict):  # of before there were tables
        content = dict.fromkeys(("columns", "axes", "step")) | content
    held = files.check_names(content, "recipe", hints)
    for field, value in held.items():
        kinds = {
            int: Rule(int, least=0, most=MOST),
            bool: Rule(bool),
            str: Rule("text"),
            int | None: Rule(int, least=1, most=MOST, optional=True),
            tuple | None: Rule(int, least=1, most=MOST, many=True, optional=True),
            tuple[str, ...] | None: Rule("text", many=True, optional=True),
        }
        if field == "describe":
            check_value(value, "recipe's describe", Rule(bool))
        elif field == "feature_options":
            if not isinstance(value, dict):
                raise TypeError(f"recipe's {field} must be a dict, got {value!r:.60}")
        elif field in ("key", "axes"):
            check_value(value, f"recipe's {field}", Rule("text", optional=True))
        else:
            value = check_value(value, f"recipe's {field}", kinds[hints[field]])
            held[field] = tuple(value) if isinstance(value, list) else value
    recipe = Recipe(**held)
    if recipe.features not in (*DESCRIPTORS, GIVEN):
        raise ValueError(f"recipe's features must be known, got {recipe.features!r}")
    if recipe.axes is not None:
        axes_named(recipe.axes)
    if recipe.size is not None and len(recipe.size) != 2:
        raise ValueError(f"recipe's size must be two numbers, got {recipe.size}")
    for field in ("p", "every", "stack"):
        core.check_integer(getattr(recipe, field), f"recipe's {field}", 1)
    return recipe


def _reader(content):
    """The Reader of JSON; its kernel is a dict if it is the user's."""
    if isinstance(content, dict):  # of before there were spectra
        content.setdefault("spectrum", None)
    content = files.check_names(content, "reader", Reader.__dataclass_fields__)
    core.check_choice(content["reads"], "reader's reads", *READS)
    weighted = content["reads"] == "gram" and content["spectrum"] is not None
    subspaces = content["reads"] in ("gram", "kernels", "subspaces") and not weighted
    for field, rule in {
        "p": Rule(int, least=1, optional=not subspaces),
        "share": Rule(
            float, positive=True, most=1, optional=content["reads"] != "affine"
        ),
        "bound": Rule(
            float, positive=True, most=1, optional=content["reads"] != "convex"
        ),
        "n_blocks": Rule(int, least=1),
        "spectrum": Rule(float, least=0, optional=not weighted),
    }.items():
        content[field] = check_value(content[field], f"reader's {field}", rule)
    if content["spectrum"] is not None and (not weighted or content["p"]):
        raise ValueError(
            f"reader must have a spectrum to read gram alone, without p, got {content}"
        )
    kernel = content.pop("kernel")
    if kernel is not None and content["reads"] not in ("kernels", "affine"):
        raise ValueError(f"reader must have no kernel to read {content['reads']}")
    if kernel is not None:
        gamma = files.check_names(kernel, "reader's kernel", {"gamma"})["gamma"]
        rule = Rule(float, positive=True, optional=True)
        if check_value(gamma, "reader's gamma", rule) is not None:
            kernel = kernels.rbf(float(gamma))
    elif content["reads"] == "kernels":
        raise ValueError("reader must have a kernel to read kernels, got None")
    return Reader(**content, kernel=kernel)


def _models(content, arrays):
    """The Model of the parts of a file, with its coder."""
    of_coder = {
        part.removeprefix(CODER): arrays.pop(part)
        for part in [*arrays]
        if part.startswith(CODER)
    }
    coder = None
    if content["coder"] is not None:
        if is_coding(content["method"]) or not is_coding(content["coder"]["method"]):
            raise ValueError(
                "coder must be of a row that codes, and there if the model's does not, "
                f"got {content['coder']['method']!r} beside {content['method']!r}"
            )
        shared = {part: arrays[part] for part in OF_SETS & arrays.keys()}
        coder = _model(content["coder"], of_coder | shared)
    elif of_coder:
        raise ValueError(f"coder must be there for {', '.join(sorted(of_coder))}")
    return _model(content, arrays, coder)


def _model(content, arrays, coder=None):
    """The Model of the parts of a file, which are checked against each other."""
    sizes = {}
    for part, array in arrays.items():
        _check_shape(part, array.shape, PARTS[part][1], sizes)
    reader = content["reader"]
    method = check_value(content["method"], "method", Rule("text"))
    usual = estimator_of(method, EVERY_ESTIMATOR).get_params()
    parameters = content["parameters"]
    if not isinstance(parameters, dict):
        raise TypeError(f"parameters must be a dict, got {parameters!r:.60}")
    for field, value in parameters.items():
        short = field.rpartition("__")[2]
        if field not in usual or short not in PARAMETERS:
            raise ValueError(f"parameters must be those of {method}, got {field!r}")
        value = check_value(value, field, PARAMETERS[short])
        parameters[field] = tuple(value) if isinstance(value, list) else value
    if ("learned" in method) != ("atoms" in arrays):
        raise ValueError(f"atoms must be there if they were learned, not for {method}")
    for part in {"bases", "atoms"} & arrays.keys():
        weighted = part == "bases" and reader.spectrum is not None
        core.check_bases(arrays[part], part, weighted=weighted)
    frame = tuple(
        check_value(one, "frame", Rule(int, least=1)) for one in content["frame"]
    )
    if len(frame) > 2:
        raise ValueError(f"frame must be the shape of a frame, got {frame}")
    classes = np.unique(arrays["labels"])
    if len(classes) < 2:
        raise ValueError(f"labels must be of two classes or more, got {classes}")
    groups = arrays.get("groups")
    model = Model(
        content["recipe"],
        frame,
        method,
        parameters,
        reader,
        _points(reader, arrays, sizes["N"]),
        files.labels_to_keep(arrays["labels"], sizes["N"], "sets"),
        arrays["names"].tolist(),
        arrays["clips"].tolist(),
        None if groups is None else groups.tolist(),
        check_value(content["chosen"], "chosen", Rule("text")),
        check_value(content["score"], "score", Rule(float, least=0, most=1)),
        check_value(content["judged"], "judged", Rule(int, least=1)),
        _pictures(arrays),
        arrays.get("atoms"),
        coder,
    )
    answered(model, model.asked(model.points[:1]))  # or the row reads others
    return model


def _check_shape(part, shape, letters, sizes):
    """ValueError unless a shape is what letters say, those that sizes has included."""
    for letter, size in zip(letters, shape):
        wanted = letter
        if letter == "N+1":
            letter = "N"
            size -= 1
        if isinstance(letter, str):
            wanted = sizes.setdefault(letter, size)
        if size != wanted:
            raise ValueError(f"{part} must fit the other parts, got {shape}")
    if len(shape) != len(letters):
        raise ValueError(f"{part} must have the axes {letters}, got {shape}")


def _points(reader, arrays, n):
    """The points of a Reader; ValueError if other arrays are there."""
    kind = "bases" if reader.takes_subspaces else "rows"
    kind = "videos" if reader.reads == "videos" else kind
    wanted = {kind} if kind == "bases" else {kind, "offset"}
    found = arrays.keys() & {"bases", "rows", "videos", "offset"}
    if found != wanted:
        raise ValueError(
            f"a model that reads {reader.reads} must hold {', '.join(sorted(wanted))}, "
            f"got {', '.join(sorted(found)) or 'none'}"
        )
    points = arrays[kind]
    if kind == "bases":
        if reader.p and points.shape[2] != reader.p:
            raise ValueError(f"bases must have p = {reader.p}, got {points.shape}")
        return points
    if points.dtype.kind == "f" and not np.isfinite(points).all():
        raise ValueError(f"{kind} must be finite, got NaN or inf")
    offset = arrays["offset"]
    if offset[0] != 0 or offset[-1] != len(points) or (np.diff(offset) < 1).any():
        raise ValueError(
            f"offset must rise from 0 to {len(points)}, got {offset!r:.60}"
        )
    return np.split(points, offset[1:-1])


def _pictures(arrays):
    """The small images, None where there is none; None if the file has none."""
    if "sides" not in arrays and "pixels" not in arrays:
        return None
    if not {"sides", "pixels"} <= arrays.keys():
        raise ValueError("sides and pixels must be there together")
    sides = arrays["sides"]
    pixels = arrays["pixels"]
    ends = np.cumsum(sides.prod(axis=1))
    if (sides < 0).any() or pixels.dtype != np.uint8 or ends[-1] != len(pixels):
        raise ValueError("pixels must be those of all sides")
    parts = np.split(pixels, ends[:-1])
    return [p.reshape(of) if p.size else None for p, of in zip(parts, sides)]
