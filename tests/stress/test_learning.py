"""Learning, against the paper's equations in d x d matrices.

Dense NumPy says of every step what it must reach: an update of atoms the leading
eigenvectors, a code the minimum (by its duality gap), a stream the same from sums that
fade. The steps are compared one by one, each from where the library stood before it, so
that rounding cannot lead two runs apart and ties of eigenvalues do not matter.
"""

import os
import tempfile

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
from grassmann_sc import learn, streams
from grassmann_sc.strategies import explicit_gram
from oracles import booleans, hat
from problems import codings, drawn_atoms, samples

TOL = 1e-8  # of codes, relative to norm2, and of eigenvalues
FRESH = 0.3  # the share of Y^T Y that is new when a stream moves its atoms
UNUSED = 1e-6  # of the largest use: less is none
SEEDS = st.integers(0, 99)

# ----------------------------------------------------------------------- the equations


def residuals(X, D, codes):
    """X_i^ - sum_j y_ij D_j^."""
    return hat(X.astype(float)) - np.einsum("nj,jab->nab", codes, hat(D.astype(float)))


def loss(X, D, codes, lam=0.0):
    """||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1 of each sample."""
    square = np.square(residuals(X, D, codes)).sum(axis=(1, 2))
    return square + lam * np.abs(codes).sum(axis=1)


def statistics(X, codes, w):
    """A_r = sum_i w_i y_ir X_i^, B = Y^T diag(w) Y, and what the rounding of A_r is
    relative to.
    """
    used = w[:, None] * codes
    A = np.einsum("ir,iab->rab", used, hat(X.astype(float)))
    return A, codes.T @ used, np.abs(used).sum(axis=0)


def statistics_by_atom(m, codes):
    """The same, those of each atom in the largest of its weights: no common unit may
    hold all.
    """
    weights = np.ones(len(m.X)) if m.weights is None else m.weights
    rows = []
    for r, y in enumerate(codes.T):
        mine = np.where(y != 0, weights, 0)
        of_all = statistics(m.X, codes, mine / (mine.max() or 1.0))
        rows.append([part[r] for part in of_all])
    return [np.array(part) for part in zip(*rows)]


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


def check_gaps(X, D, codes, lam, positive, eps):
    """No code costs more than the least by more than the solver's tolerance: the duality
    gap, with the dual point s R of R = X^ - sum_j y_j D_j^, bounds what is lost.
    """
    R = residuals(X, D, codes)
    products = np.einsum("nab,jab->nj", R, hat(D.astype(float)))
    largest = (products if positive else np.abs(products)).max(axis=1)
    s = np.minimum(1, lam / 2 / np.maximum(largest, 1e-300))
    square = np.square(R).sum(axis=(1, 2))
    l1 = np.abs(codes).sum(axis=1)
    dual = 2 * s * (R * hat(X.astype(float))).sum(axis=(1, 2)) - s**2 * square
    bound = 2 * TOL * X.shape[2] + eps * X.shape[2] * (1 + l1) ** 2
    assert (square + lam * l1 - dual <= bound).all(), "codes are not optimal"
    assert not positive or (codes >= 0).all()


def check_replaced(X, losses, atoms, eps, unused="worst"):
    """Atoms of no use became samples; the first of them that of the largest loss."""
    p = X.shape[2]
    near = explicit_gram(X, atoms)
    assert (p - near.max(axis=0) <= eps * p).all(), "an atom became no sample"
    if unused == "worst":
        worst = losses[near[:, 0] >= p * (1 - eps)].max()
        assert worst >= losses.max() - eps * (1 + losses.max()), "not the worst coded"


# ------------------------------------------------------------------------------- steps


@settings(max_examples=500)
@given(st.data(), samples(), st.integers(-6, 6), st.sampled_from([0.2, 0.6, 1]))
def test_atoms_move_to_the_leading_eigenvectors(data, m, power, share):
    D = drawn_atoms(data.draw, m)
    codes = 10.0**power * m.rng.standard_normal((len(m.X), m.n_atoms))
    codes = (codes * (m.rng.random(codes.shape) < share)).astype(m.dtype)
    after = learn.update_atoms(m.X, D, codes, sample_weight=m.weights)
    assert after.dtype == m.dtype
    sums = statistics_by_atom(m, codes.astype(float))
    check_moves(sums, D, after, m.eps + TOL, m.tiny * np.abs(codes).max())


@settings(max_examples=500)
@given(st.data(), samples(), SEEDS, st.sampled_from(["worst", "random", "keep"]))
def test_each_iteration_of_gdl_follows_the_equations(data, m, seed, unused):
    """The move of the atoms, the atoms that are replaced, costs and codes."""
    how = data.draw(codings(m))
    init = drawn_atoms(data.draw, m) if data.draw(booleans) else "kmeans++"
    options = how | dict(init=init, unused=unused, tol=0, sample_weight=m.weights)
    states = [learn.gdl(m.X, m.n_atoms, n_iter=0, rng=seed, **options)]
    learn.gdl(m.X, m.n_atoms, n_iter=3, rng=seed, callback=states.append, **options)
    for before, after in zip(states, states[1:]):
        check_iteration(m, before, after, unused)
        codes = after.codes[m.used].astype(float)
        if after.lam is None:
            rounding = m.eps * (1 + np.abs(after.codes).sum())
            assert np.abs(after.codes.sum(axis=1) - 1).max() <= rounding
        else:
            positive = how["positive"]
            check_gaps(m.X[m.used], after.atoms, codes, after.lam, positive, m.eps)


def check_iteration(m, before, after, unused):
    """One iteration of gdl from a state: the atoms with the codes before, then costs."""
    lam = after.lam or 0.0
    both = [state.codes.astype(float) for state in (before, after)]
    moved = after.atoms.copy()
    of_use = both[0][m.used].any(axis=0) | (unused == "keep")
    idle = np.flatnonzero(~of_use)
    if len(idle):
        moved[idle] = before.atoms[idle]
        losses = loss(m.X, moved, both[0], lam)[m.used]
        check_replaced(m.X[m.used], losses, after.atoms[idle], m.eps, unused)
    sums = statistics_by_atom(m, both[0])
    check_moves(sums, before.atoms, moved, m.eps + TOL, m.tiny)
    assert after.n_replaced == before.n_replaced + len(idle)
    expected = [m.w @ loss(m.X, after.atoms, y, lam) for y in both]
    costs = after.costs[-3:] / m.total
    lengths = np.max([np.abs(y).sum(axis=1) for y in both], axis=0)
    bound = m.eps * (m.w * m.p * (1 + lengths) ** 2).sum()
    assert np.abs(costs[1:] - expected).max() <= bound, "costs are others"
    assert after.lam is None or (np.diff(costs) <= bound).all(), "costs rise"


# ----------------------------------------------------------------------------- streams


class DenseStream:
    """What OnlineGDL says of itself, in sums of d x d matrices: A_r, B and the share of
    B that is new, which fade by (1 - 1/t)^forgetting before batch t.
    """

    def __init__(self, m, forgetting):
        self.sums = statistics(m.X[:0], np.zeros((0, m.n_atoms)), m.w[:0])
        self.new = 0.0
        self.forgetting = forgetting
        self.n_updates = 0
        self.since = []  # (samples, losses) since atoms moved
        self.eps = m.eps

    def collect(self, X, w, codes, losses):
        self.sums = [a + b for a, b in zip(self.sums, statistics(X, codes, w))]
        self.new += (w @ np.square(codes)).sum()
        self.since.append((X, losses))

    def check_update(self, before, after, n_replaced):
        """The atoms after an update are as they were; or moved, those of no use
        replaced.
        """
        A, B, size = self.sums
        total = np.trace(B)
        due = self.new >= FRESH * total
        if abs(self.new - FRESH * total) < 1e-9 * total:  # as rounding wants it
            due = not np.array_equal(before, after)
        assert due or np.array_equal(before, after), "atoms moved too early"
        if due:
            use = B.diagonal()
            idle = np.flatnonzero(use <= UNUSED * use.max())
            assert n_replaced == len(idle)
            self.check_moved(before, after, idle)
            for held in (A, B, B.T, size):
                held[idle] = 0
            self.new = 0.0
            self.since = []
        self.n_updates += 1
        fade = (1 - 1 / (self.n_updates + 1)) ** self.forgetting
        self.sums = [fade * held for held in self.sums]
        self.new *= fade

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
        products = np.einsum("jab,lab->jl", P, P)
        return (self.sums[1] * products).sum() - 2 * (self.sums[0] * P).sum()


@settings(max_examples=300)
@given(st.data(), samples(most=60), st.sampled_from([0, 0.5, 2.0]), SEEDS)
def test_streams_follow_the_equations(data, m, forgetting, seed):
    """Batches of any size, some of them collected by a fork, the learner now and then
    in a file.
    """
    n = len(m.X)
    if m.weights is not None:
        m.w = m.weights  # batches of 1e-300 and of 1e300 have no common unit
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
                check_batch(dense, learner, m, np.array(waiting), how)
                waiting = []
            if data.draw(booleans):
                learner = from_file(learner)


def collected(draw, learner, m, rows):
    """The learner that has collected these samples, or their half beside a fork's,
    merged.
    """
    weights = np.ones(len(m.X)) if m.weights is None else m.weights
    halves = np.array_split(rows, 2)
    apart = learner.atoms is not None and all(m.used[half].any() for half in halves)
    if not apart or draw(booleans):
        return learner.collect(m.X[rows], None if m.weights is None else weights[rows])
    fork = learner.fork()
    for one, half in zip((learner, fork), halves):
        one.collect(m.X[half], weights[half])
    return learner.merge(fork)


def from_file(learner):
    """The learner that a file gives back."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = os.path.join(folder, "learner.npz")
        learner.save(path)
        return streams.OnlineGDL.load(path)


def check_batch(dense, learner, m, rows, how):
    """What was collected since the last update, then that update."""
    used = m.used[rows]
    rows = rows[used]
    X = m.X[rows]
    w = m.w[rows]
    before = learner.atoms.copy()
    k = core.bases_gram(X.astype(before.dtype), before)
    codes = learner.coder.code(core.bases_gram(before), k, core.squared_norm(X))
    if learner.lam is not None:
        check_gaps(X, before, codes, learner.lam, how["positive"], m.eps)
    losses = loss(X, before, codes, learner.lam or 0.0)
    dense.collect(X, w, codes, losses)
    bound = m.eps * (w * m.p * (1 + np.abs(codes).sum(axis=1)) ** 2).sum()
    assert abs(learner.loss / m.total - w @ losses) <= bound
    assert abs(learner.weight / m.total - w.sum()) <= m.eps * w.sum()
    replaced = learner.n_replaced
    learner.update()
    dense.check_update(before, learner.atoms, learner.n_replaced - replaced)
    assert abs(learner.cost * w.sum() - w @ losses) <= bound
