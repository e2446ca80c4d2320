"""PM and TCCA: known answers and invariances of factors of tensors and of their
correlations.
"""

import itertools

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as core
from grassmann_sc import subspaces
from grassmann_sc.baselines import sets, tensors
from grassmann_sc.strategies import rotation
from oracles import LOOSE, TIGHT, error, rarely, seeds


def some_clips(seed):
    """Two arrays of clips."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 6, 5, 7)), rng.standard_normal((3, 6, 5, 7))


RNG = np.random.default_rng(0)
X, Y = some_clips(0)


def distances(clips, others=None, p=None, metric="chordal"):
    factors = tensors.mode_bases(clips, p)
    return tensors.product_distances(
        factors, None if others is None else tensors.mode_bases(others, p), metric
    )


def correlations(clips, clips2=None, p=5, modes=tensors.MODES):
    parts = [
        None if some is None else tensors.tensor_parts(some, p, modes)
        for some in (clips, clips2)
    ]
    return tensors.tensor_correlations(*parts)


def mixed(clips, axis, Q):
    """Each clip with the places of an axis (0, 1, 2) mixed by Q."""
    return np.moveaxis(np.tensordot(Q, clips, (1, 1 + axis)), 0, 1 + axis)


# -------------------------------------------------------------------- product manifolds


@pytest.mark.parametrize("metric", ["chordal", "geodesic"])
@pytest.mark.parametrize("p", [None, 3, (2, 5, 1)])
@rarely
@given(seed=seeds)
def test_product_distance_is_that_of_the_angles_of_three_unfoldings(p, metric, seed):
    X, Y = some_clips(seed)
    values = distances(X, Y, p, metric)
    ranks = (6, 5, 7) if p is None else np.broadcast_to(p, 3)
    for i in range(len(X)):
        for j in range(len(Y)):
            total = 0.0
            for k in range(3):
                bases = [
                    np.linalg.svd(np.moveaxis(clip, k, 0).reshape(clip.shape[k], -1))[
                        2
                    ].T
                    for clip in (X[i], Y[j])
                ]
                theta = core.principal_angles(*[V[:, : ranks[k]] for V in bases])
                total += np.square(
                    np.sin(theta) if metric == "chordal" else theta
                ).sum()
            assert values[i, j] == pytest.approx(np.sqrt(total), rel=TIGHT)


@settings(max_examples=20)
@given(seeds, st.sampled_from([None, 1, 3]), st.floats(1e-6, 1e6), st.booleans())
def test_a_tensor_and_its_multiples_are_at_distance_zero(seed, p, factor, negative):
    clips = np.random.default_rng(seed).standard_normal((2, 4, 5, 6))
    factor = -factor if negative else factor
    for metric in ("chordal", "geodesic"):
        values = distances(clips, factor * clips, p, metric)
        assert np.diag(values).max() < LOOSE
        assert values[0, 1] > 0.1
    assert np.diag(distances(clips, p=p)).max() == 0


@pytest.mark.parametrize("axis", range(3))
def test_mixing_a_mode_leaves_its_factor_alone(axis):
    Q = rotation(RNG, X.shape[1 + axis])
    before = tensors.mode_bases(X, 3)[axis]
    after = tensors.mode_bases(mixed(X, axis, Q), 3)[axis]
    assert core.principal_angles(before, after).max() < LOOSE
    assert tensors.mode_bases(X)[axis].shape[2] == X.shape[1 + axis]
    # any invertible matrix, if all directions are kept
    T = RNG.standard_normal(Q.shape)
    after = tensors.mode_bases(mixed(X, axis, T))[axis]
    assert core.principal_angles(tensors.mode_bases(X)[axis], after).max() < LOOSE


@pytest.mark.parametrize("p", [None, 2])
def test_mixing_both_clips_alike_keeps_the_distance(p):
    clips = X
    others = Y
    for axis in range(3):
        Q = rotation(RNG, X.shape[1 + axis])
        clips = mixed(clips, axis, Q)
        others = mixed(others, axis, Q)
    for metric in ("chordal", "geodesic"):
        assert (
            error(distances(clips, others, p, metric), distances(X, Y, p, metric))
            < LOOSE
        )


def test_missing_directions_are_right_angles():
    flat = np.array(X)
    # all frames alike: rank 1
    flat[0] = np.outer(np.ones(6), X[0, 0].ravel()).reshape(X[0].shape)
    V = tensors.mode_bases(flat, 3)
    assert [np.linalg.matrix_rank(factor[0]) for factor in V] == [1, 3, 3]
    assert [factor.shape[2] for factor in tensors.mode_bases(flat)] == [1, 5, 7 - 2]
    flat[2] = 3 * flat[0]  # of the same directions, and of the same that it lacks
    values = distances(flat, flat[:1], 3)
    assert values[[0, 2], 0] == pytest.approx([0, 0])
    assert distances(flat[:3], None, 3)[:, 0] == pytest.approx(values[:3, 0])
    theta = core.principal_angles(V[0][1], V[0][0][:, :1])
    rest = sum(
        np.square(np.sin(core.principal_angles(V[k][1], V[k][0]))).sum() for k in (1, 2)
    )
    assert values[1, 0] == pytest.approx(np.sqrt(2 + np.sin(theta[0]) ** 2 + rest))


def test_float32_stays():
    single = np.float32(X)
    assert {V.dtype for V in tensors.mode_bases(single)} == {np.dtype(np.float32)}
    assert error(distances(single), distances(X)) < 1e-3
    assert distances(single).dtype == np.float32


def test_tiles_do_not_change_the_factors(monkeypatch):
    before = distances(X, Y), correlations(X, Y, p=3)
    monkeypatch.setattr(tensors, "PIXELS_AT_A_TIME", 300)
    monkeypatch.setattr(tensors, "PRODUCTS_AT_A_TIME", 300)
    assert error(distances(X, Y), before[0]) < TIGHT
    assert error(correlations(X, Y, p=3), before[1]) < TIGHT


# -------------------------------------------------------- tensor canonical correlations


@rarely
@given(seed=seeds)
def test_one_joint_mode_is_canonical_correlations_of_image_sets(seed):
    X, Y = some_clips(seed)
    bases = [subspaces.from_sets(clips, 3) for clips in (X, Y)]
    values = correlations(X, Y, p=3, modes=["yx"])
    for m in range(3):
        expected = sets.correlation_kernel(*bases, m + 1)
        assert error(values[: m + 1].sum(axis=0), expected) < TIGHT
    theta = core.principal_angles(bases[0][:, None], bases[1][None])
    assert error(np.moveaxis(values, 0, 2), np.cos(theta)) < TIGHT


def largest_correlation(A, B):
    """The best of many starts of the correlation of A x u x w and B x u' x w', by plain
    least squares.
    """
    best = 0.0
    for start in range(30):
        rng = np.random.default_rng(start)
        w = rng.standard_normal(A.shape[2])
        v = rng.standard_normal(B.shape[2])
        for turn in range(60):
            if turn % 2 == 0:
                first = A @ w
                second = B @ v
            else:
                first = np.einsum("ijk,j->ik", A, w)
                second = np.einsum("ijk,j->ik", B, v)
            P = np.linalg.qr(first)
            Q = np.linalg.qr(second)
            U, s, Vt = np.linalg.svd(P[0].T @ Q[0])
            w = np.linalg.solve(P[1], U[:, 0])
            v = np.linalg.solve(Q[1], Vt[0])
        best = max(best, s[0])
    return best


def correlation_of_leading_components(A, B):
    """|cos| of A x u x w and B x u' x w', u and w the first left singular vectors of
    unfoldings.
    """
    functions = []
    for clip in (A, B):
        u, w = [
            np.linalg.svd(np.moveaxis(clip, k, 0).reshape(clip.shape[k], -1))[0][:, 0]
            for k in (1, 2)
        ]
        functions.append(np.einsum("ijk,j,k->i", clip, u, w))
    a, b = functions
    return abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)


def test_a_single_mode_is_between_leading_components_and_the_largest_correlation():
    """Axis t is shared, then the same clips with t as axis y, then as x."""
    clips = np.random.default_rng(1).standard_normal((5, 12, 2, 2))
    pairs = list(itertools.combinations(range(5), 2))
    least = np.array(
        [correlation_of_leading_components(clips[i], clips[j]) for i, j in pairs]
    )
    largest = np.array([largest_correlation(clips[i], clips[j]) for i, j in pairs])
    for axis, mode in enumerate("tyx"):
        turned = np.moveaxis(clips, 1, 1 + axis)
        values = correlations(turned, p=2, modes=[mode])[0][tuple(zip(*pairs))]
        assert (values >= least - 1e-6).all()
        assert (values <= largest + 1e-6).all()
        assert np.median(values - least) > 0.2
        assert np.mean(values / largest) > 0.9


def test_correlations_of_a_clip_with_itself_are_one():
    values = correlations(X, 3 * X, p=3)
    assert values.shape == (18, 4, 4)
    assert error(values[:, range(4), range(4)], 1) < 1e-6
    assert values.min() >= 0
    assert values.max() <= 1
    assert error(correlations(X, p=3)[:9], values[:9]) < TIGHT


def test_separation_finds_the_feature_that_tells_classes_apart():
    labels = np.repeat([0, 1, 2], 4)
    same = np.equal.outer(labels, labels)
    noise = np.random.default_rng(0).random((2, 12, 12))
    features = np.stack([noise[0], same + 0.1 * noise[1], np.ones((12, 12))])
    score = tensors.separations(features, labels)
    assert score.argmax() == 1
    assert score[2] == 0
    for exponent in (-900, 1000):
        assert np.array_equal(
            tensors.separations(np.ldexp(features, exponent), labels), score
        )
    off = ~np.eye(12, dtype=bool)
    within = features[1][same & off]
    between = features[1][~same]
    expected = (within.mean() - between.mean()) / np.sqrt(within.var() + between.var())
    assert score[1] == pytest.approx(expected)
    # each with itself is a pair of one class
    alone = tensors.separations(features, np.arange(12))
    off_mean = features[0][off].mean()
    diagonal = np.diag(features[0])
    expected = (diagonal.mean() - off_mean) / np.sqrt(
        diagonal.var() + features[0][off].var()
    )
    assert alone[0] == pytest.approx(expected)
    with pytest.raises(
        ValueError, match="labels must hold at least two classes, got one class"
    ):
        tensors.separations(features, np.zeros(12))


# ---------------------------------------------------------------------- sizes and input


def test_clips_are_resized_linearly():
    pytest.importorskip("skimage", reason="needs the extra 'image'")
    ramp = np.arange(8.0)[:, None, None] + np.zeros((8, 5, 6))
    resized = tensors.resize_clips([ramp, ramp[::2], X[0]], (4, 5, 6))
    assert resized.shape == (3, 4, 5, 6)
    assert np.array_equal(resized[1], ramp[::2])
    assert (np.diff(resized[0, :, 0, 0]) > 1.5).all()
    assert error(tensors.resize_clips([np.full((3, 4, 5), 7.0)], (9, 2, 5)), 7) < TIGHT


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: tensors.mode_bases([]), ValueError, "clips must hold at least one clip, got none"),
        (lambda: tensors.mode_bases(3), TypeError, "clips must be a sequence of clips, got int"),
        (lambda: tensors.mode_bases([X[0], X[0, 1:]]), ValueError, "clips must be of one size"),
        (lambda: tensors.mode_bases([X[0], 0 * X[0]]), ValueError, r"clips\[1\] must hold a pixel"),
        (lambda: tensors.mode_bases(X[0]), ValueError, r"clips\[0\] must have shape \(n_frames, h"),
        (lambda: tensors.mode_bases(np.full((1, 2, 2, 2), np.inf)), ValueError, "must be finite"),
        (lambda: tensors.mode_bases(X * 1e200), ValueError, r"clips\[0\] must have entries up to"),
        (lambda: tensors.mode_bases(X, 0), ValueError, "p must be >= 1, got 0"),
        (lambda: tensors.mode_bases(X, (1, 2)), ValueError, "p must be an integer or three, got"),
        (lambda: distances(X, Y, metric="flat"), ValueError, "metric must be 'chordal' or"),
        (lambda: distances(X, Y[:, :5]), ValueError, "X and Y must be of clips of one size and"),
        (lambda: tensors.product_distances(X), ValueError, "X must be the three factors"),
        (lambda: tensors.mode_bases(X, [[1], [1, 2]]), ValueError, "p must be an integer or three"),
        (lambda: tensors.resize_clips(X, b"abc"), TypeError, r"shape must be \(n_frames"),
        (lambda: tensors.resize_clips(X, (3, 4)), ValueError, r"shape must be \(n_frames, height"),
    ],
)  # fmt: skip
def test_wrong_input_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
