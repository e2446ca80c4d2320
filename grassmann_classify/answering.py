"""Learn from labelled clips and answer new ones: the commands predict and add."""

import json
import os

import numpy as np

from grassmann_classify.building import look_at_new
from grassmann_classify.inputs import (
    choose_kernels,
    labelled_clips,
    new_clips,
    read,
    read_by,
    say_alike,
)
from grassmann_classify.learning import (
    as_integers,
    build_more,
    build_new,
    digests_of,
    learn,
    more,
)
from grassmann_classify.model import answers_of, in_cells, possible_classes
from grassmann_classify.model_file import load, save
from grassmann_classify.page import Report, draw_answers, unusable
from grassmann_classify.tables import Table, counts_of, words_of, write_rows
from grassmann_classify.timeline import (
    Stretch,
    labelled_rows,
    score_of,
    stretches_of,
    timeline,
)
from grassmann_classify.words import (
    UNLIKE,
    UNUSUAL,
    group_named,
    is_unnamed,
    naming,
    plural,
    printable,
    rounded,
    say_failed,
    tell,
    to_stderr,
)
from grassmann_sc import files, plots

AS_TEXT = {  # kinds of labels: what they are, and how a text is read as one
    "i": ("integers", int),
    "u": ("integers", int),
    "f": ("numbers", float),
    "b": ("True or False", {"True": True, "False": False}.__getitem__),
}


def predict(recipe, settings, paths, out):
    """Answer the clips NEW by a model of DIR, which may be saved, or by a saved one."""
    end = settings.end()
    check_save(paths.save)
    if paths.model:
        model = load(paths.model, name="--model")
        recipe = model.recipe
    else:
        clips, _, recipe = labelled_clips(recipe, settings, paths)
    if settings.smooth and recipe.window is None:
        raise ValueError("--smooth goes with a model of recordings, cut by --window")
    new = paths.new and new_clips(paths.new, recipe, settings)[0]
    if not paths.model:
        inputs = read(recipe, settings, paths, clips)
        choose_kernels(settings, inputs)
        collection = inputs.collection
        if new:
            look_at_new(
                new,
                read_by(recipe, settings),
                shape=(collection.X.shape[1], 1, collection.frame),
                strict=settings.strict,
            )
        model = learn(inputs, read_by(recipe, settings), settings, clips, end)
        say_failed(collection.unusable)
        save_model(paths.save, model)
    if new:
        answer(settings, paths, out, model, new)
    else:
        tell_who_answers(model, settings.coverage)


def add(recipe, settings, paths, out):
    """Save a model that has learned the clips MORE too."""
    check_save(paths.save)
    model = load(paths.model, name="--model")
    clips, *_ = labelled_clips(model.recipe, settings, paths)
    collection = build_more(model, clips, settings.strict)
    label = collection.label
    # in names of folders and files numbers are text
    if model.labels.dtype.kind in AS_TEXT and label.dtype.kind == "U":
        kind = model.labels.dtype.kind
        label = [_from_text(text, kind) for text in label.tolist()]
        label = as_integers(label) if kind in "iu" else np.array(label)
    say_alike({*label.tolist(), *model.classes.tolist()})
    grown = more(model, collection._replace(label=label), clips)
    say_failed(collection.unusable)
    save_model(paths.save, grown)
    n_more = len(grown.labels) - len(model.labels)
    tell(f"{plural(n_more, 'set')} more, {plural(len(grown.classes), 'class')}")
    tell_who_answers(grown, settings.coverage)


def _from_text(text, kind):
    """The label, of a kind of array, that is a text."""
    what, read = AS_TEXT[kind]
    try:
        if "_" in text:  # 1_0 is 10 for Python alone
            raise ValueError
        return read(text)
    except (KeyError, ValueError):
        raise ValueError(
            f"labels must be {what}, as those of the model are, got {text!r:.60}"
        ) from None


def check_save(path):
    """ValueError unless a model may be written to this path: nothing is replaced."""
    if path is not None:
        files.check_writable(path, "--save")
        if os.path.lexists(path):
            raise ValueError(f"--save must be a new file, got {path}, which exists")


def save_model(path, model):
    """Save the model if a path is asked for, which must still be free."""
    if path is not None:
        check_save(path)
        with naming(path):
            save(path, model)
        to_stderr(f"model: {path}")


def tell_who_answers(model, coverage):
    """Print which row answers, how it does now, and how often it notices the unknown."""
    tell(model.described())
    if not model.codes:
        tell(
            "its row does not code: no reasons, no p-values, nothing unlike all classes"
        )
    elif model.judged != len(model.labels):
        is_judged = ~np.isnan(model.left_out[0]).any(axis=1)
        right = model.left_out[0].argmax(axis=1) == model.estimator.index_
        some = " that others can judge" * (not is_judged.all())
        tell(
            f"  of its {plural(is_judged.sum(), 'set')} now{some}, each coded over "
            f"others, {100 * right[is_judged].mean():.1f} % are right"
        )
    tell(*(f"  {text}" for text in words_of_noticed(model, coverage)))


def words_of_noticed(model, coverage):
    """How often clips of these and of unknown classes are called unlike all, in words."""
    if not model.codes:
        return []
    words = (
        f"At most {100 * (1 - coverage):.3g} % of clips of these classes are called "
        f"{UNLIKE}"
    )
    if len(model.classes) < 3:
        return [f"{words}; two classes cannot tell how many of an unknown class are"]
    noticed = model.estimator.noticed(coverage, left_out=model.left_out)
    return [
        f"{words}, and {100 * noticed:.0f} % of clips of an unknown class (measured by "
        "leaving out one class at a time)"
    ]


# ------------------------------------------------------------------------------ answers


def answer(settings, paths, out, model, new):
    """Write predictions.csv of new clips, stretches.csv of recordings, and print both.

    A clip without an answer is named there, with the reason.
    """
    collection = build_new(model, new, settings.strict)
    answers = answers_of(model, collection)
    if not answers.names:
        raise ValueError(
            f"no clip has an answer: {next(iter(answers.failed.values()))}"
        )
    say_learned(model, collection)
    records = [r | {"failed": None} for r in answers.records(settings.coverage)]
    records += [
        dict.fromkeys(records[0]) | {"clip": name, "failed": why}
        for name, why in answers.failed.items()
    ]
    records = with_groups(records, new)
    rows = [
        {**in_cells(record), "method": model.method, "chosen": model.chosen}
        for record in records
    ]
    header = [*rows[0]]
    cells = ([row.get(name) for name in header] for row in rows)
    write_rows(out, "predictions.csv", header, cells)
    table = table_of(model, answers, records)
    report = Report(out, paths, paths.new, "answers to new clips")
    what = "clip" if answers.spans is None else "window"
    report.lead(f"{counts_of(table.rows, what)}.")
    words = [f"{model.method}: {100 * model.score:.1f} % right in cross-validation"]
    if answers.spans is None:
        unsure = [row for row in table.rows if row[3]]
        words += words_of(table, "clip", sorted(unsure, key=lambda row: row[2]))
    else:
        words += timeline_of(report, model, new, answers, settings)
    words += words_of_truth(records, new)
    report.section("Answers")
    when = [] if answers.spans is None else ["start", "end"]
    unit = model.recipe.unit
    rows = [
        [
            name,
            *(_clock_time(record[w]) for w in when),
            *cells,
            "; ".join(record["because"]),
        ]
        for (name, *cells, _), record in zip(table.rows, records)
    ]
    columns = [f"{w} ({unit})" for w in when] + table.columns[1:-1]
    report.table(Table(["clip", *columns, "because"], rows))
    report.table(unusable(answers.failed))
    if paths.pictures:
        unlike = [row[1] == UNLIKE for row in table.rows]
        draw_answers(report, model, new, collection, answers, unlike)
    report.section("The model")
    report.text(model.described(), f"Classes: {', '.join(map(str, model.classes))}.")
    report.text(*words_of_noticed(model, settings.coverage))
    report.save()
    if paths.json:
        words = [*map(json.dumps, records)]
    tell(*words)  # once all is saved: who reads it may end before
    say_failed(answers.failed)


def say_learned(model, collection):
    """Say which of the sets of a Collection a Model has learned."""
    kept = {*(model.digests or [])}
    digests = digests_of(collection, model.recipe) or []
    again = [name for name, d in zip(collection.names, digests) if d in kept]
    if again:
        to_stderr(
            f"the model has learned {len(again)} of {plural(len(digests), 'set')} "
            f"already, as {again[0]}: how these are answered tells nothing of others"
        )


def words_of_truth(records, clips):
    """[How many records of labelled clips are right], [] if no clip has a label."""
    truth = {
        clip.name: printable(group_named(clip.label), but="")
        for clip in clips
        if not is_unnamed(clip.label)
    }
    right = [
        r["answer"] is not None and group_named(r["answer"]) == truth[r["clip"]]
        for r in records
        if r["clip"] in truth
    ]
    if not right:
        return []
    n = plural(len(right), "labelled clip")
    return [f"{100 * np.mean(right):.1f} % of {n} right"]


def with_groups(records, clips):
    """The records of clips, or of their windows, with their groups if any is known."""
    groups = {clip.name: str(clip.group) for clip in clips if clip.group is not None}
    if not groups:
        return records
    names = [record["clip"] for record in records]
    owners = [name if name in groups else name.rpartition("#")[0] for name in names]
    return [
        {"clip": name, "group": groups.get(owner)} | record
        for name, owner, record in zip(names, owners, records)
    ]


def table_of(model, answers, records):
    """The Table of clips: answer, how probable, other possible classes, the reason."""
    reasons = answers.reasons if model.codes else [([], [])] * len(answers.names)
    rows = []
    for record, (own, _) in zip(records, reasons):
        label = record["nearest class"]
        others = [str(c) for c in record["possible"] if c != label]
        also = "; ".join(others)
        if len(others) + 1 == len(model.classes) > 2:
            also = "any class"
        elif model.codes and label not in record["possible"] and not others:
            also = UNUSUAL
        row = [record["clip"], label, f"{record[answers.measure][label]:.2f}", also]
        if record["answer"] is None:
            row[1:] = [UNLIKE, "", ""]
        rows.append([*row, model.names[own[0][0]] if own else ""])
    return Table(["clip", "answer", answers.measure, "also possible", "nearest"], rows)


def _clock_time(time):
    """A time to the thousandth, of a clock that may count from 1970."""
    return f"{round(time, 3):.15g}"


def timeline_of(report, model, new, answers, settings):
    """Write stretches.csv, draw and show them; gives the lines to print.

    Where recordings of NEW have the column of labels, the lines tell what is right.
    """
    _, unlike = possible_classes(answers, settings.coverage)
    votes = answers.scores
    if answers.measure != "probability":
        votes = (answers.labels[:, None] == answers.classes).astype(float)
    windows = answers.recordings, answers.spans
    stretches = timeline(*windows, votes, unlike, answers.classes, settings.smooth)
    rows = [
        [
            *s[:4],
            "" if np.isnan(s.probability) else f"{s.probability:.4g}",
            f"{s.agree:.4g}",
        ]
        for s in stretches
    ]
    write_rows(report.out, "stretches.csv", Stretch._fields, rows)
    rows = labelled_rows(new, answers.classes, {*answers.recordings})
    truth = stretches_of(*rows) if rows else []
    unit = model.recipe.unit
    notes = []
    if rows:
        own = np.where(unlike, UNLIKE, answers.labels.astype(str))
        score = score_of(rows, stretches, *windows, own)
        notes.append("no labelled row lies in a window that has an answer")
        if score is not None:
            notes[0] = (
                f"{100 * score.windows:.1f} % of {plural(score.n_windows, 'window')} "
                f"right, {100 * score.time:.1f} % of the time"
            )
        if score is not None and score.border is not None:
            notes[0] += (
                f"; {plural(score.n_borders, 'border')} off by "
                f"{rounded(score.border, 3)} {unit} in the median"
            )
    report.section("Timeline")
    if report.paths.pictures:
        report.draw(
            "timeline",
            "Answers over time",
            plots.plot_timeline,
            [stretch[:4] for stretch in stretches],
            [stretch[:4] for stretch in truth],
            unlike=UNLIKE,
            unit=unit,
        )
    columns = ["recording", "answer", f"from ({unit})", "to", answers.measure]
    rows = [
        [
            s.recording,
            s.answer,
            _clock_time(s.start),
            _clock_time(s.end),
            "" if np.isnan(s.probability) else f"{100 * s.probability:.0f} %",
            f"{100 * s.agree:.0f} %",
        ]
        for s in stretches
    ]
    table = Table([*columns, "windows that agree"], rows, numbers=4)
    report.table(table)
    report.text(*notes)
    return [*words_of(table, "stretch"), *notes]
