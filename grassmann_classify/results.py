"""The folder of a run: new for each, with results.json and predictions.csv."""

import contextlib
import itertools
import json
from collections import Counter
from pathlib import Path

import numpy as np

from grassmann_classify.finding import MARK
from grassmann_classify.tables import (
    all_answers,
    natural_classes,
    successes,
    write_rows,
)
from grassmann_classify.words import naming, to_stderr, versions
from grassmann_sc import files


class Results:
    """A new folder for the files of a run, as long as the with statement lasts.

        with Results("out") as out:
            out.write("results.json", lambda file: file.write(b"{}"))

    folder: out, else out-2, out-3, ..., whichever is not there; it is removed if nothing
    is written. written: {name: path}. ValueError if no folder can be made.
    """

    def __init__(self, folder):
        self.written = {}
        path = Path(folder)
        try:
            if path.name == "..":
                raise ValueError("a name is needed")
            path.parent.mkdir(parents=True, exist_ok=True)
            for k in itertools.count(1):
                self.folder = path if k == 1 else path.with_name(f"{path.name}-{k}")
                with contextlib.suppress(FileExistsError):
                    self.folder.mkdir()  # of two runs at once only one can make it
                    break
            (self.folder / MARK).touch()
        except (OSError, ValueError) as error:
            raise ValueError(
                f"--out must be a folder that can be made, got {folder}: {error}"
            ) from None

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.written:
            to_stderr(f"results: {self.folder}")
        else:
            (self.folder / MARK).unlink()
            with contextlib.suppress(OSError):  # it may hold a model that was saved
                self.folder.rmdir()

    def write(self, name, write):
        """Write a file by write(file), whole or not at all; gives its path."""
        path = self.folder / name
        with naming(path):
            path.parent.mkdir(exist_ok=True)
            files.write_whole(path, write)
        self.written[name] = path
        return path


def save_results(out, options, collection, pairs, results, n_done, comparison):
    """results.json of the splits that all methods have.

    n_done: their number, 0 of a first look, whose results are provisional; comparison:
    the tables.Comparison of the rows.
    """
    content = {
        "options": options,
        "versions": versions(),
        "n_sets": len(collection.label),
        "subspaces": collection.X.shape[1:],
        "classes": natural_classes(collection.label),
        "splits": len(pairs),
        "splits_done": n_done,
        "provisional": not n_done,
        "methods": {
            name: _summary(collection.label, pairs, splits)
            for name, splits in results.items()
        },
        "comparison": comparison._asdict(),
        "failed": [*collection.unusable.values()],
    }
    # NumPy's arrays and numbers as JSON has them, all else as text
    text = json.dumps(
        content, default=lambda x: x.tolist() if hasattr(x, "tolist") else str(x)
    )
    # nine digits of a fraction: the rest is rounding
    content = json.loads(text, parse_float=lambda digits: float(f"{float(digits):.9g}"))
    content["classes"] = natural_classes(collection.label)  # of which all digits count
    text = json.dumps(content, indent=1)
    out.write("results.json", lambda file: file.write(text.encode()))


def save_predictions(out, collection, pairs, results):
    """predictions.csv: what each method answers for each test clip of each split."""
    groups = [] if collection.group is None else [collection.group]
    rows = []
    for k, (_, test) in enumerate(pairs):
        answers = [
            [""] * len(test)
            if k >= len(splits) or splits[k]["failed"]
            else splits[k]["predicted"].tolist()
            for splits in results.values()
        ]
        names = [collection.names[i] for i in test]
        persons = [group[test].tolist() for group in groups]
        truth = collection.label[test].tolist()
        rows += zip(names, *persons, [k] * len(test), truth, *answers)
    header = ["clip", *["group"] * len(groups), "split", "truth", *results]
    write_rows(out, "predictions.csv", header, rows)


def _summary(label, pairs, splits):
    """What results.json tells of a method."""
    classes = natural_classes(label)
    answers = (part.tolist() for part in all_answers(label, pairs, splits))
    counts = Counter(zip(*answers))
    accuracy = [split["accuracy"] for split in successes(splits)]
    return {
        "mean": np.mean(accuracy) if accuracy else None,
        "std": np.std(accuracy, ddof=1) if len(accuracy) > 1 else None,
        **{
            name: [None if split["failed"] else split[name] for split in splits]
            for name in ("accuracy", "balanced", "f1")
        },
        **{
            name: [split[name] for split in splits]
            for name in ("failed", "seconds", "chosen")
        },
        "confusion": [[counts[c, answer] for answer in classes] for c in classes],
    }
