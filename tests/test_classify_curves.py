"""Accuracy against the number of clips, the dimension and the spectrum."""

from types import SimpleNamespace

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_classify import curves
from grassmann_classify.curves import (
    best_of,
    candidate_of,
    first_of_each_class,
    learning_curve,
    tried,
)
from grassmann_classify.rows import estimator_of
from grassmann_classify.search import scores_along
from grassmann_sc import tuning


def noisy_subspaces(n=48, n_classes=3, seed=0):
    """Sets of three classes that more labelled ones tell apart better; their classes."""
    rng = np.random.default_rng(seed)
    centres = core.random_subspaces(n_classes, 20, 2, rng=rng)
    label = np.arange(n) % n_classes
    X = np.linalg.qr(centres[label] + 0.45 * rng.standard_normal((n, 20, 2)))[0]
    return X, label


@pytest.fixture
def inputs():
    X, _ = noisy_subspaces()
    gram = {(None, 2): core.projection_kernel(X)}
    return SimpleNamespace(gram=gram, make=lambda recipe: None)


def test_the_curve_ends_with_what_the_row_answers_with_all_clips(inputs):
    """It rises, and its last point is the accuracy of the split."""
    _, label = noisy_subspaces()
    train = np.arange(0, 36)
    test = np.arange(36, 48)
    K = inputs.gram[None, 2]
    chosen = {"p": 2, "n_neighbors": 5, "rule": "sum"}
    name = "gLC, labelled sets as atoms"
    found = learning_curve(inputs, name, chosen, label, (train, test))
    assert [*found] == [1, 2, 4, 8, 12]
    fitted = estimator_of(name).set_params(n_neighbors=5, rule="sum")
    fitted.fit(K[np.ix_(train, train)], label[train])
    right = np.mean(fitted.predict(K[np.ix_(test, train)]) == label[test])
    assert found[12] == [100 * right]
    assert np.mean(found[1]) < np.mean(found[8]) <= 100
    assert {len(found[size]) for size in (1, 2, 4, 8)} <= {curves.DRAWS}
    again = learning_curve(inputs, name, chosen, label, (train, test))
    assert again == found


def test_a_class_gives_its_first_sets_or_all_that_it_has():
    label = np.array([*"aababbbc"])
    order = np.array([7, 6, 5, 4, 3, 2, 1, 0])
    assert first_of_each_class(order, label, 1).tolist() == [3, 6, 7]
    assert first_of_each_class(order, label, 3).tolist() == [0, 1, 3, 4, 5, 6, 7]
    assert first_of_each_class(order[:4], label, 5).tolist() == [4, 5, 6, 7]


def split_of(accuracy, failed=None, **more):
    return {"accuracy": accuracy, "failed": failed, "tried": {}, **more}


def test_the_curve_is_that_of_the_best_row_that_learns_from_a_matrix_or_features():
    rows = {
        "vote of the coding methods": [split_of(99.0)],
        "gSC, 4 learned atoms, ridge": [split_of(98.0)],
        "gSC, labelled sets as atoms": [split_of(90.0)],
        "mean frame: SVM": [split_of(95.0)],
        "nearest subspace": [split_of(np.nan, "no rank")],
    }
    assert best_of(rows) == "mean frame: SVM"
    assert best_of({"DCC": [split_of(90.0)]}) is None


def test_only_values_that_half_of_the_splits_tried_are_shown():
    found = [
        split_of(
            90.0, tried={"p": {1: 80.0, 2: 90.0, 3: 70.0}, "spectrum": {0.5: 60.0}}
        ),
        split_of(90.0, tried={"p": {1: 82.0, 2: 91.0}, "spectrum": {0.5: 61.0}}),
        split_of(90.0, tried={"p": {1: 81.0, 2: 92.0}, "spectrum": {0.5: 62.0}}),
        split_of(np.nan, "no rank"),
    ]
    rows = {"gSC, labelled sets as atoms": found, "DCC": [split_of(80.0)] * 4}
    assert tried(rows, "p") == {"gSC": {1: [80.0, 82.0, 81.0], 2: [90.0, 91.0, 92.0]}}
    assert tried(rows, "spectrum") == {}  # one value is no curve


def test_what_was_tried_is_the_best_of_the_other_settings_on_the_folds_seen():
    X, label = noisy_subspaces()
    few = core.projection_kernel(X[:, :, :1])
    both = core.projection_kernel(X)
    folds = [(np.arange(24), np.arange(24, 48)), (np.arange(24, 48), np.arange(24))]
    predict = tuning.local_predictions([1, 5], ["sum"])
    searched = tuning.Search(label, folds, predict)
    grams = {(None, "linear", 1): few, (None, "linear", 2): both}
    choice = searched.choose(grams)
    found = scores_along(choice, grams, searched)
    assert [*found["p"]] == [1, 2] and found["spectrum"] == {}
    for p, K in ((1, few), (2, both)):
        shares = {}
        n_folds = len(
            searched.right((None, "linear", p))[("n_neighbors", 5), ("rule", "sum")]
        )
        for fit, asked in folds[: n_folds // 24]:
            answers = predict(K[np.ix_(fit, fit)], K[np.ix_(asked, fit)], label[fit])
            for what, labels in answers.items():
                shares.setdefault(what, []).extend(labels == label[asked])
        best = max(np.mean(right) for right in shares.values())
        assert found["p"][p] == pytest.approx(100 * best)
    assert searched.right((None, "linear", 3)) == {}


def test_a_row_learns_from_what_it_chose():
    inputs = SimpleNamespace(
        gram={},
        weighted_gram=lambda *key: ("weighted", *key),
        make=lambda recipe: inputs.gram.update({(recipe, 3): "matrix"}),
    )
    name = "gSC, labelled sets as atoms"
    assert candidate_of(inputs, name, {"recipe": "raw", "p": 3}) == "matrix"
    found = candidate_of(inputs, name, {"recipe": "raw", "spectrum": 0.25})
    assert found == ("weighted", "raw", 0.25)
