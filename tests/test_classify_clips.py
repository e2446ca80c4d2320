"""Clips are found, built once and split; unusable ones are named and stop nothing."""

import csv
import importlib
import json
import os
import re
import shutil
import sys

import numpy as np
import pytest
from PIL import Image

from grassmann_classify.__main__ import main
from grassmann_classify.building import build, build_all, look, survey
from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.finding import find_clips, find_new_clips
from grassmann_classify.npz import load_new_npz
from grassmann_classify.options import parse
from grassmann_classify.splits import split_by_file
from grassmann_classify.words import short
from grassmann_sc.subspaces import block_hankel, from_image_set, from_video

pytestmark = [
    pytest.mark.usefixtures("few_kernels"),
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


def unusable(headers):
    return {name: header.why for name, header in headers.items() if header.why}


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


def test_a_folder_becomes_a_table_results_codes_and_pictures(tree, tmp_path, capsys):
    plain = "--recipe", "plain", "--dpi", 40, "--methods", "gsc,glc,nearest,frames"
    results = run(tmp_path, "--atoms", 3, "--iterations", 1, *plain, pictures=True)
    printed = capsys.readouterr()
    names = list(results["methods"])
    assert (
        all(
            re.search(f"^{re.escape(short(name))} .* 100.0", printed.out, re.MULTILINE)
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
    with np.load(tmp_path / "out" / "codes.npz") as arrays:
        assert arrays["names"][0] == "run/p0_0" and sorted(
            [*arrays["train"], *arrays["test"]]
        ) == list(range(12))
        assert arrays["codes_gsc_labelled_sets_as_atoms"].shape == (6, 6)
        assert arrays["codes_gsc_3_learned_atoms_ridge"].shape == (6, 3)
        assert arrays["atoms_gsc_3_learned_atoms_ridge"].shape[:2] == (3, 192)
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert {
        "gram.png",
        "map.png",
        "atoms_gsc_3_learned_atoms_ridge.png",
        "codes_glc_3_learned_atoms_ridge.png",
        "confusion_nearest_subspace.png",
    } <= pictures
    assert not any(
        name.startswith("codes_nearest_subspace") or name == "wrong.png"
        for name in pictures
    )
    assert "12/12" in printed.err or "12 of 12" in printed.err


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
    end = capsys.readouterr().err.partition("5 clips could not be used:\n")[2]
    for why in (
        r"run/corrupt\.mp4: not a video, or cut short",
        "run/empty: holds no image",
        r"walk/sizes/8\.png: frames must have one size",
        "walk/other: has frames of 20 x 16 and most clips have 12 x 16",
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
    assert len(list((tmp_path / "out").glob("*.png"))) >= 5
    names = [clip.name for clip in find_clips(tmp_path / "data")]
    path = tmp_path / "splits.csv"
    path.write_text("clip,s\nsea\x1b[31m/0.npy,train\nsea\\x1b[31m/1.npy,test\n")
    assert [names[part[0]] for part in split_by_file(path, names)[0]] == [
        r"sea\x1b[31m/0.npy",
        r"sea\x1b[31m/1.npy",
    ]


def test_a_picture_that_cannot_be_drawn_costs_neither_table_nor_others(
    tree, tmp_path, capsys, monkeypatch
):
    def fail(*arguments):
        said = capsys.readouterr()
        assert "accuracy in %" in said.out
        raise RuntimeError("no ink")

    monkeypatch.setattr("grassmann_sc.plots.plot_map", fail)
    run(tmp_path, *FEW, "--dpi", 40, pictures=True)
    assert "no picture map: no ink" in capsys.readouterr().err
    left = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert "map.png" not in left and {"gram.png", "atoms.png"} <= left


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
        match="must hold two or more class folders of clips .* found 1 clip of 1 class",
    ):
        run(tmp_path)


def test_groups_are_folders_or_parts_of_names(tree, tmp_path, capsys):
    results = run(tmp_path, "--group-by", r"^(p\d)_", *FEW)
    assert results["splits"] == 3
    nested = tmp_path / "nested"
    for label in ("run", "walk"):
        for k in range(6):
            images(nested / label / f"person{k % 2}" / f"clip{k}", frames_of(label, k))
    clips = find_clips(nested)
    assert {clip.group for clip in clips} == {"person0", "person1"} and clips[
        0
    ].name == "run/person0/clip0"
    assert run(tmp_path, *FEW, data=nested)["splits"] == 2
    capsys.readouterr()
    images(nested / "run" / "alone", frames_of("run", 7))
    find_clips(nested)
    said = "groups are passed over: 1 of 13 clips lie in no folder of a group"
    assert said in capsys.readouterr().err
    with pytest.raises(
        SystemExit, match="the name has no group, 'x' does not match it"
    ):
        run(tmp_path, "--group-by", "x")


def test_splits_from_a_file(tree, tmp_path):
    names = [clip.name for clip in find_clips(tree)]
    path = tmp_path / "splits.csv"
    path.write_text(
        "clip,a,b\n"
        + "".join(
            f"{name},{'train' if i % 2 else 'test'},{'test' if i % 3 else 'train'}\n"
            for i, name in enumerate(names)
        ),
        encoding="utf-8-sig",  # as Excel leaves it
    )
    pairs = split_by_file(path, names)
    assert [list(part) for part in pairs[0]] == [
        list(range(1, 12, 2)),
        list(range(0, 12, 2)),
    ]
    assert list(pairs[1][0]) == [0, 3, 6, 9]
    assert run(tmp_path, "--splits", path, *FEW)["splits"] == 2
    for text, match in (
        ("", "first line must be clip,NAME"),
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
            "must name clips that are there, got run/nowhere in line 3",
        ),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=match):
            split_by_file(path, names)


def test_clips_that_could_not_be_read_are_passed_over_and_said(tree, tmp_path, capsys):
    names = [clip.name for clip in find_clips(tree)]
    broken(tree)
    path = tmp_path / "splits.csv"
    lines = [f"{name},{'train' if i % 2 else 'test'}" for i, name in enumerate(names)]
    path.write_text(
        "\n".join(["clip,s", *lines, "run/corrupt.mp4,train", "walk/other,test"])
    )
    assert run(tmp_path, "--splits", path, "--skip", *FEW)["splits_done"] == 1
    said = "passed over 2 clips that could not be read: run/corrupt.mp4, walk/other"
    assert said in capsys.readouterr().err


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
    results = run(tmp_path, "--run", 5, *FEW, data=tmp_path / "sets.npz")
    assert results["n_sets"] == 96
    assert results["methods"]["nearest subspace"]["mean"] < 80
    assert np.sum(results["methods"]["nearest subspace"]["confusion"]) == 40


def test_recipes_are_the_functions_of_the_library():
    frames = np.random.default_rng(0).integers(0, 256, (12, 5, 6), np.uint8)
    clip = Clip("c", "a", None, [frames[:7], frames[7:]])  # two sources make one set
    np.testing.assert_array_equal(
        build(clip, Recipe(p=3)).bases[0], from_image_set(frames, 3)
    )
    clip = clip._replace(sources=[frames])
    np.testing.assert_array_equal(
        build(clip, Recipe(p=3, stack=4, center=True)).bases[0],
        from_image_set(block_hankel(frames, 4), 3, center=True),
    )
    np.testing.assert_array_equal(
        build(clip, Recipe(p=3, arma=4)).bases[0], from_video(frames, 3, 4)
    )
    np.testing.assert_array_equal(
        build(clip, Recipe(p=3, every=2)).bases[0], from_image_set(frames[::2], 3)
    )
    runs = build(clip, Recipe(p=2, run=5), keep_rows=True)
    assert runs.bases.shape == (2, 30, 2) and runs.frame == (5, 6)
    np.testing.assert_array_equal(runs.rows[1], frames[5:10].reshape(5, 30))
    halves = build(clip, Recipe(p=2, resample=23), keep_rows=True).rows[0]
    np.testing.assert_allclose(
        halves[1], (frames[0].ravel() + frames[1].ravel().astype(float)) / 2
    )
    assert build(clip, Recipe(p=2, single=True)).bases.dtype == np.float32
    with pytest.raises(ValueError, match="a window takes 13 frames, got 12"):
        build(clip, Recipe(p=2, run=13))


def test_collections_keep_the_order_of_clips_and_runs(tmp_path):
    rng = np.random.default_rng(0)
    clips = [
        Clip(f"c{i}", "ab"[i % 2], i % 3, [rng.random((4 + i, 5, 6))]) for i in range(9)
    ]
    collection = build_all(clips, Recipe(p=2, run=4), keep_rows=True)
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
        ("--feature-options {", "invalid loads value: '{'"),
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

    made = [
        Clip(name, "a", None, [tmp_path / name]) for name in ("good.npy", "bad.npy")
    ]
    for clip in made:
        np.save(clip.sources[0], np.random.default_rng(0).standard_normal((4, 6)))
    monkeypatch.setattr("grassmann_sc.frames.read_frames", read)
    collection = build_all(made, Recipe(p=2))
    assert collection.names == ["good.npy"]
    (why,) = collection.unusable.values()
    assert why.startswith("bad.npy: ")


def photographs(folder):
    """torchvision's layout: images directly in the class folders."""
    for label in ("run", "walk"):
        images(folder / label, frames_of(label, 0, n=32))
    return folder


def test_images_in_class_folders_are_cut_into_clips(tmp_path):
    data = photographs(tmp_path / "data")
    clips = find_clips(data, run=5)
    assert [clip.name for clip in clips[5:7]] == ["run/5", "walk/0"] and len(
        clips
    ) == 12
    assert [path.name for path in clips[2].sources] == [
        f"{i}.png" for i in range(10, 15)
    ]
    results = run(tmp_path, *FEW, "--run", 5)
    assert (
        results["n_sets"] == 12
        and results["methods"]["nearest subspace"]["mean"] == 100
    )


def test_images_in_class_folders_are_lost_only_if_that_is_asked_for(tmp_path, capsys):
    data = photographs(tmp_path / "data")
    expected = (
        "found 0 clips of 0 classes among 2 folders; run/ holds 32 images directly: the "
        "images of a clip need a folder of their own, or --run 10 cuts them into clips"
    )
    with pytest.raises(ValueError, match=expected):
        find_clips(data)
    np.save(data / "walk" / "a.npy", frames_of("walk", 0))
    np.save(data / "run" / "a.npy", frames_of("run", 0))
    images(data / "jump", frames_of("jump", 0))
    found = find_clips(data)
    said = capsys.readouterr().err
    assert "passed over: 32 images in run/, as 0.png, beside clips" in said
    with pytest.raises(
        ValueError, match="jump: its one clip, as .* 8 images(.|\n)*--run 10 cuts"
    ):
        look(found, Recipe(p=2))
    assert [*unusable(look(found, Recipe(p=2), skip=True))] == ["jump"]


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
            "those of each class .* as .*/data/x/CLASS/run1.npy$",
        ),
        (
            "x",
            ["a.npy", "../y/b.npy"],
            "or, if x is a class as y beside it is, name .*/data$",
        ),
        ("", ["x/run/a.npy", "x/walk/a.npy"], "as x/run and x/walk: name .*/data/x$"),
        (
            "",
            ["x/y/run/a.npy", "x/y/walk/a.npy"],
            "as x/y/run and x/y/walk: name .*/data/x/y$",
        ),
    ],
)
def test_layouts_that_are_none_are_said_with_what_helps(tmp_path, folder, names, hint):
    above = tmp_path / "data"
    arrays(*(above / folder / name for name in names))
    with pytest.raises(ValueError, match=hint):
        find_clips(above / folder)


def test_clips_one_level_too_deep_are_named(tmp_path):
    arrays(
        tmp_path / "walk" / "a.npy",
        tmp_path / "run" / "ann" / "a.npy",
        tmp_path / "run" / "ann" / "monday" / "a.npy",
    )
    headers = look(find_clips(tmp_path), Recipe(p=2), skip=True)
    (why,) = unusable(headers).values()
    assert "clips lie too deep, as " in why
    assert headers["run/ann/monday"] == (None, None, why, "")


def test_links_that_lead_back_are_not_followed(tmp_path):
    for label in "ab":
        (tmp_path / label).mkdir()
        np.save(tmp_path / label / "clip.npy", np.eye(4))
    try:
        (tmp_path / "loop").symlink_to(tmp_path)
        (tmp_path / "a" / "up").symlink_to(tmp_path)
    except OSError:
        pytest.skip("links need rights here")
    assert [clip.name for clip in find_clips(tmp_path)] == ["a/clip.npy", "b/clip.npy"]


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
    found = find_clips(tmp_path / "data")
    assert [clip.name for clip in found][:3] == [
        f"run/p0/0{suffix}",
        f"run/p0/2{suffix}",
        f"run/p1/1{suffix}",
    ]
    assert [clip.group for clip in found] == ["p0", "p0", "p1", "p1"] * 2
    assert len(find_new_clips(tmp_path / "new")) == 4
    assert build_all(found, Recipe(p=2)).X.shape == (8, 192, 2)


def test_images_of_one_frame_hide_no_clip_and_are_merged_with_none(tmp_path, capsys):
    frames = frames_of("run", 0)
    new = tmp_path / "new"
    arrays(new / "a.npy", new / "inner" / "c.npy")
    animation(new / "b.gif", frames[:, :4, :4])
    animation(new / "one.gif", frames[:1])
    collection = build_all(find_new_clips(new), Recipe(p=2))
    assert collection.names == ["a.npy", "b.gif", "inner/c.npy"]
    (why,) = collection.unusable.values()
    assert "not both, got one.gif beside a.npy" in why
    for k in range(5):
        animation(tmp_path / "frames" / f"{k}.gif", frames[k : k + 1])
    (clip,) = find_new_clips(tmp_path / "frames")
    np.testing.assert_array_equal(
        build(clip, Recipe(p=2), keep_rows=True).rows[0], frames[:5].reshape(5, 192)
    )


def test_images_beside_clips_of_a_group_are_of_that_group(tmp_path, capsys):
    for label in ("run", "walk"):
        arrays(tmp_path / label / "ann" / "a.npy", tmp_path / label / "bob" / "b.npy")
    animation(tmp_path / "run" / "ann" / "poster.png", frames_of("run", 0)[:1])
    found = find_clips(tmp_path)
    assert [(clip.name, clip.group) for clip in found[:3]] == [
        ("run/ann", "ann"),
        ("run/ann/a.npy", "ann"),
        ("run/bob/b.npy", "bob"),
    ]
    assert not capsys.readouterr().err
    with pytest.raises(
        ValueError, match="run: 1 of 3 clips, as .* got poster.png beside a.npy"
    ):
        look(found, Recipe(p=2))


def test_a_reader_that_is_missing_stops_before_clips_are_lost(tmp_path, monkeypatch):
    arrays(*(tmp_path / label / f"{k}.npy" for label in "ab" for k in range(2)))
    (tmp_path / "a" / "c.mp4").write_bytes(b"a video")
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ValueError, match="a: 1 of 3 clips, as .*need PyAV: pip inst"):
        look(find_clips(tmp_path), Recipe(p=2))


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
        "  run: all 4 clips, as run/0.npy: has frames of 10 x 16 and most clips have 12 x 16",
        "  jump: 2 of 4 clips, as jump/0.npy: has frames of 10 x 16 and most clips have 12 x 16",
        "--size 32 32 brings the frames to one size",
        "--skip goes on without them",
    ]
    assert capsys.readouterr().err.splitlines() == [
        "passed over: empty/, which holds no clip",
        "14 clips of 3 classes, 104 frames of 12 x 16 in 7 clips, 10 x 16 in 6 clips",
        "1 clip cannot be read:",
        f"  {tmp_path}/data/walk/text.mp4: not a video, or cut short",
    ]


def test_clips_whose_images_all_differ_in_size_are_told_what_helps(tmp_path):
    for label in ("run", "walk"):
        images(
            tmp_path / "data" / label / "a", [np.eye(n, dtype=np.uint8) for n in (4, 5)]
        )
    with pytest.raises(
        SystemExit,
        match=r"no clip could be read: .*/1.png: frames must have one "
        r"size, frame 0 has \(4, 4\) and frame 1 \(5, 5\)(.*)\n--size 32 32 brings",
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
    assert "these clips are lost:\n  run: all 4 clips" in capsys.readouterr().err


def test_a_class_that_is_damaged_as_a_whole_stops_too(tmp_path):
    of_sizes(tmp_path / "data")
    for path in (tmp_path / "data" / "jump").iterdir():
        path.write_bytes(b"")
    with pytest.raises(
        SystemExit, match="lost:\n  jump: all 4 clips, as .*/0.npy: cannot be read"
    ):
        run(tmp_path, *FEW, "--size", 8, 8)


def test_raw_frames_of_as_many_pixels_in_another_shape_are_of_another_size():
    rng = np.random.default_rng(0)
    made = [
        Clip(name, "a", None, [rng.random((4, *shape))])
        for name, shape in (("x", (4, 6)), ("y", (4, 6)), ("z", (6, 4)), ("v", (24,)))
    ]
    assert [*unusable(survey(made, Recipe(p=2)))] == ["z", "v"]


def test_descriptors_of_one_length_need_no_frames_of_one_size():
    """Those of another length are told when they are made, as of clips for a model."""
    pytest.importorskip("skimage", reason="LBP needs the extra 'image'")
    rng = np.random.default_rng(0)
    made = [
        Clip(str(h), "a", None, [rng.integers(0, 256, (6, h, 17), np.uint8)])
        for h in (17, 18, 30)
    ]
    assert build_all(made, Recipe(p=2, features="lbp")).names == ["17", "18", "30"]
    hog = Recipe(p=2, features="hog", feature_options={"cells_per_block": [1, 1]})
    assert not unusable(survey(made, hog))
    assert build_all(made, hog).unusable == {
        "30": "30: has d = 54 and most clips have 36"
    }
    with pytest.raises(ValueError, match="30: has d = 54 and the model has 36"):
        build_all(made[2:], hog, shape=(36, 1, ()))


def test_clips_of_another_size_than_a_models_are_told_from_headers():
    clip = Clip("c", None, None, [np.zeros((4, 9, 9), np.uint8)])
    why = {"c": "c: has frames of 9 x 9 and the model has 8 x 8"}
    assert unusable(survey([clip], Recipe(p=2, stack=2), (128, 1, (8, 8)))) == why
    clip = clip._replace(sources=[np.zeros((4, 9))])
    why = {"c": "c: has frames of 9 features and the model has 8 features"}
    assert unusable(survey([clip], Recipe(p=2, stack=2), (16, 1, ()))) == why


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
    assert [clip.name for clip in load_new_npz(data, "feats")][-1] == "set 7"
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
        match="b: all 4 clips, as .*several arrays, feats, mask, "
        "and none named frames\n--key feats takes that array",
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


@pytest.mark.parametrize("n", [2, 5, 8, 31])
def test_what_is_linear_in_time_stays_so_when_it_is_resampled(n):
    ramp = np.linspace(3, 5, 8)[:, None] * np.ones((1, 4))
    (rows,) = build(
        Clip("c", "a", None, [ramp]), Recipe(p=1, resample=n), keep_rows=True
    ).rows
    np.testing.assert_allclose(rows[:, 0], np.linspace(3, 5, n), rtol=1e-12)


def test_kept_rows_are_centred_before_stacking_where_bases_of_models_are():
    frames = np.random.default_rng(0).random((9, 6))
    clip = Clip("c", "a", None, [frames])
    for how, expected in (
        ({"arma": 3}, block_hankel(frames - frames.mean(axis=0), 3)),
        ({"stack": 3}, block_hankel(frames, 3) - block_hankel(frames, 3).mean(axis=0)),
    ):
        (rows,) = build(clip, Recipe(p=2, center=True, **how), keep_rows=True).rows
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
            *options,
        ]
    )
    for arguments in ([], ["--skip"]):
        shutil.rmtree(tmp_path / "out")
        main(["predict", "--model", model, *options, *arguments])
        with open(tmp_path / "out" / "predictions.csv", newline="") as file:
            rows = {row["clip"]: row for row in csv.DictReader(file)}
        assert {name: row["label"] for name, row in rows.items()} == {
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
        asked = ["predict", "--model", model, *options, "--strict"]
        main(asked, "grassmann-classify")


def test_new_clips_that_will_have_no_answer_are_said_before_anything_is_learned(
    tmp_path, capsys, monkeypatch
):
    arrays(
        *(tmp_path / "data" / label / f"{k}.npy" for label in "ab" for k in range(2))
    )
    arrays(tmp_path / "new" / "good.npy")
    animation(tmp_path / "new" / "large.gif", frames_of("a", 0))
    command = importlib.import_module("grassmann_classify.predict")
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
    said = "1 new clip will have no answer:\n  large.gif: has frames of 12 x 16 and the model has 4"
    assert said in capsys.readouterr().err
    (tmp_path / "new" / "good.npy").unlink()
    with pytest.raises(
        SystemExit, match="no clip could be read: large.gif: has frames of 12 x 16"
    ):
        main(options)
