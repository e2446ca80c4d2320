"""The command: python -m grassmann_classify, or grassmann-classify where installed."""

import importlib.util
import os
import signal
import sys

from grassmann_classify.options import INSTALLED, parse, split
from grassmann_classify.words import one_line, to_stderr

# of commands that do not lie in modules of their names
MODULES = {"add": "answering", "predict": "answering"}


def main(arguments=None, prog=None):
    """Run a command with these arguments; None: those of the command line."""
    arguments = sys.argv[1:] if arguments is None else [*arguments]
    if prog is None:  # what the user typed, as far as it can be seen
        typed = sys.argv[0].endswith(".py")
        prog = f"python -m {__package__}" if typed else INSTALLED
    options = parse(arguments, prog)
    if not importlib.util.find_spec("sklearn"):
        sys.exit(
            f"{prog}: error: scikit-learn is not installed: {sys.executable} -m pip "
            "install scikit-learn"
        )
    with one_line(prog):
        module = MODULES.get(options.name, options.name)
        module = importlib.import_module(f"grassmann_classify.{module}")
        from grassmann_classify.baseline_rows import (
            EVERY_ROW,
            check_methods,
            names_of_rows,
        )
        from grassmann_classify.results import Results
        from grassmann_classify.rows import ROWS

        recipe, settings, paths = split(options)
        rows = ROWS if options.name == "predict" else EVERY_ROW
        check_methods(settings.methods, names_of_rows(settings, rows))
        with Results(paths.out) as out:
            getattr(module, options.name)(recipe, settings, paths, out)


def _stop(number, _):
    """End with the exit status that a shell gives for this signal."""
    to_stderr("stopped")
    sys.exit(128 + number)


def run():
    """The command in a process of its own: Ctrl-C, SIGTERM and SIGHUP end it in a line."""
    for name in ("SIGTERM", "SIGHUP"):  # else temporary files of processes would stay
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    for number, name in enumerate(["stdout", "stderr"], start=1):
        if getattr(sys, name) is None:  # closed; processes that we start need it, too
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
            os.set_inheritable(number, True)
            stream = os.fdopen(number, "w", errors="backslashreplace", closefd=False)
            setattr(sys, name, stream)
    # names may have signs that it cannot encode
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("stopped")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is written: Python ends


if __name__ == "__main__":
    run()
