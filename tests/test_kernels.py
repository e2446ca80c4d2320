"""Laws of kernel coding: kernels, bases in feature space, the kernel Gram matrix, kgSC
and kgLC, Lift.
"""

import math
import pickle
import warnings

import hypothesis.strategies as st
import mpmath
import numba
import numpy as np
import pytest
from hypothesis import assume, given, settings
from scipy.spatial.distance import pdist

import grassmann_sc as gs
from grassmann_sc import kernels, subspaces
from grassmann_sc.baselines import hulls
from grassmann_sc.baselines.estimators import KAHM, MSM
from grassmann_sc.kernels import (
    Lift,
    gamma_grid,
    kernel_bases,
    kernel_gram,
    kernel_grams,
    kglc,
    kgsc,
    linear,
    median_gamma,
    polynomial,
    rbf,
)
from oracles import LOOSE, TIGHT, dtypes, error, rarely, rounding, seeds

KERNELS = [linear(), polynomial(3, 0.5), rbf(0.05)]
laws = settings(deadline=None, max_examples=30)
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def twin(kernel, A, B):
    """The kernel by its definition, in extended precision, from explicit differences."""
    A = np.asarray(A, np.longdouble)
    B = np.asarray(B, np.longdouble)
    if isinstance(kernel, rbf):
        return np.exp(-kernel.gamma * np.square(A[:, None] - B).sum(axis=2))
    return (
        (A @ B.T + kernel.coef0) ** kernel.degree
        if isinstance(kernel, polynomial)
        else A @ B.T
    )


def test_the_laws_hold_every_kernel_that_has_a_name():
    assert {type(kernel) for kernel in KERNELS} == {*kernels.NAMED.values()}


def direct(X, A, Y, B, kernel):
    """||A_i^T K(X_i, Y_j) A_j||_F^2, pair by pair."""
    return np.array(
        [
            [np.square(a.T @ twin(kernel, x, y) @ b).sum() for y, b in zip(Y, B)]
            for x, a in zip(X, A)
        ],
        float,
    )


def sets_of(seed, lengths, d=6, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, d)).astype(dtype) for n in lengths]


def similar_sets(seed, n, n_classes=3, d=5):
    """Sets of frames in clusters, so that codes are sparse and the linear and the
    Gaussian geometry differ.
    """
    rng = np.random.default_rng(seed)
    centres = 2 * rng.standard_normal((n_classes, 4, d))
    return [
        centres[i % n_classes, rng.integers(4, size=8)]
        + 0.3 * rng.standard_normal((8, d))
        for i in range(n)
    ]


LENGTHS = st.lists(st.sampled_from([3, 3, 4, 9, 17]), min_size=1, max_size=6)


# ---------------------------------------------------------------------------- kernels


@numba.njit
def exponentials(x, y):
    for i in range(len(x)):
        y[i] = kernels.fast_exp(x[i])


@pytest.mark.parametrize("dtype, lowest", [(np.float64, -760), (np.float32, -110)])
def test_exp_is_within_one_unit_in_the_last_place(dtype, lowest):
    """Down to the subnormal numbers and to zero, and 1 at 0."""
    rng = np.random.default_rng(0)
    x = np.concatenate(
        [
            rng.uniform(lowest, 0, 3000),
            -(10.0 ** rng.uniform(-20, 1, 1000)),
            [0, lowest, -1e30, -np.inf],
        ]
    ).astype(dtype)
    y = np.empty_like(x)
    exponentials(x, y)
    exact = [mpmath.exp(mpmath.mpf(float(value))) for value in x]
    apart = [
        abs(mpmath.mpf(float(a)) - b) / float(np.spacing(dtype(float(b))))
        for a, b in zip(y, exact)
    ]
    assert max(apart) <= 1 and y[4000] == 1 and y[-1] == 0


@laws
@given(seeds, dtypes, st.sampled_from(KERNELS))
def test_kernels_equal_their_definitions(seed, dtype, kernel):
    A, B = sets_of(seed, [1 + seed % 5, 7], dtype=dtype)
    K = kernel(A, B)
    assert K.dtype == dtype and error(K, twin(kernel, A, B)) <= rounding(dtype) * max(
        1, error(K, 0)
    )


@laws
@given(
    seeds,
    dtypes,
    st.sampled_from([0, 1e3, 1e6]),
    st.sampled_from([1e-3, 1.0, 1e3, 1e12]),
)
def test_gaussian_keeps_near_frames_apart(seed, dtype, offset, gamma):
    """Clusters far from the origin and from each other, whose norms cancel in the
    distance.
    """
    rng = np.random.default_rng(seed)
    centres = np.repeat(offset * rng.standard_normal((2, 4)), 5, axis=0)
    A = (centres + rng.standard_normal((10, 4)) / math.sqrt(gamma)).astype(dtype)
    A[1] = A[0]
    K = rbf(gamma)(A, A)
    exact = twin(rbf(gamma), A, A)
    apart = np.square(A[:, None].astype(np.longdouble) - A).sum(axis=2)
    spread = gamma * np.where(
        apart < 1e3 / gamma, np.square(np.abs(A).max(axis=1) * np.finfo(dtype).eps), 0
    )
    assert (
        np.abs(K - exact)
        <= rounding(dtype) + 2 * np.sqrt(spread * gamma * apart) + spread
    ).all()
    assert abs(K[0, 1] - 1) <= rounding(dtype) and error(np.diag(K), 1) <= rounding(
        dtype
    )


@pytest.mark.parametrize("offset", [10, 30, 100])
def test_gaussian_of_frames_that_are_neither_near_nor_far(offset):
    """Two clusters, the origin between them: e^-5 too would show what norms lose."""
    rng = np.random.default_rng(0)
    A = offset * rng.standard_normal(6) + rng.standard_normal((40, 6))
    A = np.concatenate([A, -A + rng.standard_normal((40, 6))])
    assert error(rbf(1.0)(A, A), twin(rbf(1.0), A, A)) <= 1e-13


def test_sets_far_from_the_origin_are_compared_as_near_it():
    """Numbers of few bits, so that moving them by 2^27 is exact."""
    rng = np.random.default_rng(0)
    sets = [rng.integers(-16, 17, (n, 4)) / 8 for n in (6, 9, 5)]
    away = [frames + 2.0**27 for frames in sets]
    X = [np.linalg.qr(rng.standard_normal((len(frames), 2)))[0] for frames in sets]
    near, far = (
        kernels.kernel_grams(some, [X], [rbf(0.1)])[0] for some in (sets, away)
    )
    assert error(far, near) <= 1e-6


def test_gaussian_at_its_ends():
    A = np.array([[0.0, 0.0], [1.0, 0.0], [1e-3, 0.0]])
    assert np.array_equal(rbf(1e9)(A, A), np.eye(3))
    assert error(rbf(1e-300)(A, A), 1) == 0
    assert rbf(745.0)(A[:2], A[:2])[0, 1] == np.exp(-745.0) == 5e-324
    assert np.array_equal(rbf(1e300)(A, 1e10 * A), [[1, 0, 0], [0, 0, 0], [0, 0, 0]])


def test_kernel_grams_are_those_of_each_kernel_alone():
    sets = sets_of(0, [7, 9, 8], d=20)

    def laplacian(A, B):
        return np.exp(-0.1 * np.abs(A[:, None] - B).sum(axis=2))

    some = [
        rbf(0.1),
        polynomial(2, 1.0),
        linear(),
        rbf(1.0),
        polynomial(3, 0.5),
        laplacian,
    ]
    bases = [
        kernel_bases(sets, kernel, p) for kernel, p in zip(some, [3, 2, 3, 4, 2, 2])
    ]
    for each_p in (False, True):
        grams = kernel_grams(sets, bases, some, each_p=each_p)
        for kernel, A, K in zip(some, bases, grams):
            alone = kernel_gram(sets, A, kernel=kernel, each_p=each_p)
            assert error(K, alone) <= (0 if kernel is not some[2] else 1e-13)
    assert kernel_grams(sets, [], []) == []
    named = kernel_grams(sets, bases[:2], [("rbf", 0.1), ("polynomial", 2)])
    assert all(map(np.array_equal, named, kernel_grams(sets, bases[:2], some[:2])))
    with pytest.raises(
        ValueError, match="bases must hold 1 lists, one a kernel, got 2"
    ):
        kernel_grams(sets, bases[:2], some[:1])
    with pytest.raises(
        TypeError, match="kernels must be a sequence of kernels, got rbf"
    ):
        kernel_grams(sets, bases[:1], some[0])
    with pytest.raises(ValueError, match=r"bases\[1\] must hold 3 bases"):
        kernel_grams(sets, [bases[0], bases[1][:2]], some[:2])


def test_kernels_are_values():
    for kernel in KERNELS:
        copy = pickle.loads(pickle.dumps(kernel))
        assert (
            copy == kernel
            and hash(copy) == hash(kernel)
            and eval(repr(kernel)) == kernel
        )


def test_median_gamma_is_the_inverse_of_the_median_square():
    sets = [[[0.0], [1.0]], [[3.0]]]  # squares 1, 9, 4
    assert median_gamma(sets) == 1 / 4
    assert np.array_equal(gamma_grid(sets, 3), [1 / 16, 1 / 4, 1])
    assert len(gamma_grid(sets)) == 5
    with pytest.raises(ValueError, match="median squared distance of 2 of them is 0"):
        median_gamma([[[1.0], [1.0]]])
    with pytest.raises(ValueError, match="frames that differ: .* of them is 1e-310"):
        median_gamma([[[0.0], [1e-155]]])  # its inverse is beyond double precision


# ---------------------------------------------------------------------------- bases


@laws
@given(seeds, LENGTHS, dtypes, st.sampled_from(KERNELS))
def test_the_gram_matrices_of_each_p_are_those_of_the_leading_columns(
    seed, lengths, dtype, kernel
):
    sets = sets_of(seed, lengths, dtype=dtype)
    bases = kernel_bases(sets, kernel)
    P = bases[0].shape[1]
    with pytest.raises(ValueError, match=r"must hold p = "):
        kernel_bases(sets, kernel, P + 1)
    K = kernel_gram(sets, bases, kernel=kernel, each_p=True)
    rows = kernel_gram(sets[:1], bases[:1], sets, bases, kernel=kernel, each_p=True)
    assert K.shape == (P, len(sets), len(sets)) and K.dtype == dtype
    for k in range(1, P + 1):
        some = [A[:, :k] for A in bases]
        assert (
            error(K[k - 1], kernel_gram(sets, some, kernel=kernel))
            <= rounding(dtype) * P
        )
        assert error(rows[k - 1], K[k - 1, :1]) <= 1e-5 * P
        same = kernel_bases(sets, kernel, k)
        assert all(np.array_equal(A, B) for A, B in zip(some, same))


def test_sets_of_a_smaller_rank_may_have_fewer_columns():
    rng = np.random.default_rng(0)
    sets = [rng.random((5, 4)), rng.random((2, 4)), np.repeat(rng.random((1, 4)), 3, 0)]
    kernel = kernels.rbf(0.5)
    bases = kernels.kernel_bases(sets, kernel, 3, rank="fewer")
    for frames, A, p in zip(sets, bases, (3, 2, 1)):
        (alone,) = kernels.kernel_bases([frames], kernel, p)
        np.testing.assert_array_equal(A, alone)
    with pytest.raises(ValueError, match=r"sets\[1\] must hold p = 3 frames that are"):
        kernels.kernel_bases(sets, kernel, 3)
    with pytest.raises(ValueError, match="rank must be 'raise' or 'fewer', got 'pad'"):
        kernels.kernel_bases(sets, kernel, 3, rank="pad")


def test_bases_beyond_float32_are_refused_and_codes_do_without_them():
    sets = [1e6 * frames for frames in sets_of(0, [5] * 8)]
    single = [frames.astype(np.float32) for frames in sets]
    kernel = polynomial(6)
    with pytest.raises(
        ValueError, match=r"sets\[0\] must be of float64 for polynomial\(degree=6"
    ):
        kernel_bases(single, kernel, 2)
    double = [frames.astype(float) for frames in single]
    codes = kgsc(single[:3], single, 0.1, kernel=kernel, p=2)
    assert error(codes, kgsc(double[:3], double, 0.1, kernel=kernel, p=2)) <= 1e-5


@laws
@given(seeds, LENGTHS, dtypes, st.sampled_from(KERNELS), st.integers(1, 3))
def test_bases_are_orthonormal_and_leading(seed, lengths, dtype, kernel, p):
    sets = sets_of(seed, lengths, dtype=dtype)
    for frames, A in zip(sets, kernel_bases(sets, kernel, p)):
        K = twin(kernel, frames, frames).astype(float)
        assert A.shape == (len(frames), p) and A.dtype == dtype
        values = np.linalg.eigvalsh(K)[::-1]
        scale = values[0] / values[p - 1]
        assert error(A.T @ K @ A, np.eye(p)) <= rounding(dtype) * scale
        # of trace K^2, at most by the leading eigenvectors
        captured = np.square(A.T @ K).sum()
        assert (
            abs(np.trace(A.T @ K @ K @ A) - values[:p].sum())
            <= rounding(dtype) * scale * values[:p].sum()
            and captured > 0
        )


@pytest.mark.parametrize(
    "kernel, frames, rank",
    [
        (linear(), np.outer([1.0, 2.0, 3.0], [1.0, 1.0]), 1),
        (rbf(1.0), np.ones((5, 2)), 1),
        (rbf(1e-12), np.arange(8.0).reshape(4, 2), 1),
        (linear(), np.zeros((3, 2)), 0),
        (polynomial(2, 0), np.ones((3, 4)), 1),
        (rbf(1.0), [[1.0, 2.0]], 1),
    ],
)
def test_low_rank_is_an_error_that_names_the_set(kernel, frames, rank):
    good = 1e6 * (np.eye(4, np.shape(frames)[1]) + np.arange(4)[:, None])
    with pytest.raises(
        ValueError,
        match=rf"sets\[1\] must hold p = 2 .* {len(frames)} frame\(s\) of numerical "
        rf"rank {rank} .*1e-08",
    ):
        kernel_bases([good, frames], kernel, 2)


def test_repeated_frames_and_one_frame_span_what_they_span():
    rng = np.random.default_rng(0)
    frames = rng.standard_normal((4, 3))
    twice = np.concatenate([frames, frames])
    A = kernel_bases([frames, twice, frames[:1]], rbf(1.0), 1)
    K = direct([frames, twice, frames[:1]], A, [frames, twice, frames[:1]], A, rbf(1.0))
    assert error(K[0], K[1]) <= TIGHT and error(np.diag(K), 1) <= TIGHT
    assert (
        error(kernel_gram([frames, twice, frames[:1]], A, kernel=rbf(1.0)), K) <= TIGHT
    )


def test_a_tie_is_a_warning():
    with pytest.warns(UserWarning, match="subspace not unique in 1 case"):
        kernel_bases([np.eye(3)], rbf(1e9), 2)


def test_a_huge_gamma_makes_sets_orthogonal():
    sets = sets_of(0, [4, 5, 6])
    A = [np.eye(len(frames), 4) for frames in sets]
    assert np.array_equal(kernel_gram(sets, A, kernel=rbf(1e9)), 4 * np.eye(3))


def test_frames_whose_squares_leave_float64_are_refused():
    with pytest.raises(ValueError, match=r"^sets\[1\] must have entries up to 1e.140"):
        kernels.Lift("rbf", 1).fit([np.eye(3), 1e150 * np.eye(3)])


def test_an_indefinite_kernel_is_an_error():
    with pytest.raises(
        ValueError,
        match=r"positive semidefinite, its matrix of sets\[0\] has the eigenvalue -",
    ):
        kernel_bases([np.eye(3)], lambda A, B: -np.tanh(A @ B.T), 1)


def test_a_kernel_that_is_not_symmetric_is_blamed():
    with pytest.raises(
        ValueError, match=r"kernel must be symmetric, .* its matrix of sets\[0\]"
    ):
        kernel_bases([np.eye(3)], lambda A, B: A @ np.tri(3) @ B.T, 1)


# -------------------------------------------------------------------------- Gram matrix


@laws
@given(seeds, LENGTHS, LENGTHS, dtypes, st.sampled_from(KERNELS))
def test_gram_equals_the_formula(seed, lengths, lengths2, dtype, kernel):
    X = sets_of(seed, lengths, dtype=dtype)
    Y = sets_of(seed + 1, lengths2, dtype=dtype)
    A = kernel_bases(X, kernel, 2)
    B = kernel_bases(Y, kernel, 3)
    K = kernel_gram(X, A, Y, B, kernel)
    S = kernel_gram(X, A, kernel=kernel)
    scale = max(
        1,
        max(error(a, 0) for a in A + B) ** 2
        * max(error(twin(kernel, x, y), 0) for x in X + Y for y in X + Y),
    )
    assert K.dtype == S.dtype == dtype and K.shape == (len(X), len(Y))
    assert error(K, direct(X, A, Y, B, kernel)) <= rounding(dtype) * scale
    assert error(S, direct(X, A, X, A, kernel)) <= rounding(dtype) * scale
    assert np.array_equal(S, S.T)


@laws
@given(seeds, st.lists(st.integers(3, 30), min_size=1, max_size=9), st.booleans())
def test_gram_does_not_depend_on_tiles(seed, lengths, user):
    """Tiles smaller than a set, sets that share a tile, blocks of columns; a user's
    kernel takes the same way.
    """
    X = sets_of(seed, lengths)
    kernel = rbf(0.1)
    A = kernel_bases(X, kernel, 2)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in dict(
            VALUES_AT_A_TIME=60, TILE_SIDE=20, MOST_COLUMNS=40
        ).items():
            patch.setattr(kernels, name, value)
        called = (lambda a, b: kernel(a, b)) if user else kernel
        tiled = (
            kernel_gram(X, A, kernel=called),
            kernel_gram(X[::-1], A[::-1], X, A, called),
        )
    assert error(tiled[0], direct(X, A, X, A, kernel)) <= TIGHT * len(X[0])
    assert error(tiled[1], tiled[0][::-1]) <= TIGHT * len(X[0])


@each_kernel
def test_a_callable_equals_the_built_in_kernel(kernel):
    X = sets_of(0, [5, 9, 7])
    Y = sets_of(1, [6, 4])

    def user(A, B):
        return np.asarray(twin(kernel, A, B), float)

    A = kernel_bases(X, kernel, 3)
    B = kernel_bases(Y, kernel, 3)
    assert (
        error(kernel_gram(X, A, Y, B, user), kernel_gram(X, A, Y, B, kernel))
        <= TIGHT * 10
    )
    assert (
        error(kgsc(X, Y, 0.1, kernel=user, p=3), kgsc(X, Y, 0.1, kernel=kernel, p=3))
        <= LOOSE
    )
    assert (
        error(Lift(user, 3).fit(X).transform(Y), Lift(kernel, 3).fit(X).transform(Y))
        <= LOOSE
    )


@laws
@given(seeds, st.sampled_from(KERNELS))
def test_gram_ignores_bases_and_the_order_of_frames(seed, kernel):
    X = sets_of(seed, [6, 9, 4])
    rng = np.random.default_rng(seed)
    A = kernel_bases(X, kernel, 3)
    K = kernel_gram(X, A, kernel=kernel)
    scale = max(error(a, 0) for a in A) ** 2 * error(twin(kernel, X[0], X[0]), 0)
    turned = [a @ np.linalg.qr(rng.standard_normal((3, 3)))[0] for a in A]
    assert error(kernel_gram(X, turned, kernel=kernel), K) <= TIGHT * scale
    mixed = [frames[rng.permutation(len(frames))] for frames in X]
    assert (
        error(kernel_gram(mixed, kernel_bases(mixed, kernel, 3), kernel=kernel), K)
        <= LOOSE * scale
    )


@pytest.mark.parametrize(
    "kernel, spread",
    [
        (rbf(1.0), 1e-3),
        (rbf(1.0), 0.1),
        (rbf(0.01), 0.1),
        (polynomial(2), 0.5),
        (linear(), 0.5),
    ],
)
def test_near_frames_of_float32_are_coded_as_those_of_float64(kernel, spread):
    """Inner products are float64 inside, however much the bases amplify rounding."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((20, 50))
    centres *= 10 / np.linalg.norm(centres, axis=1, keepdims=True)
    single = [
        (x + spread * rng.standard_normal((6, 50))).astype(np.float32) for x in centres
    ]
    double = [frames.astype(float) for frames in single]
    A = kernel_bases(single, kernel, 2)
    B = kernel_bases(double, kernel, 2)
    K = kernel_gram(single, A, kernel=kernel)
    assert K.dtype == np.float32 and error(np.diag(K), 2) <= 1e-5
    assert error(K, kernel_gram(double, B, kernel=kernel)) <= 1e-5
    codes = kgsc(single[:5], single, 0.1, kernel=kernel, p=2)
    assert error(codes, kgsc(double[:5], double, 0.1, kernel=kernel, p=2)) <= 1e-5


def test_kernel_values_beyond_float32_are_refused_and_their_gram_matrix_is_right():
    frames = np.random.default_rng(0).integers(0, 256, (6, 6, 200)).astype(np.float32)
    kernel = polynomial(6)
    assert (
        error(
            np.diag(
                kernel_gram(frames, kernel_bases(frames, kernel, 2), kernel=kernel)
            ),
            2,
        )
        <= 1e-5
    )
    with pytest.raises(
        ValueError, match="must have values within float32, got an overflow"
    ):
        kernel(frames[0], frames[1])


@laws
@given(seeds, LENGTHS, st.sampled_from(KERNELS))
def test_gram_is_positive_semidefinite_with_diagonal_p(seed, lengths, kernel):
    X = sets_of(seed, lengths)
    X = X + X[:1]
    K = kernel_gram(X, kernel_bases(X, kernel, 2), kernel=kernel)
    assert (
        np.linalg.eigvalsh(K)[0] >= -LOOSE
        and error(np.diag(K), 2) <= LOOSE
        and (K <= 2 + LOOSE).all()
    )


def test_gram_does_not_depend_on_threads(monkeypatch):
    X = sets_of(0, [9] * 200, d=30)
    results = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        A = kernel_bases(X, rbf(0.02), 3)
        results.append(
            [
                *A,
                kernel_gram(X, A, kernel=rbf(0.02)),
                kernel_gram(X, A, X[:50], A[:50], rbf(0.02)),
                Lift(rbf(0.02), 2).fit(X[:9]).transform(X),
            ]
        )
    assert all(
        np.array_equal(a, b) for other in results[1:] for a, b in zip(results[0], other)
    )


def test_lift_keeps_small_frames_beside_large_ones():
    """Films of 0 to 1 and of 0 to 255, whose kernel values differ by 255^6."""
    X = [
        np.abs(rows) * scale for rows, scale in zip(sets_of(0, [6] * 8), [1, 255.0] * 4)
    ]
    kernel = polynomial(3)
    lifted = Lift(kernel, 2).fit(X).transform(X)
    expected = kernel_gram(X, kernel_bases(X, kernel, 2), kernel=kernel)
    assert error(gs.projection_kernel(lifted), expected) <= LOOSE


def test_lift_refuses_a_kernel_that_two_frames_show_to_be_indefinite():
    def sigmoid(A, B):
        return np.tanh(0.5 * A @ B.T + 0.5)

    with pytest.raises(ValueError, match="kernel must be positive semidefinite, got"):
        Lift(sigmoid, 1).fit(sets_of(0, [1] * 8))


def test_inputs_of_every_layout_give_the_same():
    frames = np.random.default_rng(0).integers(0, 256, (5, 6, 4, 3)).astype(np.uint8)
    X = [x.reshape(6, 12).astype(float) for x in frames]
    kernel = rbf(1e-5)
    before = frames.copy()
    A = kernel_bases(frames, kernel, 2)
    K = kernel_gram(X, A, X, np.stack(A), kernel)
    frames.setflags(write=False)
    forms = [
        frames,
        list(frames),
        np.asfortranarray(frames),
        frames.astype(">f8"),
        np.repeat(frames, 2, axis=0)[::2],
    ]
    assert all(
        np.array_equal(kernel_gram(form, A, form, np.stack(A), kernel), K)
        for form in forms
    )
    assert np.array_equal(frames, before) and kernel_gram(
        [], [], X, A, kernel
    ).shape == (0, 5)


# ---------------------------------------------------------------------------- coding


@laws
@given(seeds, st.integers(1, 3))
def test_the_linear_kernel_gives_gsc_and_glc(seed, p):
    X = similar_sets(seed, 3)
    D = similar_sets(seed + 1, 5)
    U, V = ([np.linalg.svd(frames.T)[0][:, :p] for frames in sets] for sets in (X, D))
    K_dd = gs.projection_kernel(V)
    K_xd = gs.projection_kernel(U, V)

    def cost(y):
        return p + ((y @ K_dd - 2 * K_xd) * y).sum(axis=1) + 0.2 * np.abs(y).sum(axis=1)

    codes = kgsc(X, D, 0.2, kernel=linear(), p=p, tol=TIGHT)
    assert error(cost(codes), cost(gs.gsc(U, V, 0.2))) <= 1e-2 * LOOSE * p
    if np.linalg.cond(K_dd) < 1e3:  # the solution is unique
        assert error(codes, gs.gsc(U, V, 0.2, tol=TIGHT)) <= LOOSE
    assert error(kglc(X, D, 2, kernel=linear(), p=p), gs.glc(U, V, 2)) <= LOOSE * 10


@pytest.mark.parametrize("kernel", [rbf(0.1), polynomial(2, 1.0)], ids=str)
def test_codes_come_from_the_kernel_gram(kernel):
    X = similar_sets(0, 4)
    D = similar_sets(1, 9)
    A = kernel_bases(X, kernel, 2)
    B = kernel_bases(D, kernel, 2)
    K_dd = direct(D, B, D, B, kernel)
    K_xd = direct(X, A, D, B, kernel)
    tight = {"tol": TIGHT}
    assert (
        error(
            kgsc(X, D, 0.1, kernel=kernel, p=2, **tight),
            gs.sparse_codes(K_dd, K_xd, 0.1, norm2=2, **tight),
        )
        <= LOOSE
    )
    assert (
        error(
            kglc(X, D, 3, kernel=kernel, p=2), gs.locality_codes(K_dd, K_xd, 3, norm2=2)
        )
        <= 10 * LOOSE
    )
    sparse = kgsc(X, D, 0.1, kernel=kernel, p=2, sparse_output=True, positive=True)
    assert sparse.shape == (4, 9) and (sparse.data > 0).all()


def test_a_query_equal_to_an_atom_gets_code_one_on_it():
    D = similar_sets(0, 6)
    assert error(kglc(D[2:4], D, 3, kernel=rbf(0.1), p=2), np.eye(6)[2:4]) <= LOOSE


@pytest.mark.parametrize(
    "coding", [dict(lam=0.1), dict(n_neighbors=2), dict(lam=0.3, lam_scale="max")]
)
def test_labels_are_those_of_the_scores_in_feature_space(coding):
    X = similar_sets(0, 8)
    D = similar_sets(1, 9)
    y = np.array(["ape", "bee", "cat"])[np.arange(9) % 3]
    result = kernels.classify(X, D, y, kernel=rbf(0.1), p=2, return_info=True, **coding)
    A = kernel_bases(X, rbf(0.1), 2)
    B = kernel_bases(D, rbf(0.1), 2)
    K_dd = kernel_gram(D, B, kernel=rbf(0.1))
    K_xd = kernel_gram(X, A, D, B, rbf(0.1))
    residuals, classes = gs.class_residuals(result.codes, K_dd, K_xd, y, norm2=2)
    assert error(result.residuals, residuals) <= LOOSE
    rule = "sum" if "n_neighbors" in coding else "residual"
    scores, _ = gs.class_scores(result.codes, K_dd, K_xd, y, norm2=2, rule=rule)
    assert np.array_equal(result.labels, classes[scores.argmax(axis=1)])
    code = kglc if "n_neighbors" in coding else kgsc
    assert error(result.codes, code(X, D, kernel=rbf(0.1), p=2, **coding)) <= LOOSE
    labels = kernels.classify(X, D, y, kernel=rbf(0.1), p=2, **coding)
    assert np.array_equal(labels, result.labels)


# -------------------------------------------------------------------------- coordinates


NAMED = {
    "linear": kernels.linear(),
    "polynomial": kernels.polynomial(2, 1.0),
    ("polynomial", 3): kernels.polynomial(3, 1.0),
    ("rbf", 0.3): kernels.rbf(0.3),
}


@pytest.mark.parametrize("kernel", [*NAMED, "rbf"])
def test_a_name_says_a_kernel_wherever_an_object_does(kernel):
    rng = np.random.default_rng(0)
    D = [rng.standard_normal((q, 6)) for q in (5, 4, 7)]
    Q = [rng.standard_normal((q, 6)) for q in (4, 6)]
    # of the atoms' sets
    same = NAMED.get(kernel) or kernels.rbf(kernels.median_gamma(D))
    for code in (
        lambda kernel: kernels.kgsc(Q, D, 0.1, kernel=kernel, p=2),
        lambda kernel: kernels.kglc(Q, D, 2, kernel=kernel, p=2),
        lambda kernel: kernels.classify(Q, D, [0, 1, 0], kernel=kernel, p=2, lam=0.1),
        lambda kernel: kernels.Lift(kernel, 2).fit(D).transform(Q),
        lambda kernel: np.concatenate(kernel_bases(D, kernel, 2)),
        lambda kernel: kernel_gram(D, kernel_bases(D, kernel, 2), kernel=kernel),
        lambda kernel: hulls.affine_hull_distances(Q, D, kernel=kernel, dimension=1),
        lambda kernel: hulls.convex_hull_distances(D, kernel=kernel),
    ):
        assert np.array_equal(code(kernel), code(same))


@pytest.mark.parametrize(
    "code",
    [
        lambda X: kernels.kgsc(X, X, 0.1, kernel=dear, p=1, tol=-1.0),
        lambda X: kernels.kglc(X, X, 9, kernel=dear, p=1),
        lambda X: kernels.classify(X, X, [0, 1], kernel=dear, p=1, lam=0.1),
        lambda X: kernels.classify(
            X, X, range(3), kernel=dear, p=1, lam=0.1, return_info="yes"
        ),
    ],
)
def test_options_are_checked_before_the_kernel_is_asked(code):
    with pytest.raises(
        (TypeError, ValueError), match="^(tol|n_neighbors|labels|return_info) must"
    ):
        code(sets_of(0, [4, 5, 4], d=6))


def dear(A, B):
    raise AssertionError("the kernel was asked")


@pytest.mark.parametrize(
    "code",
    [
        lambda X: kernels.kgsc(X, X, 0.1, kernel="linear", p=2),
        lambda X: kernels.kglc(X, X, 2, kernel="linear", p=2),
        lambda X: kernels.classify(X, X, range(3), kernel="linear", p=2, lam=0.1),
        lambda X: kernels.Lift("linear", 2).fit(X),
        lambda X: kernel_bases(X, "linear", 2),
        lambda X: hulls.affine_hull_distances(X, dimension=1),
        lambda X: KAHM(dimension=1).fit(X, range(3)),
        lambda X: MSM(2).fit(X, range(3)),
        lambda X: subspaces.from_sets(X, 2),
    ],
)
def test_subspaces_where_sets_of_frames_are_expected_warn(code):
    X = gs.random_subspaces(3, 8, 3, rng=0)
    with pytest.warns(
        UserWarning, match=r"all 3 are orthonormal bases, as \(8, 3\) at"
    ):
        code(X)
    weighted = np.stack([subspaces.weighted(U, [3.0, 2.0, 1.0], 0.5) for U in X])
    with pytest.warns(
        UserWarning, match=r"all 3 are weighted subspaces, as \(8, 3\) at"
    ):
        code(weighted)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code(np.random.default_rng(0).standard_normal((3, 8, 3)))


def test_a_lift_says_what_it_is():
    lift = Lift("linear", 1, n_landmarks=2)
    text = "Lift(kernel='linear', p=1, n_landmarks=2, rng=None)"
    assert repr(lift) == text


@laws
@given(
    seeds,
    st.sampled_from(
        [
            rbf(0.01),
            rbf(0.3),
            rbf(10.0),
            polynomial(2, 1.0),
            polynomial(3, 0.0),
            linear(),
        ]
    ),
    st.integers(1, 3),
)
def test_lift_is_exact_with_the_training_sets(seed, kernel, p):
    X = similar_sets(seed, 7)
    Q = similar_sets(seed + 1, 4)
    X[1] = X[0][::-1]
    A = kernel_bases(X, kernel, p)
    B = kernel_bases(Q, kernel, p)
    lift = Lift(kernel, p).fit(X)
    T = lift.transform(X)
    U = lift.transform(Q)
    assert error(gs.projection_kernel(T), direct(X, A, X, A, kernel)) <= LOOSE
    assert error(gs.projection_kernel(U, T), direct(Q, B, X, A, kernel)) <= LOOSE
    assert (
        error(T[:, -p:], 0) == 0
        and T.shape[1] == U.shape[1] == len(lift.landmarks_) + p
    )


def test_coding_on_the_lift_is_kernel_coding():
    X = similar_sets(0, 7)
    Q = similar_sets(1, 4)
    kernel = rbf(0.1)
    lift = Lift(kernel, 2)
    T = lift.fit_transform(X)
    assert (
        error(gs.gsc(lift.transform(Q), T, 0.1), kgsc(Q, X, 0.1, kernel=kernel, p=2))
        <= 1e3 * LOOSE
    )
    assert (
        error(gs.glc(lift.transform(Q), T, 3), kglc(Q, X, 3, kernel=kernel, p=2))
        <= 1e3 * LOOSE
    )


def test_more_landmarks_than_frames_are_all_frames():
    X = sets_of(0, [5, 6, 7])
    whole = Lift(rbf(0.1), 2).fit(X)
    lift = Lift(rbf(0.1), 2, n_landmarks=10**6, rng=0).fit(X)
    assert np.array_equal(lift.landmarks_, whole.landmarks_)


def test_nystroem_error_falls_to_zero():
    X = similar_sets(0, 12)
    Q = similar_sets(1, 5)
    kernel = rbf(0.1)
    A = kernel_bases(X, kernel, 2)
    B = kernel_bases(Q, kernel, 2)
    exact = kernel_gram(X, A, kernel=kernel)
    exact_query = kernel_gram(Q, B, X, A, kernel)
    errors = []
    for n in (5, 20, 60, 96):
        lift = Lift(kernel, 2, n_landmarks=n, rng=0).fit(X)
        T = lift.transform(X)
        U = lift.transform(Q)
        assert T.shape == (12, n + 2 * (n == 96), 2)
        errors.append(
            [
                np.abs(gs.projection_kernel(T) - exact).mean(),
                np.abs(gs.projection_kernel(U, T) - exact_query).mean(),
            ]
        )
    assert (np.diff(errors, axis=0) < 0).all() and max(errors[-1]) <= LOOSE
    again = Lift(kernel, 2, n_landmarks=20, rng=3).fit(X).landmarks_
    assert np.array_equal(
        again, Lift(kernel, 2, n_landmarks=20, rng=3).fit(X).landmarks_
    )


def test_landmarks_cover_clusters_and_skip_repeats():
    frames = np.repeat(np.eye(4) * 100, [30, 3, 2, 1], axis=0)
    for seed in range(5):
        lift = Lift(rbf(1.0), 1, n_landmarks=4, rng=seed).fit([frames])
        assert len(np.unique(lift.landmarks_, axis=0)) == 4
    assert len(Lift(rbf(1.0), 1).fit([frames]).landmarks_) == 4


def test_lift_keeps_float32_and_refits_without_trace():
    X = [frames.astype(np.float32) for frames in similar_sets(0, 6)]
    lift = Lift(rbf(0.1), 2).fit(similar_sets(5, 9)).fit(X)
    T = lift.transform(X)
    assert T.dtype == np.float32 and error(
        T, Lift(rbf(0.1), 2).fit_transform([x.astype(float) for x in X])
    ) <= rounding(np.float32, TIGHT)


# ---------------------------------------------------------------------------- errors

X = sets_of(0, [5, 4])
A = [np.eye(5, 2), np.eye(4, 2)]
RBF = rbf(1.0)


@pytest.mark.parametrize(
    "call, kind, match",
    [
        (lambda: rbf(0), ValueError, "gamma must be positive, got 0"),
        (lambda: rbf(np.nan), ValueError, "gamma must be finite, got nan"),
        (lambda: polynomial(0, 1), ValueError, r"degree must be >= 1, got 0"),
        (lambda: polynomial(1.5, 1), TypeError, "degree must be an integer, got 1.5"),
        (lambda: polynomial(2, -1), ValueError, "coef0 must be >= 0, got -1"),
        (
            lambda: RBF(X[0], X[0][:, :2]),
            ValueError,
            r"of one d, got \(5, 6\) and \(5, 2\)",
        ),
        (lambda: RBF(X[0], X), ValueError, "B must be an array, got nested"),
        (
            lambda: kernel_bases(X, None, 2),
            TypeError,
            "kernel must be a callable .* got None",
        ),
        (
            lambda: kernel_bases(X, rbf, 2),
            TypeError,
            "kernel must be a callable .* got <class",
        ),
        (lambda: kernel_bases(X, RBF, 0), ValueError, "p must be >= 1, got 0"),
        (
            lambda: kernel_bases(X, RBF, 6),
            ValueError,
            r"sets\[0\] must hold p = 6 .* 5 frame\(s\) of numerical rank 5",
        ),
        (
            lambda: kernel_bases([X[0], X[1][:, :3]], RBF, 2),
            ValueError,
            r"sets\[0\] has d = 6, sets\[1\] has d = 3",
        ),
        (
            lambda: kernel_bases([X[0], X[1][:0]], RBF, 2),
            ValueError,
            r"sets\[1\] must hold at least one frame .* got shape \(0, 6\)",
        ),
        (
            lambda: kernel_bases([X[0], X[1] + np.inf], RBF, 2),
            ValueError,
            r"sets\[1\] must be finite, got inf",
        ),
        (
            lambda: kernel_bases([X[0], [["a"]]], RBF, 2),
            TypeError,
            r"sets\[1\] must hold real numbers, got dtype <U1",
        ),
        (
            lambda: kernel_bases(3, RBF, 2),
            TypeError,
            "sets must be a sequence of arrays of frames, got int",
        ),
        (
            lambda: kernel_bases(X, lambda a, b: np.ones((2, 2)), 1),
            ValueError,
            r"kernel\(A, B\) must have shape \(5, 5\).* got \(2, 2\)",
        ),
        (
            lambda: kernel_bases(X, lambda a, b: a @ b.T * np.nan, 1),
            ValueError,
            r"kernel\(A, B\) must be finite, got nan",
        ),
        (lambda: kernel_gram(X, A), TypeError, "kernel must be a callable .* got None"),
        (
            lambda: kernel_gram(X, A[:1], kernel=RBF),
            ValueError,
            "bases must hold 2 bases, one a set of sets, got 1",
        ),
        (
            lambda: kernel_gram(X, A[::-1], kernel=RBF),
            ValueError,
            r"bases\[0\] must have shape \(5, p\), .* got \(4, 2\)",
        ),
        (
            lambda: kernel_gram(X, A, X, kernel=RBF),
            ValueError,
            "sets2 and bases2 must be given together",
        ),
        (
            lambda: kernel_gram(X, A, X, A, "rbf"),
            ValueError,
            r"kernel must be kernels.rbf\(gamma\) .* with sets2, got 'rbf'",
        ),
        (
            lambda: Lift("best", 2).fit(X),
            ValueError,
            "kernel must be 'rbf', .* got 'best'",
        ),
        (
            lambda: kernel_gram(X, A, [X[0][:, :2]], A[:1], RBF),
            ValueError,
            "same d, got 6 and 2",
        ),
        (
            lambda: kgsc(X, [], 0.1, kernel=RBF, p=2),
            ValueError,
            "atom_sets must hold at least one set",
        ),
        (
            lambda: kgsc(X, X, 0.1, kernel=RBF, p=2, norm2=2),
            TypeError,
            "unexpected keyword argument 'norm2'",
        ),
        (
            lambda: kglc(X, X, 3, kernel=RBF, p=2),
            ValueError,
            r"n_neighbors must be in 1..2, got 3",
        ),
        (
            lambda: Lift(RBF, 2).transform(X),
            ValueError,
            "Lift must be fitted before transform",
        ),
        (lambda: Lift(RBF, 2).fit([]), ValueError, "sets must hold at least one frame"),
        (
            lambda: Lift(RBF, 2, n_landmarks=0).fit(X),
            ValueError,
            "n_landmarks must be >= 1, got 0",
        ),
        (
            lambda: Lift(RBF, 3, n_landmarks=2, rng=0).fit(X).transform(X),
            ValueError,
            r"n_landmarks must be larger: .* sets\[0\] .* rank 2 < p = 3",
        ),
        (
            lambda: Lift(RBF, 2).fit(X).transform([X[0][:, :2]]),
            ValueError,
            "sets must have d = 6, as in fit, got d = 2 in transform",
        ),
        (
            lambda: Lift(linear(), 2).fit([np.zeros((3, 2))]),
            ValueError,
            r"k\(z, z\) > 0 for a frame of sets, got at most 0",
        ),
        (
            lambda: Lift(RBF, 2).fit([np.zeros((2**14 + 1, 1))]),
            ValueError,
            "n_landmarks must be at most 16384, got None for 16385 frames",
        ),
    ],
)
def test_bad_input_is_named(call, kind, match):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(kind, match=match):
            call()


# frames that float32 does not take lightly, of noise (20, 5, 40)
FRAMES = {
    "near": lambda noise: noise[:, :1] + 1e-3 * noise,
    "far": lambda noise: 100 + noise,
    "small": lambda noise: 1e-6 * noise,
    "large": lambda noise: 1e6 * noise,
    "walks": lambda noise: np.cumsum(noise, axis=2),
    "images": lambda noise: np.clip(np.rint(128 + 64 * noise), 0, 255),
}
OF_FRAMES = {
    "rbf": lambda frames: rbf(median_gamma(frames)),
    "narrow": lambda frames: rbf(8 * median_gamma(frames)),
    "polynomial": lambda frames: polynomial(2),
    "linear": lambda frames: linear(),
}


@rarely
@pytest.mark.parametrize("frames", FRAMES)
@given(seeds, st.sampled_from([*OF_FRAMES]), st.integers(1, 3))
def test_float32_costs_little(frames, seed, kernel, p):
    """Gram matrices, and what its codes cost more."""
    noise = np.random.default_rng(seed).standard_normal((20, 5, 40))
    single = FRAMES[frames](noise).astype(np.float32)
    both = [single, single.astype(float)]
    kernel = OF_FRAMES[kernel](both[1])
    try:
        of_both = [kernel_bases(F, kernel, p) for F in both]
    except ValueError:
        assume(False)  # refused
    K, expected = (kernel_gram(F, A, kernel=kernel) for F, A in zip(both, of_both))
    assert error(K, expected) <= 1e-4 * np.abs(expected).max()
    for code, how, lam in ((kgsc, 0.1, 0.1), (kglc, 3, 0)):
        y = np.array([code(F[:5], F[5:], how, kernel=kernel, p=p) for F in both], float)
        l1 = np.abs(y).sum(axis=2)
        costs = ((y @ expected[5:, 5:] - 2 * expected[:5, 5:]) * y).sum(axis=2)
        excess = costs[0] - costs[1] + lam * (l1[0] - l1[1])
        assert (excess <= 1e-5 * p * (1 + l1.max(axis=0)) ** 2).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_median_gamma_is_near_that_of_all_pairs(seed, offset):
    """Also of frames far from 0, and of near ones beside one that is far from all."""
    rng = np.random.default_rng(seed)
    sets = [
        offset + rng.uniform(0.5, 2) * rng.standard_normal((n, 5))
        for n in rng.integers(1, 90, 20)
    ]
    every = 1 / np.median(pdist(np.concatenate(sets), "sqeuclidean"))
    assert median_gamma(sets) == pytest.approx(every, rel=0.2)
    few = [sets[0][:20], 1e9 + sets[1][:1]]
    exact = 1 / np.median(pdist(np.concatenate(few), "sqeuclidean"))
    assert median_gamma(few) == pytest.approx(exact, rel=1e-9)


def test_median_gamma_is_of_frames_from_all_sets():
    """Not of the first thousand frames, which may lie near each other."""
    rng = np.random.default_rng(0)
    near = rng.standard_normal((1000, 3))
    far = 10 * rng.standard_normal((3000, 3))
    few = np.concatenate([near[::10], far[::10]])
    assert kernels.median_gamma([near, far]) == pytest.approx(
        kernels.median_gamma([few]), rel=0.3
    )


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tied", ["queries", "atoms"])
def test_coding_warns_of_subspaces_that_are_not_unique_on_either_side(tied):
    """Two frames of one length at a right angle have no leading direction."""
    first = [np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0]])]
    second = [np.array([[0.0, 2.0, 0.0], [2.0, 0.0, 0.0]])]
    sides = (second, first) if tied == "queries" else (first, second)
    with pytest.warns(UserWarning, match=r"not unique in 1 case\(s\)"):
        kernels.kgsc(*sides, 0.1, kernel=kernels.linear(), p=1)


def test_coordinates_are_orthonormal_where_training_frames_are_nearly_dependent():
    """Rounding of a query is magnified there, up to lengths above 1."""
    rng = np.random.default_rng(17)
    still = [5 + 1e-3 * rng.standard_normal((20, 3)) for _ in range(3)]
    moving = [5 + 5 * rng.standard_normal((8, 3)) for _ in range(3)]
    for p in (1, 2):
        lift = kernels.Lift(kernels.polynomial(2, 1.0), p=p).fit(still)
        for sets in (still, moving):
            Z = lift.transform(sets)
            assert (
                error(Z.swapaxes(1, 2) @ Z, np.broadcast_to(np.eye(p), (3, p, p)))
                < LOOSE
            )


@pytest.mark.parametrize("size", [1e5, 1e9, 1e20, 1e130])
def test_a_far_set_changes_nothing_between_others(size):
    """It drags the origin from which norms are measured away."""
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((6, 3)) for _ in range(5)]
    far = size * (1 + rng.standard_normal((6, 3)))
    kernel = kernels.rbf(1.0)
    alone = kernel(sets[0], sets[1])
    beside = kernel(sets[0], np.concatenate([sets[1], far]))
    assert error(beside[:, :6], alone) < 1e-15
    bases = kernels.kernel_bases(sets, kernel, 2)
    K = kernels.kernel_gram(sets, bases, kernel=kernel)
    bases = [*bases, *kernels.kernel_bases([far], kernel, 2)]
    both = kernels.kernel_gram([*sets, far], bases, kernel=kernel)
    assert error(both[:5, :5], K) < 1e-14 and np.abs(both[5, :5]).max() < 1e-300
