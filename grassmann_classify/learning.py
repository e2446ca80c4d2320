"""Learn from labelled sets, answer others, and learn more: fit, predict and add."""

import hashlib
from dataclasses import replace
from itertools import count

import numpy as np

import grassmann_sc as core
from grassmann_classify.building import build_all
from grassmann_classify.clips import Clip, pictures_of, some_sets
from grassmann_classify.evaluation import evaluate
from grassmann_classify.inputs import inputs_for, read_by, recipes_for
from grassmann_classify.model import (
    PARAMETERS,
    FewFrames,
    Model,
    answers_of,
    check_model,
    everything,
    results_of,
)
from grassmann_classify.rows import (
    coding_methods,
    front,
    is_coding,
    methods,
    unit_shares,
    within_chance,
)
from grassmann_classify.settings import READY_MADE, Recipe, Settings, parts_of_recipe
from grassmann_classify.splits import check_classes, say_kept_together
from grassmann_classify.words import (
    SILENT,
    all_in_words,
    clip_names,
    each_once,
    first_of,
    group_named,
    plural,
    to_stderr,
    verbose_if,
)
from grassmann_sc import files, frames, shared


def fit(sets, labels, groups=None, *, recipe=None, settings=None, verbose=False):
    """The Model learned from n sets of frames with labels (n,).

    sets: arrays (n_frames, height, width[, 3]) or (n_frames, d).
    labels: numbers, strings or bools, all of one type, of two classes or more; answers
    are of that type. groups (n,): any hashables; sets of one group stay together in
    cross-validation. recipe: a Recipe, how sets become subspaces; None: chosen, as the
    command does. settings: as Settings(methods=["gsc", "svm"]), the rows and their
    candidate parameters. The best row that codes answers, others only if methods name
    them, baselines and learned atoms never. verbose: with progress and advice on stderr,
    and how the rows do that cannot answer.
    """
    fixed = recipe is not None
    settings = Settings() if settings is None else settings
    for name, value, kind in (
        ("settings", settings, Settings),
        ("recipe", recipe if fixed else Recipe(), Recipe),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} must be a {kind.__name__}, got {value!r}")
    recipe = recipe if fixed else Recipe(**parts_of_recipe(settings), fewer=True)
    for name in {recipe.features, *(settings.features or [])}:
        core.check_choice(name, "features", *frames.DESCRIPTORS)
    shared.check_sequence(sets, "sets", "arrays of frames")
    shared.warn_of_transposed(sets)
    labels = files.labels_to_keep(labels, len(sets), "sets")
    check_classes(labels)
    clips = clips_of("set", sets, labels, groups)
    if fixed:
        settings = replace(
            settings,
            features=[recipe.features],
            center=recipe.center,
            stack=[recipe.stack],
        )
    by = read_by(recipe, settings)
    with verbose_if(verbose or settings.verbose):
        collection = build_all(clips, by, strict=True)
        recipes = recipes_for(recipe, settings, collection)
        bank = inputs_for(collection, recipe, settings, recipes)
        return learn(bank, by, settings, clips, settings.end())


def learn(bank, recipe, settings, clips, end):
    """The Model of the best row, on all sets of a Bank, which were read by a Recipe.

    The row codes, unless settings.methods names rows; the others are evaluated where
    someone reads how they do. clips: those of the sets, of which the Model keeps small
    images. end: of the search, as evaluate has it.
    """
    collection = bank.collection
    n = len(collection.label)
    label = files.labels_to_keep(collection.label, n, "sets")
    class_index = np.unique(label, return_inverse=True)[1]
    split = everything(n)
    (kept,) = say_kept_together(collection, [split])
    rows = {}
    failed = None
    answering = replace(settings, atoms=0)  # the others have no labelled sets
    silent = SILENT.get() and settings.methods is None
    methods_of = coding_methods if silent else methods
    for row in evaluate(
        bank, class_index, kept, split, answering, end, methods_of=methods_of
    ):
        what = f"failed: {row.failed}" if row.failed else all_in_words(row.chosen)
        to_stderr(f"{100 * row.score:5.1f}  {row.method.name}  {what}")
        if row.failed is None:
            # the others hold matrices of all sets
            rows[row.method.name] = row._replace(estimator=None, queries=None)
        failed = row.failed or failed
    unit = np.unique(np.arange(n) if kept is None else kept, return_inverse=True)[1]
    row = _row_that_answers(rows, failed, settings.methods is not None, unit)
    name = row.chosen.get("recipe")
    if row.inner is None and name is not None:
        collection = bank.by(name)
        recipe = bank.recipes[name]
    inner = row.inner or FewFrames(row.method.reads)
    recipe = replace(recipe, colour=row.inner is not None and row.inner.in_colour)
    chosen = {name: v for name, v in row.chosen.items() if name in PARAMETERS}
    if "n_neighbors" in chosen:
        chosen["n_neighbors"] = min(chosen["n_neighbors"], n)
    owners = collection.names, collection.clip
    digests = digests_of(collection, recipe)
    _warn_of_copies(digests or [], label, collection.names)
    return Model(
        recipe=recipe,
        d=collection.X.shape[1],
        frame=tuple(collection.frame),
        method=row.method.name,
        parameters=chosen,
        shrinkage=row.chosen.get("shrinkage"),
        inner=inner,
        points=inner.points(collection),
        labels=label,
        names=[*collection.names],
        clips=clip_names(*owners),
        digests=digests,
        groups=None if collection.group is None else [*map(str, collection.group)],
        chosen=all_in_words(row.chosen),
        score=float(row.score),
        judged=n,
        pictures=pictures_of(*owners, clips, recipe),
    )


def _warn_of_copies(digests, label, names):
    """A warning if a set is there under two labels."""
    first = {}
    for digest, c, name in zip(digests, label.tolist(), names):
        before, other = first.setdefault(digest, (name, c))
        if c != other:
            core.warn(
                f"{before} and {name} are the same and have two labels, {other} and {c}"
            )


def _row_that_answers(rows, failed, is_named, unit):
    """Of the Outcomes of rows the best that codes; of rows that were named any.

    It says so if a row that does not code is better than chance explains. failed: why
    another row failed; unit (n,): the index of what is kept together of the sets.
    """
    shares = {name: row.shares for name, row in rows.items()}
    can = {name: shares[name] for name in shares if is_named or is_coding(name)}
    if not can:
        raise ValueError(
            f"all rows failed: {failed}"
            if is_named
            else f"no row that codes could learn the sets: {failed}; --methods names others"
        )
    first = front(unit_shares(can, unit))
    _, (best, *others) = within_chance(unit_shares(shares, unit))
    if first not in (best, *others):
        to_stderr(
            f"{best} is right more often than {first} by more than chance explains, "
            f"{100 * rows[best].score:.1f} % and {100 * rows[first].score:.1f} %, but gives "
            "no reasons: --methods lets it answer"
        )
    return rows[first]


def predict(model, sets, *, verbose=False):
    """Answers of a Model for sets of frames; labels have the type given to fit.

    A warning tells of sets without an answer, which names and labels leave out and
    failed explains. verbose: with progress on stderr.
    """
    check_model(model)
    shared.check_sequence(sets, "sets", "arrays of frames", "set")
    clips = clips_of("set", sets, [None] * len(sets), None)
    with verbose_if(verbose):
        answers = answers_of(model, build_new(model, clips))
    if answers.failed:
        core.warn(
            f"{len(answers.failed)} of {plural(len(clips), 'set')} without an answer: "
            f"{first_of(each_once(answers.failed), '; ')}"
        )
    return answers


def digests_of(collection, recipe):
    """Hashes (n,) of the rows of sets, and colours, or of subspaces that were given.

    None where the rows are not in memory.
    """
    points = collection.X if recipe.features == READY_MADE else collection.sets
    if points is None:
        return None
    colours = collection.colours if recipe.colour else [None] * len(points)
    digests = []
    for parts in zip(points, colours):
        content = [np.ascontiguousarray(A).tobytes() for A in parts if A is not None]
        digests.append(hashlib.blake2b(b"".join(content), digest_size=16).hexdigest())
    return digests


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
        groups = [group_named(distinct[i]) for i in number]
    return [
        Clip(f"{name} {i}", label, group, [_source_of(rows)])
        for i, (rows, label, group) in enumerate(zip(sets, labels, groups))
    ]


def _source_of(rows):
    """The frames of a set as an array, or what is wrong with them."""
    try:
        frames = core.plain_array(
            rows, "frames", "hold frames of one shape, got a ragged sequence"
        )
    except (TypeError, ValueError) as error:
        return error
    if frames.ndim < 2:
        return ValueError(
            "a set must be an array (n_frames, d) or (n_frames, height, width), got "
            f"shape {frames.shape}; [set] is a list of one"
        )
    if frames.ndim > 4 or (frames.ndim == 4 and frames.shape[3] not in (1, 3, 4)):
        return ValueError(
            "a set of images must be an array (n_frames, height, width), or (n_frames, "
            f"height, width, 1, 3 or 4) in colour, got shape {frames.shape}"
        )
    return frames


def build_new(model, clips, strict=False):
    """The Collection of clips without labels, by the recipe of a model."""
    return build_all(clips, model.recipe, strict, shape=(model.d, 1, model.frame))


def build_more(model, clips, strict=False):
    """build_new of the clips of which the model can make what it compares.

    ValueError if there is none; strict: if one is not among them.
    """
    collection = build_new(model, clips, strict)
    # with each other, which takes less than with the model's own
    usable, failed = results_of(
        lambda sets: model.inner.gram(model.inner.points(sets)), collection, model
    )
    if failed and (strict or not usable):
        raise ValueError(next(iter(failed.values())))
    return some_sets(collection, [*usable])._replace(
        unusable=collection.unusable | failed
    )


def add(model, sets, labels, groups=None, *, verbose=False):
    """The Model that has learned more labelled sets too, also of new classes.

    Nothing is chosen again: its answers are those of a model that the same choices make
    of all sets. Sets that it has already are passed over, with a warning; sets with a
    group that it has are of that group. sets, labels, groups, verbose: as in fit; the
    labels are of the same type. The model is not changed. ValueError if it has a set
    under another label.
    """
    check_model(model)
    shared.check_sequence(sets, "sets", "arrays of frames", "set")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    clips = clips_of("added set", sets, labels, groups)
    with verbose_if(verbose):
        return more(model, build_more(model, clips, strict=True), clips)


def more(model, collection, clips):
    """The Model that has learned the sets of a Collection too, built from these clips."""
    labels = files.labels_to_keep(collection.label, len(collection.label), "sets")
    kinds = {array.dtype.kind.replace("u", "i") for array in (labels, model.labels)}
    if len(kinds) > 1:
        raise TypeError(
            f"labels must be of the type of the model's, as {model.classes.tolist()[0]!r}, "
            f"got {labels.tolist()[0]!r}"
        )
    owned = collection.names, collection.clip
    whose = clip_names(*owned)
    digests = model.digests and digests_of(collection, model.recipe)
    new, grown = _new_sets(model, digests or [], labels, collection.names, whose)
    points = model.inner.points(some_sets(collection, new))
    pictures = pictures_of(*owned, clips, model.recipe, new)
    groups = None
    if model.groups is not None and collection.group is not None:
        groups = [*model.groups, *(str(collection.group[i]) for i in new)]
    elif model.groups is not None or collection.group is not None:
        part = "added" if collection.group is None else "first"
        core.warn(f"all groups are passed over: the {part} sets have none")
    names, owners = _names_apart(model, collection.names, whose, new, grown)
    if kinds == {"i"}:  # of signed and unsigned integers NumPy makes fractions
        both = as_integers([*model.labels.tolist(), *labels[new].tolist()])
    else:
        both = np.concatenate([model.labels, labels[new]])
    return replace(
        model,
        points=model.inner.joined(model.points, points),
        labels=both,
        names=[*model.names, *names],
        clips=[*model.clips, *owners],
        digests=model.digests and [*model.digests, *(digests[i] for i in new)],
        groups=groups,
        pictures=[*model.pictures, *pictures],
    )


def as_integers(labels):
    """Labels that are Python's integers as an array; ValueError if no type holds all."""
    is_large = max(labels) >= 2**63
    if max(labels) >= 2**64 or min(labels) < (0 if is_large else -(2**63)):
        raise ValueError(
            "labels must be integers that one type of NumPy holds, got "
            f"{min(labels)} and {max(labels)}"
        )
    return np.array(labels, np.uint64 if is_large else np.int64)


def _new_sets(model, digests, labels, names, whose):
    """(Indices of the sets that the Model has not yet, the clips that have grown).

    whose: the clip of each set. Clips have grown that share a name and a set with one of
    the Model's. It warns of sets that are there already; ValueError if under another
    label.
    """
    known = {
        digest: owned
        for digest, *owned in zip(
            model.digests or [], model.labels, model.names, model.clips
        )
    }
    again = [j for j, digest in enumerate(digests) if digest in known]
    grown = set()
    for j in again:
        label, name, clip = known[digests[j]]
        if label != labels[j]:
            raise ValueError(
                f"{names[j]} is labelled {labels[j]}, and the model has it as "
                f"{name}, labelled {label}: a model keeps its labels, learn a new one"
            )
        grown |= {clip} & {whose[j]}
    if again:
        core.warn(
            f"passed over {len(again)} that the model has already: "
            + first_of([names[j] for j in again], ", ")
        )
    new = [j for j in range(len(names)) if j not in again]
    if not new:
        raise ValueError(
            f"sets must hold one that the model has not already, got {len(names)} that it "
            "has"
        )
    return new, grown


def _names_apart(model, names, whose, new, grown):
    """Names of new sets and of their clips, others than those that the Model has.

    But clips that have grown keep theirs: their sets stay together.
    """
    taken = {*model.clips, *whose}
    apart = {clip: clip for clip in whose}
    for clip in {*model.clips} & {*whose} - grown:
        others = (f"{clip} ({k})" for k in count(2))
        apart[clip] = next(name for name in others if name not in taken)
    names = [apart[whose[i]] + names[i][len(whose[i]) :] for i in new]
    return names, [apart[whose[i]] for i in new]
