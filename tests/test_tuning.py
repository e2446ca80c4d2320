"""Choice by cross-validation: what is best is found, and luck is not mistaken for it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
from grassmann_sc import estimators, kernels, tuning
from grassmann_sc.strategies import bases, explicit_gram
from oracles import TIGHT, clusters, error, rarely, seeds

LABELS = np.arange(60) % 3
FOLDS = [
    (np.flatnonzero(np.arange(60) % 5 != f), np.arange(f, 60, 5)) for f in range(5)
]


def answers(table):
    """predict for Search: a Gram matrix tells its name, and that names what is right."""

    def predict(K_dd, K_xd, y):
        queries = np.rint(K_xd[:, 0]).astype(int)
        return {
            what: np.where(right[queries % 1000], LABELS[queries % 1000], -1)
            for what, right in table[queries[0] // 1000].items()
        }

    return predict


def grams(names):
    """{name: K}: row i of matrix m is 1000 m + i."""
    return {
        name: np.repeat(1000.0 * m + np.arange(60)[:, None], 60, axis=1)
        for m, name in enumerate(names)
    }


def right(share, seed=0):
    return np.random.default_rng(seed).permutation(60) < share * 60


def choose(names, table, **options):
    return tuning.Search(LABELS, FOLDS, answers(table)).choose(grams(names), **options)


def test_the_best_matrix_and_parameter_are_chosen():
    good = (("lam", 0.2),)
    table = [
        {(("lam", lam),): right(0.5, m) for lam in (0.1, 0.2, 0.3)} for m in range(4)
    ]
    table[2][good] = right(0.95)
    names = [("linear", 1), ("linear", 2), ("rbf", 1), ("rbf", 2)]
    choice = choose(names, table)
    assert choice.gram == ("rbf", 1) and choice.parameters == good
    assert choice.score == pytest.approx(0.95, abs=0.01)


def test_of_equals_the_one_among_good_neighbours_is_chosen():
    """Half a standard error is no reason to leave a plateau."""
    shares = [0.9, 0.3, 0.8834, 0.8834, 0.8834]
    table = [{(): right(share, m)} for m, share in enumerate(shares)]
    names = [("linear", p) for p in (1, 2, 3, 4, 5)]
    assert choose(names, table).gram == ("linear", 4)


def test_of_equals_their_own_accuracy_counts_as_much_as_both_neighbours():
    """(2 * 36 + 26) / 3 is more than (2 * 34 + 29) / 3, but 36 + 26 less than 34 + 29."""
    names = [("linear", 1), ("linear", 2), ("rbf", 1), ("rbf", 2)]
    counts = [36, 26, 34, 29]
    table = [{(): right(count / 60, 20 + m)} for m, count in enumerate(counts)]
    choice = choose(names, table)
    assert [60 * share.mean() for share in choice.shares.values()] == pytest.approx(
        counts
    )
    assert tuning.alike(choice.shares, 0.5) == [(names[0], ()), (names[2], ())]
    assert choice.gram == ("linear", 1)


def test_of_equals_to_rounding_the_one_of_more_accuracy_of_its_own_is_chosen():
    """2 * 43 + 39 is 2 * 44 + 37, but a little more as shares of 60 that are added up."""
    names = [("linear", 1), ("linear", 2), ("rbf", 1), ("rbf", 2)]
    table = [
        {(): right(count / 60, 20 + m)} for m, count in enumerate([43, 39, 44, 37])
    ]
    assert choose(names, table).gram == ("rbf", 1)


@pytest.mark.parametrize("usual, other", list(tuning.RULES_OF_CODES.values()))
def test_another_rule_is_chosen_if_it_is_better_by_more_than_luck(usual, other):
    """One set more, of 11 on which the rules disagree, is luck; 12 sets more are not."""
    few = right(0.7)
    swapped = few.copy()
    swapped[np.flatnonzero(few)[:5]] = False
    swapped[np.flatnonzero(~few)[:6]] = True
    for better, rule in ((few, usual), (swapped, usual), (right(0.9), other)):
        parameters = [(("lam", 0.1), ("rule", name)) for name in (usual, other)]
        table = [dict(zip(parameters, (few, better)))]
        assert dict(choose([("linear", 1)], table).parameters)["rule"] == rule


def clips_of_twenty_classes():
    """(Gram matrix of five clips a class, labels, which two of a class train).

    The kernel is a narrow Gaussian. All frames lie in R^6, so that subspaces of frames
    tell little; a clip shows six of the eight looks of its class.
    """
    rng = np.random.default_rng(2)
    looks = rng.standard_normal((20, 8, 6))
    y = np.arange(100) // 5
    sets = [
        looks[c][rng.permutation(8)[:6]] + 0.2 * rng.standard_normal((6, 6)) for c in y
    ]
    kernel = kernels.rbf(4.0)
    K = kernels.kernel_gram(sets, kernels.kernel_bases(sets, kernel, 6), kernel=kernel)
    return K, y, np.arange(100) % 5 < 2


def test_local_codes_do_not_turn_over_in_the_refit():
    """A fold trains on one clip a class, where both rules agree; the refit on two."""
    K, y, train = clips_of_twenty_classes()
    assert np.median(K[y[:, None] != y]) < 1e-6 * K[0, 0]
    computed = np.flatnonzero(train)
    folds = [(computed[::2], computed[1::2]), (computed[1::2], computed[::2])]
    test = K[np.ix_(~train, train)]
    rates = {}
    for rules in (tuning.RULES_OF_CODES["local"], ["residual"]):
        predict = tuning.local_predictions([3], rules)
        choice = tuning.Search(np.where(train, y, 0), folds, predict).choose(
            {("rbf", 6): K}
        )
        answers = predict(K[np.ix_(train, train)], test, y[train])[choice.parameters]
        rates[dict(choice.parameters)["rule"]] = (
            choice.score,
            np.mean(answers == y[~train]),
        )
    # cross-validation shows no fault
    assert rates["residual"][0] >= rates["sum"][0] > 0.9
    assert rates["residual"][1] < 0.3 and rates["sum"][1] > 0.9
    model = estimators.CodingClassifier("local", n_neighbors=3, kernel="precomputed")
    model.fit(K[np.ix_(train, train)], y[train])
    assert np.mean(model.predict(test) == y[~train]) == rates["sum"][1]


@pytest.mark.parametrize(
    "coding, how, predict",
    [
        (
            "sparse",
            {"lam": 0.1, "lam_scale": "max"},
            tuning.sparse_predictions([0.1], tol=1e-8),
        ),
        ("local", {"n_neighbors": 6}, tuning.local_predictions([6])),
    ],
    ids=["sparse", "local"],
)
def test_one_rule_is_the_usual_one_everywhere(coding, how, predict):
    """Of the first candidates of a search, the classifier, and the functions."""
    D = core.random_subspaces(30, 12, 2, rng=0)
    Q = core.random_subspaces(30, 12, 2, rng=1)
    y = np.arange(30) % 3
    predictions = predict(core.projection_kernel(D), core.projection_kernel(Q, D), y)
    (_, (_, usual)), first = next(iter(predictions.items()))
    assert usual == tuning.RULES_OF_CODES[coding][0]
    assert np.array_equal(core.classify(Q, D, y, **how), first)
    for rule in (None, *tuning.RULES_OF_CODES[coding]):
        model = estimators.CodingClassifier(coding, rule=rule, **how).fit(D, y)
        assert np.array_equal(model.predict(Q), first) == (rule in (None, usual))


def test_shares_of_repeated_folds_are_shares():
    """A set asked twice counts once: its share of right answers is a mean."""
    tested = np.zeros(60, int)
    table = {(("lam", 0.1),): right(0.7)}

    def predict(K_dd, K_xd, y):
        queries = np.rint(K_xd[:, 0]).astype(int)
        computed = answers([table])(K_dd, K_xd, y)
        (lam,) = table
        once = computed[lam]
        again = np.where(tested[queries] == 1, -1, once)  # wrong at the second time
        tested[queries] += 1
        return {lam: again}

    folds = FOLDS + FOLDS[:2] + FOLDS[:1]
    choice = tuning.Search(LABELS, folds, predict).choose(grams([("linear", 1)]))
    times = np.select(
        [np.arange(60) % 5 == 0, np.arange(60) % 5 == 1], [2 / 3, 1 / 2], 1.0
    )
    (share,) = choice.shares.values()
    assert error(share, right(0.7) * times) < 1e-15
    assert choice.score == pytest.approx(share.mean())


def test_what_cannot_win_is_given_up_and_changes_nothing():
    table = [
        {(): right(share, m)} for m, share in enumerate((0.95, 0.2, 0.1, 0.9, 0.15))
    ]
    names = [("linear", p) for p in range(1, 6)]
    choice = choose(names, table)
    assert choice.gram == ("linear", 1)
    assert choice.n_tried < 25


@pytest.mark.parametrize("more, kept", [(2, False), (4, True)])
def test_what_is_behind_by_more_sets_than_are_to_come_is_given_up(more, kept):
    """By 14 or 12 of 48 that were asked, less than SURE; the last fold asks 12."""
    fold = np.arange(60) % 5
    place = np.arange(60) // 5
    ahead = (place >= 3) | (fold == 4)
    behind = (place < 5) | (place == 5) & (fold < more) | (fold == 4)
    table = [{(): ahead}, {(): behind}]
    names = [("linear", 1), ("rbf", 1)]
    assert ((names[1], ()) in choose(names, table).shares) == kept


def test_time_that_is_up_ends_the_search_with_what_is_known():
    table = [{(): right(share, m)} for m, share in enumerate((0.5, 0.9))]
    choice = choose([("linear", 1), ("linear", 2)], table, seconds=0)
    assert choice.gram == ("linear", 1) and choice.n_tried == 1


def test_time_that_is_up_keeps_nothing_from_what_is_known_already():
    table = [{(): right(share, m)} for m, share in enumerate((0.5, 0.9))]
    both = grams([("linear", 1), ("linear", 2)])
    predict = answers(table)
    search = tuning.Search(LABELS, FOLDS, predict)
    first = search.choose(both)
    assert search.choose(both, seconds=0)[:4] == first[:4]


def test_a_second_choice_takes_what_the_first_computed():
    tested = []

    def predict(K_dd, K_xd, y):
        tested.append((K_xd[0, 0] // 1000, K_xd[0, 0] % 1000))
        return answers([{(): right(0.5)}, {(): right(0.9)}])(K_dd, K_xd, y)

    search = tuning.Search(LABELS, FOLDS, predict)
    both = grams([("linear", 1), ("linear", 2)])
    search.choose({("linear", 1): both["linear", 1]})
    search.choose(both)
    assert len(tested) == len(set(tested)) > len(FOLDS)


@pytest.mark.parametrize("family", ["sparse", "local", "nearest"])
def test_predictions_are_those_of_the_functions(family):
    X = clusters(np.random.default_rng(0), 40, 12, 2, 4)
    y = np.array(list("abcd"))[np.arange(40) % 4]
    K = core.projection_kernel(X)
    computed = K[:30, :30]
    tested = K[30:, :30]
    norm2 = np.full(10, 2.0)
    if family == "nearest":
        predictions = tuning.nearest_predictions(computed, tested, y[:30])
        assert predictions[()].tolist() == y[:30][tested.argmax(axis=1)].tolist()
        return
    if family == "sparse":
        predictions = tuning.sparse_predictions([0.3, 0.1], core.RULES, tol=1e-8)(
            computed, tested, y[:30]
        )
        name = "lam"
        values = 0.1, 0.3
    else:
        predictions = tuning.local_predictions([3, 99], core.RULES)(
            computed, tested, y[:30]
        )
        name = "n_neighbors"
        values = 3, 99
    for value in values:
        if family == "sparse":
            codes = core.sparse_codes(
                computed, tested, value, norm2=norm2, lam_scale="max"
            )
        else:
            codes = core.locality_codes(computed, tested, min(value, 30), norm2=norm2)
        for rule in core.RULES:
            scores, classes = core.class_scores(
                codes, computed, tested, y[:30], norm2=norm2, rule=rule
            )
            assert (
                predictions[(name, value), ("rule", rule)]
                == classes[scores.argmax(axis=1)]
            ).all()
        for rule, h in (("sum", np.sum), ("max", np.max)):
            scores = [h(codes[:, y[:30] == c], axis=1) for c in "abcd"]
            assert (
                predictions[(name, value), ("rule", rule)]
                == np.array(list("abcd"))[np.argmax(scores, axis=0)]
            ).all()


@pytest.mark.parametrize("kind", [">f8", ">f4", np.longdouble, np.float16, int, bool])
@pytest.mark.parametrize(
    "predict", [tuning.sparse_predictions([0.1, 0.5]), tuning.local_predictions([1, 2])]
)
def test_gram_matrices_of_any_real_type_are_taken(predict, kind):
    K = np.kron(np.eye(3), np.ones((2, 2)))
    y = np.array(["ape", "bee", "cat"]).repeat(2)
    usual = predict(K, K, y)
    predictions = predict(K.astype(kind), K.astype(kind), y)
    assert all(
        (predictions[parameters] == labels).all()
        for parameters, labels in usual.items()
    )


@pytest.mark.parametrize(
    "predict", [tuning.sparse_predictions([0.1, 0.5]), tuning.local_predictions([1, 2])]
)
def test_no_queries_have_no_labels(predict):
    K = core.projection_kernel(core.random_subspaces(3, 10, 2, rng=0))
    answers = predict(K, K[:0], np.array(["ape", "bee", "cat"]))
    assert len(answers) == 4 and all(
        labels.shape == (0,) for labels in answers.values()
    )


@pytest.mark.parametrize("names", [(1, "1"), (("a", 1), ("a", 2)), (None, "b")])
@pytest.mark.parametrize(
    "predict",
    [
        tuning.sparse_predictions([0.1]),
        tuning.local_predictions([2]),
        tuning.nearest_predictions,
    ],
)
def test_labels_are_any_hashables(names, predict):
    """Of one array type 1 and "1" would be equal."""
    X = core.random_subspaces(2, 9, 2, rng=0)[np.arange(12) % 2]
    y = [names[i % 2] for i in range(12)]
    search = tuning.Search(y, [(np.arange(6), np.arange(6, 12))], predict)
    assert len(set(search.y)) == 2
    assert search.choose({("linear", 2): core.projection_kernel(X)}).score == 1
    swapped = [names[(i >= 6) != i % 2] for i in range(12)]
    search = tuning.Search(swapped, [(np.arange(6), np.arange(6, 12))], predict)
    assert search.choose({("linear", 2): core.projection_kernel(X)}).score == 0


@pytest.mark.parametrize(
    "predict, values",
    [
        (tuning.sparse_predictions([0.5, 0.1, 0.3], ["sum"]), [0.1, 0.3, 0.5]),
        (tuning.local_predictions([3, 1, 2], ["sum"]), [1, 2, 3]),
    ],
)
def test_the_values_of_a_family_ascend_as_neighbours_do(predict, values):
    K = core.projection_kernel(core.random_subspaces(4, 10, 2, rng=0))
    predictions = predict(K, K, np.arange(4))
    assert [what[0][1] for what in predictions] == values


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 100), st.integers(1, 12))
def test_dimensions_rise_from_1_to_the_largest(p_max, most):
    values = tuning.dimensions(p_max, most)
    assert values[0] == 1 and sorted(set(values)) == values and len(values) <= most
    assert values[-1] == (p_max if most > 1 else 1)


@rarely
@given(seeds, st.integers(9, 20))
def test_a_search_is_cross_validation_in_a_plain_loop(seed, n):
    rng = np.random.default_rng(seed)
    y = np.array(["ape", "bee", "cat"])[np.arange(n) % 3]
    parts = np.array_split(rng.permutation(n), 3)
    folds = [(np.setdiff1d(np.arange(n), part), part) for part in parts]
    X = bases(rng, n, 6, 3)
    grams = {("linear", p): explicit_gram(X[..., :p], X[..., :p]) for p in (1, 2, 3)}
    choice = tuning.Search(y, folds, tuning.nearest_predictions).choose(grams)
    right = np.empty(n)
    for fit, tested in folds:
        nearest = fit[grams[choice.gram][np.ix_(tested, fit)].argmax(axis=1)]
        right[tested] = y[nearest] == y[tested]
    assert choice.score == pytest.approx(right.mean(), rel=TIGHT)
    assert np.array_equal(choice.shares[choice.gram, choice.parameters], right)


def test_a_search_finds_the_kernel_and_the_dimension_that_tell_classes_apart():
    """Rings of two radii, which a Gaussian's subspaces tell apart, linear ones not."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    angle = rng.uniform(0, 2 * np.pi, (40, 8, 1))
    rings = (1 + y[:, None, None]) * np.concatenate(
        [np.cos(angle), np.sin(angle)], axis=2
    )
    sets = list(rings + 0.05 * rng.standard_normal(rings.shape))
    matrices = {}
    for name, kernel in (("linear", kernels.linear()), ("gaussian", kernels.rbf(1.0))):
        K = kernels.kernel_gram(
            sets, kernels.kernel_bases(sets, kernel), kernel=kernel, each_p=True
        )
        matrices |= {(name, p): K[p - 1] for p in range(1, len(K) + 1)}
    folds = [
        (
            np.flatnonzero(np.arange(40) // 2 % 4 != f),
            np.flatnonzero(np.arange(40) // 2 % 4 == f),
        )
        for f in range(4)
    ]
    choice = tuning.Search(y, folds, tuning.sparse_predictions([0.01, 0.1])).choose(
        matrices
    )
    assert choice.gram[0] == "gaussian" and choice.score == 1


def test_candidates_within_a_standard_error_are_alike():
    """A candidate that is worse by the same amount on every set is worse for sure."""
    best = np.repeat([1.0, 0.0], [18, 2])
    swapped = np.roll(best, 1)
    worse = best - 0.05
    shares = {"worse": worse, "best": best, "swapped": swapped}
    assert tuning.alike(shares) == ["best", "swapped"]
    assert tuning.alike(shares, within=1e9) == ["best", "swapped"]
    # behind by 3 sets of 20: 1.83 standard errors
    fewer = best * np.r_[np.zeros(3), np.ones(17)]
    assert tuning.alike({"best": best, "fewer": fewer}, within=1.8) == ["best"]
    assert tuning.alike({"best": best, "fewer": fewer}, within=1.9) == ["best", "fewer"]


def test_candidates_are_compared_on_sets_that_all_were_asked():
    some = np.array([1.0, 0.0, np.nan, np.nan])
    assert tuning.alike({"a": some, "b": np.array([1.0, 1.0, 0.0, 0.0])}, within=0) == [
        "b"
    ]
    with pytest.raises(
        ValueError, match="shares must have a set that all candidates were asked"
    ):
        tuning.alike({"a": some, "b": np.array([np.nan, np.nan, 0.0, 0.0])})


def test_a_choice_tells_the_shares_of_those_still_in():
    table = [{(): right(share, m)} for m, share in enumerate((0.9, 0.85, 0.1))]
    names = [("linear", 1), ("linear", 2), ("linear", 3)]
    shares = choose(names, table).shares
    assert list(shares) == [(names[0], ()), (names[1], ())]
    assert all(
        (share == truth[()]).all() for share, truth in zip(shares.values(), table)
    )


def test_a_candidate_behind_in_the_first_repeat_may_make_it_up_in_the_next():
    """By more than the sets that no fold has asked yet, since others are asked again."""
    y = np.zeros(20, int)
    folds = [(np.arange(15, 20), np.arange(10)), (np.arange(15, 20), np.arange(11))]
    wrong = {"a": {10: 0, 11: 11}, "b": {10: 2, 11: 0}}  # of so many

    class Named(str):
        def parts(self, train, tested):
            return self, len(tested)

    def predict(name, n, y):
        return {(): np.arange(n) < wrong[name][n]}

    some = {(name, 1): Named(name) for name in "ab"}
    choice = tuning.Search(y, folds, predict).choose(some)
    assert choice.gram == ("b", 1) and choice.n_tried == 4


@pytest.mark.parametrize("fails", [0, 2, 4])
def test_what_a_fold_cannot_have_is_left_out_as_if_it_had_not_been_there(fails):
    """Even the leader, in the last fold, when others were already given up for it."""
    shares = 0.95, 0.5, 0.45, 0.2
    table = [{(("lam", 0.1),): right(share, m)} for m, share in enumerate(shares)]
    names = [("linear", p) for p in (1, 2, 3, 4)]
    usual = answers(table)

    def predict(K_dd, K_xd, y):
        queries = np.rint(K_xd[:, 0]).astype(int)
        if queries[0] < 1000 and queries[0] % 5 == fails:
            raise ValueError("set 3 has rank 8")
        return usual(K_dd, K_xd, y)

    choice = tuning.Search(LABELS, FOLDS, predict).choose(grams(names))
    some = {name: K for name, K in grams(names).items() if name != names[0]}
    without = tuning.Search(LABELS, FOLDS, usual).choose(some)
    assert choice.left_out == {names[0]: "set 3 has rank 8"} and without.left_out == {}
    assert choice[:3] == without[:3] == (names[1], (("lam", 0.1),), without.score)
    assert choice.shares.keys() == without.shares.keys()
    assert all(
        (choice.shares[key] == without.shares[key]).all() for key in choice.shares
    )


def test_only_a_value_error_leaves_a_matrix_out_and_not_all_of_them():
    def predict(K_dd, K_xd, y):
        raise error

    both = {("linear", 1): np.eye(60), ("linear", 2): tuning.Absent("no such rank")}
    error = RuntimeError("out of memory")
    with pytest.raises(RuntimeError, match="out of memory"):
        tuning.Search(LABELS, FOLDS, predict).choose(both)
    error = ValueError("one class alone")
    with pytest.raises(
        ValueError, match="every fold can have, got 2 .*: one class alone"
    ):
        tuning.Search(LABELS, FOLDS, predict).choose(both)


def test_a_choice_tells_what_was_left_out_of_its_own_matrices():
    search = tuning.Search(LABELS, FOLDS, answers([{(): right(0.5)}]))
    names = [("linear", 1), ("linear", 2)]
    both = {**grams(names[:1]), names[1]: tuning.Absent("no such rank")}
    assert search.choose(both).left_out == {names[1]: "no such rank"}
    assert search.choose(grams(names[:1])).left_out == {}


def test_several_functions_are_one_search_and_compute_nothing_twice():
    names = [("linear", p) for p in (1, 2, 3)]
    families = [
        [
            {(("lam", lam),): right(share - lam, 7 * m) for lam in (0.1, 0.2)}
            for m, share in enumerate((0.9, 0.8, 0.3))
        ],
        [
            {(("neighbors", k),): right(share, 5 * k + m) for k in (1, 2, 3)}
            for m, share in enumerate((0.5, 0.95, 0.2))
        ],
    ]
    predicts = [answers(table) for table in families]
    several = tuning.Search(LABELS, FOLDS, predicts).choose(grams(names))
    all_of_them = [{**table, **other} for table, other in zip(*families)]
    joint = tuning.Search(LABELS, FOLDS, answers(all_of_them)).choose(grams(names))
    assert several[:4] == joint[:4]
    assert all((several.shares[key] == joint.shares[key]).all() for key in joint.shares)


class Rows:
    """Sets of rows, a candidate that is no Gram matrix."""

    def __init__(self, sets):
        self.sets = sets

    def parts(self, train, tested):
        return self.sets[train], self.sets[tested]


def test_any_object_with_parts_is_a_candidate():
    """Its name may have any number of parts, p the last."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((60, 4))
    means = LABELS[:, None] + 0.1 * noise
    choices = {
        ("raw", "rows", 1): Rows(noise),
        ("raw", "rows", 2): Rows(means),
        ("hog", "rows", 2): Rows(means + 5 * noise),
        ("hog", "rows", 3): tuning.Absent("no such rank"),
    }

    def predict(computed, queries, y):
        means = np.stack([computed[y == c].mean(axis=0) for c in range(3)])
        distances = np.linalg.norm(queries[:, None] - means, axis=2)
        return {(): distances.argmin(axis=1)}

    search = tuning.Search(LABELS, FOLDS, predict)
    choice = search.choose(choices)
    assert choice.gram == ("raw", "rows", 2) and choice.score == 1
    assert choice.left_out == {("hog", "rows", 3): "no such rank"}
    (labels,) = search.answers(choices[choice.gram], *FOLDS[0]).values()
    assert (labels == LABELS[FOLDS[0][1]]).all()


def test_neighbours_are_candidates_whose_names_differ_in_p_alone():
    """Of equal candidates, the one of the recipe whose other p is better."""
    names = [(recipe, "linear", p) for recipe in ("raw", "hog") for p in (1, 2)]
    table = [{(): right(share, 1)} for share in (0.5, 0.9, 0.8, 0.9)]
    assert choose(names, table).gram == ("hog", "linear", 2)


def nothing(K_dd, K_xd, y):
    return {}


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda: tuning.Search(LABELS, FOLDS, nothing).answers(np.eye(3), [0], [1]),
            r"candidate must have shape \(60, 60\), got \(3, 3\)",
        ),
        (lambda: tuning.Search(LABELS, [], nothing), "folds must hold at least one"),
        (
            lambda: tuning.Search(LABELS, [([], [1])], nothing),
            r"folds: fit0 must hold integers \(k,\), at least one",
        ),
        (
            lambda: tuning.Search(LABELS, FOLDS, nothing).choose({}),
            "grams must be a dict of at least one",
        ),
        (
            lambda: tuning.Search(LABELS, FOLDS, nothing).choose({("a", 1): np.eye(3)}),
            r"grams\[\('a', 1\)\] must have shape \(60, 60\), got \(3, 3\)",
        ),
        (
            lambda: tuning.check_splits([([0], [1])], 2, ["a", "b", "b"]),
            "groups must have length 2, one for each of the sets, got 3",
        ),
        (
            lambda: tuning.sparse_predictions([0.1])(np.eye(3), np.eye(3), ["a", "b"]),
            "y must have length 3, one for each of the sets, got 2",
        ),
        (
            lambda: tuning.sparse_predictions([0.1])(np.eye(0), np.eye(0), []),
            "K_dd must be a square matrix",
        ),
        (
            lambda: tuning.check_splits([([0], [1])], 2, [("a", 1), ("a", 1)]),
            r"must keep groups together, both hold sets of group \('a', 1\)",
        ),
        (
            lambda: tuning.check_splits([([0], [0.5])], 2),
            r"splits: test0 must hold integers \(k,\), at least one, got float64 \(1,\)",
        ),
        (
            lambda: tuning.check_splits([([[0]], [1])], 2),
            r"splits: train0 must hold integers \(k,\), at least one, got int64 \(1, 1\)",
        ),
        (lambda: tuning.alike({}), "shares must be a dict of at least one candidate"),
        (
            lambda: tuning.local_predictions([]),
            "n_neighbors must be a list of numbers, at least one",
        ),
        (
            lambda: tuning.sparse_predictions([1], []),
            "rules must be a list of rules, at least one",
        ),
        (
            lambda: tuning.sparse_predictions([0.1, -1]),
            "lams must be a list of numbers >= 0, got",
        ),
        (
            lambda: tuning.check_splits(3, 4),
            "splits must hold at least one pair .train, test. of indices, got 3",
        ),
        (
            lambda: tuning.Search([0, 1], [([0], [1])], len).choose({0: np.eye(2)}),
            "grams must be a dict of at least one {.kernel, p.: K}, got {0: ",
        ),
        (lambda: tuning.dimensions(0), "p_max must be >= 1, got 0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("predict", [None, "nearest", [], [nothing, None]])
def test_predict_is_a_function_or_several(predict):
    with pytest.raises(TypeError, match="predict must be a function of K_dd, K_xd"):
        tuning.Search(LABELS, FOLDS, predict)


@pytest.mark.parametrize("values", ["residual", 3])
def test_rules_and_neighbours_are_lists(values):
    with pytest.raises(TypeError, match="rules must be a sequence of rules, got"):
        tuning.sparse_predictions([0.1], values)
    with pytest.raises(TypeError, match="n_neighbors must be a sequence of numbers"):
        tuning.local_predictions(values)


@pytest.mark.parametrize(
    "candidate, train, tested, named",
    [
        ([[1, 2], [3]], [0], [1], "candidate"),
        (np.eye(2), [0], [1], "candidate"),
        (np.full((len(LABELS),) * 2, 1j), [0], [1], "candidate"),
        (np.full((len(LABELS),) * 2, "a"), [0], [1], "candidate"),
        (np.eye(len(LABELS)), [0], np.ma.array([1, 2], mask=[0, 1]), "tested"),
        (np.eye(len(LABELS)), [], [1], "train"),
        (np.eye(len(LABELS)), [0], [0], "tested"),
        (np.eye(len(LABELS)), [0], [len(LABELS)], "tested"),
    ],
)
def test_answers_name_what_is_wrong(candidate, train, tested, named):
    search = tuning.Search(LABELS, FOLDS, tuning.nearest_predictions)
    with pytest.raises((TypeError, ValueError), match=named):
        search.answers(candidate, train, tested)
