"""Frames to points: subspaces of image sets and of videos.

A set of frames is an array with a frame a row, (n_frames, d) or (n_frames, height,
width); its subspace is a (d, p) matrix with orthonormal columns. After Harandi et al.
2015, "Modeling of Appearance" (SVD, block Hankel matrices) and "Modeling of Dynamics"
(ARMA). Shared options of all functions that make subspaces:

center:
    remove the mean frame first (which costs one independent frame)
unit_variance:
    remove it, and divide each pixel by its standard deviation over the frames, as in
    the paper's traffic experiment; a constant pixel becomes 0 (one factor for a whole
    clip would change no subspace)
rank:
    what to do when fewer directions than asked for are independent. "raise": a
    ValueError. "pad": complete the basis by directions orthogonal to the frames,
    pseudo-random so that padded sets do not look alike. "warn": pad, and warn. "fewer"
    (of one set alone): return fewer than p columns. No direction at all is always an
    error.

float32 frames give float32 results, all others float64; the work is done in float64. A
singular value counts towards the rank when it exceeds 10 eps sqrt(n_frames d) max|F|,
eps being that of the result's dtype, times the largest factor of unit_variance.
frames.read_frames reads frames from files.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections import namedtuple
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "from_image_set",
    "from_sets",
    "singular_directions",
    "weighted",
    "from_video",
    "from_videos",
    "block_hankel",
    "arma",
    "observability",
]

# a pixel whose standard deviation is below so many eps of its peak does not vary
CONSTANT = 30
# to which `stabilize` scales; near 1, it changes next to nothing
STABLE_RADIUS = 1 - 2.0**-30
CACHE = 2**16  # numbers of the frames that fit a core's cache
# triangles at a time; a block has so many times as many pixels as frames, or more
JOINED = 8
MOST = 32  # directions of a weighted subspace, and of singular_directions
LIGHT = 1e-3  # of the first weight: lighter directions are cut
LAPACK = 3000  # numbers of a set, most of whose directions LAPACK finds sooner
TINY = 1e-280  # a square as small as this is 0 beside numbers of about 1


def from_image_set(
    frames: ArrayLike,
    p: int | None = None,
    *,
    spectrum: float | None = None,
    center: bool = False,
    unit_variance: bool = False,
    rank: str = "raise",
) -> np.ndarray:
    """Basis (d, p) of the subspace that best fits the frames, leading direction first.

    The p leading left singular vectors of F = [f_1, ..., f_n], whose columns are the
    vectorised frames: with F = U S V^T, B = U[:, :p] minimises sum_i ||f_i - B B^T
    f_i||^2. A column's sign is arbitrary.

    frames: (n_frames, d) or (n_frames, height, width), real and finite; d = height *
        width
    p: 1 <= p <= d; there must be p independent frames, see rank at the head of this
        module, and center, unit_variance
    spectrum: instead of p, alpha >= 0: the weighted subspace of the frames, see
        weighted, of at most MOST = 32 directions; p may be a smaller limit

    Raises TypeError and ValueError on any other input.

    >>> from grassmann_sc import subspaces
    >>> abs(subspaces.from_image_set([[3.0, 4.0], [6.0, 8.0]], p=1))  # two frames of two pixels
    array([[0.6],
           [0.8]])
    """
    options = _check_options(center, unit_variance, rank, fewer=True)
    point_of = _maker(p, spectrum, options)
    return point_of(shared.check_frames(frames, "frames"), "frames")


def from_sets(
    sets: shared.Sets | Iterable[ArrayLike],
    p: int | None = None,
    *,
    spectrum: float | None = None,
    center: bool = False,
    unit_variance: bool = False,
    rank: str = "raise",
) -> np.ndarray:
    """Bases (n, d, p) of n image sets: from_image_set on each, in parallel.

    The errors name the set.

    sets: iterable of at least one set of frames, each of its own length, all of the
        same d; or one array (n, n_frames, d) or (n, n_frames, height, width). A
        generator is read a few sets at a time.
    spectrum: weighted subspaces (n, d, r), see weighted; those of fewer than r
        directions end with columns of zeros. They take n d r numbers, r <= 32.

    See also estimators.ImageSetSubspaces, the same as the first step of a Pipeline.

    ValueError where from_image_set raises it, for no sets, or sets of two d; TypeError
    for what is no iterable.

    >>> import numpy as np
    >>> from grassmann_sc import subspaces
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.random((n_frames, 6, 8)) for n_frames in (5, 9, 7)]  # frames of 6 x 8 pixels
    >>> subspaces.from_sets(sets, p=3).shape
    (3, 48, 3)
    >>> subspaces.from_sets(sets, spectrum=0.25).shape
    (3, 48, 9)
    """
    shared.warn_of_bases(sets)
    return subspaces_of(sets, p, spectrum, center, unit_variance, rank)


def subspaces_of(sets, p, spectrum, center, unit_variance, rank):
    """from_sets, of sets that were looked at: they may be bases all the same."""
    options = _check_options(center, unit_variance, rank, _in_turn)
    return _stack(sets, _maker(p, spectrum, options))


def singular_directions(
    frames: ArrayLike,
    most: int = MOST,
    *,
    center: bool = False,
    unit_variance: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """U (d, r) and s (r,): the leading left singular vectors and values of the frames.

    r is the rank of the frames, or most. U[:, :p] is from_image_set(frames, p), and
    weighted(U, s, alpha) its weighted subspace for any alpha. s is divided by the
    first, so that s[0] = 1.

    ValueError for frames that are all 0 or not finite, or most below 1.

    >>> from grassmann_sc import subspaces
    >>> U, s = subspaces.singular_directions([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    >>> U.shape, s
    ((3, 2), array([1. , 0.5]))
    """
    most = core.check_integer(most, "most", 1)
    options = _check_options(center, unit_variance, "fewer", fewer=True)
    frames = shared.check_frames(frames, "frames")
    U, s, _ = _leading_directions(
        frames, "frames", min(most, *frames.shape), "most", options
    )
    return tuple(A.astype(shared.float_type(frames)) for A in (U, s / s[0]))


def weighted(U: ArrayLike, s: ArrayLike, spectrum: float) -> np.ndarray:
    """Weighted subspaces B (..., d, r) of directions U (..., d, r) with values s (..., r).

    X^ = B B^T = sum_k w_k u_k u_k^T with w_k proportional to (s_k / s_1)^(2 alpha),
    alpha = spectrum >= 0, and ||w||_2 = 1: the columns are b_k = sqrt(w_k) u_k, ||X^||_F
    = 1, and <X^, Y^> = ||B^T C||_F^2 with Y^ = C C^T. For alpha = 0 all directions
    count alike, and X^ is the projector over sqrt(r); for a large alpha the first alone
    counts. Weights below LIGHT = 1e-3 of the first become 0.

    U: orthonormal columns, leading first, or columns of zeros where s is 0, which is
    not checked here; s: not negative, descending. Source: Hamm and Lee 2008, Extended
    Grassmann kernels for subspace-based learning.

    ValueError for shapes that do not fit, values that do not descend, or a spectrum
    below 0.

    >>> import numpy as np
    >>> from grassmann_sc import projection_kernel, subspaces
    >>> B = subspaces.weighted(np.eye(3)[:, :2], [1.0, 0.75], spectrum=0.5)
    >>> (B**2).sum(axis=0)  # w
    array([0.8, 0.6])
    >>> projection_kernel(B[None])
    array([[1.]])
    """
    U = core.finite_array(U, "U")
    s = core.finite_array(s, "s")
    alpha = core.check_number(spectrum, "spectrum", least=0)
    if U.ndim < 2 or s.shape != (*U.shape[:-2], U.shape[-1]):
        raise ValueError(
            f"U and s must have shapes (..., d, r) and (..., r), got {U.shape} and "
            f"{s.shape}"
        )
    if not (s[..., :1] > 0).all() or (np.diff(s) > 0).any() or (s < 0).any():
        raise ValueError(
            "s must be singular values, descending and >= 0, the first positive, got "
            f"{s}"
        )
    return U * np.sqrt(weights_of(s, alpha))[..., None, :].astype(U.dtype)


def weights_of(s, alpha):
    """Weights w (..., r) of ||w||_2 = 1 of checked singular values s (..., r)."""
    w = np.where(s > 0, (s / s[..., :1]).astype(np.float64) ** (2 * alpha), 0)
    w[w < LIGHT] = 0
    return w / np.linalg.norm(w, axis=-1, keepdims=True)


def weighted_grams(U, weights, V=None, weights2=None, total=False):
    """Gram matrices (m, n, n) of sum_k weights[., i, k] u_k u_k^T, from one product.

    U (n, d, r): checked orthonormal columns u_k, or zero ones; weights (m, n, r). With V
    (N, d, q) of U's type and weights2 (m, N, q): (m, n, N). total: the sum of the
    matrices alone, (1, n, n).
    """
    U, weights = _weighted_columns(U, weights)
    V, weights2 = (None, weights) if V is None else _weighted_columns(V, weights2)

    def add(product, rows, columns, top, left, K):
        _sum_weighted_squares(product, rows, columns, weights, weights2, top, left, K)

    return core.bases_gram(U, V, add, (1 if total else len(weights),))


def _weighted_columns(U, weights):
    """The columns of U up to the last with a weight, weights (m, all that are in use)."""
    most = 1 + np.flatnonzero(weights.any(axis=(0, 1))).max(initial=0)
    U = U[:, :, :most]
    weights = weights[:, :, :most]
    used, _ = core.columns_in_use(U)
    weights = weights[:, slice(None) if used is None else used].astype(U.dtype)
    return U, weights.reshape(len(weights), -1)


@core.jit
def _sum_weighted_squares(
    product, rows, columns, weights, column_weights, top, left, K
):
    """As the core's sum_squares, in K (m, n, N), or (1, n, N).

    weights (m, all rows), column_weights (m, all columns).
    """
    sums = np.empty(product.shape[1], product.dtype)
    for i in range(len(rows) - 1):
        for m in range(len(weights)):
            k = min(m, len(K) - 1)
            sums[:] = 0
            for a in range(rows[i], rows[i + 1]):
                row = product[a - rows[0]]
                for c in range(len(sums)):
                    sums[c] += weights[m, a] * row[c] * row[c]
            for j in range(len(columns) - 1):
                total = 0.0
                for c in range(columns[j], columns[j + 1]):
                    total += column_weights[m, c] * sums[c - columns[0]]
                if k < m:
                    total += K[k, top + i, left + j]
                K[k, top + i, left + j] = total


def from_video(
    frames: ArrayLike,
    n_states: int,
    n_blocks: int,
    stabilize: bool = False,
    *,
    center: bool = False,
    unit_variance: bool = False,
    rank: str = "raise",
) -> np.ndarray:
    """Orthonormal basis of the observability matrix of arma(frames).

    It has shape (n_blocks d, n_states). C has orthonormal columns, so if [I; A; ...;
    A^(n_blocks-1)] = Q R with blocks Q_k, then the blocks C Q_k are the orthonormal
    factor of [C; CA; ...; CA^(n_blocks-1)]: no factorisation of the tall matrix is
    needed. With n_blocks = 1 the dynamics play no part: the basis is that of
    from_image_set. The paper's Eq. 43 and the text after it.

    frames: in order of time, (n_frames, d) or (n_frames, height, width); n_states <= d
    stabilize: as in arma

    ValueError where arma raises it, or for n_states independent frames that are not
    there (see rank).

    >>> from grassmann_sc import subspaces
    >>> abs(subspaces.from_video([[1.0], [2.0], [4.0]], n_states=1, n_blocks=2)).round(4)
    array([[0.4472],
           [0.8944]])
    """
    model = _check_model(n_states, n_blocks, stabilize)
    options = _check_options(center, unit_variance, rank)
    return _basis_of_video(
        shared.check_frames(frames, "frames"), "frames", model, options
    )


def from_videos(
    videos: shared.Sets | Iterable[ArrayLike],
    n_states: int,
    n_blocks: int,
    stabilize: bool = False,
    *,
    center: bool = False,
    unit_variance: bool = False,
    rank: str = "raise",
) -> np.ndarray:
    """Bases (n, n_blocks d, n_states) of n videos.

    from_video on each, as from_sets does.

    ValueError where from_video raises it, or for no videos; TypeError for what is no
    iterable.

    >>> import numpy as np
    >>> from grassmann_sc import subspaces
    >>> videos = np.random.default_rng(0).random((4, 20, 6, 8))  # four of 20 frames
    >>> subspaces.from_videos(videos, n_states=3, n_blocks=2).shape
    (4, 96, 3)
    """
    model = _check_model(n_states, n_blocks, stabilize)
    options = _check_options(center, unit_variance, rank, _in_turn)
    return _stack(
        videos, lambda frames, name: _basis_of_video(frames, name, model, options)
    )


def block_hankel(frames: ArrayLike, n_blocks: int) -> np.ndarray:
    """Frames with their successors, (n_frames - n_blocks + 1, n_blocks d).

    Row i is f_i, f_(i+1), ..., f_(i+n_blocks-1): the transposed block Hankel matrix of
    the frames (n_frames, d) or (n_frames, height, width), a set of frames whose
    subspace, unlike that of the frames, depends on their order. A read-only view: no
    entry is stored twice.

    ValueError unless 1 <= n_blocks <= n_frames, and frames are finite.

    >>> from grassmann_sc import subspaces
    >>> subspaces.block_hankel([[1.0], [2.0], [3.0], [4.0]], n_blocks=2)
    array([[1., 2.],
           [2., 3.],
           [3., 4.]])
    """
    frames = shared.check_frames(frames, "frames")
    n_blocks = core.check_integer(n_blocks, "n_blocks", 1)
    n, d = frames.shape
    if n_blocks > n:
        raise ValueError(f"n_blocks must be at most n_frames = {n}, got {n_blocks}")
    return np.lib.stride_tricks.sliding_window_view(frames.reshape(-1), n_blocks * d)[
        ::d
    ]


def arma(
    frames: ArrayLike,
    n_states: int,
    *,
    stabilize: bool = False,
    center: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Estimate A, C of the ARMA model f(t) = C z(t) + w(t), z(t+1) = A z(t) + v(t).

    A has shape (n_states, n_states), C (d, n_states). The paper's closed form (Eq. 39
    to 42): F = U S V^T, C = U, A = S V^T D1 V (V^T D2 V)^-1 S^-1 for the n_states
    leading singular triplets, which is the least-squares solution of A z(t) = z(t+1)
    for the states S V^T, and is computed as such. ValueError unless n_states + 1 frames
    determine A.

    frames: in order of time, (n_frames, d) or (n_frames, height, width); n_states <= d
    stabilize: scale A to a spectral radius just below 1 if it is 1 or more, so that
        its powers stay bounded

    >>> from grassmann_sc import subspaces
    >>> A, C = subspaces.arma([[1.0], [2.0], [4.0], [8.0]], n_states=1)  # each frame twice the last
    >>> A.round(6), abs(C)
    (array([[2.]]), array([[1.]]))
    """
    model = _check_model(n_states, 1, stabilize)
    options = _check_options(center, False, "raise")
    frames = shared.check_frames(frames, "frames")
    A, C = _arma(frames, "frames", model, options)
    return A.astype(shared.float_type(frames)), C.astype(shared.float_type(frames))


def observability(A: ArrayLike, C: ArrayLike, n_blocks: int) -> np.ndarray:
    """Finite observability matrix [C; CA; ...; CA^(n_blocks-1)]: (n_blocks d, n).

    A has shape (n, n), C (d, n). Source: Eq. 43.

    ValueError for shapes that do not fit, or powers of A that overflow.

    >>> from grassmann_sc import subspaces
    >>> subspaces.observability([[2.0]], [[1.0]], n_blocks=3)
    array([[1.],
           [2.],
           [4.]])
    """
    A = shared.shaped_array(A, "A", ("n_states", "n_states"))
    C = shared.shaped_array(C, "C", ("d", len(A)), ", as many columns as A")
    n_blocks = core.check_integer(n_blocks, "n_blocks", 1)
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = C.astype(np.float64) @ _powers(A.astype(np.float64), n_blocks)
        blocks = blocks.reshape(-1, len(A)).astype(np.result_type(A, C))
    if not np.isfinite(blocks).all():
        raise ValueError(
            f"A must have powers whose products with C are within {blocks.dtype}, got an "
            "overflow"
        )
    return blocks


# -------------------------------------------------------------------- from set to basis


# run: core.run_blocks for blocks of pixels, or _in_turn where threads have whole sets
_Options = namedtuple("_Options", "center unit_variance rank run")
_Model = namedtuple("_Model", "n_states n_blocks stabilize")


def _maker(p, spectrum, options):
    """from_image_set, (checked frames, what to call them) -> point, by these options."""
    if spectrum is None:
        p = core.check_integer(p, "p", 1)
    else:
        spectrum = core.check_number(spectrum, "spectrum", least=0)
        p = MOST if p is None else core.check_integer(p, "p", 1, MOST)
        if options.rank in ("warn", "pad"):
            raise ValueError(
                "rank must be left out with spectrum: a weighted subspace has the "
                f"directions that there are, got {options.rank!r}"
            )
        options = options._replace(rank="fewer")

    def point_of(frames, name):
        most = min(p, *frames.shape) if options.rank == "fewer" else p
        columns, s, _ = _leading_directions(frames, name, most, "p", options)
        if spectrum is not None:
            w = weights_of(s, spectrum)
            columns = (columns * np.sqrt(w))[:, w > 0]
        return columns.astype(shared.float_type(frames))

    return point_of


def _basis_of_video(frames, name, model, options):
    """from_video of checked frames."""
    if model.n_blocks == 1:
        C, _, _ = _leading_directions(frames, name, model.n_states, "n_states", options)
        return C.astype(shared.float_type(frames))
    A, C = _arma(frames, name, model, options)
    stack = _powers(A, model.n_blocks, f"{name}: ").reshape(-1, model.n_states)
    Q, R = np.linalg.qr(stack)
    Q *= np.where(R.diagonal() < 0, -1.0, 1.0)
    Q = Q.reshape(-1, *A.shape)  # (n_blocks, n_states, n_states)
    basis = np.empty((len(Q), *C.shape), shared.float_type(frames))
    for block, Q_k in zip(basis, Q):
        shared.small_products(C, Q_k, block)
    return basis.reshape(-1, model.n_states)


def _arma(frames, name, model, options):
    """A, by least squares, and C in float64."""
    C, s, V = _leading_directions(frames, name, model.n_states, "n_states", options)
    r = np.count_nonzero(s)  # padded directions have no dynamics
    # the states are diag(s) V^T; columns of V are orthonormal but for one row
    B, _, determined, _ = np.linalg.lstsq(
        V[:-1, :r], V[1:, :r], rcond=1e3 * np.finfo(float).eps
    )
    A = np.zeros((len(s), len(s)))
    A[:r, :r] = s[:r, None] * B.T / s[:r]
    if determined < r:
        _lack(
            options.rank,
            f"{name} must determine A (n_states = {model.n_states}) by at least "
            f"n_states + 1 frames: the first {len(frames) - 1} of {len(frames)} "
            f"have {determined} independent states of {r}",
        )
    radius = np.abs(np.linalg.eigvals(A)).max() if model.stabilize else 0
    return A * (STABLE_RADIUS / radius if radius >= 1 else 1), C


def _powers(A, n_blocks, where=""):
    """A^0, ..., A^(n_blocks - 1), (n_blocks, n, n); where: the first words of an error."""
    factors = [np.eye(len(A)), *[A] * (n_blocks - 1)]
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.stack([*itertools.accumulate(factors, np.matmul)])
    if not np.isfinite(powers).all():
        radius = np.abs(np.linalg.eigvals(A)).max()
        raise ValueError(
            f"{where}A must have powers up to {n_blocks - 1} within range, got spectral "
            f"radius {radius:.4g}; stabilize=True scales an estimate back"
        )
    return powers


def _stack(sets, basis_of):
    """basis_of(frames, name) of each set, stacked; few are held at a time."""
    if not np.iterable(sets):
        raise TypeError(f"sets must be an iterable of sets of frames, got {sets!r}")
    checked = shared.each_set(sets, "sets")
    if iter(sets) is sets:  # it may give the same memory again
        checked = (rows.copy() for rows in checked)
    bases = []
    while some := list(itertools.islice(checked, 4 * core.thread_count())):
        first = len(bases)

        def job(few, some=some, first=first):
            numbers = range(first + few.start, first + few.stop)
            return [basis_of(rows, f"sets[{i}]") for i, rows in zip(numbers, some[few])]

        parts = core.run_blocks(job, len(some), shared.sets_in_block(some, 1))
        bases += itertools.chain.from_iterable(parts)
        some.clear()  # before others are read
    if not bases:
        raise ValueError("sets must hold at least one set of frames, got none")
    return shared.joined([basis[None] for basis in bases])


def _in_turn(job, n, block):
    """core.run_blocks without threads."""
    return [job(some) for some in core.slices(n, block)]


# ------------------------------------------------------------ leading singular triplets


def _leading_directions(frames, name, p, symbol, options):
    """U (d, p), s (p,), V (n, p).

    The p leading singular triplets of F = frames^T (d, n). In float64, s up to a power
    of 2. Directions that the rank policy added have s = 0, and columns of zeros in V.
    """
    n, d = frames.shape
    if p > d:
        raise ValueError(
            f"{symbol} must be at most d = {d}, the number of pixels in {name}, got {p}"
        )
    if n < p and options.rank == "raise":
        _lack(
            "raise",
            f"{name} must hold {symbol} = {p} independent frames, got {n} "
            f"frame{'s' * (n > 1)}",
        )
    pixels = _Pixels(frames, options)
    U, s, V, size = _triplets(pixels, p)
    tol = 10 * pixels.eps * math.sqrt(n * d) * size
    r = np.count_nonzero(s > tol)
    if r == p or r and options.rank == "fewer":
        return _orthonormal(U[:, :r]), s[:r], V[:, :r]
    beside = " beside their mean" if options.center or options.unit_variance else ""
    unit = 1 if options.unit_variance else pixels.unit
    needed = f"{symbol} = {p} independent frames"
    if options.rank == "fewer":
        needed = "a frame that is not zero"
    _lack(
        options.rank if r else "raise",
        f"{name} must hold {needed}{beside}: got numerical rank {r} "
        f"(singular values above {abs(tol) / unit:.2g})",
    )
    U = np.hstack([U[:, :r], _other_directions(U[:, :r], p - r)])
    return (
        _orthonormal(U),
        np.pad(s[:r], (0, p - r)),
        np.pad(V[:, :r], ((0, 0), (0, p - r))),
    )


def _triplets(pixels, p):
    """U diag(any) (d, p), s (p,) and V (n, p) of F, descending.

    Fewer if there are not so many. Also the size of what was rounded, as _Pixels.block
    gives it.
    """
    n, d = pixels.frames.shape
    if n * d <= LAPACK and min(n, d) <= 3 * p:
        block, size = pixels.block(slice(d))
        V, s, _ = np.linalg.svd(block, full_matrices=False)
        V = V[:, :p]
        return block.T @ V, s[:p], V, size  # a pixel that is 0 in all frames stays 0
    if n <= d:
        L, size = _joined_triangle(pixels)
        V, s = _left_vectors(L, min(n, p))
        return _projected(pixels, V), s, V, size
    block, size = pixels.block(slice(d))
    U, s = _left_vectors(_triangle(np.array(block.T, order="C")), p)
    V = np.empty((n, p))
    shared.small_products(block, U / np.maximum(s, TINY), V)
    return U, s, V, size


class _Pixels:
    """F^T (n, d) in float64, scaled and normalised, a block of pixels at a time.

    The scale is a power of 2.
    """

    def __init__(self, frames, options):
        self.frames = frames
        self.options = options
        self.eps = np.finfo(shared.float_type(frames)).eps
        # exact, keeps the squares of 1e200 and 1e-200 in range
        peak = core.max_abs(frames)
        self.unit = 2.0 ** -max(math.frexp(peak)[1], -1000)
        self.peak = peak * self.unit

    def each_block(self, job):
        """[job(slice), ...] of all pixels."""
        n, d = self.frames.shape
        return self.options.run(job, d, max(JOINED * n, CACHE // n))

    def block(self, some):
        """A slice of pixels (n, m), and the largest size of one that was rounded."""
        block = np.multiply(
            self.frames[:, some], self.unit, dtype=np.float64, order="C"
        )
        options = self.options
        size = normalise(block, options.center, options.unit_variance, self.eps)
        return block, size if options.unit_variance else self.peak


def normalise(rows, center, unit_variance, eps=None):
    """Apply the options center and unit_variance to rows (n, m) of floats, in place.

    A pixel that varies no more than rounding to eps, None for that of rows, makes one
    that does not vary, becomes 0. Pixels may have units of their own. Returns, with
    unit_variance, the largest peak of a pixel in its standard deviations.
    """
    peaks = np.abs(rows).max(axis=0) if unit_variance else None
    if center or unit_variance:
        rows -= rows.mean(axis=0)
    if not unit_variance:
        return None
    deviation = np.sqrt(np.mean(rows**2, axis=0))
    eps = np.finfo(rows.dtype).eps if eps is None else eps
    factor = np.divide(
        1,
        deviation,
        out=np.zeros_like(deviation),
        where=deviation > CONSTANT * eps * peaks,
    )
    rows *= factor
    return (peaks * factor).max()


def _joined_triangle(pixels):
    """L (n, n) of F^T = L Q^T, and the size of what was rounded.

    Q^T Q = I. L has the singular values and left vectors of F^T to full accuracy; a
    Gram matrix would square the condition number and lose every direction below 1e-8 of
    the first. Blocks join as a tree, because rounding errors grow along a chain.
    """

    def triangle(some):
        block, size = pixels.block(some)
        return _triangle(block), size

    triangles, sizes = zip(*pixels.each_block(triangle))
    while len(triangles) > 1:
        triangles = [
            _triangle(np.concatenate(triangles[i : i + JOINED], axis=1))
            for i in range(0, len(triangles), JOINED)
        ]
    return triangles[0], max(sizes)


def _projected(pixels, V):
    """F V (d, r)."""
    FV = np.empty((pixels.frames.shape[1], V.shape[1]))

    def project(some):
        block, _ = pixels.block(some)
        shared.small_products(block.T, V, FV[some])

    pixels.each_block(project)
    return FV


def _other_directions(U, count):
    """Pseudo-random columns (d, count), the same for any order of the frames.

    They are drawn by the diagonal of the projector of orthogonal columns U (d, r), so
    that two sets share them no more than any other directions.
    """
    share = np.square(U / np.linalg.norm(U, axis=0)).sum(axis=1)
    seed = zlib.crc32(share.astype(np.float16).tobytes())
    return np.random.default_rng([seed, len(U)]).standard_normal((len(U), count))


# ----------------------------------------------------------------- compiled reflections

# LAPACK's decompositions of larger sets hold Python's lock, or start threads of BLAS at
# every column, which wait for each other on busy cores much longer than they work. What
# a jitted function would return it writes into its arguments: while Numba hands an array
# over, a Ctrl-C becomes a SystemError.


def _triangle(A):
    """L (k, min(k, m)) with L Q^T = A for A (k, m), Q^T Q = I; A may be overwritten."""
    k, m = A.shape
    if m <= k:
        return A
    L = np.zeros((k, k))
    _reflect(A, L)
    return L


@core.jit
def _reflect(A, L):
    """L (k, k), lower triangular, of A (k, m), m > k, by Householder's reflections.

    L holds zeros. They are made four at a time and applied to each row below at once,
    which reads it once. Row i of A becomes the vector v of reflection i, I
    - v v^T / half, v[:i] = 0.
    """
    k = len(A)
    half = np.empty(k)
    for start in range(0, k, 4):
        stop = min(start + 4, k)
        for j in range(start, stop):
            v = A[j, j:]
            L[j, j], half[j] = _reflector(v)
            for i in range(j + 1, stop):
                _mirror_row(v, half[j], A[i, j:])
                L[i, j] = A[i, j]
                A[i, j] = 0.0
        if stop < k:
            _reflect_rows(A, start, half, L)


@core.inlined_jit
def _reflector(v):
    """v becomes the vector of the reflection that takes it to (x, 0, ..., 0).

    Returns x and ||v||^2 / 2.
    """
    square = core.dot(v, v, len(v))
    if square <= TINY:
        return v[0], np.inf
    x = -math.copysign(math.sqrt(square), v[0])
    half = x * (x - v[0])
    v[0] -= x
    return x, half


@core.inlined_jit
def _mirror_row(v, half, a):
    """a <- (I - v v^T / half) a."""
    core.axpy(-core.dot(v, a, len(a)) / half, v, a, len(a))


@core.inlined_jit
def _reflect_rows(A, j, half, L):
    """Apply reflections j..j+3 to the rows below them."""
    u = A[j, j:]
    v = A[j + 1, j:]
    w = A[j + 2, j:]
    z = A[j + 3, j:]
    n = len(u)
    vu = core.dot(v, u, n)
    wu = core.dot(w, u, n)
    wv = core.dot(w, v, n)
    zu = core.dot(z, u, n)
    zv = core.dot(z, v, n)
    zw = core.dot(z, w, n)
    for i in range(j + 4, len(A)):
        a = A[i, j:]
        au = 0.0
        av = 0.0
        aw = 0.0
        az = 0.0
        for e in range(len(a)):
            au += a[e] * u[e]
            av += a[e] * v[e]
            aw += a[e] * w[e]
            az += a[e] * z[e]
        au /= half[j]
        av = (av - au * vu) / half[j + 1]
        aw = (aw - au * wu - av * wv) / half[j + 2]
        az = (az - au * zu - av * zv - aw * zw) / half[j + 3]
        for e in range(len(a)):
            a[e] -= au * u[e] + av * v[e] + aw * w[e] + az * z[e]
        for x in range(4):
            L[i, j + x] = a[x]


def _left_vectors(L, p):
    """The p leading left singular vectors (k, p) and singular values of L (k, k).

    They descend. L = P B Q^T with bidiagonal B. Its singular triplets u, s, v are the
    eigenvectors (v_1, u_1, v_2, u_2, ...) of eigenvalue s of the tridiagonal matrix
    that has zeros on its diagonal and the entries of B beside it. Source: Golub and
    Kahan 1965.
    """
    from scipy.linalg import eigh_tridiagonal  # slow to import

    k = len(L)
    beside = np.empty(2 * k - 1)
    V = np.zeros((k, k))
    half = np.empty(k)
    _bidiagonal(np.array(L, order="C"), beside, V, half)
    s, both = eigh_tridiagonal(
        np.zeros(2 * k), beside, select="i", select_range=(2 * k - p, 2 * k - 1)
    )  # ascending
    rows = np.array(both[1::2, ::-1].T, order="C")  # (p, k)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), TINY)
    _reflect_back(V, half, rows)
    return rows.T, s[::-1]


@core.jit
def _bidiagonal(A, beside, V, half):
    """B of A = P B Q^T (k, k), its entries row by row: beside (2 k - 1,).

    And the reflections of P. Those have the rows of V as vectors, V[j, :j] = 0. A is
    overwritten; V (k, k) holds zeros.
    """
    k = len(A)
    for j in range(k):
        for i in range(j, k):
            V[j, i] = A[i, j]
        beside[2 * j], half[j] = _reflector(V[j, j:])
        if j == k - 1:
            break
        # v^T A / half; np.zeros would take a while to compile
        sums = np.zeros(k - 1 - j)
        for i in range(j, k):
            core.axpy(V[j, i] / half[j], A[i, j + 1 :], sums, len(sums))
        u = A[j, j + 1 :]
        core.axpy(-V[j, j], sums, u, len(u))
        beside[2 * j + 1], half_u = _reflector(u)
        for i in range(j + 1, k):
            a = A[i, j + 1 :]
            core.axpy(-V[j, i], sums, a, len(a))
            _mirror_row(u, half_u, a)


@core.jit
def _reflect_back(V, half, rows):
    """rows <- rows P^T."""
    for j in range(len(V) - 1, -1, -1):
        v = V[j, j:]
        for i in range(len(rows)):
            _mirror_row(v, half[j], rows[i, j:])


def _orthonormal(basis):
    """Q (d, p) of basis = Q R with a positive diagonal of R, for independent columns."""
    rows = np.array(basis.T, order="C")
    _project_out(rows)
    return np.ascontiguousarray(rows.T)


@core.jit
def _project_out(rows):
    """Make rows orthonormal in their order, by Gram-Schmidt: twice is enough."""
    for i in range(len(rows)):
        row = rows[i]
        for _ in range(2):
            for j in range(i):
                _mirror_row(rows[j], 1.0, row)
            norm = math.sqrt(core.dot(row, row, len(row)))
            for e in range(len(row)):
                row[e] /= norm


def _lack(policy, message):
    """Directions are missing: what the rank policy says."""
    if policy == "raise":
        raise ValueError(message)
    if policy == "warn":
        core.warn(message + "; the rest was padded")


# --------------------------------------------------------------- checks of arguments


def _check_options(center, unit_variance, rank, run=core.run_blocks, *, fewer=False):
    return _Options(
        core.check_flag(center, "center"),
        core.check_flag(unit_variance, "unit_variance"),
        core.check_choice(rank, "rank", "raise", "warn", "pad", *["fewer"] * fewer),
        run,
    )


def _check_model(n_states, n_blocks, stabilize):
    return _Model(
        core.check_integer(n_states, "n_states", 1),
        core.check_integer(n_blocks, "n_blocks", 1),
        core.check_flag(stabilize, "stabilize"),
    )
