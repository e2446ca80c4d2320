"""Rotations of rows against their laws and NumPy's singular values."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import grassmann_sc as core
from grassmann_sc.baselines import jacobi
from oracles import error, seeds


@core.jit(parts=jacobi)
def rotated(B, turns):
    """For Python: parts are compiled into others alone."""
    jacobi.orthogonal_rows(B, turns)


@given(seeds, st.integers(1, 5), st.integers(0, 3), st.integers(-8, 0))
def test_rows_become_orthogonal_by_rotations(seed, m, more, digits):
    """Relative to their own lengths, one row being far shorter."""
    A = np.random.default_rng(seed).standard_normal((m, m + more))
    A[-1] *= 10.0**digits
    B = A.copy()
    R = np.eye(m)
    rotated(B, R)
    lengths = np.linalg.norm(B, axis=1)
    cosines = (B / lengths[:, None]) @ (B / lengths[:, None]).T
    assert error(cosines, np.eye(m)) < 1e-13
    assert error(R @ R.T, np.eye(m)) < 1e-13
    assert error(R @ A, B) < 1e-13 * np.abs(A).max()
    values = np.linalg.svd(A, compute_uv=False)
    assert error(np.sort(lengths)[::-1] / values, 1) < 1e-13 * values[0] / values[-1]


def test_without_turns_the_rows_are_the_same():
    A = np.random.default_rng(0).standard_normal((3, 4))
    B = A.copy()
    C = A.copy()
    rotated(B, np.empty((0, 0)))
    rotated(C, np.eye(3))
    assert np.array_equal(B, C)
