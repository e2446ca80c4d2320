"""Sets of images as subspaces, compared and transformed: mutual subspace methods, DCC,
GDA, GGDA.

X (n, d, p) and D (N, d, q) are sets of subspaces. The canonical correlations of X_i and
D_j are the cosines of their principal angles, the singular values of X_i^T D_j. GDA and
GGDA take any Gram matrix, so that a kernel's (kernels.kernel_gram) and mixtures of
kernels serve too: inner products of queries with the training sets (n, N), times
coefficients, are coordinates. Hulls of frames, the remaining baseline, are in
baselines/hulls.py.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared
from grassmann_sc.baselines import jacobi

__all__ = [
    "correlation_kernel",
    "binet_cauchy_kernel",
    "difference_subspace",
    "whitening_transform",
    "dcc",
    "gda",
    "ggda",
]

LEAST_REG = 1e-14  # and its inverse: beyond, rounding decides

PRODUCTS_AT_A_TIME = 2**20  # entries of X_i^T D_j
PRODUCT = 0  # the power that stands for det^2 in cosine_sums


# --------------------------------------------------------------- canonical correlations


def correlation_kernel(
    X: ArrayLike, D: ArrayLike | None = None, n_angles: int | None = None
) -> np.ndarray:
    """K[i, j] = the sum of the n_angles largest canonical correlations of X_i and D_j.

    (n, N). X (n, d, p), D (N, d, q); without D, within X. n_angles: in 1..min(p, q),
    None for all of them; 1 is the largest correlation alone. In [0, n_angles]. The
    kernel is indefinite in general: see gda. Source: Harandi et al., CVPR 2011.

    ValueError for n_angles out of range, or X and D of two d or without orthonormal
    columns.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import sets
    >>> axes = np.eye(4)
    >>> planes = np.stack([axes[:, [0, 1]], axes[:, [0, 2]]])  # they share an axis
    >>> sets.correlation_kernel(planes)
    array([[2., 1.],
           [1., 2.]])
    """
    X, D = _check_subspaces(X, D)
    return cosine_sums(X, D, check_angles(n_angles, X, D), 1)


def binet_cauchy_kernel(X: ArrayLike, D: ArrayLike | None = None) -> np.ndarray:
    """K[i, j] = det(X_i^T D_j)^2, the product of cos^2 of all principal angles.

    (n, N) in [0, 1]. X (n, d, p), D (N, d, p); without D, within X. Source: Hamm and
    Lee, ICML 2008.

    ValueError unless X and D have one d, one p and orthonormal columns.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import sets
    >>> axes = np.eye(4)
    >>> planes = np.stack([axes[:, [0, 1]], axes[:, [0, 2]]])  # they share an axis
    >>> sets.binet_cauchy_kernel(planes)
    array([[1., 0.],
           [0., 1.]])
    """
    X, D = _check_subspaces(X, D)
    if X.shape[2] != D.shape[2]:
        raise ValueError(
            f"X and D must have the same p, got {X.shape[2]} and {D.shape[2]}"
        )
    return cosine_sums(X, D, X.shape[2], PRODUCT)


def cosine_sums(X, D, n_angles, power):
    """Sums (n, N) of cos^power over the n_angles least angles of checked X and D.

    Both have one type. It is half the work if X is D. Their columns need not be
    orthonormal, then cos are the singular values of X_i^T D_j, at most 1.
    """
    n, d, p = X.shape
    N, _, q = D.shape
    if p > q:
        return np.ascontiguousarray(cosine_sums(D, X, n_angles, power).T)
    symmetric = X is D
    if power == 2 and n_angles == p:
        return core.bases_gram(X, None if symmetric else D)
    K = np.zeros((n, N), X.dtype)
    height = max(1, math.isqrt(PRODUCTS_AT_A_TIME) // p)
    width = max(1, math.isqrt(PRODUCTS_AT_A_TIME) // q)
    for j in range(0, N, width):
        columns = D[j : j + width].swapaxes(1, 2).reshape(-1, d)  # (s q, d)
        for i in range(0, min(n, j + 1) if symmetric else n, height):
            # (t p, s q)
            C = np.matmul(X[i : i + height].swapaxes(1, 2).reshape(-1, d), columns.T)
            out = np.empty((len(C) // p, C.shape[1] // q), X.dtype)
            core.run_blocks(
                lambda rows: _sum_cosines(
                    C, p, q, rows.start, rows.stop, n_angles, power, out
                ),
                len(out),
                8,
            )
            K[i : i + height, j : j + width] = out
    return np.triu(K) + np.triu(K, 1).T if symmetric else K


@core.jit(parts=jacobi)
def _sum_cosines(C, p, q, start, stop, n_angles, power, out):
    """out[i, j] = the sum for block i, j (p, q) of C, for rows of blocks start..stop-1.

    Or the product of squares; p <= q.
    """
    B = np.empty((p, q))
    no_turns = np.empty((0, 0))
    cosine = np.empty(p)
    for i in range(start, stop):
        for j in range(out.shape[1]):
            for a in range(p):
                core.copy(C[i * p + a, j * q :], B[a], q)
            jacobi.orthogonal_rows(B, no_turns)
            for a in range(p):
                cosine[a] = min(1.0, np.sqrt(core.dot(B[a], B[a], q)))
            total = 1.0 if power == PRODUCT else 0.0
            for _ in range(n_angles):
                largest = cosine.argmax()
                c = cosine[largest]
                cosine[largest] = -1.0  # taken
                if power == PRODUCT:
                    total *= c * c
                else:
                    total += c if power == 1 else c * c
            out[i, j] = total


# -------------------------------------------------------------- mutual subspace methods


def difference_subspace(D: ArrayLike, keep: float) -> np.ndarray:
    """Basis (d, m) of the generalised difference subspace of D (N, d, q).

    The span of the eigenvectors of sum_j D_j D_j^T less the leading ones: of the r with
    a positive eigenvalue, the m = max(1, round(keep r)) least, 0 < keep <= 1. What is
    common to all D is left out; the constrained mutual subspace method compares
    image_bases of it. A warning if an eigenvalue that is kept ties with one that
    is not: the subspace is not unique. No d x d matrix is formed when d > N q. Source:
    Fukui and Yamaguchi 2003.

    ValueError unless 0 < keep <= 1 and D has orthonormal columns.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import sets
    >>> axes = np.eye(4)
    >>> planes = np.stack([axes[:, [0, 1]], axes[:, [0, 2]]])  # they share an axis
    >>> G = sets.difference_subspace(planes, keep=0.67)
    >>> (G @ G.T).round(6).diagonal()  # the shared axis is left out
    array([0., 1., 1., 0.])
    """
    D = core.check_dictionary(D, "D")
    keep = core.check_number(keep, "keep", above=0, most=1)
    vectors, values = _principal_directions(D)
    dropped = len(values) - max(1, round(keep * len(values)))
    if dropped and core.eigenvalues_tie(
        values[::-1], dropped, values[0], len(D) * D.shape[2]
    ):
        core.warn(
            f"difference_subspace not unique: eigenvalues {dropped} and {dropped + 1} "
            "tie, of which one is kept"
        )
    return vectors[:, dropped:]


def whitening_transform(D: ArrayLike) -> np.ndarray:
    """T = H diag(lambda)^(-1/2), (d, r), for sum_j D_j D_j^T = H diag(lambda) H^T.

    D has shape (N, d, q). The orthogonal mutual subspace method compares
    image_bases of T: T^T maps the sum of projectors to the identity, and subspaces
    D that are independent, N q = r, to orthogonal ones. The r eigenvalues above max(d,
    N q) eps times the largest count, eps of D's type; queries are seen in the span of
    their eigenvectors alone. Nothing is inverted but these, and no d x d matrix is
    formed when d > N q. Source: Kawahara, Nishiyama, Kozakaya and Yamaguchi, "Face
    recognition based on whitening transformation of distribution of subspaces", 2007.

    ValueError unless D has orthonormal columns.

    >>> import numpy as np
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines import sets
    >>> D = random_subspaces(2, 6, 2, rng=0)  # two planes at some angles
    >>> (A, B), _ = sets.image_bases(D, sets.whitening_transform(D))
    >>> np.allclose(A.T @ B, 0)
    True
    """
    D = core.check_dictionary(D, "D")
    vectors, values = _principal_directions(D)
    least = max(D.shape[1], len(D) * D.shape[2]) * np.finfo(D.dtype).eps * values[0]
    kept = values > least
    return vectors[:, kept] / np.sqrt(values[kept])


def _principal_directions(D):
    """Eigenvectors (d, r) and positive eigenvalues (r,) of sum_j D_j D_j^T.

    They descend.
    """
    N, d, q = D.shape
    Z = D.transpose(1, 0, 2).reshape(d, N * q)
    if N * q > d:
        Z = np.linalg.qr(Z.T, mode="r").T  # Z Z^T is kept
    vectors, s, _ = np.linalg.svd(Z, full_matrices=False)
    rank = int((s > max(d, N * q) * np.finfo(D.dtype).eps * s[0]).sum())
    return vectors[:, :rank], s[:rank] ** 2


def image_bases(X, T):
    """Give orthonormal bases (n, m, min(p, m)) of the images T^T X_i, and B that gives them.

    X (n, d, p) and T (d, m) are checked and of one type; T^T X_i B_i = bases_i with B_i
    (p, min(p, m)). What T^T maps to zero, up to the rounding of eigenvectors, becomes
    columns of zeros, which are at a right angle to everything.
    """
    n, d, p = X.shape
    images = np.matmul(T.T, X.transpose(1, 0, 2).reshape(d, n * p))  # (m, n p)
    images = np.ascontiguousarray(images.reshape(T.shape[1], n, p).transpose(1, 0, 2))
    Q, R = np.linalg.qr(images)
    U, s, Vt = np.linalg.svd(R, full_matrices=False)
    scale = np.linalg.norm(T, axis=0).max()
    kept = (s > 200 * np.finfo(X.dtype).eps * scale)[:, None, :]  # (n, 1, min(p, m))
    B = Vt.swapaxes(1, 2) * kept / np.where(kept, s[:, None, :], 1)
    return np.matmul(Q, U) * kept, B.astype(X.dtype, copy=False)


# -------------------------------------------------- discriminant canonical correlations


CorrelationTransform = namedtuple("CorrelationTransform", "transform objective n_iter")
# scatters of pairs of sets, see _scatters
Pairs = namedtuple("Pairs", "within between share")
Begun = namedtuple("Begun", "span P index pairs dtype")  # where dcc begins


def dcc(
    X: ArrayLike,
    labels: core.Labels,
    *,
    dimension: int | None = None,
    n_iter: int = 10,
    reg: float = 1e-3,
    tol: float = 1e-4,
    begun: Begun | None = None,
) -> CorrelationTransform:
    """Learn T (d, m) for subspaces X (N, d, p), discriminant canonical correlations.

    T is to make the correlations of T^T X_i and T^T X_j large for two sets of one class
    and small for others. From T = I, up to n_iter times: with T^T P_i orthonormal for
    P_i = X_i B_i, and P_i^T T T^T P_j = Q_ij diag(cos) Q_ji^T, T has the m leading
    generalised eigenvectors of

        S_b v = mu (S_w + s I) v,    S = sum over pairs (P_i Q_ij - P_j Q_ji)(P_i Q_ij - P_j Q_ji)^T

    over pairs of different classes (b) and of one (w), s = reg tr(S_w + S_b) / r, reg >
    0, scaled to v^T (S_w + s I) v = 1. All is done in the span of X, of dimension r,
    where T lies. The objective is recorded: b / (b + w) of the mean sums of 1 - cos of
    pairs of different classes, b, and of one, w, in [0, 1]. A step that does not raise
    it ends the search and is undone; a rise of at most tol ends it.

    dimension: m, in p + 1..r, None for r. begun: dcc_begun(X, labels), where it begins
    whatever the other arguments are, or None. Returns a named tuple: transform (d, m),
    or None for T = I if no step raised the objective, objective (n_iter + 1,),
    ascending, and n_iter. Queries are compared by image_bases and correlation_kernel.
    ValueError if there is one class, or classes do not differ. Source: Kim, Kittler and
    Cipolla, PAMI 2007.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines import sets
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> learned = sets.dcc(X, [0, 1] * 4)
    >>> learned.transform.shape, bool(learned.objective[-1] > learned.objective[0])
    ((10, 10), True)
    """
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    reg = check_reg(reg)
    tol = core.check_number(tol, "tol", least=0)
    if not isinstance(begun, (Begun, type(None))):
        raise TypeError(f"begun must be that of dcc_begun, got {begun!r}")
    span, P, index, pairs, dtype = dcc_begun(X, labels) if begun is None else begun
    r = span.shape[1]
    m = core.check_integer(  # in p dimensions all correlations are 1
        r if dimension is None else dimension, "dimension", min(P.shape[2] + 1, r), r
    )
    T = None
    objective = [pairs.share]
    for _ in range(n_iter):
        # of all directions correlations do not ask for the basis, which a Cholesky
        # factor gives
        candidate = _discriminating_directions(pairs, m, reg, any_basis=m == r)
        there = _scatters(P, candidate, index)
        rise = there.share - pairs.share
        if not rise > 0:
            break
        T = candidate
        came_from = pairs
        pairs = there
        objective.append(pairs.share)
        if rise <= tol:
            break
    if T is not None:
        T = _discriminating_directions(came_from, m, reg) if m == r else T
        T = (span @ T).astype(dtype)
    return CorrelationTransform(T, np.array(objective), len(objective) - 1)


def dcc_begun(X, labels):
    """Return where dcc begins, whatever the dimension and reg."""
    X = core.check_dictionary(X, "X")
    _, index = shared.check_classes(labels, len(X))
    span, _ = _principal_directions(X.astype(np.float64, copy=False))
    P = image_bases(X.astype(np.float64, copy=False), span)[0]  # coordinates (N, r, p)
    pairs = _scatters(P, np.eye(span.shape[1]), index)
    if pairs.share == 0:
        raise ValueError(
            "X must hold subspaces that differ between classes, got canonical "
            "correlations of 1 for all pairs"
        )
    return Begun(span, P, index, pairs, X.dtype)


def _discriminating_directions(pairs, m, reg, any_basis=False):
    """The m leading eigenvectors (r, m) of S_b v = mu (S_w + s I) v.

    Or any T (r, r) with T^T (S_w + s I) T = I.
    """
    r = len(pairs.within)
    B = _ridged(
        pairs.within, reg * (np.trace(pairs.within) + np.trace(pairs.between)) / r
    )
    if any_basis:
        return scipy.linalg.lapack.dtrtri(scipy.linalg.cholesky(B))[0]
    return scipy.linalg.eigh(pairs.between, B, subset_by_index=[r - m, r - 1])[1][
        :, ::-1
    ]


def _scatters(P, T, index):
    """S_w and S_b (r, r) of bases P (N, r, p) under T (r, m), and the objective."""
    images, B = image_bases(P, T)
    P = np.matmul(P, B)
    members = [np.flatnonzero(index == c) for c in range(index.max() + 1)]
    parts = [
        _pair_scatter(images[i], P[i], ~np.eye(len(i), dtype=bool)) for i in members
    ]
    S_w, loss_w = (sum(part) for part in zip(*parts))
    loss_w /= max(sum(len(i) * (len(i) - 1) for i in members), 1)
    between = np.not_equal.outer(index, index)
    S_b, loss_b = _pair_scatter(images, P, between)
    loss_b /= between.sum()
    return Pairs(S_w, S_b, loss_b / (loss_b + loss_w) if loss_b > 1e-10 else 0.0)


def _pair_scatter(images, P, chosen):
    """Sums over the chosen pairs of (P_i Q_ij - P_j Q_ji)(...)^T and of 1 - cos.

    chosen: symmetric (N, N) without a diagonal. With the degrees of the graph and W_ij
    = Q_ij Q_ji^T = W_ji^T, the orthogonal factor of the block images_i^T images_j, the
    first is sum_i degree_i P_i P_i^T - M - M^T with M the sum of P_i W_ij P_j^T over i
    < j. Directions without correlation are not matched: their part of W is 0.
    """
    N, m, p = images.shape
    rows = np.ascontiguousarray(images.swapaxes(1, 2)).reshape(N * p, m)
    flat = np.ascontiguousarray(P.transpose(1, 0, 2)).reshape(-1, N * p)  # (r, N p)
    S = (flat * np.repeat(chosen.sum(axis=1), p)) @ flat.T
    loss = np.zeros(N)
    width = max(
        1, min(PRODUCTS_AT_A_TIME // (N * p * p), max(16, N // 6))
    )  # of W half is asked for
    for j in range(0, N, width):
        columns = slice(j * p, (j + width) * p)
        above = min(N, j + width)  # rows of blocks that hold pairs i < j
        W = np.matmul(rows[: above * p], rows[columns].T)  # (above p, t p)
        tile = np.triu(chosen[:above, j : j + width], 1 - j)
        core.run_blocks(
            lambda block: _orthogonal_factors(
                W, p, tile, block.start, block.stop, loss
            ),
            above,
            8,
        )
        M = np.matmul(np.matmul(flat[:, : above * p], W), flat[:, columns].T)
        S -= M + M.T
    return (S + S.T) / 2, 2 * loss.sum()


@core.jit(parts=jacobi)
def _orthogonal_factors(W, p, chosen, start, stop, loss):
    """Replace blocks i, j (p, p) of W by U V^T of their U S V^T, or 0 if not chosen.

    For rows start..stop-1 of blocks. loss[i] grows by sum (1 - cos) over its blocks.
    """
    B = np.empty((p, p))
    turns = np.empty((p, p))
    for i in range(start, stop):
        for j in range(chosen.shape[1]):
            block = W[i * p : (i + 1) * p, j * p : (j + 1) * p]
            if not chosen[i, j]:
                block[:] = 0
                continue
            turns[:] = 0
            for a in range(p):
                core.copy(block[a], B[a], p)
                turns[a, a] = 1.0
            jacobi.orthogonal_rows(B, turns)
            block[:] = 0
            for a in range(p):
                cosine = np.sqrt(core.dot(B[a], B[a], p))
                loss[i] += 1 - min(1.0, cosine)
                if cosine > 1e-12:
                    for b in range(p):
                        core.axpy(turns[a, b] / cosine, B[a], block[b], p)


# ------------------------------------------------------- discriminants of a Gram matrix


Discriminant = namedtuple("Discriminant", "coefficients values negative_share")


def gda(
    K: ArrayLike,
    labels: core.Labels,
    reg: float = 1e-3,
) -> Discriminant:
    """Learn Grassmann discriminants (GDA) of a Gram matrix K (N, N) with labels (N,).

    The columns a of coefficients (N, m) maximise

        a^T K (V - 1 1^T / N) K a / a^T (K (I - V) K + s I) a,    V = diag of blocks 1 1^T / N_c,

    with s = reg tr(K^2) / N, reg > 0, the denominator 1, and one another's conjugates;
    values (m,) are the maxima, descending. m is n_classes - 1, or less if means of
    classes coincide. Coordinates of queries are K_xd @ coefficients, in which the
    nearest training set, or the nearest class mean, names the class.

    A K that is not positive semidefinite, beyond rounding, has its negative eigenvalues
    clipped to 0; their share of the sum of all |eigenvalues| is negative_share. Source:
    Hamm and Lee, ICML 2008, who take the projection kernel.

    ValueError unless K is symmetric, labels are as many and of two classes or more,
    and reg is in range.

    >>> from grassmann_sc import projection_kernel, random_subspaces
    >>> from grassmann_sc.baselines import sets
    >>> K = projection_kernel(random_subspaces(9, 10, 2, rng=0))
    >>> learned = sets.gda(K, ["ape", "bee", "cat"] * 3)
    >>> (K @ learned.coefficients).shape, learned.negative_share
    ((9, 2), 0.0)
    """
    return next(each_gda(K, labels, [reg]))


def each_gda(K, labels, regs):
    """Yield gda of each reg, which share all but a factorisation."""
    K, scale = check_gram(K)
    classes, index = shared.check_classes(labels, len(K))
    regs = [check_reg(reg) for reg in regs]
    G, clip, negative_share = _positive_part(K / scale)
    membership = np.equal.outer(index, np.arange(len(classes))) / np.sqrt(
        np.bincount(index)
    )
    within = G - membership @ (membership.T @ G)  # V = membership membership^T
    scatter = within.T @ within
    # numerator = M M^T
    M = G @ (membership - np.sqrt(np.bincount(index)) / len(index))
    for reg in regs:
        solution = scipy.linalg.cho_solve(
            scipy.linalg.cho_factor(
                _ridged(scatter, reg * np.square(G).sum() / len(G)), lower=True
            ),
            M,
        )
        values, vectors = np.linalg.eigh(M.T @ solution)
        # of M, squared, over s
        rounding = 100 * len(G) * np.finfo(K.dtype).eps ** 2 / reg
        # of eigh and the solution
        eps = np.finfo(values.dtype).eps
        rounding = max(rounding, 100 * len(M.T) * eps * values[-1])
        kept = np.flatnonzero(values > rounding)[::-1][: len(classes) - 1]
        if len(kept) == 0:
            raise ValueError(
                "labels must be of classes whose means differ, got means that "
                "coincide in the kernel's feature space"
            )
        coefficients = solution @ (vectors[:, kept] / np.sqrt(values[kept]))
        yield _discriminant(K, coefficients / scale, values[kept], clip, negative_share)


def ggda(
    K: ArrayLike, labels: core.Labels, *, beta: float = 1.0, reg: float = 1e-3
) -> Discriminant:
    """Learn graph-embedding Grassmann discriminants (GGDA) of K (N, N), labels (N,).

    The m = n_classes - 1 columns of coefficients A (N, m) maximise

        tr[(A^T (K D_w K + s I) A)^-1 A^T K (L_b + beta W_w) K A],    s = reg tr(K^2) / N, reg > 0,

    by generalised eigenvectors. W_w is 1 for two sets of one class, W_b for two of
    different classes, else 0 (its source joins near sets alone); D are their degrees, L
    = D - W; beta >= 0. Returns what gda does, with values (m,) whose sum is the
    maximum; an indefinite K, such as mixtures with correlation_kernel, is clipped as
    there. Source: Harandi, Sanderson, Shirazi and Lovell, CVPR 2011.

    ValueError where gda raises it, or for beta < 0.

    >>> from grassmann_sc import projection_kernel, random_subspaces
    >>> from grassmann_sc.baselines import sets
    >>> K = projection_kernel(random_subspaces(9, 10, 2, rng=0))
    >>> learned = sets.ggda(K, ["ape", "bee", "cat"] * 3, beta=0.1)
    >>> (K @ learned.coefficients).shape
    (9, 2)
    """
    return next(each_ggda(K, labels, [reg], beta))


def each_ggda(K, labels, regs, beta):
    """Yield ggda of each reg, which share all but an eigendecomposition."""
    K, scale = check_gram(K)
    classes, index = shared.check_classes(labels, len(K))
    beta = core.check_number(beta, "beta", least=0, most=1 / LEAST_REG)
    regs = [check_reg(reg) for reg in regs]
    N = len(K)
    G, clip, negative_share = _positive_part(K / scale)
    same = np.equal.outer(index, index)
    W_w = (same & ~np.eye(N, dtype=bool)).astype(np.float64)
    W_b = (~same).astype(np.float64)
    numerator = G @ (np.diag(W_b.sum(axis=1)) - W_b + beta * W_w) @ G
    numerator = (numerator + numerator.T) / 2
    scatter = (G * W_w.sum(axis=0)) @ G
    for reg in regs:
        values, vectors = scipy.linalg.eigh(
            numerator,
            _ridged(scatter, reg * np.square(G).sum() / N),
            subset_by_index=[N - len(classes) + 1, N - 1],
        )
        coefficients = vectors[:, ::-1] / scale
        yield _discriminant(K, coefficients, values[::-1], clip, negative_share)


def _ridged(A, ridge):
    """A + ridge I."""
    ridged = A.copy()
    ridged.flat[:: len(A) + 1] += ridge
    return ridged


def _discriminant(K, coefficients, values, clip, negative_share):
    """With coefficients that give raw rows of K the coordinates of its positive part."""
    if clip is not None:
        coefficients = clip @ (clip.T @ coefficients)
    return Discriminant(coefficients.astype(K.dtype), values, negative_share)


def _positive_part(K):
    """(G, Q, share): K without its negative eigenvalues, and the eigenvectors kept.

    Q has shape (N, r). Q is None and G is K if no eigenvalue is negative beyond
    rounding. share: see gda.
    """
    G = (K.astype(np.float64) + K.T) / 2
    rounding = 1e-5 if K.dtype == np.float32 else 1e-10
    lifted = _ridged(G, rounding * np.abs(G).max())
    if scipy.linalg.lapack.dpotrf(lifted, lower=1, overwrite_a=1)[1] == 0:
        return G, None, 0.0
    values, vectors = np.linalg.eigh(G)
    Q = vectors[:, values > 0]
    share = -values[values < 0].sum() / np.abs(values).sum()
    return (Q * values[values > 0]) @ Q.T, Q, float(share)


# ------------------------------------------------------------------------------- checks


def _check_subspaces(X, D):
    """Queries X (n, d, p) and subspaces D (N, d, q), N >= 1, of one type.

    D is X if it is None.
    """
    if D is not None:
        return core.check_queries_and_atoms(X, D)
    X = core.check_dictionary(X, "X")
    return X, X


def check_angles(n_angles, X, D):
    """n_angles, or all min(p, q) of them for None."""
    most = min(X.shape[2], D.shape[2])
    return (
        most if n_angles is None else core.check_integer(n_angles, "n_angles", 1, most)
    )


def check_reg(reg):
    """The regularisation as a float in LEAST_REG..1 / LEAST_REG."""
    return core.check_number(reg, "reg", least=LEAST_REG, most=1 / LEAST_REG)


def check_gram(K):
    """K as a symmetric matrix (N, N) that is not zero, and the power of 2 above its entries.

    Of K over that power no square overflows, and its numbers are those of K.
    """
    K = core.check_symmetric(K, "K")
    if not K.diagonal().max() > 0:
        raise ValueError(
            "K must have squared norms on its diagonal, > 0, got at most "
            f"{K.diagonal().max():g}"
        )
    return K, 2.0 ** math.frexp(core.max_abs(K))[1]
