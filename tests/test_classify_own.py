"""The user's own: functions named as package.module:function, and a file of labels."""

import csv
import importlib
import json
import sys
from threading import Thread

import numpy as np
import pytest

from grassmann_classify import add, fit, load, own, predict, save
from grassmann_classify.__main__ import main
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, Recipe
from grassmann_classify.finding import find_labelled
from grassmann_classify.points import Reader
from grassmann_classify.settings import Settings
from grassmann_sc import kernels

MODULE = """
import functools

import numpy as np

def pixels(frames):
    return frames.reshape(len(frames), -1)

def rows(frames, n=2):
    return frames.reshape(len(frames), -1)[:, ::n]

def fails(frames):
    if frames[0, 0, 0] > 200:
        raise RuntimeError("too bright")
    return pixels(frames)

def holes(frames):
    return np.where(frames[0, 0, 0] > 200, np.nan, pixels(frames) + 0.0)

def longer(frames):
    return np.pad(pixels(frames), [(0, 0), (0, int(frames[0, 0, 0] > 200))])

def gaussian(A, B):
    return np.exp(-0.5e-6 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

def corner(A, B):
    return 1.0 * ((A[:, :1] > 200) == (B[:, 0] > 200))

def thin(A, B):
    return np.ones((len(A), 1))

number = 3
thirds = functools.partial(rows, n=3)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module mine in the working folder; forgotten at the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "mine.py").write_text(MODULE)
    forget()
    yield tmp_path
    forget()


def forget():
    sys.modules.pop("mine", None)
    own.function_of.cache_clear()
    importlib.invalidate_caches()


def sets_of(n=12, side=6, n_frames=5):
    """n sets of frames of two classes, the corner of the fourth one bright."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((2, side * side, 2))
    sets = []
    for i in range(n):
        made = rng.standard_normal((n_frames, 2)) @ centres[i % 2].T
        made += 0.1 * rng.standard_normal(made.shape)
        made = (100 + 20 * made).clip(0, 200).astype(np.uint8)
        sets.append(made.reshape(n_frames, side, side))
    sets[3][:, 0, 0] = 255
    return sets


def corners():
    """Sets of noise of two classes in turn, of which a corner tells."""
    rng = np.random.default_rng(0)
    sets = [rng.integers(0, 200, (5, 6, 6), np.uint8) for _ in range(16)]
    for one in sets[::2]:
        one[:, 0, 0] = 201
    return sets


def folder_of(folder, sets, named=lambda i: f"{'ab'[i % 2]}/clip{i}.npy"):
    for i, frames in enumerate(sets):
        path = folder / named(i)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, frames)
    return folder


def run(data, *arguments, out="out"):
    usual = [
        "--no-pictures",
        "--out",
        out,
        "--repeats",
        "2",
        "--methods",
        "nearest,gsc",
    ]
    main(["compare", str(data), *usual, *arguments])
    with open(f"{out}/results.json", encoding="utf-8") as file:
        return json.load(file)


# ------------------------------------------------------------------- features, kernels


def test_own_features_that_are_pixels_answer_as_raw_frames_do(mine):
    data = folder_of(mine / "data", sets_of())
    stacks = ["--stack", "1", "2", "--no-kernels"]
    raw = run(data, "--features", "raw", *stacks)
    found = run(data, "--features", "mine:pixels", *stacks)
    for name, row in raw["methods"].items():
        assert found["methods"][name]["accuracy"] == row["accuracy"]
        assert found["methods"][name]["chosen"] == row["chosen"]
    assert {one["features"] for one in found["options"]["recipes"].values()} == {
        "mine:pixels"
    }
    half = run(
        data, "--features", "mine:rows", "--feature-options", '{"n": 3}', "--no-kernels"
    )
    assert half["subspaces"][0] == 12
    assert own.own("mine:thirds").source == own.own("mine:rows").source != ""
    third = run(data, "--features", "mine:thirds", "--no-kernels")
    assert third["methods"] == third["methods"] | {
        name: {**row, "seconds": third["methods"][name]["seconds"]}
        for name, row in half["methods"].items()
    }


@pytest.mark.parametrize(
    "name, why",
    [
        ("fails", "b/clip3.npy: mine:fails raised RuntimeError: too bright"),
        ("holes", "b/clip3.npy: mine:holes must return finite numbers, got NaN or inf"),
        ("longer", "b/clip3.npy: has d = 37 and most clips have 36"),
    ],
)
def test_an_error_of_an_own_function_belongs_to_the_clip(mine, name, why):
    data = folder_of(mine / "data", sets_of())
    found = run(data, "--features", f"mine:{name}", "--no-kernels")
    assert found["failed"] == [why] and found["n_sets"] == 11
    with pytest.raises(SystemExit, match=why.partition(": ")[2][:30]):
        run(data, "--features", f"mine:{name}", "--no-kernels", "--strict")


@pytest.mark.parametrize(
    "name, why",
    [
        ("mine:nothing", "mine:nothing: mine has no function nothing"),
        ("mine:number", "mine:number: mine has no function number"),
        ("nobody:knows", "nobody:knows: nobody cannot be imported"),
        ("os:system", "os:system is of the standard library"),
        ("mine", "must be one of raw, hog, lbp, lbp_top, gei, or package.module:func"),
    ],
)
def test_names_that_mean_no_function_are_refused(mine, name, why, capsys):
    data = folder_of(mine / "data", sets_of())
    with pytest.raises(SystemExit) as error:
        run(data, "--features", name)
    assert why in f"{error.value} {capsys.readouterr().err}"


def test_what_is_cached_goes_with_the_source_of_the_function(mine):
    data = folder_of(mine / "data", sets_of())
    arguments = ["--features", "mine:rows", "--no-kernels"]
    assert run(data, *arguments)["subspaces"][0] == 18
    (mine / "mine.py").write_text(MODULE.replace("n=2", "n=4"))
    forget()
    assert run(data, *arguments)["subspaces"][0] == 9


def test_an_own_kernel_is_as_ours_and_joins_the_linear_one(mine):
    sets = sets_of()
    label = [*"ab"] * 6
    settings = Settings(methods=["kgsc"], kernel="mine:gaussian", lam=[0.1], p=[2])
    recipe = Recipe(2)
    model = fit(sets, label, recipe=recipe, settings=settings)
    collection = build_all(
        [Clip(f"{i}", c, None, [one]) for i, (one, c) in enumerate(zip(sets, label))],
        recipe,
        keep_rows=True,
    )
    grams = []
    for kernel in (own.own("mine:gaussian"), kernels.rbf(0.5e-6)):
        reader = Reader("kernels", 2, kernel)
        points = reader.prepared(reader.points(collection))
        grams.append(reader.labelled(points))
        np.testing.assert_allclose(reader.asked(points, points), grams[-1], atol=1e-10)
    mine_, ours = grams
    np.testing.assert_allclose(mine_, ours, atol=1e-10)
    assert np.ptp(ours) > 0.1
    assert predict(model, sets).labels.tolist() == label


def test_an_own_kernel_is_a_candidate_beside_the_linear_one(mine):
    """Noise but for a corner that tells the class, which the own kernel alone sees."""
    sets = corners()
    settings = Settings(methods=["kgsc"], kernel="mine:corner", lam=[0.1], p=[1])
    recipe = Recipe(1)
    model = fit(sets, [*"ab"] * 8, recipe=recipe, settings=settings)
    assert "mine:corner" in model.chosen and model.score == 1
    assert model.reader.kernel == own.own("mine:corner")


def test_an_own_kernel_of_another_shape_is_an_error_of_its_rows(mine):
    data = folder_of(mine / "data", sets_of())
    found = run(
        data, "--kernel", "mine:thin", "--features", "raw", "--methods", "gsc,kgsc"
    )
    row = found["methods"]["kgSC, labelled sets as atoms"]
    assert (
        row["accuracy"] == found["methods"]["gSC, labelled sets as atoms"]["accuracy"]
    )
    with pytest.raises(ValueError, match="kernel must be named as package.module:fun"):
        Settings(kernel="thin")


def test_a_model_names_its_functions_and_refuses_to_answer_without(mine):
    sets = sets_of()
    label = [*"ab"] * 6
    data = folder_of(mine / "data", sets)
    arguments = [
        "--features",
        "mine:rows",
        "--kernel",
        "mine:gaussian",
        "--methods",
        "kgsc",
    ]
    learning = ["predict", str(data), "--data", str(data), "--out", "o"]
    main([*learning, *arguments, "--save", "model.npz"])
    first = (mine / "o" / "predictions.csv").read_bytes()
    again = ["predict", str(data), "--model", "model.npz", "--out", "o"]
    named = arguments[:4]
    main([*again, *named])
    assert (mine / "o" / "predictions.csv").read_bytes() == first
    forget()
    (mine / "mine.py").rename(mine / "away.py")
    for less in ([], named[2:]):
        with pytest.raises(
            SystemExit, match="runs only if you name it: --features mine"
        ):
            main([*again, *less])
    with pytest.raises(
        ValueError, match="model.npz needs the function mine:rows, which"
    ):
        load("model.npz", ["mine:pixels"])
    assert "mine" not in sys.modules
    (mine / "away.py").rename(mine / "mine.py")
    with open(mine / "o" / "predictions.csv", newline="") as file:
        held = {row["clip"]: row["label"] for row in csv.DictReader(file)}
    assert held == {f"{c}/clip{i}.npy": c for i, c in enumerate(label)}
    (mine / "mine.py").write_text(MODULE + "\n# changed\n")
    forget()
    why = "model.npz needs the function mine:rows as it was when the model was learned"
    with pytest.raises(SystemExit, match=why):
        main([*again, *named])
    with pytest.raises(ValueError, match=why):
        load("model.npz", ["mine:rows"])
    (mine / "mine.py").write_text(MODULE)
    forget()
    assert load("model.npz", ["mine:rows"]).recipe.source == own.own("mine:rows").source
    (mine / "mine.py").unlink()
    forget()
    with pytest.raises(ValueError, match="mine:rows: mine cannot be imported"):
        load("model.npz", ["mine:rows"])


def test_a_model_names_its_kernel_and_refuses_to_answer_without(mine):
    sets = corners()
    settings = Settings(methods=["kgsc"], kernel="mine:corner", lam=[0.1], p=[1])
    model = fit(sets, [*"ab"] * 8, recipe=Recipe(1), settings=settings)
    found = predict(model, sets)
    save("model.npz", model)
    kept = load("model.npz", ("mine:rows", "mine:corner"))
    assert kept.reader == model.reader
    assert np.array_equal(predict(kept, sets).scores, found.scores)
    grown = add(kept, sets_of()[:2], ["a", "b"])
    save("model.npz", grown)
    data = folder_of(mine / "data", sets)
    again = ["predict", str(data), "--model", "model.npz", "--out", "o"]
    with pytest.raises(
        SystemExit, match="runs only if you name it: --kernel mine:corn"
    ):
        main([*again, "--kernel", "mine:gaussian"])
    main([*again, "--kernel", "mine:corner"])
    with open(mine / "o" / "predictions.csv", newline="") as file:
        assert all(row["clip"][0] == row["label"] for row in csv.DictReader(file))
    (mine / "mine.py").write_text(MODULE + "\n# changed\n")
    forget()
    with pytest.raises(
        ValueError, match="function mine:corner as it was when the model"
    ):
        load("model.npz", ["mine:corner"])


# ------------------------------------------------------------------------------ labels


def written(path, *lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_file_labels_clips_of_one_folder_as_class_folders_do(mine, capsys):
    sets = sets_of()
    folders = folder_of(mine / "data", sets)
    flat = folder_of(
        mine / "flat", sets, lambda i: f"{'' if i % 3 else 'deep/'}{i}.npy"
    )
    lines = [f"{'' if i % 3 else 'deep/'}{i},{'ab'[i % 2]}" for i in range(len(sets))]
    labels = written(mine / "labels.csv", "clip,label", *reversed(lines))
    by_file = ["--labels", str(labels), "--p", "2"]
    rows = {}
    for data, arguments in ((folders, by_file[2:]), (flat, by_file)):
        usual = ["--no-pictures", "--out", "out", "--recipe", "plain"]
        main(["check", str(data), *usual, *arguments])
        with open("out/suspects.csv", newline="") as file:
            rows[data] = [*csv.DictReader(file)]
    clip, suspicion = (
        [[row[name] for row in rows[data]] for data in (folders, flat)]
        for name in ("clip", "suspicion")
    )
    assert suspicion[0] == suspicion[1]
    assert [name.replace("deep/", "") for name in clip[1]] == [
        name[len("a/clip") :] for name in clip[0]
    ]


def test_groups_and_the_split_of_a_file_are_used(mine, capsys):
    flat = folder_of(mine / "flat", sets_of(), "{}.npy".format)
    parts = ["train", "train", "train", "test"] * 3
    lines = [
        f"{'ab'[i % 2]}, {i}.npy ,g{i // 6},{part},long" for i, part in enumerate(parts)
    ]
    header = "label,clip,group,split,remark"
    labels = written(mine / "labels.csv", header, *lines[:-2], ",10,,,", ",11,,,")
    found = run(flat, "--labels", str(labels), "--no-kernels", "--recipe", "plain")
    assert found["n_sets"] == 10 and found["splits"] == 1
    said = capsys.readouterr().err
    assert "passed over the columns remark" in said
    assert "2 clips of " in said and "passed over" in said
    with open("out/predictions.csv", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert [row["clip"] for row in rows] == ["3.npy", "7.npy"]
    clips_found, parts = find_labelled(flat, labels)
    assert [clip.group for clip in clips_found] == ["g0"] * 6 + ["g1"] * 4
    # without the split, one group is left out at a time
    bare = written(
        mine / "bare.csv", *[",".join(x.split(",")[:3]) for x in [header, *lines]]
    )
    found = run(flat, "--labels", str(bare), "--no-kernels", "--recipe", "plain")
    assert found["splits"] == 2


@pytest.mark.parametrize(
    "lines, why",
    [
        (["name,label"], "the first line must name the columns clip (or filename"),
        (["clip,label,label"], "each once, got 'clip,label,label'"),
        (
            ["clip,label", "0,a", "99,b"],
            "must name clips that are there, got 99 in line 3",
        ),
        (
            ["clip,label", "0,a", "0.npy,b"],
            "name a clip once, got 0.npy in lines 2 and 3",
        ),
        (
            ["clip,label", "both,a"],
            "must name clips that are there, got both in line 2",
        ),
        (["clip,label", "0"], "line 2 must have 2 columns, got 1"),
        (
            ["clip,label,split", "0,a,dev"],
            "split must be train, test or nothing, got 'dev'",
        ),
        (["clip,label", "0,a", "1,a"], "at least two classes, got one: a"),
        ([], "the first line must name the columns"),
    ],
)
def test_files_of_labels_that_do_not_fit_are_refused(mine, lines, why):
    flat = folder_of(mine / "flat", sets_of(4), "{}.npy".format)
    for name in ("both.npy", "both.gif"):  # neither is "both"
        (flat / name).write_bytes(b"")
    labels = written(mine / "labels.csv", *lines)
    with pytest.raises(SystemExit) as error:
        run(flat, "--labels", str(labels))
    assert why in str(error.value)


def test_more_clips_join_a_model_by_a_file_or_from_one_class(mine, capsys):
    sets = sets_of()
    data = folder_of(mine / "data", sets[:8])
    usual = ["--out", "out", "--no-pictures"]
    plain = ["--recipe", "plain", "--methods", "gsc", "--p", "2"]
    main(["predict", "--data", str(data), "--save", "m.npz", *plain, *usual])
    more = folder_of(mine / "more", sets[8:], "{}.npy".format)
    labels = written(mine / "more.csv", "clip,label", "0,a", "1,b", "2,c", "3,c")
    adding = ["--model", "m.npz", "--save", "n.npz", *usual[:2]]
    main(["add", str(more), *adding, "--labels", str(labels)])
    assert load("n.npz").classes.tolist() == ["a", "b", "c"]
    one = folder_of(mine / "one", sets[8:10], "c/{}.npy".format)
    main(["add", str(one), *adding])
    assert load("n.npz").classes.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize(
    "name, why",
    [
        ("joblib.numpy_pickle:pickle.loads", "is of _pickle"),
        ("grassmann_classify.own:os.system", "it is of posix"),
        ("mine:np.load", "it is of numpy"),
        ("quits:f", "quits cannot be imported: SystemExit: 4"),
        ("mine:leaves", "mine:leaves raised SystemExit: 3"),
        ("mine:flat", "mine:flat must return real numbers (n, d), got uint8 (180,)"),
        ("mine:two_lines", "mine:two_lines raised KeyError: 'a b'"),
    ],
)
def test_own_functions_run_no_other_program_and_end_none(mine, name, why):
    more = """
def leaves(frames):
    raise SystemExit(3)

def flat(frames):
    return frames.ravel()

def two_lines(frames):
    raise KeyError("a" + chr(10) + "b")
"""
    (mine / "mine.py").write_text(MODULE + more)
    (mine / "quits.py").write_text("import sys\nsys.exit(4)\n")
    forget()
    data = folder_of(mine / "data", sets_of())
    with pytest.raises(SystemExit) as error:
        run(data, "--features", name)
    message = str(error.value).replace("\\n", " ")
    assert why in message and "\n" not in message.strip()


def test_the_name_of_a_kernel_is_checked_before_anything_is_read(mine, capsys):
    data = folder_of(mine / "data", sets_of())
    with pytest.raises(SystemExit, match="nobody cannot be imported"):
        run(data, "--kernel", "nobody:knows")
    assert "reading" not in capsys.readouterr().err
    for job in (["cluster", "-k", "2"], ["check"]):
        with pytest.raises(SystemExit):
            main([*job, str(data), "--kernel", "mine:gaussian"])
        assert "unrecognized arguments: --kernel" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, why",
    [
        (
            "predict flat --model m.npz --labels labels.csv",
            "--labels goes with --data",
        ),
        ("cluster flat -k 2 --p 2 3", "unrecognized arguments: 3"),
        (
            "add labels.csv --model m.npz --save n.npz --labels labels.csv",
            "--labels goes with a folder of cl",
        ),
        ("compare labels.csv --labels labels.csv", "--labels goes with a folder of cl"),
        ("compare flat --labels labels.csv --group-by x", "--labels and --group-by ex"),
    ],
)
def test_options_that_do_not_go_together_are_refused(mine, arguments, why, capsys):
    written(mine / "labels.csv", "clip,label")
    (mine / "m.npz").write_bytes(b"")
    folder_of(mine / "flat", sets_of(4), "{}.npy".format)
    with pytest.raises(SystemExit):
        main(arguments.split())
    assert why in capsys.readouterr().err


def test_one_class_to_train_is_named_with_its_file(mine):
    flat = folder_of(mine / "flat", sets_of(4), "{}.npy".format)
    lines = ["0,b,train", "1,b,train", "2,a,test", "3,a,test"]
    labels = written(mine / "labels.csv", " clip , label,split", *lines)
    with pytest.raises(SystemExit) as error:
        run(flat, "--labels", str(labels))
    assert "split of labels.csv: a training part: " in str(error.value)
    assert "at least two classes, got one: b" in str(error.value)
    labels = written(mine / "none.csv", "clip,label", ",a")
    with pytest.raises(SystemExit, match="line 2 must name a clip, got none"):
        run(flat, "--labels", str(labels))


def test_a_file_of_sets_without_splits_is_split_at_random(mine, capsys):
    sets = sets_of()
    offset = np.cumsum([0, *map(len, sets)])
    label = np.arange(12) % 2
    np.savez("d.npz", frames=np.concatenate(sets), offset=offset, label=label)
    usual = ["--recipe", "plain", "--p", "2"]
    main(["check", "d.npz", *usual])
    learning = ["predict", "--data", "d.npz", "--save", "m.npz", "--methods", "gsc"]
    main([*learning, "--no-kernels", *usual])
    main(["compare", "d.npz", "--repeats", "2", "--methods", "nearest", *usual])
    assert "2 splits: random splits, 50 % to train" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "concurrent.futures:wait",
        "multiprocessing.pool:Pool",
        "xml.dom.minidom:parse",
        "importlib.util:find_spec",
    ],
)
def test_modules_within_packages_of_the_standard_library_are_refused_too(name):
    with pytest.raises(ValueError, match="is of the standard library"):
        own.function_of(name)


def test_an_own_function_is_called_by_one_thread_at_a_time(mine):
    """Clips are read by threads; the user's function need not know."""
    more = """
import threading, time
inside = 0
most = 0

def slow(frames):
    global inside, most
    inside += 1
    most = max(most, inside)
    time.sleep(0.005)
    inside -= 1
    return pixels(frames)
"""
    (mine / "mine.py").write_text(MODULE + more)
    forget()
    called = own.Own("mine:slow")
    threads = [Thread(target=called, args=(np.ones((2, 3, 3)),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sys.modules["mine"].most == 1 and sys.modules["mine"].inside == 0


@pytest.mark.parametrize(
    "returned, why",
    [
        ("np.full((2, 3), np.inf)", "must return finite numbers, got NaN or inf"),
        ("np.full((2, 3), -np.inf)", "must return finite numbers, got NaN or inf"),
        (
            "np.empty((0, 3))",
            r"must return real numbers \(n, d\), got float64 \(0, 3\)",
        ),
        (
            "np.empty((2, 0))",
            r"must return real numbers \(n, d\), got float64 \(2, 0\)",
        ),
        ("np.ones((2, 3), complex)", "must return real numbers"),
    ],
)
def test_rows_that_are_none_are_named(mine, returned, why):
    text = f"\n\ndef odd(frames):\n    return {returned}\n"
    (mine / "mine.py").write_text(MODULE + text)
    forget()
    recipe = Recipe(1, features="mine:odd")
    with pytest.raises(ValueError, match=f"mine:odd {why}"):
        own.describe(np.ones((2, 3, 3)), recipe)
