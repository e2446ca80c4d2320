"""The command: python -m grassmann_classify, or grassmann-classify where installed."""

import importlib
import importlib.util
import signal
import sys

from grassmann_classify.options import INSTALLED, parse, split
from grassmann_classify.words import one_line

NEEDED = {"sklearn": "scikit-learn"}  # {module: package} of what only extras install
MODULES = {"add": "predict"}  # of commands


def main(arguments=None, prog=None):
    """Run a command with these arguments; None: those of the command line."""
    arguments = sys.argv[1:] if arguments is None else [*arguments]
    prog = prog or _name()
    options = parse(arguments, prog)
    missing = [NEEDED[name] for name in NEEDED if not importlib.util.find_spec(name)]
    if missing:
        names = " ".join(missing)
        sys.exit(
            f"{prog}: error: {names} is not installed: {sys.executable} -m pip install "
            f"{names}"
        )
    with one_line(prog):
        module = MODULES.get(options.name, options.name)
        module = importlib.import_module(f"grassmann_classify.{module}")
        from grassmann_classify.baseline_rows import names_of_rows
        from grassmann_classify.finding import check_apart
        from grassmann_classify.results import Results
        from grassmann_classify.rows import check_asked

        recipe, settings, paths = split(options)
        if settings.methods is not None:
            check_asked(settings.methods, names_of_rows(settings))
        check_apart(paths.out, *filter(None, (paths.data, paths.new, paths.more)))
        with Results(paths.out) as out:
            getattr(module, options.name)(recipe, settings, paths, out)


def _name():
    """What the user typed, as far as it can be told."""
    return f"python -m {__package__}" if sys.argv[0].endswith(".py") else INSTALLED


def run():
    """The command in a process of its own: Ctrl-C, SIGTERM and SIGHUP end it in a line."""

    def say(kind, error, trace):
        if issubclass(kind, KeyboardInterrupt):
            print("stopped", file=sys.stderr)
        else:
            sys.__excepthook__(kind, error, trace)

    sys.excepthook = say
    for name in ("SIGTERM", "SIGHUP"):  # else files of processes would stay in /tmp
        number = getattr(signal, name, None)
        if number and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    main()


if __name__ == "__main__":
    run()
