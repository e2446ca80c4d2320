"""Distances of affine and convex hulls against direct solutions, and their laws."""

import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from grassmann_sc import kernels
from grassmann_sc.baselines import hulls
from grassmann_sc.strategies import rotation
from oracles import (
    LOOSE,
    TIGHT,
    affine_distance,
    clouds,
    convex_distance,
    directions,
    each_pair,
    error,
    rarely,
    seeds,
)

affine = hulls.affine_hull_distances
convex = hulls.convex_hull_distances
pytestmark = pytest.mark.filterwarnings("error")
LINE = np.array([[0.0, 0, 0], [1, 0, 0]])
HADAMARD = np.array([[1.0, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]])


def some_sets(seed):
    """Two lists of sets of frames."""
    rng = np.random.default_rng(seed)
    return clouds(rng, 7, 20), clouds(rng, 6, 20)


RNG = np.random.default_rng(0)
SETS, OTHERS = some_sets(0)


# ------------------------------------------------------------------------- affine hulls


@pytest.mark.parametrize("share", [0.5, 0.98, 1.0])
@rarely
@given(seed=seeds)
def test_ahisd_is_the_least_squares_distance(share, seed):
    X, Y = some_sets(seed)
    explicit = each_pair(affine_distance, X, Y, share)
    assert error(affine(X, Y, share=share), explicit) < 1e-9


@pytest.mark.parametrize("k", [0, 1, 3])
@rarely
@given(seed=seeds)
def test_the_dimension_is_that_of_each_hull(k, seed):
    sets = [frames for frames in some_sets(seed)[0] if len(frames) > k]
    means = [directions(frames, k) for frames in sets]
    distances = affine(sets, dimension=k)
    for i, (mean, U) in enumerate(means):
        for j, (other, W) in enumerate(means):
            offset = mean - other
            if k and i != j:
                both = np.hstack([U, W])
                offset = offset - both @ np.linalg.lstsq(both, offset, rcond=None)[0]
            assert distances[i, j] == pytest.approx(np.linalg.norm(offset), abs=1e-9)


@pytest.mark.parametrize("k, share", [(1, 0.5), (2, 0.8), (3, 1.0)])
def test_a_share_that_k_directions_hold_exactly_takes_k(k, share):
    rng = np.random.default_rng(0)
    for _ in range(50):
        turn = np.linalg.qr(rng.standard_normal((5, 3)))[0].T
        frames = HADAMARD[:, 1:] * np.sqrt([5, 3, 2]) @ turn
        pair = [frames, frames + rng.standard_normal(5)]
        expected = affine(pair, dimension=k)
        assert error(affine(pair, share=share), expected) < 1e-9


def test_known_affine_distances():
    parallel = LINE + [5, 3, 4]
    skew = np.array([[7.0, -1, 2], [7, 1, 2]])
    point = np.array([[9.0, 3, 4]])
    plane = np.array([[0.0, 0, 7], [1, 0, 7], [0, 1, 7]])
    distances = affine([LINE], [parallel, skew, point, plane], share=1.0)
    assert error(distances, [[5, 2, 5, 7]]) < TIGHT


@given(seeds, st.sampled_from([1e-7, 1e-4, 1e-1]))
def test_near_hulls_are_told_apart_to_rounding(seed, offset):
    """Two hulls of the same directions, and two of nearly the same, far from the
    origin.
    """
    rng = np.random.default_rng(seed)
    frames = rng.standard_normal((4, 9))
    normal = np.linalg.svd(frames - frames.mean(axis=0))[2][-1]
    near = rng.permutation(frames) + offset * normal
    distances = affine([frames + 3], [near + 3], share=1.0)
    assert error(distances / offset, 1) < 1e-6  # of frames of which 1e-16 is known
    tilted = near + 1e-5 * rng.standard_normal((4, 9))
    explicit = affine_distance(frames, tilted, 1.0)
    assert error(affine([frames], [tilted], share=1.0), explicit) < 1e-9


def test_kernel_hulls_at_small_angles_and_distances_are_told_apart():
    """A millionth apart, and lines that cross at a distance of 1 by an angle of a
    hundredth.
    """
    near = affine([LINE], [LINE + [0, 0, 2e-6]], kernel=kernels.linear())
    assert near / 2e-6 == pytest.approx(1, abs=1e-3)
    crossing = np.array([[3.0, 5, 1], [4, 5.01, 1]])
    assert affine([LINE], [crossing], kernel=kernels.linear()) == pytest.approx(
        1, abs=1e-6
    )


def test_kernel_hulls_are_hulls_of_features():
    """(a^T b)^2 is the inner product of all a_i a_j."""
    features = [
        np.einsum("ni,nj->nij", frames, frames).reshape(len(frames), -1)
        for frames in (*SETS, *OTHERS)
    ]
    kernel = kernels.polynomial(2, 0.0)
    X = features[:7]
    Y = features[7:]
    assert error(affine(SETS, OTHERS, kernel=kernel), affine(X, Y)) < 1e-7
    assert error(convex(SETS, OTHERS, kernel=kernel), convex(X, Y)) < 1e-7
    assert error(convex(SETS, OTHERS, kernel=kernel, bound=1.0), convex(X, Y)) < 1e-7


@pytest.mark.parametrize("distances", [affine, convex])
def test_kernel_hulls_of_the_linear_kernel_are_the_plain_ones(distances):
    plain = distances(SETS, OTHERS)
    assert error(distances(SETS, OTHERS, kernel=kernels.linear()), plain) < 1e-9
    assert error(distances(SETS, kernel=lambda A, B: A @ B.T), distances(SETS)) < 1e-9


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_share_counts_the_largest_variances_with_a_kernel_too(share):
    linear = affine(SETS, OTHERS, share=share, kernel=kernels.linear())
    assert error(linear, affine(SETS, OTHERS, share=share)) < 1e-9


# ------------------------------------------------------------------------- convex hulls


@pytest.mark.parametrize("bound", [1.0, 0.5, 0.4])
@rarely
@given(seed=seeds)
def test_chisd_is_that_of_a_quadratic_programme_and_certified(bound, seed):
    X, Y = (
        [frames for frames in sets if len(frames) * bound >= 1]
        for sets in some_sets(seed)
    )
    result = convex(X, Y, bound=bound, return_info=True)
    assert error(result.distances, each_pair(convex_distance, X, Y, bound)) < 1e-7
    assert result.gap.min() >= -TIGHT
    assert result.gap.max() < 1e-9
    assert result.n_iter.max() > 1


@given(seeds)
def test_the_certificate_separates_any_two_sets(seed):
    """Frames of few dimensions and repeated ones: distance and gap bound the true
    distance.
    """
    rng = np.random.default_rng(seed)
    X = clouds(rng, 2, 4, most=6, apart=3)
    Y = [
        frames[rng.integers(0, len(frames), 9)]
        for frames in clouds(rng, 2, 4, most=6, apart=3)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = convex(X, Y, return_info=True)
    explicit = each_pair(convex_distance, X, Y)
    scale = max(np.abs(frames).max() for frames in [*X, *Y])
    assert error(result.distances, explicit) < 1e-6 * scale
    assert (result.distances - result.gap <= explicit + 1e-7 * scale).all()


def faced(rng, size):
    """Whole numbers: frames whose first entry is >= 0, those where it is 0 about a
    cube.
    """
    cube = np.stack(np.meshgrid(*[[-size, size]] * 3), axis=-1).reshape(8, 3)
    face = np.hstack(
        [np.zeros((8, 1)), cube + rng.integers(-size // 2, size // 2 + 1, 3)]
    )
    far = rng.integers(0, 2 ** rng.integers(1, 14), (3, 1))
    return np.vstack([face, np.hstack([far, rng.integers(-999, 1000, (3, 3))])])


@given(seeds, st.integers(0, 30), st.integers(-20, 4), st.integers(1, 10))
@example(793, 6, -4, 6)  # where the rounding of products is the larger part
@example(1951, 27, -11, 10)
def test_the_certificate_holds_against_exact_arithmetic(seed, shift, apart, size):
    """Frames that float64 has exactly, turned and far from the origin: two faces are
    2^apart from each other.
    """
    rng = np.random.default_rng(seed)
    top = faced(rng, 2**size)
    bottom = -faced(rng, 2**size) - [2.0**apart, 0, 0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = convex(
            [top @ HADAMARD + 2.0**shift],
            [bottom @ HADAMARD + 2.0**shift],
            return_info=True,
        )
    assert abs(result.distances - 2 * 2.0**apart) <= result.gap


def test_the_certificate_knows_the_rounding_of_the_answer():
    single = [np.float32(frames) for frames in SETS]
    result = convex(single, return_info=True)
    exact = convex([np.float64(frames) for frames in single])
    assert (np.abs(result.distances - exact) <= result.gap).all()
    assert result.gap.max() < 1e-5


def test_the_certificate_knows_the_rounding_of_frames():
    """Points whose shift rounds them."""
    points = np.random.default_rng(0).standard_normal((20, 1, 3))
    plain = convex(points)
    off = ~np.eye(20, dtype=bool)
    for shift in (1e4, 1e8):
        shifted = convex(points + shift, return_info=True)
        assert (np.abs(shifted.distances - plain) <= shifted.gap).all()
        assert shifted.gap.max() < 1e-15 * shift
    assert error(shifted.distances[off], plain[off]) > 1e-9


def test_the_certificate_is_the_same_whichever_set_comes_first():
    """One entry of many is large, so that the rounding of the far frames is most of the
    gap.
    """
    near = np.random.default_rng(0).standard_normal((2, 10_000))
    far = near + 1e8 * (np.arange(10_000) == 7)
    gap = convex([near], [far], return_info=True).gap
    assert error(gap, convex([far], [near], return_info=True).gap) < 0.1 * gap
    assert gap > 1e8 * 100 * np.finfo(float).eps


@pytest.mark.parametrize("distances", [affine, convex])
def test_points_that_rounding_alone_tells_apart_meet(distances):
    point = np.full((1, 3), 1e8)
    with pytest.warns(UserWarning, match="1 of 2 pairs"):
        values = distances([point], [np.nextafter(point, 0), point + 1e-6])
    assert values[0, 0] == 0
    assert values[0, 1] > 1e-6


def test_known_convex_distances():
    triangle = np.array([[0.0, 0], [4, 0], [0, 4]])
    beyond = np.array([[3.0, 3], [9, 9]])
    above = np.array([[1.0, 5], [-1, 5]])
    corner = np.array([[-3.0, -4]])
    distances = convex([triangle], [beyond, above, corner])
    assert error(distances, [[np.sqrt(2), 1, 5]]) < LOOSE


def test_a_bound_shrinks_hulls_to_their_means():
    same = [frames[:4] for frames in SETS if len(frames) >= 4]
    means = np.array([frames.mean(axis=0) for frames in same])
    assert (
        error(convex(same, bound=0.25), np.linalg.norm(means[:, None] - means, axis=2))
        < LOOSE
    )
    grid = [convex(same, bound=bound) for bound in (0.25, 0.3, 0.5, 0.7, 1.0)]
    assert all((a >= b - LOOSE).all() for a, b in zip(grid, grid[1:]))


def test_a_bound_of_one_over_the_number_of_frames_leaves_the_means():
    """Whatever rounding makes of 1 / 49 times 49."""
    sets = np.random.default_rng(0).standard_normal((2, 49, 5))
    distance = hulls.convex_hull_distances(sets, bound=1 / 49)[0, 1]
    assert error(distance, np.linalg.norm(np.subtract(*sets.mean(axis=1)))) < LOOSE


def test_affine_hulls_contain_convex_ones():
    assert (affine(SETS, OTHERS, share=1.0) <= convex(SETS, OTHERS) + LOOSE).all()


# --------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("distances", [affine, convex])
def test_motions_and_the_order_of_frames_say_nothing(distances):
    rng = np.random.default_rng(1)
    turn = rotation(rng, 20)
    shift = 3 * rng.standard_normal(20)
    moved = [
        [2 * (rng.permutation(frames) @ turn + shift) for frames in sets]
        for sets in (SETS, OTHERS)
    ]
    plain = distances(SETS, OTHERS)
    assert error(distances(*moved), 2 * plain) < LOOSE
    assert error(distances(OTHERS, SETS).T, plain) < LOOSE


@pytest.mark.parametrize("distances", [affine, convex])
def test_within_a_set_of_sets_the_matrix_is_symmetric(distances):
    within = distances(SETS)
    assert np.array_equal(within, within.T)
    assert not within.diagonal().any()
    off = ~np.eye(7, dtype=bool)
    with pytest.warns(UserWarning, match="7 of 49 pairs"):
        between = distances(SETS, [frames.copy() for frames in SETS])
    assert error(within[off], between[off]) < LOOSE


@pytest.mark.parametrize("far", [1e3, 1e7, 1e100, 1e-130])
@pytest.mark.parametrize("distances", [affine, convex])
def test_the_distance_of_two_sets_says_nothing_of_a_third(distances, far):
    third = far * (SETS[0] + 1)
    alone = distances(SETS)
    assert error(distances([*SETS, third])[:-1, :-1], alone) < TIGHT
    assert error(distances([third, *SETS])[1:, 1:], alone) < TIGHT
    with_query = distances([third, *OTHERS], [*SETS, third + far])
    assert error(with_query[1:, :-1], distances(OTHERS, SETS)) < TIGHT


@pytest.mark.parametrize("distances", [affine, convex])
def test_a_shift_of_all_frames_costs_what_it_rounds(distances):
    plain = distances(SETS, OTHERS)
    for shift in (1e4, 1e8):
        shifted = distances(
            [frames + shift for frames in SETS], [frames + shift for frames in OTHERS]
        )
        assert error(shifted, plain) < 100 * shift * np.finfo(float).eps


def test_means_of_many_frames_far_away_are_exact():
    """Two parallel planes; the running sum of so many numbers has lost seven digits."""
    frames = np.random.default_rng(0).standard_normal((20_000, 3))
    frames[:, 2] = 1e8 / 7
    distance = affine([frames], [frames[:7000] + [0, 0, 1]])
    assert error(distance, 1) < 1e8 * np.finfo(float).eps


@pytest.mark.parametrize("c", [1e-135, 1e-99, 1e138])
@pytest.mark.parametrize("distances", [affine, convex])
def test_distances_scale_with_the_frames(distances, c):
    plain = distances(SETS)
    assert error(distances([c * frames for frames in SETS]) / c, plain) < LOOSE
    beside = distances([*[c * frames for frames in SETS], SETS[0]])
    assert error(beside[:-1, :-1] / c, plain) < LOOSE
    assert (
        error(
            beside[-1, :-1] / beside.max(),
            distances([SETS[0]], [c * frames for frames in SETS]) / beside.max(),
        )
        < LOOSE
    )


@pytest.mark.parametrize("tile", [1, 100])
@pytest.mark.parametrize("distances", [affine, convex])
@pytest.mark.parametrize("kernel", [None, kernels.rbf(0.05)])
def test_tiles_do_not_show(distances, kernel, tile, monkeypatch):
    whole = distances(SETS, OTHERS, kernel=kernel)
    within = distances(SETS, kernel=kernel)
    monkeypatch.setattr(hulls, "PRODUCTS_AT_A_TIME", tile)
    assert error(distances(SETS, OTHERS, kernel=kernel), whole) < LOOSE
    assert error(distances(SETS, kernel=kernel), within) < LOOSE


@pytest.mark.parametrize("distances", [affine, convex])
def test_hulls_of_one_frame_and_of_repeated_frames_are_points(distances):
    points = np.random.default_rng(0).standard_normal((5, 3))
    sets = [np.repeat(point[None], 1 + i % 3, axis=0) for i, point in enumerate(points)]
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    assert error(distances(sets), apart) < LOOSE
    assert error(distances(sets, kernel=kernels.linear()), apart) < LOOSE


@pytest.mark.parametrize("distances", [affine, convex])
def test_float32_stays_float32_and_images_are_frames(distances):
    single = [np.float32(frames) for frames in SETS]
    assert distances(single).dtype == np.float32
    assert error(distances(single), distances(SETS)) < 1e-4
    assert distances(single, OTHERS).dtype == np.float64
    images = [frames.reshape(-1, 4, 5) for frames in SETS]
    assert np.array_equal(distances(images), distances(SETS))


# ----------------------------------------------------------------------------- the trap


CROSSING = np.array([[0.5, -1.0, 0], [0.5, 1, 0]])


@pytest.mark.parametrize("kernel", [None, kernels.linear()])
@pytest.mark.parametrize("distances", [affine, convex])
def test_hulls_that_meet_are_told_once_and_have_distance_0(distances, kernel):
    with pytest.warns(
        UserWarning, match="1 of 2 pairs of .* hulls meet: .* 0, .* lower"
    ) as record:
        values = distances([LINE], [CROSSING, CROSSING + [0, 0, 2]], kernel=kernel)
    assert values[0, 0] == 0
    assert values[0, 1] == pytest.approx(2, abs=LOOSE)
    assert len(record) == 1


def test_affine_hulls_of_many_frames_in_a_small_space_all_meet_but_convex_ones_do_not():
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((9, 4)) + 9 * centre for centre in np.eye(4)]
    with pytest.warns(UserWarning, match="6 of 6 pairs of affine hulls meet"):
        assert not affine(sets, share=1.0).any()
    assert convex(sets)[~np.eye(4, dtype=bool)].min() > 1


def test_hulls_that_meet_do_so_by_inner_products_alone_too():
    """Directions that are nearly dependent magnify rounding, which is no distance."""
    rng = np.random.default_rng(5)
    sets = [rng.standard_normal((9, 4)) + rng.standard_normal(4) for _ in range(20)]
    for kernel in ("linear", kernels.polynomial(2, 1.0)):  # of 4 and 15 dimensions
        with pytest.warns(UserWarning, match="190 of 190 pairs of affine hulls meet"):
            assert not affine(sets, share=1.0, kernel=kernel).any()
    apart = [rows[:4] for rows in sets]  # six dimensions of 15
    assert affine(apart, share=1.0, kernel=kernel)[~np.eye(20, dtype=bool)].min() > 0.1


def test_what_a_kernel_remembers_stays_as_it_was():
    kept = {}

    def kernel(A, B):
        key = A.tobytes(), B.tobytes()
        if key not in kept:
            kept[key] = kernels.rbf(0.2)(A, B)
            kept[key].flags.writeable = False
        return kept[key]

    expected = affine(SETS, share=0.9, kernel=kernels.rbf(0.2))
    for _ in range(2):
        assert error(affine(SETS, share=0.9, kernel=kernel), expected) <= LOOSE


def test_too_few_steps_are_told():
    with pytest.warns(
        UserWarning, match=r"did not converge \(max_iter = 1\): worst gap \d+"
    ):
        result = convex(SETS, OTHERS, max_iter=1, return_info=True)
    exact = convex(SETS, OTHERS)
    assert (result.distances >= exact - LOOSE).all()
    assert (result.distances - result.gap <= exact + LOOSE).all()


# ------------------------------------------------------------------------------- memory


def peak_of(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_memory_of_convex_hulls_grows_with_the_frames_not_their_squares(monkeypatch):
    rng = np.random.default_rng(0)
    many = rng.standard_normal((2000, 3))
    sets = [many + [9, 0, 0], *rng.standard_normal((300, 9, 3))]
    distances = convex(sets[:1], sets[1:])
    monkeypatch.setattr(hulls, "PRODUCTS_AT_A_TIME", 2**14)
    assert peak_of(lambda: convex(sets[:1], sets[1:])) < 8 * many.nbytes + 2**19
    assert error(convex(sets[:1], sets[1:]), distances) < LOOSE


def test_the_matrices_of_sets_in_a_kernel_are_made_a_tile_at_a_time(monkeypatch):
    sets = np.random.default_rng(0).standard_normal((60, 90, 3))
    monkeypatch.setattr(hulls, "PRODUCTS_AT_A_TIME", 2**12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peak = peak_of(lambda: convex(sets, kernel=kernels.rbf(0.05), max_iter=1))
    assert peak < 8 * 30 * 90**2  # half of the Gram matrices of all sets


@pytest.mark.parametrize("distances", [affine, convex])
def test_sets_too_large_for_a_kernel_are_refused_before_their_matrix(
    distances, monkeypatch
):
    monkeypatch.setattr(hulls, "MOST_FRAMES", 5)
    with pytest.raises(
        ValueError,
        match=r"sets must have at most 5 frames with a kernel, got 6 in "
        r"set 1, .* takes 0.0 GB: take fewer frames",
    ):
        distances([np.eye(5), np.eye(6, 5)], kernel=kernels.linear())
    assert distances([np.eye(5), np.eye(5) + 9], kernel=kernels.linear()).max() > 1


# -------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (
            lambda: affine([]),
            ValueError,
            "sets must hold at least one set of frames, got none",
        ),
        (
            lambda: affine(SETS, []),
            ValueError,
            "sets2 must hold at least one set of frames, got none",
        ),
        (
            lambda: affine("abc"),
            TypeError,
            "sets must be a sequence of arrays of frames, got str",
        ),
        (
            lambda: convex([np.eye(3), np.eye(4)]),
            ValueError,
            r"sets must share one d: sets\[0\] has d = 3, sets\[1\] has d = 4$",
        ),
        (
            lambda: convex([np.ones((7, 3)), np.ones((7, 4))]),
            ValueError,
            r"^frames are rows, .* d = 3, sets\[1\] has d = 4$",
        ),
        (
            lambda: convex(SETS, [np.eye(4)]),
            ValueError,
            "must have the same d, got 20 and 4",
        ),
        (
            lambda: affine([np.eye(3)[0]]),
            ValueError,
            r"sets\[0\] must have shape \(n_frames, d\)",
        ),
        (
            lambda: affine([np.eye(3), np.inf * np.ones((2, 3))]),
            ValueError,
            r"sets\[1\] must be finite, got inf",
        ),
        (
            lambda: affine([np.eye(3), np.eye(3)[:2]], dimension=2),
            ValueError,
            "dimension must be below the number of independent frames of each set, got 2 for "
            "set 1 of 2 frame.* dimension 1",
        ),
        (
            lambda: affine(
                [np.eye(3), np.eye(3)[[0, 0, 0, 1]]],
                dimension=2,
                kernel=kernels.linear(),
            ),
            ValueError,
            "dimension must be below .* got 2 for set 1 of 4 frame.* dimension 1",
        ),
        (
            lambda: affine(SETS, dimension=-1),
            ValueError,
            "dimension must be >= 0, got -1",
        ),
        (
            lambda: affine(SETS, share=0),
            ValueError,
            r"share must be in \(0, 1\], got 0",
        ),
        (
            lambda: affine(SETS, share=1.1),
            ValueError,
            r"share must be in \(0, 1\], got 1.1",
        ),
        (
            lambda: affine(SETS, kernel=kernels.rbf),
            TypeError,
            "kernel must be a callable .*, or a name, got .*rbf'>",
        ),
        (
            lambda: affine(SETS, kernel=lambda A, B: np.ones(3)),
            ValueError,
            r"kernel\(A, B\) must have shape \(\d+, \d+\), .* got \(3,\)",
        ),
        (
            lambda: convex(SETS, bound=0),
            ValueError,
            r"bound must be in \(0, 1\], got 0",
        ),
        (
            lambda: convex(SETS, bound=2),
            ValueError,
            r"bound must be in \(0, 1\], got 2",
        ),
        (
            lambda: convex([np.eye(3), np.eye(3)[:1]], bound=0.5),
            ValueError,
            r"bound must be at least 1 / n_frames of each set, got 0.5 for set 1 of 1 frame",
        ),
        (lambda: convex(SETS, tol=0), ValueError, "tol must be positive, got 0"),
        (lambda: convex(SETS, max_iter=0), ValueError, "max_iter must be >= 1, got 0"),
        (
            lambda: convex(SETS, return_info="no"),
            TypeError,
            "return_info must be True or False",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
