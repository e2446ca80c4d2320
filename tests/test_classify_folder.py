"""The folder of results loses nothing that a run did not write; what spreadsheets get."""

import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from grassmann_classify.__main__ import main
from grassmann_classify.results import LIST, OURS, Results, is_one, listed_in
from grassmann_classify.spreadsheets import read_rows, write_rows
from processes import ROOT, run_python

PROG = "grassmann-classify"
LEARN = "--recipe plain --no-kernels --methods nearest --p 1 --no-pictures"
COMMANDS = {  # what they are asked, and the names that they write
    "compare": (
        f"compare data {LEARN} --repeats 1",
        {"results.json", "predictions.csv", "codes.npz", "report.html"},
    ),
    "predict": (
        f"predict others --data data {LEARN}",
        {"predictions.csv", "report.html"},
    ),
    "answer": (
        "predict others --model kept.npz --no-pictures",
        {"predictions.csv", "report.html"},
    ),
    "add": ("add others --model kept.npz --save kept2.npz", set()),
    "check": (
        "check data --recipe plain --p 1 --no-pictures",
        {"copies.csv", "suspects.csv", "report.html"},
    ),
    "cluster": (
        "cluster others -k 2 --p 1 --no-pictures",
        {"clusters.csv", "report.html"},
    ),
}
NAMES = {"files.txt", "model.npz"} | {
    name for _, of in COMMANDS.values() for name in of
}
RUNS = pytest.mark.parametrize("asked, names", COMMANDS.values(), ids=[*COMMANDS])


def frames_of(k, seed):
    """5 frames of 4 x 6 pixels of class k."""
    rng = np.random.default_rng(seed)
    bright = 180 * (np.arange(6) // 2 == k)
    return (rng.integers(0, 60, (5, 4, 6)) + bright).astype(np.uint8)


def clips(folder, labels=("left", "right"), per_class=6):
    first = len(folder.name)  # others in each folder
    for k, label in enumerate(labels):
        (folder / label).mkdir(parents=True)
        for i in range(per_class):
            np.save(folder / label / f"{i}.npy", frames_of(k, 10 * first + i))
    return folder


def flat(folder):
    """12 clips in one folder, and their labels in a file beside it."""
    folder.mkdir()
    lines = ["clip,label"]
    for i in range(12):
        np.save(folder / f"{i}.npy", frames_of(i % 2, i))
        lines.append(f"{i}.npy,{'left right'.split()[i % 2]}")
    path = folder.parent / "labels.csv"
    path.write_text("\n".join(lines))
    return path


def stacked(path, label=("left", "right")):
    """An .npz file of 12 sets with a split."""
    every = np.arange(12)
    np.savez(
        path,
        frames=np.concatenate([frames_of(i % 2, i) for i in every]),
        offset=5 * np.arange(13),
        label=np.resize(label, 12),
        train0=every[:6],
        test0=every[6:],
    )
    return path


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """A folder with data, other clips, and a saved model."""
    folder = tmp_path_factory.mktemp("first")
    data = clips(folder / "data")
    clips(folder / "others")
    learned = tmp_path_factory.mktemp("learned")
    asked = "--data", data, "--save", folder / "kept.npz", "--out", learned
    run(f"predict {LEARN}", *asked)
    return folder


@pytest.fixture
def work(first, tmp_path, monkeypatch):
    """A copy of it, as the working folder."""
    folder = shutil.copytree(first, tmp_path / "work")
    monkeypatch.chdir(folder)
    return folder


def run(words, *others):
    main([*words.split(), *map(str, others)], PROG)


def refused(words, *others):
    """The line that a run ends with."""
    with pytest.raises(SystemExit) as end:
        run(words, *others)
    assert isinstance(end.value.code, str)
    return end.value.code


def state(folder):
    """{name: what it is} of all that lies in a folder, but for this program's own."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if OURS in path.parts:
            continue
        if path.is_symlink():
            found[name] = "a link to", os.readlink(path)
        elif path.is_dir():
            found[name] = "a folder"
        else:
            found[name] = path.read_bytes() if path.is_file() else "no plain file"
    return found


def left(before, folder):
    """The names that are there and were not before; all others are as they were."""
    after = state(folder)
    assert before == {name: after.get(name) for name in before}
    return after.keys() - before.keys()


def numbered(names, k=2):
    return {re.sub(r"(\.\w+)$", rf"-{k}\1", name) for name in names}


# ---------------------------------------------------------------------- what is a user's


def own_file(path):
    path.write_text("mine\n")


def own_folder(path):
    path.mkdir()
    own_file(path / "inner")


def own_link(path):
    target = path.with_name(f"target of {path.name}")
    own_file(target)
    path.symlink_to(target.name)


def own_link_to_nothing(path):
    path.symlink_to("nowhere")


def own_fifo(path):
    if not hasattr(os, "mkfifo"):
        pytest.skip("no FIFOs here")
    os.mkfifo(path)


KINDS = pytest.mark.parametrize(
    "own", [own_file, own_folder, own_link, own_link_to_nothing, own_fifo]
)


@RUNS
@KINDS
def test_what_a_user_has_in_the_folder_of_results_stays(asked, names, own, work):
    """Twice, because the second run knows what the first has written."""
    (work / "out").mkdir()
    for name in NAMES:
        own(work / "out" / name)
    before = state("out")
    for _ in range(2):
        run(asked)
        assert left(before, "out") == numbered(names)


@RUNS
def test_what_a_run_wrote_is_replaced_until_it_is_changed(asked, names, work):
    for _ in range(2):
        run(asked)
        assert state("out").keys() == names
    for name in names:
        with open(work / "out" / name, "ab") as file:
            file.write(b" ")
    changed = state("out")
    for _ in range(2):
        run(asked)
        assert left(changed, "out") == numbered(names)
    for name in names:
        (work / "out" / name).unlink()
    run(asked)
    assert state("out").keys() == names


def test_a_file_that_stays_is_said_once_and_why(work, capsys):
    (work / "out").mkdir()
    own_file(work / "out" / "results.json")
    asked = f"{COMMANDS['compare'][0]} --methods nearest,svm,gsc"

    def said(name):
        lines = capsys.readouterr().err.splitlines()
        return [line for line in lines if line.startswith(f"out/{name} stays")]

    run(asked)
    assert said("results.json") == [
        "out/results.json stays, this program did not write it: the new one is "
        "results-2.json"
    ]
    with open("out/report.html", "a") as file:
        file.write(" ")
    run(asked)
    assert said("report.html") == [
        "out/report.html stays, it was changed since it was written: the new one is "
        "report-2.html"
    ]
    stacked(work / "sets.npz")
    with Results("out") as out:
        sets = (work / "sets.npz").read_bytes()
        out.write("codes.npz", lambda file: file.write(sets))
    capsys.readouterr()
    run(f"compare out/codes.npz {LEARN}")
    assert said("codes.npz") == [
        "out/codes.npz stays, this run reads it: the new one is codes-2.npz"
    ]


NAME = st.sampled_from(["a.csv", "a-2.csv", "b", "b-2"])
STEP = st.one_of(
    st.tuples(st.just("run"), st.lists(NAME, max_size=4)),
    st.tuples(st.just("user"), NAME, st.binary(max_size=2)),
    st.tuples(st.just("remove"), NAME),
    st.tuples(st.just("link"), NAME),
)


@settings(max_examples=50)
@given(st.lists(STEP, max_size=12))
def test_whatever_a_user_does_between_runs_no_run_takes_what_is_not_its_own(steps):
    """Against a list of what the user has: the files that no run wrote last."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        users = {}
        for i, (kind, *given) in enumerate(steps):
            if kind == "run":
                wrote = {}
                with Results(folder) as out:
                    for k, name in enumerate(given[0]):
                        content = f"run {i} {k}".encode()
                        path = out.write(name, lambda file: file.write(content))
                        assert path == out.written[name]
                        wrote[path.name] = content
                if given[0]:
                    assert state(folder) == users | wrote
                continue
            path = folder / given[0]
            path.unlink(missing_ok=True)
            users.pop(path.name, None)
            if kind == "user":
                path.write_bytes(given[1])
                users[path.name] = given[1]
            elif kind == "link":
                path.symlink_to("nowhere")
                users[path.name] = "a link to", "nowhere"


# ------------------------------------------------------------------- what this run reads


@pytest.mark.parametrize("edited", [False, True])
def test_a_file_of_suspects_that_is_read_as_labels_stays(edited, work):
    labels = flat(work / "flat")
    asked = "check flat --recipe plain --p 1 --no-pictures --out sus --labels"
    run(asked, labels)
    path = work / "sus" / "suspects.csv"
    if edited:
        path.write_text(path.read_text().replace("left", "L"))
    content = path.read_bytes()
    names = {"copies.csv", "report.html", "suspects.csv"}
    for _ in range(2):
        run(asked, path)
        assert path.read_bytes() == content
        assert state("sus").keys() == names | {"suspects-2.csv"}
    classes = {row[1] for _, row in read_rows(work / "sus" / "suspects-2.csv")[1]}
    assert classes == {"L" if edited else "left", "right"}
    run(asked, labels)
    assert state("sus").keys() == names | ({"suspects-2.csv"} if edited else set())
    assert not edited or path.read_bytes() == content


def same(path, to):
    return path


def by_another_way(path, to):
    return path.parent / ".." / path.parent.name / path.name


def by_a_link(path, to):
    to.symlink_to(path)
    return to


def by_a_hard_link(path, to):
    os.link(path, to)
    return to


@pytest.mark.parametrize("way", [same, by_another_way, by_a_link, by_a_hard_link])
@pytest.mark.parametrize(
    "asked, name",
    [
        ("predict --data over.npz", "over.npz"),
        ("predict over.npz --data data", "over.npz"),
        ("predict --data flat --labels labels.csv", "labels.csv"),
        ("predict --data data", "data/left/0.npy"),
        ("predict others --data data", "others/left/0.npy"),
        ("add flat --model kept.npz --labels labels.csv", "labels.csv"),
        ("add others --model kept.npz", "others/left/0.npy"),
    ],
)
def test_a_model_is_not_saved_in_place_of_what_is_read(asked, name, way, work):
    stacked(work / "over.npz")
    flat(work / "flat")
    path = way(work / name, work / "to.npz")
    before = state(work)
    learn = LEARN if asked.startswith("predict") else ""
    said = refused(f"{asked} {learn} --save", path)
    assert f"--save must not be what this run reads, got {path}" in said
    assert not left(before, work) - {"out"}


@pytest.mark.parametrize("way", [same, by_another_way, by_a_link, by_a_hard_link])
def test_a_model_that_learns_more_is_not_saved_in_place_of_itself(way, work):
    path = way(work / "kept.npz", work / "to.npz")
    before = state(work)
    said = refused("add others --model kept.npz --save", path)
    assert f"--save must not be what this run reads, got {path}" in said
    assert not left(before, work) - {"out"}


@KINDS
def test_a_model_is_not_saved_in_place_of_what_is_no_model(own, work):
    own(work / "model.npz")
    before = state(work)
    asked = f"predict --data data {LEARN} --save model.npz"
    if own is own_link_to_nothing:  # the file that it names is made
        run(asked)
        assert left(before, work) == {"nowhere", "out"}
        return
    assert "grassmann-classify: --save must be " in refused(asked)
    assert not left(before, work) - {"out"}


def test_a_model_is_replaced_by_the_next_unless_it_was_changed(work):
    asked = f"predict --data data {LEARN} --save model.npz"
    run(asked)
    run(asked)
    run("predict others --model model.npz --no-pictures")
    with open("model.npz", "ab") as file:
        file.write(b"!")
    before = state(work)
    assert "--save must be a new file, or a model that this pro" in refused(asked)
    assert not left(before, work)


@pytest.mark.parametrize("name", ["predictions.csv", "report.html", "new.npz"])
def test_a_model_saved_in_the_folder_of_results_is_none_of_them(name, work):
    for _ in range(2):
        run(f"predict others --data data {LEARN} --save out/{name}")
        names = {"predictions.csv", "report.html"}
        if name in names:
            names = names - {name} | numbered({name})
        assert state("out").keys() == names | {name}
        run(f"predict others --model out/{name} --no-pictures --out answers")


@pytest.mark.parametrize("ours", [False, True])
def test_a_file_of_sets_in_the_folder_of_results_stays(ours, work):
    """Also where it has the name and the bytes of what a run wrote there."""
    sets = stacked(work / "sets.npz").read_bytes()
    if ours:
        with Results("out") as out:
            out.write("codes.npz", lambda file: file.write(sets))
    else:
        (work / "out").mkdir()
        (work / "out" / "codes.npz").write_bytes(sets)
    for _ in range(2):
        run(f"compare out/codes.npz --out out {LEARN}")
        assert (work / "out" / "codes.npz").read_bytes() == sets
        names = {"results.json", "predictions.csv", "codes-2.npz", "report.html"}
        assert state("out").keys() == names | {"codes.npz"}


def link(path, to):
    to.symlink_to(path)


@pytest.mark.parametrize("join", [link, os.link], ids=["symbolic", "hard"])
def test_clips_that_are_links_to_what_a_run_wrote_stay(join, work):
    """Arrays, and images of a clip."""
    with Results("out") as out:
        for k, label in enumerate(["left", "right"]):
            for i in range(6, 8):
                array = frames_of(k, i)
                name = f"{label}{i}.npy"
                path = out.write(name, lambda file: np.save(file, array))
                join(path.absolute(), work / "data" / label / f"{i}.npy")
            (work / "data" / label / "images").mkdir()
            for i, frame in enumerate(frames_of(k, 9)):
                image = Image.fromarray(frame)
                name = f"{label}{i}.png"
                path = out.write(name, lambda file: image.save(file, "png"))
                join(path.absolute(), work / "data" / label / "images" / f"{i}.png")
    before = state(work)
    for asked, names in (COMMANDS["compare"], COMMANDS["check"], COMMANDS["predict"]):
        run(asked)
        assert left(before, work) == {f"out/{name}" for name in names}


def test_what_a_run_wrote_is_no_clip_and_no_class(work):
    """Pictures and arrays of results lie among the clips of a flat folder."""
    flat(work / "flat")
    asked = "cluster flat -k 2 --p 1 --dpi 20 --out flat"
    tables = []
    for _ in range(2):
        run(asked)
        tables.append(read_rows("flat/clusters.csv"))
        assert {"map.png", "clusters.png"} <= state("flat").keys()
    assert tables[0] == tables[1] and len(tables[0][1]) == 12
    run(f"compare flat --labels labels.csv --out flat {LEARN} --repeats 1")
    run("check flat --labels labels.csv --out flat --recipe plain --p 1")
    run(f"predict flat --data data --out flat {LEARN}")
    assert len(read_rows("flat/predictions.csv")[1]) == 12


@pytest.mark.parametrize("out", ["out", ".", "left/out", "Results/today"])
def test_results_inside_the_data_change_no_later_table(out, work, monkeypatch, capsys):
    monkeypatch.chdir(work / "data")
    before = state(".")
    tables = []
    for _ in range(3):
        capsys.readouterr()
        run(
            f"compare . --out {out} {LEARN} --repeats 2".replace(
                "--no-pictures", "--dpi 20"
            )
        )
        told = capsys.readouterr()
        said = {line for line in told.err.splitlines() if "passed over" in line}
        assert said <= {"passed over: Results/, which holds no clip"}
        results = json.loads(Path(out, "results.json").read_text())
        assert results["n_sets"] == 12 and results["classes"] == ["left", "right"]
        seconds = r"^(nearest subspace .*?)\d+\.\d\d$"
        tables.append(re.sub(seconds, r"\1", told.out, flags=re.MULTILINE))
        left(before, ".")
    assert tables[0] == tables[1] == tables[2] and "nearest subspace" in tables[0]


def test_a_folder_of_results_that_a_user_adds_clips_to_is_said(work, capsys):
    run(f"compare data --out data/out {LEARN}")
    shutil.copy("data/left/0.npy", "data/out/0.npy")
    capsys.readouterr()
    run(f"compare data --out data/out {LEARN}")
    assert "passed over: data/out, a folder of results" in capsys.readouterr().err


def test_a_class_is_no_folder_of_results(work):
    """It would be passed over from then on."""
    before = state("data")
    said = refused(f"compare data --out data/left {LEARN}")
    assert "--out must not be a folder of clips within data, got data/left" in said
    clips(work / "three", ("left", "right", "up"))
    assert "got three/left" in refused(f"compare three --out three/left {LEARN}")
    assert "got data/left" in refused("predict data --model kept.npz --out data/left")
    assert (
        not left(before, "data") and not Path("three/left/.grassmann-classify").exists()
    )


def images(folder, k=0):
    folder.mkdir(parents=True)
    for i, frame in enumerate(frames_of(k, 20)):
        Image.fromarray(frame).save(folder / f"{i}.png")
    return folder


def test_a_clip_is_no_folder_of_results(work):
    images(work / "data" / "left" / "images")
    said = refused(f"compare data --out data/left/images {LEARN} --repeats 1")
    assert "got data/left/images, which holds 0.png" in said
    images(work / "new")
    before = state(work)
    for asked in (f"predict new --data data {LEARN}", "predict new --model kept.npz"):
        said = refused(f"{asked} --out new")
        assert "--out must not be a folder whose images are a clip, got new" in said
    said = refused("cluster new -k 2 --p 1 --out new")
    assert "--out must not be a folder whose images are a clip, got new" in said
    assert not left(before, work)


# ------------------------------------------------------------- two runs, and runs that end


@RUNS
def test_a_second_run_at_the_same_time_is_refused(asked, names, work):
    run(asked)
    with Results("out"):
        before = state(work)
        said = refused(asked)
        assert said.startswith(f"{PROG}: --out must be a folder that no other run writ")
        assert len(said.splitlines()) == 1 and not left(before, work)
        run(f"{asked} --out other")
    run(asked)
    assert state("out").keys() == names


def test_a_run_that_failed_leaves_the_folder_free_and_the_last_results(work):
    asked, names = COMMANDS["check"]
    run(asked)
    before = state("out")
    for _ in range(2):
        said = refused(f"{asked} --p 9")
        assert "must hold p = 9 independent frames, got 5 frames" in said
        assert not left(before, "out")
    run(asked)
    assert state("out").keys() == names


@pytest.mark.skipif(sys.platform == "win32", reason="kills as POSIX does")
def test_the_folder_of_a_run_that_was_killed_is_free(work):
    code = """
import sys, time
from grassmann_classify.results import Results
with Results(sys.argv[1]) as out:
    out.write("results.json", lambda file: file.write(b"{}"))
    print("held", flush=True)
    time.sleep(600)
"""
    command = [sys.executable, "-c", code, str(work / "out")]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout.readline() == "held\n"
        asked, names = COMMANDS["compare"]
        assert "no other run writes into" in refused(asked)
    finally:
        os.kill(running.pid, signal.SIGKILL)
        running.communicate()
    run(asked)
    assert state("out").keys() == names


@pytest.mark.skipif(not hasattr(os, "fork"), reason="runs end in forks")
def test_a_run_that_is_killed_while_it_writes_leaves_nothing_to_the_user(tmp_path):
    """At each file, the list among them: before it is written, or after."""
    code = """
import os, signal, sys
from pathlib import Path
from grassmann_classify import folder
from grassmann_classify.results import Results
write_whole = folder.files.write_whole
def write(out, content, *names):
    for name in names:
        out.write(name, lambda file: file.write(content))
def killed(place, at, before):
    count = iter(range(100))
    def write_or_end(path, write):
        now = next(count) == at
        if now and before:
            os.kill(os.getpid(), signal.SIGKILL)
        write_whole(path, write)
        if now:
            os.kill(os.getpid(), signal.SIGKILL)
    folder.files.write_whole = write_or_end
    with Results(place) as out:
        write(out, b"killed", "a.csv", "a.csv", "b")
for at in range(6):
    for before in (False, True):
        place = Path(sys.argv[1], f"{at} {before}")
        for _ in range(2):
            with Results(place) as out:
                write(out, b"first", "a.csv", "b")
            (place / "mine.csv").write_text("mine")
            run = os.fork()
            if run == 0:
                killed(place, at, before)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]) == -signal.SIGKILL
        with Results(place) as out:
            write(out, b"last", "a.csv")
        left = sorted(path.name for path in place.iterdir() if path.is_file())
        print(left, (place / "a.csv").read_text(), (place / "mine.csv").read_text())
"""
    expected = "['a.csv', 'mine.csv'] last mine"
    assert run_python(code, tmp_path) == [expected] * 12


# ---------------------------------------------------------------- the list of what is ours


def test_a_copy_of_a_folder_of_results_is_its_owners(work):
    asked, names = COMMANDS["compare"]
    run(asked)
    shutil.copytree("out", "copy")
    before = state("copy")
    for _ in range(2):
        run(f"{asked} --out copy")
        assert left(before, "copy") == numbered(names)
    # as where it lay, under another name
    os.rename("out", "renamed")
    before = state("renamed")
    run(f"{asked} --out renamed")
    assert left(before, "renamed") == numbered(names)


def test_a_folder_of_results_is_the_same_by_all_its_names(work):
    asked, names = COMMANDS["check"]
    run(asked)
    (work / "linked").symlink_to("out")
    for out in ("linked", "data/../out", work / "out", "./out/"):
        run(asked, "--out", out)
        assert state("out").keys() == names


def sha(content):
    return hashlib.sha256(content).hexdigest()


MINE = sha(b"mine\n")
DAMAGED = [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"3",
    b"[" * 100_000,
    b'{"folder": 3, "files": {}}',
    b'{"files": {"mine.csv": ["%s"]}}' % MINE.encode(),
    b'{"folder": "elsewhere", "files": {"mine.csv": ["%s"]}}' % MINE.encode(),
]
FOREIGN = [
    None,
    [],
    "mine.csv",
    3,
    {"mine.csv": None},
    {"mine.csv": 3},
    {"mine.csv": MINE},
    {"mine.csv": {MINE[:10]: MINE}},
    {"mine.csv": [None, 3, [MINE], {"sha": MINE}]},
    {"mine.csv": [MINE[:-1], MINE.upper(), f" {MINE}", ""]},
    {"mine.csv": [sha(b"")], "other.csv": [MINE], "inner": [MINE]},
    {"../mine.csv": [MINE]},
    {"inner/mine.csv": [MINE]},
    {"./mine.csv": [MINE]},
    {"mine.csv/": [MINE]},
    {"mine.csv/.": [MINE]},
    {"..": [MINE], ".": [MINE], "": [MINE], "/": [MINE]},
    {"inner": [MINE], "linked.csv": [MINE], "fifo": [MINE]},
    {"a\0b": [MINE]},
    {"x" * 300: [MINE]},
    {"\ud800": [MINE]},
    {"\\mine.csv": [MINE], "..\\mine.csv": [MINE]},
    {OURS: [MINE], f"{OURS}/{LIST}": [MINE]},
]


@pytest.mark.parametrize("how", [*DAMAGED, *FOREIGN], ids=lambda how: f"{how!r:.40}")
def test_a_list_that_no_run_left_costs_nobody_a_file(how, tmp_path):
    folder = tmp_path / "out"
    with Results(folder) as out:
        out.write("ours.csv", lambda file: file.write(b"ours"))
    own_file(tmp_path / "mine.csv")
    own_file(folder / "mine.csv")
    own_folder(folder / "inner")
    own_file(folder / "inner" / "mine.csv")
    (folder / "linked.csv").symlink_to("mine.csv")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "fifo")
    content = how
    if not isinstance(how, bytes):
        listed = {"folder": os.path.realpath(folder), "files": how}
        content = json.dumps(listed).encode()
    (folder / OURS / LIST).write_bytes(content)
    before = state(tmp_path)
    for _ in range(2):
        with Results(folder) as out:
            assert out.write("ours.csv", lambda file: file.write(b"new")).name == (
                "ours-2.csv"
            )
            out.write("inner", lambda file: file.write(b"new"))
        assert left(before, tmp_path) == {"out/ours-2.csv", "out/inner-2"}


def test_an_absolute_name_in_a_list_is_of_no_file(tmp_path):
    folder = tmp_path / "out"
    own_file(tmp_path / "mine.csv")
    with Results(folder) as out:
        out.write("ours.csv", lambda file: file.write(b"ours"))
    path = folder / OURS / LIST
    listed = json.loads(path.read_text())
    listed["files"][str(tmp_path / "mine.csv")] = [MINE]
    path.write_text(json.dumps(listed))
    with Results(folder) as out:
        out.write("ours.csv", lambda file: file.write(b"new"))
    assert state(tmp_path) == {
        "mine.csv": b"mine\n",
        "out": "a folder",
        "out/ours.csv": b"new",
    }


def test_what_stands_in_the_way_of_the_list_is_a_line_or_in_no_ones_way(tmp_path):
    """In another interpreter, which may not wait for a pipe for ever."""
    before = {}
    for k, own in enumerate(KINDS.args[1]):
        for name in (OURS, f"{OURS}/lock", f"{OURS}/{LIST}"):
            folder = tmp_path / f"{k} {name.replace('/', ' ')[1:]}"
            (folder / name).parent.mkdir(parents=True)
            own_file(folder / "mine.csv")
            own(folder / name)
            before[folder] = state(folder)
    code = """
import sys
from pathlib import Path
from grassmann_classify.results import Results
for folder in sorted(Path(sys.argv[1]).iterdir()):
    try:
        with Results(folder) as out:
            out.write("mine.csv", lambda file: file.write(b"new"))
    except (ValueError, OSError) as error:
        assert str(error).splitlines() == [str(error)]
    print(folder)
"""
    assert run_python(code, tmp_path) == sorted(map(str, before))
    for folder in before:
        assert left(before[folder], folder) <= {"mine-2.csv"}


def test_a_folder_of_results_that_cannot_be_is_a_line(work):
    own_file(work / "file")
    before = state(work)
    for out in ("file", "file/out", "kept.npz"):
        said = refused(f"{COMMANDS['check'][0]} --out {out}")
        assert said.startswith(f"{PROG}: --out must be a folder that can be written to")
        assert len(said.splitlines()) == 1
    assert not left(before, work)


def test_a_folder_that_may_not_be_looked_into_is_a_clip_that_fails(
    tmp_path, monkeypatch
):
    """Not an error of what might lie in it."""
    locked = tmp_path / "locked"
    stat = os.stat

    def denied(path, *given, **more):
        if str(path).startswith(f"{locked}{os.sep}"):
            raise PermissionError(13, "Permission denied", path)
        return stat(path, *given, **more)

    monkeypatch.setattr(os, "stat", denied)
    assert not is_one(locked) and listed_in(locked) == {}


# --------------------------------------------------------------------------- spreadsheets


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


CELLS = st.one_of(
    st.text(st.characters(codec="utf-8")),
    st.text(st.sampled_from("=+-@\t\r\n'\",;019.e a")),
)


def written_and_read(header, rows):
    """(Bytes of a CSV file, what is read from it)."""
    with tempfile.TemporaryDirectory() as folder, Results(folder) as out:
        path = write_rows(out, "table.csv", header, rows)
        return path.read_bytes(), read_rows(path)


@settings(max_examples=50)
@given(st.lists(st.lists(CELLS, min_size=1, max_size=3), min_size=1, max_size=4))
def test_cells_of_text_come_back_as_they_were(rows):
    header = ["clip"]  # a file that begins with a byte order mark has lost it
    table = [header, *rows]
    content, (first, others) = written_and_read(header, rows)
    table = [[cell.replace("\0", r"\x00") for cell in row] for row in table]
    assert [first, *(row for _, row in others)] == table
    reader = csv.reader(io.StringIO(content.decode(), newline=""))
    for cell in [cell for row in reader for cell in row]:
        assert cell[:1] not in [*"=+-@\t\r"] or is_number(cell)


@settings(max_examples=50)
@given(
    st.lists(
        st.one_of(
            st.integers(-(2**60), 2**60),
            st.floats(),
            st.integers(-9, 9).map(np.int64),
            st.floats(-9, 9).map(np.float64),
        ),
        min_size=1,
    )
)
def test_numbers_stay_numbers(numbers):
    content, (_, ((_, row),)) = written_and_read([str(n) for n in numbers], [numbers])
    assert b"'" not in content
    np.testing.assert_array_equal([*map(float, row)], [*map(float, numbers)])


@pytest.mark.parametrize("text", ["-1", "+5", "-1e3", "-inf", "0.5"])
def test_labels_that_are_numbers_are_written_as_they_are(text):
    assert written_and_read(["label"], [[text]])[0] == f"label\n{text}\n".encode()


@pytest.mark.parametrize("text", ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "'=a", "-"])
def test_texts_that_a_spreadsheet_would_run_are_no_formulas(text):
    content, (_, ((_, row),)) = written_and_read(["label"], [[text]])
    assert content.partition(b"\n")[2].lstrip(b'"').startswith(b"'") and row == [text]


def test_lines_are_those_of_the_file(tmp_path):
    """Also where a cell has several, and where lines are empty."""
    path = tmp_path / "table.csv"
    path.write_text('clip,label\n\n"a\nb",x\nc,y\n')
    assert read_rows(path) == (["clip", "label"], [(4, ["a\nb", "x"]), (5, ["c", "y"])])


def test_a_folder_of_formulas_is_labelled_by_what_a_run_wrote(work):
    """Classes and clips whose names begin with what a spreadsheet would run."""
    (work / "odd").mkdir()
    lines = []
    for i, name in enumerate("=a @b +c -d 'e =f ''=g -1 +2 h".split()):
        np.save(work / "odd" / f"{name}.npy", frames_of(i % 2, i))
        lines.append([f"{name}.npy", ["=left", "-right"][i % 2]])
    with Results("written") as out:
        labels = write_rows(out, "labels.csv", ["clip", "label"], lines)
    asked = f"compare odd --out out {LEARN} --labels"
    run(asked, labels)
    results = json.loads(Path("out/results.json").read_text())
    assert results["n_sets"] == 10 and results["classes"] == ["-right", "=left"]
    run("check odd --recipe plain --p 1 --no-pictures --out sus --labels", labels)
    run(asked, "sus/suspects.csv")
    again = json.loads(Path("out/results.json").read_text())
    assert (again["n_sets"], again["classes"]) == (10, results["classes"])


@pytest.mark.parametrize("pictures", [False, True])
def test_labels_of_a_file_command_no_terminal(work, capsys, pictures):
    names = "\x1b[31mred", "\x9b2Jgreen\x07\x00\x7f."
    path = stacked(work / "sets.npz", names)
    cheap = LEARN.replace("--no-pictures", "--dpi 20") if pictures else LEARN
    capsys.readouterr()
    run(f"compare {path.name} {cheap}")
    run(f"predict {path.name} --data {path.name} --save red.npz {cheap}")
    run(f"predict {path.name} --model red.npz {cheap.partition('--p 1')[2]}")
    run(f"check {path.name} --recipe plain --p 1 {cheap.partition('--p 1')[2]}")
    said = refused("add others --model red.npz --save red.npz")
    told = capsys.readouterr()
    assert r"\x1b[31mred: 6 clips" in told.out
    for text in (told.out, told.err, said):
        assert all(c.isprintable() or c in "\n\r" for c in text)
    with contextlib.suppress(FileNotFoundError):
        assert "\x1b" not in Path("out/results.json").read_text()
