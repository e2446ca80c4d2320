"""The best candidate of a row by cross-validation, fitted."""

import time
import warnings
from collections import namedtuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from grassmann_classify import first_tries
from grassmann_classify.candidates import (
    GROWN,
    WEIGHTED,
    candidates,
    is_weighted,
    linear_candidates,
    on_one_thread,
    points_of_grid,
)
from grassmann_classify.messages import printable, told
from grassmann_classify.rows import InKernel, is_tried_first, svm_predictions
from grassmann_classify.settings import LAM, MOST_P, NEIGHBORS, C
from grassmann_sc import tuning

SURE_OF_SPECTRUM = tuning.ALIKE  # standard errors by which it must be better than p
# training sets; where all of so many are right, less than 1 % of others are wrong (3 / n,
# with probability 0.95), and no other kernel is tried
ENOUGH = 300
ALL_RIGHT = "no other kernel tried: all training sets right"
LIMITS = {
    "C": (0, np.inf),
    "lam": (0, 0.9),
    "n_neighbors": (1, np.inf),
    "reg": (0, np.inf),
    "p": (1, np.inf),
    "spectrum": (0, np.inf),
}  # of the parameters whose grid can be widened
# A method on a split. estimator: fitted; queries: what it was given of the test part;
# predicted: labels (n_test,); chosen: {parameter: value}; left_out: {candidate: why};
# ends: {parameter: option to try} of the choices at an end of their grid; score: the
# share that is right in cross-validation; failed: why there is none of these, or None;
# warned: the warnings of candidates; p: the best dimension, where a spectrum was chosen;
# shares (n,): how often each set was right in cross-validation, NaN if it was not asked;
# tried: {"p" or "spectrum": {value: accuracy in %}} of the chosen recipe.
Outcome = namedtuple(
    "Outcome",
    "method estimator queries predicted chosen left_out ends score "
    "failed seconds warned p shares tried",
    defaults=[None, None, None, {}, {}, {}, 0.0, None, 0.0, (), None, None, {}],
)


def attempt(method, run, *arguments):
    """The Outcome of run(method, *arguments), or why it failed, with its seconds."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # many classes are no mistake, and SVC would warn at each fit
        warnings.filterwarnings(
            "ignore", "The number of unique classes is greater than 50%"
        )
        try:
            outcome = run(method, *arguments)
        except Exception as error:
            outcome = Outcome(method, failed=str(error) or type(error).__name__)
    warned = tuple(dict.fromkeys(printable(warning.message) for warning in caught))
    return outcome._replace(seconds=time.perf_counter() - start, warned=warned)


def search(method, searched, at, task):
    """The Outcome of the best candidate of a method; searched: its tuning.Search.

    Candidates that the whole training part or a query cannot have are left out.
    at: the recipe and dimension of the subspaces where the grid has no p.
    """
    inputs = task.inputs
    settings = task.settings
    if method.predict is None:
        grams = points_of_grid(method, at, task)
    else:
        _see_whether_linear_is_perfect(method, searched, task)
        grams = candidates(method, task)
    grown = 0
    fitted = None
    while fitted is None:
        choice, p = _chosen(grams, searched, task)
        chosen = _point(method, choice.gram, choice.parameters)
        beyond = _beyond(method, choice, grams, searched, task)
        if grown < GROWN and _grow(beyond, method, chosen, searched, task):
            grown += 1
            grams = candidates(method, task)
            continue
        try:
            fitted = fitted_choice(choice, grams[choice.gram], method, task)
        except ValueError as error:  # the whole training part or a query cannot have it
            searched.left_out[choice.gram] = str(error)
    ends = {
        name: _option(method, name, *found, settings) for name, found in beyond.items()
    }
    ends |= inputs.end_of_stacks(chosen.get("recipe"))
    if method.reads == "kernels" and method.predict in task.perfect:
        chosen["others"] = ALL_RIGHT
    left_out = _left_out(method, choice)
    scores = {} if method.reads != "gram" else scores_along(choice, grams, searched)
    shares = choice.shares[choice.gram, choice.parameters]
    told_of = chosen, left_out, ends, choice.score
    return Outcome(method, *fitted, *told_of, p=p, shares=shares, tried=scores)


def scores_along(choice, grams, searched):
    """{"p" or "spectrum": {value: accuracy in %}} of the recipe that was chosen.

    With the best of the other settings; a candidate that was given up has the folds
    that it was tried on.
    """
    found = {"p": {}, "spectrum": {}}
    for name in grams:
        recipe, kind, value = name
        if recipe == choice.gram[0] and name not in searched.left_out:
            right = searched.right(name)
            if right:
                along = found["spectrum" if kind == WEIGHTED else "p"]
                along[value] = 100 * max(map(np.mean, right.values()))
    return found


def _see_whether_linear_is_perfect(method, searched, task):
    """Add a search to task.perfect if no Gaussian kernel can be much better."""
    many = len(task.train) >= ENOUGH
    if many and method.reads == "kernels" and task.settings.kernel is None:
        linear = linear_candidates(method, task)
        try:
            choice = on_one_thread(searched.choose)(linear, seconds=task.seconds)
        except ValueError:  # no fold can have any of them
            return
        if choice.score == 1:
            task.perfect.add(method.predict)


def _grow(beyond, method, chosen, searched, task):
    """Add to a search what lies beyond the ends that were chosen; was there anything?

    Grids that the user gave stay as they are.
    """
    settings = task.settings
    if method.predict is None or task.seconds == 0:
        return False
    support = first_tries.predictions if is_tried_first(method) else svm_predictions
    predictions = {
        "lam": (tuning.sparse_predictions, LAM),
        "n_neighbors": (tuning.local_predictions, NEIGHBORS),
        "C": (support, C),
    }
    grew = False
    for name, (value, values) in beyond.items():
        if name == "spectrum" and settings.spectrum is None:
            task.grown.setdefault(chosen.get("recipe"), []).append(value)
            grew = True
        make, ours = predictions.get(name, (None, ()))
        if ours and {*ours} <= {*values}:  # in the order of the grid
            new = make([value])
            old = searched.predicts
            searched.predicts = [new, *old] if value < values[0] else [*old, new]
            grew = True
    return grew


def _chosen(grams, searched, task):
    """The Choice, and the best p where weighted subspaces are among the candidates.

    Subspaces stay unless weighted ones are better by more than SURE_OF_SPECTRUM
    standard errors of the difference: few training sets decide little.
    """
    choose = on_one_thread(searched.choose)
    best = choose(grams, seconds=task.seconds)
    hard = {
        name: K
        for name, K in grams.items()
        if not is_weighted(name) and name not in searched.left_out
    }
    if not is_weighted(best.gram) or not hard:
        return best, None
    other = choose(hard, seconds=task.seconds)
    shares = {one.gram: one.shares[one.gram, one.parameters] for one in (best, other)}
    if other.gram in tuning.alike(shares, SURE_OF_SPECTRUM):
        return other._replace(shares=best.shares | other.shares), None
    return best, other.gram[2]


def fitted_choice(choice, candidate, method, task):
    """(Estimator, queries, their labels) of a choice, by all frames of each set."""
    if method.reads == "kernels" and isinstance(choice.gram[1], InKernel):
        recipe, name, p = choice.gram
        candidate = task.inputs.kernel_gram(recipe, name.kernel, p)
    if not hasattr(candidate, "parts"):
        candidate = tuning.Gram(candidate)
    with threadpool_limits(limits=1, user_api="blas"):
        *made, known, queries = candidate.parts(task.train, task.test)
        estimator = clone(*made) if made else clone(method.estimator)
        if not made:
            found = dict(choice.parameters)
            if "n_neighbors" in found:
                found["n_neighbors"] = min(found["n_neighbors"], len(task.train))
            estimator.set_params(**found)
        estimator.fit(known, task.label[task.train])
        asked = len(task.test)
        predicted = estimator.predict(queries) if asked else task.label[:0]
    return estimator, queries, predicted


def _left_out(method, choice):
    """{what the candidates left out for one reason have in common: the reason}."""
    by_reason = {}
    for name, why in choice.left_out.items():
        by_reason.setdefault(why, []).append(_point(method, name))
    found = {}
    for why, points in by_reason.items():
        common = {
            name: value
            for name, value in points[0].items()
            if all(point[name] == value for point in points)
        }
        found[told(common) or f"{len(points)} candidates"] = why
    return found


def _point(method, name, parameters=()):
    """{parameter: value} of a candidate, from its name and its parameters."""
    if method.predict is None:
        *others, first = name
        return {key.rpartition("__")[2]: value for key, value in (first, *others)}
    recipe, kernel, p = name
    point = {} if recipe is None else {"recipe": recipe}
    if is_weighted(name):
        linear = {"kernel": "linear"} if method.reads == "kernels" else {}
        return point | {"spectrum": p} | linear | dict(parameters)
    if method.grid:
        point |= {"kernel": kernel} if kernel else {}
        return point | {next(iter(method.grid)): p}
    point |= {} if p is None else {"p": p}
    point |= {"kernel": kernel} if method.reads == "kernels" else {}
    return point | dict(parameters)


def _beyond(method, choice, grams, searched, task):
    """{parameter: (value beyond, the grid)} of the choices at an end of their grid.

    Only those that are within limits and better at the end than beside it count.
    """
    limits = _limits(task)
    # candidates that were given up count as 0, those never tried as inf
    tried = {
        name
        for name in grams
        if all((predict, name, 0) in searched.known for predict in searched.predicts)
    }
    shares = {
        (name, what): 0 if name in tried else np.inf
        for name in grams
        for _, what in choice.shares
    }
    shares |= {
        candidate: np.nanmean(share) for candidate, share in choice.shares.items()
    }
    here = _point(method, choice.gram, choice.parameters)
    points = {candidate: _point(method, *candidate) for candidate in shares}
    found = {}
    for name in limits.keys() & here.keys():
        value = here[name]
        along = {
            point[name]: shares[candidate]
            for candidate, point in points.items()
            if {**point, name: value} == here and point[name] is not None
        }
        values = sorted(along)
        if len(values) < 2 or value not in (values[0], values[-1]):
            continue
        beside = values[1] if value == values[0] else values[-2]
        beyond = float(np.clip(value**2 / beside if beside else 0, *limits[name]))
        if name in ("p", "n_neighbors"):
            beyond = round(beyond)
        if along[value] > along[beside] and (beyond - value) * (value - beside) > 0:
            found[name] = beyond, values
    return found


def _limits(task):
    """{parameter: (least, most)} of the parameters whose grid can be widened."""
    limits = LIMITS | {"n_neighbors": (1, len(task.train))}
    collection = task.inputs.collection
    ranks = [len(rows) for rows in collection.sets or []]  # at most
    p_max = collection.X.shape[2]
    if task.settings.p is None and p_max < MOST_P:
        ranks.append(p_max)  # that of the smallest set
    return limits | ({"p": (1, min(ranks))} if ranks else {})


def _option(method, name, beyond, values, settings):
    """The option to try for a parameter whose end was chosen, "" if none widens it."""
    option = name.removeprefix("n_")
    given = values if name == "p" else getattr(settings, option, None)
    ours = method.predict is not None and given is not None
    if not ours or sorted(given) != values:
        return ""
    return f"--{option} {' '.join(f'{v:g}' for v in sorted([*values, beyond]))}"
