"""Projected coding beside gSC; its ends; log-Euclidean dictionaries beside a Riemannian gradient.

    python -m benchmarks.projected

Subspaces are normal around one point of G(3, d), so that codes over N of them mean something. The
peer of the log-Euclidean dictionary is the published way: Barzilai-Borwein steps of all atoms along
their Riemannian gradients, through the adjoint of log, between the same codings.
"""

import time
import warnings

from benchmarks.options import parser_of

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parser_of("projected", __doc__).parse_args()

import numpy as np
from scipy.optimize import minimize

import grassmann_sc as gs
from benchmarks.common import figure, header, interleaved
from grassmann_sc import intrinsic, projected
from grassmann_sc.baselines import tangent

P = 3
LAM = 0.3
SPREAD = 0.6  # expected geodesic distance from the common point
SIZES = [50, 200, 1000]  # atoms
DIMENSIONS = [500, 1000, 2000, 4000]
N_TIMED = 20  # queries
N_CODES = 1000
N_PROBLEMS = 100
N_STARTS = 50
STEPS = 5  # of the gradient between codings


def points(n, d, spread, seed, p=P):
    """n subspaces around one."""
    rng = np.random.default_rng(seed)
    base = np.eye(d, p)
    H = rng.standard_normal((n, d, p))
    H[:, :p] = 0
    return intrinsic.exp_map(base, spread / np.sqrt(p * (d - p)) * H)


def by_riemannian_gradient(X, atoms, lam, base, seconds, target=-np.inf):
    """(cost, seconds) of the peer, after so many seconds or when its cost is at most target."""
    start = time.perf_counter()
    length = len(X[0]) * X.shape[2]
    H = intrinsic.log_map(base, X).reshape(len(X), length)
    step = None
    while True:
        y = tangent.log_euclidean_codes(X, atoms, lam, base)

        def evaluate(atoms):
            T = intrinsic.log_map(base, atoms)
            R = y @ T.reshape(-1, length) - H
            W = 2 * (y.T @ R).reshape(T.shape)
            return (R * R).sum() + lam * np.abs(y).sum(), intrinsic.log_adjoint(base, atoms, W)

        cost, G = evaluate(atoms)
        for _ in range(STEPS):
            elapsed = time.perf_counter() - start
            if elapsed >= seconds or cost <= target:
                return cost, elapsed
            step = step or 1 / (2 * (y * y).sum(axis=0).max())
            while True:
                trial = gs.orthonormalize(intrinsic.exp_map(atoms, -step * G))
                new_cost, new_G = evaluate(trial)
                if new_cost <= cost - 1e-4 * step * (G * G).sum() or step < 1e-12:
                    break
                step /= 2
            change = new_G - (G - trial @ (trial.swapaxes(1, 2) @ G))
            moved = -step * G
            curvature = (moved * change).sum()
            atoms = trial
            G = new_G
            cost = new_cost
            step = (moved * moved).sum() / curvature if curvature > 0 else 2 * step


def ours(X, atoms, lam, base, n_iter):
    return tangent.log_euclidean_dictionary(
        X, len(atoms), lam, base=base, init=atoms, n_iter=n_iter, tol=0
    )


def by_random_starts(x, D, lam, rng):
    """The least cost that sequential quadratic programming finds from random codes."""
    N = len(D)

    def cost(z):
        y = z[:N] - z[N:]
        losses, gradient = projected.projected_losses(y[None], x, D, return_gradient=True)
        return losses[0] + lam * z.sum(), np.concatenate([gradient[0], -gradient[0]]) + lam

    sign = np.repeat([1.0, -1.0], N)
    sum_one = {"type": "eq", "fun": lambda z: sign @ z - 1, "jac": lambda z: sign}
    best = np.inf
    for _ in range(N_STARTS):
        start = np.concatenate([rng.dirichlet(np.ones(N)), np.zeros(N)])
        found = minimize(
            cost,
            start,
            jac=True,
            bounds=[(0, None)] * (2 * N),
            method="SLSQP",
            constraints=sum_one,
            options={"ftol": 1e-12, "maxiter": 200},
        )
        if abs(sign @ found.x - 1) < 1e-6:
            best = min(best, found.fun)
    return best


warnings.filterwarnings("ignore", "the gap of eigenvalues|.*did not converge|.*right angles")
header("Projected coding")
print(f"{N_TIMED} queries, G({P}, 100), lambda = {LAM}, one point and noise of length {SPREAD}")
for N in SIZES:
    both = points(N_TIMED + N, 100, SPREAD, 0)
    X = both[:N_TIMED]
    D = both[N_TIMED:]
    found = projected.projected_codes(X, D, LAM, return_info=True)
    gsc, mine = interleaved(
        [lambda: gs.gsc(X, D, LAM), lambda: projected.projected_codes(X, D, LAM)], 3
    )
    figure(f"N = {N}: gSC (ms a code)", 1e3 * gsc / N_TIMED)
    figure(
        f"N = {N}: projected (ms a code); {np.count_nonzero(found.codes) / N_TIMED:.0f} atoms, "
        f"{found.n_iter.mean():.0f} steps, {(found.gap < 2e-3).mean():.0%} at ties",
        1e3 * mine / N_TIMED,
    )
print(f"Growth with d: {N_TIMED} queries, 20 atoms")
seconds = []
for d in DIMENSIONS:
    both = points(N_TIMED + 20, d, SPREAD, 1)
    X = both[:N_TIMED]
    D = both[N_TIMED:]
    found = projected.projected_codes(X, D, LAM, return_info=True)
    (mine,) = interleaved([lambda: projected.projected_codes(X, D, LAM)], 3)
    seconds.append(mine / N_TIMED)
    figure(f"d = {d}: projected (ms a code); {found.n_iter.mean():.0f} steps", 1e3 * seconds[-1])

both = points(N_CODES + 40, 30, SPREAD, 2)
found = projected.projected_codes(both[:N_CODES], both[N_CODES:], LAM, return_info=True)
closed = found.gap < 2e-3
print(f"{N_CODES} codes over 40 atoms of G({P}, 30): {closed.sum()} ended at a tie")
figure(
    "largest violation of the conditions of first order, other codes",
    found.violation[~closed].max(),
    "<= 1e-8",
)

rng = np.random.default_rng(3)
wins = 0
ties = 0
worst = 0.0
for i in range(N_PROBLEMS):
    both = points(7, 6, 0.8, 100 + i, p=2)
    found = projected.projected_codes(both[:1], both[1:], 0.1, return_info=True)
    try:
        baseline = by_random_starts(both[:1], both[1:], 0.1, rng)
    except ValueError:  # it met a tie
        ties += 1
        continue
    wins += found.cost[0] <= baseline * (1 + 1e-6)
    worst = max(worst, found.cost[0] / baseline - 1)
print(
    f"{N_PROBLEMS} problems of 6 atoms on G(2, 6), {N_STARTS} random starts of SLSQP each; "
    f"{ties} met a tie"
)
figure(
    "problems in which no random start is better, of all but those (1)", wins / (N_PROBLEMS - ties)
)
figure("largest relative excess of our cost over the best of the starts", worst)

print("Log-Euclidean dictionary, 20 iterations, and the peer: the same first atoms")
for n, d, N, lam in [(300, 30, 20, 0.1), (500, 100, 40, 0.1), (300, 30, 20, 1.0)]:
    X = points(n, d, 1.2, 5)
    base = np.eye(d, P)
    atoms = X[:N].copy()
    ours(X, atoms, lam, base, 1)
    start = time.perf_counter()
    mine = ours(X, atoms, lam, base, 20)
    elapsed = time.perf_counter() - start
    cost, _ = by_riemannian_gradient(X, atoms, lam, base, elapsed)
    print(
        f"G({P}, {d}), n = {n}, N = {N}, lambda = {lam}: cost {mine.costs[0]:.4g} at first, "
        f"{mine.costs[-1]:.6g} after {elapsed:.2f} s; the gradient's {cost:.6g}"
    )
    cost, late = by_riemannian_gradient(X, atoms, lam, base, 10 * elapsed, mine.costs[-1])
    figure(
        f"seconds of the gradient to our cost over ours, at most 10; its cost {cost:.6g}",
        late / elapsed,
    )
