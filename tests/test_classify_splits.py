"""Random splits, folds, and what a split cannot judge."""

import numpy as np
import pytest

from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.evaluation import evaluate
from grassmann_classify.folds import folds
from grassmann_classify.model import build_all, inputs_for
from grassmann_classify.rows import methods
from grassmann_classify.settings import Settings
from grassmann_classify.splits import split_at_random, strangers


@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.8, 0.999])
def test_each_class_is_on_both_sides_whatever_the_share(share):
    label = np.repeat(["a", "b", "c"], [4, 5, 9])
    for train, test in split_at_random(label, share, 5, seed=1):
        assert sorted([*train, *test]) == [*range(18)]
        assert {*label[train]} == {*label[test]} == {"a", "b", "c"}


def test_so_many_clips_of_each_class_leave_one_to_test():
    label = np.repeat(["a", "b"], [3, 5])
    ((train, test),) = split_at_random(label, 2, 1, seed=0)
    assert np.unique(label[train], return_counts=True)[1].tolist() == [2, 2]
    assert np.unique(label[test], return_counts=True)[1].tolist() == [1, 3]
    with pytest.raises(
        ValueError, match="--train 3 needs 4 clips of each class, a has 3"
    ):
        split_at_random(label, 3, 1, seed=0)


def test_classes_that_are_tested_and_not_trained_are_strangers():
    label = np.array([*"aabbcd"])
    pairs = [([0, 2], [1, 3]), ([0, 2], [1, 4]), ([0, 2, 5], [3, 4])]
    assert strangers(label, pairs) == [
        "class c has clips to test and none to train in 2 of 3 splits: no answer there "
        "can be right"
    ]


@pytest.mark.parametrize("counts, n", [([2, 9], 2), ([4, 9], 4), ([9, 9], 5)])
def test_there_are_as_many_folds_as_sets_of_the_smallest_class(counts, n):
    """At least 2 and at most 5, each repeated with a seed of its own."""
    y = np.repeat([0, 1], counts)
    pairs = folds(y, None, 0, repeats=3)
    assert len(pairs) == 3 * n
    tested = np.sort(np.concatenate([test for _, test in pairs]))
    assert tested.tolist() == np.repeat(np.arange(len(y)), 3).tolist()
    of_repeat = [
        str(sorted(map(tuple, (t for _, t in pairs[i::1][:n])))) for i in (0, n)
    ]
    assert len({*of_repeat}) == 2


def test_more_neighbours_than_clips_to_train_are_all_of_them():
    rng = np.random.default_rng(0)
    clips = [
        Clip(f"{i}", i % 2, None, [rng.random((3, 9)) + np.eye(1, 9, i % 2)])
        for i in range(12)
    ]
    collection = build_all(clips, Recipe(1), keep_rows=True)
    settings = Settings(methods=["glc"], kernels=False, p=[1], neighbors=[40])
    inputs = inputs_for(collection, Recipe(1), settings)
    parts = np.arange(8), np.arange(8, 12)
    rows = evaluate(inputs, collection.label, None, *parts, methods, settings)
    (row, *_) = [row for row in rows if row.method.name.startswith("gLC")]
    assert row.failed is None and row.estimator.n_neighbors == 8
