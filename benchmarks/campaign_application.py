"""The command on files of a user: commands at random, whose inputs and outputs overlap,
links, files edited between two commands, crafted models. No file of the user is lost,
no input is changed, and nothing ends in a traceback.
"""

import contextlib
import hashlib
import io
import itertools
import json
import os
import shlex
import shutil
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.campaign_calls import Failed, failing, hold, rng_of
from grassmann_classify import fit, save
from grassmann_classify.folder import OURS
from grassmann_classify.model_file import PARTS, load
from grassmann_classify.settings import Settings
from grassmann_sc import files

QUICK = ["--recipe", "plain", "--no-kernels", "--p", "1", "--lam", "0.1"]
ROWS = ["nearest", "gsc", "svm on the", "mean frame", "glc"]
MINE = ["files.txt", "results.json", "report.html", "photo.png", "codes.npz", "l.csv"]
MINE += ["suspects.csv", "model.npz", "predictions.csv", "clusters.csv", "map.png"]
READ = (".npy", ".npz", ".png")  # of what lies in a folder that a command names
PLACES = ["out", ".", "data", "data/a", "flat", "new", "out2", "data/out", "mine"]


def application(seed, case):
    """Some commands in one folder of a user, who edits and links files in between."""
    rng = rng_of("application", seed, case)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        with contextlib.chdir(folder) if hasattr(contextlib, "chdir") else _in(folder):
            world = World(rng)
            for _ in range(rng.integers(1, 4)):
                world.edit()
                world.run()


@contextlib.contextmanager
def _in(folder):
    here = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


class World:
    """Files of a user in the working folder, and which of the rest is the program's."""

    def __init__(self, rng):
        self.rng = rng
        self.ours = {}  # {path: digest} of what commands wrote and nobody changed
        for label, i in itertools.product("ab", range(4)):
            for path in (f"data/{label}/{i}.npy", f"flat/{label}{i}.npy"):
                self.put(path, clip(rng, label))
        for i in range(3):
            self.put(f"new/{i}.npy", clip(rng, "ab"[i % 2]))
            self.put(f"more/{'abc'[i]}/{i}.npy", clip(rng, "abc"[i]))
        lines = [f"{label}{i},{label}" for label in "ab" for i in range(4)]
        Path("labels.csv").write_text("\n".join(["clip,label", *lines, ""]))
        stacked = np.concatenate([clip(rng, c) for c in "aabbaabb"])
        even = np.arange(0, 8, 2)
        given = {"frames": stacked, "offset": 4 * np.arange(9), "label": [*"aabbaabb"]}
        np.savez("sets.npz", **given, train0=even, test0=even + 1)
        shutil.copy(model_of_letters(), "m.npz")
        Path("mine").mkdir()
        for name in rng.choice(MINE, 4, replace=False):
            place = Path(str(rng.choice(["out", ".", "mine", "data"])))
            place.mkdir(exist_ok=True)
            (place / name).write_bytes(rng.bytes(20))
        if rng.random() < 0.3:
            craft(rng, "m.npz", "crafted.npz")

    def put(self, path, frames):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        np.save(path, frames)

    def any_file(self):
        found = sorted(
            p for p in Path().rglob("*") if p.is_file() and OURS not in p.parts
        )
        return found[self.rng.integers(len(found))]

    def edit(self):
        """The user changes, copies or links a file, or a folder of results."""
        kind = self.rng.integers(7)
        path = self.any_file()
        new = Path(str(self.rng.choice(PLACES)), str(self.rng.choice(MINE)))
        if kind == 0 and path.suffix in (".csv", ".json", ".html"):
            path.write_bytes(path.read_bytes() + b"\n")
        elif kind in (1, 2, 3) and not os.path.lexists(new):
            new.parent.mkdir(parents=True, exist_ok=True)
            make = (
                shutil.copy,
                os.link,
                lambda a, b: os.symlink(os.path.abspath(a), b),
            )
            make[kind - 1](path, new)
        elif kind == 4 and Path("out", OURS).exists() and not Path("copy").exists():
            shutil.copytree("out", "copy", symlinks=True)
        elif kind == 5 and not Path("data/a/linked.npy").exists():
            os.symlink(os.path.abspath(path), "data/a/linked.npy")

    def command(self):
        """Words of a command line."""
        rng = self.rng
        some = lambda *words: [str(w) for w in words if rng.random() < 0.5]  # noqa: E731
        model = str(rng.choice(["m.npz", "crafted.npz", "m2.npz", "out/model.npz"]))
        target = str(
            rng.choice(["m2.npz", "m.npz", "labels.csv", "out/model.npz", "x.npz"])
        )
        target = str(self.any_file()) if rng.random() < 0.3 else target
        data = str(rng.choice(["data", "data", ".", "sets.npz", "flat", "out", "mine"]))
        data = str(self.any_file()) if rng.random() < 0.1 else data
        labels = [
            "--labels",
            str(rng.choice(["labels.csv", "labels.csv", "out/suspects.csv", "l.csv"])),
        ]
        new = str(rng.choice(["new", "data", ".", "out", "new/0.npy", "sets.npz"]))
        new = str(self.any_file()) if rng.random() < 0.2 else new
        rows = ["--methods", str(rng.choice(ROWS))]
        labelled = [data, *(labels if data == "flat" else [])]
        learned = [*QUICK, *rows, *some("--skip")]
        words = {
            "compare": [*labelled, *learned, "--repeats", "1"],
            "predict": [new, "--data", *labelled, *learned, *some(f"--save={target}")],
            "answer": [new, "--model", model],
            "add": [
                str(rng.choice(["more", "data", "."])),
                "--model",
                model,
                "--save",
                target,
            ],
            "check": [
                *labelled,
                *QUICK[:2],
                "--p",
                "1",
                "--lam",
                "0.1",
                *some("--skip"),
            ],
            "cluster": [new, "-k", "2", "--p", "1", *some("--skip")],
        }
        name = str(rng.choice([*words]))
        out = ["--out", str(rng.choice(PLACES))]
        pictures = [] if name == "add" or rng.random() < 0.1 else ["--no-pictures"]
        dpi = [] if pictures or name == "add" else ["--dpi", "20"]
        command = "predict" if name == "answer" else name
        return [command, *words[name], *out, *pictures, *dpi]

    def run(self):
        from grassmann_classify.__main__ import main

        words = self.command()
        before = snapshot()
        inputs = self.inputs(words)
        with failing(shlex.join(words)):
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()) as said,
            ):
                try:
                    main(words, "grassmann-classify")
                except SystemExit as end:
                    hold(
                        end.code in (None, 0, 1, 2) or isinstance(end.code, str),
                        f"it ends with {end.code!r}",
                    )
            hold("Traceback" not in said.getvalue(), "a traceback is printed")
            after = snapshot()
            for path, content in before.items():
                mine = self.ours.get(path) != content or path in inputs
                same = after.get(path) == content
                if path == named_by(words, "--save") and replaceable(content):
                    continue  # a model of ours, named to be replaced
                hold(same or not mine, f"{path} is not as it was", "a file is lost")
        self.ours = {
            path: content
            for path, content in after.items()
            if before.get(path) != content or self.ours.get(path) == content
        }

    def inputs(self, words):
        """The files that a command names or finds in folders that it names, as paths.

        But for those that the program wrote into a folder that it reads.
        """
        read = [one for one in words[1:] if os.path.exists(one)]
        for flag in ("--out", "--save"):
            if named_by(words, flag) in read:
                read.remove(named_by(words, flag))
        identities = set()
        for one in read:
            inside = Path(one).rglob("*") if os.path.isdir(one) else [Path(one)]
            for path in inside:
                read_here = path == Path(one) or path.suffix in READ
                if path.is_file() and OURS not in path.parts and read_here:
                    ours = os.path.isdir(one) and str(path) in self.ours
                    if not ours or path.is_symlink():
                        found = os.stat(path)
                        identities.add((found.st_dev, found.st_ino))
        return {
            path
            for path in snapshot()
            if (os.stat(path).st_dev, os.stat(path).st_ino) in identities
        }


def named_by(words, flag):
    """What follows a flag, or None."""
    for i, word in enumerate(words):
        if word == flag:
            return words[i + 1]
        if word.startswith(f"{flag}="):
            return word.partition("=")[2]
    return None


def replaceable(content):
    return content[1] == "model"


def snapshot():
    """{path: (digest, kind)} of all files, without the program's own folders."""
    found = {}
    for path in sorted(Path().rglob("*")):
        if OURS in path.parts or not path.is_file():
            continue
        # what a link leads to is another file of the snapshot, or lies elsewhere
        link = path.is_symlink()
        content = os.readlink(path).encode() if link else path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        kind = "model" if not link and is_kept(path) else "file"
        found[str(path)] = digest, kind
    return found


def is_kept(path):
    try:
        kinds = {part: kinds for part, (kinds, _) in PARTS.items()}
        files.read_arrays(path, "model", kinds, {"model"})
    except (OSError, ValueError):
        return False
    return True


def clip(rng, label):
    """Frames (4, 3, 4), brighter on the side of their class."""
    side = np.arange(4) // 2 == (label == "b")
    return (rng.integers(0, 99, (4, 3, 4)) + 99 * side).astype(np.uint8)


def model_of_letters(kept={}):  # noqa: B006 one for the process
    if not kept:
        rng = np.random.default_rng(0)
        sets = [clip(rng, label) for label in "abababab"]
        settings = Settings(methods=["gsc"], kernels=False, p=[1], lam=[0.1])
        kept["path"] = os.path.join(tempfile.mkdtemp(prefix="campaign_"), "m.npz")
        with contextlib.redirect_stderr(io.StringIO()):
            save(kept["path"], fit(sets, [*"abababab"], settings=settings))
    return kept["path"]


VALUES = [None, -1, 0, 1e308, True, "x", [], {}, [2, 2], 7]


def craft(rng, path, target):
    """A model with one part that does not fit, signed as a whole one; it is refused, or
    answers what its parts say."""
    with np.load(path) as held:
        arrays = {k: held[k] for k in held.files if k not in ("format", "version")}
    name = str(rng.choice([*arrays]))
    if name == "model":
        content = json.loads(str(arrays["model"]))
        within = content
        key = str(rng.choice([*within]))
        while isinstance(within[key], dict) and within[key] and rng.random() < 0.7:
            within = within[key]
            key = str(rng.choice([*within]))
        within[key] = VALUES[rng.integers(len(VALUES))]
        arrays["model"] = files.as_json(content)
    else:
        array = arrays[name]
        changes = [
            lambda: array[::-1],
            lambda: array[:-1],
            lambda: np.concatenate([array, array]),
            lambda: array.reshape(-1),
            lambda: np.zeros_like(array),
            lambda: (
                array.astype(np.float32) if array.dtype.kind in "iuf" else array[:0]
            ),
            lambda: array * np.nan if array.dtype.kind == "f" else array,
        ]
        arrays[name] = changes[rng.integers(len(changes))]()
    files.write_arrays(target, "model", arrays)
    with failing(f"a model whose {name} is another"):
        try:
            model = load(target)
        except ValueError:
            return
        n = len(model.labels)
        fits = len(model.points) == n == len(model.names) == len(model.clips)
        if not fits:
            raise Failed("a model is loaded whose parts do not fit")
