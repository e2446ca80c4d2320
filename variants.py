"""Codes beside gSC and gLC: affine sparse codes, the locality penalty in full and the
whitened form for other solvers, which the paper names, and matching pursuit, by which
its authors' public code learns.

All come from inner products alone, K_dd (N, N) of the atoms, K_xd (n, N) of the queries
with them and norm2 = ||X^||^2, as in grassmann_sc.sparse_codes:

    affine sparse codes  min_y ||X^ - sum_j y_j D_j^||^2 + lam ||y||_1, 1^T y = 1
    matching pursuit     min_y ||X^ - sum_j y_j D_j^||^2 with n_atoms nonzeros, greedily
    locality penalty     min_y ||X^ - sum_j y_j D_j^||^2 + reg sum_j (w_j y_j)^2,
                         1^T y = 1, w_j = exp(||X^ - D_j^|| / sigma)
    whitened form        ||X^ - sum_j y_j D_j^||^2 = ||x - A y||^2 + a constant

They are codes as any: class_scores classifies by them, and learn.gdl learns atoms for
them through its option coding.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core

__all__ = [
    "affine_sparse_codes",
    "pursuit_codes",
    "penalised_locality_codes",
    "whitened",
]


# -------------------------------------------------------------------------------- codes


def affine_sparse_codes(
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    lam: float,
    *,
    norm2: ArrayLike,
    tol: float = 1e-8,
    max_iter: int = 1000,
    return_info: bool = False,
) -> np.ndarray | core.SparseCodes:
    """Codes (n, N) of least ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1 with 1^T y = 1.

    Sparse coding restricted to affine combinations, which the paper names as the
    alternative to linear ones. The Gram matrices and norm2 are as in sparse_codes; lam
    > 0 is one number. ||y||_1 is at least 1, and is 1 where y >= 0: from some lam on,
    the code is that of the nearest point of the atoms' convex hull. Without lam it is
    locality_codes with all atoms.

    An active set is solved exactly until the duality gap, and the largest violation of
    the optimality conditions, are at most tol norm2, to rounding; a warning with the
    largest gap if max_iter rounds do not reach that. The conditions, with g_j = <D_j^,
    X^ - sum_i y_i D_i^>: for some mu, g_j = mu + (lam / 2) sign(y_j) where y_j != 0,
    |g_j - mu| <= lam / 2 elsewhere. return_info: a named tuple (codes, gap, n_iter).

    ValueError unless the Gram matrices fit each other, and lam and tol are > 0.

    >>> import numpy as np
    >>> from grassmann_sc import variants
    >>> variants.affine_sparse_codes(np.eye(3), [[0.5, 0.3, 0.0]], lam=0.2, norm2=1.0).round(6)
    array([[0.566667, 0.366667, 0.066667]])
    """
    K_dd, K_xd, norm2 = core.check_grams(K_dd, K_xd, norm2)
    lam = core.check_number(lam, "lam", above=0)
    tol = core.check_number(tol, "tol", above=0)
    max_iter = core.check_integer(max_iter, "max_iter", 1)
    return_info = core.check_flag(return_info, "return_info")
    K = core.c_array(K_dd, np.float64)
    rules = lam / 2, tol, max(1e-14, 8 * float(np.finfo(K_xd.dtype).eps)), max_iter
    codes = np.empty(K_xd.shape)
    gap = np.empty(len(codes))
    n_iter = np.empty(len(codes), np.int64)
    late = np.empty(len(codes), bool)

    def solve(rows):
        k = core.c_array(K_xd[rows], np.float64)
        results = codes[rows], gap[rows], n_iter[rows], late[rows]
        _affine_codes(K, k, norm2[rows], *rules, *results)

    core.run_blocks(solve, len(codes), 16)
    codes = _finite_in(K_xd.dtype, codes, "codes")
    warn_late("affine", late, gap, max_iter)
    return core.SparseCodes(codes, gap, n_iter) if return_info else codes


def _finite_in(dtype, A, name):
    """A, computed in float64, as this type; ValueError where that has no such number."""
    with np.errstate(over="ignore"):
        return core.finite_array(A.astype(dtype, copy=False), name)


def warn_late(what, late, gap, max_iter):
    """Warn of codes of a kind that did not converge, as late (n,) tells."""
    if late.any():
        core.warn(
            f"{np.count_nonzero(late)} of {len(late)} {what} codes did not converge "
            f"(max_iter = {max_iter}): worst duality gap {gap[late].max():.2g}"
        )


def pursuit_codes(
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    n_atoms: int,
    *,
    norm2: ArrayLike,
    tol: float = 0.0,
) -> np.ndarray:
    """Codes (n, N) of at most n_atoms nonzeros each, by orthogonal matching pursuit.

    The atom that explains most of the residual r, of largest |<D_j^, r>| / ||D_j^||,
    joins those chosen, and the code becomes the least-squares code over them: r is
    orthogonal to each. That ends with n_atoms in 1..N, once ||r||^2 <= tol norm2, or
    when no atom is left that does not depend on those chosen and is not orthogonal to
    r, to rounding. Of equal atoms the first is chosen. The Gram matrices and norm2 are
    as in sparse_codes. The least residual of n_atoms nonzeros is not sought: the choice
    is greedy. The paper's authors learn with 20 atoms a sample in their public code.

    ValueError unless the Gram matrices fit each other, and n_atoms is in 1..N.

    >>> import numpy as np
    >>> from grassmann_sc import variants
    >>> variants.pursuit_codes(np.eye(3), [[0.5, -0.7, 0.1]], 2, norm2=1.0).round(6)
    array([[ 0.5, -0.7,  0. ]])
    """
    K_dd, K_xd, norm2 = core.check_grams(K_dd, K_xd, norm2)
    n_atoms = core.check_integer(n_atoms, "n_atoms", 1, len(K_dd))
    tol = core.check_number(tol, "tol", least=0)
    K = core.c_array(K_dd, np.float64)
    codes = np.zeros(K_xd.shape)
    rules = n_atoms, tol, core.tie_tolerance(K_xd.dtype)

    def solve(rows):
        k = core.c_array(K_xd[rows], np.float64)
        _pursuits(K, k, norm2[rows], *rules, codes[rows])

    core.run_blocks(solve, len(codes), 16)
    return _finite_in(K_xd.dtype, codes, "codes")


def penalised_locality_codes(
    K_dd: ArrayLike,
    K_xd: ArrayLike,
    sigma: float,
    reg: float,
    *,
    norm2: ArrayLike,
) -> np.ndarray:
    """Codes (n, N) with 1^T y = 1 that pay for far atoms: locality as a penalty.

    min ||X^ - sum_j y_j D_j^||_F^2 + reg sum_j (w_j y_j)^2, w_j = exp(||X^ - D_j^||_F /
    sigma), sigma and reg > 0: locality-constrained coding as first defined (Eq. 17;
    Wang et al. 2010), whose fast form over the nearest atoms alone is locality_codes.
    All atoms have a coefficient, the smaller the farther. With G_ij = <X^ - D_i^, X^ -
    D_j^> the code solves (G + reg diag(w)^2) y = 1, scaled to sum 1; reg counts at
    least as much as the rounding error of G. The Gram matrices and norm2 are as in
    sparse_codes. A query costs O(N^3).

    ValueError unless the Gram matrices fit each other, sigma and reg are > 0, and K_dd
    is positive semidefinite.

    >>> import numpy as np
    >>> from grassmann_sc import variants
    >>> k = [[0.5, 0.4, 0.1]]
    >>> variants.penalised_locality_codes(np.eye(3), k, 0.5, 0.01, norm2=1.0).round(3)
    array([[0.503, 0.377, 0.12 ]])
    """
    K_dd, K_xd, norm2 = core.check_grams(K_dd, K_xd, norm2)
    sigma = core.check_number(sigma, "sigma", above=0)
    reg = core.check_number(reg, "reg", above=0)
    K = K_dd.astype(np.float64)
    N = len(K)
    least = N / 16 * core.tie_tolerance(K_xd.dtype) * np.maximum(norm2, K.max())
    codes = np.empty(K_xd.shape)

    def fill(rows):
        k = K_xd[rows].astype(np.float64)
        G = K - k[:, :, None] - (k[:, None, :] - norm2[rows, None, None])  # (t, N, N)
        distance = np.sqrt(np.maximum(np.diagonal(G, axis1=1, axis2=2), 0))
        nearest = distance.min(axis=1, keepdims=True)
        near = np.exp((nearest - distance) / sigma)  # w of the nearest atom over w_j
        with np.errstate(over="ignore"):  # an infinite charge leaves the penalty alone
            charge = np.maximum(reg * np.exp(2 * nearest / sigma), least[rows, None])
        G *= near[:, :, None] * near[:, None, :] / charge[:, :, None]
        G[:, range(N), range(N)] += 1
        try:
            y = near * np.linalg.solve(G, near[:, :, None])[:, :, 0]
        except np.linalg.LinAlgError:
            raise ValueError(
                "K_dd must be positive semidefinite, got G + reg diag(w)^2 that is "
                f"singular for one of the queries {rows.start}..{rows.stop - 1}"
            ) from None
        codes[rows] = y / y.sum(axis=1, keepdims=True)

    core.run_blocks(fill, len(codes), max(1, core.SCRATCH // N**2))
    return _finite_in(K_xd.dtype, codes, "codes")


Whitened = namedtuple("Whitened", "A x")


def whitened(
    K_dd: ArrayLike, K_xd: ArrayLike, *, rtol: float | None = None
) -> Whitened:
    """(A, x): the paper's whitened form (Eq. 16), ||x_i - A y||^2 for Gram matrices.

    With the eigenvalues s and eigenvectors U of K_dd (N, N), A = diag(s)^(1/2) U^T has
    shape (r, N), and x = K_xd U diag(s)^(-1/2) has a row for each query (n, r): A^T A =
    K_dd and A^T x_i = k_i. So ||X_i^ - sum_j y_j D_j^||^2 = ||x_i - A y||^2 + norm2_i -
    ||x_i||^2, and other people's solvers take A and x as they take vectors. sparse_codes
    gives the same codes without it.

    Only the r eigenvalues above rtol times the largest are kept, the largest first (N
    eps, of the type of the Gram matrices): the rest are rounding noise, by whose roots x
    would be divided. What of k_i lies outside the span of the kept eigenvectors is lost,
    and with it that part of -2 y^T k_i from the cost. For inner products of points with
    the atoms, k_i lies in the range of K_dd and only rounding is lost; for a k_i of
    other origin compare A^T x_i with it. ValueError unless K_dd is positive
    semidefinite.

    >>> import numpy as np
    >>> from grassmann_sc import variants
    >>> A, x = variants.whitened(np.ones((2, 2)), [[0.5, 0.5]])  # one atom, repeated
    >>> A.shape, x.shape, (x @ A).round(6)
    ((1, 2), (1, 1), array([[0.5, 0.5]]))
    """
    K_dd = core.check_symmetric(K_dd, "K_dd")
    K_xd = core.finite_array(K_xd, "K_xd")
    N = len(K_dd)
    if K_xd.ndim != 2 or K_xd.shape[1] != N:
        raise ValueError(
            f"K_xd must have shape (n, {N}), one column an atom, got {K_xd.shape}"
        )
    dtype = np.result_type(K_dd, K_xd)
    noise = N * np.finfo(dtype).eps
    rtol = noise if rtol is None else core.check_number(rtol, "rtol", least=0)
    values, vectors = np.linalg.eigh(K_dd.astype(np.float64))
    if values[0] < -max(rtol, noise) * abs(values[-1]):
        raise ValueError(
            "K_dd must be positive semidefinite, got eigenvalues from "
            f"{values[0]:.2g} to {values[-1]:.2g}"
        )
    kept = np.flatnonzero(values > rtol * values[-1])[::-1]
    root = np.sqrt(values[kept])
    A = root[:, None] * vectors.T[kept]
    return Whitened(
        A.astype(dtype), _finite_in(dtype, K_xd @ vectors[:, kept] / root, "x")
    )


# --------------------------------------------------------------------- matching pursuit

# What the core's factor_row needs: atoms in the order of the Cholesky factor L.
_Chosen = namedtuple("_Chosen", "support L")


@core.jit
def _pursuits(K, products, norm2, n_atoms, tol, tie, codes):
    """Write codes (n, N), zero before, of products (n, N).

    tie: pivots and correlations of this relative size are rounding.
    """
    N = len(K)
    w = _Chosen(np.empty(n_atoms, np.int64), np.empty((n_atoms, n_atoms)))
    y = np.empty(n_atoms)
    g = np.empty(N)  # <D_j^, r>
    length = np.sqrt(np.diag(K))  # ||D_j^||
    left = np.empty(N, np.bool_)  # neither chosen nor dependent
    for i in range(len(products)):
        k = products[i]
        core.copy(k, g, N)
        left[:] = True
        rest = norm2[i]  # ||r||^2
        m = 0
        while m < n_atoms and rest > tol * norm2[i]:
            at = -1
            most = tie * math.sqrt(norm2[i])
            for j in range(N):
                if left[j] and abs(g[j]) > most * length[j]:
                    at = j
                    most = abs(g[j]) / length[j]
            if at < 0:
                break
            left[at] = False
            w.support[m] = at
            if not core.factor_row(w, m, K[at], 0.0, tie):
                continue
            m += 1
            for c in range(m):
                y[c] = k[w.support[c]]
            core.cholesky_solve(w.L, y, m)
            rest = norm2[i]
            core.copy(k, g, N)
            for c in range(m):
                rest -= y[c] * k[w.support[c]]
                core.axpy(-y[c], K[w.support[c]], g, N)
        for c in range(m):
            codes[i, w.support[c]] = y[c]


# ------------------------------------------------------------- affine sparse codes

# With 1^T y = 1 the cost is y^T G y + 2 half ||y||_1, half = lam / 2 and G_ij = <D_i^ -
# X^, D_j^ - X^>: of the vectors v_j = D_j^ - X^ alone. The same solver serves intrinsic
# coding, whose v_j = log_X(D_j). For the Lagrange multiplier nu of the sum, y is optimal
# where (G y)_j = nu - half sign(y_j) if y_j != 0, |(G y)_j - nu| <= half elsewhere.
# Dual: any v with |<v_j, v> - nu| <= half for all j bounds the cost from below, since
#   ||V y||^2 + 2 half ||y||_1 >= 2 <V y, v> - ||v||^2 + 2 half ||y||_1
#                              >= 2 nu 1^T y - ||v||^2 = 2 nu - ||v||^2, V y = sum y_j v_j.

# What a thread works with, all changed as codes are solved; y_j = 0 for atoms that have
# just entered the support. y: the code; g: G y; support: the atoms in use, in the order
# of the factor L of G + lift 1 1^T, row by row; columns[place[j]] is G[j] for atoms that
# have been in use, for others place[j] = -1; violation: of the optimality conditions off
# the support, see _affine_certificate. Along the support, for _solve_on_active: sign,
# slope, step, ones; rows lost to the factor, and cosine, sine of the rotations for it.
# Length N, but for columns and L (N, N), of which what is not used takes no memory. The
# core's active-set algebra knows these names.
ActiveSet = namedtuple(
    "ActiveSet",
    "y g support place columns L violation sign slope step ones lost cosine sine",
)


@core.inlined_jit(allocates=True)
def active_set(N):
    """An ActiveSet for N atoms."""
    v = np.empty((9, N))
    return ActiveSet(
        v[0],
        v[1],
        np.empty(N, np.int64),
        np.empty(N, np.int64),
        np.empty((N, N)),
        np.empty((N, N)),
        v[2],
        v[3],
        v[4],
        v[5],
        v[6],
        np.empty(N, np.int64),
        v[7],
        v[8],
    )


@core.jit(long=True)
def _affine_codes(
    K, products, norm2, half, tol, rounding, max_iter, codes, gap, n_iter, late
):
    """Write codes (n, N) with sum 1 of products (n, N), their gaps, rounds, and which
    did not converge.

    rounding: relative to squared distances.
    """
    N = len(K)
    w = active_set(N)
    for i in range(len(products)):
        k = products[i]
        nearest = 0
        peak = 0.0  # largest ||v_j||^2
        for j in range(N):
            peak = max(peak, norm2[i] - 2 * k[j] + K[j, j])
            if K[j, j] - 2 * k[j] < K[nearest, nearest] - 2 * k[nearest]:
                nearest = j
        limit = tol * norm2[i] + rounding * (peak + half)
        lift = peak if peak > 0 else 1.0
        gap[i], n_iter[i], late[i] = affine_lasso(
            w, _gram_column, (K, k, norm2[i]), nearest, half, lift, limit, max_iter
        )
        core.copy(w.y, codes[i], N)


@core.inlined_jit
def _gram_column(grams, j, column):
    """column[i] = <D_i^ - X^, D_j^ - X^> for all i."""
    K, k, norm2 = grams
    for i in range(len(k)):
        column[i] = (K[j, i] - k[i]) - (k[j] - norm2)


@core.inlined_jit(once=True, allocates=True)
def affine_lasso(w, fill_column, query, nearest, half, lift, limit, max_iter):
    """One code, in w.y, from 1 at the nearest atom.

    The atoms that violate the optimality conditions most become active, the active set
    is solved exactly, until certified. fill_column(of_query, j, column) writes G[j].
    Returns the gap, the number of rounds, and whether limit was missed.
    """
    for j in range(len(w.y)):
        w.y[j] = 0.0
        w.place[j] = -1
    w.y[nearest] = 1.0
    w.support[0] = nearest
    w.sign[0] = 1.0
    # active atoms; for a plain 1 Numba compiles what takes it once more
    m = np.int64(1)
    n_new = 1
    n_columns = 0
    n_rounds = 0
    stalled = 0
    best = np.inf
    while True:
        for i in range(m - n_new, m):
            j = w.support[i]
            if w.place[j] < 0:
                fill_column(query, j, w.columns[n_columns])
                w.place[j] = n_columns
                n_columns += 1
        if n_rounds > 0:
            m = _solve_on_active(w, half, lift, m)
        cost, gap, excess = _affine_certificate(w, half, m)
        stalled = 0 if cost < best else stalled + 1
        best = min(best, cost)
        if max(gap, excess) <= limit or n_rounds == max_iter or stalled > 10:
            return gap, n_rounds, max(gap, excess) > limit
        n_rounds += 1
        n_new = _enter(w, m, 1 if stalled else 1 + m // 8)
        m += n_new


@core.inlined_jit
def _affine_certificate(w, half, m):
    """Cost, duality gap and largest violation of the optimality conditions.

    Sets w.g = G y. nu = g_j + half sign(y_j) on the support. w.violation[j] is that of
    an atom off the support, with the sign of the coefficient that would lower the cost.
    The dual is evaluated at v = scale sum_j y_j v_j, with the largest nu that it allows.
    """
    for j in range(len(w.g)):
        w.g[j] = 0.0
    for i in range(m):
        j = w.support[i]
        core.axpy(w.y[j], w.columns[w.place[j]], w.g, len(w.g))
    square = 0.0
    l1 = 0.0
    for i in range(m):
        j = w.support[i]
        square += w.y[j] * w.g[j]
        l1 += abs(w.y[j])
    square = max(square, 0.0)
    nu = square + half * l1
    low = np.inf
    high = -np.inf
    for j in range(len(w.g)):
        low = min(low, w.g[j])
        high = max(high, w.g[j])
        w.violation[j] = max(nu - w.g[j] - half, 0.0) + min(nu - w.g[j] + half, 0.0)
    excess = 0.0
    for i in range(m):
        j = w.support[i]
        w.violation[j] = 0.0
        excess = max(excess, abs(w.g[j] - nu + half * w.sign[i]))
    for j in range(len(w.g)):
        excess = max(excess, abs(w.violation[j]))
    scale = max(low / square, 0.0) if square > 0 else 1.0
    if high > low:
        scale = min(scale, 2 * half / (high - low))
    cost = square + 2 * half * l1
    return cost, cost - (2 * scale * low + 2 * half - scale * scale * square), excess


@core.inlined_jit
def _enter(w, m, most):
    """Append the atom of largest violation to the m active ones.

    With it all that come within a factor of four, up to most; returns their number.
    Overwrites w.violation. The sign of the violation is that of the coefficient to be.
    """
    enough = 0.0
    for n_new in range(most):
        worst = 0
        for j in range(len(w.violation)):
            if abs(w.violation[j]) > abs(w.violation[worst]):
                worst = j
        size = abs(w.violation[worst])
        if n_new == 0:
            enough = 0.25 * size
        if size == 0 or size < enough:
            return n_new
        w.support[m + n_new] = worst
        w.sign[m + n_new] = math.copysign(1.0, w.violation[worst])
        w.violation[worst] = 0.0
    return most


@core.inlined_jit(once=True)
def _solve_on_active(w, half, lift, m):
    """Minimise over w.y on the support[:m] with their signs and sum 1.

    Returns their number. Atoms leave as their coefficients reach zero. slope is minus
    half the gradient, to a constant, which changes nothing on sum_j y_j = 1; it is
    chosen so that lambda drops out for codes >= 0. lift 1 1^T, constant there too,
    makes G regular whenever the solution is unique. An atom that depends on those
    before it is moved along a direction that changes nothing but the l1 norm.
    """
    kept = np.int64(0)
    for i in range(m):
        w.slope[i] = half * (1 - w.sign[i]) - w.g[w.support[i]]
    while True:
        r = kept
        while r < m and core.factor_row(w, r, w.columns[w.place[w.support[r]]], lift):
            r += 1
        if r == m:
            _step_with_sum_one(w, m)
        else:
            core.null_direction(w, r, w.columns[w.place[w.support[r]]], lift)
            for i in range(r + 1, m):
                w.step[i] = 0.0
        t = core.first_zero(w, m)
        if r == m and t >= 1:
            for i in range(m):
                w.y[w.support[i]] += w.step[i]
            return m
        if r == m:
            for i in range(m):
                w.slope[i] *= 1 - t
        m, kept = core.advance(w, t, m, r)


@core.inlined_jit
def _step_with_sum_one(w, m):
    """Solve (G + lift 1 1^T) step = slope + nu 1 with 1^T step = 1 - 1^T y.

    Overwrites w.ones.
    """
    missing = 1.0
    for i in range(m):
        w.step[i] = w.slope[i]
        w.ones[i] = 1.0
        missing -= w.y[w.support[i]]
    core.cholesky_solve(w.L, w.step, m)
    core.cholesky_solve(w.L, w.ones, m)
    total = 0.0
    weight = 0.0
    for i in range(m):
        total += w.step[i]
        weight += w.ones[i]
    for i in range(m):
        w.step[i] += (missing - total) / weight * w.ones[i]
