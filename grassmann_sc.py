"""Coding of linear subspaces: Grassmann sparse coding (gSC) and locality-constrained coding (gLC).

The linear method of Harandi, Hartley, Shen, Lovell and Sanderson, "Extrinsic Methods for Coding and
Dictionary Learning on Grassmann Manifolds" (IJCV 2015), in one file that can be copied alone.

Convention, here and in every module: a set of n subspaces is an array (n, d, p) of orthonormal bases,
columns are basis vectors; a dictionary is (N, d, q); codes are (n, N). A subspace X is embedded as its
projector X^ = X X^T, so that <X^, D^> = ||X^T D||_F^2 and ||X^||_F^2 = p. float32 and float64 are kept,
other real types become float64. NUMBA_NUM_THREADS bounds the threads; results do not depend on it. Where threadpoolctl
is installed (scikit-learn brings it) BLAS is kept to one thread in each of them, and Gram matrices are faster.
"""

import contextlib
import functools
import importlib
import itertools
import math
import operator
import os
import threading
import warnings
from collections import namedtuple

import numba
import numpy as np
import scipy.sparse

__all__ = [
    "orthonormalize", "random_subspaces", "projection_kernel", "principal_angles", "chordal_distance",
    "geodesic_distance", "proj", "chordal_mean", "lam_max", "sparse_codes", "locality_codes", "gsc", "glc",
    "reconstruct", "class_residuals", "classify",
]

ANY = 2**62  # as the upper bound of an integer: none
TILE = 2**21  # numbers of K_xd that gsc and glc hold at a time
SparseCodes = namedtuple("SparseCodes", "codes gap n_iter")


def _jit(function):
    """Compile without the GIL, cached on disk; a process that may write nowhere compiles in memory."""
    options = {"nogil": True, "fastmath": {"reassoc", "contract"}, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache
        return numba.njit(**options)(function)


def _in_threads(job, n, block, blas=False):
    """[job(slice), ...] over consecutive blocks of range(n), which do not depend on the number of threads.

    blas: the job spends its time in BLAS, whose own threads do the work where they cannot be limited.
    """
    blocks = [slice(i, min(i + block, n)) for i in range(0, n, block)]
    cores = _cores()
    n_threads = min(numba.config.NUMBA_NUM_THREADS, len(blocks), len(cores) or len(blocks))
    if n_threads < 2 or blas and not _one_blas_thread.controller:
        return [job(block) for block in blocks]
    results, errors, todo = [None] * len(blocks), [], iter(enumerate(blocks))  # each thread takes the next

    def work(core):
        try:
            _hold_to(core)
            for i, block in todo:
                results[i] = job(block)
                if errors:
                    return
        except BaseException as error:  # Ctrl-C too: the others stop after their block
            errors.append(error)

    held = [cores[i:i + 1] if n_threads == len(cores) else cores for i in range(n_threads)]
    with _one_blas_thread:
        threads = [threading.Thread(target=work, args=(core,)) for core in held[1:]]
        try:
            for thread in threads:
                thread.start()
            work(held[0])
            for thread in threads:
                thread.join()
        except BaseException as error:
            errors.append(error)
        finally:
            _hold_to(cores)
    if errors:
        raise errors[0]
    return results


def _cores():
    """Cores that this thread may use, [] where that cannot be told. A thread a core is held to it while it works: Linux
    starts threads, and wakes them, on the core of the one that did it, and moves them only milliseconds later."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []


def _hold_to(cores):
    try:
        if cores:
            os.sched_setaffinity(0, cores)
    except OSError:  # forbidden, or a core went away: only slower
        pass


class _OneBlasThread(contextlib.ContextDecorator):
    """Context in which BLAS runs on the calling thread alone: its own threads would compete with ours, and spin while
    they wait. Nested and concurrent uses share one limit. Needs threadpoolctl, which scikit-learn brings."""

    def __init__(self):
        self.lock, self.users = threading.Lock(), 0

    @functools.cached_property
    def controller(self):
        try:
            return importlib.import_module("threadpoolctl").ThreadpoolController()
        except ImportError:
            return None

    def __enter__(self):
        with self.lock:
            if self.users == 0 and self.controller:
                self.limit = self.controller.limit(limits=1, user_api="blas")
                self.limit.__enter__()
            self.users += 1

    def __exit__(self, *exception):
        with self.lock:
            self.users -= 1
            if self.users == 0 and self.controller:
                self.limit.__exit__(*exception)


_one_blas_thread = _OneBlasThread()


# ---------------------------------------------------------------------------- checks at the door


def _real(A, name):
    """A as a native float32 or float64 array; TypeError for anything that is not a real number."""
    try:
        A = np.asarray(A)
    except ValueError:
        raise ValueError(f"{name} must be an array, got nested sequences of different lengths") from None
    if A.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got dtype {A.dtype}")
    return A.astype(np.float32 if A.dtype.newbyteorder("=") == np.float32 else np.float64, copy=False)


def _finite(A, name):
    A = _real(A, name)
    if A.size and not (np.isfinite(A.max()) and np.isfinite(A.min())):  # no mask of the size of A unless it is needed
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(A))[0])
        raise ValueError(f"{name} must be finite, got {A[where]}" + (f" at index {where}" if where else ""))
    return A


def _number(value, name):
    value = _finite(value, name)
    if value.ndim:
        raise ValueError(f"{name} must be one number, got shape {value.shape}")
    return float(value)


def _bases(X, name, ndim=3):
    """X as an array of orthonormal bases (..., d, p) with exactly ndim axes, or at least two for ndim=None."""
    X = _real(X, name)
    if X.ndim != ndim if ndim else X.ndim < 2:
        raise ValueError(f"{name} must have {ndim or 'at least 2'} dimensions {'(n, d, p)' if ndim else '(..., d, p)'}, "
                         f"got shape {X.shape}")
    d, p = X.shape[-2:]
    if not 1 <= p <= d:
        raise ValueError(f"{name} must have 1 <= p <= d, got p = {p}, d = {d}")
    tol = 1e-3 if X.dtype == np.float32 else 1e-6
    flat, error = X.reshape(-1, d, p), np.empty(X[..., 0, 0].size)

    def job(block):
        _orthonormality(np.array(flat[block].swapaxes(1, 2), order="C"), error[block])  # rows: (t, p, d)

    _in_threads(job, len(flat), max(1, 2**16 // (d * p)))
    if not (error <= tol).all():
        bad = int(np.argmin(error <= tol))
        if not np.isfinite(flat[bad]).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity in the basis at index {bad}")
        raise ValueError(f"{name} must have orthonormal columns: {name}^T {name} differs from I by "
                         f"{error[bad]:.2g} at index {bad}; call orthonormalize({name}) first")
    return X


@_jit
def _orthonormality(rows, error):
    """error[i] = max |B B^T - I| for B = rows[i] (p, d); NaN if an entry is not finite."""
    t, p, d = rows.shape
    for i in range(t):
        worst, total = 0.0, 0.0
        for a in range(p):
            for b in range(a + 1):
                off = abs(_dot(rows[i, a], rows[i, b], d) - (1.0 if a == b else 0.0))
                worst, total = max(worst, off), total + off
        error[i] = worst if total < np.inf else np.nan


def _dictionary(D, name="D"):
    D = _bases(D, name)
    if len(D) == 0:
        raise ValueError(f"{name} must hold at least one subspace, got shape {D.shape}")
    return D


def _same_d(X, Y, names):
    if X.shape[-2] != Y.shape[-2]:
        raise ValueError(f"{names[0]} and {names[1]} must have the same d, got {X.shape[-2]} and {Y.shape[-2]}")
    dtype = np.result_type(X, Y)
    return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)


def _integer(value, name, low, high):
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if not low <= number <= high:
        rule = f">= {low}" if high == ANY else f"in {low}..{high}"
        raise ValueError(f"{name} must be {rule}, got {number}")
    return number


def _grams(K_dd, K_xd, norm2):
    """Checked Gram matrices (N, N), (n, N) of one type, and norm2 as a float64 array (n,)."""
    K_dd, K_xd, norm2 = _real(K_dd, "K_dd"), _real(K_xd, "K_xd"), _finite(norm2, "norm2")
    if K_dd.ndim != 2 or K_dd.shape[0] != K_dd.shape[1] or len(K_dd) == 0:
        raise ValueError(f"K_dd must be a square matrix (N, N) with N >= 1, got shape {K_dd.shape}")
    if K_xd.ndim != 2 or K_xd.shape[1] != len(K_dd):
        raise ValueError(f"K_xd must have shape (n, {len(K_dd)}), one column an atom, got {K_xd.shape}")
    dtype = np.result_type(K_dd, K_xd)
    tol = 1e-4 if np.float32 in (K_dd.dtype, K_xd.dtype) else 1e-8
    K_dd, K_xd = _owned(K_dd, K_dd.dtype), _owned(K_xd, K_xd.dtype)
    scale, asymmetry = np.max(_in_threads(lambda rows: _stripe(K_dd, rows.start, rows.stop), len(K_dd), 256), axis=0)
    largest = np.empty(len(K_xd))
    _in_threads(lambda block: _largest(K_xd[block], largest[block]), len(K_xd), max(1, 2**20 // len(K_dd)))
    if not (scale < np.inf and (largest < np.inf).all()):
        _finite(K_dd, "K_dd"), _finite(K_xd, "K_xd")
    if asymmetry > tol * scale:
        raise ValueError(f"K_dd must be symmetric, got entries that differ by {asymmetry:.2g} across the diagonal")
    diagonal = K_dd.diagonal().astype(np.float64)
    if diagonal.min() < 0:
        raise ValueError(f"K_dd must have a nonnegative diagonal, got {diagonal.min():.2g}")
    if norm2.ndim and norm2.shape != (len(K_xd),) or (norm2 < 0).any():
        raise ValueError(f"norm2 must be a number >= 0 or {len(K_xd)} of them, one a query, got {norm2!r}")
    norm2 = np.broadcast_to(norm2.astype(np.float64), len(K_xd)).copy()
    bound = (1 + 1e-3) * np.sqrt(norm2)
    suspect = np.flatnonzero(~(largest <= bound * math.sqrt(diagonal.min())))  # few: they are looked at whole
    excess = (np.abs(K_xd[suspect]) - bound[suspect, None] * np.sqrt(diagonal)).max(axis=1)
    if len(excess) and excess.max() > 1e-3 * (math.sqrt(scale) * math.sqrt(norm2.max()) or 1.0):
        i = int(suspect[excess.argmax()])
        raise ValueError(f"norm2 must be ||X^||^2 of each query: |K_xd| <= sqrt(norm2 K_dd[j, j]) fails at query {i} "
                         f"with norm2 = {norm2[i]:.4g}")
    return K_dd.astype(dtype, copy=False), K_xd.astype(dtype, copy=False), norm2


@_jit
def _stripe(K, start, stop):
    """Largest |K_ij| (inf if one is not finite) and |K_ij - K_ji| in rows start..stop of the square K, from the diagonal on."""
    peak, apart, bad = 0.0, 0.0, False
    for i0 in range(start, stop, 32):
        for j0 in range(i0, len(K), 32):
            for i in range(i0, min(i0 + 32, stop)):
                for j in range(j0, min(j0 + 32, len(K))):
                    a, b = abs(K[i, j]), abs(K[j, i])
                    peak, apart = max(peak, a, b), max(apart, abs(K[i, j] - K[j, i]))
                    bad |= not (a < np.inf and b < np.inf)
    return np.inf if bad else peak, apart


@_jit
def _largest(K, largest):
    """largest[i] = max_j |K_ij|, inf if one is not finite."""
    for i in range(len(K)):
        peak, bad = 0.0, False
        for j in range(K.shape[1]):
            a = abs(K[i, j])
            peak = max(peak, a)
            bad |= not a < np.inf
        largest[i] = np.inf if bad else peak


# ---------------------------------------------------------------------------- geometry


def orthonormalize(A):
    """Orthonormal basis of the column space of each matrix of A (..., d, p), p <= d; the same shape.

    Thin QR with a positive diagonal of R, so that an orthonormal basis is returned as it is, to rounding.
    ValueError if columns are dependent to working precision (the index, its rank and the tolerance are named).
    """
    A = _finite(A, "A")
    if A.ndim < 2 or not 1 <= A.shape[-1] <= A.shape[-2]:
        raise ValueError(f"A must have shape (..., d, p) with 1 <= p <= d, got {A.shape}")
    d, p = A.shape[-2:]
    peak = np.abs(A).max(axis=-2, keepdims=True)  # equal column scales: neither overflow nor a false rank
    Q, R = np.linalg.qr(A / np.where(peak > 0, peak, 1))
    s = np.linalg.svd(R, compute_uv=False)  # (..., p)
    tol = d * np.finfo(A.dtype).eps
    rank = (s > tol * s[..., :1]).sum(axis=-1)
    if (rank < p).any():
        i = tuple(int(j) for j in np.argwhere(rank < p)[0])
        raise ValueError(f"A must have independent columns: rank {rank[i]} < p = {p} at index {i or 0}, "
                         f"relative tolerance {tol:.1g}")
    sign = np.where(np.diagonal(R, axis1=-2, axis2=-1) < 0, -1, 1).astype(A.dtype)
    return Q * sign[..., None, :]


def random_subspaces(n, d, p, rng=None):
    """n subspaces of dimension p in R^d, uniform on the Grassmann manifold; (n, d, p) float64.

    The orthonormalized columns of Gaussian matrices. rng: seed or Generator, as np.random.default_rng takes it.
    """
    n, d = _integer(n, "n", 0, ANY), _integer(d, "d", 1, ANY)
    p = _integer(p, "p", 1, d)
    return orthonormalize(np.random.default_rng(rng).standard_normal((n, d, p)))


def projection_kernel(X, D=None):
    """K[i, j] = <X_i^, D_j^> = ||X_i^T D_j||_F^2 for X (n, d, p), D (N, d, q); (n, N) in [0, min(p, q)].

    Without D, the symmetric (n, n) Gram matrix of X. Source: the paper's definition of K(X, D) and K(D).
    """
    X = _bases(X, "X")
    if D is None:
        return _gram(X, X, symmetric=True)
    return _gram(*_same_d(X, _bases(D, "D"), "XD"))


def _gram(X, D, symmetric=False):
    """projection_kernel on checked arrays: BLAS products of tiles, squared and summed while they are in cache.

    A tile is a product of rows of X by rows of D, packed in blocks of T subspaces as (p, T, step): the p q numbers of a
    pair lie in as many planes. Columns are packed once for all threads, rows by each thread for its tile. Where d is
    long it is taken in steps, whose products are added up.
    symmetric: tiles from the diagonal on, each written to both sides.
    """
    (n, d, p), (N, _, q) = X.shape, D.shape
    K, own = np.empty((n, N), X.dtype), threading.local()
    step = -(-d // -(-d // 2048))
    T = max(1, min((768 if d > 256 else 256) // p, -(-n // (16 if symmetric else 2 * os.cpu_count()))))
    M = min(-(-N // T), max(1, (3072 if step <= 1280 else 1536) // (q * T))) * T
    S = max(n, 1) if step == d else T * max(1, 1536 // (p * T))  # rows whose sums over the steps are held
    packed, sums = np.empty(M * q * step, X.dtype), np.empty(S * p * M * q if step < d else 0, X.dtype)
    for j in range(0, N, M or 1):
        m = min(M, N - j)
        n_rows = min(n, j + m) if symmetric else n
        for i, k in itertools.product(range(0, n_rows, S), range(0, d, step)):
            width = min(step, d - k)
            _in_threads(lambda block: _pack(D[j:j + m][block, k:k + width], packed[block.start * q * width:]), m, T)
            columns = packed[:m * q * width].reshape(-1, width)

            def job(block):
                if not hasattr(own, "rows"):
                    own.rows, own.product = np.empty(T * p * step, X.dtype), np.empty(T * p * M * q, X.dtype)
                first = max(0, i + block.start - j) if symmetric else 0
                rows = _pack(X[i:i + S][block, k:k + width], own.rows)
                shape = len(rows), (m - first) * q
                product = own.product[:math.prod(shape)].reshape(shape)
                np.matmul(rows, columns[first * q:].T, out=product)
                if step < d:
                    total = sums[block.start * p * M * q:][:product.size].reshape(shape)
                    np.add(product, total if k else 0, out=product if k + width == d else total)
                if k + width == d:
                    _sum_squares(product, p, q, T, symmetric, i + block.start, j + first, K)

            _in_threads(job, min(S, n_rows - i), T, blas=True)
    return K


def _pack(X, out):
    """X (t, d, p) as rows (p t, d) of the buffer out, a few at a time so that they stay in cache."""
    t, d, p = X.shape
    rows, few = out[:X.size].reshape(p, t, d), max(1, 2**15 // (d * p))
    for i in range(0, t, few):
        np.copyto(rows[:, i:i + few], X[i:i + few].transpose(2, 0, 1))
    return rows.reshape(p * t, d)


@_jit
def _sum_squares(product, p, q, T, symmetric, i0, j0, K):
    """K[i0 + i, j0 + j] = the sum of the p q squares of pair i, j; also K[j0 + j, i0 + i]. Columns lie in blocks (q, T)."""
    t, width = len(product) // p, product.shape[1]
    sums = np.empty(width, product.dtype)
    for i in range(t):
        sums[:] = 0
        for a in range(p):
            row = product[a * t + i]
            for c in range(width):
                sums[c] += row[c] * row[c]
        for j in range(0, width // q, T):
            n = min(T, width // q - j)
            block = sums[j * q:(j + n) * q]
            for b in range(1, q):
                for c in range(n):
                    block[c] += block[b * n + c]
            row, first = K[i0 + i], j0 + j
            for c in range(max(0, i0 + i - first) if symmetric else 0, n):
                row[first + c] = block[c]
                if symmetric:
                    K[first + c, i0 + i] = block[c]


def principal_angles(X, Y):
    """Principal angles between X (..., d, p) and Y (..., d, q); (..., min(p, q)) radians in [0, pi/2], ascending.

    theta = arctan2(singular values of (I - X X^T) Y, singular values of X^T Y): full accuracy at 0 and at pi/2.
    Leading axes broadcast.
    """
    X, Y = _same_d(_bases(X, "X", None), _bases(Y, "Y", None), "XY")
    try:
        np.broadcast_shapes(X.shape[:-2], Y.shape[:-2])
    except ValueError:
        raise ValueError(f"X and Y must have leading axes that broadcast, got shapes {X.shape} and {Y.shape}") from None
    return _angles(X, Y)


def _angles(X, Y):
    if X.shape[-1] < Y.shape[-1]:
        X, Y = Y, X
    C = np.matmul(X.swapaxes(-1, -2), Y)  # (..., p, q), p >= q
    sine = np.linalg.svd(Y - np.matmul(X, C), compute_uv=False)  # descending
    cosine = np.linalg.svd(C, compute_uv=False)
    return np.arctan2(sine[..., ::-1], cosine)


def _pair(X, Y):
    X = _bases(X, "X")
    return (X, X) if Y is None else _same_d(X, _bases(Y, "Y"), "XY")


def chordal_distance(X, Y=None):
    """Pairwise ||X_i^ - Y_j^||_F = sqrt(2) ||sin theta|| (p = q), X (n, d, p), Y (N, d, q); (n, N) >= 0.

    Equal to sqrt(p + q - 2 <X^, Y^>); near pairs are computed from (I - X X^T) Y so that nothing cancels.
    Without Y, within X. Source: the paper's chordal metric.
    """
    X, Z = _pair(X, Y)
    p, q = X.shape[2], Z.shape[2]
    square = p + q - 2 * _gram(X, Z, symmetric=Y is None)
    near = square < 0.1 if p == q else np.zeros(square.shape, bool)

    def job(block):
        for i in range(block.start, block.stop):
            j = np.flatnonzero(near[i])
            for tile in np.array_split(j, 1 + len(j) * X.shape[1] * q // 2**20):
                R = Z[tile] - np.matmul(X[i], np.matmul(X[i].T, Z[tile]))  # (tile, d, q)
                square[i, tile] = 2 * np.einsum("jdq,jdq->j", R, R)

    _in_threads(job, len(X), 16, blas=True)
    if Y is None:  # the two computations of a near pair round differently
        square = np.triu(square, 1)
        square += square.T
    return np.sqrt(np.maximum(square, 0))


def geodesic_distance(X, Y=None):
    """Pairwise ||theta||_2 over the principal angles, X (n, d, p), Y (N, d, q); (n, N) in radians.

    Without Y, within X. (2/pi) d_geo <= d_chordal / sqrt(2) <= d_geo, see the paper's errata on the factor.
    """
    X, Z = _pair(X, Y)
    out = np.zeros((len(X), len(Z)), X.dtype)
    step = max(1, 2**20 // (Z.shape[1] * Z.shape[2]))

    def job(block):
        for i in range(block.start, block.stop):
            for j in range(0 if Y is not None else i + 1, len(Z), step):
                out[i, j:j + step] = np.linalg.norm(_angles(X[i], Z[j:j + step]), axis=-1)

    _in_threads(job, len(X), 4, blas=True)
    return out if Y is not None else out + out.T


def proj(S, p):
    """Closest point to S on the manifold of rank-p projectors, as a basis: S (..., d, d) symmetric -> (..., d, p).

    The eigenvectors of the p algebraically largest eigenvalues (the paper's theorem on the closest point; S may be
    indefinite). A warning if eigenvalues p and p + 1 tie: the point is not unique, one of them is returned.
    """
    S = _finite(S, "S")
    if S.ndim < 2 or S.shape[-1] != S.shape[-2] or S.shape[-1] == 0:
        raise ValueError(f"S must be square, (..., d, d), got shape {S.shape}")
    p = _integer(p, "p", 1, S.shape[-1])
    asymmetry = np.abs(S - S.swapaxes(-1, -2)).max(initial=0)
    if asymmetry > (1e-4 if S.dtype == np.float32 else 1e-8) * np.abs(S).max(initial=0):
        raise ValueError(f"S must be symmetric, got entries that differ by {asymmetry:.2g} across the diagonal")
    values, vectors = np.linalg.eigh(S / 2 + S.swapaxes(-1, -2) / 2)  # ascending
    _warn_ties(int(_tied(values, p, np.abs(values).max(axis=-1), len(values.T)).sum()), "closest point")
    return vectors[..., :-p - 1:-1]


def _tied(values, p, scale, d):
    """Whether the p-th and (p + 1)-th largest of the ascending eigenvalues tie, to rounding of a d x d matrix."""
    gap = np.diff(values, axis=-1)[..., -p:][..., :1].sum(axis=-1)  # their difference; 0 if p = d
    return (p < values.shape[-1]) & (gap <= 4 * d * np.finfo(values.dtype).eps * scale)


def _warn_ties(count, what):
    if count:
        warnings.warn(f"{what} not unique in {count} case(s): eigenvalues p and p + 1 tie", stacklevel=3)


def chordal_mean(X, weights=None):
    """Weighted chordal mean: the subspace Y that minimises sum_i w_i ||Y^ - X_i^||_F^2; X (n, d, p) -> (d, p).

    Proj(sum_i w_i X_i^), the paper's theorem on the chordal mean; it holds for negative weights too. No d x d matrix
    is formed when d is large. A warning if the mean is not unique; ValueError if all weights are zero.
    """
    X = _dictionary(X, "X")
    weights = np.ones(len(X)) if weights is None else _finite(weights, "weights")
    if weights.shape != (len(X),):
        raise ValueError(f"weights must have shape ({len(X)},), one a subspace, got {weights.shape}")
    if not weights.any():
        raise ValueError("weights must not all be zero, got only zeros")
    basis, tied = _weighted_mean(X, weights)
    _warn_ties(int(tied), "chordal mean")
    return basis


def _weighted_mean(X, weights):
    """Basis (d, p) of the p algebraically leading eigenvectors of S = sum_i w_i X_i X_i^T, and whether they tie."""
    used = np.flatnonzero(weights)
    d, p = X.shape[1:]
    Z = X[used].transpose(1, 0, 2).reshape(d, -1)  # (d, m p)
    scale = np.abs(weights).max(initial=1e-300)
    w = np.repeat(weights[used] / scale, p).astype(X.dtype)  # (m p,)
    if min(d, Z.shape[1]) > 2000 and p < d // 8:
        return _lanczos(Z, w, p)
    if Z.shape[1] + p >= d:
        return _leading((Z * w) @ Z.T, p)
    # S = Q (R W R^T) Q^T; the columns of zeros let Q reach p + 1 directions outside the span, of eigenvalue 0
    Q, R = np.linalg.qr(np.hstack([Z, np.zeros((d, p + 1), X.dtype)]))
    R = R[:, :len(w)]
    vectors, tied = _leading((R * w) @ R.T, p)
    return Q @ vectors, tied


def _leading(S, p):
    """Eigenvectors of the p algebraically largest eigenvalues of the symmetric S, and whether p and p + 1 tie."""
    values, vectors = np.linalg.eigh(S)
    return vectors[:, :-p - 1:-1], _tied(values, p, np.linalg.norm(S), len(S))


def _lanczos(Z, w, p):
    from scipy.sparse.linalg import LinearOperator, eigsh  # rarely needed, slow to import

    S = LinearOperator((len(Z), len(Z)), dtype=Z.dtype, matvec=lambda v: Z @ (w * (Z.T @ v.ravel())))
    start = np.random.default_rng(0).standard_normal(len(Z)).astype(Z.dtype)
    values, vectors = eigsh(S, k=p + 1, which="LA", v0=start)
    return np.linalg.qr(vectors[:, :0:-1])[0], _tied(values, p, np.abs(values).max(), len(Z))


# ---------------------------------------------------------------------------- sparse coding


def lam_max(K_xd):
    """Smallest lambda whose code is zero, 2 max_j |k_j|, for each row of K_xd (..., N); (...)."""
    K_xd = _finite(K_xd, "K_xd")
    if K_xd.ndim < 1 or K_xd.shape[-1] < 1:
        raise ValueError(f"K_xd must have shape (..., N) with N >= 1, got {K_xd.shape}")
    return 2 * np.abs(K_xd).max(axis=-1)


def sparse_codes(K_dd, K_xd, lam, *, norm2, lam_scale=None, positive=False, init=None, tol=1e-8, max_iter=1000,
                 return_info=False, sparse_output=False):
    """Codes y of each query: min ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1, from inner products alone.

    K_dd (N, N) holds <D_i^, D_j^>, K_xd (n, N) holds <X_i^, D_j^>, norm2 is ||X_i^||^2, a number or (n,): p for an
    orthonormal basis. The cost is norm2 - 2 y^T k + y^T K y + lam ||y||_1 (no factor 1/2: lam is twice scikit-learn's
    alpha), the paper's Gram form of the sparse coding problem; K_dd may be singular. lam = 0 gives the least-squares
    code of least norm. An array of lam (L,) gives a path of codes (L, n, N), each solved from the one before.
    lam_scale="max": each query's lambda is lam times its own lam_max, so that one lam in [0, 1] suits any data.

    Each code is exact: the search stops when the duality gap, and the largest violation of the optimality conditions
    (in units of the cost), are at most tol * norm2; it warns, with the larger of the two, if that cannot be reached.
    positive: codes >= 0. init: codes (n, N) to start from. Returns codes (n, N) of the type of the Gram matrices, as
    a scipy.sparse CSR array (for a path, a list of them) with sparse_output=True; with return_info=True a named
    tuple (codes, gap, n_iter) whose gap is absolute. Errors: ValueError, TypeError naming the argument.
    """
    K_dd, K_xd, norm2 = _grams(K_dd, K_xd, norm2)
    n, N = K_xd.shape
    path, tol = _finite(lam, "lam"), _number(tol, "tol")
    if path.ndim > 1 or path.size == 0 or (path < 0).any():
        raise ValueError(f"lam must be a number >= 0 or a 1-D array of them, got {lam!r}")
    if not tol > 0:
        raise ValueError(f"tol must be positive, got {tol!r}")
    if lam_scale not in (None, "max"):
        raise ValueError(f"lam_scale must be None or 'max', got {lam_scale!r}")
    max_iter = _integer(max_iter, "max_iter", 1, ANY)
    start = None if init is None else _codes(init, n, N, "init")
    unit = np.ones(n) if lam_scale is None else lam_max(K_xd).astype(np.float64)
    unit[unit == 0] = 1  # k = 0 has the code 0 at every lambda
    half, K = np.outer(np.atleast_1d(path).astype(np.float64) / 2, unit), _owned(K_dd, np.float64)  # (L, n)
    pinv = functools.cache(lambda: _pseudo_inverse(K, np.finfo(K_xd.dtype).eps))
    gap, n_iter = np.empty((len(half), n)), np.empty((len(half), n), np.int64)
    out = None if sparse_output else np.empty((len(half), n, N), K_xd.dtype)

    def job(block):
        k = np.array(K_xd[block], np.float64, order="C")
        first = np.zeros_like(k) if start is None else _dense(start[block]).astype(np.float64)
        Y, gap[:, block], n_iter[:, block] = _solve_block(K, k, np.ascontiguousarray(half[:, block]), norm2[block], bool(positive),
                                                          tol, max_iter, first, pinv)
        if sparse_output:
            return [_nonzeros(y) for y in Y]
        out[:, block] = Y

    pieces = _in_threads(job, n, max(1, min(512, 2**15 // N, max(-(-n // 8), 2**12 // N))))
    _warn_gap(gap, tol * norm2, max_iter)
    if sparse_output:
        out = [_csr([piece[i] for piece in pieces], N, K_xd.dtype) for i in range(len(half))]
    if path.ndim == 0:
        out, gap, n_iter = out[0], gap[0], n_iter[0]
    return SparseCodes(out, gap, n_iter) if return_info else out


def _solve_block(K, k, half, norm2, positive, tol, max_iter, start, pinv):
    """Codes (L, n, N), gap and n_iter (L, n) of a block of queries k (n, N) for lambda / 2 = half (L, n)."""
    order = np.argsort(-half[:, 0], kind="stable")  # that of every query: from the largest lambda down, each solution starting the next
    Y, gap, n_iter = np.empty((len(half), *k.shape)), np.empty((len(half), len(k))), np.empty((len(half), len(k)), np.int64)
    Y[order[0]] = start = np.maximum(start, 0) if positive else start
    if start.any():  # a start worse than zero, or too large to compute with, is not used
        with np.errstate(all="ignore"):
            change = ((start @ K - 2 * k) * start).sum(axis=1) + 2 * half.max(axis=0) * np.abs(start).sum(axis=1)
        Y[order[0], ~(change <= 0)] = 0
    _lasso_path(K, k, half, order, norm2, positive, tol, max_iter, Y, gap, n_iter)
    for i, j in np.argwhere(~(gap <= tol * norm2) & (not positive)):
        # no dual point can be scaled from r when lambda = 0, or below the rounding of K: try least squares instead,
        # whose cost is within lambda ||y||_1 of a lower bound
        y = pinv() @ k[j]
        y += pinv() @ (k[j] - K @ y)  # refined: small eigenvalues cost digits
        g = k[j] - K @ y
        bound = max(g @ (pinv() @ g), 0.0) + 2 * half[i, j] * np.abs(y).sum()
        if not gap[i, j] <= bound:
            Y[i, j], gap[i, j] = y, bound
    return Y, gap, n_iter


def _csr(pieces, N, dtype):
    """CSR array (n, N) of consecutive pieces (values, columns, numbers in each row)."""
    values, columns, counts = (np.concatenate(part) for part in zip(*pieces or [(np.empty(0), np.empty(0, np.int32), [])]))
    starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return scipy.sparse.csr_array((values.astype(dtype, copy=False), columns, starts), shape=(len(counts), N))


@_jit
def _nonzeros(Y):
    """Values of the nonzero entries of Y (n, N) row by row, their columns, and how many each row has."""
    counts = np.zeros(len(Y), np.int64)
    for i in range(len(Y)):
        for j in range(Y.shape[1]):
            counts[i] += Y[i, j] != 0
    values, columns, at = np.empty(counts.sum()), np.empty(counts.sum(), np.int32), 0
    for i in range(len(Y)):
        for j in range(Y.shape[1]):
            if Y[i, j] != 0:
                values[at], columns[at] = Y[i, j], j
                at += 1
    return values, columns, counts


def _warn_gap(gap, limit, max_iter):
    late = ~(gap <= limit)
    if late.any():
        worst = np.unravel_index(np.argmax(np.where(late, gap - limit, -1)), gap.shape)
        warnings.warn(f"{int(late.sum())} of {late.size} codes did not converge (max_iter = {max_iter}): worst duality gap "
                      f"{gap[worst]:.2g}, tolerance {limit[worst[-1]]:.2g}", stacklevel=3)


def _owned(A, dtype):
    """A as a C-ordered writable array of the type, so that every caller's layout meets the same compiled code."""
    A = np.ascontiguousarray(A, dtype)
    return A if A.flags.writeable else A.copy()


def _pseudo_inverse(K, eps):
    """K^+ from the eigenvalues that stand above rounding of relative size eps."""
    values, vectors = np.linalg.eigh(K)
    keep = values > len(K) * eps * max(values[-1], 0)
    return (vectors[:, keep] / values[keep]) @ vectors[:, keep].T


@_jit
def _lasso_path(K, queries, half, order, norm2, positive, tol, max_iter, Y, gap, n_iter):
    """Codes Y (L, n, N) of queries (n, N) for lambda / 2 = half (L, n), taken in the given order; Y[order[0]] starts."""
    n, N = queries.shape
    diag = np.diag(K).copy()
    work, L = np.empty((6, N)), np.empty((N, N))
    A, inside = np.empty(N, np.int64), np.zeros(N, np.bool_)
    for i in range(n):
        m, kept = -1, 0  # nothing is known of this query
        for o in range(len(order)):
            now = order[o]
            if o > 0:
                Y[now, i] = Y[order[o - 1], i]
            if half[now, i] > 0 or positive:
                gap[now, i], n_iter[now, i], m, kept = _lasso(K, diag, queries[i], half[now, i], norm2[i], positive, tol,
                                                              max_iter, Y[now, i], A, inside, L, work, m, kept)
            else:
                gap[now, i], n_iter[now, i] = np.inf, 0
        for a in range(max(m, 0)):
            inside[A[a]] = False


@_jit
def _lasso(K, diag, k, half, norm2, positive, tol, max_iter, y, A, inside, L, work, m, kept):
    """One lasso: greedy coordinate descent proposes the support, Cholesky steps solve it exactly, until certified.

    m >= 0: y, its support A[:m], kept rows of its factor L and g = work[0] come from another lambda; m = -1: y alone
    is given. Returns the gap, the number of rounds, and m and kept for the next lambda.
    """
    g, rest, reach = work[0], work[1:], math.sqrt(norm2 / max(diag.max(), 1e-300))  # of excess, in units of the cost
    stalled, best, n_rounds = 0, np.inf, 0
    if m < 0:
        m, kept = _collect_support(y, A, inside, L, rest, 0, 0)
        _residual_products(K, k, y, A, m, g)
    while True:
        cost, gap, excess = _certificate(k, y, g, A, m, half, norm2, positive, rest[0])
        stalled = 0 if cost < best else stalled + 1
        best = min(best, cost)
        if max(gap, excess * reach) <= tol * norm2:
            break
        if n_rounds == max_iter or stalled > 10:  # the second: rounding forbids more, such a tol cannot be reached
            gap = max(gap, excess * reach)
            break
        if n_rounds > 0 or m == 0:  # a support that was given is first solved as it is
            _coordinate_descent(K, diag, half, positive, y, g, rest, 10 + m // 2)
            m, kept = _collect_support(y, A, inside, L, rest, m, kept)
        n_rounds += 1
        kept = m = _solve_on_support(K, half, y, g, A, inside, L, rest, m, kept)
        _residual_products(K, k, y, A, m, g)
    return gap, n_rounds, m, kept


@_jit
def _certificate(k, y, g, A, m, half, norm2, positive, size):
    """Cost, duality gap and largest violation of the optimality conditions, from g_j = <D_j^, r>, r the residual.

    The dual point is s r with s = min(1, half / max|g|); with y >= 0 also r - e X^, feasible for large enough e.
    """
    yk, yg, l1, excess = 0.0, 0.0, 0.0, 0.0
    for i in range(m):
        j = A[i]
        yk += y[j] * k[j]
        yg += y[j] * g[j]
        l1 += abs(y[j])
        excess = max(excess, abs(g[j] - math.copysign(half, y[j])))
    for j in range(len(y)):
        size[j] = max(g[j], 0.0) if positive else abs(g[j])
    peak = size[_argmax(size)]
    excess = max(excess, peak - half)
    rx = norm2 - yk  # <r, X^>
    rr = rx - yg  # ||r||^2
    scale = half / peak if peak > half else 1.0
    dual = 2 * scale * rx - scale * scale * rr
    if positive and peak > half:
        shift = 0.0
        for j in range(len(y)):
            if g[j] > half:
                shift = max(shift, (g[j] - half) / k[j]) if k[j] > 0 else np.inf
        if shift < np.inf:
            dual = max(dual, 2 * (rx - shift * norm2) - (rr - 2 * shift * rx + shift * shift * norm2))
    cost = rr + 2 * half * l1
    return cost, cost - dual, excess


@_jit
def _argmax(size):
    """Index of the largest of nonnegative numbers: as integers their bits have the same order, and vectorise."""
    bits = size.view(np.int64)
    peak, at = 0, 0
    for j in range(len(bits)):
        peak = bits[j] if bits[j] > peak else peak
    while at + 512 <= len(bits):  # long stretches without it are passed over
        here = False
        for j in range(at, at + 64):
            here |= bits[j] == peak
        if here:
            break
        at += 64
    while bits[at] != peak:
        at += 1
    return at


@_jit
def _coordinate_descent(K, diag, half, positive, y, g, work, n_steps):
    """The largest coordinate step of all, n_steps times or until it is small; y and g = k - K y are kept up to date.

    Coordinate j goes to S(u) / K_jj with u = g_j + K_jj y_j and S(u) = u - clip(u, -half, half), a move of
    g_j - clip(u, -half, half), in units of K_jj.
    """
    w, size, low = work[0], work[1], -np.inf if positive else -half
    for j in range(len(y)):
        w[j] = diag[j] * y[j]
    at, change, enough = 0, 0.0, 0.0
    for n in range(n_steps + 1):
        row = K[at]
        for j in range(len(y)):
            g[j] -= change * row[j]
            u = g[j] + w[j]
            u = u if u < half else half
            u = u if u > low else low
            size[j] = abs(g[j] - u)
        at = _argmax(size)
        if n == 0:
            enough = 0.03 * size[at]
        if n == n_steps or size[at] <= enough or diag[at] <= 0:
            return
        u = g[at] + w[at]
        change = y[at]
        y[at] = (u - min(max(u, low), half)) / diag[at]
        w[at] = diag[at] * y[at]
        change = y[at] - change


@_jit
def _collect_support(y, A, inside, L, work, m, kept):
    """A becomes the support of y: what stays of A[:m] in its order, then the new. Returns its size, and how many of
    the first kept rows of the factor are still good."""
    count, lost = 0, work[0]
    for i in range(m):
        if y[A[i]] != 0:
            A[count] = A[i]
            count += 1
        else:
            inside[A[i]] = False
            lost[i - count] = i
    kept = _delete_rows(L, lost, m - count, kept, work)
    for j in range(len(y)):
        if y[j] != 0 and not inside[j]:
            A[count] = j
            inside[j] = True
            count += 1
    return count, kept


@_jit
def _delete_rows(L, lost, n_lost, kept, work):
    """Take the rows lost[:n_lost], ascending, out of the Cholesky factor L of kept rows; how many rows are then good.

    Few rows are rotated away, 6 multiplications for each entry behind them; for many it is cheaper to forget them and
    all behind them.
    """
    if n_lost * 48 > kept:
        return min(kept, int(lost[0]))
    cosine, sine = work[1], work[2]
    for i in lost[:n_lost][::-1]:
        first = int(i)
        if first >= kept:
            continue
        for r in range(first + 1, kept):  # row r moves up; rotations of its columns make it triangular again
            row, above = L[r], L[r - 1]
            above[:first] = row[:first]
            x = row[first]
            for c in range(first, r - 1):
                above[c] = cosine[c] * x + sine[c] * row[c + 1]
                x = cosine[c] * row[c + 1] - sine[c] * x
            above[r - 1] = math.sqrt(x * x + row[r] * row[r])
            cosine[r - 1], sine[r - 1] = x / above[r - 1], row[r] / above[r - 1]
        kept -= 1
    return kept


@_jit
def _solve_on_support(K, half, y, g, A, inside, L, work, m, kept):
    """Minimise over y on A[:m] with its signs: exact Newton steps, atoms dropped as their coefficients reach zero.

    L holds kept good rows of the factor. If the full step would change signs, all those atoms are dropped at once
    when that lowers the cost, else the first on the way. An atom that depends on those before it is moved, at the same
    residual, in the direction that lowers the l1 norm until a coefficient is zero. Returns the size of the support.
    """
    s, slope, step, image, cut = work[0], work[1], work[2], work[3], work[4]
    for i in range(m):
        s[i] = math.copysign(half, y[A[i]])
        slope[i] = g[A[i]] - s[i]  # minus half the gradient of the cost
    while m > 0:
        r = _factor(K, A, L, kept, m)
        if r == m:
            step[:m] = slope[:m]
            _solve(L, step, m)
            t = _first_zero(y, A, step, m)
            if t > 1:
                for i in range(m):
                    y[A[i]] += step[i]
                break
            if _drop_all(y, A, L, slope, step, image, cut, m):
                for i in range(m):
                    slope[i] -= _dot(L[i], image, i + 1)
            else:
                for i in range(m):
                    step[i] *= t
                    slope[i] -= t * slope[i]
        else:
            _null_direction(K, slope, A, L, y, step, r)
            t = _first_zero(y, A, step, r + 1)
            for i in range(r + 1):
                step[i] *= t
            step[r + 1:m] = 0
        before = m
        m, kept = _advance(y, A, inside, L, s, slope, step, work[2:], m, r)
        if m == before:  # no atom left: overflow, nothing to be gained
            break
    return m


@_jit
def _first_zero(y, A, step, m):
    """Smallest t at which y + t step has a zero on A[:m]; inf if there is none."""
    t = np.inf
    for i in range(m):
        if y[A[i]] * step[i] < 0:
            t = min(t, -y[A[i]] / step[i])
    return t


@_jit
def _drop_all(y, A, L, slope, step, image, cut, m):
    """Cut step where it changes a sign, so that y + step is zero there, if the cost then falls; image = L^T step."""
    change = 0.0
    image[:m] = 0
    for i in range(m):
        now = y[A[i]]
        cut[i] = -now if now * (now + step[i]) <= 0 else step[i]
        change -= 2 * cut[i] * slope[i]
        _axpy(cut[i], L[i], image, i + 1)
    change += _dot(image, image, m)
    if change < 0:
        step[:m] = cut[:m]
    return change < 0


@_jit
def _advance(y, A, inside, L, s, slope, step, work, m, kept):
    """y += step on A[:m]; atoms that arrive at zero, or past it by rounding, leave. Returns the support's size and
    the number of rows of the factor that stay good."""
    count, lost = 0, work[0]
    for i in range(m):
        j = A[i]
        now = y[j] + step[i]
        if abs(now) <= 1e-15 * abs(step[i]) or now * y[j] < 0:
            y[j], inside[j] = 0, False
            lost[i - count] = i
        else:
            y[j] = now
            A[count], s[count], slope[count] = j, s[i], slope[i]
            count += 1
    return count, _delete_rows(L, lost, m - count, kept, work)


@_jit
def _null_direction(K, slope, A, L, y, step, r):
    """step[:r + 1] with sum_i step_i D_i^ = 0 on A[:r + 1], the cost not rising along it, a coefficient shrinking."""
    for i in range(r):
        step[i] = -K[A[r], A[i]]
    _solve(L, step, r)
    step[r] = 1.0
    shrinks = False
    sign = -1.0 if _dot(slope, step, r + 1) < 0 else 1.0
    for i in range(r + 1):
        step[i] *= sign
        shrinks = shrinks or y[A[i]] * step[i] < 0
    if not shrinks:
        for i in range(r + 1):
            step[i] = -step[i]


@_jit
def _factor(K, A, L, first, m):
    """Rows first..m-1 of the Cholesky factor L of K[A, A]; m, or the first row whose atom depends on those before."""
    for r in range(first, m):
        for c in range(r):
            L[r, c] = (K[A[r], A[c]] - _dot(L[r], L[c], c)) / L[c, c]
        pivot = K[A[r], A[r]] - _dot(L[r], L[r], r)
        if pivot <= 1e-13 * K[A[r], A[r]]:
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
def _residual_products(K, k, y, A, m, g):
    """g = k - K y for y supported on A[:m]."""
    g[:] = k
    for i in range(m):
        _axpy(-y[A[i]], K[A[i]], g, len(g))


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


# ---------------------------------------------------------------------------- locality-constrained coding


def locality_codes(K_dd, K_xd, n_neighbors, *, norm2, reg=None, sparse_output=False):
    """Codes of each query over its n_neighbors nearest atoms: min ||X^ - sum_j y_j B_j^||_F^2 with 1^T y = 1.

    B_ij = <X^ - B_i^, X^ - B_j^>, (B + reg trace(B) I) y = 1, scaled to sum 1: the paper's locality-constrained coding,
    regularised so that dependent neighbours are legal; reg defaults to 1e-10 (float32: 1e-5). A query equal to an atom,
    to rounding, gets code 1 on it, shared equally if the atom is repeated. Ties go to the lower index.
    Arguments and output as in sparse_codes; n_neighbors in 1..N.
    """
    K_dd, K_xd, norm2 = _grams(K_dd, K_xd, norm2)
    n, N = K_xd.shape
    n_neighbors = _integer(n_neighbors, "n_neighbors", 1, N)
    reg = (1e-5 if K_xd.dtype == np.float32 else 1e-10) if reg is None else _number(reg, "reg")
    if reg < 0:
        raise ValueError(f"reg must be >= 0, got {reg}")
    K = _owned(K_dd, K_dd.dtype)
    indices, values = np.empty((n, n_neighbors), np.int64), np.empty((n, n_neighbors))
    tiny = 64 * np.finfo(K.dtype).eps

    def job(block):
        _locality(K, np.array(K_xd[block], order="C"), norm2[block], reg, tiny, indices[block], values[block])

    _in_threads(job, n, 64)
    values = values.astype(K_xd.dtype, copy=False)
    if sparse_output:
        starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
        return scipy.sparse.csr_array((values.ravel(), indices.ravel(), starts), shape=(n, N))
    codes = np.zeros((n, N), K_xd.dtype)
    np.put_along_axis(codes, indices, values, axis=1)
    return codes


@_jit
def _locality(K, queries, norm2, reg, tiny, indices, values):
    """Neighbours (n, m) of each query, by index, and their coefficients."""
    m = indices.shape[1]
    B, distance = np.empty((m, m)), np.empty(m)
    for i in range(len(queries)):
        k, nearest, y = queries[i], indices[i], values[i]
        _nearest(K, k, norm2[i], nearest, distance)
        trace, equal = 0.0, 0
        for a in range(m):
            for b in range(m):
                B[a, b] = norm2[i] - k[nearest[a]] - k[nearest[b]] + K[nearest[a], nearest[b]]
            trace += B[a, a]
            equal += B[a, a] <= tiny * norm2[i]
        if equal:
            for a in range(m):
                y[a] = 1 / equal if B[a, a] <= tiny * norm2[i] else 0.0
            continue
        ridge = reg * trace
        for r in range(m):  # Cholesky in place
            for c in range(r):
                B[r, c] = (B[r, c] - _dot(B[r], B[c], c)) / B[c, c]
            B[r, r] = math.sqrt(max(B[r, r] + ridge - _dot(B[r], B[r], r), ridge + tiny * tiny * trace))
            y[r] = 1.0
        _solve(B, y, m)
        total = y.sum()
        for a in range(m):
            y[a] /= total


@_jit
def _nearest(K, k, norm2, nearest, distance):
    """The len(nearest) atoms of least ||X^ - D_j^||^2, ties to the lower index, in order of index."""
    m, count = len(nearest), 0
    for j in range(len(k)):
        far = norm2 + K[j, j] - 2 * k[j]
        if count == m and not far < distance[m - 1]:
            continue
        at = min(count, m - 1)
        while at > 0 and far < distance[at - 1]:
            distance[at], nearest[at] = distance[at - 1], nearest[at - 1]
            at -= 1
        distance[at], nearest[at] = far, j
        count = min(count + 1, m)
    nearest.sort()


# ---------------------------------------------------------------------------- on subspaces


def gsc(X, D, lam, **options):
    """Grassmann sparse coding: codes (n, N) of subspaces X (n, d, p) over atoms D (N, d, q).

    sparse_codes on the projection kernel, with its options; queries pass in tiles, so that with sparse_output=True
    memory beyond input and output does not grow with n.
    """
    return _code_in_tiles(lambda K_dd, K_xd, **tile: sparse_codes(K_dd, K_xd, lam, **tile), X, D, options)


def glc(X, D, n_neighbors, **options):
    """Grassmann locality-constrained coding: codes (n, N) of X (n, d, p) over atoms D (N, d, q); see locality_codes."""
    return _code_in_tiles(lambda K_dd, K_xd, **tile: locality_codes(K_dd, K_xd, n_neighbors, **tile), X, D, options)


def _code_in_tiles(code, X, D, options):
    if "norm2" in options:
        raise TypeError(f"norm2 is not an option here, it is p of the subspaces X, got {options['norm2']!r}")
    X, D = _same_d(_bases(X, "X"), _dictionary(D), "XD")
    (n, _, p), N = X.shape, len(D)
    K_dd = _gram(D, D, symmetric=True)
    init, step = options.get("init"), max(64, TILE // N)
    if init is not None:
        options = {**options, "init": _codes(init, n, N, "init")}
    whole = None
    for i in range(0, max(n, 1), step):
        tile = options if init is None else {**options, "init": options["init"][i:i + step]}
        part = code(K_dd, _gram(X[i:i + step], D), norm2=p, **tile)
        whole = part if step >= n else _extended(whole, part, i, n)
    return whole


def _extended(whole, part, i, n, axis=-2):
    """The result of n queries with those from i on put in, so that the two never stand side by side: arrays (..., n, N),
    CSR arrays, lists or tuples of them; whole is None at first."""
    if isinstance(part, SparseCodes):
        return SparseCodes(*(_extended(*pair, i, n, axis) for pair, axis in zip(zip(whole or [None] * 3, part), (-2, -1, -1))))
    if isinstance(part, list):
        return [_extended(*pair, i, n) for pair in zip(whole or [None] * len(part), part)]
    if scipy.sparse.issparse(part):
        rows, N = part.shape
        values, columns, starts = whole or (np.empty(0, part.dtype), np.empty(0, np.int32), np.zeros(n + 1, np.int64))
        used = int(starts[i])
        size = used + part.nnz
        if size > len(values):  # at this rate, enough for the rest: pages that are not used cost nothing
            room = int(1.2 * size / (i + rows) * n) + 1
            old, values, columns = (values, columns), np.empty(room, values.dtype), np.empty(room, columns.dtype)
            values[:used], columns[:used] = (A[:used] for A in old)
        values[used:size], columns[used:size], starts[i + 1:i + rows + 1] = part.data, part.indices, used + part.indptr[1:]
        if i + rows < n:
            return values, columns, starts
        return scipy.sparse.csr_array((values[:size], columns[:size], starts), shape=(n, N))
    if whole is None:
        whole = np.empty(part.shape[:axis] + (n,) + part.shape[axis:][1:], part.dtype)
    np.moveaxis(whole, axis, 0)[i:i + part.shape[axis]] = np.moveaxis(part, axis, 0)
    return whole


def reconstruct(codes, D):
    """Points on the manifold that codes (n, N) stand for: Proj(sum_j y_j D_j^) over atoms D (N, d, p); (n, d, p).

    The weighted chordal mean of the atoms (the paper's section on the extrinsic nature of the solution). A warning if
    some are not unique, as for a zero code.
    """
    D = _dictionary(D)
    codes = _codes(codes, None, len(D))
    out, tied = np.empty((codes.shape[0], *D.shape[1:]), D.dtype), np.zeros(codes.shape[0], bool)

    def job(block):
        for i in range(block.start, block.stop):
            out[i], tied[i] = _weighted_mean(D, _dense(codes[i:i + 1])[0])

    _in_threads(job, len(out), 16, blas=True)
    _warn_ties(int(tied.sum()), "reconstruct: point")
    return out


# ---------------------------------------------------------------------------- classification


def class_residuals(codes, K_dd, K_xd, labels, *, norm2):
    """Residual of each class, e_c = ||X^ - sum_{j in c} y_j D_j^||_F^2; (residuals (n, n_classes) >= 0, classes).

    codes (n, N) dense or sparse, labels (N,) of the atoms, the Gram matrices and norm2 as in sparse_codes. The paper's
    class-specific residual error. classes are sorted where they can be, else in order of first appearance.
    """
    K_dd, K_xd, norm2 = _grams(K_dd, K_xd, norm2)
    codes = _codes(codes, *K_xd.shape)
    classes, index = _classes(labels, len(K_dd))
    residuals = np.empty((len(K_xd), len(classes)), K_xd.dtype)
    for c in range(len(classes)):
        mine = np.flatnonzero(index == c)
        y = _dense(codes[:, mine]).astype(np.float64)  # (n, N_c)
        Ky = y @ K_dd[np.ix_(mine, mine)]
        residuals[:, c] = np.maximum(norm2 + ((Ky - 2 * K_xd[:, mine]) * y).sum(axis=1), 0)
    return residuals, classes


def classify(codes, K_dd, K_xd, labels, *, norm2):
    """Label of the class with the smallest residual for each query (n,), the first in a tie; see class_residuals."""
    residuals, classes = class_residuals(codes, K_dd, K_xd, labels, norm2=norm2)
    return classes[residuals.argmin(axis=1)]


def _classes(labels, N):
    """Distinct labels as an array, and the position of each label in it."""
    labels = np.asarray(labels) if hasattr(labels, "__array__") else labels
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__") or getattr(labels, "ndim", 1) == 0:
        raise TypeError(f"labels must be a sequence of hashables, got {labels!r}")
    if getattr(labels, "ndim", 1) != 1:
        raise ValueError(f"labels must have one dimension, got shape {labels.shape}")
    if len(labels) != N:
        raise ValueError(f"labels must have length {N}, one an atom, got {len(labels)}")
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return np.unique(labels, return_inverse=True)
    try:
        names = list(dict.fromkeys(labels))
    except TypeError as error:
        raise TypeError(f"labels must be hashable, got {error}") from None
    try:
        names = sorted(names)
    except TypeError:  # labels that cannot be sorted
        pass
    plain = len({type(name) for name in names}) == 1 and isinstance(names[0], (bool, int, float, str, np.generic))
    classes = np.array(names) if plain else np.empty(len(names), object)
    classes[:] = names
    position = {name: i for i, name in enumerate(names)}
    return classes, np.array([position[label] for label in labels])


def _codes(codes, n, N, name="codes"):
    """Checked codes (n, N): an array, or CSR if sparse; n = None takes any number."""
    if scipy.sparse.issparse(codes):
        codes = scipy.sparse.csr_array(codes)
        _finite(codes.data, name)
    else:
        codes = _finite(codes, name)
    if codes.ndim != 2 or codes.shape[1] != N or n not in (None, codes.shape[0]):
        raise ValueError(f"{name} must have shape ({'n' if n is None else n}, {N}), got {codes.shape}")
    return codes


def _dense(codes):
    return codes.toarray() if scipy.sparse.issparse(codes) else codes
