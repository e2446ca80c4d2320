"""The blocks of README and pages print what they say, and make demo README's table."""

import os
import re
import shlex
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pytest

from docs import snippets
from docs.sources import ROOT, own_files
from examples import table_digits
from grassmann_classify.__main__ import main
from grassmann_classify.arrays import labelled_stretches, load_npz
from grassmann_classify.settings import Recipe
from grassmann_sc import principal_angles, projection_kernel

README = ROOT / "README.md"
GUIDE = ROOT / "docs" / "guide"
PAGES = [
    README,
    *(ROOT / name for name in own_files(".rst") if name.startswith("docs/")),
]
PROGRAMS = [
    page for page in PAGES if "python" in [kind for kind, _ in snippets.pieces(page)]
]


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A folder for what snippets write, and no figure left of theirs."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    plt.close("all")


def blocks_with(page, part):
    """The blocks of a page that hold this part."""
    return [
        text
        for kind, text in snippets.pieces(page)
        if kind != "picture" and part in text
    ]


def run(folder, *arguments):
    """What Python prints in that folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    process = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def accuracies(text):
    """{method: accuracy} from a printed table."""
    rows = re.findall(r"^(\w.*?\w) {2,}(\d+\.\d) .*\w$", text, re.MULTILINE)
    return {method: float(number) for method, number in rows}


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_pages_print_what_they_say_and_draw_what_they_show(page, elsewhere):
    out_of_date = {}  # of the pictures drawn, by their paths

    def compare(figure, path):
        out_of_date[path] = snippets.is_out_of_date(path, figure)

    pairs = snippets.run(page, compare)
    assert all(printed == promised for printed, promised in pairs), pairs
    assert pairs or page.stem == "testing"
    assert not any(out_of_date.values()), f"make pages draws others: {out_of_date}"
    assert out_of_date or page.parent != GUIDE


def test_every_page_of_the_guide_is_named_by_the_index_and_by_readme():
    pages = [page.stem for page in PAGES if page.parent == GUIDE]
    assert "folders" in pages
    for text in (
        README.read_text(encoding="utf-8"),
        (ROOT / "docs" / "index.rst").read_text(encoding="utf-8"),
    ):
        assert all(f"guide/{page}" in text for page in pages)


def test_a_page_that_prints_something_else_is_found(tmp_path):
    page = tmp_path / "page.rst"
    page.write_text(
        ".. code-block:: python\n\n   x = 2\n\n.. code-block:: python\n\n"
        "   print(x)\n   print(3)\n\nand\n\n.. code-block:: text\n\n   2\n   4\n",
        encoding="utf-8",
    )
    assert snippets.run(page) == [("2\n3\n", "2\n4\n")]


def test_the_page_on_tests_finds_the_bug_of_a_stranger():
    names = {}
    page = ROOT / "docs" / "testing.rst"
    for kind, text in snippets.pieces(page):
        if kind == "python":
            # no file: hypothesis looks for its lines
            exec(compile(text, "<page>", "exec"), names)
            # the line before: a first call compiles
            given = re.findall(r"(.*)\n@given", text)
            assert (
                all(line.startswith("@settings(deadline=None)") for line in given)
                and given
            )
    with pytest.raises(AssertionError) as failure:
        names["test_my_angles"]()
    notes = re.sub(r"\s+", " ", "".join(failure.value.__notes__))
    (promised,) = blocks_with(page, "X=array")
    assert re.sub(r"\s+", " ", promised).strip() in notes
    names["my_angles"] = principal_angles
    names["test_my_angles"]()
    with pytest.raises(AssertionError):
        names["test_my_gram"]()
    names["my_gram"] = projection_kernel
    names["test_my_gram"]()


def test_the_page_on_arrays_writes_files_that_the_commands_read(elsewhere):
    snippets.run(GUIDE / "arrays.rst")
    clips, parts = load_npz("digits.npz")
    assert [clip.sources[0].shape for clip in clips] == [(8, 8, 8)] * 120
    assert [clip.label for clip in clips] == list(np.repeat(range(10), 12))
    assert all(clip.group is None for clip in clips)
    ((_, train, _),) = parts.pairs
    assert [*train] == [f"set {i}" for i in range(0, 120, 2)]
    clips, _ = load_npz("bases.npz")
    assert {clip.sources[0].columns.shape for clip in clips} == {(64, 4)}


def test_the_page_on_sensors_makes_the_recording_that_it_tells_of(elsewhere, capsys):
    page = GUIDE / "sensors.rst"
    snippets.run(page)
    capsys.readouterr()
    options = Recipe(1, window=100, step=50), "activity", "person"
    clips, _ = labelled_stretches(elsewhere / "day.csv", *options)
    assert {len(clip.sources[0]) for clip in clips} == {1000}
    assert "day.csv@3000" in [clip.name for clip in clips]
    (printed,) = blocks_with(page, "456 sets of frames")
    assert printed.startswith(capsys.readouterr().err)


def test_the_page_on_folders_makes_a_tree_that_compare_reads(elsewhere, capsys):
    (commands,) = blocks_with(GUIDE / "folders.rst", "compare digits")
    _, (_, program), (_, module, *words) = map(
        shlex.split, commands.split(".venv/bin/python")
    )
    exec(program)
    assert module == "grassmann_classify"
    main(words)
    printed = capsys.readouterr().out
    words = r"^120 sets of 10 classes, \d+ recipes; 3 splits: random splits"
    assert re.search(words, printed, re.MULTILINE)
    assert len(accuracies(printed)) == 12
    assert min(accuracies(printed).values()) > 90
    names = {path.name for path in (elsewhere / "out").rglob("*")}
    assert names >= {"results.json", "map.png", "gram.png", "report.html"}


def test_quickstart_prints_three_methods_and_leaves_three_pictures(tmp_path):
    printed = accuracies(run(tmp_path, "-m", "examples.quickstart"))
    assert list(printed) == ["nearest subspace", "gSC", "gLC"]
    (promised,) = blocks_with(README, "80 labelled sets, 516 queries\n")
    assert printed == accuracies(promised)
    pictures = {path.name for path in (tmp_path / "out").iterdir()}
    assert pictures == {"planes.png", "angles.png", "codes.png"}


def test_table_digits_prints_the_table_of_the_readme(elsewhere, capsys):
    table_digits.main()
    splits, _, table = capsys.readouterr().out.partition("80 sets of 3")
    assert (
        len(re.findall(r"^split +\d+ of 10:(?: +\d+\.\d){10}$", splits, re.MULTILINE))
        == 10
    )
    printed = accuracies(table)
    (promised,) = map(accuracies, blocks_with(README, "\nkgSC "))
    assert len(printed) == 10
    assert printed.keys() == promised.keys()
    assert all(abs(printed[method] - promised[method]) <= 0.5 for method in printed), (
        printed
    )
    assert printed["nearest subspace"] < 95
    pictures = {path.stem for path in (elsewhere / "out").iterdir()}
    assert pictures == {"atoms", "convergence", "codes_learned", "angles_pair"}
