"""Learn from labelled sets, keep the model in a file, and answer sets without labels.

The model is the best of the compared methods.

    from examples import answers                # installed: from grassmann_sc_kit.examples import
    model = answers.fit(sets, labels)           # arrays of frames (n_frames, height, width)
    answers.save("model.npz", model)
    answers.predict(answers.load("model.npz"), new_sets).labels

A model holds the recipe of its sets, the method with the parameters that it chose, the
labelled sets as far as new sets are compared with them, and the fitted estimator. Its
file holds arrays and JSON, no pickle. Labels come back as they were given: numbers,
strings or bools, all of one type.
"""

import copy
import math
import typing
from collections import Counter, namedtuple
from dataclasses import MISSING, dataclass, field, fields, replace

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import LabelBinarizer, Normalizer, StandardScaler
from sklearn.svm import SVC

import grassmann_sc as core
from examples import first_tries
from examples.baselines import every_method, videos_of
from examples.check import explained, labelled
from examples.clips import Clip, Recipe, build_all, pictures_of, printable, say, some
from examples.comparison import (
    BECAUSE,
    Nearest,
    check_classes,
    evaluate,
    is_tried_first,
    of_class,
    say_kept_together,
    told,
)
from examples.options import MOST_P, Settings, is_own
from examples.own import Own, own
from examples.recipes import Inputs, base_of, recipes_of
from grassmann_sc import estimators, files, kernels, tuning
from grassmann_sc.baselines import estimators as baselines
from grassmann_sc.baselines import hulls, tensors

CODES = "?" + np.typecodes["AllInteger"] + np.typecodes["Float"]
NUMBERS = {np.dtype(code).name: np.dtype(code).kind for code in CODES}  # in a file

# names: of the n sets that were answered; labels (n,); scores (n, n_classes),
# probabilities where the method has them; failed: {name: why} of the clips without
# answer; p_values (n, n_classes) of the classes and known (n,) of being of any, of
# methods that code, else None; because: in words, the labelled sets of its class that
# explain each, or the nearest sets, "" where the method compares with none; runner_up
# (n,): the classes with the next score; instead: in words, what speaks for these;
# reasons: [(what speaks for the label, for the runner-up), ...], as comparison.of_class
Answers = namedtuple(
    "Answers",
    "names labels scores classes failed p_values known because runner_up instead reasons",
    defaults=(None,) * 6,
)


# ------------------------------------------- from sets of frames to estimators' inputs


@dataclass
class ByProjection:
    """Rows of the projection kernel with the labelled p-dimensional subspaces."""

    p: int
    bases: np.ndarray | None = None

    def fit(self, collection):
        self.bases = np.ascontiguousarray(collection.X[:, :, : self.p])

    def transform(self, collection):
        return core.projection_kernel(collection.X[:, :, : self.p], self.bases)

    def add(self, collection):
        """Take more labelled sets; the Gram matrix of all."""
        new = collection.X[:, :, : self.p].astype(self.bases.dtype, copy=False)
        self.bases = np.concatenate([self.bases, new])
        return core.projection_kernel(self.bases)


@dataclass
class ByKernel:
    """The same in the feature space of a Gaussian kernel, or of the user's own."""

    p: int
    gamma: float | None
    sets: list = field(default_factory=list)
    bases: list = field(default_factory=list)
    own: Own | None = None

    @property
    def kernel(self):
        return self.own or kernels.rbf(self.gamma)

    def fit(self, collection):
        self.sets, self.bases = self._coded(collection)

    def _coded(self, collection):
        sets = [rows.astype(np.float64, copy=False) for rows in collection.sets]
        return sets, kernels.kernel_bases(sets, self.kernel, self.p)

    def transform(self, collection):
        coded = self._coded(collection)
        return kernels.kernel_gram(*coded, self.sets, self.bases, self.kernel)

    def add(self, collection):
        sets, bases = self._coded(collection)
        self.sets = [*self.sets, *sets]
        self.bases = [*self.bases, *bases]
        return kernels.kernel_gram(self.sets, self.bases, kernel=self.kernel)


@dataclass
class ByHulls:
    """Minus the distances from the labelled sets' hulls; with share, affine ones."""

    share: float | None = None
    bound: float | None = None
    gamma: float | None = None
    sets: list = field(default_factory=list)

    def fit(self, collection):
        self.sets = collection.sets

    def transform(self, collection):
        if self.bound is not None:
            return -hulls.convex_hull_distances(
                collection.sets, self.sets, bound=self.bound
            )
        kernel = None if self.gamma is None else kernels.rbf(self.gamma)
        return -hulls.affine_hull_distances(
            collection.sets, self.sets, share=self.share, kernel=kernel
        )


@dataclass
class AsTheyAre:
    """Subspaces of dimension p, sets of rows, or videos, as kind says.

    n_blocks: the number of frames in a row, from which videos are rebuilt.
    """

    kind: str
    p: int = 1
    n_blocks: int = 1

    def fit(self, collection):
        pass

    def transform(self, collection):
        if self.kind == "subspaces":
            return np.ascontiguousarray(collection.X[:, :, : self.p])
        if self.kind == "sets":
            return collection.sets
        videos = videos_of(collection, self.n_blocks)
        if videos is None:
            raise ValueError("a video needs three frames or more")
        return videos


@dataclass
class AsFeatures:
    """Rows of features of each set, of first_tries.FEATURES."""

    kind: str

    def fit(self, collection):
        pass

    def transform(self, collection):
        return [first_tries.FEATURES[self.kind](rows) for rows in collection.sets]


def reader_of(method, chosen, recipe):
    """What makes the input of a method's estimator from sets, as it chose."""
    if is_tried_first(method):
        return AsFeatures(method.reads)
    kernel = getattr(chosen.get("kernel"), "kernel", None)
    gamma = getattr(kernel, "gamma", None)
    if callable(method.reads):
        return ByHulls(chosen.get("share"), chosen.get("bound"), gamma)
    if method.predict is None:
        p = chosen["p"] if method.reads == "subspaces" else 1
        return AsTheyAre(method.reads, p, recipe.arma or recipe.stack)
    if kernel is None:
        return ByProjection(chosen["p"])
    return ByKernel(chosen["p"], gamma, own=kernel if gamma is None else None)


# --------------------------------------------------------------------- learn and answer


@dataclass
class Model:
    """The fitted estimator of a method, and all that it needs to answer new sets.

    recipe: how sets become subspaces; shape: d and the least p of the subspaces, and
    (height, width) of the frames, which new sets must have; chosen: the parameters
    chosen by cross-validation, in which the share score was right; classes: the
    distinct labels, ascending; the estimator knows only their indices.
    """

    recipe: Recipe
    shape: tuple
    method: str
    chosen: str
    score: float
    reader: object
    estimator: object
    versions: dict
    # older files have none: then those of the estimator
    classes: np.ndarray | None = None
    names: list | None = None  # of the labelled sets, with their labels
    left_out: tuple | None = None  # CodingClassifier.left_out_scores
    groups: np.ndarray | None = None  # (N,) of the labelled sets, indices
    pictures: list | None = None  # of the labelled sets, images in uint8, for sheets

    def __repr__(self):
        classes = some(len(self.classes), "class")
        return (
            f"Model({self.method}, {self.chosen}: {100 * self.score:.1f} % right in "
            f"cross-validation, {classes})"
        )


def learned(collection, inputs, recipe, settings, clips=()):
    """The Model of the best method in cross-validation, on all sets of a Collection.

    clips: those of the sets, of which the Model keeps small images.
    """
    n = len(collection.label)
    label = files.labels_to_keep(collection.label, n, "sets")
    classes, place = np.unique(label, return_inverse=True)
    split = tuning.Split(np.arange(n), np.arange(0))
    (group,) = say_kept_together(collection, [split])
    best = None
    rows = evaluate(inputs, place, group, *split, every_method(inputs), settings)
    for row in rows:
        what = f"failed: {row.failed}" if row.failed else told(row.chosen)
        say(f"{100 * row.score:5.1f}  {row.method.name}  {what}")
        if row.failed is None and (best is None or row.score > best.score):
            best = row
    if best is None:
        raise ValueError(f"all methods failed: {row.failed}")
    chosen = best.chosen.get("recipe")
    if chosen is not None:
        recipe = inputs.recipes[chosen]
        collection = inputs.by(chosen)
    model = model_of(best, collection, recipe, classes)
    model.names = [labelled(collection, i) for i in range(n)]
    model.pictures = pictures_of(collection.names, collection.clip, clips, recipe.key)
    if isinstance(model.estimator, estimators.CodingClassifier):
        model.left_out = model.estimator.left_out_scores(group)
        if group is not None:
            model.groups = np.unique(group, return_inverse=True)[1]
    return _thing(*_tree(model))  # as a file gives it back, to the bit


def model_of(row, collection, recipe, classes):
    """The Model of a comparison.Outcome, learned from all sets of a Collection.

    classes: the labels; the estimator was given their indices.
    """
    reader = reader_of(row.method, row.chosen, recipe)
    reader.fit(collection)
    p = reader.p if isinstance(reader, (ByProjection, AsTheyAre)) else 1
    shape = collection.X.shape[1], p, collection.frame
    return Model(
        recipe,
        shape,
        row.method.name,
        told(row.chosen),
        row.score,
        reader,
        row.estimator,
        {"scikit-learn": sklearn.__version__},
        classes,
    )


def add(model, sets, labels, groups=None):
    """The Model that has learned more labelled sets too, also of new classes.

    Nothing is chosen again: its answers are those of a model learned with the same
    choices on all sets. The method must be a coding method on labelled sets, or the
    nearest subspace. sets, labels, groups: as in fit; the labels are of the same type.
    The model is not changed.
    """
    _check_model(model)
    core.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    groups = (
        [None] * len(sets) if groups is None else _checked_groups(groups, len(sets))
    )
    clips = [
        Clip(f"added set {i}", label, group, [np.asarray(rows)])
        for i, (rows, label, group) in enumerate(zip(sets, labels, groups))
    ]
    return added(model, build_new(model, clips, strict=True), clips)


def added(model, collection, clips):
    """add, of the sets of a Collection that build_new made of labelled clips."""
    estimator = model.estimator
    codes = isinstance(estimator, estimators.CodingClassifier)
    if not (codes and isinstance(model.reader, (ByProjection, ByKernel))):
        raise ValueError(
            "model must be of a coding method on labelled sets, or of the nearest "
            f"subspace, to learn more sets, got {model.method}"
        )
    new = np.asarray(collection.label)
    if new.dtype.kind != model.classes.dtype.kind:
        raise TypeError(
            f"labels must be of the type of the model's, as {model.classes[0]!r}, got "
            f"{new[0]!r}"
        )
    known = model.classes[estimator.classes_[estimator.index_]]
    label = np.concatenate([known, new])
    classes, place = np.unique(label, return_inverse=True)
    reader = copy.copy(model.reader)
    K = reader.add(collection)
    names = groups = left_out = pictures = None
    if model.pictures is not None:
        key = model.recipe.key
        more = pictures_of(collection.names, collection.clip, clips, key)
        pictures = [*model.pictures, *more]
    if model.names is not None:
        more = [labelled(collection, i) for i in range(len(new))]
        names = [*model.names, *more]
    if model.groups is not None:
        own = np.arange(len(new)) if collection.group is None else collection.group
        more = np.unique(own, return_inverse=True)[1]
        groups = np.concatenate([model.groups, more + 1 + model.groups.max()])
    estimator = clone(estimator).fit(K, place)
    if model.left_out is not None:
        left_out = estimator.left_out_scores(groups)
    return replace(
        model,
        reader=reader,
        estimator=estimator,
        classes=classes,
        names=names,
        groups=groups,
        left_out=left_out,
        pictures=pictures,
    )


def answer(model, collection):
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
    found = [answer(model, _one(collection, i)) for i in range(len(collection.names))]
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
    estimator = model.estimator
    queries = model.reader.transform(collection)
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
    because, instead = (
        np.array([explained(model.names, one) for one in of_all], object)
        for of_all in (own, other)
    )
    return Answers(
        collection.names,
        model.classes[places],
        scores,
        model.classes,
        dict(collection.unread),
        *p_values,
        because,
        model.classes[second],
        instead,
        reasons,
    )


def _reasons(model, queries, places, second):
    """What speaks for the classes answered, and for the runners-up, as comparison.of_class.

    The nearest labelled sets of methods that do not code, for no runner-up.
    """
    none = [[] for _ in range(len(queries))]
    if model.names is None:  # a file of an older version
        return none, none
    if isinstance(model.estimator, estimators.CodingClassifier):
        shares = model.estimator.explain(queries)
        index = model.estimator.index_
        return of_class(shares, index, places), of_class(shares, index, second)
    if isinstance(model.reader, (ByProjection, ByKernel)):
        order = np.argsort(-queries, axis=1, kind="stable")[:, :BECAUSE]
        nearest = np.take_along_axis(queries, order, axis=1)
        pairs = zip(order.tolist(), nearest.tolist())
        return [[*zip(*one)] for one in pairs], none
    return none, none


def _one(collection, i):
    sets = collection.sets and collection.sets[i : i + 1]
    return collection._replace(
        X=collection.X[i : i + 1],
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
    cross-validation. recipe: examples.clips.Recipe, how sets become subspaces; None:
    chosen, as examples.classify does.
    settings: examples.options.Settings, as Settings(methods=["gsc", "svm"]): the
    methods and their candidate parameters.
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
    core.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    check_classes(labels)
    if groups is None:
        groups = [None] * len(sets)
    else:
        groups = _checked_groups(groups, len(sets))
    clips = [
        Clip(f"set {i}", label, group, [np.asarray(rows)])
        for i, (rows, label, group) in enumerate(zip(sets, labels, groups))
    ]
    collection = build_all(clips, recipe, keep_rows=True, strict=True)
    recipes = None
    if not fixed:
        shortest = min(map(len, collection.sets))
        recipes = recipes_of(recipe, collection.frame, shortest)
    inputs = inputs_for(collection, recipe, settings, recipes)
    return learned(collection, inputs, recipe, settings, clips)


def _checked_groups(groups, n):
    """The index of each set's group (n,)."""
    names, number = core.check_labels(groups, n, "groups", "sets")
    unknown = [name for name in names.tolist() if name is None or name != name]
    if unknown:
        raise ValueError(f"groups must name a group for every set, got {unknown[0]}")
    return number


def predict(model, sets):
    """Answers of a Model for sets of frames; labels have the type given to fit."""
    _check_model(model)
    core.check_sequence(sets, "sets", "arrays of frames")
    if not len(sets):
        raise ValueError("sets must hold at least one set, got none")
    clips = [
        Clip(f"set {i}", None, None, [np.asarray(rows)]) for i, rows in enumerate(sets)
    ]
    return answer(model, build_new(model, clips))


def _check_model(model):
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a Model, as fit and load give it, got {model!r}"
        )


def build_new(model, clips, cache=None, strict=False):
    """The Collection of clips without labels, by the recipe of a model."""
    keep_rows = not isinstance(model.reader, ByProjection)
    return build_all(clips, model.recipe, cache, keep_rows, strict, shape=model.shape)


def inputs_for(collection, recipe, settings, recipes=None):
    """The Inputs of a Collection, with videos if methods on these may run.

    recipes: {name: Recipe} to choose from; None: that by which the sets were read.
    """
    recipe = recipe if recipes is None else base_of(recipe)
    normalised = recipe.stack > 1 and (recipe.center or recipe.unit_variance)
    videos = None
    if not normalised and (settings.baselines or settings.methods):
        videos = videos_of(collection, recipe.arma or recipe.stack)
    return Inputs(collection, settings.p, recipes, videos)


# -------------------------------------------------------------------------------- files


KNOWN = {
    cls.__name__: cls
    for cls in (
        Model,
        Recipe,
        ByProjection,
        ByKernel,
        ByHulls,
        AsTheyAre,
        AsFeatures,
        Own,
        first_tries.FramesSVM,
        Normalizer,
        Nearest,
        kernels.Lift,
        kernels.rbf,
        estimators.CodingClassifier,
        estimators.GrassmannDictionary,
        SVC,
        Pipeline,
        StandardScaler,
        RidgeClassifierCV,
        LabelBinarizer,
        tensors.Components,
        *(getattr(baselines, name) for name in baselines.__all__),
    )
}


def save(path, model):
    """Write a Model to this path, whole or not at all."""
    tree, arrays = _tree(model)
    files.write_arrays(path, "model", {"model": files.as_json(tree), **arrays})


def load(path, name="path"):
    """The Model that save wrote; ValueError if the file is damaged or holds no model.

    name: what errors call the path.
    """
    arrays = files.read_arrays(
        path, "model", {"model": "U", **NUMBERS}, {"model"}, name
    )
    with files.refuse_damaged(path, "model", name):
        tree = files.read_json(arrays.pop("model"))
        model = _thing(tree, arrays)
        if not isinstance(model, Model):
            raise ValueError("it holds no model")
        _check_parts(model)
    _check_own(path, model)
    other = model.versions["scikit-learn"]
    if other != sklearn.__version__:
        core.warn(
            f"{path} was learned with scikit-learn {other}, this is {sklearn.__version__}: "
            "its answers may differ"
        )
    return model


def _check_own(path, model):
    """ValueError if a function that the model needs is not there; warns if it changed.

    A recipe gets the source as it is now, so that no cache mixes the two.
    """
    recipe = model.recipe
    kept = Own(recipe.features, recipe.source) if is_own(recipe.features) else None
    for needed in filter(None, [kept, getattr(model.reader, "own", None)]):
        try:
            now = own(needed.name)
        except ValueError as error:
            raise ValueError(f"{path} needs a function of your own: {error}") from None
        if now.source != needed.source:
            core.warn(
                f"the file of {needed.name} has changed since {path} was learned: answers "
                "may differ"
            )
    if kept:
        model.recipe = replace(recipe, source=own(kept.name).source)


TYPES = {
    int: (int, np.integer),
    float: (float, int, np.floating),
    bool: (bool, np.bool_),
    tuple: (tuple, list),
}  # the types that a file may give back for a declared type
DECLARED = (Model, Recipe, ByProjection, ByKernel, ByHulls, AsTheyAre, AsFeatures)


def _check_fields(thing):
    """ValueError unless a thing has its class's fields, of the declared types."""
    kind = type(thing)
    held = vars(thing)
    missing = [
        name for name in getattr(kind, "__dataclass_fields__", ()) if name not in held
    ]
    if missing:
        raise ValueError(f"{kind.__name__} must have {', '.join(missing)}, got none")
    if kind not in DECLARED:
        return
    hints = typing.get_type_hints(kind)
    if held.keys() != hints.keys():
        raise ValueError(
            f"{kind.__name__} must have {', '.join(hints)}, got {', '.join(held)}"
        )
    for name, hint in hints.items():
        value = held[name]
        declared = typing.get_args(hint) or (hint,)
        of_one = [isinstance(value, TYPES.get(one, one)) for one in declared]
        flag = isinstance(value, TYPES[bool]) and not {bool, object} & set(declared)
        if flag or not any(of_one):
            raise ValueError(
                f"{kind.__name__}.{name} must be of type {hint}, got {value!r:.60}"
            )


def _check_parts(model):
    """ValueError unless the parts of a Model fit together."""
    if not isinstance(model.versions.get("scikit-learn"), str):
        raise ValueError(
            f"Model.versions must name scikit-learn's, got {model.versions!r:.60}"
        )
    sizes = [part for part in model.shape[:2] if isinstance(part, TYPES[int])]
    frame = model.shape[2] if len(model.shape) == 3 else False
    if len(sizes) != 2 or not (frame is None or isinstance(frame, TYPES[tuple])):
        raise ValueError(
            f"Model.shape must be d, p and that of frames, got {model.shape!r:.60}"
        )
    if type(model.reader) not in DECLARED[2:]:
        raise ValueError(
            f"Model.reader must be known, got {type(model.reader).__name__}"
        )
    classes = getattr(model.estimator, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        raise ValueError(
            "Model.estimator must have classes, got "
            f"{type(model.estimator).__name__} without them"
        )
    if model.classes is None:
        model.classes = classes
    if model.classes.shape != classes.shape:
        raise ValueError(
            f"Model.classes must be the {len(classes)} of its estimator, got "
            f"{model.classes!r:.60}"
        )


def _tree(thing):
    """A thing as JSON can hold it, and its numbers: one array for each type."""
    parts = {}
    lengths = Counter()

    def of(value):
        if isinstance(value, (np.ndarray, np.generic)):
            if value.dtype.kind == "U":
                return {"texts": value.tolist()}
            if value.dtype.kind == "S":
                return {"bytes": np.char.decode(value, "latin-1").tolist()}
            name = value.dtype.name
            if name not in NUMBERS:
                raise TypeError(
                    f"a model must hold numbers or texts, got {value.dtype}"
                )
            start = lengths[name]
            lengths[name] += value.size
            parts.setdefault(name, []).append(np.ravel(value))
            shape = list(value.shape) if isinstance(value, np.ndarray) else None
            return {name: [start, shape]}
        if type(value) in (list, tuple, dict):
            items = value.items() if isinstance(value, dict) else value
            return {type(value).__name__: [of(item) for item in items]}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, np.random.Generator):  # no longer needed
            return None
        if type(value) is not KNOWN.get(type(value).__name__):
            raise TypeError(f"a model must hold what is known, got {type(value)}")
        content = value._asdict() if isinstance(value, tuple) else vars(value)
        return {type(value).__name__: of(content)}

    tree = of(thing)
    return tree, {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _thing(tree, arrays):
    """The thing that _tree was given."""
    if not isinstance(tree, dict):
        return tree
    ((name, content),) = tree.items()
    if name == "texts":
        return np.array(content, str)[()]
    if name == "bytes":
        return np.char.encode(np.array(content, str), "latin-1")[()]
    if name in NUMBERS:
        start, shape = content
        if shape is None:
            return arrays[name][start]
        return arrays[name][start : start + math.prod(shape)].reshape(shape).copy()
    if name in KNOWN:
        content = _thing(content, arrays)
        if issubclass(KNOWN[name], tuple):
            return KNOWN[name](**content)
        if not all(isinstance(key, str) for key in content):
            raise ValueError(
                f"{name} must have names for its parts, got {list(content)!r:.60}"
            )
        thing = KNOWN[name].__new__(KNOWN[name])
        # fields that an older file lacks have their default
        if KNOWN[name] in DECLARED:
            later = {
                one.name: one.default
                for one in fields(thing)
                if one.default is not MISSING
            }
            content = later | content
        thing.__dict__.update(content)
        _check_fields(thing)
        return thing
    return {"list": list, "tuple": tuple, "dict": dict}[name](
        _thing(item, arrays) for item in content
    )
