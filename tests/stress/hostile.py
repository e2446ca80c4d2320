"""What hostile inputs are made of: bad arrays, limits of the process, small disks."""

import contextlib
import ctypes
import errno
import functools
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np


def with_entry(A, rng, value):
    """A with a random entry of that value."""
    A = np.array(A, float)
    A.flat[rng.integers(A.size)] = value
    return A


def masked(A, rng):
    return np.ma.array(
        A, mask=np.arange(A.size).reshape(A.shape) == rng.integers(A.size)
    )


BAD_ARRAYS = {  # in place of an array, made of it
    "a NaN in it": lambda A, rng: with_entry(A, rng, np.nan),
    "an inf in it": lambda A, rng: with_entry(A, rng, np.inf),
    "a masked entry": masked,
    "an entry of 4e307": lambda A, rng: with_entry(A, rng, 4e307),
    "as complex": lambda A, rng: A + 0.5j,
    "as objects": lambda A, rng: A.astype(object),
    "as texts": lambda A, rng: A.astype(str),
    "an axis more": lambda A, rng: A[None],
    "an axis less": lambda A, rng: A[0],
    "a row less": lambda A, rng: A[:-1],
    "a row more": lambda A, rng: np.concatenate([A, A[:1]]),
    "another d": lambda A, rng: A[:, :-1] if A.ndim > 1 else A[:-1],
    "a column less": lambda A, rng: A[..., :-1],
    "no row": lambda A, rng: A[:0],
    "no column": lambda A, rng: A[..., :0],
    "times 4e307": lambda A, rng: np.multiply(A, 4e307, dtype=float),
    "times 1e-320": lambda A, rng: np.multiply(A, 1e-320, dtype=float),
    "negative": lambda A, rng: -np.asarray(A, float),
    "zeros": lambda A, rng: np.zeros(A.shape),
    "transposed": lambda A, rng: A.T,
}
REFUSED_ARRAYS = {
    "a NaN in it",
    "an inf in it",
    "a masked entry",
    "as complex",
    "as texts",
}


@contextlib.contextmanager
def limited(what, size):
    """A limit of resource: so many bytes of a file, or so many more of memory."""
    before = resource.getrlimit(what)
    if what == resource.RLIMIT_AS:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        size += pages * resource.getpagesize()
    resource.setrlimit(what, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


# unshare(2): mounts that nobody else sees and that end with this process
NEW_MOUNTS = 0x00020000
PRIVATE = 0x00044000  # mount(2), recursively
GROW = 0x20
DETACH = 2
LARGER = 2**26
FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}


@functools.cache
def may_mount():
    """May this process mount disks of its own?"""
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None)
    alone = libc.unshare(NEW_MOUNTS) == 0
    return alone and libc.mount(b"none", b"/", None, PRIVATE, None) == 0


@contextlib.contextmanager
def small_disk(size):
    """A folder of a disk of so many bytes, and a function that enlarges it; where none
    may be mounted, no file becomes longer.
    """
    folder = Path(tempfile.mkdtemp(dir=".")).resolve()
    name = os.fsencode(folder)
    libc = ctypes.CDLL(None)

    def mount(flags, size):
        assert libc.mount(b"tmpfs", name, b"tmpfs", flags, b"size=%d" % size) == 0

    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        if may_mount():
            mount(0, size)
            stack.callback(libc.umount2, name, DETACH)
            yield folder, functools.partial(mount, GROW, LARGER)
        else:
            limits = stack.enter_context(contextlib.ExitStack())
            limits.enter_context(limited(resource.RLIMIT_FSIZE, size))
            yield folder, limits.close


def is_full(job):
    """Does the job end in the error of a full disk?"""
    try:
        job()
    except OSError as error:
        assert error.errno in FULL
        return True
    return False
