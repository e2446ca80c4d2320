"""Threads of the core: results do not depend on them, the caller's settings are left
alone, and errors, Ctrl-C, nesting and forks leave nothing behind.
"""

import _thread
import contextlib
import os
import signal
import threading
import time
import warnings
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import grassmann_sc as gs
import interrupts
from grassmann_sc import projected
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import KINDS, bases
from processes import run_python

# ---------------------------------------------------------------------------- results


def of_thread_counts(call, monkeypatch):
    """What the call returns with 1, 2 and 5 threads."""
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(gs, "thread_count", lambda threads=threads: threads)
        results.append(call())
    return results


@pytest.mark.parametrize("kind", KINDS)
def test_geometry_does_not_depend_on_threads(kind, monkeypatch):
    X = bases(np.random.default_rng(0), 40, 4, 2, kind)
    codes = np.random.default_rng(1).standard_normal((40, 40))

    def call():
        return [
            gs.projection_kernel(X),
            gs.chordal_distance(X),
            gs.geodesic_distance(X, X[:7]),
            gs.reconstruct(codes, X),
        ]

    first, *others = of_thread_counts(call, monkeypatch)
    assert all(np.array_equal(a, b) for other in others for a, b in zip(first, other))


def test_codes_do_not_depend_on_threads(monkeypatch):
    X = gs.random_subspaces(200, 4, 2, rng=0)
    D = gs.random_subspaces(7, 4, 2, rng=1)

    def call():
        return [
            gs.gsc(X, D, 0.1),
            gs.gsc(X, D, 0),
            gs.glc(X, D, 3),
            gs.gsc(X, D, 0.1, sparse_output=True).toarray(),
            gs.classify(X, D, np.arange(7), lam=0.1, return_info=True).residuals,
        ]

    first, *others = of_thread_counts(call, monkeypatch)
    assert all(np.array_equal(a, b) for other in others for a, b in zip(first, other))


NUMBA_THREADS = """
import threading, time
import numba
import numpy as np
import grassmann_sc as gs
from grassmann_sc import files

def threads_at_work():
    def job(block):
        time.sleep(0.01)
        return threading.get_ident()
    return set(gs.run_blocks(job, 20, 1))

assert gs.thread_count() == 3  # what the environment says
try:
    numba.threading_layer()
except ValueError:
    pass  # asking started nothing
else:
    raise AssertionError("numba has started threads")
X = gs.random_subspaces(300, 4, 2, rng=0)
D = gs.random_subspaces(9, 4, 2, rng=1)
results = []
for threads in (1, 2, 1):
    numba.set_num_threads(threads)
    assert gs.thread_count() == threads
    assert len(threads_at_work()) == threads
    files.uninterrupted(lambda: results.append(gs.thread_count()))
    assert results.pop() == threads
    results.append([gs.gsc(X, D, 0.1), gs.glc(X, D, 3), gs.geodesic_distance(X)])
for other in results[1:]:
    assert all(np.array_equal(a, b) for a, b in zip(results[0], other))
assert threads_at_work() == {threading.get_ident()}  # the caller alone
"""


def test_set_num_threads_of_numba_is_honoured():
    run_python(NUMBA_THREADS, NUMBA_NUM_THREADS="3")


# ---------------------------------------------------------------- the caller's settings


def settings_of_the_caller():
    """Cores of this thread (Linux alone tells them), threads of each BLAS, threads of
    numba.
    """
    cores = getattr(os, "sched_getaffinity", lambda pid: None)
    return (
        cores(0),
        [pool["num_threads"] for pool in threadpool_info()],
        gs.thread_count(),
    )


@pytest.mark.parametrize("fails", [False, True])
def test_threads_leave_the_settings_of_the_caller_as_they_were(fails):
    before = settings_of_the_caller()
    within = []

    def job(block):
        within.append(settings_of_the_caller())
        if fails and block.start == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) if fails else contextlib.nullcontext():
        gs.run_blocks(job, 10, 1)
    assert settings_of_the_caller() == before and all(
        inside == before for inside in within
    )


def test_coding_leaves_the_settings_of_the_caller_as_they_were():
    before = settings_of_the_caller()
    X = gs.random_subspaces(300, 20, 3, rng=0)
    gs.gsc(X, X[:50], 0.1)
    gs.glc(X, X[:50], 5)
    gs.classify(X, X[:50], np.arange(50) % 5, lam=0.1)
    gs.geodesic_distance(X)
    assert settings_of_the_caller() == before


def test_threads_that_code_leave_the_filters_of_warnings_as_they_were(monkeypatch):
    """catch_warnings takes another thread's for what was there before."""
    caught = []
    monkeypatch.setattr(warnings, "catch_warnings", lambda: caught.append(1))
    X = gs.random_subspaces(6, 6, 2, rng=0)
    projected.projected_codes(X, X[:4], 0.1)
    tangent.intrinsic_dictionary(X, 3, 0.1, n_iter=1, rng=0)
    assert not caught


def test_a_process_that_may_write_nowhere_compiles_in_memory(monkeypatch):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: SimpleNamespace(
            function=function, options=options, compile=None
        )

    monkeypatch.setattr(numba, "njit", njit)
    compiled = gs.jit(raise_in)
    assert compiled.function is raise_in
    assert compiled.options["nogil"] and compiled.options["fastmath"] == {
        "reassoc",
        "contract",
    }


# ---------------------------------------------------------------------------- blocks


@pytest.fixture
def two_threads(monkeypatch):
    monkeypatch.setattr(gs, "thread_count", lambda: 2)


@pytest.mark.parametrize("n, block", [(0, 3), (1, 3), (3, 3), (10, 3), (100, 1)])
def test_blocks_cover_the_range_and_come_back_in_order(n, block, two_threads):
    def job(rows):
        time.sleep(0.001 * (rows.start % 3))
        return rows

    rows = gs.run_blocks(job, n, block)
    assert [i for part in rows for i in range(n)[part]] == list(range(n))
    assert all(part.stop - part.start == block for part in rows[:-1])


def test_two_threads_work_at_the_same_time(two_threads):
    both = threading.Barrier(2, timeout=60)
    gs.run_blocks(lambda block: both.wait(), 2, 1)


def raise_in(error, begun, ended):
    """A job that raises the error in its fourth block."""

    def job(block):
        begun.append(block)
        time.sleep(0.005)
        ended.append(block)
        if block.start == 3:
            raise error

    return job


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), ValueError("of block 3")], ids=repr
)
def test_an_error_stops_what_has_not_started_and_waits_for_the_rest(
    threads, error, monkeypatch
):
    monkeypatch.setattr(gs, "thread_count", lambda: threads)
    begun = []
    ended = []
    with pytest.raises(type(error)) as caught:
        gs.run_blocks(raise_in(error, begun, ended), 1000, 1)
    assert caught.value is error
    n_begun = len(begun)
    assert len(ended) == n_begun < 100
    time.sleep(0.1)
    assert len(begun) == n_begun
    assert gs.run_blocks(lambda block: block.start, 5, 1) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_nested_blocks_come_to_an_end(threads, monkeypatch):
    monkeypatch.setattr(gs, "thread_count", lambda: threads)

    def sum_of_squares(depth, i):
        if depth == 0:
            return i * i
        return sum(gs.run_blocks(lambda j: sum_of_squares(depth - 1, j.start), 6, 1))

    sums = []
    outer = threading.Thread(
        target=lambda: sums.append(sum_of_squares(3, 0)), daemon=True
    )
    outer.start()
    outer.join(120)
    assert sums == [6 * 6 * 55]


def test_one_block_takes_no_lock_of_numba(monkeypatch):
    """A process forked while another thread holds it would wait for ever."""
    monkeypatch.setattr(gs, "thread_count", lambda: pytest.fail("asked for threads"))
    for n in (0, 1, 5):
        assert gs.run_blocks(lambda rows: rows, n, 5) == gs.slices(n, 5)


@pytest.mark.parametrize(
    "work, most, block",
    [(1, 5, 5), (2**10, 2**11, 2**8), (2**18, 9, 1), (2**40, 9, 1), (2**10, 0, 1)],
)
def test_a_block_is_a_share_of_a_millisecond_that_fits_and_one_item_at_least(
    work, most, block
):
    assert gs.block_of(work, most) == block


def test_short_calls_take_no_threads_and_long_ones_do(monkeypatch):
    X = gs.random_subspaces(1000, 20, 3, rng=0)
    calls = []
    monkeypatch.setattr(gs, "thread_count", lambda: calls.append(1) or 1)
    for call in (
        lambda X, D: gs.gsc(X, D, 0.5),
        lambda X, D: gs.glc(X, D, len(D) // 15),
        lambda X, D: gs.classify(X, D, np.arange(len(D)) % 5, lam=0.5),
    ):
        call(X[:100], X[:50])
        assert not calls
        call(X, X[:300])
        assert calls
        calls.clear()


@pytest.mark.parametrize("n", [0, 1, 2, 20])
def test_threads_end_with_the_call_and_one_block_starts_none(n, monkeypatch):
    monkeypatch.setattr(gs, "thread_count", lambda: 5)
    working = []
    threads = set()

    def job(block):
        working.append(block)
        threads.add(threading.get_ident())
        time.sleep(0.05)
        working.remove(block)

    gs.run_blocks(job, n, 1)
    assert not working
    assert len(threads) == min(5, n)
    assert n == 0 or threading.get_ident() in threads


@pytest.mark.parametrize(
    "cause", [KeyboardInterrupt(), ValueError("of numba")], ids=repr
)
def test_a_system_error_is_the_control_c_that_caused_it(cause, monkeypatch):
    """Numba hands an array over by Python, where a Ctrl-C of the caller becomes a
    SystemError.
    """
    monkeypatch.setattr(gs, "thread_count", lambda: 1)

    def job(block):
        raise SystemError("returned a result with an exception set") from cause

    with pytest.raises(
        KeyboardInterrupt if isinstance(cause, KeyboardInterrupt) else SystemError
    ):
        gs.run_blocks(job, 3, 1)


def test_control_c_at_any_step_of_coding_begins_no_other_block(
    monkeypatch, two_threads
):
    X = gs.random_subspaces(900, 6, 2, rng=0)
    D = gs.random_subspaces(150, 6, 2, rng=1)
    want = gs.gsc(X, D, 0.1)
    run_blocks = gs.run_blocks
    begun = []
    ended = []

    def watched(job, n, block):
        def counted(rows):
            begun.append(rows)
            try:
                return job(rows)
            finally:
                ended.append(rows)

        return run_blocks(counted, n, block)

    monkeypatch.setattr(gs, "run_blocks", watched)
    n_steps = interrupts.count(lambda: gs.gsc(X, D, 0.1))
    assert len(begun) > 4
    pressed = 0
    for at in range(1, n_steps, max(1, n_steps // 40)):
        codes = []
        if interrupts.interrupt(lambda: codes.append(gs.gsc(X, D, 0.1)), at):
            pressed += 1
            n_begun = len(begun)
            # blocks of the other thread, which come to their end
            while len(ended) < len(begun):
                time.sleep(1e-3)
            assert len(begun) <= n_begun + 1  # one may have been taken before
        else:  # the other thread had more blocks this time
            assert np.array_equal(codes[0], want)
    assert pressed > 20
    assert np.array_equal(gs.gsc(X, D, 0.1), want)


def test_control_c_while_the_caller_waits_leaves_no_thread(two_threads):
    caller = threading.get_ident()
    begun = threading.Event()
    ended = []

    def job(block):
        if threading.get_ident() == caller:
            assert begun.wait(10)
        else:
            begun.set()
            time.sleep(0.1)  # the caller waits for this thread
            signal.pthread_kill(caller, signal.SIGINT)
            time.sleep(0.2)
            ended.append(block)

    with pytest.raises(KeyboardInterrupt):
        gs.run_blocks(job, 2, 1)
    assert len(ended) == 1


FORK = """
import os, signal, threading
import numpy as np
import grassmann_sc as gs

X = gs.random_subspaces(200, 8, 2, rng=0)
D = gs.random_subspaces(40, 8, 2, rng=1)
K_dd = gs.projection_kernel(D)
K_xd = gs.projection_kernel(X, D)

def code():
    return gs.sparse_codes(K_dd, K_xd, 0.1, norm2=2)

def works_in_child():
    signal.alarm(60)
    both = threading.Barrier(2, timeout=30)  # two threads at the same time
    gs.run_blocks(lambda block: both.wait(), 2, 1)
    codes = [code() for _ in range(5)]
    return all(np.array_equal(Y, want) for Y in codes) and np.array_equal(gs.glc(X, D, 3), local)

def fork():
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if works_in_child() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert status == 0, status

def busy():
    while not stop.is_set():
        code()

want = code()
local = gs.glc(X, D, 3)
fork()  # the threads of the parent rest
stop = threading.Event()
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(10):
    fork()
stop.set()
for thread in threads:
    thread.join()
assert np.array_equal(code(), want)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_fork_while_threads_run_codes_in_the_child_and_in_the_parent():
    run_python(FORK, NUMBA_NUM_THREADS="2")


def test_little_work_starts_no_thread(monkeypatch):
    """A small call is over before a thread would begin; a large one shares its work."""
    started = []
    start = _thread.start_new_thread

    def counted(*arguments):
        started.append(1)
        return start(*arguments)

    monkeypatch.setattr(_thread, "start_new_thread", counted)
    monkeypatch.setattr(gs, "thread_count", lambda: 2)
    D = gs.random_subspaces(50, 20, 2, rng=0)
    X = gs.random_subspaces(100, 20, 2, rng=1)
    gs.gsc(X, D, 0.1)
    gs.glc(X, D, 5)
    gs.classify(X, D, np.arange(50) % 5, n_neighbors=5)
    assert started == []
    D = gs.random_subspaces(400, 20, 2, rng=0)
    gs.gsc(X, D, 0.1)
    assert started == [1]


@given(st.integers(1, 2**40), st.integers(1, 2**40))
def test_a_block_is_a_quarter_of_a_millisecond_of_work(work, most):
    block = gs.block_of(work, most)
    assert 1 <= block <= most
    assert block == 1 or block * work <= 2**18
    assert block == most or (block + 1) * work > 2**18
