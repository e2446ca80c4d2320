"""Log-Euclidean and intrinsic sparse coding, and the dictionaries that are learned for
them.

Both code in tangent spaces, see intrinsic.py: lE-SC in one for all queries, iSC in that
of each query. Inner products of the logarithms of atoms follow from p x p matrices
alone: with log_X(D_j) = D_j A_j - X B_j, <log_X(D_i), log_X(D_j)> = tr(A_i^T D_i^T D_j
A_j) - tr(B_i^T B_j).

Both dictionaries alternate coding and one update of each atom; the cost never rises. At
a fixed base, log is one to one onto the tangent vectors whose singular values are below
pi/2. So an atom of the log-Euclidean dictionary is a free tangent vector with that
bound, and its best value has a closed form: no gradient of log is needed. Intrinsic
atoms are seen from a tangent space for each sample; they take Riemannian gradient
steps.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import intrinsic, learn, variants
from grassmann_sc.baselines import jacobi

__all__ = [
    "tangent_grams",
    "log_euclidean_codes",
    "intrinsic_codes",
    "log_euclidean_dictionary",
    "intrinsic_dictionary",
]


# ----------------------------------------------------------------- log-Euclidean coding


TangentGrams = namedtuple("TangentGrams", "K_dd K_xd norm2")
TANGENTS_AT_A_TIME = 2**22  # their numbers, of queries


def tangent_grams(
    X: ArrayLike, D: ArrayLike, base: str | ArrayLike | None = None
) -> TangentGrams:
    """Inner products in the tangent space at base of x_i = log(X_i) and d_j = log(D_j).

    For X (n, d, p) and D (N, d, p) a named tuple: K_dd[i, j] = <d_i, d_j> (N, N),
    K_xd[i, j] = <x_i, d_j> (n, N), norm2[i] = ||x_i||^2 (n,): what grassmann_sc's
    sparse_codes and class_residuals take. base: None for the span of the first p axes,
    a subspace (d, p), or "mean", the Karcher mean of the atoms. A warning for subspaces
    at a right angle to base.

    ValueError unless X, D and a base have one d and p and orthonormal columns.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tangent
    >>> t = np.array([0.5, 1.0])  # angles of two lines to the first axis, the base
    >>> lines = np.stack([np.cos(t), np.sin(t)], axis=1)[..., None]
    >>> tangent.tangent_grams(lines[:1], lines).K_xd.round(6)
    array([[0.25, 0.5 ]])
    """
    X, D = _check_sets(X, D)
    return _tangent_grams(X, D, base, "tangent_grams")


def _tangent_grams(X, D, base, caller):
    """tangent_grams of checked X and D, a tile of queries at a time; caller: who warns."""
    base = tangent_base(base, D)
    n, d, p = X.shape
    N = len(D)
    atoms, n_right = intrinsic.log_of_checked(base, D)
    atoms = atoms.reshape(N, d * p)
    K_xd = np.empty((n, N), X.dtype)
    norm2 = np.empty(n)
    for tile in core.slices(n, max(1, TANGENTS_AT_A_TIME // (d * p))):
        H, count = intrinsic.log_of_checked(base, X[tile])
        H = H.reshape(len(H), d * p)
        K_xd[tile] = products_of_rows(H, atoms)
        norm2[tile] = np.einsum("ij,ij->i", H, H, dtype=np.float64)
        n_right += count
    intrinsic.warn_right_angles(n_right, caller)
    K_dd = atoms @ atoms.T
    return TangentGrams((K_dd + K_dd.T) / 2, K_xd, norm2)


def log_euclidean_codes(
    X: ArrayLike,
    D: ArrayLike,
    lam: ArrayLike,
    base: str | ArrayLike | None = None,
    *,
    lam_scale: str | None = None,
    positive: bool = False,
    init: core.Codes | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
    sparse_output: bool = False,
) -> core.Coded:
    """Log-Euclidean sparse coding (lE-SC).

    Codes (n, N) of X (n, d, p) over atoms D (N, d, p). min ||log(X) - sum_j y_j
    log(D_j)||^2 + lam ||y||_1 in one tangent space, the paper's log-Euclidean
    algorithm. base as in tangent_grams ("mean": the paper's lE-SC-adaptive). The lasso,
    its certificate and its options are those of grassmann_sc.sparse_codes.

    ValueError where tangent_grams or grassmann_sc.sparse_codes raises it.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tangent
    >>> t = np.array([0.5, 1.0])  # angles of two lines to the first axis, the base
    >>> lines = np.stack([np.cos(t), np.sin(t)], axis=1)[..., None]
    >>> tangent.log_euclidean_codes(lines[:1], lines[1:], lam=0.2).round(6)  # 0.5 - lam / 2
    array([[0.4]])
    """
    X, D = _check_sets(X, D)
    code = core.sparse_coding(
        (len(X), len(D)),
        lam,
        lam_scale,
        positive,
        init,
        tol,
        max_iter,
        return_info,
        sparse_output,
    )
    return code(*_tangent_grams(X, D, base, "log_euclidean_codes"))


def _check_sets(X, D):
    """Queries X (n, d, p) and atoms D (N, d, p), of one type."""
    X, D = core.check_queries_and_atoms(X, D)
    intrinsic.check_same_p(X, D, "D")
    return X, D


def tangent_base(base, D):
    """The base (d, p) that None, "mean" (of D) or a basis stands for."""
    d, p = D.shape[1:]
    if base is None:
        return np.eye(d, p, dtype=D.dtype)
    if isinstance(base, str):
        if base != "mean":
            raise ValueError(
                f"base must be None, 'mean' or a basis {d, p}, got {base!r}"
            )
        return intrinsic.karcher_mean(D)
    basis = core.check_bases(base, "base", None)
    if basis.shape != (d, p):
        raise ValueError(f"base must have shape {d, p} as the atoms, got {basis.shape}")
    return np.array(basis, D.dtype)


# --------------------------------------------------------------------- intrinsic coding


# numbers D_i^T D_j that are held at most; for more they are computed as needed
ALL_PAIRS = 2**26


def intrinsic_codes(
    X: ArrayLike,
    D: ArrayLike,
    lam: float,
    *,
    tol: float = 1e-9,
    max_iter: int = 10000,
    return_info: bool = False,
) -> np.ndarray | core.SparseCodes:
    """Intrinsic sparse coding (iSC).

    Codes (n, N) of X (n, d, p) over atoms D (N, d, p), lam >= 0. min ||sum_j y_j
    log_X(D_j)||_F^2 + lam ||y||_1 subject to sum_j y_j = 1, in the tangent space of
    each query: the paper's intrinsic coding. lam = 0 gives the code of least norm. With
    g_j = <log_X(D_j), sum_i y_i log_X(D_i)>, which need log_X of the atoms in use
    alone, an active set is solved exactly until the duality gap, and the largest
    violation of the optimality conditions (g_j = nu - lam/2 sign(y_j) on the support,
    |g_j - nu| <= lam/2 off it), are at most tol times the squared distance of the
    nearest atom, to rounding; a warning with the largest gap if max_iter rounds do not
    reach that. A warning for atoms at a right angle to a query, whose logarithm is not
    unique. return_info: a named tuple (codes, gap, n_iter).

    Many codes may have the least cost: where the query lies among the atoms, as is
    common for N > p (d - p), every y >= 0 with sum_j y_j log_X(D_j) = 0 has it. For lam
    > 0 the code is then the one at which the active set ends: it starts at the nearest
    atom, of equals the first, and takes in those of the largest violations. Every query
    goes through the same operations whatever the others are, so that its code is the
    same alone, in any batch, in any order.

    ValueError unless lam >= 0 and tol > 0, and X and D have one d and p and orthonormal
    columns.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tangent
    >>> t = np.array([0.5, 0.4, 0.7])  # angles of three lines
    >>> lines = np.stack([np.cos(t), np.sin(t)], axis=1)[..., None]
    >>> tangent.intrinsic_codes(lines[:1], lines[1:], lam=0.0).round(3)
    array([[0.667, 0.333]])
    """
    return_info = core.check_flag(return_info, "return_info")
    X, D = _check_sets(X, D)
    lam = core.check_number(lam, "lam", least=0)
    tol = core.check_number(tol, "tol", above=0)
    max_iter = core.check_integer(max_iter, "max_iter", 1)
    coded, late, n_right = intrinsic_coding(X, D, lam, tol, max_iter)
    intrinsic.warn_right_angles(n_right, "intrinsic_codes")
    variants.warn_late("intrinsic", late, coded.gap, max_iter)
    return coded if return_info else coded.codes


def intrinsic_coding(X, D, lam, tol=1e-9, max_iter=10000):
    """SparseCodes, whether each is late (n,), and how many queries have a right angle."""
    n, d, p = X.shape
    N = len(D)
    # columns as rows (p, N, d)
    atoms = np.array(D.transpose(2, 0, 1), np.float64, order="C")
    rows = atoms.reshape(p * N, d)
    pairs = np.empty((0, 0, 0, 0))
    if (p * N) ** 2 <= ALL_PAIRS:
        pairs = np.matmul(rows, rows.T).reshape(p, N, p, N)  # D_i^T D_j
    codes = np.empty((n, N), X.dtype)
    gap = np.empty(n)
    n_iter = np.empty(n, np.int64)
    late = np.empty(n, bool)
    n_right = 0
    for tile in core.slices(n, max(1, core.TILE // (p * max(p * N, d)))):
        # columns as rows (t, p, d)
        x = np.array(X[tile].swapaxes(1, 2), np.float64, order="C")
        # C[i, a, b, j] = (X_i^T D_j)[a, b], whatever else is in the tile
        C = products_of_rows(x.reshape(-1, d), rows).reshape(-1, p, p, N)
        if lam > 0:
            parts = core.run_blocks(
                lambda some: _affine_lassos(
                    C[some], x[some], atoms, pairs, lam / 2, tol, max_iter
                ),
                len(C),
                16,
            )
            results = [np.concatenate(part) for part in zip(*parts)]
        else:
            results = _least_squares_of_tile(C, x, atoms, pairs)
        codes[tile], gap[tile], n_iter[tile], late[tile], least_cosine = results
        n_right += np.sum(least_cosine <= intrinsic.right_angle_cosine(X.dtype, p))
    return core.SparseCodes(codes, gap, n_iter), late, n_right


def _least_squares_of_tile(C, x, atoms, pairs):
    """_affine_lassos for lambda = 0: the y of least norm among the minimisers."""
    factors, _, least_cosine = log_factors(C)
    grams = (_log_gram(*both, atoms, pairs) for both in zip(factors, x))
    codes, gap = zip(*map(_affine_least_squares, grams))
    return codes, gap, 0, False, least_cosine


def _affine_least_squares(G):
    """The least-norm minimiser y of y^T G y with sum_j y_j = 1, and its gap."""
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    null = values <= 1e-13 * len(G) * values[-1]
    sums = vectors.sum(axis=0)  # of the eigenvectors
    share = sums[null] @ sums[null]  # squared norm of 1 projected on the null space
    kept = null if share > 1e-12 * len(G) else ~null
    y = vectors[:, kept] @ (sums / np.where(null, 1, values))[kept]
    y /= y.sum()
    g = G @ y
    return y, min(y @ g, (g.max() - g.min()) * np.abs(y).sum() * 2)


# ---------------------------------------------------- lassos on G = <log D_i, log D_j>

# One query: log_X(D_j) = D_j A_j - X B_j, with factors A and B (p, p, N); columns of X as
# rows x (p, d), and of the atoms (p, N, d); pairs (p, N, p, N), columns of D_i^T D_j,
# empty if they are not at hand; by_vectors: are inner products to be taken from the
# tangent vectors themselves?
_Logarithms = namedtuple("_Logarithms", "A B x atoms pairs by_vectors")


@core.jit(long=True, parts=variants)
def _affine_lassos(C, x, atoms, pairs, half, tol, max_iter):
    """Codes (n, N) with sum 1 of queries x (n, p, d), for half = lambda / 2 > 0.

    gap, n_iter, late, and the smallest cosines (n, N). C (n, p, p, N) as for
    log_factors.
    """
    n = len(C)
    N = C.shape[3]
    codes = np.empty((n, N))
    gap = np.empty(n)
    n_iter = np.empty(n, np.int64)
    late = np.empty(n, np.bool_)
    least = np.empty((n, N))
    w = variants.active_set(N)
    for i in range(n):
        factors, square, cosines = log_factors(C[i : i + 1])
        core.copy(cosines[0], least[i], N)
        nearest = square[0].argmin()
        peak = square[0].max()
        # so near that the difference of traces would cancel
        by_vectors = pairs.size == 0 or square[0, nearest] < 1e-7 * len(atoms)
        logs = _Logarithms(factors[0, 0], factors[0, 1], x[i], atoms, pairs, by_vectors)
        limit = tol * square[0, nearest] + 1e-14 * (peak + half)
        lift = max(peak, 1e-8)
        gap[i], n_iter[i], late[i] = variants.affine_lasso(
            w, _log_column, logs, nearest, half, lift, limit, max_iter
        )
        core.copy(w.y, codes[i], N)
    return codes, gap, n_iter, late, least


@core.jit
def _log_gram(factors, x, atoms, pairs):
    """G[j, i] = <log_X(D_i), log_X(D_j)> (N, N) for one query x (p, d)."""
    N = atoms.shape[1]
    G = np.empty((N, N))
    logs = _Logarithms(factors[0], factors[1], x, atoms, pairs, pairs.size == 0)
    for j in range(N):
        _log_column(logs, j, G[j])
    return G


@core.inlined_jit(allocates=True)
def _log_column(logs, j, column):
    """column[i] = <log_X(D_i), log_X(D_j)> for all i."""
    A, B, _, atoms, pairs, by_vectors = logs
    p, N, _ = atoms.shape
    for i in range(N):
        column[i] = 0.0
    if by_vectors:
        _log_column_by_vectors(logs, j, column)
        return
    part = np.empty(N)
    for a in range(p):
        for b in range(p):
            for i in range(N):
                part[i] = 0.0
            for c in range(p):  # (D_i^T D_j A_j)[a, b]
                core.axpy(A[c, b, j], pairs[c, j, a], part, N)
            for i in range(N):
                column[i] += A[a, b, i] * part[i] - B[a, b, i] * B[a, b, j]


@core.inlined_jit(allocates=True)
def _log_column_by_vectors(logs, j, column):
    """The same, from H = log_X(D_j).

    X^T H = 0, so that <log_X(D_i), H> = tr(A_i^T D_i^T H).
    """
    A, B, x, atoms, _, _ = logs
    p, N, d = atoms.shape
    h = np.empty(d)  # a column of H
    for b in range(p):
        for k in range(d):
            h[k] = 0.0
        for a in range(p):
            core.axpy(A[a, b, j], atoms[a, j], h, d)
            core.axpy(-B[a, b, j], x[a], h, d)
        for a in range(p):  # short vectors too are tangent relative to their own length
            core.axpy(-core.dot(x[a], h, d), x[a], h, d)
        for a in range(p):
            for i in range(N):
                column[i] += A[a, b, i] * core.dot(atoms[a, i], h, d)


# ------------------------------------------------------- dictionaries in tangent spaces

# the share of the fall that a slope promises with which a step is content
ARMIJO = 1e-4


LogEuclideanDictionary = namedtuple("LogEuclideanDictionary", "atoms codes costs base")


def log_euclidean_dictionary(
    X: ArrayLike,
    n_atoms: int,
    lam: float,
    *,
    base: str | ArrayLike | None = None,
    positive: bool = False,
    init: str | ArrayLike = "kmeans++",
    n_iter: int = 20,
    tol: float = 1e-6,
    rng: core.Rng = None,
) -> LogEuclideanDictionary:
    """Learn n_atoms atoms from X (n, d, p) for log_euclidean_codes.

    (atoms, codes, costs, base). min sum_i ||log(X_i) - sum_j y_ij log(D_j)||^2 + lam
    ||y_i||_1 over codes and atoms D_j (d, p), in one tangent space. For fixed codes and
    other atoms the cost is, to a constant, (sum_i y_ir^2) ||log(D_r) - T_r||^2 with

        T_r = sum_i y_ir (log(X_i) - sum_{j != r} y_ij log(D_j)) / sum_i y_ir^2:

    the best atom is T_r, or, where its singular values exceed pi/2 (less rounding), the
    nearest that has them clipped. Without that bound, the l1 norm would make the
    logarithms of atoms grow for ever. An atom that no sample uses is replaced by the
    sample that is coded worst.

    base: as in tangent_grams, "mean": the Karcher mean of X; the base in use is
    returned, for log_euclidean_codes(X, atoms, lam, base). positive: codes >= 0. init:
    a method of learn.init_atoms, or atoms (n_atoms, d, p). Ends after n_iter
    iterations, or one that lowers the cost by at most tol times it. costs: of the first
    codes, then two an iteration, after the atoms and after the codes. A warning for
    samples at a right angle to base.

    ValueError for lam < 0, fewer samples than atoms, or a base or init of another d
    or p.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines import tangent
    >>> X = random_subspaces(8, 6, 2, rng=0)
    >>> atoms, codes, costs, base = tangent.log_euclidean_dictionary(X, 3, 0.1, rng=0)
    >>> atoms.shape, bool(costs[-1] < costs[0])
    ((3, 6, 2), True)
    """
    X, atoms, lam, n_iter, tol = _check_problem(X, n_atoms, lam, init, n_iter, tol, rng)
    n, d, p = X.shape
    coding = core.sparse_coding((n, len(atoms)), lam, positive=positive)
    base = tangent_base(base, X)
    H, n_right = intrinsic.log_of_checked(base, X)
    intrinsic.warn_right_angles(n_right, "log_euclidean_dictionary")
    tangents, _ = intrinsic.log_of_checked(base, atoms)
    H = H.astype(np.float64).reshape(n, d * p)
    bound = math.pi / 2 - math.sqrt(np.finfo(X.dtype).eps)
    tangents = _clipped(tangents.astype(np.float64), bound)
    norm2 = np.einsum("ij,ij->i", H, H)

    def code(tangents, before):
        K, k = _tangent_products(H, tangents)
        codes = coding._replace(init=before)(K, k, norm2)
        return _losses_in_tangents(K, k, codes, norm2, lam), codes

    def update(tangents, codes):
        tangents = _update_tangents(H, tangents, codes, bound)
        tangents -= np.matmul(base, np.matmul(base.T, tangents))  # rounding
        return tangents, _losses_in_tangents(
            *_tangent_products(H, tangents), codes, norm2, lam
        )

    first = _clipped(H.reshape(n, d, p), bound)  # what a sample is as an atom
    tangents, codes, costs = _alternated(X, first, tangents, code, update, n_iter, tol)
    atoms = intrinsic.exp_map(base.astype(np.float64), tangents).astype(X.dtype)
    return LogEuclideanDictionary(atoms, codes.astype(X.dtype), costs, base)


def _check_problem(X, n_atoms, lam, init, n_iter, tol, rng):
    """Samples, first atoms of their type, and the checked numbers."""
    X = core.check_dictionary(X, "X")
    n_atoms = core.check_integer(n_atoms, "n_atoms", 1)
    lam = core.check_number(lam, "lam", least=0, most=1 / core.LEAST_SCALE)
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    tol = core.check_number(tol, "tol", least=0)
    atoms = learn.first_atoms(X, n_atoms, init, core.check_rng(rng), None)
    return X, atoms.astype(X.dtype), lam, n_iter, tol


def _alternated(X, samples, atoms, code, update, n_iter, tol):
    """Atoms, codes (n, N) and costs after turns of update and coding.

    No turn raises a cost. code(atoms, codes before or None): the losses of samples X,
    (n,), their codes, and what else is held of each; update(atoms, codes, ...): atoms,
    and the losses with these. A sample whose new code is worse keeps the old. Unused
    atoms are replaced by samples (n, d, p).
    """
    losses, *notes = code(atoms, None)
    costs = [losses.sum()]
    while len(costs) // 2 < n_iter:
        atoms, losses = update(atoms, *notes)
        costs.append(losses.sum())
        idle, worst = learn.idle_and_worst(notes[0].any(axis=0), X, losses)
        atoms[idle] = samples[worst]
        after, *new = code(atoms, notes[0])
        better = after <= losses
        for old, later in zip(notes, new):
            old[better] = later[better]
        costs.append(np.where(better, after, losses).sum())
        if costs[-3] - costs[-1] <= tol * costs[-3]:
            break
    return atoms, notes[0], np.array(costs)


def _clipped(H, bound):
    """The nearest matrices to H (N, d, p) whose singular values are at most the bound."""
    left, s, right = np.linalg.svd(H, full_matrices=False)
    return np.matmul(left * np.minimum(s, bound)[:, None, :], right)


def _update_tangents(H, tangents, codes, bound):
    """Each tangent vector (N, d, p) in turn at its best for fixed codes; see above."""
    N, d, p = tangents.shape
    flat = tangents.reshape(N, d * p).copy()
    G = codes.T @ codes
    B = codes.T @ H
    for r in range(N):
        if G[r, r] > 0:
            best = flat[r] + (B[r] - G[r] @ flat) / G[r, r]
            flat[r] = _clipped(best.reshape(1, d, p), bound).ravel()
    return flat.reshape(N, d, p)


def _tangent_products(H, tangents):
    """Inner products of the atoms (N, N), and of samples with atoms (n, N)."""
    flat = tangents.reshape(len(tangents), -1)
    K = flat @ flat.T
    return (K + K.T) / 2, H @ flat.T


def _losses_in_tangents(K, k, codes, norm2, lam):
    """||x_i - sum_j y_ij d_j||^2 + lam ||y_i||_1 (n,)."""
    return (
        norm2
        + ((codes @ K - 2 * k) * codes).sum(axis=1)
        + lam * np.abs(codes).sum(axis=1)
    )


# ----------------------------------------------------------------- intrinsic dictionary


IntrinsicDictionary = namedtuple("IntrinsicDictionary", "atoms codes costs")


def intrinsic_dictionary(
    X: ArrayLike,
    n_atoms: int,
    lam: float,
    *,
    init: str | ArrayLike = "kmeans++",
    n_iter: int = 20,
    tol: float = 1e-6,
    rng: core.Rng = None,
) -> IntrinsicDictionary:
    """Learn n_atoms atoms from X (n, d, p) for intrinsic_codes: (atoms, codes, costs).

    min sum_i ||sum_j y_ij log_{X_i}(D_j)||^2 + lam ||y_i||_1 subject to sum_j y_ij = 1,
    over codes and atoms, after Xie, Ho and Vemuri (ICML 2013). Each atom in turn takes
    a step along the geodesic against its Riemannian gradient, 2 sum_i y_ir
    log_adjoint(X_i, D_r, V_i) with V_i = sum_j y_ij log_{X_i}(D_j), first of the length
    1 / (2 sum_i y_ir^2) that is exact in flat space, then halved until the cost falls
    enough; an atom for which it does not stays. So the cost never rises. Atoms tend to
    move outwards, since samples between them are coded exactly, until one is at a right
    angle to a sample: log jumps there, and the atom may stop short of a minimum. An
    atom that no sample uses is replaced by the sample that is coded worst. init,
    n_iter, tol, costs: as in log_euclidean_dictionary.

    ValueError for lam < 0, fewer samples than atoms, or an init of another d or p.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines import tangent
    >>> X = random_subspaces(8, 20, 2, rng=0)
    >>> atoms, codes, costs = tangent.intrinsic_dictionary(X, 3, 0.1, n_iter=2, rng=0)
    >>> atoms.shape, bool(costs[-1] < costs[0])
    ((3, 20, 2), True)
    """
    X, atoms, lam, n_iter, tol = _check_problem(X, n_atoms, lam, init, n_iter, tol, rng)
    samples = X.astype(np.float64)

    def code(atoms, before):
        (codes, *_), *_ = intrinsic_coding(samples, atoms, lam)  # no worse one is taken
        V = _combinations(samples, atoms, codes)
        return _intrinsic_losses(V, codes, lam), codes, V

    def update(atoms, codes, V):
        atoms = np.stack(
            [
                _gradient_step(samples, atom, codes[:, r], V)
                for r, atom in enumerate(atoms)
            ]
        )
        return atoms, _intrinsic_losses(V, codes, lam)

    atoms, codes, costs = _alternated(
        X, samples, atoms.astype(np.float64), code, update, n_iter, tol
    )
    return IntrinsicDictionary(atoms.astype(X.dtype), codes.astype(X.dtype), costs)


def _combinations(samples, atoms, codes):
    """V_i = sum_j y_ij log_{X_i}(D_j), (n, d, p)."""
    V = np.zeros_like(samples)
    for r, atom in enumerate(atoms):
        rows = np.flatnonzero(codes[:, r])
        H, _ = intrinsic.log_of_checked(samples[rows], atom)
        V[rows] += codes[rows, r, None, None] * H
    return V


def _intrinsic_losses(V, codes, lam):
    return (V * V).sum(axis=(1, 2)) + lam * np.abs(codes).sum(axis=1)


def _gradient_step(samples, atom, y, V):
    """The atom (d, p) after a step; V (n, d, p) follows. y (n,): its coefficients."""
    rows = np.flatnonzero(y)
    if len(rows) == 0:
        return atom
    X = samples[rows]
    y = y[rows, None, None]
    H, _ = intrinsic.log_of_checked(X, atom)
    rest = V[rows] - y * H
    before = (V[rows] ** 2).sum()
    G = 2 * (y * intrinsic.log_adjoint(X, atom, V[rows])).sum(axis=0)
    G -= atom @ (atom.T @ G)  # rounding
    slope = (G * G).sum()
    t = 1 / (2 * (y * y).sum())
    for _ in range(30):
        if t * slope <= 1e-15 * before:
            break
        trial = core.orthonormalize(intrinsic.exp_map(atom, -t * G))
        H, _ = intrinsic.log_of_checked(X, trial)
        combined = rest + y * H
        if (combined**2).sum() <= before - ARMIJO * t * slope:
            V[rows] = combined
            return trial
        t /= 2
    return atom


# ---------------------------------------------------- logarithms of all atoms, compiled

# intrinsic.py says the same in NumPy for any pairs. The one-sided Jacobi rotations below
# are faster for small p than NumPy's batched singular value decomposition.
#
# Queries are rows x (n, p, d): x[i, a] is column a of X_i. Atoms are rows (p, N, d):
# atoms[a, j] is column a of D_j. Then C[i, a, b, j] = (X_i^T D_j)[a, b] is one matrix
# product for all of them.


def products_of_rows(X, Y):
    """X_i^T Y_j (n, N) of rows X (n, m), Y (N, m).

    Each summed in one order, in float64, in threads. So a product depends on its two
    rows alone. What BLAS makes of a row depends, by rounding, on how many there are;
    where minimisers are not unique, that would choose among them.
    """
    out = np.empty((len(X), len(Y)), X.dtype)
    core.run_blocks(lambda rows: _fill_products(X[rows], Y, out[rows]), len(X), 32)
    return out


@core.jit
def _fill_products(X, Y, out):
    m = X.shape[1]
    n_near = max(1, 2**14 // m)  # rows of Y that stay in cache
    for first in range(0, len(Y), n_near):
        for i in range(len(X)):
            for j in range(first, min(first + n_near, len(Y))):
                out[i, j] = core.dot(X[i], Y[j], m)


@core.jit(long=True, parts=jacobi)
def log_factors(C):
    """Factors A_j, B_j of log_X(D_j) = D_j A_j - X B_j.

    They come from C[i, :, :, j] = X_i^T D_j = U cos(Theta) V^T. A = V phi U^T and B = U
    cos(Theta) phi U^T with phi = Theta / sin(Theta). Returns factors (n, 2, p, p, N),
    which hold A and B, ||Theta||^2 (n, N) and the smallest cosines (n, N).
    """
    n, p, _, N = C.shape
    factors = np.empty((n, 2, p, p, N))
    square = np.empty((n, N))
    least = np.empty((n, N))
    U = np.empty((p, p))  # columns of U and V, as rows
    V = np.empty((p, p))
    cosine = np.empty(p)
    phi = np.empty(p)
    for i in range(n):
        for j in range(N):
            for a in range(p):
                for b in range(p):
                    U[b, a] = C[i, a, b, j]
                    V[b, a] = 1.0 if a == b else 0.0
            jacobi.orthogonal_rows(U, V)
            square[i, j], least[i, j] = _angles_of_columns(U, cosine, phi)
            for a in range(p):
                for b in range(p):
                    A = 0.0
                    B = 0.0
                    for k in range(p):
                        A += V[k, a] * phi[k] * U[k, b]
                        B += U[k, a] * phi[k] * cosine[k] * U[k, b]
                    factors[i, 0, a, b, j] = A
                    factors[i, 1, a, b, j] = B
    return factors, square, least


@core.inlined_jit(allocates=True)
def _angles_of_columns(T, cosine, phi):
    """The columns of T = U cos(Theta), held as rows, become U; sets cosine and phi.

    Returns ||Theta||^2 and the smallest cosine. A column that vanishes is a right
    angle: any direction that is left will do.
    """
    p = len(T)
    square = 0.0
    least = 1.0
    for k in range(p):
        cosine[k] = math.sqrt(core.dot(T[k], T[k], p))
        if cosine[k] < 1e-70:
            cosine[k] = 0.0
            _complete(T, k)
        else:
            for a in range(p):
                T[k, a] /= cosine[k]
        sine = math.sqrt(max((1 - cosine[k]) * (1 + cosine[k]), 0.0))
        theta = math.atan2(sine, cosine[k])
        phi[k] = theta / sine if sine > 0 else 1.0
        square += theta * theta
        least = min(least, cosine[k])
    return square, least


@core.inlined_jit(allocates=True)
def _complete(T, k):
    """Make row k of T a unit vector orthogonal to the others.

    These are orthogonal or vanish.
    """
    p = len(T)
    best = 0.0
    trial = np.empty(p)
    for e in range(p):  # from each axis
        trial[:] = 0.0
        trial[e] = 1.0
        for _ in range(2):
            for j in range(p):
                square = core.dot(T[j], T[j], p)
                if j != k and square > 1e-140:
                    core.axpy(-core.dot(T[j], trial, p) / square, T[j], trial, p)
        size = core.dot(trial, trial, p)
        if size > best:
            best = size
            core.copy(trial, T[k], p)
    for a in range(p):
        T[k, a] /= math.sqrt(best)
