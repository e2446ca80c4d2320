"""How sure answers by codes are: temperatures, p-values and what is noticed, by hand."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.metrics import log_loss

import grassmann_sc as core
from grassmann_sc import calibration, estimators, subspaces
from grassmann_sc.estimators import CodingClassifier
from oracles import LOOSE, TIGHT, error, noisy_image_sets

SETS, Y = noisy_image_sets()
X = subspaces.from_sets(SETS, 2)
D = X[:40]
Q = X[40:60]
LABELS = Y[:40]


# -------------------------------------------------------------------------- temperature


def noisy_classes(seed, n=90):
    """Subspaces of three classes that overlap."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((3, 8, 2))
    y = np.arange(n) % 3
    return core.orthonormalize(centres[y] + 1.1 * rng.standard_normal((n, 8, 2))), y


@pytest.mark.parametrize("rule", ["residual", "sum", "max"])
@pytest.mark.parametrize(
    "kernel, shrinkage",
    [("projection", None), ("precomputed", None), ("precomputed", 0.03)],
)
def test_temperature_lowers_the_log_loss_on_new_sets_and_changes_no_answer(
    rule, kernel, shrinkage
):
    X, y = noisy_classes(0)
    Q, truth = noisy_classes(1, 300)
    if kernel == "precomputed":
        Q = core.projection_kernel(Q, X)
        X = core.projection_kernel(X)
    options = dict(lam=0.05, lam_scale="max", rule=rule, kernel=kernel)
    options["shrinkage"] = shrinkage
    plain = estimators.CodingClassifier(calibrate=False, **options).fit(X, y)
    ours = estimators.CodingClassifier(**options).fit(X, y)
    assert plain.temperature_ == 1 and ours.temperature_ > 0
    before = log_loss(truth, plain.predict_proba(Q))
    after = log_loss(truth, ours.predict_proba(Q))
    assert after < before and after < np.log(3)
    scores = plain.decision_function(Q)
    own = scores[np.arange(len(truth)), np.searchsorted(plain.classes_, truth)]
    best = min(
        np.mean(logsumexp(scores / T, axis=1) - own / T)
        for T in np.geomspace(1e-3, 1e2, 300)
    )
    assert after <= best + 0.03
    assert np.array_equal(ours.predict(Q), plain.predict(Q))
    assert np.array_equal(ours.predict_proba(Q).argmax(axis=1), ours.predict(Q))


def test_the_atoms_that_a_temperature_is_chosen_on_are_of_all_classes(monkeypatch):
    """The last of three classes is noise, which no score tells: it counts as much as if
    all atoms were looked at.
    """
    X, y = noisy_classes(0, 240)
    y = np.sort(y)
    X = X[np.argsort(np.arange(240) % 3, kind="stable")]
    X[y == 2] = core.random_subspaces(80, 8, 2, rng=0)
    model = estimators.CodingClassifier(lam=0.05, lam_scale="max")
    some = model.fit(X, y).temperature_
    monkeypatch.setattr(calibration, "CALIBRATED", 240)
    every = model.fit(X, y).temperature_
    monkeypatch.setattr(calibration, "CALIBRATED", 100)
    first = model.fit(X[y < 2], y[y < 2]).temperature_
    assert first < 0.7 * every and abs(some / every - 1) < 0.2


def test_the_folds_of_a_temperature_leave_atoms_of_each_class():
    """Also where every fifth atom is of one class, as many as there are folds."""
    y = np.arange(100) % 5
    centres = core.random_subspaces(5, 10, 2, rng=0)
    noise = 0.3 * np.random.default_rng(0).standard_normal((100, 10, 2))
    X = core.orthonormalize(centres[y] + noise)
    order = np.argsort(y, kind="stable")
    model = CodingClassifier(lam=0.1)
    in_turn = model.fit(X, y).temperature_
    assert in_turn == pytest.approx(model.fit(X[order], y[order]).temperature_)


def test_temperature_does_not_depend_on_the_scale_or_on_what_cannot_be_left_out():
    X, y = noisy_classes(0, 30)
    K = core.projection_kernel(X)
    options = dict(lam=0.05, lam_scale="max", kernel="precomputed")
    plain = estimators.CodingClassifier(**options).fit(K, y)
    scaled = estimators.CodingClassifier(**options).fit(1e6 * K, y)
    assert scaled.temperature_ == pytest.approx(1e6 * plain.temperature_, rel=1e-3)
    # a set a class
    assert estimators.CodingClassifier(lam=0.1).fit(X[:3], y[:3]).temperature_ == 1
    lone = estimators.CodingClassifier(**options).fit(K[:7, :7], [0, 0, 0, 1, 1, 1, 2])
    assert 0 < lone.temperature_ < np.inf
    for answers in ("local", "sparse"):
        sure = estimators.CodingClassifier(answers, lam=0.1, n_neighbors=8).fit(
            np.repeat(X[:2], 4, axis=0), np.repeat([0, 1], 4)
        )
        assert np.isfinite(sure.predict_proba(X[:2])).all() and sure.temperature_ > 0


# ----------------------------------------------------------------------------- p-values


@pytest.mark.parametrize("coding", ["sparse", "local"])
def test_p_values_are_those_of_scores_left_out(coding):
    options = {"coding": coding, "lam": 0.1, "lam_scale": "max", "n_neighbors": 4}
    model = estimators.CodingClassifier(**options).fit(D, LABELS)
    groups = np.arange(len(D)) // 2
    for group in (None, groups):
        p_values = model.p_values(Q, group)
        kept = model.p_values(Q, left_out=model.left_out_scores(group))
        assert np.array_equal(kept.classes, p_values.classes)
        assert np.array_equal(kept.known, p_values.known)
        which = np.arange(len(D)) if group is None else group
        scores = np.empty((len(D), 3))
        explained = np.empty((len(D), 3))
        for i in range(len(D)):
            rest = which != which[i]
            other = estimators.CodingClassifier(**options).fit(D[rest], LABELS[rest])
            scores[i] = other.class_scores(D[i : i + 1])
            other.set_params(rule="residual")
            explained[i] = other.class_scores(D[i : i + 1])
        expected = calibration.p_values(scores, LABELS, model.class_scores(Q)).classes
        assert error(p_values.classes, expected) < TIGHT
        of_query = clone(model).set_params(rule="residual").fit(D, LABELS)
        best = of_query.class_scores(Q)
        known = calibration.p_values(explained, LABELS, best).known
        assert error(p_values.known, known) < TIGHT


@pytest.mark.parametrize("method", ["p_values", "noticed"])
def test_scores_left_out_are_those_that_the_method_gives(method):
    model = estimators.CodingClassifier(lam=0.1).fit(D, LABELS)
    both = model.left_out_scores()
    arguments = [Q] if method == "p_values" else []
    with pytest.raises(ValueError, match="left_out must have shape"):
        getattr(model, method)(*arguments, left_out=[both[0][1:], both[1][1:]])


# ------------------------------------------------------------------ an unknown class

PLACE = np.random.default_rng(0).permutation(np.repeat(range(3), [10, 10, 9]))
NAMES = np.array(["ape", "bee", "cat"])
OVERLAPPING = core.orthonormalize(
    core.random_subspaces(3, 8, 2, rng=2)[PLACE]
    + 0.35 * np.random.default_rng(10).standard_normal((29, 8, 2))
)


@pytest.mark.parametrize("shrinkage", [None, 0.1])
def test_a_class_left_out_is_noticed_as_by_hand(shrinkage):
    how = dict(lam=0.1, lam_scale="max", shrinkage=shrinkage)
    model = estimators.CodingClassifier(**how).fit(D, LABELS)
    _, explained = model.left_out_scores()
    refused = []
    for c, name in enumerate(model.classes_):
        rest = LABELS != name
        other = estimators.CodingClassifier(**how).fit(D[rest], LABELS[rest])
        known = np.delete(explained[rest], c, axis=1)
        p_values = calibration.p_values(
            known, LABELS[rest], other.class_scores(D[~rest])
        )
        refused += (p_values.known <= 0.2).tolist()
    assert model.noticed(0.8) == pytest.approx(np.mean(refused))
    with pytest.raises(ValueError, match="number of classes must be >= 3, got 2"):
        two = LABELS != "bee"
        estimators.CodingClassifier().fit(D[two], LABELS[two]).noticed()


@pytest.mark.parametrize("coding", ["sparse", "local"])
@pytest.mark.parametrize("coverage", ["0.5", "0.75", "0.8", "0.9", "0.95", "0.96"])
def test_noticed_are_those_whose_p_value_is_at_most_the_level(
    coding, coverage, monkeypatch
):
    """By leaving out class after class; of 19 others a p-value is k of 20, at the bounds."""
    how = {"coding": coding, "lam": 0.05, "n_neighbors": 4, "calibrate": False}
    model = CodingClassifier(**how).fit(OVERLAPPING, NAMES[PLACE])
    explained = model.left_out_scores()[1]
    counts = []
    for c, name in enumerate(NAMES):
        rest = np.flatnonzero(name != NAMES[PLACE])
        other = CodingClassifier(**how, rule="residual").fit(
            OVERLAPPING[rest], NAMES[PLACE][rest]
        )
        known = np.delete(explained[rest], c, axis=1).max(axis=1)
        unit = np.abs(np.delete(explained[rest], c, axis=1)).max()
        new = other.class_scores(OVERLAPPING[name == NAMES[PLACE]]).max(axis=1)
        for score in new:
            low = sum(
                round(value / unit, 9) <= round(score / unit, 9) for value in known
            )
            counts.append(Fraction(int(low) + 1, len(rest) + 1))
    level = 1 - Fraction(coverage)
    expected = sum(count <= level for count in counts) / 29
    assert model.noticed(float(coverage)) == pytest.approx(expected, abs=1e-12)
    kept = model.left_out_scores()
    assert model.noticed(float(coverage), left_out=kept) == model.noticed(
        float(coverage)
    )
    monkeypatch.setattr(calibration, "JUDGED", 3)  # of many some are asked, evenly
    some = [counts[k] <= level for k in (0, 14, 28)]
    assert model.noticed(float(coverage)) == pytest.approx(np.mean(some))
    assert 0 < expected < 1 or coverage in ("0.5", "0.96")
    assert level in counts or coverage not in ("0.8", "0.9", "0.95")


# ------------------------------------------------------------ each set over all others


@pytest.mark.parametrize("coding", [{"lam": 0.1}, {"n_neighbors": 3}])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_left_out_is_coded_over_all_others(coding, grouped):
    X = core.random_subspaces(12, 8, 2, rng=0)
    K = core.projection_kernel(X)
    y = np.arange(12) % 3
    groups = np.repeat(["d", "a", "c", "b"], 3) if grouped else None
    which = groups if grouped else np.arange(12)
    codes = calibration.left_out_codes(K, groups, **coding)
    scores, classes = calibration.left_out_scores(K, y, groups, **coding)
    assert np.array_equal(classes, range(3))
    for i in range(12):
        rest = which != which[i]
        answer = core.classify(
            X[i : i + 1], X[rest], y[rest], return_info=True, **coding
        )
        assert not codes[i, ~rest].any()
        assert error(codes[i, rest], answer.codes[0]) < TIGHT
        assert classes[scores[i].argmax()] == answer.labels[0]
        rule = "residual" if "lam" in coding else "sum"
        own = core.class_scores(
            answer.codes,
            K[np.ix_(rest, rest)],
            K[i : i + 1, rest],
            y[rest],
            norm2=2,
            rule=rule,
        )
        assert error(scores[i], own[0][0]) < TIGHT


def test_neighbours_of_what_is_left_out_are_at_most_all_others():
    K = core.projection_kernel(core.random_subspaces(5, 8, 2, rng=0))
    few = calibration.left_out_codes(K, n_neighbors=4)
    assert np.array_equal(calibration.left_out_codes(K, n_neighbors=50), few)
    pairs = calibration.left_out_codes(K, [0, 0, 0, 1, 1], n_neighbors=4)
    assert np.count_nonzero(pairs) == 3 * 2 + 2 * 3


def test_left_out_names_what_is_wrong():
    K = core.projection_kernel(core.random_subspaces(4, 8, 2, rng=0))
    with pytest.raises(ValueError, match="groups must hold two groups at least, got"):
        calibration.left_out_codes(K, [0] * 4, lam=0.1)
    with pytest.raises(ValueError, match="number of subspaces must be >= 2, got 1"):
        calibration.left_out_codes(K[:1, :1], lam=0.1)
    with pytest.raises(ValueError, match="give either lam or n_neighbors"):
        calibration.left_out_codes(K)
    with pytest.raises(ValueError, match="rule must be .*, got 'best'"):
        calibration.left_out_scores(K, [0, 0, 1, 1], lam=0.1, rule="best")


# -------------------------------------------------------------------- conformal p-values


def test_p_values_by_hand():
    left_out = np.array([[4, 1], [3, 2], [1, 2], [2.5, 5]])
    y = ["a", "a", "b", "a"]
    # own behind the best other, as shares: -3/4, -1/3, -1/2, 1/2
    p_values = calibration.p_values(left_out, y, [[6, 3], [1, 2], [9, -1], [0, 0]])
    # behind: (-1/2, 1/2), (1/2, -1/2), (-10/9, 10/9), (0, 0)
    expected = np.array([[4, 2], [2, 4], [5, 1], [2, 2]]) / 5
    assert error(p_values.classes, expected) < TIGHT
    # largest scores: 2, 3, 4, 5
    assert error(p_values.known, np.array([5, 2, 5, 1]) / 5) < TIGHT


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_right_classes_are_kept_at_the_coverage(coverage):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 40000)
    scores = rng.standard_normal((40000, 4)) + 1.5 * (y[:, None] == range(4))
    kept = []
    known = []
    for half in np.split(rng.permutation(40000), 200):
        mine = half[:100]
        new = half[100:]
        p_values = calibration.p_values(scores[mine], y[mine], scores[new])
        kept.append(p_values.classes[np.arange(len(new)), y[new]] > 1 - coverage)
        known.append(p_values.known > 1 - coverage)
    assert abs(np.mean(kept) - coverage) < 0.015
    assert abs(np.mean(known) - coverage) < 0.015


def test_rows_that_nobody_can_judge_count_for_nothing():
    left_out = np.array([[4, 1, 2], [np.nan] * 3, [1, 2, 0], [np.nan] * 3, [5, 1, 3]])
    y = np.array(["a", "c", "b", "c", "a"])
    scores = [[6, 3, 1], [1, 2, 2], [0, 0, 0]]
    p_values = calibration.p_values(left_out, y, scores)
    judged = ~np.isnan(left_out[:, 0])
    # the class c has no row to be judged by, and a column all the same
    # own classes are behind by -0.5, -0.5 and -0.4
    assert p_values.classes[0].tolist() == [1, 0.25, 0.25]  # -0.5, 0.5, 0.83
    assert p_values.classes[1].tolist() == [0.25] * 3  # 0.5, 0, 0
    assert (p_values.known * 4 == (p_values.known * 4).round()).all()
    none = calibration.p_values(np.where(judged[:, None], np.nan, left_out), y, scores)
    assert (none.classes == 1).all() and (none.known == 1).all()
    with pytest.raises(ValueError, match="left_out must be finite"):
        calibration.p_values(np.where(left_out == 4, np.nan, left_out), y, scores)


@pytest.mark.parametrize("name", ["left_out_codes", "left_out_scores"])
def test_a_matrix_that_is_no_gram_matrix_is_refused_or_told(name):
    labels = [["a", "b", "a"]] if name.endswith("scores") else []
    job = getattr(calibration, name)
    with pytest.raises(ValueError, match="K must have a nonnegative diagonal, got -1"):
        job(np.diag([1.0, -1, 1]), *labels, lam=0.1)
    with pytest.warns(UserWarning, match="K must be positive semidefinite"):
        job(np.eye(3) + [[0, 2, 0], [2, 0, 0], [0, 0, 0]], *labels, n_neighbors=1)


def test_p_values_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"scores must have shape \(n, 2\)"):
        calibration.p_values([[1, 2], [2, 1]], ["a", "b"], [[1, 2, 3]])
    with pytest.raises(
        ValueError, match="number of classes of labels must be >= 2, got 1"
    ):
        calibration.p_values([[1], [2]], ["a", "a"], [[1]])
    with pytest.raises(ValueError, match="left_out must"):
        calibration.p_values([[1, 2], [1]], ["a", "b", "b"], [[1, 2]])


# ---------------------------------------------------------------- whitened: by folds


@pytest.mark.parametrize("grouped", [False, True])
def test_folds_hold_each_set_once_classes_evenly_and_groups_whole(grouped):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(range(4), [5, 12, 23, 1]))
    groups = np.array([*"abcdefghijklm"])[rng.integers(0, 13, 41)]
    folds = calibration.members_left_out(groups if grouped else None, y, 0.1)
    assert len(folds) == 5
    assert sorted(np.concatenate(folds)) == [*range(41)]
    counts = np.array([np.bincount(y[fold], minlength=4) for fold in folds])
    if grouped:
        assert sum(len(set(groups[fold])) for fold in folds) == 13
        assert (counts[:, 1:3] > 0).all() and len(min(folds, key=len)) >= 5
    else:
        assert (np.ptp(counts, axis=0) <= 1).all()
        assert np.ptp([len(fold) for fold in folds]) <= 2
    for _ in range(0 if grouped else 20):
        z = rng.permutation(y)
        parts = calibration.members_left_out(None, z, 0.1)
        counts = np.array([np.bincount(z[part], minlength=4) for part in parts])
        assert (np.ptp(counts, axis=0) <= 1).all()
    # the largest group comes first
    one_class = np.zeros(12, int)
    parts = calibration.members_left_out([*range(8), 8, 8, 8, 8], one_class, 0.1)
    assert sorted(map(len, parts)) == [2, 2, 2, 2, 4]
    two = calibration.members_left_out(y > 1, y, 0.1)
    assert sorted(map(len, two)) == [17, 24]


@pytest.mark.parametrize("coding", ["sparse", "local"])
@pytest.mark.parametrize("grouped", [False, True])
def test_what_is_left_out_is_left_out_of_the_whitening(coding, grouped):
    """By hand: each fold by a classifier of the others; of rules both."""
    options = dict(coding=coding, lam=0.1, n_neighbors=4, rule="sum", shrinkage=0.05)
    groups = np.arange(len(D)) // 2 if grouped else None
    model = CodingClassifier(**options).fit(D, LABELS)
    by_rules = model.left_out_scores(groups)
    for rule, scores in zip(["sum", "residual"], by_rules):
        other = CodingClassifier(**options).set_params(rule=rule)
        expected = np.empty_like(scores)
        for fold in calibration.members_left_out(groups, model.index_, 0.05):
            rest = np.delete(np.arange(len(D)), fold)
            expected[fold] = other.fit(D[rest], LABELS[rest]).class_scores(D[fold])
        assert error(scores, expected) < LOOSE
        how = {"lam": 0.1} if coding == "sparse" else {"n_neighbors": 4}
        public, classes = calibration.left_out_scores(
            core.projection_kernel(D), LABELS, groups, rule=rule, shrinkage=0.05, **how
        )
        assert error(public, expected) < LOOSE and np.array_equal(classes, NAMES)
    p_values = model.p_values(Q, groups)
    expected = calibration.p_values(by_rules[0], LABELS, model.class_scores(Q))
    assert np.array_equal(p_values.classes, expected.classes)


def sets_that_vary_alike(seed, n, n_classes=5):
    """Subspaces in classes which vary along the same directions, and their labels."""
    shape = (12, 2)
    common = np.random.default_rng(7).standard_normal((n_classes + 6, *shape))
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n)
    vary = np.einsum("nk,kdp->ndp", rng.standard_normal((n, 6)), common[n_classes:])
    noise = 0.5 * rng.standard_normal((n, *shape))
    return core.orthonormalize(common[y] + 0.8 * vary + noise), y


def p_values_of_new(shrinkage, seed, permuted=False):
    """p-values of the right class, and of being of any, of 300 new sets, of 80 labelled.

    permuted: no label has to do with its set.
    """
    points, y = sets_that_vary_alike(seed, 380)
    if permuted:
        y = np.random.default_rng(seed).permutation(y)
    model = CodingClassifier(lam=0.03, lam_scale="max", shrinkage=shrinkage)
    p_values = model.fit(points[:80], y[:80]).p_values(points[80:])
    return p_values.classes[np.arange(300), y[80:]], p_values.known


# Queries are coded over all of the labelled, the labelled over four fifths. Where so
# much is whitened that this matters, p-values are too large, never too small.
CAUTIOUS = 0.001


@pytest.mark.parametrize("shrinkage", [None, 0.3, 0.03, CAUTIOUS])
def test_right_classes_are_kept_at_the_coverage_with_whitening_too(shrinkage):
    """Within three standard errors of eight labelled parts."""
    both = np.array([p_values_of_new(shrinkage, seed) for seed in range(8)])
    for coverage in (0.8, 0.9):
        kept = (both > calibration.level_of(coverage)).mean(axis=(0, 2))
        slack = 3 * np.sqrt(coverage * (1 - coverage) / 80 / 8)
        assert (kept > coverage - slack).all()
        assert kept[0] < coverage + slack or shrinkage == CAUTIOUS


@pytest.mark.parametrize("shrinkage", [None, 0.3, CAUTIOUS])
def test_labels_that_say_nothing_have_uniform_p_values(shrinkage):
    p_values = np.array(
        [p_values_of_new(shrinkage, s, permuted=True) for s in range(8)]
    )
    steps = np.linspace(0.1, 0.9, 9)
    shares = (p_values[:, 0].ravel() <= steps[:, None]).mean(axis=1)
    slack = 3 * np.sqrt(0.25 / 80 / 8)
    assert (shares < steps + slack).all()
    assert (shares > steps - slack).all() or shrinkage == CAUTIOUS
