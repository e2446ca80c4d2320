"""Log-Euclidean coding is a lasso of tangent vectors, with the options of the core's."""

import inspect

import numpy as np
import pytest
import scipy.sparse

import grassmann_sc as gs
from grassmann_sc import intrinsic
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import bases
from oracles import LOOSE, TIGHT, error


@pytest.fixture
def problem():
    """Queries, atoms, and one subspace more."""
    rng = np.random.default_rng(0)
    return bases(rng, 5, 6, 2), bases(rng, 12, 6, 2), bases(rng, 1, 6, 2)[0]


@pytest.mark.parametrize("base", [None, "mean", "given"])
@pytest.mark.filterwarnings("ignore:karcher_mean")
def test_log_euclidean_codes_are_a_lasso_of_tangent_vectors(problem, base):
    X, D, P = problem
    at = {None: np.eye(6, 2), "mean": intrinsic.karcher_mean(D), "given": P}[base]
    x, d = (intrinsic.log_map(at, A).reshape(len(A), -1) for A in (X, D))
    base = P if base == "given" else base
    grams = tangent.tangent_grams(X, D, base)
    assert error(grams.K_dd, d @ d.T) < TIGHT
    assert error(grams.K_xd, x @ d.T) < TIGHT
    assert error(grams.norm2, (x**2).sum(axis=1)) < TIGHT
    codes = tangent.log_euclidean_codes(X, D, 0.1, base)
    slope = 2 * (x - codes @ d) @ d.T  # = lam sign(y) on the support
    assert error(np.abs(slope[codes != 0]), 0.1) < LOOSE
    assert np.abs(slope).max() < 0.1 + LOOSE


def test_options_are_those_of_sparse_codes(problem):
    X, D, _ = problem
    own = inspect.signature(tangent.log_euclidean_codes, eval_str=True).parameters
    for name, parameter in inspect.signature(
        gs.sparse_codes, eval_str=True
    ).parameters.items():
        if parameter.kind == parameter.KEYWORD_ONLY and name != "norm2":
            assert own[name] == parameter
    K_dd, K_xd, norm2 = tangent.tangent_grams(X, D)
    for options in (
        {"positive": True},
        {"lam_scale": "max"},
        {"init": np.ones((5, 12))},
    ):
        codes = tangent.log_euclidean_codes(X, D, 0.1, **options)
        assert (
            error(codes, gs.sparse_codes(K_dd, K_xd, 0.1, norm2=norm2, **options))
            < TIGHT
        )
    path = tangent.log_euclidean_codes(
        X, D, [0.1, 0.2], return_info=True, sparse_output=True
    )
    assert all(scipy.sparse.issparse(codes) for codes in path.codes)
    assert path.gap.shape == (2, 5)
    assert tangent.log_euclidean_codes(X[:0], D, 0.1).shape == (0, 12)


def test_squared_norms_of_float32_tangents_are_summed_in_float64(problem):
    X, D, base = (part.astype(np.float32) for part in problem)
    grams = tangent.tangent_grams(X, D, base)
    H = intrinsic.log_map(base, X)
    assert grams.K_xd.dtype == H.dtype == np.float32
    square = np.square(H.astype(np.float64)).sum(axis=(1, 2))
    assert error(grams.norm2 / square, 1) <= TIGHT


def test_float32_stays_float32(problem):
    X, D, _ = problem
    codes = tangent.log_euclidean_codes(np.float32(X), np.float32(D), 0.1)
    assert codes.dtype == np.float32
    assert error(codes, tangent.log_euclidean_codes(X, D, 0.1)) < 1e-4


def test_right_angles_of_all_queries_and_atoms_are_counted(monkeypatch):
    """In however many tiles the logarithms are taken."""
    axes = np.eye(2)[:, :, None]
    for tile in (tangent.TANGENTS_AT_A_TIME, 1):
        monkeypatch.setattr(tangent, "TANGENTS_AT_A_TIME", tile)
        with pytest.warns(
            UserWarning, match=r"not unique for 4 pair\(s\) of subspaces"
        ):
            tangent.tangent_grams(axes[[1, 0, 1, 1, 0]], axes)


@pytest.mark.parametrize(
    "call, message",
    [
        (
            lambda X: tangent.tangent_grams(X, X, "median"),
            r"base must be None, 'mean' or a basis \(5, 2\), got 'median'",
        ),
        (
            lambda X: tangent.tangent_grams(X, X, X[0, :, :1]),
            r"base must have shape \(5, 2\) as the atoms, got \(5, 1\)",
        ),
        (
            lambda X: tangent.log_euclidean_codes(X, X, -1),
            "lam must be a number >= 0 .*got -1",
        ),
        (
            lambda X: tangent.log_euclidean_codes(X, X, 1, tol=0),
            "tol must be positive, got 0",
        ),
    ],
)
def test_errors_name_argument_rule_and_value(call, message):
    with pytest.raises(ValueError, match=message):
        call(bases(np.random.default_rng(0), 4, 5, 2))
