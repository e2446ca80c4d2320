"""More labelled sets for a model, which chooses nothing again: the function add."""

from dataclasses import replace

import numpy as np

import grassmann_sc as core
from grassmann_classify.clips import clip_names, pictures_of
from grassmann_classify.copies import copies
from grassmann_classify.model import build_to_add, check_model, clips_of
from grassmann_classify.points import of_one_type
from grassmann_classify.words import first_of, plural
from grassmann_sc import checks, files


def more(model, collection, clips, to_code=None):
    """A Model that has learned the sets of a Collection too, built from these clips.

    Nothing is chosen again: it is the one that the same choices make of all sets. Sets
    that it has already are passed over. to_code: the Collection of the same sets for
    the model that codes, as build_to_add gives it.
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
    of_sets = {
        "labels": np.concatenate([model.labels, labels[new]]),
        "names": [*model.names, *names],
        "clips": [*model.clips, *of_clips],
        "groups": groups,
    }
    coder = model.coder
    if coder is not None:
        added = coder.reader.points(to_code)
        coder = replace(coder, points=_grown(coder.points, added, new), **of_sets)
    points = _grown(model.points, points, new)
    return replace(model, points=points, pictures=pictures, coder=coder, **of_sets)


def _grown(points, more, new):
    """Points with those of these indices of more behind them."""
    if isinstance(more, np.ndarray):
        return checks.joined([points, more[new].astype(points.dtype, copy=False)])
    return [*points, *(more[i] for i in new)]


def _new_sets(model, points, names):
    """Indices of the points that the Model has not yet; warns of the others."""
    n = len(model.labels)
    found = copies(_joined(model.points, points))
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
    """Both as copies takes them: subspaces in an array, or a list of rows."""
    if isinstance(points, np.ndarray):
        more = more.astype(points.dtype, copy=False)
        return checks.joined([points, more])
    return [rows.reshape(len(rows), -1) for rows in of_one_type([*points, *more])]


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


def add(model, sets, labels, groups=None):
    """The Model that has learned more labelled sets too, also of new classes.

    Nothing is chosen again: its answers are those of a model that the same choices make
    of all sets. Sets that it has already are passed over, with a warning; sets with a
    group that it has are of that group. Atoms must not have been learned. sets, labels,
    groups: as in fit; the labels are of the same type. The model is not changed.
    """
    check_model(model)
    checks.check_sequence(sets, "sets", "arrays of frames")
    labels = files.labels_to_keep(labels, len(sets), "sets")
    clips = clips_of("added set", sets, labels, groups)
    collection, to_code = build_to_add(model, clips, strict=True)
    return more(model, collection, clips, to_code)
