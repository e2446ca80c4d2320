"""Codes that do not fit in memory: written to files block by block, as gsc and glc are given out.

A file of codes is at each moment an .npy file of the rows that are done; a folder of codes holds
CSR arrays of consecutive rows, each whole or not there. So what a kill, Ctrl-C or a full disk
leaves can be read, and gone on from. Needs files.py for folders.
"""

from __future__ import annotations

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
    sink = Sink(out, (n, len(D)), D.dtype, options.sparse_output)
    row = sink.begin(start, step, lambda first, stop: code(X[first:stop]))
    stops = [min(i + step, n) for i in range(row - row % step, n, step)]
    pieces = (code(X[i:stop]) for i, stop in zip([row, *stops], stops))
    return sink.write_all(pieces, progress)


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
    """Where codes (n, N) are written to, row after row, and the row where that is.

    >>> import numpy as np
    >>> from grassmann_sc import blocks
    >>> out = np.zeros((3, 2))
    >>> sink = blocks.Sink(out, (3, 2), out.dtype, sparse=False)
    >>> sink.begin(1, 1, lambda first, stop: out), sink.write_all([np.ones((2, 2))], progress=False)
    (1, 3)
    >>> out.sum(axis=1)
    array([0., 2., 2.])
    """

    def __init__(self, out: Any, shape: tuple[int, int], dtype: np.dtype, sparse: bool) -> None:
        self.n = shape[0]
        self.out = out
        self.place = _place_of(out, shape, dtype, sparse)
        self.row = 0

    def begin(self, start: int | str, step: int, code: Callable) -> int:
        """Begin at a row, or at the end of what is there with "resume"; returns the row.

        There the last block of step rows is coded again, by code(first, stop), to see that it is of
        the same problem.
        """
        if not (isinstance(start, str) and start == "resume"):
            start = core.check_integer(start, "start", 0, self.n)
        self.row = self.place.begin(start)
        if start == "resume" and self.row > 0:
            first = (self.row - 1) // step * step
            _check_same(self.place.last(first, self.row), code(first, self.row), first, self.out)
        return self.row

    def write_all(self, pieces: Iterable, progress: bool) -> int:
        """Write the pieces, codes of consecutive rows; returns the row where it stopped."""
        with core.progress_bar(progress, total=self.n, initial=self.row, desc="codes",
                               unit="rows") as bar:
            try:
                for codes in pieces:
                    self._write(codes)
                    bar.update(codes.shape[0])
            except KeyboardInterrupt:
                warnings.warn(f"interrupted: the codes of {self.row} of {self.n} rows are written,"
                              f" start = {self.row} goes on", stacklevel=5)
        return self.row

    def _write(self, codes):
        if codes.shape[0] == 0:
            return
        try:
            self.place.write(self.row, codes)
        except OSError as error:
            raise OSError(error.errno, f"{error.strerror or error}: the codes of the rows before "
                          f"{self.row} are written and whole, start = {self.row} goes on",
                          error.filename) from error
        self.row += codes.shape[0]


def _check_same(before, after, first, out):
    """ValueError unless codes found in out are those of the same queries, atoms and options."""
    before = core.dense_codes(before)
    after = core.dense_codes(after)
    apart = np.abs(before - after).max(axis=1)
    wrong = np.flatnonzero(~(apart <= 1e-4 * np.abs(after).max(initial=1e-300)))
    if len(wrong):
        raise ValueError("out must hold codes of the same subspaces, atoms and options to resume: "
                         f"row {first + wrong[0]} of {os.fsdecode(out)} differs by "
                         f"{apart[wrong[0]]:.2g}")


def _place_of(out, shape, dtype, sparse):
    """What writes codes of this shape (n, N) to out."""
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
    return _Array(out)


class _Function:
    """A function (row, codes) that takes codes as they come."""

    def __init__(self, out):
        self.write = out

    def begin(self, start):
        if start == "resume":
            raise ValueError("start='resume' needs the path of a file or folder as out: give the "
                             "row where it stopped")
        return start


class _Array(_Function):
    """An array (n, N), or what is assigned to like one."""

    def __init__(self, out):
        self.out = out

    def write(self, row, codes):
        self.out[row:row + len(codes)] = codes


class _File:
    """An .npy file (n, N): a header of constant length, which says how many rows are whole."""

    def __init__(self, path, shape, dtype):
        self.path = path
        self.shape = shape
        self.dtype = dtype

    def begin(self, start):
        if start == 0 or start == "resume" and not os.path.exists(self.path):
            with open(self.path, "wb") as file:
                file.write(self._header(0))
            return 0
        n = self._rows()
        _check_start(start, n, self.shape[0], self.path)
        return n if start == "resume" else start

    def last(self, first, stop):
        return np.array(np.load(self.path, mmap_mode="r")[first:stop])

    def write(self, row, codes):
        with open(self.path, "r+b") as file:
            file.truncate(self._offset(row))  # what was not whole
            file.seek(self._offset(row))
            file.write(np.ascontiguousarray(codes))
            _to_disk(file)
            file.seek(0)
            file.write(self._header(row + len(codes)))
            _to_disk(file)

    def _offset(self, row):
        return HEADER_LENGTH + row * self.shape[1] * self.dtype.itemsize

    def _header(self, n):
        fields = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False,
                  "shape": (n, self.shape[1])}
        text = repr(fields).ljust(HEADER_LENGTH - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()

    def _rows(self):
        """The rows that the file holds, if it is one of codes of this N and type."""
        with open(self.path, "rb") as file:
            header = file.read(HEADER_LENGTH)
        found = re.search(rb"'shape': \((\d+), ", header)
        n = int(found[1]) if found else 0
        if header != self._header(n):
            raise ValueError(f"out must be a file of codes (n, {self.shape[1]}) of {self.dtype} "
                             f"that this toolkit wrote to go on from, got another in {self.path}")
        return n


class _Folder:
    """A folder of parts, CSR arrays of consecutive rows."""

    def __init__(self, path, shape, dtype):
        self.path = path
        self.shape = shape
        self.dtype = dtype

    def begin(self, start):
        os.makedirs(self.path, exist_ok=True)
        rows = _rows_of_parts(self.path)
        if start == 0:
            for row in reversed(rows):
                os.unlink(_name(self.path, row))
            return 0
        n = 0
        for row, codes in _parts_until_a_gap(self.path, rows):
            if start != "resume" and row >= start:
                break
            n = row + codes.shape[0]
            if codes.shape[1] != self.shape[1] or codes.dtype != self.dtype:
                raise ValueError(f"out must hold codes (n, {self.shape[1]}) of {self.dtype} to go "
                                 f"on from, got (n, {codes.shape[1]}) of {codes.dtype} in "
                                 f"{self.path}")
        _check_start(start, n, self.shape[0], self.path)
        if start not in ("resume", n):
            raise ValueError(f"start must be where a part ends, such as {n}, got {start}")
        for row in rows:
            if row >= n:
                os.unlink(_name(self.path, row))
        return n

    def last(self, first, stop):
        rows = [row for row in _rows_of_parts(self.path) if row < stop]
        begin = max(row for row in rows if row <= first)
        some = [read_part(self.path, row) for row in rows if row >= begin]
        return scipy.sparse.vstack(some, format="csr")[first - begin:]

    def write(self, row, codes):
        write_part(self.path, row, codes)


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
    return _parts_until_a_gap(path, rows)


def _parts_until_a_gap(path, rows):
    expected = 0
    for row in rows:
        if row == expected:
            codes = read_part(path, row)
            expected = row + codes.shape[0]
            yield row, codes


def write_part(folder, row, codes):
    """Write CSR codes from this row on as a part of a folder, whole or not at all."""
    files.write_arrays(_name(folder, row), "codes", {
        "shape": np.array(codes.shape), "values": codes.data, "columns": codes.indices,
        "starts": codes.indptr})


def read_part(folder, row):
    """The CSR codes of the part of a folder that begins with this row."""
    path = _name(folder, row)
    kinds = {"shape": "i", "values": "f", "columns": "i", "starts": "i"}
    arrays = files.read_arrays(path, "codes", kinds, set(kinds))
    try:
        shape = tuple(core.check_integer(n, "shape", 0) for n in arrays["shape"])
        content = arrays["values"], arrays["columns"], arrays["starts"]
        codes = scipy.sparse.csr_array(content, shape=shape)
        codes.check_format()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return codes


def _name(folder, row):
    return os.path.join(folder, f"{row:015d}.npz")


def _rows_of_parts(folder):
    """The first rows of the parts in a folder, ascending."""
    matches = [PART.fullmatch(name) for name in os.listdir(folder)]
    return sorted(int(match[1]) for match in matches if match)
