"""Videos to points: block Hankel matrices, ARMA models known exactly, their
observability, and what to do without full rank.
"""

import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from grassmann_sc import projection_kernel
from grassmann_sc.strategies import rotation
from grassmann_sc.subspaces import (
    arma,
    block_hankel,
    from_image_set,
    from_sets,
    from_video,
    from_videos,
    normalise,
    observability,
)
from oracles import LOOSE, TIGHT, seeds

pytestmark = pytest.mark.filterwarnings("error")
laws = settings(deadline=None, max_examples=30)


def system(rng, n, d, radius=0.97):
    """A (n, n), C (d, n) of a simulated system: rotations that decay, so that its
    states stay independent for long.
    """
    angles = np.linspace(0.3, 2.8, n // 2)
    blocks = [
        radius * np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        for a in angles
    ] + [np.array([[radius]])] * (n % 2)
    A = np.zeros((n, n))
    i = 0
    for block in blocks:
        A[i : i + len(block), i : i + len(block)] = block
        i += len(block)
    T = rotation(rng, n) * rng.uniform(0.7, 1.4, n)
    return T @ A @ np.linalg.inv(T), rng.standard_normal((d, n))


def simulate(A, C, n_frames):
    z = np.empty((n_frames, len(A)))
    z[0] = np.linalg.solve(np.eye(len(A)) + 0.1 * A, np.ones(len(A)))
    for t in range(1, n_frames):
        z[t] = A @ z[t - 1]
    return z @ C.T


@st.composite
def systems(draw):
    n = draw(st.integers(1, 5))
    A, C = system(np.random.default_rng(draw(seeds)), n, draw(st.integers(n, 40)))
    return A, C, draw(st.integers(2 * n + 2, 60)), draw(st.integers(1, 6))


def sine(A, B):
    """Sine of the largest angle between the spans of an orthonormal basis A and of any
    B with as many columns.
    """
    return np.linalg.norm(B - A @ (A.T @ B), 2) / np.linalg.svd(B, compute_uv=False)[-1]


@laws
@given(systems())
def test_arma_finds_a_noise_free_system(case):
    """A and C up to a change of the state's coordinates, and its observability
    subspace.
    """
    A, C, n_frames, n_blocks = case
    frames = simulate(A, C, n_frames)
    n = len(A)
    A_hat, C_hat = arma(frames, n)
    np.testing.assert_allclose(C_hat.T @ C_hat, np.eye(n), atol=TIGHT)
    T = C_hat.T @ C  # z_hat = T z
    np.testing.assert_allclose(A_hat @ T, T @ A, atol=LOOSE)
    np.testing.assert_allclose(
        np.sort_complex(np.linalg.eigvals(A_hat)),
        np.sort_complex(np.linalg.eigvals(A)),
        atol=1e3 * LOOSE,
    )
    assert sine(from_video(frames, n, n_blocks), observability(A, C, n_blocks)) <= LOOSE


@laws
@given(st.integers(2, 6), st.integers(1, 8), seeds)
def test_arma_is_the_closed_form_of_the_paper(n, extra, seed):
    frames = np.random.default_rng(seed).standard_normal((n + 1 + extra, 12))
    U, s, Vt = np.linalg.svd(frames.T, full_matrices=False)
    U = U[:, :n]
    s = s[:n]
    V = Vt[:n].T
    tau = len(frames)
    D1 = np.eye(tau, k=-1)
    D2 = np.diag([*np.ones(tau - 1), 0])
    expected = np.diag(s) @ V.T @ D1 @ V @ np.linalg.inv(V.T @ D2 @ V) @ np.diag(1 / s)
    A, C = arma(frames, n)
    signs = np.sign((U * C).sum(axis=0))
    np.testing.assert_allclose(C * signs, U, atol=LOOSE)
    np.testing.assert_allclose(
        A * np.outer(signs, signs),
        expected,
        rtol=LOOSE,
        atol=LOOSE * np.abs(expected).max(),
    )


@laws
@given(st.integers(1, 4), st.integers(1, 6), seeds)
def test_video_basis_spans_the_observability_matrix(n, n_blocks, seed):
    frames = np.random.default_rng(seed).standard_normal((15, 4, 5))
    basis = from_video(frames, n, n_blocks)
    assert basis.shape == (20 * n_blocks, n)
    np.testing.assert_allclose(basis.T @ basis, np.eye(n), atol=TIGHT)
    assert sine(basis, observability(*arma(frames, n), n_blocks)) <= LOOSE


def test_observability_stacks_the_powers():
    A = np.array([[0.0, 1], [-1, 0]])
    C = np.array([[1.0, 2], [3, 4], [5, 6]])
    np.testing.assert_array_equal(
        observability(A, C, 3), [*C, [-2, 1], [-4, 3], [-6, 5], *-C]
    )
    assert (
        observability(A.astype(np.float32), C.astype(np.float32), 2).dtype == np.float32
    )


@pytest.mark.parametrize("n_frames, p", [(9, 4), (4, 4), (1, 1)])
def test_one_block_is_the_model_of_appearance(n_frames, p):
    """The paper's remark, for ARMA as for block Hankel matrices; dynamics need no frame
    more.
    """
    frames = np.random.default_rng(0).random((n_frames, 5, 6))
    np.testing.assert_array_equal(from_video(frames, p, 1), from_image_set(frames, p))
    np.testing.assert_array_equal(block_hankel(frames, 1), frames.reshape(n_frames, 30))


@laws
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4), seeds)
def test_hankel_rows_are_frames_with_their_successors(n_frames, n_blocks, d, seed):
    frames = np.random.default_rng(seed).random((n_frames, d))
    n_blocks = min(n_blocks, n_frames)
    rows = block_hankel(frames, n_blocks)
    expected = [
        np.concatenate(frames[i : i + n_blocks]) for i in range(n_frames - n_blocks + 1)
    ]
    np.testing.assert_array_equal(rows, expected)
    assert not rows.flags.writeable and rows.base is not None


def test_hankel_and_arma_see_the_order_of_frames():
    frames = np.random.default_rng(0).random((12, 30))
    assert sine(from_image_set(frames[::-1], 3), from_image_set(frames, 3)) <= TIGHT
    assert (
        sine(
            from_image_set(block_hankel(frames[::-1], 3), 3),
            from_image_set(block_hankel(frames, 3), 3),
        )
        > 0.1
    )
    assert sine(from_video(frames[::-1], 3, 3), from_video(frames, 3, 3)) > 0.1


def growing(rate):
    A, C = system(np.random.default_rng(0), 4, 30, rate)
    return simulate(A, C, 20)


@pytest.mark.parametrize("rate", [1.0, 1.5])
def test_stabilize_scales_into_the_unit_circle(rate):
    frames = growing(rate)
    A, C = arma(frames, 4)
    assert np.abs(np.linalg.eigvals(A)).max() == pytest.approx(rate, abs=LOOSE)
    B, same = arma(frames, 4, stabilize=True)
    assert 1 - LOOSE < np.abs(np.linalg.eigvals(B)).max() < 1
    np.testing.assert_array_equal(C, same)
    np.testing.assert_allclose(B * rate, A, atol=LOOSE * rate * np.abs(A).max())
    assert (
        sine(from_video(frames, 4, 5, stabilize=True), observability(B, C, 5)) <= LOOSE
    )


def test_stable_estimates_are_left_alone():
    frames = growing(0.9)
    np.testing.assert_array_equal(
        arma(frames, 3, stabilize=True)[0], arma(frames, 3)[0]
    )


def test_powers_out_of_range_are_an_error_unless_stabilized():
    with pytest.raises(
        ValueError,
        match=r"A must have powers up to 1999 .* spectral radius 1\.5; "
        r"stabilize=True",
    ):
        from_video(growing(1.5), 4, 2000)
    basis = from_video(growing(1.5), 4, 2000, stabilize=True)
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=TIGHT)


@pytest.mark.parametrize(
    "make",
    [
        lambda f, **kw: from_image_set(f, 3, **kw),
        lambda f, **kw: from_video(f, 3, 4, **kw),
    ],
)
def test_scale_sign_and_type_of_the_frames(make):
    frames = np.random.default_rng(0).random((10, 4, 6))
    basis = make(frames)
    for factor in (-3.0, 1e-170, 1e170):
        assert sine(basis, make(factor * frames)) <= TIGHT * 100
    single = make(frames.astype(np.float32))
    assert single.dtype == np.float32 and np.array_equal(
        single, make(frames.astype(np.float32).astype(float)).astype(np.float32)
    )


def test_unit_variance_is_the_normalisation_of_the_traffic_experiment():
    rng = np.random.default_rng(0)
    frames = rng.random((20, 30)) * rng.uniform(0.1, 9, 30) + 5
    frames[:, 7] = 0.1  # constant: its deviation is rounding alone
    normal = (frames - frames.mean(axis=0)) / frames.std(axis=0)
    normal[:, 7] = 0
    rows = frames.copy()
    assert normalise(rows, False, True) == pytest.approx(
        np.delete(np.abs(frames).max(axis=0) / frames.std(axis=0), 7).max()
    )
    np.testing.assert_allclose(rows, normal, atol=TIGHT)
    assert (
        sine(from_image_set(normal, 4), from_image_set(frames, 4, unit_variance=True))
        <= LOOSE
    )
    assert (
        sine(from_video(normal, 4, 3), from_video(frames, 4, 3, unit_variance=True))
        <= LOOSE
    )
    brighter = frames * rng.uniform(0.5, 2, 30) + rng.random(
        30
    )  # a gain and an offset for each pixel
    assert (
        sine(
            from_image_set(brighter, 4, unit_variance=True),
            from_image_set(frames, 4, unit_variance=True),
        )
        <= LOOSE
    )
    with pytest.raises(ValueError, match="beside their mean: got numerical rank 0"):
        from_image_set(np.full((5, 9), 0.1), 1, unit_variance=True)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_pixels_of_several_units_have_unit_variance(kind):
    """Accelerations, rates of turn, air pressure in Pa, and what does not vary."""
    rng = np.random.default_rng(0)
    scale = np.array([1, 1, 1, 20, 20, 20, 5, 0])
    offset = np.array([0, 9.81, 0, 0, 0, 0, 101_325, 7e5])
    frames = rng.standard_normal((60, 8)) * scale + offset
    rounded = frames.astype(kind)
    rows = (rounded - offset)[:, :7]
    expected = from_image_set((rows - rows.mean(axis=0)) / rows.std(axis=0), 3)
    basis = from_image_set(rounded, 3, unit_variance=True)
    assert sine(basis[:7].astype(float), expected) < (
        1e-4 if kind == np.float32 else LOOSE
    )
    with pytest.raises(ValueError, match="numerical rank 7 .singular values above 0.4"):
        from_image_set(frames.astype(np.float32), 8, unit_variance=True)


def test_a_generator_may_give_the_same_memory_again():
    frames = np.random.default_rng(0).random((6, 8, 30))
    buffer = np.empty((8, 30))

    def reused():
        for some in frames:
            buffer[:] = some
            yield buffer

    assert np.array_equal(from_sets(reused(), 2), from_sets(frames, 2))


def test_rows_that_overlap_are_read_in_place():
    frames = np.random.default_rng(0).random((40, 5_000))
    tracemalloc.start()
    from_image_set(block_hankel(frames, 20), 3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * frames.nbytes


def test_unit_variance_keeps_pixels_that_vary_little_in_float32():
    """A pixel that varies by 0.5 % of the peak counts as much as any other."""
    rng = np.random.default_rng(0)
    frames = rng.random((20, 12))
    frames[:, :6] = 0.5 + 0.005 * rng.standard_normal((20, 6))
    exact = from_image_set(frames, 3, unit_variance=True)
    basis = from_image_set(frames.astype(np.float32), 3, unit_variance=True)
    assert sine(exact, basis) <= 1e-3


@pytest.mark.parametrize("n_frames, true_rank", [(3, 2), (9, 2)])
@pytest.mark.parametrize(
    "make",
    [
        lambda f, rank: from_image_set(f, 5, rank=rank),
        lambda f, rank: from_video(f, 5, 3, rank=rank),
    ],
)
def test_rank_policies(make, n_frames, true_rank):
    """Padded bases are orthonormal, keep the directions that there are, and ignore
    nothing silently unless asked to.
    """
    rng = np.random.default_rng(0)
    frames = rng.random((n_frames, true_rank)) @ rng.random((true_rank, 40))
    with pytest.raises(ValueError, match="independent frames"):
        make(frames, "raise")
    with pytest.warns(
        UserWarning, match="(?s)independent frames.*numerical rank 2.*padded"
    ):
        basis = make(frames, "warn")
    np.testing.assert_array_equal(make(frames, "pad"), basis)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=TIGHT)
    first = basis[:40]
    assert (
        np.linalg.matrix_rank(np.vstack([first.T, frames]), tol=1e3 * TIGHT) == 5
    )  # the frames lie within
    with pytest.raises(ValueError, match="numerical rank 0"):
        make(np.zeros((4, 40)), "pad")
    with pytest.raises(ValueError, match="rank must be 'raise', 'warn'.*, got 'drop'"):
        make(frames, "drop")


def test_padding_ignores_the_order_of_frames_and_differs_between_sets():
    a, b = np.random.default_rng(0).random((2, 3, 200))
    A, B = (from_image_set(frames, 6, rank="pad") for frames in (a, b))
    assert sine(from_image_set(a[::-1], 6, rank="pad"), A) <= TIGHT
    assert np.linalg.svd(A[:, 3:].T @ B[:, 3:], compute_uv=False).max() < 0.5
    single = from_sets([a[:1], b[:1], 2 * a[:1]], 6, rank="pad")
    K = projection_kernel(single)
    assert K[0, 1] < 1.5 and K[0, 2] > 6 - LOOSE


def test_observability_is_of_the_type_of_both_and_within_it():
    A = np.diag([0.5, 2]).astype(np.float32)
    blocks = observability(A, np.ones((1, 2), np.float32), 4)
    np.testing.assert_array_equal(blocks, [[0.5**k, 2**k] for k in range(4)])
    assert blocks.dtype == np.float32
    for scale, kind in ((1e20, np.float32), (1e200, np.float64)):
        with pytest.raises(ValueError, match=f"{kind.__name__}, got an overflow"):
            observability(np.full((1, 1), scale, kind), np.full((1, 1), scale, kind), 2)


def test_too_few_frames_for_the_dynamics():
    frames = np.random.default_rng(0).random((4, 30))
    with pytest.raises(
        ValueError,
        match=r"determine A \(n_states = 4\) by at least n_states \+ 1 "
        r"frames: the first 3 of 4",
    ):
        arma(frames, 4)


def test_videos_are_stacked_and_streamed():
    rng = np.random.default_rng(0)
    videos = [rng.random((n, 4, 5)) for n in (8, 9, 30, 7, 12)]
    X = from_videos(iter(videos), 3, 2, True, center=True)
    for basis, video in zip(X, videos):
        np.testing.assert_array_equal(basis, from_video(video, 3, 2, True, center=True))
    with pytest.raises(
        ValueError,
        match=r"sets\[3\] must hold n_states = 8 independent frames, "
        r"got 7 frames",
    ):
        from_videos(videos[1:2] * 3 + videos[3:], 8, 2)


def test_a_generator_is_never_held_as_a_whole():
    clips = (
        np.full((30, 10_000), 1.0) + np.random.default_rng(i).random((30, 10_000))
        for i in range(40)
    )
    tracemalloc.start()
    X = from_sets(clips, 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert X.shape == (40, 10_000, 2) and peak < 0.5 * 40 * 30 * 10_000 * 8


def test_a_large_stack_is_never_factorised():
    frames = np.random.default_rng(0).integers(0, 256, (20, 40_000), np.uint8)
    tracemalloc.start()
    basis = from_video(frames, 5, 10)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * basis.nbytes


@pytest.mark.parametrize(
    "call, error, match",
    [
        (lambda f: arma(f, 0), ValueError, "n_states must be >= 1, got 0"),
        (lambda f: arma(f, 2.0), TypeError, r"n_states must be an integer, got 2\.0"),
        (
            lambda f: arma(f, 31),
            ValueError,
            "n_states must be at most d = 30, the number of pixels in frames, got 31",
        ),
        (
            lambda f: arma(f, 11),
            ValueError,
            "frames must hold n_states = 11 independent frames, got 10 frames",
        ),
        (lambda f: from_video(f, 2, 0), ValueError, "n_blocks must be >= 1, got 0"),
        (
            lambda f: from_video(f, 2, "3"),
            TypeError,
            "n_blocks must be an integer, got '3'",
        ),
        (
            lambda f: from_video(f * np.nan, 2, 2),
            ValueError,
            "frames must be finite, got nan in frame 0",
        ),
        (
            lambda f: block_hankel(f, 11),
            ValueError,
            "n_blocks must be at most n_frames = 10, got 11",
        ),
        (lambda f: block_hankel(f, 0), ValueError, "n_blocks must be >= 1, got 0"),
        (
            lambda f: block_hankel(f[0], 1),
            ValueError,
            r"frames must have shape .*, got \(30,\)",
        ),
        (
            lambda f: observability(f, f.T, 2),
            ValueError,
            r"A must have shape \(n_states, n_states\), got \(10, 30\)",
        ),
        (
            lambda f: observability(np.eye(3), f, 2),
            ValueError,
            r"C must have shape \(d, 3\), .* got "
            r"\(10, 30\)",
        ),
        (
            lambda f: observability(np.eye(3) * np.nan, f[:, :3], 2),
            ValueError,
            "A must be finite, got nan",
        ),
        (
            lambda f: from_videos([], 2, 2),
            ValueError,
            "at least one set of frames, got none",
        ),
    ],
)
def test_bad_input(call, error, match):
    with pytest.raises(error, match=match):
        call(np.random.default_rng(0).random((10, 30)))
