"""Logarithms of all atoms at each of many queries, compiled: what intrinsic coding spends.

intrinsic.py says the same in NumPy for any pairs. This room exists for its speed: for p = 3 the
one-sided Jacobi rotations below need a quarter of the time of NumPy's batched singular value
decomposition, whose calls cost more than the 3 x 3 matrix. With that decomposition instead, the
running times of iSC for d = 100 rise to more than twice as much (examples/table_running_time.py);
for p = 10 the two are equal.

Queries are rows x (n, p, d): x[i, a] is column a of X_i. Atoms are rows (p, N, d): atoms[a, j] is
column a of D_j. Then C[i, a, b, j] = (X_i^T D_j)[a, b] is one matrix product for all of them.
"""

import math

import numpy as np

import grassmann_sc as core

__all__ = ["log_factors", "tangents"]


def products_of_rows(X, Y):
    """X_i^T Y_j (n, N) of rows X (n, m), Y (N, m): each summed in one order, in threads.

    So a product depends on its two rows alone. What BLAS makes of a row depends, by rounding, on
    how many there are; where minimisers are not unique, that would choose among them.
    """
    out = np.empty((len(X), len(Y)), X.dtype)
    core.run_blocks(lambda rows: _fill_products(X[rows], Y, out[rows]), len(X), 32)
    return out


@core.jit
def _fill_products(X, Y, out):
    m = X.shape[1]
    n_near = max(1, 2**14 // m)  # rows of Y that stay in cache
    for first in range(0, len(Y), n_near):
        for i in range(len(X)):
            x = X[i]
            for j in range(first, min(first + n_near, len(Y))):
                y = Y[j]
                total = x.dtype.type(0)
                for k in range(m):
                    total += x[k] * y[k]
                out[i, j] = total


@core.jit
def log_factors(C):
    """Factors of log_X(D_j) = D_j A_j - X B_j from C[i, :, :, j] = X_i^T D_j = U cos(Theta) V^T.

    A = V phi U^T and B = U cos(Theta) phi U^T with phi = Theta / sin(Theta). Returns factors
    (n, 2, p, p, N), which hold A and B, ||Theta||^2 (n, N) and the smallest cosines (n, N).
    """
    n, p, _, N = C.shape
    factors = np.empty((n, 2, p, p, N))
    square = np.empty((n, N))
    least = np.empty((n, N))
    U = np.empty((p, p))  # columns of U and V, as rows
    V = np.empty((p, p))
    cosine = np.empty(p)
    phi = np.empty(p)
    for i in range(n):
        for j in range(N):
            for a in range(p):
                for b in range(p):
                    U[b, a] = C[i, a, b, j]
                    V[b, a] = 1.0 if a == b else 0.0
            _rotate_columns(U, V)
            square[i, j], least[i, j] = _angles_of_columns(U, cosine, phi)
            for a in range(p):
                for b in range(p):
                    A = 0.0
                    B = 0.0
                    for k in range(p):
                        A += V[k, a] * phi[k] * U[k, b]
                        B += U[k, a] * phi[k] * cosine[k] * U[k, b]
                    factors[i, 0, a, b, j] = A
                    factors[i, 1, a, b, j] = B
    return factors, square, least


@core.jit_part
def _rotate_columns(T, V):
    """Rotations from the right make the columns of a matrix orthogonal, T and V hold columns as
    rows.

    One-sided Jacobi: orthogonal relative to their own lengths, however short they are.
    """
    p = len(T)
    for _ in range(60):
        done = True
        for k in range(p - 1):
            for r in range(k + 1, p):
                kk = 0.0
                rr = 0.0
                kr = 0.0
                for a in range(p):
                    kk += T[k, a] * T[k, a]
                    rr += T[r, a] * T[r, a]
                    kr += T[k, a] * T[r, a]
                if kr * kr <= 1e-34 * kk * rr:
                    continue
                done = done and kr * kr < 1e-30 * kk * rr
                zeta = (rr - kk) / (2 * kr)
                tangent = math.copysign(1.0, zeta) / (abs(zeta) + math.sqrt(1 + zeta * zeta))
                cosine = 1 / math.sqrt(1 + tangent * tangent)
                sine = tangent * cosine
                for a in range(p):
                    turned = cosine * T[k, a] - sine * T[r, a]
                    T[r, a] = sine * T[k, a] + cosine * T[r, a]
                    T[k, a] = turned
                    turned = cosine * V[k, a] - sine * V[r, a]
                    V[r, a] = sine * V[k, a] + cosine * V[r, a]
                    V[k, a] = turned
        if done:
            return


@core.jit_part
def _angles_of_columns(T, cosine, phi):
    """The columns of T = U cos(Theta), held as rows, become U; sets cosine and phi.

    Returns ||Theta||^2 and the smallest cosine. A column that vanishes is a right angle: any
    direction that is left will do.
    """
    p = len(T)
    square = 0.0
    least = 1.0
    for k in range(p):
        length = 0.0
        for a in range(p):
            length += T[k, a] * T[k, a]
        length = math.sqrt(length)
        cosine[k] = length
        if length < 1e-140:
            cosine[k] = 0.0
            _complete(T, k)
        else:
            for a in range(p):
                T[k, a] /= length
        sine = math.sqrt(max((1 - cosine[k]) * (1 + cosine[k]), 0.0))
        theta = math.atan2(sine, cosine[k])
        phi[k] = theta / sine if sine > 0 else 1.0
        square += theta * theta
        least = min(least, cosine[k])
    return square, least


@core.jit_part
def _complete(T, k):
    """Row k of T becomes a unit vector orthogonal to the other rows, which are orthogonal or
    vanish."""
    p = len(T)
    best = 0.0
    trial = np.empty(p)
    for e in range(p):  # from each axis
        for a in range(p):
            trial[a] = 1.0 if a == e else 0.0
        for _ in range(2):
            for j in range(p):
                jj = 0.0
                jt = 0.0
                for a in range(p):
                    jj += T[j, a] * T[j, a]
                    jt += T[j, a] * trial[a]
                if j != k and jj > 1e-280:
                    for a in range(p):
                        trial[a] -= jt / jj * T[j, a]
        size = 0.0
        for a in range(p):
            size += trial[a] * trial[a]
        if size > best:
            best = size
            for a in range(p):
                T[k, a] = trial[a]
    for a in range(p):
        T[k, a] /= math.sqrt(best)


@core.jit
def tangents(x, atoms, factors, first, out):
    """out[b, j] = column b of log_X(D_{first + j}), for the atoms that fit into out (p, m, d).

    x (p, d) is one query, factors (2, p, p, N) are its own. All tangent vectors of a query would be
    p d N numbers: callers take a few atoms at a time, so that they stay in cache.
    """
    p, m, d = out.shape
    for j in range(min(m, atoms.shape[1] - first)):
        for start in range(0, d, 1024):  # a stretch stays in the nearest cache
            stop = min(start + 1024, d)
            for b in range(p):
                h = out[b, j, start:stop]
                for a in range(p):
                    A = factors[0, a, b, first + j]
                    B = factors[1, a, b, first + j]
                    y = atoms[a, first + j, start:stop]
                    z = x[a, start:stop]
                    for k in range(stop - start):
                        h[k] = (h[k] if a else 0.0) + A * y[k] - B * z[k]
