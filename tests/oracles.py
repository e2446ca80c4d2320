"""What the suite and the benchmarks need beside grassmann_sc.strategies: explicit
oracles, samples of a seed, tolerances.

The suite knows two tolerances. For float32, `rounding` scales them from the rounding of
float64 to that of float32.
"""

import hypothesis.strategies as st
import numpy as np
import scipy.linalg
import scipy.optimize
from hypothesis import settings

from grassmann_sc.strategies import KINDS, bases, coding_problem, explicit_gram, sizes
from grassmann_sc.subspaces import observability

TIGHT = 1e-12
LOOSE = 1e-8

seeds = st.integers(0, 2**32 - 1)
# Of a law that is dear the suite tries one problem, make stress others too.
rarely = settings(max_examples=1 if settings.default.derandomize else 15)
booleans = st.booleans()
dtypes = st.sampled_from([np.float64, np.float64, np.float32])


def rounding(dtype, tol=TIGHT):
    return tol * np.finfo(dtype).eps / np.finfo(np.float64).eps


def hat(X):
    """X^ = X X^T of each basis, (..., d, d)."""
    return X @ np.swapaxes(X, -1, -2)


def vectors(X):
    """vec(X X^T) of each subspace, (n, d^2)."""
    return hat(X).reshape(len(X), -1)


def error(A, B):
    return np.abs(np.asarray(A) - B).max(initial=0)


def cost(problem, codes):
    """||X^ - sum_j y_j D_j^||^2 + lam ||y||_1 of each query, from d x d matrices."""
    residual = vectors(problem.X) - codes @ vectors(problem.D)
    return np.square(residual).sum(axis=1) + problem.lam * np.abs(codes).sum(axis=1)


def violation(K, k, y, lam, positive=False):
    """Largest violation of the optimality conditions: <D_j^, r> = lam/2 sign y_j, and
    at most lam/2 in size where y_j = 0.
    """
    g = k - K @ y
    on_support = np.abs(g - lam / 2 * np.sign(y))
    elsewhere = np.maximum((g if positive else np.abs(g)) - lam / 2, 0)
    return np.where(y != 0, on_support, elsewhere).max()


def worst_violation(problem, codes, positive=False):
    return max(
        violation(problem.K_dd, k, y, problem.lam, positive)
        for k, y in zip(problem.K_xd, codes)
    )


@st.composite
def regular_problems(draw, share=st.sampled_from([1e-2, 0.1, 0.5])):
    """Coding problems of one well-conditioned solution: random atoms, fewer than half
    of d(d+1)/2.
    """
    d = draw(st.integers(3, 7))
    rng = np.random.default_rng(draw(seeds))
    p = draw(st.integers(1, d // 2))
    N = draw(st.integers(1, d * (d + 1) // 5))
    X = bases(rng, draw(st.integers(1, 4)), d, p)
    D = bases(rng, N, d, p)
    return coding_problem(X, D, draw(share) * 2 * np.abs(explicit_gram(X, D)).max())


def noisy_image_sets(n=60, d=12, n_classes=3, seed=0):
    """(sets of 4 to 6 noisy frames, labels): each class has a pattern space of
    dimension 3.
    """
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((n_classes, 3, d))
    y = np.arange(n) % n_classes
    sets = []
    for c, size in zip(y, rng.integers(4, 7, n)):
        frames = rng.standard_normal((size, 3)) @ patterns[c]
        sets.append(frames + 0.8 * rng.standard_normal((size, d)))
    return sets, np.array(["ape", "bee", "cat", "dog"])[y]


# ------------------------------------------------------------------ dictionary learning


def explicit_cost(X, D, codes, lam=0.0):
    """sum_i ||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1 with d x d matrices."""
    R = hat(X) - np.einsum("nj,jab->nab", codes, hat(D))
    return (R**2).sum() + lam * np.abs(codes).sum()


def clusters(rng, n, d, p, n_clusters):
    """n subspaces close to n_clusters centres, taken in turn."""
    centres = bases(rng, n_clusters, d, p)
    noise = 0.01 * rng.standard_normal((n, d, p))
    return np.linalg.qr(centres[np.arange(n) % n_clusters] + noise)[0]


@st.composite
def samples_and_atoms(draw):
    """(X, n_atoms, seed): random, clustered, repeated, nearly repeated or orthogonal
    samples.
    """
    d, p = draw(sizes(st.integers(1, 7)))
    seed = draw(seeds)
    rng = np.random.default_rng(seed)
    n = draw(st.integers(1, 12))
    kind = draw(st.sampled_from(["clustered", *KINDS]))
    X = (
        clusters(rng, n, d, p, min(n, 3))
        if kind == "clustered"
        else bases(rng, n, d, p, kind)
    )
    return X, draw(st.integers(1, n)), seed


def statistics(learner):
    """Y^T Y and the explicit sum_i y_ir X_i^ of each atom of an OnlineGDL, as its file
    holds them.
    """
    state = learner.state()
    rows = state["rows"]
    matrices = np.einsum("nra,nr,nrb->nab", rows, state["sizes"], rows)
    if state["matrices"].size:
        matrices = matrices + state["units"][:, None, None] * state["matrices"]
    return state["shared"], matrices


def explicit_errors(X, D, index, ridge):
    """e_c(X) and the codes, by least squares on d x d matrices with rows of the ridge
    below.
    """
    n_classes = index.max() + 1
    errors = np.empty((len(X), n_classes))
    codes = np.zeros((len(X), len(D)))
    for c in range(n_classes):
        mine = index == c
        A = np.vstack([vectors(D[mine]).T, np.sqrt(ridge) * np.eye(mine.sum())])
        B = np.hstack([vectors(X), np.zeros((len(X), mine.sum()))]).T
        y = np.linalg.lstsq(A, B, rcond=None)[0]
        errors[:, c] = np.square(B - A @ y).sum(axis=0)
        codes[:, mine] = y.T
    return errors, codes


# -------------------------------------------------------------- baselines, pair by pair


def each_pair(function, X, Y, *options):
    return np.array([[function(a, b, *options) for b in Y] for a in X])


def cosines(A, B):
    """Of the principal angles."""
    return np.linalg.svd(A.T @ B, compute_uv=False)


def clouds(rng, n, d, fewest=1, most=8, apart=1.5):
    """n sets of frames about centres of their own."""
    return [
        rng.standard_normal((rng.integers(fewest, most + 1), d))
        + apart * rng.standard_normal(d)
        for _ in range(n)
    ]


def directions(frames, k):
    """The mean, and k leading principal directions (d, k)."""
    mean = frames.mean(axis=0)
    return mean, np.linalg.svd(frames - mean, full_matrices=False)[2][:k].T


def dimension_of(frames, share):
    """How many principal directions hold the share of the variance."""
    s2 = np.linalg.svd(frames - frames.mean(axis=0), compute_uv=False) ** 2
    if len(frames) == 1 or not s2.any():
        return 0
    return next(
        k for k in range(len(s2) + 1) if s2[:k].sum() >= share * s2.sum() * (1 - 1e-12)
    )


def affine_distance(A, B, share=None, k=None):
    """||mu_A + U v - mu_B - W w|| at the least-squares v and w, of so many directions."""
    (mean_a, U), (mean_b, W) = (
        directions(F, dimension_of(F, share) if k is None else k) for F in (A, B)
    )
    both = np.hstack([U, W])
    offset = mean_a - mean_b
    if both.size:
        offset = offset - both @ np.linalg.lstsq(both, offset, rcond=1e-7)[0]
    return np.linalg.norm(offset)


def convex_distance(A, B, bound=1.0, ftol=1e-17):
    """The distance of two convex hulls, of coefficients up to a bound, by SciPy's SLSQP.

    It ends with sums that are off by 1e-8 and more, so the best of points that are
    scaled to sum 1 counts, and is the start of another run. It may also end far from
    the least, which its own rounding decides: a step of Frank and Wolfe's, towards the
    point that the gradient likes best, leads away from there.
    """
    counts = [len(A), len(B)]
    Z = np.vstack([A, -B])
    G = Z @ Z.T
    sides = np.repeat(np.eye(2), counts, axis=1)
    start = np.repeat(np.divide(1, counts), counts)
    lengths = []
    for _ in range(4):
        solution = scipy.optimize.minimize(
            lambda z: z @ G @ z / 2,
            start,
            jac=lambda z: G @ z,
            method="SLSQP",
            bounds=[(0, bound)] * len(Z),
            options={"ftol": ftol, "maxiter": 2000},
            constraints={
                "type": "eq",
                "fun": lambda z: sides @ z - 1,
                "jac": lambda z: sides,
            },
        )
        z = np.clip(solution.x, 0, bound)
        start = z / (sides.T @ (sides @ z))
        lengths.append(np.linalg.norm(Z.T @ start))
        gradient = G @ start
        step = -start
        for side in sides.astype(bool):
            rank = gradient[side].argsort().argsort()
            step[side] += np.clip(1 - bound * rank, 0, bound)
        curvature = max(step @ G @ step, np.finfo(float).tiny)
        start = start + np.clip(-gradient @ step / curvature, 0, 1) * step
    return min(lengths)


def gda_matrices(labels):
    """Of scatter between and within classes, in feature space."""
    same = np.equal.outer(labels, labels)
    V = same / same.sum(axis=1)
    return V - 1 / len(V), np.eye(len(V)) - V


def ggda_matrices(labels, beta=1.0):
    """The same of graph embedding."""
    same = np.equal.outer(labels, labels)
    W_w = same & ~np.eye(len(same), dtype=bool)
    L_b = np.diag((~same).sum(axis=1)) - ~same
    return L_b + beta * W_w, np.diag(W_w.sum(axis=1))


def discriminants(K, between, within, reg):
    """(values, vectors) of the generalised eigenproblem as it is printed, the largest
    first.
    """
    ridge = reg * np.trace(K @ K) / len(K) * np.eye(len(K))
    values, vectors = scipy.linalg.eigh(K @ between @ K, K @ within @ K + ridge)
    return values[::-1], vectors[:, ::-1]


def random_system(rng, s, d, radius):
    A = rng.standard_normal((s, s))
    A *= radius / np.abs(np.linalg.eigvals(A)).max()
    return A, rng.standard_normal((d, s))


def long_bases(systems, n_blocks=500):
    """Of observability matrices so long that A^n is gone."""
    return np.stack(
        [np.linalg.qr(observability(A, C, n_blocks))[0] for A, C in systems]
    )
