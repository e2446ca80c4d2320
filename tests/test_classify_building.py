"""What was decoded once is kept in the user's cache, by all that it depends on."""

import csv
import errno
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import grassmann_sc as core
from grassmann_classify import building, inputs
from grassmann_classify import clips as application
from grassmann_classify.__main__ import main
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip
from grassmann_classify.finding import find_clips
from grassmann_classify.settings import Paths, Recipe, Settings

pytestmark = [
    pytest.mark.filterwarnings("error:::grassmann_classify"),
]

RNG = np.random.default_rng(0)
FRAMES = RNG.integers(1, 256, (9, 12, 10), np.uint8)
OTHERS = RNG.integers(1, 256, (9, 12, 10), np.uint8)
BASE = Recipe(p=2)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The user's empty cache: a function that lists its files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return lambda: sorted((tmp_path / "home" / "grassmann-classify").glob("*"))


@pytest.fixture
def never_decoded(monkeypatch):
    """A function after whose call nothing is decoded."""
    fail = lambda *_, **options: pytest.fail("decoded again")  # noqa: E731
    return lambda: monkeypatch.setattr("grassmann_sc.frames.read_frames", fail)


def save(folder, frames, first=0):
    folder.mkdir(parents=True, exist_ok=True)
    for i, frame in enumerate(frames, first):
        Image.fromarray(frame).save(folder / f"{i}.png")
    return Clip(folder.name, "a", None, [folder])


def table(path, numbers, names="ax,ay,az"):
    lines = [",".join(map(str, row)) for row in numbers]
    path.write_text("\n".join([names, *lines]) + "\n")
    return Clip(path.name, "a", None, [path])


def built(clip, recipe=BASE, **options):
    return build_all([clip], recipe, strict=True, **options)


def same(first, second):
    """Are two Collections the same, to the bit?"""
    arrays = [[part.X, *(part.sets or [])] for part in (first, second)]
    bits = [[(A.dtype, A.shape, A.tobytes()) for A in part] for part in arrays]
    return bits[0] == bits[1] and first.frame == second.frame


# -------------------------------------------------------------------------- the key


@pytest.mark.parametrize("option", [{"size": (6, 5)}, {"every": 2}, {"evenly": 4}])
def test_another_choice_of_frames_is_kept_beside_the_first(
    tmp_path, cache, never_decoded, option
):
    clip = save(tmp_path / "clip", FRAMES)
    both = BASE, replace(BASE, **option)
    fresh = []
    for n, recipe in enumerate(both, 1):
        fresh.append(built(clip, recipe))
        assert len(cache()) == n
    assert not same(*fresh)
    never_decoded()
    for recipe, expected in zip(both, fresh):
        assert same(built(clip, recipe), expected)


def test_what_comes_after_frames_needs_no_other_file(tmp_path, cache, never_decoded):
    clip = save(tmp_path / "clip", FRAMES)
    built(clip)
    never_decoded()
    for option in (
        {"p": 3},
        {"stack": 2, "center": True},
        {"window": 4, "step": 2},
        {"arma": 2},
        {"resample": 5, "single": True},
        {"features": "lbp", "feature_options": {"grid": [2, 2]}},
        {"p": None},
    ):
        recipe = replace(BASE, **option)
        expected = built(clip._replace(sources=[FRAMES]), recipe)
        assert same(built(clip, recipe), expected)
    assert len(cache()) == 1


def test_tables_are_kept_by_their_columns_and_clips_in_arrays_are_not(tmp_path, cache):
    clip = table(tmp_path / "clip.csv", RNG.random((6, 3)))
    columns = None, ("ax", "ay"), ("ay", "ax")
    made = [built(clip, Recipe(p=1, columns=names)).X for names in columns]
    assert len(cache()) == 3
    np.testing.assert_allclose(made[1], made[2][:, ::-1], atol=1e-12)
    assert made[0].shape[1] == 3
    np.save(tmp_path / "clip.npy", FRAMES)
    built(Clip("clip.npy", "a", None, [tmp_path / "clip.npy"]))
    built(Clip("array", "a", None, [FRAMES]))
    assert len(cache()) == 3


def test_another_version_of_the_program_decodes_anew(tmp_path, cache, monkeypatch):
    clip = save(tmp_path / "clip", FRAMES)
    built(clip)
    monkeypatch.setattr(application, "VERSION", application.VERSION + 1)
    built(clip)
    assert len(cache()) == 2


def test_a_byte_anywhere_in_a_long_file_is_another_clip(tmp_path, cache):
    """At the end of 5 MB too, which are read in pieces; the folder's name does not matter."""
    clip = save(tmp_path / "clip", RNG.integers(0, 256, (1, 2300, 2300), np.uint8))
    recipe = Recipe(p=1, size=(4, 4))
    path = tmp_path / "clip" / "0.png"
    content = path.read_bytes()
    assert len(content) > 2**22
    for n, end in enumerate([b"", b"x", b"y"], 1):
        path.write_bytes(content + end)
        built(clip, recipe)
        assert len(cache()) == n
    (tmp_path / "clip").rename(tmp_path / "renamed")
    built(clip._replace(sources=[tmp_path / "renamed"]), recipe)
    assert len(cache()) == 3


def test_images_of_a_folder_are_told_by_content_name_and_where_each_ends(
    tmp_path, cache
):
    """One image behind which another's bytes lie is not two images."""
    folder = tmp_path / "clip"
    clip = save(folder, FRAMES[:3])
    recipe = Recipe(p=1)

    def check(n):
        frames = [
            np.array(Image.open(file)) for file in sorted(folder.iterdir(), key=order)
        ]
        assert same(
            built(clip, recipe),
            built(clip._replace(sources=[np.stack(frames)]), recipe),
        )
        assert len(cache()) == n

    def order(file):
        return int(file.stem)

    check(1)
    (folder / "1.png").rename(folder / "10.png")
    check(2)  # the last, not the second, though not in the order of texts
    save(folder, FRAMES[5:6], 10)
    check(3)
    save(folder, FRAMES[6:7], 11)
    check(4)
    shutil.rmtree(folder)
    save(folder, FRAMES[:2])
    two = [(folder / f"{i}.png").read_bytes() for i in range(2)]
    check(5)
    (folder / "1.png").unlink()
    for n, between in enumerate([b"", b"1.png", b"1.png\0", b"1.png\0\0"], 6):
        (folder / "0.png").write_bytes(two[0] + between + two[1])
        check(n)


def test_the_kind_of_a_file_is_part_of_the_key(tmp_path, cache):
    clip = table(tmp_path / "clip.csv", RNG.random((6, 3)))
    built(clip)
    shutil.copy(tmp_path / "clip.csv", tmp_path / "clip.tsv")
    shutil.copy(tmp_path / "clip.csv", tmp_path / "clip.CSV")
    for name in ("clip.tsv", "clip.CSV"):
        built(clip._replace(sources=[tmp_path / name]))
    assert len(cache()) == 2


# ---------------------------------------------------------- it may be lost at any time


class Harmful:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("the cache runs what it holds",)


def damaged(path):
    """Ways in which a file of the cache can be damaged, each applied when it is asked."""
    content = path.read_bytes()
    for part in (b"", content[:100], content[:-40], bytes(len(content))):
        path.write_bytes(part)
        yield
    middle = len(content) // 2
    path.write_bytes(content[:middle] + b"damaged!" + content[middle + 8 :])
    yield
    np.savez(path, film=FRAMES)
    yield
    np.savez(path, frames=np.array([Harmful()] * 2, object))
    yield
    with open(path, "wb") as file:
        np.save(file, FRAMES)
    yield
    path.unlink()
    yield


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_file_of_the_cache_is_decoded_anew(tmp_path, cache, monkeypatch):
    """It is right again after that."""
    clip = save(tmp_path / "clip", FRAMES)
    expected = built(clip)
    (path,) = cache()
    read = building.frames.read_frames
    calls = []
    monkeypatch.setattr(
        "grassmann_sc.frames.read_frames",
        lambda *given, **options: calls.append(1) or read(*given, **options),
    )
    for n, _ in enumerate(damaged(path), 1):
        for _ in range(2):
            assert same(built(clip), expected) and len(calls) == n
        assert cache() == [path]
    assert n == 9


def test_a_cache_that_cannot_be_written_to_costs_no_clip(tmp_path, monkeypatch, capsys):
    """There is a file in its place, or the disk is full: nothing is said, and no error."""
    clip = save(tmp_path / "clip", FRAMES)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    expected = built(clip)

    def write_whole(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(application.files, "write_whole", write_whole)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "full"))
    assert same(built(clip), expected)
    assert "cache" not in capsys.readouterr().err


def test_the_cache_lies_in_the_home_folder_if_nothing_else_is_said(
    tmp_path, monkeypatch
):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    built(save(tmp_path / "clip", FRAMES))
    assert len([*(tmp_path / ".cache" / "grassmann-classify").iterdir()]) == 1


def test_what_was_not_used_for_longest_goes_first(tmp_path, cache, monkeypatch):
    clips = [save(tmp_path / f"{k}", FRAMES + k) for k in range(4)]
    paths = []
    for k, clip in enumerate(clips[:3]):
        built(clip)
        (path,) = {*cache()} - {*paths}
        paths.append(path)
        os.utime(path, (k, k))
    built(clips[0])  # it is used again
    size = paths[0].stat().st_size
    monkeypatch.setattr(application, "MOST_CACHED", int(2.5 * size))
    built(clips[3])
    assert len(cache()) == 2 and paths[0] in cache()


# --------------------------------------------------------------------- rows of all sets


def test_rows_that_are_too_many_are_not_kept_and_cost_no_subspace():
    clips = [Clip(f"{i}", "ab"[i % 2], None, [FRAMES[: 5 + i]]) for i in range(4)]
    rows = build_all(clips, BASE)
    assert len(rows.sets) == 4
    total = sum(A.nbytes for A in rows.sets)
    for most in (0, total, total + 1, np.inf):
        made = build_all(clips, BASE, most_rows=most)
        assert same(made, rows if most > total else rows._replace(sets=None))


def test_no_rows_are_held_that_nobody_asks_for_or_that_are_too_many(monkeypatch):
    """Beyond the bound, but for those of clips that are read at the same time."""
    clips = [Clip(f"{i}", "a", None, [FRAMES + i]) for i in range(40)]
    keep = building.kept_rows
    kept = []

    def noted(rows, recipe):
        kept.append(1)
        return keep(rows, recipe)

    monkeypatch.setattr(building, "kept_rows", noted)
    build_all(clips, BASE, most_rows=0)
    assert not kept
    build_all(clips, BASE, most_rows=FRAMES.size * 8)
    assert 1 <= len(kept) <= core.thread_count() + 2


# -------------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two classes of three clips, folders of images; two new ones."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    patterns = rng.random((2, 3, 16 * 18))
    for k in range(8):
        rows = rng.random((8, 3)) @ patterns[k % 2] / 3 + 0.1 * rng.random((8, 288))
        frames = (255 * rows / rows.max()).astype(np.uint8).reshape(8, 16, 18)
        part = f"data/{'ab'[k % 2]}" if k < 6 else "new"
        save(folder / part / f"{k}", frames)
    return folder


PLAIN = "--recipe", "plain"
RUNS = [  # one after another
    PLAIN,
    (*PLAIN, "--size", "8", "9"),
    (*PLAIN, "--every", "2"),
    (*PLAIN, "--evenly", "4"),
    (*PLAIN, "--center", "--stack", "2"),
    (*PLAIN, "--window", "4"),
    (*PLAIN, "--features", "lbp"),
]


def answers(data, out, options):
    """What predict writes."""
    given = ["predict", str(data / "new"), "--data", str(data / "data"), "--p", "2"]
    rows = ["--methods", "gsc", "--lam", "0.1", "--no-kernels", "--no-pictures"]
    main([*given, *rows, *options, "--out", str(out)], "grassmann-classify")
    with open(out / "predictions.csv", newline="", encoding="utf-8") as file:
        return [*csv.reader(file)]


def test_a_second_run_decodes_nothing_and_other_options_give_what_they_give_alone(
    data, tmp_path, cache, monkeypatch
):
    pytest.importorskip("skimage", reason="lbp needs the extra 'image'")
    fresh = []
    for k, options in enumerate(RUNS):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / f"home{k}"))
        fresh.append(answers(data, tmp_path / f"fresh{k}", options))
    assert len({str(table) for table in fresh}) == len(RUNS)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for k, options in enumerate(RUNS):
        assert answers(data, tmp_path / f"first{k}", options) == fresh[k]
    written = [path.stat().st_ino for path in cache()]
    assert len(written) == 4 * 8  # by sizes and by choices of frames
    for k, options in enumerate(RUNS[:3]):
        assert answers(data, tmp_path / f"second{k}", options) == fresh[k]
    assert [path.stat().st_ino for path in cache()] == written


def bars(folder, n=8, shape=(30, 60)):
    """Class folders of .npy clips of a bright bar, upright or not, of frames of a shape."""
    rng = np.random.default_rng(0)
    for i in range(n):
        (folder / f"k{i % 2}").mkdir(parents=True, exist_ok=True)
        clip = rng.integers(0, 60, (6, *shape), np.uint8)
        for k, frame in enumerate(clip):
            (frame.T if i % 2 else frame)[4 + k : 8 + k] = 255
        np.save(folder / f"k{i % 2}" / f"{i}.npy", clip)
    return folder


def test_frames_that_are_too_large_in_all_are_read_smaller(
    tmp_path, capsys, monkeypatch
):
    """As many as fit, of at least 16 pixels a side; a model reads new clips so, too."""
    folder = bars(tmp_path / "data")
    rest = ["--out", str(tmp_path / "out"), "--no-pictures"]
    saved = ["--methods", "gsc", "--p", "2", "--save", str(tmp_path / "m.npz")]
    # 8 clips of 6 frames in float64 take 691,200 bytes, those of 16 x 32 196,608
    monkeypatch.setattr(inputs, "MOST_ROWS", 400_000)
    said = "frames of 30 x 60 take about 0.0 GiB in all: read at 16 x 32; --size tells"
    main(["predict", str(folder), "--data", str(folder), *saved, *rest])
    printed = capsys.readouterr().err
    assert said in printed and "recipes to choose from" in printed
    main(["predict", str(folder), "--model", str(tmp_path / "m.npz"), *rest])
    rows = capsys.readouterr().out.splitlines()[2:10]
    assert [row.split()[1] for row in rows] == ["k0"] * 4 + ["k1"] * 4
    main(["cluster", str(folder), "-k", "2", *rest])
    assert said in capsys.readouterr().err
    few = ["--methods", "gsc", "--p", "2", *rest]
    for options in (["--size", "30", "60"], ["--kernels"]):
        main(["compare", str(folder), *options, *few])
        assert "read at" not in capsys.readouterr().err
    monkeypatch.setattr(inputs, "MOST_ROWS", 691_200)
    main(["compare", str(folder), *few])
    assert "read at" not in capsys.readouterr().err


def test_no_size_is_above_96_pixels_and_only_images_have_one(
    tmp_path, capsys, monkeypatch
):
    def recipe_for(folder, plain=False, **changes):
        clips = find_clips(folder)
        settings = Settings(kernels=None)
        if plain:
            settings = replace(settings, features=["raw"], center=False, stack=[1])
        return inputs.with_size(clips, Recipe(**changes), settings).size

    monkeypatch.setattr(inputs, "MOST_ROWS", 10_000_000)
    large = bars(tmp_path / "large", 6, (200, 300))
    assert recipe_for(large) == (64, 96)
    assert recipe_for(large, single=True) is None
    assert recipe_for(large, every=3) is None
    assert recipe_for(large, every=3, window=2, step=1) == (64, 96)
    assert recipe_for(large, resample=2) is None
    assert recipe_for(large, plain=True) is None
    monkeypatch.setattr(inputs, "MOST_ROWS", 100)
    assert recipe_for(bars(tmp_path / "narrow", 6, (10, 90))) is None
    vectors = tmp_path / "vectors"
    for c in "ab":
        (vectors / c).mkdir(parents=True)
        np.save(vectors / c / "0.npy", np.ones((6, 200)))
    assert recipe_for(vectors) is None
    np.save(large / "k0" / "other.npy", np.ones((6, 40, 40)))
    assert recipe_for(large) == (64, 96)  # to which that of another size is brought
    assert "200 x 300 and other sizes take" in capsys.readouterr().err


def test_videos_that_do_not_tell_their_number_of_frames_are_taken_for_long(
    tmp_path, monkeypatch
):
    clips = [Clip(f"{i}", i % 2, None, [tmp_path / f"{i}.mkv"]) for i in range(6)]
    untold = building.Header(None, (200, 300))
    monkeypatch.setattr(
        inputs, "survey", lambda some, recipe: dict(enumerate([untold]))
    )

    def size(recipe):
        return inputs.with_size(clips, recipe, Settings(kernels=None)).size

    # 6 clips of 300 frames
    monkeypatch.setattr(inputs, "MOST_ROWS", 6 * 299 * 60_000 * 8)
    assert size(Recipe()) == (64, 96)
    assert size(Recipe(every=2)) is None and size(Recipe(evenly=298)) is None
    monkeypatch.setattr(inputs, "MOST_ROWS", 6 * 300 * 60_000 * 8)
    assert size(Recipe()) is None


def test_more_clips_are_read_as_the_model_reads_them(tmp_path, monkeypatch):
    """However many there are: a model has its size, or none."""
    monkeypatch.setattr(inputs, "MOST_ROWS", 100_000)
    folder = bars(tmp_path / "data", 8, (90, 200))
    for name, size in (("data", (43, 96)), ("more", None)):
        paths = Paths(**{name: folder})
        settings = Settings(kernels=None)
        recipe = inputs.labelled_clips(Recipe(), settings, paths)[2]
        assert recipe.size == size
