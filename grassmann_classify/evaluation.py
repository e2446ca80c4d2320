"""Evaluate all rows on splits into training and test parts."""

import functools
import itertools
import math
import signal
import tempfile
import time
from collections import namedtuple
from pathlib import Path

import joblib
import numpy as np
from sklearn.metrics import f1_score

import grassmann_sc as core
from grassmann_classify import first_tries
from grassmann_classify.bank import Bank, on_one_thread
from grassmann_classify.clips import some_sets
from grassmann_classify.inner_product import (
    FIXED,
    SHRINKAGE,
    Ranking,
    Whitened,
    fill,
    mean_of,
)
from grassmann_classify.rows import (
    Outcome,
    Split,
    asked_for,
    attempt,
    check_asked,
    fitted_to,
    is_tried_first,
    slug,
)
from grassmann_classify.splits import (
    folds_of_split,
    say_kept_together,
)
from grassmann_classify.words import all_in_words, duration, printable, short, to_stderr
from grassmann_sc import estimators, files, tuning

BECAUSE = 3  # sets named as what explains another
WORTH_SAYING = 10  # seconds to go
LOOK = 600  # sets of a first look
RANKED = 1000  # training sets, at most, by which candidates are ranked
USUAL = {"lam": 0.03, "n_neighbors": 10, "C": 10.0}  # of its rows
USUAL_SHRINKAGE = 0.1
# The rows that are done. results: {method: [{accuracy, balanced, f1, seconds, chosen,
# predicted, failed, left_out, warned, reasons, summed}, ...], one for each split so
# far}; if the method failed, the first three are NaN and predicted is None. reasons:
# {wrong test set: [(labelled set, share), ...]} of coding methods, else None; summed:
# [(candidate, its accuracy in %), ...] of rows on an inner product, else None. train,
# test: the parts of the last split; codes: {name: array} of what its coding methods
# made; n_done: the number of splits of which all rows are done, 0 where only some rows
# of the first are; n_rows: how many are searched, 0: none.
Progress = namedtuple(
    "Progress", "results train test codes n_done n_rows", defaults=[0, 0]
)


def end_of(settings):
    """The time.perf_counter() at which settings.seconds from now are over."""
    return time.perf_counter() + (
        math.inf if settings.seconds is None else settings.seconds
    )


def say_if_over(settings, end):
    """Say that a search was cut, if its end has come."""
    if time.perf_counter() > end:
        to_stderr(
            f"{settings.seconds:g} seconds are over: splits, rows and settings that had "
            "not begun are left out"
        )


def split_of(bank, label, group, train, test, settings, *how):
    """The Split; labels of the test part are not used. how: end, most and shrinkage.

    Candidates are ranked on at most RANKED training sets, evenly of all classes.
    """
    label = label.copy()
    label[test] = label[train[0]]
    repeated, n_repeats = folds_of_split(label, group, train, settings)
    once = repeated[: len(repeated) // n_repeats]
    few = _evenly(train, label, min(1, RANKED / len(train)))
    ranked = [tuple(np.intersect1d(part, few) for part in fold) for fold in once]
    ranking = Ranking(label, ranked, bank.names[0])
    return Split(bank, label, train, test, settings, repeated, once, ranking, *how)


def evaluate(
    bank,
    label,
    group,
    train,
    test,
    methods_of,
    settings,
    end=None,
    most=None,
    shrinkage=SHRINKAGE,
):
    """Yield the Outcome of each method on a split; if one fails, the others go on.

    end: the time.perf_counter() after which no method begins, but for the first, and no
    search goes on; None: that of settings, from now. most, shrinkage: as of Split.
    """
    end = end_of(settings) if end is None else end
    split = split_of(bank, label, group, train, test, settings, end, most, shrinkage)
    methods = rows_of(split, methods_of, split.smallest)
    fill(bank, [split.ranking], with_kernels(methods), end)
    for i, method in enumerate(methods):
        if i and time.perf_counter() > end:
            break
        yield attempt(method, split)


def rows_of(split, methods_of, smallest):
    """The Methods that are asked for."""
    settings = split.settings
    rows = [*methods_of(len(split.train), smallest, settings)]
    check_asked(settings.methods, [method.name for method in rows])
    return [row for row in rows if asked_for(row.name, settings.methods)]


def with_kernels(methods):
    """Does any method read Gaussian candidates?"""
    return any(method.reads == "kernels" for method in methods)


# ---------------------------------------------------------------------------- all splits


# What all processes read: splits; methods_of, smallest: the rows of all of them; classes
Work = namedtuple("Work", "splits methods_of smallest classes truth")


def run_splits(
    collection,
    bank,
    pairs,
    methods_of,
    settings,
    jobs=1,
    end=math.inf,
    shrinkage=SHRINKAGE,
):
    """Evaluate all methods on all splits; yields the Progress after some rows.

    jobs: processes that share rows and splits; methods_of must then be one that can be
    sent to them, as every_method gives it. end, shrinkage: as of Split.
    """
    pairs = tuning.check_splits(pairs, len(collection.label))
    groups = say_kept_together(collection, pairs)
    how = end, None, shrinkage
    work, methods = _work(collection, bank, pairs, groups, methods_of, settings, how)
    rankings = [split.ranking for split in work.splits]
    fill(bank, rankings, with_kernels(methods), end)
    names = [method.name for method in methods]
    done = [{} for _ in pairs]
    codes = [{} for _ in pairs]
    began = time.perf_counter()
    n_done = 0
    for i, rows in _arrivals(work, parts_of(methods), jobs, end):
        for name, record, of_row in rows:
            done[i][name] = record
            codes[i] |= of_row
            what = record["failed"]
            what = f"failed: {what}" if what else all_in_words(record["chosen"])
            to_stderr(
                f"split {i + 1} of {len(pairs)}: {record['accuracy']:5.1f}  {short(name)}  "
                f"{what}"
            )
        before = n_done
        while n_done < len(pairs) and len(done[n_done]) == len(names):
            n_done += 1
        last = max(0, n_done - 1)
        results = {
            name: [of_split[name] for of_split in done[: last + 1]]
            for name in names
            if name in done[0]
        }
        yield Progress(results, *pairs[last], codes[last], n_done, len(names))
        to_go = (time.perf_counter() - began) * (len(pairs) / max(1, n_done) - 1)
        if before < n_done < len(pairs) and to_go > WORTH_SAYING:
            to_stderr(f"about {duration(to_go)} to go")


def _work(collection, bank, pairs, groups, methods_of, settings, how):
    """(The Work, the Methods); what is compiled is there before times are taken."""
    few = collection.X[:2]
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    label = files.labels_to_keep(collection.label, len(collection.label), "sets")
    classes, label = np.unique(label, return_inverse=True)
    splits = [
        split_of(bank, label, group, *pair, settings, *how)
        for pair, group in zip(pairs, groups)
    ]
    # the same number of learned atoms in all splits, because a row is one method
    smallest = min(split.smallest for split in splits)
    methods = rows_of(splits[0], methods_of, smallest)
    return Work(splits, methods_of, smallest, classes, label), methods


def parts_of(methods):
    """[[name, ...], ...]: the rows that one process does one after another."""
    return [
        [method.name for method in some]
        for _, some in itertools.groupby(
            methods, lambda m: (m.reads, m.among) if m.among == "sum" else m.name
        )
    ]


def _arrivals(work, parts, jobs, end):
    """(i, [(name, record, codes), ...]) of each part of each split, as they are done."""
    todo = itertools.product(range(len(work.splits)), parts)
    if jobs == 1:
        for i, names in todo:
            for row in records_of(work, i, names, end):
                yield i, [row]
        return
    with tempfile.TemporaryDirectory(
        prefix="grassmann-classify-", ignore_cleanup_errors=True
    ) as folder:
        path = Path(folder) / "work"
        joblib.dump(work, path)
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(
                jobs, return_as="generator_unordered", pre_dispatch=jobs
            )
            try:
                yield from parallel(
                    joblib.delayed(_records_from)(path, i, names, end)
                    for i, names in todo
                )
            except joblib.externals.loky.process_executor.TerminatedWorkerError:
                to_stderr(
                    "a process ended, perhaps for want of memory (--jobs 1 needs the "
                    "least): what was done stays"
                )


@functools.lru_cache(1)
def _work_from(path):
    return joblib.load(path, mmap_mode="c")


def _records_from(path, i, names, end):
    """For a process: i, and records_of as a list."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # left to the first process
    return i, [*records_of(_work_from(path), i, names, end)]


def records_of(work, i, names, end):
    """Yield (name, record as Progress has it, {name: array} of codes) of rows on a split.

    None begins after the time end.
    """
    split = work.splits[i]
    for method in rows_of(split, work.methods_of, work.smallest):
        if method.name in names and time.perf_counter() < end:
            outcome = attempt(method, split)
            yield method.name, *_record(outcome, split, work.classes, work.truth)


def _record(outcome, split, classes, truth):
    shares = dict.fromkeys(("accuracy", "balanced", "f1"), np.nan)
    predicted = None
    codes = {}
    if outcome.failed is None:
        predicted = classes[outcome.predicted]
        shares = shares_of(truth[split.test], outcome.predicted)
        codes = codes_of(outcome)
    record = {
        **shares,
        "seconds": outcome.seconds,
        "chosen": outcome.chosen,
        "predicted": predicted,
        "failed": outcome.failed and printable(outcome.failed),
        "left_out": outcome.left_out,
        "warned": outcome.warned,
        "reasons": _reasons_of_wrong(outcome, truth, split.train, split.test),
        "summed": outcome.inner and outcome.inner.words,
    }
    return record, codes


# ---------------------------------------------------------------------------- first look


def first_look(collection, bank, pairs, methods_of, settings, end=math.inf):
    """The Progress of the first split by fixed settings, nothing searched.

    On at most LOOK sets, drawn evenly over the classes. The inner product is the mean
    of all recipes and the spectra FIXED, whitened by USUAL_SHRINKAGE. After the time end
    no row begins but the first.
    """
    (pair,) = tuning.check_splits(pairs, len(collection.label))[:1]
    label = collection.label
    share = min(1, LOOK / sum(map(len, pair)))
    train, test = (_evenly(part, label, share) for part in pair)
    some = np.union1d(train, test)
    look = Bank(some_sets(collection, some), bank.recipes, settings)
    if len(some) == len(label):
        look.described = bank.described
    look.take_spectra(FIXED)
    why = None
    for name in look.names:
        try:
            for grams in look.linear(name):
                look.grams |= grams
        except ValueError as error:  # of one recipe among several
            why = error
    if not look.grams:
        raise why
    if not look.grams:
        return Progress({}, train, test, {})
    classes, index = np.unique(label[some], return_inverse=True)
    parts = (np.searchsorted(some, part) for part in (train, test))
    split = Split(look, index, *parts, settings, [], [], None, end)
    split.shared[True] = None, mean_of(look.grams.values()), {}
    results = {}
    codes = {}
    for method in rows_of(split, methods_of, len(train)):
        is_first = is_tried_first(method)
        if not is_first and (method.reads, method.among) != ("gram", "sum"):
            continue
        if results and time.perf_counter() > end:
            break
        outcome = attempt(method, split, _fixed)
        results[method.name], of_row = _record(outcome, split, classes, index)
        results[method.name] = [results[method.name]]
        codes |= of_row
    return Progress(results, train, test, codes)


def _evenly(part, label, share):
    """A share of the sets of a part, drawn evenly over the classes."""
    order = part[np.argsort(label[part], kind="stable")]
    number = max(2, math.ceil(share * len(part)))
    return np.sort(order[np.unique(np.linspace(0, len(part) - 1, number).astype(int))])


@on_one_thread
def _fixed(method, split):
    """The Outcome of a method with the parameters USUAL."""
    bank = split.bank
    _, K, made = split.summed(True)
    candidate = Whitened(K, split.label, USUAL_SHRINKAGE, made)
    if is_tried_first(method):
        rows = bank.features(method.reads, bank.uncentred[0])
        candidate = first_tries.Features(rows)
    parameters = {}
    if method.predict is not tuning.nearest_predictions:
        names = method.estimator.get_params().keys() & USUAL.keys()
        parameters = {name: USUAL[name] for name in names}
    return Outcome(method, *fitted_to(method, parameters, candidate, split))


def codes_of(outcome):
    """{name: array}: the codes of the test part of an Outcome, and atoms learned."""
    coder = _coder(outcome.estimator)
    if coder is None or outcome.method.name.startswith("nearest subspace"):
        return {}
    found = {f"codes_{slug(outcome.method.name)}": coder.transform(outcome.queries)}
    if hasattr(coder, "steps"):
        found[f"atoms_{slug(outcome.method.name)}"] = coder[-1].components_
    return found


def _coder(estimator):
    """The part of a fitted estimator that gives codes, or None.

    It is a Pipeline if the atoms were learned. Other transformers, as GGDA, give no
    codes.
    """
    if not hasattr(estimator, "steps"):
        return estimator if isinstance(estimator, estimators.CodingClassifier) else None
    learned = [i for i, step in enumerate(estimator) if hasattr(step, "components_")]
    return estimator[: learned[0] + 1] if learned else None


def _reasons_of_wrong(outcome, label, train, test):
    """What speaks for the wrong answers of a coding method, as of_class; or None."""
    estimator = outcome.estimator
    if not isinstance(estimator, estimators.CodingClassifier):
        return None
    wrong = np.flatnonzero(outcome.predicted != label[test])
    if not len(wrong):
        return {}
    places = np.searchsorted(estimator.classes_, outcome.predicted[wrong])
    shares = estimator.explain(outcome.queries[wrong])
    found = of_class(shares, estimator.index_, places)
    of_all = [[(int(train[i]), share) for i, share in one] for one in found]
    return dict(zip(test[wrong].tolist(), of_all))


def of_class(shares, index, places):
    """What speaks for the class places[i] of each query i: [[(set, share), ...], ...].

    The sets of the largest positive ones of the core's Shares, at most BECAUSE; index
    (N,): the classes of the labelled sets.
    """
    reasons = []
    for indices, values, place in zip(*shares, places):
        mine = (indices >= 0) & (index[indices] == place) & (values > 0)
        pairs = zip(indices[mine].tolist(), values[mine].tolist())
        reasons.append([*pairs][:BECAUSE])
    return reasons


def explained(names, reasons):
    """What explains a set, in words: the labelled sets, and their shares."""
    return "; ".join(f"{names[i]} {share:.2g}" for i, share in reasons)


def labelled(name, label):
    """The name of a set, with its label if that is not the folder in its name."""
    return name if name.startswith(f"{label}/") else f"{name} ({label})"


def shares_of(truth, predicted):
    """In %: accuracy, its mean over the true classes, and the mean F1 over all."""
    of_class = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    return {
        "accuracy": 100 * np.mean(predicted == truth),
        "balanced": 100 * np.mean(of_class),
        "f1": 100 * f1_score(truth, predicted, average="macro", zero_division=0),
    }
