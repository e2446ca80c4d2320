"""Sphinx: the gallery of examples/gallery and the reference from the docstrings (make gallery)."""

import logging
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import grassmann_sc

logging.getLogger("grassmann_sc").setLevel("ERROR")  # pages do not say what was compiled
ROOT = Path(__file__).resolve().parent.parent
project = "grassmann_sc"
author = "the grassmann_sc developers"
copyright = author
version = release = grassmann_sc.__version__
extensions = ["sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["html"]
html_theme = "alabaster"
html_theme_options = {
    "fixed_sidebar": True,
    "sidebar_width": "240px",
    "page_width": "1200px",
    "body_max_width": "none",
    "font_size": "16px",
    "code_font_size": "0.84em",  # so that 100 columns are seen whole
    "description": "Coding and dictionary learning of linear subspaces",
}
html_sidebars = {"**": ["about.html", "navigation.html", "searchbox.html"]}
smartquotes = False
html_show_sourcelink = False
html_copy_source = False
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the text tells shapes and ranges, which say more
autodoc_default_options = {"members": True, "show-inheritance": False}
sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r".*\.py",  # every script is run
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 10**6,
    "capture_repr": (),  # what is shown is what is printed or drawn
}

# ------------------------------------------------------------------------- docstrings as plain text

MARKUP = re.compile(r"([\\*`_|])")  # what is mathematics in a docstring and markup for Sphinx
ITEM = re.compile(r"\w+(, \w+)* : |- ")  # the description of an argument, an entry of a list
SENTENCE = re.compile(r"\w+(, \w+)*: ")  # the same, where the row before it ends with a full stop


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: what flows is a paragraph, lists keep their lines."""
    paragraphs = "\n".join(lines).split("\n\n")
    lines[:] = "\n\n".join(map(as_markup, paragraphs)).split("\n") + [""]


def as_markup(paragraph):
    """A paragraph of plain text as reStructuredText: each item of a list on a line of its own, what
    is indented row by row, an example as it is."""
    rows = paragraph.strip("\n").split("\n")
    if rows[0].lstrip().startswith(">>>"):
        return paragraph
    indented = any(row.startswith(" ") for row in rows)
    items = []
    for row in rows:
        follows = items and items[-1].endswith(".")
        if indented or not items or ITEM.match(row) or follows and SENTENCE.match(row):
            items.append(row)
        else:
            items[-1] += " " + row
    escaped = [MARKUP.sub(r"\\\1", item).rstrip() for item in items]
    if len(items) == 1:
        return escaped[0]
    return "\n".join(f"| {item}".rstrip() for item in escaped)


def setup(app):
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", plain_text)
