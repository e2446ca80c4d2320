"""Files that are whole or not there, and arrays in them without pickle.

A file of arrays is an .npz that stores plain arrays as they are; its comment is the SHA-256 of all
bytes before it. Reading executes nothing, and takes no more memory than the file is long.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import math
import numbers
import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["write_whole", "write_arrays", "read_arrays", "Checkpoint", "check_path"]

VERSION = 1  # of the format
DIGEST_LENGTH = 64  # hexadecimal digits


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


def write_whole(path: str | bytes | os.PathLike, write: Callable) -> None:
    """Call write(file) on a binary file that takes the place of path once it is complete.

    Until then, and after any error, path is what it was. A link is followed, permissions are those
    of the file before, or of any new file.

    >>> import os, tempfile
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files.write_whole(os.path.join(folder, "note"), lambda file: file.write(b"all of it"))
    ...     with open(os.path.join(folder, "note"), "rb") as file:
    ...         file.read()
    b'all of it'
    """
    path = os.path.realpath(check_path(path))
    if not callable(write):
        raise TypeError(f"write must be a function of a file, got {write!r}")
    unfinished = f"{path}.{secrets.token_hex(4)}.unfinished"
    try:
        with open(unfinished, "x+b") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if os.path.isfile(path):
            shutil.copymode(path, unfinished)
        os.replace(unfinished, path)
    except BaseException:
        if os.path.exists(unfinished):
            os.unlink(unfinished)
        raise


def write_arrays(path: str | bytes | os.PathLike, kind: str,
                 arrays: Mapping[str, ArrayLike]) -> None:
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
        np.savez(file, format=kind, version=VERSION, **arrays)
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = bytes(DIGEST_LENGTH)
        length = file.seek(0, os.SEEK_END) - DIGEST_LENGTH
        digest = _digest(file, length)
        file.seek(length)
        file.write(digest)

    write_whole(path, write)


def read_arrays(path: str | bytes | os.PathLike, kind: str, dtype_kinds: Mapping[str, str],
                needed: Iterable[str], name: str = "path") -> dict[str, np.ndarray]:
    """The arrays of a file of this kind, by name.

    dtype_kinds: for each name that may occur the kinds of dtype that it may have, as "biufUS";
    needed: the names that must occur; name: what an error calls the path. ValueError if the file is
    damaged or of another kind.

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
    with open(path, "rb") as file:
        try:
            arrays = _read(file, dtype_kinds, needed)
        except Exception as error:  # whatever NumPy or zipfile makes of damaged bytes
            reason = str(error) or type(error).__name__
            raise ValueError(f"{name} must be a {kind} that this toolkit wrote; {path} is damaged "
                             f"or another file: {reason}") from None
    form = arrays.pop("format")
    version = arrays.pop("version")
    if version.shape or str(form) != kind or int(version) != VERSION:
        raise ValueError(f"{name} must be a {kind} of format version {VERSION}, got a {form} of "
                         f"version {version} in {path}")
    return arrays


def _read(file, dtype_kinds, needed):
    with zipfile.ZipFile(file) as archive:
        every = archive.infolist()
        members = {info.filename.removesuffix(".npy"): info for info in every}
        unknown = sorted(members.keys() - dtype_kinds.keys())
        missing = sorted(needed - members.keys())
        if unknown or missing or len(members) < len(every):
            raise ValueError(f"it must hold {', '.join(sorted(needed))} once each: missing "
                             f"{', '.join(missing) or 'none'}, unknown "
                             f"{', '.join(unknown) or 'none'}")
        length = file.seek(0, os.SEEK_END) - DIGEST_LENGTH
        if _digest(file, max(length, 0)) != archive.comment:
            raise ValueError("its bytes are not those that were written (SHA-256)")
        return {name: _member(archive, info, dtype_kinds[name], length)
                for name, info in members.items()}


def _digest(file, length):
    """Hexadecimal SHA-256 of the first bytes of a file."""
    file.seek(0)
    digest = hashlib.sha256()
    for start in range(0, length, 2**20):
        digest.update(file.read(min(2**20, length - start)))
    return digest.hexdigest().encode()


def _member(archive, info, dtype_kinds, most):
    """One array, if it is stored as it is, of such a dtype, and as long as its header says."""
    if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
        raise ValueError(f"{info.filename} must be stored without compression")
    if info.file_size > most:
        raise ValueError(f"{info.filename} declares {info.file_size} bytes, more than there are")
    with archive.open(info) as member:
        data = member.read(info.file_size)
    content = io.BytesIO(data)
    version = np.lib.format.read_magic(content)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(content)
    else:
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(content)
    if dtype.hasobject or dtype.kind not in dtype_kinds:
        raise ValueError(f"{info.filename} must have a dtype of kind {dtype_kinds!r}, got {dtype}")
    size = dtype.itemsize * math.prod(shape)
    held = len(data) - content.tell()
    if size != held or fortran:
        raise ValueError(f"{info.filename} declares {shape} of {dtype}, which is {size} bytes, and "
                         f"holds {held}")
    return np.frombuffer(data, dtype, offset=content.tell()).reshape(shape).copy()


class Checkpoint:
    """The file of a computation that can be resumed, and the fingerprint of what is computed.

    checkpoint, resume: paths or None, where to write to and to read from. The fingerprint is that
    of the arrays and the options: equal numbers count alike, functions by their names.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "half.npz")
    ...     files.Checkpoint(path, None, [np.eye(2)], {"lam": 0.1}).write({"step": np.array(3)})
    ...     resumed = files.Checkpoint(None, path, [np.eye(2)], {"lam": 0.1}).read({"step": "i"})
    >>> resumed["step"].item()
    3
    """

    def __init__(self, checkpoint: str | bytes | os.PathLike | None,
                 resume: str | bytes | os.PathLike | None, arrays: Iterable[np.ndarray],
                 options: object) -> None:
        self.checkpoint = None if checkpoint is None else check_path(checkpoint, "checkpoint")
        self.resume: Any = None if resume is None else check_path(resume, "resume")
        digest = hashlib.sha256(json.dumps(_describe(options)).encode())
        for array in arrays:
            digest.update(f"{array.shape} {array.dtype.str}".encode())
            for part in array:
                digest.update(np.ascontiguousarray(part).data)
        self.key = digest.hexdigest()

    def write(self, arrays: Mapping[str, ArrayLike]) -> None:
        """Replace the file to write to, if there is one, by these arrays."""
        if self.checkpoint is not None:
            write_arrays(self.checkpoint, "checkpoint", {"key": np.array(self.key), **arrays})

    def read(self, dtype_kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
        """The arrays of the file to read from, all of those named, with kinds of dtype."""
        kinds = {"key": "U", **dtype_kinds}
        arrays = read_arrays(self.resume, "checkpoint", kinds, set(kinds), "resume")
        if str(arrays.pop("key")) != self.key:
            raise ValueError("resume must be a checkpoint of the same samples, weights and "
                             f"options: {self.resume} is of others")
        return arrays


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
