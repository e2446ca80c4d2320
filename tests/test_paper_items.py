"""Items of the paper from end to end, each against a plain program of its own: what a
part that does nothing, or another part's answer, would not pass.
"""

import numpy as np
import pytest
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import grassmann_sc as core
from grassmann_sc import estimators, frames, intrinsic, projected, subspaces
from grassmann_sc.baselines import dynamics, tensors, textures
from grassmann_sc.baselines.estimators import TCCA, DLPegasos, LogEuclideanSC
from oracles import LOOSE, error, hat, noisy_image_sets

SETS, Y = noisy_image_sets()
X = subspaces.from_sets(SETS, 2)


def vector_codes(A, queries, lam):
    """argmin ||x - A y||^2 + lam ||y||_1 of each row x, by scikit-learn."""
    lasso = Lasso(lam / (2 * len(A)), fit_intercept=False, tol=1e-14, max_iter=10**6)
    return np.stack([lasso.fit(A, x).coef_ for x in queries])


def test_algorithm_2_codes_the_whitened_vectors():
    """Its steps: K(D) = U S U^T, A = S^1/2 U^T, x* = S^-1/2 U^T K(X, D), vector coding."""
    D = X[:12]
    flat = hat(D).reshape(12, -1)
    K = flat @ flat.T
    k = hat(X).reshape(len(X), -1) @ flat.T
    s, U = np.linalg.eigh(K)
    assert s[0] > 1e-3 * s[-1]
    A = np.sqrt(s)[:, None] * U.T
    codes = vector_codes(A, k @ U / np.sqrt(s), 0.1)
    assert error(core.gsc(X, D, 0.1), codes) < 1e-6
    assert 0.1 < np.mean(codes != 0) < 0.9


def test_the_cost_on_the_manifold_is_that_of_the_point_and_least_nearby():
    """Eq. 6 with C(y, D) = Proj(sum_j y_j D_j^): squared chordal distance + lam ||y||_1."""
    rng = np.random.default_rng(0)
    D = X[:4]
    result = projected.projected_codes(X[4:9], D, 0.3, return_info=True)

    def cost(x, y):
        point = core.proj(np.einsum("j,jab->ab", y, hat(D)), 2)
        return (
            core.chordal_distance(x[None], point[None])[0, 0] ** 2
            + 0.3 * np.abs(y).sum()
        )

    for x, y, value in zip(X[4:9], result.codes, result.cost):
        assert y.sum() == pytest.approx(1)
        assert cost(x, y) == pytest.approx(value, abs=LOOSE)
        for size in (1e-1, 1e-2, 1e-3):
            step = size * rng.standard_normal(4)
            step[y == 0] = 0
            step -= (y != 0) * step.sum() / (y != 0).sum()
            assert cost(x, y + step) >= value - LOOSE


@pytest.mark.parametrize("base", [None, "mean"])
def test_log_euclidean_coding_is_a_lasso_of_logarithms_and_the_least_residual(base):
    """Algorithm 1, by explicit tangent vectors."""
    D = X[:40]
    labels = Y[:40]
    point = np.eye(12, 2) if base is None else intrinsic.karcher_mean(D)
    atoms = intrinsic.log_map(point, D).reshape(40, -1)
    queries = intrinsic.log_map(point, X[40:]).reshape(20, -1)
    codes = vector_codes(atoms.T, queries, 0.2)
    residuals = [
        np.square(queries - codes[:, labels == c] @ atoms[labels == c]).sum(axis=1)
        for c in np.unique(labels)
    ]
    expected = np.unique(labels)[np.argmin(residuals, axis=0)]
    fitted = LogEuclideanSC(base, lam=0.2).fit(D, labels)
    assert np.array_equal(fitted.predict(X[40:]), expected)
    norm2 = np.square(queries).sum(axis=1)
    assert error(fitted.class_scores(X[40:]).T, norm2 - residuals) < 1e-5


def test_codes_are_features_of_another_classifier():
    """Section 5.3: a support vector machine on codes over learned atoms."""
    learned = estimators.GrassmannDictionary(12, lam=0.1, random_state=0)
    model = make_pipeline(learned, SVC(C=10)).fit(X[:40], Y[:40])
    assert np.mean(model.predict(X[40:]) == Y[40:]) > 0.8
    shuffled = np.random.default_rng(0).permutation(Y[:40])
    assert np.mean(model.fit(X[:40], shuffled).predict(X[40:]) == Y[40:]) < 0.7


# ------------------------------------------------------------------------------- videos


@pytest.mark.parametrize("mode", ["yx", "ty"])
def test_tcca_chooses_the_mode_in_which_classes_differ(mode):
    """Clips of a class share what their unfolding along the axis left out spans, and
    nothing else.
    """
    rng = np.random.default_rng(0)
    axis = "tyx".index(({*"tyx"} - {*mode}).pop())
    patterns = rng.standard_normal((3, 2, 64))
    labels = np.arange(12) % 3
    clips = []
    for label in labels:
        unfolded = rng.standard_normal((8, 2)) @ patterns[label]
        clips.append(np.moveaxis(unfolded.reshape(8, 8, 8), 0, axis))
    fitted = TCCA(2, n_features=2).fit(np.stack(clips), labels)
    first = 2 * tensors.MODES.index(mode)
    assert fitted.features_.tolist() == [first, first + 1]
    assert np.argsort(fitted.separations_)[-2:].min() >= first


def test_a_dynamic_fractal_spectrum_by_counting():
    """The exponent of a voxel: the slope of ln mu(B_r) on ln(2 r + 1); a level's
    dimension: minus the slope of ln N_s on ln s. Of the intensity, in cubes, and in
    squares within frames.
    """
    clip = np.random.default_rng(0).random((10, 10, 10)) ** 3 + 0.01
    edges = textures.exponent_edges([clip], radii=(1, 2))
    spectrum = textures.fractal_spectrum(clip, edges, radii=(1, 2))

    def dimensions(levels):
        """Of an array whose sides 2 divides."""
        counts = np.zeros((10, 2))
        for a, side in enumerate((1, 2)):
            boxes = {(lev, *np.array(at) // side) for at, lev in np.ndenumerate(levels)}
            for level, *_ in boxes:
                counts[level, a] += 1
        counts = np.maximum(counts, 1)
        return -np.diff(np.log(counts), axis=1)[:, 0] / np.log(2)

    def exponents(array):
        alpha = np.empty([n - 4 for n in array.shape])
        for at in np.ndindex(alpha.shape):
            masses = [
                array[tuple(slice(i + 2 - r, i + 3 + r) for i in at)].sum()
                for r in (1, 2)
            ]
            alpha[at] = np.diff(np.log(masses))[0] / np.log(5 / 3)
        return alpha

    def levels_of(alpha, edges):
        return np.clip(np.digitize(alpha, edges) - 1, 0, 9)

    volume = dimensions(levels_of(exponents(clip), edges[0, 0]))
    assert error(spectrum[0, 0], volume) < LOOSE
    slices = [dimensions(levels_of(exponents(frame), edges[1, 0])) for frame in clip]
    assert error(spectrum[1, 0], np.mean(slices, axis=0)) < LOOSE


def test_the_distance_of_dl_pegasos_is_the_weighted_sum_of_three():
    pytest.importorskip("skimage", reason="needs the extra 'image'")
    rng = np.random.default_rng(0)
    drift = np.cumsum(rng.standard_normal((6, 14, 16, 16)), axis=1)
    clips = drift + np.arange(6)[:, None, None, None] % 2 * np.arange(16)
    train = clips[:4]
    fitted = DLPegasos(2, n_iter=50).fit(train, [0, 1, 0, 1])
    lbp = [frames.lbp(clip).mean(axis=0) for clip in clips]
    hog = [
        frames.hog(
            clip, pixels_per_cell=(8, 8), cells_per_block=(1, 1), orientations=9
        ).mean(axis=0)
        for clip in clips
    ]
    systems = [subspaces.arma(clip, 2, stabilize=True) for clip in clips]
    three = np.zeros((3, 6, 4))
    for i in range(6):
        for j in range(4):
            both = lbp[i] + lbp[j]
            some = both > 0
            three[0, i, j] = (np.square(lbp[i] - lbp[j])[some] / both[some]).sum()
            three[1, i, j] = np.linalg.norm(hog[i] - hog[j])
            angles = dynamics.observability_angles([systems[i]], [systems[j]])
            three[2, i, j] = np.linalg.norm(angles)
    fitted.weights_ = np.array([1.0, 2.0, 3.0])
    three /= three[:, :4].mean(axis=(1, 2))[:, None, None]
    expected = np.tensordot(fitted.weights_, three, 1)
    assert error(fitted.distances(clips), expected) < 1e-6
    nearest = np.array([0, 1, 0, 1])[expected.argmin(axis=1)]
    assert np.array_equal(fitted.predict(clips), nearest)
