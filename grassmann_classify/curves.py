"""Pictures of accuracy against the number of clips, the dimension and the spectrum."""

import time
from functools import partial

import numpy as np

from grassmann_classify.candidates import features_of, on_one_thread
from grassmann_classify.evaluation import successes
from grassmann_classify.rows import ESTIMATORS, LEARNED, TRIED_FIRST, estimator_of
from grassmann_classify.sheets import save_plot
from grassmann_classify.tables import compared
from grassmann_classify.words import short
from grassmann_sc import plots, tuning

DRAWS = 10  # of some clips a class, at most
SECONDS = 5  # after which no draw begins
PARAMETERS = ("lam", "n_neighbors", "rule", "C", "scale")  # of an estimator
AXES = {  # the pictures of what a search tried: {parameter: (picture, axis)}
    "p": ("dimension", "dimension p of the subspaces"),
    "spectrum": (
        "spectrum",
        "α: directions weighted by singular value to the power 2α",
    ),
}


def save_curves(out, paths, inputs, label, pairs, results):
    """Draw the learning curve of the best row that has one, and what searches tried."""
    save = partial(save_plot, out, paths)
    name = best_of(results, compared(results, pairs).first)
    if name is not None:
        found = learning_curve(
            inputs, name, results[name][0]["chosen"], label, pairs[0]
        )
        what = f"{short(name)}, the first split, settings as chosen for all its sets"
        save(
            "learning",
            what,
            plots.plot_accuracy,
            {short(name): found},
            "labelled sets of each class",
        )
    for parameter, (picture, meaning) in AXES.items():
        curves = tried(results, parameter)
        if curves:
            what = (
                "In cross-validation, with the best other settings; bands: over splits"
            )
            save(picture, what, plots.plot_accuracy, curves, meaning)


def best_of(results, first=None):
    """The name of the best row that is fitted to a Gram matrix or to features, or None.

    It is the first of the table where that is such a row.
    """
    mean = {
        name: np.mean([split["accuracy"] for split in successes(found)])
        for name, found in results.items()
        if name in ESTIMATORS and not name.endswith(LEARNED) and not found[0]["failed"]
    }
    return first if first in mean else max(mean, key=mean.get, default=None)


@on_one_thread
def learning_curve(inputs, name, chosen, label, split):
    """{clips of each class: accuracies in % on the test part of a split}.

    The row of this name, with what it chose for the split, learns from 1, 2, 4, ...
    random clips of each class of the training part, or all of a smaller class.
    """
    train, test = split
    candidate = candidate_of(inputs, name, chosen)
    if not hasattr(candidate, "parts"):
        candidate = tuning.Gram(candidate)
    asked = {key: chosen[key] for key in PARAMETERS if chosen.get(key) is not None}
    most = np.unique(label[train], return_counts=True)[1].max()
    sizes = [2**k for k in range(int(most).bit_length()) if 2**k < most] + [int(most)]
    rng = np.random.default_rng(0)
    found = {size: [] for size in sizes}
    began = time.perf_counter()
    for draw in range(DRAWS):
        if draw and time.perf_counter() - began > SECONDS:
            break
        order = rng.permutation(train)
        for size in sizes if draw == 0 else sizes[:-1]:  # of all there is one draw
            some = first_of_each_class(order, label, size)
            known, queries = candidate.parts(some, test)
            estimator = estimator_of(name).set_params(**asked)
            if "n_neighbors" in asked:
                fewer = min(asked["n_neighbors"], len(some))
                estimator.set_params(n_neighbors=fewer)
            predicted = estimator.fit(known, label[some]).predict(queries)
            found[size].append(100 * np.mean(predicted == label[test]))
    return found


def first_of_each_class(order, label, size):
    """The first sets of each class in an order of sets, size of each where it has them."""
    of_class = [order[label[order] == c][:size] for c in np.unique(label[order])]
    return np.sort(np.concatenate(of_class))


def candidate_of(inputs, name, chosen):
    """What the row of this name learns from, by what it chose: as candidates has it.

    In a kernel's space, with the few frames of each set by which it was chosen.
    """
    recipe = chosen.get("recipe")
    if name in TRIED_FIRST:
        (found,) = features_of(TRIED_FIRST[name], [recipe], inputs).values()
        return found
    inputs.make(recipe)
    kernel = getattr(chosen.get("kernel"), "kernel", None)
    if kernel is not None:
        inputs.compute_kernels(recipe, [kernel])
        return inputs.kernels[recipe, kernel][0][chosen["p"] - 1]
    if chosen.get("spectrum") is not None:
        return inputs.weighted_gram(recipe, chosen["spectrum"])
    return inputs.gram[recipe, chosen["p"]]


def tried(results, parameter):
    """{row: {value: accuracies in % of all splits}} of the values that rows tried.

    Only values that half of the splits or more tried, of rows that tried two or more.
    """
    curves = {}
    for name, found in results.items():
        of_splits = [split["tried"].get(parameter, {}) for split in successes(found)]
        if of_splits:
            curve = {}
            for value in sorted(set().union(*of_splits)):
                found_there = [one[value] for one in of_splits if value in one]
                if 2 * len(found_there) >= len(of_splits):
                    curve[value] = found_there
            if len(curve) > 1:
                curves[short(name)] = curve
    return curves
