"""Threads of BLAS in the campaign: with so many of them, of Numba and of the caller's
own, results are the same to rounding, and the caller's settings stay as they were.
"""

import functools
import threading
from types import SimpleNamespace

import numba
import numpy as np
import threadpoolctl

import grassmann_sc as core
from benchmarks import campaign_calls as calls
from benchmarks.campaign_calls import failing, hold, rng_of
from benchmarks.campaign_interrupts import affinity
from benchmarks.campaign_numbers import MIDDLING, middling
from grassmann_sc import learn, streams

SAME = {np.float64: 1e-7, np.float32: 1e-2}  # of atoms after steps; else far less
LARGE = {  # of so many numbers that BLAS starts threads, and Rayleigh-Ritz steps
    "gdl, large": lambda m: learn.gdl(m.X, 6, 0.2, n_iter=2, tol=0, rng=m.seed).costs[
        -1
    ],
    "update_atoms, large": lambda m: updated_costs(m),
    "OnlineGDL, large": lambda m: (
        streams.OnlineGDL(6, 0.2, rng=m.seed).partial_fit(m.X).cost
    ),
    "chordal_mean, large": lambda m: core.chordal_distance(
        core.chordal_mean(m.X)[None], m.X
    ),
    "projection_kernel, large": lambda m: core.projection_kernel(m.X),
    "orthonormalize, large": lambda m: core.projection_kernel(
        core.orthonormalize(m.X + 0.01)
    ),
}


def updated_costs(m):
    """What codes cost over atoms that were updated for them."""
    D = m.X[:6]
    codes = core.gsc(m.X, D, 0.1)
    D = learn.update_atoms(m.X, D, codes)
    K = core.projection_kernel(D)
    return learn.sample_losses(
        K, core.projection_kernel(m.X, D), codes, m.X.shape[2], 0.1
    )


@functools.cache
def large(seed):
    """A problem of 400 dimensions."""
    rng = np.random.default_rng(seed)
    X = core.random_subspaces(80, 400, 3, rng)
    return SimpleNamespace(X=X.astype([np.float64, np.float32][seed % 2]), seed=seed)


def blas(seed, case):
    """A call with other threads, from one or several of the caller's own."""
    rng = rng_of("blas", seed, case)
    every = {**MIDDLING, **LARGE}
    name = list(every)[case % len(every)]
    m = large(int(rng.integers(4))) if name in LARGE else middling(rng)
    call = functools.partial(every[name], m)
    of_blas, of_numba = (int(rng.integers(1, limit + 1)) for limit in (3, 2))
    n_callers = int(rng.integers(1, 4))
    numba.set_num_threads(1)
    with threadpoolctl.threadpool_limits(1, "blas"):
        expected = call()
    tol = SAME[m.X.dtype.type]
    what = (
        f"{name}, {m.X.dtype} {m.X.shape}, {of_blas} threads of BLAS, {of_numba} of Numba, "
        f"{n_callers} callers"
    )
    numba.set_num_threads(of_numba)
    with failing(what), threadpoolctl.threadpool_limits(of_blas, "blas"):
        before = settings()
        for result in called_at_once(call, n_callers):
            error = calls.worst_difference(result, expected, 1e-6)
            hold(
                error <= tol,
                f"differs by {error:.2g}",
                f"{name} depends on threads of BLAS",
            )
        hold(
            settings() == before,
            f"settings {settings()}, before {before}",
            "settings of the caller are changed",
        )


def called_at_once(call, n_callers):
    """Results of the call in so many threads that begin together."""
    start = threading.Barrier(n_callers)
    results = []

    def job():
        start.wait()
        try:
            results.append(call())
        except BaseException as error:
            results.append(error)

    threads = [threading.Thread(target=job) for _ in range(n_callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def settings():
    """Cores of this thread, threads of each BLAS, threads of Numba."""
    pools = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    return affinity(0), pools, numba.get_num_threads()
