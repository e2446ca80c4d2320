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
from datetime import datetime

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image, features

import grassmann_sc as core
from grassmann_classify.clips import films_of, strip
from grassmann_classify.tables import (
    Table,
    all_answers,
    each_class,
    each_group,
    natural_classes,
    successes,
)
from grassmann_classify.words import (
    UNLIKE,
    explained,
    grouped,
    labelled,
    plural,
    printable,
    slug,
    to_stderr,
    versions,
)
from grassmann_sc import plots

SHOWN = 100  # lines of a table
MANY = 30  # classes, above which their confusion is a picture alone
BREAK = "<wbr>"  # where a line may end
CAPTIONS = {  # what to see in a picture, by the first word of its name
    "accuracies": "Each dot is a split, each line the mean of a row; rows in bold are as "
    "good as the best within chance, the dashed line is chance.",
    "confusion": "A line a class, a column an answer: what is off the diagonal is wrong.",
    "gram": "How alike the subspaces of any two clips are, the clips of a class beside each "
    "other: a bright block on the diagonal is a class that holds together.",
    "map": "A point a clip, near each other where subspaces are alike: what overlaps is "
    "hard to tell apart.",
    "answers": "A new clip, the least sure first; labelled clips that speak for its answer, "
    "and for the runner-up.",
    "suspects": "A clip with its label and another class, the most suspect first; clips that "
    "speak for that class.",
    "clusters": "In each cluster the clip that the others explain best; clips that share most "
    "with it.",
    "wrong": "A clip with its class and the answer, the most often wrong first; labelled clips "
    "that speak for that answer.",
    "timeline": "A bar a recording: colours are answers, hatched where unlike all classes.",
}
MOST_BYTES = 12_000
QUALITY = 50
EACH = 200  # milliseconds of a frame
# of the pictures that a page can hold, and of those that it can name alone
KINDS = {".png": "image/png", ".svg": "image/svg+xml", ".pdf": None}
PICTURED = 12  # clips of a sheet
PICTURED_P = 3  # of the Gram matrix and the map
DECIDED = 2  # labelled clips that are named as what decided
STYLE = """
:root { color-scheme: light dark; --line: #ddd; --soft: #f4f4f4; --text: #222;
        --back: #fff; --link: #0060a0; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --soft: #2a2a2a; --text: #ddd;
  --back: #1b1b1b; --link: #7fc0ff; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--text); background: var(--back);
       margin: 0; padding: 1rem; }
a { color: var(--link); }
h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 0.5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 0.75rem; }
p { max-width: 60rem; overflow-wrap: anywhere; margin: 0.5rem 0; }
.lead { font-size: 1.15rem; max-width: 60rem; }
.when { font-size: 0.85rem; }
nav { margin-bottom: 1rem; }
nav a { display: inline-block; margin-right: 1rem; }
.wide { overflow-x: auto; display: inline-block; vertical-align: top; max-width: 100%;
        margin: 0 2rem 1rem 0; }
table { border-collapse: collapse; font-size: 0.875rem; }
th, td { border-bottom: 1px solid var(--line); padding: 0.25rem 0.6rem; text-align: left;
         vertical-align: top; overflow-wrap: anywhere; }
th, td.number { overflow-wrap: normal; }
td.number, th.number { text-align: right; }
td:first-child { min-width: 4rem; }
td.number { white-space: nowrap; }
tr.best td { font-weight: bold; }
tr:target td { background: rgba(230, 159, 0, 0.3); }
.picture { margin: 0 0 1rem; width: auto; font-size: 0.875rem; }
.picture img { max-width: min(100%, 46rem); width: auto; height: auto; background: #fff; }
.picture figcaption { max-width: 46rem; }
.sheet { display: flex; flex-wrap: wrap; gap: 0.75rem; }
.row { display: flex; gap: 1rem; overflow-x: auto; break-inside: avoid; max-width: 100%;
       box-sizing: border-box; border: 1px solid var(--line); padding: 0.5rem; }
.gap { flex: 0 0 0.75rem; }
.row figure { margin: 0; flex: 0 0 8rem; font-size: 0.75rem; line-height: 1.3; }
.row figure img { width: 100%; height: auto; display: block; image-rendering: pixelated; }
.row figure.strip { flex-basis: 16rem; }
figcaption { overflow-wrap: anywhere; }
pre { background: var(--soft); padding: 0.5rem 0.75rem; white-space: pre-wrap;
      overflow-wrap: anywhere; max-width: 60rem; margin: 0.5rem 0; }
summary { cursor: pointer; margin: 1rem 0; }
@media (min-width: 1000px) { body { display: grid; grid-template-columns: 12rem 1fr;
  gap: 0 2.5rem; padding: 1.5rem 2rem; } nav { position: sticky; top: 1.5rem;
  align-self: start; } nav a { display: block; margin: 0 0 0.4rem; }
  main { min-width: 0; } }
@media (max-width: 40rem) { body { padding: 0.5rem; } table { font-size: 0.7rem; }
  th, td { padding: 0.2rem 0.15rem; } td.number { white-space: normal; }
  .wide { margin-right: 0; } .row figure { flex-basis: 5.2rem; }
  .row figure.strip { flex-basis: 10rem; } }
@media print { :root { --line: #ddd; --soft: #f4f4f4; --text: #000; --back: #fff; }
  body { display: block; font-size: 10pt; } nav { display: none; }
  .wide, .row { overflow: visible; } table { font-size: 8pt; }
  .picture img { max-height: 12cm; } .row figure { flex-basis: 2.6cm; }
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
        self.title = f"{printable(path.resolve().name)}: {what}"
        self.headings = []
        self.leads = []
        self.parts = []
        self.folded = []  # pictures that are shown when they are asked for

    def lead(self, *sentences):
        """What the run concludes, below the title."""
        self.leads += [
            f'<p class="lead">{html.escape(words)}</p>' for words in sentences
        ]

    def section(self, heading):
        self.headings.append(heading)
        self.parts.append(f'<h2 id="s{len(self.headings)}">{html.escape(heading)}</h2>')

    def about(self, collection):
        """What the sets are, and the clips that could not be used."""
        counts = Counter(collection.label.tolist())
        classes = [f"{c} ({counts[c]})" for c in natural_classes(collection.label)]
        words = (
            f"{plural(len(collection.label), 'set')} of "
            f"{plural(len(classes), 'class')}: {', '.join(classes)}."
        )
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
        self.table(unusable(collection.unusable))

    def text(self, *paragraphs):
        for words in paragraphs:
            lines = html.escape(str(words)).replace("\n", "<br>")
            self.parts.append(f"<p>{lines}</p>")

    def table(self, table, anchors=()):
        """A tables.Table: its title and its notes as paragraphs.

        anchors: of its first rows, to which cells of a confusion matrix lead.
        """
        if table.title:
            self.text(table.title)
        columns = table.filled(SHOWN)
        lines = []
        for r, row in enumerate(zip(*[cells for cells, _ in columns]), -1):
            kind = ' class="best"' if r == table.best else ""
            if 0 <= r < len(anchors):
                kind += f' id="{anchors[r]}"'
            cells = [
                _cell(words, "td" if r >= 0 else "th", are_numbers)
                for words, (_, are_numbers) in zip(row, columns)
            ]
            lines.append(f"<tr{kind}>{''.join(cells)}</tr>")
        if lines:
            self.parts.append(
                f'<div class="wide"><table>{"".join(lines)}</table></div>'
            )
        if len(table.rows) > SHOWN:
            self.text(f"The first {SHOWN} of {len(table.rows)}.")
        if table.notes:
            self.text("\n".join(table.notes))

    def draw(self, name, title, plot, *arrays, folded=False, **choices):
        """Draw and save one picture, and show it here; if it cannot be drawn, say so.

        name: its first word, up to _, has a caption. folded: it is shown at the end, when
        it is asked for.
        """
        path = self._draw(name, title, plot, *arrays, **choices)
        if path is not None:
            caption = html.escape(CAPTIONS[name.partition("_")[0]])
            alt = html.escape(" ".join(title.split()))
            kind = KINDS[path.suffix]
            image = f"<p>{html.escape(f'pictures/{path.name}')}</p>"
            if kind:
                image = f'<img alt="{alt}" src="{as_url(path.read_bytes(), kind)}">'
            (self.folded if folded else self.parts).append(
                f'<figure class="picture">{image}<figcaption>{caption}</figcaption></figure>'
            )

    def _draw(self, name, title, plot, *arrays, **choices):
        """The path of the picture, None if it could not be drawn."""
        matplotlib.use("agg")
        kind = self.paths.format
        ax = None
        try:
            ax = plot(*arrays, **choices)
            ax.set_title(printable(title).replace("$", r"\$"), fontsize=10)
            return self.out.write(
                f"pictures/{name}.{kind}",
                lambda file: ax.figure.savefig(file, format=kind, dpi=self.paths.dpi),
            )
        except Exception as error:
            why = " ".join(str(error).split())
            to_stderr(f"no picture {name}: {why or type(error).__name__}")
        finally:
            if ax is not None:
                plt.close(ax.figure)

    def sheet(self, name, title, rows):
        """Draw clips in rows, if there are any, as strips of frames; on the page they move.

        Where Pillow writes WebP, as its wheels do; they rest where the reader asks for
        less motion. name: of CAPTIONS; rows: of (film (n, height, width[, 3]) in uint8, words)
        or None, which leaves a gap.
        """
        if not rows:
            return
        strips = [[cell and (strip(cell[0]), cell[1]) for cell in row] for row in rows]
        if not features.check("webp"):
            self.draw(name, title, plots.plot_sheet, strips)
            return
        self._draw(name, title, plots.plot_sheet, strips, note=CAPTIONS[name])
        self.text(CAPTIONS[name])
        lines = [f'<div class="row">{"".join(map(_figure, row))}</div>' for row in rows]
        self.parts.append(f'<div class="sheet">{"".join(lines)}</div>')

    def save(self):
        """Write the page, whole or not at all."""
        if self.folded:
            more = f"{plural(len(self.folded), 'picture')} more"
            self.parts += [
                f"<details><summary>{more}</summary>",
                *self.folded,
                "</details>",
            ]
        made_by = {
            "grassmann_sc": core.__version__,
            **versions(),
            "Python": platform.python_version(),
            "on": platform.system(),
        }
        self.section("Made by")
        self.text(", ".join(map(" ".join, made_by.items())))
        title = html.escape(self.title)
        when = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
        links = [
            f'<a href="#s{k}">{html.escape(heading)}</a>'
            for k, heading in enumerate(self.headings, 1)
        ]
        page = (
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{title}</title><style>{STYLE}</style></head>\n"
            f"<body><nav>{''.join(links)}</nav>\n<main><h1>{title}</h1>\n"
            + "\n".join(self.leads)
            + f'\n<p class="when">{when}</p>\n'
            + f"<pre>{html.escape(self.paths.command)}</pre>\n"
            + "\n".join(self.parts)
            + "\n</main></body></html>\n"
        )
        # names of files may hold bytes that are no text
        self.out.write(
            "report.html", lambda file: file.write(page.encode("utf-8", "replace"))
        )


def _cell(words, tag, is_number):
    """A cell of a table: a line a reason; names may end one behind / or _."""
    kind = ' class="number"' if is_number else ""
    lines = "<br>".join(map(html.escape, words.split("; ")))
    words = re.sub("[/_]", rf"\g<0>{BREAK}", lines)
    return f"<{tag}{kind}>{words}</{tag}>"


def _figure(cell):
    """A figure of a cell of a sheet."""
    if cell is None:
        return '<span class="gap"></span>'
    film, words = cell
    lines = html.escape(words).replace("\n", "<br>").replace("_", f"_{BREAK}")
    alt = html.escape(" ".join(words.split()))
    source = ""
    if len(film) > 1:
        less = "print, (prefers-reduced-motion: reduce)"
        at_rest = as_url(webp(film[len(film) // 2 :][:1]))
        source = f'<source media="{less}" srcset="{at_rest}">'
    kind = ' class="strip"' if film.shape[2] > 2 * film.shape[1] else ""
    return (
        f"<figure{kind}><picture>{source}"
        f'<img alt="{alt}" width="{film.shape[2]}" height="{film.shape[1]}" '
        f'src="{as_url(webp(film))}"></picture><figcaption>{lines}</figcaption></figure>'
    )


def unusable(why):
    """The Table of clips, or windows, that could not be used, and why."""
    title = f"{len(why)} could not be used" * bool(why)
    return Table(["clip", "why"], [*why.items()], title)


def webp(film):
    """A film (n, height, width[, 3]) in uint8 as WebP: bytes.

    Of more than MOST_BYTES with every second frame.
    """
    first, *others = (Image.fromarray(frame) for frame in film)
    file = io.BytesIO()
    how = {"append_images": others, "save_all": True, "loop": 0, "duration": EACH}
    first.save(file, "WEBP", quality=QUALITY, **how)
    content = file.getvalue()
    return webp(film[::2]) if others and len(content) > MOST_BYTES else content


def as_url(content, kind="image/webp"):
    """The bytes of an image as the address of an image of a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


# ----------------------------------------------------------------------------- pictures


def draw_results(report, run, pairs, results, comparison):
    """Draw the confusions of all rows, a map and the Gram matrix.

    That of the row in front is shown if its classes are too many for a table, the
    others are folded away. If one picture cannot be drawn, the page has the others.
    """
    collection = run.bank.collection
    label = collection.label.tolist()
    data = printable(report.paths.data.stem)
    first = comparison.first
    for name in sorted(results, key=lambda name: name != first):
        done = successes(results[name])
        if not done:
            continue
        truth, predicted = all_answers(collection.label, pairs, results[name])
        report.draw(
            f"confusion_{slug(name)}",
            f"{name}, {data}: {comparison.accuracy.get(name, np.nan):.1f} %",
            plots.plot_confusion,
            truth.tolist(),
            predicted.tolist(),
            n_splits=len(done),
            folded=name != first or len(np.unique(truth)) <= MANY,
        )
    p = min(PICTURED_P, collection.X.shape[2])
    K = core.projection_kernel(collection.X[:, :, :p])
    report.section("Clips and classes")
    report.draw("map", f"{len(K)} sets of {data}, p = {p}", plots.plot_map, K, label)
    report.draw(
        "gram", f"Projection kernel, p = {p}, {data}", plots.plot_gram, K, label
    )


def plot_accuracies(results, comparison):
    """Draw the accuracy of each row in each split, its mean, and chance; gives the Axes."""
    names = [name for name in results if name in comparison.accuracy][::-1]
    _, ax = plt.subplots(figsize=(7, 1.2 + 0.32 * len(names)), layout="constrained")
    for k, name in enumerate(names):
        shares = [split["accuracy"] for split in results[name]]
        color = "#0072B2" if name in comparison.as_good else "#777777"
        ax.plot(shares, np.full(len(shares), k), "o", color=color, alpha=0.5, ms=5)
        mean = comparison.accuracy[name]
        ax.plot([mean, mean], [k - 0.35, k + 0.35], color=color, lw=2.5)
    ax.axvline(comparison.chance, ls="--", color="#D55E00", lw=1)
    ax.set_yticks(range(len(names)), names)
    for text, name in zip(ax.get_yticklabels(), names):
        text.set_weight("bold" if name in comparison.as_good else "normal")
    ax.set(xlabel="accuracy, %", ylim=(-0.7, len(names) - 0.3))
    ax.grid(axis="x", alpha=0.3)
    return ax


def tell_where_wrong(report, run, pairs, results, first, pictures):
    """Of the row in front: accuracy of classes and groups, confusion, wrong clips."""
    collection = run.bank.collection
    label = collection.label
    truth, predicted = all_answers(label, pairs, results[first])
    tested = np.concatenate([test for _, test in pairs])
    report.section(f"Where {first} is wrong")
    report.table(each_class(truth, predicted))
    if collection.group is not None:
        report.table(each_group(truth == predicted, collection.group[tested]))
    wrong = wrong_answers(collection, pairs, results, first)
    classes = natural_classes(np.concatenate([truth, predicted]))
    place = {c: k for k, c in enumerate(classes)}
    names = [*map(labelled, collection.names, label)]
    rows = []
    anchors = []
    for i, answer, times, reasons in wrong:
        anchor = f"c{place[label[i].item()]}-{place[answer]}"
        anchors.append(anchor if anchor not in anchors else f"{anchor}-{len(rows)}")
        because = explained(names, reasons[:DECIDED])
        rows.append([collection.names[i], label[i], answer, because, times])
    if len(classes) <= MANY:
        _add_confusion(report, classes, truth, predicted, anchors[:SHOWN])
    report.table(
        Table(
            ["wrong clip", "class", "answer", "what decided", "times"], rows, numbers=1
        ),
        anchors,
    )
    if pictures:
        leads = {
            i: (
                f"{called(label[i])}, not {called(answer)}"
                + f"\n{times} times" * (times > 1),
                reasons,
            )
            for i, answer, times, reasons in wrong[:PICTURED]
        }
        title = (
            f"{first}, {printable(report.paths.data.stem)}\n"
            f"{plural(len(wrong), 'clip')} with a wrong answer"
        )
        draw_clips(report, "wrong", title, collection, run.clips, run.recipe, leads)


def _add_confusion(report, classes, truth, predicted, anchors):
    """The confusion matrix as a table whose wrong cells lead to their clips."""
    lines = ["".join(f"<th>{html.escape(str(c))}</th>" for c in ["class", *classes])]
    for j, c in enumerate(classes):
        answers = Counter(predicted[truth == c].tolist())
        cells = [f"<th>{html.escape(str(c))}</th>"]
        for k, answer in enumerate(classes):
            count = answers[answer]
            shade = 0.6 * count / max(1, answers.total())
            words = count or ""
            if f"c{j}-{k}" in anchors:
                words = f'<a href="#c{j}-{k}">{count}</a>'
            style = f' style="background: rgba(0, 114, 178, {shade:.2f})"'
            cells.append(f'<td class="number"{style * bool(count)}>{words}</td>')
        lines.append("".join(cells))
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    report.parts.append(f'<div class="wide"><table>{table}</table></div>')
    report.text("A line a class, a column an answer; a number leads to its clips.")


def wrong_answers(collection, pairs, results, name):
    """[(set, its most frequent wrong answer, times, reasons), ...] of a row.

    The sets that are wrong most often first. reasons: what a coding row with the same
    answer tells.
    """

    def reasons_of(k, place, i, answer):
        alike = (
            row[k]["reasons"][i]
            for row in results.values()
            if row[k]["reasons"] and row[k]["predicted"][place] == answer
        )
        return next(alike, [])

    wrong = grouped(
        (i, (answer.item(), reasons_of(k, place, i, answer)))
        for k, (split, (_, test)) in enumerate(zip(results[name], pairs))
        if not split["failed"]
        for place, (i, answer) in enumerate(zip(test.tolist(), split["predicted"]))
        if answer != collection.label[i]
    )
    rows = []
    for i in sorted(wrong, key=lambda i: -len(wrong[i])):
        counts = Counter(answer for answer, _ in wrong[i])
        answer, reasons = max(wrong[i], key=lambda pair: counts[pair[0]])
        rows.append((i, answer, len(wrong[i]), reasons))
    return rows


def draw_answers(report, model, new, collection, answers, unlike):
    """New clips, the least sure first, with what speaks for label and runner-up.

    A model has a strip of each labelled clip, which stands still.
    """
    if answers.reasons is None:
        return
    second, first = np.sort(answers.scores, axis=1)[:, -2:].T
    order = np.argsort(first - second, kind="stable")[:PICTURED]
    places = [collection.names.index(answers.names[i]) for i in order]
    films = films_of(collection.names, collection.clip, new, model.recipe, places)
    kept = [None if image is None else image[None] for image in model.pictures]
    rows = []
    for i, film in zip(order, films):
        parts = [
            [(kept[j], speaking(label, share, model.names[j])) for j, share in reasons]
            for label, reasons in zip(
                (answers.labels[i], answers.runner_up[i]), answers.reasons[i]
            )
        ]
        words = (
            f"{called(answers.labels[i])}\n{caption(answers.names[i])}"
            + f"\n{UNLIKE}" * unlike[i]
        )
        rows += [] if film is None else [row_of(film, words, *parts)]
    title = (
        f"{plural(len(rows), 'new clip')} of {len(answers.names)}, the least sure first\n"
        f"{model.method}"
    )
    report.sheet("answers", title, rows)


def draw_clips(report, name, title, collection, clips, recipe, leads):
    """A sheet of sets that have images, and of what speaks for a class of theirs.

    leads {set: (words, [(set, share), ...])}.
    """
    names = collection.names
    label = collection.label
    others = (j for _, reasons in leads.values() for j, _ in reasons)
    involved = sorted({*leads, *others})
    films = dict(
        zip(involved, films_of(names, collection.clip, clips, recipe, involved))
    )
    rows = []
    for i, (words, reasons) in leads.items():
        part = [(films[j], speaking(label[j], share, names[j])) for j, share in reasons]
        if films[i] is not None:
            words = f"{words}\n{caption(names[i], label[i])}"
            rows.append(row_of(films[i], words, part))
    report.sheet(name, title, rows)


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
    return f"{called(label)}, share {share:.2g}\n{caption(name, label)}"


def called(label):
    """What a class is called in a caption: a number alone would tell little.

    >>> called("run"), called("3"), called(2.5)
    ('run', 'class 3', 'class 2.5')
    """
    return f"class {label}" if re.fullmatch(r"-?[\d.]+", str(label)) else f"{label}"


def caption(name, label=None):
    """The name of a clip, without its class folder and its ending.

    >>> caption("run/person_03_outdoors_take_2.avi", "run")
    'person_03_outdoors_take_2'
    """
    return re.sub(r"\.\w{1,4}$", "", name.removeprefix(f"{label}/"))
