"""Clips are found, built once and split; unusable ones are named and stop nothing."""

import csv
import importlib
import json
import os
import re
import shutil
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from grassmann_classify import Recipe, Settings, fit, predict
from grassmann_classify.__main__ import main
from grassmann_classify.building import build_all, survey
from grassmann_classify.clips import Clip, decoded, films_of
from grassmann_classify.finding import find_clips, find_new_clips
from grassmann_classify.inputs import labelled_clips, read
from grassmann_classify.options import parse, split
from grassmann_classify.splits import parts_of_file
from grassmann_sc import frames as library
from grassmann_sc.subspaces import block_hankel, from_image_set, from_video

pytestmark = [
    pytest.mark.filterwarnings("error:::grassmann_classify"),
]


def frames_of(label, seed, n=8, height=12, width=16):
    """Noise on a pattern of the class: easy to tell apart."""
    rng = np.random.default_rng(seed)
    pattern = np.random.default_rng(sum(map(ord, label))).random((3, height * width))
    rows = rng.random((n, 3)) @ pattern / 3 + 0.1 * rng.random((n, height * width))
    return (255 * rows / rows.max()).astype(np.uint8).reshape(n, height, width)


def images(folder, frames):
    folder.mkdir(parents=True)
    for i, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / f"{i}.png")


@pytest.fixture
def tree(tmp_path):
    """Two classes of six clips: folders of images, arrays and videos."""
    for label in ("run", "walk"):
        for k in range(6):
            frames = frames_of(label, k)
            path = tmp_path / "data" / label / f"p{k % 3}_{k}"
            if k == 1:
                np.save(path.with_suffix(".npy"), frames)
            elif k == 2:
                pytest.importorskip("av", reason="videos need the extra 'video'")
                pytest.importorskip("imageio.v3").imwrite(
                    path.with_suffix(".mp4"),
                    np.stack([frames] * 3, -1),
                    plugin="pyav",
                    codec="libx264",
                    fps=9,
                )
            else:
                images(path, frames)
    (tmp_path / "data" / "notes.txt").write_text("no class")
    (tmp_path / "data" / "walk" / "notes.txt").write_text("no clip")
    return tmp_path / "data"


# where the splits are what is tested
PLAIN = "--p", 2, "--no-kernels", "--recipe", "plain"
FEW = *PLAIN, "--methods", "gsc,nearest"


def run(tmp_path, *options, data=None, pictures=False):
    if not pictures:
        options += ("--no-pictures",)
    shutil.rmtree(tmp_path / "out", ignore_errors=True)
    main(
        [
            "compare",
            str(data or tmp_path / "data"),
            "--out",
            str(tmp_path / "out"),
            "--repeats",
            "2",
            "--lam",
            "0.1",
            "0.01",
            "--neighbors",
            "3",
            "--C",
            "10",
            *map(str, options),
        ],
        "grassmann-classify",
    )
    return json.loads((tmp_path / "out" / "results.json").read_text())


def refused(tmp_path, *options, data=None):
    """What a run that cannot be says."""
    with pytest.raises(SystemExit) as end:
        run(tmp_path, *options, data=data)
    return str(end.value.code)


def labelled(tmp_path, *options, data=None):
    """{name: label} of the sets that a run would read."""
    words = ["compare", data or tmp_path / "data", *FEW, *options]
    recipe, settings, paths = split(parse([*map(str, words)]))
    clips, _, recipe = labelled_clips(recipe, settings, paths)
    collection = read(recipe, settings, paths, clips).collection
    return dict(zip(collection.names, collection.label.tolist()))


def clustered(folder, out):
    """({name of a set: its cluster}, {name of a clip: why it has none})."""
    shutil.rmtree(out, ignore_errors=True)
    options = ["-k", "2", "--p", "2", "--no-pictures", "--skip", "--out", str(out)]
    main(["cluster", str(folder), *options], "grassmann-classify")
    with open(out / "clusters.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    clusters = {row["clip"]: row["cluster"] for row in rows if not row["failed"]}
    return clusters, {row["clip"]: row["failed"] for row in rows if row["failed"]}


def test_a_folder_becomes_a_table_results_and_pictures(tree, tmp_path, capsys):
    plain = "--recipe", "plain", "--dpi", 40, "--methods", "gsc,glc,nearest,frames"
    results = run(tmp_path, "--atoms", 3, "--iterations", 1, *plain, pictures=True)
    printed = capsys.readouterr()
    names = list(results["methods"])
    assert (
        all(
            re.search(f"^{re.escape(name)} .* 100.0", printed.out, re.MULTILINE)
            for name in names
        )
        and len(names) >= 6
    )
    assert (
        results["n_sets"] == 12
        and results["classes"] == ["run", "walk"]
        and results["splits_done"] == 2
    )
    first = results["methods"][names[0]]
    assert (
        first["confusion"] == [[6, 0], [0, 6]]
        and first["mean"] == 100
        and len(first["accuracy"]) == 2
    )
    pictures = {path.name for path in (tmp_path / "out" / "pictures").glob("*.png")}
    assert {
        "accuracies.png",
        "gram.png",
        "map.png",
        "confusion_gsc_3_learned_atoms.png",
        "confusion_nearest_subspace.png",
    } <= pictures
    assert "wrong.png" not in pictures


def broken(tree):
    good = (tree / "run" / "p2_2.mp4").read_bytes()
    (tree / "run" / "corrupt.mp4").write_bytes(good[:200] + bytes(len(good) - 200))
    (tree / "run" / "empty").mkdir()
    images(
        tree / "walk" / "sizes", [*frames_of("walk", 7), np.zeros((12, 17), np.uint8)]
    )
    images(tree / "walk" / "other", frames_of("walk", 8, height=20))
    images(tree / "walk" / "short", frames_of("walk", 9, n=2))


def test_broken_clips_are_named_at_the_end(tree, tmp_path, capsys):
    broken(tree)
    quick = "--methods", "nearest", "--no-kernels"
    results = run(tmp_path, "--skip", *quick)
    assert results["n_sets"] == 12
    end = capsys.readouterr().err.partition("\n5 could not be used:\n")[2]
    for why in (
        r"run/corrupt\.mp4: not a video, or cut short",
        "run/empty: holds no image",
        r"walk/sizes/8\.png: frames must have one size",
        "walk/other: has frames of 20 x 16 and most clips have 12 x 16; --size 32 32 brings",
        "walk/short: has frames of rank 2 and most clips have 3 or more; --p 2 takes it",
    ):
        assert re.search(why, end) and any(
            re.search(why, failed) for failed in results["failed"]
        )
    with pytest.raises(
        SystemExit, match="^grassmann-classify: .*(corrupt|empty|sizes|other|short)"
    ):
        run(tmp_path, "--strict")


def test_names_that_a_terminal_obeys_or_no_picture_shows_are_escaped(tmp_path, capsys):
    for label in (b"caf\xe9", b"sea\x1b[31m"):
        folder = tmp_path / "data" / os.fsdecode(label)
        try:
            folder.mkdir(parents=True)
        except OSError:
            pytest.skip("such names are not allowed here")
        for k in range(4):
            np.save(folder / f"{k}.npy", frames_of(label.decode("latin-1"), k))
    (folder / "bad\x1b]0;mine\x07.npy").write_bytes(b"")
    results = run(tmp_path, *FEW, "--dpi", 40, pictures=True)
    assert results["classes"] == ["caf\\udce9", "sea\\x1b[31m"]
    printed = capsys.readouterr()
    assert (
        "nearest subspace" in printed.out
        and r"sea\x1b[31m/bad\x1b]0;mine\x07.npy" in printed.err
    )
    assert "no picture" not in printed.err
    # lines, bars
    assert all(c.isprintable() or c in "\n\r" for c in printed.out + printed.err)
    assert len(list((tmp_path / "out" / "pictures").glob("*.png"))) >= 5
    path = tmp_path / "splits.csv"
    path.write_text(
        "clip,s\ncaf\\udce9/0.npy,train\ncaf\\udce9/1.npy,train\nsea\x1b[31m/0.npy,"
        "train\nsea\x1b[31m/2.npy,train\nsea\\x1b[31m/1.npy,test\n"
    )
    run(tmp_path, *FEW, "--splits", path)
    (tested,) = (tmp_path / "out" / "predictions.csv").read_text().splitlines()[1:]
    assert tested.startswith("sea\\x1b[31m/1.npy,")


def test_a_picture_that_cannot_be_drawn_costs_neither_table_nor_others(
    tree, tmp_path, capsys, monkeypatch
):
    def fail(*arguments):
        printed = capsys.readouterr()
        assert "accuracy, %" in printed.out
        raise RuntimeError("no ink")

    monkeypatch.setattr("grassmann_sc.plots.plot_map", fail)
    run(tmp_path, *FEW, "--dpi", 40, pictures=True)
    assert "no picture map: no ink" in capsys.readouterr().err
    names = {path.name for path in (tmp_path / "out" / "pictures").glob("*.png")}
    assert "map.png" not in names and "gram.png" in names


def test_nothing_left_is_an_error(tmp_path):
    for label in "ab":
        (tmp_path / "data" / label / "empty").mkdir(parents=True)
    with pytest.raises(
        SystemExit, match="no clip could be read: .*a/empty: holds no image"
    ):
        run(tmp_path)
    shutil.rmtree(tmp_path / "data" / "b")
    with pytest.raises(
        SystemExit,
        match="must hold 2 class folders of clips or more .* found 1 clip of 1 class",
    ):
        run(tmp_path)


def test_groups_are_folders_or_parts_of_names(tree, tmp_path, capsys):
    results = run(tmp_path, "--group-by", r"^(p\d)_", *FEW)
    assert results["splits"] == 3
    nested = tmp_path / "nested"
    for label in ("run", "walk"):
        for k in range(6):
            images(nested / label / f"person{k % 2}" / f"clip{k}", frames_of(label, k))
    assert run(tmp_path, *FEW, data=nested)["splits"] == 2
    with open(tmp_path / "out" / "predictions.csv", newline="") as file:
        tested = {
            (row["split"], row["clip"].split("/")[1]) for row in csv.DictReader(file)
        }
    assert tested == {("0", "person0"), ("1", "person1")}
    images(nested / "run" / "alone", frames_of("run", 7))
    capsys.readouterr()
    run(tmp_path, *FEW, data=nested)
    line = "groups are passed over: 1 of 13 clips lie in no folder of a group"
    assert line in capsys.readouterr().err
    with pytest.raises(
        SystemExit, match="the name has no group, --group-by 'x' matches nothing of it"
    ):
        run(tmp_path, "--group-by", "x")


@pytest.mark.parametrize(
    "pattern, group",
    [(r"^(p\d+)_", "p12"), (r"p\d+_", "p12_"), ("(x)?", None), ("", None)],
)
def test_a_group_is_the_first_group_of_the_pattern_or_the_whole_match(
    tmp_path, pattern, group
):
    arrays(*(tmp_path / "data" / c / f"p12_{k}.npy" for c in "ab" for k in range(4)))
    message = refused(tmp_path, *FEW, "--group-by", pattern)
    why = f"the name has no group, --group-by {pattern!r} matches nothing of it"
    why = f"got one: {group}; without groups splits are random" if group else why
    assert message.endswith(why)


def test_splits_from_a_file(tree, tmp_path):
    """Also one that names clips which cannot be read."""
    names = [*labelled(tmp_path)]
    broken(tree)
    path = tmp_path / "splits.csv"
    sides = [
        f"{name},{'train' if i % 2 else 'test'},{'test' if i % 3 else 'train'}"
        for i, name in enumerate(names)
    ]
    others = ["run/corrupt.mp4,train,", "walk/other,test,"]
    # as Excel leaves it
    path.write_text("\n".join(["clip,a,b", *sides, *others]), encoding="utf-8-sig")
    results = run(tmp_path, "--splits", path, "--skip", *FEW)
    assert results["splits"] == results["splits_done"] == 2
    with open(tmp_path / "out" / "predictions.csv", newline="") as file:
        tested = [(row["split"], row["clip"]) for row in csv.DictReader(file)]
    assert tested == [("0", name) for name in names[::2]] + [
        ("1", name) for i, name in enumerate(names) if i % 3
    ]
    for text, match in (
        ("", "first line must be clip,NAME"),
        ("clip,a,a\nrun/p0_0,train,test\n", "first line must be clip,NAME"),
        (
            "clip,a\nrun/p0_0,maybe\n",
            "line 2 must hold a clip and train, test or nothing",
        ),
        (
            "clip,a\nrun/p0_0,train\n",
            "split 'a' must have clips to train and to test, got 1 and 0",
        ),
        (
            "clip,a\nrun/p0_0,train\n\nrun/p0_0,test\n",
            "must name a clip once, got run/p0_0 in lines 2 and 4",
        ),
        (
            "clip,a\nrun/p0_0,train\nrun/nowhere,test\n",
            "must name clips that are there and have a label, got run/nowhere in line 3",
        ),
        ("clip,a\n,train\n", "line 2 must name a clip, got none"),
    ):
        path.write_text(text)
        assert match in refused(tmp_path, "--splits", path, "--skip", *FEW)


def test_labels_that_say_nothing_of_the_clips_are_not_found(tmp_path):
    """Each clip has a look of its own: its sets find each other, if they may."""
    rng = np.random.default_rng(0)
    looks = rng.random((24, 3, 30))
    frames = np.concatenate([rng.random((20, 3)) @ look for look in looks])
    np.savez(
        tmp_path / "sets.npz",
        frames=frames,
        offset=20 * np.arange(25),
        label=np.arange(24) % 2,
        train0=np.arange(14),
        test0=np.arange(14, 24),
    )
    results = run(tmp_path, "--window", 5, *FEW, data=tmp_path / "sets.npz")
    assert results["n_sets"] == 96
    assert results["methods"]["nearest subspace"]["mean"] < 80
    assert np.sum(results["methods"]["nearest subspace"]["confusion"]) == 40


def test_recipes_are_the_functions_of_the_library():
    frames = np.random.default_rng(0).integers(0, 256, (12, 5, 6), np.uint8)
    clip = Clip("c", "a", None, [frames[:7], frames[7:]])  # two sources make one set
    np.testing.assert_array_equal(
        build_all([clip], Recipe(p=3)).X[0], from_image_set(frames, 3)
    )
    clip = clip._replace(sources=[frames])
    np.testing.assert_array_equal(
        build_all([clip], Recipe(p=3, stack=4, center=True)).X[0],
        from_image_set(block_hankel(frames, 4), 3, center=True),
    )
    np.testing.assert_array_equal(
        build_all([clip], Recipe(p=3, arma=4)).X[0], from_video(frames, 3, 4)
    )
    np.testing.assert_array_equal(
        build_all([clip], Recipe(p=3, every=2)).X[0], from_image_set(frames[::2], 3)
    )
    runs = build_all([clip], Recipe(p=2, window=5))
    assert runs.X.shape == (2, 30, 2) and runs.frame == (5, 6)
    np.testing.assert_array_equal(runs.sets[1], frames[5:10].reshape(5, 30))
    halves = build_all([clip], Recipe(p=2, resample=23)).sets[0]
    np.testing.assert_allclose(
        halves[1], (frames[0].ravel() + frames[1].ravel().astype(float)) / 2
    )
    half = build_all([clip], Recipe(p=2, window=5, steps=9)).sets
    assert len(half) == 2 and half[1].shape == (9, 30)
    np.testing.assert_allclose(half[1][::2], frames[5:10].reshape(5, 30))
    assert build_all([clip], Recipe(p=2, single=True)).X.dtype == np.float32
    with pytest.raises(ValueError, match="c: has 12 frames, and a window of 13 needs"):
        build_all([clip], Recipe(p=2, window=13))


def test_collections_keep_the_order_of_clips_and_runs(tmp_path):
    rng = np.random.default_rng(0)
    clips = [
        Clip(f"c{i}", "ab"[i % 2], i % 3, [rng.random((4 + i, 5, 6))]) for i in range(9)
    ]
    collection = build_all(clips, Recipe(p=2, window=4))
    assert collection.names[3:7] == ["c3", "c4#0", "c4#1", "c5#0"] and list(
        collection.group[4:6]
    ) == ["1", "1"]
    for basis, rows, name in zip(collection.X, collection.sets, collection.names):
        clip, _, k = name.partition("#")
        frames = clips[int(clip[1:])].sources[0][4 * int(k or 0) :][:4]
        np.testing.assert_array_equal(rows, frames.reshape(4, 30))
        np.testing.assert_array_equal(basis, from_image_set(rows, 2))


@pytest.mark.parametrize(
    "options, match",
    [
        ("--p 0", "--p must be at least 1, got 0"),
        ("--arma 2 --stack 2", "--stack and --arma exclude each other"),
        ("--arma 2 --spectrum 1", "--spectrum and --arma exclude each other"),
        ("--dpi 9", "--dpi must be at least 10, got 9"),
        ("--feature-options []", "--feature-options must be a JSON object, got []"),
        ("--train 0", "--train must lie between 0 and 1, or be a whole number, got 0"),
        (
            "--train 1.5",
            "--train must lie between 0 and 1, or be a whole number, got 1.5",
        ),
        ("--arma 2 --p 2 3", "--p must be one with --arma, got 2 3"),
        ("--strict --skip", "--strict and --skip exclude each other"),
        ("--seconds -1", "--seconds must be at least 0, got -1"),
        ("--repeats 0", "--repeats must be at least 1, got 0"),
        ("--lam nan", "--lam must be at least 0, got nan"),
        ("--C 0", "--C must be positive, got 0"),
        ("--group-by (", "--group-by must be a regular expression, got '('"),
        ("--features sift", "argument --features: invalid choice: 'sift'"),
        (
            "--feature-options {",
            "--feature-options: must be a JSON object, got '{': Expecting",
        ),
    ],
)
def test_options_are_checked(options, match, tmp_path, capsys):
    with pytest.raises(SystemExit):
        parse(["compare", str(tmp_path), *options.split()])
    assert match in capsys.readouterr().err


def test_help_reads_well(capsys):
    with pytest.raises(SystemExit, match="0"):
        parse(["--help"])
    text = capsys.readouterr().out
    assert all(word in text for word in ("class", "report.html", ".mp4", "compare DIR"))
    with pytest.raises(SystemExit, match="0"):
        parse(["compare", "--help"])
    text = capsys.readouterr().out
    assert all(
        word in text
        for word in (
            "class folders",
            "--group-by",
            "--strict",
            "clips and frames:",
            "from frames to subspaces:",
            "evaluation:",
            "methods:",
        )
    )


@pytest.mark.parametrize("error", [MemoryError(), KeyError("x"), RuntimeError("y")])
def test_whatever_a_decoder_raises_belongs_to_its_clip(tmp_path, monkeypatch, error):
    def read(source, **options):
        if source.stem == "bad":
            raise error
        return np.load(source)

    arrays(*(tmp_path / "data" / c / f"{k}.npy" for c in "ab" for k in range(3)))
    arrays(tmp_path / "data" / "a" / "bad.npy")
    monkeypatch.setattr("grassmann_sc.frames.read_frames", read)
    (why,) = run(tmp_path, *FEW)["failed"]
    assert why.startswith("a/bad.npy: ")


def photographs(folder):
    """torchvision's layout: images directly in the class folders."""
    for label in ("run", "walk"):
        images(folder / label, frames_of(label, 0, n=32))
    return folder


def test_images_in_class_folders_are_cut_into_clips(tmp_path, capsys):
    photographs(tmp_path / "data")
    results = run(tmp_path, *FEW, "--window", 5)
    assert "left out: the last 2 images of run/" in capsys.readouterr().err
    assert (
        results["methods"]["nearest subspace"]["mean"] == 100 and not results["failed"]
    )
    names = labelled(tmp_path, "--window", 5)
    assert names == {f"{c}/{k}": c for c in ("run", "walk") for k in range(6)}
    save(tmp_path / "data" / "run" / "7.png")
    (why,) = run(tmp_path, *FEW, "--window", 5, "--skip")["failed"]
    message = (
        "run/1: frames must have one size, got 12 x 16 and 4 x 6; --size 32 32 brings"
    )
    assert why.startswith(message)


@pytest.mark.parametrize(
    "options, why",
    [
        ("--arma 8 --p 2", "ARMA of 8 blocks, p = 2, needs 8"),
        ("--recipe plain --p 4 --stack 5", "p = 4 with a stack of 5 needs 8"),
        ("--recipe plain --window 8", "a window of 8 needs 8"),
    ],
)
def test_short_clips_are_lost_only_if_that_is_asked_for(tmp_path, options, why, capsys):
    for label in "ab":
        for k in range(6):
            images(tmp_path / "data" / label / str(k), frames_of("run", k, 8 - k % 2))
    words = [*options.split(), "--methods", "nearest"]
    message = refused(tmp_path, *words)
    assert f"\n  a: 3 of 6 clips, as a/1: has 7 frames, and {why}\n" in message
    assert message.endswith("\n--skip goes on without them")
    run(tmp_path, *words, "--skip", "--no-kernels", "--repeats", "1")
    assert "these clips are lost:\n  a: 3 of 6 clips" in capsys.readouterr().err


def test_images_in_class_folders_are_lost_only_if_that_is_asked_for(tmp_path, capsys):
    data = photographs(tmp_path / "data")
    message = refused(tmp_path, *FEW)
    assert (
        "no clip could be read: run/ holds 32 images directly: the images of a clip "
        "need a folder of their own, in that of their class; --window 10 cuts"
    ) in message
    assert (
        message.count("; --window 10 cuts the images of a class into clips of 10") == 2
    )
    for k in range(3):
        np.save(data / "walk" / f"{k}.npy", frames_of("walk", k))
        np.save(data / "run" / f"{k}.npy", frames_of("run", k))
    images(data / "jump", frames_of("jump", 0))
    message = refused(tmp_path, *FEW)
    assert "  jump: 1 of 1 clip, as jump/ holds 8 images directly" in message
    assert "--window 4 cuts the images of a class into clips of 4" in message
    message = "passed over: 32 images in run/, as 0.png, beside clips"
    assert message in capsys.readouterr().err
    assert {*labelled(tmp_path, "--skip").values()} == {"run", "walk"}


def arrays(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, frames_of(path.name, 0, height=4, width=4))


@pytest.mark.parametrize(
    "folder, names, hint",
    [
        (
            "x",
            ["run1.npy", "walk1.npy"],
            "if run1.npy is a clip, .* class: if x is one, name the folder above; else --labels",
        ),
        (
            "x",
            ["a.npy", "../y/b.npy"],
            "if a.npy is a clip, .* if x is one, name the folder above",
        ),
        (
            "",
            ["x/run/a.npy", "x/walk/a.npy"],
            "a clip of it is x/run/a.npy: name the folder above those of the classes",
        ),
        (
            "",
            ["x/y/run/a.npy", "x/y/walk/a.npy"],
            "a clip of it is x/y/run/a.npy: name the folder above",
        ),
    ],
)
def test_layouts_that_are_none_are_said_with_what_helps(tmp_path, folder, names, hint):
    above = tmp_path / "data"
    arrays(*(above / folder / name for name in names))
    assert re.search(hint, refused(tmp_path, data=above / folder))


def test_clips_of_one_class_that_lie_as_they_should_need_no_other_folder(tmp_path):
    arrays(tmp_path / "data" / "run" / "a.npy")
    message = refused(tmp_path)
    assert "found 1 clip of 1 class" in message and "name the folder" not in message


def test_clips_one_level_too_deep_are_named(tmp_path):
    """And counted, without those that are lost for another reason."""
    data = tmp_path / "data"
    arrays(*(data / "walk" / f"{k}.npy" for k in range(4)))
    arrays(*(data / "run" / "ann" / f"{k}.npy" for k in range(3)))
    arrays(data / "run" / "ann" / "monday" / "a.npy")
    (data / "run" / "ann" / "b.npy").write_bytes(b"damaged")
    assert "  run: 1 of 5 clips, as " in refused(tmp_path, *FEW)
    whys = run(tmp_path, *FEW, "--skip")["failed"]
    assert len(whys) == 2
    assert "run/ann/monday/a.npy: clips lie too deep" in "".join(whys)


def test_links_that_lead_back_are_not_followed(tmp_path):
    data = tmp_path / "data"
    arrays(*(data / c / f"{k}.npy" for c in "ab" for k in range(4)))
    try:
        (data / "loop").symlink_to(data)
        (data / "a" / "up").symlink_to(data)
    except OSError:
        pytest.skip("links need rights here")
    assert [*labelled(tmp_path)] == [f"{c}/{k}.npy" for c in "ab" for k in range(4)]
    # those of a folder that was come through by a link, too
    for c, other in ("ab", "ba"):
        for name in ("others", "more"):
            (data / c / name).symlink_to(data / other)
    inside = [f"{way}{k}.npy" for way in ("", "more/", "others/") for k in range(4)]
    names = [clip.name for clip in find_new_clips(data)]
    assert names == [f"{c}/{name}" for c in "ab" for name in inside]


def animation(path, frames):
    path.parent.mkdir(parents=True, exist_ok=True)
    first, *others = map(Image.fromarray, frames)
    first.save(path, save_all=True, append_images=others)


@pytest.mark.parametrize("suffix", [".gif", ".tif", ".TIFF", ".webp"])
def test_each_file_of_several_frames_is_a_clip_wherever_it_lies(tmp_path, suffix):
    for k in range(4):
        for label in ("run", "walk"):
            path = tmp_path / "data" / label / f"p{k % 2}" / f"{k}{suffix}"
            animation(path, frames_of(label, k))
        animation(tmp_path / "new" / f"{k}{suffix}", frames_of("run", k))
    names = [f"{c}/p{k % 2}/{k}{suffix}" for c in ("run", "walk") for k in (0, 2, 1, 3)]
    assert [*labelled(tmp_path)] == names
    clusters, failed = clustered(tmp_path / "new", tmp_path / "clusters")
    assert [*clusters] == [f"{k}{suffix}" for k in range(4)] and not failed


def test_images_of_one_frame_hide_no_clip_and_are_merged_with_none(tmp_path, capsys):
    frames = frames_of("run", 0)
    new = tmp_path / "new"
    arrays(new / "a.npy", new / "inner" / "c.npy")
    animation(new / "b.gif", frames[:, :4, :4])
    animation(new / "one.gif", frames[:1])
    clusters, failed = clustered(new, tmp_path / "out")
    assert [*clusters] == ["a.npy", "b.gif", "inner/c.npy"]
    (why,) = failed.values()
    assert "not both, got one.gif beside a.npy" in why
    for k in range(5):
        animation(tmp_path / "frames" / f"{k}.gif", frames[k : k + 1])
    clip = Clip("frames", None, None, [tmp_path / "frames"])
    (rows,) = build_all([clip], Recipe(p=2)).sets
    np.testing.assert_array_equal(rows, frames[:5].reshape(5, 192))


def test_images_beside_clips_of_a_group_are_of_that_group(tmp_path, capsys):
    data = tmp_path / "data"
    for label in ("run", "walk"):
        arrays(data / label / "ann" / "a.npy", data / label / "bob" / "b.npy")
    animation(data / "run" / "ann" / "poster.png", frames_of("run", 0)[:1])
    message = refused(tmp_path, *FEW)
    assert re.search("run: 1 of 3 clips, as .* got poster.png beside a.npy", message)
    assert "groups are passed over" not in capsys.readouterr().err


def test_a_reader_that_is_missing_stops_before_clips_are_lost(
    tmp_path, monkeypatch, capsys
):
    data = tmp_path / "data"
    arrays(*(data / label / f"{k}.npy" for label in "ab" for k in range(2)))
    (data / "a" / "c.mp4").write_bytes(b"a video")
    monkeypatch.setitem(sys.modules, "av", None)
    message = refused(tmp_path, *FEW)
    command = f"videos need PyAV: {sys.executable} -m pip install av"
    assert f"  a: 1 of 3 clips, as {command}\n" in message
    (data / "b" / "c.mp4").write_bytes(b"a video")
    message = refused(tmp_path, *FEW)
    assert f"  a: 1 of 3 clips, b: 1 of 3 clips, as {command}\n" in message
    arrays(*(data / label / f"{k}.npy" for label in "ab" for k in range(2, 4)))
    run(tmp_path, *FEW, "--skip")
    err = capsys.readouterr().err
    assert f"\n2 could not be used:\n  a/c.mp4, b/c.mp4: {command}\n" in err
    assert err.count("PyAV") == 2  # before the run, and at its end
    for file in data.rglob("*.npy"):
        file.unlink()
    assert refused(tmp_path, *FEW).count("PyAV") == 1


def test_a_number_of_frames_that_a_header_does_not_tell_is_unknown(
    tmp_path, monkeypatch, capsys
):
    """As those of some videos: the sum of the others would be wrong."""
    arrays(
        *(tmp_path / "data" / label / f"{k}.npy" for label in "ab" for k in range(4))
    )
    run(tmp_path, *FEW)
    assert "8 clips of 2 classes, 64 frames of 4 x 4" in capsys.readouterr().err
    shape_of = library.read_shape

    def read_shape(path, **options):
        n_frames, *size = shape_of(path, **options)
        return None if path.stem == "0" else n_frames, *size

    monkeypatch.setattr("grassmann_sc.frames.read_shape", read_shape)
    run(tmp_path, *FEW)
    line = "8 clips of 2 classes, unknown numbers of frames of 4 x 4"
    assert line in capsys.readouterr().err


def of_sizes(folder):
    """Clips of three classes: all of one, half of another have another frame size."""
    for k in range(4):
        for label, small in (("jump", k < 2), ("run", True), ("walk", False)):
            path = folder / label / f"{k}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, frames_of(label, k)[:, : 10 if small else 12])
    np.save(folder / "walk" / "4.npy", frames_of("walk", 4))
    (folder / "walk" / "text.mp4").write_text("no video")
    (folder / "empty").mkdir()


def test_sizes_that_would_cost_clips_stop_before_anything_is_decoded(
    tmp_path, capsys, monkeypatch
):
    of_sizes(tmp_path / "data")
    monkeypatch.setattr(
        "grassmann_sc.frames.read_frames", lambda *_, **how: pytest.fail("read")
    )
    with pytest.raises(SystemExit) as end:
        run(tmp_path, *FEW)
    assert end.value.code.splitlines() == [
        "grassmann-classify: these clips would be lost:",
        "  jump: 2 of 4 clips, as jump/0.npy: has frames of 10 x 16 and most clips have 12 "
        "x 16; --size 32 32 brings the frames to one size",
        "  run: 4 of 4 clips, as run/0.npy: has frames of 10 x 16 and most clips have 12 x "
        "16; --size 32 32 brings the frames to one size",
        "--skip goes on without them",
    ]
    assert capsys.readouterr().err.splitlines() == [
        "passed over: empty/, which holds no clip",
        "14 clips of 3 classes, 104 frames of 12 x 16 in 7 clips, 10 x 16 in 6 clips",
    ]


def test_clips_whose_images_all_differ_in_size_are_told_what_helps(tmp_path):
    for label in ("run", "walk"):
        images(
            tmp_path / "data" / label / "a", [np.eye(n, dtype=np.uint8) for n in (4, 5)]
        )
    with pytest.raises(
        SystemExit,
        match=r"no clip could be read: .*/1.png: frames must have one "
        r"size, frame 0 has \(4, 4\) and frame 1 \(5, 5\); --size 32 32 brings",
    ):
        run(tmp_path, *FEW)


def test_clips_of_several_sizes_are_resized_or_left_out_as_asked(tmp_path, capsys):
    of_sizes(tmp_path / "data")
    results = run(tmp_path, *FEW, "--size", 8, 8)
    assert results["n_sets"] == 13 and results["subspaces"] == [64, 2]
    assert len(results["failed"]) == 1
    capsys.readouterr()
    results = run(tmp_path, *FEW, "--skip")
    assert results["n_sets"] == 7 and results["classes"] == ["jump", "walk"]
    assert "\n  run: 4 of 4 clips" in capsys.readouterr().err


def test_a_class_that_is_damaged_as_a_whole_stops_too(tmp_path):
    of_sizes(tmp_path / "data")
    for path in (tmp_path / "data" / "jump").iterdir():
        path.write_bytes(b"")
    with pytest.raises(
        SystemExit, match="lost:\n  jump: 4 of 4 clips, as .*/0.npy: cannot be read"
    ):
        run(tmp_path, *FEW, "--size", 8, 8)


def test_raw_frames_of_as_many_pixels_in_another_shape_are_of_another_size():
    rng = np.random.default_rng(0)
    sets = [rng.random((4, *shape)) for shape in 4 * [(4, 6)] + [(6, 4)]]
    why = "set 4: has frames of 6 x 4 and most clips have 4 x 6"
    with pytest.raises(ValueError, match=why):
        fit(sets, [0, 1, 0, 1, 0])
    quick = Settings(methods=["nearest"], kernels=False)
    model = fit(sets[:4], [0, 1, 0, 1], recipe=Recipe(p=2, stack=2), settings=quick)
    with pytest.warns(
        UserWarning, match="2 of 6 sets without an answer: set 4: has fr"
    ):
        failed = predict(model, [*sets, rng.random((4, 24))]).failed
    assert failed == {
        "set 4": "set 4: has frames of 6 x 4 and the model has 4 x 6",
        "set 5": "set 5: has frames of 24 features and the model has 4 x 6",
    }
    vectors = [rows.reshape(4, 24) for rows in sets[:4]]
    model = fit(vectors, [0, 1, 0, 1], recipe=Recipe(p=2, stack=2), settings=quick)
    why = "set 1: has frames of 9 features and the model has 24 features"
    with pytest.warns(UserWarning, match=f"1 of 2 sets without an answer: {why}"):
        failed = predict(model, [vectors[0], rng.random((4, 9))]).failed
    assert failed == {"set 1": why}


def test_descriptors_of_one_length_need_no_frames_of_one_size():
    """Those of another length are told when they are made, as of clips for a model."""
    pytest.importorskip("skimage", reason="LBP needs the extra 'image'")
    rng = np.random.default_rng(0)
    sets = [rng.integers(0, 256, (6, h, 17), np.uint8) for h in (17, 18, 17, 18, 30)]
    label = [0, 1, 0, 1, 0]
    quick = Settings(methods=["nearest"], kernels=False)
    assert len(fit(sets, label, recipe=Recipe(2, "lbp"), settings=quick).labels) == 5
    hog = Recipe(p=2, features="hog", feature_options={"cells_per_block": [1, 1]})
    with pytest.raises(ValueError, match="set 4: has d = 54 and most clips have 36"):
        fit(sets, label, recipe=hog, settings=quick)
    model = fit(sets[:4], label[:4], recipe=hog, settings=quick)
    with pytest.warns(UserWarning, match="1 of 5 sets without an answer: set 4: has d"):
        failed = predict(model, sets).failed
    assert failed == {"set 4": "set 4: has d = 54 and the model has 36"}


def test_sets_in_an_array_are_resized_if_they_are_images(tmp_path):
    frames = np.concatenate(
        [frames_of("ab"[i % 2], i, height=8, width=8) for i in range(8)]
    )
    arrays = dict(
        feats=frames,
        offset=8 * np.arange(9),
        label=np.arange(8) % 2,
        train0=np.arange(4),
        test0=np.arange(4, 8),
    )
    np.savez(tmp_path / "sets.npz", **arrays)
    options = "--key", "feats", *PLAIN
    data = tmp_path / "sets.npz"
    assert run(tmp_path, *options, "--size", 4, 5, data=data)["subspaces"] == [20, 2]
    with pytest.raises(
        SystemExit, match="must hold the arrays frames, or .*it holds feats"
    ):
        run(tmp_path, *PLAIN, data=data)
    np.savez(tmp_path / "sets.npz", **{**arrays, "feats": frames.reshape(64, 64)})
    with pytest.raises(
        SystemExit, match="set 0: frames must be images to be resized, got vectors"
    ):
        run(tmp_path, *options, "--size", 4, 5, data=data)


def test_an_array_among_several_is_named_by_key(tmp_path):
    for label in "ab":
        (tmp_path / "data" / label).mkdir(parents=True)
        for k in range(4):
            frames = frames_of(label, k)
            others = {"mask": frames > 9} if label == "b" else {}
            np.savez(tmp_path / "data" / label / f"{k}.npz", feats=frames, **others)
    with pytest.raises(
        SystemExit,
        match="b: 4 of 4 clips, as .*several arrays, feats, mask, "
        "and none named frames; --key feats takes that array",
    ):
        run(tmp_path, *PLAIN)
    model = tmp_path / "model.npz"
    run_options = ["--key", "feats", *PLAIN]
    assert run(tmp_path, *run_options)["n_sets"] == 8
    out = ["--out", str(tmp_path / "out")]
    learned = ["--data", str(tmp_path / "data"), "--methods", "nearest"]
    main(["predict", *learned, "--save", str(model), *out, *map(str, run_options)])
    shutil.rmtree(tmp_path / "out")
    main(["predict", str(tmp_path / "data" / "b"), "--model", str(model), *out])
    lines = (tmp_path / "out" / "predictions.csv").read_text().splitlines()[1:]
    assert len(lines) == 4 and all(line.split(",")[1] == "b" for line in lines)
    new = find_new_clips(tmp_path / "data" / "b" / "0.npz")
    for shape, advice in ((None, "; --key feats takes"), ((192, 2, (12, 16)), "")):
        (failure,) = survey(new, Recipe(2), shape).values()
        message = "none named frames" + advice
        assert message in failure.why and ("--key" in failure.why) == bool(advice)


@pytest.mark.parametrize("n", [2, 5, 8, 31])
def test_what_is_linear_in_time_stays_so_when_it_is_resampled(n):
    ramp = np.linspace(3, 5, 8)[:, None] * np.ones((1, 4))
    clip = Clip("c", "a", None, [ramp])
    (rows,) = build_all([clip], Recipe(p=1, resample=n)).sets
    np.testing.assert_allclose(rows[:, 0], np.linspace(3, 5, n), rtol=1e-12)


def test_kept_rows_are_centred_before_stacking_where_bases_of_models_are():
    frames = np.random.default_rng(0).random((9, 6))
    clip = Clip("c", "a", None, [frames])
    for how, expected in (
        ({"arma": 3}, block_hankel(frames - frames.mean(axis=0), 3)),
        ({"stack": 3}, block_hankel(frames, 3) - block_hankel(frames, 3).mean(axis=0)),
    ):
        (rows,) = build_all([clip], Recipe(p=2, center=True, **how)).sets
        np.testing.assert_allclose(rows, expected, atol=1e-15)


def test_a_new_clip_that_cannot_be_read_has_no_answer_or_stops_if_that_is_asked_for(
    tmp_path,
):
    for label in ("run", "walk"):
        for k in range(3):
            animation(tmp_path / "data" / label / f"{k}.tif", frames_of(label, k))
    animation(tmp_path / "new" / "good.tif", frames_of("walk", 9))
    animation(tmp_path / "new" / "small.tif", frames_of("walk", 9)[:, :8])
    (tmp_path / "new" / "text.mp4").write_text("no video")
    model = str(tmp_path / "model.npz")
    options = [str(tmp_path / "new"), "--out", str(tmp_path / "out")]
    main(
        [
            "predict",
            "--data",
            str(tmp_path / "data"),
            "--methods",
            "nearest",
            "--save",
            model,
            "--p",
            "2",
            "--no-kernels",
        ]
    )
    for arguments in ([], ["--skip"]):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        main(["predict", "--model", model, *options, *arguments])
        with open(tmp_path / "out" / "predictions.csv", newline="") as file:
            rows = {row["clip"]: row for row in csv.DictReader(file)}
        assert {name: row["answer"] for name, row in rows.items()} == {
            "good.tif": "walk",
            "small.tif": "",
            "text.mp4": "",
        }
        assert rows["small.tif"]["failed"].endswith(
            "of 8 x 16 and the model has 12 x 16"
        )
        assert rows["text.mp4"]["failed"].endswith(
            "text.mp4: not a video, or cut short"
        )
    with pytest.raises(
        SystemExit, match="^grassmann-classify: .*(small.tif|text.mp4): "
    ):
        words = ["predict", "--model", model, *options, "--strict"]
        main(words, "grassmann-classify")


def test_new_clips_that_will_have_no_answer_are_said_before_anything_is_learned(
    tmp_path, capsys, monkeypatch
):
    arrays(
        *(tmp_path / "data" / label / f"{k}.npy" for label in "ab" for k in range(2))
    )
    arrays(tmp_path / "new" / "good.npy")
    animation(tmp_path / "new" / "large.gif", frames_of("a", 0))
    command = importlib.import_module("grassmann_classify.answering")
    monkeypatch.setattr(command, "learn", lambda *_: pytest.fail("learned"))
    options = [
        "predict",
        str(tmp_path / "new"),
        "--data",
        str(tmp_path / "data"),
        "--out",
        str(tmp_path / "out"),
        *map(str, PLAIN),
    ]
    with pytest.raises(pytest.fail.Exception, match="learned"):
        main(options)
    message = "1 new clip will have no answer:\n  large.gif: has frames of 12 x 16 and the model has 4"
    assert message in capsys.readouterr().err
    (tmp_path / "new" / "good.npy").unlink()
    with pytest.raises(
        SystemExit, match="no clip could be read: large.gif: has frames of 12 x 16"
    ):
        main(options)


# ------------------------------------------------------- labels, pictures, what helps


def save(path, value=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.full((4, 6), value, np.uint8)).save(path)


def test_the_picture_of_a_clip_is_its_middle_frame(tmp_path):
    for i in range(5):
        save(tmp_path / "a" / f"{i}.png", 100 + 10 * i)
    paths = [tmp_path / "a" / f"{i}.png" for i in range(5)]
    frames = 100 + 10 * np.arange(5)[:, None, None] * np.ones((5, 2, 2))
    clips = [
        Clip("a folder", "a", None, [tmp_path / "a"]),
        Clip("files", "a", None, paths),
        Clip("array", "a", None, [frames]),
    ]
    names = [clip.name for clip in clips]
    films = films_of(names, np.arange(3), clips, Recipe(), number=1)
    assert [film.max() for film in films] == [120, 120, 120]
    np.save(tmp_path / "turned.npy", frames.transpose(1, 2, 0))
    turned = [Clip("turned", "a", None, [tmp_path / "turned.npy"])]
    recipe = Recipe(axes="height,width,time")
    (film,) = films_of(["turned"], [0], turned, recipe, number=1)
    assert film.shape == (1, 2, 2) and film.max() == 120


def tables(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    rows = np.random.default_rng(0).standard_normal((9, 2))
    for name in names:
        np.savetxt(folder / f"{name}.csv", rows, delimiter=",")
    return folder


def test_an_error_names_what_a_folder_holds(tmp_path):
    data = tables(tmp_path / "data", "a", "b", "c")
    (data / "notes.txt").write_text("")
    why = refused(tmp_path)
    assert "found 0 clips of 0 classes among 3 .csv files, 1 .txt file; if a.csv" in why
    assert "--label-column names that column" in why and "--labels" in why
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SystemExit, match="arrays, tables\\), got nothing$"):
        clustered(empty, tmp_path / "out")


@pytest.mark.parametrize("header", ["clip,label", "Filename,class", "group,path,label"])
def test_an_error_names_the_labels_that_lie_there(tmp_path, header):
    data = tables(tmp_path / "data", "a", "b", "c")
    (data / "what.csv").write_text(f"{header}\n")
    message = f"what.csv has labels: --labels {data / 'what.csv'} takes them"
    assert message in refused(tmp_path)


def test_what_cannot_be_used_is_told_before_an_error_that_follows_from_it(
    tmp_path, capsys
):
    for label in "ab":
        (tmp_path / "data" / label).mkdir(parents=True)
        for k in range(4):
            rows = np.random.default_rng(k).random((6, 4))
            rows[0, 0] = np.nan if (label, k > 0) == ("a", True) else 1
            np.save(tmp_path / "data" / label / f"{k}.npy", rows)
    with pytest.raises(SystemExit, match="a has 1 that could be read"):
        main(["compare", str(tmp_path / "data"), "--out", str(tmp_path / "out")])
    err = capsys.readouterr().err
    assert "3 cannot be used: a/1.npy, a/2.npy, a/3.npy: " in err and "finite" in err


@pytest.mark.parametrize(
    "header, between, named",
    [
        ("filename,class", ",", ""),
        ("Clip,LABEL", ",", ""),
        ("class;File", ";", ""),
        ("path\tlabel\tgroup", "\t", ""),
        ("path,clip,label,class", ",", "passed over the columns path, class"),
    ],
)
def test_columns_of_labels_have_other_names_too(
    tmp_path, capsys, header, between, named
):
    """The usual names go before these; columns are separated as spreadsheets do."""
    tables(tmp_path / "data", *"abcdefgh")
    cells = {"clip": None, "label": None, "class": "none", "group": "", "path": "z"}
    lines = [header]
    usual = "clip" in header.lower()
    for k, name in enumerate("abcdefgh"):
        label = "x, y; z" if k % 2 else "sit"
        cells |= {"clip": name, "file": name, "filename": name, "label": label}
        cells |= {} if usual else {"path": name, "class": label}
        row = [cells[column.lower()] for column in header.split(between)]
        lines.append(between.join(f'"{cell}"' for cell in row))
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(lines))
    assert labelled(tmp_path, "--labels", path) == {
        f"{name}.csv": ["sit", "x, y; z"][k % 2] for k, name in enumerate("abcdefgh")
    }
    assert named in capsys.readouterr().err


def test_a_whole_name_comes_before_that_of_another_without_its_ending(tmp_path):
    """a.npy is a clip, and a.npy.npy without its ending."""
    arrays(*(tmp_path / "data" / f"{name}.npy" for name in ("a", "a.npy", *"bcdefg")))
    path = tmp_path / "labels.csv"
    path.write_text(
        "clip,label\na.npy,first\na.npy.npy,second\n"
        + "".join(
            f"{name},{'first' if name < 'e' else 'second'}\n" for name in "bcdefg"
        )
    )
    names = labelled(tmp_path, "--labels", path)
    assert (names["a.npy"], names["a.npy.npy"]) == ("first", "second")
    path.write_text("file,what\na,sit\n")
    message = refused(tmp_path, "--labels", path)
    assert re.search("clip .or filename.*got 'file,what'", message)


def test_names_are_found_as_people_read_them(tmp_path):
    """Some systems store ü as u and two dots; spreadsheets leave rows of separators."""
    names = [f"Müller {k}" for k in range(8)]
    stored = [unicodedata.normalize("NFD", name) for name in names]
    arrays(*(tmp_path / "data" / f"{name}.npy" for name in stored))
    assert stored != names
    path = tmp_path / "labels.csv"
    lines = [f"{name}.npy,{'ab'[k % 2]}" for k, name in enumerate(names)]
    path.write_text("\n".join(["clip,label", *lines, ",", " , "]), encoding="utf-8")
    labels = labelled(tmp_path, "--labels", path)
    assert labels == {f"{name}.npy": "ab"[k % 2] for k, name in enumerate(stored)}
    path.write_text("\n".join(["clip,s", *(f"{name}.npy,train" for name in names)]))
    assert parts_of_file(path, [*labels]).pairs[0][1] == [*labels]
    path.write_text("\n".join(["clip,s", *(f"{name},train" for name in names)]))
    assert parts_of_file(path, [*labels]).pairs[0][1] == [*labels]  # without endings
    path.write_text("\n".join(["clip,s", *(f"{name}.npy,train" for name in names)]))
    both = [*labels, f"{names[0]}.npy"]  # two clips: each has its own name
    assert parts_of_file(path, both).pairs[0][1] == [*both[1:]]


def test_names_are_found_as_they_are_and_as_they_are_printed(tmp_path):
    """Those that a file of labels may hold; a picture beside the clips is none of them."""
    names = [
        "a\\0.npy",
        "line\nfeed.npy",
        "clip.v1.csv",
        *(f"{k}.npy" for k in range(5)),
    ]
    arrays(*(tmp_path / "data" / name for name in names if "csv" not in name))
    images(tmp_path / "data" / "clip.v1.csv", frames_of("b", 0, 4, 4, 4))
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "data" / "overview.png")
    printed = [name.replace("\n", "\\n") for name in names]
    path = tmp_path / "labels.csv"
    lines = [f"{name},{'ab'[k % 2]}" for k, name in enumerate(printed)]
    path.write_text("\n".join(["clip,label", *lines]))
    labels = labelled(tmp_path, "--labels", path)
    assert labels == {name: "ab"[k % 2] for k, name in enumerate(printed)}
    arrays(tmp_path / "data" / "line\\nfeed.npy")
    with pytest.raises(
        ValueError, match=r"differ when they are printed, got line\\nfeed.npy of '"
    ):
        find_new_clips(tmp_path / "data")


def test_a_folder_alone_has_its_own_name(tmp_path, monkeypatch):
    arrays(tmp_path / "walk" / "0.npy")
    images(tmp_path / "sit", np.zeros((4, 8, 8), np.uint8))
    monkeypatch.chdir(tmp_path / "sit")
    assert [clip.name for clip in find_new_clips(Path("."))] == ["sit"]


def test_who_has_no_home_keeps_nothing(tmp_path, monkeypatch):
    images(tmp_path / "sit", np.full((4, 8, 8), 90, np.uint8))
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as it then does
    monkeypatch.chdir(tmp_path)
    assert decoded(tmp_path / "sit", {}).shape == (4, 8, 8)
    assert {path.name for path in tmp_path.iterdir()} == {"sit"}


def test_a_clock_is_that_of_a_table(tmp_path):
    arrays(*(tmp_path / "data" / c / f"{k}.npy" for c in "ab" for k in range(3)))
    words = ["compare", str(tmp_path / "data"), "--clock", "time", "--window", "2"]
    with pytest.raises(
        SystemExit,
        match="the clock time .--clock, or the model.s. is a column of tables",
    ):
        main([*words, "--out", str(tmp_path / "out")])


def test_windows_of_images_hold_those_of_one_group(tmp_path, capsys):
    """Else a person would be in both parts of a split."""
    for c in "ab":
        for k in range(12):
            path = tmp_path / c / f"p{k // 6}_{k:02}.png"
            path.parent.mkdir(exist_ok=True)
            Image.fromarray(np.full((4, 4), k, np.uint8)).save(path)
    clips = find_clips(tmp_path, r"p\d", Recipe(window=4))
    assert [clip.name for clip in clips] == ["a/0", "a/1", "b/0", "b/1"]
    for clip in clips:
        assert {path.name[:2] for path in clip.sources} == {clip.group}
    assert "left out: the last 2 images of a/, p0" in capsys.readouterr().err
    clips = find_clips(tmp_path, r"(\d)\.", Recipe(window=2))  # last digits: apart
    assert [clip.group for clip in clips] == ["0", "1"] * 2
    first, *_ = clips = find_clips(tmp_path, r"p\d", Recipe(window=3, every=2))
    assert [path.name for path in first.sources] == [f"p0_0{k}.png" for k in (0, 2, 4)]
    built = build_all(clips, Recipe(1, window=3, every=2, rate=2))
    assert built.spans.tolist() == [[0, 3]] * 4  # six images of half a second
    for choice, flag in (({"evenly": 2}, "--evenly"), ({"step": 2}, "--step")):
        with pytest.raises(ValueError, match=f"{flag} takes frames of a clip"):
            find_clips(tmp_path, recipe=Recipe(window=4, **choice))
