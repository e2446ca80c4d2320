"""How well each row tells the classes of labelled clips apart: the command compare."""

import time
from collections import namedtuple
from dataclasses import asdict

import joblib
import numpy as np

from grassmann_classify.copies import across, copies_of
from grassmann_classify.evaluation import first_look, run_splits, say_if_over
from grassmann_classify.inputs import choose_kernels, labelled_clips, read
from grassmann_classify.page import (
    Report,
    draw_results,
    plot_accuracies,
    tell_where_wrong,
)
from grassmann_classify.results import save_predictions, save_results
from grassmann_classify.splits import splits_of, strangers
from grassmann_classify.tables import (
    WORST,
    accuracies,
    all_answers,
    choices,
    columns_of,
    compared,
    conclusion,
    each_class,
    meanings,
    notes_of,
    summed,
)
from grassmann_classify.timeline import border_error
from grassmann_classify.words import (
    plural,
    printable,
    rounded,
    say_failed,
    tell,
    to_stderr,
)

FIRST_LOOK = "provisional: one split, nothing searched"
# seconds of a first look on all splits: processes would take longer to start
LITTLE = 4
CHOSEN = (
    "All settings were chosen by cross-validation on the training part of each split. In "
    "brackets: in how many splits, if not in all."
)


# What page and terminal tell of the splits that are done. comparison: tables.Comparison;
# facts: what the run is on, and how far it is; accuracies: a Table
Findings = namedtuple("Findings", "comparison conclusion facts accuracies borders")
# What a run is on; notes: on its splits; how: how the splits came about
Run = namedtuple("Run", "recipe settings paths out clips bank pairs how notes")


def compare(recipe, settings, paths, out):
    """Evaluate the rows on the clips of DIR, print the table, leave the results behind.

    A first look at one split comes first. What is left behind is whole after each
    split; Ctrl-C, or the end of --seconds, leaves it as it is.
    """
    end = settings.end()
    clips, splits, recipe = labelled_clips(recipe, settings, paths)
    bank = read(recipe, settings, paths, clips)
    choose_kernels(settings, bank)
    collection = bank.collection
    pairs, how = splits_of(settings, paths, collection, splits)
    notes = strangers(collection.label, pairs)
    run = Run(recipe, settings, paths, out, clips, bank, pairs, how, notes)
    start = time.perf_counter()
    look = first_look(bank, pairs, settings, end)
    done = look
    is_little = len(pairs) * (time.perf_counter() - start) < LITTLE
    jobs = settings.jobs or (1 if is_little else joblib.cpu_count())
    failure = None
    n_done = 0
    if look.results:
        leave(run, look)
        _print(run, look, to_stderr)
    try:
        run.notes.extend(copies_across(collection, pairs))
        to_stderr(*run.notes)
        for done in run_splits(bank, pairs, settings, jobs, end):
            if done.n_done > n_done:
                n_done = done.n_done
                leave(run, done)
    except KeyboardInterrupt:
        to_stderr("stopped")
    except OSError as error:  # a full disk: what is done is printed
        failure = error
    if not n_done and np.array_equal(look.pairs[0][1], done.pairs[0][1]):
        # the rows that are done, and the others of the first look at the same sets
        results = {
            name: done.results.get(name) or [split | {"look": True} for split in rows]
            for name, rows in look.results.items()
        }
        done = done._replace(results=results | done.results)
    if n_done < len(pairs):
        say_if_over(settings, end)
    if not done.results:
        raise KeyboardInterrupt
    try:
        _print(run, done)
    finally:  # the reader of stdout may have left
        if failure is None:
            leave(run, done, paths.pictures)
    if failure:
        raise failure
    say_failed(collection.unusable, done.results)


def leave(run, done, pictures=False):
    """results.json, predictions.csv and report.html of the splits that are done.

    pictures: with these, at the end of the run.
    """
    out = run.out
    pairs = done.pairs
    results = done.results
    collection = run.bank.collection
    findings = findings_of(run, done)
    comparison = findings.comparison
    options = asdict(run.recipe) | vars(run.settings) | run.paths._asdict()
    options["recipes"] = {
        name: asdict(recipe) for name, recipe in run.bank.recipes.items() if recipe
    }
    planned = run.pairs if done.n_done else pairs
    save_results(out, options, collection, planned, results, done.n_done, comparison)
    save_predictions(out, collection, pairs, results)
    report = Report(
        out, run.paths, run.paths.data, "how well its classes are told apart"
    )
    report.lead(*findings.conclusion)
    report.text(*run.notes)
    if pictures:
        title = printable(run.paths.data.stem)
        report.draw("accuracies", title, plot_accuracies, results, comparison)
    report.section("Accuracy")
    report.text(f"{findings.facts}.")
    report.table(findings.accuracies)
    report.table(meanings(results))
    report.text(*notes_of(results))
    if comparison.first:
        tell_where_wrong(report, run, pairs, results, comparison.first, pictures)
        report.text(*findings.borders)
    if done.n_rows:
        report.section("What was chosen")
        report.text(CHOSEN)
        report.table(choices(results))
        report.table(summed(results))
    if pictures:
        draw_results(report, run, pairs, results, comparison)
    report.about(collection)
    report.save()


def _print(run, done, tell=tell):
    """Print what the table says, the table, and what is to be said of it."""
    results = done.results
    label = run.bank.collection.label
    findings = findings_of(run, done)
    first = findings.comparison.first
    tell(*findings.conclusion, f"\n{findings.facts}", findings.accuracies.text())
    tables = []
    if first and done.n_done:
        truth, predicted = all_answers(label, done.pairs, results[first])
        if (truth != predicted).any():
            worst = each_class(truth, predicted, WORST)
            tell(f"\nwhere {first} is wrong most often", worst.text())
        tell(*findings.borders)
    if run.settings.verbose:
        tables.append(meanings(results))
    if run.settings.choices and done.n_rows:
        tables += [choices(results), summed(results)]
    tell(*(f"\n{table.text()}" * bool(table.rows) for table in tables))
    tell(*notes_of(results))


def findings_of(run, done):
    """The Findings of the splits that are done."""
    collection = run.bank.collection
    comparison = compared(done.results, done.pairs, collection)
    tested = np.concatenate([test for _, test in done.pairs])
    is_cut = len(np.unique(collection.clip)) < len(collection.clip)
    columns = columns_of(run.settings, collection.label)
    return Findings(
        comparison,
        conclusion(comparison, tested, "window" if is_cut else "clip"),
        _facts(run, done),
        accuracies(done.results, columns, comparison),
        _borders(run, done, comparison.first),
    )


def _borders(run, done, first):
    """How far the answers of the row in front put borders off, in words, where known."""
    errors = [
        border_error(run.bank.collection, test, split["predicted"])
        for split, (_, test) in zip(done.results.get(first, []), done.pairs)
    ]
    errors = [error for error in errors if error is not None]
    if not errors or not run.settings.label_column:
        return []
    unit = "s" if run.recipe.rate or run.recipe.clock else "rows"
    return [
        f"{first} puts borders off by {rounded(np.median(errors), 2)} {unit} in the "
        "median; windows are cut at the labels' borders, which helps it"
    ]


def _facts(run, done):
    """What the run is on, and how far it is, in a few words."""
    collection = run.bank.collection
    n_classes = len(np.unique(collection.label))
    words = f"{plural(len(collection.label), 'set')} of {plural(n_classes, 'class')}"
    if collection.group is not None:
        words += f" and {plural(len(np.unique(collection.group)), 'group')}"
    if len(run.bank.recipes) > 1:
        words += f", {plural(len(run.bank.recipes), 'recipe')}"
    n_splits = len(run.pairs)
    tuned = sum("look" not in splits[0] for splits in done.results.values())
    how_far = f"{plural(n_splits, 'split')}: {run.how}"
    if not done.n_rows:
        how_far = FIRST_LOOK
    elif not done.n_done:
        how_far = f"{tuned} of {plural(done.n_rows, 'row')} of the first split"
    elif done.n_done < n_splits:
        how_far = f"after {done.n_done} of {how_far}"
    return f"{words}; {how_far}"


def copies_across(collection, pairs):
    """What to say of copies of which one trains and the other is tested."""
    label = collection.label
    names = collection.names
    copies = across(copies_of(collection), pairs)
    alike = [copy for copy in copies if label[copy.i] == label[copy.j]]
    apart = [copy for copy in copies if label[copy.i] != label[copy.j]]
    return [
        f"{plural(len(some), 'pair')} of copies{of} {'is' if len(some) == 1 else 'are'} in "
        f"both parts of a split, which makes accuracy too {how}, as {names[some[0].i]} and "
        f"{names[some[0].j]}; the command check names them"
        for some, of, how in ((alike, "", "high"), (apart, " under two labels", "low"))
        if some
    ]
