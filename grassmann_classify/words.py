"""Words for people: what a command prints, and what rows and parameters are called.

Needs the standard library alone.
"""

import difflib
import functools
import importlib.metadata
import os
import re
import sys
import unicodedata
import warnings
from collections import Counter
from contextlib import contextmanager, suppress
from contextvars import ContextVar

UNLIKE = "unlike all classes"  # a clip that no class fits
# a clip, for the class that answers, where neither this nor another class is possible
UNUSUAL = "unusual for it"
UNNAMED = ("", "nan", "na", "n/a")  # cells that name no label and no group
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with which cells begin that spreadsheets run
TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # a line around
MOST_NAMED = 5  # clips, or sizes, in a message
BECAUSE = 3  # sets named as what explains another


def printable(text, but="\n"):
    """The text with control characters, but some, and bytes that are no UTF-8 escaped.

    Names of files, and labels, may hold characters that command a terminal, that turn
    a line around, or that no picture can show.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if (unicodedata.category(c) in ("Cc", "Cs") or c in TURNING) and c not in but
        else c
        for c in str(text)
    )


def tell(*texts):
    """Print results."""
    for text in texts:
        print(printable(text))


SILENT = ContextVar("silent", default=False)  # in programs: no progress, no advice


@contextmanager
def verbose_if(wanted):
    """Progress and advice within the with statement only if they are wanted."""
    before = SILENT.set(not wanted)
    try:
        yield
    finally:
        SILENT.reset(before)


def to_stderr(*texts):
    """Print what is not a result, where anyone reads it: progress, advice, losses."""
    if not SILENT.get() and sys.stderr is not None:
        with suppress(OSError):
            for text in texts:
                print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def one_line(program):
    """Errors, warnings and Ctrl-C as one line each, with the program's name."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: to_stderr(
                f"{program}: {message}"
            )
            # joblib starts another in place of one that has grown
            warnings.filterwarnings("ignore", "A worker stopped while")
            yield
    except BrokenPipeError:  # whoever reads, as head, has enough
        with suppress(OSError, ValueError):  # what is left is flushed to nobody
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        sys.exit(printable(f"{program}: {str(error) or type(error).__name__}"))
    except KeyboardInterrupt:
        sys.exit(f"{program}: stopped")


@contextmanager
def naming(path):
    """What goes wrong within the with statement on the disk is an OSError of this path."""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise OSError(f"{path} cannot be written: {why}") from None


def meant(word, words):
    """A hint at the one of these that is most like a misspelt word, or "".

    >>> meant("--neighbours", ["--neighbors", "--lam"]), meant("--fly", ["--lam"])
    (' (did you mean --neighbors?)', '')
    """
    named = {name.lstrip("-"): name for name in words}
    close = difflib.get_close_matches(word.lstrip("-"), named, 1, 0.65)
    return f" (did you mean {named[close[0]]}?)" if close else ""


def rounded(number, digits):
    """A number in so many digits, of large ones all before the point.

    >>> rounded(237.4, 2), rounded(0.1234, 2)
    ('240', '0.12')
    """
    return f"{float(f'{number:.{digits}g}'):.15g}"


def group_named(group):
    """The name of a group, which may be a number: 1 and 1.0 are one group.

    >>> group_named(1.0), group_named("1"), group_named(b"p1")
    ('1', '1', 'p1')
    """
    if isinstance(group, bytes):
        return group.decode(errors="backslashreplace")
    is_float = type(group).__name__.startswith("float")  # or one of NumPy's
    return str(int(group) if is_float and group.is_integer() else group)


def as_number(text):
    """The number that a text is, or the text.

    >>> as_number("1.0"), as_number("run")
    (1.0, 'run')
    """
    try:
        return float(text)
    except ValueError:
        return text


def is_unnamed(cell):
    """Does a cell, or an entry of an array, name no label and no group?"""
    return cell is None or group_named(cell).strip().lower() in UNNAMED


def plural(number, thing):
    """A number of things, in words.

    >>> plural(1, "clip"), plural(2, "clip"), plural(3, "class")
    ('1 clip', '2 clips', '3 classes')
    """
    ending = "es" if thing.endswith(("s", "ch")) else "s"
    return f"{number} {thing}{ending if number != 1 else ''}"


def say_failed(why, results=()):
    """Name the clips {name: why} and rows that failed; exit with status 1 if any row did."""
    if why:
        lines = "\n  ".join(each_once(why))
        to_stderr(f"\n{len(why)} could not be used:\n  {lines}")
    failed = [
        f"{name} failed: {split['failed']}"
        for name, splits in dict(results).items()
        for split in splits
        if split["failed"]
    ]
    if failed:
        sys.exit("\n".join(dict.fromkeys(failed)))


def each_once(why):
    """The reasons in {name: why} of clips, each once, after the names of its clips.

    >>> each_once({"a": "a: no reader", "b": "b: no reader", "c": "x/c is damaged"})
    ['a, b: no reader', 'x/c is damaged']
    """
    names = grouped(
        (words.removeprefix(f"{clip}:"), clip) for clip, words in why.items()
    )
    return [
        words if words in why.values() else f"{first_of(some, ', ')}:{words}"
        for words, some in names.items()
    ]


def grouped(pairs):
    """{key: its values, as they come} of pairs (key, value).

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    values = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


def first_of(texts, between):
    """The first texts in one, and how many more there are."""
    more = len(texts) - MOST_NAMED
    return between.join([*texts[:MOST_NAMED], *[f"and {more} more"] * (more > 0)])


@functools.cache  # reading them takes some 20 ms
def versions():
    """{package: its version} of those on which numbers depend."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


def duration(seconds):
    """A duration as one number.

    >>> duration(40.2), duration(150)
    ('40 s', '2 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


TERMS = {  # {the parameter: what its words mean}
    "recipe": "centred: less the mean frame of the clip; standardised: each column less "
    "its mean, over its spread; stacks: with frames that follow",
    "p": "directions: of the subspace of a clip, the strongest patterns of its frames",
    "spectrum": "alpha: all directions count, by their singular value to the power 2 alpha",
    "kernel": "gamma: of the Gaussian kernel; larger, and only near frames are alike",
    "lam": "lambda: of 0 to 1; larger, and a new clip is coded by fewer labelled ones",
    "n_neighbors": "neighbours: the labelled clips that may code a new one",
    "rule": "class: the one whose labelled clips explain most, or have most weight",
    "C": "C: of an SVM; larger, and it tries harder to have every training clip right",
    "candidates": "candidates: recipes with a p, an alpha or a gamma, whose inner "
    "products are averaged",
    "shrinkage": "shrinkage: of directions that vary within classes; less, and they count "
    "less",
}
THINGS = {"p": "direction", "n_neighbors": "neighbour", "candidates": "candidate"}
NAMES = {"lam": "lambda", "spectrum": "all directions, alpha"}
VALUES = {
    "plain": "plain frames",
    "raw": "raw pixels",
    "linear": "no kernel",
    "residual": "the class that explains most",
    "sum": "the class of the largest sum",
    "max": "the class of the largest weight",
}


def slug(name):
    """The name in lower case with _ for all that is no letter or digit, for files."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def in_words(name, value, least=None):
    """The value of a parameter that was chosen, or the least to this value, in words.

    >>> in_words("p", 4), in_words("lam", 0.01), in_words("recipe", "HOG, stack 4")
    ('4 directions', 'lambda 0.01', 'HOG, stacks of 4 frames')
    >>> in_words("lam", 0.1, least=0.01), in_words("n_neighbors", 40, least=10)
    ('lambda 0.01 to 0.1', '10 to 40 neighbours')
    """
    if hasattr(value, "gamma"):
        return f"gamma {value.gamma:.2g}"
    if callable(value):
        return getattr(value, "__name__", str(value))
    if isinstance(value, str):
        value = re.sub(r"stack (\d+)", r"stacks of \1 frames", value)
        return VALUES.get(value, value)
    if isinstance(value, bool):
        return name if value else f"not {name}"
    words = f"{value:g}" if isinstance(value, (int, float)) else str(value)
    first = "" if least is None else f"{least:g} to "
    if name in THINGS:
        return first + plural(value, THINGS[name])
    return f"{NAMES.get(name, name)} {first}{words}"


def all_in_words(chosen):
    """All that was chosen, in words.

    >>> all_in_words({"recipe": "plain", "p": 1, "n_neighbors": 5, "spectrum": None})
    'plain frames, 1 direction, 5 neighbours'
    """
    return ", ".join(
        in_words(name, value) for name, value in chosen.items() if value is not None
    )


def reasons_for(shares, index, places):
    """What speaks for the class places[i] of each query i: [[(set, share), ...], ...].

    The sets of the largest positive ones of the core's Shares, at most BECAUSE; index
    (N,): the classes of the labelled sets.
    """
    reasons = []
    for indices, values, place in zip(*shares, places):
        mine = (indices >= 0) & (index[indices] == place) & (values > 0)
        reasons.append([*zip(indices[mine].tolist(), values[mine].tolist())][:BECAUSE])
    return reasons


def explained(names, reasons):
    """What explains a set, in words: the labelled sets, and their shares."""
    return "; ".join(f"{names[i]} {share:.2g}" for i, share in reasons)


def labelled(name, label):
    """The name of a set, with its label if that is not the folder in its name."""
    return name if name.startswith(f"{label}/") else f"{name} ({label})"


def clip_names(names, clip):
    """The name of each set's clip: that of the set without #number.

    A set has a number only where its clip was cut into several. clip (n,): the number
    of each set's clip.
    """
    counts = Counter(clip)
    return [
        name.rpartition("#")[0] if counts[c] > 1 else name
        for name, c in zip(names, clip)
    ]
