"""Gram matrix of the core: laws, NumPy twins, and every way in which it is cut into
tiles.
"""

import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as gs
from grassmann_sc.strategies import (
    bases,
    explicit_gram,
    pairs_of_sets,
    rotation,
    subspaces,
)
from oracles import TIGHT, dtypes, error, rounding, seeds

laws = settings(deadline=None, max_examples=40)


def of_products(X, D):
    """The sums of the squares of X_i^T D_j: no d x d matrix, for large d."""
    return np.square(np.einsum("ndp,mdq->nmpq", X, D, optimize=True)).sum(axis=(2, 3))


@laws
@given(pairs_of_sets(dtype=dtypes))
def test_projection_kernel_is_the_inner_product_of_projectors(XD):
    X, D = XD
    K = gs.projection_kernel(X, D)
    assert K.dtype == X.dtype and error(K, explicit_gram(*XD)) < rounding(X.dtype)


@laws
@given(pairs_of_sets(), seeds)
def test_projection_kernel_ignores_choice_of_basis(XD, seed):
    X, D = XD
    rng = np.random.default_rng(seed)
    turned = [A @ rotation(rng, A.shape[2]) for A in XD]
    assert error(gs.projection_kernel(*turned), gs.projection_kernel(X, D)) < TIGHT


@laws
@given(subspaces())
def test_projection_kernel_of_a_set_is_symmetric_positive_and_has_p_on_the_diagonal(X):
    K = gs.projection_kernel(X)
    assert np.array_equal(K, K.T)
    assert error(K.diagonal(), X.shape[2]) < TIGHT and np.linalg.eigvalsh(K)[0] > -TIGHT
    assert error(K, gs.projection_kernel(X, X)) < TIGHT


@laws
@given(pairs_of_sets(dtype=dtypes))
def test_the_gram_matrices_of_each_p_are_those_of_the_leading_columns(XD):
    X, D = XD
    dims = range(1, min(X.shape[2], D.shape[2]) + 1)
    K = gs.projection_kernel(X, D, each_p=True)
    assert K.shape == (len(dims), len(X), len(D)) and K.dtype == X.dtype
    square = gs.projection_kernel(X, each_p=True)
    for k in dims:
        alone = gs.projection_kernel(X[:, :, :k], D[:, :, :k])
        assert error(K[k - 1], alone) <= rounding(X.dtype)
        assert error(square[k - 1], gs.projection_kernel(X[:, :, :k])) <= rounding(
            X.dtype
        )
        assert np.array_equal(square[k - 1], square[k - 1].T)


@laws
@given(seeds, dtypes)
def test_sum_squares_twin(seed, dtype):
    """Each entry is the sum of the p x q squares of its own block, to the last digits."""
    rng = np.random.default_rng(seed)
    X = bases(rng, 4, 12, 3).astype(dtype)
    D = bases(rng, 5, 12, 4).astype(dtype)
    expected = of_products(X.astype(float), D.astype(float))
    np.testing.assert_allclose(
        gs.projection_kernel(X, D), expected, rtol=rounding(dtype)
    )


@pytest.mark.parametrize(
    "n, N, d, p, q", [(260, 690, 3, 3, 3), (770, 5, 2, 1, 2), (3, 2050, 2, 1, 1)]
)
def test_projection_kernel_is_the_same_across_tiles(n, N, d, p, q):
    X = gs.random_subspaces(n, d, p, rng=0)
    D = gs.random_subspaces(N, d, q, rng=1)
    assert error(gs.projection_kernel(X, D), explicit_gram(X, D)) < TIGHT


@pytest.mark.parametrize(
    "n, N, d", [(1537, 3, 1800), (1537, 1537, 1800), (769, 3073, 300)]
)
def test_projection_kernel_is_the_same_across_uneven_tiles_and_steps_of_d(n, N, d):
    X = gs.random_subspaces(n, d, 1, rng=0)
    D = gs.random_subspaces(N, d, 1, rng=1)
    assert error(gs.projection_kernel(X, D), of_products(X, D)) < TIGHT
    assert error(gs.projection_kernel(X), of_products(X, X)) < TIGHT


def test_projection_kernel_of_a_set_mirrors_every_tile():
    X = gs.random_subspaces(700, 3, 3, rng=0)[:, :, :2]
    assert (
        error(gs.projection_kernel(np.ascontiguousarray(X)), explicit_gram(X, X))
        < TIGHT
    )


def test_projection_kernel_in_high_dimension_equals_that_of_products():
    X = gs.random_subspaces(5, 6001, 2, rng=0)
    D = gs.random_subspaces(4, 6001, 3, rng=1)
    assert error(gs.projection_kernel(X, D), of_products(X, D)) < TIGHT
    assert error(gs.projection_kernel(X), of_products(X, X)) < TIGHT
