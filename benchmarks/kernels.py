"""kernel_gram of sets of frames against scikit-learn's kernel of all frames.

Run: python -m benchmarks.kernels

The other package calls rbf_kernel (BLAS with all threads) on the frames of all sets and
then np.matmul of its blocks with the bases, which are computed before, for both.
np.matmul and np.exp of as many numbers, into an array of 2000 rows, are timed too.
"""

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "benchmarks.kernels")

from functools import partial

import numpy as np

from benchmarks.common import extra_memory, figure, header, in_child, interleaved, peer
from grassmann_sc import kernels

N_SETS = 500
N_FRAMES = 20
D = 400
P = 4
REPETITIONS = 2
GAMMA = 1 / (2 * D)
KERNEL = kernels.rbf(GAMMA)
STRIP = 2000  # rows of frames of the plain product
# of theirs with 1 GB of warm memory: our product in float64 alone is 0.6 of that
TIME = 1.3


def sets_and_bases(seed, dtype=np.float64):
    X = np.random.default_rng(seed).standard_normal((N_SETS, N_FRAMES, D)).astype(dtype)
    return X, kernels.kernel_bases(X, KERNEL, P)


def library(X, A, Y, B):
    """||A_i^T K_ij B_j||_F^2 from the whole kernel matrix of scikit-learn."""
    rbf_kernel = peer("sklearn.metrics.pairwise", "scikit-learn").rbf_kernel
    A = np.stack(A)
    B = np.stack(B)
    (n, q, d) = X.shape
    N = len(Y)
    K = rbf_kernel(X.reshape(-1, d), Y.reshape(-1, d), gamma=GAMMA)
    half = np.matmul(A.transpose(0, 2, 1), K.reshape(n, q, N * q))  # (n, p, N q)
    # else not by BLAS
    half = np.ascontiguousarray(half.reshape(-1, N, q).transpose(1, 0, 2))
    full = np.matmul(half, B).reshape(N, n, -1)  # (N, n, p p)
    return np.einsum("jia,jia->ij", full, full)


def product_and_exp(X, Y, out):
    X = X.reshape(-1, D)
    Y = Y.reshape(-1, D)
    for i in range(0, len(X), STRIP):
        np.matmul(X[i : i + STRIP], Y.T, out=out)
        np.exp(out, out=out)


def main():
    header(
        "Kernel Gram matrix: kernel_gram(sets, bases, sets2, bases2, rbf) against rbf_kernel of "
        "scikit-learn and block products"
    )
    calls = []
    theirs = peer("sklearn.metrics.pairwise", "scikit-learn")
    for dtype in (np.float64, np.float32):
        X, A = sets_and_bases(0, dtype)
        Y, B = sets_and_bases(1, dtype)
        out = np.empty((STRIP, N_SETS * N_FRAMES), dtype)
        calls += [
            partial(kernels.kernel_gram, X, A, Y, B, KERNEL),
            partial(kernels.kernel_gram, X, A, kernel=KERNEL),
            partial(product_and_exp, -np.abs(X), np.abs(Y) / D, out),
        ]
        few = slice(200)
        ours = kernels.kernel_gram(X[few], A[few], Y, B, KERNEL)
        reference = library(X[few], A[few], Y, B) if theirs else np.nan
        print(
            f"{dtype.__name__}: largest difference from scikit-learn {np.abs(ours - reference).max():.1e}"
            f", largest entry {ours.max():.2g}",
            flush=True,
        )
        kernels.kernel_gram(X[few], A[few], kernel=KERNEL)
        if theirs:
            calls.append(partial(library, X, A, Y, B))
    seconds = interleaved(calls, REPETITIONS, again=True).reshape(2, -1)
    print(f"{N_SETS} x {N_SETS} sets of {N_FRAMES} frames, d = {D}, p = {P}, Gaussian")
    for name, (own, symmetric, plain, *library_s) in zip(
        ("float64", "float32"), seconds
    ):
        rate = 1e-9 * (N_SETS * N_FRAMES) ** 2 / own
        print(
            f"  {name}: ours {own:.2f} s ({rate:.2f} billion kernel values/s), symmetric "
            f"{symmetric:.2f} s, product and exp {plain:.2f} s"
            + "".join(f", scikit-learn {s:.2f} s" for s in library_s)
        )
        for s in library_s:
            figure(
                f"{name}: time over that of scikit-learn and block products (1)",
                own / s,
                f"<= {TIME}",
            )
        figure(f"{name}: rate over that of plain product and np.exp (1)", plain / own)
        figure(
            f"{name}: symmetric over rectangular time (1)", symmetric / own, "<= 0.8"
        )
    for name in WAYS if theirs else list(WAYS)[:2]:
        figure(
            f"{name}: peak memory beyond input and output (MB)",
            *in_child(memory, name),
            "<= 128" if name.startswith("kernel") else "",
        )


WAYS = {
    "kernel_gram(X, A, Y, B)": lambda X, A, Y, B: kernels.kernel_gram(
        X, A, Y, B, KERNEL
    ),
    "kernel_gram(X, A)": lambda X, A, Y, B: kernels.kernel_gram(X, A, kernel=KERNEL),
    "scikit-learn and block products": library,
}


def memory(name):
    X, A = sets_and_bases(0)
    Y, B = sets_and_bases(1)
    WAYS[name](X[:9], A[:9], Y[:9], B[:9])  # compiles
    yield extra_memory(lambda: WAYS[name](X, A, Y, B))


if __name__ == "__main__":
    main()
