"""What other packages compute on the same input: largest difference, seconds, and who is right.

    python -m benchmarks.agreement

Each needs to be installed beside the toolkit (pip install UQpy geomstats pymanopt spams-bin
clarabel); what is missing is named and left out. Where answers part, the pair was made with known
angles, Y = X cos + U sin, of which the distance follows by hand; Y is rounded, by which an angle of
1e-9 moves by 1e-7 of itself. geomstats measures distances of
projectors, sqrt(2) times the others'; they are divided by it.
"""

import os

os.environ.setdefault("GEOMSTATS_BACKEND", "numpy")

from examples.options import of_these, parsed

parsed(__name__, of_these, "benchmarks.agreement", {})

import numpy as np
import scipy.sparse

import grassmann_sc as gs
from benchmarks.common import header, n_cores, peer, timed
from grassmann_sc import intrinsic
from grassmann_sc.baselines import hulls

N = 40
D = 50
P = 3
EDGES = {"an angle of 1e-9": [1e-9, 1e-9, 1e-9], "1e-9 beside 60 degrees": [1e-9, 0.5, np.pi / 3],
         "80 degrees": [1.4, 1.4, 1.4], "a right angle": [0.3, 0.7, np.pi / 2]}


def row(what, name, ours, theirs):
    """Seconds of both and the largest difference of what they return; the first call compiles."""
    ours()
    seconds, mine = timed(ours)
    others, found = timed(theirs)
    difference = np.abs(np.asarray(mine) - np.asarray(found)).max()
    print(f"{what:34s} {name:12s} {difference:10.1e} {1e3 * seconds:10.3f} {1e3 * others:10.3f}",
          flush=True)


def pair_at(angles, rng):
    """X, Y (D, P) at these principal angles."""
    Q = gs.orthonormalize(rng.standard_normal((D, 2 * P)))
    X = Q[:, :P]
    U = Q[:, P:]
    return X, X * np.cos(angles) + U * np.sin(angles)


def uqpy(X):
    if not peer("UQpy.utilities.kernels.grassmannian_kernels", "UQpy"):
        return
    from UQpy.utilities import distances, kernels
    from UQpy.utilities.GrassmannPoint import GrassmannPoint

    points = [GrassmannPoint(x) for x in X]

    def matrix_of(kernel):
        kernel.calculate_kernel_matrix(points, points)
        return kernel.kernel_matrix

    def distances_of(metric):
        return [[metric.compute_distance(x, y) for y in points] for x in points]

    row("projection kernel", "UQpy", lambda: gs.projection_kernel(X),
        lambda: matrix_of(kernels.ProjectionKernel()))
    row("Binet-Cauchy kernel, prod cos^2", "UQpy",
        lambda: np.prod(np.cos(gs.principal_angles(X[:, None], X[None])), axis=-1)**2,
        lambda: matrix_of(kernels.BinetCauchyKernel()))
    row("geodesic distance", "UQpy", lambda: gs.geodesic_distance(X),
        lambda: distances_of(distances.GeodesicDistance()))


def pymanopt(X):
    manifolds = peer("pymanopt.manifolds", "pymanopt")
    if not manifolds:
        return
    manifold = manifolds.Grassmann(D, P)
    H = intrinsic.log_map(X[0], X[1])
    row("geodesic distance", "pymanopt", lambda: gs.geodesic_distance(X),
        lambda: [[manifold.dist(x, y) for y in X] for x in X])
    row("log map", "pymanopt", lambda: intrinsic.log_map(X[0], X[1]),
        lambda: manifold.log(X[0], X[1]))
    row("exp map, as a projector", "pymanopt", lambda: projector(intrinsic.exp_map(X[0], H)),
        lambda: projector(manifold.exp(X[0], H)))


def geomstats(X):
    grassmannian = peer("geomstats.geometry.grassmannian", "geomstats")
    if not grassmannian:
        return
    from geomstats.learning.frechet_mean import FrechetMean

    space = grassmannian.Grassmannian(D, P)
    mean = FrechetMean(space).set(epsilon=1e-13, max_iter=500)
    near = intrinsic.exp_map(X[0], 0.3 * intrinsic.log_map(X[0], X[1:11]))
    row("geodesic distance", "geomstats", lambda: gs.geodesic_distance(X[:1], X[1:])[0],
        lambda: space.metric.dist(projector(X[0]), projector(X[1:])) / np.sqrt(2))
    row("Karcher mean, as a projector", "geomstats",
        lambda: projector(intrinsic.karcher_mean(near)),
        lambda: mean.fit(projector(near)).estimate_)


def lassos(X):
    K = gs.projection_kernel(X[:N // 2])
    k = gs.projection_kernel(X[N // 2:], X[:N // 2])
    lam = 0.2 * k.max()

    def ours():
        return gs.sparse_codes(K, k, lam, norm2=float(P))

    spams = peer("spams", "spams-bin")
    if spams:
        queries = np.zeros(k.T.shape, order="F")
        queries[0] = np.sqrt(P)
        row("lasso in Gram form", "SPAMS", ours, lambda: spams.lasso(
            queries, Q=np.asfortranarray(K), q=np.asfortranarray(k.T), lambda1=lam / 2, mode=2,
            numThreads=n_cores()).toarray().T)
    if peer("sklearn", "scikit-learn"):
        from sklearn.linear_model import Lasso

        F = np.linalg.cholesky(K).T  # F^T F = K; F^T x = k
        targets = np.linalg.solve(F.T, k.T)
        lasso = Lasso(alpha=lam / 2 / len(F), fit_intercept=False, tol=1e-14, max_iter=10**6)
        row("lasso in Gram form", "scikit-learn", ours,
            lambda: [lasso.fit(F, x).coef_ for x in targets.T])


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
        sums[0, :len(A)] = 1
        sums[1, len(A):] = 1
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
        constraints = scipy.sparse.csc_matrix(np.vstack([sums, -np.eye(m)]))
        solver = clarabel.DefaultSolver(
            scipy.sparse.csc_matrix(np.triu(2 * F @ F.T)), np.zeros(m), constraints,
            np.concatenate([[1, 1], np.zeros(m)]),
            [clarabel.ZeroConeT(2), clarabel.NonnegativeConeT(m)], settings)
        return np.linalg.norm(F.T @ np.array(solver.solve().x))

    row("convex hulls' distance", "Clarabel",
        lambda: hulls.convex_hull_distances(sets, sets[:1])[1:],
        lambda: [[nearest(A, sets[0])] for A in sets[1:]])


def projector(X):
    return X @ X.swapaxes(-1, -2)


def edges(rng):
    """Relative error of the geodesic distance, and how far exp(log(Y)) is from Y."""
    print("\nrelative error of the distance, and ||exp(log(Y))^ - Y^||_F, at known angles")
    compared = list(ways())
    for what, angles in EDGES.items():
        X, Y = pair_at(np.array(angles), rng)
        length = np.linalg.norm(angles)
        for name, distance, log in compared:
            error = abs(distance(X, Y) - length).item() / length
            back = intrinsic.exp_map(X, log(X, Y)) if log else np.full_like(Y, np.nan)
            miss = np.linalg.norm(projector(back) - projector(Y))
            print(f"{what:34s} {name:12s} {error:10.1e} {miss:10.1e}", flush=True)


def ways():
    """(package, distance(X, Y), log(X, Y) or None) of what is installed."""
    yield "ours", lambda X, Y: gs.geodesic_distance(X[None], Y[None]), intrinsic.log_map
    if peer("UQpy.utilities.distances", "UQpy"):
        from UQpy.utilities.distances import GeodesicDistance
        from UQpy.utilities.GrassmannPoint import GrassmannPoint

        yield "UQpy", lambda X, Y: GeodesicDistance().compute_distance(
            GrassmannPoint(X), GrassmannPoint(Y)), None
    manifolds = peer("pymanopt.manifolds", "pymanopt")
    if manifolds:
        manifold = manifolds.Grassmann(D, P)
        yield "pymanopt", manifold.dist, manifold.log
    grassmannian = peer("geomstats.geometry.grassmannian", "geomstats")
    if grassmannian:
        metric = grassmannian.Grassmannian(D, P).metric
        yield ("geomstats", lambda X, Y: metric.dist(projector(X), projector(Y)) / np.sqrt(2),
               None)


def main():
    header("Agreement with other packages on the same input")
    rng = np.random.default_rng(0)
    X = gs.random_subspaces(N, D, P, rng)
    print(f"{'':34s} {'':12s} {'largest':>10s} {'ms':>10s} {'ms':>10s}")
    print(f"{'':34s} {'package':12s} {'difference':>10s} {'ours':>10s} {'theirs':>10s}")
    uqpy(X)
    pymanopt(X)
    geomstats(X)
    lassos(X)
    cones(rng)
    edges(rng)


if __name__ == "__main__":
    main()
