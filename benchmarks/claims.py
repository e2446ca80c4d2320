"""The figures of sentences in docstrings and pages that rest on real data.

Run: python -m benchmarks.claims DATA [--only CLAIM ...]

DATA is a folder of files .npz of labelled sets with splits, as grassmann-classify reads
them. Each claim prints its figures beside the place of its sentence.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from examples.common import of_these, parsed

Claim = namedtuple("Claim", "name place sentence figures")

options = parsed(
    __name__,
    of_these,
    "benchmarks.claims",
    {
        "data": dict(type=Path, metavar="DATA", help="a folder of files .npz"),
        "--only": dict(nargs="+", metavar="CLAIM", help="names of claims, as rule"),
    },
)

import numpy as np

import grassmann_sc as gs
from benchmarks.common import header
from examples.paper_experiments import BALLET, CASIA, UCSD
from grassmann_classify.folds import folds_of_split, kept_together
from grassmann_classify.npz import load_npz
from grassmann_classify.settings import NEIGHBORS, Settings
from grassmann_classify.words import short
from grassmann_sc import estimators, subspaces, tuning
from grassmann_sc.baselines.estimators import ISC

MOST_P = 12
P = 6  # of the costs, at most
LAM = 0.01
CLOSE = 0.5  # points of accuracy: two rules that differ by less are called equal
# the paper's experiment on the data of a file
OF_THE_PAPER = {"ballet": BALLET, "casia_gender": CASIA, "ucsd_traffic": UCSD}


def data_sets(folder):
    """(name, sets of frames (n_i, d), labels, groups or None, splits) of each file."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as file:
            if "offset" not in file:
                continue  # subspaces, without frames
        clips, splits = load_npz(path)
        sets = [clip.sources[0].reshape(len(clip.sources[0]), -1) for clip in clips]
        label, group = (
            np.array([getattr(clip, name) for clip in clips])
            for name in ("label", "group")
        )
        yield path.stem, sets, label, None if None in group else group, splits


def grams_of(sets, center):
    """{("linear", p): projection kernel (n, n)} of the dimensions to choose from."""
    most = min(MOST_P, min(map(len, sets)), sets[0].shape[1])
    X = subspaces.from_sets(sets, most, center=center, rank="pad")
    K = gs.projection_kernel(X, each_p=True)
    return {("linear", p): K[p - 1] for p in tuning.dimensions(most, 5)}


def rules_of_local_codes(folder):
    """gLC with p and neighbours chosen by cross-validation for either rule."""
    print(f"{'':28s}{'residual':>9s}{'sum':>8s}{'difference':>14s}   ahead of splits")
    found = []
    for name, sets, label, group, splits in data_sets(folder):
        for center in (False, True):
            grams = grams_of(sets, center)
            shares = np.array(
                [accuracies_by_rule(grams, label, group, split) for split in splits]
            )
            ahead = shares[:, 0] - shares[:, 1]
            found.append(ahead.mean())
            spread = f"± {ahead.std(ddof=1):.1f}" if len(ahead) > 1 else ""
            title = f"{name}, centred" if center else name
            print(
                f"{title:28s}{shares[:, 0].mean():9.1f}{shares[:, 1].mean():8.1f}"
                f"{ahead.mean():8.1f} {spread:6s}  {(ahead > 0).sum()} residual, "
                f"{(ahead < 0).sum()} sum, {(ahead == 0).sum()} equal",
                flush=True,
            )
    for title, some in (("frames as they are", found[::2]), ("centred", found[1::2])):
        some = np.array(some)
        print(
            f"{title}: residual ahead by more than {CLOSE} on {(some > CLOSE).sum()} of "
            f"{len(some)} sets, sum on {(some < -CLOSE).sum()}; residual less sum "
            f"{some.min():+.1f} to {some.max():+.1f}, in the mean {some.mean():+.1f}"
        )


def accuracies_by_rule(grams, label, group, split):
    """Accuracy in % on a test part by the rules "residual" and "sum"."""
    group, _ = kept_together(label, group, None, split)
    folds, _ = folds_of_split(label, group, split.train, Settings())
    found = []
    for rule in ("residual", "sum"):
        predict = tuning.local_predictions(NEIGHBORS, [rule])
        search = tuning.Search(label, folds, predict)
        choice = search.choose(grams)
        answers = search.answers(grams[choice.gram], *split)
        right = answers[choice.parameters] == label[split.test]
        found.append(100 * right.mean())
    return found


def cost_of_intrinsic_codes(folder):
    """The processor's seconds of gSC and iSC to fit and predict the first split."""
    print(
        f"{'':20s}{'atoms':>6s}{'queries':>8s}{'p':>3s}{'gSC':>9s}{'iSC':>9s}{'ratio':>7s}"
    )
    ratios = []
    for name, sets, label, _, ((train, test), *_) in data_sets(folder):
        p = min(P, min(map(len, sets)))
        X = subspaces.from_sets(sets, p, rank="pad")
        seconds = []
        for model in (
            estimators.CodingClassifier(lam=LAM, lam_scale="max", calibrate=False),
            ISC(LAM),
        ):
            model.fit(X[train], label[train]).predict(X[test[:2]])  # compile
            started = time.process_time()
            model.fit(X[train], label[train]).predict(X[test])
            seconds.append(time.process_time() - started)
        ratios.append(seconds[1] / seconds[0])
        print(
            f"{name:20s}{len(train):6d}{len(test):8d}{p:3d}{seconds[0]:9.3f}"
            f"{seconds[1]:9.3f}{ratios[-1]:7.1f}",
            flush=True,
        )
    print(f"iSC takes {min(ratios):.0f} to {max(ratios):.0f} times as long as gSC")


def tables_of_compare(folder):
    """What compare gives for each file, with every baseline on the paper's own data."""
    for path in sorted(folder.glob("*.npz")):
        preset = OF_THE_PAPER.get(path.stem)
        words = ["compare", str(path), "--no-pictures"]
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run(
                [sys.executable, "-m", "grassmann_classify", *words, "--out", out]
                + ["--baselines"] * bool(preset),
                capture_output=True,
                text=True,
            )
            kept = Path(out, "results.json")
            if not kept.is_file():
                print(f"{path.stem} failed: {done.stderr.splitlines()[-1]}")
                continue
            results = json.loads(kept.read_text())["methods"]
        print(f"{path.stem}, {time.perf_counter() - started:.0f} s")
        for name, found in results.items():
            figure = "failed" if found["mean"] is None else f"{found['mean']:.1f}"
            printed = preset.printed.get(short(name), [""])[-1] if preset else ""
            print(f"  {short(name):24s}{figure:>8s}   {printed}".rstrip(), flush=True)


CLAIMS = [
    Claim(
        "tables",
        "README.md, docs/guide/methods.rst, docs/paper.rst",
        "accuracy in % of each row of compare, and the paper's on the same videos",
        tables_of_compare,
    ),
    Claim(
        "rule",
        "grassmann_sc.class_scores, docs/guide/methods.rst",
        "which rule is better for local codes, residual or sum",
        rules_of_local_codes,
    ),
    Claim(
        "isc",
        "baselines.estimators.ISC, docs/paper.rst",
        "how much longer than gSC iSC takes",
        cost_of_intrinsic_codes,
    ),
]


def main(options):
    header("claims")
    known = [claim.name for claim in CLAIMS]
    asked = options.only or known
    if not any(options.data.glob("*.npz")):
        raise SystemExit(f"DATA must be a folder of files .npz, got {options.data}")
    for name in asked:
        if name not in known:
            raise SystemExit(
                f"there is no claim {name!r}; there are {', '.join(known)}"
            )
    for claim in CLAIMS:
        if claim.name in asked:
            print(f"\n-- {claim.name}: {claim.sentence}\n   {claim.place}")
            claim.figures(options.data)


if __name__ == "__main__":
    main(options)
