"""Bad input: one error that names the argument, the rule and the value, before any
work.
"""

import inspect
import re

import numpy as np
import pytest
import scipy.sparse
from sklearn.pipeline import make_pipeline

import grassmann_sc as gs
from grassmann_sc import (
    discriminative,
    estimators,
    intrinsic,
    kernels,
    learn,
    projected,
    subspaces,
)
from grassmann_sc.baselines import hulls, tangent
from grassmann_sc.large import streams

X = gs.random_subspaces(3, 4, 2, rng=0)
D = gs.random_subspaces(5, 4, 2, rng=1)
K_DD = gs.projection_kernel(D)
K_XD = gs.projection_kernel(X, D)
CODES = np.ones((3, 5))
LABELS = [0, 1, 0, 1, 2]

# Functions of one set of subspaces, by the name of the argument; each call takes the
# bad array.
OF_SUBSPACES = {
    "projection_kernel X": lambda A: gs.projection_kernel(A, D),
    "projection_kernel D": lambda A: gs.projection_kernel(X, A),
    "principal_angles X": lambda A: gs.principal_angles(A, D[0]),
    "principal_angles Y": lambda A: gs.principal_angles(X[0], A),
    "chordal_distance X": lambda A: gs.chordal_distance(A, D),
    "chordal_distance Y": lambda A: gs.chordal_distance(X, A),
    "geodesic_distance X": lambda A: gs.geodesic_distance(A, D),
    "geodesic_distance Y": lambda A: gs.geodesic_distance(X, A),
    "chordal_mean X": gs.chordal_mean,
    "gsc X": lambda A: gs.gsc(A, D, 0.1),
    "gsc D": lambda A: gs.gsc(X, A, 0.1),
    "glc X": lambda A: gs.glc(A, D, 2),
    "glc D": lambda A: gs.glc(X, A, 2),
    "reconstruct D": lambda A: gs.reconstruct(CODES, A),
    "classify X": lambda A: gs.classify(A, D, LABELS, lam=0.1),
    "classify D": lambda A: gs.classify(X, A, LABELS, n_neighbors=2),
}
of_subspaces = pytest.mark.parametrize(
    "call, name",
    [(call, key.split()[1]) for key, call in OF_SUBSPACES.items()],
    ids=OF_SUBSPACES,
)


def with_entry(A, index, value):
    A = np.array(A, dtype=np.result_type(A, type(value)))
    A[index] = value
    return A


# ---------------------------------------------------------------------------- subspaces


@of_subspaces
def test_number_of_dimensions(call, name):
    with pytest.raises(
        ValueError, match=rf"^{name} must have .*dimensions .*got shape \(4,\)"
    ):
        call(np.ones(4))


@pytest.mark.parametrize("bad", [X[0], X[None]], ids=["basis", "batch"])
@pytest.mark.parametrize("key", [key for key in OF_SUBSPACES if "angles" not in key])
def test_sets_have_three_dimensions(key, bad):
    with pytest.raises(
        ValueError,
        match=rf"^{key[-1]} must have 3 dimensions \(n, d, p\), "
        rf"got shape \({bad.shape[0]}, ",
    ):
        OF_SUBSPACES[key](bad)


@of_subspaces
def test_more_columns_than_rows(call, name):
    with pytest.raises(
        ValueError,
        match=rf"^{name} must have 1 <= p <= d, got p = 4, d = 2; axes "
        r"are \((n|...), d, p\): transposed\?$",
    ):
        call(X.swapaxes(1, 2))
    with pytest.raises(
        ValueError, match=rf"^{name} must have 1 <= p <= d, got p = 0, d = 4$"
    ):
        call(X[:, :, :0])


def test_projectors_are_told_the_way_to_their_bases():
    projectors = X @ X.swapaxes(1, 2)
    with pytest.raises(
        ValueError, match=r"; of projectors, proj\(X, p\) are the bases$"
    ):
        gs.projection_kernel(projectors)
    angles = gs.principal_angles(gs.proj(projectors, X.shape[2]), X)
    assert angles.max() < 1e-12


@of_subspaces
def test_columns_that_are_not_orthonormal(call, name):
    bad = X.copy()
    bad[1] *= 1.1
    rule = f"^{name} must have orthonormal columns: "
    with pytest.raises(
        ValueError,
        match=rf"{rule}{name}\^T {name} differs from I by 0\.21 at "
        rf"index 1; call orthonormalize\({name}\) first",
    ):
        call(bad)
    with pytest.raises(
        ValueError, match=rf"{rule}.* differs from I by 2e-05 at index 0"
    ):
        call(X * (1 + 1e-5))


def columns_with_products(G, d=9):
    """Subspaces (5, d, p) of orthonormal columns, but for the fourth: B^T B = G."""
    few = np.stack([np.eye(d)[:, : len(G)]] * 5)
    few[3] = few[3] @ np.linalg.cholesky(G).T
    return few


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("a, b", [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)])
def test_any_product_of_columns_refuses_bases_beyond_the_tolerance(a, b, sign):
    for size, refused in ((0.9e-6, False), (1.1e-6, True)):
        G = np.eye(3)
        G[a, b] = G[b, a] = G[a, b] + sign * size
        few = columns_with_products(G)
        if refused:
            message = r"differs from I by 1\.1e-06 at index 3"
            with pytest.raises(ValueError, match=message):
                gs.chordal_distance(few)
            with pytest.raises(ValueError, match=message):
                gs.projection_kernel(few)
        else:
            assert np.isfinite(gs.projection_kernel(few)).all()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("a, b", [(0, 0), (2, 2), (0, 1), (0, 2), (1, 2)])
def test_any_product_of_columns_refuses_weighted_subspaces_too(a, b, sign):
    """Their squared lengths w_k have the norm 1."""
    w = np.array([0.8, 0.5, 0.0])
    w[2] = np.sqrt(1 - w @ w)
    for size, refused in ((0.4e-6, False), (2.5e-6, True)):
        G = np.diag(w)
        G[a, b] = G[b, a] = G[a, b] + sign * size
        few = columns_with_products(G)[3:4]
        if refused:
            with pytest.raises(ValueError, match="X must have orthonormal columns"):
                gs.projection_kernel(few)
        else:
            assert np.isfinite(gs.projection_kernel(few)).all()


@pytest.mark.parametrize("dtype, large", [(float, 1e200), (np.float32, 1e30)])
def test_columns_whose_squares_overflow_are_finite_but_not_orthonormal(dtype, large):
    bad = X.astype(dtype)
    bad[1] *= large
    with pytest.raises(
        ValueError, match="^X must have orthonormal .* at index 1; call"
    ):
        gs.projection_kernel(bad, X.astype(dtype))


@of_subspaces
def test_columns_that_are_orthonormal_to_rounding(call, name):
    assert np.isfinite(call(D.astype(np.float32))).all()
    assert np.isfinite(call(D * (1 + 1e-7))).all()


@of_subspaces
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_in_subspaces(call, name, value):
    with pytest.raises(
        ValueError,
        match=rf"^{name} must be finite, got NaN or infinity in the "
        "basis at index 2",
    ):
        call(with_entry(X, (2, 0, 1), value))


@of_subspaces
def test_subspaces_that_are_not_real_numbers(call, name):
    bad_types = [
        (X * 1j, "complex128"),
        (X.astype(str), "<U"),
        (X.astype(object), "object"),
    ]
    for bad, got in bad_types:
        with pytest.raises(
            TypeError, match=rf"^{name} must hold real numbers, got dtype {got}"
        ):
            call(bad)
    with pytest.raises(
        ValueError,
        match=rf"^{name} must be an array, got nested sequences of "
        "different lengths",
    ):
        call([[[1.0], [0.0]], [[1.0]]])


@pytest.mark.parametrize(
    "call, names",
    [
        (gs.projection_kernel, "X and D"),
        (gs.principal_angles, "X and Y"),
        (gs.chordal_distance, "X and Y"),
        (gs.geodesic_distance, "X and Y"),
        (lambda X, D: gs.gsc(X, D, 0.1), "X and D"),
        (lambda X, D: gs.glc(X, D, 2), "X and D"),
        (lambda X, D: gs.classify(X, D, [0, 1, 2], lam=0.1), "X and D"),
    ],
)
def test_mismatched_d(call, names):
    with pytest.raises(ValueError, match=f"^{names} must have the same d, got 4 and 6"):
        call(X, gs.random_subspaces(3, 6, 2, rng=0))


def test_angles_of_batches_that_do_not_broadcast():
    with pytest.raises(
        ValueError,
        match=r"^X and Y must have leading axes that broadcast, got "
        r"shapes \(3, 4, 2\) and \(5, 4, 2\)",
    ):
        gs.principal_angles(X, D)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda E: gs.gsc(X, E, 0.1), "D"),
        (lambda E: gs.glc(X, E, 1), "D"),
        (lambda E: gs.reconstruct(CODES[:, :0], E), "D"),
        (lambda E: gs.classify(X, E, [], lam=0.1), "D"),
        (gs.chordal_mean, "X"),
    ],
)
def test_empty_dictionary(call, name):
    with pytest.raises(
        ValueError,
        match=rf"^{name} must hold at least one .*got shape "
        r"\(0, 4, 2\)",
    ):
        call(X[:0])


# ---------------------------------------------------------------------------- geometry


def test_orthonormalize_names_the_dependent_columns():
    rule = "^A must have independent columns: "
    with pytest.raises(
        ValueError,
        match=rf"{rule}rank 1 < p = 2 at index \(1,\), relative "
        r"tolerance \de-\d+",
    ):
        gs.orthonormalize(np.stack([X[0], X[0][:, [0, 0]]]))
    with pytest.raises(ValueError, match=f"{rule}rank 0 < p = 2, relative"):
        gs.orthonormalize(np.zeros((3, 2)))
    for shape in [(3,), (2, 3), (3, 0), (5, 2, 3)]:
        with pytest.raises(
            ValueError,
            match=r"^A must have shape \(\.\.\., d, p\) with "
            rf"1 <= p <= d, got \({shape[0]}",
        ):
            gs.orthonormalize(np.ones(shape))
    with pytest.raises(
        ValueError, match=r"^A must be finite, got nan at index \(1, 0\)"
    ):
        gs.orthonormalize([[1, 0], [np.nan, 1]])
    with pytest.raises(
        TypeError, match="^A must hold real numbers, got dtype complex128"
    ):
        gs.orthonormalize(X * 1j)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ((-1, 3, 2), ValueError, r"^n must be .*got -1"),
        ((2, 0, 1), ValueError, r"^d must be .*got 0"),
        ((2, 3, 4), ValueError, r"^p must be in 1\.\.3, got 4"),
        ((2, 3, 0), ValueError, r"^p must be in 1\.\.3, got 0"),
        ((2.5, 3, 2), TypeError, r"^n must be an integer, got 2\.5"),
        ((2, "3", 2), TypeError, "^d must be an integer, got '3'"),
        ((2, 3, None), TypeError, "^p must be an integer, got None"),
    ],
)
def test_sizes_of_random_subspaces(arguments, error, text):
    with pytest.raises(error, match=text):
        gs.random_subspaces(*arguments)


@pytest.mark.parametrize(
    "S, p, error, text",
    [
        (
            np.ones(3),
            1,
            ValueError,
            r"^S must be square, \(\.\.\., N, N\), .*got shape \(3,\)",
        ),
        (np.ones((3, 2)), 1, ValueError, r"^S must be square, .*got shape \(3, 2\)"),
        (np.empty((0, 0)), 1, ValueError, r"^S must be square, .*got shape \(0, 0\)"),
        (
            np.triu(np.ones((3, 3))),
            1,
            ValueError,
            "^S must be symmetric, got entries that differ by 1 across",
        ),
        (np.eye(3), 4, ValueError, r"^p must be in 1\.\.3, got 4"),
        (np.eye(3), 0, ValueError, r"^p must be in 1\.\.3, got 0"),
        (np.eye(3), 1.5, TypeError, r"^p must be an integer, got 1\.5"),
        (
            with_entry(np.eye(3), (2, 2), np.inf),
            1,
            ValueError,
            r"^S must be finite, got inf at index \(2, 2\)",
        ),
        (
            np.eye(3) * 1j,
            1,
            TypeError,
            "^S must hold real numbers, got dtype complex128",
        ),
    ],
)
def test_matrix_of_proj(S, p, error, text):
    with pytest.raises(error, match=text):
        gs.proj(S, p)


@pytest.mark.parametrize(
    "weights, error, text",
    [
        (
            [1, 2],
            ValueError,
            r"^weights must have shape \(3,\), one a subspace, got \(2,\)",
        ),
        (1.0, ValueError, r"^weights must have shape \(3,\), one a subspace, got \(\)"),
        ([0, 0, 0], ValueError, "^weights must not all be zero"),
        (
            [1, np.nan, 1],
            ValueError,
            r"^weights must be finite, got nan at index \(1,\)",
        ),
        (
            [1, 1j, 1],
            TypeError,
            "^weights must hold real numbers, got dtype complex128",
        ),
    ],
)
def test_weights(weights, error, text):
    with pytest.raises(error, match=text):
        gs.chordal_mean(X, weights)


# ------------------------------------------------------------------------ Gram matrices


def sparse_codes(K_dd=K_DD, K_xd=K_XD, norm2=2):
    return gs.sparse_codes(K_dd, K_xd, 0.1, norm2=norm2)


def locality_codes(K_dd=K_DD, K_xd=K_XD, norm2=2):
    return gs.locality_codes(K_dd, K_xd, 2, norm2=norm2)


def class_residuals(K_dd=K_DD, K_xd=K_XD, norm2=2):
    return gs.class_residuals(CODES, K_dd, K_xd, LABELS, norm2=norm2)


@pytest.mark.parametrize("call", [sparse_codes, locality_codes, class_residuals])
@pytest.mark.parametrize(
    "bad, error, text",
    [
        (
            dict(K_dd=K_DD[:4]),
            ValueError,
            r"^K_dd must be a square matrix \(N, N\) with N >= 1, got shape \(4, 5\)",
        ),
        (
            dict(K_dd=np.ones(5)),
            ValueError,
            r"^K_dd must be a square matrix .*got shape \(5,\)",
        ),
        (
            dict(K_dd=np.empty((0, 0))),
            ValueError,
            r"^K_dd must be a square matrix .*N >= 1, got shape \(0, 0\)",
        ),
        (
            dict(K_dd=with_entry(K_DD, (0, 1), 9.0)),
            ValueError,
            r"^K_dd must be symmetric, got entries that differ by \d\.?\d* across the diagonal",
        ),
        (
            dict(K_dd=with_entry(K_DD, (1, 1), -3.0)),
            ValueError,
            "^K_dd must have a nonnegative diagonal, got -3",
        ),
        (
            dict(K_dd=with_entry(K_DD, (0, 1), np.nan)),
            ValueError,
            r"^K_dd must be finite, got nan at index \(0, 1\)",
        ),
        (
            dict(K_dd=K_DD * 1j),
            TypeError,
            "^K_dd must hold real numbers, got dtype complex128",
        ),
        (
            dict(K_xd=K_XD[:, :4]),
            ValueError,
            r"^K_xd must have shape \(n, 5\), one column an atom, got \(3, 4\)",
        ),
        (
            dict(K_xd=K_XD[0]),
            ValueError,
            r"^K_xd must have shape \(n, 5\), .*got \(5,\)",
        ),
        (
            dict(K_xd=with_entry(K_XD, (2, 3), np.inf)),
            ValueError,
            r"^K_xd must be finite, got inf at index \(2, 3\)",
        ),
        (
            dict(K_xd=K_XD.astype(str)),
            TypeError,
            "^K_xd must hold real numbers, got dtype <U",
        ),
        (
            dict(norm2=-1),
            ValueError,
            r"^norm2 must be a number >= 0 or 3 of them, one a query, got .*-1",
        ),
        (
            dict(norm2=[2, 2]),
            ValueError,
            r"^norm2 must be a number >= 0 or 3 of them, .*got .*2.*2",
        ),
        (dict(norm2=np.nan), ValueError, "^norm2 must be finite, got nan$"),
        (
            dict(norm2=[2, 0.01, 2]),
            ValueError,
            r"^norm2 must be .*fails at query 1 with norm2 = 0\.01",
        ),
        (
            dict(norm2=2j),
            TypeError,
            "^norm2 must hold real numbers, got dtype complex128",
        ),
    ],
)
def test_gram_matrices(call, bad, error, text):
    with pytest.raises(error, match=text):
        call(**bad)


@pytest.mark.parametrize("dtype, tolerance", [(np.float32, 1e-4), (np.float64, 1e-8)])
def test_a_gram_matrix_is_symmetric_to_a_tolerance_of_its_largest_entry(
    dtype, tolerance
):
    K = 100 * np.eye(5)
    K[0, 1] = 50 * tolerance
    gs.locality_codes(K.astype(dtype), np.zeros((1, 5)), 2, norm2=100)
    K[0, 1] = 200 * tolerance
    text = f"^K_dd must be symmetric, got entries that differ by {200 * tolerance:.2g} "
    with pytest.raises(ValueError, match=text):
        gs.locality_codes(K.astype(dtype), np.zeros((1, 5)), 2, norm2=100)


def test_inner_products_keep_within_cauchy_and_schwarz_to_a_thousandth():
    """A query that is the atom, of a norm that is given too small."""
    K = np.diag([2.0, 3.0])
    gs.locality_codes(K, [[0, 3.0]], 1, norm2=3 * 0.999)
    with pytest.raises(
        ValueError, match=r"^norm2 must be .*fails at query 0 with norm2 = 2\.97$"
    ):
        gs.locality_codes(K, [[0, 3.0]], 1, norm2=3 * 0.99)


def test_a_product_is_held_against_its_own_atom():
    with pytest.raises(
        ValueError, match="^norm2 must be .*fails at query 1 with norm2 = 1$"
    ):
        gs.sparse_codes(np.diag([1.0, 4.0]), [[0.5, 1.5], [1.5, 0.5]], 0.1, norm2=1.0)


@pytest.mark.parametrize(
    "K_xd, error, text",
    [
        (1.0, ValueError, r"^K_xd must have shape \(\.\.\., N\) with N >= 1, got \(\)"),
        (K_XD[:, :0], ValueError, r"^K_xd must have .*got \(3, 0\)"),
        ([1, np.nan], ValueError, r"^K_xd must be finite, got nan at index \(1,\)"),
        ([1j], TypeError, "^K_xd must hold real numbers"),
    ],
)
def test_queries_of_lam_max(K_xd, error, text):
    with pytest.raises(error, match=text):
        gs.lam_max(K_xd)


# -------------------------------------------------------------------- options of coding


@pytest.mark.parametrize(
    "call",
    [
        lambda lam=0.1, **options: gs.sparse_codes(K_DD, K_XD, lam, norm2=2, **options),
        lambda lam=0.1, **options: gs.gsc(X, D, lam, **options),
    ],
    ids=["sparse_codes", "gsc"],
)
@pytest.mark.parametrize(
    "bad, error, text",
    [
        (
            dict(lam=-0.1),
            ValueError,
            r"^lam must be a number >= 0 or a 1-D array of them, got -0\.1",
        ),
        (
            dict(lam=[0.1, -2]),
            ValueError,
            r"^lam must be a number >= 0 .*got \[0\.1, -2\]",
        ),
        (dict(lam=[]), ValueError, r"^lam must be .*got \[\]"),
        (dict(lam=[[0.1]]), ValueError, r"^lam must be .*got \[\[0\.1\]\]"),
        (dict(lam=np.nan), ValueError, "^lam must be finite, got nan$"),
        (dict(lam=np.inf), ValueError, "^lam must be finite, got inf$"),
        (dict(lam=1j), TypeError, "^lam must hold real numbers, got dtype complex128"),
        (dict(lam="0.1"), TypeError, "^lam must hold real numbers"),
        (dict(lam=None), TypeError, "^lam must hold real numbers, got dtype object"),
        (
            dict(lam_scale="mean"),
            ValueError,
            "^lam_scale must be None or 'max', got 'mean'",
        ),
        (
            dict(lam_scale=np.ones(2)),
            ValueError,
            "^lam_scale must be None or 'max', got array",
        ),
        (dict(positive=2), TypeError, "^positive must be True or False, got 2"),
        (dict(tol=0), ValueError, "^tol must be positive, got 0"),
        (dict(tol=-1e-8), ValueError, "^tol must be positive, got -1e-08"),
        (dict(tol=np.nan), ValueError, "^tol must be finite, got nan$"),
        (dict(tol=[1, 2]), ValueError, r"^tol must be one number, got shape \(2,\)"),
        (dict(max_iter=0), ValueError, "^max_iter must be .*got 0"),
        (dict(max_iter=1.5), TypeError, r"^max_iter must be an integer, got 1\.5"),
        (
            dict(init=np.ones((3, 4))),
            ValueError,
            r"^init must have shape \(3, 5\), got \(3, 4\)",
        ),
        (
            dict(init=np.ones(5)),
            ValueError,
            r"^init must have shape \(3, 5\), got \(5,\)",
        ),
        (
            dict(init=with_entry(CODES, (1, 2), np.nan)),
            ValueError,
            r"^init must be finite, got nan at index \(1, 2\)",
        ),
        (
            dict(init=CODES * 1j),
            TypeError,
            "^init must hold real numbers, got dtype complex128",
        ),
        (
            dict(init=scipy.sparse.csr_array(CODES * np.inf)),
            ValueError,
            "^init must be finite, got inf",
        ),
    ],
)
def test_options_of_sparse_codes(call, bad, error, text):
    with pytest.raises(error, match=text):
        call(**bad)


@pytest.mark.parametrize(
    "call",
    [
        lambda m=2, **options: gs.locality_codes(K_DD, K_XD, m, norm2=2, **options),
        lambda m=2, **options: gs.glc(X, D, m, **options),
    ],
    ids=["locality_codes", "glc"],
)
@pytest.mark.parametrize(
    "bad, error, text",
    [
        (dict(m=0), ValueError, r"^n_neighbors must be in 1\.\.5, got 0"),
        (dict(m=6), ValueError, r"^n_neighbors must be in 1\.\.5, got 6"),
        (dict(m=-1), ValueError, r"^n_neighbors must be in 1\.\.5, got -1"),
        (dict(m=2.0), TypeError, r"^n_neighbors must be an integer, got 2\.0"),
        (dict(m=None), TypeError, "^n_neighbors must be an integer, got None"),
        (dict(reg=-1e-3), ValueError, r"^reg must be >= 0, got -0\.001"),
        (dict(reg=np.nan), ValueError, "^reg must be finite, got nan$"),
        (dict(reg=[1, 2]), ValueError, r"^reg must be one number, got shape \(2,\)"),
    ],
)
def test_options_of_locality_codes(call, bad, error, text):
    with pytest.raises(error, match=text):
        call(**bad)


# --------------------------------------------------------------------- codes and labels


@pytest.mark.parametrize(
    "call",
    [
        lambda codes: gs.reconstruct(codes, D),
        lambda codes: gs.class_residuals(codes, K_DD, K_XD, LABELS, norm2=2),
    ],
    ids=["reconstruct", "class_residuals"],
)
@pytest.mark.parametrize(
    "codes, error, text",
    [
        (
            CODES[:, :4],
            ValueError,
            r"^codes must have shape \((n|3), 5\), got \(3, 4\)",
        ),
        (CODES[0], ValueError, r"^codes must have shape .*got \(5,\)"),
        (
            scipy.sparse.csr_array(CODES[:, :4]),
            ValueError,
            r"^codes must have shape .*got \(3, 4\)",
        ),
        (
            with_entry(CODES, (0, 1), np.nan),
            ValueError,
            r"^codes must be finite, got nan at index \(0, 1\)",
        ),
        (CODES * 1j, TypeError, "^codes must hold real numbers, got dtype complex128"),
        (
            scipy.sparse.csr_array(CODES * 1j),
            TypeError,
            "^codes must hold real numbers, got dtype complex128",
        ),
    ],
)
def test_codes(call, codes, error, text):
    with pytest.raises(error, match=text):
        call(codes)


@pytest.mark.parametrize(
    "call",
    [
        lambda labels: gs.class_residuals(CODES, K_DD, K_XD, labels, norm2=2),
        lambda labels: gs.classify(X, D, labels, lam=0.1),
        lambda labels: gs.classify(X, D, labels, n_neighbors=2),
    ],
    ids=["class_residuals", "classify, lam", "classify, n_neighbors"],
)
@pytest.mark.parametrize(
    "labels, error, text",
    [
        (
            LABELS[:4],
            ValueError,
            "^labels must have length 5, one for each of the atoms, got 4",
        ),
        (
            [],
            ValueError,
            "^labels must have length 5, one for each of the atoms, got 0",
        ),
        (
            np.zeros((5, 1)),
            ValueError,
            r"^labels must have one dimension, got shape \(5, 1\)",
        ),
        (7, TypeError, "^labels must be a sequence of hashables, got 7"),
        ("abcde", TypeError, "^labels must be a sequence of hashables, got 'abcde'"),
        (None, TypeError, "^labels must be a sequence of hashables, got None"),
        (np.float64(3), TypeError, "^labels must be a sequence of hashables"),
        (
            [[0], [1], [0, 1], [1], [0]],
            TypeError,
            "^labels must be hashable, got unhashable type: 'list'",
        ),
    ],
)
def test_labels(call, labels, error, text):
    with pytest.raises(error, match=text):
        call(labels)


def test_codes_and_queries_must_be_as_many():
    with pytest.raises(
        ValueError, match=r"^codes must have shape \(3, 5\), got \(2, 5\)"
    ):
        gs.class_residuals(CODES[:2], K_DD, K_XD, LABELS, norm2=2)


# ---------------------------------------------------------------------------- warnings


AXES = np.eye(3)[..., None]  # (3, 3, 1): lines at right angles
INDEFINITE = np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]])
TWO = [np.eye(4)[:2], np.eye(4)[1:3], np.eye(4)[2:] + 1, np.eye(4)[:3]]
WARNS = {
    "proj": lambda: gs.proj(np.eye(3), 1),
    "chordal_mean": lambda: gs.chordal_mean(AXES),
    "reconstruct": lambda: gs.reconstruct([[0, 0, 0]], AXES),
    "gsc": lambda: gs.gsc(X, D, 0.01, tol=1e-30),
    "sparse_codes": lambda: gs.sparse_codes(
        INDEFINITE, [[0.9, 0.9, -0.9]], 1e-6, norm2=1.0
    ),
    "classify": lambda: gs.classify(X, D, LABELS, lam=100.0),
    "log_map": lambda: intrinsic.log_map(AXES[0], AXES[1]),
    "karcher_mean": lambda: intrinsic.karcher_mean(AXES, max_iter=0),
    "tangent_grams": lambda: tangent.tangent_grams(AXES, AXES),
    "intrinsic_codes": lambda: tangent.intrinsic_codes(
        X, D, 0.01, max_iter=1, tol=1e-30
    ),
    "affine_hull_distances": lambda: hulls.affine_hull_distances([TWO[0], TWO[3]]),
    "from_sets": lambda: subspaces.from_sets([np.ones((3, 4))], 2, rank="warn"),
    "CodingClassifier": lambda: (
        estimators.CodingClassifier(lam=100.0).fit(D, LABELS).predict(X)
    ),
    "of a pipeline": lambda: make_pipeline(
        estimators.ImageSetSubspaces(2, rank="warn")
    ).fit_transform([np.ones((3, 4))]),
}


@pytest.mark.parametrize("name", WARNS)
def test_warnings_blame_the_line_of_the_user(name):
    with pytest.warns(UserWarning) as caught:
        WARNS[name]()
    assert {warning.filename for warning in caught} == {__file__}


# ----------------------------------------------------------------- numbers are no bools


SETS = np.random.default_rng(0).random((6, 5, 4))
Y = [0, 1] * 3
LINES = gs.random_subspaces(6, 4, 1, rng=2)
OF_SETS = dict(sets=SETS, atom_sets=SETS, kernel=kernels.rbf(0.1), p=1)
CALLS = [  # of functions with parameters that are numbers
    (gs.random_subspaces, dict(n=2, d=4, p=1)),
    (gs.proj, dict(S=np.eye(4), p=1)),
    (gs.sparse_codes, dict(K_dd=K_DD, K_xd=K_XD, lam=0.1, norm2=2.0)),
    (gs.locality_codes, dict(K_dd=K_DD, K_xd=K_XD, n_neighbors=1, norm2=2.0)),
    (gs.gsc, dict(X=X, D=D, lam=0.1)),
    (gs.glc, dict(X=X, D=D, n_neighbors=1)),
    (gs.classify, dict(X=X, D=D, labels=LABELS, lam=0.1)),
    (learn.gdl, dict(X=LINES, n_atoms=2, lam=0.1)),
    (learn.class_dictionaries, dict(X=LINES, y=Y, atoms_per_class=1, lam=0.1)),
    (learn.init_atoms, dict(X=LINES, n_atoms=1)),
    (streams.OnlineGDL, dict(n_atoms=2, lam=0.1)),
    (kernels.polynomial, dict(degree=2)),
    (kernels.rbf, dict(gamma=0.1)),
    (kernels.gamma_grid, dict(sets=SETS)),
    (kernels.kernel_bases, dict(sets=SETS, kernel="linear")),
    (kernels.kgsc, OF_SETS | dict(lam=0.1)),
    (kernels.kglc, OF_SETS | dict(n_neighbors=1)),
    (kernels.classify, OF_SETS | dict(labels=Y, lam=0.1)),
    (discriminative.discriminative_atoms, dict(X=LINES, y=Y, atoms_per_class=1)),
    (discriminative.ridge_residuals, dict(X=X, D=D, labels=LABELS)),
    (intrinsic.karcher_mean, dict(X=X)),
    (projected.projected_codes, dict(X=X, D=D, lam=0.1)),
    (subspaces.from_image_set, dict(frames=SETS[0], p=1)),
    (subspaces.from_sets, dict(sets=SETS, p=1)),
    (subspaces.from_video, dict(frames=SETS[0], n_states=1, n_blocks=1)),
    (subspaces.block_hankel, dict(frames=SETS[0], n_blocks=1)),
    (subspaces.arma, dict(frames=SETS[0], n_states=1)),
    (subspaces.observability, dict(A=np.eye(2), C=np.eye(2), n_blocks=1)),
]


def numeric_parameters(function):
    """Names of the parameters that are an int or a float by their hints, or a lambda."""
    named = inspect.signature(function).parameters.items()
    return [
        name
        for name, value in named
        if name == "lam" or re.search(r"\b(int|float)\b", str(value.annotation))
    ]


@pytest.mark.parametrize(
    "function, arguments, name",
    [
        pytest.param(
            function,
            arguments,
            name,
            id=f"{function.__module__}.{function.__name__} {name}",
        )
        for function, arguments in CALLS
        for name in numeric_parameters(function)
    ],
)
def test_true_and_false_are_no_numbers(function, arguments, name):
    lam = inspect.signature(function).parameters.get("lam")
    if name in ("n_neighbors", "reg") and lam is not None and lam.default is None:
        # they are given instead of lam
        arguments = arguments | dict(lam=None, n_neighbors=1)
    for flag in (True, np.True_, np.array(False)):
        with pytest.raises(
            TypeError, match=rf"^{name} must be .*(number|integer).*{flag}"
        ):
            function(**arguments | {name: flag})


@pytest.mark.parametrize("path", [[0.1, True], (True, False), np.array([True, False])])
def test_a_path_of_lambdas_holds_no_bool(path):
    with pytest.raises(
        TypeError, match="^lam must be a number >= 0 or a 1-D array .*True"
    ):
        gs.gsc(LINES, LINES, path)


@pytest.mark.parametrize("flag", [True, np.False_])
def test_a_seed_is_no_bool(flag):
    with pytest.raises(
        TypeError, match="^rng must be None, an integer >= 0, .*got (np.)?(Tr|Fa)"
    ):
        gs.random_subspaces(2, 4, 1, rng=flag)
    with pytest.raises(TypeError, match="^random_state must be None, an integer >= 0"):
        estimators.GrassmannDictionary(2, random_state=flag).fit(LINES)


def test_integers_beyond_what_arrays_can_count_are_told_the_limit():
    with pytest.raises(
        ValueError, match=r"^n must be in 0\.\.4611686018427387904, got "
    ):
        gs.random_subspaces(2**62 + 1, 4, 2)
    with pytest.raises(ValueError, match="^n must be >= 0, got -1"):
        gs.random_subspaces(-1, 4, 2)
