"""What a run shows: pictures, sheets of clips, and report.html, which holds them all.

The page needs no other file. It tells what the data are, what came out, and the command
that makes it again. It reads well on a phone and on paper. Clips move on it.
"""

import base64
import html
import io
import platform
import re
from collections import Counter
from functools import partial
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, features

import grassmann_sc as core
from grassmann_classify.clips import films_of, strip
from grassmann_classify.tables import (
    Table,
    all_answers,
    compared,
    natural_classes,
    successes,
)
from grassmann_classify.words import (
    UNLIKE,
    all_in_words,
    plural,
    printable,
    slug,
    to_stderr,
    versions,
)
from grassmann_sc import plots

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
# of the pictures that a page can hold, and of those that it can name alone
KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".pdf": None}
PICTURED_ATOMS = 40
PICTURED = 12  # clips of a sheet
TYPICAL = 6  # clips of a cluster in its sheet
PICTURED_P = 3  # of the Gram matrix and the map
LINE = 20  # letters under an image of a sheet
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
    """What a run tells, section by section, and its pictures; save writes it as one file.

    out: the results.Results; paths: where pictures go and how they look; path: what the
    run is on, and what: what it tells, both for the title.
    """

    def __init__(self, out, paths, path, what):
        self.out = out
        self.paths = paths
        self.title = f"{printable(Path(path).resolve().name)}: {what}"
        self.parts = []
        self.sheets = {}

    def section(self, heading):
        self.parts.append(f"<h2>{html.escape(heading)}</h2>")

    def about(self, collection, n_clips):
        """What the sets are, and the clips that could not be used."""
        counts = Counter(collection.label.tolist())
        classes = [f"{c} ({counts[c]})" for c in natural_classes(collection.label)]
        n = plural(len(collection.label), "set")
        words = f"{n} of {plural(len(classes), 'class')}: {', '.join(classes)}."
        if len(collection.frame) == 2:
            words += " Frames of {} x {} pixels.".format(*collection.frame)
        if collection.sets is not None:
            lengths = [len(rows) for rows in collection.sets]
            each = " to ".join(map(str, sorted({min(lengths), max(lengths)})))
            words += f" {sum(lengths)} frames, {each} in a set."
        if collection.group is not None:
            words += f" {plural(len(np.unique(collection.group)), 'group')}."
        self.section("The data")
        self.text(words)
        self.table(unusable(collection.unusable, n_clips))

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

    def draw(self, name, title, plot, *arrays, **choices):
        """Draw and save one picture; if it cannot be drawn, say so."""
        matplotlib.use("agg")
        kind = self.paths.format
        ax = None
        try:
            ax = plot(*arrays, **choices)
            ax.set_title(printable(title).replace("$", r"\$"), fontsize=10)
            self.out.write(
                f"{name}.{kind}",
                partial(ax.figure.savefig, format=kind, dpi=self.paths.dpi),
            )
        except Exception as error:
            why = " ".join(str(error).split())
            to_stderr(f"no picture {name}: {why or type(error).__name__}")
        finally:
            if ax is not None:
                plt.close(ax.figure)

    def sheet(self, name, title, rows, note=""):
        """Draw clips in rows, if there are any, as strips of frames; on the page they move.

        name: of PICTURES; rows: of (film (n, height, width) in uint8, words) or None,
        which leaves a gap.
        """
        if rows:
            strips = [
                [cell and (strip(cell[0]), cell[1]) for cell in row] for row in rows
            ]
            self.draw(name, title, plots.plot_sheet, strips, note=note)
            self.sheets[name] = rows, note

    def _add_pictures(self, slugs):
        """The pictures that the run has left, of methods those of the slugs, None: all.

        The confusion matrix of these stands first. Where Pillow writes WebP, as its
        wheels do, clips move, where the reader does not ask for less motion.
        """
        sheets = self.sheets if features.check("webp") else {}
        words = {f"confusion_{slug}": CONFUSION for slug in slugs or ()} | PICTURES
        paths = {path.stem: path for _, path in sorted(self.out.written.items())}
        shown = [
            paths[stem]
            for stem in dict.fromkeys([*words, *paths])
            if stem in paths
            and stem not in sheets
            and paths[stem].suffix in KINDS
            and (
                slugs is None
                or not stem.startswith(("confusion_", "codes_", "atoms_"))
                or stem.endswith(tuple(f"_{slug}" for slug in slugs))
            )
        ]
        if shown:
            self.section("Pictures")
            self.parts.append('<div class="pictures">')
            for path in shown:
                alt = html.escape(words.get(path.stem, path.stem.replace("_", " ")))
                kind = KINDS[path.suffix]
                self.parts.append(
                    f'<img alt="{alt}" src="{as_url(path.read_bytes(), kind)}">'
                    if kind
                    else f"<p>{alt}: {html.escape(path.name)}</p>"
                )
            self.parts.append("</div>")
        made = {}
        for name, (rows, note) in sheets.items():
            self.section(PICTURES[name])
            self.parts.append('<div class="sheet">')
            for row in rows:
                cells = [_figure(cell, made) for cell in row]
                self.parts.append(f'<div class="row">{"".join(cells)}</div>')
            self.parts.append("</div>")
            if note:
                self.text(f"{note[0].upper()}{note[1:]}.")

    def save(self, slugs=None):
        """Write the page, whole or not at all, of methods with pictures of the slugs."""
        self._add_pictures(slugs)
        made_by = [f"grassmann_sc {core.__version__}"]
        made_by += [f"{name} {number}" for name, number in versions().items()]
        made_by += [f"Python {platform.python_version()}", platform.system()]
        self.section("Made again")
        self.parts.append(f"<pre>{html.escape(self.paths.command)}</pre>")
        self.text(", ".join(made_by))
        title = html.escape(self.title)
        page = (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{STYLE}</style></head>\n"
            f"<body><h1>{title}</h1>\n" + "\n".join(self.parts) + "\n</body></html>\n"
        )
        # names of files may hold bytes that are no text
        page = page.encode("utf-8", "replace")
        self.out.write("report.html", lambda file: file.write(page))


def _figure(cell, made):
    """A figure of a cell of a sheet; made: {id of a film: its addresses}, once each."""
    if cell is None:
        return '<span class="gap"></span>'
    film, words = cell
    if id(film) not in made:
        middle = film[len(film) // 2 :][:1]
        made[id(film)] = as_url(animated(film)), as_url(webp(middle))
    moving, at_rest = made[id(film)]
    lines = html.escape(words).replace("\n", "<br>").replace("_", f"_{BREAK}")
    alt = html.escape(" ".join(words.split()))
    less = "print, (prefers-reduced-motion: reduce)"
    source = f'<source media="{less}" srcset="{at_rest}">' if len(film) > 1 else ""
    kind = ' class="strip"' if film.shape[2] > 2 * film.shape[1] else ""
    return (
        f"<figure{kind}><picture>{source}"
        f'<img alt="{alt}" width="{film.shape[2]}" height="{film.shape[1]}" '
        f'src="{moving}"></picture><figcaption>{lines}</figcaption></figure>'
    )


def unusable(why, n_clips):
    """The Table of clips that could not be used, and why."""
    title = f"{len(why)} of {plural(n_clips, 'clip')} could not be used"
    return Table(["clip", "why"], [*why.items()], title if why else "")


def animated(film):
    """A film (n, height, width) in uint8 as WebP: bytes, at most MOST_BYTES of them.

    If it is too long for these at the least quality, with every second frame.
    """
    for quality in QUALITIES:
        content = webp(film, quality)
        if len(content) <= MOST_BYTES:
            return content
    return animated(film[::2])


def webp(film, quality=QUALITIES[0]):
    """A film as WebP of this quality: bytes."""
    first, *others = (Image.fromarray(frame) for frame in film)
    file = io.BytesIO()
    how = {"append_images": others, "save_all": True, "loop": 0, "duration": EACH}
    first.save(file, "WEBP", quality=quality, **how)
    return file.getvalue()


def as_url(content, kind="image/webp"):
    """The bytes of an image as the address of an image of a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


# ----------------------------------------------------------------------------- pictures


def draw_results(report, key, collection, clips, pairs, results, arrays):
    """Draw confusion matrices, wrong clips, Gram matrix, map, codes and atoms.

    Codes and atoms are those of the last split. If one picture cannot be drawn, the
    report says so and has the others.
    """
    label = collection.label.tolist()
    data = printable(report.paths.data.stem)
    how = {}
    for name, splits in results.items():
        done = successes(splits)
        if not done:
            continue
        truth, predicted = all_answers(collection.label, pairs, splits)
        accuracy = np.mean([split["accuracy"] for split in done])
        how[slug(name)] = f"{name}, {data}\n{all_in_words(done[-1]['chosen'])}"
        report.draw(
            f"confusion_{slug(name)}",
            f"{name}\n{data}: {accuracy:.1f} %",
            plots.plot_confusion,
            truth.tolist(),
            predicted.tolist(),
            n_splits=len(done),
        )
    _draw_wrong_clips(report, data, collection, clips, pairs, results, key)
    p = min(PICTURED_P, collection.X.shape[2])
    K = core.projection_kernel(collection.X[:, :, :p])
    report.draw(
        "gram", f"Projection kernel, p = {p}, {data}", plots.plot_gram, K, label
    )
    report.draw("map", f"{len(K)} sets of {data}, p = {p}", plots.plot_map, K, label)
    _draw_codes(report, how, collection.label, arrays)
    if len(collection.frame) != 2:
        to_stderr("no picture of the atoms: they are made of features, not of pixels")
    else:
        _draw_atoms(report, how, data, collection, arrays)


def _draw_wrong_clips(report, data, collection, clips, pairs, results, key):
    """The clips that the best method got wrong, with what speaks for its answers.

    That is what a coding method with the same answer tells.
    """
    name = compared(results, pairs).first
    if name is None:
        return
    splits = results[name]
    label = collection.label
    wrong = {}
    for k, (split, (_, test)) in enumerate(zip(splits, pairs)):
        for place, i in enumerate([] if split["failed"] else test):
            answer = split["predicted"][place]
            if answer != label[i]:
                # what a row that codes tells with the same answer
                alike = [
                    row[k]["reasons"][int(i)]
                    for row in results.values()
                    if row[k]["reasons"] and row[k]["predicted"][place] == answer
                ]
                wrong.setdefault(int(i), []).append((answer, [*alike, []][0]))
    leads = {}
    for i in sorted(wrong, key=lambda i: -len(wrong[i]))[:PICTURED]:
        counts = Counter(answer for answer, _ in wrong[i])
        # of the most frequent answer
        answer, reasons = max(wrong[i], key=lambda pair: counts[pair[0]])
        words = f"{called(label[i])}, not {called(answer)}"
        words += f"\n{len(wrong[i])} times" if len(wrong[i]) > 1 else ""
        leads[i] = words, reasons
    rows = rows_of_sheet(collection, clips, key, leads)
    note = "a clip with its class and the answer; labelled clips that speak for that"
    n_wrong = sum(map(len, wrong.values()))
    n_tested = sum(len(test) for _, test in pairs[: len(splits)])
    part = f"{len(rows)} of " if len(rows) < len(wrong) else ""
    title = (
        f"{name}, {data}\n{part}{plural(len(wrong), 'clip')} with a wrong answer, "
        f"{n_wrong} of {plural(n_tested, 'answer')}"
    )
    report.sheet("wrong", title, rows, note)


def _draw_codes(report, how, label, arrays):
    """how: {slug of a method: title}."""
    atoms = label[arrays["train"]].tolist()
    for key in [key for key in arrays if key.startswith("codes_")]:
        learned = key.replace("codes", "atoms", 1) in arrays
        labelled = not learned and arrays[key].shape[1] == len(atoms)
        report.draw(
            key,
            how[key.removeprefix("codes_")],
            plots.plot_codes,
            arrays[key],
            label[arrays["test"]].tolist(),
            atom_labels=atoms if labelled else None,
        )


def _draw_atoms(report, how, data, collection, arrays):
    """Draw the learned atoms, or the first labelled set of each class."""
    blocks = {"n_blocks": collection.X.shape[1] // np.prod(collection.frame)}
    learned = [key for key in arrays if key.startswith("atoms_")]
    for key in learned:
        report.draw(
            key,
            how[key.removeprefix("atoms_")],
            plots.plot_atoms,
            arrays[key][:PICTURED_ATOMS],
            collection.frame,
            **blocks,
        )
    if not learned:
        train = arrays["train"]
        classes, first = np.unique(collection.label[train], return_index=True)
        report.draw(
            "atoms",
            f"A labelled set of each class, {data}",
            plots.plot_atoms,
            collection.X[train[first[:PICTURED_ATOMS]]],
            collection.frame,
            labels=classes[:PICTURED_ATOMS].tolist(),
            **blocks,
        )


def draw_answers(report, model, new, collection, answers, possible):
    """New clips, the least sure first, with what speaks for label and runner-up.

    A model has a strip of each labelled clip, which stands still.
    """
    if model.pictures is None or answers.ahead is None or not len(answers.names):
        return
    order = np.argsort(answers.ahead, kind="stable")[:PICTURED]
    places = [collection.names.index(answers.names[i]) for i in order]
    key = model.recipe.key
    films = films_of(collection.names, collection.clip, new, key, places)
    kept = [None if image is None else image[None] for image in model.pictures]
    rows = []
    for i, film in zip(order, films):
        parts = [
            [(kept[j], speaking(label, share, model.names[j])) for j, share in reasons]
            for label, reasons in zip(
                (answers.labels[i], answers.runner_up[i]), answers.reasons[i]
            )
        ]
        words = f"{called(answers.labels[i])}\n{caption(answers.names[i])}"
        words += f"\n{UNLIKE}" * (possible[i] == UNLIKE)
        rows += [] if film is None else [row_of(film, words, *parts)]
    note = "a new clip; labelled clips that speak for its label, and for the runner-up"
    title = (
        f"{plural(len(rows), 'new clip')} of {len(answers.names)}, the least sure first\n"
        f"{model.method}"
    )
    report.sheet("answers", title, rows, note)


def draw_suspects(report, key, collection, clips, suspects, first):
    """The first suspects, with what speaks for another class."""
    leads = {}
    for i in first:
        words = f"{called(collection.label[i])}; {called(suspects.suspected[i])}?"
        leads[i] = words, suspects.reasons[i]
    rows = rows_of_sheet(collection, clips, key, leads)
    note = "a clip with its label and another class; clips that speak for that"
    report.sheet(
        "suspects", "Labels that may be wrong, the most suspect first", rows, note
    )


def draw_clusters(report, key, clips, collection, clusters):
    """The first clips of the largest clusters, a row each."""
    rows = []
    for k in range(1, min(clusters.number.max(), PICTURED) + 1):
        members = [i for i in clusters.order if clusters.number[i] == k]
        first = members[:TYPICAL]
        films = films_of(collection.names, collection.clip, clips, key, first)
        size = f"cluster {k}, {plural(len(members), 'set')}\n"
        row = [
            (film, f"{size if i == first[0] else ''}{caption(collection.names[i])}")
            for i, film in zip(first, films)
            if film is not None
        ]
        rows += [row] if row else []
    report.sheet("clusters", "In each cluster, what the others explain best", rows)


def rows_of_sheet(collection, clips, key, leads):
    """Rows of sets that have images, and of what speaks for another class of theirs.

    leads {set: (words, [(set, share), ...])}.
    """
    names = collection.names
    label = collection.label
    others = (j for _, reasons in leads.values() for j, _ in reasons)
    involved = sorted({*leads, *others})
    films = films_of(names, collection.clip, clips, key, involved)
    films = dict(zip(involved, films))
    rows = []
    for i, (words, reasons) in leads.items():
        part = [(films[j], speaking(label[j], share, names[j])) for j, share in reasons]
        if films[i] is not None:
            words = f"{words}\n{caption(names[i], label[i])}"
            rows.append(row_of(films[i], words, part))
    return rows


def row_of(image, words, *parts):
    """A row of a sheet: an image, and what explains it.

    parts: [(image or None, words), ...] each, with a gap before each part.
    """
    row = [(image, words)]
    for part in parts:
        shown = [cell for cell in part if cell[0] is not None]
        row += [None, *shown] if shown else []
    return row


def speaking(label, share, name):
    """The caption of a labelled clip that speaks for its class by this share."""
    return f"{called(label)} {share:.2g}\n{caption(name, label)}"


def called(label):
    """What a class is called in a caption: a number alone would tell little.

    >>> called("run"), called("3"), called(2.5)
    ('run', 'class 3', 'class 2.5')
    """
    return f"class {label}" if re.fullmatch(r"-?[\d.]+", str(label)) else f"{label}"


def caption(name, label=None):
    """The name of a clip in two lines, without its class folder and its ending.

    If it is longer, without the part before the second line's.

    >>> caption("run/person_03_outdoors_take_2.avi", "run")
    'person_03_outdoors\\n_take_2'
    """
    name = re.sub(r"\.\w{1,4}$", "", name.removeprefix(f"{label}/"))
    if len(name) <= LINE:
        return name
    breaks = rf"(?s).{{{LINE // 2},{LINE}}}(?=[\W_])|.{{{LINE}}}"
    at = re.match(breaks, name).end()
    end = name[at:]
    return f"{name[:at]}\n{end if len(end) <= LINE else '…' + end[1 - LINE :]}"
