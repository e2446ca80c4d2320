"""How well each row tells the classes of labelled clips apart: the command compare."""

import sys
import time
from collections import namedtuple
from dataclasses import asdict

import joblib
import numpy as np

from grassmann_classify.baseline_rows import every_method
from grassmann_classify.copies import across, copies_of
from grassmann_classify.evaluation import end_of, first_look, run_splits, say_if_over
from grassmann_classify.inputs import choose_kernels, labelled_clips, read, splits_of
from grassmann_classify.messages import plural, tell, to_stderr
from grassmann_classify.page import report_data, report_on, save_report
from grassmann_classify.records import save_codes, save_predictions, save_results
from grassmann_classify.rows import slug
from grassmann_classify.sheets import save_pictures
from grassmann_classify.splits import strangers
from grassmann_classify.tables import (
    columns_of,
    compared,
    print_choices,
    print_comparison,
    print_legend,
    print_notes,
    print_table,
    report_choices,
    report_table,
)
from grassmann_classify.words import short

FIRST_LOOK = "provisional: one split, one recipe, no kernels"
# seconds of a first look on all splits: processes would take longer to start
LITTLE = 4
CHOSEN = (
    "All settings were chosen by cross-validation on the training part of each split. In "
    "brackets: in how many splits, if not in all."
)


# What a run was asked and on what: notes: on its splits; end: the time.perf_counter() at
# which it stops; how: how the splits came about
Run = namedtuple("Run", "recipe settings paths out clips inputs pairs how notes end")


def compare(recipe, settings, paths, out):
    """Evaluate the rows on the clips of DIR, print the table, leave the results behind.

    A first look at one split comes first. What is left behind is whole after each
    split; Ctrl-C, or the end of --seconds, leaves it as it is.
    """
    end = end_of(settings)
    needs_splits = not paths.splits
    clips, given, recipe = labelled_clips(recipe, settings, paths, out, needs_splits)
    inputs = read(recipe, settings, paths, out, clips)
    choose_kernels(settings, inputs)
    collection = inputs.collection
    pairs, how = splits_of(settings, paths, collection, given)
    notes = [*strangers(collection.label, pairs), *copies_across(collection, pairs)]
    for text in notes:
        to_stderr(text)
    asked = recipe, settings, paths
    run = Run(*asked, out, clips, inputs, pairs, how, notes, end)
    start = time.perf_counter()
    done = first_look(collection, inputs, pairs, every_method(inputs), settings, end)
    jobs = settings.jobs
    if jobs is None:
        little = len(pairs) * (time.perf_counter() - start) < LITTLE
        jobs = 1 if little else joblib.cpu_count()
    n_done = 0
    if done.results:
        leave(run, done, n_done)
        _print(run, done, n_done, to_stderr)
    try:
        rows = every_method(inputs)
        for step in run_splits(collection, inputs, pairs, rows, settings, jobs, end):
            done = step
            if done.n_done > n_done:
                n_done = done.n_done
                leave(run, done, n_done)
    except KeyboardInterrupt:
        to_stderr("stopped")
    if n_done < len(pairs):
        say_if_over(settings, end)
    if not done.results:
        raise KeyboardInterrupt
    _print(run, done, n_done)
    arrays = save_codes(out, collection, done)
    sheets = {}
    if paths.pictures:
        parts = pairs[: max(1, n_done)]
        given = recipe.key, collection, clips, parts, done.results, arrays
        sheets = save_pictures(out, paths, *given)
    leave(run, done, n_done, sheets)
    pictures = ", pictures" if paths.pictures else ""
    to_stderr(f"results, predictions, codes{pictures}: {out.folder}")
    say_failed(collection, done.results)


def leave(run, done, n_done, sheets=None):
    """results.json, predictions.csv and report.html of the splits that are done.

    n_done: their number; 0: done is that of a first look.
    """
    out = run.out
    collection = run.inputs.collection
    recipes = {
        name: asdict(recipe) for name, recipe in run.inputs.recipes.items() if recipe
    }
    of_recipe = asdict(run.recipe)
    asked = of_recipe | vars(run.settings) | vars(run.paths) | {"recipes": recipes}
    results = done.results
    save_results(out, asked, collection, run.pairs, results, n_done)
    save_predictions(out, collection, run.pairs, results)
    report = report_on(run.paths, run.paths.data, "how well its classes are told apart")
    report_data(report, collection, run.clips)
    report.text(*run.notes)
    report.section("Accuracy")
    report.text(f"{_how_far(run.pairs, n_done)}: {run.how}.")
    comparison = compared(results, run.pairs[: max(1, n_done)])
    report_table(
        report, results, columns_of(run.settings, collection.label), comparison
    )
    why = comparison.why or f"p-values: {comparison.test}."
    report.text(why, "The command check names labels that may be wrong.")
    report.section("What was chosen")
    report.text(CHOSEN)
    report_choices(report, results)
    save_report(report, out, [slug(comparison.first or "")], sheets or {})


def _print(run, done, n_done, say=tell):
    """Print the table; after a split, also what its rows are and how they differ."""
    say(_headline(run.inputs, run.pairs, run.how, n_done))
    columns = columns_of(run.settings, run.inputs.collection.label)
    results = done.results
    print_table(results, columns, say)
    if not n_done:
        return
    tell("")
    print_legend(results)
    tell("")
    print_comparison(results, run.pairs[:n_done])
    print_notes(results)
    if run.settings.choices:
        tell("")
        print_choices(results)


def _how_far(pairs, n_done):
    if not n_done:
        return FIRST_LOOK
    whole = plural(len(pairs), "split")
    return whole if n_done == len(pairs) else f"after {n_done} of {whole}"


def _headline(inputs, pairs, how, n_done):
    collection = inputs.collection
    n, d, _ = collection.X.shape
    n_classes = len(np.unique(collection.label))
    dimensions = ", ".join(map(str, inputs.dimensions(collection.X.shape[2])))
    spread = "; ± is over the splits" if n_done > 1 else ""
    return (
        f"{plural(n, 'set')}, {plural(n_classes, 'class')}, subspaces of R^{d} of dimension "
        f"{dimensions}, {_how_far(pairs, n_done)}: {how}{spread}"
    )


def copies_across(collection, pairs):
    """What to say of copies of which one trains and the other is tested."""
    found = across(copies_of(collection), pairs)
    if not found:
        return []
    one = found[0]
    return [
        f"{plural(len(found), 'pair')} of copies are in both parts of a split, which makes "
        f"accuracy too high, as {collection.names[one.i]} and "
        f"{collection.names[one.j]}; the command check names them"
    ]


def say_failed(collection, results=()):
    """Name the clips and rows that failed; exit with status 1 if any row did."""
    if collection.unread:
        to_stderr(
            f"\n{plural(len(collection.unread), 'clip')} could not be used:\n  "
            + "\n  ".join(collection.unread.values())
        )
    failed = {
        name: split["failed"]
        for name, found in dict(results).items()
        for split in found
        if split["failed"]
    }
    if failed:
        sys.exit(
            "\n".join(f"{short(name)} failed: {why}" for name, why in failed.items())
        )
