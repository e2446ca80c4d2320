"""The baselines on videos: python -m benchmarks.baselines_videos [--quick] [--data FILE.npz ...]
[--out DIR]

Simulated dynamic textures of a dozen known systems, all methods in one table; the same on files in
the form of examples/classify.py whose sets are frames in order, parameters by cross-validation on
the training part; seconds of fit and prediction as clips grow from 50 to 500; a fractal spectrum of
50 x 50 x 50 voxels on one core; and the signal-to-noise ratio of CS-LDS against compression, as a
table and a picture in OUT.
"""

import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

from benchmarks.options import parser_of

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    parser = parser_of("baselines_videos", __doc__)
    parser.add_argument("--quick", action="store_true", help="fewer clips, to see that it runs")
    parser.add_argument("--data", nargs="*", default=[], type=Path, metavar="FILE.npz")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the picture")
    options = parser.parse_args()

import matplotlib
import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from benchmarks.common import ROOT, figure, header
from examples.baselines import STATES, video_baselines
from examples.clips import load_npz
from examples.pictures import save_picture
from grassmann_sc.baselines import dynamics, textures
from grassmann_sc.baselines.estimators import CSLDS, DFS, LDS, TCCA, DLPegasos, ProductManifold

sys.path.insert(0, str(ROOT / "tests"))
from textures import simulated_clip, simulated_textures, texture_systems

matplotlib.use("agg")
import matplotlib.pyplot as plt

N_CLIPS = 10  # of each simulated system, half of them to train
NOISES = [0.0, 0.1, 0.5]
GROWTH = [50, 100, 200, 500]
COMPRESSIONS = [1.5, 2, 3, 5, 8, 10, 15, 20]
COLOURS = {0.1: "#0072B2", 0.5: "#D55E00"}
N_FOLDS = 3
N_STATES = 4  # of the simulated systems


def candidates(clips):
    """(name, estimator, grid) of the methods that fit clips of this size, as examples.classify has
    them."""
    inputs = SimpleNamespace(videos=clips, p=STATES)
    return video_baselines(inputs, lambda name, reads, estimator, grid: (name, estimator, grid))


def accuracies(clips, labels, train, test):
    """A line a method: accuracy, seconds with the search, and what was chosen. A candidate that
    the clips of a fold allow no model of has no answer right."""
    fit = [clips[i] for i in train]
    queries = [clips[i] for i in test]
    for name, estimator, grid in candidates(clips):
        start = time.perf_counter()
        try:
            search = GridSearchCV(estimator, grid, cv=N_FOLDS, error_score=0)
            right = np.mean(search.fit(fit, labels[train]).predict(queries) == labels[test])
        except ValueError as error:
            print(f"  {name:12s} failed: {error}", flush=True)
            continue
        seconds = time.perf_counter() - start
        chosen = ", ".join(f"{key} {value}" for key, value in search.best_params_.items())
        print(f"  {name:12s}{100 * right:7.1f} %{seconds:9.1f} s   {chosen}", flush=True)


def simulated(quick):
    for noise in NOISES[1:2] if quick else NOISES:
        clips, labels = simulated_textures(4 if quick else N_CLIPS, noise=noise)
        train = np.arange(0, len(clips), 2)
        print(f"{len(clips)} simulated textures of 12 systems, noise {noise:g}; half to train")
        accuracies(clips, labels, train, train + 1)


def on_file(path):
    """The first split; features of frames are images of one row, which not all methods can take."""
    found, pairs = load_npz(path)
    clips = [np.float32(clip.sources[0]) for clip in found]
    if clips[0].ndim != 3:
        clips = [clip[:, None] for clip in clips]
    labels = np.array([clip.label for clip in found])
    train, test = pairs[0]
    print(f"{path}: {len(clips)} clips, {len(np.unique(labels))} classes, split 0")
    accuracies(clips, labels, train, test)


def growth(numbers):
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
        clone(estimator).fit(clips[::10], labels[::10])  # compiles
        seconds = []
        for n in numbers:
            some = [clips[i] for i in order[:n]]
            start = time.perf_counter()
            clone(estimator).fit(some, labels[order[:n]]).predict(some)
            seconds.append(time.perf_counter() - start)
        told = ", ".join(f"{n}: {s:.2f}" for n, s in zip(numbers, seconds))
        exponent = np.log(seconds[-1] / seconds[0]) / np.log(numbers[-1] / numbers[0])
        print(f"  {name:12s}{told}   exponent {exponent:.2f}", flush=True)


def spectrum_of_a_volume():
    """On the calling thread alone: nothing in a spectrum starts another."""
    clip = np.cumsum(np.random.default_rng(0).standard_normal((50, 50, 50)), axis=0)
    ranges = textures.exponent_ranges([clip])
    textures.fractal_spectrum(clip, ranges)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        textures.fractal_spectrum(clip, ranges)
        seconds.append(time.perf_counter() - start)
    figure("a fractal spectrum of 50 x 50 x 50 voxels (s)", np.median(seconds), "<= 1")


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
            seen = dynamics.compress(clip, common, total - common)
            found = dynamics.recover(seen, N_STATES, 16)
            snr.append(dynamics.decibels(clip, found.frames))
        rows = clip.reshape(len(clip), -1)
        U, s, V = np.linalg.svd(rows, full_matrices=False)
        best = dynamics.decibels(rows, U[:, :N_STATES] * s[:N_STATES] @ V[:N_STATES])
        told = ", ".join(f"{value:.1f}" for value in snr)
        print(f"  noise {noise:4g}: {told}; all pixels seen {best:.1f}", flush=True)
        if noise > 0:  # without, it is about 250 dB throughout
            line = ax.plot(
                COMPRESSIONS, snr, marker="o", label=f"noise {noise:g}", color=COLOURS[noise]
            )
            ax.axhline(best, color=line[0].get_color(), linestyle="--", linewidth=1)
    ax.plot([], [], color="0.4", linestyle="--", linewidth=1, label="all pixels seen")
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(COMPRESSIONS, [f"{c:g}" for c in COMPRESSIONS])
    ax.set_xlabel("compression, pixels over measurements")
    ax.set_ylabel("signal-to-noise ratio of the recovered clip in dB")
    ax.set_ylim(bottom=0)
    ax.set_title("CS-LDS, 4 states, 60 frames of a simulated texture", fontsize=10)
    ax.legend(frameon=False)
    print(f"  {save_picture(out / 'compression', ax)}")


def main(options):
    warnings.simplefilter("ignore")
    header("The paper's baselines on videos")
    spectrum_of_a_volume()
    noise_against_compression(options.out)
    simulated(options.quick)
    growth(GROWTH[:2] if options.quick else GROWTH)
    for path in options.data:
        on_file(path)


if __name__ == "__main__":
    main(options)
