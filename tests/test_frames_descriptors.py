"""Frame descriptors: known answers, the definition of LBP-TOP word for word, and what
each ignores.
"""

import sys
import tracemalloc
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from grassmann_sc.frames import (
    DESCRIPTORS,
    chromaticity,
    colour,
    describe,
    gait_energy_image,
    hog,
    lbp,
    lbp_top,
    thumbnail,
)
from oracles import LOOSE, TIGHT, seeds

FRAMES = np.random.default_rng(0).integers(0, 256, (6, 24, 32), np.uint8)
skimage = pytest.importorskip("skimage", reason="HOG and LBP need the extra 'image'")
pytestmark = pytest.mark.filterwarnings("error")
laws = settings(deadline=None, max_examples=20)


@st.composite
def clips(draw, max_grey=st.sampled_from([2, 9, 256])):
    """Small clips with many equal neighbours, and radii that fit."""
    rng = np.random.default_rng(draw(seeds))
    radii = tuple(draw(st.integers(1, 2)) for _ in range(3))
    shape = [2 * r + draw(st.integers(1, 4)) for r in radii[::-1]]
    return rng.integers(0, draw(max_grey), shape), radii


def lbp_top_by_definition(clip, radii, uniform):
    """Zhao and Pietikainen 2007, voxel by voxel: histograms of sum_k s(g_k - g_c) 2^k
    on XY, XT and YT.
    """
    (rx, ry, rt) = radii
    (T, H, W) = clip.shape
    histograms = np.zeros((3, 256))
    for t in range(rt, T - rt):
        for y in range(ry, H - ry):
            for x in range(rx, W - rx):
                codes = [0, 0, 0]
                for k in range(8):
                    c = np.cos(2 * np.pi * k / 8)
                    s = np.sin(2 * np.pi * k / 8)
                    around = (
                        clip[t, y + round(ry * s), x + round(rx * c)],
                        clip[t + round(rt * s), y, x + round(rx * c)],
                        clip[t + round(rt * s), y + round(ry * c), x],
                    )
                    for plane in range(3):
                        codes[plane] += 2**k * int(around[plane] >= clip[t, y, x])
                for plane in range(3):
                    histograms[plane, codes[plane]] += 1
    histograms /= histograms[0].sum()
    if not uniform:
        return histograms.ravel()
    changes = [
        sum((code >> k & 1) != (code >> (k + 1) % 8 & 1) for k in range(8))
        for code in range(256)
    ]
    few = [code for code in range(256) if changes[code] <= 2]
    return np.concatenate([[*h[few], h.sum() - h[few].sum()] for h in histograms])


@laws
@given(clips(), st.booleans())
def test_lbp_top_is_its_definition(case, uniform):
    clip, radii = case
    rows = describe(clip, "lbp_top", radii=radii, uniform=uniform)
    assert rows.shape == (1, 3 * (59 if uniform else 256))
    np.testing.assert_allclose(
        rows[0], lbp_top_by_definition(clip, radii, uniform), atol=TIGHT
    )


@laws
@given(clips())
def test_lbp_top_ignores_any_rise_of_the_grey_levels(case):
    clip, radii = case
    for rise in (
        np.exp,
        np.sqrt,
        lambda x: x**3 - 7,
        lambda x: np.searchsorted(np.unique(clip), x),
    ):
        np.testing.assert_array_equal(
            lbp_top(rise(clip / 64), radii=radii)
            if rise is np.exp
            else lbp_top(rise(clip), radii=radii),
            lbp_top(clip, radii=radii),
        )


def test_lbp_top_of_what_does_not_move():
    """Along a still pixel's time axis all is equal; a plane histogram of a constant
    clip is all in pattern 255.
    """
    rows = lbp_top(np.full((5, 9, 9), 7), uniform=False).reshape(3, 256)
    np.testing.assert_array_equal(rows, np.tile(np.arange(256) == 255, (3, 1)))
    still = np.tile(FRAMES[0], (6, 1, 1))
    _, xt, yt = lbp_top(still, uniform=False).reshape(3, 256)
    codes = np.arange(256)
    upright = (codes >> 2 & 1) & (codes >> 6 & 1)  # before and after: equal, so set
    assert xt[upright == 0].sum() == 0 and yt[upright == 0].sum() == 0


def test_subvideos_of_lbp_top():
    """The paper's DynTex++: 50 frames in sub-videos of 10 with 7 shared make 14 rows,
    each as if it were alone.
    """
    clip = np.random.default_rng(0).integers(0, 256, (50, 12, 14))
    rows = describe(clip, "lbp_top", length=10, step=3)
    assert rows.shape == (14, 177)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row, lbp_top(clip[3 * i : 3 * i + 10])[0])


def test_subvideos_of_lbp_top_stand_side_by_side_unless_a_step_is_given():
    clip = np.random.default_rng(0).integers(0, 256, (11, 6, 7))
    rows = lbp_top(clip, length=5)
    np.testing.assert_array_equal(rows, lbp_top(clip, length=5, step=5))
    np.testing.assert_array_equal(rows, [lbp_top(clip[:5])[0], lbp_top(clip[5:10])[0]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_points": 16, "radius": 2},
        {"grid": (3, 4)},
    ],
)
def test_lbp_counts_the_inner_patterns_of_scikit_image(options):
    rows = describe(FRAMES, "lbp", **options)
    points = options.get("n_points", 8)
    radius = options.get("radius", 1)
    (R, C) = options.get("grid", (1, 1))
    bins = points * (points - 1) + 3
    assert rows.shape == (6, R * C * bins)
    for row, frame in zip(rows, FRAMES):
        patterns = skimage.feature.local_binary_pattern(
            frame, points, radius, "nri_uniform"
        )[radius:-radius, radius:-radius]
        cells = [
            cell.ravel()
            for band in np.array_split(patterns, R)
            for cell in np.array_split(band, C, axis=1)
        ]
        np.testing.assert_allclose(
            row,
            np.concatenate(
                [np.histogram(c, range(bins + 1))[0] / c.size for c in cells]
            ),
            atol=TIGHT,
        )


def test_lbp_takes_as_many_cells_as_there_are_pixels_within_the_border():
    """One more would be a cell without pixels, which has no shares."""
    rows = lbp(FRAMES, grid=(20, 28), radius=2)
    assert np.isfinite(rows).all()
    for grid in ((21, 28), (20, 29)):
        with pytest.raises(
            ValueError, match="grid must have .* border of the radius 2, "
        ):
            lbp(FRAMES, grid=grid, radius=2)


def test_lbp_ignores_a_rise_of_the_grey_levels():
    np.testing.assert_array_equal(lbp(FRAMES), lbp(4.0 * FRAMES + 32))
    rows = lbp(np.sqrt(FRAMES.astype(float)), n_points=4)  # no interpolation: any rise
    np.testing.assert_array_equal(lbp(FRAMES, n_points=4), rows)
    assert np.abs(lbp(FRAMES) - lbp(-1.0 * FRAMES)).max() > 0.01


def test_lbp_of_known_images():
    """A flat image holds one pattern, at its border too; of nine cells only the one
    that a corner reaches changes with it.
    """
    flat = np.full((1, 11, 11), 5, np.uint8)
    assert lbp(flat).max() == 1
    changed = flat.copy()
    changed[0, :2, :2] = 9
    cells = (
        (lbp(flat, grid=(3, 3)) != lbp(changed, grid=(3, 3))).reshape(9, -1).any(axis=1)
    )
    assert cells.tolist() == [True] + 8 * [False]


def test_hog_is_scikit_images():
    rows = describe(FRAMES, "hog", orientations=6, cells_per_block=(2, 2))
    expected = [
        skimage.feature.hog(frame, orientations=6, cells_per_block=(2, 2))
        for frame in FRAMES
    ]
    np.testing.assert_array_equal(rows, expected)
    assert hog(FRAMES).shape == (6, 1 * 2 * 9 * 9)


def test_hog_of_an_edge_and_its_invariance():
    """A vertical edge has its gradients at angle 0, a horizontal one at 90 degrees;
    gain and offset of the light do not matter.
    """
    edge = np.zeros((1, 16, 16))
    edge[:, :, 8:] = 1
    for image, angle in ((edge, 0), (edge.transpose(0, 2, 1), 4)):
        per_orientation = hog(image, cells_per_block=(1, 1)).reshape(4, 9).sum(axis=0)
        assert (
            per_orientation.argmax() == angle and np.count_nonzero(per_orientation) == 1
        )
    np.testing.assert_allclose(hog(3.0 * FRAMES + 50), hog(FRAMES), atol=1e3 * LOOSE)


def test_gait_energy_is_the_share_of_frames():
    silhouettes = np.zeros((4, 5, 3), np.uint8)
    silhouettes[:, 1:4, 1] = 255
    silhouettes[0, :, 2] = 1
    energy = describe(silhouettes, "gei", align=False).reshape(5, 3)
    np.testing.assert_array_equal(
        energy, [[0, 0, 0.25], [0, 1, 0.25], [0, 1, 0.25], [0, 1, 0.25], [0, 0, 0.25]]
    )


@laws
@given(seeds)
def test_gait_energy_ignores_where_and_how_large_the_walker_is(seed):
    rng = np.random.default_rng(seed)
    body = rng.random((8, 6)) < 0.7
    body[[0, -1]] = body[:, [0, -1]] = True  # the bounding box is the array
    near = np.zeros((3, 30, 40))
    far = np.zeros((3, 30, 40))
    for frame in range(3):
        x, y = rng.integers(0, 20, 2)
        far[frame, y : y + 8, x : x + 6] = body
        x, y = rng.integers(0, 14, 2)
        near[frame, y : y + 16, x : x + 12] = np.kron(body, np.ones((2, 2)))
    a, b = (gait_energy_image(clip, size=(8, 12)) for clip in (far, near))
    assert np.array_equal(a > 0.5, gait_energy_image(far[:1], size=(8, 12)) > 0.5)
    np.testing.assert_array_equal(
        a, gait_energy_image(np.concatenate([far, np.zeros((2, 30, 40))]), size=(8, 12))
    )
    assert np.mean(np.abs(a - b)) < 0.12  # the larger one went through a filter
    assert (
        a.sum() == pytest.approx(body.sum(), abs=LOOSE)
        and 0 <= b.min()
        and b.max() <= 1 + TIGHT
    )


def test_a_line_of_noise_is_not_scaled_as_a_whole():
    """480 x 307,200 would be 1.2 GB; what is kept of it is around its mean column."""
    clip = np.zeros((1, 480, 640), bool)
    clip[0, 7, [0, 639]] = True
    tracemalloc.start()
    assert not gait_energy_image(clip).any()
    clip[0, 7, 315:325] = True
    energy = gait_energy_image(clip)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3e8 and energy.shape == (1, 480 * 640) and energy.min() > 0.99


def test_the_aligned_walker_stands_in_the_middle():
    clip = np.zeros((1, 20, 30))
    clip[0, 2:12, 21:25] = 1
    energy = gait_energy_image(clip, size=(10, 8)).reshape(10, 8)
    np.testing.assert_array_equal(energy, np.tile([0, 0, 1, 1, 1, 1, 0, 0], (10, 1)))
    narrow = gait_energy_image(clip, size=(20, 6)).reshape(20, 6)
    np.testing.assert_allclose(narrow, 1, atol=0.5)  # wider than the image: cut evenly
    assert gait_energy_image(clip).shape == (1, 600)


def test_raw_pixels_and_other_descriptors():
    rows = describe(FRAMES)
    assert rows.dtype == np.uint8 and np.array_equal(rows, FRAMES.reshape(6, -1))
    means = describe(
        FRAMES,
        lambda frames, power: frames.astype(float).mean(axis=(1, 2))[:, None] ** power,
        power=2,
    )
    np.testing.assert_allclose(means[:, 0], FRAMES.mean(axis=(1, 2)) ** 2)


@pytest.mark.parametrize(
    "call, error, match",
    [
        (
            lambda: describe(FRAMES, "sift"),
            ValueError,
            "kind must be one of raw, hog, .*gei.* or a callable, got 'sift'",
        ),
        (
            lambda: describe(FRAMES, lambda frames: frames),
            ValueError,
            r"kind must return real numbers "
            r"\(n, d\), .* uint8 \(6, 24, "
            r"32\)",
        ),
        (
            lambda: describe(FRAMES[0, 0], "raw"),
            ValueError,
            r"frames must have shape .*, got \(32,\)",
        ),
        (
            lambda: describe(FRAMES[0], "hog"),
            ValueError,
            r"frames must have shape \(n_frames, height, width\), got \(24, 32\)",
        ),
        (
            lambda: describe(FRAMES * 1j, "lbp"),
            TypeError,
            "frames must hold real numbers, got dtype complex128",
        ),
        (
            lambda: describe(FRAMES * np.nan, "lbp_top"),
            ValueError,
            "frames must be finite, got nan",
        ),
        (
            lambda: hog(FRAMES[:, :9]),
            ValueError,
            "The input image is too small .* at least: 24 rows",
        ),
        (
            lambda: lbp(FRAMES, grid=(25, 1)),
            ValueError,
            r"grid must have .* within a border of the radius 1, .* "
            r"got \(25, 1\) for frames of \(24, 32\)",
        ),
        (
            lambda: thumbnail(FRAMES, size=(0, 8)),
            ValueError,
            "size must be >= 1, got 0",
        ),
        (
            lambda: lbp_top(FRAMES, length=7),
            ValueError,
            r"length must be in 1\.\.6, got 7",
        ),
        (
            lambda: lbp_top(FRAMES, length=2),
            ValueError,
            r"length and frames must leave a voxel that is the radii \(1, 1, 1\) from every face, "
            r"got sub-videos of 2 frames of \(24, 32\) pixels",
        ),
        (
            lambda: lbp_top(FRAMES, radii=(0, 1, 1)),
            ValueError,
            "radii must be >= 1, got 0",
        ),
        (
            lambda: lbp_top(FRAMES, step=1.5),
            TypeError,
            r"step must be an integer, got 1\.5",
        ),
        (
            lambda: gait_energy_image(FRAMES * 0),
            ValueError,
            "silhouettes must hold a pixel > 0, all 6 frames are empty",
        ),
        (
            lambda: gait_energy_image(np.ones((6, 4, 3))),
            ValueError,
            "silhouettes must be 0 outside the body, no pixel of 6 frames is",
        ),
        (
            lambda: colour(np.ones((2, 3, 4, 2))),
            ValueError,
            r"frames must have shape .* got \(2, 3, 4, 2\)",
        ),
        (
            lambda: colour(np.full((2, 3, 4, 3), np.nan)),
            ValueError,
            "frames must be finite, got nan in frame 0",
        ),
        (
            lambda: chromaticity(-np.ones((2, 3, 4, 3))),
            ValueError,
            "frames must not be negative, got -1",
        ),
        (
            lambda: chromaticity(FRAMES, bins=0),
            ValueError,
            "bins must be",
        ),
        (
            lambda: gait_energy_image(FRAMES, size=(3, 3), align=False),
            ValueError,
            r"size needs "
            r"align=True, got "
            r"\(3, 3\)",
        ),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize("shape, size", [((16, 24), (8, 8)), ((13, 7), (4, 5))])
def test_a_thumbnail_is_the_mean_of_each_cell(shape, size):
    clip = np.random.default_rng(0).integers(0, 256, (3, *shape), np.uint8)
    rows = thumbnail(clip, size=size)
    bands = [np.linspace(0, side, n + 1).astype(int) for side, n in zip(shape, size)]
    expected = [
        [
            frame[a:b, c:d].mean()
            for a, b in pairwise(bands[0])
            for c, d in pairwise(bands[1])
        ]
        for frame in clip
    ]
    np.testing.assert_allclose(rows, expected, rtol=1e-14)
    np.testing.assert_array_equal(describe(clip, "thumbnail", size=size), rows)
    single = thumbnail(clip.astype(np.float32), size=size)
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-6)


def test_colours_are_those_of_the_pixels_and_grey_is_three_equal_ones():
    clip = np.random.default_rng(0).integers(0, 256, (4, 5, 6, 3), np.uint8)
    rows = colour(clip)
    assert rows.dtype == np.uint8
    np.testing.assert_array_equal(rows.reshape(clip.shape), clip)
    grey = colour(clip[..., 0]).reshape(clip.shape)
    np.testing.assert_array_equal(grey, clip[..., :1].repeat(3, axis=3))


@given(seeds, st.integers(1, 6), st.sampled_from([np.uint8, np.float32, float]))
@laws
def test_chromaticity_is_counted_pixel_by_pixel(seed, bins, dtype):
    """Each pixel at the four nodes around (R, G) / (R + G + B), by linear shares."""
    clip = np.random.default_rng(seed).integers(0, 4, (3, 4, 5, 3)).astype(dtype)
    expected = np.zeros((3, bins + 1, bins + 1))
    for t, y, x in np.ndindex(clip.shape[:3]):
        pixel = clip[t, y, x].astype(float)
        share = pixel / pixel.sum() if pixel.any() else np.full(3, 1 / 3)
        for i, j in np.ndindex(expected.shape[1:]):
            near = 1 - np.abs(bins * share[:2] - (i, j))
            expected[t, i, j] += max(near[0], 0) * max(near[1], 0)
    rows = chromaticity(clip, bins=bins)
    np.testing.assert_allclose(rows**2, expected.reshape(3, -1), atol=1e-12)
    np.testing.assert_allclose((rows**2).sum(axis=1), 20)


@given(seeds)
@laws
def test_neither_brightness_nor_places_of_pixels_change_chromaticity(seed):
    rng = np.random.default_rng(seed)
    clip = rng.random((3, 4, 5, 3))
    rows = chromaticity(clip)
    darker = clip * rng.uniform(0.1, 1, (3, 4, 5, 1))
    np.testing.assert_allclose(chromaticity(darker), rows, atol=1e-6)
    moved = rng.permutation(clip.reshape(3, 20, 3), axis=1).reshape(clip.shape)
    np.testing.assert_allclose(chromaticity(moved), rows, atol=1e-6)
    assert (chromaticity(clip[..., ::-1]) != rows).any()


def test_a_thumbnail_has_no_more_cells_than_pixels():
    clip = np.random.default_rng(0).random((3, 5, 20))
    np.testing.assert_array_equal(thumbnail(clip, size=(50, 50)), clip.reshape(3, -1))
    assert thumbnail(clip).shape == (3, 40)


@pytest.mark.parametrize("name", DESCRIPTORS)
@pytest.mark.parametrize("shape", [(16, 16), (24, 32), (60, 17)])
def test_each_descriptor_keeps_what_its_entry_promises(name, shape):
    """Rows of one length for clips of one size, finite, a row a frame where it says so."""
    kind = DESCRIPTORS[name]
    options = kind.suited(shape) if kind.suited else {}
    shape = (*shape, 3) if kind.colour else shape
    clips = np.random.default_rng(0).integers(0, 256, (2, 7, *shape), np.uint8)
    before = clips.copy()
    first, second = (describe(clip, name, **options) for clip in clips)
    assert first.shape == second.shape and np.isfinite(first).all()
    assert not np.array_equal(first, second)
    assert not kind.per_frame or len(first) == 7
    np.testing.assert_array_equal(clips, before)


@pytest.mark.parametrize("shape, cell", [((40, 64), 8), ((17, 16), 4)])
def test_images_are_tried_as_pixels_hog_and_lbp_with_cells_that_suit_them(shape, cell):
    suited = {
        name: kind.suited(shape) for name, kind in DESCRIPTORS.items() if kind.suited
    }
    assert suited["raw"] == {}
    assert suited["hog"] == {"pixels_per_cell": [cell] * 2, "cells_per_block": [2, 2]}
    assert suited["lbp"] == {"grid": [2, 2]}


def test_a_missing_library_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.feature", None)
    with pytest.raises(
        ImportError,
        match="hog needs scikit-image: .* -m pip install scikit-image",
    ):
        hog(FRAMES)
