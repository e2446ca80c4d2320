"""Clips without labels in clusters: classify with --cluster K."""

from collections import namedtuple

import numpy as np

import grassmann_sc as core
from examples.comparison import BECAUSE
from grassmann_sc import estimators

USUAL_P = 6  # it found the classes of four of five labelled data sets best, of 1 to 10

# number (n,): 1 for the largest cluster; order (n,): the sets of the first cluster first,
# in each those first that its sets explain best; reasons: [[(set, share), ...], ...], the
# sets of its cluster that share most with each; K (n, n): the projection kernel
Clusters = namedtuple("Clusters", "number order reasons K")


def clusters_of(X, n_clusters, seed):
    """The Clusters of subspaces X (n, d, p), by estimators.SubspaceClustering.

    The share of two sets is the edge between them in its graph.
    """
    K = core.projection_kernel(X)
    found = estimators.SubspaceClustering(
        n_clusters, kernel="precomputed", random_state=seed
    ).fit(K)
    sizes = np.bincount(found.labels_, minlength=n_clusters)
    rank = np.empty(n_clusters, int)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(1, n_clusters + 1)
    number = rank[found.labels_]
    edges = np.where(number[:, None] == number, found.affinity_matrix_, 0)
    first = np.argsort(-edges, axis=1, kind="stable")[:, :BECAUSE].tolist()
    reasons = [
        [(j, float(edges[i, j])) for j in row if edges[i, j] > 0]
        for i, row in enumerate(first)
    ]
    order = np.lexsort((np.arange(len(number)), -edges.sum(axis=1), number))
    return Clusters(number, order, reasons, K)
