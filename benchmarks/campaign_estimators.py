"""Estimators of the campaign: labels of every kind, arrays that the caller goes on
using, layouts.

The laws hold for every public classifier: names of classes do not choose answers, what
was learned belongs to the estimator, an answer does not depend on how an array lies in
memory.
"""

import copy
import functools
import importlib
import pickle
import warnings

import numpy as np

import grassmann_sc as core
from benchmarks.campaign_calls import Failed, failing, hold, place_of, rng_of
from benchmarks.campaign_numbers import LAYOUTS, changed_arrays
from grassmann_sc.baselines.estimators import OnSets, OnVideos

# Options of those whose defaults are too large or too slow for small data.
SMALL = {
    "CodingClassifier": [
        {},
        {"coding": "local", "n_neighbors": 2},
        {"lam_scale": "max", "lam": 0.3, "rule": "sum"},
    ],
    "CSLDS": [{"n_states": 2, "compression": 3}],
    "DFS": [{"n_levels": 3, "radii": (1, 2), "rule": "nearest"}],
    "DLPegasos": [{"n_states": 2, "n_iter": 50}],
    "DiscriminativeDictionary": [
        {"random_state": 0, "max_iter": 3, "atoms_per_class": 1}
    ],
    "GDA": [{}, {"rule": "mean"}, {"kernel": "correlation"}],
    "KAHM": [{"hull": "convex"}, {}],
    "LDS": [{"n_states": 2}],
    "MSM": [{"p": 2}, {"p": 2, "reference": "set"}, {"p": 1, "kernel": "rbf"}],
    "NearestSubspace": [{}, {"n_neighbors": 3}, {"metric": "geodesic"}],
    "TCCA": [{"p": 2}],
    "TangentDictionary": [{"n_atoms": 3, "random_state": 0}],
}

# Three classes each, in the order that np.unique or sorted gives them.
LABELS = [
    ["ape", "bee", "cat"],
    ["", " ", 'ä\n,"'],
    [0, 1, 2],
    [-5, 0, 2**40],
    [1.0, 2.0, 1e15],
    [b"a", b"b", b"c"],
    [np.str_("x"), np.str_("y"), np.str_("z")],
    [(0, 1), (0, 2), (1, 0)],
    [np.int8(-1), np.int8(0), np.int8(1)],
    [False, True],
    ["one", "two"],
]


@functools.cache
def classifiers():
    """(class, options) of every public estimator that predicts labels."""
    found = []
    for module in ("estimators", "baselines.estimators"):
        module = importlib.import_module(f"grassmann_sc.{module}")
        for name in module.__all__:
            cls = getattr(module, name)
            if hasattr(cls, "predict"):
                found += [(cls, options) for options in SMALL.get(name, [{}])]
    return found


def data_for(cls, rng, n):
    """n training samples and four queries of the kind that the class takes, near three
    or fewer classes in turn.
    """
    if issubclass(cls, OnVideos):
        X = np.random.default_rng(3).random((3, 10, 8, 9)).cumsum(axis=1)
        X = X[np.arange(n + 4) % 3] + 0.5 * rng.random((n + 4, 10, 8, 9))
        return [*X[:n]], [*X[n:]]
    if issubclass(cls, OnSets):
        centres = rng.standard_normal((3, 4, 5))
        X = [centres[i % 3] + 0.3 * rng.standard_normal((4, 5)) for i in range(n + 4)]
        return X[:n], X[n:]
    centres = core.random_subspaces(3, 6, 2, rng)[np.arange(n + 4) % 3]
    X = core.orthonormalize(centres + 0.2 * rng.standard_normal(centres.shape))
    return X[:n], X[n:]


def estimators(seed, case):
    """One classifier, in turn with one of the laws."""
    laws = [
        names_of_classes,
        reused_arrays,
        layouts_of_arrays,
        one_sample_or_class,
        copies,
    ]
    cls, options = classifiers()[case % len(classifiers())]
    law = laws[case // len(classifiers()) % len(laws)]
    rng = rng_of("estimators", seed, case)
    with (
        warnings.catch_warnings(),
        failing(f"{law.__name__}, {cls.__name__}({options})"),
    ):
        warnings.simplefilter("ignore")
        law(rng, cls, options)


def answers(model, X):
    """Labels, scores as columns, and probabilities where there are some."""
    scores = model.decision_function(X)
    scores = scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1)
    odds = model.predict_proba(X) if hasattr(model, "predict_proba") else scores
    return model.predict(X), scores, odds


def same_answers(ours, theirs, tol=1e-9):
    """Are labels equal, and numbers, to the tolerance relative to the largest?"""
    same = [all(a == b for a, b in zip(ours[0], theirs[0]))]
    for a, b in zip(ours[1:], theirs[1:]):
        same.append(
            a.shape == b.shape
            and np.abs(a - b).max() <= tol * (1e-300 + np.abs(b).max())
        )
    return all(same)


def names_of_classes(rng, cls, options):
    """Classes by other names, in the same order, have the same scores; labels come back
    as they were given, of the type that they had.
    """
    names = LABELS[rng.integers(len(LABELS))]
    n = int(rng.integers(6, 12))
    X, queries = data_for(cls, rng, n)
    index = np.arange(n) % 3 % len(names)
    usual = cls(**options).fit(X, index)
    y = [names[i] for i in index]
    if not isinstance(names[0], tuple):
        y = [y, np.array(y), np.array(y, object)][rng.integers(3)]
    try:
        model = cls(**options).fit(X, y)
    except (ValueError, TypeError) as error:
        hold(
            " y " in f" {error} "
            and "estimators.py" in place_of(error)
            or "labels" in str(error),
            f"labels {names} are refused by {error}",
            "labels are refused without a name",
        )
        return
    labels, *scores = answers(model, queries)
    expected, *numbers = answers(usual, queries)
    hold(
        same_answers(([], *scores), ([], *numbers)),
        f"labels {names} change the scores",
        "names of classes change scores",
    )
    wanted = [names[i] for i in expected]
    hold(
        [*labels] == wanted and [*model.classes_] == names[: len(model.classes_)],
        f"answers {labels!r}, of classes {model.classes_!r}, not {wanted!r}",
        "labels come back altered",
    )
    types = {type(label) for label in np.asarray(labels).tolist()}
    known = {type(label) for label in np.asarray(wanted).tolist()}
    hold(
        types <= known or isinstance(names[0], tuple),
        f"labels of {types}, not {known}",
        "labels of another type",
    )


def reused_arrays(rng, cls, options):
    """The caller fills the arrays of the training set, of labels and of queries anew,
    and writes into what was answered: later answers are as before.
    """
    X, queries = data_for(cls, rng, 9)
    X = changed_arrays(X, np.array)
    y = np.arange(9) % 3
    model = cls(**options).fit(X, y)
    first = answers(model, changed_arrays(queries, np.array))
    kept = copy.deepcopy(first)
    for array in (*X, y):
        array[...] = 0
    hold(
        same_answers(answers(model, queries), kept),
        "the estimator changes with the arrays that it was fitted to",
    )
    for array in first:
        array[...] = array[:1] * 0
    hold(
        same_answers(answers(model, queries), kept),
        "the estimator changes with its answers",
    )
    if hasattr(model, "transform"):
        features = model.transform(queries)
        features[...] = 0
        hold(
            same_answers(answers(model, queries), kept),
            "the estimator changes with its features",
        )


def layouts_of_arrays(rng, cls, options):
    """Layouts, and float32, which rounds."""
    X, queries = data_for(cls, rng, 9)
    y = np.arange(9) % 3
    usual = answers(cls(**options).fit(X, y), queries)
    name = rng.choice([*LAYOUTS])
    some, asked = (changed_arrays(A, LAYOUTS[name]) for A in (X, queries))
    before = [A.tobytes() for A in (*some, *asked)]
    found = answers(cls(**options).fit(some, y), asked)
    hold(
        same_answers(found, usual, 1e-6),
        f"{name} changes answers",
        "a layout changes answers",
    )
    hold(
        before == [A.tobytes() for A in (*some, *asked)],
        f"{name}: arrays are changed",
        "arrays are changed",
    )


def one_sample_or_class(rng, cls, options):
    """One class is refused by name; a class of one sample, and one query, are answered."""
    X, queries = data_for(cls, rng, 6)
    try:
        cls(**options).fit(X, ["a"] * 6)
    except ValueError as error:
        hold(
            "y must hold at least two classes" in str(error),
            f"one class is refused by {error}",
            "one class is refused without its name",
        )
    else:
        raise Failed("one class is accepted")
    y = np.array([0, 0, 0, 0, 0, 1])
    try:
        model = cls(**options).fit(X, y)
    except ValueError as error:
        return hold(
            "n_neighbors" in str(error) or "class" in str(error),
            f"a class of one sample is refused by {error}",
            "a class of one sample is refused",
        )
    together = model.predict(queries)
    alone = [model.predict(queries[i : i + 1])[0] for i in range(len(queries))]
    hold(
        together.tolist() == alone,
        f"{together.tolist()} together, {alone} alone",
        "other answers alone",
    )


def copies(rng, cls, options):
    """A clone that is fitted again, a pickle and a deep copy answer as the first does."""
    from sklearn.base import clone

    X, queries = data_for(cls, rng, 9)
    y = np.array(["b", "c", "a"] * 3)
    model = cls(**options).fit(X, y)
    usual = answers(model, queries)
    others = {
        "a clone": clone(model).fit(X, y),
        "a pickle": pickle.loads(pickle.dumps(model)),
        "a copy": copy.deepcopy(model),
        "a second fit": model.fit(X, y),
    }
    for name, other in others.items():
        hold(
            same_answers(answers(other, queries), usual, 0), f"{name} answers otherwise"
        )
