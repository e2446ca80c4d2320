"""scikit-learn estimators of the methods that the paper compares with.

A query's score for a class is minus its distance from, or its similarity to, what of
that class is nearest to it; the highest score wins, the first in a tie. Every parameter
is meant to be chosen by cross-validation. Of videos, X is a sequence of clips, frames
in order of time, (n_frames, height, width), or one array of them.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections import namedtuple
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.svm import SVC

import grassmann_sc as core
from grassmann_sc import estimators, frames, kernels, shared, subspaces
from grassmann_sc.baselines import dynamics, hulls, sets, tangent, tensors, textures

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's own from Python 3.11 on

__all__ = [
    "DCC",
    "GDA",
    "GGDA",
    "KAHM",
    "MSM",
    "ISC",
    "LogEuclideanSC",
    "TangentDictionary",
    "CSLDS",
    "DFS",
    "DLPegasos",
    "LDS",
    "ProductManifold",
    "TCCA",
]

TILE = 2**22  # numbers of the coordinates of queries that are held at a time
CERTIFIED = 1e-10, 10000  # tol and max_iter of distances of convex hulls
# parameters that do not change how clips are compared, but what is learned from it
LEARNING = {"rule", "C", "gamma", "lam", "n_iter", "n_features", "random_state"}
FAR = 1e300  # a score that stands for minus infinity
# one of so many measurements of CSLDS is common to all frames
COMMON = 5


def best_of_class(similarity, index):
    """The largest similarity to the members of each class: (n, n_classes).

    It takes similarities (n, N) to all, whose classes are index (N,).
    """
    return np.stack(
        [similarity[:, index == c].max(axis=1) for c in range(index.max() + 1)], axis=1
    )


def cosine_sums(X, references, n_angles, power):
    """Sums (n, N) of the n_angles largest cosines to this power, and their number.

    If there are fewer, or for None, all are summed.
    """
    X, references = core.same_dimension(X, references, ("X", "the training subspaces"))
    most = min(X.shape[2], references.shape[2])
    n_angles = most if n_angles is None else min(n_angles, most)
    return sets.cosine_sums(X, references, n_angles, power), n_angles


def image_of(bases, T):
    """Bases (n, m, p) of the images T^T B of bases (n, d, p); T = None is I."""
    if T is None:
        return bases
    return sets.image_bases(bases, T.astype(bases.dtype, copy=False))[0]


def first_of_ties(scores, size=None):
    """The scores (n, n_classes), in which the first of the best classes wins.

    Scores tie to rounding relative to size (n,), by default the size of the best score.
    """
    best = scores.max(axis=1)
    size = np.abs(best) if size is None else size
    ties = best - max(32 * np.finfo(scores.dtype).eps, 1e-8) * size
    winners = (scores >= ties[:, None]).argmax(axis=1)
    behind = np.flatnonzero(scores.argmax(axis=1) != winners)
    scores[behind, winners[behind]] = np.nextafter(
        best[behind], scores.dtype.type(np.inf)
    )
    return scores


class Learner(estimators.ByScores, estimators.Estimator):
    """Base of the classifiers that learn from the checked training set."""

    def fit(self, X: ArrayLike | shared.Sets, y: core.Labels) -> Self:
        """Learn from subspaces (N, d, p), sets of frames or clips X with labels y."""
        self._learn_from(self.check_labelled(X, y))
        return self


class Sharing:
    """Base of estimators that share what they compute of one training set.

    Give them one dict as made: what is in it is not computed again. Its entry "clips"
    may be a dict that those of all training sets share: what is of one clip alone.
    """

    def once(
        self, key: Hashable, make: Callable, clips: Sequence = (), alone: bool = False
    ) -> Any:
        """make(), or what it gave when it was first asked for, of equal clips.

        alone: whatever the training set.
        """
        made = getattr(self, "made", None)
        if made is None:
            return make()
        made = made.setdefault("clips", {}) if alone else made
        key = key, fingerprint(clips)
        if key not in made:
            made[key] = make()
        return made[key]


def fingerprint(clips):
    """A hash of the types, shapes and numbers of arrays."""
    digest = hashlib.blake2b()
    for clip in clips:
        digest.update(f"{clip.dtype.str} {clip.shape}".encode())
        digest.update(np.ascontiguousarray(clip))
    return digest.digest()


# ------------------------------------------------------------------------ discriminants


@dataclass(eq=False, repr=False)
class GDA(estimators.Transformer, estimators.ByScores, estimators.OnSubspaces):
    """Grassmann discriminant analysis.

    The nearest training set, or class mean, in at most n_classes - 1 coordinates
    (sets.gda).
    kernel: "projection", "correlation" (the sum of the n_angles largest canonical
    correlations, None for all), "binet-cauchy", any k(X, D) -> (n, N) on subspaces, or
    "precomputed": then X holds inner products, (N, N) of the training sets in fit and
    (n, N) elsewhere. mix, in [0, 1]: the share of the projection kernel in mix *
    projection + (1 - mix) * kernel. reg: as in gda. rule: "neighbor" or "mean".

    coordinates_ (N, m) of the training sets, means_ (n_classes, m), values_ and
    negative_share_ tell of the fit.

    ValueError, by fit, for an unknown kernel or rule, mix outside [0, 1], reg out
    of range, fewer than two classes, or a matrix that is not symmetric; by predict
    for another d.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines.estimators import GDA
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> GDA().fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    kernel: str | shared.Kernel = "projection"
    _: KW_ONLY
    mix: float = 0.0
    n_angles: int | None = None
    reg: float = 1e-3
    rule: str = "neighbor"
    as_fitted = ("kernel", "mix", "n_angles")

    def fit(self, X: ArrayLike, y: core.Labels) -> Self:
        """Learn from subspaces X (N, d, p), or their Gram matrix (N, N), with labels y."""
        K = self._gram_of_labelled(X, y)
        return self._keep(K, next(self._learn(K, [self.reg])))

    def each_reg(
        self, X: ArrayLike, y: core.Labels, regs: Sequence[float]
    ) -> Iterator[Self]:
        """Copies of this, fitted with each reg, which share what does not depend on it."""
        K = self._gram_of_labelled(X, y)
        for reg, learned in zip(regs, self._learn(K, regs)):
            fitted = copy.copy(self)
            fitted.reg = reg
            yield fitted._keep(K, learned)

    def _gram_of_labelled(self, X, y):
        core.check_choice(self.rule, "rule", "neighbor", "mean")
        if not callable(self.kernel):
            core.check_choice(
                self.kernel,
                "kernel",
                "projection",
                "correlation",
                "binet-cauchy",
                "precomputed",
            )
        core.check_number(self.mix, "mix", least=0, most=1)
        K = self.check_labelled(X, y)
        if not self.is_precomputed():
            self.subspaces_ = K.copy()
            K = self._gram(K)
        return K

    def _keep(self, K, learned):
        self.coefficients_, self.values_, self.negative_share_ = learned
        self.coordinates_ = K @ self.coefficients_
        self.means_ = np.stack(
            [
                self.coordinates_[self.index_ == c].mean(axis=0)
                for c in range(len(self.classes_))
            ]
        )
        self.n_features_out_ = self.coordinates_.shape[1]
        return self

    def _learn(self, K, regs):
        return sets.each_gda(K, self.index_, regs)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Coordinates (n, m), features for any classifier."""
        return self._coordinates(X)

    def _coordinates(self, X):  # set_output may make a table of what transform gives
        X = self.check_input(X)
        K = X if self.is_precomputed() else self._gram(X, self.subspaces_)
        return K @ self.coefficients_

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """Minus the squared distances (n, n_classes) from the nearest set, or mean."""
        core.check_choice(self.rule, "rule", "neighbor", "mean")
        coordinates = self._coordinates(X)
        near = self.means_ if self.rule == "mean" else self.coordinates_
        scores = -cdist(coordinates, near, "sqeuclidean")
        if self.rule == "neighbor":
            scores = best_of_class(scores, self.index_)
        square = np.square(coordinates).sum(axis=1) + np.square(near).sum(axis=1).max()
        # the best may all but vanish, and all of them
        return first_of_ties(
            scores, np.ptp(scores, axis=1) + np.finfo(square.dtype).eps * square
        )

    def _gram(self, X, D=None):
        """mix projection + (1 - mix) kernel, of checked (n, d, p) and (N, d, q)."""
        X, Y = core.same_dimension(
            X, X if D is None else D, ("X", "the training subspaces")
        )
        D = None if D is None else Y  # of one type with X
        if self.mix == 1 or not callable(self.kernel) and self.kernel == "projection":
            return core.bases_gram(X, D)
        if callable(self.kernel):
            K = shared.shaped_array(
                self.kernel(X, Y),
                "kernel(X, D)",
                (len(X), len(Y)),
                ", one value a pair",
            ).astype(X.dtype, copy=False)
        elif self.kernel == "binet-cauchy":
            K = sets.binet_cauchy_kernel(X, Y)
        else:
            K = sets.cosine_sums(X, Y, sets.check_angles(self.n_angles, X, Y), 1)
        return (
            K
            if self.mix == 0
            else self.mix * core.bases_gram(X, D) + (1 - self.mix) * K
        )


@dataclass(eq=False, repr=False)
class GGDA(GDA):
    """Graph-embedding Grassmann discriminant analysis.

    The nearest training set, or class mean, in the coordinates of sets.ggda.
    kernel, mix, n_angles, rule, and what tells of the fit: as in GDA; by default half
    the projection kernel and half the largest canonical correlation. beta, reg: as in
    ggda.

    ValueError where GDA and sets.ggda raise it.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines.estimators import GGDA
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> GGDA().fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    kernel: str | shared.Kernel = "correlation"
    _: KW_ONLY
    mix: float = 0.5
    n_angles: int | None = 1
    beta: float = 1.0

    def _learn(self, K, regs):
        return sets.each_ggda(K, self.index_, regs, self.beta)


# -------------------------------------------------- discriminant canonical correlations


@dataclass(eq=False, repr=False)
class DCC(Sharing, Learner, estimators.OnSubspaces):
    """Discriminant analysis of canonical correlations (sets.dcc), then the nearest set.

    The nearest training set has the largest sum of canonical correlations after the
    learned transform. dimension, reg, tol, and max_iter, there n_iter: as in dcc; 0
    learns nothing.
    n_angles: the number of largest correlations that are summed, in 1..p, None for all.

    transform_ (d, m), or None for the identity, objective_ and n_iter_ tell of the fit.

    ValueError, by fit, where sets.dcc raises it, or for n_angles beyond p; by
    predict for another d.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines.estimators import DCC
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> DCC().fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    dimension: int | None = None
    _: KW_ONLY
    n_angles: int | None = None
    max_iter: int = 10
    reg: float = 1e-3
    tol: float = 1e-4
    as_fitted = ("n_angles",)

    def _learn_from(self, X):
        """Learn the transform from subspaces X (N, d, p)."""
        sets.check_angles(self.n_angles, X, X)
        self.transform_, self.objective_, n_iter = sets.dcc(
            X,
            self.index_,
            begun=self.once("begun", lambda: sets.dcc_begun(X, self.index_)),
            n_iter=core.check_integer(self.max_iter, "max_iter", 0),
            **self.options("dimension", "reg", "tol"),
        )
        # one that did not help was tried
        self.n_iter_ = max(n_iter, min(1, self.max_iter))
        T = self.transform_
        self.bases_ = X.copy() if T is None else image_of(X, T)

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """Sums of the correlations with a class's most similar set (n, n_classes)."""
        X = image_of(self.check_input(X), self.transform_)
        sums, _ = cosine_sums(X, self.bases_, self.n_angles, 1)
        return first_of_ties(best_of_class(sums, self.index_))


# ----------------------------------------------------------------------- sets of frames


class OnSets(Sharing, estimators.KernelChoice, Learner):
    """Base of the classifiers of sets of frames.

    Sets are a sequence of n arrays (n_frames_i, d) or (n_frames_i, height, width), or
    one array of them.
    """

    def check_input(self, X: shared.Sets, fit: bool = False) -> list[np.ndarray]:
        """X as a list of checked frames (n_i, d).

        fit records d, every other method demands it.
        """
        if fit:
            shared.warn_of_bases(X)
            shared.warn_of_transposed(X)
        else:
            self.check_as_fitted()
        checked = shared.check_sets(X, "X")
        self.check_d(checked[0].shape[1], fit)
        return checked


@dataclass(eq=False, repr=False)
class MSM(OnSets):
    """Mutual subspace method.

    The class whose reference subspace has the largest mean of the n_angles largest
    cos^2 with the subspace of a query's frames; with keep the constrained one (CMSM),
    with whiten the orthogonal one (OMSM), with a kernel KMSM, KCMSM and KOMSM.
    p: dimension of the subspace of a query; p_reference: of a reference, None for p.
    reference: "class", one for all frames of a class together; "set", one for each
    training set. n_angles: in 1..min(p, p_reference), None for all. keep: None, or the
    share of directions, in (0, 1], of the generalised difference subspace of the
    references that both sides are projected onto (sets.difference_subspace); one that
    projects to zero counts as a right angle. whiten: compare both sides after
    sets.whitening_transform of the references, which makes these orthogonal; not with
    keep.
    kernel: "linear", "rbf" (uses gamma and gamma_scale), "polynomial" (degree and
    coef0), or any k(A, B) on rows, with the coordinates of kernels.Lift; gamma,
    gamma_scale, n_landmarks, random_state: as in KernelLift, but more than 4096 frames
    need n_landmarks. A set needs p frames independent in feature space, a reference
    p_reference.

    references_ are bases, in coordinates of the kernel's; transform_ is the map of keep
    or whiten, or None.

    ValueError, by fit, for keep with whiten, n_angles beyond p or p_reference, a
    reference of fewer independent frames than p_reference, or more than 4096 frames in
    a kernel's space without n_landmarks; by predict for a set of fewer than p, or
    another d.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import MSM
    >>> sets = [*np.random.default_rng(0).standard_normal((6, 8, 10))]  # six sets of eight frames
    >>> MSM(p=3, reference="set").fit(sets, ["ape", "bee"] * 3).predict(sets[:2]).tolist()
    ['ape', 'bee']
    """

    p: int = 3
    p_reference: int | None = None
    _: KW_ONLY
    reference: str = "class"
    n_angles: int | None = None
    keep: float | None = None
    whiten: bool = False
    n_landmarks: int | None = None
    random_state: estimators.RandomState = None
    as_fitted = (
        *estimators.KernelChoice.as_fitted,
        "p",
        "p_reference",
        "reference",
        "n_angles",
        "keep",
        "whiten",
        "n_landmarks",
    )

    def _learn_from(self, X):
        """Make the references of sets of frames X."""
        core.check_choice(self.reference, "reference", "class", "set")
        p = core.check_integer(self.p, "p", 1)
        q = core.check_integer(
            p if self.p_reference is None else self.p_reference, "p_reference", 1
        )
        if self.n_angles is not None:
            core.check_integer(self.n_angles, "n_angles", 1, min(p, q))
        if core.check_flag(self.whiten, "whiten") and self.keep is not None:
            raise ValueError(f"keep must be None with whiten=True, got {self.keep!r}")
        if self.reference == "class":
            X = [
                np.concatenate([X[i] for i in np.flatnonzero(self.index_ == c)])
                for c in range(len(self.classes_))
            ]
            self.index_ = np.arange(len(X))  # the class of each reference
        space = tuple(
            self.options(
                "reference",
                "kernel",
                "gamma",
                "gamma_scale",
                "degree",
                "coef0",
                "n_landmarks",
                "random_state",
            ).items()
        )
        self.lift_ = self.once(space, lambda: self._lift_for(X, q))
        try:
            references = self.once((space, q), lambda: self._bases(X, q))
        except ValueError as error:
            raise ValueError(
                f"p_reference = {q}, of one reference a {self.reference}: {error}"
            ) from None
        self.transform_ = None
        if self.keep is not None:
            self.transform_ = sets.difference_subspace(references, self.keep)
        elif self.whiten:
            self.transform_ = sets.whitening_transform(references)
        self.references_ = image_of(references, self.transform_)

    def class_scores(self, X: shared.Sets) -> np.ndarray:
        """Similarity (n, n_classes), in [0, 1], to a class's most similar reference."""
        X = self.check_input(X)
        step = max(1, TILE // (self._n_coordinates() * self.p))
        try:
            parts = [self._similarity(X[i : i + step]) for i in range(0, len(X), step)]
        except ValueError:  # which is of a block: say of which set
            estimators.make_each(lambda rows: self._similarity([rows]), X)
            raise
        return first_of_ties(best_of_class(np.concatenate(parts), self.index_))

    def _similarity(self, X):
        sums, n_angles = cosine_sums(
            image_of(self._bases(X, self.p), self.transform_),
            self.references_,
            self.n_angles,
            2,
        )
        return sums / n_angles

    def _lift_for(self, X, p):
        """The coordinates of a kernel's feature space, None for the linear kernel."""
        kernel = self.chosen_kernel(X)
        if isinstance(kernel, kernels.linear):
            return None
        n = sum(map(len, X))
        if self.n_landmarks is None and n > hulls.MOST_FRAMES:
            raise ValueError(
                "n_landmarks must be given with a kernel for more than "
                f"{hulls.MOST_FRAMES} frames, got None for {n}, whose "
                f"kernel matrix takes {8e-9 * n**2:.1f} GB and its factor "
                f"{n**3 / 3:.0e} multiplications"
            )
        return kernels.Lift(
            kernel,
            p,
            n_landmarks=self.n_landmarks,
            rng=estimators.rng_of(self.random_state),
        ).fit(X)

    def _bases(self, X, p):
        """Subspaces (n, d, p) of sets, in the coordinates of the kernel's (n, r, p).

        What lies outside the span of the references has inner product 0 with all of
        them.
        """
        if self.lift_ is None:
            return subspaces.from_sets(X, p)
        return self.lift_.transform(X, p)[:, : self._n_coordinates()]

    def _n_coordinates(self):
        return self.n_features_in_ if self.lift_ is None else len(self.lift_.landmarks_)


@dataclass(eq=False, repr=False)
class KAHM(OnSets):
    """Kernelised affine hull method.

    The class of the training set whose hull of frames is nearest to that of a query
    (AHISD and CHISD for the linear kernel).
    hull: "affine" (uses dimension and share, hulls.affine_hull_distances) or "convex"
    (bound, convex_hull_distances). kernel: "linear", "rbf" (uses gamma and gamma_scale,
    as KernelLift does), "polynomial" (degree and coef0), or any k(A, B) on rows. A
    warning for queries whose hull meets hulls of several classes: their labels say
    nothing.

    ValueError, by fit, for an unknown hull, a bound, or the share of an affine hull,
    outside (0, 1], a dimension beyond a set's, or a bound below 1 over its frames; by
    predict for another d.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import KAHM
    >>> sets = [*np.random.default_rng(0).standard_normal((6, 4, 20))]  # six sets of four frames
    >>> KAHM().fit(sets, ["ape", "bee"] * 3).predict(sets[:2]).tolist()
    ['ape', 'bee']
    """

    hull: str = "affine"
    _: KW_ONLY
    dimension: int | None = None
    share: float = 0.98
    bound: float = 1.0
    as_fitted = (
        *estimators.KernelChoice.as_fitted,
        "hull",
        "dimension",
        "share",
        "bound",
    )

    def _learn_from(self, X):
        """Keep the hulls of sets of frames X."""
        core.check_choice(self.hull, "hull", "affine", "convex")
        core.check_number(self.bound, "bound", above=0, most=1)
        kernel = self.chosen_kernel(X)
        self.kernel_ = None if isinstance(kernel, kernels.linear) else kernel
        self.hulls_ = self._hulls(X)

    def distances(self, X: shared.Sets) -> np.ndarray:
        """Distances (n, n_train) of hulls from those of the training sets."""
        return self._distances_and_meetings(X)[0]

    def class_scores(self, X: shared.Sets) -> np.ndarray:
        """Minus the distance (n, n_classes) from the nearest hull of a class."""
        distances, meet = self._distances_and_meetings(X)
        met = best_of_class(meet, self.index_).sum(axis=1) > 1
        if met.any():
            core.warn(
                f"{met.sum()} of {len(met)} queries have {self.hull} hulls that meet "
                "hulls of several classes: their labels say nothing, lower dimension, "
                "share or bound, or take another hull"
            )
        return first_of_ties(best_of_class(-distances, self.index_))

    def _distances_and_meetings(self, X):
        queries = self._hulls(self.check_input(X))
        if self.hull == "affine":
            return hulls.affine_distances(queries, self.hulls_, self.kernel_)
        nearest, meet = hulls.convex_distances(
            queries, self.hulls_, (self.bound, *CERTIFIED), self.kernel_
        )
        return nearest.distances, meet

    def _hulls(self, X):
        if self.hull == "affine":
            return hulls.affine_hulls(X, self.dimension, self.share, self.kernel_)
        return hulls.convex_hulls(X, self.bound, self.kernel_)


# ------------------------------------------------------------ codes in tangent spaces


@dataclass(eq=False, repr=False)
class ISC(Learner, estimators.OnSubspaces):
    """Intrinsic sparse coding (iSC) over labelled subspaces.

    The class whose atoms explain most of a query, by the codes of
    tangent.intrinsic_codes. lam: >= 0, as there; a code has coefficients that sum to 1,
    so that lam weighs negative ones alone, in units of squared angles.
    The score of a class is that of the rule "residual" of grassmann_sc.class_scores,
    whose residual is extrinsic: ||sum_{j in c} y_j log_X(D_j)||, the intrinsic one, is 0
    for every class that the code does not use. The paper does not print its rule.

    A query needs the logarithms of all atoms: on seven real sets iSC takes 3 to 14 times
    as long as gSC, most where atoms are many (benchmarks/claims.py); in the paper 12 to
    19 times.

    ValueError, by fit, for lam < 0; by predict for another d or p.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines.estimators import ISC
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> ISC(lam=0.1).fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    lam: float = 0.1

    def _learn_from(self, X):
        """Take subspaces X (N, d, p) as atoms."""
        core.check_number(self.lam, "lam", least=0)
        self.atoms_ = X.copy()
        self.gram_ = core.bases_gram(X)

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """||X^||^2 less the residual of each class (n, n_classes)."""
        X, atoms = core.same_dimension(
            self.check_input(X), self.atoms_, ("X", "the training subspaces")
        )
        return core.class_scores(
            tangent.intrinsic_codes(X, atoms, self.lam),
            self.gram_,
            core.bases_gram(X, atoms),
            self.index_,
            norm2=core.squared_norm(X),
        )[0]


@dataclass(eq=False, repr=False)
class LogEuclideanSC(Sharing, Learner, estimators.OnSubspaces):
    """Log-Euclidean sparse coding (lE-SC) over labelled subspaces.

    The class of least residual in one tangent space, by the codes of
    tangent.log_euclidean_codes. base: where that space touches, None for the span of
    the first p axes, a subspace (d, p), or "mean", the Karcher mean of the training set
    (the paper's lE-SC-adaptive). lam, lam_scale, positive: as in grassmann_sc.gsc. Two
    classes on opposite sides of the base explain each other by negative coefficients,
    as the paper has them; positive forbids these.

    base_ (d, p) is the base in use.

    ValueError, by fit, for lam < 0, an unknown lam_scale, or a base of another d or
    p; by predict for another d or p.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines.estimators import LogEuclideanSC
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> LogEuclideanSC(lam=0.1).fit(X, ["ape", "bee"] * 3).predict(X[:2]).tolist()
    ['ape', 'bee']
    """

    base: str | ArrayLike | None = None
    lam: float = 0.1
    _: KW_ONLY
    lam_scale: str | None = None
    positive: bool = False

    def _learn_from(self, X):
        """Take subspaces X (N, d, p) as atoms."""
        core.check_number(self.lam, "lam", least=0)
        core.check_choice(self.lam_scale, "lam_scale", None, "max")
        core.check_flag(self.positive, "positive")
        self.atoms_ = X.copy()
        find = partial(tangent.tangent_base, self.base, X)
        by_name = self.base is None or isinstance(self.base, str)
        self.base_ = self.once(("base", self.base), find) if by_name else find()

    def class_scores(self, X: ArrayLike) -> np.ndarray:
        """||log(X)||^2 less the residual of each class (n, n_classes)."""
        K_dd, K_xd, norm2 = tangent.tangent_grams(
            self.check_input(X), self.atoms_, self.base_
        )
        codes = core.sparse_codes(
            K_dd, K_xd, norm2=norm2, **self.options("lam", "lam_scale", "positive")
        )
        core.warn_zero_codes(core.lam_max(K_xd[~codes.any(axis=1)]), len(codes))
        return core.class_scores(codes, K_dd, K_xd, self.index_, norm2=norm2)[0]


# ------------------------------------------------------- dictionaries in tangent spaces


@dataclass(eq=False, repr=False)
class TangentDictionary(estimators.Transformer, estimators.OnSubspaces):
    """Learns a dictionary for coding in tangent spaces and codes over it.

    The paper's baselines for GrassmannDictionary, as features for any estimator.
    method: "log-euclidean" (tangent.log_euclidean_dictionary, uses base: None, "mean"
    or a basis) or "intrinsic" (tangent.intrinsic_dictionary). n_atoms, lam, init, tol,
    and max_iter, there n_iter: as there. random_state: as in KernelLift.

    components_ (n_atoms, d, p), costs_ and n_iter_ tell of the learning, base_ is the
    base in use.

    ValueError, by fit, for an unknown method, or where the function that learns
    raises it; by transform for another d or p.

    >>> from grassmann_sc import random_subspaces
    >>> from grassmann_sc.baselines.estimators import TangentDictionary
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> TangentDictionary(3, base=None, max_iter=2, random_state=0).fit_transform(X).shape
    (8, 3)
    """

    n_atoms: int
    method: str = "log-euclidean"
    lam: float = 0.1
    base: str | ArrayLike | None = "mean"
    init: str | ArrayLike = "kmeans++"
    max_iter: int = 20
    tol: float = 1e-6
    random_state: estimators.RandomState = None
    as_fitted = ("method",)

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Learn from subspaces X (n, d, p), n >= n_atoms unless init holds atoms."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """Learn, and give the codes (n, n_atoms) that learning ended with."""
        core.check_choice(self.method, "method", "log-euclidean", "intrinsic")
        learn = (
            tangent.intrinsic_dictionary
            if self.method == "intrinsic"
            else partial(tangent.log_euclidean_dictionary, base=self.base)
        )
        learned = learn(
            self.check_input(X, fit=True),
            **self.options("n_atoms", "lam", "init", "tol"),
            n_iter=core.check_integer(self.max_iter, "max_iter", 0),
            rng=estimators.rng_of(self.random_state),
        )
        self.base_ = getattr(learned, "base", None)
        self.components_ = learned.atoms
        self.costs_ = learned.costs
        self.n_iter_ = len(learned.costs) // 2
        self.n_features_out_ = len(learned.atoms)
        return learned.codes

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Codes (n, n_atoms) over components_."""
        X = self.check_input(X)
        code: Any = (
            tangent.intrinsic_codes
            if self.method == "intrinsic"
            else partial(tangent.log_euclidean_codes, base=self.base_)
        )
        return code(X, self.components_, self.lam)


# ------------------------------------------------------------------------------- videos


class OnVideos(Sharing, Learner):
    """Base of the classifiers of clips by pairs of a clip and a training clip.

    _describe(X) gives what of clips is compared, by parameters that are not LEARNING,
    and _between(described, described2=None) all pairs of two, or of one with itself.
    """

    alike = slice(1, 3)  # the sides of clips that have to agree: height and width

    def check_input(self, X: shared.Sets, fit: bool = False) -> list[np.ndarray]:
        """X as a list of checked clips.

        fit records the sides of the first clip, which those of all others have to agree
        with where sizes matter.
        """
        if not fit:
            self.check_as_fitted()
        clips = tensors.check_clips(X, "X")
        if fit:
            self.clip_shape_ = clips[0].shape
            self.n_features_in_ = clips[0][0].size
        sides = self.clip_shape_[self.alike]
        for i, clip in enumerate(clips):
            if clip.shape[self.alike] != sides:
                what = "frames" if len(sides) == 2 else "clips, if size is None,"
                raise ValueError(
                    f"X must have {what} of {sides}, as in fit, got "
                    f"{clip.shape[self.alike]} in X[{i}]"
                )
        return clips

    def _pairs_of_training(self, X):
        """Describe the training clips X as described_, and compare all pairs."""

        def describe_and_compare():
            described = self._describe(X)
            return described, self._between(described)

        key = "training", self._describing()
        self.described_, pairs = self.once(key, describe_and_compare)
        return pairs

    def _describing(self):
        parameters = self.get_params()
        return repr(
            {name: parameters[name] for name in sorted(parameters.keys() - LEARNING)}
        )

    def _pairs(self, X):
        """The pairs of new clips X with the training clips."""
        X = self.check_input(X)
        return self.once(
            self._describing(),
            lambda: self._between(self._describe(X), self.described_),
            X,
        )


class ByDistance(OnVideos):
    """Base of those that take the nearest training clip."""

    def distances(self, X: shared.Sets) -> np.ndarray:
        """Distances (n, n_train) from the training clips."""
        return self._pairs(X)

    def class_scores(self, X: shared.Sets) -> np.ndarray:
        """Minus the distance (n, n_classes) from the nearest clip of a class."""
        # which holds FAR
        nearness = np.maximum(-self.distances(X), -FAR, dtype=np.float64)
        return first_of_ties(best_of_class(nearness, self.index_))


@dataclass(eq=False, repr=False)
class ByRule(ByDistance):
    """Base of those whose distances also make a kernel exp(-gamma d^2), for rule="svm"."""

    _: KW_ONLY
    rule: str = "nearest"
    C: float = 10.0
    gamma: float | None = None

    def _learn_from(self, X):
        """Describe the clips X, and learn the rule from their distances (N, N)."""
        core.check_choice(self.rule, "rule", "nearest", "svm")
        C = core.check_number(self.C, "C", above=0)
        gamma = core.check_number(
            1.0 if self.gamma is None else self.gamma, "gamma", above=0
        )
        distances = self._pairs_of_training(X)
        self.svm_ = None
        if self.rule == "nearest":
            return
        square = np.square(np.minimum(distances, np.sqrt(FAR)))
        apart = square[np.isfinite(distances) & (square > 0)]
        typical = float(np.median(apart)) if apart.size else 1.0
        # which times a distance of 0 is 0
        self.gamma_ = min(gamma / typical, np.finfo(float).max)
        self.svm_ = SVC(kernel="precomputed", C=C).fit(
            np.exp(-self.gamma_ * square), self.index_
        )

    def class_scores(self, X: shared.Sets) -> np.ndarray:
        """Minus the distance (n, n_classes) from the nearest clip of a class.

        Or the decisions of the support vector machine.
        """
        core.check_choice(self.rule, "rule", "nearest", "svm")
        if self.rule == "nearest":
            return super().class_scores(X)
        self.check_as_fitted()
        if self.svm_ is None:
            raise ValueError(
                f"rule must be as in fit, or fit be called again, got {self.rule!r}"
            )
        square = np.square(np.minimum(self.distances(X), np.sqrt(FAR)))
        decision = self.svm_.decision_function(np.exp(-self.gamma_ * square))
        if decision.ndim == 1:
            decision = np.stack([-decision, decision], axis=1) / 2
        return first_of_ties(decision)


# ----------------------------------------------------------------------- linear systems


@dataclass(eq=False, repr=False)
class LDS(ByRule):
    """Linear dynamical systems.

    The class of the training clip at the least distance of ARMA models
    (subspaces.arma), or a support vector machine on exp(-gamma d^2).
    n_states: of a model; a clip needs n_states + 1 frames and n_states independent
    ones. metric: "martin" (dynamics.martin_distances) or "angles", the norm of the
    principal angles of the observability subspaces. center: take the mean frame off
    each clip. stabilize: as in subspaces.arma; without it a clip whose model is not
    stable is a ValueError. rule: "nearest" or "svm", which uses C and gamma, in units
    of 1 over the median d^2 of the training clips, None for 1. The kernel of Martin's
    distance need not be positive definite.

    systems_, pairs (A, C), tell of the fit.

    ValueError, by fit and predict, that names the clip that allows no model of
    n_states; by fit for an unknown rule, C or gamma <= 0; by predict for frames of
    another size.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import LDS
    >>> rates = [0.9, 0.5, 0.8]  # at which clips fade
    >>> clips = [np.multiply.outer(rate ** np.arange(10), np.ones((8, 8))) for rate in rates]
    >>> LDS(n_states=1).fit(clips[:2], ["slow", "fast"]).predict(clips[2:]).tolist()
    ['slow']
    """

    n_states: int = 5
    _: KW_ONLY
    metric: str = "martin"
    center: bool = False
    stabilize: bool = True

    systems_ = property(attrgetter("described_"))
    as_fitted = ("n_states", "metric", "center", "stabilize")

    def _describe(self, X):
        core.check_choice(self.metric, "metric", "martin", "angles")
        return systems_of(X, **self.options("n_states", "stabilize", "center"))

    def _between(self, systems, systems2=None):
        if self.metric == "martin":
            return dynamics.martin_distances(
                systems, systems2, least_cosine=dynamics.RIGHT
            )
        return np.linalg.norm(dynamics.observability_angles(systems, systems2), axis=2)


def systems_of(X, n_states, stabilize=True, center=False):
    """subspaces.arma of each of the checked clips, in float64; errors name the clip.

    A float32 A that is scaled back to just below radius 1 may have radius 1.
    """
    n_states = core.check_integer(n_states, "n_states", 1)
    return estimators.make_each(
        lambda clip: subspaces.arma(
            np.asarray(clip, np.float64), n_states, stabilize=stabilize, center=center
        ),
        X,
        f" allows no model of n_states = {n_states}",
    )


Recovered = namedtuple("Recovered", "systems residuals")


@dataclass(eq=False, repr=False)
class CSLDS(ByRule):
    """LDS from compressive measurements.

    A camera takes compression times fewer numbers than pixels of each frame, of which
    the systems are recovered (dynamics.compress, recover); then the nearest by Martin's
    distance, or a support vector machine.
    n_states: as in recover. compression: > 1, pixels over measurements, of which a
    fifth is common to all frames, at least n_states. rule, C, gamma: as in LDS. A
    warning that counts the clips whose recovery is hopeless.

    systems_, residuals_ (n_train,) and measured_, the numbers (common, innovations),
    tell of the fit.

    ValueError, by fit, for a compression of 1 or less, or one that leaves fewer
    than n_states + 2 measurements of a frame; by fit and predict that names the
    clip that cannot be recovered, or one of another size.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import CSLDS
    >>> rates = [0.9, 0.5, 0.8]  # at which clips fade
    >>> clips = [np.multiply.outer(rate ** np.arange(10), np.ones((8, 8))) for rate in rates]
    >>> CSLDS(n_states=1).fit(clips[:2], ["slow", "fast"]).predict(clips[2:]).tolist()
    ['slow']
    """

    n_states: int = 5
    compression: float = 5.0

    systems_ = property(attrgetter("described_.systems"))
    residuals_ = property(attrgetter("described_.residuals"))
    as_fitted = ("n_states", "compression")

    def _learn_from(self, X):
        """Measure the clips X, and recover a system from each."""
        self.measured_ = self._plan(X[0][0].size)
        super()._learn_from(X)

    def _between(self, recovered, recovered2=None):
        return dynamics.martin_distances(
            recovered.systems,
            None if recovered2 is None else recovered2.systems,
            stabilize=True,
            least_cosine=dynamics.RIGHT,
        )

    def _plan(self, d):
        """The numbers of common and innovation measurements of a frame of d pixels."""
        compression = core.check_number(self.compression, "compression", above=1)
        total = round(d / compression)
        n_common = max(
            core.check_integer(self.n_states, "n_states", 1), total // COMMON
        )
        if total - n_common < 2:
            raise ValueError(
                f"compression must leave n_states + 2 = {n_common + 2} measurements of "
                f"a frame of {d} pixels, got {compression:g}, which leaves {total}"
            )
        return n_common, total - n_common

    def _describe(self, X):
        """Recovered from checked clips.

        One by one, as threads would wait for each other between steps as small as
        these.
        """

        def recovered(clip):
            recovery = dynamics.recover(
                dynamics.compress(clip, *self.measured_), self.n_states
            )
            return recovery.A, recovery.C, recovery.residual

        recoveries = estimators.make_each(
            lambda clip: self.once(
                (self.n_states, self.measured_), partial(recovered, clip), [clip], True
            ),
            X,
            " cannot be recovered",
        )
        residuals = np.array([residual for _, _, residual in recoveries])
        hopeless = np.count_nonzero(residuals > dynamics.HOPELESS)
        if hopeless:
            core.warn(
                f"{hopeless} of {len(X)} clips cannot be recovered at compression "
                f"{self.compression:g}: up to {residuals.max():.0%} of the norm of the "
                "measurements held out is unexplained"
            )
        return Recovered([(A, C) for A, C, _ in recoveries], residuals)


# ------------------------------------------------------------------------------ tensors


def as_tensor(clips, size):
    """Checked clips as one array (n, n_frames, height, width).

    They are resized to size, unless it is None.
    """
    if size is not None:
        clips = tensors.resize_clips(clips, tensors.check_sides(size, "size"))
    return tensors.check_tensor(clips, "X")


@dataclass(eq=False, repr=False)
class ProductManifold(ByDistance):
    """Product manifold (PM).

    The class of the nearest training clip on a product of three Grassmann manifolds
    (tensors.mode_bases, product_distances).
    p: columns of the factors, an integer or three, None for the least rank of the
    training clips.
    size: (n_frames, height, width) to resize all clips to, None for clips that agree.
    metric: "chordal" or "geodesic".

    ValueError, by fit, for clips of several sizes without size, or one of zeros, an
    unknown metric, or p < 1; by predict for other sizes.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import ProductManifold
    >>> clips = np.random.default_rng(0).random((2, 10, 6, 8))
    >>> ProductManifold().fit(clips, ["ape", "bee"]).predict(3 * clips).tolist()  # brighter
    ['ape', 'bee']
    """

    p: int | Sequence[int] | None = None
    _: KW_ONLY
    size: Sequence[int] | None = None
    metric: str = "chordal"
    as_fitted = ("p", "size", "metric")

    @property
    def alike(self) -> slice:  # type: ignore[override]
        """The sides of clips that have to agree: all, but for those that are resized."""
        return slice(3 if self.size is None else 0)

    def _learn_from(self, X):
        """Take the factors of the clips X."""
        core.check_choice(self.metric, "metric", "chordal", "geodesic")
        self.p_ = self.p
        self.described_ = self._describe(X)
        self.p_ = [V.shape[2] for V in self.described_]

    def _describe(self, X):
        return tensors.mode_bases(as_tensor(X, self.size), self.p_)

    def _between(self, factors, factors2):
        return tensors.product_distances(factors, factors2, self.metric)


@dataclass(eq=False, repr=False)
class TCCA(OnVideos):
    """Tensor canonical correlation analysis.

    The class of the training clip of the largest sum of canonical correlations
    (tensors.tensor_correlations), of those that tell the training clips' classes apart
    best (separations).
    p: at most the length of each axis. n_features: how many correlations are summed,
    None for all. size: as in ProductManifold.

    separations_ (m,) and features_, the places of the chosen among all, tell of the
    fit.

    ValueError, by fit, for clips of several sizes without size, p longer than an
    axis, or fewer than two classes; by predict for other sizes.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import TCCA
    >>> clips = np.random.default_rng(0).random((2, 10, 6, 8))
    >>> TCCA(p=2).fit(clips, ["ape", "bee"]).predict(3 * clips).tolist()  # brighter
    ['ape', 'bee']
    """

    p: int = 5
    _: KW_ONLY
    n_features: int | None = 10
    size: Sequence[int] | None = None

    alike = ProductManifold.alike
    _between = staticmethod(tensors.tensor_correlations)
    as_fitted = ("p", "size")

    def _learn_from(self, X):
        """Choose features on the clips X."""
        correlations = self._pairs_of_training(X)
        chosen = np.arange(len(correlations))
        if self.n_features is not None:
            count = core.check_integer(self.n_features, "n_features", 1)
            self.separations_ = tensors.separations(correlations, self.index_)
            chosen = np.argsort(-self.separations_, kind="stable")[:count]
        self.features_ = np.sort(chosen)

    def class_scores(self, X: shared.Sets) -> np.ndarray:
        """Sums (n, n_classes) of chosen correlations with a class's nearest clip."""
        features = self._pairs(X)[self.features_]
        return first_of_ties(best_of_class(features.sum(axis=0), self.index_))

    def _describe(self, X):
        X = as_tensor(X, self.size)
        return tensors.tensor_parts(
            X,
            core.check_integer(self.p, "p", 1, min(X.shape[1:])),
            tensors.MODES,
        )


# ----------------------------------------------------------------------------- textures


@dataclass(eq=False, repr=False)
class DFS(ByRule):
    """Dynamic fractal spectrum.

    A support vector machine on spectra (textures.fractal_spectrum), each number divided
    by its deviation, or the nearest.
    n_levels: of each measure, 2..62, between the exponents that the training clips
    span. radii: of the cubes that exponents are fitted over; a clip needs 2 max(radii)
    + 1 frames, rows and columns. rule, C, gamma: as in LDS. Clips may be of several
    sizes.

    edges_ (4, 5, n_levels + 1) and spectra_ (n_train, 20 n_levels) tell of the fit.

    ValueError, by fit and predict, that names a clip that is constant or smaller
    than the largest cube; by fit for radii that do not ascend, n_levels outside
    2..62, or an unknown rule.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import DFS
    >>> clips = np.random.default_rng(0).random((2, 12, 16, 16))
    >>> DFS(rule="nearest").fit(clips, ["ape", "bee"]).predict(3 * clips).tolist()  # brighter
    ['ape', 'bee']
    """

    n_levels: int = 10
    _: KW_ONLY
    radii: Sequence[int] = (1, 2, 3, 4)
    rule: str = "svm"

    alike = slice(0)
    spectra_ = property(attrgetter("described_"))
    as_fitted = ("n_levels", "radii")

    def _learn_from(self, X):
        """Choose the levels, and learn from the spectra of clips X."""
        n_levels = core.check_integer(self.n_levels, "n_levels", 2, 62)
        radii = textures.check_ascending(self.radii, "radii")
        spans = [
            self.once(
                ("spans", radii),
                partial(textures.exponent_spans, clip, f"X[{i}]", radii),
                [clip],
                True,
            )
            for i, clip in enumerate(X)
        ]
        self.edges_ = textures.edges_of_spans(spans, n_levels)
        super()._learn_from(X)

    def _describe(self, X):

        def spectrum(block):
            i = block.start
            textures.check_texture(X[i], f"X[{i}]", self.radii)
            return textures.fractal_spectrum(X[i], self.edges_, radii=self.radii)

        return np.stack(core.run_blocks(spectrum, len(X), 1)).reshape(len(X), -1)

    def _between(self, spectra, spectra2=None):
        """Euclidean distances, each number divided by its deviation in training."""
        trained = spectra if spectra2 is None else spectra2
        deviation = trained.std(axis=0)
        scale = np.where(deviation > 1e-9, deviation, 1)
        mean = trained.mean(axis=0)
        return cdist((spectra - mean) / scale, (trained - mean) / scale)


@dataclass(eq=False, repr=False)
class DLPegasos(ByDistance):
    """Distance learning by Pegasos.

    The nearest training clip by a sum of three distances with learned weights >= 0
    (textures.distance_weights).
    The distances: chi^2 of mean LBP histograms (frames.lbp), Euclidean of mean HOGs
    (frames.hog, of cells of cell x cell pixels), which need the extra "image"; and the
    norm of the angles of LDS models of n_states, bounded where Martin's is not. Each is
    divided by its mean over the training clips. lam, n_iter: as in distance_weights.
    random_state: as in KernelLift.

    weights_ (3,), in the order LBP, HOG, LDS, and objective_, that of each look at the
    solver, tell of the fit.

    ValueError, by fit, unless one class has two clips and another has one; by fit
    and predict that names the clip that allows no model of n_states; by predict for
    frames of another size.

    >>> import numpy as np
    >>> from grassmann_sc.baselines.estimators import DLPegasos
    >>> rates = [0.9, 0.85, 0.5, 0.4, 0.8]  # at which clips fade
    >>> frame = np.arange(64.0).reshape(8, 8)
    >>> clips = [np.multiply.outer(rate ** np.arange(10), frame) for rate in rates]
    >>> model = DLPegasos(n_states=1).fit(clips[:4], ["slow", "slow", "fast", "fast"])
    >>> model.predict(clips[4:]).tolist()
    ['slow']
    """

    n_states: int = 5
    _: KW_ONLY
    cell: int = 8
    lam: float = 0.01
    n_iter: int = 2000
    random_state: estimators.RandomState = 0
    as_fitted = ("n_states", "cell")

    def _learn_from(self, X):
        """Learn the weights on the clips X."""
        core.check_integer(self.cell, "cell", 1)
        distances = self._pairs_of_training(X)
        means = distances.mean(axis=(1, 2))
        self.scale_ = np.where(means > 0, means, 1)
        self.weights_, self.objective_ = textures.distance_weights(
            distances / self.scale_[:, None, None],
            self.index_,
            **self.options("lam", "n_iter"),
            rng=estimators.rng_of(self.random_state),
        )
        if not self.weights_.any():
            warnings.warn(
                "DLPegasos: no weights tell the classes of the training clips apart better "
                "than none, all distances weigh the same",
                stacklevel=3,
            )
            self.weights_ = np.ones(3)

    def distances(self, X: shared.Sets) -> np.ndarray:
        """The learned distances (n, n_train) from the training clips."""
        distances = self._pairs(X)
        return np.tensordot(self.weights_ / self.scale_, distances, 1)

    def _describe(self, X):
        """(mean LBP histograms (n, 59), mean HOGs (n, k), systems) of checked clips."""
        cell = {
            "pixels_per_cell": (self.cell, self.cell),
            "cells_per_block": (1, 1),  # histograms are normalised one by one
            "orientations": 9,
        }

        def textures_of(clip):
            return frames.lbp(clip).mean(axis=0), frames.hog(clip, **cell).mean(axis=0)

        described = [
            self.once(self.cell, partial(textures_of, clip), [clip], True) for clip in X
        ]
        patterns, gradients = map(np.stack, zip(*described))
        return patterns, gradients, systems_of(X, self.n_states)

    def _between(self, described, described2=None):
        """The three distances (3, n, N)."""
        patterns, gradients, systems = described
        patterns2, gradients2, systems2 = described2 or described
        chi = [
            (
                np.square(pattern - patterns2) / np.maximum(pattern + patterns2, 1e-300)
            ).sum(axis=1)
            for pattern in patterns
        ]
        angles = np.linalg.norm(
            dynamics.observability_angles(systems, described2 and systems2), axis=2
        )
        return np.stack([chi, cdist(gradients, gradients2), angles])
