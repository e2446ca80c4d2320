"""Grassmann dictionary learning (gDL, kgDL): atoms that code a set of subspaces with few coefficients.

Alternates coding and a closed-form update of one atom after another (Gauss-Seidel), after the paper's section on
dictionary learning. The cost, sum_i w_i (||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1), never rises. Inside,
subspaces are rows (n, p, d), the transposes of the bases, so that a set of them is a matrix of rows of length d.
"""

import functools
import hashlib
import io
import json
import os
import tempfile
import warnings
import zipfile
from collections import namedtuple

import numpy as np
import scipy.sparse

import grassmann_sc as core

_jit = core._jit
PIECE = 2**15  # numbers of a matrix of rows that are multiplied at a time: they stay in the L2 cache
KEEP = 2**21  # numbers of rows that the update of an atom may copy
VERSION = 1  # of the files
Dictionary = namedtuple("Dictionary", "atoms lam labels")
LabelledAtoms = namedtuple("LabelledAtoms", "atoms labels")


class Learned(namedtuple("Learned", "atoms codes costs")):
    """atoms (N, d, p), their codes (n, N) and the costs: after the first coding, each atom update and each coding.

    n_iter : iterations done; n_replaced : atoms that no sample used and that were replaced, in all
    stopped : "n_iter", "tol", "callback" or "interrupted"; None while learning
    """

    def __new__(cls, atoms, codes, costs, n_replaced=0, stopped=None):
        self = super().__new__(cls, atoms, codes, costs)
        self.n_replaced, self.stopped = n_replaced, stopped
        return self

    @property
    def n_iter(self):
        return len(self.costs) // 2


# ---------------------------------------------------------------------------- first atoms


def init_atoms(X, n_atoms, method="kmeans++", rng=None, *, sample_weight=None):
    """n_atoms subspaces to start from, out of X (n, d, p), n_atoms in 1..n; (n_atoms, d, p).

    "random": samples drawn without repetition, as in the paper. "kmeans++": one after another, with probability
    proportional to the squared chordal distance from those already drawn, so that clusters are covered. "kmeans": the
    chordal means of the clusters that k-means finds from there. sample_weight (n,) >= 0 multiplies the probabilities.
    """
    X = core._dictionary(X, "X")
    n_atoms = core._integer(n_atoms, "n_atoms", 1, len(X))
    left, rng = _weights(sample_weight, len(X)).copy(), np.random.default_rng(rng)
    if method not in ("random", "kmeans++", "kmeans"):
        raise ValueError(f"method must be 'kmeans', 'kmeans++' or 'random', got {method!r}")
    if method == "kmeans":
        return gdl(X, n_atoms, coding=_nearest, tol=0, rng=rng, sample_weight=sample_weight).atoms
    p, chosen = X.shape[2], []
    square = np.ones(len(X)) if method == "random" else np.full(len(X), 2.0 * p)
    for _ in range(n_atoms):
        odds = left * np.where(square > 1e-12, square, 0)
        odds = next(w for w in (odds, left, np.isin(np.arange(len(X)), chosen, invert=True).astype(float)) if w.any())
        bounds = np.cumsum(odds)  # sample i owns the part of its odds, so that a weight draws as repetitions do
        chosen.append(int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right")))
        if method == "random":
            left[chosen[-1]] = max(left[chosen[-1]] - 1, 0)
        else:  # repeated samples are drawn only when nothing else is left
            left[chosen[-1]] = 0
            square = np.minimum(square, np.maximum(2 * p - 2 * core._gram(X, X[chosen[-1:]])[:, 0], 0))
    return X[chosen]


def _nearest(K_dd, K_xd, norm2):
    """Codes of k-means: 1 on the nearest atom."""
    codes = np.zeros_like(K_xd)
    codes[np.arange(len(codes)), K_xd.argmax(axis=1)] = 1
    return codes


def _weights(sample_weight, n):
    weights = np.ones(n) if sample_weight is None else core._finite(sample_weight, "sample_weight").astype(np.float64)
    if weights.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one a sample, got {weights.shape}")
    if weights.min() < 0 or not weights.any():
        raise ValueError(f"sample_weight must be >= 0 and not all zero, got a least weight of {weights.min()}")
    return weights


# ---------------------------------------------------------------------------- update of the atoms


def update_atoms(X, D, codes, *, sample_weight=None):
    """Atoms D (N, d, p) updated one after another for fixed codes (n, N) of X (n, d, p); (N, d, p).

    D_r <- the p algebraically leading eigenvectors of S_r = sum_i w_i y_ir (X_i^ - sum_{j != r} y_ij D_j^), the global
    minimiser of the cost over that atom, with the atoms before r already updated. No d x d matrix is formed unless d
    is small. An atom that no sample uses (S_r = 0) stays as it is.
    """
    X, D = core._same_d(core._dictionary(X, "X"), core._dictionary(D), "XD")
    if X.shape[2] != D.shape[2]:
        raise ValueError(f"D must have the p of X, got {D.shape[2]} and {X.shape[2]}")
    codes = core._codes(codes, len(X), len(D))
    return _update(_rows(X), D, codes, _weights(sample_weight, len(X)))


def _rows(X):
    """X (n, d, p) as rows (n, p, d): a contiguous copy if they are short, so that many can be multiplied at once."""
    rows = X.swapaxes(1, 2)
    return rows if rows[0].size > 2**14 else np.ascontiguousarray(rows)


def _update(samples, D, codes, weights):
    """update_atoms for samples as rows (n, p, d)."""
    codes, rows = scipy.sparse.csc_array(codes), np.array(D.swapaxes(1, 2), order="C")
    used = codes.multiply(weights[:, None]).tocsc()
    _sweep(rows, (codes.T @ used).toarray(), samples, used.indptr, used.indices, used.data)
    return np.ascontiguousarray(rows.swapaxes(1, 2))


@core._one_blas_thread
def _sweep(rows, shared, samples, starts, users, weights):
    """Update the atoms, rows (N, p, d), in place, as if one after another; those that share no sample, at the same time.

    shared : (N, N), sum_i w_i y_ir y_ij;  samples (n, q, d) : S_r takes weights[k] times the projector of samples[users[k]]
    for k in starts[r]..starts[r + 1] - 1, and -shared[r, j] times that of each other atom j
    """
    (p, d), level, coupled = rows.shape[1:], np.zeros(len(rows), int), (shared != 0) | (shared.T != 0)
    for r in np.flatnonzero(np.diag(shared) > 0):  # above all atoms before it that it shares samples with
        level[r] = 1 + level[:r][coupled[r, :r]].max(initial=0)
    starts, users = np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(users, np.int64)
    length = np.diff(starts) * samples.shape[1] + np.count_nonzero(shared, axis=1) * p
    for number in range(1, level.max(initial=0) + 1):
        atoms = np.flatnonzero(level == number)
        if samples.flags.c_contiguous and length[atoms].max() * d <= KEEP:
            core._in_threads(lambda few: _climb(rows, shared, samples, starts, users, weights, atoms[few]),
                             len(atoms), max(1, len(atoms) // 32), blas=True)
        else:
            core._in_threads(lambda one: _climb_in_pieces(rows, shared, samples, starts, users, weights, atoms[one.start]),
                             len(atoms), 1, blas=True)


@_jit
def _climb(rows, shared, samples, starts, users, weights, atoms):
    """Set each of these atoms, which share no sample, to the p algebraically leading eigenvectors of its S_r.

    An atom that is as good stays. S_r = Z^T diag(w) Z, with rows Z gathered from samples and atoms. For d up to 16 p it is
    formed; above, Rayleigh-Ritz steps are done on a space that grows from the atom and p directions of noise, which let
    it leave eigenvectors that do not lead and the range of S_r, whose eigenvalues may all be negative.
    """
    N, p, d = rows.shape
    q, step = samples.shape[1], max(1, PIECE // d)
    Q, image, H = np.empty((18 * p, d), rows.dtype), np.empty((18 * p, d), rows.dtype), np.empty((18 * p, 18 * p), rows.dtype)
    for r in atoms:
        count, n = (starts[r + 1] - starts[r]) * q + (np.count_nonzero(shared[r]) - 1) * p, 0
        Z, w = np.empty((count, d), rows.dtype), np.empty(count, rows.dtype)
        for k in range(starts[r], starts[r + 1]):
            _put(Z[n:n + q], samples[users[k]])
            w[n:n + q] = weights[k]
            n += q
        for j in range(N):
            if j != r and shared[r, j] != 0:
                _put(Z[n:n + p], rows[j])
                w[n:n + p] = -shared[r, j]
                n += p
        V, best = rows[r].copy(), np.empty_like(rows[r])
        if d <= 16 * p:
            _put(rows[r], _leading((Z.T * w) @ Z, V))
            continue
        _put(Q, V)
        k = p + _join(Q, p, _noise(p, d, r).astype(V.dtype), 0.0)
        old, start, total = k - k, -np.inf, -np.inf  # with a plain 0 Numba compiles _grow twice
        for _ in range(100):
            image[old:k] = 0
            for i in range(0, count, step):
                image[old:k] += ((Q[old:k] @ Z[i:i + step].T) * w[i:i + step]) @ Z[i:i + step]
            if old == 0:
                start = np.sum(V * image[:p])
            old, k, total = _grow(Q, image, H, old, k, best)
            if old == k and total > -np.inf:
                break
        if total > start:
            _put(rows[r], best - ((best @ best.T) @ best - best) / 2)  # as orthonormal as rounding lets it be


def _climb_in_pieces(rows, shared, samples, starts, users, weights, r):
    """_climb for one atom with all threads, and without a copy of Z: a few samples at a time are gathered and multiplied."""
    (p, d), V, mine = rows.shape[1:], rows[r].copy(), slice(starts[r], starts[r + 1])
    others = np.flatnonzero(shared[r])
    others = others[others != r]
    split = [(source, index[i:i + 8], factors[i:i + 8]) for source, index, factors in (
        (samples, users[mine], weights[mine]), (rows, others, -shared[r, others])) for i in range(0, len(index), 8)]

    def total(job):
        """Sum of job(Z, w) over pieces of Z and w."""
        def work(block):
            return sum(job(Z, w) for Z, w in _pieces(*split[block.start]))

        return sum(core._in_threads(work, len(split), 1, blas=True))

    if d <= 16 * p:
        rows[r] = _leading(total(lambda Z, w: (Z.T * w) @ Z), V)
        return
    Q, image, H = np.empty((18 * p, d), V.dtype), np.empty((18 * p, d), V.dtype), np.empty((18 * p, 18 * p), V.dtype)
    Q[:p] = V
    k = p + _join(Q, p, _noise(p, d, r).astype(V.dtype), 0.0)
    old, best = 0, np.empty_like(V)
    for _ in range(100):
        image[old:k] = total(lambda Z, w: ((Q[old:k] @ Z.T) * w) @ Z)
        if old == 0:
            start = np.vdot(V, image[:p])
        old, k, reached = _grow(Q, image, H, old, k, best)
        if old == k and reached > -np.inf:
            break
    if reached > start:
        rows[r] = best - ((best @ best.T) @ best - best) / 2


def _pieces(source, index, factors):
    """(Z (m, d), w (m,)), ...: rows of source[index] (n, q, d) and their factors; each piece is gathered when it comes up."""
    q, d = source.shape[1:]
    step = max(1, PIECE // (q * d)) if source.flags.c_contiguous else 1
    for i in range(0, len(index), step):
        few = index[i:i + step]
        Z = source[few[0]] if len(few) == 1 else source[few].reshape(-1, d)  # one alone is no copy
        yield Z, np.repeat(factors[i:i + step], q).astype(source.dtype)


@_jit
def _leading(S, V):
    """Rows (p, d): the p algebraically leading eigenvectors of S (d, d), or V (p, d) if they are no better."""
    best = np.ascontiguousarray(np.linalg.eigh(S)[1].T[::-1][:len(V)])
    return best if np.sum(best * (best @ S)) > np.sum(V * (V @ S)) else V


@_jit
def _noise(p, d, seed):
    """(p, d) numbers spread evenly in -1..1, others for each seed: fractions of the multiples that squares are of a constant."""
    k = np.arange(seed + 1000.0, seed + 1000.0 + p * d)
    return ((k * k * 0.6180339887498949) % 1 * 2 - 1).reshape(p, d)


@_jit
def _grow(Q, image, H, old, k, best):
    """A step of _climb on the orthonormal rows Q[:k], where image = Q S and H = Q S Q^T, both new from row old on.

    Sets best to the p leading Ritz vectors and adds the residuals of the 2 p leading ones to Q, but for those that are
    sure: the first p to 1e-10 (float32: 1e-6) of the largest value, the next p once they cannot rise above the first.
    Returns (old, k) of the next step, which are equal when nothing was added, and the sum of the p values.
    """
    p, eps = len(best), np.finfo(Q.dtype).eps
    tol = max(1e-10, 10 * eps)
    _put(H[old:k], image[old:k] @ Q[:k].T)
    _put(H[:, old:k], H[old:k, :old].T)
    if old < k <= 4 * p:  # two steps without Ritz vectors: noise has to turn to where S is large before it tells anything
        W, total, scale = image[old:k], -np.inf, np.max(np.abs(H[:k, :k]))
    else:
        values, vectors = np.linalg.eigh(H[:k, :k])
        theta, turn = values[::-1].copy(), np.ascontiguousarray(vectors.T[::-1])  # leading first
        lead = turn[:2 * p] @ Q[:k]
        W = turn[:2 * p] @ image[:k] - theta[:2 * p].reshape(-1, 1) * lead
        _put(best, lead[:p])
        total, scale = np.sum(theta[:p]), np.max(np.abs(theta))
        gap, norm, rest = theta[p - 1] - theta[min(p, k - 1)], np.sqrt(np.sum(W[:p]**2)), 0
        for i in range(len(W)):
            sure = tol * scale * max(gap, norm) if i < p else max(gap / 8, np.sqrt(tol) * scale)**2
            if np.sum(W[i]**2) > sure / p:
                W[rest] = W[i]
                rest += 1
        W = W[:rest]
        if k > 16 * p:  # start again from the best
            few = turn[:6 * p]
            _put(Q, few @ Q[:k])
            _put(image, few @ image[:k])
            k = len(few)
            H[:k, :k] = 0
            for i in range(k):
                H[i, i] = theta[i]
    return k, k + _join(Q, k, W, 100 * eps * scale), total


@_jit
def _join(Q, k, W, least):
    """Put orthonormal rows that span W (b, d) less the orthonormal Q[:k] into Q from row k on; returns their number.

    What is shorter than least without Q, or depends on the rows before it, is dropped.
    """
    for _ in range(2):  # twice, since rounding grows where little is left
        W = W - (W @ Q[:k].T) @ Q[:k]
        M = W @ W.T
        T, end = np.zeros_like(M), 0  # Gram-Schmidt on the products M: orthonormal rows T W
        for i in range(len(M)):
            rest, t = M[i, i], T[end]
            if rest <= least * least:
                continue
            t[i] = 1
            for j in range(end):
                share = np.sum(T[j] * M[i])
                rest -= share * share
                t -= share * T[j]
            if rest > 1e4 * np.finfo(M.dtype).eps * M[i, i]:
                t /= np.sqrt(rest)
                end += 1
            else:
                t[:] = 0
        W, least = T[:end] @ W, 0.0
    _put(Q[k:], W)
    return end


@_jit
def _put(target, source):
    """target[:len(source)] = source, which as such takes Numba seconds to compile."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


# ---------------------------------------------------------------------------- learning


def gdl(X, n_atoms, lam=None, *, n_neighbors=None, coding=None, positive=False, init="kmeans++", n_iter=20, tol=1e-6,
        unused="worst", sample_weight=None, rng=None, callback=None, progress=False, checkpoint=None, resume=None):
    """Learn n_atoms atoms from X (n, d, p): the paper's algorithm gDL; returns Learned (atoms, codes, costs).

    lam, n_neighbors : give one of them: sparse or locality-constrained coding, see gsc and glc
    coding : "sparse" or "local" to say so, or a function (K_dd, K_xd, norm2=p) -> codes (n, N) in their place
    positive : sparse codes >= 0
    init : a method of init_atoms, or atoms (n_atoms, d, p)
    n_iter, tol : stops after n_iter iterations or when one lowers the cost by at most tol times the cost
    unused : what becomes of an atom that no sample uses: "worst", the sample coded worst takes its place; "random", a
        random sample; "keep"
    sample_weight : (n,) >= 0, factors of the samples' costs; an integer weight acts as repetition, 0 as absence
    callback : called with what is Learned so far after each iteration; a true result stops
    progress : show a bar, with the cost (needs tqdm)
    checkpoint : path of a file that is replaced, whole, after each iteration
    resume : path of a checkpoint of the same problem to go on from, to the bits of an uninterrupted run; rng and init
        are then the file's

    With lam no half-step raises the cost, to rounding. Otherwise the cost is the residual alone, and a coding step may
    raise it since its codes are not chosen to minimise it. Ctrl-C returns the best so far, with a warning.
    """
    X = core._dictionary(X, "X")
    n_atoms, n_iter = core._integer(n_atoms, "n_atoms", 1, core.ANY), core._integer(n_iter, "n_iter", 0, core.ANY)
    if not core._number(tol, "tol") >= 0:
        raise ValueError(f"tol must be >= 0, got {tol!r}")
    weights, rng = _weights(sample_weight, len(X)), np.random.default_rng(rng)
    code = _coding_step(lam, n_neighbors, coding, positive)
    bar = _bar(n_iter) if progress else None
    key = _key(X, weights, n_atoms, lam, n_neighbors, coding, positive, unused) if checkpoint or resume else None
    if resume:
        state = _read_checkpoint(resume, key, rng)
        learner = _Learner(X, weights, code, lam, unused, rng)
    else:
        atoms = init
        if isinstance(init, str):
            atoms = init_atoms(X, n_atoms, init, rng, sample_weight=weights)
        atoms = core._dictionary(atoms, "init")
        if atoms.shape != (n_atoms, *X.shape[1:]):
            raise ValueError(f"init must have shape {(n_atoms, *X.shape[1:])}, got {atoms.shape}")
        X, atoms = core._same_d(X, atoms, ("X", "init"))
        learner = _Learner(X, weights, code, lam, unused, rng)
        state = learner.start(np.array(atoms, order="C"))
    return _iterate(learner, state, n_iter, tol, callback, bar, checkpoint, key)


def _iterate(learner, state, n_iter, tol, callback, bar, checkpoint, key):
    """Iterations from state until one of the reasons to stop; a state is never changed, so that each is whole."""
    best, stopped = state, None
    try:
        if checkpoint and state.n_iter == 0:
            _write_checkpoint(checkpoint, key, state, learner.rng)
        while stopped is None:
            costs = state.costs
            if len(costs) > 2 and costs[-3] - costs[-1] <= tol * costs[-3]:
                stopped = "tol"
            elif state.n_iter >= n_iter:
                stopped = "n_iter"
            else:
                state = learner.step(state)
                best = state if state.costs[-1] <= best.costs[-1] else best
                if checkpoint:
                    _write_checkpoint(checkpoint, key, state, learner.rng)
                if bar is not None:
                    bar.update(state.n_iter - bar.n)
                    bar.set_postfix(cost=f"{state.costs[-1]:.6g}")
                if callback is not None and callback(state):
                    stopped = "callback"
    except KeyboardInterrupt:
        state, stopped = best, "interrupted"
        warnings.warn(f"interrupted: the best dictionary so far is returned, after {state.n_iter} of {n_iter} iterations",
                      stacklevel=3)
    finally:
        if bar is not None:
            bar.close()
    return Learned(*state, state.n_replaced, stopped)


class _Learner:
    """The samples, the coding step and the policy: what stays the same from one iteration to the next."""

    def __init__(self, X, weights, code, lam, unused, rng):
        if unused not in ("worst", "random", "keep"):
            raise ValueError(f"unused must be 'worst', 'random' or 'keep', got {unused!r}")
        self.X, self.samples, self.weights, self.p = X, _rows(X), weights, X.shape[2]
        self.code, self.lam, self.unused, self.rng = code, lam or 0, unused, rng

    @core._one_blas_thread
    def start(self, atoms):
        K, k = _grams(self.X, atoms)
        codes = self.code(K, k, self.p, None)
        return Learned(atoms, codes, np.array([self.weights @ _losses(K, k, self.p, self.lam, codes)]))

    @core._one_blas_thread
    def step(self, state):
        """The state after one update of the atoms and one coding; the Gram matrices serve the cost of both."""
        atoms, codes = _update(self.samples, state.atoms, state.codes, self.weights), state.codes
        K, k = _grams(self.X, atoms)
        losses = _losses(K, k, self.p, self.lam, codes)
        idle = np.flatnonzero(~codes[self.weights > 0].any(axis=0) & (self.unused != "keep"))
        if len(idle):
            atoms[idle] = self.X[self._replacements(len(idle), losses)]
            K, k = _grams(self.X, atoms)
        new = self.code(K, k, self.p, codes)
        after = _losses(K, k, self.p, self.lam, new)
        if self.code.descends:  # codes are solved to a tolerance: keep what was better within it
            worse = after > losses
            new[worse], after[worse] = codes[worse], _losses(K, k[worse], self.p, self.lam, codes[worse])
        costs = np.append(state.costs, [self.weights @ losses, self.weights @ after])
        return Learned(atoms, new, costs, state.n_replaced + len(idle))

    def _replacements(self, count, losses):
        if self.unused == "random":
            return self.rng.choice(len(self.X), count, p=self.weights / self.weights.sum())
        return _worst(self.X, np.where(self.weights > 0, losses, -np.inf), count)


def _worst(X, losses, count):
    """Indices of count samples of the largest losses, no two of them equal as long as others are left."""
    chosen, left, p = [], losses.copy(), X.shape[2]
    for _ in range(count):
        if not (left > -np.inf).any():
            left = losses.copy()
        chosen.append(int(left.argmax()))
        left[core._gram(X, X[chosen[-1:]])[:, 0] > p * (1 - 1e3 * np.finfo(X.dtype).eps)] = -np.inf
    return chosen


def _coding_step(lam, n_neighbors, coding, positive):
    """The function (K_dd, K_xd, p, codes before or None) -> codes; its attribute descends: it never raises the cost."""
    name = coding if coding is None or callable(coding) else str(coding)
    if name not in (None, "sparse", "local") and not callable(name):
        raise ValueError(f"coding must be 'sparse', 'local' or a function, got {coding!r}")
    if np.ndim(lam):
        raise ValueError(f"lam must be a number >= 0, got {lam!r}")
    if callable(name):
        if n_neighbors is not None or positive:
            raise ValueError("n_neighbors and positive must be left to the function when coding is one")

        def code(K, k, p, before):
            return core._dense(core._codes(coding(K, k, norm2=p), *k.shape, "coding(K_dd, K_xd, norm2=p)")).astype(k.dtype)
    elif (lam is None) == (n_neighbors is None):
        raise ValueError(f"give either lam or n_neighbors, got lam = {lam!r} and n_neighbors = {n_neighbors!r}")
    elif name not in (None, "local" if lam is None else "sparse"):
        raise ValueError(f"coding = {coding!r} needs {'lam' if lam is None else 'n_neighbors'}, got lam = {lam!r}, "
                         f"n_neighbors = {n_neighbors!r}")
    elif lam is None:
        if positive:
            raise ValueError("positive must be left out with n_neighbors: it belongs to sparse coding")

        def code(K, k, p, before):
            return core.locality_codes(K, k, n_neighbors, norm2=p)
    else:
        def code(K, k, p, before):  # a descent from the codes before: the cost cannot rise
            return core.sparse_codes(K, k, lam, norm2=p, init=before, positive=positive)
    code.descends = lam is not None and not callable(name)
    return code


def _grams(X, atoms):
    return core._gram(atoms, atoms, symmetric=True), core._gram(X, atoms)


def _losses(K, k, p, lam, codes):
    """Cost of each sample, in float64: ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1."""
    losses = np.empty(len(k))

    def job(rows):
        y = codes[rows].astype(np.float64)
        losses[rows] = p + ((y @ K - 2 * k[rows]) * y).sum(axis=1) + lam * np.abs(y).sum(axis=1)

    core._in_threads(job, len(k), 512, blas=True)
    return losses


def _bar(total):
    try:
        from tqdm import tqdm
    except ImportError as error:
        raise ImportError("progress needs tqdm: pip install 'grassmann_sc_kit[progress]'") from error
    return tqdm(total=total, desc="gdl", unit="iteration")


def kgdl(sets, n_atoms, lam=None, *, lift, **options):
    """gDL in a kernel's feature space (the paper's kgDL): gdl with its options on lift.fit(sets).transform(sets).

    sets : sequence of sets of frames (n_frames, d);  lift : an object such as kernels.Lift(kernel, p), with
    fit(sets) -> itself and transform(sets) -> (n, r, p) orthonormal coordinates, of the queries too. In coordinates for
    the span of all training frames the update is exact and the cost never rises, while atoms held in the span of the
    samples that use them, as printed in the paper, may raise it. Returns Learned, atoms (n_atoms, r, p).
    """
    return gdl(lift.fit(sets).transform(sets), n_atoms, lam, **options)


def class_dictionaries(X, y, atoms_per_class, lam=None, *, rng=None, sample_weight=None, **options):
    """A small dictionary for each class: LabelledAtoms (atoms (N, d, p), labels (N,)), classes in order.

    For residual classification (class_residuals, classify) with fewer atoms than samples. X (n, d, p), y (n,) labels;
    atoms_per_class : an integer, or a mapping from class to integer; a class of fewer samples gets that many atoms.
    lam, rng, sample_weight and options as in gdl, which learns each class on its own.
    """
    X, rng = core._dictionary(X, "X"), np.random.default_rng(rng)
    classes, index = core._classes(y, len(X))
    weights, atoms, labels = _weights(sample_weight, len(X)), [], []
    for c in range(len(classes)):
        mine = np.flatnonzero((index == c) & (weights > 0))
        wanted = atoms_per_class[classes[c]] if hasattr(atoms_per_class, "keys") else atoms_per_class
        count = min(core._integer(wanted, "atoms_per_class", 1, core.ANY), len(mine))
        if count:
            atoms.append(gdl(X[mine], count, lam, rng=rng, sample_weight=weights[mine], **options).atoms)
            labels += [c] * count
    return LabelledAtoms(np.concatenate(atoms), classes[labels])


# ---------------------------------------------------------------------------- streams


class OnlineGDL:
    """gDL on a stream of batches, in memory that does not grow: partial_fit(batch), or fit on an array or np.memmap.

    Each batch is coded, then every atom is updated from statistics of all batches so far: Y^T Y exactly, and
    sum_i y_ir X_i^ for each atom r as its rank eigenvectors of largest absolute eigenvalue (default 8 p).

    lam, n_neighbors, coding, positive, init, rng : as in gdl; init draws from the first batches, until n_atoms
        samples have come
    forgetting : statistics are multiplied by (1 - 1/t)^forgetting before batch t, so that codes over early atoms
        fade; 0 keeps all
    Attributes: atoms (N, d, p), None before the first update; cost, per sample, of the last batch before its update;
    n_batches; n_replaced. An atom that batches have left unused is replaced by the sample of the batch coded worst.
    """

    def __init__(self, n_atoms, lam=None, *, n_neighbors=None, coding=None, positive=False, init="kmeans++", rank=None,
                 forgetting=2.0, rng=None):
        self.n_atoms = core._integer(n_atoms, "n_atoms", 1, core.ANY)
        self.rank = None if rank is None else core._integer(rank, "rank", 1, core.ANY)
        self.forgetting = core._number(forgetting, "forgetting")
        if self.forgetting < 0:
            raise ValueError(f"forgetting must be >= 0, got {forgetting!r}")
        self.code, self.lam = _coding_step(lam, n_neighbors, coding, positive), lam
        self.init, self.rng = init, np.random.default_rng(rng)
        self.atoms, self.cost, self.n_batches, self.n_replaced, self._waiting = None, None, 0, 0, []

    def fit(self, X, batch_size=256, n_epochs=1):
        """partial_fit on batches of X (n, d, p), in random order, read as they come up; or on each batch of an iterable."""
        batch_size = core._integer(batch_size, "batch_size", 1, core.ANY)
        n_epochs = core._integer(n_epochs, "n_epochs", 1, core.ANY)
        if not hasattr(X, "shape") and iter(X) is X and n_epochs > 1:
            raise ValueError(f"X must be an array or can be iterated once only: n_epochs must be 1, got {n_epochs}")
        for _ in range(n_epochs):
            if hasattr(X, "shape"):
                order = self.rng.permutation(len(X))
                batches = (X[np.sort(order[i:i + batch_size])] for i in range(0, len(X), batch_size))
            else:
                batches = X
            for batch in batches:
                self.partial_fit(batch)
        if self.atoms is None:
            raise ValueError(f"X must hold at least n_atoms = {self.n_atoms} samples")
        return self

    @core._one_blas_thread
    def partial_fit(self, X, sample_weight=None):
        """Learn from one more batch X (n, d, p) with weights (n,) >= 0; returns self."""
        X = core._dictionary(X, "X")
        weights = _weights(sample_weight, len(X))
        if self.atoms is None:
            X, weights = self._begin(X[weights > 0], weights[weights > 0])
            if X is None:
                return self
        if X.shape[1:] != self.atoms.shape[1:]:
            raise ValueError(f"X must have the d and p of the atoms, {self.atoms.shape[1:]}, got {X.shape[1:]}")
        X, p = X.astype(self.atoms.dtype, copy=False), X.shape[2]
        K, k = _grams(X, self.atoms)
        codes = self.code(K, k, p, None)
        losses = _losses(K, k, p, self.lam or 0, codes)
        self.cost = float(weights @ losses / weights.sum())
        self.n_batches += 1
        self._collect(X, codes, weights)
        self._update()
        idle = np.flatnonzero(np.diag(self._shared) <= 1e-6 * np.diag(self._shared).max())
        if len(idle):
            self.atoms[idle] = X[_worst(X, np.where(weights > 0, losses, -np.inf), len(idle))]
            self._shared[idle], self._shared[:, idle], self._sizes[idle], self._factor[idle] = 0, 0, 0, 0
            self.n_replaced += len(idle)
        return self

    def _begin(self, X, weights):
        """First atoms, once the batches hold enough samples for them: the samples that waited and their weights."""
        self._waiting.append((X, weights))
        X, weights = (np.concatenate(part) for part in zip(*self._waiting))
        if isinstance(self.init, str):
            if len(X) < self.n_atoms:
                return None, None
            self.atoms = init_atoms(X, self.n_atoms, self.init, self.rng, sample_weight=weights)
        else:
            self.atoms = np.array(core._dictionary(self.init, "init"), X.dtype, order="C")
            if self.atoms.shape != (self.n_atoms, *X.shape[1:]):
                raise ValueError(f"init must have shape {(self.n_atoms, *X.shape[1:])}, got {self.atoms.shape}")
        (N, d, p), self._waiting = self.atoms.shape, []
        rank = min(d, self.rank or 8 * p)
        self._shared, self._factor, self._sizes = np.zeros((N, N)), np.zeros((N, rank, d), X.dtype), np.zeros((N, rank))
        return X, weights

    def _collect(self, X, codes, weights):
        """Forget a little, then add the batch to Y^T Y and to the low-rank factors: part r = factor^T diag(sizes) factor."""
        fade = (1 - 1 / self.n_batches) ** self.forgetting if self.n_batches > 1 else 1.0
        used, rows, rank = codes * weights[:, None], _rows(X), self._factor.shape[1]
        self._shared = fade * self._shared + codes.T @ used
        self._sizes *= fade

        def job(block):
            for r in range(block.start, block.stop):
                index = np.flatnonzero(used[:, r])
                for Z, w in _pieces(rows, index, used[index, r]):
                    Q, R = np.linalg.qr(np.concatenate([self._factor[r], Z]).T)
                    values, vectors = np.linalg.eigh((R * np.concatenate([self._sizes[r], w])) @ R.T)
                    top = np.argsort(-np.abs(values), kind="stable")[:rank]
                    self._factor[r], self._sizes[r] = (Q @ vectors[:, top]).T, values[top]

        core._in_threads(job, len(self.atoms), 1, blas=True)

    def _update(self):
        (N, rank, d), rows = self._factor.shape, np.array(self.atoms.swapaxes(1, 2), order="C")
        every = np.arange(N * rank + 1)
        _sweep(rows, self._shared, self._factor.reshape(-1, 1, d), every[::rank], every[:-1], self._sizes.ravel())
        self.atoms = np.ascontiguousarray(rows.swapaxes(1, 2))


# ---------------------------------------------------------------------------- files


def save(path, atoms, *, lam=None, labels=None):
    """Write atoms (N, d, p), or anything that has .atoms, with the lam they were learned for and their labels (N,).

    The file is an .npz of plain arrays under exactly this path, replaced whole or not at all; labels must be numbers,
    strings or bools.
    """
    labels = getattr(atoms, "labels", None) if labels is None else labels
    atoms = core._dictionary(getattr(atoms, "atoms", atoms), "atoms")
    arrays = {"atoms": atoms}
    if lam is not None:
        arrays["lam"] = np.array(core._number(lam, "lam"))
        if arrays["lam"] < 0:
            raise ValueError(f"lam must be >= 0, got {lam!r}")
    if labels is not None:
        core._classes(labels, len(atoms))
        arrays["labels"] = np.asarray(labels)
        if arrays["labels"].dtype.kind not in "biufUS":
            raise TypeError(f"labels must be numbers, strings or bools in a file, got dtype {arrays['labels'].dtype}")
    _write(path, "dictionary", arrays)


def load(path):
    """Dictionary (atoms, lam, labels) of a file that save wrote; lam and labels are None where none were given.

    Nothing in the file is executed, and no more memory is taken than the file is long. ValueError if it is damaged,
    truncated or of another kind.
    """
    arrays = _read(path, "dictionary", {"atoms": "f", "lam": "f", "labels": "biufUS"}, {"atoms"})
    atoms, lam, labels = arrays["atoms"], arrays.get("lam"), arrays.get("labels")
    try:
        atoms = core._dictionary(atoms, "atoms")
        if lam is not None and (lam.shape != () or not 0 <= lam < np.inf):
            raise ValueError(f"lam must be one number >= 0, got {lam!r}")
        if labels is not None and labels.shape != (len(atoms),):
            raise ValueError(f"labels must have shape ({len(atoms)},), got {labels.shape}")
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return Dictionary(atoms, None if lam is None else float(lam), labels)


def _key(X, weights, *options):
    """Fingerprint of a learning problem: its samples, weights and options."""
    digest = hashlib.sha256(repr((X.shape, X.dtype.str, options)).encode())
    for sample in (*X, weights):
        digest.update(np.ascontiguousarray(sample))
    return digest.hexdigest()


def _write_checkpoint(path, key, state, rng):
    state_of = json.dumps(rng.bit_generator.state, default=lambda array: array.tolist())
    _write(path, "checkpoint", {"key": np.array(key), "rng": np.array(state_of), "atoms": state.atoms, "codes": state.codes,
                                "costs": state.costs, "n_replaced": np.array(state.n_replaced)})


def _read_checkpoint(path, key, rng):
    """The state in a checkpoint of the problem that key stands for; rng takes the state that it had."""
    kinds = {"key": "U", "rng": "U", "atoms": "f", "codes": "f", "costs": "f", "n_replaced": "i"}
    arrays = _read(path, "checkpoint", kinds, set(kinds))
    if str(arrays["key"]) != key:
        raise ValueError(f"resume must be a checkpoint of the same samples, weights and options: {path} is of others")
    try:
        rng.bit_generator.state = json.loads(str(arrays["rng"]))
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"resume must be given the kind of rng that {path} holds: {error}") from None
    return Learned(arrays["atoms"], arrays["codes"], arrays["costs"], int(arrays["n_replaced"]))


def _write(path, kind, arrays):
    """An .npz of arrays at path, whole or not at all; its comment is the SHA-256 of all that stands before."""
    path = os.path.abspath(path)
    handle, unfinished = tempfile.mkstemp(dir=os.path.dirname(path), prefix=os.path.basename(path), suffix=".unfinished")
    try:
        with os.fdopen(handle, "w+b") as file:
            np.savez(file, format=kind, version=VERSION, **arrays)
            with zipfile.ZipFile(file, "a") as archive:
                archive.comment = bytes(64)
            length = file.seek(0, os.SEEK_END) - 64
            digest = _digest(file, length)
            file.seek(length)
            file.write(digest)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise


def _digest(file, length):
    """Hexadecimal SHA-256 of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    for start in range(0, length, 2**20):
        digest.update(file.read(min(2**20, length - start)))
    return digest.hexdigest().encode()


def _read(path, kind, kinds, needed):
    """Arrays of a file that _write wrote: names and dtype kinds as in kinds. Sizes are checked before memory is taken."""
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
                extra, missing = set(members) - {"format", "version", *kinds}, {"format", "version", *needed} - set(members)
                if extra or missing or len(members) < len(archive.infolist()):
                    raise ValueError(f"it must hold {', '.join(sorted({*needed, 'format', 'version'}))} once each: missing "
                                     f"{', '.join(sorted(missing)) or 'none'}, unknown {', '.join(sorted(extra)) or 'none'}")
                length = file.seek(0, os.SEEK_END) - 64
                if _digest(file, max(length, 0)) != archive.comment:
                    raise ValueError("its bytes are not those that were written (SHA-256)")
                every = {"format": "U", "version": "i", **kinds}
                arrays = {name: _member(archive, info, every[name]) for name, info in members.items()}
        except (ValueError, zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, OSError, SyntaxError) as error:
            raise ValueError(f"{path} must be a {kind} that this module wrote; it is damaged or another file: {error}") from None
    if arrays["version"].shape or str(arrays["format"]) != kind or int(arrays["version"]) != VERSION:
        raise ValueError(f"{path} must be a {kind} of format version {VERSION}, "
                         f"got a {arrays['format']} of version {arrays['version']}")
    return {name: arrays[name] for name in arrays if name in kinds}


def _member(archive, info, kind):
    """One array of an .npz, if it is stored as it is, has a dtype of the kind, and is as long as its header says."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"{info.filename} must be stored without compression")
    with archive.open(info) as member:
        data = member.read(info.file_size)
    content = io.BytesIO(data)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, fortran, dtype = read[np.lib.format.read_magic(content)](content)
    if dtype.hasobject or dtype.kind not in kind:
        raise ValueError(f"{info.filename} must have a dtype of kind {kind!r}, got {dtype}")
    size = dtype.itemsize * functools.reduce(int.__mul__, shape, 1)
    if size != len(data) - content.tell() or fortran:
        raise ValueError(f"{info.filename} declares {shape} of {dtype}, which is {size} bytes, "
                         f"and holds {len(data) - content.tell()}")
    return np.frombuffer(data, dtype, offset=content.tell()).reshape(shape).copy()
