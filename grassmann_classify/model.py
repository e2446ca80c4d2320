"""A model: the compared row that answers, and the labelled sets that it keeps.

It keeps what its row compares new sets with, its choices, and nothing that was fitted:
the estimator is fitted anew whenever a model is made, so that a file, or more labelled
sets, cannot contradict it. Labels come back as they were given: numbers, strings or
bools, all of one type.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

import grassmann_sc as core
from grassmann_classify.bank import rank_of
from grassmann_classify.baseline_rows import EVERY_ESTIMATOR, every_method
from grassmann_classify.building import build_all
from grassmann_classify.clips import (
    Clip,
    pictures_of,
    some_sets,
    videos_of,
)
from grassmann_classify.evaluation import end_of, evaluate, say_if_over
from grassmann_classify.first_tries import FEATURES, few_of
from grassmann_classify.inner_product import InnerProduct
from grassmann_classify.inputs import inputs_for, read_by, recipes_for
from grassmann_classify.recipes import common_bases
from grassmann_classify.rows import LEARNED, estimator_of, is_coding, most_telling
from grassmann_classify.settings import READY_MADE, Recipe, Settings
from grassmann_classify.splits import check_classes, kept_together, say_kept_together
from grassmann_classify.words import (
    all_in_words,
    clip_names,
    first_of,
    plural,
    short,
    to_stderr,
)
from grassmann_sc import discriminative, files, shared, tuning
from grassmann_sc.baselines import hulls

# what rows choose, or are told, of their estimators
PARAMETERS = "lam n_neighbors rule C scale positive reg beta p dimension reference "
PARAMETERS += "n_angles keep gamma n_landmarks n_states n_features radii size"
PARAMETERS = {*PARAMETERS.split()}


@dataclass
class Reader:
    """How the input of an estimator is made from sets.

    reads: "inner", by the InnerProduct inner; else as rows.Method has it, or the hulls
    "affine" or "convex". p: the dimension of "subspaces". share, bound, kernel: of
    hulls. n_blocks: how many frames a row holds, from which "videos" are made again.
    """

    reads: str
    inner: InnerProduct | None = None
    p: int | None = None
    share: float | None = None
    bound: float | None = None
    kernel: object = None
    n_blocks: int = 1

    def points(self, collection):
        """What is kept of sets: Points of the InnerProduct, bases, or arrays of rows."""
        if self.reads == "inner":
            sets = collection.sets and of_one_type(collection.sets)
            return self.inner.points(collection._replace(sets=sets))
        if self.reads == "subspaces":
            return np.ascontiguousarray(collection.X[:, :, : self.p])
        if self.reads in FEATURES:
            features = [FEATURES[self.reads](rows) for rows in collection.sets]
            return of_one_type(few_of(features, np.inf))
        if self.reads != "videos":
            return of_one_type(collection.sets)
        videos = videos_of(collection, self.n_blocks)
        if videos is None:
            raise ValueError("a video needs three frames or more")
        return of_one_type(videos)

    def labelled(self, points):
        """What the estimator learns from: a Gram matrix (n, n), or the points."""
        if self.reads == "inner":
            return self.inner.gram(points)
        return self._hulls(points) if self.reads in ("affine", "convex") else points

    def asked(self, new, points):
        """What it is asked: rows of a Gram matrix (n_new, n), or the new points."""
        if self.reads == "inner":
            for candidate in self.inner.candidates:
                check_rank(candidate, new)
            return self.inner.cross(new, points)
        return self._hulls(new, points) if self.reads in ("affine", "convex") else new

    def joined(self, points, new):
        """The points of sets, and behind them those of others."""
        if self.reads == "inner":
            return self.points(_joined_sets(points.collection, new.collection))
        if self.reads == "subspaces":
            return np.concatenate([points, new])
        return of_one_type([*points, *new])

    def _hulls(self, *sets):
        """Minus the distances of hulls."""
        if self.reads == "convex":
            return -hulls.convex_hull_distances(*sets, bound=self.bound)
        options = {"share": self.share, "kernel": self.kernel}
        return -hulls.affine_hull_distances(*sets, **options)


def check_rank(candidate, points):
    """ValueError unless all sets have the p directions of a linear candidate."""
    if candidate.kernel is None and candidate.p is not None:
        if rank_of(points.directions(candidate.recipe)[1]) < candidate.p:
            raise ValueError(f"a set must hold p = {candidate.p} independent frames")


def _joined_sets(first, second):
    """A Collection of the sets of both."""
    spectra = None
    if first.spectra:
        U, V = (sets.spectra[0] for sets in (first, second))
        s, t = (sets.spectra[1][:, None] for sets in (first, second))
        spectra = shared.joined([U, V]), shared.joined([s, t])[:, 0]
        X = common_bases(spectra)
    else:
        p = min(first.X.shape[2], second.X.shape[2])
        X = np.concatenate([sets.X[:, :, :p] for sets in (first, second)])
    sets = first.sets and [*first.sets, *second.sets]
    return first._replace(X=X, sets=sets, spectra=spectra)


def of_one_type(arrays):
    """The arrays as a file keeps them: of the type that holds the numbers of all."""
    dtype = np.result_type(*{array.dtype for array in arrays})
    return [array.astype(dtype, copy=False) for array in arrays]


def reader_of(row, n_blocks):
    """The Reader of an Outcome."""
    if row.inner is not None:
        return Reader("inner", row.inner)
    reads = row.method.reads
    kernel = row.chosen.get("kernel")
    if callable(reads):
        kind = "convex" if "bound" in row.chosen else "affine"
        choice = {name: row.chosen.get(name) for name in ("share", "bound")}
        return Reader(kind, kernel=kernel, n_blocks=n_blocks, **choice)
    p = row.chosen["p"] if reads == "subspaces" else None
    return Reader(reads, p=p, n_blocks=n_blocks)


@dataclass(repr=False)
class Model:
    """A row of the table with its choices, fitted to N labelled sets.

    recipe: how clips are read; d: the length of their rows; frame: the shape of raw
    frames, or (); method: the row's name; parameters: of its estimator; shrinkage: of
    the whitening, or None; reader, points: what it compares with, see Reader; chosen:
    what was chosen, in words; score: the share that was right in the cross-validation in
    which it was chosen, on `judged` sets. labels (N,); names (N,) of the sets, clips
    (N,) of theirs, groups (N,) or None; digests (N,): hashes of what was read, or None;
    pictures: small images (N,) in uint8, None where there is none, or None; atoms:
    learned ones.

    classes (n_classes,): the distinct labels, ascending; the estimator knows their
    indices; left_out: its left_out_scores, if it codes.
    """

    recipe: Recipe
    d: int
    frame: tuple
    method: str
    parameters: dict
    shrinkage: float | None
    reader: Reader
    points: object
    labels: np.ndarray
    names: list
    clips: list
    digests: list | None
    groups: list | None
    chosen: str
    score: float
    judged: int
    pictures: list | None = None
    atoms: np.ndarray | None = None

    def __post_init__(self):
        self.classes, class_index = np.unique(self.labels, return_inverse=True)
        self.estimator = self._new_estimator()
        samples = self.reader.labelled(self.points)
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
            self.left_out = self.estimator.left_out_scores(kept)

    def _new_estimator(self):
        estimator = estimator_of(self.method, EVERY_ESTIMATOR)
        estimator.set_params(**self.parameters)
        if self.codes:  # it whitens by itself, and its left-out scores in folds
            estimator.set_params(shrinkage=self.shrinkage)
        if self.atoms is not None:  # learned before: they stay
            estimator[0].set_params(
                init=self.atoms, n_atoms=len(self.atoms), max_iter=0, lam_scale=None
            )
        return estimator

    @property
    def codes(self):
        """Does its row code over the labelled sets, so that it gives reasons?"""
        return is_coding(self.method)

    def queries(self, collection):
        """What the estimator is asked of the sets of a Collection."""
        new = self.reader.points(collection)
        queries = self.reader.asked(new, self.points)
        if self.whitening is not None:
            queries = self.whitening.transform(queries, np.ones(len(queries)))
        return queries

    @property
    def shape(self):
        """d and the least p of the subspaces of new sets, and the size of their frames."""
        return self.d, self.reader.p or 1, self.frame

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


def fit(sets, labels, groups=None, *, recipe=None, settings=None):
    """The Model learned from n sets of frames with labels (n,).

    sets: arrays (n_frames, height, width) or (n_frames, d).
    labels: numbers, strings or bools, all of one type, of two classes or more; answers
    are of that type. groups (n,): any hashables; sets of one group stay together in
    cross-validation. recipe: a Recipe, how sets become subspaces; None: chosen, as the
    command does. settings: as Settings(methods=["gsc", "svm"]), the rows and their
    candidate parameters. The best row that codes answers, others only if methods name
    them.
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
    shared.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    check_classes(labels)
    clips = clips_of("set", sets, labels, groups)
    if fixed:
        choice = {"features": [recipe.features], "center": recipe.center}
        settings = replace(settings, stack=[recipe.stack], **choice)
    by = read_by(recipe, settings)
    collection = build_all(clips, by, strict=True)
    recipes = recipes_for(recipe, settings, collection)
    bank = inputs_for(collection, recipe, settings, recipes)
    return learn(bank, by, settings, clips)


def learn(bank, recipe, settings, clips=(), end=None):
    """The Model of the best row, on all sets of a Bank, which were read by a Recipe.

    The row codes, unless settings.methods names rows. clips: those of the sets, of which
    the Model keeps small images. end: of the search, as evaluate has it.
    """
    end = end_of(settings) if end is None else end
    collection = bank.collection
    n = len(collection.label)
    label = files.labels_to_keep(collection.label, n, "sets")
    class_index = np.unique(label, return_inverse=True)[1]
    split = everything(n)
    (group,) = say_kept_together(collection, [split])
    rows = {}
    failed = None
    methods = every_method(bank)
    for row in evaluate(bank, class_index, group, *split, methods, settings, end=end):
        what = f"failed: {row.failed}" if row.failed else all_in_words(row.chosen)
        to_stderr(f"{100 * row.score:5.1f}  {row.method.name}  {what}")
        if row.failed is None:
            rows[row.method.name] = row
        failed = row.failed or failed
    say_if_over(settings, end)
    row = _row_that_answers(rows, failed, settings.methods is not None)
    name = row.chosen.get("recipe")
    if row.inner is None and name is not None:
        collection = bank.by(name)
        recipe = bank.recipes[name]
    pictures = pictures_of(collection.names, collection.clip, clips, recipe.key)
    return model_of(row, collection, recipe, pictures)


def _row_that_answers(rows, failed, is_named):
    """Of the Outcomes of rows the best that codes; of rows that were named any.

    It says so if a row that does not code is better than chance explains. failed: why
    another row failed.
    """
    shares = {name: row.shares for name, row in rows.items()}
    coding = {name: shares[name] for name in rows if is_coding(name)}
    if not rows:
        raise ValueError(f"all rows failed: {failed}")
    if is_named:
        return rows[most_telling(shares)]
    if not coding:
        raise ValueError(
            f"no row that codes could learn the sets: {failed}; --methods names others"
        )
    first = rows[most_telling(coding)]
    best = max(rows.values(), key=lambda row: row.score)
    if first.method.name not in tuning.alike(shares, tuning.ALIKE):
        to_stderr(
            f"{short(best.method.name)} is right more often than {short(first.method.name)} "
            f"by more than chance explains, {100 * best.score:.1f} % and "
            f"{100 * first.score:.1f} %, but gives no reasons: --methods lets it answer"
        )
    return first


def model_of(row, collection, recipe, pictures=None):
    """The Model of an Outcome, learned from all sets of a Collection."""
    reader = reader_of(row, recipe.n_blocks)
    parameters, atoms = _parameters_of(row)
    n = len(collection.label)
    names = collection.names
    group = collection.group
    return Model(
        recipe,
        collection.X.shape[1],
        tuple(collection.frame),
        row.method.name,
        parameters,
        row.chosen.get("shrinkage"),
        reader,
        reader.points(collection),
        files.labels_to_keep(collection.label, n, "sets"),
        [*names],
        clip_names(names, collection.clip),
        digests_of(collection, recipe),
        None if group is None else [*map(str, group)],
        all_in_words(row.chosen),
        float(row.score),
        n,
        pictures,
        atoms,
    )


def digests_of(collection, recipe):
    """Hashes (n,) of the rows of sets, or of subspaces that were given.

    None where the rows are not in memory.
    """
    points = collection.X if recipe.features == READY_MADE else collection.sets
    if points is None:
        return None
    return [
        hashlib.blake2b(
            np.ascontiguousarray(rows).tobytes(), digest_size=16
        ).hexdigest()
        for rows in points
    ]


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


def clips_of(name, sets, labels, groups):
    """The Clips of arrays of frames; groups are named by their strings."""
    if groups is None:
        groups = [None] * len(sets)
    else:
        distinct, number = core.check_labels(groups, len(sets), "groups", "sets")
        unnamed = [name for name in distinct.tolist() if name is None or name != name]
        if unnamed:
            raise ValueError(
                f"groups must name a group for every set, got {unnamed[0]}"
            )
        groups = [str(distinct[i]) for i in number]
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


def build_new(model, clips, strict=False):
    """The Collection of clips without labels, by the recipe of a model."""
    return build_all(clips, model.recipe, strict, shape=model.shape)


def add(model, sets, labels, groups=None):
    """The Model that has learned more labelled sets too, also of new classes.

    Nothing is chosen again: its answers are those of a model that the same choices make
    of all sets. Sets that it has already are passed over, with a warning; sets with a
    group that it has are of that group. Atoms must not have been learned. sets, labels,
    groups: as in fit; the labels are of the same type. The model is not changed.
    ValueError if it has a set under another label.
    """
    check_model(model)
    shared.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    clips = clips_of("added set", sets, labels, groups)
    return more(model, build_new(model, clips, strict=True), clips)


def more(model, collection, clips):
    """The Model that has learned the sets of a Collection too, built from these clips."""
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
    digests = model.digests and digests_of(collection, model.recipe)
    digests = digests or [None] * len(labels)
    new = _new_sets(model, digests, labels, collection.names)
    points = model.reader.points(some_sets(collection, new))
    pictures = model.pictures
    if pictures is not None:
        owners = collection.names, collection.clip, clips, model.recipe.key
        pictures = [*pictures, *pictures_of(*owners, new)]
    groups = None
    if model.groups is not None and collection.group is not None:
        groups = [*model.groups, *(str(collection.group[i]) for i in new)]
    elif model.groups is not None or collection.group is not None:
        part = "added" if collection.group is None else "first"
        core.warn(f"groups are passed over: the {part} sets have none")
    names, owners = _names_apart(model, collection, new)
    return replace(
        model,
        points=model.reader.joined(model.points, points),
        labels=np.concatenate([model.labels, labels[new]]),
        names=[*model.names, *names],
        clips=[*model.clips, *owners],
        digests=model.digests and [*model.digests, *(digests[i] for i in new)],
        groups=groups,
        pictures=pictures,
    )


def _new_sets(model, digests, labels, names):
    """Indices of the sets that the Model has not yet; warns of the others.

    ValueError if it has one under another label.
    """
    place = {digest: i for i, digest in enumerate(model.digests or [])}
    again = {j: place[digest] for j, digest in enumerate(digests) if digest in place}
    for j, i in again.items():
        if labels[j] != model.labels[i]:
            raise ValueError(
                f"{names[j]} is labelled {labels[j]}, and the model has it as "
                f"{model.names[i]}, labelled {model.labels[i]}: a model keeps its labels, "
                "learn a new one"
            )
    if again:
        listed = first_of([names[j] for j in again], ", ")
        core.warn(f"passed over {len(again)} that the model has already: {listed}")
    new = [j for j in range(len(names)) if j not in again]
    if not new:
        raise ValueError(
            f"sets must hold one that the model has not already, got {len(names)} that it "
            "has"
        )
    return new


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
