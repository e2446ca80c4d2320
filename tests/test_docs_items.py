"""The paper item by item: the table of the page names functions, tests and pages that
are there, and leaves out nothing that the paper numbers.
"""

import importlib
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import grassmann_sc as core
from grassmann_sc.strategies import subspaces
from oracles import TIGHT, error, hat
from processes import CORE, ROOT

PAGE = (ROOT / "docs" / "paper.rst").read_text(encoding="utf-8")
TABLE = PAGE.partition(".. csv-table::")[2].partition("\n\n")[2]
ROWS = [
    [cell.strip() for cell in line.split(" | ")]
    for line in TABLE.splitlines()
    if " | " in line
]
NUMBERED = {
    "Eq.": 44,
    "Definition": 2,
    "Lemma": 1,
    "Theorem": 3,
    "Algorithm": 6,
    "Table": 8,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}, {row[1]}")
def test_each_row_names_what_is_there(row):
    item, what, functions, test, page = row
    assert item and what and "partial" not in what
    for name in re.findall(r"``(.*?)``", functions):
        if name.startswith("examples."):
            assert importlib.util.find_spec(name)
            continue
        module, _, function = name.rpartition(".")
        module = importlib.import_module(f"{CORE}.{module}" if module else CORE)
        assert function in module.__all__
    file, name = re.fullmatch("``(.*)``: ``(.*)``", test).groups()
    text = (ROOT / "tests" / f"test_{file}.py").read_text(encoding="utf-8")
    assert f"\ndef {name}(" in text
    if page != "this page":
        path = re.fullmatch(":doc:`(.*)`", page)[1]
        sources = [ROOT / "docs" / f"{path}.rst", ROOT / "examples" / f"{path}.py"]
        assert any(source.is_file() for source in sources)


@pytest.mark.parametrize("kind", NUMBERED)
def test_nothing_that_the_paper_numbers_is_left_out(kind):
    named = set()
    for item, *_ in ROWS:
        for first, last in re.findall(rf"{kind} ([\d, ]*\d)(?: to (\d+))?", item):
            *some, begin = map(int, re.findall(r"\d+", first))
            named |= {*some, *range(begin, int(last or begin) + 1)}
    assert named == {*range(1, NUMBERED[kind] + 1)}


def printed_cost(X, D, codes, lam):
    """||X^ - sum_j y_j D_j^||^2 + lam ||y||_1 of each row of codes, by d x d matrices."""
    rest = hat(X) - np.einsum("nj,jab->nab", codes, hat(D))
    return np.square(rest).sum(axis=(1, 2)) + lam * np.abs(codes).sum(axis=1)


@pytest.mark.parametrize("coding", ["gSC", "gLC"])
@given(D=subspaces(n=7, d=5, p=2), seed=st.integers(0, 99))
def test_codes_have_no_smaller_printed_cost_nearby(coding, D, seed):
    """Of local codes nearby: those over the same atoms whose sum is 1."""
    rng = np.random.default_rng(seed)
    X = core.random_subspaces(3, 5, 2, rng)
    lam = 0.2 if coding == "gSC" else 0
    codes = core.gsc(X, D, lam) if lam else core.glc(X, D, 4, reg=1e-12)
    best = printed_cost(X, D, codes, lam)
    for size in (1, 1e-1, 1e-3):
        moves = size * rng.standard_normal((3, 7))
        if coding == "gLC":
            used = codes != 0
            moves *= used
            moves -= used * (moves.sum(axis=1) / used.sum(axis=1))[:, None]
        assert (best <= printed_cost(X, D, codes + moves, lam) + 1e-7).all()


@given(D=subspaces(n=5, d=6, p=2), seed=st.integers(0, 99))
def test_an_affine_combination_is_the_weighted_mean(D, seed):
    """sum_i y_i ||X^ - D_i^||^2 is ||X^ - sum_i y_i D_i^||^2 but for a constant, which
    is the same for every X: both are least at the same point.
    """
    rng = np.random.default_rng(seed)
    X = core.random_subspaces(4, 6, 2, rng)
    y = rng.standard_normal(5)
    y /= np.abs(y).sum()
    y[0] += 1 - y.sum()
    K_dd = core.projection_kernel(D)
    K_xd = core.projection_kernel(X, D)
    codes = np.tile(y, (4, 1))
    rest, _ = core.class_residuals(codes, K_dd, K_xd, ["all"] * 5, norm2=2)
    of_points = core.chordal_distance(X, D) ** 2 @ y
    mean = np.einsum("j,jab->ab", y, hat(D))
    spread = np.square(hat(D) - mean).sum(axis=(1, 2)) @ y
    assert error(of_points - rest[:, 0], np.full(4, spread)) < TIGHT
