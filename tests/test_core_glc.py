"""Locality-constrained codes: laws and NumPy twins."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as gs
from grassmann_sc.strategies import coding_problems, rotation
from oracles import LOOSE, TIGHT, error, regular_problems, seeds

laws = settings(deadline=None, max_examples=40)


def local(problem, m, **options):
    return gs.locality_codes(
        problem.K_dd, problem.K_xd, m, norm2=problem.norm2, **options
    )


@laws
@given(coding_problems(share=0.0), st.data())
def test_glc_codes_sum_to_one_on_the_nearest_atoms(problem, data):
    m = data.draw(st.integers(1, len(problem.D)))
    codes = local(problem, m)
    assert error(codes.sum(axis=1), 1) < LOOSE
    distance = problem.norm2 + problem.K_dd.diagonal() - 2 * problem.K_xd
    assert not codes[distance > np.sort(distance)[:, m - 1 : m] + TIGHT].any()
    assert (np.count_nonzero(codes, axis=1) <= m).all()
    assert np.array_equal(local(problem, m, sparse_output=True).toarray(), codes)


@laws
@given(regular_problems(share=st.just(0.0)), st.data())
def test_locality_twin(problem, data):
    """(B + reg trace(B) I) y = 1 by np.linalg.solve."""
    m = data.draw(st.integers(1, len(problem.D)))
    reg = data.draw(st.sampled_from([1e-3, 1e-1]))
    for k, y in zip(problem.K_xd, local(problem, m, reg=reg)):
        near = np.argsort(-2 * k, kind="stable")[:m]
        B = (
            problem.norm2
            - k[near]
            - k[near][:, None]
            + problem.K_dd[np.ix_(near, near)]
        )
        expected = np.linalg.solve(B + reg * np.trace(B) * np.eye(m), np.ones(m))
        np.testing.assert_allclose(
            y[near], expected / expected.sum(), rtol=TIGHT, atol=TIGHT
        )


@laws
@given(regular_problems(share=st.just(0.0)), st.data())
def test_glc_codes_solve_the_constrained_problem(problem, data):
    """No better affine combination of the neighbours, by the equations with a Lagrange
    multiplier.
    """
    m = data.draw(st.integers(1, len(problem.D)))
    for k, y in zip(problem.K_xd, local(problem, m)):
        near = np.flatnonzero(y)
        K = problem.K_dd[np.ix_(near, near)]
        ones = np.ones((len(near), 1))
        bordered = np.block([[K, ones], [ones.T, 0]])
        best = np.linalg.solve(bordered, np.append(k[near], 1))[:-1]
        ours, theirs = (z @ K @ z - 2 * z @ k[near] for z in (y[near], best))
        assert ours <= theirs + LOOSE


@laws
@given(st.integers(1, 12), seeds, st.sampled_from([1, 2, 5]))
def test_nearest_twin(m, seed, values):
    """The neighbours of a stable sort, among many ties; all of them are stored in
    sparse codes.
    """
    rng = np.random.default_rng(seed)
    K = np.diag(1.0 + rng.integers(0, values, 12))
    k = rng.integers(0, values, (3, 12)).astype(float)
    codes = gs.locality_codes(K, k, m, norm2=25, sparse_output=True)
    distance = 25 + K.diagonal() - 2 * k
    expected = np.sort(np.argsort(distance, axis=1, kind="stable")[:, :m], axis=1)
    assert np.array_equal(codes.indices.reshape(3, m), expected)


@laws
@given(coding_problems(share=0.0), st.data())
def test_glc_code_of_an_atom_is_on_it_and_what_is_too_near_to_tell(problem, data):
    D = problem.D
    codes = gs.glc(D, D, data.draw(st.integers(1, len(D))))
    near = gs.chordal_distance(D) < 1e-3
    assert error((codes * near).sum(axis=1), 1) < TIGHT and not codes[~near].any()


@laws
@given(
    coding_problems(share=0.0, kinds=["random", "repeated", "orthogonal"]), st.data()
)
def test_glc_code_of_an_atom_is_one_shared_equally_by_its_copies(problem, data):
    D = problem.D
    m = data.draw(st.integers(1, len(D)))
    codes = gs.glc(D, D, m)
    copies = gs.chordal_distance(D) < LOOSE
    shared = np.minimum(copies.sum(axis=1, keepdims=True), m)
    assert error(codes, (codes > 0) / shared) < TIGHT
    assert ((codes > 0).sum(axis=1, keepdims=True) == shared).all()
    assert not codes[~copies].any()


@laws
@given(
    regular_problems(share=st.just(0.0)),
    seeds,
    st.sampled_from([1e-200, 1e-6, 1e6, 1e200]),
)
def test_glc_codes_ignore_basis_order_and_scale(problem, seed, scale):
    X, D, K_dd, K_xd, norm2, *_ = problem
    p = X.shape[2]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(D))
    m = min(3, len(D))
    codes = gs.glc(X, D, m)
    turned = gs.glc(X @ rotation(rng, p), D[order] @ rotation(rng, p), m)
    assert error(turned, codes[:, order]) < LOOSE
    scaled = gs.locality_codes(scale * K_dd, scale * K_xd, m, norm2=scale * norm2)
    assert error(scaled, codes) < LOOSE


@pytest.mark.parametrize("reg", [0, 1e-12, None])
def test_glc_gives_repeated_neighbours_equal_coefficients(reg):
    """However much rounding makes of a nearly singular B."""
    D = gs.random_subspaces(5, 6, 2, rng=0)[np.arange(15) % 5]
    codes = gs.glc(gs.random_subspaces(30, 6, 2, rng=1), D, 12, reg=reg)
    copies = codes.reshape(30, 3, 5).swapaxes(1, 2)
    assert (np.count_nonzero(copies, axis=2) == 3).any()
    for some in copies.reshape(-1, 3):
        if some.any():
            assert np.ptp(some[some != 0]) <= 1e-6 * np.abs(codes).max()


def test_dependent_neighbours_are_coded_alike_in_every_tile_of_queries(monkeypatch):
    D = gs.random_subspaces(5, 6, 2, rng=0)[np.arange(15) % 5]
    X = gs.random_subspaces(150, 6, 2, rng=1)
    whole = gs.glc(X, D, 12)
    monkeypatch.setattr(gs, "TILE", 1)
    assert len(gs.query_tiles(150, 15)) == 3
    assert error(gs.glc(X, D, 12), whole) < LOOSE


@pytest.mark.parametrize("reg", [0, 1e-300, 1e300])
def test_glc_codes_of_dependent_neighbours_are_finite_for_any_reg(reg):
    codes = gs.locality_codes(
        np.ones((3, 3)), np.full((1, 3), 0.5), 3, norm2=1, reg=reg
    )
    assert abs(codes.sum() - 1) < TIGHT and np.abs(codes).max() <= 1 + TIGHT


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("reg", [0, 1e-16, 1e-12, 1e-10, 1e-8, 1e-6, None])
@pytest.mark.parametrize("seed", range(5))
def test_glc_codes_of_more_neighbours_than_dimensions_are_finite(seed, reg, dtype):
    rng = np.random.default_rng(seed)
    for d, p in ((2, 1), (4, 2)):
        X = gs.random_subspaces(3, d, p, rng).astype(dtype)
        D = gs.random_subspaces(60, d, p, rng).astype(dtype)
        for n_neighbors in (11, 60):
            codes = gs.glc(X, D, n_neighbors, reg=reg)
            assert np.isfinite(codes).all()
            assert np.abs(codes.sum(axis=1) - 1).max() < 1e5 * np.finfo(dtype).eps


def test_glc_codes_of_an_indefinite_matrix_are_finite():
    """Inner products of no subspaces, whose B is indefinite by far."""
    K_dd = np.array([[1.0, 1e200], [1e200, 1.0]])
    with pytest.warns(UserWarning, match="K_dd must be positive semidefinite"):
        codes = gs.locality_codes(K_dd, [[0.5, 0.5]], 2, norm2=1.0)
    assert abs(codes.sum() - 1) < TIGHT and np.abs(codes).max() <= 1 + TIGHT


@laws
@given(seeds, st.integers(1, 12), st.sampled_from([np.float32, np.float64]))
def test_the_nearest_atoms_have_the_largest_products_the_first_of_equal_ones(
    seed, m, dtype
):
    k = np.random.default_rng(seed).integers(-3, 4, (50, 12)).astype(dtype)
    K_dd = np.diag(np.full(12, 90, dtype))
    codes = gs.locality_codes(K_dd, k, m, norm2=100.0, sparse_output=True)
    largest = np.argsort(-k, axis=1, kind="stable")[:, :m]
    assert np.array_equal(codes.indices.reshape(50, m), np.sort(largest, axis=1))
