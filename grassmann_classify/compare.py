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
from grassmann_classify.page import report_data, report_on, save_report
from grassmann_classify.pictures import save_pictures
from grassmann_classify.results import save_codes, save_predictions, save_results
from grassmann_classify.rows import slug
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
from grassmann_classify.words import plural, short, tell, to_stderr

FIRST_LOOK = "provisional: one split, nothing searched"
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
    notes = strangers(collection.label, pairs)
    run = Run(recipe, settings, paths, out, clips, inputs, pairs, how, notes, end)
    start = time.perf_counter()
    rows = every_method(inputs)
    look = done = first_look(collection, inputs, pairs, rows, settings, end)
    jobs = settings.jobs
    if jobs is None:
        little = len(pairs) * (time.perf_counter() - start) < LITTLE
        jobs = 1 if little else joblib.cpu_count()
    n_done = 0
    if look.results:
        leave(run, look)
        _print(run, look, to_stderr)
    try:
        run.notes.extend(copies_across(collection, pairs))
        for text in run.notes:
            to_stderr(text)
        for step in run_splits(collection, inputs, pairs, rows, settings, jobs, end):
            done = step
            if done.n_done > n_done:
                n_done = done.n_done
                leave(run, done)
    except KeyboardInterrupt:
        to_stderr("stopped")
    if not n_done and done is not look:
        done = with_look(done, look)
    if n_done < len(pairs):
        say_if_over(settings, end)
    if not done.results:
        raise KeyboardInterrupt
    _print(run, done)
    arrays = save_codes(out, collection, done)
    sheets = {}
    if paths.pictures:
        parts = _parts(run, done)
        given = recipe.key, collection, clips, parts, done.results, arrays
        sheets = save_pictures(out, paths, *given)
    leave(run, done, sheets)
    pictures = ", pictures" if paths.pictures else ""
    to_stderr(f"results, predictions, codes{pictures}: {out.folder}")
    say_failed(collection, done.results)


def with_look(done, look):
    """The rows that are done, and of those of the same sets in a first look the others."""
    if len(look.test) != len(done.test):
        return done
    results = {
        name: done.results.get(name) or [split | {"look": True} for split in rows]
        for name, rows in look.results.items()
    }
    return done._replace(results=results | done.results)


def _parts(run, done):
    """The splits that results are of."""
    return run.pairs[: done.n_done] or [(done.train, done.test)]


def leave(run, done, sheets=None):
    """results.json, predictions.csv and report.html of the splits that are done."""
    pairs = _parts(run, done)
    out = run.out
    collection = run.inputs.collection
    recipes = {
        name: asdict(recipe) for name, recipe in run.inputs.recipes.items() if recipe
    }
    of_recipe = asdict(run.recipe)
    asked = of_recipe | vars(run.settings) | vars(run.paths) | {"recipes": recipes}
    results = done.results
    of_all = run.pairs if done.n_done else pairs
    save_results(out, asked, collection, of_all, results, done.n_done)
    save_predictions(out, collection, pairs, results)
    report = report_on(run.paths, run.paths.data, "how well its classes are told apart")
    report_data(report, collection, run.clips)
    report.text(*run.notes)
    report.section("Accuracy")
    report.text(f"{_how_far(run, done)}: {run.how}.")
    comparison = compared(results, pairs)
    report_table(
        report, results, columns_of(run.settings, collection.label), comparison
    )
    why = comparison.why or f"p-values: {comparison.test}."
    report.text(why, "The command check names labels that may be wrong.")
    report.section("What was chosen")
    report.text(CHOSEN)
    report_choices(report, results)
    save_report(report, out, [slug(comparison.first or "")], sheets or {})


def _print(run, done, say=tell):
    """Print the table; after a split, also what its rows are and how they differ."""
    say(_headline(run, done))
    columns = columns_of(run.settings, run.inputs.collection.label)
    results = done.results
    print_table(results, columns, say)
    if say is not tell:
        return
    tell("")
    print_legend(results)
    tell("")
    print_comparison(results, _parts(run, done))
    print_notes(results)
    if run.settings.choices:
        tell("")
        print_choices(results)


def _how_far(run, done):
    n_splits = len(run.pairs)
    if done.n_done == n_splits:
        return plural(n_splits, "split")
    if done.n_done:
        return f"after {done.n_done} of {plural(n_splits, 'split')}"
    if not done.n_rows:
        return FIRST_LOOK
    tuned = sum("look" not in splits[0] for splits in done.results.values())
    return f"{tuned} of {plural(done.n_rows, 'row')} of the first split"


def _headline(run, done):
    collection = run.inputs.collection
    n, d, _ = collection.X.shape
    n_classes = len(np.unique(collection.label))
    dimensions = ", ".join(map(str, run.inputs.dimensions(collection.X.shape[2])))
    spread = "; ± is over the splits" if done.n_done > 1 else ""
    return (
        f"{plural(n, 'set')}, {plural(n_classes, 'class')}, subspaces of R^{d} of dimension "
        f"{dimensions}, {_how_far(run, done)}: {run.how}{spread}"
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
