"""Image sets to points: laws of the leading left singular space, its accuracy, and
errors that name the set.
"""

import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as core
from grassmann_sc.subspaces import from_image_set, from_sets
from oracles import LOOSE, TIGHT, seeds

SIZES = [
    (1, 1, 1),
    (7, 3, 2),
    (6, 6, 6),
    (5, 40, 5),
    (64, 12, 1),
    (64, 12, 12),
    (3200, 40, 5),
    (3000, 70, 4),
    (20000, 40, 5),
    (500, 300, 6),
    (70, 3000, 4),
]  # d, n, p; in one block of pixels or in several, whose triangles join once or twice; wide
pytestmark = pytest.mark.filterwarnings("error")
laws = settings(deadline=None, max_examples=30)


@st.composite
def image_sets(draw):
    """Frames (n, d) with singular values 1, 1/2, 1/4, ... and p of them to find."""
    d = draw(st.integers(1, 60))
    n = draw(st.integers(1, 60))
    return frames_with(0.5 ** np.arange(min(d, n)), n, d, draw(seeds)), draw(
        st.integers(1, min(d, n, 6))
    )


def frames_with(singular_values, n, d, seed=0):
    rng = np.random.default_rng(seed)
    r = len(singular_values)
    V, U = (np.linalg.qr(rng.standard_normal((size, r)))[0] for size in (n, d))
    return V * singular_values @ U.T


def svd_basis(frames, p):
    return np.linalg.svd(frames.T, full_matrices=False)[0][:, :p]


def sine(A, B):
    """Sine of the largest angle between two subspaces of equal dimension, given by
    orthonormal bases.
    """
    return np.linalg.norm(B - A @ (A.T @ B), 2)


@pytest.mark.parametrize("d, n, p", SIZES)
def test_columns_are_the_leading_left_singular_vectors(d, n, p):
    frames = frames_with(0.5 ** np.arange(min(n, d)), n, d)
    basis = from_image_set(frames, p)
    expected = svd_basis(frames, p)
    assert basis.shape == (d, p)
    np.testing.assert_allclose(basis.T @ basis, np.eye(p), atol=TIGHT)
    np.testing.assert_allclose(
        np.abs(expected.T @ basis), np.eye(p), atol=TIGHT
    )  # in order, up to sign


@laws
@given(image_sets(), seeds)
def test_no_subspace_fits_the_frames_better(image_set, seed):
    """The error is the sum of the other squared singular values: the optimum of Eckart
    and Young.
    """
    frames, p = image_set
    basis = from_image_set(frames, p)
    rng = np.random.default_rng(seed)
    error = np.linalg.norm(frames - frames @ basis @ basis.T) ** 2
    assert error == pytest.approx(
        np.sum(np.linalg.svd(frames, compute_uv=False)[p:] ** 2), abs=TIGHT
    )
    for step in (1, 1e-2, 1e-4):
        other = np.linalg.qr(basis + step * rng.standard_normal(basis.shape))[0]
        assert error <= np.linalg.norm(frames - frames @ other @ other.T) ** 2 + TIGHT


@pytest.mark.parametrize("n, d", [(12, 12), (12, 40), (40, 12), (130, 200)])
@pytest.mark.parametrize(
    "singular_values", [[1] * 9, [1, 1, 1, 1e-3, 1e-3, 1e-3], [1, 1e-9, 1e-9]]
)
def test_equal_singular_values(singular_values, n, d):
    """Any of the best subspaces will do."""
    frames = frames_with(np.array(singular_values), n, d)
    for p in range(1, len(singular_values) + 1):
        basis = from_image_set(frames, p)
        np.testing.assert_allclose(basis.T @ basis, np.eye(p), atol=TIGHT)
        error = np.linalg.norm(frames - frames @ basis @ basis.T) ** 2
        assert error == pytest.approx(np.sum(np.square(singular_values[p:])), abs=TIGHT)


@laws
@given(image_sets(), seeds)
def test_order_and_repetition_of_frames_do_not_matter(image_set, seed):
    frames, p = image_set
    order = np.random.default_rng(seed).permutation(
        np.repeat(np.arange(len(frames)), 3)
    )
    assert sine(from_image_set(frames[order], p), from_image_set(frames, p)) <= TIGHT


@laws
@given(image_sets(), seeds)
def test_moving_the_pixels_moves_the_subspace(image_set, seed):
    frames, p = image_set
    order = np.random.default_rng(seed).permutation(frames.shape[1])
    assert (
        sine(from_image_set(frames[:, order], p), from_image_set(frames, p)[order])
        <= TIGHT
    )


@laws
@given(image_sets(), st.integers(-1000, 1000))
def test_scale_does_not_matter(image_set, exponent):
    frames, p = image_set
    # entries that stay normal numbers
    frames = np.where(np.abs(frames) < 2.0**-20, 0, frames)
    assert np.array_equal(
        from_image_set(frames * 2.0**exponent, p), from_image_set(frames, p)
    )


@pytest.mark.parametrize("scale", [1e-200, 1e200, -255, 5e-324])
def test_extreme_scales(scale):
    frames = np.array([[1, 0, 0, 2], [0, 3, 0, 0.0], [0, 0, 0, 0]])
    assert (
        sine(
            from_image_set(scale * frames, 2),
            np.array([[1, 0], [0, 1], [0, 0], [2, 0]]) / [5**0.5, 1],
        )
        <= TIGHT
    )


@laws
@given(image_sets(), seeds)
def test_center_ignores_what_all_frames_share(image_set, seed):
    frames, p = image_set
    frames = np.concatenate([frames, -frames])  # the mean frame is zero
    shared = np.random.default_rng(seed).random(frames.shape[1])
    assert (
        sine(from_image_set(frames + shared, p, center=True), from_image_set(frames, p))
        <= TIGHT
    )


def dyadic_pair(small):
    """Two exact frames a, a + small b whose second singular value is about `small`, and
    the exact span of a and b.
    """
    a, b = np.random.default_rng(0).integers(-8, 9, (2, 1000)).astype(float)
    return np.stack([a, a + small * b]), np.linalg.qr(np.stack([a, b], axis=1))[0]


def test_small_directions_are_not_lost():
    """A Gram matrix would leave an error of about 1e-4."""
    frames, span = dyadic_pair(2.0**-20)
    assert sine(from_image_set(frames, 2), span) <= LOOSE


def test_as_accurate_as_an_svd_at_condition_1e9():
    frames, span = dyadic_pair(2.0**-30)
    assert sine(from_image_set(frames, 2), span) <= 4 * sine(svd_basis(frames, 2), span)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "d, n, rank", [(4, 4, 1), (3, 50, 2), (1000, 10, 3), (20000, 30, 1)]
)
@pytest.mark.parametrize("shared", [0, 100])
def test_rounding_does_not_count_as_a_direction(d, n, rank, shared, dtype):
    rng = np.random.default_rng(d)
    frames = (rng.random((n, rank)) @ rng.random((rank, d)) + shared).astype(dtype)
    rank += shared > 0
    assert from_image_set(frames, rank).shape == (d, rank)
    with pytest.raises(
        ValueError, match=rf"p = {rank + 1} independent frames|at most d = {rank}"
    ):
        from_image_set(frames, rank + 1)


def test_rank_follows_the_precision_of_the_frames():
    frames, _ = dyadic_pair(2.0**-22)
    assert from_image_set(frames, 2).shape == (1000, 2)
    with pytest.raises(
        ValueError,
        match=r"hold p = 2 independent frames: got numerical rank 1 "
        r"\(.* above 0\.0[0-9]+\)",
    ):
        from_image_set(frames.astype(np.float32), 2)


def test_centred_copies_of_a_frame_have_rank_zero():
    frames = np.tile(np.random.default_rng(0).random(500), (7, 1))
    with pytest.raises(
        ValueError,
        match="p = 1 independent frames beside their mean: got numerical rank 0",
    ):
        from_image_set(frames, 1, center=True)
    with pytest.raises(ValueError, match="numerical rank 0"):
        from_image_set(np.zeros((3, 4)), 1)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", "i8", "f2", "f8", ">f8", "g"])
def test_real_types_become_float64(dtype):
    frames = np.random.default_rng(0).integers(0, 2, (6, 30)).astype(dtype)
    basis = from_image_set(frames, 3)
    assert basis.dtype == np.float64 and basis.dtype.isnative
    assert sine(basis, svd_basis(frames.astype(float), 3)) <= TIGHT


@pytest.mark.parametrize("dtype", ["<f4", ">f4"])
def test_float32_stays_float32_and_is_accumulated_in_float64(dtype):
    frames = np.random.default_rng(0).random((9, 3000)).astype(dtype)
    basis = from_image_set(frames, 4)
    assert basis.dtype == np.float32 and basis.dtype.isnative
    assert np.array_equal(
        basis, from_image_set(frames.astype(float), 4).astype(np.float32)
    )


def test_layout_does_not_matter_and_frames_are_not_changed():
    frames = np.random.default_rng(0).random((8, 5, 6))
    expected = from_image_set(frames.reshape(8, 30), 3)
    strided = np.zeros((16, 5, 12))[::-2, :, 1::2]
    strided[...] = frames
    for same in (frames, np.asfortranarray(frames), strided, frames.tolist()):
        if isinstance(same, np.ndarray):
            same.setflags(write=False)
        assert sine(from_image_set(same, 3, center=False), expected) <= TIGHT
        np.testing.assert_array_equal(same, frames)
    assert np.array_equal(from_image_set(frames, 3), from_image_set(frames.copy(), 3))


def test_frames_are_never_copied_as_a_whole():
    frames = np.random.default_rng(0).integers(0, 256, (40, 100_000), np.uint8)
    tracemalloc.start()
    from_image_set(frames, 2, center=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * frames.size * 8


def test_sets_of_any_lengths_are_stacked():
    rng = np.random.default_rng(0)
    sets = [rng.random((n, 4, 5)) for n in (3, 9, 30)]
    for given_sets in (sets, tuple(sets), iter(sets)):
        X = from_sets(given_sets, 2, center=True)
        assert X.shape == (3, 20, 2)
        assert all(
            np.array_equal(basis, from_image_set(frames, 2, center=True))
            for basis, frames in zip(X, sets)
        )


@pytest.mark.parametrize("shape", [(4, 7, 12), (4, 7, 3, 4)])
def test_sets_as_one_array(shape):
    sets = np.random.default_rng(0).random(shape).astype(np.float32)
    X = from_sets(sets, 2)
    assert X.shape == (4, 12, 2) and X.dtype == np.float32
    assert np.array_equal(X, from_sets(list(sets), 2))
    assert from_sets([sets[0], sets[1].astype(float)], 2).dtype == np.float64


def with_value(value):
    frames = np.ones((4, 2, 3))
    frames[2, 1, 1] = value
    return frames


@pytest.mark.parametrize(
    "frames, p, error, match",
    [
        (
            np.ones(5),
            1,
            ValueError,
            r"frames must have shape \(n_frames, d\) or .*, got \(5,\)",
        ),
        (
            np.ones((2, 2, 2, 2)),
            1,
            ValueError,
            r"frames must have shape .*, got \(2, 2, 2, 2\)",
        ),
        (
            np.ones((0, 5)),
            1,
            ValueError,
            r"frames must hold at least one frame .*, got shape \(0, 5\)",
        ),
        (np.ones((5, 0)), 1, ValueError, r"at least one pixel, got shape \(5, 0\)"),
        (
            [[1, 2], [3]],
            1,
            ValueError,
            "frames must hold frames of one shape, got a ragged sequence",
        ),
        (
            np.ones((4, 5)) * 1j,
            1,
            TypeError,
            "frames must hold real numbers, got dtype complex128",
        ),
        (
            np.ones((4, 5), object),
            1,
            TypeError,
            "frames must hold real numbers, got dtype object",
        ),
        (
            with_value(np.nan),
            1,
            ValueError,
            "frames must be finite, got nan in frame 2",
        ),
        (
            with_value(-np.inf),
            1,
            ValueError,
            "frames must be finite, got -inf in frame 2",
        ),
        (np.eye(5), 0, ValueError, "p must be >= 1, got 0"),
        (np.eye(5), 2.0, TypeError, r"p must be an integer, got 2\.0"),
        (
            np.eye(5),
            6,
            ValueError,
            "p must be at most d = 5, the number of pixels in frames, got 6",
        ),
        (
            np.eye(5)[:3],
            4,
            ValueError,
            "frames must hold p = 4 independent frames, got 3 frames",
        ),
        (
            np.eye(5)[[0, 1, 1, 0]],
            3,
            ValueError,
            r"hold p = 3 independent frames: got numerical rank 2 "
            r"\(.* above 9\.9e-15\)",
        ),
    ],
)
def test_bad_frames(frames, p, error, match):
    with pytest.raises(error, match=match):
        from_image_set(frames, p)


@pytest.mark.parametrize(
    "sets, p, error, match",
    [
        ([], 1, ValueError, "sets must hold at least one set of frames, got none"),
        (
            [np.eye(5), np.eye(4)],
            1,
            ValueError,
            r"sets must share one d: sets\[0\] has d = 5, "
            r"sets\[1\] has d = 4",
        ),
        (
            [np.eye(5), with_value(np.inf)],
            1,
            ValueError,
            r"sets\[1\] must be finite, got inf in frame "
            r"2",
        ),
        (
            [np.eye(5), np.eye(5)[:2]],
            3,
            ValueError,
            r"sets\[1\] must hold p = 3 independent frames, "
            r"got 2 frames",
        ),
        (
            [np.eye(5), np.ones((5, 5))],
            2,
            ValueError,
            r"sets\[1\] must hold p = 2 independent frames: "
            r"got numerical rank 1",
        ),
        (
            [np.eye(5), np.ones((0, 5))],
            2,
            ValueError,
            r"sets\[1\] must hold at least one frame .*, got "
            r"shape \(0, 5\)",
        ),
        (np.eye(5), 1, ValueError, r"sets\[0\] must have shape .*, got \(5,\)"),
        ([np.eye(5)], 0, ValueError, "p must be >= 1, got 0"),
        (
            [np.eye(5)],
            6,
            ValueError,
            r"p must be at most d = 5, the number of pixels in sets\[0\], got "
            r"6",
        ),
    ],
)
def test_bad_sets(sets, p, error, match):
    with pytest.raises(error, match=match):
        from_sets(sets, p)


@pytest.mark.parametrize("stream", [list, iter])
def test_a_bad_set_behind_many_is_named(stream):
    """Sets are taken a few at a time, but are counted from the first."""
    sets = [np.eye(5)] * 4 * core.thread_count() + [np.eye(5), np.ones((5, 5))]
    with pytest.raises(ValueError, match=rf"sets\[{len(sets) - 1}\] must hold p = 2"):
        from_sets(stream(sets), 2)


def test_fewer_directions_are_those_that_there_are():
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((3, 9))
    frames = np.vstack([frames, frames[:2] + frames[2]])
    basis = from_image_set(frames, 7, rank="fewer")
    assert basis.shape == (9, 3)
    np.testing.assert_allclose(basis, from_image_set(frames, 3), atol=TIGHT)
    assert from_image_set(frames, 2, rank="fewer").shape == (9, 2)
    assert from_image_set(frames, 99, rank="fewer", center=True).shape == (9, 3)
    with pytest.raises(
        ValueError, match="hold a frame that is not zero: got numerical"
    ):
        from_image_set(np.zeros((3, 4)), 2, rank="fewer")
    with pytest.raises(
        ValueError, match="rank must be 'raise', 'warn' or 'pad', got 'fewer'"
    ):
        from_sets([frames], 2, rank="fewer")
