"""Sphinx: the gallery of examples/gallery and the reference from the docstrings (make gallery)."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import grassmann_sc

ROOT = Path(__file__).resolve().parent.parent
project = "grassmann_sc"
author = "the grassmann_sc developers"
copyright = author
version = release = grassmann_sc.__version__
extensions = ["sphinx.ext.autodoc", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["html"]
html_theme = "alabaster"
html_theme_options = {"fixed_sidebar": True, "page_width": "1100px",
                      "description": "Coding and dictionary learning of linear subspaces"}
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
ITEM = re.compile(r"[\w, ]+ ?: |[-0-9]")  # the description of an argument, an entry of a list


def plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: what flows is a paragraph, lists keep their lines."""
    paragraphs = "\n".join(lines).split("\n\n")
    lines[:] = "\n\n".join(map(as_markup, paragraphs)).split("\n") + [""]


def as_markup(paragraph):
    """A paragraph of plain text as reStructuredText: a list line by line, an example as it is."""
    rows = paragraph.strip("\n").split("\n")
    if rows[0].lstrip().startswith(">>>"):
        return paragraph
    escaped = [MARKUP.sub(r"\\\1", row) for row in rows]
    itemized = any(ITEM.match(row) for row in rows)
    indented = any(row.startswith(" ") for row in rows)
    if not (itemized or indented):
        return "\n".join(escaped)
    return "\n".join(f"| {row}".rstrip() if row.strip() else "|" for row in escaped)


def setup(app):
    """What Sphinx calls."""
    app.connect("autodoc-process-docstring", plain_text)
