"""The application: subspaces of recipes, splits and tables, each told a second time in
plain NumPy and loops.
"""

import functools
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from arrays import LAYOUTS
from commands import compare, frames, put, put_classes
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip
from grassmann_classify.settings import Recipe
from grassmann_classify.splits import read_rows, split_at_random, split_by_group
from grassmann_classify.words import printable
from oracles import booleans, hat
from problems import generators


@settings(max_examples=300)
@given(
    rng=generators,
    n=st.integers(8, 30),
    shape=st.tuples(st.integers(4, 8)) | st.tuples(st.just(3), st.integers(2, 3)),
    power=st.integers(-6, 6),
    p=st.integers(1, 2),
    recipe=st.fixed_dictionaries(
        {"every": st.integers(1, 2), "stack": st.integers(1, 2), "center": booleans},
        optional={
            "evenly": st.integers(4, 8),
            "resample": st.integers(4, 11),
            "window": st.just(4),
        },
    ),
    layout=st.sampled_from([*LAYOUTS, "file"]),
)
def test_a_recipe_gives_the_subspaces_of_its_rows(
    rng, n, shape, power, p, recipe, layout
):
    """Frames are picked, resampled, cut into windows, stacked, normalised; then the leading
    singular vectors, of well-known gaps, since the frames are made of them.
    """
    d = int(np.prod(shape))
    rows = 10.0**power * rng.standard_normal((n, d)) * 0.6 ** np.arange(d)
    picked = min(recipe.get("evenly", n), n // recipe["every"])
    if recipe.get("resample", 0) > picked:
        recipe.pop("window", None)  # rows between two frames lie on a line
    np.save("clip.npy", rows.reshape(n, *shape))
    source = Path("clip.npy")
    source = source if layout == "file" else LAYOUTS[layout](np.load(source))
    made = build_all([Clip("clip", "a", None, [source])], Recipe(p=p, **recipe))
    expected = dense_runs(rows, **recipe)
    assert len(made.X) == len(expected) and made.frame == shape
    for basis, kept, run in zip(made.X, made.sets, expected):
        assert np.abs(kept - run).max() <= 1e-9 * np.abs(run).max()
        _, s, V = np.linalg.svd(run, full_matrices=False)
        if s[p - 1] > 1.01 * (s[p] if p < len(s) else 0):
            assert np.abs(hat(basis) - hat(V[:p].T)).max() <= 1e-6


def dense_runs(
    rows,
    every,
    stack,
    center,
    evenly=None,
    resample=None,
    window=None,
):
    """The rows of each run, as the fields of a Recipe say in words."""
    rows = rows[::every]
    if evenly is not None:
        rows = rows[[round(i) for i in np.linspace(0, len(rows) - 1, evenly)]]
    if resample is not None:
        times = np.linspace(0, len(rows) - 1, resample)
        columns = [np.interp(times, np.arange(len(rows)), column) for column in rows.T]
        rows = np.stack(columns, axis=1)
    length = window or len(rows)
    runs = []
    for start in range(0, len(rows) - length + 1, length):
        places = range(start, start + length - stack + 1)
        part = np.stack([rows[i : i + stack].ravel() for i in places])
        if center:
            part = part - part.mean(axis=0)
        runs.append(part)
    return runs


@given(generators, st.sampled_from([0.3, 0.5, 1, 0.9]), st.integers(0, 8))
def test_splits_keep_clips_whole_and_classes_on_both_sides(rng, share, seed):
    label = np.repeat(["a", "b", "c"], rng.integers(2, 6, 3))
    clip = np.repeat(np.arange(len(label)), rng.integers(1, 4, len(label)))
    for train, test in split_at_random(label[clip], share, 3, seed, clip):
        assert sorted([*train, *test]) == [*range(len(clip))]
        assert not {*clip[train]} & {*clip[test]}
        if share == 1:
            assert {*label[clip[test]]} == {*"abc"}
            assert sorted(label[np.unique(clip[train])]) == [*"abc"]
    group = np.array(["x", "y", "z"])[np.arange(len(label)) % 3]
    left_out = [{*group[test]} for _, test in split_by_group(label, group)]
    assert sorted("".join(part) for part in left_out) == ["x", "y", "z"]


@settings(max_examples=15)
@given(
    generators,
    st.sets(st.sampled_from(["new\nline", " ", "-c", "ünï 🙂"])),
    st.integers(1, 3),
)
def test_tables_say_the_numbers_of_the_results(rng, odd, repeats):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        names = put_classes(Path(folder, "data"), rng, ["a", "b", *odd])
        for name in odd:
            put(Path(folder, "data", "b", f"{name}.npy"), frames(rng))
        names += [f"b/{name}.npy" for name in odd]
        out = Path(folder, "out")
        options = ["--no-pictures", "--repeats", repeats, "--methods", "nearest,gsc"]
        end, results = compare(Path(folder, "data"), out, *options)
        assert end is None
        header, rows = read_rows(out / "predictions.csv")
        rows = [row for _, row in rows]
        assert header == ["clip", "split", "truth", *results["methods"]]
        assert {row[1] for row in rows} == {*map(str, range(repeats))}
        assert {row[0] for row in rows} <= {printable(name, but="") for name in names}
        assert all(row[2] == row[0].partition("/")[0] for row in rows)
        for k, method in enumerate(results["methods"].values()):
            check_numbers(rows, 3 + k, method, [*map(str, results["classes"])])


def check_numbers(rows, column, method, classes):
    """Accuracy, balanced accuracy and F1 of each split, and the confusion matrix, as
    scikit-learn counts them.
    """
    scores = {
        "accuracy": metrics.accuracy_score,
        "balanced": metrics.balanced_accuracy_score,
        "f1": functools.partial(metrics.f1_score, average="macro"),
    }
    for k in range(len(method["accuracy"])):
        truth, predicted = zip(*((r[2], r[column]) for r in rows if r[1] == str(k)))
        for name, score in scores.items():
            assert abs(method[name][k] - 100 * score(truth, predicted)) <= 1e-6
    truth, predicted = zip(*((row[2], row[column]) for row in rows))
    confusion = metrics.confusion_matrix(truth, predicted, labels=classes)
    assert np.array_equal(method["confusion"], confusion) and not any(method["failed"])
