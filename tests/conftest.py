"""The tests draw the same examples each time; HYPOTHESIS_PROFILE=explore draws others,
and make stress, with --hypothesis-profile=stress, many more.
"""

import gc
import os
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

import processes
from grassmann_classify.settings import LAM, NEIGHBORS, C

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile(
    "stress",
    max_examples=300,
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# joblib's: one process evaluates splits, which sees what tests replace
os.environ["LOKY_MAX_CPU_COUNT"] = "1"
# what commands keep for a second run lies in no user's folder
CACHE = tempfile.TemporaryDirectory(prefix="cache-of-tests-")  # gone at the end
os.environ["XDG_CACHE_HOME"] = CACHE.name

# those next to the first compile in folders of their own, while the first compiles here
LONGEST = [
    "test_examples_readme.py",
    "test_imports.py",
    "test_wheel.py",
    "test_classify_model.py",
    "test_classify_compare.py",
    "test_examples_paper_experiments.py",
    "test_baselines_estimators_videos.py",
    "test_large_scale.py",
    "test_classify_results.py",
    "test_estimators_sklearn.py",
    "test_laws_batches.py",
    "test_large_streams.py",
    "test_classify_clips.py",
    "test_baselines_estimators_sets.py",
]


def pytest_configure(config):
    """pytest-xdist hands out files in our order, not those of the most tests first.

    A shell starts what runs in the background with Ctrl-C ignored: tests send it.
    """
    config.option.loadscopereorder = False
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """The longest files come first, so that no process waits for one of them at the
    end.
    """
    place = {name: i for i, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONGEST)))


@pytest.fixture(scope="module", autouse=True)
def little_to_collect():
    """What is there when a module begins stays out of garbage collection, which ImageIO
    asks for whenever it closes a video.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    """The wheel of the project."""
    source = tmp_path_factory.mktemp("source")
    processes.copy_source(source)
    return processes.build_wheel(source, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The interpreter of a new environment that has the wheel, and its site-packages."""
    return processes.install(wheel, tmp_path_factory.mktemp("environment"))


OF_THE_APPLICATION = (
    "tests/test_classify_",
    "tests/test_examples_paper_experiments",
    "tests/test_examples_readme.py::test_the_page_on_folders",
)
SMALL = {  # in grassmann_classify
    "inputs.N_GAMMAS": 3,
    "bank.N_GAMMAS": 3,
    "splits.MOST_REPEATS": 1,
    "baseline_rows.SHARES": [0.9],
    "baseline_rows.BOUNDS": [1.0],
    "baseline_rows.STATES": [3],
    "baseline_rows.RADII": [(1, 2)],
    "baseline_rows.USUAL_RANKS": [2],
    "baseline_rows.CORRELATIONS": [2],
}


@pytest.fixture(autouse=True)
def small_grids(request, monkeypatch):
    """Small grids of grassmann_classify: its tests look at the path from files to
    answers, and name the grids that they need.
    """
    if not request.node.nodeid.startswith(OF_THE_APPLICATION):
        yield
        return
    for name, value in SMALL.items():
        monkeypatch.setattr(f"grassmann_classify.{name}", value)
    usual = [*LAM], [*NEIGHBORS], [*C]
    # in place: settings and options hold the same lists
    for grid, some in zip((LAM, NEIGHBORS, C), ([0.1, 0.3], [3, 10], [1, 100])):
        grid[:] = some
    yield
    for grid, values in zip((LAM, NEIGHBORS, C), usual):
        grid[:] = values
