"""What a row chooses from: Gram matrices of recipes, kernels and dimensions, or a grid."""

import itertools
import math
import time
from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits  # scikit-learn needs it

from grassmann_classify import first_tries
from grassmann_classify.rows import InKernel, is_tried_first
from grassmann_classify.sets import LOW
from grassmann_sc import kernels, tuning

N_GAMMAS = 7
WEIGHTED = "weighted"  # in place of "linear": the number is a spectrum instead of p
GROWN = 2  # times that a grid grows whose end was chosen
SURE_OF_RECIPE = 2  # standard errors by which a recipe must be better than the first
# Small decompositions end before the other threads of BLAS are awake, and would wait
# for them beside busy processes. The Gram matrices of all frames are large: they use
# threads.
on_one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


@dataclass
class Task:
    """What methods are evaluated on, and what they share there.

    once: the folds without repeats; known: all that the searches of a split computed,
    those of estimators by the name of their method; raced: {predict: the recipe that
    won}; coding: predict of all coding rows, which race as one; grown: {recipe: spectra
    beyond those that are asked for}; grids: {recipe: kernels to choose from}; perfect:
    predict of the searches whose linear candidates have every training set right; end:
    the time.perf_counter() from which searches begin nothing more.
    """

    inputs: object
    label: np.ndarray
    train: np.ndarray
    test: np.ndarray
    settings: object
    once: list
    known: dict = field(default_factory=dict)
    raced: dict = field(default_factory=dict)
    coding: tuple = ()
    grown: dict = field(default_factory=dict)
    grids: dict = field(default_factory=dict)
    perfect: set = field(default_factory=set)
    end: float = math.inf

    @property
    def seconds(self):
        """What is left of the time; None where it is not bounded."""
        if self.end == math.inf:
            return None
        return max(0.0, self.end - time.perf_counter())


def candidates(method, task):
    """{(recipe, kernel, p): Gram matrix (n, n)} from which a method chooses.

    Those in a kernel's space are of few frames of each set.
    """
    if is_tried_first(method):
        recipe = recipe_for("features", task)
        return features_of(method.reads, [recipe], task.inputs)
    if callable(method.reads):
        recipe = recipe_for(tuning.nearest_predictions, task)
        return on_one_thread(method.reads)(task.inputs, task.train, recipe)
    found = linear_candidates(method, task)
    if method.reads == "kernels" and method.predict not in task.perfect:
        found |= _in_kernels(recipe_for(method.predict, task), task)
    return found


def linear_candidates(method, task):
    """Those of candidates on the projection kernel."""
    recipe = recipe_for(method.predict, task)
    return _linear(task.inputs, [recipe], task.grown.get(recipe, ()))


def _linear(inputs, recipes, grown=()):
    found = {}
    inputs.fill(recipes)
    for recipe in recipes:
        found |= {
            (recipe, "linear", p): inputs.gram[recipe, p]
            for p in inputs.dimensions(recipe)
        }
        found |= {
            (recipe, WEIGHTED, spectrum): inputs.weighted_gram(recipe, spectrum)
            for spectrum in sorted([*inputs.spectra(recipe), *grown])
        }
    return found


def is_weighted(name):
    """Is the candidate of this name of weighted subspaces?"""
    return name[1:2] == (WEIGHTED,)


def features_of(kind, recipes, inputs):
    """{(recipe, None, None): candidate} of rows of features, of first_tries.FEATURES."""
    return {
        (recipe, None, None): first_tries.Features(inputs.features(kind, recipe))
        for recipe in recipes
    }


def recipe_for(predict, task):
    """The recipe of a method: the best in a race of all recipes.

    The race is a search over the projection kernels of all recipes, without repeated
    folds, in which all coding rows run as one; where predict is "features", over the
    mean frames of those that are not centred, whose mean is not 0. The first recipe
    stays unless another is better by more than SURE_OF_RECIPE standard errors of the
    difference: with few training sets the best of many recipes is often a lucky one. A
    winner that stacks most frames runs against one that stacks twice as many, at most
    GROWN times. After the end of the task no race begins.
    """
    inputs = task.inputs
    names = inputs.uncentred if predict == "features" else inputs.names
    key = task.coding if predict in task.coding else predict
    if len(names) > 1 and key not in task.raced and task.seconds != 0:
        best = _faster(names, predict, task)
        for _ in range(GROWN):
            if predict == "features" or getattr(task.settings, "stack", None):
                break
            more = inputs.stacked_twice(best)
            if more is None or _faster([best, more], predict, task) == best:
                break
            best = more
        task.raced[key] = best
    return task.raced.get(key, names[0])


def _faster(names, predict, task):
    """The recipe that wins the race of these, the first unless another is surely better."""
    inputs = task.inputs
    if predict == "features":
        grams = features_of("mean", names, inputs)
        asked = first_tries.predictions(task.settings.C)
    else:
        asked = task.coding if predict in task.coding else predict
        grams = _linear(inputs, _promising(names, task))
    race = tuning.Search(task.label, task.once, asked, task.known)
    choice = on_one_thread(race.choose)(grams, seconds=task.seconds)
    alike = tuning.alike(choice.shares, SURE_OF_RECIPE)
    good = [recipe for (recipe, *_), _ in alike]
    return names[0] if names[0] in good else choice.gram[0]


def _promising(names, task):
    """Of many sets, the recipes that no other beats on the first fold by more than chance.

    This is told by the nearest subspaces, of p up to LOW. The first recipe stays.
    """
    inputs = task.inputs
    if not inputs.many or len(names) < 3:
        return names
    grams = {
        (name, "linear", p): inputs.gram[name, p]
        for name in names
        for p in inputs.p[name]
        if p <= max(LOW, min(inputs.p[name])) and (name, p) in inputs.gram
    }
    nearest = tuning.nearest_predictions
    race = tuning.Search(task.label, task.once[:1], nearest, task.known)
    shares = on_one_thread(race.choose)(grams, seconds=task.seconds).shares
    stay = {names[0], *(name for (name, *_), _ in shares)}
    return [name for name in names if name in stay]


def _in_kernels(recipe, task):
    """{(recipe, InKernel, p): Gram matrix (n, n)} of one recipe.

    Of Gaussian kernels, or of the user's own.
    """
    inputs = task.inputs
    if recipe not in task.grids:
        try:
            task.grids[recipe] = _grid(recipe, task)
        except ValueError as error:
            why = tuning.Absent(str(error))
            return {(recipe, "Gaussian", inputs.p[recipe][0]): why}
    grid = task.grids[recipe]
    inputs.compute_kernels(recipe, grid, task.seconds)
    found = {}
    for kernel in grid:
        K, why = inputs.kernels[recipe, kernel]
        dimensions = inputs.p[recipe]
        if task.settings.p is None and len(K):
            dimensions = tuning.dimensions(len(K))
        for p in dimensions:
            matrix = K[p - 1] if p <= len(K) else tuning.Absent(why)
            found[recipe, InKernel(kernel), p] = matrix
    return found


def _grid(recipe, task):
    """The kernels to choose from: the user's own, or Gaussian ones."""
    if task.settings.kernel is not None:
        return [task.settings.kernel]
    sets = task.inputs.few(recipe, short=True)
    gammas = kernels.gamma_grid([sets[i] for i in task.train], N_GAMMAS)
    return [kernels.rbf(float(gamma)) for gamma in gammas]


class Fits:
    """A candidate of tuning.Search: an estimator that learns from sets.

    made: {training sets: what estimators made of these}, for all points of a grid.
    """

    def __init__(self, estimator, sets, made):
        self.estimator = estimator
        self.sets = sets
        self.made = made

    def parts(self, train, asked):
        """The estimator, the sets to learn from and the sets asked."""
        training = train.tobytes()
        # all points of the grid take one fold before the next: forget the last fold
        if training not in self.made:
            self.made.clear()
        estimator = clone(self.estimator)
        estimator.made = self.made.setdefault(training, {})
        if isinstance(self.sets, np.ndarray):
            return estimator, self.sets[train], self.sets[asked]
        return estimator, *([self.sets[i] for i in part] for part in (train, asked))


def fit_and_predict(estimator, sets, queries, y):
    """predict for tuning.Search: labels by the estimator of Fits."""
    return {(): estimator.fit(sets, y).predict(queries)}


def at_of(done, task):
    """The recipe and the p that gSC found best, the best p where it took a spectrum.

    Without gSC, the recipe of the nearest subspace and its largest p.
    """
    for outcome in done:
        if outcome.failed is None and outcome.method.name.startswith("gSC"):
            return outcome.chosen.get("recipe"), outcome.chosen.get("p", outcome.p)
    recipe = recipe_for(tuning.nearest_predictions, task)
    return recipe, task.inputs.p[recipe][-1]


def points_of_grid(method, at, task):
    """{(*other parameters, first parameter): Fits} of the points of a method's grid.

    at: the recipe and dimension of the subspaces where the grid has no p.
    """
    inputs = task.inputs
    if method.reads == "videos":
        return _points(method, inputs.videos, None)
    recipe, p = at
    if method.reads == "sets" or "p" in method.grid:
        recipe = recipe_for(tuning.nearest_predictions, task)
    found = _points(method, getattr(inputs, method.reads)(recipe), p)
    if recipe is None:
        return found
    return {(("recipe", recipe), *point): fits for point, fits in found.items()}


def _points(method, sets, p):
    """The points of a grid on subspaces (n, d, p), sets of rows, or videos."""
    grid = method.grid
    if method.reads == "subspaces":
        grid = {"p": [p], **grid}
        of_dimension = {
            q: (np.ascontiguousarray(sets[:, :, :q]), {}) for q in grid["p"]
        }
    made = {}
    found = {}
    for values in itertools.product(*grid.values()):
        first, *others = zip(grid, values)
        point = dict(zip(grid, values))
        of_point = sets
        if method.reads == "subspaces":
            q = point.pop("p")
            of_point, made = of_dimension[q]
            if of_point.shape[2] < q:
                why = f"a set has rank {of_point.shape[2]}"
                found[(*others, first)] = tuning.Absent(why)
                continue
        estimator = clone(method.estimator).set_params(**point)
        found[(*others, first)] = Fits(estimator, of_point, made)
    return found
