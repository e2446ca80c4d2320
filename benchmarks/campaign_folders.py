"""Folders and disks of the campaign: the command on hostile trees, and everything
that writes on a disk that fills.
"""

import contextlib
import ctypes
import errno
import functools
import inspect
import io
import json
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

import grassmann_sc as core
from benchmarks.campaign_calls import Failed, failing, hold, rng_of, worst_difference
from benchmarks.common import ROOT, run_child
from grassmann_classify.messages import printable
from grassmann_sc import files, learn

QUICK = [
    "--p",
    "2",
    "--repeats",
    "1",
    "--lam",
    "0.1",
    "--neighbors",
    "1",
    "--C",
    "1",
    "--skip",
]


def classify(data, out, *options):
    """What compare says as it ends: None, or its exit message or status."""
    from grassmann_classify.__main__ import main

    arguments = ["compare", str(data), "--out", str(out), *QUICK, *options]
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            main(arguments)
        except SystemExit as end:
            return end.code
    return None


def images(rng, *shape):
    return rng.integers(0, 256, shape or (4, 6, 5)).astype(np.uint8)


class Tree:
    """Class folders of good clips; names of those that can be used, and of those that
    cannot.
    """

    def __init__(self, root, rng):
        self.root = Path(root)
        self.rng = rng
        self.good = set()
        self.bad = set()
        self.sound = True  # two classes of two clips and more: there must be results
        for label in "abc"[: rng.integers(2, 4)]:
            self.add(*(f"{label}/{i}.npy" for i in range(4)))

    def add(self, *names, frames=None):
        """Good clips."""
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "wb") as file:
                np.save(file, images(self.rng) if frames is None else frames)
            self.good.add(name)

    def add_bad(self, *names, data=None, frames=None):
        """Clips of these bytes, or frames, that cannot be used."""
        self.add(*names, frames=frames)
        for name in names:
            if data is not None:
                (self.root / name).write_bytes(data)
            self.good.remove(name)
            self.bad.add(name)


class Hostile:
    """What makes a tree hostile."""

    def empty_folders(tree):
        for name in ("empty", "a/no_images"):
            (tree.root / name).mkdir()
        tree.bad.add("a/no_images")

    def dead_links(tree):
        for name, goal in (("broken", "nowhere"), ("itself", "itself")):
            (tree.root / f"a/{name}.npy").symlink_to(f"{goal}.npy")
            tree.bad.add(f"a/{name}.npy")

    def links_in_a_loop(tree):
        (tree.root / "a/up").symlink_to("..")
        (tree.root / "loop").symlink_to(".")

    def unreadable(tree):
        if os.geteuid() != 0:
            (tree.root / "a/locked").mkdir(mode=0)
            tree.bad.add("a/locked")
            tree.add_bad("a/locked.npy")
            (tree.root / "a/locked.npy").chmod(0)

    def odd_names(tree):
        for name in (
            "new\nline",
            "  spaces  ",
            "ünï 中文 🙂",
            "quote'\"",
            "-dash",
            "%s{}\\n",
            "a" * 240,
            os.fsdecode(b"\xff\xfe"),
        ):
            tree.add(f"b/{name}.npy")
        tree.add_bad("b/" + os.fsdecode(b"\xff") + "\n 🙂.npy", data=b"nothing")

    def odd_class(tree):
        name = tree.rng.choice(
            ["new\nline", "ünï 中文", " ", "-c", os.fsdecode(b"\xff")]
        )
        tree.add(*(f"{name}/{i}.npy" for i in range(4)))

    def mixed_kinds(tree):
        tree.add_bad("a/large.npy", frames=images(tree.rng, 4, 7, 7))
        tree.add_bad("a/vectors.npy", frames=tree.rng.standard_normal((5, 11)))
        tree.add("a/float.npy", frames=tree.rng.standard_normal((4, 6, 5)))

    def damaged_clips(tree):
        for suffix in ("npy", "npz", "mat", "gif", "tif", "mp4", "avi"):
            tree.add_bad(f"a/empty.{suffix}", data=b"")
            tree.add_bad(f"b/damaged.{suffix}", data=tree.rng.bytes(300))
        whole = (tree.root / "a/0.npy").read_bytes()
        tree.add_bad("b/cut.npy", data=whole[: -int(tree.rng.integers(1, len(whole)))])

    def useless_clips(tree):
        tree.add_bad("a/one_frame.npy", frames=images(tree.rng, 1, 6, 5))
        tree.add_bad("a/NaN.npy", frames=np.full((4, 6, 5), np.nan))
        tree.add_bad("a/black.npy", frames=np.zeros((4, 6, 5)))
        tree.add_bad("a/texts.npy", frames=np.array([["a", "b"]] * 3))

    def folders_of_images(tree):
        from PIL import Image

        for name in ("a/images", "a/broken_images", "a/images_with_odd_names"):
            folder = tree.root / name
            folder.mkdir()
            for i in range(4):
                prefix = os.fsdecode(b"\xff\n") if "odd" in name else ""
                Image.fromarray(images(tree.rng, 6, 5)).save(
                    folder / f"{prefix}{i}.png"
                )
        tree.good |= {"a/images", "a/images_with_odd_names"}
        tree.add_bad("a/broken_images/2.png", data=b"no picture")

    def strangers(tree):
        for name in ("README.txt", "a/notes.txt", "a/.hidden.npy", ".hidden/x.npy"):
            path = tree.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"nothing")

    def a_class_of_broken_clips(tree):
        tree.add_bad(*(f"d/{i}.npy" for i in range(3)), data=b"nothing")


class Fatal:
    """What leaves nothing to learn from."""

    def one_class(tree):
        for label in "bc":
            shutil.rmtree(tree.root / label, ignore_errors=True)

    def one_clip_a_class(tree):
        for path in tree.root.glob("*/[1-3].npy"):
            path.unlink()


def folders(seed, case):
    """First each hostility alone, then several at a time."""
    rng = rng_of("folders", seed, case)
    hostile, fatal = (
        [*filter(inspect.isfunction, vars(cls).values())] for cls in (Hostile, Fatal)
    )
    if case < len(hostile + fatal):
        chosen = [(hostile + fatal)[case]]
    else:
        chosen = list(rng.choice(hostile, int(rng.integers(2, 6)), replace=False))
        chosen += [fatal[rng.integers(2)]] if rng.random() < 0.1 else []
    options = [
        ["--no-pictures"],
        ["--no-pictures", "--kernels"],
        ["--no-pictures", "--atoms", "2"],
        [],
    ][rng.choice(4, p=[0.5, 0.2, 0.2, 0.1])]
    what = (
        f"{', '.join(hostility.__name__ for hostility in chosen)}; {' '.join(options)}"
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        tree = Tree(Path(folder) / "data", rng)
        for hostility in chosen:
            hostility(tree)
            tree.sound &= hostility not in fatal
        with failing(what):
            check_run(tree, Path(folder) / "out", options)


def check_run(tree, out, options):
    """No traceback; results of all good clips that name all others, if there can be
    any.
    """
    end = classify(tree.root, out, *options)
    file = out / "results.json"
    if not tree.sound:
        return hold(end is not None or file.exists(), "neither results nor an error")
    hold(file.exists(), f"no results: it ends with {end!r}")
    results = json.loads(file.read_text())
    named = "\n".join(results["failed"])
    unnamed = [name for name in tree.bad if printable(name) not in named]
    hold(not unnamed, f"not named among the failed: {unnamed}; named: {named[:500]}")
    hold(
        results["n_sets"] == len(tree.good),
        f"other number of sets: {results['n_sets']} of "
        f"{len(tree.good)} good clips; failed: {named[:500]}",
    )


# unshare(2): mounts that nobody else sees and that end with this process
NEW_MOUNTS = 0x00020000
PRIVATE = 0x00044000  # mount(2), recursively
GROW = 0x20
DETACH = 2
FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


@functools.cache
def may_mount():
    """May this process mount disks of its own?"""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None)
    return (
        libc.unshare(NEW_MOUNTS) == 0
        and libc.mount(b"none", b"/", None, PRIVATE, None) == 0
    )


class SmallDisk:
    """A folder of a disk of so many bytes; where none may be mounted, no file becomes
    longer.
    """

    def __init__(self, size):
        self.size = size
        self.mounted = may_mount()

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(dir=".")).resolve()
        self.limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        if self.mounted:
            self.mount(0, self.size)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, self.limit[1]))
        return self

    def mount(self, flags, size):
        if ctypes.CDLL(None).mount(
            b"tmpfs", os.fsencode(self.folder), b"tmpfs", flags, b"size=%d" % size
        ):
            raise Failed(f"cannot mount a disk of {size} bytes")

    def grow(self):
        """Let there be room."""
        if self.mounted:
            self.mount(GROW, 2**26)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, self.limit)

    def __exit__(self, *error):
        if self.mounted:
            ctypes.CDLL(None).umount2(os.fsencode(self.folder), DETACH)
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limit)
        shutil.rmtree(self.folder, ignore_errors=True)


def disks(seed, case):
    rng = rng_of("disks", seed, case)
    fill = {3: fill_numba_cache, 9: fill_codes}.get(
        case % 12, [fill_dictionary, fill_checkpoint, fill_results][case % 3]
    )
    size = int(rng.choice([2**13, 2**14, 2**15, 2**16, 2**17]) * rng.uniform(1, 2))
    with SmallDisk(size) as disk:
        what = f"{fill.__name__}, {size} bytes, {'tmpfs' if disk.mounted else 'RLIMIT_FSIZE'}"
        with failing(what):
            fill(rng, disk)
            strays = [
                path.name
                for path in disk.folder.rglob("*")
                if "unfinished" in path.name
            ]
            hold(not strays, f"{fill.__name__} leaves {strays}")


def is_full(job):
    """Does the job end in the error of a full disk?"""
    try:
        job()
    except OSError as error:
        if error.errno in FULL:
            return True
        raise
    return False


def fill_dictionary(rng, disk):
    """The file is the old one or the new one, as save said."""
    old = core.random_subspaces(2, 5, 2, 1)
    new = core.random_subspaces(20, int(rng.integers(10, 200)), 3, 2)
    path = disk.folder / "dictionary.npz"
    had_old = not is_full(lambda: files.save(path, old))
    failed = is_full(lambda: files.save(path, new))
    if failed and not had_old:
        return hold(not path.exists(), "half a file is left")
    atoms = files.load(path).atoms
    hold(
        worst_difference(atoms, old if failed else new) == 0,
        "the file holds other atoms",
    )


def fill_checkpoint(rng, disk):
    """There is no checkpoint, or one that can be gone on from."""
    X = core.random_subspaces(30, int(rng.integers(10, 200)), 2, 1)
    path = disk.folder / "checkpoint.npz"
    hog = disk.folder / "hog"
    options = dict(n_iter=4, tol=0, rng=0)

    def take_more(state):  # the disk fills as learning goes on
        with open(hog, "ab") as file:
            file.write(bytes(disk.size // 8))

    failed = is_full(
        lambda: learn.gdl(X, 5, 0.2, checkpoint=path, callback=take_more, **options)
    )
    if not path.exists():
        return hold(failed, "no checkpoint and no error")
    disk.grow()
    resumed = learn.gdl(X, 5, 0.2, resume=path, **options)
    whole = learn.gdl(X, 5, 0.2, **options)
    hold(worst_difference(resumed, whole) == 0, "resumed to other bits")


def fill_codes(rng, disk):
    """What is left of codes that need more, in a file and in a folder of parts, is
    right.
    """
    # four blocks, of 17 MB or 80 kB in parts
    X = core.random_subspaces(13_000, 8, 2, rng)
    D = core.random_subspaces(500, 8, 2, rng)
    expected = core.glc(X, D, 2)
    for sparse, size in ((False, 40_000_000), (True, 200_000)):
        with SmallDisk(size) as own:
            path = own.folder / "codes"
            hold(
                is_full(
                    lambda: files.write_codes(
                        path, X, D, n_neighbors=2, sparse_output=sparse
                    )
                ),
                "the codes fitted",
            )
            codes = core.dense_codes(files.load_codes(path))
            hold(0 < len(codes) < len(X), f"{len(codes)} rows are left")
            hold(
                worst_difference(codes, expected[: len(codes)]) < 1e-9,
                "other codes are left",
            )


def fill_results(rng, disk):
    """compare leaves whole files of all clips or an error; all once there is
    room.
    """
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        resource.setrlimit(resource.RLIMIT_FSIZE, disk.limit)  # for the data
        tree = Tree(folder, rng)
        if not disk.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (disk.size, disk.limit[1]))
        options = ["--kernels"] if rng.random() < 0.5 else []
        if rng.random() < 0.7:
            options.append("--no-pictures")
        out = disk.folder / "out"
        end = classify(tree.root, out, *options)
        check_results(out, tree, end)
        disk.grow()
        end = classify(tree.root, out, *options)
        check_results(out, tree, end)
        hold(end is None, f"with room again it ends with {end!r}")


def check_results(out, tree, end):
    """Each file is whole; there are results of all clips, or an error that tells of the
    disk.
    """
    file = out / "results.json"
    if file.exists():
        results = json.loads(file.read_text())
        hold(
            results["n_sets"] == len(tree.good) and not results["failed"],
            f"{results['n_sets']} sets of {len(tree.good)} clips; failed: {results['failed'][:2]}",
        )
    hold(file.exists() or end is not None, "no results and no error")
    told = not isinstance(end, str) or any(
        os.strerror(number) in end for number in FULL
    )
    hold(told, f"ends with {end!r}")
    for path in out.rglob("*.npz"):
        with failing(f"{path.name} is not whole"), np.load(path) as arrays:
            for name in arrays.files:
                arrays[name]


def fill_numba_cache(rng, disk):
    """Without room for compiled code, calls compile for themselves."""
    run_child(
        "import grassmann_sc as gs; gs.chordal_distance(gs.random_subspaces(3, 4, 2, 0))",
        cwd="/",
        NUMBA_CACHE_DIR=str(disk.folder / "cache"),
        PYTHONPATH=str(ROOT),
    )
