"""Learning of the campaign, against the paper's equations in d x d matrices.

Dense NumPy says of every step what it must reach: an update of atoms the leading
eigenvectors, a code the minimum (by its duality gap), a stream the same from sums that
fade. The steps are compared one by one, each from where the library stood before it, so
that rounding cannot lead two runs apart and ties of eigenvalues do not matter.
"""

import os
import tempfile
import warnings
from types import SimpleNamespace

import numpy as np

import oracles as plain
from benchmarks.campaign_calls import failing, hold, rng_of
from benchmarks.campaign_numbers import LAYOUTS, ROUNDING
from grassmann_sc import discriminative, kernels, learn, streams, subspaces
from grassmann_sc.strategies import KINDS, bases, explicit_gram
from oracles import hat

TOL = 1e-8  # of codes, relative to norm2, and of eigenvalues
FRESH = 0.3  # the share of Y^T Y that is new when a stream moves its atoms
UNUSED = 1e-6  # of the largest use: less is none


def learning(seed, case):
    """One problem of one way to learn, in turn."""
    check = CHECKS[case % len(CHECKS)]
    rng = rng_of("learning", seed, case)
    with warnings.catch_warnings(), failing(check.__name__):
        warnings.simplefilter("ignore")
        check(rng)


# ------------------------------------------------------------------------ hostile draws


def axes(rng, n, d, p):
    """Bases of axes: all angles are 0 or right."""
    return np.stack([np.eye(d)[:, rng.permutation(d)[:p]] for _ in range(n)])


def draw_bases(rng, n, d, p):
    """n bases of R^d of any kind: random, clustered, repeated, nearly so, at right
    angles.
    """
    kind = rng.choice([*KINDS, "clustered", "axes"])
    if kind == "clustered":
        return plain.clusters(rng, n, d, p, int(rng.integers(1, 4)))
    return axes(rng, n, d, p) if kind == "axes" else bases(rng, n, d, p, kind)


def draw_weights(rng, n):
    """None, counts, numbers, or numbers of any size; some are 0, but not all."""
    kind = rng.integers(4)
    if kind == 0:
        return None
    weights = rng.integers(0, 4, n).astype(float) if kind == 1 else rng.uniform(0, 2, n)
    if kind == 3:
        weights *= rng.choice(
            [1e-300, 1e-30, 1.0, 1e30, 1e300], n if rng.random() < 0.3 else 1
        )
    weights[rng.random(n) < 0.2] = 0
    weights[rng.integers(n)] = max(weights.max(), 1e-300)
    return weights


def draw_samples(rng, most=20):
    """Samples X (n, d, p) in any layout, weights, their numbers w (n,), and how many
    atoms.
    """
    d = int(rng.integers(17, 40) if rng.random() < 0.3 else rng.integers(1, 9))
    p = int(rng.choice([1, d, int(rng.integers(1, d + 1))])) if d < 17 else 1
    X = draw_bases(rng, int(rng.integers(1, most + 1)), d, p)
    X = X.astype(rng.choice([np.float64, np.float64, np.float32]))
    layout = rng.choice([*LAYOUTS, "plain"])
    weights = draw_weights(rng, len(X))
    w = np.ones(len(X)) if weights is None else weights / weights.max()
    used = (
        np.ones(len(X), bool) if weights is None else weights > 0
    )  # w may have lost some
    n_atoms = int(rng.integers(1, min(used.sum(), 8) + 1))
    eps = ROUNDING * float(np.finfo(X.dtype).eps) * d
    given = LAYOUTS.get(layout, np.array)(X)
    total = 1.0 if weights is None else weights.max()
    return SimpleNamespace(
        X=given,
        weights=weights,
        w=w,
        used=used,
        total=total,
        eps=eps,
        n_atoms=n_atoms,
        d=d,
        p=p,
        dtype=X.dtype,
        about=f"{layout} {X.dtype} {X.shape}, {n_atoms} atoms, {kind_of(weights)}",
    )


def kind_of(weights):
    if weights is None:
        return "no weights"
    return f"weights {weights[weights > 0].min():.2g} to {weights.max():.2g}"


# ------------------------------------------------------------------------ the equations


def loss(X, D, codes, lam=0.0):
    """||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1 of each sample."""
    residual = hat(X.astype(float)) - np.einsum(
        "nj,jab->nab", codes, hat(D.astype(float))
    )
    return np.square(residual).sum(axis=(1, 2)) + lam * np.abs(codes).sum(axis=1)


def check_moves(sums, shared, size, before, after, tol, tiny=0.0, skip=()):
    """Each atom in turn, the others as they then are, has the leading eigenvectors of

        S_r = A_r - sum_{j != r} B_rj D_j^,   A_r = sum_i w_i y_ir X_i^,   B = Y^T diag(w) Y

    (sums A (N, d, d), shared B (N, N)), or the value of them; one of B_rr = 0 stays.
    size (N,): of the terms of A_r, which rounding is relative to.
    """
    D = hat(before.astype(float))
    p = before.shape[2]
    for r, V in enumerate(after.astype(float)):
        error = np.abs(V.T @ V - np.eye(p)).max()
        hold(
            error <= tol,
            f"atom {r} is not orthonormal: by {error:.2g}",
            "not orthonormal",
        )
        if shared[r, r] == 0:
            hold(
                np.allclose(hat(V), D[r], atol=tol),
                f"atom {r} moves, but no sample uses it",
            )
        others = np.delete(np.arange(len(D)), r)
        S = sums[r] - np.einsum("j,jab->ab", shared[r, others], D[others])
        best = np.linalg.eigvalsh(S)[-p:].sum()
        lost = best - np.trace(V.T @ S @ V)
        scale = p * (size[r] + np.abs(shared[r]).sum()) + tiny
        told = f"atom {r} of {len(D)} loses {lost / scale:.2g} of the best"
        hold(r in skip or lost <= tol * scale, told, "not the leading eigenvectors")
        D[r] = hat(V)


def statistics(X, codes, w):
    """A (N, d, d), B (N, N), and the size of A (N,)."""
    used = w[:, None] * codes
    A = np.einsum("ir,iab->rab", used, hat(X.astype(float)))
    return A, codes.T @ used, np.abs(used).sum(axis=0)


def statistics_by_atom(X, codes, weights):
    """The same, those of each atom in the largest of its weights: no common unit may
    hold all.
    """
    weights = np.ones(len(X)) if weights is None else weights
    rows = []
    for r, y in enumerate(codes.T):
        mine = np.where(y != 0, weights, 0)
        A, B, size = statistics(X, codes, mine / (mine.max() or 1.0))
        rows.append((A[r], B[r], size[r]))
    return tuple(map(np.array, zip(*rows)))


def check_gaps(X, D, codes, lam, positive, eps):
    """No code of these costs less by more than the solver's tolerance: the duality gap
    of each, with the dual point s R of R = X^ - sum_j y_j D_j^ (weak duality bounds
    what is lost).
    """
    P = hat(X.astype(float))
    residual = P - np.einsum("nj,jab->nab", codes, hat(D.astype(float)))
    products = np.einsum("nab,jab->nj", residual, hat(D.astype(float)))
    largest = (products if positive else np.abs(products)).max(axis=1)
    s = np.minimum(1, lam / 2 / np.maximum(largest, 1e-300))
    square = np.square(residual).sum(axis=(1, 2))
    l1 = np.abs(codes).sum(axis=1)
    dual = 2 * s * (residual * P).sum(axis=(1, 2)) - s**2 * square
    gap = square + lam * l1 - dual
    bound = 2 * TOL * X.shape[2] + eps * X.shape[2] * (1 + l1) ** 2
    hold(
        (gap <= bound).all(),
        f"a code is {(gap / bound).max():.2g} times as far from the least "
        "cost as allowed",
        "codes are not optimal",
    )
    hold(not positive or (codes >= 0).all(), "codes < 0")


# --------------------------------------------------------------------------- the checks


def update_atoms(rng):
    m = draw_samples(rng)
    D = draw_bases(rng, m.n_atoms, m.d, m.p).astype(m.X.dtype)
    codes = rng.standard_normal((len(m.X), m.n_atoms)) * 10.0 ** rng.integers(-6, 7)
    codes *= rng.random(codes.shape) < rng.choice([0.2, 0.6, 1])
    codes = codes.astype(m.X.dtype)
    after = learn.update_atoms(m.X, D, codes, sample_weight=m.weights)
    A, B, size = statistics_by_atom(m.X, codes.astype(float), m.weights)
    tiny = float(np.finfo(m.X.dtype).tiny) / m.eps * np.abs(codes).max()
    with failing(m.about):
        hold(after.dtype == m.dtype, f"atoms of {after.dtype}")
        check_moves(A, B, size, D, after, m.eps + TOL, tiny)


def gdl(rng):
    """Every iteration: the move of the atoms, the atoms that are replaced, costs and
    codes.
    """
    m = draw_samples(rng)
    how = draw_coding(rng, m)
    lam = how.get("lam")
    seed = int(rng.integers(100))
    unused = str(rng.choice(["worst", "random", "keep"]))
    states = []
    init = "kmeans++" if rng.random() < 0.5 else draw_bases(rng, m.n_atoms, m.d, m.p)
    options = how | {
        "sample_weight": m.weights,
        "init": init,
        "unused": unused,
        "tol": 0,
    }
    with failing(f"{how}, {unused}, {m.about}"):
        states.append(learn.gdl(m.X, m.n_atoms, n_iter=0, rng=seed, **options))
        learn.gdl(m.X, m.n_atoms, n_iter=3, rng=seed, callback=states.append, **options)
        for before, after in zip(states, states[1:]):
            check_iteration(m, before, after, unused)
            if lam is not None:
                check_gaps(
                    m.X[m.used],
                    after.atoms,
                    after.codes[m.used].astype(float),
                    after.lam,
                    how.get("positive", False),
                    m.eps,
                )
            else:
                sums = after.codes.sum(axis=1)
                hold(
                    np.abs(sums - 1).max() <= m.eps * (1 + np.abs(after.codes).sum()),
                    "local codes do not sum to 1",
                )


def draw_coding(rng, m):
    """lam, relative or not, perhaps with codes >= 0; or n_neighbors."""
    if rng.random() < 0.3:
        return {"n_neighbors": int(rng.integers(1, m.n_atoms + 1))}
    scale = "max" if rng.random() < 0.3 else None
    share = float(rng.choice([0.01, 0.1, 0.5, 1, 1.2]))
    return {
        "lam": share if scale else 2 * m.p * share,
        "lam_scale": scale,
        "positive": bool(rng.random() < 0.3),
    }


def check_iteration(m, before, after, unused):
    """One iteration of gdl from a state: the atoms with the codes before, then costs."""
    lam = after.lam or 0.0
    codes = before.codes.astype(float)
    A, B, size = statistics_by_atom(m.X, codes, m.weights)
    moved = after.atoms.copy()
    idle = np.flatnonzero(~codes[m.used].any(axis=0)) if unused != "keep" else []
    if len(idle):
        moved[idle] = before.atoms[idle]
        losses = loss(m.X, moved, codes, lam)
        check_replaced(m.X[m.used], losses[m.used], after.atoms[idle], m.eps, unused)
    check_moves(
        A,
        B,
        size,
        before.atoms,
        moved,
        m.eps + TOL,
        float(np.finfo(m.X.dtype).tiny) / m.eps,
    )
    hold(
        after.n_replaced == before.n_replaced + len(idle),
        f"n_replaced {after.n_replaced}",
    )
    expected = [
        m.w @ loss(m.X, after.atoms, y, lam) for y in (codes, after.codes.astype(float))
    ]
    costs = after.costs[-3:] / m.total
    lengths = np.maximum(*(np.abs(y).sum(axis=1) for y in (codes, after.codes)))
    size = (m.w * m.p * (1 + lengths) ** 2).sum()
    hold(
        np.abs(costs[1:] - expected).max() <= m.eps * size,
        f"costs {costs[1:]}, but they are {expected}",
        "costs are others",
    )
    if after.lam is not None:
        hold(
            (np.diff(costs) <= m.eps * size).all(), f"costs rise: {costs}", "costs rise"
        )


def check_replaced(X, losses, atoms, eps, unused="worst"):
    """The atoms of no use became samples; the first of them that of the largest loss."""
    near = explicit_gram(X, atoms)
    lost = X.shape[2] - near.max(axis=0)
    hold(
        (lost <= eps * X.shape[2]).all(),
        f"an atom of no use became no sample: {lost.max():.2g}",
        "an atom of no use became no sample",
    )
    if unused == "worst":
        same = near[:, 0] >= X.shape[2] * (1 - eps)
        hold(
            losses[same].max() >= losses.max() - eps * (1 + losses.max()),
            "an atom of no use became a sample that was not coded worst",
        )


class DenseStream:
    """What OnlineGDL says of itself, in sums of d x d matrices: A_r, B and the share of
    B that is new, which fade by (1 - 1/t)^forgetting before batch t.
    """

    def __init__(self, m, forgetting):
        self.A = np.zeros((m.n_atoms, m.d, m.d))
        self.B = np.zeros((m.n_atoms, m.n_atoms))
        self.size = np.zeros(m.n_atoms)
        self.new = 0.0
        self.forgetting = forgetting
        self.n_updates = 0
        self.since = []  # (samples, losses) since atoms moved
        self.eps = m.eps

    def collect(self, X, w, codes, losses):
        for held, more in zip((self.A, self.B, self.size), statistics(X, codes, w)):
            held += more
        self.new += (w @ np.square(codes)).sum()
        self.since.append((X, losses))

    def check_update(self, before, after, n_replaced):
        """The atoms after an update: as they were, or moved, and those of no use
        replaced.
        """
        total = np.trace(self.B)
        if abs(self.new - FRESH * total) < 1e-9 * total:  # as rounding wants it
            due = not np.array_equal(before, after)
        else:
            due = self.new >= FRESH * total
        if due:
            use = self.B.diagonal()
            idle = np.flatnonzero(use <= UNUSED * use.max())
            hold(
                n_replaced == len(idle),
                f"{n_replaced} atoms replaced, {len(idle)} are of no use",
                "other atoms replaced",
            )
            self.check_moved(before, after, idle)
            for held in (self.A, self.B, self.B.T, self.size):
                held[idle] = 0
            self.new = 0.0
            self.since = []
        else:
            hold(
                np.array_equal(before, after),
                "atoms moved before three tenths were new",
            )
        self.n_updates += 1
        fade = (1 - 1 / (self.n_updates + 1)) ** self.forgetting
        for held in (self.A, self.B, self.size):
            held *= fade
        self.new *= fade

    def check_moved(self, before, after, idle):
        """By eigenvectors where d <= 16 p, else by steps that do not raise the cost."""
        _, d, p = before.shape
        moved = after.copy()
        tol = self.eps + TOL
        if len(idle):  # where they went before is not known, and matters little
            moved[idle] = before[idle]
            tol += np.sqrt(UNUSED)
            check_replaced(
                *map(np.concatenate, zip(*self.since)), after[idle], self.eps
            )
        if d <= 16 * p:
            check_moves(self.A, self.B, self.size, before, moved, tol, skip=idle)
        rise = self.cost(moved) - self.cost(before)
        scale = p * (self.size.sum() + np.abs(self.B).sum())
        hold(
            rise <= tol * scale,
            f"the cost of all statistics rises by {rise / scale:.2g}",
            "the cost of all statistics rises",
        )

    def cost(self, D):
        """sum_i w_i ||X_i^ - sum_j y_ij D_j^||^2 but for what no atom changes."""
        P = hat(D.astype(float))
        products = np.einsum("jab,lab->jl", P, P)
        return (self.B * products).sum() - 2 * np.einsum("jab,jab->", self.A, P)


def stream(rng):
    """Batches of any size, some of them collected by a fork, the learner now and then
    in a file.
    """
    m = draw_samples(rng, most=60)
    if m.weights is not None:
        m.w = m.weights  # batches of 1e-300 and of 1e300 have no common unit
        m.total = 1.0
    how = draw_coding(rng, m)
    forgetting = float(rng.choice([0, 0.5, 2.0]))
    enough = -(-len(m.X) * m.p // 4) + 1  # nothing is cut off
    rank = [None, m.d, enough][rng.integers(3)]
    init = "kmeans++"
    if rng.random() < 0.5:
        init = draw_bases(rng, m.n_atoms, m.d, m.p).astype(m.dtype)
    learner = streams.OnlineGDL(
        m.n_atoms,
        **how,
        init=init,
        rank=rank,
        forgetting=forgetting,
        rng=int(rng.integers(100)),
    )
    dense = DenseStream(m, forgetting)
    n_cuts = int(rng.integers(0, min(len(m.X), 6)))
    cuts = (
        np.sort(rng.choice(np.arange(1, len(m.X)), n_cuts, replace=False))
        if n_cuts
        else []
    )
    waiting = []
    cut = [*map(int, cuts)]
    with failing(f"{how}, forgetting {forgetting}, rank {rank}, cuts {cut}, {m.about}"):
        for rows in np.split(np.arange(len(m.X)), cuts):
            if not m.used[rows].any():
                continue
            begun = learner.atoms is not None
            learner = collected(rng, learner, m, rows)
            waiting.append(rows if begun else rows[m.used[rows]])
            if learner.atoms is not None:
                check_batch(dense, learner, m, np.concatenate(waiting), how)
                waiting = []
            if rng.random() < 0.2:
                learner = from_file(learner)


def collected(rng, learner, m, rows):
    """The learner that has collected these samples, or their half beside a fork's,
    merged.
    """
    weights = np.ones(len(m.X)) if m.weights is None else m.weights
    halves = np.array_split(rows, 2)
    alone = learner.atoms is None or not all(m.used[half].any() for half in halves)
    if alone or rng.random() < 0.6:
        return learner.collect(m.X[rows], None if m.weights is None else weights[rows])
    fork = learner.fork()
    for one, half in zip((learner, fork), halves):
        one.collect(m.X[half], weights[half])
    return learner.merge(fork)


def from_file(learner):
    """The learner that a file gives back."""
    path = tempfile.mkstemp(suffix=".npz", dir=".")[1]
    learner.save(path)
    learner = streams.OnlineGDL.load(path)
    os.unlink(path)
    return learner


def check_batch(dense, learner, m, rows, how):
    """What was collected since the last update, then that update."""
    codes = waiting_codes(learner, rows, m)
    rows = rows[m.used[rows]]
    X = m.X[rows]
    w = m.w[rows]
    before = learner.atoms.copy()
    lam = learner.lam or 0.0
    if learner.lam is not None:
        check_gaps(X, before, codes, lam, how["positive"], m.eps)
    losses = loss(X, before, codes, lam)
    dense.collect(X, w, codes, losses)
    bound = m.eps * (w * m.p * (1 + np.abs(codes).sum(axis=1)) ** 2).sum()
    told = np.array([learner.loss, learner.weight]) / m.total
    hold(
        abs(told[0] - w @ losses) <= bound,
        f"loss {told[0]}, but it is {w @ losses}",
        "loss",
    )
    hold(
        abs(told[1] - w.sum()) <= m.eps * w.sum(),
        f"weight {told[1]}, but it is {w.sum()}",
    )
    replaced = learner.n_replaced
    learner.update()
    dense.check_update(before, learner.atoms, learner.n_replaced - replaced)
    hold(abs(learner.cost * w.sum() - w @ losses) <= bound, "cost is another")


def waiting_codes(learner, rows, m):
    """The codes of the samples that came last and have a weight, from what a file would
    hold.
    """
    used = learner.state()["piled_codes"][-len(rows) :][m.used[rows]]
    return used if m.weights is None else used / m.weights[rows][m.used[rows], None]


def discriminative_atoms(rng):
    """Costs against the log-loss of errors by least squares; one step against dense
    matrices.
    """
    m = draw_samples(rng)
    X = m.X
    y = np.arange(len(X)) % int(rng.integers(1, 4))
    names = np.array(["b", "a", "c"])[y]
    used = m.used
    seen = np.unique(names[used])
    labels = np.repeat(seen, int(rng.integers(1, 3)))
    D = draw_bases(rng, len(labels), m.d, int(rng.integers(1, m.d + 1))).astype(X.dtype)
    ridge = float(rng.choice([1e-2, 0.1, 1]))
    beta = float(rng.choice([0.1, 1, 10]))
    options = dict(
        beta=beta, ridge=ridge, init=(D, labels), sample_weight=m.weights, tol=0
    )
    eps = m.eps / ridge * (1 + beta)
    with failing(f"beta {beta}, ridge {ridge}, atoms of {labels.tolist()}, {m.about}"):
        for n_iter in (1, 4):
            found = discriminative.discriminative_atoms(
                X, names, 1, n_iter=n_iter, **options
            )
            costs = found.costs / m.total
            ends = [
                dense_log_loss(
                    X[used], names[used], m.w[used], atoms, labels, beta, ridge
                )
                for atoms in (D, found.atoms)
            ]
            off = np.abs(costs[[0, -1]] - ends).max()
            hold(
                off <= eps * (1 + max(ends)),
                f"costs {costs}, from {ends[0]} to {ends[1]}",
                "costs are others",
            )
            hold((np.diff(costs) <= 0).all(), f"costs rise: {costs}", "costs rise")
            if n_iter == 1 and found.n_iter == 1 and X.dtype == np.float64:
                check_step(
                    X[used], names[used], m.w[used], D, found.atoms, labels, beta, ridge
                )


def log_loss_parts(X, y, D, labels, beta, ridge):
    """Codes (n, N) over the atoms of each class, its number for each atom,
    probabilities (n, C), that of its own (n, C), and the cost of each sample.
    """
    classes, of_atom = np.unique(labels, return_inverse=True)
    errors, codes = plain.explicit_errors(
        X.astype(float), D.astype(float), of_atom, ridge
    )
    scores = -beta * errors
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    own = (np.asarray(y)[:, None] == classes).astype(float)
    losses = np.log(odds.sum(axis=1)) - (
        (scores - scores.max(axis=1, keepdims=True)) * own
    ).sum(1)
    return codes, of_atom, odds / odds.sum(axis=1, keepdims=True), own, losses


def dense_log_loss(X, y, w, D, labels, beta, ridge):
    """sum_i w_i (beta e_own + log sum_c exp(-beta e_c))."""
    return w @ log_loss_parts(X, y, D, labels, beta, ridge)[-1]


def check_step(X, y, w, before, after, labels, beta, ridge):
    """after is Proj(D_j^ + t H_j / s_j) of all atoms for a t that is a power of 2: H_j
    the tangent part of S_j = sum_i w_i g_ic y_ij (X_i^ - sum_{l in c} y_il D_l^), s_j =
    sum_i w_i |g_ic y_ij|.
    """
    codes, of_atom, P, own, _ = log_loss_parts(X, y, before, labels, beta, ridge)
    pull = w[:, None] * (own - P)[:, of_atom] * codes
    D = hat(before)
    steps = np.zeros_like(D)
    for j in range(len(D)):
        mine = of_atom == of_atom[j]
        residual = hat(X) - np.einsum("nl,lab->nab", codes[:, mine], D[mine])
        S = np.einsum("n,nab->ab", pull[:, j], residual)
        H = (np.eye(len(S)) - D[j]) @ S @ D[j]
        s = np.abs(pull[:, j]).sum()
        steps[j] = (H + H.T) / s if s > 0 and np.linalg.norm(H) > 1e-13 * s else 0
    q = before.shape[2]
    far = min(
        np.abs(
            hat(after) - hat(np.linalg.eigh(D + 2.0**-k * steps)[1][:, :, -q:])
        ).max()
        for k in range(31)
    )
    hold(
        far <= 1e-6,
        f"no t gives this step: the nearest is {far:.2g} away",
        "another step",
    )


def first_atoms(rng):
    """Samples, as often as they may be drawn; of k-means a fixed cost below that of its
    start.
    """
    m = draw_samples(rng)
    count = int(rng.integers(1, m.used.sum() + 1))
    seed = int(rng.integers(100))
    eps = m.eps * m.p
    drawn = {
        name: learn.init_atoms(m.X, count, name, rng=seed, sample_weight=m.weights)
        for name in learn.METHODS
    }
    used = m.X[m.used]
    with failing(f"{count} first atoms, {m.about}"):
        for name in ("random", "kmeans++"):
            lost = m.p - explicit_gram(used, drawn[name]).max(axis=0)
            hold((lost <= eps).all(), f"{name} draws what is no sample of weight > 0")
        costs = [
            m.w @ (2 * m.p - 2 * explicit_gram(m.X, drawn[name]).max(axis=1))
            for name in ("kmeans++", "kmeans")
        ]
        hold(
            costs[1] <= costs[0] + 2 * eps * m.w.sum(),
            f"k-means raises its cost: {costs}",
            "k-means raises its cost",
        )
        n_places = len(
            np.unique(
                np.round(hat(used.astype(float)), 3).reshape(len(used), -1), axis=0
            )
        )
        K = explicit_gram(drawn["kmeans++"], drawn["kmeans++"])
        np.fill_diagonal(K, 0)
        alike = (
            m.weights is None
            and n_places == len(used)
            and K.max(initial=0) >= m.p - 1e-9
        )
        hold(not alike, "k-means++ draws a sample twice though others are left")


def class_dictionaries(rng):
    """Each class is gdl on its own samples, with what is left of rng."""
    m = draw_samples(rng)
    names = np.array(["b", "a", "c"])[rng.integers(0, 3, len(m.X))]
    seed = int(rng.integers(100))
    how = {"lam": 0.2 * m.p, "n_iter": 2}
    found = learn.class_dictionaries(
        m.X, names, 2, **how, sample_weight=m.weights, rng=seed
    )
    generator = np.random.default_rng(seed)
    atoms = []
    labels = []
    for name in ("a", "b", "c"):
        mine = (names == name) & m.used
        if mine.any():
            weights = None if m.weights is None else m.weights[mine]
            atoms.append(
                learn.gdl(
                    m.X[mine],
                    min(2, mine.sum()),
                    **how,
                    sample_weight=weights,
                    rng=generator,
                ).atoms
            )
            labels += [name] * len(atoms[-1])
    hold(found.labels.tolist() == labels, f"labels {found.labels}, not {labels}")
    hold(np.array_equal(found.atoms, np.concatenate(atoms)), f"other atoms: {m.about}")


def kernel_learning(rng):
    """With the linear kernel kgdl is gdl on the spans of the frames."""
    d = int(rng.integers(2, 7))
    p = int(rng.integers(1, min(d, 3) + 1))
    sets = plain.clouds(rng, int(rng.integers(3, 10)), d, p, p + 4)
    sets = [float(10.0 ** rng.integers(-3, 4)) * rows for rows in sets]
    options = dict(
        n_atoms=2, lam=0.1, init="random", rng=int(rng.integers(100)), n_iter=1, tol=0
    )
    lifted = learn.kgdl(sets, lift=kernels.Lift(kernels.linear(), p), **options).costs
    costs = learn.gdl(subspaces.from_sets(sets, p), **options).costs
    hold(
        np.abs(lifted - costs).max() <= 1e-6 * costs.max(),
        f"costs {lifted}, not {costs}",
        "kgdl with the linear kernel differs",
    )


CHECKS = [
    update_atoms,
    gdl,
    stream,
    discriminative_atoms,
    gdl,
    stream,
    first_atoms,
    class_dictionaries,
    kernel_learning,
]
