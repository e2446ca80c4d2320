"""How the benchmarks are asked: parsers of the standard library alone, since --help must not wait
for imports. Each script parses before it imports what is slow."""

import argparse
from pathlib import Path


def parser_of(script, description):
    """A parser of benchmarks/SCRIPT.py, described by its docstring."""
    return argparse.ArgumentParser(prog=f"python -m benchmarks.{script}", description=description,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def parser_of_files(script, description, splits, metavar="FILE.npz:p"):
    """That of a benchmark on files of sets: data, splits, how frames become rows, out."""
    parser = parser_of(script, description)
    add = parser.add_argument
    add("--data", nargs="+", required=True, metavar=metavar)
    add("--splits", type=int, default=splits, help="of each file at most (default: %(default)s)")
    add("--resample", type=int, help="frames of each set, linearly in time")
    add("--stack", type=int, default=1, help="blocks of the Hankel matrix")
    add("--center", action="store_true", help="remove each set's mean")
    add("--out", type=Path, default=Path("out"), help="folder of the pictures")
    return parser
