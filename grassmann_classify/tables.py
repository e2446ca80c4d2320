"""What is said of a comparison: a conclusion, and tables for the terminal and the page."""

import csv
import re
from collections import Counter, namedtuple
from types import SimpleNamespace

import numpy as np

from grassmann_classify.baseline_rows import meaning
from grassmann_classify.evaluation import shares_of
from grassmann_classify.rows import FEWEST, front, within_chance
from grassmann_classify.words import (
    FORMULA,
    TERMS,
    UNLIKE,
    UNUSUAL,
    grouped,
    in_words,
    plural,
)
from grassmann_sc import shared

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+|inf|nan)(e[+-]?\d+)?", re.IGNORECASE)
COLUMNS = {"accuracy": "accuracy, %", "balanced": "balanced, %", "f1": "F1, %"}
NAMED = 3  # rows in a sentence
NOTED = 3  # notes on a row
WORST = 5  # classes on the terminal
MOST = 20  # lines of clips, or of stretches, there


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


class Table(
    namedtuple(
        "Table",
        "columns rows title notes numbers best",
        defaults=["", (), 0, None],
    )
):
    """Rows of cells below the names of columns, a title above and notes below them.

    numbers: how many of the last columns hold numbers; best: the place of the row in
    front, or None.
    """

    __slots__ = ()

    def filled(self, most=None):
        """[(its name and cells as texts, are they numbers?), ...] of columns not empty.

        Of the first `most` rows, None: all.
        """
        columns = [
            [*map(str, column)] for column in zip(self.columns, *self.rows[:most])
        ]
        first = len(columns) - self.numbers
        return [(c, k >= first) for k, c in enumerate(columns) if any(c[1:])]

    def text(self, most=None):
        """The table in lines for a terminal, of its rows the first `most`, None: all."""
        columns = []
        for cells, are_numbers in self.filled(most):
            width = max(map(len, cells))
            mark = ">" if are_numbers else "<"
            columns.append([f"{cell:{mark}{width}}" for cell in cells])
        lines = ["  ".join(row).rstrip() for row in zip(*columns)]
        return "\n".join([*[self.title] * bool(self.title), *lines, *self.notes])


def counts_of(rows, what):
    """How many rows of a Table of clips, or of others, have each answer, in words."""
    counts = Counter(row[1] for row in rows)
    labels = sorted(counts, key=lambda c: (c == UNLIKE, shared.natural_order(c)))
    each = ", ".join(f"{label} ({counts[label]})" for label in labels)
    return f"{plural(len(rows), what)}: {each}"


def words_of(table, what, unsure=()):
    """Lines on a Table of clips or stretches, whose second cells are the answers.

    A sentence of a single row, a line each of up to MOST; of more the counts, the rows
    that are unlike all classes, and the unsure ones.
    """
    columns = table.columns
    rows = table.rows
    if len(rows) == 1:
        parts = [
            cell if cell == UNUSUAL else f"{c} {cell}"
            for c, cell in zip(columns[2:], rows[0][2:])
            if cell
        ]
        return [f"{rows[0][0]}: {'; '.join([str(rows[0][1]), *parts])}"]
    if len(rows) <= MOST:
        return [table.text()] * bool(rows)
    unlike = [[name, *cells] for name, answer, *cells in rows if answer == UNLIKE]
    words = [counts_of(rows, what)]
    for head, some in (
        ([UNLIKE, *columns[2:]], unlike),
        (["unsure", *columns[1:]], unsure),
    ):
        more = [f"and {len(some) - MOST} more"] * (len(some) > MOST)
        part = Table(head, some, notes=more, numbers=table.numbers)
        words += [part.text(MOST)] * bool(some)
    return words


def accuracies(results, columns, comparison):
    """The Table of all rows: columns with their spread, and which are as good as the best.

    columns: of COLUMNS. What else there is to say of rows stands in notes_of.
    """
    rows = []
    names = [cell for column in columns for cell in (COLUMNS[column], "±")]
    for name, splits in results.items():
        done = successes(splits)
        cells = []
        for column in columns:
            shares = [split[column] for split in done]
            if column != "accuracy" and column in comparison.pooled.get(name, ()):
                shares = [comparison.pooled[name][column]]
            cells += [
                f"{np.mean(shares):.1f}" if done else "",
                f"{np.std(shares, ddof=1):.1f}" if len(shares) > 1 else "",
            ]
        behind = comparison.behind.get(name)
        seconds = np.mean([split["seconds"] for split in done or splits])
        cells += [
            "" if behind is None else f"{round(behind, 1) + 0.0:.1f}",
            "yes" if name in comparison.as_good else "",
            f"{seconds:.{2 if seconds < 10 else 0}f}",
        ]
        rows.append([name, *cells] if done else [name, "failed", *cells[1:-1], ""])
    spread = any(len(successes(splits)) > 1 for splits in results.values())
    notes = [
        *["±: standard deviation over splits"] * spread,
        *["as good: within chance of the best row"] * bool(comparison.as_good),
    ]
    return Table(
        ["row", *names, "behind, points", "as good", "seconds"],
        rows,
        notes=["; ".join(notes)] * bool(notes),
        numbers=len(names) + 3,
        best=[*results].index(comparison.first) if comparison.first else None,
    )


def conclusion(comparison, tested, thing):
    """What a comparison says, in at most three sentences.

    tested: the clips of all test parts; thing: what is counted, as "clip".
    """
    first = comparison.first
    if first is None:
        return ["No row has an answer for every test part."]
    n_clips = len(np.unique(tested))
    whole = plural(n_clips, f"test {thing}")
    if len(tested) > n_clips:
        whole = f"{len(tested)} answers on {whole}"
    if comparison.pooled:
        each = comparison.pooled[first]["accuracy"]
        whole = f"the {thing}s of a split in the mean, {each:.1f} % of {whole}"
    ahead = comparison.accuracy[first] - comparison.chance
    as_chance = ", which is as good" * bool(ahead <= comparison.difference)
    # of one class alone it is 100 and tells nothing
    chance = f" (chance: {comparison.chance:.0f} %{as_chance})"
    chance *= bool(comparison.chance < 100)
    lines = [
        f"{first} is right for {comparison.accuracy[first]:.1f} % of {whole}{chance}."
    ]
    others = [name for name in comparison.accuracy if name != first]
    if not others:
        return lines
    good = [name for name in comparison.as_good if name != first]
    worse = [name for name in others if name not in good]
    units = plural(comparison.n_units, comparison.unit)
    if comparison.n_units < FEWEST:
        return [*lines, f"With {units} no difference of rows can be told from chance."]
    if not good:
        lines.append("No other row is as good within chance.")
    elif len(good) <= NAMED or not worse:
        words = in_a_row(good) if len(good) <= NAMED else "all other rows"
        lines.append(f"As good within chance: {words}.")
    else:
        but = f" but {in_a_row(worse)}" if len(worse) <= NAMED else ""
        words = (
            "all rows" if but else f"{len(good)} of {plural(len(others), 'other row')}"
        )
        lines.append(f"As good within chance: {words}{but}.")
    if comparison.difference:
        lines.append(
            f"With {units} differences of these rows up to {comparison.difference:.1f} "
            "points cannot be told from chance."
        )
    return lines


def in_a_row(names):
    """The names in one text.

    >>> in_a_row(["gSC"]), in_a_row(["gSC", "gLC", "MSM"])
    ('gSC', 'gSC, gLC and MSM')
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def each_class(truth, predicted, most=None):
    """The Table of the classes of n answers: how many are right, and what others are.

    most: of the classes with wrong answers so many, the worst first; None: all.
    """
    rows = []
    for c in natural_classes(truth):
        answers = Counter(predicted[truth == c].tolist())
        n = answers.total()
        share = 100 * answers.pop(c, 0) / n
        taken = ""
        if answers:
            ((other, count),) = answers.most_common(1)
            taken = f"{other} ({percent(100 * count / n)} %)"
        rows.append((share, [c, taken, n, percent(share)]))
    if most is not None:
        wrong = [row for row in rows if row[0] < 100]
        rows = sorted(wrong, key=lambda row: row[0])[:most]
    return Table(
        ["class", "taken most for", "answers", "right, %"],
        [row for _, row in rows],
        numbers=2,
    )


def percent(share):
    """A share in % as a whole number; of neither none nor all it says so.

    >>> percent(100.0), percent(99.7), percent(66.6), percent(0.2)
    ('100', '> 99', '67', '< 1')
    """
    if 99.5 <= share < 100:
        return "> 99"
    return "< 1" if 0 < share <= 0.5 else f"{share:.0f}"


def each_group(right, group):
    """The Table of the groups of n answers: how many are right (n,)."""
    rows = [
        [g, np.sum(group == g), percent(100 * np.mean(right[group == g]))]
        for g in natural_classes(group)
    ]
    return Table(["group", "answers", "right, %"], rows, numbers=2)


def meanings(results):
    """The Table of what each row does."""
    return Table(["row", "what it does"], [[name, meaning(name)] for name in results])


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
    rows_of = grouped(
        (tuple(first["summed"]), name)
        for name, (first, *_) in results.items()
        if first["summed"] and "candidates" in first["chosen"]
    )
    rows = []
    for pairs, names in rows_of.items():
        heads = [", ".join(names), *[""] * len(pairs)]
        rows += [[head, words, f"{a:.1f}"] for head, (words, a) in zip(heads, pairs)]
    return Table(
        ["rows", "candidates summed, first split", "in cross-validation, %"],
        rows,
        numbers=1,
    )


def notes_of(results):
    """What else there is to say of rows: failures, what was left out, warnings."""
    return [
        f"{name}: {line}" for name, splits in results.items() for line in _notes(splits)
    ]


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
    """Notes on a row: failures, then the most frequent of what was left out or warned."""
    if "look" in splits[0]:
        yield "of a first look, nothing searched"
    counts = Counter()
    for split in splits:
        counts.update([("failed", split["failed"])] * bool(split["failed"]))
        counts.update((f"{c} left out", why) for c, why in split["left_out"].items())
        counts.update(("warned", text) for text in split["warned"])
    failed_first = sorted(counts, key=lambda note: (note[0] != "failed", -counts[note]))
    for what, why in failed_first[:NOTED]:
        n = f" in {counts[what, why]} of {len(splits)} splits" * (len(splits) > 1)
        yield f"{what}{n}: {why}"
    if len(counts) > NOTED:
        yield plural(len(counts) - NOTED, "other note")


# first: the row in front, None if none has all splits; accuracy {row: in %, the mean of
# the splits}; behind {row: points behind the first, negative where it is ahead by
# chance}; as_good: the rows that are at most `difference` points behind the best, [] of
# fewer than FEWEST clips; chance: the accuracy in % of always answering the largest
# class; n_units: how many groups were compared, or clips where groups are few, as `unit`
# says; pooled {row: shares of all answers}: where test parts differ in size or classes,
# accuracy, and what a part without a class does not tell
Comparison = namedtuple(
    "Comparison",
    "first accuracy behind as_good difference chance n_units unit pooled",
    defaults=[None, {}, {}, [], None, 0.0, 0, "clip", {}],
)


def compared(results, pairs, collection):
    """The Comparison of the rows that succeeded on all splits, see within_chance.

    pairs: the splits that are done, of the sets of a Collection.
    """
    label = collection.label
    tested = np.concatenate([test for _, test in pairs])
    group = collection.group
    by_group = group is not None and len(np.unique(group[tested])) >= FEWEST
    unit = np.unique(group if by_group else collection.clip, return_inverse=True)[1]
    n_units = len(np.unique(unit[tested]))
    index = np.unique(label[tested], return_inverse=True)[1]
    sizes = [len(test) for _, test in pairs]
    # of each class in each test part
    parts = [
        np.bincount(part, minlength=index.max() + 1) / len(part)
        for part in np.split(index, np.cumsum(sizes[:-1]))
    ]
    shares = {}
    for name, splits in results.items():
        if len(successes(splits)) == len(pairs):
            # each split counts as much, whatever its size
            right = [
                (split["predicted"] == label[test]) / (len(test) * len(pairs))
                for split, (_, test) in zip(splits, pairs)
            ]
            shares[name] = np.bincount(unit[tested], np.concatenate(right))
    pooled = {}
    some_lack = not np.all(parts)
    for name in shares if some_lack or len({*sizes}) > 1 else []:
        own = shares_of(*all_answers(label, pairs, results[name]))
        pooled[name] = own if some_lack else {"accuracy": own["accuracy"]}
    about = Comparison(
        chance=100 * np.mean(parts, axis=0).max(),
        n_units=n_units,
        unit="group" if by_group else "clip",
        pooled=pooled,
    )
    if not shares:
        return about
    difference, as_good = within_chance(shares)
    first = front(shares)
    accuracy = {name: 100 * float(share.sum()) for name, share in shares.items()}
    return about._replace(
        first=first,
        accuracy=accuracy,
        behind={
            name: round(accuracy[first] - share, 9)
            for name, share in accuracy.items()
            if name != first
        },
        as_good=as_good if n_units >= FEWEST else [],
        difference=100 * difference,
    )


def write_rows(out, name, header, rows):
    """Write a CSV file into a results.Results; gives its path."""
    lines = []
    # the writer ends lines by \r\n, else \r in a cell would have no quotes
    writer = csv.writer(SimpleNamespace(write=lines.append))
    writer.writerows(map(_as_text, row) for row in [header, *rows])
    content = "".join(f"{line[:-2]}\n" for line in lines)
    # names of files may hold bytes that are no text
    return out.write(name, lambda file: file.write(content.encode("utf-8", "replace")))


def _as_text(value):
    """A cell; before a text that a spreadsheet would run as a formula stands a '."""
    if not isinstance(value, str):
        return value
    value = value.replace("\0", r"\x00")  # which csv of Python 3.10 refuses
    is_formula = FORMULA.match(value) and not NUMBER.fullmatch(value)
    return f"'{value}" if is_formula else value
