"""The bank of candidates, their ranking, the sum, and what a whitened sum is fitted to."""

import numpy as np
import pytest

from grassmann_classify import evaluation, inner_product
from grassmann_classify.bank import (
    FEW,
    Bank,
    Candidate,
    Rows,
    few_frames,
    products,
    weights_of,
    with_unit_diagonal,
)
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, some_sets
from grassmann_classify.evaluation import evaluate, first_look
from grassmann_classify.first_tries import FEATURES
from grassmann_classify.inner_product import (
    SHRINKAGE,
    InnerProduct,
    Ranking,
    Whitened,
    fill,
    mean_of,
)
from grassmann_classify.recipes import base_of, recipes_of
from grassmann_classify.rows import LEARNED, ROWS, attempt, methods
from grassmann_classify.settings import Recipe, Settings
from grassmann_sc import discriminative, kernels, tuning

PLAIN = Recipe(24, fewer=True)
RNG = np.random.default_rng(0)
LABEL = np.arange(36) % 3
PARTS = np.arange(24), np.arange(24, 36)


def bank_of(n_frames=24, noise=1.0, label=LABEL, **options):
    """A Bank of sets in R^5, each class around a plane of its own, of several recipes."""
    rng = np.random.default_rng(0)
    spaces = rng.standard_normal((3, 2, 5))
    clips = []
    for i, c in enumerate(LABEL):
        exact = rng.standard_normal((n_frames, 2)) @ spaces[c]
        rows = exact + noise * rng.standard_normal((n_frames, 5))
        clips.append(Clip(f"{i}", label[i], None, [rows]))
    base = build_all(clips, base_of(PLAIN))
    return Bank(base, recipes_of(PLAIN, (5,), [n_frames]), Settings(**options))


def ranking_of(bank, label=LABEL):
    folds = [(np.setdiff1d(PARTS[0], part), part) for part in np.split(PARTS[0], 4)]
    return Ranking(label, folds, bank.names[0])


def candidates_of(bank):
    made = {}
    for name in bank.names:
        for grams in [*bank.linear(name), *bank.gaussian(name)]:
            made |= grams
    return made


def test_matrices_have_unit_norm_and_are_those_of_the_points():
    """Of every recipe, dimension, spectrum and width; more frames than are read."""
    bank = bank_of(FEW + 7)
    made = candidates_of(bank)
    kinds = {(bool(c.p), bool(c.spectrum), bool(c.kernel)) for c in made}
    assert len(kinds) == 3 and {c.recipe for c in made} == {*bank.recipes}
    for candidate, K in [*made.items()][::5]:
        assert K.dtype == np.float32
        assert K.base is None  # one that is kept keeps no other
        np.testing.assert_allclose(K.diagonal(), 1, atol=1e-6)
        ((_, same),) = products([candidate], bank)
        np.testing.assert_allclose(same, K, atol=2e-6)
        assert candidate.words.count(",") >= 1


@pytest.mark.parametrize("most", [2**27, 0])
def test_products_of_new_sets_and_others(most, monkeypatch):
    """Of every candidate, as one after another; what is kept changes none, nor parts."""
    bank = bank_of()
    made = candidates_of(bank)
    new = np.arange(0, 36, 5)
    once = Rows(some_sets(bank.collection, new), bank.recipes)
    monkeypatch.setattr("grassmann_classify.bank.MOST_KEPT", most)
    monkeypatch.setattr("grassmann_classify.bank.MOST_BYTES", 4 * most)
    for _ in range(2):
        grams = dict(products(made, once, bank))
        assert grams.keys() == made.keys()
        for candidate, K in grams.items():
            np.testing.assert_allclose(K, made[candidate][new], atol=2e-6)
    assert (len(bank.kept) > 8) == (most > 0)


def test_products_of_sets_of_fewer_directions_than_p():
    """Each has those of its own, whose inner product with itself is 1."""
    bank = bank_of(12)
    few = [rows[:n] for rows, n in zip(bank.collection.sets, (2, 3, 9))]
    name = "plain"
    new = Rows(bank.collection._replace(sets=few, spectra=None), {name: None})
    kernel = kernels.rbf(0.1)
    candidates = [Candidate(name, p, kernel=kernel) for p in (1, 3, 5)]
    for candidate, K in products(candidates, new, bank):
        bases = [
            kernels.kernel_bases([rows], kernel, min(candidate.p, len(rows)))[0]
            for rows in few
        ]
        for i, A in enumerate(bases):
            others = kernels.kernel_bases(bank.sets(name), kernel, candidate.p)
            expected = kernels.kernel_gram(
                few[i : i + 1], [A], bank.sets(name), others, kernel=kernel
            )
            norm = np.sqrt(A.shape[1] * candidate.p)
            np.testing.assert_allclose(K[i], expected[0] / norm, atol=1e-12)
    for _, K in products(candidates, new):
        np.testing.assert_allclose(K.diagonal(), 1, atol=1e-12)


def test_the_sum_of_points_is_the_mean_of_matrices():
    """gram and cross of an InnerProduct, of linear and Gaussian candidates together."""
    bank = bank_of(noise=0.3)
    made = candidates_of(bank)
    some = [*made][:: len(made) // 7]
    assert {c.kernel is None for c in some} == {True, False}
    inner = InnerProduct(some, bank.recipes, [1.0] * len(some))
    points = inner.points(bank.collection)
    K = mean_of([made[candidate] for candidate in some], len(some))
    np.testing.assert_allclose(inner.gram(points), K, atol=2e-6)
    np.testing.assert_allclose(inner.gram(points, points), K, atol=2e-6)
    assert [share for _, share in inner.words] == [100.0] * len(some)


def test_candidates_within_a_standard_error_of_the_best_are_summed():
    bank = bank_of()
    ranking = ranking_of(bank)
    fill(bank, [ranking], [*methods(bank, 0, Settings())])
    for linear in (True, False):
        by_hand = {}
        for candidate, K in candidates_of(bank_of()).items():
            if candidate.kernel is None or not linear:
                right = []
                for fit, validate in ranking.folds:
                    parts = tuning.Gram(K.astype(float)).parts(fit, validate)
                    predict = tuning.sparse_predictions([0.1], ["residual"])
                    (labels,) = predict(*parts, LABEL[fit]).values()
                    right += [*(labels == LABEL[validate])]
                by_hand[candidate] = np.mean(right)
        best = max(by_hand.values())
        least = best - max(np.sqrt(best * (1 - best) / 24), 1 / 48)
        expected = {c for c, share in by_hand.items() if share >= least}
        assert {*ranking.summed(linear)} == expected
        assert 1 < len(expected) < len(by_hand)
        assert expected <= bank.grams.keys()
        for candidate in expected:
            assert ranking.accuracy[candidate] == pytest.approx(by_hand[candidate])


def test_a_candidate_is_given_up_beside_the_best_on_the_same_folds():
    """The first fold is hard: what is better there and elsewhere is not given up."""
    hard, *others = np.split(np.arange(36), 3)
    folds = [(np.arange(12, 36), hard), tuple(others), tuple(others[::-1])]
    same = (LABEL == LABEL[:, None]).astype(np.float32)
    grams = []
    for n_wrong in (12, 10):
        K = 0.9 * same + 0.1 * np.eye(36, dtype=np.float32)
        wrong = np.arange(n_wrong)
        other = (LABEL[wrong] + 1)[:, None] % 3 == LABEL
        K[wrong] = 0.9 * other
        K[:, wrong] = K[wrong].T
        K[np.ix_(wrong, wrong)] = np.eye(n_wrong)
        grams.append(K)
    ranking = Ranking(LABEL, folds, None)
    for p, K in enumerate(grams, 1):
        ranking.judge(Candidate("plain", p), K)
    first, second = (ranking.accuracy[Candidate("plain", p)] for p in (1, 2))
    assert second > first > 0.5


def test_a_candidate_a_little_behind_on_a_fold_is_tried_on_the_others():
    """The usual ones of the first recipe on all folds, however far behind they are."""
    folds = [
        (np.setdiff1d(np.arange(36), part), part)
        for part in np.split(RNG.permutation(36), 3)
    ]
    same = (LABEL == LABEL[:, None]).astype(np.float32)
    best = 0.9 * same + 0.1 * np.eye(36, dtype=np.float32)
    grams = {0: best}
    for n_wrong in (1, 12):
        K = best.copy()
        wrong = folds[0][1][:n_wrong]
        K[wrong] = 0.9 * ((LABEL[wrong] + 1)[:, None] % 3 == LABEL)
        K[:, wrong] = K[wrong].T
        K[np.ix_(wrong, wrong)] = np.eye(n_wrong)
        grams[n_wrong] = K
    for name in ("stack", "first"):
        ranking = Ranking(LABEL, folds, "first")
        for p, K in grams.items():
            ranking.judge(Candidate(name, p + 1), K)
        *others, far = ranking.accuracy.values()
        assert others == pytest.approx([1, 35 / 36])
        assert far == 0 if name == "stack" else far > 0
        assert [*ranking.nearest] == [c for c in ranking.accuracy if name == "first"]
    assert ranking.nearest[Candidate("first", 1)] == 1
    assert ranking.nearest[Candidate("first", 2)] == pytest.approx(35 / 36)
    by_alpha = Candidate("first", None, 0.5)
    ranking.judge(by_alpha, best)
    ranking.nearest[by_alpha] = 2.0
    assert ranking.usual() == Candidate("first", 1)


def test_the_order_and_what_is_within_a_standard_error_of_its_first():
    """Of accuracy a on n sets the standard error is sqrt(a (1 - a) / n), at least half a set."""
    ranking = ranking_of(bank_of())
    shares = [0.6, 0.8, 0.72, 0.71]  # 0.8 - sqrt(0.8 * 0.2 / 24) = 0.718
    candidates = [Candidate("plain", p) for p in range(1, 5)]
    ranking.accuracy = dict(zip(candidates, shares))
    assert [c.p for c in ranking.order(True)] == [2, 3, 4, 1]
    assert [c.p for c in ranking.summed(True)] == [2, 3]
    assert ranking.best().p == 2 and ranking.best(lambda c: c.p != 2).p == 3
    ranking.accuracy = dict(zip(candidates, [1, 47.1 / 48, 46.9 / 48, 47 / 48]))
    assert [c.p for c in ranking.summed(True)] == [1, 2, 4]
    assert ranking.least(True, 0) == pytest.approx(1)


def test_a_gaussian_candidate_is_given_up_beside_a_linear_one():
    """It is in the order of all, not in that of linear ones."""
    same = (LABEL == LABEL[:, None]).astype(np.float32)
    good = 0.9 * same + 0.1 * np.eye(36, dtype=np.float32)
    hard = good.copy()  # wrong on the first fold alone
    wrong = np.arange(6)
    hard[wrong] = 0.5 * ((LABEL[wrong] + 1)[:, None] % 3 == LABEL)
    hard[:, wrong] = hard[wrong].T
    hard[np.ix_(wrong, wrong)] = np.eye(6)
    for first, share in ((good, 0), (None, 18 / 24)):
        ranking = ranking_of(bank_of())
        if first is not None:
            ranking.judge(Candidate("plain", 1), first)
        gaussian = Candidate("plain", 1, None, "kernel")
        ranking.judge(gaussian, hard)
        assert ranking.accuracy[gaussian] == pytest.approx(share)
        assert gaussian in ranking.order(False) and gaussian not in ranking.order(True)
        assert not ranking.nearest.get(gaussian)


def test_labels_of_sets_that_are_not_learned_change_nothing():
    """Neither what is ranked nor what is whitened knows the labels of the test part."""
    split = evaluation.split_of(bank_of(), LABEL, None, *PARTS, Settings())
    assert {*split.label[PARTS[1]]} == {LABEL[PARTS[0][0]]}
    other = LABEL.copy()
    other[PARTS[1]] = RNG.permutation(other[PARTS[1]])
    chosen = []
    settings = Settings(C=[1.0, 100.0])
    for label in (LABEL, other):
        bank = bank_of(label=label)
        rows = evaluate(bank, label, None, PARTS, settings)
        chosen.append(
            [
                (
                    row.chosen,
                    row.score,
                    row.predicted.tolist(),
                    row.inner and row.inner.words,
                )
                for row in rows
            ]
        )
    names = [name for name in ROWS if not name.endswith(LEARNED)]
    assert chosen[0] == chosen[1] and len(chosen[0]) == len(names)
    grams = bank_of().grams or candidates_of(bank_of())
    K = mean_of(grams.values(), len(grams))
    for shrinkage in SHRINKAGE:
        fit = PARTS[0][:16]
        validate = PARTS[0][16:]
        parts = []
        for seed in range(2):
            label = LABEL.copy()
            label[16:] = np.random.default_rng(seed).permutation(label[16:])
            parts.append(Whitened(K, label, shrinkage, {}).parts(fit, validate))
        for A, B in zip(*parts):
            np.testing.assert_array_equal(A, B)
        np.testing.assert_allclose(parts[0][0].diagonal(), 1, atol=1e-6)


def test_no_more_matrices_are_kept_than_memory_allows(monkeypatch, capsys):
    monkeypatch.setattr(inner_product, "MOST_BYTES", 3 * 4 * 36**2)
    bank = bank_of()
    ranking = ranking_of(bank)
    fill(bank, [ranking], [*methods(bank, 0, Settings())])
    assert len(bank.grams) == 3
    best = max(ranking.accuracy.values())
    assert best in {ranking.accuracy[candidate] for candidate in bank.grams}
    assert "no more than the first 3 are summed" in capsys.readouterr().err


def test_of_many_sets_those_that_rank_have_matrices_and_the_sum_is_of_all(monkeypatch):
    """Then the choices, and the answers, are those of matrices of all sets."""
    answers = []
    parts = np.arange(12, 36), np.arange(12)
    for many in (2000, 10):
        monkeypatch.setattr(inner_product, "MANY", many)
        bank = bank_of()
        rows = [*evaluate(bank, LABEL, None, parts, Settings(methods=["gsc", "kgsc"]))]
        assert {len(K) for K in bank.grams.values()} == {36 if many > 36 else 24}
        answers.append(
            [
                (row.chosen, row.score, row.predicted.tolist(), row.inner.candidates)
                for row in rows
            ]
        )
        split = evaluation.split_of(bank, LABEL, None, *parts, Settings())
        made = candidates_of(bank_of())
        for candidate in bank.grams:
            ((_, K),) = bank.grams_of([candidate])
            np.testing.assert_allclose(K, made[candidate], atol=2e-6)
            split.ranking.accuracy[candidate] = 1.0
        _, K, _ = split.summed(linear=False)
        grams = [gram for _, gram in bank.grams_of(bank.grams)]
        np.testing.assert_allclose(K, mean_of(grams, len(grams)), atol=2e-6)
    assert answers[0] == answers[1] and len(answers[0]) == 2


def test_each_split_has_a_matrix_to_sum_however_short_memory_is(monkeypatch):
    monkeypatch.setattr(inner_product, "MOST_BYTES", 0)
    bank = bank_of(noise=2.0)
    rankings = [ranking_of(bank), ranking_of(bank, LABEL[::-1])]
    fill(bank, rankings, [*methods(bank, 0, Settings())])
    for ranking in rankings:
        assert ranking.usual() in bank.grams
        for linear in (True, False):
            assert bank.grams.keys() & {*ranking.summed(linear)}


def test_sets_of_fewer_directions_than_p_have_those_of_their_own():
    s = np.array([[2.0, 1, 0.5], [3, 1, 0]])
    weights = weights_of(s, Candidate("plain", 3))
    np.testing.assert_allclose(weights**2, [[1 / 3] * 3, [1 / 2, 1 / 2, 0]])


def test_matrices_of_a_split_are_let_go_when_it_is_done(monkeypatch):
    """Else memory grows with the number of splits."""
    splits = []
    split_of = evaluation.split_of

    def kept(*how):
        splits.append(split_of(*how))
        return splits[-1]

    monkeypatch.setattr(evaluation, "split_of", kept)
    pairs = [PARTS, PARTS[::-1]]
    settings = Settings(methods=["gsc", "kgsc"])
    for _ in evaluation.run_splits(bank_of(), pairs, settings):
        assert sum(bool(split.shared) for split in splits) <= 1
    assert len(splits) == 2 and not any(split.shared for split in splits)


def test_the_best_matrices_are_kept_where_memory_is_short(monkeypatch):
    """Those nearest to the best candidate, and the usual one."""
    monkeypatch.setattr(inner_product, "MOST_BYTES", 4 * 4 * 36**2)
    bank = bank_of(noise=2.0)
    ranking = ranking_of(bank)
    fill(
        bank,
        [ranking],
        [m for m in methods(bank, 0, Settings()) if m.reads != "kernels"],
    )
    within = ranking.summed(linear=True)
    assert len(within) > 5
    accuracies = [ranking.accuracy[c] for c in bank.grams if c != ranking.usual()]
    assert len(bank.grams) == 4
    assert ranking.usual() in bank.grams
    assert (
        sorted(accuracies)
        == sorted(map(ranking.accuracy.get, within))[-len(accuracies) :]
    )


def test_memory_that_is_short_goes_to_what_is_best_in_any_split(monkeypatch):
    """p = 1 leads in a split, p = 2 in another; p = 3 is nearer to both in the mean."""
    monkeypatch.setattr(inner_product, "MOST_BYTES", 3 * 4 * 36**2)
    bank = bank_of(p=[1, 2, 3, 4])
    bank.recipes = {"plain": bank.recipes["plain"]}
    rankings = [ranking_of(bank), ranking_of(bank)]
    shares = [{1: 0.9, 2: 0.85, 3: 0.88, 4: 0.1}, {1: 0.85, 2: 0.9, 3: 0.88, 4: 0.1}]
    for ranking, share in zip(rankings, shares):

        def judge(candidate, K, ranking=ranking, share=share):
            ranking.accuracy[candidate] = share[candidate.p]

        ranking.judge = judge
        ranking.usual = lambda: Candidate("plain", 4)
    fill(
        bank,
        rankings,
        [m for m in methods(bank, 0, Settings()) if m.reads != "kernels"],
    )
    for ranking in rankings:
        assert {candidate.p for candidate in ranking.summed(True)} == {1, 2, 3}
    assert {candidate.p for candidate in bank.grams} == {1, 2, 4}


def test_gaussian_candidates_read_twenty_frames_at_even_steps():
    rows = np.arange(40.0)[:, None]
    few = bank_of(40).sets("plain")[0]
    assert len(few_frames(few)) == len(few_frames(rows)) == 20
    steps = np.diff(few_frames(rows)[:, 0])
    assert steps.min() >= 2 and steps.max() <= 3


def test_gaussian_candidates_are_of_the_leading_recipes_where_they_take_long(
    monkeypatch,
):
    monkeypatch.setattr("grassmann_classify.bank.CHEAP", 0)
    bank = bank_of()
    ranking = ranking_of(bank)
    fill(bank, [ranking], [*methods(bank, 0, Settings())])
    in_kernels = {c.recipe for c in ranking.accuracy if c.kernel is not None}
    assert in_kernels == {*ranking.leading()} and len(in_kernels) == 2


def test_what_a_split_sums_is_kept_whatever_recipes_lead_in_others(monkeypatch):
    monkeypatch.setattr("grassmann_classify.bank.CHEAP", 0)
    bank = bank_of()
    rankings = [ranking_of(bank), ranking_of(bank, np.roll(LABEL, 1) * (LABEL > 0))]
    leading = [["plain"], ["stack 4"]]
    for ranking, names in zip(rankings, leading):
        ranking.leading = lambda names=names: names
    fill(bank, rankings, [*methods(bank, 0, Settings())])
    for ranking in rankings:
        for linear in (True, False):
            assert bank.grams.keys() >= {*ranking.summed(linear)}


@pytest.mark.parametrize(
    "options, points",
    [
        ({"p": [1, 3]}, {(1, None), (3, None)}),
        ({"spectrum": [0.5]}, {(None, 0.5)}),
        ({"p": [2], "spectrum": [0.5]}, {(2, None), (None, 0.5)}),
    ],
)
def test_settings_narrow_the_bank(options, points):
    bank = bank_of(**options)
    for name in bank.names:
        (grams,) = bank.linear(name)
        assert {(c.p, c.spectrum) for c in grams} == points


def test_rows_that_need_a_dimension_have_one_where_spectra_alone_are_asked_for():
    bank = bank_of(spectrum=[0.25])
    settings = Settings(methods=["nearest", "dcc"], spectrum=[0.25])
    rows = [*evaluate(bank, LABEL, None, PARTS, settings)]
    assert [row.failed for row in rows] == [None] * 3
    assert rows[0].chosen == {"recipe": "plain", "spectrum": 0.25}
    assert rows[-1].method.name == "DCC" and rows[-1].chosen["p"] >= 1


def test_a_recipe_that_a_set_cannot_have_is_left_out_and_named(capsys):
    bank = bank_of()
    bank.recipes = recipes_of(PLAIN, (5,), [24], ["raw"], [False], [1, 30])
    fill(bank, [ranking_of(bank)], [*methods(bank, 0, Settings())])
    assert bank.names == ["plain"] and list(bank.absent) == ["stack 30"]
    assert "recipe stack 30 left out: 0: n_blocks must" in capsys.readouterr().err


def test_rows_on_single_candidates_take_those_that_are_summed():
    bank = bank_of()
    settings = Settings(methods=["nearest", "gda"], baselines=True)
    rows = [*evaluate(bank, LABEL, None, PARTS, settings)]
    usual = rows[0]
    gda = rows[-1]
    assert usual.method.name == "nearest subspace" and gda.failed is None
    assert usual.inner.candidates == [Candidate("plain", usual.chosen["p"])]
    (candidate,) = gda.inner.candidates
    assert candidate.recipe == gda.chosen["recipe"]
    (summed,) = (row.inner for row in rows if row.method.name == "nearest")
    assert summed.accuracies == sorted(summed.accuracies, reverse=True)


def test_a_first_look_searches_nothing_and_draws_evenly(monkeypatch):
    monkeypatch.setattr(evaluation, "LOOK", 18)
    bank = bank_of(noise=0.2)
    look = first_look(bank, [PARTS], Settings())
    (pair,) = look.pairs
    assert [*map(len, pair)] == [12, 6]
    for part, whole in zip(pair, PARTS):
        assert {*part} <= {*whole} and np.bincount(LABEL[part]).tolist() == [
            len(part) // 3
        ] * 3
    shown = [
        name
        for name, row in ROWS.items()
        if row.reads in FEATURES or (row.reads, row.among) == ("gram", "sum")
    ]
    assert look.n_done == 0 and [*look.results] == shown and not bank.grams
    for name, (split,) in look.results.items():
        assert split["chosen"] == {} and len(split["predicted"]) == 6, name
    (split,) = look.results["gSC"]
    assert split["accuracy"] > 80


@pytest.mark.parametrize("n_high, is_said", [(9, False), (10, True)])
def test_ten_candidates_that_are_nearly_always_right_are_said(
    monkeypatch, capsys, n_high, is_said
):
    def judge(ranking, candidate, K):
        ranking.accuracy[candidate] = 1.0 if len(ranking.accuracy) < n_high else 0.5

    monkeypatch.setattr(Ranking, "judge", judge)
    bank = bank_of()
    fill(bank, [ranking_of(bank)], [*methods(bank, 0, Settings())])
    said = "which hardly tells them apart" in capsys.readouterr().err
    assert said == is_said


def test_a_first_look_tests_as_many_classes_as_a_split_does():
    """Where persons are left out, the first may have a class alone."""
    train, test = PARTS
    alone = test[LABEL[test] == 0]
    pairs = [(np.setdiff1d(np.arange(len(LABEL)), alone), alone), PARTS]
    look = first_look(bank_of(), pairs, Settings(methods=["gSC"]))
    assert np.array_equal(look.pairs[0][1], test)


def test_a_first_look_at_all_sets_answers_in_the_order_of_the_split():
    """Random splits are in no order; rows that are done stand beside those of the look."""
    order = np.random.default_rng(0).permutation(12)
    (train, test) = PARTS
    look = first_look(bank_of(noise=0.2), [(train, test[order])], Settings())
    assert np.array_equal(look.pairs[0][1], test[order])
    (split,) = look.results["gSC"]
    right = split["predicted"] == LABEL[test[order]]
    assert 100 * right.mean() == split["accuracy"] > 80


def test_dimensions_above_the_rank_of_a_set_are_left_out():
    bank = bank_of(p=[2, 5, 9])
    assert bank.dimensions(5) == [2, 5]
    (grams,) = bank.linear("plain")
    assert {c.p for c in grams} == {2, 5}
    with pytest.raises(
        ValueError, match="--p must hold a dimension up to 1, .* got .2, 5"
    ):
        bank.dimensions(1)


def test_rows_read_the_usual_candidate_one_within_chance_or_the_sum_of_these():
    bank = bank_of()
    settings = Settings(methods=["nearest", "gda"], kernels=False)
    split = evaluation.split_of(bank, LABEL, None, *PARTS, settings)
    (bank.grams,) = bank.linear("plain")
    best = [c for c in bank.grams if c.spectrum]
    split.ranking.accuracy = {c: 0.9 if c in best else 0.1 for c in bank.grams}
    split.ranking.nearest = {c: float(c.p == 2) for c in bank.grams}
    usual, summed, single = (
        attempt(method, split)
        for method in evaluation.rows_of(bank, split.smallest, settings)
        if method.name in ("nearest subspace", "nearest", "GDA")
    )
    assert usual.inner.candidates == [Candidate("plain", 2)] and len(best) == 4
    assert summed.inner.candidates == best and summed.chosen["candidates"] == 4
    assert {*single.inner.candidates} <= {*best} and len(single.inner.candidates) == 1


def test_rows_without_a_kernel_sum_linear_candidates_and_the_others_gaussian_ones_too():
    bank = bank_of()
    split = evaluation.split_of(bank, LABEL, None, *PARTS, Settings())
    for grams in [*bank.linear("plain"), *bank.gaussian("plain")]:
        bank.grams |= grams
    split.ranking.accuracy = dict.fromkeys(bank.grams, 0.9)
    linear = {candidate for candidate in bank.grams if candidate.kernel is None}
    assert linear < bank.grams.keys()
    rows = {m.name: m for m in evaluation.rows_of(bank, split.smallest, Settings())}
    for name, candidates in (("gLC", linear), ("kgLC", bank.grams.keys())):
        row = attempt(rows[name], split)
        assert {*row.inner.candidates} == candidates
        assert row.chosen["candidates"] == len(candidates)


def test_hulls_and_machines_on_frames_take_the_best_recipe_that_keeps_the_mean():
    bank = bank_of()
    words = "frames,mean,affine,convex,dcc".split(",")
    settings = Settings(methods=words, kernels=False)
    split = evaluation.split_of(bank, LABEL, None, *PARTS, settings)
    for name in bank.names:
        for grams in bank.linear(name):
            bank.grams |= grams
    best = {"stack 4": 0.5, "centred, stack 4": 0.9}
    split.ranking.accuracy = {c: best.get(c.recipe, 0.1) for c in bank.grams}
    recipes = {}
    for method in evaluation.rows_of(bank, split.smallest, settings):
        recipes[method.name] = attempt(method, split).chosen.get("recipe")
    assert recipes.pop("DCC") == "centred, stack 4"
    for name in ("frames: SVM", "affine hulls", "convex hulls"):
        assert recipes.pop(name) == "stack 4"
    assert len(recipes) == 2
    assert not any(bank.recipes[name].center for name in recipes.values())


def test_a_row_is_whitened_where_what_varies_within_classes_is_in_its_way():
    """Each set is its class and, stronger, a point of a space that no class has."""
    bank = bank_of()
    split = evaluation.split_of(bank, LABEL, None, *PARTS, Settings())
    rng = np.random.default_rng(0)
    rows = np.column_stack([np.eye(3)[LABEL], 2 * rng.standard_normal((36, 5))])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    inner = InnerProduct([Candidate("plain", 2)], bank.recipes, [0.5])
    split.shared[True] = inner, rows @ rows.T, {}
    settings = Settings(methods=["nearest"], kernels=False)
    _, method = evaluation.rows_of(bank, split.smallest, settings)
    row = attempt(method, split)
    assert "shrinkage" in row.chosen and row.score > 0.9
    split = split._replace(shrinkage=[None])
    assert attempt(method, split).score < 0.7


def test_everything_is_chosen_on_few_sets_evenly_of_all_classes(monkeypatch):
    """The first of the repeated folds serves rows that take long."""
    monkeypatch.setattr("grassmann_classify.splits.MOST_REPEATS", 2)
    train = np.arange(12, 36)
    split = evaluation.split_of(
        bank_of(), LABEL, None, train, np.arange(12), Settings()
    )
    tested = np.concatenate([validate for _, validate in split.once])
    assert sorted(tested) == train.tolist() and len(split.folds) > len(split.once)
    monkeypatch.setattr(evaluation, "MOST_TO_CHOOSE", 12)
    split = evaluation.split_of(
        bank_of(), LABEL, None, train, np.arange(12), Settings()
    )
    few = np.unique(np.concatenate([np.concatenate(fold) for fold in split.folds]))
    assert np.bincount(LABEL[few]).tolist() == [4, 4, 4]
    assert {*few} <= {*train} and split.train.tolist() == train.tolist()
    assert split.ranking.n == 12
    monkeypatch.setattr(evaluation, "MOST_TO_CHOOSE", 4)  # of fewer classes
    split = evaluation.split_of(
        bank_of(), LABEL, None, train, np.arange(12), Settings()
    )
    few = np.unique(np.concatenate([np.concatenate(fold) for fold in split.folds]))
    assert np.bincount(LABEL[few]).tolist() == [2, 0, 2]


def test_what_was_whitened_serves_the_same_sets_and_shrinkage_alone():
    grams = candidates_of(bank_of())
    K = mean_of(grams.values(), len(grams))
    made = {}
    validate = np.arange(24, 36)
    for fit in (np.arange(24), np.arange(12), np.arange(24)):
        for shrinkage in SHRINKAGE:
            parts = Whitened(K, LABEL, shrinkage, made).parts(fit, validate)
            alone = Whitened(K, LABEL, shrinkage, {}).parts(fit, validate)
            for A, B in zip(parts, alone, strict=True):
                np.testing.assert_array_equal(A, B)


def test_a_fold_is_whitened_by_the_labels_of_its_sets_to_learn_from():
    (K,) = (K.astype(float) for K in next(bank_of(p=[2]).linear("plain")).values())
    label = RNG.permutation(LABEL)
    fit, validate = np.split(RNG.permutation(36), [25])
    whitening = discriminative.Whitening(K[np.ix_(fit, fit)], label[fit], 0.1)
    K_xd = whitening.transform(K[np.ix_(validate, fit)], K.diagonal()[validate])
    parts = Whitened(K, label, 0.1, {}).parts(fit, validate)
    for A, B in zip(parts, (whitening.K_dd, K_xd)):
        np.testing.assert_allclose(A, B, atol=1e-9)


def test_matrices_have_one_on_the_diagonal_and_nothing_above():
    """Of sets that are equal but for rounding, which would seem not to be semidefinite."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 40)).astype(np.float32)
    sets = [rows[rng.permutation(12)] for _ in range(30)]
    clips = [Clip(f"{i}", i % 2, None, [A]) for i, A in enumerate(sets)]
    recipe = Recipe(24, fewer=True, single=True)
    bank = Bank(build_all(clips, recipe), settings=Settings(p=[2]))
    grams = [
        K
        for part in (bank.linear(None), bank.gaussian(None))
        for p in part
        for K in p.values()
    ]
    for K in [*grams, mean_of(grams, len(grams))]:
        assert (K.diagonal() == 1).all() and np.abs(K).max() == 1
        np.testing.assert_allclose(K, 1, atol=1e-5)
    K = np.array(
        [[1 - 1e-7, 1 + 3e-7, 0.5], [1 + 3e-7, 1 + 1e-7, -1.1], [0.5, -1.1, 1]]
    )
    expected = [[1, 1, 0.5], [1, 1, -1], [0.5, -1, 1]]
    np.testing.assert_array_equal(with_unit_diagonal(K), expected)
