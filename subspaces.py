"""Frames to points: the subspace of an image set.

A set of frames is an array with a frame a row, (n_frames, d) or (n_frames, height, width); its subspace is a (d, p)
matrix with orthonormal columns (Harandi et al. 2015, "Modeling of Appearance"). This file can be copied alone.
"""

import math
import operator

import numpy as np


def from_image_set(frames, p, *, center=False):
    """Basis (d, p) of the subspace that best fits the frames, leading direction first.

    The p leading left singular vectors of F = [f_1, ..., f_n], whose columns are the vectorised frames: with
    F = U S V^T, B = U[:, :p] minimises sum_i ||f_i - B B^T f_i||^2. A column's sign is arbitrary.

    frames : (n_frames, d) or (n_frames, height, width), real and finite; d = height * width
    p : 1 <= p <= d; there must be p independent frames
    center : remove the mean frame first (which costs one independent frame)

    float32 frames give a float32 basis, all others float64; the work is done in float64. A singular value counts
    towards the rank when it exceeds 10 eps sqrt(n_frames d) max|F|, eps being that of the basis' dtype.
    Raises TypeError and ValueError on any other input and when the rank is below p.
    """
    frames, p = _check_frames(frames, "frames"), _check_p(p)
    _check_size(frames, p, "frames")
    return _leading_directions(frames, p, center, "frames")


def from_sets(sets, p, *, center=False):
    """Bases (n, d, p) of n image sets: from_image_set on each; the errors name the set.

    sets : sequence of at least one set of frames, each of its own length, all of the same d; or one array
        (n, n_frames, d) or (n, n_frames, height, width)
    """
    p = _check_p(p)
    sets = [_check_frames(frames, f"sets[{i}]") for i, frames in enumerate(sets)]
    if not sets:
        raise ValueError("sets must hold at least one set of frames, got none")
    d = sets[0].shape[1]
    for i, frames in enumerate(sets):
        if frames.shape[1] != d:
            raise ValueError(f"sets must share one d: sets[0] has d = {d}, sets[{i}] has d = {frames.shape[1]}")
        _check_size(frames, p, f"sets[{i}]")
    return np.stack([_leading_directions(frames, p, center, f"sets[{i}]") for i, frames in enumerate(sets)])


def _leading_directions(frames, p, center, name):
    """The p leading left singular vectors of frames^T (d, n)."""
    n, d = frames.shape
    peak = _peak(frames)
    unit = 2.0 ** -max(math.frexp(peak)[1], -1000)  # exact, keeps the squares of 1e200 and 1e-200 in range
    # A Gram matrix would square the condition number and lose every direction below 1e-8 of the first. The triangle R
    # of F = QR has F's singular values and right vectors to full accuracy; taken by blocks of pixels it costs about four
    # Gram matrices, and 0.6 to 0.9 of LAPACK's SVD (d = 10,000 to 100,000). The blocks join as a tree because rounding
    # errors grow along a chain. Blocks of rows * n <= 8192 stay in cache and below the size from which OpenBLAS starts
    # threads, which here cost more than they bring.
    step = 8192 // n if n <= 64 else 16 * n  # rows
    Rs = [np.linalg.qr(block, mode="r") for _, block in _pixel_blocks(frames, step, unit, center)]
    while len(Rs) > 1:
        Rs = [np.linalg.qr(np.concatenate(Rs[i:i + step // n]), mode="r") for i in range(0, len(Rs), step // n)]
    s, Vt = np.linalg.svd(Rs[0], full_matrices=False)[1:]  # (min(n, d),), (min(n, d), n)
    dtype = np.float32 if frames.dtype.type is np.float32 else np.float64
    tol = 10 * np.finfo(dtype).eps * math.sqrt(n * d) * peak * unit
    rank = int(np.sum(s > tol))
    if rank < p:
        raise ValueError(f"{name} must hold p = {p} independent frames{' beside their mean' if center else ''}: "
                         f"got numerical rank {rank} (singular values above {tol / unit:.2g})")
    basis = np.empty((d, p))
    for rows, block in _pixel_blocks(frames, step, unit, center):
        basis[rows] = block @ Vt[:p].T
    return np.linalg.qr(basis)[0].astype(dtype)  # orthogonal columns but for rounding, so qr keeps their order


def _pixel_blocks(frames, step, unit, center):
    """Slices of pixels with their rows (step, n) of frames^T * unit in float64, less the mean frame if asked."""
    for start in range(0, frames.shape[1], step):
        rows = slice(start, start + step)
        block = np.multiply(frames[:, rows], unit, dtype=float).T
        yield rows, block - block.mean(axis=1, keepdims=True) if center else block


def _peak(frames):
    """max |frames| as a float, NaN if any is; makes no copy."""
    return max(float(frames.max()), -float(frames.min()))


def _check_p(p):
    try:
        p = operator.index(p)
    except TypeError:
        raise TypeError(f"p must be an integer, got {p!r}") from None
    if p < 1:
        raise ValueError(f"p must be at least 1, got {p}")
    return p


def _check_frames(frames, name):
    """The frames as (n_frames, d), real and finite, in the caller's memory where NumPy allows it."""
    try:
        frames = np.asarray(frames)
    except ValueError:
        raise ValueError(f"{name} must hold frames of one shape, got a ragged sequence") from None
    if frames.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {frames.dtype}")
    if frames.ndim not in (2, 3):
        raise ValueError(f"{name} must have shape (n_frames, d) or (n_frames, height, width), got {frames.shape}")
    if frames.size == 0:
        raise ValueError(f"{name} must hold at least one frame of at least one pixel, got shape {frames.shape}")
    if not math.isfinite(_peak(frames)):
        where = tuple(np.argwhere(~np.isfinite(frames))[0])
        raise ValueError(f"{name} must be finite, got {frames[where]} in frame {where[0]}")
    return frames.reshape(len(frames), -1)  # (n_frames, d)


def _check_size(frames, p, name):
    n, d = frames.shape
    if p > d:
        raise ValueError(f"p must be at most d = {d}, the number of pixels in {name}, got {p}")
    if n < p:
        raise ValueError(f"{name} must hold p = {p} independent frames, got {n} frame{'s' * (n > 1)}")
