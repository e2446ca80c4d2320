"""A model as a file: plain arrays and JSON, without code and without pickle.

The seal of the file tells damage. A model is fitted anew when it is loaded. Functions
of the user's own are not in the file: the user names them again.
"""

import json
from pathlib import Path

import numpy as np

from grassmann_classify.bank import Candidate
from grassmann_classify.clips import Collection
from grassmann_classify.inner_product import InnerProduct
from grassmann_classify.model import PARAMETERS, FewFrames, Model, check_model
from grassmann_classify.rows import row_named
from grassmann_classify.settings import RULES, Recipe, check_value
from grassmann_sc import files, kernels

# The arrays of a file and the kinds of their dtypes.
KINDS = {
    "model": "U",  # JSON
    "labels": "biufUS",
    "names": "U",
    "clips": "U",
    "digests": "U",
    "groups": "U",
    "U": "f",  # spectra
    "s": "f",
    "rows": "biuf",  # of all sets
    "colours": "biuf",  # of the frames of all sets
    "offset": "i",  # where those of each set begin
    "pixels": "u",
    "sides": "i",
}
NEEDED = {"model", "labels", "names", "clips", "pixels", "sides"}
TEXTS = ["names", "clips", "digests", "groups"]
JSON = "recipe d frame method parameters shrinkage inner chosen score judged".split()


def save(path, model):
    """Write a Model to this path, whole or not at all."""
    check_model(model)
    arrays = {name: getattr(model, name) for name in [*TEXTS, "labels"]}
    arrays = {name: np.array(part) for name, part in arrays.items() if part is not None}
    rows = model.points
    inner = model.inner._asdict()
    if isinstance(model.inner, InnerProduct):
        arrays |= dict(zip("Us", rows.collection.spectra))
        if rows.collection.colours:
            arrays["colours"] = np.concatenate(rows.collection.colours)
        rows = rows.collection.sets
        inner["recipes"] = [*inner["recipes"].items()]  # JSON's names are texts
    dtype = None
    if rows is not None:
        arrays["offset"] = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        rows = np.concatenate(rows)
        dtype = rows.dtype.str
        with np.errstate(invalid="ignore"):
            pixels = rows.astype(np.uint8)
        arrays["rows"] = pixels if (pixels == rows).all() else rows
    nothing = np.empty((0, 0), np.uint8)
    images = [nothing if image is None else image for image in model.pictures]
    sides = [(*image.shape, 1)[:3] for image in images]  # three colours, or one
    arrays["sides"] = np.array(sides, np.int64)
    arrays["pixels"] = np.concatenate([image.ravel() for image in images])
    content = {name: getattr(model, name) for name in JSON}
    content |= {"dtype": dtype, "inner": inner}
    arrays["model"] = np.array(json.dumps(content, default=as_json))
    files.write_arrays(path, "model", arrays)


def as_json(value):
    """What JSON does not know, in lists and objects; of a function what it is."""
    if isinstance(value, Recipe):
        return vars(value) | {"describe": value.describe and {"function": "describe"}}
    if callable(value):
        return {"function": "kernel", "gamma": getattr(value, "gamma", None)}
    return value.tolist()


def load(path, *, describe=None, kernel=None, name="path"):
    """The Model that save wrote; ValueError if the file is damaged or holds no model.

    describe, kernel: the functions that the model was learned with, of its Recipe and
    its Settings. name: what errors call the path.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{name} must be a file, got {path}")
    own = {"describe": describe, "kernel": kernel}
    for what, function in own.items():
        check_value(function, what, RULES[what])
    missing = []

    def functions(content):
        """An object of JSON, or the function that it names."""
        what = content.get("function")
        if what is None:
            return content
        if content.get("gamma") is not None:
            return kernels.rbf(content["gamma"])
        missing.extend([what] if own[what] is None else [])
        return own[what]

    arrays = files.read_arrays(path, "model", KINDS, NEEDED, name)
    with files.refuse_damaged(path, "model", name):
        content = json.loads(str(arrays.pop("model")), object_hook=functions)
        files.check_names(content, "model", [*JSON, "dtype"])
    if missing:
        raise ValueError(
            f"{path} was learned with a function of your own, which a file does not "
            f"hold: load(path, {missing[0]}=...)"
        )
    with files.refuse_damaged(path, "model", name):
        return _model(content, arrays)


def _model(content, arrays):
    """The Model of the parts of a file."""
    if not content["parameters"].keys() <= PARAMETERS:
        raise ValueError(
            f"parameters must be those of rows, got {content['parameters']}"
        )
    texts = {name: arrays[name].tolist() if name in arrays else None for name in TEXTS}
    labels = arrays["labels"]
    for name, owners in texts.items():
        if owners is not None and labels.shape != (len(owners),):
            raise ValueError(f"{name} must be as many as labels, got {len(owners)}")
    frame = tuple(content["frame"])
    inner = content["inner"]
    points = None
    dtype = content.pop("dtype")
    if "rows" in arrays:
        points = np.split(arrays["rows"].astype(dtype), arrays["offset"][1:-1])
    if "candidates" not in inner:
        inner = FewFrames(row_named(content["method"]).reads)
    else:
        inner["candidates"] = [Candidate(*point) for point in inner["candidates"]]
        inner["recipes"] = {
            key: recipe and _recipe(recipe) for key, recipe in inner["recipes"]
        }
        inner = InnerProduct(**inner)
        spectra = arrays["U"], arrays["s"]
        colours = None
        if "colours" in arrays:
            colours = np.split(arrays["colours"], arrays["offset"][1:-1])
        sets = Collection(
            spectra[0],
            points,
            [],
            None,
            None,
            frame,
            spectra=spectra,
            colours=colours,
        )
        points = inner.points(sets)
    sides = arrays["sides"]
    parts = np.split(arrays["pixels"], np.cumsum(sides.prod(axis=1))[:-1])
    pictures = [
        image.reshape(shape[:2] if shape[-1] == 1 else shape) if image.size else None
        for image, shape in zip(parts, sides)
    ]
    content |= {
        "recipe": _recipe(content["recipe"]),
        "inner": inner,
        "frame": frame,
    }
    return Model(
        **content,
        **texts,
        points=points,
        labels=labels,
        pictures=pictures,
    )


def _recipe(content):
    """The Recipe that JSON, whose lists were tuples, holds."""
    return Recipe(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in content.items()
        }
    )
