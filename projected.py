"""Coding on the manifold itself: the nearest Proj(sum_j y_j D_j^) to a subspace.

The paper codes in the embedding space, and leaves open coding with Proj inside the
norm. As it is printed, min ||X^ - Proj(sum_j y_j D_j^)||_F^2 + lam ||y||_1, that
problem has no solution: Proj(c M) = Proj(M) for c > 0, so that the cost of c y is ||X^
- Proj(M)||^2 + c lam ||y||_1, which falls as c does; and at c = 0 there is no Proj.
Here 1^T y = 1, as in gLC and iSC.

With eigenvalues s_1 >= s_2 >= ... and eigenvectors u_a of M = sum_j y_j D_j^, D_j (d,
q),

    d Proj(M) = sum_{a <= q < b} (u_a^T dM u_b) / (s_a - s_b) (u_a u_b^T + u_b u_a^T),

which vanishes along dM = M: the gradient g of the first term has y^T g = 0. So the
conditions of first order are

    g_j = lam (||y||_1 - sign y_j) where y_j != 0, |g_j - lam ||y||_1| <= lam elsewhere.

The sum alone does not make the problem well posed. Where s_q = s_{q+1}, Proj(M + t E)
can be, for any small t, what E makes of the tied eigenvectors: coefficients that cost
nothing turn the point towards X. With D = e_1, e_2 and (e_1 + e_2) / sqrt(2), the code
(1 + t a, 1 + t b, t c) / sum gives every line of that plane, as t -> 0 at the cost lam
alone. Descents do end there, so the gap s_q - s_{q+1} has a least value: with it, and
lam > 0, a minimum exists.

All is computed in the span of the query and of the atoms in use, where matrices are
small.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = ["projected_codes", "projected_losses"]

EPS = np.finfo(np.float64).eps
SHARES = (0.5, 0.2, 0.05, 0.01)  # of lam_max: codes of gSC to start from
LEAST_GAP = 1e-3  # of eigenvalues q and q + 1, over the largest |s|
NEAR = 2.0  # a gap of at most so many times the least counts as closed
FAR = 4.0  # a step is at most so many times as long as the code
# curvature, relative to the largest, below which a direction counts as flat
FLAT = 1e-10


# --------------------------------------------------------------------- codes and losses


ProjectedCodes = namedtuple("ProjectedCodes", "codes cost violation gap n_iter")


def projected_codes(
    X: ArrayLike,
    D: ArrayLike,
    lam: float,
    *,
    positive: bool = False,
    n_neighbors: int | None = None,
    tol: float = 1e-9,
    max_iter: int = 500,
    return_info: bool = False,
) -> np.ndarray | ProjectedCodes:
    """Return projected codes (n, N) of X (n, d, p) over atoms D (N, d, q), Eq. 22.

    1^T y = 1, lam >= 0. min ||X^ - Proj(sum_j y_j D_j^)||_F^2 + lam ||y||_1 subject to
    sum_j y_j = 1, where Proj gives the closest projector of rank q. positive: y >= 0;
    then lam says nothing, and the point is a chordal mean with weights. In a kernel's
    feature space, code the coordinates of kernels.Lift.

    The problem is not convex. Newton steps on an active set of atoms, with a line
    search, never raise the cost. They start from the nearest atom, from the codes of
    gSC with this lambda and with 0.5, 0.2, 0.05 and 0.01 of lam_max, scaled to sum 1,
    and from that of gLC with n_neighbors (default: 5, or N if less); the best end is
    the code, of equals the first. So the cost is at most that of each start, but it may
    be that of a local minimum, above all where atoms are random and spread. Every
    query goes through the same operations whatever the others are: its code is the same
    alone and in any batch, but for the rounding of a start where lam = 0. With lam = 0
    there may also be no minimum, only codes that grow for ever.

    The gap s_q - s_{q+1}, over the largest |s|, never falls below LEAST_GAP = 1e-3; a
    start of a smaller gap, or of a sum <= 0, is left out (with positive, negative
    entries become 0 first). A descent that comes within twice the least gap ends there:
    on the other side of a tie the point is another one, and the code says little. A
    warning tells how many codes did.

    Other descents end when the conditions of first order are violated by at most tol (1
    + lam), or after max_iter steps, or where rounding forbids more; a warning gives the
    largest violation.

    return_info: a named tuple (codes, cost, violation, gap, n_iter), n numbers each but
    for the codes; gap is inf for q = d, where there is one point only.

    ValueError unless X and D are bases of one d, lam >= 0, and the other numbers are in
    range.

    >>> from grassmann_sc import projected, random_subspaces
    >>> D = random_subspaces(3, 10, 2, rng=0)
    >>> projected.projected_codes(D[:1], D, lam=0.1).round(6) + 0.0  # a query that is an atom
    array([[1., 0., 0.]])
    """
    X, D = core.check_queries_and_atoms(X, D)
    n, _, p = X.shape
    N = len(D)
    lam = core.check_number(lam, "lam", least=0)
    n_neighbors = core.check_integer(
        min(5, N) if n_neighbors is None else n_neighbors, "n_neighbors", 1, N
    )
    rules = _Rules(
        lam,
        core.check_flag(positive, "positive"),
        core.check_number(tol, "tol", above=0) * (1 + lam),
        core.check_integer(max_iter, "max_iter", 1),
    )
    return_info = core.check_flag(return_info, "return_info")
    codes = np.empty((n, N), X.dtype)
    cost, violation, gap = np.empty((3, n))
    n_iter = np.empty(n, np.int64)
    atoms = _rows_of_atoms(D)
    K_dd = core.bases_gram(D.astype(np.float64, copy=False))
    for tile in core.query_tiles(n, N):
        K_xd = _grams_one_by_one(X[tile], atoms)
        starts = _starts(K_xd, p, K_dd, rules, n_neighbors)

        def solve(block):
            for i in range(block.start, block.stop):
                at = tile.start + i
                x = np.array(X[at], np.float64, order="C")
                usable = [start[i] for start in starts if not np.isnan(start[i, 0])]
                codes[at], cost[at], violation[at], gap[at], n_iter[at] = _best_end(
                    x, atoms, usable, rules
                )

        core.run_blocks(solve, len(X[tile]), 4)
    _warn_of_ends(violation, gap, rules)
    return ProjectedCodes(codes, cost, violation, gap, n_iter) if return_info else codes


def projected_losses(codes: core.Codes, X: ArrayLike, D: ArrayLike) -> np.ndarray:
    """Return ||X_i^ - Proj(sum_j y_ij D_j^)||_F^2 (n,) for codes (n, N) of X over D.

    X has shape (n, d, p), D (N, d, q). For codes of any sum: only their direction
    matters. A warning where eigenvalues q and q + 1 tie and the point is not unique, as
    for a zero code. ValueError if shapes do not fit.

    >>> from grassmann_sc import projected, random_subspaces
    >>> D = random_subspaces(3, 10, 2, rng=0)
    >>> projected.projected_losses([[2.0, 0.0, 0.0]], D[:1], D).round(6)
    array([0.])
    """
    X, D = core.check_queries_and_atoms(X, D)
    codes = core.dense_codes(core.check_codes(codes, len(X), len(D), "codes"))
    atoms = _rows_of_atoms(D)
    losses = np.empty(len(X))
    tied = np.zeros(len(X), bool)

    def fill(rows):
        for i in range(rows.start, rows.stop):
            active = np.flatnonzero(codes[i]) if codes[i].any() else np.zeros(1, int)
            frame = _frame(X[i].astype(np.float64), atoms, active)
            point = _point(frame, codes[i, active].astype(np.float64))
            losses[i] = point.loss
            tied[i] = point.tied

    core.run_blocks(fill, len(X), 4)
    core.warn_ties(int(tied.sum()), "projected_losses: point")
    return losses


def _warn_of_ends(violation, gap, rules):
    closed = gap <= NEAR * LEAST_GAP
    if closed.any():
        core.warn(
            f"the gap of eigenvalues q and q + 1 closed in {int(closed.sum())} of "
            f"{len(gap)} projected codes, to {NEAR * LEAST_GAP:.2g} or less: their "
            "points turn with the smallest changes of the code"
        )
    late = ~closed & ~(violation <= rules.tol)
    if late.any():
        core.warn(
            f"{int(late.sum())} of {len(late)} projected codes did not converge (max_iter"
            f" = {rules.max_iter}): worst violation of the conditions of first order "
            f"{violation[late].max():.2g}, tolerance {rules.tol:.2g}"
        )


# ------------------------------------------------------------------------------- starts


_Rules = namedtuple("_Rules", "lam positive tol max_iter")


def _grams_one_by_one(X, atoms):
    """||X_i^T D_j||_F^2 (n, N), the same whatever else is in X.

    BLAS products of one shape each.
    """
    N, q, d = atoms.shape

    def products_of(block):  # of one query
        x = np.array(X[block.start], np.float64, order="C")
        products = shared.small_products(
            atoms.reshape(-1, d), x, np.empty((N * q, x.shape[1]))
        )
        return np.square(products).reshape(N, -1).sum(axis=1)

    return np.stack(core.run_blocks(products_of, len(X), 1))


def _starts(K_xd, p, K_dd, rules, n_neighbors):
    """Codes (n, N) to start from.

    Arrays whose rows sum to 1, or are NaN where there is none.
    """
    nearest = np.zeros(K_xd.shape)
    nearest[np.arange(len(K_xd)), K_xd.argmax(axis=1)] = 1
    lasso = core.sparse_coding(K_xd.shape, rules.lam, positive=rules.positive)
    path = core.sparse_coding(K_xd.shape, SHARES, "max", rules.positive)
    lasso.quiet = path.quiet = True  # a start need not be exact
    local = core.local_coding(len(K_dd), K_dd.dtype, n_neighbors)
    others = [lasso(K_dd, K_xd, p), local(K_dd, K_xd, p), *path(K_dd, K_xd, p)]
    return [nearest, *(_with_sum_one(codes, rules.positive) for codes in others)]


def _with_sum_one(codes, positive):
    codes = np.maximum(codes.astype(np.float64), 0 if positive else -np.inf)
    total = codes.sum(axis=1, keepdims=True)
    usable = total > 1e-6 * np.abs(codes).sum(axis=1, keepdims=True)
    return np.where(usable, codes / np.where(usable, total, 1), np.nan)


def _best_end(x, atoms, starts, rules):
    """The end of least cost of the descents from the starts, with the steps of all."""
    least = abs(x.shape[1] - atoms.shape[1]) + rules.lam  # of all costs
    ends = []
    for start in starts:
        end = _descent(x, atoms, start, rules)
        if end is not None:
            ends.append(end)
            if end.cost <= least + 8 * EPS * (1 + least):
                break
    best = min(ends, key=lambda end: end.cost)
    return best._replace(n_iter=sum(end.n_iter for end in ends))


# --------------------------------------------------------- cost, gradient and curvature


def _rows_of_atoms(D):
    """The columns of the atoms D (N, d, q) as rows (N, q, d)."""
    return np.array(D.transpose(0, 2, 1), np.float64, order="C")


# Coordinates of the query x (r, p) and of the atoms in use F (m, r, q) in the
# directions Q (d, r), None for r = d: those of R^d.
_Frame = namedtuple("_Frame", "x F Q")
# What a code stands for: loss = ||X^ - Proj(M)||^2; gap = s_q - s_{q+1} relative to the
# largest |s|, tied if it is zero to rounding; A (r, q) and B (r, r - q), eigenvectors
# of the q largest eigenvalues and of the rest; xa = A^T X (q, p), xb = B^T X (r - q,
# p); over = 1 / (s_a - s_b), (r - q, q).
_Point = namedtuple("_Point", "loss gap tied A B xa xb over")


def _frame(x, atoms, active):
    """Coordinates for the span of x and of the active atoms.

    Where more than q directions are left outside, all of eigenvalue 0, the coordinates
    tell of every tie; else they are those of R^d.
    """
    d, p = x.shape
    chosen = np.array(atoms[active].swapaxes(1, 2), order="C")  # (m, d, q)
    m, _, q = chosen.shape
    if m * q + p + q >= d:
        return _Frame(x, chosen, None)
    Q, R = np.linalg.qr(np.hstack([*chosen, x]))
    F = R[:, : m * q].reshape(-1, m, q).transpose(1, 0, 2)
    return _Frame(R[:, m * q :], np.ascontiguousarray(F), Q)


def _point(frame, y):
    """The _Point of a code y (m,) over the atoms of the frame."""
    x, F, Q = frame
    m, r, q = F.shape
    rows = F.transpose(1, 0, 2).reshape(r, m * q)
    s, V = np.linalg.eigh((rows * np.repeat(y, q)) @ rows.T)  # ascending
    A = V[:, r - q :]
    B = V[:, : r - q]
    below = s[: r - q]
    next_one = below[-1] if r > q else -np.inf
    if Q is not None:
        next_one = max(next_one, 0.0)
    largest = np.abs(s).max(initial=1e-300)
    gap = (s[r - q] - next_one) / largest
    xb = B.T @ x
    # rounding is of the terms, which may cancel
    size = np.sqrt(q) * np.linalg.norm(y)
    tied = gap * largest <= 8 * EPS * max(r * largest, size)
    over = 1 / np.where(tied, 1, s[r - q :] - below[:, None])
    loss = q - x.shape[1] + 2 * (xb * xb).sum()
    return _Point(loss, gap, tied, A, B, A.T @ x, xb, over)


def _slopes(frame, point):
    """(g, H): gradient and curvature of the loss, for the atoms of the frame.

    To second order Proj(M + t E) is spanned by A + B (t Z + t^2 Y), where Z = (B^T E A)
    o over and Y = (B^T E B Z - Z A^T E A) o over, o entry by entry.
    """
    m = len(frame.F)
    Fa = np.matmul(point.A.T, frame.F)  # (m, q, q)
    Fb = np.matmul(point.B.T, frame.F)  # (m, r - q, q)
    Z = np.matmul(Fb, Fa.transpose(0, 2, 1)) * point.over  # (m, r - q, q)
    cross = point.xb @ point.xa.T  # B^T X^ A
    W = cross * point.over
    g = -4 * (Z.reshape(m, -1) @ cross.ravel())
    V = np.matmul(Fb, np.matmul(Fb.transpose(0, 2, 1), W))
    V -= np.matmul(np.matmul(W, Fa), Fa.transpose(0, 2, 1))
    T = np.matmul(point.xb, np.matmul(point.xb.T, Z)) - np.matmul(
        Z, point.xa @ point.xa.T
    )
    Z = Z.reshape(m, -1)
    half = Z @ (V + T / 2).reshape(m, -1).T
    return g, -4 * (half + half.T)


def _gradient_of_all(frame, point, atoms):
    """g_j = -4 <D_j^T A, D_j^T B W> (N,) of every atom, W = (B^T X^ A) o over."""
    N, q, d = atoms.shape
    W = point.xb @ point.xa.T * point.over
    both = np.hstack([point.A, point.B @ W])  # (r, 2 q)
    if frame.Q is not None:
        both = frame.Q @ both
    products = shared.small_products(
        atoms.reshape(-1, d), both, np.empty((N * q, 2 * q))
    ).reshape(N, q, 2 * q)
    return -4 * (products[:, :, :q] * products[:, :, q:]).sum(axis=(1, 2))


# ------------------------------------------------------------------------------ descent


_End = namedtuple("_End", "code cost violation gap n_iter")

# Where a descent is; of the atoms in use active, sign and y (m,), y_j = 0 of those just
# entered.
_State = namedtuple("_State", "active sign y frame point cost")


def _descent(x, atoms, start, rules):
    """The end of the descent from a code (N,), or None if the gap is too small there."""
    active = np.flatnonzero(start)
    y = start[active]
    frame = _frame(x, atoms, active)
    point = _point(frame, y)
    if point.gap < LEAST_GAP:
        return None
    state = _State(active, np.sign(y), y, frame, point, _cost(point, y, rules))
    n_iter = 0
    stalled = 0
    before = np.inf
    while True:
        state, n_steps = _newton_on_active(state, rules, rules.max_iter - n_iter)
        n_iter += n_steps
        excess = _violations(state, atoms, rules)
        worst = np.abs(excess).max()
        stalled = 0 if state.cost < before else stalled + 1
        before = min(before, state.cost)
        ended = worst <= rules.tol or n_iter >= rules.max_iter or stalled > 3
        if ended or state.point.gap <= NEAR * LEAST_GAP:
            code = np.zeros(len(start))
            code[state.active] = state.y / state.y.sum()
            return _End(code, state.cost, worst, state.point.gap, n_iter)
        most = 1 if stalled else 1 + len(state.active) // 2
        state = _with_new_atoms(state, excess, most, x, atoms)


def _cost(point, y, rules):
    return np.inf if point.gap < LEAST_GAP else point.loss + rules.lam * np.abs(y).sum()


def _violations(state, atoms, rules):
    """By how much g_j breaks the conditions of first order (N,).

    The sign is the one that y_j wants.
    """
    g = _gradient_of_all(state.frame, state.point, atoms)
    # of minus the cost, but for the l1 norm
    slope = rules.lam * np.abs(state.y).sum() - g
    excess = slope - np.clip(
        slope, -np.inf if rules.positive else -rules.lam, rules.lam
    )
    excess[state.active] = slope[state.active] - rules.lam * state.sign
    return excess


def _with_new_atoms(state, excess, most, x, atoms):
    """The state with up to most new atoms, those that break the conditions by most."""
    outside = np.abs(excess)
    outside[state.active] = 0
    order = np.argsort(-outside, kind="stable")[:most]
    new = order[outside[order] > 0.25 * outside[order[0]]]
    if len(new) == 0:
        return state
    active = np.concatenate([state.active, new])
    y = np.concatenate([state.y, np.zeros(len(new))])
    sign = np.concatenate([state.sign, np.sign(excess[new])])
    frame = _frame(x, atoms, active)
    return _State(active, sign, y, frame, _point(frame, y), state.cost)


def _newton_on_active(state, rules, max_steps):
    """Newton steps on the active atoms with their signs.

    An atom leaves as it reaches zero. Returns the state where the conditions of first
    order hold among the active atoms, or no step lowers the cost, and the number of
    steps.
    """
    n_steps = 0
    while len(state.active) > 1 and n_steps < max_steps:
        g, H = _slopes(state.frame, state.point)
        slope = g + rules.lam * state.sign
        slope -= slope.mean()
        step = _newton_step(slope, H)
        wrong = (state.y == 0) & (state.sign * step <= 0)  # new, and better outside
        if wrong.any():
            state = _keep(state, ~wrong)
            continue
        if np.abs(slope).max() <= rules.tol / 4:
            return state, n_steps
        n_steps += 1
        after = _search(state, slope, step, rules)
        if after is None:
            break
        state = after
        if state.point.gap <= NEAR * LEAST_GAP:
            break
    return _keep(state, state.y != 0), n_steps


def _newton_step(slope, H):
    """-|H|^-1 slope among the steps of sum 0.

    |H| has the absolute values of H's eigenvalues.
    """
    H = H - H.mean(axis=0)
    H -= H.mean(axis=1)[:, None]
    values, vectors = np.linalg.eigh(H)
    size = np.abs(values)
    size = np.maximum(size, max(FLAT * size.max(), 1e-12))
    step = -vectors @ ((vectors.T @ slope) / size)
    return step - step.mean()


def _keep(state, keep):
    """The state without the active atoms that are not kept, whose y_j are zero."""
    return state._replace(
        active=state.active[keep],
        sign=state.sign[keep],
        y=state.y[keep],
        frame=state.frame._replace(F=state.frame.F[keep]),
    )


def _search(state, slope, step, rules):
    """The state after a step that lowers the cost, or None.

    No coefficient changes its sign.
    """
    longest = FAR * np.abs(state.y).sum()
    step = step * min(1.0, longest / max(np.abs(step).sum(), 1e-300))
    shrinks = state.sign * step < 0
    exits = np.full(len(step), np.inf)
    exits[shrinks] = -state.y[shrinks] / step[shrinks]
    t = min(1.0, exits.min())
    descent = slope @ step
    noise = 16 * EPS * (1 + abs(state.cost))
    for _ in range(50):
        y = state.y + t * step
        arrived = exits <= t
        y[arrived] = 0
        y[~arrived] += (1 - y.sum()) / np.count_nonzero(~arrived)
        point = _point(state.frame, y)
        cost = _cost(point, y, rules)
        if cost <= state.cost + 1e-4 * t * descent:
            return _keep(state._replace(y=y, point=point, cost=cost), ~arrived)
        if -t * descent < noise and cost <= state.cost + noise:
            return _nearer(state, slope, y, point, cost, arrived, rules)
        t /= 2
    return None


def _nearer(state, slope, y, point, cost, arrived, rules):
    """The state after a step too small for the cost to tell, or None.

    It must make the slopes smaller.
    """
    after = _keep(
        state._replace(y=y, point=point, cost=min(cost, state.cost)), ~arrived
    )
    g, _ = _slopes(after.frame, after.point)
    new = g + rules.lam * after.sign
    new -= new.mean()
    return (
        after
        if arrived.any() or np.abs(new).max() < 0.9 * np.abs(slope).max()
        else None
    )
