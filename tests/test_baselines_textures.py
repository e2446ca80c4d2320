"""DFS and DL-Pegasos: dimensions of known sets, exponents of known measures,
invariances, and an exact solver beside the stochastic one.
"""

import tracemalloc

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from grassmann_sc.baselines import textures
from oracles import LOOSE, TIGHT, error, rarely, seeds

RNG = np.random.default_rng(0)


def smooth_noise(side=18, seed=0):
    noise = np.random.default_rng(seed).standard_normal((side, side, side))
    return 20 + np.cumsum(noise, axis=1) / 3


CLIP = smooth_noise()
SMALL = (1, 2, 3)


def box_dimensions(levels, n_levels, sides=None):
    """Dimensions of levels (a, b, c) or (a, b)."""
    levels = levels if levels.ndim == 3 else levels[None]
    lengths = [length for length in levels.shape if length > 1]
    sides = textures.usual_sides(lengths) if sides is None else sides
    return textures.box_dimensions(levels, n_levels, sides)[0]


# -------------------------------------------------------------- box-counting dimensions


def carpet(k):
    """The Sierpinski carpet of side 3^k: 0 within, -1 without."""
    inside = np.ones((1, 1), bool)
    for _ in range(k):
        inside = np.block(
            [[inside] * 3, [inside, ~inside & False, inside], [inside] * 3]
        )
    return np.where(inside, 0, -1)


@pytest.mark.parametrize("side", [16, 32, 64])
@pytest.mark.parametrize("dimension", [0, 1, 2, 3])
def test_points_lines_planes_and_cubes_have_their_dimension(side, dimension):
    levels = np.full((side,) * 3, -1)
    place = (3,) * (3 - dimension) + (slice(None),) * dimension
    for axes in [(0, 1, 2), (2, 0, 1), (1, 2, 0)]:
        levels[:] = -1
        levels.transpose(axes)[place] = 0
        assert box_dimensions(levels, 1)[0] == pytest.approx(dimension, abs=TIGHT)


def test_the_sierpinski_carpet_has_its_dimension():
    truth = np.log(8) / np.log(3)
    assert truth == pytest.approx(1.893, abs=1e-3)
    dimension = box_dimensions(carpet(5), 1, [1, 3, 9, 27])[0]
    assert dimension == pytest.approx(truth, abs=TIGHT)
    by_halves = box_dimensions(carpet(7), 1, [4, 8, 16, 32, 64])[0]
    assert by_halves == pytest.approx(truth, abs=0.05)


@rarely
@given(seeds, st.tuples(*[st.integers(8, 12)] * 3))
def test_boxes_are_counted_one_by_one(seed, shape):
    levels = np.random.default_rng(seed).integers(0, 3, shape)
    sides = np.array([1, 2, 3])
    for level, dimension in enumerate(box_dimensions(levels, 3, sides)):
        boxes = [{*map(tuple, np.argwhere(levels == level) // s)} for s in sides]
        fit = np.polyfit(np.log(sides), np.log([len(box) for box in boxes]), 1)
        assert dimension == pytest.approx(-fit[0], abs=LOOSE)


def test_dimensions_of_levels_are_those_of_each_alone():
    levels = RNG.integers(-1, 4, (16, 16, 16))
    together = box_dimensions(levels, 6)
    for level in range(6):
        alone = box_dimensions(np.where(levels == level, 0, -1), 1)[0]
        assert together[level] == pytest.approx(alone, abs=TIGHT)
    assert together[4:].tolist() == [0, 0]


# ---------------------------------------------------------------------------- exponents


def test_a_constant_measure_has_the_exponent_of_the_space():
    measure = np.full((11, 12, 13), 0.7)
    assert error(textures.fractal_exponents(measure), 3) < 1e-10
    for part in (1, 2, 3):
        assert error(textures.fractal_exponents(measure, part), 2) < 1e-10
    assert textures.fractal_exponents(measure).shape == (3, 4, 5)
    assert textures.fractal_exponents(measure, 2).shape == (3, 12, 5)


def test_exponents_of_a_point_a_line_and_a_plane():
    for dimension in (0, 1, 2):
        measure = np.zeros((9, 9, 9))
        measure[(4,) * (3 - dimension) + (slice(None),) * dimension] = 5.0
        assert textures.fractal_exponents(measure)[0, 0, 0] == pytest.approx(
            dimension, abs=1e-9
        )
    measure[:] = 0
    measure[0, 0, 0] = 1
    exponents = textures.fractal_exponents(measure, radii=(1, 4))
    assert np.isnan(exponents).all()  # nothing in the smallest cube


@rarely
@given(seeds, st.tuples(*[st.integers(0, 11)] * 3))  # whose cubes lie within a clip
def test_exponents_are_slopes_of_sums_over_cubes(seed, place):
    clip = smooth_noise(seed=seed)
    exponents = textures.fractal_exponents(clip, radii=SMALL)
    i, j, k = (at + 3 for at in place)
    sums = [
        clip[i - r : i + r + 1, j - r : j + r + 1, k - r : k + r + 1].sum()
        for r in SMALL
    ]
    slope = np.polyfit(np.log(2 * np.array(SMALL) + 1), np.log(sums), 1)[0]
    assert exponents[place] == pytest.approx(slope, abs=1e-10)
    square = textures.fractal_exponents(clip, 2, radii=SMALL)
    sums = [clip[i - r : i + r + 1, j, k - r : k + r + 1].sum() for r in SMALL]
    slope = np.polyfit(np.log(2 * np.array(SMALL) + 1), np.log(sums), 1)[0]
    assert square[i - 3, j, k - 3] == pytest.approx(slope, abs=1e-10)


def test_measures_of_a_travelling_wave():
    """f = sin(k x - w t): the flow is the speed w / k, the rest follow from
    derivatives.
    """
    t, y, x = np.mgrid[:40, :5, :200] * 1.0
    k = 0.1
    w = 0.05
    f = np.sin(k * x - w * t)
    _, change, flow, laplacian, curvature = textures.fractal_measures(f)
    inner = np.s_[2:-2, 2:-2, 3:-3]
    steep = flow[inner] > 0
    assert steep.mean() > 0.95
    assert error(flow[inner][steep], w / k) < 5e-3
    assert error(change[inner], np.abs(w * np.cos(k * x - w * t))[inner]) < 1e-4
    assert error(laplacian[inner], np.abs(k**2 * f)[inner]) < 1e-4
    assert error(curvature[inner], laplacian[inner]) < TIGHT


def test_curvature_is_the_largest_eigenvalue():
    curvature = list(textures.fractal_measures(CLIP))[4]
    f_y, f_x = np.gradient(CLIP, axis=(1, 2))
    f_yy, f_yx = np.gradient(f_y, axis=(1, 2))
    f_xx = np.gradient(f_x, axis=2)
    hessian = np.stack([np.stack([f_yy, f_yx], -1), np.stack([f_yx, f_xx], -1)], -1)
    assert error(curvature, np.abs(np.linalg.eigvalsh(hessian)).max(axis=-1)) < LOOSE


# ------------------------------------------------------------------------------ spectra


def test_a_factor_of_the_intensity_alters_nothing():
    edges = textures.exponent_edges([CLIP], radii=SMALL)
    spectrum = textures.fractal_spectrum(CLIP, edges, radii=SMALL)
    assert spectrum.shape == (4, 5, 10)
    for factor in (0.25, 8.0, 2.0**400, 2.0**-400):
        scaled = textures.fractal_spectrum(factor * CLIP, edges, radii=SMALL)
        assert np.array_equal(scaled, spectrum)


def test_a_brighter_clip_of_more_contrast_has_the_exponents_of_changes():
    other = 3.7 * CLIP + 11.0
    pairs = list(zip(textures.fractal_measures(CLIP), textures.fractal_measures(other)))
    for before, after in pairs[1:]:
        for part in range(4):
            first = textures.fractal_exponents(before, part, radii=SMALL)
            second = textures.fractal_exponents(after, part, radii=SMALL)
            assert error(first, second) < LOOSE
    first, second = (
        textures.fractal_exponents(measure, radii=SMALL) for measure in pairs[0]
    )
    assert error(first, second) > 1e-3


@pytest.mark.parametrize("axis", range(3))
def test_a_mirrored_clip_has_the_same_spectrum(axis):
    """18 voxels are left by the cubes, of which boxes of 4 take those in the middle."""
    clip = np.random.default_rng(0).random((22, 22, 22))
    edges = textures.exponent_edges([clip], radii=(1, 2))
    spectrum = textures.fractal_spectrum(clip, edges, radii=(1, 2))
    mirrored = textures.fractal_spectrum(np.flip(clip, axis), edges, radii=(1, 2))
    assert error(mirrored, spectrum) < LOOSE


def test_slices_are_taken_along_their_axis():
    turned = np.transpose(CLIP, (0, 2, 1))
    edges = textures.exponent_edges([CLIP], radii=SMALL)
    swapped = edges[[0, 1, 3, 2]]
    spectrum = textures.fractal_spectrum(CLIP, edges, radii=SMALL)
    other = textures.fractal_spectrum(turned, swapped, radii=SMALL)
    assert error(spectrum[[0, 1, 3, 2]], other) < TIGHT


def test_a_still_clip_has_no_spectrum_of_changes():
    still = np.repeat(CLIP[:1], 12, axis=0)
    edges = textures.exponent_edges([still], radii=SMALL)
    spectrum = textures.fractal_spectrum(still, edges, radii=SMALL)
    assert not spectrum[:, 1:3].any()
    assert spectrum[:, [0, 3, 4]].any(axis=2).all()
    assert error(edges[0, 1], np.linspace(0, 1, 11)) < TIGHT


def test_edges_divide_evenly_what_exponents_span():
    clips = [CLIP, smooth_noise(seed=1)]
    ends = textures.exponent_edges(clips, 1, radii=SMALL)
    assert (ends[:, :, 0] < ends[:, :, 1]).all()
    edges = textures.exponent_edges(clips, 5, radii=SMALL)
    assert edges.shape == (4, 5, 6)
    assert np.array_equal(edges[..., [0, -1]], ends)
    assert error(np.diff(edges, axis=2), np.diff(ends, axis=2) / 5) < TIGHT


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: textures.exponent_edges([0 * CLIP]), ValueError, r"clips\[0\] must vary, a con"),
        (lambda: textures.exponent_edges([CLIP, 0 * CLIP + 3]), ValueError, r"clips\[1\] must v"),
        (lambda: textures.exponent_edges([CLIP], 63), ValueError, "n_levels must be in 1..62, got"),
        (lambda: textures.exponent_edges([]), ValueError, "clips must hold at least one clip"),
        (lambda: textures.exponent_edges([CLIP[:8]]), ValueError, "at least 9 frames, rows and"),
        (lambda: textures.fractal_spectrum(CLIP[0], 0), ValueError, r"clip must have shape \(n_f"),
        (lambda: textures.fractal_spectrum(CLIP, np.zeros((4, 5, 2))), ValueError, "must ascend"),
        (lambda: textures.fractal_spectrum(CLIP, [1, 2]), ValueError, "edges must have shape"),
        (lambda: textures.exponent_edges([CLIP], radii=None), TypeError, "radii must be two"),
        (lambda: textures.exponent_edges(0.5), TypeError, "clips must be a sequence of clips"),
        (lambda: textures.exponent_edges(iter([CLIP])), TypeError, "clips must be a sequence of"),
        (lambda: textures.exponent_edges([CLIP], radii=b"ab"), TypeError, "radii must be two"),
        (lambda: textures.fractal_spectrum(CLIP, [1], radii={"a"}), TypeError, "radii must be"),
        (lambda: textures.exponent_edges([CLIP * np.nan]), ValueError, r"clips\[0\] must be fini"),
    ],
)  # fmt: skip
def test_wrong_clips_are_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


# ------------------------------------------------------------- learned sum of distances


def three_distances(n=24, seed=0):
    """Distances of use, of a little use and of none."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % 3
    apart = np.not_equal.outer(labels, labels)
    D = rng.random((3, n, n)) + np.array([0.9, 0.3, 0.0])[:, None, None] * apart
    return (D + D.swapaxes(1, 2)) / 2, labels


def all_margins(D, labels):
    n = len(labels)
    return np.array(
        [
            D[:, i, k] - D[:, i, j]
            for i in range(n)
            for j in range(n)
            for k in range(n)
            if i != j and labels[i] == labels[j] != labels[k]
        ]
    )


def exact_objective(margins, lam):
    """The minimum, between bounds 1e-5 apart, by cutting planes: the mean hinge loss is
    the largest of the linear functions that touch it, each step solves the quadratic
    programme of those known by SLSQP.
    """
    n, m = margins.shape

    def objective(w):
        return lam / 2 * w @ w + np.maximum(1 - margins @ w, 0).mean()

    planes = []
    w = np.ones(m)
    best = np.inf
    for _ in range(300):
        active = margins @ w < 1
        slope = -margins[active].sum(axis=0) / n
        best = min(best, objective(w))
        planes.append((slope, np.maximum(1 - margins @ w, 0).mean() - slope @ w))
        S = np.array([plane[0] for plane in planes])
        b = np.array([plane[1] for plane in planes])
        solution = scipy.optimize.minimize(
            lambda z: lam / 2 * z[:-1] @ z[:-1] + z[-1],
            np.append(w, best),
            method="SLSQP",
            jac=lambda z: np.append(lam * z[:-1], 1),
            bounds=[(0, None)] * (m + 1),
            options={"ftol": 1e-12, "maxiter": 200},
            constraints={
                "type": "ineq",
                "fun": lambda z: z[-1] - S @ z[:-1] - b,
                "jac": lambda z: np.hstack([-S, np.ones((len(S), 1))]),
            },
        )
        w = np.maximum(solution.x[:-1], 0)
        if best - solution.fun < 1e-7:
            break
    assert best - solution.fun < 1e-5
    return best


@rarely
@given(seeds)
def test_the_objective_is_that_of_all_triplets(seed):
    rng = np.random.default_rng(seed)
    D = rng.uniform(size=(2, 6, 6))
    y = np.arange(6) % 3
    learned = textures.distance_weights(D, y, 0.1, n_iter=200, rng=0)
    w = learned.weights
    hinges = np.maximum(1 - all_margins(D, y) @ w, 0)
    objective = 0.05 * w @ w + hinges.mean()
    assert learned.objective[-1] == pytest.approx(objective, rel=LOOSE)


@pytest.mark.parametrize("lam", [1e-3, 1e-2, 0.1, 1.0])
def test_pegasos_comes_within_a_thousandth_of_the_exact_minimum(lam):
    D, labels = three_distances()
    result = textures.distance_weights(D, labels, lam, rng=0)
    margins = all_margins(D, labels)
    objective = lam / 2 * result.weights @ result.weights
    objective += np.maximum(1 - margins @ result.weights, 0).mean()
    assert objective == pytest.approx(result.objective[-1], rel=TIGHT)
    exact = exact_objective(margins, lam)
    assert exact - 1e-5 <= objective <= exact * (1 + 1e-3)
    assert (result.weights >= 0).all()
    assert result.weights.argmax() == 0


def test_the_first_step_of_pegasos_ends_on_the_ball():
    D = np.abs(np.subtract.outer([0, 1, 5, 6], [0, 1, 5, 6]))
    result = textures.distance_weights([D], [0, 0, 1, 1], 1e-4, n_iter=1)
    assert result.weights == pytest.approx([100]) and result.objective[
        -1
    ] == pytest.approx(0.5)


def test_the_means_of_pegasos_are_weighted_by_the_step():
    """Of margins 1.5 the steps are 1 and 1/2, and (1 + 2 / 2) / 3 is the exact minimum."""
    D = 1.5 * np.not_equal.outer([0, 0, 1, 1], [0, 0, 1, 1])
    result = textures.distance_weights([D], [0, 0, 1, 1], 1.0, n_iter=2)
    assert result.weights == pytest.approx([2 / 3])


def test_the_objective_is_recorded_and_never_rises(monkeypatch):
    monkeypatch.setattr(textures, "BATCH", 50)
    D, labels = three_distances()
    result = textures.distance_weights(D, labels, n_iter=200, rng=1)
    assert result.objective[0] == 1
    assert (np.diff(result.objective) <= 0).all()
    again = textures.distance_weights(D, labels, n_iter=200, rng=1)
    assert np.array_equal(result.weights, again.weights)


def test_triplets_are_all_or_as_many_drawn(monkeypatch):
    D, labels = three_distances(12)
    rng = np.random.default_rng(0)
    margins = textures.triplet_margins(D, labels, rng)
    assert np.array_equal(margins, all_margins(D, labels))
    monkeypatch.setattr(textures, "MOST_TRIPLETS", 50)
    drawn = textures.triplet_margins(D, labels, rng)
    assert drawn.shape == (50, 3)
    assert {tuple(row) for row in drawn} <= {tuple(row) for row in margins}


def test_memory_of_drawn_triplets_is_theirs_not_that_of_all(monkeypatch):
    n = 200
    monkeypatch.setattr(textures, "MOST_TRIPLETS", 2000)
    distances = np.random.default_rng(0).random((2, n, n))
    index = np.arange(n) % 2
    tracemalloc.start()
    drawn = textures.triplet_margins(distances, index, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert drawn.shape == (2000, 2)
    assert peak < n**3 / 4  # a byte for each of the triplets


def test_useless_distances_get_no_weight():
    labels = np.arange(12) % 2
    against = 1.0 - np.not_equal.outer(labels, labels)[None]
    result = textures.distance_weights(against, labels, rng=0)
    assert result.weights.tolist() == [0]
    assert result.objective[-1] == 1


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"lam": 0}, ValueError, "lam must be positive, got 0"),
        ({"n_iter": 0}, ValueError, "n_iter must be >= 1, got 0"),
        ({"labels": np.zeros(24)}, ValueError, "labels must have two classes, .* 1 classes of 24"),
        ({"labels": np.arange(24)}, ValueError, "two members of one of them, .* 24 classes of 24"),
        ({"distances": np.zeros((24, 24))}, ValueError, r"shape \(m, N, N\), got \(24, 24\)"),
        ({"distances": np.full((1, 24, 24), np.inf)}, ValueError, "distances must be finite"),
    ],
)  # fmt: skip
def test_wrong_problems_are_refused(options, kind, message):
    D, labels = three_distances()
    with pytest.raises(kind, match=message):
        textures.distance_weights(**{"distances": D, "labels": labels, **options})


def test_measures_of_a_clip_at_the_end_of_float64_are_finite():
    clip = np.random.default_rng(0).random((9, 9, 9)) * 1e-320
    assert np.isfinite(list(textures.fractal_measures(clip))).all()


def test_edges_of_clips_span_those_of_each():
    clips = [smooth_noise(12, seed) + 5 * seed for seed in range(3)]
    each = [textures.exponent_edges([clip], 1, radii=(1, 2)) for clip in clips]
    each = np.stack(each)
    together = textures.exponent_edges(clips, 1, radii=(1, 2))
    assert np.array_equal(together[..., 0], each[..., 0].min(axis=0))
    assert np.array_equal(together[..., 1], each[..., 1].max(axis=0))
    assert (np.ptp(each, axis=0) > 0).any(axis=(0, 1)).all()


def test_one_exponent_all_over_has_a_range_and_levels():
    """The gradient of a ramp is 1: its range would be of no width."""
    ramp = np.arange(12.0)[:, None, None] + np.arange(144.0).reshape(12, 12)
    edges = textures.exponent_edges([ramp], radii=(1, 2))
    assert (np.diff(edges[:, 1]) > 0).all()
    assert textures.fractal_spectrum(ramp, edges, radii=(1, 2))[:, 1].max() > 0


def test_more_levels_than_an_integer_has_bits_are_refused():
    edges = np.broadcast_to(np.linspace(0, 5, 64), (4, 5, 64))
    with pytest.raises(
        ValueError, match="the levels of edges must be in 1..62, got 63"
    ):
        textures.fractal_spectrum(CLIP, edges, radii=SMALL)


@pytest.mark.parametrize("span, level", [([0.0, 1.0], -1), ([4.0, 5.0], 0)])
def test_exponents_beyond_the_range_belong_to_the_first_or_last_level(span, level):
    # of gradient 1
    ramp = np.arange(12.0)[:, None, None] + np.arange(144.0).reshape(12, 12)
    edges = np.broadcast_to(np.linspace(*span, 11), (4, 5, 11))
    spectrum = textures.fractal_spectrum(ramp, edges, radii=(1, 2))[:, 1]
    assert error(spectrum[:, level], [3, 2, 2, 2]) <= LOOSE
    assert np.count_nonzero(spectrum) == 4
