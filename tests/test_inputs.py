"""Arrays as they come, threads and tiles, legal extremes: what the input may look like without changing the result."""

import contextlib
import os
import time

import numba
import numpy as np
import pytest
import scipy.sparse

import grassmann_sc as gs
from strategies import LOOSE, TIGHT, error, gram, problem_of, rounding


# ---------------------------------------------------------------------------- arrays as they come


LAYOUTS = {
    "read-only": lambda A: read_only(A.copy()),
    "Fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "reversed": lambda A: np.ascontiguousarray(A[..., ::-1])[..., ::-1],
    "big-endian": lambda A: A.astype(A.dtype.newbyteorder(">")),
    "list": lambda A: A.tolist(),
    "longdouble": lambda A: A.astype(np.longdouble),
}


def read_only(A):
    A.flags.writeable = False
    return A


def results(X, D, K_dd, K_xd, codes, weights):
    """Every public function on the same input."""
    labels = [0, 1, 0, 1, 2]
    return [gs.orthonormalize(X), gs.projection_kernel(X, D), gs.projection_kernel(D), gs.principal_angles(X, X), gs.chordal_distance(X, D),
            gs.geodesic_distance(X), gs.proj(K_dd, 2), gs.chordal_mean(D, weights), gs.lam_max(K_xd), gs.gsc(X, D, 0.1, init=codes),
            gs.glc(X, D, 3), gs.sparse_codes(K_dd, K_xd, 0.1, norm2=2, init=codes), gs.sparse_codes(K_dd, K_xd, 0, norm2=2),
            gs.locality_codes(K_dd, K_xd, 3, norm2=2), gs.reconstruct(codes, D),
            gs.class_residuals(codes, K_dd, K_xd, labels, norm2=2)[0], gs.classify(codes, K_dd, K_xd, labels, norm2=2)]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layout_of_the_input_changes_nothing_and_input_is_not_changed(layout, dtype):
    X, D = (gs.random_subspaces(n, 5, 2, rng=n).astype(dtype) for n in (4, 5))
    plain = [X, D, gs.projection_kernel(D), gs.projection_kernel(X, D), np.ones((4, 5), dtype), np.arange(1, 6, dtype=dtype)]
    if layout in ("list", "longdouble"):  # these become float64
        plain = [A.astype(np.float64) for A in plain]
    before, given_ = [A.copy() for A in plain], [LAYOUTS[layout](A) for A in plain]
    for ours, theirs in zip(results(*plain), results(*given_), strict=True):
        assert ours.dtype == theirs.dtype and error(ours.astype(float), theirs) < rounding(ours.dtype if ours.dtype.kind == "f" else float)
    assert all(np.array_equal(a, b) for a, b in zip(before, plain)) and all(np.array_equal(a, b) for a, b in zip(before, given_))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int32, np.float16])
def test_other_real_types_become_float64(dtype):
    X = np.stack([np.eye(4)[:, :2], np.eye(4)[:, 1:3]])
    K, codes, weights = np.eye(2), np.eye(2), np.ones(2)
    call = lambda X, K, codes, weights: [
        gs.orthonormalize(X), gs.projection_kernel(X), gs.principal_angles(X, X), gs.chordal_distance(X), gs.geodesic_distance(X),
        gs.chordal_mean(X[:1], weights[:1]), gs.lam_max(K), gs.gsc(X, X, 1), gs.glc(X, X, 1), gs.reconstruct(codes, X)]
    assert all(np.array_equal(a, b) and a.dtype == np.float64 for a, b in zip(call(X, K, codes, weights), call(
        X.astype(dtype), K.astype(dtype), codes.astype(dtype), weights.astype(dtype)), strict=True))


# ---------------------------------------------------------------------------- threads and tiles


def test_codes_do_not_depend_on_threads(monkeypatch):
    X, D = gs.random_subspaces(200, 4, 2, rng=0), gs.random_subspaces(7, 4, 2, rng=1)
    found = []
    for threads in (1, 2, 5):
        monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", threads)
        found.append([gs.gsc(X, D, 0.1), gs.gsc(X, D, 0), gs.gsc(X, D, 0.1, sparse_output=True).toarray(), gs.glc(X, D, 3)])
    assert all(np.array_equal(a, b) for other in found[1:] for a, b in zip(found[0], other))


@pytest.mark.parametrize("lam", [0.1, [0.3, 0, 0.1]], ids=str)
@pytest.mark.parametrize("sparse_output", [False, True])
def test_tiles_of_queries_join_to_the_whole(lam, sparse_output):
    problem = problem_of(gs.random_subspaces(9, 6, 2, rng=0), gs.random_subspaces(5, 6, 2, rng=1), lam)
    call = lambda rows, **options: gs.sparse_codes(problem.K_dd, problem.K_xd[rows], lam, norm2=2, sparse_output=sparse_output, **options)
    parts = [slice(0, 4), slice(4, 9)]
    join = lambda results: gs._extended(gs._extended(None, results[0], 0, 9), results[1], 4, 9)
    whole, joined = call(slice(9), return_info=True), join([call(part, return_info=True) for part in parts])
    assert isinstance(joined, gs.SparseCodes) and np.array_equal(whole.gap, joined.gap) and np.array_equal(whole.n_iter, joined.n_iter)
    for one in (joined.codes, join([call(part) for part in parts])):
        assert type(one) is type(whole.codes)
        listed = lambda codes: [A.toarray() for A in (codes if isinstance(codes, list) else [codes])] if sparse_output else codes
        assert np.array_equal(listed(one), listed(whole.codes))


def test_queries_beyond_one_block_are_coded_alike():
    """More queries than the 64 that a thread takes at once."""
    X, D = gs.random_subspaces(70, 3, 1, rng=0), gs.random_subspaces(1, 3, 1, rng=1)
    K_xd = gram(X, D)
    assert error(gs.gsc(X, D, 0.1), np.maximum(K_xd - 0.05, 0)) < TIGHT


def test_an_interrupt_stops_what_has_not_started(monkeypatch):
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    begun = []

    def job(block):
        begun.append(block)
        time.sleep(0.005)
        if block.start == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gs._in_threads(job, 1000, 1)
    assert len(begun) < 100


def test_a_process_that_may_write_nowhere_compiles_in_memory(monkeypatch):
    def njit(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return lambda function: (function, options)

    monkeypatch.setattr(numba, "njit", njit)
    function, options = gs._jit(len)
    assert function is len and options["nogil"] and options["fastmath"] == {"reassoc", "contract"}


# ---------------------------------------------------------------------------- legal extremes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_queries_give_empty_results(dtype):
    X, D = np.empty((0, 4, 2), dtype), gs.random_subspaces(3, 4, 2, rng=0).astype(dtype)
    K_dd, K_xd = gs.projection_kernel(D), gs.projection_kernel(X, D)
    codes, gap, n_iter = gs.gsc(X, D, 0.1, return_info=True)
    assert codes.shape == gs.glc(X, D, 2).shape == K_xd.shape == (0, 3) and gap.shape == n_iter.shape == (0,)
    assert codes.dtype == gs.glc(X, D, 2).dtype == K_xd.dtype == dtype
    assert gs.gsc(X, D, [0.1, 0.2]).shape == (2, 0, 3) and gs.gsc(X, D, 0.1, sparse_output=True).shape == (0, 3)
    assert gs.glc(X, D, 2, sparse_output=True).shape == (0, 3) and [A.shape for A in gs.gsc(X, D, [0.1], sparse_output=True)] == [(0, 3)]
    residuals, classes = gs.class_residuals(codes, K_dd, K_xd, ["a", "a", "b"], norm2=2)
    assert residuals.shape == (0, 2) and classes.tolist() == ["a", "b"]
    assert gs.classify(codes, K_dd, K_xd, ["a", "a", "b"], norm2=2).shape == (0,)
    assert gs.reconstruct(codes, D).shape == (0, 4, 2) and gs.lam_max(K_xd).shape == (0,)
    assert gs.chordal_distance(X).shape == gs.geodesic_distance(X).shape == gs.projection_kernel(X).shape == (0, 0)
    assert gs.chordal_distance(D, X).shape == gs.geodesic_distance(D, X).shape == (3, 0)
    assert gs.principal_angles(X, X).shape == (0, 2) and gs.proj(np.empty((0, 4, 4), dtype), 2).shape == (0, 4, 2)
    assert gs.orthonormalize(X).shape == X.shape and gs.random_subspaces(0, 4, 2).shape == (0, 4, 2)


@pytest.mark.parametrize("d", [1, 3])
def test_the_whole_space_is_one_point(d):
    """p = d: every basis spans R^d."""
    X, D = gs.random_subspaces(2, d, d, rng=0), gs.random_subspaces(3, d, d, rng=1)
    assert error(gs.projection_kernel(X, D), d) < TIGHT and error(gs.principal_angles(X[0], D[0]), 0) < 1e-14
    assert error(gs.chordal_distance(X, D), 0) < 1e-14 and error(gs.geodesic_distance(X, D), 0) < 1e-14
    assert error(gs.gsc(X, D, d / 2).sum(axis=1), 0.75) < TIGHT and error(gs.glc(X, D, 2).sum(axis=1), 1) < TIGHT
    assert gs.chordal_mean(X).shape == gs.proj(np.eye(d), d).shape == (d, d) and gs.reconstruct(np.zeros((1, 3)), D).shape == (1, d, d)


@pytest.mark.parametrize("positive", [False, True])
def test_one_atom_is_soft_thresholding(positive):
    K_xd = np.array([[1.5], [0.0], [-1.0], [0.04]])
    for lam in (0, 0.1, 3):
        shrunk = np.sign(K_xd) * np.maximum(np.abs(K_xd) - lam / 2, 0) / 2
        codes = gs.sparse_codes([[2.0]], K_xd, lam, norm2=2, positive=positive)
        assert error(codes, np.maximum(shrunk, 0) if positive else shrunk) < TIGHT
    assert np.array_equal(gs.locality_codes([[2.0]], K_xd, 1, norm2=2), np.ones((4, 1)))


@pytest.mark.parametrize("options", [dict(), dict(sparse_output=True), dict(return_info=True), dict(positive=True)])
def test_codes_do_not_depend_on_tiles_of_queries(options, monkeypatch):
    X, D = gs.random_subspaces(150, 7, 2, 0), gs.random_subspaces(20, 7, 2, 1)
    dense = lambda result: gs._dense(result.codes if isinstance(result, gs.SparseCodes) else result)
    for lam in (0.1, [0.3, 0.05]):
        whole, init = gs.gsc(X, D, lam, **options), gs.gsc(X, D, 0.2)
        monkeypatch.setattr(gs, "TILE", 64 * 20)
        pieces = gs.gsc(X, D, lam, **options), gs.gsc(X, D, lam, init=init, **options)
        monkeypatch.undo()
        for piece in pieces:
            for a, b in zip(*(x if isinstance(x, list) else [x] for x in (whole, piece))):
                assert dense(a).shape == dense(b).shape and np.abs(dense(a) - dense(b)).max() < LOOSE
    local = gs.glc(X, D, 4)
    monkeypatch.setattr(gs, "TILE", 64 * 20)
    assert np.abs(gs.glc(X, D, 4) - local).max() < LOOSE


@pytest.mark.parametrize("fails", [False, True])
def test_threads_leave_the_cores_of_the_caller_as_they_were(fails):
    cores = getattr(os, "sched_getaffinity", lambda pid: None)  # only Linux has it
    before = cores(0)

    def job(block):
        if fails and block.start == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) if fails else contextlib.nullcontext():
        gs._in_threads(job, 10, 1)
    assert cores(0) == before


def test_nothing_compiles_twice_for_another_layout():
    """One compiled form a kernel and type, whatever the layout of the arrays, a path of lam or a single one."""
    D, X = gs.random_subspaces(30, 6, 2, 0), gs.random_subspaces(70, 6, 2, 1)
    for change in LAYOUTS.values():
        K_dd, K_xd = change(gs.projection_kernel(change(D))), change(gs.projection_kernel(change(X), change(D)))
        for lam in (0.1, [0.3, 0.1]):
            gs.sparse_codes(K_dd, K_xd, lam, norm2=2, sparse_output=True)
        gs.locality_codes(K_dd, K_xd, 3, norm2=2)
    for kernel in (gs._lasso_path, gs._nonzeros, gs._locality, gs._sum_squares, gs._orthonormality, gs._stripe, gs._largest):
        types = [signature[0].dtype for signature in getattr(kernel, "signatures", [])]
        assert len(types) == len(set(types)), (kernel, kernel.signatures)
