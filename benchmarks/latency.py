"""What a user waits for: calls of 1 to 1000 queries over 50 to 1000 atoms.

    python -m benchmarks.latency [--quick] [--d D] [--p P]

Microseconds, on one thread and on two. The calls of a row are made in turn, each timed
right after a call of its own; what takes longer than LONG seconds is called three
times. NumPy is what a user would write: np.tensordot, whose squares np.einsum sums.
scikit-learn's SparseCoder (lasso_lars, lasso_cd) minimises the same cost on the
whitened form, A and x of variants.whitened, and is held against sparse_codes: both
begin where their input, A and x or both Gram matrices, is ready. Atoms and queries lie
about 20 centres, lambda is 0.3 of the largest lam_max.
"""

import warnings

from examples.common import of_these, parsed

options = parsed(
    __name__,
    of_these,
    "benchmarks.latency",
    {
        "--quick": dict(action="store_true", help="at most 100 queries, 300 atoms"),
        "--d": dict(
            type=int, default=100, help="dimension of the space (default: 100)"
        ),
        "--p": dict(type=int, default=3, help="of the subspaces (default: 3)"),
    },
)

import numpy as np

import grassmann_sc as gs
from benchmarks import common
from benchmarks.common import figure, header, in_child, in_turn, n_cores, peer, timed
from grassmann_sc import variants

N_ATOMS = [50, 300, 1000]
N_QUERIES = [1, 10, 100, 1000]
CENTRES = 20
NOISE = 0.7
N_CLASSES = 10
NEIGHBORS = 20
LAM = 0.3  # of the largest lam_max
SECONDS = 0.5  # of a row, about: 3 to 60 repetitions
LONG = 0.2
CALLS = ["kernel", "NumPy", "gsc", "glc", "classify", "codes", "LARS", "CD"]
# a peer, and what of ours does the same
PEERS = {"NumPy": "kernel", "LARS": "codes", "CD": "codes"}
COLUMN = {name: i for i, name in enumerate(CALLS)}


def product(X, D):
    """||X_i^T D_j||_F^2 (n, N), in NumPy alone."""
    blocks = np.tensordot(X, D, (1, 1))  # (n, p, N, q)
    return np.einsum("ipjq,ipjq->ij", blocks, blocks)


def calls_of(n, N, d, p, sklearn=None):
    """{name: a call} of n queries over N atoms; sklearn: sklearn.decomposition."""
    rng = np.random.default_rng(0)
    centres = gs.random_subspaces(CENTRES, d, p, rng)
    subspaces = common.about(centres, n + N, NOISE, rng)
    X = subspaces[:n]
    D = subspaces[n:]
    labels = np.arange(N) % N_CLASSES
    K_dd = gs.projection_kernel(D)
    K_xd = gs.projection_kernel(X, D)
    lam = LAM * gs.lam_max(K_xd).max()
    calls = {
        "kernel": lambda: gs.projection_kernel(X, D),
        "NumPy": lambda: product(X, D),
        "gsc": lambda: gs.gsc(X, D, lam),
        "glc": lambda: gs.glc(X, D, NEIGHBORS),
        "classify": lambda: gs.classify(X, D, labels, lam=lam),
        "codes": lambda: gs.sparse_codes(K_dd, K_xd, lam, norm2=p),
    }
    A, x = variants.whitened(K_dd, K_xd)
    for name, algorithm in {"LARS": "lasso_lars", "CD": "lasso_cd"}.items():
        if sklearn:
            coder = sklearn.SparseCoder(
                A.T,
                transform_algorithm=algorithm,
                transform_alpha=lam / 2,  # its cost is half of ours
                transform_max_iter=10_000,
            )
            calls[name] = lambda coder=coder: coder.transform(x)
    return calls


def row(calls):
    """Median and least seconds of all calls, and how far the peers' results lie off.

    NaN of what is missing.
    """
    results = {name: call() for name, call in calls.items()}
    once = {name: min(timed(call)[0] for _ in range(2)) for name, call in calls.items()}
    short = [name for name in calls if once[name] < LONG]
    repetitions = int(np.clip(SECONDS / 2 / sum(once[name] for name in short), 3, 60))
    seconds = in_turn([calls[name] for name in short], repetitions, again=True)
    medians = once | dict(zip(short, np.median(seconds, axis=0)))
    least = once | dict(zip(short, seconds.min(axis=0)))
    apart = {
        name: np.abs(results[name] - results[ours]).max()
        for name, ours in PEERS.items()
        if name in results
    }
    return [
        values.get(name, np.nan)
        for values, names in ((medians, CALLS), (least, CALLS), (apart, PEERS))
        for name in names
    ]


def rows(N, n_queries, d, p, with_sklearn):
    """The rows of N atoms, one after the other."""
    warnings.simplefilter("ignore")  # late convergence of a peer shows in its codes
    sklearn = peer("sklearn.decomposition") if with_sklearn else None
    return [value for n in n_queries for value in row(calls_of(n, N, d, p, sklearn))]


def table(threads, n_atoms, n_queries, d, p):
    """Print the times: (2, rows, calls), medians and least, and (rows, peers)."""
    print(f"{threads} thread{'s' * (threads > 1)}")
    print(
        f"{'atoms':>6s} {'queries':>7s}  {'':6s}" + "".join(f"{c:>10s}" for c in CALLS)
    )
    pools = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    with_sklearn = peer("sklearn.decomposition", "scikit-learn") is not None
    measured = []
    for N in n_atoms:
        values = in_child(
            rows,
            *(N, n_queries, d, p, with_sklearn),
            **dict.fromkeys(pools, str(threads)),
        )
        for n, line in zip(n_queries, np.reshape(values, (len(n_queries), -1))):
            median, least, _ = parts = np.split(line, [len(CALLS), 2 * len(CALLS)])
            measured.append(parts)
            for start, word, times in (
                (f"{N:6d} {n:7d}", "median", median),
                ("", "least", least),
            ):
                cells = "".join(f"{1e6 * time:10.0f}" for time in times)
                print(f"{start:14s}  {word:6s}{cells}", flush=True)
    medians, least, apart = map(np.array, zip(*measured))
    return np.stack([medians, least]), apart


def geometric_mean(ratios):
    return np.exp(np.log(ratios).mean())


def main(options):
    header(f"Latency, d = {options.d}, p = {options.p}: us a call")
    n_atoms = N_ATOMS[:2] if options.quick else N_ATOMS
    n_queries = N_QUERIES[:3] if options.quick else N_QUERIES
    both = {}
    for threads in (1, 2) if n_cores() > 1 else (1,):
        times, apart = table(threads, n_atoms, n_queries, options.d, options.p)
        both[threads] = times[:, :, [i for c, i in COLUMN.items() if c not in PEERS]]
        for i, (name, ours) in enumerate(PEERS.items()):
            ratios = times[0, :, COLUMN[name]] / times[0, :, COLUMN[ours]]
            label = f"{name} over {ours}: largest difference {apart[:, i].max():.0e}"
            figure(f"{label}; worst row (1), medians", ratios.min())
            figure(
                f"{name} over {ours}: geometric mean (1), medians",
                geometric_mean(ratios),
            )
    if len(both) == 2:
        ratios = both[2] / both[1]
        figure(
            "two threads over one, all of ours: geometric mean (1)",
            geometric_mean(ratios),
        )
        figure("worst of all, least times (1)", ratios[1].max(), "<= 1.1")


if __name__ == "__main__":
    main(options)
