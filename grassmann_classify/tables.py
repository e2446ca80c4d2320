"""Tables for the terminal and the page: accuracies, what was chosen, and chance."""

import csv
import re
from collections import Counter, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

from grassmann_classify.rows import most_telling
from grassmann_classify.words import FORMULA, TERMS, in_words, meaning, plural
from grassmann_sc import shared

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+|inf|nan)(e[+-]?\d+)?", re.IGNORECASE)
FEWEST_SPLITS = 5  # no p-values with fewer
ROUNDING = 1e-12  # differences of shares below it are rounding errors
COLUMNS = {"accuracy": "accuracy in %", "balanced": "balanced", "f1": "F1"}
SECONDS = (
    "seconds: of one split, in the mean, to choose all settings, to learn, to answer"
)


def successes(splits):
    """The splits on which a method did not fail."""
    return [split for split in splits if split["failed"] is None]


def all_answers(label, pairs, splits):
    """True and predicted labels of all test parts on which a method succeeded."""
    done = [
        (label[test], split["predicted"])
        for split, (_, test) in zip(splits, pairs)
        if split["failed"] is None
    ]
    truth, predicted = zip((label[:0], label[:0]), *done)
    return np.concatenate(truth), np.concatenate(predicted)


def natural_classes(label):
    """The classes, 2 before 10."""
    return sorted(np.unique(label).tolist(), key=shared.natural_order)


@dataclass
class Table:
    """Rows of cells below the names of columns, a title above and notes below them.

    numbers: how many of the last columns hold numbers; best: the place of the row in
    front, or None.
    """

    columns: list
    rows: list
    title: str = ""
    notes: list = field(default_factory=list)
    numbers: int = 0
    best: int | None = None

    def text(self, most=None):
        """The table in lines for a terminal, of its rows the first `most`, None: all."""
        lines = [self.title] * bool(self.title)
        if self.rows:
            rows = [self.columns, *self.rows[:most]]
            cells = [[str(cell) for cell in row] for row in rows]
            widths = [max(map(len, column)) for column in zip(*cells)]
            first = len(widths) - self.numbers
            for row in cells:
                pairs = enumerate(zip(row, widths))
                row = [f"{c:>{w}}" if k >= first else f"{c:{w}}" for k, (c, w) in pairs]
                lines.append("  ".join(row).rstrip())
        return "\n".join([*lines, *self.notes])


def accuracies(results, columns, comparison):
    """The Table of all rows: columns in % with their spread, points behind the first.

    columns: of COLUMNS. What else there is to say of rows stands in notes_of.
    """
    p_values = comparison.p_values or {}
    rows = []
    for name, splits in results.items():
        done = successes(splits)
        cells = [_mean([split[column] for split in done]) for column in columns]
        behind = comparison.behind.get(name)
        cells.append("" if behind is None else f"{behind:.1f}")
        if p_values:
            cells.append(f"{p_values[name]:.3f}" if name in p_values else "")
        seconds = np.mean([split["seconds"] for split in done or splits])
        cells.append(f"{seconds:.{2 if seconds < 10 else 0}f}")
        if not done:
            cells = ["failed", *[""] * (len(cells) - 1)]
        rows.append([name, *cells])
    names = [*map(COLUMNS.get, columns), "points behind"]
    names += ["p-value"] * bool(p_values) + ["seconds"]
    notes = ["±: the standard deviation over splits"] * any(
        "±" in row[1] for row in rows
    )
    notes.append(f"p-value: {comparison.test}" if p_values else comparison.why)
    return Table(
        ["row", *names],
        rows,
        notes=[*notes, SECONDS],
        numbers=len(names),
        best=[*results].index(comparison.first) if comparison.first else None,
    )


def meanings(results):
    """The Table of what each row does."""
    rows = [[name, meaning(name)] for name in results if meaning(name)]
    return Table(["row", "what it does"], rows)


def choices(results):
    """The Table of what each row chose most often, in words, and what the words mean."""
    rows = [[name, _most_often(successes(s))] for name, s in results.items()]
    used = {
        name
        for splits in results.values()
        for split in successes(splits)
        for name, value in split["chosen"].items()
        if value is not None and value not in ("linear", "plain", "raw")
    }
    terms = [words for name, words in TERMS.items() if name in used]
    return Table(["row", "chosen most often"], rows, notes=terms)


def summed(results):
    """The Table of the candidates that rows summed on the first split.

    Rows that sum the same candidates are in one.
    """
    rows_of = {}
    for name, (first, *_) in results.items():
        if first["summed"] and "candidates" in first["chosen"]:
            rows_of.setdefault(tuple(first["summed"]), []).append(name)
    rows = [
        [", ".join(names), words, f"{accuracy:.1f}"]
        for pairs, names in rows_of.items()
        for words, accuracy in pairs
    ]
    columns = ["rows", "candidates summed, first split", "in cross-validation, %"]
    return Table(columns, rows, numbers=1)


def notes_of(results):
    """What else there is to say of rows: failures, what was left out, warnings."""
    return [
        f"{name}: {line}" for name, splits in results.items() for line in _notes(splits)
    ]


def _mean(shares):
    """The mean over the splits, and its spread."""
    spread = f" ± {np.std(shares, ddof=1):4.1f}" if len(shares) > 1 else ""
    return f"{np.mean(shares):.1f}{spread}" if shares else ""


def columns_of(settings, label):
    """The table's columns: balanced accuracy for uneven classes, F1 if asked for."""
    uneven = len(np.unique(np.unique(label, return_counts=True)[1])) > 1
    return ["accuracy", *["balanced"] * uneven, *["f1"] * settings.f1]


def _most_often(done):
    """The most frequent value of each parameter, and in how many splits, if not in all.

    Of numbers of which none was chosen in more than half of the splits, and of candidates,
    the least and the largest.
    """
    words = []
    for name in dict.fromkeys(name for split in done for name in split["chosen"]):
        counts = Counter(split["chosen"].get(name) for split in done)
        ((value, count),) = counts.most_common(1)
        numbers = [number for number in counts if type(number) in (int, float)]
        spread = 2 * count <= len(done) or name == "candidates"
        if spread and len(counts) == len(numbers) > 1:
            words.append(in_words(name, max(numbers), min(numbers)))
        elif value is not None:
            often = f" (in {count} of {len(done)})" if count < len(done) else ""
            words.append(in_words(name, value) + often)
    return ", ".join(words)


def _notes(splits):
    """Notes on a row: failures, candidates left out, and warnings."""
    if "look" in splits[0]:
        yield "of a first look, nothing searched"
    failed = Counter(split["failed"] for split in splits if split["failed"])
    for why, count in failed.items():
        yield f"failed{_in_splits(count, splits)}: {why}"
    done = successes(splits)
    left_out = {}
    for split in done:
        for name, why in split["left_out"].items():
            left_out.setdefault(name, []).append(why)
    for name, reasons in left_out.items():
        yield f"{name} left out{_in_splits(len(reasons), done)}: {reasons[0]}"
    warned = Counter(text for split in done for text in split["warned"])
    for text, count in warned.most_common(1):
        others = f", and {plural(len(warned) - 1, 'other warning')}"
        others *= len(warned) > 1
        yield f"warned{_in_splits(count, done)}: {text}{others}"


def _in_splits(count, done):
    return f" in {count} of {len(done)} splits" if len(done) > 1 else ""


# first: the row of rows.most_telling; behind: {row: points behind the first, negative
# where it is ahead by chance}; p_values: {row: p-value} or None; test: the name of the
# test; why: the reason if there are no p-values
Comparison = namedtuple("Comparison", "first behind p_values test why")


def compared(results, pairs):
    """The Comparison of the rows that succeeded on all splits.

    p-values are adjusted by Holm's correction for the number of rows. With fewer splits
    than FEWEST_SPLITS there are none: whatever the difference, they would say nothing.
    """
    share = {
        name: np.array([split["accuracy"] for split in splits]) / 100
        for name, splits in results.items()
        if len(successes(splits)) == len(pairs)
    }
    # means of the same shares in another order differ by rounding
    mean = {name: round(float(right.mean()), 12) for name, right in share.items()}
    first = most_telling(share) if share else None
    behind = {
        name: share[first] - right for name, right in share.items() if name != first
    }
    points = {name: 100 * (mean[first] - mean[name]) for name in behind}
    if not behind:
        return Comparison(
            first, points, None, None, "fewer than two methods have all splits"
        )
    if len(pairs) < FEWEST_SPLITS:
        why = (
            f"{plural(len(pairs), 'split')}: too few splits to tell which differences are larger "
            f"than chance, {FEWEST_SPLITS} or more can"
        )
        return Comparison(first, points, None, None, why)
    n_test = np.mean([len(test) for _, test in pairs])
    ratio = np.mean([len(test) / len(train) for train, test in pairs])
    p_values = holm(
        np.array([corrected_t_test(lost, ratio, n_test) for lost in behind.values()])
    )
    tested = np.concatenate([test for _, test in pairs])
    test = f"corrected resampled t-test over {len(pairs)} splits"
    if len(np.unique(tested)) == len(tested):
        test = (
            f"paired t-test over {len(pairs)} parts left out in turn, its variance "
            "corrected for the training sets that they share"
        )
    test += f"; Holm's correction over {plural(len(behind), 'row')}"
    return Comparison(first, points, dict(zip(behind, p_values.tolist())), test, None)


def corrected_t_test(differences, ratio, n_test):
    """The p-value (two-sided) of the mean difference in accuracy of two methods.

    differences (k,): of the shares that are right on k splits of the same sets; the
    splits share sets and are not independent. ratio: test sets over training sets. t =
    mean / sqrt((1 / k + ratio) variance) with k - 1 degrees of freedom: the corrected
    resampled t-test. Source: Nadeau and Bengio 2003.

    n_test: the number of sets in a test part. The variance is at least |mean| / n_test.
    This floor assumes that two equally good methods differ on a share |mean| of the
    sets or more, that each of these sets favours either method with the same chance,
    and that sets are answered independently of each other; for sets of one clip or
    group, which are not, the floor is too low.
    """
    from scipy.stats import t as student  # slow to import

    k = len(differences)
    mean = abs(differences.mean())
    if mean <= ROUNDING:
        return 1.0
    variance = max(differences.var(ddof=1), mean / n_test)
    return float(2 * student.sf(mean / np.sqrt((1 / k + ratio) * variance), k - 1))


def holm(p_values):
    """p-values (m,) of m comparisons, adjusted by Holm's correction, (m,).

    If methods that do not differ are compared, the chance that any of their adjusted
    p-values is below alpha is at most alpha. In ascending order the i-th is max over j
    <= i of min(1, (m - j + 1) p_j). Source: Holm 1979.
    """
    order = p_values.argsort(kind="stable")
    rising = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1))
    return rising.clip(max=1)[order.argsort()]


def write_rows(out, name, header, rows):
    """Write a CSV file into a results.Results; gives its path."""
    lines = []
    # the writer ends lines by \r\n, else \r in a cell would have no quotes
    writer = csv.writer(SimpleNamespace(write=lines.append))
    writer.writerows(map(_as_text, row) for row in [header, *rows])
    content = "".join(f"{line[:-2]}\n" for line in lines)
    # names of files may hold bytes that are no text
    content = content.encode("utf-8", "replace")
    return out.write(name, lambda file: file.write(content))


def _as_text(value):
    """A cell; before a text that a spreadsheet would run as a formula stands a '."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", r"\x00")  # which csv of Python 3.10 refuses
    is_formula = FORMULA.match(value) and not NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value
