"""scikit-learn estimators over the functions of this project, for Pipeline, GridSearchCV and cross_val_score.

Thin: each estimator keeps its parameters, checks its input and calls the function that it is named after. Input is
sample-first: subspaces (n, d, p), or a sequence of n arrays of frames for the first step of a pipeline. This is the only
module that imports the others; it needs scikit-learn.
"""

import copy

import numpy as np
from scipy.special import softmax

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import column_or_1d
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ImportError("estimators needs scikit-learn: pip install 'grassmann_sc_kit[sklearn]'") from error

import grassmann_sc as core

try:
    from grassmann_sc_kit import kernels, learn, subspaces
except ImportError:  # flat files
    import kernels
    import learn
    import subspaces

__all__ = ["ImageSetSubspaces", "NearestSubspace", "CodingClassifier", "GrassmannDictionary", "ProjectionKernel",
           "KernelLift"]


# ---------------------------------------------------------------------------- what estimators share


class _SubspaceEstimator(BaseEstimator):
    """Base of the estimators on subspaces X (n, d, p): its tags, and the check of X at the door."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def _subspaces(self, X, fit=False):
        """X as checked bases; fit records their d, every other method demands it."""
        if fit:
            X = core._dictionary(X, "X")
            self.n_features_in_ = X.shape[1]
            return X
        check_is_fitted(self)
        X = core._bases(X, "X")
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must have d = {self.n_features_in_}, as in fit, got {X.shape[1]}")
        return X


class _CodingMixin:
    """Codes as the parameters coding, lam, lam_scale and n_neighbors say."""

    def _check_coding(self):
        _one_of(self.coding, "coding", "sparse", "local")
        _one_of(self.lam_scale, "lam_scale", None, "max")
        if self.coding == "sparse" and not (np.ndim(self.lam) == 0 and core._number(self.lam, "lam") >= 0):
            raise ValueError(f"lam must be a number >= 0, got {self.lam!r}")

    def _codes(self, K_dd, K_xd, norm2, lam, lam_scale=None):
        if self.coding == "sparse":
            return core.sparse_codes(K_dd, K_xd, lam, norm2=norm2, lam_scale=lam_scale)
        return core.locality_codes(K_dd, K_xd, self.n_neighbors, norm2=norm2)


def _kernel(X, D):
    """projection_kernel of subspaces that are checked already."""
    return core._gram(*core._same_d(X, D, ("X", "the dictionary")))


def _one_of(value, name, *choices):
    if not any(value is choice or isinstance(value, str) and value == choice for choice in choices):
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}")


def _labels(y, n):
    """(classes, index of each label among them) of at least two classes, one label a sample."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: give a label to each of the subspaces")
    y = column_or_1d(y, warn=True)
    if len(y) != n:
        raise ValueError(f"y must have length {n}, one label a subspace, got {len(y)}")
    if y.dtype.kind == "f" and not (y == np.floor(y)).all():  # scikit-learn's own check warns of classes of one subspace
        raise ValueError(f"y must hold classes. Unknown label type: continuous numbers such as {y[y != np.floor(y)][0]}")
    classes, index = core._classes(y, n)
    if len(classes) < 2:
        raise ValueError(f"y must hold at least two classes, got one class: {classes[0]!r}")
    return classes, index


# ---------------------------------------------------------------------------- frames to subspaces


class _SetsTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Base of the first steps of a pipeline, from sets of frames to subspaces of dimension p."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def set_output(self, *, transform=None):
        """Nothing to set: (n, d, p) has no form of a table. Here so that a pipeline can set the output of the steps after."""
        return self

    @property
    def _n_features_out(self):
        return self.n_features_in_


class ImageSetSubspaces(_SetsTransformer, auto_wrap_output_keys=None):
    """Sets of frames to subspaces (n, d, p): subspaces.from_sets as the first step of a pipeline.

    p : dimension of the subspaces, 1 <= p <= d; each set needs p independent frames
    center : remove the mean frame of each set first

    X is a sequence of n arrays (n_frames_i, d) or (n_frames_i, height, width), or one array of them. fit learns d alone.
    """

    def __init__(self, p, center=False):
        self.p = p
        self.center = center

    def fit(self, X, y=None):
        """Record d, the number of pixels or features of a frame."""
        self.n_features_in_ = subspaces.from_sets(X[:1], self.p, center=self.center).shape[1]
        return self

    def transform(self, X):
        """Bases (n, d, p)."""
        check_is_fitted(self)
        X = subspaces.from_sets(X, self.p, center=self.center)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(f"X must hold frames of d = {self.n_features_in_}, as in fit, got {X.shape[1]}")
        return X


class KernelLift(_SetsTransformer, auto_wrap_output_keys=None):
    """Sets of frames to subspaces of a kernel's feature space, in coordinates (n, r, p): kernels.Lift in a pipeline.

    kernel : "rbf" (uses gamma and gamma_scale), "polynomial" (degree and coef0), "linear", or any k(A, B) on rows
    gamma : > 0, or None for kernels.median_gamma of the training sets; with gamma_scale="median" in units of that, so that
        one grid suits any data
    p : dimension of the subspaces; each set needs p frames independent in feature space
    n_landmarks, method, rng : as in kernels.Lift; a Generator is copied, so that each fit draws the same

    With CodingClassifier it is kgSC and kgLC, with GrassmannDictionary kgDL. lift_ and gamma_ tell of the fit.
    """

    def __init__(self, kernel="rbf", gamma=None, p=1, n_landmarks=None, *, gamma_scale=None, degree=2, coef0=1.0,
                 method="kmeans++", rng=None):
        self.kernel = kernel
        self.gamma = gamma
        self.p = p
        self.n_landmarks = n_landmarks
        self.gamma_scale = gamma_scale
        self.degree = degree
        self.coef0 = coef0
        self.method = method
        self.rng = rng

    def fit(self, X, y=None):
        """Choose landmarks among the frames of X, a sequence of n arrays (n_frames_i, d), or one array of them."""
        kernel, rng = self._kernel(X), copy.deepcopy(self.rng)
        self.lift_ = kernels.Lift(kernel, self.p, n_landmarks=self.n_landmarks, method=self.method, rng=rng).fit(X)
        self.n_features_in_ = self.lift_.landmarks_.shape[1]
        return self

    def transform(self, X):
        """Orthonormal bases (n, r, p)."""
        check_is_fitted(self)
        return self.lift_.transform(X)

    @property
    def _n_features_out(self):
        return self.lift_.dimension_

    def _kernel(self, X):
        if callable(self.kernel):
            return self.kernel
        _one_of(self.kernel, "kernel", "rbf", "polynomial", "linear")
        _one_of(self.gamma_scale, "gamma_scale", None, "median")
        if self.kernel != "rbf":
            return kernels.linear() if self.kernel == "linear" else kernels.polynomial(self.degree, self.coef0)
        relative = self.gamma is None or self.gamma_scale == "median"
        self.gamma_ = (1.0 if self.gamma is None else self.gamma) * (kernels.median_gamma(X) if relative else 1.0)
        return kernels.rbf(self.gamma_)


# ---------------------------------------------------------------------------- classifiers


class NearestSubspace(ClassifierMixin, _SubspaceEstimator):
    """The class that most of the n_neighbors nearest training subspaces have, the first in a tie.

    metric : "chordal", the paper's ||X^ - Y^||_F; "geodesic", the norm of the principal angles; "projection", the norm
        of their sines, from the projection kernel alone: in the same order as "chordal", but faster, and only to about
        1e-8 near 0
    n_neighbors : 1 <= n_neighbors <= n
    """

    def __init__(self, metric="chordal", n_neighbors=1):
        self.metric = metric
        self.n_neighbors = n_neighbors

    def fit(self, X, y):
        """Keep the subspaces X (n, d, p) and their labels y (n,)."""
        _one_of(self.metric, "metric", "chordal", "geodesic", "projection")
        X = self._subspaces(X, fit=True)
        core._integer(self.n_neighbors, "n_neighbors", 1, len(X))
        self.classes_, self.index_ = _labels(y, len(X))
        self.subspaces_ = X
        return self

    def distances(self, X):
        """Distances (n, n_train) of the metric from X to the training subspaces."""
        X, Y = self._subspaces(X), self.subspaces_
        if self.metric == "projection":
            return np.sqrt(np.maximum((X.shape[2] + Y.shape[2]) / 2 - _kernel(X, Y), 0))
        return (core.chordal_distance if self.metric == "chordal" else core.geodesic_distance)(X, Y)

    def kneighbors(self, X):
        """(distances, indices), (n, n_neighbors) each, of the nearest training subspaces in order; ties to the lower index."""
        distances = self.distances(X)
        if self.n_neighbors == 1:
            nearest = distances.argmin(axis=1)[:, None]
        else:
            nearest = distances.argsort(axis=1, kind="stable")[:, :self.n_neighbors]
        return np.take_along_axis(distances, nearest, axis=1), nearest

    def predict_proba(self, X):
        """Shares (n, n_classes) of the classes among the nearest subspaces."""
        _, nearest = self.kneighbors(X)
        votes = self.index_[nearest]  # (n, n_neighbors)
        return (votes[:, :, None] == np.arange(len(self.classes_))).mean(axis=1)

    def predict(self, X):
        """Labels (n,)."""
        winners = self.predict_proba(X).argmax(axis=1)
        return self.classes_[winners]


class CodingClassifier(_CodingMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierMixin, _SubspaceEstimator):
    """Codes a query over labelled subspaces and takes the class that explains it best.

    fit takes the dictionary: all training sets, or atoms learned for each class, with their labels.

    coding : "sparse" (gSC, uses lam and lam_scale) or "local" (gLC, uses n_neighbors)
    lam : >= 0, the paper's lambda; with lam_scale="max" in units of each query's lam_max, so that one grid in [0, 1] suits
        any data
    n_neighbors : 1 <= n_neighbors <= N atoms
    rule : a class's score is, "residual": -||X^ - sum_{j in class} y_j D_j^||_F^2, the paper's; "sum" or "max" of its
        coefficients y_j, the paper's alternatives. The highest score wins, the first in a tie.
    kernel : "projection", X holds subspaces; "precomputed", X holds inner products instead, the symmetric (N, N) of the
        atoms in fit and (n, N) of queries with atoms elsewhere, as ProjectionKernel gives them. All must have the norm of
        the atoms, a constant diagonal. GridSearchCV on the whole Gram matrix then computes it once for all candidates.
    """

    def __init__(self, coding="sparse", lam=0.1, n_neighbors=5, rule="residual", lam_scale=None, kernel="projection"):
        self.coding = coding
        self.lam = lam
        self.n_neighbors = n_neighbors
        self.rule = rule
        self.lam_scale = lam_scale
        self.kernel = kernel

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        if self.kernel == "precomputed":
            tags.input_tags.two_d_array, tags.input_tags.three_d_array, tags.input_tags.pairwise = True, False, True
        return tags

    def fit(self, X, y):
        """Take the subspaces X (N, d, p), or their Gram matrix (N, N), as atoms with labels y (N,)."""
        self._check_coding()
        _one_of(self.rule, "rule", "residual", "sum", "max")
        _one_of(self.kernel, "kernel", "projection", "precomputed")
        if self.kernel == "precomputed":
            self.gram_ = _square(X)
            self.n_features_in_ = len(self.gram_)
        else:
            self.atoms_ = self._subspaces(X, fit=True)
            self.gram_ = core._gram(self.atoms_, self.atoms_, symmetric=True)
        if self.coding == "local":
            core._integer(self.n_neighbors, "n_neighbors", 1, len(self.gram_))
        self.classes_, self.index_ = _labels(y, len(self.gram_))
        return self

    def transform(self, X):
        """Codes (n, N); of an atom, itself: the codes of the training sets say nothing about those of others."""
        K_xd, norm2 = self._products(X)
        return self._codes(self.gram_, K_xd, norm2, self.lam, self.lam_scale)

    def decision_function(self, X):
        """Scores (n, n_classes) by the rule; for two classes (n,), the second's less the first's."""
        scores = self._scores(X)
        return scores if len(self.classes_) > 2 else scores[:, 1] - scores[:, 0]

    def predict_proba(self, X):
        """softmax of the scores (n, n_classes): rises with a class's score, but is not calibrated."""
        return softmax(self._scores(X), axis=1)

    def predict(self, X):
        """Labels (n,)."""
        winners = self._scores(X).argmax(axis=1)
        return self.classes_[winners]

    def _scores(self, X):
        K_xd, norm2 = self._products(X)
        codes = self._codes(self.gram_, K_xd, norm2, self.lam, self.lam_scale)
        if self.rule == "residual":
            return -core.class_residuals(codes, self.gram_, K_xd, self.index_, norm2=norm2)[0]
        h = np.sum if self.rule == "sum" else np.max
        return np.stack([h(codes[:, self.index_ == c], axis=1) for c in range(len(self.classes_))], axis=1)

    def _products(self, X):
        """Inner products (n, N) of the queries with the atoms, and the queries' squared norm."""
        check_is_fitted(self)
        if self.kernel == "projection":
            X = self._subspaces(X)
            return _kernel(X, self.atoms_), X.shape[2]
        X = core._finite(X, "X")
        if X.ndim != 2 or X.shape[1] != len(self.gram_):
            raise ValueError(f"X must have shape (n, {len(self.gram_)}), one column an atom, got {X.shape}")
        return X, self.gram_[0, 0]

    @property
    def _n_features_out(self):
        return len(self.gram_)


def _square(K):
    """K as the Gram matrix of a dictionary whose members have one norm."""
    K = core._finite(K, "X")
    if K.ndim != 2 or K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError(f"X must be a square matrix (N, N) of inner products, for kernel='precomputed', got shape {K.shape}")
    low, high = K.diagonal().min(), K.diagonal().max()
    if not (low > 0 and high - low <= 1e-3 * high):
        raise ValueError(f"X must have a constant positive diagonal, the squared norm p, got {low:.4g} to {high:.4g}")
    return K


# ---------------------------------------------------------------------------- dictionary and kernel


class GrassmannDictionary(_CodingMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _SubspaceEstimator):
    """Learns a dictionary of n_atoms subspaces (learn.gdl) and codes over it: the codes are features for any estimator.

    coding, lam, n_neighbors : as in CodingClassifier
    lam_scale : None, or "max": one lambda for all, lam times the median lam_max of the training set over the first atoms
    init, n_iter, tol, rng : as in learn.gdl; a Generator is copied, so that each fit draws the same

    components_ (n_atoms, d, p), costs_ and n_iter_ (iterations done) tell of the learning, lam_ is the lambda in use.
    """

    def __init__(self, n_atoms, coding="sparse", lam=0.1, n_neighbors=5, lam_scale=None, init="kmeans++", n_iter=20, tol=1e-6,
                 rng=None):
        self.n_atoms = n_atoms
        self.coding = coding
        self.lam = lam
        self.n_neighbors = n_neighbors
        self.lam_scale = lam_scale
        self.init = init
        self.n_iter = n_iter
        self.tol = tol
        self.rng = rng

    def fit(self, X, y=None):
        """Learn from subspaces X (n, d, p), n >= n_atoms unless init holds atoms."""
        self._learn(X)
        return self

    def fit_transform(self, X, y=None):
        """Learn, and give the codes (n, n_atoms) that learning ended with."""
        return self._learn(X)

    def transform(self, X):
        """Codes (n, n_atoms) over components_."""
        X = self._subspaces(X)
        return self._codes(self.gram_, _kernel(X, self.components_), X.shape[2], self.lam_)

    def _learn(self, X):
        self._check_coding()
        X, init, rng = self._subspaces(X, fit=True), self.init, np.random.default_rng(copy.deepcopy(self.rng))
        self.lam_ = self.lam if self.coding == "sparse" else None
        if self.lam_ is not None and self.lam_scale == "max":
            init = learn.init_atoms(X, self.n_atoms, init, rng) if isinstance(init, str) else core._dictionary(init, "init")
            self.lam_ = core._number(self.lam, "lam") * float(np.median(core.lam_max(_kernel(X, init))))
        coding = {"n_neighbors": self.n_neighbors} if self.coding == "local" else {"lam": self.lam_}
        learned = learn.gdl(X, self.n_atoms, **coding, init=init, n_iter=self.n_iter, tol=self.tol, rng=rng)
        self.components_, codes, self.costs_ = learned[:3]
        self.n_iter_ = (len(self.costs_) - 1) // 2
        self.gram_ = core._gram(self.components_, self.components_, symmetric=True)
        return codes

    @property
    def _n_features_out(self):
        return len(self.components_)


class ProjectionKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _SubspaceEstimator):
    """Gram rows ||X_i^T D_j||_F^2 against the training subspaces D (core projection_kernel), for SVC(kernel="precomputed"),
    CodingClassifier(kernel="precomputed") and every other kernel method."""

    def fit(self, X, y=None):
        """Keep the subspaces X (N, d, p)."""
        self.subspaces_ = self._subspaces(X, fit=True)
        return self

    def fit_transform(self, X, y=None):
        """The symmetric Gram matrix (N, N), for half the price of transform."""
        X = self.fit(X).subspaces_
        return core._gram(X, X, symmetric=True)

    def transform(self, X):
        """Rows (n, N), in [0, p]."""
        return _kernel(self._subspaces(X), self.subspaces_)

    @property
    def _n_features_out(self):
        return len(self.subspaces_)
