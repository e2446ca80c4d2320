"""The five commands and their options: the command line becomes what settings.py holds.

Needs the standard library alone, so that --help does not wait for slow imports.
"""

import argparse
import itertools
import json
import re
import shlex
import textwrap
from pathlib import Path

from grassmann_classify.settings import (
    CLUSTERED,
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
    Recipe,
    Settings,
    axes_named,
    check_value,
    flag_of,
    parts_of_recipe,
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


class Descriptors:
    """The names of frames.DESCRIPTORS, which is imported where they are looked at."""

    def __iter__(self):
        from grassmann_sc import frames

        return iter(frames.DESCRIPTORS)


def _json_of(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be a JSON object, got {text!r}: {error}"
        ) from None


FLAG = {"action": "store_true", "default": False}
OPTIONS = {
    # input and output
    "--data": dict(
        help="the labelled clips: class folders, an .npz file of sets, or recordings",
        type=Path,
        metavar="DIR",
    ),
    "--model": dict(help="a saved model", type=Path, metavar="M.npz"),
    "--save": dict(help="save the model that was learned", type=Path, metavar="M.npz"),
    "--labels": dict(
        help="labels of the clips in the folder: columns clip and label, and if need be group "
        "and split",
        type=Path,
        metavar="FILE.csv",
    ),
    "--out": dict(
        help="where results go (default: %(default)s)",
        type=Path,
        default=Path("out"),
        metavar="OUT",
    ),
    "--no-pictures": dict(
        help="write no pictures",
        action="store_false",
        dest="pictures",
        default=True,
    ),
    "--format": dict(
        help="format of the pictures (default: %(default)s)",
        choices=FORMATS,
        default=FORMATS[0],
    ),
    "--dpi": dict(
        help="dots per inch of png, and of images within pdf and svg (default: %(default)s)",
        type=int,
        default=DPI,
    ),
    "--strict": dict(
        help="stop if a clip cannot be used (default: at other sizes or too few frames "
        "alone)",
        **FLAG,
    ),
    "--skip": dict(help="leave out every clip that cannot be used", **FLAG),
    # frames
    "--size": dict(
        help="resize the frames (default: as they are, of one size; smaller if all take "
        "more than 1 GiB)",
        type=int,
        nargs=2,
        metavar=("H", "W"),
    ),
    "--key": dict(
        help="the array of frames in .npz and .mat files that hold several (default: frames)",
        metavar="NAME",
    ),
    "--axes": dict(
        help="axes of arrays, if not time,channels of a clip or n,time,channels of all, "
        "as n,channels,time",
        metavar="AXES",
    ),
    "--columns": dict(
        help="columns of tables, as ax ay az or 2-4 (default: all of numbers but a clock)",
        nargs="+",
        metavar="NAME",
    ),
    "--label-column": dict(
        help="of long recordings (.csv): the column of labels; they are cut where it changes, "
        "and by --window",
        metavar="NAME",
    ),
    "--group-column": dict(
        help="with it, the column of groups, as persons: groups are kept together, and one is "
        "left out at a time",
        metavar="NAME",
    ),
    "--every": dict(help="take every k-th frame", type=int, default=1, metavar="K"),
    "--evenly": dict(
        help="take N frames at even steps over the clip", type=int, metavar="N"
    ),
    "--resample": dict(
        help="resample the frames to N, linearly in time", type=int, metavar="N"
    ),
    "--window": dict(
        help="cut each clip into sets of N frames, kept together in splits; images in a class "
        "folder become clips of N",
        type=int,
        metavar="N",
    ),
    "--step": dict(
        help="of sets of --window frames, begin one every M frames (default: after the last)",
        type=int,
        metavar="M",
    ),
    "--rate": dict(
        help="rows or frames a second: times are told in seconds (default: in rows); --window "
        "stays in rows",
        type=float,
        metavar="HZ",
    ),
    "--clock": dict(
        help="of recordings, the column of their clock, in seconds or ISO times",
        metavar="NAME",
    ),
    "--smooth": dict(
        help="of recordings, the median of each class's probability over so long decides "
        "(default: not smoothed)",
        type=float,
        default=0,
        metavar="SECONDS",
    ),
    "--json": dict(
        help="print one JSON object a clip, and nothing else, to stdout", **FLAG
    ),
    "--group-by": dict(
        help="take a clip's group from its file name; groups are kept together, and one is "
        "left out at a time",
        metavar="REGEX",
    ),
    # recipe
    "--recipe": dict(
        help="plain: raw frames; chosen: --features, --center and --stack are chosen (default: "
        "%(default)s)",
        choices=["chosen", "plain"],
        default="chosen",
    ),
    "--features": dict(
        help="descriptors of a frame: %(choices)s",
        nargs="+",
        choices=Descriptors(),
        metavar="NAME",
    ),
    "--feature-options": dict(
        help="options of --features, as '{\"grid\": [2, 2]}' (default: as suits the frames; "
        "plain: scikit-image's)",
        type=_json_of,
        default={},
        metavar="JSON",
    ),
    "--p": dict(
        help="dimension of the subspaces, or several to choose from (default: up to "
        f"{MOST_P}; {USUAL_P} with --arma)",
        type=int,
        nargs="+",
    ),
    "--spectrum": dict(
        help="instead of p directions all, by their singular values to the power 2 A "
        f"(default: {' '.join(map(str, SPECTRUM))})",
        type=float,
        nargs="+",
        metavar="A",
    ),
    "--center": dict(
        help="remove the mean frame of each set first, or do not (default: chosen)",
        action=argparse.BooleanOptionalAction,
    ),
    "--stack": dict(
        help="stack each frame with the next M - 1, or one of several M (default: tried, "
        "up to most of a clip)",
        type=int,
        nargs="+",
        metavar="M",
    ),
    "--arma": dict(
        help="ARMA model with p states, observability matrix of M blocks",
        type=int,
        default=0,
        metavar="M",
    ),
    "--single": dict(help="single precision: half the memory", **FLAG),
    # evaluation
    "--splits": dict(
        help="your splits: a line clip,NAME,NAME,... and for each clip a line with train, test "
        "or nothing",
        type=Path,
        metavar="FILE.csv",
    ),
    "--repeats": dict(
        help="number of random splits, if no others are given (default: %(default)s)",
        type=int,
        default=10,
    ),
    "--train": dict(
        help="share of each class that trains in a random split, or a whole number of its "
        "clips (default: %(default)s)",
        type=float,
        default=0.5,
        metavar="SHARE",
    ),
    "--choices": dict(help="print what each row chose, in words", **FLAG),
    "--verbose": dict(
        help="print a line for each row of each split, and what each row does", **FLAG
    ),
    "--f1": dict(help="add a column of F1, the mean over the classes", **FLAG),
    "--seconds": dict(
        help="end after these, with what is done then (default: none)",
        type=float,
    ),
    "--jobs": dict(
        help="processes that share rows and splits, a core each (default: one a core; one "
        "where little is to do)",
        type=int,
        metavar="N",
    ),
    "--seed": dict(
        help="seed for splits, folds and first atoms (default: %(default)s)",
        type=int,
        default=0,
    ),
    "--coverage": dict(
        help="share of new clips whose right class shall be among the possible ones (default: "
        "%(default)s)",
        type=float,
        default=0.9,
        metavar="SHARE",
    ),
    # rows
    "--methods": dict(
        help="only rows whose names, or what stands behind their colon, begin with these words, "
        "as gsc,kgsc,svm",
        type=lambda text: [words for words in text.split(",") if words.strip()],
        metavar="WORDS,...",
    ),
    "--baselines": dict(
        help="also what the paper compares with: GDA, DCC, MSM, hulls, ...; on raw videos LDS, "
        "PM, ...",
        **FLAG,
    ),
    "--kernels": dict(
        help="also kgSC and kgLC, which keep all frames in memory (default: if these fit and "
        "some minutes suffice)",
        action=argparse.BooleanOptionalAction,
    ),
    "--lam": dict(
        help="candidate lambdas of gSC, of 0 to 1 (default: "
        f"{len(LAM)} from {LAM[0]} to {LAM[-1]})",
        type=float,
        nargs="+",
        default=LAM,
    ),
    "--neighbors": dict(
        help="candidate numbers of neighbours of gLC (default: "
        f"{' '.join(map(str, NEIGHBORS))})",
        type=int,
        nargs="+",
        default=NEIGHBORS,
    ),
    "--C": dict(
        help=f"candidate C of the SVM (default: {' '.join(map(str, C))})",
        type=float,
        nargs="+",
        default=C,
    ),
    "--atoms": dict(
        help="also learn dictionaries of N atoms (default: none)",
        type=int,
        default=0,
        metavar="N",
    ),
    "--iterations": dict(
        help="iterations of dictionary learning (default: %(default)s)",
        type=int,
        default=3,
    ),
    "-k": dict(help="the number of clusters", type=int, required=True, metavar="K"),
}
INSTEAD = {  # of OPTIONS, for a command that chooses nothing
    "add": {
        "--model": {"required": True},
        "--save": {"required": True},
        "--label-column": dict(help="of long recordings (.csv): the column of labels"),
        "--group-column": dict(help="with it, the column of groups, as persons"),
        "--group-by": dict(help="take a clip's group from its file name"),
        "--strict": dict(help="stop if a clip cannot be used (default: leave it out)"),
    },
    "cluster": {
        "--p": dict(
            help=f"dimension of the subspaces (default: all directions, weighted by spectrum "
            f"1/{1 / CLUSTERED:g}; {USUAL_P} with --arma)",
            nargs=1,
        ),
        "--features": dict(
            help="descriptor of a frame: %(choices)s (default: raw)",
            nargs=1,
        ),
        "--center": dict(
            help="remove the mean frame of each set first (default: do not)"
        ),
        "--stack": dict(
            help="stack each frame with the M - 1 that follow it (default: 1)", nargs=1
        ),
        "--window": dict(help="cut each clip into sets of N frames"),
        "--seed": dict(help="seed of the clusters (default: %(default)s)"),
    },
}
DEFAULTS = {
    keywords.get("dest", "_".join(flag.lstrip("-").split("-"))): keywords.get("default")
    for flag, keywords in OPTIONS.items()
}
BY_SUBJECT = {
    "clips and frames": "--size --labels --key --axes --columns --label-column "
    "--group-column --group-by --window --step --rate --clock --every --evenly "
    "--resample --skip --strict",
    "from frames to subspaces": "--recipe --features --feature-options --p --spectrum --center "
    "--stack --arma --single",
    "evaluation": "--repeats --train --splits --seconds --jobs --seed --f1 "
    "--choices --verbose --coverage --smooth",
    "methods": "--methods --kernels --baselines --lam --neighbors --C --atoms "
    "--iterations",
    "output": "--out --json --no-pictures --format --dpi",
}

LEARNING = {*BY_SUBJECT["from frames to subspaces"].split()}
FRAMES = {*BY_SUBJECT["clips and frames"].split()}
METHODS = {*BY_SUBJECT["methods"].split(), "--seconds", "--seed"}
OUTPUT = {*BY_SUBJECT["output"].split()} - {"--json"}  # of predict alone
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
        | {"--splits", "--train", "--f1", "--choices", "--verbose", "--jobs"},
    ),
    "predict": (
        {
            "new": "clips without labels: a folder, at any depth, one clip, or an .npz file"
        },
        "Learn from the labelled clips of --data, by the coding method that is best in "
        "cross-validation, or take --model, and answer NEW: a label, which classes are "
        "possible, and why.",
        "predict new_clips --data actions --save actions.npz",
        "--data --model --save --labels --out --methods --size --recipe --coverage "
        "--kernels",
        (FRAMES | LEARNING | METHODS | OUTPUT | {"--smooth", "--json"})
        - {"--baselines", "--atoms", "--iterations"},
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
        "-k --p --out --size --center --stack --seed --no-pictures --window",
        (FRAMES | LEARNING | OUTPUT)
        - {"--labels", "--label-column", "--group-column", "--group-by", "--recipe"}
        - {"--spectrum", "--rate", "--clock"},
    ),
}
BESIDE_MODEL = {  # the options that a saved model goes with
    *"model save labels out strict skip coverage smooth json label_column group_column "
    "group_by pictures format dpi".split(),
}
READ = {  # what must be there
    "labels": "a file",
    "splits": "a file",
    "model": "a file",
    "data": "a folder, an .npz file or a recording (.csv, .tsv)",
    "more": "a folder, an .npz file or a recording (.csv, .tsv)",
    "new": "a folder, a clip or an .npz file",
}
APART = [  # options that exclude each other
    ("strict", "skip"),
    ("labels", "group_by"),
    ("label_column", "labels"),
    ("group_column", "group_by"),
    ("rate", "clock"),
    ("rate", "evenly"),
    ("spectrum", "arma"),
    ("stack", "arma"),
]
TOGETHER = {  # {option: what it needs}
    "group_column": "label_column",
    "step": "window",
    "feature_options": "features",
}
SINGLE = [  # options of one value beside others
    ("p", "arma"),
    ("features", "arma"),
    ("features", "resample"),
    ("features", "feature_options"),
]


class Parser(argparse.ArgumentParser):
    """Mistakes in a line, which names the command's --help."""

    def hint(self, word):
        """At the option that is most like this word, or that another folder needs."""
        word = word.partition("=")[0]
        known = self._option_string_actions
        if not word.startswith("-") and "--data" in known:
            return " (--data names the labelled clips)"
        return "" if word in known else meant(word, known)

    def error(self, message):
        self.exit(
            2,
            f"{self.prog}: error: {printable(message, but='')}; see {self.prog} --help\n",
        )


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
    parser = parser_of(name, prog, everything="--help-all" in others)
    parser.set_defaults(
        **dict.fromkeys(("data", "new", "more")) | DEFAULTS,
        name=name,
        command=shlex.join([*prog.split(), *arguments]),
    )
    options, unknown = parser.parse_known_args(others)
    if unknown:
        parser.error(
            f"unrecognized arguments: {' '.join(unknown)}{parser.hint(unknown[0])}"
        )
    try:
        _check(options)
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    return options


def split(options):
    """(Recipe, Settings, Paths) of the parsed options, the recipe plain where it is chosen."""
    values = vars(options)
    dimensions = [USUAL_P] if options.arma and options.p is None else options.p
    recipe, settings, paths = (
        {name: values[name] for name in fields if name in values}
        for fields in (
            Recipe.__dataclass_fields__,
            Settings.__dataclass_fields__,
            Paths._fields,
        )
    )
    settings = Settings(**settings | {"p": dimensions})
    if options.recipe == "plain" or options.arma:
        settings.features = settings.features or ["raw"]
        settings.center = bool(settings.center)
        settings.stack = settings.stack or [1]
    recipe |= parts_of_recipe(settings) | {
        "fewer": len(dimensions or []) != 1 or bool(options.spectrum),
        "size": options.size and tuple(options.size),
        "columns": options.columns and tuple(options.columns),
    }
    return Recipe(**recipe), settings, Paths(**paths)


def flags_of(name):
    """{subject: flags} of a command, those that most need first."""
    *_, first, others = COMMANDS[name]
    by_subject = {
        subject: [flag for flag in flags.split() if flag in others - {*first.split()}]
        for subject, flags in BY_SUBJECT.items()
    }
    by_subject = {subject: flags for subject, flags in by_subject.items() if flags}
    return {"most used": first.split()} | by_subject


def parser_of(name, prog=INSTALLED, everything=False):
    """The parser of a command, whose help explains the most used options, or all."""
    ((dest, words),) = COMMANDS[name][0].items()
    what, example = COMMANDS[name][1:3]
    first, *others = flags_of(name).items()
    metavar = "DIR" if dest == "data" else dest.upper()
    optional = {"nargs": "?"} if name == "predict" else {}
    listed = [
        textwrap.fill(
            f"{subject}: {' '.join(flags)}",
            78,
            initial_indent="  ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        )
        for subject, flags in others * (not everything)
    ]
    listed = ["other options, which --help-all explains:", *listed] if listed else []
    parser = Parser(
        f"{prog} {name}",
        usage=f"%(prog)s {f'[{metavar}]' if optional else metavar} [options]",
        description=f"example:\n  {prog} {example}\n\n{textwrap.fill(what, 78)}",
        epilog="\n".join(listed),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument(dest, type=Path, metavar=metavar, help=words, **optional)
    for subject, flags in (first, *others):
        is_shown = everything or subject == first[0]
        hidden = {} if is_shown else {"help": argparse.SUPPRESS}
        group = parser.add_argument_group(subject)
        for flag in flags:
            instead = INSTEAD.get(name, {}).get(flag, {})
            group.add_argument(flag, **OPTIONS[flag] | instead | hidden)
    group = parser.add_argument_group("help")
    group.add_argument(
        "-h", "--help", action="help", help="explain the options that most need"
    )
    group.add_argument("--help-all", action="help", help="explain all options")
    return parser


def _check(options):
    """ValueError or TypeError if an option, or two together, make no sense."""
    for name, rule in RULES.items():
        if hasattr(options, name):
            check_value(getattr(options, name), flag_of(name), rule)
    if options.axes is not None:
        axes_named(options.axes)
    try:
        re.compile(options.group_by or "")
    except re.error as error:
        raise ValueError(
            f"--group-by must be a regular expression, got {options.group_by!r}: {error}"
        ) from None
    why = next(itertools.chain(_not_there(options), _contradictions(options)), None)
    if why:
        raise ValueError(why)
    if len(options.features or []) > 1:
        from grassmann_sc import frames

        words = frames.descriptors_to_choose()
        if not {*options.features} <= {*words}:
            raise ValueError(
                f"--features may hold several of {', '.join(words)}, got "
                f"{' '.join(options.features)}"
            )


def _not_there(options):
    """What must be there, in words, and is not, or of another kind."""
    arguments = {
        "data": "--data" if options.name == "predict" else "DIR",
        "more": "MORE",
        "new": "NEW",
    }
    for name, kind in READ.items():
        path = getattr(options, name)
        if path and not (path.is_file() or path.is_dir() and kind != "a file"):
            what = arguments.get(name, flag_of(name))
            nowhere = ", which is not there" * (not path.exists())
            yield f"{what} must be {kind}, got {path}{nowhere}"


def _contradictions(options):
    """What options that are told together contradict, in words."""
    predicts = options.name == "predict"
    path = options.data or options.more
    rules = [  # what is wrong, and the rule
        (
            predicts and bool(options.data) == bool(options.model),
            "--data is needed, or --model, and not both",
        ),
        (
            predicts and options.new is None and not options.save,
            "NEW is needed, or --save",
        ),
        (
            predicts and options.new is None and (options.json or options.smooth),
            "--json and --smooth go with NEW",
        ),
        (
            predicts and options.model and options.save,
            "--save and --model exclude each other: add learns more",
        ),
        (
            options.labels and not (path and path.is_dir()),
            f"--labels goes with a folder of clips, got {path or 'none'}",
        ),
        (
            options.train == 0 or options.train > 1 and not options.train.is_integer(),
            "--train must lie between 0 and 1, or be a whole number, got "
            f"{options.train:g}",
        ),
        (
            options.feature_options and options.features == ["raw"],
            "--feature-options goes with descriptors but raw, got raw",
        ),
    ]
    yield from (rule for wrong, rule in rules if wrong)
    yield from (
        f"{flag_of(name)} and --model exclude each other: a model keeps what it was "
        "learned with"
        for name, default in DEFAULTS.items()
        if name not in BESIDE_MODEL
        and options.model
        and getattr(options, name) != default
    )
    yield from (
        f"{flag_of(first)} and {flag_of(second)} exclude each other"
        for first, second in APART
        if getattr(options, first) and getattr(options, second)
    )
    yield from (
        f"{flag_of(name)} must not go with --window and --label-column: windows of a long "
        "stretch would last longer than those of a short one"
        for name in ("evenly", "resample")
        if getattr(options, name) and options.window and options.label_column
    )
    yield from (
        f"{flag_of(name)} goes with {flag_of(needed)}, got {flag_of(name)} "
        f"{getattr(options, name)} alone"
        for name, needed in TOGETHER.items()
        if getattr(options, name) and not getattr(options, needed)
    )
    yield from (
        f"{flag_of(name)} must be one with {flag_of(other)}, got "
        f"{' '.join(map(str, getattr(options, name)))}"
        for name, other in SINGLE
        if getattr(options, other) and len(getattr(options, name) or []) > 1
    )
