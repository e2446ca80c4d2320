"""Which labels may be wrong, and which clips are there twice: the command check.

Each labelled set is coded over all others, never over itself or what is kept together
with it. Suspect is a label for which less speaks than for another class. A set that no
other resembles, as noise, is no suspect: nothing explains it.
"""

from collections import namedtuple
from dataclasses import replace
from itertools import combinations

import numpy as np

import grassmann_sc as core
from grassmann_classify.copies import copies_of, joined_copies
from grassmann_classify.evaluation import evaluate
from grassmann_classify.inputs import labelled_clips, read
from grassmann_classify.page import PICTURED, Report, called, draw_clips
from grassmann_classify.splits import say_kept_together, without_peers
from grassmann_classify.tables import Table, write_rows
from grassmann_classify.words import (
    all_in_words,
    explained,
    labelled,
    plural,
    reasons_for,
    say_failed,
    tell,
    to_stderr,
)
from grassmann_sc import calibration, tuning

PRINTED = 12  # suspects and pairs of copies
ODD = 1 / 2  # of what a set shares with its nearest in the median: less is nothing
PAIR = ["clip", "copy", "label", "its label", "why"]  # columns
SUSPECT = ["clip", "label", "suspected", "suspicion", "because"]

# how: the method with what it chose; order (n,): the sets, most suspect first;
# suspicion (n,), -inf where nothing else could speak for the label; suspected (n,): the
# class that another label would be; because (n,): in words, and reasons, as reasons_for,
# what speaks for that
Suspects = namedtuple("Suspects", "how order suspicion suspected because reasons")


def check(recipe, settings, paths, out):
    """Write suspects.csv, copies.csv and a sheet of the first suspects."""
    end = settings.end()
    clips, _, recipe = labelled_clips(recipe, settings, paths)
    bank = read(recipe, settings, paths, clips)
    collection = bank.collection
    names = collection.names
    label = collection.label
    copies = copies_of(collection)
    pairs = Table(
        PAIR,
        [[names[i], names[j], label[i], label[j], why] for i, j, why in copies],
        f"{plural(len(copies), 'pair')} of copies",
    )
    write_rows(out, "copies.csv", pairs.columns, pairs.rows)
    shared = shared_with_nearest(collection)
    odd = [i for i in np.argsort(shared).tolist() if shared[i] < ODD]
    suspects = suspects_among(bank, settings, end, copies)
    # nothing explains the odd
    rows = {
        i: [
            names[i],
            label[i],
            "" if i in odd else suspects.suspected[i],
            suspects.suspicion[i],
            "nothing" if i in odd else suspects.because[i],
        ]
        for i in suspects.order.tolist()
        if suspects.suspicion[i] > -np.inf  # else no other could speak for the label
    }
    cells = ([*row[:3], f"{row[3]:.4g}", row[4]] for row in rows.values())
    write_rows(out, "suspects.csv", SUSPECT, cells)
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
        SUSPECT,
        [[*rows[i][:3], f"{rows[i][3]:.2f}", rows[i][4]] for i in wrong],
        f"{plural(len(wrong), 'label')} of {len(names)} for which less speaks than for "
        f"another class, and by how much ({suspects.how})",
        notes,
    )
    unlike = Table(
        ["clip", "label", "shared, of what is usual"],
        [[names[i], label[i], f"{100 * shared[i]:.0f} %"] for i in odd],
        f"{plural(len(odd), 'clip')} explained by nothing, sharing with their nearest "
        f"less than {100 * ODD:g} % of what is usual",
    )
    tables = {"Labels": worse, "Unlike all others": unlike, "Copies": pairs}
    tables = {name: t for name, t in tables.items() if t.rows or t.notes}
    conclusion = (
        f"{len(wrong)} of {plural(len(names), 'label')} may be wrong; "
        f"{plural(len(copies), 'pair')} of copies; {plural(len(odd), 'clip')} unlike all "
        "others"
    )
    report = Report(out, paths, paths.data, "labels that may be wrong, copies")
    report.lead(f"{conclusion}.")
    if paths.pictures:
        leads = {
            i: (
                f"{called(label[i])}; {called(suspects.suspected[i])}?",
                suspects.reasons[i],
            )
            for i in wrong[:PICTURED]
        }
        draw_clips(
            report,
            "suspects",
            "Labels that may be wrong",
            collection,
            clips,
            recipe,
            leads,
        )
    for heading, table in tables.items():
        report.section(heading)
        report.table(table)
    report.about(collection)
    report.save()
    # once all is saved
    tell(conclusion, *(table.text(PRINTED) for table in tables.values()))
    say_failed(collection.unusable)


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


def suspects_among(bank, settings, end, copies=()):
    """The Suspects among the labels of the sets of a Bank, by gSC with what it chooses.

    end: of the search, as evaluate has it. Copies do not speak for each other's label.
    """
    collection = bank.collection
    n = len(collection.label)
    classes, index = np.unique(collection.label, return_inverse=True)
    split = tuning.Split(np.arange(n), np.arange(0))
    (group,) = say_kept_together(collection, [split])
    group = joined_copies(copies, group, n)
    alone = replace(settings, methods=["gSC"], kernels=False)
    # a set that is whitened by its own label would look right
    (row,) = evaluate(bank, index, group, split, alone, end, shrinkage=[None])
    if row.failed:
        raise ValueError(f"{row.method.name} failed: {row.failed}")
    K = row.estimator.gram_
    how = {"lam": row.chosen["lam"], "lam_scale": "max"}
    rule = row.chosen["rule"]
    to_stderr(
        f"each of {plural(n, 'set')} is coded over the others, by {row.method.name}, "
        f"which is right for {100 * row.score:.0f} % in cross-validation"
    )
    codes = calibration.left_out_codes(K, group, **how)
    coded = codes, K, K, index
    scores, _ = core.class_scores(*coded, norm2=K.diagonal(), rule=rule)
    suspicion = calibration.suspicion(scores, index)
    suspicion[without_peers(index, group)] = -np.inf  # nothing could speak for these
    scores[np.arange(n), index] = -np.inf
    shares = core.score_shares(*coded, norm2=K.diagonal(), rule=rule)
    suspected = scores.argmax(axis=1)
    reasons = reasons_for(shares, index, suspected)
    names = [*map(labelled, collection.names, collection.label)]
    return Suspects(
        f"by {row.method.name}, {all_in_words(row.chosen)}",
        np.argsort(-suspicion, kind="stable"),
        suspicion,
        classes[suspected],
        [explained(names, pairs) for pairs in reasons],
        reasons,
    )
