"""The best row that codes answers, by reasons of the right clips, and rules out classes."""

import csv
import re
import shutil
from fractions import Fraction

import numpy as np
import pytest
from sklearn.svm import SVC

import grassmann_sc as core
from grassmann_classify import Recipe, Settings, fit, load, predict
from grassmann_classify.__main__ import main
from grassmann_classify.bank import Bank
from grassmann_classify.clips import Collection
from grassmann_classify.evaluation import run_splits
from grassmann_classify.learning import build_new, clips_of
from grassmann_classify.model import Answers, possible_classes
from grassmann_classify.words import (
    BECAUSE,
    UNLIKE,
    UNUSUAL,
    explained,
    labelled,
    reasons_for,
)
from grassmann_sc import calibration, discriminative, estimators

NAMES = np.array(["ape", "bee", "cat"])
PLACE = np.random.default_rng(1).permutation(np.arange(27) % 3)
CODING = ["gSC", "gLC", "kgSC", "kgLC"]


def noisy(place, d=12, noise=0.5, seed=0):
    """Sets of six frames in R^12 near a plane of their class."""
    rng = np.random.default_rng(seed)
    planes = rng.standard_normal((3, 2, d))
    return [
        rng.standard_normal((6, 2)) @ planes[c] + noise * rng.standard_normal((6, d))
        for c in place
    ]


def rings(place, seed=0):
    """Sets of six frames near circles in one plane of R^4: the radius is that of a class."""
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, (len(place), 6))
    circles = np.stack([np.cos(angles), np.sin(angles), 0 * angles, 0 * angles], -1)
    radii = np.array([1.0, 2.5, 4.0])[place]
    return [
        *(radii[:, None, None] * circles + 0.3 * rng.standard_normal(circles.shape))
    ]


SETS = noisy(PLACE)
RINGS = rings(PLACE)
LABELLED = np.arange(15)
NEW = np.arange(15, 27)


def sets_for(name):
    """For rows in a kernel's space sets that no subspace of the frames' own tells apart."""
    return RINGS if "kernel" in name or name[0] == "k" else SETS


def fitted(name, some=LABELLED, sets=None, **more):
    sets = sets_for(name) if sets is None else sets
    usual = {"p": [2], "lam": [0.01], "neighbors": [7], "C": [1.0]}
    chosen = [sets[i] for i in some], NAMES[PLACE[some]]
    recipe = Recipe(2, fewer=True)
    return fit(
        *chosen, recipe=recipe, settings=Settings(methods=[name], **usual | more)
    )


# ------------------------------------------------------------------------- which row


def test_the_best_row_that_codes_answers_and_another_only_if_it_is_named(capsys):
    sets = noisy(PLACE, noise=0.01)
    labels = NAMES[PLACE]
    usual = {"p": [2], "lam": [0.1], "neighbors": [3], "C": [1.0], "kernels": False}
    best = fit(sets, labels, settings=Settings(**usual))
    assert best.codes and best.score == 1
    capsys.readouterr()
    named = fit(sets, labels, settings=Settings(methods=["mean"], **usual))
    assert named.method.startswith("mean") and not named.codes
    result = predict(named, sets[:3])
    assert result.labels.tolist() == labels[:3].tolist()
    assert result.p_values is result.p_any is result.because is result.reasons is None
    assert possible_classes(result, 0.9)[0] == [[]] * 3


def test_a_row_that_does_not_code_and_is_better_than_chance_explains_is_said(capsys):
    """The frames lie everywhere; their mean tells the class."""
    rng = np.random.default_rng(0)
    label = np.arange(60) % 3
    sets = [
        np.hstack([np.eye(3)[[c] * 6], 9 * rng.standard_normal((6, 40))]) for c in label
    ]
    usual = {"p": [2], "lam": [0.1], "neighbors": [3], "C": [1.0], "kernels": False}
    how = {"recipe": Recipe(2), "settings": Settings(**usual)}
    model = fit(sets, NAMES[label], **how, verbose=True)
    printed = capsys.readouterr().err
    assert model.codes
    pattern = (
        r"is right more often than .* by more than chance explains, ([\d.]+) % and "
    )
    first, second = re.search(pattern + r"([\d.]+) %, but gives no", printed).groups()
    assert float(first) > float(second) == round(100 * model.score, 1)


def test_a_silent_fit_evaluates_rows_that_can_answer_alone(monkeypatch):
    """Nobody would read how the others do."""
    machines = []
    learn = SVC.fit
    monkeypatch.setattr(
        SVC, "fit", lambda svc, *args: machines.append(svc) or learn(svc, *args)
    )
    usual = {"p": [2], "C": [1.0], "kernels": False}
    models = []
    for verbose in (False, True):
        settings = Settings(**usual)
        models.append(fit(SETS, NAMES[PLACE], settings=settings, verbose=verbose))
        assert bool(machines) == verbose
    silent, verbose = models
    assert silent.chosen == verbose.chosen and silent.score == verbose.score
    machines.clear()
    settings = Settings(methods=["svm"], **usual)
    assert not fit(SETS, NAMES[PLACE], settings=settings).codes and machines


# ------------------------------------------------------------------------ by definition


def shares_of(codes, K_dd, K_xd, index, rule):
    """{(query, atom): share} of the atoms in the codes, by the definition."""
    shares = {}
    for i, y in enumerate(codes):
        for j in np.flatnonzero(y):
            mine = [m for m in range(len(y)) if index[m] == index[j]]
            if rule == "residual":
                inner = sum(K_dd[j, m] * y[m] for m in mine)
                shares[i, j] = y[j] * (2 * K_xd[i, j] - inner)
            elif rule == "sum" or y[j] == max(y[m] for m in mine):
                shares[i, j] = y[j]
    return shares


@pytest.mark.parametrize("rule", ["residual", "sum", "max"])
@pytest.mark.parametrize("coding", ["sparse", "local"])
def test_reasons_are_the_largest_positive_shares_of_the_class(coding, rule):
    """By a plain loop, for every class; some shares are negative, some classes have none."""
    X = core.random_subspaces(30, 8, 2, rng=0)
    index = np.arange(18) % 3
    how = {"lam": 0.05, "n_neighbors": 9, "rule": rule, "calibrate": False}
    model = estimators.CodingClassifier(coding, **how).fit(X[:18], index)
    K_dd = core.projection_kernel(X[:18])
    K_xd = core.projection_kernel(X[18:], X[:18])
    by_hand = shares_of(model.transform(X[18:]), K_dd, K_xd, index, rule)
    numbers = set()
    for c in range(3):
        rows = reasons_for(model.explain(X[18:]), index, np.full(12, c))
        assert len(rows) == 12
        for i, reasons in enumerate(rows):
            mine = {
                j: share
                for (query, j), share in by_hand.items()
                if query == i and index[j] == c and share > 0
            }
            order = sorted(mine, key=mine.get, reverse=True)[:BECAUSE]
            assert [j for j, _ in reasons] == order
            assert [share for _, share in reasons] == pytest.approx(
                [mine[j] for j in order], rel=1e-9
            )
            numbers.add(len(reasons))
    assert max(numbers) == (1 if rule == "max" else BECAUSE)
    if coding == "local" and rule == "residual":
        assert min(by_hand.values()) < 0 and len(numbers) == 4


def test_no_share_of_nothing_and_none_against_is_a_reason():
    """Nor what fills the rows of other queries up, whose index is -1."""
    shares = core.Shares(
        np.array([[2, 0, 1], [1, -1, -1], [0, 1, 2]]),
        np.array([[0.5, 0.0, -0.2], [0.3, 0.0, 0.0], [1e-300, 1e-301, -1e-300]]),
    )
    reasons = reasons_for(shares, np.zeros(3, int), [0, 0, 0])
    assert reasons == [[(2, 0.5)], [(1, 0.3)], [(0, 1e-300), (1, 1e-301)]]
    assert reasons_for(shares, np.ones(3, int), [0, 0, 0]) == [[], [], []]
    # index -1 is not the last set
    filled = core.Shares(np.array([[-1, -1]]), np.array([[0.7, 0.6]]))
    assert reasons_for(filled, np.zeros(3, int), [0]) == [[]]


def test_words_are_those_of_the_names_and_two_digits():
    names = ["ape/1.avi", "2.avi (ape)", "x"]
    assert explained(names, [(1, 0.456), (0, 0.0123), (2, 1.0)]) == (
        "2.avi (ape) 0.46; ape/1.avi 0.012; x 1"
    )
    assert explained(names, []) == ""
    assert labelled("ape/1.avi", "ape") == "ape/1.avi"
    assert labelled("apes/1.avi", "ape") == "apes/1.avi (ape)"
    assert labelled("set 3", 10) == "set 3 (10)" and labelled("1/x", 1) == "1/x"


# --------------------------------------------------------------------- answers of models


@pytest.mark.parametrize("name", CODING)
def test_what_is_named_beside_an_answer_is_what_speaks_for_its_class(name):
    """For the runner-up likewise; the names are those of sets of these classes."""
    model = fitted(name)
    kernels = [candidate.kernel for candidate in model.inner.candidates]
    assert any(kernels) == (name[0] == "k")
    new = [sets_for(name)[i] for i in NEW]
    result = predict(model, new)
    K_dd = model.estimator.gram_
    clips = clips_of("set", new, [None] * len(new), None)
    K_xd = model.queries(build_new(model, clips))
    codes = model.estimator.transform(K_xd)
    if model.shrinkage is not None:
        whitening = discriminative.Whitening(K_dd, PLACE[LABELLED], model.shrinkage)
        K_dd = whitening.K_dd
        K_xd = whitening.transform(K_xd, 1)
    rule = model.estimator.rule or ("residual" if "gSC" in name else "sum")
    by_hand = shares_of(codes, K_dd, K_xd, PLACE[LABELLED], rule)
    n_others = 0
    for i, (own, other) in enumerate(result.reasons):
        for label, reasons, words in (
            (result.labels[i], own, result.because[i]),
            (result.runner_up[i], other, result.instead[i]),
        ):
            mine = sorted(
                (
                    share
                    for (query, j), share in by_hand.items()
                    if query == i and NAMES[PLACE[j]] == label and share > 0
                ),
                reverse=True,
            )
            assert [share for _, share in reasons] == pytest.approx(mine[:BECAUSE])
            assert all(by_hand[i, j] == pytest.approx(share) for j, share in reasons)
            assert words == "; ".join(
                f"set {j} ({label}) {share:.2g}" for j, share in reasons
            )
        assert result.labels[i] != result.runner_up[i] and own
        n_others += len(other)
    assert n_others > 6 and len(set(result.labels)) == 3


def per_query(result):
    """What is told of each query, and the numbers."""
    words = [result.labels, result.runner_up, result.because, result.instead]
    numbers = [result.scores]
    if result.p_values is not None:
        numbers += [result.p_values, result.p_any[:, None]]
    sets = [[[j for j, _ in pairs] for pairs in both] for both in result.reasons]
    return [*zip(*words, sets)], np.concatenate(numbers, axis=1)


@pytest.mark.parametrize("name", CODING)
def test_queries_in_another_order_or_alone_have_the_same_reasons(name):
    model = fitted(name)
    words, numbers = per_query(predict(model, [sets_for(name)[i] for i in NEW]))
    order = np.random.default_rng(0).permutation(12)
    again, of_again = per_query(predict(model, [sets_for(name)[NEW[k]] for k in order]))
    assert again == [words[k] for k in order] and words != again
    np.testing.assert_allclose(of_again, numbers[order], rtol=1e-9, atol=1e-12)
    for k in (0, 5, 11):
        (alone,), of_one = per_query(predict(model, [sets_for(name)[NEW[k]]]))
        assert alone == words[k]
        np.testing.assert_allclose(of_one[0], numbers[k], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["gSC", "gLC"])
def test_labelled_sets_in_another_order_give_the_same_reasons_by_other_numbers(name):
    new = [sets_for(name)[i] for i in NEW]
    result = predict(fitted(name), new)
    order = np.random.default_rng(0).permutation(15)
    again = predict(fitted(name, some=order), new)
    assert again.labels.tolist() == result.labels.tolist()
    for first, second in zip(result.reasons, again.reasons):
        for pairs, other in zip(first, second):
            expected = [(order[j], pytest.approx(share)) for j, share in other]
            assert pairs == expected


def test_a_set_that_shares_nothing_with_any_has_no_reason_and_is_unlike_all():
    """Between two others, whose reasons are those without it."""
    sets = [np.hstack([rows, np.zeros_like(rows)]) for rows in SETS]
    apart = np.hstack([np.zeros_like(SETS[0]), SETS[0]])
    model = fitted("gSC", sets=sets)
    with pytest.warns(UserWarning, match="zero"):
        result = predict(model, [sets[20], apart, sets[21]])
    assert (
        result.reasons[1] == ([], []) and result.because[1] == result.instead[1] == ""
    )
    words, _ = per_query(predict(model, [sets[20], sets[21]]))
    assert [row for k, row in enumerate(per_query(result)[0]) if k != 1] == words
    assert result.p_any[1] == 1 / 16 and possible_classes(result, 0.9)[1][1]


@pytest.mark.parametrize("name", ["kgSC", "kgLC"])
def test_a_set_without_an_answer_leaves_the_reasons_of_the_others(name):
    """Sets are then answered one by one; one of a frame has no stack of two."""
    stacked = Settings(methods=[name], p=[2], lam=[0.01], neighbors=[7], stack=[2, 3])
    model = fit([RINGS[i] for i in LABELLED], NAMES[PLACE[LABELLED]], settings=stacked)
    assert any(candidate.kernel for candidate in model.inner.candidates)
    new = [RINGS[i] for i in NEW]
    words, numbers = per_query(predict(model, new))
    result = predict(model, [*new[:5], RINGS[0][:1], *new[5:]])
    assert result.names == [f"set {i}" for i in range(13) if i != 5]
    assert [*result.failed] == ["set 5"]
    again, of_again = per_query(result)
    assert again == words
    np.testing.assert_allclose(of_again, numbers, rtol=1e-9, atol=1e-12)


# ---------------------------------------------------------------------- wrong answers


def test_reasons_of_wrong_answers_are_training_sets_of_the_class_that_was_answered():
    """Keyed by the set in the collection; those of rows that do not code are none."""
    X = core.random_subspaces(36, 8, 2, rng=0)
    order = np.random.default_rng(0).permutation(36)
    label = NAMES[order % 3]
    names = [f"{i}" for i in range(36)]
    collection = Collection(X, None, names, label, None, (), np.arange(36))
    settings = Settings(lam=[0.05], neighbors=[6], C=[1.0], kernels=False)
    halves = order[:20], order[20:]
    pairs = [halves, halves[::-1]]
    inputs = Bank(collection)
    *_, progress = run_splits(inputs, pairs, settings)
    for k, (train, test) in enumerate(pairs):
        for name, splits in progress.results.items():
            split = splits[k]
            wrong = {
                int(i): c for i, c in zip(test, split["predicted"]) if c != label[i]
            }
            if "SVM" in name:
                assert split["reasons"] is None
                continue
            assert [*split["reasons"]] == [*wrong] and len(wrong) > 3
            for i, reasons in split["reasons"].items():
                assert len(reasons) <= BECAUSE
                sizes = [share for _, share in reasons]
                assert sizes == sorted(sizes, reverse=True) and min(sizes) > 0
                for j, _ in reasons:
                    assert j in train and label[j] == wrong[i]
                if name.startswith("nearest"):
                    assert len(reasons) == 1


# ------------------------------------------------------------------------- coverage

COVERAGES = ["0.5", "0.7", "0.8", "0.9", "0.95", "0.99", "0.999"]


def answers(p_values, p_any, classes=NAMES):
    p_values = np.array(p_values, float)
    n = len(p_values)
    names = [f"{i}" for i in range(n)]
    labels = np.array(classes)[p_values.argmax(axis=1)]
    p_any = np.array(p_any, float)
    return Answers(
        names, labels, p_values, np.array(classes), {}, labels, p_values, p_any
    )


@pytest.mark.parametrize("coverage", COVERAGES)
def test_a_class_is_out_exactly_up_to_one_less_the_coverage(coverage):
    """p-values k / n as exact fractions, those that equal 1 - coverage among them."""
    level = 1 - Fraction(coverage)
    hit = set()
    for n in [5, 10, 20, 30, 40, 70, 100, 110, 200, 300, 1000]:
        k = np.arange(1, n + 1)
        p = k / n
        out = np.array([Fraction(int(count), n) <= level for count in k])
        hit |= {n for count in k if Fraction(int(count), n) == level}
        result = answers(np.stack([p, np.ones(n), p], axis=1), np.ones(n))
        assert possible_classes(result, float(coverage))[0] == [
            ["bee"] if is_out else ["ape", "bee", "cat"] for is_out in out
        ]
        result = answers(np.stack([p, p], axis=1), np.ones(n), [2, 10])
        assert possible_classes(result, float(coverage))[0] == [
            [] if is_out else [2, 10] for is_out in out
        ]
        result = answers(np.ones((n, 2)), p, [2, 10])
        possible, unlike = possible_classes(result, float(coverage))
        assert possible == [[2, 10]] * n and unlike.tolist() == out.tolist()
    assert hit and (
        coverage != "0.9" or hit >= {10, 20, 30, 40, 70, 100, 110, 200, 300}
    )


def test_which_classes_are_possible_does_not_depend_on_being_unlike_all():
    """Else the right one would be possible for fewer than is promised."""
    p_values = [[0.1, 0.1, 0.05], [0.1, 0.1, 0.05], [1, 1, 1], [0.2, 0.05, 0.11]]
    result = answers(p_values, [0.11, 0.1, 0.1, 0.5])
    possible, unlike = possible_classes(result, 0.9)
    assert possible == [[], [], [*NAMES], ["ape", "cat"]]
    assert unlike.tolist() == [False, True, True, False]
    records = result.records(0.9)
    assert [record["possible"] for record in records] == possible
    assert [record["answer"] is None for record in records] == unlike.tolist()
    without = result._replace(p_values=None, p_any=None)
    possible, unlike = possible_classes(without, 0.9)
    assert possible == [[]] * 4 and not unlike.any()


def test_classes_of_one_set_neither_count_as_wrong_nor_widen_the_possible():
    """Beside them the score and the p-values are those of the classes that can be judged."""
    rng = np.random.default_rng(5)
    once = [rng.standard_normal((6, 12)) for _ in range(8)]
    label = [*NAMES[PLACE].tolist(), *(f"once {k}" for k in range(8))]
    how = {
        "recipe": Recipe(2),
        "settings": Settings(methods=["gSC"], p=[2], lam=[0.1], kernels=False),
    }
    few = fit(SETS, label[:27], **how)
    model = fit(SETS + once, label, **how)
    assert model.score >= few.score - 0.1 > 0.7
    assert np.isnan(model.left_out[:, 27:]).all()
    assert not np.isnan(model.left_out[:, :27]).any()
    new = noisy(np.arange(60) % 3, seed=7)
    new = [rows + 0.5 * rng.standard_normal((6, 12)) for rows in new]
    result = predict(model, new)
    possible, _ = possible_classes(result, 0.9)
    alike, _ = possible_classes(predict(few, new), 0.9)
    assert np.mean([*map(len, possible)]) < 1 + np.mean([*map(len, alike)])
    counts = result.p_values * 28  # of 27 that are judged, and the new one
    assert np.allclose(counts, counts.round())


@pytest.mark.parametrize("n, coverage", [(9, 0.9), (19, 0.95), (4, 0.8), (99, 0.99)])
def test_so_many_labelled_sets_can_rule_out_a_class_and_one_less_cannot(n, coverage):
    """The least p-value is 1 / (n + 1), one less the coverage."""
    ruled_out = []
    for N in (n, n - 1):
        own = np.where(np.arange(2) == (np.arange(N) % 2)[:, None], 1.0, 0.0)
        p = calibration.p_values(
            own, np.arange(N) % 2, [[1, 0], [0, 2], [1, 1], [0, 0]]
        )
        result = answers(p.classes, p.known, ["ape", "bee"])
        possible, unlike = possible_classes(result, coverage)
        ruled_out.append((possible, unlike.tolist()))
    assert ruled_out == [
        ([["ape"], ["bee"], [], []], [False, False, False, True]),
        ([["ape", "bee"]] * 4, [False] * 4),
    ]


# -------------------------------------------------------------------------- the command


def page_cells(page, names):
    """{name: {column: cell}} of a page's tables, which leave out empty columns."""
    cells = {}
    columns = []
    for row in re.findall(r"<tr>(.*?)</tr>", page):
        columns = re.findall(r"<th.*?>(.*?)</th>", row) or columns
        values = re.findall(r"<td.*?>(.*?)</td>", row)
        if values and values[0] in names:
            cells[values[0]] = dict(zip(columns, values))
    return cells


def test_another_coverage_rules_out_what_the_p_values_of_the_model_say(
    tmp_path, capsys
):
    """In the file, on the page, and in the line of each clip that is printed."""
    place = np.concatenate([PLACE[LABELLED], PLACE[NEW]])
    sets = noisy(place, noise=0.7, seed=3)
    stranger = np.random.default_rng(9).standard_normal((6, 12))
    for folder in ("new", *(f"data/{name}" for name in NAMES)):
        (tmp_path / folder).mkdir(parents=True)
    for i in LABELLED:
        np.save(tmp_path / "data" / NAMES[PLACE[i]] / f"{i}.npy", sets[i])
    new = {f"{40 - i}.npy": sets[i] for i in NEW} | {"50.npy": stranger}
    for name, rows in new.items():
        np.save(tmp_path / "new" / name, rows)
    kept = tmp_path / "model.npz"
    out = ["--out", str(tmp_path / "out"), "--no-pictures"]
    learn = ["--methods", "gsc", "--p", "2", "--lam", "0.01", "--recipe", "plain"]
    data = ["--data", str(tmp_path / "data"), "--save", str(kept)]

    def rows_of(coverage, *how):
        options = [] if coverage is None else ["--coverage", coverage]
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        main(["predict", str(tmp_path / "new"), *how, *options, *out])
        with open(
            tmp_path / "out" / "predictions.csv", newline="", encoding="utf-8"
        ) as file:
            return [*csv.DictReader(file)]

    first = rows_of("0.8", *data, *learn)
    model = load(kept)
    names = sorted(new)
    result = predict(model, [new[name] for name in names])
    by_coverage = {}
    for coverage in (None, "0.5", "0.75", "0.8", "0.875", "0.9", "0.99"):
        capsys.readouterr()
        rows = rows_of(coverage, "--model", str(kept))
        printed = capsys.readouterr().out
        level = 1 - Fraction(coverage or "0.9")
        expected = []
        for p, p_any in zip(result.p_values, result.p_any):
            possible = [
                c for c, p_value in zip(NAMES, p) if round(p_value * 16) > 16 * level
            ]
            is_unlike = round(p_any * 16) <= 16 * level
            expected.append((is_unlike, "; ".join(possible)))
        page = (tmp_path / "out" / "report.html").read_text()
        share = f"{100 * float(1 - Fraction(coverage or '0.9')):g} %"
        assert f"At most {share} of clips of these classes are called" in page
        noticed = model.estimator.noticed(
            float(coverage or 0.9), left_out=model.left_out
        )
        assert (
            f"and {100 * noticed:.0f} % of clips of an unknown class (measured" in page
        )
        first_line, _, *lines = printed.splitlines()
        right = f"gSC: {100 * model.score:.1f} % right in cross-validation"
        assert first_line == right and len(lines) == len(rows) == 13
        cells = page_cells(page, names)
        for row, (is_unlike, words), name, line, label, because in zip(
            rows, expected, names, lines, result.labels, result.because
        ):
            answer = "" if is_unlike else label
            assert [row["clip"], row["answer"]] == [name, answer]
            assert row["nearest class"] == label and row["because"] == because
            assert row["possible"] == words
            share = f"{float(row[f'probability {label}']):.2f}"
            others = [c for c in row["possible"].split("; ") if c and c != label]
            also = "any class" if len(others) == 2 else "; ".join(others)
            shown = [label, share, also if words else UNUSUAL]
            shown = [UNLIKE, "", ""] if is_unlike else shown
            columns = "answer", "probability", "also possible"
            seen_there = [cells[name].get(column, "") for column in columns]
            assert seen_there == [cell.replace("; ", "<br>") for cell in shown]
            assert because.split("; ")[0].rpartition(" ")[0].split("/")[1] in line
            assert [*filter(None, re.split("  +", line))] == [
                name,
                *filter(None, shown),
                because.split("; ")[0].rpartition(" ")[0],
            ]
        by_coverage[coverage or "default"] = expected
    assert (
        by_coverage["default"] == by_coverage["0.9"]
        and len({str(table) for table in by_coverage.values()}) >= 4
    )
    assert [row["possible"] for row in first] == [
        words for _, words in by_coverage["0.8"]
    ]
    for row, reasons in zip(first, result.reasons):
        near = [words.rpartition(" ")[0] for words in row["because"].split("; ")]
        assert near == [model.names[j] for j, _ in reasons[0]]
        assert all(reason.startswith(f"{row['nearest class']}/") for reason in near)


def test_add_says_how_many_of_its_sets_are_right_now(tmp_path, capsys):
    place = np.arange(30) % 3
    sets = noisy(place, noise=2.0)
    labels = NAMES[place]
    labels[24:27] = labels[25:28]  # wrong ones
    for i, (rows, label) in enumerate(zip(sets, labels)):
        for part in ["data"] * (i < 18) + ["more"] * (i >= 18):
            (tmp_path / part / label).mkdir(parents=True, exist_ok=True)
            np.save(tmp_path / part / label / f"{i}.npy", rows)
    data = ["--data", str(tmp_path / "data"), "--save", str(tmp_path / "m.npz")]
    fixed = ["--methods", "gsc", "--recipe", "plain", "--p", "2", "--no-kernels"]
    out = ["--out", str(tmp_path / "out")]
    main(["predict", *data, *fixed, *out])
    capsys.readouterr()
    kept = ["--model", str(tmp_path / "m.npz"), "--save", str(tmp_path / "n.npz")]
    main(["add", str(tmp_path / "more"), *kept, *out])
    model = load(tmp_path / "n.npz")
    scores = model.estimator.left_out_scores()[0]
    right = (scores.argmax(axis=1) == model.estimator.index_).sum()
    assert 10 < right < 30
    words = f"of its 30 sets now, each coded over others, {100 * right / 30:.1f} % are"
    assert words in capsys.readouterr().out
