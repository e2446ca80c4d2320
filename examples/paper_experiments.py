"""The paper's six experiments on real data, ours beside the printed figures: python -m examples.paper_experiments NAME --data DIR

The data sets cannot be shipped. --help-data NAME says what to download and how to lay it out.
Preprocessing, descriptor, p, ARMA orders, protocol and repetitions are the paper's; what it leaves open is marked "ours" there.
The subspaces are kept in OUT/NAME/cache, results.json and codes.npz go to OUT/NAME.
"""

import argparse
import csv
import sys
from collections import namedtuple
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # also runs as python examples/paper_experiments.py

import grassmann_sc as core
from estimators import KernelLift
from examples import classify
from examples.clips import Clip, Recipe, build_all, find_clips, say, split_at_random, split_by_file, visible

# clips(folder) -> clips of the layout; splits(collection, folder, repeats, seed) -> [(train, test), ...];
# printed: {method: what the paper's table prints}; dictionary: atoms are learned and an SVM decides, else labelled sets and residuals
Preset = namedtuple("Preset", "title data recipe clips splits repeats dictionary printed")
ATOMS = 200  # of a learned dictionary, or half the training sets if they are fewer; ours: the paper does not print it
GAMMA, LANDMARKS = [1, 0.25, 4], 1000  # of the kernel: in units of the median heuristic; for large sets; ours
SVM_GRID = {"C": [1, 10, 100], "gamma": [0.1, 1, 10]}


def casia_clips(folder):
    """A set for each person and walk in normal clothes: a gait energy image from each of its views."""
    with open(folder / "gender.csv", newline="", encoding="utf-8") as file:
        gender = {row["person"]: row["gender"] for row in csv.DictReader(file)}
    clips = []
    for person in filter(Path.is_dir, visible(folder)):
        for walk in person.glob("nm-*"):
            if person.name not in gender:
                raise ValueError(f"{folder / 'gender.csv'}: must have a line for person {person.name}")
            clips.append(Clip(f"{person.name}/{walk.name}", gender[person.name], person.name, visible(walk)))
    return sorted(clips)


def casia_splits(collection, folder, repeats, seed):
    """Ten persons of each gender to train, all others to test."""
    rng, pairs = np.random.default_rng(seed), []
    persons = {c: np.unique(collection.group[collection.label == c]) for c in np.unique(collection.label)}
    for _ in range(repeats):
        chosen = [name for of_class in persons.values() for name in rng.choice(of_class, min(10, len(of_class) // 2), replace=False)]
        train = np.isin(collection.group, chosen)
        pairs.append((np.flatnonzero(train), np.flatnonzero(~train)))
    return pairs


def cambridge_clips(folder):
    return [Clip(f"{light.name}/{gesture.name}/{clip.name}", gesture.name, light.name, [clip])
            for light in folder.glob("Set[1-5]") for gesture in visible(light) for clip in visible(gesture)]


def cambridge_splits(collection, folder, repeats, seed):
    """Trained on Set5, tested on each other illumination: the columns of the paper's table."""
    train = np.flatnonzero(collection.group == "Set5")
    return [(train, np.flatnonzero(collection.group == f"Set{k}")) for k in range(1, 5)]


def given_splits(collection, folder, repeats, seed):
    return split_by_file(folder / "splits.csv", collection.names)


def random_splits(share):
    return lambda collection, folder, repeats, seed: split_at_random(collection.label, share, repeats, seed)


FOLDERS = "  {root}/CLASS/CLIP    CLIP: a video, a folder of images or an .npy, .npz or .mat file"
PRESETS = {
    "casia": Preset(
        "Gender recognition from gait, CASIA data set B", """\
Download: data set B (silhouettes) of the CASIA gait database, from the Center for Biometrics and Security Research, Chinese
Academy of Sciences. Lay it out as it comes, and add the persons' gender:
  casia/001/nm-01/000/*.png    person / walk in normal clothes / view / silhouettes
  casia/gender.csv             a header person,gender and a line a person
A set holds the gait energy images (32 x 32) of a walk's 11 views; p = 6; 10 men and 10 women to train. Ours: 10 repetitions.""",
        Recipe(p=6, features="gei", feature_options={"size": (32, 32)}), casia_clips, casia_splits, 10, False,
        {"DCC": "85.9 ± 6.6", "KAHM": "89.8 ± 2.4", "GDA": "76.4 ± 5.8", "GGDA": "84.3 ± 4.8", "iSC": "86.9 ± 3.2",
         "gSC": "94.3 ± 2.1", "gLC": "93.7 ± 2.1", "kgSC": "95.6 ± 2.1", "kgLC": "95.2 ± 1.6"}),
    "cambridge": Preset(
        "Hand gesture recognition, Cambridge hand gestures", """\
Download: the Cambridge hand gesture data set (Kim and Cipolla), five archives, one an illumination. Lay it out as it comes:
  cambridge/Set1/0000/0000/*.jpg    illumination Set1 to Set5 / gesture / clip / frames
Clips become 20 x 20 x 20, ARMA models of 10 states and 5 blocks; trained on Set5, tested on Set1 to Set4.""",
        Recipe(p=10, arma=5, size=(20, 20), evenly=20), cambridge_clips, cambridge_splits, 1, False,
        {"TCCA": "82 ± 3.5", "KAHM": "43 ± 1.4", "GDA": "87.4 ± 3.8", "GGDA": "91.1 ± 2.5", "PM": "91.7 ± 2.3", "iSC": "92.4 ± 2.1",
         "gSC": "93.3 ± 0.9", "gLC": "95.4 ± 1.3", "kgSC": "94.4 ± 2.0", "kgLC": "95.7 ± 1.6"}),
    "ucsd": Preset(
        "Scene analysis, UCSD traffic", """\
Download: the UCSD highway traffic data set (Chan and Vasconcelos), 254 videos with labels and the four trials' lists. Lay it out as
""" + FOLDERS.format(root="ucsd") + """, CLASS: heavy, medium, light
  ucsd/splits.csv    a header clip,Exp1,Exp2,Exp3,Exp4 and a line a clip, as heavy/NAME.avi,train,test,...
Clips become 48 x 48, less their mean image, each pixel of unit variance; ARMA models of 10 states and 5 blocks; the four trials.
Ours: variance by pixel (one variance for a clip would change no subspace).""",
        Recipe(p=10, arma=5, size=(48, 48), unit_variance=True), find_clips, given_splits, 1, False,
        {"LDS": "87.8 ± 3.0", "CS-LDS": "86.6 ± 2.2", "KAHM": "82.7 ± 2.1", "GDA": "79.1 ± 6.7", "GGDA": "89.4 ± 1.5", "iSC": "92.2 ± 4.0",
         "gSC": "92.9 ± 3.7", "gLC": "92.2 ± 4.5", "kgSC": "94.9 ± 4.1", "kgLC": "95.3 ± 2.2"}),
    "youtube": Preset(
        "Face recognition, YouTube Celebrities", """\
Download: the YouTube Celebrities face tracking and recognition data set (Kim, Kumar, Pavlovic and Rowley), 1910 clips of 47 persons.
Cut out the faces with a cascaded face detector, as the paper did (any will do; sizes may differ). Lay them out as
""" + FOLDERS.format(root="youtube") + """, CLASS: the person
Faces become 96 x 96 and LBP histograms; p = 5; ten random splits, 70 % to train. Ours: one histogram of 59 bins a face.""",
        Recipe(p=5, features="lbp", size=(96, 96)), find_clips, random_splits(0.7), 10, True,
        {"DCC": "60.21 ± 2.9", "KAHM": "67.49 ± 3.5", "GDA": "58.72 ± 3.0", "GGDA": "61.06 ± 2.2",
         "gSC": "70.47 ± 1.7", "gLC": "71.74 ± 2.3", "kgSC": "73.91 ± 1.9", "kgLC": "73.53 ± 2.3"}),
    "ballet": Preset(
        "Action recognition, Ballet", """\
Download: the ballet data set (Fathi and Mori), 44 videos of 8 motions. Lay them out as
""" + FOLDERS.format(root="ballet") + """, CLASS: the motion
Every 6 frames make a set; HOG of each frame; p = 4; ten random splits in halves. Ours: frames of 64 x 64.""",
        Recipe(p=4, features="hog", size=(64, 64), run=6), find_clips, random_splits(0.5), 10, True,
        {"DCC": "41.95 ± 9.6", "KAHM": "70.05 ± 0.9", "GDA": "67.33 ± 1.1", "GGDA": "73.54 ± 2.0",
         "gSC": "79.64 ± 1.1", "gLC": "81.42 ± 0.8", "kgSC": "83.53 ± 0.8", "kgLC": "86.94 ± 1.1"}),
    "dyntex": Preset(
        "Dynamic textures, DynTex++", """\
Download: DynTex++ (Ghanem and Ahuja), 36 classes of 100 sequences of 50 x 50 x 50. Lay them out as
""" + FOLDERS.format(root="dyntex") + """, CLASS: the texture
LBP-TOP of sub-videos of 10 frames, a new one every 3; p = 5; twenty random splits in halves. Ours: radii 1, 59 bins a plane.""",
        Recipe(p=5, features="lbp_top", feature_options={"length": 10, "step": 3}), find_clips, random_splits(0.5), 20, True,
        {"DL-PEGASOS": "63.7", "DFS": "89.9", "DCC": "53.2", "KAHM": "82.8", "GDA": "81.2", "GGDA": "84.1",
         "gSC": "90.3", "gLC": "91.8", "kgSC": "92.8", "kgLC": "93.2"}),
}


def methods_of(preset, n_rows):
    """Those of classify.py that the experiment compares; over learned atoms also in a Gaussian kernel's feature space (kgDL), and
    with the paper's Gaussian SVM, its C and gamma by cross-validation on the codes. n_rows: of all sets."""
    lift = KernelLift(p=preset.recipe.p, gamma_scale="median", n_landmarks=LANDMARKS if n_rows > 4 * LANDMARKS else None, rng=0)
    svm = GridSearchCV(SVC(), SVM_GRID, cv=3)

    def methods(n_train, smallest, options):
        for method in classify.methods(n_train, smallest, options):
            if method.name == "nearest subspace" or not preset.dictionary and method.name.partition(",")[0] in preset.printed:
                yield method
            elif preset.dictionary and "learned" in method.name:
                learning = method.estimator.steps[:-1]
                yield method._replace(estimator=Pipeline([*learning, ("svm", svm)]))
                yield method._replace(name="k" + method.name, reads="sets", grid={**method.grid, "lift__gamma": GAMMA},
                                      estimator=Pipeline([("lift", lift), *learning, ("svm", svm)]))
    return methods


def run(name, preset, options):
    folder, out = options.data, options.out / name
    clips = preset.clips(folder)
    if not clips:
        raise ValueError(f"{folder}: holds no clip in the layout of this experiment")
    collection = build_all(clips, preset.recipe, out / "cache", keep_rows=True, strict=options.strict)
    pairs = preset.splits(collection, folder, options.repeats or preset.repeats, options.seed)
    inputs = {"sets": collection.sets, "subspaces": collection.X, "gram": core.projection_kernel(collection.X)}
    settings = classify.parse(["--data", str(folder), "--out", str(out), "--p", str(preset.recipe.p), "--seed", str(options.seed),
                               "--kernels", "--atoms", str(min(ATOMS, len(pairs[0][0]) // 2) if preset.dictionary else 0)])
    last = []

    def report(results, split):
        classify.save_results(out, settings, collection, pairs, results)
        last[:] = [split]

    results = classify.run_splits(collection, inputs, pairs, methods_of(preset, sum(map(len, collection.sets))), settings, report)
    classify.save_codes(out, collection, last[0])
    n, d, p = collection.X.shape
    print(f"{preset.title}: {n} sets, {len(np.unique(collection.label))} classes, {p}-dimensional subspaces of R^{d}, {len(pairs)} splits")
    print_table(preset, results)
    if collection.failed:
        say(f"\n{len(collection.failed)} clips could not be used:\n  " + "\n  ".join(collection.failed))


def print_table(preset, results):
    print(f"{'':42}{'the paper':>14}{'here':>14}")
    ours = {}
    for name, found in results.items():
        accuracy = [split["accuracy"] for split in found]
        spread = f" ± {np.std(accuracy, ddof=1):.1f}" if len(accuracy) > 1 else ""
        ours[name] = f"{np.mean(accuracy):.1f}{spread}"
    for method, figure in preset.printed.items():
        here = [name for name in ours if name.partition(",")[0] == method]
        print(f"{here[0] if here else method:42}{figure:>14}{ours.pop(here[0]) if here else '':>14}".rstrip())
    for name, figure in ours.items():
        print(f"{name:42}{'':>14}{figure:>14}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m examples.paper_experiments", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PRESETS, help="the experiment")
    parser.add_argument("--help-data", action="store_true", help="say what to download and how to lay it out")
    parser.add_argument("--data", type=Path, metavar="DIR", help="the data, in that layout")
    parser.add_argument("--out", type=Path, default=Path("out"), help="where results go (default: %(default)s)")
    parser.add_argument("--repeats", type=int, help="random splits (default: the paper's)")
    parser.add_argument("--seed", type=int, default=0, help="for splits, folds and first atoms (default: %(default)s)")
    parser.add_argument("--strict", action="store_true", help="stop at the first clip that cannot be used")
    options = parser.parse_args(arguments)
    if options.data is None and not options.help_data:
        parser.error("--data is needed, or --help-data")
    if options.repeats is not None and options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    return options


def main(arguments=None):
    options = parse(arguments)
    preset = PRESETS[options.name]
    if options.help_data:
        print(f"{preset.title}\n{preset.data}")
        return
    try:
        with classify.threadpool_limits(1, user_api="blas"):
            run(options.name, preset, options)
    except (OSError, ValueError, TypeError, ImportError) as error:
        sys.exit(f"examples.paper_experiments: {error}\n\n{preset.title}\n{preset.data}")
    except KeyboardInterrupt:
        sys.exit("examples.paper_experiments: stopped; the next run starts from the subspaces that were built")


if __name__ == "__main__":
    main()
