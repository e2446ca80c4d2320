"""Intrinsic geometry of subspaces and the coding that lives in tangent spaces: log-Euclidean and intrinsic (iSC).

These are the rivals that the paper compares gSC with. A tangent vector at X (d, p) is a matrix H (d, p) with X^T H = 0; its
norm is Frobenius', so that ||log_X(Y)||_F is the geodesic distance, the 2-norm of the principal angles.

All logarithms come from one small singular value decomposition a pair. With X^T Y = U cos(Theta) V^T and phi(c) =
arccos(c) / sqrt(1 - c^2), which is smooth up to c = 1 and at right angles,

    log_X(Y) = (Y V - X U cos(Theta)) phi(cos(Theta)) U^T = Y A - X B,   A = V phi U^T,   B = U cos(Theta) phi U^T.

Y V U^T is Y aligned with X by Procrustes, so nothing is divided by an angle, a sine or a cosine. Inner products of the
logarithms of atoms follow from p x p matrices alone: <log_X(D_i), log_X(D_j)> = tr(A_i^T D_i^T D_j A_j) - tr(B_i^T B_j).
"""

import math
import warnings
from collections import namedtuple

import numpy as np

import grassmann_sc as core

KarcherMean = namedtuple("KarcherMean", "mean gradient n_iter")
IntrinsicCodes = namedtuple("IntrinsicCodes", "codes gap n_iter")
TangentGrams = namedtuple("TangentGrams", "K_dd K_xd norm2")
_jit = core._jit
LANES = 32  # pairs whose small matrices are decomposed at a time, side by side in vector registers
ALL_PAIRS = 2**26  # numbers D_i^T D_j that intrinsic_codes holds at most; for more atoms they are computed as needed


# ---------------------------------------------------------------------------- exp, log, geodesics


def exp_map(X, H):
    """exp_X(H): the subspaces reached from X (..., d, p) along the tangent vectors H (..., d, p); (..., d, p) bases.

    With the thin SVD H = Q Theta W^T it is (X W cos(Theta) + Q sin(Theta)) W^T. Leading axes broadcast. ValueError unless
    X^T H = 0, relative to the norm of H (what is left of it is projected out).
    """
    X, H = core._bases(X, "X", None), core._finite(H, "H")
    if H.ndim < 2 or H.shape[-2:] != X.shape[-2:]:
        raise ValueError(f"H must have shape (..., {X.shape[-2]}, {X.shape[-1]}) as X, got {H.shape}")
    lead, (x, h) = _lead(X, H, "XH")
    dtype = np.result_type(X, H)
    out, tol = np.empty((len(x), *X.shape[-2:]), dtype), 1e-3 if np.float32 in (X.dtype, H.dtype) else 1e-6
    X, H = X.reshape(-1, *X.shape[-2:]), H.reshape(-1, *H.shape[-2:])

    def job(block):
        points, tangents = X[x[block]].astype(np.float64), H[h[block]].astype(np.float64)  # (t, d, p)
        inside = np.matmul(points.swapaxes(1, 2), tangents)  # (t, p, p), zero to rounding
        size = np.abs(inside).max(axis=(1, 2)) / np.maximum(1, np.linalg.norm(tangents, axis=(1, 2)))
        if not (size <= tol).all():
            i = int(size.argmax())
            raise ValueError(f"H must be tangent at X, X^T H = 0: got entries up to {np.abs(inside[i]).max():.2g} at "
                             f"index {block.start + i}; subtract X X^T H first")
        out[block] = _exp(points, tangents - np.matmul(points, inside))

    core._in_threads(job, len(out), max(1, 2**16 // X[0].size) if len(X) else 1, blas=True)
    return out.reshape(*lead, *out.shape[1:])


def _exp(X, H):
    Q, theta, Wt = np.linalg.svd(H, full_matrices=False)  # (..., d, p), (..., p), (..., p, p)
    XW = np.matmul(X, Wt.swapaxes(-1, -2))
    return np.matmul(XW * np.cos(theta)[..., None, :] + Q * np.sin(theta)[..., None, :], Wt)


def log_map(X, Y):
    """log_X(Y): the shortest tangent vectors H (..., d, p) at X (..., d, p) with exp_X(H) = Y (..., d, p).

    ||H||_F is the geodesic distance; the singular values of H are the principal angles. Exact to rounding for any pair, near
    and at right angles too. At a right angle the shortest geodesic is not unique: a warning, and one of them. H depends on the
    basis of X as a tangent vector does (log_{XR}(Y) = log_X(Y) R), not on that of Y. Leading axes broadcast.
    """
    H, count = _log(*_two(X, Y))
    _warn_right_angles(count, "log_map")
    return H


def geodesic(X, Y, t):
    """The points at times t of the shortest geodesics from X (..., d, p), t = 0, to Y (..., d, p), t = 1; (..., d, p) bases.

    exp_X(t log_X(Y)), of constant speed; any real t. The shape of t broadcasts with the leading axes of X and Y. A warning
    where a right angle makes the geodesic non-unique.
    """
    X, Y = _two(X, Y)
    t = core._finite(t, "t")
    H, count = _log(X, Y)
    _warn_right_angles(count, "geodesic")
    try:
        lead = np.broadcast_shapes(t.shape, H.shape[:-2])
    except ValueError:
        raise ValueError(f"t must broadcast with the leading axes {H.shape[:-2]} of X and Y, got shape {t.shape}") from None
    X = np.broadcast_to(X, H.shape) if X.ndim < H.ndim else X
    H = np.broadcast_to(t[..., None, None].astype(H.dtype, copy=False) * H, (*lead, *H.shape[-2:]))
    return exp_map(X, H)


def _two(X, Y):
    """X and Y checked: bases of one type, d and p."""
    X, Y = core._same_d(core._bases(X, "X", None), core._bases(Y, "Y", None), "XY")
    _same_p(X, Y, "Y")
    return X, Y


def _same_p(X, Y, name):
    if X.shape[-1] != Y.shape[-1]:
        raise ValueError(f"{name} must have the p of X, got {Y.shape[-1]} and {X.shape[-1]}")


def _lead(X, Y, names):
    """The broadcast leading shape of X and Y (..., d, p), and for each of its members the indices into X and Y."""
    try:
        lead = np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    except ValueError:
        raise ValueError(f"{names[0]} and {names[1]} must have leading axes that broadcast, got shapes {X.shape} and "
                         f"{Y.shape}") from None
    indices = [np.arange(A[..., 0, 0].size).reshape(A.shape[:-2]) for A in (X, Y)]
    return lead, [np.broadcast_to(index, lead).ravel() for index in indices]


def _log(X, Y):
    """log_X(Y) for checked X, Y (..., d, p), and the number of pairs at right angles."""
    (lead, (x, y)), (d, p), dtype = _lead(X, Y, "XY"), X.shape[-2:], X.dtype
    X, Y = X.reshape(-1, d, p), Y.reshape(-1, d, p)
    out, right, alone = np.empty((p, len(x), d), dtype), np.zeros(len(x), bool), len(X) == 1
    tiny = _right_angle(dtype, p)

    def job(block):
        t = block.stop - block.start
        points, others = np.asarray(X if alone else X[x[block]], np.float64), np.asarray(Y[y[block]], np.float64)
        C = np.matmul(points.swapaxes(1, 2), others).transpose(1, 2, 0)  # (p, p, t)
        A, B, theta, least = np.empty((p, p, t)), np.empty((p, p, t)), np.empty(t), np.empty(t)
        _align(C, A, B, theta, least)
        H, rows = np.empty((p, t, d)), _rows(others)
        _tangents(_rows(points), 0 if alone else -1, rows, 0, t, A, B, H)
        out[:, block], right[block] = H, least <= tiny

    core._in_threads(job, len(x), max(1, 2**16 // (d * p)), blas=True)
    return out.transpose(1, 2, 0).reshape(*lead, d, p), int(right.sum())


def _rows(X):
    """X (n, d, p) as float64 rows (p, n, d), a few at a time so that they stay in cache."""
    n, d, p = X.shape
    rows, few = np.empty((p, n, d)), max(1, 2**15 // (d * p))
    for i in range(0, n, few):
        np.copyto(rows[:, i:i + few], X[i:i + few].transpose(2, 0, 1))
    return rows


def _right_angle(dtype, p):
    """Cosines up to this one cannot be told from zero."""
    return 16 * p * np.finfo(dtype).eps


def _warn_right_angles(count, what, stacklevel=3):
    if count:
        warnings.warn(f"{what}: log is not unique for {count} pair(s) of subspaces at right angles, one of its values is taken",
                      stacklevel=stacklevel)


@_jit
def _align(C, A, B, square, least):
    """For the SVDs C[:, :, i] = U cos(theta) V^T of matrices of C (p, p, n): A = V phi U^T and B = U cos(theta) phi U^T,
    both (p, p, n), square[i] = ||theta||^2 and least[i], the smallest cosine."""
    p, _, n = C.shape
    T, V, work = np.empty((p, p, LANES)), np.empty((p, p, LANES)), np.empty((5, LANES))  # column, row, lane
    of_A, of_B = np.empty((p, LANES)), np.empty((p, LANES))
    for i in range(0, n, LANES):
        m = min(LANES, n - i)
        for b in range(p):
            for a in range(p):
                T[b, a, :m] = C[a, b, i:i + m]
                T[b, a, m:] = V[b, a, :] = 1.0 if a == b else 0.0
        _jacobi(T, V, work)
        for lane in range(m):
            square[i + lane], least[i + lane] = _functions(T, lane, of_A, of_B)
        for a in range(p):
            for b in range(p):
                for lane in range(m):
                    A[a, b, i + lane] = B[a, b, i + lane] = 0.0
                for k in range(p):
                    for lane in range(m):
                        A[a, b, i + lane] += V[k, a, lane] * of_A[k, lane] * T[k, b, lane]
                        B[a, b, i + lane] += T[k, a, lane] * of_B[k, lane] * T[k, b, lane]


@_jit
def _jacobi(T, V, work):
    """Rotations from the right make the columns of each matrix of T (p columns, p rows, lanes) orthogonal, those of V follow.

    One-sided Jacobi: columns are orthogonal relative to their own lengths, however short they are.
    """
    p = len(T)
    for _ in range(60):
        largest = 0.0
        for k in range(p - 1):
            for r in range(k + 1, p):
                cosine = _rotation(T[k], T[r], work)
                if cosine > 1e-17:
                    largest = max(largest, cosine)
                    _rotate(T[k], T[r], work[3], work[4])
                    _rotate(V[k], V[r], work[3], work[4])
        if largest < 1e-15:
            break


@_jit
def _rotation(a, b, work):
    """Cosines work[3] and sines work[4] of the rotations that make columns a and b (rows, lanes) orthogonal; returns the
    largest |cosine| between a pair of columns."""
    aa, bb, ab, cosine, sine = work
    aa[:], bb[:], ab[:] = 0, 0, 0
    for r in range(len(a)):
        for i in range(LANES):
            aa[i] += a[r, i] * a[r, i]
            bb[i] += b[r, i] * b[r, i]
            ab[i] += a[r, i] * b[r, i]
    largest = 0.0
    for i in range(LANES):
        moves = ab[i] * ab[i] > 1e-34 * aa[i] * bb[i]
        largest = max(largest, ab[i] * ab[i] / (aa[i] * bb[i]) if moves else 0.0)
        zeta = (bb[i] - aa[i]) / (2 * ab[i] if moves else 1.0)
        tangent = (1.0 if zeta >= 0 else -1.0) / (abs(zeta) + math.sqrt(1 + zeta * zeta))
        tangent = tangent if moves else 0.0
        cosine[i] = 1 / math.sqrt(1 + tangent * tangent)
        sine[i] = tangent * cosine[i]
    return math.sqrt(largest)


@_jit
def _rotate(a, b, cosine, sine):
    for r in range(len(a)):
        for i in range(LANES):
            turned = cosine[i] * a[r, i] - sine[i] * b[r, i]
            b[r, i] = sine[i] * a[r, i] + cosine[i] * b[r, i]
            a[r, i] = turned


@_jit
def _functions(T, lane, of_A, of_B):
    """phi / cos of each column of T = U cos(theta), so that A = V of_A T^T and B = T of_B T^T; ||theta||^2, least cosine.

    A column that vanishes is a right angle: any direction that is left will do.
    """
    p = len(T)
    square, least = 0.0, 1.0
    for k in range(p):
        cc = 0.0
        for a in range(p):
            cc += T[k, a, lane] * T[k, a, lane]
        c = math.sqrt(cc)
        s = math.sqrt(max((1 - c) * (1 + c), 0.0))
        theta = math.atan2(s, c)
        if c < 1e-140:
            _complete(T, k, lane)
            of_A[k, lane], of_B[k, lane] = theta, 0.0
        else:
            of_A[k, lane] = of_B[k, lane] = (theta / s if s > 0 else 1.0) / c
        square += theta * theta
        least = min(least, c)
    return square, least


@_jit
def _complete(T, k, lane):
    """Column k of T becomes a unit vector orthogonal to the others, which are orthogonal to each other or vanish."""
    p, best = len(T), 0.0
    trial, found = np.empty(p), np.zeros(p)
    for e in range(p):
        trial[:] = 0
        trial[e] = 1
        for _ in range(2):
            for j in range(p):
                jj, jt = 0.0, 0.0
                for a in range(p):
                    jj += T[j, a, lane] * T[j, a, lane]
                    jt += T[j, a, lane] * trial[a]
                if j != k and jj > 1e-280:
                    for a in range(p):
                        trial[a] -= jt / jj * T[j, a, lane]
        if _dot(trial, trial, p) > best:
            best = _dot(trial, trial, p)
            found[:] = trial
    for a in range(p):
        T[k, a, lane] = found[a] / math.sqrt(best)


@_jit
def _tangents(x, i, rows, first, stop, A, B, out):
    """out[:, j - first] = the rows of log_X(D_j) = D_j A_j - X B_j for j in first..stop-1: D as rows (p, N, d), X as x[:, i], or
    x[:, j] if i < 0."""
    p, _, d = rows.shape
    for j in range(first, stop):
        at = i if i >= 0 else j
        for r in range(0, d, 1024):  # a stretch stays in the nearest cache
            m = min(d - r, 1024)
            for b in range(p):
                h = out[b, j - first, r:r + m]
                for a in range(p):
                    y, z, c, e = rows[a, j, r:r + m], x[a, at, r:r + m], A[a, b, j], B[a, b, j]
                    if a == 0:
                        for k in range(m):
                            h[k] = c * y[k] - e * z[k]
                    else:
                        for k in range(m):
                            h[k] += c * y[k] - e * z[k]


# ---------------------------------------------------------------------------- Karcher mean


def karcher_mean(X, weights=None, *, tol=1e-12, max_iter=1000, return_info=False):
    """Weighted Karcher (Frechet) mean: the subspace Y that minimises sum_i w_i d_geo(Y, X_i)^2; X (n, d, p) -> (d, p).

    Y <- exp_Y(G), G = sum_i w_i log_Y(X_i) / sum_i w_i, from the chordal mean until ||G||_F <= tol (float32 points: 1e-6
    at least); a warning with the final norm if max_iter steps do not reach it. weights >= 0. The minimum is unique
    if the points lie in an open ball of radius pi/4; a warning if no such ball was found: Y is then a stationary point, which
    may be one of several. return_info: a named tuple (mean, gradient, n_iter) with ||G||_F at the mean returned.
    """
    X = core._dictionary(X, "X")
    weights = np.ones(len(X)) if weights is None else core._finite(weights, "weights").astype(np.float64)
    if weights.shape != (len(X),) or (weights < 0).any() or not weights.any():
        raise ValueError(f"weights must be {len(X)} numbers >= 0, one a subspace and not all zero, got {weights!r}")
    tol, max_iter = core._number(tol, "tol"), core._integer(max_iter, "max_iter", 0, core.ANY)
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}")
    dtype, used = X.dtype, weights > 0
    X, weights = X[used].astype(np.float64), weights[used] / weights.max() / (weights / weights.max()).sum()
    limit = max(tol, 1e-6) if dtype == np.float32 else tol
    Y, n_iter = core._weighted_mean(X, weights)[0], 0
    while True:
        G, reach = _gradient(Y, X, weights)
        size = float(np.linalg.norm(G))
        if size <= limit or n_iter == max_iter:
            break
        Y, n_iter = core.orthonormalize(_exp(Y, G)), n_iter + 1
    if size > limit:
        warnings.warn(f"karcher_mean did not converge in {max_iter} steps: gradient norm {size:.2g}, tolerance {limit:.2g}",
                      stacklevel=2)
    if reach >= math.pi / 4 and not _in_a_ball(X, Y):
        warnings.warn("karcher_mean: no ball of radius pi/4 around the points was found (the farthest is "
                      f"{reach:.3g} from the mean): the mean may not be unique", stacklevel=2)
    mean = Y.astype(dtype)
    return KarcherMean(mean, size, n_iter) if return_info else mean


def _gradient(Y, X, weights):
    """sum_i w_i log_Y(X_i), and the largest ||log_Y(X_i)||; a tile of points at a time."""
    G, reach, tile = np.zeros_like(Y), 0.0, max(1, 2**20 // Y.size)
    for i in range(0, len(X), tile):
        H = _log(Y, X[i:i + tile])[0]
        G += np.tensordot(weights[i:i + tile], H, 1)
        reach = max(reach, float(np.linalg.norm(H, axis=(1, 2)).max()))
    return G, reach


def _in_a_ball(X, centre):
    """Is an open ball of radius pi/4 around all points found? By steps of 1/2, 1/3, ... towards the farthest point."""
    for i in range(2, 102):
        H = _log(centre, X)[0]
        far = np.linalg.norm(H, axis=(1, 2))
        if far.max() < math.pi / 4:
            return True
        if i == 2 and np.linalg.norm(_log(X[far.argmax()], X)[0], axis=(1, 2)).max() >= math.pi / 2:
            return False  # two points too far apart for any
        centre = core.orthonormalize(_exp(centre, H[far.argmax()] / i))
    return False


# ---------------------------------------------------------------------------- log-Euclidean coding


def tangent_grams(X, D, base=None):
    """Inner products in the tangent space at base of x_i = log(X_i), X (n, d, p), and d_j = log(D_j), D (N, d, p).

    A named tuple: K_dd[i, j] = <d_i, d_j> (N, N), K_xd[i, j] = <x_i, d_j> (n, N), norm2[i] = ||x_i||^2 (n,): what
    grassmann_sc's sparse_codes, class_residuals and classify take. base: None for the span of the first p axes, a subspace
    (d, p), or "mean", the Karcher mean of the atoms. A warning for subspaces at a right angle to base.
    """
    X, D = _queries_and_atoms(X, D)
    base = _base(base, D)
    (n, d, p), N = X.shape, len(D)
    atoms, right = _log(base, D)
    atoms = atoms.reshape(N, -1)  # (N, d p)
    K_xd, norm2, tile = np.empty((n, N), X.dtype), np.empty(n), max(1, 2**22 // (d * p))
    for i in range(0, n, tile):
        H, count = _log(base, X[i:i + tile])
        H, right = H.reshape(len(H), -1), right + count
        np.matmul(H, atoms.T, out=K_xd[i:i + tile])
        norm2[i:i + tile] = np.einsum("ij,ij->i", H, H, dtype=np.float64)
    _warn_right_angles(right, "tangent_grams")
    K_dd = atoms @ atoms.T
    return TangentGrams((K_dd + K_dd.T) / 2, K_xd, norm2)


def log_euclidean_codes(X, D, lam, base=None, **options):
    """Log-Euclidean sparse coding (lE-SC): min ||log(X) - sum_j y_j log(D_j)||^2 + lam ||y||_1 in one tangent space; (n, N).

    Queries X (n, d, p), atoms D (N, d, p); base as in tangent_grams ("mean": the paper's lE-SC-adaptive). The lasso, its
    certificate and its options are those of grassmann_sc.sparse_codes. The paper's log-Euclidean algorithm.
    """
    K_dd, K_xd, norm2 = tangent_grams(X, D, base)
    return core.sparse_codes(K_dd, K_xd, lam, norm2=norm2, **options)


def log_euclidean_classify(codes, X, D, labels, base=None):
    """Label of the class c with the smallest ||log(X) - sum_{j in c} y_j log(D_j)||^2 for each query; (n,).

    The residual in the tangent space of log_euclidean_codes, of which codes (n, N) come; labels (N,) are those of the atoms.
    """
    K_dd, K_xd, norm2 = tangent_grams(X, D, base)
    return core.classify(codes, K_dd, K_xd, labels, norm2=norm2)


def _queries_and_atoms(X, D):
    X, D = core._same_d(core._bases(X, "X"), core._dictionary(D), "XD")
    _same_p(X, D, "D")
    return X, D


def _base(base, D):
    d, p = D.shape[1:]
    if base is None:
        return np.eye(d, p, dtype=D.dtype)
    if isinstance(base, str):
        if base != "mean":
            raise ValueError(f"base must be None, 'mean' or a basis {d, p}, got {base!r}")
        return karcher_mean(D)
    base = core._bases(base, "base", 2)
    if base.shape != (d, p):
        raise ValueError(f"base must have shape {d, p} as the atoms, got {base.shape}")
    return base.astype(D.dtype, copy=False)


# ---------------------------------------------------------------------------- intrinsic coding


def intrinsic_codes(X, D, lam, *, tol=1e-9, max_iter=10000, return_info=False):
    """Intrinsic sparse coding (iSC): min ||sum_j y_j log_X(D_j)||_F^2 + lam ||y||_1 subject to sum_j y_j = 1; (n, N).

    Queries X (n, d, p), atoms D (N, d, p), lam >= 0; in the tangent space of each query, the paper's eq. for intrinsic
    coding. lam = 0 gives the code of least norm. With g_j = <log_X(D_j), sum_i y_i log_X(D_i)>, which need log_X of the
    atoms in use alone, an active set is solved exactly until the duality gap, and the largest violation of the optimality
    conditions (g_j = nu - lam/2 sign(y_j) on the support, |g_j - nu| <= lam/2 off it), are at most tol times the squared
    distance of the nearest atom, to rounding; a warning with the largest gap if max_iter rounds do not reach that. A warning
    for atoms at a right angle to a query, whose logarithm is not unique. return_info: a named tuple (codes, gap, n_iter).
    """
    X, D = _queries_and_atoms(X, D)
    lam, tol, max_iter = core._number(lam, "lam"), core._number(tol, "tol"), core._integer(max_iter, "max_iter", 1, core.ANY)
    if lam < 0 or not tol > 0:
        raise ValueError(f"lam must be >= 0 and tol > 0, got lam = {lam!r} and tol = {tol!r}")
    (n, d, p), N = X.shape, len(D)
    rows = _rows(D)
    flat = rows.reshape(p * N, d)
    pairs = np.matmul(flat, flat.T).reshape(p, N, p, N) if flat.shape[0] ** 2 <= ALL_PAIRS else np.empty((0, 0, 0, 0))
    codes, gap, n_iter = np.zeros((n, N), X.dtype), np.empty(n), np.empty(n, np.int64)
    late, right, tiny = np.empty(n, bool), np.empty(n, np.int64), _right_angle(X.dtype, p)

    def job(block):
        x = _rows(X[block])
        C = np.matmul(x, flat.T).reshape(p, -1, p, N)  # C[:, i] = X_i^T D
        y = np.zeros((len(late[block]), N))
        _intrinsic(C, x, rows, pairs, lam / 2, tol, max_iter, tiny, y, gap[block], n_iter[block], late[block], right[block])
        if lam == 0:
            for i in range(len(y)):
                y[i], gap[block.start + i], late[block.start + i] = _affine_least_squares(C, x, i, rows, pairs)
        codes[block] = y

    core._in_threads(job, n, max(1, min(64, 2**19 // (p * p * N), 2**19 // (p * d))))
    _warn_right_angles(int(right.sum()), "intrinsic_codes")
    if late.any():
        warnings.warn(f"{int(late.sum())} of {n} intrinsic codes did not converge (max_iter = {max_iter}): worst duality gap "
                      f"{gap[late].max():.2g}", stacklevel=2)
    return IntrinsicCodes(codes, gap, n_iter) if return_info else codes


def intrinsic_classify(codes, X, D, labels):
    """Label of the class c with the smallest ||X^ - sum_{j in c} y_j D_j^||_F^2, for codes (n, N) of intrinsic_codes; (n,).

    The extrinsic residual of the intrinsic codes. The intrinsic one, ||sum_{j in c} y_j log_X(D_j)||, is zero for every class
    that the code does not use, and says nothing.
    """
    X, D = _queries_and_atoms(X, D)
    return core.classify(codes, core._gram(D, D, symmetric=True), core._gram(X, D), labels, norm2=X.shape[2])


def _affine_least_squares(C, x, i, rows, pairs):
    """(y, gap, False) for the y of least norm among the minimisers of ||sum_j y_j log_X(D_j)||^2 with sum_j y_j = 1."""
    N = rows.shape[1]
    G = np.empty((N, N))
    _logarithm_gram(C, x, i, rows, pairs, G)
    values, vectors = np.linalg.eigh((G + G.T) / 2)
    null = values <= 1e-13 * N * values[-1]
    ones = vectors.sum(axis=0)  # of the eigenvectors
    share = ones[null] @ ones[null]  # squared norm of 1 projected on the null space
    if share > 1e-12 * N:
        y = vectors[:, null] @ (ones[null] / share)
    else:
        y = vectors[:, ~null] @ (ones[~null] / values[~null])
        y /= y.sum()
    g = G @ y
    return y, min(y @ g, (g.max() - g.min()) * np.abs(y).sum() * 2), False


@_jit
def _intrinsic(C, x, rows, pairs, half, tol, max_iter, tiny, codes, gap, n_iter, late, right):
    """Codes of a block of queries x (p, n, d) over atoms rows (p, N, d), C (p, n, p, N) = X^T D, pairs (p, N, p, N) = D^T D.

    half = 0: only the right angles are counted.
    """
    p, n, _, N = C.shape
    A, B, square, least = np.empty((p, p, N)), np.empty((p, p, N)), np.empty(N), np.empty(N)
    capacity = min(N, 16)
    columns, L = np.empty((capacity, N)), np.empty((capacity, capacity))
    place, g, work = np.empty(N, np.int64), np.empty(N), np.empty((4, N))
    S, s = np.empty(N, np.int64), np.empty(N)
    for i in range(n):
        _align(C[:, i], A, B, square, least)
        right[i], late[i] = (least <= tiny).sum(), False
        if half > 0:
            log = (A, B, x, i, rows, pairs)
            gap[i], n_iter[i], late[i], columns, L = _solve_query(log, square, half, tol, max_iter, codes[i], g, S, s, columns, place,
                                                                  L, work)
        else:
            gap[i], n_iter[i] = 0.0, 0


@_jit
def _solve_query(log, square, half, tol, max_iter, y, g, S, s, columns, place, L, work):
    """One code by an active set S[:m] of signs s: atoms that violate the optimality conditions enter, the set is solved exactly,
    until certified. columns[place[j]] holds <log_X(D_j), log_X(D_i)> of all i for the atoms that have been in use.
    """
    N, m, filled, stalled, best, n_rounds = len(y), 1, 0, 0, np.inf, 0
    place[:] = -1
    S[0], s[0] = square.argmin(), 1.0
    y[S[0]] = 1.0
    nearest, peak = square[S[0]], square.max()
    limit, near, lift = tol * nearest + 1e-14 * (peak + half), nearest < 1e-7 * len(log[0]), max(peak, 1e-8)
    new = m
    while True:
        for i in range(m - new, m):
            if place[S[i]] < 0:
                if filled == len(columns):
                    columns, L = _grown(columns, N), _grown(L, min(N, 2 * filled))
                _column(log, near, S[i], columns[filled])
                place[S[i]] = filled
                filled += 1
        if n_rounds > 0:
            m = _solve_on_support(columns, place, lift, half, y, g, S, s, L, work, m)
        g[:] = 0
        for i in range(m):
            _axpy(y[S[i]], columns[place[S[i]]], g, N)
        cost, gap, excess = _certificate(y, g, S, s, m, half, work[0])
        stalled = 0 if cost < best else stalled + 1
        best = min(best, cost)
        if max(gap, excess) <= limit or n_rounds == max_iter or stalled > 10:
            break
        n_rounds += 1
        new = _enter(work[0], S, s, m, 1 if stalled else 1 + m // 8)
        m += new
    return gap, n_rounds, max(gap, excess) > limit, columns, L


@_jit
def _enter(violation, S, s, m, most):
    """Appends to S[:m] the atom of largest violation (its sign is that of the coefficient to be), and up to most in all that
    come within a factor of four; returns their number."""
    size = np.abs(violation)
    order = np.argsort(-size)[:most]
    new = 0
    for j in order:
        if size[j] == 0 or size[j] < 0.25 * size[order[0]]:
            break
        S[m + new], s[m + new] = j, math.copysign(1.0, violation[j])
        new += 1
    return new


@_jit
def _grown(A, n):
    """A with room for twice the rows, and n columns."""
    B = np.empty((2 * A.shape[0], n))
    B[:A.shape[0], :A.shape[1]] = A
    return B


@_jit
def _certificate(y, g, S, s, m, half, violation):
    """Cost, duality gap and largest violation of the optimality conditions; g = G y. violation[j] is that of an atom off the
    support, with the sign of the coefficient that would lower the cost.

    nu = g_j + half sign(y_j) on the support. The dual, max 2 nu - ||w||^2 subject to |<log_X(D_j), w> - nu| <= half, is
    evaluated at w = scale sum_j y_j log_X(D_j).
    """
    square, l1, excess = 0.0, 0.0, 0.0
    for i in range(m):
        square += y[S[i]] * g[S[i]]
        l1 += abs(y[S[i]])
    square = max(square, 0.0)
    nu, low, high = square + half * l1, g[S[0]], g[S[0]]
    for j in range(len(g)):
        low, high = min(low, g[j]), max(high, g[j])
        violation[j] = max(nu - g[j] - half, 0.0) + min(nu - g[j] + half, 0.0)
    for i in range(m):
        violation[S[i]] = 0.0
        excess = max(excess, abs(g[S[i]] - nu + half * s[i]))
    excess = max(excess, np.abs(violation).max())
    bound = 2 * half / (high - low) if high > low else np.inf
    scale = min(max(low / square if square > 0 else 1.0, 0.0), bound)
    cost = square + 2 * half * l1
    return cost, cost - (2 * scale * low + 2 * half - scale * scale * square), excess


@_jit
def _solve_on_support(columns, place, lift, half, y, g, S, s, L, work, m):
    """Minimise over y on S[:m] with signs s and sum 1, from g = G y; atoms leave as their coefficients reach zero. Returns m.

    L is the Cholesky factor of G + lift 1 1^T on the support: a constant on sum_j y_j = 1, it is regular there whenever the
    solution is unique. The step solves (G + lift 1 1^T) step = slope + nu 1 with 1^T step = 1 - 1^T y. Any constant may be
    added to slope, minus half the gradient: with codes >= 0 lam drops out, and a step of length t scales slope by 1 - t.
    """
    slope, step, ones, kept = work[0], work[1], work[2], 0
    for i in range(m):
        slope[i] = half * (1 - s[i]) - g[S[i]]
    while True:
        r = _factor(columns, place, lift, S, L, kept, m)
        if r == m:
            missing, total, weight = 1.0, 0.0, 0.0
            for i in range(m):
                step[i], ones[i] = slope[i], 1.0
                missing -= y[S[i]]
            _solve(L, step, m)
            _solve(L, ones, m)
            for i in range(m):
                total += step[i]
                weight += ones[i]
            for i in range(m):
                step[i] += (missing - total) / weight * ones[i]
        else:
            _null_direction(columns, place, lift, slope, S, s, y, L, step, r)
            step[r + 1:m] = 0
        t = _first_zero(y, S, s, step, m)
        if r == m and t >= 1:
            for i in range(m):
                y[S[i]] += step[i]
            return m
        if r == m:
            for i in range(m):
                slope[i] *= 1 - t
        m, kept = _advance(y, S, s, slope, step, t, L, ones, work[3], m, r)


@_jit
def _first_zero(y, S, s, step, m):
    """Smallest t at which a coefficient of y + t step leaves its sign on S[:m]; inf if there is none."""
    t = np.inf
    for i in range(m):
        if s[i] * step[i] < 0:
            t = min(t, -y[S[i]] / step[i])
    return t


@_jit
def _advance(y, S, s, slope, step, t, L, cosine, sine, m, kept):
    """y += t step on S[:m]; atoms that arrive at zero, or past it by rounding, leave. Returns the size of the support and the
    number of good rows of the factor, of which kept were good."""
    left = 0
    for i in range(m):
        j, inward = S[i], s[i] * step[i] < 0
        if inward and -y[j] / step[i] <= t or s[i] * (y[j] + t * step[i]) < 0:
            y[j] = 0.0
            if left < kept:
                _delete_row(L, left, kept, cosine, sine)
                kept -= 1
        else:
            y[j] += t * step[i]
            S[left], s[left], slope[left] = j, s[i], slope[i]
            left += 1
    return left, kept


@_jit
def _delete_row(L, i, m, cosine, sine):
    """Take row i out of the Cholesky factor L of m rows: the rows below move up, and rotations of columns c, c + 1 >= i, found
    row by row, make them triangular again."""
    for r in range(i + 1, m):
        row, above = L[r], L[r - 1]
        above[:i] = row[:i]
        carried = row[i]
        for c in range(i, r - 1):
            above[c] = cosine[c] * carried + sine[c] * row[c + 1]
            carried = cosine[c] * row[c + 1] - sine[c] * carried
        above[r - 1] = math.sqrt(carried * carried + row[r] * row[r])
        cosine[r - 1], sine[r - 1] = carried / above[r - 1], row[r] / above[r - 1]


@_jit
def _null_direction(columns, place, lift, slope, S, s, y, L, step, r):
    """step[:r + 1] along which the combination of logarithms stays the same and the l1 norm does not rise, on S[:r + 1]."""
    for i in range(r):
        step[i] = -(columns[place[S[r]], S[i]] + lift)
    _solve(L, step, r)
    step[r] = 1.0
    shrinks = False
    sign = -1.0 if _dot(slope, step, r + 1) < 0 else 1.0
    for i in range(r + 1):
        step[i] *= sign
        shrinks = shrinks or s[i] * step[i] < 0
    if not shrinks:
        for i in range(r + 1):
            step[i] = -step[i]


@_jit
def _factor(columns, place, lift, S, L, first, m):
    """Rows first..m-1 of the Cholesky factor of G + lift 1 1^T on S[:m]; m, or the first row that depends on those before."""
    for r in range(first, m):
        row = columns[place[S[r]]]
        for c in range(r):
            L[r, c] = (row[S[c]] + lift - _dot(L[r], L[c], c)) / L[c, c]
        pivot = row[S[r]] + lift - _dot(L[r], L[r], r)
        if pivot <= 1e-13 * (row[S[r]] + lift):
            return r
        L[r, r] = math.sqrt(pivot)
    return m


@_jit
def _solve(L, b, m):
    """b[:m] <- (L L^T)^-1 b[:m]."""
    for r in range(m):
        b[r] = (b[r] - _dot(L[r], b, r)) / L[r, r]
    for r in range(m - 1, -1, -1):
        b[r] /= L[r, r]
        _axpy(-b[r], L[r], b, r)


@_jit
def _logarithm_gram(C, x, i, rows, pairs, G):
    """G[i, j] = <log_X(D_i), log_X(D_j)> for one query."""
    p, _, _, N = C.shape
    A, B, square, least = np.empty((p, p, N)), np.empty((p, p, N)), np.empty(N), np.empty(N)
    _align(C[:, i], A, B, square, least)
    for j in range(N):
        _column((A, B, x, i, rows, pairs), False, j, G[j])


@_jit
def _column(log, near, j, column):
    """column[i] = <log_X(D_i), log_X(D_j)> for all i.

    From D_i^T D_j where they are at hand. For a query so near to an atom that the difference of traces would cancel, and where
    there are too many atoms, from H = log_X(D_j): X^T H = 0, so that the inner product is tr(A_i^T D_i^T H).
    """
    A, B, x, query, rows, pairs = log
    p, N, d = rows.shape
    column[:] = 0
    if near or pairs.size == 0:
        H = np.empty((p, 1, d))
        _tangents(x, query, rows, j, j + 1, A, B, H)
        for a in range(p):
            for b in range(p):  # short vectors too are tangent relative to their own length
                _axpy(-_dot(x[a, query], H[b, 0], d), x[a, query], H[b, 0], d)
        for a in range(p):
            for b in range(p):
                for i in range(N):
                    column[i] += A[a, b, i] * _dot(rows[a, i], H[b, 0], d)
        return
    part = np.empty(N)
    for a in range(p):
        for b in range(p):
            part[:] = 0  # (D_i^T D_j A_j)[a, b]
            for c in range(p):
                _axpy(A[c, b, j], pairs[c, j, a], part, N)
            for i in range(N):
                column[i] += A[a, b, i] * part[i] - B[a, b, i] * B[a, b, j]


@_jit
def _dot(a, b, n):
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@_jit
def _axpy(c, a, b, n):
    for i in range(n):
        b[i] += c * a[i]
