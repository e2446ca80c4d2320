"""What counts as a copy at each bound; what may speak against a label."""

import numpy as np
import pytest

from grassmann_classify.building import build_all
from grassmann_classify.check import suspects_among
from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.copies import COMMON, Copy, copies, copies_of
from grassmann_classify.model import inputs_for
from grassmann_classify.settings import Settings


def rows(*numbers):
    """A set of rows, each told by its number."""
    return np.array([[number, number**2, 1.0] for number in numbers])


@pytest.mark.parametrize(
    "first, second, shared",
    [
        ([1, 2, 3, 4], [1, 2, 7, 8], 2),  # just a half
        ([1, 2, 3, 4], [1, 6, 7, 8], 0),
        ([1, 2, 3, 4, 5, 6], [1, 2, 7, 8], 2),  # of the shorter
        ([1, 2, 3, 4, 5], [1, 2, 7, 8, 9], 0),
        ([1, 1, 1, 1], [1, 2], 1),  # distinct frames count
    ],
)
def test_sets_that_share_half_of_the_frames_of_the_shorter_are_copies(
    first, second, shared
):
    found = copies(sets=[rows(*first), rows(*second)])
    shorter = min(len(first), len(second))
    why = f"{shared} of {shorter} frames are the same"
    assert found == ([Copy(0, 1, why, False)] if shared else [])


def test_frames_that_many_sets_hold_tell_of_no_copy():
    """As a black frame; up to COMMON sets they do."""
    for n in (COMMON, COMMON + 1):
        found = copies(sets=[rows(0, i + 1) for i in range(n)])
        assert len(found) == (n * (n - 1) / 2 if n == COMMON else 0)


def test_the_same_frames_in_any_order_are_the_same_set_but_within_a_clip():
    sets = [rows(1, 2, 3), rows(3, 1, 2), rows(1, 2, 3)]
    assert all(one.same for one in copies(sets=sets)) and len(copies(sets=sets)) == 3
    assert [one[:2] for one in copies(sets=sets, clip=[0, 0, 1])] == [(0, 2), (1, 2)]


def videos(n=12, seed=0):
    """Sets of twelve frames of 100 pixels: a strong look, faint noise of its own."""
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal((12, 3)) @ rng.standard_normal((3, 100))
        + 0.02 * rng.standard_normal((12, 100))
        for _ in range(n)
    ]


def pairs_of(sets, **more):
    clips = [Clip(f"{i}", i % 2, None, [one]) for i, one in enumerate(sets)]
    made = build_all(clips, Recipe(10, fewer=True), keep_rows=True)
    return [one[:2] for one in copies_of(made._replace(**more))]


def test_a_set_that_was_encoded_again_is_a_copy():
    """Its faint directions are others; without their weights it would be missed."""
    sets = videos()
    rng = np.random.default_rng(1)
    sets.append(sets[4] + 0.05 * rng.standard_normal((12, 100)))
    assert pairs_of(sets) == [(4, 12)]
    assert pairs_of(sets, spectra=None) == []


def noisy_films(n=12, side=64):
    """Sets of twelve smooth frames with noise in each pixel, and the same without it."""
    rng = np.random.default_rng(5)
    films = []
    for _ in range(n):
        looks = rng.standard_normal((3, 8, 8)).repeat(side // 8, 1).repeat(side // 8, 2)
        clean = np.tensordot(rng.standard_normal((12, 3)), looks, 1)
        films.append((clean + rng.standard_normal(clean.shape), clean))
    return films


def test_an_encoder_that_removes_noise_hides_no_copy():
    films = noisy_films()
    sets = [noisy for noisy, _ in films] + [films[4][1]]
    assert pairs_of(sets) == [(4, 12)]
    assert pairs_of([one.reshape(12, -1) for one in sets]) == []  # no images


def test_images_whose_blocks_have_no_mean_are_looked_at_as_they_are():
    rng = np.random.default_rng(0)
    flat = np.kron(rng.standard_normal((4, 16, 16)), [[[1, -1], [-1, 1]]])
    sets = [*rng.standard_normal((6, 4, 32, 32)), flat, 2 * flat]
    assert pairs_of(sets) == [(6, 7)]


def test_sets_before_one_background_are_no_copies():
    """More than half are of other scenes; those of one scene are alike one another."""
    rng = np.random.default_rng(2)
    scene = 20 * rng.standard_normal(100)
    sets = [scene + one for one in videos(6, seed=3)]
    sets += videos(9, seed=4)
    assert pairs_of(sets) == []
    sets[2] = sets[1] + 0.05 * rng.standard_normal((12, 100))
    assert pairs_of(sets) == [(1, 2)]


def test_more_copies_of_one_set_do_not_hide_one_another():
    sets = videos()
    sets += [sets[0] + 1e-3 * np.eye(12, 100) * k for k in (1, 2)]
    assert pairs_of(sets) == [(0, 12), (0, 13), (12, 13)]


@pytest.mark.parametrize("d", [3, 6])
def test_of_many_sets_in_few_dimensions_some_are_near_by_chance(d):
    """As windows of three channels; one with a trace of noise is a copy all the same."""
    rng = np.random.default_rng(0)
    sets = [rng.standard_normal((2, d)) for _ in range(600)]
    assert pairs_of(sets) == []
    sets.append(sets[4] + 1e-6 * rng.standard_normal((2, d)))
    assert pairs_of(sets) == [(4, 600)]


def suspects_of(sets, labels, groups=None):
    groups = groups or [None] * len(sets)
    clips = [
        Clip(f"{i}", *of, [one])
        for i, (one, *of) in enumerate(zip(sets, labels, groups))
    ]
    collection = build_all(clips, Recipe(1), keep_rows=True)
    settings = Settings(kernels=False, lam=[0.1], p=[1])
    inputs = inputs_for(collection, Recipe(1), settings)
    return suspects_among(collection, inputs, settings)


def test_what_explains_nothing_is_not_explained_by_itself():
    """A clip whose frames are orthogonal to those of all others has a zero code."""
    rng = np.random.default_rng(0)
    looks = np.eye(2, 8)
    sets = [
        rng.random((3, 1)) * (looks[i % 2] + np.pad(rng.random(3), (2, 3)))
        for i in range(10)
    ]
    sets.append(rng.random((3, 1)) * np.eye(1, 8, 7))
    found = suspects_of(sets, [*"ab"] * 5 + ["a"])
    assert found.reasons[10] == [] and found.because[10] == ""
    assert all(i != j for i, of in enumerate(found.reasons) for j, _ in of)
    assert any(found.reasons[:10])


def test_nothing_of_its_own_group_speaks_against_a_label():
    """Each person has a look; one of their clips has the label of the others."""
    rng = np.random.default_rng(1)
    person = np.arange(24) // 4
    looks = rng.standard_normal((6, 9))
    sets = [
        rng.random((3, 1)) * (looks[p] + 0.1 * rng.standard_normal(9)) for p in person
    ]
    labels = np.array(["a", "b"])[person % 2]
    labels[::4] = np.array(["b", "a"])[person[::4] % 2]
    alone = suspects_of(sets, labels)
    kept = suspects_of(sets, labels, [f"person {p}" for p in person])
    for found, within in ((alone, True), (kept, False)):
        same = [
            person[i] == person[j] for i, of in enumerate(found.reasons) for j, _ in of
        ]
        assert same and any(same) == within
