"""Locality-constrained codes, class residuals and labels: laws and NumPy twins."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings

import grassmann_sc as gs
from strategies import LOOSE, TIGHT, bases, error, problems, regular_problems, rotation, seeds, vectors

laws = settings(deadline=None, max_examples=40)
never, booleans = st.just(0.0), st.booleans()


# ---------------------------------------------------------------------------- locality-constrained codes


def local(problem, m, **options):
    return gs.locality_codes(problem.K_dd, problem.K_xd, m, norm2=problem.p, **options)


@laws
@given(problems(lam=never), st.data())
def test_local_codes_sum_to_one_on_the_nearest_atoms(problem, data):
    m = data.draw(st.integers(1, len(problem.D)))
    codes = local(problem, m)
    assert error(codes.sum(axis=1), 1) < LOOSE
    distance = problem.p + problem.K_dd.diagonal() - 2 * problem.K_xd
    assert not codes[distance > np.sort(distance)[:, m - 1:m] + TIGHT].any() and (np.count_nonzero(codes, axis=1) <= m).all()
    assert np.array_equal(local(problem, m, sparse_output=True).toarray(), codes)


@laws
@given(regular_problems(lam=never), st.data())
def test_locality_twin(problem, data):
    """(B + reg trace(B) I) y = 1 by np.linalg.solve."""
    m, reg = data.draw(st.integers(1, len(problem.D))), data.draw(st.sampled_from([1e-3, 1e-1]))
    for k, y in zip(problem.K_xd, local(problem, m, reg=reg)):
        near = np.argsort(-2 * k, kind="stable")[:m]
        B = problem.p - k[near] - k[near][:, None] + problem.K_dd[np.ix_(near, near)]
        expected = np.linalg.solve(B + reg * np.trace(B) * np.eye(m), np.ones(m))
        np.testing.assert_allclose(y[near], expected / expected.sum(), rtol=TIGHT, atol=TIGHT)


@laws
@given(regular_problems(lam=never), st.data())
def test_local_codes_solve_the_constrained_problem(problem, data):
    """No better affine combination of the neighbours, by the equations with a Lagrange multiplier."""
    m = data.draw(st.integers(1, len(problem.D)))
    for k, y in zip(problem.K_xd, local(problem, m)):
        near = np.flatnonzero(y)
        K, ones = problem.K_dd[np.ix_(near, near)], np.ones((len(near), 1))
        expected = np.linalg.solve(np.block([[K, ones], [ones.T, 0]]), np.append(k[near], 1))[:-1]
        residual = lambda y: y @ K @ y - 2 * y @ k[near]
        assert residual(y[near]) <= residual(expected) + LOOSE


@laws
@given(st.integers(1, 12), seeds, st.sampled_from([1, 2, 5]))
def test_nearest_twin(m, seed, values):
    rng = np.random.default_rng(seed)
    K, k = np.diag(rng.integers(0, values, 12).astype(float)), rng.integers(0, values, 12).astype(float)
    nearest = np.empty(m, np.int64)
    gs._nearest(K, k, 1.0, nearest, np.empty(m))
    assert np.array_equal(nearest, np.sort(np.argsort(1 + K.diagonal() - 2 * k, kind="stable")[:m]))


@laws
@given(problems(lam=never), st.data())
def test_local_code_of_an_atom_is_on_it_and_what_is_too_near_to_tell(problem, data):
    D = problem.D
    codes, near = gs.glc(D, D, data.draw(st.integers(1, len(D)))), gs.chordal_distance(D) < 1e-3
    assert error((codes * near).sum(axis=1), 1) < TIGHT and not codes[~near].any()


@laws
@given(problems(lam=never, kinds=["random", "repeated", "orthogonal"]), st.data())
def test_local_code_of_an_atom_is_one_shared_equally_by_its_copies(problem, data):
    D, m = problem.D, data.draw(st.integers(1, len(problem.D)))
    codes, copies = gs.glc(D, D, m), gs.chordal_distance(D) < LOOSE
    shared = np.minimum(copies.sum(axis=1, keepdims=True), m)
    assert error(codes, (codes > 0) / shared) < TIGHT and ((codes > 0).sum(axis=1, keepdims=True) == shared).all()
    assert not codes[~copies].any()


@laws
@given(regular_problems(lam=never), seeds, st.sampled_from([1e-200, 1e-6, 1e6, 1e200]))
def test_local_codes_ignore_basis_order_and_scale(problem, seed, scale):
    rng, (X, D), N = np.random.default_rng(seed), problem[:2], len(problem.D)
    order, m, codes = rng.permutation(N), min(3, N), gs.glc(problem.X, problem.D, min(3, N))
    assert error(gs.glc(X @ rotation(rng, problem.p), D[order] @ rotation(rng, problem.p), m), codes[:, order]) < LOOSE
    scaled = gs.locality_codes(scale * problem.K_dd, scale * problem.K_xd, m, norm2=scale * problem.p)
    assert error(scaled, codes) < LOOSE


@pytest.mark.parametrize("reg", [0, 1e-300, 1e300])
def test_local_codes_of_dependent_neighbours_are_finite_for_any_reg(reg):
    codes = gs.locality_codes(np.ones((3, 3)), np.full((1, 3), 0.5), 3, norm2=1, reg=reg)
    assert abs(codes.sum() - 1) < TIGHT and np.abs(codes).max() <= 1 + TIGHT


# ---------------------------------------------------------------------------- residuals and labels


@laws
@given(problems(), seeds, booleans)
def test_class_residuals_are_those_of_d_by_d_matrices(problem, seed, sparse):
    rng, N = np.random.default_rng(seed), len(problem.D)
    codes, labels = rng.standard_normal((len(problem.X), N)), rng.integers(0, 3, N)
    given_codes = scipy.sparse.csr_array(codes) if sparse else codes
    residuals, classes = gs.class_residuals(given_codes, problem.K_dd, problem.K_xd, labels, norm2=problem.p)
    assert np.array_equal(classes, np.unique(labels)) and residuals.shape == (len(problem.X), len(classes))
    explicit = [np.square(vectors(problem.X) - (codes * (labels == c)) @ vectors(problem.D)).sum(axis=1) for c in classes]
    assert error(residuals.T, explicit) < LOOSE / 100 and (residuals >= 0).all()
    assigned = gs.classify(given_codes, problem.K_dd, problem.K_xd, labels, norm2=problem.p)
    assert np.array_equal(assigned, classes[residuals.argmin(axis=1)])


LABELS = [[2, 0, 2, 1], ["b", "a", "b", "c"], [(1, 2), (0, 1), (1, 2), (1, 1)], [frozenset({1}), frozenset({2}), frozenset({1}), frozenset()],
          [1, "a", 1, None], [True, False, True, False], np.array([2.5, 1, 2.5, 0]), np.array(["x", None, "x", 3], object)]


@pytest.mark.parametrize("labels", LABELS, ids=str)
def test_any_hashable_is_a_label(labels):
    D = bases(np.random.default_rng(0), 3, 5, 2)[[0, 1, 0, 2]]
    K = gs.projection_kernel(D)
    codes = gs.gsc(D, D, 0.01)
    residuals, classes = gs.class_residuals(codes, K, K, labels, norm2=2)
    assert residuals.shape == (4, len(set(labels))) and set(classes.tolist()) == set(labels)
    assert gs.classify(codes, K, K, labels, norm2=2).tolist() == list(labels)
    one = gs.classify(codes[:, :1], K[:1, :1], K[:, :1], labels[:1], norm2=2)
    assert one.tolist() == 4 * [labels[0]]


def test_sortable_classes_are_sorted_and_others_keep_their_order():
    K = np.eye(4)
    classes = lambda labels: gs.class_residuals(K, K, K, labels, norm2=1)[1]
    assert classes([3, 1, 2, 3]).tolist() == [1, 2, 3] and classes(["b", 1, None, "b"]).tolist() == ["b", 1, None]
    assert classes([3, 1, 2, 3]).dtype == np.array([1]).dtype and classes([(2,), (1,), (2,), (3,)]).tolist() == [(1,), (2,), (3,)]
