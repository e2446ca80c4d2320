"""Frames to points: subspaces of image sets and of videos, and reading the frames from files.

A set of frames is an array with a frame a row, (n_frames, d) or (n_frames, height, width); its subspace is a (d, p)
matrix with orthonormal columns. After Harandi et al. 2015, "Modeling of Appearance" (SVD, block Hankel matrices) and
"Modeling of Dynamics" (ARMA). Shared options of all functions that make subspaces:

center : remove the mean frame first (which costs one independent frame)
unit_variance : remove it and divide each pixel by its standard deviation over the frames, as in the paper's traffic
    experiment; a constant pixel becomes 0 (one factor for a whole clip would change no subspace)
rank : when fewer directions than asked for are independent: "raise" a ValueError, "warn" and pad, or "pad": complete the
    basis by directions orthogonal to the frames, pseudo-random so that padded sets do not look alike. No direction
    at all is always an error.

float32 frames give float32 results, all others float64; the work is done in float64. A singular value counts towards
the rank when it exceeds 10 eps sqrt(n_frames d) max|F|, eps being that of the result's dtype.
"""

import itertools
import math
import operator
import re
import warnings
import zipfile
import zlib
from pathlib import Path

import numpy as np

import grassmann_sc as core

CONSTANT = 1e3  # a pixel whose standard deviation is below so many eps max|F| does not vary
STABLE_RADIUS = 1 - 2.0**-30  # spectral radius to which `stabilize` scales; near 1, so that it changes next to nothing there
IMAGES = {".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
ARRAYS = {".npy", ".npz", ".mat"}


# ---------------------------------------------------------------------------- frames to subspaces


def from_image_set(frames, p, *, center=False, unit_variance=False, rank="raise"):
    """Basis (d, p) of the subspace that best fits the frames, leading direction first.

    The p leading left singular vectors of F = [f_1, ..., f_n], whose columns are the vectorised frames: with
    F = U S V^T, B = U[:, :p] minimises sum_i ||f_i - B B^T f_i||^2. A column's sign is arbitrary.

    frames : (n_frames, d) or (n_frames, height, width), real and finite; d = height * width
    p : 1 <= p <= d; there must be p independent frames, see rank at the head of this module, and center, unit_variance
    Raises TypeError and ValueError on any other input.
    """
    return _image_set(frames, _check_size(p, "p"), (center, unit_variance), _check_policy(rank), "frames")


def from_sets(sets, p, *, center=False, unit_variance=False, rank="raise"):
    """Bases (n, d, p) of n image sets: from_image_set on each, in parallel; the errors name the set.

    sets : iterable of at least one set of frames, each of its own length, all of the same d; or one array
        (n, n_frames, d) or (n, n_frames, height, width). A generator is read a few sets at a time.
    """
    p, rank = _check_size(p, "p"), _check_policy(rank)
    return _stack(sets, lambda frames, name: _image_set(frames, p, (center, unit_variance), rank, name))


def from_video(frames, n_states, n_blocks, stabilize=False, *, center=False, unit_variance=False, rank="raise"):
    """Orthonormal basis (n_blocks d, n_states) of the observability matrix [C; CA; ...; CA^(n_blocks-1)] of arma(frames).

    C has orthonormal columns, so if [I; A; ...; A^(n_blocks-1)] = Q R with blocks Q_k, then the blocks C Q_k are the
    orthonormal factor of the observability matrix: no factorisation of the tall matrix is needed. With n_blocks = 1
    the dynamics play no part: the basis is that of from_image_set. The paper's eq. (ARMA_obs) and the text after it.

    frames : in order of time, (n_frames, d) or (n_frames, height, width); n_states <= d; stabilize : as in arma
    """
    sizes = _check_size(n_states, "n_states"), _check_size(n_blocks, "n_blocks")
    return _video(frames, *sizes, stabilize, (center, unit_variance), _check_policy(rank), "frames")


def from_videos(videos, n_states, n_blocks, stabilize=False, *, center=False, unit_variance=False, rank="raise"):
    """Bases (n, n_blocks d, n_states) of n videos: from_video on each, in parallel, as from_sets does."""
    sizes, rank = (_check_size(n_states, "n_states"), _check_size(n_blocks, "n_blocks")), _check_policy(rank)
    return _stack(videos, lambda frames, name: _video(frames, *sizes, stabilize, (center, unit_variance), rank, name))


def block_hankel(frames, n_blocks):
    """Frames with their successors, (n_frames - n_blocks + 1, n_blocks d): row i is f_i, f_(i+1), ..., f_(i+n_blocks-1).

    The transposed block Hankel matrix of the frames (n_frames, d) or (n_frames, height, width): a set of frames whose
    subspace, unlike that of the frames, depends on their order. A read-only view: no entry is stored twice.
    """
    frames, n_blocks = _check_frames(frames, "frames"), _check_size(n_blocks, "n_blocks")
    n, d = frames.shape
    if n_blocks > n:
        raise ValueError(f"n_blocks must be at most n_frames = {n}, got {n_blocks}")
    return np.lib.stride_tricks.sliding_window_view(frames.reshape(-1), n_blocks * d)[::d]


def arma(frames, n_states, *, stabilize=False, center=False, unit_variance=False, rank="raise"):
    """Transition A (n_states, n_states) and measurement C (d, n_states) of f(t) = C z(t) + w(t), z(t+1) = A z(t) + v(t).

    The paper's closed form: F = U S V^T, C = U, A = S V^T D1 V (V^T D2 V)^-1 S^-1 for the n_states leading singular
    triplets, which is the least-squares solution of A z(t) = z(t+1) for the states S V^T, and is computed as such.
    Needs n_states + 1 frames; under rank = "warn" or "pad" the solution of least norm stands in where A is not
    determined, and is 0 on padded directions.

    frames : in order of time, (n_frames, d) or (n_frames, height, width); n_states <= d
    stabilize : scale A to a spectral radius just below 1 if it is 1 or more, so that its powers stay bounded
    """
    n_states, rank = _check_size(n_states, "n_states"), _check_policy(rank)
    frames = _check_frames(frames, "frames")
    A, C = _arma(frames, n_states, stabilize, (center, unit_variance), rank, "frames")
    return A.astype(_dtype(frames)), C.astype(_dtype(frames))


def observability(A, C, n_blocks):
    """Finite observability matrix [C; CA; ...; CA^(n_blocks-1)], (n_blocks d, n), of A (n, n), C (d, n)."""
    A, C, n_blocks = core._finite(A, "A"), core._finite(C, "C"), _check_size(n_blocks, "n_blocks")
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise ValueError(f"A must be a square matrix (n, n) with n >= 1, got shape {A.shape}")
    if C.ndim != 2 or C.shape[1] != len(A) or len(C) == 0:
        raise ValueError(f"C must have shape (d, {len(A)}), as many columns as A, got {C.shape}")
    powers = _powers(A.astype(np.float64), n_blocks).reshape(-1, len(A)).astype(np.result_type(A, C))
    return np.concatenate([C @ power for power in powers.reshape(n_blocks, *A.shape)])


def _image_set(frames, p, normal, rank, name):
    frames = _check_frames(frames, name)
    return _leading_directions(frames, p, normal, rank, name, "p")[0].astype(_dtype(frames))


def _video(frames, n_states, n_blocks, stabilize, normal, rank, name):
    frames = _check_frames(frames, name)
    if n_blocks == 1:
        return _leading_directions(frames, n_states, normal, rank, name, "n_states")[0].astype(_dtype(frames))
    A, C = _arma(frames, n_states, stabilize, normal, rank, name)
    Q = _positive_qr(_powers(A, n_blocks).reshape(-1, n_states)).reshape(n_blocks, n_states, n_states)
    basis = np.empty((n_blocks, *C.shape), _dtype(frames))
    for block, Q_k in zip(basis, Q):
        block[...] = C @ Q_k
    return basis.reshape(-1, n_states)


def _arma(frames, n_states, stabilize, normal, rank, name):
    """A and C in float64."""
    C, s, Vt = _leading_directions(frames, n_states, normal, rank, name, "n_states")
    r = int(np.count_nonzero(s))  # padded directions have no dynamics
    before, after = Vt[:r, :-1].T, Vt[:r, 1:].T  # (n_frames - 1, r), of columns that are orthonormal but for one row
    B, _, determined, _ = np.linalg.lstsq(before, after, rcond=1e3 * np.finfo(float).eps) if len(before) else (0, 0, 0, 0)
    if determined < r:
        _lack(rank, f"{name} must determine A (n_states = {n_states}) by at least n_states + 1 frames: the first "
                    f"{len(frames) - 1} of {len(frames)} have {determined} independent states of {r}")
    A = np.zeros((n_states, n_states))
    A[:r, :r] = s[:r, None] * np.transpose(B) / s[:r] if len(before) else 0
    radius = np.abs(np.linalg.eigvals(A)).max() if stabilize else 0
    return A * (STABLE_RADIUS / radius if radius >= 1 else 1), C


def _powers(A, n_blocks):
    """A^0, ..., A^(n_blocks - 1), (n_blocks, n, n)."""
    powers = np.empty((n_blocks, *A.shape))
    powers[0] = np.eye(len(A))
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(1, n_blocks):
            powers[k] = powers[k - 1] @ A
    if not np.isfinite(powers).all():
        radius = np.abs(np.linalg.eigvals(A)).max()
        raise ValueError(f"A must have powers up to {n_blocks - 1} within range, got spectral radius {radius:.4g}; "
                         "stabilize=True scales an estimate back")
    return powers


def _stack(sets, basis_of):
    """basis_of(frames, name) of each set, stacked; few sets are held at a time, a thread works on one."""
    sets, bases, d = iter(sets), [], None
    while chunk := list(itertools.islice(sets, 2 * core.numba.config.NUMBA_NUM_THREADS)):
        start = len(bases)
        if d is None:
            d = _check_frames(chunk[0], "sets[0]").shape[1]

        def job(block):
            i, frames = start + block.start, _check_frames(chunk[block.start], f"sets[{start + block.start}]")
            if frames.shape[1] != d:
                raise ValueError(f"sets must share one d: sets[0] has d = {d}, sets[{i}] has d = {frames.shape[1]}")
            return basis_of(frames, f"sets[{i}]")

        bases += core._in_threads(job, len(chunk), 1, blas=True)
    if not bases:
        raise ValueError("sets must hold at least one set of frames, got none")
    return np.stack(bases)


def _leading_directions(frames, p, normal, rank, name, symbol):
    """U (d, p), s (p,), V^T (p, n): the p leading singular triplets of frames^T (d, n), in float64, s up to a power of 2.

    normal: (center, unit_variance). Directions that the rank policy added have s = 0 and rows of zeros in V^T.
    """
    n, d = frames.shape
    if p > d:
        raise ValueError(f"{symbol} must be at most d = {d}, the number of pixels in {name}, got {p}")
    if n < p and rank == "raise":
        _lack(rank, f"{name} must hold {symbol} = {p} independent frames, got {n} frame{'s' * (n > 1)}")
    peak = _peak(frames)
    unit = 2.0 ** -max(math.frexp(peak)[1], -1000)  # exact, keeps the squares of 1e200 and 1e-200 in range
    # A Gram matrix would square the condition number and lose every direction below 1e-8 of the first. The triangle R
    # of F = QR has F's singular values and right vectors to full accuracy; taken by blocks of pixels it costs about four
    # Gram matrices, and 0.6 to 0.9 of LAPACK's SVD (d = 10,000 to 100,000). The blocks join as a tree because rounding
    # errors grow along a chain. Blocks of rows * n <= 8192 stay in cache and below the size from which OpenBLAS starts
    # threads, which here cost more than they bring.
    step = 8192 // n if n <= 64 else 16 * n  # rows
    eps = np.finfo(_dtype(frames)).eps
    blocks = lambda: _pixel_blocks(frames, step, unit, normal, CONSTANT * eps * peak * unit)
    Rs, gain = [], 1.0  # gain: the factor by which unit variance enlarges rounding errors
    for _, block, factor in blocks():
        Rs.append(np.linalg.qr(block, mode="r"))
        gain = max(gain, factor)
    while len(Rs) > 1:
        Rs = [np.linalg.qr(np.concatenate(Rs[i:i + step // n]), mode="r") for i in range(0, len(Rs), step // n)]
    s, Vt = np.linalg.svd(Rs[0], full_matrices=False)[1:]  # (min(n, d),), (min(n, d), n)
    tol = 10 * eps * math.sqrt(n * d) * peak * unit * gain
    r = min(p, int(np.sum(s > tol)))
    if r < p:
        beside = " beside their mean" if any(normal) else ""
        _lack(rank if r else "raise", f"{name} must hold {symbol} = {p} independent frames{beside}: got numerical rank {r} "
                                      f"(singular values above {tol / unit:.2g})")
    basis = np.empty((d, p))
    for rows, block, _ in blocks():
        basis[rows, :r] = block @ Vt[:r].T
    if r < p:  # what the seed depends on is the same for any order of the frames
        seed = zlib.crc32((s[:r] / s[0]).astype(np.float16).tobytes())
        basis[:, r:] = np.random.default_rng([seed, d]).standard_normal((d, p - r))
        s, Vt = np.pad(s[:r], (0, p - r)), np.pad(Vt[:r], ((0, p - r), (0, 0)))
    return _positive_qr(basis), s[:p], Vt[:p]  # orthogonal columns but for rounding, so qr keeps their order


def _positive_qr(A):
    """The orthonormal factor of A whose triangle has a positive diagonal: orthonormal columns stay as they are."""
    Q, R = np.linalg.qr(A)
    return Q * np.where(R.diagonal() < 0, -1.0, 1.0)


def _pixel_blocks(frames, step, unit, normal, constant):
    """Slices of pixels, their rows (step, n) of frames^T * unit in float64, normalised, and the largest factor used."""
    center, unit_variance = normal
    for start in range(0, frames.shape[1], step):
        rows, factor = slice(start, start + step), np.ones(1)
        block = np.multiply(frames[:, rows], unit, dtype=float).T
        if center or unit_variance:
            block = block - block.mean(axis=1, keepdims=True)
        if unit_variance:
            deviation = np.sqrt(np.mean(block**2, axis=1, keepdims=True))
            factor = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation > constant)
            block *= factor
        yield rows, block, factor.max()


def _lack(policy, message):
    """Directions are missing: what the rank policy says."""
    if policy == "raise":
        raise ValueError(message)
    if policy == "warn":
        warnings.warn(message + "; the rest was padded", stacklevel=2)


# ---------------------------------------------------------------------------- frames from files


def read_frames(path, *, grey=True, size=None, every=1, at_most=None, evenly=None, key=None, frame_axis=0):
    """Frames of a clip, (n_frames, height, width), or (n_frames, d) where an array holds feature vectors.

    path : a folder of images, in the natural order of their names (2 before 10); an image file of one or more frames;
        an .npy, .npz or .mat file with an array (n_frames, d), (n_frames, height, width[, 3 or 4]); anything else is
        decoded as a video (needs imageio with PyAV: pip install "grassmann_sc_kit[video]")
    grey : luma 0.299 R + 0.587 G + 0.114 B; if False, colour frames stay (n_frames, height, width, 3)
    size : (height, width) to resize to, bilinear with antialiasing; bytes stay bytes, other types become float32
    every, at_most, evenly : every k-th frame, of these the first n or n at even steps from the first to the last
    key, frame_axis : the name of the array in an .npz or .mat file that holds several; its axis of frames (MATLAB's
        height x width x n_frames: -1)

    FileNotFoundError, ImportError where a reader is missing; ValueError that names the file, and the frame if there is one,
    if it is empty, cannot be read or decoded, or its frames differ in size.
    """
    path, size = Path(path), None if size is None else _image_size(size)
    if at_most is not None and evenly is not None:
        raise ValueError(f"give at_most or evenly, not both, got {at_most} and {evenly}")
    chosen = [None if k is None else _check_size(k, name) for k, name in
              ((every, "every"), (at_most, "at_most"), (evenly, "evenly"))]
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    pick = lambda items: _pick(items, *chosen)
    prepare = lambda frame: _prepared(frame, grey, size)
    if path.suffix.lower() in ARRAYS and path.is_file():
        frames = _frames_of_array(path, key, frame_axis, pick, prepare)
    elif path.is_dir():
        frames = _frames_of_folder(path, pick, prepare)
    else:
        decode = _image_frames if path.suffix.lower() in IMAGES else _video_frames
        frames = list(pick(map(prepare, decode(path, grey))))
    if not frames:
        raise ValueError(f"{path}: holds no frame")
    for i, frame in enumerate(frames):
        if frame.shape != frames[0].shape:
            raise ValueError(f"{path}: frames must have one size, frame 0 has {frames[0].shape} and frame {i} {frame.shape}; "
                             "size=(height, width) resizes them")
    return np.stack(frames)


def _pick(items, every, at_most, evenly):
    items = itertools.islice(items, 0, None if at_most is None else every * at_most, every)
    if evenly is None:
        return items
    items = list(items)
    return [items[i] for i in np.linspace(0, len(items) - 1, evenly).round().astype(int)] if items else []


def _frames_of_folder(path, pick, prepare):
    files = [file for file in path.iterdir() if file.suffix.lower() in IMAGES and not file.name.startswith(".")]
    if not files:
        raise ValueError(f"{path}: holds no image ({', '.join(sorted(IMAGES))})")
    natural = lambda file: [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", file.name)]
    frames, first = [], None
    for i, file in enumerate(pick(sorted(files, key=natural))):
        frame = prepare(next(_image_frames(file, frame=i)))
        if first is None:
            first = file.name, frame.shape
        if frame.shape != first[1]:
            raise ValueError(f"{file}: frames must have one size, frame {i} has {frame.shape} and {first[0]} {first[1]}; "
                             "size=(height, width) resizes them")
        frames.append(frame)
    return frames


def _image_frames(file, grey=True, frame=0):
    """The frames of an image file, as they are stored."""
    from PIL import Image, ImageSequence  # matplotlib brings it
    try:
        with Image.open(file) as image:
            for page in ImageSequence.Iterator(image):
                deep = page.mode in ("L", "F") or page.mode.startswith("I")
                yield np.array(page if deep else page.convert("L" if page.mode in ("1", "LA", "La") else "RGB"))
                frame += 1
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"{file}: frame {frame} cannot be read as an image: {error}") from error


def _video_frames(path, grey):
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    try:
        import av, imageio.v3  # noqa: E401
    except ImportError as error:
        raise ImportError(f'{path}: videos need imageio with PyAV: pip install "grassmann_sc_kit[video]"') from error
    frame = 0
    try:
        with imageio.v3.imopen(path, "r", plugin="pyav") as video:
            for image in video.iter(format="gray" if grey else "rgb24"):
                yield image
                frame += 1
            promised = video.properties(index=...).n_images  # 0 where the container does not say; some are a few frames off
            if frame < 0.9 * promised:
                raise EOFError(f"the file is cut off, it announces {promised} frames")
    except Exception as error:  # whatever a decoder raises on a stranger's file
        raise ValueError(f"{path}: frame {frame} cannot be decoded as a video: {error}") from error


def _frames_of_array(path, key, frame_axis, pick, prepare):
    try:
        if path.suffix.lower() == ".npy":
            frames = np.load(path, mmap_mode="r", allow_pickle=False)
        elif path.suffix.lower() == ".npz":
            with np.load(path, allow_pickle=False) as file:
                frames = file[_array_name(path, file.files, key)]
        else:
            frames = _mat_array(path, key)
    except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: cannot be read: {error}") from error
    if frames.dtype.kind not in "biuf" or frames.ndim not in (2, 3, 4) or frames.ndim == 4 and frames.shape[3] not in (1, 3, 4):
        raise ValueError(f"{path}: frames must be real numbers (n_frames, d), (n_frames, height, width) or "
                         f"(n_frames, height, width, 1, 3 or 4), got {frames.dtype} {frames.shape}")
    frames = np.moveaxis(frames, frame_axis, 0)
    return [prepare(np.array(frames[i])) for i in pick(range(len(frames)))]


def _mat_array(path, key):
    import scipy.io
    try:
        names = [name for name, _, _ in scipy.io.whosmat(path)]
        return np.asarray(scipy.io.loadmat(path)[_array_name(path, names, key)])
    except NotImplementedError:
        raise ValueError("files of MATLAB 7.3 (HDF5) are not supported, save it with -v7") from None


def _array_name(path, names, key):
    if key is None and len(names) == 1:
        return names[0]
    if (key or "frames") not in names:
        raise ValueError(f"key must name one of its arrays, {', '.join(names) or 'there are none'}; got {key!r}")
    return key or "frames"


def _prepared(frame, grey, size):
    """A frame (height, width[, channels]) or (d,), grey and resized as asked for."""
    if frame.ndim == 3 and frame.shape[2] == 4:
        frame = frame[..., :3]
    if frame.ndim == 3 and frame.shape[2] == 1:
        frame = frame[..., 0]
    if grey and frame.ndim == 3:
        luma = frame @ np.array([0.299, 0.587, 0.114])
        frame = luma.astype(frame.dtype) if frame.dtype.kind == "f" else np.rint(luma).astype(frame.dtype)
    if size is None or frame.ndim == 1 or frame.shape[:2] == size:
        return frame
    from PIL import Image
    frame = frame if frame.dtype == np.uint8 else frame.astype(np.float32)
    channels = [np.array(Image.fromarray(channel).resize(size[::-1], Image.Resampling.BILINEAR))
                for channel in (np.moveaxis(frame, 2, 0).copy() if frame.ndim == 3 else [frame])]
    return np.stack(channels, axis=-1) if frame.ndim == 3 else channels[0]


# ---------------------------------------------------------------------------- checks at the door


def _image_size(size):
    try:
        height, width = size
    except (TypeError, ValueError):
        raise TypeError(f"size must be (height, width), got {size!r}") from None
    return _check_size(height, "size"), _check_size(width, "size")


def _peak(frames):
    """max |frames| as a float, NaN if any is; makes no copy."""
    return max(float(frames.max()), -float(frames.min()))


def _dtype(frames):
    return np.float32 if frames.dtype.type is np.float32 else np.float64


def _check_size(value, name):
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return value


def _check_policy(rank):
    if rank not in ("raise", "warn", "pad"):
        raise ValueError(f"rank must be 'raise', 'warn' or 'pad', got {rank!r}")
    return rank


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
