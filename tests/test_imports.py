"""One import world: `from grassmann_sc import learn` in a clone, beside copied files,
and installed with and without -e; estimators that travel between processes in each.
"""

import zipfile

import pytest

import grassmann_sc
from docs.sources import modules
from processes import (
    CORE,
    MODULES,
    ROOT,
    build_wheel,
    copy_modules,
    copy_source,
    install,
    run_python,
)

# nothing is compiled: what is tested here are imports
QUICK = {"NUMBA_DISABLE_JIT": "1"}


def clone(tmp_path_factory):
    return dict(cwd=ROOT)


def copied(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copied")
    copy_modules(folder)
    return dict(cwd=folder)


def editable(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    copy_source(source)
    wheel = build_wheel(source, tmp_path_factory.mktemp("wheel"), editable=True)
    python, _ = install(wheel, tmp_path_factory.mktemp("environment"))
    return dict(cwd=tmp_path_factory.mktemp("elsewhere"), python=python)


# the clone comes last, and loads what the others leave
@pytest.fixture(scope="module", params=["copied", "installed", "editable", "clone"])
def world(request, tmp_path_factory):
    """Where, and by which interpreter, code is run."""
    if request.param == "installed":
        python, _ = request.getfixturevalue("installed")
        return dict(cwd=tmp_path_factory.mktemp("elsewhere"), python=python)
    return globals()[request.param](tmp_path_factory)


# ---------------------------------------------------------------------------- modules


@pytest.mark.parametrize(
    "code",
    [
        "from grassmann_sc.learn import gdl",
        "import grassmann_sc.learn",
        "import grassmann_sc; grassmann_sc.learn.gdl",
    ],
)
def test_other_forms_of_import(code):
    run_python(code, **QUICK)


def test_importing_the_core_imports_no_other_module():
    code = "import sys, grassmann_sc; print(*(m for m in sys.modules if m.startswith('grassmann')))"
    assert run_python(code, **QUICK) == [CORE]


# ------------------------------------------------------------------------- copied files


LEARN = """
from grassmann_sc import files, learn, random_subspaces
learned = learn.gdl(random_subspaces(8, 5, 2, rng=0), 3, 0.1, n_iter=2, rng=0)
files.save("atoms.npz", learned)
assert (files.load("atoms.npz").atoms == learned.atoms).all()
print(learn.__file__)
"""


def test_copied_files_learn_and_save(tmp_path):
    copy_modules(tmp_path, CORE, "shared", "learn", "files")
    assert run_python(LEARN, cwd=tmp_path, **QUICK) == [str(tmp_path / "learn.py")]


CODE = """
from grassmann_sc import random_subspaces
from grassmann_sc.large.codes import load_codes, write_codes
D = random_subspaces(3, 5, 2, rng=0)
print(write_codes("codes.npy", D, D, n_neighbors=1), load_codes("codes.npy").trace())
"""


def test_copied_files_write_codes(tmp_path):
    copy_modules(tmp_path, CORE, "shared", "files", "large.codes")
    assert run_python(CODE, cwd=tmp_path, **QUICK) == ["3 3.0"]


ZIPPED = """
import importlib.util, sys
sys.path.insert(0, "lib.zip")
from grassmann_sc import gsc, learn, random_subspaces
from grassmann_sc.baselines import hulls
D = random_subspaces(3, 5, 2, rng=0)
assert (gsc(D, D, 0.1) > 0.9).sum() == 3
assert len(learn.gdl(D, 2, 0.1, n_iter=2, rng=0).atoms) == 2
print(learn.__file__, hulls.__file__)
assert importlib.util.find_spec("grassmann_sc.tuning") is None
"""


def test_a_zip_is_imported_from(tmp_path):
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.write(ROOT / "baselines", "baselines")  # as zip -r does
        for name in (CORE, "shared", "learn", "files", "baselines.hulls"):
            archive.write(modules()[name], modules()[name].relative_to(ROOT))
    (line,) = run_python(ZIPPED, cwd=tmp_path, **QUICK)
    inside = tmp_path / "lib.zip"
    assert line == f"{inside / 'learn.py'} {inside / 'baselines' / 'hulls.py'}"


# one kernel
SMALLEST = "print(core.principal_angles([[1.0], [0.0]], [[0.6], [0.8]]).round(2))"


def test_a_core_in_an_archive_compiles_in_memory(tmp_path):
    """Where numba keeps nothing: under a name that does not end in .zip."""
    with zipfile.ZipFile(tmp_path / "lib.whl", "w") as archive:
        archive.write(modules()[CORE], f"{CORE}.py")
    code = f"import sys; sys.path.insert(0, 'lib.whl'); import grassmann_sc as core; {SMALLEST}"
    assert run_python(code, cwd=tmp_path) == ["[0.93]"]
    assert [path.name for path in tmp_path.iterdir()] == ["lib.whl"]


@pytest.fixture
def in_a_package(tmp_path):
    """The core and a module in a package of their user, the core under another name
    too.
    """
    package = tmp_path / "mypkg"
    package.mkdir()
    copy_modules(package, CORE, "learn", "files")
    (package / "__init__.py").touch()
    (package / "own.py").write_text("from .grassmann_sc import gsc, random_subspaces\n")
    copy_modules(tmp_path, CORE)
    (tmp_path / f"{CORE}.py").rename(tmp_path / "gsc_core.py")
    return tmp_path


@pytest.mark.parametrize("core", ["mypkg.grassmann_sc", "gsc_core"])
def test_under_another_name_the_core_computes(core, in_a_package):
    code = f"""
from mypkg import own
import {core} as core
D = core.random_subspaces(3, 5, 2, rng=0)
assert (core.gsc(D, D, 0.1) == own.gsc(D, D, 0.1)).all()
"""
    assert run_python(code, cwd=in_a_package, **QUICK) == []


def test_a_copy_under_another_name_warns_from_the_users_line(in_a_package):
    code = """
import warnings
import numpy as np
import mypkg.grassmann_sc as core
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    core.proj(np.eye(3), 1)
print(*(warning.filename for warning in caught))
"""
    assert run_python(code, cwd=in_a_package, **QUICK) == ["<string>"]


def test_one_file_under_two_names_has_two_caches(in_a_package):
    """What numba keeps names the module that it is of, which the other name cannot
    import.
    """
    for cwd, name in (
        (in_a_package, "mypkg.grassmann_sc"),
        (in_a_package / "mypkg", CORE),
    ):
        code = f"import {name} as core; {SMALLEST}"
        assert run_python(code, cwd=cwd) == ["[0.93]"]


def test_a_baseline_is_copied_with_its_folder(tmp_path):
    copy_modules(tmp_path, CORE, "shared", "baselines.hulls")
    code = "from grassmann_sc.baselines import hulls; print(hulls.__name__)"
    assert run_python(code, cwd=tmp_path, **QUICK) == ["grassmann_sc.baselines.hulls"]


def test_what_a_module_misses_is_named_by_itself(tmp_path):
    """Not the module, which is there, but the module that it imports."""
    copy_modules(tmp_path, CORE)
    (tmp_path / "learn.py").write_text(
        "\nimport grassmann_sc as core\nimport no_such_module"
    )
    code = """
try:
    from grassmann_sc import learn
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run_python(code, cwd=tmp_path, **QUICK) == ["no_such_module"]


@pytest.mark.parametrize(
    "code, message",
    [
        (
            "import grassmann_sc; grassmann_sc.lern",
            "module 'grassmann_sc' has no attribute 'lern'",
        ),
        (
            "from grassmann_sc import lern",
            "cannot import name 'lern' from 'grassmann_sc'",
        ),
        (
            "from grassmann_sc.baselines import learn",
            "cannot import name 'learn' from 'grassmann_sc",
        ),
    ],
)
def test_names_that_are_nowhere(code, message):
    with pytest.raises((AttributeError, ImportError), match=f"^{message}"):
        exec(code)


def test_a_core_that_was_copied_alone_names_the_file_that_is_missing(tmp_path):
    copy_modules(tmp_path, CORE)
    (tmp_path / "train.py").write_text("print('trained')\n")
    code = """
import grassmann_sc
assert not hasattr(grassmann_sc, "train")
for line in ("grassmann_sc.learn", "from grassmann_sc import learn"):
    try:
        exec(line)
    except ModuleNotFoundError as error:
        print(error)
print(*dir(grassmann_sc))
help(grassmann_sc)
"""
    message, same, names, *_ = run_python(code, cwd=tmp_path, **QUICK)
    core = tmp_path / "grassmann_sc.py"
    assert message == same == f"grassmann_sc.learn must be copied beside {core}"
    assert names.split() == sorted(grassmann_sc.__all__)


# --------------------------------------------------------------- estimators that travel


FITTED = """
import pickle, sys
import numpy as np
from sklearn.model_selection import cross_val_score
from grassmann_sc import estimators, random_subspaces

X = random_subspaces(18, 6, 2, rng=0)
y = np.arange(18) % 3
sets = list(np.random.default_rng(0).standard_normal((18, 5, 6)))
fitted = [
    (estimators.NearestSubspace().fit(X, y), X),
    (estimators.CodingClassifier(lam=0.1).fit(X, y), X),
    (estimators.CodingClassifier(coding="local", n_neighbors=3).fit(X, y), X),
    (estimators.GrassmannDictionary(3, lam=0.1, max_iter=2, random_state=0).fit(X), X),
    (estimators.ProjectionKernel().fit(X), X),
    (estimators.ImageSetSubspaces(2).fit(sets), sets),
    (estimators.KernelLift("linear", p=2).fit(sets), sets),
]
outputs = [getattr(model, "predict", getattr(model, "transform", None))(A) for model, A in fitted]
with open(sys.argv[1], "wb") as file:
    pickle.dump((fitted, outputs), file)

"""

UNDER_LOKY = """
def scores(n_jobs):
    return cross_val_score(estimators.NearestSubspace(), X, y, cv=3, n_jobs=n_jobs,
                           error_score="raise")

assert np.array_equal(scores(2), scores(1))  # joblib's loky starts fresh processes
"""

LOADED = """
import pickle, sys
for path in sys.argv[2:]:
    with open(path, "rb") as file:
        fitted, outputs = pickle.load(file)  # imports what it needs
    for (model, A), output in zip(fitted, outputs, strict=True):
        again = getattr(model, "predict", getattr(model, "transform", None))(A)
        assert again.shape == output.shape and (again == output).all(), model
        assert type(model).__module__ == "grassmann_sc.estimators"
"""


@pytest.fixture(scope="module")
def pickles(tmp_path_factory):
    """Files of fitted estimators, of the clone and of the worlds that come before it."""
    path = tmp_path_factory.mktemp("pickles") / "fitted.pickle"
    run_python(FITTED, path, **QUICK)
    return [path]


IMPORT_ALL = f"""
import grassmann_sc
modules = {MODULES}
for module in modules:
    folder, _, name = ("grassmann_sc." + module).rpartition(".")
    exec("from " + folder + " import " + name)
    found = sys.modules["grassmann_sc." + module]
    assert eval("grassmann_sc." + module) is eval(name) is found
    print(found.__name__, *found.__all__)
flat = {{*modules, "baselines", "large"}} & set(sys.modules)
assert not flat, flat  # each module is there once
assert set(grassmann_sc.__all__) < set(dir(grassmann_sc)) > {{"learn", "baselines"}}
"""


def test_estimators_travel_and_every_module_is_there_once(world, pickles):
    """A fresh process loads estimators that were pickled in other worlds, imports all
    modules, and leaves estimators of its own.
    """
    is_copied = "python" not in world and world["cwd"] != ROOT
    # by the working folder alone, other processes find it
    code = LOADED + IMPORT_ALL + FITTED + UNDER_LOKY * is_copied
    own = pickles[0].with_name(f"{len(pickles)}.pickle")
    lines = run_python(code, own, *pickles, **world, **QUICK)
    pickles.append(own)
    assert [line.split()[0] for line in lines] == [
        f"{CORE}.{module}" for module in MODULES
    ]
