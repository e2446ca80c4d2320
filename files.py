"""Saving and loading, without half-written files and without pickle: dictionaries,
checkpoints.

A file of arrays is an .npz of plain arrays; its comment is the SHA-256 of all bytes
before it. Reading executes nothing. A file is written beside its path and takes its
place once it is complete: after an error, Ctrl-C or a full disk the path is what it
was; a kill leaves a file *.unfinished beside it. Checkpoints keep the Fingerprint of
what was computed, and are resumed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import numbers
import os
import secrets
import shutil
import signal
import threading
import zipfile
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core

__all__ = [
    "save",
    "load",
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
RESUMED = "resume must be a checkpoint of the same samples, weights and options"


def check_path(path: str | bytes | os.PathLike, name: str = "path") -> str:
    """The path as a string that is not empty.

    TypeError for what is no path, ValueError for an empty one.

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
        raise ValueError(
            f"{name} must be the path of a file, got {check_path(path)}, which is "
            f"{'a folder' if os.path.isdir(target) else 'no plain file'}"
        )
    return target


def write_whole(path: str | bytes | os.PathLike, write: Callable) -> None:
    """Call write(file) on a binary file that replaces path once it is complete.

    Until then, and after any error, path is what it was. A link is followed,
    permissions are those of the file before, or of any new file. A kill leaves a file
    beside path, whose name ends in .unfinished.

    ValueError if path is a folder, TypeError if write is no function, OSError from the
    disk.

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
        to_disk(file)
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


def to_disk(file):
    """Have what was written to the file on the disk."""
    file.flush()
    os.fsync(file.fileno())


def write_arrays(
    path: str | bytes | os.PathLike, kind: str, arrays: Mapping[str, ArrayLike]
) -> None:
    """Write a mapping from names to plain arrays as a file of this kind.

    TypeError for arrays of Python objects, ValueError for masked ones and for names
    that NumPy or the file needs; else as write_whole.

    >>> import os, tempfile
    >>> from grassmann_sc import files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "scores.npz")
    ...     files.write_arrays(path, "scores", {"right": [3, 4]})
    ...     files.read_arrays(path, "scores", {"right": "i"}, {"right"})
    {'right': array([3, 4])}
    """
    for name, array in arrays.items():
        if name in ("format", "version", "file", "allow_pickle"):
            raise ValueError(f"arrays must have other names than {name!r}")
        if np.asarray(array).dtype.hasobject:  # NumPy would pickle it
            raise TypeError(f"arrays[{name!r}] must hold no Python objects")
        if np.ma.is_masked(array):
            raise ValueError(f"arrays[{name!r}] must have no masked entries")

    def write(file):
        # NumPy leaves its archive open at a Ctrl-C, and a ValueError takes the
        # interrupt's place
        uninterrupted(lambda: np.savez(file, format=kind, version=VERSION, **arrays))
        with zipfile.ZipFile(file, "a") as archive:
            archive.comment = bytes(DIGEST_LENGTH)
        file.write(_digest(file))  # over the comment, which is next

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
            "damaged, of another version, or another file: "
            f"{str(error) or type(error).__name__}"
        ) from None


def _read(file, dtype_kinds, needed):
    if _digest(file) != file.read():
        raise ValueError("its bytes are not those that were written (SHA-256)")
    file.seek(0)
    arrays = dict(np.load(file, allow_pickle=False))
    unknown = sorted(arrays.keys() - dtype_kinds.keys())
    missing = sorted(needed - arrays.keys())
    if unknown or missing:
        raise ValueError(
            f"it must hold {', '.join(sorted(needed))}: missing "
            f"{', '.join(missing) or 'none'}, unknown {', '.join(unknown) or 'none'}"
        )
    for name, array in arrays.items():
        if array.dtype.kind not in dtype_kinds[name]:
            raise ValueError(
                f"{name} must have a dtype of kind {dtype_kinds[name]!r}, got "
                f"{array.dtype}"
            )
    return arrays


def _digest(file):
    """Hexadecimal SHA-256 of a file but its last DIGEST_LENGTH bytes, which are next."""
    length = max(0, file.seek(0, os.SEEK_END) - DIGEST_LENGTH)
    file.seek(0)
    digest = hashlib.sha256()
    for start in range(0, length, 2**20):
        digest.update(file.read(min(2**20, length - start)))
    return digest.hexdigest().encode()


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

    ValueError for atoms that are neither bases nor weighted subspaces, a lam below 0,
    or labels of another length; TypeError for labels of other types.

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
    if not hasattr(bases, "__len__"):
        raise TypeError(
            f"atoms must be an array (N, d, p), or have learned such, got {atoms!r}"
        )
    atoms = core.check_dictionary(bases, "atoms", weighted=True)
    arrays = {"atoms": atoms}
    if lam is not None:
        arrays["lam"] = np.array(core.check_number(lam, "lam", least=0))
    if labels is not None:
        arrays["labels"] = labels_to_keep(labels, len(atoms))
    write_arrays(path, "dictionary", arrays)


def labels_to_keep(labels, n, owners="atoms"):
    """The labels of n owners as an array (n,) that a file gives back as they are.

    They are numbers, strings or bools, all of one type: others would come back altered,
    or need pickle, and are a TypeError.
    """
    classes, index = core.check_labels(labels, n, owners=owners)
    kind = classes.dtype.kind
    if kind not in "biufUS" or kind == "f" and not np.isfinite(classes).all():
        raise TypeError(
            "labels must be finite numbers, strings or bools, all of one type, that "
            f"an array holds as they are, got {', '.join(map(repr, classes[-5:].tolist()))}"
        )
    return classes[index]


def load(path: str | os.PathLike) -> Dictionary:
    """Dictionary (atoms, lam, labels) that save wrote.

    lam and labels are None where none were. Nothing in the file is executed. ValueError
    if it is damaged, truncated or of another kind.

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
        self.options = hashlib.blake2b(
            json.dumps(_describe(options)).encode()
        ).hexdigest()[:SHORT]
        self.atoms = shortened(0 if atoms is None else digest_rows(atoms))
        self.samples = 0

    def add(self, digest: int) -> Fingerprint:
        """Add the digest of some rows of the samples; returns self."""
        self.samples += digest
        return self

    def text(self, digest: int | None = None) -> str:
        """The fingerprint so far, or that of rows with this digest alone."""
        samples = self.samples if digest is None else digest
        return f"{self.options} {self.atoms} {shortened(samples)}"

    def check(self, text: str, rule: str, path: str, rest: int | None = None) -> None:
        """ValueError, which names the difference, unless path has this fingerprint.

        rest: the digest of those samples of that text that have not been added; without
        it samples are not compared.
        """
        ours = {"the options": self.options, "the atoms": self.atoms}
        if rest is not None:
            ours["the samples"] = shortened(self.samples + rest)
        pairs = zip(ours.items(), text.split())
        differing = [name for (name, digest), theirs in pairs if digest != theirs]
        if differing:
            raise ValueError(f"{rule}: {path} differs in {', '.join(differing)}")


def digest_rows(rows: np.ndarray, first: int = 0) -> int:
    """Sum of the BLAKE2b digests of rows (n, ...), each with its place first + i."""
    total = 0
    for place, row in enumerate(rows, first):
        row = np.ascontiguousarray(row).data
        digest = hashlib.blake2b(row, digest_size=16, salt=place.to_bytes(16, "little"))
        total += int.from_bytes(digest.digest(), "little")
    return total


def shortened(digest):
    """The last hexadecimal digits of the digest of rows."""
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
            write_arrays(
                self.checkpoint,
                "checkpoint",
                {"key": self.fingerprint.text(), **arrays},
            )

    def read(self, dtype_kinds: Mapping[str, str]) -> dict[str, np.ndarray]:
        """The named arrays of the file to read from, if its options are the same.

        dtype_kinds: as in read_arrays. check_samples is to follow.
        """
        kinds = {"key": "U", **dtype_kinds}
        arrays = read_arrays(self.resume, "checkpoint", kinds, set(kinds), "resume")
        self.found = str(arrays.pop("key"))
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


GENERATORS = "MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"  # NumPy's


def as_json(content: object) -> np.ndarray:
    """The content as JSON in an array of a file.

    Numbers keep all their digits; arrays become lists.
    """
    return np.array(json.dumps(content, default=lambda array: array.tolist()))


def check_names(content: Any, name: str, names: Iterable[str]) -> dict[str, Any]:
    """A part of JSON, if it is an object of these names and no others."""
    wanted = set(names)
    if not isinstance(content, dict) or content.keys() != wanted:
        got = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{name} must hold {', '.join(sorted(wanted))}, got {got}")
    return content


def read_generator(text: np.ndarray) -> np.random.Generator:
    """The Generator, one of NumPy's, whose state this is as JSON.

    >>> import numpy as np
    >>> from grassmann_sc import files
    >>> text = files.as_json(np.random.default_rng(0).bit_generator.state)
    >>> files.read_generator(text).random() == np.random.default_rng(0).random()
    True
    """
    state = json.loads(str(text))
    core.check_choice(state["bit_generator"], "rng", *GENERATORS)
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


# --------------------------------------------------------------------------- interrupts


def uninterrupted(job):
    """Run job whole or not at all: Ctrl-C waits until it is done.

    A Ctrl-C that comes before job begins may leave it not begun. Those that come while
    it runs are handled once at its end, however many came. In other threads than the
    main one job just runs: Python handles no signals there. An error that job itself
    raises ends it halfway.
    """
    handler = signal.getsignal(signal.SIGINT)
    elsewhere = threading.current_thread() is not threading.main_thread()
    if elsewhere or not callable(handler):
        return job()
    came = []  # (number, frame) as Python gives them: the number is an int
    # Python handles what came up to a call of signal.signal before that call exchanges
    # the handler: one that raises leaves job not begun, or done and itself restored
    try:
        signal.signal(signal.SIGINT, lambda *signals: came.append(signals))
        return job()
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
