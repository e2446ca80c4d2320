"""Numbers of the campaign: codes against their optimality conditions in long double,
layouts of arrays, one thread beside two; and that they stay what they are: SIGKILL
while a checkpoint is written, forks while other threads compute.
"""

import faulthandler
import functools
import gc
import glob
import os
import signal
import tempfile
import threading
import time
import warnings
from types import SimpleNamespace

import numba
import numpy as np

import grassmann_sc as core
import oracles as plain
from benchmarks import campaign_calls as calls
from benchmarks.campaign_calls import Done, failing, hold, rng_of, run
from benchmarks.common import timed
from grassmann_sc import frames, intrinsic, kernels, learn, streams, subspaces
from grassmann_sc.baselines import tangent
from grassmann_sc.strategies import KINDS, bases, rotation

LONG = np.longdouble

# A code may miss its optimality conditions by the tolerance of the solver and by the
# rounding of the Gram matrices, ROUNDING eps max(p, q) for each of the 1 + ||y||_1
# terms that make a product: within as much atoms count as repeated, and share a
# coefficient.
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
    about = f"{kind}, X {X.shape}, D {D.shape}, {dtype.__name__}"
    return SimpleNamespace(
        X=X,
        D=D,
        eps=eps,
        K=long_gram(D, D),
        k=long_gram(X, D),
        norm2=float(p),
        dtype=dtype,
        about=about,
    )


def long_gram(X, D):
    """||X_i^T D_j||_F^2 in long double."""
    return (np.einsum("idp,jdq->ijpq", X.astype(LONG), D.astype(LONG)) ** 2).sum(
        axis=(2, 3)
    )


def check_sparse(rng, problem):
    """A call of gsc or sparse_codes with random options; each of its codes must be
    optimal.
    """
    peak = 2 * float(np.abs(problem.k).max()) or 1.0
    share = rng.choice(
        [0, 1e-6, 1e-4, 1e-2, 0.1, 0.5, 1, 1.2], int(rng.choice([1, 1, 3]))
    )
    relative = bool(rng.random() < 0.3)
    options = {
        "lam_scale": "max" if relative else None,
        "positive": bool(rng.random() < 0.4),
    }
    shape = problem.k.shape
    if rng.random() < 0.3:
        options["init"] = rng.standard_normal(shape)
    lam = share if relative else share * peak
    if len(lam) == 1:
        lam = float(lam[0])
    result, warned = sparse_call(rng, problem, lam, options)
    told = {name: value for name, value in options.items() if name != "init"}
    codes = result.codes if isinstance(result.codes, list) else [result.codes]
    codes = (
        np.stack([core.dense_codes(y) for y in codes]).reshape(-1, *shape).astype(LONG)
    )
    gaps = np.reshape(result.gap, (-1, shape[0]))
    for i, one in enumerate(np.atleast_1d(lam)):
        for j, k in enumerate(problem.k):
            unit = 2 * np.abs(k).max() if relative else 1
            with failing(
                f"lam {one:.3g}, {told}, {problem.about}, query {j}, warned {warned}"
            ):
                check_code(
                    problem,
                    k,
                    LONG(one) * (unit or 1),
                    codes[i, j],
                    gaps[i, j],
                    options["positive"],
                    warned,
                )


def sparse_call(rng, problem, lam, options):
    options |= {"return_info": True, "sparse_output": bool(rng.random() < 0.3)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if rng.random() < 0.5:
            result = core.gsc(problem.X, problem.D, lam, **options)
        else:
            K, k = (matrix.astype(problem.dtype) for matrix in (problem.K, problem.k))
            result = core.sparse_codes(K, k, lam, norm2=problem.norm2, **options)
    return result, bool(caught)


def check_code(problem, k, lam, y, gap, positive, warned):
    """Optimality of one code y; if the toolkit warned, its gap must say how far from it
    y is.
    """
    hold(
        np.isfinite(y).all() and not (positive and (y < 0).any()),
        "code not finite or not >= 0",
    )
    l1 = np.abs(y).sum()
    rounding = problem.eps * (1 + l1)
    if lam == 0 and not positive:
        bound = max(gap, TOL * problem.norm2) + rounding * (1 + l1)
        return check_least_squares(problem, k, y, bound)
    violation = plain.violation(problem.K, k, y, lam, positive)
    largest = problem.K.diagonal().max()
    bound = TOL * np.sqrt(problem.norm2 * largest) + rounding
    # a step in that coordinate would gain violation^2 / K_jj, at most the gap
    if warned:
        bound += np.sqrt(max(gap, 0) * largest)
    hold(
        violation <= bound,
        f"optimality conditions violated: by {float(violation):.2g}, bound "
        f"{float(bound):.2g}, gap {gap:.2g}",
    )


def check_least_squares(problem, k, y, bound):
    """For lambda = 0: no worse than least squares over the eigenvectors of K above
    rounding.
    """
    best, *_ = np.linalg.lstsq(
        problem.K.astype(float), k.astype(float), problem.eps * len(k)
    )
    cost, least = (z @ (problem.K @ z - 2 * k) for z in (y, best))
    hold(
        cost - least <= bound,
        f"cost above least squares: by {float(cost - least):.2g}, bound "
        f"{float(bound):.2g}",
    )


def check_local(rng, problem):
    """Sum 1, on the nearest atoms, and (B + ridge I) y a multiple of 1, for each code
    of glc.
    """
    n_atoms = len(problem.K)
    m = int(rng.integers(1, min(n_atoms, 12) + 1))
    reg = None if rng.random() < 0.5 else float(10.0 ** rng.integers(-8, 0))
    if rng.random() < 0.5:
        codes = core.glc(problem.X, problem.D, m, reg=reg)
    else:
        K, k = (matrix.astype(problem.dtype) for matrix in (problem.K, problem.k))
        codes = core.locality_codes(K, k, m, norm2=problem.norm2, reg=reg)
    default = 1e-5 if problem.dtype == np.float32 else 1e-10
    for j, (k, y) in enumerate(zip(problem.k, codes.astype(LONG))):
        with failing(f"{m} neighbours, reg {reg}, {problem.about}, query {j}"):
            check_local_code(problem, k, y, m, default if reg is None else reg)


def check_local_code(problem, k, y, m, reg):
    l1 = np.abs(y).sum()
    hold(abs(y.sum() - 1) <= problem.eps * (1 + l1), f"sum is not 1: {float(y.sum())}")
    used = np.flatnonzero(y)
    distance = problem.norm2 + problem.K.diagonal() - 2 * k
    farthest = np.sort(distance)[m - 1] + 4 * problem.eps
    hold(distance[used].max() <= farthest, "not the nearest atoms")
    same = np.flatnonzero(distance <= 4 * problem.eps * problem.norm2)
    if len(same) and np.isin(used, same).all():  # the query is an atom
        return
    nearest = np.argsort(distance, kind="stable")[:m]
    if (
        len(same)
        or len(used) > m
        or np.ptp(np.sort(distance)[m - 1 : m + 1]) < 8 * problem.eps
    ):
        return  # ties, and atoms that are the query or not as rounding wants it
    B = (
        problem.norm2
        - k[nearest][:, None]
        - k[nearest]
        + problem.K[np.ix_(nearest, nearest)]
    )
    ridge = reg * np.trace(B)
    image = B @ y[nearest] + ridge * y[nearest]
    error = np.ptp(image)
    bound = 4 * problem.eps * (1 + l1)
    hold(
        error <= bound,
        f"not the solution over the neighbours: (B + ridge) y varies by "
        f"{float(error):.2g}, bound {float(bound):.2g}",
    )


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


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "read-only": read_only,
    "byte-swapped": lambda A: A.astype(A.dtype.newbyteorder()),
    "memory-mapped": mapped,
}
# integers are legal
DATA = {"sets", "atom_sets", "frames", "videos", "A", "B", "silhouettes"}
SAME = 1e-9  # largest difference: another layout may be summed in another order
# of what vanishes, as a gap does, where norm2 is 2
ROUNDED = ROUNDING * np.finfo(float).eps * 2


@functools.cache
def all_layouts():
    """(call, name of the layout) for every call with arrays."""
    some = [
        call
        for call in calls.all_calls()
        if any(map(arrays_in, call.arguments.values()))
    ]
    whole_too = [
        call
        for call in some
        if DATA & {name.rpartition(".")[2] for name in call.arguments}
    ]
    return [(call, layout) for layout in LAYOUTS for call in some] + [
        (call, "integers") for call in whole_too
    ]


def layouts(seed, case):
    """A call with all its arrays in another layout: the same result, the arrays as they
    were.
    """
    if case >= len(all_layouts()):
        raise Done
    call, layout = all_layouts()[
        rng_of("layouts", seed, 0).permutation(len(all_layouts()))[case]
    ]
    plain = dict(call.arguments)
    if layout == "integers":
        changed = {
            name: changed_arrays(value, lambda A: np.rint(4 * A).astype(np.int32))
            for name, value in plain.items()
            if name.rpartition(".")[2] in DATA
        }
        plain |= {
            name: changed_arrays(value, np.float64) for name, value in changed.items()
        }
    else:
        changed = {
            name: changed_arrays(value, LAYOUTS[layout])
            for name, value in plain.items()
        }
    before = [array.tobytes() for array in arrays_in(list(changed.values()))]
    try:
        expected = run(call, **plain)
    except ValueError:
        return  # integers do not suit this call
    what = f"{call.name}({', '.join(changed)}), {layout}"
    with failing(what):
        difference = calls.worst_difference(
            run(call, **changed), expected, ROUNDED / SAME
        )
        hold(
            difference <= SAME,
            f"relative difference {difference:.2g}",
            f"differs: {what}",
        )
        hold(
            before == [array.tobytes() for array in arrays_in(list(changed.values()))],
            "changes its input",
        )


def arrays_in(value):
    """The arrays among an argument and its parts."""
    found = []
    changed_arrays(value, found.append)
    return found


def changed_arrays(value, change):
    if isinstance(value, np.ndarray):
        return change(value)
    if isinstance(value, (list, tuple)):
        parts = [changed_arrays(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def threads(seed, case):
    """A call of middling size on one thread and on two: the same bits."""
    rng = rng_of("threads", seed, case)
    name = list(MIDDLING)[case % len(MIDDLING)]
    m = middling(rng)
    results = []
    for n_threads in (1, 2):
        numba.set_num_threads(n_threads)
        results.append(MIDDLING[name](m))
    difference = calls.worst_difference(*results)
    hold(
        difference == 0,
        f"{name} depends on threads: X {m.X.shape}, D {m.D.shape}: by {difference:.2g}",
        f"{name} depends on threads",
    )


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
    "gsc, path": lambda m: core.gsc(
        m.X, m.D, [0.5, 0.1, 0.0], lam_scale="max", positive=True
    ),
    "glc": lambda m: core.glc(m.X, m.D, 5),
    "reconstruct": lambda m: core.reconstruct(core.glc(m.X, m.D, 5), m.D),
    "classify": lambda m: core.classify(m.X, m.D, m.labels, lam=0.1, return_info=True),
    "gdl": lambda m: learn.gdl(m.X, 12, 0.2, n_iter=3, rng=m.seed),
    "gdl, local": lambda m: learn.gdl(m.X, 12, n_neighbors=3, n_iter=3, rng=m.seed),
    "OnlineGDL": lambda m: streams.OnlineGDL(8, 0.2, rng=m.seed).fit(m.X, 32).atoms,
    "from_sets": lambda m: subspaces.from_sets(m.sets, m.p),
    "from_videos": lambda m: subspaces.from_videos(m.sets, m.p, 2, rank="pad"),
    "kgsc": lambda m: kernels.kgsc(
        m.sets[:40], m.sets[40:], 0.1, kernel=kernels.rbf(0.01), p=1
    ),
    "kglc": lambda m: kernels.kglc(
        m.sets[:40], m.sets[40:], 3, kernel=kernels.rbf(0.01), p=1
    ),
    "Lift": lambda m: kernels.Lift(kernels.rbf(0.01), 1, rng=m.seed).fit_transform(
        m.sets
    ),
    "karcher_mean": lambda m: intrinsic.karcher_mean(m.D, max_iter=20),
    "log_map": lambda m: intrinsic.log_map(m.D[0], m.X.astype(float)),
    "intrinsic_codes": lambda m: tangent.intrinsic_codes(m.X[:20], m.D, 0.1),
    "log_euclidean_codes": lambda m: tangent.log_euclidean_codes(m.X, m.D, 0.1),
    "lbp_top": lambda m: frames.lbp_top(m.X[:, :, :1] * np.ones(5)),
}


CHILD_LIMIT = 20  # seconds that a forked child may take
RAISES = 3  # exit status of a forked child
DIFFERS = 4

LEARN = functools.partial(learn.gdl, n_atoms=6, n_iter=15, tol=0)
LEARNING = [  # of samples, and paths to checkpoints
    functools.partial(LEARN, lam=0.2, rng=1),
    functools.partial(LEARN, n_neighbors=3, rng=2, unused="random"),
    functools.partial(
        LEARN, lam=0.3, lam_scale="max", positive=True, rng=3, init="kmeans"
    ),
    lambda X, **paths: (
        streams.OnlineGDL(6, 0.2, init="random", rng=4)
        .fit(X, 4, 2, checkpoint_every=2, **paths)
        .state()
    ),
]


@functools.cache
def uninterrupted(which):
    """(samples, seconds, result) of learning that is left alone, with a checkpoint
    beside it.
    """
    X = core.random_subspaces(40, 12, 2, which)
    X = X.astype(np.float32) if which == 1 else X
    LEARNING[which](X)  # compiles
    return X, *timed(lambda: LEARNING[which](X, checkpoint="whole.npz"))


def kills(seed, case):
    """A child that learns is killed; its checkpoint resumes to the bits of the whole
    run.
    """
    rng = rng_of("kills", seed, case)
    which = case % len(LEARNING)
    X, seconds, expected = uninterrupted(which)
    learning = LEARNING[which]
    n_kills = int(rng.integers(1, 4))  # the resumed runs are killed too
    for delay in rng.uniform(0, 1.5 * seconds, n_kills):
        child = os.fork()
        if child == 0:
            run_and_exit(lambda: go_on(learning, X))
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    try:
        with failing(f"learning {which}, {n_kills} kills"):
            difference = calls.worst_difference(go_on(learning, X), expected)
            hold(difference == 0, f"resumed to other bits: by {difference:.2g}")
            strays = glob.glob("state.npz?*")
            hold(not strays, f"stray files: {strays}")
    finally:
        for name in glob.glob("state.npz*"):
            os.unlink(name)


def go_on(learning, X):
    """Learn from where the checkpoint is, or from the start if there is none yet."""
    resume = "state.npz" if os.path.exists("state.npz") else None
    return learning(X, checkpoint="state.npz", resume=resume)


def run_and_exit(job):
    """In a forked child: status 0 unless the job returns False; a file says where it
    hangs.
    """
    faulthandler.dump_traceback_later(
        CHILD_LIMIT, exit=True, file=open("hangs.txt", "w")
    )
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(CHILD_LIMIT + 5)
    status = RAISES
    try:
        status = 0 if job() is not False else DIFFERS
    finally:
        os._exit(status)


@functools.cache
def busy_threads():
    """Threads that compute for ever, without BLAS: OpenBLAS forks with locks taken."""
    m = middling(np.random.default_rng(1))
    K = core.projection_kernel(m.D)
    k = core.projection_kernel(m.X, m.D)
    jobs = [
        lambda: core.sparse_codes(K, k, 0.1 * m.p, norm2=m.p),
        lambda: core.locality_codes(K, k, 5, norm2=m.p),
    ]

    def work(job):
        with warnings.catch_warnings():
            while True:
                job()

    for job in jobs:
        job()  # compiles
        threading.Thread(target=work, args=(job,), daemon=True).start()
    return jobs


@functools.cache
def small_problem():
    """Calls for the child, and what they give."""
    m = middling(np.random.default_rng(2))
    calls = [
        functools.partial(MIDDLING[name], m)
        for name in ("gsc", "glc", "chordal_distance", "from_sets", "kglc", "gdl")
    ]
    return [(call, call()) for call in calls]


def forks(seed, case):
    """A child, forked while other threads compute, codes a small problem and exits."""
    rng = rng_of("forks", seed, case)
    number = case % len(small_problem())
    call, expected = small_problem()[number]
    busy_threads()
    gc.collect(0)
    time.sleep(float(rng.uniform(0, 0.01)))
    child = os.fork()
    if child == 0:
        run_and_exit(lambda: calls.worst_difference(call(), expected) == 0)
    _, status = os.waitpid(child, 0)
    status = os.waitstatus_to_exitcode(status)
    told = {
        -signal.SIGALRM: "hangs",
        1: "hangs",
        RAISES: "raises",
        DIFFERS: "gives other numbers",
    }
    with open("hangs.txt") as file:
        hold(
            status == 0,
            f"forked child {told.get(status, status)}: call {number} of "
            f"small_problem: {file.read()[:3000]}",
        )
