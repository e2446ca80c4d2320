"""The floor plan: who imports whom, what is packaged, and what no module does. The modules are read, not run."""

import ast
import configparser
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORE, KIT, ROOF = "grassmann_sc", "grassmann_sc_kit", "estimators"
MODULES = {path.stem: ast.parse(path.read_text(encoding="utf-8"), path.name) for path in sorted(ROOT.glob("*.py"))}

CORE_MAY_IMPORT = sys.stdlib_module_names | {"numpy", "scipy", "numba"}
EXTRAS = {"sklearn", "skimage", "imageio", "av", "PIL", "tqdm", "dask", "distributed"}  # imported in the functions that use them
FLOOR_PLAN = {  # what a module may import beside the core and what the core imports
    CORE: set(),
    "comparators": set(),
    "features": set(),
    "intrinsic": set(),
    "kernels": set(),
    "learn": set(),
    "plots": {"matplotlib"},
    "subspaces": set(),
    ROOF: {"sklearn", KIT, "comparators", "features", "intrinsic", "kernels", "learn", "subspaces"},
}

PUBLIC_NAMES = {
    CORE: "orthonormalize random_subspaces projection_kernel principal_angles chordal_distance geodesic_distance proj "
          "chordal_mean lam_max sparse_codes locality_codes gsc glc reconstruct class_residuals classify",
    ROOF: "ImageSetSubspaces NearestSubspace CodingClassifier GrassmannDictionary ProjectionKernel KernelLift",
    "kernels": "linear polynomial rbf median_gamma gamma_grid kernel_bases kernel_gram kgsc kglc Lift",
    "learn": "init_atoms update_atoms gdl kgdl OnlineGDL class_dictionaries save load",
    "intrinsic": "exp_map log_map geodesic karcher_mean tangent_grams log_euclidean_codes log_euclidean_classify "
                 "intrinsic_codes intrinsic_classify",
    "plots": "plot_atoms plot_principal_angles plot_codes plot_convergence plot_gram plot_confusion plot_map",
    "subspaces": "from_image_set from_sets from_video from_videos block_hankel arma observability read_frames",
    "features": "describe raw hog lbp lbp_top gait_energy_image",
}

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
EXPLICIT_RANDOMNESS = {"default_rng", "Generator", "BitGenerator", "SeedSequence"}

each_module = pytest.mark.parametrize("module", MODULES)


def setup_cfg():
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config


def imports(node, in_function=False):
    """(dotted name, name it is bound to, is it inside a function) of each import; `from a import b` gives a.b, b."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, alias.asname or alias.name, in_function) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        source = "." * node.level + (node.module or "")
        yield from ((f"{source}.{alias.name}", alias.asname or alias.name, in_function) for alias in node.names)
    for child in ast.iter_child_nodes(node):
        yield from imports(child, in_function or isinstance(node, FUNCTIONS))


def top_level(name):
    return name.partition(".")[0] or "a relative import"


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]


def public_definitions(tree):
    return [node for node in tree.body if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_")]


def jitted_functions(tree):
    """Functions under @njit and the like, or under a decorator that the module makes from one, as `kernel = njit(cache=True)`."""
    decorators = {target.id for node in tree.body if isinstance(node, ast.Assign) and "jit" in ast.unparse(node.value)
                  for target in node.targets if isinstance(target, ast.Name)}
    for function in functions(tree):
        texts = [ast.unparse(decorator) for decorator in function.decorator_list]
        if any("jit" in text or text.partition("(")[0] in decorators for text in texts):
            yield function


def test_every_module_is_packaged():
    listed = setup_cfg()["options"]["py_modules"].split()
    assert sorted(listed) == sorted(name if name == CORE else f"{KIT}.{name}" for name in MODULES)


@each_module
def test_imports_follow_the_floor_plan(module):
    assert module in FLOOR_PLAN, f"{module}.py has no place in the floor plan"
    allowed = CORE_MAY_IMPORT | FLOOR_PLAN[module] | ({CORE} - {module})
    extras = set() if module == CORE else EXTRAS
    for name, _, in_function in imports(MODULES[module]):
        assert top_level(name) in (allowed | extras if in_function else allowed), f"{module}.py imports {name}"


@each_module
def test_jitted_code_stays_within_its_file(module):
    """Numba's cache on disk does not see changes in another file."""
    foreign = {bound for name, bound, _ in imports(MODULES[module]) if top_level(name) in {KIT, *FLOOR_PLAN}}
    for function in jitted_functions(MODULES[module]):
        used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
        assert not used & foreign, f"{function.name} in {module}.py uses {used & foreign} of another file"


@each_module
def test_no_unsafe_options(module):
    """allow_pickle=True runs strangers' code on load, fastmath=True loses NaN and infinity."""
    unsafe = {"allow_pickle", "fastmath"}
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.keyword) and node.arg in unsafe:
            assert ast.unparse(node.value) != "True", f"{node.arg}=True in {module}.py, line {node.value.lineno}"


@each_module
def test_randomness_is_explicit(module):
    """Neither the standard library's random module nor NumPy's global state."""
    imported = {name for name, _, _ in imports(MODULES[module])}
    used = re.findall(r"\b(?:np|numpy)\.random\.(\w+)", "\n".join([*imported, ast.unparse(MODULES[module])]))
    assert set(used) <= EXPLICIT_RANDOMNESS
    assert "numpy.random" not in imported and "random" not in {top_level(name) for name in imported}


@each_module
def test_public_definitions_have_docstrings(module):
    missing = [node.name for node in public_definitions(MODULES[module]) if not ast.get_docstring(node)]
    assert not missing
    assert ast.get_docstring(MODULES[module]), f"{module}.py has no docstring"


@pytest.mark.parametrize("module", sorted(PUBLIC_NAMES.keys() & MODULES))
def test_public_names_are_there(module):
    defined = {node.name for node in public_definitions(MODULES[module])}
    assert set(PUBLIC_NAMES[module].split()) <= defined


@pytest.mark.parametrize("path", sorted([*ROOT.glob("*.py"), *ROOT.glob("*.md")]), ids=lambda path: path.name)
def test_extras_that_are_named_exist(path):
    named = re.findall(rf"{KIT}\[([\w, ]+)\]", path.read_text(encoding="utf-8"))
    extras = {extra.strip() for names in named for extra in names.split(",")}
    assert extras <= set(setup_cfg()["options.extras_require"])
