"""The paper's running times: what gSC and iSC need of 1000 atoms for each of 1000 queries: python -m examples.table_running_time

gSC needs the similarities ||X^T D_j||^2, iSC the projections log_X(D_j) of the dictionary into the tangent space of each query.
Both use all cores. The tangent vectors are made in their fastest form: one matrix product, small SVDs side by side, and the
vectors a tile at a time in cache, where the next query overwrites them. A third row is what intrinsic_codes uses instead: the
p x p factors of the logarithms, without the vectors. Prints the table and leaves a plot of time against d in out/. Needs 2 GB.
"""

import os
import sys
import time
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/table_running_time.py

import grassmann_sc as core
import intrinsic

N_QUERIES, N_ATOMS, P = 1000, 1000, 3
SIZES = [100, 1000, 10000]  # d
PAPER = {"gSC": [4.1, 16.9, 106.4], "iSC": [77.8, 234.2, 1320.7]}  # seconds, Matlab on four cores
BLOCK = 25  # queries that a thread takes at a time
IN_CACHE = 2**17  # numbers of a tile of tangent vectors
REPETITIONS = {100: 5, 1000: 3, 10000: 1}
OUT = Path("out")


def tangent_projections(X, D, vectors=True):
    """log_X(D_j) of all pairs, made and dropped, or their factors alone; returns the sum of the squared distances."""
    (n, d, p), N = X.shape, len(D)
    rows = intrinsic._rows(D)
    step = max(1, IN_CACHE // (p * d))

    def job(block):
        t = block.stop - block.start
        x = intrinsic._rows(X[block])
        C = np.matmul(x, rows.reshape(p * N, d).T).reshape(p, t, p, N)
        A, B, square, least = np.empty((t, p, p, N)), np.empty((t, p, p, N)), np.empty((t, N)), np.empty(N)
        for i in range(t):
            intrinsic._align(C[:, i], A[i], B[i], square[i], least)
        H = np.empty((p, step, d))
        for j in range(0, N if vectors else 0, step):
            for i in range(t):
                intrinsic._tangents(x, i, rows, j, min(j + step, N), A[i], B[i], H)
        return square.sum()

    return sum(core._in_threads(job, n, BLOCK))


TASKS = {
    "gSC": core.projection_kernel,
    "iSC": tangent_projections,
    "iSC, factors": lambda X, D: tangent_projections(X, D, vectors=False),
}


def seconds(task, X, D, repetitions):
    runs = []
    for _ in range(repetitions):
        start = time.perf_counter()
        task(X, D)
        runs.append(time.perf_counter() - start)
    return min(runs)


def draw(times):
    """Time against d, ours in full lines and the paper's dashed."""
    ax = plt.figure(figsize=(6, 4.2), layout="constrained").add_subplot()
    colors = {"gSC": "#0072B2", "iSC": "#D55E00", "iSC, factors": "#009E73"}
    names = {"gSC": "gSC: similarities", "iSC": "iSC: tangent vectors", "iSC, factors": "iSC: factors of the tangent vectors"}
    for task, row in times.items():
        ax.loglog(SIZES, row, "o-", color=colors[task], label=names[task])
    for task, row in PAPER.items():
        ax.loglog(SIZES, row, "s--", color=colors[task], markerfacecolor="white", label=f"{task}, as the paper prints it")
    ax.set(xlabel="d", ylabel=f"seconds for {N_QUERIES} queries, {N_ATOMS} atoms, p = {P}")
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax


def save(name, ax):
    """The picture as a file, whole or not at all."""
    OUT.mkdir(exist_ok=True)
    unfinished = OUT / f"unfinished_{name}.png"
    ax.figure.savefig(unfinished, dpi=120)
    os.replace(unfinished, OUT / f"{name}.png")
    plt.close(ax.figure)
    print(f"  {OUT / name}.png")


def main():
    matplotlib.use("agg")
    small = core.random_subspaces(30, 10, P, rng=0)
    for task in TASKS.values():  # compile
        task(small, small)
    times = {task: [] for task in TASKS}
    for d in SIZES:
        X, D = (core.random_subspaces(n, d, P, rng=seed) for seed, n in enumerate((N_QUERIES, N_ATOMS)))
        for task in TASKS:
            times[task].append(seconds(TASKS[task], X, D, REPETITIONS[d]))
            print(f"d = {d:5d}: {task:12s} {times[task][-1]:8.2f} s", flush=True)
    print(f"\n{N_QUERIES} queries, {N_ATOMS} atoms, {P}-dimensional subspaces of R^d; seconds, the paper's in brackets")
    print(f"{'':22}" + "".join(f"{f'd = {d}':>20}" for d in SIZES))
    for task, row in times.items():
        printed = [f"({value:.1f})" for value in PAPER.get(task, [])] or [""] * len(SIZES)
        print(f"{task:22}" + "".join(f"{s:11.2f} {value:>8}" for s, value in zip(row, printed)))
    for task in ("iSC", "iSC, factors"):
        printed = [f"({a / b:.1f})" for a, b in zip(PAPER["iSC"], PAPER["gSC"])] if task == "iSC" else [""] * len(SIZES)
        ratio = np.divide(times[task], times["gSC"])
        print(f"{f'{task} / gSC':22}" + "".join(f"{r:11.1f} {value:>8}" for r, value in zip(ratio, printed)))
    print("\npicture:")
    save("running_time", draw(times))


if __name__ == "__main__":
    main()
