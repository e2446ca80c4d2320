"""A model: the compared row that answers, and the labelled sets that it keeps.

It keeps what its row compares new sets with, its choices, and nothing that was fitted:
the estimator is fitted anew whenever a model is made, so that a file, or more labelled
sets, cannot contradict it. Labels come back as they came: numbers, strings or bools, all
of one type. Answers are labels, why, how sure, and which classes are possible.
"""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np

from grassmann_classify.clips import as_one_type, some_sets
from grassmann_classify.first_tries import few_features
from grassmann_classify.inner_product import InnerProduct
from grassmann_classify.rows import estimator_of, is_coding
from grassmann_classify.settings import Recipe
from grassmann_classify.splits import kept_together, without_peers
from grassmann_classify.words import (
    explained,
    labelled,
    plural,
    printable,
    reasons_for,
)
from grassmann_sc import calibration, discriminative, shared, tuning

# of estimators, which rows choose
PARAMETERS = {"lam", "n_neighbors", "rule", "C", "scale"}
AT_ONCE = 200  # new sets that are answered at least


class FewFrames(namedtuple("FewFrames", "kind")):
    """In place of an InnerProduct, where a row reads a few frames of sets.

    kind: of first_tries.FEATURES.
    """

    __slots__ = ()

    def points(self, collection):
        """What is kept of sets: arrays of a few rows."""
        return as_one_type(few_features(self.kind, collection.sets))

    def gram(self, *points):
        """What a machine takes: the points of the first sets, without the others'."""
        return points[0]

    def joined(self, points, new):
        """The points of sets, and behind them those of others."""
        return as_one_type([*points, *new])


@dataclass(repr=False)
class Model:
    """A row of the table with its choices, fitted to N labelled sets.

    recipe: how clips are read; d: the length of their rows; frame: the shape of raw
    frames, or (); method: the row's name; parameters: of its estimator; shrinkage: of
    the whitening, or None; inner: its InnerProduct, or FewFrames; points: what that
    compares new sets with; chosen: what was chosen, in words; score: the share that was
    right in the cross-validation in which it was chosen, on `judged` sets. labels (N,);
    names (N,) of the sets, clips (N,) of theirs, groups (N,) or None; digests (N,):
    hashes of what was read, or None; pictures: small images (N,) in uint8, None where
    there is none.

    classes (n_classes,): the distinct labels, ascending; the estimator knows their
    indices; left_out: its left_out_scores, if it codes, NaN of sets that are alone.
    """

    recipe: Recipe
    d: int
    frame: tuple
    method: str
    parameters: dict
    shrinkage: float | None
    inner: InnerProduct | FewFrames
    points: object
    labels: np.ndarray
    names: list
    clips: list
    digests: list | None
    groups: list | None
    chosen: str
    score: float
    judged: int
    pictures: list

    def __post_init__(self):
        self.classes, class_index = np.unique(self.labels, return_inverse=True)
        self.estimator = estimator_of(self.method)
        self.estimator.set_params(**self.parameters)
        if self.codes:  # it whitens by itself, and its left-out scores in folds
            self.estimator.set_params(shrinkage=self.shrinkage)
        samples = self.inner.gram(self.points)
        self.whitening = None
        if self.shrinkage is not None and not self.codes:
            self.whitening = discriminative.Whitening(
                samples, class_index, self.shrinkage
            )
            samples = self.whitening.K_dd
        self.estimator.fit(samples, class_index)
        self.left_out = None
        if self.codes:
            owners = [
                None if names is None else np.array(names)
                for names in (self.groups, self.clips)
            ]
            kept, _ = kept_together(self.labels, *owners, everything(len(self.labels)))
            self.left_out = np.array(self.estimator.left_out_scores(kept))
            self.left_out[:, without_peers(self.labels, kept)] = np.nan

    @property
    def codes(self):
        """Does its row code over the labelled sets, so that it gives reasons?"""
        return is_coding(self.method)

    def queries(self, collection):
        """What the estimator takes of the sets of a Collection."""
        queries = self.inner.gram(self.inner.points(collection), self.points)
        if self.whitening is not None:
            queries = self.whitening.transform(queries, np.ones(len(queries)))
        return queries

    def described(self):
        """What answers, how it was chosen, and on which sets, in words."""
        sets = "the labelled sets"
        if self.judged != len(self.labels):
            sets = (
                f"the {self.judged} sets that it was chosen on, of {len(self.labels)}"
            )
        return (
            f"{self.method} ({self.chosen}): {100 * self.score:.1f} % right in "
            f"cross-validation on {sets}"
        )

    def __repr__(self):
        return f"Model({self.described()}; {plural(len(self.classes), 'class')})"


def everything(n):
    """The split that learns from all n sets."""
    return tuning.Split(np.arange(n), np.arange(0))


def check_model(model):
    """TypeError unless it is a Model."""
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a Model, as fit and load give it, got {model!r}"
        )


# ------------------------------------------------------------------------------ answers


# names: of the n sets with an answer; labels (n,); scores (n, n_classes),
# probabilities where the row has them; failed: {name: why} of the clips without
# answer; runner_up (n,): the best other class. The others are None unless the row
# codes. p_values (n, n_classes) of the classes and p_any (n,) of being of any;
# reasons (n,): pairs of what speaks for the label, and for the runner-up, as
# words.reasons_for, among the labelled sets of these names. measure: what scores are,
# "probability" or "score"; recordings, spans: as a Collection has them
class Answers(
    namedtuple(
        "Answers",
        "names labels scores classes failed runner_up p_values p_any reasons labelled "
        "measure recordings spans",
        defaults=(None,) * 4 + ("score",) + (None,) * 2,
    )
):
    """Answers to sets, in arrays; to_frame gives them as a table of pandas."""

    __slots__ = ()

    @property
    def because(self):
        """In words (n,): the labelled sets that speak for the label; None: unknown."""
        return self._in_words(0)

    @property
    def instead(self):
        """In words (n,): those that speak for the runner-up."""
        return self._in_words(1)

    def _in_words(self, which):
        if self.reasons is None:
            return None
        return np.array(
            [explained(self.labelled, both[which]) for both in self.reasons], object
        )

    def records(self, coverage=0.9):
        """[{name: value}, ...] of the sets, as the command writes them.

        The answer is None where a set is unlike all classes at this coverage; its
        nearest class is named always, and the classes that it can have if it is of any.
        Start and end are there if known.
        """
        possible, unlike = possible_classes(self, coverage)
        labels = self.labels.tolist()
        classes = self.classes.tolist()
        reasons = [([], [])] * len(labels) if self.reasons is None else self.reasons
        times = [] if self.spans is None else self.spans.T.tolist()
        columns = {
            "clip": self.names,
            **dict(zip(("start", "end"), times)),
            "answer": [None if no else c for c, no in zip(labels, unlike)],
            "nearest class": labels,
            self.measure: [
                {c: float(f"{score:.4g}") for c, score in zip(classes, row)}
                for row in self.scores
            ],
            "possible": possible,
            "because": [
                [explained(self.labelled, [pair]) for pair in own] for own, _ in reasons
            ],
        }
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def to_frame(self, coverage=0.9):
        """The records as a pandas.DataFrame."""
        pandas = shared.import_extra("pandas", "to_frame needs pandas", "pandas")
        rows = [*map(in_cells, self.records(coverage))]
        frame = pandas.DataFrame(rows)
        # of numbers and None pandas makes fractions
        frame["answer"] = np.array([row["answer"] for row in rows], object)
        return frame

    def _repr_html_(self):
        """A table for notebooks, None without pandas."""
        try:
            return self.to_frame()._repr_html_()
        except ImportError:
            return None


def in_cells(record):
    """A record without dicts, of which each entry becomes a cell, and without lists."""
    cells = {}
    for name, value in record.items():
        if isinstance(value, dict):
            cells |= {f"{name} {label}": score for label, score in value.items()}
        else:
            cells[name] = (
                "; ".join(map(str, value)) if isinstance(value, list) else value
            )
    return cells


def results_of(job, collection, model):
    """({index: what job(collection) gives of a set}, {name: why others have nothing}).

    The job takes as many sets as the Model has, or AT_ONCE, for the memory of what it
    makes. Sets that fail together are tried in halves.
    """
    names = collection.names
    most = max(AT_ONCE, len(model.labels))
    places = range(len(names))
    todo = [places[k : k + most] for k in range(0, len(names), most)]
    results = {}  # by the index of a set: two clips may have one name
    failed = {}
    while todo:
        some = todo.pop(0)
        is_all = len(some) == len(names)
        try:
            sets = collection if is_all else some_sets(collection, [*some])
            results |= dict(zip(some, job(sets)))
        except ValueError as error:
            if len(some) == 1:
                name = names[some[0]]
                why = printable(error).removeprefix(f"{name}: ")
                failed[name] = f"{name}: {why}"
            else:
                half = len(some) // 2
                todo = [some[:half], some[half:], *todo]
    return results, failed


def answers_of(model, collection):
    """Answers of a Model for the sets of a Collection."""
    answers, failed = results_of(
        lambda sets: _each_answered(model, sets), collection, model
    )
    class_index = np.array([index for index, *_ in answers.values()], int)
    scores = np.reshape(
        [row for _, row, _ in answers.values()], (-1, len(model.classes))
    )
    others = np.array(scores, float)
    others[np.arange(len(others)), class_index] = -np.inf
    second = others.argmax(axis=1)
    answered = collection
    if failed:
        answered = some_sets(collection, [*answers])
    result = Answers(
        answered.names,
        model.classes[class_index],
        scores,
        model.classes,
        {**collection.unusable, **failed},
        model.classes[second],
        measure="probability" if hasattr(model.estimator, "predict_proba") else "score",
        recordings=answered.recordings,
        spans=answered.spans,
    )
    if not model.codes:
        return result
    queries = np.reshape(
        [query for *_, query in answers.values()], (-1, len(model.labels))
    )
    estimator = model.estimator
    shares = estimator.explain(queries)
    both = [reasons_for(shares, estimator.index_, c) for c in (class_index, second)]
    reasons = np.empty(len(queries), object)
    reasons[:] = [*zip(*both)]
    p_values, p_any = estimator.p_values(queries, left_out=model.left_out)
    return result._replace(
        p_values=p_values,
        p_any=p_any,
        reasons=reasons,
        labelled=[*map(labelled, model.names, model.labels)],
    )


def _each_answered(model, collection):
    """[(index of its class, scores, query), ...] of sets."""
    estimator = model.estimator
    queries = model.queries(collection)
    score = getattr(estimator, "predict_proba", None) or estimator.decision_function
    scores = score(queries)
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    class_index = np.searchsorted(estimator.classes_, estimator.predict(queries))
    return [*zip(class_index.tolist(), scores, queries)]


def possible_classes(answers, coverage):
    """([class, ...] that each of n Answers can have, which (n,) are unlike all classes).

    A class is out, or a set unlike all, if its p-value is at most 1 - coverage: each for
    that share of new sets of these classes. [] and False if the row does not code.
    """
    if answers.p_values is None:
        n = len(answers.names)
        return [[]] * n, np.zeros(n, bool)
    level = calibration.level_of(coverage)
    possible = [answers.classes[p > level].tolist() for p in answers.p_values]
    return possible, answers.p_any <= level
