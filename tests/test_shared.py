"""What modules share beside the core: batches of sets, scales, orders, joined arrays."""

import sys

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import grassmann_sc as core
from grassmann_sc import shared
from oracles import seeds

lengths = st.lists(st.integers(1, 9), max_size=12)


@given(lengths, st.integers(1, 20))
def test_batches_cover_sets_in_order_and_hold_at_most_so_many_frames(lengths, most):
    slices = shared.batches(lengths, most)
    assert [i for rows in slices for i in range(len(lengths))[rows]] == [
        *range(len(lengths))
    ]
    for rows in slices:
        assert sum(lengths[rows]) <= most or rows.stop - rows.start == 1
    # none could have been one with the next
    for batch, following in zip(slices, slices[1:]):
        assert sum(lengths[batch]) + lengths[following.start] > most


def test_names_with_numbers_come_as_readers_sort_them():
    names = ["b10", "b2", "a", "b2c1", "10", "9"]
    assert sorted(names, key=shared.natural_order) == [
        "9",
        "10",
        "a",
        "b2",
        "b2c1",
        "b10",
    ]
    assert shared.natural_order(3) == 3


@given(seeds, st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_joined_arrays_keep_their_columns_and_are_filled_up_by_zeros(seed, ranks):
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((2, 3, r)) for r in ranks]
    whole = shared.joined(parts)
    assert whole.shape == (2 * len(ranks), 3, max(ranks))
    for i, part in enumerate(parts):
        rows = whole[2 * i : 2 * i + 2]
        assert np.array_equal(rows[..., : part.shape[2]], part)
        assert not rows[..., part.shape[2] :].any()


@given(seeds, st.integers(1, 700), st.integers(1, 9), st.integers(1, 800))
def test_small_products_are_the_product(seed, n, k, m):
    rng = np.random.default_rng(seed)
    A = rng.integers(-9, 9, (n, k)).astype(float)
    B = rng.integers(-9, 9, (k, m)).astype(float)
    out = np.full((n, m), np.nan)
    assert shared.small_products(A, B, out) is out
    assert np.array_equal(out, A @ B)  # whole numbers: exact


@pytest.mark.parametrize(
    "shape, wrong",
    [((2, "d"), (3, 4)), (("n", 3), (2, 2)), (("N", 3), (0, 3)), ((2,), (2, 1))],
)
def test_a_wrong_shape_is_told_with_the_one_wanted(shape, wrong):
    with pytest.raises(ValueError, match="^A must have shape .* got "):
        shared.shaped_array(np.zeros(wrong), "A", shape)
    right = tuple(4 if isinstance(n, str) else n for n in shape)
    assert shared.shaped_array(np.zeros(right), "A", shape).shape == right


def test_a_missing_package_is_named_with_how_to_install_it():
    """By the command that installs it where it is missing."""
    with pytest.raises(ImportError) as error:
        shared.import_extra("no_such_module", "x needs y", "no-package")
    assert str(error.value) == f"x needs y: {sys.executable} -m pip install no-package"


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_one_line_on_a_terminal_and_some_in_a_log(
    terminal, capsys, monkeypatch
):
    clock = iter([0.0, 20.0, 20.05, 60.0])
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    with shared.progress_line(True, 4, "frames") as move:
        move(1)
        move(1)
        move(2, cost=0.5)
    err = capsys.readouterr().err
    lines = err.replace("\n", "\r").split("\r")
    assert [*dict.fromkeys(line.strip() for line in lines if line)] == [
        "frames: 1 of 4, 60 s left",
        "frames: 4 of 4, 0 s left, cost 0.5",
    ]
    assert err.count("\n") == (1 if terminal else 2)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_of_a_short_loop_is_not_told(terminal, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)
    monkeypatch.setattr("time.monotonic", lambda: 3.0)
    for wanted in (True, False):
        with shared.progress_line(wanted, None, "frames") as move:
            move(1)
    assert capsys.readouterr().err == ""


def test_bases_are_told_from_weighted_subspaces():
    X = core.random_subspaces(3, 5, 2, rng=0)
    assert shared.are_bases(X)
    assert not shared.are_bases(X / 2**0.25)
    many = core.random_subspaces(1, 320, 300, rng=0).astype(np.float32)
    assert shared.are_bases(
        many * np.float32(1 + 4.9e-4)
    )  # as good as check_bases asks


@pytest.mark.parametrize("channels", [3, 4])
def test_colours_are_told_how_they_become_grey(channels):
    frames = np.random.default_rng(0).random((5, 4, 6, channels))
    cure = "frames[..., :3] @ [0.299, 0.587, 0.114]"
    with pytest.raises(ValueError) as error:
        shared.check_frames(frames, "frames")
    assert cure in str(error.value)
    assert shared.check_frames(eval(cure), "frames").shape == (5, 24)
    with pytest.raises(ValueError, match=r"got \(5, 4, 6, 2\)$"):
        shared.check_frames(frames[..., :2], "frames")


def test_a_column_of_labels_is_told_how_it_becomes_a_row():
    """As a DataFrame of one column has them."""
    labels = np.array([["a"], ["b"]])
    with pytest.raises(ValueError, match=r"got shape \(2, 1\); np.ravel\(labels\) has"):
        core.check_labels(labels, 2)
    with pytest.raises(ValueError, match=r"got shape \(2, 2\)$"):
        core.check_labels(np.ones((2, 2)), 2)
    assert core.check_labels(np.ravel(labels), 2)[1].tolist() == [0, 1]
