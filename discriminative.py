"""What labels shape: dictionaries whose atoms explain their own class and no other, and
the inner product.

Whitening makes directions count less in which the samples of a class differ. Then the
discriminative dictionaries, gDL with labels. Each class c has a few atoms, and a
subspace is coded over those of each class alone, by ridge regression so that everything
is smooth:

    e_c(X) = min_y ||X^ - sum_{j in c} y_j D_j^||_F^2 + ridge ||y||^2.

gDL lowers the errors of each class's own samples. Here the atoms lower

    sum_i w_i (beta e_own(X_i) + log sum_c exp(-beta e_c(X_i))),

the log-loss of the probabilities softmax(-beta e): own errors fall and those of other
classes rise, for the samples near the border. All comes from products X^T D and X (X^T
D): no d x d matrix, and any orthonormal coordinates serve, those of kernels.Lift too.
Needs learn.py for the first atoms.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular
from scipy.sparse import csr_array
from scipy.special import logsumexp

import grassmann_sc as core
from grassmann_sc import learn

__all__ = ["Whitening", "discriminative_atoms", "ridge_residuals"]

SHARE = 0.1  # of the decrease that the slope promises, which a step must reach
LEAST_STEP = 2.0**-30  # where no longer one lowers the cost it is rounding that decides
LARGEST_STEP = 2.0**30
# beta times the mean gap between the own error and the least other, at the start
BORDER = 4.0
LEAST_GAP = 1e-6  # a mean gap that tells nothing
LEAST_RIDGE = 1e-4  # above the rounding of the products of equal atoms in float32
LARGEST_BETA = 1e6
TINY = np.finfo(np.float64).tiny


# ------------------------------------------------------------------- the inner product


class Whitening:
    """The inner product of labelled samples, whitened within their classes.

        K'(x, y) = <x, (I + S / rho)^-1 y>
                 = K(x, y) - k_x^T H (rho I + H K H)^-1 H k_y,

    scaled to K'(x, x) = 1. S = sum_i (x_i - m_c)(x_i - m_c)^T is the scatter of the
    samples about the means m_c of their classes, k_x holds the inner products of x with
    the samples, K those of the samples with each other, and the projector H subtracts
    the means of classes. A direction of scatter s counts 1 + s / rho times less. Source:
    within-class covariance normalisation, Hatch and Stolcke 2006, here from Gram
    matrices.

    K_dd (N, N): the Gram matrix of the samples; labels (N,).
    shrinkage: > 0, of the scatter towards that of a ball: rho is so many times the mean
    scatter of a direction, weighted by scatter, tr((H K H)^2) / tr(H K H). The smaller,
    the more is whitened; math.inf only scales.
    Afterwards K_dd holds K' of the samples; rho is inf, with a warning, where no sample
    differs from the mean of its class, as with one sample a class.

    K' knows the labels of its samples: how well it tells them apart says nothing of
    others, so they are left out of the whitening too before they are asked.

    ValueError unless K_dd is symmetric, shrinkage > 0, and labels are as many; or where
    K_dd is so far from positive semidefinite that I + H K H / rho is not positive
    definite.

    >>> from grassmann_sc import discriminative, projection_kernel, random_subspaces
    >>> K = projection_kernel(random_subspaces(5, 10, 2, rng=0))
    >>> whitening = discriminative.Whitening(K[:4, :4], ["ape", "bee"] * 2, shrinkage=0.1)
    >>> whitening.K_dd.diagonal().tolist(), whitening.transform(K[4:, :4], norm2=2).shape
    ([1.0, 1.0, 1.0, 1.0], (1, 4))
    """

    def __init__(self, K_dd: ArrayLike, labels: core.Labels, shrinkage: float) -> None:
        K_dd = core.check_symmetric(K_dd, "K_dd")
        _, index = core.check_labels(labels, len(K_dd), owners="samples")
        if not (isinstance(shrinkage, float) and shrinkage == math.inf):
            shrinkage = core.check_number(shrinkage, "shrinkage", above=0)
        N = len(K_dd)
        # H = I - M M^T
        self._means = csr_array(
            (1 / np.sqrt(np.bincount(index)[index]), (np.arange(N), index))
        )
        core.check_grams(K_dd, K_dd[:0], 0)
        K = (K_dd + K_dd.T) / 2
        self._gram = K
        scatter = self._centred(self._centred(K).T)
        total = scatter.trace()
        least = N * np.finfo(K.dtype).eps * core.max_abs(K)  # less is rounding of K
        self.rho = (
            max(shrinkage * np.vdot(scatter / total, scatter), least)
            if total > least
            else math.inf
        )
        if shrinkage < self.rho == math.inf:
            core.warn("nothing is whitened: no sample differs from its class's mean")
        try:
            self._factor = cholesky(np.eye(N) + scatter / self.rho, lower=True)
        except np.linalg.LinAlgError:
            raise ValueError(
                "K_dd must be positive semidefinite, got a smallest eigenvalue of "
                f"{np.linalg.eigvalsh(K)[0]:.2g}"
            ) from None
        self._images, self._lengths = self._whitened(K, K.diagonal())
        self.K_dd = self._products(K, self._images, self._lengths)
        np.fill_diagonal(self.K_dd, 1)

    def transform(self, K_xd: ArrayLike, norm2: ArrayLike) -> np.ndarray:
        """K' (n, N) of n queries with the samples; norm2 of the queries is 1 then.

        K_xd (n, N), norm2: K(x, x) of the queries, a number or (n,).
        """
        _, K_xd, norm2 = core.check_grams(self._gram, K_xd, norm2)
        return self._products(K_xd, *self._whitened(K_xd.T, norm2))

    def grams(
        self, K_xd: ArrayLike, norm2: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(K_dd, K_xd, norm2) whitened, of one type, as functions that code take them.

        K_xd, norm2: as in transform.
        """
        K_xd = self.transform(K_xd, norm2)
        return self.K_dd.astype(K_xd.dtype, copy=False), K_xd, np.ones(len(K_xd))

    def _centred(self, A):
        """H A."""
        return A - self._means @ (self._means.T @ A)

    def _whitened(self, K_dx, norm2):
        """Z with Z^T Z = K_dx^T H (rho I + H K H)^-1 H K_dx, and roots of K'(x, x)."""
        images = solve_triangular(
            self._factor, self._centred(K_dx) / math.sqrt(self.rho), lower=True
        )
        square = norm2 - np.square(images).sum(axis=0)
        # what whitening leaves of norm2 may be less than its rounding
        return images, np.sqrt(
            np.maximum(square, core.tie_tolerance(self._gram.dtype) * norm2) + TINY
        )

    def _products(self, K_xd, images, lengths):
        """K' (n, N) from Z and the lengths of queries."""
        K = (K_xd - images.T @ self._images) / np.outer(lengths, self._lengths)
        return K.clip(-1, 1).astype(K_xd.dtype, copy=False)


# ------------------------------------------------------------ discriminative dictionaries


class Discriminative(learn.Noted, namedtuple("Discriminative", "atoms labels costs")):
    """atoms (N, d, p), their labels (N,), and costs.

    The first cost is at the first atoms, then one follows an iteration.
    beta, ridge: those in use; stopped: "n_iter", "tol", or "stationary" where no step
    lowers the cost.
    """

    beta: float
    ridge: float
    stopped: str

    @property
    def n_iter(self) -> int:
        return len(self.costs) - 1


def discriminative_atoms(
    X: ArrayLike,
    y: core.Labels,
    atoms_per_class: int | Mapping,
    *,
    beta: float | None = None,
    ridge: float = 0.1,
    init: str | ArrayLike | None = None,
    n_iter: int = 100,
    tol: float = 1e-5,
    sample_weight: ArrayLike | None = None,
    rng: core.Rng = None,
) -> Discriminative:
    """Atoms for each class of X (n, d, p) with labels y (n,).

    Discriminative (atoms, labels, costs). They lower the log-loss at the head of this
    file. An iteration moves all atoms at once, to

        D_j <- Proj(D_j^ + t H_j / s_j),   H_j the part of S_j that is tangent at D_j^,
        S_j  = sum_i w_i g_ic y_ij (X_i^ - sum_{l in c} y_il D_l^),   g_ic = [c is i's own] - P_ic,

    s_j = sum_i w_i |g_ic y_ij|, where c is the class of atom j, y the codes over it and
    P the probabilities. S_j is gDL's matrix with signed weights, -1/(2 beta) times the
    gradient of the cost in D_j^. Proj, the leading eigenvectors, is here a turn by at
    most 45 degrees in closed form. t is halved until the cost falls by a share of what
    the slope promises, as it does for all small t: costs never rise.

    atoms_per_class: an integer, or a mapping from class to integer; a class of fewer
    samples gets that many atoms. Not used with an init of atoms.
    beta: in (0, 1e6], how sharp the probabilities are: the larger, the fewer samples
    count, those nearest to the border. None: 4 over the mean of |e_own - least other e|
    at the first atoms.
    ridge: >= 1e-4.
    init: None, gDL of each class with the same codes; or labelled atoms (atoms (N, d,
    q), labels (N,)), such as learn.class_dictionaries or an earlier call return, with
    the classes of y.
    n_iter, tol: stops after n_iter iterations, or one that lowers the cost by at most
    tol a sample.
    sample_weight: (n,) >= 0, factors of the samples' costs; an integer weight acts as
    repetition, 0 as absence.

    See also estimators.DiscriminativeDictionary, learn.class_dictionaries.

    ValueError for samples that are no bases, numbers out of range, or an init of other
    classes; TypeError for what is no number.

    >>> from grassmann_sc import discriminative, random_subspaces
    >>> X = random_subspaces(8, 10, 2, rng=0)
    >>> learned = discriminative.discriminative_atoms(X, ["ape", "bee"] * 4, 2, n_iter=3, rng=0)
    >>> learned.atoms.shape, learned.labels.tolist(), bool(learned.costs[-1] < learned.costs[0])
    ((4, 10, 2), ['ape', 'ape', 'bee', 'bee'], True)
    """
    X = core.check_dictionary(X, "X")
    classes, index = core.check_labels(y, len(X), "y", "samples")
    ridge = core.check_number(ridge, "ridge", least=LEAST_RIDGE)
    if beta is not None:
        beta = core.check_number(beta, "beta", above=0, most=LARGEST_BETA)
    n_iter = core.check_integer(n_iter, "n_iter", 0)
    tol = core.check_number(tol, "tol", least=0)
    rng = core.check_rng(rng)
    weights = learn.check_weights(sample_weight, len(X))
    used = weights > 0
    labels = classes[index[used]]
    classes, index = core.check_labels(labels, None)
    X = X[used]
    weights = weights[used]
    if init is None:
        init = _gdl_of_classes(X, labels, atoms_per_class, ridge, weights, rng)
    atoms, atom_index = _check_first_atoms(init, classes)
    X, atoms = core.same_dimension(X, atoms, ("X", "init"))
    weights, exponent = learn.in_units(weights)
    problem = _Problem(
        X, index, weights, atom_index, _members(atom_index, len(classes)), ridge, beta
    )
    if beta is None:
        problem = problem._replace(beta=_typical_beta(problem, atoms))
    atoms, costs, stopped = _lower_the_cost(problem, atoms, n_iter, tol)
    return Discriminative(
        atoms,
        classes[atom_index],
        np.ldexp(costs, exponent),
        beta=problem.beta,
        ridge=ridge,
        stopped=stopped,
    )


def ridge_residuals(
    X: ArrayLike, D: ArrayLike, labels: core.Labels, *, ridge: float = 0.1
) -> tuple[np.ndarray, np.ndarray]:
    """Errors e_c(X) >= 0 (n, C) of X (n, d, p), and the classes (C,).

    The equation stands at the head of this file. D (N, d, q) atoms with labels (N,);
    ridge >= 1e-4. The class of the least error is the answer, softmax(-beta errors) are
    its probabilities, with the beta that the atoms were learned with.

    ValueError unless X and D are bases of one d, labels as many as atoms, and ridge >=
    1e-4.

    >>> from grassmann_sc import discriminative, random_subspaces
    >>> D = random_subspaces(3, 10, 2, rng=0)
    >>> errors, classes = discriminative.ridge_residuals(D[::-1], D, ["ape", "bee", "cat"])
    >>> classes[errors.argmin(axis=1)].tolist()
    ['cat', 'bee', 'ape']
    """
    X, D = core.check_queries_and_atoms(X, D)
    classes, index = core.check_labels(labels, len(D))
    ridge = core.check_number(ridge, "ridge", least=LEAST_RIDGE)
    return np.maximum(
        X.shape[2] - ridge_explained(X, D, index, len(classes), ridge), 0
    ), classes


def ridge_explained(X, D, index, n_classes, ridge):
    """p - e_c(X) (n, n_classes) of checked X and D, whose classes are index (N,).

    X has shape (n, d, p), D (N, d, q).
    What chooses a class: errors lose to rounding what little atoms explain of far
    subspaces.
    """
    members = _members(index, n_classes)
    factors = _ridge_factors(core.bases_gram(D), members, ridge)
    explained = np.empty((len(X), n_classes), X.dtype)
    for rows in core.query_tiles(len(X), len(D)):
        explained[rows] = _codes_and_explained(
            core.bases_gram(X[rows], D), members, factors
        )[1]
    return explained


# ------------------------------------------------------------------------------ descent


def _lower_the_cost(problem, atoms, n_iter, tol):
    """Atoms after steps that never raise the cost, the costs, and why it stopped.

    Each step is at first twice as long as the one before.
    """
    here = problem.at(atoms)
    costs = [here.cost]
    stopped = "n_iter"
    step = 0.5
    while len(costs) <= n_iter and stopped == "n_iter" and here.slope > 0:
        step = min(2 * step, LARGEST_STEP)
        there = problem.at(_moved(here, step))
        while there.cost > here.cost - SHARE * step * here.slope and step > LEAST_STEP:
            step /= 2
            there = problem.at(_moved(here, step))
        fall = here.cost - there.cost
        if not fall > tol * problem.weights.sum():
            stopped = "tol" if fall > 0 else "stationary"
        if fall > 0:
            here = there
            costs.append(here.cost)
    return here.atoms, np.array(costs), stopped if here.slope > 0 else "stationary"


# atoms (N, d, q), their cost, W_j / s_j (N, d, q) with W_j = (I - D_j^) S_j D_j, and
# the slope: by how much a small step lowers the cost, in steps
_Place = namedtuple("_Place", "atoms cost tangents slope")


def _moved(place, step):
    """Proj(D_j^ + step (W_j D_j^T + D_j W_j^T) / s_j) as bases.

    With the right singular vectors v and values a of step W_j / s_j, D_j v turns
    towards W_j v by the angle arctan(2 a) / 2, the leading eigenvector of [[1, a], [a,
    0]].
    """
    D = place.atoms
    W = place.tangents.astype(np.float64, copy=False)
    values, V = np.linalg.eigh(np.matmul(W.swapaxes(1, 2), W))  # (N, q), (N, q, q)
    size = np.sqrt(np.maximum(values, 0))
    angle = np.arctan(2 * step * size) / 2
    per_size = np.where(size > 0, np.sin(angle) / np.where(size > 0, size, 1), step)
    turned = np.matmul(D, V * np.cos(angle)[:, None]) + np.matmul(
        W, V * per_size[:, None]
    )
    excess = np.matmul(turned.swapaxes(1, 2), turned) - np.eye(D.shape[2])
    # orthonormal to rounding
    return (turned - np.matmul(turned, excess) / 2).astype(D.dtype)


class _Problem(namedtuple("_Problem", "X index weights atom_index members ridge beta")):
    """What stays the same.

    Samples, their classes and weights, the class of each atom, the atoms of each class,
    ridge and beta.
    """

    def at(self, atoms):
        """The cost and its slopes at the atoms, in one pass over tiles of the samples."""
        N, d, q = atoms.shape
        p = self.X.shape[2]
        columns = np.ascontiguousarray(atoms.transpose(1, 0, 2)).reshape(d, N * q)
        factors = _ridge_factors(core.bases_gram(atoms), self.members, self.ridge)
        cost = 0.0
        image = np.zeros((d, N * q), atoms.dtype)  # sum_i w_i g_ic y_ij X_i^ D_j
        shared = np.zeros((N, N))  # sum_i w_i g_ic y_ij y_il
        size = np.zeros(N)
        for tile in core.query_tiles(len(self.X), N * p * q):
            rows = self.X[tile].swapaxes(1, 2).reshape(-1, d)  # (t p, d)
            products = (rows @ columns).reshape(-1, p, N, q)  # X_i^T D_j
            codes, explained = _codes_and_explained(
                np.einsum("tanb,tanb->tn", products, products), self.members, factors
            )
            losses, g = self._losses(p - explained, tile)
            cost += self.weights[tile] @ losses
            pull = self.weights[tile, None] * g[:, self.atom_index] * codes  # (t, N)
            products *= pull[:, None, :, None]
            image += rows.T @ products.reshape(-1, N * q)
            shared += pull.T @ codes
            size += np.abs(pull).sum(axis=0)
        for mine in self.members:
            self._subtract_coded(image, columns, shared, mine, q)
        image = image.reshape(d, N, q).transpose(1, 0, 2)
        tangents = _tangents(atoms, image, size)
        squares = np.square(tangents).sum(axis=(1, 2), dtype=np.float64)
        slope = 4 * self.beta * size @ squares
        return _Place(atoms, float(cost), tangents, float(slope))

    def _losses(self, errors, tile):
        """Cost of each sample of a tile (t,), and g = [c is its own] - P (t, C)."""
        scores = -self.beta * errors
        every = np.arange(len(errors))
        own = self.index[tile]
        total = logsumexp(scores, axis=1)
        g = -np.exp(scores - total[:, None])
        g[every, own] += 1
        return total - scores[every, own], g

    def _subtract_coded(self, image, columns, shared, mine, q):
        """image_j -= sum_l shared[j, l] D_l^ D_j, for j and l in a class."""
        places = (mine[:, None] * q + np.arange(q)).ravel()
        part = columns[:, places]  # (d, m q)
        weights = np.repeat(
            np.repeat(shared[np.ix_(mine, mine)].T, q, axis=0), q, axis=1
        )
        image[:, places] -= part @ (weights * (part.T @ part)).astype(part.dtype)


def _tangents(atoms, image, size):
    """(I - D_j^) S_j D_j / s_j from S_j D_j (N, d, q); 0 where it is but rounding."""
    felt = size > np.finfo(atoms.dtype).tiny
    W = image * felt[:, None, None]
    W = W / np.where(felt, size, 1)[:, None, None].astype(atoms.dtype)
    for _ in range(2):  # twice, since rounding grows where little is left
        W = W - np.matmul(atoms, np.matmul(atoms.swapaxes(1, 2), W))
    # ||S_j / s_j|| is about 1
    W[np.linalg.norm(W, axis=(1, 2)) <= 100 * np.finfo(W.dtype).eps] = 0
    return W


def _typical_beta(problem, atoms):
    """BORDER over the mean of |e_own - least other e|, at most LARGEST_BETA.

    1 where there is none or it is 0.
    """
    if len(problem.members) == 1:
        return 1.0
    errors = problem.X.shape[2] - ridge_explained(
        problem.X, atoms, problem.atom_index, len(problem.members), problem.ridge
    )
    every = np.arange(len(errors))
    own = errors[every, problem.index]
    errors[every, problem.index] = np.inf
    gaps = np.abs(errors.min(axis=1) - own)
    gap = problem.weights @ gaps / problem.weights.sum()
    return min(float(BORDER / gap), LARGEST_BETA) if gap > LEAST_GAP else 1.0


# ------------------------------------------------------------ ridge codes of each class


def _members(atom_index, n_classes):
    """The atoms of each class."""
    return [np.flatnonzero(atom_index == c) for c in range(n_classes)]


def _ridge_factors(K_dd, members, ridge):
    """Cholesky factors of K + ridge I over the atoms of each class, in float64."""
    return [
        cho_factor(K_dd[np.ix_(mine, mine)] + ridge * np.eye(len(mine)), lower=True)
        for mine in members
    ]


def _codes_and_explained(K_xd, members, factors):
    """Codes (t, N) over each class alone and what they explain (t, C), in float64.

    They come from products (t, N).
    """
    k = K_xd.astype(np.float64)
    codes = np.empty_like(k)
    explained = np.empty((len(k), len(members)))
    for c, mine in enumerate(members):
        codes[:, mine] = cho_solve(factors[c], k[:, mine].T).T
        explained[:, c] = (k[:, mine] * codes[:, mine]).sum(axis=1)
    return codes, explained


# -------------------------------------------------------------------------- first atoms


def _gdl_of_classes(X, labels, atoms_per_class, ridge, weights, rng):
    """The (atoms, labels) that gDL learns for each class: the start of the descent.

    Codes are ridge codes.
    """

    def code(K_dd, K_xd, norm2):
        every = [np.arange(len(K_dd))]
        return _codes_and_explained(K_xd, every, _ridge_factors(K_dd, every, ridge))[0]

    return learn.class_dictionaries(
        X, labels, atoms_per_class, coding=code, rng=rng, sample_weight=weights
    )


def _check_first_atoms(init, classes):
    """Atoms (N, d, q) and the class of each, among all the classes."""
    try:
        first, labels = init[:2] if isinstance(init, Discriminative) else init
    except (TypeError, ValueError):
        raise ValueError(
            f"init must be None or a pair (atoms, labels), got {type(init).__name__}"
        ) from None
    atoms = np.array(core.check_dictionary(first, "init"))
    named, index = core.check_labels(labels, len(atoms))
    if set(named) != set(classes):
        raise ValueError(
            "init must have atoms of each class of y and of no other, got labels "
            f"{named.tolist()}"
        )
    position = {label: c for c, label in enumerate(classes)}
    return atoms, np.array([position[label] for label in named])[index]
