"""Learn from labelled clips and answer new ones: the commands predict and add."""

import os
from collections import Counter

from grassmann_classify.answers import answers_of, kinds_of_scores
from grassmann_classify.compare import say_failed
from grassmann_classify.evaluation import end_of
from grassmann_classify.growing import more
from grassmann_classify.headers import look_at_new
from grassmann_classify.inputs import (
    choose_kernels,
    found_clips,
    labelled_clips,
    new_clips,
    read,
    read_by,
)
from grassmann_classify.model import build_both, build_to_add, learn
from grassmann_classify.model_file import load, save
from grassmann_classify.page import add_pictures, report_on, unusable
from grassmann_classify.pictures import save_sheet_of_answers
from grassmann_classify.reasons import UNLIKE, any_of, differs, possible_classes
from grassmann_classify.spreadsheets import write_rows
from grassmann_classify.tables import Table
from grassmann_classify.words import plural, tell, to_stderr
from grassmann_sc import checks, files


def predict(recipe, settings, paths, out):
    """Answer the clips NEW by a model of DIR, which may be saved, or by a saved one."""
    end = end_of(settings)
    model = paths.model and load_model(paths)
    new = model and paths.new and new_clips(paths.new, model.recipe)
    if not model:
        of_data = recipe, settings, paths
        clips, _, recipe = labelled_clips(*of_data, needs_splits=False)
        new = paths.new and new_clips(paths.new, recipe)
        check_save(paths.save)
        inputs = read(recipe, settings, paths, out, clips)
        choose_kernels(settings, inputs)
        if new:
            collection = inputs.collection
            shape = collection.X.shape[1], 1, collection.frame
            look_at_new(new, read_by(recipe, settings), shape, settings.strict)
        given = inputs.collection, inputs, recipe, settings
        model = learn(*given, clips, end)
        say_failed(inputs.collection)
        save_model(paths.save, model)
    if new:
        answer(settings, paths, out, model, new)
    else:
        tell_who_answers(model)
        for text in words_of_noticed(model, settings.coverage):
            tell(f"  {text}")


def add(recipe, settings, paths, out):
    """Save a model that has learned the clips MORE too."""
    model = load_model(paths)
    clips, *_ = found_clips(paths.more, model.recipe, settings, paths, fewest=1)
    check_save(paths.save)
    look_at_new(clips, model.recipe, model.shape, settings.strict)
    collection, to_code = build_to_add(model, clips, out.cache, settings.strict)
    label = _of_type(collection.label, model.labels.dtype)
    collection = collection._replace(label=label)
    before = len(model.labels)
    model = more(model, collection, clips, to_code)
    say_failed(collection)
    n = len(model.labels) - before
    tell(f"{plural(n, 'set')} more, {plural(len(model.classes), 'class')}")
    tell_who_answers(model)
    if model.coding:
        tell(f"  {right_now(model.coding)}")
    for text in words_of_noticed(model, settings.coverage):
        tell(f"  {text}")
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


def load_model(paths):
    """The saved model."""
    return load(paths.model, name="--model")


def check_save(path):
    """ValueError unless a model may be written to this path, where nothing is."""
    if path is not None:
        files.check_writable(path, "--save")
        if os.path.lexists(path):
            raise ValueError(f"--save must be a new file, got {path}, which is there")


def save_model(path, model):
    """Save the model if a path is asked for, which must still be free."""
    if path is not None:
        check_save(path)
        save(path, model)
        to_stderr(f"model: {path}")


def tell_who_answers(model):
    """Print which row answers, and which says why where that is another."""
    tell(model.described())
    if model.coder:
        tell(f"why and how sure, by {model.coder.described()}")
    elif model.coding is None:
        tell("no row that codes: nothing tells why, how sure, or unlike all classes")


def right_now(coding):
    """How many of its labelled sets a Model that codes answers rightly, in words."""
    right = coding.left_out[0].argmax(axis=1) == coding.estimator.index_
    n = len(right)
    return (
        f"of its {plural(n, 'set')} now, each coded over the others, "
        f"{100 * right.mean():.1f} % are right"
    )


def words_of_noticed(model, coverage):
    """How often clips of known and of unknown classes are called unlike all, in words."""
    coding = model.coding
    if coding is None:
        return []
    share = f"at most {100 * (1 - coverage):.3g} %"
    words = f"of clips of these classes {share} are called {UNLIKE}"
    if len(model.classes) < 3:
        return [f"{words}; how many of an unknown class are, two classes cannot tell"]
    noticed = coding.estimator.noticed(coverage, left_out=coding.left_out)
    return [
        f"{words}, of clips of an unknown class {100 * noticed:.0f} % (measured by "
        "leaving out one class at a time)"
    ]


def answer(settings, paths, out, model, new):
    """Write predictions.csv of new clips, and print how many have each label."""
    collection, to_code = build_both(model, new, out.cache, settings.strict)
    found = answers_of(model, collection, to_code)
    possible = possible_classes(found, settings.coverage)
    write_rows(out, "predictions.csv", *_table(model, found, possible))
    tell_who_answers(model)
    pairs = zip(found.labels.tolist(), possible)
    counts = Counter(label for label, words in pairs if words != UNLIKE)
    for label in sorted(counts, key=checks.natural_order):
        tell(f"  {label}: {plural(counts[label], 'clip')}")
    notes = [*_notes(model, found, possible, settings.coverage)]
    for text in notes:
        tell(f"  {text}")
    sheets = {}
    if paths.pictures:
        given = model, new, collection, found, possible
        sheets = save_sheet_of_answers(out, paths, *given)
    report = report_on(paths, paths.new, "labels of new clips")
    report.section("The model")
    report.text(model.described(), f"Classes: {', '.join(map(str, model.classes))}.")
    if model.coder:
        report.text(f"Why and how sure, by {model.coder.described()}.")
    report.section("Answers")
    report.text(*notes)
    report.table(Table(*_shown(model, found, possible)))
    report.table(unusable(found.failed, len(new)))
    add_pictures(report, out, sheets=sheets)
    report.save(out)
    say_failed(collection._replace(unread=found.failed))


def _notes(model, found, possible, coverage):
    """What to say of all answers together."""
    n_unlike = possible.count(UNLIKE)
    if n_unlike:
        yield f"{plural(n_unlike, 'clip')} {UNLIKE}, so without a label here"
    yield from words_of_noticed(model, coverage)
    n_any = possible.count(any_of(model.classes))
    if n_any:
        which = "every clip" if n_any == len(possible) else plural(n_any, "clip")
        yield f"for {which} no class can be ruled out at {100 * coverage:.3g} %"
    n_differ = sum(differs(found))
    if n_differ:
        who = "clip is" if n_differ == 1 else "clips are"
        yield (
            f"{n_differ} {who} of another class by {model.coder.method} than by "
            f"{model.method}"
        )


def _shown(model, found, possible):
    """(Header, rows) of the page, where no cell says what is said of all clips at once."""
    differ = differs(found)
    by_coding = any(differ)
    rows = []
    for i, (name, label, words) in enumerate(zip(found.names, found.labels, possible)):
        row = [name, "" if words == UNLIKE else label]
        row += [found.coded[i] if differ[i] else ""] * by_coding
        words = "" if words == any_of(model.classes) else words
        rows.append([*row, words, found.because[i]])
    header = ["clip", "label", *["by coding"] * by_coding, "possible", "because"]
    return header, rows


def _table(model, found, possible):
    """(Header, rows) of predictions.csv."""
    kind = kinds_of_scores(model)
    scores = [f"{kind} {c}" for c in found.classes]
    told = ["by coding", "possible", "because", "label_next"]
    header = ["clip", "label", *scores, *told, "method", "chosen", "failed"]
    how = [model.method, model.chosen]
    none = [None] * len(found.names)
    coded = none if found.coded is None else found.coded
    ranks = none if found.label_next is None else found.label_next.tolist()
    rows = []
    for i, of in enumerate(found.scores.tolist()):
        of = [found.names[i], found.labels[i], *(f"{score:.4g}" for score in of)]
        of += ["" if coded[i] is None else coded[i], possible[i], found.because[i]]
        rows.append([*of, ranks[i] or "", *how, ""])
    empty = [""] * (len(header) - 4)
    rows += [[name, *empty, *how, why] for name, why in found.failed.items()]
    return header, rows
