"""Files that are whole or not there, arrays in them without pickle, and what a resume goes on from.

A file of arrays is an .npz that stores plain arrays as they are; its comment is the SHA-256 of all
bytes before it. Reading executes nothing, and takes no more memory than the file is long. What is
gone on from keeps the Fingerprint of what was computed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import json
import math
import numbers
import os
import shutil
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

try:
    import fcntl
except ImportError:  # Windows, where no one removes a file that is open
    fcntl = None  # type: ignore[assignment]

__all__ = ["write_whole", "write_arrays", "read_arrays", "Checkpoint", "check_path"]

VERSION = 1  # of the format
DIGEST_LENGTH = 64  # hexadecimal digits
SLOTS = 8  # unfinished files of one path that are looked at
SHORT = 12  # hexadecimal digits of each part of a fingerprint


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
    of the file before, or of any new file. What a killed run left unfinished beside path is
    removed; what a run that is alive is writing there is not.

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
    remove_unfinished(path)
    file, unfinished = _new_file(path)
    try:
        with file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if os.path.isfile(path):
                shutil.copymode(path, unfinished)
            if fcntl:  # under its lock, so that no one takes it for abandoned
                os.replace(unfinished, path)
        if not fcntl:
            os.replace(unfinished, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise


def _new_file(path):
    """A new file beside path, locked for as long as it is open, and its name."""
    for slot in itertools.count():
        name = _unfinished(path, slot)
        with contextlib.suppress(FileExistsError):
            file = open(name, "x+b")
            if _lock(file) is not False and os.fstat(file.fileno()).st_nlink:
                return file, name  # else it was taken for abandoned before it was locked
            file.close()


def _unfinished(path, slot):
    return f"{path}.{slot}.unfinished"


def _lock(file):
    """Take the lock of an open file, which the system gives back when its process ends.

    False if another has it, None where there are no locks.
    """
    if not fcntl:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def remove_unfinished(path):
    """Remove the unfinished files of path whose writers are gone: nobody holds their locks."""
    for slot in range(SLOTS):
        name = _unfinished(path, slot)
        with contextlib.suppress(OSError):
            if not os.path.isfile(name) or os.path.islink(name):
                continue
            if not fcntl:
                os.unlink(name)
                continue
            with open(name, "rb") as file:
                # its writer may have renamed it just now
                if _lock(file) and os.path.samestat(os.fstat(file.fileno()), os.lstat(name)):
                    os.unlink(name)


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


# ------------------------------------------------------------------------------- going on


class Fingerprint:
    """What a computation is of: digests of its options, of its atoms, and of the samples so far.

    The digest of samples is a sum over their rows, see digest_rows, so that those of blocks add up
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

    def check(self, text: str, rule: str, path: str, samples: bool) -> None:
        """ValueError that states the rule and what differs from the text found in path; samples:
        are all of those that it tells of added?"""
        names = "the options", "the atoms", "the samples"
        pairs = zip(names, self.text().split(), text.split())
        differing = [name for name, ours, theirs in pairs if ours != theirs]
        if not samples:
            differing = [name for name in differing if name != "the samples"]
        if differing:
            raise ValueError(f"{rule}: {path} differs in {', '.join(differing)}")


def digest_rows(rows: np.ndarray, first: int = 0) -> int:
    """Sum of the BLAKE2b digests of rows (n, ...), each with its place first + i."""
    total = 0
    for place, row in enumerate(rows, first):
        salt = place.to_bytes(16, "little")
        digest = hashlib.blake2b(np.ascontiguousarray(row).data, digest_size=16, salt=salt)
        total += int.from_bytes(digest.digest(), "little")
    return total


def _shortened(digest):
    return f"{digest % 16**SHORT:0{SHORT}x}"


class Checkpoint:
    """The file of a computation that can be resumed, and the fingerprint of what is computed.

    checkpoint, resume: paths or None, where to write to and to read from. The fingerprint is that
    of the options and the arrays, the samples, to which others may be added: equal numbers count
    alike, functions by their names.

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

    def __init__(self, checkpoint: str | bytes | os.PathLike | None,
                 resume: str | bytes | os.PathLike | None, arrays: Iterable[np.ndarray],
                 options: object) -> None:
        self.checkpoint = None if checkpoint is None else check_path(checkpoint, "checkpoint")
        self.resume: Any = None if resume is None else check_path(resume, "resume")
        if self.checkpoint is not None:
            remove_unfinished(os.path.realpath(self.checkpoint))
        self.fingerprint = Fingerprint(options)
        self.found: str | None = None  # the fingerprint in the file to resume from
        for i, array in enumerate(arrays):
            self.fingerprint.add(digest_rows(array, i << 64))

    def write(self, arrays: Mapping[str, ArrayLike]) -> None:
        """Replace the file to write to, if there is one, by these arrays."""
        if self.checkpoint is not None:
            key = np.array(self.fingerprint.text())
            write_arrays(self.checkpoint, "checkpoint", {"key": key, **arrays})

    def read(self, dtype_kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
        """The arrays of the file to read from, all of those named, with kinds of dtype, if it is of
        the same options; check_samples is to follow."""
        kinds = {"key": "U", **dtype_kinds}
        arrays = read_arrays(self.resume, "checkpoint", kinds, set(kinds), "resume")
        self.found = str(arrays.pop("key"))
        if len(self.found.split()) != 3:
            raise ValueError("resume must be a checkpoint with a fingerprint of its samples: "
                             f"{self.resume} is of an earlier version of this toolkit, or damaged; "
                             "its atoms, in np.load(resume)['atoms'], can be given as init")
        self._check(samples=False)
        return arrays

    def check_samples(self) -> None:
        """ValueError unless the samples that were added are those that the file read is of."""
        if self.found is not None:
            self._check(samples=True)

    def _check(self, samples):
        self.fingerprint.check(self.found, "resume must be a checkpoint of the same samples, "
                               "weights and options", self.resume, samples)


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


# NumPy's, with the name and the largest value of a place in a buffer, which NumPy does not check
GENERATORS = {"MT19937": ("pos", 624), "PCG64": None, "PCG64DXSM": None,
              "Philox": ("buffer_pos", 4), "SFC64": None}


def as_json(content: object) -> str:
    """The content as JSON, in which numbers keep all their digits and arrays are lists."""
    return json.dumps(content, default=lambda array: array.tolist())


def read_generator(text: str) -> np.random.Generator:
    """The Generator, one of NumPy's, whose state this is as JSON; ValueError if it is none.

    >>> import numpy as np
    >>> from grassmann_sc import files
    >>> text = files.as_json(np.random.default_rng(0).bit_generator.state)
    >>> files.read_generator(text).random() == np.random.default_rng(0).random()
    True
    """
    try:
        state = json.loads(text)
        place = GENERATORS[state["bit_generator"]]
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        kept = json.loads(as_json(bits.state))
    except Exception as error:  # whatever JSON or NumPy makes of other states
        raise ValueError(f"rng must be the state of a generator of NumPy's, got another "
                         f"({type(error).__name__})") from None
    sound = kept == state
    if place:
        name, most = place
        sound = sound and 0 <= (kept | kept["state"])[name] <= most
    if not sound:
        raise ValueError("rng must be the state of a generator of NumPy's, got one that none has")
    return np.random.Generator(bits)
