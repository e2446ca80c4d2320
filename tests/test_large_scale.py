"""Coding, Gram matrices and dictionary learning on Dask: the results of one machine,
whoever dies on the way.
"""

import errno
import functools
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_sc import files, learn
from grassmann_sc.large import scale
from grassmann_sc.large.codes import load_codes, write_codes, write_part
from oracles import LOOSE, TIGHT, clusters, error, explicit_cost
from processes import ROOT

dask = pytest.importorskip(
    "dask", reason="nothing is run on many machines without Dask"
)
distributed = pytest.importorskip(
    "distributed", reason="nothing is run on many without Dask"
)
da = pytest.importorskip("dask.array")

X = clusters(np.random.default_rng(0), 600, 9, 2, 15)
D = core.random_subspaces(20, 9, 2, rng=1)


@functools.cache
def sparse_codes():
    """Codes in memory."""
    return core.gsc(X, D, 0.3)


@functools.cache
def local_codes():
    return core.glc(X, D, 3)


@pytest.fixture(scope="module")
def client():
    """Two workers of one thread each; the warnings about those that are killed are no
    news.
    """
    with dask.config.set({"distributed.scheduler.allowed-failures": 20}):
        with scale.local_client(2) as client:
            yield client


@pytest.fixture(params=["memory", "map", "view of a map", "zarr", "hdf5", "dask"])
def held(request, tmp_path):
    """X held in some way."""
    if request.param == "memory":
        return X
    if request.param == "dask":
        return da.from_array(X, chunks=(70, 4, 1))
    if request.param == "zarr":
        zarr = pytest.importorskip("zarr", reason="zarr arrays need zarr")
        array = zarr.open(
            str(tmp_path / "X.zarr"), mode="w", shape=X.shape, dtype=float
        )
        array[:] = X
        return array
    if request.param == "hdf5":
        h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
        with h5py.File(tmp_path / "X.h5", "w") as file:
            file["sets/X"] = X
        return h5py.File(tmp_path / "X.h5", "r")["sets/X"]
    if request.param == "map":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    np.save(tmp_path / "X.npy", np.repeat(X, 2, axis=0)[::-1])
    return np.load(tmp_path / "X.npy", mmap_mode="r")[::-2]


def computed(array):
    return array.compute() if hasattr(array, "compute") else array


def test_codes_and_gram_matrix_are_those_of_one_machine(client, held, tmp_path):
    codes = scale.code(held, D, 0.3, client=client)
    assert isinstance(codes, da.Array) == isinstance(held, da.Array)
    assert error(computed(codes), sparse_codes()) <= TIGHT
    options = dict(n_neighbors=3, client=client, sparse_output=True)
    assert error(scale.code(held, D, **options).toarray(), local_codes()) <= TIGHT
    for start in (0, 0, "resume"):  # again, where all codes are there
        n = scale.code(held, D, out=tmp_path / "parts", start=start, **options)
        assert n == 600
    assert error(load_codes(tmp_path / "parts").toarray(), local_codes()) <= TIGHT
    K = core.projection_kernel(X, D)
    assert error(computed(scale.gram(held, D, client=client)), K) <= TIGHT


def test_what_was_changed_in_a_private_map_of_a_file_is_coded(client, tmp_path):
    np.save(tmp_path / "X.npy", X)
    private = np.load(tmp_path / "X.npy", mmap_mode="c")
    private[:20] = D
    codes = scale.code(private, D, n_neighbors=1, client=client)
    assert error(codes[:20], np.eye(20)) <= TIGHT


def test_a_map_that_no_file_stands_behind_is_sent_in_blocks(client, tmp_path):
    """As astype makes it: each block would be sent with all rows."""
    np.save(tmp_path / "X.npy", X)
    sent = []

    class Witness(np.memmap):
        def __reduce__(self):
            sent.append(len(self))
            return np.asarray(self).__reduce__()

    mapped = np.load(tmp_path / "X.npy", mmap_mode="r").astype(float).view(Witness)
    codes = scale.code(mapped, D, n_neighbors=3, client=client)
    assert error(codes, local_codes()) <= TIGHT and not sent


@pytest.mark.parametrize("held", ["memory", "dask"], indirect=True)
def test_a_gram_matrix_without_atoms_is_symmetric(client, held):
    K = computed(scale.gram(held, client=client))
    assert np.array_equal(K, K.T) and error(K, core.projection_kernel(X)) <= TIGHT


@pytest.mark.parametrize("held", ["memory", "dask"], indirect=True)
def test_learning_by_rounds_is_learning(client, held):
    rounds = scale.gdl(held, 15, 0.2, init=X[:15], n_iter=3, tol=0, client=client)
    batch = learn.gdl(X, 15, 0.2, init=X[:15], n_iter=3, tol=0)
    # full rank: exact
    assert np.abs(rounds.costs / batch.costs[::2] - 1).max() <= LOOSE
    assert error(core.chordal_distance(rounds.atoms, batch.atoms).diagonal(), 0) <= 1e-4
    assert rounds.stopped == "n_iter" and rounds.lam == 0.2


def test_learning_at_low_rank_costs_within_a_hundredth(client):
    options = dict(init=X[:15], n_iter=6, tol=0)
    rounds = scale.gdl(X, 15, 0.2, rank=5, client=client, **options)
    assert rounds.costs.min() <= 1.01 * learn.gdl(X, 15, 0.2, **options).costs[-1]


def test_the_atoms_are_those_of_the_least_cost_even_if_a_round_raised_it(client):
    """At rank 1 the update of planes is so rough that the last of four rounds is not
    the best.
    """
    Z = core.random_subspaces(60, 8, 2, rng=7)
    result = scale.gdl(
        Z, 4, 0.2, init=Z[:4], rank=1, n_iter=8, tol=0, n_chains=1, client=client
    )
    least = result.costs.min()
    assert result.costs[-1] > least + 0.1
    assert (
        abs(explicit_cost(Z, result.atoms, core.gsc(Z, result.atoms, 0.2), 0.2) - least)
        <= 1e-6
    )


def test_a_resume_keeps_the_atoms_of_the_least_cost_of_the_rounds_before(
    client, tmp_path
):
    Z = core.random_subspaces(60, 8, 2, rng=7)
    options = dict(init=Z[:4], rank=1, n_iter=8, tol=0, n_chains=1, client=client)
    path = tmp_path / "rounds.npz"
    whole = scale.gdl(Z, 4, 0.2, checkpoint=path, **options)
    # the checkpoint is of before the last round
    assert whole.costs[-1] > whole.costs.min() + 0.1
    resumed = scale.gdl(Z, 4, 0.2, resume=path, **options)
    assert np.array_equal(resumed.costs, whole.costs)
    assert np.array_equal(resumed.atoms, whole.atoms)


@pytest.mark.parametrize("n_chains", [2, 3, 5])
def test_no_sample_is_lost_however_many_chains_there_are(client, n_chains):
    blocks = da.from_array(X, chunks=(100, 9, 2))  # six of them
    options = dict(init=X[:5], n_iter=1, tol=0, client=client)
    single = scale.gdl(blocks, 5, 0.2, n_chains=1, **options)
    several = scale.gdl(blocks, 5, 0.2, n_chains=n_chains, **options)
    first = explicit_cost(X, X[:5], core.gsc(X, X[:5], 0.2), 0.2)
    assert abs(several.costs[0] / first - 1) <= LOOSE
    assert np.abs(several.costs / single.costs - 1).max() <= LOOSE


def test_first_atoms_are_drawn_where_one_block_has_most_samples(client):
    """A few of each block are not enough then: the large one gives more."""
    uneven = da.from_array(X[:80], chunks=((1,) * 14 + (66,), 9, 2))
    learned = scale.gdl(uneven, 50, 0.1, n_iter=0, rng=0, client=client)
    assert learned.atoms.shape == (50, 9, 2)


def test_first_atoms_are_drawn_and_lambda_is_scaled(client, tmp_path):
    empty = da.from_array(X[:0], chunks=(0, 9, 2))
    uneven = da.concatenate([empty, da.from_array(X, chunks=(550, 9, 2)), empty])
    options = dict(lam_scale="max", rng=3, n_iter=2, tol=0, client=client)
    learned = scale.gdl(uneven, 40, 0.1, checkpoint=tmp_path / "c.npz", **options)
    assert learned.atoms.shape == (40, 9, 2) and learned.costs[-1] < learned.costs[0]
    # lam_max is in 2..4 for samples about as many centres
    assert 0.1 < learned.lam < 0.4
    longer = options | {"n_iter": 4}
    resumed = scale.gdl(
        uneven, 40, 0.1, resume=tmp_path / "c.npz", **longer | {"rng": 8}
    )
    assert np.array_equal(resumed.atoms, scale.gdl(uneven, 40, 0.1, **longer).atoms)
    assert np.array_equal(resumed.costs[:3], learned.costs)


@pytest.mark.parametrize("held", ["memory", "map", "dask"], indirect=True)
def test_rounds_go_on_with_the_same_samples_and_options_alone(client, held, tmp_path):
    path = tmp_path / "rounds.npz"
    options = dict(rng=0, n_iter=3, tol=0, n_chains=2, client=client)
    whole = scale.gdl(held, 5, 0.2, **options)
    scale.gdl(held, 5, 0.2, checkpoint=path, **options | {"n_iter": 1})
    scale.gdl(held, 5, 0.2, checkpoint=path, resume=path, **options | {"n_iter": 2})
    resumed = scale.gdl(held, 5, 0.2, resume=path, **options)
    assert np.array_equal(resumed.atoms, whole.atoms)
    assert np.array_equal(resumed.costs, whole.costs)
    with pytest.raises(ValueError, match="rounds.npz differs in the options$"):
        scale.gdl(held, 5, 0.2001, resume=path, **options)
    for row in (0, 333, 599):
        other = X.copy()
        other[row] = X[row - 1]
        if isinstance(held, da.Array):
            other = da.from_array(other, chunks=held.chunks)
        with pytest.raises(ValueError, match="rounds.npz differs in the samples$"):
            scale.gdl(other, 5, 0.2, resume=path, **options)


@pytest.mark.parametrize(
    "change",
    [
        {"rng": np.array("[" * 100_000)},
        {"counts": np.array("[" * 100_000)},
    ],
)
def test_absurd_checkpoints_of_rounds_are_damaged(client, change, tmp_path):
    path = tmp_path / "rounds.npz"
    scale.gdl(X, 5, 0.2, rng=0, n_iter=1, checkpoint=path, client=client)
    arrays = {
        name: array
        for name, array in np.load(path).items()
        if name not in ("format", "version")
    }
    files.write_arrays(path, "checkpoint", arrays | change)
    with pytest.raises(ValueError, match="rounds.npz is damaged"):
        scale.gdl(X, 5, 0.2, resume=path, client=client)


def test_codes_go_on_from_those_of_one_machine_and_refuse_others(
    client, held, tmp_path
):
    """Here and on workers the same fingerprint is kept."""
    for path, options in [
        (tmp_path / "codes.npy", {}),
        (tmp_path / "parts", {"sparse_output": True}),
    ]:
        assert write_codes(path, X[:100], D, 0.3, **options) == 100
        more = dict(out=path, start="resume", **options)
        other = D.copy()
        other[7] = D[6]
        for atoms, lam, what in [(other, 0.3, "atoms"), (D, 0.3001, "options")]:
            with pytest.raises(ValueError, match=f"differs in the {what}$"):
                scale.code(held, atoms, lam, client=client, **more)
        assert scale.code(held, D, 0.3, client=client, **more) == 600
        assert error(core.dense_codes(load_codes(path)), sparse_codes()) <= TIGHT
        assert write_codes(X=X, D=D, lam=0.3, **more) == 600
        swapped = X.copy()
        swapped[[1, 500]] = X[[500, 1]]
        with pytest.raises(ValueError, match="differs in the samples$"):
            scale.code(swapped, D, 0.3, client=client, **more)


def test_other_codes_are_replaced_only_if_that_is_asked_for(client, tmp_path):
    for path, options in [
        (tmp_path / "codes.npy", {}),
        (tmp_path / "parts", {"sparse_output": True}),
    ]:
        options["out"] = path
        assert write_codes(X=X[:100], D=D, lam=0.3, **options) == 100
        other = X.copy()
        other[99] = X[0]
        for samples, lam, why in [(other, 0.3, "samples"), (X, 0.4, "options")]:
            with pytest.raises(
                ValueError, match=f"replace=True: .* differs in the {why}"
            ):
                scale.code(samples, D, lam, client=client, **options)
        assert load_codes(path).shape == (100, 20)
        # of which 100 are the same
        assert scale.code(X, D, 0.3, client=client, **options) == 600
        assert scale.code(X[:50], D, 0.4, client=client, replace=True, **options) == 50
        assert load_codes(path).shape == (50, 20)
    with pytest.raises(ValueError, match="start, replace and progress belong to out"):
        scale.code(X, D, 0.3, client=client, replace=True)


def test_codes_are_never_written_into_the_store_of_the_subspaces_by_workers(
    client, tmp_path
):
    zarr = pytest.importorskip("zarr", reason="zarr arrays need zarr")
    array = zarr.open(str(tmp_path / "X.zarr"), mode="w", shape=X.shape, dtype=float)
    array[:] = X
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    out = tmp_path / "X.zarr"
    with pytest.raises(
        ValueError, match="out must lie apart from the file or store of X"
    ):
        scale.code(array, D, 0.3, out=out, sparse_output=True, client=client)
    assert {
        path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    } == before


# ---------------------------------------------------------------------------- faults


def kill_a_worker(client, after):
    pid = next(iter(client.run(os.getpid).values()))
    timer = threading.Timer(after, os.kill, (pid, signal.SIGKILL))
    timer.start()
    return timer


def test_a_killed_worker_changes_no_result(client, tmp_path):
    np.save(tmp_path / "X.npy", np.tile(X, (20, 1, 1)))
    many = np.load(tmp_path / "X.npy", mmap_mode="r")
    options = dict(init=X[:15], n_iter=2, tol=0, n_chains=3, client=client)
    whole = scale.gdl(many, 15, 0.2, **options)
    kill_a_worker(client, 0.2).join()
    killed = scale.gdl(many, 15, 0.2, **options)
    assert np.array_equal(killed.atoms, whole.atoms)
    assert np.array_equal(killed.costs, whole.costs)
    client.wait_for_workers(2, timeout=60)
    timer = kill_a_worker(client, 0.02)
    codes = scale.code(many, D, 0.3, client=client)
    timer.join()
    assert error(codes.reshape(20, *sparse_codes().shape), sparse_codes()) <= TIGHT


SERVER = """
import distributed
import time
cluster = distributed.LocalCluster(1, processes=False, protocol="tcp", dashboard_address=":0")
print(cluster.scheduler_address, flush=True)
time.sleep(300)
"""


def test_a_lost_scheduler_is_said_and_the_checkpoint_stays_good(tmp_path):
    """Scheduler and worker in a process that a callback kills after the first round."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    rounds = []

    def kill(learned):
        rounds.append(len(learned.costs))
        if len(rounds) == 2:
            server.kill()

    options = dict(init=X[:15], n_iter=3, tol=0)
    try:
        with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
            client = distributed.Client(server.stdout.readline().strip())
            path = tmp_path / "checkpoint.npz"
            with pytest.raises(ConnectionError, match="scheduler"):
                scale.gdl(
                    X, 15, 0.2, checkpoint=path, callback=kill, client=client, **options
                )
            client.close(timeout=1)
    finally:
        server.kill()
        server.communicate()
    whole = learn.gdl(X, 15, 0.2, **options)
    with distributed.Client(
        n_workers=1, processes=False, dashboard_address=":0"
    ) as client:
        resumed = scale.gdl(X, 15, 0.2, resume=path, client=client, **options)
    assert len(resumed.costs) == 4
    assert np.abs(resumed.costs / whole.costs[::2] - 1).max() <= LOOSE


def test_a_full_disk_of_a_worker_leaves_whole_parts_to_go_on_from(
    monkeypatch, tmp_path
):
    many = np.tile(X, (2, 1, 1))

    def write(folder, row, *rest):
        if row > 500:
            raise OSError(errno.ENOSPC, "No space left on device")
        write_part(folder, row, *rest)

    options = dict(out=tmp_path / "parts", sparse_output=True)
    with distributed.Client(
        processes=False, n_workers=1, dashboard_address=":0"
    ) as client:
        with monkeypatch.context() as patch:
            patch.setattr(scale, "write_part", write)
            with pytest.raises(
                OSError, match="of the rows before 512 are written"
            ) as caught:
                scale.code(many, D, 0.3, client=client, **options)
        assert caught.value.errno == errno.ENOSPC
        assert load_codes(tmp_path / "parts").shape == (512, 20)
        assert (
            scale.code(many, D, 0.3, client=client, start="resume", **options) == 1200
        )
    codes = load_codes(tmp_path / "parts").toarray()
    assert error(codes, np.tile(sparse_codes(), (2, 1))) <= TIGHT


# ---------------------------------------------------------------------------- bad input


def test_bad_blocks_are_named(client):
    bad = X.copy()
    bad[123] = np.nan
    chunks = da.from_array(bad, chunks=(100, 9, 2))
    where = r"at index 123 \(in block 1, of rows 100..199\)"
    with pytest.raises(ValueError, match=where):
        scale.code(chunks, D, 0.3, client=client).compute()
    with pytest.raises(ValueError, match=where):
        scale.gdl(chunks, 5, 0.3, init=X[:5], client=client)
    other = dask.delayed(np.eye)(8).reshape(1, 8, 8)[:, :, :2]
    odd = da.concatenate(
        [da.from_array(X, chunks=300), da.from_delayed(other, (1, 9, 2), float)]
    )
    with pytest.raises(
        ValueError, match=r"d of the atoms, 9, got 8 \(in block 2, of rows 600\.\."
    ):
        scale.code(odd, D, 0.3, client=client).compute()


def test_what_dask_masks_is_refused(client, tmp_path):
    masked = np.ma.masked_array(X.copy())
    masked[123, 2, 1] = np.ma.masked
    chunks = da.from_array(masked, chunks=(100, 9, 2))
    with pytest.raises(
        ValueError, match="no masked entries, got 1 of them.*in block 1"
    ):
        scale.code(chunks, D, 0.3, client=client).compute()
    with pytest.raises(ValueError, match="no masked entries, got 1 of them"):
        write_codes(tmp_path / "codes.npy", chunks, D, 0.3)


@pytest.mark.parametrize("n_workers", [0, -1])
def test_a_client_without_workers_is_refused(n_workers):
    with pytest.raises(ValueError, match=f"n_workers must be >= 1, got {n_workers}"):
        scale.local_client(n_workers)


def test_a_checkpoint_that_no_file_can_be_is_refused_before_a_client_is_asked(tmp_path):
    for path, why in [
        (tmp_path, "which is a folder"),
        (tmp_path / "none" / "c.npz", "No such"),
    ]:
        with pytest.raises(ValueError, match=f"^checkpoint must be .*{why}"):
            scale.gdl(X, 5, 0.2, checkpoint=path, client="none")


def test_bad_arguments_are_named(client):
    for arguments, match in [
        (dict(lam=None), "give either lam or n_neighbors"),
        (dict(client=3), "client must be a distributed.Client or None, got 3"),
        (dict(start=3), "start, replace and progress belong to out"),
        (dict(start=[[1], [1, 2]]), "start, replace and progress belong to out"),
        (dict(X=X[0]), r"X must have shape \(n, d, p\) with 1 <= p <= d, got \(9, 2\)"),
    ]:
        with pytest.raises((TypeError, ValueError), match=match):
            scale.code(**dict(X=X, D=D, lam=0.3, client=client) | arguments)
    for wrong, match in [
        (
            D[..., :0],
            r"D must have shape \(n, d, p\) with 1 <= p <= d, got \(\d+, 9, 0\)",
        ),
        (2 * D, "D must have orthonormal columns"),
        (D[:, :1, :1] / D[:, :1, :1], "X and D must have the same d, got 9 and 1"),
    ]:
        with pytest.raises(ValueError, match=match):
            scale.gram(X, wrong, client=client)
    with pytest.raises(
        ValueError, match="X must hold at least n_atoms = 7 subspaces, got 3"
    ):
        scale.gdl(X[:3], 7, 0.3, client=client)
    with pytest.raises(ValueError, match="X must hold at least one subspace"):
        scale.gdl(X[:0], 7, 0.3, client=client)


# ---------------------------------------------------------------------------- files


def test_from_files_to_codes(client, tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "CLIPS", 3)
    rng = np.random.default_rng(0)
    paths = [tmp_path / f"{i}.npy" for i in range(7)]
    for path in paths:
        np.save(path, rng.integers(0, 255, (6, 3, 3), dtype=np.uint8))
    Y = scale.from_paths(paths, 2)
    assert Y.shape == (7, 9, 2) and Y.chunks[0] == (3, 3, 1)
    codes = scale.code(Y, D, 0.3, client=client).compute()
    assert error(codes, core.gsc(Y.compute(), D, 0.3)) <= TIGHT
    paths[4].write_bytes(b"no array")
    with pytest.raises(ValueError, match=r"4\.npy has no subspace"):
        scale.code(Y, D, 0.3, client=client).compute()
    np.save(paths[4], rng.random((6, 4, 3)))
    with pytest.raises(ValueError, match=r"4\.npy has a basis of shape \(12, 2\)"):
        scale.from_paths(paths, 2).compute()
    with pytest.raises(ValueError, match="paths must hold at least one path"):
        scale.from_paths([], 2)
    with pytest.raises(
        TypeError, match="paths must be a list of paths, got 'clip.npy'"
    ):
        scale.from_paths("clip.npy", 2)
    with pytest.raises(TypeError, match=r"paths\[1\] must be a path, got 3"):
        scale.from_paths([paths[0], 3], 2)
