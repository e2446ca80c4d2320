"""Dynamic textures: DFS, dynamic fractal spectra, and DL-Pegasos, a learned
combination of distances.

A clip is (n_frames, height, width), axes t, y, x. Work is done in float64.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import uniform_filter

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "exponent_edges",
    "fractal_spectrum",
    "distance_weights",
]

MEASURES = ("intensity", "gradient", "flow", "laplacian", "curvature")
PARTS = ("volume", "slices along t", "slices along y", "slices along x")
# share of the root mean square spatial gradient below which there is no normal flow
FLAT = 0.01
RADII = (1, 2, 3, 4)
MOST_LEVELS = 62  # bits of an integer
LARGEST_BOX = 16
CENTRAL = 1, 99  # percentiles of the exponents that levels span

BATCH = 1000  # triplets of a step of distance_weights
CHECKS = 50  # of the objective of distance_weights
MOST_TRIPLETS = 2**20


# ------------------------------------------------------------- dynamic fractal spectrum


def fractal_spectrum(
    clip: ArrayLike, edges: ArrayLike, *, radii: Sequence[int] = RADII
) -> np.ndarray:
    """Dynamic fractal spectrum of a clip.

    Box-counting dimensions (4, 5, n_levels) of level sets of its local exponents. For
    each of five measures (fractal_measures) mu, the exponent alpha of a voxel is the
    slope of ln mu(B_r) over ln(2 r + 1), with B_r the cube of side 2 r + 1 around it, r
    in radii. The voxels whose alpha is in one of n_levels intervals make a level set,
    whose dimension is that of box_dimensions. Part 0 of the spectrum is volumetric,
    cubes and boxes in 3-D; parts 1 to 3 are multi-slice, squares and boxes within the
    slices along t, y, x, averaged over the slices.

    edges (4, 5, n_levels + 1): of the intervals, ascending, as exponent_edges gives
    them; what lies beyond belongs to the first or last level. An exponent needs a
    positive measure around the voxel, and the cubes to fit into the clip; an empty level
    set has dimension 0. A factor of all intensities alters no exponent, and an affine
    change of positive slope only those of the intensity itself. Source: Xu, Quan, Ling
    and Ji, ICCV 2011.

    ValueError for a clip that is constant or smaller than the largest cube, radii
    or edges that do not ascend, or more than 62 levels.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import textures
    >>> ramp = np.arange(12.0)[:, None, None] + np.arange(144.0).reshape(12, 12)
    >>> edges = np.broadcast_to(np.linspace(1, 4, 11), (4, 5, 11))
    >>> spectrum = textures.fractal_spectrum(ramp, edges, radii=(1, 2))
    >>> spectrum[:, 1].max(axis=1).round(6)  # its gradient is 1 all over: one level has all voxels
    array([3., 2., 2., 2.])
    """
    radii = check_ascending(radii, "radii")
    clip = check_texture(clip, "clip", radii)
    edges = shared.shaped_array(
        edges, "edges", (len(PARTS), len(MEASURES), "n_levels + 1")
    )
    if not (np.diff(edges, axis=2) > 0).all():
        first = np.argwhere(np.diff(edges, axis=2) <= 0)[0]
        raise ValueError(
            "edges must ascend along their last axis, got "
            f"{edges[tuple(first[:2])].tolist()} at {tuple(first[:2].tolist())}"
        )
    n_levels = edges.shape[2] - 1
    core.check_integer(n_levels, "the levels of edges", 1, MOST_LEVELS)
    spectrum = np.zeros((len(PARTS), len(MEASURES), n_levels))
    for m, measure in enumerate(fractal_measures(clip)):
        for part in range(len(PARTS)):
            alpha = fractal_exponents(measure, part, radii)
            levels = np.searchsorted(edges[part, m, 1:-1], alpha, side="right")
            levels[np.isnan(alpha)] = -1  # voxels that have no exponent
            spectrum[part, m] = _mean_dimensions(levels, part, n_levels)
    return spectrum


def exponent_edges(
    clips: shared.Sets, n_levels: int = 10, *, radii: Sequence[int] = RADII
) -> np.ndarray:
    """Edges (4, 5, n_levels + 1) of levels of exponents, for fractal_spectrum.

    They divide evenly what lies between the least first and the greatest 99th
    percentile over clips; from 0 to 1 where no clip has an exponent.

    ValueError for no clips, n_levels outside 1..62, or where fractal_spectrum raises
    it, with the clip.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import textures
    >>> ramp = np.arange(12.0)[:, None, None] + np.arange(144.0).reshape(12, 12)
    >>> textures.exponent_edges([ramp], 1)[:, 1].round(6)  # its gradient is 1 all over
    array([[3., 3.],
           [2., 2.],
           [2., 2.],
           [2., 2.]])
    """
    n_levels = core.check_integer(n_levels, "n_levels", 1, MOST_LEVELS)
    radii = check_ascending(radii, "radii")
    shared.check_sequence(clips, "clips", "clips", "clip")
    spans = [exponent_spans(clip, f"clips[{i}]", radii) for i, clip in enumerate(clips)]
    return edges_of_spans(spans, n_levels)


def exponent_spans(clip, name, radii):
    """CENTRAL percentiles (4, 5, 2) of a clip's exponents, NaN where it has none."""
    spans = np.full((len(PARTS), len(MEASURES), 2), np.nan)
    for m, measure in enumerate(fractal_measures(check_texture(clip, name, radii))):
        for part in range(len(PARTS)):
            alpha = fractal_exponents(measure, part, radii)
            alpha = alpha[~np.isnan(alpha)]
            if alpha.size:
                spans[part, m] = np.percentile(alpha, CENTRAL)
    return spans


def edges_of_spans(spans, n_levels):
    """Edges (4, 5, n_levels + 1) of levels that divide all exponent_spans."""
    spans = np.stack(spans)
    low = np.nan_to_num(np.fmin.reduce(spans[..., 0]), nan=0)
    high = np.nan_to_num(np.fmax.reduce(spans[..., 1]), nan=1)
    return np.linspace(low, np.maximum(high, low + 1e-9), n_levels + 1, axis=2)


# ------------------------------------------------------------- exponents and level sets


def fractal_measures(f):
    """Yield five measures (n_frames, height, width) >= 0 of a checked clip f.

    "intensity" f less its least value if that is negative; "gradient" |f_t|, the
    temporal change of brightness; "flow" |f_t| / ||(f_x, f_y)||, the speed along the
    normal of an edge, 0 where the frame is flat (below 1 % of the root mean square
    gradient); "laplacian" |f_xx + f_yy|; "curvature", the largest |eigenvalue| of the
    Hessian of the frame. By central differences.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import textures
    >>> t, y, x = np.indices((4, 4, 4))
    >>> measures = textures.fractal_measures(2.0 * t + x)
    >>> [float(measure.mean()) for measure in measures]  # an edge of speed 2
    [4.5, 2.0, 2.0, 0.0, 0.0]
    """
    yield f - min(f.min(), 0)
    change = np.abs(np.gradient(f, axis=0))
    yield change
    f_y, f_x = np.gradient(f, axis=(1, 2))
    slope = np.hypot(f_y, f_x)
    steep = slope > FLAT * np.sqrt(np.square(slope).mean())
    yield np.divide(change, slope, out=np.zeros_like(f), where=steep)
    f_yy, f_yx = np.gradient(f_y, axis=(1, 2))
    f_xx = np.gradient(f_x, axis=2)
    half = (f_yy + f_xx) / 2
    yield 2 * np.abs(half)
    yield np.abs(half) + np.hypot((f_yy - f_xx) / 2, f_yx)


def fractal_exponents(measure, part=0, radii=RADII):
    """Return slopes of ln mu(B_r) over ln(2 r + 1), at voxels whose largest cube fits.

    NaN where the measure of the smallest is 0. part: 0, cubes in 3-D; 1, 2, 3, squares
    in slices along t, y, x.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import textures
    >>> textures.fractal_exponents(np.ones((9, 9, 9))).round(6)
    array([[[3.]]])
    """
    axes = [axis for axis in range(3) if axis != part - 1]
    border = max(radii)
    inside = tuple(
        slice(border, -border) if axis in axes else slice(None) for axis in range(3)
    )
    logs = np.log(2 * np.array(radii) + 1.0)
    weights = (logs - logs.mean()) / np.square(logs - logs.mean()).sum()
    total = measure / max(measure.max(), 1e-300)
    alpha = 0.0
    for r, weight, log in zip(radii, weights, logs):
        sides = [2 * r + 1 if axis in axes else 1 for axis in range(3)]
        mean = uniform_filter(total, sides)[inside]
        if r == min(radii):  # what rounding leaves of zeros is no measure
            mean = np.where(mean > 1e-14, mean, np.nan)
        alpha = alpha + weight * (np.log(np.maximum(mean, 1e-300)) + len(axes) * log)
    return alpha


def _mean_dimensions(levels, part, n_levels):
    """Dimensions (n_levels,) of level sets, in slices their mean.

    The border is cut off so that boxes of all sides divide the array.
    """
    if part:
        levels = np.moveaxis(levels, part - 1, 0)
    lengths = levels.shape[part > 0 :]
    sides = usual_sides(lengths)
    extra = [n % sides[-1] if n > sides[-1] else 0 for n in lengths]
    inside = [slice(e // 2, n - e + e // 2) for e, n in zip(extra, lengths)]
    levels = levels[(..., *inside)]
    return box_dimensions(levels, n_levels, sides, part > 0).mean(axis=0)


def usual_sides(lengths):
    """1, 2, 4, ... up to a quarter of the shortest, at least 2 and at most LARGEST_BOX."""
    most = min(max(min(lengths, default=1) // 4, 2), LARGEST_BOX)
    return 2 ** np.arange(most.bit_length())


def box_dimensions(levels, n_levels, sides, sliced=False):
    """Return box-counting dimensions (1, n_levels) of the sets of voxels of each level.

    Sliced, (n_slices, n_levels) of slices along the first axis. levels: integers (a, b,
    c) in 0..n_levels - 1, others belong to no set. The slope of ln N_s over -ln s by
    least squares, with N_s the number of boxes of side s that hold a voxel of the set;
    0 for an empty set. sides ascend, see usual_sides. The dimension of a set that
    repeats itself at other ratios, as 3 of the Sierpinski carpet, is exact at their
    powers alone.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import textures
    >>> diagonal = np.eye(16, dtype=int)[None] - 1  # is level 0, and nothing level 1
    >>> textures.box_dimensions(diagonal, 2, [1, 2, 4]).round(6)
    array([[1., 0.]])
    """
    bits = np.zeros(levels.shape, np.int64)
    leveled = (levels >= 0) & (levels < n_levels)
    bits[leveled] = np.int64(1) << levels[leveled].astype(np.int64)
    counts = np.stack(
        [_count_boxes(bits, 1 if sliced else s, s, sliced, n_levels) for s in sides]
    )
    logs = np.log(sides)
    weights = (logs.mean() - logs) / np.square(logs - logs.mean()).sum()
    return np.tensordot(weights, np.log(np.maximum(counts, 1)), 1) + 0.0


@core.jit
def _count_boxes(bits, depth, side, sliced, n_levels):
    """How many boxes of depth x side x side hold a voxel of each level.

    The result is (n_slices or 1, n_levels).
    """
    n, m, q = bits.shape
    boxes = np.zeros((-(-n // depth), -(-m // side), -(-q // side)), np.int64)
    for i in range(n):
        for j in range(m):
            for k in range(q):
                boxes[i // depth, j // side, k // side] |= bits[i, j, k]
    counts = np.zeros((n if sliced else 1, n_levels))
    for i in range(len(boxes)):
        for here in boxes[i].flat:
            for level in range(n_levels):
                counts[i if sliced else 0, level] += (here >> level) & 1
    return counts


# ------------------------------------------------------------- learned sum of distances


DistanceWeights = namedtuple("DistanceWeights", "weights objective")


def distance_weights(
    distances: ArrayLike,
    labels: core.Labels,
    lam: float = 0.01,
    *,
    n_iter: int = 2000,
    rng: core.Rng = None,
) -> DistanceWeights:
    """Weights w >= 0 (m,) for distances that are small within classes (DL-Pegasos).

    The combined distance is sum_k w_k distances[k]. Minimises, over triplets of sets i,
    j of one class and l of another,

        lam / 2 ||w||^2 + mean over triplets of max(0, 1 - w^T (d_il - d_ij)),    w >= 0,

    by Pegasos: a step -1 / (lam t) along the subgradient of a random batch of triplets,
    onto w >= 0 and into the ball of radius 1 / sqrt(lam), in which the minimum lies.
    The answer is the best, by the objective over all triplets, of the iterates and of
    their means weighted by t, looked at every n_iter / 50 steps. distances (m, N, N)
    should be of one scale.

    Of more than 2^20 triplets as many are drawn. Returns a named tuple: weights, and
    objective, the lowest value so far at each look, from that of w = 0, which is 1.
    Sources: Ghanem and Ahuja, ECCV 2010; Shalev-Shwartz, Singer and Srebro, ICML 2007.

    ValueError unless distances are (m, N, N), labels (N,), two sets of one class
    and one of another, lam > 0 and n_iter >= 1.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import textures
    >>> apart = np.abs(np.subtract.outer([0, 1, 5, 6], [0, 1, 5, 6]))
    >>> labels = ["ape", "ape", "bee", "bee"]
    >>> textures.distance_weights([apart, 6 - apart], labels, rng=0).weights > 0
    array([ True, False])
    """
    D = shared.shaped_array(distances, "distances", ("m", "N", "N")).astype(
        np.float64, copy=False
    )
    _, index = core.check_labels(labels, D.shape[1])
    lam = core.check_number(lam, "lam", above=0)
    n_iter = core.check_integer(n_iter, "n_iter", 1)
    rng = core.check_rng(rng)
    margins = triplet_margins(D, index, rng)
    w = mean = best = np.zeros(len(D))
    lowest = [1.0]
    look = max(1, n_iter // CHECKS)
    for t in range(1, n_iter + 1):
        some = (
            margins[rng.integers(len(margins), size=BATCH)]
            if BATCH < len(margins)
            else margins
        )
        pull = some[some @ w < 1].sum(axis=0) / len(some)
        w = np.maximum((1 - 1 / t) * w + pull / (lam * t), 0)
        w = w * min(1.0, 1 / max(np.sqrt(lam) * np.linalg.norm(w), 1e-300))
        mean = mean + (w - mean) * 2 / (t + 1)
        if t % look == 0 or t == n_iter:
            values = [
                lam / 2 * weights @ weights
                + np.maximum(1 - margins @ weights, 0).mean()
                for weights in (w, mean)
            ]
            if min(values) < lowest[-1]:
                best = w if values[0] < values[1] else mean
            lowest.append(min(lowest[-1], *values))
    return DistanceWeights(best, np.array(lowest))


def triplet_margins(distances, index, rng):
    """d_il - d_ij (n, m) of triplets: i and j of one class, l of another.

    All triplets of distances (m, N, N), or MOST_TRIPLETS drawn at random.
    """
    same = np.equal.outer(index, index)
    within = same & ~np.eye(len(index), dtype=bool)
    counts = within.sum(axis=1) * (~same).sum(axis=1)  # triplets of each i
    if not counts.any():
        raise ValueError(
            "labels must have two classes, and two members of one of them, to compare "
            f"pairs, got {len(np.unique(index))} classes of {len(index)} clips"
        )
    ends = np.cumsum(counts)
    chosen = (
        np.arange(ends[-1])
        if ends[-1] <= MOST_TRIPLETS
        else np.sort(rng.integers(ends[-1], size=MOST_TRIPLETS))
    )
    margins = np.empty((len(chosen), len(distances)))
    for i in np.flatnonzero(counts):
        first, last = np.searchsorted(chosen, [ends[i] - counts[i], ends[i]])
        other = np.flatnonzero(~same[i])
        j, k = np.divmod(chosen[first:last] - (ends[i] - counts[i]), len(other))
        near = np.flatnonzero(within[i])[j]
        margins[first:last] = (distances[:, i, other[k]] - distances[:, i, near]).T
    return margins


# ------------------------------------------------------------------------------- checks


def check_ascending(values, name):
    """The values as an ascending tuple of at least two integers >= 1."""
    form = "two integers or more, ascending"
    listed = shared.check_integers(values, name, None, form)
    if len(listed) < 2 or sorted(set(listed)) != listed:
        raise ValueError(f"{name} must be {form}, got {values}")
    return tuple(listed)


def check_texture(clip, name, radii):
    """A clip (n_frames, height, width) that varies and holds the largest cube."""
    f = shared.check_clip(clip, name, shared.LARGEST_PIXEL).astype(np.float64)
    least = max(radii) * 2 + 1
    if min(f.shape) < least:
        raise ValueError(
            f"{name} must have at least {least} frames, rows and columns, got {f.shape}"
        )
    if f.min() == f.max():
        raise ValueError(
            f"{name} must vary, a constant clip has no texture: got {f.min():g} "
            "everywhere"
        )
    return f
