"""Arrays as they come and legal extremes: what the input may look like without changing
the result.
"""

import numpy as np
import pytest

import grassmann_sc as gs
from oracles import LOOSE, TIGHT, error, rounding

# ------------------------------------------------------------------ arrays as they come


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


LAYOUTS = {
    "read-only": read_only,
    "Fortran": np.asfortranarray,
    "strided": lambda A: np.repeat(A, 2, axis=0)[::2],
    "reversed": lambda A: np.ascontiguousarray(A[..., ::-1])[..., ::-1],
    "big-endian": lambda A: A.astype(A.dtype.newbyteorder(">")),
    "list": lambda A: A.tolist(),
    "longdouble": lambda A: A.astype(np.longdouble),
}


def results(X, D, K_dd, K_xd, codes, weights):
    """Every public function on the same input."""
    labels = [0, 1, 0, 1, 2]
    return [
        gs.orthonormalize(X),
        gs.projection_kernel(X, D),
        gs.projection_kernel(D),
        gs.principal_angles(X, X),
        gs.chordal_distance(X, D),
        gs.geodesic_distance(X),
        gs.proj(K_dd, 2),
        gs.chordal_mean(D, weights),
        gs.lam_max(K_xd),
        gs.gsc(X, D, 0.1, init=codes),
        gs.glc(X, D, 3),
        gs.sparse_codes(K_dd, K_xd, 0.1, norm2=2, init=codes),
        gs.sparse_codes(K_dd, K_xd, 0, norm2=2),
        gs.locality_codes(K_dd, K_xd, 3, norm2=2),
        gs.reconstruct(codes, D),
        gs.class_residuals(codes, K_dd, K_xd, labels, norm2=2)[0],
        gs.classify(X, D, labels, lam=0.1),
        gs.classify(X, D, labels, n_neighbors=3),
    ]


def problem_arrays(dtype):
    """X, D, K_dd, K_xd, codes and weights, as `results` takes them."""
    X, D = (gs.random_subspaces(n, 5, 2, rng=n).astype(dtype) for n in (4, 5))
    return [
        X,
        D,
        gs.projection_kernel(D),
        gs.projection_kernel(X, D),
        np.ones((4, 5), dtype),
        np.arange(1, 6, dtype=dtype),
    ]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_layout_of_the_input_changes_nothing_and_input_is_not_changed(layout, dtype):
    plain = problem_arrays(dtype)
    if layout in ("list", "longdouble"):  # these become float64
        plain = [A.astype(np.float64) for A in plain]
    before = [A.copy() for A in plain]
    laid_out = [LAYOUTS[layout](A) for A in plain]
    for ours, theirs in zip(results(*plain), results(*laid_out), strict=True):
        tol = rounding(ours.dtype if ours.dtype.kind == "f" else float)
        assert ours.dtype == theirs.dtype and error(ours.astype(float), theirs) < tol
    assert all(np.array_equal(a, b) for a, b in zip(before, plain))
    assert all(np.array_equal(a, b) for a, b in zip(before, laid_out))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.int32, np.float16])
def test_other_real_types_become_float64(dtype):
    def call(X, K, codes, weights):
        return [
            gs.orthonormalize(X),
            gs.projection_kernel(X),
            gs.principal_angles(X, X),
            gs.chordal_distance(X),
            gs.geodesic_distance(X),
            gs.chordal_mean(X[:1], weights[:1]),
            gs.lam_max(K),
            gs.gsc(X, X, 1),
            gs.glc(X, X, 1),
            gs.reconstruct(codes, X),
        ]

    X = np.stack([np.eye(4)[:, :2], np.eye(4)[:, 1:3]])
    plain = [X, np.eye(2), np.eye(2), np.ones(2)]
    ours = call(*plain)
    theirs = call(*[A.astype(dtype) for A in plain])
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a, b) and a.dtype == np.float64


def test_nothing_compiles_twice_for_another_layout():
    """One compiled form a function and type, whatever the layout of the arrays, a path
    of lam or a single one.
    """
    D = gs.random_subspaces(30, 6, 2, 0)
    X = gs.random_subspaces(70, 6, 2, 1)
    plain, *others = LAYOUTS.values()

    def call_all(change):
        K_dd = change(gs.projection_kernel(change(D)))
        K_xd = change(gs.projection_kernel(change(X), change(D)))
        for lam in (0.1, [0.3, 0.1]):
            gs.sparse_codes(K_dd, K_xd, lam, norm2=2, sparse_output=True)
        gs.locality_codes(K_dd, K_xd, 3, norm2=2)
        return {
            name: list(f.signatures)
            for name, f in vars(gs).items()
            if hasattr(f, "signatures") and f.stats.cache_path
        }

    compiled = call_all(plain)
    assert sum(map(len, compiled.values())) >= 8
    for change in others:
        assert call_all(change) == compiled


# ----------------------------------------------------------------------- legal extremes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_queries_give_empty_codes(dtype):
    X = np.empty((0, 4, 2), dtype)
    D = gs.random_subspaces(3, 4, 2, rng=0).astype(dtype)
    K_xd = gs.projection_kernel(X, D)
    codes, gap, n_iter = gs.gsc(X, D, 0.1, return_info=True)
    local = gs.glc(X, D, 2)
    assert codes.shape == local.shape == K_xd.shape == (0, 3)
    assert gap.shape == n_iter.shape == (0,)
    assert codes.dtype == local.dtype == K_xd.dtype == dtype
    assert gs.gsc(X, D, [0.1, 0.2]).shape == (2, 0, 3)
    assert gs.gsc(X, D, 0.1, sparse_output=True).shape == (0, 3)
    assert [A.shape for A in gs.gsc(X, D, [0.1], sparse_output=True)] == [(0, 3)]
    assert gs.glc(X, D, 2, sparse_output=True).shape == (0, 3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_queries_give_empty_labels_and_points(dtype):
    X = np.empty((0, 4, 2), dtype)
    D = gs.random_subspaces(3, 4, 2, rng=0).astype(dtype)
    K_dd = gs.projection_kernel(D)
    K_xd = gs.projection_kernel(X, D)
    codes = np.empty((0, 3), dtype)
    labels = ["a", "a", "b"]
    residuals, classes = gs.class_residuals(codes, K_dd, K_xd, labels, norm2=2)
    assert residuals.shape == (0, 2) and classes.tolist() == ["a", "b"]
    for options in (dict(lam=0.1), dict(n_neighbors=2)):
        assert gs.classify(X, D, labels, **options).shape == (0,)
        result = gs.classify(X, D, labels, **options, return_info=True)
        assert [A.shape for A in result] == [(0,), (0, 2), (2,), (0, 3)]
    assert gs.reconstruct(codes, D).shape == (0, 4, 2) and gs.lam_max(K_xd).shape == (
        0,
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_no_subspaces_have_empty_geometry(dtype):
    X = np.empty((0, 4, 2), dtype)
    D = gs.random_subspaces(3, 4, 2, rng=0).astype(dtype)
    for pairwise in (gs.chordal_distance, gs.geodesic_distance, gs.projection_kernel):
        assert pairwise(X).shape == (0, 0) and pairwise(D, X).shape == (3, 0)
    assert gs.principal_angles(X, X).shape == (0, 2)
    assert gs.proj(np.empty((0, 4, 4), dtype), 2).shape == (0, 4, 2)
    assert gs.orthonormalize(X).shape == X.shape
    assert gs.random_subspaces(0, 4, 2).shape == (0, 4, 2)


@pytest.mark.parametrize("d", [1, 3])
def test_the_whole_space_is_one_point(d):
    """p = d: every basis spans R^d."""
    X = gs.random_subspaces(2, d, d, rng=0)
    D = gs.random_subspaces(3, d, d, rng=1)
    assert error(gs.projection_kernel(X, D), d) < TIGHT
    assert error(gs.principal_angles(X[0], D[0]), 0) < 1e-14
    assert error(gs.chordal_distance(X, D), 0) < 1e-14
    assert error(gs.geodesic_distance(X, D), 0) < 1e-14
    assert error(gs.gsc(X, D, d / 2).sum(axis=1), 0.75) < TIGHT
    assert error(gs.glc(X, D, 2).sum(axis=1), 1) < TIGHT
    assert gs.chordal_mean(X).shape == gs.proj(np.eye(d), d).shape == (d, d)
    assert gs.reconstruct(np.zeros((1, 3)), D).shape == (1, d, d)


def test_one_neighbour_gets_all():
    K_xd = np.array([[1.5], [0.0], [-1.0], [0.04]])
    assert np.array_equal(gs.locality_codes([[2.0]], K_xd, 1, norm2=2), np.ones((4, 1)))


# --------------------------------------------------------------------- tiles and blocks


def dense(codes):
    """Codes, or each array of a path of sparse codes, as arrays."""
    return (
        np.stack([gs.dense_codes(A) for A in codes])
        if isinstance(codes, list)
        else gs.dense_codes(codes)
    )


@pytest.mark.parametrize("lam", [0.1, [0.3, 0, 0.1]], ids=str)
@pytest.mark.parametrize("sparse_output", [False, True])
def test_tiles_of_queries_join_to_the_whole(lam, sparse_output, monkeypatch):
    """From Gram matrices every figure is the same, to the last bit."""
    X = gs.random_subspaces(150, 6, 2, rng=0)
    D = gs.random_subspaces(5, 6, 2, rng=1)
    K_dd = gs.projection_kernel(D)
    K_xd = gs.projection_kernel(X, D)

    def call():
        return gs.sparse_codes(
            K_dd, K_xd, lam, norm2=2, sparse_output=sparse_output, return_info=True
        )

    whole = call()
    monkeypatch.setattr(gs, "TILE", 64 * 5)
    assert len(gs.query_tiles(150, 5)) == 3
    joined = call()
    assert isinstance(joined, gs.SparseCodes) and type(joined.codes) is type(
        whole.codes
    )
    assert np.array_equal(whole.gap, joined.gap)
    assert np.array_equal(whole.n_iter, joined.n_iter)
    assert np.array_equal(dense(whole.codes), dense(joined.codes))


@pytest.mark.parametrize(
    "options",
    [dict(), dict(sparse_output=True), dict(return_info=True), dict(positive=True)],
    ids=str,
)
@pytest.mark.parametrize("lam", [0.1, [0.3, 0.05]], ids=str)
def test_codes_do_not_depend_on_tiles_of_queries(options, lam, monkeypatch):
    X = gs.random_subspaces(150, 7, 2, 0)
    D = gs.random_subspaces(20, 7, 2, 1)

    def call(**more):
        result = gs.gsc(X, D, lam, **options, **more)
        return dense(result.codes if isinstance(result, gs.SparseCodes) else result)

    whole = call()
    init = gs.gsc(X, D, 0.2)
    local = gs.glc(X, D, 4)
    labels = gs.classify(X, D, np.arange(20) % 3, lam=0.1, return_info=True)
    monkeypatch.setattr(gs, "TILE", 64 * 20)
    assert len(gs.query_tiles(150, 20)) == 3
    for tiled in (call(), call(init=init)):
        assert tiled.shape == whole.shape and np.abs(tiled - whole).max() < LOOSE
    assert np.abs(gs.glc(X, D, 4) - local).max() < LOOSE
    tiled = gs.classify(X, D, np.arange(20) % 3, lam=0.1, return_info=True)
    assert np.abs(tiled.residuals - labels.residuals).max() < LOOSE
    assert np.abs(tiled.codes - labels.codes).max() < LOOSE


def test_queries_beyond_one_block_are_coded_alike(monkeypatch):
    """Several tiles of queries, each of several blocks, all of soft thresholding."""
    X = gs.random_subspaces(3000, 3, 1, rng=0)
    D = gs.random_subspaces(1, 3, 1, rng=1)
    monkeypatch.setattr(gs, "TILE", 1300)
    monkeypatch.setattr(gs, "block_of", lambda work, most=None: 500)
    run_blocks = gs.run_blocks
    runs = []

    def counted(job, n, block):
        runs.append((n, -(-n // block)))
        return run_blocks(job, n, block)

    monkeypatch.setattr(gs, "run_blocks", counted)
    codes = gs.gsc(X, D, 0.1)
    tiles = [(n, blocks) for n, blocks in runs if n in (1300, 400)]
    assert [n for n, _ in tiles] == [1300, 1300, 400]
    assert [blocks for _, blocks in tiles[:2]] == [3, 3]
    K_xd = np.einsum("nd,md->nm", X[:, :, 0], D[:, :, 0]) ** 2
    assert error(codes, np.maximum(K_xd - 0.05, 0)) < TIGHT
