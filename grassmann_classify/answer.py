"""Learn from labelled clips and answer new ones: the commands predict and add."""

from collections import Counter

from grassmann_classify.compare import say_failed
from grassmann_classify.finding import find_clips, find_labelled
from grassmann_classify.folder import same_file
from grassmann_classify.headers import look_at_new
from grassmann_classify.messages import plural, tell, to_stderr
from grassmann_classify.model import answers_of, build_new, kinds_of_scores, learn, more
from grassmann_classify.model_file import is_model, load, save
from grassmann_classify.page import report_failed, report_on, save_report
from grassmann_classify.reading import (
    choose_kernels,
    labelled_clips,
    new_clips,
    read,
    read_by,
    recipe_of,
)
from grassmann_classify.reasons import UNLIKE, possible_classes
from grassmann_classify.sheets import save_sheet_of_answers
from grassmann_classify.spreadsheets import write_rows
from grassmann_sc import checks, files


def predict(options, out):
    """Answer the clips NEW by a model of DIR, which may be saved, or by a saved one."""
    model = options.model and load_model(options, out)
    key = model.recipe.key if model else options.key
    new = options.new and new_clips(options.new, out, key)
    if not model:
        clips, _ = labelled_clips(options, out, needs_splits=False)
        check_save(options.save, out)
        inputs = read(options, out, clips)
        choose_kernels(options, inputs)
        if new:
            collection = inputs.collection
            shape = collection.X.shape[1], 1, collection.frame
            look_at_new(new, read_by(options), shape, options.strict)
        model = learn(inputs.collection, inputs, recipe_of(options), options, clips)
        say_failed(inputs.collection)
        say_noticed(model, options.coverage)
        save_model(options.save, model, out)
    if new:
        answer(options, out, model, new)
    else:
        tell(model.described())


def add(options, out):
    """Save a model that has learned the clips MORE too."""
    model = load_model(options, out)
    out.protect(options.more, options.labels)
    if options.labels:
        clips, _ = find_labelled(options.more, options.labels)
    else:
        clips = find_clips(options.more, fewest=1)
    out.protect_clips(clips)
    check_save(options.save, out)
    look_at_new(clips, model.recipe, model.shape, options.strict)
    collection = build_new(model, clips, out.cache, options.strict)
    before = len(model.labels)
    model = more(model, collection, clips)
    say_failed(collection)
    n = len(model.labels) - before
    tell(f"{plural(n, 'set')} more, {plural(len(model.classes), 'class')}")
    tell(model.described())
    say_noticed(model, 0.9)
    save_model(options.save, model, out)


def load_model(options, out):
    """The saved model, whose functions run only if the command line names them."""
    out.protect(options.model)
    functions = [*(options.features or []), *filter(None, [options.kernel])]
    return load(options.model, functions, name="--model")


def check_save(path, out):
    """ValueError unless a model may be written to this path.

    It may replace a model that this program wrote, but nothing that this run reads.
    """
    if path is None:
        return
    files.check_writable(path, "--save")
    read = same_file(path, out.read)
    if read:
        raise ValueError(f"--save must not be what this run reads, got {path}")
    if path.exists() and not is_model(path):
        raise ValueError(
            f"--save must be a new file, or a model that this program wrote and nobody "
            f"changed, got {path}"
        )


def save_model(path, model, out):
    """Save the model if a path is asked for, which must still be free."""
    if path is not None:
        check_save(path, out)
        save(path, model)
        to_stderr(f"model: {path}")


def say_noticed(model, coverage):
    """Say how many clips of an unknown class would be noticed."""
    if model.left_out is not None and len(model.classes) > 2:
        noticed = model.estimator.noticed(coverage, left_out=model.left_out)
        to_stderr(
            f"one class left out at a time: {100 * noticed:.0f} % of its clips are called "
            f"unlike all others, and {100 * (1 - coverage):.3g} % of the other clips"
        )


def answer(options, out, model, new):
    """Write predictions.csv of new clips, and print how many have each label."""
    collection = build_new(model, new, out.cache, options.strict)
    found = answers_of(model, collection)
    possible = possible_classes(found, options.coverage)
    because = [] if found.because is None else found.because
    path = write_rows(out, "predictions.csv", *_table(model, found, possible, because))
    tell(model.described())
    counts = Counter(found.labels.tolist())
    for label in sorted(counts, key=checks.natural_order):
        tell(f"  {label}: {plural(counts[label], 'clip')}")
    n_unlike = possible.count(UNLIKE)
    if n_unlike:
        tell(
            f"  {plural(n_unlike, 'clip')} unlike all classes; of clips of these classes "
            f"{100 * (1 - options.coverage):.3g} % are called so too"
        )
    sheets = {}
    if not options.no_pictures:
        given = model, new, collection, found, possible
        sheets = save_sheet_of_answers(out, options, *given)
    report = report_on(options, options.new, "labels of new clips")
    report.section("The model")
    report.text(model.described(), f"Classes: {', '.join(map(str, model.classes))}.")
    report.section("Answers")
    report.table(
        ["clip", "label", "possible", "because"],
        [*zip(found.names, found.labels, possible, because)],
    )
    report_failed(report, found.failed, len(new))
    save_report(report, out, sheets=sheets)
    to_stderr(f"labels, scores and reasons: {path}")
    say_failed(collection._replace(unread=found.failed))


def _table(model, found, possible, because):
    """(Header, rows) of predictions.csv."""
    kind = kinds_of_scores(model)
    scores = [f"{kind} {c}" for c in found.classes]
    header = ["clip", "label", *scores, "possible", "because"]
    how = [model.method, model.chosen]
    rows = [
        [name, label, *(f"{score:.4g}" for score in of), words, why, *how, ""]
        for name, label, of, words, why in zip(
            found.names, found.labels, found.scores.tolist(), possible, because
        )
    ]
    empty = [""] * (len(header) - 1)
    rows += [[name, *empty, *how, why] for name, why in found.failed.items()]
    return [*header, "method", "chosen", "failed"], rows
