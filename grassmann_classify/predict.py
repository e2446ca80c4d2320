"""Learn from labelled clips and answer new ones: the commands predict and add."""

import os
from collections import Counter

from grassmann_classify.answers import (
    answers_of,
    any_of,
    kinds_of_scores,
    possible_classes,
)
from grassmann_classify.building import look_at_new
from grassmann_classify.evaluation import end_of
from grassmann_classify.inputs import (
    choose_kernels,
    labelled_clips,
    new_clips,
    read,
    read_by,
)
from grassmann_classify.model import build_new, learn, more
from grassmann_classify.model_file import load, save
from grassmann_classify.page import add_pictures, report_on, unusable
from grassmann_classify.pictures import save_sheet_of_answers
from grassmann_classify.tables import Table, write_rows
from grassmann_classify.words import UNLIKE, plural, say_failed, tell, to_stderr
from grassmann_sc import files, shared


def predict(recipe, settings, paths, out):
    """Answer the clips NEW by a model of DIR, which may be saved, or by a saved one."""
    end = end_of(settings)
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
    label = _of_type(collection.label, model.labels.dtype)
    before = len(model.labels)
    model = more(model, collection._replace(label=label), clips)
    say_failed(collection)
    n = len(model.labels) - before
    tell(f"{plural(n, 'set')} more, {plural(len(model.classes), 'class')}")
    tell_who_answers(model, settings.coverage)
    save_model(paths.save, model)


def _of_type(label, dtype):
    """Labels, which are text in names of folders and files, as a model's numbers."""
    if dtype.kind not in "iuf":
        return label
    try:
        return label.astype(dtype)
    except ValueError:
        raise ValueError(
            f"labels must be numbers, as those of the model are, got {label[0]!r:.60}"
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
        tell(f"  {right_now(model)}")
    for text in words_of_noticed(model, coverage):
        tell(f"  {text}")


def right_now(model):
    """How many of its labelled sets a Model that codes answers rightly, in words."""
    right = model.left_out[0].argmax(axis=1) == model.estimator.index_
    n = len(right)
    return (
        f"of its {plural(n, 'set')} now, each coded over the others, "
        f"{100 * right.mean():.1f} % are right"
    )


def words_of_noticed(model, coverage):
    """How often clips of these and of unknown classes are called unlike all, in words."""
    if not model.codes:
        return []
    share = f"at most {100 * (1 - coverage):.3g} %"
    words = f"of clips of these classes {share} are called {UNLIKE}"
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
    write_rows(out, "predictions.csv", *_table(model, answers, possible))
    tell_who_answers(model, settings.coverage)
    pairs = zip(answers.labels.tolist(), possible)
    counts = Counter(label for label, words in pairs if words != UNLIKE)
    for label in sorted(counts, key=shared.natural_order):
        tell(f"  {label}: {plural(counts[label], 'clip')}")
    notes = [*_notes(model, possible, settings.coverage)]
    for text in notes:
        tell(f"  {text}")
    sheets = {}
    if paths.pictures:
        shown = model, new, collection, answers, possible
        sheets = save_sheet_of_answers(out, paths, *shown)
    report = report_on(paths, paths.new, "labels of new clips")
    report.section("The model")
    report.text(model.described(), f"Classes: {', '.join(map(str, model.classes))}.")
    report.section("Answers")
    report.text(*words_of_noticed(model, settings.coverage), *notes)
    report.table(Table(*_shown(model, answers, possible)))
    report.table(unusable(answers.failed, len(new)))
    add_pictures(report, out, sheets=sheets)
    report.save(out)
    say_failed(collection._replace(unusable=answers.failed))


def _notes(model, possible, coverage):
    """What to say of all answers together."""
    n_unlike = possible.count(UNLIKE)
    if n_unlike:
        yield f"{plural(n_unlike, 'clip')} {UNLIKE}, so without a label here"
    n_any = possible.count(any_of(model.classes))
    if n_any:
        clips = "every clip" if n_any == len(possible) else plural(n_any, "clip")
        yield f"for {clips} no class can be ruled out at {100 * coverage:.3g} %"


def _shown(model, answers, possible):
    """(Header, rows) of the page, where no cell says what is said of all clips at once."""
    because = [""] * len(possible) if answers.because is None else answers.because
    rows = [
        [
            name,
            "" if words == UNLIKE else label,
            "" if words == any_of(model.classes) else words,
            reasons,
        ]
        for name, label, words, reasons in zip(
            answers.names, answers.labels, possible, because
        )
    ]
    return ["clip", "label", "possible", "because"], rows


def _table(model, answers, possible):
    """(Header, rows) of predictions.csv."""
    kind = kinds_of_scores(model)
    scores = [f"{kind} {label}" for label in answers.classes]
    header = ["clip", "label", *scores, "possible", "because"]
    header += ["method", "chosen", "failed"]
    how = [model.method, model.chosen]
    because = [""] * len(possible) if answers.because is None else answers.because
    rows = []
    for i, scores in enumerate(answers.scores.tolist()):
        numbers = [f"{score:.4g}" for score in scores]
        label = answers.labels[i]
        rows.append(
            [answers.names[i], label, *numbers, possible[i], because[i], *how, ""]
        )
    empty = [""] * (len(header) - 4)
    rows += [[name, *empty, *how, why] for name, why in answers.failed.items()]
    return header, rows
