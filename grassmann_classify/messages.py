"""Words for people: what a command prints, and its errors in a line each."""

import difflib
import numbers
import sys
import unicodedata
import warnings
from contextlib import contextmanager

MOST_NAMED = 5  # clips, or sizes, in a message


def printable(text, but="\n"):
    """The text with control characters, but some, and bytes that are no UTF-8 escaped.

    Names of files, and labels, may hold characters that command a terminal or that no
    picture can show.
    """
    return "".join(
        c.encode("unicode_escape").decode()
        if unicodedata.category(c) in ("Cc", "Cs") and c not in but
        else c
        for c in str(text)
    )


def tell(text):
    """Print a result."""
    print(printable(text))


def to_stderr(text):
    """Print what is not a result: progress, advice, what was left out."""
    print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def one_line(program):
    """Errors, warnings and Ctrl-C as one line each, with the program's name."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: to_stderr(
                f"{program}: {message}"
            )
            yield
    except (OSError, ValueError, TypeError, ImportError, MemoryError) as error:
        sys.exit(printable(f"{program}: {str(error) or type(error).__name__}"))
    except KeyboardInterrupt:
        sys.exit(
            f"{program}: stopped; the next run starts from the subspaces that were built"
        )


def meant(word, known):
    """A hint at the one of these that is most like a misspelt word, or "".

    >>> meant("--neighbours", ["--neighbors", "--lam"]), meant("--fly", ["--lam"])
    (' (did you mean --neighbors?)', '')
    """
    named = {one.lstrip("-"): one for one in known}
    found = difflib.get_close_matches(word.lstrip("-"), named, 1, 0.65)
    return f" (did you mean {named[found[0]]}?)" if found else ""


def plural(number, thing):
    """A number of things, in words.

    >>> plural(1, "clip"), plural(2, "clip"), plural(3, "class")
    ('1 clip', '2 clips', '3 classes')
    """
    ending = "es" if thing.endswith(("s", "ch")) else "s"
    return f"{number} {thing}{ending if number != 1 else ''}"


def first_of(texts, between):
    """The first texts in one, and how many more there are."""
    more = len(texts) - MOST_NAMED
    return between.join([*texts[:MOST_NAMED], *[f"and {more} more"] * (more > 0)])


def in_words(seconds):
    """A duration as one number.

    >>> in_words(40.2), in_words(150)
    ('40 s', '2 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def told(chosen):
    """Chosen parameters in words.

    >>> told({"lam": 0.1, "kernel": "linear", "p": None, "positive": True})
    'lam 0.1, linear, positive True'
    """
    return ", ".join(
        value if isinstance(value, str) else f"{name} {_number(value)}"
        for name, value in chosen.items()
        if value is not None
    )


def _number(value):
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return f"{value:g}" if is_number else str(value)
