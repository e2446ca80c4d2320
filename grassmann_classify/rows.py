"""The rows of a table: methods of the paper, their peers, and what a user tries first."""

import itertools
import re
import time
import warnings
from collections import namedtuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from grassmann_classify import first_tries
from grassmann_classify.bank import Candidate, on_one_thread
from grassmann_classify.inner_product import InnerProduct, Whitened, mean_of
from grassmann_classify.words import all_in_words, grouped, plural, printable
from grassmann_sc import estimators, shared, tuning

LEVEL = 0.05  # chance that of equally good rows any is not called as good
DRAWS = 2000
CLIPS_AT_ONCE = 1000  # whose signs are in memory
FEWEST = 6  # clips, or groups, with which any difference is larger than chance
ROUNDING = 1e-9  # means of the same shares in another order differ by less
USUAL_P = 3  # of rows on subspaces of one dimension, where none is chosen
USUAL = {"lam": 0.03, "n_neighbors": 10, "C": 10.0}  # of the rows of a first look
USUAL_SHRINKAGE = 0.1
EACH = 8  # candidates, at most, of rows that choose one of those that are summed
# penalties of the ridge classifier on codes of unit variance
RIDGE = [0.1, 1, 10, 100, 1000]
# reads: the input that a method takes "gram", "kernels": Gram matrices, of linear
# candidates, or of Gaussian ones too, or {(kernel, number): matrix} that a function
# gives: predict of tuning.Search takes their blocks. among: "sum", their inner product;
# "each", the candidates that are summed, one by one; "usual": the first recipe's p that
# is best for the nearest subspace. Of the matrices of a function, grid names the number.
# An estimator takes "subspaces" (n, d, p), "sets" of rows or "videos"; its grid is
# searched, whose first parameter is the one that has neighbours. p in the grid is that
# of "subspaces".
Method = namedtuple(
    "Method", "name reads estimator grid predict among", defaults=[None, "sum"]
)


def is_coding(name):
    """Does the row of this name code over labelled sets, so that it can say why?"""
    return name in ("gSC", "gLC", "kgSC", "kgLC")


# ------------------------------------------------------------------------------- chance
# One paired comparison: the shares of right answers of all rows, clip by clip. If rows
# are equally good, a clip favours any of two rows as likely as the other; so the signs of
# the clips' differences are drawn anew, those of all pairs of rows together, and the
# largest difference of any two rows is noted. A row that is behind the best by less than
# 95 % of these largest differences reach is as good within chance: of rows that are
# equally good, all are called so in at least 95 of 100 tables.


def within_chance(shares):
    """(The largest difference that chance explains, the rows as good as the best).

    shares {row: (n,)}: what each of n clips, or groups, adds to the row's accuracy, in
    one unit of all rows; their sum is the accuracy. The rows come best first, those of
    the same accuracy in their order. Rows that are behind by more are left out, and
    the others compared again without them, until none is.
    """
    names = sorted(shares, key=lambda name: -round(shares[name].sum(), 9))
    table = np.array([shares[name] for name in names])
    rng = np.random.default_rng(0)
    drawn = np.zeros((DRAWS, len(names)))
    for at in range(0, table.shape[1], CLIPS_AT_ONCE):
        part = table[:, at : at + CLIPS_AT_ONCE]
        drawn += rng.choice([-1.0, 1.0], (DRAWS, part.shape[1])) @ part.T
    behind = table[0].sum() - table.sum(axis=1)
    n = len(names)
    while True:
        ranges = np.ptp(drawn[:, :n], axis=1)
        difference = float(np.quantile(ranges, 1 - LEVEL, method="higher"))
        near = int(np.sum(behind[:n] <= difference + ROUNDING))
        if near == n:
            return difference, names[:n]
        n = near


def front(shares):
    """The row in front: of rows as good as the best, the best that codes, else the best."""
    _, names = within_chance(shares)
    return next(filter(is_coding, names), names[0])


def unit_shares(shares, unit):
    """Shares {row: (n_units,)} of units, as clips or groups, of those of n sets.

    unit (n,): the index of each set's. Sets that some row was not asked, which are NaN,
    count for no row.
    """
    whole = ~np.isnan([*shares.values()]).any(axis=0)
    n = max(1, whole.sum())
    return {
        name: np.bincount(unit[whole], share[whole] / n, unit.max(initial=0) + 1)
        for name, share in shares.items()
    }


# ------------------------------------------------------------------------- estimators


class Nearest(ClassifierMixin, BaseEstimator):
    """The class of the training set with the largest entry in a row of similarities."""

    def fit(self, K, y):
        self.y_ = y
        self.classes_ = np.unique(y)
        return self

    def predict(self, K):
        K = shared.shaped_array(K, "K", ("n", len(self.y_)))
        return self.y_[K.argmax(axis=1)]

    def decision_function(self, K):
        """The largest entry (n, n_classes) of each class."""
        return np.stack([K[:, self.y_ == c].max(axis=1) for c in self.classes_], axis=1)


def on_codes(coder, penalties=RIDGE):
    """Codes, each feature divided by its standard deviation, to a ridge classifier."""
    return make_pipeline(coder, StandardScaler(), RidgeClassifierCV(penalties))


# with one neighbour the code is 1 on the nearest atom
ONE = estimators.CodingClassifier(
    "local", n_neighbors=1, rule="max", kernel="precomputed"
)
GSC = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")
GLC = estimators.CodingClassifier("local", kernel="precomputed")
SUPPORT = first_tries.Machine()
LEARNED = " learned atoms"


# estimator: not fitted, before anything is chosen; words: what the row does; reads,
# predict, among: of its Method; tries: the field of settings whose values predict tries
Row = namedtuple(
    "Row", "estimator words reads predict tries among", defaults=[None] * 3 + ["sum"]
)
ROWS = {
    "frames: SVM": Row(
        first_tries.FramesSVM(),
        "a support vector machine (SVM) on frames, whose mean score decides",
        "frames",
        first_tries.predictions,
        "C",
    ),
    "mean frame: SVM": Row(
        first_tries.FramesSVM(),
        "an SVM on the mean frame of each clip",
        "mean",
        first_tries.predictions,
        "C",
    ),
    "mean and spread: SVM": Row(
        first_tries.FramesSVM(),
        "an SVM on the mean and the standard deviation of a clip's frames",
        "moments",
        first_tries.predictions,
        "C",
    ),
    "nearest subspace": Row(
        ONE,
        "the class of the labelled clip whose subspace is nearest: one recipe, one p",
        "gram",
        tuning.nearest_predictions,
        among="usual",
    ),
    "nearest": Row(
        ONE,
        "the class of the nearest labelled clip, by the inner product of all candidates",
        "gram",
        tuning.nearest_predictions,
    ),
    "subspaces: SVM": Row(
        SUPPORT,
        "an SVM on how alike the subspaces of clips are (projection kernel)",
        "gram",
        first_tries.kernel_predictions,
        "C",
    ),
    "gSC": Row(
        GSC,
        "sparse coding: few labelled clips add up to the new one and decide",
        "gram",
        tuning.sparse_predictions,
        "lam",
    ),
    "gLC": Row(
        GLC,
        "local coding: labelled clips nearby add up to the new one and decide",
        "gram",
        tuning.local_predictions,
        "neighbors",
    ),
    "kernel: nearest": Row(
        ONE,
        "nearest, by candidates in the spaces of kernels of frames too",
        "kernels",
        tuning.nearest_predictions,
    ),
    "kernel: SVM": Row(
        SUPPORT,
        "an SVM on subspaces, by candidates in the spaces of kernels of frames too",
        "kernels",
        first_tries.kernel_predictions,
        "C",
    ),
    "kgSC": Row(
        GSC,
        "sparse coding, by candidates in the spaces of kernels of frames too",
        "kernels",
        tuning.sparse_predictions,
        "lam",
    ),
    "kgLC": Row(
        GLC,
        "local coding, by candidates in the spaces of kernels of frames too",
        "kernels",
        tuning.local_predictions,
        "neighbors",
    ),
    f"gSC,{LEARNED}": Row(
        on_codes(estimators.GrassmannDictionary(1, lam_scale="max")),
        "gSC over subspaces that are learned; ridge regression of the codes",
        "subspaces",
    ),
    f"gLC,{LEARNED}": Row(
        on_codes(estimators.GrassmannDictionary(1, coding="local")),
        "gLC over subspaces that are learned; ridge regression of the codes",
        "subspaces",
    ),
}


def of_learned(key, n_atoms):
    """The name of a row, by its key, that learns so many atoms."""
    return key.replace(LEARNED, f" {n_atoms}{LEARNED}")


def row_named(name, rows=ROWS):
    """The Row of this name."""
    return rows[re.sub(rf" \d+(?={LEARNED}$)", "", name)]


def estimator_of(name, rows=ROWS):
    """A new estimator of the row of this name."""
    return clone(row_named(name, rows).estimator)


def methods(bank, smallest, settings):
    """The Methods of ROWS on the sets of a Bank, each with what it tries.

    smallest: the least number of training sets in a fold; settings:
    grassmann_classify.Settings.
    """
    has_sets = bank.collection.sets is not None  # which machines on frames need
    n_atoms = min(settings.atoms, smallest)
    can = {"gram": True, "kernels": settings.kernels, "subspaces": n_atoms}
    for key, row in ROWS.items():
        if not can.get(row.reads, has_sets):
            continue
        predict = row.predict
        if row.tries:
            predict = predict(getattr(settings, row.tries))
        if predict is None:
            yield _learning(key, n_atoms, settings)
        else:
            yield Method(key, row.reads, clone(row.estimator), {}, predict, row.among)


def coding_methods(bank, smallest, settings):
    """Those of methods that code."""
    return [m for m in methods(bank, smallest, settings) if is_coding(m.name)]


def _learning(key, n_atoms, settings):
    """The Method of a row that learns so many atoms."""
    learning = estimator_of(key).set_params(
        grassmanndictionary__n_atoms=n_atoms,
        grassmanndictionary__max_iter=settings.iterations,
        grassmanndictionary__random_state=settings.seed,
    )
    some = sorted({min(n_atoms, number) for number in settings.neighbors})[:3]
    grid = (
        {"lam": settings.lam[:4:2]} if key.startswith("gSC") else {"n_neighbors": some}
    )
    grid = {f"grassmanndictionary__{name}": grid[name] for name in grid}
    return Method(of_learned(key, n_atoms), "subspaces", learning, grid)


# ------------------------------------------------------------------------- on a split


# A method on a split. estimator: fitted; queries: what it was asked of the test part;
# predicted: labels (n_test,); chosen: {parameter: value}; left_out: {candidate: why};
# score: the share that is right in cross-validation; failed: why none of the others is
# there, or None; warned: the warnings of candidates; shares (n,): how often each set was
# right in cross-validation, NaN if it was in no fold; inner: the InnerProduct, or None.
Outcome = namedtuple(
    "Outcome",
    "method estimator queries predicted chosen left_out score failed seconds warned "
    "shares inner",
    defaults=[None, None, None, {}, {}, 0.0, None, 0.0, (), None, None],
)


class Split(
    namedtuple(
        "Split",
        "bank label train test settings folds once ranking end shrinkage shared",
    )
):
    """What rows are evaluated on: a split of the sets of a Bank.

    label (n,): the indices of classes, hidden in the test part; folds: of the training
    part, once: without repeats; end: the time.perf_counter() from which searches begin
    nothing more; shared: {linear: (InnerProduct, K (n, n), made of Whitened)}, {} at
    first.
    """

    __slots__ = ()

    @property
    def smallest(self):
        """The least number of sets to learn from in a fold."""
        return min(len(fit) for fit, _ in self.folds)

    def summed(self, linear):
        """(InnerProduct, its K, made of Whitened), linear or of Gaussian ones too."""
        if linear not in self.shared:
            grams = self.bank.grams
            some = [c for c in self.ranking.summed(linear) if c in grams]
            inner = InnerProduct.of(some, self.bank, self.ranking)
            grams = (K for _, K in self.bank.grams_of(some, total=True))
            self.shared[linear] = inner, mean_of(grams, len(some)), {}
        return self.shared[linear]


@on_one_thread
def searched(method, split):
    """The Outcome of the best candidate of a method, fitted.

    Candidates that the whole training part or a query cannot have are left out.
    """
    candidates, inner = _candidates(method, split)
    # estimators on sets, and machines on frames, take seconds a fit
    is_slow = method.predict is None or method.reads in first_tries.FEATURES
    search = tuning.Search(
        split.label,
        split.once if is_slow else split.folds,
        method.predict or fit_and_predict,
    )
    fitted = None
    while fitted is None:
        left = max(0.0, split.end - time.perf_counter())
        choice = search.choose(candidates, seconds=None if left == np.inf else left)
        try:
            fitted = fitted_to(
                method, dict(choice.parameters), candidates[choice.gram], split
            )
        except ValueError as error:
            search.left_out[choice.gram] = str(error)
    chosen = _point(choice.gram)
    if inner is not None:
        chosen = inner.described | chosen
    elif method.reads in ("gram", "kernels"):
        inner = InnerProduct.of([Candidate(**chosen)], split.bank, split.ranking)
    return Outcome(
        method,
        *fitted,
        chosen | dict(choice.parameters),
        _left_out(choice),
        choice.score,
        shares=choice.shares[choice.gram, choice.parameters],
        inner=inner,
    )


@on_one_thread
def fixed(method, split):
    """The Outcome of a method of a first look, with the parameters USUAL."""
    _, K, made = split.summed(True)
    candidate = Whitened(K, split.label, USUAL_SHRINKAGE, made)
    if method.reads in first_tries.FEATURES:
        name = uncentred(split.bank)[0]
        candidate = Sets(features(split.bank, method.reads, name))
    parameters = {}
    if method.predict is not tuning.nearest_predictions:
        names = method.estimator.get_params().keys() & USUAL.keys()
        parameters = {name: USUAL[name] for name in names}
    return Outcome(method, *fitted_to(method, parameters, candidate, split))


def attempt(method, split, run=searched):
    """The Outcome of a method by run(method, split), or why it failed."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # many classes are no mistake, and SVC would warn at each fit
        warnings.filterwarnings(
            "ignore", "The number of unique classes is greater than 50%"
        )
        try:
            outcome = run(method, split)
        except Exception as error:
            outcome = Outcome(method, failed=str(error) or type(error).__name__)
    warned = tuple(dict.fromkeys(printable(warning.message) for warning in caught))
    return outcome._replace(seconds=time.perf_counter() - start, warned=warned)


def _candidates(method, split):
    """({((parameter, value), ...): candidate} of a method, its InnerProduct or None)."""
    bank = split.bank
    ranking = split.ranking
    # of a centred set neither the mean nor where its hull lies is left
    names = uncentred(bank)
    if callable(method.reads) or method.reads == "frames":  # take seconds
        names = [ranking.best(lambda candidate: candidate.recipe in names).recipe]
    if callable(method.reads):
        return method.reads(bank, split.train, *names), None
    if method.reads in first_tries.FEATURES:
        return {
            (("recipe", name),): Sets(features(bank, method.reads, name))
            for name in names
        }, None
    if method.predict is None:
        return _grid(method, split), None
    if method.among == "sum":
        inner, K, made = split.summed(method.reads == "gram")
        return {
            (("shrinkage", shrinkage),): Whitened(K, split.label, shrinkage, made)
            for shrinkage in split.shrinkage
        }, inner
    is_usual = method.among == "usual"
    some = [ranking.usual()] if is_usual else ranking.summed(method.reads == "gram")
    some = [candidate for candidate in some if candidate in bank.grams][:EACH]
    grams = dict(bank.grams_of(some))
    return {tuple(c.point.items()): tuning.Gram(grams[c]) for c in some}, None


def uncentred(bank):
    """Names of the recipes of a Bank that leave a set its mean; all if none does."""
    names = [
        name
        for name in bank.names
        if getattr(bank.recipes[name], "keeps_mean", True)  # None: as they were read
    ]
    return names or bank.names


def features(bank, kind, name):
    """A few rows of each set of a Bank by a recipe, of first_tries.FEATURES."""
    if (kind, name) not in bank.made:
        bank.made[kind, name] = first_tries.few_features(kind, bank.sets(name))
    return bank.made[kind, name]


def _point(name):
    """{parameter: value} of the name of a candidate, with what it has."""
    point = {key.rpartition("__")[2]: value for key, value in name}
    return {key: value for key, value in point.items() if value is not None}


def _left_out(choice):
    """{what the candidates left out for one reason have in common: the reason}."""
    by_reason = grouped(
        (why, _point(name).items()) for name, why in choice.left_out.items()
    )
    left_out = {}
    for why, (first, *others) in by_reason.items():
        common = dict(item for item in first if all(item in point for point in others))
        left_out[all_in_words(common) or plural(len(others) + 1, "candidate")] = why
    return left_out


def fitted_to(method, parameters, candidate, split):
    """(Estimator, queries, their labels) of a candidate and parameters."""
    *made, labelled, queries = candidate.parts(split.train, split.test)
    estimator = clone(*made) if made else clone(method.estimator)
    if "n_neighbors" in parameters:
        parameters["n_neighbors"] = min(parameters["n_neighbors"], len(split.train))
    estimator.set_params(**parameters)
    estimator.fit(labelled, split.label[split.train])
    predicted = estimator.predict(queries) if len(split.test) else split.label[:0]
    return estimator, queries, predicted


class Sets(namedtuple("Sets", "sets estimator made clips", defaults=[None] * 3)):
    """A candidate of tuning.Search: arrays of all sets, behind an estimator if it has one.

    made: {training sets: what estimators made of these}, for all points of a grid.
    clips: what they made of one clip, whatever the training sets.
    """

    __slots__ = ()

    def parts(self, train, tested):
        """The estimator, the sets to learn from and those that are tested."""
        parts = [
            self.sets[part]
            if isinstance(self.sets, np.ndarray)
            else [self.sets[i] for i in part]
            for part in (train, tested)
        ]
        if self.estimator is None:
            return parts
        # all points of the grid take one fold before the next: forget the last fold
        if train.tobytes() not in self.made:
            self.made.clear()
        estimator = clone(self.estimator)
        estimator.made = self.made.setdefault(train.tobytes(), {"clips": self.clips})
        return [estimator, *parts]


def fit_and_predict(estimator, sets, queries, y):
    """predict for tuning.Search: labels by the estimator of Sets."""
    return {(): estimator.fit(sets, y).predict(queries)}


def _grid(method, split):
    """{(recipe, *other parameters, first parameter): Sets} of the points of a method's grid.

    By the recipe of the best linear candidate, and its p where the grid has none; videos
    are as they were read.
    """
    bank = split.bank
    best = split.ranking.best(lambda c: c.p is not None or method.reads == "sets")
    recipe = "recipe", None if method.reads == "videos" else best.recipe
    grid = method.grid
    # what is read, and what estimators made of it, by p
    read = {None: (bank.videos, {})}
    if method.reads == "sets":
        read = {None: (bank.sets(best.recipe), {})}
    elif method.reads == "subspaces":
        grid = {"p": [best.p or USUAL_P], **grid}
        U, _ = bank.directions(best.recipe)
        read = {p: (np.ascontiguousarray(U[:, :, :p]), {}) for p in grid["p"]}
    clips = bank.made.setdefault(method.name, {})  # for all splits
    candidates = {}
    for values in itertools.product(*grid.values()):
        point = dict(zip(grid, values))
        first, *others = point.items()
        p = point.pop("p") if method.reads == "subspaces" else None
        sets, made = read[p]
        candidate = Sets(sets, clone(method.estimator).set_params(**point), made, clips)
        if p is not None and sets.shape[2] < p:
            candidate = tuning.Absent(f"a set has rank {sets.shape[2]}")
        candidates[(recipe, *others, first)] = candidate
    return candidates
