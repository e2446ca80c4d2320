"""Coding of subspaces from end to end, and the time to the first result.

Run: python -m benchmarks.coding

gLC is compared with its Gram matrices, gSC with the paper's running times, the codes of
variants with those of gSC. The first result is timed in fresh interpreters, import and
first gsc, with an empty cache, a full one and none; compiled code goes to a temporary
folder. benchmarks.scale measures growth with n.
"""

import shutil
import tempfile
from pathlib import Path

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.coding")

import numpy as np

import grassmann_sc as gs
from benchmarks import common
from benchmarks.common import figure, header, interleaved, run_child
from grassmann_sc import variants

N = 1000
P = 3  # atoms, dimension of the subspaces
GLC_D = 1000
NEIGHBORS = 20
PAPER = {100: 4.1, 1000: 16.9, 10_000: 106.4}  # d -> s
LAM = 0.3  # of the largest lam_max: supports of 20 to 200 of 1000 random atoms
OTHERS = 200, 500  # atoms and queries of other codes than these
OTHERS_D = 100
CENTRES = 20
SHARES = [0.1, 0.01]  # lambda over the median lam_max, there
PURSUED = 20  # atoms of a pursuit
REPETITIONS = 7
STARTS = 5
SCRIPT = """
import time
start = time.perf_counter()
import grassmann_sc as gs
imported = time.perf_counter()
X, D = gs.random_subspaces(100, 64, 3, 0), gs.random_subspaces(50, 64, 3, 1)
codes = gs.gsc(X, D, 0.1)
print(imported - start, time.perf_counter() - imported, abs(codes).sum())
"""


def problem(n, d):
    return gs.random_subspaces(n, d, P, 0), gs.random_subspaces(N, d, P, 1)


def grams(X, D):
    return gs.projection_kernel(D), gs.projection_kernel(X, D)


def local():
    X, D = problem(N, GLC_D)
    codes = gs.glc(X, D, NEIGHBORS)
    gram, glc = interleaved(
        [lambda: grams(X, D), lambda: gs.glc(X, D, NEIGHBORS)], REPETITIONS
    )
    print(
        f"gLC, {NEIGHBORS} neighbours, n = N = {N}, p = {P}, d = {GLC_D}: {glc:.4f} s, its Gram "
        f"matrices {gram:.4f} s; largest |1^T y - 1| {np.abs(codes.sum(axis=1) - 1).max():.0e}"
    )
    figure("gLC over its Gram matrices (1)", glc / gram, "<= 1.25")


def end_to_end():
    print(
        f"gSC from end to end, {N} queries, {N} atoms, p = {P}, lambda = {LAM} lam_max; the "
        "paper's: Gram matrices alone, quad-core i7, MATLAB"
    )
    for d, paper in PAPER.items():
        X, D = problem(N, d)
        K, k = grams(X, D)
        lam = LAM * gs.lam_max(k).max()
        codes = gs.gsc(X, D, lam)
        gram, gsc = interleaved([lambda: grams(X, D), lambda: gs.gsc(X, D, lam)], 2)
        figure(
            f"R^{d}: gsc (s); paper {paper} s; Gram matrices alone {gram:.3f} s", gsc
        )
        figure(
            f"R^{d}: the paper's time over ours (1); {np.count_nonzero(codes) / N:.0f} atoms a "
            f"code, worst gap {common.relative_gap(K, k, codes, lam, P).max():.0e}",
            paper / gsc,
        )


def other_codes():
    n_atoms, n = OTHERS
    print(
        f"Other codes beside those of gSC, {n} queries, {n_atoms} atoms, p = {P}, d = "
        f"{OTHERS_D}, from Gram matrices"
    )
    rng = np.random.default_rng(0)
    centres = gs.random_subspaces(CENTRES, OTHERS_D, P, rng)
    clustered = common.about(centres, n + n_atoms, 0.7, rng)
    uniform = gs.random_subspaces(n + n_atoms, OTHERS_D, P, rng)
    for name, X in {"uniform": uniform, f"{CENTRES} clusters": clustered}.items():
        grams_of = grams(X[:n], X[n:])
        for share in SHARES:
            lam = share * np.median(gs.lam_max(grams_of[1]))
            calls = [
                lambda: gs.sparse_codes(*grams_of, lam, norm2=P),
                lambda: variants.affine_sparse_codes(*grams_of, lam, norm2=P),
                lambda: variants.pursuit_codes(*grams_of, PURSUED, norm2=P),
                lambda: variants.penalised_locality_codes(*grams_of, 1, 0.1, norm2=P),
            ]
            used = [np.count_nonzero(call()) / n for call in calls]
            sparse, affine, pursuit, penalised = interleaved(calls, 3)
            print(
                f" {name}, lambda = {share} lam_max: gSC {1000 * sparse:.1f} ms, "
                f"{used[0]:.0f} atoms a code, affine {used[1]:.0f}"
            )
            figure(" affine sparse codes over gSC (1)", affine / sparse)
            figure(f" pursuit of {PURSUED} atoms over gSC (1)", pursuit / sparse)
            figure(" locality as a penalty over gSC (1)", penalised / sparse)


def start_up():
    header(
        "Start-up: import and gsc of 100 queries on 50 atoms, float64, fresh interpreters"
    )
    with tempfile.TemporaryDirectory() as cache:
        wall, text = run_child(SCRIPT, NUMBA_CACHE_DIR=cache)
        first_import, first_codes, total = map(float, text.split())
        figure("cold, empty cache: import (s)", first_import)
        figure("cold, empty cache: first gsc, compiled (s)", first_codes)
        figure("cold, empty cache: both, interpreter included (s)", wall, "<= 20")
        runs = [run_child(SCRIPT, NUMBA_CACHE_DIR=cache) for _ in range(STARTS)]
        numpy, numba = interleaved(
            [
                lambda: run_child("import numpy"),
                lambda: run_child("import numba, scipy.sparse"),
            ],
            STARTS,
        )
    imported, coded, again = np.median(
        [np.float64(text.split()) for _, text in runs], axis=0
    )
    figure(
        f"warm: import (s); a whole interpreter with numpy alone {numpy:.2f} s, with numba and "
        f"scipy.sparse {numba:.2f} s",
        imported,
        "<= 0.8",
    )
    figure("warm: first gsc, loaded from the cache (s)", coded)
    figure(
        "warm: script that codes 100 queries, wall (s)",
        np.median([wall for wall, _ in runs]),
        "<= 2",
    )

    # A folder that nobody may write to, root neither: a file stands where the cache
    # would go, and home is no folder.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(common.ROOT / "grassmann_sc.py", folder)
        (folder / "__pycache__").touch()
        folder.chmod(0o555)
        nowhere = {
            key: "/dev/null/cache"
            for key in ("HOME", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "LOCALAPPDATA")
        }
        wall, text = run_child(SCRIPT, cwd=folder, **nowhere)
        written = sorted(path.name for path in folder.iterdir())
        folder.chmod(0o755)
    figure(
        "read-only copy, no cache anywhere: compiled in memory, wall (s); files there: "
        f"{', '.join(written)}",
        wall,
    )
    figure(
        "sum of |codes| apart from the cached run's, cold and read-only, relative (1)",
        max(abs(total - again), abs(float(text.split()[2]) - again)) / again,
        "<= 1e-12",
    )


if __name__ == "__main__":
    header("Coding of subspaces")
    for part in (local, end_to_end, other_codes, start_up):
        part()
