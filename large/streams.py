"""Dictionary learning on streams of batches: OnlineGDL, in memory that does not grow.

What a batch tells of the atoms are sums: Y^T Y over its codes, and sum_i y_ir X_i^ for
each atom r. So learners over the same atoms merge by addition, on one machine or many,
and a learner is a file of a few arrays. Needs learn.py and files.py.
"""

from __future__ import annotations

import copy
import functools
import itertools
import json
import os
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import files, learn, shared
from grassmann_sc.large.codes import StoredBases, is_stored

__all__ = ["OnlineGDL"]

FRESH = 0.3  # the share of the statistics that is new when atoms move
HELD = 4  # times rank rows of a sum are held, before it is cut back to rank
EXACT = 2**25  # numbers of the sums of all atoms up to which they are kept as matrices
FIRST_CHECKPOINT = 5  # seconds, after which a long fit writes one, however many batches
MIXED = 16  # pieces of a stored array whose samples are shuffled together


class OnlineGDL:
    """gDL on a stream of batches, in memory that does not grow.

    partial_fit(batch), or fit on an array, stored or not. Each batch is coded and adds
    to statistics: Y^T Y, and A_r = sum_i y_ir X_i^ for each atom r. Atoms are updated
    from them once three tenths of Y^T Y, by its trace, are new, and at the end of fit:
    to the leading eigenvectors of S_r (see learn.update_atoms) if d <= 16 p, else by a
    Rayleigh-Ritz step towards them for each three tenths. A_r is exact where 4 rank >=
    d, or by default if matrices for all atoms are at most 2^25 numbers (256 MB): a
    matrix, and up to d / 2 rows of samples that are added to it together. Else at most
    4 rank rows stand for A_r, cut back, when they are full, to about the rank
    eigenvectors of largest absolute eigenvalue (default 8 p). Held are N (N + 3/2 d^2)
    numbers, or N (N + 4 rank d), and a batch: no more, however many come.

    lam, n_neighbors, coding, lam_scale, positive, init, rng: as in gdl, but an init of
    atoms holds bases; init draws from the first batches, until n_atoms samples have
    come, and lam_scale="max" takes its median over those.
    forgetting: statistics are multiplied by (1 - 1/t)^forgetting before batch t, so
    that codes over early atoms fade; 0 keeps all.
    Attributes: atoms (N, d, p), None until the samples to draw them from have come;
    lam, the lambda in use; cost, per sample, of what was collected for the last update,
    before it; loss and weight, the sums of costs and weights collected since;
    n_batches; n_updates; n_replaced. An atom that batches have left unused is replaced
    by the sample of the last ones coded worst.

    partial_fit is collect, which codes and adds to the statistics, then update, which
    moves the atoms. fork gives learners over the same atoms to collect elsewhere, merge
    brings them together. Ctrl-C leaves the learner as it was before the call or as it
    is after it, and fit after a whole batch; n_batches tells. It stops the coding of a
    batch at once; it waits while the batch is added to the statistics and the atoms
    move. If another error comes in there, such as a MemoryError, the learner refuses to
    go on. Learners can be pickled (unless coding is a function that cannot); save and
    load need no pickle.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large import streams
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> online = streams.OnlineGDL(4, lam=0.2, rng=0)
    >>> online = online.partial_fit(X[:30]).partial_fit(X[30:])
    >>> online.atoms.shape, online.n_updates
    ((4, 8, 2), 2)
    """

    _whole = True  # False while what belongs together changes

    def __init__(
        self,
        n_atoms: int,
        lam: float | None = None,
        *,
        n_neighbors: int | None = None,
        coding: Callable | None = None,
        lam_scale: str | None = None,
        positive: bool = False,
        init: str | ArrayLike = "kmeans++",
        rank: int | None = None,
        forgetting: float = 2.0,
        rng: core.Rng = None,
    ) -> None:
        self.n_atoms = core.check_integer(n_atoms, "n_atoms", 1)
        self.rank = None if rank is None else core.check_integer(rank, "rank", 1)
        self.forgetting = core.check_number(forgetting, "forgetting", least=0)
        self.given = learn.checked_coder(
            self.n_atoms, lam, n_neighbors, coding, lam_scale, positive
        )
        self.coder = self.given  # with lambda itself, once it is known
        if isinstance(init, str):
            core.check_choice(init, "init", *learn.METHODS)
        else:
            atoms = np.array(core.check_dictionary(init, "init"))
            init = learn.first_atoms(atoms, self.n_atoms, atoms, rng, None)
        self.init = init
        self.rng = core.check_rng(rng)
        self.atoms: Any = None
        self.cost: float | None = None
        self.n_batches = 0
        self.n_updates = 0
        self.n_replaced = 0
        self._place = _Place()
        self._waiting: Any = None  # (samples, weights) before there are atoms
        self._statistics: Any = None  # a _Statistics, once there are atoms
        self._gram: Any = None  # <D_i^, D_j^> (N, N), as long as atoms stay
        self.loss = self.weight = 0.0

    def __repr__(self) -> str:
        lam = self.given.lam
        rule = (
            f"n_neighbors={self.given.n_neighbors}" if lam is None else f"lam={lam:g}"
        )
        batches = f"{self.n_batches} batch{'es' * (self.n_batches != 1)}"
        return f"OnlineGDL({self.n_atoms}, {rule}), {batches} learned from"

    @property
    def lam(self) -> float | None:
        return self.coder.lam

    # ------------------------------------------------------------------------ learning

    def fit(
        self,
        X: ArrayLike | Iterable[ArrayLike],
        batch_size: int = 256,
        n_epochs: int = 1,
        *,
        progress: bool = False,
        checkpoint: str | os.PathLike | None = None,
        checkpoint_every: int = 100,
        resume: str | os.PathLike | None = None,
    ) -> OnlineGDL:
        """partial_fit on random batches of X (n, d, p), or on those of an iterable.

        A memmap, or a zarr, HDF5 or Dask array, is read in pieces of batch_size rows,
        one read each: 16 random pieces at a time are shuffled together and cut into
        batches. So a batch mixes samples of 16 places; a file sorted by class is better
        shuffled once beforehand if its classes are much longer than a piece.
        progress: tell how far it is, and the cost, on stderr.
        checkpoint: path of a file that is replaced, whole, after every checkpoint_every
        batches and at the end; the first comes after the batch in which five seconds
        are over. resume: path of such a file, from which to get the bits of an
        uninterrupted run on the same X and options; rng and init are then the
        file's. What was learned from is read again, and compared by its digest;
        ValueError if it differs. Ctrl-C raises a KeyboardInterrupt that says what to
        resume from; what was learned from whole batches is kept, in the checkpoint and
        in the learner itself.
        """
        batch_size = core.check_integer(batch_size, "batch_size", 1)
        n_epochs = core.check_integer(n_epochs, "n_epochs", 1)
        every = core.check_integer(checkpoint_every, "checkpoint_every", 1)
        if not np.iterable(X):
            raise TypeError(f"X must be an array or an iterable of batches, got {X!r}")
        X = StoredBases(X, "X") if is_stored(X) else X
        shape = getattr(X, "shape", None)
        if shape is None and iter(X) is X and n_epochs > 1:
            raise ValueError(
                "X must be an array or can be iterated once only: n_epochs must be 1, "
                f"got {n_epochs}"
            )
        options = self.n_atoms, *self.given, self.rank, self.forgetting
        record = files.Checkpoint(checkpoint, resume, [], [*options, batch_size, shape])
        self._place = _Place()
        if resume is not None:
            other = copy.copy(self)
            other.set_state(record.read(STATE), record.resume)
            place = other._place
            # the first epoch shows all samples, or those learned from
            seen = place.batch if place.epoch == 0 else None
            batches = _batches(X, batch_size, place.seed, 0)
            for i, batch in enumerate(itertools.islice(batches, seen)):
                record.add(core.real_array(batch, "X"), i << 64)
            record.check_samples()
            vars(self).update(vars(other))
        self._kept = record.resume, self._place.n_done
        total = -(-shape[0] // batch_size) * n_epochs if shape else None
        with shared.progress_line(progress, total, "OnlineGDL, batches") as move:
            move(self._place.n_done)
            try:
                self._pass_over(X, batch_size, n_epochs, move, record, every)
                if self.atoms is None:
                    raise ValueError(
                        f"X must hold at least n_atoms = {self.n_atoms} samples"
                    )
                if self._statistics.worst is not None:
                    self._at_once(self._move)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(self._interrupted(total)) from None
        return self

    def _pass_over(self, X, batch_size, n_epochs, move, record, every):
        """Learn from what is left of the epochs."""
        due = time.monotonic() + FIRST_CHECKPOINT
        while self._place.epoch < n_epochs:
            if self._place.seed is None:
                self._at_once(self._draw_seed)
            place = self._place
            for i, batch in enumerate(
                _batches(X, batch_size, place.seed + place.epoch, place.batch),
                place.batch,
            ):
                try:
                    self.partial_fit(batch)
                except (TypeError, ValueError) as error:
                    raise type(error)(
                        f"{error} (in batch {i} of epoch {place.epoch})"
                    ) from None
                if place.epoch == 0:
                    record.add(core.real_array(batch, "X"), i << 64)
                move(1, self.cost)
                if time.monotonic() > due or self._place.n_done % every == 0:
                    self._keep(record)
                    due = np.inf
            self._place = self._place._replace(epoch=place.epoch + 1, batch=0)
        self._keep(record)

    def _draw_seed(self):
        """Draw the seed of the orders of a fit."""
        self._place = self._place._replace(seed=int(self.rng.integers(2**62)))

    def _end_batch(self):
        """Count a batch of an epoch."""
        place = self._place
        self._place = place._replace(batch=place.batch + 1, n_done=place.n_done + 1)

    def _keep(self, record):
        if record.checkpoint:
            record.write(self.state())
            self._kept = record.checkpoint, self._place.n_done

    def _interrupted(self, total):
        """How far fit came, and where to go on."""
        path, kept = self._kept
        done = f"learned from {self._place.n_done}{f' of {total}' if total else ''} batches"
        if path is None:
            return (
                f"{done}; none is kept, as there was no checkpoint yet to resume from"
            )
        return (
            f"{done}; {path} holds the first {kept}: resume={path!r} resumes from there"
        )

    def partial_fit(
        self, X: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> OnlineGDL:
        """Learn from one more batch X (n, d, p) with weights (n,) >= 0; returns self."""
        self._at_once(self._coded(X, sample_weight), self._update, self._end_batch)
        return self

    def collect(
        self, X: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> OnlineGDL:
        """Code a batch X (n, d, p) and add it to the statistics, atoms unchanged.

        Returns self. Until n_atoms samples have come to draw the first atoms from,
        batches are kept.
        """
        self._at_once(self._coded(X, sample_weight))
        return self

    def _coded(self, X, sample_weight):
        """The function that adds the batch X (n, d, p), which is coded here.

        Nothing changes before it is called.
        """
        self._check_whole()
        X = core.check_dictionary(X, "X", weighted=True)
        weights = learn.check_weights(sample_weight, len(X))
        waiting = self._waiting or [X]
        begun = next(
            A for A in (self.atoms, self.init, waiting[0]) if isinstance(A, np.ndarray)
        )
        bases = shared.are_bases(X)
        if X.shape[1] != begun.shape[1] or bases and X.shape[2] != begun.shape[2]:
            raise ValueError(
                f"X must have the d and p of the atoms, {begun.shape[1:]}, got "
                f"{X.shape[1:]}"
            )
        samples = self._waiting or self._statistics and self._statistics.worst
        if samples and len(samples[0]) and shared.are_bases(samples[0]) != bases:
            kinds = ("weighted subspaces", "bases")
            raise ValueError(
                f"X must hold {kinds[not bases]} as the batches before, got {kinds[bases]}"
            )
        atoms = self.atoms
        X = _as_type(X, np.result_type(X, begun) if atoms is None else atoms.dtype)
        if atoms is None:
            X, weights = _appended(self._waiting, X[weights > 0], weights[weights > 0])
            if isinstance(self.init, str) and len(X) < self.n_atoms:
                return functools.partial(setattr, self, "_waiting", (X, weights))
            rng = copy.deepcopy(self.rng)
            first = learn.first_atoms(X, self.n_atoms, self.init, rng, weights)
            atoms = learn.sharpened(first.astype(X.dtype, order="C"))
        gram = core.bases_gram(atoms) if self._gram is None else self._gram
        k = core.bases_gram(X, atoms)
        coder = self.coder.scaled(k, weights)
        norm2 = core.squared_norm(X)
        codes = coder.code(gram, k, norm2)
        losses = learn.sample_losses(gram, k, codes, norm2, coder.lam)

        def add():
            if self.atoms is None:
                self.rng.bit_generator.state = rng.bit_generator.state
                self.atoms = atoms
                self._waiting = None
                self._statistics = _Statistics(atoms, self.rank)
            self.coder = coder
            self._gram = gram
            self._statistics.add(X, codes, weights)
            self._statistics.keep_worst(X[weights > 0], losses[weights > 0])
            self.loss += weights @ losses
            self.weight += weights.sum()
            self.n_batches += 1

        return add

    def _at_once(self, *steps):
        """All steps or none, as far as Ctrl-C goes.

        After another error the learner is not whole.
        """

        def take():
            self._whole = False
            for step in steps:
                step()
            self._whole = True

        self._check_whole()
        files.uninterrupted(take)

    def _check_whole(self):
        if not self._whole:
            raise RuntimeError(
                "the learner was left half changed, by an error while a batch was "
                "added or atoms moved: go on from its last file"
            )

    def update(self) -> OnlineGDL:
        """Move the atoms to where the statistics say, if three tenths are new.

        Returns self.
        """
        if not self.weight > 0:
            raise ValueError(
                "update needs a batch that was collected since the last one"
            )
        self._at_once(self._update)
        return self

    def _update(self):
        """Move the atoms, if three tenths are new, and count anew from there.

        Nothing moves as long as samples wait for first atoms.
        """
        if not self.weight > 0:
            return
        new = self._statistics.new >= FRESH * np.trace(self._statistics.shared)
        if new and self._statistics.worst is not None:
            self._move()
        self.cost = float(self.loss / self.weight)
        self.loss = self.weight = 0.0
        self.n_updates += 1
        self._statistics.fade((1 - 1 / (self.n_updates + 1)) ** self.forgetting)

    def _move(self):
        """Move the atoms, and replace those that are not used."""
        atoms = self._statistics.moved(self.atoms)
        self.n_replaced += self._statistics.replace_idle(atoms)
        self.atoms = atoms
        self._gram = None

    # -------------------------------------------------------------------- many learners

    def fork(self) -> OnlineGDL:
        """A learner over the same atoms that has collected nothing.

        It is to be merged with this one.
        """
        self._check_begun("fork")
        other = copy.copy(self)
        other._statistics = _Statistics(self.atoms, self.rank)
        other.loss = other.weight = 0.0
        other.n_batches = 0
        return copy.deepcopy(other)

    def merge(self, other: OnlineGDL) -> OnlineGDL:
        """The learner that has collected what this one and the other have.

        Both have the same atoms. Y^T Y adds up exactly; so does sum_i y_ir X_i^ where
        it is a matrix, and merging is associative to rounding; else to what is cut off.
        Neither is changed; rng is that of this one, and so are atoms, place and counts
        of updates.
        """
        if not isinstance(other, OnlineGDL):
            raise TypeError(f"other must be an OnlineGDL, got {other!r}")
        self._check_begun("merge")
        other._check_begun("merge")
        if (
            not np.array_equal(self.atoms, other.atoms)
            or self._described() != other._described()
        ):
            raise ValueError(
                "other must have the same atoms and options, got others: fork one "
                "learner, collect with each, then merge"
            )
        both = copy.deepcopy(self)
        both._statistics.add_statistics(other._statistics)
        both.loss += other.loss
        both.weight += other.weight
        both.n_batches += other.n_batches
        return both

    def _check_begun(self, what):
        self._check_whole()
        if self.atoms is None:
            raise ValueError(
                f"{what} needs a learner that has atoms: collect {self.n_atoms} "
                "samples first, or give init"
            )

    def _described(self):
        return [
            self.n_atoms,
            self.given.function is None,
            *self.given[1:],
            self.lam,
            self.rank,
            self.forgetting,
        ]

    # ------------------------------------------------------------------------ files

    def save(self, path: str | os.PathLike) -> None:
        """Write the whole state to a file without pickle, replaced whole or not at all."""
        files.write_arrays(path, "learner", self.state())

    @classmethod
    def load(cls, path: str | os.PathLike, coding: Callable | None = None) -> OnlineGDL:
        """The learner that save wrote.

        coding: the function that the learner was given, if it was.
        """
        arrays = files.read_arrays(path, "learner", STATE, set(STATE))
        with files.refuse_damaged(path, "learner"):
            options = json.loads(str(arrays["options"]))
            by_function = core.check_flag(options.pop("by_function"), "by_function")
            options["init"] = options["init"] or arrays["init"]
        if by_function != (coding is not None):
            raise ValueError(
                "coding must be the function that the learner was given, if it was, "
                f"got {coding!r} for {os.fsdecode(path)}"
            )
        with files.refuse_damaged(path, "learner"):
            learner = cls(**options, coding=coding)
        learner.set_state(arrays, path)
        return learner

    def state(self) -> dict[str, np.ndarray]:
        """All that the learner is, as arrays by the names of STATE.

        What is not there is empty.
        """
        self._check_whole()
        named = isinstance(self.init, str)
        options = {
            "n_atoms": self.n_atoms,
            **self.given._asdict(),
            "rank": self.rank,
            "forgetting": self.forgetting,
            "init": self.init if named else None,
        }
        # load is given it again
        options["by_function"] = options.pop("function") is not None
        counts = {
            "n_batches": self.n_batches,
            "n_updates": self.n_updates,
            "n_replaced": self.n_replaced,
            "cost": self.cost,
            "loss": float(self.loss),
            "weight": float(self.weight),
            "lam": self.coder.lam,
            "lam_scale": self.coder.lam_scale,
            "place": self._place._asdict(),
        }
        arrays = {"init": None if named else self.init, "atoms": self.atoms}
        arrays["waiting"], arrays["waiting_weights"] = self._waiting or (None, None)
        if self._statistics:
            arrays |= self._statistics.arrays()
        kept = {name: array for name, array in arrays.items() if array is not None}
        return (
            dict.fromkeys(STATE, np.empty(0))
            | kept
            | {
                "options": files.as_json(options),
                "counts": files.as_json(counts),
                "rng": files.as_json(self.rng.bit_generator.state),
            }
        )

    def set_state(
        self, arrays: Mapping[str, np.ndarray], path: str | os.PathLike
    ) -> None:
        """Become what the arrays of a file say; unchanged if they are damaged."""
        with files.refuse_damaged(path, "learner"):
            said = json.loads(str(arrays["counts"]))
            said["_place"] = _Place(**said.pop("place"))
            said["coder"] = self.given._replace(
                lam=said.pop("lam"), lam_scale=said.pop("lam_scale")
            )
            said["init"] = json.loads(str(arrays["options"]))["init"] or arrays["init"]
            said["rng"] = files.read_generator(arrays["rng"])
            said["_waiting"] = _pair(arrays["waiting"], arrays["waiting_weights"])
            said |= dict.fromkeys(["atoms", "_statistics", "_gram"], None)
            if arrays["atoms"].size:
                said["atoms"] = arrays["atoms"]
                said["_statistics"] = _Statistics(said["atoms"], self.rank)
                said["_statistics"].read(arrays)
        vars(self).update(said, _whole=True)


class _Statistics:
    """What coded samples tell of N atoms (d, p): sums, so that learners merge by adding.

    shared: Y^T Y (N, N) over the codes Y.
    rows (N, m, d), sizes (N, m), matrices (N, d, d), units (N,): A_r = sum_i y_ir X_i^
    is rows[r]^T diag(sizes[r]) rows[r] + units[r] matrices[r]. Rows that are full are
    added to the matrix, or cut back to eigenvectors where there are no matrices.
    new: the trace of what was added to Y^T Y since atoms moved.
    worst: (samples, losses) coded worst since then, which may replace atoms; or None.
    """

    def __init__(self, atoms, rank):
        N, d, p = atoms.shape
        rank = rank or (d if N * d**2 <= EXACT else 8 * p)
        exact = HELD * rank >= d
        n_rows = -(-d // 2) if exact else HELD * rank
        self.shared = np.zeros((N, N))
        self.rows = np.zeros((N, n_rows, d), atoms.dtype)
        self.sizes = np.zeros((N, n_rows))
        self.matrices = np.zeros((N, d if exact else 0, d), atoms.dtype)
        self.units = np.zeros(N)
        self.new = np.zeros(())
        self.worst = None

    def __setstate__(self, state):
        """Sums change in place, so read-only arrays, as joblib maps them, are copied."""
        for name, value in state.items():
            is_array = isinstance(value, np.ndarray)
            setattr(self, name, np.require(value, None, "W") if is_array else value)

    # ---------------------------------------------------------------------- what comes in

    def add(self, X, codes, weights):
        """Add samples X (n, d, p) with their codes (n, N) and weights (n,)."""
        codes = scipy.sparse.csc_array(codes, dtype=np.float64)
        used = codes.copy()
        used.data *= weights[used.indices]
        used.eliminate_zeros()
        shared = (used.T @ codes).toarray()
        self.shared = self.shared + shared
        self.new += np.trace(shared)
        N, n_rows, d = self.rows.shape
        n, _, p = X.shape
        samples = learn.copied_rows(X)
        # with all codes, at the full rate of BLAS, where many are not 0
        if self.matrices.size and used.nnz * p > N * max(n_rows, n / 2):
            self._add_products(samples, used.toarray())
            return

        def part(r):
            mine = slice(used.indptr[r], used.indptr[r + 1])
            return samples[used.indices[mine]].reshape(-1, d), np.repeat(
                used.data[mine], p
            )

        self._add_parts(part)

    def keep_worst(self, X, losses):
        """Keep the samples coded worst, as many as there are atoms.

        Those kept before compete.
        """
        X, losses = _appended(self.worst, X, losses)
        worst = np.sort(np.argsort(-losses, kind="stable")[: len(self.shared)])
        self.worst = X[worst], losses[worst]

    def add_statistics(self, other):
        """Add what another learner has collected over the same atoms."""
        self.shared += other.shared
        for r in np.flatnonzero(other.units):
            self._widen(r, other.units[r])
            self.matrices[r] += (other.units[r] / self.units[r]) * other.matrices[r]
        self._add_parts(lambda r: _used_rows(other.rows[r], other.sizes[r]))
        self.new += other.new
        if other.worst is not None:
            self.keep_worst(*other.worst)

    def _widen(self, r, most):
        """Make the unit of matrix r one for numbers of this size, if they are too large.

        In such units sums suit float32.
        """
        if most / 2**20 > self.units[r]:
            unit = _unit_of(most)
            self.matrices[r] *= self.units[r] / unit
            self.units[r] = unit

    def _add_products(self, samples, codes):
        """Add codes^T (N, n) times the X_i^ of samples (n, p, d) to the matrices."""
        for r, most in enumerate(np.abs(codes).max(axis=0)):
            self._widen(r, most)
        codes = (codes / np.where(self.units > 0, self.units, 1)).astype(samples.dtype)
        learn.add_products(samples, codes, self.matrices)

    def _add_parts(self, part):
        """Add Z^T diag(w) Z to the sums of atom r, (Z, w) = part(r)."""
        N = len(self.rows)

        def add(block):
            for r in range(block.start, block.stop):
                self._add_part(r, *part(r))

        core.run_blocks(add, N, max(1, min(8, N // 4)))

    def _add_part(self, r, Z, w):
        """Put Z and w behind the used rows of atom r, and free rows where none is left."""
        used, v = _used_rows(self.rows[r], self.sizes[r])
        end = len(v) + len(w)
        if end > len(self.sizes[r]):
            Z = np.concatenate([used, Z])
            w = np.concatenate([v, w])
            self.sizes[r] = 0
            if self.matrices.size:
                self._widen(r, np.abs(w).max())
                w = (w / self.units[r]).astype(Z.dtype)
                learn.add_square(self.matrices[r], Z, w, shared.ONE_THREAD)
                return
            w, exponent = learn.in_units(w)
            rank = len(self.sizes[r]) // HELD
            w = w.astype(Z.dtype)
            Z, w = learn.largest_part(Z, w, len(used), rank, r, shared.ONE_THREAD)
            w = np.ldexp(w.astype(np.float64), exponent)
            end = len(w)
        self.rows[r, end - len(w) : end] = Z
        self.sizes[r, end - len(w) : end] = w

    # ---------------------------------------------------------------------- what goes out

    def moved(self, atoms):
        """The atoms (N, d, p) updated from all statistics."""
        rows = learn.copied_rows(atoms)  # (N, p, d)
        unit = _unit_of(self.shared, self.sizes, self.units)
        sizes = (self.sizes / unit).astype(rows.dtype)
        units = (self.units / unit).astype(rows.dtype)

        def own(r):
            matrix = self.matrices[r] if units[r] else self.matrices[r, :0]
            return *_used_rows(self.rows[r], sizes[r]), matrix, units[r]

        share = self.new / max(np.trace(self.shared), 1e-300)
        learn.sweep_stream(rows, self.shared / unit, own, max(1, int(share / FRESH)))
        return rows.swapaxes(1, 2)

    def replace_idle(self, atoms):
        """Put samples coded worst in place of moved atoms that no code uses; how many.

        Counting what is new begins again.
        """
        X, losses = self.worst
        idle, worst = learn.idle_and_worst(np.diag(self.shared), X, losses)
        atoms[idle] = learn.sharpened(learn.closest_subspaces(X[worst], atoms.shape[2]))
        for statistics in (self.shared, self.shared.T, self.sizes, self.units):
            statistics[idle] = 0
        self.new *= 0
        self.worst = None
        return len(idle)

    def fade(self, factor):
        """Multiply all sums by a factor."""
        for sums in (self.shared, self.sizes, self.units, self.new):
            sums *= factor

    # ---------------------------------------------------------------------- files

    def arrays(self):
        """The statistics as arrays by the names of STATE; None for what is not there."""
        worst, losses = self.worst or (None, None)
        return {name: getattr(self, name) for name in SUMS} | {
            "worst": worst,
            "worst_losses": losses,
        }

    def read(self, arrays):
        """Become the statistics that a file's arrays hold."""
        for name in SUMS:
            setattr(self, name, arrays[name])
        self.worst = _pair(arrays["worst"], arrays["worst_losses"])


def _pair(samples, numbers):
    """(samples, numbers) as a file holds them, None if it holds none."""
    return (samples, numbers) if samples.size else None


SUMS = ("shared", "new", "rows", "sizes", "matrices", "units")
# a file's arrays, and the kinds of their dtypes
STATE = {"options": "U", "counts": "U", "rng": "U"} | dict.fromkeys(
    ["init", "atoms", *SUMS, "waiting", "waiting_weights", "worst", "worst_losses"],
    "f",
)


# Where a fit is: epochs, batches of this one, and batches in all that are done; and the
# seed of the order of the first epoch, to which others add their number.
_Place = namedtuple("_Place", "epoch batch n_done seed", defaults=[0, 0, 0, None])


def _appended(waiting, samples, numbers):
    """(samples, numbers) behind those held, or None; all samples of the type of these."""
    if waiting is None:
        return samples, numbers
    return (
        shared.joined([_as_type(waiting[0], samples.dtype), samples]),
        np.concatenate([waiting[1], numbers]),
    )


def _as_type(X, dtype):
    """X in this type, bases orthonormal to its rounding if it is another."""
    return X if X.dtype == dtype else learn.sharpened(X.astype(dtype))


def _batches(X, batch_size, seed, skip):
    """The batches of an epoch but for the first so many.

    A stream that can be read once only has these behind it.
    """
    if hasattr(X, "shape"):
        return _shuffled(X, batch_size, seed, skip)
    return iter(X) if iter(X) is X else itertools.islice(X, skip, None)


def _shuffled(X, batch_size, seed, skip):
    """Batches of X in the random order of the seed, but for the first so many.

    A longer array is read in pieces of batch_size rows, in random order; MIXED pieces at
    a time are mixed.
    """
    rng = np.random.default_rng(seed)
    n = len(X)
    if n <= MIXED * batch_size:
        X = X[:n]  # read at once
        order = rng.permutation(n)
        for i in range(skip * batch_size, n, batch_size):
            yield X[np.sort(order[i : i + batch_size])]
        return
    starts = batch_size * rng.permutation(-(-n // batch_size))
    for i in range(skip - skip % MIXED, len(starts), MIXED):
        samples = np.concatenate(
            [X[start : start + batch_size] for start in starts[i : i + MIXED]]
        )
        order = np.random.default_rng([seed, i]).permutation(len(samples))
        for j in range(max(skip - i, 0) * batch_size, len(samples), batch_size):
            yield samples[order[j : j + batch_size]]


def _unit_of(*weights):
    """A power of two of the size of the largest: sums in such units suit float32."""
    most = max(np.abs(w).max(initial=0) for w in weights)
    return np.ldexp(1.0, np.frexp(most)[1] - 1) if most > 0 else 1.0


def _used_rows(factor, sizes):
    count = np.flatnonzero(sizes).max(initial=-1) + 1
    return factor[:count], sizes[:count]
