"""What the paper compares with, as rows that are tuned as its own are.

Those on videos need clips of frames in order. Gram matrices and distances of all sets
are computed once for all splits, folds and candidates; what is learned is learned on
the training part of a split or fold alone.
"""

import importlib.util
from functools import partial

from grassmann_classify.rows import (
    ESTIMATORS,
    Method,
    Nearest,
    check_asked,
    estimator_of,
    methods,
    tried_first,
)
from grassmann_classify.words import plural
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
SHARES = [0.8, 0.9, 0.95, 0.98]  # of the variance of a set that its hull keeps
BOUNDS = [0.2, 0.5, 1.0]  # of the coefficients of a convex hull
# gamma of KMSM, KCMSM and KOMSM, in units of the median rule's
WIDTHS = [0.25, 1.0, 4.0]
KEEP = [0.5, 0.7, 0.9]  # of the directions, for the generalised difference subspace
MANY_ROWS = 1000  # from which a kernel's feature space is that of landmarks
LANDMARKS = 300
STATES = [3, 5, 8]  # of linear dynamical systems
COMPRESSION = 5.0  # of CS-LDS
RADII = [(1, 2), (1, 2, 3, 4)]  # of the cubes of DFS
CELL = 8  # pixels a side of a cell of HOG
USUAL_RANKS = [2, 4, None]  # of the factors of PM
CORRELATIONS = [3, 5]  # of each mode of TCCA
IN_KERNEL = MSM(kernel="rbf", gamma_scale="median", random_state=0)
EVERY_ESTIMATOR = ESTIMATORS | {
    "GDA": GDA("precomputed"),
    "GGDA": GGDA("precomputed"),
    "GDA in a kernel's space": GDA("precomputed"),
    "DCC": DCC(),
    "iSC": ISC(),
    "lE-SC": LogEuclideanSC(lam_scale="max"),
    "lE-SC-adaptive": LogEuclideanSC("mean", lam_scale="max"),
    "KAHM, affine hulls": Nearest(),
    "KAHM, convex hulls": Nearest(),
    "KAHM, affine hulls in a kernel's space": Nearest(),
    "MSM": MSM(),
    "CMSM": MSM(),
    "OMSM": MSM(whiten=True),
    "KMSM": IN_KERNEL,
    "KCMSM": IN_KERNEL,
    "KOMSM": IN_KERNEL,
    "PM": ProductManifold(),
    "TCCA": TCCA(),
    "LDS": LDS(),
    "CS-LDS": CSLDS(compression=COMPRESSION),
    "DFS": DFS(),
    "DL-PEGASOS": DLPegasos(cell=CELL),
}


def every_method(inputs):
    """methods_of for these inputs: all methods and baselines that settings ask for."""
    return partial(_every_method, inputs)


def _every_method(inputs, n_train, smallest, settings):
    if inputs.collection.sets is not None:
        yield from tried_first(settings)
    yield from methods(n_train, smallest, settings)
    if settings.baselines or settings.methods:
        yield from baselines(inputs, smallest, settings)
        yield from video_baselines(inputs)


def names_of_rows(settings):
    """The names of all rows that settings can ask for, on whatever data."""
    names = [name for name in EVERY_ESTIMATOR if "learned atoms" not in name]
    made = methods(1, settings.atoms, settings)
    names += [row.name for row in made if "learned atoms" in row.name]
    all_of_them = settings.kernels is not False  # None: as memory and time allow
    return [name for name in names if all_of_them or not is_in_kernel(name)]


def check_methods(settings):
    """ValueError unless each of settings.methods begins the name of a row."""
    check_asked(settings.methods, names_of_rows(settings))


def is_in_kernel(name):
    """Does the row of this name need a kernel's space?"""
    return "a kernel's" in name or name.startswith(("kg", "KMSM", "KCMSM", "KOMSM"))


def baselines(inputs, smallest, settings):
    """The Methods on sets; smallest: the least number of training sets in a fold."""

    def row(name, reads, grid, predict=None, **options):
        made = estimator_of(name, EVERY_ESTIMATOR).set_params(**options)
        return Method(name, reads, made, grid, predict, "each")

    discriminant = discriminant_predictions(
        EVERY_ESTIMATOR["GDA"], "rule", ["neighbor", "mean"]
    )
    embedding = discriminant_predictions(EVERY_ESTIMATOR["GGDA"], "beta", [0.1, 1.0])
    yield row("GDA", "gram", {}, discriminant)
    yield row("GGDA", "gram", {}, embedding)
    if settings.kernels:
        yield row("GDA in a kernel's space", "kernels", {}, discriminant)
    # of the span of a fold's sets, or fewer
    most = min(smallest, inputs.collection.X.shape[1])
    tried = inputs.dimensions(inputs.collection.X.shape[2])
    dimensions = [m for m in (tried[-1] + 1, most // 2) if tried[-1] < m <= most]
    p = sorted({tried[0], tried[len(tried) // 2], tried[-1]})
    grid = {"p": p, "reg": REG, "dimension": [None, *dimensions]}
    yield row("DCC", "subspaces", grid)
    # at the recipe and p of gSC: iSC takes the logarithms of all pairs for each lam
    yield row("iSC", "subspaces", {"lam": settings.lam[1::2] or settings.lam})
    grid = {"lam": settings.lam, "positive": [False, True]}
    yield row("lE-SC", "subspaces", grid)
    yield row("lE-SC-adaptive", "subspaces", grid)
    sets = inputs.collection.sets
    if sets is None:
        return
    by_rows = tuning.nearest_predictions
    shares = {"share": SHARES}
    yield row("KAHM, affine hulls", affine_hulls, shares, by_rows)
    yield row("KAHM, convex hulls", convex_hulls, {"bound": BOUNDS}, by_rows)
    if settings.kernels:
        in_kernels = partial(affine_hulls, gaussian=True)
        name = "KAHM, affine hulls in a kernel's space"
        yield row(name, in_kernels, shares, by_rows)
    grid = {"p": p, "reference": ["class", "set"], "n_angles": [1, None]}
    yield row("MSM", "sets", grid)
    constrained = {"p": p, "reference": ["class", "set"], "keep": KEEP}
    yield row("CMSM", "sets", constrained)
    yield row("OMSM", "sets", grid)
    if settings.kernels:
        few = LANDMARKS if sum(map(len, sets)) > MANY_ROWS else None
        grid = {"p": p, "gamma": WIDTHS}  # by class: the nearest subspaces have a row
        yield row("KMSM", "sets", grid, n_landmarks=few)
        yield row("KCMSM", "sets", {**grid, "keep": KEEP[1:]}, n_landmarks=few)
        yield row("KOMSM", "sets", grid, n_landmarks=few, whiten=True)


def video_baselines(inputs):
    """The Methods on videos, if inputs.videos holds any."""
    videos = inputs.videos
    if videos is None:
        return

    def row(name, grid, **options):
        made = estimator_of(name, EVERY_ESTIMATOR).set_params(**options)
        return Method(name, "videos", made, grid)

    shortest = min(map(len, videos))
    height, width = videos[0].shape[1:]
    most = min(inputs.dimensions(inputs.collection.X.shape[2])[-1], shortest - 2)
    states = [n for n in STATES if n <= most]
    size = None
    if any(len(clip) != shortest for clip in videos):
        size = shortest, height, width
    yield row("PM", {"p": USUAL_RANKS}, size=size)
    ranks = [p for p in CORRELATIONS if p <= min(shortest, height, width)]
    if ranks:
        yield row("TCCA", {"p": ranks, "n_features": [5, 15]}, size=size)
    if states:
        dynamics = {"n_states": states, "rule": ["nearest", "svm"]}
        yield row("LDS", dynamics)
        yield row("CS-LDS", dynamics)
    radii = [r for r in RADII if 2 * max(r) < min(shortest, height, width)]
    if radii:
        yield row("DFS", {"radii": radii, "C": [1.0, 100.0]})
    if states and min(height, width) >= CELL and importlib.util.find_spec("skimage"):
        yield row("DL-PEGASOS", {"n_states": states, "lam": [1e-3, 1e-1]})


def discriminant_predictions(estimator, name, values):
    """predict for tuning.Search: labels by GDA or GGDA, for each reg and each value.

    name, values: a parameter and its values. All values of "rule" use the same fits.
    """

    def predict(K_dd, K_xd, y):
        found = {}
        fits = []
        for value in values:
            if name != "rule" or not fits:
                fits = [*estimator.set_params(**{name: value}).each_reg(K_dd, y, REG)]
            for fitted in fits:
                labels = fitted.set_params(**{name: value}).predict(K_xd)
                found[("reg", fitted.reg), (name, value)] = labels
        return found

    return predict


def affine_hulls(inputs, train, recipe, gaussian=False):
    """{candidate: -distances} of the affine hulls of all sets, or of their images."""
    sets = inputs.sets(recipe)
    training = [sets[i] for i in train]
    found = {}
    for gamma in kernels.gamma_grid(training, 3).tolist() if gaussian else [None]:
        kernel = gamma and kernels.rbf(gamma)
        for share in SHARES:
            name = ("recipe", recipe), ("kernel", kernel), ("share", share)
            if name not in inputs.hulls:
                inputs.hulls[name] = -hulls.affine_hull_distances(
                    sets, share=share, kernel=kernel
                )
            found[name] = inputs.hulls[name]
    return found


def convex_hulls(inputs, train, recipe):
    """{candidate: -distances} of the bounded convex hulls of all sets."""
    sets = inputs.sets(recipe)
    shortest = min(map(len, sets))
    found = {}
    for bound in BOUNDS:
        name = ("recipe", recipe), ("bound", bound)
        if bound * shortest < 1:
            why = (
                f"a set has {plural(shortest, 'frame')}, of which a bound of {bound:g} "
                f"needs {1 / bound:g}"
            )
            found[name] = tuning.Absent(why)
            continue
        if name not in inputs.hulls:
            inputs.hulls[name] = -hulls.convex_hull_distances(sets, bound=bound)
        found[name] = inputs.hulls[name]
    return found
