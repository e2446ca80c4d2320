"""report.html: one page that needs no other file and tells what the run told."""

import base64
import csv
import io
import json
import shlex
from html.parser import HTMLParser
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from grassmann_classify import Recipe, Settings, fit, load, save
from grassmann_classify.__main__ import main
from grassmann_classify.baseline_rows import meaning
from grassmann_classify.clips import Clip, films_of, strip
from grassmann_classify.page import SHOWN, Report, plot_accuracies, webp
from grassmann_classify.results import Results
from grassmann_classify.settings import Paths
from grassmann_classify.tables import Comparison, Table
from grassmann_sc import plots

FEW = ["--no-kernels", "--methods", "nearest,gsc,svm"]
NAMES = ["<b>ape", r"bee & $\cost$"]  # what HTML and formulas would read


def content_of(url):
    head, content = url.split(",", 1)
    assert head in ("data:image/png;base64", "data:image/webp;base64")
    return base64.b64decode(content)


class Page(HTMLParser):
    """headings, paragraphs, rows of all tables (the best marked), pictures, the command.

    films, at_rest: the clips that move, and what is shown in place of them.
    """

    def __init__(self, path):
        super().__init__()
        self.tags = []
        self.texts = {"h1": [], "h2": [], "p": [], "pre": [], "title": []}
        self.rows = []
        self.best = []
        self.pictures = []
        self.films = []
        self.at_rest = []
        self.links = []
        self.ids = []
        self.n_leads = 0
        self.captions = 0
        self.folded = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        held = dict(attributes)
        if tag in ("br", "wbr"):
            self.handle_data("; " if tag == "br" and "table" in self.tags else "")
            return
        self.links += [held[name] for name in ("src", "href") if name in held]
        self.ids += [held[name] for name in ("id",) if name in held]
        if tag == "figure":
            self.figure = held.get("class")
        self.captions += tag == "figcaption" and self.figure == "picture"
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
            if held.get("class") == "best":
                self.best.append(self.rows[-1])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag in self.texts:
            self.texts[tag].append("")
            self.n_leads += held.get("class") == "lead"
        if tag == "source":
            self.at_rest.append((held["media"], content_of(held["srcset"])))
        if tag == "img":
            content = content_of(held["src"])
            moves = held["src"].startswith("data:image/webp;base64,")
            assert held["alt"]
            (self.films if moves else self.pictures).append(content)
            if "details" in self.tags:
                self.folded.add(content)

    @property
    def leads(self):
        return self.texts["p"][: self.n_leads]

    def handle_data(self, data):
        tag = self.tags[-1] if self.tags else ""
        if {"td", "th"} & {*self.tags}:
            self.rows[-1][-1] += data.replace("\xa0", " ")
        elif tag in self.texts:
            self.texts[tag][-1] += data

    def handle_endtag(self, tag):
        if tag in self.tags:
            while self.tags.pop() != tag:
                pass


@pytest.fixture
def data(tmp_path):
    """Two classes of six clips whose names hold what HTML would read; one is damaged."""
    rng = np.random.default_rng(0)
    patterns = rng.random((2, 3, 96))
    for c, name in enumerate(NAMES):
        (tmp_path / "data" / name).mkdir(parents=True)
        for k in range(6):
            rows = rng.random((6, 3)) @ patterns[c] + 8 * rng.random((6, 96))
            frames = (255 * rows / rows.max()).astype(np.uint8).reshape(6, 8, 12)
            np.save(tmp_path / "data" / name / f"{k}.npy", frames)
    (tmp_path / "data" / NAMES[0] / "cut<off>.npy").write_bytes(b"\x93NUMPY")
    return tmp_path


def page_of(folder, command, *arguments):
    """The page of a command on the data; of predict the data are those to learn from.

    Results go to a folder of the command's name.
    """
    data = ["--data"] * (command == "predict") + [str(folder / "data")]
    out = ["--out", str(folder / command), "--dpi", "30"]
    main([command, *data, *arguments, *out])
    return Page(folder / command / "report.html")


def test_a_page_of_an_evaluation_tells_what_the_files_tell(data):
    page = page_of(data, "compare", "--repeats", "5", *FEW, "--p", "2")
    with open(data / "compare" / "results.json", encoding="utf-8") as file:
        results = json.load(file)
    header = ["row", "accuracy, %", "±", "behind, points", "as good", "seconds"]
    table = page.rows[page.rows.index(header) :]
    rows = {row[0]: row for row in reversed(table)}
    for name, result in results["methods"].items():
        assert rows[name][1:3] == [f"{result['mean']:.1f}", f"{result['std']:.1f}"]
        behind = results["comparison"]["behind"].get(name)
        assert rows[name][3] == ("" if behind is None else f"{behind:.1f}")
        good = name in results["comparison"]["as_good"]
        assert rows[name][4] == ("yes" if good else "")
    (best,) = page.best
    first = results["comparison"]["first"]
    assert best[0] == first
    assert ["gSC", meaning("gSC")] in table
    text = " ".join(page.texts["p"])
    assert f"{NAMES[0]} (6), {NAMES[1]} (6)" in text and "6 in a set" in text
    assert any(
        "cut<off>.npy" in row[0] and "cannot be read" in row[1] for row in page.rows
    )
    (command,) = page.texts["pre"]
    words = shlex.split(command)
    at = words.index("compare")
    assert words[:at] in (
        ["grassmann-classify"],
        ["python", "-m", "grassmann_classify"],
    )
    assert words[at + 1 :][:4] == [str(data / "data"), "--repeats", "5", "--no-kernels"]
    assert (
        page.texts["title"]
        == page.texts["h1"]
        == ["data: how well its classes are told apart"]
    )
    mean = results["comparison"]["accuracy"][first]
    n = results["comparison"]["n_units"]
    chance = results["comparison"]["chance"]
    is_chance = mean - chance <= results["comparison"]["difference"]
    assert 9 < n <= 12 and page.leads[0] == (
        f"{first} is right for {mean:.1f} % of 30 answers on {n} test clips (chance: "
        f"{chance:.0f} %{', which is as good' * is_chance})."
    )
    pictures = {
        path.stem: path.read_bytes()
        for path in (data / "compare" / "pictures").glob("*.png")
    }
    wrong = pictures.pop("wrong", None)
    assert {*page.pictures} == {*pictures.values()}
    assert len(page.pictures) == len(pictures) == page.captions > 6
    assert page.pictures[0] == pictures["accuracies"]
    assert page.folded == {
        content for name, content in pictures.items() if name.startswith("confusion")
    }
    assert bool(page.films) == (wrong is not None)
    source = (data / "compare" / "report.html").read_text(encoding="utf-8")
    assert "<script" not in source and "<b>ape" not in source
    assert all(link.startswith(("data:", "#")) for link in page.links)
    targets = [link[1:] for link in page.links if link.startswith("#")]
    assert {*targets} <= {*page.ids} and len({*page.ids}) == len(page.ids)


def test_each_wrong_cell_of_the_confusion_leads_to_its_clips(data):
    page = page_of(data, "compare", "--repeats", "4", *FEW, "--p", "2", "--no-pictures")
    with open(data / "compare" / "results.json", encoding="utf-8") as file:
        results = json.load(file)
    first = results["comparison"]["first"]
    confusion = np.array(results["methods"][first]["confusion"])
    assert not page.pictures and confusion.shape == (2, 2)
    at = page.rows.index(["class", *NAMES])
    counts = [
        [int(cell or 0) for cell in row[1:]] for row in page.rows[at + 1 : at + 3]
    ]
    assert counts == confusion.tolist() and confusion[0, 1] + confusion[1, 0] > 2
    for i, j in ((0, 1), (1, 0)):
        assert (f"#c{i}-{j}" in page.links) == (confusion[i, j] > 0)
        assert (f"c{i}-{j}" in page.ids) == (confusion[i, j] > 0)
    columns = ["wrong clip", "class", "answer", "what decided", "times"]
    wrong = page.rows[page.rows.index(columns) + 1 :]
    wrong = wrong[: sum(len(row) == 5 for row in wrong)]
    times = [int(row[4]) for row in wrong if len(row) == 5 and row[4].isdigit()]
    assert sum(times) == confusion[0, 1] + confusion[1, 0]
    assert times == sorted(times, reverse=True)


def test_pages_of_suspects_answers_and_clusters_hold_their_tables(data):
    new = data / "data" / NAMES[1]
    page = page_of(data, "predict", str(new), "--methods", "gsc", "--no-kernels")
    with open(
        data / "predict" / "predictions.csv", newline="", encoding="utf-8"
    ) as file:
        answers = [
            [row["clip"], row["answer"] or "unlike all classes"]
            for row in csv.DictReader(file)
        ]
    assert [row[:2] for row in page.rows[1:]] == answers
    assert (
        data / "predict" / "pictures" / "answers.png"
    ).exists() and not page.pictures
    check_films(page)
    page = page_of(data, "check")
    with open(data / "check" / "suspects.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if float(row["suspicion"]) > 0]
    held = [row[:3] for row in page.rows]
    assert all([row["clip"], row["label"], row["suspected"]] in held for row in rows)
    page = page_of(data, "cluster", "-k", "2")
    with open(data / "cluster" / "clusters.csv", newline="", encoding="utf-8") as file:
        rows = {row["clip"]: row["cluster"] for row in csv.DictReader(file)}
    for clip, cluster in rows.items():
        assert not cluster or [clip, cluster] in page.rows


def check_films(page):
    """Each clip moves in a few small frames, and stands still where that is asked for."""
    assert page.films and page.at_rest
    for film in page.films:
        assert len(film) <= 20_000
    n_frames = [Image.open(io.BytesIO(film)).n_frames for film in page.films]
    assert sum(n > 1 for n in n_frames) == len(page.at_rest)
    for media, image in page.at_rest:
        assert "prefers-reduced-motion: reduce" in media and "print" in media
        assert Image.open(io.BytesIO(image)).n_frames == 1


def test_a_noisy_clip_of_any_size_moves_in_twenty_thousand_bytes():
    rng = np.random.default_rng(0)
    film = rng.integers(0, 256, (12, 64, 64)).astype(np.uint8)
    moving = webp(film)
    assert len(moving) <= 20_000 and 1 < Image.open(io.BytesIO(moving)).n_frames <= 12
    calm = np.repeat(np.arange(0, 240, 20, np.uint8), 64 * 48).reshape(12, 64, 48)
    image = Image.open(io.BytesIO(webp(calm)))
    assert (image.n_frames, image.size) == (12, (48, 64))
    image.seek(6)
    assert np.mean(image.convert("L")) == pytest.approx(120, abs=6)
    middle = Image.open(io.BytesIO(webp(calm[6:7]))).convert("L")
    assert np.mean(middle) == pytest.approx(120, abs=6)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 60])
def test_a_film_has_frames_at_even_steps_and_its_strip_three(n):
    frames = np.repeat(np.arange(n, dtype=np.uint8), 24).reshape(n, 4, 6) * 4
    frames[:, -1, -1] = 255  # not dark, so not stretched
    clip = Clip("c", None, None, [frames])
    (film,) = films_of(["c"], np.arange(1), [clip], Recipe())
    shown = (film[:, 0, 0] // 4).tolist()
    assert len(film) == min(n, 12) and shown == sorted({*shown})
    steps = np.diff(shown) if n > 1 else [1]
    assert max(steps) - min(steps) <= 1
    assert abs(shown[0] - (n - 1 - shown[-1])) <= 1
    part = strip(film)
    few = min(n, 3)
    assert part.shape == (4, 6 * few + 2 * (few - 1))
    assert part[0, 0] in film[:, 0, 0] and (few == 1 or (part[:, 6:8] == 255).all())
    each = [Clip("c", None, None, [*frames[:, None]])]  # a source a frame
    (again,) = films_of(["c"], np.arange(1), each, Recipe())
    assert len(again) == min(n, 12)


def test_films_are_in_colour_where_clips_are(tmp_path):
    rng = np.random.default_rng(0)
    coloured = rng.integers(0, 256, (12, 12, 10, 3), np.uint8)
    grey = rng.integers(0, 256, (12, 12, 10), np.uint8)
    alike = np.repeat(grey[..., None], 3, axis=3)
    (tmp_path / "photos").mkdir()
    for k, frame in enumerate(coloured):
        Image.fromarray(frame).save(tmp_path / "photos" / f"{k}.png")
    sources = [coloured, tmp_path / "photos", np.pad(coloured, [(0, 0)] * 3 + [(0, 1)])]
    clips = [
        Clip(f"{i}", i % 2, None, [s]) for i, s in enumerate([*sources, grey, alike])
    ]
    films = films_of("01234", np.arange(5), clips, Recipe())
    for film in films[:3]:
        np.testing.assert_array_equal(film, coloured)
        part = strip(film)
        assert part.shape == (12, 34, 3) and (part[:, 10:12] == 255).all()
    for film in films[3:]:
        np.testing.assert_array_equal(film, grey)
    both = [Clip("both", 0, None, [grey[:1], coloured[:1]])]
    (film,) = films_of(["both"], [0], both, Recipe())
    assert film.shape == (2, 12, 10, 3) and (film[0] == film[0, ..., :1]).all()
    red = np.full((1, 32, 32, 3), [200, 10, 30], np.uint8)
    shown = np.asarray(Image.open(io.BytesIO(webp(red))).convert("RGB"))
    assert np.abs(shown.astype(int) - red[0]).max() < 16


def test_a_model_keeps_pictures_in_grey_and_in_colour(tmp_path):
    rng = np.random.default_rng(0)
    grey = [*rng.integers(0, 256, (3, 5, 12, 10), np.uint8)]
    coloured = [*rng.integers(0, 256, (3, 5, 12, 10, 3), np.uint8)]
    few = Settings(methods=["gsc"], kernels=False, p=[1])
    model = fit([*grey, *coloured], [0, 0, 0, 1, 1, 1], settings=few)
    assert [image.ndim for image in model.pictures] == [2] * 3 + [3] * 3
    save(tmp_path / "model.npz", model)
    for image, same in zip(load(tmp_path / "model.npz").pictures, model.pictures):
        np.testing.assert_array_equal(image, same)


def test_a_picture_that_cannot_be_drawn_costs_neither_page_nor_others(
    data, monkeypatch, capsys
):
    def broken(*_, **__):
        raise ValueError("disk\nfull")

    monkeypatch.setattr(plots, "plot_sheet", broken)
    monkeypatch.setattr(plots, "plot_gram", broken)
    page = page_of(data, "compare", "--repeats", "2", *FEW, "--p", "2")
    printed = capsys.readouterr().err
    assert (
        "no picture gram: disk full\n" in printed
        and "no picture wrong: disk full" in printed
    )
    assert (data / "compare/pictures/map.png").read_bytes() in page.pictures
    page_of(data, "cluster", "-k", "2")
    assert "no picture clusters: disk full" in capsys.readouterr().err


def report_in(out, what, command="command --of mine", data="data"):
    """A Report into results.Results."""
    return Report(out, Paths(command=command, dpi=30), Path(data), what)


def test_long_tables_are_cut_and_pictures_of_other_kinds_named(tmp_path):
    rows = [[i] for i in range(2 * SHOWN)]
    with Results(tmp_path / "out") as out:
        report = report_in(out, "many")
        report.table(Table(["number"], rows, "Many", ["A note."], numbers=1, best=1))
        report.paths = report.paths._replace(format="pdf")
        report.draw("map", "a map", lambda: plt.subplots(figsize=(1, 1))[1])
        report.save()
    page = Page(tmp_path / "out" / "report.html")
    assert {"Many", "A note."} <= {*page.texts["p"]}
    assert len(page.rows) == SHOWN + 1 and page.best == [["1"]]
    assert f"The first {SHOWN} of {2 * SHOWN}." in page.texts["p"]
    assert "pictures/map.pdf" in page.texts["p"] and not page.pictures
    assert (tmp_path / "out" / "pictures" / "map.pdf").exists()


def test_the_picture_of_accuracies_has_splits_means_chance_and_the_mark():
    results = {"gSC": [80.0, 90.0], "SVM": [50.0, 70.0], "failed": [100.0]}
    results = {
        name: [{"accuracy": share} for share in shares]
        for name, shares in results.items()
    }
    means = {"gSC": 85.0, "SVM": 60.0}
    comparison = Comparison("gSC", means, {}, ["gSC"], chance=33.0)
    ax = plot_accuracies(results, comparison)
    labels = ax.get_yticklabels()
    assert [label.get_text() for label in labels] == ["SVM", "gSC"]
    assert [label.get_weight() for label in labels] == ["normal", "bold"]
    lines = [[*line.get_xdata()] for line in ax.get_lines()]
    assert lines == [[50, 70], [60, 60], [80, 90], [85, 85], [33, 33]]
    colors = [line.get_color() for line in ax.get_lines()]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    plt.close(ax.figure)


HOSTILE = "<script>alert('x')</script> & \"quotes\""


def test_whatever_a_page_is_told_is_text(tmp_path):
    """In title, headings, paragraphs, cells, the command and what pictures are called."""
    with Results(tmp_path / "out") as out:
        report = report_in(out, HOSTILE, HOSTILE, HOSTILE.replace("/", "|"))
        report.section(HOSTILE)
        report.text(HOSTILE)
        report.table(Table([HOSTILE], [[HOSTILE]], HOSTILE, [HOSTILE], best=0))
        report.lead(HOSTILE)
        report.draw("map", HOSTILE, lambda: plt.subplots(figsize=(1, 1))[1])
        report.save()
    path = tmp_path / "out" / "report.html"
    text = path.read_text(encoding="utf-8")
    assert "<script" not in text and text.count("&lt;script&gt;") == 14
    page = Page(path)
    title = f"{HOSTILE.replace('/', '|')}: {HOSTILE}"
    assert page.texts["title"] == page.texts["h1"] == [title]
    assert page.texts["pre"] == [HOSTILE]
    assert page.texts["h2"][0] == HOSTILE and page.leads == [HOSTILE]
    assert page.rows == [[HOSTILE], [HOSTILE]] and len(page.pictures) == 1
    assert page.texts["p"].count(HOSTILE) == 4  # the lead, a text, a title, a note


def test_each_reason_has_a_line_and_names_end_one_at_their_marks():
    report = report_in(None, "a")
    report.table(Table(["because"], [["run/take_1.avi 0.5; a<b/2 0.2"]]))
    (table,) = report.parts
    reasons = "run/<wbr>take_<wbr>1.avi 0.5<br>a&lt;b/<wbr>2 0.2"
    assert f"<td>{reasons}</td>" in table
