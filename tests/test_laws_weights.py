"""The law of weights: an integer weight acts as repetition and weight 0 as absence, in
every function and method that takes weights.
"""

import functools
import importlib
import inspect

import numpy as np
import pytest

import grassmann_sc as core
from grassmann_sc import (
    discriminative,
    estimators,
    intrinsic,
    kernels,
    learn,
    streams,
    tuning,
)
from grassmann_sc.strategies import bases
from oracles import LOOSE, clusters, error, hat, statistics
from processes import CORE, ROOMS

RNG = np.random.default_rng(0)
N = 28
WEIGHTS = np.r_[0, 1, 0, 1, 0, 2, RNG.integers(0, 4, N - 6)]
# absent: one alone uses an atom, the others use none
FAR = np.flatnonzero(WEIGHTS == 0)[::2]
X = np.zeros((N, 10, 2))
X[:, :6] = clusters(RNG, N, 6, 2, 6)
X[::3, :6] = bases(RNG, len(X[::3]), 6, 2)
X[FAR] = np.eye(10)[:, 8:]
X[FAR[0]] = np.eye(10)[:, 6:8]
ATOMS = np.zeros((4, 10, 2))
ATOMS[:3, :6] = bases(RNG, 3, 6, 2)
ATOMS[3] = X[FAR[0]]
NEAR = core.orthonormalize(X[:1] + 0.1 * RNG.standard_normal((N, 10, 2)))
SETS = RNG.standard_normal((N, 3, 5))
LABELS = np.array(["ape", "bee"])[np.arange(N) % 2]
LABELS[FAR] = "cat"
VOTES = RNG.choice(["ape", "bee", "cat"], (N, 200))
# of the first two samples are there, too few for atoms
BATCH = np.repeat([0, 1, 2], [4, 12, 12])
CODES = RNG.standard_normal((N, 4)) * (RNG.random((N, 4)) < 0.6)
OPTIONS = dict(n_iter=3, tol=0, rng=3)


def learned_by_gdl(X, weights, **options):
    found = learn.gdl(X, 4, sample_weight=weights, **OPTIONS, **options)
    return hat(found.atoms), found.costs[[0, 1, -1]], found.n_replaced, found.codes


def learned_by_kgdl(sets, weights):
    lift = kernels.Lift(kernels.rbf(0.2), 2)
    found = learn.kgdl(sets, 4, 0.2, lift=lift, sample_weight=weights, **OPTIONS)
    atoms = core.projection_kernel(lift.transform(SETS), found.atoms)
    return atoms, found.costs, lift.dimension_, found.codes


def learned_by_class(X, labels, weights):
    options = dict(sample_weight=weights, lam_scale="max", rng=3)
    found = learn.class_dictionaries(X, labels, 2, 0.2, **options)
    return hat(found.atoms), found.labels == "bee", found.lam


def learned_with_labels(X, labels, weights):
    found = discriminative.discriminative_atoms(
        X, labels, 2, sample_weight=weights, **OPTIONS
    )
    return hat(found.atoms), found.labels == "bee", found.costs, found.beta


def learned_by_stream(X, batch, weights, how, **options):
    """What a learner of two batches holds before and after atoms move, and the atoms."""
    learner = streams.OnlineGDL(4, rng=3, **options)
    seen = []
    for b in range(batch.max() + 1):
        few = batch == b
        getattr(learner, how)(X[few], weights if weights is None else weights[few])
        seen += held_by(learner)
    if learner.weight > 0:
        learner.update()
    return [
        *seen,
        *held_by(learner),
        learner.cost,
        learner.lam or 0,
        learner.n_replaced,
    ]


def held_by(learner):
    if learner.atoms is None:
        return []
    worst = learner.state()["worst_losses"].max(initial=0)
    return hat(learner.atoms), *statistics(learner), learner.loss, learner.weight, worst


def learned_in_batches(X, batch, weights):
    estimator = estimators.OnlineGrassmannDictionary(4, random_state=3)
    for b in range(batch.max() + 1):
        few = batch == b
        estimator.partial_fit(
            X[few], sample_weight=weights if weights is None else weights[few]
        )
    return (hat(estimator.components_),)


def fitted(X, labels, weights, estimator, fit):
    """The atoms that an estimator learns, and the codes that fit_transform gives."""
    found = getattr(estimator, fit)(X, labels, sample_weight=weights)
    atoms = hat(estimator.components_)
    return (atoms,) if found is estimator else (atoms, found)


dictionary = estimators.GrassmannDictionary(4, max_iter=3, random_state=3)
labelled = estimators.DiscriminativeDictionary(max_iter=3, random_state=3)
part = functools.partial
# samples, and a function of them and of weights that gives arrays; codes come last
LAWS = {
    "chordal_mean": [((X,), lambda X, w: [hat(core.chordal_mean(X, w))])],
    "intrinsic.karcher_mean": [
        ((NEAR,), lambda X, w: [hat(intrinsic.karcher_mean(X, w))])
    ],
    "tuning.vote": [((VOTES,), lambda votes, w: [tuning.vote(votes, w) == "ape"])],
    "learn.gdl": [
        ((X,), part(learned_by_gdl, lam=0.2)),
        ((X,), part(learned_by_gdl, n_neighbors=2)),
        ((X,), part(learned_by_gdl, lam=0.2, lam_scale="max", init="kmeans")),
        ((X,), part(learned_by_gdl, lam=0.2, unused="worst", init=ATOMS)),
        ((X,), part(learned_by_gdl, lam=0.2, unused="random", init=ATOMS)),
    ],
    "learn.kgdl": [((SETS,), learned_by_kgdl)],
    "learn.class_dictionaries": [((X, LABELS), learned_by_class)],
    "learn.init_atoms": [
        (
            (X,),
            lambda X, w, how=method: [
                hat(learn.init_atoms(X, 4, how, 3, sample_weight=w))
            ],
        )
        for method in learn.METHODS
    ],
    "learn.update_atoms": [
        (
            (X, CODES),
            lambda X, Y, w: [hat(learn.update_atoms(X, ATOMS, Y, sample_weight=w))],
        )
    ],
    "discriminative.discriminative_atoms": [((X, LABELS), learned_with_labels)],
    "streams.OnlineGDL.collect": [
        ((X, BATCH), part(learned_by_stream, how="collect", lam=0.2)),
        ((X, BATCH), part(learned_by_stream, how="collect", lam=0.2, init=ATOMS)),
    ],
    "streams.OnlineGDL.partial_fit": [
        (
            (X, BATCH),
            part(learned_by_stream, how="partial_fit", n_neighbors=2, forgetting=0),
        ),
        ((X, BATCH), part(learned_by_stream, how="partial_fit", lam=0.2, init=ATOMS)),
        (
            (X, BATCH),
            part(
                learned_by_stream,
                how="partial_fit",
                lam=0.2,
                lam_scale="max",
                init="random",
            ),
        ),
    ],
    "estimators.GrassmannDictionary.fit": [
        ((X, LABELS), part(fitted, estimator=dictionary, fit="fit"))
    ],
    "estimators.GrassmannDictionary.fit_transform": [
        ((X, LABELS), part(fitted, estimator=dictionary, fit="fit_transform"))
    ],
    "estimators.OnlineGrassmannDictionary.partial_fit": [
        ((X, BATCH), learned_in_batches)
    ],
    "estimators.DiscriminativeDictionary.fit": [
        ((X, LABELS), part(fitted, estimator=labelled, fit="fit"))
    ],
}
PER_SAMPLE = {"learn.gdl", "learn.kgdl", "estimators.GrassmannDictionary.fit_transform"}
each_law = pytest.mark.parametrize(
    "name, samples, law",
    [
        pytest.param(name, *case, id=f"{name}-{i}")
        for name, cases in LAWS.items()
        for i, case in enumerate(cases)
    ],
)


def check_alike(name, of_all, of_some, times):
    """What weights give, and what the samples give of which each is there so many
    times.
    """
    of_all = list(of_all)
    of_some = list(of_some)
    if name in PER_SAMPLE:
        of_all[-1] = np.repeat(of_all[-1], times, axis=0)
    for one, other in zip(of_all, of_some, strict=True):
        assert np.shape(one) == np.shape(other)
        assert error(np.asarray(one, float), np.asarray(other, float)) <= 1e3 * LOOSE


@each_law
def test_an_integer_weight_acts_as_repetition(name, samples, law):
    repeated = [np.repeat(A, WEIGHTS, axis=0) for A in samples]
    check_alike(name, law(*samples, WEIGHTS), law(*repeated, None), WEIGHTS)


@each_law
def test_weight_0_acts_as_absence(name, samples, law):
    weights = WEIGHTS * np.random.default_rng(1).uniform(0.1, 2, N)
    used = weights > 0
    present = [A[used] for A in samples]
    check_alike(name, law(*samples, weights), law(*present, weights[used]), used)


@pytest.mark.parametrize("method", learn.METHODS)
def test_samples_of_weight_0_are_no_first_atoms(method):
    """Neither where there are too few others, which are too few in the same way alone."""
    weights = np.where(np.arange(N) < 3, 1.0, 0)
    atoms = learn.init_atoms(X, 3, method, 0, sample_weight=weights)
    assert error(core.projection_kernel(atoms, X[:3]).max(axis=0), 2) <= LOOSE
    for learner in (
        learn.init_atoms,
        functools.partial(learn.gdl, lam=0.2, init=method),
    ):
        with pytest.raises(ValueError, match="samples of positive weight, 3, got 4"):
            learner(X, 4, sample_weight=weights)


def test_every_function_and_method_that_takes_weights_is_here():
    """Those of our own: the score of scikit-learn's mixins is theirs."""
    found = set()
    for module in (CORE, *(f"{CORE}.{room}" for room in ROOMS)):
        public = importlib.import_module(module)
        for name in public.__all__:
            thing = getattr(public, name)
            methods = dict(inspect.getmembers(thing)) if inspect.isclass(thing) else {}
            for function in (
                thing,
                *(methods[m] for m in methods if not m.startswith("_")),
            ):
                function = getattr(function, "__func__", function)  # of a class method
                if not inspect.isfunction(
                    function
                ) or not function.__module__.startswith(CORE):
                    continue
                if any(
                    "weight" in name for name in inspect.signature(function).parameters
                ):
                    full = f"{function.__module__}.{function.__qualname__}"
                    found.add(full.removeprefix(f"{CORE}."))
    assert found == set(LAWS)
