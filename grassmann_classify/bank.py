"""The bank: Gram matrices of all candidates, which rank them and are summed.

A candidate is a recipe with a dimension p, a spectrum alpha, or a Gaussian kernel and p.
Every matrix is scaled so that K(x, x) = 1.
"""

import itertools
from collections import namedtuple
from contextlib import contextmanager

import numpy as np
from threadpoolctl import threadpool_limits  # scikit-learn needs it

import grassmann_sc as core
from grassmann_classify.recipes import (
    base_of,
    described_set,
    kept_rows,
    padded,
    rank_of,
    resampled,
    shortened,
)
from grassmann_classify.settings import MOST_P, SPECTRUM, Settings
from grassmann_classify.words import all_in_words, grouped, to_stderr
from grassmann_sc import frames, kernels, subspaces, tuning

MOST_P_IN_KERNEL = 6
N_GAMMAS = 7
FEW = 20  # frames of a set, at even steps, that Gaussian candidates read
CHEAP = 5e9  # multiplications up to which a recipe's Gaussian candidates are all made
MANY = 2000  # sets, above which those that rank have matrices; clips: single precision
MOST_BYTES = 2**27  # of all matrices that are kept
MOST_DESCRIBED = 2**29  # bytes of the descriptors of one kind that are kept
MOST_KEPT = 2**28  # bytes of all else that is made of the sets and kept

# Small decompositions end before the other threads of BLAS are awake, and would wait
# for them beside busy processes.
on_one_thread = threadpool_limits.wrap(limits=1, user_api="blas")


class Candidate(
    namedtuple("Candidate", "recipe p spectrum kernel", defaults=[None] * 4)
):
    """A recipe with a point of it.

    recipe: a name, None for the one by which clips were read; kernel None: linear, with
    p or spectrum; else Gaussian, or the user's own, with p.
    """

    @property
    def point(self):
        """{parameter: value} of what it has."""
        return {
            name: value for name, value in self._asdict().items() if value is not None
        }

    @property
    def words(self):
        """What it is.

        >>> Candidate("raw", p=3).words, Candidate(None, None, 0.25).words
        ('raw pixels, 3 directions', 'all directions, alpha 0.25')
        """
        return all_in_words(self.point)


def weights_of(s, candidate):
    """Weights (n, r), of norm 1, of a linear candidate's directions of values s (n, r).

    A set of fewer than p directions has those of its own.
    """
    if candidate.p is None:
        return subspaces.weights_of(s, candidate.spectrum)
    leading = (np.arange(s.shape[1]) < candidate.p) & (s > 0)
    return leading / np.sqrt(leading.sum(axis=1, keepdims=True))


@contextmanager
def naming_set(i, names):
    """A ValueError within the with statement is told of set i; a file keeps no names."""
    try:
        yield
    except ValueError as error:
        name = names[i] if names else f"set {i}"
        raise ValueError(f"{name}: {error}") from None


def few_frames(rows):
    """At most FEW rows, at even steps, in float64."""
    chosen = frames.pick(range(len(rows)), evenly=min(FEW, len(rows)))
    return rows[chosen].astype(np.float64, copy=False)


class Rows:
    """The rows of the sets of a Collection, by each of several recipes.

    recipes: {name: Recipe}, variants of the one by which the Collection was read; or
    {None: None}, that one alone.
    """

    def __init__(self, collection, recipes=None):
        self.collection = collection
        self.recipes = {None: None} if recipes is None else {**recipes}
        self.described = {}
        self.kept = {}  # {recipe, maybe with what: its directions, or few rows, or bases}

    def is_base(self, name):
        """Is it the recipe by which the Collection was read?"""
        recipe = self.recipes[name]
        return recipe is None or recipe == base_of(recipe)

    def sets(self, name, short=False):
        """Rows of all sets; short: turned so that few numbers tell each."""
        sets = self._described(name, short)
        if self.is_base(name) or sets is None:
            return sets
        recipe = self.recipes[name]
        return [kept_rows(resampled(rows, recipe.steps), recipe) for rows in sets]

    def _described(self, name, short):
        """Rows of all sets, before they are stacked and centred; as sets has it."""
        recipe = self.recipes[name]
        sets = self.collection.sets
        key = recipe and (recipe.features, recipe.standardised)
        if sets and key not in (None, ("raw", False)):
            # one after another: frames.lbp silences a warning, which no thread may do
            sets = self.described.get(key) or [
                self._describe(i, recipe) for i in range(len(sets))
            ]
            if sum(rows.nbytes for rows in sets) <= MOST_DESCRIBED:
                self.described[key] = sets
        return shortened(sets) if short and sets else sets

    def _describe(self, i, recipe):
        """The rows of set i by the descriptor of a Recipe, or standardised."""
        about = self.collection
        colours = about.colours and about.colours[i]
        with naming_set(i, about.names):
            return described_set(about.sets[i], about.frame, recipe, colours)

    def _keep(self, key, make):
        """The arrays that make() gives, or gave before, if they are kept still.

        All that is kept fits into MOST_KEPT, or is the last alone.
        """
        made = self.kept.get(key)
        if made is None:
            made = make()
            size = sum(A.nbytes for kept in (*self.kept.values(), made) for A in kept)
            if size > MOST_KEPT:
                self.kept.clear()
            self.kept[key] = made
        return made

    def directions(self, name, short=False):
        """(U (n, d, r), s (n, r)) of all sets; s is 1 where only bases are there."""
        if self.is_base(name):
            return self.collection.spectra or bases_alone(self.collection.X)
        if short:
            return self._directions(name, short)
        return self._keep(name, lambda: self._directions(name, short))

    @on_one_thread
    def _directions(self, name, short):
        recipe = self.recipes[name]
        sets = self._described(name, short)

        def job(block):
            i = block.start
            with naming_set(i, self.collection.names):
                rows = kept_rows(resampled(sets[i], recipe.steps), recipe)
                return subspaces.singular_directions(rows, recipe.p)

        return padded(core.run_blocks(job, len(sets), 1))

    def by(self, name):
        """The Collection by a recipe, with its rows."""
        if self.is_base(name):
            return self.collection
        U, s = self.directions(name)
        return self.collection._replace(
            X=U[:, :, : rank_of(s)],
            sets=self.sets(name),
            frame=self.collection.frame if self.recipes[name].features == "raw" else (),
            spectra=(U, s),
        )

    def in_kernel(self, name, kernel):
        """(Few rows of the sets, bases (n_i, FEW) in the kernel's space, their ranks (n,)).

        A set of a lower rank has columns of zeros.
        """
        rows = self._keep((name, FEW), lambda: [*map(few_frames, self.sets(name))])

        def make():
            bases = kernels.kernel_bases(rows, kernel, FEW, rank="fewer")
            ranks = np.array([A.shape[1] for A in bases])
            return [np.pad(A, ((0, 0), (0, FEW - A.shape[1]))) for A in bases] + [ranks]

        *bases, ranks = self._keep((name, kernel), make)
        return rows, bases, ranks


def bases_alone(X):
    """Directions of bases (n, d, p) whose singular values nobody knows: X, ones (n, p)."""
    return X, np.ones((len(X), X.shape[2]))


def products(candidates, *parts, total=False):
    """Yield (candidate, K (n, n)) of the sets of Rows, or K (n_new, n) of new and others.

    A set of fewer than p directions has its own. Those of one recipe come one after
    another: its directions are made once. total: of several there may be the sum alone.
    """
    size = len(parts[0].collection.X) * len(parts[-1].collection.X)
    order = sorted(candidates, key=lambda candidate: str(candidate.recipe))
    for (name, kernel), some in grouped(
        ((c.recipe, c.kernel), c) for c in order
    ).items():
        if kernel is None:
            spectra = [A.directions(name) for A in parts]
            for part in [some] if total else in_parts(some, size):
                yield from zip(part, _weighted_grams(part, *spectra, total=total))
        else:
            most = max(candidate.p for candidate in some)
            points = [A.in_kernel(name, kernel) for A in parts]
            for part in in_parts(some, size * most):
                yield from zip(part, _kernel_grams(part, *points))


class Bank(Rows):
    """Gram matrices of candidates, by recipe; and what other rows take from the sets.

    settings: what candidates are of (p, spectrum, kernels, kernel); videos: the clips
    (n_frames, height, width), or None. grams {Candidate: K (n, n) float32} are those
    that are kept; absent {name: why} the recipes that some set cannot have; made: what
    rows made of all sets, by any name.
    """

    def __init__(self, collection, recipes=None, settings=None, videos=None):
        super().__init__(collection, recipes)
        self.settings = settings or Settings()
        self.p = self.settings.p
        self.spectrum = self.settings.spectrum or ([] if self.p else SPECTRUM)
        self.videos = videos
        self.grams = {}
        self.absent = {}
        self.made = {}

    def grams_of(self, candidates, total=False):
        """Yield (candidate, K (n, n)) of some that were ranked, maybe by other sets.

        Those of one recipe come one after another: its directions are made once. total:
        of several, whose matrices are not kept, there may be the sum alone.
        """
        n = len(self.collection.X)
        for some in grouped((c.recipe, c) for c in candidates).values():
            if len(self.grams[some[0]]) == n:
                yield from ((candidate, self.grams[candidate]) for candidate in some)
                continue
            yield from products(some, self, total=total)
            self.kept.clear()  # the directions of so many sets

    @property
    def names(self):
        """The recipes that no set is known to lack."""
        return [name for name in self.recipes if name not in self.absent]

    def dimensions(self, rank):
        """The p to try of sets of this rank; ValueError if all that settings name are above."""
        if not self.p:
            return tuning.dimensions(min(rank, MOST_P))
        if min(self.p) > rank:
            raise ValueError(
                f"--p must hold a dimension up to {rank}, that of the smallest set; got "
                f"{self.p}"
            )
        return [p for p in self.p if p <= rank]

    def linear(self, name):
        """Yield {Candidate: K} of a recipe, in parts of bounded size.

        ValueError if a set has no directions by it, or none of the p in settings.
        """
        U, s = self.directions(name, short=True)
        spectrum = self.spectrum
        if self.is_base(name) and not self.collection.spectra:  # bases alone
            spectrum = []
        # every p, but where settings name spectra alone
        no_p = spectrum and self.settings.spectrum and not self.p
        dimensions = [] if no_p else self.dimensions(rank_of(s))
        candidates = [Candidate(name, p) for p in dimensions]
        candidates += [Candidate(name, None, alpha) for alpha in spectrum]
        for part in in_parts(candidates, len(s) ** 2):
            grams = _weighted_grams(part, (U, s))
            # of each a copy: one that is kept keeps no other
            yield {
                c: with_unit_diagonal(K.astype(np.float32)) for c, K in zip(part, grams)
            }

    def gaussian(self, name):
        """Yield {Candidate: K} of a recipe, a kernel after another."""
        own = self.settings.kernel is not None
        sets = [few_frames(rows) for rows in self.sets(name, short=not own)]
        grid = [self.settings.kernel]
        if not own:
            grid = [*map(kernels.rbf, kernels.gamma_grid(sets, N_GAMMAS).tolist())]
        most = max(self.p) if self.p else MOST_P_IN_KERNEL
        for part in in_parts(grid, most * len(sets) ** 2):
            bases = {}
            for kernel in part:
                try:
                    bases[kernel] = [
                        A[:, :most] for A in kernels.kernel_bases(sets, kernel)
                    ]
                except ValueError as error:
                    to_stderr(
                        f"left out {Candidate(name, kernel=kernel).words}: {error}"
                    )
            grams = kernels.kernel_grams(sets, [*bases.values()], [*bases], each_p=True)
            for kernel, K in zip(bases, grams):
                dimensions = self.p or tuning.dimensions(min(most, len(K)))
                yield {
                    Candidate(name, p, kernel=kernel): with_unit_diagonal(
                        (K[p - 1] / p).astype(np.float32)
                    )
                    for p in dimensions
                    if p <= len(K)
                }

    def is_cheap(self, name):
        """Are all Gaussian candidates of a recipe made soon?"""
        n = sum(min(FEW, len(rows)) for rows in self.collection.sets)
        d = self.collection.sets[0].shape[1]
        if self.recipes[name] is not None:
            d *= self.recipes[name].stack
        return n**2 * (10 * N_GAMMAS + d) / 2 <= CHEAP


def with_unit_diagonal(K):
    """K (n, n), scaled so that K(x, x) = 1, without what rounding left above or below it.

    Of sets that are equal but for rounding it would not be positive semidefinite.
    """
    np.clip(K, -1, 1, out=K)
    np.fill_diagonal(K, 1)
    return K


def _weighted_grams(candidates, *spectra, total=False):
    """K (m, n, n) of linear candidates of one recipe, or their sum, from its directions.

    Or (m, n_new, n), from those of new sets and others.
    """
    weights = (np.array([weights_of(s, c) for c in candidates]) for _, s in spectra)
    pairs = zip((U for U, _ in spectra), weights)
    return subspaces.weighted_grams(*itertools.chain(*pairs), total=total)


def _kernel_grams(candidates, *points):
    """Yield K of candidates of one kernel, as _weighted_grams, from Rows.in_kernel."""
    most = max(candidate.p for candidate in candidates)
    pairs = ((rows, [A[:, :most] for A in bases]) for rows, bases, _ in points)
    several = len(candidates) > 1  # one alone takes less memory
    grams = kernels.kernel_gram(
        *itertools.chain(*pairs), kernel=candidates[0].kernel, each_p=several
    )
    for candidate in candidates:
        p = candidate.p
        first, last = (np.minimum(p, ranks) for *_, ranks in (points[0], points[-1]))
        K = grams[p - 1] if several else grams
        yield K / np.sqrt(np.outer(first, last))


def in_parts(candidates, size):
    """The candidates in parts whose matrices, each of this size, fit into MOST_BYTES."""
    some = max(1, MOST_BYTES // (8 * size))
    return [candidates[k : k + some] for k in range(0, len(candidates), some)]
