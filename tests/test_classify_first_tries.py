"""Machines on frames: what each set weighs, what is fitted, and what a query is told."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from grassmann_classify import first_tries
from grassmann_classify.first_tries import (
    FEATURES,
    MOST_FRAMES,
    SCALES,
    FramesSVM,
    few_of,
    predictions,
    scaled,
)

C = [0.01, 1.0, 10.0, 1000.0]
LENGTHS = [1, 3, 6, 9]
MACHINES = [(c, scale) for scale in SCALES for c in C]


def clips(n, n_classes=3, noise=1.0, seed=0, lengths=LENGTHS):
    """(Sets of rows in R^6 of several lengths and units, labels) of classes that overlap."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(np.arange(n) % n_classes)
    means = np.random.default_rng(99).standard_normal((n_classes, 6))
    units = np.array([1, 2, 0.5, 1, 3, 1])
    sets = [
        (2 + means[c] + noise * rng.standard_normal((rng.choice(lengths), 6))) * units
        for c in place
    ]
    return sets, np.array(["cat", "ape", "bee"])[place]


# --------------------------------------------------------------------- rows of a set


def by_steps(n, number):
    """Indices of so many of n rows at even steps, the first and the last among them."""
    if n <= number:
        return [*range(n)]
    if number == 1:
        return [0]
    return [round(i * (n - 1) / (number - 1)) for i in range(number)]


def test_few_rows_are_the_first_the_last_and_those_at_even_steps():
    """At most MOST_FRAMES a set; shorter sets are taken as they are."""
    lengths = [*range(1, 65), 1000]
    sets = [np.arange(n)[:, None] for n in lengths]
    for n, rows in zip(lengths, few_of(sets, np.inf)):
        assert len(rows) == min(n, MOST_FRAMES)
        assert rows[0] == 0 and rows[-1] == n - 1
        steps = np.diff(rows[:, 0])
        assert n <= MOST_FRAMES or np.ptp(steps) <= 1 <= steps.min()
        np.testing.assert_array_equal(rows[:, 0], by_steps(n, MOST_FRAMES))


@pytest.mark.parametrize("most", [1, 7, 29, 30, 45, 100, 160, 199, 200, 1000, np.inf])
def test_few_of_few_are_few_of_all_and_no_more_than_the_most(most):
    """By number of sets: each has as many rows as the others, if it has so many."""
    lengths = [1, 2, 5, 14, 15, 19, 20, 21, 40, 333]
    sets = [np.random.default_rng(n).random((n, 2)) for n in lengths]
    number = int(min(MOST_FRAMES, max(1, most / 10)))
    few = few_of(sets, most)
    for n, rows, mine in zip(lengths, sets, few):
        first = by_steps(n, MOST_FRAMES)
        places = [first[i] for i in by_steps(len(first), number)]
        np.testing.assert_array_equal(mine, rows[places])
        assert number == 1 or np.array_equal(mine[[0, -1]], rows[[0, -1]])
    assert sum(map(len, few)) <= max(most, 10)
    for again in (few_of(few, most), few_of(few_of(sets, np.inf), most)):
        assert all(map(np.array_equal, again, few))
    assert lengths == [*map(len, sets)]


def test_features_are_all_frames_their_mean_and_their_mean_and_standard_deviation():
    rng = np.random.default_rng(0)
    for n in (1, 2, 7):
        rows = rng.standard_normal((n, 4))
        mean = [sum(rows[i, j] for i in range(n)) / n for j in range(4)]
        squares = [sum((rows[i, j] - mean[j]) ** 2 for i in range(n)) for j in range(4)]
        deviation = [(square / n) ** 0.5 for square in squares]
        assert FEATURES.keys() == {"frames", "mean", "moments"}
        assert FEATURES["frames"](rows) is rows
        np.testing.assert_allclose(FEATURES["mean"](rows), [mean], rtol=1e-12)
        np.testing.assert_allclose(
            FEATURES["moments"](rows), [mean + deviation], rtol=1e-12, atol=1e-15
        )


# ------------------------------------------------------------------------- the machine


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_on_single_rows_it_is_the_machine_of_scikit_learn(scale, n_classes):
    """With gamma "scale" of the scaled training rows."""
    sets, y = clips(40, n_classes, lengths=[1])
    queries, _ = clips(30, n_classes, seed=1, lengths=[1])
    scaler = {"unit length": Normalizer(), "standardised": StandardScaler()}[scale]
    for c in C:
        twin = make_pipeline(scaler, SVC(C=c, gamma="scale")).fit(np.vstack(sets), y)
        model = FramesSVM(c, scale).fit(sets, y)
        np.testing.assert_allclose(
            model.decision_function(queries),
            twin.decision_function(np.vstack(queries)),
            rtol=1e-6,
            atol=1e-9,
        )
        expected = twin.predict(np.vstack(queries))
        assert model.predict(queries).tolist() == expected.tolist()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_mean_of_its_rows_decides_for_a_set(scale, n_classes):
    """Of a set of more than MOST_FRAMES, that of few of them."""
    sets, y = clips(40, n_classes)
    queries, _ = clips(20, n_classes, seed=1, lengths=[1, 5, 20, 21, 50])
    model = FramesSVM(1.0, scale).fit(sets, y)
    decisions = model.decision_function(queries)
    for scores, rows in zip(decisions, queries):
        rows = rows[by_steps(len(rows), MOST_FRAMES)]
        of_rows = model.decision_function([row[None] for row in rows])
        np.testing.assert_allclose(scores, of_rows.mean(axis=0), rtol=1e-9, atol=1e-12)
    if n_classes == 2:
        expected = model.classes_[[int(score > 0) for score in decisions]]
    else:
        expected = model.classes_[
            [max(range(3), key=row.__getitem__) for row in decisions]
        ]
    assert model.predict(queries).tolist() == expected.tolist()
    assert set(expected) == set(y)


@pytest.mark.parametrize("c, scale", MACHINES)
def test_a_set_alone_is_told_what_it_is_told_in_a_batch(c, scale, monkeypatch):
    """Whatever the others are: nothing is fitted to what is asked, and no row left out."""
    sets, y = clips(40)
    queries, _ = clips(20, seed=1)
    model = FramesSVM(c, scale).fit(sets, y)
    decisions = model.decision_function(queries)
    monkeypatch.setattr(first_tries, "MOST_TO_LEARN", 30)
    monkeypatch.setattr(first_tries, "MOST_TO_CHOOSE", 30)
    far = [1e6 * rows - 1e5 for rows in queries]
    batches = [far[:5] + queries, queries * 3 + far, far + queries[::-1]]
    for batch in batches:
        scores = model.decision_function(batch)
        at = [next(i for i, rows in enumerate(batch) if rows is q) for q in queries]
        np.testing.assert_allclose(scores[at], decisions, rtol=1e-9, atol=1e-12)
        assert model.predict(batch)[at].tolist() == model.predict(queries).tolist()
    for rows, scores in zip(queries, decisions):
        alone = model.decision_function([rows])[0]
        np.testing.assert_allclose(alone, scores, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", SCALES)
def test_units_that_a_scale_takes_away_change_no_answer(scale):
    """Of each row its length; of each feature its zero and its unit."""
    rng = np.random.default_rng(0)
    sets, y = clips(40)
    queries, _ = clips(20, seed=1)
    units = 10 ** rng.uniform(-2, 2, 6)

    def changed(parts):
        if scale == "standardised":
            return [rows * units + 7 * units for rows in parts]
        return [rows * 10 ** rng.uniform(-2, 2, (len(rows), 1)) for rows in parts]

    first = FramesSVM(1.0, scale).fit(sets, y).decision_function(queries)
    other = FramesSVM(1.0, scale).fit(changed(sets), y)
    np.testing.assert_allclose(
        other.decision_function(changed(queries)), first, atol=1e-6
    )


def test_a_machine_that_cannot_end_ends(monkeypatch, recwarn):
    """Of rows that no C tells apart: a large C would go on for minutes."""
    monkeypatch.setattr(first_tries, "MOST_STEPS", 50)
    sets, labels = clips(60, noise=30.0)
    model = FramesSVM(1e5).fit(sets, labels)
    assert max(model.svm_.n_iter_) == 50
    assert {*model.predict(sets)} <= {*labels}
    answers = predictions([1.0, 1e5])(sets, sets, labels)
    assert all(len(each) == len(sets) for each in answers.values())
    assert not recwarn.list


def test_sets_that_are_all_alike_have_an_answer():
    sets = [np.ones((3, 4))] * 4
    for c, scale in MACHINES:
        model = FramesSVM(c, scale).fit(sets, [*"abab"])
        assert set(model.predict(sets)) <= {"a", "b"}
        assert np.isfinite(model.decision_function(sets)).all()


# ----------------------------------------------------------------------------- weights


def test_each_set_weighs_the_same_and_a_row_one_in_the_mean():
    sets, _ = clips(40, lengths=[1, 2, 5, 13, 20, 30])
    for scale in SCALES:
        for most in (np.inf, 300, 90, 5):
            some = few_of(sets, most)
            rows, scaler, _, weights = scaled(some, scale)
            of_set = np.split(weights, np.cumsum([*map(len, some)])[:-1])
            each = len(rows) / len(sets)
            assert all(part.sum() == pytest.approx(each) for part in of_set)
            assert all(np.ptp(part) == 0 for part in of_set)
            assert len(rows) == len(weights) == sum(map(len, some))
            twin = SCALES[scale]().fit(np.vstack(some))
            np.testing.assert_array_equal(rows, twin.transform(np.vstack(some)))
            np.testing.assert_array_equal(
                scaler.transform(sets[0]), twin.transform(sets[0])
            )


def pairs_of_opposites(n, seed=0):
    """Sets of rows and their negatives, whose mean and variance no repetition changes."""
    sets, y = clips(n, 2, noise=2.5, seed=seed, lengths=[1, 2, 3])
    return [np.vstack([rows, -rows]) for rows in sets], y


@pytest.mark.parametrize("c", [0.3, 1.0, 3.0])
def test_rows_of_a_set_that_are_repeated_change_no_answer(c):
    """If C is for a row of the weight that it had: in the mean a row weighs one."""
    sets, y = pairs_of_opposites(24)
    queries, _ = pairs_of_opposites(30, seed=1)
    first = FramesSVM(c, "unit length").fit(sets, y)
    before = first.decision_function(queries)
    spread = np.ptp(before)
    moved = []
    for at, times in ((0, 3), (5, 2), (11, 3), (17, 2), (23, 3)):
        more = [*sets]
        more[at] = np.repeat(sets[at], times, axis=0)
        assert len(more[at]) <= MOST_FRAMES
        longer = sum(map(len, more)) / sum(map(len, sets))
        model = FramesSVM(c / longer, "unit length").fit(more, y)
        decisions = model.decision_function(queries)
        np.testing.assert_allclose(decisions, before, atol=0.01 * spread)
        several = FramesSVM(c, "unit length")
        several.fit([*sets, *[sets[at]] * 9], np.append(y, [y[at]] * 9))
        moved.append(np.abs(several.decision_function(queries) - before).max())
    assert max(moved) > 0.05 * spread  # a set that weighs more moves them


@pytest.mark.parametrize("scale", SCALES)
def test_beyond_the_most_rows_it_learns_from_few_of_each_set(scale, monkeypatch):
    """As many of each; the number of rows, their labels and weights are those of few."""
    monkeypatch.setattr(first_tries, "MOST_TO_LEARN", 130)
    sets, y = clips(40, lengths=[1, 2, 5, 9, 25])
    queries, _ = clips(20, seed=1)
    few = few_of(sets, 130)
    assert {*map(len, few)} == {1, 2, 3} and sum(map(len, sets)) > 200
    model = FramesSVM(1.0, scale).fit(sets, y)
    assert len(model.rows_) == sum(map(len, few)) <= 130
    monkeypatch.undo()
    twin = FramesSVM(1.0, scale).fit(few, y)
    np.testing.assert_array_equal(model.rows_, twin.rows_)
    np.testing.assert_array_equal(
        model.decision_function(queries), twin.decision_function(queries)
    )


def test_the_limits_are_of_rows_not_of_sets():
    """Of 400 sets of 25 rows 20 of each are kept, 15 learned from, and 2 chosen by."""
    sets = [np.arange(25.0)[:, None]] * 400
    assert {*map(len, few_of(sets, np.inf))} == {20}
    assert {*map(len, few_of(sets, first_tries.MOST_TO_LEARN))} == {15}
    assert {*map(len, few_of(sets, first_tries.MOST_TO_CHOOSE))} == {2}
    some = few_of(sets, first_tries.MOST_TO_LEARN)
    rows, _, _, weights = scaled(some, "standardised")
    assert len(rows) == 6000 and np.all(weights == 1)


# ----------------------------------------------------------------------------- choosing


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("noise", [0.2, 1.0, 2.5])
def test_what_is_chosen_by_is_what_each_machine_answers(n_classes, noise):
    """For every C, the largest first, also where it changes nothing, and both scales."""
    sets, y = clips(30, n_classes, noise)
    queries, _ = clips(40, n_classes, noise + 0.5, seed=1)
    many = [1e-4, 0.03, 0.3, 3.0, 30.0, 300.0, 1e4]
    answers = predictions(many[::-1])(sets, queries, y)
    # the usual scale comes first
    candidates = [(("C", c), ("scale", scale)) for scale in SCALES for c in many[::-1]]
    assert [*answers] == candidates and [*SCALES] == ["unit length", "standardised"]
    for (_, c), (_, scale) in candidates:
        alone = FramesSVM(c, scale).fit(sets, y).predict(queries)
        assert answers[("C", c), ("scale", scale)].tolist() == alone.tolist()
    assert len({str(labels) for labels in answers.values()}) >= 3


@pytest.mark.parametrize("few", ["ape", "cat"])
def test_a_class_of_few_sets_is_bounded_before_the_other(few):
    """Then the answers of a larger C are others, whichever class it is."""
    sets, y = clips(60, 2, noise=0.5)
    kept = np.concatenate([np.flatnonzero(y != few), np.flatnonzero(y == few)[:3]])
    sets = [sets[i] for i in kept]
    y = y[kept]
    queries, _ = clips(40, 2, seed=1)
    many = np.geomspace(0.01, 100, 13).tolist()
    answers = predictions(many)(sets, queries, y)
    for (_, c), (_, scale) in answers:
        alone = FramesSVM(c, scale).fit(sets, y).predict(queries)
        assert answers[("C", c), ("scale", scale)].tolist() == alone.tolist()


def test_other_queries_change_no_label():
    """Nor does their number, up to the rows at which fewer of each are asked."""
    sets, y = clips(30)
    queries, _ = clips(20, noise=2.0, seed=1)
    answers = predictions(C)(sets, queries, y)
    far = [1e3 * rows + 50 for rows in queries]
    for batch in (queries + far, queries[:7], [*queries, *far, *queries, far[0]]):
        again = predictions(C)(sets, batch, y)
        for what, labels in answers.items():
            n = min(len(batch), 20)
            assert again[what][:n].tolist() == labels[:n].tolist()
    for k in range(0, 20, 5):
        alone = predictions(C)(sets, [queries[k]], y)
        assert all(alone[what] == labels[k] for what, labels in answers.items())


def test_beyond_the_most_rows_it_chooses_by_few_of_each_set(monkeypatch):
    sets, y = clips(30, lengths=[1, 4, 8, 25])
    queries, _ = clips(20, noise=2.0, seed=1, lengths=[1, 4, 8, 25])
    few = few_of(sets, 90), few_of(queries, 90)
    assert [max(map(len, part)) for part in few] == [3, 4]
    expected = predictions(C)(*few, y)
    monkeypatch.setattr(first_tries, "MOST_TO_CHOOSE", 90)
    answers = predictions(C)(sets, queries, y)
    assert [*answers] == [*expected]
    for what, labels in answers.items():
        assert labels.tolist() == expected[what].tolist()
