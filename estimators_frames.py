"""The first steps of a pipeline on raw frames: descriptors, stacks of frames, models of videos.

Each takes a sequence of n sets of frames and gives n sets of rows, for ImageSetSubspaces,
KernelLift or KAHM, or subspaces, so that GridSearchCV searches from raw input to answers.
estimators hands these classes on. HOG and LBP need scikit-image, the extra "image".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

import grassmann_sc as core
from grassmann_sc import estimators, frames, subspaces

if TYPE_CHECKING:
    from typing_extensions import Self  # typing's own from Python 3.11 on

__all__ = ["HOG", "LBP", "LBPTOP", "GaitEnergyImage", "BlockHankel", "VideoSubspaces"]


class RowsMaker(estimators.SetsTransformer):
    """Base of those from sets of frames to sets of rows, which rows_of(frames) makes of one."""

    def fit(self, X: core.Sets, y: object = None) -> Self:
        """Record n_features_out_, the length d of a row; nothing is learned."""
        rows = self._rows(estimators.first_of(X))
        if not rows:
            raise ValueError("X must hold at least one set of frames, got none")
        self.n_features_out_ = rows[0].shape[1]
        return self

    def transform(self, X: core.Sets) -> list[np.ndarray]:
        """A list of n arrays (n_rows_i, d)."""
        check_is_fitted(self)
        rows = self._rows(X)
        for i, some in enumerate(rows):
            if some.shape[1] != self.n_features_out_:
                raise ValueError(f"X must give rows of d = {self.n_features_out_}, as in fit: "
                                 f"X[{i}] gives {some.shape[1]}")
        return rows

    def _rows(self, X):
        if not np.iterable(X) or isinstance(X, (str, bytes)):
            raise TypeError(f"X must be a sequence of sets of frames, got {X!r}")
        rows = []
        for i, of_set in enumerate(X):
            try:
                rows.append(self.rows_of(of_set))
            except (TypeError, ValueError) as error:
                raise type(error)(f"X[{i}]: {error}") from None
        return rows

    @property
    def _n_features_out(self):
        return self.n_features_out_


class HOG(RowsMaker):
    """Histograms of oriented gradients, a row a frame: frames.hog, whose source it names.

    orientations, pixels_per_cell, cells_per_block, block_norm, transform_sqrt: as in
    skimage.feature.hog. Frames are (height, width).

    >>> import numpy as np
    >>> from grassmann_sc.estimators import HOG
    >>> [rows.shape for rows in HOG().fit_transform(np.zeros((2, 5, 24, 32)))]  # two sets
    [(5, 162), (5, 162)]
    """

    def __init__(self, orientations: int = 9, pixels_per_cell: tuple[int, int] = (8, 8),
                 cells_per_block: tuple[int, int] = (3, 3), block_norm: str = "L2-Hys",
                 transform_sqrt: bool = False) -> None:
        self.orientations = orientations
        self.pixels_per_cell = pixels_per_cell
        self.cells_per_block = cells_per_block
        self.block_norm = block_norm
        self.transform_sqrt = transform_sqrt

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Descriptors (n_frames, d) of one set of frames."""
        return frames.hog(of_set, **self.get_params())


class LBP(RowsMaker):
    """Histograms of local binary patterns, a row a frame: frames.lbp, whose parameters it has.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import LBP
    >>> sets = np.zeros((2, 5, 24, 32), np.uint8)  # two of five frames
    >>> [rows.shape for rows in LBP().fit_transform(sets)]
    [(5, 59), (5, 59)]
    """

    def __init__(self, n_points: int = 8, radius: float = 1, grid: tuple[int, int] = (1, 1),
                 method: str = "nri_uniform") -> None:
        self.n_points = n_points
        self.radius = radius
        self.grid = grid
        self.method = method

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Descriptors (n_frames, d) of one set of frames."""
        return frames.lbp(of_set, **self.get_params())


class LBPTOP(RowsMaker):
    """LBP from three orthogonal planes, a row a sub-video: frames.lbp_top, whose parameters it has.

    Sub-videos of length frames, a new one every step: a video then has rows enough for a subspace.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import LBPTOP
    >>> videos = np.zeros((2, 12, 8, 8))
    >>> [rows.shape for rows in LBPTOP(length=10, step=1).fit_transform(videos)]
    [(3, 177), (3, 177)]
    """

    def __init__(self, length: int | None = None, step: int | None = None,
                 radii: Sequence[int] = (1, 1, 1), uniform: bool = True) -> None:
        self.length = length
        self.step = step
        self.radii = radii
        self.uniform = uniform

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Descriptors (n_sub_videos, d) of one video."""
        return frames.lbp_top(of_set, **self.get_params())


class GaitEnergyImage(RowsMaker):
    """Mean silhouettes of walks, a row a walk: frames.gait_energy_image, whose parameters it has.

    A set is a list of walks (n_frames, height, width), of several views say, or one walk.

    >>> from grassmann_sc.estimators import GaitEnergyImage
    >>> walk = [[[0, 1]], [[1, 1]]]  # two frames of two pixels
    >>> GaitEnergyImage(align=False).fit_transform([walk])
    [array([[0.5, 1. ]])]
    """

    def __init__(self, size: tuple[int, int] | None = None, align: bool = True) -> None:
        self.size = size
        self.align = align

    def rows_of(self, of_set: Any) -> np.ndarray:
        """Descriptors (n_walks, height width) of one set of walks."""
        several = isinstance(of_set, (list, tuple)) and of_set and np.ndim(of_set[0]) == 3
        walks = of_set if several else [of_set]
        return np.concatenate([frames.gait_energy_image(walk, **self.get_params())
                               for walk in walks])


class BlockHankel(RowsMaker):
    """Frames stacked with those that follow them: subspaces.block_hankel, a row a stack.

    n_blocks: frames in a stack, >= 1; 1 leaves the frames as they are, and the order of frames
    plays no part in their subspace. X: sets of frames, or of descriptors, in order of time.

    >>> from grassmann_sc.estimators import BlockHankel
    >>> BlockHankel(n_blocks=2).fit_transform([[[1.0], [2.0], [3.0]]])  # a video of three frames
    [array([[1., 2.],
           [2., 3.]])]
    """

    def __init__(self, n_blocks: int = 2) -> None:
        self.n_blocks = n_blocks

    def rows_of(self, of_set: ArrayLike) -> np.ndarray:
        """Rows (n_frames - n_blocks + 1, n_blocks d) of one video; a view."""
        return subspaces.block_hankel(of_set, self.n_blocks)


class VideoSubspaces(estimators.SubspaceMaker):
    """Videos to subspaces (n, n_blocks d, n_states) of ARMA models: subspaces.from_videos, whose
    parameters it has, as the first step of a pipeline.

    X: n videos, frames in order of time, as in ImageSetSubspaces. fit learns d alone.

    >>> import numpy as np
    >>> from grassmann_sc.estimators import VideoSubspaces
    >>> videos = np.random.default_rng(0).random((4, 20, 6, 8))  # four of 20 frames
    >>> VideoSubspaces(n_states=3, n_blocks=2).fit_transform(videos).shape
    (4, 96, 3)
    """

    def __init__(self, n_states: int = 5, n_blocks: int = 3, stabilize: bool = False,
                 center: bool = False, unit_variance: bool = False, rank: str = "raise") -> None:
        self.n_states = n_states
        self.n_blocks = n_blocks
        self.stabilize = stabilize
        self.center = center
        self.unit_variance = unit_variance
        self.rank = rank

    @property
    def blocks(self) -> int:
        """Frames in a basis vector."""
        return core.check_integer(self.n_blocks, "n_blocks", 1)

    def bases_of(self, X: core.Sets) -> np.ndarray:
        """Bases (n, n_blocks d, n_states) as the parameters say."""
        return subspaces.from_videos(X, **self.get_params())
