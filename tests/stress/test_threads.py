"""Calls among threads, forks, kills and interrupts: cores, threads, settings, files and
results are as ever, and what was stopped goes on to the same bits.
"""

import functools
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numba
import numpy as np
import pytest
import threadpoolctl
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
import interrupts
from arrays import worst_difference
from grassmann_sc import frames, intrinsic, kernels, learn, subspaces
from grassmann_sc.baselines import tangent
from grassmann_sc.large import streams

SEEDS = st.integers(0, 7)
SHARES = st.floats(0, 1.2)  # of the time that a call takes
RBF = kernels.rbf(0.01)
CALLS = {
    "chordal_distance": lambda m: core.chordal_distance(m.X),
    "geodesic_distance": lambda m: core.geodesic_distance(m.X, m.D),
    "projection_kernel": lambda m: core.projection_kernel(m.X, m.D),
    "gsc": lambda m: core.gsc(m.X, m.D, 0.1 * m.p, return_info=True),
    "gsc, path": lambda m: core.gsc(
        m.X, m.D, [0.5, 0.1, 0.0], lam_scale="max", positive=True
    ),
    "glc": lambda m: core.glc(m.X, m.D, 5),
    "reconstruct": lambda m: core.reconstruct(core.glc(m.X, m.D, 5), m.D),
    "classify": lambda m: core.classify(m.X, m.D, m.labels, lam=0.1, return_info=True),
    "gdl": lambda m: learn.gdl(m.X, 12, 0.2, n_iter=3, rng=m.seed),
    "gdl, local": lambda m: learn.gdl(m.X, 12, n_neighbors=3, n_iter=3, rng=m.seed),
    "OnlineGDL": lambda m: streams.OnlineGDL(8, 0.2, rng=m.seed).fit(m.X, 32).atoms,
    "from_sets": lambda m: subspaces.from_sets(m.sets, m.p),
    "from_videos": lambda m: subspaces.from_videos(m.sets, m.p, 2, rank="pad"),
    "kgsc": lambda m: kernels.kgsc(m.sets[:40], m.sets[40:], 0.1, kernel=RBF, p=1),
    "kglc": lambda m: kernels.kglc(m.sets[:40], m.sets[40:], 3, kernel=RBF, p=1),
    "Lift": lambda m: kernels.Lift(RBF, 1, rng=m.seed).fit_transform(m.sets),
    "karcher_mean": lambda m: intrinsic.karcher_mean(m.D, max_iter=20),
    "log_map": lambda m: intrinsic.log_map(m.D[0], m.X.astype(float)),
    "intrinsic_codes": lambda m: tangent.intrinsic_codes(m.X[:20], m.D, 0.1),
    "log_euclidean_codes": lambda m: tangent.log_euclidean_codes(m.X, m.D, 0.1),
    "lbp_top": lambda m: frames.lbp_top(m.X[:, :, :1] * np.ones(5)),
}


def costs_of_updated(m):
    """What codes cost over atoms that were updated for them."""
    codes = core.gsc(m.X, m.X[:6], 0.1)
    K, k = (core.projection_kernel(A, m.X[:6]) for A in (m.X[:6], m.X))
    assert (learn.sample_losses(K, k, codes, 3, 0.1) >= 0).all()
    D = learn.update_atoms(m.X, m.X[:6], codes)
    K, k = (core.projection_kernel(A, D) for A in (D, m.X))
    return learn.sample_losses(K, k, codes, 3, 0.1)


LARGE = {  # of so many numbers that BLAS starts threads, and Rayleigh-Ritz steps
    "gdl, large": lambda m: learn.gdl(m.X, 6, 0.2, n_iter=2, tol=0, rng=1).costs[-1],
    "update_atoms, large": costs_of_updated,
    "OnlineGDL, large": lambda m: (
        streams.OnlineGDL(6, 0.2, rng=1).partial_fit(m.X).cost
    ),
    "chordal_mean, large": lambda m: core.chordal_distance(
        core.chordal_mean(m.X)[None], m.X
    ),
    "projection_kernel, large": lambda m: core.projection_kernel(m.X),
    "orthonormalize, large": lambda m: core.projection_kernel(
        core.orthonormalize(m.X + 0.01)
    ),
}


@functools.cache
def problem(name, seed):
    """A problem of several blocks, or of 400 dimensions."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers([70, 10, 1, 20], [150, 40, 5, 60]).tolist()
    n, d, p, N = [80, 400, 3, 20] if name in LARGE else sizes
    X = core.random_subspaces(n, d, p, rng).astype([float, np.float32][seed % 2])
    D = core.random_subspaces(N, d, p, rng)
    sets = [rng.standard_normal((int(k), d)) for k in rng.integers(p + 1, 12, 60)]
    return SimpleNamespace(X=X, D=D, sets=sets, p=p, labels=np.arange(N) % 3, seed=seed)


def settings_of_threads():
    """Cores of this thread, threads of each BLAS, threads of Numba."""
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    return os.sched_getaffinity(0), pools, numba.get_num_threads()


@pytest.mark.parametrize("name", [*CALLS, *LARGE])
@settings(max_examples=5)
@given(SEEDS, st.integers(1, 3), st.integers(1, 2), st.integers(1, 3))
def test_threads_change_nothing(name, seed, of_blas, of_numba, n_callers):
    """With so many of BLAS, of Numba and of the caller's own results are the same, to
    the bit where BLAS has one, and the caller's settings stay as they were.
    """
    m = problem(name, seed)
    call = functools.partial((CALLS | LARGE)[name], m)
    numba.set_num_threads(1)
    with threadpoolctl.threadpool_limits(1, "blas"):
        expected = call()
    numba.set_num_threads(of_numba)
    with threadpoolctl.threadpool_limits(of_blas, "blas"):
        before = settings_of_threads()
        with ThreadPoolExecutor(n_callers) as pool:
            calls = [pool.submit(call) for _ in range(n_callers)]
        assert settings_of_threads() == before
    tol = 1e-7 if m.X.dtype == float else 1e-2  # of atoms after steps; else far less
    for future in calls:
        difference = worst_difference(future.result(), expected, 1e-6)
        assert difference <= (tol if of_blas > 1 else 0)


# -------------------------------------------------------------------------- interrupts

# of an interrupt in a generator that ends, which Python forgets
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


def interrupted(call, delay, again=0.0):
    """The KeyboardInterrupt that came out of a call, or None, with Ctrl-C after so many
    seconds, and again and again until it is over.
    """
    handler = signal.getsignal(signal.SIGINT)

    def inside():
        call()

    def interrupt(number, frame):
        while frame is not None and frame.f_code is not inside.__code__:
            frame = frame.f_back
        if frame is not None:
            signal.raise_signal(signal.SIGINT)

    # pytest's own hook, interrupted itself, would take that for a failure of the test
    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: None
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(delay, 1e-6), again)
        inside()
    except KeyboardInterrupt as error:
        return error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        sys.unraisablehook = hook
        assert signal.getsignal(signal.SIGINT) == handler


def seconds_of(call):
    call()  # compiles
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=60)
@given(share=SHARES)
def test_after_an_interrupt_calls_are_as_ever(name, share):
    """Cores, threads, their pool and results."""
    call, seconds, expected = undisturbed(name)
    before = settings_of_threads()
    interrupted(call, share * seconds)
    assert settings_of_threads() == before
    assert worst_difference(call(), expected) == 0
    if core.thread_count() > 1:
        meeting = threading.Barrier(2)
        core.run_blocks(lambda block: meeting.wait(5), 2, 1)


@functools.cache
def undisturbed(name):
    call = functools.partial(CALLS[name], problem(name, 0))
    return call, seconds_of(call), call()


@functools.cache
def size_of(name):
    """The Subject of that name, and the steps and seconds of its call."""
    subject = interrupts.subject(name)
    steps = interrupts.count(functools.partial(subject.call, subject.start()))
    if not subject.has_steps:
        return subject, steps, 1e-3
    return subject, steps, seconds_of(lambda: subject.call(subject.start()))


@pytest.fixture
def small_pieces(monkeypatch):
    for module, name, value in interrupts.SMALL:
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("name", interrupts.NAMES)
@settings(max_examples=60)
@given(data=st.data())
def test_what_an_interrupt_leaves_is_as_before_the_call_or_as_after_it(
    name, data, small_pieces
):
    """At a step or a moment, and again soon after it; what goes on from there ends as an
    undisturbed run.
    """
    subject, steps, seconds = size_of(name)
    if data.draw(st.integers(0, 3)) and subject.has_steps:
        at = data.draw(st.integers(1, steps))
        again = data.draw(st.integers(0, 12))
        interrupt = functools.partial(interrupts.interrupt, at=at, again=again)
    else:
        delay = data.draw(SHARES) * seconds
        # not so soon that one handler interrupts the other for ever
        again = data.draw(st.sampled_from([0.0, max(seconds / 4, 1e-3)]))
        interrupt = functools.partial(interrupted, delay=delay, again=again)
    interrupts.interrupt_subject(subject, interrupt)


# --------------------------------------------------------------------- kills and forks

LEARN = functools.partial(learn.gdl, n_atoms=6, n_iter=15, tol=0)
LEARNING = {  # of samples, and paths to checkpoints
    "sparse": functools.partial(LEARN, lam=0.2, rng=1),
    "local": functools.partial(LEARN, n_neighbors=3, rng=2),
    "positive": functools.partial(
        LEARN, lam=0.3, lam_scale="max", positive=True, rng=3, init="kmeans"
    ),
    "stream": lambda X, **paths: (
        streams.OnlineGDL(6, 0.2, init="random", rng=4)
        .fit(X, 4, 2, checkpoint_every=2, **paths)
        .state()
    ),
}


def forked(job):
    """A child of this process that does the job, which must return what is true."""

    def do_it():
        # Numba tells under a lock of all its processes, which a killed one would keep
        core.thread_count = lambda: 2
        assert job()

    child = multiprocessing.get_context("fork").Process(target=do_it, daemon=True)
    child.start()
    return child


@pytest.mark.parametrize("which", LEARNING)
@settings(max_examples=25)
@given(st.lists(SHARES, min_size=1, max_size=3))
def test_killed_learning_resumes_to_the_same_bits(which, shares):
    """The resumed runs are killed too."""
    X = core.random_subspaces(40, 12, 2, 5).astype(
        [np.float32, float][which == "local"]
    )
    learning = functools.partial(LEARNING[which], X)
    seconds = seconds_of(functools.partial(learning, checkpoint="whole.npz"))
    state = Path("state.npz")
    state.unlink(missing_ok=True)

    def go_on():
        return learning(checkpoint=state, resume=state if state.exists() else None)

    for share in shares:
        child = forked(go_on)
        child.join(share * seconds)
        child.kill()
        child.join()
        assert child.exitcode in (0, -signal.SIGKILL)
    assert worst_difference(go_on(), learning()) == 0


@pytest.fixture(scope="module")
def busy():
    """Threads that compute, without BLAS: OpenBLAS forks with locks taken."""
    m = problem("gsc", 2)
    K = core.projection_kernel(m.D)
    k = core.projection_kernel(m.X.astype(float), m.D)
    going = [True]
    jobs = [
        lambda: core.sparse_codes(K, k, 0.1 * m.p, norm2=m.p),
        lambda: core.locality_codes(K, k, 5, norm2=m.p),
    ]
    for job in jobs:
        job()  # compiles

    def work(job):
        while going:
            job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        pool.map(work, jobs)
        yield
        going.clear()


@pytest.mark.parametrize(
    "name", ["gsc", "glc", "chordal_distance", "from_sets", "kglc", "gdl"]
)
@settings(max_examples=80)
@given(delay=st.floats(0, 0.01))
def test_a_child_forked_while_others_compute_gives_the_same(name, delay, busy):
    call, _, expected = undisturbed(name)
    time.sleep(delay)
    child = forked(lambda: worst_difference(call(), expected) == 0)
    child.join(20)
    assert child.exitcode == 0  # None of one that hangs
