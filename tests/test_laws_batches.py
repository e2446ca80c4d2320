"""What a query gets, a code, coordinates or a label, is what it
gets alone, in any batch, in any order. Where atoms are repeated, what they get together.
"""

import importlib

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_sc import kernels, projected, random_subspaces
from grassmann_sc.baselines import tangent
from grassmann_sc.baselines.estimators import OnSets, OnVideos
from grassmann_sc.strategies import rotation
from oracles import LOOSE, error

# right angles, gaps that close
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

# d, p and N of atoms, and what every atom of the second half is, or that all are one
PROBLEMS = {
    "few atoms": (8, 3, 10, "another"),
    "repeated atoms": (8, 3, 10, "repeated"),
    "atoms repeated in other bases": (5, 3, 14, "rotated"),
    "repeated lines": (3, 1, 20, "repeated"),
    "N > d (d + 1) / 2": (4, 3, 24, "another"),
    "N > p (d - p)": (10, 3, 60, "another"),
    "p = d": (3, 3, 6, "one"),
}
each_dtype = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def distinct(N, half):
    """Which of the subspaces that differ each of N atoms is."""
    atoms = np.arange(N)
    return 0 * atoms if half == "one" else atoms % (N if half == "another" else N // 2)


def problem(name, dtype, n=4):
    """Queries (n, d, p), of which the first are atoms, atoms (N, d, p), and labels
    (N,), the same for atoms that are repeated: between these rounding decides.
    """
    d, p, N, half = PROBLEMS[name]
    rng = np.random.default_rng(N)
    D = random_subspaces(N, d, p, rng=rng)
    if half in ("repeated", "rotated"):
        D[N // 2 :] = D[: N // 2]
    if half == "rotated":
        D = np.stack([A @ rotation(rng, p) for A in D])
    X = random_subspaces(n, d, p, rng=rng)
    X[:2] = D[:2]
    return X.astype(dtype), D.astype(dtype), distinct(N, half) % 3


def of_distinct(codes, half):
    """Codes in which atoms that are repeated have their coefficients together."""
    which = distinct(codes.shape[1], half)
    return codes @ (which[:, None] == np.unique(which))


def companies(f, X):
    """f(X), and what f gives the same queries one by one, in another order, and in
    parts.
    """
    n = len(X)
    order = np.random.default_rng(0).permutation(n)

    def plural(indices):
        return X[indices] if isinstance(X, np.ndarray) else [X[i] for i in indices]

    yield f(X)
    yield np.concatenate([f(plural([i])) for i in range(n)])
    yield f(plural(order))[np.argsort(order)]
    yield np.concatenate(
        [f(plural(part)) for part in np.split(np.arange(n), [n // 3, n // 2])]
    )


def check_numbers(f, X, dtype):
    together, *others = companies(f, X)
    assert np.isfinite(together).all()
    tolerance = LOOSE if dtype == np.float64 else 1e-3
    for other in others:
        assert error(other, together) <= tolerance * max(1, np.abs(together).max())


def check_labels(f, X):
    together, *others = companies(f, X)
    for other in others:
        assert other.tolist() == together.tolist()


# ---------------------------------------------------------------------------- subspaces


CODINGS = {
    "gsc": lambda X, D: core.gsc(X, D, 0.05),
    "gsc, large lambda": lambda X, D: core.gsc(X, D, 0.5, lam_scale="max"),
    "gsc, positive": lambda X, D: core.gsc(X, D, 0.05, positive=True),
    "glc": lambda X, D: core.glc(X, D, 4),
    "log_euclidean_codes": lambda X, D: tangent.log_euclidean_codes(X, D, 0.05),
    "log_euclidean_codes, positive": lambda X, D: tangent.log_euclidean_codes(
        X, D, 0.05, positive=True
    ),
    "log_euclidean_codes at the mean": lambda X, D: tangent.log_euclidean_codes(
        X, D, 0.05, "mean"
    ),
    "intrinsic_codes": lambda X, D: tangent.intrinsic_codes(X, D, 0.05),
    "intrinsic_codes, no lambda": lambda X, D: tangent.intrinsic_codes(X, D, 0.0),
    "projected_codes": lambda X, D: projected.projected_codes(X, D, 0.05),
    "projected_codes, positive": lambda X, D: projected.projected_codes(
        X, D, 0.0, positive=True
    ),
}
CLASSIFIERS = {
    "classify by gsc": lambda X, D, y: core.classify(X, D, y, lam=0.05),
    "classify by glc": lambda X, D, y: core.classify(X, D, y, n_neighbors=4),
}


each_problem = pytest.mark.parametrize("name", PROBLEMS)


@each_dtype
@each_problem
@pytest.mark.parametrize("coding", CODINGS)
def test_a_code_ignores_the_other_queries(coding, name, dtype):
    X, D, _ = problem(name, dtype)
    half = PROBLEMS[name][3]
    check_numbers(lambda some: of_distinct(CODINGS[coding](some, D), half), X, dtype)


@each_dtype
@each_problem
@pytest.mark.parametrize("label", CLASSIFIERS)
def test_a_label_ignores_the_other_queries(label, name, dtype):
    X, D, y = problem(name, dtype)
    check_labels(lambda some: CLASSIFIERS[label](some, D, y), X)


# ----------------------------------------------------------------------- sets of frames


HALVES = ["another", "repeated", "rotated"]
KERNELS = [kernels.linear(), kernels.rbf(0.2), kernels.polynomial(2, 1.0)]
OF_SETS = {
    "kgsc": lambda X, D, k: kernels.kgsc(X, D, 0.05, kernel=k, p=3),
    "kglc": lambda X, D, k: kernels.kglc(X, D, 4, kernel=k, p=3),
    "Lift.transform": lambda X, D, k: kernels.Lift(k, 3).fit(D).transform(X),
    "Lift.transform, landmarks": lambda X, D, k: (
        kernels.Lift(k, 3, n_landmarks=9, rng=0).fit(D).transform(X)
    ),
}
each_half = pytest.mark.parametrize("half", HALVES)
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def problem_of_sets(half, dtype, n=5, N=12, d=5):
    """Queries, atoms and labels; a rotated set holds its frames in another order."""
    rng = np.random.default_rng(N)
    D = [rng.standard_normal((rng.integers(4, 7), d)) for _ in range(N)]
    if half != "another":
        D[N // 2 :] = [A if half == "repeated" else A[::-1] for A in D[: N // 2]]
    X = [rng.standard_normal((rng.integers(4, 7), d)) for _ in range(n)]
    X[:2] = D[:2]
    return [A.astype(dtype) for A in X], [A.astype(dtype) for A in D], np.arange(N) % 4


@each_dtype
@each_half
@each_kernel
@pytest.mark.parametrize("coding", OF_SETS)
def test_a_code_of_a_set_ignores_the_other_sets(coding, kernel, half, dtype):
    X, D, _ = problem_of_sets(half, dtype)

    def code(some):
        codes = OF_SETS[coding](some, D, kernel)
        return of_distinct(codes, half) if coding == "kgsc" else codes

    check_numbers(code, X, dtype)


@each_dtype
@each_half
@each_kernel
@pytest.mark.parametrize("how", [{"lam": 0.05}, {"n_neighbors": 4}], ids=repr)
def test_a_label_of_a_set_ignores_the_other_sets(how, kernel, half, dtype):
    X, D, _ = problem_of_sets(half, dtype)
    y = distinct(len(D), half) % 4  # of repeated atoms of two classes rounding decides
    check_labels(
        lambda some: kernels.classify(some, D, y, kernel=kernel, p=3, **how), X
    )


# --------------------------------------------------------------------------- estimators


MODULES = ["estimators", "baselines.estimators"]
OPTIONS = {  # to be tried, where the defaults are too few or are refused by small data
    "NearestSubspace": [
        {},
        {"metric": "geodesic"},
        {"metric": "projection"},
        {"n_neighbors": 3},
    ],
    "CodingClassifier": [
        {"coding": coding, "rule": rule}
        for coding in ("sparse", "local")
        for rule in ("residual", "sum", "max")
    ],
    "DCC": [{}, {"n_angles": 1}],
    "GDA": [
        {},
        {"rule": "mean"},
        {"kernel": "correlation"},
        {"kernel": "binet-cauchy"},
    ],
    "GGDA": [{}, {"kernel": "projection", "rule": "mean"}],
    "DiscriminativeDictionary": [{"random_state": 0, "max_iter": 5}],
    "MSM": [
        {"p": 3},
        {"p": 3, "reference": "set"},
        {"p": 3, "kernel": "rbf"},
        {"p": 3, "reference": "set", "keep": 0.8},
        {"p": 2, "whiten": True},
    ],
    "KAHM": [{"share": 0.6}, {"hull": "convex"}, {"kernel": "rbf", "dimension": 1}],
    "LDS": [{"n_states": 3}, {"n_states": 3, "rule": "svm"}],
    "CSLDS": [{"n_states": 2, "compression": 3}],
    "ProductManifold": [{}, {"p": 3, "metric": "geodesic"}],
    "TCCA": [{"p": 3}],
    "DFS": [
        {"n_levels": 3, "radii": (1, 2)},
        {"n_levels": 3, "radii": (1, 2), "rule": "nearest"},
    ],
    "DLPegasos": [{"n_states": 3, "n_iter": 50}],
}


def that_predict():
    """(class, options, half) of every public estimator that predicts."""
    for module in MODULES:
        module = importlib.import_module(f"grassmann_sc.{module}")
        for name in module.__all__:
            estimator = getattr(module, name)
            if (
                hasattr(estimator, "predict")
                and estimator.__module__ == module.__name__
            ):
                for options in OPTIONS.get(name, [{}]):
                    for half in HALVES:
                        yield pytest.param(
                            estimator, options, half, id=f"{name}-{options}-{half}"
                        )


def problem_of_clips(half, dtype, n=4, N=9):
    clips = np.random.default_rng(N).random((n + N, 10, 8, 9)).cumsum(axis=1)
    X = clips[:n]
    D = clips[n:]
    if half != "another":
        D[N // 2 : 2 * (N // 2)] = D[: N // 2]
    X[:2] = D[:2]
    return X.astype(dtype), D.astype(dtype), np.arange(N) % 3


def problem_for(estimator, half, dtype):
    """Queries, training set and labels of the kind that an estimator takes."""
    if issubclass(estimator, OnVideos):
        return problem_of_clips(half, dtype)
    if issubclass(estimator, OnSets):
        return problem_of_sets(half, dtype)
    name = next(name for name, (*_, other) in PROBLEMS.items() if other == half)
    return problem(name, dtype)


@each_dtype
@pytest.mark.parametrize("estimator, options, half", list(that_predict()))
def test_an_estimators_label_ignores_the_other_queries(estimator, options, half, dtype):
    X, D, y = problem_for(estimator, half, dtype)
    check_labels(estimator(**options).fit(D, y).predict, X)


def test_local_codes_of_more_neighbours_than_dimensions_ignore_the_other_queries():
    """Neighbours depend on each other, and a ridge of 1e-10 would multiply rounding by
    its inverse.
    """
    for seed in range(40):
        X = random_subspaces(6, 3, 1, rng=seed)
        D = random_subspaces(12, 3, 1, rng=seed + 1000)
        check_numbers(lambda some: core.glc(some, D, 12), X, np.float64)
