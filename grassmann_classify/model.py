"""Learn a model from labelled sets: the function fit.

The model is the best of the compared rows. It keeps what its row compares new sets
with, its choices, and nothing that was fitted: the estimator is fitted anew whenever a
model is made, so that a file, or more labelled sets, cannot contradict it. If its row
does not code, it keeps a second model that does, which says why. Labels come back as
they were given: numbers, strings or bools, all of one type.
"""

import copy
from dataclasses import dataclass

import numpy as np

import grassmann_sc as core
from grassmann_classify.bank import Bank
from grassmann_classify.baseline_rows import EVERY_ESTIMATOR, every_method, videos_of
from grassmann_classify.building import build_all
from grassmann_classify.clips import (
    Clip,
    Recipe,
    check_any,
    clip_names,
    in_both,
    pictures_of,
)
from grassmann_classify.evaluation import end_of, evaluate, say_if_over
from grassmann_classify.folds import check_classes, kept_together, say_kept_together
from grassmann_classify.points import Reader, of_one_type, reader_of
from grassmann_classify.recipes import base_of, recipes_of
from grassmann_classify.rows import (
    ESTIMATORS,
    LEARNED,
    estimator_of,
    is_coding,
    most_telling,
)
from grassmann_classify.settings import (
    Rule,
    Settings,
)
from grassmann_classify.words import plural, short, to_stderr, told
from grassmann_sc import checks, files, tuning

PARAMETERS = {  # what rows choose, or are told, of their estimators
    "lam": Rule(float, least=0),
    "n_neighbors": Rule(int, least=1),
    "rule": Rule("text", optional=True),
    "C": Rule(float, positive=True),
    "scale": Rule("text"),
    "positive": Rule(bool),
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


@dataclass(repr=False)
class Model:
    """A row of the table with its choices, fitted to N labelled sets.

    recipe: how clips become subspaces; frame: the shape of raw frames, or (); method:
    the row's name; parameters: of its estimator; reader, points: what it compares with,
    see points.Reader; chosen: what was chosen, in words; score: the share that was
    right in the cross-validation in which it was chosen, on `judged` sets. labels (N,);
    names (N,) of the sets, clips (N,) of theirs, groups (N,) or None; pictures: small
    images (N,) in uint8, None where there is none, or None; atoms: learned ones. coder:
    the Model of the same sets that codes, where this one does not; None if it does, or
    if no row that codes could learn the sets.

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
    coder: "Model | None" = None

    def __post_init__(self):
        if not isinstance(self.points, np.ndarray):
            self.points = of_one_type(self.points)
        self.classes, place = np.unique(self.labels, return_inverse=True)
        self.prepared = self.reader.prepared(self.points)
        self.estimator = self._new_estimator()
        self.estimator.fit(self.reader.labelled(self.prepared), place)
        self.left_out = None
        if is_coding(self.method):
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
    def coding(self):
        """The Model that says why: this one if its row codes, else its coder."""
        return self if is_coding(self.method) else self.coder

    def asked(self, points):
        """What the estimator is asked of new points, as the reader makes them."""
        return self.reader.asked(self.reader.prepared(points), self.prepared)

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
            f"{short(self.method)} ({self.chosen}): {100 * self.score:.1f} % right in "
            f"cross-validation on {sets}"
        )

    def __repr__(self):
        return f"Model({self.described()}; {plural(len(self.classes), 'class')})"


def everything(n):
    """The split that learns from all n sets."""
    return tuning.Split(np.arange(n), np.arange(0))


def learn(collection, inputs, recipe, settings, clips=(), end=None):
    """The Model of the row that answers, rows.most_telling, on all sets of a Collection.

    Its coder is the best row that codes, of plain subspaces if none is asked for. clips:
    those of the sets, of which the Model keeps small images. end: of the search, as
    evaluate has it.
    """
    end = end_of(settings) if end is None else end
    n = len(collection.label)
    label = files.labels_to_keep(collection.label, n, "sets")
    place = np.unique(label, return_inverse=True)[1]
    split = everything(n)
    (group,) = say_kept_together(collection, [split])
    data = inputs, place, group, split
    rows, failed = _succeeded(*data, settings, end)
    if not rows:
        raise ValueError(f"all rows failed: {failed}")
    best = rows[most_telling({name: row.shares for name, row in rows.items()})]
    coder = None
    if not is_coding(best.method.name):
        coding = {name: row for name, row in rows.items() if is_coding(name)}
        if not coding:
            asked = copy.copy(settings)
            asked.methods = [name for name in ESTIMATORS if is_coding(name)][:2]
            asked.kernels = False
            coding, _ = _succeeded(*data, asked, end)
        if coding:
            first = most_telling({name: row.shares for name, row in coding.items()})
            coder = model_of(coding[first], *_by(coding[first], inputs, recipe))
    say_if_over(settings, end)
    collection, recipe = _by(best, inputs, recipe)
    pictures = pictures_of(collection.names, collection.clip, clips, recipe.key)
    return model_of(best, collection, recipe, pictures, coder)


def _succeeded(inputs, place, group, split, settings, end):
    """({name: Outcome of its row}, why the last of the others failed)."""
    found = {}
    failed = None
    asked = every_method(inputs), settings
    # one candidate, not whitened: that is what a reader reads
    how = {"end": end, "most": 1, "shrinkage": [None]}
    for row in evaluate(inputs, place, group, *split, *asked, **how):
        what = f"failed: {row.failed}" if row.failed else told(row.chosen)
        to_stderr(f"{100 * row.score:5.1f}  {row.method.name}  {what}")
        if row.failed is None:
            found[row.method.name] = row
        failed = row.failed or failed
    return found, failed


def _by(row, inputs, recipe):
    """(The Collection, its Recipe) of the recipe that a row chose, else this one."""
    chosen = row.chosen.get("recipe")
    if chosen is None:
        return inputs.collection, recipe
    return inputs.by(chosen), inputs.recipes[chosen]


def model_of(row, collection, recipe, pictures=None, coder=None):
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
        pictures,
        atoms,
        coder,
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
    recipe = recipe if fixed else Recipe()
    settings = Settings() if settings is None else settings
    for name, value, kind in (
        ("recipe", recipe, Recipe),
        ("settings", settings, Settings),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got {value!r}")
    checks.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    check_classes(labels)
    clips = clips_of("set", sets, labels, groups)
    collection = build_all(clips, recipe, keep_rows=True, strict=True)
    recipes = None
    if not fixed:
        lengths = [*map(len, collection.sets)]
        recipes = recipes_of(recipe, collection.frame, lengths)
    inputs = inputs_for(collection, recipe, settings, recipes)
    return learn(collection, inputs, recipe, settings, clips)


def clips_of(name, sets, labels, groups):
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


def check_model(model):
    """TypeError unless it is a Model."""
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a Model, as fit and load give it, got {model!r}"
        )


def build_both(model, clips, cache=None, strict=False):
    """(The Collection of clips for a model, that for its coder).

    The second is None without a coder, or if it can take none of the clips.
    """
    collection = build_new(model, clips, cache, strict)
    coder = model.coder
    if coder is None:
        return collection, None
    has_rows = coder.reader.takes_subspaces or collection.sets is not None
    high = collection.X.shape[2] >= coder.shape[1]
    if coder.recipe == model.recipe and has_rows and high:
        return collection, collection
    try:
        return collection, build_new(coder, clips, cache, strict)
    except ValueError as error:
        if strict:
            raise
        to_stderr(f"no clip can be coded: {error}")
        return collection, None


def build_to_add(model, clips, cache=None, strict=False):
    """build_both of the clips that the model and its coder can take; ValueError if none."""
    collection, to_code = build_both(model, clips, cache, strict)
    if model.coder is not None:
        if to_code is None:
            raise ValueError(f"clips must be those that {model.coder.method} can take")
        collection, to_code = in_both(collection, to_code)
        check_any(collection.names, collection.unread)
    return collection, to_code


def build_new(model, clips, cache=None, strict=False):
    """The Collection of clips without labels, by the recipe of a model."""
    keep_rows = not model.reader.takes_subspaces
    return build_all(clips, model.recipe, cache, keep_rows, strict, shape=model.shape)


def inputs_for(collection, recipe, settings, recipes=None):
    """The Bank of a Collection, with videos if methods on these may run.

    recipes: {name: Recipe} to choose from; None: that by which the sets were read.
    """
    recipe = recipe if recipes is None else base_of(recipe)
    normalised = recipe.stack > 1 and recipe.center
    videos = None
    if not normalised and (settings.baselines or settings.methods):
        videos = videos_of(collection, recipe.arma or recipe.stack)
    return Bank(collection, recipes, settings, videos)
