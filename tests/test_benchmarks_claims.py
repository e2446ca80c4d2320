"""The script of claims: its figures on sets whose answer is known."""

import importlib.util
import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks import claims
from grassmann_sc import tuning
from oracles import noisy_image_sets
from processes import ROOT

EASY = noisy_image_sets(n=24, d=9, n_classes=3, seed=0)


def write(folder, sets, label):
    """A file of 24 sets of frames, and two of subspaces, which have no frames."""
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


@pytest.mark.parametrize(
    "file, words",
    [place for claim in claims.CLAIMS for place in claim.places],
    ids=lambda text: text[:30],
)
def test_each_claim_stands_in_the_file_that_it_names(file, words):
    text = (ROOT / file).read_text(encoding="utf-8")
    assert words in " ".join(text.split())


def test_each_claim_prints_its_places_and_its_figures(tmp_path, capsys, monkeypatch):
    write(tmp_path, *EASY)
    calls = []
    monkeypatch.setattr(claims.subprocess, "run", partial(ran, calls))
    monkeypatch.setattr(claims, "REPEATS", 2)
    claims.main(SimpleNamespace(data=tmp_path, only=None))
    out = capsys.readouterr().out
    for claim in claims.CLAIMS:
        assert f"-- {claim.name}: {claim.says}\n" in out
        for file, words in claim.places:
            assert f'\n   {file}: "{words}"\n' in out
    # four by compare, as it is and centred, and one each of isc, unknown, ...
    assert out.count("\neasy") == 4 + 2 + 4
    assert "\n  gSC                         93.8   92.9 ± 3.7\n" in out  # of the paper
    assert "\nof_bases failed: no such data\n" in out
    assert ["examples.table_running_time"] in calls
    assert ["benchmarks.learning", "--only", "sweeps"] in calls
    assert all(importlib.util.find_spec(script) for script, *_ in calls)


def ran(calls, words, **options):
    """What the command leaves in its folder, if any; other scripts are noted."""
    if "--out" not in words:
        calls.append(words[2:])
        return None
    more = words[words.index("--out") + 2 :]
    of_the_paper = ["--baselines"] if "ucsd_traffic" in words[4] else []
    assert more in (of_the_paper, ["--baselines"]) or "plain" in more
    if "of_bases.npz" not in words[4]:
        methods = {"gSC": {"mean": 93.75}, "DCC": {"mean": None}}
        kept = Path(words[words.index("--out") + 1], "results.json")
        kept.parent.mkdir()
        kept.write_text(json.dumps({"methods": methods}))
    return SimpleNamespace(stderr="reading\nno such data\n")


def test_classes_that_share_nothing_are_noticed_clustered_and_rightly_labelled(
    tmp_path, capsys, monkeypatch
):
    """Three frames in the three directions of their class, all but exactly."""
    rng = np.random.default_rng(0)
    label = np.arange(24) % 3
    sets = 1e-3 * rng.standard_normal((24, 3, 9))
    for frames, c in zip(sets, label):
        frames[:, 3 * c : 3 * c + 3] += rng.standard_normal((3, 3))
    write(tmp_path, sets, label)
    monkeypatch.setattr(claims, "REPEATS", 2)
    easy = tmp_path / "easy.npz"
    claims.unknown_clips(easy)
    claims.exchanged_labels(easy)
    claims.clusters_without_labels(easy)
    unknown, span, suspects, clusters, *_ = capsys.readouterr().out.splitlines()
    assert unknown.split() == ["easy", "100", "%"]
    assert span == "100 to 100 %, in the mean 100"
    assert float(suspects.split()[1]) > 95  # what the wrong one explains is suspect too
    assert clusters.split()[:2] == ["easy", "100"]


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
    write(tmp_path, *EASY)
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
    with pytest.raises(SystemExit, match="DATA must be a file .npz or a folder"):
        claims.main(SimpleNamespace(data=tmp_path, only=None))
    write(tmp_path, *EASY)
    with pytest.raises(
        SystemExit,
        match="no claim 'all'; there are tables, baselines, plain, tangent, rule",
    ):
        claims.main(SimpleNamespace(data=tmp_path, only=["all"]))
