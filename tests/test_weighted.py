"""Weighted subspaces: X^ = sum_k w_k u_k u_k^T of ||w||_2 = 1, held as B with X^ = B B^T."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import grassmann_sc as gs
from grassmann_sc import (
    estimators,
    files,
    intrinsic,
    learn,
    projected,
    subspaces,
)
from grassmann_sc.large import scale, streams
from grassmann_sc.large.codes import load_codes, write_codes
from grassmann_sc.strategies import bases
from oracles import TIGHT, dtypes, error, hat, rounding, seeds, vectors

laws = settings(deadline=None, max_examples=60)
ALPHAS = st.sampled_from([0, 1 / 16, 0.25, 0.5, 1, 8, 200])


def weighted(rng, n, d, r):
    """B (n, d, r), some of whose columns are zero."""
    U = bases(rng, n, d, r)
    w = rng.random((n, r)) * (rng.random((n, r)) < 0.7)
    w[np.arange(n), rng.integers(r, size=n)] = 1
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    return U * np.sqrt(w)[:, None]


@st.composite
def problems(draw):
    """(X, D, float type) of any sizes, each weighted or bases."""
    rng = np.random.default_rng(draw(seeds))
    d = draw(st.integers(1, 9))
    dtype = draw(dtypes)
    both = []
    for n in (draw(st.integers(1, 7)), draw(st.integers(1, 7))):
        make = draw(st.sampled_from([weighted, weighted, bases]))
        both.append(make(rng, n, d, draw(st.integers(1, d))).astype(dtype))
    return *both, dtype


def squares(X):
    return np.square(vectors(X.astype(float))).sum(axis=1)


# ------------------------------------------------------------------------ inner products


@laws
@given(problems())
def test_inner_products_are_those_of_dense_matrices(problem):
    X, D, dtype = problem
    K = gs.projection_kernel(X, D)
    assert K.dtype == dtype
    expected = vectors(X.astype(float)) @ vectors(D.astype(float)).T
    assert error(K, expected) < rounding(dtype) * X.shape[1]
    assert error(gs.projection_kernel(X), vectors(X) @ vectors(X).T) < (
        rounding(dtype) * X.shape[1]
    )
    assert error(gs.squared_norm(X), squares(X)) < rounding(dtype) * X.shape[1]


def test_inner_products_by_tiles_and_pieces_of_ragged_ranks():
    rng = np.random.default_rng(0)
    X = weighted(rng, 90, 1500, 24)
    D = weighted(rng, 150, 1500, 16)
    for K, rows, columns in (
        (gs.projection_kernel(X, D), X, D),
        (gs.projection_kernel(X), X, X),
    ):
        for i, j in [(0, 0), (89, 70), (40, 89), (89, 89), (3, 55)]:
            expected = np.linalg.norm(rows[i].T @ columns[j]) ** 2
            assert abs(K[i, j] - expected) < TIGHT


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [300, 30])
def test_gram_matrices_of_several_weights_of_the_same_directions(d, dtype):
    rng = np.random.default_rng(0)
    U = bases(rng, 150, d, 24).astype(dtype)  # in tiles of other columns than rows
    U[::3, :, 5:] = 0
    w = rng.random((3, 150, 24))
    w[:, :, 20:] = 0
    tolerance = 1e-6 if dtype == np.float32 else TIGHT

    def check(K, expected):
        assert K.dtype == dtype
        assert error(K, expected) < tolerance * np.abs(expected).max()

    grams = subspaces.weighted_grams(U, w)
    for K, of in zip(grams, w):
        sums = ((U * of[:, None]) @ U.swapaxes(1, 2)).reshape(150, -1)
        check(K, sums @ sums.T)
        assert np.array_equal(K, K.T)
    total = subspaces.weighted_grams(U, w, total=True)
    check(total, grams.sum(axis=0)[None])
    few = [1, 2, 77]  # alone with all: columns are left out that others need
    for some in (few, few[:1]):
        check(subspaces.weighted_grams(U[some], w[:, some], U, w), grams[:, some])
        back = subspaces.weighted_grams(U, w, U[some], w[:, some], total=True)
        check(back, total[:, :, some])


@laws
@given(seeds, st.booleans())
def test_columns_of_zeros_and_their_order_tell_nothing(seed, many):
    rng = np.random.default_rng(seed)
    X = weighted(rng, 3 if many else 1, 8, 4)
    wide = np.concatenate([X, np.zeros((len(X), 8, 2))], axis=2)
    wide = wide[:, :, rng.permutation(6)]
    D = weighted(rng, 5, 8, 3)
    assert error(gs.projection_kernel(wide, D), gs.projection_kernel(X, D)) < TIGHT
    assert error(gs.projection_kernel(D, wide), gs.projection_kernel(D, X)) < TIGHT
    assert error(gs.gsc(wide, D, 0.1), gs.gsc(X, D, 0.1)) < 1e-6
    assert gs.squared_norm(wide) == 1


@laws
@given(problems())
def test_codes_and_labels_are_those_of_inner_products(problem):
    X, D, _ = problem
    norm2 = squares(X)
    K = gs.projection_kernel(D)
    k = gs.projection_kernel(X, D)
    lam = 0.2 * gs.lam_max(k).max()
    labels = np.arange(len(D)) % 2
    how = {"norm2": norm2.mean()}
    tol = 1e-3 if X.dtype == np.float32 else 1e-7
    assert error(gs.gsc(X, D, lam), gs.sparse_codes(K, k, lam, **how)) < tol
    result = gs.gsc(X, D, lam, return_info=True)
    assert result.gap.max() <= 1e-5 if X.dtype == np.float32 else 1e-8 * norm2.max()
    np.testing.assert_array_equal(
        gs.glc(X, D, 1), gs.locality_codes(K, k, n_neighbors=1, **how)
    )
    info = gs.classify(X, D, labels, lam=lam, return_info=True)
    for c, column in zip(info.classes, info.residuals.T):
        mine = labels == c
        rest = vectors(X) - info.codes[:, mine] @ vectors(D[mine])
        assert error(column, np.square(rest).sum(axis=1)) < tol


def test_a_query_that_is_an_atom_has_it_alone():
    X = weighted(np.random.default_rng(0), 6, 30, 4)
    codes = gs.gsc(X, X, lam=0.1, lam_scale="max")
    assert error(codes.diagonal(), 0.9) < 1e-6  # 1 - lam / 2, lam = 0.1 times 2
    assert gs.classify(X, X, np.arange(6), lam=0.1).tolist() == [*range(6)]


def test_what_needs_a_subspace_says_so():
    X = weighted(np.random.default_rng(0), 4, 8, 3)
    text = "X must have orthonormal columns, of subspaces, got a weighted subspace at "
    for call in (
        lambda: gs.principal_angles(X, X),
        lambda: gs.chordal_distance(X),
        lambda: gs.geodesic_distance(X),
        lambda: gs.chordal_mean(X),
        lambda: gs.projection_kernel(X, each_p=True),
        lambda: intrinsic.log_map(X[0], X[1]),
        lambda: projected.projected_codes(
            X, bases(np.random.default_rng(0), 3, 8, 3), 1
        ),
        lambda: estimators.NearestSubspace().fit(X, [0, 1, 0, 1]),
    ):
        with pytest.raises(ValueError, match=text + "index 0"):
            call()
    with pytest.raises(ValueError, match="D must have orthonormal columns, of subsp"):
        gs.reconstruct(np.ones((1, 4)), X)


def test_bases_and_weighted_subspaces_are_not_mixed_in_an_array():
    rng = np.random.default_rng(0)
    X = np.concatenate([bases(rng, 2, 8, 3), weighted(rng, 2, 8, 3)])
    text = "X must hold bases alone or weighted subspaces alone, .* got one at index "
    for mixed, index, other in ((X, 2, 0), (X[::-1], 0, 2)):
        with pytest.raises(
            ValueError, match=f"{text}{index} and none at index {other}"
        ):
            gs.projection_kernel(mixed)
    for wrong in (2 * X[:1], X[2:3] * 1.001, X[:1] + 0.01):
        with pytest.raises(ValueError, match="X must have orthonormal columns: .*diff"):
            gs.projection_kernel(wrong)
    with pytest.raises(ValueError, match="X must be finite"):
        gs.projection_kernel(np.where(np.arange(3) == 1, np.nan, X[2:]))
    with pytest.raises(ValueError, match="X must be finite"):
        gs.projection_kernel(np.where(np.arange(3) == 1, np.inf, X[:2]))


# ------------------------------------------------------------------------- from the frames


def dense(rows, alpha, most=32):
    """X^ of frames (n, d), by NumPy's SVD."""
    _, s, Vt = np.linalg.svd(rows.astype(float), full_matrices=False)
    eps = np.finfo(np.float32 if rows.dtype == np.float32 else float).eps
    rank = np.count_nonzero(s > 10 * eps * np.sqrt(rows.size) * np.abs(rows).max())
    w = (s[: min(rank, most)] / s[0]) ** (2 * alpha)
    w[w < 1e-3] = 0
    w /= np.linalg.norm(w)
    return (Vt[: len(w)].T * w) @ Vt[: len(w)]


@laws
@given(seeds, st.integers(1, 9), st.integers(1, 9), ALPHAS, dtypes)
def test_a_weighted_subspace_has_the_weights_of_its_frames(seed, n, d, alpha, dtype):
    rows = np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)
    B = subspaces.from_image_set(rows, spectrum=alpha)
    assert B.dtype == dtype and B.shape[1] <= min(n, d)
    # a direction of a value near the cut may be on either side of it
    w = np.linalg.svd(rows, compute_uv=False) ** (2 * alpha)
    if np.abs(w / w[0] - 1e-3).min() > 1e-6:
        assert error(hat(B), dense(rows, alpha)) < 1e3 * rounding(dtype)
    assert error(squares(B[None]), 1) < rounding(dtype, 1e-14)


@laws
@given(seeds, ALPHAS)
def test_sets_of_unlike_ranks_share_one_array(seed, alpha):
    rng = np.random.default_rng(seed)
    sets = [rng.standard_normal((n, 12)) for n in rng.integers(1, 16, 5)]
    X = subspaces.from_sets(sets, spectrum=alpha)
    assert X.shape[2] == max(np.any(B, axis=0).sum() for B in X)
    for B, rows in zip(X, sets):
        alone = subspaces.from_image_set(rows, spectrum=alpha)
        np.testing.assert_array_equal(B[:, : alone.shape[1]], alone)
        assert not B[:, alone.shape[1] :].any()
    given = estimators.ImageSetSubspaces(spectrum=alpha).fit_transform(sets)
    np.testing.assert_array_equal(given, X)


@laws
@given(seeds, ALPHAS)
def test_of_equal_singular_values_no_basis_is_preferred(seed, alpha):
    """And scaling or a rotation of the frames changes nothing."""
    rng = np.random.default_rng(seed)
    U = bases(rng, 1, 9, 4)[0]
    s = np.array([2, 1, 1, 0.5])
    turn = np.eye(4)
    turn[1:3, 1:3] = bases(rng, 1, 2, 2)[0]
    w = s ** (2 * alpha) / 2 ** (2 * alpha)
    w[w < 1e-3] = 0
    expected = (U * (w / np.linalg.norm(w))) @ U.T
    for rows in ((U * s).T, turn @ (U * s).T, 1e5 * bases(rng, 1, 6, 4)[0] @ (U * s).T):
        B = subspaces.from_image_set(rows, spectrum=alpha)
        assert error(hat(B), expected) < TIGHT


def test_from_all_directions_alike_to_the_first_alone():
    rows = np.random.default_rng(0).standard_normal((5, 9))
    X = subspaces.from_image_set(rows, 5)
    alike = subspaces.from_image_set(rows, spectrum=0)
    assert error(hat(alike), hat(X) / np.sqrt(5)) < TIGHT
    first = subspaces.from_image_set(rows, spectrum=300)
    assert first.shape == (9, 1) and error(hat(first), hat(X[:, :1])) < TIGHT
    assert subspaces.from_image_set(rows[:1], spectrum=0.25).shape == (9, 1)
    assert subspaces.from_image_set(rows, 2, spectrum=0).shape == (9, 2)
    many = np.random.default_rng(0).standard_normal((60, 50))
    assert subspaces.from_image_set(many, spectrum=0).shape == (50, 32)
    half = subspaces.weighted(np.eye(3), [1, 0.1, 0.03], spectrum=1)
    assert half.any(axis=0).tolist() == [True, True, False]  # 0.0009 is below 1e-3


def test_directions_of_value_zero_have_no_weight_where_all_count_alike():
    """0 to the power 0 is 1, and would make them count."""
    B = subspaces.weighted(np.eye(4)[:, :3], [2.0, 1.0, 0.0], spectrum=0)
    assert error(np.square(B).sum(axis=0), [0.5**0.5, 0.5**0.5, 0]) < TIGHT
    assert error(hat(B), hat(subspaces.weighted(np.eye(4)[:, :2], [2, 1], 0))) < TIGHT


@pytest.mark.parametrize("ratio, stays", [(1.01e-3, True), (0.99e-3, False)])
def test_directions_of_a_thousandth_of_the_first_weight_or_less_are_cut(ratio, stays):
    """Of the first weight, not of the norm of all, which is larger."""
    s = [5.0, 5.0, 5.0, 5.0, 5 * ratio]
    B = subspaces.weighted(np.eye(5), s, spectrum=0.5)
    assert B.any(axis=0).tolist() == [True] * 4 + [stays]


@laws
@given(seeds, ALPHAS, st.booleans(), dtypes)
def test_directions_serve_every_p_and_spectrum(seed, alpha, center, dtype):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((6, 10)).astype(dtype) + 1
    U, s = subspaces.singular_directions(rows, center=center)
    assert U.shape == (10, 6 - center) and U.dtype == s.dtype == dtype and s[0] == 1
    expected = np.linalg.svd(rows - center * rows.mean(axis=0), compute_uv=False)
    assert error(s, expected[: len(s)] / expected[0]) < 1e2 * rounding(dtype)
    tol = 1e3 * rounding(dtype)
    for p in (1, 3):
        X = subspaces.from_image_set(rows, p, center=center)
        assert error(hat(U[:, :p]), hat(X)) < tol
    B = subspaces.from_image_set(rows, spectrum=alpha, center=center)
    again = subspaces.weighted(U, s, alpha)
    near = np.abs(np.float64(s) ** (2 * alpha) - 1e-3).min() < 1e-5
    assert near or error(hat(B), hat(again)) < tol


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda F: subspaces.from_image_set(F), "p must be an integer, got None"),
        (
            lambda F: subspaces.from_image_set(F, spectrum=-1),
            "spectrum must be >= 0, g",
        ),
        (
            lambda F: subspaces.from_sets([F], 40, spectrum=1),
            "p must be in 1..32, got 40",
        ),
        (
            lambda F: subspaces.from_sets([F], spectrum=1, rank="pad"),
            "rank must be left out with spectrum.* got 'pad'",
        ),
        (lambda F: subspaces.from_sets([F, 0 * F], spectrum=1), r"sets\[1\] must hold"),
        (lambda F: subspaces.weighted(F.T, [1, 2], 1), "s must be singular values, d"),
        (lambda F: subspaces.weighted(F.T, [0, 0], 1), "s must be singular values, d"),
        (
            lambda F: subspaces.weighted(F.T, [1], 1),
            r"U and s must have shapes \(\.\.\.",
        ),
        (lambda F: subspaces.singular_directions(F, 0), "most must be >= 1, got 0"),
    ],
)
def test_bad_spectra_are_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(np.random.default_rng(0).standard_normal((2, 5)))


# ------------------------------------------------------------------------------- learning


def samples(rng, n=30, d=12):
    places = rng.standard_normal((3, d, 4))
    sets = []
    for i in range(n):
        frames = places[i % 3] @ rng.standard_normal((4, rng.integers(2, 9)))
        sets.append((frames + 0.3 * rng.standard_normal(frames.shape)).T)
    return subspaces.from_sets(sets, spectrum=0.25)


@laws
@given(seeds, st.sampled_from(["kmeans++", "random", "kmeans"]), st.booleans())
def test_the_cost_of_a_dictionary_never_rises(seed, init, single):
    X = samples(np.random.default_rng(seed))
    X = X.astype(np.float32) if single else X
    learned = learn.gdl(X, 5, 0.1, lam_scale="max", init=init, n_iter=4, rng=seed)
    assert learned.atoms.dtype == X.dtype
    tol = rounding(X.dtype, 1e-11)
    assert (np.diff(learned.costs) <= tol * learned.costs[0]).all()
    assert (
        error(hat(learned.atoms.swapaxes(1, 2)), np.eye(learned.atoms.shape[2])) < tol
    )
    rest = vectors(X) - learned.codes @ vectors(learned.atoms)
    cost = np.square(rest).sum() + learned.lam * np.abs(learned.codes).sum()
    assert abs(cost - learned.costs[-1]) < rounding(X.dtype, 1e-9) * cost


@laws
@given(seeds)
def test_an_atom_is_the_best_subspace_for_its_samples(seed):
    rng = np.random.default_rng(seed)
    X = weighted(rng, 6, 7, 4)
    D = bases(rng, 1, 7, 2)
    codes = rng.standard_normal((6, 1))
    atoms = learn.update_atoms(X, D, codes)
    S = np.einsum("i,ide->de", codes[:, 0], hat(X))
    assert abs(
        np.trace(atoms[0].T @ S @ atoms[0]) - np.linalg.eigvalsh(S)[-2:].sum()
    ) < (1e-9)


def test_atoms_have_the_dimension_of_the_weights_or_that_of_init():
    rng = np.random.default_rng(0)
    of_three = np.pad(bases(rng, 9, 10, 3) / 3**0.25, ((0, 0), (0, 0), (0, 2)))
    assert learn.init_atoms(of_three, 4, rng=0).shape == (4, 10, 3)
    assert learn.gdl(of_three, 4, 0.1, rng=0, n_iter=1).atoms.shape == (4, 10, 3)
    init = bases(rng, 4, 10, 2)
    assert learn.gdl(of_three, 4, 0.1, init=init, n_iter=1).atoms.shape == (4, 10, 2)
    with pytest.raises(ValueError, match=r"init must have shape \(4, 10, 5\), got"):
        learn.gdl(bases(rng, 9, 10, 5), 4, 0.1, init=init)
    thin = np.zeros((2, 10, 4))  # one direction: two of the atom are free
    thin[:, 3, 2] = 1
    atoms = learn.closest_subspaces(thin, 3)
    assert error(hat(atoms.swapaxes(1, 2)), np.eye(3)) < TIGHT
    assert error(np.linalg.norm(atoms[:, 3], axis=1), 1) < TIGHT
    X = weighted(rng, 5, 8, 4)
    values = np.linalg.eigvalsh(hat(X))[:, -2:].sum(axis=1)
    closest = learn.closest_subspaces(X, 2)
    explained = np.trace(closest.swapaxes(1, 2) @ hat(X) @ closest, axis1=1, axis2=2)
    assert error(explained, values) < TIGHT


def closest_of_unit_norm(S, p):
    """The X^ of rank p and norm 1 closest to S: positive parts of leading eigenvalues."""
    values, vectors = np.linalg.eigh(S)
    w = np.maximum(values[::-1][:p], 0)
    w[0] += not w.any()
    return (vectors[:, ::-1][:, :p] * w) @ vectors[:, ::-1][:, :p].T / np.linalg.norm(w)


@laws
@given(seeds, st.sampled_from([7, 60]))
def test_a_weighted_atom_is_the_closest_of_unit_norm(seed, d):
    rng = np.random.default_rng(seed)
    X = weighted(rng, 6, d, 4)
    D = weighted(rng, 2, d, 3)
    codes = rng.standard_normal((6, 2))
    codes[:3, 1] = 0
    weights = rng.random(6) + 0.1
    atoms = learn.update_atoms(X, D, codes, sample_weight=weights)
    of_atoms = hat(D)
    for r in range(2):
        rest = hat(X) - np.einsum("i,de->ide", codes[:, 1 - r], of_atoms[1 - r])
        S = np.einsum("i,ide->de", weights * codes[:, r], rest)
        values = np.linalg.eigvalsh(S)[::-1]
        best = np.linalg.norm(np.maximum(values[:3], 0)) or values[0]
        assert abs(np.vdot(S, hat(atoms[r])) - best) < 1e-8 * np.abs(values).max()
        assert error(squares(atoms[r][None]), 1) < TIGHT
        of_atoms[r] = hat(atoms[r])
        if values[0] > 1e-3:
            assert error(of_atoms[r], closest_of_unit_norm(S, 3)) < 1e-5


@pytest.mark.parametrize("d", [12, 150])
def test_weighted_atoms_explain_weighted_samples_better(d, tmp_path):
    X = samples(np.random.default_rng(0), 40, d)
    plain = learn.gdl(X, 5, 0.2, rng=0)
    how = {"init": X[:5], "rng": 0}
    learned = learn.gdl(X, 5, 0.2, n_iter=8, **how)
    assert (np.diff(learned.costs) <= 1e-11 * learned.costs[0]).all()
    # atoms of norm sqrt(p) have a code shorter by that factor
    scale = np.sqrt(plain.atoms.shape[2])
    units = learn.gdl(X, 5, 0.2 * scale, init=plain.atoms, n_iter=8)
    assert learned.costs[-1] < 0.95 * units.costs[-1]
    rest = vectors(X) - learned.codes @ vectors(learned.atoms)
    cost = np.square(rest).sum() + 0.2 * np.abs(learned.codes).sum()
    assert abs(cost - learned.costs[-1]) < 1e-9 * cost
    assert error(squares(learned.atoms), 1) < TIGHT
    again = gs.gsc(X, learned.atoms, 0.2)
    assert error(again, learned.codes) < 1e-3
    path = tmp_path / "state.npz"
    learn.gdl(X, 5, 0.2, n_iter=3, checkpoint=path, **how)
    resumed = learn.gdl(X, 5, 0.2, n_iter=8, resume=path, **how)
    np.testing.assert_array_equal(resumed.atoms, learned.atoms)


def test_the_dimension_of_atoms_counts_samples_by_their_weights():
    w = np.ones((10, 4))
    w[:4, 1:] = 0.01  # ||w||_1^2 / ||w||_2^2 is 1.06 there, and 4 elsewhere
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    X = gs.random_subspaces(10, 8, 4, rng=0) * np.sqrt(w)[:, None]
    sizes = [4, 4, 4, 4, 1, 1, 1, 1, 1, 1]
    for weights, p in [(sizes, 1), (sizes[::-1], 4), ([1] * 4 + [0] * 6, 1)]:
        repeated = np.repeat(X, weights, axis=0)
        for atoms in (
            learn.init_atoms(repeated, 2, rng=0),
            learn.init_atoms(X, 2, rng=0, sample_weight=weights),
        ):
            assert atoms.shape == (2, 8, p)


def test_an_unused_weighted_atom_becomes_the_sample_coded_worst():
    X = samples(np.random.default_rng(0), 30)
    far = np.pad(X, ((0, 0), (0, 1), (0, 0)))  # the last pixel is of no sample
    away = np.zeros((1, 13, 3))
    away[0, 12, 0] = 1
    init = np.concatenate([far[:3, :, :3], away])
    init /= np.sqrt(np.linalg.norm(np.square(init).sum(axis=1), axis=1))[:, None, None]
    learned = learn.gdl(far, 4, 0.2, init=init, n_iter=1)
    assert learned.n_replaced == 1 and error(squares(learned.atoms), 1) < TIGHT
    with pytest.raises(
        ValueError, match="init must have orthonormal columns, of subsp"
    ):
        learn.gdl(bases(np.random.default_rng(0), 9, 13, 3), 4, 0.2, init=init)


def test_learning_goes_on_from_a_checkpoint_to_the_bits(tmp_path):
    X = samples(np.random.default_rng(0))
    how = {"lam_scale": "max", "rng": 0}
    whole = learn.gdl(X, 5, 0.1, n_iter=6, **how)
    path = tmp_path / "state.npz"
    learn.gdl(X, 5, 0.1, n_iter=3, checkpoint=path, **how)
    resumed = learn.gdl(X, 5, 0.1, n_iter=6, resume=path, **how)
    np.testing.assert_array_equal(resumed.atoms, whole.atoms)


def test_a_stream_takes_batches_of_unlike_ranks(tmp_path):
    X = samples(np.random.default_rng(0), 60)
    batches = []
    for some in np.split(X, 6):
        width = np.flatnonzero(some.any(axis=(0, 1))).max() + 1
        batches.append(some[:, :, :width])
    padded = streams.OnlineGDL(4, 0.1, lam_scale="max", rng=0)
    cut = streams.OnlineGDL(4, 0.1, lam_scale="max", rng=0)
    for batch, whole in zip(batches, np.split(X, 6)):
        cut.partial_fit(batch)
        padded.partial_fit(whole)
    assert error(cut.atoms, padded.atoms) < 1e-9
    cut.collect(batches[0])
    cut.save(tmp_path / "stream.npz")
    again = streams.OnlineGDL.load(tmp_path / "stream.npz")
    for learner in (cut, again):
        learner.collect(batches[1])
        learner.update()
    np.testing.assert_array_equal(cut.atoms, again.atoms)
    cut.collect(batches[0])
    text = "X must hold weighted subspaces as the batches before, got bases"
    with pytest.raises(ValueError, match=text):
        cut.collect(bases(np.random.default_rng(0), 5, 12, cut.atoms.shape[2]))


# --------------------------------------------------------------- what stands on top of it


def test_more_weighted_subspaces_of_any_rank_are_taken_and_no_bases():
    X = samples(np.random.default_rng(0), 12)
    y = np.arange(12) % 3
    few = X[8:, :, :-1]
    norm = np.linalg.norm(np.square(few).sum(axis=1), axis=1)
    few = few / np.sqrt(norm)[:, None, None]
    whole = np.concatenate([X[:8], np.pad(few, ((0, 0), (0, 0), (0, 1)))])
    model = estimators.CodingClassifier().fit(X[:8], y[:8])
    model.partial_fit(few, y[8:])
    assert np.array_equal(
        model.gram_, estimators.CodingClassifier().fit(whole, y).gram_
    )
    with pytest.raises(ValueError, match="is 1: p of bases, 1 of weighted ones, got 2"):
        model.partial_fit(gs.random_subspaces(2, X.shape[1], 2, rng=0), [0, 1])


def test_estimators_on_weighted_subspaces_are_those_on_their_gram_matrix():
    X = samples(np.random.default_rng(0), 40)
    y = np.arange(40) % 3
    K = estimators.ProjectionKernel().fit_transform(X[:30])
    k = estimators.ProjectionKernel().fit(X[:30]).transform(X[30:])
    for how in ({"lam": 0.1, "lam_scale": "max"}, {"coding": "local"}):
        on_points = estimators.CodingClassifier(**how).fit(X[:30], y[:30])
        on_gram = estimators.CodingClassifier(**how, kernel="precomputed")
        on_gram.fit(K, y[:30])
        scores = on_points.class_scores(X[30:])
        assert error(scores, on_gram.class_scores(k)) < 1e-6
    more = on_points.partial_fit(X[30:, :, : X.shape[2]], y[30:])
    assert len(more.atoms_) == 40
    coder = estimators.GrassmannDictionary(4, random_state=0).fit(X)
    assert coder.transform(X[:3]).shape == (3, 4)
    clusters = estimators.SubspaceClustering(3, random_state=0).fit_predict(X)
    assert len({*zip(y.tolist(), clusters.tolist())}) == 3


def test_files_and_blocks_hold_weighted_subspaces(tmp_path):
    X = samples(np.random.default_rng(0), 40)
    codes = gs.gsc(X, X[:6], 0.1)
    write_codes(tmp_path / "codes.npy", X, X[:6], lam=0.1)
    assert error(load_codes(tmp_path / "codes.npy"), codes) < 1e-6
    files.save(tmp_path / "atoms.npz", X[:6])
    np.testing.assert_array_equal(files.load(tmp_path / "atoms.npz").atoms, X[:6])
    dask_array = pytest.importorskip("dask.array")
    blocks = dask_array.from_array(X, chunks=(9, *X.shape[1:]))
    assert error(scale.code(blocks, X[:6], lam=0.1).compute(), codes) < 1e-6


def test_no_two_equal_samples_replace_idle_atoms():
    X = weighted(np.random.default_rng(0), 2, 9, 4)[[0, 0, 1]]
    _, worst = learn.idle_and_worst(np.array([0, 0, 1.0]), X, np.array([3, 3, 1.0]))
    assert worst == [0, 2]


def test_a_stream_takes_batches_of_another_float_type():
    X = samples(np.random.default_rng(0), 40)
    learners = []
    for second in (X[20:].astype(np.float32), X[20:]):
        learner = streams.OnlineGDL(4, 0.1, lam_scale="max", rng=0)
        learners.append(learner.partial_fit(X[:20]).collect(second))
    assert learners[0].atoms.dtype == np.float64
    assert abs(learners[0].loss - learners[1].loss) < 1e-5 * learners[1].loss


@pytest.mark.parametrize("d", [2, 3, 6, 10, 40])
def test_an_atom_of_the_right_span_gets_the_right_directions(d):
    """Also where it spans all of R^d, so that no direction is outside."""
    angle = np.radians(80)
    turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    U = np.zeros((31, d, 2))
    U[:, :2] = [turn, *[np.eye(2)] * 30]
    B = subspaces.weighted(U, np.tile([1, 0.3], (31, 1)), 1)
    (atom,) = learn.update_atoms(B[1:], B[:1], np.ones((30, 1)))
    assert error(atom @ atom.T, B[1] @ B[1].T) <= TIGHT
    costs = [learn.gdl(B[1:], 1, lam=0.02, init=A).costs for A in (B[:1], B[1:2])]
    assert costs[0][-1] == pytest.approx(costs[1][-1])
