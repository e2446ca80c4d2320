"""Looks for what the paper's synthetic experiment leaves unprinted: python -m examples.search_synthetic

Seeded. Combinations of base points, class means, their length and sigma are tried on small draws, with several lambda for each
method and two rules for iSC; accuracies are interpolated in sigma. The script prints the settings whose 16 figures come
closest to the paper's, with one lambda a method, one length an experiment and sigma free in each problem.
"""

import functools
import itertools
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/search_synthetic.py

from examples.table_synthetic import N_CLASSES, P, PAPER, Problem, draw
from grassmann_sc import classify, projection_kernel, sparse_codes
from intrinsic import intrinsic_codes, karcher_mean, log_map, tangent_grams

SEEDS, N_QUERIES = range(5), 60  # draws of a problem, queries a class
LAMS = [1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5]
SIGMAS = np.array([0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.36, 0.43, 0.52, 0.6])
FINE = np.linspace(SIGMAS[0], SIGMAS[-1], 54)
FIRST = list(itertools.product(["identity"], ["any", "orthogonal"], [0.5, 0.65, 0.8, 1.2, 1.6, 2.0, 2.4, 3.0]))  # base, means, spread
SECOND = [("each", "any", 0.0), ("each", "any", 1.0), ("each", "any", 1.5), ("each", "any", 2.0),
          ("each", "any", 2.5), ("positive", "any", 0.0), ("positive", "any", 1.0),
          *itertools.product(["one"], ["any", "orthogonal"], [0.8, 1.2, 1.6, 2.0, 2.4])]
RULES = {"iSC": ["extrinsic residual", "intrinsic residual by weight"]}
BASES = {"lE-SC-adaptive": ["mean of the atoms", "mean of all data"]}
N_SHOWN = 8


def variants(method):
    """(rule or base or "", lambda) of each variant of a method."""
    return list(itertools.product(RULES.get(method) or BASES.get(method) or [""], LAMS))


def by_weight(H, codes, labels):
    """The class of smallest ||sum_{j in c} y_j log_X(D_j)|| / |sum_{j in c} y_j|, for the logarithms H (n, N, d p)."""
    parts = codes[:, None, :] * (labels == np.arange(N_CLASSES)[:, None])  # (n, class, N)
    weight = np.abs(parts.sum(axis=2))
    length = np.linalg.norm(np.matmul(parts, H), axis=2)
    return np.where(weight > 1e-9, length / np.maximum(weight, 1e-9), np.inf).argmin(axis=1)


def accuracies(atoms, queries, labels, truth):
    """{method: accuracy in % of each of its variants}."""
    K, k = projection_kernel(atoms), projection_kernel(queries, atoms)
    H = log_map(queries[:, None], atoms).reshape(len(queries), len(atoms), -1)
    code = functools.cache(lambda lam: intrinsic_codes(queries, atoms, lam))
    def lasso(K, k, norm2, lam):
        return classify(sparse_codes(K, k, lam, norm2=norm2), K, k, labels, norm2=norm2)

    def tangent(base, lam):
        grams = tangent_grams(queries, atoms, base)
        return lasso(*grams, lam)

    def intrinsic(rule, lam):
        return classify(code(lam), K, k, labels, norm2=P) if rule == "extrinsic residual" else by_weight(H, code(lam), labels)

    base = dict(zip(["", *BASES["lE-SC-adaptive"]], [None, karcher_mean(atoms), karcher_mean(np.concatenate([atoms, queries]))]))
    run = {"lE-SC": lambda v, lam: tangent(None, lam), "lE-SC-adaptive": lambda v, lam: tangent(base[v], lam), "iSC": intrinsic,
           "gSC": lambda v, lam: lasso(K, k, P, lam)}
    return {method: [100 * np.mean(run[method](*v) == truth) for v in variants(method)] for method in PAPER}


def grid(kinds):
    """{method: (kind, sigma on FINE, variant) mean accuracies}."""
    found = {method: np.empty((len(kinds), len(FINE), len(variants(method)))) for method in PAPER}
    for i, (base, means, spread) in enumerate(kinds):
        start, rows = time.perf_counter(), []
        for sigma in SIGMAS:
            problem = Problem("", base, means, spread, sigma)
            rows.append([accuracies(*draw(problem, np.random.default_rng(seed), N_QUERIES)) for seed in SEEDS])
        for method, table in found.items():
            coarse = np.array([[one[method] for one in row] for row in rows]).mean(axis=1)  # (sigma, variant)
            table[i] = np.transpose([np.interp(FINE, SIGMAS, column) for column in coarse.T])
        print(f"{base}, {means}, {spread}: {time.perf_counter() - start:.0f} s", flush=True)
    return found


def best_pairs(found, printed):
    """For each kind, (sigma, sigma', cost of every variant of every method) of the pairs of rising sigma, best first; few."""
    pairs = []
    for kind in range(len(next(iter(found.values())))):
        for i, j in itertools.combinations(range(len(FINE)), 2):
            cost = {m: (found[m][kind, i] - printed[m][0]) ** 2 + (found[m][kind, j] - printed[m][1]) ** 2 for m in PAPER}
            pairs.append((sum(c.min() for c in cost.values()), kind, i, j, cost))
    return sorted(pairs, key=lambda pair: pair[0])[:400]


def main():
    warnings.filterwarnings("ignore", "karcher_mean|.*right angles")
    first, second = grid(FIRST), grid(SECOND)
    left = best_pairs(first, {m: row[:2] for m, row in PAPER.items()})
    right = best_pairs(second, {m: row[2:] for m, row in PAPER.items()})
    scored = [(sum((a[4][m] + b[4][m]).min() for m in PAPER), a, b) for a in left for b in right]
    shown = set()
    for cost, a, b in sorted(scored, key=lambda item: item[0]):
        if (a[1], b[1]) in shown:
            continue
        shown.add((a[1], b[1]))
        print(f"\nroot mean square difference {np.sqrt(cost / 16):.2f}: {FIRST[a[1]]}, sigma {FINE[a[2]]:.2f} {FINE[a[3]]:.2f}; "
              f"{SECOND[b[1]]}, sigma {FINE[b[2]]:.2f} {FINE[b[3]]:.2f}")
        for m in PAPER:
            v = int((a[4][m] + b[4][m]).argmin())
            row = [first[m][a[1], a[2], v], first[m][a[1], a[3], v], second[m][b[1], b[2], v], second[m][b[1], b[3], v]]
            print(f"  {m:16}" + "".join(f"{x:7.1f} ({y:4.1f})" for x, y in zip(row, PAPER[m])) + f"   {variants(m)[v]}")
        if len(shown) == N_SHOWN:
            break


if __name__ == "__main__":
    main()
