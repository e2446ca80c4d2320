"""What rows take from the sets by each recipe: subspaces, Gram matrices, features."""

import math
import re
import time
from collections import OrderedDict
from dataclasses import replace

import numpy as np

import grassmann_sc as core
from grassmann_classify import first_tries
from grassmann_classify.building import built, common_bases, kept_rows, padded
from grassmann_classify.clips import threaded
from grassmann_classify.messages import to_stderr
from grassmann_classify.recipes import (
    PER_FRAME,
    base_of,
    described_by,
    described_set,
    shortened,
)
from grassmann_classify.workers import Team, computed_once
from grassmann_sc import frames, kernels, subspaces, tuning

MANY_FRAMES = 10_000  # from which Gaussian kernels are chosen on few frames of each set
# from which Gram matrices of large p are made of promising recipes alone
MANY_SETS = 500
LOW = 6  # the largest p by which a recipe must be promising
FEW = 20  # frames of a set, from which kernels are chosen
# bytes of rows that are kept for the next method; the least recently used go first
MOST_KEPT = 2**30


class Inputs:
    """What methods take from the sets of a Collection, by each recipe.

    recipes: {name: Recipe}; None: the one by which the Collection was built, whose name
    is None. With recipes the Collection holds the rows of base_of any of them. p,
    spectrum: the dimensions and the spectra of weighted subspaces to search, as
    settings.candidate_points gives them. videos: the clips (n_frames, height, width),
    or None. later: only the first recipe, until complete() is called.

    gram {(name, p): the projection kernel (n, n)}, see fill, weighted {(name,
    spectrum): that of weighted subspaces}; p {name: dimensions}; absent {name: why sets
    have no subspaces by this recipe}; kernels {(name, kernel): (Gram matrices (p, n, n)
    of few frames a set, why there is no larger p)}, filled when needed, and likewise
    hulls, the distances of baseline_rows.
    """

    def __init__(
        self, collection, p=None, recipes=None, videos=None, spectrum=(), later=False
    ):
        self.collection = collection
        self.recipes = {}
        self.first = []  # the recipes without those that stacked_twice makes
        self._later = {None: None} if recipes is None else {**recipes}
        self.videos = videos
        self.kernels = {}
        self.hulls = {}
        self.gram = {}
        self.weighted = {}
        self.p = {}
        self.absent = {}
        self.asked = p, spectrum
        self.folder = None  # of the processes that share the work
        self._filled = set()  # the recipes with Gram matrices of every p and spectrum
        self._described = {}
        self._shortened = {}
        self._rows = OrderedDict()
        self._few = {}
        self._features = {}
        self._whole = {}
        while later and self._later and not self.names:
            self._add_first_of(self._later)
        if not later or not self.names:
            self.complete()

    def __getstate__(self):
        """Without what is soon made again; X is a part of the spectra's U."""
        again = {"_rows": OrderedDict(), "_few": {}, "_features": {}, "_whole": {}}
        state = vars(self) | again
        if self.collection.spectra:
            p = self.collection.X.shape[2]
            state["collection"] = self.collection._replace(X=p)
        return state

    def __setstate__(self, state):
        vars(self).update(state)
        if self.collection.spectra:
            U, _ = self.collection.spectra
            X = U[:, :, : self.collection.X]
            self.collection = self.collection._replace(X=X)

    def complete(self, team=None):
        """Add the recipes that are still to come, until the end of a Team.

        Its processes make the descriptors.
        """
        team = team or Team(1)
        self.folder = team.folder
        if self.folder:
            recipes = {one.features: one for one in self._later.values() if one}
            recipes = [recipes[kind] for kind in PER_FRAME[1:] if kind in recipes]
            of_set = self.collection.sets, self.collection.frame
            self._described |= described_by(team, *of_set, recipes)
        while self._later and time.perf_counter() < team.end:
            self._add_first_of(self._later)
        if not self.names:
            raise ValueError(next(iter(self.absent.values())))
        for name, why in self.absent.items():
            to_stderr(f"recipe {name} left out: {why}")

    def _add_first_of(self, recipes):
        name = next(iter(recipes))
        self.recipes[name] = recipes.pop(name)
        self.first.append(name)
        self._add(name)

    def _add(self, name):
        """Fill gram, weighted and p for a recipe, or absent."""
        p, spectrum = self.asked
        try:
            X, spectra = self.points(name, short=True)
        except ValueError as error:
            self.absent[name] = str(error)
            return
        most = X.shape[2]
        of_recipe = tuning.dimensions(most) if not p else p
        of_recipe = [q for q in of_recipe if q <= most]
        if not of_recipe:
            why = (
                f"--p must hold a dimension up to {most}, that of the smallest set; got "
                f"{p}"
            )
            self.absent[name] = why
            return
        self.p[name] = of_recipe
        if self.many and name in self.first[1:]:
            few = [q for q in of_recipe if q <= LOW] or [min(of_recipe)]
            self._add_grams(name, X[:, :, : max(few)], few)
        else:
            self._fill(name, X, spectra)

    def fill(self, names):
        """Add the Gram matrices of recipes that are missing, see many.

        What other processes are at comes last.
        """
        for wait in (False, True):
            for name in names:
                if name not in self._filled:
                    self._fill_once(name, wait)

    def _fill_once(self, name, wait):

        def made():
            self._fill(name, *self.points(name, short=True))
            return [
                {key: K for key, K in grams.items() if key[0] == name}
                for grams in (self.gram, self.weighted)
            ]

        found = computed_once(self.folder, ("recipe", name), made, wait)
        if found is not None:
            self._filled.add(name)
            self.gram |= found[0]
            self.weighted |= found[1]

    def _fill(self, name, X, spectra):
        self._filled.add(name)
        if spectra and self.asked[1]:
            self._add_weighted(name, spectra, self.asked[1], self.p[name])
        else:
            self._add_grams(name, X[:, :, : max(self.p[name])], self.p[name])

    def _add_grams(self, name, X, dimensions):
        K = core.projection_kernel(X, each_p=True)
        self.gram |= {(name, q): K[q - 1].copy() for q in dimensions}

    def _add_weighted(self, name, spectra, spectrum, dimensions=()):
        """Fill weighted, and gram for dimensions: all weights are 1 or 0 there."""
        U, s = spectra
        each = np.arange(s.shape[1])
        weights = [np.broadcast_to(each < q, s.shape) for q in dimensions]
        weights += [subspaces.weights_of(s, alpha) for alpha in spectrum]
        grams = [*subspaces.weighted_grams(U, np.array(weights, float))]
        of_p = zip(dimensions, grams[: len(dimensions)])
        self.gram |= {(name, q): K for q, K in of_p}
        of_alpha = zip(spectrum, grams[len(dimensions) :])
        self.weighted |= {(name, alpha): K for alpha, K in of_alpha}

    def dimensions(self, name):
        """The dimensions to choose from; none where a spectrum alone is asked for."""
        return [] if self.asked[0] == [] and self.spectra(name) else self.p[name]

    def spectra(self, name):
        """The spectra of weighted subspaces that are asked for, if a recipe has them."""
        return [alpha for alpha in self.asked[1] if (name, alpha) in self.weighted]

    def weighted_gram(self, name, spectrum):
        """The projection kernel of weighted subspaces of any spectrum."""
        if (name, spectrum) not in self.weighted:
            self._add_weighted(name, self.points(name, short=True)[1], [spectrum])
        return self.weighted[name, spectrum]

    def stacked_twice(self, name):
        """The recipe that stacks twice as many frames, made if it is missing; or None.

        None where this one does not stack most of several, or a set is too short.
        """
        more = self.longer_stack(name)
        if more is None:
            return None
        twice = restacked(name, more)
        if twice not in self.recipes:
            self.recipes[twice] = self.recipe_named(twice)
            self._add(twice)
        return None if twice in self.absent else twice

    def recipe_named(self, name):
        """The Recipe of this name, also of a longer stack than those to choose from."""
        if name in self.recipes or name is None:
            return self.recipes.get(name)
        stack = int(name.rpartition("stack ")[2])
        (like,) = (
            one
            for one in self.first
            if self.recipes[one].stack == self._longest
            and restacked(one, stack) == name
        )
        return replace(self.recipes[like], stack=stack)

    def make(self, name):
        """Add what is missing of a recipe that another process chose."""
        if name not in self.recipes:
            self.recipes[name] = self.recipe_named(name)
            self._add(name)
        self.fill([name])

    @property
    def many(self):
        """Are recipes but the first raced on p up to LOW, and filled if they stay?"""
        return len(self.collection.X) > MANY_SETS

    @property
    def names(self):
        """The recipes to choose from by which all sets have subspaces."""
        return [name for name in self.first if name not in self.absent]

    @property
    def uncentred(self):
        """Names of the recipes that leave a set its mean; all if none does."""
        with_mean = [
            name
            for name in self.names
            if self.recipes[name] is None or not self.recipes[name].center
        ]
        return with_mean or self.names

    def subspaces(self, name):
        """(n, d, p) by this recipe."""
        return self.points(name)[0]

    def points(self, name, short=False):
        """X (n, d, p) and spectra by this recipe, as a Collection has them.

        short: in the coordinates of shortened, where inner products are the same.
        """
        recipe = self.recipes[name]
        if recipe is None or recipe == base_of(recipe):
            return self.collection.X, self.collection.spectra
        names = self.collection.names or range(len(self.collection.X))

        def build(named):
            try:
                return built(named[1], recipe)
            except ValueError as error:
                raise ValueError(f"{named[0]}: {error}") from None

        rows = self.described(recipe, short)
        made = threaded(build, [*zip(names, rows)])
        if made[0].spectra:
            spectra = padded([[part[0] for part in one.spectra] for one in made])
            return common_bases(spectra), spectra
        p = min(one.bases.shape[2] for one in made)
        return np.stack([one.bases[0][:, :p] for one in made]), None

    def described(self, recipe, short=False):
        """The descriptors of all sets, before they are stacked and normalised.

        They are made once. short: as shortened gives them.
        """
        key = recipe.features
        if key not in self._described:
            rows = self.collection.sets
            if key != base_of(recipe).features:
                # one after another: frames.lbp silences a warning, which no thread may do
                shape = self.collection.frame
                rows = [described_set(one, shape, recipe) for one in rows]
            self._described[key] = rows
        if not short:
            return self._described[key]
        if key not in self._shortened:
            self._shortened[key] = shortened(self._described[key])
        return self._shortened[key]

    def sets(self, name):
        """The rows of all sets by this recipe; None if they do not fit into memory."""
        recipe = self.recipes[name]
        if self.collection.sets is None or recipe is None or recipe == base_of(recipe):
            return self.collection.sets
        if name not in self._rows:
            self._keep(name, [kept_rows(one, recipe) for one in self.described(recipe)])
        self._rows.move_to_end(name)
        return self._rows[name]

    def features(self, kind, name):
        """A few rows of each set, by first_tries.FEATURES, once for all splits."""
        key = kind, name
        if key not in self._features:
            recipe = self.recipes[name]

            def made():
                if recipe is None or recipe == base_of(recipe):
                    rows = self.collection.sets
                else:  # one set after another: all rows may take much memory
                    rows = (kept_rows(one, recipe) for one in self.described(recipe))
                features = first_tries.FEATURES[kind]
                return [first_tries.few_of([features(one)], np.inf)[0] for one in rows]

            self._features[key] = computed_once(self.folder, key, made)
        return self._features[key]

    def _short_sets(self, name):
        """The rows of all sets, turned so that few numbers tell each."""
        recipe = self.recipes[name]
        if recipe is None:
            return shortened(self.sets(name))
        return [kept_rows(one, recipe) for one in self.described(recipe, short=True)]

    def _keep(self, key, rows):
        self._rows[key] = rows
        while len(self._rows) > 1 and self._size() > MOST_KEPT:
            self._rows.popitem(last=False)

    def _size(self):
        return sum(one.nbytes for rows in self._rows.values() for one in rows)

    @property
    def thinned(self):
        """Are kernels chosen on few frames of each set?"""
        return sum(map(len, self.collection.sets)) > MANY_FRAMES

    def few(self, name, short=False):
        """The rows of all sets; of many frames at most FEW a set, at even steps.

        short: turned so that few numbers tell each, with the same distances.
        """
        key = name, short
        if key not in self._few:
            sets = self._short_sets(name) if short else self.sets(name)
            if self.thinned:
                sets = [
                    rows[frames.pick(range(len(rows)), evenly=min(FEW, len(rows)))]
                    for rows in sets
                ]
            if not short and not self.thinned:
                return sets
            self._few[key] = sets
        return self._few[key]

    def kernel_gram(self, name, kernel, p):
        """The Gram matrix (n, n) in a kernel's space, of all frames."""
        if not self.thinned:
            return self.kernels[name, kernel][0][p - 1]
        if (name, kernel) not in self._whole:
            sets = self.sets(name) if is_own(kernel) else self._short_sets(name)
            ((K, why),) = computed_once(
                self.folder,
                ("all frames", name, kernel, p),
                lambda: kernel_grams(sets, [kernel], p),
            )
            if len(K) < p:
                raise ValueError(why)
            self._whole = {(name, kernel): K}  # one at a time
        K = self._whole[name, kernel]
        if len(K) < p:
            del self._whole[name, kernel]
            return self.kernel_gram(name, kernel, p)
        return K[p - 1]

    def longer_stack(self, name):
        """Twice the stack of a recipe that stacks most of several, if sets allow it."""
        stacks = {self.recipes[one].stack for one in self.first if one is not None}
        if name is None or len(stacks) < 2 or self.recipes[name].stack < self._longest:
            return None
        more = 2 * self.recipes[name].stack
        return more if min(map(len, self.collection.sets)) >= 2 * more else None

    @property
    def _longest(self):
        """The longest stack to choose from."""
        return max(self.recipes[one].stack for one in self.first)

    def end_of_stacks(self, name):
        """{"stack": option to try} if the recipe stacks most frames of several."""
        more = self.longer_stack(name)
        if more is None or restacked(name, more) in self.recipes:  # it ran, and lost
            return {}
        stacks = {self.recipes[one].stack for one in [*self.first, name]}
        return {"stack": f"--stack {' '.join(map(str, sorted([*stacks, more])))}"}

    def by(self, name):
        """The Collection by this recipe, with its rows."""
        recipe = self.recipes[name]
        if recipe is None:
            return self.collection
        frame = self.collection.frame if recipe.features == "raw" else ()
        X, spectra = self.points(name)
        return self.collection._replace(
            X=X, sets=self.sets(name), frame=frame, spectra=spectra
        )

    def compute_kernels(self, name, grid, seconds=None):
        """Add to kernels those of a grid that are missing; all splits share them.

        seconds: how long this may take; the time for each kernel is estimated on a
        tenth of the sets. It begins in the middle of the grid; the rest is left out.
        """
        missing = [kernel for kernel in grid if (name, kernel) not in self.kernels]
        if not missing:
            return
        sets = self.few(name, short=not is_own(grid[0]))
        p_max = max(self.p[name])
        late = []
        kind = "own" if is_own(grid[0]) else "Gaussian"
        if seconds is not None:
            missing.sort(key=lambda kernel: abs(grid.index(kernel) - len(grid) // 2))
            few = sets[::10]
            kernel_grams(few[:2], missing[:1], p_max)  # compile
            start = time.perf_counter()
            kernel_grams(few, missing[:1], p_max)
            each = (len(sets) / len(few)) ** 2 * (time.perf_counter() - start)
            fit = math.floor(max(0, start + seconds - time.perf_counter()) / each)
            late = missing[fit:]
            why = (
                f"the Gram matrices of each take about {each:.2g} s, --seconds leaves "
                f"{seconds:.2g}"
            )
            if late:
                to_stderr(
                    f"left out {len(late)} of {len(missing)} {kind} kernels: {why}"
                )
            missing = missing[:fit]
        none = np.empty((0, len(sets), len(sets)))
        grams = computed_once(
            self.folder,
            (name, missing),
            lambda: kernel_grams(sets, missing, p_max),
        )
        found = dict(zip(missing, grams))
        found |= {kernel: (none, why) for kernel in late}
        for kernel, of_kernel in found.items():
            self.kernels[name, kernel] = of_kernel


def is_own(kernel):
    """Is it a function of the user's own, which may depend on more than distances?"""
    return getattr(kernel, "gamma", None) is None


def restacked(name, stack):
    """The name of the recipe that is as this one but for its stack."""
    return re.sub(r"stack \d+", f"stack {stack}", name)


def kernel_grams(sets, of_kernels, p_max):
    """[(K (p, n, n), why there is no larger p), ...], one for each kernel.

    p goes up to the smallest rank of a set in feature space. In float64, because
    float32 makes the matrices of wide Gaussians and small p indefinite.
    """
    sets = [rows.astype(np.float64, copy=False) for rows in sets]
    found = {}
    bases = {}
    for kernel in of_kernels:
        try:
            bases[kernel] = [A[:, :p_max] for A in kernels.kernel_bases(sets, kernel)]
        except ValueError as error:
            found[kernel] = np.empty((0, len(sets), len(sets))), str(error)
    grams = kernels.kernel_grams(sets, list(bases.values()), list(bases), each_p=True)
    for kernel, K in zip(bases, grams):
        found[kernel] = K, f"a set has rank {len(K)} in the feature space of {kernel}"
    return [found[kernel] for kernel in of_kernels]
