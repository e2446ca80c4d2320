"""Clusters of subspaces: the graph by plain loops, its cut, and what has no unique cut."""

import warnings

import numpy as np
import pytest
from scipy.cluster.vq import kmeans2
from sklearn.base import clone

import grassmann_sc as core
from grassmann_sc import calibration
from grassmann_sc.estimators import SubspaceClustering
from oracles import TIGHT, error

pytestmark = pytest.mark.filterwarnings("error")


def near(n_clusters, n, noise=0.1, d=12, seed=0):
    """n planes in R^d near each of some, in random order; the number of each."""
    rng = np.random.default_rng(seed)
    centres = core.random_subspaces(n_clusters, d, 2, rng)
    truth = rng.permutation(np.repeat(range(n_clusters), n))
    apart = noise * rng.standard_normal((len(truth), d, 2))
    return core.orthonormalize(centres[truth] + apart), truth


def in_blocks(n_blocks, n, seed=0):
    """n planes in each of some spaces R^4, orthogonal to each other, one after another."""
    X = np.zeros((n_blocks * n, 4 * n_blocks, 2))
    for b in range(n_blocks):
        mine = slice(b * n, (b + 1) * n)
        X[mine, 4 * b : 4 * b + 4] = near(1, n, 0.2, 4, seed + b)[0]
    return X, np.repeat(range(n_blocks), n)


def together(labels):
    """Which pairs are in one cluster, whatever its name."""
    return np.equal.outer(labels, labels)


def fitted(X, n_clusters, **options):
    return SubspaceClustering(n_clusters, **{"random_state": 0, **options}).fit(X)


# ----------------------------------------------------------------------------- the graph


def graph_by_loops(X, lam, lam_scale):
    """|Y| + |Y|^T, each row of Y coded over all others and divided by its largest."""
    n = len(X)
    graph = np.zeros((n, n))
    for i in range(n):
        rest = [j for j in range(n) if j != i]
        result = core.classify(
            X[i : i + 1],
            X[rest],
            (["a", "b"] * n)[: n - 1],
            lam=lam,
            lam_scale=lam_scale,
            return_info=True,
        )
        code = np.abs(result.codes[0])
        for j, y in zip(rest, code):
            if code.max() > 0:
                graph[i, j] += y / code.max()
                graph[j, i] += y / code.max()
    return graph


@pytest.mark.parametrize(
    "options",
    [{}, {"lam": 0.01}, {"lam": 0.5}, {"lam": 0.3, "lam_scale": None}, {"lam": 0}],
)
def test_the_graph_is_that_of_plain_loops(options):
    """Of codes of which some are negative where lam is small."""
    X = near(3, 4, 0.4)[0]
    how = {"lam": 0.1, "lam_scale": "max", **options}
    model = fitted(X, 3, **options)
    graph = model.affinity_matrix_
    assert error(graph, graph_by_loops(X, **how)) < TIGHT
    assert np.array_equal(graph, graph.T) and not graph.diagonal().any()
    assert (graph.max(axis=1) >= 1).all() and graph.max() <= 2
    codes = calibration.left_out_codes(core.projection_kernel(X), **how)
    assert (codes < 0).any() or how["lam"] >= 0.1


def plain_cut(graph, n_clusters, seed=0):
    """Rows of the first eigenvectors of D^-1/2 A D^-1/2, by the best of many k-means."""
    degree = graph.sum(axis=1)
    normal = graph / np.sqrt(np.outer(degree, degree))
    rows = np.linalg.eigh(normal)[1][:, -n_clusters:] / np.sqrt(degree)[:, None]
    rng = np.random.default_rng(seed)
    best = np.inf
    for _ in range(30):
        centres, labels = kmeans2(
            rows, n_clusters, minit="++", seed=rng, missing="warn"
        )
        cost = ((rows - centres[labels]) ** 2).sum()
        if cost < best:
            best = cost
            best_labels = labels
    return best_labels


@pytest.mark.parametrize("n_clusters", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_the_cut_is_the_plain_one_of_the_graph_by_loops(n_clusters, seed):
    """Where clusters are apart: those that were drawn, up to their names."""
    X, truth = near(n_clusters, 6, 0.15, seed=seed)
    graph = graph_by_loops(X, 0.1, "max")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # k-means from a poor start
        expected = together(plain_cut(graph + 1e-6, n_clusters))
    labels = fitted(X, n_clusters).labels_
    assert np.array_equal(together(labels), expected)
    assert np.array_equal(expected, together(truth))
    assert sorted(set(labels.tolist())) == [*range(n_clusters)]


def test_clusters_are_of_subspaces_not_of_their_bases_places_or_names():
    """Other bases, a turn of the space, another order, another seed: the same clusters."""
    X, truth = near(3, 5, 0.15)
    first = fitted(X, 3)
    rng = np.random.default_rng(1)
    turn = core.random_subspaces(1, 12, 12, rng)[0]
    bases = core.random_subspaces(15, 2, 2, rng)
    order = rng.permutation(15)
    other = fitted((turn @ X @ bases)[order], 3, random_state=7)
    graph = first.affinity_matrix_[np.ix_(order, order)]
    assert error(other.affinity_matrix_, graph) < 1e-6
    assert np.array_equal(together(other.labels_), together(truth[order]))
    single = fitted(X.astype(np.float32), 3)
    assert np.array_equal(together(single.labels_), together(truth))
    assert error(single.affinity_matrix_, first.affinity_matrix_) < 1e-3


@pytest.mark.parametrize("lam_scale", ["max", None])
def test_a_gram_matrix_has_the_graph_and_the_clusters_of_its_subspaces(lam_scale):
    X = near(3, 5, 0.5)[0]
    options = {"lam": 0.05, "lam_scale": lam_scale}
    first = fitted(X, 3, **options)
    grams = fitted(core.projection_kernel(X), 3, kernel="precomputed", **options)
    assert np.array_equal(grams.affinity_matrix_, first.affinity_matrix_)
    assert np.array_equal(grams.labels_, first.labels_)
    assert grams.n_features_in_ == 15 and first.n_features_in_ == 12


# ------------------------------------------------------------------- no unique cut


@pytest.mark.parametrize("n_clusters", [1, 2, 3, 4, 5])
def test_parts_of_a_graph_stay_whole_where_they_are_more_than_clusters(n_clusters):
    """Five parts that share nothing; each cluster has some."""
    X, part = in_blocks(5, 4)
    model = fitted(X, n_clusters)
    assert not model.affinity_matrix_[~together(part)].any()
    of_part = [set(model.labels_[part == b].tolist()) for b in range(5)]
    assert all(len(labels) == 1 for labels in of_part)
    assert set.union(*of_part) == {*range(n_clusters)}


def test_more_clusters_than_parts_cut_parts_and_join_none():
    X, part = in_blocks(3, 6)
    labels = fitted(X, 5).labels_
    assert not (together(labels) & ~together(part)).any()
    assert sorted(set(labels.tolist())) == [*range(5)]


@pytest.mark.parametrize("n", [2, 3, 7])
def test_as_many_clusters_as_subspaces_are_one_each_and_one_cluster_has_all(n):
    for X in (core.random_subspaces(n, 6, 2, rng=0), in_blocks(n, 1)[0]):
        assert fitted(X, n).labels_.tolist() == [*range(n)]
        assert not fitted(X, 1).labels_.any()
        assert fitted(X, n).affinity_matrix_.shape == (n, n)


@pytest.mark.parametrize("n_clusters", [3, 4, 6])
def test_copies_are_in_one_cluster(n_clusters):
    """Each of some planes several times, in bases of its own."""
    rng = np.random.default_rng(0)
    truth = rng.permutation(np.repeat(range(n_clusters), 4))
    planes = core.random_subspaces(n_clusters, 9, 2, rng)
    X = planes[truth] @ core.random_subspaces(len(truth), 2, 2, rng)
    model = fitted(X, n_clusters)
    assert np.array_equal(together(model.labels_), together(truth))
    assert np.isfinite(model.affinity_matrix_).all()


@pytest.mark.filterwarnings("ignore:Number of distinct clusters")
@pytest.mark.parametrize("n_clusters", [1, 2, 5])
def test_subspaces_that_are_all_alike_or_share_nothing_have_clusters_too(n_clusters):
    """They mean nothing; each has one, and no entry of the graph is NaN."""
    alike = core.random_subspaces(1, 9, 2, rng=0)[[0] * 8]
    apart = in_blocks(8, 1)[0]
    for X in (alike, alike @ core.random_subspaces(8, 2, 2, rng=1), apart):
        model = fitted(X, n_clusters)
        assert np.isin(model.labels_, range(n_clusters)).all()
        assert model.labels_.shape == (8,) and np.isfinite(model.affinity_matrix_).all()
    assert not model.affinity_matrix_.any()
    nothing = fitted(near(2, 4)[0], n_clusters, lam=1.5)  # beyond lam_max: zero codes
    assert not nothing.affinity_matrix_.any() and nothing.labels_.shape == (8,)


def test_one_that_shares_nothing_leaves_the_clusters_of_the_others():
    X, truth = near(2, 6, 0.15)
    wider = np.zeros((13, 14, 2))
    wider[:12, :12] = X
    wider[12, 12:] = np.eye(2)
    model = fitted(wider, 2)
    assert np.array_equal(together(model.labels_[:12]), together(truth))
    assert not model.affinity_matrix_[12].any() and model.labels_[12] in (0, 1)


# -------------------------------------------------------------------------- randomness


@pytest.mark.parametrize(
    "state", [0, 5, np.random.default_rng(3), np.random.RandomState(3)]
)
def test_equal_states_give_equal_clusters_and_stay_as_they_are(state):
    """Also where nothing tells clusters apart, so that chance decides."""
    X = core.random_subspaces(20, 6, 2, rng=0)
    model = SubspaceClustering(6, random_state=state)
    first = model.fit_predict(X)
    for again in (model, clone(model), SubspaceClustering(6, random_state=state)):
        assert np.array_equal(again.fit_predict(X), first)
    others = [fitted(X, 6, random_state=seed).labels_ for seed in range(8)]
    assert any(not np.array_equal(other, first) for other in others)
