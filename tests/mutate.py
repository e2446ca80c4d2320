"""Small changes of the code, drawn at random, that no test notices (make mutate).

Run: python tests/mutate.py [--seed 0] [--count 100] [FILE ...]

In a copy of the project each change is made alone: another comparison, sign, number or
truth value, a condition turned round, a statement left out. The test files that are
named after the module run, then those that name it in their imports; a change that all
of them pass is printed. Whether it is a fault is for a reader to judge: some changes
alter nothing but speed.
"""

import argparse
import ast
import copy
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from docs.sources import CORE, ROOT, modules, own_files

OTHER = {  # an operator and what takes its place
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
OTHER_NAME = {"min": "max", "max": "min", "any": "all", "all": "any"}
OTHER_NAME |= {"argmin": "argmax", "argmax": "argmin", "minimum": "maximum"}
OTHER_NAME |= {"maximum": "minimum", "zeros": "ones", "ones": "zeros"}
# what is said, when a function is compiled, and types: no numbers
SKIPPED = (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)


def changes_of(node):
    """Yield changed copies of a node."""
    if isinstance(node, (ast.BinOp, ast.BoolOp)) and type(node.op) in OTHER:
        yield changed(node, op=OTHER[type(node.op)]())
    elif isinstance(node, ast.Compare):
        first, *others = node.ops
        if type(first) in OTHER:
            yield changed(node, ops=[OTHER[type(first)](), *others])
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Constant) and isinstance(node.value, float):
        yield ast.Constant(2 * node.value)
    elif isinstance(node, ast.Name) and node.id in OTHER_NAME:
        yield changed(node, id=OTHER_NAME[node.id])
    elif isinstance(node, ast.Attribute) and node.attr in OTHER_NAME:
        yield changed(node, attr=OTHER_NAME[node.attr])
    elif isinstance(node, (ast.AugAssign, ast.Expr)):
        yield ast.Pass()


def changed(node, **fields):
    node = copy.copy(node)
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def conditions(tree):
    """Yield (condition, its opposite) of every if and while."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            yield node.test, ast.UnaryOp(ast.Not(), node.test)


def expressions(node):
    """Yield the nodes of functions' bodies that compute something."""
    for field, value in ast.iter_fields(node):
        if field in ("decorator_list", "annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            is_warning = isinstance(child, ast.Call) and "warn" in ast.unparse(child)
            is_text = isinstance(child, ast.Expr) and isinstance(
                child.value, ast.Constant
            )
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED):
                continue
            if not is_warning and not is_text:
                yield child
                yield from expressions(child)


def sites(text):
    """All changes of a module's functions, as (node, what takes its place)."""
    changes = []
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, ast.FunctionDef):
            changes += conditions(function)
            start = ast.get_docstring(function) is not None
            for statement in function.body[start:]:
                for node in [statement, *expressions(statement)]:
                    changes += [(node, other) for other in changes_of(node)]
    unique = {(at.lineno, at.col_offset, ast.dump(to)): (at, to) for at, to in changes}
    return [*unique.values()]


def with_change(text, node, other):
    """The text with other in place of node."""
    lines = text.encode().splitlines(keepends=True)
    starts = [
        sum(map(len, lines[: line - 1])) for line in (node.lineno, node.end_lineno)
    ]
    start = starts[0] + node.col_offset
    end = starts[1] + node.end_col_offset
    new = ast.unparse(other)
    new = new if isinstance(node, ast.stmt) else f"({new})"
    source = b"".join(lines)
    return (source[:start] + new.encode() + source[end:]).decode()


def tests_of(module, path, root):
    """The test files that are named after a module, then the others that import it, but
    for those of the application.
    """
    name = "core" if module == CORE else "_".join(module.split("."))
    files = sorted(root.glob("tests/test_*.py"))
    named = [file for file in files if re.match(rf"test_{name}[_.]", file.name)]
    word = re.compile(rf"import.*\b{path.stem}\b|\b{path.stem}\.")
    return named + [
        file
        for file in files
        if file not in named
        and not file.name.startswith("test_classify")
        and word.search(file.read_text("utf-8"))
    ]


def passes(root, test, seconds):
    """Does this file of tests pass in the copy?"""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    try:
        process = subprocess.run(
            [*command, test], cwd=root, capture_output=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return False
    return process.returncode == 0


def arguments():
    parser = argparse.ArgumentParser(
        prog="python tests/mutate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="default: all modules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100, help="how many changes")
    parser.add_argument(
        "--seconds", type=float, default=300, help="most for a file of tests"
    )
    return parser.parse_args()


def main():
    options = arguments()
    paths = {str(path.relative_to(ROOT)): name for name, path in modules().items()}
    files = options.files or [*paths]
    texts = {file: (ROOT / file).read_text("utf-8") for file in files}
    drawn = [(file, *site) for file in files for site in sites(texts[file])]
    random.Random(options.seed).shuffle(drawn)
    drawn = sorted(drawn[: options.count], key=lambda change: files.index(change[0]))
    n_survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / CORE
        for name in own_files(""):
            (copied / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copied / name)
        for file, node, other in drawn:
            new = with_change(texts[file], node, other)
            (copied / file).write_text(new, "utf-8")
            tests = tests_of(paths[file], ROOT / file, copied)
            survives = all(passes(copied, test, options.seconds) for test in tests)
            (copied / file).write_text(texts[file], "utf-8")
            n_survivors += survives
            line = texts[file].splitlines()[node.lineno - 1].strip()
            became = ast.unparse(other)
            verdict = "SURVIVES" if survives else "caught"
            print(
                f"{verdict} {file}:{node.lineno}: {line}\n    -> {became}", flush=True
            )
    print(f"{n_survivors} of {len(drawn)} changes survive")


if __name__ == "__main__":
    main()
