"""From files to answers: classify clips by coding their subspaces: python -m examples.classify --data DIR

DIR holds class folders; a class folder holds clips, or folders of clips, which are then the clips' groups. A clip is a folder of
images, a video, or an .npy, .npz, .mat, .gif or .tif file. Clips that cannot be used are named at the end.

Instead of DIR, an .npz file of stacked sets: frames (total, height, width) or (total, d); offset (n_sets + 1,), set i is
frames[offset[i]:offset[i + 1]]; label (n_sets,); splits train0, test0, train1, ..., indices of sets; and if need be group (n_sets,).

In each split lambda, the neighbours, C and the kernel, linear or Gaussian, of kgSC and kgLC are chosen by cross-validation on the
training part alone. Where no group is in both parts of a split, none is in both parts of a cross-validation either. Prints one table
and writes into OUT:
  results.json     options, accuracy and choices of each method in each split, confusion matrices, clips that failed
  codes.npz        of the last split: codes of the test clips by method, names, labels, indices of both parts, learned atoms
  *.png            confusion matrices, Gram matrix, map of the clips, atoms, codes
  cache/           subspaces by content of the files: a second run starts at once
"""

import argparse
import importlib.metadata
import json
import sys
import time
import warnings
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np

try:
    from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.svm import SVC
    from threadpoolctl import threadpool_limits
except ImportError as error:
    sys.exit(f'the examples need scikit-learn ({error}): pip install "grassmann_sc_kit[sklearn]"')

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/classify.py

import grassmann_sc as core
from estimators import CodingClassifier, GrassmannDictionary
from kernels import gamma_grid, kernel_bases, kernel_gram, rbf
from examples.clips import (Recipe, build_all, find_clips, load_npz, say, split_at_random, split_by_file, split_by_group, write)

# Candidates: of those that do equally well in cross-validation, the one named first is taken.
LAM = [0.01, 0.03, 0.003, 0.1, 0.001, 0.3]  # in units of each query's lam_max
NEIGHBORS = [20, 10, 40, 5, 3]
C = [10, 1, 100, 0.1, 1000]
N_FOLDS = 5
PICTURED_ATOMS = 40

# reads names what the estimator is given: "sets" of rows, "subspaces" (n, d, p), the "gram" matrix of these, computed once for all
# candidates and folds, or "kernels", that one or those of Gaussian kernels. Parameters that the grid names are searched.
Method = namedtuple("Method", "name reads estimator grid")


# ---------------------------------------------------------------------------- methods and their evaluation


def methods(n_train, smallest, options):
    """What is compared, for n_train training sets and at least so many in the training part of a fold."""
    neighbors = list(dict.fromkeys(min(k, smallest) for k in options.neighbors))
    nearest = CodingClassifier("local", n_neighbors=1, rule="max", kernel="precomputed")  # the code is 1 on the nearest: no copy of X
    yield Method("nearest subspace", "gram", nearest, {})
    yield Method("gSC, labelled sets as atoms, residuals", "gram", CodingClassifier(lam_scale="max", kernel="precomputed"),
                 {"lam": options.lam})
    yield Method("gLC, labelled sets as atoms, residuals", "gram", CodingClassifier("local", kernel="precomputed"),
                 {"n_neighbors": neighbors})
    if options.kernels:
        yield Method("kgSC, labelled sets as atoms, residuals", "kernels", CodingClassifier(lam_scale="max", kernel="precomputed"),
                     {"lam": options.lam})
        yield Method("kgLC, labelled sets as atoms, residuals", "kernels", CodingClassifier("local", kernel="precomputed"),
                     {"n_neighbors": neighbors})
    yield Method("SVM on the projection kernel", "gram", SVC(kernel="precomputed"), {"C": options.C})
    n_atoms = min(options.atoms, smallest)
    if n_atoms:
        learning = dict(n_atoms=n_atoms, n_iter=options.iterations, rng=options.seed)
        yield Method("gSC, learned atoms, SVM", "subspaces",
                     make_pipeline(GrassmannDictionary(lam_scale="max", **learning), SVC(kernel="linear", C=10)),
                     {"grassmanndictionary__lam": options.lam[:3]})
        yield Method("gLC, learned atoms, SVM", "subspaces",
                     make_pipeline(GrassmannDictionary(coding="local", **learning), SVC(kernel="linear", C=10)),
                     {"grassmanndictionary__n_neighbors": list(dict.fromkeys(min(k, n_atoms) for k in neighbors))[:3]})


def folds(y, group, seed):
    """[(train, test), ...] for cross-validation on training sets with labels y, groups kept together if there are several."""
    n = max(2, min(N_FOLDS, np.unique(y, return_counts=True)[1].min()))
    if group is None or len(np.unique(group)) < 2:
        return list(StratifiedKFold(n, shuffle=True, random_state=seed).split(y, y))
    return list(StratifiedGroupKFold(min(n, len(np.unique(group)))).split(y, y, group))


def candidates(inputs, reads, train):
    """{name: input} from which a method chooses by cross-validation; "" names an input without alternatives."""
    if reads != "kernels":
        return {"": inputs[reads]}
    found = {"linear": inputs["gram"]}
    for gamma in gamma_grid([inputs["sets"][i] for i in train]):
        kernel = rbf(float(gamma))
        if kernel not in inputs:  # splits share them
            try:
                bases = kernel_bases(inputs["sets"], kernel, inputs["subspaces"].shape[2])
                inputs[kernel] = kernel_gram(inputs["sets"], bases, kernel=kernel)
            except ValueError as error:  # rank below p
                inputs[kernel] = None
                say(f"left out {kernel}: {error}")
        if inputs[kernel] is not None:
            found[f"gamma {gamma:.2g}"] = inputs[kernel]
    return found


def rows(array, reads, these, atoms):
    """The part of an input for the sets of these indices; rows of a Gram matrix against the atoms."""
    if reads == "sets":
        return [array[i] for i in these]
    return array[these] if reads == "subspaces" else array[np.ix_(these, atoms)]


def best(searches):
    """The name of the search that does best in cross-validation; the first, unless it is better by a standard error.

    The error of the mean of the differences between both on the same folds.
    """
    def accuracy(search):
        return np.array([search.cv_results_[f"split{i}_test_score"][search.best_index_] for i in range(search.n_splits_)])

    first, name = next(iter(searches)), max(searches, key=lambda name: searches[name].best_score_)
    gain = accuracy(searches[name]) - accuracy(searches[first])
    return name if gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)) else first


def evaluate(inputs, label, group, train, test, methods_of, options):
    """Of each method on a split: (method, its part in the split, predicted labels, what was chosen, seconds)."""
    cv = folds(label[train], None if group is None else group[train], options.seed)
    for method in methods_of(len(train), min(len(fold) for fold, _ in cv), options):
        start = time.perf_counter()
        arrays, searches = candidates(inputs, method.reads, train), {}
        for name, array in arrays.items():
            search = GridSearchCV(method.estimator, method.grid, cv=cv, error_score="raise")
            searches[name] = search.fit(rows(array, method.reads, train, train), label[train])
        name = best(searches)
        queries = rows(arrays[name], method.reads, test, train)
        predicted, seconds = searches[name].predict(queries), time.perf_counter() - start
        chosen = {key.rpartition("__")[2]: value for key, value in searches[name].best_params_.items()}
        yield method, (searches[name].best_estimator_, queries), predicted, {"kernel": name, **chosen} if name else chosen, seconds


def run_splits(collection, inputs, pairs, methods_of, options, report):
    """Evaluate all methods on all splits; report(results, last) after each, last being the split and its fitted methods.

    Returns {method: [{accuracy, seconds, chosen, predicted}, ...] of each split}.
    """
    group = collection.group
    mixed = [len(np.unique(group[train])) < 2 or np.isin(group[test], group[train]).any() for train, test in pairs if group is not None]
    group = None if any(mixed) else group
    core.gsc(collection.X[:2], collection.X[:2], 0.1)  # compile, so that the table shows the time of the methods
    core.glc(collection.X[:2], collection.X[:2], 1)
    results = {}
    for i, (train, test) in enumerate(pairs):
        fitted = []
        for method, part, predicted, chosen, seconds in evaluate(inputs, collection.label, group, train, test, methods_of, options):
            accuracy = 100 * np.mean(predicted == collection.label[test])
            results.setdefault(method.name, []).append(dict(accuracy=accuracy, seconds=seconds, chosen=chosen, predicted=predicted))
            fitted.append((method.name, *part))
            say(f"split {i + 1} of {len(pairs)}: {accuracy:5.1f}  {method.name}  {_told(chosen)}")
        report(results, (train, test, fitted))
    return results


def print_table(results):
    print(f"{'':42}{'accuracy in %':>15}{'s a split':>12}   most often chosen")
    for method, found in results.items():
        accuracy, seconds = ([split[key] for split in found] for key in ("accuracy", "seconds"))
        spread = f" ± {np.std(accuracy, ddof=1):4.1f}" if len(found) > 1 else ""
        chosen = Counter(_told(split["chosen"]) for split in found).most_common(1)[0][0]
        print(f"{method:42}{np.mean(accuracy):8.1f}{spread:7}{np.mean(seconds):12.3f}   {chosen}".rstrip())


def _told(chosen):
    return ", ".join(value if name == "kernel" else f"{name} {value:g}" for name, value in chosen.items())


# ---------------------------------------------------------------------------- what is left behind


def save_results(out, options, collection, pairs, results):
    """results.json, whole after each split; "splits_done" tells how far it went."""
    classes = np.unique(collection.label)
    methods = {}
    for name, found in results.items():
        truth = np.concatenate([collection.label[test] for _, (_, test) in zip(found, pairs)])
        predicted = np.concatenate([split["predicted"] for split in found])
        confusion = np.zeros((len(classes), len(classes)), int)
        np.add.at(confusion, (np.searchsorted(classes, truth), np.searchsorted(classes, predicted)), 1)
        accuracy = [split["accuracy"] for split in found]
        methods[name] = dict(mean=np.mean(accuracy), std=np.std(accuracy, ddof=1) if len(found) > 1 else None, accuracy=accuracy,
                             seconds=[split["seconds"] for split in found], chosen=[split["chosen"] for split in found],
                             confusion=confusion)
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "scipy", "numba", "scikit-learn")}
    content = dict(options=vars(options), versions=versions, n_sets=len(collection.label), subspaces=collection.X.shape[1:],
                   classes=classes, splits=len(pairs), splits_done=len(next(iter(results.values()))), methods=methods,
                   failed=collection.failed)
    text = json.dumps(content, indent=1, default=lambda value: value.tolist() if hasattr(value, "tolist") else str(value))
    write(out / "results.json", lambda file: file.write(text.encode()))


def save_codes(out, collection, last):
    """codes.npz of the last split; its arrays."""
    train, test, fitted = last
    arrays = dict(names=np.array(collection.names), label=collection.label, train=train, test=test)
    for name, estimator, queries in fitted:
        coder = _coder(estimator)
        if coder is not None and name != "nearest subspace":
            arrays["codes_" + slug(name)] = coder.transform(queries)
            if isinstance(estimator, Pipeline) and hasattr(estimator[-2], "components_"):
                arrays["atoms_" + slug(name)] = estimator[-2].components_
    write(out / "codes.npz", lambda file: np.savez_compressed(file, **arrays))
    return arrays


def _coder(estimator):
    """The part of a fitted estimator that gives codes, or None."""
    parts = (estimator, estimator[:-1]) if isinstance(estimator, Pipeline) else (estimator,)
    return next((part for part in parts if hasattr(part, "transform")), None)


def save_pictures(out, collection, inputs, pairs, results, arrays, frame_shape):
    """Confusion matrices over all splits, Gram matrix and map of all clips, codes and atoms of the last split."""
    import matplotlib
    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    import plots
    label, atom_label = collection.label, collection.label[arrays["train"]]

    def save(name, ax):
        write(out / f"{name}.png", lambda file: ax.figure.savefig(file, dpi=120, format="png"))
        plt.close(ax.figure)

    for name, found in results.items():
        truth = np.concatenate([label[test] for _, (_, test) in zip(found, pairs)])
        ax = plots.plot_confusion(truth.tolist(), np.concatenate([split["predicted"] for split in found]).tolist())
        ax.set_title(f"{name}: {np.mean([split['accuracy'] for split in found]):.1f} %", fontsize=10)
        save(f"confusion_{slug(name)}", ax)
    save("gram", plots.plot_gram(inputs["gram"], label.tolist()))
    save("map", plots.plot_map(inputs["gram"], label.tolist()))
    for key in [key for key in arrays if key.startswith("codes_")]:
        labelled = arrays[key].shape[1] == len(atom_label) and key.replace("codes", "atoms", 1) not in arrays
        save(key, plots.plot_codes(arrays[key], label[arrays["test"]].tolist(), atom_labels=atom_label.tolist() if labelled else None))
    if frame_shape is None:
        say("no picture of the atoms: they are made of features, not of pixels")
        return
    for key in [key for key in arrays if key.startswith("atoms_")]:
        save(key, plots.plot_atoms(arrays[key][:PICTURED_ATOMS], frame_shape))
    if not any(key.startswith("atoms_") for key in arrays):  # of the labelled sets, the first of each class
        first = [arrays["train"][np.flatnonzero(atom_label == c)[0]] for c in np.unique(atom_label)[:PICTURED_ATOMS]]
        save("atoms", plots.plot_atoms(collection.X[first], frame_shape, labels=label[first].tolist()))


def slug(name):
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


# ---------------------------------------------------------------------------- the command


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m examples.classify", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data", required=True, type=Path, metavar="DIR", help="the folder, or the .npz file, in the form above")
    add("--out", type=Path, default=Path("out"), metavar="OUT", help="where results go (default: %(default)s)")
    add("--no-pictures", action="store_true", help="write the numbers alone")
    add("--strict", action="store_true", help="stop at the first clip that cannot be used")
    add = parser.add_argument_group("frames").add_argument
    add("--size", type=int, nargs=2, metavar=("H", "W"), help="resize the frames (default: as they are; all must have one size)")
    add("--every", type=int, default=1, metavar="K", help="take every k-th frame")
    add("--at-most", type=int, metavar="N", help="take the first N of these")
    add("--evenly", type=int, metavar="N", help="take N frames at even steps over the clip")
    add("--resample", type=int, metavar="N", help="resample the frames to N, linearly in time")
    add("--run", type=int, metavar="N", help="cut each clip into sets of N frames")
    add("--features", default="raw", choices=["raw", "hog", "lbp", "lbp_top", "gei"], help="descriptor of a frame (default: its pixels)")
    add("--feature-options", type=json.loads, default={}, metavar="JSON", help='its options, as \'{"grid": [2, 2]}\'')
    add = parser.add_argument_group("subspaces").add_argument
    add("--p", type=int, default=3, help="their dimension; a clip needs p independent frames (default: %(default)s)")
    add("--center", action="store_true", help="remove the mean frame of each set first")
    add("--unit-variance", action="store_true", help="and divide each pixel by its standard deviation over the set")
    add("--stack", type=int, default=1, metavar="M", help="stack each frame with the M - 1 that follow it (block Hankel matrix)")
    add("--arma", type=int, default=0, metavar="M", help="ARMA model with p states, observability matrix of M blocks")
    add("--stabilize", action="store_true", help="scale unstable ARMA models back")
    add("--rank", default="raise", choices=["raise", "warn", "pad"], help="what to do with fewer than p independent frames")
    add("--single", action="store_true", help="single precision: half the memory")
    add = parser.add_argument_group("evaluation").add_argument
    add("--splits", type=Path, metavar="FILE.csv", help="splits: a line clip,NAME,NAME,... and a line a clip with train, test or nothing")
    add("--group-by", metavar="REGEX", help="take a clip's group from its file name, and leave one group out at a time")
    add("--repeats", type=int, default=10, help="random splits, if there are no others (default: %(default)s)")
    add("--train", type=float, default=0.5, metavar="SHARE", help="of each class in a random split (default: %(default)s)")
    add("--seed", type=int, default=0, help="for splits, folds and first atoms (default: %(default)s)")
    add = parser.add_argument_group("methods").add_argument
    add("--lam", type=float, nargs="+", default=LAM, help="candidates for gSC, in units of lam_max (default: %(default)s)")
    add("--neighbors", type=int, nargs="+", default=NEIGHBORS, help="candidates for gLC (default: %(default)s)")
    add("--C", type=float, nargs="+", default=C, help="candidates for the SVM (default: %(default)s)")
    add("--atoms", type=int, default=0, metavar="N", help="also learn dictionaries of N atoms (default: none)")
    add("--kernels", action=argparse.BooleanOptionalAction,
        help="kgSC and kgLC too, which keep all frames in memory (default: for an .npz file)")
    add("--iterations", type=int, default=3, help="of dictionary learning (default: %(default)s)")
    options = parser.parse_args(arguments)
    lowest = dict(p=1, lam=0, neighbors=1, C=0, every=1, at_most=1, evenly=1, resample=1, run=1, stack=1, arma=0, atoms=0,
                  iterations=0, seed=0, repeats=1)
    for name, low in lowest.items():
        for value in np.atleast_1d(np.array(getattr(options, name), float)):  # None becomes NaN: not given
            if getattr(options, name) is not None and not low <= value < np.inf:
                parser.error(f"--{name.replace('_', '-')} must be at least {low}, got {value:g}")
    if not 0 < options.train < 1:
        parser.error(f"--train must lie between 0 and 1, got {options.train:g}")
    if options.stack > 1 and options.arma:
        parser.error("--stack and --arma exclude each other")
    if options.at_most and options.evenly:
        parser.error("--at-most and --evenly exclude each other")
    return options


def recipe_of(options):
    chosen = {name: getattr(options, name) for name in Recipe.__dataclass_fields__}
    return Recipe(**{**chosen, "size": options.size and tuple(options.size)})


def choose_splits(options, collection):
    """[(train, test), ...] and how they came about."""
    if options.splits:
        return split_by_file(options.splits, collection.names), f"splits of {options.splits}"
    if collection.group is not None:
        return split_by_group(collection.label, collection.group), "one group left out at a time"
    return (split_at_random(collection.label, options.train, options.repeats, options.seed),
            f"random splits, {100 * options.train:g} % to train")


def run(options):
    """Read, build, evaluate, print the table, leave the results behind."""
    recipe, start, folder = recipe_of(options), time.perf_counter(), options.data.is_dir()
    if options.kernels is None:
        options.kernels = not folder
    clips, pairs = (find_clips(options.data, options.group_by), None) if folder else load_npz(options.data)
    collection = build_all(clips, recipe, options.out / "cache" if folder else None, options.kernels, options.strict or not folder)
    pairs, how = (pairs, f"splits of {options.data.name}") if pairs and not options.splits else choose_splits(options, collection)
    n, d, p = collection.X.shape
    seconds = time.perf_counter() - start
    say(f"{n} sets to {p}-dimensional subspaces of R^{d}: {seconds:.1f} s, {1000 * seconds / len(clips):.1f} ms a clip")
    inputs = {"sets": collection.sets, "subspaces": collection.X, "gram": core.projection_kernel(collection.X)}

    def report(results, last):
        save_results(options.out, options, collection, pairs, results)
        report.last = last

    results = run_splits(collection, inputs, pairs, methods, options, report)
    arrays = save_codes(options.out, collection, report.last)
    shape = (collection.frame[0] * d // int(np.prod(collection.frame)), collection.frame[1]) if len(collection.frame) == 2 else None
    if not options.no_pictures:
        save_pictures(options.out, collection, inputs, pairs, results, arrays, shape)
    print(f"{n} sets, {len(np.unique(collection.label))} classes, {p}-dimensional subspaces of R^{d}, {len(pairs)} splits: {how}")
    print_table(results)
    say(f"results, codes and pictures: {options.out}")
    if collection.failed:
        say(f"\n{len(collection.failed)} clips could not be used:\n  " + "\n  ".join(collection.failed))


def main(arguments=None):
    options = parse(arguments)
    warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")  # as in faces: legal, and SVC repeats it
    try:
        with threadpool_limits(1, user_api="blas"):  # the matrices are too small for BLAS' own threads
            run(options)
    except (OSError, ValueError, TypeError, ImportError) as error:
        sys.exit(f"examples.classify: {error}")
    except KeyboardInterrupt:
        sys.exit("examples.classify: stopped; the next run starts from the subspaces that were built")


if __name__ == "__main__":
    main()
