"""How well each row tells the classes of labelled clips apart: the command compare."""

import sys
from dataclasses import asdict

import numpy as np

from grassmann_classify.baseline_rows import every_method
from grassmann_classify.copies import across, copies_of
from grassmann_classify.curves import save_curves
from grassmann_classify.evaluation import run_splits
from grassmann_classify.messages import plural, tell, to_stderr
from grassmann_classify.page import report_data, report_on, save_report
from grassmann_classify.reading import choose_kernels, labelled_clips, read, splits_of
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

CHOSEN = (
    "All settings were chosen by cross-validation on the training part of each split. In "
    "brackets: in how many splits, if not in all."
)


def compare(options, out):
    """Evaluate the rows on the clips of DIR, print the table, leave the results behind."""
    clips, given = labelled_clips(options, out, needs_splits=not options.splits)
    inputs = read(options, out, clips)
    choose_kernels(options, inputs)
    collection = inputs.collection
    pairs, how = splits_of(options, collection, given)
    notes = [*strangers(collection.label, pairs), *copies_across(collection, pairs)]
    for text in notes:
        to_stderr(text)
    recipes = {
        name: asdict(recipe) for name, recipe in inputs.recipes.items() if recipe
    }
    asked = vars(options) | {"recipes": recipes}
    for done in run_splits(collection, inputs, pairs, every_method(inputs), options):
        save_results(out, asked, collection, pairs, done.results)
        save_predictions(out, collection, pairs, done.results)
    results = done.results
    columns = columns_of(options, collection.label)
    tell(_headline(collection, inputs, pairs, how))
    print_table(results, columns)
    tell("")
    print_legend(results)
    tell("")
    print_comparison(results, pairs)
    print_notes(results)
    if options.choices:
        tell("")
        print_choices(results)
    arrays = save_codes(out, collection, done)
    sheets = {}
    if not options.no_pictures:
        save_curves(out, options, inputs, collection.label, pairs, results)
        sheets = save_pictures(out, options, collection, clips, pairs, results, arrays)
    report = report_on(options, options.data, "how well its classes are told apart")
    report_data(report, collection, clips)
    report.text(*notes)
    report.section("Accuracy")
    report.text(f"{plural(len(pairs), 'split')}: {how}.")
    comparison = compared(results, pairs)
    report_table(report, results, columns, comparison)
    why = comparison.why or f"p-values: {comparison.test}."
    report.text(why, "The command check names labels that may be wrong.")
    report.section("What was chosen")
    report.text(CHOSEN)
    report_choices(report, results)
    save_report(report, out, [slug(comparison.first or "")], sheets)
    to_stderr(f"results, predictions, codes and pictures: {out.folder}")
    say_failed(collection, results)


def _headline(collection, inputs, pairs, how):
    n, d, _ = collection.X.shape
    n_classes = len(np.unique(collection.label))
    dimensions = ", ".join(map(str, inputs.p[inputs.names[0]]))
    spread = "; ± is over the splits" if len(pairs) > 1 else ""
    return (
        f"{plural(n, 'set')}, {plural(n_classes, 'class')}, subspaces of R^{d} of dimension "
        f"{dimensions}, {plural(len(pairs), 'split')}: {how}{spread}"
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
