"""Learn a dictionary from a file of subspaces and code them, on workers of Dask.

    python -m examples.many_machines [--workers 2 | --scheduler tcp://HOST:8786] [--data
    FILE.npy]

FILE.npy holds subspaces (n, d, p), where all workers find it under the same path;
without --data a file of 20,000 is written. Leaves out/many_machines/atoms.npz,
rounds.npz (a checkpoint: run again with --resume after a kill) and codes/, which
load_codes reads. Needs dask[distributed].
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples.common import of_these, parsed

OPTIONS = {
    "--workers": dict(type=int, help="workers on this machine (default: one a core)"),
    "--scheduler": dict(metavar="ADDRESS", help="a running cluster"),
    "--data": dict(type=Path, metavar="FILE.npy", help="subspaces (n, d, p)"),
    "--resume": dict(
        action="store_true", help="go on from the checkpoint of a killed run"
    ),
}
options = parsed(__name__, of_these, "examples.many_machines", OPTIONS)

import numpy as np

import grassmann_sc as gs
from grassmann_sc import files
from grassmann_sc.large import scale
from grassmann_sc.large.codes import load_codes

OUT = Path("out") / "many_machines"
N_SUBSPACES = 20_000
N_ATOMS = 60
LAM = 0.2  # in units of lam_max
N_ROUNDS = 5


def main(options):
    OUT.mkdir(parents=True, exist_ok=True)
    X = np.load(options.data or write_subspaces(OUT / "subspaces.npy"), mmap_mode="r")
    checkpoint = OUT / "rounds.npz"

    with connect(options) as client:
        start = time.perf_counter()
        learned = scale.gdl(
            X,
            N_ATOMS,
            LAM,
            lam_scale="max",
            n_iter=N_ROUNDS,
            rng=0,
            client=client,
            checkpoint=checkpoint,
            resume=checkpoint if options.resume else None,
        )
        print(
            f"{len(learned.costs)} rounds over {len(X):,} subspaces: "
            f"{time.perf_counter() - start:.1f} s, cost a subspace",
            *(f"{cost:.4f}" for cost in learned.costs / len(X)),
        )
        files.save(OUT / "atoms.npz", learned)
        start = time.perf_counter()
        n = scale.code(
            X,
            learned.atoms,
            learned.lam,
            client=client,
            out=OUT / "codes",
            sparse_output=True,
            start="resume" if options.resume else 0,
            replace=not options.resume,
        )
    codes = load_codes(OUT / "codes")
    print(
        f"codes of {n:,} subspaces: {time.perf_counter() - start:.1f} s, "
        f"{codes.nnz / n:.1f} atoms each"
    )
    local = gs.gsc(X[:1000], learned.atoms, learned.lam)
    print(
        f"beside those of one machine: {abs(codes[:1000].toarray() - local).max():.1g} apart"
    )


def connect(options):
    """The client of the cluster that was asked for."""
    if options.scheduler is None:
        return scale.local_client(options.workers)
    import distributed

    return distributed.Client(options.scheduler)


def write_subspaces(path):
    """Subspaces of G(3, 50) about 40 centres, if they are not there yet."""
    if not path.exists():
        rng = np.random.default_rng(0)
        centres = gs.random_subspaces(40, 50, 3, rng)
        noise = 0.5 * rng.standard_normal((N_SUBSPACES, 50, 3)) / 50**0.5
        np.save(
            path, gs.orthonormalize(centres[rng.integers(0, 40, N_SUBSPACES)] + noise)
        )
    return path


if __name__ == "__main__":
    main(options)
