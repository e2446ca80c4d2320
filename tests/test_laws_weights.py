"""The law of weights: an integer weight acts as repetition, weight 0 as absence and a
factor of all weights as nothing, in every function and method that takes weights.
"""

import functools
import importlib
import inspect
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import grassmann_sc as core
from grassmann_sc import (
    discriminative,
    estimators,
    intrinsic,
    kernels,
    learn,
)
from grassmann_sc.large import streams
from grassmann_sc.strategies import bases
from oracles import LOOSE, clusters, error, hat, rarely, seeds, statistics
from processes import CORE, MODULES

N = 28
# of the first two samples are there, too few for atoms
FIRST = [0, 1, 0, 1, 0, 2]
BATCH = np.repeat([0, 1, 2], [4, 12, 12])


def problem(seed):
    """Samples, sets, labels and codes, and weights, some of them 0."""
    rng = np.random.default_rng(seed)
    m = SimpleNamespace(weights=np.r_[FIRST, rng.integers(0, 4, N - len(FIRST))])
    # absent: one alone uses an atom, the others use none
    far = np.flatnonzero(m.weights == 0)[::2]
    m.X = np.zeros((N, 10, 2))
    m.X[:, :6] = clusters(rng, N, 6, 2, 6)
    m.X[::3, :6] = bases(rng, len(m.X[::3]), 6, 2)
    m.X[far] = np.eye(10)[:, 8:]
    m.X[far[0]] = np.eye(10)[:, 6:8]
    m.atoms = np.zeros((4, 10, 2))
    m.atoms[:3, :6] = bases(rng, 3, 6, 2)
    m.atoms[3] = m.X[far[0]]
    m.near = core.orthonormalize(m.X[:1] + 0.1 * rng.standard_normal((N, 10, 2)))
    m.sets = rng.standard_normal((N, 3, 5))
    m.labels = np.array(["ape", "bee"])[np.arange(N) % 2]
    m.labels[far] = "cat"
    m.batch = BATCH
    m.codes = rng.standard_normal((N, 4)) * (rng.random((N, 4)) < 0.6)
    return m


SAMPLES = problem(0)
ATOMS = SAMPLES.atoms
OPTIONS = dict(n_iter=3, tol=0, rng=3)


def learned_by_gdl(X, weights, **options):
    result = learn.gdl(X, 4, sample_weight=weights, **OPTIONS, **options)
    return hat(result.atoms), result.costs[[0, 1, -1]], result.n_replaced, result.codes


def learned_by_kgdl(sets, weights):
    lift = kernels.Lift(kernels.rbf(0.2), 2)
    result = learn.kgdl(sets, 4, 0.2, lift=lift, sample_weight=weights, **OPTIONS)
    atoms = core.projection_kernel(lift.transform(SAMPLES.sets), result.atoms)
    return atoms, result.costs, lift.dimension_, result.codes


def learned_by_class(X, labels, weights):
    options = dict(sample_weight=weights, lam_scale="max", rng=3)
    result = learn.class_dictionaries(X, labels, 2, 0.2, **options)
    return hat(result.atoms), result.labels == "bee", result.lam


def learned_with_labels(X, labels, weights):
    result = discriminative.discriminative_atoms(
        X, labels, 2, sample_weight=weights, **OPTIONS
    )
    return hat(result.atoms), result.labels == "bee", result.costs, result.beta


def learned_by_stream(X, batch, weights, how, **options):
    """What a learner of two batches holds before and after atoms move, and the atoms.

    Where two atoms coincide, rounding decides which codes a sample: not drawn.
    """
    learner = streams.OnlineGDL(4, rng=3, **options)
    states = []
    for b in range(batch.max() + 1):
        few = batch == b
        getattr(learner, how)(X[few], weights if weights is None else weights[few])
        states += held_by(learner)
        if learner.atoms is not None:
            alike = np.triu(core.projection_kernel(learner.atoms), 1).max()
            assume(alike < learner.atoms.shape[2] - LOOSE)
    if learner.weight > 0:
        learner.update()
    return [
        *states,
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
    result = getattr(estimator, fit)(X, labels, sample_weight=weights)
    atoms = hat(estimator.components_)
    return (atoms,) if result is estimator else (atoms, result)


dictionary = estimators.GrassmannDictionary(4, max_iter=3, random_state=3)
labelled = estimators.DiscriminativeDictionary(max_iter=3, random_state=3)
part = functools.partial
# samples, and a function of them and of weights that gives arrays; codes come last
LAWS = {
    "chordal_mean": [(("X",), lambda X, w: [hat(core.chordal_mean(X, w))])],
    "intrinsic.karcher_mean": [
        (("near",), lambda X, w: [hat(intrinsic.karcher_mean(X, w))])
    ],
    "learn.gdl": [
        (("X",), part(learned_by_gdl, lam=0.2)),
        (("X",), part(learned_by_gdl, n_neighbors=2)),
        (("X",), part(learned_by_gdl, lam=0.2, lam_scale="max", init="kmeans")),
        (("X",), part(learned_by_gdl, lam=0.2, init=ATOMS)),
    ],
    "learn.kgdl": [(("sets",), learned_by_kgdl)],
    "learn.class_dictionaries": [(("X", "labels"), learned_by_class)],
    "learn.init_atoms": [
        (
            ("X",),
            lambda X, w, how=method: [
                hat(learn.init_atoms(X, 4, how, 3, sample_weight=w))
            ],
        )
        for method in learn.METHODS
    ],
    "learn.update_atoms": [
        (
            ("X", "codes"),
            lambda X, Y, w: [hat(learn.update_atoms(X, ATOMS, Y, sample_weight=w))],
        )
    ],
    "discriminative.discriminative_atoms": [(("X", "labels"), learned_with_labels)],
    "large.streams.OnlineGDL.collect": [
        (("X", "batch"), part(learned_by_stream, how="collect", lam=0.2)),
        (("X", "batch"), part(learned_by_stream, how="collect", lam=0.2, init=ATOMS)),
    ],
    "large.streams.OnlineGDL.partial_fit": [
        (
            ("X", "batch"),
            part(learned_by_stream, how="partial_fit", n_neighbors=2, forgetting=0),
        ),
        (
            ("X", "batch"),
            part(learned_by_stream, how="partial_fit", lam=0.2, init=ATOMS),
        ),
        (
            ("X", "batch"),
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
        (("X", "labels"), part(fitted, estimator=dictionary, fit="fit"))
    ],
    "estimators.GrassmannDictionary.fit_transform": [
        (("X", "labels"), part(fitted, estimator=dictionary, fit="fit_transform"))
    ],
    "estimators.OnlineGrassmannDictionary.partial_fit": [
        (("X", "batch"), learned_in_batches)
    ],
    "estimators.DiscriminativeDictionary.fit": [
        (("X", "labels"), part(fitted, estimator=labelled, fit="fit"))
    ],
}
PER_SAMPLE = {"learn.gdl", "learn.kgdl", "estimators.GrassmannDictionary.fit_transform"}
CASES = [
    pytest.param(name, *case, id=f"{name}-{i}")
    for name, cases in LAWS.items()
    for i, case in enumerate(cases)
]
each_law = pytest.mark.parametrize("name, samples, law", CASES)
# at random samples are drawn as often as their weights say: these have a unit
UNIT = {
    f"learn.init_atoms-{learn.METHODS.index('random')}",
    f"large.streams.OnlineGDL.partial_fit-{len(LAWS['large.streams.OnlineGDL.partial_fit']) - 1}",
}
each_without_a_unit = pytest.mark.parametrize(
    "name, samples, law", [case for case in CASES if case.id not in UNIT]
)


def check_alike(name, of_all, of_some, times, factor=1.0):
    """What weights give, and what the samples give of which each is there so many
    times; what grows with the weights, such as costs, may be another by the factor.
    """
    of_all = list(of_all)
    of_some = list(of_some)
    if name in PER_SAMPLE:
        of_all[-1] = np.repeat(of_all[-1], times, axis=0)
    for value, other in zip(of_all, of_some, strict=True):
        assert np.shape(value) == np.shape(other)
        value, other = (np.asarray(part, float) for part in (value, other))
        tol = 1e3 * LOOSE
        assert error(value, other) <= tol or error(value, other / factor) <= tol


@each_law
@rarely
@given(seed=seeds)
def test_an_integer_weight_acts_as_repetition(name, samples, law, seed):
    m = problem(seed)
    given_samples = [getattr(m, kind) for kind in samples]
    repeated = [np.repeat(A, m.weights, axis=0) for A in given_samples]
    check_alike(name, law(*given_samples, m.weights), law(*repeated, None), m.weights)


@each_law
@rarely
@given(seed=seeds)
def test_weight_0_acts_as_absence(name, samples, law, seed):
    m = problem(seed)
    weights = m.weights * np.random.default_rng(seed + 1).uniform(0.1, 2, N)
    used = weights > 0
    present = [getattr(m, kind)[used] for kind in samples]
    of_all = law(*(getattr(m, kind) for kind in samples), weights)
    check_alike(name, of_all, law(*present, weights[used]), used)


@each_without_a_unit
@rarely
@given(seed=seeds, factor=st.sampled_from([2.0**-20, 0.3, 1e-300, 1e-30, 1e30, 1e300]))
def test_a_factor_of_all_weights_changes_nothing(name, samples, law, seed, factor):
    m = problem(seed)
    given_samples = [getattr(m, kind) for kind in samples]
    of_all = law(*given_samples, 1.0 * m.weights)
    of_factor = law(*given_samples, factor * m.weights)
    check_alike(name, of_all, of_factor, np.ones(N, int), factor)


@pytest.mark.parametrize("method", learn.METHODS)
def test_samples_of_weight_0_are_no_first_atoms(method):
    """Neither where there are too few others, which are too few in the same way alone."""
    weights = np.where(np.arange(N) < 3, 1.0, 0)
    atoms = learn.init_atoms(SAMPLES.X, 3, method, 0, sample_weight=weights)
    assert error(core.projection_kernel(atoms, SAMPLES.X[:3]).max(axis=0), 2) <= LOOSE
    for learner in (
        learn.init_atoms,
        functools.partial(learn.gdl, lam=0.2, init=method),
    ):
        with pytest.raises(ValueError, match="samples of positive weight, 3, got 4"):
            learner(SAMPLES.X, 4, sample_weight=weights)


def test_every_function_and_method_that_takes_weights_is_here():
    """Those of our own: the score of scikit-learn's mixins is theirs."""
    names = set()
    for module in (CORE, *(f"{CORE}.{module}" for module in MODULES)):
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
                    names.add(full.removeprefix(f"{CORE}."))
    assert names == set(LAWS)


@pytest.mark.parametrize("factor", [2.0**-990, 2.0**-160, 2.0**160])
def test_small_weights_move_atoms_beside_one_that_no_sample_uses(factor):
    """In float32, whose numbers end at 1e-45: weights count in units of the largest."""
    X = core.random_subspaces(9, 4, 2, rng=0).astype(np.float32)
    init = np.stack([X[0], X[1], np.eye(4, dtype=np.float32)[:, 2:]])
    atoms = []
    for weights in (np.ones(8), np.full(8, factor)):
        learner = streams.OnlineGDL(3, n_neighbors=1, init=init)
        near = core.orthonormalize(init[:1] + 0.1 * X[1:]).astype(np.float32)
        atoms.append(learner.partial_fit(near, weights).atoms)
    assert np.array_equal(*atoms) and not np.array_equal(atoms[0], init)
