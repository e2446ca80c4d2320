"""
A million subspaces
===================

Coding needs only inner products, and only a few of them at a time, so memory does not
grow with the number of queries. A dictionary is learned from a stream. The whole page
takes less than a minute on two cores.
"""

import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

from grassmann_sc import gsc, random_subspaces
from grassmann_sc.large import streams

N = 1_000_000
BATCH = 1_000


def stream(n, rng):
    """Batches of subspaces near one of 20 centres, made as they are asked for."""
    centres = random_subspaces(20, 30, 2, rng=0)
    for _ in range(0, n, BATCH):
        noise = 0.05 * rng.standard_normal((BATCH, 30, 2))
        yield np.linalg.qr(centres[rng.integers(20, size=BATCH)] + noise)[0]


# %%
# Learn 20 atoms from the stream, one batch at a time.

tracemalloc.start()
start = time.perf_counter()
online = streams.OnlineGDL(20, 0.1, rng=0)
costs = [
    online.partial_fit(batch).cost for batch in stream(N, np.random.default_rng(0))
]
each = (time.perf_counter() - start) / N * 1e6
print(
    f"learned from {N:,} subspaces, {each:.0f} µs each; cost at the end {online.cost:.3f} each"
)

plt.semilogx(BATCH * np.arange(1, len(costs) + 1), costs)
plt.xlabel("subspaces seen")
plt.ylabel("cost of a batch before its update, a subspace")
plt.title("20 atoms from a stream, λ = 0.1", fontsize=10)
plt.show()

# %%
# Code them all, sparsely stored: a few nonzeros a subspace.

start = time.perf_counter()
nonzeros = 0
for batch in stream(N, np.random.default_rng(0)):
    nonzeros += gsc(batch, online.atoms, 0.1, sparse_output=True).nnz
each = (time.perf_counter() - start) / N * 1e6
most = tracemalloc.get_traced_memory()[1] / 2**20
print(
    f"coded at {each:.0f} µs each, {nonzeros / N:.1f} nonzeros a code; at most {most:.0f} MB"
)
