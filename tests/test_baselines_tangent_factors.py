"""The compiled factors of logarithms against log_map and a singular value
decomposition.
"""

import numpy as np
import pytest

import grassmann_sc as gs
from examples.table_running_time import tangents
from grassmann_sc import intrinsic
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import bases, rotation
from oracles import TIGHT, error

RIGHT = np.pi / 2
ANGLES = [
    [0.3, 1.1, 0.7],
    [0, 0, 0],
    [1e-9, 1e-6, 0],
    [0.4, 0.4, 0.4],
    [1.5, RIGHT - 1e-9, 1e-9],
    [RIGHT, 0.2, 0.2],
    [RIGHT, RIGHT, 0],
    [RIGHT, RIGHT, RIGHT],
]


def as_rows(X, D):
    """Queries (n, p, d), atoms (p, N, d) and C (n, p, p, N), C[i, :, :, j] = X_i^T D_j."""
    C = np.einsum("ida,jdb->iabj", X, D)
    return np.swapaxes(X, 1, 2).copy(), D.transpose(2, 0, 1).copy(), C


def factors_by_svd(C):
    """A, B (n, N, p, p) and the angles (n, N, p), in five lines."""
    U, cosine, Vt = np.linalg.svd(C.transpose(0, 3, 1, 2))
    theta = np.arccos(np.minimum(cosine, 1))
    phi = np.where(theta > 0, theta / np.where(theta > 0, np.sin(theta), 1), 1)[
        ..., None, :
    ]
    A = np.swapaxes(Vt, -1, -2) * phi @ np.swapaxes(U, -1, -2)
    return A, C.transpose(0, 3, 1, 2) @ A, theta


@pytest.mark.parametrize("d, p", [(7, 1), (8, 3), (20, 6), (40, 12)])
def test_factors_are_those_of_a_singular_value_decomposition(d, p):
    rng = np.random.default_rng(0)
    _, _, C = as_rows(bases(rng, 3, d, p), bases(rng, 7, d, p))
    factors, square, least = tangent.log_factors(C)
    A, B, theta = factors_by_svd(C)
    assert error(factors[:, 0], A.transpose(0, 2, 3, 1)) < TIGHT
    assert error(factors[:, 1], B.transpose(0, 2, 3, 1)) < TIGHT
    assert error(square, (theta**2).sum(axis=-1)) < TIGHT
    assert error(least, np.cos(theta.max(axis=-1))) < TIGHT


@pytest.mark.parametrize("angles", ANGLES)
def test_factors_are_exact_near_and_at_right_angles(angles):
    rng = np.random.default_rng(0)
    Q = rotation(rng, 8)
    X = Q[:, :3]
    D = (X * np.cos(angles) + Q[:, 3:6] * np.sin(angles)) @ rotation(rng, 3)
    x, atoms, C = as_rows(X[None], D[None])
    C[np.abs(C) < 1e-16] = 0  # vanishing columns too
    factors, square, least = tangent.log_factors(C)
    H = np.empty((3, 1, 8))
    tangents(x[0], atoms, factors[0], 0, H)
    H = H[:, 0].T
    assert abs(np.linalg.norm(H) - np.linalg.norm(angles)) < TIGHT
    assert abs(square[0, 0] - np.linalg.norm(angles) ** 2) < TIGHT
    assert abs(least[0, 0] - np.cos(max(angles))) < TIGHT
    arrived = intrinsic.exp_map(X, H)
    assert error(arrived @ (arrived.T @ D), D) < TIGHT


def test_columns_that_vanish_are_completed():
    """X^T D = 0, and with rank 1: U is any orthogonal matrix that fits."""
    C = np.zeros((1, 4, 4, 2))
    C[0, 1, 2, 1] = 1.0
    factors, square, least = tangent.log_factors(C)
    for j, rank in enumerate((0, 1)):
        phi = np.linalg.svd(factors[0, 0, :, :, j], compute_uv=False)
        assert error(phi, [RIGHT] * (4 - rank) + [1] * rank) < TIGHT
        assert abs(square[0, j] - (4 - rank) * RIGHT**2) < TIGHT
    assert error(factors[0, 1, :, :, 1], np.diag([0, 1, 0, 0])) < TIGHT
    assert not least.any()


@pytest.mark.parametrize(
    "seed, p", [(0, 12), (27, 6), (33, 7), (41, 8), (48, 9), (68, 11)]
)
def test_columns_that_are_repeated_leave_orthogonal_ones(seed, p):
    """The rotations shorten several rows at once, to where squares of two of them
    underflow.
    """
    C = np.rint(np.random.default_rng(seed).standard_normal((p, p)))
    C[:, p // 3 :] = C[:, :1]
    C /= max(1, np.linalg.norm(C, 2))
    factors, _, _ = tangent.log_factors(C[None, :, :, None])
    A, B = factors[0, :, :, :, 0]
    theta = np.arccos(np.minimum(np.linalg.svd(C, compute_uv=False), 1))[::-1]
    phi = np.where(theta > 1e-8, theta / np.maximum(np.sin(theta), 1e-300), 1)
    assert error(np.linalg.svd(A, compute_uv=False), phi) < TIGHT
    assert error(B, C @ A) < TIGHT


@pytest.mark.parametrize("d", [9, 2500])
def test_tangents_are_those_of_log_map_a_tile_at_a_time(d):
    X = gs.random_subspaces(2, d, 3, rng=0)
    D = gs.random_subspaces(10, d, 3, rng=1)
    x, atoms, C = as_rows(X, D)
    factors, _, _ = tangent.log_factors(C)
    out = np.full((3, 4, d), np.nan)
    for i in range(2):
        expected = intrinsic.log_map(X[i], D).transpose(2, 0, 1)
        for first in (0, 4, 8):
            tangents(x[i], atoms, factors[i], first, out)
            some = expected[:, first : first + 4]
            assert error(out[:, : some.shape[1]], some) < TIGHT
