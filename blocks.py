"""Codes that do not fit in memory: written to files block by block, as gsc and glc are given out.

A file of codes is at each moment an .npy file of the rows that are done; a folder of codes holds
CSR arrays of consecutive rows, each whole or not there. So what a kill, Ctrl-C or a full disk
leaves can be read, and gone on from: both keep the fingerprint of atoms, options and all rows that
are coded. Needs files.py.
"""

from __future__ import annotations

import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import scipy.sparse

import grassmann_sc as core
from grassmann_sc import files

__all__ = ["write_codes", "rows_in_block", "Sink", "load_codes", "each_part"]

MOST_NUMBERS = 2**22  # of the bases that are read at a time
PART = re.compile(r"(\d{15})\.npz")  # the file of a part, by its first row
UNFINISHED = re.compile(PART.pattern + r"\.\d+\.unfinished")
HEADER_LENGTH = 128  # bytes


def write_codes(code: Callable, X: np.ndarray | core.StoredBases, D: np.ndarray, options: Any,
                out: Any, start: int | str = 0, progress: bool = False) -> int:
    """Write code(block of X) to out for blocks of X (n, d, p) from row start on; gsc tells what out
    and start may be.

    The caller has checked X, StoredBases if it is stored, atoms D (N, d, q), and the options of gsc
    or glc. Returns the row where it stopped.

    >>> import numpy as np
    >>> from grassmann_sc import blocks, glc, local_options, random_subspaces
    >>> X = random_subspaces(2, 8, 2, rng=0)
    >>> out = np.zeros((2, 2))
    >>> options = local_options(2, X.dtype, n_neighbors=1)
    >>> blocks.write_codes(lambda some: glc(some, X, 1), X, X, options, out), out.tolist()
    (2, [[1.0, 0.0], [0.0, 1.0]])
    """
    if getattr(options, "init", None) is not None or getattr(options, "return_info", False):
        raise ValueError("init and return_info must be left out with out")
    if np.ndim(getattr(options, "lam", 0)):
        raise ValueError(f"lam must be one number with out, got {options.lam!r}")
    n = len(X)
    step = rows_in_block(X, len(D))
    sink = Sink(out, n, X, D, options)
    row = sink.begin(start, lambda first, stop: sum(
        files.digest_rows(X[i:min(i + step, stop)], i) for i in range(first, stop, step)))
    return sink.write_all(_coded(code, X, row, step, sink.keeps), progress)


def _coded(code, X, row, step, digested):
    """(codes, digest of their rows of X) of block after block from a row on."""
    stops = [*range(row - row % step + step, len(X), step), len(X)]
    for first, stop in zip([row, *stops], stops):
        block = X[first:stop]
        yield code(block), files.digest_rows(block, first) if digested else 0


def rows_in_block(X: np.ndarray | core.StoredBases, N: int) -> int:
    """Rows of X (n, d, p) that are read and coded over N atoms at a time.

    A few chunks of a stored array, or its chunk if that is not much larger than memory asks for.

    >>> import numpy as np
    >>> from grassmann_sc import blocks
    >>> blocks.rows_in_block(np.empty((1, 1024, 16)), N=10)  # of 2^14 numbers each
    256
    """
    step = max(64, min(core.TILE // N, MOST_NUMBERS // (X.shape[1] * X.shape[2])))
    chunks = getattr(X.X, "chunks", None) if isinstance(X, core.StoredBases) else None
    if not chunks:
        return step
    chunk = int(np.max(chunks[0], initial=1))
    if chunk <= step:
        return step - step % chunk
    return chunk if chunk <= 4 * step else step


# ------------------------------------------------------------------------------- where codes go


class Sink:
    """Where codes (n, N) of n rows of X over atoms D are written to, row after row, and the row
    where that is.

    options: of gsc or glc, a named tuple. keeps: is a fingerprint kept?

    >>> import numpy as np
    >>> from grassmann_sc import blocks, local_options, random_subspaces
    >>> X = random_subspaces(3, 8, 2, rng=0)
    >>> out = np.zeros((3, 2))
    >>> sink = blocks.Sink(out, 3, X, X[:2], local_options(2, X.dtype, n_neighbors=1))
    >>> sink.begin(1, digest=None), sink.write_all([(np.ones((2, 2)), 0)], progress=False)
    (1, 3)
    >>> out.sum(axis=1)
    array([0., 2., 2.])
    """

    def __init__(self, out: Any, n: int, X: Any, D: np.ndarray, options: Any) -> None:
        self.n = n
        self.place = _place_of(out, (n, len(D)), D.dtype, options.sparse_output)
        self.keeps = self.place.keeps
        _check_apart(out, X=X, D=D)
        described = options._asdict()
        for name in ("sparse_output", "init", "return_info"):  # change no code
            described.pop(name, None)
        self.fingerprint = files.Fingerprint(described, D)
        self.row = 0

    def begin(self, start: int | str, digest: Callable) -> int:
        """Begin at a row, or at the end of what is there with "resume"; returns the row.

        digest(first, stop): of these rows of X. Those before the row must be those whose codes a
        path holds, over the same atoms and with the same options. Of codes without a fingerprint,
        from an earlier version, a start that is a number goes on unchecked.
        """
        if not (isinstance(start, str) and start == "resume"):
            start = core.check_integer(start, "start", 0, self.n)
        self.row, whole, text = self.place.find(start)
        if self.keeps and self.row > 0:
            self._check_same(start, whole, text, digest)
        self.place.begin(self.row, self.fingerprint.text())
        return self.row

    def _check_same(self, start, whole, text, digest):
        """ValueError unless the whole rows found, with this fingerprint, are of the same problem;
        adds the digest of those before the row."""
        rule = "out must hold codes of the same subspaces, atoms and options to resume"
        path = self.place.path
        if text:
            self.fingerprint.check(text, rule, path, samples=False)
        elif start == "resume":
            raise ValueError(f"{rule}, with a fingerprint that tells of them: {path} is of an "
                             f"earlier version of this toolkit, start = {whole} goes on unchecked")
        self.fingerprint.add(digest(0, self.row))
        if text:
            rest = digest(self.row, whole)
            self.fingerprint.add(rest).check(text, rule, path, samples=True)
            self.fingerprint.add(-rest)

    def write_all(self, pieces: Iterable, progress: bool) -> int:
        """Write the pieces, (codes of consecutive rows, digest of these rows); returns the row
        where it stopped."""
        with core.progress_bar(progress, total=self.n, initial=self.row, desc="codes",
                               unit="rows") as bar:
            try:
                for codes, digest in pieces:
                    if codes.shape[0]:
                        self._write(codes, digest)
                        bar.update(codes.shape[0])
            except KeyboardInterrupt:
                warnings.warn(f"interrupted: the codes of {self.row} of {self.n} rows are written,"
                              f" start = {self.row} goes on", stacklevel=5)
        return self.row

    def _write(self, codes, digest):
        self.fingerprint.add(digest)
        try:
            self.place.write(self.row, codes, self.fingerprint.text())
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror or error}: the codes of the rows before "
                          f"{self.row} are written and whole, start = {self.row} goes on",
                          error.filename) from error
        self.row += codes.shape[0]


def _place_of(out, shape, dtype, sparse):
    """What writes codes of this shape (n, N) and type to out."""
    if callable(out):
        return _Function(out)
    if isinstance(out, (str, bytes, os.PathLike)):
        return (_Folder if sparse else _File)(files.check_path(out, "out"), shape, dtype)
    if not hasattr(out, "__setitem__") or not hasattr(out, "shape"):
        raise TypeError("out must be a path, an array or a function (row, codes), got "
                        f"{type(out).__name__}")
    if sparse:
        raise ValueError("out must be the path of a folder or a function with sparse_output=True, "
                         f"got {type(out).__name__}")
    if tuple(out.shape) != shape:
        raise ValueError(f"out must have shape {shape}, got {tuple(out.shape)}")
    held = getattr(out, "dtype", None)
    if isinstance(held, np.dtype) and (held.kind in "SUV"
                                       or not np.can_cast(dtype, held, "same_kind")):
        raise TypeError(f"out must have a dtype that holds codes of {dtype}, got {held}")
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out must be an array that can be written to, got one that is read-only")
    return _Array(out)


def _check_apart(out, **inputs):
    """ValueError if out is the file or the memory of an input."""
    paths = [out] if isinstance(out, (str, bytes, os.PathLike)) else _paths_of(out)
    for name, array in inputs.items():
        array = array.X if isinstance(array, core.StoredBases) else array
        for path, own in itertools.product(paths, _paths_of(array)):
            if os.path.exists(path) and os.path.exists(own) and os.path.samefile(path, own):
                raise ValueError(f"out must be another file than that of {name}, got "
                                 f"{os.fsdecode(path)}")
        arrays = isinstance(out, np.ndarray) and isinstance(array, np.ndarray)
        if arrays and np.shares_memory(out, array):
            raise ValueError(f"out must share no memory with {name}, got a view of it")


def _paths_of(array):
    """The files that an array is mapped to or read from, as far as it tells: of a memmap or a view
    of one, of HDF5, or of such as are in the graph of a Dask array."""
    if type(array).__module__.partition(".")[0] == "h5py":
        return [array.file.filename]
    if hasattr(array, "dask"):
        return [path for task in array.dask.values() for path in _paths_of(task)]
    while isinstance(array, np.ndarray):
        if getattr(array, "filename", None) is not None:
            return [array.filename]
        array = array.base
    return []


class _Function:
    """A function (row, codes) that takes codes as they come."""

    keeps = False

    def __init__(self, out):
        self.out = out

    def find(self, start):
        if start == "resume":
            raise ValueError("start='resume' needs the path of a file or folder as out: give the "
                             "row where it stopped")
        return start, start, ""

    def begin(self, row, text):
        pass

    def write(self, row, codes, text):
        self.out(row, codes)


class _Array(_Function):
    """An array (n, N), or what is assigned to like one."""

    def write(self, row, codes, text):
        self.out[row:row + len(codes)] = codes


class _File:
    """An .npy file (n, N): a header of constant length, which says how many rows are whole and, in
    a comment, their fingerprint."""

    keeps = True

    def __init__(self, path, shape, dtype):
        self.path = path
        self.shape = shape
        self.dtype = dtype

    def find(self, start):
        """The row to begin at, the rows that are there and their fingerprint."""
        if start == 0 or start == "resume" and not os.path.exists(self.path):
            return 0, 0, ""
        n, text = self._rows()
        _check_start(start, n, self.shape[0], self.path)
        return n if start == "resume" else start, n, text

    def begin(self, row, text):
        if row == 0:  # whoever has mapped the file that was there keeps it
            files.write_whole(self.path, lambda file: file.write(self._header(0, text)))
            return
        with open(self.path, "r+b") as file:
            file.write(self._header(row, text))
            _to_disk(file)

    def write(self, row, codes, text):
        with open(self.path, "r+b") as file:
            file.truncate(self._offset(row))  # what was not whole
            file.seek(self._offset(row))
            file.write(np.ascontiguousarray(codes))
            _to_disk(file)
            file.seek(0)
            file.write(self._header(row + len(codes), text))
            _to_disk(file)

    def _offset(self, row):
        return HEADER_LENGTH + row * self.shape[1] * self.dtype.itemsize

    def _header(self, n, text):
        fields = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False,
                  "shape": (n, self.shape[1])}
        text = f"{fields} #{text}" if text else f"{fields}"
        text = text.ljust(HEADER_LENGTH - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    def _rows(self):
        """The rows that the file holds, if it is one of codes of this N and type, and their
        fingerprint, "" if there is none."""
        with open(self.path, "rb") as file:
            header = file.read(HEADER_LENGTH)
        found = re.search(rb"'shape': \((\d+), \d+\)} ?#?([0-9a-f ]*)\n", header)
        n = int(found[1]) if found else 0
        text = found[2].decode().strip() if found else ""
        if header != self._header(n, text):
            raise ValueError(f"out must be a file of codes (n, {self.shape[1]}) of {self.dtype} "
                             f"that this toolkit wrote to go on from, got another in {self.path}")
        return n, text


class _Folder:
    """A folder of parts, CSR arrays of consecutive rows, each with the fingerprint of the rows up
    to its end."""

    keeps = True

    def __init__(self, path, shape, dtype):
        self.path = path
        self.shape = shape
        self.dtype = dtype

    def find(self, start):
        if start == 0 or not os.path.isdir(self.path):
            _check_start(start, 0, self.shape[0], self.path)
            return 0, 0, ""
        n = 0
        text = ""
        for row, codes, text_of_part in _parts_until_a_gap(self.path, _rows_of_parts(self.path)):
            if start != "resume" and row >= start:
                break
            n = row + codes.shape[0]
            text = text_of_part
            if codes.shape[1] != self.shape[1] or codes.dtype != self.dtype:
                raise ValueError(f"out must hold codes (n, {self.shape[1]}) of {self.dtype} to go "
                                 f"on from, got (n, {codes.shape[1]}) of {codes.dtype} in "
                                 f"{self.path}")
        _check_start(start, n, self.shape[0], self.path)
        if start not in ("resume", n):
            raise ValueError(f"start must be where a part ends, such as {n}, got {start}")
        return n, n, text

    def begin(self, row, text):
        os.makedirs(self.path, exist_ok=True)
        for other in reversed(_rows_of_parts(self.path)):
            if other >= row:
                os.unlink(_name(self.path, other))
        for other in _rows_of_parts(self.path, UNFINISHED):
            files.remove_unfinished(_name(self.path, other))
        if row == 0:  # what is there can be read before, and without, the first rows
            self.write(0, scipy.sparse.csr_array((0, self.shape[1]), dtype=self.dtype), text)

    def write(self, row, codes, text):
        write_part(self.path, row, codes, text)


def _check_start(start, n, most, path):
    if start != "resume" and start > n or n > most:
        raise ValueError(f"start must be a row in 0..{n} where {path} holds {n} rows of {most}, "
                         f"got {start!r}")


def _to_disk(file):
    file.flush()
    os.fsync(file.fileno())


# ------------------------------------------------------------------------------- reading them


def load_codes(path: str | os.PathLike) -> np.ndarray | scipy.sparse.csr_array:
    """Codes that were written to this path: an array (n, N) read from the file as it is used, or,
    of a folder, a CSR array.

    n counts the rows that were done. Nothing in a file is executed.

    >>> import os, tempfile
    >>> from grassmann_sc import blocks, gsc, random_subspaces
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "codes.npy")
    ...     gsc(X, X[:3], 0.1, out=path), blocks.load_codes(path).shape
    (5, (5, 3))
    """
    path = files.check_path(path)
    if os.path.isdir(path):
        return scipy.sparse.vstack([codes for _, codes in each_part(path)], format="csr")
    return np.load(path, mmap_mode="r")


def each_part(path: str | os.PathLike) -> Iterator[tuple[int, scipy.sparse.csr_array]]:
    """(first row, CSR array) of each part in a folder of codes, in order, until one is missing.

    >>> import tempfile
    >>> from grassmann_sc import blocks, gsc, random_subspaces
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stopped = gsc(X, X[:3], 0.1, sparse_output=True, out=folder)
    ...     [(row, codes.shape) for row, codes in blocks.each_part(folder)]
    [(0, (5, 3))]
    """
    path = files.check_path(path)
    rows = _rows_of_parts(path)
    if not rows:
        raise ValueError(f"path must be a folder of codes, got none in {path}")
    return ((row, codes) for row, codes, _ in _parts_until_a_gap(path, rows))


def _parts_until_a_gap(path, rows):
    expected = 0
    for row in rows:
        if row == expected:
            codes, text = _read_part(path, row)
            expected = row + codes.shape[0]
            yield row, codes, text


def write_part(folder, row, codes, text=""):
    """Write CSR codes from this row on as a part of a folder, whole or not at all; text: of the
    fingerprint, if there is one."""
    fingerprint = {"fingerprint": np.array(text)} if text else {}
    files.write_arrays(_name(folder, row), "codes", {
        "shape": np.array(codes.shape), "values": codes.data, "columns": codes.indices,
        "starts": codes.indptr, **fingerprint})


def _read_part(folder, row):
    """The CSR codes of the part of a folder that begins with this row, and their fingerprint."""
    path = _name(folder, row)
    kinds = {"shape": "i", "values": "f", "columns": "i", "starts": "i"}
    arrays = files.read_arrays(path, "codes", kinds | {"fingerprint": "U"}, set(kinds))
    try:
        shape = tuple(core.check_integer(n, "shape", 0) for n in arrays["shape"])
        content = arrays["values"], arrays["columns"], arrays["starts"]
        codes = scipy.sparse.csr_array(content, shape=shape)
        codes.check_format()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return codes, str(arrays.get("fingerprint", ""))


def _name(folder, row):
    return os.path.join(folder, f"{row:015d}.npz")


def _rows_of_parts(folder, pattern=PART):
    """The first rows of the parts in a folder, ascending."""
    matches = [pattern.fullmatch(name) for name in os.listdir(folder)]
    return sorted(int(match[1]) for match in matches if match)
