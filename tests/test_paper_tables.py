"""The scripts of the paper's synthetic tables, at small sizes."""

import re

import numpy as np
import pytest

from examples import search_synthetic, table_running_time, table_synthetic
from grassmann_sc import geodesic_distance, random_subspaces
from intrinsic import log_map
from strategies import TIGHT, error

METHODS = ["lE-SC", "lE-SC-adaptive", "iSC", "gSC", "gLC", "gSC, reconstructed"]


@pytest.mark.parametrize("base", ["identity", "one", "each", "positive"])
def test_samples_of_a_class_are_normal_in_a_tangent_space(base):
    means = "orthogonal" if base in ("identity", "one") else "any"
    problem = table_synthetic.Problem("", base, means, 0.5, 1e-3)
    atoms, queries, labels, truth = table_synthetic.draw(problem, np.random.default_rng(0), 50)
    assert atoms.shape == (32, 6, 2) and queries.shape == (200, 6, 2) and list(labels[::8]) == list(truth[::50]) == [0, 1, 2, 3]
    if base == "identity":
        H = log_map(np.eye(6, 2), queries).reshape(4, 50, -1)
        means = H.mean(axis=1)
        assert error(means @ means.T, 0.25 * np.eye(4)) < 1e-3 and H.std(axis=1)[:, 4:].mean() == pytest.approx(1e-3, rel=0.1)
    within = geodesic_distance(queries[:50]).max()
    assert within < 0.02 < geodesic_distance(queries[:1], queries[50::50]).min()


def test_the_synthetic_table_has_every_method_and_ordering(monkeypatch, capsys):
    monkeypatch.setattr(table_synthetic, "N_QUERIES", 10)
    monkeypatch.setattr(table_synthetic.draw, "__defaults__", (10,))
    monkeypatch.setattr(table_synthetic, "REPETITIONS", 2)
    table_synthetic.main()
    out = capsys.readouterr().out
    rows = re.findall(r"^(\S.*?) {2,}(?: *\d+\.\d ± +\d+\.\d +(?:\(\d+\.\d\))?){4}$", out, re.MULTILINE)
    assert rows == METHODS
    assert len(re.findall("holds|FAILS", out)) == 6 + 4 + 4 + 2


def test_the_search_scores_every_variant():
    problem = table_synthetic.Problem("", "identity", "any", 2.0, 0.05)
    scores = search_synthetic.accuracies(*table_synthetic.draw(problem, np.random.default_rng(0), 5))
    assert {m: len(row) for m, row in scores.items()} == {m: len(search_synthetic.variants(m)) for m in table_synthetic.PAPER}
    assert min(scores["gSC"]) > 95


def test_tangent_projections_are_those_of_log_map():
    X, D = random_subspaces(30, 7, 2, rng=0), random_subspaces(40, 7, 2, rng=1)
    total = (geodesic_distance(X, D)**2).sum()
    assert abs(table_running_time.tangent_projections(X, D) / total - 1) < TIGHT
    assert abs(table_running_time.tangent_projections(X, D, vectors=False) / total - 1) < TIGHT


def test_the_running_time_table_prints_the_papers_ratios(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    once = dict.fromkeys([10, 20, 40], 1)
    for name, value in {"SIZES": list(once), "N_QUERIES": 5, "N_ATOMS": 6, "REPETITIONS": once}.items():
        monkeypatch.setattr(table_running_time, name, value)
    table_running_time.main()
    out = capsys.readouterr().out
    assert all(f"({ratio})" in out for ratio in (19.0, 13.9, 12.4))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["running_time.png"]
