"""Class residuals and labels: from codes and Gram matrices, and from subspaces in one
call.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, given, settings

import grassmann_sc as gs
from grassmann_sc.strategies import bases, coding_problems, rotation
from oracles import LOOSE, TIGHT, booleans, dtypes, error, seeds, vectors

laws = settings(deadline=None, max_examples=40)

LABELS = [
    [2, 0, 2, 1],
    ["b", "a", "b", "c"],
    [(1, 2), (0, 1), (1, 2), (1, 1)],
    [frozenset({1}), frozenset({2}), frozenset({1}), frozenset()],
    [1, "a", 1, None],
    [True, False, True, False],
    np.array([2.5, 1, 2.5, 0]),
    np.array(["x", None, "x", 3], object),
]


# ---------------------------------------------------------------------- class residuals


def test_sparse_codes_of_the_caller_stay_as_they_are():
    """SciPy sorts entries, and adds up those of one place, in the arrays that it has."""
    content = np.array([0.2, 0.3, 0.1]), np.array([2, 0, 0]), np.array([0, 3])
    for array in content:
        array.flags.writeable = False
    codes = scipy.sparse.csr_array(content, shape=(1, 3))
    problem = np.eye(3), [[0.5, 0.1, 0.3]], ["cat", "dog", "cat"]
    dense = codes.toarray()
    for call in (gs.class_scores, gs.class_residuals, gs.score_shares):
        values, expected = (call(y, *problem, norm2=1)[0] for y in (codes, dense))
        assert np.array_equal(values, expected)
    assert codes.indices.tolist() == [2, 0, 0] and codes.nnz == 3


@laws
@given(coding_problems(), seeds, booleans)
def test_class_residuals_are_those_of_d_by_d_matrices(problem, seed, sparse):
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal(problem.K_xd.shape)
    labels = rng.integers(0, 3, len(problem.D))
    given_codes = scipy.sparse.csr_array(codes) if sparse else codes
    residuals, classes = gs.class_residuals(
        given_codes, problem.K_dd, problem.K_xd, labels, norm2=problem.norm2
    )
    assert np.array_equal(classes, np.unique(labels))
    assert residuals.shape == (len(problem.X), len(classes)) and (residuals >= 0).all()
    explicit = [
        np.square(vectors(problem.X) - (codes * (labels == c)) @ vectors(problem.D))
        for c in classes
    ]
    assert error(residuals.T, np.sum(explicit, axis=2)) < LOOSE / 100


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_residuals_of_queries_that_are_atoms_are_zero_to_rounding_never_below(dtype):
    D = gs.random_subspaces(50, 7, 3, rng=0).astype(dtype)
    K = gs.projection_kernel(D)
    residuals, _ = gs.class_residuals(np.eye(50), K, K, np.arange(50), norm2=3)
    own = residuals.diagonal()
    assert (own >= 0).all() and own.max() <= 100 * np.finfo(dtype).eps


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_any_hashable_is_a_label(labels):
    D = bases(np.random.default_rng(0), 3, 5, 2)[[0, 1, 0, 2]]
    K = gs.projection_kernel(D)
    codes = gs.gsc(D, D, 0.01)
    residuals, classes = gs.class_residuals(codes, K, K, labels, norm2=2)
    assert residuals.shape == (4, len(set(labels))) and set(classes.tolist()) == set(
        labels
    )
    assert classes[residuals.argmin(axis=1)].tolist() == list(labels)
    assert gs.classify(D, D, labels, lam=0.01).tolist() == list(labels)
    assert gs.classify(D, D, labels, n_neighbors=2).tolist() == list(labels)
    column, only = gs.class_residuals(
        codes[:, :1], K[:1, :1], K[:, :1], labels[:1], norm2=2
    )
    assert only[column.argmin(axis=1)].tolist() == 4 * [labels[0]]
    assert gs.classify(D, D[:1], labels[:1], lam=0.01).tolist() == 4 * [labels[0]]


def test_sortable_classes_are_sorted_and_others_keep_their_order():
    K = np.eye(4)

    def classes(labels):
        return gs.class_residuals(K, K, K, labels, norm2=1)[1]

    assert classes([3, 1, 2, 3]).tolist() == [1, 2, 3]
    assert classes(["b", 1, None, "b"]).tolist() == ["b", 1, None]
    assert classes([3, 1, 2, 3]).dtype == np.array([1]).dtype
    assert classes([(2,), (1,), (2,), (3,)]).tolist() == [(1,), (2,), (3,)]


# ---------------------------------------------------------------------------- classify


def of_gram_form(codes, X, D, labels):
    """Residuals and classes from the codes and the Gram matrices of X and D."""
    return gs.class_residuals(
        codes,
        gs.projection_kernel(D),
        gs.projection_kernel(X, D),
        labels,
        norm2=X.shape[2],
    )


def winners(codes, X, D, labels, rule="residual"):
    scores, classes = gs.class_scores(
        codes,
        gs.projection_kernel(D),
        gs.projection_kernel(X, D),
        labels,
        norm2=X.shape[2],
        rule=rule,
    )
    return classes[scores.argmax(axis=1)]


def drawn(problem, seed, dtype):
    """Queries, atoms and labels of a drawn problem."""
    labels = np.random.default_rng(seed).integers(0, 3, len(problem.D))
    return problem.X.astype(dtype), problem.D.astype(dtype), labels


@laws
@given(coding_problems(), seeds, dtypes, booleans)
def test_classify_by_sparse_codes_is_coding_then_scores(problem, seed, dtype, positive):
    X, D, labels = drawn(problem, seed, dtype)
    options = dict(lam=problem.lam, positive=positive)
    result = gs.classify(X, D, labels, **options, return_info=True)
    codes = gs.gsc(X, D, **options)
    residuals, classes = of_gram_form(codes, X, D, labels)
    assert np.array_equal(result.codes, codes) and result.codes.dtype == dtype
    assert (
        np.array_equal(result.residuals, residuals) and result.residuals.dtype == dtype
    )
    assert np.array_equal(result.classes, classes)
    assert np.array_equal(result.labels, winners(codes, X, D, labels))
    assert np.array_equal(result.labels, gs.classify(X, D, labels, **options))


@laws
@given(coding_problems(), seeds, dtypes, st.data())
def test_classify_by_local_codes_is_coding_then_scores(problem, seed, dtype, data):
    X, D, labels = drawn(problem, seed, dtype)
    m = data.draw(st.integers(1, len(D)))
    reg = data.draw(st.sampled_from([None, 1e-3]))
    result = gs.classify(X, D, labels, n_neighbors=m, reg=reg, return_info=True)
    codes = gs.glc(X, D, m, reg=reg)
    residuals, classes = of_gram_form(codes, X, D, labels)
    assert np.array_equal(result.codes, codes) and result.codes.dtype == dtype
    assert (
        np.array_equal(result.residuals, residuals) and result.residuals.dtype == dtype
    )
    assert np.array_equal(result.labels, winners(codes, X, D, labels, "sum"))
    assert np.array_equal(
        result.labels, gs.classify(X, D, labels, n_neighbors=m, reg=reg)
    )


@laws
@given(coding_problems(), seeds, st.data())
def test_labels_by_local_codes_do_not_depend_on_the_origin(problem, seed, data):
    """A direction that all subspaces share adds 1 to every inner product, which moves
    the origin. Codes, sums and labels stay, to rounding, where it does not decide which
    atoms are the nearest, which of them are the query, and which sum is the largest.
    """
    X, D, labels = drawn(problem, seed, np.float64)
    square = gs.chordal_distance(X, D) ** 2
    # an atom is the query up to a square of 64 eps times p here and p + 1 there
    eps = np.finfo(float).eps * X.shape[2]
    assume(((square < 16 * eps) | (square > 512 * eps)).all())
    counts = numbers_of_clear_neighbors(square)
    options = dict(n_neighbors=data.draw(st.sampled_from(counts)), reg=1e-3)
    result = gs.classify(X, D, labels, **options, return_info=True)
    moved = with_shared_direction(X), with_shared_direction(D)
    other = gs.classify(*moved, labels, **options, return_info=True)
    assert error(other.codes, result.codes) < 1e-6
    sums = np.stack(
        [result.codes[:, labels == c].sum(axis=1) for c in result.classes], axis=1
    )
    second, first = np.sort(np.c_[np.full(len(X), -9.0), sums], axis=1)[:, -2:].T
    clear = first - second > 1e-5
    assert np.array_equal(
        result.labels[clear], result.classes[sums.argmax(axis=1)][clear]
    )
    assert np.array_equal(other.labels[clear], result.labels[clear])


def numbers_of_clear_neighbors(square):
    """The m for which no query has its m-th and its next atom at one distance, to
    rounding: all atoms, where p = d. square: squared distances (n, N).
    """
    gaps = np.diff(np.sort(square, axis=1), append=np.inf)
    return [m for m, gap in enumerate(gaps.T, start=1) if gap.min() > TIGHT]


def with_shared_direction(bases):
    """Subspaces (n, d + 1, p + 1): those of bases and the last axis."""
    n, d, p = bases.shape
    wider = np.zeros((n, d + 1, p + 1))
    wider[:, :d, :p] = bases
    wider[:, d, p] = 1
    return wider


def test_by_local_codes_a_class_of_two_near_atoms_wins_over_one_that_is_farther():
    """Its residual is the larger: nearly orthogonal atoms have coefficients near 1/3."""
    D = np.eye(4)[:3, :, None]
    query = np.array([0.2, 0.2, 0.1, 0.95])
    X = (query / np.linalg.norm(query))[None, :, None]
    result = gs.classify(
        X, D, ["right", "right", "other"], n_neighbors=3, return_info=True
    )
    assert np.abs(result.codes - 1 / 3).max() < 0.03
    assert result.labels.tolist() == ["right"]
    assert result.classes[result.residuals.argmin(axis=1)].tolist() == ["other"]
    assert winners(result.codes, X, D, ["right", "right", "other"]).tolist() == [
        "other"
    ]


@laws
@given(coding_problems(), seeds, st.sampled_from([0.01, 0.3]))
def test_classify_takes_lam_in_units_of_each_querys_own(problem, seed, lam):
    X, D, labels = drawn(problem, seed, np.float64)
    result = gs.classify(X, D, labels, lam=lam, lam_scale="max", return_info=True)
    codes = gs.gsc(X, D, lam, lam_scale="max")
    assert np.array_equal(result.codes, codes)


@pytest.mark.parametrize("options", [dict(lam=0.05), dict(n_neighbors=3)], ids=str)
def test_queries_near_an_atom_get_its_label_whatever_the_basis(options):
    rng = np.random.default_rng(0)
    D = bases(rng, 6, 9, 2)
    near = gs.orthonormalize(D + 0.05 * rng.standard_normal(D.shape)) @ rotation(rng, 2)
    labels = list("abcabc")
    assert gs.classify(near[::-1], D, labels, **options).tolist() == labels[::-1]


def test_a_tie_goes_to_the_first_class():
    D = np.eye(4)[[0, 1], :, None]
    assert gs.classify(np.eye(4)[2:3, :, None], D, ["b", "a"], lam=0.1).tolist() == [
        "a"
    ]


def test_queries_and_atoms_of_classify_may_differ_in_dimension():
    X = gs.random_subspaces(5, 6, 3, rng=0)
    D = gs.random_subspaces(4, 6, 2, rng=1)
    result = gs.classify(X, D, [0, 0, 1, 1], lam=0.1, return_info=True)
    residuals, _ = of_gram_form(gs.gsc(X, D, 0.1), X, D, [0, 0, 1, 1])
    assert np.array_equal(result.residuals, residuals)
    assert result._fields == ("labels", "residuals", "classes", "codes")


@pytest.mark.parametrize(
    "options, text",
    [
        (
            dict(),
            "^give either lam or n_neighbors, got lam = None and n_neighbors = None",
        ),
        (
            dict(lam=0.1, n_neighbors=2),
            r"^give either lam or n_neighbors, got lam = 0\.1 and "
            "n_neighbors = 2",
        ),
        (
            dict(n_neighbors=2, positive=True),
            "^positive and lam_scale belong to sparse coding, ",
        ),
        (
            dict(n_neighbors=2, lam_scale="max"),
            "^positive and lam_scale belong to sparse coding, ",
        ),
        (dict(lam=0.1, reg=1e-3), r"^reg belongs to n_neighbors, .* got 0\.001"),
        (dict(lam=[0.1, 0.2]), r"^lam must be one number >= 0, got \[0\.1, 0\.2\]"),
        (dict(lam=-0.1), r"^lam must be a number >= 0 .*got -0\.1"),
        (
            dict(lam=0.1, lam_scale="mean"),
            "^lam_scale must be None or 'max', got 'mean'",
        ),
        (dict(lam=0.1, tol=0), "^tol must be positive, got 0"),
        (dict(lam=0.1, max_iter=0), "^max_iter must be >= 1, got 0"),
        (dict(n_neighbors=4), r"^n_neighbors must be in 1\.\.3, got 4"),
        (dict(n_neighbors=2, reg=-1), "^reg must be >= 0, got -1"),
    ],
    ids=str,
)
def test_options_of_classify(options, text):
    X = gs.random_subspaces(2, 4, 2, rng=0)
    D = gs.random_subspaces(3, 4, 2, rng=1)
    with pytest.raises(ValueError, match=text):
        gs.classify(X, D, [0, 1, 2], **options)


@pytest.mark.parametrize(
    "labels", [["a\0", "a"], [2**63 + 1, -1], [2**53 + 1, 2.0**53]]
)
def test_labels_are_never_altered(labels):
    _, classes = gs.class_residuals(
        np.eye(2)[:1], np.eye(2), np.eye(2)[:1], labels, norm2=1
    )
    assert sorted(classes.tolist()) == sorted(labels)


# --------------------------------------------------------------------- which class wins


def far_problem(far, n=40, n_atoms=24, n_classes=4):
    """Inner products of nearly orthogonal atoms, and of queries with them of about the
    size far.
    """
    rng = np.random.default_rng(0)
    K_dd = far * np.abs(np.corrcoef(rng.standard_normal((n_atoms, 50))))
    np.fill_diagonal(K_dd, 1)
    K_xd = far * rng.random((n, n_atoms))
    return K_dd, K_xd, np.arange(n_atoms) % n_classes


@pytest.mark.parametrize("lam", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("rule", gs.RULES)
def test_class_scores_lose_nothing_where_inner_products_are_small(lam, rule):
    """Codes and scores of products with orthonormal atoms are known: y = S(k), k far
    from norm2.
    """
    _, K_xd, labels = far_problem(1.0)
    y = np.maximum(K_xd - lam / 2 * 2 * K_xd.max(axis=1, keepdims=True), 0)
    of_class = [y[:, labels == c] for c in range(4)]
    explained = [
        (part * (2 * K_xd[:, labels == c] - part)).sum(axis=1)
        for c, part in enumerate(of_class)
    ]
    expected = {
        "residual": explained,
        "sum": [part.sum(axis=1) for part in of_class],
        "max": [part.max(axis=1) for part in of_class],
    }[rule]
    for far in (1.0, 1e-12, 1e-40, 1e-100):
        codes = gs.sparse_codes(
            np.eye(24), far * K_xd, lam, norm2=400.0, lam_scale="max"
        )
        assert error(codes / far, y) < LOOSE
        scores, _ = gs.class_scores(
            codes, np.eye(24), far * K_xd, labels, norm2=400.0, rule=rule
        )
        assert np.array_equal(scores.argmax(axis=1), np.argmax(expected, axis=0))


@pytest.mark.parametrize("n_neighbors", [1, 2, 3])
@pytest.mark.parametrize("rule", gs.RULES)
def test_no_class_without_an_atom_in_the_code_wins(n_neighbors, rule):
    for far in (0.1, 1e-20):
        K_dd, K_xd, labels = far_problem(far)
        codes = gs.locality_codes(K_dd, K_xd, n_neighbors, norm2=1.0)
        nearest = np.argsort(-K_xd, axis=1)[:, :n_neighbors]
        assert np.array_equal(
            np.sort(nearest, axis=1), np.nonzero(codes)[1].reshape(nearest.shape)
        )
        scores, _ = gs.class_scores(codes, K_dd, K_xd, labels, norm2=1.0, rule=rule)
        won = scores.argmax(axis=1)
        assert (labels[nearest] == won[:, None]).any(axis=1).all()
        if n_neighbors == 1:
            assert np.array_equal(won, labels[nearest[:, 0]])
    codes = np.array([[-0.5, 0, -0.2, 0]])
    scores, _ = gs.class_scores(
        codes, np.eye(4), [[0.1, 0.5, 0.1, 0]], [0, 1, 2, 3], norm2=1.0, rule=rule
    )
    assert scores.argmax() == 2
    scores, _ = gs.class_scores(
        [[0.4, 0]], np.eye(2), [[0.5, 0.1]], [0, 1], norm2=1.0, rule=rule
    )
    assert scores[0, 0] > 0 and scores[0, 1] == 0


def test_class_scores_that_are_equal_go_to_the_first_class():
    for rule in gs.RULES:
        scores, _ = gs.class_scores(
            [[0.5, 0.5, 0.0]],
            np.eye(3),
            [[0.3, 0.3, 0.9]],
            [0, 1, 2],
            norm2=1.0,
            rule=rule,
        )
        assert scores[0, 0] == scores[0, 1] and scores.argmax() == 0


def test_the_nearest_atom_is_the_one_of_least_distance_whatever_the_lengths():
    """A long atom has the larger inner product with a query, and is farther from it."""
    K_dd = np.diag([1.0, 2.0])
    for codes in ([[0.5, 0.5]], [[0.0, 0.0]]):
        scores, _ = gs.class_scores(
            codes, K_dd, [[0.3, 0.4]], [0, 1], norm2=1.0, rule="sum"
        )
        assert scores.argmax() == 0
    assert gs.locality_codes(K_dd, [[0.3, 0.4]], 1, norm2=1.0).tolist() == [[1, 0]]


def test_a_code_that_float32_makes_zero_has_the_residuals_of_a_zero_code():
    K_dd = np.eye(2, dtype=np.float32)
    K_xd = np.array([[0.5, 0.1]], np.float32)
    residuals, _ = gs.class_residuals([[1e-60, 0.0]], K_dd, K_xd, [0, 1], norm2=1)
    assert np.array_equal(residuals, [[1, 1]])


def test_the_largest_coefficient_of_a_class_may_be_zero():
    rng = np.random.default_rng(0)
    codes = -rng.random((40, 9))
    codes[rng.random((40, 9)) < 0.4] = 0
    codes[:, :3] -= 1e-3  # each class has an atom in the code
    labels = np.arange(9) % 3
    scores, _ = gs.class_scores(
        codes, np.eye(9), np.zeros((40, 9)), labels, norm2=1.0, rule="max"
    )
    assert np.array_equal(
        scores, [[y[labels == c].max() for c in range(3)] for y in codes]
    )


def test_the_largest_coefficient_of_a_class_may_be_negative():
    """The paper's y_c has zeros for other atoms, so that its largest is never below 0.

    Ours are of the class alone. Where one is positive, the same class wins.
    """
    codes = np.array([[-0.5, -0.2, 0.4, -0.1], [-0.5, -0.2, -0.4, -0.1]])
    scores, classes = gs.class_scores(
        codes, np.eye(4), codes, list("aabb"), norm2=1.0, rule="max"
    )
    assert scores.tolist() == [[-0.2, 0.4], [-0.2, -0.1]]
    padded = np.maximum(scores, 0)  # the paper's
    assert classes[scores.argmax(axis=1)].tolist() == ["b", "b"]
    assert classes[padded.argmax(axis=1)].tolist() == ["b", "a"]


def test_zero_codes_get_the_label_of_the_nearest_atom_and_a_warning():
    X = gs.random_subspaces(30, 12, 2, rng=0)
    labels = np.arange(30) % 5
    text = r"^30 of 30 codes \(100 %\) are zero: these .* Their lam_max is 4 to 4;"
    with pytest.warns(UserWarning, match=text) as caught:
        assert np.array_equal(gs.classify(X, X, labels, lam=100.0), labels)
    assert len(caught) == 1 and caught[0].filename == __file__
    far = 1e-30 * np.random.default_rng(0).random((20, 30))
    scores, _ = gs.class_scores(np.zeros((20, 30)), np.eye(30), far, labels, norm2=1.0)
    assert np.array_equal(scores.argmax(axis=1), labels[far.argmax(axis=1)])


@pytest.mark.parametrize("scale", [1, 1e-30])
def test_the_label_of_a_zero_code_is_that_of_the_nearest_atom(scale):
    """Also where inner products are far below rounding of the atoms' lengths."""
    k = scale * np.random.default_rng(0).random((20, 6))
    K_dd = np.eye(6) + np.diag(1e-16 * np.arange(6))
    for rule in gs.RULES:
        scores, _ = gs.class_scores(
            np.zeros((20, 6)), K_dd, k, np.arange(6), norm2=1.0, rule=rule
        )
        assert np.array_equal(scores.argmax(axis=1), k.argmax(axis=1))


def test_classes_of_zero_codes_are_scored_by_what_an_atom_alone_explains():
    K_dd = np.diag(np.linspace(1, 2, 6))
    k = 0.9 * np.random.default_rng(0).random((20, 6))
    labels = np.arange(6) % 3
    for rule in gs.RULES:
        scores, _ = gs.class_scores(
            np.zeros((20, 6)), K_dd, k, labels, norm2=1.0, rule=rule
        )
        alone = 2 * k - (K_dd.diagonal() - 1)  # 1: the least
        expected = np.stack(
            [alone[:, labels == c].max(axis=1) for c in range(3)], axis=1
        )
        assert error(scores, expected) <= TIGHT


def test_a_warning_tells_how_many_codes_are_zero_and_what_lambda_is_none_of_theirs(
    monkeypatch,
):
    """Of all tiles together."""
    X = gs.random_subspaces(200, 12, 2, rng=0)
    D = gs.random_subspaces(9, 12, 2, rng=1)
    peaks = gs.lam_max(gs.projection_kernel(X, D))
    lam = np.median(peaks)
    some = peaks[peaks <= lam]
    monkeypatch.setattr(gs, "TILE", 1)
    text = (
        rf"^{len(some)} of 200 codes \({len(some) / 2:.3g} %\) are zero: these queries "
        f"get the label of the nearest atom. Their lam_max is {some.min():.3g} to "
        f"{some.max():.3g};"
    )
    with pytest.warns(UserWarning, match=text):
        gs.classify(X, D, np.arange(9), lam=lam)


def test_a_class_far_behind_in_float32_is_behind_those_without_an_atom():
    codes = np.array([[1e-3, 1e20, 0]], np.float32)
    k = np.array([[0.5, 0.1, 0.1]], np.float32)
    K = np.eye(3, dtype=np.float32)
    scores, _ = gs.class_scores(codes, K, k, ["a", "b", "c"], norm2=1)
    assert scores[0, 0] > scores[0, 2] > scores[0, 1] == -np.finfo(np.float32).max


def test_a_code_that_overflows_is_an_error_not_nan():
    with pytest.raises(ValueError, match="codes must give scores within float64"):
        gs.class_scores(
            [[1e200, 0]], 1e200 * np.eye(2), [[1e150, 0]], [0, 1], norm2=1e200
        )


# ------------------------------------------------------------------------ score shares


@laws
@given(coding_problems(), seeds, booleans, st.sampled_from(["residual", "sum", "max"]))
def test_shares_sum_to_the_scores_of_classes(problem, seed, sparse, rule):
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal(problem.K_xd.shape)
    codes[rng.random(codes.shape) < 0.6] = 0
    codes[rng.random(len(codes)) < 0.2] = 0
    labels = rng.integers(0, 3, len(problem.D))
    given_codes = scipy.sparse.csr_array(codes) if sparse else codes
    options = {"norm2": problem.norm2, "rule": rule}
    args = given_codes, problem.K_dd, problem.K_xd, labels
    scores, classes = gs.class_scores(*args, **options)
    indices, values = gs.score_shares(*args, **options)
    assert indices.shape == values.shape and values.dtype == problem.K_xd.dtype
    for i, (row, shares) in enumerate(zip(indices, values)):
        used = row[row >= 0]
        assert len(set(used)) == len(used) and not shares[row < 0].any()
        assert (np.diff(shares[row >= 0]) <= 0).all() and (row[len(used) :] < 0).all()
        sums = [shares[: len(used)][labels[used] == c].sum() for c in classes]
        present = [(labels[used] == c).any() for c in classes]
        size = np.abs(shares).sum() + problem.norm2
        assert error(sums, np.where(present, scores[i], 0)) <= TIGHT * max(1, size)


def test_shares_of_known_codes():
    K = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1.0]])
    k = np.array([[0.9, 0.6, 0.2]])

    def shares(codes, rule="residual"):
        result = gs.score_shares([codes], K, k, ["a", "a", "b"], norm2=1, rule=rule)
        return result.indices.tolist(), result.values.round(12).tolist()

    # 0.2 (1.2 - 0.2 - 0.25), 0.5 (1.8 - 0.5 - 0.1), -0.1 (0.4 + 0.1)
    assert shares([0.5, 0.2, -0.1]) == ([[0, 1, 2]], [[0.6, 0.15, -0.05]])
    assert shares([0.5, 0.2, -0.1], "sum") == ([[0, 1, 2]], [[0.5, 0.2, -0.1]])
    assert shares([0.5, 0.2, -0.1], "max") == ([[0, 2]], [[0.5, -0.1]])
    assert shares([0.5, 0, 0]) == ([[0]], [[0.65]])
    # a zero code: the nearest atom of each class
    assert shares([0, 0, 0]) == ([[0, 2]], [[1.8, 0.4]])
    # the largest coefficient of a class is 0 if it has another atom
    assert shares([-0.5, 0, 0.1], "max") == ([[2]], [[0.1]])


def test_shares_of_many_queries_and_of_none():
    D = gs.random_subspaces(200, 9, 2, rng=0)
    X = gs.random_subspaces(6000, 9, 2, rng=1)  # more than a tile
    K = gs.projection_kernel(D)
    k = gs.projection_kernel(X, D)
    codes = gs.glc(X, D, 4)
    y = np.arange(200) % 7
    many = gs.score_shares(codes, K, k, y, norm2=2)
    for i in (0, 2999, 5999):
        single = gs.score_shares(codes[i : i + 1], K, k[i : i + 1], y, norm2=2)
        assert np.array_equal(many.indices[i : i + 1], single.indices)
        assert error(many.values[i : i + 1], single.values) < TIGHT
    none = gs.score_shares(codes[:0], K, k[:0], y, norm2=2)
    assert none.indices.shape == none.values.shape == (0, 0)


@pytest.mark.parametrize("column", [-1, 12, 10**9])
def test_sparse_codes_of_columns_that_are_not_there_are_refused(column):
    X = gs.random_subspaces(12, 10, 2, rng=0)
    K = gs.projection_kernel(X)
    codes = scipy.sparse.csr_array(gs.sparse_codes(K, K, 0.05, norm2=2))
    codes.indices[0] = column
    for use in (
        lambda: gs.class_scores(codes, K, K, [0, 1] * 6, norm2=2),
        lambda: gs.sparse_codes(K, K, 0.05, norm2=2, init=codes),
    ):
        with pytest.raises(ValueError, match="must be a valid CSR array"):
            use()
