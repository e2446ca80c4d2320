"""How sure an answer by codes is: scores of labelled subspaces that are left out of what
codes them, p-values of the classes, suspicious labels, the share of an unknown class that
is noticed, and the temperature of probabilities.

Everything comes from the Gram matrix K (N, N) of labelled subspaces. Internally index (N,)
is the class of each, 0..C-1, and coding the options of core.make_coding. Where the inner
product is whitened within classes, what is left out is left out of the whitening too.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import grassmann_sc as core
from grassmann_sc import discriminative, shared

__all__ = ["left_out_codes", "left_out_scores", "suspicion", "p_values"]

CALIBRATED = 100  # atoms at most that are coded to choose a temperature
JUDGED = 1000  # atoms at most that are coded without their class
FOLDS = 5


# ------------------------------------------------------------ each over all others


def left_out_codes(
    K: ArrayLike,
    groups: core.Labels | None = None,
    *,
    lam: float | None = None,
    n_neighbors: int | None = None,
    lam_scale: str | None = None,
) -> np.ndarray:
    """Codes (N, N) of each of N subspaces over all others, from their Gram matrix K.

    No subspace is coded over itself, or over one of its group: these entries are 0.
    groups: (N,), any hashables; by default each subspace is alone.
    lam or n_neighbors, lam_scale: as in grassmann_sc.classify, but neighbours are at
    most all others.
    Each group takes a copy of the Gram matrix of all others.

    ValueError unless K is symmetric, of a nonnegative diagonal, there are two groups or
    more, and lam or n_neighbors alone is given. A warning tells that K is not positive
    semidefinite.

    >>> import numpy as np
    >>> from grassmann_sc import calibration
    >>> K = np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]])
    >>> calibration.left_out_codes(K, lam=0.2).round(2).tolist()
    [[0.0, 0.7, 0.0], [0.7, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    coding = {"lam": lam, "n_neighbors": n_neighbors, "lam_scale": lam_scale}
    K = core.check_symmetric(K, "K")
    core.check_gram(K, "K")
    codes = np.zeros_like(K)
    for mine, rest, part, _ in _left_out(K, members_of(groups, len(K)), coding):
        codes[np.ix_(mine, rest)] = part
    return codes


def left_out_scores(
    K: ArrayLike,
    labels: core.Labels,
    groups: core.Labels | None = None,
    *,
    lam: float | None = None,
    n_neighbors: int | None = None,
    lam_scale: str | None = None,
    rule: str | None = None,
    shrinkage: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores (N, C) of the classes by the left_out_codes of each subspace; the classes.

    What speaks for the label of a subspace, and what for another class, says whether
    the label may be wrong. Scores of new subspaces are compared with these by p_values.
    rule: as in grassmann_sc.class_scores; by default "residual" with lam, "sum" with
    n_neighbors. shrinkage: None, or that of discriminative.Whitening: then scores come
    from five folds, with classes spread evenly and groups together; the others are
    whitened and code a fold. The other arguments are those of left_out_codes.

    ValueError where left_out_codes raises it, for an unknown rule, or labels of another
    length.

    >>> import numpy as np
    >>> from grassmann_sc import calibration
    >>> K = np.array([[1, 0.8, 0.1], [0.8, 1, 0.1], [0.1, 0.1, 1]])
    >>> scores, classes = calibration.left_out_scores(K, ["ape", "ape", "bee"], lam=0.1)
    >>> classes[scores.argmax(axis=1)].tolist()
    ['ape', 'ape', 'ape']
    """
    coding = {"lam": lam, "n_neighbors": n_neighbors, "lam_scale": lam_scale}
    K = core.check_symmetric(K, "K")
    core.check_gram(K, "K")
    classes, index = core.check_labels(labels, len(K))
    usual = (core.LocalCoding if lam is None else core.SparseCoding).rule
    rule = core.check_choice(usual if rule is None else rule, "rule", *core.RULES)
    members = members_left_out(groups, index, shrinkage)
    (scores,) = scores_by_rule(K, index, members, [rule], coding, shrinkage)
    return scores, classes


def members_of(groups, n):
    """The members of each of at least two groups (n,); of None each is alone."""
    core.check_integer(n, "the number of subspaces", 2)
    if groups is None:
        return np.arange(n)[:, None]
    _, index = core.check_labels(groups, n, "groups", "subspaces")
    if index.max() == 0:
        raise ValueError("groups must hold two groups at least, got one")
    return [np.flatnonzero(index == group) for group in range(index.max() + 1)]


def members_left_out(groups, index, shrinkage):
    """The members that are left out together: of a group, or of a fold if whitened.

    A fold takes whole groups, the largest first: each goes where its classes are rarest.
    """
    members = members_of(groups, len(index))
    if shrinkage is None:
        return members
    counts = np.zeros((FOLDS, index.max() + 1), int)
    folds = [[] for _ in counts]
    for mine in sorted(members, key=len, reverse=True):
        own = np.bincount(index[mine], minlength=counts.shape[1])
        rarest = np.lexsort((counts.sum(axis=1), counts @ own))[0]
        counts[rarest] += own
        folds[rarest].extend(mine)
    return [np.array(fold) for fold in folds if fold]


def scores_by_rule(K, index, members, rules, coding, shrinkage=None, some=None):
    """left_out_scores (N, C) by each of the rules, from the same codes.

    members: the subspaces that are left out together, of which only some are coded if
    these are given; of others the scores are undefined. coding: lam, n_neighbors and
    lam_scale.
    """
    n_classes = index.max() + 1
    scores = np.empty((len(rules), len(K), n_classes), K.dtype)
    parts = _left_out(K, members, coding, index, shrinkage, some)
    for mine, rest, codes, grams in parts:
        for k, rule in enumerate(rules):
            scores[k, mine] = core.scores_by_class(
                codes, *grams, index[rest], n_classes, rule
            )
    return scores


def _left_out(K, members, coding, index=None, shrinkage=None, some=None):
    """(mine, the others, codes of the first over the second, (K_dd, K_xd)) by group.

    mine: the members, or some of them. K_dd is overwritten by that of the next group.
    """
    n = len(K)
    options = dict(coding)
    buffers = np.empty((2, n * n), K.dtype)  # new memory would take most of the time
    before = np.arange(0)
    for mine in members:
        rest = np.delete(np.arange(n), mine)
        m = len(rest)
        rows, K_dd = (b[: m * k].reshape(m, k) for b, k in zip(buffers, (n, m)))
        # one left out after another: one place differs
        moved = np.flatnonzero(rest != before) if len(before) == m else rest
        if len(moved) < m / 4:
            K_dd[moved] = K[np.ix_(rest[moved], rest)]
            K_dd[:, moved] = K[np.ix_(rest, rest[moved])]
        else:
            K.take(rest, axis=0, out=rows, mode="clip").take(
                rest, axis=1, out=K_dd, mode="clip"
            )
        before = rest
        if some is not None:
            mine = np.intersect1d(mine, some)
        K_xd = K.take(mine, axis=0).take(rest, axis=1)
        if coding["n_neighbors"] is not None:
            options["n_neighbors"] = min(
                core.check_integer(coding["n_neighbors"], "n_neighbors", 1), m
            )
        grams = K_dd, K_xd, K.diagonal()[mine]
        if shrinkage is not None:
            whitening = discriminative.Whitening(K_dd, index[rest], shrinkage)
            grams = whitening.grams(*grams[1:])
        code = core.make_coding(K_xd.shape, K.dtype, **options)
        yield mine, rest, code(*grams), grams[:2]


# ----------------------------------------------------------- from scores to p-values


def suspicion(left_out: ArrayLike, labels: core.Labels) -> np.ndarray:
    """How far the label of each subspace is behind the best other class (N,).

    left_out: (N, C), its left_out_scores, by labels (N,). The difference of the two
    scores is in units of the largest |score|: positive where another class scores
    higher. The largest are the labels to look at first.

    ValueError unless left_out has a row a label and a column a class, of two or more.

    >>> from grassmann_sc import calibration
    >>> calibration.suspicion([[0.5, 0.25], [0.1, 0.4], [0.3, 0.6]], ["ape", "bee", "ape"]).tolist()
    [-0.5, -0.75, 0.5]
    """
    index, n_classes = _classes_of(labels)
    scores = shared.shaped_array(left_out, "left_out", (len(index), n_classes))
    return _own_behind(scores.astype(np.float64), index)


def _classes_of(labels):
    """The index of each label's class, and the number of classes, two or more."""
    classes, index = core.check_labels(labels, None)
    return index, core.check_integer(len(classes), "the number of classes of labels", 2)


PValues = namedtuple("PValues", "classes known")


def p_values(left_out: ArrayLike, labels: core.Labels, scores: ArrayLike) -> PValues:
    """Conformal p-values of the classes of new subspaces, from their scores (n, C).

    left_out: (N, C), left_out_scores of the labelled subspaces, labels (N,).
    classes (n, C): the share of labelled subspaces, the new one counted, whose own
    class is as far behind the best other, relative to the largest score, as this class
    is. A class can be excluded at coverage 1 - a if its p-value is at most a: if new
    and labelled subspaces come alike, the right class is kept in a share 1 - a or more.
    known (n,): the share whose largest score is as low; the new one is unlike all
    classes at a if this is at most a. Scores are compared to nine digits.
    Rows of left_out that are NaN count for nothing, as of subspaces whose class is left
    out with them. Vovk, Gammerman and Shafer 2005, Algorithmic Learning in a Random World.

    ValueError unless left_out has a row a label, and both scores a column a class, of
    two or more.

    >>> from grassmann_sc import calibration
    >>> left_out = [[0.9, 0.1], [0.8, 0.2], [0.1, 0.7]]
    >>> found = calibration.p_values(left_out, ["ape", "ape", "bee"], [[0.9, 0.05], [0.1, 0.1]])
    >>> found.classes.tolist(), found.known.tolist()
    ([[1.0, 0.25], [0.25, 0.25]], [1.0, 0.25])
    """
    index, n_classes = _classes_of(labels)
    left_out = core.real_array(left_out, "left_out").astype(np.float64)
    if left_out.shape == (len(index), n_classes):
        is_judged = ~np.isnan(left_out).all(axis=1)
        left_out = left_out[is_judged]
        index = index[is_judged]
    left_out = shared.shaped_array(left_out, "left_out", (len(index), n_classes))
    scores = shared.shaped_array(scores, "scores", ("n", n_classes)).astype(np.float64)
    own = np.sort(_own_behind(left_out, index))
    unit = max(core.max_abs(left_out), np.finfo(float).tiny)
    best = np.sort((left_out.max(axis=1) / unit).round(9))
    with np.errstate(over="ignore"):  # beside labelled ones that share nothing
        highest = (scores.max(axis=1) / unit).round(9)
    n = len(index) + 1
    return PValues(
        (n - np.searchsorted(own, _behind(scores), "left")) / n,
        (1 + np.searchsorted(best, highest, "right")) / n,
    )


def level_of(coverage: float) -> float:
    """The largest p-value at which a class is excluded at this coverage, 1 - coverage.

    To twelve digits: 1 - 0.9 is a little less than 0.1, and a p-value of 1 of 10 is not.

    >>> from grassmann_sc import calibration
    >>> 1 - 0.9, calibration.level_of(0.9)
    (0.09999999999999998, 0.1)
    """
    return round(1 - core.check_number(coverage, "coverage", above=0, most=1), 12)


def _own_behind(scores, index):
    """How far the own class of each subspace is behind the best other."""
    return _behind(scores)[np.arange(len(index)), index]


def _behind(scores):
    """How far each class is behind the best other, as a share of the largest |score|."""
    first, second = -np.partition(-scores, 1, axis=1)[:, :2].T[:, :, None]
    others = np.where(scores == first, second, first)
    unit = np.maximum(np.abs(scores).max(axis=1, keepdims=True), np.finfo(float).tiny)
    return ((others - scores) / unit).round(9)


def noticed(K, index, explained, coverage, coding, shrinkage=None):
    """The share of atoms that are told as unlike all classes when theirs is left out.

    Of at most JUDGED atoms, evenly of all classes. explained: left_out_scores by
    "residual".
    """
    n_classes = core.check_integer(index.max() + 1, "the number of classes", 3)
    few = np.linspace(0, len(index) - 1, min(len(index), JUDGED)).astype(int)
    some = np.argsort(index, kind="stable")[few]
    members = members_of(index, len(index))
    (scores,) = scores_by_rule(K, index, members, ["residual"], coding, shrinkage, some)
    p_any = []
    for c in range(n_classes):
        others = index != c
        known = p_values(
            np.delete(explained[others], c, axis=1),
            index[others],
            np.delete(scores[some[index[some] == c]], c, axis=1),
        ).known
        p_any.extend(known)
    return float(np.mean(np.array(p_any) <= level_of(coverage)))


def temperature(K, index, rule, coding, shrinkage=None):
    """The T > 0 of least log-loss of softmax(scores / T), 1 if no class has two atoms.

    Of at most CALIBRATED atoms of classes that have several, each is coded over those
    outside its fold.
    """
    several = np.flatnonzero(np.bincount(index)[index] > 1)
    if len(several) == 0:
        return 1.0
    few = np.linspace(0, len(several) - 1, min(len(several), CALIBRATED)).astype(int)
    some = several[np.argsort(index[several], kind="stable")][few]
    # neighbours, of one class, are in different folds
    folds = [some[f::FOLDS] for f in range(min(FOLDS, len(some)))]
    (scores,) = scores_by_rule(K, index, folds, [rule], coding, shrinkage)
    return least_log_loss(scores[some].astype(np.float64), index[some])


def least_log_loss(scores, own):
    """The T > 0 of least log-loss of softmax(scores / T) for the classes own (n,).

    The truth is taken to be 1 / (n + 2) short of certain, so that scores without an
    error do not make T zero. Source: Platt 1999, for the two classes of a support
    vector machine.
    """
    n, n_classes = scores.shape
    spread = np.ptp(scores, axis=1).mean()
    if not spread > 0:
        return 1.0
    doubt = 1 / (n + 2)
    truth = np.full(scores.shape, doubt / (n_classes - 1))
    truth[np.arange(n), own] = 1 - doubt
    scores = (scores - scores.max(axis=1, keepdims=True)) / spread

    def loss(log_sharpness):
        return -(truth * log_softmax(np.exp(log_sharpness) * scores, axis=1)).sum()

    best = minimize_scalar(loss, bounds=(-7, 14), method="bounded")
    return float(spread * np.exp(-best.x))
