"""How much does the dimension p of the subspaces matter, and what does it cost to try them all?

    python -m benchmarks.dimensions --data FILE.npz ... [--splits 2] [--out DIR]

Files are as in examples/classify.py. For each: seconds of the Gram matrices of p = 1, 2, ..., p_max
from one pass over those of p_max alone, and how far each is from the one computed alone; accuracy
of gSC and kgSC at each p, where cross-validation on the training part chooses lambda, the rule and
gamma; and seconds of a search over p as well. A picture: accuracy against p of all files.
"""

import time
from pathlib import Path

from benchmarks.options import parser_of_files

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parser = parser_of_files("dimensions", __doc__, splits=2, metavar="FILE.npz")
    options = parser.parse_args()

import matplotlib
import numpy as np

import grassmann_sc as gs
from benchmarks.common import figure, header, interleaved
from examples import classify
from grassmann_sc import kernels, tuning

matplotlib.use("agg")
import matplotlib.pyplot as plt

REPETITIONS = 3
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = "o^sDvPX"
READS = {"gSC": "gram", "kgSC": "kernels"}


def main(options):
    options.out.mkdir(parents=True, exist_ok=True)
    header("Dimensions of the subspaces")
    curves = {}
    for path in options.data:
        print(f"{Path(path).stem}:", flush=True)
        collection, pairs, chosen = read(path, options)
        time_one_pass(collection)
        curves[Path(path).stem] = accuracies(collection, pairs[: options.splits], chosen)
    draw(options.out / "dimensions.png", curves)


def read(path, options):
    arguments = ["--data", path, "--out", str(options.out), "--kernels"]
    for name in ("resample", "stack"):
        if getattr(options, name):
            arguments += [f"--{name}", str(getattr(options, name))]
    chosen = classify.parse(arguments + ["--center"] * options.center)
    collection, pairs, _ = classify.read(chosen)
    return collection, pairs, chosen


def time_one_pass(collection):
    """Seconds of all p over those of the largest alone, and the differences of their matrices, in
    float64."""
    X = collection.X.astype(np.float64)
    sets = [rows.astype(np.float64) for rows in collection.sets]
    kernel = kernels.rbf(float(kernels.median_gamma(sets)))
    bases = kernels.kernel_bases(sets, kernel)
    calls = {
        "projection_kernel": lambda **how: gs.projection_kernel(X, **how),
        "kernel_gram": lambda **how: kernels.kernel_gram(sets, bases, kernel=kernel, **how),
    }
    alone = {
        "projection_kernel": lambda p: gs.projection_kernel(np.ascontiguousarray(X[:, :, :p])),
        "kernel_gram": lambda p: kernels.kernel_gram(
            sets, [A[:, :p] for A in bases], kernel=kernel
        ),
    }
    for name, call in calls.items():
        of_all = call(each_p=True)
        call()
        both, one = interleaved([lambda: call(each_p=True), call], REPETITIONS)
        p_max = len(of_all)
        figure(
            f"{name}, {len(sets)} sets, p = 1..{p_max} over p = {p_max} alone", both / one, "<=1.5"
        )
        some = tuning.dimensions(p_max)
        far = max(np.abs(of_all[p - 1] - alone[name](p)).max() for p in some)
        figure(f"{name}, largest difference from each alone", far, "<=1e-10")


def accuracies(collection, pairs, options):
    """{method: {p: accuracy in %}}, means over the splits."""
    inputs = classify.inputs_of(collection)
    label = collection.label
    found = {method: {} for method in READS}
    seconds = []
    for train, test in pairs:
        group = None if collection.group is None else collection.group[train]
        folds = [
            (train[fit], train[validate])
            for fit, validate in classify.folds(label[train], group, options.seed)
        ]
        predict = tuning.sparse_predictions(options.lam)
        for method, reads in READS.items():
            grams = classify.candidates(inputs, reads, train, options)
            start = time.perf_counter()
            tuning.Search(label, folds, predict).choose(grams)
            seconds.append((method, time.perf_counter() - start))
            search = tuning.Search(label, folds, predict)
            for p in sorted({p for _, p in grams}):
                choice = search.choose({key: K for key, K in grams.items() if key[1] == p})
                K = grams[choice.gram]
                answers = predict(K[np.ix_(train, train)], K[np.ix_(test, train)], label[train])
                right = np.mean(answers[choice.parameters] == label[test])
                found[method].setdefault(p, []).append(100 * right)
    for method, curve in found.items():
        mean = {p: np.mean(values) for p, values in curve.items()}
        took = np.mean([s for name, s in seconds if name == method])
        told = "  ".join(f"{p}: {a:.1f}" for p, a in mean.items())
        print(f"  {method}, accuracy in % at each p, {len(pairs)} splits   {told}")
        print(f"  {method}, search over p, lambda, rule, gamma: {took:.2f} s a split", flush=True)
        found[method] = mean
    return found


def draw(path, curves):
    picture, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
    for ax, method in zip(axes, READS):
        for i, (name, found) in enumerate(curves.items()):
            points = found[method]
            ax.plot(
                list(points),
                list(points.values()),
                color=COLOURS[i % len(COLOURS)],
                marker=MARKERS[i % len(MARKERS)],
                markersize=5,
                linewidth=1.2,
                label=name,
            )
        ticks = [1, 2, 3, 5, 8, 12, 24]
        ax.set_xscale("log", base=2)
        ax.set_xticks(ticks, [str(p) for p in ticks])
        ax.minorticks_off()
        ax.set(xlabel="dimension p of the subspaces", title=method)
    axes[0].set_ylabel("accuracy in %")
    axes[1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    picture.savefig(path, dpi=120)
    plt.close(picture)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(options)
