"""How sure an answer by codes is: p-values of the classes, the share of an unknown
class that they notice, and the temperature of probabilities.

estimators.CodingClassifier calls these functions. K (N, N) is the Gram matrix of its
atoms, index (N,) the class of each, 0..C-1; how: what the atoms are coded with, the
options of core.make_coding. left_out is what left_out_scores gives: the scores (N, C)
of each atom over others by the classifier's rule, and those by "residual".
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

import grassmann_sc as core
from grassmann_sc import tuning

__all__ = []

CALIBRATED = 100  # atoms at most that are coded to choose a temperature
FOLDS = 5


def left_out_scores(K, index, groups, rule, how):
    """Scores (N, C) of each atom, coded over those of no group of its, by two rules."""
    rules = [*dict.fromkeys([rule, "residual"])]
    found = tuning.scores_by_rule(
        K, index, tuning.members_of(groups, len(K)), rules, how
    )
    return found[0], found[-1]


def p_values(left_out, index, rule, codes, K_dd, K_xd):
    """tuning.PValues of queries: of the classes by the rule, of any class by "residual".

    codes (n, N) of the queries come from K_dd (N, N) and K_xd (n, N).
    """
    of_classes, of_any = (
        tuning.p_values(
            known,
            index,
            core.scores_by_class(codes, K_dd, K_xd, index, known.shape[1], one),
        )
        for known, one in zip(left_out, (rule, "residual"))
    )
    return tuning.PValues(of_classes.classes, of_any.known)


def noticed(K, index, explained, coverage, how):
    """The share of atoms that are told as unlike all classes when theirs is left out.

    explained: left_out_scores by "residual".
    """
    n_classes = core.check_integer(index.max() + 1, "the number of classes", 3)
    others = tuning.members_of(index, len(index))
    (scores,) = tuning.scores_by_rule(K, index, others, ["residual"], how)
    told = np.empty(len(index))
    for c in range(n_classes):
        mine = index == c
        told[mine] = tuning.p_values(
            np.delete(explained[~mine], c, axis=1),
            index[~mine],
            np.delete(scores[mine], c, axis=1),
        ).known
    return float(np.mean(told <= tuning.level_of(coverage)))


def temperature(K, index, rule, how):
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
    (scores,) = tuning.scores_by_rule(K, index, folds, [rule], how)
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
