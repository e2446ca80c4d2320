"""scikit-learn estimators over the functions of this project: for Pipeline, GridSearchCV,
cross_val_score.

Thin: an estimator keeps its parameters, checks its input and calls the function that it is named
after. Input is sample-first: subspaces (n, d, p), or a sequence of n arrays of frames for the first
step of a pipeline. Needs scikit-learn and the modules imported below.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

try:
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        TransformerMixin,
    )
    from sklearn.utils import column_or_1d
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("estimators needs scikit-learn: "
                      "pip install 'grassmann_sc_kit[sklearn]'") from error

import grassmann_sc as core
from grassmann_sc import discriminative, files, frames, kernels, learn, streams, subspaces

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's own from Python 3.11 on

__all__ = ["ImageSetSubspaces", "NearestSubspace", "CodingClassifier", "GrassmannDictionary",
           "OnlineGrassmannDictionary", "ProjectionKernel", "KernelLift",
           "DiscriminativeDictionary", "HOG", "LBP", "LBPTOP", "GaitEnergyImage", "BlockHankel",
           "VideoSubspaces"]

CALIBRATED = 100  # atoms at most that are coded to choose a temperature
FOLDS = 5


# -------------------------------------------------------------------------- frames to subspaces


class SetsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of the first steps of a pipeline, whose input are sets of frames."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def __sklearn_tags__(self):
        return tags_of_arrays(super().__sklearn_tags__())

    def set_output(self, *, transform: str | None = None) -> Self:
        """Nothing to set: no output is a table. For pipelines that set all outputs."""
        return self


class SubspaceMaker(SetsTransformer):
    """Base of those that end in subspaces, which bases_of(X) makes; blocks frames are stacked in a
    basis vector."""

    @property
    def blocks(self) -> int:
        """Frames in a basis vector."""
        return 1

    def fit(self, X: core.Sets, y: object = None) -> Self:
        """Record d, the number of pixels or features of a frame."""
        self.fit_transform(first_of(X))
        return self

    def fit_transform(self, X: core.Sets, y: object = None) -> np.ndarray:
        """Record d; bases (n, d, p)."""
        X = self.bases_of(X)
        self.n_features_in_ = X.shape[1] // self.blocks
        return X

    def transform(self, X: core.Sets) -> np.ndarray:
        """Bases (n, d, p)."""
        check_is_fitted(self)
        X = self.bases_of(X)
        d = X.shape[1] // self.blocks
        if d != self.n_features_in_:
            raise ValueError(f"X must hold frames of d = {self.n_features_in_}, as in fit, got {d}")
        return X

    @property
    def _n_features_out(self):
        return self.blocks * self.n_features_in_


class ImageSetSubspaces(SubspaceMaker):
    """Sets of frames to subspaces (n, d, p): subspaces.from_sets as the first step of a pipeline.

    p: dimension of the subspaces, 1 <= p <= d; each set needs p independent frames, see rank.
    center, unit_variance, rank ("raise", "warn", "pad"): as in subspaces. X is a sequence of n
    arrays (n_frames_i, d) or (n_frames_i, height, width), or one array of them. fit learns d alone.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import ImageSetSubspaces
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.random((n_frames, 6, 8)) for n_frames in (5, 9, 7)]  # frames of 6 x 8 pixels
    >>> ImageSetSubspaces(p=3).fit_transform(sets).shape
    (3, 48, 3)
    """

    def __init__(self, p: int, center: bool = False, unit_variance: bool = False,
                 rank: str = "raise") -> None:
        self.p = p
        self.center = center
        self.unit_variance = unit_variance
        self.rank = rank

    def bases_of(self, X: core.Sets) -> np.ndarray:
        """Bases (n, d, p) as the parameters say."""
        return subspaces.from_sets(X, self.p, center=self.center, unit_variance=self.unit_variance,
                                   rank=self.rank)


class KernelChoice:
    """The kernel on frames that the parameters kernel, gamma, gamma_scale, degree and coef0 say."""

    kernel: Any  # a name, a pair of name and number, or a function
    gamma: float | None
    gamma_scale: str | None
    degree: int
    coef0: float

    def chosen_kernel(self, X: core.Sets) -> core.Kernel:
        """A callable k(A, B) for the sets of frames X; sets gamma_ of "rbf"."""
        if callable(self.kernel):
            return self.kernel
        name = self.kernel
        value = None
        if isinstance(name, tuple) and len(name) == 2 and name[0] in ("rbf", "polynomial"):
            name, value = name
        core.check_choice(name, "kernel", "rbf", "polynomial", "linear")
        core.check_choice(self.gamma_scale, "gamma_scale", None, "median")
        if name == "linear":
            return kernels.linear()
        if name == "polynomial":
            return kernels.polynomial(self.degree if value is None else value, self.coef0)
        value = self.gamma if value is None else value
        self.gamma_ = 1.0 if value is None else core.check_number(value, "gamma", above=0)
        if value is None or self.gamma_scale == "median":
            self.gamma_ *= kernels.median_gamma(X)
        return kernels.rbf(self.gamma_)


class KernelLift(KernelChoice, SetsTransformer):
    """Sets of frames to subspaces of a kernel's feature space, in coordinates (n, r, p):
    kernels.Lift in a pipeline.

    kernel: "rbf" (uses gamma and gamma_scale), "polynomial" (degree and coef0), "linear", or any
    k(A, B) on rows; ("rbf", gamma) and ("polynomial", degree) say the number too, so that one grid
    spans kinds of kernels: ["linear", ("polynomial", 2), ("rbf", 0.5), ("rbf", 2)]. gamma: > 0, or
    None for kernels.median_gamma of the training sets; with gamma_scale="median" in units of that,
    so that one grid suits any data. p: dimension of the subspaces; each set needs p frames
    independent in feature space. n_landmarks, method, rng: as in kernels.Lift; a Generator is
    copied, so that each fit draws the same.

    With CodingClassifier it is kgSC and kgLC, with GrassmannDictionary kgDL. lift_ and gamma_ tell
    of the fit.

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from grassmann_sc.estimators import CodingClassifier, KernelLift
    >>> sets = np.random.default_rng(0).standard_normal((6, 8, 10))  # six sets of eight frames
    >>> lift = KernelLift("rbf", p=2, gamma=1.0, gamma_scale="median")
    >>> kgsc = make_pipeline(lift, CodingClassifier(lam=0.1))
    >>> kgsc.fit(sets, ["ape", "bee"] * 3).predict(sets[:2]).tolist()
    ['ape', 'bee']
    """

    def __init__(self, kernel: str | tuple | core.Kernel = "rbf", gamma: float | None = None,
                 p: int = 1, n_landmarks: int | None = None, *, gamma_scale: str | None = None,
                 degree: int = 2, coef0: float = 1.0, method: str = "kmeans++",
                 rng: core.Rng = None) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.p = p
        self.n_landmarks = n_landmarks
        self.gamma_scale = gamma_scale
        self.degree = degree
        self.coef0 = coef0
        self.method = method
        self.rng = rng

    def fit(self, X: core.Sets, y: object = None) -> Self:
        """Choose landmarks among the frames of X, n arrays (n_frames_i, d) or one array of them."""
        lift = kernels.Lift(self.chosen_kernel(X), self.p, n_landmarks=self.n_landmarks,
                            method=self.method, rng=own_rng(self.rng))
        self.lift_ = lift.fit(X)
        self.n_features_in_ = self.lift_.landmarks_.shape[1]
        return self

    def transform(self, X: core.Sets) -> np.ndarray:
        """Orthonormal bases (n, r, p)."""
        check_is_fitted(self)
        return self.lift_.transform(X)

    @property
    def _n_features_out(self):
        return self.lift_.dimension_


# ---------------------------------------------------------------------------------- classifiers


class SubspaceEstimator(BaseEstimator):
    """Base of the estimators on subspaces X (n, d, p): its tags, and the check of X at the door."""

    def __sklearn_tags__(self):
        return tags_of_arrays(super().__sklearn_tags__())

    def check_subspaces(self, X: ArrayLike, fit: bool = False) -> np.ndarray:
        """X as checked bases; fit records their d, every other method demands it."""
        if fit:
            X = core.check_dictionary(X, "X")
            self.n_features_in_ = X.shape[1]
            return X
        check_is_fitted(self)
        X = core.check_bases(X, "X")
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have d = {self.n_features_in_}, as in fit, got {X.shape[1]}")
        return X


class NearestSubspace(ClassifierMixin, SubspaceEstimator):
    """The class that most of the n_neighbors nearest training subspaces have, the first in a tie.

    metric: "chordal", the paper's ||X^ - Y^||_F; "geodesic", the norm of the principal angles;
    "projection", the norm of their sines, from the projection kernel alone: in the same order as
    "chordal", but faster, and only to about 1e-8 near 0. n_neighbors: in 1..n.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import NearestSubspace
    >>> X = random_subspaces(3, 10, 2, rng=0)
    >>> NearestSubspace().fit(X, ["ape", "bee", "cat"]).predict(X[::-1]).tolist()
    ['cat', 'bee', 'ape']
    """

    def __init__(self, metric: str = "chordal", n_neighbors: int = 1) -> None:
        self.metric = metric
        self.n_neighbors = n_neighbors

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Keep the subspaces X (n, d, p) and their labels y (n,)."""
        core.check_choice(self.metric, "metric", "chordal", "geodesic", "projection")
        X = self.check_subspaces(X, fit=True)
        core.check_integer(self.n_neighbors, "n_neighbors", 1, len(X))
        self.classes_, self.index_ = classes_of(y, len(X))
        self.subspaces_ = X
        return self

    def distances(self, X: ArrayLike) -> np.ndarray:
        """Distances (n, n_train) of the metric from X to the training subspaces."""
        return self._distances(X)[0]

    def _distances(self, X):
        """Distances (n, n_train), and what is larger the nearer, without cancellation: far
        subspaces differ in inner products that distances lose to rounding."""
        X = self.check_subspaces(X)
        same = core.rounding(X.dtype)  # less than this apart are subspaces only by rounding
        if self.metric == "geodesic":
            distances = core.geodesic_distance(X, self.subspaces_)
            return distances, -np.maximum(distances, same)
        X, Y = core.same_dimension(X, self.subspaces_, ("X", "the dictionary"))
        K = core.bases_gram(X, Y)
        if self.metric == "projection":
            square = (X.shape[2] + Y.shape[2]) / 2 - K
            return np.sqrt(np.maximum(square, 0)), K
        square = core.chordal_squares(X, Y, K)
        near = K + 1 / np.maximum(square, same**2)
        return np.sqrt(square), np.where(square < core.NEAR, near, K)

    def kneighbors(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(distances, indices), (n, n_neighbors) each, of the nearest training subspaces in order;
        ties, to rounding, to the lower index."""
        distances, nearness = self._distances(X)
        count = core.check_integer(self.n_neighbors, "n_neighbors", 1, len(self.subspaces_))
        nearest = core.nearest_atoms(nearness, count)
        distances = np.take_along_axis(distances, nearest, axis=1)
        order = distances.argsort(axis=1, kind="stable")
        in_order = np.take_along_axis(nearest, order, axis=1)
        return np.take_along_axis(distances, order, axis=1), in_order

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Shares (n, n_classes) of the classes among the nearest subspaces."""
        _, nearest = self.kneighbors(X)
        votes = self.index_[nearest]  # (n, n_neighbors)
        return (votes[:, :, None] == np.arange(len(self.classes_))).mean(axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Labels (n,)."""
        winners = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winners]


class _CodingMixin:
    """Codes as the parameters coding, lam, lam_scale and n_neighbors say."""

    def _check_coding(self):
        core.check_choice(self.coding, "coding", "sparse", "local")
        core.check_choice(self.lam_scale, "lam_scale", None, "max")
        if self.coding == "local":
            return
        core.check_number(self.lam, "lam", least=0)

    def _codes(self, K_dd, K_xd, norm2, lam, lam_scale=None):
        """Codes (n, N) from Gram matrices that are checked already."""
        if self.coding == "sparse":
            code = core.coding_step(K_xd.shape, K_xd.dtype, lam, None, lam_scale=lam_scale)
        else:
            n_neighbors = min(self.n_neighbors, len(K_dd))
            code = core.coding_step(K_xd.shape, K_xd.dtype, None, n_neighbors)
        return code(K_dd, K_xd, norm2)


class CodingClassifier(_CodingMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin,
                       ClassifierMixin, SubspaceEstimator):
    """Codes a query over labelled subspaces and takes the class that explains it best.

    fit takes the dictionary: all training sets, or atoms learned for each class, with their labels.

    coding: "sparse" (gSC, uses lam and lam_scale) or "local" (gLC, uses n_neighbors). lam: >= 0,
    the paper's lambda; with lam_scale="max" in units of each query's lam_max, so that one grid in
    [0, 1] suits any data. n_neighbors: in 1..N atoms.
    rule: a class's score is, "residual": ||X^||^2 - ||X^ - sum_{j in class} y_j D_j^||_F^2, the
    paper's; "sum" or "max" of its coefficients y_j, the paper's alternatives. The highest score
    wins; grassmann_sc.class_scores says what ties, absent classes and zero codes have.
    kernel: "projection", X holds subspaces; "precomputed", X holds inner products instead, the
    symmetric (N, N) of the atoms in fit and (n, N) of queries with atoms elsewhere, as
    ProjectionKernel gives them. All must have the norm of the atoms, a constant diagonal.
    GridSearchCV on the whole Gram matrix then computes it once for all candidates.
    calibrate: whether fit chooses temperature_, for predict_proba, by the log-loss of at most 100
    of the atoms, each coded over those outside its fold; else, or where no class has two atoms, it
    is 1.

    See also grassmann_sc.classify, KernelLift for kgSC and kgLC.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import CodingClassifier
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> model = CodingClassifier(lam=0.1, lam_scale="max").fit(X, ["ape", "bee"] * 3)
    >>> model.predict(X).tolist(), model.predict_proba(X).shape
    (['ape', 'bee', 'ape', 'bee', 'ape', 'bee'], (6, 2))
    """

    def __init__(self, coding: str = "sparse", lam: float = 0.1, n_neighbors: int = 5,
                 rule: str = "residual", lam_scale: str | None = None, kernel: str = "projection",
                 calibrate: bool = True) -> None:
        self.coding = coding
        self.lam = lam
        self.n_neighbors = n_neighbors
        self.rule = rule
        self.lam_scale = lam_scale
        self.kernel = kernel
        self.calibrate = calibrate

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.kernel == "precomputed":
            tags.input_tags.two_d_array = True
            tags.input_tags.three_d_array = False
            tags.input_tags.pairwise = True
        return tags

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Take the subspaces X (N, d, p), or their Gram matrix (N, N), as atoms with labels y."""
        self._check_coding()
        core.check_choice(self.rule, "rule", *core.RULES)
        core.check_choice(self.kernel, "kernel", "projection", "precomputed")
        if self.kernel == "precomputed":
            self.gram_ = _check_atom_gram(X)
            self.n_features_in_ = len(self.gram_)
        else:
            self.atoms_ = self.check_subspaces(X, fit=True)
            self.gram_ = core.bases_gram(self.atoms_)
        if self.coding == "local":
            core.check_integer(self.n_neighbors, "n_neighbors", 1, len(self.gram_))
        self.classes_, self.index_ = classes_of(y, len(self.gram_))
        calibrate = core.check_flag(self.calibrate, "calibrate")
        self.temperature_ = self._fitted_temperature() if calibrate else 1.0
        return self

    def _fitted_temperature(self):
        """The T of least log-loss of softmax(scores / T) on atoms of classes that have several."""
        several = np.bincount(self.index_)[self.index_] > 1
        candidates = np.flatnonzero(several)
        if len(candidates) == 0:
            return 1.0
        few = np.linspace(0, len(candidates) - 1, min(len(candidates), CALIBRATED)).astype(int)
        some = candidates[np.argsort(self.index_[candidates], kind="stable")][few]
        scores = np.empty((len(some), len(self.classes_)))
        for f in range(min(FOLDS, len(some))):  # neighbours, of one class, are in different folds
            mine = some[f::FOLDS]
            rest = np.setdiff1d(np.arange(len(self.gram_)), mine)
            K_dd = np.ascontiguousarray(self.gram_[np.ix_(rest, rest)])
            K_xd = np.ascontiguousarray(self.gram_[np.ix_(mine, rest)])
            norm2 = self.gram_.diagonal()[mine].astype(np.float64)
            codes = self._codes(K_dd, K_xd, norm2, self.lam, self.lam_scale)
            scores[f::FOLDS] = self._scores_of(codes, K_dd, K_xd, self.index_[rest])
        return _temperature(scores, self.index_[some])

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, N); of an atom, itself: the codes of the training sets say nothing about those
        of others."""
        K_dd, K_xd, norm2 = self._grams(X)
        return self._codes(K_dd, K_xd, norm2, self.lam, self.lam_scale)

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Scores (n, n_classes) by the rule; of two classes (n,), the second's less the first's."""
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """softmax(scores / temperature_), (n, n_classes)."""
        scores = self._scores(X)
        probabilities = softmax(scores / self.temperature_, axis=1)
        return core.let_win(probabilities, scores.argmax(axis=1))  # of equal ones the predicted

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Labels (n,)."""
        winners = self._scores(X).argmax(axis=1)
        return self.classes_[winners]

    def _scores(self, X):
        K_dd, K_xd, norm2 = self._grams(X)
        codes = self._codes(K_dd, K_xd, norm2, self.lam, self.lam_scale)
        core.warn_zero_codes(core.lam_max(K_xd[~codes.any(axis=1)]), len(codes))
        return self._scores_of(codes, K_dd, K_xd, self.index_)

    def _scores_of(self, codes, K_dd, K_xd, index):
        """Scores (n, n_classes) of codes over atoms of the classes index (N,)."""
        return core.scores_by_class(codes, K_dd, K_xd, index, len(self.classes_), self.rule)

    def _grams(self, X):
        """Checked inner products (N, N) of the atoms, (n, N) of queries with atoms, and norm2."""
        check_is_fitted(self)
        if self.kernel == "projection":
            return _grams_of_queries(self.check_subspaces(X), self.atoms_, self.gram_)
        X = core.finite_array(X, "X")
        if X.ndim != 2 or X.shape[1] != len(self.gram_):
            raise ValueError(f"X must have shape (n, {len(self.gram_)}), one column an atom, got "
                             f"{X.shape}")
        return core.check_grams(self.gram_, X, self.gram_[0, 0])

    @property
    def _n_features_out(self):
        return len(self.gram_)


class DiscriminativeDictionary(ClassifierMixin, SubspaceEstimator):
    """A few atoms for each class, learned to explain it and no other; the class whose atoms explain
    a query best (discriminative.discriminative_atoms).

    atoms_per_class, beta, ridge, n_iter, tol, rng: as there; a Generator is copied, so that each
    fit draws the same. components_ (N, d, p), labels_ (N,), costs_, n_iter_ (iterations done) and
    beta_ (in use) tell of the learning.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import DiscriminativeDictionary
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> model = DiscriminativeDictionary(2, n_iter=5, rng=0).fit(X, ["ape", "bee"] * 4)
    >>> model.components_.shape, model.labels_.tolist()
    ((4, 10, 2), ['ape', 'ape', 'bee', 'bee'])
    """

    def __init__(self, atoms_per_class: int | Mapping = 2, beta: float | None = None,
                 ridge: float = 0.1, n_iter: int = 100, tol: float = 1e-5,
                 rng: core.Rng = None) -> None:
        self.atoms_per_class = atoms_per_class
        self.beta = beta
        self.ridge = ridge
        self.n_iter = n_iter
        self.tol = tol
        self.rng = rng

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Learn from subspaces X (n, d, p) with labels y (n,)."""
        X = self.check_subspaces(X, fit=True)
        self.classes_, index = classes_of(y, len(X))
        learned = discriminative.discriminative_atoms(
            X, self.classes_[index], self.atoms_per_class, beta=self.beta, ridge=self.ridge,
            n_iter=self.n_iter, tol=self.tol, rng=own_rng(self.rng))
        self.components_ = learned.atoms
        self.labels_ = learned.labels
        self.costs_ = learned.costs
        self.n_iter_ = learned.n_iter
        self.beta_ = learned.beta
        return self

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """What the classes explain, p less their errors (n, n_classes); of two (n,), the second's
        less the first's."""
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """softmax(-beta_ errors) (n, n_classes): what the learning fits, on the training set."""
        scores = self._scores(X)
        return softmax(self.beta_ * scores, axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Labels (n,)."""
        winners = self._scores(X).argmax(axis=1)
        return self.classes_[winners]

    def _scores(self, X):
        X = self.check_subspaces(X)
        X, D = core.same_dimension(X, self.components_, ("X", "the dictionary"))
        _, index = core.check_labels(self.labels_, len(D))
        return discriminative.ridge_explained(X, D, index, len(self.classes_), self.ridge)


# -------------------------------------------------------------------------- dictionary and kernel


class DictionaryLearner(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SubspaceEstimator):
    """Base of what learns atoms, components_, and codes over them."""

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from subspaces X (n, d, p), n >= n_atoms unless init holds atoms."""
        self._learn(X)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """Learn, and give the codes (n, n_atoms) that learning ended with."""
        return self._learn(X)

    @property
    def _n_features_out(self):
        return len(self.components_)


class GrassmannDictionary(_CodingMixin, DictionaryLearner):
    """Learns a dictionary of n_atoms subspaces (learn.gdl) and codes over it: the codes are
    features for any estimator.

    coding, lam, n_neighbors: as in CodingClassifier. lam_scale: None, or "max": one lambda for all,
    lam times the median lam_max of the training set over the first atoms. init, n_iter, tol, rng:
    as in learn.gdl; a Generator is copied, so that each fit draws the same.

    components_ (n_atoms, d, p), costs_ and n_iter_ (iterations done) tell of the learning, lam_ is
    the lambda in use.

    See also learn.gdl; KernelLift before it makes it kgDL.

    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import GrassmannDictionary
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> pipeline = make_pipeline(GrassmannDictionary(4, n_iter=3, rng=0), RidgeClassifier())
    >>> pipeline.fit(X, ["ape", "bee"] * 4)[0].components_.shape
    (4, 10, 2)
    """

    def __init__(self, n_atoms: int, coding: str = "sparse", lam: float = 0.1, n_neighbors: int = 5,
                 lam_scale: str | None = None, init: str | ArrayLike = "kmeans++", n_iter: int = 20,
                 tol: float = 1e-6, rng: core.Rng = None) -> None:
        self.n_atoms = n_atoms
        self.coding = coding
        self.lam = lam
        self.n_neighbors = n_neighbors
        self.lam_scale = lam_scale
        self.init = init
        self.n_iter = n_iter
        self.tol = tol
        self.rng = rng

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, n_atoms) over components_."""
        X = self.check_subspaces(X)
        K_dd, K_xd, norm2 = _grams_of_queries(X, self.components_, self.gram_)
        return self._codes(K_dd, K_xd, norm2, self.lam_)

    def _coding_options(self):
        """How learning codes, as learn takes it."""
        self._check_coding()
        if self.coding == "sparse":
            return {"lam": self.lam, "lam_scale": self.lam_scale}
        return {"n_neighbors": self.n_neighbors}

    def _learn(self, X):
        coding = self._coding_options()
        X = self.check_subspaces(X, fit=True)
        learned = learn.gdl(X, self.n_atoms, **coding, init=self.init, n_iter=self.n_iter,
                            tol=self.tol, rng=own_rng(self.rng))
        self.components_ = learned.atoms
        self.costs_ = learned.costs
        self.n_iter_ = learned.n_iter
        self.lam_ = learned.lam
        self.gram_ = core.bases_gram(self.components_)
        return learned.codes


class OnlineGrassmannDictionary(GrassmannDictionary):
    """GrassmannDictionary learned from batches (streams.OnlineGDL), in memory that does not grow:
    partial_fit on each batch of a stream, or fit on an array in random batches.

    n_atoms, coding, lam, n_neighbors, lam_scale: as in GrassmannDictionary, with the lam_max of the
    first n_atoms samples at least. init, rank, forgetting, rng: as in streams.OnlineGDL; a
    Generator is copied, so that each fit draws the same. batch_size, n_epochs: of fit alone.

    learner_ is the OnlineGDL, to save, to merge or to resume; components_ (n_atoms, d, p) and lam_
    are there once n_atoms samples have come, n_iter_ counts updates.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import OnlineGrassmannDictionary
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> model = OnlineGrassmannDictionary(4, rng=0).partial_fit(X[:30]).partial_fit(X[30:])
    >>> model.components_.shape, model.n_iter_
    ((4, 8, 2), 2)
    """

    def __init__(self, n_atoms: int, coding: str = "sparse", lam: float = 0.1, n_neighbors: int = 5,
                 lam_scale: str | None = None, init: str | ArrayLike = "kmeans++",
                 batch_size: int = 256, n_epochs: int = 1, rank: int | None = None,
                 forgetting: float = 2.0, rng: core.Rng = None) -> None:
        self.n_atoms = n_atoms
        self.coding = coding
        self.lam = lam
        self.n_neighbors = n_neighbors
        self.lam_scale = lam_scale
        self.init = init
        self.batch_size = batch_size
        self.n_epochs = n_epochs
        self.rank = rank
        self.forgetting = forgetting
        self.rng = rng

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn anew from subspaces X (n, d, p), n >= n_atoms unless init holds atoms.

        A memmap, or a zarr, HDF5 or Dask array, is read in pieces.
        """
        if files.is_stored(X):
            X = files.StoredBases(X, "X")
            self.n_features_in_ = X.shape[1]
        else:
            X = self.check_subspaces(X, fit=True)
        self.learner_ = self._new_learner()
        self.learner_.fit(X, self.batch_size, self.n_epochs)
        return self._take_atoms()

    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from one more batch X (n, d, p)."""
        first = not hasattr(self, "learner_")
        X = self.check_subspaces(X, fit=first)
        if first:
            self.learner_ = self._new_learner()
        self.learner_.partial_fit(X)
        return self._take_atoms()

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """Learn anew; codes (n, n_atoms) over the atoms."""
        return self.fit(X).transform(X)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, n_atoms) over components_."""
        check_is_fitted(self, "components_")
        return super().transform(X)

    def _new_learner(self):
        return streams.OnlineGDL(self.n_atoms, **self._coding_options(), init=self.init,
                               rank=self.rank, forgetting=self.forgetting, rng=own_rng(self.rng))

    def _take_atoms(self):
        if self.learner_.atoms is not None:
            self.components_ = self.learner_.atoms
            self.gram_ = core.bases_gram(self.components_)
            self.lam_ = self.learner_.lam
            self.n_iter_ = self.learner_.n_updates
        return self


class ProjectionKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SubspaceEstimator):
    """Gram rows ||X_i^T D_j||_F^2 against the training subspaces D (core's projection_kernel).

    For SVC(kernel="precomputed"), CodingClassifier(kernel="precomputed") and every other kernel
    method.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import ProjectionKernel
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> model = make_pipeline(ProjectionKernel(), SVC(kernel="precomputed", C=100))
    >>> model.fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Keep the subspaces X (N, d, p)."""
        self.subspaces_ = self.check_subspaces(X, fit=True)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """The symmetric Gram matrix (N, N), for half the price of transform."""
        return core.bases_gram(self.fit(X).subspaces_)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Rows (n, N), in [0, p]."""
        return _gram_rows(self.check_subspaces(X), self.subspaces_)

    @property
    def _n_features_out(self):
        return len(self.subspaces_)


# ------------------------------------------------------------------------ first steps on raw frames


class RowsMaker(SetsTransformer):
    """Base of those from sets of frames to sets of rows, which rows_of(frames) makes of one."""

    def fit(self, X: core.Sets, y: object = None) -> Self:
        """Record n_features_out_, the length d of a row; nothing is learned."""
        rows = self._rows(first_of(X))
        if not rows:
            raise ValueError("X must hold at least one set of frames, got none")
        self.n_features_out_ = rows[0].shape[1]
        return self

    def transform(self, X: core.Sets) -> list[np.ndarray]:
        """A list of n arrays (n_rows_i, d)."""
        check_is_fitted(self)
        rows = self._rows(X)
        for i, some in enumerate(rows):
            if some.shape[1] != self.n_features_out_:
                raise ValueError(f"X must give rows of d = {self.n_features_out_}, as in fit: "
                                 f"X[{i}] gives {some.shape[1]}")
        return rows

    def _rows(self, X):
        if not np.iterable(X) or isinstance(X, (str, bytes)):
            raise TypeError(f"X must be a sequence of sets of frames, got {X!r}")
        rows = []
        for i, of_set in enumerate(X):
            try:
                rows.append(self.rows_of(of_set))
            except (TypeError, ValueError) as error:
                raise type(error)(f"X[{i}]: {error}") from None
        return rows

    @property
    def _n_features_out(self):
        return self.n_features_out_


class HOG(RowsMaker):
    """Histograms of oriented gradients, a row a frame: frames.hog, whose source it names.

    orientations, pixels_per_cell, cells_per_block, block_norm, transform_sqrt: as in
    skimage.feature.hog. Frames are (height, width).

    >>> import numpy as np
    >>> from grassmann_sc.estimators import HOG
    >>> [rows.shape for rows in HOG().fit_transform(np.zeros((2, 5, 24, 32)))]  # two sets
    [(5, 162), (5, 162)]
    """

    def __init__(self, orientations: int = 9, pixels_per_cell: tuple[int, int] = (8, 8),
                 cells_per_block: tuple[int, int] = (3, 3), block_norm: str = "L2-Hys",
                 transform_sqrt: bool = False) -> None:
        self.orientations = orientations
        self.pixels_per_cell = pixels_per_cell
        self.cells_per_block = cells_per_block
        self.block_norm = block_norm
        self.transform_sqrt = transform_sqrt

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Descriptors (n_frames, d) of one set of frames."""
        return frames.hog(of_set, **self.get_params())


class LBP(RowsMaker):
    """Histograms of local binary patterns, a row a frame: frames.lbp, whose parameters it has.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import LBP
    >>> sets = np.zeros((2, 5, 24, 32), np.uint8)  # two of five frames
    >>> [rows.shape for rows in LBP().fit_transform(sets)]
    [(5, 59), (5, 59)]
    """

    def __init__(self, n_points: int = 8, radius: float = 1, grid: tuple[int, int] = (1, 1),
                 method: str = "nri_uniform") -> None:
        self.n_points = n_points
        self.radius = radius
        self.grid = grid
        self.method = method

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Descriptors (n_frames, d) of one set of frames."""
        return frames.lbp(of_set, **self.get_params())


class LBPTOP(RowsMaker):
    """LBP from three orthogonal planes, a row a sub-video: frames.lbp_top, whose parameters it has.

    Sub-videos of length frames, a new one every step: a video then has rows enough for a subspace.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import LBPTOP
    >>> videos = np.zeros((2, 12, 8, 8))
    >>> [rows.shape for rows in LBPTOP(length=10, step=1).fit_transform(videos)]
    [(3, 177), (3, 177)]
    """

    def __init__(self, length: int | None = None, step: int | None = None,
                 radii: Sequence[int] = (1, 1, 1), uniform: bool = True) -> None:
        self.length = length
        self.step = step
        self.radii = radii
        self.uniform = uniform

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Descriptors (n_sub_videos, d) of one video."""
        return frames.lbp_top(of_set, **self.get_params())


class GaitEnergyImage(RowsMaker):
    """Mean silhouettes of walks, a row a walk: frames.gait_energy_image, whose parameters it has.

    A set is a list of walks (n_frames, height, width), of several views say, or one walk.

    >>> from grassmann_sc.estimators import GaitEnergyImage
    >>> walk = [[[0, 1]], [[1, 1]]]  # two frames of two pixels
    >>> GaitEnergyImage(align=False).fit_transform([walk])
    [array([[0.5, 1. ]])]
    """

    def __init__(self, size: tuple[int, int] | None = None, align: bool = True) -> None:
        self.size = size
        self.align = align

    def rows_of(self, of_set: Any) -> np.ndarray:
        """Descriptors (n_walks, height width) of one set of walks."""
        several = isinstance(of_set, (list, tuple)) and of_set and np.ndim(of_set[0]) == 3
        walks = of_set if several else [of_set]
        return np.concatenate([frames.gait_energy_image(walk, **self.get_params())
                               for walk in walks])


class BlockHankel(RowsMaker):
    """Frames stacked with those that follow them: subspaces.block_hankel, a row a stack.

    n_blocks: frames in a stack, >= 1; 1 leaves the frames as they are, and the order of frames
    plays no part in their subspace. X: sets of frames, or of descriptors, in order of time.

    >>> from grassmann_sc.estimators import BlockHankel
    >>> BlockHankel(n_blocks=2).fit_transform([[[1.0], [2.0], [3.0]]])  # a video of three frames
    [array([[1., 2.],
           [2., 3.]])]
    """

    def __init__(self, n_blocks: int = 2) -> None:
        self.n_blocks = n_blocks

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Rows (n_frames - n_blocks + 1, n_blocks d) of one video; a view."""
        return subspaces.block_hankel(of_set, self.n_blocks)


class VideoSubspaces(SubspaceMaker):
    """Videos to subspaces (n, n_blocks d, n_states) of ARMA models: subspaces.from_videos, whose
    parameters it has, as the first step of a pipeline.

    X: n videos, frames in order of time, as in ImageSetSubspaces. fit learns d alone.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import VideoSubspaces
    >>> videos = np.random.default_rng(0).random((4, 20, 6, 8))  # four of 20 frames
    >>> VideoSubspaces(n_states=3, n_blocks=2).fit_transform(videos).shape
    (4, 96, 3)
    """

    def __init__(self, n_states: int = 5, n_blocks: int = 3, stabilize: bool = False,
                 center: bool = False, unit_variance: bool = False, rank: str = "raise") -> None:
        self.n_states = n_states
        self.n_blocks = n_blocks
        self.stabilize = stabilize
        self.center = center
        self.unit_variance = unit_variance
        self.rank = rank

    @property
    def blocks(self) -> int:
        """Frames in a basis vector."""
        return core.check_integer(self.n_blocks, "n_blocks", 1)

    def bases_of(self, X: core.Sets) -> np.ndarray:
        """Bases (n, n_blocks d, n_states) as the parameters say."""
        return subspaces.from_videos(X, **self.get_params())


# ------------------------------------------------------------------------- what estimators share


def first_of(X):
    """The first set alone, as a sequence; TypeError if X is none."""
    try:
        return X[:1]
    except (TypeError, IndexError, KeyError):
        raise TypeError(f"X must be a sequence of sets of frames, got {X!r}") from None


def tags_of_arrays(tags):
    """scikit-learn's tags of an estimator whose input has three axes."""
    tags.input_tags.two_d_array = False
    tags.input_tags.three_d_array = True
    return tags


def _gram_rows(X, D):
    """projection_kernel (n, N) of subspaces that are checked already."""
    return core.bases_gram(*core.same_dimension(X, D, ("X", "the dictionary")))


def _grams_of_queries(X, D, K_dd):
    """(K_dd, K_xd, norm2), of one type, of checked subspaces; K_dd is the Gram matrix of D."""
    K_xd = _gram_rows(X, D)
    return K_dd.astype(K_xd.dtype, copy=False), K_xd, np.full(len(X), float(X.shape[2]))


def _temperature(scores, own):
    """The T > 0 of least log-loss of softmax(scores / T) for the classes own (n,).

    The truth is taken to be 1 / (n + 2) short of certain, so that scores without an error do not
    make T zero. Source: Platt 1999, for the two classes of a support vector machine.
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


def own_rng(rng):
    """A copy of a Generator, so that each fit draws the same; any other seed as it is."""
    return copy.deepcopy(rng) if isinstance(rng, np.random.Generator) else rng


def _check_atom_gram(K):
    """K as the Gram matrix of a dictionary whose members have one norm."""
    K = core.finite_array(K, "X")
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError("X must be a square matrix (N, N) of inner products, for "
                         f"kernel='precomputed', got shape {K.shape}")
    low = K.diagonal().min()
    high = K.diagonal().max()
    if not (low > 0 and high - low <= 1e-3 * high):
        raise ValueError("X must have a constant positive diagonal, the squared norm p, got "
                         f"{low:.4g} to {high:.4g}")
    asymmetry = np.abs(K - K.T).max()
    if asymmetry > (1e-4 if K.dtype == np.float32 else 1e-8) * high:
        raise ValueError("X must be symmetric, for kernel='precomputed', got entries that differ "
                         f"by {asymmetry:.2g} across the diagonal")
    return K


def classes_of(y, n):
    """(classes, index of each label among them) of at least two classes, one label a sample."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: give a label to "
                         "each of the subspaces")
    if np.ma.is_masked(y):
        raise ValueError("y must have no masked entries, got a masked array")
    try:
        y = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must be one label a subspace, (n,), got {y!r}: {error}") from None
    if len(y) != n:
        raise ValueError(f"y must have length {n}, one label a subspace, got {len(y)}")
    if y.dtype.kind == "f" and not (y == np.floor(y)).all():  # scikit-learn's check warns of others
        raise ValueError("y must hold classes. Unknown label type: continuous numbers such as "
                         f"{y[y != np.floor(y)][0]}")
    classes, index = core.check_labels(y, n)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got one class: {classes[0]!r}")
    return classes, index
