"""Coding in the feature space of a kernel: kgSC, kgLC, the kernel Gram matrix of sets of frames, and coordinates (Lift).

A set of frames X (q, d) spans a subspace of the feature space of k(a, b) = <phi(a), phi(b)>, of orthonormal basis
Psi = Phi(X) A with A (q, p) from kernel_bases. Everything follows from <Psi_i^, Psi_j^> = ||A_i^T K(X_i, X_j) A_j||_F^2,
which kernel_gram gives. Source: Harandi et al. 2015, the section on kernel coding.

Sets are a list of arrays (n_i, d) or (n_i, height, width), or one array (n, q, d). float32 and float64 are kept, other
real types become float64. A rank counts the eigenvalues above RANK_TOL times the largest, in every function.
"""

import math
import threading
from dataclasses import dataclass

import numba
import numpy as np
import scipy.linalg
from numba.extending import overload

import grassmann_sc as core

RANK_TOL = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}  # leaves half the digits of an inner product
MAX_LANDMARKS = 2**14  # their kernel matrix takes 2 GB
TILE = 2**20  # numbers of a tile of kernel values
ROWS, COLUMNS = 256, 1024  # frames of a tile
_jit = core._jit


# ---------------------------------------------------------------------------- kernels


class _Kernel:
    """A kernel whose values come from inner products, written over them while they are in cache."""

    def __call__(self, A, B):
        A, B = _matrix(A, "A"), _matrix(B, "B")
        if A.shape[1] != B.shape[1]:
            raise ValueError(f"A and B must have the same d, got {A.shape[1]} and {B.shape[1]}")
        dtype = np.result_type(A, B)
        origin = B.mean(axis=0, dtype=np.float64).astype(dtype) if len(B) else np.zeros(B.shape[1], dtype)
        rows, columns = self._pack(A.astype(dtype), origin), self._pack(B.astype(dtype), origin)
        product = rows[0] @ columns[0].T
        self._values(product, *rows, *columns)
        return product

    def _pack(self, frames, origin):
        """The frames, which may be overwritten, as factors of the product, and their squared norms."""
        return frames, _squares(frames)

    def _values(self, product, rows, row_squares, columns, column_squares):
        """Kernel values over product = rows @ columns.T, in place."""


@dataclass(frozen=True)
class linear(_Kernel):
    """k(a, b) = a^T b: kernel coding with it is gSC and gLC."""


@dataclass(frozen=True)
class polynomial(_Kernel):
    """k(a, b) = (a^T b + coef0)^degree, degree an integer >= 1, coef0 >= 0."""

    degree: int = 2
    coef0: float = 1.0

    def __post_init__(self):
        core._integer(self.degree, "degree", 1, core.ANY)
        if not core._number(self.coef0, "coef0") >= 0:
            raise ValueError(f"coef0 must be >= 0, got {self.coef0}")

    def _values(self, product, rows, row_squares, columns, column_squares):
        _power(product, self.coef0, self.degree)


@dataclass(frozen=True)
class rbf(_Kernel):
    """The Gaussian k(a, b) = exp(-gamma ||a - b||^2), gamma > 0, in units of 1 / frames^2."""

    gamma: float

    def __post_init__(self):
        if not core._number(self.gamma, "gamma") > 0:
            raise ValueError(f"gamma must be positive, got {self.gamma}")

    def _pack(self, frames, origin):
        frames -= origin  # changes no distance, but the norms from which near ones are computed
        frames *= frames.dtype.type(math.sqrt(self.gamma))
        squares = _squares(frames)
        if not np.isfinite(squares).all():
            raise ValueError(f"frames must have gamma ||frame - mean||^2 within {frames.dtype}, got an overflow with "
                             f"gamma = {self.gamma}")
        return frames, squares

    def _values(self, product, rows, row_squares, columns, column_squares):
        _gaussian(product, rows, row_squares, columns, column_squares)


def _squares(frames):
    with np.errstate(over="ignore"):
        return np.einsum("ij,ij->i", frames, frames, dtype=np.float64).astype(frames.dtype)


@_jit
def _power(product, coef0, degree):
    """product <- (product + coef0)^degree."""
    base = np.empty_like(product[0]) if len(product) else np.empty(0, product.dtype)
    for i in range(len(product)):
        line = product[i]
        for j in range(len(line)):
            line[j] += coef0
        base[:] = line
        for _ in range(degree - 1):
            for j in range(len(line)):
                line[j] *= base[j]


CANCELS = 256.0  # sum of squared norms from which rounding of their difference could show in exp


@_jit
def _gaussian(product, rows, row_squares, columns, column_squares):
    """product <- exp(-||row - column||^2), where product = rows @ columns.T; near ones of large norm directly."""
    zero, d = product.dtype.type(0), rows.shape[1]
    largest = column_squares.max() if len(column_squares) else zero
    for i in range(len(product)):
        line, square = product[i], row_squares[i]
        for j in range(len(line)):
            line[j] = 2 * line[j] - (square + column_squares[j])
        if square + largest > CANCELS:
            for j in range(len(line)):
                if line[j] > -800 - 1e-4 * square and square + column_squares[j] > CANCELS:
                    line[j] = -_square_distance(rows[i], columns[j], d)
        for j in range(len(line)):
            line[j] = _exp(min(line[j], zero))


@_jit
def _square_distance(a, b, d):
    total = 0.0
    for i in range(d):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return total


def _exp(x):
    """e^x for x <= 0, within one unit in the last place down to the subnormal numbers and zero; for jitted code.

    np.exp in a jitted loop is a call a number; this one is arithmetic, which the compiler makes vector instructions of.
    """


def _exp64(x):
    x = max(x, -750.0)  # e^-750 rounds to 0
    k = np.rint(x * 1.4426950408889634)  # 1 / ln 2
    r = (x - k * LN2_HIGH) - k * LN2_LOW  # the first product is exact
    y = TAYLOR[0]
    for c in TAYLOR[1:]:
        y = y * r + c
    return y * np.int64((np.int64(np.int32(k)) + 1087) << 52).view(np.float64) * 2.0**-64  # 2^(k + 64), then 2^-64


def _exp32(x):
    x = max(x, np.float32(-105))
    k = np.rint(x * np.float32(1.4426950408889634))
    r = (x - k * LN2_HIGH32) - k * LN2_LOW32
    y = TAYLOR32[0]
    for c in TAYLOR32[1:]:
        y = y * r + c
    return y * np.int32((np.int32(k) + np.int32(159)) << np.int32(23)).view(np.float32) * np.float32(2.0**-32)


TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
TAYLOR32 = tuple(np.float32(1 / math.factorial(k)) for k in range(7, -1, -1))
LN2_HIGH, LN2_LOW = float.fromhex("0x1.62e42feep-1"), 1.9082149292705877e-10  # sum ln 2, the first has 33 bits
LN2_HIGH32, LN2_LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)


@overload(_exp, jit_options={"fastmath": {"contract"}, "error_model": "numpy"})  # no reassociation: r needs its order
def _exp_of_type(x):
    return _exp32 if x == numba.float32 else _exp64


def median_gamma(sets):
    """1 / median squared distance between frames, the usual start for rbf(gamma); a float > 0.

    Over pairs of at most 1000 frames, evenly spaced in the order of the sets. ValueError if the median is zero.
    """
    from scipy.spatial.distance import pdist  # slow to import

    sets = _Sets(sets, "sets")
    few = np.unique(np.linspace(0, sets.total - 1, min(sets.total, 1000)).astype(int))
    square = pdist(np.concatenate([sets.rows(i, i + 1) for i in few]).astype(np.float64), "sqeuclidean")
    median = float(np.median(square)) if len(square) else 0.0
    if not median > 0:
        raise ValueError(f"sets must hold frames that differ: the median squared distance of {len(few)} of them is {median}")
    return 1 / median


def gamma_grid(sets, n=5):
    """n values of gamma to choose from by cross-validation, the powers of 4 around median_gamma, ascending; (n,).

    Similar sets, such as the training parts of several splits, have the same grid and can share Gram matrices.
    """
    n = core._integer(n, "n", 1, 100)
    return 4.0 ** (round(math.log(median_gamma(sets), 4)) + np.arange(n) - n // 2)


# ---------------------------------------------------------------------------- sets and their subspaces


class _Sets:
    """Checked sets of frames, one after another: set i holds the frames starts[i]..starts[i + 1] - 1 of all of them."""

    def __init__(self, sets, name):
        if isinstance(sets, (str, bytes, dict)) or not hasattr(sets, "__len__"):
            raise TypeError(f"{name} must be a sequence of arrays of frames, got {type(sets).__name__}")
        self.frames = [_frames(frames, f"{name}[{i}]") for i, frames in enumerate(sets)]
        self.d = self.frames[0].shape[1] if self.frames else None
        for i, frames in enumerate(self.frames):
            if frames.shape[1] != self.d:
                raise ValueError(f"{name} must share one d: {name}[0] has d = {self.d}, {name}[{i}] has d = {frames.shape[1]}")
        single = bool(self.frames) and all(frames.dtype == np.float32 for frames in self.frames)
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.starts = np.concatenate([[0], np.cumsum([len(frames) for frames in self.frames], dtype=np.int64)])
        self.total, self.name = int(self.starts[-1]), name

    def __len__(self):
        return len(self.frames)

    def rows(self, start, stop, dtype=None):
        """Frames start..stop - 1 as a new array."""
        out, i = np.empty((stop - start, self.d), dtype or self.dtype), int(np.searchsorted(self.starts, start, "right")) - 1
        at = start
        while at < stop:
            end = min(stop, int(self.starts[i + 1]))
            out[at - start:end - start] = self.frames[i][at - self.starts[i]:end - self.starts[i]]
            at, i = end, i + 1
        return out

    def mean(self):
        return sum(frames.sum(axis=0, dtype=np.float64) for frames in self.frames) / max(self.total, 1)

    def runs(self, most, stop=None):
        """Slices of consecutive sets, each with at most that many frames or one set."""
        first, runs = 0, []
        for i in range(len(self.frames) if stop is None else stop):
            if self.starts[i + 1] - self.starts[first] > most and i > first:
                runs.append(slice(first, i))
                first = i
        return [*runs, slice(first, len(self.frames) if stop is None else stop)]


def _matrix(A, name):
    A = core._finite(A, name)
    if A.ndim != 2:
        raise ValueError(f"{name} must have shape (n_frames, d), got {A.shape}")
    return A


def _frames(frames, name):
    """Frames (n_i, d), real and finite, in the caller's memory and type where NumPy allows it."""
    try:
        frames = np.asarray(frames)
    except ValueError:
        raise ValueError(f"{name} must hold frames of one shape, got a ragged sequence") from None
    if frames.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got dtype {frames.dtype}")
    if frames.ndim not in (2, 3) or frames.size == 0:
        raise ValueError(f"{name} must have shape (n_frames, d) or (n_frames, height, width) with a frame and a pixel at "
                         f"least, got {frames.shape}")
    if frames.dtype.kind == "f":
        core._finite(frames, name)
    return frames.reshape(len(frames), -1)


def _callable(kernel):
    if not callable(kernel) or isinstance(kernel, type):
        raise TypeError(f"kernel must be a callable k(A, B), such as kernels.rbf(gamma), got {kernel!r}")
    return kernel


def _evaluate(kernel, A, B):
    """Checked values k(A, B) of any kernel."""
    values = _matrix(kernel(A, B), "kernel(A, B)")
    if values.shape != (len(A), len(B)):
        raise ValueError(f"kernel(A, B) must have shape {(len(A), len(B))}, one value a pair of rows, got {values.shape}")
    return values


def _run(job, n, block, ours):
    """job(slice) over blocks of range(n), in threads of one BLAS thread each; a user's kernel need not be safe in them."""
    if ours:
        with core._one_blas_thread:  # for a single block too: BLAS' own threads round differently
            core._in_threads(job, n, block, blas=True)
    else:
        for i in range(0, n, block):
            job(slice(i, min(i + block, n)))


def kernel_bases(sets, kernel, p):
    """Coefficients A_i (n_i, p) of an orthonormal basis Phi(X_i) A_i of each set's subspace; a list of n arrays.

    A = U S^(-1/2) of the p leading eigenpairs of K(X, X) = U S U^T (the paper's kernel coding), solved in float64. ValueError
    if a set's rank is below p: its name, the rank and the tolerance are given. A warning if eigenvalues p and p + 1 tie.
    """
    kernel, sets, p = _callable(kernel), _Sets(sets, "sets"), core._integer(p, "p", 1, core.ANY)
    bases, tied, errors = [None] * len(sets), np.zeros(len(sets), bool), {}

    def job(block):
        for i in range(block.start, block.stop):
            try:
                bases[i], tied[i] = _basis(kernel, sets, i, p)
            except ValueError as error:
                errors[i] = error
                return

    _run(job, len(sets), 16, isinstance(kernel, _Kernel))
    if errors:  # of the first set, whichever thread came first
        raise errors[min(errors)]
    core._warn_ties(int(tied.sum()), "kernel_bases: subspace")
    return bases


def _basis(kernel, sets, i, p):
    start, stop = sets.starts[i:i + 2]
    frames = sets.rows(start, stop, np.float64 if isinstance(kernel, _Kernel) else None)
    K = _evaluate(kernel, frames, frames).astype(np.float64)
    values, vectors = np.linalg.eigh((K + K.T) / 2)  # ascending
    tol, name = RANK_TOL[sets.dtype], f"{sets.name}[{i}]"
    if values[0] < -math.sqrt(tol) * np.abs(values).max():
        raise ValueError(f"kernel must be positive semidefinite, its matrix of {name} has the eigenvalue {values[0]:.2g}")
    rank = int((values > tol * values[-1]).sum()) if values[-1] > 0 else 0
    if rank < p:
        raise ValueError(f"{name} must hold p = {p} frames that are independent in feature space: got {len(frames)} frame(s) of "
                         f"numerical rank {rank} (eigenvalues above {tol:g} times the largest)")
    A = vectors[:, :-p - 1:-1] / np.sqrt(values[:-p - 1:-1])
    return A.astype(sets.dtype), core._tied(values, p, values[-1], len(values))


def _coefficients(bases, sets, name, kernel):
    """All rows of the bases (total, p), in the order of the frames; checked."""
    _callable(kernel)
    if isinstance(bases, (str, bytes)) or not hasattr(bases, "__len__") or len(bases) != len(sets):
        got = len(bases) if hasattr(bases, "__len__") else repr(bases)
        raise ValueError(f"{name} must hold {len(sets)} bases, one a set of {sets.name}, got {got}")
    bases = [core._finite(A, f"{name}[{i}]") for i, A in enumerate(bases)]
    for i, A in enumerate(bases):
        rule = len(sets.frames[i]), bases[0].shape[-1] if bases[0].ndim else 1
        if A.shape != rule:
            raise ValueError(f"{name}[{i}] must have shape {rule}, a row a frame of {sets.name}[{i}], got {A.shape}")
    return np.concatenate(bases) if bases else np.empty((0, 1))


# ---------------------------------------------------------------------------- kernel Gram matrix


def kernel_gram(sets, bases, sets2=None, bases2=None, kernel=None):
    """K[i, j] = <Psi_i^, Psi_j^> = ||A_i^T K(X_i, Y_j) A_j||_F^2 of sets X and Y with their kernel_bases; (n, N).

    Without sets2 and bases2, the symmetric (n, n) matrix of sets, at half the cost. Frames are processed in tiles: working
    memory does not grow with n, N or the number of frames beside the largest set. kernel: one of this module or any
    k(A, B) on rows, which is called from this thread alone. Source: the paper's kernel coding, with the square of the
    Frobenius norm that its text means (it prints a trace).
    """
    X = _Sets(sets, "sets")
    A = _coefficients(bases, X, "bases", kernel)
    symmetric = sets2 is None and bases2 is None or sets2 is sets and bases2 is bases
    if (sets2 is None) != (bases2 is None):
        raise ValueError("sets2 and bases2 must be given together, got one of them")
    Y, B = (X, A) if symmetric else (_Sets(sets2, "sets2"), None)
    if B is None:
        B = _coefficients(bases2, Y, "bases2", kernel)
    if len(X) == 0 or len(Y) == 0:
        return np.zeros((len(X), len(Y)), np.result_type(X.dtype, Y.dtype))
    if X.d != Y.d:
        raise ValueError(f"sets and sets2 must have the same d, got {X.d} and {Y.d}")
    dtype = np.result_type(X.dtype, Y.dtype)
    A, B = np.ascontiguousarray(A, dtype), np.ascontiguousarray(B, dtype)
    if isinstance(kernel, linear):
        points = _linear_subspaces(X, A, dtype)
        return core._gram(points, points if symmetric else _linear_subspaces(Y, B, dtype), symmetric)
    return _gram(kernel, X, A, Y, B, dtype, symmetric)


def _linear_subspaces(sets, A, dtype):
    """Psi_i = X_i^T A_i (n, d, p), which the linear kernel has as arrays."""
    pairs = zip(sets.frames, np.split(A, sets.starts[1:-1]))
    return np.stack([frames.astype(dtype, copy=False).T @ basis for frames, basis in pairs])


def _gram(kernel, X, A, Y, B, dtype, symmetric):
    """kernel_gram of checked sets and coefficients (total, p), by tiles of frames: kernel values, then both contractions."""
    K, ours = np.zeros((len(X), len(Y)), dtype), isinstance(kernel, _Kernel)
    origin = Y.mean().astype(dtype)
    pack = (lambda frames: kernel._pack(frames, origin)) if ours else (lambda frames: (frames,))
    for columns in Y.runs(max(1, min(COLUMNS, 2**22 // Y.d))):
        start, stop = Y.starts[columns.start], Y.starts[columns.stop]
        packed, M = pack(Y.rows(start, stop, dtype)), int(stop - start)
        height = max(1, min(ROWS, TILE // M, 2**21 // Y.d))  # frames of a tile
        runs, own = X.runs(height, columns.stop if symmetric else None), threading.local()

        def job(which):
            rows = runs[which.start]
            first, last = X.starts[rows.start], X.starts[rows.stop]
            half = np.zeros((rows.stop - rows.start, A.shape[1], M), dtype)  # A_i^T K(X_i, columns)
            for at in range(first, last, height):
                end = min(at + height, last)
                if not hasattr(own, "product"):
                    own.product = np.empty(height * M, dtype)
                values = _tile(kernel, pack(X.rows(at, end, dtype)), packed, own.product)
                _contract(values, A[at:end], np.clip(X.starts[rows.start:rows.stop + 1], at, end) - at, half)
            across = np.ascontiguousarray(half.reshape(-1, M).T)
            full = np.zeros((columns.stop - columns.start, B.shape[1], across.shape[1]), dtype)
            _contract(across, B[start:stop], Y.starts[columns.start:columns.stop + 1] - start, full)
            full = full.reshape(*full.shape[:2], *half.shape[:2])  # (columns, q, rows, p)
            K[rows, columns] = np.einsum("jbia,jbia->ij", full, full)

        _run(job, len(runs), 1, ours)
    for i in range(1, len(K) if symmetric else 0):
        K[i, :i] = K[:i, i]
    return K


def _tile(kernel, rows, columns, buffer):
    """Kernel values (n_rows, n_columns) of packed frames."""
    if not isinstance(kernel, _Kernel):
        return np.ascontiguousarray(_evaluate(kernel, rows[0], columns[0]), buffer.dtype)
    product = buffer[:len(rows[0]) * len(columns[0])].reshape(len(rows[0]), -1)
    np.matmul(rows[0], columns[0].T, out=product)
    kernel._values(product, *rows, *columns)
    return product


@_jit
def _contract(K, A, starts, out):
    """out[s, a] += sum_r A[r, a] K[r] over the rows starts[s] <= r < starts[s + 1], four of them at a time."""
    for s in range(len(starts) - 1):
        for left in range(0, K.shape[1], 512):  # a piece of out stays in cache
            right = min(left + 512, K.shape[1])
            r = starts[s]
            while r + 4 <= starts[s + 1]:
                k0, k1, k2, k3 = K[r, left:right], K[r + 1, left:right], K[r + 2, left:right], K[r + 3, left:right]
                for a in range(A.shape[1]):
                    c0, c1, c2, c3 = A[r, a], A[r + 1, a], A[r + 2, a], A[r + 3, a]
                    line = out[s, a, left:right]
                    for j in range(len(line)):
                        line[j] += c0 * k0[j] + c1 * k1[j] + c2 * k2[j] + c3 * k3[j]
                r += 4
            while r < starts[s + 1]:
                k0 = K[r, left:right]
                for a in range(A.shape[1]):
                    line = out[s, a, left:right]
                    for j in range(len(line)):
                        line[j] += A[r, a] * k0[j]
                r += 1


# ---------------------------------------------------------------------------- coding


def kgsc(sets, atom_sets, lam, *, kernel, p, **options):
    """Kernel Grassmann sparse coding: codes (n, N) of sets of frames over sets of frames; the paper's algorithm kgSC.

    sparse_codes on the kernel Gram matrices, with its options. To classify by residuals, or to code with several lam, compute
    the matrices once by kernel_bases and kernel_gram: norm2 is p.
    """
    return _code(core.sparse_codes, lam, sets, atom_sets, kernel, p, options)


def kglc(sets, atom_sets, n_neighbors, *, kernel, p, **options):
    """Kernel Grassmann locality-constrained coding: codes (n, N); locality_codes on the kernel Gram matrices. See kgsc."""
    return _code(core.locality_codes, n_neighbors, sets, atom_sets, kernel, p, options)


def _code(code, parameter, sets, atom_sets, kernel, p, options):
    if "norm2" in options:
        raise TypeError(f"norm2 is not an option here, it is p, got {options['norm2']!r}")
    atoms = kernel_bases(atom_sets, kernel, p)
    if not atoms:
        raise ValueError("atom_sets must hold at least one set of frames, got none")
    K_xd = kernel_gram(sets, kernel_bases(sets, kernel, p), atom_sets, atoms, kernel)
    return code(kernel_gram(atom_sets, atoms, kernel=kernel), K_xd, parameter, norm2=p, **options)


# ---------------------------------------------------------------------------- coordinates


class Lift:
    """Coordinates of the feature space, in which gsc, glc, gdl and every classifier of subspaces apply as they are.

    fit(sets) keeps the span of all training frames. transform(sets) gives bases (n, r + p, p): r coordinates C of Psi in that
    span and, so that bases stay orthonormal, p of what lies outside, (I - C^T C)^(1/2), which is zero for sets inside.
    So inner products of any set with the training sets, and with a dictionary learned from them, are exact; those of two
    sets that both lie outside are not.
    n_landmarks: keep the span of so many frames only (Nystroem), chosen by method "kmeans++" in feature space or "random",
    with rng. Each subspace is projected onto that span, bases are (n, r, p). As many landmarks as frames are exact.
    """

    def __init__(self, kernel, p, *, n_landmarks=None, method="kmeans++", rng=None):
        self.kernel, self.p, self.n_landmarks, self.method, self.rng = kernel, p, n_landmarks, method, rng

    def fit(self, sets, y=None):
        """Keep landmarks_ (r, d), independent in feature space, and factor_ (r, r), the Cholesky factor of their kernel matrix.

        dimension_ is the length of the coordinates, r + p or r."""
        kernel, sets = _callable(self.kernel), _Sets(sets, "sets")
        core._integer(self.p, "p", 1, core.ANY)
        if sets.total == 0:
            raise ValueError("sets must hold at least one frame, got none")
        n = sets.total if self.n_landmarks is None else core._integer(self.n_landmarks, "n_landmarks", 1, core.ANY)
        n = min(n, sets.total)
        if n > MAX_LANDMARKS:
            raise ValueError(f"n_landmarks must be at most {MAX_LANDMARKS}, got {self.n_landmarks} for {sets.total} frames")
        Z = _landmarks(kernel, sets, n, self.method, np.random.default_rng(self.rng)).astype(np.float64)
        K = _evaluate(kernel, Z, Z).astype(np.float64)
        scale = K.diagonal().max()
        if not scale > 0:
            raise ValueError(f"kernel must have k(z, z) > 0 for a frame of sets, got at most {scale:.2g}")
        tol = len(Z) * np.finfo(float).eps * scale
        factor, order, rank, _ = scipy.linalg.lapack.dpstrf((K + K.T) / 2, tol=tol, lower=1)
        self.landmarks_, self.factor_ = Z[order[:rank] - 1], np.tril(factor[:rank, :rank])
        self.all_ = len(Z) == sets.total
        self.dimension_ = int(rank) + (self.p if self.all_ else 0)
        return self

    def transform(self, sets):
        """Bases (n, r + p, p), or (n, r, p) from fewer landmarks than frames, of the type of the frames."""
        if not hasattr(self, "factor_"):
            raise ValueError("Lift must be fitted before transform: call fit(sets)")
        bases, sets = kernel_bases(sets, self.kernel, self.p), _Sets(sets, "sets")
        r, p = len(self.landmarks_), self.p
        if len(sets) and sets.d != self.landmarks_.shape[1]:
            raise ValueError(f"sets must have the d of the fitted ones, {self.landmarks_.shape[1]}, got {sets.d}")
        out = np.empty((len(sets), self.dimension_, p), sets.dtype)
        for block in sets.runs(max(1, TILE // r)) if len(sets) else []:
            first = sets.starts[block.start]
            values = _evaluate(self.kernel, self.landmarks_, sets.rows(first, sets.starts[block.stop], np.float64))
            parts = np.split(values, sets.starts[block.start + 1:block.stop] - first, axis=1)
            B = np.hstack([part @ A for part, A in zip(parts, bases[block])])  # (r, t p)
            C = scipy.linalg.solve_triangular(self.factor_, B, lower=True).reshape(r, -1, p).transpose(1, 0, 2)  # (t, r, p)
            out[block] = np.concatenate([C, _complement(C)], axis=1) if self.all_ else _projected(C, block.start)
        return out

    def fit_transform(self, sets, y=None):
        """fit(sets).transform(sets)."""
        return self.fit(sets).transform(sets)


def _complement(C):
    """(I - C^T C)^(1/2) for C (n, r, p): (n, p, p)."""
    values, vectors = np.linalg.eigh(np.eye(C.shape[2]) - C.transpose(0, 2, 1) @ C)
    values[values < RANK_TOL[np.dtype(np.float64)]] = 0  # rounding
    return (vectors * np.sqrt(values)[:, None]) @ vectors.transpose(0, 2, 1)


def _projected(C, first):
    """The orthonormal matrix nearest to each C (n, r, p), of the same span."""
    left, s, right = np.linalg.svd(C, full_matrices=False)
    tol = math.sqrt(RANK_TOL[np.dtype(np.float64)])
    rank = (s > tol).sum(axis=1)
    if (rank < C.shape[2]).any():
        i = int(np.argmax(rank < C.shape[2]))
        raise ValueError(f"n_landmarks must be larger: the projection of sets[{first + i}] onto the span of the landmarks has rank "
                         f"{rank[i]} < p = {C.shape[2]} (tolerance {tol:g})")
    return left @ right


def _landmarks(kernel, sets, n, method, rng):
    """n of the frames, or all of them, in feature space far from each other by k-means++ or drawn uniformly; (n, d)."""
    if method not in ("kmeans++", "random"):
        raise ValueError(f"method must be 'kmeans++' or 'random', got {method!r}")
    if n == sets.total:
        return sets.rows(0, sets.total)
    pool = np.sort(rng.choice(sets.total, n if method == "random" else min(sets.total, max(4 * n, 4096)), replace=False))
    Z = np.concatenate([sets.rows(i, i + 1) for i in pool])
    if method == "random":
        return Z
    packed = kernel._pack(Z.copy(), Z.mean(axis=0)) if isinstance(kernel, _Kernel) else (Z,)
    own = np.array([_tile(kernel, one, one, Z[:1, 0].copy())[0, 0] for one in zip(*(part[:, None] for part in packed))])  # k(z, z)
    chosen, square, free, buffer = [int(rng.integers(len(Z)))], np.full(len(Z), np.inf), np.ones(len(Z)), np.empty(len(Z), Z.dtype)
    while len(chosen) < n:
        c = chosen[-1]
        free[c] = 0
        values = _tile(kernel, packed, [part[c:c + 1] for part in packed], buffer)[:, 0]  # k(Z, z_c)
        square = np.minimum(square, np.maximum(own + own[c] - 2 * values, 0))
        weight = free * np.where(square > 1e-12 * own.max(), square, 0)
        weight = weight if weight.any() else free
        chosen.append(int(rng.choice(len(Z), p=weight / weight.sum())))
    return Z[chosen]
