"""The Gram matrix against the product of its two matrices and nothing else, and against a loop over pairs.

    python -m benchmarks.gram

The peer is np.matmul (BLAS with all threads) of (n p, d) by (d, N p), already in that layout, into an array allocated
before: it neither packs nor squares nor sums nor checks. projection_kernel is timed as users call it, checks included.
"""

import time

import numpy as np

import grassmann_sc as gs
from benchmarks.common import figure, header, interleaved, run_child

SIZES = [(1000, 3, 100, 15, ">= 0.70"), (1000, 3, 1000, 9, ">= 0.90"), (3000, 5, 400, 3, ">= 0.90"),
         (1000, 3, 10_000, 3, ">= 0.90")]  # n = N, p, d, repetitions, target
AUTHORS = [100, 1000]  # d at which pairs are looped over
N_PAIRS = 100  # squared, of the authors' way
N_CHECKED = 20  # squared pairs, computed in extended precision
MEMORY = (8000, 3, 100)  # n = N, p, d
CHILD = """
import grassmann_sc as gs
from benchmarks.common import extra_memory
X, D = (gs.random_subspaces({0}, {2}, {1}, seed) for seed in (0, 1))
gs.projection_kernel(X[:50], D[:50]), gs.projection_kernel(X[:50])
print(extra_memory(lambda: gs.projection_kernel({3})))
"""


def pairs(X, D):
    """The authors' way: a small product a pair."""
    K = np.empty((len(X), len(D)))
    for i in range(len(X)):
        for j in range(len(D)):
            K[i, j] = np.square(X[i].T @ D[j]).sum()
    return K


def blocks(product, p):
    """Sums of squares of the p x p blocks, a row of blocks at a time."""
    return np.array([np.square(row.reshape(p, -1, p)).sum(axis=(0, 2)) for row in product.reshape(-1, p, product.shape[1])])


header("Gram matrix: projection_kernel(X, D) against np.matmul of (n p, d) x (d, N p)")
for n, p, d, repetitions, target in SIZES:
    calls, X64 = [], [gs.random_subspaces(n, d, p, seed) for seed in (0, 1)]
    accuracy = []
    for dtype in (np.float64, np.float32):
        X, D = (A.astype(dtype) for A in X64)
        A = np.ascontiguousarray(X.transpose(0, 2, 1)).reshape(n * p, d)
        B = np.ascontiguousarray(D.transpose(1, 0, 2)).reshape(d, n * p)
        out = np.empty((n * p, n * p), dtype)
        calls += [lambda X=X, D=D: gs.projection_kernel(X, D), lambda X=X: gs.projection_kernel(X),
                  lambda A=A, B=B, out=out: np.matmul(A, B, out=out)]
        ours, _, _ = (call() for call in calls[-3:])
        theirs, few = blocks(out, p), slice(N_CHECKED)
        extended = A[:N_CHECKED * p].astype(np.longdouble) @ B[:, :N_CHECKED * p].astype(np.longdouble)
        exact = blocks(extended, p)
        accuracy.append([np.abs(ours - theirs).max() / theirs.max(), *(np.abs(K[few, few] - exact).max() / exact.max()
                                                                       for K in (ours, theirs))])
    seconds = interleaved(calls, repetitions).reshape(2, 3)
    print(f"n = N = {n}, p = {p}, d = {d}")
    for name, (own, symmetric, blas), (apart, own_error, blas_error) in zip(("float64", "float32"), seconds, accuracy):
        print(f"  {name}: ours {own:.4f} s ({2e-9 * (n * p)**2 * d / own:.1f} Gflop/s), matmul {blas:.4f} s "
              f"({2e-9 * (n * p)**2 * d / blas:.1f} Gflop/s), symmetric {symmetric:.4f} s")
        print(f"  {name}: worst error relative to the largest entry: ours {own_error:.1e}, matmul {blas_error:.1e} "
              f"({N_CHECKED**2} pairs in extended precision); apart by {apart:.1e}")
        figure(f"{name}: rate, of matmul's (1)", blas / own, target)
        figure(f"{name}: symmetric over rectangular time (1)", symmetric / own, "<= 0.60")
    figure("float32 speed over float64 (1)", seconds[0, 0] / seconds[1, 0], ">= 1.8" if d >= 1000 else "")
    if n == 1000 and d in AUTHORS:
        X, D = X64
        start = time.perf_counter()
        looped = pairs(X[:N_PAIRS], D[:N_PAIRS])
        loop = (time.perf_counter() - start) * (n / N_PAIRS)**2
        own = gs.projection_kernel(X[:N_PAIRS], D[:N_PAIRS])
        print(f"  the authors' way, a product a pair, {N_PAIRS**2} pairs scaled up to n N: {loop:.2f} s; apart from ours by "
              f"{np.abs(own - looped).max() / own.max():.1e}")
        figure("float64: speed over the authors' way (1)", loop / seconds[0, 0])

n, p, d = MEMORY
print(f"n = N = {n}, p = {p}, d = {d}, in processes of their own")
for arguments in ("X, D", "X"):
    _, text = run_child(CHILD.format(n, p, d, arguments))
    figure(f"projection_kernel({arguments}): peak memory beyond input and output (MB)", float(text), "<= 64")
