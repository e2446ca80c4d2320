"""The rows of a table: methods of the paper, their peers, and what a user tries first."""

import re
from collections import namedtuple

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from grassmann_classify import first_tries
from grassmann_classify.words import ROWS, meant, short
from grassmann_sc import checks, estimators, tuning

# penalties of the ridge classifier on codes of unit variance
RIDGE = [0.1, 1, 10, 100, 1000]
# reads: the input that a method takes. "gram", "kernels": Gram matrices, of linear
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
TRIED_FIRST = {  # the features of what a user would try first, by the names of rows
    "frames: SVM, mean of their scores": "frames",
    "mean frame: SVM": "mean",
    "mean and standard deviation: SVM": "moments",
}


def tried_first(settings):
    """The Methods that a user would try first."""
    for name, kind in TRIED_FIRST.items():
        predict = first_tries.predictions(settings.C)
        yield Method(name, kind, estimator_of(name), {}, predict)


def is_tried_first(method):
    """Is it one of TRIED_FIRST, which read features of the frames?"""
    return isinstance(method.reads, str) and method.reads in first_tries.FEATURES


def is_coding(name):
    """Does the row of this name code over labelled sets, so that it can say why?"""
    return re.match("k?g[SL]C, labelled", name) is not None


def most_telling(shares):
    """The row that answers: of rows as good as the best, one that codes, else the best.

    shares: {name: (n,)}, how often each set, or split, was right, NaN where it was not
    asked. As good are rows within chance of the best (tuning.alike).
    """
    alike = {*tuning.alike(shares, tuning.ALIKE)}
    coding = {name for name in alike if is_coding(name)}
    among = [name for name in shares if name in (coding or alike)]
    # a mean of the same shares in another order differs by rounding
    return max(among, key=lambda name: round(float(np.nanmean(shares[name])), 12))


def methods(n_train, smallest, settings):
    """The Methods of the paper and those they are compared with.

    n_train: the number of training sets; smallest: the least number of training sets in
    a fold; settings: grassmann_classify.Settings.
    """
    sparse = tuning.sparse_predictions(settings.lam)
    local = tuning.local_predictions(settings.neighbors)
    support = svm_predictions(settings.C)
    nearest = tuning.nearest_predictions
    for name, reads, predict, among in (
        ("nearest subspace", "gram", nearest, "usual"),
        ("nearest by the inner product", "gram", nearest, "sum"),
        ("SVM on the projection kernel", "gram", support, "sum"),
        ("gSC, labelled sets as atoms", "gram", sparse, "sum"),
        ("gLC, labelled sets as atoms", "gram", local, "sum"),
        ("nearest subspace in a kernel's space", "kernels", nearest, "sum"),
        ("SVM on a kernel's Gram matrix", "kernels", support, "sum"),
        ("kgSC, labelled sets as atoms", "kernels", sparse, "sum"),
        ("kgLC, labelled sets as atoms", "kernels", local, "sum"),
    ):
        if reads == "gram" or settings.kernels:
            yield Method(name, reads, estimator_of(name), {}, predict, among)
    n_atoms = min(settings.atoms, smallest)
    if n_atoms:
        some = sorted({min(n_atoms, number) for number in settings.neighbors})[:3]
        for coding, grid in (
            ("gSC", {"lam": settings.lam[2:6:2] or settings.lam}),
            ("gLC", {"n_neighbors": some}),
        ):
            name = f"{coding}, {n_atoms} learned atoms, ridge"
            learning = estimator_of(name).set_params(
                grassmanndictionary__n_atoms=n_atoms,
                grassmanndictionary__max_iter=settings.iterations,
                grassmanndictionary__random_state=settings.seed,
            )
            grid = {f"grassmanndictionary__{key}": grid[key] for key in grid}
            yield Method(name, "subspaces", learning, grid)


class Nearest(ClassifierMixin, BaseEstimator):
    """The class of the training set with the largest entry in a row of similarities."""

    def fit(self, K, y):
        self.y_ = y
        self.classes_ = np.unique(y)
        return self

    def predict(self, K):
        K = checks.shaped_array(K, "K", ("n", len(self.y_)))
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
SUPPORT = SVC(kernel="precomputed")
LEARNED = " learned atoms, ridge"
ESTIMATORS = {  # of the rows, not fitted, before anything is chosen
    **dict.fromkeys(TRIED_FIRST, first_tries.FramesSVM()),
    "nearest subspace": ONE,
    "nearest by the inner product": ONE,
    "SVM on the projection kernel": SUPPORT,
    "gSC, labelled sets as atoms": GSC,
    "gLC, labelled sets as atoms": GLC,
    "nearest subspace in a kernel's space": ONE,
    "SVM on a kernel's Gram matrix": SUPPORT,
    "kgSC, labelled sets as atoms": GSC,
    "kgLC, labelled sets as atoms": GLC,
    f"gSC,{LEARNED}": on_codes(
        estimators.GrassmannDictionary(1, lam_scale="max"),
    ),
    f"gLC,{LEARNED}": on_codes(estimators.GrassmannDictionary(1, coding="local")),
}


def estimator_of(name, known=ESTIMATORS):
    """A new estimator of the row of this name, or ValueError."""
    key = re.sub(rf" \d+(?={LEARNED}$)", "", name)
    if key not in known:
        raise ValueError(f"there is no row {name!r}; the rows are: {'; '.join(known)}")
    return clone(known[key])


def slug(name):
    """The name in lower case with _ for all that is no letter or digit, for files."""
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


def asked_for(name, first_words):
    """Does a row begin with one of these, by its short name?

    By its full name where no row has a short name that begins so. If none are asked for,
    all rows are.
    """
    return first_words is None or any(
        begins(short(name), first)
        or (
            begins(name, first)
            and not any(begins(one, first) for one, _ in ROWS.values())
        )
        for first in first_words
    )


def begins(name, first):
    """Does a name begin with these words?"""
    return f"{slug(name)}_".startswith(f"{slug(first)}_")


def check_asked(first_words, names):
    """ValueError unless a row of these names begins with each of the words."""
    for first in first_words or []:
        if not any(asked_for(name, [first]) for name in names):
            known = [short(name).lower() for name in names]
            known += [re.split("[ :,]", one)[0] for one in known]
            raise ValueError(
                f"--methods must hold the first words of rows, got {first!r}"
                f"{meant(first.lower(), known)}; the rows are: "
                f"{'; '.join(map(short, names))}"
            )


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
