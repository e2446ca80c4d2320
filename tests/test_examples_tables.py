"""The scripts of the paper's tables on synthetic data, at small sizes."""

import re

import numpy as np
import pytest

from examples import search_synthetic, table_running_time, table_synthetic
from grassmann_sc import geodesic_distance, intrinsic, random_subspaces
from oracles import TIGHT, error

METHODS = ["lE-SC", "lE-SC-adaptive", "iSC", "gSC", "gLC", "gSC, reconstructed"]


@pytest.mark.parametrize("base", ["identity", "one", "each", "positive"])
def test_samples_of_a_class_are_normal_in_a_tangent_space(base):
    means = "orthogonal" if base in ("identity", "one") else "any"
    problem = table_synthetic.Problem("", base, means, 0.5, 1e-3)
    rng = np.random.default_rng(0)
    atoms, queries, labels, truth = table_synthetic.draw(problem, rng, 50)
    assert atoms.shape == (32, 6, 2)
    assert queries.shape == (200, 6, 2)
    assert list(labels[::8]) == list(truth[::50]) == [0, 1, 2, 3]
    if base == "identity":
        H = intrinsic.log_map(np.eye(6, 2), queries).reshape(4, 50, -1)
        means = H.mean(axis=1)
        assert error(means @ means.T, 0.25 * np.eye(4)) < 1e-3
        assert H.std(axis=1)[:, 4:].mean() == pytest.approx(1e-3, rel=0.1)
    within = geodesic_distance(queries[:50]).max()
    assert within < 0.02 < geodesic_distance(queries[:1], queries[50::50]).min()


def test_the_synthetic_table_has_every_method_and_ordering(monkeypatch, capsys):
    monkeypatch.setattr(table_synthetic, "N_QUERIES", 10)
    monkeypatch.setattr(table_synthetic.draw, "__defaults__", (10,))
    monkeypatch.setattr(table_synthetic, "REPETITIONS", 2)
    table_synthetic.main()
    out = capsys.readouterr().out
    cell = r" *\d+\.\d ± +\d+\.\d +(?:\(\d+\.\d\))?"
    rows = re.findall(rf"^(\S.*?) {{2,}}(?:{cell}){{4}}$", out, re.MULTILINE)
    assert rows == METHODS
    assert len(re.findall("  holds  |FAILS  |undecided  ", out)) == 6 + 4 + 4 + 2


@pytest.mark.parametrize(
    "mean, verdict",
    [
        (1.0, "holds"),
        (-1.0, "FAILS"),
        (0.1, "undecided"),
        (-0.1, "undecided"),
        (0.0, "undecided"),
    ],
)
def test_an_ordering_is_undecided_within_two_standard_errors(mean, verdict):
    # a standard error of 0.1
    spread = np.tile([1.0, -1.0], 50) if mean else np.zeros(100)
    assert table_synthetic.verdict_on(mean + spread) == verdict


def test_the_search_scores_every_variant():
    problem = table_synthetic.Problem("", "identity", "any", 2.0, 0.05)
    drawn = table_synthetic.draw(problem, np.random.default_rng(0), 5)
    scores = search_synthetic.accuracies(*drawn)
    assert scores.keys() == table_synthetic.PAPER.keys()
    for method, row in scores.items():
        assert len(row) == len(search_synthetic.variants(method))
    assert min(scores["gSC"]) > 95


def test_the_search_shows_the_settings_that_come_closest(monkeypatch, capsys):
    """A pair of sigmas with the paper's own figures is shown first, at difference 0."""
    kinds = [search_synthetic.Kind("one", "any", spread) for spread in (1.0, 2.0)]
    monkeypatch.setattr(search_synthetic, "FIRST", kinds)
    monkeypatch.setattr(search_synthetic, "SECOND", kinds)

    def found(halves):
        """Figures 100, but the paper's for kind 1, sigmas 3 and 5, variant 2."""
        tables = {}
        for method, row in table_synthetic.PAPER.items():
            n_variants = len(search_synthetic.variants(method))
            tables[method] = np.full((2, len(search_synthetic.FINE), n_variants), 100.0)
            tables[method][1, [3, 5], 2] = row[halves]
        return tables

    tables = iter([found(slice(0, 2)), found(slice(2, 4))])
    monkeypatch.setattr(search_synthetic, "grid", lambda kinds: next(tables))
    search_synthetic.main()
    first, *_ = capsys.readouterr().out.strip().split("\n\n")
    headline, *rows = first.splitlines()
    sigmas = f"sigma {search_synthetic.FINE[3]:.2f} {search_synthetic.FINE[5]:.2f}"
    assert headline.startswith(
        "root mean square difference 0.00: ('one', 'any', 2.0), " + sigmas
    )
    assert headline.endswith(sigmas)
    assert [line.split()[0] for line in rows] == list(table_synthetic.PAPER)
    for line, row in zip(rows, table_synthetic.PAPER.values()):
        assert all(f"{figure:.1f} ({figure:.1f})" in line for figure in row)


def test_tangent_projections_are_those_of_log_map():
    X = random_subspaces(30, 7, 2, rng=0)
    D = random_subspaces(40, 7, 2, rng=1)
    total = (geodesic_distance(X, D) ** 2).sum()
    assert abs(table_running_time.tangent_projections(X, D) / total - 1) < TIGHT
    assert (
        abs(table_running_time.tangent_projections(X, D, vectors=False) / total - 1)
        < TIGHT
    )


def test_the_running_time_table_prints_the_papers_ratios(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    once = dict.fromkeys([10, 20, 40], 1)
    small = {"SIZES": list(once), "N_QUERIES": 5, "N_ATOMS": 6, "REPETITIONS": once}
    for name, value in small.items():
        monkeypatch.setattr(table_running_time, name, value)
    table_running_time.main()
    out = capsys.readouterr().out
    assert all(f"({ratio})" in out for ratio in (19.0, 13.9, 12.4))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["running_time.png"]
