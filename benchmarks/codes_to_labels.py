"""From codes to labels: which classifier of the codes, and what are its probabilities worth?

    python -m benchmarks.codes_to_labels --data FILE.npz:p ... [--splits 3] [--out DIR]

Files are as in examples/classify.py, p is the dimension of their subspaces. For each:
- codes (gSC) over atoms learned by gDL, 2 and 4 a class, to a linear support vector machine with
  C = 10 as they are; divided by their standard deviation to a ridge classifier, to a linear and to
  a Gaussian support vector machine, each with its parameters from cross-validation;
- log-loss of CodingClassifier's probabilities at temperature 1 and at the one that it fits, over
  all training sets as atoms; the least that any temperature has on the test part; a picture of
  their reliability.
"""

import time
import warnings

from benchmarks.options import parser_of_files

if __name__ == "__main__":  # --help and mistakes do not wait for the imports below
    options = parser_of_files("codes_to_labels", __doc__, splits=3).parse_args()

import matplotlib
import numpy as np
from scipy.special import softmax
from sklearn.linear_model import RidgeClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from benchmarks.common import header
from benchmarks.discriminative import read
from grassmann_sc import estimators, plots

matplotlib.use("agg")
import matplotlib.pyplot as plt

ATOMS = [2, 4]  # a class
ITERATIONS = 3
LAM = 0.03  # in units of each query's lam_max
C = [0.01, 0.1, 1, 10, 100]
WIDTHS = [0.1, 0.3, 1, 3]  # of the Gaussian, over one in the number of codes
TEMPERATURES = np.geomspace(1e-4, 10, 200)
RULES = ["residual", "sum"]
FOLDS = 3


def main(options):
    options.out.mkdir(parents=True, exist_ok=True)
    warnings.filterwarnings("ignore")  # of classes with few sets and of solvers at their limit
    header("From codes to labels")
    for argument in options.data:
        name, X, y, splits = read(argument, options)
        print(f"{name}: p = {X.shape[2]}, {len(np.unique(y))} classes, {len(splits)} splits")
        for n in ATOMS:
            compare_classifiers(X, y, splits, n)
        for rule in RULES:
            compare_probabilities(X, y, splits, rule, options.out / f"reliability_{name}.png")


def classifiers(n_codes, y):
    """{name: what is fitted to codes of sets with labels y}."""
    cv = max(2, min(FOLDS, np.unique(y, return_counts=True)[1].min()))
    widths = [width / n_codes for width in WIDTHS]
    linear = make_pipeline(StandardScaler(), LinearSVC(dual="auto"))
    gaussian = make_pipeline(StandardScaler(), SVC())
    return {
        "SVC(linear, C=10)": SVC(kernel="linear", C=10),
        "scaled, ridge": make_pipeline(
            StandardScaler(), RidgeClassifierCV([0.1, 1, 10, 100, 1000])
        ),
        "scaled, linear SVM": GridSearchCV(linear, {"linearsvc__C": C}, cv=cv),
        "scaled, Gaussian SVM": GridSearchCV(
            gaussian, {"svc__C": [1, 10, 100], "svc__gamma": widths}, cv=cv
        ),
    }


def compare_classifiers(X, y, splits, n):
    """Prints mean accuracy, its deviation and seconds of each classifier on n atoms a class."""
    n_atoms = n * len(np.unique(y))
    found = {}
    for seed, (train, test) in enumerate(splits):
        if len(train) < n_atoms:
            continue
        coder = estimators.GrassmannDictionary(
            n_atoms, lam=LAM, lam_scale="max", max_iter=ITERATIONS, random_state=seed
        ).fit(X[train])
        known = coder.transform(X[train])
        queries = coder.transform(X[test])
        for name, classifier in classifiers(n_atoms, y[train]).items():
            start = time.perf_counter()
            right = classifier.fit(known, y[train]).predict(queries) == y[test]
            found.setdefault(name, []).append((100 * right.mean(), time.perf_counter() - start))
    cells = [
        f"{name} {np.mean(rows, axis=0)[0]:.1f} ± {np.std(rows, axis=0)[0]:.1f} "
        f"({np.mean(rows, axis=0)[1]:.2f} s)"
        for name, rows in found.items()
    ]
    told = "  |  ".join(cells) or f"fewer than {n_atoms} sets to train"
    print(f"  {n} atoms a class: {told}", flush=True)


def compare_probabilities(X, y, splits, rule, path):
    """Prints log-losses; draws the reliability of the fitted temperature for the first rule."""
    losses = []
    confidence = []
    right = []
    for train, test in splits:
        machine = estimators.CodingClassifier(lam=LAM, lam_scale="max", rule=rule)
        machine.fit(X[train], y[train])
        after = machine.predict_proba(X[test])
        scores = np.log(np.maximum(after, np.finfo(float).tiny)) * machine.temperature_

        def loss(temperature):
            return log_loss(y[test], softmax(scores / temperature, axis=1), labels=machine.classes_)

        losses.append([loss(1), loss(machine.temperature_), min(map(loss, TEMPERATURES))])
        confidence.append(after.max(axis=1))
        right.append(machine.classes_[after.argmax(axis=1)] == y[test])
    before, after, best = np.mean(losses, axis=0)
    print(
        f"  log-loss, rule {rule}: temperature 1 {before:.3f}, fitted {after:.3f}, best on the "
        f"test part {best:.3f}; right {100 * np.concatenate(right).mean():.1f} %",
        flush=True,
    )
    if rule == RULES[0]:
        ax = plots.plot_reliability(np.concatenate(confidence), np.concatenate(right))
        ax.set_title(path.stem.removeprefix("reliability_"))
        ax.figure.savefig(path, dpi=120)
        plt.close(ax.figure)


if __name__ == "__main__":
    main(options)
