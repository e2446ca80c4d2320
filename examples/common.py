"""What scripts share: --help that waits for no slow import, and pictures as files.

Needs the standard library alone, but for save_picture. The description of a script is
its docstring, read from its file.
"""

import argparse
import ast
import sys
from pathlib import Path

FORMATS = ["png", "pdf", "svg"]
DPI = 120


def parsed(name, parse, *script):
    """parse(*script, arguments) of the command line; None if a module is imported.

    name: the module's __name__. Call it above slow imports, so that --help and errors
    in options do not wait for them. From here on Ctrl-C ends the script in one line.
    """
    if name != "__main__":
        return None
    sys.excepthook = _told
    return parse(*script, sys.argv[1:])


def _told(kind, error, trace):
    if issubclass(kind, KeyboardInterrupt):
        print("stopped", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def parser_of(script):
    """A parser that describes a script by its docstring, as "examples.quickstart"."""
    file = Path(__file__).parents[1].joinpath(*script.split(".")).with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    return argparse.ArgumentParser(
        prog=f"python -m {script}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def of_these(script, options, arguments):
    """Options of a script, given as {flag: keywords of add_argument}."""
    parser = parser_of(script)
    for flag, keywords in options.items():
        parser.add_argument(flag, **keywords)
    return parser.parse_args(arguments)


def of_nothing(script, arguments):
    """Options of a script that has none: --help, and an error for everything else."""
    return of_these(script, {}, arguments)


def of_pictures(script, arguments):
    """Options of a script that leaves pictures: options.format, options.dpi."""
    return of_these(script, PICTURES, arguments)


def of_files(script, arguments):
    """Options of a script that codes files: options.data, options.p, pictures."""
    files = {
        "--data": dict(
            nargs="*", default=[], type=a_file, metavar="FILE", help="files .npz"
        ),
        "--p": dict(
            nargs="*",
            type=int,
            default=[],
            metavar="P",
            help="dimension of the subspaces of each file (default: 3)",
        ),
    }
    return of_these(script, files | PICTURES, arguments)


def a_file(text):
    """An option that names a file, which must be there before anything is computed."""
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"must be a file, got {text}")
    return text


def _dots(text):
    dots = int(text)
    if not 10 <= dots <= 2400:
        raise argparse.ArgumentTypeError(f"must be 10 to 2400, got {dots}")
    return dots


PICTURES = {
    "--format": dict(
        choices=FORMATS,
        default=FORMATS[0],
        help="format of the pictures (default: %(default)s)",
    ),
    "--dpi": dict(
        type=_dots,
        default=DPI,
        help="dots per inch of png, and of images within pdf and svg (default: "
        "%(default)s)",
    ),
}


def save_picture(path, ax, options=None):
    """Save the picture of these axes, whole or not at all; returns its path.

    path: without a suffix; its folder is made. options: .format and .dpi, as scripts
    take them.
    """
    import matplotlib.pyplot as plt

    from grassmann_sc import files

    kind = getattr(options, "format", FORMATS[0])
    dpi = getattr(options, "dpi", DPI)
    path = path.with_name(f"{path.name}.{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        files.write_whole(
            path, lambda file: ax.figure.savefig(file, dpi=dpi, format=kind)
        )
    finally:
        plt.close(ax.figure)
    return path
