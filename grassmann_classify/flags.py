"""The options of all commands: what each is, its default, and its subject.

Needs the standard library alone.
"""

import argparse
import json
from argparse import BooleanOptionalAction
from pathlib import Path

from grassmann_classify.settings import (
    CLUSTERED,
    DESCRIPTORS,
    DPI,
    FORMATS,
    LAM,
    MOST_P,
    NEIGHBORS,
    SPECTRUM,
    USUAL_P,
    C,
    axes_named,
    is_own,
)


def _descriptor(text):
    if text not in DESCRIPTORS and not is_own(text):
        raise argparse.ArgumentTypeError(
            f"must be one of {', '.join(DESCRIPTORS)}, or package.module:function, got "
            f"{text!r}"
        )
    return text


def _dots(text):
    dots = int(text)
    if not 10 <= dots <= 2400:
        raise argparse.ArgumentTypeError(f"must be 10 to 2400, got {dots}")
    return dots


def _axes(text):
    try:
        return ",".join(axes_named(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _words(text):
    return [words for words in text.split(",") if words.strip(" ,")]


def _option(help, **more):
    return {"help": help, **more}


FLAG = {"action": "store_true"}
OPTIONS = {
    # input and output
    "--data": _option(
        "the labelled clips: class folders, an .npz file of sets, or recordings",
        type=Path,
        metavar="DIR",
    ),
    "--model": _option("a saved model", type=Path, metavar="M.npz"),
    "--save": _option("save the model that was learned", type=Path, metavar="M.npz"),
    "--labels": _option(
        "labels of the clips in the folder: columns clip and label, and if need be group "
        "and split",
        type=Path,
        metavar="FILE.csv",
    ),
    "--out": _option(
        "where results go (default: %(default)s)",
        type=Path,
        default=Path("out"),
        metavar="OUT",
    ),
    "--no-pictures": _option("write no pictures", **FLAG),
    "--format": _option(
        "format of the pictures (default: %(default)s)",
        choices=FORMATS,
        default=FORMATS[0],
    ),
    "--dpi": _option(
        "dots per inch of png, and of images within pdf and svg (default: %(default)s)",
        type=_dots,
        default=DPI,
    ),
    "--strict": _option(
        "stop at the first clip that cannot be used (default: leave out damaged ones, stop "
        "at other sizes)",
        **FLAG,
    ),
    "--skip": _option("leave out every clip that cannot be used", **FLAG),
    # frames
    "--size": _option(
        "resize the frames (default: as they are; all must have one size)",
        type=int,
        nargs=2,
        metavar=("H", "W"),
    ),
    "--key": _option(
        "the array of frames in .npz and .mat files that hold several (default: frames)",
        metavar="NAME",
    ),
    "--axes": _option(
        "axes of arrays, if not time,channels of a clip or n,time,channels of all, "
        "as n,channels,time",
        type=_axes,
        metavar="AXES",
    ),
    "--columns": _option(
        "columns of tables, as ax ay az or 2-4 (default: all of numbers but a clock)",
        nargs="+",
        metavar="NAME",
    ),
    "--label-column": _option(
        "of long recordings (.csv): the column of labels; they are cut where it changes, "
        "and by --window",
        metavar="NAME",
    ),
    "--group-column": _option(
        "with it, the column of groups, as persons: groups are kept together, and one is "
        "left out at a time",
        metavar="NAME",
    ),
    "--every": _option("take every k-th frame", type=int, default=1, metavar="K"),
    "--at-most": _option("take at most the first N of these", type=int, metavar="N"),
    "--evenly": _option(
        "take N frames at even steps over the clip", type=int, metavar="N"
    ),
    "--resample": _option(
        "resample the frames to N, linearly in time", type=int, metavar="N"
    ),
    "--run": _option(
        "cut each clip, or images in a class folder, into sets of N frames, kept together "
        "in splits",
        type=int,
        metavar="N",
    ),
    "--step": _option(
        "of sets of --window frames, begin one every M frames (default: after the last)",
        type=int,
        metavar="M",
    ),
    "--group-by": _option(
        "take a clip's group from its file name; groups are kept together, and one is "
        "left out at a time",
        metavar="REGEX",
    ),
    # recipe
    "--recipe": _option(
        "plain: raw frames; chosen: --features, --center and --stack are chosen (default: "
        "%(default)s)",
        choices=["chosen", "plain"],
        default="chosen",
    ),
    "--features": _option(
        "raw, hog, lbp, or several of these to choose from; lbp_top, gei, or your "
        "package.module:function",
        nargs="+",
        type=_descriptor,
        metavar="NAME",
    ),
    "--feature-options": _option(
        "options of the descriptor, as '{\"grid\": [2, 2]}' (default: cells that suit the "
        "frames)",
        type=json.loads,
        default={},
        metavar="JSON",
    ),
    "--p": _option(
        "dimension of the subspaces, or several to choose from (default: up to "
        f"{MOST_P}; with --arma {USUAL_P})",
        type=int,
        nargs="+",
    ),
    "--spectrum": _option(
        "instead of p directions all, by their singular values to the power 2 A "
        f"(default: {' '.join(f'1/{1 / a:g}' for a in SPECTRUM)})",
        type=float,
        nargs="+",
        metavar="A",
    ),
    "--center": _option(
        "remove the mean frame of each set first, or do not (default: chosen)",
        action=BooleanOptionalAction,
    ),
    "--unit-variance": _option(
        "divide each centred pixel by its standard deviation over the set", **FLAG
    ),
    "--stack": _option(
        "stack each frame with the M - 1 that follow it, or several M to choose from "
        "(default: 1 4)",
        type=int,
        nargs="+",
        metavar="M",
    ),
    "--arma": _option(
        "ARMA model with p states, observability matrix of M blocks",
        type=int,
        default=0,
        metavar="M",
    ),
    "--stabilize": _option("scale unstable ARMA models back", **FLAG),
    "--rank": _option(
        "what to do if a clip has fewer than p independent frames (default: %(default)s)",
        default="raise",
        choices=["raise", "warn", "pad"],
    ),
    "--single": _option("single precision: half the memory", **FLAG),
    # evaluation
    "--splits": _option(
        "your splits: a line clip,NAME,NAME,... and for each clip a line with train, test "
        "or nothing",
        type=Path,
        metavar="FILE.csv",
    ),
    "--repeats": _option(
        "number of random splits, if no others are given (default: %(default)s)",
        type=int,
        default=10,
    ),
    "--train": _option(
        "share of each class that trains in a random split, or a whole number of its "
        "clips (default: %(default)s)",
        type=float,
        default=0.5,
        metavar="SHARE",
    ),
    "--choices": _option("print what each row chose, in words", **FLAG),
    "--f1": _option("add a column of F1, the mean over the classes", **FLAG),
    "--seconds": _option(
        "end after these, with the splits that are done then, or what is chosen "
        "(default: none)",
        type=float,
    ),
    "--jobs": _option(
        "processes that share the splits, a core each (default: one for each core)",
        type=int,
        metavar="N",
    ),
    "--seed": _option(
        "seed for splits, folds and first atoms (default: %(default)s)",
        type=int,
        default=0,
    ),
    "--coverage": _option(
        "share of new clips whose right class shall be among the possible ones (default: "
        "%(default)s)",
        type=float,
        default=0.9,
        metavar="SHARE",
    ),
    # rows
    "--methods": _option(
        "only the rows of the table whose names begin with these words, as "
        "gsc,kgsc,nearest",
        type=_words,
        metavar="WORDS,...",
    ),
    "--baselines": _option(
        "also what the paper compares with: GDA, DCC, MSM, hulls, ...; on raw videos LDS, "
        "PM, ...",
        **FLAG,
    ),
    "--kernels": _option(
        "also kgSC and kgLC, which keep all frames in memory (default: if these fit and "
        "some minutes suffice)",
        action=BooleanOptionalAction,
    ),
    "--kernel": _option(
        "your own kernel: a function of rows (n, d) and (m, d) that gives their matrix "
        "(n, m)",
        metavar="package.module:function",
    ),
    "--lam": _option(
        f"candidate lambdas of gSC, of 0 to 1 (default: {len(LAM)} from {LAM[0]} to {LAM[-1]})",
        type=float,
        nargs="+",
        default=LAM,
    ),
    "--neighbors": _option(
        "candidate numbers of neighbours of gLC (default: %(default)s)",
        type=int,
        nargs="+",
        default=NEIGHBORS,
    ),
    "--C": _option(
        "candidate C of the SVM (default: %(default)s)",
        type=float,
        nargs="+",
        default=C,
    ),
    "--atoms": _option(
        "also learn dictionaries of N atoms (default: none)",
        type=int,
        default=0,
        metavar="N",
    ),
    "--iterations": _option(
        "iterations of dictionary learning (default: %(default)s)", type=int, default=3
    ),
    "-k": _option("the number of clusters", type=int, required=True, metavar="K"),
}
INSTEAD = {  # of OPTIONS, for a command that chooses nothing
    "add": {
        "--model": {"required": True},
        "--save": {"required": True},
        "--label-column": _option("of long recordings (.csv): the column of labels"),
        "--group-column": _option("with it, the column of groups, as persons"),
        "--group-by": _option("take a clip's group from its file name"),
        "--strict": _option(
            "stop at the first clip that cannot be used (default: leave it out)"
        ),
        "--features": _option("your package.module:function that the model may run"),
    },
    "cluster": {
        "--p": _option(
            f"dimension of the subspaces (default: all directions, weighted by spectrum "
            f"1/{1 / CLUSTERED:g}; with --arma {USUAL_P})",
            nargs=1,
        ),
        "--features": _option(
            "raw, hog, lbp, lbp_top, gei, or your package.module:function (default: raw)",
            nargs=1,
        ),
        "--center": _option(
            "remove the mean frame of each set first (default: do not)"
        ),
        "--stack": _option(
            "stack each frame with the M - 1 that follow it (default: 1)", nargs=1
        ),
        "--run": _option("cut each clip into sets of N frames"),
        "--seed": _option("seed of the clusters (default: %(default)s)"),
    },
}
ALSO = {"--run": ["--window"]}  # other names of options
DEFAULTS = {
    "_".join(flag.lstrip("-").split("-")): keywords.get(
        "default", False if keywords.get("action") == "store_true" else None
    )
    for flag, keywords in OPTIONS.items()
}
BY_SUBJECT = {
    "clips and frames": "--size --labels --key --axes --columns --label-column "
    "--group-column --group-by --run --step --every --at-most --evenly --resample --skip "
    "--strict",
    "from frames to subspaces": "--recipe --features --feature-options --p --spectrum --center "
    "--unit-variance --stack --arma --stabilize --rank --single",
    "evaluation": "--repeats --train --splits --seconds --jobs --seed --f1 "
    "--choices --coverage",
    "methods": "--methods --kernels --kernel --baselines --lam --neighbors --C --atoms "
    "--iterations",
    "output": "--out --no-pictures --format --dpi",
}
