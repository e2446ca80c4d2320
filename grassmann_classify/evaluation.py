"""Evaluate all rows on splits into training and test parts."""

import math
import re
import time
from collections import namedtuple

import numpy as np
from sklearn.metrics import f1_score

import grassmann_sc as core
from grassmann_classify.candidates import Task, at_of, fit_and_predict
from grassmann_classify.folds import (
    folds_of_split,
    kept_of_splits,
    say_kept_together,
)
from grassmann_classify.messages import in_words, printable, to_stderr, told
from grassmann_classify.reasons import of_class
from grassmann_classify.rows import (
    OURS,
    PEERS,
    TRIED_FIRST,
    Method,
    asked_for,
    check_asked,
    is_coding,
    is_tried_first,
    slug,
)
from grassmann_classify.search import Outcome, attempt, search
from grassmann_classify.votes import vote, vote_of_rows
from grassmann_classify.workers import Team
from grassmann_sc import checks, estimators, files, tuning

WORTH_SAYING = 10  # seconds to go
LOOK = 15  # seconds of a first look, in which a row begins
VOTERS = {PEERS: r"nearest|SVM|frames|mean", OURS: r".*labelled sets as atoms"}
# After each split. results: {method: [{accuracy, balanced, f1, seconds, chosen,
# predicted, failed, left_out, ends, warned, tried, reasons}, ...], one for each split so
# far}; if the method failed, the first three are NaN and predicted is None. reasons:
# {wrong test set: [(labelled set, share), ...]} of coding methods, else None. train, test:
# the parts of the last split; codes: {name: array} of what its coding methods made.
Progress = namedtuple("Progress", "results train test codes")


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


def evaluate(
    inputs,
    label,
    group,
    train,
    test,
    methods_of,
    settings,
    smallest=None,
    end=None,
    quick=False,
):
    """The Outcome of each method on a split; if one fails, the others go on.

    The last two are votes: of all candidates of the coding methods, and of the other
    methods on Gram matrices. They need a test part. The labels of the test part are not
    used. smallest: the least number of training sets in a fold of any split; None: in
    this split. end: the time.perf_counter() after which no method begins, but for the
    first, and no search goes on; None: that of settings, from now. quick: only methods
    on features or the projection kernel, without repeated folds.
    """
    end = end_of(settings) if end is None else end
    label = label.copy()
    label[test] = label[train[0]]
    repeated, n_repeats = folds_of_split(label, group, train, settings)
    # estimators on sets take seconds a fit: their folds are not repeated
    once = repeated[: len(repeated) // n_repeats]
    if smallest is None:
        smallest = min(len(fit) for fit, _ in repeated)
    known = {}
    # by predict: a method in a kernel's space reuses what was computed without kernel
    searches = {}
    done = []
    rows = list(methods_of(len(train), smallest, settings))
    if quick:
        features = [row for row in rows if is_tried_first(row)]
        rows = [row for row in rows if row.reads == "gram"] + features
        repeated = once
    names = [method.name for method in rows]
    if len(test):
        names += VOTERS
    if not quick:
        check_asked(settings.methods, names)
    coding = coding_of(rows, settings)
    split = label, train, test
    task = Task(inputs, *split, settings, once, known, coding=coding, end=end)
    for method in rows:
        if not asked_for(method.name, settings.methods):
            continue
        if done and time.perf_counter() > end:
            break
        shared = method.predict or method.name
        if shared not in searches:
            if method.predict is None:
                own = known.setdefault(method.name, {})
                searches[shared] = tuning.Search(label, once, fit_and_predict, own)
            else:
                # machines on frames take seconds a fit too
                several = once if is_tried_first(method) else repeated
                searches[shared] = tuning.Search(label, several, method.predict, known)
        at = at_of(done, task)
        done.append(attempt(method, search, searches[shared], at, task))
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
            if task.seconds != 0
            else (vote_of_rows, voters)
        )
        outcome = attempt(method, *how)
        seconds = sum(voter.seconds for voter in voters)
        yield outcome._replace(seconds=outcome.seconds + seconds)


def run_splits(collection, inputs, pairs, methods_of, settings, team=None):
    """Evaluate all methods on all splits; gives the Progress after each split.

    team: the Team whose processes share the splits; methods_of must then be one that
    can be sent to them, as every_method gives it. None: they are evaluated here.
    """
    team = team or Team(1)
    pairs = tuning.check_splits(pairs, len(collection.label))
    groups = say_kept_together(collection, pairs)
    given = _splits(collection, inputs, pairs, groups, methods_of, settings)
    results = {}
    codes = {}
    began = time.perf_counter()
    of_split = {}
    for i, one in team.each(records_of_split, given, len(pairs)):
        if one is not None:
            name, record, of_row = one
            of_split[name] = record
            codes |= of_row
            what = record["failed"]
            what = f"failed: {what}" if what else told(record["chosen"])
            to_stderr(
                f"split {i + 1} of {len(pairs)}: {record['accuracy']:5.1f}  {name}  "
                f"{what}"
            )
            continue
        # all rows at once: Ctrl-C may come at any time
        results = {
            name: [*results.get(name, []), record] for name, record in of_split.items()
        }
        yield Progress(results, *pairs[i], codes)
        of_split = {}
        codes = {}
        spent = time.perf_counter() - began
        # as many splits as there are processes end at the same time, more or less
        rounds, most = (math.ceil(k / team.jobs) for k in (i + 1, len(pairs)))
        to_go = spent * (most / rounds - 1)
        if i + 1 < len(pairs) and to_go > WORTH_SAYING:
            to_stderr(f"about {in_words(to_go)} to go")


# What splits are evaluated on: label: the indices of the classes of all sets; smallest:
# the least number of training sets in a fold of any split
Splits = namedtuple(
    "Splits", "inputs classes label groups pairs methods_of settings smallest"
)


def _splits(collection, inputs, pairs, groups, methods_of, settings):
    """The Splits of checked pairs; what is compiled is there before times are taken."""
    few = collection.X[:2]
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    label = files.labels_to_keep(collection.label, len(collection.label), "sets")
    classes, label = np.unique(label, return_inverse=True)
    # the same number of learned atoms in all splits, because a row is one method
    smallest = min(
        len(fit)
        for (train, _), group in zip(pairs, groups)
        for fit, _ in folds_of_split(label, group, train, settings)[0]
    )
    of_all = inputs, classes, label, groups, pairs
    return Splits(*of_all, methods_of, settings, smallest)


def records_of_split(given, i, seconds, quick=False):
    """(Name, record as Progress has it, {name: array} of codes) of each method on a split."""
    train, test = given.pairs[i]
    classes = given.classes
    label = given.label
    for outcome in evaluate(
        given.inputs,
        label,
        given.groups[i],
        train,
        test,
        given.methods_of,
        given.settings,
        given.smallest,
        time.perf_counter() + seconds,
        quick,
    ):
        shares = dict.fromkeys(("accuracy", "balanced", "f1"), np.nan)
        predicted = None
        codes = {}
        if outcome.failed is None:
            predicted = classes[outcome.predicted]
            shares = shares_of(label[test], outcome.predicted)
            codes = codes_of(outcome)
        record = {
            **shares,
            "seconds": outcome.seconds,
            "chosen": outcome.chosen,
            "predicted": predicted,
            "failed": outcome.failed and printable(outcome.failed),
            "left_out": outcome.left_out,
            "ends": outcome.ends,
            "warned": outcome.warned,
            "tried": outcome.tried,
            "reasons": _reasons_of_wrong(outcome, label, train, test),
        }
        yield outcome.method.name, record, codes


def first_look(collection, inputs, pairs, methods_of, settings, end=math.inf):
    """The Progress of the first split by methods that take seconds, quickly tuned.

    No row but the first begins after LOOK seconds, or after the time end.
    """
    pairs = tuning.check_splits(pairs, len(collection.label))[:1]
    groups = [of_set for of_set, _ in kept_of_splits(collection, pairs)]
    given = _splits(collection, inputs, pairs, groups, methods_of, settings)
    results = {}
    codes = {}
    seconds = min(LOOK, end - time.perf_counter())
    for name, record, of_row in records_of_split(given, 0, seconds, quick=True):
        results[name] = [record]
        codes |= of_row
    # in the order of the table
    results = {name: results[name] for name in TRIED_FIRST if name in results} | results
    return Progress(results, *pairs[0], codes)


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
