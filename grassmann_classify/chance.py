"""What chance explains: which rows are as good as the best, and which is in front.

One paired comparison: the shares of right answers of all rows, clip by clip. If rows
are equally good, a clip favours any of two rows as likely as the other; so the signs of
the clips' differences are drawn anew, those of all pairs of rows together, and the
largest difference of any two rows is noted. A row that is behind the best by less than
95 % of these largest differences reach is as good within chance: of rows that are
equally good, all are called so in at least 95 of 100 tables.
"""

import numpy as np

from grassmann_classify.rows import is_coding

LEVEL = 0.05  # chance that of equally good rows any is not called as good
DRAWS = 2000
FEWEST = 6  # clips, or groups, with which any difference is larger than chance
ROUNDING = 1e-9  # means of the same shares in another order differ by less


def within_chance(shares):
    """(The largest difference that chance explains, the rows as good as the best).

    shares {row: (n,)}: what each of n clips, or groups, adds to the row's accuracy, in
    one unit of all rows; their sum is the accuracy. The rows come best first, those of
    the same accuracy in their order. Rows that are behind by more are left out, and
    the others compared again without them, until none is.
    """
    names = sorted(shares, key=lambda name: -round(shares[name].sum(), 9))
    while True:
        table = np.array([shares[name] for name in names])
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (DRAWS, table.shape[1]))
        drawn = signs @ table.T
        ranges = drawn.max(axis=1) - drawn.min(axis=1)
        difference = float(np.quantile(ranges, 1 - LEVEL, method="higher"))
        behind = table[0].sum() - table.sum(axis=1)
        near = [name for name, b in zip(names, behind) if b <= difference + ROUNDING]
        if len(near) == len(names):
            return difference, names
        names = near


def front(shares):
    """The row in front: of rows as good as the best, the best that codes, else the best."""
    _, names = within_chance(shares)
    return next(filter(is_coding, names), names[0])


def of_units(shares, unit):
    """Shares {row: (n_units,)} of units, as clips or groups, of those of n sets.

    unit (n,): the index of each set's. Sets that some row was not asked, which are NaN,
    count for no row.
    """
    asked = ~np.isnan([*shares.values()]).any(axis=0)
    n = max(1, asked.sum())
    return {
        name: np.bincount(unit[asked], share[asked] / n, unit.max(initial=0) + 1)
        for name, share in shares.items()
    }
