"""What makes the pages: links are checked, docstrings become markup, the layout is
that of the imports.
"""

import ast
import importlib
import importlib.util
import re

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

from docs import check_pages, equations, layout, running_times, snippets
from docs.sources import own_files
from grassmann_sc import estimators
from grassmann_sc.baselines import estimators as of_baselines
from processes import CORE, MODULES, ROOT

PICTURES = [name for name in own_files(".png") if name.startswith("docs/pictures/")]
GALLERY = sorted((ROOT / "examples" / "gallery").glob("*.py"))


def write(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8")


def test_whole_pages_pass(tmp_path):
    write(
        tmp_path,
        "a.html",
        '<a href="b%20c.html#here">b</a><a href="https://no.where/x">x</a>',
    )
    write(
        tmp_path, "b c.html", '<p id="here"><a href="#here">self</a><img src="p.png">'
    )
    (tmp_path / "p.png").write_bytes(b"\x89PNG...")
    assert check_pages.missing(tmp_path) == []


@pytest.mark.parametrize(
    "link, why",
    [
        ('<a href="none.html">', "none.html is not there"),
        ('<a href="#nowhere">', "#nowhere names no anchor"),
        ('<img src="gone.png">', "gone.png is not there"),
        ('<img src="text.png">', "text.png is no picture"),
    ],
)
def test_broken_links_are_named(tmp_path, link, why):
    write(tmp_path, "a.html", link)
    write(tmp_path, "text.png", "no picture")
    (line,) = check_pages.missing(tmp_path)
    assert line.endswith(f"a.html: {why}")


def test_a_folder_without_pages_is_no_success(tmp_path):
    assert check_pages.missing(tmp_path) == [f"{tmp_path} holds no page"]


def configuration():
    spec = importlib.util.spec_from_file_location("conf", ROOT / "docs" / "conf.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "text, markup",
    [
        ("||X^ - y_j D_j^||_F*", r"\|\|X^ - y\_j D\_j^\|\|\_F\*"),
        ("words that\nflow", "words that flow"),
        ("a\n    b_1", "| a\n|     b\\_1"),
        ("- one\n- two", "| - one\n| - two"),
        ("words\n\n>>> f(x_1) * 2\n3", "words\n\n>>> f(x_1) * 2\n3"),
    ],
)
def test_docstrings_become_markup_that_shows_them_as_they_are(text, markup):
    lines = text.split("\n")
    configuration().plain_text(None, "function", "f", None, None, lines)
    assert "\n".join(lines).strip() == markup


@pytest.mark.parametrize(
    "text",
    [
        "As it is.\na : one\n    more\nb, c : x_2. lam: a: b.",
        "As it is. a: one more\nb, c: x_2. lam: a: b.",
    ],
)
def test_parameters_become_a_list(text):
    markup = configuration().as_markup(text, {"a", "b", "c", "lam"})
    assert (
        markup
        == "As it is.\n\n``a``\n   one more\n``b, c``\n   x\\_2.\n``lam``\n   a: b."
    )
    assert configuration().as_markup("As it is. d: one", {"a"}) == "As it is. d: one"


@pytest.mark.parametrize("term", ['a="max"', "a, b (1, 2)", "a (1),\nb"])
def test_values_of_parameters_stay_with_their_names(term):
    markup = configuration().as_markup(f"{term}: what it is", {"a", "b"})
    assert markup == f"``{' '.join(term.split())}``\n   what it is"


def test_every_module_has_a_page_in_the_reference(tmp_path, monkeypatch):
    conf = configuration()
    monkeypatch.setattr(conf, "HERE", tmp_path)
    (tmp_path / "reference").mkdir()
    (tmp_path / "reference" / "gone.rst").touch()
    conf.write_reference(None)
    pages = {path.stem for path in (tmp_path / "reference").iterdir()} - {"index"}
    assert pages == {CORE, *MODULES}
    index = (tmp_path / "reference" / "index.rst").read_text(encoding="utf-8")
    assert index.split("\n\n")[-1].split() == [CORE, *MODULES]


def test_every_module_is_once_in_the_table_of_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\S+)\.py` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(name.replace(".", "/") for name in [CORE, *MODULES])


def test_the_page_on_scikit_learn_names_every_estimator_once():
    text = (ROOT / "docs" / "guide" / "scikit_learn.rst").read_text(encoding="utf-8")
    table = text[
        text.index("What each estimator takes") : text.index("A set of frames is")
    ]
    rows = [
        row for row in table.splitlines() if row.startswith("``") and "fit(X" not in row
    ]
    takes = {
        name: row.split("  ")[-1].strip()
        for row in rows
        for name in re.findall(r"``([A-Z]\w+)``", row)
    }
    assert (
        sorted(re.findall(r"``([A-Z]\w+)``", table))
        == sorted(takes)
        == sorted(ESTIMATORS)
    )
    for name, cls in ESTIMATORS.items():
        if takes[name].startswith("the same"):
            takes[name] = takes["GrassmannDictionary"]
        assert takes[name].startswith(TAKEN[taken_by(cls)]), name
        assert takes[name].endswith("labels") == issubclass(cls, estimators.ByScores), (
            name
        )


ESTIMATORS = {
    name: getattr(module, name)
    for module in (estimators, of_baselines)
    for name in module.__all__
}
TAKEN = {
    "OnSubspaces": "subspaces",
    "precomputed": "subspaces or Gram matrices",
    "OnSets": "sets of frames",
    "OnVideos": "videos",
    "SetsTransformer": ("sets of", "videos"),
}


def taken_by(cls):
    """What the bases of a class say that it takes."""
    base = next(base.__name__ for base in cls.__mro__ if base.__name__ in TAKEN)
    if base == "OnSubspaces" and hasattr(cls, "kernel"):
        made = cls.__new__(cls)
        made.kernel = "precomputed"
        return "precomputed" if made.is_precomputed() else base
    return base


WORDS = {  # of the glossary, as pages write them; data sets are no sets of frames
    "clip": "clips?",
    "set": "(?<!data )sets?",
    "subspace": "subspaces?",
    "atom": "atoms?",
    "λ": "λ",
    "p": "p",
    "α": "α",
    "recipe": "recipes?",
    "stack": "stacks?|stacked",
    "split": "splits?",
    "shrinkage": "shrinkage",
}
# what is no running text of a page: directives with what is below them, tables, titles,
# literals and other roles
NO_PROSE = re.compile(
    r"^\.\. .*\n(?:\n| {3}.*\n)*|^=+ [= ]+\n(?:.+\n)*?=+ [= ]+\n(?:.+\n)*?=+ [= ]+$"
    r"|^.*\n[=-]{3,}$|``[^`]*``|:(?!term)\w+:`[^`]*`",
    re.MULTILINE,
)


def test_the_glossary_has_the_words():
    text = (ROOT / "docs" / "glossary.rst").read_text(encoding="utf-8")
    terms = re.findall(r"^   (\S+)$", text, re.MULTILINE)
    assert sorted(terms) == sorted([*WORDS, "alpha", "lambda"])


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    "page", [name for name in own_files(".rst") if name.startswith("docs/guide/")]
)
def test_the_first_use_of_a_word_leads_to_the_glossary(page, word):
    text = NO_PROSE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    link = f":term:`(?:[^`]* <)?{word}>?`"
    use = rf"{link}|(?<![\w/.-])(?:{WORDS[word]})(?![\w_=/-]| =)"
    first = re.search(use, text)
    assert first is None or re.fullmatch(link, first[0]), text[first.start() :][:60]


@pytest.mark.parametrize("page", own_files(".rst") + own_files(".md"))
def test_a_merge_left_nothing_in_a_page(page):
    """A line of signs alone stands below a title, or ends or begins a table."""
    lines = ["", *(ROOT / page).read_text(encoding="utf-8").splitlines()]
    for above, line in zip(lines, lines[1:]):
        assert not line.startswith(("<<<<<<< ", ">>>>>>> "))
        assert line != "=======" or len(above) == 7, above


def test_the_readme_is_short():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 170
    assert max(map(len, lines)) <= 150


def test_the_floor_plan_knows_every_import():
    plan = layout.plan()
    assert plan["learn"] == {"files": True}
    assert plan["discriminative"] == {"learn": False}
    assert plan["baselines.sets"] == {"baselines.jacobi": False}
    assert plan["baselines.tangent"] == {
        "baselines.jacobi": False,
        "intrinsic": False,
        "learn": False,
        "variants": False,
    }
    below = {"estimators": False, "baselines.hulls": False}
    assert plan["baselines.estimators"].items() >= below.items()
    place = layout.places(plan)
    assert set(place) == {*MODULES} - {"shared"}
    assert all(
        place[name][1] > place[other][1] - 0.5
        for name, others in plan.items()
        for other, later in others.items()
        if not later
    )


def test_the_application_is_drawn_without_arrows_that_follow_from_others():
    plan = layout.plan_of_application()
    assert plan["rows"] == {"inner_product": False, "first_tries": False}
    assert plan["__main__"]["options"] is False and plan["__main__"]["results"] is True


@pytest.mark.parametrize("of_application", [False, True])
def test_the_pictures_of_the_imports_are_those_of_the_imports(of_application):
    figure, path = (
        (layout.draw(layout.plan()).figure, layout.PICTURE)
        if not of_application
        else (
            layout.draw(layout.plan_of_application(), core=False).figure,
            layout.OF_APPLICATION,
        )
    )
    assert not snippets.is_out_of_date(path, figure), "python -m docs.layout"
    plt.close(figure)


def test_the_picture_of_running_times_is_that_of_the_table():
    figure = running_times.draw().figure
    assert not snippets.is_out_of_date(running_times.PICTURE, figure)
    plt.close(figure)
    times = running_times.measured()
    assert [*times] == ["gSC", "iSC", "iSC, factors"]
    ratio = np.divide(times["iSC"], times["gSC"])
    assert np.round([ratio.min(), ratio.max()]).tolist() == [6, 20]


def one_line(height):
    figure, ax = plt.subplots(figsize=(1, 1))
    ax.plot([0, height])
    ax.set(ylim=(0, 3))
    plt.close(figure)
    return figure


def test_a_picture_is_written_again_if_it_shows_something_else(tmp_path):
    path = tmp_path / "line.png"
    snippets.keep(one_line(1), path)
    # the pixels of one line in other bytes
    Image.open(path).save(path, compress_level=0)
    first = path.read_bytes()
    snippets.keep(one_line(1), path)
    assert path.read_bytes() == first
    snippets.keep(one_line(2), path)
    assert path.read_bytes() != first


def test_a_picture_is_out_of_date_by_pixels_or_by_size(tmp_path, monkeypatch):
    """Pixels are compared if the same version of Matplotlib drew it, otherwise the size
    alone.
    """
    path = tmp_path / "line.png"
    snippets.keep(one_line(1), path)
    larger = one_line(1)
    larger.set_size_inches(2, 1)
    figures = [one_line(1), one_line(2), larger]
    assert [snippets.is_out_of_date(path, figure) for figure in figures] == [
        False,
        True,
        True,
    ]
    monkeypatch.setattr(snippets, "DRAWN_BY", "Matplotlib 99")
    assert [snippets.is_out_of_date(path, figure) for figure in figures] == [
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("name", PICTURES)
def test_kept_pictures_say_what_drew_them(name):
    with Image.open(ROOT / name) as picture:
        assert picture.info["Software"].startswith("Matplotlib ")


@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_gallery_scripts_open_with_a_title_and_stand_alone(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    title, line, *_ = ast.get_docstring(tree).splitlines()
    assert line == "=" * len(title)
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in named if name.startswith(("examples", "tests"))}


def test_they_are_numbered():
    numbers = [f"{i:02}" for i in range(1, len(GALLERY) + 1)]
    assert [path.stem[:2] for path in GALLERY] == numbers
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(GALLERY) == 12 and "a gallery of twelve examples" in readme


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_pictures_are_there_and_small(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size <= 100_000, picture


@pytest.mark.parametrize("module", equations.OF)
def test_equations_name_functions_of_their_module(module):
    dotted = module if module == CORE else f"{CORE}.{module}"
    functions = vars(importlib.import_module(dotted))
    texts = re.findall(r"\\text\{([^}]*)\}", equations.OF[module])
    named = [text.rpartition(": ")[2].split(", ") for text in texts]
    assert {name for names in named for name in names} - {" with "} <= set(functions)
    assert equations.of(module).startswith(".. math::\n\n   ")
    assert equations.of("scale") == ""
