"""The paper's running times of gSC and iSC (Table 8, section 8.5).

Run: python -m examples.table_running_time

1000 queries are compared with 1000 atoms: gSC needs the similarities ||X^T D_j||^2, iSC
the projections log_X(D_j) of the dictionary into the tangent space of each query. Both
use all cores. The tangent vectors are computed in the fastest way: one matrix product,
small singular value decompositions, and the vectors a tile at a time in cache, where
the next query overwrites them. A third row is what intrinsic_codes uses instead: the p
x p factors of the logarithms, without the vectors. Prints the table and leaves a plot
of time against d in out/. Needs 2 GB.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples.common import of_pictures, parsed

options = parsed(__name__, of_pictures, "examples.table_running_time")

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import grassmann_sc as core
from examples.common import save_picture
from grassmann_sc.baselines import tangent

N_QUERIES = 1000
N_ATOMS = 1000
P = 3
SIZES = [100, 1000, 10000]  # d
PAPER = {  # seconds, Matlab on four cores
    "gSC": [4.1, 16.9, 106.4],
    "iSC": [77.8, 234.2, 1320.7],
}
PRODUCTS = 2**22  # numbers X_i^T D_j that are held at a time
BLOCK = 8  # queries that a thread takes at a time
IN_CACHE = 2**17  # numbers of a tile of tangent vectors
REPETITIONS = {100: 5, 1000: 3, 10000: 1}
STYLES = {  # color and name of a row
    "gSC": ("#0072B2", "gSC: similarities"),
    "iSC": ("#D55E00", "iSC: tangent vectors"),
    "iSC, factors": ("#009E73", "iSC: factors of the tangent vectors"),
}
OUT = Path("out")


def tangent_projections(X, D, vectors=True):
    """log_X(D_j) of all pairs, made and dropped, or their factors alone.

    Returns the sum of the squared distances.
    """
    n, d, p = X.shape
    N = len(D)
    atoms = np.array(D.transpose(2, 0, 1), order="C")  # columns as rows (p, N, d)
    step = max(1, PRODUCTS // (p * max(p * N, d)))
    total = 0.0
    for i in range(0, n, step):
        x = np.array(X[i : i + step].swapaxes(1, 2), order="C")  # (t, p, d)
        C = np.matmul(x.reshape(-1, d), atoms.reshape(-1, d).T).reshape(-1, p, p, N)

        def project(block):
            factors, square, _ = tangent.log_factors(C[block])
            if vectors:
                make_vectors(x[block], atoms, factors)
            return square.sum()

        total += sum(core.run_blocks(project, len(x), BLOCK))
    return total


def make_vectors(x, atoms, factors):
    """The tangent vectors of a block of queries, a tile of atoms at a time."""
    p, N, d = atoms.shape
    tile = max(1, IN_CACHE // (p * d))
    H = np.empty((p, min(tile, N), d))
    for j in range(0, N, tile):
        for query, of_query in zip(x, factors):
            tangents(query, atoms, of_query, j, H)


@core.jit
def tangents(x, atoms, factors, first, out):
    """out[b, j] = column b of log_X(D_{first + j}), for j < m; out (p, m, d).

    x (p, d) is one query, factors (2, p, p, N) are its own. All tangent vectors of a
    query would be p d N numbers: callers take a few atoms at a time, so that they stay
    in cache.
    """
    p, m, d = out.shape
    for j in range(min(m, atoms.shape[1] - first)):
        for start in range(0, d, 1024):  # a stretch stays in the nearest cache
            stop = min(start + 1024, d)
            for b in range(p):
                h = out[b, j, start:stop]
                for a in range(p):
                    A = factors[0, a, b, first + j]
                    B = factors[1, a, b, first + j]
                    y = atoms[a, first + j, start:stop]
                    z = x[a, start:stop]
                    for k in range(stop - start):
                        h[k] = (h[k] if a else 0.0) + A * y[k] - B * z[k]


TASKS = {
    "gSC": core.projection_kernel,
    "iSC": tangent_projections,
    "iSC, factors": lambda X, D: tangent_projections(X, D, vectors=False),
}


def seconds(task, X, D, repetitions):
    """The least of several measurements."""
    runs = []
    for _ in range(repetitions):
        start = time.perf_counter()
        task(X, D)
        runs.append(time.perf_counter() - start)
    return min(runs)


def draw(times):
    """Time against d, ours in full lines and the paper's dashed."""
    ax = plt.figure(figsize=(6, 4.2), layout="constrained").add_subplot()
    for task, row in times.items():
        color, name = STYLES[task]
        ax.loglog(SIZES, row, "o-", color=color, label=name)
    for task, row in PAPER.items():
        color, _ = STYLES[task]
        ax.loglog(
            SIZES,
            row,
            "s--",
            color=color,
            markerfacecolor="white",
            label=f"{task}, as the paper prints it",
        )
    ax.set(
        xlabel="d", ylabel=f"seconds for {N_QUERIES} queries, {N_ATOMS} atoms, p = {P}"
    )
    ax.legend(
        frameon=False, fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1)
    )
    return ax


def measure():
    """{task: seconds for each of SIZES}, printed as they come."""
    times = {task: [] for task in TASKS}
    for d in SIZES:
        X = core.random_subspaces(N_QUERIES, d, P, rng=0)
        D = core.random_subspaces(N_ATOMS, d, P, rng=1)
        for task in TASKS:
            times[task].append(seconds(TASKS[task], X, D, REPETITIONS[d]))
            print(f"d = {d:5d}: {task:12s} {times[task][-1]:8.2f} s", flush=True)
    return times


def print_row(name, numbers, digits, printed=None):
    """A row of the table, the paper's figures in brackets."""
    brackets = (
        [f"({value:.1f})" for value in printed] if printed else [""] * len(numbers)
    )
    cells = [
        f"{number:11.{digits}f} {text:>8}" for number, text in zip(numbers, brackets)
    ]
    print(f"{name:22}" + "".join(cells))


def print_table(times):
    print(
        f"\nTable 8 (section 8.5): {N_QUERIES} queries, {N_ATOMS} atoms, {P}-dimensional "
        "subspaces of R^d; seconds, the paper's in brackets"
    )
    print(f"{'':22}" + "".join(f"{f'd = {d}':>20}" for d in SIZES))
    for task, row in times.items():
        print_row(task, row, 2, PAPER.get(task))
    ratio = np.divide(PAPER["iSC"], PAPER["gSC"])
    print_row("iSC / gSC", np.divide(times["iSC"], times["gSC"]), 1, list(ratio))
    print_row("iSC, factors / gSC", np.divide(times["iSC, factors"], times["gSC"]), 1)


def main(options=None):
    matplotlib.use("agg")
    small = core.random_subspaces(30, 10, P, rng=0)
    for task in TASKS.values():  # compile
        task(small, small)
    times = measure()
    print_table(times)
    print("\npicture:")
    path = save_picture(OUT / "running_time", draw(times), options)
    print(f"  {path}")


if __name__ == "__main__":
    main(options)
