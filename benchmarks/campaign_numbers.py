"""Numbers of the campaign: codes against their optimality conditions in long double, layouts of
arrays, one thread beside two."""

import functools
import tempfile
import warnings
from types import SimpleNamespace

import numba
import numpy as np

import grassmann_sc as core
from benchmarks import campaign_calls as calls
from benchmarks.campaign_calls import Done, Failed, failing, hold, rng_of, run
from grassmann_sc import frames, intrinsic, kernels, learn, streams, subspaces
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import KINDS, bases, rotation

LONG = np.longdouble


# ----------------------------------------------------------------- coding: optimality conditions

# A code may miss its optimality conditions by the tolerance of the solver and by the rounding of
# the Gram matrices, ROUNDING eps max(p, q) for each of the 1 + ||y||_1 terms that make a product:
# within as much atoms count as repeated, and share a coefficient.
TOL = 1e-8
ROUNDING = 32


def coding(seed, case):
    """One problem of sparse coding, every third of local coding."""
    rng = rng_of("coding", seed, case)
    problem = coding_problem(rng)
    if case % 3 == 2:
        check_local(rng, problem)
    else:
        check_sparse(rng, problem)


def coding_problem(rng):
    """Queries and atoms of any kind and type, and their inner products in long double."""
    d = int(rng.integers(1, 13))
    p, q = (int(rng.choice([1, d, *rng.integers(1, d + 1, 4)])) for _ in range(2))
    n_atoms = int(rng.integers(1, 30) if rng.random() < 0.9 else rng.integers(30, 150))
    kind = rng.choice(KINDS)
    X = bases(rng, int(rng.integers(1, 5)), d, p)
    D = bases(rng, n_atoms, d, q, kind)
    if p == q and rng.random() < 0.3:  # an atom equal to a query
        D[-1] = X[0] @ rotation(rng, p)
    dtype = rng.choice([np.float64, np.float64, np.float32])
    X = X.astype(dtype)
    D = D.astype(dtype)
    eps = ROUNDING * float(np.finfo(dtype).eps) * max(p, q)
    return SimpleNamespace(X=X, D=D, kind=kind, eps=eps, K=long_gram(D, D), k=long_gram(X, D),
                           norm2=float(p), dtype=dtype)


def long_gram(X, D):
    """||X_i^T D_j||_F^2 in long double."""
    products = np.einsum("idp,jdq->ijpq", X.astype(LONG), D.astype(LONG))
    return (products**2).sum(axis=(2, 3))


def check_sparse(rng, problem):
    """A call of gsc or sparse_codes with random options; each of its codes must be optimal."""
    peak = 2 * float(np.abs(problem.k).max()) or 1.0
    share = rng.choice([0, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1, 1.2], int(rng.choice([1, 1, 3])))
    relative = bool(rng.random() < 0.3)
    options = {"lam_scale": "max" if relative else None, "positive": bool(rng.random() < 0.4)}
    shape = problem.k.shape
    if rng.random() < 0.3:
        options["init"] = rng.standard_normal(shape)
    lam = share if relative else share * peak
    if len(lam) == 1:
        lam = float(lam[0])
    result, warned = sparse_call(rng, problem, lam, options)
    told = {name: value for name, value in options.items() if name != "init"}
    codes = result.codes
    if isinstance(codes, list):
        codes = np.stack([y.toarray() for y in codes])
    codes = codes if isinstance(codes, np.ndarray) else codes.toarray()
    codes = codes.reshape(-1, *shape).astype(LONG)
    gaps = np.reshape(result.gap, (-1, shape[0]))
    for i, one in enumerate(np.atleast_1d(lam)):
        for j, k in enumerate(problem.k):
            unit = 2 * np.abs(k).max() if relative else 1
            about = (f"lam {one:.3g}, {told}, {problem.kind}, X {problem.X.shape}, "
                     f"D {problem.D.shape}, {problem.dtype.__name__}, query {j}")
            check_code(problem, k, LONG(one) * (unit or 1), codes[i, j], gaps[i, j],
                       options["positive"], about, warned)


def sparse_call(rng, problem, lam, options):
    options |= {"return_info": True, "sparse_output": bool(rng.random() < 0.3)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if rng.random() < 0.5:
            result = core.gsc(problem.X, problem.D, lam, **options)
        else:
            K = problem.K.astype(problem.dtype)
            k = problem.k.astype(problem.dtype)
            result = core.sparse_codes(K, k, lam, norm2=problem.norm2, **options)
    return result, bool(caught)


def check_code(problem, k, lam, y, gap, positive, about, warned):
    """Optimality of one code y; if the toolkit warned, its gap must say how far from it y is."""
    hold(np.isfinite(y).all() and not (positive and (y < 0).any()),
         f"code not finite or not >= 0: {about}")
    l1 = np.abs(y).sum()
    rounding = problem.eps * (1 + l1)
    g = k - problem.K @ y
    if lam == 0 and not positive:
        check_least_squares(problem, k, y, max(gap, TOL * problem.norm2) + rounding * (1 + l1),
                            about)
        return
    on_support = np.abs(g - np.sign(y) * lam / 2)
    elsewhere = np.maximum((g if positive else np.abs(g)) - lam / 2, 0)
    violation = np.where(y != 0, on_support, elsewhere).max()
    largest = problem.K.diagonal().max()
    bound = TOL * np.sqrt(problem.norm2 * largest) + rounding
    if warned:  # a step in that coordinate would gain violation^2 / K_jj, at most the gap
        bound += np.sqrt(max(gap, 0) * largest)
    hold(violation <= bound,
         f"optimality conditions violated: by {float(violation):.2g}, bound "
         f"{float(bound):.2g}, gap {gap:.2g}, warned {warned}: {about}")


def check_least_squares(problem, k, y, bound, about):
    """For lambda = 0: no worse than least squares over the eigenvectors of K above rounding."""
    values, vectors = np.linalg.eigh(problem.K.astype(float))
    sure = vectors[:, values > problem.eps * len(k) * values[-1]]
    inside = (sure.T @ problem.K @ sure).astype(float)
    best = sure @ np.linalg.solve(inside, (sure.T @ k).astype(float))
    excess = cost_of(problem, k, y) - cost_of(problem, k, best)
    hold(excess <= bound,
         f"cost above least squares: by {float(excess):.2g}, bound " f"{float(bound):.2g}: {about}")


def cost_of(problem, k, y):
    """||X^ - sum_j y_j D_j^||^2."""
    return problem.norm2 - y @ (2 * k - problem.K @ y)


def check_local(rng, problem):
    """Sum 1, on the nearest atoms, and (B + ridge I) y a multiple of 1, for each code of glc."""
    n_atoms = len(problem.K)
    m = int(rng.integers(1, min(n_atoms, 12) + 1))
    reg = None if rng.random() < 0.5 else float(10.0 ** rng.integers(-8, 0))
    if rng.random() < 0.5:
        codes = core.glc(problem.X, problem.D, m, reg=reg)
    else:
        codes = core.locality_codes(problem.K.astype(problem.dtype),
                                    problem.k.astype(problem.dtype), m, norm2=problem.norm2,
                                    reg=reg)
    default = 1e-5 if problem.dtype == np.float32 else 1e-10
    for j, (k, y) in enumerate(zip(problem.k, codes.astype(LONG))):
        about = (f"{m} neighbours, reg {reg}, {problem.kind}, X {problem.X.shape}, D "
                 f"{problem.D.shape}, {problem.dtype.__name__}, query {j}")
        check_local_code(problem, k, y, m, default if reg is None else reg, about)


def check_local_code(problem, k, y, m, reg, about):
    l1 = np.abs(y).sum()
    if not abs(y.sum() - 1) <= problem.eps * (1 + l1):  # not so for NaN
        raise Failed(f"sum is not 1: {float(y.sum())}: {about}")
    used = np.flatnonzero(y)
    distance = problem.norm2 + problem.K.diagonal() - 2 * k
    hold(distance[used].max() <= np.sort(distance)[m - 1] + 4 * problem.eps,
         f"not the nearest atoms: {about}")
    same = np.flatnonzero(distance <= 4 * problem.eps * problem.norm2)
    if len(same) and np.isin(used, same).all():  # the query is an atom
        return
    nearest = np.argsort(distance, kind="stable")[:m]
    if len(same) or len(used) > m or np.ptp(np.sort(distance)[m - 1:m + 1]) < 8 * problem.eps:
        return  # ties, and atoms that are the query or not as rounding wants it
    B = problem.norm2 - k[nearest][:, None] - k[nearest] + problem.K[np.ix_(nearest, nearest)]
    ridge = reg * np.trace(B)
    image = B @ y[nearest] + ridge * y[nearest]
    error = np.ptp(image)
    bound = 4 * problem.eps * (1 + l1)
    hold(error <= bound,
         f"not the solution over the neighbours: (B + ridge) y varies by "
         f"{float(error):.2g}, bound {float(bound):.2g}: {about}")


# ------------------------------------------------------------------------------ layouts of arrays


def swapped(A):
    return A.astype(A.dtype.newbyteorder())


def strided(A):
    """A as every second entry of each axis, backwards along the last."""
    wide = np.zeros([2 * side for side in A.shape], A.dtype)
    part = tuple(slice(None, None, 2) for _ in A.shape[1:]) + (slice(None, None, -2),)
    wide[part] = A
    return wide[part]


def read_only(A):
    A = A.copy()
    A.flags.writeable = False
    return A


def mapped(A):
    """A read from a file as it is used."""
    path = tempfile.mkstemp(suffix=".npy", dir=".")[1]  # workers open it by its name
    np.save(path, A)
    return np.load(path, mmap_mode="r")


def whole(A):
    """Integers near A, which are also a valid value where A is data, not bases."""
    return np.rint(4 * A).astype(np.int32)


LAYOUTS = {"Fortran order": np.asfortranarray, "strided": strided, "read-only": read_only,
           "byte-swapped": swapped, "memory-mapped": mapped}
DATA = {"sets", "atom_sets", "frames", "videos", "A", "B", "silhouettes"}  # integers are legal
SAME = 1e-9  # largest difference: another layout may be summed in another order


@functools.cache
def all_layouts():
    """(call, name of the layout) for every call with arrays."""
    some = [call for call in calls.all_calls() if any(map(arrays_in, call.arguments.values()))]
    whole_too = [call for call in some if DATA & {name.rpartition(".")[2]
                                                   for name in call.arguments}]
    return ([(call, layout) for layout in LAYOUTS for call in some]
            + [(call, "integers") for call in whole_too])


def layouts(seed, case):
    """A call with all its arrays in another layout: the same result, the arrays as they were."""
    if case >= len(all_layouts()):
        raise Done
    call, layout = all_layouts()[rng_of("layouts", seed, 0).permutation(len(all_layouts()))[case]]
    plain = dict(call.arguments)
    if layout == "integers":
        changed = {name: changed_arrays(value, whole) for name, value in plain.items()
                   if name.rpartition(".")[2] in DATA}
        plain |= {name: changed_arrays(value, np.float64) for name, value in changed.items()}
    else:
        changed = {name: changed_arrays(value, LAYOUTS[layout]) for name, value in plain.items()}
    before = [array.tobytes() for array in arrays_in(list(changed.values()))]
    try:
        expected = run(call, **plain)
    except ValueError:
        return  # integers do not suit this call
    what = f"{call.name}({', '.join(changed)}), {layout}"
    with failing(what):
        difference = calls.worst_difference(run(call, **changed), expected)
    hold(difference <= SAME,
         f"differs: {what}: relative difference {difference:.2g}", f"differs: {what}")
    hold(before == [array.tobytes() for array in arrays_in(list(changed.values()))],
         f"changes its input: {what}")


def arrays_in(value):
    """The arrays among an argument and its parts."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in arrays_in(part)]
    return []


def changed_arrays(value, change):
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, (list, tuple)):
        parts = [changed_arrays(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


# ---------------------------------------------------------------------------- threads


def threads(seed, case):
    """A call of middling size on one thread and on two: the same bits."""
    rng = rng_of("threads", seed, case)
    name = list(MIDDLING)[case % len(MIDDLING)]
    m = middling(rng)
    results = []
    for n_threads in (1, 2):
        numba.set_num_threads(n_threads)
        results.append(MIDDLING[name](m))
    if calls.worst_difference(*results) != 0:
        raise Failed(f"{name} depends on threads: X {m.X.shape}, D {m.D.shape}: by "
                     f"{calls.worst_difference(*results):.2g}", f"{name} depends on threads")


def middling(rng):
    """Problems of several blocks."""
    m = SimpleNamespace()
    n = int(rng.integers(70, 150))
    d = int(rng.integers(10, 40))
    p = int(rng.integers(1, 5))
    m.seed = int(rng.integers(1000))
    m.X = core.random_subspaces(n, d, p, rng)
    m.D = core.random_subspaces(int(rng.integers(20, 60)), d, p, rng)
    m.sets = [rng.standard_normal((int(rng.integers(p + 1, 12)), d)) for _ in range(60)]
    m.p = p
    m.labels = np.arange(len(m.D)) % 3
    if rng.random() < 0.3:
        m.X = m.X.astype(np.float32)
    return m


MIDDLING = {
    "chordal_distance": lambda m: core.chordal_distance(m.X),
    "geodesic_distance": lambda m: core.geodesic_distance(m.X, m.D),
    "projection_kernel": lambda m: core.projection_kernel(m.X, m.D),
    "gsc": lambda m: core.gsc(m.X, m.D, 0.1 * m.p, return_info=True),
    "gsc, path": lambda m: core.gsc(m.X, m.D, [0.5, 0.1, 0.0], lam_scale="max", positive=True),
    "glc": lambda m: core.glc(m.X, m.D, 5),
    "reconstruct": lambda m: core.reconstruct(core.glc(m.X, m.D, 5), m.D),
    "classify": lambda m: core.classify(m.X, m.D, m.labels, lam=0.1, return_info=True),
    "gdl": lambda m: learn.gdl(m.X, 12, 0.2, n_iter=3, rng=m.seed),
    "gdl, local": lambda m: learn.gdl(m.X, 12, n_neighbors=3, n_iter=3, rng=m.seed),
    "OnlineGDL": lambda m: streams.OnlineGDL(8, 0.2, rng=m.seed).fit(m.X, 32).atoms,
    "from_sets": lambda m: subspaces.from_sets(m.sets, m.p),
    "from_videos": lambda m: subspaces.from_videos(m.sets, m.p, 2, rank="pad"),
    "kgsc": lambda m: kernels.kgsc(m.sets[:40], m.sets[40:], 0.1, kernel=kernels.rbf(0.01), p=1),
    "kglc": lambda m: kernels.kglc(m.sets[:40], m.sets[40:], 3, kernel=kernels.rbf(0.01), p=1),
    "Lift": lambda m: kernels.Lift(kernels.rbf(0.01), 1, rng=m.seed).fit_transform(m.sets),
    "karcher_mean": lambda m: intrinsic.karcher_mean(m.D, max_iter=20),
    "log_map": lambda m: intrinsic.log_map(m.D[0], m.X.astype(float)),
    "intrinsic_codes": lambda m: tangent.intrinsic_codes(m.X[:20], m.D, 0.1),
    "log_euclidean_codes": lambda m: tangent.log_euclidean_codes(m.X, m.D, 0.1),
    "lbp_top": lambda m: frames.lbp_top(m.X[:, :, :1] * np.ones(5)),
}
