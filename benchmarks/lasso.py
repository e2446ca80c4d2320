"""Sparse codes against SPAMS (homotopy, C++) and scikit-learn, and where the time goes.

    python -m benchmarks.lasso [--data FILE.npz[:p]] ...

FILE.npz: frames, offset, train0 (the atoms), test0 (the queries); see read_problem. Ratios are the peer's time over ours:
above 1 we are faster. Gaps are duality gaps over ||X^||^2, the worst of all queries, computed here from the codes.
SPAMS gets both Gram matrices, in Fortran order, all threads and no bound on the support. Its sparse matrix is compared with
ours (sparse_output=True); ours dense is timed beside it. celer and skglm are left out: they take no Gram matrix.
"""

import argparse
import warnings
from time import perf_counter

import numpy as np

import grassmann_sc as gs
from benchmarks.common import digit_subspaces, figure, header, interleaved, n_cores, peer, read_problem, relative_gap

RATIOS = [0.5, 0.2, 0.1, 0.03, 0.01, 0.003]  # lambda / the largest lam_max of the queries
N_QUERIES = {50: 4000, 200: 2000, 1000: 400, 2000: 400}  # of the dictionaries with N atoms
FEWER = {0.03: 150, 0.01: 60, 0.003: 40}  # lambda / lam_max: at most so many queries where N >= 1000
REPETITIONS = 5  # 3 in these cells
SKLEARN = [(200, 0.1, 100), (200, 0.01, 40), (1000, 0.1, 40), (1000, 0.01, 10)]  # N, lambda / lam_max, queries; on digits
PATH = np.geomspace(0.5, 0.01, 10)  # lambda / lam_max
N_PATH = {"digits 200": 1000, "digits 1000": 200, "random 1000": 40}
COHERENT, N_TRACED = 0.03, 50  # lambda / lam_max of the breakdown on digits, N = 1000

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--data", action="append", default=[], metavar="FILE.npz[:p]", help="atoms train0, queries test0; p = 3")
arguments = parser.parse_args()


def gram(name, X, D):
    """Name, Gram matrices of the atoms and of queries and atoms, ||X^||^2."""
    return name, gs.projection_kernel(D), gs.projection_kernel(X, D), X.shape[2]


def split(S, N):
    return S[N:], S[:N]


def spams_lasso(K, k, lam, p):
    """A call of SPAMS on data in its own layout; its objective is half of ours."""
    X = np.zeros(k.T.shape, order="F")  # only norms are read: the products with the atoms are q
    X[0] = np.sqrt(p)
    Q, q = np.asfortranarray(K), np.asfortranarray(k.T)
    return lambda: spams.lasso(X, Q=Q, q=q, lambda1=lam / 2, mode=2, numThreads=n_cores(), L=len(K))


header("Lasso in Gram form: sparse_codes against spams.lasso, and scikit-learn's")
problems = [gram(f"digits {N}", *split(digit_subspaces(N + n, 3), N)) for N, n in N_QUERIES.items()]
problems.append(gram("random 1000", *split(gs.random_subspaces(1000 + N_QUERIES[1000], 64, 3, 0), 1000)))
problems += [gram(f"{name} {len(D)}", X, D) for name, X, D in map(read_problem, arguments.data)]

spams, ratios, gaps = peer("spams", "spams-bin"), [], []
print(f"{'atoms':16s} {'lam/max':>7s} {'queries':>7s} {'support':>7s} | us a query: {'sparse':>8s} {'dense':>8s} {'SPAMS':>8s} "
      f"{'ratio':>6s} | gap: {'ours':>7s} {'SPAMS':>7s}")
for name, K, K_xd, p in problems:
    for ratio in RATIOS:
        n = min(len(K_xd), FEWER.get(ratio, len(K_xd))) if len(K) >= 1000 else len(K_xd)
        k, lam = K_xd[:n], ratio * gs.lam_max(K_xd).max()
        calls = [lambda sparse=sparse: gs.sparse_codes(K, k, lam, norm2=p, sparse_output=sparse) for sparse in (True, False)]
        calls += [spams_lasso(K, k, lam, p)] if spams else []
        codes = [call() for call in calls]
        ours, dense, *theirs = 1e6 / n * interleaved(calls, REPETITIONS if n == len(K_xd) else 3)
        gaps.append(relative_gap(K, k, codes[0].toarray(), lam, p).max())
        ratios += [other / ours for other in theirs]
        row = f"{name:16s} {ratio:7.3f} {n:7d} {codes[0].nnz / n:7.0f} | {'':11s} {ours:8.1f} {dense:8.1f} "
        if theirs:
            gap = relative_gap(K, k, codes[2].T.toarray(), lam, p).max()
            print(row + f"{theirs[0]:8.1f} {theirs[0] / ours:6.2f} | {'':4s} {gaps[-1]:7.0e} {gap:7.0e}", flush=True)
        else:
            print(row + f"{'-':>8s} {'-':>6s} | {'':4s} {gaps[-1]:7.0e}", flush=True)
figure("worst gap of all cells, ours (1)", np.max(gaps), "<= 1e-8")
if ratios:
    figure("geometric mean of SPAMS' time over ours (1); goal 3", np.exp(np.log(ratios).mean()), ">= 2.0")
    figure("worst cell, SPAMS' time over ours (1)", min(ratios), ">= 1.0")

# scikit-learn solves query by query, in one process or as many as cores: the faster counts. lasso_lars uses both Gram
# matrices; lasso_cd ignores that of the queries and computes it from data, here whitened: as few coordinates as K has rank.
sklearn = peer("sklearn.decomposition", "scikit-learn")
by_name = {problem[0]: problem for problem in problems}
for N, ratio, n in SKLEARN if sklearn else []:
    _, K, k, p = by_name[f"digits {N}"]
    k, lam = k[:n], ratio * gs.lam_max(k).max()
    values, vectors = np.linalg.eigh(K)
    keep = values > 1e-12 * values[-1]
    W, whitener = vectors[:, keep] * np.sqrt(values[keep]), vectors[:, keep] / np.sqrt(values[keep])
    X, cov = k @ whitener, np.ascontiguousarray(k.T)
    calls = [lambda: gs.sparse_codes(K, k, lam, norm2=p)]
    calls += [lambda method=method, n_jobs=n_jobs: sklearn.sparse_encode(
        X, W, gram=K, cov=cov, algorithm=method, alpha=lam / 2, max_iter=10_000, n_jobs=n_jobs, check_input=False)
        for method in ("lasso_lars", "lasso_cd") for n_jobs in (1, n_cores())]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # late convergence shows in the gap
        gap = [relative_gap(K, k, call(), lam, p).max() for call in calls]
        seconds = interleaved(calls, 3)
    ours, *theirs = seconds[0], *seconds[1:].reshape(2, 2).min(axis=1)
    print(f"digits {N}, lam/max {ratio}, {n} queries, dense codes: ours {1e6 * ours / n:.1f} us a query, gap {gap[0]:.0e}")
    for method, other, error in zip(("lasso_lars", "lasso_cd"), theirs, gap[1::2]):
        figure(f"{method}: {1e6 * other / len(k):.1f} us a query, gap {error:.0e}; its time over ours (1)", other / ours)

for name, n in N_PATH.items():
    _, K, k, p = by_name[name]
    k, lams = k[:n], PATH * gs.lam_max(k).max()
    calls = [lambda lam=lam: gs.sparse_codes(K, k, lam, norm2=p, sparse_output=True) for lam in (lams, lams[-1])]
    gap = max(relative_gap(K, k, codes.toarray(), lam, p).max() for codes, lam in zip(calls[0](), lams))
    path, alone = interleaved(calls, 3) / len(k) * 1e6
    print(f"{name}, path of {len(lams)} from {PATH[0]} to {PATH[-1]} lam_max, {n} queries: {path:.1f} us a query, "
          f"its smallest alone {alone:.1f}; worst gap {gap:.0e}")
    figure("path over its smallest value alone (1)", path / alone, "<= 1.5")

# Where the time goes: the rounds of _lasso, its kernels called one by one and timed.
_, K, k, p = by_name["digits 1000"]
k, half = np.ascontiguousarray(k[:N_TRACED]), COHERENT * gs.lam_max(k).max() / 2
spent = {}  # step -> seconds


def timed(name, kernel, *arguments):
    start = perf_counter()
    result = kernel(*arguments)
    spent[name] = spent.get(name, 0) + perf_counter() - start
    return result


def traced(queries):
    """Step by step as gs._lasso on each query, from zero; returns rounds and atoms in the supports."""
    (n, N), rounds, total = queries.shape, 0, 0
    diag, work, L, Y = np.diag(K).copy(), np.empty((6, N)), np.empty((N, N)), np.zeros(queries.shape)
    g, rest = work[0], work[1:]
    for q, y in zip(queries, Y):
        A, inside, m, kept = np.empty(N, np.int64), np.zeros(N, np.bool_), 0, 0
        while True:
            timed("g = k - K y, afresh each round", gs._residual_products, K, q, y, A, m, g)
            _, gap, excess = timed("duality gap", gs._certificate, q, y, g, A, m, half, float(p), False, rest[0])
            if max(gap, excess) <= 1e-8 * p:
                break
            rounds += 1
            timed("greedy coordinate descent", gs._coordinate_descent, K, diag, half, False, y, g, rest, 10 + m // 2)
            m, kept = timed("support", gs._collect_support, y, A, inside, L, rest, m, kept)
            kept = timed("Cholesky rows of new atoms", gs._factor, K, A, L, kept, m)
            kept = m = timed("triangular solves; drops and their rows", gs._solve_on_support,
                             K, half, y, g, A, inside, L, rest, m, kept)
        total += m
    return rounds, total


def whole():
    gs._lasso_path(K, k, np.full((1, len(k)), half), np.zeros(1, np.int64), np.full(len(k), float(p)), False, 1e-8, 1000,
                   np.zeros((1, *k.shape)), np.empty((1, len(k))), np.empty((1, len(k)), np.int64))


traced(k[:2])
spent.clear()
rounds, atoms = traced(k)
whole()
alone, public, one = interleaved([whole, *(lambda k=k: gs.sparse_codes(K, k, 2 * half, norm2=p, sparse_output=True)
                                           for k in (k, k[:1]))], REPETITIONS)
print(f"digits 1000, lam/max {COHERENT}, {len(k)} queries: {rounds / len(k):.1f} rounds, {atoms / len(k):.0f} atoms and "
      "these times a query:")
for name, seconds in sorted(spent.items(), key=lambda item: -item[1]):
    figure(f"one thread, kernels called from Python: {name} (us)", 1e6 * seconds / len(k))
figure("one thread, sum of these (us)", 1e6 * sum(spent.values()) / len(k))
figure("one thread, the same in one compiled call (us)", 1e6 * alone / len(k))
figure("sparse_codes, all threads, checks and output included (us)", 1e6 * public / len(k))
figure("sparse_codes of one query alone, mostly checks of K and other fixed costs (us)", 1e6 * one)
