"""What was built once is kept, under a key that holds all that it depends on."""

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import grassmann_sc as core
from grassmann_classify import building
from grassmann_classify.__main__ import main
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, Recipe

pytestmark = [
    pytest.mark.usefixtures("few_kernels"),
    pytest.mark.filterwarnings("error:::grassmann_classify"),
]

RNG = np.random.default_rng(0)
FRAMES = RNG.integers(1, 256, (9, 12, 10), np.uint8)
OTHERS = RNG.integers(1, 256, (9, 12, 10), np.uint8)


def built(clips, recipe, cache=None, **options):
    return build_all(clips, recipe, cache, strict=True, **options)


def from_memory(path, frames=FRAMES):
    """A clip of an .npz file with two arrays."""
    np.savez(path, frames=frames, others=OTHERS)
    return Clip("clip", "a", None, [path])


def as_image(frames, path, **options):
    first, *others = map(Image.fromarray, frames)
    first.save(path, save_all=len(others) > 0, append_images=others, **options)


def bits(arrays):
    return [(one.dtype, one.shape, one.tobytes()) for one in arrays]


def same(first, second):
    """Are two Collections the same, to the bit?"""
    rows = [one.sets and bits(one.sets) for one in (first, second)]
    arrays = [bits([one.X, one.label, one.clip]) for one in (first, second)]
    others = [(one.names, one.frame, one.unread) for one in (first, second)]
    return all(one == other for one, other in (rows, arrays, others))


def kept(cache):
    return sorted(cache.glob("*.npz"))


@pytest.fixture
def never_built(monkeypatch):
    """A function after whose call nothing is built."""

    def begin():
        fail = lambda *_: pytest.fail("built again")  # noqa: E731
        monkeypatch.setattr(building, "build", fail)

    return begin


# ----------------------------------------------------------------- the key: the recipe


def rows_of_frames(frames):
    return frames.reshape(len(frames), -1)[:, ::2]


BASE = Recipe(p=2, key="frames")
OTHER = {  # for each field of BASE another value
    "p": 3,
    "features": "lbp",
    "describe": rows_of_frames,
    "feature_options": {"grid": [2, 2]},
    "size": (6, 5),
    "key": "others",
    "columns": ("ax", "ay"),
    "axes": "height,width,time",
    "every": 2,
    "evenly": 4,
    "resample": 5,
    "run": 4,
    "step": 2,
    "stack": 2,
    "arma": 3,
    "center": True,
    "single": True,
    "fewer": True,
}
ALIKE = {"fewer", "columns", "step"}  # which change nothing of BASE


def test_each_field_of_a_recipe_has_its_case():
    assert OTHER.keys() == Recipe.__dataclass_fields__.keys()
    assert all(getattr(BASE, name) != value for name, value in OTHER.items())


@pytest.mark.parametrize("name", OTHER)
def test_another_value_of_a_field_is_built_and_kept_beside_the_first(
    tmp_path, name, never_built
):
    """Both then come from the cache as they were built."""
    clip = from_memory(tmp_path / "clip.npz")
    base = BASE
    if name == "feature_options":
        base = replace(base, features="lbp", feature_options={"grid": [1, 2]})
    both = base, replace(base, **{name: OTHER[name]})
    fresh = [built([clip], recipe, keep_rows=True) for recipe in both]
    differs = [bits([one.X]) for one in fresh]
    assert (differs[0] != differs[1]) == (name not in ALIKE)
    for n, (recipe, expected) in enumerate(zip(both, fresh), 1):
        found = built([clip], recipe, tmp_path / "cache", keep_rows=True)
        assert same(found, expected) and len(kept(tmp_path / "cache")) == n
    never_built()
    for recipe, expected in zip(both, fresh):
        assert same(built([clip], recipe, tmp_path / "cache", keep_rows=True), expected)


def test_options_of_a_descriptor_are_told_apart_by_name_and_value(tmp_path):
    clip = from_memory(tmp_path / "clip.npz")
    options = [{"radius": 1}, {"radius": 2}, {"n_points": 2}, {"n_points": 1}]
    for n, of_lbp in enumerate(options, 1):
        recipe = replace(BASE, features="lbp", feature_options=of_lbp)
        found = built([clip], recipe, tmp_path / "cache")
        assert same(found, built([clip], recipe))
        assert len(kept(tmp_path / "cache")) == n


def test_an_older_version_of_the_cache_is_built_anew(tmp_path, monkeypatch):
    clip = from_memory(tmp_path / "clip.npz")
    built([clip], BASE, tmp_path)
    monkeypatch.setattr(building, "VERSION", building.VERSION + 1)
    built([clip], BASE, tmp_path)
    assert len(kept(tmp_path)) == 3  # with the clip


# ------------------------------------------------------------------ the key: the content


def test_a_byte_anywhere_in_a_long_file_is_another_clip(tmp_path):
    """At the end of 5 MB too, which are read in pieces; the name does not matter."""
    frames = RNG.integers(1, 256, (5, 1000, 1000), np.uint8)
    clip = Clip("clip", "a", None, [tmp_path / "clip.npy"])
    recipe = Recipe(p=1, size=(4, 4), every=4)  # the first frame and the last
    for n, at in enumerate([None, (0, 0, 0), (4, 999, 999)], 1):
        if at:
            frames[at] ^= 255
        np.save(tmp_path / "clip.npy", frames)
        found = built([clip], recipe, tmp_path / "cache")
        assert same(found, built([clip], recipe))
        assert len(kept(tmp_path / "cache")) == n
    (tmp_path / "clip.npy").rename(tmp_path / "renamed.npy")
    again = clip._replace(sources=[tmp_path / "renamed.npy"])
    assert same(built([again], recipe, tmp_path / "cache"), found)
    assert len(kept(tmp_path / "cache")) == 3


def test_an_array_is_told_by_content_type_and_shape(tmp_path, never_built):
    """The same bytes in another shape, or of another type, are another clip."""
    values = (FRAMES[:8].astype(np.float32) + 1000).reshape(8, 120)
    last = FRAMES[:8].copy()
    last[-1, -1, -1] ^= 255
    arrays = [
        FRAMES[:8],
        last,
        OTHERS[:8],
        FRAMES[:8].reshape(8, 10, 12),
        FRAMES[:8].reshape(4, 20, 12),
        values,
        values.view(np.int32),
        np.asfortranarray(values) * 2,
    ]
    clips = [Clip("clip", "a", None, [array]) for array in arrays]
    fresh = [built([clip], Recipe(p=2), keep_rows=True) for clip in clips]
    for n, (clip, expected) in enumerate(zip(clips, fresh), 1):
        found = built([clip], Recipe(p=2), tmp_path, keep_rows=True)
        assert same(found, expected) and len(kept(tmp_path)) == n
    never_built()
    strided = Clip("clip", "a", None, [np.asfortranarray(arrays[0])])
    assert same(built([strided], Recipe(p=2), tmp_path, keep_rows=True), fresh[0])


def test_the_kind_of_a_file_is_part_of_the_key_and_its_case_is_not(tmp_path):
    as_image(FRAMES, tmp_path / "clip.gif")
    for n, name in enumerate(["clip.gif", "clip.webp", "clip.WEBP"]):
        path = tmp_path / name
        if n:
            shutil.copy(tmp_path / "clip.gif", path)
        built([Clip("clip", "a", None, [path])], Recipe(p=2), tmp_path / "cache")
    assert len(kept(tmp_path / "cache")) == 2


def test_each_source_of_a_clip_and_their_order_are_part_of_the_key(tmp_path):
    """Images that a run of a class folder makes a clip of, and arrays."""
    paths = [tmp_path / f"{i}.png" for i in range(4)]
    for path, frame in zip(paths, FRAMES):
        as_image([frame], path)
    arrays = [*FRAMES[:, None]]
    recipe = Recipe(p=1, stack=2)
    orders = [(0, 1, 2), (2, 1, 0), (1, 0, 2), (0, 1, 3), (3, 1, 2), (0, 1)]
    for n, order in enumerate(orders, 1):
        for cache, sources in (("paths", paths), ("arrays", arrays)):
            clip = Clip("clip", "a", None, [sources[i] for i in order])
            found = built([clip], recipe, tmp_path / cache, keep_rows=True)
            assert same(found, built([clip], recipe, keep_rows=True))
            assert len(kept(tmp_path / cache)) == n


def test_images_of_a_folder_are_told_by_content_name_and_where_each_ends(tmp_path):
    """One image behind which another's bytes lie is not two images."""
    folder = tmp_path / "clip"
    clip = Clip("clip", "a", None, [folder])
    recipe = Recipe(p=1)

    def check(n):
        found = built([clip], recipe, tmp_path / "cache", keep_rows=True)
        assert same(found, built([clip], recipe, keep_rows=True))
        assert len(kept(tmp_path / "cache")) == n

    folder.mkdir()
    for i, frame in enumerate(FRAMES[:3]):
        as_image([frame], folder / f"{i}.png")
    check(1)
    (folder / "1.png").rename(folder / "10.png")
    check(2)  # the last, not the second, though not in the order of texts
    as_image([FRAMES[5]], folder / "10.png")
    check(3)
    as_image([FRAMES[6]], folder / "11.png")
    check(4)
    shutil.copytree(folder, tmp_path / "copy")
    clip = clip._replace(sources=[tmp_path / "copy"])
    check(4)
    shutil.rmtree(folder)
    clip = clip._replace(sources=[folder])
    folder.mkdir()
    for name, frame in zip(("0.png", "1.png"), FRAMES):
        as_image([frame], folder / name)
    two = [(folder / f"{i}.png").read_bytes() for i in range(2)]
    check(5)
    (folder / "1.png").unlink()
    for n, between in enumerate([b"", b"1.png", b"1.png\0", b"1.png\0\0"], 6):
        (folder / "0.png").write_bytes(two[0] + between + two[1])
        check(n)


# --------------------------------------------------------------------- what is kept


def several(folder):
    folder.mkdir()
    clips = []
    for i in range(4):
        path = folder / f"{i}.npy"
        np.save(path, RNG.integers(1, 256, (8 + i, 12, 10), np.uint8))
        clips.append(Clip(path.name, "ab"[i % 2], None, [path]))
    return clips


RECIPES = {
    "plain": Recipe(p=2),
    "runs": Recipe(p=2, run=4),
    "single": Recipe(p=2, run=4, single=True),
    "centred, stacked": Recipe(p=3, stack=3, center=True),
    "features": Recipe(p=9, fewer=True, features="lbp"),
    "model": Recipe(p=2, arma=3, center=True),
}


@pytest.mark.parametrize("name", RECIPES)
def test_rows_that_are_asked_for_later_are_not_missing(tmp_path, name, never_built):
    """Nor are they there where nobody asks; then all comes from the cache."""
    recipe = RECIPES[name]
    clips = several(tmp_path / "data")
    cache = tmp_path / "cache"
    plain, rows = (built(clips, recipe, keep_rows=keep) for keep in (False, True))
    assert plain.sets is None and len(rows.sets) == len(rows.X) >= 4
    assert same(built(clips, recipe, cache), plain)
    assert same(built(clips, recipe, cache, keep_rows=True), rows)
    assert len(kept(cache)) == 4
    never_built()
    assert same(built(clips, recipe, cache), plain)
    assert same(built(clips, recipe, cache, keep_rows=True), rows)


@pytest.mark.parametrize("cached", [False, True])
def test_rows_that_are_too_many_are_not_kept_and_cost_no_subspace(tmp_path, cached):
    clips = several(tmp_path / "data")
    cache = tmp_path / "cache" if cached else None
    rows = built(clips, Recipe(p=2), keep_rows=True)
    total = sum(one.nbytes for one in rows.sets)
    for most in (0, total - 1, total, np.inf):
        found = built(clips, Recipe(p=2), cache, keep_rows=True, most_rows=most)
        assert same(found, rows if most >= total else rows._replace(sets=None))


def test_no_rows_are_held_that_nobody_asks_for_or_that_are_too_many(
    tmp_path, monkeypatch
):
    """Beyond the bound, but for those of clips that are read at the same time."""
    clips = [Clip(f"{i}", "a", None, [FRAMES + i]) for i in range(40)]
    build = building.build
    asked = []

    def noted(clip, recipe, keep_rows):
        asked.append(keep_rows)
        return build(clip, recipe, keep_rows)

    monkeypatch.setattr(building, "build", noted)
    built(clips, BASE, tmp_path)
    assert len(asked) == 40 and not any(asked)
    for path in kept(tmp_path):
        with np.load(path) as file:
            assert {*file} == {"bases", "frame"}
    asked.clear()
    built(clips, BASE, keep_rows=True, most_rows=FRAMES.size * 8)
    assert 2 <= sum(asked) <= core.thread_count() + 2 and len(asked) == 40


class Harmful:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return pytest.fail, ("the cache runs what it holds",)


def damaged(path):
    """Ways in which a file of the cache can be damaged, each applied when it is asked."""
    content = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)
    for part in (b"", content[:100], content[:-40], bytes(len(content)), b"\0" * 7):
        path.write_bytes(part)
        yield
    middle = len(content) // 2
    path.write_bytes(content[:middle] + b"damaged!" + content[middle + 8 :])
    yield
    for missing in ("bases", "frame", "rows1"):
        np.savez(path, **{name: arrays[name] for name in arrays.keys() - {missing}})
        yield
    np.savez(path, **arrays | {"bases": np.array([Harmful()] * 2, object)})
    yield
    with open(path, "wb") as file:
        np.save(file, arrays["bases"])
    yield
    path.unlink()
    yield


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_damaged_file_of_the_cache_is_built_anew_and_alone(tmp_path, monkeypatch):
    """It is right again after that, and no other was built."""
    clips = several(tmp_path / "data")
    recipe = RECIPES["runs"]
    expected = built(clips, recipe, tmp_path / "cache", keep_rows=True)
    names = [path.name for path in kept(tmp_path / "cache")]
    build = building.build
    n_built = []
    monkeypatch.setattr(
        building, "build", lambda *given: n_built.append(1) or build(*given)
    )
    for n, _ in enumerate(damaged(kept(tmp_path / "cache")[1]), 1):
        for _ in range(2):
            found = built(clips, recipe, tmp_path / "cache", keep_rows=True)
            assert same(found, expected) and len(n_built) == n
        assert [path.name for path in kept(tmp_path / "cache")] == names
    assert n == 12


# -------------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two classes of three clips, two new ones; each file holds a second array."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    patterns = rng.random((2, 3, 16 * 18))
    for k in range(8):
        arrays = {}
        for name in ("frames", "others"):
            rows = rng.random((8, 3)) @ patterns[k % 2] / 3 + 0.1 * rng.random((8, 288))
            arrays[name] = (255 * rows / rows.max()).astype(np.uint8)
        part = f"data/{'ab'[k % 2]}" if k < 6 else "new"
        (folder / part).mkdir(parents=True, exist_ok=True)
        arrays = {name: one.reshape(8, 16, 18) for name, one in arrays.items()}
        np.savez(folder / part / f"{k}.npz", **arrays)
    return folder


PLAIN = "--recipe", "plain"
LBP = *PLAIN, "--features", "lbp"
OF_RUNS = [  # the first and the others, one after another
    PLAIN,
    (*PLAIN, "--size", "8", "9"),
    (*PLAIN, "--every", "2"),
    (*PLAIN, "--evenly", "4"),
    (*PLAIN, "--resample", "4"),
    (*PLAIN, "--center"),
    (*PLAIN, "--stack", "2"),
    (*PLAIN, "--run", "4"),
    (*PLAIN, "--key", "others"),
    LBP,
    (*LBP, "--feature-options", '{"grid": [2, 2]}'),
    (*PLAIN, "--single"),
    (*PLAIN, "--arma", "3"),
    (*PLAIN, "--p", "3"),
    (),  # recipes to choose from
]


def answers(data, out, options):
    """What predict writes."""
    given = ["predict", str(data / "new"), "--data", str(data / "data")]
    p = [] if "--p" in options else ["--p", "2"]
    rows = ["--methods", "gsc", "--lam", "0.1", "--no-kernels", "--no-pictures"]
    main([*given, *p, *rows, *options, "--out", str(out)], "grassmann-classify")
    with open(out / "predictions.csv", newline="", encoding="utf-8") as file:
        return [*csv.reader(file)]


def test_runs_into_one_folder_with_other_options_give_what_a_fresh_folder_gives(
    data, tmp_path
):
    pytest.importorskip("skimage", reason="lbp needs the extra 'image'")
    fresh = [
        answers(data, tmp_path / f"{i}", options) for i, options in enumerate(OF_RUNS)
    ]
    # single precision may change no digit of the scores that are written
    assert len({str(one) for one in fresh}) >= len(OF_RUNS) - 1
    both = [*zip(OF_RUNS, fresh)]
    for options, expected in both + both[:2]:
        assert answers(data, tmp_path / "out", options) == expected


@pytest.mark.parametrize("command", [["check"], ["cluster", "-k", "2"]])
def test_check_and_cluster_too_build_anew_what_other_options_ask_for(
    data, tmp_path, command
):
    name, *more = command
    table = {"check": "suspects.csv", "cluster": "clusters.csv"}[name]

    def rows(out, *options):
        given = [name, str(data / "data"), *more, "--p", "2", "--no-pictures"]
        main([*given, *options, "--out", str(out)], "grassmann-classify")
        return (out / table).read_text()

    first = rows(tmp_path / "out")
    assert rows(tmp_path / "out", "--key", "others") != first
    assert rows(tmp_path / "out") == first
    fresh = rows(tmp_path / "fresh", "--size", "8", "9")
    assert rows(tmp_path / "out", "--size", "8", "9") == fresh
