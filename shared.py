"""What modules on frames share and the core does not need: what arguments must be,
batches, progress, optional packages.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core

__all__ = []

# Names for type hints of the modules on frames.
# sets of frames: arrays (n_i, d), or one array (n, q, d)
Sets = Sequence[ArrayLike] | np.ndarray
# k(A, B) on rows, as in kernels
Kernel = Callable[[np.ndarray, np.ndarray], np.ndarray]
# a kernel, its name, or a pair of name and number: kernels.kernel_named
AnyKernel = Kernel | str | tuple


def check_frames(frames: ArrayLike, name: str, at_most: float = np.inf) -> np.ndarray:
    """Frames (n_frames, d) or (n_frames, height, width) as finite rows (n_frames, d).

    In C order, so that another layout changes no digit, but where rows overlap, as those
    of subspaces.block_hankel; in the caller's memory and type where NumPy allows it.
    at_most: what entries are bounded by.
    """
    frames = core.plain_array(
        frames, name, "hold frames of one shape, got a ragged sequence"
    )
    if frames.ndim not in (2, 3):
        hint = ""
        if frames.ndim == 4 and frames.shape[3] in (3, 4):
            hint = f"; of colours, {name}[..., :3] @ [0.299, 0.587, 0.114] is grey"
        raise ValueError(
            f"{name} must have shape (n_frames, d) or (n_frames, height, width), got "
            f"{frames.shape}{hint}"
        )
    if frames.size == 0:
        raise ValueError(
            f"{name} must hold at least one frame of at least one pixel, got shape "
            f"{frames.shape}"
        )
    peak = core.max_abs(frames)
    if not peak < np.inf:
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(frames))[0])
        raise ValueError(
            f"{name} must be finite, got {frames[where]} in frame {where[0]}"
        )
    if peak > at_most:
        raise ValueError(f"{name} must have entries up to {at_most:g}, got {peak:g}")
    rows = frames.reshape(len(frames), -1)
    step, each = rows.strides
    overlap = each == rows.itemsize and abs(step) < each * rows.shape[1]
    return rows if overlap else np.ascontiguousarray(rows)


def check_clip(clip: ArrayLike, name: str, at_most: float = np.inf) -> np.ndarray:
    """Frames (n_frames, height, width), real and finite."""
    rows = check_frames(clip, name, at_most)
    if np.ndim(clip) != 3:
        raise ValueError(
            f"{name} must have shape (n_frames, height, width), got {np.shape(clip)}"
        )
    return rows.reshape(np.shape(clip))


def check_sequence(values: Any, name: str, of: str, needed: str | None = None) -> None:
    """TypeError unless the values are a sequence; of: what of.

    needed: what ValueError says if there is none.
    """
    listed = np.iterable(values) and hasattr(values, "__len__")
    if not listed or isinstance(values, (str, bytes, dict, set)):
        raise TypeError(
            f"{name} must be a sequence of {of}, got {type(values).__name__}"
        )
    if needed and len(values) == 0:
        raise ValueError(f"{name} must hold at least one {needed}, got none")


def check_sets(
    sets: Sets, name: str, needed: str | None = "set of frames"
) -> list[np.ndarray]:
    """Sets of frames as rows (n_i, d) of one d, entries at most LARGEST_PIXEL.

    needed: as in check_sequence.
    """
    check_sequence(sets, name, "arrays of frames", needed)
    return list(each_set(sets, name, LARGEST_PIXEL))


def each_set(sets, name, at_most=np.inf):
    """The same of any iterable, one after another."""
    d = None
    for i, frames in enumerate(sets):
        rows = check_frames(frames, f"{name}[{i}]", at_most)
        d = d or rows.shape[1]
        if rows.shape[1] != d:
            raise ValueError(
                f"frames are rows, and {name} must share one d: {name}[0] has d = {d}, "
                f"{name}[{i}] has d = {rows.shape[1]}"
            )
        yield rows


def warn_of_bases(sets):
    """Warn if all sets of frames are bases (d, p), or all weighted subspaces, p < d.

    Their columns count, but the rows of a set of frames do.
    """
    array = isinstance(sets, np.ndarray)
    listed = sets.ndim == 3 if array else isinstance(sets, (list, tuple))
    if not listed or not len(sets):
        return
    for kind, excess in [
        ("orthonormal bases", lambda squares: np.abs(squares - 1).max(initial=0)),
        ("weighted subspaces", lambda squares: abs(np.square(squares).sum() - 1)),
    ]:
        if all(_are_columns(A, excess) for A in sets):
            core.warn(
                f"sets must hold frames, which are rows, but all {len(sets)} are {kind}, as "
                f"{sets[0].shape} at index 0: give these to what takes subspaces (n, d, p), "
                "and frames that are columns transposed"
            )
            return


def _are_columns(A, excess):
    """Are the columns of A (d, p) orthogonal, p < d, with no excess of their squared
    lengths?
    """
    if type(A) not in (np.ndarray, np.memmap) or A.dtype.kind != "f" or A.ndim != 2:
        return False
    d, p = A.shape
    if p >= d:
        return False
    G = A.T @ A
    squares = np.diag(G)
    tol = 1e-3 if A.dtype == np.float32 else 1e-6
    return max(excess(squares), np.abs(G - np.diag(squares)).max(initial=0)) <= tol


def look_transposed(shapes):
    """Do arrays of these shapes (rows, columns) seem to have a channel a row?

    All have one shape, with fewer rows than columns. Frames of many features may too.
    """
    return len(shapes) > 1 and {*shapes} == {shapes[0]} and shapes[0][0] < shapes[0][1]


def warn_of_transposed(sets):
    """Warn if an array (n, n_frames, d) of sets seems to be (n, channels, time)."""
    array = isinstance(sets, np.ndarray) and sets.ndim == 3
    if array and look_transposed([frames.shape for frames in sets]):
        n, d = sets.shape[1:]
        core.warn(
            f"all sets have {n} frames of {d} features: transposed? If these are {n} "
            f"channels of {d} time steps, X.swapaxes(1, 2) has a time step a row; if "
            "they are frames, list(X) says so"
        )


def check_classes(labels, N, name="labels", owners="atoms"):
    """The classes, at least two, and the index of each of N labels among them."""
    classes, index = core.check_labels(labels, N, name, owners)
    if len(classes) < 2:
        raise ValueError(
            f"{name} must hold at least two classes, got one class: {classes.tolist()[0]!r}"
        )
    return classes, index


def check_kernel(kernel: Any) -> Kernel:
    """The kernel, if it is a callable k(A, B), not a class of them."""
    if not callable(kernel) or isinstance(kernel, type):
        raise TypeError(
            "kernel must be a callable k(A, B), such as kernels.rbf(gamma), or a name, "
            f"got {kernel!r}"
        )
    return kernel


def kernel_values(kernel, A, B):
    """Checked values k(A, B) of any kernel."""
    return shaped_array(
        kernel(A, B), "kernel(A, B)", (len(A), len(B)), ", one value a pair of rows"
    )


def shaped_array(A, name, shape, note=""):
    """A as a finite array of this shape.

    A name in the shape stands for any length >= 1, "n" for 0 too. note: what to say of
    the shape.
    """
    A = core.finite_array(A, name)
    named = {n: length for n, length in zip(shape, A.shape) if isinstance(n, str)}
    if (
        A.shape != tuple(named.get(n, n) for n in shape)
        or 0 in (named | {"n": 1}).values()
    ):
        wanted = ", ".join(map(str, shape)) + "," * (len(shape) == 1)
        raise ValueError(f"{name} must have shape ({wanted}){note}, got {A.shape}")
    return A


def batches(lengths, most):
    """Slices of consecutive sets of at most so many frames.

    A set that is longer has a slice of its own.
    """
    before = np.cumsum([0, *lengths], dtype=np.int64)  # frames before each set, and all
    batch = []
    first = 0
    while first < len(lengths):
        reached = int(np.searchsorted(before, before[first] + most, "right")) - 1
        batch.append(slice(first, max(first + 1, reached)))
        first = batch[-1].stop
    return batch


def small_products(A, B, out):
    """out = A B, in products for which BLAS starts no threads."""
    step = max(1, ONE_THREAD // B.size)
    for i in range(0, len(A), step):
        np.matmul(A[i : i + step], B, out=out[i : i + step])
    return out


def sets_in_block(sets, most):
    """Sets of frames that a thread decomposes at a time.

    Small sets stay in one thread: two would wait for Python's lock.
    """
    small = max((len(frames) * frames.size for frames in sets), default=0) < 2**21
    return max(1, len(sets)) if small else most


def natural_order(name):
    """A key that sorts names with numbers as readers do, 2 before 10.

    What is no string is its own key.
    """
    if not isinstance(name, str):
        return name
    return [
        (part.isdecimal(), int(part) if part.isdecimal() else 0, part)
        for part in re.split(r"(\d+)", name)
    ]


@contextlib.contextmanager
def progress_line(wanted, total, what, initial=0):
    """A function (steps, cost=None) that tells stderr how far a loop has come.

    On a terminal one line changes, after half a second; a log gets a line every ten
    seconds. Nothing is told if it is not wanted. total: of the steps, or None; what: is
    done in them.
    """
    if not core.check_flag(wanted, "progress") or sys.stderr is None:
        yield lambda steps, cost=None: None
        return
    terminal = sys.stderr.isatty()
    every = 0.1 if terminal else 10
    start = time.monotonic()
    due = start + max(every, 0.5)  # when the next line may be written
    done = initial
    line = ""  # nothing before the first is due

    def move(steps, cost=None):
        nonlocal due, done, line
        now = time.monotonic()
        done += steps
        if now < due and not line:
            return
        line = f"{what}: {done}"
        if total is not None:
            left = (now - start) * (total - done) / max(done - initial, 1)
            line += f" of {total}, {left:.0f} s left"
        if cost is not None:
            line += f", cost {cost:.6g}"
        if now >= due:
            due = now + every
            write(f"\r{line:<70}" if terminal else f"{line}\n")

    def write(text):
        with contextlib.suppress(OSError):  # a full disk, a terminal that is gone
            print(text, end="", file=sys.stderr, flush=True)

    try:
        yield move
    finally:
        if terminal and line:
            write(f"\r{line:<70}\n")


def import_extra(module, who, package):
    """The module, or an ImportError that says what to install for whoever needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{who}: {sys.executable} -m pip install {package}"
        ) from error


def check_integers(values: Any, name: str, count: int | None, form: str) -> list[int]:
    """The values as so many integers >= 1, None for any; form: what to ask for."""
    if not np.iterable(values) or isinstance(values, (str, bytes)):
        raise TypeError(f"{name} must be {form}, got {values!r}")
    listed = list(values)
    if count not in (None, len(listed)):
        raise ValueError(f"{name} must be {form}, got {values!r}")
    return [core.check_integer(value, name, 1) for value in listed]


LARGEST_PIXEL = 1e140  # of frames whose squares are summed


def float_type(*arrays):
    """float32 if all arrays are of it, else float64."""
    return np.float32 if all(A.dtype.type is np.float32 for A in arrays) else np.float64


ONE_THREAD = 2**18  # multiplications of a product up to which BLAS starts no threads


def joined(parts):
    """Arrays (n_i, d, r_i) as one, with columns of zeros where r_i is not the largest."""
    r = max(A.shape[2] for A in parts)
    wide = [
        A if A.shape[2] == r else np.pad(A, ((0, 0), (0, 0), (0, r - A.shape[2])))
        for A in parts
    ]
    return np.concatenate(wide)


def are_bases(X):
    """Are checked X (n, d, p) bases, not weighted subspaces, which p = 1 may be too?"""
    return core.squared_norm(X) == X.shape[2]
