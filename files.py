"""Saving and loading, without half-written files and without pickle: dictionaries,
codes, checkpoints.

A file of arrays is an .npz that stores plain arrays as they are; its comment is the
SHA-256 of all bytes before it. Reading executes nothing, and takes no more memory than
the file is long. A file is written beside its path and takes its place once it is
complete: after an error, Ctrl-C or a full disk the path is what it was; a kill leaves a
file *.unfinished beside it. Codes that do not fit in memory are written block by block:
an .npy file holds at each moment the rows that are done, a folder holds CSR arrays of
consecutive rows. Codes and checkpoints keep the Fingerprint of what was computed, and
are resumed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import json
import math
import numbers
import os
import re
import secrets
import shutil
import signal
import threading
import zipfile
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import checks

__all__ = [
    "save",
    "load",
    "write_codes",
    "load_codes",
    "each_part",
    "write_whole",
    "write_arrays",
    "read_arrays",
    "Checkpoint",
    "check_path",
    "check_writable",
]

VERSION = 1  # of the format
DIGEST_LENGTH = 64  # hexadecimal digits
SHORT = 12  # hexadecimal digits of each part of a fingerprint
MOST_NUMBERS = 2**22  # of the bases that are read at a time
HEADER_LENGTH = 128  # bytes of an .npy file of codes
PART = re.compile(r"(\d{15})\.npz")  # the file of a part of codes, by its first row
RESUMED = "resume must be a checkpoint of the same samples, weights and options"
OWN = "+"  # before the samples in a fingerprint: those of its part alone


def check_path(path: str | bytes | os.PathLike, name: str = "path") -> str:
    """The path as a string that is not empty.

    >>> from pathlib import Path
    >>> from grassmann_sc import files
    >>> files.check_path(Path("atoms.npz"))
    'atoms.npz'
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a path, got {path!r}")
    path = os.fsdecode(path)
    if not path or "\0" in path:
        raise ValueError(f"{name} must be a path, got {path!r}")
    return path


def check_writable(path: str | bytes | os.PathLike, name: str = "path") -> str:
    """The path as a string, if a file can be written there.

    For work that is to be kept at its end. ValueError if a folder has this path, or no
    file can be made beside it.

    >>> import os, tempfile
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = files.check_writable(os.path.join(folder, "atoms.npz"))
    ...     os.path.basename(path), os.listdir(folder)
    ('atoms.npz', [])
    """
    path = check_path(path, name)
    try:
        _in_new_file(_target(path, name), lambda file: None)
    except OSError as error:
        raise ValueError(
            f"{name} must be a path that a file can be written to, got {path}: "
            f"{error.strerror or error}"
        ) from None
    return path


def _target(path, name="path"):
    """The file that a path stands for, there or not; a link is followed."""
    target = os.path.realpath(check_path(path, name))
    if os.path.exists(target) and not os.path.isfile(target):
        what = "a folder" if os.path.isdir(target) else "no plain file"
        raise ValueError(
            f"{name} must be the path of a file, got {check_path(path)}, which is "
            f"{what}"
        )
    return target


def write_whole(path: str | bytes | os.PathLike, write: Callable) -> None:
    """Call write(file) on a binary file that replaces path once it is complete.

    Until then, and after any error, path is what it was. A link is followed,
    permissions are those of the file before, or of any new file. A kill leaves a file
    beside path, whose name ends in .unfinished.

    >>> import os, tempfile
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files.write_whole(os.path.join(folder, "note"), lambda file: file.write(b"all of it"))
    ...     with open(os.path.join(folder, "note"), "rb") as file:
    ...         file.read()
    b'all of it'
    """
    path = _target(path)
    if not callable(write):
        raise TypeError(f"write must be a function of a file, got {write!r}")

    def write_and_replace(file):
        write(file)
        _to_disk(file)
        file.close()  # Windows replaces no open file
        if os.path.isfile(path):
            shutil.copymode(path, file.name)
        os.replace(file.name, path)

    _in_new_file(path, write_and_replace)


def _in_new_file(path, use):
    """Call use(file) on a new file beside path, which is gone then unless renamed."""
    name = f"{path}.{secrets.token_hex(4)}.unfinished"
    try:
        with open(name, "x+b") as file:  # with the permissions of any new file
            use(file)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)


def _to_disk(file):
    file.flush()
    os.fsync(file.fileno())


def write_arrays(
    path: str | bytes | os.PathLike, kind: str, arrays: Mapping[str, ArrayLike]
) -> None:
    """Write a mapping from names to plain arrays as a file of this kind.

    >>> import os, tempfile
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scores.npz")
    ...     files.write_arrays(path, "scores", {"right": [3, 4]})
    ...     files.read_arrays(path, "scores", {"right": "i"}, {"right"})
    {'right': array([3, 4])}
    """

    def write(file):
        # read_arrays takes C order alone; other layouts must not cost what is kept
        rows = {name: np.asarray(array, order="C") for name, array in arrays.items()}
        # NumPy leaves its archive open at a Ctrl-C, and a ValueError takes the
        # interrupt's place
        uninterrupted(lambda: np.savez(file, format=kind, version=VERSION, **rows))
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = bytes(DIGEST_LENGTH)
        length = file.seek(0, os.SEEK_END) - DIGEST_LENGTH
        digest = _digest(file, length)
        file.seek(length)
        file.write(digest)

    write_whole(path, write)


def read_arrays(
    path: str | bytes | os.PathLike,
    kind: str,
    dtype_kinds: Mapping[str, str],
    needed: Iterable[str],
    name: str = "path",
) -> dict[str, np.ndarray]:
    """The arrays of a file of this kind, by name.

    dtype_kinds: for each name that may occur the kinds of dtype that it may have, as
    "biufUS";
    needed: the names that must occur; name: what an error calls the path. ValueError if
    the file is damaged or of another kind.

    >>> import os, tempfile
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scores.npz")
    ...     files.write_arrays(path, "scores", {"right": [3, 4]})
    ...     files.read_arrays(path, "scores", {"right": "i"}, {"right"})["right"].sum().item()
    7
    """
    dtype_kinds = {"format": "U", "version": "i", **dtype_kinds}
    needed = {"format", "version", *needed}
    path = check_path(path, name)
    with open(path, "rb") as file, refuse_damaged(path, kind, name):
        arrays = _read(file, dtype_kinds, needed)
    form = arrays.pop("format")
    version = arrays.pop("version")
    if version.shape or str(form) != kind or int(version) != VERSION:
        raise ValueError(
            f"{name} must be a {kind} of format version {VERSION}, got a {form} of "
            f"version {version} in {path}"
        )
    return arrays


@contextlib.contextmanager
def refuse_damaged(path, kind, name="path"):
    """Raise what goes wrong with the content of a file as a ValueError.

    Python, NumPy, zipfile and checks raise many kinds. kind: what the file must be.
    """
    try:
        yield
    except Exception as error:  # deep JSON, absurd shapes, ...
        raise ValueError(
            f"{name} must be a {kind} that this toolkit wrote; {os.fsdecode(path)} is "
            f"damaged or another file: {str(error) or type(error).__name__}"
        ) from None


def _read(file, dtype_kinds, needed):
    with zipfile.ZipFile(file) as archive:
        every = archive.infolist()
        members = {info.filename.removesuffix(".npy"): info for info in every}
        unknown = sorted(members.keys() - dtype_kinds.keys())
        missing = sorted(needed - members.keys())
        if unknown or missing or len(members) < len(every):
            raise ValueError(
                f"it must hold {', '.join(sorted(needed))} once each: missing "
                f"{', '.join(missing) or 'none'}, unknown "
                f"{', '.join(unknown) or 'none'}"
            )
        length = file.seek(0, os.SEEK_END) - DIGEST_LENGTH
        if _digest(file, max(length, 0)) != archive.comment:
            raise ValueError("its bytes are not those that were written (SHA-256)")
        return {
            name: _member(archive, info, dtype_kinds[name], length)
            for name, info in members.items()
        }


def _digest(file, length):
    """Hexadecimal SHA-256 of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    for start in range(0, length, 2**20):
        digest.update(file.read(min(2**20, length - start)))
    return digest.hexdigest().encode()


def _member(archive, info, dtype_kinds, most):
    """An array of such a dtype that is stored as it is, as long as its header says."""
    if info.compress_type != zipfile.ZIP_STORED or info.compress_size > most:
        raise ValueError(
            f"{info.filename} must be stored as it is, in no more bytes than there are"
        )
    data = archive.read(info)
    content = io.BytesIO(data)
    np.lib.format.read_magic(content)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(content)
    if dtype.kind not in dtype_kinds:
        raise ValueError(
            f"{info.filename} must have a dtype of kind {dtype_kinds!r}, got {dtype}"
        )
    size = dtype.itemsize * math.prod(shape)
    held = len(data) - content.tell()
    if size != held or fortran:
        raise ValueError(
            f"{info.filename} declares {shape} of {dtype}, which is {size} bytes, and "
            f"holds {held}"
        )
    return np.frombuffer(data, dtype, offset=content.tell()).reshape(shape).copy()


# ------------------------------------------------------------------------- dictionaries


Dictionary = namedtuple("Dictionary", "atoms lam labels")


def save(
    path: str | os.PathLike,
    atoms: Any,
    *,
    lam: float | None = None,
    labels: core.Labels | None = None,
) -> None:
    """Write atoms (N, d, p), or what was learned, with its lambda and labels.

    atoms: an array, or what gdl and its like return, an OnlineGDL, or a fitted
    GrassmannDictionary or DiscriminativeDictionary. The lambda is the one in use,
    whatever lam_scale it came from. The file is an .npz of plain arrays under exactly
    this path, replaced whole or not at all; labels (N,) must be numbers, strings or
    bools, all of one type.

    >>> import os, tempfile
    >>> from grassmann_sc import files, random_subspaces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files.save(os.path.join(folder, "atoms.npz"), random_subspaces(4, 8, 2), lam=0.2)
    ...     files.load(os.path.join(folder, "atoms.npz")).lam
    0.2
    """
    # of what scikit-learn's estimators learn
    ending = "_" if hasattr(atoms, "components_") else ""
    labels = getattr(atoms, "labels" + ending, None) if labels is None else labels
    lam = getattr(atoms, "lam" + ending, None) if lam is None else lam
    bases = getattr(atoms, "components_" if ending else "atoms", atoms)
    atoms = core.check_dictionary(bases, "atoms", weighted=True)
    arrays = {"atoms": atoms}
    if lam is not None:
        arrays["lam"] = np.array(core.check_number(lam, "lam", least=0))
    if labels is not None:
        arrays["labels"] = labels_to_keep(labels, len(atoms))
    write_arrays(path, "dictionary", arrays)


def labels_to_keep(labels, n, owners="atoms"):
    """The labels of n owners as an array (n,) that a file gives back as they are.

    They are numbers, strings (or bytes) or bools, all of one type: others would come
    back altered, or need pickle. TypeError or ValueError names the label that is in the
    way.
    """
    core.check_labels(labels, n, owners=owners)
    array = np.asarray(labels) if hasattr(labels, "__array__") else None
    if array is None or array.dtype.kind not in "biufUS":
        array = _array_of_one_type([*(labels if array is None else array)])
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError("labels must not be NaN, which equals no label, got nan")
    return array


def _array_of_one_type(labels):
    """Labels as an array, if each comes out of it as it went in."""
    plain = [one.item() if isinstance(one, np.generic) else one for one in labels]
    of_type = {bool: "b", int: "iu", float: "f", str: "U", bytes: "S"}
    for label in plain:
        if type(label) not in of_type:
            raise TypeError(
                f"labels must be numbers, strings or bools in a file, got {label!r}"
            )
        if type(label) is not type(plain[0]):
            raise TypeError(
                "labels must be of one type in a file, as an array holds "
                f"them, got {plain[0]!r} and {label!r}"
            )
        if isinstance(label, (str, bytes)) and label[-1:] in ("\0", b"\0"):
            raise ValueError(
                "labels must not end with a NUL character in a file, since "
                f"NumPy drops it, got {label!r}"
            )
    array = np.array(labels)
    if plain and array.dtype.kind not in of_type[type(plain[0])]:
        raise ValueError(
            "labels must be integers of 64 bits in a file, got "
            f"{max(plain, key=abs)} beside {min(plain, key=abs)}"
        )
    return array


def load(path: str | os.PathLike) -> Dictionary:
    """Dictionary (atoms, lam, labels) that save wrote.

    lam and labels are None where none were. Nothing in the file is executed, and no
    more memory is taken than the file is long. ValueError if it is damaged, truncated
    or of another kind.

    >>> import os, tempfile
    >>> from grassmann_sc import files, random_subspaces
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files.save(os.path.join(folder, "atoms.npz"), random_subspaces(4, 8, 2))
    ...     files.load(os.path.join(folder, "atoms.npz")).atoms.shape
    (4, 8, 2)
    """
    kinds = {"atoms": "f", "lam": "f", "labels": "biufUS"}
    arrays = read_arrays(path, "dictionary", kinds, {"atoms"})
    lam = None
    labels = arrays.get("labels")
    with refuse_damaged(path, "dictionary"):
        atoms = core.check_dictionary(arrays["atoms"], "atoms", weighted=True)
        if "lam" in arrays:
            lam = core.check_number(arrays["lam"], "lam", least=0)
        if labels is not None and labels.shape != (len(atoms),):
            raise ValueError(
                f"labels must have shape ({len(atoms)},), got {labels.shape}"
            )
    return Dictionary(atoms, lam, labels)


# -------------------------------------------------------------------------------- codes


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
    and of other files. progress: show a bar. Returns n. Ctrl-C raises a
    KeyboardInterrupt that says from which row to go on; what was written is whole.

    >>> import os, tempfile
    >>> from grassmann_sc import files, random_subspaces
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "codes.npy")
    ...     files.write_codes(path, X[:3], X, lam=0.1)
    ...     files.write_codes(path, X, X, lam=0.1, start="resume")
    ...     files.load_codes(path).shape
    3
    5
    (5, 5)
    """
    bases: Any = StoredBases(X, "X")
    atoms = core.check_dictionary(D, "D", weighted=True)
    bases, atoms = core.same_dimension(bases, atoms, "XD")
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
            digest_rows(bases[i : min(i + height, stop)], i)
            for i in range(first, stop, height)
        )

    def pieces(row):
        stops = [*range(row - row % height + height, len(bases), height), len(bases)]
        for first, stop in zip([row, *stops], stops):
            block = bases[first:stop]
            codes = code(K, core.LazyGram(block, atoms), core.squared_norm(block))
            yield codes, digest_rows(block, first) if sink.keeps else 0

    return sink.fill(start, progress, digest, pieces)


def load_codes(path: str | os.PathLike) -> np.ndarray | scipy.sparse.csr_array:
    """Codes that were written to this path.

    An array (n, N) read from the file as it is used, or, of a folder, a CSR array. n
    counts the rows that were done. Nothing in a file is executed.

    >>> import tempfile
    >>> from grassmann_sc import files, random_subspaces
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = files.write_codes(folder, X, X[:3], n_neighbors=1, sparse_output=True)
    ...     files.load_codes(folder).nnz
    5
    """
    path = check_path(path)
    if os.path.isdir(path):
        return scipy.sparse.vstack(
            [codes for _, codes in each_part(path)], format="csr"
        )
    with open(path, "rb"), refuse_damaged(path, "file of codes"):
        return np.lib.format.open_memmap(path, mode="r")


def each_part(path: str | os.PathLike) -> Iterator[tuple[int, scipy.sparse.csr_array]]:
    """(first row, CSR array) of each part of a folder of codes, until one is missing.

    >>> import tempfile
    >>> from grassmann_sc import files, random_subspaces
    >>> X = random_subspaces(5, 8, 2, rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     n = files.write_codes(folder, X, X[:3], 0.1, sparse_output=True)
    ...     [(row, codes.shape) for row, codes in files.each_part(folder)]
    [(0, (5, 3))]
    """
    path = check_path(path)
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
        self.dtype = np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)
        check_shape_of_bases(self.shape, name)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        start, stop, _ = rows.indices(len(self))
        try:
            bases = core.check_bases(
                self.X[start:stop], self.name, first=start, weighted=True
            )
        except ValueError as error:
            raise ValueError(
                f"{error} (in the block of rows {start}..{stop - 1})"
            ) from None
        return bases.astype(self.dtype, copy=False)

    def astype(self, dtype, copy):
        """The same bases, read as this type."""
        bases = StoredBases(self.X, self.name)
        bases.dtype = dtype
        return bases


def check_shape_of_bases(shape, name):
    """ValueError unless arrays of this shape can hold n bases."""
    if len(shape) != 3 or not 1 <= shape[2] <= shape[1]:
        hint = ": transposed?" if len(shape) == 3 and shape[2] > shape[1] else ""
        raise ValueError(
            f"{name} must have shape (n, d, p) with 1 <= p <= d, got {shape}{hint}"
        )


def rows_in_block(X, N):
    """Rows of an array X (n, d, p) that are read and coded over N atoms at a time.

    A few chunks of a stored array, or one that is not much larger than memory asks for.
    """
    step = max(64, min(core.TILE // N, MOST_NUMBERS // (X.shape[1] * X.shape[2])))
    chunks = getattr(X, "chunks", None)
    if not chunks:
        return step
    chunk = int(np.max(chunks[0], initial=1))
    if chunk <= step:
        return step - step % chunk
    return chunk if chunk <= 4 * step else step


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
        self.fingerprint = Fingerprint(described, atoms)

    def fill(self, start, progress, digest, pieces):
        """Write pieces(row), codes of consecutive rows, from the row of start on.

        Returns n. A piece is codes, or Written, and the digest of these rows of X. A
        KeyboardInterrupt says from which row to go on, and so does the OSError of a
        full disk. digest(first, stop): of these rows of X. Those before the row must be
        those whose codes a path holds, over the same atoms and with the same options.
        Of codes without a fingerprint, from an earlier version, a start that is a
        number goes on unchecked.
        """
        progress = core.check_flag(progress, "progress")
        if not (isinstance(start, str) and start == "resume"):
            start = core.check_integer(start, "start", 0, self.n)
        if self.replace and start != 0:
            raise ValueError(
                "replace writes all rows anew, leave it out to go on from start = "
                f"{start!r}"
            )
        row = self._begin(start, digest) if self.keeps else start
        if row == "resume":
            raise ValueError(
                "start='resume' needs the path of a file or folder as out: give the "
                "row where it stopped"
            )
        with checks.progress_bar(
            progress, total=self.n, initial=row, desc="codes", unit="rows"
        ) as move:
            try:
                for codes, added in pieces(row):
                    height = codes.shape[0]
                    self.fingerprint.add(added)
                    if height and not isinstance(codes, Written):
                        self.place.write(row, codes, self.fingerprint.text())
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
        rule = "out must hold codes of the same subspaces, atoms and options to resume"
        if row == 0 and not self.replace:
            self._check_nothing_is_lost(digest)
        elif row > 0 and not text and start == "resume":
            raise ValueError(
                f"{rule}, with a fingerprint that tells of them: {self.place.path} is "
                f"of an earlier version of this toolkit, start = {whole} goes on "
                "unchecked"
            )
        elif row > 0:
            self._check_same(row, whole, text, rule, digest)
        self.place.begin(row, self.fingerprint.text())
        return row

    def _check_nothing_is_lost(self, digest):
        """ValueError if the path holds anything but codes of the same problem."""
        held = self.place.described()
        if held is None:
            return
        rule = "codes of the same subspaces, atoms and options need no replace"
        try:
            whole, text = self.place.rows("resume")
            if whole > self.n:
                raise ValueError(f"{rule}: they have {self.n} rows")
            if not text:
                raise ValueError("there is no fingerprint that tells of what they are")
            self._check_same(0, whole, text, rule, digest)
        except ValueError as error:
            raise ValueError(
                "out must be a path that holds nothing to lose, unless replace=True: "
                f"{self.place.path} holds {held} ({error})"
            ) from None

    def _check_same(self, row, whole, text, rule, digest):
        """ValueError unless the whole rows with this fingerprint, if there is one, are
        of the same problem.

        Adds the digest of those before the row.
        """
        path = self.place.path
        if text:
            self.fingerprint.check(text, rule, path)
        self.fingerprint.add(digest(0, row))
        if text:
            self.fingerprint.check(text, rule, path, digest(row, whole))


def _place_of(out, shape, dtype, sparse):
    """What writes codes of this shape (n, N) and type to out."""
    if callable(out):
        return _Function(out)
    if isinstance(out, (str, bytes, os.PathLike)):
        path = check_path(out, "out")
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
    held = getattr(out, "dtype", None)
    if isinstance(held, np.dtype) and (
        held.kind in "SUV" or not np.can_cast(dtype, held, "same_kind")
    ):
        raise TypeError(
            f"out must have a dtype that holds codes of {dtype}, got {held}"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError(
            "out must be an array that can be written to, got one that is read-only"
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
            there = os.path.exists(path) and os.path.exists(own)
            if there and os.path.samefile(path, own):
                raise ValueError(
                    f"out must be another file than that of {name}, got {path}"
                )
            if os.path.isdir(own) and os.path.commonpath([path, own]) in (path, own):
                raise ValueError(
                    f"out must lie apart from the store of {name}, {own}, got {path}"
                )
        arrays = isinstance(out, np.ndarray) and isinstance(array, np.ndarray)
        if arrays and np.shares_memory(out, array):
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
    known = isinstance(path, (str, bytes, os.PathLike))
    return os.path.realpath(os.fsdecode(path)) if known else None


class _Function(namedtuple("_Function", "out")):
    """A function (row, codes) that takes codes as they come."""

    def write(self, row, codes, text):
        self.out(row, codes)


class _Path(namedtuple("_Path", "path shape dtype")):
    """A path that codes (n, N) of a type are written to, and resumed.

    described() says what would be lost if it was written anew, None if there is
    nothing.
    """

    def find(self, start):
        """The row to begin at, the rows that are whole, and their fingerprint.

        The fingerprint is "" if there is none.
        """
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

    def described(self):
        if not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            return None
        try:
            shape = load_codes(self.path).shape
        except ValueError:
            return f"{os.path.getsize(self.path)} bytes that are no whole codes"
        return f"codes {shape}" if shape[0] else None

    def rows(self, start):
        with open(self.path, "rb") as file:
            header = file.read(HEADER_LENGTH)
        length = os.path.getsize(self.path)
        found = re.search(rb"'shape': \((\d+), \d+\)} ?#?([0-9a-f ]*)\n", header)
        n = int(found[1]) if found else 0
        text = found[2].decode().strip() if found else ""
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

    def begin(self, row, text):
        if row == 0:  # whoever has mapped the file that was there keeps it
            write_whole(self.path, lambda file: file.write(self._header(0, text)))
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
        self.begin(row + len(codes), text)

    def _offset(self, row):
        return HEADER_LENGTH + row * self.shape[1] * self.dtype.itemsize

    def _header(self, n, text):
        fields = {
            "descr": np.lib.format.dtype_to_descr(self.dtype),
            "fortran_order": False,
            "shape": (n, self.shape[1]),
        }
        text = f"{fields} #{text}" if text else f"{fields}"
        text = text.ljust(HEADER_LENGTH - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


class _Folder(_Path):
    """A folder of parts: CSR arrays of consecutive rows.

    Each has the fingerprint of the rows up to its end.
    """

    def described(self):
        parts = _rows_of_parts(self.path) if os.path.isdir(self.path) else []
        if not parts:
            return None
        try:
            codes, _ = _read_part(self.path, parts[-1])
        except (OSError, ValueError):
            return f"{len(parts)} parts of codes, of which some cannot be read"
        n = parts[-1] + codes.shape[0]
        return f"codes ({n}, {codes.shape[1]})" if n else None

    def rows(self, start):
        n = 0
        text = ""
        stop = math.inf if start == "resume" else start
        for row, codes, text_of_part in _parts_until_a_gap(self.path, stop):
            n = row + codes.shape[0]
            text = _joined_text(text, text_of_part)
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
        return n, text

    def begin(self, row, text):
        os.makedirs(self.path, exist_ok=True)
        for other in reversed(_rows_of_parts(self.path)):
            if other >= row:
                os.unlink(_name(self.path, other))
        if row == 0:  # what is there can be read before, and without, the first rows
            empty = scipy.sparse.csr_array((0, self.shape[1]), dtype=self.dtype)
            self.write(0, empty, text)

    def write(self, row, codes, text):
        write_part(self.path, row, codes, text)


# Stands for codes of this shape that a worker has written to the folder.
Written = namedtuple("Written", "shape")


def _joined_text(before, text):
    """The fingerprint of the rows up to the end of a part.

    It follows from that of the rows before. A worker, who knows no others, marks that
    its text tells of its own rows alone.
    """
    key, _, own = text.partition(OWN)
    if not own:
        return text
    return key + _shortened(int(before.rpartition(" ")[2] or "0", 16) + int(own, 16))


def write_part(folder, row, codes, text=""):
    """Write CSR codes from this row on as a part of a folder, whole or not at all.

    text: of the fingerprint, if there is one.
    """
    fingerprint = {"fingerprint": np.array(text)} if text else {}
    write_arrays(
        _name(folder, row),
        "codes",
        {
            "shape": np.array(codes.shape),
            "values": codes.data,
            "columns": codes.indices,
            "starts": codes.indptr,
            **fingerprint,
        },
    )


def _read_part(folder, row):
    """The CSR codes of the part that begins with this row, and their fingerprint."""
    path = _name(folder, row)
    kinds = {"shape": "i", "values": "f", "columns": "i", "starts": "i"}
    arrays = read_arrays(path, "codes", kinds | {"fingerprint": "U"}, set(kinds))
    with refuse_damaged(path, "codes"):
        shape = tuple(core.check_integer(n, "shape", 0) for n in arrays["shape"])
        content = arrays["values"], arrays["columns"], arrays["starts"]
        codes = scipy.sparse.csr_array(content, shape=shape)
        codes.check_format()
    return codes, str(arrays.get("fingerprint", ""))


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
    matches = [PART.fullmatch(name) for name in os.listdir(folder)]
    return sorted(int(match[1]) for match in matches if match)


# ---------------------------------------------------------------------------- resuming


class Fingerprint:
    """What a computation is of.

    It holds digests of its options, of its atoms, and of the samples so far. The digest
    of samples is a sum over their rows, see digest_rows, so that those of blocks add up
    in any order, on one machine or many. text() is kept beside what is written.

    >>> import numpy as np
    >>> from grassmann_sc import files
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> begun = files.Fingerprint({"lam": 0.1}).add(files.digest_rows(X))
    >>> again = files.Fingerprint({"lam": 0.1}).add(files.digest_rows(X[:2]))
    >>> again = again.add(files.digest_rows(X[2:], 2))
    >>> again.text() == begun.text()
    True
    """

    def __init__(self, options: object, atoms: np.ndarray | None = None) -> None:
        described = json.dumps(_describe(options)).encode()
        self.options = hashlib.blake2b(described).hexdigest()[:SHORT]
        self.atoms = _shortened(0 if atoms is None else digest_rows(atoms))
        self.samples = 0

    def add(self, digest: int) -> Fingerprint:
        """Add the digest of some rows of the samples; returns self."""
        self.samples += digest
        return self

    def text(self) -> str:
        return f"{self.options} {self.atoms} {_shortened(self.samples)}"

    def text_of_part(self, digest: int) -> str:
        """The text for a part of a folder that is written apart from those before it."""
        return f"{self.options} {self.atoms} {OWN}{_shortened(digest)}"

    def check(self, text: str, rule: str, path: str, rest: int | None = None) -> None:
        """ValueError, which names the difference, unless path has this fingerprint.

        rest: the digest of those samples of that text that have not been added; without
        it samples are not compared.
        """
        ours = {"the options": self.options, "the atoms": self.atoms}
        if rest is not None:
            ours["the samples"] = _shortened(self.samples + rest)
        pairs = zip(ours.items(), text.split())
        differing = [name for (name, digest), theirs in pairs if digest != theirs]
        if differing:
            raise ValueError(f"{rule}: {path} differs in {', '.join(differing)}")


def digest_rows(rows: np.ndarray, first: int = 0) -> int:
    """Sum of the BLAKE2b digests of rows (n, ...), each with its place first + i."""
    total = 0
    for place, row in enumerate(rows, first):
        salt = place.to_bytes(16, "little")
        digest = hashlib.blake2b(
            np.ascontiguousarray(row).data, digest_size=16, salt=salt
        )
        total += int.from_bytes(digest.digest(), "little")
    return total


def _shortened(digest):
    return f"{digest % 16**SHORT:0{SHORT}x}"


class Checkpoint:
    """The file of a resumable computation, and the fingerprint of the computation.

    checkpoint, resume: paths or None, where to write to and to read from; ValueError if
    nothing can be written there. The fingerprint is that of the options and the arrays,
    the samples, to which others may be added: equal numbers count alike, functions by
    their names.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "half.npz")
    ...     files.Checkpoint(path, None, [np.eye(2)], {"lam": 0.1}).write({"step": np.array(3)})
    ...     resumed = files.Checkpoint(None, path, [np.eye(2)], {"lam": 0.1})
    ...     arrays = resumed.read({"step": "i"})
    ...     resumed.check_samples()
    >>> arrays["step"].item()
    3
    """

    def __init__(
        self,
        checkpoint: str | bytes | os.PathLike | None,
        resume: str | bytes | os.PathLike | None,
        arrays: Iterable[np.ndarray],
        options: object,
    ) -> None:
        self.checkpoint = (
            None if checkpoint is None else check_writable(checkpoint, "checkpoint")
        )
        self.resume: Any = None if resume is None else check_path(resume, "resume")
        self.fingerprint = Fingerprint(options)
        self.found: str | None = None  # the fingerprint in the file to resume from
        for i, array in enumerate(arrays):
            self.add(array, i << 64)

    def add(self, rows: np.ndarray, first: int) -> None:
        """Add the digest of rows of the samples, if a file keeps it."""
        if self.checkpoint or self.resume:
            self.fingerprint.add(digest_rows(rows, first))

    def write(self, arrays: Mapping[str, ArrayLike]) -> None:
        """Replace the file to write to, if there is one, by these arrays."""
        if self.checkpoint is not None:
            key = np.array(self.fingerprint.text())
            write_arrays(self.checkpoint, "checkpoint", {"key": key, **arrays})

    def read(self, dtype_kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
        """The named arrays of the file to read from, if its options are the same.

        kinds: of their dtypes. check_samples is to follow.
        """
        kinds = {"key": "U", **dtype_kinds}
        arrays = read_arrays(self.resume, "checkpoint", kinds, set(kinds), "resume")
        self.found = str(arrays.pop("key"))
        if len(self.found.split()) != 3:
            raise ValueError(
                "resume must be a checkpoint with a fingerprint of its samples: "
                f"{self.resume} is of an earlier version of this toolkit, or damaged; "
                "its atoms, in np.load(resume)['atoms'], can be given as init"
            )
        self.fingerprint.check(self.found, RESUMED, self.resume)
        return arrays

    def check_samples(self) -> None:
        """ValueError unless the added samples are those of the file that was read."""
        if self.found is not None:
            self.fingerprint.check(self.found, RESUMED, self.resume, 0)


def _describe(option):
    """An option as JSON holds it: equal numbers alike, functions by their names."""
    if option is None or isinstance(option, (bool, str)):
        return option
    if isinstance(option, (numbers.Real, np.bool_)):
        return float(option).hex()
    if isinstance(option, np.ndarray):
        return [option.shape, option.dtype.str, option.tobytes().hex()]
    if isinstance(option, (list, tuple)):
        return [_describe(part) for part in option]
    if isinstance(option, dict):
        return [[str(key), _describe(option[key])] for key in sorted(option, key=str)]
    if isinstance(option, functools.partial):
        return _describe([option.func, option.args, option.keywords])
    named = option if hasattr(option, "__qualname__") else type(option)
    return f"{named.__module__}.{named.__qualname__}"


# NumPy's, with the name and the largest value of a place in a buffer, which NumPy does
# not check
GENERATORS = {
    "MT19937": {"pos": 624},
    "PCG64": {},
    "PCG64DXSM": {},
    "Philox": {"buffer_pos": 4},
    "SFC64": {},
}


def as_json(content: object) -> np.ndarray:
    """The content as JSON in an array of a file.

    Numbers keep all their digits; arrays become lists.
    """
    return np.array(json.dumps(content, default=lambda array: array.tolist()))


def read_named(text: np.ndarray, name: str, names: Iterable[str]) -> dict[str, Any]:
    """The content of such an array, which must be one object of these names.

    name: what an error calls it.
    """
    return check_names(json.loads(str(text)), name, names)


def check_names(content: Any, name: str, names: Iterable[str]) -> dict[str, Any]:
    """A part of JSON, if it is an object of these names and no others."""
    wanted = set(names)
    if not isinstance(content, dict) or content.keys() != wanted:
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{name} must hold {', '.join(sorted(wanted))}, got {found}")
    return content


def read_generator(text: np.ndarray) -> np.random.Generator:
    """The Generator, one of NumPy's, whose state this is as JSON.

    ValueError if it is none.
    >>> import numpy as np
    >>> from grassmann_sc import files
    >>> text = files.as_json(np.random.default_rng(0).bit_generator.state)
    >>> files.read_generator(text).random() == np.random.default_rng(0).random()
    True
    """
    try:
        state = json.loads(str(text))
        places = GENERATORS[state["bit_generator"]]
        bits = getattr(np.random, state["bit_generator"])()
        flat = state | state["state"]
        known = all(0 <= flat[name] <= most for name, most in places.items())
        if known:  # NumPy took others once, and raises now
            bits.state = state
            known = json.loads(str(as_json(bits.state))) == state
    except Exception as error:  # whatever JSON or NumPy makes of other states
        raise ValueError(
            f"rng must be the state of a generator of NumPy's, got another "
            f"({type(error).__name__})"
        ) from None
    if not known:
        raise ValueError(
            "rng must be the state of a generator of NumPy's, got one that none has"
        )
    return np.random.Generator(bits)


# --------------------------------------------------------------------------- interrupts

# The signals that Python can handle, Ctrl-C last.
SIGNALS = sorted(signal.valid_signals(), key=lambda number: number == signal.SIGINT)


def uninterrupted(job):
    """Run job whole or not at all: Ctrl-C waits until it is done.

    So does every other signal that has a handler in Python. A signal that comes before
    job begins may leave it not begun. Those that come while it runs are handled once at
    its end, however many came. In other threads than the main one job just runs: Python
    handles no signals there. An error that job itself raises ends it halfway.
    """
    if threading.current_thread() is not threading.main_thread():
        return job()
    for number in SIGNALS:
        if callable(signal.getsignal(number)):
            job = functools.partial(_before_signal, number, job)
    return job()


def _before_signal(number, job):
    """job(), then the handler of the signal, if it came meanwhile.

    Python handles what came up to a call of signal.signal before that call exchanges
    the handler. So a handler that raises leaves job not begun, or done and the handler
    restored.
    """
    handler = signal.getsignal(number)
    came = []  # (number, frame) as Python gives them: the number is an int
    try:
        signal.signal(number, lambda *given: came.append(given))
        return job()
    finally:
        signal.signal(number, handler)
        if came:
            handler(*came[0])
