"""Which labels may be wrong, and which clips are there twice: the command check.

Each labelled set is coded over all others, never over itself or what is kept together
with it. Suspect is a label for which less speaks than for another class. A set that no
other resembles, as noise, is no suspect: nothing explains it.
"""

import copy
from collections import namedtuple
from itertools import combinations

import numpy as np

import grassmann_sc as core
from grassmann_classify.baseline_rows import every_method
from grassmann_classify.copies import copies_of
from grassmann_classify.evaluation import (
    end_of,
    evaluate,
    explained,
    labelled,
    of_class,
    say_if_over,
)
from grassmann_classify.inputs import labelled_clips, read
from grassmann_classify.page import about, add_pictures, report_on
from grassmann_classify.pictures import save_sheet_of_suspects
from grassmann_classify.splits import say_kept_together
from grassmann_classify.tables import Table, write_rows
from grassmann_classify.words import all_in_words, plural, say_failed, short, tell
from grassmann_sc import calibration, tuning

PRINTED = 12  # suspects and pairs of copies
ODD = 1 / 2  # of what a set shares with its nearest in the median: less is nothing
OF_PAIR = ["clip", "copy", "label", "its label", "why"]  # columns
OF_SUSPECT = ["clip", "label", "suspected", "suspicion", "because"]

# how: the method with what it chose; order (n,): the sets, most suspect first;
# suspicion (n,), -inf where nothing else could speak for the label; suspected (n,): the
# class that another label would be; because (n,): in words, and reasons, as of_class,
# what speaks for that
Suspects = namedtuple("Suspects", "how order suspicion suspected because reasons")


def check(recipe, settings, paths, out):
    """Write suspects.csv, copies.csv and a sheet of the first suspects."""
    end = end_of(settings)
    clips, _, recipe = labelled_clips(recipe, settings, paths)
    bank = read(recipe, settings, paths, clips)
    collection = bank.collection
    names = collection.names
    copies = copies_table(collection)
    tell(copies.text(PRINTED))
    write_rows(out, "copies.csv", copies.columns, copies.rows)
    shared = shared_with_nearest(collection)
    odd = [i for i in np.argsort(shared).tolist() if shared[i] < ODD]
    suspects = suspects_among(collection, bank, settings, end)
    rows = _rows_of(suspects, collection, odd)
    digits = [[*row[:3], f"{row[3]:.4g}", row[4]] for row in rows.values()]
    write_rows(out, "suspects.csv", OF_SUSPECT, digits)
    wrong = [i for i, row in rows.items() if row[3] > 0 and i not in odd]
    notes = [
        f"{names[i]} and {names[j]} accuse each other: one of the two labels may be right"
        for i, j in accusing(suspects.reasons, wrong)
    ]
    if len(rows) < len(names):
        notes.append(
            f"{plural(len(names) - len(rows), 'label')} left out: no other set, or none of "
            "another group, has the same"
        )
    worse = Table(
        OF_SUSPECT,
        [[*rows[i][:3], f"{rows[i][3]:.2f}", rows[i][4]] for i in wrong],
        f"{plural(len(wrong), 'label')} of {len(names)} for which less speaks than for "
        f"another class, and by how much ({suspects.how})",
        notes,
    )
    tables = [worse, *_odd_table(collection, shared, odd)]
    for table in tables:
        tell(table.text(PRINTED))
    sheets = {}
    if wrong and paths.pictures:
        clips_of = recipe.key, collection, clips
        sheets = save_sheet_of_suspects(
            out, paths, *clips_of, suspects, wrong[:PRINTED]
        )
    report = report_on(paths, paths.data, "labels that may be wrong, copies")
    words, unusable = about(collection, len(clips))
    report.section("The data")
    report.text(words)
    for table in (unusable, *tables, copies):
        report.table(table)
    add_pictures(report, out, sheets=sheets)
    report.save(out)
    say_failed(collection)


def copies_table(collection):
    """The Table of clips that are there twice."""
    names = collection.names
    label = collection.label
    rows = [
        [names[i], names[j], label[i], label[j], why]
        for i, j, why, _ in copies_of(collection)
    ]
    return Table(OF_PAIR, rows, f"{plural(len(rows), 'pair')} of copies")


def _odd_table(collection, shared, odd):
    """The Table of clips that nothing explains, if there are any."""
    rows = [
        [collection.names[i], collection.label[i], f"{100 * shared[i]:.0f} %"]
        for i in odd
    ]
    if rows:
        yield Table(
            ["clip", "label", "shared, of what is usual"],
            rows,
            f"{plural(len(odd), 'clip')} explained by nothing, sharing with their nearest "
            f"less than {100 * ODD:g} % of what is usual",
        )


def _rows_of(suspects, collection, odd):
    """{set: its values of OF_SUSPECT}, the most suspect first; nothing explains the odd.

    Without those for whose label no other could speak.
    """
    rows = {}
    for i in suspects.order.tolist():
        against = suspects.suspected[i], suspects.suspicion[i], suspects.because[i]
        if i in odd:
            against = "", suspects.suspicion[i], "nothing"
        if against[1] > -np.inf:
            rows[i] = [collection.names[i], collection.label[i], *against]
    return rows


def shared_with_nearest(collection):
    """What each set shares with its most alike other (n,), in units of the median."""
    X = collection.X
    X = np.ascontiguousarray(X[:, :, : max(1, min(X.shape[2], X.shape[1] - 1))])
    K = core.projection_kernel(X)
    np.fill_diagonal(K, -np.inf)
    nearest = K.max(axis=1)
    return nearest / max(np.median(nearest), np.finfo(float).tiny)


def accusing(reasons, suspects):
    """The pairs i < j of these sets of which each speaks against the other's label."""
    named = {i: {j for j, _ in reasons[i]} for i in suspects}
    return [
        (i, j)
        for i, j in combinations(sorted(suspects), 2)
        if j in named[i] and i in named[j]
    ]


def suspects_among(collection, inputs, settings, end=None):
    """The Suspects among the labels of a Collection, by gSC with what it chooses.

    end: of the search, as evaluate has it.
    """
    end = end_of(settings) if end is None else end
    n = len(collection.label)
    classes, place = np.unique(collection.label, return_inverse=True)
    split = tuning.Split(np.arange(n), np.arange(0))
    (group,) = say_kept_together(collection, [split])
    settings = copy.copy(settings)
    settings.methods = None
    settings.kernels = False

    def methods(*arguments):
        rows = every_method(inputs)(*arguments)
        return [row for row in rows if row.name.startswith("gSC, labelled")]

    # a set that is whitened by its own label would look right
    how = {"end": end, "shrinkage": [None]}
    (row,) = evaluate(inputs, place, group, *split, methods, settings, **how)
    say_if_over(settings, end)
    if row.failed:
        raise ValueError(f"{row.method.name} failed: {row.failed}")
    K = row.estimator.gram_
    how = {"lam": row.chosen["lam"], "lam_scale": "max"}
    rule = row.chosen["rule"]
    scores, _ = calibration.left_out_scores(K, place, group, rule=rule, **how)
    suspicion = calibration.suspicion(scores, place)
    scores[np.arange(n), place] = -np.inf
    codes = calibration.left_out_codes(K, group, **how)
    shares = core.score_shares(codes, K, K, place, norm2=K.diagonal(), rule=rule)
    suspicion[_alone(place, group)] = -np.inf
    suspected = scores.argmax(axis=1)
    reasons = of_class(shares, place, suspected)
    names = [*map(labelled, collection.names, collection.label)]
    return Suspects(
        f"by {short(row.method.name)}, {all_in_words(row.chosen)}",
        np.argsort(-suspicion, kind="stable"),
        suspicion,
        classes[suspected],
        [explained(names, pairs) for pairs in reasons],
        reasons,
    )


def _alone(place, group):
    """Which sets (n,) have no other of their class that could speak for it."""
    kept = np.arange(len(place)) if group is None else np.asarray(group)
    alone = np.zeros(len(place), bool)
    for c in np.unique(place):
        alone |= (place == c) & (len(np.unique(kept[place == c])) < 2)
    return alone
