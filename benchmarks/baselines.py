"""The paper's baselines: speed, growth and accuracy.

Run: python -m benchmarks.baselines [--quick] [--out DIR]

On sets of images, each is compared with a straightforward loop over pairs, written from
the equations, and with projection_kernel, and timed as the number of sets grows. Loops
run on some of the pairs and are scaled up to all; results are compared on the pairs
that both have.

On videos: a fractal spectrum of 50 x 50 x 50 voxels on one core; the signal-to-noise
ratio of CS-LDS against compression, as a table and a picture in OUT; simulated dynamic
textures of a dozen known systems, all methods in one table, parameters by
cross-validation on the training part; seconds of fit and prediction as clips grow from
50 to 500.
"""

import cProfile
import pstats
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from examples.common import of_these, parsed

options = parsed(
    __name__,
    of_these,
    "benchmarks.baselines",
    {
        "--quick": dict(action="store_true", help="only what has a target"),
        "--out": dict(type=Path, default=Path("out"), help="folder of the picture"),
    },
)

import matplotlib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import grassmann_sc as gs
import oracles
from benchmarks.common import extra_memory, figure, header, in_child, interleaved, timed
from examples.common import save_picture
from grassmann_classify.baseline_rows import STATES, video_baselines
from grassmann_sc import kernels
from grassmann_sc.baselines import dynamics, hulls, textures
from grassmann_sc.baselines.estimators import (
    CSLDS,
    DFS,
    LDS,
    TCCA,
    DLPegasos,
    ProductManifold,
)
from grassmann_sc.baselines.sets import (
    correlation_kernel,
    dcc,
    gda,
    ggda,
)
from grassmann_sc.subspaces import from_sets
from oracles import cosines, discriminants, each_pair
from textures import simulated_clip, simulated_textures, texture_systems

matplotlib.use("agg")
import matplotlib.pyplot as plt

N_SETS = 1000
N_CLASSES = 10
N_FRAMES = 10
D = 200
P = 4
N_LOOP = 24  # sets, the pairs of which a loop takes
GAMMA = 1 / (2 * D)
GROWTH = [250, 500, 1000, 2000]
REPETITIONS = 3
MOST = 20  # times projection_kernel, for the methods of a Gram matrix
N_CLIPS = 10  # of each simulated system, half of them to train
NOISES = [0.0, 0.1, 0.5]
CLIPS = [50, 100, 200, 500]
COMPRESSIONS = [1.5, 2, 3, 5, 8, 10, 15, 20]
COLOURS = {0.1: "#0072B2", 0.5: "#D55E00"}
N_FOLDS = 3
N_STATES = 4  # of the simulated systems


def problem(n, seed=0):
    """n sets of frames in classes with their own patterns and means; subspaces."""
    rng = np.random.default_rng(seed)
    patterns = rng.standard_normal((N_CLASSES, P, D))
    labels = np.arange(n) % N_CLASSES
    sets = rng.standard_normal((n, N_FRAMES, P)) @ patterns[labels]
    sets += (
        0.7 * rng.standard_normal(sets.shape) + patterns[labels].mean(axis=1)[:, None]
    )
    return sets, from_sets(sets, P), labels


def calls_of(sets, X, labels):
    """Each method on n sets, by name; what it gives is an array."""
    gram = gs.projection_kernel(X)
    return {
        "correlation_kernel": lambda: correlation_kernel(X),
        "gda": lambda: gda(gram, labels).coefficients,
        "ggda": lambda: ggda(gram, labels).coefficients,
        "dcc, a step": lambda: dcc(X, labels, n_iter=1).transform,
        "affine_hull_distances": lambda: hulls.affine_hull_distances(sets),
        "affine, Gaussian": lambda: hulls.affine_hull_distances(
            sets, kernel=kernels.rbf(GAMMA)
        ),
        "convex_hull_distances": lambda: hulls.convex_hull_distances(sets),
    }


def dcc_scatters(X):
    """(P_i Q_ij - P_j Q_ji)(...)^T of each pair at T = I."""
    S = np.zeros((D, D))
    for i in range(len(X)):
        for j in range(i):
            U, _, Vt = np.linalg.svd(X[i].T @ X[j])
            difference = X[i] @ U - X[j] @ Vt.T
            S += difference @ difference.T
    return S


def against_loops():
    sets, X, labels = problem(N_SETS)
    K = gs.projection_kernel(X)
    few = slice(N_LOOP)
    scale = N_SETS * (N_SETS - 1) / 2  # pairs
    of_all = scale / N_LOOP**2
    of_each = 2 * scale / (N_LOOP * (N_LOOP - 1) / 2)  # and the objective after it
    loops = {
        "correlation_kernel": (lambda A, B: cosines(A, B).sum(), X),
        "affine_hull_distances": (partial(oracles.affine_distance, share=0.98), sets),
        "convex_hull_distances": (partial(oracles.convex_distance, ftol=1e-12), sets),
    }
    loops = {
        name: (partial(each_pair, function, data[few], data[few]), of_all)
        for name, (function, data) in loops.items()
    }
    loops |= {
        "gda": (lambda: discriminants(K, *oracles.gda_matrices(labels), 1e-3)[1], 1),
        "ggda": (lambda: discriminants(K, *oracles.ggda_matrices(labels), 1e-3)[1], 1),
        "dcc, a step": (lambda: dcc_scatters(X[few]), of_each),
    }
    calls = calls_of(sets, X, labels)
    for name in calls:
        calls_of(sets[:50], X[:50], labels[:50])[name]()
    (gram_seconds,) = interleaved(
        [lambda: gs.projection_kernel(X, X.copy())], REPETITIONS
    )
    print(
        f"{N_SETS} sets of {N_FRAMES} frames, d = {D}, p = {P}; projection_kernel(X, D): "
        f"{gram_seconds:.3f} s"
    )
    for name, call in calls.items():
        (seconds,) = interleaved([call], REPETITIONS)
        of_gram = not ("hull" in name or "dcc" in name or "affine" in name)
        figure(f"{name} (s)", seconds)
        figure(
            f"{name}: time over that of projection_kernel (1)",
            seconds / gram_seconds,
            f"<= {MOST}" if of_gram else "",
        )
        if name not in loops:
            continue
        loop, factor = loops[name]
        loop_seconds, theirs = timed(loop)
        figure(
            f"{name}: speed over the loop, {factor * loop_seconds:.3g} s (1)",
            factor * loop_seconds / seconds,
            ">= 1",
        )
        if theirs.shape == (N_LOOP, N_LOOP):
            ours = call()[few, few]
            off = ~np.eye(N_LOOP, dtype=bool)
            print(
                f"    largest difference from the loop {np.abs(ours - theirs)[off].max():.1e}, largest "
                f"{theirs.max():.3g}"
            )


def seconds_and_memory(name, n):
    warnings.simplefilter("ignore")
    calls_of(*problem(20))[name]()  # compiles
    return timed(extra_memory, calls_of(*problem(n))[name])


def growth(numbers):
    print("Growth, a process each; memory beyond input and output")
    seconds = {}
    for name in calls_of(*problem(20)):
        for n in numbers:
            seconds[name, n], memory = in_child(seconds_and_memory, name, n)
            print(
                f"  {name:24s} n = {n:5d}: {seconds[name, n]:8.3f} s, {memory:8.1f} MB",
                flush=True,
            )
        figure(
            f"{name}: exponent of time from {numbers[-2]} to {numbers[-1]} sets (1)",
            np.log2(seconds[name, numbers[-1]] / seconds[name, numbers[-2]]),
        )
    return max(calls_of(*problem(20)), key=lambda name: seconds[name, numbers[-1]])


def profile_of(name, n):
    call = calls_of(*problem(n))[name]
    call()
    profile = cProfile.Profile()
    profile.runcall(call)
    print(f"The slowest, {name}, {n} sets, profile of the calling thread:")
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(6)


def simulated():
    """Print the accuracy, seconds and chosen parameters of each method.

    Candidates that cannot model the clips of a fold count as wrong.
    """
    for noise in NOISES:
        clips, labels = simulated_textures(N_CLIPS, noise=noise)
        inputs = SimpleNamespace(videos=clips, p=STATES)
        print(
            f"{len(clips)} simulated textures of 12 systems, noise {noise:g}; half to train"
        )
        for name, _, estimator, grid, *_ in video_baselines(inputs):
            search = GridSearchCV(estimator, grid, cv=N_FOLDS, error_score=0)
            try:
                seconds, predicted = timed(
                    lambda: search.fit(clips[::2], labels[::2]).predict(clips[1::2])
                )
            except ValueError as error:
                print(f"  {name:12s} failed: {error}", flush=True)
                continue
            right = 100 * np.mean(predicted == labels[1::2])
            chosen = ", ".join(
                f"{key} {value}" for key, value in search.best_params_.items()
            )
            print(f"  {name:12s}{right:7.1f} %{seconds:9.1f} s   {chosen}", flush=True)


def growth_of_clips(numbers):
    print("Seconds of fit on n clips and prediction of as many")
    systems = texture_systems()
    simple = {
        "LDS": LDS(N_STATES),
        "CS-LDS": CSLDS(N_STATES),
        "PM": ProductManifold(4),
        "TCCA": TCCA(4),
        "DFS": DFS(),
        "DL-Pegasos": DLPegasos(N_STATES),
    }
    clips, labels = simulated_textures(-(-max(numbers) // len(systems)), systems)
    order = np.random.default_rng(0).permutation(len(clips))
    for name, estimator in simple.items():
        clone(estimator).fit(clips[::4], labels[::4])  # compiles
        seconds = []
        for n in numbers:
            some = [clips[i] for i in order[:n]]
            y = labels[order[:n]]
            seconds.append(
                timed(lambda: clone(estimator).fit(some, y).predict(some))[0]
            )
        times = ", ".join(f"{n}: {s:.2f}" for n, s in zip(numbers, seconds))
        exponent = np.log(seconds[-1] / seconds[0]) / np.log(numbers[-1] / numbers[0])
        print(f"  {name:12s}{times}   exponent {exponent:.2f}", flush=True)


def spectrum_of_a_volume():
    """On the calling thread alone: nothing in a spectrum starts another."""
    clip = np.cumsum(np.random.default_rng(0).standard_normal((50, 50, 50)), axis=0)
    edges = textures.exponent_edges([clip])
    spectrum = partial(textures.fractal_spectrum, clip, edges)
    spectrum()
    (seconds,) = interleaved([spectrum], 5, rest=0)
    figure("a fractal spectrum of 50 x 50 x 50 voxels (s)", seconds, "<= 1")


def decibels(frames, recovered):
    return 20 * np.log10(np.linalg.norm(frames) / np.linalg.norm(frames - recovered))


def noise_against_compression(out):
    """dB of recovered clips, and of the best rank that many states allow."""
    ax = plt.subplots()[1]
    print("CS-LDS, dB at compressions " + ", ".join(f"{c:g}" for c in COMPRESSIONS))
    for noise in NOISES:
        clip = simulated_clip(texture_systems()[4], 60, noise, 0)
        d = clip[0].size
        snr = []
        for compression in COMPRESSIONS:
            total = round(d / compression)
            common = max(2 * N_STATES, total // 5)
            measurements = dynamics.compress(clip, common, total - common)
            recovered = dynamics.recover(measurements, N_STATES, 16)
            snr.append(decibels(clip, recovered.frames))
        rows = clip.reshape(len(clip), -1)
        U, s, V = np.linalg.svd(rows, full_matrices=False)
        best = decibels(rows, U[:, :N_STATES] * s[:N_STATES] @ V[:N_STATES])
        ratios = ", ".join(f"{value:.1f}" for value in snr)
        print(f"  noise {noise:4g}: {ratios}; all pixels seen {best:.1f}", flush=True)
        if noise > 0:  # without, it is about 250 dB throughout
            line = ax.plot(
                COMPRESSIONS,
                snr,
                marker="o",
                label=f"noise {noise:g}",
                color=COLOURS[noise],
            )
            ax.axhline(best, color=line[0].get_color(), linestyle="--", linewidth=1)
    ax.plot([], [], color="0.4", linestyle="--", linewidth=1, label="all pixels seen")
    ax.set(
        xscale="log",
        xlabel="compression, pixels over measurements",
        ylim=(0, None),
        ylabel="signal-to-noise ratio of the recovered clip in dB",
    )
    ax.minorticks_off()
    ax.set_xticks(COMPRESSIONS, [f"{c:g}" for c in COMPRESSIONS])
    ax.set_title("CS-LDS, 4 states, 60 frames of a simulated texture", fontsize=10)
    ax.legend(frameon=False)
    print(f"  {save_picture(out / 'compression', ax)}")


def main(options):
    warnings.simplefilter("ignore")
    header("The paper's baselines on sets of images")
    against_loops()
    spectrum_of_a_volume()
    if options.quick:
        return
    profile_of(growth(GROWTH), GROWTH[1])
    header("The paper's baselines on videos")
    noise_against_compression(options.out)
    simulated()
    growth_of_clips(CLIPS)


if __name__ == "__main__":
    main(options)
