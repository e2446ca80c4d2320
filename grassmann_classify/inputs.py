"""From the options of a command to clips, sets, recipes and splits."""

import time

import numpy as np

from grassmann_classify.building import build_all
from grassmann_classify.candidates import N_GAMMAS
from grassmann_classify.clips import Basis, Recipe, clip_names
from grassmann_classify.finding import (
    find_clips,
    find_labelled,
    find_new_clips,
    is_table,
)
from grassmann_classify.flags import DEFAULTS
from grassmann_classify.folds import check_classes
from grassmann_classify.headers import look
from grassmann_classify.messages import plural, printable, to_stderr
from grassmann_classify.model import inputs_for
from grassmann_classify.npz import holds_sets, load_new_npz, load_npz, with_bases
from grassmann_classify.own import own
from grassmann_classify.recipes import base_of, recipes_of
from grassmann_classify.recordings import (
    find_tables,
    labelled_stretches,
    new_stretches,
    say_columns,
)
from grassmann_classify.sets import FEW, MANY_FRAMES
from grassmann_classify.settings import GIVEN, MOST_P, is_own
from grassmann_classify.splits import (
    read_split_file,
    sets_of_clips,
    split_at_random,
    split_by_file,
    split_by_group,
    split_by_parts,
)
from grassmann_sc import tuning

# sizes above which kernels are left out by default
MOST_ROWS = 2**30  # bytes of all rows
MOST_GRAMS = 2**31  # bytes of all Gram matrices
MOST_PRODUCTS = 1e13  # multiplications for these: some minutes
# options that clips cannot have which are subspaces already
OF_FRAMES = "--size --every --at-most --evenly --resample --run --axes --columns "
OF_FRAMES += (
    "--features --center --unit-variance --stack --arma --stabilize --spectrum "
)
OF_FRAMES += "--kernels --kernel"


def labelled_clips(options, out, needs_splits):
    """(Clips of DIR with labels, splits of its file or None), checked before any is read.

    needs_splits: are the splits of an .npz file needed? Splits of a file are {clip: parts}
    of --labels, or pairs of clips of the .npz file. Options are set to leave out what
    clips cannot have that are subspaces already.
    """
    out.protect(options.splits)
    found = found_clips(options.data, out, options, options, needs_splits)
    clips, given, columns = found
    if options.label_column or options.labels:
        where = options.labels or options.data
        check_classes([clip.label for clip in clips], f"{where}: ")
    if options.splits:
        read_split_file(options.splits, {clip.name for clip in clips})
    options.columns = columns
    if columns is None and options.axes is None:
        options.columns = say_columns(clips)
    take_given(options, clips)
    return clips, given


def found_clips(path, out, how, options, needs_splits=False, fewest=2):
    """(The clips with labels at a path, splits of its file or None, columns of tables).

    how: a Recipe, or options. needs_splits: as in labelled_clips; fewest: classes that
    class folders must be.
    """
    out.protect(path, options.labels)
    given = None
    columns = how.columns
    if options.label_column:
        of_rows = options.label_column, options.group_column, options.group_by
        tables = find_tables(path)
        out.protect_clips(tables)
        clips, columns = labelled_stretches(tables, how, *of_rows, options.strict)
    elif options.labels:
        clips, given = find_labelled(path, options.labels)
    elif path.is_dir():
        clips = find_clips(path, options.group_by, how.run, fewest)
    elif is_table(path):
        raise ValueError(
            f"{path} is a table: --label-column names its column of labels"
        )
    else:
        clips, given = load_npz(path, how.key, needs_splits, how.axes)
    if not clips:
        raise ValueError(f"{options.labels or path} must label a clip, got none")
    out.protect_clips(clips)
    return with_bases(clips, how.key), given, columns


def new_clips(path, out, how):
    """Those of a folder, a file of sets, or one clip; how: a Recipe, or options."""
    out.protect(path)
    if path.is_file() and holds_sets(path, how.axes):
        return load_new_npz(path, how.key, how.axes)
    clips = find_new_clips(path)
    out.protect_clips(clips)
    return new_stretches(with_bases(clips, how.key), how)


def take_given(options, clips):
    """Set options for clips that are subspaces already, if any is."""
    given = [clip.name for clip in clips if isinstance(clip.sources[0], Basis)]
    if not given:
        return
    for flag in OF_FRAMES.split():
        name = "_".join(flag.lstrip("-").split("-"))
        if getattr(options, name) not in (DEFAULTS[name], False):
            raise ValueError(
                f"{flag} goes with frames, and {given[0]} is a subspace already"
            )
    to_stderr(
        "ready-made subspaces, of which p are the first p columns: left out are recipes, "
        "spectra, and the rows that need frames"
    )
    options.features = [GIVEN]
    options.kernels = False


def read(options, out, clips, later=False):
    """The Inputs of all clips: their Collection by each recipe to choose from.

    later: by the first recipe, until Inputs.complete is called.
    """
    recipe = read_by(options)
    start = time.perf_counter()
    # a file's sets belong together: what is wrong with one is wrong with the file
    several = options.data.is_dir() or options.label_column
    strict = options.strict or not (several or options.skip)
    keep_rows = options.features != [GIVEN] and (
        options.baselines
        or options.methods
        or options.kernels is not False
        or choice_of(options)
    )
    collection = build_all(
        clips,
        recipe,
        out.cache if options.data.is_dir() and not options.label_column else None,
        bool(keep_rows),
        strict,
        np.inf if options.kernels else MOST_ROWS,
        seen=look(clips, recipe, strict, options.skip),
    )
    seconds = time.perf_counter() - start
    n, d, p = collection.X.shape
    to_stderr(
        f"{plural(n, 'set')} to {p}-dimensional subspaces of R^{d}: {seconds:.1f} s, "
        f"{1000 * seconds / len(clips):.1f} ms a clip"
    )
    recipes = recipes_for(options, collection)
    return inputs_for(collection, recipe_of(options), options, recipes, later)


def choose_kernels(options, inputs):
    """Leave out the rows in a kernel's space where they take too long, if not asked for."""
    if options.kernels is None:
        why = too_large(inputs.collection.sets, max(map(len, inputs.p.values())))
        options.kernels = why is None
        if why:
            to_stderr(
                f"left out the rows in a kernel's space: {why}; --kernels asks for them"
            )


def read_by(options):
    """The Recipe by which clips are read: from its rows all candidates can be made."""
    recipe = recipe_of(options)
    return base_of(recipe) if choice_of(options) else recipe


def recipe_of(options):
    """The Recipe that options ask for; the first where they leave a choice."""
    chosen = {
        name: getattr(options, name)
        for name in Recipe.__dataclass_fields__
        if hasattr(options, name)
    }
    for name in ("size", "columns"):
        value = getattr(options, name)
        chosen[name] = value and tuple(value)
    features = (options.features or ["raw"])[0]
    chosen["features"] = features
    chosen["source"] = own(features).source if is_own(features) else ""
    chosen["center"] = bool(options.center)
    chosen["stack"] = (options.stack or [1])[0]
    chosen["p"] = max(options.p) if options.p and not options.spectrum else MOST_P
    chosen["fewer"] = options.p is None or len(options.p) > 1 or bool(options.spectrum)
    return Recipe(**chosen)


def choice_of(options):
    """The features, center and stack to choose from, None for all; or no choice: None."""
    asked = [options.features, options.center, options.stack]
    if options.recipe == "plain" or options.arma or options.rank != "raise":
        asked = [asked[0] or ["raw"], bool(asked[1]), asked[2] or [1]]
    if options.resample:  # descriptors come before it, variants are made behind it
        asked[0] = asked[0] or ["raw"]
    if options.features == [GIVEN]:
        return None
    if None not in asked and len(asked[0]) == len(asked[2]) == 1:
        return None
    if {"lbp_top", "gei"} & {*(asked[0] or [])}:  # no row a frame
        return None
    if options.resample and asked[0] != ["raw"]:
        return None
    features, center, stack = asked
    return features, center if center is None else [center], stack


def recipes_for(options, collection):
    """{name: Recipe} to choose from; None for the one by which the sets were read."""
    choice = choice_of(options)
    if choice is None:
        return None
    recipe = recipe_of(options)
    if collection.sets is None:
        why = (
            f"recipes are chosen on rows in memory, all frames take more than "
            f"{MOST_ROWS / 2**30:g} GiB"
        )
        if recipe != base_of(recipe):
            raise ValueError(
                f"{why}: --recipe plain chooses none, --kernels keeps them"
            )
        to_stderr(f"one recipe, raw frames: {why}; --kernels keeps them")
        return None
    shortest = min(map(len, collection.sets))
    found = recipes_of(recipe, collection.frame, shortest, *choice)
    if len(found) > 1:
        to_stderr(f"{plural(len(found), 'recipe')} to choose from: {'; '.join(found)}")
    return found


def splits_of(options, collection, given):
    """[(train, test), ...] and how they came about; given: as in labelled_clips."""
    if options.splits:
        known = collection.names, collection.clip, collection.unread
        pairs = split_by_file(options.splits, *known)
        how = f"splits of {printable(options.splits)}"
    elif isinstance(given, dict):
        known = collection.names, collection.clip
        pairs = split_by_parts(options.labels, given, *known)
        how = f"split of {printable(options.labels.name)}"
    elif given:
        # numbers of the file's sets, of which some may be left out
        whole = clip_names(collection.names, collection.clip)
        number = np.array([int(name.removeprefix("set ")) for name in whole])
        pairs = tuning.check_splits(sets_of_clips(given, number), len(number))
        how = f"splits of {printable(options.data.name)}"
    elif collection.group is not None:
        pairs = split_by_group(collection.label, collection.group)
        how = "one group left out at a time"
    else:
        asked = options.train, options.repeats, options.seed
        pairs = split_at_random(collection.label, *asked, collection.clip)
        share = f"{100 * options.train:g} %"
        if options.train >= 1:
            share = f"{options.train:g} clips a class"
        how = f"random splits, {share} to train"
    for train, _ in pairs:
        check_classes(collection.label[train], f"{how}: a training part: ")
    return pairs, how


def too_large(sets, n_dimensions):
    """Why the Gram matrices of Gaussian kernels are left out by default, or None."""
    if sets is None:
        return f"all frames take more than {MOST_ROWS / 2**30:g} GiB"
    size = 8 * len(sets) ** 2 * n_dimensions * N_GAMMAS
    if size > MOST_GRAMS:
        return f"Gram matrices of {len(sets)} sets take {size / 2**30:.1f} GiB"
    frames = sum(map(len, sets))
    few = frames
    if frames > MANY_FRAMES:
        few = sum(min(len(rows), FEW) for rows in sets)
    pairs = N_GAMMAS * few**2 + 2 * frames**2
    products = pairs / 2 * sets[0].shape[1]
    if products > MOST_PRODUCTS:
        return f"Gram matrices take {products:.1g} multiplications"
    return None
