"""Laws of gDL: the cost, unused atoms, first atoms, reasons to stop, codings, weights,
classes.
"""

import functools
import itertools
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings

import grassmann_sc as core
from grassmann_sc import kernels, learn
from grassmann_sc.large import streams
from grassmann_sc.strategies import bases
from oracles import (
    LOOSE,
    TIGHT,
    clusters,
    error,
    explicit_cost,
    hat,
    rarely,
    samples_and_atoms,
    seeds,
)

lams = st.sampled_from(
    [1e-3, 0.1, 0.5, 1.5]
)  # lam = 0 among nearly equal atoms gives codes, and rounding, of any size
SOME = core.random_subspaces(9, 5, 2, rng=3)
SMALL = clusters(np.random.default_rng(1), 24, 6, 2, 4)


# ---------------------------- the cost


@settings(max_examples=150, deadline=None)
@given(samples_and_atoms(), lams, st.sampled_from(["kmeans++", "random"]))
def test_gdl_cost_never_rises_at_either_half_step(problem, lam, init):
    X, n_atoms, seed = problem
    costs = learn.gdl(X, n_atoms, lam, init=init, n_iter=6, tol=0, rng=seed).costs
    assert len(costs) % 2 == 1 and len(costs) > 2
    assert (np.diff(costs) <= TIGHT * X.shape[2] * len(X)).all(), np.diff(costs).max()


@pytest.mark.parametrize("seed", range(5))
def test_gdl_cost_never_rises_without_penalty(seed):
    X = core.random_subspaces(12, 6, 2, rng=seed)
    costs = learn.gdl(X, 4, 0.0, n_iter=6, tol=0, rng=seed).costs
    assert (np.diff(costs) <= TIGHT * 24).all() and costs[-1] < 0.9 * costs[0]


@settings(max_examples=15, deadline=None)
@given(seeds)
def test_gdl_cost_never_rises_for_large_d(seed):
    X = clusters(np.random.default_rng(seed), 20, 80, 3, 4)
    for coding in (dict(lam=0.2), dict(lam=0.2, positive=True), dict(n_neighbors=2)):
        costs = learn.gdl(X, 5, n_iter=4, tol=0, rng=seed, **coding).costs
        falls = np.diff(costs)[::2] if "n_neighbors" in coding else np.diff(costs)
        assert (falls <= TIGHT * costs[0]).all()


@settings(max_examples=100, deadline=None)
@given(samples_and_atoms(), lams)
def test_the_last_cost_is_that_of_the_returned_atoms_and_codes(problem, lam):
    X, n_atoms, seed = problem
    atoms, codes, costs = learn.gdl(X, n_atoms, lam, n_iter=4, rng=seed)
    assert abs(costs[-1] - explicit_cost(X, atoms, codes, lam)) <= LOOSE * X.shape[
        2
    ] * len(X)
    assert codes.shape == (len(X), n_atoms)
    best = explicit_cost(X, atoms, core.gsc(X, atoms, lam), lam)
    assert abs(costs[-1] - best) <= LOOSE * X.shape[2] * len(X)


@settings(max_examples=100, deadline=None)
@given(samples_and_atoms(), st.integers(1, 5))
def test_local_coding_keeps_its_constraint_and_its_cost(problem, n_neighbors):
    X, n_atoms, seed = problem
    n_neighbors = min(n_neighbors, n_atoms)
    atoms, codes, costs = learn.gdl(
        X, n_atoms, n_neighbors=n_neighbors, n_iter=3, tol=0, rng=seed
    )
    assert abs(costs[-1] - explicit_cost(X, atoms, codes)) <= LOOSE * X.shape[2] * len(
        X
    ) * max(1, np.abs(codes).max() ** 2)
    assert error(codes.sum(axis=1), 1) <= LOOSE * max(1, np.abs(codes).max())
    assert ((codes != 0).sum(axis=1) <= n_neighbors).all()
    assert error(np.swapaxes(atoms, 1, 2) @ atoms, np.eye(X.shape[2])) <= TIGHT


# ---------------------------- unused atoms


def test_gdl_replaces_an_unused_atom_by_the_sample_coded_worst():
    """Samples in span(e1..e4) of R^6, the last atom orthogonal to all: it must go, and
    the cost must fall all the same.
    """
    X = np.zeros((8, 6, 2))
    X[:, :4] = core.random_subspaces(8, 4, 2, rng=0)
    useless = np.eye(6)[None, :, 4:]
    init = np.concatenate([X[:2], useless])
    _, codes, _ = learn.gdl(X, 3, 0.1, init=init, n_iter=0)
    assert not codes[:, 2].any()
    updated = learn.update_atoms(X, init, codes)
    losses = [
        explicit_cost(X[i : i + 1], updated, codes[i : i + 1], 0.1) for i in range(8)
    ]
    atoms, codes, costs = learn.gdl(X, 3, 0.1, init=init, n_iter=1)
    assert error(hat(atoms[2]), hat(X[np.argmax(losses)])) <= TIGHT
    assert codes[:, 2].any() and (np.diff(costs) <= TIGHT).all()


@pytest.mark.parametrize("coding", [{"lam": 0.1}, {"lam": 100.0}, {"n_neighbors": 2}])
def test_repeated_samples_are_legal(coding):
    """As many atoms as samples, all samples equal; and a lam that leaves every atom
    unused.
    """
    X = np.repeat(SOME[:1], 5, axis=0)
    atoms, codes, costs = learn.gdl(X, 5, n_iter=3, tol=0, rng=0, **coding)
    assert np.isfinite(codes).all() and error(hat(atoms), hat(X)) <= TIGHT
    assert (np.diff(costs) <= TIGHT * 10).all()


def test_several_unused_atoms_become_samples_that_differ():
    X = np.zeros((8, 8, 2))
    X[:, :4] = core.random_subspaces(8, 4, 2, rng=0)
    useless = np.stack([np.eye(8)[:, 4:6], np.eye(8)[:, 6:]])
    result = learn.gdl(X, 4, 0.1, init=np.concatenate([X[:2], useless]), n_iter=1)
    assert result.n_replaced == 2
    assert not np.array_equal(result.atoms[2:], useless)
    assert core.projection_kernel(result.atoms[2:])[0, 1] < 2 - LOOSE


def test_replacements_are_the_worst_samples_no_two_equal_while_others_are_left():
    # other bases of the first two
    turned = SOME[:2] @ np.array([[0.6, -0.8], [0.8, 0.6]])
    X = np.concatenate([SOME[:2], turned, SOME[2:4]])
    losses = np.array([3.0, 2.0, 3.5, 2.5, 1.0, -np.inf])
    use = np.array([0, 5.0, 1e-6 * 5, 0, 2e-5])
    idle, worst = learn.idle_and_worst(use, X, losses)
    assert idle.tolist() == [0, 2, 3] and worst == [2, 3, 4]
    _, worst = learn.idle_and_worst(np.array([0, 0, 0, 0, 1]), X, losses)
    assert worst == [2, 3, 4, 2]  # no other is left


# ---------------------------- first atoms


@settings(max_examples=60, deadline=None)
@given(samples_and_atoms(), st.sampled_from(["kmeans++", "random"]))
def test_first_atoms_are_samples_each_drawn_once(problem, method):
    X, n_atoms, seed = problem
    # no two are equal
    X = bases(np.random.default_rng(seed), len(X), 1 + X.shape[1], X.shape[2])
    atoms = learn.init_atoms(X, n_atoms, method, rng=seed)
    at = [[np.array_equal(atom, x) for x in X].index(True) for atom in atoms]
    assert len(set(at)) == n_atoms


@pytest.mark.parametrize("seed", range(10))
def test_kmeans_plus_plus_covers_clusters(seed):
    rng = np.random.default_rng(seed)
    X = clusters(rng, 60, 10, 2, 6)
    X = np.concatenate([X, X[:40:6]])  # one cluster is larger
    atoms = learn.init_atoms(X, 6, rng=rng)
    assert len(set(core.projection_kernel(atoms, X[:6]).argmax(axis=1))) == 6


def test_kmeans_plus_plus_draws_repeated_samples_only_when_nothing_else_is_left():
    X = np.concatenate([np.repeat(SOME[:1], 50, axis=0), SOME[1:4]])
    atoms = learn.init_atoms(X, 5, rng=0)
    assert core.projection_kernel(SOME[:4], atoms).max(axis=1).min() > 2 - LOOSE


@given(samples_and_atoms())
def test_kmeans_costs_no_more_than_its_start(problem):
    X, n_atoms, seed = problem
    costs = []
    for method in ("kmeans++", "kmeans"):
        atoms = learn.init_atoms(X, n_atoms, method, rng=seed)
        costs.append(-core.projection_kernel(X, atoms).max(axis=1).sum())
    assert costs[1] <= costs[0] + TIGHT * len(X) * X.shape[2]


def test_kmeans_finds_the_chordal_means_of_clusters():
    atoms = learn.init_atoms(SMALL, 4, "kmeans", rng=0)
    means = np.stack([core.chordal_mean(SMALL[c::4]) for c in range(4)])
    assert core.projection_kernel(means, atoms).max(axis=1).min() >= 2 - LOOSE


# ---------------------------- interface


def test_rng_makes_results_repeatable():
    first, again, other = (
        learn.gdl(SOME, 3, 0.1, n_iter=2, rng=rng)
        for rng in (5, np.random.default_rng(5), 6)
    )
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not np.array_equal(first.atoms, other.atoms)


def test_given_atoms_are_where_learning_starts():
    init = core.random_subspaces(4, 5, 2, rng=8)
    atoms, codes, costs = learn.gdl(SOME, 4, 0.1, init=init, n_iter=0)
    assert np.array_equal(atoms, init) and len(costs) == 1
    assert (
        abs(costs[0] - explicit_cost(SOME, init, core.gsc(SOME, init, 0.1), 0.1))
        <= LOOSE
    )


def test_learning_goes_on_where_it_stopped():
    whole = learn.gdl(SOME, 3, 0.1, n_iter=4, tol=0, rng=0)
    half = learn.gdl(SOME, 3, 0.1, n_iter=2, tol=0, rng=0)
    rest = learn.gdl(SOME, 3, 0.1, init=half.atoms, n_iter=2, tol=0)
    assert error(whole.costs, [*half.costs, *rest.costs[1:]]) <= LOOSE


def test_learning_stops_when_the_cost_hardly_falls():
    costs = learn.gdl(SOME, 3, 0.1, n_iter=500, tol=1e-3, rng=0).costs
    falls = (costs[:-2:2] - costs[2::2]) / costs[:-2:2]
    assert len(costs) < 1000 and falls[-1] <= 1e-3 and (falls[:-1] > 1e-3).all()


def test_a_cost_that_stays_the_same_is_a_reason_to_stop_whatever_tol():
    axes = np.eye(4)[:, :, None]
    learned = learn.gdl(np.repeat(axes, 2, axis=0), 4, 0.5, init=axes, tol=0)
    assert learned.costs.tolist() == [3.5, 3.5, 3.5]
    assert learned.stopped == "tol" and learned.n_iter == 1


def test_every_reason_to_stop_is_reached():
    stop = functools.partial(learn.gdl, SMALL, 4, 0.2, rng=0)
    assert (
        stop(n_iter=2, tol=0).stopped == "n_iter" and stop(n_iter=2, tol=0).n_iter == 2
    )
    assert stop(n_iter=500, tol=1e-2).stopped == "tol"
    seen = []
    result = stop(
        tol=0, callback=lambda state: seen.append(state.costs[-1]) or state.n_iter == 3
    )
    assert (
        result.stopped == "callback" and len(seen) == 3 and seen[-1] == result.costs[-1]
    )

    def interrupt(state):
        if state.n_iter == 2:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="after 2 of 20 iterations"):
        result = stop(tol=0, callback=interrupt)
    assert result.stopped == "interrupted" and np.array_equal(
        result.costs, stop(n_iter=2, tol=0).costs
    )


@pytest.mark.filterwarnings("ignore:interrupted")
def test_ctrl_c_in_a_part_of_the_learning_ends_all_of_it(monkeypatch):
    def interrupt(state):
        raise KeyboardInterrupt

    def interrupt_later(*arguments):
        done.append(arguments)
        if len(done) == 2:
            raise KeyboardInterrupt
        return losses(*arguments)

    done = []
    losses = learn.sample_losses
    y = np.arange(len(SMALL)) % 2
    with pytest.raises(KeyboardInterrupt):
        learn.class_dictionaries(SMALL, y, 2, 0.2, rng=0, callback=interrupt)
    monkeypatch.setattr(learn, "sample_losses", interrupt_later)  # in k-means
    with pytest.raises(KeyboardInterrupt):
        learn.gdl(SMALL, 4, 0.2, init="kmeans", rng=0)


def test_ctrl_c_returns_the_best_where_a_coding_may_raise_the_cost():
    calls = []

    def code(K_dd, K_xd, norm2):
        calls.append(True)
        shrink = 1 if len(calls) == 3 else 0.1
        return shrink * np.eye(len(K_dd))[K_xd.argmax(axis=1)]

    seen = []

    def interrupt(state):
        seen.append(state)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.warns(
        UserWarning, match="best dictionary so far is returned, after 2 of 20"
    ):
        result = learn.gdl(SMALL, 4, coding=code, tol=0, rng=0, callback=interrupt)
    ends = [state.costs[-1] for state in seen]
    assert ends[1] < min(ends[0], ends[2])
    assert np.array_equal(result.costs, seen[1].costs)
    assert np.array_equal(result.atoms, seen[1].atoms)


def test_clusters_are_found():
    X = clusters(np.random.default_rng(0), 40, 8, 2, 4)
    atoms, _, _ = learn.gdl(X, 4, 0.1, rng=0)
    assert core.projection_kernel(X, atoms).max(axis=1).min() > 1.98


@pytest.mark.parametrize("coding", [{"lam": 0.1}, {"n_neighbors": 2}])
def test_float32_stays_float32_and_costs_do_not_rise(coding):
    atoms, codes, costs = learn.gdl(
        SOME.astype(np.float32), 3, rng=0, n_iter=3, **coding
    )
    assert atoms.dtype == codes.dtype == np.float32 and costs.dtype == np.float64
    twin = learn.gdl(SOME, 3, rng=0, n_iter=3, **coding)
    assert error(hat(atoms), hat(twin.atoms)) <= 1e5 * LOOSE
    if "lam" in coding:
        assert (np.diff(costs) <= 1e2 * LOOSE * costs[0]).all()


def test_atoms_are_orthonormal_for_d_above_the_number_of_directions():
    # the update works in the span of 4 x 2 directions
    X = core.random_subspaces(4, 60, 2, rng=0)
    atoms, codes, costs = learn.gdl(X, 2, 0.1, rng=0)
    assert error(np.swapaxes(atoms, 1, 2) @ atoms, np.eye(2)) <= TIGHT
    assert abs(costs[-1] - explicit_cost(X, atoms, codes, 0.1)) <= LOOSE


def test_the_callers_arrays_are_not_changed():
    X = SOME.copy()
    init = core.random_subspaces(3, 5, 2, rng=8)
    codes = np.ones((9, 3))
    for array in (X, init, codes):
        array.flags.writeable = False
    learn.update_atoms(X, init, codes)
    atoms = learn.gdl(X, 3, 0.1, init=init, n_iter=2).atoms
    kept = learn.gdl(X, 3, 0.1, init=init, n_iter=0).atoms
    first = learn.init_atoms(X, 3)
    assert not any(
        np.shares_memory(a, b) for a in (atoms, kept, first) for b in (X, init)
    )
    assert np.array_equal(X, SOME)


def test_the_callers_atoms_stay_as_rough_as_they_were():
    """Those that just may enter are made orthonormal to rounding in a copy."""
    D = (1 + 1e-8) * core.random_subspaces(3, 5, 2, rng=8)
    before = D.copy()
    learn.update_atoms(SOME, D, np.ones((9, 3)))
    learn.gdl(SOME, 3, 0.1, init=D, n_iter=1)
    assert np.array_equal(D, before)


def test_layouts_and_byte_orders_are_taken_alike():
    want = learn.gdl(SOME, 3, 0.1, n_iter=2, rng=0).atoms
    strided = np.zeros((18, 5, 2))
    strided[::2] = SOME
    for X in (np.asfortranarray(SOME), strided[::2], SOME.astype(">f8")):
        assert error(learn.gdl(X, 3, 0.1, n_iter=2, rng=0).atoms, want) <= LOOSE


def test_results_can_be_pickled():
    result = learn.gdl(SMALL, 4, 0.2, n_iter=1, rng=0)
    again = pickle.loads(pickle.dumps(result))
    assert again.stopped == "n_iter" and np.array_equal(again.atoms, result.atoms)


def test_progress_is_a_line_with_the_cost(capsys, monkeypatch):
    learned = learn.gdl(SMALL, 4, 0.2, n_iter=2, tol=0, rng=0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("time.monotonic", itertools.count().__next__)
    learn.gdl(SMALL, 4, 0.2, n_iter=2, tol=0, rng=0, progress=True)
    written = capsys.readouterr().err
    assert written.startswith("\rgdl, iterations: ")
    last = f"\rgdl, iterations: 2 of 2, 0 s left, cost {learned.costs[-1]:.6g}"
    assert written.endswith(f"{last:<71}\n")


# ---------------------------- codings


def test_codings_by_number_and_by_function():
    local = learn.gdl(SMALL, 4, n_neighbors=2, n_iter=2, rng=0)
    coding = functools.partial(core.locality_codes, n_neighbors=2)
    by_function = learn.gdl(SMALL, 4, coding=coding, n_iter=2, rng=0)
    assert np.array_equal(by_function.atoms, local.atoms)


def test_positive_codes_are_positive():
    assert learn.gdl(SMALL, 6, 0.05, positive=True, n_iter=2, rng=0).codes.min() >= 0


# ---------------------------- relative lambda


@pytest.mark.parametrize("positive", [False, True])
def test_a_relative_lambda_is_the_median_of_lam_max_over_the_first_atoms(positive):
    weights = np.arange(24) % 3
    first = learn.init_atoms(SMALL, 4, rng=5, sample_weight=weights)
    many = np.repeat(SMALL, weights, axis=0)
    lam = 0.3 * np.median(core.lam_max(core.projection_kernel(many, first)))
    options = dict(positive=positive, n_iter=3, sample_weight=weights)
    relative = learn.gdl(SMALL, 4, 0.3, lam_scale="max", rng=5, **options)
    assert relative.lam == pytest.approx(lam, rel=1e-14)
    assert (
        error(relative.costs, learn.gdl(SMALL, 4, lam, init=first, **options).costs)
        <= LOOSE
    )


def test_one_relative_lambda_suits_every_scale_of_samples():
    """In lifted coordinates, streams and classes too; the result tells the lambda."""
    sets = np.random.default_rng(0).standard_normal((12, 4, 5))
    lifted = learn.kgdl(sets, 3, 0.2, lift=SquareLift(), lam_scale="max", rng=0)
    twin = learn.gdl(SquareLift().transform(sets), 3, lifted.lam, rng=0)
    assert np.array_equal(lifted.atoms, twin.atoms)
    stream = streams.OnlineGDL(4, 0.3, lam_scale="max", init=SMALL[:4])
    stream.partial_fit(SMALL).partial_fit(SMALL[:9])
    k = core.projection_kernel(SMALL, SMALL[:4])
    assert stream.lam == pytest.approx(0.3 * np.median(core.lam_max(k)), rel=1e-14)
    classes = learn.class_dictionaries(
        SMALL, np.arange(24) % 2, 2, 0.3, lam_scale="max", rng=0
    )
    assert 0 < classes.lam <= 0.3 * 2 * 2
    assert learn.gdl(SMALL, 4, 0.2, n_iter=1).lam == 0.2
    assert learn.gdl(SMALL, 4, n_neighbors=2, n_iter=1).lam is None


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2, 0.5, 1, 1])])
def test_first_atoms_are_drawn_by_squared_distances_from_those_before(weights):
    """The odds of each sequence of three samples are products of those of its steps,
    though many candidates are drawn at a time.
    """
    X = core.random_subspaces(5, 4, 1, rng=3)
    square = core.chordal_distance(X) ** 2
    w = np.ones(5) if weights is None else weights
    expected = np.zeros((5, 5, 5))
    for i, j in itertools.permutations(range(5), 2):
        second = w * square[i]
        third = w * np.minimum(square[i], square[j])
        expected[i, j] = w[i] / w.sum() * second[j] / second.sum() * third / third.sum()
    rng = np.random.default_rng(0)
    n_draws = 4000
    found = np.zeros((5, 5, 5))
    for _ in range(n_draws):
        atoms = learn.init_atoms(X, 3, rng=rng, sample_weight=weights)
        found[tuple(core.projection_kernel(atoms, X).argmax(axis=1))] += 1
    possible = expected > 1e-12
    assert not found[~possible].any()
    error_of = (found - n_draws * expected)[possible] ** 2 / (
        n_draws * expected[possible]
    )
    assert error_of.sum() < scipy.stats.chi2.ppf(1 - 1e-6, possible.sum() - 1)


# ---------------------------- weights


@pytest.mark.parametrize("factor", [0.3, 1e30, 1e-300])
def test_a_factor_of_all_weights_does_not_change_lambda_where_the_median_is_a_tie(
    factor,
):
    for seed in range(20):
        weights = np.random.default_rng(seed).integers(0, 4, 24).astype(float)
        options = dict(lam_scale="max", init=SMALL[:3], n_iter=0)
        lams = [
            learn.gdl(SMALL, 3, 0.2, sample_weight=w, **options).lam
            for w in (weights, factor * weights)
        ]
        assert abs(lams[1] - lams[0]) <= TIGHT


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**1018])
def test_a_factor_of_all_weights_draws_the_same_first_atoms(factor):
    """And weights that no common unit could hold draw from all samples."""
    weights = np.arange(len(SMALL)) % 3 + 1.0
    usual = learn.init_atoms(SMALL, 4, rng=0, sample_weight=weights)
    drawn = learn.init_atoms(SMALL, 4, rng=0, sample_weight=factor * weights)
    assert np.array_equal(drawn, usual)
    for least in (1e-320, 5e-324, 1e-31):
        weights = np.array([1e300, 1e300, least, least, least])
        atoms = learn.init_atoms(SMALL[:5], 5, rng=0, sample_weight=weights)
        assert len(np.unique(atoms, axis=0)) == 5


@pytest.mark.parametrize("init", ["kmeans++", "random", "kmeans"])
@pytest.mark.parametrize("coding", [dict(lam=0.2), dict(n_neighbors=2)])
def test_integer_weights_are_repetitions_and_zero_is_absence(init, coding):
    weights = np.random.default_rng(0).integers(0, 4, len(SMALL))
    weights[:4] = 1, 2, 3, 1
    one = learn.gdl(
        SMALL, 4, init=init, n_iter=3, tol=0, sample_weight=weights, rng=5, **coding
    )
    many = learn.gdl(
        np.repeat(SMALL, weights, axis=0),
        4,
        init=init,
        n_iter=3,
        tol=0,
        rng=5,
        **coding,
    )
    assert error(one.costs[[0, -1]], many.costs[[0, -1]]) <= LOOSE * one.costs[0]
    assert error(hat(one.atoms), hat(many.atoms)) <= 1e3 * LOOSE
    assert error(np.repeat(one.codes, weights, axis=0), many.codes) <= 1e3 * LOOSE


# ---------------------------- kernels and classes


class SquareLift:
    """The polynomial kernel (x^T y)^2, in its exact coordinates x x^T; a stand-in for
    kernels.Lift.
    """

    def fit(self, sets):
        return self

    def transform(self, sets):
        return np.stack(
            [
                np.linalg.qr(np.einsum("ia,ib->abi", F, F).reshape(-1, len(F)))[0][
                    :, :2
                ]
                for F in sets
            ]
        )


@rarely
@given(seed=seeds)
def test_kgdl_is_gdl_on_the_coordinates_of_the_lift(seed):
    sets = np.random.default_rng(seed).standard_normal((12, 4, 5))
    learned = learn.kgdl(sets, 3, 0.1, lift=SquareLift(), rng=0)
    twin = learn.gdl(SquareLift().transform(sets), 3, 0.1, rng=0)
    assert np.array_equal(learned.atoms, twin.atoms) and learned.atoms.shape == (
        3,
        25,
        2,
    )
    assert (np.diff(learned.costs) <= TIGHT * learned.costs[0]).all()


def test_class_dictionaries_classify_with_fewer_atoms():
    rng = np.random.default_rng(0)
    X = clusters(rng, 60, 12, 2, 6)
    y = np.array(list("abc"))[np.arange(60) % 3]
    atoms, labels = learn.class_dictionaries(X, y, 2, 0.1, rng=0)
    assert labels.tolist() == list("aabbcc")
    assert (core.classify(X, atoms, labels, lam=0.1) == y).all()
    assert learn.class_dictionaries(
        X, y, {"a": 1, "b": 3, "c": 100}, 0.1
    ).labels.tolist() == ["a"] + 3 * ["b"] + 20 * ["c"]


@pytest.mark.parametrize("seed", [6, 12, 35])
def test_codes_of_samples_without_weight_are_of_the_atoms_returned(seed):
    """Also where an atom that such samples alone use was replaced."""
    rng = np.random.default_rng(seed)
    X = core.random_subspaces(20, 6, 2, rng=rng)
    weights = (rng.random(20) < 0.4).astype(float)
    weights[0] = 1
    options = dict(init=X[:8], sample_weight=weights, n_iter=3, tol=0)
    learned = learn.gdl(X, 8, 0.8, **options)
    assert learned.n_replaced > 0
    for i in range(20):
        best = core.gsc(X[i : i + 1], learned.atoms, 0.8)
        assert explicit_cost(
            X[i : i + 1], learned.atoms, learned.codes[i : i + 1], 0.8
        ) <= (explicit_cost(X[i : i + 1], learned.atoms, best, 0.8) + LOOSE)


def test_of_a_class_of_few_atoms_all_are_near():
    y = [0] * 23 + [1]
    atoms, labels = learn.class_dictionaries(
        SMALL, y, 3, n_neighbors=2, n_iter=2, rng=0
    )
    assert labels.tolist() == [0, 0, 0, 1]
    assert error(core.bases_gram(atoms[3:], SMALL[23:]), [[2.0]]) < LOOSE


@rarely
@given(seed=seeds)
def test_atoms_of_a_class_are_those_of_gdl_on_its_weighted_samples(seed):
    y = np.arange(24) % 3
    weights = np.random.default_rng(seed).integers(0, 4, 24)
    weights[:9] += 1  # three samples of each class are there
    found = learn.class_dictionaries(
        SMALL,
        y,
        3,
        0.2,
        lam_scale="max",
        sample_weight=weights,
        rng=np.random.default_rng(5),
    )
    rng = np.random.default_rng(5)
    lams = []
    for c in range(3):
        mine = (y == c) & (weights > 0)
        one = learn.gdl(
            SMALL[mine], 3, 0.2, lam_scale="max", sample_weight=weights[mine], rng=rng
        )
        assert np.array_equal(found.atoms[found.labels == c], one.atoms)
        lams.append(one.lam)
    assert found.lam == sorted(lams)[1]


# ---------------------------- errors


@pytest.mark.parametrize(
    "options, message",
    [
        (
            dict(),
            "give either lam or n_neighbors, got lam = None and n_neighbors = None",
        ),
        (dict(lam=0.1, n_neighbors=2), "got lam = 0.1 and n_neighbors = 2"),
        (dict(lam=-1.0), "lam must be .* got -1.0"),
        (dict(lam=float("nan")), "lam must be finite, got nan"),
        (dict(n_neighbors=4), r"n_neighbors must be in 1\.\.3, got 4"),
        (dict(n_neighbors=0), r"n_neighbors must be in 1\.\.3, got 0"),
        (dict(lam=0.1, init="best"), "'kmeans\\+\\+' or 'random', got 'best'"),
        (
            dict(lam=0.1, init=SOME[:2]),
            r"init must have shape \(3, 5, 2\), got \(2, 5, 2\)",
        ),
        (
            dict(lam=0.1, init=2 * SOME[:3]),
            "init must have orthonormal columns: .* differs from I by 3",
        ),
        (dict(lam=0.1, n_iter=-1), "n_iter must be >= 0, got -1"),
        (dict(lam=0.1, tol=-1e-3), "tol must be >= 0, got -0.001"),
        (dict(lam=[0.1, 0.2]), r"lam must be one number, got shape \(2,\)"),
    ],
)
def test_gdl_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        learn.gdl(SOME, 3, **options)


@pytest.mark.parametrize("init", ["kmeans++", SOME])
@pytest.mark.parametrize("n_atoms", [0, 10])
def test_gdl_refuses_a_number_of_atoms(n_atoms, init):
    with pytest.raises(
        ValueError,
        match=rf"n_atoms must be (in 1\.\.9|>= 1), got {n_atoms}|"
        rf"init must have shape \({n_atoms}, 5, 2\)",
    ):
        learn.gdl(SOME, n_atoms, 0.1, init=init)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (
            lambda: learn.gdl(SOME, 2.5, 0.1),
            TypeError,
            "n_atoms must be an integer, got 2.5",
        ),
        (
            lambda: learn.gdl(SOME, 2.5, 0.1, init=SOME),
            TypeError,
            "n_atoms must be an integer, got 2.5",
        ),
        (
            lambda: learn.gdl(SOME, 3, 0.1, n_iter=2.5),
            TypeError,
            "n_iter must be an integer, got 2.5",
        ),
        (
            lambda: learn.gdl(SOME[0], 3, 0.1),
            ValueError,
            r"X must have 3 dimensions .* got shape \(5, 2\)",
        ),
        (
            lambda: learn.gdl(1j * SOME, 3, 0.1),
            TypeError,
            "X must hold real numbers, got dtype complex128",
        ),
        (
            lambda: learn.gdl(SOME[:0], 1, 0.1),
            ValueError,
            r"X must hold at least one .* got shape \(0, 5, 2\)",
        ),
        (
            lambda: learn.init_atoms(SOME, 3, "worst"),
            ValueError,
            "method must be 'kmeans', 'kmeans\\+\\+' or 'random', got 'worst'",
        ),
        (
            lambda: learn.init_atoms(SOME, 10),
            ValueError,
            r"n_atoms must be in 1\.\.9, got 10",
        ),
        (
            lambda: learn.update_atoms(SOME, SOME[:3, :, :1], np.ones((9, 3))),
            ValueError,
            "D must have the p of X, got 1 and 2",
        ),
        (
            lambda: learn.update_atoms(SOME, SOME[:3], np.ones((3, 9))),
            ValueError,
            r"codes must have shape \(9, 3\), got \(3, 9\)",
        ),
        (
            lambda: learn.update_atoms(SOME, SOME[:3], np.full((9, 3), np.nan)),
            ValueError,
            "codes must be finite, got nan",
        ),
        (
            lambda: learn.update_atoms(
                SOME, core.random_subspaces(3, 6, 2), np.ones((9, 3))
            ),
            ValueError,
            "same d, got 5 and 6",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(
    "options, message",
    [
        (
            dict(lam=0.1, coding="best"),
            "coding must be a function or None, got 'best'",
        ),
        (
            dict(n_neighbors=2, positive=True),
            "positive and lam_scale belong to sparse coding",
        ),
        (
            dict(coding=core.locality_codes, n_neighbors=2),
            "must be left to the function",
        ),
        (
            dict(coding=lambda K, k, norm2: k[:1]),
            r"coding\(K_dd, K_xd, norm2=p\) must have shape \(24, 4\), got \(1, 4\)",
        ),
        (
            dict(lam=0.1, sample_weight=np.ones(3)),
            r"sample_weight must have shape \(24,\), one a sample, got \(3,\)",
        ),
        (
            dict(lam=0.1, sample_weight=np.zeros(24)),
            "sample_weight must be >= 0 and not all zero, and of a finite sum, got a least weight "
            "of 0",
        ),
        (dict(lam=0.1, sample_weight=-np.ones(24)), "got a least weight of -1"),
        (
            dict(lam=0.1, sample_weight=np.full(24, 1e308)),
            "of a finite sum, .* a sum of inf",
        ),
    ],
)
def test_gdl_refuses_options(options, message):
    with pytest.raises(ValueError, match=message):
        learn.gdl(SMALL, 4, **options)


def test_functions_objects_and_mappings_are_checked():
    with pytest.raises(TypeError, match="callback must be a function or None, got 3"):
        learn.gdl(SMALL, 4, 0.2, callback=3)
    with pytest.raises(TypeError, match="lift must have fit.* got None"):
        learn.kgdl(SMALL, 4, 0.2, lift=None)
    with pytest.raises(TypeError, match="lift must have fit.sets. and .*, got <class"):
        learn.kgdl(SMALL, 4, 0.2, lift=kernels.Lift)
    with pytest.raises(
        ValueError, match="atoms_per_class must have an entry .* none for 1"
    ):
        learn.class_dictionaries(SMALL, np.arange(24) % 2, {0: 2}, 0.2)
    with pytest.raises(
        ValueError, match="y must have length 24, one for each of the samples"
    ):
        learn.class_dictionaries(SMALL, [0] * 23, 2, 0.2)
    with pytest.raises(ValueError, match="n_neighbors must be >= 1, got 0"):
        learn.class_dictionaries(SMALL, np.arange(24) % 2, 2, n_neighbors=0)
    with pytest.raises(TypeError, match="class_dictionaries has no option resume"):
        learn.class_dictionaries(
            SMALL, np.arange(24) % 2, 2, 0.2, resume="checkpoint.npz"
        )
    with pytest.raises(ValueError, match="left to the function"):
        learn.gdl(SMALL, 4, 0.2, coding=core.locality_codes, lam_scale="max")
    with pytest.raises(ValueError, match="lam_scale must be None or 'max', got 'min'"):
        learn.gdl(SMALL, 4, 0.2, lam_scale="min")


def test_what_was_learned_is_told_in_a_line_that_holds_no_array():
    X = np.asarray(SMALL)
    learned = learn.gdl(X, 3, 0.1, n_iter=2, rng=0)
    n, d, p = X.shape
    told = repr(learned)
    assert told == (
        f"Learned(3 atoms of dimension {p} in R^{d}; codes of {n} samples; cost "
        f"{learned.costs[-1]:.6g} after 2 iterations, lam=0.1, stopped by 'n_iter')"
    )
    assert repr(pickle.loads(pickle.dumps(learned))) == told
    local = learn.gdl(X, 3, n_neighbors=2, n_iter=0, rng=0)
    assert "lam" not in repr(local) and "after 0 iterations" in repr(local)
    by_class = learn.class_dictionaries(X, np.arange(n) % 2, 2, 0.1, n_iter=1, rng=0)
    words = f"4 atoms of dimension {p} in R^{d} of 2 classes"
    assert repr(by_class) == f"LabelledAtoms({words})"
