"""The script that compares gSC with coding on the manifold itself."""

import re

import numpy as np
import pytest

import grassmann_sc as gs
from examples import projected_coding, tangent_dictionaries
from examples.common import of_files
from grassmann_sc import projected
from grassmann_sc.strategies import bases
from oracles import TIGHT, error, hat

SMALL = projected_coding.Setting(6, 2, 8, 0.6, 0.1)


def test_the_gap_is_that_of_explicit_eigenvalues():
    rng = np.random.default_rng(0)
    for d, p in [(12, 2), (5, 3), (4, 1)]:
        atoms = bases(rng, 4, d, p)
        y = rng.standard_normal(4)
        y[0] = 0
        s = np.linalg.eigvalsh(np.einsum("j,jab->ab", y, hat(atoms)))
        gap = (s[-p] - s[-p - 1]) / np.abs(s).max()
        assert abs(projected_coding.gap_of(y, atoms) - gap) < TIGHT


@pytest.mark.filterwarnings("ignore:projected_losses", "ignore:the gap of eigenvalues")
def test_gsc_costs_at_least_as_much_as_the_projected_code():
    data = projected_coding.draw(SMALL, np.random.default_rng(1))
    answer, codes, best, _ = projected_coding.compare(data)
    assert (answer.cost >= answer.best - 1e-9).all()
    assert error(codes, gs.gsc(data.queries, data.atoms, projected_coding.LAM)) < 1e-8
    assert error(best, projected.projected_codes(data.queries, data.atoms, 0.3)) < TIGHT
    for codes_of in (codes, best):
        for rule in (projected_coding.by_residual, projected_coding.by_point):
            assert np.mean(rule(codes_of, data) == data.truth) > 0.4


def test_the_script_prints_a_row_a_setting_and_file_and_leaves_a_picture(
    monkeypatch, capsys, tmp_path
):
    rng = np.random.default_rng(2)
    frames = rng.integers(0, 256, (40, 3, 3), dtype=np.uint8)
    path = tmp_path / "small.npz"
    np.savez(
        path,
        frames=frames,
        offset=np.arange(0, 41, 4),
        label=np.repeat(["a", "b"], 5),
        train0=[0, 1, 2, 5, 6, 7],
        test0=[3, 4, 8, 9],
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(projected_coding, "SETTINGS", [SMALL])
    projected_coding.main(
        of_files("examples.projected_coding", ["--data", str(path), "--p", "2"])
    )
    out = capsys.readouterr().out
    assert len(re.findall(r"^G\(2, 6\).* 8 ", out, re.MULTILINE)) == 1
    assert len(re.findall(r"^small, G\(2, 9\).* 6 ", out, re.MULTILINE)) == 1
    assert [file.name for file in (tmp_path / "out").iterdir()] == [
        "projected_coding.png"
    ]


def test_the_script_names_a_file_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="nowhere.npz"):
        projected_coding.read("nowhere.npz", 2, np.random.default_rng(0))


def test_the_dictionaries_are_compared(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tangent_dictionaries, "SETTINGS", [SMALL])
    monkeypatch.setattr(tangent_dictionaries, "N_ATOMS", 4)
    monkeypatch.setattr(tangent_dictionaries, "N_ITER", 2)
    tangent_dictionaries.main(of_files("examples.tangent_dictionaries", []))
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.startswith("G(2, 6)")]
    assert [row[6] for row in rows] == ["gDL", "log-Euclidean", "intrinsic"]
    for row in rows:
        assert float(row[-4]) <= float(row[-5])
        assert float(row[-3]) < 1e-12
        assert float(row[-1]) > 40
    assert [file.name for file in (tmp_path / "out").iterdir()] == [
        "tangent_dictionaries.png"
    ]
