"""From files to answers, by coding subspaces: python -m examples.classify --data DIR

Evaluates methods on labelled clips; with --predict NEW or --save MODEL.npz it learns
from all of them, by the method that is best in cross-validation, and answers clips
without labels.

DIR holds class folders; a class folder holds clips, or folders of clips, which are then
the clips' groups. With --labels, DIR holds clips at any depth. A clip is a video, an
.npy, .npz or .mat file, an image file of several frames (.gif, .tif, .webp), or a
folder of images of one frame each. Headers are read first: if clips would be lost
because frames differ in size, it stops and names the option that helps. Damaged clips
are named and left out.

Instead of DIR, an .npz file of stacked sets: frames (total, height, width) or (total,
d); offset (n_sets + 1,), set i is frames[offset[i]:offset[i + 1]]; label (n_sets,);
splits train0, test0, train1, ..., indices of sets; and if need be group (n_sets,).

In each split the recipe (descriptor, centring, stacking), lambda, the neighbours, C and
the kernel, linear or Gaussian, of kgSC and kgLC are chosen by cross-validation on the
training part alone. The first rows take no subspace: support vector machines on frames,
on their mean, and on mean and standard deviation. The sets of a clip
(--run) are on one side of a split, unless --splits names them one by one. Where no
group is in both parts of a split, folds of cross-validation keep groups together too,
and likewise clips. Two more rows are votes of all candidates, weighted by their
accuracy in cross-validation: those of the coding methods, and those of the nearest
subspaces and support vector machines (with --seconds, of what each row chose). Prints
one table and writes into OUT, in place of what the last run wrote there:
  results.json     options, accuracy and choices of each method in each split, confusion matrices,
                   p-values of the differences or why there are none, clips that failed
  predictions.csv  a line for each test clip and split: the truth, and the answer of each method;
                   with --predict a line for each new clip: label, a score for each class, or why
                   there is none
  codes.npz        of the last split: codes of the test clips by method, names, labels, indices of
                   both parts, learned atoms
  *.png            confusion matrices, the clips that the best method got wrong, Gram matrix, map
                   of the clips, atoms, codes
  suspects.csv     with --check: the labels, most suspect first, and what explains their clips
  clusters.csv     with --cluster: the cluster of each clip, and the clips nearest to it there
  copies.csv       with --check: clips that are there twice, or share half of their frames
  report.html      all of it on one page, to be shown to others
  files.txt        the names of all these, which the next run removes
  cache/           subspaces by content of the files: a second run starts at once
"""

import csv
import io
import json
import shlex
import sys
import tempfile
import time
import zipfile
from collections import Counter, namedtuple
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

if not __package__:  # runs as a file too
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.options import FORMATS, MOST_P, is_own, parsed
from examples.options import of_classify as parse

parsed(__name__, parse)

import matplotlib
import numpy as np

import grassmann_sc as core
from examples import answers
from examples.baselines import every_method
from examples.check import across, copies, explained, suspects_among
from examples.clips import (
    Recipe,
    build_all,
    find_clips,
    find_labelled,
    find_new_clips,
    load_new_npz,
    load_npz,
    look,
    look_at_new,
    one_line,
    pictures_of,
    printable,
    say,
    sets_of_clips,
    some,
    split_at_random,
    split_by_file,
    split_by_group,
    split_by_parts,
)
from examples.clusters import USUAL_P, clusters_of
from examples.comparison import (
    N_GAMMAS,
    check_classes,
    run_splits,
    slug,
    successes,
    told,
)
from examples.own import own
from examples.pictures import Results, caption, row_of, save_picture
from examples.recipes import FEW, MANY_FRAMES, base_of, recipes_of
from examples.report import Report, versions
from grassmann_sc import estimators, files, plots, tuning

FEWEST_SPLITS = 5  # no p-values with fewer
PICTURED_ATOMS = 40
PICTURED = 12  # clips of a sheet
TYPICAL = 6  # clips of a cluster in its sheet
PICTURES = {  # in a report, in this order before all others
    "answers": "New clips, and labelled clips that speak for their labels",
    "suspects": "Labels that may be wrong, and clips that speak against them",
    "clusters": "Clips of each cluster",
    "wrong": "Clips with wrong answers, and labelled clips that speak for these",
    "map": "All sets as points in the plane",
}
UNLIKE = "unlike all classes"
PRINTED = 12  # suspects and pairs of copies
PICTURED_P = 3  # of the Gram matrix and the map
CHOSEN = (
    "Everything that is chosen was chosen by cross-validation on the training part of each "
    "split. The last column tells what was chosen most often."
)
# sizes above which kernels are left out by default
MOST_ROWS = 2**30  # bytes of all rows
MOST_GRAMS = 2**31  # bytes of all Gram matrices
MOST_PRODUCTS = 1e13  # multiplications for these: some minutes


COLUMNS = {"accuracy": "accuracy in %", "balanced": "balanced", "f1": "F1"}


def print_table(results, columns=("accuracy",)):
    """columns: of COLUMNS, in %, each with its standard deviation over the splits."""
    width = max(map(len, results)) + 1
    heads = "".join(f"{COLUMNS[column]:>15}" for column in columns)
    print(f"{'':{width}}{heads}{'s a split':>12}   most often chosen")
    for method, found in results.items():
        done = successes(found)
        if not done:
            print(f"{method:{width}}  failed: {found[0]['failed']}")
            continue
        shares = "".join(_mean([split[column] for split in done]) for column in columns)
        seconds = [split["seconds"] for split in done]
        chosen = _most_often(done)
        if len(done) < len(found):
            chosen += f"   (failed in {len(found) - len(done)} of {len(found)} splits)"
        print(f"{method:{width}}{shares}{np.mean(seconds):12.3f}   {chosen}".rstrip())
        for note in _notes(done):
            print(f"    {note}")


def report_table(report, results, columns, comparison):
    """The table of print_table in a report, with the rows' distance from the best."""
    p_values = comparison.p_values or {}
    header = ["method", *(COLUMNS[column] for column in columns), "behind"]
    header += ["p-value"] * bool(p_values) + ["s a split", "most often chosen"]
    rows = []
    for method, found in results.items():
        done = successes(found)
        if not done:
            empty = [""] * (len(header) - 2)
            rows.append([method, *empty, f"failed: {found[0]['failed']}"])
            continue
        shares = [
            _mean([split[column] for split in done]).strip() for column in columns
        ]
        behind = comparison.behind.get(method)
        row = [method, *shares, "" if behind is None else f"{behind:.1f}"]
        if p_values:
            row.append(f"{p_values[method]:.3f}" if method in p_values else "")
        seconds = np.mean([split["seconds"] for split in done])
        notes = [_most_often(done), *_notes(done)]
        if len(done) < len(found):
            notes.append(f"failed in {len(found) - len(done)} of {len(found)} splits")
        rows.append([*row, f"{seconds:.3f}", "; ".join(filter(None, notes))])
    best = [k for k, method in enumerate(results) if method == comparison.first]
    report.table(header, rows, best, range(1, len(header) - 1))


def report_data(report, collection, clips):
    """What the sets are, and what was left out and why."""
    report.section("The data")
    n, d, _ = collection.X.shape
    counts = Counter(collection.label.tolist())
    classes = [f"{c} ({counts[c]})" for c in natural_classes(collection.label)]
    words = f"{some(n, 'set')} of {some(len(classes), 'class')}: {', '.join(classes)}."
    if len(collection.frame) == 2:
        words += f" Frames of {collection.frame[0]} x {collection.frame[1]} pixels."
    if collection.sets is not None:
        lengths = [len(rows) for rows in collection.sets]
        each = " to ".join(map(str, sorted({min(lengths), max(lengths)})))
        words += f" {sum(lengths)} frames, {each} in a set."
    if collection.group is not None:
        words += f" {some(len(np.unique(collection.group)), 'group')}."
    report.text(words)
    report_failed(report, collection.unread, len(clips))


def report_failed(report, unread, n_clips):
    if unread:
        report.text(f"{len(unread)} of {some(n_clips, 'clip')} could not be used:")
        report.table(["clip", "why"], [*unread.items()])


def save_report(report, out, slugs=None):
    """Add the pictures that the run has left, of methods those of the slugs; save it."""
    report.section("Pictures")
    left = {Path(name).stem: out.folder / name for name in sorted(out.names or ())}
    for stem in [*PICTURES, *(name for name in left if name not in PICTURES)]:
        path = left.get(stem)
        of_method = stem.startswith(("confusion_", "codes_", "atoms_"))
        chosen = slugs is None or any(stem.endswith(f"_{one}") for one in slugs)
        if (
            path is not None
            and path.exists()
            and path.suffix[1:] in FORMATS
            and (chosen or not of_method)
        ):
            report.picture(path, PICTURES.get(stem, stem.replace("_", " ")))
    report.save(out.folder / "report.html", out.write)


def _mean(shares):
    """The mean over the splits, and its spread."""
    spread = f" ± {np.std(shares, ddof=1):4.1f}" if len(shares) > 1 else ""
    return f"{np.mean(shares):8.1f}{spread:7}"


def columns_of(options, label):
    """The table's columns: balanced accuracy for uneven classes, F1 if asked for."""
    uneven = len(np.unique(np.unique(label, return_counts=True)[1])) > 1
    return ["accuracy", *["balanced"] * uneven, *["f1"] * options.f1]


def _most_often(done):
    """The most frequent value of each parameter, and in how many splits it was chosen."""
    words = []
    for name in dict.fromkeys(name for split in done for name in split["chosen"]):
        if name == "voters":
            numbers = sorted({split["chosen"][name] for split in done})
            words.append(
                " to ".join(
                    f"{number}" for number in numbers[:: max(1, len(numbers) - 1)]
                )
                + " voters"
            )
            continue
        counts = Counter(split["chosen"].get(name) for split in done)
        ((value, count),) = counts.most_common(1)
        if value is not None:
            often = f" in {count} of {len(done)}" if len(done) > 1 else ""
            words.append(told({name: value}) + often)
    return ", ".join(words)


def _notes(done):
    """Notes on a row: candidates left out, choices at the end of a grid, warnings.

    A choice at an end is noted if it was made in half of the splits or more.
    """
    left_out = Counter(name for split in done for name in split["left_out"])
    for name, count in left_out.items():
        why = next(
            split["left_out"][name] for split in done if name in split["left_out"]
        )
        yield f"{name} left out{_of_splits(count, done)}: {why}"
    for name, count in Counter(
        name for split in done for name in split["ends"]
    ).items():
        if 2 * count >= len(done):
            tries = Counter(
                split["ends"][name] for split in done if name in split["ends"]
            )
            ((option, _),) = tries.most_common(1)
            hint = f": try {option}" if option else ""
            yield f"{name} at the end of its grid{_of_splits(count, done)}{hint}"
    warned = Counter(text for split in done for text in split["warned"])
    for text, count in warned.most_common(1):
        others = (
            f", and {some(len(warned) - 1, 'other warning')}" if len(warned) > 1 else ""
        )
        yield f"warned{_of_splits(count, done)}: {text}{others}"


def _of_splits(count, done):
    return f" in {count} of {len(done)} splits" if len(done) > 1 else ""


# first: the name of the best row; behind: {row: points behind the first}; p_values: {row:
# p-value} or None; test: the name of the test; why: the reason if there are no p-values
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
    first = max(share, key=lambda name: share[name].mean(), default=None)
    behind = {
        name: share[first] - found for name, found in share.items() if name != first
    }
    points = {name: 100 * found.mean() for name, found in behind.items()}
    if not behind:
        return Comparison(
            first, points, None, None, "fewer than two methods have all splits"
        )
    if len(pairs) < FEWEST_SPLITS:
        why = (
            f"{some(len(pairs), 'split')}: too few splits to tell which differences are larger "
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
    test = f"{_name_of_test(pairs)}; Holm's correction over {some(len(behind), 'row')}"
    return Comparison(first, points, dict(zip(behind, p_values.tolist())), test, None)


def print_comparison(results, pairs):
    """Print the p-values of the differences from the best method, or why not.

    A star marks p-values below 0.05.
    """
    found = compared(results, pairs)
    if found.p_values is None:
        if found.behind:
            print(found.why)
        return
    print(
        f"Behind {found.first}, in points, and the p-value ({found.test}; * below 0.05):"
    )
    width = max(map(len, [found.first, *found.behind]))
    for name, points in found.behind.items():
        p_value = found.p_values[name]
        star = " *" if p_value < 0.05 else ""
        print(f"  {name:{width}}{points:7.1f}{p_value:8.3f}{star}")


def _name_of_test(pairs):
    """The name of the test that suits these splits into (train, test)."""
    tested = np.concatenate([test for _, test in pairs])
    if len(np.unique(tested)) == len(tested):
        return (
            f"paired t-test over {len(pairs)} parts left out in turn, its variance corrected "
            "for the training sets that they share"
        )
    return f"corrected resampled t-test over {len(pairs)} splits"


# ------------------------------------------------------------------ what is left behind


def save_results(out, asked, collection, pairs, results):
    """results.json, whole after each method; "splits_done" tells how far it went."""
    content = {
        "options": asked,
        "versions": versions(),
        "n_sets": len(collection.label),
        "subspaces": collection.X.shape[1:],
        "classes": natural_classes(collection.label),
        "splits": len(pairs),
        "splits_done": min(len(found) for found in results.values()),
        "methods": {
            name: _summary(collection.label, pairs, found)
            for name, found in results.items()
        },
        "comparison": compared(results, pairs)._asdict(),
        "failed": [*collection.unread.values()],
    }
    text = json.dumps(content, indent=1, default=_plain)
    out.write(out.folder / "results.json", lambda file: file.write(text.encode()))


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
    write_csv(out, "predictions.csv", ["clip", "split", "truth", *results], rows)


def write_csv(out, name, header, rows):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    content = text.getvalue().encode()
    out.write(out.folder / name, lambda file: file.write(content))


def _summary(label, pairs, found):
    """What results.json tells of a method."""
    place = {name: i for i, name in enumerate(natural_classes(label))}
    truth, predicted = _all_answers(label, pairs, found)
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


def natural_classes(label):
    """The classes, 2 before 10."""
    return sorted(np.unique(label).tolist(), key=core.natural_order)


def _all_answers(label, pairs, found):
    """True and predicted labels of all test parts on which a method succeeded."""
    truth = [label[:0]]
    predicted = [label[:0]]
    for split, (_, test) in zip(found, pairs):
        if split["failed"] is None:
            truth.append(label[test])
            predicted.append(split["predicted"])
    return np.concatenate(truth), np.concatenate(predicted)


def _plain(value):
    """NumPy's numbers and arrays, and paths, as JSON has them."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def save_codes(out, collection, done):
    """codes.npz of the last split, of which done is the Progress; its arrays."""
    arrays = {
        "names": np.array(collection.names),
        "label": collection.label,
        "train": done.train,
        "test": done.test,
    }
    for name, estimator, queries in done.fitted:
        coder = _coder(estimator)
        if coder is not None and not name.startswith("nearest subspace"):
            arrays["codes_" + slug(name)] = coder.transform(queries)
            if hasattr(coder, "steps"):
                arrays["atoms_" + slug(name)] = coder[-1].components_
    out.write(
        out.folder / "codes.npz", lambda file: np.savez_compressed(file, **arrays)
    )
    return arrays


def _coder(estimator):
    """The part of a fitted estimator that gives codes, or None.

    It is a Pipeline if the atoms were learned. Other transformers, as GGDA, give no
    codes.
    """
    if not hasattr(estimator, "steps"):
        return estimator if isinstance(estimator, estimators.CodingClassifier) else None
    learned = [i for i, step in enumerate(estimator) if hasattr(step, "components_")]
    return estimator[: learned[0] + 1] if learned else None


def save_pictures(out, options, collection, clips, inputs, pairs, results, arrays):
    """Draw confusion matrices, wrong clips, Gram matrix, map, codes and atoms.

    Codes and atoms are those of the last split. If one picture cannot be drawn, it says
    so and draws the others.
    """
    label = collection.label.tolist()
    data = printable(options.data.stem)
    save = partial(save_plot, out, options)
    for name, found in results.items():
        truth, predicted = _all_answers(collection.label, pairs, found)
        if not len(truth):
            continue
        accuracy = np.mean([split["accuracy"] for split in successes(found)])
        save(
            f"confusion_{slug(name)}",
            f"{name}\n{data}: {accuracy:.1f} %",
            plots.plot_confusion,
            truth.tolist(),
            predicted.tolist(),
            n_splits=len(successes(found)),
        )
    save_picture_of_wrong_clips(
        save, data, collection, clips, pairs, results, options.key
    )
    p = min(PICTURED_P, collection.X.shape[2])
    K = core.projection_kernel(collection.X[:, :, :p])
    save("gram", f"Projection kernel, p = {p}, {data}", plots.plot_gram, K, label)
    save("map", f"{len(K)} sets of {data}, p = {p}", plots.plot_map, K, label)
    how = {
        slug(name): f"{name}\n{data}, {told(successes(found)[-1]['chosen'])}".replace(
            "lam ", "λ / λ_max "
        )
        for name, found in results.items()
        if successes(found)
    }
    _save_pictures_of_codes(save, how, collection.label, arrays)
    if len(collection.frame) != 2:
        say("no picture of the atoms: they are made of features, not of pixels")
    else:
        _save_pictures_of_atoms(save, how, data, collection, arrays)


def save_plot(out, options, name, title, plot, *arrays, **choices):
    """Draw and save one picture; if it cannot be drawn, say so."""
    matplotlib.use("agg")
    try:
        ax = plot(*arrays, **choices)
        ax.set_title(title.replace("$", r"\$"), fontsize=10)
        save_picture(out.folder / name, ax, options, out.write)
    except Exception as error:
        why = " ".join(str(error).split())
        say(f"no picture {name}: {why or type(error).__name__}")


def save_picture_of_wrong_clips(save, data, collection, clips, pairs, results, key):
    """The clips that the best method got wrong, with what speaks for its answers.

    That is what a coding method with the same answer tells.
    """
    name, found = max(
        results.items(),
        key=lambda item: np.mean([one["accuracy"] for one in successes(item[1])] or -1),
    )
    wrong = {}
    for k, (split, (_, test)) in enumerate(zip(found, pairs)):
        answers_of = [] if split["failed"] else zip(test, split["predicted"])
        for place, (i, answer) in enumerate(answers_of):
            if answer != collection.label[i]:
                reasons = _reasons_for(answer, int(i), place, k, results)
                wrong.setdefault(int(i), []).append((answer, reasons))
    order = sorted(wrong, key=lambda i: -len(wrong[i]))[:PICTURED]
    shown = {i: _most_often_answered(wrong[i]) for i in order}
    involved = {*order, *(j for _, reasons in shown.values() for j, _ in reasons)}
    involved = sorted(involved)
    of_set = pictures_of(collection.names, collection.clip, clips, key, involved)
    images = dict(zip(involved, of_set))
    rows = []
    for i, (answer, reasons) in shown.items():
        words = f"{collection.label[i]}, not {answer}"
        words += f"\n{len(wrong[i])} times" if len(wrong[i]) > 1 else ""
        part = [
            (images[j], f"{answer} {share:.2g}\n{caption(collection.names[j], answer)}")
            for j, share in reasons
        ]
        if images[i] is not None:
            words = f"{words}\n{caption(collection.names[i], collection.label[i])}"
            rows.append(row_of(images[i], words, part))
    if rows:
        note = (
            "a clip with its class and the answer; labelled clips that speak for that"
        )
        n_wrong = sum(map(len, wrong.values()))
        n_asked = sum(len(test) for _, test in pairs[: len(found)])
        part = f"{len(rows)} of " if len(rows) < len(wrong) else ""
        title = (
            f"{name}, {data}\n{part}{some(len(wrong), 'clip')} with a wrong answer, "
            f"{n_wrong} of {some(n_asked, 'answer')}"
        )
        save("wrong", title, plots.plot_sheet, rows, note=note)


def _reasons_for(answer, i, place, k, results):
    """What a coding method tells that gave set i this wrong answer in split k."""
    for found in results.values():
        reasons = found[k]["reasons"]
        if reasons and i in reasons and found[k]["predicted"][place] == answer:
            return reasons[i]
    return []


def _most_often_answered(wrong):
    """The (answer, reasons) of the most frequent answer."""
    ((most, _),) = Counter(answer for answer, _ in wrong).most_common(1)
    return next(one for one in wrong if one[0] == most)


def _save_pictures_of_codes(save, how, label, arrays):
    """how: {slug of a method: title}."""
    samples = label[arrays["test"]].tolist()
    atoms = label[arrays["train"]].tolist()
    for key in [key for key in arrays if key.startswith("codes_")]:
        learned = key.replace("codes", "atoms", 1) in arrays
        labelled = not learned and arrays[key].shape[1] == len(atoms)
        save(
            key,
            how[key.removeprefix("codes_")],
            plots.plot_codes,
            arrays[key],
            samples,
            atom_labels=atoms if labelled else None,
        )


def _save_pictures_of_atoms(save, how, data, collection, arrays):
    """Draw the learned atoms, or the first labelled set of each class."""
    of_frames = {"n_blocks": collection.X.shape[1] // np.prod(collection.frame)}
    learned = [key for key in arrays if key.startswith("atoms_")]
    for key in learned:
        save(
            key,
            how[key.removeprefix("atoms_")],
            plots.plot_atoms,
            arrays[key][:PICTURED_ATOMS],
            collection.frame,
            **of_frames,
        )
    if not learned:
        train = arrays["train"]
        classes, first = np.unique(collection.label[train], return_index=True)
        sets = train[first[:PICTURED_ATOMS]]
        names = classes[:PICTURED_ATOMS].tolist()
        save(
            "atoms",
            f"A labelled set of each class, {data}",
            plots.plot_atoms,
            collection.X[sets],
            collection.frame,
            labels=names,
            **of_frames,
        )


# -------------------------------------------------------------------------- the command


def recipe_of(options):
    """The Recipe that options ask for; the first where they leave a choice."""
    chosen = {
        name: getattr(options, name, None) for name in Recipe.__dataclass_fields__
    }
    chosen["size"] = options.size and tuple(options.size)
    features = (options.features or ["raw"])[0]
    chosen["features"] = features
    chosen["source"] = own(features).source if is_own(features) else ""
    chosen["center"] = bool(options.center)
    chosen["stack"] = (options.stack or [1])[0]
    chosen["p"] = MOST_P if options.p is None else max(options.p)
    chosen["fewer"] = options.p is None or len(options.p) > 1
    return Recipe(**chosen)


def choose_splits(options, collection):
    """[(train, test), ...] and how they came about."""
    label = collection.label
    if options.splits:
        pairs = split_by_file(
            options.splits, collection.names, collection.clip, collection.unread
        )
        return pairs, f"splits of {printable(options.splits)}"
    if collection.group is not None:
        return split_by_group(label, collection.group), "one group left out at a time"
    pairs = split_at_random(
        label, options.train, options.repeats, options.seed, collection.clip
    )
    share = f"{100 * options.train:g} %"
    if options.train >= 1:
        share = f"{options.train:g} clips a class"
    return pairs, f"random splits, {share} to train"


def choice_of(options):
    """The features, center and stack to choose from, None for all; or no choice: None."""
    asked = [options.features, options.center, options.stack]
    if options.recipe == "plain" or options.arma or options.rank != "raise":
        asked = [asked[0] or ["raw"], bool(asked[1]), asked[2] or [1]]
    if options.resample:  # descriptors come before it, variants are made behind it
        asked[0] = asked[0] or ["raw"]
    if None not in asked and len(asked[0]) == len(asked[2]) == 1:
        return None
    if {"lbp_top", "gei"} & {*(asked[0] or [])}:  # no row a frame
        return None
    if options.resample and asked[0] != ["raw"]:
        return None
    features, center, stack = asked
    return features, center if center is None else [center], stack


def recipes_for(options, collection):
    """{name: Recipe} to choose from; None for the one by which the sets were read."""
    choice = choice_of(options)
    if choice is None:
        return None
    recipe = recipe_of(options)
    if collection.sets is None:
        why = (
            f"recipes are chosen on rows in memory, all frames take more than "
            f"{MOST_ROWS / 2**30:g} GiB"
        )
        if recipe != base_of(recipe):
            raise ValueError(
                f"{why}: --recipe plain chooses none, --kernels keeps them"
            )
        say(f"one recipe, raw frames: {why}; --kernels keeps them")
        return None
    shortest = min(map(len, collection.sets))
    found = recipes_of(recipe, collection.frame, shortest, *choice)
    if len(found) > 1:
        say(f"{some(len(found), 'recipe')} to choose from: {'; '.join(found)}")
    return found


def read(options):
    """The Collection of all sets, their clips, the splits, and how they came about."""
    recipe = recipe_of(options)
    if choice_of(options):
        recipe = base_of(recipe)
    start = time.perf_counter()
    pairs = parts = None
    if options.labels:
        clips, parts = find_labelled(options.data, options.labels)
        check_classes([clip.label for clip in clips], f"{options.labels}: ")
        cache = options.out / "cache"
    elif options.data.is_dir():
        clips = find_clips(options.data, options.group_by, options.run)
        cache = options.out / "cache"
    else:
        no_splits = options.predict or options.save or options.check
        clips, pairs = load_npz(options.data, options.key, not no_splits)
        cache = None
    strict = options.strict or cache is None and not options.skip
    most_rows = np.inf if options.kernels else MOST_ROWS
    keep_rows = (
        options.baselines
        or options.methods
        or options.kernels is not False
        or choice_of(options)
    )
    seen = look(clips, recipe, strict, options.skip)
    collection = build_all(
        clips, recipe, cache, keep_rows, strict, most_rows, seen=seen
    )
    seconds = time.perf_counter() - start
    n, d, p = collection.X.shape
    say(
        f"{some(n, 'set')} to {p}-dimensional subspaces of R^{d}: {seconds:.1f} s, "
        f"{1000 * seconds / len(clips):.1f} ms a clip"
    )
    if options.predict or options.save or options.check:
        return collection, clips, None, None
    if parts and not options.splits:
        pairs = split_by_parts(options.labels, parts, collection.names, collection.clip)
        how = f"split of {printable(options.labels.name)}"
    elif pairs and not options.splits:
        pairs = sets_of_clips(pairs, collection.clip)
        how = f"splits of {printable(options.data.name)}"
    else:
        pairs, how = choose_splits(options, collection)
    for train, _ in pairs:
        check_classes(collection.label[train], f"{how}: a training part: ")
    return collection, clips, pairs, how


def run(options):
    """Answer by a model that was kept, or read, build, and learn or evaluate."""
    check_folder(options.out)
    if options.kernel:
        own(options.kernel)  # an error in its name comes before anything long
    out = Results(options.out)
    model = options.model and answers.load(options.model, "--model")
    key = model.recipe.key if model else options.key
    new = options.predict and new_clips(options.predict, key)
    if options.save:
        check_folder(options.save.parent, "what --save lies in")
        files.check_writable(options.save, "--save")
    if options.cluster:
        name_clusters(out, options)
        return
    if options.add:
        model = with_more(options, model)
    if model:
        if new:
            answer(out, options, model, new)
        return
    collection, clips, pairs, how = read(options)
    recipe = recipe_of(options)
    recipes = recipes_for(options, collection)
    inputs = answers.inputs_for(collection, recipe, options, recipes)
    if options.kernels is None:
        why = too_large(collection.sets, max(map(len, inputs.p.values())))
        options.kernels = why is None
        if why:
            say(
                f"left out the rows in a kernel's space: {why}; --kernels asks for them"
            )
    if options.check:
        name_suspects(out, options, collection, clips, inputs)
    elif pairs is None:
        learn(out, options, collection, clips, inputs, new)
    else:
        compare(out, options, collection, clips, inputs, pairs, how)


def with_more(options, model):
    """The model that has learned the clips of --add too, kept if --save says where."""
    if options.labels:
        clips, _ = find_labelled(options.add, options.labels)
    else:
        clips = find_clips(options.add, fewest=1)
    look_at_new(clips, model.recipe, model.shape, options.strict)
    cache = options.out / "cache"
    collection = answers.build_new(model, clips, cache, options.strict)
    model = answers.added(model, collection, clips)
    say_failed(collection, {})
    n = len(collection.names)
    print(
        f"{some(n, 'clip')} more: {model.method}, {some(len(model.classes), 'class')}"
    )
    if options.save:
        answers.save(options.save, model)
        say(f"model: {options.save}")
    return model


def learn(out, options, collection, clips, inputs, new):
    """Learn from all sets, keep the model, answer new clips, as asked."""
    recipe = recipe_of(options)
    if new:
        shape = collection.X.shape[1], 1, collection.frame
        read_by = base_of(recipe) if choice_of(options) else recipe
        look_at_new(new, read_by, shape, options.strict)
    model = answers.learned(collection, inputs, recipe, options, clips)
    say_failed(collection, {})
    if model.left_out is not None and len(model.classes) > 2:
        noticed = model.estimator.noticed(options.coverage, left_out=model.left_out)
        say(
            f"one class left out at a time: {100 * noticed:.0f} % of its clips are called "
            f"unlike all others, and {100 * (1 - options.coverage):.3g} % of the other clips"
        )
    if options.save:
        answers.save(options.save, model)
        say(f"model: {options.save}")
    if new:
        answer(out, options, model, new)
    else:
        print(_described(model))


def _described(model):
    return (
        f"{model.method} ({model.chosen}): {100 * model.score:.1f} % right in cross-validation "
        "on the labelled sets"
    )


def answer(out, options, model, new):
    """predictions.csv of new clips, and how many have each label."""
    collection = answers.build_new(model, new, options.out / "cache", options.strict)
    found = answers.answer(model, collection)
    kind = answers.kinds_of_scores(model)
    header = [
        "clip",
        "label",
        *(f"{kind} {c}" for c in found.classes),
        "possible",
        "because",
        "method",
        "chosen",
        "failed",
    ]
    how = [model.method, model.chosen]
    possible = possible_classes(found, options.coverage)
    because = [] if found.because is None else found.because
    rows = [
        [name, label, *scores, words, why, *how, ""]
        for name, label, scores, words, why in zip(
            found.names, found.labels, found.scores.tolist(), possible, because
        )
    ]
    empty = [""] * (3 + len(found.classes))
    write_csv(
        out,
        "predictions.csv",
        header,
        rows + [[name, *empty, *how, why] for name, why in found.failed.items()],
    )
    print(_described(model))
    counts = Counter(found.labels.tolist())
    for label in sorted(counts, key=core.natural_order):
        print(f"  {label}: {some(counts[label], 'clip')}")
    n_unlike = possible.count(UNLIKE)
    if n_unlike:
        print(
            f"  {some(n_unlike, 'clip')} unlike all classes; of clips of these classes "
            f"{100 * (1 - options.coverage):.3g} % are called so too"
        )
    if not options.no_pictures:
        save_sheet_of_answers(out, options, model, new, collection, found, possible)
    report = report_on(options, "labels of new clips")
    report.section("The model")
    report.text(_described(model), f"Classes: {', '.join(map(str, model.classes))}.")
    report.section("Answers")
    report.table(
        ["clip", "label", "possible", "because"],
        [*zip(found.names, found.labels, possible, because)],
    )
    report_failed(report, found.failed, len(new))
    save_report(report, out)
    say(f"labels, scores and reasons: {out.folder / 'predictions.csv'}")
    say_failed(collection._replace(unread=found.failed), {})


def save_sheet_of_answers(out, options, model, new, collection, found, possible):
    """New clips, the least sure first, with what speaks for label and runner-up."""
    if model.pictures is None or not len(found.names):
        return
    scores = np.sort(found.scores, axis=1)
    order = np.argsort(scores[:, -1] - scores[:, -2], kind="stable")[:PICTURED]
    place = {name: i for i, name in enumerate(collection.names)}
    first = [place[found.names[i]] for i in order]
    key = model.recipe.key
    images = pictures_of(collection.names, collection.clip, new, key, first)

    def part(label, reasons):
        return [
            (
                model.pictures[j],
                f"{label} {share:.2g}\n{caption(model.names[j], label)}",
            )
            for j, share in reasons
        ]

    rows = []
    for i, image in zip(order, images):
        if image is None:
            continue
        own, other = found.reasons[i]
        words = f"{found.labels[i]}\n{caption(found.names[i])}"
        words += f"\n{UNLIKE}" * (possible[i] == UNLIKE)
        parts = part(found.labels[i], own), part(found.runner_up[i], other)
        rows.append(row_of(image, words, *parts))
    if not rows:
        return
    note = "a new clip; labelled clips that speak for its label, and for the runner-up"
    title = (
        f"{some(len(rows), 'new clip')} of {len(found.names)}, the least sure first\n"
        f"{model.method}"
    )
    save_plot(out, options, "answers", title, plots.plot_sheet, rows, note=note)


def name_suspects(out, options, collection, clips, inputs):
    """suspects.csv, copies.csv and a sheet of the first suspects."""
    found = copies(collection)
    names = collection.names
    label = collection.label
    rows = [[names[i], names[j], label[i], label[j], why] for i, j, why in found]
    write_csv(out, "copies.csv", ["clip", "copy", "label", "its label", "why"], rows)
    print(f"{some(len(found), 'pair')} of copies{':' if found else ''}")
    for one in found[:PRINTED]:
        print(f"  {names[one.i]} and {names[one.j]}: {one.why}")
    suspects = suspects_among(collection, inputs, options)
    because = [explained(suspects.names, reasons) for reasons in suspects.reasons]
    write_csv(
        out,
        "suspects.csv",
        ["clip", "label", "suspected", "suspicion", "because"],
        [
            [names[i], label[i], suspects.suspected[i], f"{suspects.suspicion[i]:.4g}"]
            + [because[i]]
            for i in suspects.order
            if suspects.suspicion[i] > -np.inf  # else no other could speak for it
        ],
    )
    n_worse = int((suspects.suspicion > 0).sum())
    print(
        f"{some(n_worse, 'label')} of {len(names)} for which less speaks than for another "
        f"class ({suspects.how}){':' if n_worse else ''}"
    )
    n_alone = int((suspects.suspicion == -np.inf).sum())
    if n_alone:
        print(
            f"{some(n_alone, 'label')} left out: no other set, or none of another group, "
            "has the same"
        )
    first = suspects.order[: min(n_worse, PRINTED)]
    for i in first:
        print(f"  {names[i]}: {suspects.suspected[i]}? It is explained by {because[i]}")
    if len(first) and not options.no_pictures:
        images = pictures_of(names, collection.clip, clips, options.key)
        rows = [
            row_of(
                images[i],
                f"{label[i]}; {suspects.suspected[i]}?\n{caption(names[i], label[i])}",
                [
                    (
                        images[j],
                        f"{label[j]} {share:.2g}\n{caption(names[j], label[j])}",
                    )
                    for j, share in suspects.reasons[i]
                ],
            )
            for i in first
            if images[i] is not None
        ]
        if rows:
            note = "a clip with its label and another class; clips that speak for that"
            title = "Labels that may be wrong, the most suspect first"
            save_plot(
                out, options, "suspects", title, plots.plot_sheet, rows, note=note
            )
    report = report_on(options, "labels that may be wrong, clips that are there twice")
    report_data(report, collection, clips)
    report.section("Labels that may be wrong")
    report.text(f"{some(n_worse, 'label')} of {len(names)}, by {suspects.how}.")
    report.table(
        ["clip", "label", "suspected", "because"],
        [
            (names[i], label[i], suspects.suspected[i], because[i])
            for i in suspects.order[:n_worse]
        ],
    )
    report.section("Copies")
    report.text("" if found else "None was found.")
    report.table(["clip", "copy", "label", "its label", "why"], rows)
    save_report(report, out)
    say(f"all suspects and copies: {out.folder}")
    say_failed(collection, {})


def name_clusters(out, options):
    """clusters.csv of clips without labels, a sheet of each cluster, and a map."""
    clips = new_clips(options.data, options.key)
    recipe = recipe_of(options)
    if options.p is None:
        recipe = replace(recipe, p=USUAL_P)
    strict = options.strict or (not options.data.is_dir() and not options.skip)
    seen = look(clips, recipe, strict, options.skip)
    collection = build_all(
        clips, recipe, options.out / "cache", strict=strict, seen=seen
    )
    names = collection.names
    if len(names) < max(2, options.cluster):
        raise ValueError(
            f"--cluster {options.cluster} needs {max(2, options.cluster)} sets, got "
            f"{len(names)}"
        )
    found = clusters_of(collection.X, options.cluster, options.seed)
    rows = [
        [name, number, explained(names, reasons), ""]
        for name, number, reasons in zip(names, found.number, found.reasons)
    ]
    rows += [[name, "", "", why] for name, why in collection.unread.items()]
    write_csv(out, "clusters.csv", ["clip", "cluster", "because", "failed"], rows)
    p = collection.X.shape[2]
    print(f"{some(len(names), 'set')} as subspaces of dimension {p}, in clusters of")
    print("  " + " + ".join(map(str, np.bincount(found.number)[1:])))
    if not options.no_pictures:
        title = f"{some(len(names), 'set')}, p = {p}"
        of_set = [f"cluster {k}" for k in found.number]
        save_plot(out, options, "map", title, plots.plot_map, found.K, of_set)
        save_sheet_of_clusters(out, options, clips, collection, found)
    report = report_on(options, "clusters of clips")
    report.section("Clusters")
    members = [(names[i], found.number[i]) for i in found.order]
    report.table(["clip", "cluster"], members)
    report_failed(report, collection.unread, len(clips))
    save_report(report, out)
    say(f"the cluster of each clip: {out.folder / 'clusters.csv'}")
    say_failed(collection, {})


def save_sheet_of_clusters(out, options, clips, collection, found):
    """The first clips of the largest clusters, a row each."""
    rows = []
    for k in range(1, min(options.cluster, PICTURED) + 1):
        members = [i for i in found.order if found.number[i] == k]
        first = members[:TYPICAL]
        names = [collection.names[i] for i in first]
        given = collection.names, collection.clip, clips, options.key
        images = pictures_of(*given, first)
        size = f"cluster {k}, {some(len(members), 'set')}\n"
        rows.append(
            [
                (image, f"{size if i == 0 else ''}{caption(name)}")
                for i, (image, name) in enumerate(zip(images, names))
                if image is not None
            ]
        )
    if any(rows):
        title = "In each cluster, what the others explain best"
        save_plot(out, options, "clusters", title, plots.plot_sheet, rows)


def possible_classes(found, coverage):
    """In words, the classes that each of the Answers can have at this coverage.

    "" of methods that do not code.
    """
    if found.p_values is None:
        return [""] * len(found.names)
    return [
        UNLIKE
        if known <= 1 - coverage
        else "; ".join(map(str, found.classes[p_values > 1 - coverage])) or "none"
        for p_values, known in zip(found.p_values, found.known)
    ]


def new_clips(path, key=None):
    """Those of a folder, a file of stacked sets, or one clip; key: as in read_frames."""
    if path.suffix == ".npz" and path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if "offset.npy" in archive.namelist():
                return load_new_npz(path, key)
    return find_new_clips(path)


def compare(out, options, collection, clips, inputs, pairs, how):
    """Evaluate the methods, print the table, leave the results behind."""
    n, d, _ = collection.X.shape
    recipes = {
        name: asdict(recipe) for name, recipe in inputs.recipes.items() if recipe
    }
    asked = vars(options) | {"recipes": recipes}
    copied = say_copies(collection, pairs)
    for done in run_splits(collection, inputs, pairs, every_method(inputs), options):
        save_results(out, asked, collection, pairs, done.results)
        save_predictions(out, collection, pairs, done.results)
    results = done.results
    n_classes = len(np.unique(collection.label))
    dimensions = ", ".join(map(str, inputs.p[inputs.names[0]]))
    spread = "; ± is over the splits" if len(pairs) > 1 else ""
    print(
        f"{some(n, 'set')}, {some(n_classes, 'class')}, subspaces of R^{d} of dimension "
        f"{dimensions}, {some(len(pairs), 'split')}: {how}{spread}"
    )
    print_table(results, columns_of(options, collection.label))
    print_comparison(results, pairs)
    arrays = save_codes(out, collection, done)
    if not options.no_pictures:
        save_pictures(out, options, collection, clips, inputs, pairs, results, arrays)
    report = report_on(options, "how well its classes are told apart")
    report_data(report, collection, clips)
    report.text(*copied)
    report.section("Accuracy")
    report.text(f"{some(len(pairs), 'split')}: {how}.")
    comparison = compared(results, pairs)
    report_table(report, results, columns_of(options, collection.label), comparison)
    why = comparison.why or f"p-values: {comparison.test}."
    report.text(why, CHOSEN, "Labels that may be wrong: --check names them.")
    save_report(report, out, [slug(comparison.first or "")])
    say(f"results, predictions, codes and pictures: {options.out}")
    say_failed(collection, results)


def say_copies(collection, pairs):
    """Warn of copies of which one trains and the other is tested; gives what is said."""
    found = across(copies(collection), pairs)
    if not found:
        return []
    one = found[0]
    text = (
        f"{some(len(found), 'pair')} of copies are in both parts of a split, which makes "
        f"accuracy too high, as {collection.names[one.i]} and "
        f"{collection.names[one.j]}; --check names them"
    )
    say(text)
    return [text]


def report_on(options, what):
    """The Report of a run, with what was asked."""
    path = options.data or options.predict or options.add
    return Report(f"{printable(Path(path).resolve().name)}: {what}", options.command)


def too_large(sets, n_dimensions):
    """Why the Gram matrices of Gaussian kernels are left out by default, or None."""
    if sets is None:
        return f"all frames take more than {MOST_ROWS / 2**30:g} GiB"
    size = 8 * len(sets) ** 2 * n_dimensions * N_GAMMAS
    if size > MOST_GRAMS:
        return f"Gram matrices of {len(sets)} sets take {size / 2**30:.1f} GiB"
    frames = sum(map(len, sets))
    few = frames
    if frames > MANY_FRAMES:
        few = sum(min(len(rows), FEW) for rows in sets)
    pairs = N_GAMMAS * few**2 + 2 * frames**2
    products = pairs / 2 * sets[0].shape[1]
    if products > MOST_PRODUCTS:
        return f"Gram matrices take {products:.1g} multiplications"
    return None


def check_folder(out, name="--out"):
    """Make the folder of results; ValueError if nothing can be written there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(
            f"{name} must be a folder that can be written to, got {out}: {error}"
        ) from None


def say_failed(collection, results):
    """Name the clips and methods that failed; exit with status 1 if any method did."""
    if collection.unread:
        say(
            f"\n{some(len(collection.unread), 'clip')} could not be used:\n  "
            + "\n  ".join(collection.unread.values())
        )
    failed = {
        name: split["failed"]
        for name, found in results.items()
        for split in found
        if split["failed"]
    }
    if failed:
        sys.exit("\n".join(f"{name} failed: {why}" for name, why in failed.items()))


def main(arguments=None, prog=None):
    options = parse(arguments, prog)
    asked = sys.argv[1:] if arguments is None else arguments
    options.command = shlex.join(
        [*(prog or "python -m examples.classify").split(), *asked]
    )
    with one_line(prog or "examples.classify"):
        run(options)


if __name__ == "__main__":
    main()
