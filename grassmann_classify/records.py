"""What an evaluation leaves behind: results.json, predictions.csv, codes.npz."""

import json

import numpy as np

from grassmann_classify.evaluation import all_answers, natural_classes, successes
from grassmann_classify.page import versions
from grassmann_classify.spreadsheets import write_rows
from grassmann_classify.tables import compared

DIGITS = 9  # of fractions in results.json: the rest is rounding


def save_results(out, asked, collection, pairs, results, n_done=None):
    """results.json of the splits that all methods have.

    n_done: their number, 0 of a first look, whose results are provisional.
    """
    done = pairs if n_done is None else pairs[: max(1, n_done)]
    if n_done is None:
        n_done = min(len(found) for found in results.values())
    content = {
        "options": asked,
        "versions": versions(),
        "n_sets": len(collection.label),
        "subspaces": collection.X.shape[1:],
        "classes": natural_classes(collection.label),
        "splits": len(pairs),
        "splits_done": n_done,
        "provisional": not n_done,
        "methods": {
            name: _summary(collection.label, pairs, found)
            for name, found in results.items()
        },
        "comparison": compared(results, done)._asdict(),
        "failed": [*collection.unread.values()],
    }
    text = json.dumps(_rounded(content), indent=1, default=str)
    out.write("results.json", lambda file: file.write(text.encode()))


def save_predictions(out, collection, pairs, results):
    """predictions.csv: what each method answers for each test clip of each split."""
    rows = []
    for k, (_, test) in enumerate(pairs):
        found = [
            splits[k]["predicted"] if k < len(splits) else None
            for splits in results.values()
        ]
        rows += [
            [
                collection.names[i],
                k,
                collection.label[i],
                *("" if labels is None else labels[row] for labels in found),
            ]
            for row, i in enumerate(test)
        ]
    write_rows(out, "predictions.csv", ["clip", "split", "truth", *results], rows)


def _summary(label, pairs, found):
    """What results.json tells of a method."""
    place = {name: i for i, name in enumerate(natural_classes(label))}
    truth, predicted = all_answers(label, pairs, found)
    confusion = np.zeros((len(place), len(place)), int)
    np.add.at(confusion, ([place[c] for c in truth], [place[c] for c in predicted]), 1)
    accuracy = [split["accuracy"] for split in successes(found)]
    others = {
        name: [None if split["failed"] else split[name] for split in found]
        for name in ("balanced", "f1")
    }
    return {
        "mean": np.mean(accuracy) if accuracy else None,
        "std": np.std(accuracy, ddof=1) if len(accuracy) > 1 else None,
        "accuracy": [None if split["failed"] else split["accuracy"] for split in found],
        **others,
        "failed": [split["failed"] for split in found],
        "seconds": [split["seconds"] for split in found],
        "chosen": [split["chosen"] for split in found],
        "confusion": confusion,
    }


def _rounded(value):
    """NumPy's numbers and arrays as JSON has them, fractions with DIGITS digits."""
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if hasattr(value, "tolist"):
        return _rounded(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return float(f"{value:.{DIGITS}g}") if type(value) is float else value


def save_codes(out, collection, done):
    """codes.npz of the last split, of which done is the Progress; its arrays."""
    arrays = {
        "names": np.array(collection.names),
        "label": collection.label,
        "train": done.train,
        "test": done.test,
    }
    arrays |= done.codes
    out.write("codes.npz", lambda file: np.savez_compressed(file, **arrays))
    return arrays
