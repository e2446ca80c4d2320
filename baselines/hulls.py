"""Sets of images as hulls of their frames: distances of affine and convex hulls, in the
space of frames or in a kernel's feature space (KAHM, with AHISD and CHISD).

Sets are a list of arrays (n_i, d) or (n_i, height, width), or one array of them.
Everything is computed in float64 and returned in the type of the frames. A kernel is
any k(A, B) -> (len(A), len(B)) on rows, such as kernels.rbf(gamma), which is called
from one thread, or a name as in kernels, where "rbf" has the median_gamma of sets2, if
given, else of sets. Frames need entries above 1e-140, whose squares do not vanish.
Source: Cevikalp and Triggs, CVPR 2010.

Each set is centred on its own mean, and a pair of sets adds the difference of the two
means. So one set cannot change the distance of two others, however far away it lies.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import scipy.linalg

import grassmann_sc as core
from grassmann_sc import shared

__all__ = ["affine_hull_distances", "convex_hull_distances"]

PRODUCTS_AT_A_TIME = 2**21  # of frames, or of vectors of hulls
# of a set in a kernel's feature space, whose kernel matrix takes 134 MB
MOST_FRAMES = 4096
EPS = np.finfo(np.float64).eps
# singular values of centred frames above this share of the largest count, and
# eigenvalues of a centred kernel matrix
RANK_TOL = 1e-8
MEETS = 1e-12  # distances below this share of that of the means are 0, from vectors
KERNEL_MEETS = 1e-7  # and from inner products alone
DEPENDENT = 1e-15  # share of a vertex' square that depends on others
ROUNDING = 2e-15  # of inner products, as a share of the largest square of frames


# ------------------------------------------------------------------------- affine hulls


def affine_hull_distances(
    sets: shared.Sets,
    sets2: shared.Sets | None = None,
    *,
    dimension: int | None = None,
    share: float = 0.98,
    kernel: shared.AnyKernel | None = None,
) -> np.ndarray:
    """Distances (n, N) of the affine hulls of sets and sets2.

    Without sets2, of sets among themselves. The hull of a set is {mu + U v}: the mean
    of its frames, and the U (d, k) of leading principal directions that hold the share,
    in (0, 1], of the variance of the set, or of the given dimension k >= 0, for which
    it needs k + 1 independent frames. The distance of two hulls is

        min over v, w of ||mu_i + U_i v - mu_j - U_j w|| = ||(I - U U^T)(mu_i - mu_j)||

    with U an orthonormal basis of [U_i, U_j]. kernel: None for the frames as they are
    (AHISD), else a set has at most 4096 frames. A warning with the number of pairs of
    hulls that meet, whose distance 0 says nothing: as a rule those whose dimensions sum
    to d or more.

    ValueError for sets of several d or that are empty, a share outside (0, 1], a
    set of too few independent frames for the dimension, or of more than 4096 frames
    with a kernel; TypeError for a kernel that is none.

    >>> from grassmann_sc.baselines import hulls
    >>> sets = [[[0.0, 0.0], [1.0, 0.0]], [[5.0, 2.0], [9.0, 2.0]]]  # frames on two parallels
    >>> hulls.affine_hull_distances(sets).round(6)
    array([[0., 2.],
           [2., 0.]])
    """
    checked = _check_pair_of_sets(sets, sets2)
    kernel = check_kernel(kernel, checked[-1])
    hulls = [affine_hulls(listed, dimension, share, kernel) for listed in checked]
    distances, meet = affine_distances(hulls[0], hulls[-1], kernel)
    _warn_meeting(
        meet, sets2 is None, "affine", "lower dimension or share, or take convex hulls"
    )
    return distances


# What the hulls of sets are to others. H holds the directions U and the mean of each, k
# + 1 rows, or for a kernel the coefficients of the frames in them, a list; own = U^T mu
# and ||mu||^2, of a kernel alone; lengths: rows of products that a set takes, those of
# H or the frames; rounding of the frames, as a distance.
Hulls = namedtuple("Hulls", "H starts own frames lengths rounding dtype")


def affine_hulls(sets, dimension, share, kernel):
    """Hulls of checked sets, for affine_distances."""
    if dimension is not None:
        dimension = core.check_integer(dimension, "dimension", 0)
    rules = dimension, core.check_number(share, "share", above=0, most=1)
    frames = [] if kernel is None else _frames_of_kernel(sets)
    hulls, own = zip(
        *(
            _hull_of(frames_of_set, i, rules, kernel)
            for i, frames_of_set in enumerate(frames or sets)
        )
    )
    return Hulls(
        np.concatenate(hulls) if kernel is None else list(hulls),
        np.cumsum([0, *map(len, hulls)]),
        np.concatenate(own),
        frames,
        [len(side) for side in frames or hulls],
        _rounding_of(sets, kernel),
        shared.float_type(*sets),
    )


def affine_distances(rows, columns, kernel):
    """(distances, which pairs meet) of affine_hulls.

    Of hulls with themselves if both are one.
    """
    distances = np.zeros((len(rows.rounding), len(columns.rounding)))
    for i, j in _tiles_of_sets(rows, columns):
        vectors = np.empty((0, 0)), np.empty((0, 0))
        if kernel is None:
            vectors = rows.H[_span(rows.starts, i)], columns.H[_span(columns.starts, j)]
            products = vectors[0] @ vectors[1].T
        else:
            products = _kernel_products(kernel, rows, columns, i, j)
        top = _side(rows, i)
        left = _side(columns, j)
        most = int(max(np.diff(top[0]).max(), np.diff(left[0]).max()))
        out = np.empty((i.stop - i.start, j.stop - j.start))
        core.run_blocks(
            lambda block: _affine_tile(
                products, top, left, vectors, most, block.start, block.stop, out
            ),
            len(out),
            8,
        )
        distances[i, j] = out
    if rows is columns:
        distances = np.maximum(distances, distances.T)
        np.fill_diagonal(distances, 0)
    return (
        distances.astype(np.result_type(rows.dtype, columns.dtype), copy=False),
        distances == 0,
    )


def _span(starts, part):
    """The vectors of consecutive sets."""
    return slice(starts[part.start], starts[part.stop])


def _side(hulls, part):
    """starts, own and rounding of consecutive hulls."""
    starts = hulls.starts[part.start : part.stop + 1]
    own = hulls.own[_span(hulls.starts, part)]
    return starts - starts[0], own, hulls.rounding[part]


def _hull_of(frames, i, rules, kernel):
    """(H, H mu) of set i: directions and mean (k + 1, d), and nothing; or of a kernel."""
    if kernel is not None:
        return _hull_of_kernel(frames, i, rules, kernel)
    centred, mean = _centred(frames)
    _, s, Vt = np.linalg.svd(centred, full_matrices=False)
    rounding = 10 * EPS * math.sqrt(frames.size) * core.max_abs(frames)
    s = s[s > max(RANK_TOL * s[0], rounding)]
    k = _hull_dimension((s / s[:1]) ** 2, rules, i, len(frames))
    return np.vstack([Vt[:k], mean]), np.empty(0)


def _hull_of_kernel(frames, i, rules, kernel):
    """(H, H mu) of set i in feature space, of coefficients of the frames."""
    K = np.array(_inner_products(frames, frames, kernel))  # a kernel may keep its own
    q = len(K)
    largest = core.max_abs(K)
    means = K.mean(axis=1)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    values, V = scipy.linalg.eigh(K, overwrite_a=True, check_finite=False)
    floor = max(RANK_TOL * values[-1], 1e-14 * largest)
    k = _hull_dimension(values[values > floor][::-1], rules, i, q)
    A = V[:, : -k - 1 : -1] / np.sqrt(values[: -k - 1 : -1])
    H = np.vstack([(A - A.mean(axis=0)).T, np.full(q, 1 / q)])  # (k + 1, q)
    return H, H @ means


def _hull_dimension(variances, rules, i, n_frames):
    """k, of descending positive variances, by the rules (dimension, share)."""
    dimension, share = rules
    if dimension is None:
        variance = np.cumsum(variances) / max(variances.sum(), 1e-300)
        return min(
            len(variance), int(np.searchsorted(variance, share * (1 - 1e-14))) + 1
        )
    if dimension > len(variances):
        raise ValueError(
            f"dimension must be below the number of independent frames of each set, "
            f"got {dimension} for set {i} of {n_frames} frame(s), whose hull has "
            f"dimension {len(variances)}"
        )
    return dimension


def _kernel_products(kernel, rows, columns, i, j):
    """Inner products of all vectors of hulls i and hulls j, from the kernel."""
    K = _inner_products(
        np.concatenate(rows.frames[i]), np.concatenate(columns.frames[j]), kernel
    )
    ends = np.cumsum(rows.lengths[i])[:-1]
    half = np.concatenate([H @ part for H, part in zip(rows.H[i], np.split(K, ends))])
    ends = np.cumsum(columns.lengths[j])[:-1]
    parts = zip(columns.H[j], np.split(half, ends, axis=1))
    return np.concatenate([part @ H.T for H, part in parts], axis=1)


# What a thread works with, for hulls of at most so many directions: S = I - C^T C, of C
# = U^T W, and L, its Cholesky factor on the support: the directions of W that are
# independent of U and of those before them; x, y, z: products and coefficients.
_Span = namedtuple("_Span", "S L support x y z")


@core.jit(long=True)
def _affine_tile(products, rows, columns, vectors, most, start, stop, out):
    """Write the distances of hulls i and j of a tile to out[i, j].

    i is in start..stop-1. products of all vectors of the hulls, (sum (k_i + 1), sum
    (m_j + 1)), at most so many a hull; vectors themselves, or empty arrays. With them
    mu_i - mu_j is a vector, and near pairs are computed from what is left of it, so
    that nothing cancels.
    """
    row_starts, row_own, row_rounding = rows
    column_starts, column_own, column_rounding = columns
    A, B = vectors
    w = _Span(
        np.empty((most, most)),
        np.empty((most, most)),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(most),
    )
    rest = np.empty(A.shape[1])
    for i in range(start, stop):
        top = row_starts[i]
        k = row_starts[i + 1] - top - 1
        for j in range(out.shape[1]):
            left = column_starts[j]
            m = column_starts[j + 1] - left - 1
            C = products[top : top + k + 1, left : left + m + 1]
            if A.size == 0:
                for a in range(k):  # U^T (mu_i - mu_j)
                    w.x[a] = row_own[top + a] - C[a, m]
                for b in range(m):
                    w.y[b] = C[k, b] - column_own[left + b]
                projected, pivot = _project(w, C, k, m, 1e-8)
                scale = row_own[top + k] + column_own[left + m]
                square = scale - 2 * C[k, m] - projected
                rounding = 100 * ROUNDING / pivot  # of nearly dependent directions
                least = np.sqrt(max(KERNEL_MEETS**2, rounding) * scale)
            else:
                for c in range(len(rest)):
                    rest[c] = A[top + k, c] - B[left + m, c]
                scale = core.dot(rest, rest, len(rest))
                square = _square_of_rest(w, A[top:], B[left:], C, k, m, rest, scale)
                least = MEETS * np.sqrt(scale) + row_rounding[i] + column_rounding[j]
            out[i, j] = np.sqrt(square) if square > least**2 else 0.0


@core.inlined_jit
def _square_of_rest(w, U, W, C, k, m, rest, scale):
    """||rest||^2 without its projection onto the rows U[:k] and W[:m].

    It was scale before. A short rest is projected itself, and changed, three times,
    against rounding.
    """
    for turn in range(3):
        for a in range(k):
            w.x[a] = core.dot(U[a], rest, len(rest))
        for b in range(m):
            w.y[b] = core.dot(W[b], rest, len(rest))
        projected, pivot = _project(w, C, k, m, 1e-13)
        if turn == 0 and scale - projected >= 1e-4 * scale and pivot >= 1e-6:
            return scale - projected
        for a in range(k):
            core.axpy(-w.x[a], U[a], rest, len(rest))
        for b in range(m):
            core.axpy(-w.y[b], W[b], rest, len(rest))
    return core.dot(rest, rest, len(rest))


@core.inlined_jit
def _project(w, C, k, m, tol):
    """Coefficients w.x, w.y of the projection of v onto the span of [U, W].

    They follow from x = U^T v, y = W^T v and C = U^T W (k, m). Returns the projection's
    squared norm and the least pivot. (I - C^T C) z = y - C^T x, of which directions of
    W within the span of U and of those before them, to tol, squared sines, are left
    out.
    """
    projected = core.dot(w.x, w.x, k)
    rank = 0
    pivot = 1.0
    for b in range(m):
        for a in range(k):
            w.y[b] -= C[a, b] * w.x[a]
        for c in range(b + 1):
            w.S[b, c] = 1.0 if b == c else 0.0
            for a in range(k):
                w.S[b, c] -= C[a, b] * C[a, c]
        w.support[rank] = b
        if w.S[b, b] > tol and core.factor_row(w, rank, w.S[b], 0.0, tol / w.S[b, b]):
            pivot = min(pivot, w.L[rank, rank] ** 2)
            w.z[rank] = w.y[b]
            rank += 1
        else:
            w.y[b] = 0.0
    core.cholesky_solve(w.L, w.z, rank)
    for r in range(rank):
        b = w.support[r]
        projected += w.y[b] * w.z[r]
        w.y[b] = w.z[r]
        for a in range(k):
            w.x[a] -= C[a, b] * w.z[r]
    return projected, pivot


# ------------------------------------------------------------------------- convex hulls


HullDistances = namedtuple("HullDistances", "distances gap n_iter")


def convex_hull_distances(
    sets: shared.Sets,
    sets2: shared.Sets | None = None,
    *,
    bound: float = 1.0,
    kernel: shared.AnyKernel | None = None,
    tol: float = 1e-10,
    max_iter: int = 10000,
    return_info: bool = False,
) -> np.ndarray | HullDistances:
    """Distances (n, N) of the convex hulls of sets and sets2.

    Without sets2, of sets among themselves.

        min ||sum_a alpha_a x_a - sum_b beta_b y_b||,    sum alpha = sum beta = 1,
        0 <= alpha_a, beta_b <= bound,

    bound in (0, 1], 1 for the convex hull (CHISD), less for a hull reduced to its
    middle: a set needs 1 / bound frames. Solved by Wolfe's algorithm for the point of
    least norm of a polytope, here of all differences: the affine hull of a few vertices
    is solved exactly, vertices of negative weight leave, the one that lies farthest
    along the solution enters. With v that vertex and x the solution, <x, v> / ||x|| is
    a lower bound of the distance; the gap to it certifies the result, with what
    rounding of the frames, of products and of the answer may add, and the search stops
    when ||x||^2 - <x, v> is at most tol ||x||^2, or at rounding. A warning if max_iter
    steps do not reach that.

    kernel: None for the frames as they are; else a set has at most 4096 frames. A
    warning with the number of pairs of hulls that meet, of distance 0. return_info: a
    named tuple (distances, gap, n_iter), gap in units of distance.

    ValueError for sets of several d or that are empty, a bound outside (0, 1] or
    below 1 over the frames of a set, or a set of more than 4096 frames with a
    kernel; TypeError for a kernel that is none.

    >>> from grassmann_sc.baselines import hulls
    >>> sets = [[[0.0, 0.0], [1.0, 0.0]], [[4.0, 4.0], [9.0, 4.0]]]  # frames on two parallels
    >>> hulls.convex_hull_distances(sets).round(6)
    array([[0., 5.],
           [5., 0.]])
    """
    return_info = core.check_flag(return_info, "return_info")
    bound = core.check_number(bound, "bound", above=0, most=1)
    tol = core.check_number(tol, "tol", above=0)
    max_iter = core.check_integer(max_iter, "max_iter", 1)
    checked = _check_pair_of_sets(sets, sets2)
    kernel = check_kernel(kernel, checked[-1])
    hulls = [convex_hulls(listed, bound, kernel) for listed in checked]
    results, meet = convex_distances(
        hulls[0], hulls[-1], (bound, tol, max_iter), kernel
    )
    _warn_meeting(meet, sets2 is None, "convex", "lower bound, or take another kernel")
    return results if return_info else results.distances


# Frames of all sets as rows, of each from its centre (of a kernel as they are, no
# centres); the rest as in Hulls.
Polytopes = namedtuple("Polytopes", "frames starts centres lengths rounding dtype")


def convex_hulls(sets, bound, kernel):
    """Polytopes of checked sets, for convex_distances."""
    lengths = np.array([len(frames_of_set) for frames_of_set in sets])
    _check_bound(bound, lengths)
    if kernel is None:
        frames, centres = zip(*map(_centred, sets))
    else:
        frames = _frames_of_kernel(sets)
        centres = np.empty((len(sets), 0))
    return Polytopes(
        np.ascontiguousarray(np.concatenate(frames)),  # whatever the order of the sets
        np.cumsum([0, *lengths]),
        np.array(centres),
        lengths,
        _rounding_of(sets, kernel),
        shared.float_type(*sets),
    )


def _check_bound(bound, lengths):
    small = np.flatnonzero(lengths * bound < 1 - 1e-9)
    if len(small):
        raise ValueError(
            "bound must be at least 1 / n_frames of each set, got "
            f"{bound} for set {small[0]} of {lengths[small[0]]} frame(s)"
        )


def convex_distances(rows, columns, rules, kernel):
    """(HullDistances, which pairs meet) of convex_hulls.

    Of hulls with themselves if both are one. rules: (bound, tol, max_iter).
    """
    symmetric = rows is columns
    bound, tol, max_iter = rules
    for hulls in (rows, columns):  # they may be made with another
        _check_bound(bound, hulls.lengths)
    n_full = int(1 / bound + 1e-9)
    left = 1 - n_full * bound
    shares = np.array([bound] * n_full + [left] * (left > 1e-9))
    results = np.zeros((4, len(rows.rounding), len(columns.rounding)))
    for i, j in _tiles_of_sets(rows, columns):
        frames = [
            hulls.frames[_span(hulls.starts, part)]
            for hulls, part in ((rows, i), (columns, j))
        ]
        by_grams = kernel is not None or max(map(len, frames)) <= math.isqrt(
            PRODUCTS_AT_A_TIME
        )
        K = _inner_products(*frames, kernel) if by_grams else np.empty((0, 0))
        sides = [
            _polytope_side(hulls, part, side_frames, kernel, by_grams)
            for hulls, part, side_frames in (
                (rows, i, frames[0]),
                (columns, j, frames[1]),
            )
        ]
        skip = i.start - j.start if symmetric else -len(rows.rounding)
        tile = np.zeros((4, i.stop - i.start, j.stop - j.start))
        n = max(rows.lengths[i]) + max(columns.lengths[j])
        core.run_blocks(
            lambda block: _fill_rows(
                K,
                *sides,
                n,
                (shares, tol, max_iter),
                skip,
                block.start,
                block.stop,
                tile,
            ),
            i.stop - i.start,
            1,
        )
        results[:, i, j] = tile
    if symmetric:
        results += results.swapaxes(1, 2)
    distances, gap, n_iter, late = results
    if late.any():
        count = np.count_nonzero(late) // (2 if symmetric else 1)
        why = f"max_iter = {max_iter}"
        if n_iter[late > 0].max() < max_iter:
            why = "points too near to each other to be told apart"
        core.warn(
            f"{count} convex hull distances did not converge ({why}): worst gap "
            f"{gap[late > 0].max():.2g}"
        )
    rounded = distances.astype(np.result_type(rows.dtype, columns.dtype), copy=False)
    gap += np.abs(rounded - distances)
    return HullDistances(rounded, gap, n_iter.astype(np.int64)), distances == 0


def _polytope_side(hulls, part, frames, kernel, by_grams):
    """Of consecutive hulls.

    The starts of the frames of each, the rows of their Gram matrices, or none, frames,
    centres that they start from, and how far rounding moves them.
    """
    starts = hulls.starts[part.start : part.stop + 1] - hulls.starts[part.start]
    grams = np.empty((0, 0))
    if by_grams:
        grams = np.empty((len(frames), max(hulls.lengths[part])))
        for rows in map(slice, starts, starts[1:]):
            own = frames[rows]
            grams[rows, : len(own)] = _inner_products(own, own, kernel)
    return (
        starts,
        grams,
        frames if kernel is None else np.empty((len(frames), 0)),
        hulls.centres[part],
        hulls.rounding[part],
    )


def _inner_products(A, B, kernel):
    """Of rows, or checked values k(A, B), float64."""
    if kernel is None:
        return A @ B.T
    return np.ascontiguousarray(shared.kernel_values(kernel, A, B), np.float64)


# ------------------------------------------------------------------------------- checks


def _check_pair_of_sets(sets, sets2):
    """A list of the checked sets, and of sets2 unless they are None."""
    shared.warn_of_bases(sets)
    X = shared.check_sets(sets, "sets")
    if sets2 is None:
        return [X]
    Y = shared.check_sets(sets2, "sets2")
    core.same_dimension(X[0].T, Y[0].T, ("sets", "sets2"))
    return [X, Y]


def check_kernel(kernel, sets):
    """None, or a callable, which a name says for these sets."""
    if not isinstance(kernel, (str, tuple)):
        return None if kernel is None else shared.check_kernel(kernel)
    # another file, which a copy of this one need not have
    from grassmann_sc import kernels

    return kernels.kernel_named(kernel, sets)


def _warn_meeting(meet, symmetric, hulls, advice):
    """Warn once, from the user's line, of all pairs that meet."""
    if symmetric:
        meet = meet[np.tri(len(meet), k=-1, dtype=bool)]
    count = np.count_nonzero(meet)
    if count:
        core.warn(
            f"{count} of {meet.size} pairs of {hulls} hulls meet: their distance is 0, which "
            f"tells no class from another; {advice}"
        )


def _centred(frames):
    """The frames from their mean, and the mean."""
    frames = frames.astype(np.float64, copy=False)
    mean = frames.mean(axis=0)
    mean += (frames - mean).mean(axis=0)  # what rounding left
    return frames - mean, mean


def _rounding_of(sets, kernel):
    """How far rounding moves each set's frames (n,); 0 for a kernel, whose values tell."""
    if kernel is not None:
        return np.zeros(len(sets))
    return EPS * math.sqrt(sets[0].shape[1]) * np.array([*map(core.max_abs, sets)])


def _frames_of_kernel(sets):
    """Copies of the sets in float64, none too large for its kernel matrix."""
    for i, rows in enumerate(sets):
        q = len(rows)
        if q > MOST_FRAMES:
            raise ValueError(
                f"sets must have at most {MOST_FRAMES} frames with a kernel, got {q} "
                f"in set {i}, whose kernel matrix takes {8e-9 * q**2:.1f} GB: take "
                "fewer frames, or kernel=None"
            )
    return [rows.astype(np.float64) for rows in sets]


def _tiles_of_sets(rows, columns):
    """Slices (i, j) of sets with at most PRODUCTS_AT_A_TIME products, or of one pair.

    Of a symmetric matrix, those that reach above the diagonal.
    """
    side = math.isqrt(PRODUCTS_AT_A_TIME)
    for j in shared.batches(columns.lengths, side):
        for i in shared.batches(
            rows.lengths[: j.stop if rows is columns else None], side
        ):
            yield i, j


# --------------------------------------------------------------- distances of polytopes

# By Wolfe's algorithm, compiled, from inner products of their vertices. A polytope is
# the convex hull of frames, or the part of it whose weights are at most a bound. The
# distance of two is the norm of the least point of the polytope of all differences,
# whose vertices are differences of vertices: of frames from a centre of their own, plus
# the offset of the centres. Source: Wolfe, "Finding the nearest point in a polytope",
# Mathematical Programming 1976.


# Two polytopes: inner products of their frames, or none; frames A and B; the offset of
# the centres; how far rounding moves them.
_Pair = namedtuple("_Pair", "K_ii K_jj K_ij A B offset rounding")

# What a thread works with, for polytopes of n frames in all and m vertices in use. Of
# the frames and the offset: toward (n + 1,), inner products of the offset with each,
# and g (n + 1,), of the solution. Of the vertices: picks (m, 2, h), the frames that make
# each, with weights shares (h,); columns (m, n + 1), inner products of each with the
# frames and the offset; Q (m, m), their Gram matrix, and L (m, m), the Cholesky factor
# of Q + lift 1 1^T; support (m,), the vertices in the order of the factor, then those
# that are not in use; y (m,), weights of the vertices in the solution, and step (m,),
# along the support, in the affine minimiser.
_Corral = namedtuple("_Corral", "toward g picks shares columns Q L support y step")


@core.jit(long=True)
def _fill_rows(K, rows, columns, n, search, skip, start, stop, out):
    """Write results (4, t, s) of t polytopes with s others, for rows start..stop-1.

    They are distances, gaps, numbers of iterations, and whether tol was missed. K has
    the inner products of all frames, or is empty. rows, columns: as _polytope_side
    gives them, n frames a pair at most. search: (shares, tol, max_iter), shares those
    of the frames in a vertex. Pairs i, j with j <= i + skip are left.
    """
    row_starts, row_grams, A, row_centres, row_rounding = rows
    column_starts, column_grams, B, column_centres, column_rounding = columns
    shares, tol, max_iter = search
    m = n + 2 if K.size else min(n, A.shape[1] + 1) + 2
    w = _Corral(
        np.empty(n + 1),
        np.empty(n + 1),
        np.empty((m, 2, len(shares)), np.int64),
        shares,
        np.empty((m, n + 1)),
        np.empty((m, m)),
        np.empty((m, m)),
        np.arange(m),
        np.empty(m),
        np.empty(m),
    )
    for i in range(start, stop):
        mine = slice(row_starts[i], row_starts[i + 1])
        for j in range(max(0, i + skip + 1), out.shape[2]):
            other = slice(column_starts[j], column_starts[j + 1])
            pair = _Pair(
                row_grams[mine],
                column_grams[other],
                K[mine, other],
                A[mine],
                B[other],
                row_centres[i] - column_centres[j],
                row_rounding[i] + column_rounding[j],
            )
            ends = out[:, i, j]
            ends[0], ends[1], ends[2], ends[3] = _nearest_point(w, pair, tol, max_iter)


@core.inlined_jit(once=True, allocates=True)
def _nearest_point(w, pair, tol, max_iter):
    """(distance, gap, steps, was tol missed) of two polytopes, by Wolfe's algorithm."""
    q = len(pair.A)
    n = q + len(pair.B)
    scale = _start_corral(w, pair)
    if scale == 0:
        return 0.0, pair.rounding, 0, False
    least = max(KERNEL_MEETS**2 * scale, pair.rounding**2)
    best = square = np.inf
    m = np.int64(0)  # for a plain 0 Numba compiles what takes it once more
    stalled = 0
    n_steps = -1  # the first vertex, the farthest along the offset, is no step
    while True:
        if m > 0:
            square = _solution(w, m, n)
        new = w.support[m]
        low = _farthest_vertex(w, new, q, n)
        rest = square - low
        meets = square <= least
        stalled = 0 if square < best else stalled + 1
        best = min(best, square)
        done = m > 0 and (meets or rest <= tol * square or rest <= 1e-15 * scale)
        if not done and n_steps < max_iter and stalled < 3 and m < len(w.y) - 1:
            n_steps += 1
            _enter_vertex(w, m, pair)
            w.y[new] = 0.0
            if core.factor_row(w, m, w.Q[new], scale, DEPENDENT):
                m = _affine_minimum(w, m + 1, scale)
                continue
        rounding = ROUNDING * scale
        if meets:
            return (
                0.0,
                np.sqrt(max(square, 0.0) + rounding) + pair.rounding,
                n_steps,
                False,
            )
        distance = np.sqrt(square)
        gap = distance - (max(low, 0.0) - rounding) / distance + pair.rounding
        return distance, gap, n_steps, rest > max(tol * square, 1e-13 * scale)


@core.inlined_jit(allocates=True)
def _start_corral(w, pair):
    """Fill w.toward, and w.g with the same.

    Returns the largest squared norm of frames and offset.
    """
    q = len(pair.A)
    n = q + len(pair.B)
    d = len(pair.offset)
    scale = core.dot(pair.offset, pair.offset, d)
    w.g[n] = w.toward[n] = scale
    for a in range(n):
        frame = pair.A[a] if a < q else pair.B[a - q]
        w.g[a] = w.toward[a] = core.dot(frame, pair.offset, d)
        if pair.K_ij.size == 0:
            scale = max(scale, core.dot(frame, frame, d))
        else:
            scale = max(scale, pair.K_ii[a, a] if a < q else pair.K_jj[a - q, a - q])
    return scale


@core.inlined_jit(allocates=True)
def _farthest_vertex(w, new, q, n):
    """Add a vertex: the frames of least w.g in the first set, of largest in the second.

    Returns its inner product with the solution.
    """
    value = w.g[n]
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        first = 0 if side == 0 else q
        last = q if side == 0 else n
        picks = w.picks[new, side]
        if len(picks) == 1:
            picks[0] = first + (sign * w.g[first:last]).argmin()
        else:
            order = np.argsort(sign * w.g[first:last])
            for s in range(len(picks)):
                picks[s] = first + order[s]
        for s in range(len(picks)):
            value += sign * w.shares[s] * w.g[picks[s]]
    return value


@core.inlined_jit(allocates=True)
def _enter_vertex(w, m, pair):
    """Fill the column, and the row of Q, of the vertex picked, w.support[m]."""
    q = len(pair.A)
    n = q + len(pair.B)
    new = w.support[m]
    column = w.columns[new]
    if pair.K_ij.size == 0:
        _fill_from_frames(column, w.picks[new], w.shares, pair)
    else:
        core.copy(w.toward, column, n + 1)
        for s in range(len(w.shares)):
            i = w.picks[new, 0, s]
            j = w.picks[new, 1, s] - q
            share = w.shares[s]
            for a in range(q):
                column[a] += share * (pair.K_ii[i, a] - pair.K_ij[a, j])
            for b in range(n - q):
                column[q + b] += share * (pair.K_ij[i, b] - pair.K_jj[j, b])
            column[n] += share * (w.toward[i] - w.toward[q + j])
    for k in w.support[: m + 1]:
        w.Q[new, k] = _vertex_product(w, k, column, n)


@core.inlined_jit(allocates=True)
def _fill_from_frames(column, picks, shares, pair):
    """The column of a vertex from the frames themselves."""
    q = len(pair.A)
    n = q + len(pair.B)
    d = len(pair.offset)
    vertex = pair.offset.copy()
    for s in range(len(shares)):
        vertices = pair.A[picks[0, s]]
        other = pair.B[picks[1, s] - q]
        for c in range(d):
            vertex[c] += shares[s] * (vertices[c] - other[c])
    for a in range(n):
        column[a] = core.dot(vertex, pair.A[a] if a < q else pair.B[a - q], d)
    column[n] = core.dot(vertex, pair.offset, d)


@core.inlined_jit
def _vertex_product(w, k, values, n):
    """Inner product of vertex k with a point.

    values: the products of that point with the frames and the offset.
    """
    total = values[n]
    for s in range(len(w.shares)):
        total += w.shares[s] * (values[w.picks[k, 0, s]] - values[w.picks[k, 1, s]])
    return total


@core.inlined_jit(allocates=True)
def _affine_minimum(w, m, lift):
    """Move the weights to the least norm on the vertices' affine hull.

    Vertices whose weight would become negative are dropped on the way. Returns how many
    are left.
    """
    while True:
        for r in range(m):  # (Q + lift 1 1^T) u = 1, the minimiser is u / sum u
            w.step[r] = 1.0
        core.cholesky_solve(w.L, w.step, m)
        total = 0.0
        for r in range(m):
            total += w.step[r]
        share = 1.0
        hit = -1
        for r in range(m):
            w.step[r] /= total
            weight = w.y[w.support[r]]
            if w.step[r] <= 0 and weight / (weight - w.step[r] + 1e-300) < share:
                share = weight / (weight - w.step[r] + 1e-300)
                hit = w.support[r]
        for r in range(m):
            w.y[w.support[r]] += share * (w.step[r] - w.y[w.support[r]])
        if hit < 0:
            return m
        w.y[hit] = 0.0
        m = _drop_vertices(w, m, lift)


@core.inlined_jit(allocates=True)
def _drop_vertices(w, m, lift):
    """Drop the vertices of weight 0, to rounding; returns how many are left."""
    count = 0
    first = m
    for r in range(m):
        k = w.support[r]
        if w.y[k] > 1e-15:
            w.support[r] = w.support[count]
            w.support[count] = k
            count += 1
        else:
            first = min(first, r)
    for r in range(first, count):
        core.factor_row(w, r, w.Q[w.support[r]], lift, DEPENDENT)
    return count


@core.inlined_jit
def _solution(w, m, n):
    """w.g of the weighted vertices; returns the squared norm of their sum."""
    for a in range(n + 1):
        w.g[a] = 0.0
    for k in w.support[:m]:
        core.axpy(w.y[k], w.columns[k], w.g, n + 1)
    square = 0.0
    for k in w.support[:m]:
        square += w.y[k] * _vertex_product(w, k, w.g, n)
    return square
