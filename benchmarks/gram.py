"""projection_kernel against the plain product of its two matrices, in three regimes.

Run: python -m benchmarks.gram

The product is np.matmul (BLAS with all threads) of (n p, d) by (d, N p), already in
that layout, into an array allocated before: unlike projection_kernel it neither packs
nor squares nor sums nor checks. Regimes: rested (each call after a pause in which the
threads of BLAS fall asleep), after a product (right after one of NumPy's, whose threads
still wait for work at full load), repeated (the same call again and again).
"""

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.gram")

import numpy as np

import grassmann_sc as gs
from benchmarks.common import extra_memory, figure, header, in_child, interleaved, timed

SIZES = [
    (1000, 3, 100, 0.45),
    (1000, 3, 1000, 0.75),
    (1000, 5, 400, 0.75),
    # n = N, p, d, least rate: checks, packing and squares count, a
    (500, 3, 10_000, 0.7),
]
# quarter of the time at d = 10,000, where they walk through 240 MB, and at d = 100 a
# process may keep a pace of 0.5, by where the system puts the second thread of BLAS
SECONDS = 0.7  # of a regime, about
FEWEST = 3  # repetitions
FLOAT32 = 1.25  # least speed over float64: at d = 100 squares and memory count too
AUTHORS = [100, 1000]  # d at which pairs are looped over
N_PAIRS = 100  # squared, of the authors' way
N_CHECKED = 20  # squared pairs, computed in extended precision
MEMORY = [(8000, 3, 100), (2000, 5, 400), (1000, 3, 10_000)]  # n = N, p, d


def least_seconds(regime, calls, repetitions):
    """Of each call, in turn where calls of one kind do not follow each other."""
    if regime == "rested":
        return interleaved(calls, repetitions)
    if regime == "after a product":
        A = np.ones((1500, 1500))
        return interleaved(calls, repetitions, 0, before=lambda: A @ A)
    seconds = []
    for call in calls:
        call()
        seconds += interleaved([call], repetitions, 0).tolist()
    return seconds


def blocks(product, p):
    """Sums of squares of the p x p blocks, a row of blocks at a time."""
    rows = product.reshape(-1, p, product.shape[1])
    return np.array([np.square(row.reshape(p, -1, p)).sum(axis=(0, 2)) for row in rows])


def calls_of(n, p, d, dtype):
    """projection_kernel(X, D) and (X), and the plain product; their accuracy."""
    X = gs.random_subspaces(n, d, p, 0).astype(dtype)
    D = gs.random_subspaces(n, d, p, 1).astype(dtype)
    A = np.ascontiguousarray(X.transpose(0, 2, 1)).reshape(n * p, d)
    B = np.ascontiguousarray(D.transpose(1, 0, 2)).reshape(d, n * p)
    out = np.empty((n * p, n * p), dtype)
    ours = gs.projection_kernel(X, D)
    gs.projection_kernel(X)
    theirs = blocks(np.matmul(A, B, out=out), p)
    few = slice(N_CHECKED)
    rows = A[: N_CHECKED * p].astype(np.longdouble)
    exact = blocks(rows @ B[:, : N_CHECKED * p].astype(np.longdouble), p)
    errors = [np.abs(K[few, few] - exact).max() / exact.max() for K in (ours, theirs)]
    print(
        f"  {np.dtype(dtype).name}: worst error relative to the largest entry: ours "
        f"{errors[0]:.1e}, matmul {errors[1]:.1e} ({N_CHECKED**2} pairs in extended precision); "
        f"apart by {np.abs(ours - theirs).max() / theirs.max():.1e}"
    )
    return [
        lambda: gs.projection_kernel(X, D),
        lambda: gs.projection_kernel(X),
        lambda: np.matmul(A, B, out=out),
    ]


def size(n, p, d, least):
    print(f"n = N = {n}, p = {p}, d = {d}")
    calls = calls_of(n, p, d, np.float64) + calls_of(n, p, d, np.float32)
    once = sum(timed(call)[0] for call in calls)
    repetitions = max(FEWEST, round(SECONDS / once))
    for name in ("rested", "after a product", "repeated"):
        seconds = np.reshape(least_seconds(name, calls, repetitions), (2, 3))
        slow = (
            seconds[0, 2] / seconds[0, 0] < least
            or seconds[0, 0] / seconds[1, 0] < FLOAT32
        )
        if slow:  # a neighbour, or ours: more calls tell
            more = least_seconds(name, calls, 2 * repetitions)
            seconds = np.minimum(seconds, np.reshape(more, (2, 3)))
        for dtype, (own, symmetric, blas) in zip(("float64", "float32"), seconds):
            print(
                f"  {name}, {dtype}, least of {repetitions} or more: ours {1e3 * own:.1f} ms "
                f"({2e-9 * (n * p) ** 2 * d / own:.1f} Gflop/s), matmul {1e3 * blas:.1f} ms, "
                f"symmetric {1e3 * symmetric:.1f} ms"
            )
        own, symmetric, blas = seconds[0]
        figure(
            f"{name}, float64: rate over that of matmul (1)", blas / own, f">= {least}"
        )
        figure(f"{name}, float64: symmetric over rectangular time (1)", symmetric / own)
        figure(
            f"{name}: float32 speed over float64 (1)",
            own / seconds[1, 0],
            f">= {FLOAT32}",
        )


def authors_way(n, p, d):
    """A small product a pair."""
    X = gs.random_subspaces(n, d, p, 0)
    D = gs.random_subspaces(n, d, p, 1)

    def loop():
        for i in range(N_PAIRS):
            for j in range(N_PAIRS):
                np.square(X[i].T @ D[j]).sum()

    seconds = timed(loop)[0] * (n / N_PAIRS) ** 2
    (own,) = interleaved([lambda: gs.projection_kernel(X, D)], FEWEST)
    print(
        f"the authors' way, a product a pair, n = N = {n}, p = {p}, d = {d}, {N_PAIRS**2} pairs "
        f"scaled up: {seconds:.2f} s"
    )
    figure("float64: speed over the authors' way (1)", seconds / own)


def memory(n, p, d):
    X = gs.random_subspaces(n, d, p, 0)
    D = gs.random_subspaces(n, d, p, 1)
    for columns in (D, None):
        gs.projection_kernel(X[:50], columns if columns is None else columns[:50])
        yield extra_memory(lambda: gs.projection_kernel(X, columns))


def main():
    header(
        "Gram matrix: projection_kernel(X, D) against np.matmul of (n p, d) x (d, N p)"
    )
    for n, p, d, least in SIZES:
        size(n, p, d, least)
    for d in AUTHORS:
        authors_way(1000, 3, d)
    print("Memory, in processes of their own")
    for n, p, d in MEMORY:
        for arguments, megabytes in zip(("X, D", "X"), in_child(memory, n, p, d)):
            figure(
                f"projection_kernel({arguments}), n = N = {n}, p = {p}, d = {d}: peak beyond "
                "input and output (MB)",
                megabytes,
                "<= 64",
            )


if __name__ == "__main__":
    main()
