"""Classify the image sets or videos of a file by coding their subspaces: python -m examples.classify --data FILE.npz --p P

The file holds arrays, no pickled objects:
  frames   (total, height, width) or (total, d), the frames of all sets, stacked; bytes are divided by 255
  offset   (n_sets + 1,), set i is frames[offset[i]:offset[i + 1]]
  label    (n_sets,), the class of each set
  train0, test0, train1, test1, ...   the splits: indices of sets
Other arrays are ignored. All splits are run, one table is printed. Needs scikit-learn.
"""

import argparse
import re
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/classify.py

import grassmann_sc as core
import learn
from subspaces import from_sets

SVM_C = 10


def load(path):
    """Sets of frames, their labels (n_sets,) and the splits [(train, test), ...]; ValueError if the file does not fit together."""
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
            arrays = {key: data[key] for key in data.files if re.fullmatch(r"frames|offset|label|(train|test)\d+", key)}
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None
    frames, offset, label = arrays.pop("frames"), arrays.pop("offset"), arrays.pop("label")
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
    sets = [frames[start:end] for start, end in zip(offset, offset[1:])]
    return sets, label, splits(arrays, label)


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


def predictions(D, y, X, options):
    """(method, labels of X (n, d, p), seconds) from labelled sets D (N, d, p), y, method by method."""
    p, n_atoms = D.shape[2], dictionary_size(len(D), options)
    start = time.perf_counter()
    K_dd, K_xd = core.projection_kernel(D), core.projection_kernel(X, D)
    yield "nearest subspace", y[K_xd.argmax(axis=1)], time.perf_counter() - start

    start = time.perf_counter()
    codes = core.sparse_codes(K_dd, K_xd, options.lam, norm2=p)
    yield "gSC, labelled sets as atoms, residuals", core.classify(codes, K_dd, K_xd, y, norm2=p), time.perf_counter() - start

    start = time.perf_counter()
    codes = core.locality_codes(K_dd, K_xd, min(options.neighbors, len(D)), norm2=p)
    yield "gLC, labelled sets as atoms, residuals", core.classify(codes, K_dd, K_xd, y, norm2=p), time.perf_counter() - start
    if n_atoms == 0:
        return

    start = time.perf_counter()
    atoms, codes, _ = learn.gdl(D, n_atoms, options.lam, n_iter=options.iterations, rng=options.seed)
    svm = SVC(C=SVM_C, kernel="linear").fit(codes, y)
    yield "gSC, learned atoms, SVM", svm.predict(core.gsc(X, atoms, options.lam)), time.perf_counter() - start

    start = time.perf_counter()
    neighbors = min(options.neighbors, n_atoms)
    atoms, codes, _ = learn.gdl(D, n_atoms, n_neighbors=neighbors, n_iter=options.iterations, rng=options.seed)
    svm = SVC(C=SVM_C, kernel="linear").fit(codes, y)
    yield "gLC, learned atoms, SVM", svm.predict(core.glc(X, atoms, neighbors)), time.perf_counter() - start


def dictionary_size(n_train, options):
    return min(40, n_train // 2) if options.atoms is None else min(options.atoms, n_train)


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m examples.classify", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="FILE.npz", help="the file, in the form above")
    parser.add_argument("--p", required=True, type=int, help="dimension of the subspaces; a set needs p independent frames")
    parser.add_argument("--lam", type=float, default=0.1, help="the paper's lambda of gSC, twice scikit-learn's alpha (default: 0.1)")
    parser.add_argument("--neighbors", type=int, default=20, help="neighbours of gLC, or all atoms if they are fewer (default: 20)")
    parser.add_argument("--center", action="store_true", help="remove the mean frame of each set first")
    parser.add_argument("--atoms", type=int, metavar="N",
                        help="size of the learned dictionaries, 0 for none (default: half the training sets, at most 40)")
    parser.add_argument("--iterations", type=int, default=3, help="of dictionary learning (default: 3)")
    parser.add_argument("--seed", type=int, default=0, help="for the first atoms (default: 0)")
    options = parser.parse_args(arguments)
    for name, low in dict(p=1, lam=0, neighbors=1, atoms=0, iterations=0, seed=0).items():
        value = getattr(options, name)
        if value is not None and not low <= value < np.inf:
            parser.error(f"--{name} must be at least {low}, got {value}")
    return options


def run(options):
    """Print the table for parsed options."""
    sets, label, pairs = load(options.data)
    start = time.perf_counter()
    scale = 255 if sets[0].dtype == np.uint8 else 1
    X = from_sets([frames / scale for frames in sets] if scale > 1 else sets, options.p, center=options.center)
    say(f"{len(X)} sets to {options.p}-dimensional subspaces of R^{X.shape[1]}: {time.perf_counter() - start:.1f} s")
    core.gsc(X[:2], X[:2], options.lam), core.glc(X[:2], X[:2], 1)  # compile, so that the table shows the time of the methods
    scores = {}
    for i, (train, test) in enumerate(pairs):
        for method, predicted, seconds in predictions(X[train], label[train], X[test], options):
            scores.setdefault(method, []).append((100 * np.mean(predicted == label[test]), seconds))
        say(f"split {i + 1} of {len(pairs)}: " + ", ".join(f"{rows[-1][0]:.1f}" for rows in scores.values()))
    sizes = sorted({dictionary_size(len(train), options) for train, _ in pairs})
    print(f"{len(X)} sets, {len(np.unique(label))} classes, {options.p}-dimensional subspaces of R^{X.shape[1]}, splits: {len(pairs)}, "
          f"learned atoms: {' or '.join(map(str, sizes))}")
    print(f"{'':42}{'accuracy in %':>15}{'s a split':>12}")
    for method, rows in scores.items():
        accuracy, seconds = np.transpose(rows)
        spread = f" ± {accuracy.std(ddof=1):4.1f}" if len(rows) > 1 else ""
        print(f"{method:42}{accuracy.mean():8.1f}{spread:7}{seconds.mean():12.3f}")


def say(text):
    print(text, file=sys.stderr, flush=True)


def main(arguments=None):
    options = parse(arguments)
    try:
        with threadpool_limits(1, user_api="blas"):  # the matrices are too small for BLAS' own threads
            run(options)
    except (OSError, ValueError, TypeError) as error:
        sys.exit(f"examples.classify: {error}")


if __name__ == "__main__":
    main()
