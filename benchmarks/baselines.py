"""The baselines on sets of images: each against the straightforward loop over pairs, against
projection_kernel, and as the number of sets grows.

    python -m benchmarks.baselines [--quick]

The loops are what one writes from the equations: NumPy's svd or lstsq, SciPy's SLSQP or eigh, a
pair at a time. They run on some of the pairs and are scaled up to all. Answers are compared on the
pairs that both have. --quick stops growth at 500 sets.
"""

import cProfile
import pstats
import time
import warnings

from benchmarks.options import parser_of

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parser = parser_of("baselines", __doc__)
    parser.add_argument("--quick", action="store_true", help="growth to 500 sets alone")
    options = parser.parse_args()

import numpy as np
import scipy.linalg
import scipy.optimize

import grassmann_sc as gs
from benchmarks.common import figure, header, interleaved, run_child
from grassmann_sc import kernels
from grassmann_sc.baselines import hulls
from grassmann_sc.baselines.sets import correlation_kernel, dcc, gda, ggda, mutual_similarity
from grassmann_sc.subspaces import from_sets

N_SETS = 1000
N_CLASSES = 10
N_FRAMES = 10
D = 200
P = 4
N_LOOP = 24  # sets, the pairs of which a loop takes
GAMMA = 1 / (2 * D)
GROWTH = [250, 500, 1000, 2000]
REPETITIONS = 3
MOST = 20  # times projection_kernel, for the methods of a Gram matrix
CHILD = """
import time
import warnings
from benchmarks.common import extra_memory
from benchmarks.baselines import calls_of, problem
warnings.simplefilter("ignore")
calls_of(*problem(20))["{name}"]()
call = calls_of(*problem({n}))["{name}"]
seconds = []

def timed():
    start = time.perf_counter()
    result = call()
    seconds.append(time.perf_counter() - start)
    return result

memory = extra_memory(timed)
print(memory, seconds[0])
"""


def problem(n, seed=0):
    """n sets of frames, in classes that have P-dimensional patterns and means; their subspaces."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((N_CLASSES, P, D))
    labels = np.arange(n) % N_CLASSES
    sets = rng.standard_normal((n, N_FRAMES, P)) @ patterns[labels]
    sets += 0.7 * rng.standard_normal(sets.shape) + patterns[labels].mean(axis=1)[:, None]
    return sets, from_sets(sets, P), labels


def calls_of(sets, X, labels):
    """Each method on n sets, by name; what it gives is an array."""
    gram = gs.projection_kernel(X)
    return {
        "correlation_kernel": lambda: correlation_kernel(X),
        "mutual_similarity": lambda: mutual_similarity(X, X, 2),
        "gda": lambda: gda(gram, labels).coefficients,
        "ggda": lambda: ggda(gram, labels).coefficients,
        "dcc, a step": lambda: dcc(X, labels, n_iter=1).transform,
        "affine_hull_distances": lambda: hulls.affine_hull_distances(sets),
        "affine, Gaussian": lambda: hulls.affine_hull_distances(
            sets, kernel=kernels.rbf(GAMMA)),
        "convex_hull_distances": lambda: hulls.convex_hull_distances(sets),
    }


# ------------------------------------------------------------------------------------- the loops


def pairs(function, sets):
    """function of each pair i < j, in a symmetric matrix."""
    values = np.zeros((len(sets), len(sets)))
    for i in range(len(sets)):
        for j in range(i):
            values[i, j] = function(sets[i], sets[j])
            values[j, i] = values[i, j]
    return values


def correlations(A, B):
    return np.linalg.svd(A.T @ B, compute_uv=False).sum()


def similarity(A, B):
    return np.square(np.linalg.svd(A.T @ B, compute_uv=False)[:2]).mean()


def affine(A, B):
    """Centre, take the directions of 98 % of the variance, solve for the coefficients."""
    means = []
    directions = []
    for frames in (A, B):
        means.append(frames.mean(axis=0))
        _, s, Vt = np.linalg.svd(frames - means[-1], full_matrices=False)
        held = np.cumsum(s**2) / np.square(s).sum()
        directions.append(Vt[: np.searchsorted(held, 0.98) + 1])
    U = np.concatenate(directions).T
    offset = means[0] - means[1]
    return np.linalg.norm(offset - U @ np.linalg.lstsq(U, offset, rcond=None)[0])


def convex(A, B):
    q = len(A)
    Z = np.vstack([A, -B])
    G = Z @ Z.T
    sides = np.repeat(np.eye(2), [q, len(B)], axis=1)
    found = scipy.optimize.minimize(
        lambda z: z @ G @ z / 2, np.full(len(Z), 1 / q), jac=lambda z: G @ z, method="SLSQP",
        bounds=[(0, 1)] * len(Z), options={"ftol": 1e-12, "maxiter": 1000},
        constraints={"type": "eq", "fun": lambda z: sides @ z - 1, "jac": lambda z: sides})
    return np.sqrt(2 * found.fun)


def gda_by_eigh(K, labels):
    """The N x N generalised eigenproblem as it is printed."""
    N = len(K)
    V = np.equal.outer(labels, labels) / np.bincount(labels)[labels]
    up = K @ (V - 1 / N) @ K
    down = K @ (np.eye(N) - V) @ K + 1e-3 * np.trace(K @ K) / N * np.eye(N)
    return scipy.linalg.eigh((up + up.T) / 2, (down + down.T) / 2)[1][:, : -N_CLASSES : -1]


def ggda_by_eigh(K, labels):
    N = len(K)
    same = np.equal.outer(labels, labels)
    W_w = same - np.eye(N)
    L_b = np.diag((~same).sum(axis=1)) - ~same
    up = K @ (L_b + W_w) @ K
    down = K @ np.diag(W_w.sum(axis=1)) @ K + 1e-3 * np.trace(K @ K) / N * np.eye(N)
    return scipy.linalg.eigh((up + up.T) / 2, (down + down.T) / 2)[1][:, : -N_CLASSES : -1]


def dcc_scatters(X):
    """(P_i Q_ij - P_j Q_ji)(...)^T of each pair at T = I."""
    S = np.zeros((D, D))
    for i in range(len(X)):
        for j in range(i):
            U, _, Vt = np.linalg.svd(X[i].T @ X[j])
            difference = X[i] @ U - X[j] @ Vt.T
            S += difference @ difference.T
    return S


# ------------------------------------------------------------------------------------- figures


def once(call):
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def against_loops():
    sets, X, labels = problem(N_SETS)
    K = gs.projection_kernel(X)
    few = slice(N_LOOP)
    scale = N_SETS * (N_SETS - 1) / (N_LOOP * (N_LOOP - 1))
    loops = {
        "correlation_kernel": (lambda: pairs(correlations, X[few]), scale),
        "mutual_similarity": (lambda: pairs(similarity, X[few]), scale),
        "gda": (lambda: gda_by_eigh(K, labels), 1),
        "ggda": (lambda: ggda_by_eigh(K, labels), 1),
        "dcc, a step": (lambda: dcc_scatters(X[few]), 2 * scale),  # and the objective after it
        "affine_hull_distances": (lambda: pairs(affine, sets[few]), scale),
        "convex_hull_distances": (lambda: pairs(convex, sets[few]), scale),
    }
    calls = calls_of(sets, X, labels)
    for name in calls:
        calls_of(sets[:50], X[:50], labels[:50])[name]()
    gram_seconds = np.median(interleaved([lambda: gs.projection_kernel(X, X.copy())], REPETITIONS))
    print(f"{N_SETS} sets of {N_FRAMES} frames, d = {D}, p = {P}; projection_kernel(X, D): "
          f"{gram_seconds:.3f} s")
    for name, call in calls.items():
        seconds = interleaved([call], REPETITIONS)[0]
        hulls = "hull" in name or "dcc" in name or "affine" in name
        figure(f"{name} (s)", seconds)
        figure(f"{name}: time, of projection_kernel's (1)", seconds / gram_seconds,
               "" if hulls else f"<= {MOST}")
        if name not in loops:
            continue
        loop, factor = loops[name]
        loop_seconds, theirs = once(loop)
        figure(f"{name}: speed over the loop, {factor * loop_seconds:.3g} s (1)",
               factor * loop_seconds / seconds, ">= 1")
        if theirs.shape == (N_LOOP, N_LOOP):
            ours = call()[few, few]
            off = ~np.eye(N_LOOP, dtype=bool)
            print(f"    apart from the loop's by {np.abs(ours - theirs)[off].max():.1e}, largest "
                  f"{theirs.max():.3g}")


def growth(numbers):
    print("Growth, a process each; memory beyond input and output")
    seconds = {}
    for name in calls_of(*problem(20)):
        for n in numbers:
            _, text = run_child(CHILD.format(name=name, n=n))
            memory, took = text.split()
            seconds[name, n] = float(took)
            print(f"  {name:24s} n = {n:5d}: {float(took):8.3f} s, {float(memory):8.1f} MB",
                  flush=True)
        figure(f"{name}: exponent of time from {numbers[-2]} to {numbers[-1]} sets (1)",
               np.log2(seconds[name, numbers[-1]] / seconds[name, numbers[-2]]))
    return max(calls_of(*problem(20)), key=lambda name: seconds[name, numbers[-1]])


def profile_of(name, n):
    call = calls_of(*problem(n))[name]
    call()
    profile = cProfile.Profile()
    profile.runcall(call)
    print(f"The slowest, {name}, {n} sets, profile of the calling thread:")
    table = pstats.Stats(profile).stats
    rows = sorted(((own, where) for where, (_, _, own, _, _) in table.items()), reverse=True)[:6]
    for own, (file, line, function) in rows:
        print(f"  {own:8.3f} s  {function} ({file.rpartition('/')[2]}:{line})")


def main(options):
    warnings.simplefilter("ignore")
    header("The paper's baselines on sets of images")
    against_loops()
    numbers = GROWTH[:2] if options.quick else GROWTH
    profile_of(growth(numbers), numbers[1])


if __name__ == "__main__":
    main(options)
