"""Methods compared on a collection of sets: what they are, how their parameters are
chosen, splits.

In each split lambda, the neighbours, C, p and the kernel, linear or Gaussian, are
chosen by cross-validation on the training part alone. In two more rows all candidates
vote, weighted by their accuracy in cross-validation. examples.classify and
examples.paper_experiments ask for it.
"""

import itertools
import math
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
from examples.clips import clip_names, printable, say
from examples.options import MOST_P
from grassmann_sc import estimators, files, kernels, tuning

# penalties of the ridge classifier on codes of unit variance
RIDGE = [0.1, 1, 10, 100, 1000]
N_FOLDS = 5
MOST_REPEATS = 5
# so many validated sets make one cross-validation sure enough; of fewer it is repeated
MANY = 600
N_GAMMAS = 7
SOFT = 0.01  # of accuracy in cross-validation, by which a voter's weight falls to 1 / e
LIMITS = {
    "C": (0, np.inf),
    "lam": (0, 0.9),
    "n_neighbors": (1, np.inf),
    "reg": (0, np.inf),
    "p": (1, np.inf),
}  # of parameters whose grid could go on

# reads names what is searched for the best input: "gram", the projection kernel of
# every p; "kernels", that and those of Gaussian kernels, or what a function gives, for
# predict of tuning.Search. "subspaces" (n, d, p), "sets" of rows or "videos" go to the
# estimator, whose grid searched, the first of its parameters in order; p of "subspaces"
# is theirs. Of a function's matrices the grid names the number in (kernel, number).
Method = namedtuple("Method", "name reads estimator grid predict", defaults=[None])

# A method on a split: the fitted estimator and what it was given of the test part, the
# predicted labels (n_test,) and what was chosen; left_out: {candidate: why}; ends:
# {parameter: what to try} of the choices at the end of their grid; score: the share
# that is right in cross-validation; failed: why there is none of these, or None;
# seconds; warned: what candidates warned of.
Outcome = namedtuple(
    "Outcome",
    "method estimator queries predicted chosen left_out ends score "
    "failed seconds warned",
    defaults=[None, None, None, {}, {}, {}, 0.0, None, 0.0, ()],
)

# After a method of a split. results: {method: [{accuracy, balanced, f1, seconds,
# chosen, predicted, failed, left_out, ends, warned}, ...] of each split so far}; of one
# that failed the first three are NaN, predicted None. fitted: [(name, estimator,
# queries), ...] of the methods fitted on this split, of train and test.
Progress = namedtuple("Progress", "results train test fitted")

# All inputs of the methods. gram (p_max, n, n): the projection kernel of each p; p:
# those that are searched; kernels: {gamma: (p, n, n) in its feature space}, as they are
# asked for. hulls: the same for the distances of examples.baselines. videos: clips
# (n_frames, height, width).
Inputs = namedtuple(
    "Inputs", "sets subspaces gram p kernels hulls videos", defaults=[None]
)


def inputs_of(collection, dimensions=None):
    """The Inputs of a Collection; dimensions: the p to search, all that its subspaces
    hold.
    """
    gram = core.projection_kernel(collection.X, each_p=True)
    if dimensions is None:
        dimensions = tuning.dimensions(len(gram))
    some = [p for p in dimensions if p <= len(gram)]
    if not some:
        raise ValueError(
            f"--p must hold a dimension up to {len(gram)}, that of the smallest set; "
            f"got {dimensions}"
        )
    return Inputs(collection.sets, collection.X, gram, some, {}, {})


# --------------------------------------------------------- methods and their evaluation

PEERS = "vote of nearest subspaces and SVMs"
OURS = "vote of the coding methods"


def methods(n_train, smallest, settings):
    """The Methods of the paper and their peers, for n_train training sets and at least
    so many in the training part of a fold; settings: examples.options.Settings.
    """
    sparse = tuning.sparse_predictions(settings.lam)
    local = tuning.local_predictions(settings.neighbors)
    support = svm_predictions(settings.C)
    nearest = tuning.nearest_predictions
    svm = SVC(kernel="precomputed")
    one = estimators.CodingClassifier(
        "local", n_neighbors=1, rule="max", kernel="precomputed"
    )
    gsc = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")
    glc = estimators.CodingClassifier("local", kernel="precomputed")
    # the code is 1 on the nearest atom
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
    """The class of the training set of the largest entry, in rows of any measure of
    nearness.
    """

    def fit(self, K, y):
        self.y_ = y
        self.classes_ = np.unique(y)
        return self

    def predict(self, K):
        return self.y_[core.nearest_atoms(K, 1)[:, 0]]

    def decision_function(self, K):
        """The largest entry (n, n_classes) of each class."""
        return np.stack([K[:, self.y_ == c].max(axis=1) for c in self.classes_], axis=1)


class Gaussian(str):
    """The name of a Gaussian kernel in a table, which knows its gamma."""

    def __new__(cls, gamma):
        name = super().__new__(cls, f"gamma {gamma:.2g}")
        name.gamma = float(gamma)
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
        # is a multiplier at its bound? if none is, a larger C changes nothing
        bounded = True
        for c in sorted(C):
            if bounded:
                svm = SVC(kernel="precomputed", C=c)
                with config_context(assume_finite=True, skip_parameter_validation=True):
                    # small: checks took a third
                    labels = svm.fit(K_dd, y).predict(K_xd)
                bounded = np.abs(svm.dual_coef_).max() >= c
            found[("C", c),] = labels
        return found

    return predict


def check_classes(label):
    """ValueError unless there are two classes among the labels."""
    classes = np.unique(label)
    if len(classes) < 2:
        got = f"one: {classes[0]}" if len(classes) else "none"
        raise ValueError(
            f"methods are chosen on sets of at least two classes, got {got}"
        )


def folds(y, group, seed, repeats=1):
    """[(train, test), ...] for cross-validation on training sets with labels y, groups
    kept together if there are several.
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
    """folds of a training part as indices of all sets, repeated where it is small, and
    how often they are.
    """
    n_repeats = min(MOST_REPEATS, -(-MANY // len(train)))
    group = None if group is None else group[train]
    pairs = folds(label[train], group, settings.seed, n_repeats)
    return [(train[fit], train[validate]) for fit, validate in pairs], n_repeats


def evaluate(inputs, label, group, train, test, methods_of, settings, smallest=None):
    """The Outcome of each method on a split; one that fails does not keep the others
    from it.

    At last those of two votes, of all candidates of the coding methods, and of the
    others on Gram matrices, where there is a test part. No label of that goes any
    further than here. smallest: so many training sets each fold has at least, in this
    split unless it is given.
    """
    label = label.copy()
    label[test] = label[train[0]]
    repeated, n_repeats = folds_of_split(label, group, train, settings)
    # for estimators on sets: seconds a fit
    once = repeated[: len(repeated) // n_repeats]
    if smallest is None:
        smallest = min(len(fit) for fit, _ in repeated)
    split = inputs, label, train, test, settings
    # by predict, so that a method in a kernel's space knows what is known without
    searches = {}
    known = {}  # what the votes take from these
    done = []
    rows = list(methods_of(len(train), smallest, settings))
    votes = (
        ((PEERS, r"nearest|SVM"), (OURS, r".*labelled sets as atoms"))
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
            searches[shared] = (
                tuning.Search(label, repeated, method.predict, known)
                if method.predict
                else tuning.Search(label, once, fit_and_predict)
            )
        done.append(
            _attempt(method, search, searches[shared], p_of(done, inputs), split)
        )
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
            predicts = dict.fromkeys(outcome.method.predict for outcome in voters)
            searched = tuning.Search(label, repeated, [*predicts], known)
            reads = dict.fromkeys(outcome.method.reads for outcome in voters)
            voting = Method(name, [*reads], None, {})
            how = (
                (vote, searched, split)
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
    """The Outcome that run(method, *arguments) gives, and its seconds; if it fails,
    why.
    """
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # as in faces: legal, and SVC repeats it
        warnings.filterwarnings(
            "ignore", "The number of unique classes is greater than 50%"
        )
        try:
            outcome = run(method, *arguments)
        except Exception as error:
            outcome = Outcome(method, failed=str(error) or type(error).__name__)
    warned = tuple(dict.fromkeys(printable(warning.message) for warning in caught))
    return outcome._replace(seconds=time.perf_counter() - start, warned=warned)


# Small decompositions are over before BLAS' other threads are awake, and beside busy
# processes they wait for them. Not for Gram matrices of all frames, which are large.
on_one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


@on_one_thread
def vote(method, searched, split):
    """The Outcome of the candidates of one search over all of them, each with the
    weight exp((mean - best) / SOFT) of its mean share in that search.
    """
    inputs, label, train, test, settings = split
    grams = {}
    for reads in method.reads:
        grams |= candidates(inputs, reads, train, settings)
    shares = searched.choose(grams).shares
    mean = {candidate: np.nanmean(share) for candidate, share in shares.items()}
    labels = {}
    for gram in dict.fromkeys(
        gram for gram, _ in sorted(mean, key=mean.get, reverse=True)
    ):
        try:
            answers = searched.answers(grams[gram], train, test)
        except ValueError as error:  # the whole training part or a query cannot have it
            searched.left_out[gram] = str(error)
            continue
        labels |= {
            (gram, parameters): found
            for parameters, found in answers.items()
            if (gram, parameters) in mean
        }
    if not labels:
        raise ValueError(next(iter(searched.left_out.values())))
    return _voted(
        method, [(mean[candidate], labels[candidate]) for candidate in labels]
    )


def vote_of_rows(method, rows):
    """The same of what rows chose and answered, where --seconds leave no time to ask
    others.
    """
    return _voted(method, [(row.score, row.predicted) for row in rows])


def _voted(method, voters):
    """The Outcome of voters (mean share, labels)."""
    voters = sorted(voters, key=lambda voter: -voter[0])
    weights = np.exp([(mean - voters[0][0]) / SOFT for mean, _ in voters])
    predicted = tuning.vote([labels for _, labels in voters], weights)
    return Outcome(method, None, None, predicted, {"voters": len(voters)})


def p_of(done, inputs):
    """The p that gSC found best; without gSC, the largest."""
    return next(
        (
            outcome.chosen["p"]
            for outcome in done
            if outcome.failed is None and outcome.method.name.startswith("gSC")
        ),
        inputs.p[-1],
    )


def search(method, searched, p, split):
    """The Outcome of the best candidate of a method that all parts of a split can have;
    searched: its tuning.Search; p: of subspaces, if the grid has none.
    """
    inputs, label, train, test, settings = split
    if method.predict is None:
        grams = _points_of_grid(method, inputs, p)
    else:
        grams = candidates(inputs, method.reads, train, settings)
    choice, estimator, queries, predicted = _best_fit(grams, method, searched, split)
    limits = LIMITS | {"n_neighbors": (1, len(train))}
    ranks = [len(frames) for frames in inputs.sets or []]  # at most
    if settings.p is None and len(inputs.gram) < MOST_P:
        ranks.append(len(inputs.gram))  # that of the smallest set
    if ranks:
        limits["p"] = 1, min(ranks)
    # given up, or never tried
    shares = {
        (name, what): 0 if searched.knows(name, 0) else np.inf
        for name in grams
        for _, what in choice.shares
    }
    shares |= {
        candidate: np.nanmean(share) for candidate, share in choice.shares.items()
    }
    ends = _ends(method, choice, shares, limits, settings)
    chosen = _point(method, choice.gram, choice.parameters)
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


@on_one_thread
def _best_fit(grams, method, searched, split):
    """The Choice among grams that all parts can have, its estimator, queries and their
    labels.
    """
    _, label, train, test, settings = split
    while True:
        choice = searched.choose(grams, seconds=settings.seconds)
        try:
            if method.predict is None:
                made, known, queries = grams[choice.gram].parts(train, test)
                estimator = clone(made)
            else:
                known, queries = tuning.Gram(grams[choice.gram]).parts(train, test)
                found = dict(choice.parameters)
                if "n_neighbors" in found:
                    found["n_neighbors"] = min(found["n_neighbors"], len(train))
                estimator = clone(method.estimator).set_params(**found)
            estimator.fit(known, label[train])
            predicted = estimator.predict(queries) if len(test) else label[:0]
            return choice, estimator, queries, predicted
        except ValueError as error:  # the whole training part or a query cannot have it
            searched.left_out[choice.gram] = str(error)


def _left_out(method, choice):
    """{what the candidates have in common that were left out for one reason: that
    reason}.
    """
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
    kernel, p = name
    if method.grid:
        return {**({"kernel": kernel} if kernel else {}), next(iter(method.grid)): p}
    return {
        "p": p,
        **({"kernel": kernel} if method.reads == "kernels" else {}),
        **dict(parameters),
    }


def _ends(method, choice, shares, limits, settings):
    """{parameter: what to try} of those chosen at an end of their grid, within limits,
    and better there than beside it; "" where no option widens the grid. shares:
    {candidate: mean share}.
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


def candidates(inputs, reads, train, settings):
    """{(kernel, p): Gram matrix (n, n)} from which a method chooses."""
    if callable(reads):
        return on_one_thread(reads)(inputs, train)
    found = {("linear", p): inputs.gram[p - 1] for p in inputs.p}
    if reads == "kernels":
        try:
            grid = kernels.gamma_grid([inputs.sets[i] for i in train], N_GAMMAS)
        except ValueError as error:
            found["Gaussian", inputs.p[0]] = tuning.Absent(str(error))
            return found
        compute_kernels(inputs, grid, settings.seconds)
        for gamma in grid:
            K, why = inputs.kernels[gamma]
            dimensions = (
                inputs.p if settings.p or not len(K) else tuning.dimensions(len(K))
            )
            for p in dimensions:
                matrix = K[p - 1] if p <= len(K) else tuning.Absent(why)
                found[Gaussian(gamma), p] = matrix
    return found


def compute_kernels(inputs, grid, seconds=None):
    """inputs.kernels of each gamma that is not there yet; splits share them.

    seconds: from the middle of the grid outwards, as many as are ready in this time, by
    the time that a tenth of the sets take; the others are left out.
    """
    missing = [gamma for gamma in grid if gamma not in inputs.kernels]
    if seconds is not None and missing:
        missing.sort(key=lambda gamma: abs(math.log(gamma / grid[len(grid) // 2])))
        some = inputs.sets[::10]
        _kernel_grams(some[:2], missing[:1], max(inputs.p))  # compile
        start = time.perf_counter()
        _kernel_grams(some, missing[:1], max(inputs.p))
        each = (len(inputs.sets) / len(some)) ** 2 * (time.perf_counter() - start)
        late = missing[
            math.floor(max(0, start + seconds - time.perf_counter()) / each) :
        ]
        why = f"the Gram matrices of each take about {each:.2g} s, --seconds is {seconds:g}"
        if late:
            say(f"left out {len(late)} of {len(missing)} Gaussian kernels: {why}")
        none = np.empty((0, *inputs.gram.shape[1:]))
        inputs.kernels.update((gamma, (none, why)) for gamma in late)
        missing = missing[: len(missing) - len(late)]
    inputs.kernels.update(
        zip(missing, _kernel_grams(inputs.sets, missing, max(inputs.p)))
    )


def _kernel_grams(sets, gammas, p_max):
    """For each gamma (p, n, n) of every p up to the smallest rank of a set in feature
    space, and why there are no more.

    In float64: of wide Gaussians and small p, float32 leaves matrices that are
    indefinite.
    """
    sets = [rows.astype(np.float64, copy=False) for rows in sets]
    found = {}
    bases = {}
    for gamma in gammas:
        kernel = kernels.rbf(float(gamma))
        try:
            bases[kernel] = [A[:, :p_max] for A in kernels.kernel_bases(sets, kernel)]
        except ValueError as error:
            found[kernel] = np.empty((0, len(sets), len(sets))), str(error)
    grams = kernels.kernel_grams(sets, list(bases.values()), list(bases), each_p=True)
    for kernel, K in zip(bases, grams):
        found[kernel] = K, f"a set has rank {len(K)} in the feature space of {kernel}"
    return [found[kernels.rbf(float(gamma))] for gamma in gammas]


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
        # another fold: points go through it one after another
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


def _points_of_grid(method, inputs, p):
    """{(*other parameters, first parameter): Fits} of the points of a method's grid; p:
    of subspaces whose grid has none.
    """
    sets = {"sets": inputs.sets, "videos": inputs.videos}.get(method.reads)
    grid = method.grid
    if method.reads == "subspaces":
        grid = {"p": [p], **grid}
        of_dimension = {
            q: (np.ascontiguousarray(inputs.subspaces[:, :, :q]), {}) for q in grid["p"]
        }
    made = {}
    found = {}
    for values in itertools.product(*grid.values()):
        first, *others = zip(grid, values)
        point = dict(zip(grid, values))
        if method.reads == "subspaces":
            sets, made = of_dimension[point.pop("p")]
        estimator = clone(method.estimator).set_params(**point)
        found[(*others, first)] = Fits(estimator, sets, made)
    return found


def run_splits(collection, inputs, pairs, methods_of, settings):
    """Evaluate all methods on all splits; gives the Progress after each method of each."""
    label = files.labels_to_keep(collection.label, len(collection.label), "sets")
    # as places among the classes
    classes, label = np.unique(label, return_inverse=True)
    pairs = tuning.check_splits(pairs, len(label))
    few = collection.X[:2]  # compile, so that the table shows the time of the methods
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    results = {}
    groups = say_kept_together(collection, pairs)
    # as many atoms in all splits: a row is one method
    smallest = min(
        len(fit)
        for (train, _), group in zip(pairs, groups)
        for fit, _ in folds_of_split(label, group, train, settings)[0]
    )
    for i, (train, test) in enumerate(pairs):
        fitted = []
        for outcome in evaluate(
            inputs, label, groups[i], train, test, methods_of, settings, smallest
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
                }
            )
            what = f"failed: {failed}" if failed else told(outcome.chosen)
            say(
                f"split {i + 1} of {len(pairs)}: {shares['accuracy']:5.1f}  {name}  "
                f"{what}"
            )
            yield Progress(results, train, test, fitted)


def shares_of(truth, predicted):
    """In %: accuracy, its mean over the classes that there are, and the mean F1 of all
    classes.
    """
    of_class = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    return {
        "accuracy": 100 * np.mean(predicted == truth),
        "balanced": 100 * np.mean(of_class),
        "f1": 100 * f1_score(truth, predicted, average="macro", zero_division=0),
    }


def successes(found):
    """The splits of a method on which it did not fail."""
    return [split for split in found if split["failed"] is None]


def say_kept_together(collection, pairs):
    """What cross-validation keeps together in each of the splits; what is to be known
    of that is said once, with the splits that it is true of.
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
    """What cross-validation on a training part keeps together, (n,): groups, else the
    sets of each clip, else None; and what is to be known: why it does not keep what it
    could, and the classes that it tells nothing of.
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
    """What is to be known of classes with one group, clip or set to train."""
    n_classes = len({*label})
    if len(alone) in (0, n_classes):  # of all classes folds says it
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
