"""Dictionary learning in full: optimal atoms at large d, options, reasons to stop, checkpoints, streams, files."""

import functools
import json
import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as core
import learn
from strategies import KINDS, LOOSE, TIGHT, bases, error, seeds
from test_learn import clusters, explicit_cost, hat

SOME = core.random_subspaces(30, 70, 2, rng=3)  # d above 16 p: Krylov steps
SMALL = clusters(np.random.default_rng(1), 24, 6, 2, 4)


def explicit_updates(X, D, codes, updated):
    """(S_r, old atom, new atom) of each update in turn, S_r (d, d) from projectors, the atoms before r already updated."""
    D, shared = D.copy(), codes.T @ codes
    for r in np.flatnonzero(codes.any(axis=0)):
        others = np.delete(np.arange(len(D)), r)
        S = np.einsum("n,nab->ab", codes[:, r], hat(X)) - np.einsum("n,nab->ab", shared[r, others], hat(D[others]))
        yield S, D[r], updated[r]
        D[r] = updated[r]


# ---------------------------------------------------------------------------- update of the atoms


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(66, 120), st.integers(1, 4), st.integers(2, 20), st.integers(1, 8), st.sampled_from([*KINDS, "axes"]),
       st.sampled_from(["signed", "positive", "negative", "rounded"]))
def test_each_atom_is_what_a_dense_eigen_solver_finds(seed, d, p, n, N, kind, sign):
    """By Krylov steps; atoms that start in an invariant subspace, negative S_r and many equal eigenvalues among them."""
    rng = np.random.default_rng(seed)
    if kind == "axes":
        X = np.stack([np.eye(d)[:, rng.choice(3 * p + 3, p, replace=False)] for _ in range(n)])
    else:
        X = bases(rng, n, d, p, kind)
    D = X[rng.integers(0, n, N)].copy()
    codes = rng.standard_normal((n, N)) * (rng.random((n, N)) < 0.6)
    codes = {"signed": codes, "positive": np.abs(codes), "negative": -np.abs(codes), "rounded": np.round(codes)}[sign]
    updated = learn.update_atoms(X, D, codes)
    rounding = 1e-2 * TIGHT * p * np.square(np.abs(codes).sum(axis=1)).sum()  # of S itself, whose terms may all cancel
    for S, old, new in explicit_updates(X, D, codes, updated):
        values = np.linalg.eigvalsh(S)
        gained = np.trace(new.T @ S @ new)
        assert values[-p:].sum() - gained <= LOOSE * max(values[-p:].sum(), 0.1 * np.abs(values).max()) + rounding
        assert np.trace(old.T @ S @ old) - gained <= TIGHT * p * np.abs(values).max() + rounding
    assert error(np.swapaxes(updated, 1, 2) @ updated, np.eye(p)) <= TIGHT


def test_large_problems_are_updated_block_by_block_alike(monkeypatch):
    rng = np.random.default_rng(0)
    D, codes = SOME[:5], rng.standard_normal((30, 5))
    whole = learn.update_atoms(SOME, D, codes)
    monkeypatch.setattr(learn, "KEEP", 0)
    monkeypatch.setattr(learn, "PIECE", 8)  # bases as they lie, one a piece
    assert error(hat(learn.update_atoms(SOME, D, codes)), hat(whole)) <= 1e4 * LOOSE


@pytest.mark.parametrize("p", [1, 2])
def test_update_leaves_the_callers_atoms_alone(p):
    X = core.random_subspaces(8, 70, p, rng=0)
    D = X[:3].copy()
    learn.update_atoms(X, D, np.ones((8, 3)))
    assert np.array_equal(D, X[:3])


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_gdl_cost_never_rises_for_large_d(seed):
    X = clusters(np.random.default_rng(seed), 20, 80, 3, 4)
    for coding in (dict(lam=0.2), dict(lam=0.2, positive=True), dict(n_neighbors=2)):
        costs = learn.gdl(X, 5, n_iter=4, tol=0, rng=seed, **coding).costs
        falls = np.diff(costs)[::2] if "n_neighbors" in coding else np.diff(costs)
        assert (falls <= TIGHT * costs[0]).all()


@pytest.mark.parametrize("d, p, n, second", [(300, 1, 200, 1.05), (300, 2, 100, 1.01), (2000, 3, 2, 1.1), (5000, 2, 7, 1.1)])
def test_an_atom_leaves_eigenvectors_that_do_not_lead(d, p, n, second):
    basis = core.random_subspaces(1, d, n * p, rng=d)[0]
    X = basis.reshape(d, n, p).swapaxes(0, 1)  # orthogonal samples: S = sum_i y_i X_i^, and X_0 spans eigenvectors of it
    codes = np.array([1, second, *np.linspace(0.5, 0.95, n - 2)])[:, None]
    atom = learn.update_atoms(X, X[:1], codes)
    assert core.projection_kernel(atom, X[1:2]).item() == pytest.approx(p, abs=1e-8)


# ---------------------------------------------------------------------------- weights


@pytest.mark.parametrize("init", ["kmeans++", "random", "kmeans"])
@pytest.mark.parametrize("coding", [dict(lam=0.2), dict(n_neighbors=2)])
def test_integer_weights_are_repetitions_and_zero_is_absence(init, coding):
    weights = np.random.default_rng(0).integers(0, 4, len(SMALL))
    weights[:4] = 1, 2, 3, 1
    one = learn.gdl(SMALL, 4, init=init, n_iter=3, tol=0, sample_weight=weights, rng=5, **coding)
    many = learn.gdl(np.repeat(SMALL, weights, axis=0), 4, init=init, n_iter=3, tol=0, rng=5, **coding)
    assert error(one.costs[[0, -1]], many.costs[[0, -1]]) <= LOOSE * one.costs[0]
    assert error(hat(one.atoms), hat(many.atoms)) <= 1e3 * LOOSE
    assert error(np.repeat(one.codes, weights, axis=0), many.codes) <= 1e3 * LOOSE


# ---------------------------------------------------------------------------- options and results


def test_every_reason_to_stop_is_reached():
    stop = functools.partial(learn.gdl, SMALL, 4, 0.2, rng=0)
    assert stop(n_iter=2, tol=0).stopped == "n_iter" and stop(n_iter=2, tol=0).n_iter == 2
    assert stop(n_iter=500, tol=1e-2).stopped == "tol"
    seen = []
    result = stop(tol=0, callback=lambda state: seen.append(state.costs[-1]) or state.n_iter == 3)
    assert result.stopped == "callback" and len(seen) == 3 and seen[-1] == result.costs[-1]

    def interrupt(state):
        if state.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="after 2 of 20 iterations"):
        result = stop(tol=0, callback=interrupt)
    assert result.stopped == "interrupted" and np.array_equal(result.costs, stop(n_iter=2, tol=0).costs)


def test_codings_by_name_and_by_function():
    by_lam = learn.gdl(SMALL, 4, 0.2, n_iter=2, rng=0)
    assert np.array_equal(learn.gdl(SMALL, 4, 0.2, coding="sparse", n_iter=2, rng=0).costs, by_lam.costs)
    local = learn.gdl(SMALL, 4, n_neighbors=2, n_iter=2, rng=0)
    for coding, options in (("local", dict(n_neighbors=2)), (functools.partial(core.locality_codes, n_neighbors=2), {})):
        assert np.array_equal(learn.gdl(SMALL, 4, coding=coding, n_iter=2, rng=0, **options).atoms, local.atoms)


def test_positive_codes_are_positive():
    assert learn.gdl(SMALL, 6, 0.05, positive=True, n_iter=2, rng=0).codes.min() >= 0


def test_kmeans_finds_the_chordal_means_of_clusters():
    atoms = learn.init_atoms(SMALL, 4, "kmeans", rng=0)
    means = np.stack([core.chordal_mean(SMALL[c::4]) for c in range(4)])
    assert core.projection_kernel(means, atoms).max(axis=1).min() >= 2 - LOOSE


@pytest.mark.parametrize("unused", ["worst", "random", "keep"])
def test_unused_atoms_follow_the_policy(unused):
    X = np.zeros((8, 8, 2))
    X[:, :4] = core.random_subspaces(8, 4, 2, rng=0)
    useless = np.stack([np.eye(8)[:, 4:6], np.eye(8)[:, 6:]])
    result = learn.gdl(X, 4, 0.1, init=np.concatenate([X[:2], useless]), unused=unused, n_iter=1, rng=0)
    assert result.n_replaced == (0 if unused == "keep" else 2)
    assert np.array_equal(result.atoms[2:], useless) == (unused == "keep")
    if unused == "worst":
        assert core.projection_kernel(result.atoms[2:])[0, 1] < 2 - LOOSE  # two samples that differ


def test_results_can_be_pickled():
    result = learn.gdl(SMALL, 4, 0.2, n_iter=1, rng=0)
    again = pickle.loads(pickle.dumps(result))
    assert again.stopped == "n_iter" and np.array_equal(again.atoms, result.atoms)


@pytest.mark.parametrize("options, message", [
    (dict(lam=0.1, coding="best"), "coding must be 'sparse', 'local' or a function, got 'best'"),
    (dict(lam=0.1, coding="local"), "coding = 'local' needs n_neighbors, got lam = 0.1"),
    (dict(n_neighbors=2, coding="sparse"), "coding = 'sparse' needs lam, got lam = None"),
    (dict(n_neighbors=2, positive=True), "positive must be left out with n_neighbors"),
    (dict(coding=core.locality_codes, n_neighbors=2), "must be left to the function"),
    (dict(coding=lambda K, k, norm2: k[:1]), r"coding\(K_dd, K_xd, norm2=p\) must have shape \(24, 4\), got \(1, 4\)"),
    (dict(lam=0.1, unused="zero"), "unused must be 'worst', 'random' or 'keep', got 'zero'"),
    (dict(lam=0.1, sample_weight=np.ones(3)), r"sample_weight must have shape \(24,\), one a sample, got \(3,\)"),
    (dict(lam=0.1, sample_weight=np.zeros(24)), "sample_weight must be >= 0 and not all zero, got a least weight of 0"),
    (dict(lam=0.1, sample_weight=-np.ones(24)), "got a least weight of -1"),
])
def test_gdl_refuses_options(options, message):
    with pytest.raises(ValueError, match=message):
        learn.gdl(SMALL, 4, **options)


def test_progress_shows_a_bar_or_names_the_extra(capsys, monkeypatch):
    pytest.importorskip("tqdm")
    learn.gdl(SMALL, 4, 0.2, n_iter=2, rng=0, progress=True)
    assert "cost=" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match=r"grassmann_sc_kit\[progress\]"):
        learn.gdl(SMALL, 4, 0.2, progress=True)


# ---------------------------------------------------------------------------- kernels and classes


class SquareLift:
    """The polynomial kernel (x^T y)^2, in its exact coordinates x x^T; a stand-in for kernels.Lift."""

    def fit(self, sets):
        return self

    def transform(self, sets):
        return np.stack([np.linalg.qr(np.einsum("ia,ib->abi", F, F).reshape(-1, len(F)))[0][:, :2] for F in sets])


def test_kgdl_is_gdl_on_the_coordinates_of_the_lift():
    sets = np.random.default_rng(0).standard_normal((12, 4, 5))
    learned, twin = learn.kgdl(sets, 3, 0.1, lift=SquareLift(), rng=0), learn.gdl(SquareLift().transform(sets), 3, 0.1, rng=0)
    assert np.array_equal(learned.atoms, twin.atoms) and learned.atoms.shape == (3, 25, 2)
    assert (np.diff(learned.costs) <= TIGHT * learned.costs[0]).all()


def test_class_dictionaries_classify_with_fewer_atoms():
    rng = np.random.default_rng(0)
    X, y = clusters(rng, 60, 12, 2, 6), np.array(list("abc"))[np.arange(60) % 3]
    atoms, labels = learn.class_dictionaries(X, y, 2, 0.1, rng=0)
    assert labels.tolist() == list("aabbcc")
    K_dd, K_xd = core.projection_kernel(atoms), core.projection_kernel(X, atoms)
    assert (core.classify(core.sparse_codes(K_dd, K_xd, 0.1, norm2=2), K_dd, K_xd, labels, norm2=2) == y).all()
    assert learn.class_dictionaries(X, y, {"a": 1, "b": 3, "c": 100}, 0.1).labels.tolist() == ["a"] + 3 * ["b"] + 20 * ["c"]


# ---------------------------------------------------------------------------- streams


def test_a_stream_learns_as_well_as_a_batch_and_remembers_in_bounded_space():
    rng = np.random.default_rng(0)
    centres = core.random_subspaces(8, 20, 2, rng=rng)

    def draw(n):
        return core.orthonormalize(centres[rng.integers(0, 8, n)] + 0.1 * rng.standard_normal((n, 20, 2)))

    held_out = draw(200)

    def cost(atoms):
        return explicit_cost(held_out, atoms, core.gsc(held_out, atoms, 0.2), 0.2)

    stream = learn.OnlineGDL(6, 0.2, rng=0)
    for _ in range(20):
        stream.partial_fit(draw(64))
    assert cost(stream.atoms) <= 1.05 * cost(learn.gdl(draw(600), 6, 0.2, rng=0).atoms)
    assert stream._factor.shape == (6, 16, 20) and stream.n_batches == 20


def test_statistics_of_a_stream_are_exact_where_the_rank_allows():
    """Without forgetting and at full rank, the update after two batches is that of both at once."""
    D, first, second = SMALL[:3], SMALL[4:12], SMALL[12:]
    stream = learn.OnlineGDL(3, 0.2, init=D, forgetting=0, rank=6).partial_fit(first)
    middle = stream.atoms
    stream.partial_fit(second)
    codes = np.concatenate([core.gsc(first, D, 0.2), core.gsc(second, middle, 0.2)])
    assert error(hat(middle), hat(learn.update_atoms(first, D, codes[:8]))) <= LOOSE
    assert error(hat(stream.atoms), hat(learn.update_atoms(SMALL[4:], middle, codes))) <= LOOSE


def test_fit_takes_memory_maps_and_iterables(tmp_path):
    np.save(tmp_path / "X.npy", SMALL)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fitted = learn.OnlineGDL(4, 0.2, rng=0).fit(mapped, batch_size=5, n_epochs=2)
    assert fitted.n_batches == 10 and fitted.atoms.shape == (4, 6, 2)
    assert learn.OnlineGDL(4, 0.2, rng=0).fit([SMALL[:2], SMALL[2:]], n_epochs=2).n_batches == 3  # two samples wait for the rest
    with pytest.raises(ValueError, match="n_epochs must be 1, got 2"):
        learn.OnlineGDL(4, 0.2).fit(iter([SMALL]), n_epochs=2)
    with pytest.raises(ValueError, match=r"d and p of the atoms, \(6, 2\), got \(70, 2\)"):
        fitted.partial_fit(SOME)


# ---------------------------------------------------------------------------- files


def test_dictionaries_come_back_as_they_were_saved(tmp_path):
    path = tmp_path / "atoms"
    for atoms in (SMALL[:3], SMALL[:3].astype(np.float32)):
        for labels in (["a", "b", "a"], [3, 1, 2], None):
            learn.save(path, atoms, lam=0.1, labels=labels)
            loaded = learn.load(path)
            assert np.array_equal(loaded.atoms, atoms) and loaded.atoms.dtype == atoms.dtype and loaded.lam == 0.1
            assert labels is None and loaded.labels is None or loaded.labels.tolist() == labels
    assert os.listdir(tmp_path) == ["atoms"]
    learn.save(path, learn.gdl(SMALL, 2, 0.1, n_iter=1))
    assert learn.load(path).lam is None
    with pytest.raises(TypeError, match="labels must be numbers, strings or bools in a file, got dtype object"):
        learn.save(path, SMALL[:3], labels=[None, "a", 3])


def seal(path):
    """Give a zip file the checksum that the module asks for."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = bytes(64)
    with open(path, "r+b") as file:
        length = path.stat().st_size - 64
        digest = learn._digest(file, length)
        file.seek(length)
        file.write(digest)


def header(shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def damage(path, i):
    """Turn a dictionary into one of fifty files that are none: cut, flipped bits, or well sealed and wrong inside."""
    whole, rng = path.read_bytes(), np.random.default_rng(i)
    good = dict(np.load(path))
    if i < 15:
        path.write_bytes(whole[:i * len(whole) // 15])
    elif i < 35:
        at = rng.integers(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << rng.integers(8)]) + whole[at + 1:])
    elif i < 48:
        evil = np.array([print, None, 1], object)
        change = [{"other": 1}, {"version": 99}, {"format": "checkpoint"}, {"atoms": evil}, {"labels": evil}, {"lam": evil}, {"version": evil},
                  {"atoms": 2 * good["atoms"]}, {"atoms": good["atoms"][0]}, {"labels": np.arange(2)}, {"lam": np.nan}, {"lam": np.ones(3)},
                  {"version": np.ones(2, int)}][i - 35]
        with path.open("wb") as file:
            (np.savez_compressed if i == 35 else np.savez)(file, **{**good, **change})
        seal(path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for key in good:
                archive.writestr(f"{key}.npy", header((10**12, 6, 2) if i == 48 else (2**40, 2**40, 2**40)))
        seal(path)


@pytest.mark.parametrize("i", range(50))
def test_damaged_files_are_refused(tmp_path, i):
    path = tmp_path / "dictionary"
    learn.save(path, SMALL[:3], lam=0.1, labels=["a", "b", "c"])
    damage(path, i)
    tracemalloc.start()
    with pytest.raises(ValueError, match="dictionary (must be|is damaged)"):
        learn.load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**19  # bytes, whatever shapes are declared; a sound file of this size takes 30 kB


# ---------------------------------------------------------------------------- checkpoints


OPTIONS = dict(lam=0.1, n_iter=6, tol=0, unused="random")


@pytest.mark.parametrize("stop", range(4))
def test_resumed_learning_ends_with_the_bits_of_an_uninterrupted_run(tmp_path, stop):
    path = tmp_path / "checkpoint"
    whole = learn.gdl(SOME, 8, rng=0, **OPTIONS)
    learn.gdl(SOME, 8, rng=0, checkpoint=path, **{**OPTIONS, "n_iter": stop})
    resumed = learn.gdl(SOME, 8, resume=path, checkpoint=path, rng=99, **OPTIONS)
    again = learn.gdl(SOME, 8, resume=path, **OPTIONS)
    for result in (resumed, again):
        assert all(np.array_equal(a, b) for a, b in zip(result, whole)) and result.n_replaced == whole.n_replaced


CHILD = """
import sys, numpy as np, grassmann_sc as core, learn
X = core.random_subspaces(30, 70, 2, rng=3)
print("ready", flush=True)
learn.gdl(X, 8, rng=0, checkpoint=sys.argv[1], callback=lambda state: print(state.n_iter, flush=True), lam=0.1, n_iter=6, tol=0, unused="random")
"""


def test_a_killed_run_resumes(tmp_path):
    path, root = tmp_path / "checkpoint", Path(__file__).resolve().parent.parent
    child = subprocess.Popen([sys.executable, "-c", CHILD, path], cwd=root, stdout=subprocess.PIPE, text=True)
    while child.stdout.readline().strip() != "2":
        pass
    child.send_signal(signal.SIGKILL)
    child.wait()
    whole = learn.gdl(SOME, 8, rng=0, **OPTIONS)
    assert all(np.array_equal(a, b) for a, b in zip(learn.gdl(SOME, 8, resume=path, **OPTIONS), whole))


def test_checkpoints_of_other_problems_and_kinds_are_refused(tmp_path):
    path, other = tmp_path / "checkpoint", tmp_path / "dictionary"
    learn.gdl(SMALL, 4, 0.2, n_iter=1, checkpoint=path)
    learn.save(other, SMALL[:4])
    with pytest.raises(ValueError, match="resume must be a checkpoint of the same samples"):
        learn.gdl(SMALL, 4, 0.3, resume=path)
    with pytest.raises(ValueError, match="must be a checkpoint"):
        learn.gdl(SMALL, 4, 0.2, resume=other)
    with pytest.raises(ValueError, match="must be given the kind of rng"):
        learn.gdl(SMALL, 4, 0.2, resume=path, rng=np.random.Generator(np.random.MT19937(0)))
    assert json.loads(str(np.load(path)["rng"]))["bit_generator"] == "PCG64"
