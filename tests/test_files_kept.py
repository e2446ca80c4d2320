"""Dictionaries, checkpoints and any file: whole, checked, resumed to the bits."""

import functools
import hashlib
import os
import re
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import grassmann_sc as core
import interrupts
from grassmann_sc import estimators, files, learn
from grassmann_sc.large import streams
from oracles import clusters

SOME = core.random_subspaces(30, 70, 2, rng=3)
SMALL = clusters(np.random.default_rng(1), 24, 6, 2, 4)


# ---------------------------- dictionaries


def test_dictionaries_come_back_as_they_were_saved(tmp_path):
    path = tmp_path / "atoms"
    for atoms in (SMALL[:3], SMALL[:3].astype(np.float32)):
        for labels in (["a", "b", "a"], [3, 1, 2], None):
            files.save(path, atoms, lam=0.1, labels=labels)
            loaded = files.load(path)
            assert (
                np.array_equal(loaded.atoms, atoms)
                and loaded.atoms.dtype == atoms.dtype
                and loaded.lam == 0.1
            )
            assert (
                labels is None
                and loaded.labels is None
                or loaded.labels.tolist() == labels
            )
    assert os.listdir(tmp_path) == ["atoms"]

    files.save(path, learn.gdl(SMALL, 2, 0.1, n_iter=1))
    assert files.load(path).lam == 0.1
    files.save(path, streams.OnlineGDL(2, 0.3, rng=0).partial_fit(SMALL))
    assert files.load(path).lam == 0.3
    with pytest.raises(
        TypeError,
        match="labels must be finite numbers, .*, got None, 'a', 3",
    ):
        files.save(path, SMALL[:3], labels=[None, "a", 3])


def test_what_is_kept_is_read_again_in_whatever_order_it_lay_in_memory(tmp_path):
    """Bases of one atom, views of its rows, are in Fortran's order too."""
    path = tmp_path / "kept"
    strided = np.repeat(SMALL[:3], 2, axis=1)[:, ::2]
    for atoms in (np.asfortranarray(SMALL[:3]), np.asfortranarray(SMALL[:1]), strided):
        files.save(path, atoms)
        assert np.array_equal(files.load(path).atoms, atoms)
    learn.gdl(SMALL, 1, 0.1, n_iter=1, rng=0, checkpoint=path)
    resumed = learn.gdl(SMALL, 1, 0.1, n_iter=2, rng=0, resume=path)
    assert np.array_equal(
        resumed.atoms, learn.gdl(SMALL, 1, 0.1, n_iter=2, rng=0).atoms
    )
    online = streams.OnlineGDL(1, 0.1, rng=0).partial_fit(SMALL)
    online.save(path)
    assert np.array_equal(streams.OnlineGDL.load(path).atoms, online.atoms)


def test_the_lambda_in_use_is_saved_with_what_was_learned(tmp_path):
    options = {"lam_scale": "max", "n_iter": 1, "rng": 0}
    names = {"lam_scale": "max", "max_iter": 1, "random_state": 0}
    online = streams.OnlineGDL(3, 0.2, lam_scale="max", rng=0).fit(SMALL)
    fitted = estimators.GrassmannDictionary(3, lam=0.2, **names).fit(SMALL)
    learned = learn.gdl(SMALL, 3, 0.2, **options)
    some = [(learned, learned.lam), (online, online.lam), (fitted, fitted.lam_)]
    for atoms, lam in some:
        files.save(tmp_path / "atoms", atoms)
        assert files.load(tmp_path / "atoms").lam == lam > 0.2
    files.save(tmp_path / "atoms", learned, lam=0.5)
    assert files.load(tmp_path / "atoms").lam == 0.5


def seal(path):
    """Give a zip file the checksum that the module asks for."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = bytes(64)
    with open(path, "r+b") as file:
        length = path.stat().st_size - 64
        digest = hashlib.sha256(path.read_bytes()[:length]).hexdigest().encode()
        file.seek(length)
        file.write(digest)


def header(shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def damage(path, i):
    """Turn a dictionary into one of 45 files that are none: cut, flipped bits, or well
    sealed and of another kind inside.
    """
    whole = path.read_bytes()
    rng = np.random.default_rng(i)
    good = dict(np.load(path))
    if i < 15:
        path.write_bytes(whole[: i * len(whole) // 15])
    elif i < 35:
        at = rng.integers(len(whole))
        path.write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << rng.integers(8)]) + whole[at + 1 :]
        )
    elif i < 43:
        evil = np.array([print, None, 1], object)
        change = [
            {"other": 1},
            {"version": 99},
            {"format": "checkpoint"},
            {"atoms": evil},
            {"labels": evil},
            {"lam": evil},
            {"version": evil},
            {"version": np.ones(2, int)},
        ][i - 35]
        with path.open("wb") as file:
            (np.savez_compressed if i == 35 else np.savez)(file, **{**good, **change})
        seal(path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for key in good:
                archive.writestr(
                    f"{key}.npy",
                    header((10**12, 6, 2) if i == 43 else (2**40, 2**40, 2**40)),
                )
        seal(path)


@pytest.mark.parametrize("i", range(45))
def test_damaged_files_are_refused(tmp_path, i):
    path = tmp_path / "dictionary"
    files.save(path, SMALL[:3], lam=0.1, labels=["a", "b", "c"])
    damage(path, i)
    tracemalloc.start()
    with pytest.raises(
        ValueError, match="must be a dictionary (that|of)|dictionary is damaged"
    ):
        files.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # bytes; a sound file of this size takes 30 kB. What a well sealed header declares
    # is asked for, and never touched
    assert peak < 2**19 or i >= 43


@pytest.mark.parametrize(
    "model",
    [
        estimators.GrassmannDictionary(4),
        estimators.CodingClassifier().fit(np.stack([np.eye(4, 2)] * 2), [0, 1]),
        streams.OnlineGDL(4, 0.1),
    ],
)
def test_what_has_no_atoms_is_refused_by_its_name(tmp_path, model):
    with pytest.raises(
        TypeError, match=rf"have learned such, got {type(model).__name__}"
    ):
        files.save(tmp_path / "a.npz", model)


def test_arrays_of_another_type_are_refused(tmp_path):
    path = tmp_path / "scores"
    files.write_arrays(path, "scores", {"right": [1.0]})
    with pytest.raises(ValueError, match="right must have a dtype of kind 'iu', got"):
        files.read_arrays(path, "scores", {"right": "iu"}, {"right"})


@pytest.mark.parametrize("content", [b"no arrays", None])  # damaged, of another kind
def test_errors_name_a_path_of_bytes_as_text(tmp_path, content):
    path = tmp_path / "note.npz"
    files.write_arrays(path, "note", {"x": [1.0]})
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match="note.npz") as error:
        files.read_arrays(os.fsencode(path), "another", {"x": "f"}, {"x"})
    assert "b'" not in str(error.value)


# ---------------------------- any file


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_text("before")

    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_whole(path, fail)
    assert os.listdir(tmp_path) == ["file"] and path.read_text() == "before"
    files.write_whole(path, lambda file: file.write(b"after"))
    assert os.listdir(tmp_path) == ["file"] and path.read_text() == "after"


WRITER = """
import os, signal, sys
from grassmann_sc import files
def write(file):
    file.write(b"half")
    file.flush()
    print("half", flush=True)
    sys.stdin.readline()
    file.write(b" and half")
files.write_whole(sys.argv[1], write)
"""


def writer(path):
    """A process that has written half of a file, and waits for a line."""
    root = Path(__file__).resolve().parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, path],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "half\n"
    return child


def test_runs_that_write_one_path_at_once_and_a_kill_leave_whole_files(tmp_path):
    path = tmp_path / "file"
    children = [writer(path) for _ in range(3)]
    assert not path.exists()
    children[1].kill()
    children[1].wait()
    files.write_whole(path, lambda file: file.write(b"whole"))
    assert path.read_text() == "whole"
    for child in (children[0], children[2]):
        child.communicate("\n")
        assert child.returncode == 0 and path.read_text() == "half and half"
    (leftover,) = set(os.listdir(tmp_path)) - {"file"}
    assert re.fullmatch(r"file\.[0-9a-f]{8}\.unfinished", leftover)


def test_ctrl_c_at_any_step_of_a_write_leaves_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "scores"

    def write(row=1.0):
        files.write_arrays(path, "scores", {"row": np.full(3, row)})

    n_steps = interrupts.count(write)
    contents = set()
    for at in range(1, n_steps + 1):
        write(0.0)
        assert interrupts.interrupt(write, at) is not None
        assert os.listdir(tmp_path) == ["scores"]
        arrays = files.read_arrays(path, "scores", {"row": "f"}, {"row"})
        contents.add(tuple(arrays["row"].tolist()))
    assert contents == {(0, 0, 0), (1, 1, 1)}


def test_a_file_is_on_disk_before_it_takes_its_place(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        monkeypatch.setattr(
            os,
            name,
            functools.partial(
                lambda call, name, *given: (calls.append(name), call(*given)),
                getattr(os, name),
                name,
            ),
        )
    files.write_whole(tmp_path / "file", lambda file: file.write(b"whole"))
    assert calls == ["fsync", "replace"]


@pytest.mark.skipif(
    os.name == "nt", reason="no permission bits, no links without rights"
)
def test_links_are_followed_and_permissions_are_those_of_other_files(tmp_path):
    target = tmp_path / "target"
    (tmp_path / "plain").write_text("")
    files.write_whole(target, lambda file: file.write(b"1"))
    assert target.stat().st_mode == (tmp_path / "plain").stat().st_mode
    target.chmod(0o640)
    (tmp_path / "link").symlink_to(target)
    files.write_whole(tmp_path / "link", lambda file: file.write(b"2"))
    assert (tmp_path / "link").is_symlink() and target.read_bytes() == b"2"
    assert target.stat().st_mode & 0o777 == 0o640


def test_paths_are_checked():
    for path, kind in ((3, TypeError), ("", ValueError), (None, TypeError)):
        with pytest.raises(kind, match="path must be a path, got"):
            files.save(path, SMALL[:3])
    with pytest.raises(ValueError, match="checkpoint must be a path, got ''"):
        learn.gdl(SMALL, 4, 0.2, checkpoint="")
    with pytest.raises(ValueError, match="resume must be a path, got ''"):
        learn.gdl(SMALL, 4, 0.2, resume="")


def never(*_, **__):
    raise AssertionError("work began before the path was checked")


@pytest.mark.parametrize(
    "where, why",
    [
        ("folder", "the path of a file, got .*folder, which is a folder"),
        ("link", "the path of a file, got .*link, which is a folder"),
        (
            "none/c.npz",
            "a file can be written to, got .*c.npz: No such file or directory",
        ),
        ("file/c.npz", "a file can be written to, got .*c.npz: Not a directory"),
        ("x" * 255, "a file can be written to, got .*: File name too long"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused_before_any_work(tmp_path, where, why):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "file").write_text("mine")
    path = tmp_path / where
    with pytest.raises(ValueError, match=f"^checkpoint must be .*{why}"):
        learn.gdl(SMALL, 4, coding=never, checkpoint=path)
    with pytest.raises(ValueError, match=f"^checkpoint must be .*{why}"):
        streams.OnlineGDL(4, coding=never).fit(SMALL, checkpoint=path)
    with pytest.raises(ValueError, match=f"^path must be .*{why}"):
        files.check_writable(path)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder", "link"]
    assert os.listdir(tmp_path / "folder") == []


def test_a_folder_is_no_path_of_a_dictionary(tmp_path):
    with pytest.raises(
        ValueError, match="path must be the path of a file, got .* is a folder"
    ):
        files.save(tmp_path, SMALL[:3])
    assert os.listdir(tmp_path) == []


def test_a_path_that_is_checked_stays_as_it_was(tmp_path):
    files.check_writable(tmp_path / "new")
    assert os.listdir(tmp_path) == []
    (tmp_path / "old").write_text("before")
    files.check_writable(tmp_path / "old")
    assert (
        os.listdir(tmp_path) == ["old"] and (tmp_path / "old").read_text() == "before"
    )


# ---------------------------- checkpoints

OPTIONS = dict(lam=0.1, n_iter=6, tol=0)


@pytest.mark.parametrize("stop", range(4))
def test_resumed_learning_ends_with_the_bits_of_an_uninterrupted_run(tmp_path, stop):
    path = tmp_path / "checkpoint"
    whole = learn.gdl(SOME, 8, rng=0, **OPTIONS)
    learn.gdl(SOME, 8, rng=0, checkpoint=path, **{**OPTIONS, "n_iter": stop})
    resumed = learn.gdl(SOME, 8, resume=path, checkpoint=path, rng=99, **OPTIONS)
    again = learn.gdl(SOME, 8, resume=path, **OPTIONS)
    for result in (resumed, again):
        assert (
            all(np.array_equal(a, b) for a, b in zip(result, whole))
            and result.n_replaced == whole.n_replaced
        )


CHILD = """
import sys, grassmann_sc as core
from grassmann_sc import learn
X = core.random_subspaces(30, 70, 2, rng=3)
print("ready", flush=True)
learn.gdl(X, 8, rng=0, checkpoint=sys.argv[1],
          callback=lambda state: print(state.n_iter, flush=True), lam=0.1, n_iter=6, tol=0)
"""


def test_a_killed_run_resumes(tmp_path):
    path = tmp_path / "checkpoint"
    root = Path(__file__).resolve().parent.parent
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, path], cwd=root, stdout=subprocess.PIPE, text=True
    )
    while child.stdout.readline().strip() != "2":
        pass
    child.send_signal(signal.SIGKILL)
    child.wait()
    whole = learn.gdl(SOME, 8, rng=0, **OPTIONS)
    assert all(
        np.array_equal(a, b)
        for a, b in zip(learn.gdl(SOME, 8, resume=path, **OPTIONS), whole)
    )


def test_checkpoints_of_other_problems_and_kinds_are_refused(tmp_path):
    path = tmp_path / "checkpoint"
    other = tmp_path / "dictionary"
    learn.gdl(SMALL, 4, 0.2, n_iter=1, checkpoint=path)
    files.save(other, SMALL[:4])
    with pytest.raises(
        ValueError, match="resume must be a checkpoint of the same samples"
    ):
        learn.gdl(SMALL, 4, 0.3, resume=path)
    with pytest.raises(ValueError, match="must be a checkpoint"):
        learn.gdl(SMALL, 4, 0.2, resume=other)
    other_kind = np.random.Generator(np.random.MT19937(0))  # whose state plays no part
    resumed = learn.gdl(SMALL, 4, 0.2, resume=path, rng=other_kind)
    assert np.array_equal(resumed.atoms, learn.gdl(SMALL, 4, 0.2, resume=path).atoms)


@pytest.mark.parametrize("what", ["row", "weight", "lambda"])
def test_one_other_number_is_another_problem(tmp_path, what):
    path = tmp_path / "checkpoint"
    learn.gdl(SMALL, 4, 0.2, n_iter=1, checkpoint=path)
    for i in range(len(SMALL)):
        X = SMALL.copy()
        weights = np.ones(len(SMALL))
        if what == "row":
            X[i] = SMALL[i - 1]
        elif what == "weight":
            weights[i] += 1e-12
        named = "options" if what == "lambda" else "samples"
        lam = 0.2 + 1e-12 * (what == "lambda")
        with pytest.raises(ValueError, match=f"checkpoint differs in the {named}$"):
            learn.gdl(X, 4, lam, sample_weight=weights, resume=path)


def test_the_digests_of_blocks_add_up_and_know_their_places():
    """On one machine or many, in any order."""
    X = core.random_subspaces(20, 6, 2, 0)
    whole = files.digest_rows(X)
    for cut in (1, 7, 19):
        assert files.digest_rows(X[cut:], cut) + files.digest_rows(X[:cut]) == whole
    assert files.digest_rows(np.asfortranarray(X)) == whole
    assert files.digest_rows(X, 1) != whole != files.digest_rows(X[::-1])
    assert files.digest_rows(X.astype(np.float32)) != whole


def neighbours(K_dd, K_xd, norm2, count=2):
    return core.locality_codes(K_dd, K_xd, count, norm2=norm2)


@pytest.mark.parametrize(
    "before, after",
    [
        (dict(lam=0.1), dict(lam=np.float64(0.1))),
        (dict(lam=1), dict(lam=1.0)),
        (dict(n_neighbors=2), dict(n_neighbors=np.int64(2))),
        (
            dict(coding=functools.partial(neighbours, count=2)),
            dict(coding=functools.partial(neighbours, count=np.int32(2))),
        ),
        (dict(lam=0.1, sample_weight=np.ones(24, int)), dict(lam=0.1)),
    ],
)
def test_equal_options_are_the_same_problem(tmp_path, before, after):
    path = tmp_path / "checkpoint"
    learn.gdl(SMALL, 4, n_iter=1, tol=0, rng=0, checkpoint=path, **before)
    resumed = learn.gdl(SMALL, 4, n_iter=3, tol=0, resume=path, **after)
    whole = learn.gdl(SMALL, 4, n_iter=3, tol=0, rng=0, **before)
    assert all(np.array_equal(a, b) for a, b in zip(resumed, whole))
    with pytest.raises(
        ValueError, match="resume must be a checkpoint of the same samples"
    ):
        learn.gdl(SMALL, 4, coding=functools.partial(neighbours, count=3), resume=path)


def test_a_relative_lambda_and_wider_first_atoms_are_resumed_to_the_bits(tmp_path):
    path = tmp_path / "checkpoint"
    X = SMALL.astype(np.float32)
    options = dict(lam=0.2, lam_scale="max", init=SMALL[:4], tol=0)
    whole = learn.gdl(X, 4, n_iter=4, **options)
    learn.gdl(X, 4, n_iter=2, checkpoint=path, **options)
    resumed = learn.gdl(X, 4, n_iter=4, resume=path, **options)
    assert resumed.lam == whole.lam and whole.atoms.dtype == np.float64
    assert all(np.array_equal(a, b) for a, b in zip(resumed, whole))


def test_python_objects_are_not_written(tmp_path):
    with pytest.raises(TypeError, match=r"arrays\['a'\] must hold no Python objects"):
        files.write_arrays(tmp_path / "a.npz", "things", {"a": [object()]})
    masked = np.ma.masked_array([1, 2], [True, False])
    with pytest.raises(ValueError, match=r"arrays\['a'\] must have no masked entries"):
        files.write_arrays(tmp_path / "a.npz", "things", {"a": masked})
    for name in ("allow_pickle", "file", "format", "version"):
        with pytest.raises(ValueError, match=f"arrays .* other names than '{name}'"):
            files.write_arrays(tmp_path / "a.npz", "things", {name: [1]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("labels", [{"a", "b", "c"}, {"a": 1, "b": 2, "c": 3}])
def test_labels_are_in_an_order_that_stays(tmp_path, labels):
    with pytest.raises(TypeError, match="labels must be a sequence of hashables"):
        files.save(tmp_path / "a.npz", SMALL[:3], labels=labels)
