"""One import world: `from grassmann_sc import learn` in a clone, beside copied files, and installed
with and without -e; estimators that travel between processes in each."""

import pytest

from processes import (
    CORE,
    ROOMS,
    ROOT,
    build_wheel,
    copy_modules,
    copy_source,
    install,
    run_python,
)

QUICK = {"NUMBA_DISABLE_JIT": "1"}  # nothing is compiled: what is tested here are imports


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


@pytest.fixture(scope="module", params=["clone", "copied", "installed", "editable"])
def world(request, tmp_path_factory):
    """Where, and by which interpreter, code is run."""
    if request.param == "installed":
        python, _ = request.getfixturevalue("installed")
        return dict(cwd=tmp_path_factory.mktemp("elsewhere"), python=python)
    return globals()[request.param](tmp_path_factory)


# ---------------------------------------------------------------------------- rooms


IMPORT_ALL = """
import sys
import grassmann_sc
for room in sys.argv[1:]:
    folder, _, name = ("grassmann_sc." + room).rpartition(".")
    exec("from " + folder + " import " + name)
    module = sys.modules["grassmann_sc." + room]
    assert eval("grassmann_sc." + room) is eval(name) is module
    print(module.__name__, *module.__all__)
flat = set(sys.argv[1:]) | {"baselines", "grassmann_sc_kit"}
assert not flat & set(sys.modules), flat & set(sys.modules)  # each module is there once
assert set(grassmann_sc.__all__) < set(dir(grassmann_sc)) > {"learn", "baselines"}
"""


def test_every_room_is_found_once(world):
    lines = run_python(IMPORT_ALL, *ROOMS, **world, **QUICK)
    assert [line.split()[0] for line in lines] == [f"{CORE}.{room}" for room in ROOMS]
    assert all(len(line.split()) > 1 for line in lines)


@pytest.mark.parametrize("code", [
    "from grassmann_sc.learn import gdl",
    "import grassmann_sc.learn",
    "import grassmann_sc; grassmann_sc.learn.gdl"])
def test_other_forms_of_import(code):
    run_python(code, **QUICK)


def test_importing_the_core_imports_no_room():
    code = "import sys, grassmann_sc; print(*(m for m in sys.modules if m.startswith('grassmann')))"
    assert run_python(code, **QUICK) == [CORE]


# ---------------------------------------------------------------------------- copied files


LEARN = """
from grassmann_sc import files, learn, random_subspaces
learned = learn.gdl(random_subspaces(8, 5, 2, rng=0), 3, 0.1, n_iter=2, rng=0)
files.save("atoms.npz", learned)
assert (files.load("atoms.npz").atoms == learned.atoms).all()
print(learn.__file__)
"""


def test_copied_files_learn_and_save(tmp_path):
    copy_modules(tmp_path, CORE, "learn", "files")
    assert run_python(LEARN, cwd=tmp_path, **QUICK) == [str(tmp_path / "learn.py")]


CODE = """
from grassmann_sc import files, random_subspaces
D = random_subspaces(3, 5, 2, rng=0)
print(files.write_codes("codes.npy", D, D, n_neighbors=1), files.load_codes("codes.npy").trace())
"""


def test_copied_files_write_codes(tmp_path):
    copy_modules(tmp_path, CORE, "files")
    assert run_python(CODE, cwd=tmp_path, **QUICK) == ["3 3.0"]


@pytest.fixture
def core_alone(tmp_path):
    """The folder of a core without other modules, beside a script of its user."""
    copy_modules(tmp_path, CORE)
    (tmp_path / "train.py").write_text("from grassmann_sc import gsc\nprint('trained')\n")
    return tmp_path


@pytest.mark.parametrize("name", ["learn", "baselines", "lern"])
def test_the_core_alone_says_what_to_copy(name, core_alone):
    code = f"""
try:
    from grassmann_sc import {name}
except ImportError as error:
    print(error)
from grassmann_sc import gsc
"""
    said, = run_python(code, cwd=core_alone, **QUICK)
    assert said == (f"cannot import name '{name}' from 'grassmann_sc': if it is a module of the "
                    f"toolkit, copy {name}.py to {core_alone}, or install grassmann_sc_kit")


def test_the_core_alone_has_its_own_names(core_alone):
    """What its user writes beside it is no module of the toolkit, and asking does not run it."""
    code = """
import grassmann_sc
assert dir(grassmann_sc) == sorted(grassmann_sc.__all__), dir(grassmann_sc)
assert not hasattr(grassmann_sc, "train") and not hasattr(grassmann_sc, "learn")
"""
    assert run_python(code, cwd=core_alone, **QUICK) == []


def test_a_baseline_is_copied_with_its_folder(tmp_path):
    copy_modules(tmp_path, CORE, "baselines.hulls")
    code = "from grassmann_sc.baselines import hulls; print(hulls.__name__)"
    assert run_python(code, cwd=tmp_path, **QUICK) == ["grassmann_sc.baselines.hulls"]


def test_what_a_room_misses_is_named_by_itself(tmp_path):
    """Not the room, which is there, but the module that it imports."""
    copy_modules(tmp_path, CORE)
    (tmp_path / "learn.py").write_text("\nimport grassmann_sc as core\nimport no_such_module")
    code = """
try:
    from grassmann_sc import learn
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run_python(code, cwd=tmp_path, **QUICK) == ["no_such_module"]


@pytest.mark.parametrize("code, message", [
    ("import grassmann_sc; grassmann_sc.lern",
     "module 'grassmann_sc' has no attribute 'lern'"),
    ("from grassmann_sc import lern", "cannot import name 'lern' from 'grassmann_sc'")])
def test_names_that_are_nowhere(code, message):
    with pytest.raises((AttributeError, ImportError), match=f"^{message}"):
        exec(code)


# ------------------------------------------------------------------------ estimators that travel


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

def scores(n_jobs):
    return cross_val_score(estimators.NearestSubspace(), X, y, cv=3, n_jobs=n_jobs,
                           error_score="raise")

assert np.array_equal(scores(2), scores(1))  # joblib's loky starts fresh processes
"""

LOADED = """
import pickle, sys
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        fitted, outputs = pickle.load(file)  # imports what it needs
    for (model, A), output in zip(fitted, outputs, strict=True):
        again = getattr(model, "predict", getattr(model, "transform", None))(A)
        assert again.shape == output.shape and (again == output).all(), model
        assert type(model).__module__ == "grassmann_sc.estimators"
"""


@pytest.fixture(scope="module")
def from_the_clone(tmp_path_factory):
    """Fitted estimators, pickled in the clone, which is one of the worlds."""
    path = tmp_path_factory.mktemp("pickles") / "fitted.pickle"
    run_python(FITTED, path, **QUICK)
    return path


def test_estimators_load_in_a_fresh_process_and_work_under_loky(world, tmp_path, from_the_clone):
    pickles = [from_the_clone]
    if world["cwd"] != ROOT:
        pickles.append(tmp_path / "fitted.pickle")
        run_python(FITTED, pickles[-1], **world, **QUICK)
    run_python(LOADED, *pickles, **world, **QUICK)
