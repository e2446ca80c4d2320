"""Dask in the campaign: codes, Gram matrices and learning of several chains, while
workers die.

What is computed must be what one machine computes, and, of learning by the same chains,
the same to the bit whoever dies.
"""

import functools
import os
import signal
import tempfile
import threading
import warnings

import numpy as np

import grassmann_sc as core
import oracles as plain
from benchmarks.campaign_calls import failing, hold, rng_of
from grassmann_sc import files, learn, scale

SAME = 1e-9  # of codes and Gram matrices
COSTS = 1e-8  # of sums in another order, relative
RESTART = 15  # seconds that a new worker may take


@functools.cache
def client():
    """Two workers of one thread, each of which may die often."""
    import dask

    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": 100,
            "distributed.worker.memory.terminate": False,
        }
    )
    return scale.local_client(2)


def dask(seed, case):
    """Learning, codes or a Gram matrix of one problem; in two cases of three a worker
    dies.
    """
    rng = rng_of("dask", seed, case)
    job = [learning, coding, learning, gram][case % 4]
    n_kills = int(rng.integers(0, 3))
    d = int(rng.integers(4, 12))
    p = int(rng.integers(1, 4))
    X = plain.clusters(rng, int(rng.integers(300, 3000)), d, p, 7)
    X = X.astype(rng.choice([np.float64, np.float64, np.float32]))
    held, how = held_somehow(rng, X)
    with (
        warnings.catch_warnings(),
        failing(f"{job.__name__} of {how}, {X.dtype} {X.shape}, {n_kills} kills"),
    ):
        warnings.simplefilter("ignore")
        kills = zip(rng.uniform(0, 0.6, n_kills), two_workers())
        job(
            rng,
            X,
            held,
            [
                threading.Timer(delay, os.kill, (process, signal.SIGKILL))
                for delay, process in kills
            ],
        )


def held_somehow(rng, X):
    """X in memory, in a file that is mapped, or as a Dask array of uneven blocks, one
    empty.
    """
    import dask.array

    how = ["memory", "map", "dask"][rng.integers(3)]
    if how == "map":
        path = tempfile.mkstemp(suffix=".npy", dir=".")[1]
        np.save(path, X)
        return np.load(path, mmap_mode="r"), how
    if how == "dask":
        cuts = np.sort(rng.integers(0, len(X), 4))
        sizes = np.diff([0, *cuts, len(X)]).tolist()
        return dask.array.from_array(
            X, chunks=(tuple(sizes), X.shape[1], X.shape[2])
        ), how
    return X, how


def two_workers():
    """The processes of both workers; of a new cluster if one does not come back."""
    try:
        client().wait_for_workers(2, timeout=RESTART)
    except TimeoutError:
        client().close()
        client.cache_clear()
    return list(client().run(os.getpid).values())


def under_fire(timers, job):
    """The result of a job while the timers run out."""
    for timer in timers:
        timer.start()
    try:
        return job()
    finally:
        for timer in timers:
            timer.cancel()
            timer.join()


def learning(rng, X, held, timers):
    """By some chains, undisturbed and under fire; on one machine; and the cost of the
    atoms.
    """
    n_atoms = int(rng.integers(1, 8))
    lam = 0.1 * X.shape[2]
    first = X[rng.choice(len(X), n_atoms, replace=False)]
    n_chains = int(rng.integers(1, 7))
    options = dict(init=first, n_iter=2, tol=0)

    def learn_on_workers():
        return scale.gdl(
            held, n_atoms, lam, n_chains=n_chains, client=client(), **options
        )

    whole = learn_on_workers()
    shot = under_fire(timers, learn_on_workers)
    with failing(f"{n_atoms} atoms, {n_chains} chains"):
        hold(
            np.array_equal(shot.atoms, whole.atoms)
            and np.array_equal(shot.costs, whole.costs),
            "a worker that dies changes atoms or costs",
        )
        tol = COSTS if X.dtype == np.float64 else 1e-4
        alone = learn.gdl(X, n_atoms, lam, **options)
        hold(
            np.allclose(whole.costs, alone.costs[::2], rtol=tol, atol=0),
            f"costs {whole.costs}, on one machine {alone.costs[::2]}",
            "costs are not those of one machine",
        )
        codes = core.gsc(X, whole.atoms, lam).astype(float)
        least = plain.explicit_cost(
            X.astype(float), whole.atoms.astype(float), codes, lam
        )
        hold(
            abs(whole.costs.min() - least) <= 10 * tol * least,
            f"least cost {whole.costs.min()}, but it is {least}",
            "another least cost",
        )


def coding(rng, X, held, timers):
    """Codes, in memory and in a folder of parts."""
    D = X[rng.choice(len(X), 8, replace=False)]
    how = [{"lam": 0.1 * X.shape[2]}, {"n_neighbors": 2}][rng.integers(2)]
    expected = core.gsc(X, D, **how) if "lam" in how else core.glc(X, D, **how)
    tol = SAME if X.dtype == np.float64 else 1e-3
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.join(folder, "codes")
        options = dict(client=client(), sparse_output=True, **how)
        n = under_fire(timers, lambda: scale.code(held, D, out=path, **options))
        written = files.load_codes(path).toarray()
    codes = scale.code(held, D, client=client(), **how)
    codes = codes.compute() if hasattr(codes, "compute") else codes
    hold(n == len(X), f"{n} rows are written, not {len(X)}", "rows are lost")
    for name, found in (("written", written), ("returned", codes)):
        hold(
            np.abs(found - expected).max() <= tol,
            f"codes that were {name} are others: by "
            f"{np.abs(found - expected).max():.2g}",
            "other codes",
        )


def gram(rng, X, held, timers):
    """||X_i^T X_j||_F^2 of some rows, which the rest must agree with by symmetry."""
    some = rng.choice(len(X), 20)
    K = under_fire(timers, lambda: computed(scale.gram(held, client=client())))
    expected = plain.each_pair(lambda a, b: np.square(a.T @ b).sum(), X[some], X)
    tol = SAME if X.dtype == np.float64 else 1e-4
    hold(np.abs(K[some] - expected).max() <= tol * X.shape[2], "another Gram matrix")
    hold(np.array_equal(K, K.T), "the Gram matrix is not symmetric")


def computed(array):
    return client().compute(array).result() if hasattr(array, "compute") else array
