"""Laws of every public classifier: names of classes do not choose answers, what was
learned belongs to the estimator, an answer does not depend on how an array lies in
memory, one class is refused, copies answer alike.
"""

import copy
import importlib
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import grassmann_sc as core
from arrays import LAYOUTS, changed_arrays, contents
from grassmann_sc.baselines.estimators import OnSets, OnVideos
from oracles import seeds

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
CLASSIFIERS = {}
for module in ("estimators", "baselines.estimators"):
    module = importlib.import_module(f"grassmann_sc.{module}")
    for name in [
        one for one in module.__all__ if hasattr(getattr(module, one), "predict")
    ]:
        for options in SMALL.get(name, [{}]):
            CLASSIFIERS[f"{name}-{options}"] = getattr(module, name)(**options)


def data_for(model, rng, n):
    """n training samples and four queries of the kind that the model takes, near three
    centres in turn.
    """
    near = np.arange(n + 4) % 3
    if isinstance(model, OnVideos):
        X = rng.random((3, 10, 8, 9)).cumsum(axis=1)[near] + 0.5 * rng.random(
            (n + 4, 10, 8, 9)
        )
        X = [*X]
    elif isinstance(model, OnSets):
        centres = rng.standard_normal((3, 4, 5))
        X = [centres[i] + 0.3 * rng.standard_normal((4, 5)) for i in near]
    else:
        centres = core.random_subspaces(3, 6, 2, rng)[near]
        X = core.orthonormalize(centres + 0.2 * rng.standard_normal(centres.shape))
    return X[:n], X[n:]


def answers(model, X):
    """Labels, scores as columns, and probabilities where there are some."""
    scores = model.decision_function(X)
    scores = scores if scores.ndim == 2 else np.stack([-scores, scores], axis=1)
    odds = model.predict_proba(X) if hasattr(model, "predict_proba") else scores
    return model.predict(X), scores, odds


def are_same(ours, theirs, tol=1e-9):
    """Are labels equal, and numbers, to the tolerance relative to the largest?"""
    near = [
        a.shape == b.shape and np.abs(a - b).max() <= tol * (1e-300 + np.abs(b).max())
        for a, b in zip(ours[1:], theirs[1:])
    ]
    return [*ours[0]] == [*theirs[0]] and all(near)


def names_of_classes(model, rng, draw):
    """Classes by other names, in the same order, have the same scores; labels come back
    as they were given, of the type that they had.
    """
    names = draw(st.sampled_from(LABELS))
    n = draw(st.integers(6, 11))
    X, queries = data_for(model, rng, n)
    index = np.arange(n) % 3 % len(names)
    expected, *numbers = answers(clone(model).fit(X, index), queries)
    y = [names[i] for i in index]
    of_tuples = isinstance(names[0], tuple)
    if not of_tuples:
        y = draw(st.sampled_from([y, np.array(y), np.array(y, object)]))
    try:
        model.fit(X, y)
    except (ValueError, TypeError) as error:
        assert " y " in f" {error} " or "labels" in str(error)
        return
    labels, *scores = answers(model, queries)
    assert are_same(([], *scores), ([], *numbers)), "names of classes change scores"
    wanted = [names[i] for i in expected]
    assert [*labels] == wanted and [*model.classes_] == names[: len(model.classes_)]
    types, known = ({*map(type, np.asarray(y).tolist())} for y in (labels, wanted))
    assert types <= known or of_tuples


def reused_arrays(model, rng, draw):
    """The caller fills the arrays of the training set, of labels and of queries anew,
    and writes into what was answered: later answers are as before.
    """
    X, queries = data_for(model, rng, 9)
    X = changed_arrays(X, np.array)
    y = np.arange(9) % 3
    first = answers(model.fit(X, y), changed_arrays(queries, np.array))
    kept = copy.deepcopy(first)
    features = model.transform(queries) if hasattr(model, "transform") else np.ones(1)
    for array in (*X, y, features, *first):
        array[...] = array[:1] * 0
        assert are_same(answers(model, queries), kept)


def layouts_of_arrays(model, rng, draw):
    X, queries = data_for(model, rng, 9)
    y = np.arange(9) % 3
    usual = answers(clone(model).fit(X, y), queries)
    layout = LAYOUTS[draw(st.sampled_from([*LAYOUTS]))]
    some, asked = (changed_arrays(A, layout) for A in (X, queries))
    before = contents([*some, *asked])
    assert are_same(answers(model.fit(some, y), asked), usual, 1e-6)
    assert contents([*some, *asked]) == before


def one_sample_or_class(model, rng, draw):
    """One class is refused by name; a class of one sample, and one query, are answered."""
    X, queries = data_for(model, rng, 6)
    with pytest.raises(ValueError, match="y must hold at least two classes"):
        model.fit(X, ["a"] * 6)
    try:
        model.fit(X, np.array([0, 0, 0, 0, 0, 1]))
    except ValueError as error:
        assert "n_neighbors" in str(error) or "class" in str(error)
        return
    alone = [model.predict(queries[i : i + 1])[0] for i in range(len(queries))]
    assert model.predict(queries).tolist() == alone


def copies(model, rng, draw):
    """A clone that is fitted again, a pickle and a deep copy answer as the first does."""
    X, queries = data_for(model, rng, 9)
    y = np.array(["b", "c", "a"] * 3)
    usual = answers(model.fit(X, y), queries)
    others = [clone(model).fit(X, y), pickle.loads(pickle.dumps(model))]
    for other in (*others, copy.deepcopy(model), model.fit(X, y)):
        assert are_same(answers(other, queries), usual, 0)


LAWS = [names_of_classes, reused_arrays, layouts_of_arrays, one_sample_or_class, copies]


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@settings(max_examples=4)
@given(data=st.data(), seed=seeds)
def test_classifiers_obey(law, name, data, seed):
    law(clone(CLASSIFIERS[name]), np.random.default_rng(seed), data.draw)
