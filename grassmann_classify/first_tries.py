"""What a user would try first: support vector machines on frames, or on their mean.

A set is a few rows of features: its frames, their mean, or mean and standard deviation.
The machine learns from at most MOST_FRAMES rows of each set, the sets of equal weight,
and the mean of a set's scores decides.
"""

import warnings

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from grassmann_sc import frames

SCALES = {"unit length": Normalizer, "standardised": StandardScaler}
MOST_FRAMES = 20  # of a set
# of all sets, to learn from: to choose C and the scale, and with what was chosen
MOST_TO_CHOOSE = 1000
MOST_TO_LEARN = 6000
MOST_STEPS = 20_000  # of a machine; the largest of our data take fewer than 6,000
CACHE = 10  # MB of what libsvm copies of the matrix
AT_ONCE = 100  # sets to answer, for the memory of their matrix


FEATURES = {  # of the rows of a set
    "frames": np.asarray,
    "mean": lambda rows: rows.mean(axis=0, keepdims=True),
    "moments": lambda rows: np.hstack([rows.mean(axis=0), rows.std(axis=0)])[None],
}


def few_features(kind, sets):
    """At most MOST_FRAMES rows of FEATURES of each set."""
    return [few_of([FEATURES[kind](rows)], np.inf)[0] for rows in sets]


class Machine(SVC):
    """A support vector machine on a Gram matrix, as good as it is after MOST_STEPS."""

    def __init__(self, C=1.0):
        super().__init__(
            kernel="precomputed", C=C, cache_size=CACHE, max_iter=MOST_STEPS
        )

    def fit(self, K, y, sample_weight=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return super().fit(K, y, sample_weight)


class FramesSVM(ClassifierMixin, BaseEstimator):
    """A support vector machine with a Gaussian kernel on the rows of sets.

    scale: of SCALES. gamma is scikit-learn's "scale": one over the summed variance.
    """

    def __init__(self, C=1.0, scale="unit length"):
        self.C = C
        self.scale = scale

    def fit(self, sets, y):
        some = few_of(sets, MOST_TO_LEARN)
        self.rows_, self.scaler_, self.gamma_, weights = scaled(some, self.scale)
        K = rbf_kernel(self.rows_, gamma=self.gamma_)
        self.svm_ = Machine(self.C).fit(K, np.repeat(y, [*map(len, some)]), weights)
        self.classes_ = self.svm_.classes_
        return self

    def decision_function(self, sets):
        """The mean score (n, n_classes), or (n,) of two classes, of each set's rows."""
        scores = []
        for first in range(0, len(sets), AT_ONCE):
            some = few_of(sets[first : first + AT_ONCE], np.inf)
            rows = self.scaler_.transform(np.concatenate(some))
            K = rbf_kernel(rows, self.rows_, gamma=self.gamma_)
            scores.append(mean_of_each(self.svm_.decision_function(K), some))
        return np.concatenate(scores)

    def predict(self, sets):
        return self.classes_[best(self.decision_function(sets))]


def few_of(sets, most):
    """At most MOST_FRAMES rows of each set, at even steps, and about most in all.

    Few of the MOST_FRAMES are few of all: a model keeps no more.
    """
    for number in (MOST_FRAMES, int(max(1, min(MOST_FRAMES, most / len(sets))))):
        sets = [
            rows
            if len(rows) <= number
            else rows[frames.pick(range(len(rows)), 1, None, number)]
            for rows in sets
        ]
    return sets


def scaled(sets, scale):
    """(Rows of the sets, their fitted scaler, gamma, weights), the same sum for each set.

    gamma: one over the summed variance, scikit-learn's "scale".
    """
    rows = np.concatenate(sets).astype(float)
    scaler = SCALES[scale]().fit(rows)
    lengths = np.array(list(map(len, sets)))
    weights = np.repeat(lengths.mean() / lengths, lengths)
    rows = scaler.transform(rows)
    gamma = 1 / (rows.shape[1] * max(rows.var(), np.finfo(float).tiny))
    return rows, scaler, gamma, weights


def mean_of_each(scores, sets):
    """The mean of the scores of each set's rows."""
    ends = np.cumsum(list(map(len, sets)))
    return np.stack([part.mean(axis=0) for part in np.split(scores, ends[:-1])])


def best(scores):
    """The index of the best class, by scores as scikit-learn gives them."""
    return (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)


def by_each_C(C, K, y, answer, weights=None):
    """{C: answer(machine)} of machines on the matrix K of a kernel, the largest C first.

    The first is taken where all are as good: a small one answers the largest class.
    """
    least = 1 if weights is None else weights.min()
    answers = {}
    # a larger C changes nothing where no multiplier is at its bound
    bounded = True
    for c in sorted(C):
        if bounded:
            svm = Machine(c).fit(K, y, weights)
            bounded = np.abs(svm.dual_coef_).max() >= c * least
            labels = answer(svm)
        answers[c] = labels
    return dict(reversed(answers.items()))


def kernel_predictions(C):
    """predict for tuning.Search: labels by a machine on a Gram matrix for each C."""

    def predict(K_dd, K_xd, y):
        # checks would take a third of the time
        with config_context(assume_finite=True, skip_parameter_validation=True):
            answers = by_each_C(C, K_dd, y, lambda svm: svm.predict(K_xd))
        return {(("C", c),): labels for c, labels in answers.items()}

    return predict


def predictions(C):
    """predict for tuning.Search: labels by FramesSVM for each C and scale."""

    def predict(sets, queries, y):
        labels = {}
        some = few_of(sets, MOST_TO_CHOOSE)
        tested = few_of(queries, MOST_TO_CHOOSE)
        y_rows = np.repeat(y, list(map(len, some)))
        for scale in SCALES:
            rows, scaler, gamma, weights = scaled(some, scale)
            K = rbf_kernel(rows, gamma=gamma)
            new = scaler.transform(np.concatenate(tested))
            K_q = rbf_kernel(new, rows, gamma=gamma)

            def answer(svm, K_q=K_q):
                scores = mean_of_each(svm.decision_function(K_q), tested)
                return svm.classes_[best(scores)]

            for c, answers in by_each_C(C, K, y_rows, answer, weights).items():
                labels[("C", c), ("scale", scale)] = answers
        return labels

    return predict
