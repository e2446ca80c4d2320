"""Pictures of a run: confusion matrices, maps, codes, and sheets of clips."""

import re
from collections import Counter
from functools import partial

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import grassmann_sc as core
from grassmann_classify.clips import films_of, strip
from grassmann_classify.rows import slug
from grassmann_classify.tables import all_answers, compared, successes
from grassmann_classify.words import (
    UNLIKE,
    all_in_words,
    plural,
    printable,
    short,
    to_stderr,
)
from grassmann_sc import plots

PICTURED_ATOMS = 40
PICTURED = 12  # clips of a sheet
TYPICAL = 6  # clips of a cluster in its sheet
PICTURED_P = 3  # of the Gram matrix and the map
LINE = 20  # letters under an image of a sheet


def save_pictures(out, paths, key, collection, clips, pairs, results, arrays):
    """Draw confusion matrices, wrong clips, Gram matrix, map, codes and atoms.

    Codes and atoms are those of the last split. If one picture cannot be drawn, it says
    so and draws the others. Gives the sheets of clips, as save_sheet does.
    """
    label = collection.label.tolist()
    data = printable(paths.data.stem)
    save = partial(save_plot, out, paths)
    for name, splits in results.items():
        truth, predicted = all_answers(collection.label, pairs, splits)
        if not len(truth):
            continue
        accuracy = np.mean([split["accuracy"] for split in successes(splits)])
        save(
            f"confusion_{slug(name)}",
            f"{short(name)}\n{data}: {accuracy:.1f} %",
            plots.plot_confusion,
            truth.tolist(),
            predicted.tolist(),
            n_splits=len(successes(splits)),
        )
    sheets = save_picture_of_wrong_clips(
        save, data, collection, clips, pairs, results, key
    )
    p = min(PICTURED_P, collection.X.shape[2])
    K = core.projection_kernel(collection.X[:, :, :p])
    save("gram", f"Projection kernel, p = {p}, {data}", plots.plot_gram, K, label)
    save("map", f"{len(K)} sets of {data}, p = {p}", plots.plot_map, K, label)
    how = {
        slug(
            name
        ): f"{short(name)}, {data}\n{all_in_words(successes(splits)[-1]['chosen'])}"
        for name, splits in results.items()
        if successes(splits)
    }
    _save_pictures_of_codes(save, how, collection.label, arrays)
    if len(collection.frame) != 2:
        to_stderr("no picture of the atoms: they are made of features, not of pixels")
    else:
        _save_pictures_of_atoms(save, how, data, collection, arrays)
    return sheets


def save_sheet(save, name, title, rows, note=""):
    """Draw a sheet of clips, if there are any rows, as strips of frames.

    rows: of (film (n, height, width), words) or None. Gives {name: (rows, note)}, for
    the page where clips move.
    """
    if not rows:
        return {}
    strips = [[cell and (strip(cell[0]), cell[1]) for cell in row] for row in rows]
    save(name, title, plots.plot_sheet, strips, note=note)
    return {name: (rows, note)}


def save_plot(out, paths, name, title, plot, *arrays, **choices):
    """Draw and save one picture; if it cannot be drawn, say so."""
    matplotlib.use("agg")
    kind = {"format": paths.format, "dpi": paths.dpi}
    ax = None
    try:
        ax = plot(*arrays, **choices)
        ax.set_title(printable(title).replace("$", r"\$"), fontsize=10)
        out.write(
            f"{name}.{paths.format}", lambda file: ax.figure.savefig(file, **kind)
        )
    except Exception as error:
        why = " ".join(str(error).split())
        to_stderr(f"no picture {name}: {why or type(error).__name__}")
    finally:
        if ax is not None:
            plt.close(ax.figure)


def save_picture_of_wrong_clips(save, data, collection, clips, pairs, results, key):
    """The clips that the best method got wrong, with what speaks for its answers.

    That is what a coding method with the same answer tells. Gives what save_sheet gives.
    """
    name = compared(results, pairs).first
    if name is None:
        return {}
    splits = results[name]
    wrong = {}
    for k, (split, (_, test)) in enumerate(zip(splits, pairs)):
        answers_of = [] if split["failed"] else zip(test, split["predicted"])
        for place, (i, answer) in enumerate(answers_of):
            if answer != collection.label[i]:
                reasons = _reasons_for(answer, int(i), place, k, results)
                wrong.setdefault(int(i), []).append((answer, reasons))
    order = sorted(wrong, key=lambda i: -len(wrong[i]))[:PICTURED]
    shown = {i: _most_often_answered(wrong[i]) for i in order}
    involved = {*order, *(j for _, reasons in shown.values() for j, _ in reasons)}
    involved = sorted(involved)
    films = films_of(collection.names, collection.clip, clips, key, involved)
    images = dict(zip(involved, films))
    rows = []
    for i, (answer, reasons) in shown.items():
        words = f"{called(collection.label[i])}, not {called(answer)}"
        words += f"\n{len(wrong[i])} times" if len(wrong[i]) > 1 else ""
        part = [
            (images[j], speaking(answer, share, collection.names[j]))
            for j, share in reasons
        ]
        if images[i] is not None:
            words = f"{words}\n{caption(collection.names[i], collection.label[i])}"
            rows.append(row_of(images[i], words, part))
    note = "a clip with its class and the answer; labelled clips that speak for that"
    n_wrong = sum(map(len, wrong.values()))
    n_asked = sum(len(test) for _, test in pairs[: len(splits)])
    part = f"{len(rows)} of " if len(rows) < len(wrong) else ""
    title = (
        f"{short(name)}, {data}\n{part}{plural(len(wrong), 'clip')} with a wrong answer, "
        f"{n_wrong} of {plural(n_asked, 'answer')}"
    )
    return save_sheet(save, "wrong", title, rows, note)


def _reasons_for(answer, i, place, k, results):
    """What a coding method tells that gave set i this wrong answer in split k."""
    for splits in results.values():
        reasons = splits[k]["reasons"]
        if reasons and i in reasons and splits[k]["predicted"][place] == answer:
            return reasons[i]
    return []


def _most_often_answered(wrong):
    """The (answer, reasons) of the most frequent answer."""
    ((most, _),) = Counter(answer for answer, _ in wrong).most_common(1)
    return next(pair for pair in wrong if pair[0] == most)


def _save_pictures_of_codes(save, how, label, arrays):
    """how: {slug of a method: title}."""
    samples = label[arrays["test"]].tolist()
    atoms = label[arrays["train"]].tolist()
    for key in [key for key in arrays if key.startswith("codes_")]:
        learned = key.replace("codes", "atoms", 1) in arrays
        labelled = not learned and arrays[key].shape[1] == len(atoms)
        save(
            key,
            how[key.removeprefix("codes_")],
            plots.plot_codes,
            arrays[key],
            samples,
            atom_labels=atoms if labelled else None,
        )


def _save_pictures_of_atoms(save, how, data, collection, arrays):
    """Draw the learned atoms, or the first labelled set of each class."""
    blocks = {"n_blocks": collection.X.shape[1] // np.prod(collection.frame)}
    learned = [key for key in arrays if key.startswith("atoms_")]
    for key in learned:
        save(
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
        sets = train[first[:PICTURED_ATOMS]]
        names = classes[:PICTURED_ATOMS].tolist()
        save(
            "atoms",
            f"A labelled set of each class, {data}",
            plots.plot_atoms,
            collection.X[sets],
            collection.frame,
            labels=names,
            **blocks,
        )


def save_sheet_of_answers(out, paths, model, new, collection, answers, possible):
    """New clips, the least sure first, with what speaks for label and runner-up.

    Gives what save_sheet gives; a model has a strip of each labelled clip, which stands
    still.
    """
    if model.pictures is None or answers.ahead is None or not len(answers.names):
        return {}
    order = np.argsort(answers.ahead, kind="stable")[:PICTURED]
    place = {name: i for i, name in enumerate(collection.names)}
    first = [place[answers.names[i]] for i in order]
    key = model.recipe.key
    images = films_of(collection.names, collection.clip, new, key, first)
    kept = [None if image is None else image[None] for image in model.pictures]

    def part(label, reasons):
        return [
            (kept[j], speaking(label, share, model.names[j])) for j, share in reasons
        ]

    rows = []
    for i, image in zip(order, images):
        if image is None:
            continue
        own, other = answers.reasons[i]
        words = f"{called(answers.labels[i])}\n{caption(answers.names[i])}"
        words += f"\n{UNLIKE}" * (possible[i] == UNLIKE)
        parts = part(answers.labels[i], own), part(answers.runner_up[i], other)
        rows.append(row_of(image, words, *parts))
    note = "a new clip; labelled clips that speak for its label, and for the runner-up"
    title = (
        f"{plural(len(rows), 'new clip')} of {len(answers.names)}, the least sure first\n"
        f"{short(model.method)}"
    )
    return save_sheet(partial(save_plot, out, paths), "answers", title, rows, note)


def save_sheet_of_suspects(out, paths, key, collection, clips, suspects, first):
    """The first suspects, with what speaks for another class; gives as save_sheet."""
    names = collection.names
    label = collection.label
    involved = sorted({*first, *(j for i in first for j, _ in suspects.reasons[i])})
    films = films_of(names, collection.clip, clips, key, involved)
    images = dict(zip(involved, films))

    def shown(j, share):
        return images[j], speaking(label[j], share, names[j])

    rows = [
        row_of(
            images[i],
            f"{called(label[i])}; {called(suspects.suspected[i])}?\n"
            f"{caption(names[i], label[i])}",
            [shown(j, share) for j, share in suspects.reasons[i]],
        )
        for i in first
        if images[i] is not None
    ]
    note = "a clip with its label and another class; clips that speak for that"
    title = "Labels that may be wrong, the most suspect first"
    return save_sheet(partial(save_plot, out, paths), "suspects", title, rows, note)


def save_sheet_of_clusters(out, paths, key, clips, collection, clusters):
    """The first clips of the largest clusters, a row each; gives as save_sheet."""
    rows = []
    for k in range(1, min(clusters.number.max(), PICTURED) + 1):
        members = [i for i in clusters.order if clusters.number[i] == k]
        first = members[:TYPICAL]
        names = [collection.names[i] for i in first]
        images = films_of(collection.names, collection.clip, clips, key, first)
        size = f"cluster {k}, {plural(len(members), 'set')}\n"
        rows.append(
            [
                (image, f"{size if i == 0 else ''}{caption(name)}")
                for i, (image, name) in enumerate(zip(images, names))
                if image is not None
            ]
        )
    title = "In each cluster, what the others explain best"
    save = partial(save_plot, out, paths)
    return save_sheet(save, "clusters", title, [*filter(None, rows)])


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
    breaks = [m.start() for m in re.finditer(r"[\W_]", name[: LINE + 1])]
    at = max([k for k in breaks if k >= LINE // 2], default=LINE)
    end = name[at:]
    return f"{name[:at]}\n{end if len(end) <= LINE else '…' + end[1 - LINE :]}"
