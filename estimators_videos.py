"""scikit-learn estimators of the paper's rivals on videos, over comparators_dynamics.py,
comparators_tensors.py and comparators_textures.py.

estimators hands them on: from grassmann_sc.estimators import LDS. X is a sequence of clips, frames
in order of time, (n_frames, height, width), or one array of them. A query's score for a class is
minus its distance from, or its similarity to, what of that class is nearest to it; the highest
score wins, the first in a tie. Every parameter is meant to be chosen by cross-validation.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

import grassmann_sc as core
from grassmann_sc import (
    comparators_dynamics,
    comparators_tensors,
    comparators_textures,
    estimators,
    estimators_rivals,
    frames,
    subspaces,
)

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's own from Python 3.11 on

__all__ = ["CSLDS", "DFS", "DLPegasos", "LDS", "ProductManifold", "TCCA"]

FAR = 1e300  # a score that stands for minus infinity
COMMON = 5  # one of so many measurements of CSLDS is common to all frames, unless n_common is given
ORIENTATIONS = 9  # of a HOG
BLOCK = 1  # cell: its histograms are normalised one by one


class _OnVideos(estimators_rivals.ByScores, BaseEstimator):
    """Base of the classifiers of clips: the check at the door, and the nearest training clip."""

    _one_frame_size = True  # do all clips have to agree on height and width?

    def __sklearn_tags__(self):
        return estimators.tags_of_arrays(super().__sklearn_tags__())

    def check_videos(self, X: core.Sets, fit: bool = False) -> list[np.ndarray]:
        """X as a list of checked clips; fit records the pixels of a frame, which every other method
        demands where sizes matter."""
        if not fit:
            check_is_fitted(self)
        X = comparators_tensors.check_clips(X, "X")
        if fit:
            self.n_features_in_ = X[0][0].size
            self.frame_shape_ = X[0].shape[1:]
        for i, clip in enumerate(X):
            if self._one_frame_size and clip.shape[1:] != self.frame_shape_:
                raise ValueError(f"X must hold frames of {self.frame_shape_}, as in fit, got "
                                 f"{clip.shape[1:]} in X[{i}]")
        return X

    def _start(self, X, y):
        """Checked clips of the training set; records the classes."""
        X = self.check_videos(X, fit=True)
        self.classes_, self.index_ = estimators.classes_of(y, len(X))
        return X

    def class_scores(self, X: core.Sets) -> np.ndarray:
        """Minus the distance (n, n_classes) from the nearest clip of a class."""
        nearness = np.maximum(-self.distances(X), -FAR, dtype=np.float64)  # which holds FAR
        return estimators_rivals.best_of_class(nearness, self.index_, len(self.classes_))


class _ByRule(_OnVideos):
    """Base of those whose distances also make a kernel exp(-gamma d^2), for rule="svm"."""

    def _learn_rule(self, distances):
        """From the distances (N, N) of the training clips."""
        core.check_choice(self.rule, "rule", "nearest", "svm")
        C = core.check_number(self.C, "C", above=0)
        if self.gamma is not None:
            core.check_number(self.gamma, "gamma", above=0)
        if self.rule == "nearest":
            return
        square = np.square(np.minimum(distances, np.sqrt(FAR)))
        apart = square[np.isfinite(distances) & (square > 0)]
        typical = float(np.median(apart)) if apart.size else 1.0
        gamma = (1.0 if self.gamma is None else float(self.gamma)) / typical
        self.gamma_ = min(gamma, np.finfo(float).max)  # which times a distance of 0 is 0
        self.svm_ = SVC(kernel="precomputed", C=C).fit(np.exp(-self.gamma_ * square), self.index_)

    def class_scores(self, X: core.Sets) -> np.ndarray:
        """Minus the distance (n, n_classes) from the nearest clip of a class; or the decisions of
        the support vector machine."""
        if self.rule == "nearest":
            return super().class_scores(X)
        square = np.square(np.minimum(self.distances(X), np.sqrt(FAR)))
        decision = self.svm_.decision_function(np.exp(-self.gamma_ * square))
        return decision if decision.ndim == 2 else np.stack([-decision, decision], axis=1) / 2


# --------------------------------------------------------------------------------- linear systems


class LDS(_ByRule):
    """Linear dynamical systems: the class of the training clip at the least distance of ARMA models
    (subspaces.arma), or a support vector machine on exp(-gamma d^2).

    n_states: of a model; a clip needs n_states + 1 frames and n_states independent ones. metric:
    "martin" (comparators_dynamics.martin_distances) or "angles", the norm of the principal angles
    of the observability subspaces. center: take the mean frame off each clip. stabilize: as in
    subspaces.arma; without it a clip whose model is not stable is a ValueError. rule: "nearest" or
    "svm", which uses C and gamma, in units of 1 over the median d^2 of the training clips, None for
    1. The kernel of Martin's distance need not be positive definite.

    systems_, pairs (A, C), tell of the fit.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import LDS
    >>> rates = [0.9, 0.5, 0.8]  # at which clips fade
    >>> clips = [np.multiply.outer(rate ** np.arange(10), np.ones((8, 8))) for rate in rates]
    >>> LDS(n_states=1).fit(clips[:2], ["slow", "fast"]).predict(clips[2:]).tolist()
    ['slow']
    """

    def __init__(self, n_states: int = 5, *, metric: str = "martin", center: bool = False,
                 stabilize: bool = True, rule: str = "nearest", C: float = 10.0,
                 gamma: float | None = None) -> None:
        self.n_states = n_states
        self.metric = metric
        self.center = center
        self.stabilize = stabilize
        self.rule = rule
        self.C = C
        self.gamma = gamma

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Fit a model to each of the clips X with labels y."""
        core.check_choice(self.metric, "metric", "martin", "angles")
        X = self._start(X, y)
        self.systems_ = systems_of(X, self.n_states, self.stabilize, self.center)
        self._learn_rule(self._between(self.systems_, None))
        return self

    def distances(self, X: core.Sets) -> np.ndarray:
        """Distances (n, n_train) from the training clips."""
        X = self.check_videos(X)
        systems = systems_of(X, self.n_states, self.stabilize, self.center)
        return self._between(systems, self.systems_)

    def _between(self, systems, systems2):
        if self.metric == "martin":
            return comparators_dynamics.martin_distances(systems, systems2)
        angles = comparators_dynamics.observability_angles(systems, systems2)
        return np.linalg.norm(angles, axis=2)


def systems_of(X, n_states, stabilize=True, center=False):
    """subspaces.arma of each of the checked clips, in float64, as a float32 A that is scaled back
    to just below 1 may be of radius 1; the errors name the clip."""
    n_states = core.check_integer(n_states, "n_states", 1)
    systems = []
    for i, clip in enumerate(X):
        try:
            systems.append(subspaces.arma(np.asarray(clip, np.float64), n_states,
                                          stabilize=stabilize, center=center))
        except ValueError as error:
            raise ValueError(f"X[{i}] allows no model of n_states = {n_states}: {error}") from None
    return systems


class CSLDS(_ByRule):
    """LDS from compressive measurements: a camera takes compression times fewer numbers than pixels
    of each frame, of which the systems are recovered (comparators_dynamics.compress, recover);
    then the nearest by Martin's distance, or a support vector machine.

    n_states, n_coefficients, n_blocks: as in recover. compression: > 1, pixels over measurements.
    n_common: how many of these are common to all frames, None for a fifth, at least as many as tell
    n_states. seed: of the camera, the same for all clips. rule, C, gamma: as in LDS. A warning that
    counts the clips whose recovery is hopeless.

    systems_, residuals_ (n_train,), and measured_, the numbers (common, innovations), tell of the
    fit.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import CSLDS
    >>> rates = [0.9, 0.5, 0.8]  # at which clips fade
    >>> clips = [np.multiply.outer(rate ** np.arange(10), np.ones((8, 8))) for rate in rates]
    >>> CSLDS(n_states=1).fit(clips[:2], ["slow", "fast"]).predict(clips[2:]).tolist()
    ['slow']
    """

    def __init__(self, n_states: int = 5, compression: float = 5.0, *,
                 n_coefficients: int | None = None, n_common: int | None = None, n_blocks: int = 1,
                 seed: int = 0, rule: str = "nearest", C: float = 10.0,
                 gamma: float | None = None) -> None:
        self.n_states = n_states
        self.compression = compression
        self.n_coefficients = n_coefficients
        self.n_common = n_common
        self.n_blocks = n_blocks
        self.seed = seed
        self.rule = rule
        self.C = C
        self.gamma = gamma

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Measure the clips X with labels y, and recover a system from each."""
        X = self._start(X, y)
        self.measured_ = self._plan(X[0][0].size)
        self.systems_, self.residuals_ = self._recovered(X)
        self._learn_rule(comparators_dynamics.martin_distances(self.systems_, stabilize=True))
        return self

    def distances(self, X: core.Sets) -> np.ndarray:
        """Distances (n, n_train) from the training clips."""
        systems, _ = self._recovered(self.check_videos(X))
        return comparators_dynamics.martin_distances(systems, self.systems_, stabilize=True)

    def _plan(self, d):
        """The numbers of common and innovation measurements of a frame of d pixels."""
        compression = core.check_number(self.compression, "compression", above=1)
        n_states = core.check_integer(self.n_states, "n_states", 1)
        n_blocks = core.check_integer(self.n_blocks, "n_blocks", 1)
        total = round(d / compression)
        least = -(-n_states // n_blocks)
        n_common = max(least, total // COMMON) if self.n_common is None else self.n_common
        n_common = core.check_integer(n_common, "n_common", least)
        if total - n_common < 2:
            raise ValueError("compression must leave n_common + 2 measurements of a frame of "
                             f"{d} pixels, got {compression:g}, which leaves {total} for n_common "
                             f"= {n_common}")
        return n_common, total - n_common

    def _recovered(self, X):
        """(systems, residuals) of checked clips; one by one, as threads would wait for each other
        between steps as small as these."""
        found = []
        for i, clip in enumerate(X):
            seen = comparators_dynamics.compress(clip, *self.measured_, self.seed)
            try:
                found.append(comparators_dynamics.recovery_of(
                    seen, self.n_states, self.n_coefficients, self.n_blocks))
            except ValueError as error:
                raise ValueError(f"X[{i}] cannot be recovered: {error}") from None
        residuals = np.array([one.residual for one in found])
        hopeless = np.count_nonzero(residuals > comparators_dynamics.HOPELESS)
        if hopeless:
            warnings.warn(f"{hopeless} of {len(X)} clips cannot be recovered at compression "
                          f"{self.compression:g}: up to {residuals.max():.0%} of the norm of the "
                          "measurements held out is unexplained", stacklevel=3)
        return [(one.A, one.C) for one in found], residuals


# ---------------------------------------------------------------------------------------- tensors


class _OnTensors(_OnVideos):
    """Base of those on clips of one size, to which clips are resized if it is given."""

    @property
    def _one_frame_size(self):
        return self.size is None

    def _tensor(self, X, fit=False):
        """X as one array (n, n_frames, height, width)."""
        X = self.check_videos(X, fit)
        if self.size is not None:
            sides = comparators_tensors.check_sides(self.size, "size")
            return comparators_tensors.resize_clips(X, sides)
        if fit:
            self.n_frames_ = len(X[0])
        for i, clip in enumerate(X):
            if len(clip) != self.n_frames_:
                raise ValueError(f"X must hold clips of {self.n_frames_} frames, or size be given, "
                                 f"got {len(clip)} in X[{i}]")
        return comparators_tensors.check_tensor(X, "X")


class ProductManifold(_OnTensors):
    """Product manifold (PM): the class of the nearest training clip on a product of three Grassmann
    manifolds (comparators_tensors.mode_bases, product_distances).

    p: columns of the factors, an integer or three, None for the least rank of the training clips.
    size: (n_frames, height, width) to resize all clips to, None for clips that agree. metric:
    "chordal" or "geodesic".

    >>> import numpy as np
    >>> from grassmann_sc.estimators import ProductManifold
    >>> clips = np.random.default_rng(0).random((2, 10, 6, 8))
    >>> ProductManifold().fit(clips, ["ape", "bee"]).predict(3 * clips).tolist()  # brighter
    ['ape', 'bee']
    """

    def __init__(self, p: int | Sequence[int] | None = None, *, size: Sequence[int] | None = None,
                 metric: str = "chordal") -> None:
        self.p = p
        self.size = size
        self.metric = metric

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Take the factors of the clips X with labels y."""
        core.check_choice(self.metric, "metric", "chordal", "geodesic")
        X = self._tensor(X, fit=True)
        self.classes_, self.index_ = estimators.classes_of(y, len(X))
        self.factors_ = comparators_tensors.mode_bases(X, self.p)
        self.p_ = [V.shape[2] for V in self.factors_]
        return self

    def distances(self, X: core.Sets) -> np.ndarray:
        """Distances (n, n_train) from the training clips."""
        factors = comparators_tensors.mode_bases(self._tensor(X), self.p_)
        return comparators_tensors.product_distances(factors, self.factors_, self.metric)


class TCCA(_OnTensors):
    """Tensor canonical correlation analysis: the class of the training clip of the largest sum of
    canonical correlations (comparators_tensors.tensor_correlations), of those that tell the
    training clips' classes apart best (separations).

    p, modes: as in tensor_correlations. n_features: how many correlations are summed, None for all.
    size: as in ProductManifold.

    separations_ (m,) and features_, the places of the chosen among all, tell of the fit.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import TCCA
    >>> clips = np.random.default_rng(0).random((2, 10, 6, 8))
    >>> TCCA(p=2).fit(clips, ["ape", "bee"]).predict(3 * clips).tolist()  # brighter
    ['ape', 'bee']
    """

    def __init__(self, p: int = 5, *, modes: Sequence[str] = comparators_tensors.MODES,
                 n_features: int | None = 10, size: Sequence[int] | None = None) -> None:
        self.p = p
        self.modes = modes
        self.n_features = n_features
        self.size = size

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Choose features on the clips X with labels y."""
        modes = comparators_tensors.check_modes(self.modes)
        if self.n_features is not None:
            core.check_integer(self.n_features, "n_features", 1)
        X = self._tensor(X, fit=True)
        self.classes_, self.index_ = estimators.classes_of(y, len(X))
        p = core.check_integer(self.p, "p", 1, min(X.shape[1:]))
        self.parts_ = comparators_tensors.tensor_parts(X, p, modes)
        chosen = np.arange(p * len(modes))
        if self.n_features is not None:
            features = comparators_tensors.correlations_of(self.parts_)
            self.separations_ = comparators_tensors.separations(features, self.index_)
            chosen = np.argsort(-self.separations_, kind="stable")[:self.n_features]
        self.features_ = np.sort(chosen)
        return self

    def class_scores(self, X: core.Sets) -> np.ndarray:
        """The sum (n, n_classes) of the chosen correlations with the most similar clip of a
        class."""
        modes = comparators_tensors.check_modes(self.modes)
        X = self._tensor(X)
        p = core.check_integer(self.p, "p", 1, min(X.shape[1:]))
        parts = comparators_tensors.tensor_parts(X, p, modes)
        features = comparators_tensors.correlations_of(parts, self.parts_)
        similarity = features[self.features_].sum(axis=0)
        return estimators_rivals.best_of_class(similarity, self.index_, len(self.classes_))


# --------------------------------------------------------------------------------------- textures


class DFS(_ByRule):
    """Dynamic fractal spectrum: a support vector machine on spectra
    (comparators_textures.fractal_spectrum), each number divided by its deviation, or the nearest.

    n_levels: of each measure, 2..62, between the exponents that the training clips span. radii: of
    the cubes that exponents are fitted over; a clip needs 2 max(radii) + 1 frames, rows and
    columns. rule, C, gamma: as in LDS. Clips may be of several sizes.

    ranges_ (4, 5, n_levels + 1) and spectra_ (n_train, 20 n_levels) tell of the fit.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import DFS
    >>> clips = np.random.default_rng(0).random((2, 12, 16, 16))
    >>> DFS(rule="nearest").fit(clips, ["ape", "bee"]).predict(3 * clips).tolist()  # brighter
    ['ape', 'bee']
    """

    _one_frame_size = False

    def __init__(self, n_levels: int = 10, *, radii: Sequence[int] = (1, 2, 3, 4),
                 rule: str = "svm", C: float = 10.0, gamma: float | None = None) -> None:
        self.n_levels = n_levels
        self.radii = radii
        self.rule = rule
        self.C = C
        self.gamma = gamma

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Choose the levels, and learn from the spectra of clips X with labels y."""
        n_levels = core.check_integer(self.n_levels, "n_levels", 2, 62)
        X = self._start(X, y)
        ranges = comparators_textures.exponent_ranges(X, radii=self.radii)
        self.ranges_ = np.linspace(ranges[:, :, 0], ranges[:, :, 1], n_levels + 1, axis=2)
        spectra = self._spectra(X)
        self.mean_ = spectra.mean(axis=0)
        deviation = spectra.std(axis=0)
        self.scale_ = np.where(deviation > 1e-9, deviation, 1)
        self.spectra_ = (spectra - self.mean_) / self.scale_
        self._learn_rule(cdist(self.spectra_, self.spectra_))
        return self

    def distances(self, X: core.Sets) -> np.ndarray:
        """Euclidean distances (n, n_train) of scaled spectra from those of the training clips."""
        spectra = self._spectra(self.check_videos(X))
        return cdist((spectra - self.mean_) / self.scale_, self.spectra_)

    def _spectra(self, X):
        def spectrum(block):
            i = block.start
            comparators_textures.check_texture(X[i], f"X[{i}]", self.radii)
            return comparators_textures.fractal_spectrum(X[i], self.ranges_, radii=self.radii)

        return np.stack(core.run_blocks(spectrum, len(X), 1)).reshape(len(X), -1)


class DLPegasos(_OnVideos):
    """Distance learning by Pegasos: the nearest training clip by a sum of three distances with
    learned weights >= 0 (comparators_textures.distance_weights).

    The distances: chi^2 of mean LBP histograms (frames.lbp), Euclidean of mean HOGs (frames.hog, of
    cells of cell x cell pixels), which need the extra "image"; and the norm of the angles of LDS
    models of n_states, bounded where Martin's is not. Each is divided by its mean over the training
    clips. lam, n_iter, rng: as in distance_weights; a Generator is copied, so that each fit draws
    the same.

    weights_ (3,), in the order LBP, HOG, LDS, and objective_, that of each look at the solver, tell
    of the fit.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import DLPegasos
    >>> rates = [0.9, 0.85, 0.5, 0.4, 0.8]  # at which clips fade
    >>> frame = np.arange(64.0).reshape(8, 8)
    >>> clips = [np.multiply.outer(rate ** np.arange(10), frame) for rate in rates]
    >>> model = DLPegasos(n_states=1).fit(clips[:4], ["slow", "slow", "fast", "fast"])
    >>> model.predict(clips[4:]).tolist()
    ['slow']
    """

    def __init__(self, n_states: int = 5, *, cell: int = 8, lam: float = 0.01, n_iter: int = 2000,
                 rng: core.Rng = 0) -> None:
        self.n_states = n_states
        self.cell = cell
        self.lam = lam
        self.n_iter = n_iter
        self.rng = rng

    def fit(self, X: core.Sets, y: core.Labels) -> Self:
        """Learn the weights on the clips X with labels y."""
        core.check_integer(self.cell, "cell", 1)
        X = self._start(X, y)
        self.described_ = self._describe(X)
        distances = _three_distances(self.described_, None)
        means = distances.mean(axis=(1, 2))
        self.scale_ = np.where(means > 0, means, 1)
        found = comparators_textures.distance_weights(
            distances / self.scale_[:, None, None], self.index_, self.lam, n_iter=self.n_iter,
            rng=estimators.own_rng(self.rng))
        self.weights_ = found.weights
        self.objective_ = found.objective
        return self

    def distances(self, X: core.Sets) -> np.ndarray:
        """The learned distances (n, n_train) from the training clips."""
        described = self._describe(self.check_videos(X))
        distances = _three_distances(described, self.described_)
        return np.tensordot(self.weights_ / self.scale_, distances, 1)

    def _describe(self, X):
        """(mean LBP histograms (n, 59), mean HOGs (n, k), systems) of checked clips."""
        cell = {"pixels_per_cell": (self.cell, self.cell), "cells_per_block": (BLOCK, BLOCK),
                "orientations": ORIENTATIONS}
        patterns = np.stack([frames.lbp(clip).mean(axis=0) for clip in X])
        gradients = np.stack([frames.hog(clip, **cell).mean(axis=0) for clip in X])
        return patterns, gradients, systems_of(X, self.n_states)


def _three_distances(described, described2):
    """(3, n, N) between what _describe gives, of the first with itself without the second."""
    patterns, gradients, systems = described
    patterns2, gradients2, systems2 = described if described2 is None else described2
    chi = np.empty((len(patterns), len(patterns2)))
    for row, one in zip(chi, patterns):
        total = np.maximum(one + patterns2, 1e-300)
        row[:] = (np.square(one - patterns2) / total).sum(axis=1)
    angles = comparators_dynamics.observability_angles(
        systems, None if described2 is None else systems2)
    return np.stack([chi, cdist(gradients, gradients2), np.linalg.norm(angles, axis=2)])
