"""What the kinds of the campaign share: a valid small call of every public name, and what came back
as plain arrays.

A call works in the folder that it finds itself in: paths are relative.
"""

import copy
import functools
import importlib
import inspect
import traceback
import zlib
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import scipy.sparse

from benchmarks.common import ROOT

MODULES = ["grassmann_sc", "kernels", "learn", "discriminative", "files", "subspaces", "frames",
           "intrinsic", "comparators", "comparators_sets", "comparators_hulls",
           "comparators_learning", "projected", "tuning", "plots", "estimators"]
REQUIRED = inspect.Parameter.empty


class Done(Exception):
    """There is no such case: all have been tried."""


class Failed(Exception):
    """A case failed; cause: what it has in common with others."""

    def __init__(self, message, cause=None):
        super().__init__(message)
        self.cause = cause or message.partition(":")[0]


def rng_of(kind, seed, case):
    return np.random.default_rng([seed, zlib.crc32(kind.encode()), case])


def place_of(error):
    """file:line of the innermost frame of all, and of the project if that is another."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if is_ours(frame.filename)] or frames[:1]
    places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in (*ours[-1:], *frames[-1:])]
    return " in ".join(reversed(dict.fromkeys(places)))


def is_ours(filename):
    """Does a frame of this file belong to the toolkit or its examples?"""
    path = Path(filename)
    return path.parent in (ROOT, ROOT / "examples")


# ---------------------------------------------------------------------------- what a call gives


def leaves(value):
    """The numbers and texts in a result as a list of arrays, in a fixed order."""
    if value is None or callable(value) and not hasattr(value, "__dict__"):
        return []
    if isinstance(value, np.ndarray):
        return [value]
    if scipy.sparse.issparse(value):
        return [value.toarray()]
    if isinstance(value, (bool, int, float, complex, str, np.generic)):
        return [np.asarray(value)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value, key=str) for leaf in leaves(value[key])]
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    if type(value).__module__.startswith(tuple(MODULES)):
        return leaves(vars(value))
    return []


def worst_difference(result, expected):
    """Largest difference of two results relative to the largest number of its array, inf if they
    differ in form."""
    ours = leaves(result)
    theirs = leaves(expected)
    if [leaf.shape for leaf in ours] != [leaf.shape for leaf in theirs]:
        return np.inf
    return max(map(difference_of_arrays, ours, theirs), default=0.0)


def difference_of_arrays(a, b):
    if b.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(a, b) else np.inf
    a = a.astype(float)
    b = b.astype(float)
    apart = ~((a == b) | np.isnan(a) & np.isnan(b))
    if not apart.any():
        return 0.0
    worst = (np.abs(a - b)[apart] / np.abs(b).max()).max()
    return float(worst) if worst < np.inf else np.inf  # NaN too


# ---------------------------------------------------------------------------- calls by name

# parameters: {argument: its default}. An argument of a method is "method.argument".
Call = namedtuple("Call", "name function arguments parameters")


@functools.cache
def all_calls():
    """Every Call, in a fixed order; Failed if a public name has none."""
    d = data()
    calls = []
    for module in MODULES:
        imported = importlib.import_module(
            module if module == "grassmann_sc" else f"grassmann_sc.{module}")
        table = globals()[f"{module}_calls"](d)
        for name in imported.__all__:
            if name not in table:
                raise Failed(f"{module}.{name} has no valid call in benchmarks/campaign_calls.py")
            for steps, arguments in table[name]:
                calls.append(call_of(module, getattr(imported, name), steps, arguments))
    return calls


def call_of(module, thing, steps, arguments):
    if steps is None:
        function = drawn(thing) if module == "plots" else thing
        return Call(f"{module}.{thing.__name__}", function, arguments, parameters_of(thing))
    parameters = parameters_of(thing)
    for step in steps:
        own = parameters_of(getattr(thing, step))
        parameters |= {f"{step}.{name}": value for name, value in own.items() if name != "self"}
    function = functools.partial(run_object, thing, steps)
    return Call(f"{module}.{thing.__name__}.{steps[-1]}", function, arguments, parameters)


def parameters_of(function):
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {name: parameter.default
            for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind not in variable}


def run_object(cls, steps, **arguments):
    """The result of the last of some methods of a new object, its attributes if that is itself."""
    thing = cls(**{name: value for name, value in arguments.items() if "." not in name})
    for step in steps:
        own = {name.partition(".")[2]: value for name, value in arguments.items()
               if name.partition(".")[0] == step}
        result = getattr(thing, step)(**own)
    return vars(thing) if result is thing else result


def drawn(plot):
    """A picture, drawn in full; its images."""
    import matplotlib.pyplot as plt

    def draw(**arguments):
        try:
            ax = plot(**arguments)
            ax.figure.canvas.draw()
            return [np.ma.filled(image.get_array().astype(float), 0) for image in ax.images]
        finally:
            plt.close("all")

    return draw


def run(call, **changes):
    """The result of a call with some arguments changed, on copies of the others."""
    own = {name: value for name, value in call.arguments.items() if name not in changes}
    return call.function(**copy.deepcopy(own), **changes)


@functools.cache
def sound_calls():
    """The calls that give finite results, as all must but those on numbers at the end of the range,
    which may be refused."""
    return [call for call in all_calls() if is_sound(call)]


def is_sound(call):
    try:
        return unfit(run(call)) is None
    except Exception:
        return False


def is_extreme(call):
    """Are there numbers at the end of the range of float64 among the arguments?"""
    peaks = [np.abs(leaf).max(initial=0) for leaf in leaves(call.arguments) if leaf.dtype == float]
    return any(0 < peak < 1e-300 or peak > 1e300 for peak in peaks)


def unfit(result):
    """The first NaN or infinity in a result, or None."""
    for leaf in leaves(result):
        if leaf.dtype.kind in "fc" and not np.isfinite(leaf).all():
            return leaf[~np.isfinite(leaf)][0]
    return None


def plain(*variants):
    """A function's valid calls."""
    return [(None, arguments) for arguments in variants]


def methods(steps, *variants):
    """An object's valid calls: of each of some sequences of methods with its arguments.

    Of a variant's arguments each sequence takes those that belong to its methods.
    """
    return [(names.split(), {name: value for name, value in arguments.items()
                             if "." not in name or name.partition(".")[0] in names.split()})
            for arguments in variants for names in steps]


@functools.cache
def data():
    """Small valid arguments; files in the folder that is the present one."""
    import grassmann_sc as core
    from grassmann_sc import files, kernels, learn

    rng = np.random.default_rng(0)
    d = SimpleNamespace()
    d.X = core.random_subspaces(4, 6, 2, 1)
    d.D = core.random_subspaces(5, 6, 2, 2)
    d.samples = core.random_subspaces(12, 6, 2, 3)
    d.labels = ["a", "b", "a", "b", "c"]
    d.y = ["a", "b", "c"] * 4
    d.K_dd = core.projection_kernel(d.D)
    d.K_xd = core.projection_kernel(d.X, d.D)
    d.K_ss = core.projection_kernel(d.samples)
    d.codes = core.gsc(d.X, d.D, 0.2)
    d.sample_codes = core.gsc(d.samples, d.D, 0.2)
    d.S = d.K_dd + np.eye(5)
    d.sets = [rng.standard_normal((5, 4)) for _ in range(4)]
    d.atom_sets = [rng.standard_normal((4, 4)) for _ in range(5)]
    d.kernel = kernels.rbf(0.1)
    d.bases = [feature_basis(frames, 0.1, 2) for frames in d.sets]
    d.atom_bases = [feature_basis(frames, 0.1, 2) for frames in d.atom_sets]
    d.lift = kernels.Lift(d.kernel, 2)
    d.H = d.D[:4] - d.X @ (d.X.swapaxes(1, 2) @ d.D[:4])
    d.frames = rng.standard_normal((6, 7))
    d.images = rng.integers(0, 256, (6, 12, 12)).astype(float)
    d.C = rng.standard_normal((7, 2))
    np.save("clip.npy", d.images)
    learn.save("dictionary.npz", d.D, lam=0.1, labels=d.labels)
    files.write_arrays("arrays.npz", "thing", {"a": np.arange(3.0)})
    learn.gdl(d.samples, 3, 0.1, n_iter=1, rng=0, checkpoint="checkpoint.npz")
    return d


def feature_basis(frames, gamma, p):
    """Coefficients (n, p) of an orthonormal basis of the frames in the feature space of rbf."""
    square = ((frames[:, None] - frames) ** 2).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-gamma * square))
    return vectors[:, -p:] / np.sqrt(values[-p:])


# ---------------------------------------------------------------------------- the tables


def grassmann_sc_calls(d):
    grams = dict(K_dd=d.K_dd, K_xd=d.K_xd, norm2=2.0)
    many = dict(grams, norm2=np.full(4, 2.0))
    tiny = dict(K_dd=d.K_dd * 1e-320, K_xd=d.K_xd * 1e-320, norm2=2e-320)
    huge = dict(K_dd=d.K_dd * 4e307, K_xd=d.K_xd * 4e307, norm2=8e307)
    coded = dict(X=d.X, D=d.D)
    return {
        "orthonormalize": plain(dict(A=d.X), dict(A=d.C)),
        "random_subspaces": plain(dict(n=3, d=5, p=2, rng=0)),
        "principal_angles": plain(dict(X=d.X, Y=d.D[:4]), dict(X=d.X[0], Y=d.D)),
        "chordal_distance": plain(dict(X=d.X, Y=d.D), dict(X=d.X)),
        "geodesic_distance": plain(dict(X=d.X, Y=d.D), dict(X=d.X)),
        "proj": plain(dict(S=d.S, p=2)),
        "chordal_mean": plain(dict(X=d.X, weights=np.arange(1.0, 5))),
        "projection_kernel": plain(dict(X=d.X, D=d.D), dict(X=d.X)),
        "lam_max": plain(dict(K_xd=d.K_xd)),
        "sparse_codes": plain(dict(grams, lam=0.1, tol=1e-8, max_iter=1000),
                              dict(many, lam=np.array([0.3, 0.1])),
                              dict(grams, lam=0.1, init=d.codes), dict(tiny, lam=0.1e-320),
                              dict(huge, lam=0.1e307), dict(tiny, lam=0.1, lam_scale="max"),
                              dict(huge, lam=0.1, lam_scale="max")),
        "locality_codes": plain(dict(grams, n_neighbors=2), dict(many, n_neighbors=2, reg=1e-6),
                                dict(tiny, n_neighbors=2), dict(huge, n_neighbors=2)),
        "gsc": plain(dict(coded, lam=0.1, tol=1e-8, max_iter=1000),
                     dict(coded, lam=np.array([0.3, 0.1]), init=d.codes)),
        "glc": plain(dict(coded, n_neighbors=2, reg=1e-6)),
        "reconstruct": plain(dict(codes=d.codes, D=d.D)),
        "class_residuals": plain(dict(grams, codes=d.codes, labels=d.labels)),
        "classify": plain(dict(coded, labels=d.labels, lam=0.1, tol=1e-8, max_iter=1000),
                          dict(coded, labels=d.labels, n_neighbors=2, reg=1e-6)),
    }


def kernels_calls(d):
    rows = {"__call__.A": d.frames, "__call__.B": d.frames[:4]}
    coded = dict(sets=d.sets, atom_sets=d.atom_sets, kernel=d.kernel, p=2)
    lift = {"kernel": d.kernel, "p": 2, "n_landmarks": None, "method": "random", "rng": 0,
            "fit.sets": d.sets, "transform.sets": d.atom_sets, "fit_transform.sets": d.sets}
    both = dict(sets=d.sets, bases=d.bases, sets2=d.atom_sets, bases2=d.atom_bases)
    return {
        "linear": methods(["__call__"], rows),
        "polynomial": methods(["__call__"], dict(rows, degree=2, coef0=1.0)),
        "rbf": methods(["__call__"], dict(rows, gamma=0.1)),
        "median_gamma": plain(dict(sets=d.sets)),
        "gamma_grid": plain(dict(sets=d.sets, n=3)),
        "kernel_bases": plain(dict(sets=d.sets, kernel=d.kernel, p=2)),
        "kernel_gram": plain(dict(both, kernel=d.kernel), dict(both, kernel=d.kernel, each_p=True),
                             dict(sets=d.sets, bases=d.bases, kernel=d.kernel)),
        "kgsc": plain(dict(coded, lam=0.1)),
        "kglc": plain(dict(coded, n_neighbors=2)),
        "classify": plain(dict(coded, labels=d.labels, lam=0.1),
                          dict(coded, labels=d.labels, n_neighbors=2)),
        "Lift": methods(["fit transform", "fit_transform"], lift, dict(lift, n_landmarks=12)),
    }


def learn_calls(d):
    learning = dict(lam=0.1, n_iter=2, tol=1e-6, rng=0)
    local = dict(n_neighbors=2, n_iter=2, rng=0)
    online = {"n_atoms": 3, "lam": 0.1, "rng": 0, "partial_fit.X": d.samples, "fit.X": d.samples}
    classes = dict(X=d.samples, y=d.y)
    return {
        "gdl": plain(dict(learning, X=d.samples, n_atoms=3, checkpoint="written.npz"),
                     dict(local, X=d.samples, n_atoms=3),
                     dict(learning, X=d.samples, n_atoms=5, init=d.D),
                     dict(learning, X=d.samples, n_atoms=3, resume="checkpoint.npz")),
        "kgdl": plain(dict(learning, sets=d.sets, n_atoms=2, lift=d.lift)),
        "class_dictionaries": plain(dict(learning, **classes, atoms_per_class=2),
                                    dict(local, **classes, atoms_per_class=dict(a=2, b=2, c=3))),
        "OnlineGDL": methods(["partial_fit", "fit"], online),
        "init_atoms": plain(dict(X=d.samples, n_atoms=3, method="kmeans", rng=0)),
        "update_atoms": plain(dict(X=d.samples, D=d.D, codes=d.sample_codes)),
        "save": plain(dict(path="saved.npz", atoms=d.D, lam=0.1, labels=d.labels)),
        "load": plain(dict(path="dictionary.npz")),
    }


def files_calls(d):
    return {
        "write_whole": plain(dict(path="whole", write=nothing)),
        "write_arrays": plain(dict(path="some.npz", kind="thing", arrays=dict(a=d.X))),
        "read_arrays": plain(dict(path="arrays.npz", kind="thing", dtype_kinds=dict(a="f"),
                                  needed=["a"])),
        "Checkpoint": methods(["write"], {"checkpoint": "states.npz", "resume": None,
                                          "arrays": [d.X], "options": [1, None],
                                          "write.arrays": dict(a=d.X)}),
        "check_path": plain(dict(path="somewhere", name="path")),
    }


def nothing(file):
    file.write(b"nothing")


def subspaces_calls(d):
    video = dict(n_states=2, n_blocks=2)
    return {
        "from_image_set": plain(dict(frames=d.frames, p=2), dict(frames=d.images, p=2)),
        "from_sets": plain(dict(sets=d.sets, p=2), dict(sets=np.stack(d.sets), p=2)),
        "from_video": plain(dict(video, frames=d.frames)),
        "from_videos": plain(dict(video, videos=d.sets)),
        "block_hankel": plain(dict(frames=d.frames, n_blocks=2)),
        "arma": plain(dict(frames=d.frames, n_states=2)),
        "observability": plain(dict(A=d.C[:2], C=d.C, n_blocks=2)),
    }


def frames_calls(d):
    return {
        "read_frames": plain(dict(path="clip.npy"), dict(path="clip.npy", size=(6, 5))),
        "describe": plain(dict(frames=d.images, kind="raw")),
        "raw": plain(dict(frames=d.images)),
        "hog": plain(dict(frames=d.images, orientations=4, pixels_per_cell=(4, 4),
                          cells_per_block=(1, 1))),
        "lbp": plain(dict(frames=d.images, n_points=4, radius=1, grid=(1, 2), method="uniform")),
        "lbp_top": plain(dict(frames=d.images, length=4, step=1, radii=(1, 1, 1))),
        "gait_energy_image": plain(dict(silhouettes=d.images > 200, size=(8, 8)),
                                   dict(silhouettes=d.images > 200, align=False)),
    }


def intrinsic_calls(d):
    return {
        "exp_map": plain(dict(X=d.X, H=d.H)),
        "log_map": plain(dict(X=d.X, Y=d.D[:4]), dict(X=d.X[0], Y=d.D)),
        "log_adjoint": plain(dict(X=d.X, Y=d.D[:4], W=d.H)),
        "geodesic": plain(dict(X=d.X, Y=d.D[:4], t=0.3)),
        "karcher_mean": plain(dict(X=d.X, weights=np.arange(1.0, 5), tol=1e-12, max_iter=100)),
    }


def comparators_calls(d):
    coded = dict(X=d.X, D=d.D)
    return {
        "tangent_grams": plain(dict(coded, base=d.X[0]), dict(coded, base="mean")),
        "log_euclidean_codes": plain(dict(coded, lam=0.1, base=d.X[0])),
        "log_euclidean_classify": plain(dict(coded, codes=d.codes, labels=d.labels)),
        "intrinsic_codes": plain(dict(coded, lam=0.1, tol=1e-9, max_iter=100)),
        "intrinsic_classify": plain(dict(coded, codes=d.codes, labels=d.labels)),
    }


def discriminative_calls(d):
    classes = dict(X=d.samples, y=d.y, atoms_per_class=2, n_iter=2, tol=1e-5, rng=0)
    return {
        "discriminative_atoms": plain(classes, dict(classes, beta=3.0)),
        "ridge_residuals": plain(dict(X=d.X, D=d.D, labels=d.labels, ridge=0.1)),
    }


def comparators_sets_calls(d):
    pair = dict(X=d.X, D=d.D)
    classes = dict(labels=d.y)
    return {
        "correlation_kernel": plain(dict(pair, n_angles=1)),
        "binet_cauchy_kernel": plain(pair),
        "mutual_similarity": plain(dict(pair, n_angles=2)),
        "difference_subspace": plain(dict(D=d.D, keep=0.5)),
        "transformed_bases": plain(dict(X=d.X, T=np.eye(6)[:, :3])),
        "dcc": plain(dict(classes, X=d.samples, dimension=4, n_between=2, n_iter=2)),
        "gda": plain(dict(classes, K=d.K_ss, n_components=2, reg=1e-3)),
        "ggda": plain(dict(classes, K=d.K_ss, n_within=2, n_between=2, beta=1.0, reg=1e-3)),
    }


def comparators_hulls_calls(d):
    sets = dict(sets=d.sets, sets2=d.atom_sets)
    return {
        "affine_hull_distances": plain(dict(sets, dimension=2), dict(sets, share=0.9),
                                       dict(sets, share=0.9, kernel=d.kernel)),
        "convex_hull_distances": plain(dict(sets, bound=0.8, tol=1e-10, max_iter=1000)),
    }


def comparators_learning_calls(d):
    learning = dict(X=d.samples, n_atoms=2, lam=0.1, n_iter=2, tol=1e-6, rng=0)
    return {
        "log_euclidean_dictionary": plain(dict(learning, base=d.X[0])),
        "intrinsic_dictionary": plain(learning),
    }


def projected_calls(d):
    coded = dict(X=d.X, D=d.D)
    return {
        "projected_codes": plain(dict(coded, lam=0.3, n_neighbors=2, least_gap=1e-3, tol=1e-9,
                                      max_iter=100)),
        "projected_losses": plain(dict(coded, codes=d.codes)),
    }


def tuning_calls(d):
    folds = [(np.arange(6), np.arange(6, 12)), (np.arange(6, 12), np.arange(6))]
    asked = {"y": d.y, "folds": folds, "predict": constant_prediction,
             "choose.grams": {("linear", 1): d.K_ss}}
    grams = dict(K_dd=d.K_dd, K_xd=d.K_xd)
    return {
        "Search": methods(["choose"], asked),
        "alike": plain(dict(shares=dict(a=np.array([1.0, 0.5]), b=np.array([0.5, 0.9])), within=1)),
        "vote": plain(dict(labels=np.array([d.labels, d.labels[::-1]]))),
        "dimensions": plain(dict(p_max=9, most=4)),
        "sparse_predictions": plain(dict(lams=[0.1, 0.2], tol=1e-4)),
        "local_predictions": plain(dict(n_neighbors=[2, 3])),
        "nearest_predictions": plain(dict(grams, y=d.labels)),
        "corrected_t_test": plain(dict(differences=np.array([1.0, 2, 0]), ratio=0.5)),
    }


def constant_prediction(K_dd, K_xd, y):
    """predict for tuning.Search."""
    return {(): np.full(len(K_xd), y[0])}


def plots_calls(d):
    return {
        "plot_reliability": plain(dict(confidence=np.array([0.2, 0.9]), right=np.array([0.0, 1]),
                                       n_bins=5)),
        "plot_atoms": plain(dict(D=d.D, image_shape=(3, 2), n_directions=2, labels=d.labels)),
        "plot_principal_angles": plain(dict(X=d.X[0], Y=d.X[1]), dict(X=d.D, labels=d.labels)),
        "plot_angles_pair": plain(dict(X=d.X[0], Y=d.X[1], names=["a", "b"])),
        "plot_sparsity": plain(dict(K_dd=d.K_dd, K_xd=d.K_xd, lams=np.array([0.1, 0.5]), norm2=2.0,
                                    lam_scale="max")),
        "plot_gram": plain(dict(K=d.K_dd, labels=d.labels)),
        "plot_confusion": plain(dict(truth=d.labels, predicted=d.labels[::-1])),
        "plot_map": plain(dict(K=d.K_dd, labels=d.labels)),
        "plot_codes": plain(dict(codes=d.sample_codes, labels=d.y, atom_labels=d.labels)),
        "plot_convergence": plain(dict(costs=np.array([3.0, 2, 1]))),
    }


def estimators_calls(d):
    fit = {"fit.X": d.samples}
    labelled = {"fit.X": d.samples, "fit.y": d.y}
    queries = {f"{step}.X": d.X for step in ("transform", "predict", "predict_proba", "distances",
                                             "kneighbors", "decision_function")}
    sets = {"fit.X": d.sets, "fit_transform.X": d.sets, "transform.X": d.atom_sets}
    grams = {"kernel": "precomputed", "fit.X": d.K_ss, "fit.y": d.y, "predict.X": d.K_ss[:3]}
    learning = {"n_atoms": 3, "n_iter": 2, "tol": 1e-6, "rng": 0, "fit_transform.X": d.samples}
    return {
        "ImageSetSubspaces": methods(["fit transform", "fit_transform"], dict(sets, p=2)),
        "BlockHankel": methods(["fit transform"], dict(sets, n_blocks=2)),
        "VideoSubspaces": methods(["fit transform"], dict(sets, n_states=2, n_blocks=2)),
        "NearestSubspace": methods(["fit predict", "fit predict_proba", "fit distances",
                                    "fit kneighbors"], dict(labelled, **queries, n_neighbors=2)),
        "CodingClassifier": [*methods(["fit predict", "fit predict_proba", "fit transform",
                                       "fit decision_function"],
                                      dict(labelled, **queries, lam=0.1)),
                             *methods(["fit predict"], dict(grams, lam=0.1),
                                      dict(labelled, **queries, coding="local", n_neighbors=2))],
        "GrassmannDictionary": methods(["fit transform", "fit_transform"],
                                       dict(learning, **fit, **queries, lam=0.1),
                                       dict(learning, **fit, **queries, coding="local",
                                            n_neighbors=2)),
        "ProjectionKernel": methods(["fit transform", "fit_transform"],
                                    dict(fit, **queries, **{"fit_transform.X": d.samples})),
        "KernelLift": methods(["fit transform"], dict(sets, gamma=0.1, p=2),
                              dict(sets, kernel="polynomial", degree=2, coef0=1.0, p=2)),
        "DiscriminativeDictionary": methods(
            ["fit predict", "fit predict_proba", "fit decision_function"],
            dict(labelled, **queries, atoms_per_class=1, n_iter=2, rng=0)),
        "TangentDictionary": methods(["fit transform"],
                                     dict(fit, **queries, n_atoms=2, n_iter=2, rng=0)),
        "OnlineGrassmannDictionary": methods(
            ["fit transform", "partial_fit transform"],
            dict(fit, **queries, n_atoms=3, lam=0.1, rng=0, **{"partial_fit.X": d.samples})),
        **clips_calls(d),
        **rivals_calls(labelled, queries, dict(sets, **{"fit.y": ["a", "b", "a", "b"],
                                                       "predict.X": d.atom_sets})),
    }


def clips_calls(d):
    """The estimators on raw frames, and the rivals on videos."""
    clips = np.stack([d.images[:, ::-1], d.images, d.images[::-1], d.images[:, :, ::-1]])
    fit = {"fit.X": clips, "transform.X": clips[:2]}
    labelled = {"fit.X": clips, "fit.y": ["a", "b", "a", "b"], "predict.X": clips[:2]}
    described = methods(["fit transform"], fit)
    return {
        "HOG": methods(["fit transform"], dict(fit, orientations=4, pixels_per_cell=(4, 4),
                                               cells_per_block=(1, 1))),
        "LBP": described,
        "LBPTOP": methods(["fit transform"], dict(fit, length=4)),
        "GaitEnergyImage": described,
        "LDS": methods(["fit predict"], dict(labelled, n_states=2)),
        "CSLDS": methods(["fit predict"], dict(labelled, n_states=2, compression=2.0)),
        "ProductManifold": methods(["fit predict"], dict(labelled, p=3)),
        "TCCA": methods(["fit predict"], dict(labelled, p=3, n_features=2)),
        "DFS": methods(["fit predict"], dict(labelled, n_levels=3, radii=(1, 2))),
        "DLPegasos": methods(["fit predict"], dict(labelled, n_states=2, cell=4)),
    }


def rivals_calls(labelled, queries, sets):
    steps = ["fit predict", "fit decision_function"]
    return {
        "GDA": methods([*steps, "fit transform"], dict(labelled, **queries, n_components=2)),
        "GGDA": methods([*steps, "fit transform"], dict(labelled, **queries, n_within=2)),
        "DCC": methods(steps, dict(labelled, **queries, dimension=4, n_iter=2)),
        "MSM": methods(["fit predict"], dict(sets, p=2), dict(sets, p=2, keep=0.9)),
        "KAHM": methods(["fit predict"], dict(sets, dimension=1), dict(sets, hull="convex")),
    }
