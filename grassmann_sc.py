"""Coding of linear subspaces: Grassmann sparse coding (gSC) and locality-constrained
coding (gLC).

The linear method of Harandi, Hartley, Shen, Lovell and Sanderson, "Extrinsic Methods
for Coding and Dictionary Learning on Grassmann Manifolds" (IJCV 2015), in one file that
can be copied alone.

Conventions, here and in every module: n subspaces are an array (n, d, p) of orthonormal
bases, whose columns are the basis vectors; a dictionary is (N, d, q); codes are (n, N).
float32 and float64 are kept, other real types become float64. A subspace X is embedded
as its projector X^ = X X^T, which is not formed where d is large: most functions need
only inner products. These also take weighted subspaces X^ = sum_k w_k u_k u_k^T with
||w||_2 = 1. The array then holds the columns sqrt(w_k) u_k; all formulas stay as they
are, and <X^, X^> = 1 (subspaces.weighted).

Every public function, here and in every module, checks its arguments. What it cannot
take is a ValueError or TypeError that names the argument, the rule and the value;
docstrings tell of other errors, and of warnings. Equations are the paper's (Eq. 14).

    inner product  <X^, D^> = ||X^T D||_F^2, <X^, X^> = p           projection_kernel
    distance       ||X^ - Y^||_F = sqrt(2) ||sin theta|| for p = q  chordal_distance
    closest point  Proj(S) = the p leading eigenvectors of S        proj
    mean           Proj(sum_i w_i X_i^)                             chordal_mean
    gSC            min_y ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1  gsc, sparse_codes
    gLC            min_y ||X^ - sum_j y_j D_j^||_F^2 over the       glc, locality_codes
                   atoms nearest to X, with sum_j y_j = 1
    point          Proj(sum_j y_j D_j^)                             reconstruct
    class, by gSC  the least ||X^ - sum_{j in c} y_j D_j^||_F^2     classify
    class, by gLC  the largest sum_{j in c} y_j                     classify
    gDL            D_r = Proj(sum_i y_ir (X_i^ - sum_{j != r} y_ij D_j^))  learn.gdl

In gDL y_ij is the coefficient of sample i on atom j; codes and atoms are updated in
turn. kgSC and kgLC are the same with Gram matrices from a kernel: a set of frames spans
a subspace of the kernel's feature space (kernels.kgsc, kernels.kglc). kgDL is gDL on
coordinates of that space (learn.kgdl). This file runs alone; the other modules lie
beside it, as in: from grassmann_sc import learn.

NUMBA_NUM_THREADS or numba.set_num_threads sets the threads of all loops; large matrix
products use the threads of NumPy's BLAS instead. Numba's threads never change a result;
BLAS threads may change the last digits. The first call of a long function compiles for
seconds; the logger grassmann_sc then warns, on stderr unless logging is told otherwise.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib.util
import logging
import math
import operator
import os
import queue
import sys
import warnings
import zlib
from collections import namedtuple
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
import numba.core.event
import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

__version__ = "0.3.0"
__all__ = [
    "orthonormalize",
    "random_subspaces",
    "principal_angles",
    "chordal_distance",
    "geodesic_distance",
    "proj",
    "chordal_mean",
    "projection_kernel",
    "lam_max",
    "sparse_codes",
    "locality_codes",
    "gsc",
    "glc",
    "reconstruct",
    "class_scores",
    "class_residuals",
    "score_shares",
    "classify",
]

# Names for type hints, here and in every module.
# codes (n, N), dense or sparse
Codes: TypeAlias = ArrayLike | scipy.sparse.csr_array
Labels = Sequence[Hashable] | ArrayLike  # one a sample or atom
# what np.random.default_rng takes
Rng = int | Sequence[int] | np.random.Generator | None


# ----------------------------------------------------------------------------- geometry


def orthonormalize(A: ArrayLike) -> np.ndarray:
    """Orthonormal basis of the column space of each matrix of A (..., d, p).

    The result has A's shape; p <= d. Thin QR with a positive diagonal of R, so that an
    orthonormal basis is returned as it is, to rounding. ValueError if columns are
    dependent to working precision (names the index, its rank and the tolerance).

    >>> from grassmann_sc import orthonormalize
    >>> orthonormalize([[3.0], [4.0]])
    array([[0.6],
           [0.8]])
    """
    A = finite_array(A, "A")
    if A.ndim < 2 or not 1 <= A.shape[-1] <= A.shape[-2]:
        raise ValueError(
            f"A must have shape (..., d, p) with 1 <= p <= d, got {A.shape}"
        )
    d, p = A.shape[-2:]
    # equal column scales: no overflow, no false rank
    peak = np.abs(A).max(axis=-2, keepdims=True)
    Q, R = np.linalg.qr(A / np.where(peak > 0, peak, 1))
    s = np.linalg.svd(R, compute_uv=False)  # (..., p)
    tol = d * np.finfo(A.dtype).eps
    rank = (s > tol * s[..., :1]).sum(axis=-1)
    if (rank < p).any():
        i = tuple(int(j) for j in np.argwhere(rank < p)[0])
        raise ValueError(
            f"A must have independent columns: rank {rank[i]} < p = {p}"
            f"{f' at index {i}' if i else ''}, relative tolerance {tol:.1g}"
        )
    return Q * np.copysign(1, np.diagonal(R, axis1=-2, axis2=-1))[..., None, :]


def random_subspaces(n: int, d: int, p: int, rng: Rng = None) -> np.ndarray:
    """n subspaces of R^d of dimension p, uniformly distributed: (n, d, p), float64.

    The orthonormalized columns of Gaussian matrices. rng: as np.random.default_rng
    takes it.

    >>> from grassmann_sc import random_subspaces
    >>> X = random_subspaces(5, 10, 3, rng=0)  # five of dimension 3 in R^10
    >>> X.shape
    (5, 10, 3)
    """
    n = check_integer(n, "n", 0)
    d = check_integer(d, "d", 1)
    p = check_integer(p, "p", 1, d)
    return orthonormalize(check_rng(rng).standard_normal((n, d, p)))


def principal_angles(X: ArrayLike, Y: ArrayLike) -> np.ndarray:
    """Principal angles of X (..., d, p) and Y (..., d, q), in radians, ascending.

    The result has shape (..., min(p, q)) and lies in [0, pi/2]. theta =
    arctan2(singular values of (I - X X^T) Y, singular values of X^T Y): full accuracy
    at 0 and at pi/2, in radians. Leading axes broadcast. Source: Eq. 2.

    >>> import numpy as np
    >>> from grassmann_sc import principal_angles
    >>> axes = np.eye(4)
    >>> np.degrees(principal_angles(axes[:, [0, 1]], axes[:, [0, 2]]))  # one in common
    array([ 0., 90.])
    >>> principal_angles([[1.0], [0.0]], [[1.0], [1e-12]])
    array([1.e-12])
    """
    X, Y = same_dimension(check_bases(X, "X", None), check_bases(Y, "Y", None), "XY")
    check_leading_axes("X and Y", X, Y)
    return _angles(X, Y)


def _angles(X, Y):
    if X.shape[-1] < Y.shape[-1]:
        return _angles(Y, X)
    C = np.matmul(X.swapaxes(-1, -2), Y)  # (..., p, q), p >= q
    sine = np.linalg.svd(Y - np.matmul(X, C), compute_uv=False)  # (..., q), descending
    cosine = np.linalg.svd(C, compute_uv=False)
    return np.arctan2(sine[..., ::-1], cosine)


def chordal_distance(X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
    """Pairwise ||X_i^ - Y_j^||_F of X (n, d, p) and Y (N, d, q): (n, N).

    For p = q it is sqrt(2) ||sin theta||, theta being the principal angles. It is
    sqrt(p + q - 2 <X^, Y^>); near pairs are computed from (I - X X^T) Y to avoid
    cancellation. Without Y, within X. Source: Eq. 12 and 13.

    >>> import numpy as np
    >>> from grassmann_sc import chordal_distance
    >>> axes = np.eye(2)[..., None]  # (2, 2, 1): two lines at a right angle
    >>> chordal_distance(axes) ** 2
    array([[0., 2.],
           [2., 0.]])
    """
    X, Z = _check_pair(X, Y)
    square = chordal_squares(X, Z, bases_gram(X, None if Y is None else Z))
    if Y is None:  # the two computations of a near pair round differently
        square = np.triu(square, 1) + np.triu(square, 1).T
    return np.sqrt(square)


def geodesic_distance(X: ArrayLike, Y: ArrayLike | None = None) -> np.ndarray:
    """Pairwise ||theta||_2 over the principal angles, in radians: (n, N).

    X has shape (n, d, p), Y (N, d, q). Without Y, within X. For p = q the paper's
    inequality, with the factor that it lacks, is (2 / pi) d_geo <= d_chordal / sqrt(2)
    <= d_geo.

    >>> import numpy as np
    >>> from grassmann_sc import geodesic_distance
    >>> axes = np.eye(2)[..., None]  # (2, 2, 1): two lines at a right angle
    >>> np.degrees(geodesic_distance(axes))
    array([[ 0., 90.],
           [90.,  0.]])
    """
    X, Z = _check_pair(X, Y)
    distance = np.zeros((len(X), len(Z)), X.dtype)
    step = max(1, SCRATCH // (Z.shape[1] * Z.shape[2]))

    def fill(rows):
        for i in range(rows.start, rows.stop):
            for j in range(0 if Y is not None else i + 1, len(Z), step):
                # (step, min(p, q))
                distance[i, j : j + step] = np.linalg.norm(
                    _angles(X[i], Z[j : j + step]), axis=-1
                )

    run_blocks(fill, len(X), 4)
    return distance if Y is not None else distance + distance.T


def proj(S: ArrayLike, p: int) -> np.ndarray:
    """The rank-p projector closest to S (..., d, d), as a basis (..., d, p).

    The eigenvectors of the p algebraically largest eigenvalues of the symmetric S,
    which may be indefinite (Theorem 2). A warning if eigenvalues p and p + 1 tie: the
    point is not unique, one of them is returned.

    >>> import numpy as np
    >>> from grassmann_sc import proj
    >>> abs(proj(np.diag([1.0, 3.0, 2.0]), p=2))
    array([[0., 0.],
           [1., 0.],
           [0., 1.]])
    """
    S = check_symmetric(S, "S", ndim=None)
    p = check_integer(p, "p", 1, S.shape[-1])
    basis, tied = _leading_of_dense(S / 2 + S.swapaxes(-1, -2) / 2, p)
    warn_ties(int(tied.sum()), "closest point")
    return basis


def chordal_mean(X: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """The Y (d, p) that minimises sum_i w_i ||Y^ - X_i^||_F^2, X being (n, d, p).

    Proj(sum_i w_i X_i^), the paper's Theorem 1; it holds for negative weights too. No d
    x d matrix is formed when d is large. A warning if the mean is not unique;
    ValueError if all weights are zero.

    See also intrinsic.karcher_mean, the mean of geodesic distances.

    >>> import numpy as np
    >>> from grassmann_sc import chordal_mean, principal_angles
    >>> t = np.radians([0, 20])  # two lines
    >>> mean = chordal_mean(np.stack([np.cos(t), np.sin(t)], axis=1)[..., None])
    >>> np.degrees(principal_angles([[1.0], [0.0]], mean))
    array([10.])
    """
    X = check_dictionary(X, "X")
    weights = np.ones(len(X)) if weights is None else finite_array(weights, "weights")
    if weights.shape != (len(X),):
        raise ValueError(
            f"weights must have shape ({len(X)},), one a subspace, got {weights.shape}"
        )
    if not weights.any():
        raise ValueError("weights must not all be zero, got only zeros")
    basis, tied = weighted_mean(X, weights)
    warn_ties(int(tied), "chordal mean")
    return basis


# -------------------------------------------------------------------------- Gram matrix


def projection_kernel(
    X: ArrayLike, D: ArrayLike | None = None, *, each_p: bool = False
) -> np.ndarray:
    """K[i, j] = <X_i^, D_j^> = ||X_i^T D_j||_F^2 >= 0: (n, N).

    X has shape (n, d, p), D (N, d, q). Each entry is at most min(p, q), of weighted
    subspaces at most 1. Without D, the symmetric (n, n) Gram matrix of X. each_p:
    (min(p, q), n, N) instead, of bases; K[k - 1] is the kernel of the bases cut to
    their first k columns, all from one product. Source: K(X, D) and K(D) of Eq. 15.

    >>> import numpy as np
    >>> from grassmann_sc import projection_kernel
    >>> axes = np.eye(4)
    >>> planes = np.stack([axes[:, [0, 1]], axes[:, [0, 2]]])  # (2, 4, 2): one in common
    >>> projection_kernel(planes)
    array([[2., 1.],
           [1., 2.]])
    """
    each_p = check_flag(each_p, "each_p")
    X, Z = _check_pair(X, D, "XD", weighted=not each_p)
    gram = leading_grams if each_p else bases_gram
    return gram(X, None if D is None else Z)


# ------------------------------------------------------------------------ sparse coding

SparseCodes = namedtuple("SparseCodes", "codes gap n_iter")
# as options ask for it
Coded: TypeAlias = np.ndarray | scipy.sparse.csr_array | list | SparseCodes


def lam_max(K_xd: ArrayLike) -> np.ndarray:
    """The least lambda whose code is zero, 2 max_j |k_j|, for each row of K_xd.

    K_xd has shape (..., N), the result (...). For positive codes it is an upper bound.

    >>> from grassmann_sc import lam_max
    >>> lam_max([[0.5, -2.0, 1.0], [0.1, 0.0, 0.3]])
    array([4. , 0.6])
    """
    K_xd = finite_array(K_xd, "K_xd")
    if K_xd.ndim < 1 or K_xd.shape[-1] < 1:
        raise ValueError(f"K_xd must have shape (..., N) with N >= 1, got {K_xd.shape}")
    return 2 * np.abs(K_xd).max(axis=-1)


def gsc(
    X: ArrayLike,
    D: ArrayLike,
    lam: ArrayLike,
    *,
    lam_scale: str | None = None,
    positive: bool = False,
    init: Codes | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
    sparse_output: bool = False,
) -> Coded:
    """Grassmann sparse coding: codes (n, N) of X (n, d, p) over atoms D (N, d, q).

    A code y minimises ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1 (Eq. 14). The codes are
    those of sparse_codes on projection_kernel(X, D); details are there. Queries pass in
    tiles: with sparse_output=True memory beyond input and output does not grow with n.

    lam: >= 0, the larger the sparser; an array (L,) gives a path of codes (L, n, N).
    lam_scale: "max" makes lam a share of each query's lam_max, the least lambda whose
    code is 0.
    positive: codes >= 0.
    init: codes (n, N) to start from.
    tol: the accuracy relative to ||X^||^2, see sparse_codes.
    max_iter: the search stops after max_iter rounds, with a warning.
    return_info: return a named tuple (codes, gap, n_iter), see sparse_codes.
    sparse_output: return a scipy.sparse CSR array.

    See also glc, kernels.kgsc for subspaces in a kernel's feature space, learn.gdl for
    the atoms, large.codes.write_codes for what does not fit in memory.

    >>> from grassmann_sc import gsc, random_subspaces
    >>> D = random_subspaces(3, 10, 2, rng=0)
    >>> gsc(D[:1], D, lam=1.0).round(6)  # a query that is an atom: 1 - lam / (2 p)
    array([[0.75, 0.  , 0.  ]])
    """
    X, D = check_queries_and_atoms(X, D, weighted=True)
    return sparse_coding(
        (len(X), len(D)),
        lam,
        lam_scale,
        positive,
        init,
        tol,
        max_iter,
        return_info,
        sparse_output,
    )(bases_gram(D), LazyGram(X, D), squared_norm(X))


def sparse_codes(
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    lam: ArrayLike,
    *,
    norm2: ArrayLike,
    lam_scale: str | None = None,
    positive: bool = False,
    init: Codes | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
    sparse_output: bool = False,
) -> Coded:
    """Codes that minimise ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1, from products.

    K_dd (N, N) holds <D_i^, D_j^>, K_xd (n, N) holds <X_i^, D_j^>, norm2 is ||X_i^||^2,
    a number or (n,): p for an orthonormal basis. The cost is norm2 - 2 y^T k + y^T K y
    + lam ||y||_1 (no factor 1/2: lam is twice scikit-learn's alpha), the paper's Eq.
    15; K_dd may be singular. lam = 0 gives the least-squares code of
    least norm, unless positive. An array of lam (L,) gives a path of codes (L, n, N),
    each solved from the one before. lam_scale="max": each query's lambda is lam times
    its own lam_max, so that one lam in [0, 1] suits any data.

    The search stops when three numbers are at most tol: the duality gap over norm2,
    reach v / norm2, and v / (lam_max / 2). v is the largest violation of the optimality
    conditions of g = k - K y: g_j = (lam / 2) sign(y_j) where y_j != 0, |g_j| <= lam /
    2 elsewhere (positive: lam_max / 2 is the largest k_j). reach = sqrt(norm2 / max_j
    K_jj) brings it into units of the cost. The third number keeps accuracy where inner
    products are small. Where rounding keeps the search from that and lam is below 4e-6
    of lam_max in float32, 1e-11 in float64, code and gap are those of this share. If
    max_iter or rounding ends the search before, a warning gives the largest of the
    three. Of identical atoms only the sum of the coefficients is determined. positive:
    codes >= 0. init: codes (n, N) to start from.

    Returns codes (n, N) of the type of the Gram matrices. With sparse_output=True they
    are a scipy.sparse CSR array, for a path a list of them. With return_info=True they
    are in a named tuple (codes, gap, n_iter): gap is norm2 times the largest of the
    three numbers, the third where it is above tol, and in float32 what rounding the
    code adds to its cost: no code costs less by more. At lambda 0, unless positive, it
    is the duality gap alone, over the eigenvectors of K_dd of which rounding leaves
    something. ValueError or TypeError that names the argument.

    >>> import numpy as np
    >>> from grassmann_sc import sparse_codes
    >>> sparse_codes(np.eye(3), [[0.5, -0.3, 0.01]], lam=0.2, norm2=1.0).round(6)
    array([[ 0.4, -0.2,  0. ]])
    >>> k = [[0.5, -0.3, 0.01]]
    >>> sparse_codes(np.eye(3), k, lam=0.2, norm2=1.0, return_info=True).gap < 1e-8
    array([ True])
    """
    K_dd, K_xd, norm2 = check_grams(K_dd, K_xd, norm2)
    return sparse_coding(
        K_xd.shape,
        lam,
        lam_scale,
        positive,
        init,
        tol,
        max_iter,
        return_info,
        sparse_output,
    )(K_dd, K_xd, norm2)


# ---------------------------------------------------------- locality-constrained coding


def glc(
    X: ArrayLike,
    D: ArrayLike,
    n_neighbors: int,
    *,
    reg: float | None = None,
    sparse_output: bool = False,
) -> np.ndarray | scipy.sparse.csr_array:
    """Grassmann locality-constrained coding: codes (n, N) of X over atoms D.

    X has shape (n, d, p), D (N, d, q). min ||X^ - sum_j y_j D_j^||_F^2 with 1^T y = 1
    over each query's n_neighbors nearest atoms (Eq. 18): locality_codes on the
    projection kernel; queries pass in tiles, as in gsc.

    n_neighbors: in 1..N, the nonzeros of a code at most.
    reg: >= 0, the ridge relative to trace(G), for neighbours that are nearly dependent
    (1e-10, float32: 1e-5).
    sparse_output: a scipy.sparse CSR array.

    >>> from grassmann_sc import glc, random_subspaces
    >>> D = random_subspaces(3, 10, 2, rng=0)
    >>> glc(D[:1], D, n_neighbors=2)
    array([[1., 0., 0.]])
    """
    X, D = check_queries_and_atoms(X, D, weighted=True)
    return local_coding(len(D), X.dtype, n_neighbors, reg, sparse_output)(
        bases_gram(D), LazyGram(X, D), squared_norm(X)
    )


def locality_codes(
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    n_neighbors: int,
    *,
    norm2: ArrayLike,
    reg: float | None = None,
    sparse_output: bool = False,
) -> np.ndarray | scipy.sparse.csr_array:
    """Codes over the n_neighbors nearest atoms B_j of each query, which sum to 1.

    They minimise ||X^ - sum_j y_j B_j^||_F^2 under 1^T y = 1. With the matrix G_ij =
    <X^ - B_i^, X^ - B_j^> and the vector 1 of ones they solve (G + reg trace(G) I) y =
    1, scaled to sum 1: the paper's Eq. 19 and 20, regularised so that
    linearly dependent neighbours are allowed. reg defaults to 1e-10, for float32 to
    1e-5; the ridge is never below the rounding error of G. Nearest is by chordal
    distance. If several atoms have exactly equal inner products, the first ones are
    taken. If these differ only by rounding, as for one subspace in two bases, the
    choice depends on the processor. A query that equals an atom, to rounding, has code 1
    on it, in equal parts on atoms that it equals. Arguments and output are as in
    sparse_codes; n_neighbors is in 1..N.

    >>> import numpy as np
    >>> from grassmann_sc import locality_codes
    >>> locality_codes(np.eye(3), [[0.5, 0.5, 0.1]], n_neighbors=2, norm2=1.0).round(6)
    array([[0.5, 0.5, 0. ]])
    """
    K_dd, K_xd, norm2 = check_grams(K_dd, K_xd, norm2)
    return local_coding(len(K_dd), K_dd.dtype, n_neighbors, reg, sparse_output)(
        K_dd, K_xd, norm2
    )


# -------------------------------------------------------- from codes to points, classes


def reconstruct(codes: Codes, D: ArrayLike) -> np.ndarray:
    """Points (n, d, p) on the manifold that codes (n, N) over D (N, d, p) stand for.

    Proj(sum_j y_j D_j^), the weighted chordal mean of the atoms (the paper's section on
    the extrinsic nature of the solution). A warning if some are not unique, as for a
    zero code.

    >>> import numpy as np
    >>> from grassmann_sc import reconstruct
    >>> axes = np.eye(2)[..., None]  # (2, 2, 1): two lines as atoms
    >>> abs(reconstruct([[0.7, 0.2]], axes)).tolist()  # nearest to the first
    [[[1.0], [0.0]]]
    """
    D = check_dictionary(D, "D")
    codes = check_codes(codes, None, len(D), "codes")
    points = np.empty((codes.shape[0], *D.shape[1:]), D.dtype)
    tied = np.zeros(len(points), bool)

    def fill(rows):
        for i in range(rows.start, rows.stop):
            points[i], tied[i] = weighted_mean(D, dense_codes(codes[i : i + 1])[0])

    run_blocks(fill, len(points), 16)
    warn_ties(int(tied.sum()), "reconstruct: point")
    return points


def class_scores(
    codes: Codes,
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    labels: Labels,
    *,
    norm2: ArrayLike,
    rule: str = "residual",
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (n, C) of the classes, and the classes; the largest score wins.

    The labels are classes[scores.argmax(axis=1)]; of equal scores the first wins. codes
    (n, N) are dense or sparse, labels (N,) are those of the atoms; the Gram matrices
    and norm2 are as in sparse_codes. The rules:

    "residual": what the atoms of the class explain, 2 k_c^T y_c - y_c^T K_cc y_c. It is
    ||X^||^2 - e_c, where e_c is the paper's class-specific residual error
    (class_residuals). It is computed directly: the difference ||X^||^2 - e_c would lose
    it to rounding where it is far below ||X^||^2.
    "sum", "max": the sum or the largest of the coefficients of the class, the paper's
    alternatives. In the paper a class has zeros in the places of all other atoms, so
    that its largest is never below 0; here a class all of whose atoms have negative
    coefficients scores below 0. Wherever a coefficient is positive the same class wins.

    The paper gives "residual" for all codes. classify gives it for sparse codes, and
    "sum" for local ones; codes do not tell which they are. Residuals depend on the
    origin of the embedding space, since the atoms of other classes count as zero; local
    codes and their class sums do not. If inner products are small, under a narrow
    kernel or with long descriptors, each neighbour of a class lowers its residual
    score, so that a class with two neighbours loses to a class with one.
    Cross-validation with one training atom a class does not reveal that.

    On plain subspaces "residual" does as well or better: on seven real sets, with p and
    neighbours chosen by cross-validation for either rule, it was ahead of "sum" by more
    than half a point on two, by 2.3 and 5.6, and "sum" on none; with centred frames on
    three, by 0.6 to 2.2, and none (benchmarks/claims.py). Most of these differences are
    smaller than their spread over the splits. tuning.local_predictions tries both.

    A class with no atom in the code scores 0; if no score is positive, just below the
    best. If a code is zero, the nearest atom wins: a class scores the largest 2 k_j
    - (||D_j^||^2 - min_i ||D_i^||^2) of its atoms.

    >>> import numpy as np
    >>> from grassmann_sc import class_scores
    >>> K_dd, K_xd = np.eye(2), [[0.5, 0.1]]
    >>> scores, classes = class_scores([[0.5, 0]], K_dd, K_xd, ["cat", "dog"], norm2=1)
    >>> scores, classes[scores.argmax(axis=1)].tolist()
    (array([[0.25, 0.  ]]), ['cat'])
    """
    codes, K_dd, K_xd, _, classes, index = _check_coded(
        codes, K_dd, K_xd, norm2, labels, rule
    )
    return scores_by_class(codes, K_dd, K_xd, index, len(classes), rule), classes


def class_residuals(
    codes: Codes, K_dd: ArrayLike, K_xd: ArrayLike, labels: Labels, *, norm2: ArrayLike
) -> tuple[np.ndarray, np.ndarray]:
    """Residuals e_c = ||X^ - sum_{j in c} y_j D_j^||_F^2 >= 0 (n, C), and the classes.

    codes (n, N) are dense or sparse, labels (N,) are those of the atoms; the Gram
    matrices and norm2 are as in sparse_codes. This is the paper's class-specific
    residual error (Eq. 21), for reports. Labels come from class_scores: where inner
    products are far below norm2, rounding makes all residuals equal, and a class
    without an atom in the code has norm2. Classes are sorted where they can be, else in
    order of first appearance.

    >>> import numpy as np
    >>> from grassmann_sc import class_residuals
    >>> K_dd, K_xd = np.eye(2), [[0.5, 0.1]]
    >>> class_residuals([[0.5, 0]], K_dd, K_xd, ["cat", "dog"], norm2=1)
    (array([[0.75, 1.  ]]), array(['cat', 'dog'], dtype='<U3'))
    """
    codes, K_dd, K_xd, norm2, classes, index = _check_coded(
        codes, K_dd, K_xd, norm2, labels, "residual"
    )
    residuals = residuals_by_class(codes, K_dd, K_xd, norm2, index)
    _check_no_overflow(residuals, "residuals")
    return residuals, classes


Shares = namedtuple("Shares", "indices values")


def score_shares(
    codes: Codes,
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    labels: Labels,
    *,
    norm2: ArrayLike,
    rule: str = "residual",
) -> Shares:
    """Shares of the atoms in the scores of class_scores, largest first: why a class won.

    The arguments are those of class_scores. The shares of the atoms of a class c sum to
    its score, by rule:

    "residual": y_j (2 k_j - (K_cc y_c)_j) of atom j of class c.
    "sum": the coefficient y_j. "max": the largest coefficient of the class alone.

    A zero code is explained by the atom of each class that gives its score. A class
    with no atom in the code has no share; class_scores says what it scores.

    Returns (indices, values), both (n, m): the atoms of each query by descending share,
    and the shares. m is the largest number of atoms that explain a query; the rest of a
    row has index -1 and share 0.

    >>> import numpy as np
    >>> from grassmann_sc import score_shares
    >>> K_dd, K_xd = np.eye(3), [[0.5, 0.1, 0.3]]
    >>> shares = score_shares([[0.4, 0, 0.2]], K_dd, K_xd, ["cat", "dog", "cat"], norm2=1)
    >>> shares.indices.tolist(), shares.values.round(2).tolist()
    ([[0, 2]], [[0.24, 0.08]])
    """
    codes, K_dd, K_xd, _, _, index = _check_coded(
        codes, K_dd, K_xd, norm2, labels, rule
    )
    n_classes = index.max() + 1
    most = max(n_classes, (codes != 0).sum(axis=1).max(initial=0))
    indices = np.full((len(K_xd), most), -1)
    shares = np.zeros((len(K_xd), most), K_xd.dtype)
    for tile in query_tiles(len(K_xd), len(K_dd)):
        _, parts, used = _scored(codes[tile], K_dd, K_xd[tile], index, n_classes, rule)
        order = np.where(used, -parts, np.inf).argsort(axis=1, kind="stable")[:, :most]
        there = np.take_along_axis(used, order, axis=1)
        indices[tile] = np.where(there, order, -1)
        shares[tile] = np.where(there, np.take_along_axis(parts, order, axis=1), 0)
    _check_no_overflow(shares, "shares")
    widest = (indices >= 0).sum(axis=1).max(initial=0)
    return Shares(indices[:, :widest], shares[:, :widest])


Classified = namedtuple("Classified", "labels residuals classes codes")


def classify(
    X: ArrayLike,
    D: ArrayLike,
    labels: Labels,
    *,
    lam: float | None = None,
    n_neighbors: int | None = None,
    lam_scale: str | None = None,
    positive: bool = False,
    reg: float | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
) -> np.ndarray | Classified:
    """Labels (n,) of subspaces X, from their codes over labelled atoms D.

    X has shape (n, d, p), D (N, d, q). Give either lam, for the codes of gsc, or
    n_neighbors, for those of glc. With lam the class wins that has the least residual
    ||X^ - sum_{j in c} y_j D_j^||_F^2. With n_neighbors the class wins whose
    coefficients y_j have the largest sum, where the paper takes residuals; class_scores
    says why, and how the two compare on real data. A query with lam >= its lam_max has
    a zero code: it gets the label of its nearest atom, with a warning.

    labels: of the atoms (N,), any hashables.
    lam, lam_scale, positive, tol, max_iter: as in gsc, but lam is one number.
    n_neighbors, reg: as in glc.
    return_info: a named tuple (labels, residuals (n, C), classes (C,), codes (n, N));
    otherwise only labels are returned, and no codes are kept. The residuals are those
    of class_residuals for both codings.

    See also estimators.CodingClassifier: the same for Pipeline and GridSearchCV,
    probabilities.

    >>> from grassmann_sc import classify, random_subspaces
    >>> D = random_subspaces(3, 10, 2, rng=0)
    >>> classify(D[::-1], D, ["ape", "bee", "cat"], lam=0.1).tolist()
    ['cat', 'bee', 'ape']
    """
    X, D = check_queries_and_atoms(X, D, weighted=True)
    labelled = check_labels(labels, len(D))
    coding = make_coding(
        (len(X), len(D)),
        X.dtype,
        lam,
        n_neighbors,
        lam_scale=lam_scale,
        positive=positive,
        reg=reg,
        tol=tol,
        max_iter=max_iter,
    )
    return_info = check_flag(return_info, "return_info")
    return classify_by_codes(
        bases_gram(D), LazyGram(X, D), squared_norm(X), labelled, coding, return_info
    )


# You can stop here: what follows is how the functions above compute, check and import.


# ---------------------------------------------------------------------------- compiling

JIT = {
    "nogil": True,
    "fastmath": {"reassoc", "contract"},
    "error_model": "numpy",
    # the C wrapper, which nothing uses, would be compiled too
    "no_cfunc_wrapper": True,
}


def digest(module):
    """CRC-32 of the source file of a module, which may lie in a zip."""
    return f"{zlib.crc32(module.__loader__.get_data(module.__file__)):08x}"


DIGEST = digest(sys.modules[__name__])


def jit(function=None, *, long=False, allocates=True, parts=None):
    """Compile without the GIL, cached on disk; where nothing can be written, in memory.

    Jitted functions of other modules may call the inlined functions of this file and of
    the module parts. Their cached names hold digests of both files, so that a change of
    either makes the cache invalid. long: compiling takes more than two seconds, which
    the logger grassmann_sc announces. allocates: see inlined_jit.
    """
    if function is None:
        return lambda f: jit(f, long=long, allocates=allocates, parts=parts)
    options = {"_nrt": allocates, **JIT}
    if function.__module__ != __name__:
        function.__qualname__ += f"-{DIGEST}{digest(parts) if parts else ''}"
    elif __name__ != "grassmann_sc":  # the cache names the module: one for each name
        function.__qualname__ += f"-{__name__}"
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder for the cache
        dispatcher = numba.njit(**options)(function)
    dispatcher.long = long
    return dispatcher


def inlined_jit(function=None, *, once=False, allocates=False):
    """Compile as a part of the jitted functions that call it, whose cache holds it too.

    It is not cached separately: Numba's cache fails for named tuples when the module is
    imported under two names. once: it is long and called in one place, so it is inlined
    there before anything is compiled, and not optimised twice. allocates: it makes
    arrays, or calls a function that does; otherwise reference counting is off, which
    makes short lassos faster.
    """
    if function is None:
        return lambda f: inlined_jit(f, once=once, allocates=allocates)
    return numba.njit(
        forceinline=True,
        inline="always" if once else "never",
        _nrt=allocates,
        no_cpython_wrapper=True,
        **JIT,
    )(function)


class _CompileNotice(numba.core.event.Listener):
    """Announces a long compilation whose result is not in the cache on disk."""

    def on_start(self, event):
        dispatcher = event.data["dispatcher"]
        if getattr(dispatcher, "long", False):
            logging.getLogger(__name__).warning(
                "grassmann_sc: compiling %s, which takes some "
                "seconds, before its first use",
                dispatcher.py_func.__name__.strip("_").replace("_", " "),
            )

    def on_end(self, event):
        pass


numba.core.event.register("numba:compile", _CompileNotice())


# ------------------------------------------------------------- tiles of the Gram matrix

TILE = 2**21  # numbers of K_xd that are held at a time
SMALLEST = np.nextafter(0, 1)  # a positive lambda is not rounded to 0
# share of lam_max that lambda has to have lest rounding of the products hides it
LEAST = {np.dtype(np.float64): 1e-11, np.dtype(np.float32): 4e-6}


def query_tiles(n, N):
    """Slices of max(64, TILE // N) of n queries."""
    return slices(n, max(64, TILE // N))


class LazyGram:
    """<X_i^, D_j^> (n, N) of checked X and D; rows are computed on request."""

    def __init__(self, X, D):
        self.X = X
        self.D = D

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        return bases_gram(self.X[rows], self.D)


def bases_gram(
    X: np.ndarray,
    D: np.ndarray | None = None,
    add: Callable | None = None,
    leading: tuple[int, ...] = (),
) -> np.ndarray:
    """projection_kernel of checked arrays of one type.

    BLAS multiplies tiles, whose entries are then squared and summed. BLAS uses its own
    threads. Without D, tiles start at the diagonal and are mirrored. Columns of zeros
    are not multiplied. add: what to do with a tile instead of sum_squares, whose
    arguments it takes; it fills (*leading, n, N).
    """
    symmetric = D is None
    D = X if D is None else D
    n, d, p = X.shape
    N, _, q = D.shape
    K = np.empty((*leading, n, N), X.dtype)
    # a product of this size runs at the full speed of BLAS, its rows are squared in
    # cache, and the buffers of a call stay below 64 MB
    # half as high without D: less work below the diagonal
    height = -(-_even_share(n, (512 if d <= 256 else 1024) // p) // (1 + symmetric))
    width = _even_share(N, (3072 if 256 < d <= 1024 else 2048) // q)
    pieces = slices(d, _even_share(d, 1024))
    used_X, start_X = columns_in_use(X)
    used_D, start_D = (used_X, start_X) if symmetric else columns_in_use(D)
    # for all tiles: the pages of a new array would be made one by one, tile after tile
    packed_X = np.empty(height * p * pieces[0].stop, X.dtype)
    packed_D = np.empty(width * q * pieces[0].stop, X.dtype)
    products = np.empty((min(2, len(pieces)), height * p * width * q), X.dtype)
    for columns in slices(N, width):
        for rows in slices(columns.stop if symmetric else n, height):
            left = max(rows.start, columns.start) if symmetric else columns.start
            for piece in pieces:
                # one piece is packed once for all rows
                if rows.start == 0 or len(pieces) > 1:
                    packed = _pack(D, columns, piece, used_D, packed_D)
                # less what lies above the rows
                right = packed[start_D[left] - start_D[columns.start] :]
                upper = _pack(X, rows, piece, used_X, packed_X)
                shape = len(products), len(upper), len(right)
                parts = products[:, : shape[1] * shape[2]].reshape(shape)
                np.dot(upper, right.T, out=parts[-1 if piece.start else 0])
                product = np.add(*parts, out=parts[0]) if piece.start else parts[0]
            (add or sum_squares)(
                product,
                start_X[rows.start : rows.stop + 1],
                start_D[left : columns.stop + 1],
                rows.start,
                left,
                K,
            )
    for gram in K.reshape(math.prod(leading), n, N) if symmetric else []:
        _mirror(gram)
    return K


def leading_grams(X, D=None):
    """bases_gram of the first k columns of bases for each k, in K[k - 1]."""
    m = min(X.shape[2], (X if D is None else D).shape[2])
    return bases_gram(X, D, sum_leading_squares, (m,))


def columns_in_use(X):
    """The mask (n, p) of nonzero columns of X (n, d, p), None if all are, and how many
    lie before each subspace (n + 1,).
    """
    n, d, p = X.shape
    # few are multiplied as they are; the middle row nearly always says it
    if X.size < 2**15 or X[:, d // 2].all() or (used := X.any(axis=1)).all():
        return None, np.arange(0, n * p + 1, p)
    return used, np.append(0, np.cumsum(used.sum(axis=1)))


def _pack(X, some, piece, used, buffer):
    """The columns in use of X[some, piece] (t, d, p) as rows (t p, d), in the buffer."""
    few = X[some, piece].swapaxes(1, 2)[... if used is None else used[some]]
    rows = buffer[: few.size].reshape(few.shape)
    np.copyto(rows, few)
    return rows.reshape(-1, few.shape[-1])


def _even_share(total, most):
    """The size of the fewest equal parts of total that are at most `most`; at least 1."""
    parts = -(-total // max(1, most))
    return -(-total // parts) if parts else 1


@jit
def _mirror(K):
    """K[j, i] = K[i, j] for j > i, by stripes whose rows j stay in cache."""
    for top in range(0, len(K), 32):
        for i in range(min(top + 32, len(K))):
            for j in range(max(top, i + 1), min(top + 32, len(K))):
                K[j, i] = K[i, j]


@jit
def sum_squares(product, rows, columns, top, left, K):
    """K[top + i, left + j] = the sum of squares of pair i, j of a tile.

    It has rows[i]:rows[i + 1] and columns[j]:columns[j + 1] of the product, counted
    from the first of each.
    """
    sums = np.empty(product.shape[1], product.dtype)
    for i in range(len(rows) - 1):
        sums[:] = 0
        for a in range(rows[i] - rows[0], rows[i + 1] - rows[0]):
            row = product[a]
            for c in range(len(sums)):
                sums[c] += row[c] * row[c]
        out = K[top + i, left:]
        for j in range(len(columns) - 1):
            out[j] = sums[columns[j] - columns[0]]
            for c in range(columns[j] + 1 - columns[0], columns[j + 1] - columns[0]):
                out[j] += sums[c]


@jit
def sum_leading_squares(product, rows, columns, top, left, K):
    """In K (m, n, N): K[k - 1] has the sums over the leading k x k of each pair.

    All pairs have p rows and q columns.
    """
    p = rows[1] - rows[0]
    q = columns[1] - columns[0]
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            total = 0.0
            for k in range(len(K)):
                total += product[i * p + k, j * q + k] ** 2
                for a in range(k):
                    total += (
                        product[i * p + k, j * q + a] ** 2
                        + product[i * p + a, j * q + k] ** 2
                    )
                K[k, top + i, left + j] = total


# -------------------------------------------------------------------------- many lassos


class SparseCoding(
    namedtuple(
        "SparseCoding",
        "lam lam_scale positive init tol max_iter return_info sparse_output",
    )
):
    """Checked options of sparse_codes: called with (K_dd, K_xd, norm2), the codes.

    K_xd: an array or LazyGram; norm2: a number or (n,).
    """

    rule = "residual"  # of class_scores, for its codes
    quiet = False  # True leaves out the warning of codes far from the best

    def __call__(self, K_dd, K_xd, norm2):
        n = len(K_xd)
        N = len(K_dd)
        K = c_array(K_dd, np.float64)
        norm2 = np.full(n, norm2, np.float64)
        inverse = None  # for least squares, where lam is 0
        least = 0.0  # curvature of K, as far as it is known
        if not (self.positive or self.lam.all()):
            inverse, least = _pseudo_inverse(K, N * np.finfo(K_dd.dtype).eps)
        codes = (
            None if self.sparse_output else np.empty((self.lam.size, n, N), K_dd.dtype)
        )
        gap = np.empty((n, self.lam.size))
        rise = np.zeros(gap.shape, K_dd.dtype)  # of costs, as codes are rounded
        n_iter = np.empty(gap.shape, np.int64)
        curvature = np.zeros(n)  # the least that each block met

        def solve(rows, k):
            start = None if self.init is None else dense_codes(self.init[rows])
            y, curvature[rows] = self._path(
                K, k, norm2[rows], start, inverse, gap[rows], n_iter[rows], rise[rows]
            )
            _check_finite_codes(y, rows.start)
            if self.sparse_output:
                return [_nonzeros(each.astype(K_dd.dtype), rows.start) for each in y]
            codes[:, rows] = y

        # a lasso of 50, 300, 1000 atoms takes some 5, 100, 1000 microseconds, of few atoms
        # in a code a tenth; an eighth of the queries or more, since each block has a space
        # to work in
        block = min(max(1, 2**15 // N), max(block_of(N * (N + 50) // 16), n // 8, 4))
        blocks = code_blocks(solve, K_xd, K, block)
        if not self.quiet:
            _warn_unless_optimal(
                gap.T, self.tol * norm2, self.max_iter, curvature.min(initial=least)
            )
        if self.sparse_output:
            blocks.append([_nonzeros(np.empty((0, N), K_dd.dtype), 0)] * self.lam.size)
            codes = [_as_csr(parts, n, N) for parts in zip(*blocks)]
        result = SparseCodes(codes, np.maximum(gap + rise, 0).T, n_iter.T)
        if self.lam.ndim == 0:
            result = SparseCodes(*(each[0] for each in result))
        return result if self.return_info else result.codes

    def _path(self, K, k, norm2, start, inverse, gap, n_iter, rise):
        """Codes (L, t, N) of products k (t, N), and the least curvature of _Work.

        start: codes (t, N) to start from, or None. inverse: of K, if a lam is 0. Writes
        gap and n_iter (t, L), and what rounding to the type of rise adds to costs.
        """
        path = self.lam.ravel()
        order = np.argsort(-path, kind="stable")  # each starts the next
        # k = 0 has the code 0 at every lambda
        scale = lam_max(k) if self.lam_scale else np.ones(len(k))
        half = np.where(scale > 0, scale, 1)[:, None] * (path / 2)
        half = np.maximum(half, SMALLEST * (path > 0))  # a lambda > 0 stays > 0
        y = np.zeros((len(path), *k.shape))
        if start is not None:
            y[order[0]] = _checked_start(
                start, K, k, 2 * half[:, order[0]], self.positive
            )
        curvature = _lasso_paths(
            _new_work(K),
            k,
            norm2,
            half,
            order,
            self.positive,
            self.tol,
            self.max_iter,
            LEAST[rise.dtype],
            y,
            gap,
            n_iter,
        )
        if inverse is not None:
            y[path == 0], gap.T[path == 0] = _least_squares(K, k, inverse)
        if self.return_info and rise.dtype != y.dtype:
            rounded = y.astype(rise.dtype)
            # sparse: in a block's thread BLAS would wait for its own
            both = scipy.sparse.csr_array((rounded + y).reshape(-1, len(K))) @ K
            cost = (rounded - y) * (both.reshape(y.shape) - 2 * k)
            rise[:] = (
                (cost + 2 * half.T[..., None] * (abs(rounded) - abs(y))).sum(axis=2).T
            )
        return y, curvature


def _nonzeros(y, first):
    """Places of nonzeros in codes (n, N), whose rows y begin with the first; values."""
    at = np.flatnonzero(y != 0)
    return at + first * y.shape[1], y.ravel()[at]


def _as_csr(parts, n, N):
    """The CSR codes (n, N) of _nonzeros of all rows."""
    at, values = map(np.concatenate, zip(*parts))
    return scipy.sparse.csr_array(
        (values, at % N, np.searchsorted(at, np.arange(0, n * N + 1, N))), (n, N)
    )


def code_blocks(code, K_xd, K, block):
    """[code(rows, k), ...] for blocks of queries in threads, k being their K_xd[rows].

    K_xd: an array or LazyGram, computed tile by tile; k has the type of K (N, N).
    """
    results = []
    for tile in query_tiles(len(K_xd), len(K)):
        products = K_xd[tile]

        def code_block(block):
            rows = slice(tile.start + block.start, tile.start + block.stop)
            return code(rows, c_array(products[block], K.dtype))

        results += run_blocks(code_block, len(products), block)
    return results


def sparse_coding(
    shape,
    lam,
    lam_scale=None,
    positive=False,
    init=None,
    tol=1e-8,
    max_iter=1000,
    return_info=False,
    sparse_output=False,
):
    """The SparseCoding of these options of sparse_codes, checked, for codes (n, N)."""
    path = finite_array(lam, "lam")
    _refuse_bool(lam, "lam", "a number >= 0 or a 1-D array of them")
    if path.ndim > 1 or path.size == 0 or (path < 0).any():
        raise ValueError(
            f"lam must be a number >= 0 or a 1-D array of them, got {lam!r}"
        )
    return SparseCoding(
        path.astype(np.float64),
        check_choice(lam_scale, "lam_scale", None, "max"),
        check_flag(positive, "positive"),
        None if init is None else check_codes(init, *shape, "init"),
        check_number(tol, "tol", above=0),
        check_integer(max_iter, "max_iter", 1),
        check_flag(return_info, "return_info"),
        check_flag(sparse_output, "sparse_output"),
    )


def _checked_start(y, K, k, lam, positive):
    """Codes y (t, N) to start from, 0 where that costs less than y, or y overflows."""
    y = (np.maximum(y, 0) if positive else y).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        cost = (y * (y @ K - 2 * k)).sum(axis=1) + lam * np.abs(y).sum(axis=1)
    return np.where((cost <= 0)[:, None], y, 0)


def _warn_unless_optimal(gap, tol, max_iter, curvature):
    """Warn of gaps (L, n) above tol (n,), and of the curvature of an indefinite K."""
    if curvature < -1e-3:
        warn(
            "K_dd must be positive semidefinite, but there is a v with v^T K_dd v = "
            f"{curvature:.2g} v^T v, in units of a diagonal entry: codes may be far "
            "from the best"
        )
    late = ~(gap <= tol)
    if late.any():
        worst = np.unravel_index((gap - tol).argmax(), gap.shape)
        warn(
            f"{late.sum()} of {late.size} codes did not converge (max_iter = "
            f"{max_iter}): largest gap {gap[worst]:.2g}, tolerance "
            f"{tol[worst[-1]]:.2g}"
        )


def _pseudo_inverse(K, rounding):
    """The pseudo-inverse of symmetric K (N, N), and its least curvature, as of _Work.

    Eigenvalues count as 0 up to this share of the largest.
    """
    values, vectors = np.linalg.eigh(K)
    kept = abs(values) > rounding * abs(values).max()
    inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
    return inverse, values[0] / max(K.diagonal().max(), SMALLEST)


def _least_squares(K, k, inverse):
    """Codes (t, N) of least norm for products k (t, N), and duality gaps (t,).

    A gap bounds how far the cost is from the least one.
    """
    y = k @ inverse
    for _ in range(2):  # refined: small eigenvalues cost digits
        y += (k - y @ K) @ inverse
    g = k - y @ K
    return y, np.maximum(((g @ inverse) * g).sum(axis=1), 0)


# -------------------------------------------------------------- the solver of one lasso

# Minimise norm2 - 2 y^T k + y^T K y + lambda ||y||_1, norm2 = ||X^||^2, over y. With g
# = k - K y, which holds <D_j^, r> for the residual r = X^ - sum_j y_j D_j^, and half =
# lambda / 2:
#   y is optimal where g_j = half sign(y_j) if y_j != 0, |g_j| <= half elsewhere;
#   any multiple s r whose products s g are within half bounds the cost from below
#   (its dual).
# Rounds of: greedy descent proposes which y_j are nonzero, the support; Cholesky steps
# solve for them exactly, dropping those that would change sign; the gap between cost
# and bound is the proof.

# One query: its products k (N,) with the atoms, half = lambda / 2, norm2 = ||X^||^2.
_Query = namedtuple("_Query", "k half norm2")

# What a thread works with; all but K and diag change as codes are solved, vectors have
# length N.
# K, diag, longest: the Gram matrix of the atoms, its diagonal and the largest of that.
# y, g: the code, and k - K y.
# support: indices of the nonzero y_j in the order of the factor.
# inside: is j among them? False but where new ones are collected.
# L (N, >= N): Cholesky factor of K[support, support], row by row.
# size: magnitudes whose largest is looked for.
# scaled: K_jj y_j, during descent.
# sign: sign(y_j), along the support.
# slope: g_j - half * sign(y_j), along the support.
# step: how far each y_j of the support moves.
# lost: rows to delete from the factor.
# curvature (1,): the least step^T K step / ||step||^2 met, over a diagonal entry of K.
_Work = namedtuple(
    "_Work",
    "K diag longest y g support inside L size scaled sign slope step lost curvature",
)


def _new_work(K):
    """A plain tuple of what _Work names, with which _lasso_paths may begin.

    Vectors are rows of one array; fields of other shapes or types replace theirs.
    """
    N = len(K)
    rows = np.empty((len(_Work._fields) + N, N))
    w = _Work(*rows[:-N])
    w.diag[:] = K.diagonal()
    return tuple(
        w._replace(
            K=K,
            longest=max(w.diag.max(), 1e-300),
            L=rows[-N:],
            support=np.empty(N, np.int64),
            lost=np.empty(N, np.int64),
            inside=np.zeros(N, np.bool_),
            curvature=np.zeros(1),
        )
    )


@jit(long=True, allocates=False)
def _lasso_paths(
    work, products, norm2, half, order, positive, tol, max_iter, least, Y, gap, n_iter
):
    """Codes Y (L, n, N) for products (n, N) and lambda / 2 = half (n, L).

    order: of the lambdas, descending. The Y of the first holds the codes to start from.
    work: of _new_work. Results are written into Y, gap and n_iter (n, L): returning
    arrays would run Python, where a Ctrl-C becomes a SystemError. Returns the least
    curvature of _Work.
    """
    w = _Work(*work)
    for i in range(len(products)):
        copy(Y[order[0], i], w.y, len(w.y))
        m = np.int64(-1)  # nothing is known of this query
        n_good = np.int64(0)  # for a plain 0 Numba would compile its callees twice
        for o in order:
            n_iter[i, o] = 0
            if half[i, o] > 0 or positive:  # else _least_squares follows
                query = _Query(products[i], half[i, o], norm2[i])
                gap[i, o], n_iter[i, o], m, n_good = _lasso(
                    w, query, positive, tol, max_iter, least, m, n_good
                )
            copy(w.y, Y[o, i], len(w.y))
    return w.curvature[0]


@inlined_jit(once=True)
def _lasso(w, query, positive, tol, max_iter, least, m, n_good):
    """One lasso: rounds until the gap is small enough.

    It also ends after max_iter rounds, or 11 that do not lower the cost; the latter, if
    lambda is below the share least of lam_max, begins anew with that. m: size of the
    support; n_good: good rows of its factor. m >= 0: w.y, w.support[:m], w.L[:n_good]
    and w.g come from another lambda; m = -1: w.y alone is given. Returns the gap, the
    number of rounds, and m and n_good for the next lambda.
    """
    peak = 0.0  # of k: half of lam_max
    for j in range(len(query.k)):
        peak = max(peak, query.k[j] if positive else abs(query.k[j]))
    # about the largest ||y||_1: a violation times this is in units of the cost
    reach = math.sqrt(query.norm2 / w.longest)
    stalled = 0
    best = np.inf
    n_rounds = 0
    if m < 0:
        m, n_good = _collect_support(w, np.int64(0), np.int64(0))
        _residual_products(w, query.k, m)
    while True:
        cost, gap, excess = _certificate(w, query, positive, m)
        stalled = 0 if cost < best else stalled + 1
        best = min(best, cost)
        gap = max(gap, excess * reach)
        # relative to max |k| too: small inner products are as accurate as large ones
        if excess > tol * peak:
            gap = max(gap, excess / peak * query.norm2)
        if gap <= tol * query.norm2 or n_rounds == max_iter:
            return gap, n_rounds, m, n_good
        if stalled > 10:  # rounding prevents progress
            if not 0 < query.half < least * peak or gap <= 1e-8 * query.norm2:
                return gap, n_rounds, m, n_good
            # and hides lambda: the least that it does not hide, from zero
            query = _Query(query.k, least * peak, query.norm2)
            w.y[:] = 0
            copy(query.k, w.g, len(w.g))
            m = np.int64(0)
            n_good = np.int64(0)
            stalled = 0
            best = np.inf
            continue
        if n_rounds > 0 or m == 0:  # a support that was given is first solved as it is
            _descend(w, query.half, positive, 10 + m // 2)
            m, n_good = _collect_support(w, m, n_good)
        n_rounds += 1
        m, n_good = _solve_on_support(w, query.half, m, n_good)
        _residual_products(w, query.k, m)


@inlined_jit
def _certificate(w, query, positive, m):
    """Cost less norm2, duality gap, and largest violation of the optimality conditions.

    They follow from g_j = <D_j^, r>. The dual point is s r with s = min(1, half /
    max|g|); with y >= 0 also r - t X^, feasible for a large enough shift t. The gap is
    written so that norm2, which may be far larger than what atoms explain of it, has
    the factor (1 - s)^2 or t^2. Overwrites w.size.
    """
    k, half, norm2 = query
    yk = 0.0
    yg = 0.0
    l1 = 0.0
    excess = 0.0
    for i in range(m):
        j = w.support[i]
        yk += w.y[j] * k[j]
        yg += w.y[j] * w.g[j]
        l1 += abs(w.y[j])
        excess = max(excess, abs(w.g[j] - math.copysign(half, w.y[j])))
    for j in range(len(w.y)):
        w.size[j] = abs(max(w.g[j], 0.0)) if positive else abs(w.g[j])  # never -0.0
    peak = np.int64(_largest_bits(w.size.view(np.int64))).view(np.float64)
    excess = max(excess, peak - half)
    short = (peak - half) / peak if peak > half else 0.0  # 1 - s
    gap = (
        (norm2 - yk) * short * short
        + 2 * half * l1
        - yg * (1 + (1 - short) * (1 - short))
    )
    if positive and peak > half:
        shift = 0.0
        for j in range(len(w.y)):
            if w.g[j] > half:
                shift = max(shift, (w.g[j] - half) / k[j]) if k[j] > 0 else np.inf
        for j in range(len(w.y)):  # negative products grow by the shift
            if k[j] < 0 and w.g[j] - shift * k[j] > half:
                shift = np.inf
        if shift < np.inf:
            gap = min(gap, 2 * half * l1 - 2 * yg + shift * (2 * yk + shift * norm2))
    return 2 * half * l1 - yk - yg, gap, excess


@inlined_jit
def _largest_bits(bits):
    """The largest of the bits of numbers >= 0.

    As integers they have the same order, if there is no -0.0.
    """
    peak = 0
    for j in range(len(bits)):
        peak = bits[j] if bits[j] > peak else peak
    return peak


@inlined_jit
def _argmax(size):
    """Index of the largest of numbers >= 0, no -0.0."""
    bits = size.view(np.int64)
    peak = _largest_bits(bits)
    at = 0
    # long stretches without it are passed over, in vector registers
    while at + 512 <= len(bits) and _largest_bits(bits[at : at + 128]) < peak:
        at += 128
    while bits[at] != peak:
        at += 1
    return at


@inlined_jit
def _descend(w, half, positive, n_steps):
    """Coordinate descent: the largest step of all, at most n_steps times.

    It ends when the largest step is below 3 % of the first. Updates w.y and w.g.
    Coordinate j goes to S(u) / K_jj with u = g_j + K_jj y_j and S(u) = u - clip(u,
    -half, half): it moves by (g_j - clip(u, -half, half)) / K_jj. Overwrites w.size and
    w.scaled.
    """
    low = -np.inf if positive else -half
    for j in range(len(w.y)):
        w.scaled[j] = w.diag[j] * w.y[j]
    at = 0
    change = 0.0
    enough = 0.0
    for n in range(n_steps + 1):
        row = w.K[at]
        for j in range(len(w.y)):
            w.g[j] -= change * row[j]
            u = w.g[j] + w.scaled[j]
            u = u if u < half else half
            u = u if u > low else low
            w.size[j] = abs(w.g[j] - u)
        at = _argmax(w.size)
        enough = enough if n else 0.03 * w.size[at]
        if n == n_steps or w.size[at] <= enough or w.diag[at] <= 0:
            return
        u = w.g[at] + w.scaled[at]
        before = w.y[at]
        w.y[at] = (u - min(max(u, low), half)) / w.diag[at]
        w.scaled[at] = w.diag[at] * w.y[at]
        change = w.y[at] - before


@inlined_jit
def _collect_support(w, m, n_good):
    """Make w.support that of w.y.

    What stays of its first m keeps its order; what is new follows. Returns its size,
    and how many of the first n_good rows of the factor are still good.
    """
    count = 0
    for i in range(m):
        j = w.support[i]
        if w.y[j] != 0:
            w.support[count] = j
            w.inside[j] = True
            count += 1
        else:
            w.lost[i - count] = i
    n_good = delete_rows(w, m - count, n_good)
    for j in range(len(w.y)):
        if w.y[j] != 0 and not w.inside[j]:
            w.support[count] = j
            count += 1
        w.inside[j] = False
    return count, n_good


@inlined_jit(once=True)
def _solve_on_support(w, half, m, n_good):
    """Minimise over w.y on w.support[:m] with its signs; leaves w.g stale.

    Exact Newton steps, each as far as the first coefficient that reaches zero, whose
    atom is dropped. w.L holds n_good good rows. An atom that depends on those before it
    is moved, at the same residual, in the direction that lowers the l1 norm until a
    coefficient is zero. Returns the size of the support and the number of good rows of
    its factor.
    """
    for i in range(m):
        j = w.support[i]
        w.sign[i] = math.copysign(1.0, w.y[j])
        w.slope[i] = w.g[j] - half * w.sign[i]  # minus half the gradient of the cost
    while m > 0:
        r = n_good
        while r < m and factor_row(w, r, w.K[w.support[r]]):
            r += 1
        if r == m:
            copy(w.slope, w.step, m)
            cholesky_solve(w.L, w.step, m)
            t = min(first_zero(w, m), 1.0)
            for i in range(m):
                w.slope[i] *= 1 - t
        else:
            null_direction(w, r, w.K[w.support[r]])
            diagonal = w.K[w.support[r], w.support[r]]
            square = diagonal - dot(w.L[r], w.L[r], r)  # step^T K step
            w.curvature[0] = min(
                w.curvature[0], square / (diagonal * dot(w.step, w.step, r + 1))
            )
            t = first_zero(w, r + 1)
            for i in range(r + 1, m):
                w.step[i] = 0
        before = m
        m, n_good = advance(w, t, m, r)
        if m == before:  # none was dropped: solved, or an overflow
            return m, n_good
    return 0, 0


@inlined_jit
def _residual_products(w, k, m):
    """w.g = k - K y for y supported on support[:m]."""
    copy(k, w.g, len(k))
    for i in range(m):
        axpy(-w.y[w.support[i]], w.K[w.support[i]], w.g, len(w.g))


# Steps of active-set methods, which other modules use too. They minimise a quadratic
# form of K + lift 1 1^T; w has the fields of _Work that they name.


@inlined_jit
def factor_row(w, r, row, lift=0.0, tol=1e-13):
    """Row r of the Cholesky factor w.L on the support, row being K[support[r]].

    Returns False if the atom depends on those before it: the pivot is at most tol times
    the diagonal entry.
    """
    diagonal = row[w.support[r]] + lift
    new = w.L[r]
    for c in range(r):
        new[c] = (row[w.support[c]] + lift - dot(new, w.L[c], c)) / w.L[c, c]
    pivot = diagonal - dot(new, new, r)
    if pivot <= tol * diagonal:
        return False
    new[r] = math.sqrt(pivot)
    return True


@inlined_jit
def null_direction(w, r, row, lift=0.0):
    """Set w.step[:r + 1] to a direction that changes the l1 norm alone.

    Row r depends on those before it. The cost does not rise along the direction, and a
    coefficient shrinks.
    """
    for i in range(r):
        w.step[i] = -(row[w.support[i]] + lift)
    cholesky_solve(w.L, w.step, r)
    w.step[r] = 1.0
    turn = -1.0 if dot(w.slope, w.step, r + 1) < 0 else 1.0
    for i in range(r + 1):
        w.step[i] *= turn
    if first_zero(w, r + 1) == np.inf:
        for i in range(r + 1):
            w.step[i] = -w.step[i]


@inlined_jit
def first_zero(w, m):
    """The least t at which y + t step has a zero on support[:m]; inf if none."""
    t = np.inf
    for i in range(m):
        if w.sign[i] * w.step[i] < 0:
            t = min(t, -w.y[w.support[i]] / w.step[i])
    return t


@inlined_jit
def advance(w, t, m, n_good):
    """y += t step on support[:m]; atoms that arrive at zero leave.

    So do atoms that rounding would move past zero. Those that stay move up in sign,
    slope and support. Returns the size of the support and the number of good rows of
    the factor, of which n_good were good.
    """
    count = 0
    for i in range(m):
        j = w.support[i]
        move = t * w.step[i]
        now = w.y[j] + move
        if w.sign[i] * w.step[i] < 0 and w.sign[i] * now <= 1e-15 * abs(move):
            w.y[j] = 0
            w.lost[i - count] = i
        else:
            w.y[j] = now
            w.support[count] = j
            w.sign[count] = w.sign[i]
            w.slope[count] = w.slope[i]
            count += 1
    return count, delete_rows(w, m - count, n_good)


@inlined_jit
def delete_rows(w, n_lost, n_good):
    """Take rows w.lost[:n_lost], ascending, out of w.L; returns how many are then good.

    n_good rows were good. The rows below a lost one move up, and rotations of pairs of
    columns make the factor triangular again. Where many rows are lost it is cheaper to
    forget them and all behind them.
    """
    if n_lost * 6 > n_good:
        return min(n_good, w.lost[0])
    for i in range(n_lost - 1, -1, -1):
        first = w.lost[i]
        n_good -= first < n_good
        for r in range(first, n_good):
            copy(w.L[r + 1], w.L[r], r + 2)
        for c in range(first, n_good):
            length = math.hypot(w.L[c, c], w.L[c, c + 1])
            cosine = w.L[c, c] / length
            sine = w.L[c, c + 1] / length
            for r in range(c, n_good):
                x = w.L[r, c]
                y = w.L[r, c + 1]
                w.L[r, c] = cosine * x + sine * y
                w.L[r, c + 1] = cosine * y - sine * x
    return n_good


@inlined_jit
def cholesky_solve(L, b, m):
    """b[:m] <- (L L^T)^-1 b[:m]."""
    for r in range(m):
        b[r] = (b[r] - dot(L[r], b, r)) / L[r, r]
    for r in range(m - 1, -1, -1):
        b[r] /= L[r, r]
        axpy(-b[r], L[r], b, r)


@inlined_jit
def dot(a, b, n):
    """a[:n]^T b[:n]."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@inlined_jit
def copy(a, b, n):
    """b[:n] = a[:n]: a loop compiles in a tenth of the time of a slice."""
    for i in range(n):
        b[i] = a[i]


@inlined_jit
def axpy(c, a, b, n):
    """b[:n] += c a[:n]."""
    for i in range(n):
        b[i] += c * a[i]


# -------------------------------------------------------------------------- local codes


class LocalCoding(namedtuple("LocalCoding", "n_neighbors reg sparse_output")):
    """Checked options of locality_codes, called as SparseCoding is."""

    rule = "sum"  # class_scores says why

    def __call__(self, K_dd, K_xd, norm2):
        n = len(K_xd)
        N = len(K_dd)
        m = self.n_neighbors
        K = c_array(K_dd, K_dd.dtype)
        norm2 = np.full(n, norm2, np.float64)
        tol = tie_tolerance(K.dtype)
        longer = lengths_above_least(K)
        indices = np.zeros((n, m), np.int64)
        values = np.empty((n, m))

        def solve(rows, k):
            nearest = indices[rows]
            _nearest(k, longer, nearest)
            nearest.sort(axis=1)
            ridges = np.empty(len(k))
            _local_codes(
                K, k, norm2[rows], self.reg, tol, nearest, values[rows], ridges
            )
            some = np.flatnonzero(ridges)
            if len(some):
                values[rows.start + some] = _dependent_codes(
                    K, k[some], ridges[some], tol, nearest[some]
                )

        code_blocks(solve, K_xd, K, block_of((N + 10 * m**2 + m**3) // 8))
        values = values.astype(K.dtype, copy=False)
        _check_finite_codes(values)
        codes = scipy.sparse.csr_array(
            (values.ravel(), indices.ravel(), np.arange(0, n * m + 1, m)), shape=(n, N)
        )
        return codes if self.sparse_output else codes.toarray()


def local_coding(N, dtype, n_neighbors, reg=None, sparse_output=False):
    """The LocalCoding of these options of locality_codes, checked, over N atoms."""
    default = 1e-5 if dtype == np.float32 else 1e-10
    reg = default if reg is None else check_number(reg, "reg", least=0)
    return LocalCoding(
        check_integer(n_neighbors, "n_neighbors", 1, N),
        min(reg, 1e30),
        check_flag(sparse_output, "sparse_output"),
    )


def tie_tolerance(dtype):
    """The share of numbers of the type below which their difference is a tie."""
    return 64 * np.finfo(dtype).eps


def lengths_above_least(K_dd):
    """||D_j^||^2 less that of the shortest atom (N,), zero if all are nearly equal.

    The nearest atom has the largest 2 <X^, D_j^> minus this. norm2 is left out: adding
    it would swamp small inner products.
    """
    square = K_dd.diagonal().astype(np.float64)
    above = square - square.min()
    return (
        above
        if above.max() > 1000 * np.finfo(K_dd.dtype).eps * square.max()
        else 0 * above
    )


@jit
def _nearest(products, longer, indices):
    """Write the places of the largest 2 k_j - longer_j of each row, largest first."""
    m = indices.shape[1]
    best = np.empty(m)  # the largest so far
    for i in range(len(products)):
        k = products[i]
        nearest = indices[i]
        best[:] = -np.inf
        for j in range(len(k)):
            near = 2 * k[j] - longer[j]
            if near > best[m - 1]:
                at = m - 1
                while at > 0 and near > best[at - 1]:
                    best[at] = best[at - 1]
                    nearest[at] = nearest[at - 1]
                    at -= 1
                best[at] = near
                nearest[at] = j


@jit
def _local_codes(K, products, norm2, reg, tol, indices, values, ridges):
    """Coefficients (n, m) of neighbours (n, m), and their ridges (n,) > 0, which become
    0 but for linearly dependent neighbours, whose coefficients are not found.
    """
    m = indices.shape[1]
    G = np.empty((m, m))
    for i in range(len(products)):
        k = products[i]
        nearest = indices[i]
        y = values[i]
        trace = 0.0
        magnitude = norm2[i]  # largest term of an entry of G
        equal = 0  # atoms that are the query, to rounding
        for a in range(m):
            for b in range(m):
                G[a, b] = (
                    norm2[i] - k[nearest[a]] - k[nearest[b]] + K[nearest[a], nearest[b]]
                )
            trace += G[a, a]
            magnitude = max(magnitude, K[nearest[a], nearest[a]])
            equal += G[a, a] <= tol * norm2[i]
        # as much as what rounding does to G
        ridges[i] = 0 if equal else max(reg * trace, m * tol / 16 * magnitude)
        if equal:
            for a in range(m):
                y[a] = 1 / equal if G[a, a] <= tol * norm2[i] else 0.0
        elif ridge_factor(G, ridges[i]) > 1e-6 * magnitude:
            ridges[i] = 0
            y[:] = 1
            cholesky_solve(G, y, m)
            y /= y.sum()


@inlined_jit
def ridge_factor(B, ridge):
    """Cholesky factor of B + ridge I, into the lower half of B; least squared pivot."""
    least = np.inf
    for r in range(len(B)):
        for c in range(r):
            B[r, c] = (B[r, c] - dot(B[r], B[c], c)) / B[c, c]
        pivot = max(B[r, r] + ridge - dot(B[r], B[r], r), ridge)
        B[r, r] = math.sqrt(pivot)
        least = min(least, pivot)
    return least


def _dependent_codes(K, k, ridges, tol, indices):
    """Coefficients (n, m) of linearly dependent neighbours (n, m), products k (n, N).

    G = norm2 1 1^T - k 1^T - 1 k^T + K of the neighbours, so that (K + ridge I) y = k +
    mu 1, with the ridges (n,). The components of k and 1 in the null space of K that
    are rounding noise become zero: 1 / ridge would amplify them.
    """
    K = K[indices[:, :, None], indices[:, None, :]].astype(np.float64)  # (n, m, m)
    k = np.take_along_axis(k, indices, axis=1).astype(np.float64)
    values, vectors = np.linalg.eigh(K)
    null = values <= tol * values[:, -1:]
    parts = np.stack([k, np.ones_like(k)], axis=1) @ vectors  # (n, 2, m)
    sizes = np.linalg.norm(parts, axis=2, keepdims=True)
    parts[null[:, None] & (np.abs(parts) <= tol * sizes)] = 0
    parts /= (np.maximum(values, 0) + ridges[:, None])[:, None]
    u, v = np.moveaxis(parts @ vectors.swapaxes(1, 2), 1, 0)
    y = u + (1 - u.sum(axis=1, keepdims=True)) / v.sum(axis=1, keepdims=True) * v
    return y / y.sum(axis=1, keepdims=True)


def _check_finite_codes(codes, first=0):
    """ValueError unless codes (..., n, N), of queries from first on, are finite."""
    if not math.isfinite(max_abs(codes)):
        bad = np.argwhere(~np.isfinite(codes))[0]
        raise ValueError(
            f"codes must be finite, got {codes[tuple(bad)]} for query "
            f"{first + bad[-2]}: K_dd must be positive semidefinite, and lam or reg"
            " large enough for it"
        )


# -------------------------------------------------------------------- scores of classes

RULES = ("residual", "sum", "max")  # of class_scores


def _check_coded(codes, K_dd, K_xd, norm2, labels, rule):
    """The arguments of class_scores, the labels as classes and each atom's class."""
    K_dd, K_xd, norm2 = check_grams(K_dd, K_xd, norm2)
    codes = check_codes(codes, len(K_xd), len(K_dd), "codes")
    # a copy of CSR codes: SciPy puts their entries in order in place
    codes = codes.astype(K_dd.dtype, copy=scipy.sparse.issparse(codes))
    check_choice(rule, "rule", *RULES)
    return codes, K_dd, K_xd, norm2, *check_labels(labels, len(K_dd))


def scores_by_class(codes, K_dd, K_xd, index, n_classes, rule):
    """class_scores (n, n_classes) without its checks; index (N,): each atom's class."""
    # what is compiled would not see it, as where another thread fits meanwhile
    if not codes.shape[1] == len(index) == len(K_dd):
        raise ValueError(
            f"codes must have a column for each of {len(index)} atoms, got "
            f"{codes.shape[1]}"
        )
    scores = _scores_in_code(codes, K_dd, K_xd, index, n_classes, rule)
    absent = scores == -np.inf
    with np.errstate(over="ignore"):
        scores = scores.astype(K_dd.dtype, copy=False)
    best = scores.max(axis=1, keepdims=True)
    _check_no_overflow(best, "scores")
    below = np.minimum(0, np.nextafter(best, -best.dtype.type(np.inf)))
    # a class far behind has the least number, and is not absent
    return np.where(absent, below, np.maximum(scores, np.finfo(scores.dtype).min))


def residuals_by_class(codes, K_dd, K_xd, norm2, index):
    """class_residuals (n, C) without its checks."""
    scores = _scores_in_code(codes, K_dd, K_xd, index, index.max() + 1, "residual")
    empty = (codes != 0).sum(axis=1) == 0
    scores[(scores == -np.inf) | empty[:, None]] = 0
    return np.maximum(norm2[:, None] - scores, 0).astype(K_dd.dtype, copy=False)


def _scores_in_code(codes, K_dd, K_xd, index, n_classes, rule):
    """Scores (n, n_classes), float64; -inf of a class without an atom in the code."""
    blocks = run_blocks(
        lambda rows: _scored(codes[rows], K_dd, K_xd[rows], index, n_classes, rule)[0],
        len(K_xd),
        block_of(8 * len(K_dd), SCRATCH // len(K_dd)),
    )
    return np.concatenate([np.empty((0, n_classes)), *blocks])


def _scored(codes, K_dd, K_xd, index, n_classes, rule):
    """Scores (n, C), the atoms' parts in them (n, N), and which atoms have one (n, N).

    A score is the sum of its class's parts, or for zero codes and the rule "max" the
    largest, which one atom has alone; -inf of a class without an atom in the code.
    """
    y = c_array(dense_codes(codes), K_dd.dtype)
    k = c_array(K_xd, K_dd.dtype)
    atoms = np.argsort(index, kind="stable")
    starts = np.searchsorted(index[atoms], np.arange(n_classes + 1))
    scores = np.empty((len(y), n_classes))
    parts = y.astype(np.float64)
    _sum_parts(
        c_array(K_dd, K_dd.dtype),
        k,
        y,
        atoms,
        starts,
        rule == "residual",
        parts,
        scores,
    )
    used = y != 0
    zero = ~used.any(axis=1)
    alone = np.flatnonzero(zero | (rule == "max"))
    if len(alone):
        parts[zero] = 2.0 * k[zero] - lengths_above_least(K_dd)
    for c in np.unique(index) if len(alone) else []:
        of_class = np.ix_(alone, np.flatnonzero(index == c))
        own = parts[of_class]
        in_code = zero[alone, None] | used[of_class]
        best = own.argmax(axis=1)[:, None]
        scores[alone, c] = np.where(in_code.any(axis=1), own.max(axis=1), -np.inf)
        used[of_class] = in_code & (np.arange(own.shape[1]) == best)
    return scores, parts, used


@jit
def _sum_parts(K, products, codes, atoms, starts, explains, parts, sums):
    """Add up the parts of the atoms in the code, which are their coefficients.

    explains: a part becomes y_j (2 k_j - (K_cc y_c)_j). atoms[starts[c]:starts[c + 1]]
    are those of class c. sums (n, C) are -inf where the code has none of them.
    """
    mine = np.empty(len(atoms), np.int64)
    share = np.empty(len(atoms))
    for i in range(len(codes)):
        y = codes[i]
        for c in range(len(starts) - 1):
            count = 0  # atoms of the class in the code
            for j in atoms[starts[c] : starts[c + 1]]:
                mine[count] = j
                share[count] = y[j]
                count += y[j] != 0
            total = 0.0
            for j in mine[:count]:
                if explains:
                    rest = 2.0 * products[i, j]
                    for b in range(count):
                        rest -= K[j, mine[b]] * share[b]
                    parts[i, j] *= rest
                total += parts[i, j]
            sums[i, c] = total if count else -np.inf


def _check_no_overflow(values, what):
    if not np.isfinite(values).all():
        raise ValueError(
            f"codes must give {what} within {values.dtype}, got an overflow"
        )


def make_coding(
    shape,
    dtype,
    lam,
    n_neighbors,
    *,
    lam_scale=None,
    positive=False,
    reg=None,
    tol=1e-8,
    max_iter=1000,
    sparse_output=False,
):
    """SparseCoding with lam, LocalCoding with n_neighbors, for codes (n, N)."""
    if (lam is None) == (n_neighbors is None):
        raise ValueError(
            f"give either lam or n_neighbors, got lam = {lam!r} and n_neighbors = "
            f"{n_neighbors!r}"
        )
    if lam is None:
        if check_flag(positive, "positive") or lam_scale is not None:
            raise ValueError(
                "positive and lam_scale belong to sparse coding, leave them out with "
                "n_neighbors"
            )
        return local_coding(shape[1], dtype, n_neighbors, reg, sparse_output)
    if reg is not None:
        raise ValueError(
            f"reg belongs to n_neighbors, leave it out with lam, got {reg!r}"
        )
    if finite_array(lam, "lam").ndim:
        raise ValueError(f"lam must be one number >= 0, got {lam!r}")
    return sparse_coding(
        shape,
        lam,
        lam_scale,
        positive,
        None,
        tol,
        max_iter,
        sparse_output=sparse_output,
    )


def classify_by_codes(K_dd, products, norm2, labelled, coding, return_info):
    """classify without its checks, by a SparseCoding or a LocalCoding.

    products: K_xd (n, N), an array or LazyGram; norm2: a number or (n,); labelled: what
    check_labels returns.
    """
    n = len(products)
    norm2 = np.broadcast_to(norm2, n)
    classes, index = labelled
    best = np.empty(n, np.int64)
    residuals = np.empty((n, len(classes)), K_dd.dtype) if return_info else None
    codes = np.empty((n, len(K_dd)), K_dd.dtype) if return_info else None
    unexplained = []  # lam_max of queries whose code is zero
    for rows in query_tiles(n, len(K_dd)):
        K_xd = products[rows]
        y = coding(K_dd, K_xd, norm2[rows])
        best[rows] = scores_by_class(
            y, K_dd, K_xd, index, len(classes), coding.rule
        ).argmax(axis=1)
        unexplained.append(lam_max(K_xd[~y.any(axis=1)]))
        if return_info:
            residuals[rows] = residuals_by_class(y, K_dd, K_xd, norm2[rows], index)
            codes[rows] = y
    warn_zero_codes(np.concatenate(unexplained or [[]]), n)
    return (
        Classified(classes[best], residuals, classes, codes)
        if return_info
        else classes[best]
    )


def warn_zero_codes(peaks, n):
    """Warn of queries among n whose codes are zero, of which peaks holds lam_max."""
    if len(peaks):
        warn(
            f"{len(peaks)} of {n} codes ({100 * len(peaks) / n:.3g} %) are zero: these "
            "queries get the label of the nearest atom. Their lam_max is "
            f"{peaks.min():.3g} to {peaks.max():.3g}; a larger lam gives zero. With "
            "lam_scale='max' and lam < 1 only queries orthogonal to all atoms have zero "
            "codes"
        )


# ------------------------------------------------------------------ distances and means

# squared chordal distance below which it is computed without cancellation
NEAR_SQUARED = 0.1
LANCZOS = 2000  # directions; of more his method finds the leading ones
RESTARTS = 100  # of his method at most; with weights > 0 it ended within 50


def chordal_squares(X, Z, K):
    """Squared chordal distances (n, N) of checked X and Z with Gram matrix K (n, N).

    X has shape (n, d, p), Z (N, d, q).
    """
    square = X.shape[2] + Z.shape[2] - 2 * K
    # for p = q alone: squares are at least |p - q|
    near, its = np.nonzero(square < NEAR_SQUARED)

    def refine(some):
        A = X[near[some]]
        R = Z[its[some]]
        R = R - A @ (A.swapaxes(1, 2) @ R)  # (I - A A^T) R, (t, d, q)
        square[near[some], its[some]] = 2 * np.einsum("tdq,tdq->t", R, R)

    run_blocks(refine, len(near), max(1, 2**16 // math.prod(X.shape[1:])))
    return np.maximum(square, 0)


def weighted_mean(X, weights):
    """The p leading eigenvectors (d, p) of sum_i w_i X_i X_i^T, and whether they tie.

    Leading means largest, not largest in absolute value. They tie if eigenvalues p and
    p + 1 are equal.
    """
    used = np.flatnonzero(weights)
    d, p = X.shape[1:]
    Z = X[used].transpose(1, 0, 2).reshape(d, -1)  # (d, m p)
    w = np.repeat(  # (m p,)
        weights[used] / np.abs(weights).max(initial=1e-300), p
    ).astype(X.dtype)
    size = np.linalg.norm(w) if w.min(initial=0) < 0 else 0.0  # of what may cancel
    if min(d, Z.shape[1]) > LANCZOS and p < d // 8:
        leading = _leading_by_lanczos(Z, w, p, size)
        if leading is not None:
            return leading
    if Z.shape[1] + p >= d:
        return _leading_of_dense((Z * w) @ Z.T, p, size)
    # S = Q (R W R^T) Q^T; the columns of zeros let Q reach p + 1 directions outside the
    # span of Z, of eigenvalue 0
    Q, R = np.linalg.qr(np.hstack([Z, np.zeros((d, p + 1), X.dtype)]))
    R = R[:, : len(w)]
    vectors, tied = _leading_of_dense((R * w) @ R.T, p, size)
    return Q @ vectors, tied


def _leading_of_dense(S, p, size=0.0):
    """The p leading eigenvectors of symmetric S (..., d, d), and whether they tie.

    size: that of the terms of S, if they may cancel so that rounding is left.
    """
    values, vectors = np.linalg.eigh(S)  # ascending
    d = S.shape[-1]
    scale = np.maximum(np.abs(values).max(axis=-1, initial=0), size / d)
    return vectors[..., : -p - 1 : -1], eigenvalues_tie(values, p, scale, d)


def _leading_by_lanczos(Z, w, p, size):
    """The same for S = Z diag(w) Z^T, without forming it.

    None if that takes too long, as where negative weights leave fewer than p
    eigenvalues above 0.
    """
    # rarely needed, slow to import
    from scipy.sparse.linalg import ArpackNoConvergence, aslinearoperator, eigsh

    S = aslinearoperator(Z * w) @ aslinearoperator(Z.T)
    start = np.random.default_rng(0).standard_normal(len(Z)).astype(Z.dtype)
    try:
        values, vectors = eigsh(S, k=p + 1, which="LA", v0=start, maxiter=RESTARTS)
    except ArpackNoConvergence:
        return None
    return np.linalg.qr(vectors[:, :0:-1])[0], eigenvalues_tie(
        values, p, max(np.abs(values).max(), size / len(Z)), len(Z)
    )


def eigenvalues_tie(values, p, scale, d):
    """Whether eigenvalues p and p + 1 from the top are equal to rounding.

    values: ascending, of a d x d matrix of this scale.
    """
    below = values[..., -p - 1] if p < values.shape[-1] else -np.inf
    return values[..., -p] - below <= 4 * d * np.finfo(values.dtype).eps * scale


def warn_ties(count, what):
    """Warn, from the user's line, that count results are not unique."""
    if count:
        warn(f"{what} not unique in {count} case(s): eigenvalues p and p + 1 tie")


# ------------------------------------------------------------------ checks of arguments

# packages between a user's line and a warning: this one, by whatever name, and callers
SKIPPED_BY_WARN = f"{__name__}.", "sklearn.", "joblib."


def warn(message: str) -> None:
    """Warn from the user's line: the first outside this toolkit and its callers."""
    frame = sys._getframe()
    level = 1
    while frame and f"{frame.f_globals['__name__']}.".startswith(SKIPPED_BY_WARN):
        frame = frame.f_back
        level += 1
    warnings.warn(message, stacklevel=level)


# inner products may be scaled from this to 1 / this: codes stay exact
LEAST_SCALE = 1e-250


def real_array(A: ArrayLike, name: str) -> np.ndarray:
    """A as a native float32 or float64 array; TypeError if its entries are not real."""
    A = plain_array(A, name, "be an array, got nested sequences of different lengths")
    return A.astype("f4" if A.dtype.char == "f" else "f8", copy=False)


def plain_array(A: ArrayLike, name: str, rule: str) -> np.ndarray:
    """A as an array of real numbers, none masked.

    rule: what to say of ragged sequences.
    """
    if np.ma.is_masked(A):
        raise ValueError(
            f"{name} must have no masked entries, got {np.ma.count_masked(A)} of "
            "them: fill or drop them"
        )
    try:
        A = np.asarray(A)
    except ValueError:
        raise ValueError(f"{name} must {rule}") from None
    if A.dtype.kind not in "buif":
        raise TypeError(f"{name} must hold real numbers, got dtype {A.dtype}")
    return A


def finite_array(A: ArrayLike, name: str) -> np.ndarray:
    """A as a real array without NaN and infinity."""
    A = real_array(A, name)
    if not math.isfinite(max_abs(A)):  # needs no mask of A's size
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(A))[0])
        raise ValueError(
            f"{name} must be finite, got {A[where]}"
            + f" at index {where}" * (A.ndim > 0)
        )
    return A


def check_number(
    value: Any,
    name: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    most: float = math.inf,
) -> float:
    """The value as a float, if it is one finite real number in the range.

    A bool is refused. The range: >= least or > above, and <= most.
    """
    array = finite_array(value, name)
    if array.ndim:
        raise ValueError(f"{name} must be one number, got shape {array.shape}")
    _refuse_bool(value, name, "a number")
    number = float(array)
    if not (number >= least and above < number <= most):
        rule = f">= {least}" if above < least else f"> {above:g}"
        rule = "positive" if above == 0 else rule
        if most < math.inf:
            low = f"[{least:g}" if above < least else f"({above:g}"
            rule = f"in {low}, {most:g}]"
        raise ValueError(f"{name} must be {rule}, got {value!r}")
    return number


def _refuse_bool(value, name, wanted):
    """TypeError for bools and arrays of them, which Python takes for 0 and 1."""
    numbers = value if isinstance(value, (list, tuple)) else [value]
    if any(
        isinstance(number, bool) or getattr(number, "dtype", None) == np.bool_
        for number in numbers
    ):
        raise TypeError(f"{name} must be {wanted}, got {value!r}")


def check_integer(value: Any, name: str, low: int, high: int = 2**62) -> int:
    """The value as an int, no bool, in low..high."""
    _refuse_bool(value, name, "an integer")
    try:
        number = int(operator.index(value))
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if not low <= number <= high:
        rule = f">= {low}" if number < low and high == 2**62 else f"in {low}..{high}"
        raise ValueError(f"{name} must be {rule}, got {number}")
    return number


def check_flag(value: object, name: str) -> bool:
    """The value as a bool, if it is one, or 0 or 1 that stand for one."""
    if not isinstance(value, (bool, np.bool_, int, np.integer)) or value not in (0, 1):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_rng(rng: Rng, name: str = "rng") -> np.random.Generator:
    """The Generator that rng stands for."""
    _refuse_bool(rng, name, "None, an integer >= 0, a sequence of them or a Generator")
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be None, an integer >= 0, a sequence of them or a "
            f"Generator, got {rng!r}: {error}"
        ) from None


def check_choice(value: str | None, name: str, *choices: str | None) -> str | None:
    """The value, if it is among the choices, which are strings or None."""
    if not any(
        value is choice or isinstance(value, str) and value == choice
        for choice in choices
    ):
        *most, last = map(repr, choices)
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")
    return value


def max_abs(A):
    """max |a|, without an array of A's size; NaN if there is one."""
    return max(float(A.max(initial=0)), -float(A.min(initial=0)))


def check_bases(
    X: ArrayLike,
    name: str,
    ndim: int | None = 3,
    first: int = 0,
    weighted: bool = False,
) -> np.ndarray:
    """X as orthonormal bases (..., d, p) with ndim axes, or at least two for ndim=None.

    weighted: or as weighted subspaces, orthogonal columns b_k with sum_k ||b_k||^4 = 1.
    first: the index of X[0] in an error.
    """
    X = real_array(X, name)
    axes = "(n, d, p)" if ndim else "(..., d, p)"
    if X.ndim != ndim if ndim else X.ndim < 2:
        raise ValueError(
            f"{name} must have {ndim or 'at least 2'} dimensions {axes}, got shape "
            f"{X.shape}"
        )
    d, p = X.shape[-2:]
    if not 1 <= p <= d:
        raise ValueError(
            f"{name} must have 1 <= p <= d, got p = {p}, d = {d}"
            + f"; axes are {axes}: transposed?" * (p > d)
        )
    flat = X.reshape(-1, d, p)
    of_bases, of_weighted = _errors_of_columns(flat)
    tol = 1e-3 if X.dtype == np.float32 else 1e-6
    good = of_bases <= tol
    if good.all() or weighted and (of_weighted <= tol).all():
        return X
    bad = int(np.argmin(good))
    if not np.isfinite(flat[bad]).all():
        raise ValueError(
            f"{name} must be finite, got NaN or infinity in the basis at index "
            f"{first + bad}"
        )
    if not (weighted and of_weighted[bad] <= tol):
        raise ValueError(
            f"{name} must have orthonormal columns, of subspaces, got a weighted "
            f"subspace at index {first + bad}: only inner products know its weights"
            if of_weighted[bad] <= tol
            else f"{name} must have orthonormal columns: {name}^T {name} differs from "
            f"I by {of_bases[bad]:.2g} at index {first + bad}; call "
            f"orthonormalize({name}) first"
            + f"; of projectors, proj({name}, p) are the bases"
            * (p == d)
        )
    raise ValueError(
        f"{name} must hold bases alone or weighted subspaces alone, whose columns b_k "
        f"have sum_k ||b_k||^4 = 1, got one at index {first + bad} and none at index "
        f"{first + int(np.argmin(of_weighted <= tol))}"
    )


def _errors_of_columns(X):
    """What X (n, d, p) lacks to be bases, and to be weighted subspaces: (2, n).

    max |B^T B - I|, and the larger of the same off the diagonal and |sum_k ||b_k||^4 -
    1|; NaN of what is not finite.
    """
    n, d, p = X.shape
    errors = np.empty((2, n))

    def measure(some):  # its columns as rows (t, p, d)
        _measure_rows(np.array(X[some].swapaxes(1, 2), order="C"), errors[:, some])

    run_blocks(measure, n, block_of(1 + d * p * p // 8, SCRATCH // (d * p)))
    return errors


@jit
def _measure_rows(rows, errors):
    """_errors_of_columns of subspaces (t, p, d), a row a column of theirs."""
    t, p, d = rows.shape
    for i in range(t):
        off = 0.0
        length = 0.0
        total = -1.0
        for a in range(p):
            square = dot(rows[i, a], rows[i, a], d)
            length = max(length, abs(square - 1.0))
            total += square * square
            for b in range(a):
                off = max(off, abs(dot(rows[i, a], rows[i, b], d)))
        finite = 1.0 if total < np.inf else np.nan
        errors[0, i] = finite * max(off, length)
        errors[1, i] = finite * max(off, abs(total))


def squared_norm(X):
    """||X^||_F^2, one for all of checked X (n, d, p): p of bases, 1 of weighted ones."""
    lengths = np.square(X[:1], dtype=np.float64).sum(axis=1)
    return X.shape[2] if np.abs(lengths - 1).max(initial=0) < 0.01 else 1


def check_dictionary(D: ArrayLike, name: str, weighted: bool = False) -> np.ndarray:
    """D as bases (N, d, p), N >= 1, or weighted subspaces as in check_bases."""
    D = check_bases(D, name, weighted=weighted)
    if len(D) == 0:
        raise ValueError(f"{name} must hold at least one subspace, got shape {D.shape}")
    return D


def same_dimension(
    X: np.ndarray, Y: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    """X and Y as arrays of one type, if they have the same d.

    names: what to call them.
    """
    if X.shape[-2] != Y.shape[-2]:
        raise ValueError(
            f"{names[0]} and {names[1]} must have the same d, got {X.shape[-2]} and "
            f"{Y.shape[-2]}"
        )
    dtype = np.result_type(X.dtype, Y.dtype)
    return X.astype(dtype, copy=False), Y.astype(dtype, copy=False)


def check_leading_axes(names: str, *arrays: np.ndarray) -> tuple[int, ...]:
    """The shape that all axes but the last two of the arrays broadcast to."""
    try:
        return np.broadcast_shapes(*(A.shape[:-2] for A in arrays))
    except ValueError:
        raise ValueError(
            f"{names} must have leading axes that broadcast, got shapes "
            + " and ".join(str(A.shape) for A in arrays)
        ) from None


def _check_pair(X, Y, names="XY", weighted=False):
    X = check_bases(X, names[0], weighted=weighted)
    if Y is None:
        return X, X
    return same_dimension(X, check_bases(Y, names[1], weighted=weighted), names)


def check_queries_and_atoms(
    X: ArrayLike, D: ArrayLike, weighted: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """X (n, d, p) and D (N, d, q), N >= 1, as arrays of one type."""
    X = check_bases(X, "X", weighted=weighted)
    return same_dimension(X, check_dictionary(D, "D", weighted), "XD")


def check_grams(
    K_dd: ArrayLike, K_xd: ArrayLike, norm2: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gram matrices (N, N), (n, N) of one type, and norm2 as a float64 array (n,)."""
    K_dd = check_symmetric(K_dd, "K_dd")
    K_xd = real_array(K_xd, "K_xd")
    norm2 = finite_array(norm2, "norm2")
    if K_xd.ndim != 2 or K_xd.shape[1] != len(K_dd):
        raise ValueError(
            f"K_xd must have shape (n, {len(K_dd)}), one column an atom, got "
            f"{K_xd.shape}"
        )
    if norm2.ndim and norm2.shape != (len(K_xd),) or (norm2 < 0).any():
        raise ValueError(
            f"norm2 must be a number >= 0 or {len(K_xd)} of them, one a query, got "
            f"{norm2!r}"
        )
    norm2 = np.broadcast_to(norm2.astype(np.float64), len(K_xd)).copy()
    _check_cauchy_schwarz(check_gram(K_dd), K_xd, norm2)
    dtype = np.result_type(K_dd, K_xd)
    return c_array(K_dd, dtype), c_array(K_xd, dtype), norm2


def check_symmetric(K: ArrayLike, name: str, ndim: int | None = 2) -> np.ndarray:
    """K as a finite matrix (N, N), N >= 1, symmetric to rounding, of a scale that codes bear.

    With ndim=None several, (..., N, N), of any scale.
    """
    K = real_array(K, name)
    if (
        K.ndim < 2
        or ndim not in (None, K.ndim)
        or K.shape[-1] != K.shape[-2]
        or not K.shape[-1]
    ):
        rule = "a square matrix (N, N)" if ndim else "square, (..., N, N),"
        raise ValueError(f"{name} must be {rule} with N >= 1, got shape {K.shape}")
    scale = max_abs(K)
    if not scale < np.inf:
        finite_array(K, name)
    if ndim and scale != 0 and not LEAST_SCALE <= scale <= 1 / LEAST_SCALE:
        raise ValueError(
            f"{name} must have a largest entry of 0 or between {LEAST_SCALE:g} and "
            f"{1 / LEAST_SCALE:g}, got {scale:.2g}: scale the kernel"
        )

    def differences(rows):  # of the entries i, j >= i in these rows i
        return max_abs(
            K[..., rows, rows.start :] - K[..., rows.start :, rows].swapaxes(-1, -2)
        )

    N = K.shape[-1]
    asymmetry = max(run_blocks(differences, N, max(128, 2**16 // N)))
    if asymmetry > (1e-4 if K.dtype == np.float32 else 1e-8) * scale:
        raise ValueError(
            f"{name} must be symmetric, got entries that differ by {asymmetry:.2g} "
            "across the diagonal"
        )
    return K


def check_gram(K_dd: np.ndarray, name: str = "K_dd") -> np.ndarray:
    """Refuse a negative diagonal; warn unless |K_ij|^2 <= K_ii K_jj.

    Returns the roots of the diagonal (N,).
    """
    scale = max_abs(K_dd)
    diagonal = K_dd.diagonal().astype(np.float64)
    if diagonal.min() < 0:
        raise ValueError(
            f"{name} must have a nonnegative diagonal, got {diagonal.min():.2g}"
        )
    norm = np.sqrt(diagonal)
    tol = 10 * (1e-4 if K_dd.dtype == np.float32 else 1e-8) * scale

    def excesses(rows):
        return (
            np.abs(K_dd[rows, rows.start :]) - np.outer(norm[rows], norm[rows.start :])
        ).max()

    # where no entry is larger than the least of the diagonal, none is looked at
    n = len(K_dd) if scale - diagonal.min() > tol else 0
    excess = max(run_blocks(excesses, n, 64), default=0)
    if excess > tol:
        warn(
            f"{name} must be positive semidefinite, but |{name}[i, j]| <= sqrt("
            f"{name}[i, i] {name}[j, j]) fails by {excess:.2g}: codes may be far from the "
            "best"
        )
    return norm


def _check_cauchy_schwarz(norm, K_xd, norm2):
    """Finite, and |K_xd[i, j]| <= sqrt(norm2[i] K_dd[j, j]), to 0.1 %.

    norm: the roots of the diagonal of K_dd.
    """
    bound = (1 + 1e-3) * np.sqrt(norm2)
    if max_abs(K_xd) <= norm.min() * bound.min(initial=1e150):
        return
    # |K_xd| would be as large as K_xd
    peak = np.maximum(K_xd.max(axis=1), -K_xd.min(axis=1))
    # few: they are looked at whole
    suspect = np.flatnonzero(~(peak <= bound * norm.min()))
    excess = (np.abs(K_xd[suspect]) - bound[suspect, None] * norm).max(axis=1)
    if not excess.max(initial=0) <= 1e-3 * (norm.max() * math.sqrt(norm2.max()) or 1):
        finite_array(K_xd, "K_xd")
        i = int(suspect[excess.argmax()])
        raise ValueError(
            "norm2 must be ||X^||^2 of each query: |K_xd| <= sqrt(norm2 K_dd[j, j]) "
            f"fails at query {i} with norm2 = {norm2[i]:.4g}"
        )


def check_labels(
    labels: Any, N: int | None, name: str = "labels", owners: str = "atoms"
) -> tuple[np.ndarray, np.ndarray]:
    """The distinct labels of N owners as an array, and each label's position (N,).

    N = None takes any number.
    """
    if np.ma.is_masked(labels):
        raise ValueError(f"{name} must have no masked entries, got a masked array")
    labels = np.asarray(labels) if hasattr(labels, "__array__") else labels
    if (
        isinstance(labels, (str, bytes, set, frozenset, dict))
        or getattr(labels, "ndim", 1) == 0
        or not hasattr(labels, "__len__")
    ):
        raise TypeError(f"{name} must be a sequence of hashables, got {labels!r}")
    if getattr(labels, "ndim", 1) != 1:
        raise ValueError(
            f"{name} must have one dimension, got shape {labels.shape}"
            + f"; np.ravel({name}) has one" * (labels.shape == (N, 1))
        )
    if N not in (None, len(labels)):
        raise ValueError(
            f"{name} must have length {N}, one for each of the {owners}, got "
            f"{len(labels)}"
        )
    if isinstance(labels, np.ndarray) and labels.dtype != object:
        return np.unique(labels, return_inverse=True)
    try:
        names = list(dict.fromkeys(labels))
    except TypeError as error:
        raise TypeError(f"{name} must be hashable, got {error}") from None
    with contextlib.suppress(TypeError):  # labels that cannot be sorted
        names = sorted(names)
    kinds = np.number, np.bool_, np.str_
    if len({type(name) for name in names}) > 1:  # as [*y, 1] of an array y
        names = [name.item() if isinstance(name, kinds) else name for name in names]
    plain = len({type(name) for name in names}) == 1 and isinstance(
        names[0], (bool, int, float, str, np.generic)
    )
    classes = np.array(names) if plain else np.empty(0)
    if classes.tolist() != names:  # an array of one type would alter them
        classes = np.empty(len(names), object)
        classes[:] = names
    position = {name: i for i, name in enumerate(names)}
    return classes, np.array([position[label] for label in labels], np.intp)


def check_codes(
    codes: Codes, n: int | None, N: int, name: str
) -> np.ndarray | scipy.sparse.csr_array:
    """Codes (n, N): an array, or CSR if sparse; n = None takes any number."""
    if scipy.sparse.issparse(codes):
        codes = scipy.sparse.csr_array(codes)
        try:
            codes.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{name} must be a valid CSR array: {error}") from None
        finite_array(codes.data, name)
    else:
        codes = finite_array(codes, name)
    if codes.ndim != 2 or codes.shape[1] != N or n not in (None, codes.shape[0]):
        raise ValueError(
            f"{name} must have shape ({'n' if n is None else n}, {N}), got {codes.shape}"
        )
    return codes


def dense_codes(codes):
    """Checked codes as an array."""
    return codes.toarray() if scipy.sparse.issparse(codes) else codes


# ------------------------------------------------------------------------------ threads

# Large products are single calls of NumPy's, with the threads of its BLAS. Everything
# else, jitted loops and many small matrices, runs in blocks, in threads made for the
# call. No global setting is touched.

SCRATCH = 2**20  # numbers that a thread works on at a time


def slices(n, step):
    """Consecutive slices of range(n), each of so many but the last."""
    if 0 < n <= step:  # as in each small call
        return [slice(0, n)]
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def c_array(A, dtype):
    """A as a C-ordered writable array of the type, for compiled code."""
    A = np.asarray(A, dtype, order="C")  # np.require is four times as slow
    return A if A.flags.writeable else A.copy()


def block_of(work, most=2**62):
    """How many items, at least 1, take a quarter of a millisecond or so together, each
    of so much work, in multiplications; or `most`, those that fit into a thread's scratch.

    run_blocks needs no thread but the caller's for one block: so less work has none.
    """
    return int(max(1, min(most, 2**18 // work)))


def run_blocks(job, n, block):
    """[job(slice), ...] over consecutive blocks of range(n), in threads of this call.

    The caller is one of them, so that it need not wait for others to start. The blocks
    are equal, of so many items at most, and do not depend on the number of threads.
    After an error or Ctrl-C no block begins.
    """
    blocks = slices(n, _even_share(n, block))
    results = [None] * len(blocks)
    todo = iter(list(enumerate(blocks)))  # of which each thread takes the next
    errors = []  # that ended the work of a thread
    running = []  # an entry for each thread that helps
    bell = queue.SimpleQueue()  # rung when one has ended

    def work():
        try:
            for i, rows in todo:
                results[i] = job(rows)
        except BaseException as error:
            errors.append(error)
        list(todo)  # after an error nobody takes another

    def help_out():
        running.append(None)
        work()
        running.pop()
        bell.put(None)

    try:
        # Numba tells under a lock of all its processes: a fork must not find it taken by
        # each small call of another thread
        for _ in range(min(thread_count(), len(blocks)) - 1 if len(blocks) > 1 else 0):
            _thread.start_new_thread(help_out, ())  # threading's waits until it begins
        work()
    finally:
        list(todo)
        while running:
            try:
                bell.get()
            except KeyboardInterrupt as error:
                errors.insert(0, error)  # no thread outlives the call
    for error in errors:
        cause = error if isinstance(error, SystemError) else None
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__
        if cause is not None:
            raise KeyboardInterrupt from error  # while Numba handed an array over
        raise error
    return results


def thread_count():
    """The threads of numba.set_num_threads, else NUMBA_NUM_THREADS."""
    try:
        numba.threading_layer()
    except ValueError:  # none has started; asking for their number would, before a fork
        return numba.config.NUMBA_NUM_THREADS
    return numba.get_num_threads()


# -------------------------------------------------------------------- the other modules

MODULES = (
    "calibration",
    "discriminative",
    "estimators",
    "files",
    "frames",
    "intrinsic",
    "kernels",
    "learn",
    "plots",
    "projected",
    "shared",
    "strategies",
    "subspaces",
    "tuning",
    "variants",
    "baselines.dynamics",
    "baselines.estimators",
    "baselines.hulls",
    "baselines.jacobi",
    "baselines.sets",
    "baselines.tangent",
    "baselines.tensors",
    "baselines.textures",
    "large.codes",
    "large.scale",
    "large.streams",
)  # the modules beside this file, which setup.py reads too
__path__ = [os.path.dirname(os.path.abspath(__file__))]  # where they are imported from

if not TYPE_CHECKING:  # a checker would take any name for one of them

    def __getattr__(name):
        """grassmann_sc.learn, imported when it is first asked for."""
        if name not in ("baselines", "large", *MODULES):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if not importlib.util.find_spec(f"{__name__}.{name}"):
            # the same by "from": no AttributeError
            raise ModuleNotFoundError(
                f"{__name__}.{name} must be copied beside {__file__}"
            )
        return importlib.import_module(f"{__name__}.{name}")


def __dir__():
    """What is there for users; of the modules, those that have been imported."""
    return [*__all__, *({name.partition(".")[0] for name in MODULES} & {*globals()})]
