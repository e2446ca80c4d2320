"""The application: clips, subspaces, splits, answers and tables, each told a second time
in plain NumPy and loops.
"""

import csv
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from arrays import LAYOUTS
from commands import compare, frames, put, put_classes
from grassmann_classify import Settings, fit, load, predict, save
from grassmann_classify.answers import kinds_of_scores
from grassmann_classify.building import build
from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.finding import find_clips, find_new_clips
from grassmann_classify.messages import printable
from grassmann_classify.splits import split_at_random, split_by_file, split_by_group
from grassmann_classify.spreadsheets import read_rows
from oracles import booleans, hat, seeds

NAMES = ["ape", "b c", 'ü,"', "-x", "10", "9"]


@settings(max_examples=300)
@given(
    seed=seeds,
    n=st.integers(8, 30),
    shape=st.tuples(st.integers(4, 8)) | st.tuples(st.just(3), st.integers(2, 3)),
    power=st.integers(-6, 6),
    p=st.integers(1, 2),
    recipe=st.fixed_dictionaries(
        {"every": st.integers(1, 2), "stack": st.integers(1, 2), "center": booleans},
        optional={
            "unit_variance": booleans,
            "at_most": st.integers(4, 8),
            "evenly": st.integers(4, 8),
            "resample": st.integers(4, 11),
            "run": st.just(4),
        },
    ),
    layout=st.sampled_from([*LAYOUTS, "file"]),
)
def test_a_recipe_gives_the_subspaces_of_its_rows(
    seed, n, shape, power, p, recipe, layout
):
    """Frames are picked, resampled, cut into runs, stacked, normalised; then the leading
    singular vectors, of well-known gaps, since the frames are made of them.
    """
    d = int(np.prod(shape))
    rng = np.random.default_rng(seed)
    rows = 10.0**power * rng.standard_normal((n, d)) * 0.6 ** np.arange(d)
    if "at_most" in recipe:
        recipe.pop("evenly", None)
    picked = min(
        recipe.get("at_most", n), recipe.get("evenly", n), n // recipe["every"]
    )
    if recipe.get("resample", 0) > picked:
        recipe.pop("run", None)  # rows between two frames lie on a line
    np.save("clip.npy", rows.reshape(n, *shape))
    source = Path("clip.npy")
    source = source if layout == "file" else LAYOUTS[layout](np.load(source))
    made = build(Clip("clip", "a", None, [source]), Recipe(p=p, **recipe), True)
    expected = dense_runs(rows, **recipe)
    assert len(made.bases) == len(expected) and made.frame == shape
    for basis, kept, run in zip(made.bases, made.rows, expected):
        assert np.abs(kept - run).max() <= 1e-9 * np.abs(run).max()
        _, s, V = np.linalg.svd(run, full_matrices=False)
        if s[p - 1] > 1.01 * (s[p] if p < len(s) else 0):
            assert np.abs(hat(basis) - hat(V[:p].T)).max() <= 1e-6


def dense_runs(
    rows,
    every,
    stack,
    center,
    unit_variance=False,
    at_most=None,
    evenly=None,
    resample=None,
    run=None,
):
    """The rows of each run, as the fields of a Recipe say in words."""
    rows = rows[::every][:at_most]
    if evenly is not None:
        rows = rows[[round(i) for i in np.linspace(0, len(rows) - 1, evenly)]]
    if resample is not None:
        times = np.linspace(0, len(rows) - 1, resample)
        columns = [np.interp(times, np.arange(len(rows)), column) for column in rows.T]
        rows = np.stack(columns, axis=1)
    length = run or len(rows)
    found = []
    for start in range(0, len(rows) - length + 1, length):
        places = range(start, start + length - stack + 1)
        part = np.stack([rows[i : i + stack].ravel() for i in places])
        if center or unit_variance:
            part = part - part.mean(axis=0)
        found.append(part / part.std(axis=0) if unit_variance else part)
    return found


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(NAMES),
        st.lists(st.integers(1, 3), min_size=1, max_size=3),
        min_size=2,
    ),
    booleans,
)
def test_clips_are_found_by_class_and_group(classes, grouped):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        expected = set()
        for label, counts in classes.items():
            put(Path(folder, label, "notes.txt"), b"no clip")
            for k, n in enumerate(counts if grouped else counts[:1]):
                for i in range(n):
                    name = f"{label}/g{k}/{i}.npy" if grouped else f"{label}/{i}.npy"
                    put(Path(folder, name), np.zeros((2, 3)))
                    expected.add((name, label, f"g{k}" if grouped else None))
        found = [(clip.name, clip.label, clip.group) for clip in find_clips(folder)]
        assert {*found} == expected and len(found) == len(expected)
        assert {clip.name for clip in find_new_clips(folder)} == {
            x[0] for x in expected
        }


ODD = ["a/1", "b/ü,2", 'b/"quoted"', "a/line\nbreak", "c/ ", "c/#1"]
PARTS = st.lists(st.sampled_from(["train", "test", ""]), min_size=6, max_size=6)


@given(
    st.permutations(range(6)),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_file_of_splits_says_what_csv_reads(order, parts, encoding, end):
    parts = [["train", "test", *part[2:]] for part in parts]
    with open("splits.csv", "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, lineterminator=end)
        writer.writerow(["clip", *range(len(parts))])
        writer.writerows([ODD[i], *(part[i] for part in parts)] for i in order)
    found = split_by_file("splits.csv", [printable(name, but="") for name in ODD])
    for part, split in zip(parts, found, strict=True):
        for side, rows in zip(("train", "test"), split, strict=True):
            assert sorted(rows) == [i for i in range(6) if part[i] == side]


@given(seeds, st.sampled_from([0.3, 0.5, 1, 0.9]))
def test_splits_keep_clips_whole_and_classes_on_both_sides(seed, share):
    rng = np.random.default_rng(seed)
    label = np.repeat(["a", "b", "c"], rng.integers(2, 6, 3))
    clip = np.repeat(np.arange(len(label)), rng.integers(1, 4, len(label)))
    for train, test in split_at_random(label[clip], share, 3, seed % 9, clip):
        assert sorted([*train, *test]) == [*range(len(clip))]
        assert not {*clip[train]} & {*clip[test]}
        if share == 1:
            assert {*label[clip[test]]} == {*"abc"}
            assert sorted(label[np.unique(clip[train])]) == [*"abc"]
    group = np.array(["x", "y", "z"])[np.arange(len(label)) % 3]
    left_out = [{*group[test]} for _, test in split_by_group(label, group)]
    assert sorted("".join(one) for one in left_out) == ["x", "y", "z"]


LABELS = [["ape", "bee", 'ä,"\n'], [3, 1, 2], [-1, 0, 10**9], [True, False], [*"9x"]]
METHODS = ["nearest subspace", "svm", "gsc", "glc", "gda", "dcc", "msm"]


@settings(max_examples=60)
@given(
    seeds,
    st.sampled_from(METHODS),
    st.sampled_from(LABELS),
    st.sampled_from([1e-6, 1, 1e6]),
)
def test_a_model_answers_the_same_from_its_file_and_alone(seed, method, names, scale):
    """With labels as they were given; the nearest subspace is that of the largest
    ||X_i^T D_j||^2, in a plain loop.
    """
    rng = np.random.default_rng(seed)
    n = 5 * len(names)
    y = [names[i % len(names)] for i in range(n)]
    patterns = rng.standard_normal((len(names), 3, 8))
    rows = [
        rng.standard_normal((6, 3)) @ patterns[i % len(names)] for i in range(n + 4)
    ]
    sets = [scale * (one + 0.5 * rng.standard_normal((6, 8))) for one in rows]
    queries = sets[n:]
    options = dict(p=[1, 2], lam=[0.1], neighbors=[2], C=[1.0])
    options |= dict(methods=[method], kernels=False, iterations=1)
    model = fit(sets[:n], y, settings=Settings(**options))
    found = predict(model, queries)
    labels = found.labels.tolist()
    assert {*map(repr, found.classes.tolist())} == {*map(repr, names)}
    assert np.isfinite(found.scores).all()
    if kinds_of_scores(model) == "score" or len(names) == 2:
        assert labels == found.classes[found.scores.argmax(axis=1)].tolist()
    save("model.npz", model)
    kept = predict(load("model.npz"), queries)
    assert kept.labels.tolist() == labels
    assert kept.scores.tobytes() == found.scores.tobytes()
    assert labels == [predict(model, [one]).labels.tolist()[0] for one in queries]
    if method == "nearest subspace":
        X = [np.linalg.svd(one)[2][: model.reader.p].T for one in sets]
        for label, query in zip(labels, X[n:]):
            cosines = [np.square(D.T @ query).sum() for D in X[:n]]
            assert label == y[int(np.argmax(cosines))]


@settings(max_examples=15)
@given(
    seeds,
    st.sets(st.sampled_from(["new\nline", " ", "-c", "ünï 🙂"])),
    st.integers(1, 3),
)
def test_tables_say_the_numbers_of_the_results(seed, odd, repeats):
    with tempfile.TemporaryDirectory(dir=".") as folder:
        rng = np.random.default_rng(seed)
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
        for k, told in enumerate(results["methods"].values()):
            check_numbers(rows, 3 + k, told, [*map(str, results["classes"])])
        with np.load(out / "codes.npz") as arrays:
            last = [row[0] for row in rows if row[1] == str(repeats - 1)]
            assert arrays["names"][arrays["test"]].tolist() == last


def check_numbers(rows, column, told, classes):
    """Accuracy, balanced accuracy and F1 of each split, and the confusion matrix, by
    counting.
    """
    confusion = np.zeros((len(classes), len(classes)), int)
    for k in range(len(told["accuracy"])):
        of_split = np.zeros_like(confusion)
        for row in [row for row in rows if row[1] == str(k)]:
            of_split[classes.index(row[2]), classes.index(row[column])] += 1
        confusion += of_split
        right = of_split.diagonal()
        asked = of_split.sum(axis=1)
        both = asked + of_split.sum(axis=0)
        expected = {
            "accuracy": right.sum() / asked.sum(),
            "balanced": (right[asked > 0] / asked[asked > 0]).mean(),
            "f1": (2 * right[both > 0] / both[both > 0]).mean(),
        }
        for name, value in expected.items():
            assert abs(told[name][k] - 100 * value) <= 1e-6
    assert np.array_equal(told["confusion"], confusion) and not any(told["failed"])
