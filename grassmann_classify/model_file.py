"""A model as a file: plain arrays and JSON, without code and without pickle.

The seal of the file tells damage. A model is fitted anew when it is loaded. Functions
of the user's own are not in the file: they are given again.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np

from grassmann_classify.bank import Candidate
from grassmann_classify.clips import Collection
from grassmann_classify.inner_product import InnerProduct
from grassmann_classify.model import PARAMETERS, Model, Reader, check_model
from grassmann_classify.recipes import common_bases
from grassmann_classify.settings import Recipe
from grassmann_sc import files, kernels

# The arrays of a file and the kinds of their dtypes.
KINDS = {
    "model": "U",  # JSON
    "labels": "biufUS",
    "names": "U",
    "clips": "U",
    "digests": "U",
    "groups": "U",
    "bases": "f",
    "U": "f",  # spectra
    "s": "f",
    "rows": "biuf",  # of all sets, or videos
    "offset": "i",  # where those of each set begin
    "atoms": "f",
    "pixels": "u",
    "sides": "i",
}
NEEDED = {"model", "labels", "names", "clips"}
JSON = "recipe d frame method parameters shrinkage reader chosen score judged".split()


def save(path, model):
    """Write a Model to this path, whole or not at all."""
    check_model(model)
    content = {name: getattr(model, name) for name in JSON}
    content["recipe"] = _recipe_as_json(model.recipe)
    content["reader"] = _reader_as_json(model.reader)
    points = _arrays_of_points(model)
    content["dtype"] = points["rows"].dtype.str if "rows" in points else None
    if "rows" in points:
        points["rows"] = _as_bytes(points["rows"])
    arrays = {
        "model": files.as_json(content),
        "labels": model.labels,
        **{
            name: np.array(getattr(model, name), str)
            for name in ("names", "clips", "digests", "groups")
            if getattr(model, name) is not None
        },
        **points,
    }
    if model.atoms is not None:
        arrays["atoms"] = model.atoms
    if model.pictures is not None:
        images = [
            np.empty((0, 0), np.uint8) if p is None else p for p in model.pictures
        ]
        arrays["sides"] = np.array([image.shape for image in images], np.int64)
        arrays["pixels"] = np.concatenate([image.ravel() for image in images])
    files.write_arrays(path, "model", arrays)


def _recipe_as_json(recipe):
    """Its fields; of a function of the user's own, that there is one."""
    return dataclasses.asdict(recipe) | {"describe": recipe.describe is not None}


def _reader_as_json(reader):
    content = {field: getattr(reader, field) for field in reader.__dataclass_fields__}
    content["kernel"] = _kernel_as_json(reader.kernel)
    inner = reader.inner
    if inner is not None:
        content["inner"] = {
            "candidates": [
                candidate._replace(kernel=_kernel_as_json(candidate.kernel))._asdict()
                for candidate in inner.candidates
            ],
            "recipes": [
                [name, recipe and _recipe_as_json(recipe)]
                for name, recipe in inner.recipes.items()
            ],
            "accuracies": inner.accuracies,
        }
    return content


def _kernel_as_json(kernel):
    """Its gamma, or None for a kernel of the user's own."""
    return kernel and {"gamma": getattr(kernel, "gamma", None)}


def _arrays_of_points(model):
    """{name: array} of its points."""
    arrays = {}
    rows = model.points
    if model.reader.inner is not None:
        collection = model.points.collection
        rows = collection.sets
        if collection.spectra:
            arrays = dict(zip("Us", collection.spectra))
        else:
            arrays = {"bases": collection.X}
    elif isinstance(rows, np.ndarray):
        return {"bases": rows}
    if rows is not None:
        offset = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        arrays |= {"rows": np.concatenate(rows), "offset": offset}
    return arrays


def _as_bytes(rows):
    """The rows as uint8, if they are pixels of that type, else as they are."""
    with np.errstate(invalid="ignore"):
        pixels = rows.astype(np.uint8)
    return pixels if (pixels == rows).all() else rows


def _points(arrays, reader, frame):
    """Points as Reader.points gives them, of such arrays."""
    rows = None
    if "rows" in arrays:
        rows = np.split(arrays["rows"], arrays["offset"][1:-1])
    if reader.inner is None:
        return arrays.get("bases") if rows is None else rows
    spectra = (arrays["U"], arrays["s"]) if "U" in arrays else None
    X = common_bases(spectra) if spectra else arrays["bases"]
    n = len(X)
    names = [""] * n
    sets = Collection(X, rows, names, None, None, frame, np.arange(n), {}, spectra)
    return reader.inner.points(sets)


def load(path, *, describe=None, kernel=None, name="path"):
    """The Model that save wrote; ValueError if the file is damaged or holds no model.

    describe, kernel: the functions that the model was learned with, of its Recipe and
    its Settings. name: what errors call the path.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{name} must be a file, got {path}")
    arrays = files.read_arrays(path, "model", KINDS, NEEDED, name)
    with files.refuse_damaged(path, "model", name):
        content = json.loads(str(arrays.pop("model")))
        files.check_names(content, "model", [*JSON, "dtype"])
        own = {
            "describe": (_needs_describe(content), describe),
            "kernel": (_needs_kernel(content), kernel),
        }
    for what, (needed, function) in own.items():
        if needed and function is None:
            raise ValueError(
                f"{path} was learned with a function of your own, which a file does not "
                f"hold: load(path, {what}=...)"
            )
    with files.refuse_damaged(path, "model", name):
        return _model(content, arrays, describe, kernel)


def _needs_describe(content):
    return content["recipe"]["describe"]


def _needs_kernel(content):
    reader = content["reader"]
    some = reader["inner"]["candidates"] if reader["inner"] else []
    return {"gamma": None} in [
        reader["kernel"],
        *(candidate["kernel"] for candidate in some),
    ]


def _model(content, arrays, describe, kernel):
    """The Model of the parts of a file."""
    reader = Reader(**content["reader"])
    reader.kernel = _kernel(reader.kernel, kernel)
    if reader.inner is not None:
        inner = reader.inner
        candidates = [
            Candidate(**{**point, "kernel": _kernel(point["kernel"], kernel)})
            for point in inner["candidates"]
        ]
        recipes = {
            name: recipe and _recipe(recipe, describe)
            for name, recipe in inner["recipes"]
        }
        reader.inner = InnerProduct(candidates, recipes, inner["accuracies"])
    for parameter in content["parameters"]:  # no other: scikit-learn's memory is a path
        if parameter.rpartition("__")[2] not in PARAMETERS:
            raise ValueError(f"parameters must be those of rows, got {parameter!r}")
    texts = {
        name: arrays[name].tolist() if name in arrays else None
        for name in ("names", "clips", "digests", "groups")
    }
    dtype = content.pop("dtype")
    if "rows" in arrays:
        arrays["rows"] = arrays["rows"].astype(dtype)
    labels = arrays["labels"]
    for name, owners in texts.items():
        if owners is not None and labels.shape != (len(owners),):
            raise ValueError(f"{name} must be as many as labels, got {len(owners)}")
    content |= {
        "recipe": _recipe(content["recipe"], describe),
        "reader": reader,
        "frame": tuple(content["frame"]),
        "parameters": _with_tuples(content["parameters"]),
    }
    return Model(
        **content,
        **texts,
        points=_points(arrays, reader, content["frame"]),
        labels=labels,
        pictures=_pictures(arrays),
        atoms=arrays.get("atoms"),
    )


def _recipe(content, describe):
    own = {"describe": describe if content["describe"] else None}
    return Recipe(**_with_tuples(content) | own)


def _with_tuples(content):
    """JSON's lists as the tuples that they were."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in content.items()
    }


def _kernel(content, own):
    """The kernel of JSON, None, Gaussian or the user's own."""
    if content is None:
        return None
    return own if content["gamma"] is None else kernels.rbf(content["gamma"])


def _pictures(arrays):
    """The small images, None where there is none; None if the file has none."""
    if "sides" not in arrays:
        return None
    sides = arrays["sides"]
    parts = np.split(arrays["pixels"], np.cumsum(sides.prod(axis=1))[:-1])
    return [
        image.reshape(shape) if image.size else None
        for image, shape in zip(parts, sides)
    ]
