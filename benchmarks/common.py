"""What the benchmarks share.

The header, interleaved timing, fresh interpreters, memory, other packages, data and the
duality gap.
"""

import ctypes
import functools
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np

import grassmann_sc as gs
from grassmann_classify.arrays import load_npz
from grassmann_sc import learn
from grassmann_sc.subspaces import from_sets

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ["numpy", "scipy", "numba", "threadpoolctl", "spams-bin", "scikit-learn"]
FRAMES_IN_SET = 5  # images in a set of digits
# seconds between calls: after one, the threads of BLAS spin for 0.1 s
REST = 0.15


def header(title):
    """Print what is measured, where, with how many threads and which versions."""
    cpu = re.search(r"model name\s*: (.*)", text_of("/proc/cpuinfo"))
    threadpoolctl = peer("threadpoolctl")
    pools = threadpoolctl.threadpool_info() if threadpoolctl else []
    blas = [
        f"{pool['internal_api']} {pool['num_threads']}"
        for pool in pools
        if pool["user_api"] == "blas"
    ]
    print(f"== {title}")
    print(
        f"{cpu[1] if cpu else platform.processor()} ({platform.machine()}, {platform.system()}), "
        f"{n_cores()} cores; threads: BLAS {' '.join(blas) or '?'}, "
        f"numba {numba.config.NUMBA_NUM_THREADS}"
    )
    print(
        f"python {platform.python_version()}, "
        + ", ".join(f"{name} {version_of(name)}" for name in PACKAGES),
        flush=True,
    )


def n_cores():
    return (
        len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count()
    )


@functools.cache
def peer(module, package=None):
    """The module, or None after saying, once, what is left out and how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        print(
            f"NOT COMPARED with {package or module} ({error}): pip install {package or module}"
        )


def figure(name, value, target=""):
    """Print a labelled number beside its target, such as '>= 0.9'."""
    bound = float(target[2:]) if target else value
    missed = value < bound if target.startswith(">") else value > bound
    note = f"target {target}{'  MISSED' if missed else ''}" if target else ""
    print(f"  {name:82s} {value:9.3g}  {note}", flush=True)


def timed(call, *arguments):
    """(seconds, result) of a call."""
    start = time.perf_counter()
    result = call(*arguments)
    return time.perf_counter() - start, result


def interleaved(callables, repetitions, rest=REST, before=None, again=False):
    """Least seconds of each callable.

    The least, since busy neighbours only add time. They are called in turn, after a
    rest and after before(), if given. Call each once before, to compile.
    """
    return in_turn(callables, repetitions, rest, before, again).min(axis=0)


def in_turn(callables, repetitions, rest=0, before=None, again=False):
    """Seconds of all calls (repetitions, callables), made as interleaved says.

    again: each is timed right after a call of its own.
    """
    seconds = np.empty((repetitions, len(callables)))
    for row in seconds:
        for i, call in enumerate(callables):
            time.sleep(rest)
            if before is not None:
                before()
            if again:
                call()
            row[i], _ = timed(call)
    return seconds


def run_child(code, cwd=ROOT, **environment):
    """(wall seconds, printed text) of code run by a fresh interpreter in cwd."""
    seconds, process = timed(
        lambda: subprocess.run(
            [sys.executable, "-c", code],
            cwd=cwd,
            env=os.environ | environment,
            text=True,
            stdout=subprocess.PIPE,
            check=True,
        )
    )
    return seconds, process.stdout


def in_child(function, *arguments, **environment):
    """The numbers that a function of a benchmark gives, called in a fresh interpreter."""
    _, text = run_child(f"print(*{call_of(function, arguments)})", **environment)
    return [float(word) for word in text.split()]


def call_of(function, arguments):
    """Code that calls a function of a benchmark, this one too."""
    module = function.__module__
    if module == "__main__":
        module = sys.modules[module].__spec__.name
    plain = tuple(str(item) if isinstance(item, Path) else item for item in arguments)
    return f"__import__({module!r}, fromlist=['']).{function.__name__}(*{plain!r})"


def extra_memory(call):
    """MB of the peak resident set during call(), beyond that before it and its result.

    NaN without /proc.
    """
    try:
        ctypes.CDLL(None).malloc_trim(0)
        # the peak restarts from the present
        Path("/proc/self/clear_refs").write_text("5")
    except (AttributeError, OSError):
        pass
    before = status("VmHWM")
    result = call()
    dense = isinstance(result, np.ndarray)
    parts = [result] if dense else [result.data, result.indices, result.indptr]
    return (status("VmHWM") - before - sum(part.nbytes for part in parts)) / 2**20


def about(centres, n, noise, rng, in_turn=False):
    """n subspaces about centres, in turn or drawn."""
    noise = (
        noise * rng.standard_normal((n, *centres.shape[1:])) / centres.shape[1] ** 0.5
    )
    which = (
        np.arange(n) % len(centres) if in_turn else rng.integers(len(centres), size=n)
    )
    return gs.orthonormalize(centres[which] + noise)


def digit_subspaces(n, p, seed=0):
    """(n, 64, p): subspaces of sets of images of one digit, the digits in turn.

    No image is twice in a set.
    """
    datasets = peer("sklearn.datasets", "scikit-learn") or sys.exit(
        "digits need scikit-learn"
    )
    images, digit = datasets.load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    of = [images[digit == c] for c in range(10)]
    return from_sets(
        [rng.choice(of[i % 10], FRAMES_IN_SET, replace=False) for i in range(n)], p
    )


def read_problem(argument, p=3):
    """(name, queries, atoms): the first split of FILE.npz or FILE.npz:p.

    The files are those of grassmann-classify.
    """
    path, _, tail = argument.rpartition(":")
    path, p = (path, int(tail)) if path and tail.isdigit() else (argument, p)
    clips, ((train, test), *_) = load_npz(path)
    X = from_sets([clip.sources[0] for clip in clips], p)
    return Path(path).stem, X[test], X[train]


def cost(X, atoms, lam):
    """Of all sparse codes: ||X^ - sum_j y_j D_j^||^2 + lam ||y||_1."""
    K = gs.bases_gram(atoms)
    k = gs.bases_gram(X, atoms)
    p = X.shape[2]
    return learn.sample_losses(K, k, gs.sparse_codes(K, k, lam, norm2=p), p, lam).sum()


def relative_gap(K, k, codes, lam, norm2):
    """Duality gap / norm2 of each code; r = X^ - sum_j y_j D_j^, dual point s r."""
    Ky = codes @ K
    rr = norm2 - (codes * (2 * k - Ky)).sum(axis=1)  # ||r||^2
    rx = norm2 - (codes * k).sum(axis=1)  # <r, X^>
    s = np.minimum(1, lam / 2 / np.maximum(np.abs(k - Ky).max(axis=1), 1e-300))
    return (rr + lam * np.abs(codes).sum(axis=1) - (2 * s * rx - s**2 * rr)) / norm2


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def status(key):
    """Bytes of an entry of /proc/self/status."""
    match = re.search(rf"{key}:\s*(\d+) kB", text_of("/proc/self/status"))
    return int(match[1]) * 1024.0 if match else np.nan


def text_of(path):
    """ "" where there is no such file."""
    return Path(path).read_text() if Path(path).exists() else ""
