"""scikit-learn estimators over the functions of this project: for Pipeline,
GridSearchCV, cross_val_score.

Thin: an estimator keeps its parameters, checks its input and calls the function that it
is named after. Input is sample-first: subspaces (n, d, p), or a sequence of n arrays of
frames for the first step of a pipeline. Needs scikit-learn and the modules imported
below.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, softmax

try:
    from sklearn import base
    from sklearn.cluster import SpectralClustering
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ImportError as error:
    raise ImportError(
        "estimators needs scikit-learn: pip install scikit-learn"
    ) from error

import grassmann_sc as core
from grassmann_sc import (
    calibration,
    discriminative,
    frames,
    kernels,
    learn,
    shared,
    subspaces,
    tuning,
)
from grassmann_sc.large import streams
from grassmann_sc.large.codes import StoredBases, is_stored

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's own from Python 3.11 on

__all__ = [
    "ImageSetSubspaces",
    "NearestSubspace",
    "CodingClassifier",
    "GrassmannDictionary",
    "OnlineGrassmannDictionary",
    "ProjectionKernel",
    "KernelLift",
    "DiscriminativeDictionary",
    "SubspaceClustering",
    "Descriptor",
    "BlockHankel",
    "VideoSubspaces",
]

FROM_SETS = "of sets of frames ImageSetSubspaces(p) makes subspaces (n, d, p)"
FAINT = 1e-6  # an edge, beside 1 or 2 of the strongest of each subspace
RandomState: TypeAlias = core.Rng | np.random.RandomState


# ----------------------------------------------------------------------- what all share


def aside(fit):
    """A method that changes a copy, and its object when all went well.

    An error, or Ctrl-C, loses nothing and leaves nothing. The method gives the object,
    or what else it gives.
    """

    @functools.wraps(fit)
    def whole(self, *args, **options):
        model = copy.copy(self)
        result = fit(model, *args, **options)
        model.fitted_with_ = model.options(*model.as_fitted)
        self.__dict__.update(vars(model))
        return self if result is model else result

    return whole


class Estimator(base.BaseEstimator):
    """Base of all. The fields of a class are its parameters.

    X has three axes, or two where kernel is "precomputed".
    What is learned holds copies of the training set, if it holds any of it: the caller
    can use the memory again. A fit that fails leaves what was learned before.
    as_fitted: the parameters that shape what is learned and what is asked alike: they
    must not change between fit and what follows.
    """

    as_fitted: tuple[str, ...] = ()

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in ("fit", "fit_transform", "partial_fit"):
            if inspect.isfunction(vars(cls).get(name)):
                setattr(cls, name, aside(vars(cls)[name]))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.two_d_array = self.is_precomputed()
        tags.input_tags.three_d_array = not self.is_precomputed()
        return tags

    def is_precomputed(self) -> bool:
        """Does X hold inner products?"""
        return getattr(self, "kernel", None) == "precomputed"

    def options(self, *names: str) -> dict[str, Any]:
        """The parameters of these names, for a function that has them too."""
        return {name: getattr(self, name) for name in names}

    def check_as_fitted(self) -> None:
        """ValueError unless fit came first, with the parameters that are set now."""
        check_is_fitted(self)
        for name, value in getattr(self, "fitted_with_", {}).items():
            now = getattr(self, name)
            if now is not value and not np.array_equal(now, value):
                raise ValueError(
                    f"{name} must be as in fit, or fit be called again: got {now!r} after "
                    f"{value!r}"
                )

    def check_d(self, d: int, fit: bool) -> None:
        """fit records d, every other method demands it."""
        if fit:
            self.n_features_in_ = d
        elif d != self.n_features_in_:
            raise ValueError(
                f"X must have d = {self.n_features_in_}, as in fit, got d = {d} in "
                "this call"
            )


class OnSubspaces(Estimator):
    """Base of those on subspaces X (n, d, p), or on a Gram matrix.

    fit takes (N, N) of the training set, all else (n, N) of queries with it.
    takes_weighted: whether X may hold weighted subspaces (subspaces.weighted).
    """

    takes_weighted = False

    def check_input(self, X: ArrayLike, fit: bool = False) -> np.ndarray:
        """X as checked bases or inner products.

        fit records d or N; the other methods demand it.
        """
        if not fit:
            self.check_as_fitted()
        if not self.is_precomputed():
            check = core.check_dictionary if fit else core.check_bases
            try:
                checked = check(X, "X", weighted=self.takes_weighted)
            except ValueError as error:
                raise ValueError(f"{error}; {FROM_SETS}") from None
        elif fit:
            checked = core.check_symmetric(X, "X")
        else:
            checked = shared.shaped_array(
                X, "X", ("n", self.n_features_in_), ", one column a training set"
            )
        self.check_d(checked.shape[1], fit)
        return checked

    def _whitening(self, X, index):
        """The Whitening of checked X, whose classes are index; None without shrinkage."""
        if self.shrinkage is None:
            return None
        K = X if self.is_precomputed() else core.bases_gram(X)
        return discriminative.Whitening(K, index, self.shrinkage)


class ByScores(base.ClassifierMixin):
    """predict and decision_function from class_scores(X), (n, n_classes).

    The highest score wins, the first in a tie.
    """

    def check_labelled(self, X: Any, y: core.Labels) -> Any:
        """The training set X, checked; records its classes, and the class of each of X."""
        X = self.check_input(X, fit=True)
        self.classes_, self.index_ = classes_of(y, len(X))
        return X

    def decision_function(self, X: Any) -> np.ndarray:
        """class_scores (n, n_classes).

        For two classes (n,): the score of the second less that of the first.
        """
        scores = self.class_scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Labels (n,)."""
        winners = self.class_scores(X).argmax(axis=1)
        return self.classes_[winners]


class ByProbabilities(ByScores):
    """Probabilities from logits(X) (n, n_classes), their logarithms but for a constant."""

    def predict_proba(self, X: Any) -> np.ndarray:
        """softmax(logits), (n, n_classes)."""
        return softmax(self.logits(X), axis=1)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithms of predict_proba, finite where a probability rounds to 0."""
        return log_softmax(self.logits(X), axis=1)


class Transformer(base.ClassNamePrefixFeaturesOutMixin, base.TransformerMixin):
    """Names for the n_features_out_ columns of what transform gives."""

    _n_features_out = property(attrgetter("n_features_out_"))


# ------------------------------------------------------------------ frames to subspaces


class SetsTransformer(Transformer, Estimator):
    """Base of the first steps of a pipeline, which take sets of frames.

    They make rows (n_rows, d) of each set, by rows_of, or a basis (d, p).
    """

    axis = 1  # the axis of length d

    def __init_subclass__(cls, **options):
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Nothing to set: no output is a table. For pipelines that set all outputs."""
        return self

    def fit(self, X: shared.Sets, y: object = None) -> Self:
        """Record n_features_out_, the length d of a vector; nothing is learned."""
        shared.check_sequence(X, "X", "sets of frames")
        self._fitted(X, X[:1])
        return self

    def fit_transform(self, X: shared.Sets, y: object = None) -> Any:
        """What transform gives, after fit."""
        return self._fitted(X, X)

    def _fitted(self, X, some):
        """What transform gives of some of X, after fit."""
        shared.warn_of_bases(X)
        shared.warn_of_transposed(X)
        made = self._made_of(some)
        self.n_features_out_ = made[0].shape[self.axis]
        return self._check_lengths(made)

    def transform(self, X: shared.Sets) -> Any:
        """A list of n arrays (n_rows_i, d), or bases (n, d, p)."""
        check_is_fitted(self)
        return self._check_lengths(self._made_of(X))

    def _check_lengths(self, made):
        for i, rows in enumerate(made):
            if rows.shape[self.axis] != self.n_features_out_:
                raise ValueError(
                    f"X must give vectors of d = {self.n_features_out_}, as in fit: "
                    f"X[{i}] gives {rows.shape[self.axis]}"
                )
        return made

    def _made_of(self, X):
        """A list of rows_of each set."""
        shared.check_sequence(X, "X", "sets of frames", "set of frames")
        return make_each(self.rows_of, X)


@dataclass(eq=False, repr=False)
class ImageSetSubspaces(SetsTransformer):
    """Sets of frames to subspaces (n, d, p).

    This is subspaces.from_sets as the first step of a pipeline.
    p: dimension of the subspaces, 1 <= p <= d; each set needs p independent frames, see
    rank. spectrum: instead, the alpha >= 0 of weighted subspaces, of sets of any rank,
    see subspaces.weighted. center, unit_variance, rank ("raise", "warn", "pad"): as in
    subspaces. X is a sequence of n arrays (n_frames_i, d) or (n_frames_i, height,
    width), or one array of them. fit learns d alone.

    ValueError, by fit and transform, for sets that from_sets refuses, or of another d
    than in fit; TypeError unless X is a sequence.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import ImageSetSubspaces
    >>> rng = np.random.default_rng(0)
    >>> sets = [rng.random((n_frames, 6, 8)) for n_frames in (5, 9, 7)]  # frames of 6 x 8 pixels
    >>> ImageSetSubspaces(p=3).fit_transform(sets).shape
    (3, 48, 3)
    """

    p: int | None = None
    center: bool = False
    unit_variance: bool = False
    rank: str = "raise"
    spectrum: float | None = None

    axis = 0

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        """d, the number of pixels or features of a frame."""
        return self.n_features_out_

    def _made_of(self, X):
        """Bases (n, d, p) as the parameters say; fit has warned of X."""
        shared.check_sequence(X, "X", "sets of frames")
        return subspaces.subspaces_of(X, **self.get_params())


@dataclass(eq=False, repr=False, kw_only=True)
class KernelChoice:
    """The kernel on frames that kernel, gamma, gamma_scale, degree and coef0 name."""

    kernel: shared.AnyKernel = "linear"
    gamma: float | None = None
    gamma_scale: str | None = None
    degree: int = 2
    coef0: float = 1.0
    as_fitted = ("kernel", "gamma", "gamma_scale", "degree", "coef0")

    def chosen_kernel(self, X: shared.Sets) -> shared.Kernel:
        """A callable k(A, B) for the sets of frames X; sets gamma_, of "rbf" alone."""
        kernel = kernels.kernel_named(
            self.kernel,
            X,
            gamma=self.gamma,
            degree=self.degree,
            gamma_scale=self.gamma_scale,
            coef0=self.coef0,
        )
        self.gamma_ = kernel.gamma if isinstance(kernel, kernels.rbf) else None
        return kernel


@dataclass(eq=False, repr=False)
class KernelLift(KernelChoice, SetsTransformer):
    """Sets of frames to coordinates (n, r, p) of their subspaces in feature space.

    This is kernels.Lift in a pipeline.
    kernel: "rbf" (uses gamma and gamma_scale), "polynomial" (degree and coef0),
    "linear", or any k(A, B) on rows; ("rbf", gamma) and ("polynomial", degree) say the
    number too, so that one grid spans kinds of kernels: ["linear", ("polynomial", 2),
    ("rbf", 0.5), ("rbf", 2)]. gamma: > 0, or None for kernels.median_gamma of the
    training sets; with gamma_scale="median" in units of that, so that one grid suits
    any data. p: dimension of the subspaces; each set needs p frames independent in
    feature space. n_landmarks: as in kernels.Lift. random_state: a seed, a
    Generator or a RandomState, which are copied, so that each fit draws the same.

    With CodingClassifier it is kgSC and kgLC, with GrassmannDictionary kgDL. lift_ and
    gamma_ tell of the fit.

    ValueError, by fit and transform, where kernels.Lift raises it; TypeError unless X
    is a sequence.

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from grassmann_sc.estimators import CodingClassifier, KernelLift
    >>> sets = [*np.random.default_rng(0).standard_normal((6, 8, 10))]  # six sets of eight frames
    >>> lift = KernelLift("rbf", p=2, gamma=1.0, gamma_scale="median")
    >>> kgsc = make_pipeline(lift, CodingClassifier(lam=0.1))
    >>> kgsc.fit(sets, ["ape", "bee"] * 3).predict(sets[:2]).tolist()
    ['ape', 'bee']
    """

    kernel: shared.AnyKernel = "rbf"
    gamma: float | None = None
    p: int = 1
    n_landmarks: int | None = None
    _: KW_ONLY
    random_state: RandomState = None
    as_fitted = (*KernelChoice.as_fitted, "p", "n_landmarks")

    def fit(self, X: shared.Sets, y: object = None) -> Self:
        """Choose landmarks among the frames of X.

        X holds n arrays (n_frames_i, d), or is one array of them.
        """
        shared.warn_of_transposed(X)
        self.lift_ = kernels.Lift(
            self.chosen_kernel(X),
            **self.options("p", "n_landmarks"),
            rng=rng_of(self.random_state),
        ).fit(X)
        self.n_features_in_ = self.lift_.landmarks_.shape[1]
        self.n_features_out_ = self.lift_.dimension_
        return self

    def fit_transform(self, X: shared.Sets, y: object = None) -> np.ndarray:
        """fit(X).transform(X)."""
        return self.fit(X).transform(X)

    def transform(self, X: shared.Sets) -> np.ndarray:
        """Orthonormal bases (n, r, p)."""
        self.check_as_fitted()
        return self.lift_.transform(X)


# -------------------------------------------------------------------------- classifiers


@dataclass(eq=False, repr=False)
class NearestSubspace(ByScores, OnSubspaces):
    """The most frequent class of the n_neighbors nearest training subspaces.

    In a tie the first class wins.
    metric: "chordal", the paper's ||X^ - Y^||_F; "geodesic", the norm of the principal
    angles; "projection", chordal over sqrt(2), the norm of their sines where p = q, from
    the projection kernel alone: faster, and only to about 1e-8 near 0. n_neighbors:
    in 1..n. shrinkage: as in CodingClassifier, not for "geodesic"; distances are those
    of the whitened inner product.

    ValueError, by fit, for an unknown metric, n_neighbors beyond the samples, or one
    class; by predict for another d.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import NearestSubspace
    >>> X = random_subspaces(3, 10, 2, rng=0)
    >>> NearestSubspace().fit(X, ["ape", "bee", "cat"]).predict(X[::-1]).tolist()
    ['cat', 'bee', 'ape']
    """

    metric: str = "chordal"
    n_neighbors: int = 1
    shrinkage: float | None = None
    as_fitted = ("metric", "shrinkage")

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Keep the subspaces X (n, d, p) and their labels y (n,)."""
        core.check_choice(self.metric, "metric", "chordal", "geodesic", "projection")
        if self.shrinkage is not None and self.metric == "geodesic":
            raise ValueError(
                "shrinkage must be None with metric='geodesic', which is of angles, not "
                f"of inner products, got {self.shrinkage!r}"
            )
        self.subspaces_ = self.check_labelled(X, y).copy()
        self.whitening_ = self._whitening(self.subspaces_, self.index_)
        core.check_integer(self.n_neighbors, "n_neighbors", 1, len(self.subspaces_))
        return self

    def distances(self, X: ArrayLike) -> np.ndarray:
        """Distances (n, n_train) of the metric from X to the training subspaces."""
        return self._distances(X)[0]

    def _distances(self, X):
        """Distances (n, n_train), and what is larger the nearer, without cancellation.

        Far subspaces differ in inner products that distances lose to rounding.
        """
        X = self.check_input(X)
        # less than this apart are subspaces only by rounding
        same = core.tie_tolerance(X.dtype)
        if self.metric == "geodesic":
            distances = core.geodesic_distance(X, self.subspaces_)
            return distances, -np.maximum(distances, same)
        X, Y = core.same_dimension(X, self.subspaces_, ("X", "the dictionary"))
        K = core.bases_gram(X, Y)
        if self.whitening_ is not None:
            K = self.whitening_.transform(K, X.shape[2])
            return np.sqrt((1 - K) * (2 if self.metric == "chordal" else 1)), K
        if self.metric == "projection":
            return np.sqrt(np.maximum((X.shape[2] + Y.shape[2]) / 2 - K, 0)), K
        square = core.chordal_squares(X, Y, K)
        near = K + 1 / np.maximum(square, same**2)
        return np.sqrt(square), np.where(square < core.NEAR_SQUARED, near, K)

    def kneighbors(self, X: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Distances and indices (n, n_neighbors) of the nearest training subspaces.

        The nearest comes first, of equally near ones, to the last bit, that of the lower
        index. Rounding decides between those that differ by it alone.
        """
        distances, nearness = self._distances(X)
        nearest: Any = []
        for _ in range(
            core.check_integer(self.n_neighbors, "n_neighbors", 1, len(self.subspaces_))
        ):
            nearest.append(nearness.argmax(axis=1))
            nearness[np.arange(len(nearness)), nearest[-1]] = -np.inf
        nearest = np.sort(np.stack(nearest, axis=1), axis=1)
        distances = np.take_along_axis(distances, nearest, axis=1)
        order = distances.argsort(axis=1, kind="stable")
        return (
            np.take_along_axis(distances, order, axis=1),
            np.take_along_axis(nearest, order, axis=1),
        )

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """Shares (n, n_classes) of the classes among the nearest subspaces."""
        _, nearest = self.kneighbors(X)
        votes = self.index_[nearest]  # (n, n_neighbors)
        return (votes[:, :, None] == np.arange(len(self.classes_))).mean(axis=1)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """class_scores: they are probabilities."""
        return self.class_scores(X)


class Coding:
    """Codes as the parameters coding, lam, lam_scale and n_neighbors say."""

    takes_weighted = True

    def _how(self):
        """The parameters in use, checked, as functions take them."""
        core.check_choice(self.coding, "coding", "sparse", "local")
        core.check_choice(self.lam_scale, "lam_scale", None, "max")
        if self.coding == "local":
            return {"lam": None, "n_neighbors": self.n_neighbors}
        return {
            "lam": core.check_number(self.lam, "lam", least=0),
            "n_neighbors": None,
            "lam_scale": self.lam_scale,
        }

    def _codes(self, how, K_dd, K_xd, norm2):
        """Codes (n, N) from Gram matrices that are checked already."""
        code = core.make_coding(K_xd.shape, K_xd.dtype, **how)
        return code(K_dd, K_xd, norm2)


@dataclass(eq=False, repr=False)
class CodingClassifier(Coding, Transformer, ByProbabilities, OnSubspaces):
    """Codes a query over labelled subspaces and takes the class of the highest score.

    fit takes the dictionary: all training sets, or atoms learned for each class, with
    their labels.

    coding: "sparse" (gSC, uses lam and lam_scale) or "local" (gLC, uses n_neighbors).
    lam: >= 0, the paper's lambda; with lam_scale="max" in units of each query's
    lam_max, so that one grid in [0, 1] suits any data. n_neighbors: in 1..N atoms.
    rule: a class's score is, "residual": ||X^||^2 - ||X^ - sum_{j in class} y_j
    D_j^||_F^2, the paper's; "sum" or "max" of its coefficients y_j, the paper's
    alternatives; None: "residual" of sparse codes, "sum" of local ones.
    grassmann_sc.class_scores says why, and what ties, absent classes and zero codes
    have.
    kernel: "projection", X holds subspaces; "precomputed", X holds inner products
    instead, the symmetric (N, N) of the atoms in fit and (n, N) of queries with atoms
    elsewhere, as ProjectionKernel gives them. All must have the norm of the atoms, a
    constant diagonal. GridSearchCV on the whole Gram matrix then computes it once for
    all candidates.
    calibrate: whether fit chooses temperature_, for predict_proba, by the log-loss of
    at most 100 of the atoms, each coded over those outside its fold; else, or where no
    class has two atoms, it is 1.
    shrinkage: > 0, whitens the inner product within classes, as discriminative.Whitening
    does, so that all have norm 1; None leaves it as it is. X of fit and of queries are
    not whitened yet; temperature_ and what is left out come from folds.

    See also grassmann_sc.classify, KernelLift for kgSC and kgLC.

    ValueError, by fit, for parameters out of range, one class, or X that is neither
    bases nor weighted subspaces (or no Gram matrix); by predict for another d.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import CodingClassifier
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> model = CodingClassifier(lam=0.1, lam_scale="max").fit(X, ["ape", "bee"] * 3)
    >>> model.predict(X).tolist(), model.predict_proba(X).shape
    (['ape', 'bee', 'ape', 'bee', 'ape', 'bee'], (6, 2))
    """

    coding: str = "sparse"
    lam: float = 0.1
    n_neighbors: int = 5
    rule: str | None = None
    lam_scale: str | None = None
    kernel: str = "projection"
    calibrate: bool = True
    shrinkage: float | None = None
    as_fitted = ("kernel", "shrinkage")

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Take subspaces X (N, d, p), or their Gram matrix (N, N), as atoms.

        Their labels are y.
        """
        return self._take(self._checked_how(), self.check_labelled(X, y).copy())

    def _take(self, how, X):
        """fit to checked X, whose classes are known."""
        if self.is_precomputed():
            self.gram_ = X
            square = X.diagonal()
            if not 0 < square.max() <= square.min() + 1e-3 * square.max():
                raise ValueError(
                    "X must have a constant positive diagonal, the squared norm p, "
                    f"got {square.min():.4g} to {square.max():.4g}"
                )
        else:
            self.atoms_ = X
            self.gram_ = core.bases_gram(X)
        if self.coding == "local":
            core.check_integer(self.n_neighbors, "n_neighbors", 1, len(X))
        self.n_features_out_ = len(X)
        self.whitening_ = self._whitening(X, self.index_)
        self.temperature_ = (
            calibration.temperature(
                self.gram_, self.index_, self._rule(), how, self.shrinkage
            )
            if core.check_flag(self.calibrate, "calibrate")
            else 1.0
        )
        return self

    def _checked_how(self):
        core.check_choice(self.rule, "rule", None, *core.RULES)
        core.check_choice(self.kernel, "kernel", "projection", "precomputed")
        return self._how()

    def left_out_scores(
        self, groups: core.Labels | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores (N, n_classes) of the training sets, each coded over all others.

        By the rule, and by "residual". groups (N,): the sets of one group are not coded
        over each other. With shrinkage they come from five folds, each whitened and
        coded by the others: see calibration.left_out_scores.
        """
        self.check_as_fitted()
        rules = [*dict.fromkeys([self._rule(), "residual"])]
        scores = calibration.scores_by_rule(
            self.gram_,
            self.index_,
            calibration.members_left_out(groups, self.index_, self.shrinkage),
            rules,
            self._checked_how(),
            self.shrinkage,
        )
        return scores[0], scores[-1]

    def p_values(
        self,
        X: ArrayLike,
        groups: core.Labels | None = None,
        *,
        left_out: Sequence[ArrayLike] | None = None,
    ) -> calibration.PValues:
        """Conformal p-values (n, n_classes) of the classes, and of being of any (n,).

        A class can be excluded at coverage 0.9 if its p-value is at most 0.1: see
        calibration.p_values. Whether X is of any class is told by what its best class
        explains, whatever the rule. left_out: what left_out_scores gave; None: it is
        computed with these groups.

        ValueError if X is of another p than the atoms, or of another d.
        """
        codes, *grams, _ = self._coded(X)
        if not self.is_precomputed() and self.whitening_ is None:
            self._check_kind(np.asarray(X))  # residuals grow with the norm
        by_rule, by_residual = (
            calibration.p_values(
                scores,
                self.index_,
                core.scores_by_class(
                    codes, *grams, self.index_, len(self.classes_), rule
                ),
            )
            for scores, rule in zip(
                self._left_out(left_out, groups), (self._rule(), "residual")
            )
        )
        return calibration.PValues(by_rule.classes, by_residual.known)

    def _left_out(self, left_out, groups=None):
        if left_out is None:
            return self.left_out_scores(groups)
        left_out = core.real_array(left_out, "left_out")
        shape = 2, len(self.index_), len(self.classes_)
        if left_out.shape != shape:
            raise ValueError(f"left_out must have shape {shape}, got {left_out.shape}")
        return [*left_out]

    def noticed(
        self, coverage: float = 0.9, *, left_out: Sequence[ArrayLike] | None = None
    ) -> float:
        """The share of samples of an unknown class that p_values tells as unlike all.

        It is measured by leaving out one class after another, with three classes or
        more, on at most 1,000 training samples. Of samples of known classes, a share of
        1 - coverage is refused too.
        """
        self.check_as_fitted()
        return calibration.noticed(
            self.gram_,
            self.index_,
            self._left_out(left_out)[1],
            coverage,
            self._checked_how(),
            self.shrinkage,
        )

    def partial_fit(
        self, X: ArrayLike, y: core.Labels, classes: core.Labels | None = None
    ) -> Self:
        """Take more labelled subspaces X (n, d, p), also of new classes, as atoms.

        The first batch holds two classes or more. classes: not needed, taken as
        scikit-learn's convention has it. The result is the same to the last bit as that
        of fit on all of them. A Gram matrix cannot be added to: with
        kernel="precomputed" call fit with the whole.
        """
        if hasattr(self, "classes_"):
            self._take_more(X, y)
        else:
            self.fit(X, y)
        return self

    def _take_more(self, X, y):
        if self.is_precomputed():
            raise ValueError(
                "kernel must be 'projection' for partial_fit, got 'precomputed': call "
                "fit with the Gram matrix of all samples"
            )
        X = self.check_input(X)
        self._check_kind(X)
        new, index = core.check_labels(labels_of(y), len(X), "y", "subspaces")
        if not len(X):
            return
        known = self.classes_[self.index_]
        both = np.concatenate([known, new[index]])
        kinds = {known.dtype.kind, new.dtype.kind}
        labels = [*known.tolist(), *new[index].tolist()]
        if len(kinds) > 1 and ("b" in kinds or both.tolist() != labels):
            raise ValueError(
                f"y must hold labels of one type with those learned, as {known[0]!r}, "
                f"got {new[0]!r}"
            )
        atoms = shared.joined([self.atoms_, X])
        self.classes_, self.index_ = classes_of(both, len(atoms))
        self._take(self._checked_how(), atoms)

    def _check_kind(self, X):
        norm2 = core.squared_norm(self.atoms_)
        if len(X) and core.squared_norm(X) != norm2:
            raise ValueError(
                "X must hold subspaces of the kind of the atoms, whose ||X^||^2 is "
                f"{norm2}: p of bases, 1 of weighted ones, got {core.squared_norm(X)}"
            )

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, N); of an atom, itself.

        The codes of the training sets say nothing about those of others.
        """
        return self._coded(X)[0]

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """Scores (n, n_classes) by the rule."""
        codes, K_dd, K_xd, _ = self._coded(X)
        core.warn_zero_codes(core.lam_max(K_xd[~codes.any(axis=1)]), len(codes))
        return core.scores_by_class(
            codes, K_dd, K_xd, self.index_, len(self.classes_), self._rule()
        )

    def explain(self, X: ArrayLike) -> core.Shares:
        """Why a class won: the atoms behind the scores, by grassmann_sc.score_shares.

        Returns indices (n, m) of fit's samples, largest share first, and their shares.
        """
        codes, K_dd, K_xd, norm2 = self._coded(X)
        return core.score_shares(
            codes, K_dd, K_xd, self.index_, norm2=norm2, rule=self._rule()
        )

    def logits(self, X: ArrayLike) -> np.ndarray:
        """class_scores / temperature_, (n, n_classes)."""
        return self.class_scores(X) / self.temperature_

    def _coded(self, X):
        """Codes (n, N), checked Gram matrices of atoms and queries, and norm2."""
        X = self.check_input(X)
        if self.is_precomputed():
            grams = core.check_grams(self.gram_, X, self.gram_[0, 0])
        else:
            grams = _grams_of_queries(X, self.atoms_, self.gram_)
        if self.whitening_ is not None:
            grams = self.whitening_.grams(*grams[1:])
        return self._codes(self._how(), *grams), *grams

    def _rule(self):
        core.check_choice(self.coding, "coding", *tuning.RULES_OF_CODES)
        core.check_choice(self.rule, "rule", None, *core.RULES)
        return self.rule or tuning.RULES_OF_CODES[self.coding][0]


@dataclass(eq=False, repr=False)
class DiscriminativeDictionary(ByProbabilities, OnSubspaces):
    """A few atoms for each class, learned to explain it and no other.

    The class wins whose atoms explain a query best. The atoms are those of
    discriminative.discriminative_atoms.
    atoms_per_class, tol: as there. sharpness, reg, max_iter: there beta, ridge, n_iter.
    random_state: as in KernelLift. components_ (N, d, p), labels_ (N,), costs_, n_iter_
    (iterations done) and sharpness_ (in use) tell of the learning.

    ValueError, by fit, where discriminative_atoms raises it, or for one class; by
    predict for another d.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import DiscriminativeDictionary
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> model = DiscriminativeDictionary(2, random_state=0).fit(X, ["ape", "bee"] * 4)
    >>> model.components_.shape, model.labels_.tolist()
    ((4, 10, 2), ['ape', 'ape', 'bee', 'bee'])
    """

    atoms_per_class: int | Mapping = 2
    sharpness: float | None = None
    reg: float = 0.1
    max_iter: int = 100
    tol: float = 1e-5
    random_state: RandomState = None
    as_fitted = ("reg",)

    def fit(
        self, X: ArrayLike, y: core.Labels, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from subspaces X (n, d, p) with labels y (n,).

        Classes without weight are none.
        """
        if self.sharpness is not None:
            core.check_number(
                self.sharpness, "sharpness", above=0, most=discriminative.LARGEST_BETA
            )
        X = self.check_labelled(X, y)
        learned = discriminative.discriminative_atoms(
            X,
            self.classes_[self.index_],
            **self.options("atoms_per_class", "tol"),
            beta=self.sharpness,
            ridge=core.check_number(self.reg, "reg", least=discriminative.LEAST_RIDGE),
            rng=rng_of(self.random_state),
            n_iter=core.check_integer(self.max_iter, "max_iter", 0),
            sample_weight=sample_weight,
        )
        self.classes_, self.index_ = shared.check_classes(
            learned.labels, len(learned.labels), "the labels of samples with weight"
        )
        self.components_, self.labels_, self.costs_ = learned
        self.n_iter_ = learned.n_iter
        self.sharpness_ = learned.beta
        return self

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """What the classes explain, p less their errors (n, n_classes)."""
        X, D = core.same_dimension(
            self.check_input(X), self.components_, ("X", "the dictionary")
        )
        return discriminative.ridge_explained(
            X, D, self.index_, len(self.classes_), self.reg
        )

    def logits(self, X: ArrayLike) -> np.ndarray:
        """-sharpness_ errors but for a constant, (n, n_classes).

        Learning fits the probabilities on the training set.
        """
        return self.class_scores(X) * self.sharpness_


@dataclass(eq=False, repr=False)
class SubspaceClustering(base.ClusterMixin, OnSubspaces):
    """Clusters subspaces without labels: those that explain each other are together.

    Each subspace is coded over all others, sparsely (gSC). The graph |Y| + |Y|^T of the
    codes Y, each divided by its largest coefficient, is cut by scikit-learn's spectral
    clustering. This is sparse subspace clustering (Elhamifar and Vidal 2013) of
    subspaces, each a point of the embedding space.

    n_clusters: >= 1. lam, lam_scale: as in CodingClassifier. kernel: "projection", or
    "precomputed": fit takes the Gram matrix (n, n). random_state: as in KernelLift.
    labels_ (n,) are the clusters in 0..n_clusters - 1, affinity_matrix_ (n, n) is the
    graph.

    ValueError, by fit, for fewer subspaces than clusters, or parameters out of range.

    >>> import numpy as np
    >>> from grassmann_sc import orthonormalize, random_subspaces
    >>> from grassmann_sc.estimators import SubspaceClustering
    >>> noise = 0.2 * np.random.default_rng(0).standard_normal((8, 10, 2))
    >>> X = orthonormalize(np.repeat(random_subspaces(2, 10, 2, rng=0), 4, axis=0) + noise)
    >>> labels = SubspaceClustering(2, random_state=0).fit_predict(X)
    >>> (labels == labels[0]).tolist()
    [True, True, True, True, False, False, False, False]
    """

    n_clusters: int
    lam: float = 0.1
    lam_scale: str | None = "max"
    kernel: str = "projection"
    random_state: RandomState = None

    takes_weighted = True

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Cluster subspaces X (n, d, p), or those with the Gram matrix X (n, n)."""
        core.check_choice(self.kernel, "kernel", "projection", "precomputed")
        n_clusters = core.check_integer(self.n_clusters, "n_clusters", 1)
        X = self.check_input(X, fit=True)
        if len(X) < max(n_clusters, 2):
            raise ValueError(
                f"X must hold at least 2 subspaces, and n_clusters = {n_clusters}, got "
                f"{len(X)} sample(s)"
            )
        codes = np.abs(
            calibration.left_out_codes(
                X if self.is_precomputed() else core.bases_gram(X),
                **self.options("lam", "lam_scale"),
            ),
            dtype=np.float64,
        )
        largest = codes.max(axis=1, keepdims=True)
        shares = np.divide(codes, largest, out=np.zeros_like(codes), where=largest > 0)
        self.affinity_matrix_ = shares + shares.T
        seed = int(rng_of(self.random_state).integers(2**31))
        self.labels_ = np.arange(len(X))
        if n_clusters < len(X):  # for as many the eigenvectors are not computed
            # a graph in several parts has no unique cut: faint edges join them
            self.labels_ = SpectralClustering(
                n_clusters, affinity="precomputed", n_init=20, random_state=seed
            ).fit_predict(self.affinity_matrix_ + FAINT)
        return self


# ---------------------------------------------------------------- dictionary and kernel


@dataclass(eq=False, repr=False)
class DictionaryLearner(Coding, Transformer, OnSubspaces):
    """Base of those that learn atoms, components_, and code over them as Coding does."""

    n_atoms: int
    coding: str = "sparse"
    lam: float = 0.1
    n_neighbors: int = 5
    lam_scale: str | None = None
    init: str | ArrayLike = "kmeans++"
    as_fitted = ("coding", "lam", "lam_scale")

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, n_atoms) over components_."""
        check_is_fitted(self, "components_")
        return self._codes(
            {**self._how(), "lam": self.lam_, "lam_scale": None},
            *_grams_of_queries(self.check_input(X), self.components_, self.gram_),
        )

    def _keep(self, atoms, lam, n_iter):
        # in one step: Ctrl-C comes before or after
        vars(self).update(
            components_=atoms,
            gram_=core.bases_gram(atoms),
            lam_=lam,
            n_iter_=n_iter,
            n_features_out_=len(atoms),
        )


@dataclass(eq=False, repr=False)
class GrassmannDictionary(DictionaryLearner):
    """Learns a dictionary of n_atoms subspaces (learn.gdl) and codes over it.

    The codes are features for any estimator.
    coding, lam, n_neighbors: as in CodingClassifier. lam_scale: None, or "max": one
    lambda for all, lam times the median lam_max of the training set over the first
    atoms. init, tol, and max_iter, there n_iter: as in learn.gdl. random_state: as in
    KernelLift.

    components_ (n_atoms, d, p), costs_ and n_iter_ (iterations done) tell of the
    learning, lam_ is the lambda in use.

    See also learn.gdl; KernelLift before it makes it kgDL.

    ValueError, by fit, where learn.gdl raises it; by transform for another d.

    >>> from sklearn.linear_model import RidgeClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import GrassmannDictionary
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> pipeline = make_pipeline(GrassmannDictionary(4, random_state=0), RidgeClassifier())
    >>> pipeline.fit(X, ["ape", "bee"] * 4)[0].components_.shape
    (4, 10, 2)
    """

    max_iter: int = 20
    tol: float = 1e-6
    random_state: RandomState = None

    def fit(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from subspaces X (n, d, p), n >= n_atoms unless init holds atoms."""
        self.fit_transform(X, sample_weight=sample_weight)
        return self

    def fit_transform(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Learn, and give the codes (n, n_atoms) that learning ended with."""
        learned = learn.gdl(
            self.check_input(X, fit=True),
            **self.options("n_atoms", "init", "tol"),
            **self._how(),
            n_iter=core.check_integer(self.max_iter, "max_iter", 0),
            rng=rng_of(self.random_state),
            sample_weight=sample_weight,
        )
        self.costs_ = learned.costs
        self._keep(learned.atoms, learned.lam, learned.n_iter)
        return learned.codes


@dataclass(eq=False, repr=False)
class OnlineGrassmannDictionary(DictionaryLearner):
    """GrassmannDictionary learned from batches (streams.OnlineGDL).

    Its memory does not grow: partial_fit takes each batch of a stream, fit an array in
    random batches.
    n_atoms, coding, lam, n_neighbors, lam_scale: as in GrassmannDictionary, with the
    lam_max of the first n_atoms samples at least. init, rank, forgetting: as in
    streams.OnlineGDL. random_state: as in KernelLift. batch_size, n_epochs: of fit
    alone.

    learner_ is the OnlineGDL, to save, to merge or to resume; components_ (n_atoms, d,
    p) and lam_ are there once n_atoms samples have come, n_iter_ counts updates.

    ValueError, by fit and partial_fit, where streams.OnlineGDL raises it; by transform
    for another d.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import OnlineGrassmannDictionary
    >>> X = random_subspaces(60, 8, 2, rng=0)
    >>> model = OnlineGrassmannDictionary(4, random_state=0).partial_fit(X[:30])
    >>> model = model.partial_fit(X[30:])
    >>> model.components_.shape, model.n_iter_
    ((4, 8, 2), 2)
    """

    batch_size: int = 256
    n_epochs: int = 1
    rank: int | None = None
    forgetting: float = 2.0
    random_state: RandomState = None

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn anew from subspaces X (n, d, p), n >= n_atoms unless init holds atoms.

        A memmap, or a zarr, HDF5 or Dask array, is read in pieces.
        """
        if is_stored(X):
            X = StoredBases(X, "X")
            self.n_features_in_ = X.shape[1]
        else:
            X = self.check_input(X, fit=True)
        self.learner_ = self._new_learner().fit(
            X, **self.options("batch_size", "n_epochs")
        )
        return self._take_atoms()

    def partial_fit(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one more batch X (n, d, p)."""
        X = self.check_input(X, fit=not hasattr(self, "learner_"))
        if not hasattr(self, "learner_"):
            self.learner_ = self._new_learner()
        self.learner_.partial_fit(X, sample_weight)
        return self._take_atoms()

    def _new_learner(self):
        return streams.OnlineGDL(
            **self.options("n_atoms", "init", "rank", "forgetting"),
            **self._how(),
            rng=rng_of(self.random_state),
        )

    def _take_atoms(self):
        if self.learner_.atoms is not None:
            self._keep(self.learner_.atoms, self.learner_.lam, self.learner_.n_updates)
        return self


@dataclass(eq=False, repr=False)
class ProjectionKernel(Transformer, OnSubspaces):
    """Gram rows ||X_i^T D_j||_F^2 with the training subspaces D.

    This is the core's projection_kernel. For SVC(kernel="precomputed"),
    CodingClassifier(kernel="precomputed") and every other kernel method.
    shrinkage: as in CodingClassifier, then fit needs labels. A Gram matrix that is
    whitened knows the labels of its samples: to search shrinkage put this into the
    pipeline that is cross-validated, and for p-values use that of CodingClassifier.

    ValueError, by fit, for X that is neither bases nor weighted subspaces; by transform
    for another d.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import ProjectionKernel
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> model = make_pipeline(ProjectionKernel(), SVC(kernel="precomputed", C=100))
    >>> model.fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    shrinkage: float | None = None

    takes_weighted = True
    as_fitted = ("shrinkage",)

    def fit(self, X: ArrayLike, y: core.Labels | None = None) -> Self:
        """Keep the subspaces X (N, d, p); y (N,) is used with shrinkage alone."""
        self.subspaces_ = self.check_input(X, fit=True).copy()
        self.n_features_out_ = len(self.subspaces_)
        if self.shrinkage is not None:
            _, y = core.check_labels(labels_of(y), len(X), "y", "subspaces")
        self.whitening_ = self._whitening(self.subspaces_, y)
        return self

    def fit_transform(self, X: ArrayLike, y: core.Labels | None = None) -> np.ndarray:
        """The symmetric Gram matrix (N, N), for half the price of transform."""
        whitening = self.fit(X, y).whitening_
        return core.bases_gram(self.subspaces_) if whitening is None else whitening.K_dd

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Rows (n, N), in [0, p], with shrinkage in [-1, 1]."""
        X, D = core.same_dimension(
            self.check_input(X), self.subspaces_, ("X", "the dictionary")
        )
        K = core.bases_gram(X, D)
        whitening = self.whitening_
        return whitening.transform(K, core.squared_norm(X)) if whitening else K


# ------------------------------------------------------------ first steps on raw frames


class Descriptor(SetsTransformer):
    """Descriptors of frames, by frames.describe(frames, kind, **options).

    kind: "raw", "hog", "lbp" (a row a frame), "lbp_top" (a row a sub-video), "gei" (a row
    a walk), or a function of frames; options: its own, which are parameters of the
    estimator as kind is. A set is frames (n_frames, height, width), or a list of such
    clips, of several views say, whose rows follow each other. ValueError and TypeError
    of fit name what does not fit.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import Descriptor
    >>> videos = np.zeros((2, 12, 8, 8))
    >>> sets = Descriptor("lbp_top", length=10, step=1).fit_transform(videos)
    >>> [rows.shape for rows in sets]
    [(3, 177), (3, 177)]
    """

    def __init__(self, kind: str | Callable = "raw", **options: Any) -> None:
        vars(self).update(kind=kind, **options)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """kind and the options, by name."""
        return {
            name: value
            for name, value in vars(self).items()
            if not (name.startswith("_") or name.endswith("_"))
        }

    def set_params(self, **params: Any) -> Self:
        """Set kind, or options of the kind."""
        vars(self).update(params)
        return self

    def rows_of(self, clips: Any) -> np.ndarray:
        """Descriptors (n_rows, d) of one set."""
        several = isinstance(clips, (list, tuple)) and clips and np.ndim(clips[0]) == 3
        return np.concatenate(
            [
                frames.describe(clip, **self.get_params())
                for clip in (clips if several else [clips])
            ]
        )


@dataclass(eq=False, repr=False)
class BlockHankel(SetsTransformer):
    """Frames stacked with those that follow them.

    Each row is a stack, as of subspaces.block_hankel.
    n_blocks: frames in a stack, >= 1; 1 leaves the frames as they are, and the order of
    frames plays no part in their subspace. X: sets of frames, or of descriptors, in
    order of time.

    ValueError, by fit and transform, where subspaces.block_hankel raises it; TypeError
    unless X is a sequence.

    >>> from grassmann_sc.estimators import BlockHankel
    >>> BlockHankel(n_blocks=2).fit_transform([[[1.0], [2.0], [3.0]]])  # a video of three frames
    [array([[1., 2.],
           [2., 3.]])]
    """

    n_blocks: int = 2

    def rows_of(self, video: ArrayLike) -> np.ndarray:
        """Stacked frames (n_rows, n_blocks d) of one video."""
        return subspaces.block_hankel(video, self.n_blocks)


@dataclass(eq=False, repr=False)
class VideoSubspaces(SetsTransformer):
    """Videos to subspaces (n, n_blocks d, n_states) of ARMA models.

    This is subspaces.from_videos, with its parameters, as the first step of a pipeline.
    X: n videos, frames in order of time, as in ImageSetSubspaces. fit learns d alone.

    ValueError, by fit and transform, where subspaces.from_videos raises it; TypeError
    unless X is a sequence.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import VideoSubspaces
    >>> videos = np.random.default_rng(0).random((4, 20, 6, 8))  # four of 20 frames
    >>> VideoSubspaces(n_states=3, n_blocks=2).fit_transform(videos).shape
    (4, 96, 3)
    """

    n_states: int = 5
    n_blocks: int = 3
    stabilize: bool = False
    center: bool = False
    unit_variance: bool = False
    rank: str = "raise"

    axis = 0

    @property
    def n_features_in_(self) -> int:  # type: ignore[override]
        """d, the number of pixels or features of a frame."""
        return self.n_features_out_ // self.n_blocks

    def _made_of(self, X):
        """Bases (n, n_blocks d, n_states) as the parameters say."""
        return subspaces.from_videos(X, **self.get_params())


# ---------------------------------------------------------------- what estimators share


def make_each(make, X, rule=""):
    """make(x) of each x of X; errors say which one breaks the rule."""
    made = []
    for i, x in enumerate(X):
        try:
            made.append(make(x))
        except (TypeError, ValueError) as error:
            raise type(error)(f"X[{i}]{rule}: {error}") from None
    return made


def _grams_of_queries(X, D, K_dd):
    """(K_dd, K_xd, norm2), of one type, of checked subspaces.

    K_dd is the Gram matrix of D.
    """
    K_xd = core.bases_gram(*core.same_dimension(X, D, ("X", "the dictionary")))
    return (
        K_dd.astype(K_xd.dtype, copy=False),
        K_xd,
        np.full(len(X), float(core.squared_norm(X))),
    )


def rng_of(random_state):
    """The Generator that functions take as rng.

    What is given is copied, so that each fit draws the same.
    """
    if isinstance(random_state, np.random.RandomState):
        random_state = copy.deepcopy(random_state).randint(2**31, size=4)
    if isinstance(random_state, (np.random.Generator, np.random.BitGenerator)):
        random_state = copy.deepcopy(random_state)
    return core.check_rng(random_state, "random_state")


def classes_of(y, n):
    """The classes, at least two, and the index of each label among them."""
    return shared.check_classes(labels_of(y), n, "y", "subspaces")


def labels_of(y):
    """y as an array (n,) of one label a sample."""
    if np.ma.is_masked(y):
        raise ValueError("y must have no masked entries, got a masked array")
    listed = y if isinstance(y, (list, tuple)) else []
    try:
        y = np.asarray(y) if hasattr(y, "__array__") else y  # of pandas, integers too
        y = column_or_1d(y, warn=True)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must be one label a subspace, (n,), got {y!r}: {error}"
        ) from None
    missing = y.dtype.kind in "fO" and [label for label in y if _is_missing(label)]
    if missing:
        raise ValueError(f"y must have no missing labels, got {missing[0]}")
    # scikit-learn's check warns of others
    if y.dtype.kind == "f" and not (y == np.floor(y)).all():
        raise ValueError(
            "y must hold classes. Unknown label type: continuous numbers such as "
            f"{y[y != np.floor(y)][0]}"
        )
    labels = {label for label in listed if isinstance(label, (str, bytes, int, float))}
    if labels and len(labels) > len({*y.tolist()}):
        raise ValueError(
            "y must hold labels of one type, which an array keeps apart, got "
            f"{listed!r:.60}"
        )
    return y


def _is_missing(label):
    """Is this None, NaN, or pandas's NA, which cannot be compared?"""
    try:
        return label is None or bool(label != label)
    except TypeError:
        return True
