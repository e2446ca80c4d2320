"""Problems that are drawn: samples of any kind, type, layout and weights."""

from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st

import oracles
from arrays import LAYOUTS
from grassmann_sc.strategies import KINDS, bases, sizes
from oracles import booleans, dtypes, seeds

ROUNDING = 32  # of Gram matrices, in units of eps d
# a failure is told with their seed
generators = st.builds(np.random.default_rng, seeds)
UNITS = [1e-300, 1e-30, 1.0, 1e30, 1e300]


def drawn_bases(draw, rng, n, d, p):
    """n bases of R^d: random, clustered, repeated, nearly so, at right angles, of axes."""
    kind = draw(st.sampled_from([*KINDS, "clustered", "axes"]))
    if kind == "clustered":
        return oracles.clusters(rng, n, d, p, draw(st.integers(1, 3)))
    if kind == "axes":
        return np.stack([np.eye(d)[:, rng.permutation(d)[:p]] for _ in range(n)])
    return bases(rng, n, d, p, kind)


def drawn_weights(draw, rng, n):
    """None, counts, numbers, or numbers of any size; some are 0, but not all."""
    kind = draw(st.sampled_from(["none", "counts", "numbers", "one unit", "any unit"]))
    if kind == "none":
        return None
    weights = rng.uniform(0, 2, n)
    if kind == "counts":
        weights = rng.integers(0, 4, n).astype(float)
    elif kind != "numbers":
        weights *= rng.choice(UNITS, n if kind == "any unit" else 1)
    weights[rng.random(n) < 0.2] = 0
    weights[rng.integers(n)] = max(weights.max(), 1e-300)
    return weights


@st.composite
def samples(draw, most=20):
    """Samples X (n, d, p) in any layout, weights or None, given numbers, those w (n,) in units of the
    largest, total, which of them are used, how many atoms, and what rounds.
    """
    m = SimpleNamespace(rng=np.random.default_rng(draw(seeds)))
    m.d, m.p = draw(
        sizes(st.integers(1, 8)) | st.tuples(st.integers(17, 40), st.just(1))
    )
    n = draw(st.integers(1, most))
    m.dtype = draw(dtypes)
    X = drawn_bases(draw, m.rng, n, m.d, m.p).astype(m.dtype)
    m.X = LAYOUTS[draw(st.sampled_from([*LAYOUTS]))](X)
    m.weights = drawn_weights(draw, m.rng, n)
    m.given = np.ones(n) if m.weights is None else m.weights
    m.total = m.given.max()
    m.w = m.given / m.total
    m.used = m.given > 0  # w may have lost some
    m.n_atoms = draw(st.integers(1, min(int(m.used.sum()), 8)))
    m.eps = ROUNDING * float(np.finfo(m.dtype).eps) * m.d
    m.tiny = float(np.finfo(m.dtype).tiny) / m.eps
    return m


def drawn_atoms(draw, m, p=None):
    """As many atoms as m says, of the type of its samples."""
    return drawn_bases(draw, m.rng, m.n_atoms, m.d, p or m.p).astype(m.dtype)


@st.composite
def codings(draw, m):
    """lam, relative or not, perhaps with codes >= 0; or n_neighbors."""
    if draw(st.integers(0, 2)) == 0:
        return {"n_neighbors": draw(st.integers(1, m.n_atoms))}
    scale = draw(st.sampled_from([None, None, "max"]))
    # at 1 rounding may decide whether a code is 0
    share = draw(st.sampled_from([0.01, 0.1, 0.5, 0.9, 1.2]))
    lam = share if scale else 2 * m.p * share
    return {"lam": lam, "lam_scale": scale, "positive": draw(booleans)}
