"""What a command line becomes: Recipe, Settings and Paths, and what values are valid.

Needs the standard library alone, so that --help does not wait for slow imports.
"""

import math
import numbers
import time
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# in units of each query's lam_max
LAM = [0.01, 0.03, 0.1, 0.3, 0.6]
NEIGHBORS = [3, 5, 10, 20, 40]
C = [0.1, 1, 10, 100, 1000, 10_000, 100_000]  # large ones for sets that are much alike
MOST_READ = 24  # directions of a clip, of which the weighted subspaces are made
MOST_P = 12  # dimension of a candidate where the user names none
SPECTRUM = [1 / 16, 1 / 8, 1 / 4, 1 / 2]
CLUSTERED = 1 / 8  # spectrum: as good as p = 6 or better on each of seven data sets
USUAL_P = 3  # clips of a smaller rank are left out where most clips have this
FORMATS = ["png", "pdf", "svg"]
DPI = 120
READY_MADE = "ready-made"  # in place of a descriptor: clips are subspaces already
AXES = ("n", "time", "channels", "height", "width")  # of arrays
# What values an option may have: many: a list of them; optional: or None
Rule = namedtuple(
    "Rule",
    "kind least most positive many optional",
    defaults=[-math.inf, math.inf, False, False, False],
)
RULES = {  # of the fields of Settings, and of those of Recipe that options set
    "p": Rule(int, least=1, many=True, optional=True),
    "spectrum": Rule(float, least=0, many=True, optional=True),
    "features": Rule("text", many=True, optional=True),
    "center": Rule(bool, optional=True),
    "stack": Rule(int, least=1, many=True, optional=True),
    "lam": Rule(float, least=0, most=1, many=True),
    "neighbors": Rule(int, least=1, many=True),
    "C": Rule(float, positive=True, many=True),
    "kernels": Rule(bool, optional=True),
    "kernel": Rule("function", optional=True),
    "atoms": Rule(int, least=0),
    "iterations": Rule(int, least=0),
    "methods": Rule(str, many=True, optional=True),
    "baselines": Rule(bool),
    "repeats": Rule(int, least=1),
    "train": Rule(float, least=0),
    "jobs": Rule(int, least=1, optional=True),
    "seconds": Rule(float, least=0, optional=True),
    "seed": Rule(int, least=0, most=2**31 - 1),  # scikit-learn takes twice as many
    "coverage": Rule(float, most=1, positive=True),
    "smooth": Rule(float, least=0),
    "f1": Rule(bool),
    "choices": Rule(bool),
    "verbose": Rule(bool),
    "k": Rule(int, least=1, optional=True),
    "label_column": Rule("text", optional=True),
    "group_column": Rule("text", optional=True),
    "group_by": Rule("text", optional=True),
    "strict": Rule(bool),
    "skip": Rule(bool),
    "size": Rule(int, least=1, many=True, optional=True),
    "every": Rule(int, least=1),
    "evenly": Rule(int, least=1, optional=True),
    "resample": Rule(int, least=1, optional=True),
    "window": Rule(int, least=1, optional=True),
    "step": Rule(int, least=1, optional=True),
    "rate": Rule(float, positive=True, optional=True),
    "clock": Rule("text", optional=True),
    "arma": Rule(int, least=0),
    "steps": Rule(int, least=1, optional=True),
    "describe": Rule("function", optional=True),
    "feature_options": Rule(dict),
    "dpi": Rule(int, least=10, most=2400),
}
CHECKED_IN_RECIPE = (
    "p describe feature_options every evenly resample window step rate clock steps stack "
    "arma"
).split()
KINDS = {
    int: (numbers.Integral, "an integer", "integers"),
    float: (numbers.Real, "a number", "numbers"),
    bool: (bool, "True or False", None),
    str: (str, "the first words of a row", "the first words of rows"),
    "text": (str, "a text", "texts"),
    dict: (dict, "a JSON object", None),
    "function": (Callable, "a function", None),
}


def check_value(value, name, rule):
    """A value checked by its Rule, as Python's numbers; name is for errors."""
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        value = value.item()  # a number of NumPy's
    if value is None and rule.optional:
        return None
    kind, words, several = KINDS[rule.kind]
    if rule.many:
        try:
            if isinstance(value, (str, bytes, dict)):
                raise TypeError
            each = rule._replace(many=False, optional=False)
            values = [check_value(entry, name, each) for entry in value]
        except TypeError:
            raise TypeError(
                f"{name} must be a list of {several}, got {value!r}"
            ) from None
        if not values:
            raise ValueError(f"{name} must hold {several}, got none")
        return values
    if not isinstance(value, kind) or isinstance(value, bool) != (rule.kind is bool):
        raise TypeError(f"{name} must be {words}, got {value!r}")
    if rule.kind is str and not value.strip(" ,"):
        raise ValueError(f"{name} must be {words}, got {value!r}")
    if rule.kind not in (int, float):
        return value
    if not value >= rule.least:
        least = "a number" if math.isinf(rule.least) else f"at least {rule.least}"
        raise ValueError(f"{name} must be {least}, got {value}")
    if rule.positive and not value > 0:
        raise ValueError(f"{name} must be positive, got {value}")
    if value > rule.most or math.isinf(value):
        most = "finite" if math.isinf(rule.most) else f"at most {rule.most}"
        raise ValueError(f"{name} must be {most}, got {value}")
    return value


@dataclass
class Settings:
    """What is searched, and how it is evaluated; all but kernel are options too.

    Each field is checked by its Rule whenever it is set.
    """

    p: list | None = None  # dimensions to choose from
    # alphas of weighted subspaces to choose from; neither: all p and SPECTRUM
    spectrum: list | None = None
    # descriptors, whether the mean frame is removed, and stacks to choose from; None: all
    features: list | None = None
    center: bool | None = None
    stack: list | None = None
    # in units of each query's lam_max
    lam: list = field(default_factory=lambda: [*LAM])
    neighbors: list = field(default_factory=lambda: [*NEIGHBORS])
    C: list = field(default_factory=lambda: [*C])
    # with rows in the spaces of Gaussian kernels; None: in commands, as memory and time
    # allow
    kernels: bool | None = True
    # or in that of a function of rows (n, d), (m, d) that gives their matrix (n, m)
    kernel: Callable | None = None
    atoms: int = 0  # of learned dictionaries, 0: none
    iterations: int = 3
    methods: list | None = None  # first words of the names of rows, None: all
    baselines: bool = False  # all of them; methods may name single ones
    repeats: int = 10  # of random splits
    train: float = 0.5  # share, or number, of each class's clips that trains in these
    jobs: int | None = None  # processes, None: one for each core
    seconds: float | None = None  # after these no row and no fold begins
    seed: int = 0
    coverage: float = 0.9  # of the right class by the possible ones
    smooth: float = 0  # of a recording's answers, in seconds or rows; 0: they are not
    f1: bool = False
    choices: bool = False
    verbose: bool = False
    k: int | None = None  # clusters
    label_column: str | None = None  # of recordings
    group_column: str | None = None
    group_by: str | None = None  # regular expression: the group in a file's name
    strict: bool = False  # stop at the first clip that cannot be used
    skip: bool = False  # leave out every clip that cannot be used

    def __setattr__(self, name, value):
        if name not in self.__dataclass_fields__:
            raise AttributeError(
                f"Settings must have the fields "
                f"{', '.join(self.__dataclass_fields__)}, got {name!r}"
            )
        super().__setattr__(name, check_value(value, name, RULES[name]))

    def end(self):
        """The time.perf_counter() at which the seconds from now are over."""
        return time.perf_counter() + (
            math.inf if self.seconds is None else self.seconds
        )


@dataclass(frozen=True)
class Recipe:
    """How a clip becomes subspaces; the defaults take raw pixels of all frames.

    p None: as many directions as the frames allow, up to MOST_READ.
    """

    p: int | None = None
    features: str = "raw"
    feature_options: dict = field(default_factory=dict)
    # in place of features: a function of frames (n_frames, height, width) or
    # (n_frames, d) that makes rows (n, d); it is called by one thread at a time
    describe: Callable | None = None
    size: tuple | None = None
    colour: bool = False  # are frames read in colour and in small, too
    key: str | None = None  # of the array in files that hold several
    columns: tuple[str, ...] | None = None  # of tables, None: all of numbers
    axes: str | None = None  # of arrays, as n,channels,time or channels,time
    every: int = 1
    evenly: int | None = None
    resample: int | None = None  # the rows, linearly in time
    window: int | None = None  # rows of a set, of which a clip may give several
    step: int | None = None  # from one window's first row to the next's, None: window
    rate: float | None = None  # rows a second; with a clock, of the first recording
    clock: str | None = None  # the column of tables that tells the time of rows
    # the rows of each set, linearly in time, before they are stacked
    steps: int | None = None
    stack: int = 1  # blocks of the Hankel matrix
    # blocks of the observability matrix of an ARMA model with p states; 0: no model
    arma: int = 0
    center: bool = False
    # each column of a set less its mean, over its deviation, before all else
    standardised: bool = False
    single: bool = False  # float32 bases
    fewer: bool = False  # take the largest dimension that the frames allow, at most p

    def __post_init__(self):
        for name in CHECKED_IN_RECIPE:
            rule = RULES[name]._replace(many=False)
            value = check_value(getattr(self, name), name, rule)
            object.__setattr__(self, name, value)
        if self.size is not None:
            try:
                height, width = self.size
            except (TypeError, ValueError):
                raise ValueError(
                    f"size must be (height, width), got {self.size!r}"
                ) from None
            check_value((height, width), "size", RULES["size"])
        if self.p is None:
            object.__setattr__(self, "p", MOST_READ)
            object.__setattr__(self, "fewer", True)

    @property
    def n_blocks(self):
        """How many frames a row of a set holds."""
        return self.arma or self.stack

    @property
    def is_raw(self):
        """Are rows the frames themselves, or subspaces already?"""
        return self.features in ("raw", READY_MADE) and self.describe is None

    @property
    def keeps_mean(self):
        """Does a set keep its mean?"""
        return not (self.center or self.standardised)

    @property
    def is_weighted(self):
        """Are all singular directions kept, of which weighted subspaces are made?"""
        return self.fewer and not self.arma and self.features != READY_MADE

    @property
    def unit(self):
        """In what the spans of windows are measured."""
        return "seconds" if self.rate or self.clock else "rows"

    @property
    def clip_axes(self):
        """The axes of a clip's array as it is stored, those behind time as they come."""
        names = axes_named(self.axes) if self.axes else ["time"]
        return [name for name in names if name != "n"]

    @property
    def choosing(self):
        """The options of frames.pick by which frames are chosen."""
        return {"every": self.every, "evenly": self.evenly}

    @property
    def reading(self):
        """The options of frames.read_frames and frames.read_shape."""
        return {
            "size": self.size,
            "key": self.key,
            "columns": self.columns,
            "frame_axis": self.clip_axes.index("time"),
            **self.choosing,
        }


# What a command reads, where its results go, and how they look: names and defaults.
# json: answers to stdout as objects; command: as it was typed
PATHS = {
    **dict.fromkeys("data new more labels splits model save".split()),
    "out": Path("out"),
    "pictures": True,
    "format": FORMATS[0],
    "json": False,
    "dpi": DPI,
    "command": "",
}
Paths = namedtuple("Paths", PATHS, defaults=PATHS.values())


def parts_of_recipe(settings):
    """{field: value} of the Recipe that candidates are variants of, the first of each.

    p: as many directions as any candidate has.
    """
    weighted = settings.spectrum or not settings.p
    return {
        "p": max([*(settings.p or []), *[MOST_READ] * bool(weighted)]),
        "features": (settings.features or ["raw"])[0],
        "center": bool(settings.center),
        "stack": (settings.stack or [1])[0],
    }


def flag_of(name):
    """The flag of an option of this name, as errors call it."""
    return "-k" if name == "k" else f"--{name.replace('_', '-')}"


def axes_named(text):
    """The names of axes in a text, as n,channels,time; ValueError unless they are some."""
    names = text.split(",")
    valid = len({*names}) == len(names) and {*names} <= {*AXES}
    if not valid or "time" not in names or len(names) < 2:
        raise ValueError(
            f"axes must be two or more of {', '.join(AXES)}, time among them, each once, "
            f"got {text!r}"
        )
    return names
