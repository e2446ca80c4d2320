"""What a model answers: labels, why, how sure, and which classes are possible."""

from collections import namedtuple

import numpy as np

from grassmann_classify.clips import Clip, some_sets
from grassmann_classify.evaluation import explained, labelled, of_class
from grassmann_classify.model import build_new, check_model
from grassmann_classify.words import UNLIKE, printable
from grassmann_sc import calibration, shared

# names: of the n sets that were answered; labels (n,); scores (n, n_classes),
# probabilities where the row has them; failed: {name: why} of the clips without
# answer; runner_up (n,): the best other class. The others are None unless the row
# codes. p_values (n, n_classes) of the classes and p_any (n,) of being of any;
# because, instead (n,): in words, the labelled sets that speak for the label and for
# the runner-up; reasons (n,): the same as pairs, as evaluation.of_class; ahead (n,): of
# the label's score before the runner-up's, as a share of the largest
Answers = namedtuple(
    "Answers",
    "names labels scores classes failed runner_up p_values p_any because instead reasons "
    "ahead",
    defaults=(None,) * 6,
)


def predict(model, sets):
    """Answers of a Model for sets of frames; labels have the type given to fit."""
    check_model(model)
    shared.check_sequence(sets, "sets", "arrays of frames")
    if not len(sets):
        raise ValueError("sets must hold at least one set, got none")
    clips = [
        Clip(f"set {i}", None, None, [np.asarray(rows)]) for i, rows in enumerate(sets)
    ]
    return answers_of(model, build_new(model, clips))


def answers_of(model, collection):
    """Answers for the sets of a Collection."""
    answers, failed = _each_answered(model, collection)
    class_index = np.array([index for index, *_ in answers.values()], int)
    scores = np.array([row for _, row, _ in answers.values()])
    scores = scores.reshape(-1, len(model.classes))
    second = _runner_up(scores, class_index)
    result = Answers(
        [*answers],
        model.classes[class_index],
        scores,
        model.classes,
        {**collection.unusable, **failed},
        model.classes[second],
    )
    if not model.codes:
        return result
    queries = np.array([query for *_, query in answers.values()])
    if not len(queries):
        queries = np.empty((0, len(model.labels)))
    return _with_reasons(result, model, queries, class_index, second)


def _runner_up(scores, class_index):
    """The index (n,) of the best other class."""
    others = np.array(scores, float)
    others[np.arange(len(others)), class_index] = -np.inf
    return others.argmax(axis=1)


def _each_answered(model, collection):
    """({name: (index of its class, scores, query)}, {name: why it has no answer}).

    Sets that fail together are asked in halves.
    """
    names = collection.names
    try:
        return dict(zip(names, answered(model, model.queries(collection)))), {}
    except ValueError as error:
        if len(names) == 1:
            return {}, {names[0]: printable(error)}
    answers = {}
    failed = {}
    for half in np.array_split(np.arange(len(names)), 2):
        some, why = _each_answered(model, some_sets(collection, half))
        answers |= some
        failed |= why
    return answers, failed


def answered(model, queries):
    """[(index of the class, scores (n_classes,), query), ...] of queries."""
    estimator = model.estimator
    scores = getattr(estimator, "predict_proba", None)
    scores = estimator.decision_function(queries) if scores is None else scores(queries)
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    class_index = np.searchsorted(estimator.classes_, estimator.predict(queries))
    return [*zip(class_index.tolist(), scores, queries)]


def _with_reasons(answers, model, queries, class_index, second):
    """The Answers with all that a row that codes tells of queries (n, N)."""
    estimator = model.estimator
    n = len(queries)
    names = [*map(labelled, model.names, model.labels)]
    shares = estimator.explain(queries)
    both = [of_class(shares, estimator.index_, c) for c in (class_index, second)]
    reasons = np.empty(n, object)
    reasons[:] = [*zip(*both)]
    because, instead = (
        np.array([explained(names, pairs) for pairs in sets], object) for sets in both
    )
    scores = estimator.class_scores(queries)
    unit = np.maximum(np.abs(scores).max(axis=1), np.finfo(float).tiny)
    each = np.arange(n)
    p_values, p_any = estimator.p_values(queries, left_out=model.left_out)
    return answers._replace(
        p_values=p_values,
        p_any=p_any,
        because=because,
        instead=instead,
        reasons=reasons,
        ahead=(scores[each, class_index] - scores[each, second]) / unit,
    )


def any_of(classes):
    """In words, all of these classes."""
    return "; ".join(map(str, classes))


def possible_classes(answers, coverage):
    """In words, the classes that each of the Answers can have at this coverage.

    "" of a row that does not code. A class is out if its p-value is at most
    1 - coverage.
    """
    if answers.p_values is None:
        return [""] * len(answers.names)
    level = calibration.level_of(coverage)
    return [
        UNLIKE
        if p_any <= level
        else any_of(answers.classes[p_values > level]) or "none"
        for p_values, p_any in zip(answers.p_values, answers.p_any)
    ]


def kinds_of_scores(model):
    """Are the scores of a model's answers "probability" or "score"?"""
    return "probability" if hasattr(model.estimator, "predict_proba") else "score"
