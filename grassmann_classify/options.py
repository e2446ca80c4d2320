"""The five commands and their options; --help answers without waiting for slow imports.

Needs the standard library alone, until a command line is parsed.
"""

import argparse
import json
import re
import shlex
import textwrap
from argparse import BooleanOptionalAction
from pathlib import Path

from grassmann_classify.settings import (
    CLUSTERED,
    DESCRIPTORS,
    DPI,
    FORMATS,
    LAM,
    MOST_P,
    NEIGHBORS,
    RULES,
    SPECTRUM,
    USUAL_P,
    C,
    Paths,
    Settings,
    axes_named,
    check_value,
)
from grassmann_classify.words import meant, printable

INSTALLED = "grassmann-classify"
OVERVIEW = """\
{prog} tells clips apart (videos, image sets), by coding subspaces.

  {prog} compare DIR                           accuracy of each method
  {prog} predict NEW --data DIR                learn DIR, answer NEW
  {prog} predict NEW --data DIR --save M.npz   keep what was learned
  {prog} predict NEW --model M.npz             answer by what was kept
  {prog} add MORE --model M.npz --save M2.npz  learn more clips
  {prog} check DIR                             wrong labels, copies
  {prog} cluster DIR -k 8                      clips without labels

DIR holds a folder for each class, and these hold clips: videos (.mp4, .avi, ...), arrays
(.npy, .npz, .mat), images of several frames (.gif, .tif), or folders of images. Results
go to the folder out: a table, predictions, pictures, and report.html, a page to show.
What is found is printed to stdout, progress and advice to stderr (2>/dev/null: silent).

The options of each command, with an example: {prog} compare --help"""


def _dots(text):
    dots = int(text)
    if not 10 <= dots <= 2400:
        raise argparse.ArgumentTypeError(f"must be 10 to 2400, got {dots}")
    return dots


def _axes(text):
    try:
        return ",".join(axes_named(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _words(text):
    return [words for words in text.split(",") if words.strip(" ,")]


def _option(help, **more):
    return {"help": help, **more}


FLAG = {"action": "store_true"}
OPTIONS = {
    # input and output
    "--data": _option(
        "the labelled clips: class folders, an .npz file of sets, or recordings",
        type=Path,
        metavar="DIR",
    ),
    "--model": _option("a saved model", type=Path, metavar="M.npz"),
    "--save": _option("save the model that was learned", type=Path, metavar="M.npz"),
    "--labels": _option(
        "labels of the clips in the folder: columns clip and label, and if need be group "
        "and split",
        type=Path,
        metavar="FILE.csv",
    ),
    "--out": _option(
        "where results go (default: %(default)s)",
        type=Path,
        default=Path("out"),
        metavar="OUT",
    ),
    "--no-pictures": _option("write no pictures", **FLAG),
    "--format": _option(
        "format of the pictures (default: %(default)s)",
        choices=FORMATS,
        default=FORMATS[0],
    ),
    "--dpi": _option(
        "dots per inch of png, and of images within pdf and svg (default: %(default)s)",
        type=_dots,
        default=DPI,
    ),
    "--strict": _option(
        "stop at the first clip that cannot be used (default: leave out damaged ones, stop "
        "at other sizes)",
        **FLAG,
    ),
    "--skip": _option("leave out every clip that cannot be used", **FLAG),
    # frames
    "--size": _option(
        "resize the frames (default: as they are; all must have one size)",
        type=int,
        nargs=2,
        metavar=("H", "W"),
    ),
    "--key": _option(
        "the array of frames in .npz and .mat files that hold several (default: frames)",
        metavar="NAME",
    ),
    "--axes": _option(
        "axes of arrays, if not time,channels of a clip or n,time,channels of all, "
        "as n,channels,time",
        type=_axes,
        metavar="AXES",
    ),
    "--columns": _option(
        "columns of tables, as ax ay az or 2-4 (default: all of numbers but a clock)",
        nargs="+",
        metavar="NAME",
    ),
    "--label-column": _option(
        "of long recordings (.csv): the column of labels; they are cut where it changes, "
        "and by --window",
        metavar="NAME",
    ),
    "--group-column": _option(
        "with it, the column of groups, as persons: groups are kept together, and one is "
        "left out at a time",
        metavar="NAME",
    ),
    "--every": _option("take every k-th frame", type=int, default=1, metavar="K"),
    "--evenly": _option(
        "take N frames at even steps over the clip", type=int, metavar="N"
    ),
    "--resample": _option(
        "resample the frames to N, linearly in time", type=int, metavar="N"
    ),
    "--run": _option(
        "cut each clip, or images in a class folder, into sets of N frames, kept together "
        "in splits",
        type=int,
        metavar="N",
    ),
    "--step": _option(
        "of sets of --window frames, begin one every M frames (default: after the last)",
        type=int,
        metavar="M",
    ),
    "--group-by": _option(
        "take a clip's group from its file name; groups are kept together, and one is "
        "left out at a time",
        metavar="REGEX",
    ),
    # recipe
    "--recipe": _option(
        "plain: raw frames; chosen: --features, --center and --stack are chosen (default: "
        "%(default)s)",
        choices=["chosen", "plain"],
        default="chosen",
    ),
    "--features": _option(
        "raw, hog, lbp, or several of these three to choose from; lbp_top, gei",
        nargs="+",
        choices=DESCRIPTORS,
        metavar="NAME",
    ),
    "--feature-options": _option(
        "options of the descriptor, as '{\"grid\": [2, 2]}' (default: cells that suit the "
        "frames)",
        type=json.loads,
        default={},
        metavar="JSON",
    ),
    "--p": _option(
        "dimension of the subspaces, or several to choose from (default: up to "
        f"{MOST_P}; with --arma {USUAL_P})",
        type=int,
        nargs="+",
    ),
    "--spectrum": _option(
        "instead of p directions all, by their singular values to the power 2 A "
        f"(default: {' '.join(f'1/{1 / a:g}' for a in SPECTRUM)})",
        type=float,
        nargs="+",
        metavar="A",
    ),
    "--center": _option(
        "remove the mean frame of each set first, or do not (default: chosen)",
        action=BooleanOptionalAction,
    ),
    "--stack": _option(
        "stack each frame with the M - 1 that follow it, or several M to choose from "
        "(default: 1 4)",
        type=int,
        nargs="+",
        metavar="M",
    ),
    "--arma": _option(
        "ARMA model with p states, observability matrix of M blocks",
        type=int,
        default=0,
        metavar="M",
    ),
    "--single": _option("single precision: half the memory", **FLAG),
    # evaluation
    "--splits": _option(
        "your splits: a line clip,NAME,NAME,... and for each clip a line with train, test "
        "or nothing",
        type=Path,
        metavar="FILE.csv",
    ),
    "--repeats": _option(
        "number of random splits, if no others are given (default: %(default)s)",
        type=int,
        default=10,
    ),
    "--train": _option(
        "share of each class that trains in a random split, or a whole number of its "
        "clips (default: %(default)s)",
        type=float,
        default=0.5,
        metavar="SHARE",
    ),
    "--choices": _option("print what each row chose, in words", **FLAG),
    "--f1": _option("add a column of F1, the mean over the classes", **FLAG),
    "--seconds": _option(
        "end after these, with the splits that are done then, or what is chosen "
        "(default: none)",
        type=float,
    ),
    "--jobs": _option(
        "processes that share the splits, a core each (default: one for each core)",
        type=int,
        metavar="N",
    ),
    "--seed": _option(
        "seed for splits, folds and first atoms (default: %(default)s)",
        type=int,
        default=0,
    ),
    "--coverage": _option(
        "share of new clips whose right class shall be among the possible ones (default: "
        "%(default)s)",
        type=float,
        default=0.9,
        metavar="SHARE",
    ),
    # rows
    "--methods": _option(
        "only the rows of the table whose names begin with these words, as "
        "gsc,kgsc,nearest",
        type=_words,
        metavar="WORDS,...",
    ),
    "--baselines": _option(
        "also what the paper compares with: GDA, DCC, MSM, hulls, ...; on raw videos LDS, "
        "PM, ...",
        **FLAG,
    ),
    "--kernels": _option(
        "also kgSC and kgLC, which keep all frames in memory (default: if these fit and "
        "some minutes suffice)",
        action=BooleanOptionalAction,
    ),
    "--lam": _option(
        f"candidate lambdas of gSC, of 0 to 1 (default: {len(LAM)} from {LAM[0]} to {LAM[-1]})",
        type=float,
        nargs="+",
        default=LAM,
    ),
    "--neighbors": _option(
        "candidate numbers of neighbours of gLC (default: %(default)s)",
        type=int,
        nargs="+",
        default=NEIGHBORS,
    ),
    "--C": _option(
        "candidate C of the SVM (default: %(default)s)",
        type=float,
        nargs="+",
        default=C,
    ),
    "--atoms": _option(
        "also learn dictionaries of N atoms (default: none)",
        type=int,
        default=0,
        metavar="N",
    ),
    "--iterations": _option(
        "iterations of dictionary learning (default: %(default)s)", type=int, default=3
    ),
    "-k": _option("the number of clusters", type=int, required=True, metavar="K"),
}
INSTEAD = {  # of OPTIONS, for a command that chooses nothing
    "add": {
        "--model": {"required": True},
        "--save": {"required": True},
        "--label-column": _option("of long recordings (.csv): the column of labels"),
        "--group-column": _option("with it, the column of groups, as persons"),
        "--group-by": _option("take a clip's group from its file name"),
        "--strict": _option(
            "stop at the first clip that cannot be used (default: leave it out)"
        ),
    },
    "cluster": {
        "--p": _option(
            f"dimension of the subspaces (default: all directions, weighted by spectrum "
            f"1/{1 / CLUSTERED:g}; with --arma {USUAL_P})",
            nargs=1,
        ),
        "--features": _option(
            "raw, hog, lbp, lbp_top, gei (default: raw)",
            nargs=1,
        ),
        "--center": _option(
            "remove the mean frame of each set first (default: do not)"
        ),
        "--stack": _option(
            "stack each frame with the M - 1 that follow it (default: 1)", nargs=1
        ),
        "--run": _option("cut each clip into sets of N frames"),
        "--seed": _option("seed of the clusters (default: %(default)s)"),
    },
}
ALSO = {"--run": ["--window"]}  # other names of options
DEFAULTS = {
    "_".join(flag.lstrip("-").split("-")): keywords.get(
        "default", False if keywords.get("action") == "store_true" else None
    )
    for flag, keywords in OPTIONS.items()
}
BY_SUBJECT = {
    "clips and frames": "--size --labels --key --axes --columns --label-column "
    "--group-column --group-by --run --step --every --evenly --resample --skip "
    "--strict",
    "from frames to subspaces": "--recipe --features --feature-options --p --spectrum --center "
    "--stack --arma --single",
    "evaluation": "--repeats --train --splits --seconds --jobs --seed --f1 "
    "--choices --coverage",
    "methods": "--methods --kernels --baselines --lam --neighbors --C --atoms "
    "--iterations",
    "output": "--out --no-pictures --format --dpi",
}

LEARNING = {*BY_SUBJECT["from frames to subspaces"].split()}
FRAMES = {*BY_SUBJECT["clips and frames"].split()}
METHODS = {*BY_SUBJECT["methods"].split(), "--seconds", "--seed"}
OUTPUT = {*BY_SUBJECT["output"].split()}
COMMANDS = {  # the argument, what it does, an example, its first options, the others
    "compare": (
        {"data": "class folders of clips, an .npz file of sets, or recordings"},
        "Evaluate methods on labelled clips, each tuned by cross-validation within each "
        "split, from its training part only.",
        "compare actions --labels actions.csv --methods gsc,svm --repeats 5",
        "--labels --out --methods --size --p --recipe --repeats --kernels --seconds "
        "--baselines",
        FRAMES
        | LEARNING
        | METHODS
        | OUTPUT
        | {"--splits", "--train", "--f1", "--choices", "--jobs"},
    ),
    "predict": (
        {
            "new": "clips without labels: a folder, at any depth, one clip, or an .npz file"
        },
        "Learn from the labelled clips of --data, by the method that is best in "
        "cross-validation, or take --model, and answer NEW: a label, which classes are "
        "possible, and why.",
        "predict new_clips --data actions --save actions.npz",
        "--data --model --save --labels --out --methods --size --recipe --coverage "
        "--kernels",
        FRAMES | LEARNING | METHODS | OUTPUT,
    ),
    "add": (
        {
            "more": "more labelled clips, of known and of new classes: class folders, an "
            ".npz file of sets, or recordings"
        },
        "Let a saved model learn more labelled clips, without choosing anything again. "
        "Clips that it has already are passed over.",
        "add more_actions --model actions.npz --save actions2.npz",
        "--model --save --labels --label-column --group-column --out --skip --strict",
        {"--group-by"},
    ),
    "check": (
        {"data": "class folders of clips, an .npz file of sets, or recordings"},
        "Name labels that may be wrong, the most suspect first, and clips that are there "
        "twice.",
        "check actions --out suspects",
        "--labels --out --size --p --recipe --group-by --lam --seconds --no-pictures --seed",
        FRAMES | LEARNING | OUTPUT,
    ),
    "cluster": (
        {"data": "clips without labels: a folder, at any depth, or an .npz file"},
        "Put clips without labels into clusters.",
        "cluster clips -k 8 --p 6",
        "-k --p --out --size --center --stack --features --seed --no-pictures --run",
        (FRAMES | LEARNING | OUTPUT)
        - {"--labels", "--label-column", "--group-column", "--group-by", "--recipe"}
        - {"--spectrum"},
    ),
}
KEPT = {  # the options that a saved model goes with
    *"model save labels out strict skip coverage no_pictures format dpi".split(),
}
OF_MORE = {"label_column", "group_column", "group_by"}  # clips that add reads


class Parser(argparse.ArgumentParser):
    """Mistakes in a line, which names the command's --help."""

    def hint(self, word, *_):
        """At the option that is most like this word."""
        return meant(word.partition("=")[0], self._option_string_actions)

    def error(self, message):
        text = printable(message, but="")
        self.exit(2, f"{self.prog}: error: {text}; see {self.prog} --help\n")


def parse(arguments, prog=INSTALLED):
    """The options of a command, as a Namespace with .name; all others have defaults."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(OVERVIEW.format(prog=prog))
        raise SystemExit(0)
    name, *others = arguments
    if name not in COMMANDS:
        Parser(prog).error(
            f"the first word must be a command, {', '.join(COMMANDS)}, got {name!r}"
            f"{meant(name, COMMANDS)}"
        )
    parser = parser_of(name, prog)
    options, unknown = parser.parse_known_args(others)
    if unknown:
        parser.error(
            f"unrecognized arguments: {' '.join(unknown)}{parser.hint(*unknown)}"
        )
    options.name = name
    options.command = shlex.join([*prog.split(), *arguments])
    for field, default in DEFAULTS.items():
        if not hasattr(options, field):
            setattr(options, field, default)
    options.pictures = not options.no_pictures
    try:
        _check(options)
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    return options


def split(options):
    """(Recipe, Settings, Paths) of the parsed options, the recipe plain where it is chosen."""
    from grassmann_classify.clips import Recipe

    values = vars(options)

    def fields_of(kind):
        return {
            name: values[name] for name in kind.__dataclass_fields__ if name in values
        }

    settings = Settings(**fields_of(Settings))
    if options.recipe == "plain" or options.arma:
        settings.features = settings.features or ["raw"]
        settings.center = bool(settings.center)
        settings.stack = settings.stack or [1]
    fields = fields_of(Recipe) | {
        "p": max(options.p) if options.p and not options.spectrum else MOST_P,
        "fewer": options.p is None or len(options.p) > 1 or bool(options.spectrum),
        "features": (options.features or ["raw"])[0],
        "center": bool(options.center),
        "stack": (options.stack or [1])[0],
    }
    for name in ("size", "columns"):
        fields[name] = fields[name] and tuple(fields[name])
    return Recipe(**fields), settings, Paths(**fields_of(Paths))


def flags_of(name):
    """{subject: flags} of a command, those that most need first."""
    *_, first, others = COMMANDS[name]
    by_subject = {"most used": first.split()}
    for subject, flags in BY_SUBJECT.items():
        rest = [flag for flag in flags.split() if flag in others - {*first.split()}]
        by_subject |= {subject: rest} if rest else {}
    return by_subject


class HelpAll(argparse.Action):
    """--help-all: explains every option."""

    def __init__(self, option_strings, dest, **keywords):
        super().__init__(option_strings, dest, nargs=0, **keywords)

    def __call__(self, parser, *_):
        prog, _, name = parser.prog.rpartition(" ")
        parser_of(name, prog, everything=True).print_help()
        parser.exit()


def parser_of(name, prog=INSTALLED, everything=False):
    """The parser of a command, whose help explains the most used options, or all."""
    argument, what, example, *_ = COMMANDS[name]
    first, *others = flags_of(name).items()
    optional = {"nargs": "?"} if name == "predict" else {}
    (dest,) = argument
    metavar = "DIR" if dest == "data" else dest.upper()
    parser = Parser(
        f"{prog} {name}",
        usage=f"%(prog)s {f'[{metavar}]' if optional else metavar} [options]",
        description=f"example:\n  {prog} {example}\n\n{textwrap.fill(what, 78)}",
        epilog=None if everything else _named(others),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument(
        dest, type=Path, metavar=metavar, help=argument[dest], **optional
    )
    for subject, flags in (first, *others):
        hidden = not everything and subject != first[0]
        group = parser.add_argument_group(subject)
        for flag in flags:
            keywords = OPTIONS[flag] | INSTEAD.get(name, {}).get(flag, {})
            if hidden:
                keywords = {**keywords, "help": argparse.SUPPRESS}
            group.add_argument(flag, *ALSO.get(flag, []), **keywords)
    group = parser.add_argument_group("help")
    group.add_argument(
        "-h", "--help", action="help", help="explain the options that most need"
    )
    group.add_argument("--help-all", action=HelpAll, help="explain all options")
    return parser


def _named(groups):
    """The names of options, a paragraph a subject."""
    named = [
        textwrap.fill(
            f"{subject}: {' '.join(flags)}",
            78,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        for subject, flags in groups
    ]
    return "\n".join(
        ["other options, which --help-all explains:", *named] if named else []
    )


def flag_of(name):
    """The flag of an option of this name, as errors call it."""
    return {"k": "-k", "run": "--window"}.get(name, f"--{name.replace('_', '-')}")


def _check(options):
    """ValueError or TypeError if an option, or two together, make no sense."""
    _check_files(options)
    if options.strict and options.skip:
        raise ValueError("--strict and --skip exclude each other")
    for name, rule in RULES.items():
        if hasattr(options, name):
            check_value(getattr(options, name), flag_of(name), rule)
    if not 0 < options.coverage < 1:
        raise ValueError(
            f"--coverage must lie between 0 and 1, got {options.coverage:g}"
        )
    if options.model:
        kept = KEPT | OF_MORE if options.name == "add" else KEPT
        for name, default in DEFAULTS.items():
            if name not in kept and getattr(options, name) != default:
                raise ValueError(
                    f"{flag_of(name)} and --model exclude each other: a model keeps what "
                    "it was learned with"
                )
    else:
        _check_recipe(options)
    _check_recordings(options)
    if options.group_by is not None:
        try:
            re.compile(options.group_by)
        except re.error as error:
            raise ValueError(
                f"--group-by must be a regular expression, got {options.group_by!r}: "
                f"{error}"
            ) from None
    if not (0 < options.train < 1 or options.train >= 1 and options.train.is_integer()):
        raise ValueError(
            "--train must lie between 0 and 1, or be a whole number, got "
            f"{options.train:g}"
        )


def _check_files(options):
    """What is read must be there, and of the right kind."""
    if options.name == "predict":
        if bool(options.data) == bool(options.model):
            raise ValueError("--data is needed, or --model, and not both")
        if options.new is None and not options.save:
            raise ValueError("NEW is needed, or --save")
        if options.model and options.save:
            raise ValueError("--save and --model exclude each other: add learns more")
    for flag, path in (
        ("--labels", options.labels),
        ("--splits", options.splits),
        ("--model", options.model),
    ):
        if path is not None and not path.is_file():
            more = "; --repeats 1 makes a random split" if flag == "--splits" else ""
            got = "a folder" if path.exists() else "no such file"
            raise ValueError(f"{flag} must be a file, got {path}, {got}{more}")
    flag = {"predict": "--data", "add": "MORE"}.get(options.name, "DIR")
    folder = options.more if options.name == "add" else options.data
    if folder is not None and not (folder.is_dir() or folder.is_file()):
        raise ValueError(
            f"{flag} must be a folder, an .npz file or a recording (.csv, .tsv), got "
            f"{folder}, which is not there"
        )
    if options.name == "predict" and options.new and not options.new.exists():
        raise ValueError(f"NEW must be there, got {options.new}")
    if options.labels and options.group_by:
        raise ValueError("--labels and --group-by exclude each other")
    if options.labels and folder is None:
        raise ValueError(
            "--labels goes with --data: it labels the clips of that folder"
        )
    if options.labels and not folder.is_dir():
        raise ValueError(f"--labels goes with a folder of clips, got {folder}")


def _check_recordings(options):
    """How recordings are labelled and cut."""
    if options.label_column and options.labels:
        raise ValueError("--label-column and --labels exclude each other")
    if options.group_column and not options.label_column:
        raise ValueError("--group-column goes with --label-column")
    if options.group_column and options.group_by:
        raise ValueError("--group-column and --group-by exclude each other")
    if options.step and not options.run:
        raise ValueError(f"--step goes with --window, got --step {options.step} alone")


def _check_recipe(options):
    """What lies between frames and subspaces."""
    if options.arma:
        for name in ("p", "stack", "features"):
            values = getattr(options, name) or []
            if len(values) > 1:
                raise ValueError(
                    f"--{name} must be one with --arma, got {' '.join(map(str, values))}"
                )
    if options.spectrum and options.arma:
        raise ValueError("--spectrum and --arma exclude each other")
    if options.p is None and options.arma:
        options.p = [USUAL_P]
    if options.stack and options.arma:
        raise ValueError("--stack and --arma exclude each other")
    several = len(options.features or []) > 1
    if several and not {*options.features} <= {"raw", "hog", "lbp"}:
        raise ValueError(
            "--features may hold several of raw, hog and lbp, got "
            f"{' '.join(options.features)}"
        )
    if several and options.resample:
        raise ValueError("--resample needs one descriptor in --features")
    if several and options.feature_options:
        raise ValueError("--feature-options needs one descriptor in --features")
    if not isinstance(options.feature_options, dict):
        raise ValueError(
            f"--feature-options must be a JSON object, got {options.feature_options!r}"
        )
