"""How exact is the core? The worst error of each oracle, beside its bound.

Run: python -m benchmarks.accuracy

Each oracle is asked over random and degenerate cases.
"""

import time
import warnings

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.accuracy")

import mpmath
import numpy as np
from sklearn.linear_model import Lasso

import grassmann_sc as gs
from grassmann_sc.strategies import KINDS, bases, coding_problem, rotation
from oracles import cost, vectors, violation

SEED = 0
SIZES = [(1, 1), (2, 1), (4, 2), (5, 5), (6, 3), (9, 2), (16, 4), (30, 3)]  # (d, p)
N_ATOMS = [1, 3, 12, 60]  # 60 > d (d + 1) / 2 for the first six sizes
LAMBDAS = [1e-4, 1e-2, 0.1, 0.5, 1.0]  # of lam_max
N_QUERIES = 3
ANGLES = [
    [0],
    [1e-12],
    [1e-10, 1.5],
    [np.pi / 4],
    [np.pi / 2 - 1e-9],
    [np.pi / 2],
    [1e-10, np.pi / 2],
    [0, 1e-12, 1e-10, np.pi / 4, 1.5, np.pi / 2 - 1e-9, np.pi / 2],
]
ANGLE_SIZES = [(14, 7), (10, 7), (60, 7), (400, 7)]  # the second has p > d / 2
BOUNDS = {
    "cost above scikit-learn's / norm2": 1e-9,
    "cost above that of float64 / norm2": None,
    "cost difference where it converged / norm2": 1e-9,
    "optimality conditions / norm2": 1e-8,
    "duality gap / norm2": 1e-8,
    "class residuals against d x d": 1e-10,
    "|1^T y - 1| of local codes": 1e-8,
    "principal angles against 50 digits": 3e-15,
    "distances against 50 digits": 1e-14,
    "proj beaten by": 1e-13,
    "chordal_mean beaten by": 1e-13,
}
worst = {}  # (oracle, type) -> (worst figure, cases)


def record(oracle, values, dtype=np.float64):
    """One of BOUNDS, a value a case."""
    figure, count = worst.get((oracle, dtype), (-np.inf, 0))
    worst[oracle, dtype] = max(figure, float(np.max(values))), count + np.size(values)


def true_angles(X, Y):
    """To 50 digits, of the spans of the rounded matrices."""
    with mpmath.workdps(50):
        Q, P = (mpmath.qr(mpmath.matrix(A.tolist()), mode="skinny")[0] for A in (X, Y))
        return np.sort(
            [
                float(mpmath.acos(min(c, mpmath.mpf(1))))
                for c in mpmath.svd_r(Q.T * P, compute_uv=False)
            ]
        )


def pair_at(angles, rng, d, p):
    """Two subspaces with the given angles, the others 0, in random bases."""
    m = len(angles)
    Q = rotation(rng, d)
    Y = Q[:, :p] * np.append(np.ones(p - m), np.cos(angles))
    Y[:, p - m :] += Q[:, d - m :] * np.sin(angles)
    return tuple(np.linalg.qr(A @ rotation(rng, p))[0] for A in (Q[:, :p], Y))


def beaten_by(best, S):
    """How far the p largest eigenvalues exceed tr(Y^T S Y), over the scale of S.

    To 50 digits; Y is the span of the rounded matrix. No subspace exceeds them.
    """
    with mpmath.workdps(50):
        Y, _ = mpmath.qr(mpmath.matrix(best.tolist()), mode="skinny")
        exact = mpmath.matrix(((S + S.T) / 2).tolist())
        largest = sorted(mpmath.eigsy(exact, eigvals_only=True))[-best.shape[1] :]
        reached = Y.T * exact * Y
        short = sum(largest) - sum(reached[i, i] for i in range(reached.rows))
    return float(short) / max(np.abs(S).sum(axis=1).max(), 1e-300)


def check_sparse(problem, positive):
    """Cost against scikit-learn's coordinate descent, optimality conditions, gap.

    scikit-learn solves the problem in vec(X X^T).
    """
    X, D, K_dd, K_xd, p, lam, _ = problem
    codes, gap, _ = gs.sparse_codes(
        K_dd, K_xd, lam, norm2=p, positive=positive, return_info=True
    )
    rough = gs.gsc(np.float32(X), np.float32(D), lam, positive=positive).astype(float)
    for dtype, Y in ((np.float64, codes), (np.float32, rough)):
        record(
            "optimality conditions / norm2",
            [violation(K_dd, k, y, lam, positive) / p for k, y in zip(K_xd, Y)],
            dtype,
        )
    record("duality gap / norm2", gap / p)
    own = cost(problem, codes)
    record(
        "cost above that of float64 / norm2",
        (cost(problem, rough) - own) / p,
        np.float32,
    )
    if len(D) > 12 or lam < 1e-3:
        return
    A = vectors(D).T
    lasso = Lasso(
        lam / (2 * len(A)),
        fit_intercept=False,
        positive=positive,
        tol=1e-14,
        max_iter=20_000,
    )
    theirs, gaps = zip(*((lasso.fit(A, x).coef_, lasso.dual_gap_) for x in vectors(X)))
    above = (own - cost(problem, np.array(theirs))) / p
    record("cost above scikit-learn's / norm2", above)
    converged = 2 * len(A) * np.array(gaps) <= 1e-10 * p
    if converged.any():
        record("cost difference where it converged / norm2", abs(above[converged]))


def check_classes(problem, rng):
    """Residuals of classes against d x d matrices, and local codes, in both types."""
    n_atoms = len(problem.D)
    labels = np.arange(n_atoms) % 3
    drawn_codes = rng.standard_normal((N_QUERIES, n_atoms)) / np.sqrt(n_atoms)
    for dtype in (np.float64, np.float32):
        X, D, K, k = (A.astype(dtype) for A in problem[:4])
        codes = drawn_codes.astype(dtype)
        residuals, classes = gs.class_residuals(
            codes, K, k, labels, norm2=problem.norm2
        )
        explicit = [cost(problem, codes.astype(float) * (labels == c)) for c in classes]
        record("class residuals against d x d", np.abs(residuals.T - explicit), dtype)
        local = gs.glc(X, D, min(n_atoms, 20)).astype(float)
        record("|1^T y - 1| of local codes", np.abs(local.sum(axis=1) - 1), dtype)


def check_codes(rng):
    for d, p in SIZES:
        for N in N_ATOMS:
            for kind in KINDS:
                X = bases(rng, N_QUERIES, d, p)
                D = bases(rng, N, d, p, kind)
                D[-1] = X[0] @ rotation(rng, p)  # the last atom is the first query
                problem = coding_problem(X, D)
                for lam in np.array(LAMBDAS) * gs.lam_max(problem.K_xd).max():
                    for positive in (False, True):
                        check_sparse(problem._replace(lam=lam), positive)
                check_classes(problem, rng)


def check_angles(rng):
    """Principal angles and distances against 50 digits."""
    for d, p in ANGLE_SIZES:
        for angles in ANGLES:
            X, Y = pair_at(angles[: d - p], rng, d, p)
            truth = true_angles(X, Y)
            arc = gs.geodesic_distance(X[None], Y[None])
            chord = gs.chordal_distance(X[None], Y[None])
            record("distances against 50 digits", abs(arc - np.linalg.norm(truth)))
            record(
                "distances against 50 digits",
                abs(chord - np.sqrt(2) * np.linalg.norm(np.sin(truth))),
            )
            for dtype in (np.float64, np.float32):
                A = X.astype(dtype)
                B = Y.astype(dtype)
                off = gs.principal_angles(A, B) - true_angles(
                    A.astype(float), B.astype(float)
                )
                record("principal angles against 50 digits", np.abs(off).max(), dtype)


def check_points(rng):
    """Closest point and mean: never beaten, not by the best that there is."""
    for d, p in SIZES:
        for kind in KINDS:
            G = rng.standard_normal((d, d))
            X = bases(rng, 5, d, p, kind)
            S = {"random": G + G.T, "near": G @ G.T}.get(kind, -G @ G.T)
            record("proj beaten by", beaten_by(gs.proj(S, p), S))
            for w in (
                np.ones(5),
                rng.uniform(0, 1, 5),
                rng.standard_normal(5),
                -rng.uniform(0, 1, 5),
            ):
                S = np.einsum("n,nij->ij", w, X @ X.swapaxes(1, 2))
                record("chordal_mean beaten by", beaten_by(gs.chordal_mean(X, w), S))


def main():
    started = time.perf_counter()
    # scikit-learn stops at rounding or late; means that are not unique are optimal all
    # the same
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(SEED)
    for check in (check_codes, check_angles, check_points):
        check(rng)
    print(f"{'oracle':45s} {'type':8s} {'cases':>6s} {'worst':>9s} {'bound':>9s}")
    for oracle, bound in BOUNDS.items():
        for dtype in (np.float64, np.float32):
            figure, cases = worst.get((oracle, dtype), (0, 0))
            rule = ""
            if dtype == np.float64 and bound:
                rule = f"{bound:9.0e}{'' if figure <= bound else '  MISSED'}"
            if cases:
                print(
                    f"{oracle:45s} {dtype.__name__:8s} {cases:6d} {figure:9.1e} {rule}"
                )
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
