"""The script of claims: its figures on sets whose answer is known."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import claims
from grassmann_sc import tuning
from oracles import noisy_image_sets


def write(folder):
    """A file of sets of frames, and one of subspaces, which has no frames."""
    sets, label = noisy_image_sets(n=24, d=9, n_classes=3, seed=0)
    order = np.argsort(np.unique(label, return_inverse=True)[1], kind="stable")
    even = np.arange(0, 24, 2)
    np.savez(
        folder / "easy.npz",
        frames=np.concatenate([sets[i] for i in order]),
        offset=np.cumsum([0, *(len(sets[i]) for i in order)]),
        label=label[order],
        train0=even,
        test0=even + 1,
        train1=even + 1,
        test1=even,
    )
    np.savez(folder / "ucsd_traffic.npz", bases=np.zeros((2, 3, 1)), label=[0, 1])
    np.savez(folder / "of_bases.npz", bases=np.zeros((2, 3, 1)), label=[0, 1])


def test_each_claim_prints_its_place_and_its_figures(tmp_path, capsys, monkeypatch):
    write(tmp_path)
    monkeypatch.setattr(claims.subprocess, "run", compared)
    claims.main(SimpleNamespace(data=tmp_path, only=None))
    out = capsys.readouterr().out
    for claim in claims.CLAIMS:
        assert f"-- {claim.name}: {claim.sentence}\n   {claim.place}\n" in out
    assert out.count("\neasy") == 4  # its table, as it is, centred, and its cost
    assert "\n  gSC                         93.8   92.9 ± 3.7\n" in out  # of the paper
    assert "\nof_bases failed: no such data\n" in out


def compared(words, **options):
    """What the command leaves in its folder, if any; the baselines are asked for."""
    folder, *more = words[words.index("--out") + 1 :]
    if "of_bases.npz" not in words[4]:
        found = {"gSC, labelled sets as atoms": {"mean": 93.75}, "DCC": {"mean": None}}
        kept = Path(folder, "results.json")
        kept.write_text(json.dumps({"methods": found}))
    assert bool(more) == ("ucsd_traffic" in words[4])
    return SimpleNamespace(stderr="reading\nno such data\n")


def test_both_rules_name_the_class_where_classes_share_nothing():
    label = np.arange(12) % 3
    K = 1.0 * np.equal.outer(label, label) + np.eye(12)
    split = tuning.Split(np.arange(6), np.arange(6, 12))
    grams = {("linear", 1): K / 2}
    assert claims.accuracies_by_rule(grams, label, None, split) == [100, 100]
    wrong = np.where(np.arange(12) < 6, label, (label + 1) % 3)
    assert claims.accuracies_by_rule(grams, wrong, None, split) == [0, 0]


def test_the_difference_of_the_rules_is_that_of_their_accuracies(
    tmp_path, capsys, monkeypatch
):
    write(tmp_path)
    given = iter([[90, 80], [70, 80], [60, 50], [60, 50]])
    monkeypatch.setattr(claims, "accuracies_by_rule", lambda *_: next(given))
    claims.rules_of_local_codes(tmp_path)
    out = capsys.readouterr().out.splitlines()
    assert out[1].split()[1:4] == ["80.0", "80.0", "0.0"]
    assert out[1].endswith("1 residual, 1 sum, 0 equal")
    assert out[2].split()[2:5] == ["60.0", "50.0", "10.0"]
    assert "residual ahead by more than 0.5 on 0 of 1" in out[3]
    assert "residual ahead by more than 0.5 on 1 of 1" in out[4]


def test_unknown_claims_and_empty_folders_are_refused(tmp_path):
    with pytest.raises(SystemExit, match="DATA must be a folder of files .npz"):
        claims.main(SimpleNamespace(data=tmp_path, only=None))
    write(tmp_path)
    with pytest.raises(SystemExit, match="no claim 'all'; there are tables, rule, isc"):
        claims.main(SimpleNamespace(data=tmp_path, only=["all"]))
