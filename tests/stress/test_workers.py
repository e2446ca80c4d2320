"""Dask: codes, Gram matrices and learning of several chains while workers die. What is
computed must be what one machine computes, and, of learning by the same chains, the same
to the bit whoever dies.
"""

import functools
import os
import shutil
import signal
import threading

import dask
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
import oracles
from arrays import mapped
from grassmann_sc import learn
from grassmann_sc.large import scale
from grassmann_sc.large.codes import load_codes

SAME = {np.float64: 1e-9, np.float32: 1e-3}  # of codes and Gram matrices
COSTS = {np.float64: 1e-8, np.float32: 1e-4}  # of sums in another order, relative
OFTEN = {
    "distributed.scheduler.allowed-failures": 100,
    "distributed.worker.memory.terminate": False,
}


@pytest.fixture(scope="module")
def clients():
    """A function that gives a client of two workers of one thread, of a new cluster if
    one of them does not come back.
    """
    made = []

    def alive():
        try:
            made[-1].wait_for_workers(2, timeout=15)
        except (IndexError, TimeoutError):
            made.append(scale.local_client(2))
        return made[-1]

    with dask.config.set(OFTEN):
        yield alive
        for client in made:
            client.close()


HOLDERS = {  # in memory, in a file, and in uneven blocks of Dask, one of them empty
    "memory": lambda X, cuts: X,
    "file": lambda X, cuts: mapped(X),
    "dask": lambda X, cuts: dask.array.from_array(
        X, chunks=(tuple(np.diff([0, *sorted(cuts), len(X)]).tolist()), *X.shape[1:])
    ),
}


@pytest.mark.parametrize("job", ["learning", "sparse", "local", "gram"])
@settings(max_examples=6)
@given(
    data=st.data(),
    seed=oracles.seeds,
    dtype=oracles.dtypes,
    held=st.sampled_from([*HOLDERS]),
    delays=st.lists(st.floats(0, 0.6), max_size=2),
)
def test_what_workers_compute_is_what_one_machine_does(
    job, data, seed, dtype, held, delays, clients
):
    rng = np.random.default_rng(seed)
    n, d, p = rng.integers([300, 4, 1], [3000, 12, 4]).tolist()
    X = oracles.clusters(rng, n, d, p, 7).astype(dtype)
    cuts = data.draw(st.lists(st.integers(0, n), min_size=4, max_size=4))
    given_X = HOLDERS[held](X, [*cuts, cuts[0]])
    client = clients()
    processes = [*client.run(os.getpid).values()]

    def while_workers_die(work):
        timers = [
            threading.Timer(delay, os.kill, (process, signal.SIGKILL))
            for delay, process in zip(delays, processes)
        ]
        for timer in timers:
            timer.start()
        try:
            result = work()
            return result.compute() if hasattr(result, "compute") else result
        finally:
            for timer in timers:
                timer.cancel()
                timer.join()

    JOBS[job](rng, X, given_X, client, while_workers_die)


def check_learning(rng, X, held, client, while_workers_die):
    """By some chains, undisturbed and disturbed; on one machine; and the cost of the
    atoms.
    """
    n_atoms, n_chains = rng.integers(1, 8, 2).tolist()
    lam = 0.1 * X.shape[2]
    options = dict(init=X[rng.choice(len(X), n_atoms, replace=False)], n_iter=2, tol=0)
    many = dict(n_chains=n_chains, client=client)
    work = functools.partial(scale.gdl, held, n_atoms, lam, **many, **options)
    whole = work()
    disturbed = while_workers_die(work)
    assert np.array_equal(disturbed.atoms, whole.atoms)
    assert np.array_equal(disturbed.costs, whole.costs)
    tol = COSTS[X.dtype.type]
    alone = learn.gdl(X, n_atoms, lam, **options)
    assert np.allclose(whole.costs, alone.costs[::2], rtol=tol, atol=0)
    X, D = (A.astype(float) for A in (X, whole.atoms))
    least = oracles.explicit_cost(X, D, core.gsc(X, D, lam), lam)
    assert abs(whole.costs.min() - least) <= 10 * tol * least


def check_codes(rng, X, held, client, while_workers_die, coding, how):
    """In memory and in a folder of parts."""
    D = X[rng.choice(len(X), 8, replace=False)]
    expected = coding(X, D, *how.values())
    work = functools.partial(scale.code, held, D, client=client, **how)
    shutil.rmtree("codes", ignore_errors=True)
    rows = while_workers_die(lambda: work(out="codes", sparse_output=True))
    assert rows == len(X)
    for codes in (load_codes("codes").toarray(), while_workers_die(work)):
        assert np.abs(codes - expected).max() <= SAME[X.dtype.type]


def check_gram(rng, X, held, client, while_workers_die):
    """||X_i^T X_j||_F^2 of some rows, which the rest must agree with by symmetry."""
    some = rng.choice(len(X), 20)
    K = while_workers_die(lambda: scale.gram(held, client=client))
    expected = oracles.each_pair(lambda a, b: np.square(a.T @ b).sum(), X[some], X)
    assert np.abs(K[some] - expected).max() <= SAME[X.dtype.type] * X.shape[2]
    assert np.array_equal(K, K.T)


JOBS = {
    "learning": check_learning,
    "sparse": functools.partial(check_codes, coding=core.gsc, how={"lam": 0.2}),
    "local": functools.partial(check_codes, coding=core.glc, how={"n_neighbors": 2}),
    "gram": check_gram,
}
