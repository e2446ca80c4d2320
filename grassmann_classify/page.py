"""One file to show: report.html, which needs no other file.

It tells what was asked, of which data, what came out, and the command that makes it
again. It reads well on a phone and on paper.
"""

import base64
import html
import importlib.metadata
import platform
from collections import Counter
from pathlib import Path

import numpy as np

import grassmann_sc as core
from grassmann_classify.evaluation import natural_classes
from grassmann_classify.messages import plural, printable
from grassmann_classify.settings import FORMATS

PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
SHOWN = 100  # lines of a table
CONFUSION = "The answers of the best row to the clips of each class"  # the first
PICTURES = {  # then in this order before all others
    "answers": "New clips, and labelled clips that speak for their labels",
    "suspects": "Labels that may be wrong, and clips that speak against them",
    "clusters": "Clips of each cluster",
    "learning": "Accuracy with fewer labelled clips",
    "dimension": "Accuracy with subspaces of dimension p",
    "spectrum": "Accuracy with weighted subspaces",
    "wrong": "Clips with wrong answers, and labelled clips that speak for these",
    "map": "All sets as points in the plane",
}
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}  # of pictures that it can hold
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; padding: 1rem;
       max-width: 60rem; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.875rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left;
         vertical-align: top; }
td:last-child { min-width: 14rem; }
td.number, th.number { text-align: right; white-space: nowrap; }
tr.best td { font-weight: bold; }
img { max-width: 100%; height: auto; display: block; margin: 1rem 0; }
pre { background: #f4f4f4; padding: 0.75rem; white-space: pre-wrap;
      overflow-wrap: anywhere; }
@media print { body { font-size: 10pt; max-width: none; } .wide { overflow: visible; }
  table { font-size: 8pt; } img { max-height: 23cm; max-width: 100%; }
  h2, tr, img { break-inside: avoid; } h2 { break-after: avoid; } }
"""


def versions():
    """{package: its version} of those on which numbers depend."""
    return {name: importlib.metadata.version(name) for name in PACKAGES}


class Report:
    """What a run tells, section by section; save writes it as one file.

    title: of the page; command: what was asked, in words of the command line.
    """

    def __init__(self, title, command):
        self.title = title
        self.command = command
        self.parts = []

    def section(self, heading):
        self.parts.append(f"<h2>{html.escape(heading)}</h2>")

    def text(self, *paragraphs):
        for words in paragraphs:
            lines = html.escape(str(words)).replace("\n", "<br>")
            self.parts.append(f"<p>{lines}</p>")

    def table(self, header, rows, best=(), numbers=()):
        """best: indices of the rows in bold; numbers: of the columns that hold numbers."""

        def cells(row, tag):
            for k, value in enumerate(row):
                kind = ' class="number"' if k in numbers else ""
                yield f"<{tag}{kind}>{html.escape(str(value))}</{tag}>"

        lines = [f"<tr>{''.join(cells(header, 'th'))}</tr>"]
        for r, row in enumerate(rows[:SHOWN]):
            kind = ' class="best"' if r in best else ""
            lines.append(f"<tr{kind}>{''.join(cells(row, 'td'))}</tr>")
        self.parts.append(f'<div class="wide"><table>{"".join(lines)}</table></div>')
        if len(rows) > SHOWN:
            self.text(f"The first {SHOWN} of {len(rows)}.")

    def picture(self, path, words):
        """A picture from its file, if it is of a kind that a page can hold."""
        kind = KINDS.get(path.suffix)
        if kind is None:
            self.text(f"{words}: {path.name}")
            return
        content = base64.b64encode(path.read_bytes()).decode()
        words = html.escape(words)
        self.parts.append(f'<img alt="{words}" src="data:{kind};base64,{content}">')

    def save(self, out):
        """Write the page, whole or not at all, into a folder.Results."""
        made_by = [f"grassmann_sc {core.__version__}"]
        made_by += [f"{name} {number}" for name, number in versions().items()]
        made_by += [f"Python {platform.python_version()}", platform.system()]
        self.section("Made again")
        self.parts.append(f"<pre>{html.escape(self.command)}</pre>")
        self.text(", ".join(made_by))
        title = html.escape(self.title)
        page = (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{STYLE}</style></head>\n"
            f"<body><h1>{title}</h1>\n" + "\n".join(self.parts) + "\n</body></html>\n"
        )
        # names of files may hold bytes that are no text
        content = page.encode("utf-8", "replace")
        out.write("report.html", lambda file: file.write(content))


def report_data(report, collection, clips):
    """What the sets are, and what was left out and why."""
    report.section("The data")
    n, d, _ = collection.X.shape
    counts = Counter(collection.label.tolist())
    classes = [f"{c} ({counts[c]})" for c in natural_classes(collection.label)]
    words = (
        f"{plural(n, 'set')} of {plural(len(classes), 'class')}: {', '.join(classes)}."
    )
    if len(collection.frame) == 2:
        words += f" Frames of {collection.frame[0]} x {collection.frame[1]} pixels."
    if collection.sets is not None:
        lengths = [len(rows) for rows in collection.sets]
        each = " to ".join(map(str, sorted({min(lengths), max(lengths)})))
        words += f" {sum(lengths)} frames, {each} in a set."
    if collection.group is not None:
        words += f" {plural(len(np.unique(collection.group)), 'group')}."
    report.text(words)
    report_failed(report, collection.unread, len(clips))


def report_failed(report, unread, n_clips):
    """Add the clips that could not be used and why, if there are any."""
    if unread:
        report.text(f"{len(unread)} of {plural(n_clips, 'clip')} could not be used:")
        report.table(["clip", "why"], [*unread.items()])


def save_report(report, out, slugs=None):
    """Add the pictures that the run has left, of methods those of the slugs; save it.

    The confusion matrix of these stands first.
    """
    report.section("Pictures")
    left = {Path(name).stem: out.written[name] for name in sorted(out.written)}
    confusions = {f"confusion_{one}": CONFUSION for one in slugs or ()}
    words = confusions | PICTURES
    for stem in dict.fromkeys([*words, *left]):
        path = left.get(stem)
        of_method = stem.startswith(("confusion_", "codes_", "atoms_"))
        chosen = slugs is None or any(stem.endswith(f"_{one}") for one in slugs)
        if (
            path is not None
            and path.exists()
            and path.suffix[1:] in FORMATS
            and (chosen or not of_method)
        ):
            report.picture(path, words.get(stem, stem.replace("_", " ")))
    report.save(out)


def report_on(options, path, what):
    """The Report of a run on what lies at this path, with what was asked."""
    return Report(f"{printable(Path(path).resolve().name)}: {what}", options.command)
