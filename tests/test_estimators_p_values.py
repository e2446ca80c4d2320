"""p-values of classes by plain loops, and a classifier that an error leaves as it was."""

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import grassmann_sc as core
from grassmann_sc import calibration, estimators
from grassmann_sc.estimators import CodingClassifier
from oracles import TIGHT, error

NAMES = np.array(["ape", "bee", "cat", "dog"])


def drawn(n_known, n_new, n_classes, seed=0, digits=None):
    """(Scores of labelled sets, their labels, scores of new ones); some are equal."""
    rng = np.random.default_rng(seed)
    index = rng.permutation(np.arange(n_known) % n_classes)
    known, new = (rng.standard_normal((n, n_classes)) for n in (n_known, n_new))
    known[np.arange(n_known), index] += 1
    if digits is None:
        return known, NAMES[index], new
    return known.round(digits), NAMES[index], new.round(digits)


# ---------------------------------------------------------------------- by plain loops


def behind_by_loops(row, c):
    """How far class c is behind the best other, in units of the largest |score|."""
    others = [score for k, score in enumerate(row) if k != c]
    unit = max(map(abs, row))
    return float(np.round((max(others) - row[c]) / unit, 9)) if unit else 0.0


def p_values_by_loops(left_out, labels, scores):
    """Counts of N labelled sets and the new one, as (n, C) and (n,)."""
    classes = sorted(set(labels))
    own = [behind_by_loops(row, classes.index(c)) for row, c in zip(left_out, labels)]
    unit = max(abs(value) for row in left_out for value in row) or 1.0
    best = [float(np.round(max(row) / unit, 9)) for row in left_out]
    of_classes = [
        [
            1 + sum(value >= behind_by_loops(row, c) for value in own)
            for c in range(len(classes))
        ]
        for row in scores
    ]
    known = [
        1 + sum(value <= float(np.round(max(row) / unit, 9)) for value in best)
        for row in scores
    ]
    n = len(labels) + 1
    return np.array(of_classes) / n, np.array(known) / n


def check(left_out, labels, scores):
    p_values = calibration.p_values(left_out, labels, scores)
    of_classes, known = p_values_by_loops(
        np.asarray(left_out, float).tolist(),
        np.asarray(labels).tolist(),
        np.asarray(scores, float).tolist(),
    )
    assert np.array_equal(p_values.classes, of_classes)
    assert np.array_equal(p_values.known, known)
    return p_values


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("digits", [None, 1, 0])
@pytest.mark.parametrize("shift", [0, -10, 10])
def test_p_values_are_those_of_plain_loops(n_classes, digits, shift):
    """Also of scores that are all negative, or of which many are equal."""
    known, labels, new = drawn(30, 25, n_classes, digits=digits)
    p_values = check(known + shift, labels, new + shift)
    assert 1 / 31 <= p_values.classes.min() < p_values.classes.max() <= 1
    assert len(set(p_values.known.tolist())) > 3


@pytest.mark.filterwarnings("error")
def test_p_values_of_nothing_but_zeros_and_of_ties_are_those_of_plain_loops():
    zeros = np.zeros((4, 2))
    p_values = check(zeros, [*"abab"], [[0, 0], [0, 1], [-1, -1], [0, -1]])
    assert p_values.classes.tolist() == [[1, 1], [0.2, 1], [1, 1], [1, 0.2]]
    tied = [[1, 1, 0], [2, 1, 2], [0, 3, 3], [1, 1, 1]]
    check(tied, [*"abca"], [[1, 1, 0], [1, 1, 1], [0, 0, 0], [5, 0, 5]])
    single = np.array(tied, np.float32)
    check(single, [*"abca"], single[:2])
    check(np.array(tied), [*"abca"], np.array(tied))  # integers
    p_values = calibration.p_values([[1e-300, 0], [0, 1e-300]], [*"ab"], [[1e300, 0]])
    assert p_values.classes.tolist() == [[1, 1 / 3]] and p_values.known.tolist() == [1]


def test_a_class_is_never_its_own_best_other():
    """The leader is behind the second by less than nothing, all others behind it."""
    left_out = np.array([[5.0, 3, 1], [5, 3, 1], [5, 3, 1]])
    suspicion = calibration.suspicion(left_out, [*"abc"])
    assert suspicion.tolist() == [-0.4, 0.4, 0.8]
    equal = np.array([[5.0, 5, 1], [5, 5, 1], [5, 5, 1]])
    assert calibration.suspicion(equal, [*"abc"]).tolist() == [0, 0, 0.8]
    negative = -np.array([[1.0, 3, 5], [1, 3, 5], [1, 3, 5]])
    assert calibration.suspicion(negative, [*"abc"]).tolist() == [-0.4, 0.4, 0.8]


@pytest.mark.parametrize("shift", [0, -10])
def test_suspicion_is_that_of_plain_loops(shift):
    known, labels, _ = drawn(30, 1, 4)
    known = known + shift
    classes = sorted(set(labels))
    expected = [behind_by_loops(row, classes.index(c)) for row, c in zip(known, labels)]
    assert calibration.suspicion(known, labels).tolist() == expected
    wrong = known[np.arange(30), np.searchsorted(classes, labels)] < known.max(axis=1)
    assert ((np.array(expected) > 0) == wrong).all() and 0 < wrong.sum() < 30


# ------------------------------------------------------------------- scale and digits


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1e-9, 0.3, 1e9, 1e30, 1e300])
def test_the_unit_of_scores_changes_nothing(scale):
    known, labels, new = drawn(30, 20, 3)
    first = check(known, labels, new)
    other = check(scale * known, labels, scale * new)
    assert np.array_equal(other.classes, first.classes)
    assert np.array_equal(other.known, first.known)
    suspicion = calibration.suspicion(scale * known, labels)
    assert np.array_equal(suspicion, calibration.suspicion(known, labels))
    # classes are ranked within a set: there each may have a unit of its own
    units = 10 ** np.random.default_rng(0).uniform(-9, 9, (50, 1))
    mixed = calibration.p_values(known * units[:30], labels, new * units[30:])
    assert np.array_equal(mixed.classes, first.classes)


@pytest.mark.parametrize(
    "digits, equal", [(3, False), (8, False), (10, True), (14, True)]
)
@pytest.mark.parametrize("scale", [1, 1e-300, 1e300])
@pytest.mark.parametrize("shift", [0, -3])
def test_scores_are_compared_to_nine_digits(digits, equal, scale, shift):
    """Equal ones count for a class, and for being of any; rounding decides nothing."""
    labels = [*"aab"]
    left_out = np.array([[2, 1], [2, 1], [1.25, 2]]) + shift
    little = 10.0**-digits
    more, less = (
        np.array([[2 - sign * little, 1 + sign * little]]) + shift for sign in (1, -1)
    )
    p_more, p_less = (
        calibration.p_values(scale * left_out, labels, scale * new)
        for new in (more, less)
    )
    # class a of the new one is behind by a little more, or less, than that of the two
    assert p_more.classes[0, 0] == (1 if equal else 1 / 2)
    assert p_less.classes[0, 0] == 1
    # its largest score is as low as theirs, or lower
    assert p_more.known[0] == (1 if equal else 1 / 4)
    assert p_less.known[0] == 1


@pytest.mark.parametrize("digits", [None, 1])
def test_classes_and_sets_have_no_order(digits):
    """Other names of the classes permute the p-values, other places of sets nothing."""
    known, labels, new = drawn(40, 20, 4, digits=digits)
    first = calibration.p_values(known, labels, new)
    rng = np.random.default_rng(1)
    order = rng.permutation(40)
    again = calibration.p_values(known[order], labels[order], new)
    assert np.array_equal(again.classes, first.classes)
    assert np.array_equal(again.known, first.known)
    suspicion = calibration.suspicion(known, labels)
    moved = calibration.suspicion(known[order], labels[order])
    assert np.array_equal(moved, suspicion[order])
    turn = rng.permutation(4)
    renamed = NAMES[turn.argsort()][np.searchsorted(NAMES, labels)]
    again = calibration.p_values(known[:, turn], renamed, new[:, turn])
    assert np.array_equal(again.classes, first.classes[:, turn])
    assert np.array_equal(again.known, first.known)
    assert np.array_equal(calibration.suspicion(known[:, turn], renamed), suspicion)
    rows = rng.permutation(20)
    again = calibration.p_values(known, labels, new[rows])
    assert np.array_equal(again.classes, first.classes[rows])
    assert np.array_equal(again.known, first.known[rows])
    alone = [calibration.p_values(known, labels, new[i : i + 1]) for i in range(20)]
    assert np.array_equal(
        np.vstack([single.classes for single in alone]), first.classes
    )


def test_labels_of_any_kind_have_the_same_p_values():
    known, labels, new = drawn(20, 10, 2)
    first = calibration.p_values(known, labels, new)
    kinds = {"numbers": [2, 10], "bools": [False, True], "pairs": [(1, "a"), (2, "b")]}
    for names in kinds.values():
        p_values = calibration.p_values(known, [names[c == "bee"] for c in labels], new)
        assert np.array_equal(p_values.classes, first.classes)


def test_levels_are_exact_in_twelve_digits():
    """1 - coverage as people write it, so that k / n of exact shares hits it."""
    for digits in (1, 2, 3, 4):
        steps = 10**digits
        for k in {1, 2, 3, 7, steps // 2, steps - 3, steps - 1}:
            if 0 < k < steps:
                level = calibration.level_of(k / steps)
                assert level == (steps - k) / steps
                assert level == float(1 - Fraction(k, steps))
    assert calibration.level_of(1) == 0 and calibration.level_of(1 - 1e-9) == 1e-9
    for coverage in (0, -0.1, 1.1, np.nan):
        with pytest.raises(ValueError, match="coverage must"):
            calibration.level_of(coverage)


# -------------------------------------------------------------------- scores left out

PLACE = np.random.default_rng(0).permutation(np.repeat(range(3), [10, 10, 9]))
CLASSES = NAMES[PLACE]
NOISE = 0.35 * np.random.default_rng(10).standard_normal((29, 8, 2))
X = core.orthonormalize(core.random_subspaces(3, 8, 2, rng=2)[PLACE] + NOISE)
GROUPS = np.random.default_rng(1).choice([*"zyxwvuts"], 29)
K = core.projection_kernel(X)
CODINGS = [{"lam": 0.05}, {"n_neighbors": 4}, {"lam": 0.2, "lam_scale": "max"}]


@pytest.mark.parametrize("coding", CODINGS)
@pytest.mark.parametrize("rule", ["residual", "sum", "max"])
def test_sets_of_a_group_speak_neither_for_nor_against_each_other(coding, rule):
    """Without the others of its group, each has the same scores and codes."""
    scores, classes = calibration.left_out_scores(
        K, CLASSES, GROUPS, rule=rule, **coding
    )
    codes = calibration.left_out_codes(K, GROUPS, **coding)
    assert classes.tolist() == NAMES[:3].tolist()
    assert not codes[np.equal.outer(GROUPS, GROUPS)].any()
    assert (codes != 0).any(axis=1).all() and len(set(GROUPS)) == 8
    for i in range(0, 29, 3):
        kept = np.flatnonzero((GROUPS != GROUPS[i]) | (np.arange(29) == i))
        mine = np.flatnonzero(kept == i)[0]
        some = K[np.ix_(kept, kept)], CLASSES[kept]
        alone, _ = calibration.left_out_scores(*some, rule=rule, **coding)
        assert error(alone[mine], scores[i]) < TIGHT
        code = calibration.left_out_codes(some[0], **coding)[mine]
        assert error(code, codes[i, kept]) < TIGHT
    lonely, _ = calibration.left_out_scores(
        K, CLASSES, np.arange(29), rule=rule, **coding
    )
    plain, _ = calibration.left_out_scores(K, CLASSES, rule=rule, **coding)
    assert np.array_equal(lonely, plain) and error(plain, scores) > 1e-3


@pytest.mark.parametrize("coding", CODINGS)
def test_scores_left_out_belong_to_their_sets(coding):
    order = np.random.default_rng(2).permutation(29)
    scores, _ = calibration.left_out_scores(K, CLASSES, GROUPS, **coding)
    turned = K[np.ix_(order, order)], CLASSES[order], GROUPS[order]
    again, _ = calibration.left_out_scores(*turned, **coding)
    assert error(again, scores[order]) < TIGHT
    rule = "sum" if "n_neighbors" in coding else "residual"
    usual, _ = calibration.left_out_scores(K, CLASSES, GROUPS, rule=rule, **coding)
    assert np.array_equal(usual, scores)


# ------------------------------------------------------------------ an unknown class


# ----------------------------------------------------------------- after an error


def state(model):
    """All attributes of a model, arrays to the bit."""

    def bits(value):
        if isinstance(value, np.ndarray) and value.dtype != object:
            return value.dtype.str, value.shape, value.tobytes()
        if isinstance(value, np.ndarray):
            return value.tolist()
        return repr(value)

    return {name: bits(value) for name, value in vars(model).items()}


def with_nan(bases):
    bases = bases.copy()
    bases[-1, 0, 0] = np.nan
    return bases


MORE = X[20:]
OF_MORE = CLASSES[20:]
BATCHES = {  # X, y of a call that fails
    "another p": (MORE[:, :, :1], OF_MORE),
    "another d": (core.random_subspaces(9, 7, 2, rng=0), OF_MORE),
    "one subspace": (MORE[0], OF_MORE[:1]),
    "four axes": (MORE[None], OF_MORE),
    "no basis": (2 * MORE, OF_MORE),
    "NaN": (with_nan(MORE), OF_MORE),
    "complex": (MORE + 0j, OF_MORE),
    "text": ("subspaces", OF_MORE),
    "nothing": (None, OF_MORE),
    "a label too few": (MORE, OF_MORE[1:]),
    "a label too many": (MORE, CLASSES[19:]),
    "no labels": (MORE, None),
    "one label": (MORE, "ape"),
    "columns of labels": (MORE, np.stack([OF_MORE] * 2, axis=1)),
    "masked labels": (MORE, np.ma.masked_array(OF_MORE, OF_MORE == OF_MORE[0])),
    "lists for labels": (MORE, [[1]] * 9),
}


@pytest.mark.parametrize("coding", ["sparse", "local"])
@pytest.mark.parametrize("name", BATCHES)
def test_a_batch_that_is_refused_leaves_the_model_as_it_was(coding, name):
    """To the bit; a good batch then makes it the one of all sets."""
    model = CodingClassifier(coding).fit(X[:20], CLASSES[:20])
    before = state(model)
    given = [*BATCHES[name]]
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(*given)
    assert state(model) == before
    model.partial_fit(MORE, OF_MORE)
    assert state(model) == state(CodingClassifier(coding).fit(X, CLASSES))


def test_what_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        CodingClassifier().noticed()


@pytest.mark.parametrize("y", [[0.5, 1, 2, 0, 1, 2, 0, 1, 2], [0, np.nan, 1] * 3])
def test_numbers_that_are_no_classes_leave_the_model_as_it_was(y):
    model = CodingClassifier().fit(X[:20], PLACE[:20])
    before = state(model)
    with pytest.raises(ValueError):
        model.partial_fit(MORE, np.array(y))
    assert state(model) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_neighbors": 100, "coding": "local"},
        {"lam": -1.0},
        {"lam": np.nan},
        {"rule": "best"},
        {"coding": "none"},
        {"lam_scale": "min"},
        {"kernel": "rbf"},
        {"kernel": "precomputed"},
        {"calibrate": "yes"},
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_wrong_parameter_leaves_the_model_as_it_was(wrong, first):
    """Also at the first batch, of which a later one would else find something."""
    model = CodingClassifier()
    if not first:
        model.partial_fit(X[:20], CLASSES[:20])
    model.set_params(**wrong)
    before = state(model)
    with pytest.raises((ValueError, TypeError)):
        model.partial_fit(MORE, OF_MORE)
    assert state(model) == before and hasattr(model, "classes_") != first
    usual = CodingClassifier()
    model.set_params(**usual.get_params()).partial_fit(MORE, OF_MORE)
    whole = (MORE, OF_MORE) if first else (X, CLASSES)
    assert state(model) == state(usual.fit(*whole))


@pytest.mark.parametrize(
    "owner, name",
    [(estimators.CodingClassifier, "_take"), (calibration, "temperature")],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_stop_within_a_batch_leaves_the_model_as_it_was(
    owner, name, first, monkeypatch
):
    model = CodingClassifier()
    if not first:
        model.fit(X[:20], CLASSES[:20])
    before = state(model)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, stop)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(MORE, OF_MORE)
    assert state(model) == before
    monkeypatch.undo()
    model.partial_fit(MORE, OF_MORE)
    whole = (MORE, OF_MORE) if first else (X, CLASSES)
    assert state(model) == state(CodingClassifier().fit(*whole))


def test_batches_of_any_sizes_make_one_model_and_change_no_other():
    """A clone and a copy of before keep what they had; arrays are the model's own."""
    model = CodingClassifier("local", n_neighbors=3)
    given = X[:6].copy()
    assert model.partial_fit(given, CLASSES[:6]) is model
    given[:] = 0
    first = state(model)
    other = CodingClassifier("local", n_neighbors=3).partial_fit(X[:6], CLASSES[:6])
    assert state(other) == first
    for start, end in ((6, 7), (7, 15), (15, 29)):
        model.partial_fit(X[start:end], CLASSES[start:end])
    assert state(model) == state(clone(model).fit(X, CLASSES))
    assert state(other) == first and not hasattr(clone(model), "classes_")
