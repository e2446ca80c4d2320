"""Clips without labels in clusters: the command cluster."""

from collections import namedtuple

import numpy as np

import grassmann_sc as core
from grassmann_classify.copies import copies_of
from grassmann_classify.inputs import (
    collection_of,
    new_clips,
    recipe_of,
    with_size,
)
from grassmann_classify.page import PICTURED, Report, draw_clips, unusable
from grassmann_classify.settings import CLUSTERED
from grassmann_classify.tables import Table, write_rows
from grassmann_classify.words import (
    BECAUSE,
    explained,
    first_of,
    plural,
    say_failed,
    tell,
)
from grassmann_sc import estimators, plots, subspaces

# number (n,): 1 for the largest cluster; order (n,): the sets of the first cluster first,
# in each those first that its sets explain best; reasons: [[(set, share), ...], ...], the
# sets of its cluster that share most with each; K (n, n): the projection kernel; alone:
# the sets that share nothing with any other
Clusters = namedtuple("Clusters", "number order reasons K alone")
ALIKE = 1e-6  # of the squared distance of orthogonal subspaces: rounding


def cluster(recipe, settings, paths, out):
    """Write clusters.csv of clips without labels, a sheet of each cluster, and a map."""
    clips, recipe = new_clips(paths.data, recipe, settings)
    recipe = with_size(clips, recipe_of(clips, recipe, settings), settings)
    collection = collection_of(recipe, settings, paths, clips)
    names = collection.names
    X = collection.X
    kind = f"of dimension {X.shape[2]}"
    if settings.p is None and collection.spectra:
        X = subspaces.weighted(*collection.spectra, CLUSTERED)
        kind = f"weighted by spectrum {CLUSTERED:g}"
    least = max(2, settings.k)
    if len(names) < least:
        raise ValueError(f"-k {settings.k} needs {least} sets, got {len(names)}")
    clusters = clusters_of(X, settings.k, settings.seed)
    rows = [
        [name, number, explained(names, reasons), ""]
        for name, number, reasons in zip(names, clusters.number, clusters.reasons)
    ]
    rows += [[name, "", "", why] for name, why in collection.unusable.items()]
    write_rows(out, "clusters.csv", ["clip", "cluster", "because", "failed"], rows)
    sizes = " + ".join(map(str, np.bincount(clusters.number)[1:]))
    what = f"{plural(len(names), 'set')} as subspaces {kind}"
    notes = [f"{what}: clusters of {sizes}", *_doubts(clusters, collection)]
    report = Report(out, paths, paths.data, "clusters of clips")
    report.lead(*notes)
    if paths.pictures:
        labels = np.array([f"cluster {k}" for k in clusters.number])
        report.draw("map", what, plots.plot_map, clusters.K, labels)
        _, first, sizes = np.unique(
            clusters.number[clusters.order], return_index=True, return_counts=True
        )
        leads = {
            i: (f"{labels[i]}, {plural(n, 'set')}", clusters.reasons[i])
            for i, n in zip(clusters.order[first[:PICTURED]].tolist(), sizes)
        }
        draw_clips(
            report,
            "clusters",
            "Clusters",
            collection._replace(label=labels),
            clips,
            recipe,
            leads,
        )
    report.section("Clusters")
    report.table(
        Table(
            ["clip", "cluster"],
            [(names[i], clusters.number[i]) for i in clusters.order],
        )
    )
    report.table(unusable(collection.unusable))
    report.save()
    tell(*notes)
    say_failed(collection.unusable)


def _doubts(clusters, collection):
    """Why the Clusters of a Collection may mean little, in words."""
    names = collection.names
    if clusters.K.min() >= clusters.K.max() * (1 - ALIKE):
        yield (
            "all sets are the same subspace: nothing tells clusters apart; a smaller --p, "
            "or --stack, may"
        )
        return
    if len(clusters.alone):
        alone = first_of([names[i] for i in clusters.alone], ", ")
        yield (
            f"{plural(len(clusters.alone), 'set')} share nothing with any other, so that "
            f"their clusters mean nothing: {alone}"
        )
    copies = copies_of(collection)
    if copies:
        first, second = (names[i] for i in copies[0][:2])
        yield (
            f"{plural(len(copies), 'pair')} of copies, as {first} and {second}: a copy "
            "explains its clip alone, so that clusters may mean little; keep one of each"
        )


def clusters_of(X, n_clusters, seed):
    """The Clusters of subspaces X (n, d, p), or weighted, by estimators.SubspaceClustering.

    The share of two sets is the edge between them in its graph.
    """
    K = core.projection_kernel(X)
    K[K < ALIKE**2 * K.max()] = 0  # rounding is nothing that sets share
    clustering = estimators.SubspaceClustering(
        n_clusters, kernel="precomputed", random_state=seed
    ).fit(K)
    largest_first = np.argsort(
        -np.bincount(clustering.labels_, minlength=n_clusters), kind="stable"
    )
    number = 1 + np.argsort(largest_first)[clustering.labels_]
    edges = np.where(number[:, None] == number, clustering.affinity_matrix_, 0)
    first = np.argsort(-edges, axis=1, kind="stable")[:, :BECAUSE].tolist()
    reasons = [
        [(j, float(edges[i, j])) for j in row if edges[i, j] > 0]
        for i, row in enumerate(first)
    ]
    order = np.lexsort((np.arange(len(number)), -edges.sum(axis=1), number))
    alone = np.flatnonzero(~clustering.affinity_matrix_.any(axis=1))
    return Clusters(number, order, reasons, K, alone)
