"""What clips are called, which frame shows them, and what their headers tell."""

import numpy as np
import pytest
from PIL import Image

from grassmann_classify import headers
from grassmann_classify.clips import Clip, Recipe, middle_frame
from grassmann_classify.finding import find_clips, find_labelled
from grassmann_classify.headers import look


def save(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        Image.fromarray(np.full((4, 6), value, np.uint8)).save(path)
    else:
        np.save(path.with_name(path.name + ".npy"), np.full((3, 4, 6), value, np.uint8))
    return path


@pytest.mark.parametrize(
    "pattern, group", [(r"^(p\d+)_", "p12"), (r"p\d+_", "p12_"), ("(x)?", None)]
)
def test_a_group_is_the_first_group_of_the_pattern_or_the_whole_match(
    tmp_path, pattern, group
):
    for label in "ab":
        save(tmp_path / label / "p12_walk")
    groups = [clip.group for clip in find_clips(tmp_path, group_by=pattern)]
    assert groups == [group, group]


def test_a_whole_name_comes_before_that_of_another_without_its_ending(tmp_path):
    """a.npy is a clip, and a.npy.npy without its ending."""
    save(tmp_path / "clips" / "a")
    save(tmp_path / "clips" / "a.npy")
    labels = tmp_path / "labels.csv"
    labels.write_text("clip,label\na.npy,first\na.npy.npy,second\n")
    found, _ = find_labelled(tmp_path / "clips", labels)
    assert {clip.name: clip.label for clip in found} == {
        "a.npy": "first",
        "a.npy.npy": "second",
    }


def test_the_picture_of_a_clip_is_its_middle_frame(tmp_path):
    for i in range(10):
        save(tmp_path / "a" / f"{i}.png", 20 * i)
        save(tmp_path / "b" / f"{i}.png", 20 * i)
    first, second, *_ = find_clips(tmp_path, run=5)
    assert middle_frame(first).max() == 40 and middle_frame(second).max() == 140
    stacked = Clip("s", "a", None, [np.arange(5)[:, None, None] * np.ones((5, 2, 2))])
    assert middle_frame(stacked).max() == 2


def test_a_number_of_frames_that_a_header_does_not_tell_is_unknown(monkeypatch, capsys):
    """As those of some videos: the sum of the others would be wrong."""
    told = {"x": (7, 4, 6), "y": (None, 4, 6)}
    monkeypatch.setattr(
        headers.frames, "read_shape", lambda path, **options: told[path]
    )
    clips = [Clip(name, name, None, [name]) for name in "xy"]
    assert look(clips, Recipe(1)).shapes == {"x": (7, 4, 6), "y": (None, 4, 6)}
    assert "2 clips of 2 classes, unknown numbers of frames" in capsys.readouterr().err
    look(clips[:1], Recipe(1))
    assert "1 clip of 1 class, 7 frames of 4 x 6" in capsys.readouterr().err
    parts = [Clip("x", "x", None, ["x", "y"])]  # of several files
    assert look(parts, Recipe(1)).shapes == {"x": (None, 4, 6)}
