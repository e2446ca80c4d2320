"""What a model answers: labels by its row; why, how sure and none of these by coding."""

from collections import namedtuple

import numpy as np

from grassmann_classify.clips import Clip, some_sets
from grassmann_classify.model import build_both, check_model
from grassmann_classify.next_labels import ranks
from grassmann_classify.reasons import explained, labelled, of_class
from grassmann_classify.words import printable
from grassmann_sc import checks

# names: of the n sets that were answered; labels (n,); scores (n, n_classes),
# probabilities where the row has them; failed: {name: why} of the clips without
# answer. The others are by the model that codes, None if there is none, and of a set
# that it cannot take NaN, None or "". p_values (n, n_classes) of the classes and known
# (n,) of being of any; coded (n,): its own labels; because: in words, the labelled sets
# of its class that explain each; runner_up (n,): the best other class, which is its
# label where that differs; instead: in words, what speaks for these; reasons: [(what
# speaks for the label, for the runner-up), ...], as reasons.of_class; ahead (n,): of
# the label's score before the runner-up's, as a share of the largest; label_next (n,):
# the rank in which to label them, as next_labels.ranks, 0 where there is none
Answers = namedtuple(
    "Answers",
    "names labels scores classes failed p_values known because runner_up instead reasons "
    "coded ahead label_next",
    defaults=(None,) * 9,
)
UNSURE = 0.1  # the largest p-value of being of any class at which no label is sure
Coded = namedtuple("Coded", "p_values known coded second reasons ahead label_next")


def predict(model, sets):
    """Answers of a Model for sets of frames; labels have the type given to fit."""
    check_model(model)
    checks.check_sequence(sets, "sets", "arrays of frames")
    if not len(sets):
        raise ValueError("sets must hold at least one set, got none")
    clips = [
        Clip(f"set {i}", None, None, [np.asarray(rows)]) for i, rows in enumerate(sets)
    ]
    return answers_of(model, *build_both(model, clips))


def answers_of(model, collection, to_code=None):
    """Answers for the sets of a Collection, one by one if they fail together.

    to_code: the Collection of the same clips for the model that codes, as build_both
    gives it; sets that are missing there have a label alone.
    """
    by_row, failed = _each(_labels_of, model, collection)
    names = [*by_row]
    places = np.array([place for place, *_ in by_row.values()], int)
    scores = [of_set for _, of_set, _ in by_row.values()]
    scores = np.array(scores).reshape(-1, len(model.classes))
    found = Answers(
        names,
        model.classes[places],
        scores,
        model.classes,
        {**collection.unread, **failed},
    )
    queries = {name: query for name, (*_, query) in by_row.items()}
    if model.coding is not model:
        queries = _to_code(model.coding, to_code, by_row)
    return _with_reasons(found, model.coding, queries, places)


def _to_code(coder, collection, names):
    """{name: row of its Gram} of the sets of these names that a coder can take."""
    given = [] if collection is None else collection.names
    asked = [i for i, name in enumerate(given) if name in names]
    return _each(queries_of, coder, some_sets(collection, asked))[0] if asked else {}


def _each(answer, model, collection):
    """({name: what answer(model, collection) gives of it}, {name: why it gives nothing}).

    Sets are asked one by one if they fail together.
    """
    names = collection.names
    try:
        return dict(zip(names, answer(model, collection))), {}
    except ValueError as error:
        if len(names) == 1:
            return {}, {names[0]: printable(error)}
    found = {}
    failed = {}
    for i in range(len(names)):
        of_set, why = _each(answer, model, some_sets(collection, [i]))
        found |= of_set
        failed |= why
    return found, failed


def queries_of(model, collection):
    """What the estimator of a Model is asked of the sets of a Collection."""
    return model.asked(model.reader.points(collection))


def _labels_of(model, collection):
    """[(place of the label, scores, query), ...] by the row of a Model."""
    return answered(model, queries_of(model, collection))


def answered(model, queries):
    """[(place of the label, scores (n_classes,), query), ...] of queries."""
    estimator = model.estimator
    scores = getattr(estimator, "predict_proba", None)
    scores = estimator.decision_function(queries) if scores is None else scores(queries)
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    places = np.searchsorted(estimator.classes_, estimator.predict(queries))
    return [*zip(places.tolist(), scores, queries)]


def _with_reasons(found, coder, queries, places):
    """Answers with all that the coder tells of the queries {name: row of its Gram}."""
    n = len(places)
    others = np.array(found.scores, float)
    others[np.arange(n), places] = -np.inf
    second = others.argmax(axis=1)
    own = [[] for _ in range(n)]
    other = [[] for _ in range(n)]
    known_as = []
    at = [i for i, name in enumerate(found.names) if name in queries]
    if coder is not None:
        told = Coded(
            np.full((n, len(found.classes)), np.nan),
            np.full(n, np.nan),
            np.full(n, None, object),
            second,
            None,
            np.full(n, np.nan),
            np.zeros(n, int),
        )
        known_as = [*map(labelled, coder.names, coder.labels)]
        if at:
            rows = np.array([queries[found.names[i]] for i in at])
            of_some = _coded(coder, rows, places[at])
            for whole, part in zip(told, of_some):
                if whole is not None:
                    whole[at] = part
            for i, (for_own, for_other) in zip(at, of_some.reasons):
                own[i] = for_own
                other[i] = for_other
        names = "p_values known coded ahead label_next".split()
        found = found._replace(**{name: getattr(told, name) for name in names})
    reasons = np.empty(n, object)
    reasons[:] = [*zip(own, other)]
    because, instead = (
        np.array([explained(known_as, one) for one in of_all], object)
        for of_all in (own, other)
    )
    return found._replace(
        because=because,
        runner_up=found.classes[second],
        instead=instead,
        reasons=reasons,
    )


def _coded(coder, queries, places):
    """Coded of queries (n, N), whose labels are the classes at these places."""
    estimator = coder.estimator
    each = np.arange(len(queries))
    scores = estimator.class_scores(queries)
    best = scores.argmax(axis=1)
    others = np.array(scores, float)
    others[each, places] = -np.inf
    second = others.argmax(axis=1)
    unit = np.maximum(np.abs(scores).max(axis=1), np.finfo(float).tiny)
    shares = estimator.explain(queries)
    reasons = zip(
        of_class(shares, estimator.index_, places),
        of_class(shares, estimator.index_, second),
    )
    p_values, known = estimator.p_values(queries, left_out=coder.left_out)
    ahead = (scores[each, places] - scores[each, second]) / unit
    sure = np.where(known <= UNSURE, np.minimum(ahead, 0), ahead)
    return Coded(
        p_values,
        known,
        coder.classes[best].astype(object),
        second,
        [*reasons],
        ahead,
        ranks(queries, sure),
    )


def kinds_of_scores(model):
    """Are the scores of a model's answers "probability" or "score"?"""
    return "probability" if hasattr(model.estimator, "predict_proba") else "score"
