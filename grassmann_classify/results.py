"""The folder of results: what a run may remove and replace there, and what it may not.

A run removes or replaces a file only if an earlier run wrote it there, nobody changed
it since, and this run does not read it. A list of what was written, with digests, lies
in the folder's own OURS, beside the cache of subspaces.
"""

import contextlib
import errno
import hashlib
import io
import itertools
import json
import os
from pathlib import Path

import numpy as np

from grassmann_classify.evaluation import all_answers, natural_classes, successes
from grassmann_classify.page import versions
from grassmann_classify.spreadsheets import write_rows
from grassmann_classify.tables import compared
from grassmann_classify.words import plural, to_stderr
from grassmann_sc import files

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

DIGITS = 9  # of fractions in results.json: the rest is rounding
OURS = ".grassmann-classify"  # marks a folder of results
LIST = "written.json"
CACHE = "cache"
NO_FILE = (OSError, ValueError)  # what the system says to a name that none can have
HELD = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)  # of locks that another run has


class Results:
    """A folder of results, which one run at a time writes into.

        with Results("out") as out:
            out.write("results.json", lambda file: file.write(b"{}"))

    written: {name that was asked for: path}; read: paths of what this run reads.
    """

    def __init__(self, folder, name="--out"):
        self.folder = Path(folder)
        self.name = name
        self.written = {}
        self._digests = {}
        self._why = {}  # files that stay
        self.read = []  # paths
        self._identities = set()

    @property
    def cache(self):
        return self.folder / OURS / CACHE

    def __enter__(self):
        """Take the folder; ValueError if it cannot be written to, or another run has it."""
        with contextlib.ExitStack() as stack:
            try:
                (self.folder / OURS).mkdir(parents=True, exist_ok=True)
                lock = stack.enter_context(open(self.folder / OURS / "lock", "a+b"))
            except OSError as error:
                raise ValueError(
                    f"{self.name} must be a folder that can be written to, got "
                    f"{self.folder}: {error}"
                ) from None
            if not _locked(lock):
                raise ValueError(
                    f"{self.name} must be a folder that no other run writes into, got "
                    f"{self.folder}: wait for that run, or name another folder"
                )
            self._digests = listed_in(self.folder)
            # the system gives it back if the run is killed
            self._lock = stack.pop_all()
        return self

    def __exit__(self, *error):
        self._lock.close()

    def protect(self, *paths):
        """Keep the files that this run reads, whatever their names and links here.

        Of folders, the clips that are found in them are kept: protect_clips.
        """
        self.read += [path for path in paths if path and not Path(path).is_dir()]

    def protect_clips(self, clips):
        """Likewise the files of clips; ValueError if the folder is itself a clip."""
        paths = [one for c in clips for one in c.sources if isinstance(one, Path)]
        for path in paths:
            if path.is_dir() and path.samefile(self.folder):
                raise ValueError(
                    f"{self.name} must not be a folder whose images are a clip, got "
                    f"{self.folder}"
                )
        self.read += paths

    def write(self, name, write):
        """Write a file by write(file), whole or not at all; gives its path.

        If the name is that of a file which this run may not replace, that file stays,
        and the new one has a number, as results-2.json.
        """
        content = io.BytesIO()
        write(content)
        content = content.getvalue()
        if not self.written:
            self._remove_last()
        path = self._free(name)
        self.written[name] = path
        # listed before it is there, beside the file that it replaces: a run that is
        # killed here leaves none that the next run takes for the user's
        before = self._digests.get(path.name, [])
        self._digests[path.name] = [*before[-1:], hashlib.sha256(content).hexdigest()]
        text = json.dumps(
            {"folder": os.path.realpath(self.folder), "files": self._digests}
        )
        files.write_whole(
            self.folder / OURS / LIST, lambda file: file.write(text.encode())
        )
        files.write_whole(path, lambda file: file.write(content))
        return path

    def _remove_last(self):
        """Remove what the last run wrote, but for what is no longer its own."""
        if self._digests:
            self._identities = {one for path in self.read for one in _identities(path)}
        kept = {}
        n_removed = 0
        for name in [*self._digests]:
            path = self.folder / name
            if self._may_replace(path):
                path.unlink()
                n_removed += 1
            elif self._is_read(path):
                kept[name] = self._digests[name]
                self._why[name] = "this run reads it"
            else:
                self._why[name] = "it was changed since it was written"
        self._digests = kept
        if n_removed:
            to_stderr(
                f"removed {plural(n_removed, 'file')} that the last run left in "
                f"{self.folder}"
            )

    def _free(self, name):
        """The path for a file of this name."""
        stem, suffix = os.path.splitext(name)
        for k in itertools.count(1):
            path = self.folder / (name if k == 1 else f"{stem}-{k}{suffix}")
            if not os.path.lexists(path) or self._may_replace(path):
                break
        if k > 1 and self.written.get(name) != path:
            why = self._why.get(name, "this program did not write it")
            to_stderr(f"{self.folder / name} stays, {why}: the new one is {path.name}")
        return path

    def _may_replace(self, path):
        """Did a run of this program write this, nobody change it, and none read it?"""
        digests = self._digests.get(path.name, [])
        with contextlib.suppress(*NO_FILE):
            if digests and not path.is_symlink() and path.is_file():
                return _digest(path) in digests and not self._is_read(path)
        return False

    def _is_read(self, path):
        return bool(self._identities & {*_identities(path)})


def is_one(folder):
    """Is this a folder of results, as far as it may be looked into?"""
    return os.path.isdir(folder / OURS)


def wrote(path, listed):
    """Did a run write this file, of which listed_in its folder tells, as it is now?"""
    digests = listed.get(path.name)
    return bool(digests) and _digest(path) in digests


def _digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def same_file(path, others):
    """The first of other paths that leads to the same file as this one, or None."""
    here = {*_identities(path, deep=False)}
    return next((one for one in others if here & {*_identities(one)}), None)


def listed_in(folder):
    """{name: digests} of what runs wrote into this folder, as long as it lies here."""
    path = folder / OURS / LIST
    if not os.path.isfile(path):  # a pipe would never end
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["folder"] != os.path.realpath(folder):
            return {}  # a copy of the folder is its owner's
        return {str(name): [*digests] for name, digests in content["files"].items()}
    except Exception:  # whatever a damaged one raises
        return {}


def _identities(path, deep=True):
    """What tells a file from others, under all its names; likewise those of a folder."""
    with contextlib.suppress(*NO_FILE):
        inside = [*Path(path).iterdir()] if deep and Path(path).is_dir() else []
        for one in [path, *inside]:
            with contextlib.suppress(*NO_FILE):
                found = os.stat(one)
                yield found.st_dev, found.st_ino


def _locked(file):
    """Take the lock of an open file until it is closed; False if another run has it."""
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except OSError as error:  # any other: there are no locks here
        return error.errno not in HELD
    return True


def save_results(out, asked, collection, pairs, results, n_done=None):
    """results.json of the splits that all methods have.

    n_done: their number, 0 of a first look, whose results are provisional.
    """
    done = pairs if n_done is None else pairs[: max(1, n_done)]
    if n_done is None:
        n_done = min(len(found) for found in results.values())
    content = {
        "options": asked,
        "versions": versions(),
        "n_sets": len(collection.label),
        "subspaces": collection.X.shape[1:],
        "classes": natural_classes(collection.label),
        "splits": len(pairs),
        "splits_done": n_done,
        "provisional": not n_done,
        "methods": {
            name: _summary(collection.label, pairs, found)
            for name, found in results.items()
        },
        "comparison": compared(results, done)._asdict(),
        "failed": [*collection.unread.values()],
    }
    text = json.dumps(_rounded(content), indent=1, default=str)
    out.write("results.json", lambda file: file.write(text.encode()))


def save_predictions(out, collection, pairs, results):
    """predictions.csv: what each method answers for each test clip of each split."""
    rows = []
    for k, (_, test) in enumerate(pairs):
        found = [
            splits[k]["predicted"] if k < len(splits) else None
            for splits in results.values()
        ]
        rows += [
            [
                collection.names[i],
                k,
                collection.label[i],
                *("" if labels is None else labels[row] for labels in found),
            ]
            for row, i in enumerate(test)
        ]
    write_rows(out, "predictions.csv", ["clip", "split", "truth", *results], rows)


def _summary(label, pairs, found):
    """What results.json tells of a method."""
    place = {name: i for i, name in enumerate(natural_classes(label))}
    truth, predicted = all_answers(label, pairs, found)
    confusion = np.zeros((len(place), len(place)), int)
    np.add.at(confusion, ([place[c] for c in truth], [place[c] for c in predicted]), 1)
    accuracy = [split["accuracy"] for split in successes(found)]
    others = {
        name: [None if split["failed"] else split[name] for split in found]
        for name in ("balanced", "f1")
    }
    return {
        "mean": np.mean(accuracy) if accuracy else None,
        "std": np.std(accuracy, ddof=1) if len(accuracy) > 1 else None,
        "accuracy": [None if split["failed"] else split["accuracy"] for split in found],
        **others,
        "failed": [split["failed"] for split in found],
        "seconds": [split["seconds"] for split in found],
        "chosen": [split["chosen"] for split in found],
        "confusion": confusion,
    }


def _rounded(value):
    """NumPy's numbers and arrays as JSON has them, fractions with DIGITS digits."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        return _rounded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if type(value) is float else value


def save_codes(out, collection, done):
    """codes.npz of the last split, of which done is the Progress; its arrays."""
    arrays = {
        "names": np.array(collection.names),
        "label": collection.label,
        "train": done.train,
        "test": done.test,
    }
    arrays |= done.codes
    out.write("codes.npz", lambda file: np.savez_compressed(file, **arrays))
    return arrays
