"""What a clip is, how it is to become subspaces, and what became of all clips."""

import importlib.util
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

import grassmann_sc as core
from grassmann_classify.settings import MOST_P, axes_named
from grassmann_classify.words import clip_names
from grassmann_sc import frames, shared

SIDE = 64  # pixels of a small image
STRIP = 3  # frames of a clip beside each other
BETWEEN = 2  # white pixels between them
FILM = 12  # frames of a clip that moves
DARK = 64  # a picture is stretched whose brightest pixel is below it

# sources: files, folders or arrays whose frames make one set; or Basis of its sets; or
# one error, if the clip cannot be used
Clip = namedtuple("Clip", "name label group sources")
# columns (d, p): the orthonormal basis of a subspace that is given, not made from frames
Basis = namedtuple("Basis", "columns")
# bases (k, d, p): the subspaces of a clip's windows; rows: their k arrays of rows, or
# None; frame: (height, width) or (); spectra: None, or U (k, d, r) and s (k, r), all
# singular directions of the windows, of which weighted subspaces are made
Built = namedtuple("Built", "bases rows frame spectra", defaults=[None])
# The sets of all clips that could be built. clip (n,): the number of each set's clip;
# unusable: {name: why} of the clips that could not be built; spectra: None, or U (n, d, r)
# and s (n, r) as Built has them
Collection = namedtuple(
    "Collection",
    "X sets names label group frame clip unusable spectra",
    defaults=[None, {}, None],
)


@dataclass(frozen=True)
class Recipe:
    """How a clip becomes subspaces; the defaults take raw pixels of all frames.

    p None: as many directions as the frames allow, up to MOST_P.
    """

    p: int | None = None
    features: str = "raw"
    feature_options: dict = field(default_factory=dict)
    # in place of features: a function of frames (n_frames, height, width) or
    # (n_frames, d) that makes rows (n, d); it is called by one thread at a time
    describe: Callable | None = None
    size: tuple | None = None
    key: str | None = None  # of the array in files that hold several
    columns: tuple[str, ...] | None = None  # of tables, None: all of numbers
    axes: str | None = None  # of arrays, as n,channels,time or channels,time
    every: int = 1
    evenly: int | None = None
    resample: int | None = None  # the rows, linearly in time
    run: int | None = None  # number of rows in a set, of which a clip may give several
    step: int | None = None  # from one set's first row to the next's, None: run
    stack: int = 1  # blocks of the Hankel matrix
    # blocks of the observability matrix of an ARMA model with p states; 0: no model
    arma: int = 0
    center: bool = False
    single: bool = False  # float32 bases
    fewer: bool = False  # take the largest dimension that the frames allow, at most p

    def __post_init__(self):
        if self.p is None:
            object.__setattr__(self, "p", MOST_P)
            object.__setattr__(self, "fewer", True)


def some_sets(collection, chosen):
    """The sets of the chosen indices of a Collection, as if no clip had failed."""
    groups = None if collection.group is None else collection.group[chosen]
    return collection._replace(
        X=collection.X[chosen],
        sets=collection.sets and [collection.sets[i] for i in chosen],
        names=[collection.names[i] for i in chosen],
        label=collection.label[chosen],
        group=groups,
        clip=collection.clip[chosen],
        unusable={},
        spectra=collection.spectra and [A[chosen] for A in collection.spectra],
    )


def progress_bar(n_clips, what=None):
    """shared.progress_bar over so many clips, if what is named and tqdm is installed."""
    shown = what is not None and importlib.util.find_spec("tqdm") is not None
    return shared.progress_bar(shown, total=n_clips, desc=what, unit="clip")


def threaded(job, items, what=None):
    """[job(item), ...] by threads, with a progress_bar if what is named."""
    pool = ThreadPoolExecutor(core.thread_count())
    try:
        done = []
        with progress_bar(len(items), what) as move:
            for result in pool.map(job, items):
                done.append(result)
                move(1)
    finally:
        pool.shutdown(cancel_futures=True)
    return done


def videos_of(collection, n_blocks=1):
    """The clips (n_frames, height, width) of a Collection of raw frames, or None.

    Each row of its sets holds n_blocks frames. None where rows are no frames, or where
    a clip has fewer than three.
    """
    if collection.sets is None or len(collection.frame) != 2:
        return None
    d = collection.frame[0] * collection.frame[1]
    if any(rows.shape[1] != n_blocks * d for rows in collection.sets):
        return None
    clips = []
    for rows in collection.sets:
        frames = np.concatenate([rows[:, :d], rows[-1, d:].reshape(-1, d)])
        clips.append(frames.reshape(-1, *collection.frame))
    return clips if min(map(len, clips)) > 2 else None


def chosen_frames(recipe):
    """The options of frames.read_frames by which a recipe chooses frames."""
    return dict(every=recipe.every, evenly=recipe.evenly)


def axes_of_clip(recipe):
    """The axes of a clip's array as it is stored, those behind time as they come."""
    names = axes_named(recipe.axes) if recipe.axes else ["time"]
    return [name for name in names if name != "n"]


def read_options(recipe):
    """The options of frames.read_frames and read_shape that a recipe has."""
    return dict(
        size=recipe.size,
        key=recipe.key,
        columns=recipe.columns,
        frame_axis=axes_of_clip(recipe).index("time"),
        **chosen_frames(recipe),
    )


def frames_of(clip, number, key=None):
    """At most so many frames (n, height, width) of a clip as stored, at even steps.

    ValueError if frames are vectors.
    """
    sources = clip.sources
    several = len(sources) >= number
    places = (2 * np.arange(number) + 1) * len(sources) // (2 * number)
    read = []
    for place in places if several else [len(sources) // 2]:
        source = sources[place]
        if not isinstance(source, np.ndarray):
            source = frames.read_frames(
                source, evenly=3 if several else number, key=key
            )
        if source.ndim != 3:
            raise ValueError(f"{clip.name} is made of vectors, not of images")
        few = 1 if several else min(number, len(source))
        at = (2 * np.arange(few) + 1) * len(source) // (2 * few)
        read.append(source[at])
    return np.concatenate(read)


def films_of(names, clip, clips, key=None, chosen=None, number=FILM):
    """A few small frames (n, height, width) in uint8 of each set, or None.

    None where there is none. names, clip: of all sets of a Collection, which was built
    from clips; chosen: the indices of the sets that are wanted, None for all.
    """
    whose = clip_names(names, clip)
    whose = whose if chosen is None else [whose[i] for i in chosen]

    def film_of(clip):
        try:
            return _small(frames_of(clip, number, key))
        except Exception:  # vectors, or a damaged file
            return None

    wanted = [clip for clip in clips if clip.name in {*whose}]
    films = dict(zip([clip.name for clip in wanted], threaded(film_of, wanted)))
    return [films.get(name) for name in whose]


def pictures_of(names, clip, clips, key=None, chosen=None):
    """A small image (height, width) of each set, a strip of frames; as films_of."""
    films = films_of(names, clip, clips, key, chosen, STRIP)
    return [None if film is None else strip(film) for film in films]


def strip(film):
    """Of a film (n, height, width), STRIP frames beside each other, or as many as it has."""
    few = min(STRIP, len(film))
    at = (2 * np.arange(few) + 1) * len(film) // (2 * few)
    parts = [film[at[0]]]
    for place in at[1:]:
        gap = np.full((film.shape[1], BETWEEN), 255, film.dtype)
        parts += [gap, film[place]]
    return np.concatenate(parts, axis=1)


def block_means(film, most):
    """Frames (n, height, width) as means of blocks: no side has more than most pixels."""
    block = -(-max(film.shape[1:]) // most)
    h, w = (max(1, side // block) for side in film.shape[1:])
    film = np.asarray(film, float)[:, : h * block, : w * block]
    return film.reshape(len(film), h, -1, w, film.shape[2] // w).mean(axis=(2, 4))


def _small(film):
    """The film in uint8, means of blocks so that no side has more than SIDE pixels."""
    film = block_means(film, SIDE)
    low = film.min()
    high = film.max()
    if low < 0 or high > 255 or high < DARK:  # numbers of another range than bytes
        film = (film - low) * (255 / (high - low) if high > low else 0)
    return film.round().astype(np.uint8)
