"""The public strategies: what they draw, that strangers' tests find bugs with them, and
that these shrink.
"""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

import grassmann_sc as gs
from grassmann_sc import intrinsic, strategies, subspaces
from oracles import LOOSE, TIGHT, dtypes, error, hat, rounding, violation

laws = settings(deadline=None, max_examples=60)
soon = settings(
    max_examples=2000,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
)


# ------------------------------------------------------------------------ what is drawn


@laws
@given(strategies.subspaces(dtype=dtypes))
def test_subspaces_are_bases(X):
    tol = rounding(X.dtype, 1e-14)
    assert error(np.swapaxes(X, 1, 2) @ X, np.eye(X.shape[2])) < tol
    assert 1 <= len(X) <= 6 and X.shape[2] <= X.shape[1] <= 8


@pytest.mark.parametrize(
    "kind, low, high",
    [
        ("repeated", 0, 1e-14),
        ("near", 0, 1e-3),
        ("orthogonal", 2 - 1e-14, 2 + 1e-14),
        ("random", 0, 2 + 1e-14),
    ],
)
def test_kinds_relate_neighbours(kind, low, high):
    @laws
    @given(strategies.subspaces(n=2, d=st.integers(4, 8), p=2, kinds=[kind]))
    def distances_are_in_bounds(X):
        assert low <= gs.chordal_distance(X)[0, 1] <= high

    distances_are_in_bounds()
    if kind in ("random", "near"):  # and no constant
        apart = strategies.subspaces(n=2, d=5, p=2, kinds=[kind])
        find(apart, lambda X: 1e-9 < gs.chordal_distance(X)[0, 1] < 1.9, settings=soon)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda X: X.shape[1] == X.shape[2] > 2,
        lambda X: X.shape[2] == 1 < X.shape[1],
        lambda X: len(X) > 1 and gs.chordal_distance(X)[0, 1] == 0,
        lambda X: len(X) > 1 and 0 < gs.chordal_distance(X)[0, 1] < 1e-5,
        lambda X: len(X) > 1 and 0.1 < gs.chordal_distance(X)[0, 1] < 1,
    ],
)
def test_what_breaks_naive_code_is_drawn(wanted):
    find(strategies.subspaces(), wanted, settings=soon)
    find(strategies.dictionaries(), wanted, settings=soon)


@laws
@given(strategies.pairs_of_sets(dtype=dtypes))
def test_pairs_of_sets_share_a_space_and_a_type(pair):
    X, Y = pair
    assert X.shape[1] == Y.shape[1] and X.dtype == Y.dtype


@laws
@given(strategies.pairs_at_angles(dtype=dtypes))
def test_pairs_have_their_angles(pair):
    assert len(pair.angles) == min(pair.X.shape[1], pair.Y.shape[1])
    tol = rounding(pair.X.dtype, 2e-15)
    assert error(gs.principal_angles(pair.X, pair.Y), pair.angles) < tol


@given(st.data())
def test_angles_can_be_given(data):
    pair = data.draw(strategies.pairs_at_angles([0.7, 0.2]))
    assert pair.angles.tolist() == [0.2, 0.7]
    assert error(gs.principal_angles(*pair[:2]), [0.2, 0.7]) < 2e-15


@pytest.mark.parametrize("angle", [0, 1e-12, math.pi / 2 - 1e-9, math.pi / 2])
@pytest.mark.parametrize(
    "shape", [lambda p, q: p < q, lambda p, q: p == q, lambda p, q: p > q]
)
def test_each_angle_is_drawn_for_each_shape(angle, shape):
    def wanted(pair):
        several = len(pair.angles) > 1
        is_shape = shape(pair.X.shape[1], pair.Y.shape[1])
        return several and is_shape and angle in pair.angles

    find(strategies.pairs_at_angles(), wanted, settings=soon)


@laws
@given(strategies.tangents(dtype=dtypes))
def test_tangents_are_tangent_and_the_log_of_their_exp(drawn):
    X, H = drawn
    tol = rounding(X.dtype, 1e-14)
    assert error(X.T @ H, 0) < tol
    assert np.linalg.norm(H, 2) <= 1.5 + tol
    assert error(intrinsic.log_map(X, intrinsic.exp_map(X, H)), H) < 10 * tol


@laws
@given(strategies.tangents(largest=0.25))
def test_tangents_are_no_longer_than_asked_for(drawn):
    assert np.linalg.norm(drawn.H, 2) <= 0.25 + 1e-14


@laws
@given(strategies.grams(dtype=dtypes))
def test_grams_are_those_of_subspaces(K):
    p = K[0, 0]
    assert np.array_equal(K, K.T) and error(K.diagonal(), round(float(p))) < rounding(
        K.dtype
    )
    assert np.linalg.eigvalsh(K.astype(float)).min() > -len(K) * p * rounding(K.dtype)
    assert K.min() > -rounding(K.dtype)


@laws
@given(strategies.coding_problems())
def test_coding_problems_hold_the_inner_products(problem):
    traces = np.trace(hat(problem.X)[:, None] @ hat(problem.D), axis1=2, axis2=3)
    assert error(problem.K_xd, traces) < TIGHT
    assert error(problem.K_dd, gs.projection_kernel(problem.D)) < TIGHT
    assert (
        problem.norm2 == problem.X.shape[2]
        and problem.lam >= 0
        and problem.codes is None
    )


@laws
@given(strategies.solved_problems(dtype=dtypes))
def test_known_codes_are_optimal_and_the_only_ones(problem):
    """By the optimality conditions, and a Gram matrix that is far from singular."""
    for k, y in zip(problem.K_xd, problem.codes):
        assert violation(problem.K_dd, k, y, problem.lam) < TIGHT * problem.norm2
    assert np.linalg.eigvalsh(problem.K_dd).min() > 1e-3 * problem.norm2
    codes = gs.sparse_codes(
        problem.K_dd, problem.K_xd, problem.lam, norm2=problem.norm2, tol=1e-14
    )
    assert error(codes, problem.codes) < LOOSE


@pytest.mark.parametrize(
    "wanted",
    [
        lambda problem: (np.count_nonzero(problem.codes, axis=1) > 2).any(),
        lambda problem: (problem.codes < 0).any(),
        lambda problem: problem.codes.size > 2 and not problem.codes.any(),
    ],
)
def test_known_codes_are_of_many_kinds(wanted):
    find(strategies.solved_problems(), wanted, settings=soon)


@laws
@given(
    strategies.image_sets(
        d=st.integers(3, 9),
        p=3,
        dtype=st.sampled_from([np.float64, np.float32, np.uint8]),
    )
)
def test_image_sets_have_subspaces_of_their_dimension(drawn):
    assert len(drawn.sets) == len(drawn.labels)
    assert len({frames.dtype for frames in drawn.sets}) == 1
    assert subspaces.from_sets(drawn.sets, 3).shape[::2] == (len(drawn.sets), 3)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: strategies.subspaces(d=2, p=3), "d must be >= 3, got 2"),
        (lambda: strategies.subspaces(n=-1), "n must be >= 0, got -1"),
        (lambda: strategies.image_sets(n=-1), "n must be >= 0, got -1"),
        (lambda: strategies.tangents(largest=-1), "largest must be >= 0, got -1"),
        (lambda: strategies.coding_problems(share=-1.0), "share must be >= 0, got -1"),
        (
            lambda: strategies.subspaces(kinds=["equal"]),
            "kind must be 'random', .* got 'equal'",
        ),
        (
            lambda: strategies.pairs_at_angles([2.0]),
            r"angles must be one or more in \[0, pi/2\]",
        ),
        (
            lambda: strategies.pairs_at_angles(0.3),
            r"angles must be one or more in \[0, pi/2\], got 0.3",
        ),
    ],
)
def test_wrong_arguments_are_named(wrong, message):
    with pytest.raises(ValueError, match=message):
        find(wrong(), lambda drawn: True, settings=soon)


# -------------------------------------------------------------------- a stranger's test


def angles_by_arccos(X, Y):
    return np.arccos(np.clip(np.linalg.svd(X.T @ Y, compute_uv=False), 0, 1))


def gram_without_square(X, Y):
    return np.linalg.norm(np.swapaxes(X, 1, 2)[:, None] @ Y, axis=(2, 3))


def codes_without_neighbours(K_dd, K_xd, lam, norm2):
    """Soft thresholds, as if no two atoms had an inner product."""
    return np.sign(K_xd) * np.maximum(np.abs(K_xd) - lam / 2, 0) / K_dd.diagonal()


def law_of_angles(my_angles):
    @settings(database=None, deadline=None)
    @given(strategies.pairs_at_angles())
    def stranger(pair):
        assert np.allclose(my_angles(pair.X, pair.Y), pair.angles, rtol=0, atol=1e-14)

    return stranger


def law_of_gram(my_gram):
    @settings(database=None, deadline=None)
    @given(strategies.pairs_of_sets())
    def stranger(pair):
        explicit = np.einsum("nab,mba->nm", *(A @ np.swapaxes(A, 1, 2) for A in pair))
        assert np.allclose(my_gram(*pair), explicit, atol=1e-13)

    return stranger


def law_of_codes(my_codes):
    @settings(database=None, deadline=None)
    @given(strategies.solved_problems())
    def stranger(problem):
        codes = my_codes(problem.K_dd, problem.K_xd, problem.lam, norm2=problem.norm2)
        assert np.allclose(codes, problem.codes, atol=1e-3)

    return stranger


STRANGERS = [
    (law_of_angles, angles_by_arccos, gs.principal_angles),
    (law_of_gram, gram_without_square, gs.projection_kernel),
    (law_of_codes, codes_without_neighbours, gs.sparse_codes),
]


@pytest.mark.parametrize("law, wrong, true", STRANGERS)
def test_a_strangers_three_lines_find_the_bug(law, wrong, true):
    with pytest.raises(AssertionError):
        law(wrong)()
    law(true)()


# ---------------------------------------------------------------------------- shrinking


def test_the_least_of_each_strategy_is_one_axis():
    assert find(strategies.sizes(), bool, settings=soon) == (1, 1)
    least = {
        name: find(getattr(strategies, name)(), lambda drawn: True, settings=soon)
        for name in strategies.__all__
    }
    assert least["subspaces"].tolist() == least["dictionaries"].tolist() == [[[1.0]]]
    assert [A.tolist() for A in least["pairs_of_sets"]] == [[[[1.0]]], [[[1.0]]]]
    assert [A.tolist() for A in least["pairs_at_angles"]] == [
        [[1.0], [0.0]],
        [[1.0], [1e-12]],
        [1e-12],
    ]
    assert [A.tolist() for A in least["tangents"]] == [[[1.0]], [[0.0]]]
    assert least["grams"].tolist() == [[1.0]]
    assert least["coding_problems"].lam == 1.0
    assert least["solved_problems"].codes.tolist() == [[0.5]]
    assert [frames.tolist() for frames in least["image_sets"].sets] == [[[1.0]]]


def test_bugs_shrink_to_few_axes():
    def arccos_fails(pair):
        return error(np.sort(angles_by_arccos(pair.X, pair.Y)), pair.angles) > 1e-14

    pair = find(strategies.pairs_at_angles(), arccos_fails, settings=soon)
    assert pair.X.tolist() == [[1.0], [0.0]] and pair.angles.tolist() == [1e-12]
    X, Y = find(
        strategies.pairs_of_sets(),
        lambda XY: error(gram_without_square(*XY), gs.projection_kernel(*XY)) > 1e-13,
        settings=soon,
    )
    assert len(X) == len(Y) == 1 and X.shape[1] <= 4


@given(strategies.pairs_of_sets(n=st.integers(0, 2)))
def test_pairs_may_be_empty(pair):
    assert len(pair[0]) <= 2


@pytest.mark.parametrize("dtype", [int, bool, np.float16])
def test_types_that_hold_no_orthonormal_columns_are_refused(dtype):
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got "):
        find(strategies.subspaces(dtype=dtype), lambda X: True)


def test_problems_have_an_atom():
    with pytest.raises(ValueError, match="n_atoms must be >= 1, got 0"):
        find(strategies.coding_problems(n_atoms=0), lambda problem: True)
