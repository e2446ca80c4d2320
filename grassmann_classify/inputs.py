"""From a command's Recipe, Settings and Paths to clips, sets and splits."""

import contextlib
import time
from dataclasses import asdict, replace

import numpy as np

from grassmann_classify.bank import FEW, N_GAMMAS, Bank
from grassmann_classify.building import build_all, look
from grassmann_classify.clips import Basis, Recipe, videos_of
from grassmann_classify.finding import (
    find_clips,
    find_labelled,
    find_new_clips,
    is_table,
)
from grassmann_classify.npz import holds_sets, load_new_npz, load_npz, with_bases
from grassmann_classify.options import flag_of
from grassmann_classify.recipes import base_of, recipes_of
from grassmann_classify.recordings import (
    find_tables,
    labelled_stretches,
    new_stretches,
    say_columns,
)
from grassmann_classify.settings import GIVEN
from grassmann_classify.splits import (
    check_classes,
    read_split_file,
    sets_of_clips,
    split_at_random,
    split_by_file,
    split_by_group,
    split_by_parts,
)
from grassmann_classify.words import clip_names, plural, printable, to_stderr
from grassmann_sc import tuning

# sizes above which kernels are left out by default
MOST_ROWS = 2**30  # bytes of all rows
MOST_PRODUCTS = 1e12  # multiplications of Gaussian candidates: some minutes
# what clips cannot have that are subspaces already: fields of Recipe and of Settings
OF_FRAMES = "size every evenly resample run axes columns arma".split()
CHOSEN = "features center stack spectrum kernels".split()


def labelled_clips(recipe, settings, paths, needs_splits):
    """(Clips of paths.data, splits of its file or None, Recipe), before any is read.

    needs_splits: are the splits of an .npz file needed? Splits of a file are {clip: parts}
    of --labels, or pairs of clips of the .npz file. The Recipe is as clips need it, which
    may be subspaces already.
    """
    clips, parts, columns = found_clips(
        paths.data, recipe, settings, paths, needs_splits
    )
    if settings.label_column or paths.labels:
        where = paths.labels or paths.data
        check_classes([clip.label for clip in clips], f"{where}: ")
    if paths.splits:
        read_split_file(paths.splits, {clip.name for clip in clips})
    if columns is None and recipe.axes is None:
        columns = say_columns(clips)
    recipe = replace(recipe, columns=columns and tuple(columns))
    return clips, parts, take_given(recipe, settings, clips)


def found_clips(path, recipe, settings, paths, needs_splits=False, fewest=2):
    """(The clips with labels at a path, splits of its file or None, columns of tables).

    needs_splits: as in labelled_clips; fewest: classes that class folders must be.
    """
    parts = None
    columns = recipe.columns
    if settings.label_column:
        labels = settings.label_column, settings.group_column, settings.group_by
        tables = find_tables(path)
        clips, columns = labelled_stretches(tables, recipe, *labels, settings.strict)
    elif paths.labels:
        clips, parts = find_labelled(path, paths.labels)
    elif path.is_dir():
        clips = find_clips(path, settings.group_by, recipe.run, fewest)
    elif is_table(path):
        raise ValueError(
            f"{path} is a table: --label-column names its column of labels"
        )
    else:
        clips, parts = load_npz(path, recipe.key, needs_splits, recipe.axes)
    if not clips:
        raise ValueError(f"{paths.labels or path} must label a clip, got none")
    _say_alike({clip.label for clip in clips})
    return with_bases(clips, recipe.key), parts, columns


def _say_alike(labels):
    """Say which labels, of different texts, are the same number."""
    texts = {}
    for label in sorted(map(str, labels)):
        with contextlib.suppress(ValueError):
            texts.setdefault(float(label), []).append(label)
    for alike in texts.values():
        if len(alike) > 1:
            to_stderr(
                f"labels {' and '.join(alike)} are two classes here, and one number"
            )


def new_clips(path, recipe):
    """Those of a folder, a file of sets, or one clip."""
    if path.is_file() and holds_sets(path, recipe.axes):
        return load_new_npz(path, recipe.key, recipe.axes)
    clips = find_new_clips(path)
    return new_stretches(with_bases(clips, recipe.key), recipe)


def take_given(recipe, settings, clips):
    """The Recipe for clips that are subspaces already, if any is; settings follow."""
    names = [clip.name for clip in clips if isinstance(clip.sources[0], Basis)]
    if not names:
        return recipe
    defaults = asdict(Recipe()) | {"features": ["raw"], "stack": [1]}
    options = {name: getattr(recipe, name) for name in OF_FRAMES}
    options |= {name: getattr(settings, name) for name in CHOSEN}
    for name, value in options.items():
        if value and value != defaults.get(name):
            raise ValueError(
                f"{flag_of(name)} goes with frames, and {names[0]} is a subspace already"
            )
    to_stderr(
        "ready-made subspaces, of which p are the first p columns: left out are recipes, "
        "spectra, and the rows that need frames"
    )
    settings.kernels = False
    return replace(recipe, features=GIVEN)


def read(recipe, settings, paths, out, clips):
    """The Bank of all clips: their Collection by each recipe to choose from."""
    start = time.perf_counter()
    # a file's sets belong together: what is wrong with one is wrong with the file
    several = paths.data.is_dir() or settings.label_column
    strict = settings.strict or not (several or settings.skip)
    by = read_by(recipe, settings)
    headers = look(clips, by, strict, settings.skip)
    most_rows = np.inf if settings.kernels else MOST_ROWS
    collection = build_all(
        clips, by, recipe.features != GIVEN, strict, most_rows, headers=headers
    )
    seconds = time.perf_counter() - start
    recipes = recipes_for(recipe, settings, collection)
    n, d, p = collection.X.shape
    # what recipes to choose from make of frames has other d and p
    what = (
        f" to {p}-dimensional subspaces of R^{d}" if recipes is None else " of frames"
    )
    to_stderr(
        f"{plural(n, 'set')}{what}: {seconds:.1f} s, "
        f"{1000 * seconds / len(clips):.1f} ms a clip"
    )
    return inputs_for(collection, recipe, settings, recipes)


def inputs_for(collection, recipe, settings, recipes=None):
    """The Bank of a Collection, with videos if methods on these may run.

    recipes: {name: Recipe} to choose from; None: that by which the sets were read.
    """
    recipe = recipe if recipes is None else base_of(recipe)
    normalised = recipe.stack > 1 and recipe.center
    videos = None
    if not normalised and (settings.baselines or settings.methods):
        videos = videos_of(collection, recipe.arma or recipe.stack)
    return Bank(collection, recipes, settings, videos)


def choose_kernels(settings, inputs):
    """Leave out the rows in a kernel's space where they take too long, if not asked for."""
    if settings.kernels is not None:
        return
    why = f"all frames take more than {MOST_ROWS / 2**30:g} GiB"
    sets = inputs.collection.sets
    products = np.inf
    if sets:
        few = sum(min(len(rows), FEW) for rows in sets)
        products = N_GAMMAS * few**2 / 2 * sets[0].shape[1]
        why = f"Gram matrices take {products:.1g} multiplications"
    settings.kernels = products <= MOST_PRODUCTS
    if not settings.kernels:
        to_stderr(
            f"left out the rows in a kernel's space: {why}; --kernels asks for them"
        )


def read_by(recipe, settings):
    """The Recipe by which clips are read: from its rows all candidates can be made."""
    return base_of(recipe) if choice_of(recipe, settings) else recipe


def choice_of(recipe, settings):
    """The features, center and stack to choose from, None for all; or no choice: None."""
    features = settings.features
    center = settings.center
    stack = settings.stack
    if recipe.resample:  # descriptors come before it, variants are made behind it
        features = features or ["raw"]
    if recipe.features == GIVEN:
        return None
    if None not in (features, center, stack) and len(features) == len(stack) == 1:
        return None
    if {"lbp_top", "gei"} & {*(features or [])}:  # no row a frame
        return None
    if recipe.resample and features != ["raw"]:
        return None
    return features, center if center is None else [center], stack


def recipes_for(recipe, settings, collection):
    """{name: Recipe} to choose from; None for the one by which the sets were read."""
    choice = choice_of(recipe, settings)
    if choice is None:
        return None
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
    lengths = [*map(len, collection.sets)]
    recipes = recipes_of(recipe, collection.frame, lengths, *choice)
    if len(recipes) > 1:
        words = "; ".join(recipes)
        to_stderr(f"{plural(len(recipes), 'recipe')} to choose from: {words}")
    return recipes


def splits_of(settings, paths, collection, parts):
    """[(train, test), ...] and how they came about; parts: as in labelled_clips."""
    names = collection.names
    if paths.splits:
        pairs = split_by_file(paths.splits, names, collection.clip, collection.unusable)
        how = f"splits of {printable(paths.splits)}"
    elif isinstance(parts, dict):
        pairs = split_by_parts(paths.labels, parts, names, collection.clip)
        how = f"split of {printable(paths.labels.name)}"
    elif parts:
        # numbers of the file's sets, of which some may be left out
        whole = clip_names(names, collection.clip)
        number = np.array([int(name.removeprefix("set ")) for name in whole])
        pairs = tuning.check_splits(sets_of_clips(parts, number), len(number))
        how = f"splits of {printable(paths.data.name)}"
    elif collection.group is not None:
        pairs = split_by_group(collection.label, collection.group)
        how = "one group left out at a time"
    else:
        drawn = settings.train, settings.repeats, settings.seed
        pairs = split_at_random(collection.label, *drawn, collection.clip)
        share = f"{100 * settings.train:g} %"
        if settings.train >= 1:
            share = f"{settings.train:g} clips a class"
        how = f"random splits, {share} to train"
    for train, _ in pairs:
        check_classes(collection.label[train], f"{how}: a training part: ")
    return pairs, how
