"""Videos as linear dynamical systems: LDS, compared by the angles of their
observability subspaces, and CS-LDS, recovered from few random measurements of each
frame.

A system x(t+1) = A x(t), f(t) = C x(t) is a pair (A, C) of A (s, s) and C (d, s), as
subspaces.arma estimates it from a video; its observability subspace is the column space
of O = [C; CA; CA^2; ...], which no change of the basis of states alters. Systems are a
sequence of such pairs, all of one s and d. Work is done in float64.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Sequence

import numpy as np
import scipy.fft
import scipy.linalg
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, lsmr

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "martin_distances",
    "observability_angles",
    "compress",
    "recover",
]

Systems = Sequence[tuple[ArrayLike, ArrayLike]]  # pairs (A, C)
STABLE_RADIUS = 1 - 2.0**-30  # to which stabilize scales, as subspaces.arma does
COMMON = 0, 0  # seeds of the camera
INNOVATIONS = 0, 1
EPS = np.finfo(np.float64).eps
COMPLEX_AT_A_TIME = 2**20  # numbers of cross Gramians, or of matrices C of pairs
RIGHT = 1e-12  # cosines below are those of right angles
# squared Martin distances below are computed from the difference of two systems
NEAR = 1e-4
MOST_DOUBLINGS = 64  # of a power of A; 35 take a radius of STABLE_RADIUS to rounding

HELD_OUT = 10  # one of so many innovation measurements is kept to judge a recovery by
HOPELESS = 0.7  # share of their norm that a recovery must explain better than
SOLVED = 1e-10  # tolerances of least squares, at the end and on the way
ROUGHLY = 1e-2
# a step that lowers the residual by less than this share ends a recovery
STALLED = 1e-3
DONE = 1e-12
N_ITER = 20  # of a recovery at most


# ----------------------------------------------------------------- distances of systems


def martin_distances(
    systems: Systems,
    systems2: Systems | None = None,
    *,
    stabilize: bool = False,
    least_cosine: float = 0.0,
) -> np.ndarray:
    """d[i, j] = sqrt(-ln prod_k cos^2 theta_k) >= 0 of the observability subspaces.

    (n, N). theta_k (k = 1..s) are the principal angles of the infinite observability
    matrices O_i, O_j: for Gramians P_ij = O_i^T O_j, which solve P_ij = A_i^T P_ij A_j
    + C_i^T C_j, the cos^2 are the eigenvalues of P_ii^-1 P_ij P_jj^-1 P_ji. No Gramian is
    inverted: each system is brought to states in which its own is I, and P_ij has the
    cosines as singular values. Without systems2, within systems. The kernel exp(-gamma
    d^2) is prod cos^(2 gamma) theta. An angle whose cosine is below 1e-12, which
    rounding makes of that of a right angle, counts as one of least_cosine in 0..1: with
    0 the distance is infinity, else systems with more right angles are farther apart.

    stabilize: scale an A of spectral radius 1 or more to just below 1, as
    subspaces.arma does; without it such a system, whose Gramian is infinite, is a
    ValueError, as is one that is not observable. Sources: Martin 2000; De Cock and De
    Moor 2002; Saisan et al., CVPR 2001.

    >>> from grassmann_sc.baselines import dynamics
    >>> systems = [([[0.0]], [[1.0]]), ([[0.6]], [[1.0]])]  # of one state: cos^2 theta = 1 - 0.6^2
    >>> dynamics.martin_distances(systems).round(4)  # sqrt(-ln 0.64)
    array([[0.   , 0.668],
           [0.668, 0.   ]])
    """
    least = core.check_number(least_cosine, "least_cosine", least=0, most=1)
    X, Y = _check_pair_of_systems(systems, systems2, stabilize)
    square = np.zeros((len(X.A), len(Y.A)))
    for i, j, P in _cross_gramians(X, Y):
        _, logarithm = np.linalg.slogdet(P)
        suspect = logarithm < np.log(RIGHT)  # the other cosines are at most 1
        cosines = np.linalg.svd(P[suspect], compute_uv=False)
        cosines[cosines < RIGHT] = least
        with np.errstate(divide="ignore"):
            logarithm[suspect] = np.log(cosines).sum(axis=1)
        tile = np.maximum(-2 * logarithm, 0)
        near = tile < NEAR
        tile[near] = -2 * np.log1p(-_squared_chords(P, near, X, i, Y, j) / 2).sum(
            axis=1
        )
        square[i, j] = tile
    return _mirrored(np.sqrt(square), X, Y)


def observability_angles(
    systems: Systems, systems2: Systems | None = None, *, stabilize: bool = False
) -> np.ndarray:
    """The principal angles (n, N, s) behind martin_distances, in radians.

    They ascend and lie in [0, pi/2]. To full accuracy where all of a pair are small,
    else to about 1e-8. Those of n_blocks rows of the observability matrices alone:
    core.principal_angles of subspaces.observability.

    ValueError where martin_distances raises it.

    >>> from grassmann_sc.baselines import dynamics
    >>> systems = [([[0.0]], [[1.0]]), ([[0.6]], [[1.0]])]
    >>> dynamics.observability_angles(systems)[0, 1].round(4)  # arccos 0.8
    array([0.6435])
    """
    X, Y = _check_pair_of_systems(systems, systems2, stabilize)
    angles = np.zeros((len(X.A), len(Y.A), X.A.shape[1]))
    for i, j, P in _cross_gramians(X, Y):
        tile = np.arccos(np.minimum(np.linalg.svd(P, compute_uv=False), 1))
        near = np.square(tile).sum(axis=2) < NEAR
        tile[near] = 2 * np.arcsin(np.sqrt(_squared_chords(P, near, X, i, Y, j)) / 2)
        angles[i, j] = tile
    return _mirrored(angles, X, Y)


# Systems in states in which O^H O = I and A is upper triangular: A (n, s, s), and the
# complex change of states W (n, s, s), with C W the matrix C of those states; C (n, d,
# s) as it came.
Balanced = namedtuple("Balanced", "A W C dtype")


def _balanced(systems, name, stabilize):
    """Balanced of checked pairs (A, C)."""
    C = np.stack([C for _, C in systems]).astype(np.float64, copy=False)
    gram = np.matmul(C.swapaxes(1, 2), C)  # (n, s, s)
    A, W = np.empty((2, *gram.shape), complex)
    P = np.empty((1, 1, *gram.shape[1:]), complex)
    for i, (own, _) in enumerate(systems):
        own = own.astype(np.float64)
        radius = np.abs(np.linalg.eigvals(own)).max()
        if radius >= 1:
            if not stabilize:
                raise ValueError(
                    f"{name}[{i}] must be stable, all |eigenvalues| of A below 1, got "
                    f"{radius:.8g}; stabilize=True scales A back"
                )
            own *= STABLE_RADIUS / radius
        A[i], W[i] = scipy.linalg.schur(own, "complex")
        system = A[i : i + 1], W[i : i + 1]
        for _ in range(2):  # the second time takes away what rounding left
            _solve_tile(gram[i], *system, *system, 0, 1, P)
            L = _factor_of_gramian(P[0, 0], f"{name}[{i}]")  # P = L L^H
            A[i] = _over(L.conj().T @ A[i], L)
            W[i] = _over(W[i], L)
    return Balanced(np.triu(A), W, C, shared.float_type(*(C for _, C in systems)))


def _over(B, L):
    """B L^-H."""
    return _adjoint(scipy.linalg.solve_triangular(L, _adjoint(B), lower=True))


def _factor_of_gramian(P, name):
    P = (P + _adjoint(P)) / 2
    values = np.linalg.eigvalsh(P)
    if not values[0] > 10 * len(P) * EPS * values[-1]:
        raise ValueError(
            f"{name} must be observable: its Gramian has eigenvalues from "
            f"{values[0]:.2g} to {values[-1]:.2g}, lower the number of states"
        )
    return np.linalg.cholesky(P)


def _cross_gramians(X, Y):
    """(i, j, P) of tiles: P (t, u, s, s) with O_i^H O_j of each pair.

    If Y is X, of those tiles that reach above the diagonal.
    """
    s = X.A.shape[1]
    side = max(1, int((COMPLEX_AT_A_TIME // s**2) ** 0.5))
    for j in core.slices(len(Y.A), side):
        columns = Y.C[j].transpose(0, 2, 1).reshape(-1, Y.C.shape[1])  # (u s, d)
        for i in core.slices(j.stop if X is Y else len(X.A), side):
            rows = X.C[i].transpose(0, 2, 1).reshape(-1, X.C.shape[1])
            products = np.matmul(rows, columns.T)  # (t s, u s)
            P = np.empty((len(rows) // s, len(columns) // s, s, s), complex)
            core.run_blocks(
                lambda b: _solve_tile(
                    products, X.A[i], X.W[i], Y.A[j], Y.W[j], b.start, b.stop, P
                ),
                len(P),
                4,
            )
            yield i, j, P


@core.jit
def _solve_tile(products, A1, W1, A2, W2, start, stop, out):
    """Write P of P = A1_i^H P A2_j + W1_i^H G_ij W2_j to out[i, j], i in start..stop-1.

    G_ij (s, s) are the blocks of products; A1_i and A2_j are upper triangular.
    Column by column: what of A1^H P A2 is known gives entry after entry of the next.
    """
    s = A1.shape[1]
    half = np.empty(s, np.complex128)
    partial = np.empty(s, np.complex128)
    for i in range(start, stop):
        T = A1[i]
        for j in range(len(A2)):
            S = A2[j]
            P = out[i, j]
            for c in range(s):
                # columns c of G W2, and of P S but for its own share
                for a in range(s):
                    half[a] = 0j
                    for b in range(s):
                        half[a] += products[i * s + a, j * s + b] * W2[j, b, c]
                    partial[a] = 0j
                    for b in range(c):
                        partial[a] += P[a, b] * S[b, c]
                for a in range(s):
                    total = 0j
                    for b in range(s):
                        total += np.conj(W1[i, b, a]) * half[b]
                    for b in range(a + 1):
                        total += np.conj(T[b, a]) * partial[b]
                    P[a, c] = total / (1 - np.conj(T[a, a]) * S[c, c])
                    partial[a] += P[a, c] * S[c, c]


def _squared_chords(P, near, X, i, Y, j):
    """2 (1 - cos theta) (m, s), ascending, of the m pairs of a tile i, j that are near.

    The eigenvalues of E^H E for E = O_j - O_i Q, with Q the orthogonal factor of P_ij:
    its blocks obey E(k+1) = E(k) A_j + F(k) (A_j - A), F(k+1) = F(k) A, F(0) = C_i Q, A
    = Q^H A_i Q, and so do the Gramians of both, in which nothing cancels.
    """
    pairs = np.argwhere(near)
    chords = np.empty((len(pairs), P.shape[2]))
    for some in core.slices(len(pairs), max(1, COMPLEX_AT_A_TIME // X.C[0].size)):
        a, b = pairs[some].T
        U, _, V = np.linalg.svd(P[a, b])
        Q = np.matmul(U, V)  # (m, s, s)
        A = np.matmul(_adjoint(Q), np.matmul(X.A[i][a], Q))
        C = np.matmul(X.C[i][a], np.matmul(X.W[i][a], Q))
        A2 = Y.A[j][b]
        off_A = A2 - A
        off_C = np.matmul(Y.C[j][b], Y.W[j][b]) - C
        mixed = np.matmul(_adjoint(off_A), A) + np.matmul(_adjoint(off_C), C)
        mixed = _doubled(A2, mixed, A)  # E^H F
        cross = np.matmul(_adjoint(A2), np.matmul(mixed, off_A))
        own = np.matmul(_adjoint(off_A), off_A) + np.matmul(_adjoint(off_C), off_C)
        gram = _doubled(A2, own + cross + _adjoint(cross), A2)
        chords[some] = np.clip(np.linalg.eigvalsh(gram), 0, 2)
    return chords


def _doubled(A, G, B):
    """sum_k (A^H)^k G B^k of stacks of matrices."""
    for _ in range(MOST_DOUBLINGS):
        step = np.matmul(_adjoint(A), np.matmul(G, B))
        G = G + step
        steps, sums = (np.abs(S).max(axis=(-2, -1)) for S in (step, G))
        if (steps <= EPS * sums).all():  # of each pair by itself
            break
        A = np.matmul(A, A)
        B = np.matmul(B, B)
    return G


def _adjoint(A):
    return A.conj().swapaxes(-1, -2)


def _mirrored(values, X, Y):
    """values in the type of the systems.

    If both are one, symmetric with 0 on the diagonal.
    """
    if X is Y:
        values[np.tri(len(values), dtype=bool)] = 0
        values += values.swapaxes(0, 1)
    return values.astype(np.result_type(X.dtype, Y.dtype), copy=False)


# ------------------------------------------------------------- compressive measurements


Measurements = namedtuple("Measurements", "common innovations shape")


def compress(frames: ArrayLike, n_common: int, n_innovations: int) -> Measurements:
    """Return what a compressive camera sees of a clip (n_frames, height, width).

    common (n_frames, n_common): products of each frame with the same random vectors;
    innovations (n_frames, n_innovations): with vectors that are new for each frame.
    They are rows, drawn at random, of an orthonormal DCT of the pixels under random
    signs, scaled by sqrt(d / m), so that norms are kept on average; the camera is
    always the same. n_common in 1..d, n_innovations in 2..d: the compression is d /
    (n_common + n_innovations). Source: Sankaranarayanan et al., ECCV 2010, whose camera
    takes noiselets.

    ValueError for frames that are no finite clip, or a number of measurements out
    of range.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import dynamics
    >>> seen = dynamics.compress(np.ones((10, 6, 8)), 2, 4)  # 6 numbers for 48 pixels
    >>> seen.common.shape, seen.innovations.shape
    ((10, 2), (10, 4))
    """
    clip = shared.check_clip(frames, "frames", shared.LARGEST_PIXEL)
    rows = clip.reshape(len(clip), -1).astype(np.float64)
    n, d = rows.shape
    n_common = core.check_integer(n_common, "n_common", 1, d)
    n_innovations = core.check_integer(n_innovations, "n_innovations", 2, d)
    return Measurements(
        _Camera(1, d, n_common, COMMON).measure(rows),
        _Camera(n, d, n_innovations, INNOVATIONS).measure(rows),
        clip.shape[1:],
    )


class _Camera:
    """m measurements of each of n frames of d pixels.

    With n = 1 the same for any number of frames.
    """

    def __init__(self, n, d, m, seed):
        rng = np.random.default_rng(seed)
        # frame by frame: those of the first frames do not depend on n
        drawn = [
            (rng.choice([-1.0, 1.0], d), rng.choice(d, m, replace=False))
            for _ in range(n)
        ]
        self.signs, self.rows = map(np.stack, zip(*drawn))
        self.scale = (d / m) ** 0.5

    def measure(self, frames):
        """(n, m) of frames (n, d)."""
        mixed = scipy.fft.dct(frames * self.signs, norm="ortho", axis=1)
        return np.take_along_axis(mixed, self.rows, axis=1) * self.scale


Recovery = namedtuple("Recovery", "A C states frames residual n_iter")


def recover(
    measurements: Measurements, n_states: int, n_coefficients: int | None = None
) -> Recovery:
    """Return the linear dynamical system behind Measurements: f(t) ~ C x(t).

    The states x(t) are the leading right singular vectors of the common measurements,
    orthonormal over time: the system's own but for a change of basis. A is fitted to
    them by least squares. Then C, whose columns have the same n_coefficients, and no
    other, nonzero coefficients of the DCT of a frame, from z(t) = Phi(t) C x(t) by
    CoSaMP on rows: the 2 n_coefficients rows that agree most with the residual join the
    support, least squares solve for C on it, the largest rows stay; until the residual
    falls no more, or 20 times.

    n_states needs n_common >= n_states and n_frames > n_states. n_coefficients: None
    for as many as leave two measurements to each number on the enlarged support;
    ValueError where measurements are fewer than such numbers.

    Recovery: A (s, s), C (d, s), states (n_frames, s), frames (n_frames, height,
    width), the recovered clip; residual, in [0, 1] and beyond, the relative error at a
    tenth of the innovation measurements, which the recovery does not see: where
    compression is hopeless it is near 1, above HOPELESS = 0.7; n_iter. Source:
    Sankaranarayanan et al., ECCV 2010.

    >>> import numpy as np
    >>> from grassmann_sc.baselines import dynamics
    >>> clip = np.multiply.outer(0.9 ** np.arange(10), np.ones((6, 8)))  # it fades
    >>> found = dynamics.recover(dynamics.compress(clip, 2, 4), n_states=1)
    >>> found.A.round(6), bool(found.residual < 1e-9)
    (array([[0.9]]), True)
    """
    measurements = _check_measurements(measurements)
    common, innovations, _ = measurements
    n, m = innovations.shape
    if n < 2:
        raise ValueError(f"measurements must be of two frames or more, got {n}")
    d = measurements.shape[0] * measurements.shape[1]
    most = max(min(common.shape[1], n - 1), 0)
    s = core.check_integer(n_states, "n_states", 1, most)
    n_judged = max(1, m // HELD_OUT)
    numbers = n * (m - n_judged) + s * common.shape[1]
    usual = min(max(1, numbers // (6 * s)), d)
    K = core.check_integer(
        usual if n_coefficients is None else n_coefficients, "n_coefficients", 1, d
    )
    if s * min(3 * K, d) > numbers:
        raise ValueError(
            "measurements must be at least n_states min(3 n_coefficients, d) = "
            f"{s * min(3 * K, d)} to tell C, got {numbers}: too strong a compression"
        )
    A, X = _states(common, s)
    problem = _SeenSystem(measurements, X, m - n_judged)
    S, steps = _cosamp(problem, K)
    C = problem.pixels(S).reshape(s, d).T  # (d, s)
    frames = X @ C.T
    missed = (problem.innovations.measure(frames) - innovations)[:, m - n_judged :]
    signal = max(np.linalg.norm(innovations[:, m - n_judged :]), 1e-300)
    return Recovery(
        A,
        C,
        X,
        frames.reshape(n, *measurements.shape),
        float(np.linalg.norm(missed) / signal),
        steps,
    )


def _states(common, s):
    """A (s, s), and orthonormal states (n, s) from common measurements (n, m)."""
    X, values, _ = np.linalg.svd(common, full_matrices=False)
    rank = int((values > 10 * max(common.shape) * EPS * values[0]).sum())
    if rank < s:
        raise ValueError(
            f"measurements must hold n_states = {s} independent states, got {rank}: "
            "the clip changes too little, or n_common is too small"
        )
    X = X[:, :s]
    return np.linalg.lstsq(X[:-1], X[1:], rcond=1e3 * EPS)[0].T, X


class _SeenSystem:
    """z(t) = Phi(t) C x(t) as a linear map of DCT coefficients of C: (k, s).

    Only the rows of C on a support (k,) are given.
    """

    def __init__(self, measurements, X, m):
        common, innovations, self.shape = measurements
        d = self.shape[0] * self.shape[1]
        n, s = X.shape
        self.X = X
        self.innovations = _Camera(n, d, innovations.shape[1], INNOVATIONS)
        camera = _Camera(1, d, common.shape[1], COMMON)
        # one transform of the columns of C, and of the frames behind them
        self.signs = np.concatenate(
            [np.repeat(camera.signs, s, 0), self.innovations.signs]
        )
        places = [
            (np.arange(s)[:, None] * d + camera.rows).ravel(),
            (np.arange(s, s + n)[:, None] * d + self.innovations.rows[:, :m]).ravel(),
        ]
        self.places = np.concatenate(places)
        self.scales = np.repeat(
            [camera.scale, self.innovations.scale], [*map(len, places)]
        )
        # of common measurements only C^T Phi^T = X^T Z tells, as X is orthonormal
        self.target = np.concatenate(
            [np.ravel(X.T @ common), np.ravel(innovations[:, :m])]
        )

    def pixels(self, S):
        """The columns of C as images (s, height, width) from all coefficients S (d, s)."""
        return scipy.fft.idctn(S.T.reshape(-1, *self.shape), axes=(1, 2), norm="ortho")

    def measure(self, S):
        C = self.pixels(S).reshape(S.shape[1], -1)  # (s, d)
        images = np.concatenate([C, self.X @ C]) * self.signs
        mixed = scipy.fft.dct(images, norm="ortho", axis=1)
        return mixed.ravel()[self.places] * self.scales

    def adjoint(self, z):
        s = self.X.shape[1]
        mixed = np.zeros(self.signs.shape)
        mixed.ravel()[self.places] = z * self.scales
        images = scipy.fft.idct(mixed, norm="ortho", axis=1) * self.signs
        C = images[:s] + self.X.T @ images[s:]
        S = scipy.fft.dctn(C.reshape(s, *self.shape), axes=(1, 2), norm="ortho")
        return S.reshape(s, -1).T

    def least_squares(self, support, start, tol):
        """The S (d, s) of rows in the support that fits best, from a start."""
        d, s = start.shape
        S = np.zeros_like(start)

        def forward(x):
            S[support] = x.reshape(-1, s)
            return self.measure(S)

        operator = LinearOperator(
            (len(self.target), len(support) * s),
            matvec=forward,
            rmatvec=lambda z: np.ravel(self.adjoint(z)[support]),
            dtype=np.float64,
        )
        x = lsmr(
            operator,
            self.target,
            atol=tol,
            btol=tol,
            conlim=0,
            maxiter=20 + 2 * d,
            x0=np.ravel(start[support]),
        )[0]
        S[support] = x.reshape(-1, s)
        return S


def _cosamp(problem, K):
    """Coefficients S (d, s) with K nonzero rows, and the number of steps."""
    S = np.zeros((math.prod(problem.shape), problem.X.shape[1]))
    norm = np.linalg.norm(problem.target)
    left = problem.target
    support = np.empty(0, np.intp)
    for steps in range(1, N_ITER + 1):
        agreeing = _largest_rows(problem.adjoint(left), 2 * K)
        trial = problem.least_squares(np.union1d(support, agreeing), S, ROUGHLY)
        kept = _largest_rows(trial, K)
        trial = problem.least_squares(kept, trial, ROUGHLY)
        before = np.linalg.norm(left)
        residual = problem.target - problem.measure(trial)
        after = np.linalg.norm(residual)
        if after < before:
            S = trial
            support = kept
            left = residual
        stalled = after > (1 - STALLED) * before
        if stalled or after <= DONE * norm or steps == N_ITER:
            return problem.least_squares(support, S, SOLVED), steps


def _largest_rows(S, k):
    energy = np.einsum("ij,ij->i", S, S)
    return np.sort(np.argpartition(-energy, min(k, len(S)) - 1)[:k])


# ------------------------------------------------------------------------------- checks


def check_systems(systems, name):
    """A list of at least one pair (A, C) of real, finite arrays.

    All pairs have one s and one d.
    """
    shared.check_sequence(systems, name, "pairs (A, C)", "system")
    checked = []
    for i, pair in enumerate(systems):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"{name}[{i}] must be a pair (A, C), got {type(pair).__name__}"
            )
        A = shared.shaped_array(pair[0], f"the A of {name}[{i}]", ("s", "s"))
        C = shared.shaped_array(pair[1], f"the C of {name}[{i}]", ("d", len(A)))
        if checked and C.shape != checked[0][1].shape:
            raise ValueError(
                f"{name} must share d and s: {name}[0] has {checked[0][1].shape}, "
                f"{name}[{i}] has {C.shape}"
            )
        checked.append((A, C))
    return checked


def _check_pair_of_systems(systems, systems2, stabilize):
    """Balanced of both; of the first twice without systems2."""
    stabilize = core.check_flag(stabilize, "stabilize")
    X = _balanced(check_systems(systems, "systems"), "systems", stabilize)
    if systems2 is None:
        return X, X
    Y = _balanced(check_systems(systems2, "systems2"), "systems2", stabilize)
    if X.C.shape[1:] != Y.C.shape[1:]:
        raise ValueError(
            "systems and systems2 must share d and s, got C of "
            f"{X.C.shape[1:]} and {Y.C.shape[1:]}"
        )
    return X, Y


def _check_measurements(measurements):
    """Measurements of float64."""
    if not isinstance(measurements, Measurements):
        raise TypeError(
            "measurements must be what compress gives, got "
            f"{type(measurements).__name__}"
        )
    common = shared.shaped_array(
        measurements.common, "measurements.common", ("n_frames", "m")
    )
    innovations = shared.shaped_array(
        measurements.innovations,
        "measurements.innovations",
        (len(common), "m"),
        ", a row a frame",
    )
    if not innovations.any() or not common.any():
        raise ValueError("measurements must hold a signal, got only zeros")
    return measurements._replace(
        common=common.astype(np.float64), innovations=innovations.astype(np.float64)
    )
