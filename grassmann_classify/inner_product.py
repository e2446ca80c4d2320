"""The inner product of a split: candidates within chance of the best, summed.

All candidates are ranked alike, by cross-validation of gSC at one lambda on the training
part. The mean of the Gram matrices of those within one standard error of the best is the
inner product of the direct sums of their projectors. Rows whiten it within classes.
"""

import time
import warnings
from collections import namedtuple

import numpy as np

from grassmann_classify.bank import (
    MANY,
    MOST_BYTES,
    Bank,
    Rows,
    bases_alone,
    on_one_thread,
    products,
    with_unit_diagonal,
)
from grassmann_classify.clips import as_one_type, some_sets
from grassmann_classify.recipes import coloured, in_colour, padded
from grassmann_classify.words import plural, to_stderr
from grassmann_sc import discriminative, tuning

LAM = 0.1  # of the ranking, in units of lam_max
WITHIN = 1  # standard errors of accuracy within which candidates are summed
HOPELESS = 3  # standard errors behind, after which no further fold is tried
SATURATED = 0.99  # the tenth best accuracy, above which ranking tells little
LEADING = 2  # recipes whose Gaussian candidates are made where that takes long
SHRINKAGE = (None, 3, 1, 0.3, 0.1, 0.03, 0.01)  # of the whitening, None: none
MOST_MADE = 2**24  # numbers of whitened matrices that are kept for the next row
FIXED = [1 / 8, 1 / 4, 1 / 2]  # alpha of the candidates of a first look
NEEDED = -1  # in place of what a candidate is behind the best
predictions = tuning.sparse_predictions([LAM], ["residual"])


class Ranking:
    """The accuracy of each candidate on a split's training part.

    label (n,): the classes of all sets, of which only those in folds are read. accuracy
    {Candidate: share that is right}; nearest: those of the nearest subspace, by the
    first recipe.
    """

    def __init__(self, label, folds, first):
        self.label = label
        self.folds = folds
        self.first = first
        self.n = len(np.unique(np.concatenate([part for _, part in folds])))
        self.place = np.arange(
            len(label)
        )  # of each set in the matrices that are judged
        self.accuracy = {}
        self.nearest = {}
        self._leader = {}  # {linear: which answers of the best candidate are right}

    @on_one_thread
    def judge(self, candidate, K):
        """Add the accuracy of a candidate, on fewer folds if it is hopeless."""
        right = []
        nearest = []
        linear = candidate.kernel is None
        is_usual = linear and candidate.recipe == self.first
        leader = self._leader.get(linear, [])
        for fit, validate in self.folds:
            K_dd, K_xd = tuning.Gram(K).parts(self.place[fit], self.place[validate])
            K_dd = K_dd.astype(np.float64)
            truth = self.label[validate]
            (labels,) = predictions(K_dd, K_xd, self.label[fit]).values()
            right = [*right, *(labels == truth)]
            nearest = [*nearest, *(self.label[fit][K_xd.argmax(axis=1)] == truth)]
            # on the same folds: some persons are harder than others
            best = np.mean(leader[: len(right)]) if leader else 0
            if not is_usual and np.mean(right) < below(best, len(right), HOPELESS):
                break
        self.accuracy[candidate] = float(np.mean(right))
        if is_usual:
            self.nearest[candidate] = float(np.mean(nearest))
        for family in (linear, False):
            if self.accuracy[candidate] >= np.mean(self._leader.get(family, [0])):
                self._leader[family] = right

    def order(self, linear):
        """The candidates, best first; linear: those without a kernel."""
        some = [c for c in self.accuracy if c.kernel is None or not linear]
        return sorted(some, key=self.accuracy.get, reverse=True)

    def least(self, linear, within=WITHIN):
        """The accuracy within so many standard errors of the best."""
        best = max(map(self.accuracy.get, self.order(linear)), default=0)
        return below(best, self.n, within) - 1e-9

    def summed(self, linear):
        """The candidates within chance of the best, best first."""
        least = self.least(linear)
        return [c for c in self.order(linear) if self.accuracy[c] >= least]

    def best(self, allowed=lambda candidate: True):
        """The best linear candidate that is allowed, or of all if none is."""
        order = self.order(linear=True)
        return next(filter(allowed, order), order[0])

    def usual(self):
        """The p that is best for the nearest subspace, by the first recipe if it can be."""
        if not self.nearest:
            return self.best()
        with_p = [candidate for candidate in self.nearest if candidate.p]
        return max(with_p or self.nearest, key=self.nearest.get)

    def leading(self):
        """The recipes with the best linear candidates, at most LEADING."""
        return [*dict.fromkeys(c.recipe for c in self.order(linear=True))][:LEADING]


def below(accuracy, n, within):
    """What is so many standard errors below an accuracy on n sets."""
    error = max(np.sqrt(accuracy * (1 - accuracy) / n), 1 / (2 * n))
    return accuracy - within * error


def fill(bank, rankings, methods, end=np.inf):
    """Rank all candidates of a Bank, which keeps the matrices that a split sums.

    Gaussian ones too, if any of the methods reads them. No recipe is begun after the
    time end but the first. Of more than MANY sets those that rank have matrices, others
    only in what is summed. ValueError if there is no candidate.
    """
    began = time.perf_counter()
    some = bank
    if len(bank.collection.X) > MANY:
        parts = [
            part for ranking in rankings for fold in ranking.folds for part in fold
        ]
        ranked = np.unique(np.concatenate(parts))
        some = Bank(some_sets(bank.collection, ranked), bank.recipes, bank.settings)
        for ranking in rankings:
            ranking.place[ranked] = np.arange(len(ranked))
    most = MOST_BYTES // (4 * len(some.collection.X) ** 2)
    for name in bank.names:
        if bank.grams and time.perf_counter() > end:
            break
        try:
            _rank(bank, some.linear(name), rankings, rankings, most)
        except ValueError as error:
            bank.absent[name] = str(error)
    if not bank.grams:
        raise ValueError(next(iter(bank.absent.values())))
    with_kernels = any(method.reads == "kernels" for method in methods)
    for name in bank.names if with_kernels else []:
        cheap = some.is_cheap(name)
        judges = [ranking for ranking in rankings if cheap or name in ranking.leading()]
        if judges and time.perf_counter() < end:
            try:
                _rank(bank, some.gaussian(name), judges, rankings, most)
            except ValueError as error:
                to_stderr(f"Gaussian candidates left out: {error}")
    _say(bank, rankings, began)


def _rank(bank, made, some, rankings, most):
    """Judge candidates by some rankings; keep the matrices that any ranking sums.

    If there are more than most, the best, and at least that of each ranking.
    """
    for grams in made:
        for candidate, K in grams.items():
            for ranking in some:
                ranking.judge(candidate, K)
        bank.grams |= grams
        behind = {}
        for ranking in rankings:
            for linear in (True, False):
                summed = ranking.summed(linear)
                best = ranking.least(linear, 0)
                for candidate in summed:
                    gap = best - ranking.accuracy[candidate]
                    behind[candidate] = min(gap, behind.get(candidate, gap))
                behind |= dict.fromkeys(summed[:1], NEEDED)
            behind[ranking.usual()] = NEEDED
        order = sorted(behind, key=behind.get)
        few = max(most, [*behind.values()].count(NEEDED))
        bank.grams = {c: bank.grams[c] for c in order[:few] if c in bank.grams}


def _say(bank, rankings, began):
    """Say what was ranked since a time, and what is left out."""
    to_stderr(*(f"recipe {name} left out: {why}" for name, why in bank.absent.items()))
    summed = {
        c for ranking in rankings for k in (True, False) for c in ranking.summed(k)
    }
    if not summed <= bank.grams.keys():
        to_stderr(
            f"{len(summed)} candidates are within chance of the best: no more than the "
            f"first {len(summed & bank.grams.keys())} are summed, whose matrices fit into "
            f"{MOST_BYTES / 2**20:.0f} MiB"
        )
    n_all = len({c for ranking in rankings for c in ranking.accuracy})
    tenth = min(sorted(ranking.accuracy.values())[-10:][0] for ranking in rankings)
    if n_all > 10 and tenth > SATURATED:
        to_stderr(
            f"ten candidates or more are right for over {100 * SATURATED:g} % in "
            "cross-validation, which hardly tells them apart"
        )
    to_stderr(
        f"{plural(n_all, 'candidate')} ranked, {len(bank.grams)} of them kept, "
        f"{sum(K.nbytes for K in bank.grams.values()) / 2**20:.1f} MiB: "
        f"{time.perf_counter() - began:.1f} s"
    )


class InnerProduct(namedtuple("InnerProduct", "candidates recipes accuracies")):
    """The mean of the inner products of candidates, best first.

    recipes {name: Recipe}: those of the candidates; accuracies: of each candidate, in
    the ranking.
    """

    __slots__ = ()

    @property
    def in_colour(self):
        """Does a candidate take frames in colour?"""
        return any(r is not None and in_colour(r) for r in self.recipes.values())

    def points(self, collection):
        """The Rows of the sets of a Collection, with rows if a candidate needs them."""
        points = Rows(collection, self.recipes)
        by_directions = [
            c.kernel is None and points.is_base(c.recipe) for c in self.candidates
        ]
        sets = None if all(by_directions) else as_one_type(collection.sets)
        colours = None
        if self.in_colour:
            pairs = zip(collection.sets, collection.colours)
            frame = collection.frame
            colours = as_one_type([coloured(rows, frame, own) for rows, own in pairs])
        points.collection = collection._replace(
            sets=sets,
            colours=colours,
            spectra=collection.spectra or bases_alone(collection.X),
        )
        return points

    def gram(self, *parts):
        """K (n, n) of the points of sets, with K(x, x) = 1; or of new ones with them.

        parts: the Rows of sets, or of new sets and of others: (n_new, n).
        """
        total = 0
        for _, K in products(self.candidates, *parts, total=True):
            total = total + K
        return total / len(self.candidates)

    def joined(self, points, new):
        """The points of sets, and behind them those of others."""
        first = points.collection
        sets = first.sets and [*first.sets, *new.collection.sets]
        colours = first.colours and [*first.colours, *new.collection.colours]
        spectra = padded([*zip(*first.spectra), *zip(*new.collection.spectra)])
        return self.points(
            first._replace(X=spectra[0], sets=sets, spectra=spectra, colours=colours)
        )

    @classmethod
    def of(cls, candidates, bank, ranking):
        """The one of these candidates of a Bank."""
        recipes = {c.recipe: bank.recipes[c.recipe] for c in candidates}
        return cls(candidates, recipes, [ranking.accuracy[c] for c in candidates])

    @property
    def described(self):
        """{parameter: value} of its one candidate, or their number."""
        if len(self.candidates) == 1:
            return self.candidates[0].point
        return {"candidates": len(self.candidates)}

    @property
    def words(self):
        """[(candidate in words, accuracy in %), ...]."""
        return [
            (candidate.words, 100 * share)
            for candidate, share in zip(self.candidates, self.accuracies)
        ]


def mean_of(grams, number):
    """The mean, in float64, of so many matrices (n, n), some of them summed already."""
    grams = iter(grams)
    total = next(grams).astype(np.float64)
    for K in grams:
        total += K
    total /= number
    return with_unit_diagonal(total)


class Whitened(namedtuple("Whitened", "K label shrinkage made")):
    """A candidate of tuning.Search: K (n, n), whitened by the sets to learn from.

    shrinkage: that of discriminative.Whitening, None: not whitened; made {(shrinkage,
    sets to learn from, sets to be told): parts}, which candidates of one K share.
    """

    __slots__ = ()

    def parts(self, train, tested):
        """K' of the sets to learn from, and of those to be told with them."""
        key = self.shrinkage, train.tobytes(), tested.tobytes()
        if key in self.made:
            return self.made[key]
        K_dd, K_xd = tuning.Gram(self.K).parts(train, tested)
        if self.shrinkage is None:
            return K_dd, K_xd
        with warnings.catch_warnings():  # one set of each class in a fold
            warnings.filterwarnings("ignore", "nothing is whitened")
            whitening = discriminative.Whitening(
                K_dd, self.label[train], self.shrinkage
            )
        if len(self.made) * len(train) ** 2 > MOST_MADE:
            self.made.clear()
        self.made[key] = (
            whitening.K_dd,
            whitening.transform(K_xd, self.K.diagonal()[tested]),
        )
        return self.made[key]
