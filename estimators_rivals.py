"""scikit-learn estimators of the paper's rivals on sets of images, over comparators_sets.py and
comparators_hulls.py.

estimators hands them on: from grassmann_sc.estimators import GDA. A query's score for a class is
minus its distance from, or its similarity to, what of that class is nearest to it; the highest
score wins, the first in a tie. Every parameter is meant to be chosen by cross-validation.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

import grassmann_sc as core
from grassmann_sc import comparators_hulls, comparators_sets, estimators, kernels, subspaces

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's own from Python 3.11 on

__all__ = ["DCC", "GDA", "GGDA", "KAHM", "MSM"]

TILE = 2**22  # numbers of the coordinates of queries that are held at a time
CERTIFIED = 1e-10, 10000  # tol and max_iter of distances of convex hulls


class ByScores(ClassifierMixin):
    """predict and decision_function from class_scores(X), (n, n_classes); of classes that tie, to
    rounding, the first wins."""

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores (n, n_classes); of two classes (n,), the second's less the first's."""
        scores = self._decided(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> np.ndarray:
        """Labels (n,)."""
        winners = self._decided(X).argmax(axis=1)
        return self.classes_[winners]

    def _decided(self, X):
        scores = self.class_scores(X)
        best = scores.max(axis=1)
        ties = best - np.sqrt(np.finfo(scores.dtype).eps) * self._size_of(scores)
        return core.let_win(scores, (scores >= ties[:, None]).argmax(axis=1))

    def _size_of(self, scores):
        """What the rounding of the best of the scores is relative to, (n,)."""
        return np.abs(scores.max(axis=1))


def best_of_class(similarity, index, n_classes):
    """(n, n_classes): the largest similarity to the members of each class, (n, N) to all."""
    return np.stack([similarity[:, index == c].max(axis=1) for c in range(n_classes)], axis=1)


# ------------------------------------------------------------------------------- discriminants


class _Discriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ByScores,
                    estimators.SubspaceEstimator):
    """Base of GDA and GGDA: the Gram matrix, coordinates, and the nearest of them."""

    def _size_of(self, scores):
        return np.ptp(scores, axis=1)  # minus distances, which may all but vanish

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self._is_precomputed():
            tags.input_tags.two_d_array = True
            tags.input_tags.three_d_array = False
            tags.input_tags.pairwise = True
        return tags

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Learn from subspaces X (N, d, p), or their Gram matrix (N, N), with labels y."""
        core.check_choice(self.rule, "rule", "neighbor", "mean")
        self._check_kernel()
        if self._is_precomputed():
            K = comparators_sets.check_gram(X, "X")
            self.n_features_in_ = len(K)
        else:
            self.subspaces_ = self.check_subspaces(X, fit=True)
            K = self._gram(self.subspaces_)
        self.classes_, self.index_ = estimators.classes_of(y, len(K))
        found = self._learn(K)
        self.coefficients_ = found.coefficients
        self.values_ = found.values
        self.negative_share_ = found.negative_share
        self.coordinates_ = K @ self.coefficients_
        n_classes = len(self.classes_)
        self.means_ = np.stack([self.coordinates_[self.index_ == c].mean(axis=0)
                                for c in range(n_classes)])
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Coordinates (n, m), features for any classifier."""
        check_is_fitted(self)
        if not self._is_precomputed():
            return self._gram(self.check_subspaces(X), self.subspaces_) @ self.coefficients_
        N = len(self.coefficients_)
        X = core.finite_array(X, "X")
        if X.ndim != 2 or X.shape[1] != N:
            raise ValueError(f"X must have shape (n, {N}), one column a training set, got "
                             f"{X.shape}")
        return X @ self.coefficients_

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """Minus the squared distance (n, n_classes) from the nearest set, or the mean, of a
        class."""
        coordinates = self.transform(X)
        if self.rule == "mean":
            return -cdist(coordinates, self.means_, "sqeuclidean")
        nearness = -cdist(coordinates, self.coordinates_, "sqeuclidean")
        return best_of_class(nearness, self.index_, len(self.classes_))

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _check_kernel(self):
        if not callable(self.kernel):
            core.check_choice(self.kernel, "kernel", "projection", "correlation", "binet-cauchy",
                              "precomputed")
        if core.check_number(self.mix, "mix", least=0) > 1:
            raise ValueError(f"mix must be in [0, 1], got {self.mix!r}")

    def _gram(self, X, D=None):
        """mix projection + (1 - mix) kernel, of checked subspaces (n, d, p) and (N, d, q)."""
        if D is not None:
            X, D = core.same_dimension(X, D, ("X", "the training subspaces"))
        if self.mix == 1 or not callable(self.kernel) and self.kernel == "projection":
            return core.bases_gram(X, D)
        K = self._kernel_alone(X, X if D is None else D)
        return K if self.mix == 0 else self.mix * core.bases_gram(X, D) + (1 - self.mix) * K

    def _kernel_alone(self, X, D):
        if callable(self.kernel):
            K = core.finite_array(self.kernel(X, D), "kernel(X, D)")
            if K.shape != (len(X), len(D)):
                raise ValueError(f"kernel(X, D) must have shape {(len(X), len(D))}, one value a "
                                 f"pair, got {K.shape}")
            return K.astype(X.dtype, copy=False)
        if self.kernel == "binet-cauchy":
            return comparators_sets.binet_cauchy_kernel(X, D)
        n_angles = comparators_sets.check_angles(self.n_angles, X, D)
        return comparators_sets.cosine_sums(X, D, n_angles, 1)

    @property
    def _n_features_out(self):
        return self.coefficients_.shape[1]


class GDA(_Discriminant):
    """Grassmann discriminant analysis: the nearest training set, or class mean, in at most
    n_classes - 1 coordinates (comparators_sets.gda).

    kernel: "projection", "correlation" (the sum of the n_angles largest canonical correlations,
    None for all), "binet-cauchy", any k(X, D) -> (n, N) on subspaces, or "precomputed": then X
    holds inner products, (N, N) of the training sets in fit and (n, N) elsewhere. mix, in [0, 1]:
    the share of the projection kernel in mix * projection + (1 - mix) * kernel. n_components, reg:
    as in gda. rule: "neighbor" or "mean".

    coordinates_ (N, m) of the training sets, means_ (n_classes, m), values_ and negative_share_
    tell of the fit.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import GDA
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> GDA().fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    def __init__(self, kernel: str | core.Kernel = "projection", *, mix: float = 0.0,
                 n_angles: int | None = None, n_components: int | None = None, reg: float = 1e-3,
                 rule: str = "neighbor") -> None:
        self.kernel = kernel
        self.mix = mix
        self.n_angles = n_angles
        self.n_components = n_components
        self.reg = reg
        self.rule = rule

    def _learn(self, K):
        return comparators_sets.gda(K, self.index_, n_components=self.n_components, reg=self.reg)


class GGDA(_Discriminant):
    """Graph-embedding Grassmann discriminant analysis: the nearest training set, or class mean, in
    the coordinates of comparators_sets.ggda.

    kernel, mix, n_angles, rule, and what tells of the fit: as in GDA; by default half the
    projection kernel and half the largest canonical correlation. n_within, n_between, beta,
    n_components, reg: as in ggda.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import GGDA
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> GGDA().fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    def __init__(self, kernel: str | core.Kernel = "correlation", *, mix: float = 0.5,
                 n_angles: int | None = 1, n_within: int | None = None,
                 n_between: int | None = None, beta: float = 1.0, n_components: int | None = None,
                 reg: float = 1e-3, rule: str = "neighbor") -> None:
        self.kernel = kernel
        self.mix = mix
        self.n_angles = n_angles
        self.n_within = n_within
        self.n_between = n_between
        self.beta = beta
        self.n_components = n_components
        self.reg = reg
        self.rule = rule

    def _learn(self, K):
        return comparators_sets.ggda(K, self.index_, n_within=self.n_within,
                                     n_between=self.n_between, beta=self.beta,
                                     n_components=self.n_components, reg=self.reg)


# ----------------------------------------------------- discriminant canonical correlations


class DCC(ByScores, estimators.SubspaceEstimator):
    """The class of the training set of the largest sum of canonical correlations, after the
    transform that discriminant analysis of canonical correlations learns (comparators_sets.dcc).

    dimension, n_between, n_iter, reg, tol: as in dcc; n_iter=0 learns nothing. n_angles: the
    number of largest correlations that are summed, in 1..p, None for all.

    transform_ (d, m), or None for the identity, objective_ and n_iter_ tell of the fit.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.estimators import DCC
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> DCC().fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    def __init__(self, dimension: int | None = None, *, n_between: int | None = None,
                 n_angles: int | None = None, n_iter: int = 10, reg: float = 1e-3,
                 tol: float = 1e-4) -> None:
        self.dimension = dimension
        self.n_between = n_between
        self.n_angles = n_angles
        self.n_iter = n_iter
        self.reg = reg
        self.tol = tol

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Learn from subspaces X (N, d, p) with labels y."""
        X = self.check_subspaces(X, fit=True)
        comparators_sets.check_angles(self.n_angles, X, X)
        self.classes_, self.index_ = estimators.classes_of(y, len(X))
        found = comparators_sets.dcc(X, self.index_, dimension=self.dimension,
                                     n_between=self.n_between, n_iter=self.n_iter, reg=self.reg,
                                     tol=self.tol)
        self.transform_ = found.transform
        self.objective_ = found.objective
        self.n_iter_ = found.n_iter
        self.bases_ = self._transformed(X)
        return self

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """The sum (n, n_classes) of the correlations with the most similar set of a class."""
        X = self._transformed(self.check_subspaces(X))
        X, bases = core.same_dimension(X, self.bases_, ("X", "the training subspaces"))
        n_angles = min(X.shape[2], bases.shape[2])
        if self.n_angles is not None:
            n_angles = min(n_angles, self.n_angles)
        similarity = comparators_sets.cosine_sums(X, bases, n_angles, 1)
        return best_of_class(similarity, self.index_, len(self.classes_))

    def _transformed(self, X):
        if self.transform_ is None:
            return X
        T = self.transform_.astype(X.dtype, copy=False)
        return comparators_sets.image_bases(X, T)[0]


# ------------------------------------------------------------------------------ sets of frames


class _OnSets(ByScores, BaseEstimator):
    """Base of the classifiers of sets of frames, a sequence of n arrays (n_frames_i, d) or
    (n_frames_i, height, width), or one array of them."""

    def __sklearn_tags__(self):
        return estimators.tags_of_arrays(super().__sklearn_tags__())

    def check_sets(self, X: core.Sets, fit: bool = False) -> list[np.ndarray]:
        """X as a list of checked frames (n_i, d); fit records d, every other method demands it."""
        if not fit:
            check_is_fitted(self)
        X = comparators_hulls.check_sets(X, "X")
        d = X[0].shape[1]
        if fit:
            self.n_features_in_ = d
        elif d != self.n_features_in_:
            raise ValueError(f"X must hold frames of d = {self.n_features_in_}, as in fit, got {d}")
        return X


class MSM(estimators.KernelChoice, _OnSets):
    """Mutual subspace method: the class whose reference subspace has the largest mean of the
    n_angles largest cos^2 with the subspace of a query's frames; with keep the constrained one
    (CMSM), with a kernel KMSM, with both KCMSM.

    p: dimension of the subspace of a query; p_reference: of a reference, None for p. reference:
    "class", one for all frames of a class together; "set", one for each training set. n_angles: in
    1..min(p, p_reference), None for all. keep: None, or the share of directions, in (0, 1], of the
    generalised difference subspace of the references that both sides are projected onto
    (comparators_sets.difference_subspace); one that projects to zero counts as a right angle.
    kernel: "linear", "rbf" (uses gamma and gamma_scale), "polynomial" (degree and coef0), or any
    k(A, B) on rows, with the coordinates of kernels.Lift; gamma, gamma_scale, n_landmarks, rng: as
    in KernelLift, but more than 4096 frames need n_landmarks. A set needs p frames independent in
    feature space, a reference p_reference.

    references_ and, with keep, difference_ are bases, in coordinates of the kernel's.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import MSM
    >>> sets = np.random.default_rng(0).standard_normal((6, 8, 10))  # six sets of eight frames
    >>> MSM(p=3, reference="set").fit(sets, ["ape", "bee"] * 3).predict(sets[:2]).tolist()
    ['ape', 'bee']
    """

    def __init__(self, p: int = 3, p_reference: int | None = None, *, reference: str = "class",
                 n_angles: int | None = None, keep: float | None = None,
                 kernel: str | tuple | core.Kernel = "linear", gamma: float | None = None,
                 gamma_scale: str | None = None, degree: int = 2, coef0: float = 1.0,
                 n_landmarks: int | None = None, rng: core.Rng = None) -> None:
        self.p = p
        self.p_reference = p_reference
        self.reference = reference
        self.n_angles = n_angles
        self.keep = keep
        self.kernel = kernel
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.rng = rng

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Make the references of sets of frames X with labels y."""
        core.check_choice(self.reference, "reference", "class", "set")
        p = core.check_integer(self.p, "p", 1)
        q = p
        if self.p_reference is not None:
            q = core.check_integer(self.p_reference, "p_reference", 1)
        if self.n_angles is not None:
            core.check_integer(self.n_angles, "n_angles", 1, min(p, q))
        X = self.check_sets(X, fit=True)
        self.classes_, index = estimators.classes_of(y, len(X))
        n_classes = len(self.classes_)
        self.reference_index_ = index
        if self.reference == "class":
            X = [np.concatenate([X[i] for i in np.flatnonzero(index == c)])
                 for c in range(n_classes)]
            self.reference_index_ = np.arange(n_classes)
        self.lift_ = self._lift_for(X, q)
        references = self._bases(X, q)
        self.difference_ = None
        if self.keep is not None:
            self.difference_ = comparators_sets.difference_subspace(references, self.keep)
            references = comparators_sets.image_bases(references, self.difference_)[0]
        self.references_ = references
        return self

    def class_scores(self, X: core.Sets) -> np.ndarray:
        """The similarity (n, n_classes), in [0, 1], to the most similar reference of a class."""
        X = self.check_sets(X)
        step = max(1, TILE // (self._n_coordinates() * self.p))
        parts = [self._similarity(X[i:i + step]) for i in range(0, len(X), step)]
        return best_of_class(np.concatenate(parts), self.reference_index_, len(self.classes_))

    def _similarity(self, X):
        bases = self._bases(X, self.p)
        if self.difference_ is not None:
            T = self.difference_.astype(bases.dtype, copy=False)
            bases = comparators_sets.image_bases(bases, T)[0]
        bases, references = core.same_dimension(bases, self.references_, ("X", "references"))
        most = min(bases.shape[2], references.shape[2])
        n_angles = most if self.n_angles is None else min(self.n_angles, most)
        sums = comparators_sets.cosine_sums(bases, references, n_angles, 2)
        return sums / bases.dtype.type(n_angles)

    def _lift_for(self, X, p):
        """The coordinates of a kernel's feature space, None for the linear kernel."""
        kernel = self.chosen_kernel(X)
        if isinstance(kernel, kernels.linear):
            return None
        n = sum(map(len, X))
        if self.n_landmarks is None and n > comparators_hulls.MOST_FRAMES:
            raise ValueError("n_landmarks must be given with a kernel for more than "
                             f"{comparators_hulls.MOST_FRAMES} frames, got None for {n}, whose "
                             f"kernel matrix takes {8e-9 * n**2:.1f} GB and its factor "
                             f"{n**3 / 3:.0e} multiplications")
        lift = kernels.Lift(kernel, p, n_landmarks=self.n_landmarks,
                            rng=estimators.own_rng(self.rng))
        return lift.fit(X)

    def _bases(self, X, p):
        """Subspaces (n, d, p) of sets, in the coordinates of the kernel's (n, r, p): what lies
        outside the span of the references has inner product 0 with all of them."""
        if self.lift_ is None:
            return subspaces.from_sets(X, p)
        return self.lift_.transform(X, p)[:, :self._n_coordinates()]

    def _n_coordinates(self):
        return self.n_features_in_ if self.lift_ is None else len(self.lift_.landmarks_)


class KAHM(estimators.KernelChoice, _OnSets):
    """Kernelised affine hull method: the class of the training set whose hull of frames is nearest
    to that of a query (AHISD and CHISD for the linear kernel).

    hull: "affine" (uses dimension and share, comparators_hulls.affine_hull_distances) or "convex"
    (bound, convex_hull_distances). kernel: "linear", "rbf" (uses gamma and
    gamma_scale, as KernelLift does), "polynomial" (degree and coef0), or any k(A, B) on rows. A
    warning for queries whose hull meets hulls of several classes: their labels say nothing.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import KAHM
    >>> sets = np.random.default_rng(0).standard_normal((6, 4, 20))  # six sets of four frames
    >>> KAHM().fit(sets, ["ape", "bee"] * 3).predict(sets[:2]).tolist()
    ['ape', 'bee']
    """

    def __init__(self, hull: str = "affine", *, kernel: str | tuple | core.Kernel = "linear",
                 dimension: int | None = None, share: float = 0.98, bound: float = 1.0,
                 gamma: float | None = None, gamma_scale: str | None = None, degree: int = 2,
                 coef0: float = 1.0) -> None:
        self.hull = hull
        self.kernel = kernel
        self.dimension = dimension
        self.share = share
        self.bound = bound
        self.gamma = gamma
        self.gamma_scale = gamma_scale
        self.degree = degree
        self.coef0 = coef0

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Keep the hulls of sets of frames X with labels y."""
        core.check_choice(self.hull, "hull", "affine", "convex")
        comparators_hulls.check_hull_rules(self.dimension, self.share)
        comparators_hulls.check_bound(self.bound)
        X = self.check_sets(X, fit=True)
        self.classes_, self.index_ = estimators.classes_of(y, len(X))
        kernel = self.chosen_kernel(X)
        self.kernel_ = None if isinstance(kernel, kernels.linear) else kernel
        self.hulls_ = self._hulls(X)
        return self

    def distances(self, X: core.Sets) -> np.ndarray:
        """Distances (n, n_train) of hulls from those of the training sets."""
        return self._distances_and_meetings(X)[0]

    def class_scores(self, X: core.Sets) -> np.ndarray:
        """Minus the distance (n, n_classes) from the nearest hull of a class."""
        distances, meet = self._distances_and_meetings(X)
        n_classes = len(self.classes_)
        met = best_of_class(meet, self.index_, n_classes).sum(axis=1) > 1
        if met.any():
            warnings.warn(f"{met.sum()} of {len(met)} queries have {self.hull} hulls that meet "
                          "hulls of several classes: their labels say nothing, lower dimension, "
                          "share or bound, or take another hull", stacklevel=3)
        return best_of_class(-distances, self.index_, n_classes)

    def _distances_and_meetings(self, X):
        X = self.check_sets(X)
        hulls = self._hulls(X)
        if self.hull == "affine":
            return comparators_hulls.affine_distances(hulls, self.hulls_, self.kernel_)
        rules = self.bound, *CERTIFIED
        found, meet = comparators_hulls.convex_distances(hulls, self.hulls_, rules, self.kernel_)
        return found.distances, meet

    def _hulls(self, X):
        if self.hull == "affine":
            rules = self.dimension, self.share
            return comparators_hulls.affine_hulls(X, rules, self.kernel_)
        return comparators_hulls.convex_hulls(X, self.bound, self.kernel_)
