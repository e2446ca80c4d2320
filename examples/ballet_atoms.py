"""Atoms learned from ballet clips, as pictures (the paper's figure in section 6).

Run: python -m examples.ballet_atoms --data FILE.npz [--atoms N]

FILE.npz holds subspaces of clips: bases (n, d, p), orthonormal, of frames of side x side
= d pixels. gDL learns N atoms of all of them, without labels. Of each atom three
directions are drawn; the paper shows the dominant one of four atoms. The picture goes
to out/.
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # runs as a file too

from examples.common import PICTURES, of_these, parsed

OPTIONS = {
    "--data": dict(type=Path, metavar="FILE.npz", required=True, help="bases"),
    "--atoms": dict(type=int, default=8, help="(default: %(default)s)"),
    **PICTURES,
}
options = parsed(__name__, of_these, "examples.ballet_atoms", OPTIONS)

import numpy as np

from examples.common import save_picture
from grassmann_sc import learn, plots

LAM = 0.1
P = 3  # dimension of an atom, at most that of the clips
OUT = Path("out")


def read_bases(path):
    """Bases (n, d, p) of a file, and the side of a frame."""
    with np.load(path, allow_pickle=False) as file:
        if "bases" not in file or file["bases"].ndim != 3:
            raise SystemExit(f"{path}: must hold bases (n, d, p)")
        bases = file["bases"][:, :, :P]
    side = math.isqrt(bases.shape[1])
    if side * side != bases.shape[1]:
        raise SystemExit(
            f"{path}: bases must be of square frames, got d = {bases.shape[1]}"
        )
    return np.linalg.qr(bases.astype(float))[0], side


def main(options):
    X, side = read_bases(options.data)
    learned = learn.gdl(X, options.atoms, LAM, rng=0)
    print(
        f"{len(X)} clips to {options.atoms} atoms: cost {learned.costs[0]:.1f} at first, "
        f"{learned.costs[-1]:.1f} after {len(learned.costs) // 2} iterations"
    )
    ax = plots.plot_atoms(learned.atoms, (side, side))
    ax.set_title(f"gDL, {options.atoms} atoms, λ = {LAM:g}", fontsize=10)
    print(f"picture: {save_picture(OUT / 'ballet_atoms', ax, options)}")


if __name__ == "__main__":
    main(options)
