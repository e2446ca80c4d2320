"""LDS and CS-LDS: angles of observability subspaces of any two systems, and what a
compressive camera lets recover.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as core
from grassmann_sc.baselines import dynamics
from grassmann_sc.strategies import rotation
from oracles import LOOSE, TIGHT, error, long_bases, random_system, seeds
from textures import System, simulated_clip, texture_systems

N_BLOCKS = 500  # of the finite observability matrix that stands for the infinite one


def in_another_basis(rng, system):
    A, C = system
    T = rotation(rng, len(A)) * rng.uniform(0.3, 3, len(A))
    return np.linalg.solve(T, A @ T), C @ T


@st.composite
def some_systems(draw, n=3):
    s = draw(st.integers(1, 5))
    d = draw(st.integers(s, 8))
    rng = np.random.default_rng(draw(seeds))
    radii = [draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 0.95])) for _ in range(n)]
    return [random_system(rng, s, d, radius) for radius in radii], rng


# ----------------------------------------------------------------- distances of systems


@settings(max_examples=25)
@given(some_systems())
def test_martin_distance_is_that_of_long_observability_matrices(drawn):
    systems, _ = drawn
    bases = long_bases(systems)
    theta = core.principal_angles(bases[:, None], bases[None])
    with np.errstate(divide="ignore"):
        expected = np.sqrt(-2 * np.log(np.cos(theta)).sum(axis=-1))
    assert error(dynamics.observability_angles(systems), theta) < 1e-7
    pairs = ~np.eye(3, dtype=bool) & (theta.max(axis=-1) < 1.5)
    assert error(dynamics.martin_distances(systems)[pairs], expected[pairs]) < LOOSE


def test_martin_distance_of_well_apart_systems_to_full_accuracy():
    rng = np.random.default_rng(0)
    systems = [
        random_system(rng, 4, 20, radius) for radius in (0.3, 0.5, 0.8, 0.9, 0.95)
    ]
    bases = long_bases(systems)
    theta = core.principal_angles(bases[:, None], bases[None])
    expected = np.sqrt(-2 * np.log(np.cos(theta)).sum(axis=-1))
    assert (
        error(dynamics.martin_distances(systems, systems[::-1]), expected[:, ::-1])
        < TIGHT * 10
    )
    assert error(dynamics.observability_angles(systems), theta) < TIGHT


@settings(max_examples=25)
@given(some_systems())
def test_the_same_system_in_another_basis_is_at_distance_zero(drawn):
    systems, rng = drawn
    others = [in_another_basis(rng, system) for system in systems]
    own = range(len(systems))
    assert dynamics.martin_distances(systems, others)[own, own].max() < LOOSE
    assert dynamics.observability_angles(systems, others)[own, own].max() < LOOSE
    assert not dynamics.martin_distances(systems)[own, own].any()


def test_small_distances_are_those_of_the_difference():
    rng = np.random.default_rng(1)
    A, C = random_system(rng, 3, 10, 0.9)
    for step in (1e-3, 1e-6, 1e-9):
        near = A, C + step * rng.standard_normal(C.shape)
        basis, moved = long_bases([(A, C), near])
        theta = core.principal_angles(basis, moved)
        angles = dynamics.observability_angles([(A, C)], [near])[0, 0]
        assert error(angles, theta) < 1e-5 * theta.max()
        d = dynamics.martin_distances([near], [(A, C)])[0, 0]
        assert d == pytest.approx(np.sqrt(np.square(theta).sum()), rel=1e-5)


def test_one_state_and_orthogonal_outputs_have_closed_forms():
    system = np.array([[0.5]]), np.array([[1.0], [0.0]])
    other = np.array([[0.2]]), np.array([[3.0], [3.0]])
    cosine2 = (1 - 0.25) * (1 - 0.04) / (1 - 0.1) ** 2 / 2
    distance = dynamics.martin_distances([system], [other])[0, 0]
    assert distance == pytest.approx(np.sqrt(-np.log(cosine2)), rel=TIGHT)
    apart = np.array([[0.5]]), np.array([[0.0], [1.0]])
    assert dynamics.martin_distances([system, apart])[0, 1] == np.inf
    assert dynamics.observability_angles([system, apart])[0, 1] == pytest.approx(
        np.pi / 2
    )


def test_systems_of_both_sides_are_stabilised_alike():
    """Distances between two lists are those within both of them together."""
    rng = np.random.default_rng(0)
    systems = [
        (
            1.4 * np.linalg.qr(rng.standard_normal((2, 2)))[0] * [1, 0.5],
            rng.standard_normal((4, 2)),
        )
        for _ in range(4)
    ]
    whole = dynamics.martin_distances(systems, stabilize=True)
    between = dynamics.martin_distances(systems[:2], systems[2:], stabilize=True)
    assert error(between, whole[:2, 2:]) < LOOSE


def test_right_angles_are_told_from_rounding_and_counted_if_asked():
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((40, 40)))[0]
    A = np.diag([0.9, 0.5])
    systems = [(A, Q[:, [i, i + 1]]) for i in range(0, 12, 2)]
    apart = 1 - np.eye(6, dtype=bool)
    assert (dynamics.martin_distances(systems)[apart == 1] == np.inf).all()
    half = (A, Q[:, [1, 2]])  # one direction of two is that of systems[0]
    partial, full = (
        dynamics.martin_distances([half], systems[::3], least_cosine=1e-12)[0] ** 2
    )
    assert full == pytest.approx(-4 * np.log(1e-12), rel=TIGHT)
    assert -2 * np.log(1e-12) <= partial < 0.9 * full
    D = dynamics.martin_distances(systems, least_cosine=1e-12)
    for i in range(6):  # alone as in a batch
        alone = dynamics.martin_distances(
            systems[i : i + 1], systems, least_cosine=1e-12
        )
        assert error(alone[0], D[i]) <= TIGHT


def test_distances_are_symmetric_and_keep_float32():
    rng = np.random.default_rng(2)
    systems = [random_system(rng, 3, 6, 0.9) for _ in range(4)]
    D = dynamics.martin_distances(systems)
    assert np.array_equal(D, D.T)
    assert error(D, dynamics.martin_distances(systems, list(systems))) < 1e-10
    single = [(np.float32(A), np.float32(C)) for A, C in systems]
    distances = dynamics.martin_distances(single)
    assert distances.dtype == np.float32
    assert error(distances, D) < 1e-4


def test_tiles_do_not_change_the_distances(monkeypatch):
    rng = np.random.default_rng(3)
    systems = [random_system(rng, 2, 4, 0.8) for _ in range(7)]
    D = dynamics.martin_distances(systems)
    monkeypatch.setattr(dynamics, "COMPLEX_AT_A_TIME", 36)
    assert error(dynamics.martin_distances(systems), D) < TIGHT
    assert error(dynamics.martin_distances(systems, systems[2:])[:, 1], D[:, 3]) < 1e-10


def test_unstable_systems_are_refused_or_scaled_back():
    rng = np.random.default_rng(4)
    good = random_system(rng, 2, 5, 0.9)
    bad = random_system(rng, 2, 5, 1.2)
    with pytest.raises(
        ValueError, match=r"systems\[1\] must be stable, .* got 1.2; stabilize"
    ):
        dynamics.martin_distances([good, bad])
    distances = dynamics.martin_distances([good, bad], stabilize=True)
    scaled = bad[0] * (1 - 2.0**-30) / 1.2, bad[1]
    assert error(distances, dynamics.martin_distances([good, scaled])) < 1e-5
    assert np.isfinite(distances).all()


@pytest.mark.parametrize(
    "systems, kind, message",
    [
        ([], ValueError, "systems must hold at least one system, got none"),
        (3, TypeError, "systems must be a sequence of pairs"),
        ([np.eye(2)[0]], TypeError, r"systems\[0\] must be a pair \(A, C\), got ndarray"),
        ([(np.ones((2, 3)), np.eye(2))], ValueError, r"A of systems\[0\] must have shape \(s, s\)"),
        ([(np.zeros((2, 2)), np.ones((4, 3)))], ValueError, r"C of systems\[0\] .* \(d, 2\), got"),
        ([(np.zeros((1, 1)), np.ones((4, 1))), (np.zeros((1, 1)), np.ones((5, 1)))], ValueError,
         r"share d and s: systems\[0\] has \(4, 1\), systems\[1\] has \(5, 1\)"),
        ([(np.zeros((2, 2)), np.ones((4, 2)))], ValueError, r"systems\[0\] must be observable"),
        ([(np.full((1, 1), np.nan), np.ones((4, 1)))], ValueError, "must be finite"),
    ],
)  # fmt: skip
def test_wrong_systems_are_refused(systems, kind, message):
    with pytest.raises(kind, match=message):
        dynamics.martin_distances(systems)


# ------------------------------------------------------------- compressive measurements


def decibels(frames, recovered):
    return 20 * np.log10(np.linalg.norm(frames) / np.linalg.norm(frames - recovered))


def noiseless(side=20, n_frames=40, seed=0):
    """A system whose C is sparse in the DCT, and its clip without any noise."""
    system = texture_systems(side, n_coefficients=20, seed=seed)[3]
    return system, simulated_clip(system, n_frames, 0, seed, driven=False)


@pytest.mark.parametrize("compression, n_common", [(10, 8), (16, 5)])
def test_noiseless_systems_are_recovered(compression, n_common):
    system, clip = noiseless()
    total = round(400 / compression)
    measurements = dynamics.compress(clip, n_common, total - n_common)
    model = dynamics.recover(measurements, 4, 20)
    states = clip.reshape(len(clip), -1) @ np.linalg.pinv(system.C).T
    theta = core.principal_angles(np.linalg.qr(states)[0], model.states)
    assert theta.max() < 1e-6
    assert dynamics.martin_distances([system[:2]], [(model.A, model.C)])[0, 0] < 1e-6
    assert model.residual < 1e-6
    assert decibels(clip, model.frames) > 120
    assert error(model.frames.reshape(len(clip), -1), model.states @ model.C.T) < TIGHT
    eigenvalues = [np.sort_complex(np.linalg.eigvals(A)) for A in (system.A, model.A)]
    assert error(*eigenvalues) < 1e-6


def test_all_pixels_seen_are_all_pixels_recovered():
    """Without compression or sparsity the recovery is the rank-s approximation of the
    clip.
    """
    rng = np.random.default_rng(0)
    clip = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 36))
    measurements = dynamics.compress(clip.reshape(12, 6, 6), 36, 36)
    model = dynamics.recover(measurements, 3, 36)
    assert error(model.frames.reshape(12, 36), clip) < LOOSE


def test_measurements_keep_norms_on_average_and_do_not_depend_on_later_frames():
    _, clip = noiseless()
    measurements = dynamics.compress(clip, 30, 60)
    again = dynamics.compress(clip[:11], 30, 60)
    assert np.array_equal(measurements.innovations[:11], again.innovations)
    assert np.array_equal(measurements.common[:11], again.common)
    assert np.linalg.norm(measurements.innovations) == pytest.approx(
        np.linalg.norm(clip), rel=0.1
    )
    assert np.array_equal(
        dynamics.compress(2 * clip, 30, 60).common, 2 * measurements.common
    )


def test_a_hopeless_compression_is_told_by_the_residual():
    rng = np.random.default_rng(0)
    A, C = random_system(rng, 4, 400, 0.95)
    clip = simulated_clip(System(A, C, 0.3), 40, 0, 0)  # C of white noise is not sparse
    model = dynamics.recover(dynamics.compress(clip, 8, 32), 4)
    assert model.residual > max(0.8, dynamics.HOPELESS)
    assert decibels(clip, model.frames) < 3
    _, clip = noiseless()
    model = dynamics.recover(dynamics.compress(clip, 8, 32), 4)
    assert model.residual < 1e-6


@pytest.mark.parametrize("exponent", [-400, 400])
def test_a_recovery_scales_with_the_clip(exponent):
    """By powers of two, which are exact."""
    _, clip = noiseless(n_frames=20)
    model = dynamics.recover(dynamics.compress(clip, 8, 32), 4)
    scaled = dynamics.recover(dynamics.compress(np.ldexp(clip, exponent), 8, 32), 4)
    assert scaled.residual == model.residual < 1e-6
    assert np.array_equal(scaled.A, model.A)
    assert np.array_equal(scaled.C, np.ldexp(model.C, exponent))
    assert np.array_equal(scaled.frames, np.ldexp(model.frames, exponent))


def test_more_measurements_recover_a_noisy_clip_better():
    clip = simulated_clip(texture_systems(20)[2], 30, 0.1, 0)
    snr = []
    for compression in (20, 10, 4):
        total = 400 // compression
        model = dynamics.recover(dynamics.compress(clip, 6, total - 6), 4, 16)
        snr.append(decibels(clip, model.frames))
    assert snr == sorted(snr)
    rows = clip.reshape(30, -1)
    U, values, V = np.linalg.svd(rows, full_matrices=False)
    # of any system of 4 states
    best = decibels(rows, U[:, :4] * values[:4] @ V[:4])
    assert 10 < snr[-1] <= best


@pytest.mark.parametrize(
    "arguments, kind, message",
    [
        (
            (4, 50),
            ValueError,
            "measurements must be at least .* too strong a compression",
        ),
        ((9,), ValueError, r"n_states must be in 1\.\.8, got 9"),
        ((4, 500), ValueError, r"n_coefficients must be in 1\.\.400, got 500"),
        ((1.5,), TypeError, "n_states must be an integer, got 1.5"),
    ],
)
def test_wrong_recoveries_are_refused(arguments, kind, message):
    _, clip = noiseless(n_frames=20)
    measurements = dynamics.compress(clip, 8, 4)
    with pytest.raises(kind, match=message):
        dynamics.recover(measurements, *arguments)


def test_a_clip_of_one_frame_is_not_recovered():
    measurements = dynamics.compress(np.ones((1, 6, 6)), 2, 4)
    with pytest.raises(ValueError, match="of two frames or more, got 1"):
        dynamics.recover(measurements, 2)


def test_clips_without_states_are_refused():
    constant = np.ones((10, 6, 6))
    measurements = dynamics.compress(constant, 4, 10)
    with pytest.raises(
        ValueError, match="n_states = 2 independent states, got 1: .* too little"
    ):
        dynamics.recover(measurements, 2, 2)
    with pytest.raises(
        ValueError, match="measurements must hold a signal, got only zeros"
    ):
        dynamics.recover(dynamics.compress(0 * constant, 4, 10), 1)
    with pytest.raises(
        TypeError, match="measurements must be what compress gives, got ndarray"
    ):
        dynamics.recover(constant, 2)
    with pytest.raises(ValueError, match=r"n_common must be in 1\.\.36, got 37"):
        dynamics.compress(constant, 37, 10)
    with pytest.raises(
        ValueError, match=r"frames must have shape \(n_frames, height, width\)"
    ):
        dynamics.compress(constant.reshape(10, 36), 4, 10)


def test_a_pair_of_slow_systems_is_as_far_beside_faster_ones():
    """Each pair is summed until its own terms are small."""

    def turn(radius):
        return radius * np.array(
            [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]]
        )

    C, B, E = np.random.default_rng(0).standard_normal((3, 6, 2))
    slow = [(turn(0.99999), C), (turn(0.99999), C + 1e-9 * E)]
    fast = [(turn(0.1), B), (turn(0.1), B + 3e-3 * E)]
    alone = dynamics.martin_distances(slow)[0, 1]
    assert dynamics.martin_distances(slow + fast)[0, 1] == pytest.approx(
        alone, rel=1e-3
    )
    larger = (turn(0.99999), C + 1e-6 * E)
    assert 1e3 * alone == pytest.approx(
        dynamics.martin_distances([slow[0], larger])[0, 1], rel=1e-2
    )
    angles = dynamics.observability_angles(slow)[0, 1]
    beside = dynamics.observability_angles(slow + fast)[0, 1]
    assert beside == pytest.approx(angles, rel=1e-2)
