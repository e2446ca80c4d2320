"""Each run has a folder of its own for its results; what spreadsheets get."""

import contextlib
import csv
import errno
import io
import json
import os
import shutil
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
from grassmann_classify.finding import MARK
from grassmann_classify.results import Results
from grassmann_classify.splits import read_rows
from grassmann_classify.tables import write_rows
from grassmann_sc import files
from processes import ROOT

PROG = "grassmann-classify"
LEARN = "--recipe plain --no-kernels --methods nearest --p 1 --no-pictures"
COMMANDS = {  # what they are asked, and the names that they write
    "compare": (
        f"compare data {LEARN} --repeats 1",
        {"results.json", "predictions.csv", "report.html"},
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
RUNS = pytest.mark.parametrize("command, names", COMMANDS.values(), ids=[*COMMANDS])


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
    options = "--data", data, "--save", folder / "kept.npz", "--out", learned
    run(f"predict {LEARN}", *options)
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
    """{name: what it is} of all that lies in a folder, but for marks of folders."""
    entries = {}
    for path in sorted(Path(folder).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.name == MARK:
            continue
        if path.is_symlink():
            entries[name] = "a link to", os.readlink(path)
        elif path.is_dir():
            entries[name] = "a folder"
        else:
            entries[name] = path.read_bytes() if path.is_file() else "no plain file"
    return entries


def new_names(before, folder):
    """The names that are there and were not before; all others are as they were."""
    after = state(folder)
    assert before == {name: after.get(name) for name in before}
    return after.keys() - before.keys()


# ------------------------------------------------------------------- a folder for each run


@RUNS
def test_every_run_makes_a_new_folder_and_changes_nothing_else(
    command, names, work, capsys
):
    run(command)
    assert {path.name for path in Path("out").glob("[!.]*")} == names or not names
    for k in (2, 3):
        before = state(work)
        capsys.readouterr()
        run(command.replace("kept2", f"kept{k + 1}"))
        made = {f"out-{k}"} | {f"out-{k}/{name}" for name in names}
        made = made if names else {f"kept{k + 1}.npz"}
        assert new_names(before, work) == made
        last = capsys.readouterr().err.splitlines()[-1]
        assert last == (f"results: out-{k}" if names else f"model: kept{k + 1}.npz")


def own_file(path):
    path.write_text("mine\n")


def own_folder(path):
    path.mkdir()
    own_file(path / "inner")


def own_link_to_nothing(path):
    path.symlink_to("nowhere")


def own_fifo(path):
    os.mkfifo(path)


@pytest.mark.parametrize("own", [own_file, own_folder, own_link_to_nothing, own_fifo])
def test_whatever_has_the_name_of_the_folder_stays(own, work):
    own(work / "out")
    own(work / "out-2")
    before = state(work)
    with Results("out") as out:
        out.write("a", lambda file: file.write(b"a"))
    assert new_names(before, work) == {"out-3", "out-3/a"}


def test_runs_at_once_never_share_a_folder(work):
    code = """
import sys
from grassmann_classify.results import Results
for _ in range(20):
    with Results(sys.argv[1]) as out:
        out.write("who", lambda file: file.write(sys.argv[2].encode()))
"""
    command = [sys.executable, "-c", code, str(work / "out")]
    runs = [subprocess.Popen([*command, str(k)], cwd=ROOT) for k in range(2)]
    assert [running.wait(120) for running in runs] == [0, 0]
    who = [path.read_text() for path in work.glob("out*/who")]
    assert sorted(who) == ["0"] * 20 + ["1"] * 20


def test_a_run_that_wrote_nothing_leaves_no_folder(work):
    command, _ = COMMANDS["check"]
    before = state(work)
    assert "has 5 frames, and p = 9 needs 9" in refused(f"{command} --p 9")
    assert not new_names(before, work)


def test_a_folder_that_cannot_be_made_is_a_line(work):
    own_file(work / "file")
    before = state(work)
    for out in ("file/out", "kept.npz/a/b", ".", ".."):
        message = refused(f"{COMMANDS['check'][0]} --out {out}")
        assert message.startswith(
            f"{PROG}: --out must be a folder that can be made, got {out}"
        )
        assert len(message.splitlines()) == 1
    assert not new_names(before, work)


def test_a_disk_that_is_full_is_told_with_the_file_and_what_is_done_is_printed(
    work, monkeypatch, capsys
):
    """Two splits fit on the disk; of the third nothing is left."""
    write_whole = files.write_whole

    def full_after_two(path, write):
        if path.name == "results.json" and path.exists():
            if json.loads(path.read_text())["splits_done"] == 2:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write_whole(path, write)

    monkeypatch.setattr(files, "write_whole", full_after_two)
    message = refused(f"compare data {LEARN} --repeats 4 --jobs 1")
    why = os.strerror(errno.ENOSPC)
    assert message == f"{PROG}: {Path('out', 'results.json')} cannot be written: {why}"
    printed = capsys.readouterr()
    assert "after 3 of 4 splits" in printed.out and "nearest subspace  " in printed.out
    assert printed.err.splitlines()[-1] == "results: out"
    assert json.loads(Path("out/results.json").read_text())["splits_done"] == 2


@pytest.mark.parametrize(
    "command", ["predict --data data", "add others --model kept.npz"]
)
@pytest.mark.parametrize("name", ["kept.npz", "data/left/0.npy", "linked"])
def test_a_model_is_saved_where_nothing_is(command, name, work):
    os.symlink("nowhere", "linked")
    before = state(work)
    learn = LEARN if command.startswith("predict") else ""
    message = refused(f"{command} {learn} --save {name}")
    assert message == f"{PROG}: --save must be a new file, got {name}, which exists"
    assert not new_names(before, work)


def test_a_disk_that_is_full_names_the_model(work):
    """No file grows beyond a limit."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        message = refused(f"predict others --data data {LEARN} --save new.npz")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert message == f"{PROG}: new.npz cannot be written: {os.strerror(errno.EFBIG)}"


@pytest.mark.skipif(os.name == "nt", reason="there is no sh")
def test_a_closed_stream_and_one_that_cannot_hold_a_sign_end_no_run(work):
    """sh closes stderr, which joblib and Python's processes take to be there."""
    command = f"-m grassmann_classify compare data {LEARN} --jobs 2 --out new"
    process = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" {command} 2>&-'],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0 and r"\xb1: standard" in process.stdout
    assert json.loads((work / "new" / "results.json").read_text())["splits_done"] > 1


def test_a_model_may_be_saved_into_the_folder_of_results(work):
    run(f"predict others --data data {LEARN} --save out/model.npz")
    run("predict others --model out/model.npz --no-pictures")
    assert {path.name for path in Path("out").glob("*.*")} >= {
        "model.npz",
        "report.html",
    }
    run(f"predict --data data {LEARN} --save out-3/model.npz --out out")
    assert state("out-3").keys() == {"model.npz"}


# --------------------------------------------------------------- results beside the data


def test_results_are_no_clip_and_no_class(work):
    """Also within the folder of the clips, and within folders that hold results alone;
    models neither.
    """
    os.chdir("data")
    shutil.copy(work / "kept.npz", work / "data" / "right")
    shutil.copy(work / "kept.npz", work / "data")
    for out in ("out", "out", "Results/today", "Results/today"):
        options = LEARN.replace("--no-pictures", "--dpi 20 --repeats 1")
        run(f"compare . --out {out} {options}")
    for path in (Path("out-2"), Path("Results/today-2")):
        results = json.loads((path / "results.json").read_text())
        assert results["n_sets"] == 12 and results["classes"] == ["left", "right"]
    run("cluster . -k 2 --p 1 --no-pictures --out clusters")
    assert len(read_rows("clusters/clusters.csv")[1]) == 12


@pytest.mark.parametrize(
    "out",
    ["data/left", "data/left/new/deep", "data/left/images", "data/left/images/out"],
)
def test_results_within_a_class_or_a_clip_are_no_clip(out, work):
    images(work / "data" / "left" / "images")
    for name in (out, "again"):
        run(f"{COMMANDS['compare'][0]} --out {name}")
    results = json.loads(Path("again/results.json").read_text())
    assert results["n_sets"] == 13 and results["classes"] == ["left", "right"]
    run("predict data --model kept.npz --no-pictures --out answers")
    assert len(read_rows("answers/predictions.csv")[1]) == 13


def images(folder, k=0):
    folder.mkdir(parents=True)
    for i, frame in enumerate(frames_of(k, 20)):
        Image.fromarray(frame).save(folder / f"{i}.png")


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

    class Plain:  # as Results, which waits for the disk
        def write(self, name, write):
            path = Path(folder, name)
            with open(path, "wb") as file:
                write(file)
            return path

    with tempfile.TemporaryDirectory() as folder:
        path = write_rows(Plain(), "table.csv", header, rows)
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
    command = f"compare odd --out out {LEARN} --labels"
    run(command, labels)
    results = json.loads(Path("out/results.json").read_text())
    assert results["n_sets"] == 10 and results["classes"] == ["-right", "=left"]
    run("check odd --recipe plain --p 1 --no-pictures --out sus --labels", labels)
    run(command, "sus/suspects.csv")
    again = json.loads(Path("out-2/results.json").read_text())
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
    message = refused("add others --model red.npz --save red.npz")
    printed = capsys.readouterr()
    assert r"\x1b[31mred" in printed.out
    for text in (printed.out, printed.err, message):
        assert all(c.isprintable() or c in "\n\r" for c in text)
    with contextlib.suppress(FileNotFoundError):
        assert "\x1b" not in Path("out/results.json").read_text()
