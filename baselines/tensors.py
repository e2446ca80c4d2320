"""Videos as tensors: PM, points on a product of Grassmann manifolds, and TCCA,
canonical correlations of tensors.

Clips are an array (n, n_frames, height, width) of videos of one size, to which
resize_clips brings those of several; axes t, y, x. The unfolding of a clip along an
axis has what lies at one place of that axis in a row: (I_k, rest). Work is done in
float64.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "resize_clips",
    "mode_bases",
    "product_distances",
    "separations",
]

AXES = "tyx"
JOINT = {"yx": 0, "tx": 1, "ty": 2}  # shared axes -> the axis that is left
SINGLE = {"t": 0, "y": 1, "x": 2}
MODES = (*JOINT, *SINGLE)

PRODUCTS_AT_A_TIME = 2**20
PIXELS_AT_A_TIME = 2**20  # of clips that are unfolded
RIDGE = 1e-8  # share of the mean square that every direction of a fit has at least
# of the fits of a shared axis; tensor_correlations says what is reached
N_ALTERNATIONS = 10


def resize_clips(clips: shared.Sets, shape: Sequence[int]) -> np.ndarray:
    """Clips of any sizes as one array (n, *shape).

    Interpolation is linear in time and space, antialiased where clips shrink. clips:
    a sequence of arrays (n_frames, height, width), shape: three integers >= 1.
    Needs scikit-image, the extra "image", unless all have that shape already.

    ValueError unless each clip is finite, of three axes, and the shape three
    integers >= 1; ImportError without scikit-image where it is needed.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tensors
    >>> clips = [np.ones((6, 8, 8)), np.ones((9, 4, 6))]
    >>> tensors.resize_clips(clips, (3, 4, 4)).shape
    (2, 3, 4, 4)
    """
    sides = tuple(check_sides(shape, "shape"))
    clips = check_clips(clips, "clips")
    others = [i for i, clip in enumerate(clips) if clip.shape != sides]
    if others:
        transform = shared.import_extra(
            "skimage.transform", "resize_clips needs scikit-image", "scikit-image"
        )
        for i in others:
            clips[i] = transform.resize(
                clips[i].astype(np.float64),
                sides,
                order=1,
                mode="edge",
                anti_aliasing=True,
            )
    return np.stack(clips).astype(np.float64, copy=False)


# -------------------------------------------------------------------- product manifolds


def mode_bases(
    clips: shared.Sets, p: int | Sequence[int] | None = None
) -> list[np.ndarray]:
    """The three factors of the modified higher-order SVD of clips: [V_t, V_y, V_x].

    With A_(k) = U S V^T the unfolding along axis k, (I_k, rest), V_k (n, rest, p_k)
    holds the p_k leading right singular vectors, orthonormal: a point on a Grassmann
    manifold of its own. A factor of the clip, or mixing the places of axis k by an
    orthogonal matrix, leaves its span alone.

    p: an integer or three; p_k is at most I_k; None for the least rank of an unfolding.
    Directions that a clip lacks are columns of zeros. Source: Lui, Beveridge and Kirby,
    CVPR 2010.

    ValueError for clips of several sizes, one of zeros, or p < 1.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tensors
    >>> clips = np.random.default_rng(0).random((4, 10, 6, 8))
    >>> [V.shape for V in tensors.mode_bases(clips, p=2)]
    [(4, 48, 2), (4, 80, 2), (4, 60, 2)]
    """
    clips = check_tensor(clips, "clips")
    ranks = check_ranks(p, clips.shape[1:])
    return [_right_factors(clips, k, rank) for k, rank in enumerate(ranks)]


def _right_factors(clips, k, p):
    n = len(clips)
    side = clips.shape[1 + k]
    rest = clips[0].size // side
    V = np.empty((n, rest, min(side, rest) if p is None else min(p, rest)), clips.dtype)
    least = V.shape[2]
    for some in core.slices(n, max(1, PIXELS_AT_A_TIME // clips[0].size)):
        unfolded = np.moveaxis(clips[some], 1 + k, 1).reshape(-1, side, rest)
        _, s, Vt = np.linalg.svd(unfolded.astype(np.float64), full_matrices=False)
        kept = s > max(side, rest) * np.finfo(clips.dtype).eps * s[:, :1]
        least = min(least, int(kept.sum(axis=1).min()))
        V[some] = (Vt * kept[:, :, None]).swapaxes(1, 2)[:, :, : V.shape[2]]
    return V[:, :, :least] if p is None else V


def product_distances(
    X: Sequence[ArrayLike],
    Y: Sequence[ArrayLike] | None = None,
    metric: str = "chordal",
) -> np.ndarray:
    """Distances (n, N) on the product manifold of mode_bases X and Y.

    Without Y, of X among themselves.

    metric: "chordal", the norm of the sines of all principal angles of the three
    factors; "geodesic", that of the angles, some times slower. A direction that one of
    two clips lacks is at a right angle, one that both lack counts nothing. Source: Lui,
    Beveridge and Kirby, CVPR 2010.

    ValueError for an unknown metric, or factors of clips of two sizes or two p.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tensors
    >>> clips = np.zeros((2, 2, 2, 2))
    >>> clips[[0, 1], [0, 1], [0, 1], [0, 1]] = 1  # a spark each: three right angles
    >>> tensors.product_distances(tensors.mode_bases(clips)).round(4)
    array([[0.    , 1.7321],
           [1.7321, 0.    ]])
    """
    core.check_choice(metric, "metric", "chordal", "geodesic")
    X = _check_factors(X, "X")
    Y = X if Y is None else _check_factors(Y, "Y")
    for V, W, axis in zip(X, Y, AXES):
        if V.shape[1:] != W.shape[1:]:
            raise ValueError(
                "X and Y must be of clips of one size and one p, got factors "
                f"{V.shape[1:]} and {W.shape[1:]} of axis {axis}"
            )
    return np.sqrt(sum(_squares(V, W, metric) for V, W in zip(X, Y)))


def _squares(X, Y, metric):
    """Squared distances of bases (n, d, p) and (N, d, p); half the work if X is Y.

    They may have columns of zeros at the end.
    """
    among = X is Y
    if not (X.any(axis=1).all() and Y.any(axis=1).all()):
        X = _completed(X)
        Y = _completed(Y)
    Y = None if among else Y
    if metric == "geodesic":
        return np.square(core.geodesic_distance(X, Y))
    return np.square(core.chordal_distance(X, Y)) / 2


def _completed(V):
    """Bases (n, d + p, p), of which columns of zeros became directions beside R^d.

    A column is the same direction in all, at a right angle to all others.
    """
    n, _, p = V.shape
    beside = np.zeros((n, p, p), V.dtype)
    beside[:, range(p), range(p)] = ~V.any(axis=1)
    return np.concatenate([V, beside], axis=1)


# -------------------------------------------------------- tensor canonical correlations


# What the correlations of clips need: of joint modes bases (n, rest, p), of single ones
# Components.
Components = namedtuple("Components", "cores grams")  # (n, p p, I), (n, p p, p p)


def tensor_parts(clips, p, modes):
    """Return parts of checked arguments for tensor_correlations, one a mode.

    p is at most the length of each axis.
    """
    return [
        _right_factors(clips, JOINT[mode], p)
        if mode in JOINT
        else _components(clips, SINGLE[mode], p)
        for mode in modes
    ]


def tensor_correlations(parts, parts2=None):
    """Return canonical correlations of tensors as features (m, n, N) in [0, 1].

    Of the clips of parts and of parts2, or among themselves; the parts are those of
    tensor_parts. p for each mode, in the order of modes, descending.

    In the modes "yx", "tx", "ty" two axes are shared: the clips' unfoldings
    along the axis that is left span subspaces (mode_bases), whose canonical
    correlations they are; "yx" is that of image sets. In "t", "y", "x" one is
    shared: of the clips' p leading components in either of the other axes, a
    weighted sum in each, a = A x_1 u x_2 w, is a function of the shared axis; from the
    leading components, u, w of one clip and those of the other are fitted in turn, each
    by least squares, ten times. Every fit raises the correlation of a and b. Features
    are the canonical correlations over u at the w found. The first is a lower bound of
    the largest correlation of any a and b, near one of many local maxima, at times 0.4
    below the largest, which a start from each pair of components does not always find
    either. Features depend a little on which of two clips is first.

    A direction that a clip lacks has correlation 0. Source: Kim and Cipolla, PAMI 2009.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import tensors
    >>> clips = np.zeros((2, 2, 2, 2))
    >>> clips[:, 0, 0, 0] = 1
    >>> clips[1, 0, 1, 1] = 1  # another pixel in one of two
    >>> tensors.tensor_correlations(tensors.tensor_parts(clips, 1, ["yx"])).round(4)
    array([[[1.    , 0.7071],
            [0.7071, 1.    ]]])
    """
    symmetric = parts2 is None
    return np.concatenate(
        [
            _single_correlations(part, other, symmetric)
            if isinstance(part, Components)
            else _joint_correlations(part, other)
            for part, other in zip(parts, parts if symmetric else parts2)
        ]
    )


def _joint_correlations(X, Y):
    """Canonical correlations (p, n, N) of bases (n, d, p), (N, d, p)."""
    p = X.shape[2]
    cosines = np.empty((p, len(X), len(Y)), np.result_type(X, Y))
    for i, j, C in _tiles_of_products(X.swapaxes(1, 2), Y.swapaxes(1, 2), False):
        cosines[:, i, j] = _singular_values(C.reshape(len(C), p, -1, p).swapaxes(1, 2))
    return cosines


def _tiles_of_products(X, Y, symmetric):
    """(i, j, X[i] Y[j]^T (t, p, u p)) of tiles of X (n, p, d), Y (N, p, d).

    If symmetric, of those that reach above the diagonal. Clip by clip, BLAS products of
    one shape each: one of all rows would be rounded by how many there are, and choose
    between clips that tie.
    """
    _, p, d = X.shape
    side = max(1, math.isqrt(PRODUCTS_AT_A_TIME) // p)
    for j in core.slices(len(Y), side):
        columns = Y[j].reshape(-1, d)
        for i in core.slices(j.stop if symmetric else len(X), side):
            yield i, j, np.matmul(X[i], columns.T)


def _singular_values(blocks):
    """(p, t, u) of blocks (t, u, p, p), at most 1."""
    s = core.run_blocks(
        lambda rows: np.linalg.svd(blocks[rows], compute_uv=False), len(blocks), 8
    )
    return np.moveaxis(np.minimum(np.concatenate(s), 1), 2, 0)


def _components(clips, axis, p):
    """Components of clips' p leading components in the two other axes."""
    n = len(clips)
    A = np.moveaxis(clips, 1 + axis, 1).astype(np.float64)  # (n, I, J, K)
    A = A / np.abs(A).max(axis=(1, 2, 3), keepdims=True)
    for k in (2, 3):
        rows = np.moveaxis(A, k, 1).reshape(n, A.shape[k], -1)
        U = np.linalg.svd(rows, full_matrices=False)[0][:, :, :p]  # (n, J, p)
        A = np.moveaxis(
            np.matmul(U.swapaxes(1, 2), rows).reshape(
                n, p, *np.delete(A.shape[1:], k - 1)
            ),
            1,
            k,
        )
    # (n, p p, I)
    cores = np.ascontiguousarray(np.moveaxis(A, 1, 3)).reshape(n, p * p, -1)
    return Components(cores, np.matmul(cores, cores.swapaxes(1, 2)))


def _single_correlations(X, Y, symmetric):
    n, size, _ = X.cores.shape
    p = math.isqrt(size)
    cosines = np.zeros((p, n, len(Y.cores)))
    for i, j, cross in _tiles_of_products(X.cores, Y.cores, symmetric):
        whitened = np.empty((len(cross), cross.shape[2] // size, p, p))
        core.run_blocks(
            lambda b: _alternate(
                cross, X.grams[i], Y.grams[j], b.start, b.stop, whitened
            ),
            len(cross),
            4,
        )
        cosines[:, i, j] = _singular_values(whitened)
    if symmetric:
        cosines = np.triu(cosines) + np.triu(cosines, 1).swapaxes(1, 2)
    return cosines


@core.jit(long=True)
def _alternate(cross, own, own2, start, stop, out):
    """Write L^-1 G M^-T (p, p) to out[i, j]; its singular values are the correlations.

    L L^T, G and M M^T are the Gram matrices of A_i x w and B_j x v at the w, v found; i
    is in start..stop-1. cross[i] holds blocks (p p, p p) of inner products of
    components, own and own2 the clips' own.
    """
    p = out.shape[2]
    left = np.zeros((p, p))  # Gram matrices and their factors
    right = np.zeros((p, p))
    G = np.zeros((p, p))
    half = np.zeros((p, p))
    factors = np.empty((4, p))  # u and w of A, u and w of B
    for i in range(start, stop):
        for j in range(out.shape[1]):
            block = cross[i, :, j * p * p : (j + 1) * p * p]
            factors[:] = 0
            factors[:, 0] = 1
            for turn in range(2 * N_ALTERNATIONS + 1):
                over_u = turn % 2 == 0
                k = 0 if over_u else 1  # fitted here; the other stays
                w = factors[1 - k]
                v = factors[3 - k]
                _weigh(own[i], w, w, over_u, left)
                _weigh(own2[j], v, v, over_u, right)
                _weigh(block, w, v, over_u, G)
                for gram in (left, right):
                    core.ridge_factor(gram, RIDGE * np.trace(gram) / p + 1e-280)
                if turn == 2 * N_ALTERNATIONS:
                    break
                _fit(left, G, factors[2 + k], factors[k])
                _fit(right, G.T, factors[k], factors[2 + k])
            _divide(left, G, half)
            _divide(right, half, out[i, j])


@core.inlined_jit
def _weigh(block, w, v, over_u, out):
    """out[a, b] = sum over c, e of block[(a, c), (b, e)] w_c v_e.

    Or of block[(c, a), (e, b)].
    """
    p = len(w)
    for a in range(p):
        for b in range(p):
            total = 0.0
            for c in range(p):
                row = a * p + c if over_u else c * p + a
                inner = 0.0
                for e in range(p):
                    inner += block[row, b * p + e if over_u else e * p + b] * v[e]
                total += w[c] * inner
            out[a, b] = total


@core.inlined_jit
def _divide(L, B, out):
    """out = (L^-1 B)^T."""
    for b in range(len(L)):
        for a in range(len(L)):
            out[b, a] = (B[a, b] - core.dot(L[a], out[b], a)) / L[a, a]


@core.inlined_jit
def _fit(L, G, other, out):
    """out = (L L^T)^-1 G other, of norm 1."""
    p = len(out)
    for a in range(p):
        out[a] = core.dot(G[a], other, p)
    core.cholesky_solve(L, out, p)
    norm = np.sqrt(core.dot(out, out, p))
    if norm == 0:  # nothing in common: any will do
        out[0] = norm = 1.0
    for a in range(p):
        out[a] /= norm


def separations(features: ArrayLike, labels: core.Labels) -> np.ndarray:
    """How well each similarity of features (m, N, N) tells classes apart, (m,).

    The mean over pairs of one class less that over pairs of two, over the root of the
    sum of the variances; 0 for a feature that is the same for all pairs. labels (N,) of
    at least two classes. Where no class has two members, each with itself stands for a
    pair of one class.

    ValueError unless features are (m, N, N) and labels (N,) of two classes or more.

    >>> from grassmann_sc.baselines import tensors
    >>> similarity = [[1.0, 0.9, 0.1], [0.9, 1.0, 0.3], [0.1, 0.3, 1.0]]
    >>> tensors.separations([similarity], ["ape", "ape", "bee"]).round(6)
    array([7.])
    """
    features = shared.shaped_array(features, "features", ("m", "N", "N"))
    _, index = shared.check_classes(labels, features.shape[1])
    same = np.equal.outer(index, index)
    within = same & ~np.eye(len(index), dtype=bool)
    if not within.any():
        within = same
    # by powers of two, so that squares neither overflow nor all vanish
    scales = [-math.frexp(core.max_abs(feature))[1] for feature in features]
    features = np.ldexp(features, np.array(scales)[:, None, None])
    gap = features[:, within].mean(axis=1) - features[:, ~same].mean(axis=1)
    gap[np.abs(gap) < 1e-14] = 0  # rounding of means
    spread = features[:, within].var(axis=1) + features[:, ~same].var(axis=1)
    return gap / np.sqrt(np.maximum(spread, 1e-30))


# ------------------------------------------------------------------------------- checks


def check_clips(clips, name):
    """Clips as a list of at least one real, finite array (n_frames, height, width)."""
    shared.check_sequence(clips, name, "clips", "clip")
    return [
        shared.check_clip(clip, f"{name}[{i}]", shared.LARGEST_PIXEL)
        for i, clip in enumerate(clips)
    ]


def check_sides(shape, name):
    """The three integers >= 1 of the shape of a clip."""
    return shared.check_integers(shape, name, 3, "(n_frames, height, width)")


def check_ranks(p, sides):
    """p_k of the three axes, or None for each."""
    if p is None:
        return [None, None, None]
    wanted = p if np.iterable(p) else [p] * 3
    wanted = shared.check_integers(wanted, "p", 3, "an integer or three")
    return [min(rank, side) for rank, side in zip(wanted, sides)]


def check_tensor(clips, name):
    """Clips of one size as an array (n, n_frames, height, width), none of them zero."""
    listed = check_clips(clips, name)
    for i, clip in enumerate(listed):
        if clip.shape != listed[0].shape:
            raise ValueError(
                f"{name} must be of one size, see resize_clips: {name}[0] has "
                f"{listed[0].shape}, {name}[{i}] has {clip.shape}"
            )
        if not clip.any():
            raise ValueError(
                f"{name}[{i}] must hold a pixel other than 0, got only zeros"
            )
    return np.stack(listed).astype(shared.float_type(*listed))


def _check_factors(X, name):
    shared.check_sequence(X, name, "the three factors that mode_bases gives")
    X = [core.finite_array(V, f"{name}[{k}]") for k, V in enumerate(X)]
    if len(X) != 3 or any(V.ndim != 3 or len(V) != len(X[0]) or not V.size for V in X):
        raise ValueError(
            f"{name} must be the three factors (n, d, p) of mode_bases, got shapes "
            f"{[V.shape for V in X]}"
        )
    return X
