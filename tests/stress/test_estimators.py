"""A law of every public classifier: names of classes do not choose answers. The tests
of estimators hold the other laws.
"""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import grassmann_sc as core
from arrays import worst_difference
from grassmann_sc.baselines.estimators import OnSets, OnVideos
from problems import generators

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
MODULES = [
    importlib.import_module(f"grassmann_sc.{name}")
    for name in ("estimators", "baselines.estimators")
]
CLASSIFIERS = [
    getattr(module, name)(**options)
    for module in MODULES
    for name in module.__all__
    if hasattr(getattr(module, name), "predict")
    for options in SMALL.get(name, [{}])
]


def data_for(model, rng, n):
    """n samples of the kind that the model takes, near three centres in turn."""
    shape = (10, 8, 9) if isinstance(model, OnVideos) else (3, 6)
    centres = rng.random((3, *shape)).cumsum(axis=1)
    X = centres[np.arange(n) % 3] + 0.5 * rng.random((n, *shape))
    if isinstance(model, (OnSets, OnVideos)):
        return [*X]
    return core.orthonormalize(X.swapaxes(1, 2))


def scores_of(model, X):
    """Scores, and probabilities where there are some."""
    names = ("decision_function", "predict_proba")
    return [getattr(model, name)(X) for name in names if hasattr(model, name)]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=repr)
@settings(max_examples=20)
@given(
    rng=generators,
    n=st.integers(6, 11),
    names=st.sampled_from(LABELS),
    form=st.sampled_from([list, np.array, lambda y: np.array(y, object)]),
)
def test_names_of_classes_choose_no_answers(model, rng, n, names, form):
    """Classes by other names, in the same order, have the same scores; labels come back
    as they were given, of the type that they had.
    """
    X = data_for(model, rng, n + 4)
    index = np.arange(n) % len(names)
    y = [names[i] for i in index]
    of_tuples = isinstance(names[0], tuple)
    y = y if of_tuples else form(y)
    model = clone(model).fit(X[:n], index)
    expected = model.predict(X[n:])
    scores = scores_of(model, X[n:])
    try:
        model.fit(X[:n], y)
    except (ValueError, TypeError) as error:
        assert " y " in f" {error} " or "labels" in str(error)
        return
    assert worst_difference(scores_of(model, X[n:]), scores) <= 1e-9
    labels = model.predict(X[n:])
    wanted = [names[i] for i in expected]
    assert [*labels] == wanted and [*model.classes_] == names
    types, known = ({*map(type, np.asarray(y).tolist())} for y in (labels, wanted))
    assert types <= known or of_tuples
