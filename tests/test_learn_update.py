"""Laws of the update of the atoms, against explicit d x d projectors and dense
eigen-solvers.
"""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings

import grassmann_sc as core
from grassmann_sc import kernels, learn, shared
from grassmann_sc.strategies import KINDS, bases
from oracles import LOOSE, TIGHT, error, explicit_cost, hat, samples_and_atoms, seeds

SHORT = core.random_subspaces(9, 5, 2, rng=3)
LONG = core.random_subspaces(30, 70, 2, rng=3)  # d above 16 p: Krylov steps


def explicit_updates(X, D, codes, updated):
    """(S_r, old atom, new atom) of each update in turn, S_r (d, d) from projectors, the
    atoms before r already updated.
    """
    D = D.copy()
    shared = codes.T @ codes
    for r in np.flatnonzero(codes.any(axis=0)):
        others = np.delete(np.arange(len(D)), r)
        S = np.einsum("n,nab->ab", codes[:, r], hat(X)) - np.einsum(
            "n,nab->ab", shared[r, others], hat(D[others])
        )
        yield S, D[r], updated[r]
        D[r] = updated[r]


# ---------------------------- laws


@settings(max_examples=100, deadline=None)
@given(samples_and_atoms(), st.booleans())
def test_atom_update_never_raises_the_cost_of_any_codes(problem, signed):
    """Gauss-Seidel holds for codes that no coding step produced, negative ones too."""
    X, n_atoms, seed = problem
    rng = np.random.default_rng(seed)
    D = bases(rng, n_atoms, *X.shape[1:])
    codes = rng.standard_normal((len(X), n_atoms)) * (
        rng.random((len(X), n_atoms)) < 0.6
    )
    codes = codes if signed else np.abs(codes)
    before = explicit_cost(X, D, codes)
    assert explicit_cost(
        X, learn.update_atoms(X, D, codes), codes
    ) <= before + TIGHT * max(1, before)


@settings(max_examples=40, deadline=None)
@given(samples_and_atoms())
def test_no_competitor_beats_an_updated_atom_given_the_others(problem):
    """The last atom sees all others in their final state, so it is the global
    minimiser.
    """
    X, n_atoms, seed = problem
    rng = np.random.default_rng(seed)
    D = bases(rng, n_atoms, *X.shape[1:])
    codes = rng.standard_normal((len(X), n_atoms))
    D = learn.update_atoms(X, D, codes)
    best = explicit_cost(X, D, codes)
    baseline = D.copy()
    near = np.linalg.qr(D[-1] + 0.01 * rng.standard_normal((25, *X.shape[1:])))[0]
    for candidate in [*bases(rng, 25, *X.shape[1:]), *near, *X]:
        baseline[-1] = candidate
        assert explicit_cost(X, baseline, codes) >= best - TIGHT * max(1, best)


@pytest.mark.parametrize("d, p", [(5, 2), (17, 1), (100, 2), (200, 5)])
@pytest.mark.parametrize(
    "dtype, off",
    [
        (np.float64, 4e-7),
        (np.float64, 1e-11),
        (np.float64, 0),
        (np.float32, 4e-4),
        (np.float32, 1e-5),
    ],
)
def test_bases_that_just_may_enter_become_atoms_that_are_orthonormal(d, p, dtype, off):
    """Samples in single precision, read as double, are orthonormal to 1e-7 only."""
    rough = core.random_subspaces(12, d, p, rng=0).astype(np.float32) * (1 + off)
    X = np.concatenate([rough, rough[:4]]).astype(dtype)
    eps = np.finfo(dtype).eps
    atoms = learn.update_atoms(X, X[:3], np.eye(16, 3))
    learned = learn.gdl(X, 6, 0.5, rng=0, n_iter=4, tol=0)
    for D in (atoms, learned.atoms):
        assert np.abs(D.swapaxes(1, 2) @ D - np.eye(p)).max() <= 20 * eps
    exact = core.orthonormalize(X[:3].astype(float))
    assert error(hat(atoms), hat(exact)) <= 1e3 * eps
    assert (np.diff(learned.costs) <= 100 * eps * learned.costs[0]).all()


@pytest.mark.parametrize("X", [SHORT, LONG])
@pytest.mark.parametrize("scale", [2.0**135, 2.0**-160])
def test_weights_beyond_float32_count_as_others_do(X, scale):
    X = X.astype(np.float32)
    rng = np.random.default_rng(0)
    codes = rng.standard_normal((len(X), 3))
    weights = rng.random(len(X))
    usual = learn.update_atoms(X, X[:3], codes, sample_weight=weights)
    assert np.array_equal(
        learn.update_atoms(X, X[:3], codes, sample_weight=scale * weights), usual
    )


@pytest.mark.parametrize("X", [SHORT, LONG])
def test_atoms_of_light_samples_are_updated_as_those_of_heavy_ones(X):
    """Weights that no common unit holds: a scale of S_r does not move an atom."""
    codes = np.zeros((6, 4))
    codes[:3, :2] = np.random.default_rng(0).standard_normal((3, 2))
    codes[3:, 2:] = np.random.default_rng(1).standard_normal((3, 2))
    weights = np.array([1.0, 2.0, 3.0, 3.0, 1.0, 2.0])
    usual = learn.update_atoms(X[:6], X[-4:], codes, sample_weight=weights)
    weights *= np.repeat([2.0**1000, 2.0**-100], 3)
    told_apart = learn.update_atoms(X[:6], X[-4:], codes, sample_weight=weights)
    assert np.array_equal(told_apart, usual)
    codes[2, 3] = 0.5  # a heavy sample of an atom of light ones, which it outweighs
    atoms = learn.update_atoms(X[:6], X[-4:], codes, sample_weight=weights)
    S = hat(X[2]) - np.einsum("j,jab->ab", codes[2, :2], hat(atoms[:2]))
    leading = np.linalg.eigh(S)[1][:, -X.shape[2] :]
    assert error(hat(atoms[3]), hat(leading)) <= LOOSE


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("X", [SHORT, LONG])
def test_codes_of_any_size_move_atoms_as_their_limits_do(X, dtype):
    """Small codes leave the samples alone in S_r, large ones the other atoms."""
    X = X.astype(dtype)
    codes = np.random.default_rng(0).standard_normal((len(X), 3))
    most = 100 if dtype == np.float32 else 900
    small, smaller, large, larger = (
        hat(learn.update_atoms(X, X[:3], codes * 2.0**k))
        for k in (-most, 20 - most, most - 20, most)
    )
    for r in range(3):
        S = np.einsum("n,nab->ab", codes[:, r], hat(X.astype(float)))
        leading = np.linalg.eigh(S)[1][:, -2:]
        assert error(small[r], hat(leading)) <= 1e-3
    assert error(small, smaller) <= 1e-5 and error(large, larger) <= 1e-5


def test_each_atom_is_updated_in_turn_with_the_new_ones_before_it():
    rng = np.random.default_rng(0)
    D = core.random_subspaces(4, 5, 2, rng=1)
    codes = rng.standard_normal((9, 4))
    twin = D.copy()
    for r in range(4):
        others = np.arange(4) != r
        S = np.einsum(
            "n,nab->ab",
            codes[:, r],
            hat(SHORT) - np.einsum("nj,jab->nab", codes[:, others], hat(twin[others])),
        )
        twin[r] = np.linalg.eigh(S)[1][:, -2:]
    assert error(hat(learn.update_atoms(SHORT, D, codes)), hat(twin)) <= TIGHT


def test_two_atom_case_of_the_errata_falls_from_2_04_to_1_02():
    """The Jacobi update, all atoms from the old dictionary, gives 2.04, 2.44, 2.04, ...
    here.
    """
    X = np.eye(2)[:, :, None]
    D = np.array([[[1.0], [0]], [[1], [0]]])
    codes = np.array([[0.6, 0.6], [0.5, 0.5]])
    assert abs(explicit_cost(X, D, codes) - 2.04) <= TIGHT
    assert abs(explicit_cost(X, learn.update_atoms(X, D, codes), codes) - 1.02) <= TIGHT


def test_an_atom_that_no_sample_uses_stays_in_the_update():
    D = core.random_subspaces(3, 5, 2, rng=1)
    codes = np.random.default_rng(2).standard_normal((9, 3))
    codes[:, 1] = 0
    updated = learn.update_atoms(SHORT, D, codes)
    assert np.array_equal(updated[1], D[1]) and not np.array_equal(updated[2], D[2])


def test_codes_may_hold_an_entry_in_parts():
    D = core.random_subspaces(2, 5, 2, rng=1)
    codes = scipy.sparse.csr_array(
        ([0.5, 0.25, 1, 1], [0, 0, 1, 0], [0, 2, 3, 4]), shape=(3, 2)
    )
    updated = learn.update_atoms(SHORT[:3], D, codes)
    assert np.array_equal(updated, learn.update_atoms(SHORT[:3], D, codes.toarray()))
    assert codes.nnz == 4


# ---------------------------- large d


@settings(max_examples=60, deadline=None)
@given(
    seeds,
    st.integers(66, 120),
    st.integers(1, 4),
    st.integers(2, 20),
    st.integers(1, 8),
    st.sampled_from([*KINDS, "axes"]),
    st.sampled_from(["signed", "positive", "negative", "rounded"]),
)
def test_each_atom_is_what_a_dense_eigen_solver_finds(seed, d, p, n, N, kind, sign):
    """By Krylov steps; atoms that start in an invariant subspace, negative S_r and many
    equal eigenvalues among them.
    """
    rng = np.random.default_rng(seed)
    if kind == "axes":
        X = np.stack(
            [np.eye(d)[:, rng.choice(3 * p + 3, p, replace=False)] for _ in range(n)]
        )
    else:
        X = bases(rng, n, d, p, kind)
    D = X[rng.integers(0, n, N)].copy()
    codes = rng.standard_normal((n, N)) * (rng.random((n, N)) < 0.6)
    codes = {
        "signed": codes,
        "positive": np.abs(codes),
        "negative": -np.abs(codes),
        "rounded": np.round(codes),
    }[sign]
    updated = learn.update_atoms(X, D, codes)
    rounding = (
        1e-2 * TIGHT * p * np.square(np.abs(codes).sum(axis=1)).sum()
    )  # of S itself, whose terms may all cancel
    for S, old, new in explicit_updates(X, D, codes, updated):
        values = np.linalg.eigvalsh(S)
        gained = np.trace(new.T @ S @ new)
        assert (
            values[-p:].sum() - gained
            <= LOOSE * max(values[-p:].sum(), 0.1 * np.abs(values).max()) + rounding
        )
        assert (
            np.trace(old.T @ S @ old) - gained
            <= TIGHT * p * np.abs(values).max() + rounding
        )
    assert error(np.swapaxes(updated, 1, 2) @ updated, np.eye(p)) <= TIGHT


def test_an_atom_that_leads_by_little_is_found():
    """The last S has eigenvalues from -1.6 to 6e-7, of two samples 1e-6 apart, and many
    zeros.
    """
    rng = np.random.default_rng(63664)
    X = rng.standard_normal((14, 89, 1))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    for i in range(1, 14, 2):
        step = 10.0 ** rng.integers(-9, -4)
        X[i] = X[i - 1] + step * rng.standard_normal((2, 89, 1))[1]
        X[i] /= np.linalg.norm(X[i])
    D = X[rng.integers(0, 14, 3)].copy()
    codes = rng.standard_normal((14, 3)) * (rng.random((14, 3)) < 0.6)
    updated = learn.update_atoms(X, D, codes)
    *_, (S, _, new) = explicit_updates(X, D, codes, updated)
    top = np.linalg.eigvalsh(S)[-1]
    assert 1e-7 < top < 1e-6
    assert np.trace(new.T @ S @ new) > 0.999 * top


def test_large_updates_are_those_of_small_ones(monkeypatch):
    rng = np.random.default_rng(0)
    D = LONG[:5]
    codes = rng.standard_normal((30, 5))
    whole = learn.update_atoms(LONG, D, codes)
    short = (learn, "SHORT", 0)
    large = (learn, "LARGE", 0)
    for changes in ([short], [large], [(learn, "ONE_THREAD", 8)], [short, large]):
        with monkeypatch.context() as patch:
            for change in changes:
                patch.setattr(*change)
            updated = learn.update_atoms(LONG, D, codes)
        assert error(hat(updated), hat(whole)) <= 1e4 * LOOSE


@pytest.mark.parametrize("p", [1, 2])
def test_update_leaves_the_callers_atoms_alone(p):
    X = core.random_subspaces(8, 70, p, rng=0)
    D = X[:3].copy()
    learn.update_atoms(X, D, np.ones((8, 3)))
    assert np.array_equal(D, X[:3])


@pytest.mark.parametrize(
    "d, p, n, second",
    [(300, 1, 200, 1.05), (300, 2, 100, 1.01), (2000, 3, 2, 1.1), (5000, 2, 7, 1.1)],
)
def test_an_atom_leaves_eigenvectors_that_do_not_lead(d, p, n, second):
    basis = core.random_subspaces(1, d, n * p, rng=d)[0]
    X = basis.reshape(d, n, p).swapaxes(
        0, 1
    )  # orthogonal samples: S = sum_i y_i X_i^, and X_0 spans eigenvectors of it
    codes = np.array([1, second, *np.linspace(0.5, 0.95, n - 2)])[:, None]
    atom = learn.update_atoms(X, X[:1], codes)
    assert core.projection_kernel(atom, X[1:2]).item() == pytest.approx(p, abs=1e-8)


@pytest.mark.parametrize(
    "d, axes, codes, old",
    [
        (30, [13, 23, 7, 17, 29], [-10, 2, -100, 0.5, -2], 17),
        (20, [11, 5, 8, 6, 19], [0.5, -10, -4, -3, 0.25], 19),
    ],
)
def test_an_atom_leaves_an_axis_that_does_not_lead(d, axes, codes, old):
    """Nothing that S makes of it shows where S is larger."""
    axis = np.eye(d)[..., None]
    atoms = learn.update_atoms(axis[axes], axis[[old]], np.array(codes)[:, None])
    leading = axis[axes[np.argmax(codes)]]
    assert error(np.abs(atoms[0]), leading) < TIGHT


def test_the_largest_part_of_a_sum_is_largest_in_modulus():
    M = core.random_subspaces(1, 40, 12, rng=0)[0].T.copy()
    small = 1e-6
    w = np.array([small, 4, -5, small, 2, -3, *6 * [small]])
    rows, sizes = learn.largest_part(M, w, 0, 4, 0, shared.ONE_THREAD)
    assert error(np.sort(sizes), [-5, -3, 2, 4]) <= LOOSE
    assert error((rows.T * sizes) @ rows, (M.T * w) @ M) <= small


def test_kernel_atoms_are_those_of_the_printed_generalised_eigenproblem():
    """kgDL's update in the coordinates of kernels.Lift, beside S_r^Psi v = lambda K v on
    coefficients of frames, where each sample uses each atom: all frames then span it.
    """
    rng = np.random.default_rng(0)
    sets = rng.standard_normal((7, 3, 6))
    kernel = kernels.rbf(0.2)
    X = kernels.Lift(kernel, p=2).fit(sets).transform(sets)
    codes = rng.standard_normal((7, 3))
    atoms = learn.update_atoms(X, X[:3], codes)

    K = kernel(sets.reshape(21, 6), sets.reshape(21, 6))
    bases_of = np.zeros((7, 21, 2))  # A_i: a basis of sample i is Phi(all frames) A_i
    for i in range(7):
        own = slice(3 * i, 3 * i + 3)
        s, U = np.linalg.eigh(K[own, own])
        bases_of[i, own] = U[:, 1:] / np.sqrt(s[1:])
    B = hat(K @ bases_of)  # K A A^T K
    printed = bases_of[:3].copy()
    for r in range(3):
        S = np.zeros((21, 21))
        for i in range(7):
            rest = sum(codes[i, j] * hat(K @ printed[j]) for j in range(3) if j != r)
            S += codes[i, r] * (B[i] - rest)
        printed[r] = scipy.linalg.eigh(S, K)[1][:, -2:]
    products = np.einsum("nap,ab,mbq->nmpq", bases_of, K, printed)
    expected = np.square(products).sum(axis=(2, 3))
    assert error(core.projection_kernel(X, atoms), expected) <= TIGHT
