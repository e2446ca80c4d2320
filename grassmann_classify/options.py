"""The five commands and their options; --help answers without waiting for slow imports.

Needs the standard library alone.
"""

import argparse
import re
import textwrap
from pathlib import Path

from grassmann_classify.flags import ALSO, BY_SUBJECT, DEFAULTS, INSTEAD, OPTIONS
from grassmann_classify.messages import meant, printable
from grassmann_classify.settings import RULES, USUAL_P, check_value, is_own

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


LEARNING = "recipe features feature-options p spectrum center unit-variance stack arma stabilize"
LEARNING = {f"--{name}" for name in f"{LEARNING} rank single".split()}
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
        "--model --save --labels --label-column --group-column --out --skip --strict "
        "--features --kernel",
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
    *"features kernel".split(),
}
OF_MORE = {"label_column", "group_column", "group_by"}  # clips that add reads


class Parser(argparse.ArgumentParser):
    """Mistakes in a line, which names the command's --help."""

    def hint(self, word, *_):
        """At the option that is most like this word."""
        return meant(word.partition("=")[0], self._option_string_actions)

    def error(self, message):
        told = printable(message, but="")
        self.exit(2, f"{self.prog}: error: {told}; see {self.prog} --help\n")


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
    for field, default in DEFAULTS.items():
        if not hasattr(options, field):
            setattr(options, field, default)
    try:
        _check(options)
    except (TypeError, ValueError) as error:
        parser.error(str(error))
    return options


def flags_of(name):
    """{subject: flags} of a command, those that most need first."""
    *_, first, others = COMMANDS[name]
    found = {"most used": first.split()}
    for subject, flags in BY_SUBJECT.items():
        rest = [one for one in flags.split() if one in others - {*first.split()}]
        found |= {subject: rest} if rest else {}
    return found


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


def _check(options):
    """ValueError or TypeError if an option, or two together, make no sense."""
    _check_files(options)
    if options.strict and options.skip:
        raise ValueError("--strict and --skip exclude each other")
    for name, rule in RULES.items():
        value = getattr(options, name)
        if name == "kernels" and value is None:  # as memory and time allow
            continue
        flag = "-k" if name == "k" else f"--{name.replace('_', '-')}"
        if name != "k" or options.name == "cluster":
            check_value(value, flag, rule)
    if not 0 < options.coverage < 1:
        raise ValueError(
            f"--coverage must lie between 0 and 1, got {options.coverage:g}"
        )
    if options.model:
        kept = KEPT | OF_MORE if options.name == "add" else KEPT
        for name, default in DEFAULTS.items():
            if name not in kept and getattr(options, name) != default:
                raise ValueError(
                    f"--{name.replace('_', '-')} and --model exclude each other: a model "
                    "keeps what it was learned with"
                )
        if not all(map(is_own, options.features or [])):
            raise ValueError(
                "--features must name functions of your own that the model may run, got "
                f"{' '.join(options.features)}"
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
    if options.kernel and options.kernels is False:
        raise ValueError("--kernel and --no-kernels exclude each other")
    if options.kernel:
        options.kernels = True


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
    if options.spectrum and (options.arma or options.rank != "raise"):
        raise ValueError("--spectrum excludes --arma and --rank warn or pad")
    if options.p is None and (options.arma or options.rank != "raise"):
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
    if options.at_most and options.evenly:
        raise ValueError("--at-most and --evenly exclude each other")
    if not isinstance(options.feature_options, dict):
        raise ValueError(
            f"--feature-options must be a JSON object, got {options.feature_options!r}"
        )
