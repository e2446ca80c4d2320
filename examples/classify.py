"""From files to answers, by coding subspaces: python -m examples.classify --data DIR

DIR holds class folders; a class folder holds clips, or folders of clips, which are then the clips'
groups. A clip is a folder of images, a video, or an .npy, .npz, .mat, .gif or .tif file. Clips that
cannot be used are named at the end.

Instead of DIR, an .npz file of stacked sets: frames (total, height, width) or (total, d); offset
(n_sets + 1,), set i is frames[offset[i]:offset[i + 1]]; label (n_sets,); splits train0, test0,
train1, ..., indices of sets; and if need be group (n_sets,).

In each split lambda, the neighbours, C and the kernel, linear or Gaussian, of kgSC and kgLC are
chosen by cross-validation on the training part alone. The sets of a clip (--run) are on one side
of a split, unless --splits names them one by one. Where no group is in both parts of a split, none
is in both parts of a cross-validation either, nor is a clip. In two more rows all candidates vote,
weighted by their accuracy in cross-validation: those of the coding methods, and those of the
nearest subspaces and support vector machines (with --seconds, what each row chose). Prints one
table and writes into OUT:
  results.json     options, accuracy and choices of each method in each split, confusion matrices,
                   clips that failed
  codes.npz        of the last split: codes of the test clips by method, names, labels, indices of
                   both parts, learned atoms
  *.png            confusion matrices, Gram matrix, map of the clips, atoms, codes;
                   pictures.txt names them, so that the next run removes them
  cache/           subspaces by content of the files: a second run starts at once
"""

import importlib.metadata
import itertools
import json
import math
import re
import sys
import tempfile
import time
import warnings
from collections import Counter, namedtuple
from pathlib import Path

if not __package__:  # runs as a file too
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from examples.options import of_classify as parse

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parse(sys.argv[1:])

import matplotlib
import numpy as np

try:
    from sklearn import config_context
    from sklearn.base import clone
    from sklearn.linear_model import RidgeClassifierCV
    from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
except ImportError as error:
    sys.exit(f'the examples need scikit-learn ({error}): pip install "grassmann_sc_kit[sklearn]"')

import grassmann_sc as core
from examples.baselines import baselines, video_baselines, videos_of
from examples.clips import (
    Recipe,
    build_all,
    clip_names,
    find_clips,
    load_npz,
    printable,
    say,
    sets_of_clips,
    split_at_random,
    split_by_file,
    split_by_group,
)
from examples.options import MOST_P
from examples.pictures import remove_pictures, save_picture
from grassmann_sc import estimators, files, kernels, plots, tuning

RIDGE = [0.1, 1, 10, 100, 1000]  # penalties of the ridge classifier on codes of unit variance
N_FOLDS = 5
MOST_REPEATS = 5
MANY = 600  # so many validated sets make one cross-validation sure enough; of fewer it is repeated
N_GAMMAS = 7
SOFT = 0.01  # of accuracy in cross-validation, by which a voter's weight falls to 1 / e
FEWEST_SPLITS = 5  # that tell methods apart
LIMITS = {"C": (0, np.inf), "lam": (0, 0.9), "n_neighbors": (1, np.inf), "reg": (0, np.inf),
          "p": (1, np.inf)}  # of parameters whose grid could go on
PICTURED_ATOMS = 40
PICTURED_P = 3  # of the Gram matrix and the map
MOST_ROWS = 2**30  # bytes of all rows up to which kernels are the default
MOST_GRAMS = 2**31  # and of Gram matrices
MOST_PRODUCTS = 1e13  # multiplications of all Gram matrices, some minutes, up to which they are

# reads names what is searched for the best input: "gram", the projection kernel of every p;
# "kernels", that and those of Gaussian kernels, or what a function gives, for predict of
# tuning.Search. "subspaces" (n, d, p), "sets" of rows or "videos" go to the estimator, whose grid
# is searched, the first of its parameters in order; p of "subspaces" is theirs.
Method = namedtuple("Method", "name reads estimator grid predict", defaults=[None])

# A method on a split: the fitted estimator and what it was given of the test part, the predicted
# labels (n_test,) and what was chosen; left_out: {candidate: why}; ends: {parameter: what to try}
# of the choices at the end of their grid; score: the share that is right in cross-validation;
# failed: why there is none of these, or None; seconds.
Outcome = namedtuple("Outcome", "method estimator queries predicted chosen left_out ends score "
                     "failed seconds", defaults=[None, None, None, {}, {}, {}, 0.0, None, 0.0])

# All inputs of the methods. gram (p_max, n, n): the projection kernel of each p; p: those that are
# searched; kernels: {gamma: (p, n, n) in its feature space}, as they are asked for.
# hulls: the same for the distances of examples.baselines. videos: clips (n_frames, height, width).
Inputs = namedtuple("Inputs", "sets subspaces gram p kernels hulls videos", defaults=[None])


def inputs_of(collection, dimensions=None):
    """The Inputs of a Collection; dimensions: the p to search, all that its subspaces hold."""
    gram = core.projection_kernel(collection.X, each_p=True)
    if dimensions is None:
        dimensions = tuning.dimensions(len(gram))
    some = [p for p in dimensions if p <= len(gram)]
    if not some:
        raise ValueError(f"--p must hold a dimension up to {len(gram)}, that of the smallest set; "
                         f"got {dimensions}")
    return Inputs(collection.sets, collection.X, gram, some, {}, {})


# ------------------------------------------------------------------ methods and their evaluation


PEERS = "vote of nearest subspaces and SVMs"
OURS = "vote of the coding methods"


def methods(n_train, smallest, options):
    """What is compared, for n_train training sets and at least so many in the training part of a
    fold."""
    sparse = tuning.sparse_predictions(options.lam)
    local = tuning.local_predictions(options.neighbors)
    support = svm_predictions(options.C)
    nearest = tuning.nearest_predictions
    svm = SVC(kernel="precomputed")
    one = estimators.CodingClassifier("local", n_neighbors=1, rule="max", kernel="precomputed")
    gsc = estimators.CodingClassifier(lam_scale="max", kernel="precomputed")
    glc = estimators.CodingClassifier("local", kernel="precomputed")
    yield Method("nearest subspace", "gram", one, {}, nearest)  # the code is 1 on the nearest atom
    yield Method("SVM on the projection kernel", "gram", svm, {}, support)
    if options.kernels:
        yield Method("nearest subspace in a kernel's space", "kernels", one, {}, nearest)
        yield Method("SVM on a kernel's Gram matrix", "kernels", svm, {}, support)
    yield Method("gSC, labelled sets as atoms", "gram", gsc, {}, sparse)
    yield Method("gLC, labelled sets as atoms", "gram", glc, {}, local)
    if options.kernels:
        yield Method("kgSC, labelled sets as atoms", "kernels", gsc, {}, sparse)
        yield Method("kgLC, labelled sets as atoms", "kernels", glc, {}, local)
    n_atoms = min(options.atoms, smallest)
    if n_atoms:
        learning = {"n_atoms": n_atoms, "max_iter": options.iterations,
                    "random_state": options.seed}
        sparse = estimators.GrassmannDictionary(lam_scale="max", **learning)
        local = estimators.GrassmannDictionary(coding="local", **learning)
        some = sorted({min(n_atoms, number) for number in options.neighbors})[:3]
        yield Method(f"gSC, {n_atoms} learned atoms, ridge", "subspaces", on_codes(sparse),
                     {"grassmanndictionary__lam": options.lam[2:6:2] or options.lam})
        yield Method(f"gLC, {n_atoms} learned atoms, ridge", "subspaces", on_codes(local),
                     {"grassmanndictionary__n_neighbors": some})


def on_codes(coder):
    """Codes, each feature divided by its standard deviation, to a ridge classifier."""
    return make_pipeline(coder, StandardScaler(), RidgeClassifierCV(RIDGE))


def svm_predictions(C):
    """predict for tuning.Search: labels by a support vector machine for each C."""

    def predict(K_dd, K_xd, y):
        found = {}
        bounded = True  # is a multiplier at its bound? if none is, a larger C changes nothing
        for c in sorted(C):
            if bounded:
                svm = SVC(kernel="precomputed", C=c)
                with config_context(assume_finite=True, skip_parameter_validation=True):
                    labels = svm.fit(K_dd, y).predict(K_xd)  # small: checks took a third
                bounded = np.abs(svm.dual_coef_).max() >= c
            found[("C", c),] = labels
        return found

    return predict


def folds(y, group, seed, repeats=1):
    """[(train, test), ...] for cross-validation on training sets with labels y, groups kept
    together if there are several."""
    counts = np.unique(y, return_counts=True)[1]
    if counts.max() < 2:
        raise ValueError("parameters are chosen by cross-validation, which needs two training sets "
                         "of a class: every class has one")
    n = max(2, min(N_FOLDS, counts.min()))
    found = []
    for repeat in range(repeats):
        if group is None or len(np.unique(group)) < 2:
            splitter = StratifiedKFold(n, shuffle=True, random_state=seed + repeat)
        else:
            splitter = StratifiedGroupKFold(min(n, len(np.unique(group))), shuffle=True,
                                            random_state=seed + repeat)
        found += [(fit, validate) for fit, validate in splitter.split(y, y, group)
                  if len(validate) and len(np.unique(y[fit])) > 1]
    return found


def evaluate(inputs, label, group, train, test, methods_of, options):
    """The Outcome of each method on a split; one that fails does not keep the others from it.

    At last those of two votes, of all candidates of the coding methods, and of the others on Gram
    matrices. No label of the test part goes any further than here.
    """
    label = label.copy()
    label[test] = label[train[0]]
    y = label[train]
    group = None if group is None else group[train]
    n_repeats = min(MOST_REPEATS, -(-MANY // len(train)))
    repeated = [(train[fit], train[validate])
                for fit, validate in folds(y, group, options.seed, n_repeats)]
    once = repeated[:len(repeated) // n_repeats]  # for estimators on sets: seconds a fit
    smallest = min(len(fit) for fit, _ in repeated)
    split = inputs, label, train, test, options
    searches = {}  # by predict, so that a method in a kernel's space knows what is known without
    done = []
    for method in methods_of(len(train), smallest, options):
        shared = method.predict or method.name
        if shared not in searches:
            how = (repeated, method.predict) if method.predict else (once, grid_predictions)
            searches[shared] = tuning.Search(label, *how)
        done.append(_attempt(method, search, searches[shared], _p_of(done, inputs), split))
        yield done[-1]
    for name, who in ((PEERS, r"nearest|SVM"), (OURS, r".*labelled sets as atoms")):
        voters = [outcome for outcome in done if outcome.failed is None
                  and re.match(who, outcome.method.name)]
        if voters:
            known = {outcome.method.predict: searches[outcome.method.predict]
                     for outcome in voters}
            pool = tuning.Pool(known.values())
            reads = dict.fromkeys(outcome.method.reads for outcome in voters)
            voting = Method(name, [*reads], None, {})
            if options.seconds is None:
                outcome = _attempt(voting, vote, pool, split)
            else:
                outcome = _attempt(voting, vote_of_rows, voters)
            seconds = sum(voter.seconds for voter in voters)
            yield outcome._replace(seconds=outcome.seconds + seconds)


def _attempt(method, run, *arguments):
    """The Outcome that run(method, *arguments) gives, and its seconds; if it fails, why."""
    start = time.perf_counter()
    try:
        outcome = run(method, *arguments)
    except Exception as error:
        outcome = Outcome(method, failed=str(error) or type(error).__name__)
    return outcome._replace(seconds=time.perf_counter() - start)


def vote(method, pool, split):
    """The Outcome of the candidates of one search over all of them, each with the weight
    exp((mean - best) / SOFT) of its mean share in that search."""
    inputs, label, train, test, options = split
    grams = {}
    for reads in method.reads:
        grams |= candidates(inputs, reads, train, options)
    shares = pool.choose(grams).shares
    mean = {candidate: np.nanmean(share) for candidate, share in shares.items()}
    labels = {}
    for gram in dict.fromkeys(gram for gram, _ in sorted(mean, key=mean.get, reverse=True)):
        K = grams[gram]
        try:
            answers = pool.predict(K[np.ix_(train, train)], K[np.ix_(test, train)], label[train])
        except ValueError as error:  # all of the training part, or a query, cannot have it
            pool.left_out[gram] = str(error)
            continue
        labels |= {(gram, parameters): found for parameters, found in answers.items()
                   if (gram, parameters) in mean}
    if not labels:
        raise ValueError(next(iter(pool.left_out.values())))
    return _voted(method, [(mean[candidate], labels[candidate]) for candidate in labels])


def vote_of_rows(method, rows):
    """The same of what rows chose and answered, where --seconds leave no time to ask others."""
    return _voted(method, [(row.score, row.predicted) for row in rows])


def _voted(method, voters):
    """The Outcome of voters (mean share, labels)."""
    voters = sorted(voters, key=lambda voter: -voter[0])
    weights = np.exp([(mean - voters[0][0]) / SOFT for mean, _ in voters])
    predicted = tuning.vote([labels for _, labels in voters], weights)
    return Outcome(method, None, None, predicted, {"voters": len(voters)})


def _p_of(done, inputs):
    """The p that gSC found best; without gSC, the largest."""
    return next((outcome.chosen["p"] for outcome in done
                 if outcome.failed is None and outcome.method.name.startswith("gSC")),
                inputs.p[-1])


def search(method, known, p, split):
    """The Outcome of the best candidate of a method that all parts of a split can have; known: the
    tuning.Search of its predict; p: of subspaces, if the grid has none."""
    inputs, label, train, test, options = split
    if method.predict is None:
        grams = _points_of_grid(method, inputs, p)
    else:
        grams = candidates(inputs, method.reads, train, options)
    while True:
        choice = known.choose(grams, seconds=options.seconds)
        try:
            K = grams[choice.gram]
            fitted = _fitted(method, choice, K[np.ix_(train, train)], K[np.ix_(test, train)],
                             label[train])
            break
        except ValueError as error:  # all of the training part, or a query, cannot have it
            known.left_out[choice.gram] = str(error)
    limits = LIMITS | {"n_neighbors": (1, len(train))}
    if options.p is None and len(inputs.gram) < MOST_P:
        limits["p"] = 1, len(inputs.gram)  # the rank of the smallest set
    shares = {(name, what): 0 if (name, 0) in known.right else np.inf  # given up, or never tried
              for name in grams for what in known.parameters}
    shares |= {candidate: np.nanmean(share) for candidate, share in choice.shares.items()}
    ends = _ends(method, choice, shares, limits, options)
    chosen = _point(method, choice.gram, choice.parameters)
    return Outcome(method, *fitted, chosen, _left_out(method, choice), ends, choice.score)


def _left_out(method, choice):
    """{what the candidates have in common that were left out for one reason: that reason}."""
    by_reason = {}
    for name, why in choice.left_out.items():
        by_reason.setdefault(why, []).append(_point(method, name))
    found = {}
    for why, points in by_reason.items():
        common = {name: value for name, value in points[0].items()
                  if all(point[name] == value for point in points)}
        found[_told(common) or f"{len(points)} candidates"] = why
    return found


def _fitted(method, choice, known, queries, y):
    """The fitted estimator, None if there is none, its queries and their predicted labels."""
    if method.predict is None:
        estimator, known = known
        _, queries = queries
    elif method.estimator is None:
        return None, queries, method.predict(known, queries, y)[choice.parameters]
    else:
        found = dict(choice.parameters)
        if "n_neighbors" in found:
            found["n_neighbors"] = min(found["n_neighbors"], len(known))
        estimator = clone(method.estimator).set_params(**found)
    estimator = clone(estimator).fit(known, y)
    return estimator, queries, estimator.predict(queries)


def _point(method, name, parameters=()):
    """{parameter: value} of a candidate: the (kernel, p) of its matrix and its parameters."""
    kernel, p = name
    if method.predict is None:
        return {key.rpartition("__")[2]: value for key, value in (p, *kernel)}
    if method.estimator is None:
        return {"kernel": f"{kernel} {p:g}"}
    return {"p": p, **({"kernel": kernel} if method.reads == "kernels" else {}), **dict(parameters)}


def _ends(method, choice, shares, limits, options):
    """{parameter: what to try} of those chosen at an end of their grid, within limits, and better
    there than beside it; "" where no option widens the grid. shares: {candidate: mean share}."""
    here = _point(method, choice.gram, choice.parameters)
    points = {candidate: _point(method, *candidate) for candidate in shares}
    found = {}
    for name in limits.keys() & here.keys():
        value = here[name]
        along = {point[name]: shares[candidate] for candidate, point in points.items()
                 if {**point, name: value} == here and point[name] is not None}
        values = sorted(along)
        if len(values) < 2 or value not in (values[0], values[-1]):
            continue
        beside = values[1] if value == values[0] else values[-2]
        beyond = np.clip(value**2 / beside if beside else 0, *limits[name])
        if name in ("p", "n_neighbors"):
            beyond = round(beyond)
        if along[value] > along[beside] and (beyond - value) * (value - beside) > 0:
            option = name.removeprefix("n_")
            given = values if name == "p" else getattr(options, option, None)
            ours = method.predict is not None and given is not None and sorted(given) == values
            wider = " ".join(f"{v:g}" for v in sorted([*values, beyond]))
            found[name] = f"--{option} {wider}" if ours else ""
    return found


def candidates(inputs, reads, train, options):
    """{(kernel, p): Gram matrix (n, n)} from which a method chooses."""
    if callable(reads):
        return reads(inputs, train)
    found = {("linear", p): inputs.gram[p - 1] for p in inputs.p}
    if reads == "kernels":
        grid = kernels.gamma_grid([inputs.sets[i] for i in train], N_GAMMAS)
        compute_kernels(inputs, grid, options.seconds)
        for gamma in grid:
            K, why = inputs.kernels[gamma]
            dimensions = inputs.p if options.p or not len(K) else tuning.dimensions(len(K))
            for p in dimensions:
                matrix = K[p - 1] if p <= len(K) else tuning.Absent(len(inputs.sets), why)
                found[f"gamma {gamma:.2g}", p] = matrix
    return found


def compute_kernels(inputs, grid, seconds=None):
    """inputs.kernels of each gamma that is not there yet; splits share them.

    seconds: from the middle of the grid outwards, as many as are ready in this time, by the time
    that a tenth of the sets take; the others are left out.
    """
    missing = [gamma for gamma in grid if gamma not in inputs.kernels]
    if seconds is not None and missing:
        missing.sort(key=lambda gamma: abs(math.log(gamma / grid[len(grid) // 2])))
        some = inputs.sets[::10]
        _kernel_gram(some[:2], float(missing[0]), max(inputs.p))  # compile
        start = time.perf_counter()
        _kernel_gram(some, float(missing[0]), max(inputs.p))
        each = (len(inputs.sets) / len(some))**2 * (time.perf_counter() - start)
        late = missing[math.floor(max(0, start + seconds - time.perf_counter()) / each):]
        why = f"the Gram matrices of each take about {each:.2g} s, --seconds is {seconds:g}"
        if late:
            say(f"left out {len(late)} of {len(missing)} Gaussian kernels: {why}")
        none = np.empty((0, *inputs.gram.shape[1:]))
        inputs.kernels.update((gamma, (none, why)) for gamma in late)
        missing = missing[:len(missing) - len(late)]
    for gamma in missing:
        inputs.kernels[gamma] = _kernel_gram(inputs.sets, float(gamma), max(inputs.p))


def _kernel_gram(sets, gamma, p_max):
    """(p, n, n) of every p up to the smallest rank of a set in feature space, and why there are no
    more.

    In float64: of wide Gaussians and small p, float32 leaves matrices that are indefinite.
    """
    kernel = kernels.rbf(gamma)
    sets = [rows.astype(np.float64, copy=False) for rows in sets]
    try:
        bases = [A[:, :p_max] for A in kernels.kernel_bases(sets, kernel)]
        K = kernels.kernel_gram(sets, bases, kernel=kernel, each_p=True)
        return K, f"a set has rank {len(K)} in the feature space of {kernel}"
    except ValueError as error:
        return np.empty((0, len(sets), len(sets))), str(error)


class Fits:
    """An estimator on sets where tuning.Search has a Gram matrix (n, n): a block of it is the
    estimator, and the sets of the rows."""

    def __init__(self, estimator, sets):
        self.estimator = estimator
        self.sets = sets
        self.shape = len(sets), len(sets)

    def __getitem__(self, block):
        rows = block[0].ravel()
        if isinstance(self.sets, np.ndarray):
            return self.estimator, self.sets[rows]
        return self.estimator, [self.sets[i] for i in rows]


def grid_predictions(known, queries, y):
    """predict for tuning.Search: labels by the estimator of two blocks of Fits."""
    estimator, sets = known
    return {(): clone(estimator).fit(sets, y).predict(queries[1])}


def _points_of_grid(method, inputs, p):
    """{(other parameters, first parameter): Fits} of the points of a method's grid; p: of
    subspaces whose grid has none."""
    sets = {"sets": inputs.sets, "videos": inputs.videos}.get(method.reads)
    grid = method.grid
    if method.reads == "subspaces":
        grid = {"p": [p], **grid}
        of_dimension = {q: np.ascontiguousarray(inputs.subspaces[:, :, :q]) for q in grid["p"]}
    found = {}
    for values in itertools.product(*grid.values()):
        first, *others = zip(grid, values)
        point = dict(zip(grid, values))
        if method.reads == "subspaces":
            sets = of_dimension[point.pop("p")]
        found[tuple(others), first] = Fits(clone(method.estimator).set_params(**point), sets)
    return found


def run_splits(collection, inputs, pairs, methods_of, options, report):
    """Evaluate all methods on all splits; report(results, last) after each method of each.

    last: the training and test part of the split, and [(name, estimator, queries), ...] of the
    methods fitted on it. Returns {method: [{accuracy, seconds, chosen, predicted, failed}, ...] of
    each split}; the accuracy of a method that failed is NaN, it predicted None.
    """
    label = collection.label
    pairs = tuning.check_splits(pairs, len(label))
    few = collection.X[:2]  # compile, so that the table shows the time of the methods
    core.gsc(few, few, 0.1)
    core.glc(few, few, 1)
    results = {}
    for i, (train, test) in enumerate(pairs):
        fitted = []
        group, reasons = kept_together(collection, pairs[i])
        for why in reasons:
            say(f"split {i + 1} of {len(pairs)}: {why}")
        for outcome in evaluate(inputs, label, group, train, test, methods_of, options):
            name = outcome.method.name
            accuracy = np.nan
            if outcome.failed is None:
                accuracy = 100 * np.mean(outcome.predicted == label[test])
                if name not in (PEERS, OURS):
                    fitted.append((name, outcome.estimator, outcome.queries))
            failed = outcome.failed and printable(outcome.failed)
            results.setdefault(name, []).append(
                {"accuracy": accuracy, "seconds": outcome.seconds, "chosen": outcome.chosen,
                 "predicted": outcome.predicted, "failed": failed,
                 "left_out": outcome.left_out, "ends": outcome.ends})
            told = f"failed: {failed}" if failed else _told(outcome.chosen)
            say(f"split {i + 1} of {len(pairs)}: {accuracy:5.1f}  {name}  {told}")
            report(results, (train, test, fitted))
    return results


def successes(found):
    """The splits of a method on which it did not fail."""
    return [split for split in found if split["failed"] is None]


def kept_together(collection, split):
    """What cross-validation on a training part keeps together, (n,): groups, else the sets of each
    clip, else None; and why it does not keep what it could."""
    told = []
    clips = None
    if collection.clip is not None and len(np.unique(collection.clip)) < len(collection.clip):
        clips = np.array(clip_names(collection.names, collection.clip))
    for kind, of_set in (("group", collection.group), ("clip", clips)):
        if of_set is None:
            continue
        torn = tuning.shared_groups(split, of_set)
        label = collection.label[split.train].tolist()
        if len(torn):
            told.append(f"{kind} {torn[0]} has sets in both parts, {len(torn)} in all have: "
                        f"cross-validation does not keep a {kind} together")
        elif len({*zip(label, of_set[split.train].tolist())}) == len({*label}):
            told.append(f"no class has two {kind}s to train: cross-validation does not keep a "
                        f"{kind} together")
        else:
            return of_set, told
    return None, told


def print_table(results):
    width = max(map(len, results)) + 1
    print(f"{'':{width}}{'accuracy in %':>15}{'s a split':>12}   most often chosen")
    for method, found in results.items():
        done = successes(found)
        if not done:
            print(f"{method:{width}}  failed: {found[0]['failed']}")
            continue
        accuracy = [split["accuracy"] for split in done]
        seconds = [split["seconds"] for split in done]
        spread = f" ± {np.std(accuracy, ddof=1):4.1f}" if len(done) > 1 else ""
        chosen = _most_often(done)
        if len(done) < len(found):
            chosen += f"   (failed in {len(found) - len(done)} of {len(found)} splits)"
        line = (f"{method:{width}}{np.mean(accuracy):8.1f}{spread:7}{np.mean(seconds):12.3f}   "
                f"{chosen}")
        print(line.rstrip())
        for note in _notes(done):
            print(f"    {note}")


def _most_often(done):
    """The most frequent value of each parameter, and in how many splits it was chosen."""
    told = []
    for name in dict.fromkeys(name for split in done for name in split["chosen"]):
        if name == "voters":
            numbers = sorted({split["chosen"][name] for split in done})
            told.append(" to ".join(f"{number}" for number in numbers[::max(1, len(numbers) - 1)])
                        + " voters")
            continue
        counts = Counter(split["chosen"].get(name) for split in done)
        (value, count), = counts.most_common(1)
        if value is not None:
            often = f" in {count} of {len(done)}" if len(done) > 1 else ""
            told.append(_told({name: value}) + often)
    return ", ".join(told)


def _notes(done):
    """What a row says of candidates that were left out, and of grids at whose end, in half of the
    splits or more, the choice was."""
    left_out = Counter(name for split in done for name in split["left_out"])
    for name, count in left_out.items():
        why = next(split["left_out"][name] for split in done if name in split["left_out"])
        yield f"{name} left out{_of_splits(count, done)}: {why}"
    for name, count in Counter(name for split in done for name in split["ends"]).items():
        if 2 * count >= len(done):
            tries = Counter(split["ends"][name] for split in done if name in split["ends"])
            (option, _), = tries.most_common(1)
            hint = f": try {option}" if option else ""
            yield f"{name} at the end of its grid{_of_splits(count, done)}{hint}"


def _of_splits(count, done):
    return f" in {count} of {len(done)} splits" if len(done) > 1 else ""


def _told(chosen):
    return ", ".join(value if isinstance(value, str) else f"{name} {_number(value)}"
                     for name, value in chosen.items() if value is not None)


def _number(value):
    return f"{value:g}" if np.isscalar(value) else str(value)


def print_comparison(results, pairs):
    """Which methods differ from the best one by more than chance over the splits: p-values,
    adjusted by Holm's correction for the number of rows, and a star below 5 % where there are
    FEWEST_SPLITS."""
    done = {name: found for name, found in results.items() if len(successes(found)) == len(pairs)}
    if len(pairs) < 2 or len(done) < 2:
        return
    share = {name: np.array([split["accuracy"] for split in found]) / 100
             for name, found in done.items()}
    first = max(share, key=lambda name: share[name].mean())
    behind = {name: share[first] - found for name, found in share.items() if name != first}
    n_test = np.mean([len(test) for _, test in pairs])
    ratio = np.mean([len(test) / len(train) for train, test in pairs])
    p_values = tuning.holm([tuning.corrected_t_test(found, ratio, n_test=n_test)
                            for found in behind.values()])
    enough = len(pairs) >= FEWEST_SPLITS
    stars = "* below 0.05" if enough else f"no stars below {FEWEST_SPLITS} splits"
    print(f"Behind {first}, in points, and the p-value ({_name_of_test(pairs)}; Holm's correction "
          f"over {len(behind)} rows; {stars}):")
    for (name, found), p_value in zip(behind.items(), p_values):
        star = " *" if enough and p_value < 0.05 else ""
        print(f"  {name:{max(map(len, share))}}{100 * found.mean():7.1f}{p_value:8.3f}{star}")


def _name_of_test(pairs):
    """Of the test that is right for splits into (train, test)."""
    tested = np.concatenate([test for _, test in pairs])
    if len(np.unique(tested)) == len(tested):
        return (f"paired t-test over {len(pairs)} parts left out in turn, its variance corrected "
                "for the training sets that they share")
    return f"corrected resampled t-test over {len(pairs)} splits"


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
        "classes": natural_classes(collection.label),
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
    place = {name: i for i, name in enumerate(natural_classes(label))}
    truth, predicted = _all_answers(label, pairs, found)
    confusion = np.zeros((len(place), len(place)), int)
    np.add.at(confusion, ([place[c] for c in truth], [place[c] for c in predicted]), 1)
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


def natural_classes(label):
    """The classes, 2 before 10."""
    def order(name):
        return [(part.isdigit(), int(part) if part.isdigit() else 0, part)
                for part in re.split(r"(\d+)", str(name))]

    return sorted(np.unique(label).tolist(), key=order)


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
            if isinstance(coder, Pipeline):
                arrays["atoms_" + slug(name)] = coder[-1].components_
    files.write_whole(out / "codes.npz", lambda file: np.savez_compressed(file, **arrays))
    return arrays


def _coder(estimator):
    """The part of a fitted estimator that gives codes, a Pipeline if its atoms were learned, or
    None."""
    if not isinstance(estimator, Pipeline):
        return estimator if hasattr(estimator, "transform") else None
    learned = [i for i, step in enumerate(estimator) if hasattr(step, "components_")]
    return estimator[:learned[0] + 1] if learned else None


def save_pictures(options, collection, inputs, pairs, results, arrays, frame_shape):
    """Confusion matrices over all splits, Gram matrix and map of all clips, codes and atoms of the
    last split; one that cannot be drawn is said, and costs no other."""
    matplotlib.use("agg")
    label = collection.label.tolist()
    data = printable(options.data.stem)

    def save(name, title, plot, *arrays, **choices):
        try:
            ax = plot(*arrays, **choices)
            ax.set_title(title, fontsize=10)
            save_picture(options.out / name, ax, options, listed=True)
        except Exception as error:
            say(f"no picture {name}: {str(error) or type(error).__name__}")

    for name, found in results.items():
        truth, predicted = _all_answers(collection.label, pairs, found)
        if not len(truth):
            continue
        accuracy = np.mean([split["accuracy"] for split in successes(found)])
        save(f"confusion_{slug(name)}", f"{name}\n{data}: {accuracy:.1f} %",
             plots.plot_confusion, truth.tolist(), predicted.tolist())
    p = min(PICTURED_P, len(inputs.gram))
    K = inputs.gram[p - 1]
    save("gram", f"Projection kernel, p = {p}, {data}", plots.plot_gram, K, label)
    save("map", f"{len(K)} sets of {data}, p = {p}", plots.plot_map, K, label)
    how = {slug(name): f"{name}\n{data}, {_told(successes(found)[-1]['chosen'])}".replace(
        "lam ", "λ / λ_max ") for name, found in results.items() if successes(found)}
    _save_pictures_of_codes(save, how, collection.label, arrays)
    if frame_shape is None:
        say("no picture of the atoms: they are made of features, not of pixels")
    else:
        _save_pictures_of_atoms(save, how, data, collection, arrays, frame_shape)


def _save_pictures_of_codes(save, how, label, arrays):
    """how: {slug of a method: title}."""
    samples = label[arrays["test"]].tolist()
    atoms = label[arrays["train"]].tolist()
    for key in [key for key in arrays if key.startswith("codes_")]:
        learned = key.replace("codes", "atoms", 1) in arrays
        labelled = not learned and arrays[key].shape[1] == len(atoms)
        save(key, how[key.removeprefix("codes_")], plots.plot_codes, arrays[key], samples,
             atom_labels=atoms if labelled else None)


def _save_pictures_of_atoms(save, how, data, collection, arrays, frame_shape):
    """Learned atoms; where there are none, the first labelled set of each class."""
    learned = [key for key in arrays if key.startswith("atoms_")]
    for key in learned:
        save(key, how[key.removeprefix("atoms_")], plots.plot_atoms,
             arrays[key][:PICTURED_ATOMS], frame_shape)
    if not learned:
        train = arrays["train"]
        classes, first = np.unique(collection.label[train], return_index=True)
        sets = train[first[:PICTURED_ATOMS]]
        names = classes[:PICTURED_ATOMS].tolist()
        save("atoms", f"A labelled set of each class, {data}", plots.plot_atoms,
             collection.X[sets], frame_shape, labels=names)


def slug(name):
    return "_".join("".join(c if c.isalnum() else " " for c in name.lower()).split())


# ---------------------------------------------------------------------------------- the command


def recipe_of(options):
    chosen = {name: getattr(options, name, None) for name in Recipe.__dataclass_fields__}
    chosen["size"] = options.size and tuple(options.size)
    chosen["p"] = MOST_P if options.p is None else max(options.p)
    chosen["fewer"] = options.p is None or len(options.p) > 1
    return Recipe(**chosen)


def choose_splits(options, collection):
    """[(train, test), ...] and how they came about."""
    label = collection.label
    if options.splits:
        pairs = split_by_file(options.splits, collection.names, collection.clip,
                              collection.unread)
        return pairs, f"splits of {printable(options.splits)}"
    if collection.group is not None:
        return split_by_group(label, collection.group), "one group left out at a time"
    pairs = split_at_random(label, options.train, options.repeats, options.seed, collection.clip)
    share = f"{100 * options.train:g} %"
    if options.train >= 1:
        share = f"{options.train:g} clips a class"
    return pairs, f"random splits, {share} to train"


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
    most_rows = np.inf if options.kernels else MOST_ROWS
    keep_rows = options.baselines or options.kernels is not False
    collection = build_all(clips, recipe, cache, keep_rows, strict, most_rows)
    if pairs and not options.splits:
        pairs = sets_of_clips(pairs, collection.clip)
        how = f"splits of {printable(options.data.name)}"
    else:
        pairs, how = choose_splits(options, collection)
    seconds = time.perf_counter() - start
    n, d, p = collection.X.shape
    say(f"{n} sets to {p}-dimensional subspaces of R^{d}: {seconds:.1f} s, "
        f"{1000 * seconds / len(clips):.1f} ms a clip")
    return collection, pairs, how


def run(options):
    """Read, build, evaluate, print the table, leave the results behind."""
    collection, pairs, how = read(options)
    remove_pictures(options.out)  # of another run
    n, d, p = collection.X.shape
    inputs = inputs_of(collection, options.p)
    if options.kernels is None:
        why = too_large(collection.sets, len(inputs.p))
        options.kernels = why is None
        if why:
            say(f"left out the rows in a kernel's space: {why}; --kernels asks for them")
    if options.baselines:
        normalised = options.stack > 1 and (options.center or options.unit_variance)
        blocks = options.arma or options.stack
        inputs = inputs._replace(videos=None if normalised else videos_of(collection, blocks))
    last = None

    def report(results, split):
        nonlocal last
        last = split
        save_results(options.out, options, collection, pairs, results)

    def methods_of(n_train, smallest, options):
        yield from methods(n_train, smallest, options)
        if options.baselines:
            yield from baselines(inputs, smallest, Method, options)
            yield from video_baselines(inputs, Method)

    results = run_splits(collection, inputs, pairs, methods_of, options, report)
    n_classes = len(np.unique(collection.label))
    dimensions = ", ".join(map(str, inputs.p))
    print(f"{n} sets, {n_classes} classes, subspaces of R^{d} of dimension {dimensions}, "
          f"{len(pairs)} splits: {how}")
    print_table(results)
    print_comparison(results, pairs)
    arrays = save_codes(options.out, collection, last)
    if not options.no_pictures:
        shape = _picture_shape(collection.frame, d)
        save_pictures(options, collection, inputs, pairs, results, arrays, shape)
    say(f"results, codes and pictures: {options.out}")
    say_failed(collection.failed)
    say_failed_methods(results)


def too_large(sets, n_dimensions):
    """Why the Gram matrices of Gaussian kernels are not computed unless they are asked for, or
    None."""
    if sets is None:
        return f"all frames take more than {MOST_ROWS / 2**30:g} GiB"
    size = 8 * len(sets)**2 * n_dimensions * N_GAMMAS
    if size > MOST_GRAMS:
        return f"Gram matrices of {len(sets)} sets take {size / 2**30:.1f} GiB"
    products = N_GAMMAS * sum(map(len, sets))**2 / 2 * sets[0].shape[1]
    if products > MOST_PRODUCTS:
        return f"Gram matrices take {products:.1g} multiplications"
    return None


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
        sys.exit(printable(f"examples.classify: {error}"))
    except KeyboardInterrupt:
        sys.exit("examples.classify: stopped; the next run starts from the subspaces that were "
                 "built")


if __name__ == "__main__":
    main()
