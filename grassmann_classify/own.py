"""The user's own functions, named as package.module:function.

--features names one that makes rows (n, d) from the frames (n_frames, height, width) or
(n_frames, d) of a clip; --kernel one that makes the kernel matrix (n, m) of rows (n, d)
and (m, d). The module is looked for where Python looks, and in the working folder.
"""

import functools
import hashlib
import importlib
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from grassmann_classify.settings import is_own
from grassmann_sc import frames

# clips are read by threads, of which users know nothing
ONE_AT_A_TIME = threading.RLock()


@dataclass(frozen=True)
class Own:
    """The function of this name; source: the hash of its module's file, "" for none.

    It is imported at the first call. It is called by one thread at a time.
    """

    name: str
    source: str = ""

    def __call__(self, *arguments, **options):
        with ONE_AT_A_TIME:
            function = function_of(self.name)
            try:
                return function(*arguments, **options)
            except (Exception, SystemExit) as error:
                raise ValueError(f"{self.name} raised {_in_a_line(error)}") from error

    def __repr__(self):
        return self.name


def own(name):
    """The Own of this name, with its source as it is now."""
    found = function_of(name)
    home = (
        found.__module__ if hasattr(found, "__qualname__") else None
    )  # else an object
    module = sys.modules[home or name.partition(":")[0]]
    file = getattr(module, "__file__", None)
    if file is None:
        return Own(name)
    return Own(
        name, hashlib.blake2b(Path(file).read_bytes(), digest_size=16).hexdigest()
    )


@functools.cache
def function_of(name):
    """The function; ValueError if there is none.

    It must be of the package that is named, and not of the standard library: a model
    file, which may come from others, names functions, and those that run programs or
    read pickle are there.
    """
    if not is_own(name):
        raise ValueError(
            f"a function must be named as package.module:function, got {name!r}"
        )
    module, _, attribute = name.partition(":")
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise ValueError(
            f"{name} is of the standard library, not a function of your own"
        )
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module raises
        raise ValueError(
            f"{name}: {module} cannot be imported: {_in_a_line(error)}"
        ) from error
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise ValueError(f"{name}: {module} has no function {attribute}")
    home = getattr(found, "__module__", None) or type(found).__module__
    elsewhere = home.partition(".")[0] != module.partition(".")[0]
    if elsewhere and (hasattr(found, "__qualname__") or "." in attribute):
        raise ValueError(
            f"{name} must be a function of {module.partition('.')[0]}, it is of {home}"
        )
    return found


def _in_a_line(error):
    return " ".join(f"{type(error).__name__}: {error}".split())


def describe(clip, recipe):
    """The descriptors (n, d) of a clip's frames by a Recipe.

    ValueError if the user's own function does not return finite numbers.
    """
    options = recipe.feature_options
    if not is_own(recipe.features):
        return frames.describe(clip, recipe.features, **options)
    rows = np.asarray(Own(recipe.features, recipe.source)(clip, **options))
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"{recipe.features} must return real numbers (n, d), got {rows.dtype} "
            f"{rows.shape}"
        )
    if not np.isfinite(rows).all():
        raise ValueError(
            f"{recipe.features} must return finite numbers, got NaN or inf"
        )
    return rows
