"""Tiles do not show: whatever their sizes, every function that works in tiles gives the
same.
"""

import functools
import importlib
import re

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_sc import (
    discriminative,
    intrinsic,
    kernels,
    learn,
    projected,
    subspaces,
)
from grassmann_sc.baselines import dynamics, hulls, sets, tangent, tensors
from grassmann_sc.baselines.estimators import MSM
from grassmann_sc.large.codes import write_codes
from oracles import LOOSE, clusters, hat, noisy_image_sets
from processes import MODULES

# Module-level numbers that say how much is taken at a time, and change nothing but
# memory and time. (TILE alone leaves 64 queries in a tile of the core; hence the 150
# below.)
NAMES = [
    "TILE",
    "COMPLEX_AT_A_TIME",
    "PIXELS_AT_A_TIME",
    "PRODUCTS_AT_A_TIME",
    "TANGENTS_AT_A_TIME",
    "VALUES_AT_A_TIME",
    "TILE_SIDE",
    "MOST_COLUMNS",
    "MOST_NUMBERS",
    "ALL_PAIRS",
    "SHORT",
    "LARGE",
    "ONE_THREAD",
    "CACHE",
    "JOINED",
    "SCRATCH",
]

X = clusters(np.random.default_rng(0), 150, 9, 2, 20)
D = core.random_subspaces(20, 9, 2, rng=1)
Y = np.arange(150) % 3
CLASSES = np.arange(20) % 3
SETS, LABELS = noisy_image_sets(9, 12)
APART = [frames[:3] + i * np.eye(12)[i] for i, frames in enumerate(SETS)]
NEAR = clusters(np.random.default_rng(4), 40, 9, 2, 1)
CLIPS = np.random.default_rng(2).random((9, 5, 6, 4))
WIDE = np.random.default_rng(3).random((3, 8, 90))
SYSTEMS = [subspaces.arma(clip, 2, stabilize=True) for clip in CLIPS]


def kernel_grams(kernel):
    bases = kernels.kernel_bases(SETS, kernel, 3)
    return [
        kernels.kernel_gram(SETS, bases, kernel=kernel, each_p=True),
        kernels.kernel_gram(SETS, bases, SETS[1:6], bases[1:6], kernel),
    ]


def lifted(**options):
    lift = kernels.Lift(kernels.rbf(0.1), 2, rng=0, **options).fit(SETS[:5])
    return [core.projection_kernel(lift.transform(SETS))]


def written(**options):
    out = np.zeros((len(X), len(D)))
    write_codes(out, X, D, **options)
    return [out]


def several_norms():
    norm2 = np.linspace(2, 3, len(X))
    K_dd = core.projection_kernel(D)
    K_xd = core.projection_kernel(X, D)
    codes = core.locality_codes(K_dd, K_xd, 5, norm2=norm2, reg=0.1)
    return [
        codes,
        *core.sparse_codes(K_dd, K_xd, 0.1, norm2=norm2, return_info=True)[:2],
        core.class_residuals(codes, K_dd, K_xd, CLASSES, norm2=norm2)[0],
    ]


def learned(**options):
    result = learn.gdl(X, 6, init=X[:6], n_iter=2, tol=0, **options)
    return [hat(result.atoms), result.codes, result.costs]


def discriminative_atoms():
    result = discriminative.discriminative_atoms(
        X, Y, 2, init=(D[:6], [0, 0, 1, 1, 2, 2]), n_iter=2
    )
    return [hat(result.atoms), result.costs]


CASES = {
    "gsc": lambda: [
        core.gsc(X, D, 0.1),
        core.gsc(X, D, [0.1, 0.5], sparse_output=True)[1].toarray(),
    ],
    "glc": lambda: [core.glc(X, D, 5)],
    "queries of several norms": several_norms,
    "codes to an array": lambda: written(lam=0.1) + written(n_neighbors=5),
    "classify": lambda: [
        core.classify(X, D, CLASSES, lam=0.1, return_info=True).residuals,
        core.classify(X, D, CLASSES, n_neighbors=3),
    ],
    "Gaussian Gram matrices": lambda: kernel_grams(kernels.rbf(0.1)),
    "polynomial Gram matrices": lambda: kernel_grams(kernels.polynomial(2, 1.0)),
    "Gram matrices of another kernel": lambda: kernel_grams(
        lambda A, B: np.square(1 + A @ B.T)
    ),
    "Lift": lambda: lifted() + lifted(n_landmarks=12),
    "gdl": lambda: learned(lam=0.2) + learned(n_neighbors=2),
    "discriminative_atoms": discriminative_atoms,
    "projected_codes": lambda: [projected.projected_codes(X[:4], D[:5], 0.05)],
    "distances": lambda: [
        core.chordal_distance(X),
        core.chordal_distance(X, X[:50]),
        core.geodesic_distance(X),
        core.geodesic_distance(X, D),
    ],
    "tangents": lambda: [
        *tangent.tangent_grams(X, D),
        intrinsic.log_map(X[:20, None], D),
        intrinsic.karcher_mean(NEAR, np.arange(40)),
    ],
    "intrinsic_codes": lambda: [tangent.intrinsic_codes(X, D[:6], 0.3)],
    "correlation_kernel": lambda: [
        sets.correlation_kernel(X, None, 1),
        sets.correlation_kernel(X, D, 1),
    ],
    "dcc": lambda: [sets.dcc(X[:60], Y[:60], n_iter=2).objective],
    "hulls": lambda: [
        hulls.affine_hull_distances(APART),
        hulls.affine_hull_distances(APART, APART[2:5]),
        hulls.convex_hull_distances(APART),
        hulls.convex_hull_distances(APART, APART[2:5]),
    ],
    "MSM": lambda: [MSM(2).fit(SETS[:6], LABELS[:6]).class_scores(SETS)],
    "systems": lambda: [
        dynamics.martin_distances(SYSTEMS),
        dynamics.observability_angles(SYSTEMS, SYSTEMS[2:]),
    ],
    "tensors": lambda: [
        tensors.tensor_correlations(tensors.tensor_parts(CLIPS, 2, tensors.MODES)),
        tensors.product_distances(tensors.mode_bases(CLIPS, 2)),
    ],
    "subspaces": lambda: [
        hat(subspaces.from_sets(WIDE, 3)),
        hat(subspaces.from_videos(WIDE, 3, 2)),
        hat(subspaces.from_sets(WIDE.swapaxes(1, 2), 3)),
    ],
}


@functools.cache
def at_the_usual_size(case):
    return CASES[case]()


def sizes_by_module():
    modules = [
        core,
        *(importlib.import_module(f"grassmann_sc.{module}") for module in MODULES),
    ]
    return [
        (module, name) for module in modules for name in NAMES if name in vars(module)
    ]


@pytest.fixture(params=[1, 7, 64, 512])
def tiles_of(request, monkeypatch):
    """The function that makes all tiles of that size, as good as they can be."""

    def change():
        for module, name in sizes_by_module():
            least = 2 if name == "JOINED" else 1
            monkeypatch.setattr(module, name, max(least, request.param))

    return change


@pytest.mark.parametrize("case", CASES)
def test_tiles_of_every_size_give_the_same(case, tiles_of):
    usual = at_the_usual_size(case)
    tiles_of()
    for before, after in zip(usual, CASES[case](), strict=True):
        assert before.shape == after.shape and before.dtype == after.dtype
        if before.dtype.kind == "f":
            assert np.abs(before - after).max() <= LOOSE * np.abs(before).max()
        else:
            assert np.array_equal(before, after)


def test_every_tile_has_a_name_that_is_looked_for():
    assert {name for _, name in sizes_by_module()} == set(NAMES)
    for module in MODULES:
        names = vars(importlib.import_module(f"grassmann_sc.{module}"))
        sizes = {name for name in names if re.search("TILE|_AT_A_TIME", name)}
        assert sizes <= set(NAMES)
