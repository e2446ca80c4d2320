"""Evaluate all rows on splits into training and test parts."""

import functools
import itertools
import math
import signal
import tempfile
import time
from collections import namedtuple
from dataclasses import replace

import joblib
import numpy as np
from sklearn.metrics import f1_score

from grassmann_classify.bank import Bank
from grassmann_classify.baseline_rows import check_methods, every_method, is_named
from grassmann_classify.clips import some_sets
from grassmann_classify.first_tries import FEATURES
from grassmann_classify.inner_product import FIXED, SHRINKAGE, Ranking, fill, mean_of
from grassmann_classify.rows import (
    Split,
    attempt,
    fixed,
    is_coding,
)
from grassmann_classify.splits import folds_of_split, say_kept_together
from grassmann_classify.words import (
    all_in_words,
    duration,
    printable,
    reasons_for,
    to_stderr,
)
from grassmann_sc import estimators, files, tuning

WORTH_SAYING = 10  # seconds to go
LOOK = 400  # sets of a first look
MOST_TO_CHOOSE = 1000  # training sets, evenly of all classes, by which all is chosen
# The rows that are done. results: {method: [{accuracy, balanced, f1, seconds, chosen,
# predicted, failed, left_out, warned, reasons, summed}, ...], one for each split so
# far}; if the method failed, the first three are NaN and predicted is None. reasons:
# {wrong test set: [(labelled set, share), ...]} of coding methods, else None; summed:
# [(candidate, its accuracy in %), ...] of rows on an inner product, else None. pairs:
# the splits that they are of; n_done: the number of splits of which all rows are done, 0
# where only some rows of the first are; n_rows: how many are searched, 0: none.
Progress = namedtuple("Progress", "results pairs n_done n_rows", defaults=[0, 0])


def say_if_over(settings, end):
    """Say that a search was cut, if its end has come."""
    if time.perf_counter() > end:
        to_stderr(
            f"{settings.seconds:g} seconds are over: splits, rows and settings that had "
            "not begun are left out"
        )


def split_of(
    bank, label, group, train, test, settings, end=math.inf, shrinkage=SHRINKAGE
):
    """The Split; labels of the test part are not used.

    Everything is chosen on at most MOST_TO_CHOOSE training sets, evenly of all classes.
    """
    label = label.copy()
    label[test] = label[train[0]]
    few = train
    if len(train) > MOST_TO_CHOOSE:  # two sets of a class at least, of fewer classes
        classes = np.unique(label[train])
        some = classes[:: math.ceil(2 * len(classes) / MOST_TO_CHOOSE)]
        few = train[np.isin(label[train], some)]
        few = _evenly(few, label, MOST_TO_CHOOSE / len(few))
    repeated, n_repeats = folds_of_split(label, group, few, settings)
    once = repeated[: len(repeated) // n_repeats]
    return Split(
        bank,
        label,
        train,
        test,
        settings,
        repeated,
        once,
        Ranking(label, once, bank.names[0]),
        end,
        shrinkage,
        shared={},
    )


def evaluate(
    bank,
    label,
    group,
    split,
    settings,
    end=math.inf,
    shrinkage=SHRINKAGE,
    methods_of=every_method,
):
    """Yield the Outcome of each row on a split; if one fails, the others go on.

    Rows that code come first, since a model is one of these. end: the
    time.perf_counter() after which no row begins, but for the first, and no search goes
    on, which it says. shrinkage: as of Split.
    """
    split = split_of(bank, label, group, *split, settings, end, shrinkage)
    methods = sorted(
        rows_of(bank, split.smallest, settings, methods_of),
        key=lambda method: not is_coding(method.name),
    )
    fill(bank, [split.ranking], methods, end)
    for i, method in enumerate(methods):
        if i and time.perf_counter() > end:
            break
        yield attempt(method, split)
    say_if_over(settings, end)


def rows_of(bank, smallest, settings, methods_of=every_method):
    """The Methods that settings name, of all that methods_of gives."""
    rows = [*methods_of(bank, smallest, settings)]
    check_methods(settings.methods, [row.name for row in rows])
    return [row for row in rows if is_named(row.name, settings.methods)]


# ---------------------------------------------------------------------------- all splits


# What all processes read: splits; classes, truth (n,): the true labels as their indices
Work = namedtuple("Work", "splits classes truth")


def run_splits(
    bank,
    pairs,
    settings,
    jobs=1,
    end=math.inf,
    shrinkage=SHRINKAGE,
    methods_of=every_method,
):
    """Evaluate all methods on all splits; yields the Progress after some rows.

    jobs: processes that share rows and splits. end, shrinkage: as of Split.
    """
    collection = bank.collection
    pairs = tuning.check_splits(pairs, len(collection.label))
    groups = say_kept_together(collection, pairs)
    label = files.labels_to_keep(collection.label, len(collection.label), "sets")
    classes, label = np.unique(label, return_inverse=True)
    splits = [
        split_of(bank, label, group, *pair, settings, end, shrinkage)
        for pair, group in zip(pairs, groups)
    ]
    # the same number of learned atoms in all splits, because a row is one method
    smallest = min(split.smallest for split in splits)
    if settings.atoms > smallest:
        to_stderr(
            f"dictionaries of {smallest} atoms for --atoms {settings.atoms}: the smallest "
            "training part of a fold has no more sets"
        )
    methods = rows_of(bank, smallest, settings, methods_of)
    fill(bank, [split.ranking for split in splits], methods, end)
    done = [{} for _ in pairs]
    began = time.perf_counter()
    n_done = 0
    for i, rows in _arrivals(Work(splits, classes, label), methods, jobs):
        if not rows:  # the time was over
            continue
        for name, record in rows:
            done[i][name] = record
            if settings.verbose:
                chosen = all_in_words(record["chosen"])
                what = f"failed: {record['failed']}" if record["failed"] else chosen
                to_stderr(
                    f"split {i + 1} of {len(pairs)}: {record['accuracy']:5.1f}  {name}  "
                    f"{what}"
                )
        before = n_done
        while n_done < len(pairs) and len(done[n_done]) == len(methods):
            n_done += 1
        n_told = max(1, n_done)
        results = {
            method.name: [split[method.name] for split in done[:n_told]]
            for method in methods
            if method.name in done[0]
        }
        yield Progress(results, pairs[:n_told], n_done, len(methods))
        if before < n_done:
            to_go = (time.perf_counter() - began) * (len(pairs) / n_done - 1)
            to_stderr(
                f"split {n_done} of {len(pairs)}: {best_so_far(results)}"
                + f"; about {duration(to_go)} to go" * (to_go > WORTH_SAYING)
            )


def best_so_far(results):
    """The row with the best mean accuracy over the splits so far, in words."""
    means = {
        name: np.mean([split["accuracy"] for split in splits])
        for name, splits in results.items()
        if not any(split["failed"] for split in splits)
    }
    if not means:
        return "no row has an answer"
    name = max(means, key=means.get)
    return f"best so far {name}, {means[name]:.1f} %"


def _arrivals(work, methods, jobs):
    """(i, [(name, record), ...]) of rows of each split, as they are done."""
    if jobs == 1:
        for i, split in enumerate(work.splits):
            for method in methods:
                yield i, records_of(work, i, [method])
            split.shared.clear()  # matrices of all sets
        return
    # one process does the rows on one inner product, which it whitens once
    parts = [
        [*part]
        for _, part in itertools.groupby(
            methods, lambda m: (m.reads, m.among) if m.among == "sum" else m.name
        )
    ]
    with tempfile.TemporaryDirectory(
        prefix="grassmann-classify-", ignore_cleanup_errors=True
    ) as folder:
        path = f"{folder}/work"
        joblib.dump(work, path)
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(
                jobs, return_as="generator_unordered", pre_dispatch=jobs
            )
            try:
                yield from parallel(
                    joblib.delayed(_records_from)(path, i, part)
                    for i, part in itertools.product(range(len(work.splits)), parts)
                )
            except joblib.externals.loky.process_executor.TerminatedWorkerError:
                to_stderr(
                    "a process ended, perhaps for want of memory (--jobs 1 needs the "
                    "least): what was done stays"
                )


@functools.lru_cache(1)
def _work_from(path):
    return joblib.load(path, mmap_mode="c")


def _records_from(path, i, methods):
    """For a process: i, and records_of."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # left to the first process
    work = _work_from(path)
    records = records_of(work, i, methods)
    work.splits[i].shared.clear()  # matrices of all sets
    return i, records


def records_of(work, i, methods):
    """[(name, record as Progress has it), ...] of rows on a split.

    None begins after the end of the split.
    """
    split = work.splits[i]
    return [
        (method.name, _record(attempt(method, split), split, *work[1:]))
        for method in methods
        if time.perf_counter() < split.end
    ]


def _record(outcome, split, classes, truth):
    shares = dict.fromkeys(("accuracy", "balanced", "f1"), np.nan)
    predicted = None
    if outcome.failed is None:
        predicted = classes[outcome.predicted]
        shares = shares_of(truth[split.test], outcome.predicted)
    return {
        **shares,
        "seconds": outcome.seconds,
        "chosen": outcome.chosen,
        "predicted": predicted,
        "failed": outcome.failed and printable(outcome.failed),
        "left_out": outcome.left_out,
        "warned": outcome.warned,
        "reasons": _reasons_of_wrong(outcome, truth, split),
        "summed": outcome.inner and outcome.inner.words,
    }


def _reasons_of_wrong(outcome, truth, split):
    """What speaks for the wrong answers of a coding method, as reasons_for; or None."""
    estimator = outcome.estimator
    if not isinstance(estimator, estimators.CodingClassifier):
        return None
    wrong = np.flatnonzero(outcome.predicted != truth[split.test])
    if not len(wrong):
        return {}
    places = np.searchsorted(estimator.classes_, outcome.predicted[wrong])
    shares = estimator.explain(outcome.queries[wrong])
    reasons = [
        [(int(split.train[i]), share) for i, share in pairs]
        for pairs in reasons_for(shares, estimator.index_, places)
    ]
    return dict(zip(split.test[wrong].tolist(), reasons))


def shares_of(truth, predicted):
    """In %: accuracy, its mean over the true classes, and the mean F1 over all."""
    recall = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    return {
        "accuracy": 100 * np.mean(predicted == truth),
        "balanced": 100 * np.mean(recall),
        "f1": 100 * f1_score(truth, predicted, average="macro", zero_division=0),
    }


# ---------------------------------------------------------------------------- first look


def first_look(bank, pairs, settings, end=math.inf):
    """The Progress of one split by fixed settings, nothing searched.

    Of the splits it is the first that tests the most classes. On at most LOOK sets,
    drawn evenly over the classes. The inner product is the mean of all recipes and the
    spectra FIXED, or the given points, whitened by rows.USUAL_SHRINKAGE. After the time
    end no row begins but the first.
    """
    label = bank.collection.label
    pairs = tuning.check_splits(pairs, len(label))
    pair = max(pairs, key=lambda pair: len(np.unique(label[pair.test])))
    share = min(1, LOOK / sum(map(len, pair)))
    train, test = (_evenly(part, label, share) for part in pair)
    some = np.union1d(train, test)
    points = settings
    if settings.spectrum or not settings.p:
        points = replace(settings, p=None, spectrum=settings.spectrum or FIXED)
    # videos: for the names of their rows, which a first look leaves out
    look = Bank(some_sets(bank.collection, some), bank.recipes, points, bank.videos)
    if len(some) == len(label):
        look.described = bank.described
    why = None
    for name in look.names:
        try:
            for grams in look.linear(name):
                look.grams |= grams
        except ValueError as error:  # of one recipe among several
            why = error
    if not look.grams:
        raise why
    classes, index = np.unique(label[some], return_inverse=True)
    split = Split(
        look,
        index,
        np.searchsorted(some, train),
        np.searchsorted(some, test),
        settings,
        folds=[],
        once=[],
        ranking=None,
        end=end,
        shrinkage=None,
        shared={True: (None, mean_of(look.grams.values(), len(look.grams)), {})},
    )
    progress = Progress({}, [(train, test)])
    for method in rows_of(look, len(train), settings):
        is_shown = (method.reads, method.among) == ("gram", "sum")
        is_over = progress.results and time.perf_counter() > end
        if (is_shown or method.reads in FEATURES) and not is_over:
            record = _record(attempt(method, split, fixed), split, classes, index)
            reasons = record["reasons"]  # by the places of sets among some
            record["reasons"] = reasons and {
                int(some[i]): [(int(some[j]), share) for j, share in pairs]
                for i, pairs in reasons.items()
            }
            progress.results[method.name] = [record]
    return progress


def _evenly(part, label, share):
    """A share of the sets of a part, drawn evenly over the classes; all as they come."""
    if share >= 1:
        return part
    order = part[np.argsort(label[part], kind="stable")]
    number = max(2, math.ceil(share * len(part)))
    return np.sort(order[np.unique(np.linspace(0, len(part) - 1, number).astype(int))])
