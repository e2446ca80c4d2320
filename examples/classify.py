"""From files to answers, by coding subspaces: python -m examples.classify --data DIR

DIR holds class folders; a class folder holds clips, or folders of clips, which are then the clips'
groups. A clip is a folder of images, a video, or an .npy, .npz, .mat, .gif or .tif file. Clips that
cannot be used are named at the end.

Instead of DIR, an .npz file of stacked sets: frames (total, height, width) or (total, d); offset
(n_sets + 1,), set i is frames[offset[i]:offset[i + 1]]; label (n_sets,); splits train0, test0,
train1, ..., indices of sets; and if need be group (n_sets,).

In each split lambda, the neighbours, C and the kernel, linear or Gaussian, of kgSC and kgLC are
chosen by cross-validation on the training part alone. Where no group is in both parts of a split,
none is in both parts of a cross-validation either. Prints one table and writes into OUT:
  results.json     options, accuracy and choices of each method in each split, confusion matrices,
                   clips that failed
  codes.npz        of the last split: codes of the test clips by method, names, labels, indices of
                   both parts, learned atoms
  *.png            confusion matrices, Gram matrix, map of the clips, atoms, codes
  cache/           subspaces by content of the files: a second run starts at once
"""

import argparse
import importlib.metadata
import json
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, namedtuple
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

try:
    from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.svm import SVC
except ImportError as error:
    sys.exit(f'the examples need scikit-learn ({error}): pip install "grassmann_sc_kit[sklearn]"')

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

import grassmann_sc as core
from examples.clips import (
    Recipe,
    build_all,
    find_clips,
    load_npz,
    say,
    split_at_random,
    split_by_file,
    split_by_group,
)
from grassmann_sc import estimators, files, kernels, plots

# Candidates: of those that do equally well in cross-validation, the one named first is taken.
LAM = [0.01, 0.03, 0.003, 0.1, 0.001, 0.3]  # in units of each query's lam_max
NEIGHBORS = [20, 10, 40, 5, 3]
C = [10, 1, 100, 0.1, 1000]
N_FOLDS = 5
PICTURED_ATOMS = 40

# reads names what the estimator is given: "sets" of rows, "subspaces" (n, d, p), the "gram" matrix
# of these, computed once for all candidates and folds, or "kernels", that one or those of Gaussian
# kernels. Parameters that the grid names are searched.
Method = namedtuple("Method", "name reads estimator grid")

# A method on a split: the fitted estimator and what it was given of the test part, the predicted
# labels (n_test,), what was chosen, and seconds; failed: why there is none of these, or None.
Outcome = namedtuple("Outcome", "method estimator queries predicted chosen seconds failed",
                     defaults=[None])


# ------------------------------------------------------------------ methods and their evaluation


def methods(n_train, smallest, options):
    """What is compared, for n_train training sets and at least so many in the training part of a
    fold."""
    neighbors = _at_most(smallest, options.neighbors)
    nearest = estimators.CodingClassifier("local", n_neighbors=1, rule="max", kernel="precomputed")
    sparse = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")
    local = estimators.CodingClassifier("local", kernel="precomputed")
    yield Method("nearest subspace", "gram", nearest, {})  # the code is 1 on the nearest atom
    yield Method("gSC, labelled sets as atoms, residuals", "gram", sparse, {"lam": options.lam})
    yield Method("gLC, labelled sets as atoms, residuals", "gram", local,
                 {"n_neighbors": neighbors})
    if options.kernels:
        yield Method("kgSC, labelled sets as atoms, residuals", "kernels", sparse,
                     {"lam": options.lam})
        yield Method("kgLC, labelled sets as atoms, residuals", "kernels", local,
                     {"n_neighbors": neighbors})
    yield Method("SVM on the projection kernel", "gram", SVC(kernel="precomputed"),
                 {"C": options.C})
    n_atoms = min(options.atoms, smallest)
    if n_atoms:
        learning = {"n_atoms": n_atoms, "n_iter": options.iterations, "rng": options.seed}
        sparse = estimators.GrassmannDictionary(lam_scale="max", **learning)
        local = estimators.GrassmannDictionary(coding="local", **learning)
        svm = SVC(kernel="linear", C=10)
        yield Method("gSC, learned atoms, SVM", "subspaces", make_pipeline(sparse, svm),
                     {"grassmanndictionary__lam": options.lam[:3]})
        yield Method("gLC, learned atoms, SVM", "subspaces", make_pipeline(local, svm),
                     {"grassmanndictionary__n_neighbors": _at_most(n_atoms, neighbors)[:3]})


def _at_most(limit, values):
    """The values, none above the limit and none twice."""
    return list(dict.fromkeys(min(value, limit) for value in values))


def folds(y, group, seed):
    """[(train, test), ...] for cross-validation on training sets with labels y, groups kept
    together if there are several."""
    counts = np.unique(y, return_counts=True)[1]
    if counts.max() < 2:
        raise ValueError("parameters are chosen by cross-validation, which needs two training sets "
                         "of a class: every class has one")
    n = max(2, min(N_FOLDS, counts.min()))
    if group is None or len(np.unique(group)) < 2:
        return list(StratifiedKFold(n, shuffle=True, random_state=seed).split(y, y))
    return list(StratifiedGroupKFold(min(n, len(np.unique(group)))).split(y, y, group))


def candidates(inputs, reads, train):
    """{name: input} from which a method chooses by cross-validation; "" names an input without
    alternatives."""
    if reads != "kernels":
        return {"": inputs[reads]}
    found = {"linear": inputs["gram"]}
    for gamma in kernels.gamma_grid([inputs["sets"][i] for i in train]):
        kernel = kernels.rbf(float(gamma))
        if kernel not in inputs:  # splits share them
            inputs[kernel] = _kernel_gram(inputs, kernel)
        if inputs[kernel] is not None:
            found[f"gamma {gamma:.2g}"] = inputs[kernel]
    return found


def _kernel_gram(inputs, kernel):
    """The Gram matrix of the sets in feature space, None if their rank is below p there."""
    p = inputs["subspaces"].shape[2]
    try:
        bases = kernels.kernel_bases(inputs["sets"], kernel, p)
        return kernels.kernel_gram(inputs["sets"], bases, kernel=kernel)
    except ValueError as error:
        say(f"left out {kernel}: {error}")
        return None


def rows(array, reads, these, atoms):
    """The part of an input for the sets of these indices; rows of a Gram matrix against the
    atoms."""
    if reads == "sets":
        return [array[i] for i in these]
    return array[these] if reads == "subspaces" else array[np.ix_(these, atoms)]


def best(searches):
    """The name of the search that does best in cross-validation; the first, unless it is better by
    a standard error.

    The error of the mean of the differences between both on the same folds.
    """
    first = next(iter(searches))
    name = max(searches, key=lambda name: searches[name].best_score_)
    gain = _fold_scores(searches[name]) - _fold_scores(searches[first])
    return name if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)) else first


def _fold_scores(search):
    """The accuracy of the best candidate on each fold."""
    scores = [search.cv_results_[f"split{i}_test_score"] for i in range(search.n_splits_)]
    return np.array(scores)[:, search.best_index_]


def evaluate(inputs, label, group, train, test, methods_of, options):
    """The Outcome of each method on a split; one that fails does not keep the others from it."""
    cv = folds(label[train], None if group is None else group[train], options.seed)
    smallest = min(len(fold) for fold, _ in cv)
    for method in methods_of(len(train), smallest, options):
        start = time.perf_counter()
        try:
            found = _search(method, inputs, label, train, test, cv)
        except Exception as error:
            why = str(error) or type(error).__name__
            yield Outcome(method, None, None, None, {}, time.perf_counter() - start, why)
        else:
            yield Outcome(method, *found, time.perf_counter() - start)


def _search(method, inputs, label, train, test, cv):
    """The fitted estimator of a method, its queries, their predicted labels, what was chosen."""
    arrays = candidates(inputs, method.reads, train)
    searches = {}
    for name, array in arrays.items():
        search = GridSearchCV(method.estimator, method.grid, cv=cv, error_score="raise")
        searches[name] = search.fit(rows(array, method.reads, train, train), label[train])
    name = best(searches)
    queries = rows(arrays[name], method.reads, test, train)
    predicted = searches[name].predict(queries)
    chosen = {"kernel": name} if name else {}
    for key, value in searches[name].best_params_.items():
        chosen[key.rpartition("__")[2]] = value
    return searches[name].best_estimator_, queries, predicted, chosen


def run_splits(collection, inputs, pairs, methods_of, options, report):
    """Evaluate all methods on all splits; report(results, last) after each method of each.

    last: the training and test part of the split, and [(name, estimator, queries), ...] of the
    methods fitted on it. Returns {method: [{accuracy, seconds, chosen, predicted, failed}, ...] of
    each split}; the accuracy of a method that failed is NaN, it predicted None.
    """
    label = collection.label
    group = None if _groups_are_mixed(collection.group, pairs) else collection.group
    few = collection.X[:2]  # compile, so that the table shows the time of the methods
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    results = {}
    for i, (train, test) in enumerate(pairs):
        fitted = []
        for outcome in evaluate(inputs, label, group, train, test, methods_of, options):
            name = outcome.method.name
            accuracy = np.nan
            if outcome.failed is None:
                accuracy = 100 * np.mean(outcome.predicted == label[test])
                fitted.append((name, outcome.estimator, outcome.queries))
            results.setdefault(name, []).append(
                {"accuracy": accuracy, "seconds": outcome.seconds, "chosen": outcome.chosen,
                 "predicted": outcome.predicted, "failed": outcome.failed})
            told = f"failed: {outcome.failed}" if outcome.failed else _told(outcome.chosen)
            say(f"split {i + 1} of {len(pairs)}: {accuracy:5.1f}  {name}  {told}")
            report(results, (train, test, fitted))
    return results


def successes(found):
    """The splits of a method on which it did not fail."""
    return [split for split in found if split["failed"] is None]


def _groups_are_mixed(group, pairs):
    """Is a group in both parts of a split, or all of a training part in one group?"""
    if group is None:
        return True
    return any(len(np.unique(group[train])) < 2 or np.isin(group[test], group[train]).any()
               for train, test in pairs)


def print_table(results):
    print(f"{'':42}{'accuracy in %':>15}{'s a split':>12}   most often chosen")
    for method, found in results.items():
        done = successes(found)
        if not done:
            print(f"{method:42}  failed: {found[0]['failed']}")
            continue
        accuracy = [split["accuracy"] for split in done]
        seconds = [split["seconds"] for split in done]
        spread = f" ± {np.std(accuracy, ddof=1):4.1f}" if len(done) > 1 else ""
        chosen = Counter(_told(split["chosen"]) for split in done).most_common(1)[0][0]
        if len(done) < len(found):
            chosen += f"   (failed in {len(found) - len(done)} of {len(found)} splits)"
        line = (f"{method:42}{np.mean(accuracy):8.1f}{spread:7}{np.mean(seconds):12.3f}   "
                f"{chosen}")
        print(line.rstrip())


def _told(chosen):
    return ", ".join(value if name == "kernel" else f"{name} {value:g}"
                     for name, value in chosen.items())


# -------------------------------------------------------------------------- what is left behind


def save_results(out, options, collection, pairs, results):
    """results.json, whole after each method; "splits_done" tells how far it went."""
    versions = {name: importlib.metadata.version(name)
                for name in ("numpy", "scipy", "numba", "scikit-learn")}
    content = {
        "options": vars(options),
        "versions": versions,
        "n_sets": len(collection.label),
        "subspaces": collection.X.shape[1:],
        "classes": np.unique(collection.label),
        "splits": len(pairs),
        "splits_done": min(len(found) for found in results.values()),
        "methods": {name: _summary(collection.label, pairs, found)
                    for name, found in results.items()},
        "failed": collection.failed,
    }
    text = json.dumps(content, indent=1, default=_plain)
    out.mkdir(parents=True, exist_ok=True)
    files.write_whole(out / "results.json", lambda file: file.write(text.encode()))


def _summary(label, pairs, found):
    """What results.json tells of a method."""
    classes = np.unique(label)
    truth, predicted = _all_answers(label, pairs, found)
    confusion = np.zeros((len(classes), len(classes)), int)
    np.add.at(confusion, (np.searchsorted(classes, truth), np.searchsorted(classes, predicted)), 1)
    accuracy = [split["accuracy"] for split in successes(found)]
    return {
        "mean": np.mean(accuracy) if accuracy else None,
        "std": np.std(accuracy, ddof=1) if len(accuracy) > 1 else None,
        "accuracy": [None if split["failed"] else split["accuracy"] for split in found],
        "failed": [split["failed"] for split in found],
        "seconds": [split["seconds"] for split in found],
        "chosen": [split["chosen"] for split in found],
        "confusion": confusion,
    }


def _all_answers(label, pairs, found):
    """True and predicted labels of the test parts of all splits on which a method succeeded."""
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


def save_codes(out, collection, last):
    """codes.npz of the last split; its arrays."""
    train, test, fitted = last
    arrays = {"names": np.array(collection.names), "label": collection.label, "train": train,
              "test": test}
    for name, estimator, queries in fitted:
        coder = _coder(estimator)
        if coder is not None and name != "nearest subspace":
            arrays["codes_" + slug(name)] = coder.transform(queries)
            if isinstance(estimator, Pipeline) and hasattr(estimator[-2], "components_"):
                arrays["atoms_" + slug(name)] = estimator[-2].components_
    files.write_whole(out / "codes.npz", lambda file: np.savez_compressed(file, **arrays))
    return arrays


def _coder(estimator):
    """The part of a fitted estimator that gives codes, or None."""
    parts = [estimator, estimator[:-1]] if isinstance(estimator, Pipeline) else [estimator]
    return next((part for part in parts if hasattr(part, "transform")), None)


def save_pictures(out, collection, inputs, pairs, results, arrays, frame_shape):
    """Confusion matrices over all splits, Gram matrix and map of all clips, codes and atoms of the
    last split."""
    matplotlib.use("agg")
    label = collection.label.tolist()
    for name, found in results.items():
        truth, predicted = _all_answers(collection.label, pairs, found)
        if not len(truth):
            continue
        accuracy = np.mean([split["accuracy"] for split in successes(found)])
        ax = plots.plot_confusion(truth.tolist(), predicted.tolist())
        ax.set_title(f"{name}: {accuracy:.1f} %", fontsize=10)
        _save_picture(out, f"confusion_{slug(name)}", ax)
    _save_picture(out, "gram", plots.plot_gram(inputs["gram"], label))
    _save_picture(out, "map", plots.plot_map(inputs["gram"], label))
    _save_pictures_of_codes(out, collection.label, arrays)
    if frame_shape is None:
        say("no picture of the atoms: they are made of features, not of pixels")
    else:
        _save_pictures_of_atoms(out, collection, arrays, frame_shape)


def _save_pictures_of_codes(out, label, arrays):
    samples = label[arrays["test"]].tolist()
    atoms = label[arrays["train"]].tolist()
    for key in [key for key in arrays if key.startswith("codes_")]:
        learned = key.replace("codes", "atoms", 1) in arrays
        labelled = not learned and arrays[key].shape[1] == len(atoms)
        ax = plots.plot_codes(arrays[key], samples, atom_labels=atoms if labelled else None)
        _save_picture(out, key, ax)


def _save_pictures_of_atoms(out, collection, arrays, frame_shape):
    """Learned atoms; where there are none, the first labelled set of each class."""
    learned = [key for key in arrays if key.startswith("atoms_")]
    for key in learned:
        _save_picture(out, key, plots.plot_atoms(arrays[key][:PICTURED_ATOMS], frame_shape))
    if not learned:
        train = arrays["train"]
        classes, first = np.unique(collection.label[train], return_index=True)
        sets = train[first[:PICTURED_ATOMS]]
        names = classes[:PICTURED_ATOMS].tolist()
        _save_picture(out, "atoms", plots.plot_atoms(collection.X[sets], frame_shape, labels=names))


def _save_picture(out, name, ax):
    files.write_whole(out / f"{name}.png",
                      lambda file: ax.figure.savefig(file, dpi=120, format="png"))
    plt.close(ax.figure)


def slug(name):
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


# ---------------------------------------------------------------------------------- the command


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m examples.classify", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="DIR",
        help="the folder, or the .npz file, in the form above")
    add("--out", type=Path, default=Path("out"), metavar="OUT",
        help="where results go (default: %(default)s)")
    add("--no-pictures", action="store_true", help="write the numbers alone")
    add("--strict", action="store_true", help="stop at the first clip that cannot be used")
    _add_frame_options(parser.add_argument_group("frames").add_argument)
    _add_subspace_options(parser.add_argument_group("subspaces").add_argument)
    _add_evaluation_options(parser.add_argument_group("evaluation").add_argument)
    _add_method_options(parser.add_argument_group("methods").add_argument)
    options = parser.parse_args(arguments)
    _check_options(parser, options)
    return options


def _add_frame_options(add):
    add("--size", type=int, nargs=2, metavar=("H", "W"),
        help="resize the frames (default: as they are; all must have one size)")
    add("--every", type=int, default=1, metavar="K", help="take every k-th frame")
    add("--at-most", type=int, metavar="N", help="take the first N of these")
    add("--evenly", type=int, metavar="N", help="take N frames at even steps over the clip")
    add("--resample", type=int, metavar="N", help="resample the frames to N, linearly in time")
    add("--run", type=int, metavar="N", help="cut each clip into sets of N frames")
    add("--features", default="raw", choices=["raw", "hog", "lbp", "lbp_top", "gei"],
        help="descriptor of a frame (default: its pixels)")
    add("--feature-options", type=json.loads, default={}, metavar="JSON",
        help='its options, as \'{"grid": [2, 2]}\'')


def _add_subspace_options(add):
    add("--p", type=int, default=3,
        help="their dimension; a clip needs p independent frames (default: %(default)s)")
    add("--center", action="store_true", help="remove the mean frame of each set first")
    add("--unit-variance", action="store_true",
        help="and divide each pixel by its standard deviation over the set")
    add("--stack", type=int, default=1, metavar="M",
        help="stack each frame with the M - 1 that follow it (block Hankel matrix)")
    add("--arma", type=int, default=0, metavar="M",
        help="ARMA model with p states, observability matrix of M blocks")
    add("--stabilize", action="store_true", help="scale unstable ARMA models back")
    add("--rank", default="raise", choices=["raise", "warn", "pad"],
        help="what to do with fewer than p independent frames")
    add("--single", action="store_true", help="single precision: half the memory")


def _add_evaluation_options(add):
    add("--splits", type=Path, metavar="FILE.csv",
        help="splits: a line clip,NAME,NAME,... and a line a clip with train, test or nothing")
    add("--group-by", metavar="REGEX",
        help="take a clip's group from its file name, and leave one group out at a time")
    add("--repeats", type=int, default=10,
        help="random splits, if there are no others (default: %(default)s)")
    add("--train", type=float, default=0.5, metavar="SHARE",
        help="of each class in a random split (default: %(default)s)")
    add("--seed", type=int, default=0,
        help="for splits, folds and first atoms (default: %(default)s)")


def _add_method_options(add):
    add("--lam", type=float, nargs="+", default=LAM,
        help="candidates for gSC, in units of lam_max (default: %(default)s)")
    add("--neighbors", type=int, nargs="+", default=NEIGHBORS,
        help="candidates for gLC (default: %(default)s)")
    add("--C", type=float, nargs="+", default=C,
        help="candidates for the SVM (default: %(default)s)")
    add("--atoms", type=int, default=0, metavar="N",
        help="also learn dictionaries of N atoms (default: none)")
    add("--kernels", action=argparse.BooleanOptionalAction,
        help="kgSC and kgLC too, which keep all frames in memory (default: for an .npz file)")
    add("--iterations", type=int, default=3,
        help="of dictionary learning (default: %(default)s)")


LOWEST = {"p": 1, "lam": 0, "neighbors": 1, "C": 0, "every": 1, "at_most": 1, "evenly": 1,
          "resample": 1, "run": 1, "stack": 1, "arma": 0, "atoms": 0, "iterations": 0, "seed": 0,
          "repeats": 1}  # legal values of the options


def _check_options(parser, options):
    for name, low in LOWEST.items():
        given = getattr(options, name)
        for value in [] if given is None else np.atleast_1d(given):
            if not low <= value < np.inf:
                parser.error(f"--{name.replace('_', '-')} must be at least {low}, got {value:g}")
    if min(options.C) <= 0:
        parser.error(f"--C must be positive, got {min(options.C):g}")
    if options.group_by is not None:
        try:
            re.compile(options.group_by)
        except re.error as error:
            parser.error(f"--group-by must be a regular expression, got {options.group_by!r}: "
                         f"{error}")
    if not 0 < options.train < 1:
        parser.error(f"--train must lie between 0 and 1, got {options.train:g}")
    if options.stack > 1 and options.arma:
        parser.error("--stack and --arma exclude each other")
    if options.at_most and options.evenly:
        parser.error("--at-most and --evenly exclude each other")


def recipe_of(options):
    chosen = {name: getattr(options, name) for name in Recipe.__dataclass_fields__}
    chosen["size"] = options.size and tuple(options.size)
    return Recipe(**chosen)


def choose_splits(options, collection):
    """[(train, test), ...] and how they came about."""
    label = collection.label
    if options.splits:
        pairs = split_by_file(options.splits, collection.names)
        return pairs, f"splits of {options.splits}"
    if collection.group is not None:
        return split_by_group(label, collection.group), "one group left out at a time"
    pairs = split_at_random(label, options.train, options.repeats, options.seed)
    return pairs, f"random splits, {100 * options.train:g} % to train"


def read(options):
    """The Collection of all sets, the splits, and how they came about."""
    recipe = recipe_of(options)
    start = time.perf_counter()
    if options.data.is_dir():
        clips = find_clips(options.data, options.group_by)
        pairs = None
        cache = options.out / "cache"
    else:
        clips, pairs = load_npz(options.data)
        cache = None
    check_folder(options.out)
    strict = options.strict or cache is None
    collection = build_all(clips, recipe, cache, options.kernels, strict)
    if pairs and not options.splits:
        how = f"splits of {options.data.name}"
    else:
        pairs, how = choose_splits(options, collection)
    seconds = time.perf_counter() - start
    n, d, p = collection.X.shape
    say(f"{n} sets to {p}-dimensional subspaces of R^{d}: {seconds:.1f} s, "
        f"{1000 * seconds / len(clips):.1f} ms a clip")
    return collection, pairs, how


def run(options):
    """Read, build, evaluate, print the table, leave the results behind."""
    if options.kernels is None:
        options.kernels = not options.data.is_dir()
    collection, pairs, how = read(options)
    n, d, p = collection.X.shape
    inputs = {"sets": collection.sets, "subspaces": collection.X,
              "gram": core.projection_kernel(collection.X)}
    last = None

    def report(results, split):
        nonlocal last
        last = split
        save_results(options.out, options, collection, pairs, results)

    results = run_splits(collection, inputs, pairs, methods, options, report)
    arrays = save_codes(options.out, collection, last)
    if not options.no_pictures:
        shape = _picture_shape(collection.frame, d)
        save_pictures(options.out, collection, inputs, pairs, results, arrays, shape)
    n_classes = len(np.unique(collection.label))
    print(f"{n} sets, {n_classes} classes, {p}-dimensional subspaces of R^{d}, {len(pairs)} "
          f"splits: {how}")
    print_table(results)
    say(f"results, codes and pictures: {options.out}")
    say_failed(collection.failed)
    say_failed_methods(results)


def check_folder(out):
    """Make the folder of results, or say before any work is done that nothing can be left there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise ValueError(f"--out must be a folder that can be written to, got {out}: {error}"
                         ) from None


def say_failed_methods(results):
    """Name the methods that failed in a split, if there are any, and exit with status 1."""
    failed = {name: split["failed"] for name, found in results.items() for split in found
              if split["failed"]}
    if failed:
        sys.exit("\n".join(f"{name} failed: {why}" for name, why in failed.items()))


def _picture_shape(frame, d):
    """Height and width of a basis vector as a picture, the frames of a stack below each other."""
    if len(frame) != 2:
        return None
    height, width = frame
    return d // width, width


def say_failed(failed):
    if failed:
        say(f"\n{len(failed)} clips could not be used:\n  " + "\n  ".join(failed))


def main(arguments=None):
    options = parse(arguments)
    # as in faces: legal, and SVC repeats it
    warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
    try:
        run(options)
    except (OSError, ValueError, TypeError, ImportError) as error:
        sys.exit(f"examples.classify: {error}")
    except KeyboardInterrupt:
        sys.exit("examples.classify: stopped; the next run starts from the subspaces that were "
                 "built")


if __name__ == "__main__":
    main()
