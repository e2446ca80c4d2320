"""ARMA models of videos: simulated systems against the truth; time and memory.

Run: python -m benchmarks.videos

Time and memory on a long clip are compared with the direct way: LAPACK's SVD of the
frames and Gram-Schmidt (QR) of the whole stack [C; CA; ...], as the paper words it.
"""

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.videos")

import numpy as np
import scipy.linalg

from benchmarks.common import extra_memory, figure, header, interleaved
from grassmann_sc.subspaces import arma, from_video, observability

N_STATES = 10
N_BLOCKS = 5
N_FRAMES = 60
PIXELS = 100_000
REPETITIONS = 5


def simulated(rng, n, d, radius, n_frames=60):
    """A, C and frames without noise of a system whose eigenvalues lie evenly on an arc."""
    angles = np.linspace(0.3, 2.8, n // 2)
    turns = np.moveaxis(
        [[np.cos(angles), -np.sin(angles)], [np.sin(angles), np.cos(angles)]], 2, 0
    )
    A = radius * scipy.linalg.block_diag(*turns)
    T = np.linalg.qr(rng.standard_normal((n, n)))[0] * rng.uniform(0.7, 1.4, n)
    C = rng.standard_normal((d, n))
    A = T @ A @ np.linalg.inv(T)
    states = [np.linalg.matrix_power(A, t).sum(axis=1) for t in range(n_frames)]
    return A, C, np.array(states) @ C.T


def sine(basis, B):
    B = np.linalg.qr(B)[0]
    return np.linalg.norm(B - basis @ (basis.T @ B), 2)


def direct(frames):
    U, s, Vt = np.linalg.svd(
        frames.reshape(len(frames), -1).T.astype(float), full_matrices=False
    )
    U = U[:, :N_STATES]
    s = s[:N_STATES]
    V = Vt[:N_STATES].T
    A = (
        np.diag(s)
        @ V[1:].T
        @ V[:-1]
        @ np.linalg.inv(V[:-1].T @ V[:-1])
        @ np.diag(1 / s)
    )
    blocks = [U]
    for _ in range(N_BLOCKS - 1):
        blocks.append(blocks[-1] @ A)
    return np.linalg.qr(np.concatenate(blocks))[0]


def main():
    header("videos to points")
    rng = np.random.default_rng(0)
    errors = np.zeros((20, 3))
    for row in errors:
        A, C, frames = simulated(rng, N_STATES, 500, 0.97)
        A_hat, C_hat = arma(frames, N_STATES)
        T = C_hat.T @ C  # states of the estimate from those of the system
        spectra = [np.sort_complex(np.linalg.eigvals(M)) for M in (A_hat, A)]
        row[:] = (
            np.abs(A_hat - T @ A @ np.linalg.inv(T)).max(),
            np.abs(spectra[0] - spectra[1]).max(),
            sine(from_video(frames, N_STATES, N_BLOCKS), observability(A, C, N_BLOCKS)),
        )
    print(
        f"20 noise-free systems, {N_STATES} states, 500 pixels, 60 frames: largest errors"
    )
    names = (
        "A up to similarity",
        "eigenvalues of A",
        "sine of the angle to the true observability subspace",
    )
    for name, worst in zip(names, errors.max(axis=0)):
        figure(name, worst, "<= 1e-8")
    _, _, frames = simulated(rng, N_STATES, 500, 1.1)
    for stabilize in (False, True):
        radius = np.abs(
            np.linalg.eigvals(arma(frames, N_STATES, stabilize=stabilize)[0])
        ).max()
        figure(f"spectral radius estimated for 1.1, stabilize={stabilize}", radius)
    frames = rng.integers(0, 256, (N_FRAMES, PIXELS), np.uint8)
    print(
        f"a clip of {N_FRAMES} frames of {PIXELS} pixels (bytes), {N_STATES} states, {N_BLOCKS} "
        "blocks"
    )

    def ours():
        return from_video(frames, N_STATES, N_BLOCKS)

    figure(
        "sine of the angle to the direct way's subspace",
        sine(ours(), direct(frames)),
        "<= 1e-8",
    )
    own, theirs = interleaved([ours, lambda: direct(frames)], REPETITIONS)
    figure("seconds", own)
    figure("time over that of the direct way", own / theirs, "<= 1")
    figure("extra peak memory, MB", extra_memory(ours), "<= 1500")
    figure(
        "extra peak memory of the direct way, MB", extra_memory(lambda: direct(frames))
    )


if __name__ == "__main__":
    main()
