"""Dictionary learning: update of the atoms, other packages, memory, streams.

Run: python -m benchmarks.learning [--only PART]

The update is compared with coding and with a textbook update.
"""

import tempfile
import warnings
from pathlib import Path

from examples.common import of_these, parsed

options = parsed(
    __name__,
    of_these,
    "benchmarks.learning",
    {
        "--only": dict(
            choices=["sweeps", "steps", "peers", "large", "stream"], help="one part"
        )
    },
)

import numpy as np

import grassmann_sc as gs
from benchmarks import common
from benchmarks.common import figure, header, in_child, interleaved, peer, status, timed
from grassmann_sc import files, learn
from grassmann_sc.large import streams

N_SAMPLES = 2000
D = 400
P = 4
N = 200
TEXTBOOK_ATOMS = 3  # of them are timed
STEPS_D = [100, 400, 1000]
N_STEPS = 8
LARGE_N = 300
LARGE_P = 5
LARGE_ATOMS = 50
LARGE_D = [5000, 10_000, 20_000]
STREAM = 100_000
BATCH = 500
STREAM_D = 50
STREAM_P = 3
STREAM_ATOMS = 40
STREAM_LAM = 0.2
SOURCE = gs.random_subspaces(60, STREAM_D, STREAM_P, 7)  # centres


def clusters(n, d, p, k, noise, seed=0):
    """n subspaces about k centres, in turn."""
    rng = np.random.default_rng(seed)
    return common.about(gs.random_subspaces(k, d, p, rng), n, noise, rng, in_turn=True)


def textbook(X, atoms, codes, n_atoms):
    """The update as printed: S_r from d x d residuals, and all eigenvectors."""
    atoms = atoms.copy()
    p = X.shape[2]
    for r in range(n_atoms):
        S = np.zeros((X.shape[1], X.shape[1]))
        for i in np.flatnonzero(codes[:, r]):
            residual = X[i] @ X[i].T
            for j in np.flatnonzero(codes[i]):
                if j != r:
                    residual -= codes[i, j] * (atoms[j] @ atoms[j].T)
            S += codes[i, r] * residual
        atoms[r] = np.linalg.eigh(S)[1][:, -p:]
    return atoms


def optimality(X, atoms, codes, updated):
    """Largest relative shortfall of an atom's eigenvalue sum from that of eigh."""
    now = atoms.copy()
    shared = codes.T @ codes
    worst = 0.0
    for r in range(len(atoms)):
        if codes[:, r].any():
            index = np.flatnonzero(codes[:, r])
            others = np.setdiff1d(np.flatnonzero(shared[r]), r)
            B = (
                np.concatenate([X[index], now[others]])
                .transpose(1, 0, 2)
                .reshape(X.shape[1], -1)
            )
            w = np.repeat(
                np.concatenate([codes[index, r], -shared[r, others]]), X.shape[2]
            )
            S = (B * w) @ B.T
            best = np.linalg.eigvalsh(S)[-X.shape[2] :].sum()
            worst = max(
                worst, (best - np.trace(updated[r].T @ S @ updated[r])) / abs(best)
            )
        now[r] = updated[r]
    return worst


def sweeps():
    print(
        f"Update of {N} atoms, {N_SAMPLES} samples, d = {D}, p = {P}, random samples as first "
        "atoms; one run"
    )
    data = {
        "40 clusters": clusters(N_SAMPLES, D, P, 40, 1.0),
        "100 clusters": clusters(N_SAMPLES, D, P, 100, 1.0),
        "uniform": gs.random_subspaces(N_SAMPLES, D, P, 0),
        "40 clusters, small lam": clusters(N_SAMPLES, D, P, 40, 1.0),
    }
    for name, X in data.items():
        atoms = learn.init_atoms(X, N, "random", 0)
        k = gs.projection_kernel(X, atoms)
        lam = 0.6 * np.median(gs.lam_max(np.where(k > P - 0.01, 0, k)))
        if "small lam" in name:
            lam = 0.1
        codes = gs.gsc(X, atoms, lam)
        updated = learn.update_atoms(X, atoms, codes)
        code, update = interleaved(
            [
                lambda: gs.gsc(X, atoms, lam),
                lambda: learn.update_atoms(X, atoms, codes),
            ],
            5,
        )
        plain, _ = timed(textbook, X, atoms, codes, TEXTBOOK_ATOMS)
        plain *= np.count_nonzero(codes.any(axis=0)) / TEXTBOOK_ATOMS
        coupled = np.count_nonzero(codes.T @ codes) / N - 1
        print(
            f" {name}: lam = {lam:.3g}, {np.count_nonzero(codes) / N_SAMPLES:.1f} atoms a code, "
            f"{coupled:.0f} others share samples with an atom; coding {code:.3f} s, update "
            f"{update:.3f} s, textbook {plain:.1f} s (from {TEXTBOOK_ATOMS} atoms)"
        )
        # atoms that share samples wait for each other; each is multiplied, with all
        # that takes part in it, by 24 to 31 directions
        most = 6 if coupled > N / 2 else 1.4
        figure(f"{name}: update over coding (1)", update / code, f"<= {most}")
        figure(f"{name}: textbook over update (1)", plain / update, ">= 10")
        figure(
            f"{name}: worst atom beside eigh, relative",
            optimality(X, atoms, codes, updated),
            "<= 1e-8",
        )


def steps():
    n_atoms = STREAM_ATOMS
    lam = STREAM_LAM
    print(
        f"{N_SAMPLES} samples about 60 centres, p = {P}, {n_atoms} atoms, lam = {lam}, "
        f"{N_STEPS} batches; the first samples as first atoms"
    )
    for d in STEPS_D:
        X = clusters(N_SAMPLES, d, P, 60, 1.0)
        X = X[np.random.default_rng(0).permutation(len(X))]
        batches = np.split(X, N_STEPS)

        def code(batches=batches, X=X):
            for batch in batches:
                gs.gsc(batch, X[:n_atoms], lam)

        def follow(batches=batches, X=X):
            learner = streams.OnlineGDL(n_atoms, lam, init=X[:n_atoms])
            for batch in batches:
                learner.partial_fit(batch)

        def iterate(X=X):
            learn.gdl(X, n_atoms, lam, init=X[:n_atoms], n_iter=N_STEPS, tol=0)

        seconds = interleaved([code, follow, iterate], 4)
        share = seconds / seconds[0]
        figure(
            f"d = {d}: a step of OnlineGDL over coding its batch (1)", share[1], "<= 5"
        )
        figure(f"d = {d}: an iteration of gdl over coding (1)", share[2] / N_STEPS)


def peers():
    X = clusters(1000, 30, 3, 40, 0.5)
    n_atoms = 60
    lam = 0.2
    vectors = np.ascontiguousarray((X @ X.swapaxes(1, 2)).reshape(len(X), -1))
    print(
        "Seconds a pass over 1000 samples, d = 30, p = 3, 60 atoms; the peers learn free vectors "
        "vec(X X^T), not subspaces"
    )
    calls = {
        "gdl (10 iterations)": lambda: learn.gdl(
            X, n_atoms, lam, n_iter=10, tol=0, rng=0
        )
    }
    if decomposition := peer("sklearn.decomposition", "scikit-learn"):
        machine = decomposition.DictionaryLearning(
            n_atoms,
            alpha=lam / 2,
            max_iter=10,
            tol=0,
            fit_algorithm="cd",
            random_state=0,
        )
        calls["scikit-learn DictionaryLearning, lasso_cd (10)"] = lambda: machine.fit(
            vectors
        )
    if spams := peer("spams", "spams-bin"):
        calls["SPAMS trainDL (10 x 2 batches of 512)"] = lambda: spams.trainDL(
            np.asfortranarray(vectors.T),
            K=n_atoms,
            lambda1=lam / 2,
            iter=20,
            batchsize=512,
            numThreads=2,
            verbose=False,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in calls.items():
            call()
            figure(f"{name} (s)", interleaved([call], 1)[0] / 10)


def large():
    print(
        f"Large d: {LARGE_N} samples, p = {LARGE_P}, {LARGE_ATOMS} atoms, 2 iterations with "
        "their start, each in a process of its own"
    )
    seconds = {}
    for d in LARGE_D:
        memory, seconds[d] = in_child(learn_large, d)
        figure(f"d = {d}: seconds an iteration", seconds[d])
        figure(
            f"d = {d}: peak resident memory of the process over the data (1)",
            memory,
            "<= 3.5" if d == LARGE_D[-1] else "",
        )
    figure(
        f"time a dimension, d = {LARGE_D[-1]} over d = {LARGE_D[0]} (1)",
        seconds[LARGE_D[-1]] / seconds[LARGE_D[0]] * LARGE_D[0] / LARGE_D[-1],
    )


def learn_large(d):
    """(peak resident memory over that of the data, seconds an iteration)."""
    rng = np.random.default_rng(0)
    X = np.empty((LARGE_N, d, LARGE_P))
    centres = [np.linalg.qr(rng.standard_normal(X.shape[1:]))[0] for _ in range(40)]
    for i in range(LARGE_N):
        noise = rng.standard_normal(X.shape[1:]) / d**0.5
        X[i] = np.linalg.qr(centres[i % 40] + noise)[0]
    del centres
    learn.gdl(X[:, :100] * 0 + np.eye(100, LARGE_P), 2, 0.1, n_iter=1)
    seconds, _ = timed(lambda: learn.gdl(X, LARGE_ATOMS, 0.1, n_iter=2, tol=0, rng=0))
    return status("VmHWM") / X.nbytes, seconds / 2


def stream():
    print(
        f"A stream of {STREAM} subspaces, d = {STREAM_D}, p = {STREAM_P}, {STREAM_ATOMS} atoms, "
        f"batches of {BATCH}, in a process of its own"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "atoms"
        seconds, (early, late) = timed(in_child, learn_stream, path)
        online = files.load(path).atoms
    rng = np.random.default_rng(2)
    held_out = common.about(SOURCE, 2000, 0.7, rng)
    sample = common.about(SOURCE, 5000, 0.7, rng)
    batch = learn.gdl(sample, STREAM_ATOMS, STREAM_LAM, n_iter=50, rng=0).atoms
    costs = [common.cost(held_out, atoms, STREAM_LAM) for atoms in (online, batch)]
    figure("seconds in all", seconds)
    figure("resident memory at 10 % (MB)", early)
    figure("resident memory at 100 % (MB)", late)
    figure(
        "cost on 2000 held out, stream over gdl on 5000 (1)",
        costs[0] / costs[1],
        "<= 1.05",
    )


def learn_stream(path):
    """MB in use after a tenth of the stream, and after all."""
    rng = np.random.default_rng(1)
    learner = streams.OnlineGDL(STREAM_ATOMS, STREAM_LAM, rng=0)
    for i in range(1, STREAM // BATCH + 1):
        learner.partial_fit(common.about(SOURCE, BATCH, 0.7, rng))
        if i in (STREAM // BATCH // 10, STREAM // BATCH):
            yield status("VmRSS") / 2**20
    files.save(path, learner.atoms)


def main(options):
    header("Dictionary learning")
    for part in (sweeps, steps, peers, large, stream):
        if options.only in (None, part.__name__):
            part()


if __name__ == "__main__":
    main(options)
