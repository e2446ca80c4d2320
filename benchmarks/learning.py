"""Dictionary learning: the update of the atoms beside coding and a textbook update, peers, memory,
resuming, streams.

    python -m benchmarks.learning [--data FILE.npz:p ...]

With --data, also what learned atoms are worth in classification: codes over random training
samples, over the atoms learned from them, and over as many atoms learned from a k-means++ start,
each with a linear support vector machine; and residual classification over class dictionaries
beside all training sets. The file is as in examples/classify.py. Then only these tables are
printed.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks.options import parser_of

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parser = parser_of("learning", __doc__)
    parser.add_argument("--data", nargs="*", default=[], metavar="FILE.npz:p")
    parser.add_argument("--splits", type=int, default=5, help="of each file at most (default: 5)")
    parser.add_argument("--only", choices=["sweeps", "peers", "large", "stream", "resume"],
                        help="one part")
    options = parser.parse_args()

import numpy as np

import grassmann_sc as gs
from benchmarks.common import ROOT, figure, header, interleaved, peer, run_child
from grassmann_sc import files, learn
from grassmann_sc.subspaces import from_sets

N_SAMPLES = 2000
D = 400
P = 4
N = 200
TEXTBOOK_ATOMS = 3  # of them are timed
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
KILLS = 20
LARGE = """
import resource, time, numpy as np
import grassmann_sc as gs
from grassmann_sc import learn
rng = np.random.default_rng(0)
X = np.empty(({n}, {d}, {p}))
centres = [np.linalg.qr(rng.standard_normal(({d}, {p})))[0] for _ in range(40)]
for i in range({n}):
    X[i] = np.linalg.qr(centres[i % 40] + rng.standard_normal(({d}, {p})) / {d} ** 0.5)[0]
del centres
learn.gdl(X[:, :100] * 0 + np.eye(100)[:, :{p}], 2, 0.1, n_iter=1)
start = time.perf_counter()
learn.gdl(X, {N}, 0.1, n_iter=2, tol=0, rng=0)
seconds = (time.perf_counter() - start) / 2
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / X.nbytes, seconds)
"""
STREAMED = """
import numpy as np
from grassmann_sc import files, learn, streams
from benchmarks.common import status
from benchmarks.learning import source, draw
rng, stream = np.random.default_rng(1), streams.OnlineGDL({N}, {lam}, rng=0)
for i in range({batches}):
    stream.partial_fit(draw(source(), {batch}, rng))
    if i + 1 in ({batches} // 10, {batches}):
        print(status("VmRSS") / 2**20)
files.save({path!r}, stream.atoms)
"""
KILLED = """
import sys
from grassmann_sc import learn
from benchmarks.learning import clusters
print("ready", flush=True)
learn.gdl(clusters(300, 80, 3, 30, 1.0), 40, 0.1, rng=0, n_iter=60, tol=0, unused="random",
          checkpoint=sys.argv[1])
"""


def clusters(n, d, p, k, noise, seed=0):
    """n subspaces about k centres, in turn."""
    rng = np.random.default_rng(seed)
    return gs.orthonormalize(
        gs.random_subspaces(k, d, p, rng)[np.arange(n) % k]
        + noise * rng.standard_normal((n, d, p)) / d**0.5
    )


def textbook(X, atoms, codes, n_atoms):
    """The update as printed: S_r from d x d residuals of the samples that use the atom, all
    eigenvectors."""
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
    """Largest shortfall of an updated atom's eigenvalue sum from that of eigh on the same S_r,
    relative, over all atoms."""
    now = atoms.copy()
    shared = codes.T @ codes
    worst = 0.0
    for r in range(len(atoms)):
        if codes[:, r].any():
            index = np.flatnonzero(codes[:, r])
            others = np.delete(
                np.flatnonzero(shared[r]), np.flatnonzero(np.flatnonzero(shared[r]) == r)
            )
            B = np.concatenate([X[index], now[others]]).transpose(1, 0, 2).reshape(X.shape[1], -1)
            w = np.repeat(np.concatenate([codes[index, r], -shared[r, others]]), X.shape[2])
            S = (B * w) @ B.T
            best = np.linalg.eigvalsh(S)[-X.shape[2] :].sum()
            worst = max(worst, (best - np.trace(updated[r].T @ S @ updated[r])) / abs(best))
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
        lam = (
            0.1
            if "small lam" in name
            else 0.6 * np.median(gs.lam_max(np.where(k > P - 0.01, 0, k)))
        )
        codes = gs.gsc(X, atoms, lam)
        updated = learn.update_atoms(X, atoms, codes)
        code, update = interleaved(
            [lambda: gs.gsc(X, atoms, lam), lambda: learn.update_atoms(X, atoms, codes)], 5
        )
        start = time.perf_counter()
        textbook(X, atoms, codes, TEXTBOOK_ATOMS)
        plain = (time.perf_counter() - start) / TEXTBOOK_ATOMS * np.count_nonzero(codes.any(axis=0))
        coupled = np.count_nonzero(codes.T @ codes) / N - 1
        print(
            f" {name}: lam = {lam:.3g}, {np.count_nonzero(codes) / N_SAMPLES:.1f} atoms a code, "
            f"{coupled:.0f} others share samples with an atom; coding {code:.3f} s, update "
            f"{update:.3f} s, "
            f"textbook {plain:.1f} s (from {TEXTBOOK_ATOMS} atoms)"
        )
        figure(f"{name}: update over coding (1)", update / code, "<= 1")
        figure(f"{name}: textbook over update (1)", plain / update, ">= 10")
        figure(
            f"{name}: worst atom beside eigh, relative",
            optimality(X, atoms, codes, updated),
            "<= 1e-8",
        )


def peers():
    X = clusters(1000, 30, 3, 40, 0.5)
    n_atoms = 60
    lam = 0.2
    vectors = np.ascontiguousarray((X @ X.swapaxes(1, 2)).reshape(len(X), -1))
    print(
        "Seconds a pass over 1000 samples, d = 30, p = 3, 60 atoms; the peers learn free vectors "
        "vec(X X^T), not subspaces"
    )
    ours = {"gdl (10 iterations)": lambda: learn.gdl(X, n_atoms, lam, n_iter=10, tol=0, rng=0)}
    if decomposition := peer("sklearn.decomposition", "scikit-learn"):
        ours["scikit-learn DictionaryLearning, lasso_cd (10)"] = lambda: (
            decomposition.DictionaryLearning(
                n_atoms, alpha=lam / 2, max_iter=10, tol=0, fit_algorithm="cd", random_state=0
            ).fit(vectors)
        )
    if spams := peer("spams", "spams-bin"):
        ours["SPAMS trainDL (10 x 2 batches of 512)"] = lambda: spams.trainDL(
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
        for name, call in ours.items():
            call()
            figure(f"{name} (s)", interleaved([call], 1)[0] / 10)


def large():
    print(
        f"Large d: {LARGE_N} samples, p = {LARGE_P}, {LARGE_ATOMS} atoms, 2 iterations with their "
        "start, each in a process of its own"
    )
    seconds = {}
    for d in LARGE_D:
        _, text = run_child(LARGE.format(n=LARGE_N, d=d, p=LARGE_P, N=LARGE_ATOMS))
        memory, seconds[d] = map(float, text.split())
        figure(f"d = {d}: seconds an iteration", seconds[d])
        figure(
            f"d = {d}: peak resident memory of the process over the data (1)",
            memory,
            "<= 3" if d == LARGE_D[-1] else "",
        )
    figure(
        f"time a dimension, d = {LARGE_D[-1]} over d = {LARGE_D[0]} (1)",
        seconds[LARGE_D[-1]] / seconds[LARGE_D[0]] * LARGE_D[0] / LARGE_D[-1],
    )


def source():
    return gs.random_subspaces(60, STREAM_D, STREAM_P, 7)


def draw(centres, n, rng):
    noise = rng.standard_normal((n, STREAM_D, STREAM_P)) / STREAM_D**0.5
    return gs.orthonormalize(centres[rng.integers(len(centres), size=n)] + 0.7 * noise)


def stream():
    print(
        f"A stream of {STREAM} subspaces, d = {STREAM_D}, p = {STREAM_P}, {STREAM_ATOMS} atoms, "
        f"batches of {BATCH}, in a process of its own"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "atoms")
        seconds, text = run_child(
            STREAMED.format(
                N=STREAM_ATOMS, lam=STREAM_LAM, batches=STREAM // BATCH, batch=BATCH, path=path
            )
        )
        online = files.load(path).atoms
    early, late = map(float, text.split())
    rng = np.random.default_rng(2)
    held_out = draw(source(), 2000, rng)
    sample = draw(source(), 5000, rng)
    batch = learn.gdl(sample, STREAM_ATOMS, STREAM_LAM, n_iter=50, rng=0).atoms
    costs = [held_out_cost(held_out, atoms) for atoms in (online, batch)]
    figure("seconds in all", seconds)
    figure("resident memory at 10 % (MB)", early)
    figure("resident memory at 100 % (MB)", late)
    figure("cost on 2000 held out, stream over gdl on 5000 (1)", costs[0] / costs[1], "<= 1.05")


def held_out_cost(X, atoms):
    K = gs.projection_kernel(atoms)
    k = gs.projection_kernel(X, atoms)
    y = gs.sparse_codes(K, k, STREAM_LAM, norm2=STREAM_P)
    residual = STREAM_P + ((y @ K - 2 * k) * y).sum(axis=1)
    return (residual + STREAM_LAM * np.abs(y).sum(axis=1)).mean()


def resume():
    X = clusters(300, 80, 3, 30, 1.0)
    options = dict(lam=0.1, n_iter=60, tol=0, unused="random")
    whole = learn.gdl(X, 40, rng=0, **options)
    rng = np.random.default_rng(0)
    equal = 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(KILLS):
            path = Path(folder) / f"checkpoint{i}"
            child = subprocess.Popen(
                [sys.executable, "-c", KILLED, str(path)],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                text=True,
            )
            child.stdout.readline()
            while not path.exists() and child.poll() is None:
                time.sleep(0.001)
            time.sleep(rng.random())
            child.send_signal(signal.SIGKILL)
            child.wait()
            resumed = learn.gdl(X, 40, resume=path, **options)
            equal += all(np.array_equal(a, b) for a, b in zip(resumed, whole))
    figure(
        f"of {KILLS} runs killed at random, resumed to the bits of the whole one",
        equal,
        f">= {KILLS}",
    )


# ---------------------------------------------------------------------------- worth


def read(argument):
    path, _, p = argument.rpartition(":")
    with np.load(path) as data:
        frames = data["frames"]
        offset = data["offset"]
        label = data["label"]
        splits = [
            (data[f"train{i}"], data[f"test{i}"])
            for i in range(sum(bool(re.fullmatch(r"train\d+", key)) for key in data.files))
        ]
    frames = frames / 255 if frames.dtype == np.uint8 else frames
    return Path(path).stem, from_sets(np.split(frames, offset[1:-1]), int(p)), label, splits


def best_svm(codes, y):
    """The best of a grid by cross-validation within the codes: its score and the machine."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    fewest = np.unique(y, return_counts=True)[1].min()
    folds = StratifiedKFold(max(2, min(5, fewest)), shuffle=True, random_state=0)
    machine = make_pipeline(StandardScaler(), LinearSVC(dual="auto", max_iter=20_000))
    search = GridSearchCV(machine, {"linearsvc__C": [1e-4, 1e-3, 1e-2, 1e-1]}, cv=folds)
    search.fit(codes, y)
    return search.best_score_, search.best_estimator_


def accuracy(atoms_of, X, y, train, test):
    """Of codes over atoms_of(lam), lam and C by cross-validation within the training sets; in %."""
    best = None
    for lam in (0.02, 0.1, 0.5):
        atoms = atoms_of(lam)
        score, machine = best_svm(gs.gsc(X[train], atoms, lam), y[train])
        if best is None or score > best[0]:
            best = score, machine.score(gs.gsc(X[test], atoms, lam), y[test])
    return 100 * best[1]


def residual_accuracy(X, y, atoms, labels, test):
    return 100 * np.mean(gs.classify(X[test], atoms, labels, lam=0.1) == y[test])


def split_accuracies(X, y, train, test, seed):
    """Number of atoms, and the accuracies of the columns of the table on one split."""
    n_atoms = min(64, len(train) // 2)
    start = learn.init_atoms(X[train], n_atoms, "random", seed)

    def learned(lam, init="kmeans++"):
        return learn.gdl(X[train], n_atoms, lam, init=init, n_iter=15, rng=seed).atoms

    ways = (lambda lam: start, lambda lam: learned(lam, start), learned)
    codes = [accuracy(way, X, y, train, test) for way in ways]
    classes, counts = np.unique(y[train], return_counts=True)
    third = {c: max(1, round(count / 3)) for c, count in zip(classes, counts)}
    few = learn.class_dictionaries(X[train], y[train], third, 0.1, rng=seed)
    every = residual_accuracy(X, y, X[train], y[train], test)
    return n_atoms, [*codes, every, residual_accuracy(X, y, *few, test)]


def worth(arguments, n_splits):
    # two sets a class are few, not a mistake
    warnings.filterwarnings("ignore", "The number of unique classes")
    heads = ["random samples", "learned from them", "from k-means++", "all sets, residual",
             "a third, learned"]
    print(f"{'accuracy in %':16}{'N':>5}" + "".join(f"{head:>19}" for head in heads))
    better = np.zeros(2, int)
    for name, X, y, splits in map(read, arguments):
        rows = []
        for seed, (train, test) in enumerate(splits[:n_splits]):
            n_atoms, row = split_accuracies(X, y, train, test, seed)
            rows.append(row)
        mean = np.mean(rows, axis=0)
        spread = np.std(rows, axis=0, ddof=len(rows) > 1)
        better += mean[1:3] > mean[0]
        cells = "".join(f"{m:12.1f} ± {s:4.1f}" for m, s in zip(mean, spread))
        print(f"{name:16}{n_atoms:5d}{cells}   ({len(rows)} splits)", flush=True)
    for count, name in zip(better, ("learned from them", "learned from a k-means++ start")):
        figure(f"files of {len(arguments)} on which atoms {name} are better than random training "
               "samples", count)


def main(options):
    header("Dictionary learning")
    if options.data:
        return worth(options.data, options.splits)
    for part in (sweeps, peers, large, stream, resume):
        if options.only in (None, part.__name__):
            part()


if __name__ == "__main__":
    main(options)
