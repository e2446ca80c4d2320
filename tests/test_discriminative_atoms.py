"""Laws of discriminative dictionaries: the cost, the step, weights, coordinates, what
they earn.
"""

import tracemalloc

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.special import logsumexp, softmax

import grassmann_sc as core
from grassmann_sc import discriminative, kernels, learn
from grassmann_sc.strategies import bases
from oracles import (
    LOOSE,
    TIGHT,
    clusters,
    error,
    explicit_errors,
    hat,
    rarely,
    rounding,
    samples_and_atoms,
    seeds,
)

RIDGE = 0.1
ATOMS = core.random_subspaces(6, 7, 2, rng=4)
LABELS = np.array(["b", "a", "c"] * 2)
SAMPLES = core.random_subspaces(20, 7, 2, rng=5)
Y = np.array(["a", "b", "c", "b"] * 5)
betas = st.sampled_from([None, 0.3, 3.0, 30.0])


def explicit_cost(X, index, D, of_atom, beta, ridge, weights=1.0):
    scores = -beta * explicit_errors(X, D, of_atom, ridge)[0]
    own = scores[np.arange(len(X)), index]
    return (weights * (logsumexp(scores, axis=1) - own)).sum()


def explicit_step(X, index, D, of_atom, beta, ridge, weights, t):
    """The projectors of D_j <- Proj(D_j^ + t H_j / s_j), all from d x d matrices."""
    errors, codes = explicit_errors(X, D, of_atom, ridge)
    P = softmax(-beta * errors, axis=1)
    g = np.eye(len(P[0]))[index] - P
    moved = []
    for j, c in enumerate(of_atom):
        mine = of_atom == c
        residual = hat(X) - np.einsum("nl,lab->nab", codes[:, mine], hat(D[mine]))
        pull = weights * g[:, c] * codes[:, j]
        S = np.einsum("n,nab->ab", pull, residual)
        inside = hat(D[j])
        outside = np.eye(len(S)) - inside
        H = inside @ S @ outside + outside @ S @ inside
        moved.append(hat(core.proj(inside + t * H / np.abs(pull).sum(), D.shape[2])))
    return np.array(moved)


# ----------------------------------------------------------------------------- the cost


@settings(max_examples=100, deadline=None)
@given(samples_and_atoms(), st.integers(1, 3), betas, st.sampled_from([1e-3, 0.1, 2.0]))
def test_the_cost_never_rises_and_is_that_of_the_atoms(problem, n_classes, beta, ridge):
    X, n_atoms, seed = problem
    y = np.arange(len(X)) % n_classes
    w = np.random.default_rng(seed).uniform(0.1, 2, len(X))
    options = dict(beta=beta, ridge=ridge, n_iter=8, tol=0, sample_weight=w)
    learned = discriminative.discriminative_atoms(X, y, n_atoms, **options, rng=seed)
    assert (np.diff(learned.costs) < 0).all()
    assert learned.n_iter == len(learned.costs) - 1 <= 8
    cost = explicit_cost(X, y, learned.atoms, learned.labels, learned.beta, ridge, w)
    assert abs(cost - learned.costs[-1]) <= LOOSE * len(X) * (1 + learned.beta)
    assert (
        error(np.swapaxes(learned.atoms, 1, 2) @ learned.atoms, np.eye(X.shape[2]))
        <= TIGHT
    )


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("beta", [0.5, 8.0])
@rarely
@given(seed=seeds)
def test_a_step_is_the_projection_that_is_printed(beta, q, seed):
    """For one of the steps t = 1, 1/2, 1/4, ...; atoms of another dimension than the
    samples too.
    """
    D = core.random_subspaces(6, 7, q, rng=q + seed)
    classes, of_atom = np.unique(LABELS, return_inverse=True)
    index = np.searchsorted(classes, Y)
    weights = np.linspace(0.5, 2, 20)
    learned = discriminative.discriminative_atoms(
        SAMPLES,
        Y,
        2,
        beta=beta,
        init=(D, LABELS),
        n_iter=1,
        tol=0,
        sample_weight=weights,
    )
    steps = [
        explicit_step(SAMPLES, index, D, of_atom, beta, RIDGE, weights, 0.5**k)
        for k in range(20)
    ]
    away = [error(hat(learned.atoms), moved) for moved in steps]
    assert min(away) <= LOOSE and np.sort(away)[1] > 100 * LOOSE


def test_the_descent_ends_where_the_cost_is_flat():
    def slopes(D):
        """Changes of the cost along random turns of all atoms."""
        rng = np.random.default_rng(0)
        for _ in range(10):
            turn = 1e-5 * rng.standard_normal(D.shape)
            there, back = (np.linalg.qr(D + sign * turn)[0] for sign in (1, -1))
            costs = [explicit_cost(X, y, Z, of_atom, 3.0, RIDGE) for Z in (there, back)]
            yield abs(costs[0] - costs[1]) / 2e-5

    X = SAMPLES
    y = np.arange(20) % 3
    D = X[:3]
    of_atom = np.arange(3)
    learned = discriminative.discriminative_atoms(
        X, y, 1, beta=3.0, init=(D, of_atom), n_iter=1000, tol=0
    )
    assert max(slopes(learned.atoms)) <= 1e-5 * max(slopes(D))


def test_reasons_to_stop_are_told():
    def stop(**options):
        learned = discriminative.discriminative_atoms(SAMPLES, Y, 2, rng=0, **options)
        return learned.stopped, learned.n_iter

    assert stop(n_iter=3, tol=0) == ("n_iter", 3)
    assert stop(n_iter=0) == ("n_iter", 0)
    assert stop(tol=1e9) == ("tol", 1)
    whole = bases(np.random.default_rng(0), 4, 3, 3)
    learned = discriminative.discriminative_atoms(whole, [0, 1, 0, 1], 1)
    # p = d: one subspace only
    assert (learned.stopped, learned.n_iter) == ("stationary", 0)


def test_errors_of_one_atom_are_known():
    errors, classes = discriminative.ridge_residuals(
        SAMPLES, ATOMS[:3], ["b", "a", "c"], ridge=0.5
    )
    k = core.projection_kernel(SAMPLES, ATOMS[[1, 0, 2]])
    assert classes.tolist() == ["a", "b", "c"]
    assert error(errors, 2 - k**2 / 2.5) <= TIGHT


@settings(max_examples=50, deadline=None)
@given(samples_and_atoms(), st.sampled_from([1e-3, 0.1, 2.0]))
def test_errors_are_those_of_least_squares(problem, ridge):
    X, n_atoms, _ = problem
    labels = np.arange(n_atoms) % 2
    errors, _ = discriminative.ridge_residuals(X, X[:n_atoms], labels, ridge=ridge)
    assert error(errors, explicit_errors(X, X[:n_atoms], labels, ridge)[0]) <= LOOSE
    assert (errors >= 0).all()


# --------------------------------------------------------- what does not change answers


@pytest.mark.parametrize("factor", [2.0**-1000, 1e-300, 1e300])
def test_a_factor_of_all_weights_changes_nothing_in_float32_either(factor):
    weights = np.arange(20) % 3 + 1.0
    options = dict(init=(ATOMS.astype(np.float32), LABELS), n_iter=3, tol=0)
    X = SAMPLES.astype(np.float32)
    usual, other = (
        discriminative.discriminative_atoms(
            X, Y, 2, sample_weight=c * weights, **options
        )
        for c in (1.0, factor)
    )
    assert error(hat(other.atoms), hat(usual.atoms)) <= 1e-4
    assert error(other.costs / factor, usual.costs) <= 1e-4 * usual.costs[0]
    assert abs(other.beta - usual.beta) <= 1e-4 * usual.beta


@pytest.mark.parametrize("beta", [100.0, 300.0])
def test_a_class_far_from_the_others_stops_no_learning_in_float32(beta):
    """Its samples' pull, e^-beta, is below what float32 holds."""
    rng = np.random.default_rng(0)
    axes = np.eye(20)
    left = axes[:, :2]
    right = core.orthonormalize(left + 0.03 * rng.standard_normal((20, 2)))
    centres = np.repeat([left, right, axes[:, 18:]], 30, axis=0)
    spread = np.repeat([0.1, 0.1, 0.01], 30)[:, None, None]
    X = core.orthonormalize(centres + spread * rng.standard_normal(centres.shape))
    labels = np.repeat(["a", "b", "c"], 30)
    single, double = (
        discriminative.discriminative_atoms(
            X.astype(dtype), labels, 2, beta=beta, n_iter=5, rng=0
        )
        for dtype in (np.float32, np.float64)
    )
    assert double.n_iter == single.n_iter == 5 and single.costs[-1] < single.costs[0]
    assert error(single.costs, double.costs) <= 1e-3 * double.costs[0]


def test_a_typical_beta_may_be_given():
    """Gaps between classes may be all but 0."""
    near = ATOMS[:1] + 1e-3 * np.random.default_rng(1).standard_normal((12, 7, 2))
    data = core.orthonormalize(near), ["a", "b"] * 6, 2
    result = discriminative.discriminative_atoms(*data, n_iter=0, rng=0)
    again = discriminative.discriminative_atoms(
        *data, beta=result.beta, n_iter=0, rng=0
    )
    assert again.beta == result.beta == result._replace(costs=result.costs).beta


def test_repetition_acts_as_weight_and_absence_as_none():
    weights = np.array([0, 1, 2, 3] * 5)
    repeated = np.repeat(np.arange(20), weights)
    options = {"n_iter": 12, "tol": 0, "rng": 0}
    weighted = discriminative.discriminative_atoms(
        SAMPLES, Y, 2, sample_weight=weights, **options
    )
    plain = discriminative.discriminative_atoms(
        SAMPLES[repeated], Y[repeated], 2, **options
    )
    assert weighted.labels.tolist() == ["b", "b", "c", "c"]  # "a" has no weight
    assert error(hat(weighted.atoms), hat(plain.atoms)) <= LOOSE
    assert error(weighted.costs, plain.costs) <= LOOSE
    assert abs(weighted.beta - plain.beta) <= LOOSE


def test_the_seed_decides_and_a_result_is_a_start():
    def learn_again(rng, **options):
        return discriminative.discriminative_atoms(
            SAMPLES, Y, 2, rng=rng, n_iter=5, **options
        )

    first = learn_again(3)
    again = learn_again(3)
    assert np.array_equal(first.atoms, again.atoms) and np.array_equal(
        first.costs, again.costs
    )
    on = learn_again(None, init=first, beta=first.beta)
    assert (
        abs(on.costs[0] - first.costs[-1]) <= LOOSE and on.costs[-1] < first.costs[-1]
    )


def test_the_start_is_gdl_with_the_same_codes():
    def code(K_dd, K_xd, norm2):
        return np.linalg.solve(K_dd + RIDGE * np.eye(len(K_dd)), K_xd.T).T

    start = discriminative.discriminative_atoms(SAMPLES, Y, 2, n_iter=0, rng=1)
    gdl = learn.class_dictionaries(SAMPLES, Y, 2, coding=code, rng=1)
    assert error(hat(start.atoms), hat(gdl.atoms)) <= LOOSE
    assert np.array_equal(start.labels, gdl.labels)


def test_only_coordinates_matter():
    """Samples in R^7 or turned into R^2000: the same atoms, turned; so those of a
    kernel's Lift are those of its feature space. No 2000 x 2000 matrix, 32 MB, is
    formed.
    """
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((2000, 7)))[0]
    result = discriminative.discriminative_atoms(SAMPLES, Y, 2, n_iter=10, rng=0)
    tracemalloc.start()
    turned = discriminative.discriminative_atoms(turn @ SAMPLES, Y, 2, n_iter=10, rng=0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error(result.costs, turned.costs) <= LOOSE
    assert error(turn @ hat(result.atoms) @ turn.T, hat(turned.atoms)) <= LOOSE
    assert peak < 20e6


def test_tiles_do_not_matter(monkeypatch):
    X = clusters(np.random.default_rng(3), 300, 6, 2, 9)
    y = np.arange(300) % 3
    options = dict(n_iter=6, rng=0, sample_weight=1 + np.arange(300) // 30)
    whole = discriminative.discriminative_atoms(X, y, 3, **options)
    monkeypatch.setattr(core, "TILE", 1)
    parts = discriminative.discriminative_atoms(X, y, 3, **options)
    assert abs(parts.beta / whole.beta - 1) <= LOOSE
    assert error(hat(whole.atoms), hat(parts.atoms)) <= LOOSE
    assert error(whole.costs, parts.costs) <= LOOSE * whole.costs[0]


def test_float32_stays_float32_and_means_the_same():
    single = SAMPLES.astype(np.float32)
    learned = discriminative.discriminative_atoms(
        single, Y, 2, beta=3.0, n_iter=8, rng=0
    )
    errors, _ = discriminative.ridge_residuals(single, learned.atoms, learned.labels)
    assert learned.atoms.dtype == errors.dtype == np.float32
    classes, index = np.unique(Y, return_inverse=True)
    of_atom = np.searchsorted(classes, learned.labels)
    cost = explicit_cost(
        SAMPLES, index, learned.atoms.astype(float), of_atom, 3.0, RIDGE
    )
    assert abs(cost - learned.costs[-1]) <= 3 * rounding(np.float32)
    assert (np.diff(learned.costs) < 0).all()


def test_arguments_are_not_changed_and_layouts_are_taken():
    X = np.asfortranarray(SAMPLES)
    D = ATOMS.copy()
    for array in (X, D):
        array.setflags(write=False)
    learned = discriminative.discriminative_atoms(X, Y, 2, init=(D, LABELS), n_iter=3)
    plain = discriminative.discriminative_atoms(
        SAMPLES, Y, 2, init=(ATOMS, LABELS), n_iter=3
    )
    assert error(learned.atoms, plain.atoms) <= TIGHT
    assert np.array_equal(X, SAMPLES) and np.array_equal(D, ATOMS)


def test_labels_are_any_hashables():
    named = {"a": (1, "x"), "b": None, "c": frozenset([2])}
    y = [named[label] for label in Y]
    per_class = {(1, "x"): 1, None: 3, frozenset([2]): 2}
    learned = discriminative.discriminative_atoms(
        SAMPLES, y, per_class, n_iter=2, rng=0
    )
    assert {
        label: list(learned.labels).count(label) for label in per_class
    } == per_class


# --------------------------------------------------------------------- degenerate cases


def test_one_class_has_nothing_to_tell_apart():
    learned = discriminative.discriminative_atoms(SAMPLES, ["a"] * 20, 3, rng=0)
    assert learned.costs.tolist() == [0] and learned.stopped == "stationary"
    assert learned.atoms.shape == (3, 7, 2)


@pytest.mark.parametrize("beta", [None, 1e-3, 1e6])
@pytest.mark.parametrize(
    "X",
    [
        np.repeat(SAMPLES[:1], 6, axis=0),  # all equal, in both classes
        np.eye(12).reshape(12, 6, 2).transpose(1, 0, 2),  # all orthogonal
        SAMPLES[[0, 0, 0, 1, 1, 1]],
        np.ones((6, 1, 1)),
    ],
    ids=["equal", "orthogonal", "repeated", "d = 1"],
)
def test_degenerate_samples_give_numbers(X, beta):
    learned = discriminative.discriminative_atoms(
        X, [0, 0, 0, 1, 1, 1], 3, beta=beta, rng=0
    )
    errors, _ = discriminative.ridge_residuals(X, learned.atoms, learned.labels)
    for array in (*learned[:1], learned.costs, errors, learned.beta):
        assert np.isfinite(array).all()
    assert (
        error(np.swapaxes(learned.atoms, 1, 2) @ learned.atoms, np.eye(X.shape[2]))
        <= TIGHT
    )
    assert (np.diff(learned.costs) <= 0).all()


# ------------------------------------------------------------------------ what it earns


def sets_with_a_common_part(n, seed):
    """Subspaces of dimension 2 in R^10, three classes: a direction that varies alike in
    all, and one near the class's own.
    """
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    common = np.zeros((n, 10))
    common[:, :4] = rng.standard_normal((n, 4))
    own = 0.6 * rng.standard_normal((n, 10)) + 2 * np.eye(10)[4 + y]
    return np.linalg.qr(np.stack([common, own], axis=2))[0], y


@pytest.mark.parametrize("m", [1, 2])
def test_fewer_errors_than_gdl_with_as_many_atoms(m):
    X, y = sets_with_a_common_part(90, 0)
    Q, truth = sets_with_a_common_part(600, 1)
    gdl = learn.class_dictionaries(X, y, m, 0.1, rng=0)
    wrong = {"gdl": np.mean(core.classify(Q, gdl.atoms, gdl.labels, lam=0.1) != truth)}
    for name, n_iter in (("start", 0), ("learned", 100)):
        atoms, labels, _ = discriminative.discriminative_atoms(
            X, y, m, n_iter=n_iter, rng=0
        )
        errors, classes = discriminative.ridge_residuals(Q, atoms, labels)
        wrong[name] = np.mean(classes[errors.argmin(axis=1)] != truth)
    assert wrong["learned"] <= 0.75 * min(wrong["gdl"], wrong["start"]), wrong


def test_coordinates_of_a_kernel_are_coordinates():
    """Frames on circles of two radii: one pair of principal directions, yet a kernel
    tells them.
    """
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    angles = rng.uniform(0, 2 * np.pi, (40, 8))
    radius = np.where(y, 2.0, 1.0)[:, None] + 0.1 * rng.standard_normal((40, 8))
    # (40, 8, 2)
    sets = np.stack([radius * np.cos(angles), radius * np.sin(angles)], axis=2)
    lift = kernels.Lift(kernels.rbf(0.5), 3).fit(sets[:20])
    learned = discriminative.discriminative_atoms(
        lift.transform(sets[:20]), y[:20], 1, rng=0
    )
    errors, classes = discriminative.ridge_residuals(
        lift.transform(sets[20:]), learned.atoms, learned.labels
    )
    assert np.mean(classes[errors.argmin(axis=1)] == y[20:]) == 1


# -------------------------------------------------------------------------- wrong input


@pytest.mark.parametrize(
    "options, kind, message",
    [
        ({"beta": 0}, ValueError, r"beta must be in \(0, 1e\+06\], got 0"),
        ({"beta": 1e7}, ValueError, r"beta must be in \(0, 1e\+06\], got 10000000"),
        ({"beta": "hot"}, TypeError, "beta must hold real numbers"),
        ({"ridge": 0}, ValueError, "ridge must be >= 0.0001, got 0"),
        ({"n_iter": -1}, ValueError, "n_iter must be >= 0, got -1"),
        ({"tol": -1}, ValueError, "tol must be >= 0, got -1"),
        ({"rng": "x"}, TypeError, "rng must be None, an integer"),
        (
            {"sample_weight": np.ones(3)},
            ValueError,
            r"sample_weight must have shape \(20,\)",
        ),
        (
            {"sample_weight": -np.ones(20)},
            ValueError,
            "sample_weight must be >= 0 .* got .* -1",
        ),
        (
            {"sample_weight": np.zeros(20)},
            ValueError,
            "sample_weight must be >= 0 and not all zero",
        ),
        (
            {"init": "kmeans"},
            ValueError,
            r"init must be None or a pair \(atoms, labels\), got str",
        ),
        ({"init": ATOMS}, ValueError, r"init must be None or a pair .* got ndarray"),
        (
            {"init": (ATOMS, ["a"] * 6)},
            ValueError,
            r"init must have atoms of each class .* .'a'.",
        ),
        (
            {"init": (ATOMS[:, :6], LABELS)},
            ValueError,
            "init must have orthonormal columns",
        ),
    ],
)
def test_wrong_options_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        discriminative.discriminative_atoms(SAMPLES, Y, 2, **options)


def test_other_wrong_input_is_named():
    with pytest.raises(ValueError, match="atoms_per_class must be >= 1, got 0"):
        discriminative.discriminative_atoms(SAMPLES, Y, 0)
    with pytest.raises(
        ValueError, match="atoms_per_class must have an entry .* none for b"
    ):
        discriminative.discriminative_atoms(SAMPLES, Y, {"a": 1})
    with pytest.raises(
        ValueError, match="y must have length 20, one for each of the samples"
    ):
        discriminative.discriminative_atoms(SAMPLES, Y[:5], 1)
    with pytest.raises(
        ValueError, match="X and init must have the same d, got 7 and 5"
    ):
        wrong = core.random_subspaces(3, 5, 2, rng=0)
        discriminative.discriminative_atoms(
            SAMPLES, Y, 1, init=(wrong, ["a", "b", "c"])
        )
    with pytest.raises(ValueError, match="ridge must be >= 0.0001, got 0"):
        discriminative.ridge_residuals(SAMPLES, ATOMS, LABELS, ridge=0)
    with pytest.raises(ValueError, match="labels must have length 6"):
        discriminative.ridge_residuals(SAMPLES, ATOMS, LABELS[:2])


def test_tol_is_of_a_sample_however_many_there_are():
    """Repeated samples change nothing, not even where the descent stops."""
    X = core.random_subspaces(12, 8, 2, rng=0)
    y = np.arange(12) % 2
    init = X[:4], y[:4]
    options = dict(init=init, beta=2.0, tol=3e-3)
    once = discriminative.discriminative_atoms(X, y, 2, **options)
    many = discriminative.discriminative_atoms(
        np.tile(X, (64, 1, 1)), np.tile(y, 64), 2, **options
    )
    assert once.stopped == many.stopped == "tol"
    assert once.n_iter == many.n_iter
