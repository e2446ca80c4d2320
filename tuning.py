"""Choose p, the kernel, lambda, the neighbours and the rule by cross-validation.

The candidates are Gram matrices of labelled sets, one for each kernel and p;
kernel_gram and projection_kernel compute those of every p in one pass. Each fold is
coded once for all lambda and rules. Candidates that can no longer win are not tried on
further folds; candidates that a fold cannot have are left out. Of candidates that are
alike the one is taken whose neighbours are good too.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "Search",
    "dimensions",
    "sparse_predictions",
    "local_predictions",
    "nearest_predictions",
    "alike",
]

# in standard errors of the difference: candidates within ALIKE count as equal; one that
# is behind by SURE is given up
ALIKE = 0.5
SURE = 2.5

# of class_scores: those worth trying, the usual one first
RULES_OF_CODES = {
    "sparse": (core.SparseCoding.rule, "sum"),
    "local": (core.LocalCoding.rule, "residual"),
}

# gram: the name (kernel, p) of the best candidate; parameters: a tuple of (name,
# value); score: the share of the labelled sets that is right in cross-validation;
# n_tried: the number of fits, candidates times folds; shares: {(gram, parameters):
# (n,)} of the candidates that were not given up: of each set the share of right
# answers, NaN where it was not asked; left_out: {gram: why}.
Choice = namedtuple("Choice", "gram parameters score n_tried shares left_out")

# indices of the sets to learn from and of the sets asked, as check_splits gives them
Split = namedtuple("Split", "train test")


class Gram(namedtuple("Gram", "K")):
    """A candidate of a Search: the Gram matrix K (n, n) of all sets."""

    def parts(self, train, tested):
        """K_dd of the sets to learn from, and K_xd of those tested with them."""
        return self.K[np.ix_(train, train)], self.K[np.ix_(tested, train)]


class Absent(namedtuple("Absent", "why")):
    """A candidate that no fold can have; a Search leaves it out and tells why."""

    def parts(self, train, tested):
        raise ValueError(self.why)


class Search:
    """Cross-validation over Gram matrices, or other candidates, and parameters.

    y (n,): labels; folds: [(fit, validate), ...], indices of labelled sets, none twice
    in a fold; sets in no fold are not used. predict(K_dd, K_xd, y) takes the Gram
    matrix of the sets to learn from, that of the sets tested with them, and the labels
    of the former; it gives {parameters: labels}, parameters being a tuple of (name,
    value), as sparse_predictions(...) does. Several functions in a sequence count as
    one that gives all their answers.

    What was computed for one choice serves the next, so that one name must always mean
    the same candidate. left_out: {name: why} of the candidates that a fold could
    not have.

    TypeError for a predict that is no function, ValueError for folds that check_splits
    refuses.

    >>> import numpy as np
    >>> from grassmann_sc import projection_kernel, random_subspaces, tuning
    >>> X = random_subspaces(4, 10, 3, rng=0)[np.arange(12) % 4]  # three sets of each of four
    >>> folds = [(np.arange(8), np.arange(8, 12)), (np.arange(4, 12), np.arange(4))]
    >>> search = tuning.Search(np.arange(12) % 4, folds, tuning.nearest_predictions)
    >>> choice = search.choose({("linear", p): projection_kernel(X[..., :p]) for p in (1, 3)})
    >>> choice.score
    1.0
    >>> both = tuning.nearest_predictions, tuning.local_predictions([2], ["sum"])
    >>> search = tuning.Search(np.arange(12) % 4, folds, both)
    >>> choice = search.choose({("linear", 3): projection_kernel(X)})
    >>> [parameters for _, parameters in choice.shares]
    [(), (('n_neighbors', 2), ('rule', 'sum'))]
    """

    def __init__(
        self,
        y: core.Labels,
        folds: Iterable[tuple[ArrayLike, ArrayLike]],
        predict: Callable | Sequence[Callable],
    ) -> None:
        several = predict if np.iterable(predict) else []
        self.predicts = [predict] if callable(predict) else [*several]
        if not self.predicts or not all(map(callable, self.predicts)):
            raise TypeError(
                f"predict must be a function of K_dd, K_xd and y, or a list of such "
                f"functions, got {predict!r}"
            )
        classes, index = core.check_labels(y, None, "y", "sets")
        self.y = classes[index]
        self.folds = check_splits(
            folds, len(self.y), name="folds", parts=("fit", "validate")
        )
        # {name: of each fold so far {parameters: which answers are right (n_validate,)}}
        self._folds_of: dict = defaultdict(list)
        self.left_out: dict = {}

    def choose(
        self, grams: Mapping[tuple, Any], *, seconds: float | None = None
    ) -> Choice:
        """The Choice among grams, {(kernel, p): K (n, n)}, p ascending.

        Candidates whose accuracy is within ALIKE standard errors of the difference to
        the best count as equal. Of these it takes the one whose accuracy, averaged with
        that of its neighbours in p and in the first parameter, is highest: where few
        sets tell little, no lucky candidate wins. Other parameters, such as the rule,
        stay at the values that predict gives first unless others are better by more
        than ALIKE standard errors. A candidate is given up after a fold when its best
        parameters are behind the leader by SURE standard errors, or by more than the
        remaining sets can make up. seconds: after so many no candidate is tried on a
        fold, but for the first on the first.

        A name may have any number of parts, of which p is the last: candidates are
        neighbours in p if all other parts are equal. In place of K a candidate may be
        any object with a method parts(train, tested), which gives what predict takes
        before y: all that is needed to learn from the sets train and to ask about the
        sets tested, both indices. Gram(K) is such a candidate.

        A candidate is left out, as if it had not been among grams, if its parts or
        predict raise ValueError, as for a p beyond the rank of a set. ValueError if
        none is left.
        """
        if (
            not isinstance(grams, Mapping)
            or not grams
            or not all(isinstance(name, tuple) and name for name in grams)
        ):
            raise ValueError(
                "grams must be a dict of at least one {(kernel, p): K}, got "
                f"{grams!r:.60}"
            )
        candidates = {
            name: self._candidate(K, f"grams[{name!r}]") for name, K in grams.items()
        }
        end = math.inf
        if seconds is not None:
            end = time.perf_counter() + core.check_number(seconds, "seconds", least=0)
        choice = None
        while choice is None:
            names = [name for name in grams if name not in self.left_out]
            if not names:
                name = next(iter(grams))
                raise ValueError(
                    f"grams must hold a matrix that every fold can have, got "
                    f"{len(grams)} of the kind of {name!r}: {self.left_out[name]}"
                )
            choice = self._race(names, candidates, end)
        return self._best(
            names,
            {name: self.left_out[name] for name in grams if name in self.left_out},
            *choice,
        )

    def answers(self, candidate: Any, train: ArrayLike, tested: ArrayLike) -> dict:
        """{parameters: labels} of the sets tested, by what is learned from others.

        candidate: K (n, n), or an object with a method parts, as in choose; train,
        tested: indices of sets.
        """
        (split,) = check_splits(
            [(train, tested)],
            len(self.y),
            name="train, tested",
            parts=("train", "tested"),
        )
        return self._answers(self._candidate(candidate, "candidate"), split)

    def _right(self, name, n_folds):
        """{parameters: which answers of a candidate were right in the first folds}."""
        folds = self._folds_of[name][:n_folds]
        return {
            what: np.concatenate([right[what] for right in folds]) for what in folds[0]
        }

    def _candidate(self, K, name):
        if callable(getattr(K, "parts", None)):
            return K
        n = len(self.y)
        K = core.finite_array(K, name)
        if K.shape != (n, n):
            raise ValueError(f"{name} must have shape ({n}, {n}), got {K.shape}")
        return Gram(K)

    def _race(self, names, candidates, end):
        """Try the candidates fold by fold; gives (names still in, folds, n_tried).

        None if a candidate has to be left out.
        """
        n_tried = 0
        for f in range(len(self.folds)):
            unknown = [name for name in names if len(self._folds_of[name]) <= f]
            if f > 0 and unknown and time.perf_counter() > end:
                break
            done = []
            for name in names:
                if f == 0 and done and name in unknown and time.perf_counter() > end:
                    continue
                try:
                    if name in unknown:
                        answers = self._answers(candidates[name], self.folds[f])
                        truth = self.y[self.folds[f].test]
                        self._folds_of[name].append(
                            {what: labels == truth for what, labels in answers.items()}
                        )
                except ValueError as error:
                    self.left_out[name] = str(error)
                    return None
                done.append(name)
                n_tried += 1
            names = self._still_in(done, f + 1)
            n_folds = f + 1
        return names, n_folds, n_tried

    def _answers(self, candidate, split):
        """{parameters: labels} of what is tested in a split."""
        fit, tested = split
        parts = candidate.parts(fit, tested)
        return {
            what: np.asarray(labels)
            for predict in self.predicts
            for what, labels in predict(*parts, self.y[fit]).items()
        }

    def _shares(self, name, n_folds):
        """{parameters: (n_seen,)}: the share of right answers of each set seen."""
        _, place, counts = np.unique(
            self._tested(n_folds), return_inverse=True, return_counts=True
        )
        return {
            what: np.bincount(place, right) / counts
            for what, right in self._right(name, n_folds).items()
        }

    def _tested(self, n_folds):
        """The sets tested in the first folds, one fold after another."""
        return np.concatenate([validate for _, validate in self.folds[:n_folds]])

    def _still_in(self, names, n_folds):
        """The names that can still win after so many folds."""
        best = {
            name: max(self._shares(name, n_folds).values(), key=np.sum)
            for name in names
        }
        leader = max(best.values(), key=np.sum)
        # also of sets that are asked again, whose shares then change
        to_come = len(self._tested(len(self.folds))) - len(self._tested(n_folds))
        return [
            name
            for name, mine in best.items()
            if (leader - mine).sum()
            <= min(SURE * np.linalg.norm(leader - mine), to_come or np.inf)
        ]

    def _best(self, tried, left_out, names, n_folds, n_tried):
        """The Choice among names; tried: candidates that count as their neighbours."""
        shares = {
            (name, what): share
            for name in names
            for what, share in self._shares(name, n_folds).items()
        }
        mean = {
            (name, what): share.mean()
            for name in tried
            if (n_seen := min(n_folds, len(self._folds_of[name])))
            for what, share in self._shares(name, n_seen).items()
        }
        merits = _merits(mean)
        usual = next(iter(shares))[1][1:]
        best = _robust(
            {
                candidate: share
                for candidate, share in shares.items()
                if candidate[1][1:] == usual
            },
            merits,
        )
        other = _robust(shares, merits)
        if _is_better(shares[other], shares[best]):
            best = other
        padded = np.full((len(shares), len(self.y)), np.nan)
        padded[:, np.unique(self._tested(n_folds))] = list(shares.values())
        return Choice(
            *best,
            float(shares[best].mean()),
            n_tried,
            dict(zip(shares, padded)),
            left_out,
        )


def check_splits(
    splits: Iterable[tuple[ArrayLike, ArrayLike]],
    n: int,
    groups: ArrayLike | None = None,
    *,
    name: str = "splits",
    parts: tuple[str, str] = ("train", "test"),
) -> list[Split]:
    """The splits [(train, test), ...] of n sets as a list of Split, or an error.

    Both parts of a split hold at least one index in 0..n-1, none twice and none that is
    in the other part; with groups (n,), the group of each set, no group is in both
    parts. name and parts are what errors call them.

    >>> from grassmann_sc import tuning
    >>> tuning.check_splits([([0, 3], [1])], 4, ["ann", "bob", "bob", "ann"])
    [Split(train=array([0, 3]), test=array([1]))]
    """
    listed = splits if np.iterable(splits) else []
    pairs = [tuple(split) if np.iterable(split) else () for split in listed]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise ValueError(
            f"{name} must hold at least one pair ({', '.join(parts)}) of indices, got "
            f"{splits!r}"
        )
    if groups is not None:
        core.check_labels(groups, n, "groups", "sets")
    checked = []
    for i, pair in enumerate(pairs):
        keys = [f"{part}{i}" for part in parts]
        split = Split(
            *(_checked_part(part, n, f"{name}: {key}") for part, key in zip(pair, keys))
        )
        both = np.intersect1d(*split)
        if both.size:
            raise ValueError(
                f"{name}: {keys[0]} and {keys[1]} must not overlap, both hold "
                f"{_first('set', both)}"
            )
        torn = [] if groups is None else shared_groups(split, groups)
        if len(torn):
            raise ValueError(
                f"{name}: {keys[0]} and {keys[1]} must keep groups together, both "
                f"hold sets of {_first('group', torn)}"
            )
        checked.append(split)
    return checked


def shared_groups(split, groups):
    """The groups with sets in both parts of a Split.

    groups (n,): the group of each set, any hashables.
    """
    names, index = core.check_labels(groups, None, "groups", "sets")
    both = np.intersect1d(index[split.train], index[split.test])
    return names[both].tolist()


def _checked_part(part, n, name):
    """A part of a split as an array of indices."""
    try:
        index = core.plain_array(part, name, "hold indices, got lists of them")
    except TypeError as error:  # a wrong value in a list of splits, or in a file
        raise ValueError(*error.args) from None
    if index.ndim != 1 or index.size == 0 or index.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must hold integers (k,), at least one, got {index.dtype} "
            f"{index.shape}"
        )
    if index.min() < 0 or index.max() >= n:
        raise ValueError(
            f"{name} must hold indices in 0..{n - 1}, got {index.min()} to "
            f"{index.max()}"
        )
    values, counts = np.unique(index, return_counts=True)
    if len(values) < len(index):
        raise ValueError(
            f"{name} must hold no set twice, got "
            f"{_first('set', values[counts > 1])} more than once"
        )
    return index.astype(np.intp, copy=False)


def _first(kind, values):
    """The first of some values, and how many more there are."""
    return f"{kind} {values[0]}" + (
        f" and {len(values) - 1} more" if len(values) > 1 else ""
    )


def _is_better(a, b, within=ALIKE):
    """Is the mean of a above that of b by more than within standard errors?

    The standard error is that of the mean difference.
    """
    gain = a - b
    return gain.mean() > within * gain.std() / math.sqrt(len(gain))


def _robust(shares, merits):
    """Of the candidates as good as the best, the one of highest merit."""
    leader = max(
        shares, key=lambda candidate: (merits[candidate][1], merits[candidate])
    )
    return max(
        (
            candidate
            for candidate, share in shares.items()
            if not _is_better(shares[leader], share)
        ),
        key=merits.get,
    )


def _merits(mean):
    """{candidate: (smoothed accuracy, its own accuracy)}.

    The smoothed accuracy is the mean of the candidate's own, counted twice, and those
    of its neighbours in p and in the first parameter. Both are rounded, so that
    rounding errors cannot break ties.
    """
    lines = {}
    for candidate in mean:
        for line in _lines_through(candidate):
            lines.setdefault(line, []).append(candidate)
    near = {candidate: [own, own] for candidate, own in mean.items()}
    for line in lines.values():
        for left, right in pairwise(line):
            near[left].append(mean[right])
            near[right].append(mean[left])
    return {
        candidate: (round(np.mean(near[candidate]), 9), round(own, 9))
        for candidate, own in mean.items()
    }


def _lines_through(candidate):
    """The keys that a candidate shares with its neighbours: one in p, one in lambda.

    Candidates of equal first key differ in p alone, those of equal second key in the
    value of the first parameter alone.
    """
    (*others, p), what = candidate
    yield *others, what
    if what:
        (first, _), *rest = what
        yield *others, p, first, *rest


def alike(shares: Mapping[Any, np.ndarray], within: float = 1) -> list:
    """The candidates {candidate: (n,)} that are as good as the best; the best first.

    shares is that of a Choice. A candidate is as good if its mean share is at most
    within standard errors of the difference below that of the best, over the sets that
    all candidates were asked: the one-standard-error rule (Breiman, Friedman, Olshen
    and Stone 1984), applied to differences.

    ValueError for no candidates, shares of several shapes, or no set that all were
    asked.

    >>> from grassmann_sc import tuning
    >>> shares = {"gsc": [0.9, 0.8, 1.0], "glc": [1.0, 0.7, 0.9], "nearest": [0.5, 0.4, 0.6]}
    >>> tuning.alike(shares)
    ['gsc', 'glc']
    """
    within = core.check_number(within, "within", least=0)
    if not isinstance(shares, Mapping) or not shares:
        raise ValueError(
            f"shares must be a dict of at least one candidate, got {shares!r}"
        )
    rows = core.real_array(list(shares.values()), "shares")
    if rows.ndim != 2:
        raise ValueError(
            f"shares must have one shape (n,) for all candidates, got {rows.shape[1:]}"
        )
    common = ~np.isnan(rows).any(axis=0)
    if not common.any():
        raise ValueError(
            "shares must have a set that all candidates were asked, got none"
        )
    rows = dict(zip(shares, rows[:, common]))
    order = sorted(rows, key=lambda candidate: -rows[candidate].mean())
    return [
        candidate
        for candidate in order
        if not _is_better(rows[order[0]], rows[candidate], within)
    ]


def dimensions(p_max: int, most: int = 8) -> list[int]:
    """At most this many p to try out of 1..p_max, ascending, in even ratios.

    ValueError for numbers below 1.

    >>> from grassmann_sc import tuning
    >>> tuning.dimensions(20, most=5)
    [1, 2, 4, 9, 20]
    """
    p_max = core.check_integer(p_max, "p_max", 1)
    most = core.check_integer(most, "most", 1)
    if p_max <= most:
        return list(range(1, p_max + 1))
    return np.unique(np.geomspace(1, p_max, most).round().astype(int)).tolist()


# ----------------------------------------------------------------- from codes to labels


def sparse_predictions(
    lams: ArrayLike,
    rules: Sequence[str] = RULES_OF_CODES["sparse"],
    tol: float = 1e-4,
) -> Callable:
    """predict for Search: labels by sparse codes, for each lambda and each rule.

    lams are in units of lam_max. The usual rule comes first.

    ValueError for a lambda below 0, an unknown rule, or none.

    >>> import numpy as np
    >>> from grassmann_sc import projection_kernel, random_subspaces, tuning
    >>> K = projection_kernel(random_subspaces(3, 10, 2, rng=0))
    >>> answers = tuning.sparse_predictions([0.1], ["sum"])(K, K, np.array(["ape", "bee", "cat"]))
    >>> {parameters: labels.tolist() for parameters, labels in answers.items()}
    {(('lam', 0.1), ('rule', 'sum')): ['ape', 'bee', 'cat']}
    """
    lams = np.sort(shared.shaped_array(lams, "lams", ("L",)))
    if lams[0] < 0:
        raise ValueError(f"lams must be a list of numbers >= 0, got {lams}")
    code = core.sparse_coding((), lams, lam_scale="max", tol=tol)
    return _predictions("lam", lams.tolist(), rules, code)


def local_predictions(
    n_neighbors: Sequence[int], rules: Sequence[str] = RULES_OF_CODES["local"]
) -> Callable:
    """predict for Search: labels by local codes, for each n_neighbors and each rule.

    The number of neighbours is at most the number of atoms of a fold. The usual rule,
    the first, is "sum": a Search takes "residual" instead only if that is better by
    more than luck. The flaw of "residual" (grassmann_sc.class_scores) does not show in
    folds that have fewer sets of a class than the whole training part.

    ValueError for a number below 1, an unknown rule, or none.

    >>> import numpy as np
    >>> from grassmann_sc import projection_kernel, random_subspaces, tuning
    >>> K = projection_kernel(random_subspaces(3, 10, 2, rng=0))
    >>> answers = tuning.local_predictions([2], ["sum"])(K, K, np.array(["ape", "bee", "cat"]))
    >>> {parameters: labels.tolist() for parameters, labels in answers.items()}
    {(('n_neighbors', 2), ('rule', 'sum')): ['ape', 'bee', 'cat']}
    """
    numbers = sorted(
        core.check_integer(number, "n_neighbors", 1)
        for number in _listed(n_neighbors, "n_neighbors", "numbers")
    )

    def code(K_dd, K_xd, norm2):
        codings = [
            core.local_coding(len(K_dd), K_dd.dtype, min(number, len(K_dd)))
            for number in numbers
        ]
        return np.stack([coding(K_dd, K_xd, norm2) for coding in codings])

    return _predictions("n_neighbors", numbers, rules, code)


def _listed(values, name, of):
    """The values as a list of at least one; of: what of."""
    shared.check_sequence(values, name, of)
    if len(values) == 0:
        raise ValueError(f"{name} must be a list of {of}, at least one, got none")
    return [*values]


def _predictions(name, values, rules, code):
    """predict: {((name, value), ("rule", rule)): labels (n,)} by code of all values.

    code(K_dd, K_xd, norm2) gives codes (n_values, n, N).
    """
    rules = [
        core.check_choice(rule, "rules", *core.RULES)
        for rule in _listed(rules, "rules", "rules")
    ]

    def predict(K_dd, K_xd, y):
        K_dd = core.real_array(K_dd, "K_dd")
        first = K_dd[0, 0] if K_dd.ndim == 2 and K_dd.size else 1
        K_dd, K_xd, norm2 = core.check_grams(K_dd, K_xd, first)
        classes, index = core.check_labels(y, len(K_dd), "y", "sets")
        # all values at once, because most blocks of a search are small
        codes = code(K_dd, K_xd, norm2).reshape(-1, len(K_dd))
        queries = np.tile(K_xd, (len(values), 1))
        answers = {}
        for rule in rules:
            scores = core.scores_by_class(
                codes, K_dd, queries, index, len(classes), rule
            )
            labels = classes[scores.argmax(axis=1)].reshape(len(values), -1)
            answers |= {
                ((name, value), ("rule", rule)): row
                for value, row in zip(values, labels)
            }
        return answers

    return predict


def nearest_predictions(
    K_dd: np.ndarray, K_xd: np.ndarray, y: np.ndarray
) -> dict[tuple, np.ndarray]:
    """predict for Search: the label of the nearest subspace.

    ValueError unless the Gram matrices fit the labels.

    >>> import numpy as np
    >>> from grassmann_sc import projection_kernel, random_subspaces, tuning
    >>> K = projection_kernel(random_subspaces(3, 10, 2, rng=0))
    >>> answers = tuning.nearest_predictions(K, K[::-1], np.array(["ape", "bee", "cat"]))
    >>> {parameters: labels.tolist() for parameters, labels in answers.items()}
    {(): ['cat', 'bee', 'ape']}
    """
    classes, index = core.check_labels(y, None, "y", "sets")
    shared.shaped_array(K_dd, "K_dd", (len(index), len(index)))
    K_xd = shared.shaped_array(K_xd, "K_xd", ("n", len(index)))
    return {(): classes[index[K_xd.argmax(axis=1)]]}
