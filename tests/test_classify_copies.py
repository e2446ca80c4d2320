"""What counts as a copy at each bound; what may speak against a label."""

import csv
import re
import shutil

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_classify.__main__ import main
from grassmann_classify.clips import Collection
from grassmann_classify.copies import COMMON, Copy, across, copies_of


def rows(*numbers):
    """A set of rows, each told by its number."""
    return np.array([[number, number**2, 1.0] for number in numbers])


def copies(points, clip=None, frame=()):
    """The Copies among subspaces (n, d, p), or among sets of rows."""
    sets = None if isinstance(points, np.ndarray) else points
    clip = np.arange(len(points)) if clip is None else clip
    return copies_of(Collection(points, sets, None, None, None, frame, clip))


def pairs_of(points, *more):
    return [(pair.i, pair.j) for pair in copies(points, *more)]


@pytest.mark.parametrize(
    "first, second, shared",
    [
        ([1, 2, 3, 4], [1, 2, 7, 8], 2),  # just a half
        ([1, 2, 3, 4], [1, 6, 7, 8], 0),
        ([1, 2, 3, 4, 5, 6], [1, 2, 7, 8], 2),  # of the shorter
        ([1, 2, 3, 4, 5], [1, 2, 7, 8, 9], 0),
        ([1, 1, 1, 1], [1, 2], 1),  # distinct frames count
        ([1, 1, 1, 2, 2, 2], [1, 1, 1, 2, 2, 2], 6),  # a whole copy
        ([1, 1, 1, 2, 2, 2], [1, 2, 1, 2, 1, 2], 0),  # of two switches
    ],
)
def test_sets_that_share_half_of_the_frames_of_the_shorter_are_copies(
    first, second, shared
):
    pairs = copies([rows(*first), rows(*second)])
    shorter = min(len(first), len(second))
    why = f"{shared} of {shorter} frames are the same"
    assert pairs == ([Copy(0, 1, why)] if shared else [])


def test_frames_that_many_sets_hold_tell_of_no_copy():
    """As a black frame; up to COMMON sets they do."""
    for n in (COMMON, COMMON + 1):
        pairs = copies([rows(0, i + 1) for i in range(n)])
        assert len(pairs) == (n * (n - 1) / 2 if n == COMMON else 0)


def test_equal_sets_are_copies_however_many_each_of_the_next():
    n = COMMON + 2
    pairs = copies([rows(9), *[rows(1, 2, 2)] * n, rows(2, 1, 2), rows(7, 7)])
    assert [(i, j) for i, j, _ in pairs] == [(i, i + 1) for i in range(1, n + 1)]
    *equal, last = pairs
    assert {pair.why for pair in equal} == {"all frames are the same"}
    assert last.why == "2 of 3 frames are the same"  # in another order


def test_windows_that_overlap_much_are_each_a_copy_of_the_next():
    """Though each frame is in more windows than tell of a copy elsewhere."""
    recording = [*range(200)]
    sets = [rows(*recording[k : k + 50]) for k in range(0, 151, 3)]
    pairs = pairs_of(sets)
    assert {(i, i + 1) for i in range(len(sets) - 1)} <= {*pairs}
    dark = [rows(0, 10 * k + 1, 10 * k + 2) for k in range(15)]  # a frame of all
    assert not pairs_of(dark)


def test_most_clips_may_have_a_second_encoding():
    noisy, clean = films()
    assert len(copies([*noisy, *clean], None, (64, 64))) == len(clean)
    assert not copies(noisy, None, (64, 64))


def test_two_clips_of_a_class_may_be_much_alike():
    """Nothing tells how far others of the class would be."""
    noisy, clean = films()
    sets = [*noisy, *clean]
    for label, n in ((range(12), 0), (np.arange(12) // 2, 12)):
        collection = Collection(
            None, sets, None, [*label] * 2, None, (64, 64), range(24)
        )
        assert len(copies_of(collection)) == n


def test_the_same_frames_in_any_order_are_the_same_set_but_within_a_clip():
    sets = [rows(1, 2, 3), rows(3, 1, 2), rows(1, 2, 3)]
    assert [pair.why for pair in copies(sets)] == 3 * ["3 of 3 frames are the same"]
    assert pairs_of(sets, [0, 0, 1]) == [(0, 2), (1, 2)]


def films(n=12, side=64):
    """Films of twelve smooth frames (n, 12 * side^2), with noise in each pixel and without."""
    rng = np.random.default_rng(5)
    pairs = []
    for _ in range(n):
        looks = rng.standard_normal((3, 8, 8)).repeat(side // 8, 1).repeat(side // 8, 2)
        clean = np.tensordot(rng.standard_normal((12, 3)), looks, 1).reshape(12, -1)
        pairs.append((clean + rng.standard_normal(clean.shape), clean))
    return [[*sets] for sets in zip(*pairs)]


def test_an_encoder_that_changes_every_pixel_hides_no_copy():
    noisy, clean = films()
    sets = [*noisy, clean[4]]
    assert copies(sets, None, (64, 64)) == [Copy(4, 12, "nearly the same images")]
    assert copies(sets) == []  # vectors: equal ones alone are copies
    assert copies(sets, [*range(12), 4], (64, 64)) == []


def test_equal_frames_are_said_before_alike_images():
    noisy, _ = films()
    (pair,) = copies([*noisy, noisy[3][::-1]], None, (64, 64))
    assert pair == Copy(3, 12, "12 of 12 frames are the same")


def test_images_before_one_background_are_no_copies():
    """More than half are of other scenes; those of one scene are alike one another."""
    rng = np.random.default_rng(2)
    noisy, _ = films(15)
    scene = 20 * rng.standard_normal((8, 8)).repeat(8, 0).repeat(8, 1).ravel()
    sets = [scene + rows if i < 6 else rows for i, rows in enumerate(noisy)]
    assert copies(sets, None, (64, 64)) == []
    sets[2] = sets[1] + 0.3 * rng.standard_normal(sets[1].shape)
    assert pairs_of(sets, None, (64, 64)) == [(1, 2)]


def test_blank_images_and_two_alone_are_no_copies():
    noisy, _ = films(4)
    blank = [np.zeros((n, 64 * 64)) for n in (2, 3)]
    assert copies([*noisy, blank[0]], None, (64, 64)) == []
    assert pairs_of(blank, None, (64, 64)) == [(0, 1)]  # the frame of both is the same
    assert copies(noisy[:2], None, (64, 64)) == copies(noisy[:1], None, (64, 64)) == []


@pytest.mark.parametrize("side", [4, 8, 16])
def test_of_many_small_images_none_is_near_by_chance(side):
    rng = np.random.default_rng(0)
    sets = [*rng.standard_normal((600, 2, side**2))]
    assert copies(sets, None, (side, side)) == []


def test_of_many_sets_in_few_dimensions_none_is_a_copy_that_is_not_equal():
    """As windows of three channels, whose subspaces are near by chance."""
    rng = np.random.default_rng(0)
    sets = [*rng.standard_normal((600, 2, 3))]
    assert copies(sets) == []
    X = np.stack([core.orthonormalize(rows.T)[:, :1] for rows in sets])
    assert copies(X) == copies(X.astype(np.float32)) == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d, p", [(4, 3), (4, 4), (30, 5)])
def test_subspaces_are_copies_if_they_are_equal_in_any_basis(d, p, dtype):
    """Of dimension d all are equal: their first d - 1 columns count."""
    rng = np.random.default_rng(0)
    X = core.random_subspaces(12, d, p, rng)
    k = min(p, d - 1)
    X[5, :, :k] = X[7, :, :k] @ np.linalg.qr(rng.standard_normal((k, k)))[0]
    assert copies(X.astype(dtype)) == [Copy(5, 7, "the same subspace")]
    assert copies(X.astype(dtype), [0] * 12) == []
    near = X.copy()
    near[5] = core.orthonormalize(X[7] + 0.01 * rng.standard_normal((d, p)))
    assert copies(near.astype(dtype)) == []


def test_sets_of_one_channel_span_one_line_and_are_no_copies():
    assert copies(np.ones((12, 1, 1))) == []


def test_copies_across_a_split_train_on_one_side_and_are_tested_on_the_other():
    pairs = [Copy(2, 3, ""), Copy(2, 4, ""), Copy(1, 4, "")]
    splits = [(np.array([0, 2]), np.array([1, 3])), (np.array([4]), np.array([1]))]
    assert across(pairs, splits) == [pairs[0], pairs[2]]
    assert across([], splits) == []


# ------------------------------------------------------------------------ the commands


def test_noise_of_one_channel_is_no_copy_and_a_file_that_lies_there_twice_is(
    tmp_path, capsys, monkeypatch
):
    """Twelve series had 66 pairs of copies, because all span the same line."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for i in range(12):
        (tmp_path / "data" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        np.save(f"data/{'ab'[i % 2]}/{i:02}.npy", rng.standard_normal((20, 1)))
    plain = ["--no-pictures", "--recipe", "plain", "--p", "1"]
    usual = [*plain, "--no-kernels", "--methods", "nearest", "--repeats", "4"]
    main(["check", "data", *plain])
    main(["compare", "data", *usual])
    printed = capsys.readouterr()
    assert "; 0 pairs of copies; " in printed.out
    assert "accuracy too high" not in printed.out + printed.err
    shutil.copy("data/a/00.npy", "data/b/again.npy")
    main(["check", "data", *plain])
    main(["compare", "data", *usual])
    printed = capsys.readouterr()
    words = r"1 pair of copies\n.*\na/00.npy +b/again.npy +a +b +20 of 20 frames are the same"
    assert re.search(words, printed.out)
    words = "1 pair of copies under two labels is in both parts of a split, which makes"
    assert f"{words} accuracy too low" in printed.err


def suspects_of(folder, sets, labels, **more):
    """{clip: the clips that speak for another label}, by the command."""
    offset = np.cumsum([0, *map(len, sets)])
    arrays = {"frames": np.concatenate(sets), "offset": offset, "label": labels}
    np.savez(folder / "sets.npz", **arrays, **more)
    usual = ["--p", "1", "--lam", "0.1", "--recipe", "plain", "--no-pictures"]
    main(["check", str(folder / "sets.npz"), "--out", str(folder / "out"), *usual])
    (table,) = folder.glob("out*/suspects.csv")
    with open(table, newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    shutil.rmtree(table.parent)
    return {row["clip"]: re.findall(r"set \d+", row["because"]) for row in rows}


def test_what_explains_nothing_is_not_explained_by_itself(tmp_path):
    """A clip whose frames are orthogonal to those of all others has a zero code."""
    rng = np.random.default_rng(0)
    looks = np.eye(2, 8)
    sets = [
        rng.random((3, 1)) * (looks[i % 2] + np.pad(rng.random(3), (2, 3)))
        for i in range(10)
    ]
    sets.append(rng.random((3, 1)) * np.eye(1, 8, 7))
    because = suspects_of(tmp_path, sets, [*"ab"] * 5 + ["a"])
    assert because["set 10"] == []
    assert all(name not in others for name, others in because.items())
    assert len(because) == 11 and any(because.values())


def test_nothing_of_its_own_group_speaks_against_a_label(tmp_path):
    """Each person has a look; one of their clips has the label of the others."""
    rng = np.random.default_rng(1)
    person = np.arange(24) // 4
    looks = rng.standard_normal((6, 9))
    sets = [
        rng.random((3, 1)) * (looks[p] + 0.1 * rng.standard_normal(9)) for p in person
    ]
    labels = np.array(["a", "b"])[person % 2]
    labels[::4] = np.array(["b", "a"])[person[::4] % 2]
    for more, within in (({}, True), ({"group": person}, False)):
        because = suspects_of(tmp_path, sets, labels, **more)
        same = [
            person[int(name[4:])] == person[int(other[4:])]
            for name, others in because.items()
            for other in others
        ]
        assert same and any(same) == within
