"""What the paper compares with, as rows that are tuned as its own are.

Those on videos need clips of frames in order. Gram matrices and distances of all sets
are computed once for all splits, folds and candidates; what is learned is learned on
the training part of a split or fold alone.
"""

import importlib.util
import itertools
import re
from functools import partial

from grassmann_classify.rows import (
    LEARNED,
    ROWS,
    Method,
    Nearest,
    Row,
    estimator_of,
    methods,
    of_learned,
    row_named,
)
from grassmann_classify.settings import MOST_P
from grassmann_classify.words import meant, slug
from grassmann_sc import kernels, tuning
from grassmann_sc.baselines import hulls
from grassmann_sc.baselines.estimators import (
    CSLDS,
    DCC,
    DFS,
    GDA,
    GGDA,
    ISC,
    LDS,
    MSM,
    TCCA,
    DLPegasos,
    LogEuclideanSC,
    ProductManifold,
)

REG = [1e-4, 1e-3, 1e-2, 1e-1]  # in units of the mean diagonal
# of codes in tangent spaces, in units of lam_max: they choose smaller ones than gSC
TANGENT_LAM = [0.003, 0.01, 0.03, 0.1, 0.3, 0.6]
SHARES = [0.8, 0.9, 0.95, 0.98]  # of the variance of a set that its hull keeps
BOUNDS = [0.2, 0.5, 1.0]  # of the coefficients of a convex hull
# gamma of KMSM, KCMSM and KOMSM, in units of the median rule's
WIDTHS = [0.25, 1.0, 4.0]
KEEP = [0.5, 0.7, 0.9]  # of the directions, for the generalised difference subspace
MANY_ROWS = 1000  # from which a kernel's feature space is that of landmarks
LANDMARKS = 300, 2000  # at least, at most
STATES = [3, 5, 8]  # of linear dynamical systems
COMPRESSION = 5.0  # of CS-LDS
RADII = [(1, 2), (1, 2, 3, 4)]  # of the cubes of DFS
CELL = 8  # pixels a side of a cell of HOG
USUAL_RANKS = [2, 4, None]  # of the factors of PM
CORRELATIONS = [3, 5]  # of each mode of TCCA
IN_KERNEL = MSM(kernel="rbf", gamma_scale="median", random_state=0)
EVERY_ROW = ROWS | {
    "GDA": Row(
        GDA("precomputed"), "discriminant analysis of subspaces (Grassmann kernel)"
    ),
    "GGDA": Row(
        GGDA("precomputed"), "discriminant analysis that keeps neighbours together"
    ),
    "kernel: GDA": Row(
        GDA("precomputed"), "discriminant analysis, in the space of a kernel of frames"
    ),
    "DCC": Row(DCC(), "canonical correlations, after a map that tells classes apart"),
    "iSC": Row(ISC(), "sparse coding in the tangent space of each new clip's subspace"),
    "lE-SC": Row(
        LogEuclideanSC(lam_scale="max"),
        "sparse coding in the tangent space of one fixed subspace",
    ),
    "lE-SC-adaptive": Row(
        LogEuclideanSC("mean", lam_scale="max"),
        "lE-SC in the tangent space of the clips' mean",
    ),
    "affine hulls": Row(Nearest(), "distance of the affine hulls of frames (KAHM)"),
    "convex hulls": Row(Nearest(), "distance of the convex hulls of frames (KAHM)"),
    "kernel: affine hulls": Row(
        Nearest(), "distance of affine hulls, in the space of a kernel of frames"
    ),
    "MSM": Row(MSM(), "mutual subspace method: the least angles of subspaces"),
    "CMSM": Row(MSM(), "MSM on the differences of the classes' subspaces"),
    "OMSM": Row(
        MSM(whiten=True), "MSM after a map that makes the classes' subspaces orthogonal"
    ),
    "KMSM": Row(
        IN_KERNEL, "least angles of subspaces, in the space of a kernel of frames"
    ),
    "KCMSM": Row(IN_KERNEL, "CMSM, in the space of a kernel of frames"),
    "KOMSM": Row(IN_KERNEL, "OMSM, in the space of a kernel of frames"),
    "PM": Row(
        ProductManifold(),
        "a clip as a point on a product of manifolds, of its tensor's factors",
    ),
    "TCCA": Row(TCCA(), "canonical correlations of the clips as tensors"),
    "LDS": Row(LDS(), "a clip as a linear dynamical system (Martin distance)"),
    "CS-LDS": Row(
        CSLDS(compression=COMPRESSION), "LDS from few random measurements of each frame"
    ),
    "DFS": Row(DFS(), "dynamic fractal spectrum: textures that move"),
    "DL-PEGASOS": Row(DLPegasos(cell=CELL), "LDS of patches over a learned dictionary"),
}


def every_method(bank, smallest, settings):
    """All methods and baselines that settings allow on the sets of a Bank.

    smallest: the least number of training sets in a fold.
    """
    yield from methods(bank, smallest, settings)
    if settings.baselines or settings.methods:
        yield from baselines(bank, smallest, settings)
        yield from video_baselines(bank)


def names_of_rows(settings, rows=EVERY_ROW):
    """The names of the rows that settings can name, on whatever data."""
    with_kernels = settings.kernels is not False  # None: as memory and time allow
    return [
        of_learned(key, settings.atoms)
        for key in rows
        if (settings.atoms or not key.endswith(LEARNED))
        and (with_kernels or not is_in_kernel(key))
    ]


def is_in_kernel(name):
    """Does the row of this name need a kernel's space?"""
    return name.startswith(("kernel:", "kg", "KMSM", "KCMSM", "KOMSM"))


def meaning(name):
    """What a row does, in a line.

    >>> meaning("gLC, 40 learned atoms")
    'gLC over subspaces that are learned; ridge regression of the codes'
    """
    return row_named(name, EVERY_ROW).words


def is_named(name, first_words):
    """Does a row begin with one of these words?

    Or, where no row begins so, what stands behind its colon. Without words all do.

    >>> is_named("gSC", ["gsc"]), is_named("kernel: SVM", ["svm"]), is_named("GDA", ["g"])
    (True, True, False)
    """
    return first_words is None or any(
        begins(name, first)
        or (
            begins(name.partition(": ")[2], first)
            and not any(begins(other, first) for other in EVERY_ROW)
        )
        for first in first_words
    )


def begins(name, first):
    """Does a name begin with these words?"""
    return f"{slug(name)}_".startswith(f"{slug(first)}_")


def check_methods(first_words, names):
    """ValueError unless a row of these names begins with each of the words."""
    for first in first_words or []:
        if not any(is_named(name, [first]) for name in names):
            likely = [name.lower() for name in names]
            likely += [re.split("[ :,]", name)[0] for name in likely]
            hint = meant(first.lower(), likely)
            if any(is_named(name, [first]) for name in EVERY_ROW):
                hint = ", which new clips, or other options, leave out"
            raise ValueError(
                f"--methods must hold the first words of rows, got {first!r}{hint}; the "
                f"rows are: {'; '.join(names)}"
            )


def row(name, reads, grid, predict=None, **options):
    """The Method of a baseline, with these options of its estimator."""
    estimator = estimator_of(name, EVERY_ROW).set_params(**options)
    return Method(name, reads, estimator, grid, predict, "each")


def baselines(bank, smallest, settings):
    """The Methods on sets; smallest: the least number of training sets in a fold."""
    discriminant = discriminant_predictions(
        EVERY_ROW["GDA"].estimator, "rule", ["neighbor", "mean"]
    )
    embedding = discriminant_predictions(
        EVERY_ROW["GGDA"].estimator, "beta", [0.1, 1.0]
    )
    by_rows = tuning.nearest_predictions
    in_kernels = partial(affine_hulls, gaussian=True)
    # of the span of a fold's sets, or fewer
    most = min(smallest, bank.collection.X.shape[1])
    tried = dimensions_of(bank)
    dimensions = [m for m in (tried[-1] + 1, most // 2) if tried[-1] < m <= most]
    p = sorted({tried[0], tried[len(tried) // 2], tried[-1]})
    tangent = {"lam": TANGENT_LAM[::2], "positive": [False, True]}
    mutual = {"p": p, "reference": ["class", "set"]}
    angles = {"n_angles": [1, None]}
    in_kernel = {"p": p, "gamma": WIDTHS}  # by class: the nearest subspaces have a row
    sets = bank.collection.sets or []
    few = None
    if sum(map(len, sets)) > MANY_ROWS:
        # twice the directions of all classes, which KOMSM makes orthogonal
        n_directions = p[-1] * len({*bank.collection.label.tolist()})
        few = min(max(LANDMARKS[0], 2 * n_directions), LANDMARKS[1])
    rows = [
        row("GDA", "gram", {}, discriminant),
        row("GGDA", "gram", {}, embedding),
        row("kernel: GDA", "kernels", {}, discriminant),
        row("DCC", "subspaces", {"p": p, "reg": REG, "dimension": [None, *dimensions]}),
        # iSC takes the logarithms of all pairs, and lE-SC-adaptive the mean, anew for
        # each p
        row("iSC", "subspaces", {"lam": TANGENT_LAM[1::2]}),
        row("lE-SC", "subspaces", {"p": p, **tangent}),
        row("lE-SC-adaptive", "subspaces", tangent),
        row("affine hulls", affine_hulls, {"share": SHARES}, by_rows),
        row("convex hulls", convex_hulls, {"bound": BOUNDS}, by_rows),
        row("kernel: affine hulls", in_kernels, {"share": SHARES}, by_rows),
        row("MSM", "sets", mutual | angles),
        row("CMSM", "sets", mutual | {"keep": KEEP}),
        row("OMSM", "sets", mutual | angles),
        row("KMSM", "sets", in_kernel, n_landmarks=few),
        row("KCMSM", "sets", in_kernel | {"keep": KEEP[1:]}, n_landmarks=few),
        row("KOMSM", "sets", in_kernel, n_landmarks=few, whiten=True),
    ]
    return [
        method
        for method in rows
        if (settings.kernels or not is_in_kernel(method.name))
        and (sets or method.reads in ("gram", "kernels", "subspaces"))
    ]


def video_baselines(bank):
    """The Methods on videos, if bank.videos holds any, that have something to try."""
    videos = bank.videos
    if videos is None:
        return []
    shortest = min(map(len, videos))
    height, width = videos[0].shape[1:]
    most = min(dimensions_of(bank)[-1], shortest - 2)
    states = [n for n in STATES if n <= most]
    has_cells = min(height, width) >= CELL and importlib.util.find_spec("skimage")
    are_alike = all(len(clip) == shortest for clip in videos)
    size = None if are_alike else (shortest, height, width)
    ranks = [p for p in CORRELATIONS if p <= min(shortest, height, width)]
    radii = [r for r in RADII if 2 * max(r) < min(shortest, height, width)]
    dynamics = {"n_states": states, "rule": ["nearest", "svm"]}
    patches = {"n_states": states if has_cells else [], "lam": [1e-3, 1e-1]}
    rows = [
        row("PM", "videos", {"p": USUAL_RANKS}, size=size),
        row("TCCA", "videos", {"p": ranks, "n_features": [5, 15]}, size=size),
        row("LDS", "videos", dynamics),
        row("CS-LDS", "videos", dynamics),
        row("DFS", "videos", {"radii": radii, "C": [1.0, 100.0]}),
        row("DL-PEGASOS", "videos", patches),
    ]
    return [method for method in rows if all(method.grid.values())]


def dimensions_of(bank):
    """The p that settings name, up to those of the sets as they were read, or all."""
    rank = bank.collection.X.shape[2]
    named = sorted(p for p in bank.p or [] if p <= rank)
    return named or tuning.dimensions(min(rank, MOST_P))


def discriminant_predictions(estimator, name, values):
    """predict for tuning.Search: labels by GDA or GGDA, for each reg and each value.

    name, values: a parameter and its values. All values of "rule" use the same fits.
    """

    def predict(K_dd, K_xd, y):
        answers = {}
        fits = []
        for value in values:
            if name != "rule" or not fits:
                fits = [*estimator.set_params(**{name: value}).each_reg(K_dd, y, REG)]
            for fitted in fits:
                labels = fitted.set_params(**{name: value}).predict(K_xd)
                answers[("reg", fitted.reg), (name, value)] = labels
        return answers

    return predict


def remembered(bank, recipe, distances, **options):
    """(Name, candidate) by distances of all sets, which are computed once."""
    name = ("recipe", recipe), *options.items()
    if name not in bank.made:
        try:
            bank.made[name] = tuning.Gram(-distances(bank.sets(recipe), **options))
        except ValueError as error:  # of sets that are too short for these options
            bank.made[name] = tuning.Absent(str(error))
    return name, bank.made[name]


def affine_hulls(bank, train, recipe, gaussian=False):
    """{candidate: -distances} of the affine hulls of all sets, or of their images."""
    some_kernels = [None]
    if gaussian:
        sets = bank.sets(recipe)
        gammas = kernels.gamma_grid([sets[i] for i in train], 3).tolist()
        some_kernels = [*map(kernels.rbf, gammas)]
    distances = hulls.affine_hull_distances
    return dict(
        remembered(bank, recipe, distances, kernel=kernel, share=share)
        for kernel, share in itertools.product(some_kernels, SHARES)
    )


def convex_hulls(bank, train, recipe):
    """{candidate: -distances} of the bounded convex hulls of all sets."""
    distances = hulls.convex_hull_distances
    return dict(remembered(bank, recipe, distances, bound=bound) for bound in BOUNDS)
