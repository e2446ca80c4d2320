"""Learning, against the paper's equations in d x d matrices.

Dense NumPy says of every step what it must reach: an update of atoms the leading
eigenvectors, a code the minimum (by that of coding), a stream the same from sums that
fade. The steps are compared one by one, each from where the library stood before it, so
that rounding cannot lead two runs apart and ties of eigenvalues do not matter.
"""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
from grassmann_sc import learn
from grassmann_sc.large import streams
from grassmann_sc.strategies import coding_problem, explicit_gram
from oracles import booleans, cost, hat
from problems import codings, drawn_atoms, samples

TOL = 1e-8  # of codes, relative to norm2, and of eigenvalues
UNUSED = 1e-6  # of the largest use: less is none
SEEDS = st.integers(0, 99)

# ----------------------------------------------------------------------- the equations


def problem_of(X, D, lam):
    return coding_problem(X.astype(float), D.astype(float), lam or 0.0)


def statistics(X, codes, w):
    """A_r = sum_i w_i y_ir X_i^, B = Y^T diag(w) Y, and what the rounding of A_r is
    relative to; each atom may have weights (N, n) of its own.
    """
    used = w * codes.T
    A = np.einsum("ri,iab->rab", used, hat(X.astype(float)))
    return A, used @ codes, np.abs(used).sum(axis=1)


def check_moves(sums, before, after, tol, tiny=0.0, skip=()):
    """Each atom in turn, the others as they then are, has the leading eigenvectors of
    S_r = A_r - sum_{j != r} B_rj D_j^, or the value of them; one of B_rr = 0 stays.
    """
    A, B, size = sums
    D = hat(before.astype(float))
    p = before.shape[2]
    for r, V in enumerate(after.astype(float)):
        assert np.abs(V.T @ V - np.eye(p)).max() <= tol, "not orthonormal"
        if B[r, r] == 0:
            assert np.allclose(hat(V), D[r], atol=tol), "moved, though of no use"
        others = np.delete(np.arange(len(D)), r)
        S = A[r] - np.einsum("j,jab->ab", B[r, others], D[others])
        lost = np.linalg.eigvalsh(S)[-p:].sum() - np.trace(V.T @ S @ V)
        scale = p * (size[r] + np.abs(B[r]).sum()) + tiny
        assert r in skip or lost <= tol * scale, "not the leading eigenvectors"
        D[r] = hat(V)


def check_codes(problem, codes, positive, eps):
    """No sparse code costs more than the least, which test_codes.py holds to the
    optimality conditions, by more than the tolerance of the solver.
    """
    K = problem.K_dd
    options = dict(norm2=problem.norm2, positive=positive)
    best = core.sparse_codes(K, problem.K_xd, problem.lam, **options)
    rounding = eps * (1 + np.abs(codes).sum(axis=1)) ** 2
    lost = (cost(problem, codes) - cost(problem, best)) / problem.norm2
    assert (lost <= 2 * TOL + rounding).all(), "codes are not optimal"
    assert not positive or (codes >= 0).all()


def check_replaced(X, losses, atoms, eps):
    """Atoms of no use became samples; the first of them that of the largest loss."""
    p = X.shape[2]
    near = explicit_gram(X, atoms)
    assert (p - near.max(axis=0) <= eps * p).all(), "an atom became no sample"
    worst = losses[near[:, 0] >= p * (1 - eps)].max()
    assert worst >= losses.max() - eps * (1 + losses.max()), "not the worst coded"


# ------------------------------------------------------------------------------- steps


@settings(max_examples=500)
@given(st.data(), samples(), SEEDS)
def test_each_iteration_of_gdl_follows_the_equations(data, m, seed):
    """The move of the atoms, the atoms that are replaced, costs and codes."""
    how = data.draw(codings(m))
    init = drawn_atoms(data.draw, m) if data.draw(booleans) else "kmeans++"
    options = how | dict(init=init, tol=0, sample_weight=m.weights)
    states = [learn.gdl(m.X, m.n_atoms, n_iter=0, rng=seed, **options)]
    learn.gdl(m.X, m.n_atoms, n_iter=3, rng=seed, callback=states.append, **options)
    for before, after in zip(states, states[1:]):
        check_iteration(m, before, after)
        codes = after.codes[m.used].astype(float)
        if after.lam is None:
            rounding = m.eps * (1 + np.abs(codes).sum())
            assert np.abs(codes.sum(axis=1) - 1).max() <= rounding
        else:
            problem = problem_of(m.X[m.used], after.atoms, after.lam)
            check_codes(problem, codes, how["positive"], m.eps)


def check_iteration(m, before, after):
    """One iteration of gdl from a state: the atoms with the codes before, then costs."""
    both = [state.codes.astype(float) for state in (before, after)]
    moved = after.atoms.copy()
    idle = np.flatnonzero(~both[0][m.used].any(axis=0))
    if len(idle):
        moved[idle] = before.atoms[idle]
        losses = cost(problem_of(m.X, moved, after.lam), both[0])[m.used]
        check_replaced(m.X[m.used], losses, after.atoms[idle], m.eps)
    # in units of the largest weight of each atom: no common unit may hold all
    weights = np.where(both[0].T != 0, m.given, 0)
    largest = np.maximum(weights.max(axis=1, keepdims=True), 1e-300)
    sums = statistics(m.X, both[0], weights / largest)
    check_moves(sums, before.atoms, moved, m.eps + TOL, m.tiny)
    assert after.n_replaced == before.n_replaced + len(idle)
    problem = problem_of(m.X, after.atoms, after.lam)
    expected = [m.w @ cost(problem, y) for y in both]
    costs = after.costs[-3:] / m.total
    lengths = np.max([np.abs(y).sum(axis=1) for y in both], axis=0)
    bound = m.eps * (m.w * m.p * (1 + lengths) ** 2).sum()
    assert np.abs(costs[1:] - expected).max() <= bound, "costs are others"
    assert after.lam is None or (np.diff(costs) <= bound).all(), "costs rise"


# ----------------------------------------------------------------------------- streams


class DenseStream:
    """What OnlineGDL says of itself, in sums of d x d matrices: A_r and B, which fade by
    (1 - 1/t)^forgetting before batch t.
    """

    def __init__(self, m, forgetting):
        self.sums = statistics(m.X[:0], np.zeros((0, m.n_atoms)), m.w[:0])
        self.forgetting = forgetting
        self.n_updates = 0
        self.since = []  # (samples, losses) since atoms moved
        self.eps = m.eps

    def collect(self, X, w, codes, losses):
        self.sums = [a + b for a, b in zip(self.sums, statistics(X, codes, w))]
        self.since.append((X, losses))

    def check_update(self, before, learner, n_replaced):
        """The atoms after an update are as they were; or moved, those of no use
        replaced: then the learner waits for other samples coded worst.
        """
        after = learner.atoms
        if learner.state()["worst"].size:
            assert np.array_equal(before, after), "atoms moved too early"
        else:
            use = self.sums[1].diagonal()
            idle = np.flatnonzero(use <= UNUSED * use.max())
            assert n_replaced == len(idle)
            self.check_moved(before, after, idle)
            for held in (*self.sums, self.sums[1].T):
                held[idle] = 0
            self.since = []
        self.n_updates += 1
        fade = (1 - 1 / (self.n_updates + 1)) ** self.forgetting
        self.sums = [fade * held for held in self.sums]

    def check_moved(self, before, after, idle):
        """By eigenvectors where d <= 16 p, else by steps that do not raise the cost."""
        _, d, p = before.shape
        moved = after.copy()
        tol = self.eps + TOL
        if len(idle):  # where they went before is not known, and matters little
            moved[idle] = before[idle]
            tol += np.sqrt(UNUSED)
            X, losses = map(np.concatenate, zip(*self.since))
            check_replaced(X, losses, after[idle], self.eps)
        if d <= 16 * p:
            check_moves(self.sums, before, moved, tol, skip=idle)
        rise = self.cost(moved) - self.cost(before)
        scale = p * (self.sums[2].sum() + np.abs(self.sums[1]).sum())
        assert rise <= tol * scale, "the cost of all statistics rises"

    def cost(self, D):
        """sum_i w_i ||X_i^ - sum_j y_ij D_j^||^2 but for what no atom changes."""
        P = hat(D.astype(float))
        return (self.sums[1] * explicit_gram(D, D)).sum() - 2 * (self.sums[0] * P).sum()


@settings(max_examples=300)
@given(st.data(), samples(most=60), st.sampled_from([0, 0.5, 2.0]), SEEDS)
def test_streams_follow_the_equations(data, m, forgetting, seed):
    """Batches of any size, some of them collected by a fork."""
    n = len(m.X)
    m.w = m.given  # batches of 1e-300 and of 1e300 have no common unit
    m.total = 1.0
    how = data.draw(codings(m))
    enough = -(-n * m.p // 4) + 1  # nothing is cut off
    rank = data.draw(st.sampled_from([None, m.d, enough]))
    init = drawn_atoms(data.draw, m) if data.draw(booleans) else "kmeans++"
    options = how | dict(init=init, rank=rank, forgetting=forgetting)
    learner = streams.OnlineGDL(m.n_atoms, **options, rng=seed)
    dense = DenseStream(m, forgetting)
    cuts = data.draw(st.lists(st.integers(1, n), max_size=5, unique=True), "cuts")
    waiting = []
    for rows in np.split(np.arange(n), sorted(cuts)):
        if m.used[rows].any():
            begun = learner.atoms is not None
            learner = collected(data.draw, learner, m, rows)
            waiting += [*(rows if begun else rows[m.used[rows]])]
            if learner.atoms is not None:
                if are_repeated(learner.atoms):
                    return  # how they divide a coefficient is not determined
                check_batch(dense, learner, m, np.array(waiting), how)
                waiting = []


def are_repeated(atoms):
    """Is an atom, or nearly, another once more?"""
    alike = core.bases_gram(atoms)
    np.fill_diagonal(alike, 0)
    return alike.max() > atoms.shape[2] * (1 - 1e-6)


def collected(draw, learner, m, rows):
    """The learner that has collected these samples, or their half beside a fork's,
    merged.
    """
    halves = np.array_split(rows, 2)
    apart = learner.atoms is not None and all(m.used[half].any() for half in halves)
    if not apart or draw(booleans):
        return learner.collect(m.X[rows], None if m.weights is None else m.given[rows])
    fork = learner.fork()
    for stream, half in zip((learner, fork), halves):
        stream.collect(m.X[half], m.given[half])
    return learner.merge(fork)


def check_batch(dense, learner, m, rows, how):
    """What was collected since the last update, then that update."""
    used = m.used[rows]
    rows = rows[used]
    X = m.X[rows]
    w = m.w[rows]
    before = learner.atoms.copy()
    k = core.bases_gram(X.astype(before.dtype), before)
    codes = learner.coder.code(core.bases_gram(before), k, core.squared_norm(X))
    problem = problem_of(X, before, learner.lam)
    if learner.lam is not None:
        check_codes(problem, codes, how["positive"], m.eps)
    losses = cost(problem, codes)
    dense.collect(X, w, codes, losses)
    bound = m.eps * (w * m.p * (1 + np.abs(codes).sum(axis=1)) ** 2).sum()
    assert abs(learner.loss / m.total - w @ losses) <= bound
    assert abs(learner.weight / m.total - w.sum()) <= m.eps * w.sum()
    replaced = learner.n_replaced
    learner.update()
    dense.check_update(before, learner, learner.n_replaced - replaced)
    assert abs(learner.cost * w.sum() - w @ losses) <= bound
