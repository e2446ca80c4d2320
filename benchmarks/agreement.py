"""Agreement with other packages on the same input: differences, times, and errors.

    python -m benchmarks.agreement

Each needs to be installed beside the toolkit (pip install UQpy geomstats pymanopt
spams-bin clarabel); missing packages are named and left out. Where results differ, the
pair was made with known angles, Y = X cos + U sin, whose distance is known exactly; Y
is rounded, which moves an angle of 1e-9 by 1e-7 of itself. Distances of geomstats,
which are those of projectors, are divided by sqrt(2).
"""

import os

os.environ.setdefault("GEOMSTATS_BACKEND", "numpy")

from examples.common import of_these, parsed

parsed(__name__, of_these, "benchmarks.agreement", {})

import numpy as np
import scipy.sparse

import grassmann_sc as gs
from benchmarks.common import header, n_cores, peer, timed
from grassmann_sc import intrinsic
from grassmann_sc.baselines import hulls
from oracles import hat

N = 40
D = 50
P = 3
EDGES = {
    "an angle of 1e-9": [1e-9, 1e-9, 1e-9],
    "1e-9 beside 60 degrees": [1e-9, 0.5, np.pi / 3],
    "80 degrees": [1.4, 1.4, 1.4],
    "a right angle": [0.3, 0.7, np.pi / 2],
}


def row(what, name, ours, theirs):
    """Print the seconds of both and the largest difference; the first call compiles."""
    ours()
    seconds, mine = timed(ours)
    others, reference = timed(theirs)
    difference = np.abs(np.asarray(mine) - np.asarray(reference)).max()
    print(
        f"{what:34s} {name:12s} {difference:10.1e} {1e3 * seconds:10.3f} {1e3 * others:10.3f}",
        flush=True,
    )


def pair_at(angles, rng):
    """X, Y (D, P) at these principal angles."""
    Q = gs.orthonormalize(rng.standard_normal((D, 2 * P)))
    X = Q[:, :P]
    U = Q[:, P:]
    return X, X * np.cos(angles) + U * np.sin(angles)


def uqpy(X):
    from UQpy.utilities import distances, kernels
    from UQpy.utilities.GrassmannPoint import GrassmannPoint

    points = [GrassmannPoint(x) for x in X]
    metric = distances.GeodesicDistance()

    def matrix_of(kernel):
        kernel.calculate_kernel_matrix(points, points)
        return kernel.kernel_matrix

    row(
        "projection kernel",
        "UQpy",
        lambda: gs.projection_kernel(X),
        lambda: matrix_of(kernels.ProjectionKernel()),
    )
    row(
        "Binet-Cauchy kernel, prod cos^2",
        "UQpy",
        lambda: np.prod(np.cos(gs.principal_angles(X[:, None], X[None])), axis=-1) ** 2,
        lambda: matrix_of(kernels.BinetCauchyKernel()),
    )
    row(
        "geodesic distance",
        "UQpy",
        lambda: gs.geodesic_distance(X),
        lambda: [[metric.compute_distance(x, y) for y in points] for x in points],
    )
    return lambda X, Y: metric.compute_distance(
        GrassmannPoint(X), GrassmannPoint(Y)
    ), None


def pymanopt(X):
    from pymanopt.manifolds import Grassmann

    manifold = Grassmann(D, P)
    H = intrinsic.log_map(X[0], X[1])
    row(
        "geodesic distance",
        "pymanopt",
        lambda: gs.geodesic_distance(X),
        lambda: [[manifold.dist(x, y) for y in X] for x in X],
    )
    row(
        "log map",
        "pymanopt",
        lambda: intrinsic.log_map(X[0], X[1]),
        lambda: manifold.log(X[0], X[1]),
    )
    row(
        "exp map, as a projector",
        "pymanopt",
        lambda: hat(intrinsic.exp_map(X[0], H)),
        lambda: hat(manifold.exp(X[0], H)),
    )
    return manifold.dist, manifold.log


def geomstats(X):
    from geomstats.geometry.grassmannian import Grassmannian
    from geomstats.learning.frechet_mean import FrechetMean

    space = Grassmannian(D, P)
    mean = FrechetMean(space).set(epsilon=1e-13, max_iter=500)
    near = intrinsic.exp_map(X[0], 0.3 * intrinsic.log_map(X[0], X[1:11]))

    def distance(X, Y):
        return space.metric.dist(hat(X), hat(Y)) / np.sqrt(2)

    row(
        "geodesic distance",
        "geomstats",
        lambda: gs.geodesic_distance(X[:1], X[1:])[0],
        lambda: distance(X[0], X[1:]),
    )
    row(
        "Karcher mean, as a projector",
        "geomstats",
        lambda: hat(intrinsic.karcher_mean(near)),
        lambda: mean.fit(hat(near)).estimate_,
    )
    return distance, None


# package: (its module, rows of it), which give its distance(X, Y) and log(X, Y)
MANIFOLDS = {
    "UQpy": ("UQpy.utilities.GrassmannPoint", uqpy),
    "pymanopt": ("pymanopt.manifolds", pymanopt),
    "geomstats": ("geomstats.geometry.grassmannian", geomstats),
}


def lassos(X):
    K = gs.projection_kernel(X[: N // 2])
    k = gs.projection_kernel(X[N // 2 :], X[: N // 2])
    lam = 0.2 * k.max()

    def ours():
        return gs.sparse_codes(K, k, lam, norm2=float(P))

    spams = peer("spams", "spams-bin")
    if spams:
        queries = np.zeros(k.T.shape, order="F")
        queries[0] = np.sqrt(P)
        row(
            "lasso in Gram form",
            "SPAMS",
            ours,
            lambda: (
                spams.lasso(
                    queries,
                    Q=np.asfortranarray(K),
                    q=np.asfortranarray(k.T),
                    lambda1=lam / 2,
                    mode=2,
                    numThreads=n_cores(),
                )
                .toarray()
                .T
            ),
        )
    if peer("sklearn", "scikit-learn"):
        from sklearn.linear_model import Lasso

        F = np.linalg.cholesky(K).T  # F^T F = K; F^T x = k
        targets = np.linalg.solve(F.T, k.T)
        lasso = Lasso(
            alpha=lam / 2 / len(F), fit_intercept=False, tol=1e-14, max_iter=10**6
        )
        row(
            "lasso in Gram form",
            "scikit-learn",
            ours,
            lambda: [lasso.fit(F, x).coef_ for x in targets.T],
        )


def cones(rng):
    clarabel = peer("clarabel")
    if not clarabel:
        return
    sets = [rng.standard_normal((12, D)) + 2 * rng.standard_normal(D) for _ in range(8)]

    def nearest(A, B):
        """min ||A^T a - B^T b|| over convex weights a, b, by a quadratic program."""
        F = np.vstack([A, -B])
        m = len(F)
        sums = np.zeros((2, m))
        sums[0, : len(A)] = 1
        sums[1, len(A) :] = 1
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        constraints = scipy.sparse.csc_matrix(np.vstack([sums, -np.eye(m)]))
        solver = clarabel.DefaultSolver(
            scipy.sparse.csc_matrix(np.triu(2 * F @ F.T)),
            np.zeros(m),
            constraints,
            np.concatenate([[1, 1], np.zeros(m)]),
            [clarabel.ZeroConeT(2), clarabel.NonnegativeConeT(m)],
            settings,
        )
        return np.linalg.norm(F.T @ np.array(solver.solve().x))

    row(
        "convex hulls' distance",
        "Clarabel",
        lambda: hulls.convex_hull_distances(sets, sets[:1])[1:],
        lambda: [[nearest(A, sets[0])] for A in sets[1:]],
    )


def edges(rng, compared):
    """Relative error of the geodesic distance, and how far exp(log(Y)) is from Y."""
    print(
        "\nrelative error of the distance, and ||exp(log(Y))^ - Y^||_F, at known angles"
    )
    for what, angles in EDGES.items():
        X, Y = pair_at(np.array(angles), rng)
        length = np.linalg.norm(angles)
        for name, (distance, log) in compared.items():
            error = abs(distance(X, Y) - length).item() / length
            back = intrinsic.exp_map(X, log(X, Y)) if log else np.full_like(Y, np.nan)
            miss = np.linalg.norm(hat(back) - hat(Y))
            print(f"{what:34s} {name:12s} {error:10.1e} {miss:10.1e}", flush=True)


def main():
    header("Agreement with other packages on the same input")
    rng = np.random.default_rng(0)
    X = gs.random_subspaces(N, D, P, rng)
    print(f"{'':34s} {'':12s} {'largest':>10s} {'ms':>10s} {'ms':>10s}")
    print(f"{'':34s} {'package':12s} {'difference':>10s} {'ours':>10s} {'theirs':>10s}")
    compared = {
        "ours": (lambda X, Y: gs.geodesic_distance(X[None], Y[None]), intrinsic.log_map)
    }
    for package, (module, rows) in MANIFOLDS.items():
        if peer(module, package):
            compared[package] = rows(X)
    lassos(X)
    cones(rng)
    edges(rng, compared)


if __name__ == "__main__":
    main()
