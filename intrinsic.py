"""Geometry in tangent spaces: exponential and logarithm maps, geodesics, the Karcher
mean.

A tangent vector at the subspace X (d, p) is a matrix H (d, p) with X^T H = 0. Its norm
is Frobenius', so that ||log_X(Y)||_F is the geodesic distance, the 2-norm of the
principal angles.

With the small singular value decomposition X^T Y = U cos(Theta) V^T, and phi = Theta /
sin(Theta), which is smooth in cos(Theta) up to 1 and at right angles,

    log_X(Y) = (Y V - X U cos(Theta)) phi U^T = Y A - X B,
    A = V phi U^T,  B = X^T Y A = U cos(Theta) phi U^T.

Y V U^T is Y aligned with X by Procrustes. No vector is divided by an angle, a sine or a
cosine. Codes in tangent spaces (lE-SC, iSC) are made in baselines/tangent.py.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core

__all__ = ["exp_map", "log_map", "geodesic", "karcher_mean"]

TANGENTS_AT_A_TIME = 2**20  # their numbers
CACHE = 2**16  # numbers of those that a thread makes at a time


# ------------------------------------------------------------------ exp, log, geodesics


def exp_map(X: ArrayLike, H: ArrayLike) -> np.ndarray:
    """exp_X(H): the subspaces reached from X along tangent vectors H.

    All have shape (..., d, p). (X W cos(Theta) + Q sin(Theta)) W^T with the thin SVD H
    = Q Theta W^T; bases (..., d, p). Leading axes broadcast. ValueError unless X^T H =
    0, relative to the norm of H or to 1, whichever is larger (what is left of it is
    projected out).

    >>> import numpy as np
    >>> from grassmann_sc import intrinsic
    >>> intrinsic.exp_map([[1.0], [0.0]], [[0.0], [np.pi / 2]]).round(6)  # a quarter turn
    array([[0.],
           [1.]])
    """
    X = core.check_bases(X, "X", None)
    H = core.finite_array(H, "H")
    d, p = X.shape[-2:]
    if H.shape[-2:] != (d, p):
        raise ValueError(f"H must have shape (..., {d}, {p}) as X, got {H.shape}")
    tol = 1e-3 if np.float32 in (X.dtype, H.dtype) else 1e-6

    def reached(base, tangent, first):
        # X^T H (t, p, p), zero to rounding
        inside = np.matmul(base.swapaxes(1, 2), tangent)
        largest = np.abs(inside).max(axis=(1, 2))
        relative = largest / np.maximum(1, _norms(tangent))
        if not (relative <= tol).all():
            i = int(relative.argmax())
            raise ValueError(
                f"H must be tangent at X, X^T H = 0: got entries up to "
                f"{largest[i]:.2g} at index {first + i}; subtract X X^T H first"
            )
        return _exp(base, tangent - np.matmul(base, inside)), np.inf

    return _paired(reached, X, H, "X and H")[0]


def _exp(X, H):
    # (..., d, p), (..., p), (..., p, p)
    Q, theta, Wt = np.linalg.svd(H, full_matrices=False)
    theta = theta[..., None, :]
    turned = np.matmul(X, Wt.swapaxes(-1, -2)) * np.cos(theta) + Q * np.sin(theta)
    return np.matmul(turned, Wt)


def log_map(X: ArrayLike, Y: ArrayLike) -> np.ndarray:
    """log_X(Y): the shortest tangent vectors H at X with exp_X(H) = Y.

    All have shape (..., d, p). ||H||_F is the geodesic distance, the singular values of
    H are the principal angles of X and Y (..., d, p). Exact to rounding for any pair,
    near and at right angles too. At a right angle the shortest geodesic is not unique:
    a warning, and one of them. H depends on the basis of X as a tangent vector does
    (log_{XR}(Y) = log_X(Y) R), not on that of Y. Leading axes broadcast.

    ValueError unless X and Y are bases of one d and p whose leading axes broadcast.

    >>> from grassmann_sc import intrinsic
    >>> H = intrinsic.log_map([[1.0], [0.0]], [[0.6], [0.8]])
    >>> intrinsic.exp_map([[1.0], [0.0]], H)
    array([[0.6],
           [0.8]])
    """
    H, n_right = log_of_checked(*_check_points(X, Y))
    warn_right_angles(n_right, "log_map")
    return H


def log_of_checked(X, Y):
    """log_X(Y) for checked X, Y (..., d, p), and the number of right angles.

    X and Y have one type.
    """
    tangents, least = _paired(_log, X, Y, "X and Y")
    return tangents, np.sum(least <= right_angle_cosine(X.dtype, X.shape[-1]))


def _log(X, Y, _):
    """log_X(Y) (t, d, p) and the smallest cosines (t,)."""
    C = np.matmul(X.swapaxes(1, 2), Y)  # X^T Y = U cosine V^T (t, p, p)
    U, cosine, Vt = np.linalg.svd(C)
    sine = np.sqrt(np.maximum((1 - cosine) * (1 + cosine), 0))
    # (t, p)
    phi = np.where(sine > 0, np.arctan2(sine, cosine) / np.where(sine > 0, sine, 1), 1)
    A = np.matmul(Vt.swapaxes(1, 2) * phi[:, None, :], U.swapaxes(1, 2))
    return np.matmul(Y, A) - np.matmul(X, np.matmul(C, A)), cosine[:, -1]


def log_adjoint(X, Y, W):
    """Give the gradient at Y of <W, log_X(Y)>, for tangent vectors W at X, float64 all.

    It has shape (..., d, p) and is tangent at Y: the adjoint of the derivative of log_X
    at Y. With D = Y V = X U cos(Theta) + Q sin(Theta), and W U = Q A + R with Q^T R =
    0, it is ((Q cos(Theta) - X U sin(Theta)) A' + R phi(Theta)) V^T, where A' is A with
    its symmetric part times phi(theta_j - theta_k), its antisymmetric part times
    phi(theta_j + theta_k), and phi(t) = t / sin(t): parallel transport of what Jacobi
    fields leave of W. Where two angles are right ones, the gradient is infinite; a
    large one is returned. Leading axes broadcast.

    >>> import numpy as np
    >>> from grassmann_sc import intrinsic
    >>> X, Y, W = np.array([[[1.0], [0.0]], [[0.6], [0.8]], [[0.0], [1.0]]])
    >>> intrinsic.log_adjoint(X, Y, W)  # of the angle
    array([[-0.8],
           [ 0.6]])
    """
    U, cosine, Vt = np.linalg.svd(np.matmul(X.swapaxes(-1, -2), Y))  # (..., p, p)
    XU = np.matmul(X, U)
    # Q sin(Theta) (..., d, p)
    Q = np.matmul(Y, Vt.swapaxes(-1, -2)) - XU * cosine[..., None, :]
    sine = np.linalg.norm(Q, axis=-2)
    theta = np.arctan2(sine, cosine)
    turned = sine > 1e-12  # elsewhere the direction says nothing, and is not needed
    Q = Q / np.where(turned, sine, np.inf)[..., None, :]
    W = np.matmul(W, U)
    W = W - np.matmul(X, np.matmul(X.swapaxes(-1, -2), W))
    A = np.matmul(Q.swapaxes(-1, -2), W)
    At = A.swapaxes(-1, -2)
    row = theta[..., :, None]
    column = theta[..., None, :]
    stretched = (
        (A + At) * _angle_over_sine(row - column)
        + (A - At) * _angle_over_sine(row + column)
    ) / 2
    carried = (
        Q * np.cos(theta)[..., None, :] - XU * np.sin(theta * turned)[..., None, :]
    )
    rest = (W - np.matmul(Q, A)) * _angle_over_sine(column)
    return np.matmul(np.matmul(carried, stretched) + rest, Vt)


def _angle_over_sine(angle):
    """t / sin(t), at most 1e8 at t = pi."""
    return 1 / np.maximum(np.sinc(angle / np.pi), 1e-8)


def geodesic(X: ArrayLike, Y: ArrayLike, t: ArrayLike) -> np.ndarray:
    """Points at times t of the shortest geodesics from X, t = 0, to Y, t = 1.

    X and Y have shape (..., d, p). exp_X(t log_X(Y)), of constant speed; any real t;
    bases (..., d, p). The shape of t broadcasts with the leading axes of X and Y. A
    warning where a right angle makes the geodesic non-unique.

    ValueError unless X and Y are bases of one d and p, t is finite, and leading axes
    broadcast.

    >>> import numpy as np
    >>> from grassmann_sc import intrinsic, principal_angles
    >>> half = intrinsic.geodesic([[1.0], [0.0]], [[1.0], [1.0]] / np.sqrt(2), 0.5)
    >>> np.degrees(principal_angles([[1.0], [0.0]], half))
    array([22.5])
    """
    X, Y = _check_points(X, Y)
    t = core.finite_array(t, "t")
    H, n_right = log_of_checked(X, Y)
    warn_right_angles(n_right, "geodesic")
    t = t[..., None, None].astype(H.dtype, copy=False)
    core.check_leading_axes("t, X and Y", t, H)
    return exp_map(X, core.finite_array(t * H, "t log_X(Y)"))


def _check_points(X, Y):
    """X and Y as bases of one type, d and p."""
    X, Y = core.same_dimension(
        core.check_bases(X, "X", None), core.check_bases(Y, "Y", None), "XY"
    )
    check_same_p(X, Y, "Y")
    return X, Y


def check_same_p(X, Y, name):
    """ValueError unless Y, of this name, has the p of X."""
    if X.shape[-1] != Y.shape[-1]:
        raise ValueError(
            f"{name} must have the p of X, got {Y.shape[-1]} and {X.shape[-1]}"
        )


def right_angle_cosine(dtype, p):
    """Cosines up to this one cannot be told from zero."""
    return 16 * p * np.finfo(dtype).eps


def warn_right_angles(count, what):
    """Warn, from the user's line, that count logarithms are not unique."""
    if count:
        core.warn(
            f"{what}: log is not unique for {count} pair(s) of subspaces at right "
            "angles, one of its values is taken"
        )


def _paired(job, X, Y, names):
    """Matrices (..., d, p) and numbers (n,) of job(x, y, first) for pairs of X and Y.

    X and Y (..., d, p) broadcast. Blocks are in float64: y (t, d, p), x (1, d, p) or as
    many.
    """
    lead = core.check_leading_axes(names, X, Y)
    d, p = X.shape[-2:]
    Y = np.broadcast_to(Y, (*lead, d, p)).reshape(-1, d, p)
    n = len(Y)
    is_single = X[..., 0, 0].size == 1
    X = (X if is_single else np.broadcast_to(X, (*lead, d, p))).reshape(-1, d, p)
    matrices = np.empty((n, d, p), np.result_type(X, Y))
    numbers = np.empty(n)
    step = max(1, CACHE // (d * p))

    def fill(some):
        x = X if is_single else X[some]
        matrices[some], numbers[some] = job(
            x.astype(np.float64), Y[some].astype(np.float64), some.start
        )

    if d * p * p <= 2**18:
        core.run_blocks(fill, n, step)
    else:  # large products have BLAS' threads
        for some in core.slices(n, step):
            fill(some)
    return matrices.reshape(*lead, d, p), numbers


# ------------------------------------------------------------------------- Karcher mean


def karcher_mean(
    X: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    tol: float = 1e-12,
    max_iter: int = 1000,
) -> np.ndarray:
    """Weighted Karcher (Frechet) mean (d, p) of subspaces X (n, d, p).

    The Y of least sum_i w_i d_geo(Y, X_i)^2: Y <- exp_Y(G), G = sum_i w_i log_Y(X_i) /
    sum_i w_i, from the chordal mean until ||G||_F <= tol (float32 points: 1e-6 at
    least); a warning with the final norm if max_iter steps do not reach it. weights >=
    0. The minimum is unique if the points lie in an open ball of radius pi/4; a warning
    if no such ball was found: Y is then a stationary point, which may be one of
    several.

    See also grassmann_sc.chordal_mean, in closed form.

    ValueError unless X holds bases, weights are n numbers >= 0, not all 0, and tol is >
    0.

    >>> import numpy as np
    >>> from grassmann_sc import intrinsic, principal_angles
    >>> t = np.radians([0, 10, 50])  # three lines
    >>> mean = intrinsic.karcher_mean(np.stack([np.cos(t), np.sin(t)], axis=1)[..., None])
    >>> np.degrees(principal_angles([[1.0], [0.0]], mean))
    array([20.])
    """
    X = core.check_dictionary(X, "X")
    weights = (
        np.ones(len(X)) if weights is None else core.finite_array(weights, "weights")
    )
    if weights.shape != (len(X),) or (weights < 0).any() or not weights.any():
        raise ValueError(
            f"weights must be {len(X)} numbers >= 0, one a subspace and not all zero, "
            f"got {weights!r}"
        )
    tol = core.check_number(tol, "tol", above=0)
    max_iter = core.check_integer(max_iter, "max_iter", 0)
    limit = max(tol, 1e-6) if X.dtype == np.float32 else tol
    used = X[weights > 0].astype(np.float64)
    share = weights[weights > 0].astype(np.float64)
    share /= share.max()  # their sum may overflow
    share /= share.sum()
    mean, _ = core.weighted_mean(used, share)
    for n_iter in range(max_iter + 1):
        G, reach = _gradient(mean, used, share)
        gradient = float(np.linalg.norm(G))
        if gradient <= limit or n_iter == max_iter:
            break
        mean = core.orthonormalize(_exp(mean, G))
    if gradient > limit:
        core.warn(
            f"karcher_mean did not converge in {max_iter} steps: gradient norm "
            f"{gradient:.2g}, tolerance {limit:.2g}"
        )
    if reach >= math.pi / 4 and not _in_a_ball(used, mean):
        core.warn(
            "karcher_mean: no ball of radius pi/4 around the points was found (the "
            f"farthest is {reach:.3g} from the mean): the mean may not be unique"
        )
    return mean.astype(X.dtype)


def _gradient(Y, X, weights):
    """sum_i w_i log_Y(X_i), and the largest ||log_Y(X_i)||; a tile of points at a time."""
    G = np.zeros_like(Y)
    reach = 0.0
    for some in core.slices(len(X), max(1, TANGENTS_AT_A_TIME // Y.size)):
        H, _ = log_of_checked(Y, X[some])
        G += np.tensordot(weights[some], H, 1)
        reach = max(reach, float(_norms(H).max()))
    return G, reach


def _in_a_ball(X, centre):
    """Whether an open ball of radius pi/4 holds all points.

    It is looked for by steps towards the farthest. The steps are 1/2, 1/3, ... of the
    way. No ball holds two points pi/2 apart.
    """
    for i in range(2, 102):
        H, _ = log_of_checked(centre, X)
        distance = _norms(H)
        far = distance.argmax()
        if distance[far] < math.pi / 4:
            return True
        if i == 2 and _norms(log_of_checked(X[far], X)[0]).max() >= math.pi / 2:
            return False
        centre = core.orthonormalize(_exp(centre, H[far] / i))
    return False


def _norms(H):
    return np.linalg.norm(H, axis=(1, 2))
