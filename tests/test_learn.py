"""Laws of dictionary learning, against explicit d x d projectors."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as core
import learn
from strategies import KINDS, LOOSE, TIGHT, bases, error, seeds, sizes


def hat(X):
    return X @ np.swapaxes(X, -1, -2)


def explicit_cost(X, D, codes, lam=0.0):
    """sum_i ||X_i^ - sum_j y_ij D_j^||_F^2 + lam ||y_i||_1 with d x d matrices."""
    R = hat(X) - np.einsum("nj,jab->nab", codes, hat(D))
    return (R ** 2).sum() + lam * np.abs(codes).sum()


def clusters(rng, n, d, p, n_clusters):
    """n subspaces close to n_clusters centres, taken in turn."""
    centres = bases(rng, n_clusters, d, p)
    return np.linalg.qr(centres[np.arange(n) % n_clusters] + 0.01 * rng.standard_normal((n, d, p)))[0]


@st.composite
def samples(draw):
    """(X, n_atoms, seed): random, clustered, repeated, nearly repeated or orthogonal samples."""
    (d, p), seed = draw(sizes(max_d=7)), draw(seeds)
    rng, n, kind = np.random.default_rng(seed), draw(st.integers(1, 12)), draw(st.sampled_from(["clustered", *KINDS]))
    X = clusters(rng, n, d, p, min(n, 3)) if kind == "clustered" else bases(rng, n, d, p, kind)
    return X, draw(st.integers(1, n)), seed


lams = st.sampled_from([1e-3, 0.1, 0.5, 1.5])  # lam = 0 among nearly equal atoms gives codes, and rounding, of any size
SOME = core.random_subspaces(9, 5, 2, rng=3)


# ---------------------------------------------------------------------------- laws


@settings(max_examples=150, deadline=None)
@given(samples(), lams, st.sampled_from(["kmeans++", "random"]))
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


@settings(max_examples=100, deadline=None)
@given(samples(), lams)
def test_the_last_cost_is_that_of_the_returned_atoms_and_codes(problem, lam):
    X, n_atoms, seed = problem
    atoms, codes, costs = learn.gdl(X, n_atoms, lam, n_iter=4, rng=seed)
    assert abs(costs[-1] - explicit_cost(X, atoms, codes, lam)) <= LOOSE * X.shape[2] * len(X)
    assert codes.shape == (len(X), n_atoms)
    best = explicit_cost(X, atoms, core.gsc(X, atoms, lam), lam)
    assert abs(costs[-1] - best) <= LOOSE * X.shape[2] * len(X)


@settings(max_examples=100, deadline=None)
@given(samples(), st.integers(1, 5))
def test_local_coding_keeps_its_constraint_and_its_cost(problem, n_neighbors):
    X, n_atoms, seed = problem
    n_neighbors = min(n_neighbors, n_atoms)
    atoms, codes, costs = learn.gdl(X, n_atoms, n_neighbors=n_neighbors, n_iter=3, tol=0, rng=seed)
    assert abs(costs[-1] - explicit_cost(X, atoms, codes)) <= LOOSE * X.shape[2] * len(X) * max(1, np.abs(codes).max() ** 2)
    assert error(codes.sum(axis=1), 1) <= LOOSE * max(1, np.abs(codes).max())
    assert ((codes != 0).sum(axis=1) <= n_neighbors).all()
    assert error(np.swapaxes(atoms, 1, 2) @ atoms, np.eye(X.shape[2])) <= TIGHT


@settings(max_examples=100, deadline=None)
@given(samples(), st.booleans())
def test_atom_update_never_raises_the_cost_of_any_codes(problem, signed):
    """Gauss-Seidel holds for codes that no coding step produced, negative ones too."""
    X, n_atoms, seed = problem
    rng = np.random.default_rng(seed)
    D, codes = bases(rng, n_atoms, *X.shape[1:]), rng.standard_normal((len(X), n_atoms)) * (rng.random((len(X), n_atoms)) < 0.6)
    codes = codes if signed else np.abs(codes)
    before = explicit_cost(X, D, codes)
    assert explicit_cost(X, learn.update_atoms(X, D, codes), codes) <= before + TIGHT * max(1, before)


@settings(max_examples=40, deadline=None)
@given(samples())
def test_no_competitor_beats_an_updated_atom_given_the_others(problem):
    """The last atom sees all others in their final state, so it is the global minimiser."""
    X, n_atoms, seed = problem
    rng = np.random.default_rng(seed)
    D, codes = bases(rng, n_atoms, *X.shape[1:]), rng.standard_normal((len(X), n_atoms))
    D = learn.update_atoms(X, D, codes)
    best, rival = explicit_cost(X, D, codes), D.copy()
    near = np.linalg.qr(D[-1] + 0.01 * rng.standard_normal((25, *X.shape[1:])))[0]
    for candidate in [*bases(rng, 25, *X.shape[1:]), *near, *X]:
        rival[-1] = candidate
        assert explicit_cost(X, rival, codes) >= best - TIGHT * max(1, best)


def test_each_atom_is_updated_in_turn_with_the_new_ones_before_it():
    rng = np.random.default_rng(0)
    D, codes = core.random_subspaces(4, 5, 2, rng=1), rng.standard_normal((9, 4))
    twin = D.copy()
    for r in range(4):
        others = np.arange(4) != r
        S = np.einsum("n,nab->ab", codes[:, r], hat(SOME) - np.einsum("nj,jab->nab", codes[:, others], hat(twin[others])))
        twin[r] = np.linalg.eigh(S)[1][:, -2:]
    assert error(hat(learn.update_atoms(SOME, D, codes)), hat(twin)) <= TIGHT


def test_two_atom_case_of_the_errata_falls_from_2_04_to_1_02():
    """The Jacobi update, all atoms from the old dictionary, gives 2.04, 2.44, 2.04, ... here."""
    X, D = np.eye(2)[:, :, None], np.array([[[1.0], [0]], [[1], [0]]])
    codes = np.array([[0.6, 0.6], [0.5, 0.5]])
    assert abs(explicit_cost(X, D, codes) - 2.04) <= TIGHT
    assert abs(explicit_cost(X, learn.update_atoms(X, D, codes), codes) - 1.02) <= TIGHT


# ---------------------------------------------------------------------------- unused atoms


def test_an_atom_that_no_sample_uses_stays_in_the_update():
    D, codes = core.random_subspaces(3, 5, 2, rng=1), np.random.default_rng(2).standard_normal((9, 3))
    codes[:, 1] = 0
    updated = learn.update_atoms(SOME, D, codes)
    assert np.array_equal(updated[1], D[1]) and not np.array_equal(updated[2], D[2])


def test_gdl_replaces_an_unused_atom_by_the_sample_coded_worst():
    """Samples in span(e1..e4) of R^6, the last atom orthogonal to all: it must go, and the cost must fall all the same."""
    X = np.zeros((8, 6, 2))
    X[:, :4] = core.random_subspaces(8, 4, 2, rng=0)
    useless = np.eye(6)[None, :, 4:]
    init = np.concatenate([X[:2], useless])
    _, codes, _ = learn.gdl(X, 3, 0.1, init=init, n_iter=0)
    assert not codes[:, 2].any()
    updated = learn.update_atoms(X, init, codes)
    losses = [explicit_cost(X[i:i + 1], updated, codes[i:i + 1], 0.1) for i in range(8)]
    atoms, codes, costs = learn.gdl(X, 3, 0.1, init=init, n_iter=1)
    assert error(hat(atoms[2]), hat(X[np.argmax(losses)])) <= TIGHT
    assert codes[:, 2].any() and (np.diff(costs) <= TIGHT).all()


@pytest.mark.parametrize("coding", [{"lam": 0.1}, {"lam": 100.0}, {"n_neighbors": 2}])
def test_repeated_samples_are_legal(coding):
    """As many atoms as samples, all samples equal; and a lam that leaves every atom unused."""
    X = np.repeat(SOME[:1], 5, axis=0)
    atoms, codes, costs = learn.gdl(X, 5, n_iter=3, tol=0, rng=0, **coding)
    assert np.isfinite(codes).all() and error(hat(atoms), hat(X)) <= TIGHT
    assert (np.diff(costs) <= TIGHT * 10).all()


# ---------------------------------------------------------------------------- first atoms


@settings(max_examples=60, deadline=None)
@given(samples(), st.sampled_from(["kmeans++", "random"]))
def test_first_atoms_are_samples_each_drawn_once(problem, method):
    X, n_atoms, seed = problem
    X = bases(np.random.default_rng(seed), len(X), 1 + X.shape[1], X.shape[2])  # no two are equal
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


# ---------------------------------------------------------------------------- interface


def test_rng_makes_results_repeatable():
    first, again, other = (learn.gdl(SOME, 3, 0.1, n_iter=2, rng=rng) for rng in (5, np.random.default_rng(5), 6))
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    assert not np.array_equal(first.atoms, other.atoms)


def test_given_atoms_are_where_learning_starts():
    init = core.random_subspaces(4, 5, 2, rng=8)
    atoms, codes, costs = learn.gdl(SOME, 4, 0.1, init=init, n_iter=0)
    assert np.array_equal(atoms, init) and len(costs) == 1
    assert abs(costs[0] - explicit_cost(SOME, init, core.gsc(SOME, init, 0.1), 0.1)) <= LOOSE


def test_learning_goes_on_where_it_stopped():
    whole = learn.gdl(SOME, 3, 0.1, n_iter=4, tol=0, rng=0)
    half = learn.gdl(SOME, 3, 0.1, n_iter=2, tol=0, rng=0)
    rest = learn.gdl(SOME, 3, 0.1, init=half.atoms, n_iter=2, tol=0)
    assert error(whole.costs, [*half.costs, *rest.costs[1:]]) <= LOOSE


def test_learning_stops_when_the_cost_hardly_falls():
    costs = learn.gdl(SOME, 3, 0.1, n_iter=500, tol=1e-3, rng=0).costs
    falls = (costs[:-2:2] - costs[2::2]) / costs[:-2:2]
    assert len(costs) < 1000 and falls[-1] <= 1e-3 and (falls[:-1] > 1e-3).all()


def test_clusters_are_found():
    X = clusters(np.random.default_rng(0), 40, 8, 2, 4)
    atoms, _, _ = learn.gdl(X, 4, 0.1, rng=0)
    assert core.projection_kernel(X, atoms).max(axis=1).min() > 1.98


@pytest.mark.parametrize("coding", [{"lam": 0.1}, {"n_neighbors": 2}])
def test_float32_stays_float32_and_costs_do_not_rise(coding):
    atoms, codes, costs = learn.gdl(SOME.astype(np.float32), 3, rng=0, n_iter=3, **coding)
    assert atoms.dtype == codes.dtype == np.float32 and costs.dtype == np.float64
    twin = learn.gdl(SOME, 3, rng=0, n_iter=3, **coding)
    assert error(hat(atoms), hat(twin.atoms)) <= 1e5 * LOOSE
    if "lam" in coding:
        assert (np.diff(costs) <= 1e2 * LOOSE * costs[0]).all()


def test_atoms_are_orthonormal_for_d_above_the_number_of_directions():
    X = core.random_subspaces(4, 60, 2, rng=0)  # the update works in the span of 4 x 2 directions
    atoms, codes, costs = learn.gdl(X, 2, 0.1, rng=0)
    assert error(np.swapaxes(atoms, 1, 2) @ atoms, np.eye(2)) <= TIGHT
    assert abs(costs[-1] - explicit_cost(X, atoms, codes, 0.1)) <= LOOSE


def test_the_callers_arrays_are_not_changed():
    X, init, codes = SOME.copy(), core.random_subspaces(3, 5, 2, rng=8), np.ones((9, 3))
    for array in (X, init, codes):
        array.flags.writeable = False
    learn.update_atoms(X, init, codes)
    atoms = learn.gdl(X, 3, 0.1, init=init, n_iter=2).atoms
    kept = learn.gdl(X, 3, 0.1, init=init, n_iter=0).atoms
    first = learn.init_atoms(X, 3)
    assert not any(np.shares_memory(a, b) for a in (atoms, kept, first) for b in (X, init))
    assert np.array_equal(X, SOME)


def test_layouts_and_byte_orders_are_taken_alike():
    want = learn.gdl(SOME, 3, 0.1, n_iter=2, rng=0).atoms
    strided = np.zeros((18, 5, 2))
    strided[::2] = SOME
    for X in (np.asfortranarray(SOME), strided[::2], SOME.astype(">f8")):
        assert error(learn.gdl(X, 3, 0.1, n_iter=2, rng=0).atoms, want) <= LOOSE


# ---------------------------------------------------------------------------- errors


@pytest.mark.parametrize("options, message", [
    (dict(), "give either lam or n_neighbors, got lam = None and n_neighbors = None"),
    (dict(lam=0.1, n_neighbors=2), "got lam = 0.1 and n_neighbors = 2"),
    (dict(lam=-1.0), "lam must be .* got -1.0"),
    (dict(lam=float("nan")), "lam must be finite, got nan"),
    (dict(n_neighbors=4), r"n_neighbors must be in 1\.\.3, got 4"),
    (dict(n_neighbors=0), r"n_neighbors must be in 1\.\.3, got 0"),
    (dict(lam=0.1, init="best"), "'kmeans\\+\\+' or 'random', got 'best'"),
    (dict(lam=0.1, init=SOME[:2]), r"init must have shape \(3, 5, 2\), got \(2, 5, 2\)"),
    (dict(lam=0.1, init=2 * SOME[:3]), "init must have orthonormal columns: .* differs from I by 3"),
    (dict(lam=0.1, n_iter=-1), "n_iter must be >= 0, got -1"),
    (dict(lam=0.1, tol=-1e-3), "tol must be >= 0, got -0.001"),
    (dict(lam=[0.1, 0.2]), r"lam must be .* got \[0\.1, 0\.2\]"),
])
def test_gdl_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        learn.gdl(SOME, 3, **options)


@pytest.mark.parametrize("init", ["kmeans++", SOME])
@pytest.mark.parametrize("n_atoms", [0, 10])
def test_gdl_refuses_a_number_of_atoms(n_atoms, init):
    with pytest.raises(ValueError, match=rf"n_atoms must be (in 1\.\.9|>= 1), got {n_atoms}|init must have shape \({n_atoms}, 5, 2\)"):
        learn.gdl(SOME, n_atoms, 0.1, init=init)


@pytest.mark.parametrize("call, error, message", [
    (lambda: learn.gdl(SOME, 2.5, 0.1), TypeError, "n_atoms must be an integer, got 2.5"),
    (lambda: learn.gdl(SOME, 2.5, 0.1, init=SOME), TypeError, "n_atoms must be an integer, got 2.5"),
    (lambda: learn.gdl(SOME, 3, 0.1, n_iter=2.5), TypeError, "n_iter must be an integer, got 2.5"),
    (lambda: learn.gdl(SOME[0], 3, 0.1), ValueError, r"X must have 3 dimensions .* got shape \(5, 2\)"),
    (lambda: learn.gdl(1j * SOME, 3, 0.1), TypeError, "X must hold real numbers, got dtype complex128"),
    (lambda: learn.gdl(SOME[:0], 1, 0.1), ValueError, r"X must hold at least one .* got shape \(0, 5, 2\)"),
    (lambda: learn.init_atoms(SOME, 3, "worst"), ValueError, "method must be 'kmeans', 'kmeans\\+\\+' or 'random', got 'worst'"),
    (lambda: learn.init_atoms(SOME, 10), ValueError, r"n_atoms must be in 1\.\.9, got 10"),
    (lambda: learn.update_atoms(SOME, SOME[:3, :, :1], np.ones((9, 3))), ValueError, "D must have the p of X, got 1 and 2"),
    (lambda: learn.update_atoms(SOME, SOME[:3], np.ones((3, 9))), ValueError, r"codes must have shape \(9, 3\), got \(3, 9\)"),
    (lambda: learn.update_atoms(SOME, SOME[:3], np.full((9, 3), np.nan)), ValueError, "codes must be finite, got nan"),
    (lambda: learn.update_atoms(SOME, core.random_subspaces(3, 6, 2), np.ones((9, 3))), ValueError, "same d, got 5 and 6"),
])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
