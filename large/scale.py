"""From one machine to many, on Dask: coding, Gram matrices, and dictionary learning by
rounds.

The mathematics is that of grassmann_sc.py and streams.py; Dask moves blocks of
subspaces and sums of statistics between workers, and does again what a lost worker had.
A client is passed in, or client=None starts a worker a core on this machine for the
call (in a script, under `if __name__ == "__main__":`, since workers import it). Workers
should have one thread each, with OMP_NUM_THREADS=1 and NUMBA_NUM_THREADS=1, as those of
local_client have.

X (n, d, p) is a Dask array, or another array that is cut into blocks: in memory, a
memmap, of zarr or HDF5. Each worker opens a memmap or HDF5 file by its path. Needs
dask[distributed], and codes.py and streams.py with what they need; from_paths also
frames.py and subspaces.py.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import itertools
import os
from collections import deque, namedtuple
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import files, learn, shared
from grassmann_sc.large import streams
from grassmann_sc.large.codes import (
    Sink,
    Written,
    check_shape_of_bases,
    is_stored,
    rows_in_block,
    write_part,
)

if TYPE_CHECKING:
    import dask.array
    import distributed

__all__ = ["local_client", "from_paths", "code", "gram", "gdl"]

BATCH = 1024  # samples that a worker codes and adds to the statistics at a time
BLOCKS = 16  # into which at least an array is cut, if each keeps LEAST subspaces
# the same to be coded: workers share many more evenly, and nothing is kept for each
CODED = 64
LEAST = 256
CLIPS = 64  # of files, in a block
DRAWN_FROM = 64  # blocks that first atoms are drawn from
DRAWN = 10  # samples for each first atom
PATIENCE = 5  # seconds between looks whether the scheduler is there


# ------------------------------------------------------------------------------- coding


def code(
    X: ArrayLike,
    D: ArrayLike,
    lam: float | None = None,
    *,
    n_neighbors: int | None = None,
    lam_scale: str | None = None,
    positive: bool = False,
    reg: float | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    sparse_output: bool = False,
    client: distributed.Client | None = None,
    out: Any = None,
    start: int | str = 0,
    replace: bool = False,
    progress: bool = False,
) -> np.ndarray | scipy.sparse.csr_array | dask.array.Array | int:
    """Codes of subspaces X (n, d, p) over atoms D (N, d, q).

    They are those of gsc with lam, of glc with n_neighbors, block by block on workers;
    <D_i^, D_j^> is computed once, by one of them. Of a Dask array a Dask array (n, N),
    to be computed when it is asked for; of another array, or with sparse_output, codes
    as gsc returns them. With out (see codes.write_codes, also for start, replace and
    progress) codes are written as they come, in order, and n is returned; Ctrl-C raises
    and says from which row to go on. The parts of a folder are written by workers,
    which must reach it by the same path, all else here. ValueError names the block and
    its rows if they are no orthonormal bases of the atoms' R^d. No convergence is a
    warning where it is met, on a worker.

    >>> import dask.array
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large import scale
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> scale.code(dask.array.from_array(X, chunks=(20, 8, 2)), X[:3], n_neighbors=1)[:3].compute()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    atoms = core.check_dictionary(D, "D", weighted=True)
    plain = isinstance(start, (int, np.integer)) and start == 0
    flags = core.check_flag(progress, "progress") or core.check_flag(replace, "replace")
    if out is None and (flags or not plain):
        raise ValueError(
            "start, replace and progress belong to out, leave them out without it"
        )
    cut = functools.partial(_Parts, X, len(atoms), n_blocks=CODED)
    parts = cut()
    atoms = atoms.astype(np.result_type(parts.dtype, atoms.dtype), copy=False)
    coding = core.make_coding(
        (0, len(atoms)),
        atoms.dtype,
        lam,
        n_neighbors,
        lam_scale=lam_scale,
        positive=positive,
        reg=reg,
        tol=tol,
        max_iter=max_iter,
        sparse_output=sparse_output,
    )
    job = functools.partial(_code_block, coding=coding)
    if out is None and parts.lazy and not sparse_output:
        tasks = parts.each(job, *_atoms_and_gram(atoms))
        return _joined(tasks, parts.sizes, (len(atoms),), atoms.dtype)
    sink = (
        None
        if out is None
        else Sink(out, parts.n_rows(), atoms, coding, replace, X=X, D=D)
    )
    with _working(client) as client:
        # held by the cluster, and made again if a worker dies, while blocks come and go
        shared = client.persist(_atoms_and_gram(atoms))
        if sink is None:
            codes = list(_in_order(client, parts.each(job, *shared)))
            return (
                scipy.sparse.vstack(codes, format="csr")
                if sparse_output
                else np.concatenate(codes)
            )
        job = functools.partial(job, digested=sink.keeps)
        if sink.folder is not None:
            job = functools.partial(
                _write_block,
                folder=os.path.abspath(sink.folder),
                fingerprint=sink.fingerprint,
                coding=coding,
            )

        def digest(first, stop):
            rows = cut(first, stop)
            return sum(_in_order(client, rows.each(_digest_block, atoms.dtype)))

        def pieces(row):
            return _in_order(
                client, cut(row).each(job, *shared), settle=sink.folder is not None
            )

        return sink.fill(start, progress, digest, pieces)


def _atoms_and_gram(D):
    """Tasks of the atoms and of their Gram matrix."""
    atoms = _dask().delayed(D, pure=False)
    return [atoms, _dask().delayed(core.bases_gram, pure=False)(atoms)]


def _code_block(block, where, atoms, K, *, coding, digested=None):
    """Codes of a block, and for a sink the digest of its rows of X, 0 if it keeps none."""
    X = _bases(block, where, atoms.shape[1]).astype(atoms.dtype, copy=False)
    codes = coding(K, core.LazyGram(X, atoms), core.squared_norm(X))
    if digested is None:
        return codes
    return codes, files.digest_rows(X, where[1]) if digested else 0


def _write_block(block, where, atoms, K, *, coding, folder, fingerprint):
    """Write the codes of a block as a part; what a Sink is to know of it."""
    codes, digest = _code_block(block, where, atoms, K, coding=coding, digested=True)
    if codes.shape[0]:
        write_part(folder, where[1], codes, fingerprint.text(digest))
    return Written(codes.shape), digest


def _digest_block(block, where, dtype):
    return files.digest_rows(_bases(block, where).astype(dtype, copy=False), where[1])


# -------------------------------------------------------------------------- Gram matrix


def gram(
    X: ArrayLike,
    D: ArrayLike | None = None,
    *,
    client: distributed.Client | None = None,
) -> np.ndarray | dask.array.Array:
    """projection_kernel(X, D), (n, N), in blocks on workers.

    Without D half of those of (n, n). Of Dask arrays a Dask array; of other arrays an
    array.

    ValueError, when the blocks are computed, that names the block and its rows if
    they are no bases, or of another d; ConnectionError if the scheduler is gone.

    >>> import dask.array
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large import scale
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> K = scale.gram(dask.array.from_array(X, chunks=(20, 8, 2)))
    >>> K.shape, float(K.trace().compute().round(6))
    ((60, 60), 120.0)
    """
    rows = _Parts(X, 2**11)
    columns = rows if D is None else _Parts(D, 2**11, name="D")
    dtype = np.result_type(rows.dtype, columns.dtype)
    job = functools.partial(_gram_block, dtype=dtype, symmetric=D is None)
    product = _dask().delayed(job, pure=False)
    K = {
        (i, j): product(*left, *right)
        for i, left in enumerate(rows.blocks)
        for j, right in enumerate(columns.blocks)
        if D is not None or i <= j  # of two equal halves one
    }
    if rows.lazy or columns.lazy:
        array = _dask().array
        blocks = [
            [
                array.from_delayed(K[i, j] if (i, j) in K else K[j, i].T, (n, N), dtype)
                for j, N in enumerate(columns.sizes)
            ]
            for i, n in enumerate(rows.sizes)
        ]
        return array.block(blocks, allow_unknown_chunksizes=True)
    out = np.empty((rows.n_rows(), columns.n_rows()), dtype)
    with _working(client) as client:
        for (i, j), block in zip(K, _in_order(client, K.values())):
            top = rows.blocks[i][1][1]
            left = columns.blocks[j][1][1]
            out[top : top + block.shape[0], left : left + block.shape[1]] = block
            if D is None:
                out[left : left + block.shape[1], top : top + block.shape[0]] = block.T
    return out


def _gram_block(X, where_x, D, where_d, *, dtype, symmetric):
    X = _bases(X, where_x).astype(dtype, copy=False)
    if symmetric and where_x == where_d:
        return core.bases_gram(X)
    D = _bases(D, where_d, name="D").astype(dtype, copy=False)
    return core.bases_gram(*core.same_dimension(X, D, "XD"))


# ----------------------------------------------------------------------------- learning


class Learned(namedtuple("Learned", "atoms costs lam n_replaced stopped")):
    """atoms (N, d, p) of the least cost, and costs (rounds,).

    The cost of a round is that of the codes over its atoms.
    lam: the lambda in use; n_replaced: unused atoms replaced in all; stopped: "n_iter",
    "tol", "callback" or "interrupted", None while learning.
    """

    def __repr__(self) -> str:
        cost = f"cost {min(self.costs):.6g}" if len(self.costs) else "no cost"
        return (
            f"Learned({learn.atoms_in_words(self.atoms)}; {cost} in "
            f"{len(self.costs)} rounds, lam={self.lam}, stopped by {self.stopped!r})"
        )


def gdl(
    X: ArrayLike,
    n_atoms: int,
    lam: float | None = None,
    *,
    n_neighbors: int | None = None,
    lam_scale: str | None = None,
    positive: bool = False,
    init: str | ArrayLike = "kmeans++",
    rank: int | None = None,
    n_iter: int = 20,
    tol: float = 1e-6,
    n_chains: int | None = None,
    rng: core.Rng = None,
    callback: Callable | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike | None = None,
    resume: str | os.PathLike | None = None,
    client: distributed.Client | None = None,
) -> Learned:
    """Learn n_atoms atoms from X (n, d, p) by rounds on workers; returns Learned.

    In a round each block is coded over the same atoms, the statistics of OnlineGDL are
    summed along n_chains chains of blocks, a tree merges the chains, and the atoms are
    updated once, here.
    n_chains: one for each thread that the workers have at the start, unless it is
    given. The result depends on it and on the blocks, to what rank cuts off, and not on
    which workers die.

    lam, n_neighbors, lam_scale, positive, n_iter, tol, rng, callback, progress,
    checkpoint, resume: as in learn.gdl; init too, but atoms are bases, and a method, as
    the median of lam_max, sees 10 samples an atom from at most 64 random blocks. Other
    samples are refused at the end of the first round that is resumed, in which workers
    digest them.
    rank: as in OnlineGDL; below d it makes the update approximate, so that a round may
    raise the cost: the atoms of the least are returned. n_iter rounds are n_iter + 1
    passes over X, since the cost of the last atoms is known after another.

    ValueError names the block and its rows if they are no bases; ConnectionError if the
    scheduler is gone: the checkpoint then is that of the last round.

    >>> from distributed import Client
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large import scale
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1,
    ...             dashboard_address=":0") as client:
    ...     learned = scale.gdl(X, 4, lam=0.2, n_iter=2, tol=0, rng=0, client=client)
    >>> learned.atoms.shape, learned.costs.shape  # that of the first atoms comes first
    ((4, 8, 2), (3,))
    """
    learner = streams.OnlineGDL(
        n_atoms,
        lam,
        n_neighbors=n_neighbors,
        lam_scale=lam_scale,
        positive=positive,
        init=init,
        rank=rank,
        forgetting=0,
        rng=rng,
    )
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    tol = core.check_number(tol, "tol", least=0)
    n_chains = None if n_chains is None else core.check_integer(n_chains, "n_chains", 1)
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function or None, got {callback!r}")
    parts = _Parts(X, n_atoms)
    options = [
        n_atoms,
        lam,
        n_neighbors,
        lam_scale,
        positive,
        rank,
        parts.shape,
        n_chains,
        parts.sizes,
    ]
    # workers digest the samples
    record = files.Checkpoint(checkpoint, resume, [], options)
    with _working(client) as client:
        parts.hold(client)
        if resume is None:
            costs = np.empty(0)
            learner = _with_first_atoms(learner, parts, client)
            best = learner.atoms
        else:
            arrays = record.read(streams.STATE | {"costs": "f", "best": "f"})
            learner.set_state(arrays, record.resume)
            costs = arrays["costs"]
            best = arrays["best"]
        n_chains = n_chains or max(1, sum(client.nthreads().values()))
        summed_over = functools.partial(_summed, client, parts, n_chains, record)
        learned = Learned(best, costs, learner.lam, learner.n_replaced, None)
        with shared.progress_line(progress, n_iter, "gdl, rounds") as move:
            return _rounds(
                summed_over, learner, learned, record, n_iter, tol, callback, move
            )


def _rounds(summed_over, learner, learned, record, n_iter, tol, callback, move):
    """Rounds until a reason to stop.

    What is Learned is never changed, so that it is whole.
    """
    stopped = None
    try:
        while stopped is None:
            summed = summed_over(learner)
            costs = np.append(learned.costs, float(summed.loss))
            best = summed.atoms if costs[-1] <= costs.min() else learned.atoms
            learned = Learned(best, costs, learner.lam, learner.n_replaced, None)
            move(0, costs[-1])
            if len(costs) > n_iter:
                stopped = "n_iter"
            elif len(costs) > 1 and costs[-2] - costs[-1] <= tol * costs[-2]:
                stopped = "tol"
            elif callback is not None and callback(learned):
                stopped = "callback"
            else:
                learner = summed.update().fork()
                record.write(learner.state() | {"costs": costs, "best": best})
                move(1)
    except KeyboardInterrupt:
        stopped = "interrupted"
        core.warn(
            "interrupted: the best dictionary so far is returned, after "
            f"{len(learned.costs)} rounds of {n_iter + 1}"
        )
    return learned._replace(stopped=stopped)


def _summed(client, parts, n_chains, record, learner):
    """The learner that has collected all blocks, by chains and a tree.

    The first round digests the samples too, which must be those that a resume goes on
    with.
    """
    keeps = record.checkpoint or record.resume
    digested = not keeps or record.fingerprint.samples > 0
    collect = _dask().delayed(
        functools.partial(_collect, digested=digested), pure=False
    )
    merge = _dask().delayed(_merge, pure=False)
    empty = client.persist(
        _dask().delayed((learner.fork(), 0), pure=False, traverse=False)
    )
    sums = [empty] * min(n_chains, len(parts))
    for i, (block, where) in enumerate(parts.blocks):
        chain = i % len(sums)
        sums[chain] = collect(sums[chain], block, where)
    while len(sums) > 1:
        pairs = [merge(a, b) for a, b in zip(sums[::2], sums[1::2])]
        sums = pairs + sums[len(sums) - len(sums) % 2 :]
    ((summed, digest),) = _in_order(client, sums)
    record.fingerprint.add(digest)
    record.check_samples()
    return summed


def _collect(collected, block, where, *, digested):
    """A copy of the learner that has collected a block, and the digest of its samples.

    Batches follow each other. The digest is left out where the samples are digested.
    """
    learner, digest = collected
    X = _bases(block, where, learner.atoms.shape[1])
    learner = copy.deepcopy(learner)  # a task may be done again
    for i in range(0, len(X), BATCH):
        learner.collect(X[i : i + BATCH])
    return learner, digest + (0 if digested else files.digest_rows(X, where[0] << 64))


def _merge(collected, other):
    """What two have collected, and its digest."""
    return collected[0].merge(other[0]), collected[1] + other[1]


def _with_first_atoms(learner, parts, client):
    """The learner over first atoms, and with the lambda, of samples of random blocks."""
    order = learner.rng.permutation(len(parts))
    seeds = learner.rng.integers(2**62, size=len(order)).tolist()
    wanted = DRAWN * learner.n_atoms
    draw = _dask().delayed(_drawn_from, pure=False)
    # few blocks may have most
    for quota in (-(-wanted // min(len(order), DRAWN_FROM)), wanted):
        samples = []
        for sample in _in_order(
            client,
            (draw(*parts.blocks[i], quota, seed) for i, seed in zip(order, seeds)),
        ):
            samples.append(sample)
            count = sum(map(len, samples))
            if count >= wanted:
                break
        if count >= learner.n_atoms:
            break
    if not count:
        raise ValueError("X must hold at least one subspace, got empty blocks")
    learner.collect(np.concatenate([sample for sample in samples if len(sample)]))
    if learner.atoms is None:
        raise ValueError(
            f"X must hold at least n_atoms = {learner.n_atoms} subspaces, got {count}"
        )
    return learner.fork()


def _drawn_from(block, where, count, seed):
    """At most so many random subspaces of a block."""
    X = _bases(block, where)
    return X[np.sort(np.random.default_rng(seed).permutation(len(X))[:count])]


# --------------------------------------------------------------------------- from files


def from_paths(paths: Iterable[str | os.PathLike], p: int) -> dask.array.Array:
    """Return a Dask array (n, d, p) of the subspaces of n clips.

    Workers read and reduce clips as needed, CLIPS = 64 in a block, by
    frames.read_frames and subspaces.from_image_set. The first clip is read at once, for
    d. ValueError names the clip that fails.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from grassmann_sc.large import scale
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "clip.npy")
    ...     np.save(path, np.random.default_rng(0).random((12, 6, 8)))
    ...     scale.from_paths([path, path], p=2).compute().shape
    (2, 48, 2)
    """
    if not np.iterable(paths) or isinstance(paths, (str, bytes)):
        raise TypeError(f"paths must be a list of paths, got {paths!r}")
    paths = [files.check_path(path, f"paths[{i}]") for i, path in enumerate(paths)]
    if not paths:
        raise ValueError("paths must hold at least one path, got none")
    p = core.check_integer(p, "p", 1)
    first = _bases_of_clips([paths[0]], p, None)
    shape = first.shape[1:]
    read = _dask().delayed(_bases_of_clips, pure=False)
    some = [paths[i : i + CLIPS] for i in range(0, len(paths), CLIPS)]
    return _joined(
        [read(few, p, shape) for few in some], map(len, some), shape, first.dtype
    )


def _bases_of_clips(paths, p, shape):
    """Bases (n, d, p) of clips, of that shape (d, p) if it is known."""
    from grassmann_sc import frames, subspaces

    bases = []
    for path in paths:
        try:
            bases.append(subspaces.from_image_set(frames.read_frames(path), p))
        except Exception as error:  # whatever a reader raises
            raise ValueError(f"paths: {path} has no subspace: {error}") from error
        if shape not in (None, bases[-1].shape):
            raise ValueError(
                f"{path} has a basis of shape {bases[-1].shape}, and the first clip "
                f"one of {shape}"
            )
    return np.stack(bases)


# -------------------------------------------------------------------------- blocks of X


class _Parts:
    """X (n, d, p) as blocks: (what gives one, where it is), to be made into tasks."""

    def __init__(self, X, N, first=0, stop=None, name="X", n_blocks=BLOCKS):
        self.lazy = hasattr(X, "to_delayed")
        if isinstance(X, np.memmap) and not _is_of_a_file(X):
            X = np.asarray(X)
        if not (self.lazy or is_stored(X)):
            X = core.real_array(X, name)
        self.X = X
        self.shape = tuple(X.shape)
        check_shape_of_bases(self.shape, name)
        self.dtype = np.dtype(shared.float_type(X))
        if self.lazy:
            X = X if first == 0 and stop is None else X[first:stop]
            X = X.rechunk({1: -1, 2: -1})
            self.sizes = X.chunks[0]
            starts = first + np.cumsum([0, *self.sizes[:-1]])
            starts = [None if np.isnan(i) else int(i) for i in starts]
            blocks = X.to_delayed().ravel().tolist()
        else:
            n = self.shape[0] if stop is None else stop
            step = min(rows_in_block(X, N), max(LEAST, -(-n // n_blocks)))
            starts = range(first, n, step) if n else [0]
            self.sizes = tuple(min(step, n - i) for i in starts)
            blocks = [_rows(X, i, i + size) for i, size in zip(starts, self.sizes)]
        self.blocks = list(zip(blocks, enumerate(starts)))

    def __len__(self):
        return len(self.blocks)

    def n_rows(self):
        return core.check_integer(self.shape[0], "len(X)", 0)

    def hold(self, client):
        """Send what is in memory here to the cluster, once."""
        if not is_stored(self.X):
            blocks = [_dask().delayed(block, pure=False) for block, _ in self.blocks]
            self.blocks = list(
                zip(client.persist(blocks), [where for _, where in self.blocks])
            )

    def each(self, function, *arguments):
        """Tasks of function(block, where, *arguments) for each block."""
        task = _dask().delayed(function, pure=False)
        return [task(block, where, *arguments) for block, where in self.blocks]


def _joined(tasks, sizes, shape, dtype):
    """The Dask array whose blocks, (size, *shape), the tasks give."""
    array = _dask().array
    pieces = [
        array.from_delayed(task, (n, *shape), dtype) for task, n in zip(tasks, sizes)
    ]
    return array.concatenate(pieces, allow_unknown_chunksizes=True)


def _is_of_a_file(X):
    """Does a file with a name hold the numbers of this memmap?"""
    return X.mode != "c" and X.filename is not None


def _rows(X, start, stop):
    """These rows of X, or what reads them on any worker."""
    if start == stop:  # no rows are no part of a file
        return X[start:stop]
    if isinstance(X, np.memmap):
        return _mapped_rows(X[start:stop])
    if type(X).__module__.partition(".")[0] == "h5py":
        path = os.path.abspath(X.file.filename)
        return functools.partial(_read_hdf5, path, X.name, start, stop)
    if is_stored(X):
        return functools.partial(X.__getitem__, slice(start, stop))
    return X[start:stop]


def _mapped_rows(X):
    """What opens this part of a file that is mapped here, on any worker."""
    whole = X
    while isinstance(whole.base, np.memmap):
        whole = whole.base
    offset = whole.offset + X.ctypes.data - whole.ctypes.data
    return functools.partial(
        _read_mapped, os.path.abspath(X.filename), X.shape, X.dtype, offset, X.strides
    )


def _read_mapped(path, shape, dtype, offset, strides):
    return np.ndarray(shape, dtype, np.memmap(path, np.uint8, "r"), offset, strides)


def _read_hdf5(path, name, start, stop):
    import h5py

    with h5py.File(path, "r") as file:
        return file[name][start:stop]


def _bases(block, where, d=None, name="X"):
    """A block of X as bases (n, d, p) of R^d; an error names the block and its rows."""
    number, first = where
    block = np.asanyarray(block() if callable(block) else block)  # masks are refused
    try:
        X = core.check_bases(block, name, first=first or 0, weighted=True)
        if d not in (None, X.shape[1]):
            raise ValueError(f"X must have the d of the atoms, {d}, got {X.shape[1]}")
    except (TypeError, ValueError) as error:
        rows = "" if first is None else f", of rows {first}..{first + len(block) - 1}"
        raise ValueError(f"{error} (in block {number}{rows})") from None
    return X


# -------------------------------------------------------------------------- the cluster


def local_client(n_workers: int | None = None) -> distributed.Client:
    """A Dask client of workers on this machine, of one thread each.

    One worker a core, or n_workers. Its close(), or the end of a with block, ends them.

    ImportError without Dask, ValueError for fewer workers than one.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large import scale
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> with scale.local_client(2) as client:  # doctest: +SKIP
    ...     codes = scale.code(X, X[:4], 0.2, client=client)
    """
    if n_workers is not None:
        n_workers = core.check_integer(n_workers, "n_workers", 1)
    dask = _dask()
    import distributed

    single = dict.fromkeys(
        [
            "OMP_NUM_THREADS",
            "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS",
            "NUMBA_NUM_THREADS",
        ],
        1,
    )
    # Dask gives up a worker that is not there 15 s after it died, also while it is
    # started again: on a busy machine all go, and the client waits forever
    dask.config.update_defaults(
        {"distributed": {"deploy": {"lost-worker-timeout": "1 hour"}}}
    )
    with dask.config.set({"distributed.nanny.pre-spawn-environ": single}):
        return distributed.Client(
            n_workers=n_workers, threads_per_worker=1, dashboard_address=":0"
        )


def _dask():
    for module in ("distributed", "dask.array", "dask"):
        dask = shared.import_extra(module, "scale needs Dask", '"dask[distributed]"')
    return dask


@contextlib.contextmanager
def _working(client):
    """The client given, or one of this machine for as long.

    ConnectionError if its scheduler goes.
    """
    _dask()
    import distributed
    from distributed.comm import CommClosedError

    with contextlib.ExitStack() as stack:
        if client is None:
            client = stack.enter_context(local_client())
        elif not isinstance(client, distributed.Client):
            raise TypeError(
                f"client must be a distributed.Client or None, got {client!r}"
            )
        try:
            yield client
        except Exception as error:  # Dask raises many kinds once its scheduler is gone
            lost = isinstance(error, (CancelledError, CommClosedError))
            if client.status == "running" and not lost:
                raise
            raise ConnectionError(
                "client must stay connected to its scheduler, which is gone: what"
                f" was written before is whole, go on from it ({error})"
            ) from error


def _in_order(client, tasks, settle=False):
    """The results of tasks in their order.

    Few tasks wait for each other. settle: at the end let those that write finish.
    """
    import distributed

    tasks = iter(tasks)
    ahead = 2 * max(1, sum(client.nthreads().values()))
    running = deque(client.compute(task) for task in itertools.islice(tasks, ahead))
    try:
        while running:
            while not running[0].done():
                if client.status not in ("running", "connecting"):  # it never comes
                    raise CancelledError(f"client is {client.status}")
                with contextlib.suppress(distributed.TimeoutError):
                    distributed.wait(running[0], timeout=PATIENCE)
            yield running[0].result()
            running.popleft()
            running.extend(client.compute(task) for task in itertools.islice(tasks, 1))
    finally:
        if settle and running and client.status == "running":
            with contextlib.suppress(distributed.TimeoutError):
                distributed.wait(list(running), timeout=PATIENCE)
        for future in running:
            future.release()
