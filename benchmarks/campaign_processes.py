"""Processes of the campaign: SIGKILL while a checkpoint is written, Ctrl-C at any moment, forks
while other threads compute."""

import faulthandler
import functools
import gc
import glob
import os
import signal
import threading
import time
import warnings

import numpy as np

import grassmann_sc as core
from benchmarks.campaign_calls import Failed, hold, rng_of, worst_difference
from benchmarks.campaign_numbers import MIDDLING, middling
from grassmann_sc import learn

CHILD_LIMIT = 20  # seconds that a forked child may take
SOON = 0.04  # seconds of a call that is interrupted
RAISES = 3  # exit status of a forked child
DIFFERS = 4


def affinity():
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None


# ------------------------------------------------------------------------------------- SIGKILL

LEARNING = [  # of which each has a checkpoint
    dict(lam=0.2, n_iter=15, tol=0, rng=1),
    dict(n_neighbors=3, n_iter=15, tol=0, rng=2, unused="random"),
    dict(lam=0.3, lam_scale="max", positive=True, n_iter=15, tol=0, rng=3, init="kmeans"),
]


@functools.cache
def uninterrupted(which):
    """(samples, result, seconds) of learning that is left alone, with a checkpoint beside it."""
    X = core.random_subspaces(40, 12, 2, which)
    X = X.astype(np.float32) if which == 1 else X
    learn.gdl(X, 6, **LEARNING[which])  # compiles
    start = time.perf_counter()
    result = learn.gdl(X, 6, **LEARNING[which], checkpoint="whole.npz")
    return X, result, time.perf_counter() - start


def kills(seed, case):
    """A child that learns is killed; its checkpoint resumes to the bits of the whole run."""
    rng = rng_of("kills", seed, case)
    which = case % len(LEARNING)
    X, expected, seconds = uninterrupted(which)
    options = LEARNING[which]
    n_kills = int(rng.integers(1, 4))  # the resumed runs are killed too
    for delay in rng.uniform(0, 1.5 * seconds, n_kills):
        child = os.fork()
        if child == 0:
            run_and_exit(lambda: go_on(X, options))
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    try:
        result = go_on(X, options)
        strays = glob.glob("state.npz?*")
        what = f"options {options}, {n_kills} kills"
        if worst_difference(result, expected) != 0 or result.stopped != expected.stopped:
            raise Failed(f"resumed to other bits: {what}: by "
                         f"{worst_difference(result, expected):.2g}")
        hold(not strays, f"stray files: {what}: {strays}")
    finally:
        for name in glob.glob("state.npz*"):
            os.unlink(name)


def go_on(X, options):
    """Learn from where the checkpoint is, or from the start if there is none yet."""
    resume = "state.npz" if os.path.exists("state.npz") else None
    return learn.gdl(X, 6, **options, checkpoint="state.npz", resume=resume)


def run_and_exit(job):
    """In a forked child: status 0 if the job does not return False; its place, if it hangs, in a
    file."""
    faulthandler.dump_traceback_later(CHILD_LIMIT, exit=True, file=open("hangs.txt", "w"))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(CHILD_LIMIT + 5)
    status = RAISES
    try:
        status = 0 if job() is not False else DIFFERS
    finally:
        os._exit(status)


# -------------------------------------------------------------------------------------- Ctrl-C


@functools.cache
def interruptible():
    """{name: (call, its seconds, its result)} of calls that are soon done."""
    m = middling(np.random.default_rng(0))
    found = {}
    for name, function in MIDDLING.items():
        call = functools.partial(function, m)
        call()  # compiles
        start = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - start
        if seconds < SOON:
            found[name] = call, seconds, result
    return found


def interrupts(seed, case):
    """A Ctrl-C at some moment of a call; then cores, threads and results are as ever."""
    rng = rng_of("interrupts", seed, case)
    name = list(interruptible())[case % len(interruptible())]
    call, seconds, expected = interruptible()[name]
    cores = affinity()
    delay = max(1e-6, float(rng.uniform(0, 1.2 * seconds)))
    what = f"{name}, interrupted after {1000 * delay:.2f} of {1000 * seconds:.2f} ms"
    error = interrupted(call, delay)
    if error is not None:
        raise Failed(f"{type(error).__name__} in place of KeyboardInterrupt: {what}: {error}",
                     f"{name}: {type(error).__name__} in place of KeyboardInterrupt")
    hold(affinity() == cores, f"other cores: {what}: {affinity()} in place of {cores}")
    hold(worst_difference(call(), expected) == 0, f"other results after it: {what}")
    check_pool(what)


def interrupted(call, delay):
    """Run the call with a SIGINT after so many seconds; what else than KeyboardInterrupt it raised.

    The interrupt may come when the call is done, anywhere in here.
    """
    come = threading.Event()

    def ring(number, frame):
        come.set()
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGALRM, ring)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    error = None
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, delay)
            call()
        except KeyboardInterrupt:
            pass
        except BaseException as other:
            error = other
        while not come.is_set():
            time.sleep(1e-3)
    except KeyboardInterrupt:
        pass
    return error


def check_pool(what):
    """Do two blocks run at the same time, if two threads are allowed?"""
    if core.thread_count() < 2:
        return
    meeting = threading.Barrier(2)
    try:
        core.run_blocks(lambda block: meeting.wait(5), 2, 1)
    except threading.BrokenBarrierError:
        raise Failed(f"the threads of the pool are stuck: {what}") from None


# --------------------------------------------------------------------------------------- forks


@functools.cache
def busy_threads():
    """Threads that compute for ever, without BLAS: OpenBLAS forks with locks taken."""
    m = middling(np.random.default_rng(1))
    K = core.projection_kernel(m.D)
    k = core.projection_kernel(m.X, m.D)
    jobs = [lambda: core.sparse_codes(K, k, 0.1 * m.p, norm2=m.p),
            lambda: core.locality_codes(K, k, 5, norm2=m.p)]

    def work(job):
        with warnings.catch_warnings():
            while True:
                job()

    for job in jobs:
        job()  # compiles
        threading.Thread(target=work, args=(job,), daemon=True).start()
    return jobs


@functools.cache
def small_problem():
    """Calls for the child, and what they give."""
    m = middling(np.random.default_rng(2))
    calls = [functools.partial(MIDDLING[name], m)
             for name in ("gsc", "glc", "chordal_distance", "from_sets", "kglc", "gdl")]
    return [(call, call()) for call in calls]


def forks(seed, case):
    """A child, forked while other threads compute, codes a small problem and exits."""
    rng = rng_of("forks", seed, case)
    number = case % len(small_problem())
    call, expected = small_problem()[number]
    busy_threads()
    gc.collect(0)
    time.sleep(float(rng.uniform(0, 0.01)))
    child = os.fork()
    if child == 0:
        run_and_exit(lambda: worst_difference(call(), expected) == 0)
    _, status = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(status)
    told = {-signal.SIGALRM: "hangs", 1: "hangs", RAISES: "raises", DIFFERS: "gives other numbers"}
    if status != 0:
        with open("hangs.txt") as file:
            raise Failed(f"forked child {told.get(status, status)}: call {number} of "
                         f"small_problem: {file.read()[:3000]}")
