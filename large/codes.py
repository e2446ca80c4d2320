"""Codes that do not fit in memory, of stored arrays and into files, block by block.

An .npy file holds at each moment the rows that are done, a folder holds CSR arrays of
consecutive rows. Both keep the files.Fingerprint of what was computed, and are resumed.
"""

from __future__ import annotations

import math
import os
import re
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import files, shared

__all__ = ["write_codes", "load_codes", "each_part"]

MOST_NUMBERS = 2**22  # of the bases that are read at a time
HEADER_LENGTH = 128  # bytes of an .npy file of codes
MAGIC = b"\x93NUMPY\x01\x00"  # that it begins with
PART = "[0-9]" * 15 + ".npz"  # the file of a part of codes, by its first row
RESUMED_CODES = "out must hold codes of the same subspaces, atoms and options to resume"


def write_codes(
    out: Any,
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
    start: int | str = 0,
    replace: bool = False,
    progress: bool = False,
) -> int:
    """Write the codes of X (n, d, p) over atoms D (N, d, q) to out, block by block.

    Memory does not grow with n. The codes are those of gsc with lam, of glc with
    n_neighbors, with their options.
    X: an array, a memmap, or an array of zarr, HDF5 or Dask, read and checked slice by
    slice. Codes of subspaces in a kernel's feature space are those of their
    coordinates, by kernels.Lift.
    out: the path of an .npy file, or with sparse_output=True of a folder of CSR parts,
    both for load_codes; an array (n, N) of floats, or what is assigned to like one; a
    function (row, codes). Never the file, the store or the memory of X or D; of what a
    Dask array reads from, that is not looked up.
    start: the row to resume at, or "resume" for where a path ends. A path keeps a
    fingerprint: the rows of X that are done are read and digested again, and ValueError
    tells if they, the atoms or the options differ. replace: may a path lose what it
    holds? Without it ValueError tells of codes of other subspaces, atoms or options,
    and of other files. progress: tell how far it is, on stderr. Returns n. Ctrl-C raises a
    KeyboardInterrupt that says from which row to go on; what was written is whole.

    >>> import os, tempfile
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large.codes import load_codes, write_codes
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "codes.npy")
    ...     write_codes(path, X[:3], X, lam=0.1)
    ...     write_codes(path, X, X, lam=0.1, start="resume")
    ...     load_codes(path).shape
    3
    5
    (5, 5)
    """
    bases: Any = StoredBases(X, "X")
    bases, atoms = core.same_dimension(
        bases, core.check_dictionary(D, "D", weighted=True), "XD"
    )
    code = core.make_coding(
        (len(bases), len(atoms)),
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
    sink = Sink(out, len(bases), atoms, code, replace, X=X, D=D)
    K = core.bases_gram(atoms)
    height = rows_in_block(bases.X, len(atoms))

    def digest(first, stop):
        return sum(
            files.digest_rows(bases[i : min(i + height, stop)], i)
            for i in range(first, stop, height)
        )

    def pieces(row):
        stops = [*range(row - row % height + height, len(bases), height), len(bases)]
        for first, stop in zip([row, *stops], stops):
            block = bases[first:stop]
            codes = code(K, core.LazyGram(block, atoms), core.squared_norm(block))
            yield codes, files.digest_rows(block, first) if sink.keeps else 0

    return sink.fill(start, progress, digest, pieces)


def load_codes(path: str | os.PathLike) -> np.ndarray | scipy.sparse.csr_array:
    """Codes that were written to this path.

    An array (n, N) read from the file as it is used, or, of a folder, a CSR array. n
    counts the rows that were done. Nothing in a file is executed.

    ValueError for a file that is damaged or not of codes, or a folder without any.

    >>> import tempfile
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large.codes import load_codes, write_codes
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = write_codes(folder, X, X[:3], n_neighbors=1, sparse_output=True)
    ...     load_codes(folder).nnz
    5
    """
    path = files.check_path(path)
    if os.path.isdir(path):
        return scipy.sparse.vstack(
            [codes for _, codes in each_part(path)], format="csr"
        )
    with open(path, "rb"), files.refuse_damaged(path, "file of codes"):
        codes = np.lib.format.open_memmap(path, mode="r")
        is_written = (
            codes.dtype in (np.float32, np.float64) and codes.flags.c_contiguous
        )
        if codes.ndim != 2 or not is_written:
            raise ValueError(f"it holds {codes.dtype} {codes.shape}")
    return codes


def each_part(path: str | os.PathLike) -> Iterator[tuple[int, scipy.sparse.csr_array]]:
    """(first row, CSR array) of each part of a folder of codes, until one is missing.

    All parts together, as load_codes gives them, may not fit in memory. ValueError for a
    folder without codes from row 0 on.

    >>> import tempfile
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.large.codes import each_part, write_codes
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = write_codes(folder, X, X[:3], 0.1, sparse_output=True)
    ...     [(row, codes.shape) for row, codes in each_part(folder)]
    [(0, (5, 3))]
    """
    path = files.check_path(path)
    if 0 not in _rows_of_parts(path):
        raise ValueError(
            f"path must be a folder of codes, got none from row 0 on in {path}"
        )
    return ((row, codes) for row, codes, _ in _parts_until_a_gap(path))


# ------------------------------------------------------------------------ stored arrays


def is_stored(X):
    """Whether X is an array of which slices are read.

    Such are a memmap, and arrays of zarr, HDF5 and Dask.
    """
    return isinstance(X, np.memmap) or hasattr(X, "chunks") and hasattr(X, "shape")


class StoredBases:
    """Bases or weighted subspaces (n, d, p) of a stored array, read and checked by slices.

    An array in memory will do too.
    """

    def __init__(self, X, name):
        self.X = X if is_stored(X) else core.real_array(X, name)
        self.name = name
        self.shape = tuple(
            core.check_integer(n, f"each of the shape of {name}", 0)
            for n in self.X.shape
        )
        self.dtype = np.dtype(shared.float_type(self.X))
        check_shape_of_bases(self.shape, name)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        start, stop, _ = rows.indices(len(self))
        some = self.X[start:stop]
        if hasattr(some, "compute"):  # of Dask, whose masks NumPy would drop
            some = some.compute()
        try:
            return core.check_bases(some, self.name, first=start, weighted=True).astype(
                self.dtype, copy=False
            )
        except ValueError as error:
            raise ValueError(
                f"{error} (in the block of rows {start}..{stop - 1})"
            ) from None

    def astype(self, dtype, copy):
        """The same bases, read as this type."""
        bases = StoredBases(self.X, self.name)
        bases.dtype = dtype
        return bases


def check_shape_of_bases(shape, name):
    """ValueError unless arrays of this shape can hold n bases."""
    if len(shape) != 3 or not 1 <= shape[2] <= shape[1]:
        raise ValueError(
            f"{name} must have shape (n, d, p) with 1 <= p <= d, got {shape}"
        )


def rows_in_block(X, N):
    """Rows of an array X (n, d, p) that are read and coded over N atoms at a time.

    A few chunks of a stored array, or one that is not much larger than memory asks for.
    """
    step = max(64, min(core.TILE // N, MOST_NUMBERS // (X.shape[1] * X.shape[2])))
    chunks = getattr(X, "chunks", None)
    chunk = int(np.max(chunks[0], initial=1)) if chunks else 1
    if step < chunk <= 4 * step:
        return chunk
    return step - step % min(chunk, step)


# ----------------------------------------------------------------------- where codes go


class Sink:
    """Where codes (n, N) over N atoms are written to, row after row.

    They come from gsc or glc, here or on many machines.
    options: of the coding, a named tuple; replace: may a path lose what it holds?
    inputs: what out must not be, by name. keeps: is a fingerprint kept? folder: that of
    parts, to which others may write them, or None.
    """

    def __init__(self, out, n, atoms, options, replace=False, **inputs):
        self.n = n
        self.replace = core.check_flag(replace, "replace")
        self.place = _place_of(out, (n, len(atoms)), atoms.dtype, options.sparse_output)
        self.keeps = isinstance(self.place, _Path)
        self.folder = self.place.path if isinstance(self.place, _Folder) else None
        if self.replace and not self.keeps:
            raise ValueError(
                "replace belongs to the path of a file or folder, leave it out with "
                f"an out of type {type(out).__name__}"
            )
        _check_apart(out, inputs)
        apart = "sparse_output", "init", "return_info"  # change no code
        described = {
            name: of for name, of in options._asdict().items() if name not in apart
        }
        self.fingerprint = files.Fingerprint(described, atoms)

    def fill(self, start, progress, digest, pieces):
        """Write pieces(row), codes of consecutive rows, from the row of start on.

        Returns n. A piece is codes, or Written, and the digest of these rows of X. A
        KeyboardInterrupt says from which row to go on, and so does the OSError of a
        full disk. digest(first, stop): of these rows of X. Those before the row must be
        those whose codes a path holds, over the same atoms and with the same options.
        """
        progress = core.check_flag(progress, "progress")
        if not (isinstance(start, str) and start == "resume"):
            start = core.check_integer(start, "start", 0, self.n)
        row = self._begin(start, digest) if self.keeps else start
        if row == "resume":
            raise ValueError(
                "start='resume' needs the path of a file or folder as out: give the "
                "row where it stopped"
            )
        with shared.progress_line(progress, self.n, "codes, rows", row) as move:
            try:
                for codes, added in pieces(row):
                    height = codes.shape[0]
                    self.fingerprint.add(added)
                    if height and not isinstance(codes, Written):
                        self.place.write(row, codes, self.fingerprint, added)
                    row += height
                    move(height)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    f"the codes of {row} of {self.n} rows are written and whole, start "
                    f"= {row} goes on"
                ) from None
            except OSError as error:
                if error.errno is None:  # of a connection, not of a disk
                    raise
                raise OSError(
                    error.errno,
                    f"{error.strerror}: the codes of the rows before {row} are written "
                    f"and whole, start = {row} goes on",
                    error.filename,
                ) from error
        return row

    def _begin(self, start, digest):
        """The row of start, once all before it are compared and the path is ready."""
        row, whole, text = self.place.find(start)
        if row == 0 and not self.replace:
            self._check_nothing_is_lost(digest)
        elif row > 0:
            self._check_same(row, whole, text, RESUMED_CODES, digest)
        self.place.begin(row, self.fingerprint)
        return row

    def _check_nothing_is_lost(self, digest):
        """ValueError if the path holds anything but codes of the same problem."""
        path = self.place.path
        rule = "codes of the same subspaces, atoms and options need no replace"
        try:
            if self.place.is_empty():
                return
            whole, text = self.place.rows("resume")
            if not 0 < whole <= self.n:
                raise ValueError(f"{rule}: they have {self.n} rows, {path} has {whole}")
            self._check_same(0, whole, text, rule, digest)
        except ValueError as error:
            raise ValueError(
                "out must be a path that holds nothing to lose, unless replace=True: "
                f"{error}"
            ) from None

    def _check_same(self, row, whole, text, rule, digest):
        """ValueError unless the whole rows with this fingerprint are of the same problem.

        Adds the digest of those before the row.
        """
        path = self.place.path
        self.fingerprint.check(text, rule, path)
        self.fingerprint.add(digest(0, row))
        self.fingerprint.check(text, rule, path, digest(row, whole))


def _place_of(out, shape, dtype, sparse):
    """What writes codes of this shape (n, N) and type to out."""
    if callable(out):
        return _Function(out)
    if isinstance(out, (str, bytes, os.PathLike)):
        path = files.check_path(out, "out")
        if os.path.exists(path) and os.path.isdir(path) != sparse:
            raise ValueError(
                "out must be the path of a folder with sparse_output=True, else of a "
                f"file, got {path}"
            )
        return (_Folder if sparse else _File)(path, shape, dtype)
    if not hasattr(out, "__setitem__") or not hasattr(out, "shape"):
        raise TypeError(
            "out must be a path, an array or a function (row, codes), got "
            f"{type(out).__name__}"
        )
    if sparse:
        raise ValueError(
            "out must be the path of a folder or a function with sparse_output=True, "
            f"got {type(out).__name__}"
        )
    if tuple(out.shape) != shape:
        raise ValueError(f"out must have shape {shape}, got {tuple(out.shape)}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out must be writeable, got an array that is read-only")
    kind = getattr(out, "dtype", None)
    if isinstance(kind, np.dtype) and (
        kind.kind in "SUV" or not np.can_cast(dtype, kind, "same_kind")
    ):
        raise TypeError(
            f"out must have a dtype that holds codes of {dtype}, got {kind}"
        )
    return _Function(
        lambda row, codes: out.__setitem__(slice(row, row + len(codes)), codes)
    )


def _check_apart(out, inputs):
    """ValueError if out is an input's file or memory, or within or around its store."""
    path = _path_of(out)
    for name, array in inputs.items():
        own = _path_of(array)
        if path and own:
            within = os.path.isdir(own) and os.path.commonpath([path, own])
            if path == own or within in (path, own):
                raise ValueError(
                    f"out must lie apart from the file or store of {name}, {own}, got "
                    f"{path}"
                )
        both = isinstance(out, np.ndarray) and isinstance(array, np.ndarray)
        if both and np.shares_memory(out, array):
            raise ValueError(f"out must share no memory with {name}, got a view of it")


def _path_of(array):
    """The real path of what is a path, or of the file or folder of a memmap, a view of
    one, or an array of HDF5 or zarr; else None.
    """
    path = array
    if type(array).__module__.partition(".")[0] == "h5py":
        path = array.file.filename
    elif hasattr(array, "store"):  # of zarr: root of a folder, path of a file
        path = getattr(array.store, "root", getattr(array.store, "path", None))
        if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
            path = os.path.join(path, array.path)
    while isinstance(path, np.ndarray):
        below = path.base if isinstance(path.base, np.ndarray) else None  # no bytes
        path = getattr(path, "filename", None) or below
    is_path = isinstance(path, (str, bytes, os.PathLike))
    return os.path.realpath(os.fsdecode(path)) if is_path else None


class _Function(namedtuple("_Function", "out")):
    """A function (row, codes) that takes codes as they come."""

    def write(self, row, codes, fingerprint, added):
        self.out(row, codes)


class _Path(namedtuple("_Path", "path shape dtype")):
    """A path that codes (n, N) of a type are written to, and resumed.

    is_empty(): would nothing be lost if it was written anew?
    """

    def find(self, start):
        """The row to begin at, the rows that are whole, and their fingerprint."""
        there = start != 0 and os.path.exists(self.path)
        whole, text = self.rows(start) if there else (0, "")
        if start != "resume" and start > whole or whole > self.shape[0]:
            raise ValueError(
                f"start must be a row in 0..{whole} where {self.path} holds {whole} "
                f"rows of {self.shape[0]}, got {start!r}"
            )
        return whole if start == "resume" else start, whole, text


class _File(_Path):
    """An .npy file (n, N).

    It has a header of constant length, which says how many rows are whole and, in a
    comment, their fingerprint."""

    def is_empty(self):
        if not os.path.exists(self.path):
            return True
        with open(self.path, "rb") as file:
            header = file.read(HEADER_LENGTH)
        return not header or header.startswith(MAGIC) and b"'shape': (0, " in header

    def rows(self, start):
        with open(self.path, "rb") as file:
            header = file.read(HEADER_LENGTH)
        length = os.path.getsize(self.path)
        match = re.search(rb"'shape': \((\d+), \d+\)} #([0-9a-f ]*)\n", header)
        n = int(match[1]) if match else 0
        text = match[2].decode().strip() if match else ""
        if header != self._header(n, text):
            raise ValueError(
                f"out must be a file of codes (n, {self.shape[1]}) of {self.dtype} "
                f"that this toolkit wrote to go on from, got another in {self.path}"
            )
        if length < self._offset(n):
            raise ValueError(
                f"out must hold the {n} rows that it says are whole to go on from, "
                f"got {length} bytes of {self._offset(n)} in {self.path}"
            )
        return n, text

    def begin(self, row, fingerprint):
        header = self._header(row, fingerprint.text())
        if row == 0:  # whoever has mapped the file that was there keeps it
            files.write_whole(self.path, lambda file: file.write(header))
            return
        with open(self.path, "r+b") as file:
            file.write(header)
            files.to_disk(file)

    def write(self, row, codes, fingerprint, added):
        with open(self.path, "r+b") as file:
            if os.path.getsize(self.path) < self._offset(row):
                raise ValueError(
                    f"out must be written by one run at a time, and {self.path} lost "
                    f"rows before row {row}"
                )
            file.truncate(self._offset(row))  # what was not whole
            file.seek(self._offset(row))
            file.write(np.ascontiguousarray(codes))
            files.to_disk(file)
        self.begin(row + len(codes), fingerprint)

    def _offset(self, row):
        return HEADER_LENGTH + row * self.shape[1] * self.dtype.itemsize

    def _header(self, n, text):
        fields = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (n, self.shape[1]),
        }
        text = f"{fields} #{text}".ljust(HEADER_LENGTH - 11) + "\n"
        return MAGIC + len(text).to_bytes(2, "little") + text.encode()


class _Folder(_Path):
    """A folder of parts: CSR arrays of consecutive rows, each with its fingerprint."""

    def is_empty(self):
        parts = _rows_of_parts(self.path)
        return not parts or parts == [0] and _read_part(self.path, 0)[0].shape[0] == 0

    def rows(self, start):
        n = 0
        samples = 0
        problem = ""
        stop = math.inf if start == "resume" else start
        for row, codes, text in _parts_until_a_gap(self.path, stop):
            n = row + codes.shape[0]
            problem, _, digest = text.rpartition(" ")
            samples += int(digest, 16)
            if codes.shape[1] != self.shape[1] or codes.dtype != self.dtype:
                raise ValueError(
                    f"out must hold codes (n, {self.shape[1]}) of {self.dtype} to go "
                    f"on from, got (n, {codes.shape[1]}) of {codes.dtype} in "
                    f"{self.path}"
                )
        if start != "resume" and start < n:
            raise ValueError(
                f"start must be where a part ends, such as {n}, got {start}"
            )
        return n, f"{problem} {files.shortened(samples)}"

    def begin(self, row, fingerprint):
        os.makedirs(self.path, exist_ok=True)
        for other in reversed(_rows_of_parts(self.path)):
            if other >= row:
                os.unlink(_name(self.path, other))
        if row == 0:  # what is there can be read before, and without, the first rows
            empty = scipy.sparse.csr_array((0, self.shape[1]), dtype=self.dtype)
            self.write(0, empty, fingerprint, 0)

    def write(self, row, codes, fingerprint, added):
        write_part(self.path, row, codes, fingerprint.text(added))


# Stands for codes of this shape that a worker has written to the folder.
Written = namedtuple("Written", "shape")


def write_part(folder, row, codes, text):
    """Write CSR codes from this row on as a part of a folder, whole or not at all.

    text: the fingerprint of these rows.
    """
    files.write_arrays(
        _name(folder, row),
        "codes",
        {
            "shape": codes.shape,
            "values": codes.data,
            "columns": codes.indices,
            "starts": codes.indptr,
            "fingerprint": text,
        },
    )


def _read_part(folder, row):
    """The CSR codes of the part that begins with this row, and their fingerprint."""
    path = _name(folder, row)
    kinds = dict(shape="i", values="f", columns="i", starts="i", fingerprint="U")
    arrays = files.read_arrays(path, "codes", kinds, kinds)
    content = arrays["values"], arrays["columns"], arrays["starts"]
    codes = scipy.sparse.csr_array(content, shape=tuple(arrays["shape"].tolist()))
    return codes, str(arrays["fingerprint"])


def _parts_until_a_gap(path, stop=math.inf):
    """(first row, codes, fingerprint) of each part before a row, until one is missing."""
    expected = 0
    for row in _rows_of_parts(path):
        if row == expected < stop:
            codes, text = _read_part(path, row)
            expected = row + codes.shape[0]
            yield row, codes, text


def _name(folder, row):
    return os.path.join(folder, f"{row:015d}.npz")


def _rows_of_parts(folder):
    """The first rows of the parts in a folder, ascending."""
    return sorted(int(path.stem) for path in Path(folder).glob(PART))
