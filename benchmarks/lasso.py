"""Sparse codes against SPAMS (homotopy, C++) and scikit-learn.

    python -m benchmarks.lasso [--data FILE.npz[:p]] ... [--growth]

Ratios are the peer's time over ours: above 1 we are faster. Calls follow each other
without a rest; in SPAMS' table, whose threads wait awake for its next, those of one
peer do. Gaps are duality gaps over ||X^||^2, the worst of all queries, computed here
from the codes. SPAMS gets both Gram matrices, in Fortran order, all threads and no
bound on the support. Its sparse matrix is compared with ours (sparse_output=True); ours
dense is timed beside it. celer and skglm are left out: they take no Gram matrix.
"""

import warnings

from examples.common import of_these, parsed

options = parsed(
    __name__,
    of_these,
    "benchmarks.lasso",
    {
        "--data": dict(
            action="append",
            default=[],
            metavar="FILE.npz[:p]",
            help="atoms train0, queries test0; p = 3",
        ),
        "--growth": dict(
            action="store_true", help="only how times grow with the number of atoms"
        ),
    },
)

import numpy as np

import grassmann_sc as gs
from benchmarks import common
from benchmarks.common import figure, header, interleaved, n_cores, peer, timed

# lambda / the largest lam_max of the queries
RATIOS = [0.5, 0.2, 0.1, 0.03, 0.01, 0.003]
N_QUERIES = {50: 4000, 200: 2000, 1000: 400}  # of the dictionaries with N atoms
# lambda / lam_max: most queries where N >= 1000
FEWER = {0.03: 40, 0.01: 16, 0.003: 12}
SECONDS = 0.5  # of a cell, about: 2 to 20 repetitions
SKLEARN = [
    (200, 0.1, 100),
    (200, 0.01, 40),
    (1000, 0.1, 40),
    (1000, 0.01, 4),
]  # N, lambda / lam_max, queries; on digits
PATH = np.geomspace(0.5, 0.01, 10)  # lambda / lam_max
N_PATH = {"digits 200": 1000, "digits 1000": 200, "random 1000": 40}
# atoms, d, centres, queries and lambda / lam_max whose growth is measured
GROWTH = [100, 300, 1000, 3000, 10_000]
GROWTH_D = 400
GROWTH_CENTRES = 20
GROWTH_QUERIES = 200
GROWTH_RATIOS = [0.1, 0.03]
MOST = 2000  # atoms in a code of SPAMS there, which needs as many squared


def gram(name, X, D):
    """Name, Gram matrices of the atoms and of queries and atoms, ||X^||^2."""
    return name, gs.projection_kernel(D), gs.projection_kernel(X, D), X.shape[2]


def problems_of(data):
    problems = []
    for N, n in N_QUERIES.items():
        S = common.digit_subspaces(N + n, 3)
        problems.append(gram(f"digits {N}", S[N:], S[:N]))
    S = gs.random_subspaces(1000 + N_QUERIES[1000], 64, 3, 0)
    problems.append(gram("random 1000", S[1000:], S[:1000]))
    for name, X, D in map(common.read_problem, data):
        problems.append(gram(f"{name} {len(D)}", X, D))
    return problems


def spams_lasso(spams, K, k, lam, p, most=None):
    """A call of SPAMS on data in its own layout; its objective is half of ours."""
    # only norms are read: the products with the atoms are q
    X = np.zeros(k.T.shape, order="F")
    X[0] = np.sqrt(p)
    Q = np.asfortranarray(K)
    q = np.asfortranarray(k.T)
    return lambda: spams.lasso(
        X, Q=Q, q=q, lambda1=lam / 2, mode=2, numThreads=n_cores(), L=most or len(K)
    )


def cell(spams, name, K, K_xd, p, ratio):
    """Print a row: a dictionary and lambda; (our worst gap, SPAMS' time / ours)."""
    n = len(K_xd)
    if len(K) >= 1000:
        n = min(n, FEWER.get(ratio, n))
    k = K_xd[:n]
    lam = ratio * gs.lam_max(K_xd).max()
    calls = [
        lambda: gs.sparse_codes(K, k, lam, norm2=p, sparse_output=True),
        lambda: gs.sparse_codes(K, k, lam, norm2=p),
    ]
    if spams:
        calls.append(spams_lasso(spams, K, k, lam, p))
    once, codes = zip(*map(timed, calls))
    repetitions = int(np.clip(SECONDS / sum(once), 2, 20))
    seconds = interleaved(calls, repetitions, rest=0, again=True)
    ours, dense, *theirs = 1e6 / n * seconds
    gap = common.relative_gap(K, k, codes[0].toarray(), lam, p).max()
    other = np.nan
    if theirs:
        other = common.relative_gap(K, k, codes[2].T.toarray(), lam, p).max()
    speed = (theirs or [np.nan])[0] / ours
    print(
        f"{name:16s} {ratio:7.3f} {n:7d} {codes[0].nnz / n:7.0f} | {ours:8.1f} {dense:8.1f} "
        f"{ours * speed:8.1f} {speed:6.2f} | {gap:7.0e} {other:7.0e}",
        flush=True,
    )
    return gap, speed


def against_spams(problems):
    spams = peer("spams", "spams-bin")
    print(f"{'':40s} | {'us a query:':^33s} | {'worst gap:':^15s}")
    print(
        f"{'atoms':16s} {'lam/max':>7s} {'queries':>7s} {'support':>7s} | {'sparse':>8s} "
        f"{'dense':>8s} {'SPAMS':>8s} {'ratio':>6s} | {'ours':>7s} {'SPAMS':>7s}"
    )
    cells = [
        (len(K), *cell(spams, name, K, K_xd, p, ratio))
        for name, K, K_xd, p in problems
        for ratio in RATIOS
    ]
    n_atoms, gaps, ratios = map(np.array, zip(*cells))
    figure("worst gap of all cells, ours (1)", gaps.max(), "<= 1e-8")
    if spams:
        figure(
            "geometric mean of SPAMS' time over ours (1)",
            np.exp(np.log(ratios).mean()),
            ">= 3.2",
        )
        figure(
            "worst cell of dictionaries of 200 atoms or more (1)",
            ratios[n_atoms >= 200].min(),
            ">= 1",
        )
        figure("worst cell (1)", ratios.min())


def against_sklearn(problems):
    """Compare with scikit-learn, in one process or several: the faster counts.

    lasso_lars uses both Gram matrices; lasso_cd ignores that of the queries and
    computes it from data, here whitened: with as few coordinates as the rank of K.
    """
    sklearn = peer("sklearn.decomposition", "scikit-learn")
    for N, ratio, n in SKLEARN if sklearn else []:
        _, K, k, p = problems[f"digits {N}"]
        k = k[:n]
        lam = ratio * gs.lam_max(k).max()
        values, vectors = np.linalg.eigh(K)
        keep = values > 1e-12 * values[-1]
        root = np.sqrt(values[keep])
        W = vectors[:, keep] * root
        X = k @ (vectors[:, keep] / root)
        cov = np.ascontiguousarray(k.T)
        calls = [lambda: gs.sparse_codes(K, k, lam, norm2=p)]
        for method in ("lasso_lars", "lasso_cd"):
            for n_jobs in (1, n_cores()):
                calls.append(
                    lambda method=method, n_jobs=n_jobs: sklearn.sparse_encode(
                        X,
                        W,
                        gram=K,
                        cov=cov,
                        algorithm=method,
                        alpha=lam / 2,
                        max_iter=10_000,
                        n_jobs=n_jobs,
                        check_input=False,
                    )
                )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # late convergence shows in the gap
            gap = [common.relative_gap(K, k, call(), lam, p).max() for call in calls]
            ours, *others = interleaved(calls, 2, rest=0)
        print(
            f"digits {N}, lam/max {ratio}, {n} queries, dense codes: ours {1e6 * ours / n:.1f} "
            f"us a query, gap {gap[0]:.0e}"
        )
        theirs = np.reshape(others, (2, 2)).min(axis=1)
        for method, other, error in zip(("lasso_lars", "lasso_cd"), theirs, gap[1::2]):
            figure(
                f"{method}: {1e6 * other / n:.1f} us a query, gap {error:.0e}; its time over "
                "ours (1)",
                other / ours,
            )


def paths(problems):
    for name, n in N_PATH.items():
        _, K, k, p = problems[name]
        k = k[:n]
        lams = PATH * gs.lam_max(k).max()
        calls = [
            lambda lam=lam: gs.sparse_codes(K, k, lam, norm2=p, sparse_output=True)
            for lam in (lams, lams[-1])
        ]
        codes = calls[0]()
        gap = max(
            common.relative_gap(K, k, y.toarray(), lam, p).max()
            for y, lam in zip(codes, lams)
        )
        path, alone = interleaved(calls, 3, rest=0) / n * 1e6
        print(
            f"{name}, path of {len(lams)} from {PATH[0]} to {PATH[-1]} lam_max, {n} queries: "
            f"{path:.1f} us a query, its smallest alone {alone:.1f}; worst gap {gap:.0e}"
        )
        # the last of its problems alone, begun at the one before, takes half of that
        figure("path over its smallest value alone (1)", path / alone, "<= 1.9")


def growth():
    spams = peer("spams", "spams-bin")
    rng = np.random.default_rng(0)
    centres = gs.random_subspaces(GROWTH_CENTRES, GROWTH_D, 3, rng)
    X = common.about(centres, GROWTH_QUERIES, 0.7, rng)
    D = common.about(centres, max(GROWTH), 0.7, rng)
    _, K_dd, K_xd, p = gram("", X, D)
    print(f"{GROWTH_QUERIES} queries about {GROWTH_CENTRES} centres, d = {GROWTH_D}")
    print("us a query, checks of the Gram matrices included, and gaps: ours, SPAMS")
    for ratio in GROWTH_RATIOS:
        seconds = []
        for N in GROWTH:
            K = np.ascontiguousarray(K_dd[:N, :N])
            k = np.ascontiguousarray(K_xd[:, :N])
            lam = ratio * gs.lam_max(k).max()
            calls = [lambda: gs.sparse_codes(K, k, lam, norm2=p, sparse_output=True)]
            if spams:
                calls.append(spams_lasso(spams, K, k, lam, p, min(N, MOST)))
            once, codes = zip(*map(timed, calls))
            repetitions = int(np.clip(SECONDS / sum(once), 1, 20))
            seconds.append(interleaved(calls, repetitions, rest=0, again=sum(once) < 2))
            codes = [codes[0], *(code.T for code in codes[1:])]
            gaps = [common.relative_gap(K, k, y.toarray(), lam, p).max() for y in codes]
            cells = "  ".join(
                f"{1e6 * time / len(k):9.1f} ({gap:.0e})"
                for time, gap in zip(seconds[-1], gaps)
            )
            print(
                f"  lambda = {ratio} lam_max, {N:6d} atoms, {codes[0].nnz / len(k):4.0f} in a "
                f"code: {cells}",
                flush=True,
            )
        for name, times in zip(("ours", "SPAMS"), zip(*seconds)):
            exponent = np.polyfit(np.log(GROWTH), np.log(times), 1)[0]
            figure(f"{name}, lambda = {ratio} lam_max: exponent of N (1)", exponent)


def main(options):
    header("Lasso in Gram form: sparse_codes against spams.lasso, and scikit-learn's")
    if options.growth:
        return growth()
    problems = problems_of(options.data)
    against_spams(problems)
    by_name = {problem[0]: problem for problem in problems}
    against_sklearn(by_name)
    paths(by_name)


if __name__ == "__main__":
    main(options)
