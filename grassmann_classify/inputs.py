"""From a command's Recipe, Settings and Paths to clips and their Bank."""

import time
import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np

from grassmann_classify.arrays import (
    holds_sets,
    labelled_stretches,
    load_npz,
    new_stretches,
    read_sets,
    say_columns,
    with_bases,
)
from grassmann_classify.bank import FEW, MANY, N_GAMMAS, Bank
from grassmann_classify.building import (
    build_all,
    look,
    size_in_words,
    survey,
)
from grassmann_classify.clips import Basis, middles, videos_of
from grassmann_classify.finding import (
    find_clips,
    find_labelled,
    find_new_clips,
    is_table,
)
from grassmann_classify.recipes import (
    SMALLEST,
    are_coloured,
    base_of,
    recipes_of,
)
from grassmann_classify.settings import READY_MADE, Recipe, flag_of
from grassmann_classify.splits import check_classes, parts_of_file
from grassmann_classify.words import (
    as_number,
    each_once,
    first_of,
    grouped,
    plural,
    to_stderr,
)
from grassmann_sc import frames

# sizes above which kernels are left out by default
MOST_ROWS = 2**30  # bytes of all rows
SAMPLED = 20  # clips that tell how much there is
USUAL_FRAMES = 300  # of a video that does not tell its own
LONGER_SIDE = 96  # pixels, of frames that are too large
MOST_PRODUCTS = 1e12  # multiplications of Gaussian candidates: some minutes
# what clips cannot have that are subspaces already: fields of Recipe and of Settings
FRAMES_ALONE = "size every evenly resample window axes columns arma".split()
CHOSEN = "features center stack spectrum kernels".split()


def labelled_clips(recipe, settings, paths):
    """(Clips of paths.data, or paths.more; splits; Recipe), before any is decoded.

    splits: Parts, or None. The Recipe is as clips need it, which may be subspaces
    already. ValueError unless there are two classes; of paths.more one is enough.
    """
    path = paths.data or paths.more
    parts = None
    if settings.label_column:
        clips, recipe = labelled_stretches(
            path,
            recipe,
            settings.label_column,
            settings.group_column,
            settings.group_by,
            settings.strict,
        )
    elif paths.labels:
        clips, parts = find_labelled(path, paths.labels)
    elif path.is_dir():
        clips = find_clips(path, settings.group_by, recipe, 2 if paths.data else 1)
    elif is_table(path):
        raise ValueError(
            f"{path} is a table: --label-column names its column of labels"
        )
    elif settings.group_by:
        raise ValueError(
            f"--group-by goes with files of clips; in {path} an array, group, holds groups"
        )
    else:
        clips, parts = load_npz(path, recipe.key, recipe.axes)
    where = paths.labels or path
    if not clips:
        raise ValueError(f"{where} must label a clip, got none")
    if paths.data:
        check_classes([clip.label for clip in clips], f"{where}: ")
    if paths.splits:
        if parts:
            to_stderr(f"passed over, for those of --splits: {parts.how}")
        parts = parts_of_file(paths.splits, [clip.name for clip in clips])
    say_alike({clip.label for clip in clips})
    check_clock(clips, recipe)
    clips = with_bases(clips, recipe.key)
    if not settings.label_column and recipe.axes is None:
        recipe = say_columns(clips, recipe)
    if len(clips) > MANY and not recipe.single:
        to_stderr(f"more than {MANY} clips: in single precision, for half the memory")
    recipe = replace(recipe, single=recipe.single or len(clips) > MANY)
    recipe = recipe_of(clips, recipe, settings)
    return clips, parts, with_size(clips, recipe, settings) if paths.data else recipe


def with_size(clips, recipe, settings):
    """The Recipe; with a size where all frames as they are take more than MOST_ROWS.

    As some clips tell, before any is decoded. A size that is told, or one recipe, leaves
    it as it is; --kernels, too, which keeps all frames in memory.
    """
    if recipe.size or settings.kernels or choice_of(recipe, settings) is None:
        return recipe
    sample = [clip for clip in middles(clips, SAMPLED) if not is_table(clip.sources[0])]
    results = survey(sample, recipe).values()
    headers = [getattr(result, "header", result) for result in results]
    headers = [header for header in headers if header and len(header.size) == 2]
    if not headers:
        return recipe
    sizes = Counter(header.size for header in headers).most_common()
    height, width = sizes[0][0]
    usual = recipe.evenly or USUAL_FRAMES / recipe.every
    lengths = [recipe.resample or header.n_frames or usual for header in headers]
    overlap = max(1, (recipe.window or 1) / (recipe.step or recipe.window or 1))
    n_pixels = len(clips) * np.mean(lengths) * overlap * height * width
    total = n_pixels * (4 if recipe.single else 8)  # bytes
    largest = min(1, LONGER_SIDE / max(height, width))
    share = min(largest, np.sqrt(MOST_ROWS / 2 / total))
    if share * min(height, width) < SMALLEST:  # one recipe is tried, whatever the size
        share = largest
    if total <= MOST_ROWS or share == 1:
        return recipe
    size = tuple(max(1, int(share * side)) for side in (height, width))
    to_stderr(
        f"frames of {size_in_words((height, width))}{' and other sizes' * (len(sizes) > 1)} "
        f"take about {total / 2**30:.1f} GiB in all: read at {size_in_words(size)}; --size "
        "tells another, --kernels keeps them"
    )
    return replace(recipe, size=size)


def check_clock(clips, recipe):
    """ValueError if a recipe names a clock, and no clip is of a table."""
    timed = any(clip.edges is not None or is_table(clip.sources[0]) for clip in clips)
    if recipe.clock and not timed:
        raise ValueError(
            f"the clock {recipe.clock} (--clock, or the model's) is a column of tables, "
            f"and {clips[0].name} is none"
        )


def say_alike(labels):
    """Say which labels, of different texts, are the same number, or word in any case."""
    texts = grouped(
        (as_number(unicodedata.normalize("NFC", label.strip()).casefold()), repr(label))
        for label in sorted(map(str, labels))
    )
    for alike in texts.values():
        if len(alike) > 1:
            to_stderr(
                f"labels {' and '.join(alike)} are two classes here, and read alike"
            )


def new_clips(path, recipe, settings):
    """(Clips of a folder, a file of sets, or one clip; the Recipe with their columns).

    Labels of recordings are truth, those of a file of sets are the clips'. Groups are
    told by group_by, where it matches, or by group_column.
    """
    if path.is_file() and holds_sets(path, recipe.key, recipe.axes):
        return read_sets(path, recipe.key, recipe.axes)[1], recipe
    recordings = recipe.columns is not None and recipe.window is not None
    clips = with_bases(find_new_clips(path, settings.group_by, recordings), recipe.key)
    check_clock(clips, recipe)
    if settings.group_by and not any(clip.group for clip in clips):
        to_stderr(f"--group-by {settings.group_by!r} matches no name: no groups")
    names = settings.label_column, settings.group_column
    if recipe.columns is None and recipe.axes is None:
        recipe = say_columns(clips, recipe, [*filter(None, names)])
    return new_stretches(clips, recipe, *names), recipe


def recipe_of(clips, recipe, settings):
    """The Recipe for clips that are subspaces already, if any is; settings follow."""
    names = [clip.name for clip in clips if isinstance(clip.sources[0], Basis)]
    if not names or recipe.features == READY_MADE:
        return recipe
    usual = None, False, ["raw"], [1]
    options = [
        *(
            name
            for name in FRAMES_ALONE
            if getattr(recipe, name) != getattr(Recipe, name)
        ),
        *(name for name in CHOSEN if getattr(settings, name) not in usual),
    ]
    if options:
        raise ValueError(
            f"{flag_of(options[0])} goes with frames, and {names[0]} is a subspace already"
        )
    to_stderr(
        "ready-made subspaces, of which p are the first p columns: left out are recipes, "
        "spectra, and the rows that need frames"
    )
    settings.kernels = False
    return replace(recipe, features=READY_MADE)


def read(recipe, settings, paths, clips):
    """The Bank of all clips: their Collection by each recipe to choose from."""
    start = time.perf_counter()
    collection = collection_of(
        read_by(recipe, settings),
        settings,
        paths,
        clips,
        most_rows=np.inf if settings.kernels else MOST_ROWS,
    )
    seconds = time.perf_counter() - start
    recipes = recipes_for(recipe, settings, collection)
    n, d, p = collection.X.shape
    # what recipes to choose from make of frames has other d and p
    what = " of frames" if recipes else f" to {p}-dimensional subspaces of R^{d}"
    to_stderr(
        f"{plural(n, 'set')}{what}: {seconds:.1f} s, "
        f"{1000 * seconds / len(clips):.1f} ms a clip"
    )
    return inputs_for(collection, recipe, settings, recipes)


def collection_of(recipe, settings, paths, clips, most_rows=0):
    """The Collection of clips of paths.data, which are looked at before one is decoded.

    most_rows: as build_all has it.
    """
    # a file's sets belong together: what is wrong with one is wrong with the file
    several = paths.data.is_dir() or settings.label_column
    strict = settings.strict or not (several or settings.skip)
    try:
        headers = look(clips, recipe, strict, settings.skip)
        collection = build_all(clips, recipe, strict, most_rows, headers=headers)
    except ValueError as error:
        hint = "; --skip goes on without what cannot be used"
        is_ours = strict and not settings.strict and "--skip" not in str(error)
        raise ValueError(f"{error}{hint * is_ours}") from error
    known = {name for name, r in headers.items() if getattr(r, "missing", None)}
    why = {name: why for name, why in collection.unusable.items() if name not in known}
    if why:  # said again at the end, if the run comes so far
        to_stderr(f"{len(why)} cannot be used: {first_of(each_once(why), '; ')}")
    return collection


def inputs_for(collection, recipe, settings, recipes=None):
    """The Bank of a Collection, with videos if methods on these may run.

    recipes: {name: Recipe} to choose from; None: that by which the sets were read.
    """
    recipe = recipe if recipes is None else base_of(recipe)
    videos = None
    normalised = recipe.stack > 1 and recipe.center
    if not normalised and (settings.baselines or settings.methods):
        videos = videos_of(collection, recipe.n_blocks)
    return Bank(collection, recipes, settings, videos)


def choose_kernels(settings, inputs):
    """Leave out the rows in a kernel's space where they take too long, if not asked for."""
    if settings.kernels is not None:
        return
    why = f"all frames take more than {MOST_ROWS / 2**30:g} GiB"
    sets = inputs.collection.sets
    settings.kernels = sets is not None
    if sets:
        few = sum(min(len(rows), FEW) for rows in sets)
        products = N_GAMMAS * few**2 / 2 * sets[0].shape[1]
        settings.kernels = products <= MOST_PRODUCTS
        why = f"Gram matrices take {products:.1g} multiplications"
    if not settings.kernels:
        to_stderr(
            f"left out the rows in a kernel's space: {why}; --kernels asks for them"
        )


def read_by(recipe, settings):
    """The Recipe by which clips are read: from its rows all candidates can be made."""
    choice = choice_of(recipe, settings)
    if choice is None:
        return recipe
    stacked = max(settings.stack or [1]) > 1  # which may have more directions
    features = choice[0] or frames.DESCRIPTORS
    return replace(
        base_of(recipe),
        fewer=recipe.fewer or stacked,
        colour=any(frames.DESCRIPTORS[name].colour for name in features),
    )


def choice_of(recipe, settings):
    """The features, center and stack to choose from, None for all; or no choice: None."""
    center = settings.center
    stack = settings.stack
    # descriptors come before rows are resampled, variants are made behind that
    features = settings.features or (["raw"] if recipe.resample else None)
    kinds = {*(features or [])}
    no_choice = None not in (features, center, stack) and len(kinds) == len(stack) == 1
    behind = recipe.resample and kinds != {"raw"}
    a_row_a_frame = kinds <= {*frames.descriptors_to_choose()}
    if recipe.features == READY_MADE or no_choice or behind or not a_row_a_frame:
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
    in_colours = are_coloured(collection.colours)
    recipes = recipes_of(recipe, collection.frame, lengths, *choice, in_colours)
    if len(recipes) > 1:
        to_stderr(
            f"{plural(len(recipes), 'recipe')} to choose from: {'; '.join(recipes)}"
        )
    return recipes
