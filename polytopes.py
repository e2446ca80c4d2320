"""Distances of polytopes by Wolfe's algorithm, compiled, from inner products of their vertices: for
the convex hulls of comparators_hulls.py.

A polytope is the convex hull of frames, or the part of it whose weights are at most a bound. The
distance of two is the norm of the least point of the polytope of all differences, whose vertices
are differences of vertices: of frames from a centre of their own, plus the offset of the centres.
Source: Wolfe, "Finding the nearest point in a polytope", Mathematical Programming 1976.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

import grassmann_sc as core

__all__ = ["polytope_distances"]

MEETS = 1e-7  # distances below this share of the frames' norm are rounding, and 0
ROUNDING = 2e-15  # of inner products, as a share of the largest square of frames


def polytope_distances(K: np.ndarray, rows: tuple, columns: tuple, rules: tuple,
                       skip: int) -> tuple[np.ndarray, ...]:
    """(distances, gap, n_iter, late), each (t, s), of t polytopes with s others; see
    comparators_hulls.convex_hull_distances.

    K has the inner products of all frames, those of t with those of s. rows, columns: starts (t +
    1,) of the frames of each polytope, the Gram matrices of polytopes one after another, flat,
    frames (n, d), centres (t, d) that they start from, d = 0 for one centre of all, and how far
    rounding moves them (t,). K and Gram matrices may be empty, then what is needed comes from the
    frames. rules: (bound, tol, max_iter). Pairs i, j with j <= i + skip are left at 0. late: was
    tol missed?
    """
    rows = core.read_only(*rows)
    columns = core.read_only(*columns)
    shape = len(rows[3]), len(columns[3])
    distances = np.zeros(shape)
    gap = np.zeros(shape)
    n_iter = np.zeros(shape, np.int64)
    late = np.zeros(shape, bool)
    core.run_blocks(lambda block: _fill_rows(K, rows, columns, rules, skip, block.start, block.stop,
                                             distances, gap, n_iter, late), shape[0], 1)
    return distances, gap, n_iter, late


# Two polytopes: inner products of their frames, or none; frames A and B; the offset of the centres;
# how far rounding moves them.
_Pair = namedtuple("_Pair", "K_ii K_jj K_ij A B offset rounding")

# What a thread works with, for polytopes of at most n frames and m vertices in use.
_Corral = namedtuple("_Corral", [
    "toward",  # (n + 1,) inner products of the offset with the frames of both sets and with itself
    "g",  # (n + 1,) and of the solution
    "picks",  # (m, 2, h) frames that make each vertex, with weights shares
    "shares",  # (h,)
    "columns",  # (m, n + 1) inner products of each vertex with the frames and the offset
    "Q", "L",  # (m, m) Gram matrix of the vertices, Cholesky factor of Q + lift 1 1^T
    "weight", "step",  # (m,) of the vertices in the solution, and of the affine minimiser
])


@core.jit
def _fill_rows(K, rows, columns, rules, skip, start, stop, distances, gap, n_iter, late):
    """polytope_distances of the rows start..stop-1."""
    row_starts, row_grams, A, row_centres, row_rounding = rows
    column_starts, column_grams, B, column_centres, column_rounding = columns
    bound, tol, max_iter = rules
    by_grams = K.size > 0
    most = 0
    for i in range(len(row_starts) - 1):
        most = max(most, row_starts[i + 1] - row_starts[i])
    other = 0
    for j in range(len(column_starts) - 1):
        other = max(other, column_starts[j + 1] - column_starts[j])
    n = most + other
    w = _new_corral(n, n + 2 if by_grams else min(n, A.shape[1] + 1) + 2, bound)
    row_gram = 0
    for i in range(start):
        row_gram += (row_starts[i + 1] - row_starts[i])**2
    for i in range(start, stop):
        first = row_starts[i]
        last = row_starts[i + 1]
        q = last - first if by_grams else 0
        K_ii = row_grams[row_gram:row_gram + q * q].reshape(q, q)
        row_gram += q * q
        column_gram = 0
        for j in range(distances.shape[1]):
            left = column_starts[j]
            right = column_starts[j + 1]
            r = right - left if by_grams else 0
            K_jj = column_grams[column_gram:column_gram + r * r].reshape(r, r)
            column_gram += r * r
            if j <= i + skip:
                continue
            pair = _Pair(K_ii, K_jj, K[first:first + q, left:left + r], A[first:last],
                         B[left:right], row_centres[i] - column_centres[j],
                         row_rounding[i] + column_rounding[j])
            found = _nearest_point(w, pair, tol, max_iter)
            distances[i, j], gap[i, j], n_iter[i, j], late[i, j] = found


@core.jit_part
def _new_corral(n, m, bound):
    n_full = int(1 / bound + 1e-9)
    left = 1 - n_full * bound
    shares = np.full(n_full + (1 if left > 1e-9 else 0), bound)
    if left > 1e-9:
        shares[n_full] = left
    return _Corral(np.empty(n + 1), np.empty(n + 1), np.empty((m, 2, len(shares)), np.int64),
                   shares, np.empty((m, n + 1)), np.empty((m, m)), np.empty((m, m)), np.empty(m),
                   np.empty(m))


@core.jit_part
def _nearest_point(w, pair, tol, max_iter):
    """(distance, gap, steps, was tol missed) of two polytopes, by Wolfe's algorithm."""
    q = len(pair.A)
    n = q + len(pair.B)
    scale = _start_corral(w, pair)
    if scale == 0:
        return 0.0, pair.rounding, 0, False
    _farthest_vertex(w, 0, q, n)
    _enter_vertex(w, 0, pair)
    w.weight[0] = 1.0
    m = 1
    _factor_vertices(w, 0, m, scale)
    least = max(MEETS**2 * scale, pair.rounding**2)
    best = np.inf
    stalled = 0
    n_steps = 0
    while True:
        square = _solution(w, m, n)
        low = _farthest_vertex(w, m, q, n)
        rest = square - low
        meets = square <= least
        stalled = 0 if square < best else stalled + 1
        best = min(best, square)
        done = meets or rest <= tol * square or rest <= 1e-15 * scale
        if not done and n_steps < max_iter and stalled < 3 and m < len(w.weight) - 1:
            n_steps += 1
            _enter_vertex(w, m, pair)
            w.weight[m] = 0.0
            if _factor_vertices(w, m, m + 1, scale):
                m = _affine_minimum(w, m + 1, scale)
                continue
        rounding = ROUNDING * scale
        if meets:
            return 0.0, np.sqrt(max(square, 0.0) + rounding) + pair.rounding, n_steps, False
        distance = np.sqrt(square)
        gap = distance - (max(low, 0.0) - rounding) / distance + pair.rounding
        return distance, gap, n_steps, rest > max(tol * square, 1e-13 * scale)


@core.jit_part
def _start_corral(w, pair):
    """Fill w.toward, and w.g with the same; returns the largest squared norm of frames and
    offset."""
    q = len(pair.A)
    n = q + len(pair.B)
    w.toward[n] = np.square(pair.offset).sum()
    scale = w.toward[n]
    for a in range(n):
        frame = pair.A[a] if a < q else pair.B[a - q]
        w.toward[a] = (frame * pair.offset).sum()
        if pair.K_ij.size == 0:
            scale = max(scale, np.square(frame).sum())
        else:
            scale = max(scale, pair.K_ii[a, a] if a < q else pair.K_jj[a - q, a - q])
    w.g[:n + 1] = w.toward[:n + 1]
    return scale


@core.jit_part
def _farthest_vertex(w, m, q, n):
    """Pick, as vertex m, the frames of least w.g of the first set and of largest of the second;
    returns its inner product with the solution."""
    value = w.g[n]
    for side in range(2):
        sign = 1.0 if side == 0 else -1.0
        first = 0 if side == 0 else q
        last = q if side == 0 else n
        picks = w.picks[m, side]
        if len(picks) == 1:
            picks[0] = first + (sign * w.g[first:last]).argmin()
        else:
            picks[:] = first + np.argsort(sign * w.g[first:last])[:len(picks)]
        for s in range(len(picks)):
            value += sign * w.shares[s] * w.g[picks[s]]
    return value


@core.jit_part
def _enter_vertex(w, m, pair):
    """Fill column m, and row m of Q, of the vertex picked."""
    q = len(pair.A)
    n = q + len(pair.B)
    column = w.columns[m]
    if pair.K_ij.size == 0:
        _fill_from_frames(column, w.picks[m], w.shares, pair)
    else:
        column[:n + 1] = w.toward[:n + 1]
        for s in range(len(w.shares)):
            i = w.picks[m, 0, s]
            j = w.picks[m, 1, s] - q
            share = w.shares[s]
            for a in range(q):
                column[a] += share * (pair.K_ii[i, a] - pair.K_ij[a, j])
            for b in range(n - q):
                column[q + b] += share * (pair.K_ij[i, b] - pair.K_jj[j, b])
            column[n] += share * (w.toward[i] - w.toward[q + j])
    for k in range(m + 1):
        w.Q[m, k] = _vertex_product(w, k, column, n)


@core.jit_part
def _fill_from_frames(column, picks, shares, pair):
    """The column of a vertex from the frames themselves."""
    q = len(pair.A)
    n = q + len(pair.B)
    vertex = pair.offset.copy()
    for s in range(len(shares)):
        vertex += shares[s] * (pair.A[picks[0, s]] - pair.B[picks[1, s] - q])
    for a in range(n):
        column[a] = (vertex * (pair.A[a] if a < q else pair.B[a - q])).sum()
    column[n] = (vertex * pair.offset).sum()


@core.jit_part
def _vertex_product(w, k, values, n):
    """Of vertex k with the point whose products with the frames and the offset are values."""
    total = values[n]
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
    for a in range(n + 1):
        w.g[a] = 0.0
    for k in range(m):
        for a in range(n + 1):
            w.g[a] += w.weight[k] * w.columns[k, a]
    square = 0.0
    for k in range(m):
        square += w.weight[k] * _vertex_product(w, k, w.g, n)
    return square
