"""Simulated dynamic textures: a dozen linear systems with known parameters, rendered to
small videos.
"""

from collections import namedtuple

import numpy as np
import scipy.fft

N_SYSTEMS = 12
SIDE = 24
N_FRAMES = 30
NOISE = 0.1  # standard deviation, in those of a clip without it

# (s, s), (side^2, s), of the driving noise
System = namedtuple("System", "A C deviation")


def texture_systems(side=SIDE, n_states=4, n_coefficients=16, seed=0):
    """The systems: a pair has the same appearance and other dynamics, the next pair
    another appearance and dynamics as before.

    C is sparse in the DCT: all columns have the same n_coefficients low frequencies. A
    has two pairs of eigenvalues, of radius 0.95 to 0.99, whose angles are the pace of
    two motions.
    """
    rng = np.random.default_rng(seed)
    paces = np.linspace(0.15, 2.4, N_SYSTEMS // 2)
    appearances = [
        _sparse_patterns(rng, side, n_states, n_coefficients)
        for _ in range(N_SYSTEMS // 2)
    ]
    systems = []
    for k in range(N_SYSTEMS):
        pace = paces[(k + 1) // 2 % len(paces)]
        radius = 0.95 + 0.04 * (k % 3) / 2
        A = np.kron(np.diag([1.0, 0.0]), _turn(pace)) + np.kron(
            np.diag([0.0, 1.0]), _turn(0.6 * pace + 0.1)
        )
        systems.append(System(radius * A, appearances[k // 2], 0.3))
    return systems


def _turn(angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def _sparse_patterns(rng, side, n_states, n_coefficients):
    """C (side^2, s) of unit columns with the same low frequencies of the DCT."""
    low = max(2, side // 2)
    places = rng.choice(low * low, n_coefficients, replace=False)
    coefficients = np.zeros((n_states, side, side))
    coefficients[:, places // low, places % low] = rng.standard_normal(
        (n_states, n_coefficients)
    )
    images = scipy.fft.idctn(coefficients, axes=(1, 2), norm="ortho").reshape(
        n_states, -1
    )
    return (images / np.linalg.norm(images, axis=1, keepdims=True)).T


def simulated_clip(system, n_frames=N_FRAMES, noise=NOISE, rng=None, driven=True):
    """A clip (n_frames, side, side) from a random state; driven: by noise at every
    step, as textures are, else the system alone.
    """
    rng = np.random.default_rng(rng)
    A, C, deviation = system
    state = rng.standard_normal(len(A))
    states = []
    for _ in range(n_frames):
        states.append(state)
        state = A @ state
        if driven:
            state = state + deviation * rng.standard_normal(len(A))
    frames = np.array(states) @ C.T
    frames += noise * frames.std() * rng.standard_normal(frames.shape)
    side = round(len(C) ** 0.5)
    return frames.reshape(n_frames, side, side)


def simulated_textures(n_clips=10, systems=None, seed=0, **options):
    """(clips, labels): n_clips of each system, as a list of arrays."""
    systems = texture_systems() if systems is None else systems
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(systems)), n_clips)
    return [simulated_clip(systems[k], rng=rng, **options) for k in labels], labels
