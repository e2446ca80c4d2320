"""What a comparison of methods depends on, and what values an option may have.

Needs the standard library alone, so that --help does not wait for slow imports.
"""

import math
import numbers
import re
from collections import namedtuple
from dataclasses import dataclass, field

# in units of each query's lam_max
LAM = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6]
NEIGHBORS = [3, 5, 10, 20, 40]
C = [0.1, 1, 10, 100, 1000]
MOST_P = 24
SPECTRUM = [1 / 16, 1 / 8, 1 / 4, 1 / 2]
CLUSTERED = 1 / 8  # spectrum: as good as p = 6 or better on each of seven data sets
USUAL_P = 3  # clips of a smaller rank are left out where most clips have this
FORMATS = ["png", "pdf", "svg"]
DPI = 120
DESCRIPTORS = ("raw", "hog", "lbp", "lbp_top", "gei")
GIVEN = "given"  # in place of a descriptor: clips are subspaces already
AXES = ("n", "time", "channels", "height", "width")  # of arrays
# What values an option may have: many: a list of them; optional: or None
Rule = namedtuple(
    "Rule",
    "kind least most positive many optional",
    defaults=[-math.inf, math.inf, False, False, False],
)
RULES = {  # the fields of Settings first
    "p": Rule(int, least=1, many=True, optional=True),
    "spectrum": Rule(float, least=0, many=True, optional=True),
    "lam": Rule(float, least=0, many=True),
    "neighbors": Rule(int, least=1, many=True),
    "C": Rule(float, positive=True, many=True),
    "kernels": Rule(bool),
    "kernel": Rule("function", optional=True),
    "atoms": Rule(int, least=0),
    "iterations": Rule(int, least=0),
    "seconds": Rule(float, least=0, optional=True),
    "seed": Rule(int, least=0, most=2**31 - 1),  # scikit-learn takes twice as many
    "methods": Rule(str, many=True, optional=True),
    "baselines": Rule(bool),
    "every": Rule(int, least=1),
    "at_most": Rule(int, least=1, optional=True),
    "evenly": Rule(int, least=1, optional=True),
    "resample": Rule(int, least=1, optional=True),
    "run": Rule(int, least=1, optional=True),
    "step": Rule(int, least=1, optional=True),
    "stack": Rule(int, least=1, many=True, optional=True),
    "arma": Rule(int, least=0),
    "repeats": Rule(int, least=1),
    "jobs": Rule(int, least=1, optional=True),
    "k": Rule(int, least=1),
}
KINDS = {
    int: (numbers.Integral, "an integer", "integers"),
    float: (numbers.Real, "a number", "numbers"),
    bool: (bool, "True or False", None),
    str: (str, "the first words of a row", "the first words of rows"),
    "text": (str, "a text", "texts"),
    "function": (str, "named as package.module:function", None),
}


def check_value(value, name, rule):
    """A value checked by its Rule, as Python's numbers; name is for errors."""
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        value = value.item()  # a number of NumPy's
    if value is None and rule.optional:
        return None
    if not rule.many:
        return _checked_one(value, name, rule)
    words = KINDS[rule.kind][2]
    try:
        if isinstance(value, (str, bytes, dict)):
            raise TypeError
        each = rule._replace(many=False, optional=False)
        values = [check_value(one, name, each) for one in value]
    except TypeError:
        raise TypeError(f"{name} must be a list of {words}, got {value!r}") from None
    if not values:
        raise ValueError(f"{name} must hold {words}, got none")
    return values


def _checked_one(value, name, rule):
    kind, words, _ = KINDS[rule.kind]
    if not isinstance(value, kind) or isinstance(value, bool) != (rule.kind is bool):
        raise TypeError(f"{name} must be {words}, got {value!r}")
    if (
        kind is str
        and rule.kind is str
        and not value.strip(" ,")
        or (rule.kind == "function" and not is_own(value))
    ):
        raise ValueError(f"{name} must be {words}, got {value!r}")
    if kind in (str, bool):
        return value
    if not value >= rule.least:
        raise ValueError(f"{name} must be at least {rule.least}, got {value}")
    if rule.positive and not value > 0:
        raise ValueError(f"{name} must be positive, got {value}")
    if value > rule.most or math.isinf(value):
        most = "finite" if math.isinf(rule.most) else f"at most {rule.most}"
        raise ValueError(f"{name} must be {most}, got {value}")
    return value


@dataclass
class Settings:
    """What a comparison of methods depends on; classify.py has an option for each.

    Each field is checked by its Rule whenever it is set.
    """

    p: list | None = None  # dimensions to choose from
    # alphas of weighted subspaces to choose from; neither: all p and SPECTRUM
    spectrum: list | None = None
    # in units of each query's lam_max
    lam: list = field(default_factory=lambda: [*LAM])
    neighbors: list = field(default_factory=lambda: [*NEIGHBORS])
    C: list = field(default_factory=lambda: [*C])
    kernels: bool = True  # with rows in the spaces of Gaussian kernels
    kernel: str | None = None  # or of the user's own, package.module:function
    atoms: int = 0  # of learned dictionaries, 0: none
    iterations: int = 3
    seconds: float | None = None  # after these no row and no fold begins
    seed: int = 0
    methods: list | None = None  # first words of the names of rows, None: all
    baselines: bool = False  # all of them; methods may name single ones

    def __setattr__(self, name, value):
        if name not in self.__dataclass_fields__:
            raise AttributeError(
                f"Settings must have the fields "
                f"{', '.join(self.__dataclass_fields__)}, got {name!r}"
            )
        super().__setattr__(name, check_value(value, name, RULES[name]))


def candidate_points(settings):
    """(p, spectrum) to search: None for every p, [] where the other alone is given."""
    if settings.p is None and settings.spectrum is None:
        return None, SPECTRUM
    return settings.p or [], settings.spectrum or []


def axes_named(text):
    """The names of axes in a text, as n,channels,time; ValueError unless they are some."""
    names = text.split(",")
    known = len({*names}) == len(names) and {*names} <= {*AXES}
    if not known or "time" not in names or len(names) < 2:
        raise ValueError(
            f"axes must be two or more of {', '.join(AXES)}, time among them, each once, "
            f"got {text!r}"
        )
    return names


def is_own(name):
    """Does a name mean a function of the user's own, as package.module:function?"""
    dotted = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
    return re.fullmatch(f"{dotted}:{dotted}", name) is not None
