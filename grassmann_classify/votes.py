"""Votes of all candidates, weighted by their accuracy in cross-validation."""

import numpy as np

from grassmann_classify.candidates import candidates, on_one_thread
from grassmann_classify.search import Outcome
from grassmann_sc import tuning

SOFT = 0.01  # a voter whose accuracy is lower by this has 1 / e of the weight


@on_one_thread
def vote(method, voters, task):
    """The Outcome of a vote of all candidates of the rows [(Outcome, its Search), ...].

    The weight of each is exp((mean - best) / SOFT) of its mean share in
    cross-validation. Rows of one search vote once.
    """
    by_search = {}
    for row, searched in voters:
        grams = by_search.setdefault(id(searched), (searched, {}))[1]
        grams |= candidates(row.method, task)
    found = []
    for searched, grams in by_search.values():
        found += _answers_of_all(searched, grams, task)
    if not found:
        raise ValueError(next(iter(voters[0][1].left_out.values())))
    return _voted(method, found)


def _answers_of_all(searched, grams, task):
    """[(mean share, labels), ...] of the candidates of a search, the best first."""
    shares = searched.choose(grams).shares
    mean = {candidate: np.nanmean(share) for candidate, share in shares.items()}
    found = {}
    for gram in dict.fromkeys(gram for gram, _ in shares):
        try:
            answers = searched.answers(grams[gram], task.train, task.test)
        except ValueError as error:  # the whole training part or a query cannot have it
            searched.left_out[gram] = str(error)
            continue
        found |= {(gram, parameters): labels for parameters, labels in answers.items()}
    order = sorted(found.keys() & mean.keys(), key=lambda one: [*mean].index(one))
    return [(mean[candidate], found[candidate]) for candidate in order]


def vote_of_rows(method, rows):
    """The Outcome of a vote of what the rows chose, where --seconds is given."""
    return _voted(method, [(row.score, row.predicted) for row in rows])


def _voted(method, voters):
    """The Outcome of voters (mean share, labels)."""
    voters = sorted(voters, key=lambda voter: -voter[0])
    weights = np.exp([(mean - voters[0][0]) / SOFT for mean, _ in voters])
    predicted = tuning.vote([labels for _, labels in voters], weights)
    return Outcome(method, None, None, predicted, {"voters": len(voters)})
