"""Learn from labelled clips and answer new ones: the commands predict and add."""

import os
from collections import Counter

from grassmann_classify.building import look_at_new
from grassmann_classify.inputs import (
    choose_kernels,
    labelled_clips,
    new_clips,
    read,
    read_by,
)
from grassmann_classify.learning import build_new, learn, more
from grassmann_classify.model import answers_of, any_of, possible_classes
from grassmann_classify.model_file import load, save
from grassmann_classify.page import Report, draw_answers, unusable
from grassmann_classify.tables import Table, write_rows
from grassmann_classify.words import UNLIKE, plural, say_failed, tell, to_stderr
from grassmann_sc import files, shared


def predict(recipe, settings, paths, out):
    """Answer the clips NEW by a model of DIR, which may be saved, or by a saved one."""
    end = settings.end()
    check_save(paths.save)
    if paths.model:
        model = load(paths.model, name="--model")
        new = paths.new and new_clips(paths.new, model.recipe)
    else:
        clips, _, recipe = labelled_clips(recipe, settings, paths)
        new = paths.new and new_clips(paths.new, recipe)
        inputs = read(recipe, settings, paths, clips)
        choose_kernels(settings, inputs)
        collection = inputs.collection
        if new:
            shape = collection.X.shape[1], 1, collection.frame
            look_at_new(new, read_by(recipe, settings), shape, settings.strict)
        model = learn(inputs, read_by(recipe, settings), settings, clips, end)
        say_failed(collection)
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
    collection = build_new(model, clips, settings.strict)
    label = collection.label
    if model.labels.dtype.kind in "iuf":  # in names of folders and files they are text
        try:
            label = label.astype(model.labels.dtype)
        except ValueError:
            raise ValueError(
                f"labels must be numbers, as those of the model are, got {label[0]!r:.60}"
            ) from None
    before = len(model.labels)
    model = more(model, collection._replace(label=label), clips)
    say_failed(collection)
    n = len(model.labels) - before
    tell(f"{plural(n, 'set')} more, {plural(len(model.classes), 'class')}")
    tell_who_answers(model, settings.coverage)
    save_model(paths.save, model)


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
        right = model.left_out[0].argmax(axis=1) == model.estimator.index_
        tell(
            f"  of its {plural(len(right), 'set')} now, each coded over the others, "
            f"{100 * right.mean():.1f} % are right"
        )
    for text in words_of_noticed(model, coverage):
        tell(f"  {text}")


def words_of_noticed(model, coverage):
    """How often clips of these and of unknown classes are called unlike all, in words."""
    if not model.codes:
        return []
    words = (
        f"of clips of these classes at most {100 * (1 - coverage):.3g} % are called "
        f"{UNLIKE}"
    )
    if len(model.classes) < 3:
        return [f"{words}; how many of an unknown class are, two classes cannot tell"]
    noticed = model.estimator.noticed(coverage, left_out=model.left_out)
    return [
        f"{words}, of clips of an unknown class {100 * noticed:.0f} % (measured by "
        "leaving out one class at a time)"
    ]


def answer(settings, paths, out, model, new):
    """Write predictions.csv of new clips, and print how many have each label."""
    collection = build_new(model, new, settings.strict)
    answers = answers_of(model, collection)
    possible = possible_classes(answers, settings.coverage)
    because = [""] * len(possible) if answers.because is None else answers.because
    each = [*zip(answers.names, answers.labels, possible, because)]
    write_answers(out, model, answers, each)
    tell_who_answers(model, settings.coverage)
    pairs = zip(answers.labels.tolist(), possible)
    counts = Counter(label for label, words in pairs if words != UNLIKE)
    for label in sorted(counts, key=shared.natural_order):
        tell(f"  {label}: {plural(counts[label], 'clip')}")
    every_class = any_of(model.classes)
    notes = []
    n_unlike = possible.count(UNLIKE)
    if n_unlike:
        notes.append(f"{plural(n_unlike, 'clip')} {UNLIKE}, so without a label here")
    n_any = possible.count(every_class)
    if n_any:
        clips = "every clip" if n_any == len(possible) else plural(n_any, "clip")
        notes.append(
            f"for {clips} no class can be ruled out at {100 * settings.coverage:.3g} %"
        )
    for text in notes:
        tell(f"  {text}")
    report = Report(out, paths, paths.new, "labels of new clips")
    if paths.pictures:
        draw_answers(report, model, new, collection, answers, possible)
    report.section("The model")
    report.text(model.described(), f"Classes: {', '.join(map(str, model.classes))}.")
    report.section("Answers")
    report.text(*words_of_noticed(model, settings.coverage), *notes)
    # no cell says what is said of all clips at once
    rows = [
        [
            name,
            "" if words == UNLIKE else label,
            "" if words == every_class else words,
            why,
        ]
        for name, label, words, why in each
    ]
    report.table(Table(["clip", "label", "possible", "because"], rows))
    report.table(unusable(answers.failed, len(new)))
    report.save()
    say_failed(collection._replace(unusable=answers.failed))


def write_answers(out, model, answers, each):
    """predictions.csv; each: [(clip, label, possible classes, reasons), ...]."""
    kind = "probability" if hasattr(model.estimator, "predict_proba") else "score"
    scores = [f"{kind} {label}" for label in answers.classes]
    header = ["clip", "label", *scores, "possible", "because"]
    header += ["method", "chosen", "failed"]
    how = [model.method, model.chosen]
    rows = [
        [name, label, *(f"{score:.4g}" for score in scores), words, why, *how, ""]
        for (name, label, words, why), scores in zip(each, answers.scores.tolist())
    ]
    for name, why in answers.failed.items():
        rows.append([name, *[""] * (len(header) - 4), *how, why])
    write_rows(out, "predictions.csv", header, rows)
