"""The paper's experiments run on made-up trees and say what is missing."""

import csv
import itertools
import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from examples import paper_experiments
from examples.paper_experiments import PRESETS
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, Collection
from grassmann_sc import subspaces
from grassmann_sc.baselines import dynamics


def moving(label, seed, n, side=24):
    """A blob that goes around at the class's pace, on noise."""
    rng = np.random.default_rng([label, seed])
    t = np.arange(n)[:, None, None] * (0.3 + 0.4 * label) + seed
    y, x = np.mgrid[:side, :side] / side - 0.5
    centre_y = 0.3 * np.sin(t)
    centre_x = 0.3 * np.cos(t) * (1 + label) / 2
    blob = np.exp(-((y - centre_y) ** 2 + (x - centre_x) ** 2) / 0.02)
    return (200 * blob + 50 * rng.random((n, side, side))).astype(np.uint8)


def images(folder, frames):
    folder.mkdir(parents=True)
    for i, frame in enumerate(frames):
        Image.fromarray(frame).save(folder / f"frame-{i:04}.png")


def make_casia(root):
    gender = [f"{k:03},{'male' if k % 2 else 'female'}" for k in range(1, 9)]
    (root / "gender.csv").write_text("\n".join(["person,gender", *gender]))
    for k in range(1, 9):
        for walk in ("nm-01", "nm-02", "cl-01"):
            for view in range(0, 181, 18):
                seed = 10 * k + view + (walk == "nm-02")
                silhouettes = 255 * (moving(k % 2, seed, 3, 20) > 90).astype(np.uint8)
                images(root / f"{k:03}" / walk / f"{view:03}", silhouettes)


def make_cambridge(root):
    for light in range(1, 6):
        for gesture in range(2):
            for clip in range(2):
                folder = root / f"Set{light}" / f"{gesture:04}" / f"{clip:04}"
                images(folder, moving(gesture, 10 * light + clip, 25))


def make_ucsd(root):
    rows = [["clip", "Exp1", "Exp2", "Exp3", "Exp4"]]
    for label, name in enumerate(["heavy", "light", "medium"]):
        for k in range(4):
            images(root / name / f"cctv{k}", moving(label, k, 14))
            rows.append(
                [f"{name}/cctv{k}", *("test" if k == e else "train" for e in range(4))]
            )
    with open(root / "splits.csv", "w", newline="") as file:
        csv.writer(file).writerows(rows)


def folders(n_clips, n_frames):
    def make(root):
        for label in range(2):
            for k in range(n_clips):
                images(root / f"class{label}" / f"clip{k}", moving(label, k, n_frames))

    return make


MAKE = {
    "casia": make_casia,
    "cambridge": make_cambridge,
    "ucsd": make_ucsd,
    "youtube": folders(6, 7),
    "ballet": folders(2, 30),
    "dyntex": folders(8, 25),
}
EXPECTED = {  # sets, d, p, splits
    "casia": (16, 1024, 6, 2),
    "cambridge": (20, 2000, 10, 4),
    "ucsd": (12, 11520, 10, 4),
    "youtube": (12, 59, 5, 2),
    "ballet": (20, 2916, 4, 2),
    "dyntex": (16, 177, 5, 2),
}


@pytest.mark.parametrize("name", PRESETS)
def test_each_experiment_runs_on_its_layout(name, tmp_path, capsys, monkeypatch):
    if PRESETS[name].recipe.features in ("hog", "lbp", "gei"):
        pytest.importorskip("skimage", reason="needs the extra 'image'")
    monkeypatch.setattr(paper_experiments, "SVM_GRID", {"C": [1, 10]})
    monkeypatch.setattr(paper_experiments, "GAMMA", [1])
    monkeypatch.setattr(paper_experiments, "LAM", [0.1, 0.01])
    monkeypatch.setattr(paper_experiments, "NEIGHBORS", [3])
    monkeypatch.setattr("grassmann_classify.baseline_rows.STATES", [3])
    monkeypatch.setattr("grassmann_classify.baseline_rows.RADII", [(1, 2)])
    monkeypatch.setattr("grassmann_classify.baseline_rows.CORRELATIONS", [3])
    monkeypatch.setattr("grassmann_classify.baseline_rows.USUAL_RANKS", [2])
    monkeypatch.setattr(dynamics, "N_ITER", 1)
    MAKE[name](tmp_path)
    out = tmp_path / "out"
    paper_experiments.main(
        [name, "--data", str(tmp_path), "--out", str(out), "--repeats", "2", "--strict"]
    )
    printed = capsys.readouterr().out
    sets, d, p, splits = EXPECTED[name]
    place = PRESETS[name].place
    assert f"{PRESETS[name].title} ({place} of the paper): {sets} sets, " in printed
    assert f"{p}-dimensional subspaces of R^{d}, {splits} splits" in printed
    fewer = int(re.search(r", (\d+) classes,", printed)[1]) < PRESETS[name].classes
    assert fewer == (
        f"The paper's data has {PRESETS[name].classes} classes, this " in printed
    )
    results = json.loads((out / name / "results.json").read_text())["methods"]
    for method in results.values():
        assert all(0 <= accuracy <= 100 for accuracy in method["accuracy"])
    check_table(printed, PRESETS[name], results)
    ours = [key for key in results if key.startswith(("gSC", "gLC"))]
    assert len(ours) == 2
    assert all(("learned" in key) == PRESETS[name].dictionary for key in ours)
    decided = [key for key in results if re.fullmatch("k?g[SL]C(, stacked.*)?", key)]
    assert len(decided) == (0 if PRESETS[name].dictionary else 4)
    for key in decided:
        assert {choice["rule"] for choice in results[key]["chosen"]} == {"residual"}
        stacked = bool(PRESETS[name].recipe.arma) and key.startswith("k")
        assert key.endswith(", stacked frames: ours") == stacked


def check_table(text, preset, results):
    """Under the paper's figures of each of its methods those of all its rows here."""
    lines = {line[:50].rstrip(): line[50:].split("  ") for line in text.splitlines()}
    lines = {name: [*filter(None, cells)] for name, cells in lines.items()}
    names = [*lines]
    for method, printed in preset.printed.items():
        cells = [cell.strip() for cell in lines[f"{method}, the paper"]]
        assert cells == printed
        rows = [key for key in results if paper_experiments.paper_name(key) == method]
        first = names.index(f"{method}, the paper") + 1
        assert rows and names[first : first + len(rows)] == rows
    for key, result in results.items():
        *each, over_all = [cell.strip() for cell in lines[key]]
        assert over_all == f"{result['mean']:.1f} ± {result['std']:.1f}"
        expected = [f"{accuracy:.1f}" for accuracy in result["accuracy"]]
        assert each == (expected if preset.columns else [])


@pytest.mark.parametrize("name", PRESETS)
def test_the_papers_figures_over_all_splits_are_those_of_its_columns(name):
    """Its means are of unrounded figures: they agree to a point."""
    columns = PRESETS[name].columns
    for *each, over_all in PRESETS[name].printed.values():
        assert len(each) == len(columns)
        if columns:
            mean, spread = map(float, over_all.split(" ± "))
            assert abs(np.mean([*map(float, each)]) - mean) < 1
            assert spread < 10


def test_other_splits_than_the_papers_have_no_columns(capsys):
    splits = [{"accuracy": 90.0, "failed": None}] * 3
    paper_experiments.print_table(PRESETS["ucsd"], {"gSC, labelled": splits})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["all", "splits"]
    assert [line.split()[-3:] for line in lines if line.startswith("gSC")] == [
        ["92.9", "±", "3.7"],
        ["90.0", "±", "0.0"],
    ]


def test_gait_splits_share_no_person(tmp_path):
    make_casia(tmp_path)
    preset = PRESETS["casia"]
    clips = preset.clips(tmp_path)
    assert len(clips) == 16
    assert all(len(clip.sources) == 11 for clip in clips)
    label = np.array([clip.label for clip in clips])
    group = np.array([clip.group for clip in clips])
    collection = type("C", (), {"label": label, "group": group})
    for train, test in preset.splits(collection, tmp_path, 3, 0):
        assert not set(group[train]) & set(group[test])
        assert len(train) + len(test) == 16
        assert len(np.unique(group[train])) == 4
        assert set(label[train]) == set(label[test]) == {"male", "female"}


@pytest.mark.parametrize("name", ["youtube", "ballet", "dyntex"])
def test_random_splits_keep_the_sets_of_a_clip_together(name, tmp_path):
    clip = np.repeat(np.arange(12), np.arange(1, 13))
    collection = Collection(None, None, None, clip % 2, None, (), clip)
    pairs = PRESETS[name].splits(collection, tmp_path, 3, 0)
    assert len(pairs) == 3
    for train, test in pairs:
        assert sorted([*train, *test]) == list(range(len(clip)))
        assert not set(clip[train]) & set(clip[test])


def labelled(label, group=None):
    """A Collection of sets that are a clip each."""
    label = np.asarray(label)
    return Collection(None, None, None, label, group, (), np.arange(len(label)))


@pytest.mark.parametrize(
    "name, share, repeats",
    [("youtube", 0.7, 10), ("ballet", 0.5, 10), ("dyntex", 0.5, 20)],
)
def test_random_splits_have_the_papers_share_and_number(name, share, repeats, tmp_path):
    preset = PRESETS[name]
    label = np.repeat(range(5), 20)
    pairs = preset.splits(labelled(label), tmp_path, preset.repeats, 0)
    assert len(pairs) == repeats
    for train, _ in pairs:
        assert np.bincount(label[train]).tolist() == [20 * share] * 5
    assert len({tuple(np.sort(train)) for train, _ in pairs}) == repeats


def test_gender_is_learned_from_ten_persons_of_each(tmp_path):
    """124 persons of six walks each, 31 of them women."""
    person = np.repeat(range(124), 6)
    gender = np.where(person < 31, "female", "male")
    preset = PRESETS["casia"]
    pairs = preset.splits(labelled(gender, person), tmp_path, preset.repeats, 0)
    assert len(pairs) == 10
    for train, test in pairs:
        for name in ("female", "male"):
            assert len({*person[train][gender[train] == name]}) == 10
        assert len({*person[test]}) == 104


def test_gestures_are_learned_from_set_5_and_tested_on_each_other_set(tmp_path):
    light = np.tile([f"Set{k}" for k in range(1, 6)], 6)
    collection = labelled(np.repeat(["flat", "spread"], 15), light)
    pairs = PRESETS["cambridge"].splits(collection, tmp_path, 1, 0)
    assert [{*light[test]} for _, test in pairs] == [{f"Set{k}"} for k in range(1, 5)]
    assert all({*light[train]} == {"Set5"} and len(train) == 6 for train, _ in pairs)


def test_learned_atoms_begin_with_drawn_samples():
    """As in Algorithms 4 and 6."""
    settings = paper_experiments.Settings([2], atoms=4)
    inputs = SimpleNamespace(collection=SimpleNamespace(sets=[np.zeros((3, 2))]))
    rows = paper_experiments.methods_of(PRESETS["ballet"], inputs)(inputs, 9, settings)
    learned = itertools.islice((row for row in rows if "learned" in row.name), 4)
    for row, name in zip(learned, ["gSC", "kgSC", "gLC", "kgLC"], strict=True):
        assert row.name.startswith(name)
        assert row.estimator["grassmanndictionary"].init == "random"


def test_recipes_follow_the_paper():
    frames = moving(1, 0, 48)
    clip = Clip("c", "a", None, [frames])
    normal = (frames - frames.mean(axis=0)) / frames.std(axis=0)
    t = np.linspace(0, 47, 20)
    rows = frames.reshape(48, -1).astype(float)
    between = [np.interp(t, np.arange(48), pixel) for pixel in rows.T]
    twenty = np.transpose(between).reshape(20, *frames.shape[1:])
    for name, video in [("ucsd", normal), ("cambridge", twenty)]:
        recipe = replace(PRESETS[name].recipe, size=None)  # the frames as they are
        basis = build_all([clip], recipe).X[0]
        expected = subspaces.from_video(video, 10, 5)
        cosines = np.linalg.svd(basis.T @ expected, compute_uv=False)
        np.testing.assert_allclose(cosines, 1, atol=1e-8)
    assert build_all([clip], PRESETS["dyntex"].recipe).sets[0].shape == (
        13,
        177,
    )


@pytest.mark.parametrize("name", PRESETS)
def test_missing_data_are_described(name, tmp_path, capsys):
    with pytest.raises(
        SystemExit, match="(?s)^examples.paper_experiments: .*Download: "
    ):
        paper_experiments.main([name, "--data", str(tmp_path)])
    with pytest.raises(
        SystemExit, match="(?s)^examples.paper_experiments: .*Download: "
    ):
        paper_experiments.main([name, "--data", str(tmp_path / "nowhere")])
    paper_experiments.main([name, "--help-data"])
    assert f"\n  {name}/" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        paper_experiments.main([name])
    assert "--data is needed" in capsys.readouterr().err
