"""The options of the scripts; --help answers without waiting for slow imports.

Needs the standard library alone. The description of a script is its docstring, read
from its file.
"""

import argparse
import ast
import json
import math
import numbers
import re
import sys
from collections import namedtuple
from dataclasses import dataclass, field
from pathlib import Path

# in units of each query's lam_max
LAM = [0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6]
NEIGHBORS = [3, 5, 10, 20, 40]
C = [0.1, 1, 10, 100, 1000]
MOST_P = 24
USUAL_P = 3  # clips of a smaller rank are left out where most clips have this
FORMATS = ["png", "pdf", "svg"]
DPI = 120
DESCRIPTORS = ("raw", "hog", "lbp", "lbp_top", "gei")
EXPERIMENTS = ["casia", "cambridge", "ucsd", "youtube", "ballet", "dyntex"]


# What values an option may have: many: a list of them; optional: or None
Rule = namedtuple(
    "Rule",
    "kind least most positive many optional",
    defaults=[-math.inf, math.inf, False, False, False],
)

RULES = {  # the fields of Settings first
    "p": Rule(int, least=1, many=True, optional=True),
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
    "stack": Rule(int, least=1, many=True, optional=True),
    "arma": Rule(int, least=0),
    "repeats": Rule(int, least=1),
    "cluster": Rule(int, least=1, optional=True),
}
KINDS = {
    int: (numbers.Integral, "an integer", "integers"),
    float: (numbers.Real, "a number", "numbers"),
    bool: (bool, "True or False", None),
    str: (str, "the first words of a row", "the first words of rows"),
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

    p: list | None = None  # dimensions to choose from, None: all
    # in units of each query's lam_max
    lam: list = field(default_factory=lambda: [*LAM])
    neighbors: list = field(default_factory=lambda: [*NEIGHBORS])
    C: list = field(default_factory=lambda: [*C])
    kernels: bool = True  # with rows in the spaces of Gaussian kernels
    kernel: str | None = None  # or of the user's own, package.module:function
    atoms: int = 0  # of learned dictionaries, 0: none
    iterations: int = 3
    seconds: float | None = None  # a search begins no fold after these
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


def parsed(name, parse, *script):
    """parse(*script, arguments) of the command line; None if a module is imported.

    name: the module's __name__. Call it above slow imports, so that --help and errors
    in options do not wait for them. From here on Ctrl-C ends the script in one line.
    """
    if name != "__main__":
        return None
    end_in_a_line()
    return parse(*script, sys.argv[1:])


def end_in_a_line():
    """Let Ctrl-C end the program without a traceback, also while modules are imported."""

    def told(kind, error, trace):
        if issubclass(kind, KeyboardInterrupt):
            print("stopped", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = told


def parser_of(script, prog=None):
    """A parser that describes a script by its docstring, as "examples.classify"."""
    file = Path(__file__).parents[1].joinpath(*script.split(".")).with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    usual = f"python -m {script}"
    return argparse.ArgumentParser(
        prog=prog or usual,
        description=text.replace(usual, prog or usual),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def of_nothing(script, arguments):
    """Options of a script that has none: --help, and an error for everything else."""
    return of_these(script, {}, arguments)


def of_these(script, options, arguments):
    """Options of a script, given as {flag: keywords of add_argument}."""
    parser = parser_of(script)
    for flag, keywords in options.items():
        parser.add_argument(flag, **keywords)
    return parser.parse_args(arguments)


def of_pictures(script, arguments):
    """Options of a script that leaves pictures: options.format, options.dpi."""
    parser = parser_of(script)
    add_picture_options(parser)
    return parser.parse_args(arguments)


def add_picture_options(parser):
    """Add --format and --dpi, which pictures.save_picture takes."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default=FORMATS[0],
        help="format of the pictures (default: %(default)s)",
    )
    parser.add_argument(
        "--dpi",
        type=_dots,
        default=DPI,
        help="dots per inch of png, and of images within pdf and svg (default: "
        "%(default)s)",
    )


def is_own(name):
    """Does a name mean a function of the user's own, as package.module:function?"""
    dotted = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
    return re.fullmatch(f"{dotted}:{dotted}", name) is not None


def _descriptor(text):
    if text not in DESCRIPTORS and not is_own(text):
        raise argparse.ArgumentTypeError(
            f"must be one of {', '.join(DESCRIPTORS)}, or package.module:function, got "
            f"{text!r}"
        )
    return text


def _dots(text):
    dots = int(text)
    if not 10 <= dots <= 2400:
        raise argparse.ArgumentTypeError(f"must be 10 to 2400, got {dots}")
    return dots


def of_files(script, arguments):
    """Options of a script that codes files: options.data, options.p, pictures."""
    parser = parser_of(script)
    parser.add_argument(
        "--data", nargs="*", default=[], metavar="FILE", help="files .npz"
    )
    parser.add_argument(
        "--p",
        nargs="*",
        type=int,
        default=[],
        metavar="P",
        help="dimension of the subspaces of each file (default: 3)",
    )
    add_picture_options(parser)
    return parser.parse_args(arguments)


def of_many_machines(arguments):
    """Options of many_machines.py."""
    return of_these(
        "examples.many_machines",
        {
            "--workers": dict(
                type=int, help="workers on this machine (default: one a core)"
            ),
            "--scheduler": dict(metavar="ADDRESS", help="a running cluster"),
            "--data": dict(type=Path, metavar="FILE.npy", help="subspaces (n, d, p)"),
            "--resume": dict(
                action="store_true", help="go on from the checkpoint of a killed run"
            ),
        },
        arguments,
    )


def of_paper_experiments(arguments):
    """Options of paper_experiments.py."""
    parser = parser_of("examples.paper_experiments")
    add = parser.add_argument
    add("name", choices=EXPERIMENTS, nargs="?", help="the experiment")
    add(
        "--help-data",
        action="store_true",
        help="say what to download and how to lay it out, for NAME or for all",
    )
    add("--data", type=Path, metavar="DIR", help="the data, in that layout")
    add(
        "--out",
        type=Path,
        default=Path("out"),
        help="where results go (default: %(default)s)",
    )
    add("--repeats", type=int, help="number of random splits (default: the paper's)")
    add(
        "--seed",
        type=int,
        default=0,
        help="seed for splits, folds and first atoms (default: %(default)s)",
    )
    _add_lost_options(parser)
    options = parser.parse_args(arguments)
    if options.help_data:
        return options
    if options.name is None:
        parser.error(f"NAME is needed, one of {', '.join(EXPERIMENTS)}, or --help-data")
    if options.data is None:
        parser.error("--data is needed, or --help-data")
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    return options


def _add_lost_options(parser):
    """Add --strict and --skip: what to do with clips that cannot be used."""
    add = parser.add_mutually_exclusive_group().add_argument
    add(
        "--strict",
        action="store_true",
        help="stop at the first clip that cannot be used (default: leave out damaged clips; stop "
        "before anything long if other clips, as those of another frame size, or all of a class "
        "would be lost)",
    )
    add("--skip", action="store_true", help="leave out every clip that cannot be used")


# -------------------------------------------------------------------------- classify.py


def of_classify(arguments, prog=None):
    """Options of classify.py."""
    parser = parser_of("examples.classify", prog)
    add = parser.add_argument
    add(
        "--data",
        type=Path,
        metavar="DIR",
        help="the folder, or the .npz file, in the form above",
    )
    add(
        "--labels",
        type=Path,
        metavar="FILE.csv",
        help="the labels of clips that lie in DIR at any depth: columns clip and label, and if need "
        "be group, and split with train or test",
    )
    add(
        "--out",
        type=Path,
        default=Path("out"),
        metavar="OUT",
        help="where results go (default: %(default)s)",
    )
    add("--no-pictures", action="store_true", help="write no pictures")
    add_picture_options(parser)
    _add_lost_options(parser)
    _add_answer_options(
        parser.add_argument_group("new clips, to be labelled").add_argument
    )
    _add_frame_options(parser.add_argument_group("frames").add_argument)
    _add_subspace_options(parser.add_argument_group("subspaces").add_argument)
    _add_evaluation_options(parser.add_argument_group("evaluation").add_argument)
    _add_method_options(parser.add_argument_group("methods").add_argument)
    options = parser.parse_args(arguments)
    _check_options(parser, options)
    return options


def _add_answer_options(add):
    add(
        "--predict",
        type=Path,
        metavar="NEW",
        help="learn from all of DIR and label these clips: a folder that holds clips, at any "
        "depth, or one clip, or an .npz file of frames and offset",
    )
    add(
        "--save",
        type=Path,
        metavar="MODEL.npz",
        help="learn from all of DIR and save the model",
    )
    add(
        "--model",
        type=Path,
        metavar="MODEL.npz",
        help="answer by a saved model",
    )
    add(
        "--add",
        type=Path,
        metavar="DIR",
        help="with --model: class folders of more labelled clips, new classes too, which the "
        "model learns with the choices that it has; --save keeps it",
    )
    add(
        "--coverage",
        type=float,
        default=0.9,
        metavar="SHARE",
        help="of new clips, the share whose right class is among those called possible, and "
        "the share of known clips that are not called unlike all classes (default: "
        "%(default)s)",
    )
    add(
        "--cluster",
        type=int,
        metavar="K",
        help="evaluate nothing: put the clips of DIR, which need no labels, into K clusters",
    )
    add(
        "--check",
        action="store_true",
        help="evaluate nothing: name the labels that may be wrong, the most suspect first, and "
        "clips that are there twice",
    )


def _add_frame_options(add):
    add(
        "--size",
        type=int,
        nargs=2,
        metavar=("H", "W"),
        help="resize the frames (default: as they are; all must have one size)",
    )
    add(
        "--key",
        metavar="NAME",
        help="the array of frames in .npz and .mat files that hold "
        "several (default: frames)",
    )
    add("--every", type=int, default=1, metavar="K", help="take every k-th frame")
    add(
        "--at-most",
        type=int,
        metavar="N",
        help="take at most the first N of these frames",
    )
    add(
        "--evenly",
        type=int,
        metavar="N",
        help="take N frames at even steps over the clip",
    )
    add(
        "--resample",
        type=int,
        metavar="N",
        help="resample the frames to N, linearly in time",
    )
    add(
        "--run",
        type=int,
        metavar="N",
        help="cut each clip into sets of N frames, which stay together in splits; cut images that "
        "lie directly in class folders into clips of N",
    )
    add(
        "--features",
        nargs="+",
        type=_descriptor,
        metavar="NAME",
        help="descriptor of a frame: raw (its pixels), hog, lbp, or several of these to choose "
        "from (default: these three for images, if scikit-image is installed); of a clip: "
        "lbp_top, gei, or package.module:function, your own function of a clip's frames "
        "(n_frames, height, width) that gives rows (n, d)",
    )
    add(
        "--feature-options",
        type=json.loads,
        default={},
        metavar="JSON",
        help="options of the descriptor, as '{\"grid\": [2, 2]}' (default: those of scikit-image; "
        "of several descriptors, cells that suit the frames)",
    )


def _add_subspace_options(add):
    add(
        "--p",
        type=int,
        nargs="+",
        help="dimension of the subspaces, or several to choose from by cross-validation (default: up to the "
        f"rank of the smallest clip and {MOST_P}; {USUAL_P} with --arma, or --rank warn or "
        "pad)",
    )
    add(
        "--recipe",
        choices=["chosen", "plain"],
        default="chosen",
        help="choose --features, --center and --stack by cross-validation, unless they are "
        "given; or plain: raw frames, neither centred nor stacked (default: %(default)s)",
    )
    add(
        "--center",
        action=argparse.BooleanOptionalAction,
        help="remove the mean frame of each set first, or do not (default: chosen)",
    )
    add(
        "--unit-variance",
        action="store_true",
        help="divide each centred pixel by its standard deviation over the set",
    )
    add(
        "--stack",
        type=int,
        nargs="+",
        metavar="M",
        help="stack each frame with the M - 1 that follow it (block Hankel matrix), or several M "
        "to choose from (default: 1 and 4)",
    )
    add(
        "--arma",
        type=int,
        default=0,
        metavar="M",
        help="ARMA model with p states, observability matrix of M blocks",
    )
    add("--stabilize", action="store_true", help="scale unstable ARMA models back")
    add(
        "--rank",
        default="raise",
        choices=["raise", "warn", "pad"],
        help="what to do if a clip has fewer than p independent frames",
    )
    add("--single", action="store_true", help="single precision: half the memory")


def _add_evaluation_options(add):
    add(
        "--splits",
        type=Path,
        metavar="FILE.csv",
        help="splits: a line clip,NAME,NAME,... and for each clip, class/clip, or one of its sets, "
        "class/clip#0, a line with train, test or nothing",
    )
    add(
        "--group-by",
        metavar="REGEX",
        help="take a clip's group from its file name, and leave one group out at a time",
    )
    add(
        "--repeats",
        type=int,
        default=10,
        help="number of random splits, if no others are given (default: %(default)s)",
    )
    add(
        "--train",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="share of each class that trains in a random split, or a whole number of its clips "
        "(default: %(default)s)",
    )
    add(
        "--f1",
        action="store_true",
        help="add a column of F1, the mean over the classes",
    )
    add(
        "--seconds",
        type=float,
        help="in each split, a search for parameters begins no fold after these seconds and leaves "
        "out Gaussian kernels that take longer (default: no bound)",
    )
    add(
        "--seed",
        type=int,
        default=Settings.seed,
        help="seed for splits, folds and first atoms (default: %(default)s)",
    )


def _add_method_options(add):
    add(
        "--methods",
        type=lambda text: [words for words in text.split(",") if words.strip(" ,")],
        metavar="WORDS,...",
        help="only the rows, baselines included, that begin with these words, as gsc,kgsc,svm or "
        '"gsc 40,svm on a kernel" (default: all that the other options ask for)',
    )
    add(
        "--lam",
        type=float,
        nargs="+",
        default=LAM,
        help="candidate lambdas of gSC, in units of lam_max (default: %(default)s)",
    )
    add(
        "--neighbors",
        type=int,
        nargs="+",
        default=NEIGHBORS,
        help="candidate numbers of neighbours of gLC (default: %(default)s)",
    )
    add(
        "--C",
        type=float,
        nargs="+",
        default=C,
        help="candidate C of the SVM (default: %(default)s)",
    )
    add(
        "--atoms",
        type=int,
        default=Settings.atoms,
        metavar="N",
        help="also learn dictionaries of N atoms (default: none)",
    )
    add(
        "--kernel",
        metavar="package.module:function",
        help="in place of Gaussian kernels your own, a function of rows (n, d) and (m, d) that "
        "gives their kernel matrix (n, m)",
    )
    add(
        "--kernels",
        action=argparse.BooleanOptionalAction,
        help="also kgSC and kgLC, which keep all frames in memory (default: if these fit and some "
        "minutes suffice)",
    )
    add(
        "--baselines",
        action="store_true",
        help="also the methods that the paper compares with: GDA, GGDA, DCC, affine and convex "
        "hulls, mutual subspace methods; on raw frames PM, TCCA, LDS, CS-LDS, DFS, "
        "DL-Pegasos",
    )
    add(
        "--iterations",
        type=int,
        default=Settings.iterations,
        help="iterations of dictionary learning (default: %(default)s)",
    )


# the options that a saved model goes with
OF_ANSWERS = {
    "model",
    "predict",
    "out",
    "strict",
    "skip",
    "coverage",
    "add",
    "save",
    "labels",
    "no_pictures",
    "format",
    "dpi",
}


def _check_options(parser, options):
    if options.model is None and options.data is None:
        parser.error("--data is needed, or --model")
    if options.model and options.predict is None and options.add is None:
        parser.error("--model needs --predict or --add")
    if options.add and not (options.model and (options.save or options.predict)):
        parser.error("--add needs --model, and --save or --predict")
    if options.model and options.save and not options.add:
        parser.error("--save and --model exclude each other without --add")
    if options.labels and not options.labels.is_file():
        parser.error(f"--labels must be a CSV file, got {options.labels}")
    if options.labels and (options.group_by or options.model and not options.add):
        other = "--group-by" if options.group_by else "--model without --add"
        parser.error(f"--labels and {other} exclude each other")
    if options.labels and not (options.add or options.data).is_dir():
        parser.error(
            f"--labels goes with a folder of clips, got {options.add or options.data}"
        )
    if options.add and not options.add.is_dir():
        parser.error(f"--add must be a folder of labelled clips, got {options.add}")
    if options.kernel and (options.check or options.cluster):
        other = "--check" if options.check else "--cluster"
        parser.error(
            f"--kernel and {other} exclude each other: it takes the projection kernel"
        )
    if options.cluster and len(options.p or []) > 1:
        parser.error(
            "--p must be one dimension with --cluster, because nothing chooses without "
            f"labels, got {' '.join(map(str, options.p))}"
        )
    if not 0 < options.coverage < 1:
        parser.error(f"--coverage must lie between 0 and 1, got {options.coverage:g}")
    jobs = {
        "--check": options.check,
        "--cluster": options.cluster,
        "--predict or --save": options.predict or options.save,
    }
    asked = [name for name, wanted in jobs.items() if wanted]
    if len(asked) > 1:
        parser.error(f"{asked[0]} and {asked[1]} exclude each other")
    if options.cluster and (options.labels or options.splits):
        parser.error("--cluster and --labels or --splits exclude each other")
    for name, value in vars(options).items():
        if (
            options.model
            and name not in OF_ANSWERS
            and value != parser.get_default(name)
        ):
            parser.error(
                f"--{name.replace('_', '-')} and --model exclude each other: a model "
                "keeps what it was learned with"
            )
    for name, rule in RULES.items():
        value = getattr(options, name)
        if name == "kernels" and value is None:  # as memory and time allow
            continue
        try:
            check_value(value, f"--{name.replace('_', '-')}", rule)
        except (TypeError, ValueError) as error:
            parser.error(str(error))
    if options.group_by is not None:
        try:
            re.compile(options.group_by)
        except re.error as error:
            parser.error(
                f"--group-by must be a regular expression, got {options.group_by!r}: "
                f"{error}"
            )
    if options.splits is not None and not options.splits.is_file():
        parser.error(
            f"--splits must be a CSV file, got {options.splits}; --repeats 1 makes a "
            "random split"
        )
    if not (0 < options.train < 1 or options.train >= 1 and options.train.is_integer()):
        parser.error(
            "--train must lie between 0 and 1, or be a whole number, got "
            f"{options.train:g}"
        )
    if options.kernel and options.kernels is False:
        parser.error("--kernel and --no-kernels exclude each other")
    if options.kernel:
        options.kernels = True
    if options.p is None and (options.arma or options.rank != "raise"):
        options.p = [USUAL_P]
    if options.arma and len(options.p) > 1:
        parser.error(f"--p must be one dimension with --arma, got {options.p}")
    if options.stack and options.arma:
        parser.error("--stack and --arma exclude each other")
    several = len(options.features or []) > 1
    if several and (not {*options.features} <= {"raw", "hog", "lbp"} or options.arma):
        parser.error(
            "--features may hold several of raw, hog and lbp, without --arma, got "
            f"{' '.join(options.features)}"
        )
    if several and options.resample:
        parser.error("--resample needs one descriptor in --features")
    if several and options.feature_options:
        parser.error("--feature-options needs one descriptor in --features")
    if options.at_most and options.evenly:
        parser.error("--at-most and --evenly exclude each other")
