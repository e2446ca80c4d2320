"""Recipes: the candidates, what they make of sets, and how one is chosen."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

from grassmann_classify import add, first_tries, fit, load, predict, recipes, save
from grassmann_classify.arrays import load_npz
from grassmann_classify.bank import Bank
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, some_sets
from grassmann_classify.evaluation import evaluate
from grassmann_classify.inputs import choice_of, read_by
from grassmann_classify.learning import digests_of
from grassmann_classify.options import parse, split
from grassmann_classify.recipes import kept_rows
from grassmann_classify.rows import uncentred
from grassmann_classify.settings import Recipe, Settings
from grassmann_sc import frames, projection_kernel

PLAIN = Recipe(24, fewer=True)
GSC = Settings(methods=["gsc", "nearest"], kernels=False, lam=[0.1], p=[2])


def image_clips(n=6, n_frames=12, side=16):
    rng = np.random.default_rng(0)
    sets = rng.integers(0, 256, (n, n_frames, side, side), np.uint8)
    return [Clip(f"{i}", i % 2, None, [images]) for i, images in enumerate(sets)]


def turning(n=32, n_frames=16):
    """Two classes of sets whose frames span the same plane, passed at two speeds."""
    rng = np.random.default_rng(1)
    label = np.arange(n) % 2
    steps = np.arange(n_frames)
    sets = []
    for c in label:
        angle = 0.3 * (1 + 2 * c) * steps + rng.uniform(0, 6)
        exact = np.stack([np.cos(angle), np.sin(angle)], 1) @ np.eye(2, 5)
        sets.append(exact + 0.02 * rng.standard_normal((n_frames, 5)))
    return sets, label


SHARES = ("half a clip", "most of a clip")
IN_SHARES = [f", {name}" for name in SHARES]
ORDERED = [
    f"{centred}{stacked}".strip(", ") or "plain"
    for stacked in ("", ", stack 4", ", stack 8", ", stack 16", *IN_SHARES)
    for centred in ("", "centred", "standardised")
]


def without(*words):
    """The names of ORDERED that hold none of the words."""
    return [name for name in ORDERED if not any(word in name for word in words)]


SMALL_FRAMES = without("standard", "stack 8", "stack 16")


def of_images(levels, *forms, coloured=False):
    """The names of recipes that images have: of still descriptors, of what moves.

    levels: what is said of raw pixels and of what moves, or None; forms: the stacks.
    """
    names = []
    for name, kind in frames.DESCRIPTORS.items():
        word = name.upper() if name in ("hog", "lbp") else name
        if kind.colour and not coloured:
            continue
        if kind.suited and kind.moving:
            moving = levels or ["centred", "standardised"]
            names += [f"{word}, {level}, {form}" for form in forms for level in moving]
        elif kind.suited and levels:
            names += [f"{word}, {level}" for level in levels]
        elif kind.suited:
            names += [word] + ["raw, centred"] * (name == "raw")
    return names


@pytest.mark.parametrize(
    "shape, shortest, options, names",
    [
        ((5,), 17, {}, ORDERED),
        ((50,), 30, {}, ORDERED),
        ((51,), 30, {}, without("stack 16")),
        ((100,), 30, {}, without("stack 16")),
        ((101,), 30, {}, without("standard", "stack 8", "stack 16")),
        ((15, 40), 7, {}, without("standard", "stack 8", "stack 16")),
        ((5,), 16, {}, without("stack 16")),
        ((5,), 8, {}, without("stack 8", "stack 16")),
        ((5,), 4, {}, ["plain", "centred", "standardised"]),
        ((16, 40), 9, {}, of_images(None, "stack 8", *SHARES)),
        ((16, 40), 8, {}, of_images(None, *SHARES)),
        ((16, 40), 8, {"in_colours": True}, of_images(None, *SHARES, coloured=True)),
        (
            (15, 40),
            7,
            {"in_colours": True},
            [
                *(f"raw, {name}".replace(", plain", "") for name in SMALL_FRAMES),
                "colour",
                "chromaticity",
            ],
        ),
        ((16, 40), 4, {}, of_images(None)),
        ((16, 40), 9, {"stack": [1]}, of_images(None)),
        ((16, 40), 7, {"center": [True]}, of_images(["centred"], *SHARES)),
        (
            (16, 40),
            4,
            {"features": ["thumbnail"]},
            ["thumbnail, centred", "thumbnail, standardised"],
        ),
        (
            (16, 40),
            9,
            {"features": ["thumbnail"], "stack": [2], "center": [False]},
            ["thumbnail, stack 2"],
        ),
        ((16, 40), 7, {"features": ["hog"]}, ["HOG"]),
        ((5,), 30, {"center": [True], "stack": [4]}, ["centred, stack 4"]),
        ((5,), 30, {"center": [False], "stack": [1]}, ["plain"]),
        ((5,), 30, {"center": [False], "stack": [2, 8]}, ["stack 2", "stack 8"]),
        ((5,), 30, {"stack": [8]}, [n for n in ORDERED if n.endswith("stack 8")]),
        (
            (5,),
            30,
            {"center": [True], "stack": [1, 4]},
            ["centred", "centred, stack 4"],
        ),
    ],
)
def test_the_candidates_are_those_that_frames_and_options_allow(
    shape, shortest, options, names
):
    candidates = recipes.recipes_of(PLAIN, shape, [shortest, shortest], **options)
    assert list(candidates) == names
    for name, recipe in candidates.items():
        assert ("centred" in name) == recipe.center
        assert ("standardised" in name) == recipe.standardised
        assert ("stack 4" in name) <= (recipe.stack == 4)
        kind = options.get("features", [name.partition(",")[0].lower()])[0]
        steps = min(16 if kind == "thumbnail" else 32, shortest)
        for share, length in zip(SHARES, (steps // 2, 7 * steps // 8)):
            resampled = (recipe.steps, recipe.stack) == (steps, length)
            assert (share in name) <= resampled
        assert recipe.features in (kind, "raw")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_columns_are_standardised_whatever_their_units(dtype):
    rng = np.random.default_rng(0)
    rows = (1000 * rng.standard_normal((40, 5)) + 300).astype(dtype)
    rows[:, 3] = 7
    result = recipes.standardised(rows)
    assert result.dtype == (np.float32 if dtype == np.float32 else np.float64)
    assert not result[:, 3].any()
    tolerance = 1e-5 if dtype == np.float32 else 1e-13
    np.testing.assert_allclose(result.mean(axis=0), 0, atol=tolerance)
    spread = [1, 1, 1, 0, 1]
    np.testing.assert_allclose(result.std(axis=0), spread, atol=tolerance)
    units = np.array([1e-30, 1e30, 5, 1e-3, 1])
    other = rows.astype(float) * units + [0, 0, 8, 1e5, 0]
    np.testing.assert_allclose(recipes.standardised(other), result, atol=tolerance)
    # what rounding leaves of a constant varies in no unit
    constant = np.full((40, 1), 0.1, np.float32) * np.float32(1e6)
    assert not recipes.standardised(constant).any()


def test_steps_between_frames_keep_the_type():
    rows = np.arange(12).reshape(4, 3)
    expected = [[0, 1, 2], [4.5, 5.5, 6.5], [9, 10, 11]]
    for dtype, result in ((np.float32, np.float32), (np.uint8, np.float64)):
        steps = recipes.resampled(rows.astype(dtype), 3)
        assert steps.dtype == result
        np.testing.assert_allclose(steps, expected)


def moving(rng, label, n_frames=12):
    """A spot that goes to the right (0) or to the left (1) over a still scene."""
    x = rng.uniform(3, 6) + rng.uniform(0.8, 1) * np.arange(n_frames)
    x = 19 - x if label else x
    columns = np.exp(-((np.arange(20) - x[:, None]) ** 2) / 8)
    rows = np.exp(-((np.arange(20) - rng.uniform(6, 14)) ** 2) / 8)
    scene = rng.uniform(0, 60, (20, 20))
    noise = rng.normal(0, 2, (n_frames, 20, 20))
    return 150 * columns[:, None] * rows[:, None] + scene + noise


def test_videos_that_differ_in_the_order_of_frames_alone_are_told_apart():
    """To the right and to the left: the same frames, and so the same subspaces."""
    rng = np.random.default_rng(0)
    label = np.arange(40) % 2
    clips = [moving(rng, c) for c in label]
    settings = Settings(p=[2, 4], methods=["gsc"], kernels=False)
    model = fit(clips[:24], label[:24], settings=settings)
    assert all("thumbnail" in name for name in model.inner.recipes)
    assert (predict(model, clips[24:]).labels == label[24:]).all()
    still = replace(settings, stack=[1])
    wrong = predict(fit(clips[:24], label[:24], settings=still), clips[24:]).labels
    assert (wrong != label[24:]).mean() > 0.2


def tinted(rng, label, n_frames=8):
    """A disc of a colour that is the class's, of any brightness, somewhere in a scene."""
    tints = np.array([[1, 0.45, 0.45], [0.45, 1, 0.45], [0.45, 0.45, 1]])
    y, x = np.mgrid[:20, :20]
    disc = np.hypot(y - rng.uniform(6, 14), x - rng.uniform(6, 14)) < 5
    scene = rng.uniform(0.2, 0.8, (20, 20, 3))
    clip = np.where(disc[..., None], tints[label] * rng.uniform(0.5, 1), scene)
    clip = clip + rng.normal(0, 0.02, (n_frames, 20, 20, 3))
    return (255 * np.clip(clip, 0, 1)).astype(np.uint8)


def in_grey(clips):
    return [np.stack([frames.prepared(frame) for frame in clip]) for clip in clips]


@pytest.fixture(scope="module")
def tinted_clips():
    rng = np.random.default_rng(0)
    label = np.arange(48) % 3
    return [tinted(rng, c) for c in label], label


COLOURED = Settings(p=[1, 3], methods=["gsc"], kernels=False)


def test_classes_that_differ_in_colour_alone_are_told_apart(tinted_clips, tmp_path):
    clips, label = tinted_clips
    model = fit(clips[:24], label[:24], settings=COLOURED)
    assert {*model.inner.recipes} <= {"colour", "chromaticity"}
    answers = predict(model, clips[24:])
    assert (answers.labels == label[24:]).all()
    save(tmp_path / "model.npz", model)
    same = predict(load(tmp_path / "model.npz"), clips[24:])
    np.testing.assert_array_equal(same.p_values, answers.p_values)
    more = add(load(tmp_path / "model.npz"), clips[24:36], label[24:36])
    save(tmp_path / "more.npz", more)
    again = predict(load(tmp_path / "more.npz"), clips[36:])
    assert (again.labels == label[36:]).all()
    # of grey: the same recipes as ever, and no more than chance
    grey = in_grey(clips)
    model = fit(grey[:24], label[:24], settings=COLOURED)
    assert not {*model.inner.recipes} & {"colour", "chromaticity"}
    assert not model.recipe.colour
    wrong = predict(model, grey[24:]).labels != label[24:]
    assert wrong.mean() > 0.3


def test_colours_of_files_are_those_of_arrays(tinted_clips, tmp_path):
    """Photographs in folders, arrays with an axis of colours, and sets in one file."""
    from PIL import Image

    clips, label = tinted_clips
    for i, clip in enumerate(clips[:6]):
        folder = tmp_path / "photos" / f"{i}"
        folder.mkdir(parents=True)
        for k, frame in enumerate(clip):
            Image.fromarray(frame).save(folder / f"{k}.png")
        np.save(tmp_path / f"{i}.npy", clip)
    np.savez(
        tmp_path / "sets.npz",
        frames=np.concatenate(clips[:6]),
        offset=8 * np.arange(7),
        label=label[:6],
    )
    recipe = replace(PLAIN, colour=True)
    sources = {
        "arrays": clips[:6],
        "photos": [tmp_path / "photos" / f"{i}" for i in range(6)],
        "files": [tmp_path / f"{i}.npy" for i in range(6)],
    }
    kinds = [
        [Clip(f"{i}", label[i], None, [source]) for i, source in enumerate(some)]
        for some in sources.values()
    ]
    kinds.append(load_npz(tmp_path / "sets.npz")[0])
    for made in kinds:
        collection = build_all(made, recipe)
        assert collection.frame == (20, 20)
        for i, clip in enumerate(in_grey(clips[:6])):
            np.testing.assert_array_equal(
                collection.sets[i], clip.reshape(8, -1).astype(float)
            )
            small = [frames.prepared(f, False, recipes.SMALL) for f in clips[i]]
            np.testing.assert_array_equal(
                collection.colours[i], np.reshape(small, (8, -1))
            )


def test_a_photograph_without_colours_may_lie_beside_others(tinted_clips, tmp_path):
    from PIL import Image

    clips, label = tinted_clips
    for k, frame in enumerate(clips[0]):
        Image.fromarray(frame).convert("RGB" if k else "L").save(tmp_path / f"{k}.png")
    made = [Clip("0", label[0], None, [tmp_path])]
    (rows,) = build_all(made, replace(PLAIN, colour=True)).colours
    pixels = rows.reshape(8, -1, 3)
    assert (pixels[0] == pixels[0, :, :1]).all()
    small = [frames.prepared(f, False, recipes.SMALL) for f in clips[0][1:]]
    np.testing.assert_array_equal(rows[1:], np.reshape(small, (7, -1)))


def test_colours_follow_windows_and_chosen_frames(tinted_clips):
    clips, label = tinted_clips
    made = [Clip(f"{i}", label[i], None, [clip]) for i, clip in enumerate(clips[:4])]
    recipe = replace(PLAIN, colour=True, every=2, window=2, step=1)
    cut = build_all(made, recipe)
    whole = build_all(made, replace(recipe, window=None, step=None, every=1))
    assert len(cut.colours) == 12
    for i, rows in enumerate(cut.colours):
        clip, k = divmod(i, 3)
        np.testing.assert_array_equal(rows, whole.colours[clip][[2 * k, 2 * k + 2]])


def test_colours_are_read_where_a_recipe_may_take_them(tinted_clips, tmp_path):
    clips, label = tinted_clips
    made = [Clip(f"{i}", label[i], None, [clip]) for i, clip in enumerate(clips[:4])]
    recipe = read_by(PLAIN, Settings())
    assert recipe.colour
    assert not read_by(PLAIN, Settings(features=["raw", "hog"])).colour
    collection = build_all(made, recipe)
    some = some_sets(collection, [2, 0])
    for rows, same in zip(some.colours, (collection.colours[k] for k in (2, 0))):
        np.testing.assert_array_equal(rows, same)
    grey = [clip._replace(sources=in_grey(clip.sources)) for clip in made]
    assert build_all(grey, recipe).colours == [None] * 4
    np.savez(
        tmp_path / "sets.npz",
        frames=np.ones((8, 20, 20, 2)),
        offset=[0, 4, 8],
        label=[0, 1],
    )
    with pytest.raises(ValueError, match=r"an axis of 1, 3 or 4 .* \(8, 20, 20, 2\)"):
        load_npz(tmp_path / "sets.npz")


def test_colours_of_small_frames_are_theirs_too(tinted_clips):
    clips, label = tinted_clips
    small = [clip[:, 3:18, 3:18] for clip in clips]
    for settings in (COLOURED, replace(COLOURED, features=["chromaticity"])):
        model = fit(small[:24], label[:24], settings=settings)
        assert {*model.inner.recipes} & {"colour", "chromaticity", "plain"}
        assert (predict(model, small[24:]).labels == label[24:]).mean() > 0.9


def test_colours_take_bytes_and_few_directions(tinted_clips):
    """Of rows of 768 numbers, also in single precision."""
    made = [Clip(f"{i}", i % 2, None, [c]) for i, c in enumerate(tinted_clips[0][:4])]
    plain = replace(PLAIN, single=True)
    base = build_all(made, replace(plain, colour=True))
    bank = Bank(base, recipes.recipes_of(plain, (20, 20), [8], in_colours=True))
    kinds = {name: bank.recipes[name].p for name in ("raw", "colour", "chromaticity")}
    assert kinds == {"raw": 24, "colour": 12, "chromaticity": 12}
    for name, kind in (("colour", np.uint8), ("chromaticity", np.float32)):
        assert bank.sets(name)[0].dtype == np.float32
        assert bank.described[name, False][0].dtype == kind


def test_sets_of_equal_rows_and_other_colours_are_no_copies(tinted_clips):
    clips, label = tinted_clips
    made = [Clip(f"{i}", label[i], None, [clip]) for i, clip in enumerate(clips[:4])]
    recipe = replace(PLAIN, colour=True)
    collection = build_all(made, recipe)
    other = collection._replace(colours=[rows[::-1] for rows in collection.colours])
    assert digests_of(collection, recipe) != digests_of(other, recipe)
    assert digests_of(collection, PLAIN) == digests_of(other, PLAIN)
    assert len({*digests_of(collection, recipe)}) == 4


def test_an_error_of_a_descriptor_names_the_set(tinted_clips, capsys):
    clips, label = tinted_clips
    clips = [clip / 255 for clip in clips[:12]]
    clips[7] = clips[7] - 0.5
    fit(clips, label[:12], settings=COLOURED, verbose=True)
    said = "recipe chromaticity left out: set 7: frames must not be negative, got -0."
    assert said in capsys.readouterr().err


def test_a_slight_tint_is_grey():
    """As of what was stored with losses; a set in colour among grey ones is enough."""
    rng = np.random.default_rng(0)
    grey = np.repeat(rng.uniform(0, 250, (4, 12, 1)), 3, axis=2).reshape(4, -1)
    tinted = grey + rng.uniform(-5, 5, grey.shape)
    assert not recipes.are_coloured([grey, None, tinted])
    coloured = grey * np.tile([1, 0.9, 0.95], 12)
    assert recipes.are_coloured([grey, None, tinted, coloured])
    assert not recipes.are_coloured([-grey]) and recipes.are_coloured([-coloured])


def test_a_grey_clip_has_an_answer_from_a_model_in_colour(tinted_clips):
    """Alone, beside clips in colour, and among the labelled ones: equal colours."""
    clips, label = tinted_clips
    (grey,) = in_grey(clips[24:25])
    as_colours = np.repeat(grey[..., None], 3, axis=3)
    labelled = [*clips[:23], grey]
    model = fit(labelled, label[:24], settings=COLOURED)
    assert model.recipe.colour
    alone = predict(model, [grey]).p_values
    np.testing.assert_array_equal(predict(model, [as_colours]).p_values, alone)
    beside = predict(model, [clips[30], grey]).p_values[1:]
    np.testing.assert_allclose(beside, alone, atol=1e-12)


def test_each_descriptor_of_colours_may_be_the_recipe(tinted_clips):
    clips, label = tinted_clips
    for name in ("colour", "chromaticity"):
        model = fit(clips[:24], label[:24], recipe=Recipe(features=name))
        assert (predict(model, clips[24:]).labels == label[24:]).mean() > 0.9
        bank = Bank(
            build_all(
                [Clip(f"{i}", 0, None, [clip]) for i, clip in enumerate(clips[:4])],
                replace(PLAIN, colour=True),
            ),
            recipes.recipes_of(PLAIN, (20, 20), [8], [name]),
        )
        expected = build_all(
            [Clip(f"{i}", 0, None, [clip]) for i, clip in enumerate(clips[:4])],
            replace(PLAIN, features=name),
        )
        of_bank = bank.by([*bank.recipes][0])
        for rows, same in zip(of_bank.sets, expected.sets, strict=True):
            np.testing.assert_array_equal(rows, same)


def test_a_set_of_images_with_other_axes_is_named():
    clips = [np.ones((4, 20, 20, 2))] * 4
    with pytest.raises(
        ValueError, match=r"1, 3 or 4\) in colour, got .*\(4, 20, 20, 2"
    ):
        fit(clips, [0, 0, 1, 1])


def test_classes_whose_whole_course_tells_are_told_apart():
    """One sensor: each class has its own course, below the slow drift of each clip."""
    rng = np.random.default_rng(1)
    label = np.arange(60) % 3
    waves = np.cos(np.pi * np.outer(np.arange(6), np.linspace(0, 1, 40)))
    courses = rng.standard_normal((3, 6)) @ waves
    drifts = rng.standard_normal((60, 3)) @ waves[:3]
    noise = 0.2 * rng.standard_normal((60, 40))
    sets = [*(courses[label] + 0.8 * drifts + noise)[:, :, None]]
    settings = Settings(methods=["gsc"], kernels=False)
    model = fit(sets[:30], label[:30], settings=settings)
    assert all("most of a clip" in name for name in model.inner.recipes)
    assert (predict(model, sets[30:]).labels == label[30:]).all()
    short = replace(settings, stack=[1, 4, 8, 16])
    wrong = predict(fit(sets[:30], label[:30], settings=short), sets[30:]).labels
    assert (wrong != label[30:]).mean() > 0.1


def test_a_large_column_that_tells_nothing_hides_no_class():
    """As a pressure in pascals beside accelerations."""
    sets, label = turning()
    rng = np.random.default_rng(0)
    sets = [
        np.column_stack([rows, 1e5 + 100 * rng.standard_normal(len(rows)).cumsum()])
        for rows in sets
    ]
    settings = Settings(p=[2], methods=["gsc"], kernels=False)
    model = fit(sets[:20], label[:20], settings=settings)
    assert all("standardised" in name for name in model.inner.recipes)
    assert (predict(model, sets[20:]).labels == label[20:]).all()
    plain = replace(settings, center=False)
    wrong = predict(fit(sets[:20], label[:20], settings=plain), sets[20:]).labels
    assert (wrong != label[20:]).mean() > 0.2


def test_standardised_sets_in_memory_are_those_of_clips():
    sets, label = turning(n=6, n_frames=40)  # a share of a clip is one of 32 frames
    made = [Clip(f"{i}", c, None, [s]) for i, (s, c) in enumerate(zip(sets, label))]
    base = build_all(made, recipes.base_of(PLAIN))
    some = recipes.recipes_of(PLAIN, (5,), [40])
    bank = Bank(base, some, Settings(p=[1, 2]))
    for form, length in (("", 1), (", stack 4", 4), *zip(IN_SHARES, (16, 28))):
        name = f"standardised{form}"
        expected = build_all(made, some[name])
        assert expected.X.shape[1] == 5 * length
        np.testing.assert_allclose(bank.by(name).X, expected.X, atol=1e-12)
        for rows, same in zip(bank.by(name).sets, expected.sets, strict=True):
            np.testing.assert_array_equal(rows, same)


def test_thumbnails_of_images_in_memory_are_those_of_clips():
    """Few directions of each, since stacks of them are long; shares are of 16 frames."""
    made = image_clips(n_frames=24)
    base = build_all(made, recipes.base_of(PLAIN))
    some = recipes.recipes_of(PLAIN, (16, 16), [24])
    bank = Bank(base, some, Settings(p=[1, 2]))
    names = [name for name in some if "thumbnail" in name]
    assert len(names) == 6
    for name in names:
        expected = build_all(made, some[name])
        assert (
            expected.X.shape[1] == 64 * (14 if "most" in name else 8)
            and expected.X.shape[2] <= 12
        )
        np.testing.assert_allclose(bank.by(name).X, expected.X, atol=1e-12)
        for rows, same in zip(bank.by(name).sets, expected.sets, strict=True):
            np.testing.assert_array_equal(rows, same)


def test_columns_are_standardised_where_few_long_rows_are_shortened():
    rng = np.random.default_rng(0)
    scale = np.geomspace(1, 100, 100)
    clips = [
        Clip(f"{i}", i % 2, None, [scale * rng.standard_normal((5, 100))])
        for i in range(4)
    ]
    base = build_all(clips, recipes.base_of(PLAIN))
    bank = Bank(base, recipes.recipes_of(PLAIN, (100,), [5]), Settings(p=[2]))
    assert bank.sets("plain", short=True)[0].shape[1] == 20
    (grams,) = bank.linear("standardised")
    expected = build_all(clips, bank.recipes["standardised"]).X[:, :, :2]
    gram = projection_kernel(expected) / 2
    np.testing.assert_allclose(*grams.values(), gram, atol=1e-6)


@pytest.mark.parametrize("name", ["hog", "lbp"])
def test_a_descriptor_has_the_options_that_suit_the_frames(name):
    """Asked for alone or among others; the user's own come first."""
    pytest.importorskip("skimage", reason=f"{name} needs the extra 'image'")
    suited = frames.DESCRIPTORS[name].suited((20, 20))
    of_all = recipes.recipes_of(PLAIN, (20, 20), [12])
    (alone,) = recipes.recipes_of(PLAIN, (20, 20), [12], [name]).values()
    assert of_all[name.upper()].feature_options == alone.feature_options == suited
    own = replace(PLAIN, feature_options={"channel_axis": None})
    (recipe,) = recipes.recipes_of(own, (20, 20), [12], [name]).values()
    assert recipe.feature_options == own.feature_options


def test_what_is_made_of_rows_in_memory_is_what_a_clip_gives():
    """By every recipe, and whichever was asked before; nothing stays beyond its bound."""
    made = image_clips()
    base = build_all(made, recipes.base_of(PLAIN))
    candidates = recipes.recipes_of(PLAIN, (16, 16), [12], None, [False, True], [1, 4])
    assert {recipe.features for recipe in candidates.values()} >= {"raw", "hog", "lbp"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        inputs = Bank(base, candidates, Settings(p=[1, 3]))
    for name, recipe in [*candidates.items(), *reversed(candidates.items())]:
        expected = build_all(made, recipe)
        collection = inputs.by(name)
        np.testing.assert_array_equal(collection.X, expected.X)
        assert collection.frame == expected.frame
        for rows, same in zip(collection.sets, expected.sets, strict=True):
            np.testing.assert_array_equal(rows, same)
        (grams,) = inputs.linear(name)
        for candidate, K in grams.items():
            X = expected.X[:, :, : candidate.p].astype(float)
            gram = np.linalg.norm(np.einsum("idp,jdq->ijpq", X, X), axis=(2, 3)) ** 2
            np.testing.assert_allclose(K, gram / candidate.p, atol=1e-6)


@pytest.mark.parametrize(
    "options, expected",
    [
        ([], (None, None, None)),
        (["--recipe", "plain"], None),
        (["--recipe", "plain", "--stack", "1", "4"], (["raw"], [False], [1, 4])),
        (["--features", "hog"], (["hog"], None, None)),
        (["--features", "hog", "--no-center", "--stack", "2"], None),
        (["--features", "gei"], None),
        (["--arma", "3"], None),
        (["--resample", "9"], (["raw"], None, None)),
        (["--resample", "9", "--features", "hog"], None),
    ],
)
def test_what_is_left_to_choose_by_the_options(tmp_path, options, expected):
    parsed = parse(["compare", str(tmp_path), *options])
    assert choice_of(*split(parsed)[:2]) == expected


@pytest.mark.parametrize(
    "options, words",
    [
        (["raw", "gei"], "several of raw, hog, lbp"),
        (["raw", "hog", "--arma", "3"], "--features must be one with --arma"),
        (
            ["raw", "hog", "--resample", "9"],
            "--features must be one with --resample, got raw hog",
        ),
        (["raw", "hog", "--feature-options", "{}"], None),
        (
            ["raw", "hog", "--feature-options", '{"a": 1}'],
            "--features must be one with --feature-options",
        ),
    ],
)
def test_descriptors_that_cannot_be_candidates_are_errors(
    tmp_path, options, words, capsys
):
    arguments = ["compare", str(tmp_path), "--features", *options]
    if words is None:
        assert choice_of(*split(parse(arguments))[:2])[0] == ["raw", "hog"]
        return
    with pytest.raises(SystemExit):
        parse(arguments)
    assert words in capsys.readouterr().err


def outcomes(inputs, label, train, test, settings=GSC):
    rows = evaluate(inputs, label, None, (train, test), settings)
    return {row.method.name: row for row in rows}


def inputs_of_turning(sets, label):
    made = [Clip(f"{i}", c, None, [s]) for i, (s, c) in enumerate(zip(sets, label))]
    base = build_all(made, recipes.base_of(PLAIN))
    return Bank(base, recipes.recipes_of(PLAIN, (5,), [16]), Settings(p=[2]))


def test_the_recipe_that_tells_classes_apart_is_chosen():
    sets, label = turning()
    parts = np.arange(20), np.arange(20, 32)
    for row in outcomes(inputs_of_turning(sets, label), label, *parts).values():
        assert row.failed is None
        if row.method.among == "sum":
            for candidate in row.inner.candidates:
                assert any(word in candidate.recipe for word in ("stack", "clip"))
            assert (row.predicted == label[20:]).all()


def test_labels_of_the_test_part_change_neither_choices_nor_answers():
    sets, label = turning()
    parts = np.arange(20), np.arange(20, 32)
    other = label.copy()
    other[20:] = np.random.default_rng(0).permutation(other[20:])
    rows, same = (
        outcomes(inputs_of_turning(sets, of), of, *parts) for of in (label, other)
    )
    for name, row in rows.items():
        assert row.chosen == same[name].chosen
        assert row.predicted.tolist() == same[name].predicted.tolist()


@pytest.mark.parametrize("method", ["gsc", "kgsc", "subspaces"])
def test_a_model_keeps_its_recipe(tmp_path, method):
    """Answers of a kept model are the same to the bit; clips that do not fit are named."""
    sets, label = turning()
    settings = Settings(methods=[method], lam=[0.1], p=[2])
    model = fit(sets[:20], label[:20], settings=settings)
    result = predict(model, sets[20:])
    assert (result.labels == label[20:]).mean() > 0.9
    save(tmp_path / "model.npz", model)
    kept = load(tmp_path / "model.npz")
    again = predict(kept, sets[20:])
    assert again.labels.tolist() == result.labels.tolist()
    np.testing.assert_array_equal(again.scores, result.scores)
    short = [*sets[20:22], sets[22][:3]]
    failed = predict(kept, short).failed
    assert list(failed) == ["set 2"] and "4" in failed["set 2"]


# ------------------------------------------------------------- rows that are tried first


@pytest.mark.parametrize("scale", first_tries.SCALES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_machine_on_frames_is_scikit_learns_by_hand(scale, n_classes):
    """Sets of several lengths count alike; the mean of a set's scores decides."""
    rng = np.random.default_rng(0)
    y = np.arange(12) % n_classes
    lengths = np.arange(12) % 3 + 2
    sets = [rng.standard_normal((n, 4)) + 2 * np.eye(4)[c] for n, c in zip(lengths, y)]
    machine = first_tries.FramesSVM(3.0, scale).fit(sets, y)
    rows = np.concatenate(sets)
    if scale == "standardised":
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    else:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    weights = np.repeat(lengths.mean() / lengths, lengths)
    svm = SVC(C=3.0).fit(rows, np.repeat(y, lengths), weights)
    starts = np.cumsum(lengths) - lengths
    scores = svm.decision_function(rows)
    scores = np.add.reduceat(scores, starts, axis=0) / lengths.reshape(
        (-1,) + (1,) * (scores.ndim - 1)
    )
    np.testing.assert_allclose(machine.decision_function(sets), scores, atol=1e-9)
    expected = scores.argmax(axis=1) if n_classes > 2 else (scores > 0).astype(int)
    assert machine.predict(sets).tolist() == expected.tolist()
    (C, labels), *_ = [
        (dict(which)["C"], labels)
        for which, labels in first_tries.predictions([3.0])(sets, sets, y).items()
        if dict(which)["scale"] == scale
    ]
    assert C == 3.0 and labels.tolist() == expected.tolist()


def test_few_frames_of_each_set_are_at_even_steps():
    sets = [np.arange(n)[:, None] for n in (100, 3, 20)]
    some = first_tries.few_of(sets, np.inf)
    assert [len(rows) for rows in some] == [20, 3, 20]
    assert some[0][[0, -1], 0].tolist() == [0, 99]
    assert [len(rows) for rows in first_tries.few_of(sets, 12)] == [4, 3, 4]
    assert [len(rows) for rows in first_tries.few_of(sets, 1)] == [1, 1, 1]


def test_features_are_frames_their_mean_and_their_deviation():
    rows = np.array([[1.0, 2.0], [3.0, 2.0]])
    kinds = first_tries.FEATURES
    assert kinds["frames"](rows) is rows
    assert kinds["mean"](rows).tolist() == [[2, 2]]
    assert kinds["moments"](rows).tolist() == [[2, 2, 1, 0]]


def test_rows_on_means_take_no_recipe_that_is_centred():
    sets, label = turning()
    inputs = inputs_of_turning(sets, label)
    assert uncentred(inputs) == ["plain", "stack 4", "stack 8", *SHARES]
    settings = Settings(methods=["mean", "frames"], C=[1.0])
    parts = np.arange(20), np.arange(20, 32)
    rows = evaluate(inputs, label, None, parts, settings)
    for row in rows:
        assert row.failed is None
        assert row.chosen.get("recipe", "plain") in uncentred(inputs)


def test_equal_frames_less_their_mean_are_none():
    rows = np.tile([0.1, 0.7, 0.3], (5, 1))
    with pytest.raises(
        ValueError, match="less their mean no frame is left: all frames"
    ):
        kept_rows(rows, Recipe(2, center=True))
    assert len(kept_rows(rows, Recipe(2))) == 5


def test_descriptors_of_images_are_refused_where_there_are_none():
    with pytest.raises(
        ValueError, match="^--features hog needs images, got rows of 6 "
    ):
        recipes.recipes_of(Recipe(), (6,), [8, 20], features=["hog", "lbp"])
