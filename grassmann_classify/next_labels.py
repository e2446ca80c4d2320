"""Which clips without a label are to be labelled next: those whose label teaches most."""

import numpy as np

MOST = 1000  # clips, the least sure, that are spread; the others follow
NEAR = 1e-6  # of the median squared distance: what lies nearer counts as this far


def ranks(rows, sure):
    """The rank (n,) of n clips, 1 for the one to label first.

    rows (n, N): what each shares with the labelled sets; sure (n,): how sure its label
    is, at most 1 where it could not be surer. The least sure clip comes first, then
    always the one of which doubt, 1 - sure, times the squared distance of its row to
    the nearest that was taken is largest: of clips that are nearly the same one comes
    early.
    """
    order = np.argsort(sure, kind="stable")
    first = order[:MOST]
    doubt = np.maximum(1 - sure[first], NEAR)
    rows = rows[first]
    length = (rows**2).sum(axis=1)
    square = np.maximum(length[:, None] + length - 2 * rows @ rows.T, 0)
    apart = square[np.triu_indices(len(first), 1)]
    unit = np.median(apart) if apart.any() else 1.0
    far = np.ones(len(first))
    taken = []
    for _ in first:
        i = np.argmax(doubt * far)
        taken.append(first[i])
        doubt[i] = -np.inf
        far = np.minimum(far, np.clip(square[i] / max(unit, NEAR), NEAR, 1))
    found = np.empty(len(sure), int)
    found[[*taken, *order[MOST:]]] = np.arange(1, len(sure) + 1)
    return found
