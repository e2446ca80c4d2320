"""Grassmann dictionary learning (gDL, kgDL): atoms that code subspaces with few
coefficients.

Alternates coding and a closed-form update of one atom after another (Gauss-Seidel),
after the section on dictionary learning in Harandi et al. 2015. The cost sum_i w_i
(||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1) never rises. Inside, the memory of
subspaces is rows (n, p, d), the transposes of the bases, so that a set of them is a
matrix of rows of length d; atoms (N, d, p) are views of theirs. Checkpoints need
files.py beside this one.
"""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = ["gdl", "kgdl", "class_dictionaries", "init_atoms", "update_atoms"]

jit = core.jit
FAR = 5000  # added to exponents of 2, it makes those of all doubles positive
SHORT = 2**14  # numbers of a basis that is gathered from a copy of all
# compiled code reads the constants of its own file alone
ONE_THREAD = shared.ONE_THREAD
ALL_THREADS = 2**40
LARGE = 2**21  # numbers of an update from which the threads of BLAS earn their start
DENSE = 16  # times p is the largest d for which S_r is formed
SURE = 1e-10  # relative error of the eigenvalues of an updated atom
PANEL = 16  # rows of X_i^ that are made at a time
CANDIDATES = 64  # samples that are drawn at a time to become first atoms, or more
METHODS = ("kmeans", "kmeans++", "random")  # of init_atoms
PRODUCTS = 2**21  # of candidates with all samples that are held at a time


# ----------------------------------------------------------------------------- learning


def atoms_in_words(atoms):
    """What atoms (N, d, p) are, in words."""
    N, d, p = atoms.shape
    return f"{N} atoms of dimension {p} in R^{d}"


class Noted:
    """Makes a named tuple that notes more than its fields: attributes, given by name."""

    def __new__(cls, *fields, **notes):
        self = super().__new__(cls, *fields)
        vars(self).update(notes)
        return self

    def _replace(self, **fields):
        return type(self)(*super()._replace(**fields), **vars(self))


class Learned(Noted, namedtuple("Learned", "atoms codes costs")):
    """atoms (N, d, p), their codes (n, N), and costs.

    costs holds that of the first codes, then two an iteration: the cost after the
    update of the atoms and after the coding. n_iter: iterations done; n_replaced: atoms
    that no sample used and that were replaced, in all; lam: the lambda in use, None
    without; stopped: "n_iter", "tol", "callback" or "interrupted", None while learning.
    """

    n_replaced: int = 0
    stopped: str | None = None
    lam: float | None = None

    @property
    def n_iter(self) -> int:
        return len(self.costs) // 2

    def __repr__(self) -> str:
        cost = f"cost {self.costs[-1]:.6g}" if len(self.costs) else "no cost"
        lam = "" if self.lam is None else f", lam={self.lam:.3g}"
        stopped = "" if self.stopped is None else f", stopped by {self.stopped!r}"
        return (
            f"Learned({atoms_in_words(self.atoms)}; codes of {self.codes.shape[0]} samples; "
            f"{cost} after {self.n_iter} iterations{lam}{stopped})"
        )


def gdl(
    X: ArrayLike,
    n_atoms: int,
    lam: float | None = None,
    *,
    n_neighbors: int | None = None,
    coding: Callable | None = None,
    lam_scale: str | None = None,
    positive: bool = False,
    init: str | ArrayLike = "kmeans++",
    n_iter: int = 20,
    tol: float = 1e-6,
    sample_weight: ArrayLike | None = None,
    rng: core.Rng = None,
    callback: Callable | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike | None = None,
    resume: str | os.PathLike | None = None,
) -> Learned:
    """Learn n_atoms atoms from X (n, d, p), the paper's gDL (Eq. 24, Algorithm 4).

    Returns Learned (atoms, codes, costs). X may hold weighted subspaces
    (subspaces.weighted). Atoms are subspaces then, of the p of init, else of the median
    of (trace X^)^2, which is p of p equal weights; or weighted subspaces of at most p
    directions where init holds such, as some of X, which explain weighted samples far
    better: update_atoms.
    lam, n_neighbors: give one of them, for sparse or locality-constrained coding, see
    gsc and glc.
    coding: instead, a function (K_dd, K_xd, norm2=p) -> codes (n, N). lam_scale="max":
    lambda is lam times the median of the samples' lam_max over the first atoms, the
    same for all; the result's lam tells it.
    positive: sparse codes >= 0.
    init: a method of init_atoms, or atoms (n_atoms, d, p).
    n_iter, tol: stops after n_iter iterations, or one that lowers the cost by at most
    tol times it.
    An atom that no sample uses is replaced by the sample coded worst.
    sample_weight: (n,) >= 0, factors of the samples' costs; an integer weight acts as
    repetition, 0 as absence.
    callback: called with what is Learned so far after each iteration; a true result
    stops.
    progress: tell how far it is, and the cost, on stderr.
    checkpoint: path of a file that is replaced, whole, after each iteration.
    resume: path of a checkpoint of the same problem to go on from, to the bits of an
    uninterrupted run; init is then the file's.

    With lam no half-step raises the cost, to rounding. Otherwise the cost is the
    residual alone, and a coding step may raise it since its codes are not chosen to
    minimise it. Ctrl-C in an iteration, which would lose it, returns the best so far,
    with a warning.

    See also kgdl, streams.OnlineGDL for a stream, class_dictionaries for labels,
    files.save.

    ValueError for X that is neither bases nor weighted subspaces, numbers out of range,
    an init of another shape, or both or neither of lam and n_neighbors; TypeError for
    what is no number.

    >>> import numpy as np
    >>> from grassmann_sc import learn, random_subspaces
    >>> X = np.tile(random_subspaces(2, 8, 2, rng=0), (5, 1, 1))  # ten samples at two places
    >>> learned = learn.gdl(X, n_atoms=2, lam=0.2, rng=0)
    >>> learned.atoms.shape, learned.codes.shape, round(float(learned.costs[-1]), 6)
    ((2, 8, 2), (10, 2), 1.95)
    """
    X = core.check_dictionary(X, "X", weighted=True)
    n_atoms = core.check_integer(n_atoms, "n_atoms", 1)
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    tol = core.check_number(tol, "tol", least=0)
    weights = check_weights(sample_weight, len(X))
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function or None, got {callback!r}")
    rng = core.check_rng(rng)
    coder = checked_coder(n_atoms, lam, n_neighbors, coding, lam_scale, positive)
    record = None
    if checkpoint is not None or resume is not None:
        from grassmann_sc import files

        record = files.Checkpoint(
            checkpoint, resume, [X, weights[None]], [n_atoms, *coder]
        )
    if resume is None:
        atoms = first_atoms(X, n_atoms, init, rng, weights)
    else:
        state = _read_state(record)
        coder = coder._replace(lam=state.lam, lam_scale=None)
        atoms = state.atoms
    X, atoms = core.same_dimension(X, atoms, ("X", "atoms"))
    learner = _Learner(as_rows(X).swapaxes(1, 2), weights, coder)
    with shared.progress_line(progress, n_iter, "gdl, iterations") as move:
        if resume is None:
            learner, state = learner.started(atoms)
        return _iterate(learner, state, n_iter, tol, callback, move, record)


def _finished(learned):
    """What gdl learned as a part of more; the Ctrl-C that stopped it stops the whole."""
    if learned.stopped == "interrupted":
        raise KeyboardInterrupt
    return learned


def _iterate(learner, state, n_iter, tol, callback, move, record):
    """Iterations until a reason to stop.

    A state is never changed, so that each is whole.
    """
    best = state
    stopped = None
    move(state.n_iter)
    try:
        if state.n_iter == 0:
            _write_state(record, state)
        while stopped is None:
            costs = state.costs
            if len(costs) > 2 and costs[-3] - costs[-1] <= tol * abs(costs[-3]):
                stopped = "tol"
            elif state.n_iter >= n_iter:
                stopped = "n_iter"
            else:
                state = learner.step(state)
                if state.costs[-1] <= best.costs[-1]:
                    best = state
                _write_state(record, state)
                move(1, state.costs[-1])
                if callback is not None and callback(state):
                    stopped = "callback"
    except KeyboardInterrupt:
        stopped = "interrupted"
        state = best
        core.warn(
            "interrupted: the best dictionary so far is returned, after "
            f"{state.n_iter} of {n_iter} iterations"
        )
    return Learned(
        np.ascontiguousarray(state.atoms),
        state.codes,
        state.costs,
        n_replaced=state.n_replaced,
        lam=state.lam,
        stopped=stopped,
    )


class _Learner(namedtuple("_Learner", "X weights coder")):
    """What stays the same from one iteration to the next: samples and coding."""

    @property
    def norm2(self):
        """||X^||_F^2 of the samples."""
        return core.squared_norm(self.X)

    def started(self, atoms):
        """The learner with lambda itself, and its state over first atoms."""
        atoms = copied_rows(sharpened(atoms)).swapaxes(1, 2)
        K, k = self._grams(atoms)
        learner = self._replace(coder=self.coder.scaled(k, self.weights))
        codes = learner.coder.code(K, k, self.norm2)
        costs = np.array([self.weights @ learner._losses(K, k, codes)])
        return learner, Learned(atoms, codes, costs, lam=learner.coder.lam)

    def step(self, state):
        """The state after one update of the atoms and one coding.

        The Gram matrices, made once for the new atoms, serve the cost of both.
        """
        codes = state.codes
        rows = copied_rows(state.atoms)
        _update(self.X.swapaxes(1, 2), rows, codes, self.weights)
        atoms = rows.swapaxes(1, 2)
        K, k = self._grams(atoms)
        losses = self._losses(K, k, codes)
        idle, worst = idle_and_worst(
            codes[self.weights > 0].any(axis=0),
            self.X,
            np.where(self.weights > 0, losses, -np.inf),
        )
        if len(idle):
            atoms[idle] = self._closest(self.X[worst], atoms)
            K, k = self._grams(atoms)
            losses = self._losses(K, k, codes)  # others where a sample has no weight
        new = self.coder.code(K, k, self.norm2, codes)
        after = self._losses(K, k, new)
        if self.coder.function is None and self.coder.lam is not None:
            # no coding raises the cost, but to the tolerance of codes: keep what was
            # better
            worse = after > losses
            new[worse] = codes[worse]
            after[worse] = losses[worse]
        costs = np.append(state.costs, [self.weights @ losses, self.weights @ after])
        return Learned(
            atoms, new, costs, n_replaced=state.n_replaced + len(idle), lam=state.lam
        )

    @staticmethod
    def _closest(X, atoms):
        """The points closest to X of the kind and shape of the atoms."""
        p = atoms.shape[2]
        if shared.are_bases(atoms):
            return sharpened(closest_subspaces(X, p))
        longest = _longest_columns(X, p)
        norm = np.linalg.norm(np.einsum("ndr,ndr->nr", longest, longest), axis=1)
        return longest / np.sqrt(norm)[:, None, None]

    def _grams(self, atoms):
        """<D_i^, D_j^> (N, N) and <X_i^, D_j^> (n, N)."""
        return core.bases_gram(atoms), core.bases_gram(self.X, atoms)

    def _losses(self, K, k, codes):
        return sample_losses(K, k, codes, self.norm2, self.coder.lam)


def sample_losses(K, k, codes, norm2, lam):
    """Cost of each sample, in float64: ||X^ - sum_j y_j D_j^||_F^2 + lam ||y||_1.

    norm2: ||X^||_F^2, of all samples.
    """
    losses = np.empty(len(k))

    def write(rows):
        _write_losses(K, k[rows], codes[rows], float(norm2), lam or 0.0, losses[rows])

    core.run_blocks(write, len(k), 512)
    return losses


@jit
def _write_losses(K, k, codes, norm2, lam, losses):
    support = np.empty(len(K), np.int64)
    for i in range(len(codes)):
        m = 0
        for j in range(len(K)):
            if codes[i, j] != 0:
                support[m] = j
                m += 1
        losses[i] = norm2
        for a in range(m):
            j = support[a]
            product = -2.0 * k[i, j]
            for b in range(m):
                product += np.float64(K[j, support[b]]) * codes[i, support[b]]
            losses[i] += product * codes[i, j] + lam * abs(codes[i, j])


def idle_and_worst(use, X, losses):
    """Indices of atoms of next to no use, and of as many samples of large losses.

    use (N,) >= 0 is of the atoms, losses (n,) of the samples X (n, d, p). No two
    samples are equal as long as others are left.
    """
    idle = np.flatnonzero(use <= 1e-6 * use.max())
    chosen = []
    left = losses.copy()
    equal = core.squared_norm(X) * (1 - 1e3 * np.finfo(X.dtype).eps)
    for _ in idle:
        if not (left > -np.inf).any():
            left = losses.copy()
        chosen.append(int(left.argmax()))
        left[core.bases_gram(X, X[chosen[-1:]])[:, 0] > equal] = -np.inf
    return idle, chosen


class Coder(namedtuple("Coder", "function lam n_neighbors lam_scale positive")):
    """How samples are coded: sparse with lam, local with n_neighbors, or by a function."""

    def scaled(self, k, weights):
        """The same with lambda itself, if lam is relative to lam_max.

        k: (n, N).
        """
        if self.lam_scale is None:
            return self
        unit = _weighted_median(core.lam_max(k), weights) or 1.0
        return self._replace(lam=self.lam * unit, lam_scale=None)

    def code(self, K, k, norm2, before=None):
        """Codes (n, N), whose cost is not above that of the codes before.

        Sparse codes descend from them.
        """
        if self.function is not None:
            codes = self.function(K, k, norm2=norm2)
            codes = core.check_codes(codes, *k.shape, "coding(K_dd, K_xd, norm2=p)")
            return core.dense_codes(codes).astype(k.dtype)
        code = core.make_coding(
            k.shape, K.dtype, self.lam, self.n_neighbors, positive=self.positive
        )
        if self.lam is not None:
            code = code._replace(init=before)
        return code(K, k, norm2)


def checked_coder(n_atoms, lam, n_neighbors, coding, lam_scale, positive):
    """The Coder of these options of gdl."""
    positive = core.check_flag(positive, "positive")
    if lam is not None:
        lam = core.check_number(lam, "lam", least=0)
    if coding is None:
        core.make_coding(
            (1, n_atoms),
            np.dtype(float),
            lam,
            n_neighbors,
            lam_scale=lam_scale,
            positive=positive,
        )
    elif not callable(coding):
        raise ValueError(f"coding must be a function or None, got {coding!r}")
    elif n_neighbors is not None or positive or lam_scale is not None:
        raise ValueError(
            "n_neighbors, positive and lam_scale must be left to the function when "
            "coding is one"
        )
    return Coder(coding, lam, n_neighbors, lam_scale, positive)


def _weighted_median(values, weights):
    """np.median of the values, each repeated weight times."""
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    # rounding of the sums does not break a tie
    slack = len(reached) * np.finfo(float).eps
    middle = [
        np.searchsorted(reached, 0.5 - slack, "left"),
        np.searchsorted(reached, 0.5 + slack, "right"),
    ]
    return float(values[order[middle]].mean())


def check_weights(sample_weight, n):
    """Weights (n,) >= 0 of samples, not all zero, in float64; 1 unless they are given."""
    if sample_weight is None:
        return np.ones(n)
    weights = shared.shaped_array(
        sample_weight, "sample_weight", (n,), ", one a sample"
    ).astype(np.float64)
    with np.errstate(over="ignore"):
        total = weights.sum()
    least = weights.min(initial=np.inf)
    if least < 0 or not 0 < total < np.inf:
        raise ValueError(
            "sample_weight must be >= 0 and not all zero, and of a finite sum, got a "
            f"least weight of {least} and a sum of {total}"
        )
    return weights


def in_units(weights):
    """Numbers w, not all 0, as w / 2^e of largest absolute value in [0.5, 1), and e.

    No scale of weights matters, but float32 has few.
    """
    exponent = int(np.frexp(np.abs(weights).max())[1])
    return np.ldexp(weights, -exponent), exponent


def first_atoms(X, n_atoms, init, rng, weights):
    """The atoms (n_atoms, d, p) that init stands for: a method of init_atoms, or atoms."""
    if isinstance(init, str):
        core.check_choice(init, "init", *METHODS)
        return init_atoms(X, n_atoms, init, rng, sample_weight=weights)
    atoms = core.check_dictionary(init, "init", weighted=not shared.are_bases(X))
    p = X.shape[2] if shared.are_bases(X) else atoms.shape[2]
    if atoms.shape != (n_atoms, X.shape[1], p):
        raise ValueError(
            f"init must have shape {(n_atoms, X.shape[1], p)}, got {atoms.shape}"
        )
    return atoms


def closest_subspaces(X, p):
    """Bases (n, d, p) of the subspaces closest to checked X (n, d, r).

    Bases of p columns are their own; of a weighted subspace it is the span of its p
    longest columns, and of any directions beside them where it has fewer.
    """
    if X.shape[2] == p and shared.are_bases(X):
        return X
    return np.linalg.qr(_longest_columns(X, p))[0]


def _longest_columns(X, p):
    """The p longest columns of each of X (n, d, r), the longest first, or all and zeros."""
    lengths = np.einsum("ndr,ndr->nr", X, X)
    longest = np.argsort(-lengths, axis=1, kind="stable")[:, None, :p]
    missing = np.zeros((*X.shape[:2], max(0, p - X.shape[2])), X.dtype)
    return np.concatenate([np.take_along_axis(X, longest, axis=2), missing], axis=2)


def dimension_of_atoms(X, weights):
    """p of atoms for checked samples X (n, d, r), weights (n,): theirs, or as gdl says."""
    if shared.are_bases(X):
        return X.shape[2]
    traces = np.einsum("ndr,ndr->n", X, X, dtype=np.float64)
    return max(1, round(_weighted_median(traces**2, weights)))


def kgdl(
    sets: shared.Sets,
    n_atoms: int,
    lam: float | None = None,
    *,
    lift: Any,
    sample_weight: ArrayLike | None = None,
    rng: core.Rng = None,
    **options: Any,
) -> Learned:
    """gDL in a kernel's feature space (the paper's kgDL, Eq. 32).

    gdl, with its options, on coordinates.
    sets: a sequence of sets of frames (n_frames, d). lift: an object such as
    kernels.Lift(kernel, p), whose fit(sets).transform(sets) gives orthonormal
    coordinates, of the queries too: (n, r + p, p) with Lift, or (n, r, p) where it has
    fewer landmarks than frames. It is fitted to the sets of positive weight. In
    coordinates for the span of all their frames the update is exact and the cost never
    rises, while atoms held in the span of the samples that use them, as printed in the
    paper, may raise it. Returns Learned, its atoms (n_atoms, r + p, p) or (n_atoms, r,
    p). Errors are those of gdl; TypeError if lift lacks fit or transform.

    >>> import numpy as np
    >>> from grassmann_sc import kernels, learn
    >>> sets = np.random.default_rng(0).standard_normal((6, 5, 10))  # six sets of five frames
    >>> lift = kernels.Lift(kernels.rbf(0.1), p=2)
    >>> learn.kgdl(sets, 3, lam=0.2, lift=lift, n_iter=2, rng=0).codes.shape
    (6, 3)
    """
    parts = [getattr(lift, name, None) for name in ("fit", "transform")]
    if isinstance(lift, type) or not all(map(callable, parts)):
        raise TypeError(
            "lift must have fit(sets) and transform(sets), such as kernels.Lift(kernel,"
            f" p), got {lift!r}"
        )
    shared.check_sequence(sets, "sets", "arrays of frames")
    weights = check_weights(sample_weight, len(sets))
    used = [frames for frames, weight in zip(sets, weights) if weight > 0]
    X = lift.fit(used).transform(sets)
    return gdl(X, n_atoms, lam, sample_weight=weights, rng=rng, **options)


class LabelledAtoms(Noted, namedtuple("LabelledAtoms", "atoms labels")):
    """atoms (N, d, p) and their labels (N,).

    lam: the median of the lambdas that they were learned with.
    """

    lam: float | None = None

    def __repr__(self) -> str:
        n_classes = len(core.check_labels(self.labels, None)[0])
        return f"LabelledAtoms({atoms_in_words(self.atoms)} of {n_classes} classes)"


def class_dictionaries(
    X: ArrayLike,
    y: core.Labels,
    atoms_per_class: int | Mapping,
    lam: float | None = None,
    *,
    n_neighbors: int | None = None,
    sample_weight: ArrayLike | None = None,
    rng: core.Rng = None,
    **options: Any,
) -> LabelledAtoms:
    """A small dictionary for each class.

    LabelledAtoms (atoms, labels), classes in order. For residual classification
    (classify, class_scores) with fewer atoms than samples. X (n, d, p), y (n,) labels;
    atoms_per_class: an integer, or a mapping from class to integer; a class of fewer
    samples gets that many atoms. The options are those of gdl, which learns each class
    on its own, but checkpoint and resume; of fewer than n_neighbors atoms of a class
    all are near. X are bases. Ctrl-C is raised: not all classes have atoms then.

    See also discriminative.discriminative_atoms, whose atoms of a class know of the
    others.

    ValueError for a class without an entry, labels of another length, or where gdl
    raises it; TypeError for checkpoint or resume.

    >>> from grassmann_sc import classify, learn, random_subspaces
    >>> X = random_subspaces(6, 8, 2, rng=0)
    >>> atoms, labels = learn.class_dictionaries(X, ["ape", "bee"] * 3, 2, lam=0.2, rng=0)
    >>> atoms.shape, labels.tolist()
    ((4, 8, 2), ['ape', 'ape', 'bee', 'bee'])
    """
    kept = sorted({"checkpoint", "resume"} & options.keys())
    if kept:
        raise TypeError(
            f"class_dictionaries has no option {kept[0]}, which is of one run of gdl"
        )
    X = core.check_dictionary(X, "X")
    rng = core.check_rng(rng)
    classes, index = core.check_labels(y, len(X), "y", "samples")
    weights = check_weights(sample_weight, len(X))
    counts: Any = (
        atoms_per_class
        if hasattr(atoms_per_class, "keys")
        else dict.fromkeys(classes, atoms_per_class)
    )
    for label in classes:
        if label not in counts:
            raise ValueError(
                "atoms_per_class must have an entry for each class of y, got none for "
                f"{label}"
            )
    counts = [
        core.check_integer(counts[label], "atoms_per_class", 1) for label in classes
    ]
    if n_neighbors is not None:
        n_neighbors = core.check_integer(n_neighbors, "n_neighbors", 1)
    dictionaries = {}
    for c, count in enumerate(counts):
        mine = np.flatnonzero((index == c) & (weights > 0))
        if len(mine):
            count = min(count, len(mine))
            near = n_neighbors and min(n_neighbors, count)
            dictionaries[c] = _finished(
                gdl(
                    X[mine],
                    count,
                    lam,
                    n_neighbors=near,
                    sample_weight=weights[mine],
                    rng=rng,
                    **options,
                )
            )
    sizes = [len(learned.atoms) for learned in dictionaries.values()]
    atoms = np.concatenate([learned.atoms for learned in dictionaries.values()])
    lams = [learned.lam for learned in dictionaries.values() if learned.lam is not None]
    median = float(np.median(lams)) if lams else None
    return LabelledAtoms(
        atoms, classes[np.repeat(list(dictionaries), sizes)], lam=median
    )


# ------------------------------------------------------------------ update of the atoms


def update_atoms(
    X: ArrayLike,
    D: ArrayLike,
    codes: core.Codes,
    *,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """Atoms D (N, d, p), updated one after another for fixed codes (n, N) of X.

    X has shape (n, d, p), the result that of D. D_r <- the p algebraically leading
    eigenvectors of S_r (Eq. 26) = sum_i w_i y_ir (X_i^ - sum_{j != r} y_ij D_j^), the
    global minimiser of the cost over that atom, with the atoms before r already
    updated. Of weighted D the closest D_r^ of rank p and unit norm: the same
    eigenvectors, weighted by their eigenvalues, or 0 for negative ones. No d x d matrix
    is formed unless d is small; the bases that take part in an atom's update are copied
    for it. An atom that no sample uses (S_r = 0) stays as it is.

    ValueError for X or D that are neither bases nor weighted subspaces, shapes that do
    not fit, or codes whose sums are beyond float64.

    >>> import numpy as np
    >>> from grassmann_sc import learn
    >>> axes = np.eye(2)[..., None]  # two lines
    >>> abs(learn.update_atoms(axes[:1], axes[1:], [[1.0]])).tolist()  # the atom becomes the sample
    [[[1.0], [0.0]]]
    """
    X = core.check_dictionary(X, "X", weighted=True)
    X, D = core.same_dimension(
        X, core.check_dictionary(D, "D", not shared.are_bases(X)), "XD"
    )
    if shared.are_bases(X) and X.shape[2] != D.shape[2]:
        raise ValueError(f"D must have the p of X, got {D.shape[2]} and {X.shape[2]}")
    codes = core.check_codes(codes, len(X), len(D), "codes")
    rows = copied_rows(sharpened(D))
    _update(as_rows(X), rows, codes, check_weights(sample_weight, len(X)))
    return np.ascontiguousarray(rows.swapaxes(1, 2))


def as_rows(X):
    """X (n, d, p) as rows (n, p, d), contiguous if they are short and gathered often."""
    rows = X.swapaxes(1, 2)
    return np.ascontiguousarray(rows) if rows[0].size <= SHORT else rows


def sharpened(D):
    """Bases D (N, d, p), checked to be nearly orthonormal, orthonormal to rounding.

    Those that are so already stay as they are, and so do weighted subspaces.
    """
    if not shared.are_bases(D):
        return D
    error = np.abs(D.swapaxes(1, 2) @ D - np.eye(D.shape[2])).max(axis=(1, 2))
    rough = error > 16 * np.finfo(D.dtype).eps
    if not rough.any():
        return D
    return np.where(rough[:, None, None], core.orthonormalize(D), D)


def copied_rows(D):
    """A copy of atoms (N, d, p) as contiguous rows (N, p, d)."""
    return np.array(D.swapaxes(1, 2), order="C")


def _update(samples, rows, codes, weights):
    """update_atoms in place, of atoms as rows (N, p, d) and samples as rows (n, p, d)."""
    used = scipy.sparse.csc_array(codes)
    used.sum_duplicates()
    # in a unit of each atom: in one for all, an atom of light samples would have 0
    counts = np.diff(used.indptr)
    weight, exponents = np.frexp(weights[used.indices])
    code, more = np.frexp(used.data)
    used.data = weight * code
    exponents = np.where(used.data != 0, exponents + more + FAR, 0)
    units = used.copy()
    units.data = exponents
    units = units.max(axis=0).toarray().ravel()
    used.data = np.ldexp(used.data, exponents - np.repeat(units, counts))
    shared = (used.T @ scipy.sparse.csc_array(codes)).toarray()
    if not np.isfinite(shared).all():
        raise ValueError(
            "codes must have sums within float64, got an overflow in Y^T Y"
        )
    # in units in which large codes of other atoms are within the samples' type, too
    units = np.maximum(np.frexp(np.abs(shared).max(axis=1))[1], 0)
    shared = np.ldexp(shared, -units[:, None])
    used.data = np.ldexp(used.data, -np.repeat(units, counts))
    q, d = samples.shape[1:]

    def terms(r):
        mine = slice(used.indptr[r], used.indptr[r + 1])
        w = np.repeat(used.data[mine], q).astype(samples.dtype, copy=False)
        return _gathered(samples, used.indices[mine]).reshape(-1, d), w

    _sweep(rows, shared, terms, q * counts)


def _sweep(rows, coupling, terms, counts):
    """Update the atoms, rows (N, p, d), in place, as if one after another.

    S_r = Z^T diag(w) Z - sum_{j != r} coupling[r, j] D_j^, coupling (N, N): sum_i w_i y_ir
    y_ij, terms(r): Z (counts[r], d) and w, each r in a unit of its own; without
    counts[r] the atom stays. Atoms that share no sample do not depend on each other:
    small updates of such are done at the same time, a large one has the threads of
    BLAS.
    """
    _, p, d = rows.shape
    bases = shared.are_bases(rows.swapaxes(1, 2))
    numbers = (counts + np.count_nonzero(coupling, axis=1) * p) * d

    def update(r):
        Z, w = terms(r)
        B, b = _others(rows, coupling[r], r)
        limit = ALL_THREADS if numbers[r] > LARGE else ONE_THREAD
        V = rows[r] if bases else np.linalg.qr(rows[r].T)[0].T.copy()
        if d <= DENSE * p:
            A = np.zeros((d, d), Z.dtype)
            add_square(A, Z, w, limit)
            V = _eigenvectors(A, B, b, V, limit)
        else:
            V = _climb(Z, w, B, b, V, r, limit)
        rows[r] = V if bases else _weighted_rows(V, rows[r], Z, w, B, b, limit)

    for atoms in _independent_atoms(coupling, counts > 0):
        large = numbers[atoms].max() > LARGE  # one block, and BLAS has its threads
        block = len(atoms) if large else max(1, len(atoms) // 32)
        core.run_blocks(lambda few: [update(r) for r in atoms[few]], len(atoms), block)


def _weighted_rows(V, before, Z, w, B, b, limit):
    """Rows sqrt(w_k) v_k of the unit norm closest to S = Z^T diag(w) Z + B^T diag(b) B.

    V (p, d): leading eigenvectors of S, of which the first alone counts where no
    eigenvalue is positive. before, the rows so far, if they are as good.
    """
    images = np.zeros((2, *V.shape), V.dtype)
    for Q, image in zip((V, before), images):
        _add_image(Z, w, np.ascontiguousarray(Q), image, limit)
        _add_image(B, b, np.ascontiguousarray(Q), image, limit)
    # V may span them alone, as where it is all of R^d: then nothing has turned it
    values, turn = np.linalg.eigh(V @ images[0].T)
    V = turn.T @ V
    weights = np.maximum(values, 0)
    if not weights.any():
        weights[-1] = 1
    weights /= np.linalg.norm(weights)
    if weights @ values <= np.vdot(before, images[1]):
        return before
    return np.sqrt(weights)[:, None] * V


def _others(rows, shared, r):
    """Rows (l p, d) of the atoms that share samples with r, and -shared of each."""
    _, p, d = rows.shape
    others = np.flatnonzero(shared)
    others = others[others != r]
    return rows[others].reshape(-1, d), np.repeat(-shared[others], p).astype(rows.dtype)


def _independent_atoms(shared, moving):
    """Lists of the moving atoms (N,) that share no sample.

    Each atom comes after all before it that it shares with.
    """
    coupled = (shared != 0) | (shared.T != 0)
    level = np.zeros(len(shared), int)
    for r in np.flatnonzero(moving & (np.diag(shared) > 0)):
        level[r] = 1 + level[:r][coupled[r, :r]].max(initial=0)
    return [np.flatnonzero(level == i) for i in range(1, level.max(initial=0) + 1)]


def _gathered(source, index):
    """source[index] of rows (n, q, d) as one contiguous array.

    source may hold transposed bases.
    """
    if source.flags.c_contiguous:
        return source[index]
    out = np.empty((len(index), *source.shape[1:]), source.dtype)
    core.run_blocks(
        lambda i: np.copyto(out[i.start], source[index[i.start]]), len(index), 1
    )
    return out


@jit(long=True)
def _eigenvectors(A, B, b, V, limit):
    """The p leading eigenvectors, as rows, of S = A + B^T diag(b) B.

    A (d, d) becomes S; B has shape (l, d). V (p, d), orthonormal rows, if they are as
    good. Products have at most limit multiplications.
    """
    add_square(A, B, b, limit)
    values, vectors = np.linalg.eigh(A)
    better = np.sum(values[-len(V) :]) > np.trace((V @ A) @ V.T)
    return np.ascontiguousarray(vectors.T[::-1][: len(V)]) if better else V.copy()


@jit(long=True)
def _climb(Z, w, B, b, V, seed, limit):
    """The same of S = Z^T diag(w) Z + B^T diag(b) B, Z (m, d), where d is large.

    S is not formed. By Rayleigh-Ritz steps on a space, of orthonormal rows Q, that
    grows by the residuals of the 2 p leading Ritz vectors until they are sure. It
    begins as V and p directions of noise, which let it leave eigenvectors that do not
    lead and the range of S, whose eigenvalues may all be negative.
    """
    p, d = V.shape
    eps = np.finfo(V.dtype).eps
    Q = np.empty((18 * p, d), V.dtype)
    image = np.empty_like(Q)  # Q S
    H = np.empty((18 * p, 18 * p), V.dtype)  # Q S Q^T
    _put(Q, V)
    k = p + _join(Q, p, _noise(p, d, seed).astype(V.dtype), 0.0, limit)
    old = 0
    fewest = 4 * p
    for _ in range(100):
        image[old:k] = 0
        _add_image(Z, w, Q[old:k], image[old:k], limit)
        _add_image(B, b, Q[old:k], image[old:k], limit)
        _put(H[old:], _multiply_transposed(image[old:k], Q[:k], limit))
        _put(H[:, old:k], H[old:k, :k].T)
        if k == 2 * p:
            start = np.trace(H[:p, :p])
            left = image[:p] - _multiply(np.ascontiguousarray(H[:p, :p]), Q[:p], limit)
            if np.max(np.abs(left)) <= 100 * eps * np.max(np.abs(H[:k, :k])):
                fewest = 8 * p  # V spans eigenvectors: what leads comes of noise alone
        values, vectors = np.linalg.eigh(H[:k, :k])
        theta = values[::-1]
        turn = np.ascontiguousarray(vectors.T[::-1])
        lead = _multiply(turn[: 2 * p], Q[:k], limit)
        residuals = _multiply(turn[: 2 * p], image[:k], limit)
        for i in range(2 * p):
            core.axpy(-theta[i], lead[i], residuals[i], d)
        # noise has to turn to where S is large before it tells
        unsure = residuals[_are_unsure(residuals, theta, limit) | (k <= fewest)]
        old = k
        if k > 16 * p:  # start again from the best
            _put(Q, _multiply(turn[: 6 * p], Q[:k], limit))
            k = 6 * p
            old = 0
        least = 100 * eps * np.max(np.abs(theta))
        count = _join(Q, k, unsure, least, limit)
        if count == 0:
            break
        k += count
    return _polished(lead[:p]) if np.sum(theta[:p]) > start else V.copy()


@jit
def _are_unsure(residuals, theta, limit):
    """Which of the residuals (2 p, d) of leading Ritz pairs are not yet small enough.

    The first p values, of all theta, are sure to SURE of themselves, or to rounding;
    the next p once they cannot rise above the first.
    """
    p = len(residuals) // 2
    eps = np.finfo(residuals.dtype).eps
    tol = max(SURE, 10 * eps)
    scale = np.max(np.abs(theta))
    gap = theta[p - 1] - theta[p]
    squares = np.diag(_multiply_transposed(residuals, residuals, limit))
    sure = np.maximum(np.abs(theta[: 2 * p]), 10 * eps * scale)
    sure *= tol * max(gap, np.sqrt(np.sum(squares[:p])))
    sure[p:] = max(gap / 8, np.sqrt(tol) * scale) ** 2
    return squares > sure / p


@jit
def _polished(V):
    """Rows V, orthonormal but for rounding, as orthonormal as rounding lets them be."""
    return V - ((V @ V.T) @ V - V) / 2


@jit
def _add_image(Z, w, Q, image, limit):
    """image += Q Z^T diag(w) Z, in products of at most limit multiplications."""
    step = max(1, limit // max(1, Q.size))
    for i in range(0, len(Z), step):
        few = Z[i : i + step]
        image += ((Q @ few.T) * w[i : i + step]) @ few


@jit
def add_square(S, Z, w, limit):
    """S += Z^T diag(w) Z of rows Z (m, d), S (d, d) symmetric.

    Products have at most limit multiplications.
    """
    m, d = Z.shape
    tile = min(d, round(limit ** (1 / 3)))
    step = limit // tile**2
    for start in range(0, m, step):
        few = np.ascontiguousarray(Z[start : start + step].T)
        weighted = few * w[start : start + step]
        for i in range(0, d, tile):
            for j in range(i, d, tile):
                here = S[i : i + tile, j : j + tile]
                _put(here, here + weighted[i : i + tile] @ few[j : j + tile].T)
    for i in range(tile, d, tile):
        _put(S[i : i + tile, :i], S[:i, i : i + tile].T)


def add_products(samples, codes, sums):
    """sums[r] += sum_i codes[i, r] X_i^, from samples (n, p, d), to sums (N, d, d)."""
    n, _, d = samples.shape
    few = max(1, PRODUCTS // (8 * PANEL * d))
    for start in range(0, d, PANEL):
        panel = slice(start, start + PANEL)
        for i in range(0, n, few):
            some = samples[i : i + few]
            squares = some[:, :, panel].swapaxes(1, 2) @ some[:, :, start:]
            images = codes[i : i + few].T @ squares.reshape(len(squares), -1)
            sums[:, panel, start:] += images.reshape(len(sums), *squares.shape[1:])
        sums[:, start:, panel] = sums[:, panel, start:].swapaxes(1, 2)


@jit
def times_sum(V, rows, sizes, matrix, unit):
    """V (rows^T diag(sizes) rows + unit matrix), V (m, d), which reads both once."""
    image = np.zeros_like(V)
    shares = np.empty(4, V.dtype)
    for i in range(0, len(rows), 4):
        few = rows[i : i + 4]
        for k in range(len(V)):
            for j in range(len(few)):
                shares[j] = sizes[i + j] * core.dot(V[k], few[j], V.shape[1])
            _add_rows(shares, few, image[k])
    V = unit * V
    for i in range(0, len(matrix), 4):
        for k in range(len(V)):
            _add_rows(V[k, i : i + 4], matrix[i : i + 4], image[k])
    return image


@core.inlined_jit
def _add_rows(shares, few, out):
    """out (d,) += shares few, of at most four rows few: out is read once for all."""
    if len(few) == 4:
        for j in range(len(out)):
            out[j] += (
                shares[0] * few[0, j]
                + shares[1] * few[1, j]
                + shares[2] * few[2, j]
                + shares[3] * few[3, j]
            )
    else:
        for i in range(len(few)):
            core.axpy(shares[i], few[i], out, len(out))


def sweep_stream(rows, shared, own, n_sweeps):
    """Update the atoms of a stream, rows (N, p, d), in place, one after another.

    S_r = A_r - sum_{j != r} shared[r, j] D_j^; own(r): what times_sum multiplies by A_r.
    Where d is large an atom takes a Rayleigh-Ritz step in each of n_sweeps. Else S_r is
    formed, and one sweep finds the eigenvectors.
    """
    _, p, d = rows.shape
    small = d <= DENSE * p
    used = np.flatnonzero(np.diag(shared) > 0).tolist()
    for r in used if small else used * n_sweeps:
        B, b = _others(rows, shared[r], r)
        if small:
            A = times_sum(np.eye(d, dtype=rows.dtype), *own(r))
            rows[r] = _eigenvectors(A, B, b, rows[r], ONE_THREAD)
        else:
            limit = ALL_THREADS if B.size > LARGE else ONE_THREAD
            rows[r] = _step(*own(r), B, b, rows[r], r, limit)


@jit(long=True)
def _step(Z, w, matrix, unit, B, b, V, seed, limit):
    """The best rows for S in the span of rows V (p, d) and of what they leave of V S.

    S = Z^T diag(w) Z + unit matrix + B^T diag(b) B. Where nothing is left, noise: all
    of S might be negative. V if it is as good.
    """
    p, d = V.shape
    Q = np.empty((2 * p, d), V.dtype)
    image = np.empty_like(Q)
    _put(Q, V)
    _put(image, times_sum(V, Z, w, matrix, unit))
    _add_image(B, b, V, image[:p], limit)
    scale = np.max(np.abs(_multiply_transposed(image[:p], V, limit)))
    k = p + _join(Q, p, image[:p], 100 * np.finfo(V.dtype).eps * scale, limit)
    if k == p:
        k += _join(Q, p, _noise(p, d, seed).astype(V.dtype), 0.0, limit)
    _put(image[p:], times_sum(Q[p:k], Z, w, matrix, unit))
    _add_image(B, b, Q[p:k], image[p:k], limit)
    H = _multiply_transposed(image[:k], Q[:k], limit)
    values, vectors = np.linalg.eigh(H)
    lead = np.ascontiguousarray(vectors.T[::-1][:p])
    better = np.sum(values[-p:]) > np.trace(H[:p, :p])
    return _polished(_multiply(lead, Q[:k], limit)) if better else V.copy()


@jit
def largest_part(M, w, n_old, rank, seed, limit):
    """The eigenpairs largest in modulus of S = M^T diag(w) M, as rows and sizes.

    About rank of them, or all. M has shape (m, d), m > rank. Rayleigh-Ritz on S times
    the first n_old rows, eigenvectors of before, and a few combinations of all.
    """
    m, d = M.shape
    count = min(m, rank + rank // 4 + 1)
    start = np.empty((count, d), M.dtype)
    n_old = min(n_old, rank)
    _put(start, M[:n_old])
    _put(
        start[n_old:],
        _multiply(_noise(count - n_old, m, seed).astype(M.dtype), M, limit),
    )
    image = np.zeros_like(start)
    _add_image(M, w, start, image, limit)
    Q = np.zeros_like(start)
    count = _join(Q, 0, image, 0.0, limit)
    products = _multiply_transposed(Q[:count], M, limit)
    values, vectors = np.linalg.eigh(
        _multiply_transposed(products * w, products, limit)
    )
    order = np.argsort(-np.abs(values))[:rank]
    rows = _multiply(np.ascontiguousarray(vectors.T[order]), Q[:count], limit)
    return rows, values[order]


@jit
def _noise(p, d, seed):
    """(p, d) numbers spread evenly in -1..1, others for each seed: fractions of c k^2."""
    k = np.arange(seed + 1000.0, seed + 1000.0 + p * d)
    return ((k * k * 0.6180339887498949) % 1 * 2 - 1).reshape(p, d)


@jit
def _join(Q, k, W, least, limit):
    """Put orthonormal rows that span W (b, d) less Q[:k] into Q from row k on.

    Returns their number. Q[:k] has orthonormal rows. By Gram-Schmidt, twice, since
    rounding grows where little is left. A row is dropped if less than least of it is
    left, next to nothing beside the rows before it, or no half the second time: then it
    was in the span of Q[:k], but for rounding.
    """
    d = W.shape[1]
    for _ in range(2):
        W = W - _multiply(_multiply_transposed(W, Q[:k], limit), Q[:k], limit)
        end = 0
        for i in range(len(W)):
            row = W[i]
            whole = core.dot(row, row, d)
            for j in range(end):
                core.axpy(-core.dot(W[j], row, d), W[j], row, d)
            rest = core.dot(row, row, d)
            if rest > max(least**2, 1e4 * np.finfo(W.dtype).eps * whole):
                core.copy(row / np.sqrt(rest), W[end], d)
                end += 1
        W = W[:end]
        least = 0.5
    _put(Q[k:], W)
    return end


@jit
def _multiply(A, B, limit):
    """A @ B in products of at most limit multiplications."""
    out = np.empty((len(A), B.shape[1]), B.dtype)
    step = max(1, limit // max(1, B.size))
    for i in range(0, len(A), step):
        _put(out[i:], A[i : i + step] @ B)
    return out


@jit
def _multiply_transposed(A, B, limit):
    """A @ B.T in products of at most limit multiplications."""
    out = np.empty((len(A), len(B)), B.dtype)
    step = max(1, limit // max(1, A.size))
    for i in range(0, len(B), step):
        _put(out[:, i:], A @ B[i : i + step].T)
    return out


@jit
def _put(target, source):
    """target[:len(source)] = source, which as such takes Numba seconds to compile."""
    for i in range(len(source)):
        core.copy(source[i], target[i], source.shape[1])


# -------------------------------------------------------------------------- first atoms


def init_atoms(
    X: ArrayLike,
    n_atoms: int,
    method: str = "kmeans++",
    rng: core.Rng = None,
    *,
    sample_weight: ArrayLike | None = None,
) -> np.ndarray:
    """n_atoms subspaces to start from, out of X (n, d, p), n_atoms in 1..n.

    (n_atoms, d, p). "random": samples drawn without repetition, as in the paper, one of
    weight w as w equal samples. "kmeans++": one after another, with probability
    proportional to the squared chordal distance from those already drawn, so that
    clusters are covered. "kmeans": the chordal means of the clusters that k-means finds
    from there. sample_weight (n,) >= 0 multiplies the probabilities; at least n_atoms
    weights must be positive.

    ValueError for an unknown method, or more atoms than samples of positive weight.

    >>> from grassmann_sc import learn, random_subspaces
    >>> X = random_subspaces(20, 8, 2, rng=0)
    >>> learn.init_atoms(X, 4, rng=0).shape
    (4, 8, 2)
    """
    X = core.check_dictionary(X, "X", weighted=True)
    n_atoms = core.check_integer(n_atoms, "n_atoms", 1, len(X))
    weights = check_weights(sample_weight, len(X))
    n_used = np.count_nonzero(weights)
    if n_atoms > n_used:
        raise ValueError(
            "n_atoms must be at most the number of samples of positive weight, "
            f"{n_used}, got {n_atoms}"
        )
    rng = core.check_rng(rng)
    core.check_choice(method, "method", *METHODS)
    if method == "kmeans":
        return _finished(
            gdl(X, n_atoms, coding=_code_nearest, tol=0, rng=rng, sample_weight=weights)
        ).atoms
    drawn = (
        _draw(weights, n_atoms, rng)
        if method == "random"
        else _draw_apart(as_rows(X).swapaxes(1, 2), n_atoms, weights, rng)
    )
    return closest_subspaces(X[drawn], dimension_of_atoms(X, weights))


def _draw(weights, n_atoms, rng):
    """Indices of samples drawn by their weights (n,), which are used up."""
    left = weights.copy()
    chosen = []
    for _ in range(n_atoms):
        chosen.append(_places(left, 1, rng)[0])
        left[chosen[-1]] = max(left[chosen[-1]] - 1, 0)
    return chosen


def _draw_apart(X, n_atoms, weights, rng):
    """Indices of samples drawn far from each other.

    Odds are the weights (n,) times squared distances from the samples drawn before.
    Many candidates are drawn at a time, by the odds o of all samples before; each is
    taken, in turn, with the probability o' / o of its odds o' <= o after those taken,
    as if it was drawn by those. What has no odds, as repeated samples, is drawn only
    when nothing else is left.
    """
    norm2 = core.squared_norm(X)
    chosen = []
    square = np.full(len(X), 2.0 * norm2)
    left = weights.copy()
    unit = (
        2.0 ** -int(2 * norm2).bit_length()
    )  # of squares: odds stay below the weights
    while len(chosen) < n_atoms:
        most = max(1, PRODUCTS // len(X))
        odds = left * ((square > 1e-12) * square * unit)
        if not odds.any():
            odds = left
            most = 1
        count = min(n_atoms - len(chosen), max(CANDIDATES, len(chosen)), most)
        candidates = _places(odds, count, rng)
        K = core.bases_gram(X, X[candidates])
        for i, k, share in zip(candidates, K.T, rng.random(count)):
            now = left[i] * ((square[i] > 1e-12) * square[i] * unit)
            if share * odds[i] < now or most == 1:
                chosen.append(i)
                left[i] = 0
                square = np.minimum(square, 2 * norm2 - 2 * k)
    return chosen


def _places(odds, count, rng):
    """Indices drawn by their odds (n,).

    Each owns its part, so that odds draw as repetitions do.
    """
    bounds = np.cumsum(odds)
    places = np.searchsorted(bounds, rng.random(count) * bounds[-1], side="right")
    # the least numbers round up to the bound
    return np.minimum(places, np.flatnonzero(odds)[-1])


def _code_nearest(K_dd, K_xd, norm2):
    """Codes of k-means: 1 on the nearest atom."""
    return np.eye(len(K_dd), dtype=K_xd.dtype)[K_xd.argmax(axis=1)]


# -------------------------------------------------------------------------------- files


def _write_state(checkpoint, state):
    """Replace the checkpoint, if there is one, by this state."""
    if checkpoint is not None:
        checkpoint.write(
            {
                **state._asdict(),
                "n_replaced": np.array(state.n_replaced),
                "lam": np.array(np.nan if state.lam is None else state.lam),
            }
        )


def _read_state(checkpoint):
    """The state to resume from; samples and options must be the same."""
    arrays = checkpoint.read(
        {"n_replaced": "i"} | dict.fromkeys([*Learned._fields, "lam"], "f")
    )
    checkpoint.check_samples()
    return Learned(
        *(arrays[name] for name in Learned._fields),
        n_replaced=int(arrays["n_replaced"]),
        lam=None if np.isnan(arrays["lam"]) else float(arrays["lam"]),
    )
