"""Jacobi's one-sided rotations, for compiled loops over many small matrices."""

import math

import grassmann_sc as core

__all__ = []


@core.inlined_jit
def orthogonal_rows(B, turns):
    """Rotate pairs of rows of B until all are orthogonal: Jacobi's one-sided SVD.

    Orthogonal relative to their own lengths, however short they are. turns, unless
    empty, turns with them: from I it becomes the R of R C = B, C being B before.
    """
    d = B.shape[1]
    for _ in range(60):
        done = True
        for a in range(len(B) - 1):
            for b in range(a + 1, len(B)):
                aa = core.dot(B[a], B[a], d)
                bb = core.dot(B[b], B[b], d)
                ab = core.dot(B[a], B[b], d)
                if ab * ab <= 1e-34 * aa * bb:
                    continue
                done = done and ab * ab < 1e-30 * aa * bb
                slope = (bb - aa) / (2 * ab)
                t = math.copysign(1.0, slope) / (
                    abs(slope) + math.sqrt(1 + slope * slope)
                )
                c = 1 / math.sqrt(1 + t * t)
                _turn(B, a, b, c, c * t)
                if turns.size:
                    _turn(turns, a, b, c, c * t)
        if done:
            return


@core.inlined_jit
def _turn(B, a, b, c, s):
    """Rows a and b of B by the rotation of cosine c and sine s."""
    for k in range(B.shape[1]):
        x = B[a, k]
        B[a, k] = c * x - s * B[b, k]
        B[b, k] = s * x + c * B[b, k]
