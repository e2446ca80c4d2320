"""Distances of polytopes by Wolfe's algorithm, compiled, from inner products of their vertices: for
the convex hulls of comparators_hulls.py.

A polytope is the convex hull of frames, or the part of it whose weights are at most a bound. The
distance of two is the norm of the least point of the polytope of all differences, whose vertices
are differences of vertices. Source: Wolfe, "Finding the nearest point in a polytope", Mathematical
Programming 1976.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

import grassmann_sc as core

__all__ = ["polytope_distances"]

MEETS = 1e-7  # distances below this share of the frames' norm are rounding, and 0


def polytope_distances(K: np.ndarray, rows: tuple, columns: tuple, rules: tuple,
                       skip: int) -> tuple[np.ndarray, ...]:
    """(distances, gap, n_iter, late), each (t, s), of t polytopes with s others; see
    comparators_hulls.convex_hull_distances.

    K has the inner products of all frames, those of t with those of s. rows, columns: starts (t +
    1,) of the frames of each polytope, the Gram matrices of polytopes one after another, flat, and
    where in it those of t begin. rules: (bound, tol, max_iter). Pairs i, j with j <= i + skip are
    left at 0. late: was tol missed?
    """
    rows = core.read_only(*rows)
    columns = core.read_only(*columns)
    shape = len(rows[2]), len(columns[2])
    distances = np.zeros(shape)
    gap = np.zeros(shape)
    n_iter = np.zeros(shape, np.int64)
    late = np.zeros(shape, bool)
    core.run_blocks(lambda block: _fill_rows(K, rows, columns, rules, skip, block.start, block.stop,
                                             distances, gap, n_iter, late), shape[0], 1)
    return distances, gap, n_iter, late


# What a thread works with, for polytopes of at most n frames and n + 2 vertices in use.
_Corral = namedtuple("_Corral", [
    "g",  # (n,) inner products of the solution with the frames of both sets
    "picks",  # (n + 2, 2, h) frames that make each vertex, with weights shares
    "shares",  # (h,)
    "columns",  # (n + 2, n) inner products of each vertex with the frames
    "Q", "L",  # (n + 2, n + 2) Gram matrix of the vertices, Cholesky factor of Q + lift 1 1^T
    "weight", "step",  # (n + 2,) of the vertices in the solution, and of the affine minimiser
])


@core.jit
def _fill_rows(K, rows, columns, rules, skip, start, stop, distances, gap, n_iter, late):
    """polytope_distances of the rows start..stop-1."""
    row_starts, row_grams, row_gram_starts = rows
    column_starts, column_grams, column_gram_starts = columns
    bound, tol, max_iter = rules
    most = 0
    for i in range(len(row_starts) - 1):
        most = max(most, row_starts[i + 1] - row_starts[i])
    other = 0
    for j in range(len(column_starts) - 1):
        other = max(other, column_starts[j + 1] - column_starts[j])
    w = _new_corral(most + other, bound)
    for i in range(start, stop):
        q = row_starts[i + 1] - row_starts[i]
        at = row_gram_starts[i]
        K_ii = row_grams[at:at + q * q].reshape(q, q)
        for j in range(max(0, i + skip + 1), distances.shape[1]):
            r = column_starts[j + 1] - column_starts[j]
            at = column_gram_starts[j]
            K_jj = column_grams[at:at + r * r].reshape(r, r)
            K_ij = K[row_starts[i]:row_starts[i + 1], column_starts[j]:column_starts[j + 1]]
            found = _nearest_point(w, K_ii, K_jj, K_ij, tol, max_iter)
            distances[i, j], gap[i, j], n_iter[i, j], late[i, j] = found


@core.jit_part
def _new_corral(n, bound):
    n_full = int(1 / bound + 1e-9)
    left = 1 - n_full * bound
    shares = np.full(n_full + (1 if left > 1e-9 else 0), bound)
    if left > 1e-9:
        shares[n_full] = left
    return _Corral(np.empty(n), np.empty((n + 2, 2, len(shares)), np.int64), shares,
                   np.empty((n + 2, n)), np.empty((n + 2, n + 2)), np.empty((n + 2, n + 2)),
                   np.empty(n + 2), np.empty(n + 2))


@core.jit_part
def _nearest_point(w, K_ii, K_jj, K_ij, tol, max_iter):
    """(distance, gap, steps, was tol missed) of two polytopes, by Wolfe's algorithm."""
    q = len(K_ii)
    n = q + len(K_jj)
    scale = 0.0
    for a in range(q):
        scale = max(scale, K_ii[a, a])
    for b in range(n - q):
        scale = max(scale, K_jj[b, b])
    if scale == 0:
        return 0.0, 0.0, 0, False
    _from_centres(w, K_ii, K_jj, K_ij)
    _farthest_vertex(w, 0, q, n)
    _enter_vertex(w, 0, K_ii, K_jj, K_ij)
    w.weight[0] = 1.0
    m = 1
    _factor_vertices(w, 0, m, scale)
    best = np.inf
    stalled = 0
    n_steps = 0
    while True:
        square = _solution(w, m, n)
        low = _farthest_vertex(w, m, q, n)
        rest = square - low
        meets = square <= MEETS**2 * scale
        stalled = 0 if square < best else stalled + 1
        best = min(best, square)
        done = meets or rest <= tol * square or rest <= 1e-15 * scale
        if not done and n_steps < max_iter and stalled < 3 and m < n + 1:
            n_steps += 1
            _enter_vertex(w, m, K_ii, K_jj, K_ij)
            w.weight[m] = 0.0
            if _factor_vertices(w, m, m + 1, scale):
                m = _affine_minimum(w, m + 1, scale)
                continue
        if meets:
            return 0.0, np.sqrt(max(square, 0.0)), n_steps, False
        distance = np.sqrt(square)
        return distance, distance - max(low, 0.0) / distance, n_steps, rest > max(
            tol * square, 1e-13 * scale)


@core.jit_part
def _from_centres(w, K_ii, K_jj, K_ij):
    """w.g of the difference of the sets' mean frames."""
    q = len(K_ii)
    r = len(K_jj)
    for a in range(q):
        w.g[a] = K_ii[a].mean() - K_ij[a].mean()
    for b in range(r):
        total = 0.0
        for a in range(q):
            total += K_ij[a, b]
        w.g[q + b] = total / q - K_jj[b].mean()


@core.jit_part
def _farthest_vertex(w, m, q, n):
    """Pick, as vertex m, the frames of least w.g of the first set and of largest of the second;
    returns its inner product with the solution."""
    value = 0.0
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        first = 0 if side == 0 else q
        last = q if side == 0 else n
        picks = w.picks[m, side]
        for s in range(len(w.shares)):
            best = -1
            for a in range(first, last):
                taken = False
                for t in range(s):
                    taken |= picks[t] == a
                if not taken and (best < 0 or sign * w.g[a] < sign * w.g[best]):
                    best = a
            picks[s] = best
            value += sign * w.shares[s] * w.g[best]
    return value


@core.jit_part
def _enter_vertex(w, m, K_ii, K_jj, K_ij):
    """Fill column m, and row m of Q, of the vertex picked."""
    q = len(K_ii)
    n = q + len(K_jj)
    column = w.columns[m]
    for a in range(n):
        column[a] = 0.0
    for s in range(len(w.shares)):
        i = w.picks[m, 0, s]
        j = w.picks[m, 1, s] - q
        for a in range(q):
            column[a] += w.shares[s] * (K_ii[i, a] - K_ij[a, j])
        for b in range(n - q):
            column[q + b] += w.shares[s] * (K_ij[i, b] - K_jj[j, b])
    for k in range(m + 1):
        w.Q[m, k] = _vertex_product(w, k, column)


@core.jit_part
def _vertex_product(w, k, values):
    """Of vertex k with the point whose products with the frames are values."""
    total = 0.0
    for s in range(len(w.shares)):
        total += w.shares[s] * (values[w.picks[k, 0, s]] - values[w.picks[k, 1, s]])
    return total


@core.jit_part
def _factor_vertices(w, first, m, lift):
    """Rows first..m-1 of the Cholesky factor of Q + lift 1 1^T; False if a vertex depends on those
    before."""
    for r in range(first, m):
        for c in range(r + 1):
            total = w.Q[r, c] + lift
            for k in range(c):
                total -= w.L[r, k] * w.L[c, k]
            if c < r:
                w.L[r, c] = total / w.L[c, c]
            elif total <= 1e-15 * (w.Q[r, r] + lift):
                return False
            else:
                w.L[r, r] = np.sqrt(total)
    return True


@core.jit_part
def _affine_minimum(w, m, lift):
    """Move the weights to the point of least norm of the vertices' affine hull, dropping vertices
    whose weight would become negative on the way; returns how many are left."""
    while True:
        for r in range(m):  # (Q + lift 1 1^T) u = 1, the minimiser is u / sum u
            total = 1.0
            for k in range(r):
                total -= w.L[r, k] * w.step[k]
            w.step[r] = total / w.L[r, r]
        sum_u = 0.0
        for r in range(m - 1, -1, -1):
            total = w.step[r]
            for k in range(r + 1, m):
                total -= w.L[k, r] * w.step[k]
            w.step[r] = total / w.L[r, r]
            sum_u += w.step[r]
        share = 1.0
        hit = -1
        for r in range(m):
            w.step[r] /= sum_u
            if w.step[r] <= 0 and w.weight[r] / (w.weight[r] - w.step[r] + 1e-300) < share:
                share = w.weight[r] / (w.weight[r] - w.step[r] + 1e-300)
                hit = r
        for r in range(m):
            w.weight[r] += share * (w.step[r] - w.weight[r])
        if hit < 0:
            return m
        w.weight[hit] = 0.0
        m = _drop_vertices(w, m, lift)


@core.jit_part
def _drop_vertices(w, m, lift):
    """Drop the vertices of weight 0, to rounding; returns how many are left."""
    r = 0
    first = m
    while r < m:
        if w.weight[r] > 1e-15:
            r += 1
            continue
        first = min(first, r)
        for k in range(r + 1, m):
            w.weight[k - 1] = w.weight[k]
            w.picks[k - 1] = w.picks[k]
            w.columns[k - 1] = w.columns[k]
            for c in range(k + 1):
                if c != r:
                    w.Q[k - 1, c - (1 if c > r else 0)] = w.Q[k, c]
        m -= 1
    _factor_vertices(w, first, m, lift)
    return m


@core.jit_part
def _solution(w, m, n):
    """w.g of the weighted vertices; returns the squared norm of their sum."""
    for a in range(n):
        w.g[a] = 0.0
    for k in range(m):
        for a in range(n):
            w.g[a] += w.weight[k] * w.columns[k, a]
    square = 0.0
    for k in range(m):
        square += w.weight[k] * _vertex_product(w, k, w.g)
    return square
