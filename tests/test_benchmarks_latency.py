"""The script of latencies: peers solve the problems of ours, columns keep their order."""

import numpy as np
import pytest
import sklearn.decomposition

from benchmarks import latency


@pytest.mark.parametrize("n, N, d, p", [(1, 25, 12, 2), (5, 40, 30, 3)])
def test_peers_give_what_ours_gives(n, N, d, p):
    calls = latency.calls_of(n, N, d, p, sklearn.decomposition)
    assert list(calls) == latency.CALLS
    results = {name: call() for name, call in calls.items()}
    assert 1 <= np.count_nonzero(results["codes"]) / n < N / 2
    # coordinate descent stops at a tolerance of its own
    tolerances = {"NumPy": 1e-12, "LARS": 1e-9, "CD": 0.02}
    for peer, ours in latency.PEERS.items():
        scale = np.abs(results[ours]).max()
        assert np.abs(results[peer] - results[ours]).max() < tolerances[peer] * scale
    assert np.abs(results["gsc"] - results["codes"]).max() < 1e-12


def test_a_row_has_medians_least_times_and_differences_in_the_order_of_its_columns():
    values = {"codes": 1.0, "CD": 1.25, "kernel": 2.0}
    calls = {
        name: lambda value=value: np.full(2, value) for name, value in values.items()
    }
    median, least, apart = np.split(latency.row(calls), [8, 16])
    measured = [name in values for name in latency.CALLS]
    for seconds in (median, least):
        assert np.array_equal(np.isfinite(seconds), measured)
    assert (least[measured] <= median[measured]).all()
    assert np.array_equal(apart, [np.nan, np.nan, 0.25], equal_nan=True)
