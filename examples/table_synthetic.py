"""The paper's synthetic table on G(2, 6), with two columns that it lacks: python -m examples.table_synthetic

Four classes; the samples of a class are normal in a tangent space and mapped by exp. Experiment 1: the tangent space at the
identity subspace, experiment 2: at random; the class means are tangent vectors. The paper prints neither their length, nor the
variances, nor lambda, nor iSC's decision rule: examples/search_synthetic.py looked for the values below, which come closest to its
table; the seeds here are others.
"""

import sys
import time
import warnings
from collections import namedtuple
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/table_synthetic.py

from grassmann_sc import classify, locality_codes, orthonormalize, projection_kernel, random_subspaces, reconstruct, sparse_codes
from intrinsic import exp_map, intrinsic_codes, tangent_grams

D, P, N_CLASSES, N_ATOMS, N_QUERIES = 6, 2, 4, 8, 1000  # of the subspaces; atoms and queries a class
REPETITIONS = 10
FIRST_SEED = 1000  # the search uses seeds below
Problem = namedtuple("Problem", "name base means spread sigma")  # see draw
EASY, MEDIUM = (Problem(name, "identity", "orthogonal", 0.8, sigma) for name, sigma in (("easy", 0.15), ("medium", 0.2)))
HARD, VERY_HARD = (Problem(name, "each", "any", 2.0, sigma) for name, sigma in (("hard", 0.47), ("very hard", 0.53)))
LAM = {"lE-SC": 1e-5, "lE-SC-adaptive": 0.5, "iSC": 1e-4, "gSC": 1e-5}
NEIGHBORS = 8  # of gLC
PROBLEMS = [EASY, MEDIUM, HARD, VERY_HARD]
PAPER = {
    "lE-SC": [99.5, 90.8, 55.7, 49.9],
    "lE-SC-adaptive": [92.9, 88.7, 57.3, 50.6],
    "iSC": [98.6, 84.1, 64.7, 53.4],
    "gSC": [99.2, 86.6, 66.9, 57.4],
}
BOTH_LE = ["lE-SC", "lE-SC-adaptive"]
ORDERINGS = [  # in the paper's table and text: (experiments, better method, worse methods)
    ((1,), "lE-SC", ["lE-SC-adaptive", "iSC", "gSC"]),
    ((1, 2), "gSC", ["iSC"]),
    ((2,), "iSC", BOTH_LE),
    ((2,), "lE-SC-adaptive", ["lE-SC"]),
]


def tangents(rng, base, n):
    """n normal tangent vectors at base (d, p)."""
    H = rng.standard_normal((n, *base.shape))
    return H - base @ (base.T @ H)


def base_point(problem, rng):
    """A basis (D, P): "identity", the first axes; "one", "each": uniform on the manifold; "positive": of uniform numbers in [0, 1]."""
    if problem.base == "identity":
        return np.eye(D, P)
    return random_subspaces(1, D, P, rng=rng)[0] if problem.base in ("one", "each") else orthonormalize(rng.uniform(size=(D, P)))


def draw(problem, rng, n_queries=N_QUERIES):
    """(atoms, queries, labels, truth) of a problem, class after class.

    A sample of class c is exp(mean_c + sigma normal) at base c, one base for all classes if it is "identity" or "one". The means
    are tangent vectors of length spread, of "any" random direction or "orthogonal" to each other.
    """
    sets, means, common = [], [], base_point(problem, rng)
    for _ in range(N_CLASSES):
        base = common if problem.base in ("identity", "one") else base_point(problem, rng)
        mean = tangents(rng, base, 1)[0]
        if problem.means == "orthogonal":
            mean -= sum(np.vdot(other, mean) * other for other in means)
        means.append(mean / np.linalg.norm(mean))
        sets.append(exp_map(base, problem.spread * means[-1] + problem.sigma * tangents(rng, base, N_ATOMS + n_queries)))
    atoms, queries = (np.concatenate([X[part] for X in sets]) for part in (slice(N_ATOMS), slice(N_ATOMS, None)))
    return atoms, queries, np.repeat(np.arange(N_CLASSES), N_ATOMS), np.repeat(np.arange(N_CLASSES), n_queries)


def reconstruction_rule(codes, atoms, queries, labels):
    """The class whose part of the code, projected back to the manifold, is nearest; a class that is not used is far."""
    similarity = np.full((len(queries), N_CLASSES), -np.inf)  # ||X^T Z||^2 = p - ||X^ - Z^||^2 / 2
    for c in range(N_CLASSES):
        used = np.flatnonzero(codes[:, labels == c].any(axis=1))
        points = reconstruct(codes[np.ix_(used, labels == c)], atoms[labels == c])
        similarity[used, c] = (np.matmul(queries[used].swapaxes(1, 2), points)**2).sum(axis=(1, 2))
    return similarity.argmax(axis=1)


def recognise(problem, seed):
    """{method: recognition rate in %} on one draw of a problem."""
    atoms, queries, labels, truth = draw(problem, np.random.default_rng(seed))
    K, k = projection_kernel(atoms), projection_kernel(queries, atoms)
    predicted = {}
    for method, base in zip(BOTH_LE, (None, "mean")):
        grams = tangent_grams(queries, atoms, base)
        codes = sparse_codes(grams.K_dd, grams.K_xd, LAM[method], norm2=grams.norm2)
        predicted[method] = classify(codes, grams.K_dd, grams.K_xd, labels, norm2=grams.norm2)
    predicted["iSC"] = classify(intrinsic_codes(queries, atoms, LAM["iSC"]), K, k, labels, norm2=P)
    codes = sparse_codes(K, k, LAM["gSC"], norm2=P)
    predicted["gSC"] = classify(codes, K, k, labels, norm2=P)
    predicted["gLC"] = classify(locality_codes(K, k, NEIGHBORS, norm2=P), K, k, labels, norm2=P)
    predicted["gSC, reconstructed"] = reconstruction_rule(codes, atoms, queries, labels)
    return {method: 100 * np.mean(answer == truth) for method, answer in predicted.items()}


def show_orderings(rates):
    """Whether each ordering of the paper holds, by the difference of the means and its standard deviation over the draws."""
    print("\nthe paper's orderings (mean difference ± standard deviation of the difference over the draws)")
    for experiments, better, worse in ORDERINGS:
        for i in range(4):
            for other in worse if i // 2 + 1 in experiments else []:
                difference = rates[better][i] - rates[other][i]
                printed = PAPER[better][i] - PAPER[other][i]
                holds = "holds" if difference.mean() > 0 else "FAILS"
                print(f"  {PROBLEMS[i].name:10} {better:14} above {other:15} {holds}  {difference.mean():5.1f} ± "
                      f"{difference.std(ddof=1):4.1f}   paper {printed:5.1f}")


def main():
    warnings.filterwarnings("ignore", "karcher_mean|.*right angles|reconstruct")
    began = time.perf_counter()
    for problem in PROBLEMS:
        print(f"{problem.name:10} base {problem.base}, means {problem.means}, of length {problem.spread}, sigma {problem.sigma}")
    print("lambda " + ", ".join(f"{method} {lam:g}" for method, lam in LAM.items()) + f"; gLC {NEIGHBORS} neighbours")
    print("iSC decides by the extrinsic residual of its codes, lE-SC-adaptive projects at the Karcher mean of the atoms")
    rates = {}  # method -> (problem, repetition)
    for problem in PROBLEMS:
        for r in range(REPETITIONS):
            for method, rate in recognise(problem, FIRST_SEED + r).items():
                rates.setdefault(method, []).append(rate)
        print(f"{problem.name}: {time.perf_counter() - began:.0f} s", flush=True)
    rates = {method: np.reshape(row, (4, REPETITIONS)) for method, row in rates.items()}
    print(f"\nrecognition rate in % of {N_CLASSES * N_QUERIES} queries, {REPETITIONS} draws, standard deviation, the paper's in brackets")
    print(f"{'':20}" + "".join(f"{problem.name:>21}" for problem in PROBLEMS))
    for method, row in rates.items():
        printed = [f"({value:.1f})" for value in PAPER.get(method, [])] or [""] * 4
        print(f"{method:20}" + "".join(f"{r.mean():7.1f} ± {r.std(ddof=1):3.1f} {value:>7}" for r, value in zip(row, printed)))
    gap = np.array([rates[method].mean(axis=1) - PAPER[method] for method in PAPER])
    print(f"difference from the paper's 16 figures: largest {np.abs(gap).max():.1f}, mean {np.abs(gap).mean():.1f} points; "
          f"{(np.abs(gap) <= 3).sum()} of 16 within 3 points")
    show_orderings(rates)
    print(f"\n{time.perf_counter() - began:.0f} seconds in all")


if __name__ == "__main__":
    main()
