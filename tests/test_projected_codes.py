"""Coding with Proj inside the norm: its loss, its conditions of first order, where
it is ill posed.
"""

import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import minimize

import grassmann_sc as gs
from grassmann_sc import kernels, projected
from grassmann_sc.strategies import KINDS, bases, rotation, sizes
from oracles import LOOSE, TIGHT, clusters, error, hat, seeds

quiet = pytest.mark.filterwarnings(
    "ignore:the gap of eigenvalues", "ignore:.*did not converge"
)


def explicit_loss(x, D, y):
    """||X^ - Proj(sum_j y_j D_j^)||^2 from d x d matrices."""
    M = np.einsum("j,jab->ab", y, hat(D))
    return np.square(hat(x) - hat(gs.proj((M + M.T) / 2, D.shape[2]))).sum()


def explicit_gradient(x, D, y):
    """-4 sum_{a <= q < b} (u_a^T X^ u_b) (u_a^T D_j^ u_b) / (s_a - s_b) of each atom."""
    q = D.shape[2]
    s, U = np.linalg.eigh(np.einsum("j,jab->ab", y, hat(D)))
    A = U[:, len(s) - q :]
    B = U[:, : len(s) - q]
    share = A.T @ hat(x) @ B / (s[-q:, None] - s[: len(s) - q])
    return -4 * np.einsum("ca,jcd,db,ab->j", A, hat(D), B, share)


def explicit_cost(x, D, y, lam):
    return explicit_loss(x, D, y) + lam * np.abs(y).sum()


@st.composite
def projected_problems(draw):
    """(X, D, lam, positive): a query equal to an atom, repeated, near and orthogonal
    atoms, p = d, one atom, more atoms than dimensions, lambda = 0.
    """
    d, p = draw(sizes(st.integers(1, 6)))
    rng = np.random.default_rng(draw(seeds))
    N = draw(st.integers(1, 9))
    if draw(st.booleans()):
        both = clusters(rng, 2 + N, d, p, 2)
        X = both[:2]
        D = both[2:]
    else:
        X = bases(rng, 2, d, p)
        D = bases(rng, N, d, p, draw(st.sampled_from(KINDS)))
    if draw(st.booleans()):
        D[-1] = X[0] @ rotation(rng, p)
    return X, D, draw(st.sampled_from([0.0, 1e-2, 0.1, 1.0])), draw(st.booleans())


# -------------------------------------------------------------------- loss and gradient


@given(projected_problems())
def test_the_loss_is_that_of_explicit_projectors_and_ignores_scale(problem):
    X, D, _, _ = problem
    rng = np.random.default_rng(0)
    codes = rng.uniform(0.5, 1, (len(X), len(D)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            losses = projected.projected_losses(codes, X, D)
            reference = [explicit_loss(x, D, y) for x, y in zip(X, codes)]
        except UserWarning:
            return  # a tie
    gap = smallest_gap(D, codes)
    assert error(losses, reference) <= TIGHT * (1 + 1 / gap)
    assert error(projected.projected_losses(3 * codes, X, D), losses) <= TIGHT * (
        1 + 1 / gap
    )


def smallest_gap(D, codes):
    d, q = D.shape[1:]
    values = np.linalg.eigvalsh(np.einsum("nj,jab->nab", codes, hat(D)))
    return (values[:, -q] - values[:, -q - 1]).min() if q < d else np.inf


def test_a_tie_has_a_loss_and_a_warning():
    D = np.eye(3)[:, :, None]
    codes = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    X = np.repeat(D[:1], 3, axis=0)
    with pytest.warns(UserWarning, match=r"not unique in 2 case\(s\)"):
        losses = projected.projected_losses(codes, X, D)
    assert np.isfinite(losses).all() and losses[2] == 0


# ------------------------------------------------------------------------ ill-posedness


def test_the_printed_cost_falls_to_the_unpenalised_one_as_the_code_shrinks():
    rng = np.random.default_rng(2)
    X = bases(rng, 1, 6, 2)
    D = bases(rng, 4, 6, 2)
    y = rng.uniform(0.2, 1, 4)
    loss = explicit_loss(X[0], D, y)
    printed = [explicit_cost(X[0], D, c * y, 0.3) for c in 10.0 ** -np.arange(8)]
    assert (np.diff(printed) < 0).all()
    assert 0 < printed[-1] - loss < 1e-7
    assert error(projected.projected_losses(1e-7 * y[None], X, D), loss) < LOOSE


def test_a_sum_of_one_does_not_bound_how_the_point_turns_at_a_tie(monkeypatch):
    """Every line of a plane costs lambda alone, in the limit; a least gap forbids that
    limit.
    """
    D = np.array([[1.0, 0], [0, 1], [2**-0.5, 2**-0.5]])[:, :, None]
    X = np.array([[np.cos(0.5)], [-np.sin(0.5)]])[None]
    for t in [1e-2, 1e-4, 1e-6]:
        M = hat(X[0]) * t  # = t (a e1 e1^T + b e2 e2^T + 2 c D_3^)
        y = np.array([1 + M[0, 0] - M[0, 1], 1 + M[1, 1] - M[0, 1], 2 * M[0, 1]])
        y /= y.sum()
        assert 0.1 < explicit_cost(X[0], D, y, 0.1) < 0.1 * (1 + 2 * t) + TIGHT
    monkeypatch.setattr(projected, "LEAST_GAP", 1e-2)
    with pytest.warns(
        UserWarning, match=r"closed in 1 of 1 projected codes, to 0.02 or less"
    ):
        result = projected.projected_codes(X, D, 0.1, return_info=True)
    assert 1e-2 <= result.gap[0] <= 2e-2
    assert result.cost[0] > 0.1


# ---------------------------------------------------------------------------- the codes


def first_order_violation(gradient, y, lam, positive):
    level = lam * np.abs(y).sum()
    used = y != 0
    excess = np.abs(gradient - level + lam * np.sign(y))[used].max()
    off = (level - gradient)[~used]
    return max(excess, ((off if positive else np.abs(off)) - lam).max(initial=0))


@quiet
@settings(max_examples=80)
@given(projected_problems())
def test_codes_satisfy_the_conditions_of_first_order_or_stand_at_the_least_gap(problem):
    X, D, lam, positive = problem
    result = projected.projected_codes(X, D, lam, positive=positive, return_info=True)
    assert (
        np.abs(result.codes.sum(axis=1) - 1) <= TIGHT * np.abs(result.codes).sum(axis=1)
    ).all()
    assert (result.gap >= 1e-3).all()
    if positive:
        assert (result.codes >= 0).all()
    for x, y, cost, gap in zip(X, result.codes, result.cost, result.gap):
        if gap > 2e-3 and lam > 0:
            gradient = explicit_gradient(x, D, y)
            assert first_order_violation(gradient, y, lam, positive) <= LOOSE
        assert abs(cost - explicit_cost(x, D, y, lam)) <= 1e-10 * (1 + np.abs(y).sum())


@quiet
@settings(max_examples=80)
@given(projected_problems())
def test_no_code_costs_more_than_any_of_its_starts(problem):
    X, D, lam, positive = problem
    result = projected.projected_codes(X, D, lam, positive=positive, return_info=True)
    sparse = gs.gsc(X, D, lam, positive=positive)
    local = gs.glc(X, D, min(5, len(D)))
    nearest = np.eye(len(D))[gs.projection_kernel(X, D).argmax(axis=1)]
    shares = [0.5, 0.2, 0.05, 0.01]
    path = gs.gsc(X, D, shares, lam_scale="max", positive=positive)
    for start in (sparse, local, nearest, *path):
        start = np.maximum(start, 0) if positive else start
        for x, y, cost in zip(X, start, result.cost):
            if y.sum() <= 1e-3 or smallest_gap(D, y[None]) < 1e-2 * np.abs(y).sum():
                continue
            assert cost <= explicit_cost(x, D, y / y.sum(), lam) + 1e-11


def test_many_starts_find_lower_costs_among_spread_atoms(monkeypatch):
    D = gs.random_subspaces(12, 8, 2, rng=1)
    X = gs.random_subspaces(12, 8, 2, rng=2)

    def costs():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return projected.projected_codes(X, D, 0.05, return_info=True).cost

    values = costs()
    monkeypatch.setattr(
        projected, "SHARES", (1.0,)
    )  # of zero codes, which start nothing
    before = costs()
    assert (values <= before + 1e-11).all()
    assert values.mean() < 0.98 * before.mean()


def test_codes_of_queries_near_the_dictionary_are_those_of_a_general_optimiser():
    rng = np.random.default_rng(4)
    wins = 0
    for _ in range(6):
        both = clusters(rng, 6, 5, 2, 1)
        x = both[0]
        D = np.linalg.qr(both[1:] + 0.2 * rng.standard_normal((5, 5, 2)))[0]
        mine = projected.projected_codes(x[None], D, 0.05, return_info=True)
        best = min(by_a_general_optimiser(x, D, 0.05, rng) for _ in range(4))
        wins += mine.cost[0] <= best + 1e-7
    assert wins == 6


def by_a_general_optimiser(x, D, lam, rng):
    """The cost that Nelder and Mead reach from a random code."""
    start = rng.dirichlet(np.ones(len(D)))

    def cost(z):
        y = np.append(z, 1 - z.sum())
        return (
            projected.projected_losses(y[None], x[None], D)[0] + lam * np.abs(y).sum()
        )

    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 400}
    return minimize(cost, start[:-1], method="Nelder-Mead", options=options).fun


def test_a_query_equal_to_an_atom_has_code_one_on_it():
    rng = np.random.default_rng(5)
    D = bases(rng, 6, 7, 2)
    D[3] = D[1]
    result = projected.projected_codes(D @ rotation(rng, 2), D, 0.1, return_info=True)
    assert np.array_equal(result.codes, np.eye(6)[[0, 1, 2, 1, 4, 5]])
    assert error(result.cost, 0.1) < TIGHT


def test_degenerate_problems():
    rng = np.random.default_rng(6)
    X = bases(rng, 3, 5, 2)
    assert np.array_equal(projected.projected_codes(X, X[:1], 0.1), np.ones((3, 1)))
    whole = bases(rng, 3, 2, 2)
    result = projected.projected_codes(whole, whole, 0.1, return_info=True)
    assert np.isinf(result.gap).all() and error(result.cost, 0.1) < TIGHT
    D = np.eye(6)[:, None, :4].reshape(6, 2, 2).transpose(1, 0, 2)  # e1 e2 and e3 e4
    far = np.eye(6)[None, :, 4:]
    result = projected.projected_codes(far, D, 0.1, return_info=True)
    assert error(result.cost, 4.1) < TIGHT and result.violation[0] == 0
    assert projected.projected_codes(X[:0], X, 0.1).shape == (0, 3)


def test_subspaces_of_two_dimensions():
    rng = np.random.default_rng(7)
    D = clusters(rng, 5, 8, 3, 1)
    X = D[:2, :, :2]
    result = projected.projected_codes(X, D, 0.1, return_info=True)
    assert error(result.cost[0], 1 + 0.1) < 0.01
    assert (
        error(
            result.cost, [explicit_cost(x, D, y, 0.1) for x, y in zip(X, result.codes)]
        )
        < TIGHT
    )


def test_float32_stays_float32():
    rng = np.random.default_rng(8)
    D = clusters(rng, 8, 7, 2, 1)
    single = projected.projected_codes(np.float32(D[:3]), np.float32(D[3:]), 0.1)
    assert single.dtype == np.float32
    assert error(single, projected.projected_codes(D[:3], D[3:], 0.1)) < 2e-2


@quiet
def test_codes_in_a_kernels_space_are_those_of_coordinates():
    """Of a linear kernel: those of the subspaces themselves."""
    rng = np.random.default_rng(9)
    patterns = rng.standard_normal((3, 6))
    sets = [
        rng.standard_normal((4, 3)) @ patterns + 0.1 * rng.standard_normal((4, 6))
        for _ in range(12)
    ]
    lift = kernels.Lift(kernels.linear(), 2).fit(sets)
    C = lift.transform(sets)
    X = np.stack(
        [np.linalg.svd(frames.T, full_matrices=False)[0][:, :2] for frames in sets]
    )
    lifted = projected.projected_codes(C[:3], C[3:], 0.1, return_info=True)
    plain = projected.projected_codes(X[:3], X[3:], 0.1, return_info=True)
    assert error(lifted.cost, plain.cost) < LOOSE


@pytest.mark.parametrize(
    "options, message",
    [
        ({"lam": -1}, "lam must be >= 0"),
        ({"n_neighbors": 9}, "n_neighbors must be in 1..4, got 9"),
        ({"tol": 0}, "tol must be positive"),
    ],
)
def test_errors_name_argument_rule_and_value(options, message):
    X = bases(np.random.default_rng(0), 4, 5, 2)
    with pytest.raises(ValueError, match=message):
        projected.projected_codes(X, X, **{"lam": 0.1, **options})


@pytest.mark.parametrize("lam", [1e-12, 1e3, 1e12])
def test_lambdas_of_any_size(lam):
    """A large one makes codes those of the simplex."""
    rng = np.random.default_rng(10)
    D = clusters(rng, 9, 6, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        codes = projected.projected_codes(D[:3], D[3:], lam)
        simplex = projected.projected_codes(D[:3], D[3:], lam, positive=True)
    if lam >= 1e3:
        assert (codes >= 0).all()
        loss = projected.projected_losses(codes, D[:3], D[3:])
        assert error(loss, projected.projected_losses(simplex, D[:3], D[3:])) < LOOSE


@pytest.mark.parametrize("least_gap", [0.1, 0.4])
@quiet
def test_the_gap_never_falls_below_the_least(least_gap, monkeypatch):
    monkeypatch.setattr(projected, "LEAST_GAP", least_gap)
    rng = np.random.default_rng(0)
    X = bases(rng, 20, 6, 2)
    result = projected.projected_codes(X, bases(rng, 8, 6, 2), 0.0, return_info=True)
    assert (result.gap >= least_gap).all()
    assert (result.gap < 2 * least_gap).any()


def test_positive_codes_that_are_reached_satisfy_the_conditions_without_a_warning():
    rng = np.random.default_rng(0)
    D = np.linalg.qr(bases(rng, 1, 6, 2) + 0.4 * rng.standard_normal((10, 6, 2)))[0]
    X = np.linalg.qr(D[:4] + 0.6 * rng.standard_normal((4, 6, 2)))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = projected.projected_codes(X, D, 0.01, positive=True, return_info=True)
    assert (result.codes == 0).any()
    assert result.violation.max() <= 1.01e-9


def test_a_code_whose_gap_closed_is_warned_of_once():
    """It meets no conditions of first order, which one warning says, not two."""
    D = np.array([[1.0, 0], [0, 1], [2**-0.5, 2**-0.5]])[:, :, None]
    X = np.array([[np.cos(0.5)], [-np.sin(0.5)]])[None]
    with pytest.warns(UserWarning, match="the gap of eigenvalues") as caught:
        projected.projected_codes(X, D, 0.1)
    assert len(caught) == 1
