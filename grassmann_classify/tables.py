"""The table of accuracies, what was chosen, and which differences are larger than chance."""

from collections import Counter, namedtuple

import numpy as np

from grassmann_classify.evaluation import successes
from grassmann_classify.rows import most_telling
from grassmann_classify.words import TERMS, in_words, meaning, plural, short, tell
from grassmann_sc import tuning

FEWEST_SPLITS = 5  # no p-values with fewer
COLUMNS = {"accuracy": "accuracy in %", "balanced": "balanced", "f1": "F1"}
SECONDS = "of one split, in the mean: to choose all settings, to learn, to answer"


def print_table(results, columns=("accuracy",), say=tell):
    """columns: of COLUMNS, in %, each with its standard deviation over the splits.

    say: what prints a line.
    """
    width = max(map(len, map(short, results))) + 1
    heads = "".join(f"{COLUMNS[column]:>15}" for column in columns)
    say(f"{'':{width}}{heads}{'seconds':>12}")
    for method, shares, seconds in _rows(results, columns):
        name = f"{short(method):{width}}"
        if shares is None:
            say(f"{name}  failed")
            continue
        done = successes(results[method])
        failures = _failures(done, results[method])
        say(f"{name}{''.join(shares)}{seconds:>12}{failures}".rstrip())


def _rows(results, columns):
    """(row, its shares in each column, its seconds), in words; None for rows that failed."""
    for method, found in results.items():
        done = successes(found)
        if not done:
            yield method, None, None
            continue
        shares = [_mean([split[column] for split in done]) for column in columns]
        yield method, shares, _digits(np.mean([split["seconds"] for split in done]))


def print_legend(results):
    """What each row of the table is, a line each, and the columns."""
    rows = [[short(name), meaning(name)] for name in results if meaning(name)]
    _print_pairs([*rows, ["seconds", SECONDS]])


def print_choices(results):
    """What each row chose most often, in words, and what these mean; notes on rows."""
    chosen = [[short(name), words] for name, words in choices(results).items() if words]
    if chosen:
        tell("Chosen most often, and in how many of the splits:")
        _print_pairs(chosen)
        tell("\n".join(f"  {line}" for line in terms_of(results)))


def print_notes(results):
    """What else there is to say of rows: what was left out, what to try, warnings."""
    for name, found in results.items():
        for note in _notes(successes(found)):
            tell(f"{short(name)}: {note}")


def _print_pairs(pairs):
    width = max(len(name) for name, _ in pairs)
    for name, words in pairs:
        tell(f"  {name:{width}}  {words}")


def report_table(report, results, columns, comparison):
    """The table in a report, with the rows' distance from the best, and what it means.

    Rows that failed, and notes on rows, stand below it.
    """
    p_values = comparison.p_values or {}
    header = ["row", *(COLUMNS[column] for column in columns), "behind"]
    header += ["p-value"] * bool(p_values) + ["seconds"]
    rows = []
    for method, shares, seconds in _rows(results, columns):
        if shares is None:
            rows.append([short(method), "failed", *[""] * (len(header) - 2)])
            continue
        behind = comparison.behind.get(method)
        row = [short(method), *(share.strip() for share in shares)]
        row.append("" if behind is None else f"{behind:.1f}")
        if p_values:
            row.append(f"{p_values[method]:.3f}" if method in p_values else "")
        rows.append([*row, seconds])
    best = [k for k, method in enumerate(results) if method == comparison.first]
    report.table(header, rows, best, range(1, len(header)))
    meanings = [[short(name), meaning(name)] for name in results if meaning(name)]
    report.table(["row", "what it does"], [*meanings, ["seconds", SECONDS]])


def report_choices(report, results):
    """What each row chose most often, in words, and what is to be said of rows."""
    chosen = choices(results)
    rows = []
    for name, found in results.items():
        notes = [chosen[name], *_notes(successes(found))]
        notes.append(_failures(successes(found), found).strip(" ()"))
        failed = dict.fromkeys(split["failed"] for split in found if split["failed"])
        notes += [f"failed: {why}" for why in failed]
        rows.append([short(name), "; ".join(filter(None, notes))])
    report.table(["row", "chosen most often"], rows)
    if terms_of(results):
        report.text("\n".join(terms_of(results)))


def choices(results):
    """{row: what it chose most often, in words, with the number of splits}."""
    return {name: _most_often(successes(found)) for name, found in results.items()}


def terms_of(results):
    """What the words of choices mean, a line each."""
    used = {
        name
        for found in results.values()
        for split in successes(found)
        for name, value in split["chosen"].items()
        if value is not None and value not in ("linear", "plain", "raw")
    }
    return [words for name, words in TERMS.items() if name in used]


def _failures(done, found):
    """In how many splits a row failed, if not in all; or that it is of a first look."""
    if "look" in found[0]:
        return "   (first look)"
    if not done or len(done) == len(found):
        return ""
    return f"   (failed in {len(found) - len(done)} of {len(found)} splits)"


def _digits(seconds):
    """A duration, in hundredths below ten seconds."""
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def _mean(shares):
    """The mean over the splits, and its spread."""
    spread = f" ± {np.std(shares, ddof=1):4.1f}" if len(shares) > 1 else ""
    return f"{np.mean(shares):8.1f}{spread:7}"


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
        numbers = [one for one in counts if type(one) in (int, float)]
        spread = 2 * count <= len(done) or name == "candidates"
        if spread and len(counts) == len(numbers) > 1:
            words.append(in_words(name, max(numbers), min(numbers)))
        elif value is not None:
            often = f" (in {count} of {len(done)})" if count < len(done) else ""
            words.append(in_words(name, value) + often)
    return ", ".join(words)


def _notes(done):
    """Notes on a row: candidates left out, and warnings."""
    left_out = Counter(name for split in done for name in split["left_out"])
    for name, count in left_out.items():
        why = next(
            split["left_out"][name] for split in done if name in split["left_out"]
        )
        yield f"{name} left out{_of_splits(count, done)}: {why}"
    warned = Counter(text for split in done for text in split["warned"])
    for text, count in warned.most_common(1):
        others = (
            f", and {plural(len(warned) - 1, 'other warning')}"
            if len(warned) > 1
            else ""
        )
        yield f"warned{_of_splits(count, done)}: {text}{others}"


def _of_splits(count, done):
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
        name: np.array([split["accuracy"] for split in found]) / 100
        for name, found in results.items()
        if len(successes(found)) == len(pairs)
    }
    # means of the same shares in another order differ by rounding
    mean = {name: round(float(found.mean()), 12) for name, found in share.items()}
    first = most_telling(share) if share else None
    behind = {
        name: share[first] - found for name, found in share.items() if name != first
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
    p_values = tuning.holm(
        [
            tuning.corrected_t_test(found, ratio, n_test=n_test)
            for found in behind.values()
        ]
    )
    test = (
        f"{_name_of_test(pairs)}; Holm's correction over {plural(len(behind), 'row')}"
    )
    return Comparison(first, points, dict(zip(behind, p_values.tolist())), test, None)


def print_comparison(results, pairs):
    """Print the p-values of the differences from the best method, or why not.

    A star marks p-values below 0.05.
    """
    found = compared(results, pairs)
    if found.p_values is None:
        if found.behind:
            tell(found.why)
        return
    tell(
        f"Behind {short(found.first)}, in points, and the p-value ({found.test}; * below "
        "0.05):"
    )
    width = max(map(len, map(short, found.behind)))
    for name, points in found.behind.items():
        p_value = found.p_values[name]
        star = " *" if p_value < 0.05 else ""
        tell(f"  {short(name):{width}}{points:7.1f}{p_value:8.3f}{star}")


def _name_of_test(pairs):
    """The name of the test that suits these splits into (train, test)."""
    tested = np.concatenate([test for _, test in pairs])
    if len(np.unique(tested)) == len(tested):
        return (
            f"paired t-test over {len(pairs)} parts left out in turn, its variance corrected "
            "for the training sets that they share"
        )
    return f"corrected resampled t-test over {len(pairs)} splits"
