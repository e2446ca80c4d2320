"""The bank: Gram matrices of all candidates, which rank them and are summed.

A candidate is a recipe with a dimension p, a spectrum alpha, or a Gaussian kernel and p.
Every matrix is scaled so that K(x, x) = 1.
"""

import math
from collections import namedtuple

import numpy as np
from threadpoolctl import threadpool_limits  # scikit-learn needs it

import grassmann_sc as core
from grassmann_classify.first_tries import FEATURES, few_of
from grassmann_classify.recipes import (
    base_of,
    described_set,
    kept_rows,
    padded,
    resampled,
    shortened,
)
from grassmann_classify.settings import Settings, candidate_points
from grassmann_classify.words import all_in_words, to_stderr
from grassmann_sc import frames, kernels, subspaces, tuning

MOST_P = 12  # largest dimension of a candidate where none is asked for
MOST_P_IN_KERNEL = 6
N_GAMMAS = 7
FEW = 20  # frames of a set, at even steps, that Gaussian candidates read
CHEAP = 5e9  # multiplications up to which a recipe's Gaussian candidates are all made
MOST_BYTES = 2**30  # of all matrices that are kept

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
        values = self._asdict().items()
        return {name: value for name, value in values if value is not None}

    @property
    def words(self):
        """What it is.

        >>> Candidate("raw", p=3).words, Candidate(None, None, 0.25).words
        ('raw pixels, 3 directions', 'all directions, alpha 0.25')
        """
        return all_in_words(self.point)


def rows_by(rows, recipe):
    """Rows of a set by a Recipe: resampled, stacked and normalised descriptors."""
    return kept_rows(resampled(rows, recipe.resample), recipe)


def scaled_bases(U, weights):
    """Weighted bases (n, d, r) of unit norm; weights (n, r) of their projectors."""
    return U * np.sqrt(weights)[:, None].astype(U.dtype)


def weights_of(s, candidate):
    """Weights (n, r), of norm 1, of a linear candidate's directions of values s (n, r)."""
    if candidate.p is None:
        return subspaces.weights_of(s, candidate.spectrum)
    leading = np.arange(s.shape[1]) < candidate.p
    return np.broadcast_to(leading / math.sqrt(candidate.p), s.shape)


def few_frames(rows):
    """At most FEW rows, at even steps."""
    return rows[frames.pick(range(len(rows)), evenly=min(FEW, len(rows)))]


class Rows:
    """The rows of the sets of a Collection, by each of several recipes.

    recipes: {name: Recipe}, variants of the one by which the Collection was read; or
    {None: None}, that one alone.
    """

    def __init__(self, collection, recipes=None):
        self.collection = collection
        self.recipes = {None: None} if recipes is None else {**recipes}
        self.described = {}

    def is_base(self, name):
        """Is it the recipe by which the Collection was read?"""
        recipe = self.recipes[name]
        return recipe is None or recipe == base_of(recipe)

    def sets(self, name, short=False):
        """Rows of all sets; short: turned so that few numbers tell each."""
        recipe = self.recipes[name]
        if self.is_base(name) or self.collection.sets is None:
            rows = self.collection.sets
            return shortened(rows) if short and rows else rows
        described = self._by_descriptor(recipe)
        if short:
            described = shortened(described)
        return [rows_by(rows, recipe) for rows in described]

    def _by_descriptor(self, recipe):
        """Descriptors of all frames, made once."""
        if recipe.features == base_of(recipe).features:
            return self.collection.sets
        if recipe.features not in self.described:
            # one after another: frames.lbp silences a warning, which no thread may do
            shape = self.collection.frame
            sets = self.collection.sets
            made = [described_set(rows, shape, recipe) for rows in sets]
            self.described[recipe.features] = made
        return self.described[recipe.features]

    @on_one_thread
    def directions(self, name, short=False):
        """(U (n, d, r), s (n, r)) of all sets; s is 1 where only bases are known."""
        collection = self.collection
        if not self.is_base(name):
            most = self.recipes[name].p
            sets = self.sets(name, short)
            made = core.run_blocks(
                lambda rows: subspaces.singular_directions(sets[rows.start], most),
                len(sets),
                1,
            )
            return padded(made)
        if collection.spectra:
            return collection.spectra
        return collection.X, np.ones((len(collection.X), collection.X.shape[2]))

    def by(self, name):
        """The Collection by a recipe, with its rows."""
        if self.is_base(name):
            return self.collection
        U, s = self.directions(name)
        raw = self.recipes[name].features == "raw"
        return self.collection._replace(
            X=U[:, :, : rank_of(s)],
            sets=self.sets(name),
            frame=self.collection.frame if raw else (),
            spectra=(U, s),
        )

    def points(self, candidate):
        """What a candidate compares: weighted bases (n, d, r); with a kernel, (rows of
        the sets, coefficients of their bases).
        """
        if candidate.kernel is None:
            U, s = self.directions(candidate.recipe)
            if candidate.p is not None:
                U, s = (A[..., : candidate.p] for A in (U, s))
            return scaled_bases(U, weights_of(s, candidate))
        rows = [few_frames(rows) for rows in self.sets(candidate.recipe)]
        rows = [part.astype(np.float64, copy=False) for part in rows]
        bases = kernels.kernel_bases(rows, candidate.kernel, candidate.p)
        return rows, [A / candidate.p**0.25 for A in bases]


def rank_of(s):
    """The least rank of sets with singular values s (n, r)."""
    return np.count_nonzero(s, axis=1).min()


def gram_of(candidate, points, new=None):
    """K (n, n) of a candidate's points, or (n_new, n) of new points with them."""
    if candidate.kernel is None:
        pair = [points] if new is None else [new, points]
        return core.projection_kernel(*pair)
    pair = points if new is None else [*new, *points]
    return kernels.kernel_gram(*pair, kernel=candidate.kernel)


class Bank(Rows):
    """Gram matrices of candidates, by recipe; and what other rows take from the sets.

    settings: what candidates are of (p, spectrum, kernels, kernel); videos: the clips
    (n_frames, height, width), or None. grams {Candidate: K (n, n) float32} are those
    that are kept; absent {name: why} the recipes that some set cannot have.
    """

    def __init__(self, collection, recipes=None, settings=None, videos=None):
        super().__init__(collection, recipes)
        settings = settings or Settings()
        self.p, self.spectrum = candidate_points(settings)
        self.kernel = settings.kernel
        self.videos = videos
        self.grams = {}
        self.absent = {}
        self.hulls = {}  # distances, of baseline_rows
        self._features = {}

    @property
    def names(self):
        """The recipes that no set is known to lack."""
        return [name for name in self.recipes if name not in self.absent]

    @property
    def uncentred(self):
        """Names of recipes that leave a set its mean; all if none does."""
        of_mean = [
            name
            for name in self.names
            if self.recipes[name] is None or not self.recipes[name].center
        ]
        return of_mean or self.names

    def features(self, kind, name):
        """A few rows of each set, by first_tries.FEATURES."""
        key = kind, name
        if key not in self._features:
            made = map(FEATURES[kind], self.sets(name))
            self._features[key] = [few_of([rows], np.inf)[0] for rows in made]
        return self._features[key]

    def take_spectra(self, spectra):
        """Have no candidates but these spectra, where spectra can be had."""
        if self.spectrum and (self.collection.spectra or self.recipes != {None: None}):
            self.spectrum = [*spectra] if self.p is None else self.spectrum
            self.p = []

    def dimensions(self, rank):
        """The p to try of sets of this rank; ValueError if those asked for are above."""
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

        ValueError if a set has no directions by it, or none of the p asked for.
        """
        U, s = self.directions(name, short=True)
        is_given = self.is_base(name) and not self.collection.spectra
        spectrum = [] if is_given else self.spectrum
        alone = self.p == [] and spectrum
        dimensions = [] if alone else self.dimensions(rank_of(s))
        found = [Candidate(name, p) for p in dimensions]
        found += [Candidate(name, None, alpha) for alpha in spectrum]
        part = max(1, MOST_BYTES // (8 * len(s) ** 2))
        for first in range(0, len(found), part):
            some = found[first : first + part]
            weights = np.array([weights_of(s, candidate) for candidate in some])
            grams = subspaces.weighted_grams(U, weights)
            yield dict(zip(some, grams.astype(np.float32, copy=False)))

    def gaussian(self, name):
        """Yield {Candidate: K} of a recipe, a kernel after another."""
        own = self.kernel is not None
        sets = [few_frames(rows) for rows in self.sets(name, short=not own)]
        sets = [rows.astype(np.float64, copy=False) for rows in sets]
        grid = [self.kernel]
        if not own:
            gammas = kernels.gamma_grid(sets, N_GAMMAS)
            grid = [kernels.rbf(float(gamma)) for gamma in gammas]
        most = max(self.p) if self.p else MOST_P_IN_KERNEL
        part = max(1, MOST_BYTES // (8 * most * len(sets) ** 2))
        for first in range(0, len(grid), part):
            bases = {}
            for kernel in grid[first : first + part]:
                try:
                    of_sets = kernels.kernel_bases(sets, kernel)
                except ValueError as error:
                    to_stderr(
                        f"left out {Candidate(name, kernel=kernel).words}: {error}"
                    )
                    continue
                bases[kernel] = [A[:, :most] for A in of_sets]
            found = kernels.kernel_grams(sets, [*bases.values()], [*bases], each_p=True)
            for kernel, K in zip(bases, found):
                dimensions = self.p or tuning.dimensions(min(most, len(K)))
                yield {
                    Candidate(name, p, kernel=kernel): (K[p - 1] / p).astype(np.float32)
                    for p in dimensions
                    if p <= len(K)
                }

    def is_cheap(self, name):
        """Are all Gaussian candidates of a recipe made soon?"""
        lengths = [min(FEW, len(rows)) for rows in self.collection.sets]
        d = self.collection.sets[0].shape[1]
        if self.recipes[name] is not None:
            d *= self.recipes[name].stack
        return sum(lengths) ** 2 * (10 * N_GAMMAS + d) / 2 <= CHEAP
