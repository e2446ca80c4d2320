"""Dictionaries for the codings in tangent spaces: log-Euclidean and intrinsic.

Both alternate coding and one update of each atom, with the codes of comparators.py; the cost never
rises. At a fixed base, log is one to one onto the tangent vectors whose singular values are below
pi/2. So an atom of the log-Euclidean dictionary is a free tangent vector with that bound, and its
best value has a closed form: no gradient of log is needed. Intrinsic atoms are seen from a tangent
space for each sample; they take Riemannian gradient steps.
"""

from __future__ import annotations

import math
import warnings
from collections import namedtuple

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import comparators, intrinsic

__all__ = ["log_euclidean_dictionary", "intrinsic_dictionary"]

ARMIJO = 1e-4  # the share of the fall that a slope promises with which a step is content


# ---------------------------------------------------------------------- log-Euclidean dictionary


LogEuclideanDictionary = namedtuple("LogEuclideanDictionary", "atoms codes costs base")


def log_euclidean_dictionary(X: ArrayLike, n_atoms: int, lam: float, *,
                             base: str | ArrayLike | None = None, positive: bool = False,
                             init: str | ArrayLike = "kmeans++", n_iter: int = 20,
                             tol: float = 1e-6, rng: core.Rng = None) -> LogEuclideanDictionary:
    """Learn n_atoms atoms from X (n, d, p) for log_euclidean_codes: (atoms, codes, costs, base).

    min sum_i ||log(X_i) - sum_j y_ij log(D_j)||^2 + lam ||y_i||_1 over codes and atoms D_j (d, p),
    in one tangent space. For fixed codes and other atoms the cost is, to a constant,
    (sum_i y_ir^2) ||log(D_r) - T_r||^2 with

        T_r = sum_i y_ir (log(X_i) - sum_{j != r} y_ij log(D_j)) / sum_i y_ir^2:

    the best atom is T_r, or, where its singular values exceed pi/2 (less rounding), the nearest
    that has them clipped. Without that bound, the l1 norm would make the logarithms of atoms grow
    for ever. An atom that no sample uses is replaced by the sample that is coded worst.

    base: as in tangent_grams, "mean": the Karcher mean of X; the base in use is returned, for
    log_euclidean_codes(X, atoms, lam, base). positive: codes >= 0. init: a method of
    learn.init_atoms, or atoms (n_atoms, d, p). Ends after n_iter iterations, or one that lowers the
    cost by at most tol times it. costs: of the first codes, then two an iteration, after the atoms
    and after the codes. A warning for samples at a right angle to base.

    >>> from grassmann_sc import comparators_learning, random_subspaces
    >>> X = random_subspaces(8, 6, 2, rng=0)
    >>> atoms, codes, costs, base = comparators_learning.log_euclidean_dictionary(X, 3, 0.1, rng=0)
    >>> atoms.shape, bool(costs[-1] < costs[0])
    ((3, 6, 2), True)
    """
    X, atoms, lam, rng = _check_problem(X, n_atoms, lam, init, rng)
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    tol = core.check_number(tol, "tol", least=0)
    n, d, p = X.shape
    options = core.lasso_options((n, len(atoms)), lam, positive=positive)
    base = comparators.tangent_base(base, X)
    H, n_right = intrinsic.log_of_checked(base, X)
    intrinsic.warn_right_angles(n_right, "log_euclidean_dictionary")
    tangents, _ = intrinsic.log_of_checked(base, atoms)
    H = _without_rounding(H).reshape(n, d * p)
    bound = math.pi / 2 - math.sqrt(np.finfo(X.dtype).eps)
    tangents = _clipped(_without_rounding(tangents), bound)
    norm2 = np.einsum("ij,ij->i", H, H)
    codes, losses = _tangent_codes(H, tangents, norm2, options, None, None)
    costs = [losses.sum()]
    while len(costs) // 2 < n_iter and not _has_ended(costs, tol):
        tangents = _update_tangents(H, tangents, codes, bound)
        tangents -= np.matmul(base, np.matmul(base.T, tangents))  # rounding
        K, k = _tangent_products(H, tangents)
        losses = _losses_in_tangents(K, k, codes, norm2, lam)
        costs.append(losses.sum())
        idle = np.flatnonzero(~codes.any(axis=0))
        worst = np.argsort(-losses, kind="stable")[np.arange(len(idle)) % n]
        tangents[idle] = _clipped(H[worst].reshape(-1, d, p), bound)
        codes, losses = _tangent_codes(H, tangents, norm2, options, codes, losses)
        costs.append(losses.sum())
    atoms = intrinsic.exp_map(base.astype(np.float64), tangents).astype(X.dtype)
    return LogEuclideanDictionary(atoms, codes.astype(X.dtype), np.array(costs), base)


def _check_problem(X, n_atoms, lam, init, rng):
    """Samples, first atoms of their type, lambda and rng."""
    X = core.check_dictionary(X, "X")
    n_atoms = core.check_integer(n_atoms, "n_atoms", 1)
    lam = core.check_number(lam, "lam", least=0)
    if lam > 1 / core.SMALLEST:
        raise ValueError(f"lam must be at most {1 / core.SMALLEST:g}, got {lam:g}")
    rng = core.check_rng(rng)
    if isinstance(init, str):
        core.check_choice(init, "init", "kmeans", "kmeans++", "random")
        return X, core.learn.init_atoms(X, n_atoms, init, rng), lam, rng
    atoms = core.check_dictionary(init, "init")
    if atoms.shape != (n_atoms, *X.shape[1:]):
        raise ValueError(f"init must have shape {(n_atoms, *X.shape[1:])}, got {atoms.shape}")
    return X, atoms.astype(X.dtype), lam, rng


def _has_ended(costs, tol):
    return len(costs) > 2 and costs[-3] - costs[-1] <= tol * costs[-3]


def _without_rounding(H):
    """H (n, d, p) in float64, zero where it is so to rounding: codes could make much of it."""
    length = np.linalg.norm(H, axis=(1, 2), keepdims=True)
    return np.where(length > 64 * H.shape[2] * np.finfo(H.dtype).eps, H, 0).astype(np.float64)


def _clipped(H, bound):
    """The nearest matrices to H (N, d, p) whose singular values are at most the bound."""
    left, s, right = np.linalg.svd(H, full_matrices=False)
    long = s.max(axis=1, initial=0) > bound
    H = H.copy()
    H[long] = np.matmul(left[long] * np.minimum(s[long], bound)[:, None, :], right[long])
    return H


def _update_tangents(H, tangents, codes, bound):
    """Each tangent vector (N, d, p) in turn at its best for fixed codes; see above."""
    N, d, p = tangents.shape
    y = codes.astype(np.float64)
    flat = tangents.reshape(N, d * p).copy()
    G = y.T @ y
    B = y.T @ H
    for r in range(N):
        if G[r, r] > 0:
            best = flat[r] + (B[r] - G[r] @ flat) / G[r, r]
            flat[r] = _clipped(best.reshape(1, d, p), bound).ravel()
    return flat.reshape(N, d, p)


def _tangent_products(H, tangents):
    """Inner products of the atoms (N, N), and of samples with atoms (n, N)."""
    flat = tangents.reshape(len(tangents), -1)
    K = flat @ flat.T
    return (K + K.T) / 2, H @ flat.T


def _losses_in_tangents(K, k, codes, norm2, lam):
    """||x_i - sum_j y_ij d_j||^2 + lam ||y_i||_1 (n,)."""
    return norm2 + ((codes @ K - 2 * k) * codes).sum(axis=1) + lam * np.abs(codes).sum(axis=1)


def _tangent_codes(H, tangents, norm2, options, before, losses):
    """(codes (n, N), their losses (n,)); where those before are no worse, they stay."""
    K, k = _tangent_products(H, tangents)
    options = options._replace(init=before, share=False)
    codes = core.solve_lassos(K, lambda rows: k[rows], norm2, options)
    after = _losses_in_tangents(K, k, codes, norm2, float(options.lam))
    if before is not None:
        worse = after > losses
        codes[worse] = before[worse]
        after[worse] = losses[worse]
    return codes, after


# --------------------------------------------------------------------------- intrinsic dictionary


IntrinsicDictionary = namedtuple("IntrinsicDictionary", "atoms codes costs")


def intrinsic_dictionary(X: ArrayLike, n_atoms: int, lam: float, *,
                         init: str | ArrayLike = "kmeans++", n_iter: int = 20, tol: float = 1e-6,
                         rng: core.Rng = None) -> IntrinsicDictionary:
    """Learn n_atoms atoms from X (n, d, p) for intrinsic_codes: (atoms, codes, costs).

    min sum_i ||sum_j y_ij log_{X_i}(D_j)||^2 + lam ||y_i||_1 subject to sum_j y_ij = 1, over codes
    and atoms, after Xie, Ho and Vemuri (ICML 2013). Each atom in turn takes a step along the
    geodesic against its Riemannian gradient, 2 sum_i y_ir log_adjoint(X_i, D_r, V_i) with
    V_i = sum_j y_ij log_{X_i}(D_j), first of the length 1 / (2 sum_i y_ir^2) that is exact in flat
    space, then halved until the cost falls enough; an atom for which it does not stays. So the cost
    never rises. Atoms tend to move outwards, since samples between them are coded exactly, until
    one is at a right angle to a sample: log jumps there, and the atom may stop short of a minimum.
    An atom that no sample uses is replaced by the sample that is coded worst. init, n_iter, tol,
    costs: as in log_euclidean_dictionary.

    >>> from grassmann_sc import comparators_learning, random_subspaces
    >>> X = random_subspaces(8, 20, 2, rng=0)
    >>> atoms, codes, costs = comparators_learning.intrinsic_dictionary(X, 3, 0.1, n_iter=2, rng=0)
    >>> atoms.shape, bool(costs[-1] < costs[0])
    ((3, 20, 2), True)
    """
    X, atoms, lam, rng = _check_problem(X, n_atoms, lam, init, rng)
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    tol = core.check_number(tol, "tol", least=0)
    samples = X.astype(np.float64)
    atoms = atoms.astype(np.float64)
    codes = _codes_of(samples, atoms, lam)
    V = _combinations(samples, atoms, codes)
    losses = _intrinsic_losses(V, codes, lam)
    costs = [losses.sum()]
    while len(costs) // 2 < n_iter and not _has_ended(costs, tol):
        atoms = np.stack([_gradient_step(samples, atom, codes[:, r], V)
                          for r, atom in enumerate(atoms)])
        losses = _intrinsic_losses(V, codes, lam)
        costs.append(losses.sum())
        idle = np.flatnonzero(~codes.any(axis=0))
        worst = np.argsort(-losses, kind="stable")[np.arange(len(idle)) % len(X)]
        atoms[idle] = samples[worst]
        new = _codes_of(samples, atoms, lam)
        new_V = _combinations(samples, atoms, new)
        after = _intrinsic_losses(new_V, new, lam)
        better = after <= losses
        codes[better] = new[better]
        V[better] = new_V[better]
        costs.append(np.where(better, after, losses).sum())
    return IntrinsicDictionary(atoms.astype(X.dtype), codes.astype(X.dtype), np.array(costs))


def _codes_of(samples, atoms, lam):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a worse code is not taken
        return comparators.intrinsic_codes(samples, atoms, lam)


def _combinations(samples, atoms, codes):
    """V_i = sum_j y_ij log_{X_i}(D_j), (n, d, p)."""
    V = np.zeros_like(samples)
    for r, atom in enumerate(atoms):
        rows = np.flatnonzero(codes[:, r])
        H, _ = intrinsic.log_of_checked(samples[rows], atom)
        V[rows] += codes[rows, r, None, None] * H
    return V


def _intrinsic_losses(V, codes, lam):
    return (V * V).sum(axis=(1, 2)) + lam * np.abs(codes).sum(axis=1)


def _gradient_step(samples, atom, y, V):
    """The atom (d, p) after a step; V (n, d, p) follows. y (n,): its coefficients."""
    rows = np.flatnonzero(y)
    if len(rows) == 0:
        return atom
    X = samples[rows]
    y = y[rows, None, None]
    H, _ = intrinsic.log_of_checked(X, atom)
    rest = V[rows] - y * H
    before = (V[rows]**2).sum()
    G = 2 * (y * intrinsic.adjoint_of_checked(X, atom, V[rows])).sum(axis=0)
    G -= atom @ (atom.T @ G)  # rounding
    slope = (G * G).sum()
    t = 1 / (2 * (y * y).sum())
    for _ in range(30):
        if t * slope <= 1e-15 * before:
            break
        trial = core.orthonormalize(intrinsic.exp_map(atom, -t * G))
        H, _ = intrinsic.log_of_checked(X, trial)
        combined = rest + y * H
        if (combined**2).sum() <= before - ARMIJO * t * slope:
            V[rows] = combined
            return trial
        t /= 2
    return atom
