"""What a model keeps of the labelled sets, and how its estimator reads sets with it."""

from dataclasses import dataclass

import numpy as np

import grassmann_sc as core
from grassmann_classify.baseline_rows import videos_of
from grassmann_classify.first_tries import FEATURES, few_of
from grassmann_sc import kernels, subspaces
from grassmann_sc.baselines import hulls


@dataclass
class Reader:
    """How the input of an estimator is made from sets.

    reads: as rows.Method has it, or the hulls "affine" or "convex". p: the dimension of
    subspaces, for "gram", "kernels", "subspaces"; spectrum: in its place, for "gram",
    that of weighted subspaces. kernel: of "kernels" and "affine".
    share, bound: of hulls. n_blocks: how many frames a row holds, from which "videos"
    are made again.
    """

    reads: str
    p: int | None = None
    kernel: object = None
    share: float | None = None
    bound: float | None = None
    n_blocks: int = 1
    spectrum: float | None = None

    @property
    def takes_subspaces(self):
        return self.reads in ("gram", "subspaces")

    def points(self, collection):
        """What is kept of sets: bases (n, d, p), or a list of arrays of rows."""
        if self.spectrum is not None:
            return subspaces.weighted(*collection.spectra, self.spectrum)
        if self.takes_subspaces:
            return np.ascontiguousarray(collection.X[:, :, : self.p])
        if self.reads in FEATURES:
            return few_of(
                [FEATURES[self.reads](one) for one in collection.sets], np.inf
            )
        if self.reads == "kernels":
            return [rows.astype(np.float64, copy=False) for rows in collection.sets]
        if self.reads != "videos":
            return collection.sets
        videos = videos_of(collection, self.n_blocks)
        if videos is None:
            raise ValueError("a video needs three frames or more")
        return videos

    def prepared(self, points):
        """The points with all that is computed of each alone."""
        if self.reads == "kernels":
            return points, kernels.kernel_bases(points, self.kernel, self.p)
        return points

    def labelled(self, prepared):
        """What the estimator learns from: a Gram matrix (n, n), or the points."""
        if self.reads == "gram":
            return core.projection_kernel(prepared)
        if self.reads == "kernels":
            return kernels.kernel_gram(*prepared, kernel=self.kernel)
        if self.reads in ("affine", "convex"):
            return self._hulls(prepared)
        return prepared

    def asked(self, new, prepared):
        """What it is asked: rows of a Gram matrix (n_new, n), or the new points."""
        if self.reads == "gram":
            return core.projection_kernel(new, prepared)
        if self.reads == "kernels":
            return kernels.kernel_gram(*new, *prepared, self.kernel)
        if self.reads in ("affine", "convex"):
            return self._hulls(new, prepared)
        return new

    def _hulls(self, *sets):
        """Minus the distances of hulls."""
        if self.reads == "convex":
            return -hulls.convex_hull_distances(*sets, bound=self.bound)
        options = {"share": self.share, "kernel": self.kernel}
        return -hulls.affine_hull_distances(*sets, **options)

    def length(self, points):
        """d, that of the rows from which the points were made."""
        if self.takes_subspaces:
            return points.shape[1]
        if self.reads == "videos":
            return self.n_blocks * points[0][0].size
        return points[0].shape[1] // (2 if self.reads == "moments" else 1)


def of_one_type(arrays):
    """The arrays as a file keeps them: of the type that holds the numbers of all."""
    dtype = np.result_type(*{one.dtype for one in arrays})
    return [one.astype(dtype, copy=False) for one in arrays]


def reader_of(method, chosen, n_blocks):
    """The Reader of a row that chose these parameters."""
    kernel = chosen.get("kernel")
    kernel = None if kernel == "linear" else kernel
    if callable(method.reads):
        kind = "convex" if "bound" in chosen else "affine"
        return Reader(
            kind, None, kernel, chosen.get("share"), chosen.get("bound"), n_blocks
        )
    if method.reads in ("gram", "kernels"):
        reads = "gram" if kernel is None else "kernels"
        point = {name: chosen.get(name) for name in ("p", "spectrum")}
        return Reader(reads, kernel=kernel, n_blocks=n_blocks, **point)
    p = chosen["p"] if method.reads == "subspaces" else None
    return Reader(method.reads, p, n_blocks=n_blocks)
