"""What clips are called, which frame shows them, and what their headers tell."""

import numpy as np
import pytest
from PIL import Image

from grassmann_classify import building
from grassmann_classify.building import look
from grassmann_classify.clips import Clip, Recipe, frames_of
from grassmann_classify.finding import find_clips, find_labelled, find_new_clips


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
    assert frames_of(first, 1).max() == 40 and frames_of(second, 1).max() == 140
    stacked = Clip("s", "a", None, [np.arange(5)[:, None, None] * np.ones((5, 2, 2))])
    assert frames_of(stacked, 1).max() == 2


def test_a_number_of_frames_that_a_header_does_not_tell_is_unknown(monkeypatch, capsys):
    """As those of some videos: the sum of the others would be wrong."""
    shapes = {"x": (7, 4, 6), "y": (None, 4, 6)}
    monkeypatch.setattr(
        building.frames, "read_shape", lambda path, **options: shapes[path]
    )
    clips = [Clip(name, name, None, [name]) for name in "xy"]
    counts = [header.n_frames for header in look(clips, Recipe(1)).values()]
    assert counts == [7, None]
    assert "2 clips of 2 classes, unknown numbers of frames" in capsys.readouterr().err
    look(clips[:1], Recipe(1))
    assert "1 clip of 1 class, 7 frames of 4 x 6" in capsys.readouterr().err
    parts = [Clip("x", "x", None, ["x", "y"])]  # of several files
    (header,) = look(parts, Recipe(1)).values()
    assert (header.n_frames, header.size) == (None, (4, 6))


# ------------------------------------------------------------ what a folder is told of


def refused(folder):
    with pytest.raises(ValueError) as error:
        find_clips(folder)
    return str(error.value)


def tables(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.csv").write_text("1,2\n3,4\n")
    return folder


def test_an_error_names_what_a_folder_holds(tmp_path):
    data = tables(tmp_path / "data", "a", "b", "c")
    (data / "notes.txt").write_text("")
    why = refused(data)
    assert "found 0 clips of 0 classes among 3 .csv files, 1 .txt file; if a.csv" in why
    assert "--label-column names that column" in why and "--labels" in why
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(ValueError, match="arrays, tables\\), got nothing$"):
        find_new_clips(empty)


@pytest.mark.parametrize("header", ["clip,label", "Filename,class", "group,path,label"])
def test_an_error_names_the_labels_that_lie_there(tmp_path, header):
    data = tables(tmp_path / "data", "a", "b", "c")
    tables(tmp_path / "beside", "a")
    (data / "what.csv").write_text(f"{header}\n")
    why = refused(data)
    assert f"what.csv has labels: --labels {data / 'what.csv'} takes them" in why
    assert "beside" not in why


def test_an_error_names_no_folder_beside_class_folders(tmp_path):
    tables(tmp_path / "beside", "a")
    tables(tmp_path / "data" / "sit", "a")
    why = refused(tmp_path / "data")
    assert "found 1 clip of 1 class among 1 folder" in why and "beside" not in why
    tables(tmp_path / "sit", "a")
    assert "if sit is a class as beside beside it is" in refused(tmp_path / "sit")


@pytest.mark.parametrize(
    "header, clip, label",
    [
        ("filename,class", "a", "sit"),
        ("class,File", "sit", "a"),
        ("path,label,group", "a", "sit,ann"),
    ],
)
def test_columns_of_labels_have_other_names_too(tmp_path, header, clip, label):
    data = tables(tmp_path / "data", "a", "b")
    labels = tmp_path / "labels.csv"
    labels.write_text(f"{header}\n{clip},{label}\n")
    (found,), _ = find_labelled(data, labels)
    assert (found.name, found.label) == ("a.csv", "sit")


@pytest.mark.parametrize("between", [",", ";", "\t"])
def test_columns_of_labels_are_separated_as_spreadsheets_do(tmp_path, between):
    data = tables(tmp_path / "data", "a", "b")
    labels = tmp_path / "labels.csv"
    lines = [between.join(line) for line in (["clip", "label"], ["a", "x, y; z"])]
    labels.write_text("\n".join(lines).replace("x, y; z", '"x, y; z"') + "\n")
    (found,), _ = find_labelled(data, labels)
    assert (found.name, found.label) == ("a.csv", "x, y; z")


def test_the_first_names_of_columns_go_before_others(tmp_path, capsys):
    data = tables(tmp_path / "data", "a", "b")
    labels = tmp_path / "labels.csv"
    labels.write_text("path,clip,label,class\nb,a,sit,run\n")
    (found,), _ = find_labelled(data, labels)
    assert (found.name, found.label) == ("a.csv", "sit")
    assert "passed over the columns path, class" in capsys.readouterr().err
    labels.write_text("file,what\na,sit\n")
    with pytest.raises(ValueError, match="clip .or filename.*got 'file,what'"):
        find_labelled(data, labels)
