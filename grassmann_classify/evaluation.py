"""Evaluate all rows on splits into training and test parts."""

import re
import time
from collections import namedtuple

import numpy as np
from sklearn.metrics import f1_score

import grassmann_sc as core
from grassmann_classify.candidates import (
    Task,
    at_of,
    candidates,
    fit_and_predict,
    on_one_thread,
    points_of_grid,
    recipe_for,
)
from grassmann_classify.folds import folds_of_split, say_kept_together
from grassmann_classify.messages import in_words, printable, to_stderr, told
from grassmann_classify.reasons import of_class
from grassmann_classify.rows import (
    OURS,
    PEERS,
    Method,
    asked_for,
    check_asked,
    is_coding,
    is_tried_first,
)
from grassmann_classify.search import Outcome, attempt, search
from grassmann_classify.votes import vote, vote_of_rows
from grassmann_classify.words import short
from grassmann_sc import checks, estimators, files, tuning

PART = 0.6  # of the seconds that all candidates on all folds would take
WORTH_SAYING = 10  # seconds to go
VOTERS = {PEERS: r"nearest|SVM|frames|mean", OURS: r".*labelled sets as atoms"}
# After each method on a split. results: {method: [{accuracy, balanced, f1, seconds,
# chosen, predicted, failed, left_out, ends, warned, tried, reasons}, ...], one for each
# split so far}; if the method failed, the first three are NaN and predicted is None. reasons:
# {wrong test set: [(labelled set, share), ...]} of coding methods, else None. fitted:
# [(name, estimator, queries), ...] of this split; train, test: its parts.
Progress = namedtuple("Progress", "results train test fitted")
# What a split will take. total: seconds of all methods; spent: {name: seconds of its
# first fold, with what later folds and splits share}; known: what was computed.
Measured = namedtuple("Measured", "total spent known")


def evaluate(
    inputs,
    label,
    group,
    train,
    test,
    methods_of,
    settings,
    smallest=None,
    before=None,
):
    """The Outcome of each method on a split; if one fails, the others go on.

    The last two are votes: of all candidates of the coding methods, and of the other
    methods on Gram matrices. They need a test part. The labels of the test part are not
    used. smallest: the least number of training sets in a fold of any split; None: in
    this split. before: the Measured of this split, whose work is not done again.
    """
    label = label.copy()
    label[test] = label[train[0]]
    repeated, n_repeats = folds_of_split(label, group, train, settings)
    # estimators on sets take seconds a fit: their folds are not repeated
    once = repeated[: len(repeated) // n_repeats]
    if smallest is None:
        smallest = min(len(fit) for fit, _ in repeated)
    before = Measured(0.0, {}, {}) if before is None else before
    known = before.known
    # by predict: a method in a kernel's space reuses what was computed without kernel
    searches = {}
    done = []
    rows = list(methods_of(len(train), smallest, settings))
    names = [method.name for method in rows]
    if len(test):
        names += VOTERS
    check_asked(settings.methods, names)
    coding = coding_of(rows, settings)
    split = label, train, test
    task = Task(inputs, *split, settings, once, known, {}, coding, {})
    for method in rows:
        if not asked_for(method.name, settings.methods):
            continue
        shared = method.predict or method.name
        if shared not in searches:
            if method.predict is None:
                own = known.setdefault(method.name, {})
                searches[shared] = tuning.Search(label, once, fit_and_predict, own)
            else:
                # machines on frames take seconds a fit too
                several = once if is_tried_first(method) else repeated
                searches[shared] = tuning.Search(label, several, method.predict, known)
        outcome = attempt(method, search, searches[shared], at_of(done, task), task)
        seconds = outcome.seconds + before.spent.get(method.name, 0.0)
        done.append(outcome._replace(seconds=seconds))
        yield done[-1]
    if len(test):
        yield from _votes(done, searches, task)


def coding_of(rows, settings):
    """predict of the rows asked for that code, one for all, as Task has it."""
    found = [
        row.predict
        for row in rows
        if asked_for(row.name, settings.methods) and is_coding(row.name)
    ]
    return tuple(dict.fromkeys(found))


def _votes(done, searches, task):
    """The Outcome of each vote that is asked for, of the Outcomes of methods before."""
    settings = task.settings
    for name, who in VOTERS.items():
        asked = [
            outcome
            for outcome in done
            if outcome.method.predict and re.match(who, outcome.method.name)
        ]
        if not asked or not asked_for(name, settings.methods):
            continue
        method = Method(name, None, None, {})
        voters = [outcome for outcome in asked if outcome.failed is None]
        if not voters:
            yield Outcome(method, failed=f"no row can vote: {asked[0].failed}")
            continue
        how = (
            (vote, [(row, searches[row.method.predict]) for row in voters], task)
            if settings.seconds is None
            else (vote_of_rows, voters)
        )
        outcome = attempt(method, *how)
        seconds = sum(voter.seconds for voter in voters)
        yield outcome._replace(seconds=outcome.seconds + seconds)


def measured(inputs, label, group, train, methods_of, settings, smallest):
    """The Measured of a split: each method on the first fold of its training part."""
    pairs, n_repeats = folds_of_split(label, group, train, settings)
    known = {}
    spent = {}
    expected = []
    rows = list(methods_of(len(train), smallest, settings))
    coding = coding_of(rows, settings)
    split = label, train, train[:0]
    task = Task(inputs, *split, settings, pairs[:1], known, {}, coding, {})
    for method in rows:
        if asked_for(method.name, settings.methods):
            once = len(pairs) // n_repeats
            several = method.predict is not None and not is_tried_first(method)
            n_folds = len(pairs) if several else once
            outcome = attempt(method, _first_fold, once, n_folds, task)
            spent[method.name] = outcome.seconds
            most = np.inf if settings.seconds is None else settings.seconds
            expected.append(min(outcome.score, most))
    return Measured(sum(expected), spent, known)


def _first_fold(method, once, n_folds, task):
    """An Outcome whose score is the seconds that all folds of a split will take.

    once: the number of folds in the race of recipes.
    """
    made = method.predict is None
    start = time.perf_counter()
    reads_rows = is_tried_first(method)
    race = "features" if reads_rows else method.predict or tuning.nearest_predictions
    recipe = recipe_for(race, task)
    raced = time.perf_counter() - start
    at = recipe, task.inputs.p[recipe][-1]
    grams = points_of_grid(method, at, task) if made else candidates(method, task)
    start = time.perf_counter()
    predict = fit_and_predict if made else method.predict
    known = task.known.setdefault(method.name, {}) if made else task.known
    one = tuning.Search(task.label, task.once, predict, known)
    on_one_thread(one.choose)(grams, seconds=task.settings.seconds)
    each = time.perf_counter() - start
    return Outcome(method, score=PART * (n_folds * each + once * raced))


def run_splits(collection, inputs, pairs, methods_of, settings):
    """Evaluate all methods on all splits; gives the Progress after each method."""
    label = files.labels_to_keep(collection.label, len(collection.label), "sets")
    classes, label = np.unique(label, return_inverse=True)
    pairs = tuning.check_splits(pairs, len(label))
    few = collection.X[:2]  # compile first: the table shows the time of the methods
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    results = {}
    groups = say_kept_together(collection, pairs)
    # the same number of learned atoms in all splits, because a row is one method
    smallest = min(
        len(fit)
        for (train, _), group in zip(pairs, groups)
        for fit, _ in folds_of_split(label, group, train, settings)[0]
    )
    first = measured(
        inputs, label, groups[0], pairs[0].train, methods_of, settings, smallest
    )
    began = time.perf_counter()
    for i, (train, test) in enumerate(pairs):
        each = (time.perf_counter() - began) / i if i else first.total
        to_go = each * (len(pairs) - i)
        if to_go > WORTH_SAYING:
            to_stderr(f"about {in_words(to_go)} to go")
        fitted = []
        before = None if i else first
        for outcome in evaluate(
            inputs,
            label,
            groups[i],
            train,
            test,
            methods_of,
            settings,
            smallest,
            before,
        ):
            name = outcome.method.name
            shares = dict.fromkeys(("accuracy", "balanced", "f1"), np.nan)
            predicted = None
            if outcome.failed is None:
                predicted = classes[outcome.predicted]
                shares = shares_of(label[test], outcome.predicted)
                if name not in (PEERS, OURS):
                    fitted.append((name, outcome.estimator, outcome.queries))
            failed = outcome.failed and printable(outcome.failed)
            results.setdefault(name, []).append(
                {
                    **shares,
                    "seconds": outcome.seconds,
                    "chosen": outcome.chosen,
                    "predicted": predicted,
                    "failed": failed,
                    "left_out": outcome.left_out,
                    "ends": outcome.ends,
                    "warned": outcome.warned,
                    "tried": outcome.tried,
                    "reasons": _reasons_of_wrong(outcome, label, train, test),
                }
            )
            what = f"failed: {failed}" if failed else told(outcome.chosen)
            to_stderr(
                f"split {i + 1} of {len(pairs)}: {shares['accuracy']:5.1f}  {short(name)}  "
                f"{what}"
            )
            yield Progress(results, train, test, fitted)


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


def shares_of(truth, predicted):
    """In %: accuracy, its mean over the true classes, and the mean F1 over all."""
    of_class = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    return {
        "accuracy": 100 * np.mean(predicted == truth),
        "balanced": 100 * np.mean(of_class),
        "f1": 100 * f1_score(truth, predicted, average="macro", zero_division=0),
    }


def successes(found):
    """The splits on which a method did not fail."""
    return [split for split in found if split["failed"] is None]


def all_answers(label, pairs, found):
    """True and predicted labels of all test parts on which a method succeeded."""
    truth = [label[:0]]
    predicted = [label[:0]]
    for split, (_, test) in zip(found, pairs):
        if split["failed"] is None:
            truth.append(label[test])
            predicted.append(split["predicted"])
    return np.concatenate(truth), np.concatenate(predicted)


def natural_classes(label):
    """The classes, 2 before 10."""
    return sorted(np.unique(label).tolist(), key=checks.natural_order)
