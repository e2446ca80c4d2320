"""Edges of what the application reads, each of which a change of one sign once passed
unnoticed.
"""

import numpy as np
import pytest

from grassmann_classify.arrays import labelled_stretches, load_npz, with_bases
from grassmann_classify.clips import Basis, Clip
from grassmann_classify.settings import Recipe
from grassmann_classify.splits import read_rows
from grassmann_sc import random_subspaces


def write_recording(path, labels):
    rows = [f"{np.sin(i):.3f},{np.cos(2 * i):.3f},{c}" for i, c in enumerate(labels)]
    path.write_text("\n".join(["x,y,activity", *rows]))


@pytest.mark.parametrize("missing", ["nan", "NaN", "", "NA", "n/a"])
def test_a_missing_label_is_no_class(tmp_path, missing):
    labels = ["sit"] * 6 + [missing] * 5 + ["run"] * 6
    write_recording(tmp_path / "a.csv", labels)
    clips, _ = labelled_stretches(tmp_path, Recipe(), "activity")
    assert [(clip.label, len(clip.sources[0])) for clip in clips] == [
        ("sit", 6),
        ("run", 6),
    ]


@pytest.mark.parametrize("n, kept", [(4, 0), (5, 1), (6, 1)])
def test_a_stretch_of_exactly_one_window_is_a_clip(tmp_path, n, kept):
    write_recording(tmp_path / "a.csv", ["sit"] * 8 + ["run"] * n)
    clips, _ = labelled_stretches(tmp_path, Recipe(window=5), "activity")
    assert [clip.label for clip in clips] == ["sit"] + ["run"] * kept


def test_a_set_ends_after_its_last_step_that_has_a_number(tmp_path):
    """A step that lacks one channel is a step; one that lacks all is one before others."""
    X = np.random.default_rng(0).standard_normal((3, 9, 2))
    X[0, 6:] = np.nan
    X[1, 8, 0] = np.nan
    X[2, 4] = np.nan
    np.savez(tmp_path / "X.npz", X=X, y=["a", "b", "a"])
    clips, _ = load_npz(tmp_path / "X.npz")
    assert [len(clip.sources[0]) for clip in clips] == [6, 9, 9]


def test_a_byte_order_mark_is_no_part_of_a_columns_name(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("clip,label\na,x\n", encoding="utf-8-sig")
    assert read_rows(path) == (["clip", "label"], [(2, ["a", "x"])])


@pytest.mark.parametrize("key, kind", [("bases", Basis), ("frames", None)])
def test_a_key_of_bases_takes_them_and_another_leaves_the_file(tmp_path, key, kind):
    path = tmp_path / "clip.npz"
    frames = np.random.default_rng(0).standard_normal((5, 6))
    np.savez(path, bases=random_subspaces(2, 6, 2, rng=0), frames=frames)
    (clip,) = with_bases([Clip("clip", "a", None, [path])], key)
    if kind is None:
        assert clip.sources == [path]
    else:
        assert [type(source) for source in clip.sources] == [Basis, Basis]
