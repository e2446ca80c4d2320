"""Splits of files, by groups and at random; folds, and what a split cannot judge."""

import numpy as np
import pytest

from grassmann_classify import evaluation
from grassmann_classify.bank import Bank
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, clip_names
from grassmann_classify.inputs import inputs_for
from grassmann_classify.settings import Paths, Recipe, Settings
from grassmann_classify.splits import (
    folds,
    folds_of_split,
    kept_together,
    parts_of_file,
    say_kept_together,
    split_at_random,
    split_by_group,
    split_by_parts,
    splits_of,
    strangers,
)
from grassmann_sc import tuning


def runs(n_clips=8, n_runs=3):
    """A Collection of clips of two classes, each cut into sets; names contain a #."""
    rng = np.random.default_rng(0)
    clips = [
        Clip(
            f"{'ab'[i % 2]}/c#{i}", "ab"[i % 2], None, [rng.random((4 * n_runs, 5, 6))]
        )
        for i in range(n_clips)
    ]
    return build_all(clips, Recipe(p=2, window=4))


def kept_of(collection, split):
    clip = np.array(clip_names(collection.names, collection.clip))
    return kept_together(collection.label, collection.group, clip, split)


def test_a_file_of_splits_names_clips_whose_sets_stay_together(tmp_path):
    collection = runs()
    path = tmp_path / "splits.csv"

    def pairs_of(*lines, unusable=()):
        path.write_text("\n".join(["clip,s", *lines]))
        whole = [*clip_names(collection.names, collection.clip), *unusable]
        return split_by_parts(
            parts_of_file(path, whole), collection.names, collection.clip
        )

    ((train, test),) = pairs_of("b/c#1,train", "a/c#0,train", "a/c#2,test")
    assert train.tolist() == [0, 1, 2, 3, 4, 5] and test.tolist() == [6, 7, 8]
    with pytest.raises(
        ValueError, match="there and have a label, got b/w in line 3, a/c#0#1 in line 4"
    ):
        pairs_of("a/c#0,train", "b/w,test", "a/c#0#1,train")
    pairs_of(
        "a/c#0,train", "b/c#1,test", "b/x,train", "b/y,test", unusable=["b/x", "b/y"]
    )
    with pytest.raises(
        ValueError, match="split 's' must have clips .*, got 3 and 0 that"
    ):
        pairs_of("a/c#0,train", "b/y,test", unusable=["b/y"])


def test_the_sets_of_a_clip_are_on_one_side_of_splits_and_folds():
    collection = runs()
    pairs, _ = splits_of(Settings(), Paths(), collection, None)
    for split in pairs:
        assert sorted([*split.train, *split.test]) == list(range(24))
        assert not np.intersect1d(*(collection.clip[part] for part in split)).size
        of_set, notes = kept_of(collection, split)
        assert not notes
        for fit, validate in folds(
            collection.label[split.train], of_set[split.train], 0, 2
        ):
            clip = collection.clip[split.train]
            assert not np.intersect1d(clip[fit], clip[validate]).size
    torn = tuning.Split(np.arange(12), np.arange(11, 24, 2))
    of_set, notes = kept_of(collection, torn)
    assert (
        of_set is None
        and "clip b/c#3 has sets in both parts, 1 in all have" in notes[0]
    )


NO_SPLITS = [
    ([], "splits must hold at least one pair .train, test. of indices"),
    ([([0, 1], [2], [3])], "splits must hold at least one pair"),
    ([([0, 1], [])], r"test0 must hold integers \(k,\), at least one"),
    ([([0, 1], [2]), ([0, 1], [2, 4])], "test1 must hold indices in 0..3, got 2 to 4"),
    ([([-1, 1], [2])], "train0 must hold indices in 0..3, got -1 to 1"),
    ([([0, 1, 0], [2])], "train0 must hold no set twice, got set 0 more than once"),
    (
        [([0, 1, 2, 3], [3, 2])],
        "train0 and test0 must not overlap, both hold set 2 and 1 more",
    ),
    (
        [([True, False], [2])],
        r"train0 must hold integers \(k,\), at least one, got bool \(2,\)",
    ),
    (
        [([0.5, 1], [2])],
        r"train0 must hold integers \(k,\), at least one, got float64 \(2,\)",
    ),
]


def test_groups_that_one_split_tears_are_kept_together_in_the_others(capsys):
    collection = runs()._replace(clip=np.arange(24), group=np.repeat(list("pqrs"), 6))
    whole = tuning.Split(np.arange(12), np.arange(12, 24))
    torn = tuning.Split(np.arange(9), np.arange(9, 24))
    alone = tuning.Split(np.arange(6), np.arange(6, 24))
    capsys.readouterr()
    first, *others = say_kept_together(collection, [whole, torn, alone])
    assert first.tolist() == collection.group.tolist() and others == [None, None]
    lines = capsys.readouterr().err.splitlines()
    assert [line[:16] for line in lines] == ["1 of 3 splits: g", "1 of 3 splits: n"]


@pytest.mark.parametrize("splits, match", NO_SPLITS)
def test_splits_that_are_none_are_refused_wherever_they_come_from(splits, match):
    with pytest.raises(ValueError, match=match):
        tuning.check_splits(splits, 4)
    with pytest.raises(ValueError, match=match):
        next(evaluation.run_splits(Bank(runs(4, 1)), splits, Settings()))
    match = (
        match.replace("splits", "folds")
        .replace("train", "fit")
        .replace("test", "validate")
    )
    with pytest.raises(ValueError, match=match):
        tuning.Search(np.arange(4) % 2, splits, tuning.nearest_predictions)


def test_a_train_part_that_has_no_two_groups_of_a_class_is_folded_by_clips():
    collection = runs()._replace(group=np.repeat(["p", "q"], 12))
    split = tuning.Split(np.arange(12), np.arange(12, 24))
    of_set, notes = kept_of(collection, split)
    assert of_set.tolist() == clip_names(collection.names, collection.clip)
    assert notes == [
        "no class has two groups to train: cross-validation does not keep a group "
        "together"
    ]


def test_splits_keep_groups_together():
    groups = np.array(["ann", "bob", "bob", "ann"])
    ((train, test),) = tuning.check_splits([([3, 0], [2, 1])], 4, groups)
    assert train.tolist() == [3, 0] and test.tolist() == [2, 1]
    with pytest.raises(
        ValueError, match="keep groups together, both hold sets of group bob"
    ):
        tuning.check_splits([([3, 0, 1], [2])], 4, groups)
    with pytest.raises(
        ValueError, match="groups must have length 4, one for each of the sets, got 3"
    ):
        tuning.check_splits([([3, 0], [2, 1])], 4, groups[:3])


def test_groups_are_any_hashables():
    groups = [None, 1, "ann", None]
    (split,) = tuning.check_splits([([0, 3], [1])], 4, groups)
    assert split.train.tolist() == [0, 3]
    with pytest.raises(
        ValueError, match="keep groups together, both hold sets of group None"
    ):
        tuning.check_splits([([0, 1], [3])], 4, groups)


@pytest.mark.parametrize("share", [0.5, 3])
def test_random_splits_are_those_of_their_seed(share):
    first, again, other = (
        split_at_random(np.arange(40) % 2, share, 1, seed)[0].train.tolist()
        for seed in (0, 0, 1)
    )
    assert first == again != other


def test_random_splits_keep_the_share_of_each_class():
    label = np.repeat(["a", "b", "c"], [10, 20, 6])
    pairs = split_at_random(label, 0.5, 4, 0)
    assert len(pairs) == 4
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(36))
        assert np.unique(label[train], return_counts=True)[1].tolist() == [5, 10, 3]
    assert not np.array_equal(pairs[0][0], pairs[1][0])
    assert np.array_equal(pairs[1][0], split_at_random(label, 0.5, 4, 0)[1][0])
    train, test = split_at_random(np.repeat(["a", "b"], 2), 0.01, 1, 0)[0]
    assert len(train) == len(test) == 2
    uneven = np.repeat(["a", "b", "c"], [37, 23, 2])
    for share, numbers in ((0.2, [7, 5, 1]), (0.001, [1, 1, 1]), (0.9, [33, 21, 1])):
        for train, test in split_at_random(uneven, share, 5, 0):
            assert np.unique(uneven[train], return_counts=True)[1].tolist() == numbers
            assert sorted([*train, *test]) == list(range(62))
    for n in (3, 5, 7):  # classes of one size have the same number on either side
        odd = np.arange(6 * n) % 6
        for train, _ in split_at_random(odd, 0.5, 5, 0):
            assert np.bincount(odd[train]).tolist() == [n // 2 + 1] * 6
    with pytest.raises(
        ValueError, match="--train 0.5 needs 2 clips of each class, b has 1"
    ):
        split_at_random(np.array(["a", "a", "b"]), 0.5, 1, 0)
    with pytest.raises(ValueError, match="needs two groups, got one: x"):
        split_by_group(label, np.repeat("x", 36))


@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.8, 0.999])
def test_each_class_is_on_both_sides_whatever_the_share(share):
    label = np.repeat(["a", "b", "c"], [4, 5, 9])
    for train, test in split_at_random(label, share, 5, seed=1):
        assert sorted([*train, *test]) == [*range(18)]
        assert {*label[train]} == {*label[test]} == {"a", "b", "c"}


def test_a_training_part_of_one_class_is_refused():
    collection = runs()
    collection = collection._replace(group=collection.label)
    why = "one group left out at a time: in a training part, .* two classes, got one: b"
    with pytest.raises(ValueError, match=why):
        splits_of(Settings(), Paths(), collection, None)


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


def test_a_fold_that_leaves_one_class_to_learn_from_is_none():
    y = np.array([0, 1, 1, 1])
    ((fit, validate),) = folds(y, np.array([*"aabb"]), 0)
    assert fit.tolist() == [0, 1] and validate.tolist() == [2, 3]


def test_more_neighbours_than_clips_to_train_are_all_of_them():
    rng = np.random.default_rng(0)
    clips = [
        Clip(f"{i}", i % 2, None, [rng.random((3, 9)) + np.eye(1, 9, i % 2)])
        for i in range(12)
    ]
    collection = build_all(clips, Recipe(1))
    settings = Settings(methods=["glc"], kernels=False, p=[1], neighbors=[40])
    inputs = inputs_for(collection, Recipe(1), settings)
    parts = np.arange(8), np.arange(8, 12)
    rows = evaluation.evaluate(inputs, collection.label, None, parts, settings)
    (row, *_) = [row for row in rows if row.method.name.startswith("gLC")]
    assert row.failed is None and row.estimator.n_neighbors == 8


def test_a_class_of_one_group_does_not_tear_the_groups_of_others():
    label = np.array([*"aaaabbbbcca"])
    group = np.array([0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3])  # c: group 2 alone
    split = tuning.Split(np.arange(10), np.arange(10, 11))
    kept, reasons = kept_together(label, group, None, split)
    assert kept.tolist() == group.tolist()
    assert len(reasons) == 1 and "needs two groups of a class to train" in reasons[0]


def test_repeated_folds_of_groups_are_other_folds():
    group = np.repeat(np.arange(20), 3)
    pairs = folds(group % 2, group, seed=0, repeats=2)
    tested = [sorted({*group[validate].tolist()}) for _, validate in pairs]
    assert sorted(tested[:5]) != sorted(tested[5:])


@pytest.mark.parametrize("n, n_repeats", [(601, 1), (600, 1), (599, 2), (60, 5)])
def test_folds_of_few_sets_are_repeated(monkeypatch, n, n_repeats):
    monkeypatch.setattr("grassmann_classify.splits.MOST_REPEATS", 5)
    label = np.arange(n) % 2
    pairs, repeats = folds_of_split(label, None, np.arange(n), Settings())
    assert repeats == n_repeats and len(pairs) == 5 * n_repeats
