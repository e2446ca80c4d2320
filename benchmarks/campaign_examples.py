"""The application in the campaign: clips, subspaces, splits, answers and tables, each told
a second time in plain NumPy and loops.
"""

import contextlib
import csv
import io
import json
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks import campaign_folders as folders
from benchmarks.campaign_calls import failing, hold, rng_of
from benchmarks.campaign_numbers import LAYOUTS
from grassmann_classify import Settings, fit, load, predict, save
from grassmann_classify.building import build
from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.finding import find_clips, find_new_clips
from grassmann_classify.messages import printable
from grassmann_classify.model import kinds_of_scores
from grassmann_classify.splits import split_at_random, split_by_file, split_by_group
from grassmann_classify.spreadsheets import read_rows
from oracles import hat

NEAR = 1e-6  # of projectors of singular vectors that are well apart


def examples(seed, case):
    """One check in turn, in a folder of its own."""
    check = CHECKS[case % len(CHECKS)]
    rng = rng_of("examples", seed, case)
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        contextlib.redirect_stderr(io.StringIO()),
    ):
        with warnings.catch_warnings(), failing(check.__name__):
            warnings.simplefilter("ignore")
            check(rng, Path(folder))


# ------------------------------------------------------------------- clips to subspaces


def recipes(rng, folder):
    """A clip by a recipe: frames picked, resampled, cut into runs, stacked, normalised;
    then the leading singular vectors, of well-known gaps, since the frames are made of
    them.
    """
    n = int(rng.integers(8, 30))
    shape = [(int(rng.integers(4, 9)),), (3, int(rng.integers(2, 4)))][rng.integers(2)]
    d = int(np.prod(shape))
    scale = float(10.0 ** rng.integers(-6, 7))
    rows = scale * rng.standard_normal((n, d)) * 0.6 ** np.arange(d)
    frames = rows.reshape(n, *shape)
    p = int(rng.integers(1, 3))
    every = int(rng.integers(1, 3))
    recipe = dict(p=p, every=every, center=bool(rng.random() < 0.3))
    recipe["unit_variance"] = bool(rng.random() < 0.3)
    if rng.random() < 0.3:
        recipe["at_most"] = int(rng.integers(4, 9))
    elif rng.random() < 0.3:
        recipe["evenly"] = int(rng.integers(4, 9))
    if rng.random() < 0.4:
        recipe["resample"] = int(rng.integers(4, 12))
    if rng.random() < 0.3:
        recipe["run"] = 4
    picked = min(recipe.get("at_most", n), recipe.get("evenly", n), n // every)
    if recipe.get("resample", 0) > picked:
        recipe.pop("run", None)  # rows between two frames lie on a line
    recipe["stack"] = int(rng.integers(1, 3))
    source = LAYOUTS.get(rng.choice([*LAYOUTS, ""]), np.array)(frames)
    if rng.random() < 0.5:
        np.save(folder / "clip.npy", frames)
        source = folder / "clip.npy"
    with failing(f"{recipe}, frames {frames.shape} times {scale:g}"):
        made = build(Clip("clip", "a", None, [source]), Recipe(**recipe), True)
        expected = dense_runs(rows, **recipe)
        hold(
            len(made.bases) == len(expected),
            f"{len(made.bases)} runs, not {len(expected)}",
        )
        hold(made.frame == shape, f"frames of {made.frame}", "frames of another shape")
        for basis, kept, run in zip(made.bases, made.rows, expected):
            hold(
                np.abs(kept - run).max() <= 1e-9 * np.abs(run).max(),
                "other rows are kept",
            )
            s = np.linalg.svd(run, compute_uv=False)
            if s[p - 1] > 1.01 * (s[p] if p < len(s) else 0):
                V = np.linalg.svd(run, full_matrices=False)[2][:p].T
                off = np.abs(hat(basis) - hat(V)).max()
                hold(off <= NEAR, f"another subspace: by {off:.2g}", "another subspace")


def dense_runs(
    rows,
    p,
    every=1,
    at_most=None,
    evenly=None,
    resample=None,
    run=None,
    stack=1,
    center=False,
    unit_variance=False,
):
    """The rows of each run, as the fields of a Recipe say in words."""
    rows = rows[::every][:at_most]
    if evenly is not None:
        rows = rows[[round(i) for i in np.linspace(0, len(rows) - 1, evenly)]]
    if resample is not None:
        times = np.linspace(0, len(rows) - 1, resample)
        rows = np.stack(
            [np.interp(times, np.arange(len(rows)), column) for column in rows.T], 1
        )
    length = len(rows) if run is None else run
    found = []
    for start in range(0, len(rows) - length + 1, length):
        part = rows[start : start + length]
        part = np.stack(
            [part[i : i + stack].ravel() for i in range(length - stack + 1)]
        )
        if center or unit_variance:
            part = part - part.mean(axis=0)
        if unit_variance:
            part = part / part.std(axis=0)
        found.append(part)
    return found


def trees(rng, folder):
    """find_clips names the clips that were put there, by class and group, and no
    others.
    """
    names = ["ape", "b c", 'ü,"', "-x", "10", "9"]
    expected = []
    grouped = bool(rng.random() < 0.5)
    for label in rng.choice(names, int(rng.integers(2, 5)), replace=False):
        for group in [f"g{i}" for i in range(rng.integers(1, 4))] if grouped else [""]:
            for i in range(rng.integers(1, 4)):
                path = folder / label / group / f"{i}.npy"
                path.parent.mkdir(parents=True, exist_ok=True)
                np.save(path, np.zeros((2, 3)))
                parts = [label, group, path.name] if group else [label, path.name]
                expected.append(("/".join(parts), label, group or None))
        (folder / label / "notes.txt").write_text("no clip")
    found = [(clip.name, clip.label, clip.group) for clip in find_clips(folder)]
    hold(
        sorted(found, key=str) == sorted(expected, key=str),
        f"{found}, not {expected}",
        "other clips are found",
    )
    new = sorted(clip.name for clip in find_new_clips(folder))
    hold(
        new == sorted(name for name, _, _ in expected),
        f"{new} as new clips",
        "other new clips are found",
    )


# ---------------------------------------------------------------------- splits, by name


def splits(rng, folder):
    """The parts of a CSV file of splits, as csv.reader alone reads it."""
    names = ["a/1", "b/ü,2", 'b/"quoted"', "a/line\nbreak", "c/ ", "c/#1"]
    names = [*rng.permutation(names)[: rng.integers(4, 7)]]
    n_splits = int(rng.integers(1, 4))
    table = rng.choice(["train", "test", ""], (len(names), n_splits))
    table[0] = "train"
    table[1] = "test"
    order = rng.permutation(len(names))
    path = folder / "splits.csv"
    with open(
        path, "w", newline="", encoding=str(rng.choice(["utf-8", "utf-8-sig"]))
    ) as file:
        writer = csv.writer(file, lineterminator=str(rng.choice(["\n", "\r\n"])))
        writer.writerow(["clip", *map(str, range(n_splits))])
        writer.writerows([names[i], *table[i]] for i in order)
    found = split_by_file(path, [printable(name, but="") for name in names])
    for k, split in enumerate(found):
        for side, part in zip(("train", "test"), split):
            expected = [i for i in range(len(names)) if table[i, k] == side]
            hold(
                sorted(part) == expected,
                f"split {k}: {side} is {part}, not {expected}",
                "other splits",
            )
    drawn_splits(rng)


def drawn_splits(rng):
    """Random splits: each class on both sides, clips whole; of groups each left out
    once.
    """
    label = np.repeat(["a", "b", "c"], rng.integers(2, 6, 3))
    clip = np.repeat(np.arange(len(label)), rng.integers(1, 4, len(label)))
    of_set = label[clip]
    share = float(rng.choice([0.3, 0.5, 1, 0.9]))
    for train, test in split_at_random(of_set, share, 3, int(rng.integers(9)), clip):
        hold(
            sorted([*train, *test]) == [*range(len(clip))],
            "a set is on no side, or on both",
        )
        hold(not {*clip[train]} & {*clip[test]}, "a clip is on both sides")
        if share == 1:
            sides = [{*of_set[part]} for part in (train, test)]
            hold(sides == [{*label}] * 2, f"classes {sides}, not all on both sides")
            counts = [len({*clip[train][of_set[train] == c]}) for c in "abc"]
            hold(
                counts == [1, 1, 1], f"{counts} clips of the classes to train, not one"
            )
    group = np.array(["x", "y", "z"])[np.arange(len(label)) % 3]
    pairs = split_by_group(label, group)
    left_out = sorted("".join({*group[test]}) for _, test in pairs)
    hold(left_out == ["x", "y", "z"], f"groups {left_out} are left out", "other groups")


# ------------------------------------------------------------------------------ answers


METHODS = ["nearest subspace", "svm", "gsc", "glc", "gda", "dcc", "msm"]
KINDS_OF_LABELS = [
    ["ape", "bee", 'ä,"\n'],
    [3, 1, 2],
    [-1, 0, 10**9],
    [True, False],
    ["10", "9", "x"],
]


def kept_answers(rng, folder):
    """A model answers labels as they were given; the same from its file, and of each
    set alone; the nearest subspace is that of the largest ||X_i^T D_j||^2, in a plain
    loop.
    """
    method = METHODS[rng.integers(len(METHODS))]
    names = KINDS_OF_LABELS[rng.integers(len(KINDS_OF_LABELS))]
    n = 5 * len(names)
    y = [names[i % len(names)] for i in range(n)]
    patterns = rng.standard_normal((len(names), 3, 8))
    scale = float(rng.choice([1e-6, 1, 1e6]))
    sets = [
        scale
        * (
            rng.standard_normal((6, 3)) @ patterns[i % len(names)]
            + 0.5 * rng.standard_normal((6, 8))
        )
        for i in range(n + 4)
    ]
    settings = Settings(
        methods=[method],
        p=[1, 2],
        lam=[0.1],
        neighbors=[2],
        C=[1.0],
        kernels=False,
        iterations=1,
    )
    with failing(f"{method}, labels {names}, frames times {scale:g}"):
        model = fit(sets[:n], y, settings=settings)
        queries = sets[n:]
        found = predict(model, queries)
        labels = found.labels.tolist()
        hold(
            {*map(repr, found.classes.tolist())} == {*map(repr, names)},
            f"classes {found.classes!r}, not {names}",
            "labels are altered",
        )
        hold(np.isfinite(found.scores).all(), "scores are not finite")
        best = found.classes[found.scores.argmax(axis=1)].tolist()
        if kinds_of_scores(model) == "score" or len(names) == 2:
            hold(
                labels == best,
                f"labels {labels} beside best scores of {best}",
                "other labels",
            )
        save(folder / "model.npz", model)
        kept = predict(load(folder / "model.npz"), queries)
        hold(
            kept.labels.tolist() == labels
            and kept.scores.tobytes() == found.scores.tobytes(),
            "the file answers otherwise",
        )
        alone = [predict(model, [one]).labels.tolist()[0] for one in queries]
        hold(
            alone == labels, f"{labels} together, {alone} alone", "other answers alone"
        )
        if method == "nearest subspace":
            p = model.reader.p
            X = [np.linalg.svd(one, full_matrices=False)[2][:p].T for one in sets]
            nearest = [
                y[max(range(n), key=lambda j: np.square(X[j].T @ X[i]).sum())]
                for i in range(n, n + 4)
            ]
            hold(
                labels == nearest,
                f"{labels}, but the nearest are {nearest}",
                "not the nearest",
            )


# ------------------------------------------------------------------------------- tables


def tables(rng, folder):
    """What predictions.csv says are the numbers of results.json."""
    tree = folders.Tree(folder / "data", rng)
    for hostility in ("odd_names", "odd_class"):
        if rng.random() < 0.5:
            getattr(folders.Hostile, hostility)(tree)
    repeats = int(rng.integers(1, 4))
    options = ["--no-pictures", "--repeats", str(repeats), "--methods", "nearest,gsc"]
    end = folders.classify(tree.root, folder / "out", *options)
    hold(end is None, f"it ends with {end!r}", "classify fails")
    results = json.loads((folder / "out" / "results.json").read_text())
    header, rows = read_rows(folder / "out" / "predictions.csv")
    rows = [row for _, row in rows]
    hold(
        header[:3] == ["clip", "split", "truth"]
        and header[3:] == [*results["methods"]],
        f"columns {header}",
    )
    hold(
        {row[1] for row in rows} == {*map(str, range(repeats))},
        "other splits in the table",
    )
    for clip, _, truth, *_ in rows:
        known = printable(clip.partition("/")[0], but="")
        hold(truth == known, f"{clip!r} is of class {truth!r}", "another truth")
    names = {printable(name, but="") for name in tree.good}
    hold({row[0] for row in rows} <= names, "clips that are not there")
    for k, (method, told) in enumerate(results["methods"].items()):
        check_method(rows, 3 + k, method, told, [*map(str, results["classes"])])
    with np.load(folder / "out" / "codes.npz") as arrays:
        last = [row[0] for row in rows if row[1] == str(repeats - 1)]
        hold(
            arrays["names"][arrays["test"]].tolist() == last,
            "codes.npz has another test part",
        )


def check_method(rows, column, method, told, classes):
    """Accuracy, balanced accuracy and F1 of each split, and the confusion matrix, by
    counting.
    """
    if any(told["failed"]):
        return
    confusion = np.zeros((len(classes), len(classes)), int)
    for k in range(len(told["accuracy"])):
        pairs = [(row[2], row[column]) for row in rows if row[1] == str(k)]
        of_split = np.zeros_like(confusion)
        for truth, answer in pairs:
            of_split[classes.index(truth), classes.index(answer)] += 1
        confusion += of_split
        right = of_split.diagonal()
        asked = of_split.sum(axis=1)
        answered = of_split.sum(axis=0)
        there = asked > 0
        either = asked + answered > 0
        expected = {
            "accuracy": 100 * right.sum() / asked.sum(),
            "balanced": 100 * (right[there] / asked[there]).mean(),
            "f1": 100 * (2 * right[either] / (asked + answered)[either]).mean(),
        }
        for name, value in expected.items():
            hold(
                abs(told[name][k] - value) <= 1e-6,
                f"{method}, split {k}: {name} {told[name][k]}, but it is {value}",
                f"another {name}",
            )
    hold(
        np.array_equal(told["confusion"], confusion),
        f"{method}: another confusion matrix",
        "another confusion matrix",
    )


CHECKS = [recipes, trees, splits, recipes, kept_answers, splits, recipes, tables]
