"""Classify the image sets or videos of a file by coding their subspaces: python -m examples.classify --data FILE.npz --p P

The file holds arrays, no pickled objects:
  frames   (total, height, width) or (total, d), the frames of all sets, stacked
  offset   (n_sets + 1,), set i is frames[offset[i]:offset[i + 1]]
  label    (n_sets,), the class of each set
  train0, test0, train1, test1, ...   the splits: indices of sets
  group    (n_sets,), may be left out: the person of each set. If no person is in both parts of any split, none is in both
           parts of a cross-validation either.
Other arrays are ignored. In each split lambda, the neighbours, C and the kernel, linear or Gaussian, of kgSC and kgLC
are chosen by cross-validation on the training part alone.
All splits are run, one table is printed. Needs scikit-learn.
"""

import argparse
import re
import sys
import time
import warnings
import zipfile
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.interpolate import make_interp_spline
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/classify.py

import grassmann_sc as core
from estimators import CodingClassifier, GrassmannDictionary, NearestSubspace
from kernels import gamma_grid, kernel_bases, kernel_gram, rbf
from subspaces import from_sets

# Candidates: of those that do equally well in cross-validation, the one named first is taken.
LAM = [0.01, 0.03, 0.003, 0.1, 0.001, 0.3]  # in units of each query's lam_max
NEIGHBORS = [20, 10, 40, 5, 3]
C = [10, 1, 100, 0.1, 1000]
N_FOLDS = 5

# reads names what the estimator is given: "subspaces" (n, d, p), their "gram" matrix, computed
# once for all candidates and folds, or "kernels", that one and those of Gaussian kernels. Parameters that the grid names are searched.
Method = namedtuple("Method", "name reads estimator grid")


def load(path):
    """Sets of frames, their labels (n_sets,), groups (n_sets,) or None, and the splits [(train, test), ...].

    ValueError if the file does not fit together."""
    try:
        data = np.load(path, allow_pickle=False)
    except (ValueError, zipfile.BadZipFile, EOFError):
        data = None
    if not isinstance(data, np.lib.npyio.NpzFile):
        raise ValueError(f"{path} must be an .npz file, as np.savez writes it")
    with data:
        missing = [key for key in ("frames", "offset", "label", "train0", "test0") if key not in data.files]
        if missing:
            raise ValueError(f"{path} must hold the arrays {', '.join(missing)}; it holds {', '.join(data.files) or 'none'}")
        try:
            arrays = {key: data[key] for key in data.files if re.fullmatch(r"frames|offset|label|group|(train|test)\d+", key)}
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    frames, offset, label, group = (arrays.pop(key, None) for key in ("frames", "offset", "label", "group"))
    if frames.ndim not in (2, 3) or frames.dtype.kind not in "biuf":
        raise ValueError(f"frames must be real numbers (total, d) or (total, height, width), got {frames.dtype} {frames.shape}")
    if offset.ndim != 1 or len(offset) < 2 or offset.dtype.kind not in "iu":
        raise ValueError(f"offset must hold n_sets + 1 >= 2 integers, got {offset.dtype} {offset.shape}")
    falls = np.flatnonzero(offset[1:] <= offset[:-1])
    if len(falls):
        i = falls[0]
        raise ValueError(f"offset must rise, every set holding a frame, got {offset[i]} and {offset[i + 1]} for set {i}")
    if offset[0] != 0 or offset[-1] != len(frames):
        raise ValueError(f"offset must go from 0 to {len(frames)}, the number of frames, got {offset[0]} to {offset[-1]}")
    if label.shape != (len(offset) - 1,):
        raise ValueError(f"label must have length {len(offset) - 1}, one a set, got shape {label.shape}")
    if group is not None and group.shape != label.shape:
        raise ValueError(f"group must have length {len(label)}, one a set, got shape {group.shape}")
    sets = [frames[start:end] for start, end in zip(offset, offset[1:])]
    return sets, label, group, splits(arrays, label)


def splits(arrays, label):
    """[(train, test), ...] from the arrays train0, test0, ...: indices of sets, none on both sides."""
    pairs = []
    for i in range((len(arrays) + 1) // 2):
        pair = f"train{i}", f"test{i}"
        for key in pair:
            if key not in arrays:
                raise ValueError(f"the splits must be train0, test0, train1, test1, ...: {key} is missing among "
                                 f"{', '.join(sorted(arrays))}")
            index = arrays[key]
            if index.ndim != 1 or len(index) == 0 or index.dtype.kind not in "iu":
                raise ValueError(f"{key} must hold at least one index of a set, got {index.dtype} {index.shape}")
            if index.min() < 0 or index.max() >= len(label):
                raise ValueError(f"{key} must hold indices in 0..{len(label) - 1}, got {index.min()} to {index.max()}")
        both = np.intersect1d(arrays[pair[0]], arrays[pair[1]])
        if len(both):
            others = f" and {len(both) - 1} more" if len(both) > 1 else ""
            raise ValueError(f"{pair[0]} and {pair[1]} must not overlap, both hold set {both[0]}{others}")
        if len(np.unique(label[arrays[pair[0]]])) < 2:
            raise ValueError(f"{pair[0]} must hold sets of at least two classes, got one: {label[arrays[pair[0]][0]]}")
        pairs.append((arrays[pair[0]], arrays[pair[1]]))
    return pairs


def prepare(sets, options):
    """The sets as options ask: each resampled in time, then frames stacked with those that follow."""
    if options.resample:
        sets = [make_interp_spline(np.arange(len(frames)), frames.reshape(len(frames), -1), k=1)
                (np.linspace(0, len(frames) - 1, options.resample)) for frames in sets]
    if options.stack > 1:  # (n_frames, d, stack), as frames of length d * stack
        windows = [sliding_window_view(frames.reshape(len(frames), -1), options.stack, axis=0) for frames in sets]
        sets = [w.reshape(len(w), -1) for w in windows]
    return sets


def methods(n_train, smallest, options):
    """What is compared, for n_train training sets and at least so many in the training part of a fold."""
    neighbors = list(dict.fromkeys(min(k, smallest) for k in options.neighbors))
    yield Method("nearest subspace", "subspaces", NearestSubspace("projection"), {})
    yield Method("gSC, labelled sets as atoms, residuals", "gram", CodingClassifier(lam_scale="max", kernel="precomputed"),
                 {"lam": options.lam})
    yield Method("gLC, labelled sets as atoms, residuals", "gram", CodingClassifier("local", kernel="precomputed"),
                 {"n_neighbors": neighbors})
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
    """[(train, test), ...] for cross-validation on training sets with labels y, groups kept together if there are any."""
    n = max(2, min(N_FOLDS, np.unique(y, return_counts=True)[1].min()))
    if group is None:
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


def predictions(inputs, label, group, train, test, options):
    """(method, labels of the test sets, what was chosen, seconds), method by method."""
    cv = folds(label[train], None if group is None else group[train], options.seed)
    for method in methods(len(train), min(len(fold) for fold, _ in cv), options):
        start = time.perf_counter()
        arrays, searches = candidates(inputs, method.reads, train), {}
        for name, array in arrays.items():
            search = GridSearchCV(method.estimator, method.grid, cv=cv, error_score="raise")
            searches[name] = search.fit(rows(array, method.reads, train, train), label[train])
        name = best(searches)
        predicted = searches[name].predict(rows(arrays[name], method.reads, test, train))
        parameters = [f"{key.rpartition('__')[2]} {value:g}" for key, value in searches[name].best_params_.items()]
        yield method.name, predicted, ", ".join([name] * bool(name) + parameters), time.perf_counter() - start


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m examples.classify", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="FILE.npz", help="the file, in the form above")
    parser.add_argument("--p", required=True, type=int, help="dimension of the subspaces; a set needs p independent frames")
    parser.add_argument("--lam", type=float, nargs="+", default=LAM, help="candidates for gSC, by lam_max (default: %(default)s)")
    parser.add_argument("--neighbors", type=int, nargs="+", default=NEIGHBORS, help="candidates for gLC (default: %(default)s)")
    parser.add_argument("--C", type=float, nargs="+", default=C, help="candidates for the SVM (default: %(default)s)")
    parser.add_argument("--center", action="store_true", help="remove the mean frame of each set first")
    parser.add_argument("--resample", type=int, default=0, metavar="N", help="resample each set to N frames in time first")
    parser.add_argument("--stack", type=int, default=1, metavar="N", help="stack each frame with the N - 1 that follow it")
    parser.add_argument("--atoms", type=int, default=0, metavar="N", help="also learn dictionaries of N atoms (default: none)")
    parser.add_argument("--iterations", type=int, default=3, help="of dictionary learning (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="for folds and first atoms (default: 0)")
    options = parser.parse_args(arguments)
    for name, low in dict(p=1, lam=0, neighbors=1, C=0, resample=0, stack=1, atoms=0, iterations=0, seed=0).items():
        for value in np.atleast_1d(getattr(options, name)):
            if not low <= value < np.inf:
                parser.error(f"--{name} must be at least {low}, got {value}")
    return options


def run(options):
    """Print the table for parsed options."""
    sets, label, group, pairs = load(options.data)
    if group is not None:
        mixed = [len(np.unique(group[train])) < 2 or np.isin(group[test], group[train]).any() for train, test in pairs]
        group = None if any(mixed) else group
    start = time.perf_counter()
    sets = prepare(sets, options)
    X = from_sets(sets, options.p, center=options.center)
    if options.center:
        sets = [frames - frames.mean(axis=0) for frames in sets]
    inputs = {"sets": sets, "subspaces": X, "gram": core.projection_kernel(X)}
    say(f"{len(X)} sets to {options.p}-dimensional subspaces of R^{X.shape[1]}: {time.perf_counter() - start:.1f} s")
    core.gsc(X[:2], X[:2], 0.1), core.glc(X[:2], X[:2], 1)  # compile, so that the table shows the time of the methods
    scores = {}
    for i, (train, test) in enumerate(pairs):
        for method, predicted, chosen, seconds in predictions(inputs, label, group, train, test, options):
            scores.setdefault(method, []).append((100 * np.mean(predicted == label[test]), chosen, seconds))
            say(f"split {i + 1} of {len(pairs)}: {scores[method][-1][0]:5.1f}  {method}  {chosen}")
    print(f"{len(X)} sets, {len(np.unique(label))} classes, {options.p}-dimensional subspaces of R^{X.shape[1]}, splits: {len(pairs)}")
    print(f"{'':42}{'accuracy in %':>15}{'s a split':>12}   most often chosen")
    for method, found in scores.items():
        accuracy, chosen, seconds = zip(*found)
        spread = f" ± {np.std(accuracy, ddof=1):4.1f}" if len(found) > 1 else ""
        often = Counter(chosen).most_common(1)[0][0]
        print(f"{method:42}{np.mean(accuracy):8.1f}{spread:7}{np.mean(seconds):12.3f}   {often}".rstrip())


def say(text):
    print(text, file=sys.stderr, flush=True)


def main(arguments=None):
    options = parse(arguments)
    warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")  # legal
    try:
        with threadpool_limits(1, user_api="blas"):  # the matrices are too small for BLAS' own threads
            run(options)
    except (OSError, ValueError, TypeError) as error:
        sys.exit(f"examples.classify: {error}")


if __name__ == "__main__":
    main()
