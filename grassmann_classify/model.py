"""Learn a model from labelled sets, and answer sets without labels.

The model is the best of the compared rows. It keeps what its row compares new sets
with, its choices, and nothing that was fitted: the estimator is fitted anew whenever a
model is made, so that a file, or more labelled sets, cannot contradict it. Labels come
back as they were given: numbers, strings or bools, all of one type.
"""

from collections import namedtuple
from dataclasses import dataclass, replace

import numpy as np

import grassmann_sc as core
from grassmann_classify.baseline_rows import EVERY_ESTIMATOR, every_method, videos_of
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, Recipe, clip_names, pictures_of
from grassmann_classify.copies import copies
from grassmann_classify.evaluation import evaluate
from grassmann_classify.folds import check_classes, kept_together, say_kept_together
from grassmann_classify.messages import first_of, plural, printable, to_stderr, told
from grassmann_classify.own import own
from grassmann_classify.points import Reader, of_one_type, reader_of
from grassmann_classify.reasons import BECAUSE, explained, labelled, of_class
from grassmann_classify.recipes import Inputs, base_of, recipes_of
from grassmann_classify.rows import LEARNED, estimator_of
from grassmann_classify.settings import (
    MOST_P,
    Rule,
    Settings,
    candidate_points,
    is_own,
)
from grassmann_sc import checks, estimators, files, tuning

PARAMETERS = {  # what rows choose, or are told, of their estimators
    "lam": Rule(float, least=0),
    "n_neighbors": Rule(int, least=1),
    "rule": Rule("text", optional=True),
    "C": Rule(float, positive=True),
    "scale": Rule("text"),
    "reg": Rule(float, least=0),
    "beta": Rule(float, least=0),
    "p": Rule(int, least=1, optional=True),
    "dimension": Rule(int, least=1, optional=True),
    "reference": Rule("text"),
    "n_angles": Rule(int, least=1, optional=True),
    "keep": Rule(float, positive=True, optional=True),
    "gamma": Rule(float, positive=True, optional=True),
    "n_landmarks": Rule(int, least=1, optional=True),
    "n_states": Rule(int, least=1),
    "n_features": Rule(int, least=1),
    "radii": Rule(int, least=1, many=True),
    "size": Rule(int, least=1, many=True, optional=True),
}

# names: of the n sets that were answered; labels (n,); scores (n, n_classes),
# probabilities where the row has them; failed: {name: why} of the clips without
# answer; p_values (n, n_classes) of the classes and known (n,) of being of any, of
# rows that code, else None; because: in words, the labelled sets of its class that
# explain each, or the nearest sets, "" where the row compares with none; runner_up
# (n,): the classes with the next score; instead: in words, what speaks for these;
# reasons: [(what speaks for the label, for the runner-up), ...], as reasons.of_class
Answers = namedtuple(
    "Answers",
    "names labels scores classes failed p_values known because runner_up instead reasons",
    defaults=(None,) * 6,
)


@dataclass(repr=False)
class Model:
    """A row of the table with its choices, fitted to N labelled sets.

    recipe: how clips become subspaces; frame: the shape of raw frames, or (); method:
    the row's name; parameters: of its estimator; reader, points: what it compares with,
    see points.Reader; chosen: what was chosen, in words; score: the share that was
    right in the cross-validation in which it was chosen, on `judged` sets. labels (N,);
    names (N,) of the sets, clips (N,) of theirs, groups (N,) or None; pictures: small
    images (N,) in uint8, None where there is none, or None; atoms: learned ones.

    classes (n_classes,): the distinct labels, ascending; the estimator knows their
    indices; left_out: its left_out_scores, if it codes.
    """

    recipe: Recipe
    frame: tuple
    method: str
    parameters: dict
    reader: Reader
    points: object
    labels: np.ndarray
    names: list
    clips: list
    groups: list | None
    chosen: str
    score: float
    judged: int
    pictures: list | None = None
    atoms: np.ndarray | None = None

    def __post_init__(self):
        if not isinstance(self.points, np.ndarray):
            self.points = of_one_type(self.points)
        self.classes, place = np.unique(self.labels, return_inverse=True)
        self.prepared = self.reader.prepared(self.points)
        self.estimator = self._new_estimator()
        self.estimator.fit(self.reader.labelled(self.prepared), place)
        self.left_out = None
        if isinstance(self.estimator, estimators.CodingClassifier):
            of_set = [
                None if of is None else np.array(of) for of in (self.groups, self.clips)
            ]
            kept, _ = kept_together(self.labels, *of_set, everything(len(place)))
            self.left_out = self.estimator.left_out_scores(kept)

    def _new_estimator(self):
        found = estimator_of(self.method, EVERY_ESTIMATOR)
        found.set_params(**self.parameters)
        if self.atoms is not None:  # learned before: they stay
            found[0].set_params(
                init=self.atoms, n_atoms=len(self.atoms), max_iter=0, lam_scale=None
            )
        return found

    @property
    def shape(self):
        """d and the least p of the subspaces of new sets, and the size of their frames."""
        p = self.reader.takes_subspaces and self.reader.p or 1
        return self.reader.length(self.points), p, self.frame

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


def learn(collection, inputs, recipe, settings, clips=()):
    """The Model of the best row in cross-validation, on all sets of a Collection.

    clips: those of the sets, of which the Model keeps small images.
    """
    n = len(collection.label)
    label = files.labels_to_keep(collection.label, n, "sets")
    place = np.unique(label, return_inverse=True)[1]
    split = everything(n)
    (group,) = say_kept_together(collection, [split])
    best = None
    rows = evaluate(inputs, place, group, *split, every_method(inputs), settings)
    for row in rows:
        what = f"failed: {row.failed}" if row.failed else told(row.chosen)
        to_stderr(f"{100 * row.score:5.1f}  {row.method.name}  {what}")
        # a mean of the same shares in another order differs by rounding
        better = best is None or round(row.score - best.score, 12) > 0
        best = row if row.failed is None and better else best
    if best is None:
        raise ValueError(f"all rows failed: {row.failed}")
    chosen = best.chosen.get("recipe")
    if chosen is not None:
        recipe = inputs.recipes[chosen]
        collection = inputs.by(chosen)
    return model_of(best, collection, recipe, clips)


def model_of(row, collection, recipe, clips=()):
    """The Model of a search.Outcome, learned from all sets of a Collection."""
    reader = reader_of(row.method, row.chosen, recipe.arma or recipe.stack)
    parameters, atoms = _parameters_of(row)
    n = len(collection.label)
    names = collection.names
    group = collection.group
    return Model(
        recipe,
        tuple(collection.frame),
        row.method.name,
        parameters,
        reader,
        reader.points(collection),
        files.labels_to_keep(collection.label, n, "sets"),
        [*names],
        clip_names(names, collection.clip),
        None if group is None else [*map(str, group)],
        told(row.chosen),
        float(row.score),
        n,
        pictures_of(names, collection.clip, clips, recipe.key),
        atoms,
    )


def _parameters_of(row):
    """({name: value} of a fitted estimator that its row chose, its learned atoms)."""
    usual = estimator_of(row.method.name, EVERY_ESTIMATOR).get_params()
    chosen = {
        name: value
        for name, value in row.estimator.get_params().items()
        if name.rpartition("__")[2] in PARAMETERS and value != usual[name]
    }
    if not row.method.name.endswith(LEARNED):
        return chosen, None
    learned = row.estimator[0]
    if learned.coding == "sparse":
        chosen["grassmanndictionary__lam"] = learned.lam_
    return chosen, learned.components_


def more(model, collection, clips):
    """A Model that has learned the sets of a Collection too, built from these clips.

    Nothing is chosen again: it is the one that the same choices make of all sets. Sets
    that it has already are passed over.
    """
    if model.atoms is not None:
        raise ValueError(
            f"model must be of a row without learned atoms, got {model.method}"
        )
    labels = files.labels_to_keep(collection.label, len(collection.label), "sets")
    if labels.dtype.kind != model.labels.dtype.kind:
        raise TypeError(
            f"labels must be of the type of the model's, as {model.classes[0]!r}, got "
            f"{labels[0]!r}"
        )
    points = model.reader.points(collection)
    new = _new_sets(model, points, collection.names)
    if isinstance(points, np.ndarray):
        points = points[new].astype(model.points.dtype, copy=False)
        points = checks.joined([model.points, points])
    else:
        points = [*model.points, *(points[i] for i in new)]
    pictures = model.pictures
    if pictures is not None:
        key = model.recipe.key
        given = collection.names, collection.clip, clips, key, new
        pictures = [*pictures, *pictures_of(*given)]
    groups = None
    if model.groups is not None and collection.group is not None:
        groups = [*model.groups, *(str(collection.group[i]) for i in new)]
    elif model.groups is not None or collection.group is not None:
        which = "added" if collection.group is None else "first"
        core.warn(f"groups are passed over: the {which} sets have none")
    names, of_clips = _names_apart(model, collection, new)
    return replace(
        model,
        points=points,
        labels=np.concatenate([model.labels, labels[new]]),
        names=[*model.names, *names],
        clips=[*model.clips, *of_clips],
        groups=groups,
        pictures=pictures,
    )


def _new_sets(model, points, names):
    """Indices of the points that the Model has not yet; warns of the others."""
    n = len(model.labels)
    found = copies(*_joined(model.points, points))
    found = [one for one in found if one.i < n <= one.j]
    whole = {one.j - n for one in found if one.same}
    near = [one for one in found if one.j - n not in whole]
    if whole:
        listed = first_of([names[j] for j in sorted(whole)], ", ")
        core.warn(f"passed over {len(whole)} that the model has already: {listed}")
    if near:
        listed = first_of(
            [f"{names[one.j - n]} and {model.names[one.i]}: {one.why}" for one in near],
            "; ",
        )
        core.warn(f"{plural(len(near), 'pair')} of copies: {listed}")
    new = [j for j in range(len(names)) if j not in whole]
    if not new:
        raise ValueError(
            f"sets must hold one that the model has not already, got {len(names)} that it "
            "has"
        )
    return new


def _joined(points, more):
    """Both as what copies takes: (bases, None) or (None, rows)."""
    if isinstance(points, np.ndarray):
        more = more.astype(points.dtype, copy=False)
        return checks.joined([points, more]), None
    rows = [one.reshape(len(one), -1) for one in of_one_type([*points, *more])]
    return None, rows


def _names_apart(model, collection, new):
    """Names of new sets and of their clips, others than those that the Model has."""
    taken = {*model.clips}
    apart = {}
    whose = clip_names(collection.names, collection.clip)
    names = []
    for i in new:
        clip = whose[i]
        if clip not in apart:
            k = 2
            apart[clip] = clip
            while apart[clip] in taken:
                apart[clip] = f"{clip} ({k})"
                k += 1
        names.append(apart[clip] + collection.names[i][len(clip) :])
    return names, [apart[whose[i]] for i in new]


def answers_of(model, collection):
    """Answers for the sets of a Collection, one by one if they fail together."""
    try:
        return _answers(model, collection)
    except ValueError as error:
        if len(collection.names) == 1:
            (name,) = collection.names
            failed = {name: printable(error), **collection.unread}
            n_classes = len(model.classes)
            return Answers(
                [], model.classes[:0], np.empty((0, n_classes)), model.classes, failed
            )
    found = [
        answers_of(model, _one(collection, i)) for i in range(len(collection.names))
    ]
    failed = {name: why for one in found for name, why in one.failed.items()}
    done = [one for one in found if one.names] or found[:1]
    together = {
        name: None if values[0] is None else np.concatenate(values)
        for name, values in zip(Answers._fields, zip(*done))
        if name not in ("classes", "failed")
    }
    together["names"] = sum((one.names for one in done), [])
    return Answers(
        classes=model.classes, failed={**collection.unread, **failed}, **together
    )


def _answers(model, collection):
    points = model.reader.points(collection)
    return answers_to(model, points, collection.names, dict(collection.unread))


def answers_to(model, points, names, unread):
    """Answers for points as the Reader of a model makes them, of sets of these names."""
    estimator = model.estimator
    queries = model.reader.asked(model.reader.prepared(points), model.prepared)
    scores = getattr(estimator, "predict_proba", None)
    scores = estimator.decision_function(queries) if scores is None else scores(queries)
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    places = np.searchsorted(estimator.classes_, estimator.predict(queries))
    p_values = (None, None)
    if model.left_out is not None:
        p_values = estimator.p_values(queries, left_out=model.left_out)
    others = np.array(scores, float)
    others[np.arange(len(others)), places] = -np.inf
    second = others.argmax(axis=1)
    own, other = _reasons(model, queries, places, second)
    reasons = np.empty(len(own), object)
    reasons[:] = [*zip(own, other)]
    known_as = [*map(labelled, model.names, model.labels)]
    because, instead = (
        np.array([explained(known_as, one) for one in of_all], object)
        for of_all in (own, other)
    )
    return Answers(
        names,
        model.classes[places],
        scores,
        model.classes,
        unread,
        *p_values,
        because,
        model.classes[second],
        instead,
        reasons,
    )


def _reasons(model, queries, places, second):
    """What speaks for the classes answered, and for the runners-up, as of_class gives it.

    The nearest labelled sets of rows that do not code, for no runner-up.
    """
    none = [[] for _ in range(len(queries))]
    if isinstance(model.estimator, estimators.CodingClassifier):
        shares = model.estimator.explain(queries)
        index = model.estimator.index_
        return of_class(shares, index, places), of_class(shares, index, second)
    if model.reader.reads in ("gram", "kernels"):
        order = np.argsort(-queries, axis=1, kind="stable")[:, :BECAUSE]
        nearest = np.take_along_axis(queries, order, axis=1)
        pairs = zip(order.tolist(), nearest.tolist())
        return [[*zip(*one)] for one in pairs], none
    return none, none


def _one(collection, i):
    sets = collection.sets and collection.sets[i : i + 1]
    return collection._replace(
        X=collection.X[i : i + 1],
        spectra=collection.spectra and [A[i : i + 1] for A in collection.spectra],
        sets=sets,
        names=collection.names[i : i + 1],
        unread={},
    )


def kinds_of_scores(model):
    """Are the scores of a model's answers "probability" or "score"?"""
    return "probability" if hasattr(model.estimator, "predict_proba") else "score"


def fit(sets, labels, groups=None, *, recipe=None, settings=None):
    """The Model learned from n sets of frames with labels (n,).

    sets: arrays (n_frames, height, width) or (n_frames, d).
    labels: numbers, strings or bools, all of one type, of two classes or more; answers
    are of that type. groups (n,): any hashables; sets of one group stay together in
    cross-validation. recipe: a Recipe, how sets become subspaces; None: chosen, as the
    command does. settings: as Settings(methods=["gsc", "svm"]), the rows and their
    candidate parameters.
    """
    fixed = recipe is not None
    recipe = recipe if fixed else Recipe(MOST_P, fewer=True)
    settings = Settings() if settings is None else settings
    for name, value, kind in (
        ("recipe", recipe, Recipe),
        ("settings", settings, Settings),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got {value!r}")
    if is_own(recipe.features):
        recipe = replace(recipe, source=own(recipe.features).source)
    checks.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    check_classes(labels)
    clips = _clips_of("set", sets, labels, groups)
    collection = build_all(clips, recipe, keep_rows=True, strict=True)
    recipes = None
    if not fixed:
        shortest = min(map(len, collection.sets))
        recipes = recipes_of(recipe, collection.frame, shortest)
    inputs = inputs_for(collection, recipe, settings, recipes)
    return learn(collection, inputs, recipe, settings, clips)


def add(model, sets, labels, groups=None):
    """The Model that has learned more labelled sets too, also of new classes.

    Nothing is chosen again: its answers are those of a model that the same choices make
    of all sets. Sets that it has already are passed over, with a warning; sets with a
    group that it has are of that group. Atoms must not have been learned. sets, labels,
    groups: as in fit; the labels are of the same type. The model is not changed.
    """
    _check_model(model)
    checks.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    clips = _clips_of("added set", sets, labels, groups)
    return more(model, build_new(model, clips, strict=True), clips)


def _clips_of(name, sets, labels, groups):
    """The Clips of arrays of frames; groups are named by their strings."""
    if groups is None:
        groups = [None] * len(sets)
    else:
        known, number = core.check_labels(groups, len(sets), "groups", "sets")
        unknown = [one for one in known.tolist() if one is None or one != one]
        if unknown:
            raise ValueError(
                f"groups must name a group for every set, got {unknown[0]}"
            )
        groups = [str(known[i]) for i in number]
    return [
        Clip(f"{name} {i}", label, group, [np.asarray(rows)])
        for i, (rows, label, group) in enumerate(zip(sets, labels, groups))
    ]


def predict(model, sets):
    """Answers of a Model for sets of frames; labels have the type given to fit."""
    _check_model(model)
    checks.check_sequence(sets, "sets", "arrays of frames")
    if not len(sets):
        raise ValueError("sets must hold at least one set, got none")
    clips = [
        Clip(f"set {i}", None, None, [np.asarray(rows)]) for i, rows in enumerate(sets)
    ]
    return answers_of(model, build_new(model, clips))


def _check_model(model):
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a Model, as fit and load give it, got {model!r}"
        )


def build_new(model, clips, cache=None, strict=False):
    """The Collection of clips without labels, by the recipe of a model."""
    keep_rows = not model.reader.takes_subspaces
    return build_all(clips, model.recipe, cache, keep_rows, strict, shape=model.shape)


def inputs_for(collection, recipe, settings, recipes=None, later=False):
    """The Inputs of a Collection, with videos if methods on these may run.

    recipes: {name: Recipe} to choose from; None: that by which the sets were read.
    later: of the first recipe alone, until Inputs.complete is called.
    """
    recipe = recipe if recipes is None else base_of(recipe)
    normalised = recipe.stack > 1 and (recipe.center or recipe.unit_variance)
    videos = None
    if not normalised and (settings.baselines or settings.methods):
        videos = videos_of(collection, recipe.arma or recipe.stack)
    p, spectrum = candidate_points(settings)
    return Inputs(collection, p, recipes, videos, spectrum, later)
