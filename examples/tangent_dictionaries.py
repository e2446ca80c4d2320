"""Dictionaries in tangent spaces beside gDL: python -m examples.tangent_dictionaries

Learns gDL's atoms, log-Euclidean atoms (in the tangent space at the Karcher mean) and
intrinsic atoms from the same first atoms, on three synthetic sets and on files: --data
FILE.npz ... with --p, as in examples/projected_coding.py. Training sets and queries are
coded over the atoms of each; a query gets the class of the training set whose code
makes the smallest angle with its own. Prints costs, seconds and accuracy, and leaves
the learning curves in out/. Each method has its own cost: the curves show its ratio to
the first.
"""

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples.common import of_files, parsed

options = parsed(__name__, of_files, "examples.tangent_dictionaries")

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import grassmann_sc as core
from examples import projected_coding
from examples.common import save_picture
from grassmann_sc import learn
from grassmann_sc.baselines import tangent

LAM = 0.1
N_ATOMS = 16
N_ITER = 20
SETTINGS = [
    projected_coding.Setting(20, 2, 120, spread, sigma)
    for spread, sigma in [(0.6, 0.1), (0.6, 0.2), (1.2, 0.2)]
]
COLORS = {"gDL": "#0072B2", "log-Euclidean": "#D55E00", "intrinsic": "#009E73"}


def learned(method, X, atoms):
    """(result with atoms, codes and costs; the function from subspaces to codes)."""
    keywords = {"init": atoms, "n_iter": N_ITER, "tol": 0}
    if method == "gDL":
        result = learn.gdl(X, N_ATOMS, LAM, **keywords)
        return result, lambda queries: core.gsc(queries, result.atoms, LAM)
    if method == "log-Euclidean":
        result = tangent.log_euclidean_dictionary(
            X, N_ATOMS, LAM, base="mean", **keywords
        )
        return result, lambda queries: tangent.log_euclidean_codes(
            queries, result.atoms, LAM, result.base
        )
    result = tangent.intrinsic_dictionary(X, N_ATOMS, LAM, **keywords)
    return result, lambda queries: tangent.intrinsic_codes(queries, result.atoms, LAM)


def nearest_by_angle(codes, labels, queries):
    """The label of the code that makes the smallest angle with each query's."""
    length = np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-300)
    return labels[(queries @ (codes / length).T).argmax(axis=1)]


def compare(data):
    """{method: (costs, seconds, accuracy in %)}; prints a row of each."""
    first = learn.init_atoms(data.atoms, N_ATOMS, rng=0)
    results = {}
    for method in COLORS:
        start = time.perf_counter()
        result, code = learned(method, data.atoms, first)
        seconds = time.perf_counter() - start
        predicted = nearest_by_angle(result.codes, data.labels, code(data.queries))
        accuracy = 100 * np.mean(predicted == data.truth)
        results[method] = result.costs, seconds, accuracy
        rise = max(np.diff(result.costs).max() / result.costs[0], 0)
        print(
            f"{data.name:36}{method:15}{len(data.atoms):5d}{result.costs[0]:10.4g}"
            f"{result.costs[-1]:10.4g}{rise:10.1g}{seconds:9.2f}{accuracy:8.1f}",
            flush=True,
        )
    return results


def draw_picture(names, all_results):
    """The learning curves, a panel a data set."""
    figure = plt.figure(figsize=(3 * len(names), 3.2), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for ax, name, results in zip(panels, names, all_results):
        for method, (costs, *_) in results.items():
            ax.plot(
                np.arange(len(costs)) / 2,
                costs / costs[0],
                color=COLORS[method],
                label=method,
            )
        ax.set_title(name, fontsize=7)
        ax.set(xlabel="iteration")
    figure.suptitle(f"Learning {N_ATOMS} atoms, λ = {LAM}", fontsize=9)
    panels[0].set(ylabel="cost, of that of the first atoms")
    panels[-1].legend(frameon=False, fontsize=8)
    return panels[0]


def main(options):
    matplotlib.use("agg")
    warnings.filterwarnings("ignore", ".*right angles|karcher_mean|.*did not converge")
    rng = np.random.default_rng(0)
    small = projected_coding.draw(projected_coding.Setting(6, 2, 8, 0.6, 0.1), rng)
    for method in COLORS:  # compile
        first = np.repeat(small.atoms, N_ATOMS, axis=0)[:N_ATOMS]
        learned(method, small.atoms, first)
    print(
        f"{N_ATOMS} atoms, lambda = {LAM}, {N_ITER} iterations; rise: the largest of the cost, "
        "of the first\n"
        f"{'':36}{'':15}{'n':>5}{'first':>10}{'last':>10}{'rise':>10}{'seconds':>9}{'acc. %':>8}"
    )
    names = []
    results = []
    for data in projected_coding.problems(SETTINGS, options, rng):
        names.append(data.name)
        results.append(compare(data))
    print("\npicture:")
    path = projected_coding.OUT / "tangent_dictionaries"
    print(f"  {save_picture(path, draw_picture(names, results), options)}")


if __name__ == "__main__":
    main(options)
