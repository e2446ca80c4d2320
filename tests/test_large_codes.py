"""Coding of stored arrays and into files: the codes of memory, whatever holds X and
takes them; what kills, Ctrl-C and full disks leave can be read and resumed.
"""

import errno
import functools
import os
import resource
import types

import numpy as np
import pytest
import scipy.sparse

import grassmann_sc as core
from grassmann_sc import kernels
from grassmann_sc.large.codes import each_part, load_codes, write_codes
from oracles import TIGHT, error
from processes import interrupted

X = core.random_subspaces(700, 9, 2, rng=0)
D = core.random_subspaces(20, 9, 2, rng=1)
STEP = 90  # rows of a block: chunks of 45


@functools.cache
def sparse_codes():
    """Codes in memory."""
    return core.gsc(X, D, 0.3)


@functools.cache
def local_codes():
    return core.glc(X, D, 3)


@pytest.fixture(scope="module", autouse=True)
def codes_of_one_block():
    sparse_codes()
    local_codes()


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("grassmann_sc.large.codes.MOST_NUMBERS", 18 * 100)
    monkeypatch.setattr(core, "TILE", 20 * 100)


def in_memory(folder, X):
    return X


def mapped(folder, X):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


def zarr_array(folder, X):
    zarr = pytest.importorskip("zarr", reason="zarr arrays are not coded without zarr")
    array = zarr.open(
        str(folder / "X.zarr"),
        mode="w",
        shape=X.shape,
        chunks=(45, 9, 2),
        dtype=X.dtype,
    )
    array[:] = X
    return array


def hdf5(folder, X):
    h5py = pytest.importorskip("h5py", reason="HDF5 files are not coded without h5py")
    with h5py.File(folder / "X.h5", "w") as file:
        file["X"] = X
    return h5py.File(folder / "X.h5", "r")["X"]


def dask_array(folder, X):
    array = pytest.importorskip(
        "dask.array", reason="Dask arrays are not coded without Dask"
    )
    return array.from_array(X, chunks=(45, 9, 2))


STORES = [in_memory, mapped, zarr_array, hdf5, dask_array]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_do_not_depend_on_what_holds_the_subspaces(store, dtype, tmp_path):
    tol = TIGHT if dtype == np.float64 else 1e-3
    held = store(tmp_path, X.astype(dtype))
    atoms = D.astype(dtype)
    codes = core.gsc(held, atoms, 0.3)
    assert codes.dtype == dtype and error(codes, sparse_codes()) <= tol
    assert error(core.glc(held, atoms, 3), local_codes()) <= tol
    labels = np.arange(20) % 3
    assert np.array_equal(
        core.classify(held, atoms, labels, lam=0.3),
        core.classify(X, D, labels, lam=0.3),
    )
    assert write_codes(tmp_path / "codes.npy", held, atoms, 0.3) == 700
    written = load_codes(tmp_path / "codes.npy")
    assert written.dtype == dtype and error(written, sparse_codes()) <= tol
    assert (
        write_codes(tmp_path / "parts", held, atoms, n_neighbors=3, sparse_output=True)
        == 700
    )
    parts = load_codes(tmp_path / "parts")
    assert parts.format == "csr" and parts.dtype == dtype
    assert parts.nnz <= 2100 and error(parts.toarray(), local_codes()) <= tol


def test_a_stored_array_is_read_once_in_blocks_of_whole_chunks(tmp_path):
    class Witness:
        chunks = (45, 9, 2)
        shape = X.shape
        dtype = X.dtype
        reads = []

        def __getitem__(self, rows):
            self.reads.append((rows.start, rows.stop))
            return X[rows]

    write_codes(tmp_path / "codes.npy", Witness(), D, 0.3)
    assert Witness.reads == [(i, min(i + STEP, 700)) for i in range(0, 700, STEP)]


def test_codes_go_to_arrays_and_functions(tmp_path):
    array = np.empty((700, 20))
    assert (
        write_codes(array, X, D, 0.3) == 700 and error(array, sparse_codes()) <= TIGHT
    )
    got = []

    def take(row, codes):
        got.append((row, codes))

    assert write_codes(take, X, D, n_neighbors=3, sparse_output=True) == 700
    assert [row for row, _ in got] == list(range(0, 700, 100))
    assert (
        error(scipy.sparse.vstack([codes for _, codes in got]).toarray(), local_codes())
        <= TIGHT
    )
    array[:] = 0
    assert write_codes(array, X, D, 0.3, start=650, progress=True) == 700
    assert not array[:650].any() and error(array[650:], sparse_codes()[650:]) <= TIGHT


def test_codes_in_a_feature_space_are_those_of_coordinates():
    rng = np.random.default_rng(0)
    sets = rng.standard_normal((70, 5, 4))
    atom_sets = rng.standard_normal((6, 5, 4))
    kernel = kernels.rbf(0.1)
    lift = kernels.Lift(kernel, 2).fit(atom_sets)
    out = np.empty((70, 6))
    write_codes(out, lift.transform(sets), lift.transform(atom_sets), 0.1)
    assert error(out, kernels.kgsc(sets, atom_sets, 0.1, kernel=kernel, p=2)) <= TIGHT
    write_codes(out, lift.transform(sets), lift.transform(atom_sets), n_neighbors=2)
    assert error(out, kernels.kglc(sets, atom_sets, 2, kernel=kernel, p=2)) <= TIGHT


def test_of_no_subspaces_there_are_no_codes(tmp_path):
    assert write_codes(tmp_path / "codes.npy", X[:0], D, 0.3) == 0
    assert load_codes(tmp_path / "codes.npy").shape == (0, 20)
    assert write_codes(tmp_path / "parts", X[:0], D, 0.3, sparse_output=True) == 0
    codes = load_codes(tmp_path / "parts")
    assert codes.shape == (0, 20) and codes.format == "csr" and codes.dtype == D.dtype
    got = []
    assert write_codes(lambda *piece: got.append(piece), X[:0], D, 0.3) == 0
    assert not got
    options = dict(sparse_output=True, start="resume")
    assert write_codes(tmp_path / "parts", X, D, 0.3, **options) == 700
    assert error(load_codes(tmp_path / "parts").toarray(), sparse_codes()) <= TIGHT


@pytest.mark.parametrize("dtype", [int, bool, np.uint8, "U32", "S8", "M8[s]"])
def test_an_out_that_cannot_hold_codes_is_refused(dtype):
    out = np.zeros((700, 20), dtype)
    with pytest.raises(
        TypeError, match="out must have a dtype that holds codes of float64, got"
    ):
        write_codes(out, X, D, 0.3)
    assert np.array_equal(out, np.zeros((700, 20), dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.longdouble, complex, object])
def test_an_out_of_another_kind_of_float_is_filled(dtype):
    out = np.zeros((700, 20), dtype)
    assert write_codes(out, X, D, 0.3) == 700
    assert error(out.astype(complex), sparse_codes()) <= 1e-6


def opened(folder, X):
    """What h5py's dataset tells of its file."""

    class Dataset:
        __module__ = "h5py._hl.dataset"
        chunks = None
        shape = X.shape
        dtype = X.dtype
        ndim = 3
        file = types.SimpleNamespace(filename=str(folder / "X.npy"))

        def __getitem__(self, rows):
            return X[rows]

    np.save(folder / "X.npy", X)
    return Dataset()


@pytest.mark.parametrize("store", [mapped, opened])
@pytest.mark.parametrize("start", [0, "resume"])
def test_an_input_is_never_written_over(store, start, tmp_path):
    held = store(tmp_path, X)
    path = tmp_path / "X.npy"
    (tmp_path / "link").symlink_to(path)
    whole = path.read_bytes()
    for out in (path, tmp_path / "link"):
        with pytest.raises(
            ValueError, match="out must lie apart from the file or store of X"
        ):
            write_codes(out, held, D, 0.3, start=start)
    assert path.read_bytes() == whole


@pytest.mark.parametrize("start", [0, "resume"])
def test_codes_are_never_written_into_or_around_the_store_of_an_input(start, tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr arrays are not coded without zarr")
    store = str(tmp_path / "data" / "store.zarr")

    def stored(path, shape, chunks):
        return zarr.open_array(  # as zarr 2 and 3 say it
            store, path=path, mode="w", shape=shape, chunks=chunks, dtype=X.dtype
        )

    held = stored("sets/X", X.shape, (45, 9, 2))
    held[:] = X
    (tmp_path / "link").symlink_to(tmp_path / "data")
    inside = tmp_path / "data" / "store.zarr" / "sets" / "X"

    def everything():
        return {
            path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
        }

    before = everything()
    outs = [
        inside,
        inside / "codes",
        inside / "c" / "0",
        inside.parent,
        tmp_path / "data",
        tmp_path / "link" / "store.zarr",
        os.fsencode(inside),
        str(inside) + os.sep,
    ]
    for out in outs:
        with pytest.raises(ValueError, match="out must .* of X, .*got .*data"):
            write_codes(out, held, D, 0.3, sparse_output=True, start=start)
    with pytest.raises(ValueError, match="out must .* of X, .*got .*codes.npy"):
        write_codes(inside / "codes.npy", held, D, 0.3, start=start)
    with pytest.raises(ValueError, match="out must .* of D, .*got .*X"):
        write_codes(inside, X, held, n_neighbors=3, sparse_output=True, start=start)
    assert everything() == before
    beside = stored("codes", (700, 20), (45, 20))
    assert write_codes(beside, held, D, 0.3) == 700
    assert write_codes(inside.parent / "codes", held, D, 0.3, sparse_output=True) == 700


def test_codes_go_beside_a_file_of_subspaces(tmp_path):
    held = mapped(tmp_path, X)
    assert write_codes(tmp_path, held, D, 0.3, sparse_output=True) == 700
    assert np.array_equal(np.load(tmp_path / "X.npy"), X)


def test_atoms_and_arrays_in_memory_are_never_written_over(tmp_path):
    atoms = mapped(tmp_path, D)
    for view in (atoms, np.asarray(atoms), atoms[::-1]):
        with pytest.raises(
            ValueError, match="out must lie apart from the file or store of D"
        ):
            write_codes(tmp_path / "X.npy", X, view, n_neighbors=3)
    assert np.array_equal(np.load(tmp_path / "X.npy"), D)
    held = X.copy()
    out = held.ravel()[: 700 * 4].reshape(700, 4)
    with pytest.raises(ValueError, match="out must share no memory with X"):
        write_codes(out, held, D[:4], 0.3)
    assert np.array_equal(held, X)


# ---------------------------------------------------------------------------- stopping


class Stops:
    """X that raises an error when a row is read, but for the first so many times."""

    chunks = None
    shape = X.shape
    dtype = X.dtype

    def __init__(self, row, error, n_free=0):
        self.row = row
        self.error = error
        self.n_free = n_free

    def __getitem__(self, rows):
        if rows.start <= self.row < rows.stop:
            self.n_free -= 1
            if self.n_free < 0:
                raise self.error
        return X[rows]


WAYS = {
    "file": ("codes.npy", False, lambda codes: np.asarray(codes)),
    "folder": ("parts", True, lambda codes: codes.toarray()),
}


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_keeps_what_was_written_and_says_where_it_stopped(way, tmp_path):
    name, sparse, dense = WAYS[way]
    write = functools.partial(write_codes, tmp_path / name, sparse_output=sparse)
    match = "codes of 300 of 700 rows are written and whole, start = 300 goes on"
    with pytest.raises(KeyboardInterrupt, match=match):
        write(Stops(350, KeyboardInterrupt()), D, 0.3)
    assert error(dense(load_codes(tmp_path / name)), sparse_codes()[:300]) <= TIGHT
    assert write(X, D, 0.3, start="resume") == 700
    assert error(dense(load_codes(tmp_path / name)), sparse_codes()) <= TIGHT
    assert write(X, D, 0.3, start="resume") == 700  # nothing is left to do
    assert write(X, D, 0.3, start=200) == 700
    assert write(X, D, 0.3, start="resume") == 700
    assert error(dense(load_codes(tmp_path / name)), sparse_codes()) <= TIGHT
    digested = Stops(250, KeyboardInterrupt(), n_free=0 if sparse else 1)
    with pytest.raises(KeyboardInterrupt, match="codes of 200 of 700 rows are written"):
        write(digested, D, 0.3, start=200)
    assert load_codes(tmp_path / name).shape == (200, 20)


@pytest.mark.parametrize("start", ["resume", 100, 200])
def test_a_file_that_was_cut_short_is_not_gone_on_from(start, tmp_path):
    path = tmp_path / "codes.npy"
    write_codes(path, X[:200], D, 0.3)
    os.truncate(path, os.path.getsize(path) - 8)
    with pytest.raises(
        ValueError, match="must hold the 200 rows that it says are whole"
    ):
        write_codes(path, X, D, 0.3, start=start)
    with pytest.raises(
        ValueError, match="is damaged, of another version, or another file"
    ):
        load_codes(path)
    with pytest.raises(
        ValueError, match="unless replace=True: out must hold the 200 rows that it says"
    ):
        write_codes(path, X, D, 0.3)
    assert write_codes(path, X, D, 0.3, replace=True) == 700


def test_other_files_than_codes_are_named(tmp_path):
    text = tmp_path / "codes.txt"
    for content in (b"", b"1.0 2.0"):
        text.write_bytes(content)
        with pytest.raises(
            ValueError, match="path must be a file of codes that this toolkit"
        ):
            load_codes(text)
    np.savez(tmp_path / "other.npz", K=np.eye(2))
    with pytest.raises(
        ValueError, match="path must be a file of codes that this toolkit"
    ):
        load_codes(tmp_path / "other.npz")
    with pytest.raises(FileNotFoundError):
        load_codes(tmp_path / "none.npy")


def test_a_damaged_part_can_be_written_anew(tmp_path):
    write = functools.partial(write_codes, tmp_path, X, D, 0.3, sparse_output=True)
    write()
    parts = sorted(tmp_path.iterdir())
    rows = [row for row, _ in each_part(tmp_path)]
    os.truncate(parts[-1], 100)
    assert write(start=rows[-1]) == 700
    assert error(load_codes(tmp_path).toarray(), sparse_codes()) <= TIGHT
    for part in parts[:2]:
        part.unlink(missing_ok=True)
    with pytest.raises(
        ValueError, match="path must be a folder of codes, got none from row 0 on"
    ):
        load_codes(tmp_path)


STOPPED = """
import os, signal, sys
import numpy as np
import grassmann_sc as core
from grassmann_sc.large import codes

codes.MOST_NUMBERS = 18 * 100  # blocks of 100 rows
core.TILE = 20 * 100
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it

class Stored:
    X = np.load(sys.argv[1])
    chunks = None
    shape = X.shape
    dtype = X.dtype

    def __getitem__(self, rows):
        if rows.stop > 350:
            os.kill(os.getpid(), signal.SIGINT)
        return self.X[rows]

codes.write_codes(sys.argv[2], Stored(), Stored.X[:20], 0.3, sparse_output=sys.argv[3] == "folder")
print("goes on")
"""


@pytest.mark.parametrize("way", WAYS)
def test_ctrl_c_ends_a_script_that_writes_codes(way, tmp_path):
    name, sparse, dense = WAYS[way]
    np.save(tmp_path / "X.npy", X)
    assert interrupted(STOPPED, tmp_path / "X.npy", tmp_path / name, way) == (
        "KeyboardInterrupt: the codes of 300 of 700 rows are written and whole, start = 300 goes on"
    )
    written = load_codes(tmp_path / name)
    assert error(dense(written), core.gsc(X[:300], X[:20], 0.3)) <= TIGHT
    write = functools.partial(write_codes, tmp_path / name, sparse_output=sparse)
    assert write(X, X[:20], 0.3, start=300) == 700


@pytest.mark.parametrize("way", WAYS)
def test_codes_of_another_problem_are_not_gone_on_from(way, tmp_path):
    name, sparse, dense = WAYS[way]
    write = functools.partial(write_codes, tmp_path / name, sparse_output=sparse)
    write(X[:300], D, 0.3)
    before = dense(load_codes(tmp_path / name)).copy()
    first = X.copy()
    first[0] = X[1]
    swapped = X.copy()
    swapped[[17, 150]] = X[[150, 17]]
    atom = D.copy()
    atom[-1] = X[0]
    for start in ("resume", 300, 100):
        for samples, atoms, lam, more, match in [
            (first, D, 0.3, {}, "differs in the samples$"),
            (swapped, D, 0.3, {}, "differs in the samples$"),
            (X, atom, 0.3, {}, "differs in the atoms$"),
            (X, D, 0.3001, {}, "differs in the options$"),
            (X, D, 0.3, dict(positive=True), "differs in the options$"),
            (X, D[::-1], 0.5, {}, "differs in the options, the atoms$"),
        ]:
            with pytest.raises(
                ValueError, match=f"options to resume: .*{name} {match}"
            ):
                write(samples, atoms, lam, start=start, **more)
        with pytest.raises(ValueError, match="differs in the options$"):
            write(X, D, n_neighbors=3, start=start)
    assert np.array_equal(dense(load_codes(tmp_path / name)), before)
    with pytest.raises(ValueError, match=r"out must .* codes \(n, 19\)"):
        write(X, D[1:], 0.3, start="resume")
    with pytest.raises(ValueError, match=r"start must be a row in 0..300"):
        write(X, D, 0.3, start=400)
    with pytest.raises(ValueError, match="holds 300 rows of 100"):
        write(X[:100], D, 0.3, start="resume")


@pytest.mark.parametrize("way", WAYS)
def test_other_codes_are_replaced_only_if_that_is_asked_for(way, tmp_path):
    name, sparse, dense = WAYS[way]
    write = functools.partial(write_codes, tmp_path / name, sparse_output=sparse)
    write(X[:300], D, 0.3)
    before = dense(load_codes(tmp_path / name)).copy()
    other = X.copy()
    other[299] = X[0]
    for samples, atoms, lam, why in [
        (X[:299], D, 0.3, "options need no replace: they have 299 rows"),
        (other, D, 0.3, "differs in the samples"),
        (X, D[::-1], 0.3, "differs in the atoms"),
        (X, D[:8], 0.3, r"\(n, 8\)"),
        (X.astype(np.float32), D.astype(np.float32), 0.3, "float32"),
        (X, D, 0.4, "differs in the options"),
    ]:
        rule = "^out must be a path that holds nothing to lose, unless replace=True: "
        match = rf"{rule}.*{why}"
        with pytest.raises(ValueError, match=match):
            write(samples, atoms, lam)
    assert np.array_equal(dense(load_codes(tmp_path / name)), before)
    assert write(X[:300], D, 0.3) == 300  # the same again
    with pytest.raises(KeyboardInterrupt, match="codes of 300 of 700 rows"):
        write(Stops(350, KeyboardInterrupt(), n_free=0), D, 0.3)
    assert write(X, D, 0.3) == 700
    assert error(dense(load_codes(tmp_path / name)), sparse_codes()) <= TIGHT
    assert write(X[:200], D[:8], 0.3, replace=True) == 200
    assert dense(load_codes(tmp_path / name)).shape == (200, 8)


@pytest.mark.parametrize("way", WAYS)
def test_a_path_of_no_rows_has_nothing_to_lose(way, tmp_path):
    name, sparse, dense = WAYS[way]
    write = functools.partial(write_codes, tmp_path / name, sparse_output=sparse)
    assert write(X[:0], D[:8], 0.4) == 0
    assert write(X, D, 0.3) == 700
    assert error(dense(load_codes(tmp_path / name)), sparse_codes()) <= TIGHT


def test_what_holds_no_codes_is_replaced_only_if_that_is_asked_for(tmp_path):
    (tmp_path / "letter").write_text("mine")
    with pytest.raises(
        ValueError, match="True: out must be a file of codes .* got another in .*letter"
    ):
        write_codes(tmp_path / "letter", X, D, 0.3)
    assert (tmp_path / "letter").read_text() == "mine"
    (tmp_path / "empty").write_text("")
    for name in ("letter", "empty"):
        assert write_codes(tmp_path / name, X, D, 0.3, replace=name == "letter") == 700
    with pytest.raises(TypeError, match="replace must be True or False, got 'yes'"):
        write_codes(tmp_path / "empty", X, D, 0.3, replace="yes")


def test_parts_behind_a_gap_are_lost_only_if_that_is_asked_for(tmp_path):
    write = functools.partial(write_codes, tmp_path, X, D, 0.3, sparse_output=True)
    write()
    for row in (0, 100):
        (tmp_path / f"{row:015d}.npz").unlink(missing_ok=True)
    names = sorted(os.listdir(tmp_path))
    for start in (0, "resume"):
        with pytest.raises(
            ValueError, match="out must be a path that holds nothing to lose"
        ):
            write(start=start)
    assert sorted(os.listdir(tmp_path)) == names
    # a first part without rows, as others may write theirs before it is done
    other = tmp_path / "other"
    write_codes(other, X[:0], D, 0.3, sparse_output=True)
    (other / f"{0:015d}.npz").rename(tmp_path / f"{0:015d}.npz")
    with pytest.raises(
        ValueError, match="out must be a path that holds nothing to lose"
    ):
        write()
    assert {*names} <= {*os.listdir(tmp_path)}
    assert write(replace=True) == 700


@pytest.mark.parametrize("way", WAYS)
def test_a_resume_gives_what_one_run_gives_on_the_rows_that_it_is_given(way, tmp_path):
    """Rows that are not coded yet may have changed, their blocks may have other
    lengths, and the array may be held elsewhere; a kill at any time leaves such rows.
    """
    name, sparse, dense = WAYS[way]
    write = functools.partial(write_codes, tmp_path / name, sparse_output=sparse)
    write(X[:300], D, 0.3)
    changed = X.copy()
    changed[300:] = X[300:][::-1]
    mapped(tmp_path, changed)
    held = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert write(held[:350], D, 0.3, start="resume") == 350
    assert write(held, D, 0.3, start="resume") == 700
    assert error(dense(load_codes(tmp_path / name)), core.gsc(changed, D, 0.3)) <= TIGHT
    with pytest.raises(ValueError, match="differs in the samples"):
        write(X, D, 0.3, start="resume")


def test_a_file_of_codes_is_an_npy_file_at_each_start(tmp_path):
    path = tmp_path / "codes.npy"
    write_codes(path, X[:300], D, 0.3)
    old = load_codes(path)
    for start, n in [(0, 200), ("resume", 300), (100, 700)]:
        write_codes(path, X[:n], D, 0.3, start=start, replace=start == 0)
        assert np.load(path).shape == (n, 20)
        assert error(np.load(path), sparse_codes()[:n]) <= TIGHT
    write_codes(path, X, D, 0.5, replace=True)
    # whoever has mapped a file keeps it
    assert error(old, sparse_codes()[:300]) <= TIGHT


def test_what_is_not_whole_is_done_again(tmp_path):
    """A kill in the middle of a write leaves bytes behind the rows that the header
    counts; a part that is missing ends what was done.
    """
    path = tmp_path / "codes.npy"
    write_codes(path, X[:200], D, 0.3)
    with open(path, "ab") as file:
        file.write(b"half a row")
    assert error(load_codes(path), sparse_codes()[:200]) <= TIGHT
    write_codes(path, X, D, 0.3, start="resume")
    assert error(load_codes(path), sparse_codes()) <= TIGHT

    write_codes(tmp_path / "parts", X, D, 0.3, sparse_output=True)
    (tmp_path / "parts" / f"{200:015d}.npz").unlink()
    assert load_codes(tmp_path / "parts").shape == (200, 20)
    write_codes(tmp_path / "parts", X, D, 0.3, sparse_output=True, start="resume")
    assert error(load_codes(tmp_path / "parts").toarray(), sparse_codes()) <= TIGHT


@pytest.mark.parametrize("way", WAYS)
def test_a_full_disk_is_named_and_what_was_written_is_usable(way, tmp_path):
    name, sparse, dense = WAYS[way]
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = 128 + 350 * 20 * 8 if way == "file" else 3000
    # no file grows beyond it
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        with pytest.raises(
            OSError, match=r"rows before \d+ are written and whole"
        ) as caught:
            write_codes(tmp_path / name, X, D, 0.3, sparse_output=sparse)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert caught.value.errno == errno.EFBIG
    if way == "file":
        assert error(load_codes(tmp_path / name), sparse_codes()[:300]) <= TIGHT
    write_codes(tmp_path / name, X, D, 0.3, sparse_output=sparse, start="resume")
    assert error(dense(load_codes(tmp_path / name)), sparse_codes()) <= TIGHT


# ---------------------------------------------------------------------------- bad input


def test_an_error_names_the_block_and_the_row(tmp_path):
    bad = X.copy()
    bad[456, 3, 1] = np.nan
    held = mapped(tmp_path, bad)
    twice = bad.copy()
    twice[123] *= 2
    (tmp_path / "twice").mkdir()
    with pytest.raises(
        ValueError, match=r"orthonormal .* at index 123.*block of rows 100..199"
    ):
        write_codes(tmp_path / "codes.npy", mapped(tmp_path / "twice", twice), D, 0.3)
    assert load_codes(tmp_path / "codes.npy").shape == (100, 20)
    with pytest.raises(
        ValueError, match=r"NaN .* at index 456 \(in the block of rows 400..499\)"
    ):
        write_codes(tmp_path / "codes.npy", held, D, 0.3, start=100)


def test_an_array_of_another_shape_is_no_file_of_codes(tmp_path):
    for array in (np.zeros((3, 4, 2)), np.zeros((3, 4), int)):
        np.save(tmp_path / "X.npy", array)
        with pytest.raises(ValueError, match=r"X.npy is .* another file: it holds"):
            load_codes(tmp_path / "X.npy")


BAD = {
    "another d": (
        dict(D=core.random_subspaces(3, 8, 2)),
        "X and D must have the same d, got 9",
    ),
    "a path of lambdas": (dict(lam=[0.1, 0.2]), "lam must be one number >= 0, got"),
    "both": (dict(n_neighbors=3), "give either lam or n_neighbors"),
    "progress": (dict(progress=3), "progress must be True or False, got 3"),
    "start": (dict(start=701), r"start must be in 0..700, got 701"),
    "resume": (dict(out=print, start="resume"), "start='resume' needs the path"),
    "shape": (
        dict(out=np.empty((3, 20))),
        r"out must have shape \(700, 20\), got \(3, 20\)",
    ),
    "sparse": (
        dict(out=np.empty((700, 20)), sparse_output=True),
        "out must be the path of a fol",
    ),
    "type": (dict(out=3), "out must be a path, an array or a function"),
    "a matrix": (dict(X=np.memmap), r"X must have shape \(n, d, p\)"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named(case, tmp_path):
    changed, match = BAD[case]
    arguments = dict(X=X, D=D, lam=0.3, out=tmp_path / "codes.npy") | changed
    if case == "a matrix":
        arguments["X"] = mapped(tmp_path, X[:, :, 0])
    with pytest.raises((TypeError, ValueError), match=match):
        write_codes(**arguments)
    assert not (tmp_path / "codes.npy").exists()


@pytest.mark.parametrize("start", [0, "resume", 3])
def test_a_file_is_no_folder_of_codes_and_a_folder_no_file(start, tmp_path):
    (tmp_path / "file").write_text("mine")
    for out, sparse in [(tmp_path / "file", True), (tmp_path, False)]:
        with pytest.raises(
            ValueError, match="out must be the path of a folder with sparse_output"
        ):
            write_codes(out, X, D, 0.3, sparse_output=sparse, start=start)
    assert (tmp_path / "file").read_text() == "mine" and os.listdir(tmp_path) == [
        "file"
    ]


def test_another_file_is_not_gone_on_from(tmp_path):
    path = tmp_path / "codes.npy"
    np.save(path, sparse_codes().T)
    with pytest.raises(
        ValueError, match=r"out must be a file of codes \(n, 20\) of float64"
    ):
        write_codes(path, X, D, 0.3, start="resume")
    assert np.array_equal(np.load(path), sparse_codes().T)


def test_a_folder_without_parts_is_no_folder_of_codes(tmp_path):
    with pytest.raises(ValueError, match="path must be a folder of codes, got none"):
        load_codes(tmp_path)


def test_rows_are_on_disk_before_the_header_counts_them(tmp_path, monkeypatch):
    path = tmp_path / "codes.npy"
    write_codes(path, X[:100], D, 0.3)
    counts = []
    flush = os.fsync

    def look(descriptor):
        flush(descriptor)
        held = (os.fstat(descriptor).st_size - 128) // (20 * 8)
        counts.append((held, np.load(path, mmap_mode="r").shape[0]))

    monkeypatch.setattr(os, "fsync", look)
    write_codes(path, X[:300], D, 0.3, start="resume")
    assert counts == [(100, 100), (200, 100), (200, 200), (300, 200), (300, 300)]


def test_arrays_over_bytes_are_no_path(tmp_path):
    """NumPy has arrays whose memory is a bytes object, of any bytes."""
    held = np.frombuffer(np.ascontiguousarray(D).tobytes()).reshape(D.shape)
    path = tmp_path / "codes.npy"
    write_codes(path, held, held, 0.3)
    assert np.array_equal(load_codes(path), core.gsc(D, D, 0.3))


def test_two_runs_that_write_one_file_leave_no_rows_of_zeros(tmp_path):
    """The second begins anew, and ends early: the first says that its rows are gone."""
    path = tmp_path / "codes.npy"

    class Stored:
        chunks = (45, 9, 2)
        shape = X.shape
        dtype = X.dtype

        def __getitem__(self, rows):
            if rows.start > 300:
                write_codes(path, X[:64], D, 0.3, replace=True)
            return X[rows]

    with pytest.raises(ValueError, match="out must be written by one run at a time"):
        write_codes(path, Stored(), D, 0.3)


def test_codes_of_another_order_of_bytes_or_axes_are_refused(tmp_path):
    path = tmp_path / "codes.npy"
    write_codes(path, X, D, 0.3)
    whole = path.read_bytes()
    for right, wrong in ((b"'<f8'", b"'>f8'"), (b"False", b"True "), (b"<f8", b"<f2")):
        path.write_bytes(whole.replace(right, wrong))
        with pytest.raises(ValueError, match="codes.npy is damaged"):
            load_codes(path)
