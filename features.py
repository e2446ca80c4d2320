"""Frame descriptors of the paper's experiments: raw pixels, HOG, LBP, LBP-TOP and the gait energy image.

describe(frames, kind) turns the frames of a clip into the rows of an array (n, d), whose span is the clip's subspace.
HOG and LBP are scikit-image's (pip install "grassmann_sc_kit[image]").
"""

import importlib
import math
import warnings

import numpy as np

PATTERN_BITS = 8  # neighbours of a pixel in LBP-TOP, as in its source


def describe(frames, kind="raw", **options):
    """Descriptors (n, d) of the frames (n_frames, height, width): float64, but for raw pixels, which keep their type.

    kind : "raw", "hog", "lbp" (a row a frame), "lbp_top" (a row a sub-video), "gei" (one row); or a callable
        kind(frames, **options) that returns such an array
    options : of the function of that name below; ValueError and TypeError name what does not fit
    """
    kinds = {"raw": raw, "hog": hog, "lbp": lbp, "lbp_top": lbp_top, "gei": gait_energy_image}
    if not callable(kind) and kind not in kinds:
        raise ValueError(f"kind must be one of {', '.join(kinds)} or a callable, got {kind!r}")
    rows = np.asarray(kind(frames, **options) if callable(kind) else kinds[kind](frames, **options))
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "biuf":
        raise ValueError(f"kind must return real numbers (n, d), {kind!r} returned {rows.dtype} {rows.shape}")
    return rows


def raw(frames):
    """The pixels of each frame (n_frames, ...) in a row, (n_frames, d)."""
    frames = np.asarray(frames)
    if frames.ndim < 2 or frames.size == 0:
        raise ValueError(f"frames must have shape (n_frames, height, width) or (n_frames, d), got {frames.shape}")
    return frames.reshape(len(frames), -1)


def hog(frames, **options):
    """Histograms of oriented gradients of each frame, scikit-image's with its defaults: 9 orientations, cells of 8 x 8
    pixels, blocks of 3 x 3 cells, L2-Hys; the options are those of skimage.feature.hog. Source: Dalal and Triggs 2005.
    """
    frames, skimage = _frames(frames), _skimage("hog")
    return np.stack([skimage.hog(frame, feature_vector=True, **options).astype(np.float64, copy=False) for frame in frames])


def lbp(frames, *, n_points=8, radius=1, grid=(1, 1), method="nri_uniform"):
    """Histograms of scikit-image's local binary patterns over a grid of cells of each frame, (n_frames, rows columns bins).

    Each cell's histogram sums to 1; cells in reading order. Pixels nearer than the radius to the border are left out, because
    some of their neighbours do not exist. method "nri_uniform": n_points (n_points - 1) + 3 bins, 59 for 8 points; "uniform":
    n_points + 2; "default", "ror": 2^n_points. Points between pixels are interpolated, so that patterns withstand a linear
    rise of the grey levels; with n_points=4, radius=1 none is, and any strict rise leaves them alone. Source: Ojala et al. 2002.
    """
    frames, skimage = _frames(frames), _skimage("local_binary_pattern")
    bins = {"nri_uniform": n_points * (n_points - 1) + 3, "uniform": n_points + 2, "default": 2**n_points, "ror": 2**n_points}
    if method not in bins:
        raise ValueError(f"method must be one of {', '.join(bins)}, got {method!r}")
    (rows, columns), border = grid, math.ceil(radius)
    inner = slice(border, frames.shape[1] - border), slice(border, frames.shape[2] - border)
    if not (1 <= rows <= frames.shape[1] - 2 * border and 1 <= columns <= frames.shape[2] - 2 * border):
        raise ValueError(f"grid must have at least one and at most as many cells as pixels within the border of {border}, rows and "
                         f"columns, got {grid} for frames of {frames.shape[1:]}")
    result = np.empty((len(frames), rows * columns, bins[method]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Applying `local_binary_pattern`")  # to floating point: that is meant
        for histograms, frame in zip(result, frames):
            patterns = skimage.local_binary_pattern(frame, n_points, radius, method)[inner].astype(int)
            cells = [cell for band in np.array_split(patterns, rows) for cell in np.array_split(band, columns, axis=1)]
            for histogram, cell in zip(histograms, cells):
                histogram[:] = np.bincount(cell.ravel(), minlength=bins[method]) / cell.size
    return result.reshape(len(frames), -1)


def lbp_top(frames, *, length=None, step=None, radii=(1, 1, 1), uniform=True):
    """LBP from three orthogonal planes of each sub-video, (n_sub_videos, 3 bins): histograms on XY, XT, YT, each of sum 1.

    A voxel's pattern in a plane has bit k set where the k-th of its 8 neighbours on the plane's ellipse, at (r_a cos(2 pi k / 8),
    r_b sin(2 pi k / 8)) rounded to voxels, is at least as bright as it; voxels nearer than a radius to any face are left
    out. No grey level is interpolated: no strictly rising change of them alters a pattern.

    length, step : frames of a sub-video and from one's start to the next's (default: the whole clip; the paper's DynTex++:
        10 and 3) ; radii : in x, y and t ; uniform : 59 bins, the 58 patterns with at most two changes around the circle
        in ascending order and one for all others, instead of 256
    Source: Zhao and Pietikainen 2007.
    """
    frames = _frames(frames)
    rx, ry, rt = (_at_least_one(r, "radii") for r in radii)
    length = len(frames) if length is None else _at_least_one(length, "length")
    step = length if step is None else _at_least_one(step, "step")
    if length > len(frames):
        raise ValueError(f"length must be at most n_frames = {len(frames)}, got {length}")
    if length <= 2 * rt or frames.shape[1] <= 2 * ry or frames.shape[2] <= 2 * rx:
        raise ValueError(f"sub-videos of {length} frames of {frames.shape[1:]} pixels have no voxel {(rx, ry, rt)} from every face")
    bin_of = _uniform_bins() if uniform else np.arange(2**PATTERN_BITS)
    n_bins = bin_of.max() + 1
    planes = [((2, rx), (1, ry)), ((2, rx), (0, rt)), ((1, ry), (0, rt))]  # XY, XT, YT: (axis, radius) of cosine, of sine
    counts = np.empty((len(frames) - 2 * rt, 3, n_bins))  # of each inner frame; a sub-video's are their sums
    for t in range(len(counts)):  # a frame at a time keeps memory small
        slab = frames[t:t + 2 * rt + 1]
        for plane, axes in enumerate(planes):
            counts[t, plane] = np.bincount(bin_of[_patterns(slab, (rt, ry, rx), axes)], minlength=n_bins)
    inner = np.lib.stride_tricks.sliding_window_view(counts, length - 2 * rt, axis=0)[::step].sum(axis=-1)
    return (inner / inner.sum(axis=2, keepdims=True)).reshape(len(inner), -1)


def gait_energy_image(silhouettes, *, size=None, align=True):
    """The mean silhouette of a walk, (1, height width), entries in [0, 1]: the share of frames in which a pixel is body.

    silhouettes : (n_frames, height, width), body where > 0
    align : first cut each silhouette to its bounding box, scale it to the full height with its proportions kept and centre it on
        its mean column, as its source does; frames without body are left out. If False, the frames are averaged as they are
    size : (height, width) of the result (default: the frames'); needs align
    Source: Han and Bhanu 2006.
    """
    silhouettes = _frames(silhouettes) > 0
    if not align:
        if size is not None:
            raise ValueError(f"size needs align=True, got {size}")
        return silhouettes.mean(axis=0).reshape(1, -1)
    height, width = silhouettes.shape[1:] if size is None else (_at_least_one(side, "size") for side in size)
    bodies = [body for body in silhouettes if body.any()]
    if not bodies:
        raise ValueError(f"silhouettes must hold a pixel > 0, all {len(silhouettes)} frames are empty")
    return np.mean([_aligned(body, height, width) for body in bodies], axis=0).reshape(1, -1)


def _aligned(body, height, width):
    """A silhouette scaled to the full height, its mean column in the middle of the width."""
    rows, columns = (np.flatnonzero(body.any(axis=axis)) for axis in (1, 0))
    body = body[rows[0]:rows[-1] + 1, columns[0]:columns[-1] + 1].astype(np.float64)
    scaled_width = max(1, round(body.shape[1] * height / body.shape[0]))
    if body.shape != (height, scaled_width):
        body = _skimage("resize", "transform").resize(body, (height, scaled_width), order=1, anti_aliasing=True)
    centre = np.average(np.arange(scaled_width) + 0.5, weights=body.sum(axis=0))
    left = int(np.floor(width / 2 - centre + 0.5))  # column of the result where the body's first goes
    result, first, last = np.zeros((height, width)), max(left, 0), min(left + scaled_width, width)
    result[:, first:last] = body[:, first - left:last - left]
    return result


def _patterns(slab, radii, axes):
    """8-bit patterns of the voxels in the middle of a slab (2 rt + 1, height, width), in a plane; radii in t, y, x."""
    shape = np.array(slab.shape) - 2 * np.array(radii)
    at = lambda shift: slab[tuple(slice(r + s, r + s + n) for r, s, n in zip(radii, shift, shape))]
    centre, codes = at((0, 0, 0)), np.zeros(shape, np.uint8)
    for bit in range(PATTERN_BITS):
        shift, angle = [0, 0, 0], 2 * np.pi * bit / PATTERN_BITS
        for (axis, radius), share in zip(axes, (np.cos(angle), np.sin(angle))):
            shift[axis] = round(radius * share)
        codes |= (at(shift) >= centre).astype(np.uint8) << np.uint8(bit)
    return codes.ravel()


def _uniform_bins():
    """Bin of each 8-bit pattern: 0 to 57 for those with at most two changes around the circle, 58 for all others."""
    bits = np.arange(2**PATTERN_BITS)[:, None] >> np.arange(PATTERN_BITS) & 1
    uniform = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum())


def _frames(frames):
    frames = np.asarray(frames)
    if frames.dtype.kind not in "biuf":
        raise TypeError(f"frames must hold real numbers, got dtype {frames.dtype}")
    if frames.ndim != 3 or frames.size == 0:
        raise ValueError(f"frames must have shape (n_frames, height, width) and not be empty, got {frames.shape}")
    if not np.isfinite(frames).all():
        raise ValueError(f"frames must be finite, got {frames[~np.isfinite(frames)][0]}")
    return frames


def _at_least_one(value, name):
    if not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be made of integers, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def _skimage(function, module="feature"):
    """The module of scikit-image that holds the function."""
    try:
        return importlib.import_module(f"skimage.{module}")
    except ImportError as error:
        raise ImportError(f'{function} needs scikit-image: pip install "grassmann_sc_kit[image]"') from error
