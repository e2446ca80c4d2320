"""Numbers of the campaign: codes against their optimality conditions in long double, layouts of
arrays, float32 beside float64, one thread beside two, JIT off."""

import functools
import os
import subprocess
import sys
import tempfile
import warnings
from types import SimpleNamespace

import numba
import numpy as np

import grassmann_sc as core
from benchmarks.campaign_calls import (
    Done,
    Failed,
    all_calls,
    leaves,
    rng_of,
    run,
    sound_calls,
    worst_difference,
)
from benchmarks.common import ROOT
from grassmann_sc import comparators, frames, intrinsic, kernels, learn, subspaces
from grassmann_sc.strategies import KINDS, bases, rotation

LONG = np.longdouble


# ----------------------------------------------------------------- coding: optimality conditions

# A code may miss its optimality conditions by the tolerance of the solver and by the rounding of
# the Gram matrices, ROUNDING eps max(p, q) for each of the 1 + ||y||_1 terms that make a product.
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
    if not np.isfinite(y).all() or positive and (y < 0).any():
        raise Failed(f"code not finite or not >= 0: {about}")
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
    if violation > bound:
        raise Failed(f"optimality conditions violated: by {float(violation):.2g}, bound "
                     f"{float(bound):.2g}, gap {gap:.2g}, warned {warned}: {about}")


def check_least_squares(problem, k, y, bound, about):
    """For lambda = 0: no worse than least squares over the eigenvectors of K above rounding."""
    values, vectors = np.linalg.eigh(problem.K.astype(float))
    sure = vectors[:, values > problem.eps * len(k) * values[-1]]
    inside = (sure.T @ problem.K @ sure).astype(float)
    best = sure @ np.linalg.solve(inside, (sure.T @ k).astype(float))
    excess = cost_of(problem, k, y) - cost_of(problem, k, best)
    if not excess <= bound:
        raise Failed(f"cost above least squares: by {float(excess):.2g}, bound "
                     f"{float(bound):.2g}: {about}")


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
    if distance[used].max() > np.sort(distance)[m - 1] + 4 * problem.eps:
        raise Failed(f"not the nearest atoms: {about}")
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
    if error > bound:
        raise Failed(f"not the solution over the neighbours: (B + ridge) y varies by "
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
    with tempfile.TemporaryDirectory(dir=".") as folder:  # the map outlives the name
        np.save(f"{folder}/mapped.npy", A)
        return np.load(f"{folder}/mapped.npy", mmap_mode="r")


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
    calls = [call for call in sound_calls() if any(map(arrays_in, call.arguments.values()))]
    whole_too = [call for call in calls if DATA & {name.rpartition(".")[2]
                                                   for name in call.arguments}]
    return ([(call, layout) for layout in LAYOUTS for call in calls]
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
    try:
        difference = worst_difference(run(call, **changed), expected)
    except Exception as error:
        raise Failed(f"{what}: {type(error).__name__}: {error}") from None
    if not difference <= SAME:
        raise Failed(f"differs: {what}: relative difference {difference:.2g}", f"differs: {what}")
    if before != [array.tobytes() for array in arrays_in(list(changed.values()))]:
        raise Failed(f"changes its input: {what}")


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
        return type(value)(changed_arrays(part, change) for part in value)
    return value


# ---------------------------------------------------------------------------- float32 and float64

# The same float32 data in both precisions. Inner products differ by GRAM_ERROR in units of their
# largest possible value, p; codes of float32 cost at most COST_ERROR p (1 + ||y||_1)^2 more in
# float64; weights over neighbours solve their system to the same. A call may also refuse float32.
GRAM_ERROR = 1e-4
COST_ERROR = 1e-5


def precision(seed, case):
    rng = rng_of("precision", seed, case)
    if case % 2:
        precision_of_kernels(rng, case)
    else:
        precision_of_subspaces(rng)


def precision_of_subspaces(rng):
    """gsc, glc and the projection kernel of random subspaces."""
    d = int(rng.integers(4, 60))
    p = int(rng.integers(1, 4))
    X = core.random_subspaces(6, d, p, rng).astype(np.float32)
    D = bases(rng, 20, d, p, rng.choice(KINDS)).astype(np.float32)
    about = f"d {d}, p {p}"
    K = core.projection_kernel(D)
    k = core.projection_kernel(X, D)
    check_grams("projection_kernel", k, core.projection_kernel(X.astype(float), D.astype(float)), p,
                about)
    lam = float(rng.choice([0.01, 0.1, 0.5])) * p
    codes = core.gsc(X, D, lam), core.gsc(X.astype(float), D.astype(float), lam)
    check_costs("gsc", codes, K, k, p, lam, about)
    m = int(rng.integers(1, 8))
    codes = core.glc(X, D, m), core.glc(X.astype(float), D.astype(float), m)
    check_costs("glc", codes, K, k, p, 0, about)


def precision_of_kernels(rng, case):
    """kernel_gram, kgsc and kglc of sets that float32 does not take lightly."""
    name = list(HOSTILE_SETS)[case // 2 % len(HOSTILE_SETS)]
    sets = [frames.astype(np.float32) for frames in HOSTILE_SETS[name](rng)]
    double = [frames.astype(float) for frames in sets]
    median = kernels.median_gamma(double)
    kernel = [kernels.rbf(1.0), kernels.rbf(median / 4), kernels.rbf(16 * median),
              kernels.polynomial(2), kernels.polynomial(6), kernels.linear()][rng.integers(6)]
    p = int(rng.integers(1, 4))
    about = f"{name}, {kernel}, p {p}"
    try:
        K, k, codes, local = kernel_results(sets, kernel, p)
    except ValueError:
        return  # refused
    K64, k64, codes64, local64 = kernel_results(double, kernel, p)
    check_grams("kernel_gram", K, K64, p, about)
    check_grams("kernel_gram", k, k64, p, about)
    check_costs("kgsc", (codes, codes64), K64, k64, p, 0.1, about)
    check_costs("kglc", (local, local64), K64, k64, p, 0, about)


def kernel_results(sets, kernel, p):
    """Gram matrices of the last 15 sets, and of the others with them; kgsc and kglc codes."""
    bases = kernels.kernel_bases(sets, kernel, p)
    K = kernels.kernel_gram(sets, bases, kernel=kernel)
    codes = kernels.kgsc(sets[:5], sets[5:], 0.1, kernel=kernel, p=p)
    return K[5:, 5:], K[:5, 5:], codes, kernels.kglc(sets[:5], sets[5:], 3, kernel=kernel, p=p)


def near_frames(rng):
    """Frames that differ by a thousandth of their norm, in 20 places of norm 10."""
    centres = rng.standard_normal((20, 50))
    centres *= 10 / np.linalg.norm(centres, axis=1, keepdims=True)
    return [centre + 1e-3 * rng.standard_normal((6, 50)) for centre in centres]


HOSTILE_SETS = {
    "near frames": near_frames,
    "mean 100": lambda rng: [100 + rng.standard_normal((6, 30)) for _ in range(20)],
    "bytes": lambda rng: [rng.integers(0, 256, (6, 64)) for _ in range(20)],
    "small": lambda rng: [1e-6 * rng.standard_normal((6, 30)) for _ in range(20)],
    "large": lambda rng: [1e6 * rng.standard_normal((6, 30)) for _ in range(20)],
    "smooth": lambda rng: [np.cumsum(rng.standard_normal((6, 80)), axis=1) for _ in range(20)],
}


def check_grams(what, single, double, p, about):
    error = np.abs(single - double).max() / p
    if not error <= GRAM_ERROR:
        raise Failed(f"{what} off: by {error:.2g} of p in float32: {about}", f"{what} off")


def check_costs(what, codes, K, k, p, lam, about):
    """What the codes of float32 cost beyond those of float64, in float64."""
    single, double = (y.astype(float) for y in codes)
    K = K.astype(float)

    def cost(y):
        return p + ((y @ K - 2 * k) * y).sum(axis=1) + lam * np.abs(y).sum(axis=1)

    size = 1 + np.maximum(np.abs(single).sum(axis=1), np.abs(double).sum(axis=1))
    excess = ((cost(single) - cost(double)) / (p * size**2)).max()
    if not excess <= COST_ERROR:
        raise Failed(f"{what} off: costs {excess:.2g} p (1 + ||y||_1)^2 more in float32: {about}",
                     f"{what} costs more")


# ------------------------------------------------------------------------- threads, and without JIT


def threads(seed, case):
    """A call of middling size on one thread and on two: the same bits."""
    rng = rng_of("threads", seed, case)
    name = list(MIDDLING)[case % len(MIDDLING)]
    m = middling(rng)
    results = []
    for n_threads in (1, 2):
        numba.set_num_threads(n_threads)
        results.append(MIDDLING[name](m))
    if worst_difference(*results) != 0:
        raise Failed(f"{name} depends on threads: X {m.X.shape}, D {m.D.shape}: by "
                     f"{worst_difference(*results):.2g}", f"{name} depends on threads")


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
    "OnlineGDL": lambda m: learn.OnlineGDL(8, 0.2, rng=m.seed).fit(m.X, 32).atoms,
    "from_sets": lambda m: subspaces.from_sets(m.sets, m.p),
    "from_videos": lambda m: subspaces.from_videos(m.sets, m.p, 2, rank="pad"),
    "kgsc": lambda m: kernels.kgsc(m.sets[:40], m.sets[40:], 0.1, kernel=kernels.rbf(0.01), p=1),
    "kglc": lambda m: kernels.kglc(m.sets[:40], m.sets[40:], 3, kernel=kernels.rbf(0.01), p=1),
    "Lift": lambda m: kernels.Lift(kernels.rbf(0.01), 1, rng=m.seed).fit_transform(m.sets),
    "karcher_mean": lambda m: intrinsic.karcher_mean(m.D, max_iter=20),
    "log_map": lambda m: intrinsic.log_map(m.D[0], m.X.astype(float)),
    "intrinsic_codes": lambda m: comparators.intrinsic_codes(m.X[:20], m.D, 0.1),
    "log_euclidean_codes": lambda m: comparators.log_euclidean_codes(m.X, m.D, 0.1),
    "lbp_top": lambda m: frames.lbp_top(m.X[:, :, :1] * np.ones(5)),
}


def jit_off(seed, case):
    """Each valid call in a process without JIT: the same result, to 1e-9."""
    if case >= len(sound_calls()):
        raise Done
    call = sound_calls()[case]
    number = next(i for i, other in enumerate(all_calls()) if other is call)
    file = without_jit().get(number)
    if file is None:
        raise Failed(f"{call.name}: no result without JIT: {without_jit()['said']}")
    with np.load(file) as arrays:
        result = [arrays[name] for name in arrays.files]
    if "error" in file:
        raise Failed(f"{call.name} without JIT: {result[0]}")
    difference = worst_difference(result, leaves(run(call)))
    if not difference <= 1e-9:
        raise Failed(f"{call.name}: differs by {difference:.2g} without JIT")


@functools.cache
def without_jit():
    """{case: file of its result or error} from a process that runs all calls."""
    done = subprocess.run([sys.executable, "-c", "from benchmarks.campaign_numbers import "
                           "write_results; write_results()"], capture_output=True, text=True,
                          env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)})
    found = {"said": done.stderr[-500:]}
    for name in os.listdir():
        if name.startswith("case_"):
            found[int(name.split("_")[1])] = name
    return found


def write_results():
    """What each call gives, as a file."""
    warnings.simplefilter("ignore")
    for case, call in enumerate(all_calls()):
        try:
            result = leaves(run(call))
            np.savez(f"case_{case}_result.npz", *result)
        except Exception as error:
            np.savez(f"case_{case}_error.npz", f"{type(error).__name__}: {str(error)[-300:]}")
