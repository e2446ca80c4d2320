"""Sphinx: the pages, the gallery of examples/gallery, and the reference from the
docstrings (make pages).
"""

import inspect
import logging
import os
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import matplotlib

import grassmann_sc
from docs import equations, snippets, sources
from grassmann_sc import frames

# pages do not say what was compiled
logging.getLogger("grassmann_sc").setLevel("ERROR")
matplotlib.use("agg")
HERE = Path(__file__).resolve().parent
project = "grassmann_sc"
author = "the grassmann_sc developers"
copyright = author
version = release = grassmann_sc.__version__
extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["html"]
names = ", ".join(f"``{name}``" for name in frames.DESCRIPTORS)
rst_prolog = f".. |descriptors| replace:: {names}\n"
html_theme = "furo"  # light and dark, wide and narrow
html_title = f"grassmann_sc {version}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
smartquotes = False
html_show_sourcelink = False
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the text tells shapes and ranges, which say more
# beyond it, each parameter on a line of its own
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"
autodoc_default_options = {"members": True}
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r".*\.py",  # every script is run
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "remove_config_comments": True,
    "min_reported_time": 10**6,
    "capture_repr": (),  # what is shown is what is printed or drawn
}

# -------------------------------------------------------- pictures, and a page a module


def draw_pictures(app):
    """What the guide's snippets draw, where its pages show it."""
    cwd = os.getcwd()
    for page in sorted(HERE.glob("guide/*.rst")):
        # of the files that snippets write
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                snippets.run(page, snippets.keep)
            finally:
                os.chdir(cwd)


def write_reference(app):
    """A page for each module, and what lists them."""
    folder = HERE / "reference"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.rst"):
        old.unlink()
    for module in sources.modules():
        name = module if module == sources.CORE else f"{sources.CORE}.{module}"
        title = f"{module}\n{'=' * len(module)}\n\n"
        text = f"{title}{equations.of(module)}.. automodule:: {name}\n"
        (folder / f"{module}.rst").write_text(text, encoding="utf-8")
    listed = "".join(f"   {module}\n" for module in sources.modules())
    (folder / "index.rst").write_text(REFERENCE + listed, encoding="utf-8")


REFERENCE = """Reference
=========

From the docstrings, as they stand in the files. Every module is imported through the core:
``from grassmann_sc import learn``.

.. toctree::
   :maxdepth: 1

"""

# ------------------------------------------------------------- docstrings as plain text

# what is mathematics in a docstring and markup for Sphinx
MARKUP = re.compile(r"([\\*`_|])")
ESCAPED = r"\\\1"
ITEM = re.compile(r"- ")  # an entry of a list


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: what flows is a paragraph, parameters are a list of
    fields.
    """
    parameters = names_of_parameters(obj)
    paragraphs = "\n".join(lines).split("\n\n")
    lines[:] = "\n\n".join(as_markup(text, parameters) for text in paragraphs).split(
        "\n"
    ) + [""]


def skipped(app, what, name, obj, skip, options):
    """What scikit-learn adds to every estimator to pass metadata on."""
    return skip or re.fullmatch(r"set_\w+_request", name) is not None


def names_of_parameters(obj):
    """Of a function or a class; of anything else none."""
    try:
        return set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return set()


def as_markup(paragraph, parameters=()):
    """A paragraph of plain text as reStructuredText: an example as it is, parameters as
    a list of definitions, what is indented row by row, each entry of a list on a line
    of its own.
    """
    text = paragraph.strip("\n")
    if text.lstrip().startswith(">>>"):
        return paragraph
    named = described(parameters, text)
    starts = [match.start() for match in named] + [len(text)]
    listed = [
        f"``{' '.join(match[1].split())}``\n   {flowing(text[match.end() : end])}"
        for match, end in zip(named, starts[1:])
    ]
    before = text[: starts[0]].strip("\n")
    return "\n\n".join(
        [as_rows(before)] * bool(before) + ["\n".join(listed)] * bool(listed)
    )


def described(parameters, text):
    """Where descriptions of parameters begin: p: ...; center, rank ("raise", "pad"):
    ...; lam_scale="max": ..., at the start of a row or sentence.
    """
    if not parameters:
        return []
    name = rf'(?:{"|".join(parameters)})(?:="\w+"| \([^()]*\))?'
    return list(
        re.finditer(rf"(?:^|(?<=\. ))({name}(?:,\s{name})*) ?:\s", text, re.MULTILINE)
    )


def flowing(text):
    """Rows as one, escaped."""
    return MARKUP.sub(ESCAPED, " ".join(text.split()))


def as_rows(text):
    """A paragraph, or rows where some are indented or entries of a list."""
    rows = text.split("\n")
    if any(row.startswith(" ") or ITEM.match(row) for row in rows):
        return "\n".join("| " + MARKUP.sub(ESCAPED, row).rstrip() for row in rows)
    return flowing(text)


def setup(app):
    """What Sphinx calls."""
    app.connect("builder-inited", draw_pictures)
    app.connect("builder-inited", write_reference)
    app.connect("autodoc-process-docstring", plain_text)
    app.connect("autodoc-skip-member", skipped)
