"""Compare methods on a collection of sets, over several splits into train and test.

In each split lambda, the neighbours, C, p and the kernel, linear or Gaussian, are
chosen by cross-validation on the training part alone. Two more rows are votes of all
candidates, weighted by their accuracy in cross-validation. examples.classify and
examples.paper_experiments use it.
"""

import itertools
import re
import sys
import time
import warnings
from collections import Counter, namedtuple

import numpy as np

try:
    from sklearn import config_context
    from sklearn.base import BaseEstimator, ClassifierMixin, clone
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.metrics import f1_score
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from threadpoolctl import threadpool_limits  # scikit-learn needs it
except ImportError as error:
    sys.exit(f"the examples need scikit-learn ({error}): pip install scikit-learn")

import grassmann_sc as core
from examples import first_tries
from examples.clips import clip_names, printable, say
from examples.options import MOST_P
from examples.own import own
from grassmann_sc import estimators, files, kernels, tuning

# penalties of the ridge classifier on codes of unit variance
RIDGE = [0.1, 1, 10, 100, 1000]
N_FOLDS = 5
MOST_REPEATS = 5
# cross-validation on fewer sets is repeated, at most MOST_REPEATS times
MANY = 600
N_GAMMAS = 7
SURE_OF_RECIPE = 2  # standard errors by which a recipe must be better than the first
PART = 0.6  # of the seconds that all candidates on all folds would take
WORTH_SAYING = 10  # seconds to go
BECAUSE = 3  # sets named as what explains another
SOFT = 0.01  # a voter whose accuracy is lower by this has 1 / e of the weight
LIMITS = {
    "C": (0, np.inf),
    "lam": (0, 0.9),
    "n_neighbors": (1, np.inf),
    "reg": (0, np.inf),
    "p": (1, np.inf),
}  # of the parameters whose grid can be widened

# reads: the input that a method takes. Its best candidate is searched among "gram", the
# projection kernel of every p, or "kernels", these and the Gram matrices of Gaussian
# kernels, or {(kernel, number): matrix} that a function gives: predict of tuning.Search
# takes their blocks. Of the matrices of a function, grid names the number. An estimator
# takes "subspaces" (n, d, p), "sets" of rows or "videos"; its grid is searched, whose
# first parameter is the one that has neighbours. p in the grid is that of "subspaces".
Method = namedtuple("Method", "name reads estimator grid predict", defaults=[None])

# A method on a split. estimator: fitted; queries: what it was given of the test part;
# predicted: labels (n_test,); chosen: {parameter: value}; left_out: {candidate: why};
# ends: {parameter: option to try} of the choices at an end of their grid; score: the
# share that is right in cross-validation; failed: why there is none of these, or None;
# warned: the warnings of candidates.
Outcome = namedtuple(
    "Outcome",
    "method estimator queries predicted chosen left_out ends score "
    "failed seconds warned",
    defaults=[None, None, None, {}, {}, {}, 0.0, None, 0.0, ()],
)

# After each method on a split. results: {method: [{accuracy, balanced, f1, seconds,
# chosen, predicted, failed, left_out, ends, warned, reasons}, ...], one for each split
# so far}; if the method failed, the first three are NaN and predicted is None. reasons:
# {wrong test set: [(labelled set, share), ...]} of coding methods, else None. fitted:
# [(name, estimator, queries), ...] of this split; train, test: its parts.
Progress = namedtuple("Progress", "results train test fitted")

# What a split will take. total: seconds of all methods; spent: {name: seconds of its
# first fold, with what later folds and splits share}; known: what was computed.
Measured = namedtuple("Measured", "total spent known")

# What methods are evaluated on. once: the folds without repeats; known: all that the
# searches of a split computed, those of estimators by the name of their method; raced:
# {predict: the recipe that won}.
Task = namedtuple("Task", "inputs label train test settings once known raced")


# --------------------------------------------------------- methods and their evaluation

PEERS = "vote of nearest subspaces and SVMs"
OURS = "vote of the coding methods"


def tried_first(settings):
    """The Methods that a user would try first."""
    svm = first_tries.FramesSVM()
    for name, kind in (
        ("frames: SVM, mean of their scores", "frames"),
        ("mean frame: SVM", "mean"),
        ("mean and standard deviation: SVM", "moments"),
    ):
        yield Method(name, kind, svm, {}, first_tries.predictions(settings.C))


def is_tried_first(method):
    return isinstance(method.reads, str) and method.reads in first_tries.FEATURES


def methods(n_train, smallest, settings):
    """The Methods of the paper and those they are compared with.

    n_train: the number of training sets; smallest: the least number of training sets in
    a fold; settings: examples.options.Settings.
    """
    sparse = tuning.sparse_predictions(settings.lam)
    local = tuning.local_predictions(settings.neighbors)
    support = svm_predictions(settings.C)
    nearest = tuning.nearest_predictions
    svm = SVC(kernel="precomputed")
    # with one neighbour the code is 1 on the nearest atom
    one = estimators.CodingClassifier(
        "local", n_neighbors=1, rule="max", kernel="precomputed"
    )
    gsc = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")
    glc = estimators.CodingClassifier("local", kernel="precomputed")
    yield Method("nearest subspace", "gram", one, {}, nearest)
    yield Method("SVM on the projection kernel", "gram", svm, {}, support)
    if settings.kernels:
        yield Method(
            "nearest subspace in a kernel's space", "kernels", one, {}, nearest
        )
        yield Method("SVM on a kernel's Gram matrix", "kernels", svm, {}, support)
    yield Method("gSC, labelled sets as atoms", "gram", gsc, {}, sparse)
    yield Method("gLC, labelled sets as atoms", "gram", glc, {}, local)
    if settings.kernels:
        yield Method("kgSC, labelled sets as atoms", "kernels", gsc, {}, sparse)
        yield Method("kgLC, labelled sets as atoms", "kernels", glc, {}, local)
    n_atoms = min(settings.atoms, smallest)
    if n_atoms:
        learning = {
            "n_atoms": n_atoms,
            "max_iter": settings.iterations,
            "random_state": settings.seed,
        }
        sparse = estimators.GrassmannDictionary(lam_scale="max", **learning)
        local = estimators.GrassmannDictionary(coding="local", **learning)
        some = sorted({min(n_atoms, number) for number in settings.neighbors})[:3]
        yield Method(
            f"gSC, {n_atoms} learned atoms, ridge",
            "subspaces",
            on_codes(sparse),
            {"grassmanndictionary__lam": settings.lam[2:6:2] or settings.lam},
        )
        yield Method(
            f"gLC, {n_atoms} learned atoms, ridge",
            "subspaces",
            on_codes(local),
            {"grassmanndictionary__n_neighbors": some},
        )


class Nearest(ClassifierMixin, BaseEstimator):
    """The class of the training set with the largest entry in a row of similarities."""

    def fit(self, K, y):
        self.y_ = y
        self.classes_ = np.unique(y)
        return self

    def predict(self, K):
        return self.y_[core.nearest_atoms(K, 1)[:, 0]]

    def decision_function(self, K):
        """The largest entry (n, n_classes) of each class."""
        return np.stack([K[:, self.y_ == c].max(axis=1) for c in self.classes_], axis=1)


class InKernel(str):
    """The name of a kernel in a table, which knows the kernel."""

    def __new__(cls, kernel):
        gamma = getattr(kernel, "gamma", None)
        words = repr(kernel) if gamma is None else f"gamma {gamma:.2g}"
        name = super().__new__(cls, words)
        name.kernel = kernel
        return name


def slug(name):
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def asked_for(name, first_words):
    """Does the row of this name begin with one of these, if any are asked for?"""
    words = f"{slug(name)}_"
    return first_words is None or any(
        words.startswith(f"{slug(first)}_") for first in first_words
    )


def check_asked(first_words, names):
    """ValueError unless a row of these names begins with each of the words."""
    for first in first_words or []:
        if not any(asked_for(name, [first]) for name in names):
            raise ValueError(
                f"--methods must hold the first words of rows, got {first!r}; the "
                f"rows are: {'; '.join(names)}"
            )


def on_codes(coder, penalties=RIDGE):
    """Codes, each feature divided by its standard deviation, to a ridge classifier."""
    return make_pipeline(coder, StandardScaler(), RidgeClassifierCV(penalties))


def svm_predictions(C):
    """predict for tuning.Search: labels by a support vector machine for each C."""

    def predict(K_dd, K_xd, y):
        found = {}
        # a larger C changes nothing where no multiplier is at its bound
        bounded = True
        for c in sorted(C):
            if bounded:
                svm = SVC(kernel="precomputed", C=c)
                with config_context(assume_finite=True, skip_parameter_validation=True):
                    # checks would take a third of the time
                    labels = svm.fit(K_dd, y).predict(K_xd)
                bounded = np.abs(svm.dual_coef_).max() >= c
            found[("C", c),] = labels
        return found

    return predict


def check_classes(label, where=""):
    """ValueError unless there are two classes among the labels; where: its first words."""
    classes = np.unique(label)
    if len(classes) < 2:
        got = f"one: {classes[0]}" if len(classes) else "none"
        raise ValueError(
            f"{where}methods are chosen on sets of at least two classes, got {got}"
        )


def folds(y, group, seed, repeats=1):
    """[(train, test), ...] for cross-validation on training sets with labels y.

    group: sets of one group stay in one fold if there are two groups or more.
    """
    check_classes(y)
    counts = np.unique(y, return_counts=True)[1]
    if counts.max() < 2:
        raise ValueError(
            "parameters are chosen by cross-validation, which needs two training sets "
            "of a class: every class has one"
        )
    n = max(2, min(N_FOLDS, counts.min()))
    found = []
    for repeat in range(repeats):
        if group is None or len(np.unique(group)) < 2:
            splitter = StratifiedKFold(n, shuffle=True, random_state=seed + repeat)
        else:
            splitter = StratifiedGroupKFold(
                min(n, len(np.unique(group))), shuffle=True, random_state=seed + repeat
            )
        with warnings.catch_warnings():  # kept_together says which classes have one set
            warnings.filterwarnings(
                "ignore", "The least populated class in y has only 1"
            )
            pairs = [*splitter.split(y, y, group)]
        found += [
            (fit, validate)
            for fit, validate in pairs
            if len(validate) and len(np.unique(y[fit])) > 1
        ]
    if not found:
        raise ValueError(
            "parameters are chosen by cross-validation, which needs a fold with two "
            "classes to learn from, got none"
        )
    return found


def folds_of_split(label, group, train, settings):
    """folds of a training part as indices of all sets, and how often they are repeated.

    They are repeated where the training part is small.
    """
    n_repeats = min(MOST_REPEATS, -(-MANY // len(train)))
    group = None if group is None else group[train]
    pairs = folds(label[train], group, settings.seed, n_repeats)
    return [(train[fit], train[validate]) for fit, validate in pairs], n_repeats


def evaluate(
    inputs,
    label,
    group,
    train,
    test,
    methods_of,
    settings,
    smallest=None,
    before=None,
):
    """The Outcome of each method on a split; if one fails, the others go on.

    The last two are votes: of all candidates of the coding methods, and of the other
    methods on Gram matrices. They need a test part. The labels of the test part are not
    used. smallest: the least number of training sets in a fold of any split; None: in
    this split. before: the Measured of this split, whose work is not done again.
    """
    label = label.copy()
    label[test] = label[train[0]]
    repeated, n_repeats = folds_of_split(label, group, train, settings)
    # estimators on sets take seconds a fit: their folds are not repeated
    once = repeated[: len(repeated) // n_repeats]
    if smallest is None:
        smallest = min(len(fit) for fit, _ in repeated)
    before = Measured(0.0, {}, {}) if before is None else before
    known = before.known
    task = Task(inputs, label, train, test, settings, once, known, {})
    # by predict: a method in a kernel's space reuses what was computed without kernel
    searches = {}
    done = []
    rows = list(methods_of(len(train), smallest, settings))
    votes = (
        ((PEERS, r"nearest|SVM|frames|mean"), (OURS, r".*labelled sets as atoms"))
        if len(test)
        else ()
    )
    check_asked(
        settings.methods, [method.name for method in rows] + [name for name, _ in votes]
    )
    for method in rows:
        if not asked_for(method.name, settings.methods):
            continue
        shared = method.predict or method.name
        if shared not in searches:
            if method.predict is None:
                own = known.setdefault(method.name, {})
                searches[shared] = tuning.Search(label, once, fit_and_predict, own)
            else:
                # machines on frames take seconds a fit too
                several = once if is_tried_first(method) else repeated
                searches[shared] = tuning.Search(label, several, method.predict, known)
        outcome = _attempt(method, search, searches[shared], at_of(done, task), task)
        seconds = outcome.seconds + before.spent.get(method.name, 0.0)
        done.append(outcome._replace(seconds=seconds))
        yield done[-1]
    for name, who in votes:
        asked = [
            outcome
            for outcome in done
            if outcome.method.predict and re.match(who, outcome.method.name)
        ]
        voters = [outcome for outcome in asked if outcome.failed is None]
        if not asked or not asked_for(name, settings.methods):
            continue
        if voters:
            voting = Method(name, None, None, {})
            how = (
                (vote, [(row, searches[row.method.predict]) for row in voters], task)
                if settings.seconds is None
                else (vote_of_rows, voters)
            )
            outcome = _attempt(voting, *how)
            seconds = sum(voter.seconds for voter in voters)
            yield outcome._replace(seconds=outcome.seconds + seconds)
        else:
            yield Outcome(
                Method(name, None, None, {}),
                failed=f"no row can vote: {asked[0].failed}",
            )


def _attempt(method, run, *arguments):
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


# Small decompositions end before the other threads of BLAS are awake, and would wait
# for them beside busy processes. The Gram matrices of all frames are large: they use
# threads.
on_one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


@on_one_thread
def vote(method, voters, task):
    """The Outcome of a vote of all candidates of the rows [(Outcome, its Search), ...].

    The weight of each is exp((mean - best) / SOFT) of its mean share in
    cross-validation. Rows of one search vote once.
    """
    by_search = {}
    for row, searched in voters:
        grams = by_search.setdefault(id(searched), (searched, {}))[1]
        grams |= candidates(row.method, task)
    found = []
    for searched, grams in by_search.values():
        found += _answers_of_all(searched, grams, task)
    if not found:
        raise ValueError(next(iter(voters[0][1].left_out.values())))
    return _voted(method, found)


def _answers_of_all(searched, grams, task):
    """[(mean share, labels), ...] of the candidates of a search, the best first."""
    shares = searched.choose(grams).shares
    mean = {candidate: np.nanmean(share) for candidate, share in shares.items()}
    found = {}
    for gram in dict.fromkeys(gram for gram, _ in shares):
        try:
            answers = searched.answers(grams[gram], task.train, task.test)
        except ValueError as error:  # the whole training part or a query cannot have it
            searched.left_out[gram] = str(error)
            continue
        found |= {(gram, parameters): labels for parameters, labels in answers.items()}
    order = sorted(found.keys() & mean.keys(), key=lambda one: [*mean].index(one))
    return [(mean[candidate], found[candidate]) for candidate in order]


def vote_of_rows(method, rows):
    """The Outcome of a vote of what the rows chose, where --seconds is given."""
    return _voted(method, [(row.score, row.predicted) for row in rows])


def _voted(method, voters):
    """The Outcome of voters (mean share, labels)."""
    voters = sorted(voters, key=lambda voter: -voter[0])
    weights = np.exp([(mean - voters[0][0]) / SOFT for mean, _ in voters])
    predicted = tuning.vote([labels for _, labels in voters], weights)
    return Outcome(method, None, None, predicted, {"voters": len(voters)})


def at_of(done, task):
    """The recipe and the p that gSC found best.

    Without gSC, the recipe of the nearest subspace and its largest p.
    """
    for outcome in done:
        if outcome.failed is None and outcome.method.name.startswith("gSC"):
            return outcome.chosen.get("recipe"), outcome.chosen["p"]
    recipe = recipe_for(tuning.nearest_predictions, task)
    return recipe, task.inputs.p[recipe][-1]


def search(method, searched, at, task):
    """The Outcome of the best candidate of a method; searched: its tuning.Search.

    at: the recipe and dimension of the subspaces where the grid has no p.
    """
    inputs = task.inputs
    settings = task.settings
    if method.predict is None:
        grams = _points_of_grid(method, at, task)
    else:
        grams = candidates(method, task)
    choice, estimator, queries, predicted = _best_fit(grams, method, searched, task)
    limits = LIMITS | {"n_neighbors": (1, len(task.train))}
    sets = inputs.collection.sets
    ranks = [len(frames) for frames in ([] if sets is None else sets)]  # at most
    p_max = inputs.collection.X.shape[2]
    if settings.p is None and p_max < MOST_P:
        ranks.append(p_max)  # that of the smallest set
    if ranks:
        limits["p"] = 1, min(ranks)
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
    chosen = _point(method, choice.gram, choice.parameters)
    ends = _ends(method, choice, shares, limits, settings)
    ends |= inputs.end_of_stacks(chosen.get("recipe"))
    return Outcome(
        method,
        estimator,
        queries,
        predicted,
        chosen,
        _left_out(method, choice),
        ends,
        choice.score,
    )


def _best_fit(grams, method, searched, task):
    """(Choice, fitted estimator, queries, their labels) of the best candidate.

    Candidates that the whole training part or a query cannot have are left out.
    """
    while True:
        choice = on_one_thread(searched.choose)(grams, seconds=task.settings.seconds)
        try:
            return choice, *_fitted(choice, grams[choice.gram], method, task)
        except ValueError as error:  # the whole training part or a query cannot have it
            searched.left_out[choice.gram] = str(error)


def _fitted(choice, candidate, method, task):
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
    if method.grid:
        point |= {"kernel": kernel} if kernel else {}
        return point | {next(iter(method.grid)): p}
    point |= {} if p is None else {"p": p}
    point |= {"kernel": kernel} if method.reads == "kernels" else {}
    return point | dict(parameters)


def _ends(method, choice, shares, limits, settings):
    """{parameter: option to try} of the choices at an end of their grid.

    Only those that are within limits and better at the end than beside it count; the
    option is "" where none widens the grid. shares: {candidate: mean share}.
    """
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
        beyond = np.clip(value**2 / beside if beside else 0, *limits[name])
        if name in ("p", "n_neighbors"):
            beyond = round(beyond)
        if along[value] > along[beside] and (beyond - value) * (value - beside) > 0:
            option = name.removeprefix("n_")
            given = values if name == "p" else getattr(settings, option, None)
            ours = (
                method.predict is not None
                and given is not None
                and sorted(given) == values
            )
            wider = " ".join(f"{v:g}" for v in sorted([*values, beyond]))
            found[name] = f"--{option} {wider}" if ours else ""
    return found


def candidates(method, task):
    """{(recipe, kernel, p): Gram matrix (n, n)} from which a method chooses.

    Those in a kernel's space are of few frames of each set.
    """
    if is_tried_first(method):
        recipe = recipe_for("features", task)
        return _features(method.reads, [recipe], task.inputs)
    if callable(method.reads):
        recipe = recipe_for(tuning.nearest_predictions, task)
        return on_one_thread(method.reads)(task.inputs, task.train, recipe)
    recipe = recipe_for(method.predict, task)
    found = _linear(task.inputs, [recipe])
    if method.reads == "kernels":
        found |= _in_kernels(recipe, task)
    return found


def _linear(inputs, recipes):
    return {
        (recipe, "linear", p): inputs.gram[recipe, p]
        for recipe in recipes
        for p in inputs.p[recipe]
    }


def _features(kind, recipes, inputs):
    """{(recipe, None, None): candidate} of rows of features, of first_tries.FEATURES."""
    features = first_tries.FEATURES[kind]
    return {
        (recipe, None, None): first_tries.Features(
            [features(rows) for rows in inputs.sets(recipe)]
        )
        for recipe in recipes
    }


def recipe_for(predict, task):
    """The recipe of a method: the best in a race of all recipes.

    The race is a search over the projection kernels of all recipes, without repeated
    folds; where predict is "features", over the mean frames of those that are not
    centred, whose mean is not 0. The first recipe stays unless another is better by
    more than SURE_OF_RECIPE
    standard errors of the difference: with few training sets the best of many recipes
    is often a lucky one.
    """
    inputs = task.inputs
    names = inputs.names
    if predict == "features":
        names = inputs.uncentred
    first = names[0]
    if len(names) > 1 and predict not in task.raced:
        if predict == "features":
            grams = _features("mean", names, inputs)
            asked = first_tries.predictions(task.settings.C)
        else:
            grams = _linear(inputs, names)
            asked = predict
        race = tuning.Search(task.label, task.once, asked, task.known)
        seconds = task.settings.seconds
        choice = on_one_thread(race.choose)(grams, seconds=seconds)
        alike = tuning.alike(choice.shares, SURE_OF_RECIPE)
        good = [recipe for (recipe, *_), _ in alike]
        task.raced[predict] = first if first in good else choice.gram[0]
    return task.raced.get(predict, first)


def _in_kernels(recipe, task):
    """{(recipe, InKernel, p): Gram matrix (n, n)} of one recipe.

    Of Gaussian kernels, or of the user's own.
    """
    inputs = task.inputs
    sets = inputs.few(recipe)
    if task.settings.kernel is not None:
        grid = [own(task.settings.kernel)]
    else:
        try:
            gammas = kernels.gamma_grid([sets[i] for i in task.train], N_GAMMAS)
        except ValueError as error:
            why = tuning.Absent(str(error))
            return {(recipe, "Gaussian", inputs.p[recipe][0]): why}
        grid = [kernels.rbf(float(gamma)) for gamma in gammas]
    inputs.compute_kernels(recipe, grid, task.settings.seconds)
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


def _points_of_grid(method, at, task):
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


def measured(inputs, label, group, train, methods_of, settings, smallest):
    """The Measured of a split: each method on the first fold of its training part."""
    pairs, n_repeats = folds_of_split(label, group, train, settings)
    known = {}
    spent = {}
    expected = []
    task = Task(inputs, label, train, train[:0], settings, pairs[:1], known, {})
    for method in methods_of(len(train), smallest, settings):
        if asked_for(method.name, settings.methods):
            once = len(pairs) // n_repeats
            several = method.predict is not None and not is_tried_first(method)
            n_folds = len(pairs) if several else once
            outcome = _attempt(method, _first_fold, once, n_folds, task)
            spent[method.name] = outcome.seconds
            most = np.inf if settings.seconds is None else settings.seconds
            expected.append(min(outcome.score, most))
    return Measured(sum(expected), spent, known)


def _first_fold(method, once, n_folds, task):
    """An Outcome whose score is the seconds that all folds of a split will take.

    once: the number of folds in the race of recipes.
    """
    made = method.predict is None
    start = time.perf_counter()
    reads_rows = is_tried_first(method)
    race = "features" if reads_rows else method.predict or tuning.nearest_predictions
    recipe = recipe_for(race, task)
    raced = time.perf_counter() - start
    at = recipe, task.inputs.p[recipe][-1]
    grams = _points_of_grid(method, at, task) if made else candidates(method, task)
    start = time.perf_counter()
    predict = fit_and_predict if made else method.predict
    known = task.known.setdefault(method.name, {}) if made else task.known
    one = tuning.Search(task.label, task.once, predict, known)
    on_one_thread(one.choose)(grams, seconds=task.settings.seconds)
    each = time.perf_counter() - start
    return Outcome(method, score=PART * (n_folds * each + once * raced))


def run_splits(collection, inputs, pairs, methods_of, settings):
    """Evaluate all methods on all splits; gives the Progress after each method."""
    label = files.labels_to_keep(collection.label, len(collection.label), "sets")
    classes, label = np.unique(label, return_inverse=True)
    pairs = tuning.check_splits(pairs, len(label))
    few = collection.X[:2]  # compile first: the table shows the time of the methods
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    results = {}
    groups = say_kept_together(collection, pairs)
    # the same number of learned atoms in all splits, because a row is one method
    smallest = min(
        len(fit)
        for (train, _), group in zip(pairs, groups)
        for fit, _ in folds_of_split(label, group, train, settings)[0]
    )
    first = measured(
        inputs, label, groups[0], pairs[0].train, methods_of, settings, smallest
    )
    began = time.perf_counter()
    for i, (train, test) in enumerate(pairs):
        each = (time.perf_counter() - began) / i if i else first.total
        to_go = each * (len(pairs) - i)
        if to_go > WORTH_SAYING:
            say(f"about {in_words(to_go)} to go")
        fitted = []
        before = None if i else first
        for outcome in evaluate(
            inputs,
            label,
            groups[i],
            train,
            test,
            methods_of,
            settings,
            smallest,
            before,
        ):
            name = outcome.method.name
            shares = dict.fromkeys(("accuracy", "balanced", "f1"), np.nan)
            predicted = None
            if outcome.failed is None:
                predicted = classes[outcome.predicted]
                shares = shares_of(label[test], outcome.predicted)
                if name not in (PEERS, OURS):
                    fitted.append((name, outcome.estimator, outcome.queries))
            failed = outcome.failed and printable(outcome.failed)
            results.setdefault(name, []).append(
                {
                    **shares,
                    "seconds": outcome.seconds,
                    "chosen": outcome.chosen,
                    "predicted": predicted,
                    "failed": failed,
                    "left_out": outcome.left_out,
                    "ends": outcome.ends,
                    "warned": outcome.warned,
                    "reasons": _reasons_of_wrong(outcome, label, train, test),
                }
            )
            what = f"failed: {failed}" if failed else told(outcome.chosen)
            say(
                f"split {i + 1} of {len(pairs)}: {shares['accuracy']:5.1f}  {name}  "
                f"{what}"
            )
            yield Progress(results, train, test, fitted)


def of_class(shares, index, places):
    """What speaks for the class places[i] of each query i: [[(set, share), ...], ...].

    The sets of the largest positive ones of the core's Shares, at most BECAUSE; index
    (N,): the classes of the labelled sets.
    """
    found = []
    for indices, values, place in zip(*shares, places):
        mine = (indices >= 0) & (index[indices] == place) & (values > 0)
        pairs = zip(indices[mine].tolist(), values[mine].tolist())
        found.append([*pairs][:BECAUSE])
    return found


def _reasons_of_wrong(outcome, label, train, test):
    """What speaks for the wrong answers of a coding method, as of_class; or None."""
    estimator = outcome.estimator
    if not isinstance(estimator, estimators.CodingClassifier):
        return None
    wrong = np.flatnonzero(outcome.predicted != label[test])
    if not len(wrong):
        return {}
    places = np.searchsorted(estimator.classes_, outcome.predicted[wrong])
    shares = estimator.explain(outcome.queries[wrong])
    found = of_class(shares, estimator.index_, places)
    of_all = [[(int(train[i]), share) for i, share in one] for one in found]
    return dict(zip(test[wrong].tolist(), of_all))


def in_words(seconds):
    """A duration as one number.

    >>> in_words(40.2), in_words(150)
    ('40 s', '2 min')
    """
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def shares_of(truth, predicted):
    """In %: accuracy, its mean over the true classes, and the mean F1 over all."""
    of_class = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    return {
        "accuracy": 100 * np.mean(predicted == truth),
        "balanced": 100 * np.mean(of_class),
        "f1": 100 * f1_score(truth, predicted, average="macro", zero_division=0),
    }


def successes(found):
    """The splits on which a method did not fail."""
    return [split for split in found if split["failed"] is None]


def say_kept_together(collection, pairs):
    """Groups for the cross-validation of each split; says what the user should know.

    Each message is said once, with the splits that it holds for.
    """
    kept = [kept_together(collection, split) for split in pairs]
    splits_of = {}
    for i, (_, reasons) in enumerate(kept, 1):
        for why in reasons:
            splits_of.setdefault(why, []).append(i)
    for why, numbers in splits_of.items():
        which = f"split {numbers[0]} of {len(pairs)}"
        if len(numbers) > 1:
            which = f"{len(numbers)} of {len(pairs)} splits"
        say(f"{which}: {why}" if len(pairs) > 1 else why)
    return [of_set for of_set, _ in kept]


def kept_together(collection, split):
    """(What cross-validation on a training part keeps together (n,), messages).

    It keeps groups together, else the sets of each clip, else None. The messages say
    why it does not keep groups or clips together, and which classes it cannot judge.
    """
    reasons = []
    label = collection.label[split.train].tolist()
    clips = None
    if collection.clip is not None and len(np.unique(collection.clip)) < len(
        collection.clip
    ):
        clips = np.array(clip_names(collection.names, collection.clip))
    for kind, of_set in (("group", collection.group), ("clip", clips)):
        if of_set is None:
            continue
        torn = tuning.shared_groups(split, of_set)
        alone = _classes_of_one(label, of_set[split.train].tolist())
        if len(torn):
            reasons.append(
                f"{kind} {torn[0]} has sets in both parts, {len(torn)} in all have: "
                f"cross-validation does not keep a {kind} together"
            )
        elif len(alone) == len({*label}):
            reasons.append(
                f"no class has two {kind}s to train: cross-validation does not keep a "
                f"{kind} together"
            )
        else:
            return of_set, reasons + _said_of_one(alone, label, kind)
    alone = _classes_of_one(label, range(len(label)))
    return None, reasons + _said_of_one(alone, label, "set")


def _classes_of_one(label, unit):
    """The classes of which all sets belong to one unit."""
    counts = Counter(c for c, _ in {*zip(label, unit)})
    return sorted(
        (c for c, count in counts.items() if count == 1), key=core.natural_order
    )


def _said_of_one(alone, label, kind):
    """The message on classes with one group, clip or set to train."""
    n_classes = len({*label})
    if len(alone) in (0, n_classes):  # if all have one, folds raises
        return []
    who = (
        f"class {alone[0]} has"
        if len(alone) == 1
        else (f"{len(alone)} of {n_classes} classes, {alone[0]} the first, have")
    )
    whom = "it" if len(alone) == 1 else "them"
    return [
        f"{who} one {kind} to train: cross-validation, which needs two, tells nothing of "
        f"{whom}"
    ]


def told(chosen):
    """Chosen parameters in words."""
    return ", ".join(
        value if isinstance(value, str) else f"{name} {_number(value)}"
        for name, value in chosen.items()
        if value is not None
    )


def _number(value):
    return f"{value:g}" if np.isscalar(value) else str(value)
