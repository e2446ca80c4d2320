"""Dictionary learning on streams of batches: as good as in memory, in bounded space;
learners are merged, saved, killed and resumed.
"""

import itertools
import json
import os
import pickle
import signal
import subprocess
import sys
import types

import joblib
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as core
from grassmann_sc import files, learn
from grassmann_sc.large import streams
from oracles import (
    LOOSE,
    TIGHT,
    clusters,
    error,
    explicit_cost,
    hat,
    rounding,
    samples_and_atoms,
    statistics,
)
from processes import ROOT, interrupted

SOME = core.random_subspaces(30, 70, 2, rng=3)
SMALL = clusters(np.random.default_rng(1), 24, 6, 2, 4)
MANY = clusters(np.random.default_rng(2), 400, 8, 2, 12)
# more than four times a rank of 4
WIDE = clusters(np.random.default_rng(2), 400, 40, 2, 12)


def cost(X, atoms, lam=0.2):
    return explicit_cost(X, atoms, core.gsc(X, atoms, lam), lam)


@pytest.mark.parametrize("X", [SMALL, WIDE[:60]], ids=["eigenvectors", "steps"])
def test_a_factor_of_all_weights_changes_nothing_in_float32_either(X):
    X = X.astype(np.float32)
    weights = np.arange(len(X)) % 3 + 1.0

    def atoms(factor):
        learner = streams.OnlineGDL(3, 0.2, rng=0)
        for rows in np.array_split(np.arange(len(X)), 4):
            learner.partial_fit(X[rows], factor * weights[rows])
        fork = learner.fork().collect(X[::2], factor * weights[::2])
        return (
            learner.collect(X[1::2], factor * weights[1::2]).merge(fork).update().atoms
        )

    usual = hat(atoms(1.0))
    for factor in (2.0**-1000, 1e300):
        assert error(hat(atoms(factor)), usual) <= 1e-3


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_a_learner_of_weights_of_any_size_is_kept_and_read_again(tmp_path, factor):
    learner = streams.OnlineGDL(3, 0.2, rng=0)
    weights = factor * (np.arange(12) % 3 + 1.0)
    for rows in np.array_split(SMALL.astype(np.float32), 2):
        learner.partial_fit(rows, weights)
    learner.save(tmp_path / "learner.npz")
    kept = streams.OnlineGDL.load(tmp_path / "learner.npz")
    ends = [stream.partial_fit(SMALL[:12], weights).atoms for stream in (kept, learner)]
    assert np.array_equal(*ends)


def test_a_learner_that_joblib_maps_goes_on_as_the_one_in_memory(tmp_path):
    """It maps arrays read-only, from a file and in its workers."""
    learner = streams.OnlineGDL(3, 0.2, rng=0).partial_fit(SMALL[:8])
    joblib.dump(learner, tmp_path / "learner")
    mapped = joblib.load(tmp_path / "learner", mmap_mode="r")
    for stream in (learner, mapped):
        stream.partial_fit(SMALL[8:]).merge(stream.fork().collect(SMALL[:8]))
    assert np.array_equal(learner.atoms, mapped.atoms)


def test_a_stream_learns_as_well_as_a_batch_and_remembers_in_bounded_space():
    rng = np.random.default_rng(0)
    centres = core.random_subspaces(8, 20, 2, rng=rng)

    def draw(n):
        return core.orthonormalize(
            centres[rng.integers(0, 8, n)] + 0.1 * rng.standard_normal((n, 20, 2))
        )

    held_out = draw(200)
    stream = streams.OnlineGDL(6, 0.2, rng=0)
    sizes = []
    for _ in range(20):
        stream.partial_fit(draw(64))
        sizes.append(len(pickle.dumps(stream)))
    batch = learn.gdl(draw(600), 6, 0.2, rng=0).atoms
    assert cost(held_out, stream.atoms) <= 1.05 * cost(held_out, batch)
    assert stream.n_batches == stream.n_updates == 20
    # Gram matrix, worst samples
    assert np.ptp(sizes[1:]) <= 8 * (6 * 6 + 6 * 20 * 2 + 6) + 500


def test_statistics_of_a_stream_are_exact_where_the_rank_allows():
    """Without forgetting and at full rank, the update after two batches is that of both
    at once.
    """
    D = SMALL[:3]
    first = SMALL[4:12]
    second = SMALL[12:]
    stream = streams.OnlineGDL(3, 0.2, init=D, forgetting=0, rank=6).partial_fit(first)
    middle = stream.atoms
    stream.partial_fit(second)
    codes = np.concatenate([core.gsc(first, D, 0.2), core.gsc(second, middle, 0.2)])
    assert error(hat(middle), hat(learn.update_atoms(first, D, codes[:8]))) <= LOOSE
    assert (
        error(hat(stream.atoms), hat(learn.update_atoms(SMALL[4:], middle, codes)))
        <= LOOSE
    )


@pytest.mark.parametrize("forgetting", [0.5, 1, 3])
def test_statistics_fade_by_a_power_of_the_share_of_a_batch(forgetting):
    kept, faded = (
        streams.OnlineGDL(3, 0.2, init=SMALL[:3], forgetting=power).partial_fit(SMALL)
        for power in (0, forgetting)
    )
    for name in ("shared", "sizes", "units"):
        assert error(faded.state()[name], 0.5**forgetting * kept.state()[name]) <= TIGHT
    collected = faded.collect(SMALL).state()["shared"].copy()
    assert (
        error(faded.update().state()["shared"], (2 / 3) ** forgetting * collected)
        <= TIGHT
    )


def test_an_update_after_the_end_of_a_fit_has_nothing_to_move():
    learner = streams.OnlineGDL(3, lam=50.0, rng=0)  # all codes are 0
    learner.collect(core.random_subspaces(20, 8, 2, rng=0))
    atoms = learner.fit([]).atoms
    assert np.array_equal(learner.update().atoms, atoms) and learner.weight == 0


def test_a_cost_counts_what_was_collected_before_the_update():
    D = SMALL[:3]
    stream = streams.OnlineGDL(3, 0.2, init=D).collect(SMALL[3:9]).collect(SMALL[9:])
    assert abs(stream.loss - cost(SMALL[3:], D)) <= LOOSE and stream.weight == 21
    assert np.array_equal(stream.atoms, D) and stream.cost is None
    stream.update()
    assert abs(stream.cost - cost(SMALL[3:], D) / 21) <= LOOSE
    with pytest.raises(ValueError, match="update needs a batch"):
        stream.update()


def test_atoms_move_once_a_share_of_the_statistics_is_new_and_at_the_end():
    learner = streams.OnlineGDL(4, 0.2, init=SMALL[:4], forgetting=0)
    moved = []
    for _ in range(12):
        before = learner.atoms if learner.n_batches else SMALL[:4]
        moved.append(not np.array_equal(before, learner.partial_fit(SMALL).atoms))
    assert moved[:3] == [True] * 3 and 5 <= sum(moved) <= 8  # 1/2, 1/3, then 2/5, ...
    batches = [MANY[i : i + 20] for i in range(0, 400, 20)]
    kept = streams.OnlineGDL(8, 0.2, rng=0)
    for batch in batches:
        kept.partial_fit(batch)
    fitted = streams.OnlineGDL(8, 0.2, rng=0).fit(batches)
    assert not np.array_equal(kept.atoms, fitted.atoms)
    assert cost(MANY, fitted.atoms) <= 1.001 * cost(MANY, kept.atoms)


def swept(rows, X, codes, n_sweeps):
    """Move the rows of atoms by the exact statistics of codes of X."""
    sums = np.tensordot(codes, hat(X), (0, 0)).astype(rows.dtype)
    none = np.empty((0, rows.shape[2]), rows.dtype)
    own = [(none, none[:, 0], A, rows.dtype.type(1)) for A in sums]
    learn.sweep_stream(rows, codes.T @ codes, own.__getitem__, n_sweeps)


@pytest.mark.parametrize(
    "d, dtype, tol",
    [
        (40, np.float32, 1e-4),
        (40, np.float64, TIGHT),
        (24, np.float64, TIGHT),  # S_r is formed
    ],
)
def test_a_sweep_of_a_stream_never_raises_the_cost_and_ends_at_leading_eigenvectors(
    d, dtype, tol
):
    X = core.random_subspaces(60, d, 2, rng=0).astype(dtype)
    # all atoms share samples
    codes = np.random.default_rng(1).standard_normal((60, 20))
    codes[:, 3] = 0  # unused
    rows = learn.copied_rows(core.random_subspaces(20, d, 2, rng=2).astype(dtype))
    rows[6] = rows[5]
    unused = rows[3].copy()

    def cost():
        return np.sum((hat(X) - np.tensordot(codes, hat(rows.swapaxes(1, 2)), 1)) ** 2)

    costs = [cost()]
    for _ in range(150):
        swept(rows, X, codes, 1)
        costs.append(cost())
    assert np.diff(costs).max() <= tol * costs[0]
    assert error(rows @ rows.swapaxes(1, 2), np.eye(2)) <= 20 * np.finfo(dtype).eps
    assert np.array_equal(rows[3], unused)
    atoms = rows.swapaxes(1, 2).copy()
    rows[:] = learn.update_atoms(X, atoms, codes).swapaxes(1, 2)
    assert cost() >= (1 - 1e-4) * costs[-1]  # a local optimum of every atom


def test_atoms_take_a_step_for_each_three_tenths_that_are_new():
    D = WIDE[:8]
    first = WIDE[:200]
    second = WIDE[200:]
    rows = learn.copied_rows(D)
    stream = streams.OnlineGDL(8, 0.2, init=D, forgetting=0).partial_fit(first)
    codes = core.gsc(first, D, 0.2)
    for _ in range(3):
        swept(rows, first, codes, 1)
    assert error(hat(stream.atoms), hat(rows.swapaxes(1, 2))) <= LOOSE
    codes = np.concatenate([codes, core.gsc(second, stream.atoms, 0.2)])
    swept(rows, WIDE, codes, 1)
    assert (
        error(hat(stream.partial_fit(second).atoms), hat(rows.swapaxes(1, 2))) <= LOOSE
    )


def test_an_atom_of_a_stream_leaves_the_sample_that_it_is_only_subtracted_from():
    X = core.random_subspaces(1, 60, 2, rng=0)
    rows = learn.copied_rows(X)  # eigenvectors of S = -X X^T, the last ones
    swept(rows, X, np.array([[-1.0]]), 20)
    assert error(rows[0] @ X[0], 0) <= LOOSE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("X, rank", [(MANY, None), (WIDE, 4)])
def test_what_a_stream_holds_does_not_grow(X, rank, dtype):
    learner = streams.OnlineGDL(8, 0.2, rank=rank, forgetting=0, rng=0)
    d = X.shape[1]
    for start in range(6):
        for i in range(start % 16, 400, 16):
            learner.partial_fit(X[i : i + 16].astype(dtype))
            state = learner.state()
            assert state["rows"].shape == (8, 16 if rank else d // 2, d)
            assert state["matrices"].shape == (8, 0 if rank else d, d)
            for name in ("rows", "matrices"):
                assert state[name].dtype == learner.atoms.dtype == dtype
    assert np.median(statistics(learner)[0].diagonal()) > 30  # of 6 epochs


# ------------------------------------------------------------------------- a dense twin


def dense_stream(batches, D, lam, forgetting):
    """OnlineGDL from atoms D on batches (X, weights), by d x d matrices: atoms,
    statistics and cost after each, the number of atoms replaced, and the atoms of a
    last move.
    """
    atoms = D.copy()
    shared = np.zeros((len(D), len(D)))
    sums = np.zeros((len(D), D.shape[1], D.shape[1]))
    new = 0
    n_replaced = 0
    samples = []
    held = []

    def moved():
        D = atoms.copy()
        for r in np.flatnonzero(shared.diagonal()):
            others = np.arange(len(D)) != r
            S = sums[r] - np.tensordot(shared[r, others], hat(D[others]), 1)
            D[r] = np.linalg.eigh(S)[1][:, -D.shape[2] :]
        idle = np.flatnonzero(shared.diagonal() <= 1e-6 * shared.diagonal().max())
        for r, (_, x) in zip(
            idle, sorted(samples, key=lambda pair: -round(pair[0], 9))
        ):
            D[r] = x
        return D, idle

    for t, (X, weights) in enumerate(batches, 1):
        codes = core.gsc(X, atoms, lam)
        losses = np.array(
            [explicit_cost(x[None], atoms, y[None], lam) for x, y in zip(X, codes)]
        )
        added = (codes.T * weights) @ codes
        shared = shared + added
        new += np.trace(added)
        sums = sums + np.einsum("i,ir,iab->rab", weights, codes, hat(X))
        samples += [pair for *pair, weight in zip(losses, X, weights) if weight > 0]
        if new >= 0.3 * np.trace(shared):
            atoms, idle = moved()
            for statistics in (shared, shared.T, sums):
                statistics[idle] = 0
            n_replaced += len(idle)
            new = 0
            samples = []
        shared, sums, new = (
            A * (t / (t + 1)) ** forgetting for A in (shared, sums, new)
        )
        held.append((hat(atoms), shared, sums, weights @ losses / weights.sum()))
    return held, n_replaced, hat(moved()[0] if samples else atoms)


@pytest.mark.parametrize("forgetting", [0, 1, 3])
# 28 rows hold 14 samples
@pytest.mark.parametrize("d, n, rank", [(10, 8, None), (32, 2, 7)])
def test_a_stream_is_its_dense_twin(d, n, rank, forgetting):
    """Some of the first samples, of little weight, are in one half of R^d, all others
    in the other: atoms that were used come to be of next to no use, and are replaced.
    fit is partial_fit and a last move.
    """
    rng = np.random.default_rng(1)
    X = np.zeros((12 + 6 * n, d, 2))
    first = np.arange(len(X)) % 4 < 2
    first[12:] = False
    X[first, : d // 2] = clusters(rng, first.sum(), d // 2, 2, 4)
    X[~first, d // 2 :] = clusters(rng, (~first).sum(), d // 2, 2, 4)
    D = core.orthonormalize(X[:4] + 0.1 * (X[:4] != 0) * rng.standard_normal((4, d, 2)))
    batches = np.split(X, [4, 8, *range(12, len(X), n)])
    weights = [1.0 + rng.integers(0, 3, len(batch)) for batch in batches]
    for t, w in enumerate(weights):
        w[2:] -= 1
        # atoms stay after some batches
        w *= [1, 0.05, 1e-3][t % 3] * (1e-7 if t < 3 else 1)
    options = dict(lam=0.3, init=D, forgetting=forgetting, rank=rank)
    held, n_replaced, _ = dense_stream(zip(batches, weights), D, 0.3, forgetting)
    stream = streams.OnlineGDL(4, **options)
    for batch, some, expected in zip(batches, weights, held):
        stream.partial_fit(batch, some)
        values = hat(stream.atoms), *statistics(stream), stream.cost
        for value, other in zip(values, expected):
            assert error(value, other) <= LOOSE * np.abs(other).max()
    assert stream.n_replaced == n_replaced >= 2
    batches.append(X[-1:])
    ones = [np.ones(len(batch)) for batch in batches]
    held, _, moved = dense_stream(zip(batches, ones), D, 0.3, forgetting)
    fitted = streams.OnlineGDL(4, **options).fit(batches)
    assert error(hat(fitted.atoms), moved) <= LOOSE
    assert error(moved, held[-1][0]) > LOOSE  # the last move is one


def test_the_last_move_of_a_fit_replaces_atoms_too():
    # orthogonal planes
    first, other, useless = np.eye(6).reshape(6, 3, 2).swapaxes(0, 1)
    stream = streams.OnlineGDL(2, 0.3, init=np.stack([first, useless]), forgetting=0)
    stream.fit([np.stack([first] * 5 + [other]), first[None]])
    assert stream.n_replaced == 2  # useless by the other, which was not used after that
    assert error(hat(stream.atoms), hat(first)) <= TIGHT


@pytest.mark.parametrize("X, rank", [(SMALL, None), (WIDE[:24], 4)])
def test_of_a_replaced_atom_no_statistics_are_kept(X, rank):
    # all atoms share
    codes = np.random.default_rng(0).uniform(0.5, 1, (24, 3)) * [1e-4, 1, 1]
    stream = streams.OnlineGDL(
        3, coding=lambda K_dd, K_xd, norm2: codes, init=X[:3], rank=rank
    )
    kept = stream.collect(X).fork()
    shared, sums = (A / 4 for A in statistics(stream))  # faded by (1 - 1 / 2)^2
    shared[0] = shared[:, 0] = sums[0] = 0
    values = statistics(stream.update())
    assert stream.n_replaced == 1 and kept.n_replaced == 0
    assert np.array_equal(values[0], shared)
    assert not values[1][0].any()
    assert rank or error(values[1], sums) <= TIGHT * sums.max()


@pytest.mark.parametrize("rank", [None, 3])
def test_more_atoms_than_are_kept_as_matrices_have_rows_of_eight_p(rank, monkeypatch):
    """Rows for 4 rank eigenpairs, and what is learned from them is as good."""
    monkeypatch.setattr(streams, "EXACT", 6 * 80**2 - 1)
    X = clusters(np.random.default_rng(0), 300, 80, 2, 60)
    batches = [X[i : i + 50] for i in range(0, 300, 50)]
    learner = streams.OnlineGDL(6, 0.2, init=X[:6], rank=rank).fit(batches)
    assert learner.state()["rows"].shape == (6, 4 * (rank or 8 * 2), 80)
    assert not learner.state()["matrices"].size
    monkeypatch.setattr(streams, "EXACT", 6 * 80**2)
    exact = streams.OnlineGDL(6, 0.2, init=X[:6]).fit(batches)
    assert exact.state()["matrices"].shape == (6, 80, 80)
    assert abs(cost(X, learner.atoms) / cost(X, exact.atoms) - 1) <= 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_sums_are_those_of_their_equation_however_many_codes_are_not_0(share, dtype):
    """In few codes rows wait, in many they are added at once; weights grow and fall."""
    rng = np.random.default_rng(0)
    X = core.random_subspaces(120, 37, 3, rng=1).astype(dtype)
    codes = rng.standard_normal((120, 5)) * (rng.random((120, 5)) < share)
    codes[:, 2] = 0
    weights = rng.integers(1, 4, 120) * np.repeat([1e-3, 1e9, 1.0], 40)
    batches = np.split(np.arange(120), [40, 41, 80, 100])
    given = iter(codes[rows] for rows in batches)
    learner = streams.OnlineGDL(
        5, coding=lambda K_dd, K_xd, norm2: next(given), init=X[:5]
    )
    for rows in batches:
        learner.collect(X[rows], weights[rows])
    sums = np.einsum("i,ir,iab->rab", weights, codes, hat(X.astype(float)))
    assert error(statistics(learner)[1], sums) <= rounding(dtype) * np.abs(sums).max()
    V = rng.standard_normal((5, 4, 37)).astype(dtype)
    state = learner.state()
    for r, rows in enumerate(V):
        parts = state["rows"][r], state["sizes"][r].astype(dtype), state["matrices"][r]
        image = learn.times_sum(rows, *parts, dtype(state["units"][r]))
        assert error(image, rows @ sums[r]) <= rounding(dtype) * np.abs(sums).max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_that_are_cut_back_to_their_rank_are_those_of_their_equation(dtype):
    """All samples lie in fewer dimensions than eigenvectors are kept."""
    rng = np.random.default_rng(0)
    X = np.zeros((60, 40, 2), dtype)
    X[:, :8] = core.random_subspaces(60, 8, 2, rng=1)
    codes = rng.standard_normal((60, 3))
    weights = rng.integers(1, 4, 60) * np.repeat([1e-3, 1e9, 1.0], 20)
    batches = np.split(np.arange(60), 3)
    given = iter(codes[rows] for rows in batches)
    learner = streams.OnlineGDL(
        3, coding=lambda K_dd, K_xd, norm2: next(given), init=X[:3], rank=9
    )
    for rows in batches:
        learner.collect(X[rows], weights[rows])
    assert not learner.state()["matrices"].size
    sums = np.einsum("i,ir,iab->rab", weights, codes, hat(X.astype(float)))
    assert error(statistics(learner)[1], sums) <= rounding(dtype) * np.abs(sums).max()


# ---------------------------------------------------------------------------- merging


def state_error(a, b):
    """Largest difference of atoms after an update of each."""
    return error(hat(a.update().atoms), hat(b.update().atoms))


@settings(max_examples=25)
@given(samples_and_atoms())
def test_merging_is_collecting_all_and_associative_at_full_rank(drawn):
    """Loss and weight always, the sums where the atoms are independent: of others, as
    repeated ones, rounding decides which take part in a code.
    """
    X, n_atoms, seed = drawn
    independent = np.linalg.eigvalsh(core.projection_kernel(X[:n_atoms]))[0] > 1e-4
    rng = np.random.default_rng(seed)
    start = streams.OnlineGDL(n_atoms, 0.1, init=X[:n_atoms], rank=X.shape[1])
    start = start.collect(X).fork()
    cuts = np.sort(rng.integers(0, len(X) + 1, 2))
    parts = np.split(X, cuts)
    a, b, c = (
        start.fork().collect(part) if len(part) else start.fork() for part in parts
    )
    before = pickle.dumps(a)
    left = a.merge(b).merge(c)
    right = a.merge(b.merge(c))
    whole = start.fork().collect(X)
    assert pickle.dumps(a) == before
    for merged in (left, right):
        assert abs(merged.loss - whole.loss) <= LOOSE * len(X)
        assert merged.weight == len(X)
        if independent:
            for value, expected in zip(statistics(merged), statistics(whole)):
                assert error(value, expected) <= LOOSE


def test_merged_sums_are_those_of_both_whatever_the_size_of_their_weights():
    rng = np.random.default_rng(0)
    X = core.random_subspaces(80, 12, 2, rng=1)
    codes = rng.standard_normal((80, 3))
    weights = np.repeat([1e-9, 1.0], 40)
    given = iter([codes[:1], codes[:40], codes[40:]])
    start = streams.OnlineGDL(
        3, coding=lambda K_dd, K_xd, norm2: next(given), init=X[:3]
    ).collect(X[:1])
    light, heavy = (
        start.fork().collect(X[rows], weights[rows])
        for rows in np.split(np.arange(80), 2)
    )
    sums = np.einsum("i,ir,iab->rab", weights, codes, hat(X))
    for merged in (light.merge(heavy), heavy.merge(light)):
        assert error(statistics(merged)[1], sums) <= TIGHT * np.abs(sums).max()


def test_merged_learners_are_as_good_as_one_of_all_at_low_rank():
    start = streams.OnlineGDL(8, 0.2, init=WIDE[:8], rank=4).collect(WIDE).fork()
    half = len(WIDE) // 2
    merged = start.merge(start.fork().collect(WIDE[:half])).merge(
        start.fork().collect(WIDE[half:])
    )
    whole = start.fork().collect(WIDE).update()
    assert abs(cost(WIDE, merged.update().atoms) / cost(WIDE, whole.atoms) - 1) <= 1e-3
    assert merged.n_batches == 2 and merged.state()["rows"].shape == (8, 16, 40)
    exact = streams.OnlineGDL(8, 0.2, init=WIDE[:8]).collect(WIDE).update()
    assert abs(cost(WIDE, whole.atoms) / cost(WIDE, exact.atoms) - 1) <= 1e-3


def test_an_unused_atom_takes_the_worst_sample_of_any_part():
    D = np.eye(6)[None, :, :2].repeat(2, axis=0)  # equal atoms: one of them is not used
    near = clusters(np.random.default_rng(0), 5, 6, 2, 1) * 0 + D[:1]
    far = np.eye(6)[None, :, 4:]
    start = streams.OnlineGDL(2, 0.1, init=D).collect(near).fork()
    merged = start.fork().collect(near).merge(start.fork().collect(far)).update()
    assert merged.n_replaced == 1
    assert min(core.chordal_distance(far, merged.atoms)[0]) <= LOOSE


@pytest.mark.parametrize("other", [{"forgetting": 2}, {"rank": 3}])
def test_learners_of_other_options_do_not_merge(other):
    options = {"init": SMALL[:3], "forgetting": 1, "rank": 4}
    learner = streams.OnlineGDL(3, 0.2, **options).collect(SMALL)
    different = streams.OnlineGDL(3, 0.2, **options | other).collect(SMALL)
    with pytest.raises(ValueError, match="other must have the same atoms and options"):
        learner.merge(different)


def test_progress_counts_the_last_batch_of_a_pass_however_small(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("time.monotonic", itertools.count().__next__)
    learner = streams.OnlineGDL(3, 0.2, rng=0)
    learner.fit(SMALL, batch_size=10, n_epochs=2, progress=True)
    assert "OnlineGDL, batches: 6 of 6, 0 s left" in capsys.readouterr().err


def test_learners_of_other_atoms_do_not_merge():
    a = streams.OnlineGDL(4, 0.2, rng=0).collect(SMALL)
    for other in (
        a.fork().partial_fit(SMALL),
        streams.OnlineGDL(4, 0.3, rng=0).collect(SMALL),
    ):
        with pytest.raises(
            ValueError, match="other must have the same atoms and options"
        ):
            a.merge(other)
    with pytest.raises(TypeError, match="other must be an OnlineGDL, got 3"):
        a.merge(3)
    with pytest.raises(
        ValueError, match="fork needs a learner that has atoms: collect 4 samples"
    ):
        streams.OnlineGDL(4, 0.2).fork()


# -------------------------------------------------------------------------- from arrays


def test_fit_takes_memory_maps_and_iterables(tmp_path):
    np.save(tmp_path / "X.npy", SMALL)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    fitted = streams.OnlineGDL(4, 0.2, rng=0).fit(mapped, batch_size=5, n_epochs=2)
    assert fitted.n_batches == 10 and fitted.atoms.shape == (4, 6, 2)
    assert (
        streams.OnlineGDL(4, 0.2, rng=0)
        .fit([SMALL[:2], SMALL[2:]], n_epochs=2)
        .n_batches
        == 3
    )  # two samples wait for the rest
    with pytest.raises(ValueError, match="n_epochs must be 1, got 2"):
        streams.OnlineGDL(4, 0.2).fit(iter([SMALL]), n_epochs=2)
    with pytest.raises(
        ValueError, match=r"d and p of the atoms, \(6, 2\), got \(70, 2\)"
    ):
        fitted.partial_fit(SOME)
    with pytest.raises(ValueError, match=r"\(70, 2\) \(in batch 1 of epoch 0\)"):
        streams.OnlineGDL(4, 0.2).fit([SMALL, SOME])


class Stored:
    """An array of which slices are read, and which of them were."""

    chunks = None

    def __init__(self, X):
        self.X = X
        self.shape = X.shape
        self.dtype = X.dtype
        self.reads = []

    def __getitem__(self, rows):
        self.reads.append((rows.start, rows.stop))
        return self.X[rows]


def test_a_stored_array_is_read_in_pieces_each_sample_once_an_epoch():
    n = 1003
    names = np.arange(n) / n
    # (n, 2, 1): told apart
    X = np.stack([np.cos(names), np.sin(names)], axis=1)[:, :, None]
    stored = Stored(X)
    batches = []

    class Witness(streams.OnlineGDL):
        def partial_fit(self, batch, sample_weight=None):
            batches.append(np.arctan2(batch[:, 1, 0], batch[:, 0, 0]))
            return super().partial_fit(batch, sample_weight)

    Witness(2, 0.1, rng=0).fit(stored, batch_size=10, n_epochs=2)
    assert [len(batch) for batch in batches].count(10) == 200 and len(batches) == 202
    for epoch in (batches[:101], batches[101:]):
        assert error(np.sort(np.concatenate(epoch)), names) <= TIGHT
    assert not np.array_equal(batches[0], batches[101])
    assert len(stored.reads) == 202 and len(set(stored.reads)) == 101
    assert all(stop - start == 10 or stop == n for start, stop in stored.reads)
    places = [len(set((batch * n // 10).astype(int))) for batch in batches]
    assert np.median(places) >= 6  # a batch mixes samples of many places


def test_pieces_learn_as_well_as_single_rows_from_a_sorted_file():
    # cluster after cluster
    X = MANY[np.argsort(np.arange(len(MANY)) % 12, kind="stable")]
    rows = streams.OnlineGDL(8, 0.2, rng=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        order = rng.permutation(len(X))
        rows.fit([X[order[i : i + 16]] for i in range(0, len(X), 16)])
    options = dict(batch_size=16, n_epochs=3)
    pieces = streams.OnlineGDL(8, 0.2, rng=0).fit(Stored(X), **options)
    assert cost(X, pieces.atoms) <= 1.05 * cost(X, rows.atoms)
    # joblib makes memmaps of large arrays: with n_jobs=2 the atoms are those of 1
    whole = streams.OnlineGDL(8, 0.2, rng=0).fit(X, **options)
    assert np.array_equal(whole.atoms, pieces.atoms)


def test_an_error_names_the_block_and_the_row_of_a_stored_array():
    X = MANY.copy()
    X[123, 0, 0] = np.nan
    with pytest.raises(
        ValueError, match=r"at index 123 \(in the block of rows 112..127\)"
    ):
        streams.OnlineGDL(8, 0.2, rng=0).fit(Stored(X), batch_size=16)


# ---------------------------------------------------------------------------- files


WAYS = {
    "waiting": lambda: streams.OnlineGDL(8, 0.2, rng=3).partial_fit(SMALL[:5]),
    "new": lambda: streams.OnlineGDL(4, n_neighbors=2, init=SMALL[:4], rng=3),
    "begun": lambda: streams.OnlineGDL(
        4,
        0.2,
        lam_scale="max",
        positive=True,
        rng=np.random.Generator(np.random.MT19937(3)),
    ).partial_fit(SMALL),
    "collecting": lambda: streams.OnlineGDL(4, 0.2, rank=1, rng=3).collect(SMALL),
    "single": lambda: streams.OnlineGDL(4, 0.2, rng=3).partial_fit(
        SMALL.astype(np.float32)
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("copy", ["file", "pickle"])
def test_a_copy_goes_on_to_the_same_bits(way, copy, tmp_path):
    learner = WAYS[way]()
    if copy == "file":
        learner.save(tmp_path / "learner.npz")
        other = streams.OnlineGDL.load(tmp_path / "learner.npz")
    else:
        other = pickle.loads(pickle.dumps(learner))
    for stream in (learner, other):
        stream.partial_fit(SMALL[::-1]).partial_fit(SMALL[3:11])
    assert (
        np.array_equal(learner.atoms, other.atoms)
        and learner.atoms.dtype == other.atoms.dtype
    )
    assert learner.cost == other.cost and learner.lam == other.lam
    assert learner.rng.random() == other.rng.random()
    assert (
        learner.n_batches == other.n_batches and learner.n_replaced == other.n_replaced
    )


def nearest(K_dd, K_xd, norm2):
    codes = np.zeros_like(K_xd)
    codes[np.arange(len(codes)), K_xd.argmax(axis=1)] = 1
    return codes


def test_a_function_that_codes_is_given_again(tmp_path):
    path = tmp_path / "learner.npz"
    learner = streams.OnlineGDL(4, coding=nearest, rng=0).partial_fit(SMALL)
    learner.save(path)
    with pytest.raises(ValueError, match="coding must be the function .* got None"):
        streams.OnlineGDL.load(path)
    other = streams.OnlineGDL.load(path, coding=nearest)
    assert np.array_equal(
        other.partial_fit(SMALL).atoms, learner.partial_fit(SMALL).atoms
    )


def test_a_function_beside_lam_is_not_forgotten(tmp_path):
    path = tmp_path / "learner.npz"
    streams.OnlineGDL(4, 0.3, coding=nearest, rng=0).partial_fit(SMALL).save(path)
    with pytest.raises(ValueError, match="coding must be the function .* got None"):
        streams.OnlineGDL.load(path)
    sparse = streams.OnlineGDL(4, 0.3, init=SMALL[:4]).partial_fit(SMALL)
    sparse.save(path)
    with pytest.raises(
        ValueError, match="coding must be the function .* got <function"
    ):
        streams.OnlineGDL.load(path, coding=nearest)
    other = streams.OnlineGDL(4, 0.3, coding=nearest, init=sparse.atoms)
    with pytest.raises(ValueError, match="same atoms and options"):
        sparse.fork().merge(other.collect(SMALL).fork())


# ---------------------------- what comes in between


@pytest.mark.parametrize("rank", [None, 4])
@pytest.mark.parametrize(
    ("module", "part"), [(learn, "sweep_stream"), (learn, "idle_and_worst")]
)
def test_ctrl_c_in_an_update_loses_nothing(module, part, rank, monkeypatch):
    def learner():
        few = streams.OnlineGDL(6, 0.2, init=WIDE[:6], rank=rank, forgetting=1)
        for i in range(0, 300, 100):
            few.collect(WIDE[i : i + 100])
        return few

    whole = learner().update().partial_fit(WIDE[300:])
    broken = learner()
    of_module = getattr(module, part)

    def pressed(*arguments):
        monkeypatch.setattr(module, part, of_module)
        os.kill(os.getpid(), signal.SIGINT)
        return of_module(*arguments)

    monkeypatch.setattr(module, part, pressed)
    with pytest.raises(KeyboardInterrupt):
        broken.update()
    if broken.weight > 0:  # the update had not come to its end
        broken.update()
    broken.partial_fit(WIDE[300:])
    assert np.array_equal(broken.atoms, whole.atoms) and broken.cost == whole.cost
    assert broken.n_updates == whole.n_updates == 2


def test_a_learner_that_an_error_left_half_changed_refuses_to_go_on(
    monkeypatch, tmp_path
):
    def full(*arguments):
        raise MemoryError

    path = tmp_path / "half.npz"
    learner = streams.OnlineGDL(4, 0.3, rng=0).fit(SMALL, 8, checkpoint=path)
    whole = learner.fork()
    with monkeypatch.context() as patched:
        patched.setattr(learn, "sweep_stream", full)
        with pytest.raises(MemoryError):
            learner.partial_fit(SMALL)
    for call in (
        lambda: learner.partial_fit(SMALL),
        lambda: learner.collect(SMALL),
        learner.update,
        lambda: learner.fit(SMALL),
        learner.fork,
        lambda: learner.merge(whole),
        lambda: whole.merge(learner),
        lambda: learner.save(path),
    ):
        with pytest.raises(RuntimeError, match="was left half changed, by an error"):
            call()
    learner.fit(SMALL, 8, resume=path).partial_fit(SMALL)
    other = streams.OnlineGDL(4, 0.3).fit(SMALL, 8, resume=path).partial_fit(SMALL)
    assert np.array_equal(learner.atoms, other.atoms)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ArithmeticError])
def test_a_batch_that_is_not_coded_leaves_the_learner_as_it_was(error):
    failed = []

    def fails_once(K_dd, K_xd, norm2):
        if not failed:
            failed.append(True)
            raise error
        return nearest(K_dd, K_xd, norm2)

    learner = streams.OnlineGDL(20, coding=fails_once, rng=0).collect(SMALL[:15])
    with pytest.raises(error):
        learner.collect(SMALL[15:])
    assert learner.atoms is None and learner.weight == 0
    assert learner.collect(SMALL[15:]).weight == len(SMALL)


def test_a_wrong_first_batch_is_named_and_the_next_learned():
    learner = streams.OnlineGDL(4, 0.3, init=SMALL[:4])
    with pytest.raises(
        ValueError, match=r"X must have the d and p of the atoms, \(6, 2\)"
    ):
        learner.collect(core.random_subspaces(10, 9, 2, rng=0))
    assert learner.partial_fit(SMALL).weight == 0 and learner.n_updates == 1


def test_a_resumed_learner_takes_what_its_atoms_take_whatever_init_it_was_given(
    tmp_path,
):
    path = tmp_path / "half.npz"
    whole = streams.OnlineGDL(4, 0.3, rng=0).fit(SMALL, 8, checkpoint=path)
    other = streams.OnlineGDL(4, 0.3, init=core.random_subspaces(4, 9, 2, rng=0))
    assert np.array_equal(other.fit(SMALL, 8, resume=path).atoms, whole.atoms)
    assert other.partial_fit(SMALL).n_updates == whole.partial_fit(SMALL).n_updates


ROUGH = (SMALL * (1 + 1e-5)).astype(np.float32)


@pytest.mark.parametrize("batches", [(SMALL, ROUGH), (ROUGH, SMALL)])
@pytest.mark.parametrize(
    "n_atoms, init", [(4, SMALL[:4]), (4, "random"), (40, "random")]
)
def test_bases_of_less_precision_enter_and_are_kept(n_atoms, init, batches, tmp_path):
    """float32 bases, orthonormal to 1e-5, among those of float64: the learner's file is
    whole.
    """
    path = tmp_path / "learner.npz"
    learner = streams.OnlineGDL(n_atoms, 0.3, init=init, rng=0)
    learner.collect(batches[0]).collect(batches[1]).save(path)
    other = streams.OnlineGDL.load(path)
    assert learner.weight == 2 * len(SMALL) and np.array_equal(
        other.atoms, learner.atoms
    )
    assert np.array_equal(other.update().atoms, learner.update().atoms)
    if not isinstance(init, str):
        assert learner.atoms.dtype == np.float64
        single = streams.OnlineGDL(n_atoms, 0.3, init=init.astype(np.float32)).collect(
            ROUGH
        )
        assert single.collect(ROUGH).atoms.dtype == np.float32
        double = streams.OnlineGDL(n_atoms, 0.3, init=init.astype(np.float32)).collect(
            SMALL
        )
        assert np.array_equal(double.collect(ROUGH).atoms, double.collect(SMALL).atoms)


DAMAGES = {
    "counts": lambda a: np.array("{}"),
    "rng": lambda a: np.array('{"bit_generator": "Generator"}'),
    "options": lambda a: np.array("[1, 2]"),
    "deep options": lambda a: np.array("[" * 100_000),
    "deep counts": lambda a: np.array("[" * 100_000),
    "deep rng": lambda a: np.array("[" * 100_000),
    "rng of a list": lambda a: np.array('{"bit_generator": ["PCG64"]}'),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_file_that_does_not_fit_itself_is_refused(name, tmp_path):
    state = streams.OnlineGDL(4, 0.2, rng=0).collect(SMALL).state()
    damaged = {
        name.split()[-1] if "rng of" not in name else "rng": DAMAGES[name](state)
    }
    files.write_arrays(tmp_path / "bad.npz", "learner", state | damaged)
    with pytest.raises(ValueError, match="bad.npz is damaged"):
        streams.OnlineGDL.load(tmp_path / "bad.npz")


def test_a_file_holds_no_code(tmp_path):
    state = streams.OnlineGDL(4, 0.2, rng=0).collect(SMALL).state()
    assert {array.dtype.kind for array in state.values()} <= {"f", "U"}
    assert json.loads(str(state["options"]))["n_atoms"] == 4


# ---------------------------------------------------------------------------- kills


RUN = """
import os
import signal
import numpy as np
from grassmann_sc import learn
from grassmann_sc.large import streams
mapped = np.load("X.npy", mmap_mode="r")
learner = streams.OnlineGDL(8, 0.2, lam_scale="max", rng=0)
class Killed(streams.OnlineGDL):
    def partial_fit(self, X):
        if self.n_updates == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().partial_fit(X)
learner.__class__ = Killed
learner.fit(mapped, 16, 3, checkpoint="checkpoint.npz", checkpoint_every=4)
"""


def test_a_killed_stream_resumes_to_the_same_bits(tmp_path):
    np.save(tmp_path / "X.npy", MANY)
    killed = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    )
    assert killed.returncode == -signal.SIGKILL  # in the second epoch of 25 batches
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    resumed = streams.OnlineGDL(8, 0.2, lam_scale="max", rng=7)
    resumed.fit(mapped, 16, 3, resume=tmp_path / "checkpoint.npz")
    whole = streams.OnlineGDL(8, 0.2, lam_scale="max", rng=0).fit(mapped, 16, 3)
    assert resumed.n_batches == 75
    assert np.array_equal(resumed.atoms, whole.atoms)


def test_a_checkpoint_of_other_samples_or_options_is_refused(tmp_path):
    path = tmp_path / "checkpoint.npz"
    streams.OnlineGDL(8, 0.2, rng=0).fit(MANY, 64, checkpoint=path)
    # one epoch more
    again = streams.OnlineGDL(8, 0.2).fit(MANY, 64, n_epochs=2, resume=path)
    assert np.array_equal(
        again.atoms, streams.OnlineGDL(8, 0.2, rng=0).fit(MANY, 64, 2).atoms
    )
    for learner, X, size, what in [
        (streams.OnlineGDL(8, 0.3), MANY, 64, "options"),
        (streams.OnlineGDL(8, 0.2001), MANY, 64, "options"),
        (streams.OnlineGDL(8, 0.2), MANY[1:], 64, "options"),
        (streams.OnlineGDL(8, 0.2), MANY, 32, "options"),
        (streams.OnlineGDL(8, 0.2), MANY[::-1], 64, "samples"),
    ]:
        match = (
            f"resume must be a checkpoint of the same samples.*differs in the {what}$"
        )
        with pytest.raises(ValueError, match=match):
            learner.fit(X, size, resume=path)


class Interrupted(streams.OnlineGDL):
    """A learner whose fit ends in its second epoch of 25 batches, or in the first."""

    def __init__(self, at, **options):
        super().__init__(8, 0.2, **options)
        self.at = at

    def partial_fit(self, X, sample_weight=None):
        if self.n_updates == self.at:
            raise KeyboardInterrupt
        return super().partial_fit(X, sample_weight)


HOLDERS = {
    "array": lambda X: X,
    "stored": lambda X: Stored(X),
    "list": lambda X: [X[i : i + 16] for i in range(0, len(X), 16)],
}


@pytest.mark.parametrize(
    "holder, at", [("array", 9), *((holder, 33) for holder in HOLDERS)]
)
def test_a_resume_looks_at_every_row_that_was_learned_from(holder, at, tmp_path):
    """A row that was not is learned from as in one run."""
    held = HOLDERS[holder]
    path = tmp_path / "checkpoint.npz"
    options = dict(batch_size=16, n_epochs=2)
    with pytest.raises(KeyboardInterrupt):
        Interrupted(at, rng=0).fit(
            held(MANY), checkpoint=path, checkpoint_every=1, **options
        )
    whole = streams.OnlineGDL(8, 0.2, rng=0).fit(held(MANY), **options)
    resumed = streams.OnlineGDL(8, 0.2).fit(held(MANY), resume=path, **options)
    assert np.array_equal(resumed.atoms, whole.atoms)
    refused = 0
    for i in range(0, len(MANY), 16):
        X = MANY.copy()
        X[i + 7] = X[i]
        try:
            resumed = streams.OnlineGDL(8, 0.2).fit(held(X), resume=path, **options)
        except ValueError as error:
            refused += 1
            assert "differs in the samples" in str(error)
        else:
            whole = streams.OnlineGDL(8, 0.2, rng=0).fit(held(X), **options)
            assert np.array_equal(resumed.atoms, whole.atoms)
    assert refused == 25 if at == 33 else 0 < refused < 25


def test_a_stream_that_can_be_read_once_is_compared_and_gone_on_with(tmp_path):
    path = tmp_path / "checkpoint.npz"
    batches = HOLDERS["list"](MANY)
    streams.OnlineGDL(8, 0.2, rng=0).fit(iter(batches[:10]), checkpoint=path)
    again = streams.OnlineGDL(8, 0.2).fit(iter(batches[:10]), resume=path)
    assert again.n_batches == 10
    for other in (batches[1:11], batches[:9]):
        with pytest.raises(ValueError, match="differs in the samples"):
            streams.OnlineGDL(8, 0.2).fit(iter(other), resume=path)


def test_a_learner_says_what_it_is():
    learner = streams.OnlineGDL(3, 0.2).partial_fit(SMALL[:8])
    assert repr(learner) == "OnlineGDL(3, lam=0.2), 1 batch learned from"
    learner = streams.OnlineGDL(3, n_neighbors=2)
    assert repr(learner) == "OnlineGDL(3, n_neighbors=2), 0 batches learned from"


def test_the_first_checkpoint_of_a_long_fit_comes_soon_and_only_once(
    tmp_path, monkeypatch
):
    """Whatever checkpoint_every is; a short fit writes those that were asked for."""
    written = []
    learner = streams.OnlineGDL(3, 0.2, rng=0)
    again = streams.OnlineGDL(3, 0.2, rng=0)
    write = files.Checkpoint.write

    def noted(record, state):
        written.append(learner.n_batches + again.n_batches)
        write(record, state)

    monkeypatch.setattr(files.Checkpoint, "write", noted)
    path = tmp_path / "checkpoint.npz"
    learner.fit(MANY, 16, checkpoint=path, checkpoint_every=1000)
    assert written == [25]
    clock = iter(range(0, 10_000, 2))
    seconds = types.SimpleNamespace(monotonic=clock.__next__)
    monkeypatch.setattr(streams, "time", seconds)
    written.clear()
    again.fit(MANY, 16, checkpoint=path, checkpoint_every=1000)
    assert written == [25 + 3, 25 + 25]  # two seconds a batch
    assert np.array_equal(again.atoms, learner.atoms)


def test_ctrl_c_says_what_there_is_to_resume_from():
    learner = Interrupted(3, rng=0)
    with pytest.raises(
        KeyboardInterrupt, match="learned from 3 of 25 batches; none is kept"
    ):
        learner.fit(MANY, 16)
    assert learner.n_updates == 3


STOPPED = """
import os, signal, sys
import numpy as np
from grassmann_sc.large import streams

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it

def batches():
    for i, batch in enumerate(np.load(sys.argv[1]).reshape(25, 16, 8, 2)):
        if i == int(sys.argv[4]):
            os.kill(os.getpid(), signal.SIGINT)
        yield batch

learner = streams.OnlineGDL(8, 0.2, rng=0)
learner.fit(batches(), checkpoint=sys.argv[2], checkpoint_every=5, resume=sys.argv[3] or None)
print("goes on")
"""


def test_ctrl_c_ends_a_script_which_a_resume_goes_on_with_to_the_same_bits(tmp_path):
    np.save(tmp_path / "X.npy", MANY)
    path = tmp_path / "half.npz"
    for resume, at in [("", 12), (path, 13)]:
        last = interrupted(STOPPED, tmp_path / "X.npy", path, resume, at)
        assert last == (
            f"KeyboardInterrupt: learned from {at} batches; {path} holds the first 10: "
            f"resume='{path}' resumes from there"
        )
    batches = MANY.reshape(25, 16, 8, 2)
    resumed = streams.OnlineGDL(8, 0.2).fit(iter(batches), resume=path)
    whole = streams.OnlineGDL(8, 0.2, rng=0).fit(iter(batches))
    assert np.array_equal(resumed.atoms, whole.atoms)


def test_a_resume_takes_the_first_atoms_of_its_file(tmp_path):
    """Also while samples wait for them: another init, or rng, is passed over."""

    def batches(stop):
        for k in range(0, 100, 10):
            if k == stop:
                raise RuntimeError
            yield X[k : k + 10]

    X = core.random_subspaces(100, 8, 2, rng=0)
    path = tmp_path / "half.npz"
    options = dict(checkpoint=path, checkpoint_every=1)
    with pytest.raises(RuntimeError):
        streams.OnlineGDL(40, lam=0.2, rng=0).fit(batches(20), **options)
    whole = streams.OnlineGDL(40, lam=0.2, rng=0).fit(batches(None))
    for init in ("kmeans++", "random", X[:40]):
        learner = streams.OnlineGDL(40, lam=0.2, init=init, rng=5)
        again = learner.fit(batches(None), resume=path)
        assert np.array_equal(again.atoms, whole.atoms)
