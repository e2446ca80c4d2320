"""Coding of subspaces from end to end: gLC beside its Gram matrices, the paper's running times,
growth with n.

    python -m benchmarks.coding

There is no peer here: the comparisons are with the Gram matrices alone, with the paper and with
ourselves at another size.
"""

from examples.options import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.coding")

import numpy as np

import grassmann_sc as gs
from benchmarks.common import figure, header, interleaved, memory_of, relative_gap

N = 1000
P = 3  # atoms, dimension of the subspaces
GLC_D = 1000
NEIGHBORS = 20
PAPER = {100: 4.1, 1000: 16.9, 10_000: 106.4}  # d -> s
LAM = 0.3  # of the largest lam_max: supports of 20 to 200 of 1000 random atoms
GROWTH_D = 20
GROWTH = [1000, 10_000, 100_000]  # queries
REPETITIONS = 7
SETUP = """
import grassmann_sc as gs
X, D = gs.random_subspaces({n}, {d}, {p}, 0), gs.random_subspaces({N}, {d}, {p}, 1)
gs.gsc(X[:200], D, {lam}, sparse_output=True)
"""


def problem(n, d):
    return gs.random_subspaces(n, d, P, 0), gs.random_subspaces(N, d, P, 1)


def grams(X, D):
    return gs.projection_kernel(D), gs.projection_kernel(X, D)


def code_all(X, D, lam, n):
    """Sparse codes of all queries, n a call."""
    for i in range(0, len(X), n):
        gs.gsc(X[i : i + n], D, lam, sparse_output=True)


header("Coding of subspaces")
X, D = problem(N, GLC_D)
codes = gs.glc(X, D, NEIGHBORS)
gram, glc = interleaved([lambda: grams(X, D), lambda: gs.glc(X, D, NEIGHBORS)], REPETITIONS)
print(f"gLC, {NEIGHBORS} neighbours, n = N = {N}, p = {P}, d = {GLC_D}: {glc:.4f} s, its Gram "
      f"matrices {gram:.4f} s; largest |1^T y - 1| {np.abs(codes.sum(axis=1) - 1).max():.0e}")
figure("gLC over its Gram matrices (1)", glc / gram, "<= 1.25")

print(f"gSC from end to end, {N} queries, {N} atoms, p = {P}, lambda = {LAM} lam_max; the paper's: "
      "Gram matrices alone, quad-core i7, MATLAB")
for d, paper in PAPER.items():
    X, D = problem(N, d)
    K, k = grams(X, D)
    lam = LAM * gs.lam_max(k).max()
    codes = gs.gsc(X, D, lam)
    gram, gsc = interleaved([lambda: grams(X, D), lambda: gs.gsc(X, D, lam)], 3)
    figure(f"R^{d}: gsc (s); paper {paper} s; Gram matrices alone {gram:.3f} s", gsc)
    figure(f"R^{d}: the paper's time over ours (1); {np.count_nonzero(codes) / N:.0f} atoms a code"
           f", worst gap {relative_gap(K, k, codes, lam, P).max():.0e}", paper / gsc)

X, D = problem(GROWTH[-1], GROWTH_D)
lam = float(LAM * gs.lam_max(gs.projection_kernel(X[:N], D)).max())
code_all(X[:N], D, lam, N)
seconds = interleaved([lambda n=n: code_all(X, D, lam, n) for n in GROWTH], 3) / len(X)
print(f"Growth: the same {len(X)} queries on {N} atoms in R^{GROWTH_D}, sparse output, in calls of "
      "n; memory in processes of their own")
for n, query in zip(GROWTH, seconds):
    megabytes = memory_of(f"gs.gsc(X, D, {lam}, sparse_output=True)",
                          SETUP.format(n=n, d=GROWTH_D, p=P, N=N, lam=lam))
    figure(f"n = {n}: time a query (us)", 1e6 * query)
    figure(f"n = {n}: peak memory beyond input and output (MB); bounded by a constant", megabytes)
figure("slowest over fastest time a query (1)", seconds.max() / seconds.min(), "<= 1.15")
