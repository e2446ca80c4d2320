"""The commands check and cluster: suspect labels, clips that are there twice, clusters."""

import csv
import math
import re

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_classify.__main__ import main
from grassmann_classify.bank import Bank
from grassmann_classify.building import build_all
from grassmann_classify.check import (
    ODD,
    accusing,
    shared_with_nearest,
    suspects_among,
)
from grassmann_classify.clips import Clip, Collection
from grassmann_classify.cluster import clusters_of
from grassmann_classify.finding import MARK
from grassmann_classify.settings import Recipe, Settings
from grassmann_classify.words import reasons_for
from grassmann_sc.estimators import SubspaceClustering

N_FRAMES = 10


def sets_of(seed=0, n_classes=4, n=8, side=6):
    """Sets around a subspace for each class, and their labels."""
    rng = np.random.default_rng(seed)
    label = np.repeat(range(n_classes), n)
    centres = core.random_subspaces(n_classes, side * side, 3, rng)
    sets = []
    for c in label:
        made = rng.standard_normal((N_FRAMES, 3)) @ centres[c].T
        noise = 0.05 * rng.standard_normal(made.shape)
        sets.append(100 + 40 * (made + noise).reshape(N_FRAMES, side, side))
    return sets, label


def collection_of(sets, label, **more):
    made = [
        Clip(f"set {i}", c, None, [rows])
        for i, (rows, c) in enumerate(zip(sets, label))
    ]
    return build_all(made, Recipe(4))._replace(**more)


def checked(folder, data, *arguments):
    main(["check", str(data), "--out", str(folder), *arguments])
    report = {}
    for name in ("suspects", "copies"):
        with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
            report[name] = list(csv.DictReader(file))
    return report


def stacked(path, sets, label):
    frames = np.concatenate(sets)
    offset = np.cumsum([0, *map(len, sets)])
    every = np.arange(len(sets))
    np.savez(
        path,
        frames=frames,
        offset=offset,
        label=label,
        train0=every[::2],
        test0=every[1::2],
    )
    return path


def test_exchanged_labels_come_first(tmp_path, capsys):
    sets, label = sets_of()
    wrong = label.copy()
    wrong[[3, 17]] = [2, 0]
    data = stacked(tmp_path / "data.npz", sets, wrong)
    report = checked(tmp_path / "out", data, "--p", "3", "--center")
    first = report["suspects"][:2]
    assert {row["clip"] for row in first} == {"set 3", "set 17"}
    assert len(report["suspects"]) == len(sets) and not report["copies"]
    for row in first:
        i = int(row["clip"].split()[1])
        assert (int(row["label"]), int(row["suspected"])) == (wrong[i], label[i])
        assert float(row["suspicion"]) > 0
        why = [int(words.split()[1]) for words in row["because"].split("; ")]
        assert i not in why and (label[why] == label[i]).all()
    printed = capsys.readouterr().out
    n_worse = sum(float(row["suspicion"]) > 0 for row in report["suspects"])
    assert f"{n_worse} labels of 32 for which less speaks than for another" in printed
    assert 2 <= n_worse < 6
    (row,) = [row for row in first if row["clip"] == "set 3"]
    score = f"{float(row['suspicion']):.2f}"
    assert re.search(rf"\nset 3 +2 +0 +{score} +set ", printed)
    assert (tmp_path / "out/pictures/suspects.png").exists()


def test_the_page_has_the_suspects_and_the_copies(tmp_path):
    sets, label = sets_of()
    sets[9] = sets[10]
    label[[3, 17]] = [2, 0]
    data = stacked(tmp_path / "data.npz", sets, label)
    report = checked(tmp_path / "out", data, "--p", "3", "--no-pictures")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    page = page.replace("<br>", "; ").replace("<wbr>", "")
    tables = [
        [
            re.findall("<t[dh]>(.*?)</t[dh]>", row)
            for row in re.findall("<tr>(.*?)</tr>", table)
        ]
        for table in re.findall("<table>(.*?)</table>", page)
    ]
    suspects = [row for row in report["suspects"] if float(row["suspicion"]) > 0]
    header = ["clip", "label", "suspected", "suspicion", "because"]
    assert tables[0][0] == header and len(tables[0]) == len(suspects) + 1
    for row, cells in zip(suspects, tables[0][1:]):
        score = float(cells.pop(3))
        assert score == pytest.approx(float(row.pop("suspicion")), abs=0.006)
        assert cells == [*row.values()]
    assert tables[1] == [[*report["copies"][0]], [*report["copies"][0].values()]]
    assert len(tables) == 2 and len(suspects) >= 2


def test_right_labels_are_not_suspect(tmp_path, capsys):
    data = stacked(tmp_path / "data.npz", *sets_of())
    report = checked(tmp_path / "out", data, "--p", "3")
    assert all(float(row["suspicion"]) < 0 for row in report["suspects"])
    printed = capsys.readouterr().out
    assert "0 of 32 labels may be wrong; 0 pairs of copies; 0 clips" in printed
    assert not (tmp_path / "out/pictures/suspects.png").exists()


def test_noise_is_explained_by_nothing_and_accused_of_nothing(tmp_path, capsys):
    sets, label = sets_of()
    wrong = label.copy()
    wrong[17] = 0
    rng = np.random.default_rng(7)
    for i in (5, 22):
        sets[i] = rng.standard_normal(sets[i].shape)
    shared = shared_with_nearest(collection_of(sets, label))
    assert np.flatnonzero(shared < ODD).tolist() == [5, 22]
    assert np.median(shared) == pytest.approx(1)
    data = stacked(tmp_path / "data.npz", sets, wrong)
    report = checked(tmp_path / "out", data, "--p", "4", "--no-pictures")
    for row in report["suspects"]:
        nothing = row["clip"] in ("set 5", "set 22")
        assert (row["because"] == "nothing") == (row["suspected"] == "") == nothing
    printed = capsys.readouterr().out
    assert (
        "2 clips explained by nothing, sharing with their nearest less than 50 %"
        in printed
    )
    assert re.search(rf"\nset 5 +0 +{100 * shared[5]:.0f} %\n", printed)
    assert re.search(r"\nset 17 +0 +2 ", printed)
    page = (tmp_path / "out" / "report.html").read_text()
    assert f"<td>set 22</td><td>2</td><td>{100 * shared[22]:.0f} %</td>" in page


def test_two_suspects_that_accuse_each_other_are_named_once(tmp_path, capsys):
    """Two classes of two: nobody knows which label of the mixed pairs is wrong."""
    assert accusing([[(1, 0.2)], [(2, 0.1), (0, 0.3)], [(1, 0.3)], []], [2, 0, 1]) == [
        (0, 1),
        (1, 2),
    ]
    assert accusing([[(1, 0.2)], [(0, 0.3)]], [0]) == []
    assert accusing([[(1, 0.2)], [(2, 0.3)], []], [0, 1, 2]) == []
    sets, label = sets_of()
    pair = np.random.default_rng(3).standard_normal((3, 36))
    for i in (3, 12):  # alike, and like no other; one has the label 0, one 1
        made = np.random.default_rng(i).standard_normal((N_FRAMES, 3)) @ pair
        sets[i] = 100 + 40 * made.reshape(N_FRAMES, 6, 6)
    data = stacked(tmp_path / "data.npz", sets, label)
    checked(tmp_path / "out", data, "--p", "3", "--no-pictures")
    words = "set 3 and set 12 accuse each other: one of the two labels may be right"
    assert f"\n{words}\n" in capsys.readouterr().out
    assert words in (tmp_path / "out" / "report.html").read_text()


def test_copies_across_a_split_are_said_before_the_table(tmp_path, capsys):
    sets, label = sets_of()
    sets[3] = sets[2]
    data = stacked(tmp_path / "data.npz", sets, label)
    arguments = ["compare", str(data), "--out", str(tmp_path / "out"), "--no-pictures"]
    main([*arguments, "--methods", "nearest", "--p", "3", "--no-kernels"])
    printed = capsys.readouterr()
    assert "1 pair of copies is in both parts of a split" in printed.out + printed.err
    assert "as set 2 and set 3" in printed.out + printed.err


def test_sets_kept_together_do_not_explain_each_other(tmp_path):
    """A group whose sets all have the wrong label would hide it."""
    sets, label = sets_of(n=9)
    group = np.tile(np.repeat(range(3), 3), 4)
    wrong = label.copy()
    wrong[(label == 0) & (group == 1)] = 3
    every = np.arange(len(sets))
    collection = collection_of(sets, wrong, group=group)
    settings = Settings(kernels=False, lam=[0.1], p=[3])
    inputs = Bank(collection, settings=settings)
    suspects = suspects_among(inputs, settings, math.inf)
    first = suspects.order[:3]
    assert set(first) == set(every[(label == 0) & (group == 1)])
    assert (suspects.suspected[first] == 0).all()


@pytest.mark.parametrize(
    "option", ["--predict y", "--save m.npz", "--kernels", "--methods gsc", "--model m"]
)
def test_check_answers_nothing_else(tmp_path, capsys, option):
    with pytest.raises(SystemExit, match="^2$"):
        main(["check", str(tmp_path), *option.split()])
    assert "unrecognized arguments: --" in capsys.readouterr().err


def test_a_label_that_nothing_else_could_speak_for_is_not_suspect(tmp_path, capsys):
    sets, label = sets_of()
    label = np.where(np.arange(len(sets)) == 31, 4, label)  # a class of one set
    data = stacked(tmp_path / "data.npz", sets, label)
    report = checked(tmp_path / "out", data, "--p", "3", "--center")
    assert "set 31" not in {row["clip"] for row in report["suspects"]}
    assert len(report["suspects"]) == 31
    printed = capsys.readouterr().out
    assert "1 label left out: no other set" in printed and "set 31 " not in printed


# ---------------------------------------------------------------------------- clusters


def test_clips_without_labels_are_put_into_clusters(tmp_path, capsys):
    sets, label = sets_of()
    order = np.argsort(label != 2, kind="stable")[4:]  # class 2 is the smallest
    folder = tmp_path / "data"
    folder.mkdir()
    for i in order:
        np.save(folder / f"clip{i}.npy", sets[i])
    (folder / "broken.npy").write_bytes(b"no array")
    data = [str(folder), "--out", str(tmp_path / "out"), "--center"]
    main(["cluster", *data, "-k", str(len(set(label))), "--dpi", "40"])
    with open(tmp_path / "out" / "clusters.csv", newline="", encoding="utf-8") as file:
        rows = [*csv.DictReader(file)]
    failed = rows.pop()
    assert failed["clip"] == "broken.npy" and "cannot be read" in failed["failed"]
    of_clip = {int(row["clip"][4:-4]): int(row["cluster"]) for row in rows}
    assert sorted(of_clip) == sorted(order)
    pairs = {(label[i], number) for i, number in of_clip.items()}
    assert len(pairs) == len(set(label)) and (2, max(of_clip.values())) in pairs
    for row in rows:
        near = [int(words.split(".npy")[0][4:]) for words in row["because"].split("; ")]
        i = int(row["clip"][4:-4])
        assert i not in near and {of_clip[j] for j in near} == {of_clip[i]}
    sizes = " + ".join(map(str, np.bincount(list(of_clip.values()))[1:]))
    printed = capsys.readouterr()
    line = f"as subspaces weighted by spectrum 0.125: clusters of {sizes}\n"
    page = (tmp_path / "out" / "report.html").read_text()
    assert line in printed.out and line.strip() in page
    assert "29 clips, " in printed.err and "class" not in printed.err
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"clusters.csv", "report.html", MARK, "pictures"}
    pictures = {path.name for path in (tmp_path / "out" / "pictures").iterdir()}
    assert pictures == {"clusters.png", "map.png"}


@pytest.mark.parametrize(
    "arguments, why",
    [
        (["-k", "40"], "-k 40 needs 40 sets, got 32"),
        (["-k", "2", "--check"], "unrecognized arguments: --check"),
        (["-k", "2", "--save", "m"], "unrecognized arguments: --save"),
        (["-k", "0"], "-k must be at least 1, got 0"),
        ([], "the following arguments are required: -k"),
    ],
)
def test_clusters_that_cannot_be_are_refused(tmp_path, arguments, why, capsys):
    data = stacked(tmp_path / "data.npz", *sets_of())
    with pytest.raises(SystemExit) as error:
        main(["cluster", str(data), "--out", str(tmp_path), *arguments])
    assert why in f"{error.value}{capsys.readouterr().err}"


def test_clusters_that_mean_little_are_said(tmp_path, capsys):
    """Sets that are all alike, and sets that share nothing with any other."""
    same = np.random.default_rng(0).standard_normal((5, 12))
    noise = np.random.default_rng(1).standard_normal((6, 5, 5))
    alone = np.zeros((8, 5, 12))
    for i in range(6):
        alone[i, :, :4] = noise[i, :, :4]  # of one space of dimension 4
    alone[6, :, 4:8] = noise[0, :, :4]
    alone[7, :, 8:] = noise[1, :, :4]
    shown = ["-k", "2", "--p", "2", "--no-pictures", "--out"]
    for sets, words in (
        (
            [same, 2 * same, same[::-1], -same],
            "all sets are the same subspace: nothing",
        ),
        (
            [*alone],
            "2 sets share nothing with any other, so that their clusters mean nothing: "
            "set 6, set 7\n",
        ),
    ):
        data = stacked(tmp_path / "data.npz", sets, np.arange(len(sets)) % 2)
        out = tmp_path / f"{len(sets)} sets"
        main(["cluster", str(data), *shown, str(out)])
        assert words in capsys.readouterr().out
        page = (out / "report.html").read_text()
        assert words.strip() in page
    data = stacked(tmp_path / "data.npz", *sets_of())
    main(["cluster", str(data), *shown, str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "share nothing" not in printed and "the same subspace" not in printed


def test_reasons_of_clusters_stay_within_and_the_best_explained_come_first():
    X = core.random_subspaces(30, 12, 3, rng=0)
    clusters = clusters_of(X, 3, 0)
    sizes = np.bincount(clusters.number)[1:]
    assert (np.diff(sizes) <= 0).all() and sizes.sum() == 30 and len(sizes) == 3
    graph = SubspaceClustering(3, random_state=0).fit(X).affinity_matrix_
    within = np.where(clusters.number[:, None] == clusters.number, graph, 0)
    assert (graph > within).any()
    for i, reasons in enumerate(clusters.reasons):
        best = np.sort(within[i])[::-1][:3]
        assert [share for _, share in reasons] == pytest.approx(best[best > 0])
        assert all(clusters.number[j] == clusters.number[i] for j, _ in reasons)
    keys = [(clusters.number[i], -within[i].sum()) for i in clusters.order]
    assert keys == sorted(keys)


def test_what_speaks_for_a_class_is_of_it_positive_and_the_largest():
    shares = core.Shares(
        np.array([[4, 0, 2, 1, 3], [1, 3, 0, -1, -1]]),
        np.array([[0.9, 0.5, 0.4, 0.3, -0.1], [0.6, 0.2, -0.3, 0, 0]]),
    )
    index = np.array([0, 1, 0, 1, 0])
    assert reasons_for(shares, index, [0, 1]) == [
        [(4, 0.9), (0, 0.5), (2, 0.4)],
        [(1, 0.6), (3, 0.2)],
    ]
    assert reasons_for(shares, index, [1, 0]) == [[(1, 0.3)], []]


def test_copies_do_not_speak_for_a_wrong_label_of_both(tmp_path, capsys):
    """A file that was copied together with its label."""
    sets, label = sets_of(n_classes=3)
    sets.append(sets[0])
    label = np.append(label, 1)
    label[0] = 1  # of class 0, as all of its neighbours say
    report = checked(tmp_path / "out", stacked(tmp_path / "s.npz", sets, label))
    assert "1 pair of copies" in capsys.readouterr().out
    first = report["suspects"][:2]
    assert {row["clip"] for row in first} == {"set 0", f"set {len(sets) - 1}"}
    assert all(row["suspected"] == "0" and float(row["suspicion"]) > 0 for row in first)


def test_a_copy_under_another_label_speaks_not_against_the_right_one(tmp_path):
    sets, label = sets_of(n_classes=3)
    data = stacked(tmp_path / "s.npz", [*sets, sets[0]], np.append(label, 1))
    report = checked(tmp_path / "out", data)
    suspects = [row for row in report["suspects"] if float(row["suspicion"]) > 0]
    assert [row["clip"] for row in suspects] == [f"set {len(sets)}"]


def test_clusters_of_clips_that_are_there_twice_are_doubted(tmp_path, capsys):
    sets, _ = sets_of(n_classes=3, n=4)
    for k, rows in enumerate([*sets, *sets]):
        (tmp_path / "data").mkdir(exist_ok=True)
        np.save(tmp_path / "data" / f"{k:02}.npy", rows)
    options = "-k", "3", "--p", "3", "--no-pictures", "--out"
    main(["cluster", str(tmp_path / "data"), *options, str(tmp_path / "out")])
    assert "12 pairs of copies, as 00.npy and 12.npy: " in capsys.readouterr().out


def test_rounding_is_nothing_that_sets_share():
    """Two groups in three directions each, two sets orthogonal to all, in a turned space."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    some = [Q[:, k : k + 3] @ rng.standard_normal((3, 2)) for k in (0, 0, 0, 4, 4, 4)]
    X = np.array([*(np.linalg.qr(A)[0] for A in some), Q[:, 8:10], Q[:, 10:12]])
    clusters = clusters_of(X, 2, 0)
    assert clusters.alone.tolist() == [6, 7]
    assert clusters.reasons[6:] == [[], []]


def test_sets_of_all_directions_are_compared_without_the_last():
    """Else they all share everything, and none would be unlike all others."""
    angles = np.array([0, 0.05, 0.1, 0.15, np.pi / 2])
    c = np.cos(angles)
    s = np.sin(angles)
    X = np.array([[c, -s], [s, c]]).transpose(2, 0, 1)
    shared = shared_with_nearest(Collection(X, *[None] * 3, None, (), np.arange(5)))
    assert (shared[:4] > 0.9).all() and shared[4] < 0.1


def test_what_nothing_explains_is_not_counted_among_wrong_labels(tmp_path, capsys):
    sets, label = sets_of()
    rng = np.random.default_rng(7)
    for i in (5, 13, 22, 29):
        sets[i] = rng.standard_normal(sets[i].shape)
    data = stacked(tmp_path / "data.npz", sets, label)
    report = checked(tmp_path / "out", data, "--p", "4", "--no-pictures")
    odd = [row for row in report["suspects"] if row["because"] == "nothing"]
    assert max(float(row["suspicion"]) for row in odd) > 0
    words = "0 of 32 labels may be wrong; 0 pairs of copies; 4 clips unlike all others"
    assert words in capsys.readouterr().out
