"""Grassmann dictionary learning (gDL): atoms that code a set of subspaces with few coefficients.

Alternates coding and a closed-form update of one atom after another (Gauss-Seidel), after the paper's section on
dictionary learning; the cost sum_i ||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1 never rises.
"""

from collections import namedtuple

import numpy as np

import grassmann_sc as core

Learned = namedtuple("Learned", "atoms codes costs")


def init_atoms(X, n_atoms, method="kmeans++", rng=None):
    """n_atoms of the subspaces X (n, d, p) to start from, n_atoms in 1..n; (n_atoms, d, p).

    "random": drawn without repetition, as in the paper. "kmeans++": one after another, with probability proportional
    to the squared chordal distance from those already drawn, so that clusters are covered.
    """
    X = core._dictionary(X, "X")
    n_atoms = core._integer(n_atoms, "n_atoms", 1, len(X))
    rng = np.random.default_rng(rng)
    if method == "random":
        return X[rng.choice(len(X), n_atoms, replace=False)]
    if method != "kmeans++":
        raise ValueError(f"method must be 'kmeans++' or 'random', got {method!r}")
    p = X.shape[2]
    chosen = [int(rng.integers(len(X)))]
    free = np.ones(len(X))  # repeated samples are drawn only when nothing else is left
    square = np.full(len(X), np.inf)
    while len(chosen) < n_atoms:
        free[chosen[-1]] = 0
        square = np.minimum(square, np.maximum(2 * p - 2 * core._gram(X, X[chosen[-1:]])[:, 0], 0))
        weight = free * np.where(square > 1e-12, square, 0)
        weight = weight if weight.any() else free
        chosen.append(int(rng.choice(len(X), p=weight / weight.sum())))
    return X[chosen]


def update_atoms(X, D, codes):
    """Atoms D (N, d, p) updated one after another for fixed codes (n, N) of X (n, d, p); (N, d, p).

    D_r <- the p algebraically leading eigenvectors of S_r = sum_i y_ir (X_i^ - sum_{j != r} y_ij D_j^), the global
    minimiser of the cost over that atom, with the atoms before r already updated. S_r is a weighted sum of projectors,
    so the new atom is a weighted chordal mean. An atom that no sample uses (S_r = 0) stays as it is.
    """
    X, D = core._same_d(core._dictionary(X, "X"), core._dictionary(D), "XD")
    if X.shape[2] != D.shape[2]:
        raise ValueError(f"D must have the p of X, got {D.shape[2]} and {X.shape[2]}")
    codes = core._dense(core._codes(codes, len(X), len(D)))
    points = np.concatenate([X, D])  # (n + N, d, p); its tail is the present dictionary
    shared = codes.T @ codes  # (N, N)
    for r in np.flatnonzero(codes.any(axis=0)):
        weights = np.concatenate([codes[:, r], -shared[r]])
        weights[len(X) + r] = 0
        points[len(X) + r] = core._weighted_mean(points, weights)[0]
    return points[len(X):].copy()


def gdl(X, n_atoms, lam=None, *, n_neighbors=None, init="kmeans++", n_iter=20, tol=1e-6, rng=None):
    """Learn n_atoms atoms from X (n, d, p); a named tuple (atoms (n_atoms, d, p), codes (n, n_atoms), costs).

    Coding step: sparse with lam, or locality-constrained with n_neighbors (give one of them); see gsc and glc.
    init: a method of init_atoms, or atoms (n_atoms, d, p). Stops after n_iter iterations or when one lowers the cost
    by less than tol times the cost. Atoms that no sample uses are replaced by the samples coded worst.
    costs: after the first coding, then after each atom update and each coding; codes belong to the returned atoms.
    With lam no step raises the cost (to rounding); with n_neighbors the cost is the residual alone, and a coding step
    may raise it since the neighbours are not chosen to minimise it. The paper's algorithm gDL.
    """
    X = core._dictionary(X, "X")
    if (lam is None) == (n_neighbors is None):
        raise ValueError(f"give either lam or n_neighbors, got lam = {lam!r} and n_neighbors = {n_neighbors!r}")
    if np.ndim(lam):
        raise ValueError(f"lam must be a number >= 0, got {lam!r}")
    n_atoms, n_iter = core._integer(n_atoms, "n_atoms", 1, 2**62), core._integer(n_iter, "n_iter", 0, 2**62)
    if not core._finite(tol, "tol") >= 0:
        raise ValueError(f"tol must be >= 0, got {tol!r}")
    atoms = init_atoms(X, n_atoms, init, rng) if isinstance(init, str) else core._dictionary(init, "init").copy()
    if atoms.shape != (n_atoms, *X.shape[1:]):
        raise ValueError(f"init must have shape {(n_atoms, *X.shape[1:])}, got {atoms.shape}")
    X, atoms = core._same_d(X, atoms, ("X", "init"))
    K, k = _grams(X, atoms)
    codes = _code(K, k, X.shape[2], lam, n_neighbors, None)
    costs = [_losses(K, k, X.shape[2], lam, codes).sum()]
    for _ in range(n_iter):
        atoms = update_atoms(X, atoms, codes)
        unused = np.flatnonzero(~codes.any(axis=0))
        K, k = _grams(X, atoms)
        losses = _losses(K, k, X.shape[2], lam, codes)
        costs.append(losses.sum())
        if len(unused):
            atoms[unused] = X[np.argsort(-losses, kind="stable")[np.arange(len(unused)) % len(X)]]
            K, k = _grams(X, atoms)
        before, codes = codes, _code(K, k, X.shape[2], lam, n_neighbors, codes)
        if lam is not None:  # codes are solved to a tolerance: keep what was better within it
            worse = _losses(K, k, X.shape[2], lam, codes) > losses
            codes[worse] = before[worse]
        costs.append(_losses(K, k, X.shape[2], lam, codes).sum())
        if costs[-3] - costs[-1] <= tol * costs[-3]:
            break
    return Learned(atoms, codes, np.array(costs))


def kgdl(sets, n_atoms, lam=None, *, lift, **options):
    """Kernel dictionary learning: gdl on the coordinates lift.fit(sets).transform(sets), with the options of gdl.

    lift: a kernels.Lift of some kernel; fitted here, it gives the coordinates of queries, to be coded by gsc or glc over the
    atoms. Exact and monotone when all frames are landmarks, where the paper's kgDL, which keeps each atom in the span of the
    samples that use it, can raise the cost. A named tuple (atoms (n_atoms, r, p), codes, costs).
    """
    return gdl(lift.fit(sets).transform(sets), n_atoms, lam, **options)


def _grams(X, atoms):
    return core._gram(atoms, atoms, symmetric=True), core._gram(X, atoms)


def _code(K, k, p, lam, n_neighbors, init):
    if lam is None:
        return core.locality_codes(K, k, n_neighbors, norm2=p)
    return core.sparse_codes(K, k, lam, norm2=p, init=init)  # a descent from init: the cost cannot rise


def _losses(K, k, p, lam, codes):
    """Cost of each sample, in float64: ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1."""
    y = codes.astype(np.float64)
    return p + ((y @ K - 2 * k) * y).sum(axis=1) + (lam or 0) * np.abs(y).sum(axis=1)
