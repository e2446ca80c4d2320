"""One file to show: report.html, which needs no other file.

It tells what the data are, what came out, and the command that makes it again. It reads
well on a phone and on paper. Clips move on it.
"""

import base64
import html
import io
import platform
import re
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image

import grassmann_sc as core
from grassmann_classify.settings import FORMATS
from grassmann_classify.tables import Table, natural_classes
from grassmann_classify.words import plural, printable, versions

SHOWN = 100  # lines of a table
BREAK = "<wbr>"  # where a line may end
CONFUSION = "The answers of the best row to the clips of each class"  # the first
PICTURES = {  # then in this order before all others
    "answers": "New clips, and labelled clips that speak for their labels",
    "suspects": "Labels that may be wrong, and clips that speak against them",
    "clusters": "Clips of each cluster",
    "wrong": "Clips with wrong answers, and labelled clips that speak for these",
    "map": "All sets as points in the plane",
}
MOST_BYTES = 12_000
QUALITIES = (50, 30, 15, 5)
EACH = 200  # milliseconds of a frame
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}  # of pictures that it can hold
STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #222; margin: 0 auto; padding: 1rem;
       max-width: 80rem; }
h1 { font-size: 1.5rem; line-height: 1.2; } h2 { font-size: 1.15rem; margin-top: 2rem; }
p { max-width: 45rem; overflow-wrap: anywhere; }
.wide { overflow-x: auto; display: inline-block; vertical-align: top; max-width: 100%;
        margin: 0 2rem 1rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; }
th, td { border-bottom: 1px solid #ddd; padding: 0.25rem 0.6rem; text-align: left;
         vertical-align: top; overflow-wrap: anywhere; }
th, td.number { overflow-wrap: normal; }
td.number, th.number { text-align: right; }
td:first-child { min-width: 4rem; }
td.number { white-space: nowrap; }
tr.best td { font-weight: bold; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start; }
.pictures > img { max-width: min(100%, 38rem); height: auto; }
.sheet { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; }
.row { display: flex; flex-wrap: wrap; gap: 0.5rem; break-inside: avoid; }
.gap { width: 0.75rem; }
figure { margin: 0; width: 8rem; font-size: 0.75rem; line-height: 1.3; }
figure img { width: 100%; height: auto; display: block; image-rendering: pixelated; }
figure.strip { width: 16rem; }
figcaption { overflow-wrap: anywhere; }
pre { background: #f4f4f4; padding: 0.75rem; white-space: pre-wrap;
      overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 0.5rem; } table { font-size: 0.7rem; }
  th, td { padding: 0.2rem 0.15rem; } td.number { white-space: normal; } .wide { margin-right: 0; }
  figure { width: 5.2rem; } }
@media print { body { font-size: 10pt; max-width: none; } .wide { overflow: visible; }
  table { font-size: 8pt; } .pictures > img { max-height: 12cm; max-width: 47%; }
  figure { width: 2.6cm; }
  h2, tr, img { break-inside: avoid; } h2 { break-after: avoid; } }
"""


class Report:
    """What a run tells, section by section; save writes it as one file.

    title: of the page; command: as it was typed.
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

    def table(self, table):
        """A tables.Table: its title as a section, its notes as paragraphs."""
        first = len(table.columns) - table.numbers

        def cells(row, tag):
            for k, value in enumerate(row):
                kind = ' class="number"' if k >= first else ""
                # a line a reason; names may end one behind / or _
                lines = map(html.escape, str(value).split("; "))
                words = re.sub("± +", "±&nbsp;", "<br>".join(lines))
                words = re.sub("[/_]", rf"\g<0>{BREAK}", words)
                yield f"<{tag}{kind}>{words}</{tag}>"

        if table.title:
            self.section(table.title)
        if table.rows:
            lines = [f"<tr>{''.join(cells(table.columns, 'th'))}</tr>"]
            for r, row in enumerate(table.rows[:SHOWN]):
                kind = ' class="best"' if r == table.best else ""
                lines.append(f"<tr{kind}>{''.join(cells(row, 'td'))}</tr>")
            lines = "".join(lines)
            self.parts.append(f'<div class="wide"><table>{lines}</table></div>')
        if len(table.rows) > SHOWN:
            self.text(f"The first {SHOWN} of {len(table.rows)}.")
        if table.notes:
            self.text("\n".join(table.notes))

    def picture(self, path, words):
        """A picture from its file, if it is of a kind that a page can hold."""
        kind = KINDS.get(path.suffix)
        if kind is None:
            self.text(f"{words}: {path.name}")
            return
        words = html.escape(words)
        self.parts.append(
            f'<img alt="{words}" src="{as_url(path.read_bytes(), kind)}">'
        )

    def sheet(self, rows, note=""):
        """Clips that move, in rows, where the reader does not ask for less motion.

        rows: of (film (n, height, width) in uint8, words) or None, which leaves a gap.
        """
        made = {}
        lines = []
        for row in rows:
            cells = [
                '<span class="gap"></span>' if cell is None else _figure(*cell, made)
                for cell in row
            ]
            lines.append(f'<div class="row">{"".join(cells)}</div>')
        self.parts.append(f'<div class="sheet">{"".join(lines)}</div>')
        if note:
            self.text(f"{note[0].upper()}{note[1:]}.")

    def save(self, out):
        """Write the page, whole or not at all, into results.Results."""
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


def _figure(film, words, made):
    """A figure of a film; made: {id of a film: its addresses}, made once each."""
    if id(film) not in made:
        made[id(film)] = as_url(animated(film)), as_url(still(film))
    moving, at_rest = made[id(film)]
    lines = html.escape(words).replace("\n", "<br>").replace("_", f"_{BREAK}")
    alt = html.escape(" ".join(words.split()))
    less = "print, (prefers-reduced-motion: reduce)"
    source = f'<source media="{less}" srcset="{at_rest}">' if len(film) > 1 else ""
    size = f'width="{film.shape[2]}" height="{film.shape[1]}"'
    image = f'<img alt="{alt}" {size} src="{moving}">'
    kind = ' class="strip"' if film.shape[2] > 2 * film.shape[1] else ""
    below = f"<figcaption>{lines}</figcaption>"
    return f"<figure{kind}><picture>{source}{image}</picture>{below}</figure>"


def about(collection, n_clips):
    """What the sets are, in words, and the Table of clips that could not be used."""
    n = len(collection.label)
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
    return words, unusable(collection.unusable, n_clips)


def unusable(why, n_clips):
    """The Table of clips that could not be used, and why."""
    title = f"{len(why)} of {plural(n_clips, 'clip')} could not be used"
    return Table(["clip", "why"], [*why.items()], title if why else "")


def add_pictures(report, out, slugs=None, sheets=None):
    """Add the pictures that the run has left, of methods those of the slugs.

    The confusion matrix of these stands first. sheets: {name of a picture: (rows, note)}
    of Report.sheet, which stand in place of these pictures.
    """
    sheets = sheets if sheets and can_move() else {}
    left = {Path(name).stem: out.written[name] for name in sorted(out.written)}
    words = {f"confusion_{slug}": CONFUSION for slug in slugs or ()} | PICTURES
    shown = []
    for stem in dict.fromkeys([*words, *left]):
        path = left.get(stem)
        is_of_row = stem.startswith(("confusion_", "codes_", "atoms_"))
        chosen = slugs is None or any(stem.endswith(f"_{slug}") for slug in slugs)
        if (
            stem not in sheets
            and path is not None
            and path.suffix[1:] in FORMATS
            and (chosen or not is_of_row)
        ):
            shown.append((path, words.get(stem, stem.replace("_", " "))))
    if shown:
        report.section("Pictures")
        report.parts.append('<div class="pictures">')
        for path, caption in shown:
            report.picture(path, caption)
        report.parts.append("</div>")
    for stem, sheet in sheets.items():
        report.section(PICTURES[stem])
        report.sheet(*sheet)


def report_on(paths, path, what):
    """The Report of a run on what lies at this path, with the command."""
    return Report(f"{printable(Path(path).resolve().name)}: {what}", paths.command)


def can_move():
    """Does this Pillow write WebP? Its wheels do."""
    from PIL import features  # not before a page is saved

    return features.check("webp")


def animated(film):
    """A film (n, height, width) in uint8 as WebP: bytes, at most MOST_BYTES of them.

    If it is too long for these at the least quality, with every second frame.
    """
    images = [Image.fromarray(frame) for frame in film]
    for quality in QUALITIES:
        file = io.BytesIO()
        more = {"append_images": images[1:], "save_all": True, "loop": 0}
        images[0].save(file, "WEBP", quality=quality, duration=EACH, **more)
        if len(file.getvalue()) <= MOST_BYTES:
            return file.getvalue()
    return animated(film[::2])


def still(film):
    """Its middle frame as WebP."""
    file = io.BytesIO()
    Image.fromarray(film[len(film) // 2]).save(file, "WEBP", quality=QUALITIES[0])
    return file.getvalue()


def as_url(content, kind="image/webp"):
    """The bytes of an image as the address of an image of a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
