"""The layout: who imports whom, what is packaged, and what no file does. Files are
read, not run.
"""

import ast
import configparser
import contextlib
import functools
import re
import sys
from collections import Counter
from itertools import pairwise

import pytest

import grassmann_sc as core
from docs import sources
from docs.sources import CORE, ROOT, modules, own_files

APPLICATION = "grassmann_classify"
TEXTS = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in own_files()
    if name.rpartition("/")[0]
    in (
        "",
        "baselines",
        "benchmarks",
        "examples",
        "large",
        APPLICATION,
        "tests",
        "tests/stress",
    )
}
MODULES = {name: path.relative_to(ROOT).as_posix() for name, path in modules().items()}


@functools.cache
def tree_of(file):
    """Of a file; not parsed by a process that runs none of the tests below."""
    return ast.parse(TEXTS[file], file)


def module_tree(module):
    return tree_of(MODULES[module])


# What a module may import at its top: the standard library, these, the core, and what
# its row of the plan says. Within functions also what is optional.
OF_ALL = {"numpy", "scipy", "numba", "shared"}
EXTRAS = {
    "sklearn",
    "skimage",
    "av",
    "PIL",
    "dask",
    "distributed",
    "h5py",
}
ROOT_MODULES = {name for name in MODULES if "." not in name}
ROWS = {
    "plots": {"matplotlib"},
    "strategies": {"hypothesis"},
    "calibration": {"discriminative"},
    "discriminative": {"learn"},
    "large.codes": {"files"},
    "large.streams": {"files", "learn", "large.codes"},
    "large.scale": ROOT_MODULES | {"large.codes", "large.streams"},
    "estimators": {"sklearn", "large.codes", "large.streams"} | ROOT_MODULES,
    "baselines.sets": {"baselines.jacobi"},
    "baselines.tangent": {"baselines.jacobi", "intrinsic", "learn", "variants"},
    "baselines.estimators": {"sklearn"} | set(MODULES),
}
IN_FUNCTIONS = {
    "learn": EXTRAS | {"files"},
    "baselines.hulls": {"kernels"},
}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
EXPLICIT_RANDOMNESS = {
    "default_rng",
    "Generator",
    "BitGenerator",
    "RandomState",
    "SeedSequence",
}
CALLED_BY_ALL = {"__init__", "__call__"}
PUBLIC_ALL_THE_SAME = {
    "_replace",
    "_asdict",
    "_fields",
    "_make",
    "_exit",
    "_getframe",
    "_thread",
}


def of_each(names):
    """Makes a test of a check: it is run on each name, and the test lists the failures."""

    def test_of(check):
        def test():
            failed = []
            for name in names:
                try:
                    check(name)
                except AssertionError as error:
                    failed.append(f"{name}: {error}")
            assert not failed, "\n".join(failed)

        test.__doc__ = check.__doc__
        return test

    return test_of


each_module = of_each(MODULES)
each_file = of_each(TEXTS)


def setup_cfg():
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


@functools.cache
def imports(tree):
    """(dotted name, name it is bound to, is it inside a function) of each import; `from
    a import b` gives a.b, b.
    """
    return [*imports_below(tree, False)]


def imports_below(node, in_function):
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, alias.asname or top_level(alias.name), in_function
    elif isinstance(node, ast.ImportFrom):
        source = "." * node.level + (node.module or "")
        for alias in node.names:
            yield f"{source}.{alias.name}", alias.asname or alias.name, in_function
    for child in ast.iter_child_nodes(node):
        if not is_for_the_checker(child):
            inside = in_function or isinstance(node, FUNCTIONS)
            yield from imports_below(child, inside)


def is_for_the_checker(node):
    """if TYPE_CHECKING: which no interpreter enters."""
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def top_level(name):
    return name.partition(".")[0] or "a relative import"


def module_of(name):
    """The module of the project that a dotted name leads to, or the top-level name of
    another.
    """
    if top_level(name) != CORE:
        return top_level(name)
    inside = [
        module for module in MODULES if f"{name}.".startswith(f"{CORE}.{module}.")
    ]
    return inside[0] if inside else CORE


def strings(tree):
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


@functools.cache
def code_within(tree):
    """The tree, and those of its strings that are code of more than one line, run
    elsewhere.
    """
    trees = [tree]
    for node in strings(tree):
        if "import" in node.value and "\n" in node.value:
            with contextlib.suppress(SyntaxError):
                trees.append(ast.parse(node.value))
    return trees


def public_definitions(tree):
    return [
        node
        for node in tree.body
        if isinstance(node, DEFINITIONS) and not node.name.startswith("_")
    ]


def names_in_all(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return None


# ------------------------------------------------------------------------ its own files


def test_own_files_are_what_git_tracks_or_setup_packages(tmp_path, monkeypatch):
    """A file that is not there, and one that lies about, as the README's
    test_angles.py, are none of it.
    """
    own = [
        "baselines/hulls.py",
        f"{CORE}.py",
        "learn.py",
        "setup.py",
        "tests/test_learn.py",
    ]
    for name in [*own, "test_angles.py", "learn.pyc"]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / f"{CORE}.py").write_text(
        "MODULES = ('learn', 'baselines.hulls', 'no_file')\n"
    )
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    for tracked in ([], [*own, "gone.py", "setup.cfg"]):
        monkeypatch.setattr(sources, "tracked", lambda tracked=tracked: tracked)
        assert sources.own_files.__wrapped__(".py") == own


def test_a_folder_within_the_repository_of_another_has_no_git(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    assert sources.tracked() == []


# --------------------------------------------------------------------- who imports whom


def test_the_core_names_every_module():
    """Its tuple, by which they are packaged, and the files."""
    files = [
        name.removesuffix(".py").replace("/", ".")
        for name in TEXTS
        if re.fullmatch(r"((baselines|large)/\w+|(?!setup|grassmann_sc)\w+)\.py", name)
    ]
    assert sorted(core.MODULES) == sorted(files)
    assert [CORE, *core.MODULES] == list(MODULES)


@each_module
def test_each_module_has_tests_of_its_name(module):
    name = "core" if module == CORE else "_".join(module.split("."))
    assert any(re.fullmatch(rf"tests/test_{name}(_\w+)?\.py", file) for file in TEXTS)


@each_module
def test_imports_follow_the_layout(module):
    for name, _, in_function in imports(module_tree(module)):
        allowed = sys.stdlib_module_names | OF_ALL | {CORE} | ROWS.get(module, set())
        if in_function:
            allowed |= IN_FUNCTIONS.get(module, EXTRAS)
        assert module_of(name) in allowed, f"{module} imports {name}"


@each_file
def test_modules_are_imported_from_the_core_alone(file):
    """As grassmann_sc.learn each is there once, in a clone, beside copied files and
    installed.
    """
    flat = {*ROOT_MODULES, "baselines", "large"} - {CORE}
    for tree in code_within(tree_of(file)):
        wrong = {name for name, _, _ in imports(tree) if top_level(name) in flat}
        assert not wrong, f"{file} imports {wrong}: write from {CORE} import ..."


OF_APPLICATION = [file for file in TEXTS if file.startswith(f"{APPLICATION}/")]


@each_file
def test_the_toolkit_imports_no_application_and_no_script(file):
    """The application imports the toolkit, scripts import both, tests all."""
    above = {"benchmarks", "docs", "examples", "tests", APPLICATION}
    if file.startswith(f"{APPLICATION}/"):
        above -= {APPLICATION}
    elif "/" in file and not file.startswith(("baselines/", "large/")):
        above = set()
    assert not {
        name for name, _, _ in imports(tree_of(file)) if top_level(name) in above
    }


@of_each(OF_APPLICATION)
def test_each_file_of_the_application_has_one_subject_and_says_which(file):
    assert ast.get_docstring(tree_of(file))
    assert sum(isinstance(node, ast.stmt) for node in ast.walk(tree_of(file))) <= 400


@of_each([file for file in TEXTS if file.startswith("tests/")])
def test_no_test_imports_from_another(file):
    wrong = {
        name for name, _, _ in imports(tree_of(file)) if re.search(r"\btest_", name)
    }
    assert not wrong


# -------------------------------------------------------------------- no private names


def is_private(name):
    hidden = name.startswith("_") and not (
        name.startswith("__") and name.endswith("__")
    )
    return hidden and name not in PUBLIC_ALL_THE_SAME


def is_oneself(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def own_private_names(tree):
    """What a file may reach on any object: what it defines, and what its classes keep."""
    nodes = list(ast.walk(tree))
    defined = {node.name for node in nodes if isinstance(node, DEFINITIONS)}
    kept = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and is_oneself(node.value)
    }
    return defined | kept


def private_reach_ins(tree):
    """Every private name of another file that this one uses."""
    own = own_private_names(tree)
    own_imports = {
        bound
        for name, bound, _ in imports(tree)
        if top_level(name) in {CORE, APPLICATION, "benchmarks", "examples"}
    }
    for name, _, _ in imports(tree):
        if any(is_private(part) for part in name.split(".")):
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            target = node.value
            name = node.attr
        elif (
            isinstance(node, ast.Call) and len(node.args) > 1
        ):  # getattr(core, "_x"), setattr
            target = node.args[0]
            name = getattr(node.args[1], "value", None)
        else:
            continue
        if not (isinstance(name, str) and is_private(name)) or is_oneself(target):
            continue
        if ast.unparse(target).partition(".")[0] in own_imports or name not in own:
            yield f"{ast.unparse(target)}.{name}"


@each_file
def test_no_private_name_of_another_file_is_used(file):
    assert not {
        name for tree in code_within(tree_of(file)) for name in private_reach_ins(tree)
    }


@pytest.mark.parametrize(
    "code, wrong",
    [
        ("import grassmann_sc as core; core._x", {"core._x"}),
        ("import grassmann_sc; grassmann_sc.learn._x()", {"grassmann_sc.learn._x"}),
        ("from grassmann_sc import learn|def _x(): return learn._x", {"learn._x"}),
        ("from grassmann_sc.learn import _x", {"grassmann_sc.learn._x"}),
        ("from examples.common import _x", {"examples.common._x"}),
        (f"from {APPLICATION}.clips import _x", {f"{APPLICATION}.clips._x"}),
        ("import grassmann_sc as gs; monkeypatch.setattr(gs, '_x', 1)", {"gs._x"}),
        ("model._x", {"model._x"}),
        ("class A:| def f(self, other): return self._x - other._x", set()),
        ("import grassmann_sc as core; core.__version__, pair._replace(a=1)", set()),
    ],
)
def test_private_names_of_others_are_seen(code, wrong):
    assert set(private_reach_ins(ast.parse(code.replace("|", "\n")))) == wrong


def test_no_private_name_means_two_things():
    """A private function or class of one name in two modules: find better names, or one
    home.
    """
    names = Counter(
        node.name
        for tree in map(module_tree, MODULES)
        for node in tree.body
        if isinstance(node, DEFINITIONS) and is_private(node.name)
    )
    assert not {
        name: [
            module
            for module in MODULES
            if any(
                getattr(node, "name", "") == name for node in module_tree(module).body
            )
        ]
        for name, count in names.items()
        if count > 1
    }


# ------------------------------------------------------------------------- public names


@each_module
def test_public_names_are_listed_and_there(module):
    listed = names_in_all(module_tree(module))
    assert listed is not None, f"{module} has no __all__"
    assert len(set(listed)) == len(listed)
    defined = {node.name for node in public_definitions(module_tree(module))}
    assert set(listed) <= defined


@each_module
def test_public_names_are_listed_right_after_the_imports(module):
    body = module_tree(module).body
    last = max(
        i
        for i, node in enumerate(body)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    )
    first = min(i for i, node in enumerate(body) if isinstance(node, DEFINITIONS))
    between = [
        ast.unparse(node.targets[0])
        for node in body[last + 1 : first]
        if isinstance(node, ast.Assign)
    ]
    assert [name for name in between if name != "__version__"][:1] == ["__all__"]


@each_module
def test_public_definitions_have_docstrings(module):
    tree = module_tree(module)
    assert ast.get_docstring(tree), f"{module}.py has no docstring"
    assert not [
        node.name for node in public_definitions(tree) if not ast.get_docstring(node)
    ]


# --------------------------------------------------------------------------- type hints


def own_classes(module, name):
    """The class of this name and those of the project that it inherits from."""
    for node in module_tree(module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            yield node
            for base in node.bases:
                home, _, base_name = ast.unparse(base).rpartition(".")
                # a base of a module at the root, or of its own
                if (home or module) in MODULES:
                    yield from own_classes(home or module, base_name)


def public_functions(module):
    """(name, node) of what can be called of a module's public names: functions, and
    methods of classes, inherited ones too.
    """
    public = set(names_in_all(module_tree(module)))
    for node in public_definitions(module_tree(module)):
        if node.name in public and isinstance(node, FUNCTIONS):
            yield node.name, node
        elif node.name in public:
            for owner in own_classes(module, node.name):
                for method in owner.body:
                    if isinstance(method, FUNCTIONS) and (
                        not method.name.startswith("_") or method.name in CALLED_BY_ALL
                    ):
                        yield f"{node.name}.{method.name}", method


def parameters(function):
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    starred = [arg for arg in (arguments.vararg, arguments.kwarg) if arg]
    return [arg for arg in (*named, *starred) if arg.arg not in ("self", "cls")]


def hints_missing(function):
    missing = [arg.arg for arg in parameters(function) if arg.annotation is None]
    return missing if function.returns is not None else [*missing, "return"]


def is_hinted(function):
    return function.returns is not None or any(
        arg.annotation for arg in parameters(function)
    )


@each_module
def test_public_signatures_have_type_hints(module):
    jitted = set(jitted_functions(module_tree(module)))
    missing = {
        name: hints_missing(function)
        for name, function in public_functions(module)
        if function not in jitted
    }
    assert not {name: wrong for name, wrong in missing.items() if wrong}


def test_checks_at_the_door_have_type_hints():
    """What they return is what the checker knows of an argument in the bodies of all
    modules.
    """
    checks = [
        node
        for node in module_tree(CORE).body
        if isinstance(node, FUNCTIONS)
        and re.fullmatch(r"check_\w+|(real|finite)_array|same_dimension", node.name)
    ]
    assert len(checks) > 10
    assert not {
        node.name: hints_missing(node) for node in checks if hints_missing(node)
    }


@each_module
def test_jitted_code_and_private_helpers_have_none(module):
    private = [
        node
        for node in module_tree(module).body
        if isinstance(node, FUNCTIONS) and is_private(node.name)
    ]
    inner = [*jitted_functions(module_tree(module)), *private]
    assert not [node.name for node in inner if is_hinted(node)]


@pytest.mark.parametrize(
    "code, missing",
    [
        ("def f(a: int, *, b: str = '') -> None: ...", []),
        ("def f(a, *, b=1, **c) -> None: ...", ["a", "b", "c"]),
        ("def f(self, *a: int): ...", ["return"]),
    ],
)
def test_missing_hints_are_seen(code, missing):
    assert hints_missing(ast.parse(code).body[0]) == missing


# ------------------------------------------------------------------ what no module does


@functools.cache
def jitted_functions(tree):
    """Functions under @core.jit and the like, or under a name that the module gives
    one.
    """
    functions = []
    decorators = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and "jit" in ast.unparse(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            texts = [ast.unparse(decorator) for decorator in function.decorator_list]
            if any(
                "jit" in text or text.partition("(")[0] in decorators for text in texts
            ):
                functions.append(function)
    return functions


def foreign_to_jitted(function, foreign):
    """Which of the foreign names it uses, but for parts that the core compiles into
    others.
    """
    given = re.findall(r"parts=(\w+)", ast.unparse(function.decorator_list[0]))
    homes = {name.removeprefix("baselines."): name for name in MODULES}
    homes["core"] = CORE
    parts = {
        f"{home}.{node.name}"
        for home in ("core", *given)
        for node in jitted_functions(module_tree(homes[home]))
        if "inlined_jit" in ast.unparse(node.decorator_list[0])
    }
    nodes = [node for statement in function.body for node in ast.walk(statement)]
    called = {
        id(node.value)
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node) in parts
    }
    return {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and node.id in foreign and id(node) not in called
    }


@each_module
def test_jitted_code_calls_its_own_file_and_compiled_parts_of_the_core(module):
    """Numba's cache on disk sees changes of a function's own file, by core.jit those of
    the core and of its parts, and no others.
    """
    foreign = {
        bound
        for name, bound, _ in imports(module_tree(module))
        if top_level(name) == CORE
    }
    for function in jitted_functions(module_tree(module)):
        used = foreign_to_jitted(function, foreign)
        assert not used, f"{function.name} in {module}.py uses {used}"


@pytest.mark.parametrize(
    "code, used",
    [
        ("core.dot(a, b, len(a))", set()),
        ("core.bases_gram(a)", {"core"}),
        ("core.dot(core.TILE, a)", {"core"}),
        ("kernels.fast_exp(a)", {"kernels"}),
    ],
)
def test_what_is_foreign_to_jitted_code_is_seen(code, used):
    (function,) = ast.parse(f"@core.jit\ndef f(a, b): {code}").body
    assert foreign_to_jitted(function, {"core", "kernels"}) == used


@each_module
def test_no_unsafe_options(module):
    """allow_pickle=True runs strangers' code on load, fastmath=True loses NaN and
    infinity.
    """
    for node in ast.walk(module_tree(module)):
        if isinstance(node, ast.keyword) and node.arg in {"allow_pickle", "fastmath"}:
            place = f"{node.arg}=True in {module}.py, line {node.value.lineno}"
            assert ast.unparse(node.value) != "True", place


@each_module
def test_randomness_is_explicit(module):
    """Neither the standard library's random module nor NumPy's global state."""
    imported = {name for name, _, _ in imports(module_tree(module))}
    text = "\n".join([*imported, ast.unparse(module_tree(module))])
    assert (
        set(re.findall(r"\b(?:np|numpy)\.random\.(\w+)", text)) <= EXPLICIT_RANDOMNESS
    )
    assert "numpy.random" not in imported
    assert "random" not in {top_level(name) for name in imported}


@each_module
def test_nobody_limits_the_threads_of_blas_or_the_cores(module):
    text = ast.unparse(module_tree(module))
    assert not re.findall(r"threadpool|sched_setaffinity|set_num_threads\(", text)


# -------------------------------------------------------------------------- plain lines


def packed_assignments(tree):
    """Lines with several targets and as many values: a, b = 1, 2."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, (ast.Tuple, ast.List))
        and len(node.value.elts) > 1
        and any(
            isinstance(target, (ast.Tuple, ast.List)) and len(target.elts) > 1
            for target in node.targets
        )
    ]


@each_file
def test_an_assignment_says_one_thing(file):
    assert not packed_assignments(tree_of(file))


def test_packed_assignments_are_seen():
    packed = "a, b = 1, 2\n(n, d), (N, _) = X.shape, D.shape\n[a, b] = c, d\n"
    plain = (
        "n, d = X.shape\na = 1, 2\na, b = f(1, 2)\nfirst, *rest = values\na = b = 0\n"
    )
    assert packed_assignments(ast.parse(plain + packed)) == [6, 7, 8]


@each_file
def test_no_ternary_within_another(file):
    nested = [
        inner.lineno
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.IfExp)
        for inner in (node.body, node.test, node.orelse)
        if isinstance(inner, ast.IfExp)
    ]
    assert not nested


# --------------------------------------------------------------------- extras and ranks


@of_each([*own_files(".py"), *own_files(".md")])
def test_extras_that_are_named_exist(name):
    named = re.findall(
        rf"{APPLICATION}\[([\w, ]+)\]", (ROOT / name).read_text(encoding="utf-8")
    )
    extras = {extra.strip() for names in named for extra in names.split(",")}
    assert extras <= set(setup_cfg()["options.extras_require"])


def test_the_core_reads_from_the_mathematics_down():
    """Geometry, Gram matrix, coding, classification, then checks, then what
    compiles and runs; the first equation stands within the first 60 lines.
    """
    lines = TEXTS[f"{CORE}.py"].splitlines()
    assert any("lam ||y||_1" in line or "X X^T" in line for line in lines[:60])
    order = [
        "def orthonormalize",
        "def projection_kernel",
        "def gsc",
        "def glc",
        "def classify",
        "def check_bases",
        "def run_blocks",
    ]
    places = [
        next(i for i, line in enumerate(lines) if line.startswith(start))
        for start in order
    ]
    assert all(a < b for a, b in pairwise(places))
