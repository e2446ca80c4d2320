"""From one machine to many: how cost and memory grow with the data.

    python -m benchmarks.scale [--sizes 1000 10000 100000 1000000] [--kills 10]
    [--folder DIR]
                               [--parts growth product merging dask plan dask_kills]

growth: seconds a subspace and memory; product: coding against its matrix product;
merging: cost after merging learners; dask: workers of Dask, and a fit of the model of a
round's time that docs/guide/large.rst gives; plan: its extrapolation; dask_kills:
killed workers. DIR takes files of 2.4 kB a subspace, and less for its codes; by default
a temporary folder. The picture of seconds and memory a subspace is out/scale.png.
"""

import functools
import os
import signal
import tempfile
import threading
import warnings
from pathlib import Path

from examples.common import of_these, parsed

PARTS = ["growth", "product", "merging", "dask", "plan", "dask_kills"]
options = parsed(
    __name__,
    of_these,
    "benchmarks.scale",
    {
        "--sizes": dict(
            type=int,
            nargs="+",
            default=[10**3, 10**4, 10**5, 10**6],
            help="numbers of subspaces (default: up to a million)",
        ),
        "--kills": dict(
            type=int, default=10, help="number of kills of Dask workers (default: 10)"
        ),
        "--folder": dict(type=Path, help="folder of temporary files"),
        "--parts": dict(
            nargs="+",
            choices=PARTS,
            default=PARTS,
            help="one or several (default: all)",
        ),
    },
)

import numpy as np

import grassmann_sc as gs
from benchmarks import common
from benchmarks.common import figure, header, in_child, interleaved, peer, timed
from grassmann_sc.large import scale, streams
from grassmann_sc.large.codes import rows_in_block, write_codes, write_part

D = 100
P = 3
N = 500
SHARE = 0.1  # lambda as a share of the median lam_max
N_NEIGHBORS = 5
BATCH = 256
NOISE = 0.95  # codes of three to four atoms
DRAWN = 4096  # subspaces drawn at a time
FEW = 10**4  # subspaces with which a larger file is compared
PLAN = {"n": 10**8, "workers": 64, "N": 1000, "d": 400, "p": 4}
BANDWIDTH = 1e9  # bytes a second between machines, assumed: 10 gigabit a second
ONE_THREAD = dict.fromkeys(
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1"
)


@functools.cache
def atoms():
    return gs.random_subspaces(N, D, P, 1)


@functools.cache
def lam():
    """SHARE of the median lam_max."""
    X = draw(400, np.random.default_rng(2))
    return SHARE * float(np.median(gs.lam_max(gs.projection_kernel(X, atoms()))))


def draw(n, rng):
    """n subspaces about the atoms, at principal angles of some 44 degrees."""
    return common.about(atoms(), n, NOISE, rng)


def write_subspaces(path, n):
    """A file of n subspaces, written piece by piece."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(path, "w+", float, (n, D, P))
    for i in range(0, n, DRAWN):
        X[i : i + DRAWN] = draw(len(X[i : i + DRAWN]), rng)
    X.flush()
    return np.load(path, mmap_mode="r")


JOBS = {  # functions of subspaces in a file, and where codes go
    "gsc": lambda X, out: write_codes(
        out, X, atoms(), lam(), sparse_output=True, replace=True
    ),
    "glc": lambda X, out: write_codes(
        out, X, atoms(), n_neighbors=N_NEIGHBORS, sparse_output=True, replace=True
    ),
    "OnlineGDL": lambda X, out: streams.OnlineGDL(N, lam(), init=atoms(), rng=0).fit(
        X, BATCH
    ),
}


def measured(what, path, out):
    """(seconds a subspace of a job, the same for FEW of them, peak memory in MB).

    The few are timed before and after the job, if there are more. Memory is the peak of
    anonymous memory beyond that at the start. Times are means: the best of many short
    runs is the machine at its best, which a single long run never is.
    """
    X = np.load(path, mmap_mode="r")
    JOBS[what](X[:2048], out)  # compiles, and fills buffers
    bytes_seen = [common.status("RssAnon")]
    ended = threading.Event()

    def watch():
        while not ended.wait(0.005):
            bytes_seen.append(common.status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    around = [X[:FEW]] * 2 if len(X) > FEW else []
    rounds = []
    while len(rounds) < 3 and np.sum(rounds) < 4:
        rounds.append(
            [timed(JOBS[what], part, out)[0] for part in (*around, X, *around)]
        )
    ended.set()
    watcher.join()
    seconds = np.mean(rounds, axis=0)
    whole = seconds[len(around)]
    few = (
        (seconds.sum() - whole) / (2 * FEW * len(around)) if around else whole / len(X)
    )
    return whole / len(X), few, (max(bytes_seen) - bytes_seen[0]) / 2**20


def growth(sizes, folder):
    """Seconds a subspace, and memory, as the file grows."""
    print(
        f"-- from a memmap, G({P}, {D}), {N} atoms, lambda = {SHARE} lam_max, {N_NEIGHBORS} "
        "neighbours"
    )
    table = {what: [] for what in JOBS}
    for n in sizes:
        path = folder / "X.npy"
        write_subspaces(path, n)
        for what in JOBS:
            seconds, of_few, megabytes = in_child(
                measured, what, path, folder / "codes"
            )
            table[what].append((n, 1e6 * seconds, megabytes))
            each = f"{what}, {n:,} subspaces"
            figure(f"{each}: microseconds a subspace", 1e6 * seconds)
            figure(f"{each}: MB of peak anonymous memory beyond the start", megabytes)
            if n > FEW:
                figure(
                    f"{each}: seconds a subspace over the same for {FEW:,} (1)",
                    seconds / of_few,
                    "<= 1.15",
                )
        path.unlink()
    n, online, _ = table["OnlineGDL"][-1]
    if n >= 10**5:
        figure(
            f"OnlineGDL over gsc, {n:,} subspaces (1)",
            online / table["gsc"][-1][1],
            "<= 5",
        )
    draw_growth(table)


def draw_growth(table):
    import matplotlib.pyplot as plt

    from examples.common import save_picture

    _, (above, below) = plt.subplots(
        2, 1, figsize=(6, 6), sharex=True, layout="constrained"
    )
    for what, rows in table.items():
        n, us, megabytes = zip(*rows)
        above.plot(n, us, "o-", label=what)
        below.plot(n, megabytes, "o-", label=what)
    above.set(
        xscale="log", yscale="log", ylabel="microseconds a subspace", ylim=(1, 2000)
    )
    below.set(
        xlabel="subspaces in the file",
        ylabel="peak anonymous memory, MB",
        ylim=(0, None),
    )
    above.legend()
    print(f"  picture: {save_picture(common.ROOT / 'out' / 'scale', above)}")


def over_product(n, folder):
    """Time coding end to end, its steps, and its product with the atoms alone."""
    print(
        f"-- coding {n:,} subspaces from a file into a file, against the product with the atoms"
    )
    X = write_subspaces(folder / "X.npy", n)
    A = atoms()
    rows = min(n, rows_in_block(X, N))
    left = np.ascontiguousarray(X[:rows].swapaxes(1, 2)).reshape(-1, D)
    right = np.ascontiguousarray(A.swapaxes(1, 2)).reshape(-1, D)
    product = np.empty((len(left), len(right)))
    K = gs.bases_gram(A)
    block = np.array(X[:rows])
    k = gs.bases_gram(block, A)
    code = gs.sparse_coding(k.shape, lam(), sparse_output=True)
    codes = code(K, k, P)
    steps = {
        "product with the atoms alone": lambda: np.matmul(left, right.T, out=product),
        "reading": lambda: np.array(X[:rows]),
        "checks": lambda: gs.check_bases(block, "X"),
        "Gram matrix (with its product)": lambda: gs.bases_gram(block, A),
        "lassos": lambda: code(K, k, P),
        "writing": lambda: write_part(folder, 0, codes, "0 0 0"),
    }
    for call in steps.values():
        call()
    seconds = dict(zip(steps, interleaved(steps.values(), 5, 0)))
    whole, _ = timed(JOBS["gsc"], X, folder / "codes")
    for step, time_of in seconds.items():
        figure(f"{step}: microseconds a subspace", 1e6 * time_of / rows)
    figure("end to end: microseconds a subspace", 1e6 * whole / n)
    gemm = seconds["product with the atoms alone"] / rows
    figure("rate of coding over the rate of the product alone", gemm / (whole / n))


def merging(folder):
    """Compare merge(learner(A), learner(B)) with a learner of both, same atoms."""
    print("-- merging")
    X = np.array(write_subspaces(folder / "X.npy", 4000))
    start = streams.OnlineGDL(N, lam(), init=X[:N]).collect(X[:N]).fork()
    both = start.fork().collect(X)
    A = start.fork().collect(X[:2000])
    B = start.fork().collect(X[2000:])
    seconds, merged = timed(A.merge, B)
    figure("seconds to merge", seconds)
    cost, merged_cost = (
        common.cost(X, learner.update().atoms, lam()) for learner in (both, merged)
    )
    figure(
        "cost after merging over that of one learner, less 1",
        abs(merged_cost / cost - 1),
        "<=1e-3",
    )


def dask_workers(n, folder):
    """Time one and two workers, and the plain functions, on the same file."""
    print(f"-- Dask on {n:,} subspaces: workers of one thread")
    X = write_subspaces(folder / "X.npy", n)
    plain, _ = timed(JOBS["gsc"], X, folder / "codes")
    learner = streams.OnlineGDL(N, lam(), init=atoms())
    collected, _ = timed(lambda: learner.collect(X[:]).update())
    figure(
        "plain coding, this process's threads: microseconds a subspace", 1e6 * plain / n
    )
    figure("plain statistics and update: microseconds a subspace", 1e6 * collected / n)
    seconds = {}
    rounds = []  # (subspaces, workers, seconds)
    for workers in (1, 2):
        with scale.local_client(workers) as client:
            for _ in range(2):  # the first compiles
                coding, _ = timed(
                    lambda: scale.code(
                        X,
                        atoms(),
                        lam(),
                        client=client,
                        out=folder / "codes",
                        sparse_output=True,
                        replace=True,
                    )
                )
            for some in (n, n // 4, n // 2, n):  # the first compiles
                learning, _ = timed(
                    lambda: scale.gdl(
                        X[:some], N, lam(), init=atoms(), n_iter=0, client=client
                    )
                )
                rounds.append((some, workers, learning))
            rounds.pop(-4)
            seconds[workers] = np.array([coding, learning])
            figure(
                f"{workers} workers, coding: microseconds a subspace", 1e6 * coding / n
            )
            figure(
                f"{workers} workers, a round: microseconds a subspace",
                1e6 * learning / n,
            )
    speed_up = seconds[1] / seconds[2]
    figure("coding: speed of two workers over one", speed_up[0])
    figure("a round: speed of two workers over one", speed_up[1])
    fitted_round(rounds)
    moved = state_bytes(streams.OnlineGDL(N, lam(), init=atoms()).collect(X[:N]))
    figure(
        "network: MB that a worker receives in a round (the atoms), at least",
        atoms().nbytes / 2**20,
    )
    figure(
        "network: MB that a chain of blocks sends in a round (statistics)",
        moved / 2**20,
    )


def fitted_round(rounds):
    """Fit the model n t / W + ceil(log2 W) m + u to the times of the rounds."""
    n, workers, seconds = map(np.array, zip(*rounds))
    model = np.stack([n / workers, np.log2(workers), np.ones(len(n))], axis=1)
    (t, m, u), *_ = np.linalg.lstsq(model / seconds[:, None], np.ones(len(n)))
    figure(
        "fitted t, coding and statistics on one core: microseconds a subspace", 1e6 * t
    )
    figure("fitted m, for a second worker: seconds", m)
    figure("fitted u, for the rest of a round: seconds", u)
    off = np.abs(model @ [t, m, u] / seconds - 1).max()
    figure(f"largest deviation of {len(n)} rounds from the model", off)


def plan():
    """Print the model's times for PLAN, from t, m and u measured on one core."""
    n, workers, N_, d, p = PLAN.values()
    print(
        f"-- extrapolated: {n:.0e} subspaces of R^{d} (p = {p}), {N_} atoms, {workers} workers"
    )
    t, merge, u, moved = in_child(measure_plan, **ONE_THREAD)
    m = merge + moved / BANDWIDTH
    depth = np.ceil(np.log2(workers))
    figure("t, coding and statistics on one core: microseconds a subspace", 1e6 * t)
    figure("a merge on one core: seconds", merge)
    figure("u, an update: seconds", u)
    figure("network: MB that a worker sends, and receives, in a round", moved / 2**20)
    figure(f"m, a merge and its transfer at {BANDWIDTH / 1e9:g} GB/s: seconds", m)
    figure("a round on all workers: minutes", (n * t / workers + depth * m + u) / 60)
    figure("of which merging and update: seconds", depth * m + u)


def measure_plan():
    """t, the seconds of a merge and of an update, and the bytes of a learner."""
    _, _, N_, d, p = PLAN.values()
    A = gs.random_subspaces(N_, d, p, 1)
    X = common.about(A, DRAWN, NOISE, np.random.default_rng(0))
    empty = streams.OnlineGDL(N_, lam(), init=A).collect(X[:N_]).fork()
    first = empty.fork().collect(X[: DRAWN // 4])  # its statistics have full size
    second = empty.fork()
    calls = (
        lambda: [second.collect(X[i : i + 1024]) for i in range(0, DRAWN, 1024)],
        lambda: first.merge(second),
        second.update,
    )
    collecting, *seconds = (timed(call)[0] for call in calls)
    return collecting / DRAWN, *seconds, state_bytes(first)


def state_bytes(learner):
    return sum(array.nbytes for array in learner.state().values())


def dask_kills(count, folder):
    """Kill one of two workers at random moments while atoms are learned or used."""
    print(f"-- {count} kills of Dask workers")
    X = write_subspaces(folder / "X.npy", 20000)
    first = np.array(X[:40])
    options = dict(init=first, n_iter=2, tol=0, n_chains=4)
    jobs = [
        lambda client: scale.gdl(X, 40, lam(), client=client, **options).atoms,
        lambda client: scale.code(X, first, lam(), client=client),
    ]
    whole = []  # (seconds, result) of each job
    for job in jobs:
        with scale.local_client(2) as client:
            whole.append(timed(job, client))
    rng = np.random.default_rng(0)
    amid = 0
    equal = 0
    for i in range(count):
        job = jobs[i % len(jobs)]
        seconds, expected = whole[i % len(jobs)]
        with scale.local_client(2) as client:
            pid = rng.choice(list(client.run(os.getpid).values()))
            delay = rng.uniform(0.1, 0.9) * seconds
            kill = threading.Timer(delay, os.kill, (pid, signal.SIGKILL))
            kill.start()
            equal += np.array_equal(job(client), expected)
            amid += not kill.is_alive()
            kill.cancel()
    figure(f"of {count} kills: before the end of the run", amid)
    figure(f"of {count} runs: equal results", equal, f">={count}")


def main(options):
    largest = max(options.sizes)
    jobs = [
        lambda folder: growth(options.sizes, folder),
        lambda folder: over_product(largest, folder),
        merging,
        lambda folder: dask_workers(min(largest, 10**5), folder),
        lambda folder: plan(),
        lambda folder: dask_kills(options.kills, folder),
    ]
    warnings.filterwarnings("ignore", ".*large graph")
    header("Streams, files of codes, and Dask")
    for part, job in zip(PARTS, jobs):
        if part in options.parts and (
            not part.startswith("dask") or peer("distributed", "Dask")
        ):
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                job(Path(folder))


if __name__ == "__main__":
    main(options)
