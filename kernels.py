"""Coding in the feature space of a kernel: kgSC, kgLC, the kernel Gram matrix, and
coordinates (Lift).

A set of frames X (q, d) spans a subspace of the feature space of k(a, b) = <phi(a),
phi(b)>, of orthonormal basis Psi = Phi(X) A with A (q, p) from kernel_bases. Everything
follows from <Psi_i^, Psi_j^> = ||A_i^T K(X_i, X_j) A_j||_F^2, which kernel_gram gives.
Source: Harandi et al. 2015, the section on kernel coding.

Sets are a list of arrays (n_i, d) or (n_i, height, width), or one array (n, q, d).
float32 and float64 are kept, other real types become float64. A kernel is any k(A, B)
on rows, one of this module, or its name: "linear", "polynomial", "rbf", ("polynomial",
degree), ("rbf", gamma). degree is 2 and coef0 is 1 where nothing else is said, gamma is
median_gamma of the sets, of queries and atoms that of the atoms' sets. A rank counts
the eigenvalues above RANK_TOL times the largest, in every function but Lift.fit, which
keeps all frames that are independent to rounding.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, fields

import numba
import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import ArrayLike, DTypeLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "linear",
    "polynomial",
    "rbf",
    "median_gamma",
    "gamma_grid",
    "kernel_bases",
    "kernel_gram",
    "kernel_grams",
    "kgsc",
    "kglc",
    "classify",
    "Lift",
]

SMALL = 1e-30  # least size of a vector of float32 whose entries keep their digits
# Eigenvalues of a kernel matrix above this share of the largest count: half of its
# digits are left.
RANK_TOL = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 1e-5}
MAX_LANDMARKS = 2**14  # their kernel matrix takes 2 GB
FEW_FRAMES = 300  # from which median_gamma is computed
# share of the largest squared norm: the rounding of a product hides smaller distances
CLOSE = 1e-6
VALUES_AT_A_TIME = 2**20  # of a kernel
TILE_SIDE = 2048  # frames along the rows of a tile of values, or its columns
MOST_COLUMNS = 2**22  # numbers of the frames that a tile's columns are


# ------------------------------------------------------------------------------ kernels

# frames as factors of a product, their squared norms, and as they came
_Packed = namedtuple("_Packed", "rows squares frames")


class _Kernel:
    """A kernel of inner products.

    Its values are written over a product of packed frames.
    """

    def __call__(self, A: ArrayLike, B: ArrayLike) -> np.ndarray:
        A = core.finite_array(A, "A")
        B = core.finite_array(B, "B")
        if A.ndim != 2 or A.shape[1:] != B.shape[1:]:
            raise ValueError(
                "A and B must have shapes (n_frames, d) of one d, got "
                f"{A.shape} and {B.shape}"
            )
        origin = B.mean(axis=0, dtype=np.float64) if len(B) else np.zeros(B.shape[1])
        return self.values(
            self.pack(A.astype(np.float64), origin),
            self.pack(B.astype(np.float64), origin),
            np.result_type(A, B),
        )

    def values(self, rows: _Packed, columns: _Packed, dtype: DTypeLike) -> np.ndarray:
        """Those of packed frames as numbers of this type, or an error."""
        with np.errstate(over="ignore"):
            values = _tile_values(self, rows, columns).astype(dtype, copy=False)
        if not np.isfinite(values).all():
            raise ValueError(
                f"{self} of frames A and B must have values within {values.dtype}, "
                "got an overflow"
            )
        return values

    def pack(self, frames: np.ndarray, origin: np.ndarray) -> _Packed:
        """The frames, packed."""
        return _Packed(frames, np.einsum("ij,ij->i", frames, frames), frames)

    def fill(
        self,
        product: np.ndarray,
        rows: _Packed,
        columns: _Packed,
        left: int,
        right: int,
    ) -> None:
        """Replace columns left..right-1 of product = rows @ columns.T by kernel values."""


@dataclass(frozen=True)
class linear(_Kernel):
    """k(a, b) = a^T b: kernel coding with it is gSC and gLC.

    ValueError, in a call, unless A and B are finite rows of one d.

    >>> from grassmann_sc import kernels
    >>> kernels.linear()([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
    array([[11.,  2.]])
    """


@dataclass(frozen=True)
class polynomial(_Kernel):
    """k(a, b) = (a^T b + coef0)^degree, degree an integer >= 1, coef0 >= 0.

    ValueError for numbers out of range; in a call unless A and B are rows of one d
    whose values are finite.

    >>> from grassmann_sc import kernels
    >>> kernels.polynomial(degree=2, coef0=1.0)([[1.0, 2.0]], [[3.0, 4.0], [0.0, 1.0]])
    array([[144.,   9.]])
    """

    degree: int = 2
    coef0: float = 1.0

    def __post_init__(self):
        core.check_integer(self.degree, "degree", 1)
        core.check_number(self.coef0, "coef0", least=0)

    def fill(
        self,
        product: np.ndarray,
        rows: _Packed,
        columns: _Packed,
        left: int,
        right: int,
    ) -> None:
        _power(product, self.coef0, self.degree, left, right)


@dataclass(frozen=True)
class rbf(_Kernel):
    """The Gaussian k(a, b) = exp(-gamma ||a - b||^2), gamma > 0 in 1 / frames^2.

    ValueError unless gamma > 0; in a call unless A and B are finite rows of one d.

    >>> from grassmann_sc import kernels
    >>> kernels.rbf(gamma=0.5)([[0.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353]])
    """

    gamma: float

    def __post_init__(self):
        core.check_number(self.gamma, "gamma", above=0)

    def pack(self, frames: np.ndarray, origin: np.ndarray) -> _Packed:
        # changes no distance, but the norms from which near ones are computed; a far
        # origin rounds the digits of frames away, which near pairs need
        return super().pack(frames - origin, origin)._replace(frames=frames)

    def fill(
        self,
        product: np.ndarray,
        rows: _Packed,
        columns: _Packed,
        left: int,
        right: int,
    ) -> None:
        squares = rows.squares, columns.squares
        _gaussian(
            product, self.gamma, *squares, rows.frames, columns.frames, left, right
        )


@core.jit
def _power(product, coef0, degree, left, right):
    """product <- (product + coef0)^degree in the columns left..right-1."""
    for i in range(len(product)):
        line = product[i, left:right]
        for j in range(len(line)):
            base = line[j] + coef0
            power = base
            for _ in range(degree - 1):
                power *= base
            line[j] = power


# sum of squared norms, times the value, from which their rounding could show in it
CANCELS = 64.0


@core.jit
def _gaussian(product, gamma, row_squares, column_squares, rows, columns, left, right):
    """Replace product by exp(-gamma ||row - column||^2).

    product is that of rows and columns less one origin, from which the squares are; only
    its columns left..right-1 are replaced. Near pairs of large norm are computed from
    their difference, so that no value is off by more than rounding of 1.
    """
    d = rows.shape[1]
    squares = column_squares[left:right]
    largest = squares.max()
    cancels = CANCELS / gamma
    for i in range(len(product)):
        line = product[i, left:right]
        square = row_squares[i]
        for j in range(len(line)):
            line[j] = 2 * line[j] - (square + squares[j])
        if square + largest > cancels:
            # of farther pairs exp is too small for the rounding of norms to show
            far = -math.log((square + largest) / cancels) / gamma - 1e-4 * square
            for j in range(len(line)):
                if line[j] > far and square + squares[j] > cancels:
                    apart = 0.0
                    for c in range(d):
                        apart += (rows[i, c] - columns[left + j, c]) ** 2
                    line[j] = -apart
        for j in range(len(line)):
            line[j] = fast_exp(min(gamma * line[j], 0.0))


# no reassociation: r needs its order
@numba.njit(forceinline=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def fast_exp(x):
    """e^x for x <= 0 to one unit in the last place, down to subnormal numbers and zero.

    np.exp in a jitted loop is a call a number; this is arithmetic, which the compiler
    makes vector instructions of.
    """
    x = max(x, -750.0)  # e^-750 rounds to 0
    k = np.rint(x * 1.4426950408889634)  # 1 / ln 2
    r = (x - k * LN2_HIGH) - k * LN2_LOW  # the first product is exact
    y = TAYLOR[0]
    for c in TAYLOR[1:]:
        y = y * r + c
    # 2^(k + 64)
    power = np.int64((np.int64(np.int32(k)) + 1087) << 52).view(np.float64)
    return y * power * 2.0**-64


TAYLOR = tuple(1 / math.factorial(k) for k in range(13, -1, -1))
LN2_HIGH = float.fromhex("0x1.62e42feep-1")  # the first 33 bits of ln 2, and the rest
LN2_LOW = 1.9082149292705877e-10


# The one place where a kernel gets its name: kernel_named and its errors take it from
# here. In a pair (name, number) the number is the first field.
NAMED = {"rbf": rbf, "polynomial": polynomial, "linear": linear}


def kernel_named(kernel, sets, *, gamma=None, gamma_scale=None, degree=2, coef0=1.0):
    """The kernel that a name of NAMED says for sets of frames, one rule everywhere.

    "polynomial" is of degree and coef0; "rbf" of gamma, by default median_gamma(sets),
    and with gamma_scale="median" in units of that. ("polynomial", degree) and ("rbf",
    gamma) say the number too. A callable is itself.
    """
    pair = isinstance(kernel, tuple) and len(kernel) == 2
    pair = pair and kernel[0] in [name for name in NAMED if fields(NAMED[name])]
    name, number = kernel if pair else (kernel, None)
    if not isinstance(name, (str, tuple)):
        return shared.check_kernel(kernel)
    core.check_choice(name, "kernel", *NAMED)
    core.check_choice(gamma_scale, "gamma_scale", None, "median")
    if name == "polynomial":
        return polynomial(degree if number is None else number, coef0)
    if name != "rbf":
        return NAMED[name]() if number is None else NAMED[name](number)
    number = gamma if number is None else number
    if number is None:
        return rbf(median_gamma(sets))
    number = core.check_number(number, "gamma", above=0)
    return rbf(number * median_gamma(sets) if gamma_scale else number)


def median_gamma(sets: shared.Sets) -> float:
    """1 / median squared distance between frames, the usual start for rbf(gamma).

    It is > 0. The median is over pairs of at most FEW_FRAMES frames, evenly spaced in
    the order of the sets. ValueError if the median is zero, or all but zero.

    >>> from grassmann_sc import kernels
    >>> kernels.median_gamma([[[0.0], [2.0]]])
    0.25
    """
    sets = _Sets(sets, "sets", "frame")
    few = np.unique(np.linspace(0, sets.total - 1, FEW_FRAMES).astype(int))
    frames = np.concatenate([sets.rows(i, i + 1) for i in few])
    square = _squared_distances(frames)
    median = float(np.median(square)) if len(square) else 0.0
    if not median > 1e-200:  # multiples of its inverse are tried
        raise ValueError(
            "sets must hold frames that differ: the median squared distance of "
            f"{len(frames)} of them is {median}"
        )
    return 1 / median


def _squared_distances(frames):
    """||a - b||^2 of all pairs of frames (n, d), by one product where that can tell."""
    pairs = np.triu_indices(len(frames), 1)
    apart = frames - frames[0]
    G = apart @ apart.T
    squares = G.diagonal()
    square = (squares[:, None] + squares - 2 * G)[pairs]
    if not len(square) or np.median(square) > CLOSE * squares.max():
        return square
    from scipy.spatial.distance import pdist  # slow to import, and to compute

    return pdist(frames, "sqeuclidean")


def gamma_grid(sets: shared.Sets, n: int = 5) -> np.ndarray:
    """n values of gamma to choose from by cross-validation, ascending; (n,).

    The powers of 4 around median_gamma. Similar sets, such as the training parts of
    several splits, have the same grid and can share Gram matrices.

    ValueError unless 1 <= n <= 100, or where median_gamma raises it.

    >>> from grassmann_sc import kernels
    >>> kernels.gamma_grid([[[0.0], [2.0]]], n=3).tolist()
    [0.0625, 0.25, 1.0]
    """
    n = core.check_integer(n, "n", 1, 100)
    return 4.0 ** (round(math.log(median_gamma(sets), 4)) + np.arange(n) - n // 2)


# ------------------------------------------------------------- sets and their subspaces


class _Sets:
    """Checked sets of frames, one after another.

    Set i holds frames starts[i]..starts[i + 1] - 1.
    """

    def __init__(self, sets, name, needed=None):
        self.name = name
        self.frames = shared.check_sets(sets, name, needed)
        self.d = self.frames[0].shape[1] if self.frames else None
        self.dtype = np.dtype(
            shared.float_type(*self.frames) if self.frames else np.float64
        )
        self.lengths = [len(frames) for frames in self.frames]
        self.starts = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        self.total = int(self.starts[-1])

    def __len__(self):
        return len(self.frames)

    def rows(self, start, stop):
        """Frames start..stop-1 as a new array, float64."""
        first = int(np.searchsorted(self.starts, start, "right")) - 1
        last = int(np.searchsorted(self.starts, stop))
        pieces = [
            frames[max(0, start - at) : stop - at]
            for frames, at in zip(self.frames[first:last], self.starts[first:last])
        ]
        return np.concatenate(pieces, dtype=np.float64)


def kernel_bases(
    sets: shared.Sets,
    kernel: shared.AnyKernel,
    p: int | None = None,
    rank: str = "raise",
) -> list[np.ndarray]:
    """Coefficients A_i (n_i, p) of orthonormal bases Phi(X_i) A_i, in a list.

    One for each set's subspace.

    p: None for the largest that all sets have; those of a smaller p are the leading
    columns. A = U S^(-1/2) of the p leading eigenpairs of K(X, X) = U S U^T (the
    paper's Eq. 27 and 28), solved in float64. rank: "raise" a ValueError if a set's rank
    is below p: its name, the rank and the tolerance are given; or "fewer": such a set
    has as many columns as its rank. ValueError if coefficients are beyond the type of
    the sets, which is theirs too. A warning if eigenvalues p and p + 1 of a set tie, p
    being given, or its rank.

    >>> from grassmann_sc import kernels
    >>> A, = kernels.kernel_bases([[[3.0, 4.0]]], kernels.linear(), p=1)  # one set of one frame
    >>> abs(A)
    array([[0.2]])
    """
    shared.warn_of_bases(sets)
    sets = _Sets(sets, "sets")
    kernel = kernel_named(kernel, sets.frames)
    core.check_choice(rank, "rank", "raise", "fewer")
    bases, tied = _bases_of_sets(sets, kernel, p, rank)
    core.warn_ties(tied, "kernel_bases: subspace")
    return bases if sets.dtype == np.float64 else _in_single(bases, kernel)


def _in_single(bases, kernel):
    """The bases as float32, if that leaves them their digits."""
    for i, A in enumerate(bases):
        largest = np.abs(A).max(axis=0)
        if not (SMALL < largest.min() and largest.max() < 1 / SMALL):
            raise ValueError(
                f"sets[{i}] must be of float64 for {kernel}: its coefficients, "
                f"{largest.min():.1g} to {largest.max():.1g}, are beyond float32"
            )
    return [A.astype(np.float32) for A in bases]


def _bases_of_sets(sets, kernel, p, rank="raise"):
    """The coefficients of checked sets, and the number of sets with a tie."""
    if p is not None:
        p = core.check_integer(p, "p", 1)

    def solve(block):
        return [
            _coefficients_of_set(kernel, sets, i, p, rank == "fewer")
            for i in range(block.start, block.stop)
        ]

    # a user's kernel need not be safe in threads, of which one block needs none
    ours = isinstance(kernel, _Kernel)
    block = shared.sets_in_block(sets.frames, 16) if ours else max(1, len(sets))
    pairs = [pair for some in core.run_blocks(solve, len(sets), block) for pair in some]
    if p is None:
        p = min((A.shape[1] for A, _ in pairs), default=1)
    return [A[:, :p] for A, _ in pairs], sum(tie for _, tie in pairs)


def _coefficients_of_set(kernel, sets, i, p, fewer):
    """Coefficients (n_i, p) of set i, and whether eigenvalues p and p + 1 tie.

    p = None is the set's rank; fewer: at most its rank.
    """
    name = f"{sets.name}[{i}]"
    if isinstance(kernel, _Kernel):
        frames = sets.frames[i].astype(np.float64)
        packed = kernel.pack(frames, frames.mean(axis=0))
        K = kernel.values(packed, packed, np.float64)
    else:
        frames = sets.frames[i].astype(sets.dtype)
        K = shared.kernel_values(kernel, frames, frames).astype(np.float64)
    asymmetry = np.abs(K - K.T).max()
    if asymmetry > 1e-4 * np.abs(K).max():
        raise ValueError(
            f"kernel must be symmetric, k(A, B) = k(B, A)^T: its matrix of {name} has "
            f"entries that differ by {asymmetry:.2g} across the diagonal"
        )
    values, vectors = np.linalg.eigh((K + K.T) / 2)  # ascending
    tol = RANK_TOL[sets.dtype]
    if values[0] < -math.sqrt(tol) * np.abs(values).max():
        raise ValueError(
            f"kernel must be positive semidefinite, its matrix of {name} has the "
            f"eigenvalue {values[0]:.2g}"
        )
    rank = int((values > tol * values[-1]).sum()) if values[-1] > 0 else 0
    if p is None or fewer:
        p = max(1, min(rank, p or rank))
    if rank < p:
        raise ValueError(
            f"{name} must hold p = {p} frames that are independent in feature space: "
            f"got {len(frames)} frame(s) of numerical rank {rank} (eigenvalues above "
            f"{tol:g} times the largest)"
        )
    A = vectors[:, : -p - 1 : -1] / np.sqrt(values[: -p - 1 : -1])
    return A, core.eigenvalues_tie(values, p, values[-1], len(values))


def _stack_coefficients(bases, sets, name):
    """All rows of the bases (total, p), in the order of the frames; checked."""
    shared.check_sequence(bases, name, "bases")
    if len(bases) != len(sets):
        raise ValueError(
            f"{name} must hold {len(sets)} bases, one a set of {sets.name}, got "
            f"{len(bases)}"
        )
    p = "p"  # of the first, then of all
    checked = []
    for i, A in enumerate(bases):
        checked.append(
            shared.shaped_array(
                A,
                f"{name}[{i}]",
                (len(sets.frames[i]), p),
                f", a row a frame of {sets.name}[{i}]",
            )
        )
        p = checked[0].shape[1]
    return np.concatenate(checked) if checked else np.empty((0, 1))


# ------------------------------------------------------------------- kernel Gram matrix


def kernel_gram(
    sets: shared.Sets,
    bases: Sequence[ArrayLike],
    sets2: shared.Sets | None = None,
    bases2: Sequence[ArrayLike] | None = None,
    kernel: shared.AnyKernel | None = None,
    *,
    each_p: bool = False,
) -> np.ndarray:
    """K[i, j] = <Psi_i^, Psi_j^> = ||A_i^T K(X_i, Y_j) A_j||_F^2: (n, N).

    X, Y are sets with bases. Without sets2 and bases2, the symmetric (n, n) matrix of
    sets, at half the cost.

    Frames are processed in tiles: working memory does not grow with n, N or the number
    of frames beside the largest set. kernel, required, that of the bases: one of this
    module, its name ("rbf" alone without sets2 only) or any k(A, B) on rows, which is
    called from this thread alone. Source: Eq. 30, with the square of
    the Frobenius norm that its text means (it prints a trace). each_p: (p, n, N)
    instead, K[k - 1] that of the k leading columns of the bases alone, all from one
    pass over the frames.

    ValueError for bases that do not fit the sets, sets of two d, or an overflow;
    TypeError for a kernel that is none.

    >>> from grassmann_sc import kernels
    >>> sets = [[[3.0, 4.0]], [[-4.0, 3.0]]]
    >>> bases = kernels.kernel_bases(sets, kernels.linear(), p=1)
    >>> kernels.kernel_gram(sets, bases, kernel=kernels.linear()).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    core.check_flag(each_p, "each_p")
    if sets2 is not None and isinstance(kernel, str) and kernel == "rbf":
        raise ValueError(
            "kernel must be kernels.rbf(gamma) or ('rbf', gamma) with sets2, got "
            "'rbf', whose gamma is another for each collection of sets"
        )
    if (sets2 is None) != (bases2 is None):
        raise ValueError("sets2 and bases2 must be given together, got one of them")
    X = _Sets(sets, "sets")
    kernel = kernel_named(kernel, X.frames)
    A = _stack_coefficients(bases, X, "bases")
    if sets2 is None or sets2 is sets and bases2 is bases:
        return _within_range(_gram_of_sets(kernel, X, A, X, A, each_p=each_p), "bases")
    Y = _Sets(sets2, "sets2")
    B = _stack_coefficients(bases2, Y, "bases2")
    if len(X) and len(Y) and X.d != Y.d:
        raise ValueError(f"sets and sets2 must have the same d, got {X.d} and {Y.d}")
    return _within_range(
        _gram_of_sets(kernel, X, A, Y, B, each_p=each_p), "bases and bases2"
    )


def kernel_grams(
    sets: shared.Sets,
    bases: Sequence[Sequence[ArrayLike]],
    kernels: Sequence[shared.AnyKernel],
    *,
    each_p: bool = False,
) -> list[np.ndarray]:
    """kernel_gram for several kernels and bases, as a search needs them.

    The list is [kernel_gram(sets, bases[k], kernel=kernels[k], each_p=each_p), ...].
    Gaussian kernels share the products of frames, so do polynomial ones: in half the
    time of single calls and in the memory of one tile more.

    ValueError unless there is a list of bases a kernel, or where kernel_gram raises it.

    >>> from grassmann_sc import kernels
    >>> sets = [[[3.0, 4.0]], [[-4.0, 3.0]]]
    >>> some = [kernels.polynomial(2, 0.0), kernels.polynomial(3, 0.0)]
    >>> bases = [kernels.kernel_bases(sets, kernel, p=1) for kernel in some]
    >>> [K[0, 0].round(6).item() for K in kernels.kernel_grams(sets, bases, some)]
    [1.0, 1.0]
    """
    shared.check_sequence(kernels, "kernels", "kernels")
    shared.check_sequence(bases, "bases", "lists of bases, one a kernel")
    if len(bases) != len(kernels):
        raise ValueError(
            f"bases must hold {len(kernels)} lists, one a kernel, got {len(bases)}"
        )
    core.check_flag(each_p, "each_p")
    X = _Sets(sets, "sets")
    A = [_stack_coefficients(some, X, f"bases[{k}]") for k, some in enumerate(bases)]
    kernels = [kernel_named(kernel, X.frames) for kernel in kernels]
    alike: dict = {}  # kernels that share the products of frames, by index
    for k, kernel in enumerate(kernels):
        alike.setdefault(
            type(kernel) if isinstance(kernel, (polynomial, rbf)) else k, []
        ).append(k)
    grams: list = [None] * len(kernels)
    for some in alike.values():
        theirs = [A[k] for k in some]
        made = _grams_of_sets(
            [kernels[k] for k in some], X, theirs, X, theirs, each_p=each_p
        )
        for k, K in zip(some, made):
            grams[k] = _within_range(K, f"bases[{k}]")
    return grams


def _within_range(K, names):
    if not math.isfinite(K.max(initial=0)):  # NaN too
        raise ValueError(
            f"{names} must give inner products within {K.dtype}, got an overflow"
        )
    return K


def _gram_of_sets(kernel, X, A, Y, B, *, each_p=False):
    """kernel_gram of checked sets and their stacked coefficients.

    It is half the work if X is Y.
    """
    if isinstance(kernel, linear) and len(X) and len(Y):
        dtype = np.result_type(X.dtype, Y.dtype)
        gram = core.leading_grams if each_p else core.bases_gram
        return gram(
            _linear_subspaces(X, A, dtype),
            None if X is Y else _linear_subspaces(Y, B, dtype),
        )
    return _grams_of_sets([kernel], X, [A], Y, [B], each_p=each_p)[0]


def _grams_of_sets(kernels, X, A, Y, B, *, each_p):
    """The same of several kernels, which share the products of frames.

    A and B: a list for each kernel.
    """
    symmetric = X is Y
    dtype = np.result_type(X.dtype, Y.dtype)
    shape = len(X), len(Y)
    grams = [
        np.zeros((min(A_k.shape[1], B_k.shape[1]), *shape) if each_p else shape)
        for A_k, B_k in zip(A, B)
    ]
    A = [np.ascontiguousarray(A_k, np.float64) for A_k in A]
    B = [np.ascontiguousarray(B_k, np.float64) for B_k in B]
    total = sum(frames.sum(axis=0, dtype=np.float64) for frames in Y.frames)
    origin = total / max(Y.total, 1)  # the mean of all frames
    side = TILE_SIDE // 2 if symmetric else TILE_SIDE  # less work below the diagonal
    for columns in shared.batches(Y.lengths, min(side, MOST_COLUMNS // (Y.d or 1))):
        start = Y.starts[columns.start]
        stop = Y.starts[columns.stop]
        packed = _pack_frames(kernels[0], Y.rows(start, stop), origin)
        height = max(
            1,
            min(
                TILE_SIDE,
                VALUES_AT_A_TIME // int(stop - start),
                2 * MOST_COLUMNS // Y.d,
            ),
        )
        starts = Y.starts[columns.start : columns.stop + 1] - start
        for rows in shared.batches(
            X.lengths[: columns.stop if symmetric else None], height
        ):
            halves = _rows_contracted(kernels, X, A, rows, packed, origin, height)
            for half, B_k, K in zip(halves, B, grams):
                t, p, M = half.shape
                across = np.ascontiguousarray(half.reshape(-1, M).T)  # (M, t p)
                full = np.zeros((len(starts) - 1, B_k.shape[1], t * p))
                _contract(across, B_k[start:stop], starts, full, 0, t * p)
                full = full.reshape(-1, t * p)  # a row a column of a basis of Y
                add = core.sum_squares if K.ndim == 2 else core.sum_leading_squares
                add(
                    full,
                    np.arange(0, len(full) + 1, B_k.shape[1]),
                    np.arange(0, t * p + 1, p),
                    columns.start,
                    rows.start,
                    K.swapaxes(-1, -2),
                )
    for K in grams if symmetric else []:
        for i in range(1, len(X)):
            K[..., i, :i] = K[..., :i, i]
    return [K.astype(dtype, copy=False) for K in grams]


def _linear_subspaces(sets, A, dtype):
    """Psi_i = X_i^T A_i (n, d, p), which the linear kernel has as arrays."""
    pairs = zip(sets.frames, np.split(A, sets.starts[1:-1]))
    return np.array(
        [frames.T.astype(np.float64) @ basis for frames, basis in pairs], dtype
    )


def _pack_frames(kernel, frames, origin):
    """Frames as the kernel takes them; for a user's kernel as they are."""
    if isinstance(kernel, _Kernel):
        return kernel.pack(frames, origin)
    return _Packed(frames, np.empty(0, frames.dtype), frames)


def _rows_contracted(kernels, X, A, rows, columns, origin, height):
    """A_i^T K(X_i, columns) (t, p, M) of a run of t sets, for each kernel in turn.

    At most height frames at a time.
    """
    halves = [
        np.zeros((rows.stop - rows.start, A_k.shape[1], len(columns.rows))) for A_k in A
    ]
    last = X.starts[rows.stop]
    for at in range(X.starts[rows.start], last, height):
        end = min(at + height, last)
        packed = _pack_frames(kernels[0], X.rows(at, end), origin)
        starts = np.clip(X.starts[rows.start : rows.stop + 1], at, end) - at

        def take(values, k, left, right):
            _contract(values, A[k][at:end], starts, halves[k], left, right)

        _each_tile(kernels, packed, columns, take)
    return halves


def _tile_values(kernel, rows, columns):
    """Kernel values (n_rows, n_columns) of packed frames."""
    return _each_tile([kernel], rows, columns, lambda *_: None)


def _each_tile(kernels, rows, columns, take):
    """Call take(values, k, left, right) with kernel values of columns left..right-1.

    values (n_rows, n_columns) are those of kernels[k], ready and in cache; threads
    share the columns. Returns the values of the last kernel.
    """
    if not isinstance(kernels[0], _Kernel):  # a user's, alone
        values = np.ascontiguousarray(
            shared.kernel_values(kernels[0], rows.rows, columns.rows), np.float64
        )
        core.run_blocks(
            lambda some: take(values, 0, some.start, some.stop), values.shape[1], 128
        )
        return values
    product = rows.rows @ columns.rows.T
    last = len(kernels) - 1  # its values may replace the product
    spare = np.empty_like(product) if last else product

    def finish(some):
        for k, kernel in enumerate(kernels):
            values = spare if k < last else product
            if k < last:
                values[:, some] = product[:, some]
            kernel.fill(values, rows, columns, some.start, some.stop)
            take(values, k, some.start, some.stop)

    core.run_blocks(finish, product.shape[1], 128)
    return product


@core.jit
def _contract(K, A, starts, out, left, right):
    """out[s, a] += sum_r A[r, a] K[r] over the rows starts[s] <= r < starts[s + 1].

    In the columns left..right-1, in pieces that stay in cache, four rows at a time; in
    place of rows behind the last, it counts with weight 0.
    """
    for s in range(len(starts) - 1):
        last = starts[s + 1] - 1
        for low in range(left, right, 512):
            high = min(low + 512, right)
            for r in range(starts[s], last + 1, 4):
                k0 = K[r, low:high]
                k1 = K[min(r + 1, last), low:high]
                k2 = K[min(r + 2, last), low:high]
                k3 = K[min(r + 3, last), low:high]
                for a in range(A.shape[1]):
                    line = out[s, a, low:high]
                    w1 = A[r + 1, a] if r < last else 0.0
                    w2 = A[r + 2, a] if r + 1 < last else 0.0
                    w3 = A[r + 3, a] if r + 2 < last else 0.0
                    for j in range(len(line)):
                        line[j] += (
                            A[r, a] * k0[j] + w1 * k1[j] + w2 * k2[j] + w3 * k3[j]
                        )


# ------------------------------------------------------------------------------- coding


def kgsc(
    sets: shared.Sets,
    atom_sets: shared.Sets,
    lam: ArrayLike,
    *,
    kernel: shared.AnyKernel,
    p: int,
    lam_scale: str | None = None,
    positive: bool = False,
    init: core.Codes | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
    sparse_output: bool = False,
) -> core.Coded:
    """Kernel Grassmann sparse coding: codes (n, N) of sets of frames over sets.

    The paper's kgSC (Eq. 29). grassmann_sc.sparse_codes on the kernel Gram matrices,
    with its options. kernel: an object, or a name, as "rbf", whose gamma is
    median_gamma(atom_sets). To code with several lam, or in several ways, compute the
    matrices once by kernel_bases and kernel_gram: norm2 is p.

    See also grassmann_sc.gsc, the same for the linear kernel, and classify.

    ValueError where kernel_bases raises it, for sets of two d, no atoms, or options
    that sparse_codes refuses.

    >>> from grassmann_sc import kernels
    >>> sets = [[[3.0, 4.0]], [[-4.0, 3.0]]]
    >>> kernels.kgsc(sets[:1], sets, lam=1.0, kernel=kernels.polynomial(2, 0.0), p=1).round(6)
    array([[0.5, 0. ]])
    """
    X, D, kernel, p = _coding_problem(sets, atom_sets, kernel, p)
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
    return code(*_grams_of_coding(X, D, kernel, p), p)


def kglc(
    sets: shared.Sets,
    atom_sets: shared.Sets,
    n_neighbors: int,
    *,
    kernel: shared.AnyKernel,
    p: int,
    reg: float | None = None,
    sparse_output: bool = False,
) -> np.ndarray | scipy.sparse.csr_array:
    """Kernel Grassmann locality-constrained coding: codes (n, N); the paper's kgLC.

    With the matrix of Eq. 31. grassmann_sc.locality_codes on the kernel Gram matrices,
    with its options. See kgsc.

    ValueError where kernel_bases raises it, for sets of two d, no atoms, or options
    that locality_codes refuses.

    >>> from grassmann_sc import kernels
    >>> sets = [[[3.0, 4.0]], [[-4.0, 3.0]]]
    >>> kernels.kglc(sets[:1], sets, n_neighbors=1, kernel=kernels.rbf(0.1), p=1)
    array([[1., 0.]])
    """
    X, D, kernel, p = _coding_problem(sets, atom_sets, kernel, p)
    dtype = np.result_type(X.dtype, D.dtype)
    code = core.local_coding(len(D), dtype, n_neighbors, reg, sparse_output)
    return code(*_grams_of_coding(X, D, kernel, p), p)


def classify(
    sets: shared.Sets,
    atom_sets: shared.Sets,
    labels: core.Labels,
    *,
    kernel: shared.AnyKernel,
    p: int,
    lam: float | None = None,
    n_neighbors: int | None = None,
    lam_scale: str | None = None,
    positive: bool = False,
    reg: float | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
) -> np.ndarray | core.Classified:
    """Labels (n,) of sets of frames from their kgSC (lam) or kgLC (n_neighbors) codes.

    atom_sets: labelled sets, labels (N,). Rules and options as in
    grassmann_sc.classify, in feature space, where each set has a subspace of dimension
    p.

    ValueError where kgsc or kglc raises it, or unless labels are as many as atoms.

    >>> import numpy as np
    >>> from grassmann_sc import kernels
    >>> sets = np.random.default_rng(0).standard_normal((4, 6, 10))  # four sets of six frames
    >>> labels = ["ape", "bee", "ape", "bee"]
    >>> kernels.classify(sets, sets, labels, lam=0.1, kernel=kernels.rbf(0.1), p=2).tolist()
    ['ape', 'bee', 'ape', 'bee']
    """
    X, D, kernel, p = _coding_problem(sets, atom_sets, kernel, p)
    labelled = core.check_labels(labels, len(D))
    code = core.make_coding(
        (len(X), len(D)),
        np.result_type(X.dtype, D.dtype),
        lam,
        n_neighbors,
        lam_scale=lam_scale,
        positive=positive,
        reg=reg,
        tol=tol,
        max_iter=max_iter,
    )
    return_info = core.check_flag(return_info, "return_info")
    grams = _grams_of_coding(X, D, kernel, p)
    return core.classify_by_codes(*grams, p, labelled, code, return_info)


def _coding_problem(sets, atom_sets, kernel, p):
    """Sets X to be coded over D, the kernel and p: all checked, nothing computed."""
    p = core.check_integer(p, "p", 1)
    shared.warn_of_bases(sets)
    shared.warn_of_bases(atom_sets)
    X = _Sets(sets, "sets")
    D = _Sets(atom_sets, "atom_sets", "set of frames")
    kernel = kernel_named(kernel, D.frames)
    if len(X) and X.d != D.d:
        raise ValueError(
            f"sets and atom_sets must have the same d, got {X.d} and {D.d}"
        )
    return X, D, kernel, p


def _grams_of_coding(X, D, kernel, p):
    """Kernel Gram matrices (N, N) and (n, N) of atoms D, and of sets X with them."""
    atoms, tied_atoms = _bases_of_sets(D, kernel, p)
    queries, tied = _bases_of_sets(X, kernel, p)
    core.warn_ties(tied + tied_atoms, "kernel coding: subspace")
    atoms = np.concatenate(atoms)
    queries = np.concatenate(queries) if queries else np.empty((0, p))
    K_dd = _gram_of_sets(kernel, D, atoms, D, atoms)
    K_xd = _gram_of_sets(kernel, X, queries, D, atoms)
    return K_dd.astype(np.result_type(K_dd, K_xd), copy=False), K_xd


# -------------------------------------------------------------------------- coordinates


@dataclass(eq=False)
class Lift:
    """Coordinates of feature space, to which gsc, glc, gdl and all classifiers apply.

    fit(sets) keeps the span of all training frames. transform(sets) gives bases (n, r +
    p, p): r coordinates C of Psi in that span and, so that bases stay orthonormal, p of
    what lies outside, (I - C^T C)^(1/2), which is zero for sets inside. So inner
    products of any set with the training sets, and with a dictionary learned from them,
    are exact but for rounding, which nearly dependent training frames magnify (1e-7 on
    trials); those of two sets that both lie outside are not. n_landmarks: keep the
    span of so many frames only (Nystroem), chosen by k-means++ in feature space with
    rng. Each subspace is projected onto that span, bases are (n, r, p). As many
    landmarks as frames are exact.

    See also learn.kgdl and estimators.KernelLift, which use it.

    ValueError, by fit, for landmarks beyond 2^14, or a kernel that is not positive
    semidefinite for two frames; by transform before fit, for a rank below p, or for
    another d.

    >>> from grassmann_sc import kernels, projection_kernel
    >>> sets = [[[3.0, 4.0]], [[-4.0, 3.0]]]
    >>> X = kernels.Lift(kernels.polynomial(2, 0.0), p=1).fit(sets).transform(sets)
    >>> projection_kernel(X).round(6)  # what kernel_gram gives
    array([[1., 0.],
           [0., 1.]])
    """

    kernel: shared.AnyKernel
    p: int
    _: KW_ONLY
    n_landmarks: int | None = None
    rng: core.Rng = None

    def fit(self, sets: shared.Sets, y: object = None) -> Lift:
        """Keep landmarks_ (r, d), independent in feature space, and factor_ (r, r).

        factor_ is the Cholesky factor of their kernel matrix; dimension_ is the length
        of the coordinates, r + p or r; kernel_ is the kernel, which a name says for
        these sets.
        """
        shared.warn_of_bases(sets)
        sets = _Sets(sets, "sets", "frame")
        p = core.check_integer(self.p, "p", 1)
        kernel = kernel_named(self.kernel, sets.frames)
        n = sets.total if self.n_landmarks is None else self.n_landmarks
        n = min(sets.total, core.check_integer(n, "n_landmarks", 1))
        if n > MAX_LANDMARKS:
            raise ValueError(
                f"n_landmarks must be at most {MAX_LANDMARKS}, got {self.n_landmarks} "
                f"for {sets.total} frames"
            )
        Z = _landmarks(kernel, sets, n, core.check_rng(self.rng))
        K = shared.kernel_values(kernel, Z, Z).astype(np.float64)
        positive = K.diagonal() > 0
        if not positive.any():
            raise ValueError(
                f"kernel must have k(z, z) > 0 for a frame of sets, got at most "
                f"{K.diagonal().max():.2g}"
            )
        norms = np.sqrt(K.diagonal(), where=positive, out=np.ones(len(K)))
        K = K + K.T
        K /= 2 * norms  # to unit norms: else small frames are lost beside large ones
        K /= norms[:, None]
        if core.max_abs(K) > 1 + 1e-3:
            raise ValueError(
                "kernel must be positive semidefinite, got |k(x, z)| of "
                f"{core.max_abs(K):.4g} sqrt(k(x, x) k(z, z)) for two frames"
            )
        # equal to the last digit: the order is that of frames
        np.fill_diagonal(K, positive)
        tol = len(K) * np.finfo(float).eps
        factor, order, rank, _ = scipy.linalg.lapack.dpstrf(K, tol=tol, lower=1)
        order = order[:rank] - 1
        self.landmarks_ = Z[order]
        self.factor_ = np.tril(factor[:rank, :rank]) * norms[order][:, None]
        self.kernel_ = kernel
        self.all_ = len(Z) == sets.total
        self.dimension_ = int(rank) + (p if self.all_ else 0)
        return self

    def transform(self, sets: shared.Sets, p: int | None = None) -> np.ndarray:
        """Bases (n, r + p, p) of sets in the coordinates, of the frames' type.

        (n, r, p) if there are fewer landmarks than frames. p: the dimension of these
        subspaces, if it is not that of fit.
        """
        if not hasattr(self, "factor_"):
            raise ValueError("Lift must be fitted before transform: call fit(sets)")
        sets = _Sets(sets, "sets")
        p = core.check_integer(self.p if p is None else p, "p", 1)
        r, d = self.landmarks_.shape
        if len(sets) and sets.d != d:
            raise ValueError(
                f"sets must have d = {d}, as in fit, got d = {sets.d} in transform"
            )
        bases, tied = _bases_of_sets(sets, self.kernel_, p)
        core.warn_ties(tied, "Lift: subspace")
        out = np.empty((len(sets), r + p if self.all_ else r, p), sets.dtype)
        for block in shared.batches(sets.lengths, VALUES_AT_A_TIME // r):
            first = sets.starts[block.start]
            values = shared.kernel_values(
                self.kernel_,
                self.landmarks_,
                sets.rows(first, sets.starts[block.stop]),
            )
            ends = sets.starts[block.start + 1 : block.stop] - first
            pairs = zip(np.split(values, ends, axis=1), bases[block])
            B = np.hstack([part @ A for part, A in pairs])  # (r, t p)
            C = scipy.linalg.solve_triangular(self.factor_, B, lower=True)
            C = C.reshape(r, -1, p).transpose(1, 0, 2)  # (t, r, p)
            if self.all_:
                out[block] = _with_complement(C)
            else:
                out[block] = _nearest_orthonormal(C, block.start)
        return out

    def fit_transform(self, sets: shared.Sets, y: object = None) -> np.ndarray:
        """fit(sets).transform(sets)."""
        return self.fit(sets).transform(sets)


def _with_complement(C):
    """C (n, r, p) and below it (I - C^T C)^(1/2): orthonormal bases (n, r + p, p).

    Directions that rounding made longer than 1, as nearly dependent frames magnify it,
    are brought to length 1.
    """
    values, vectors = np.linalg.eigh(C.transpose(0, 2, 1) @ C)
    turned = vectors.transpose(0, 2, 1)
    beside = 1 - values
    beside[beside < RANK_TOL[np.dtype(np.float64)]] = 0  # rounding
    C = C @ (vectors / np.sqrt(np.maximum(values, 1))[:, None]) @ turned
    return np.concatenate([C, (vectors * np.sqrt(beside)[:, None]) @ turned], axis=1)


def _nearest_orthonormal(C, first):
    """The orthonormal matrix nearest to each C (n, r, p), of the same span.

    C[0] is of set first.
    """
    left, s, right = np.linalg.svd(C, full_matrices=False)
    tol = math.sqrt(RANK_TOL[np.dtype(np.float64)])
    rank = (s > tol).sum(axis=1)
    if (rank < C.shape[2]).any():
        i = int(np.argmax(rank < C.shape[2]))
        raise ValueError(
            "n_landmarks must be larger: the projection of "
            f"sets[{first + i}] onto the span of the landmarks has rank {rank[i]} < p "
            f"= {C.shape[2]} (tolerance {tol:g})"
        )
    return left @ right


def _landmarks(kernel, sets, n, rng):
    """n of the frames, far from each other in feature space, or all: (n, d), float64."""
    if n == sets.total:
        return sets.rows(0, sets.total)
    size = min(sets.total, max(4 * n, 4096))
    pool = np.sort(rng.choice(sets.total, size, replace=False))
    Z = np.concatenate([sets.rows(i, i + 1) for i in pool])
    return _spread(kernel, Z, n, rng)


def _spread(kernel, Z, n, rng):
    """n of the frames Z (m, d) by k-means++ in feature space."""
    packed = _pack_frames(kernel, Z, Z.mean(axis=0))

    def packed_frame(c):
        return _Packed(*(part[c : c + 1] for part in packed))

    # k(z, z)
    own = np.array(
        [
            _tile_values(kernel, packed_frame(c), packed_frame(c))[0, 0]
            for c in range(len(Z))
        ]
    )
    chosen = [int(rng.integers(len(Z)))]
    square = np.full(len(Z), np.inf)
    free = np.ones(len(Z))
    while len(chosen) < n:
        c = chosen[-1]
        free[c] = 0
        values = _tile_values(kernel, packed, packed_frame(c))[:, 0]
        square = np.minimum(square, np.maximum(own + own[c] - 2 * values, 0))
        weight = free * np.where(square > 1e-12 * own.max(), square, 0)
        weight = weight if weight.any() else free
        chosen.append(int(rng.choice(len(Z), p=weight / weight.sum())))
    return Z[chosen]
