"""Dictionaries in tangent spaces: the adjoint of log, costs that never rise, atoms that
are best.
"""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

import grassmann_sc as gs
from grassmann_sc import intrinsic
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import bases, rotation
from oracles import LOOSE, TIGHT, clusters, error, samples_and_atoms, seeds

quiet = pytest.mark.filterwarnings("ignore:.*right angles", "ignore:karcher_mean")


def tangent_at(rng, X):
    H = rng.standard_normal(X.shape)
    return H - X @ (np.swapaxes(X, -1, -2) @ H)


# ------------------------------------------------------------------- the adjoint of log


@st.composite
def points_and_tangents(draw):
    """(X, Y, W at X, E at Y) with angles up to 1.3, some of them zero."""
    d = draw(st.integers(2, 7))
    p = draw(st.integers(1, d - 1))
    rng = np.random.default_rng(draw(seeds))
    X = bases(rng, 1, d, p)[0]
    left, s, right = np.linalg.svd(tangent_at(rng, X), full_matrices=False)
    s = np.where(s > 1e-9 * s.max(), rng.uniform(0, 1.3, p), 0)
    s[: draw(st.integers(0, p))] = 0
    Y = intrinsic.exp_map(X, (left * s) @ right) @ rotation(rng, p)
    return X, Y, tangent_at(rng, X), tangent_at(rng, Y)


@given(points_and_tangents())
def test_the_adjoint_of_log_gives_its_derivative(drawn):
    X, Y, W, E = drawn
    E /= np.linalg.norm(E)
    h = 1e-3

    def along(t):
        return (W * intrinsic.log_map(X, intrinsic.exp_map(Y, t * E))).sum()

    slope = (8 * (along(h) - along(-h)) - along(2 * h) + along(-2 * h)) / (12 * h)
    G = intrinsic.log_adjoint(X, Y, W)
    assert error(Y.T @ G, 0) < TIGHT * 10 * np.linalg.norm(G)
    assert abs((G * E).sum() - slope) < 1e-7 * np.linalg.norm(W)


def test_the_adjoint_of_log_at_the_point_itself_is_the_identity():
    rng = np.random.default_rng(0)
    X = bases(rng, 4, 6, 2)
    W = tangent_at(rng, X)
    assert error(intrinsic.log_adjoint(X, X, W), W) < TIGHT
    R = rotation(rng, 2)
    assert error(intrinsic.log_adjoint(X, X @ R, W), W @ R) < TIGHT


def test_the_adjoint_of_log_is_finite_at_right_angles():
    X = np.eye(5)[:, :2]
    Y = np.eye(5)[:, 2:4]
    assert np.isfinite(
        intrinsic.log_adjoint(X, Y, tangent_at(np.random.default_rng(0), X))
    ).all()


# ------------------------------------------------------------------ log-Euclidean atoms


def log_euclidean_cost(X, result, lam, atoms=None):
    """From tangent vectors, one by one."""
    x = intrinsic.log_map(result.base, X).reshape(len(X), -1)
    D = intrinsic.log_map(result.base, result.atoms if atoms is None else atoms)
    residual = x - result.codes @ D.reshape(len(D), -1)
    return (residual**2).sum() + lam * np.abs(result.codes).sum()


@quiet
@settings(max_examples=60)
@given(
    samples_and_atoms(),
    st.sampled_from([0.0, 0.1, 3.0]),
    st.sampled_from([None, "mean"]),
)
def test_the_log_euclidean_cost_never_rises_and_is_that_of_the_atoms(drawn, lam, base):
    X, n_atoms, seed = drawn
    assume(X.shape[1] > X.shape[2])  # else logarithms, and codes, are of rounding
    result = tangent.log_euclidean_dictionary(
        X, n_atoms, lam, base=base, n_iter=6, rng=seed
    )
    scale = 1 + result.costs[0]
    assert (np.diff(result.costs) <= TIGHT * scale).all()
    assert len(result.costs) % 2 == 1
    assert abs(result.costs[-1] - log_euclidean_cost(X, result, lam)) <= LOOSE * scale
    again = tangent.log_euclidean_codes(X, result.atoms, lam, result.base)
    cost = log_euclidean_cost(X, result._replace(codes=again), lam)
    assert cost <= result.costs[-1] + 1e-6 * scale


@quiet
@pytest.mark.parametrize("lam", [0.3, 1.0])
def test_log_euclidean_atoms_end_at_the_bound_and_not_beyond(lam):
    """Beyond pi/2 the logarithm of an atom is not the vector that was learned."""
    X = gs.random_subspaces(12, 6, 2, rng=0)
    result = tangent.log_euclidean_dictionary(X, 3, lam, n_iter=30, tol=0, rng=0)
    assert log_euclidean_cost(X, result, lam) == pytest.approx(
        result.costs[-1], rel=1e-9
    )


@pytest.mark.parametrize("lam", [0.0, 4.0])
def test_each_log_euclidean_atom_is_the_best_within_the_bound(lam):
    """No other atom does better for these codes, where the bound matters and where not."""
    rng = np.random.default_rng(1)
    X = clusters(rng, 30, 6, 2, 4)
    base = bases(rng, 1, 6, 2)[0]
    result = tangent.log_euclidean_dictionary(
        X, 3, lam, base=base, n_iter=300, tol=0, rng=0
    )
    D = intrinsic.log_map(base, result.atoms)
    longest = np.linalg.norm(D, ord=2, axis=(1, 2)).max()
    assert longest < math.pi / 2
    assert (longest > math.pi / 2 - 1e-6) == (lam == 4.0)
    least = log_euclidean_cost(X, result, lam)
    for step in 10.0 ** -np.arange(5):
        for r in range(3):
            trial = D[r] + step * tangent_at(rng, base)
            left, s, right = np.linalg.svd(trial, full_matrices=False)
            other = result.atoms.copy()
            other[r] = intrinsic.exp_map(
                base, (left * np.minimum(s, 1.5707963)) @ right
            )
            assert log_euclidean_cost(X, result, lam, other) >= least - 1e-7


def test_one_log_euclidean_atom_is_a_weighted_mean_after_one_update():
    rng = np.random.default_rng(5)
    base = bases(rng, 1, 6, 2)[0]
    H = 0.2 * np.stack([tangent_at(rng, base) for _ in range(9)]) + 0.3 * tangent_at(
        rng, base
    )
    X = intrinsic.exp_map(base, H)
    result = tangent.log_euclidean_dictionary(
        X, 1, 0.1, base=base, init=X[:1], n_iter=1
    )
    y = tangent.log_euclidean_codes(X, X[:1], 0.1, base)[:, 0]
    mean = np.einsum("n,ndp->dp", y, H) / (y @ y)
    assert np.linalg.norm(mean, 2) < math.pi / 2
    assert (
        gs.geodesic_distance(result.atoms, intrinsic.exp_map(base, mean)[None]) < LOOSE
    )


def test_samples_that_are_few_become_the_log_euclidean_atoms():
    rng = np.random.default_rng(2)
    X = clusters(rng, 1, 5, 2, 1)
    result = tangent.log_euclidean_dictionary(X, 1, 0.0, base="mean", rng=0)
    assert result.costs[-1] < TIGHT
    float32 = tangent.log_euclidean_dictionary(np.float32(X), 1, 0.1, rng=0)
    assert float32.atoms.dtype == float32.codes.dtype == np.float32
    positive = tangent.log_euclidean_dictionary(
        bases(rng, 9, 5, 2), 4, 0.1, positive=True
    )
    assert (positive.codes >= 0).all()


# ---------------------------------------------------------------------- intrinsic atoms


def intrinsic_cost(X, result, lam):
    H = np.stack([intrinsic.log_map(x, result.atoms) for x in X])  # (n, N, d, p)
    combined = np.einsum("nj,njdp->ndp", result.codes, H)
    return (combined**2).sum() + lam * np.abs(result.codes).sum()


@quiet
@settings(max_examples=40)
@given(samples_and_atoms(), st.sampled_from([0.0, 0.1, 1.0]))
def test_the_intrinsic_cost_never_rises_and_is_that_of_the_atoms(drawn, lam):
    X, n_atoms, seed = drawn
    result = tangent.intrinsic_dictionary(X, n_atoms, lam, n_iter=4, rng=seed)
    scale = 1 + result.costs[0]
    assert (np.diff(result.costs) <= TIGHT * scale).all()
    assert np.isfinite(result.atoms).all()
    assert error(result.codes.sum(axis=1), 1) < LOOSE * (1 + np.abs(result.codes).max())
    # at right angles log may be another
    near = gs.geodesic_distance(X, result.atoms).max() < 1.5
    if near and np.abs(result.codes).max() < 100:
        assert abs(result.costs[-1] - intrinsic_cost(X, result, lam)) <= LOOSE * scale


def test_one_intrinsic_atom_is_the_karcher_mean():
    X = clusters(np.random.default_rng(3), 12, 6, 2, 1)
    result = tangent.intrinsic_dictionary(X, 1, 0.1, n_iter=100, tol=0, rng=0)
    assert (
        gs.geodesic_distance(result.atoms, intrinsic.karcher_mean(X)[None])[0, 0]
        < LOOSE
    )


def test_samples_on_a_geodesic_are_coded_by_two_intrinsic_atoms():
    rng = np.random.default_rng(4)
    base = bases(rng, 1, 5, 2)[0]
    H = tangent_at(rng, base)
    H *= 0.3 / np.linalg.norm(H)
    X = intrinsic.exp_map(base, rng.uniform(-1, 1, (20, 1, 1)) * H)
    result = tangent.intrinsic_dictionary(X, 2, 0.5, n_iter=60, tol=0, rng=0)
    assert result.costs[0] > 0.5 * 20 + 0.1
    assert result.costs[-1] - 0.5 * 20 < 1e-6


def test_codes_that_are_worse_than_those_before_are_not_taken(monkeypatch):
    X = bases(np.random.default_rng(6), 12, 6, 2)
    code = tangent.intrinsic_coding
    answers = []

    def worse_each_time(samples, atoms, lam):
        coded, *others = code(samples, atoms, lam)
        if answers:
            coded = coded._replace(codes=np.full((12, 3), 1 / 3))
        answers.append(coded)
        return coded, *others

    monkeypatch.setattr(tangent, "intrinsic_coding", worse_each_time)
    result = tangent.intrinsic_dictionary(X, 3, 0.1, n_iter=3, tol=0, rng=0)
    assert len(answers) == 4
    assert (np.diff(result.costs) <= TIGHT * result.costs[0]).all()
    assert (
        abs(result.costs[-1] - intrinsic_cost(X, result, 0.1))
        <= LOOSE * result.costs[0]
    )


@pytest.mark.parametrize(
    "learn, lam, aside",
    [
        ("log_euclidean_dictionary", 0.01, (0, 0, 0.3)),
        ("intrinsic_dictionary", 1.0, (-0.3, -0.3, 0)),
    ],
)
def test_an_atom_that_no_sample_uses_becomes_the_sample_coded_worst(learn, lam, aside):
    """Samples near an atom along the first axis of a tangent space, one far along the
    second, and another atom, orthogonal to all in the tangent space or behind the first
    for all, aside.
    """
    base = np.eye(6, 2)
    axes = np.zeros((3, 6, 2))
    axes[0, 2, 0] = axes[1, 3, 1] = axes[2, 4, 0] = 1
    near = np.linspace(0.2, 0.4, 9)[:, None, None] * axes[0]
    X = intrinsic.exp_map(base, np.concatenate([near, 0.9 * axes[1:2]]))
    atoms = intrinsic.exp_map(
        base, np.stack([0.1 * axes[0], np.tensordot(aside, axes, 1)])
    )
    before = getattr(tangent, learn)(X, 2, lam, init=atoms, n_iter=0)
    assert before.codes[0, 0] and not before.codes[:, 1].any()
    after = getattr(tangent, learn)(X, 2, lam, init=atoms, n_iter=1)
    assert gs.geodesic_distance(after.atoms[1:], X[-1:]) < LOOSE


@pytest.mark.parametrize("learn", ["log_euclidean_dictionary", "intrinsic_dictionary"])
@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_atoms": 0}, "n_atoms must be >= 1, got 0"),
        ({"lam": -1}, r"lam must be in \[0, 1e\+250\], got -1"),
        ({"n_iter": -1}, "n_iter must be >= 0, got -1"),
        (
            {"init": "best"},
            "init must be 'kmeans', 'kmeans\\+\\+' or 'random', got 'best'",
        ),
        (
            {"init": np.eye(5)[None, :, :2]},
            r"init must have shape \(2, 5, 2\), got \(1, 5, 2\)",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(learn, options, message):
    X = bases(np.random.default_rng(0), 4, 5, 2)
    with pytest.raises(ValueError, match=message):
        getattr(tangent, learn)(X, **{"n_atoms": 2, "lam": 0.1, **options})
