"""What a clip is, the sets of all clips, and films of clips in small."""

import contextlib
import hashlib
import json
import os
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import grassmann_sc as core
from grassmann_classify.recipes import are_coloured
from grassmann_classify.words import SILENT, clip_names
from grassmann_sc import files, frames, shared

SIDE = 64  # pixels of a small image
STRIP = 3  # frames of a clip beside each other
BETWEEN = 2  # white pixels between them
FILM = 12  # frames of a clip that moves
DARK = 64  # a picture is stretched whose brightest pixel is below it
VERSION = 6  # of the cache: raise it when the same recipe gives other numbers
MOST_CACHED = 2**32  # bytes in the cache; what was not used for longest goes first

# sources: files, folders or arrays whose frames make one set; or Basis of its sets; or
# one error, if the clip cannot be used. Of stretches of recordings: the recording; edges
# (n_rows + 1,): when rows begin, and the last ends; truth (n_rows,): labels, if any
Clip = namedtuple(
    "Clip",
    "name label group sources recording edges truth",
    defaults=[None] * 3,
)
# columns (d, p): the orthonormal basis of a ready-made subspace
Basis = namedtuple("Basis", "columns")
# The sets of all clips that could be built. clip (n,): the number of each set's clip;
# unusable: {name: why} of the clips that could not be built; sets: their rows, or None;
# frame: (height, width), or () where rows are no frames; spectra: None, or U (n, d, r)
# and s (n, r), all singular directions, of which weighted subspaces are made. Where
# clips were cut: recordings (n,): of which each set is a window; spans (n, 2): when it
# begins and ends, in seconds if recipes tell the rate or the clock, else in rows.
# colours: of each set its frames in small by frames.colour, or None of grey arrays
Collection = namedtuple(
    "Collection",
    "X sets names label group frame clip unusable spectra recordings spans colours",
    defaults=[None, {}, None, None, None, None],
)


def some_sets(collection, chosen):
    """The sets of the chosen indices of a Collection, as if no clip had failed."""
    return collection._replace(
        X=collection.X[chosen],
        sets=collection.sets and [collection.sets[i] for i in chosen],
        colours=collection.colours and [collection.colours[i] for i in chosen],
        names=[collection.names[i] for i in chosen],
        label=collection.label[chosen],
        group=None if collection.group is None else collection.group[chosen],
        clip=collection.clip[chosen],
        unusable={},
        spectra=collection.spectra and [A[chosen] for A in collection.spectra],
        recordings=collection.recordings and [collection.recordings[i] for i in chosen],
        spans=None if collection.spans is None else collection.spans[chosen],
    )


def as_one_type(arrays):
    """The arrays as a file keeps them: of the type that holds the numbers of all."""
    dtype = np.result_type(*{array.dtype for array in arrays})
    return [array.astype(dtype, copy=False) for array in arrays]


def threaded(job, items, what=None):
    """[job(item), ...] by threads, and how far it is on stderr if what is named."""
    wanted = what is not None and not SILENT.get()
    pool = ThreadPoolExecutor(core.thread_count())
    done = []
    try:
        with shared.progress_line(wanted, len(items), what) as move:
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
    films = [
        rows if n_blocks == 1 else np.append(rows[:, :d], rows[-1, d:])
        for rows in collection.sets
    ]
    clips = [film.reshape(-1, *collection.frame) for film in films]
    return clips if min(map(len, clips)) > 2 else None


# ------------------------------------------------------- what a second run finds again


def cache_folder():
    """The user's folder of decoded clips; it may be lost at any time.

    A user without a home, as in a container, gets a path that cannot be made.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.devnull if home[0] == "~" else home) / "grassmann-classify"


def decoded(source, options):
    """frames.read_frames, from the cache where it is kept by the content of the files.

    Arrays, and images that are single files, are read as fast as the cache is.
    """
    at_once = frames.ARRAYS.keys() | frames.IMAGES
    if source.suffix.lower() in at_once and source.is_file():
        return frames.read_frames(source, **options)
    path = cache_folder() / f"{_digest(source, options)}.npz"
    with contextlib.suppress(Exception):  # missing or damaged: decoded again
        with np.load(path, allow_pickle=False) as file:
            film = file["frames"]
        os.utime(path)
        return film
    film = frames.read_frames(source, **options)
    with contextlib.suppress(OSError):  # as of a disk that is full
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_whole(path, lambda file: np.savez(file, frames=film))
    return film


def _digest(source, options):
    """The hash of the bytes of a file, or of the files in a folder, and of options."""
    words = json.dumps([VERSION, source.suffix.lower(), options], default=str)
    digest = hashlib.blake2b(words.encode(), digest_size=16)
    inner = sorted(source.iterdir()) if source.is_dir() else [source]
    for file in filter(Path.is_file, inner):
        if file != source:
            digest.update(os.fsencode(f"{file.name}\0{file.stat().st_size}\0"))
        with open(file, "rb") as content:
            while chunk := content.read(2**22):
                digest.update(chunk)
    return digest.hexdigest()


def forget_the_oldest():
    """Remove what was not used for longest from the cache, beyond MOST_CACHED bytes."""
    with contextlib.suppress(OSError):  # another run removes too
        kept = [(path.stat(), path) for path in cache_folder().glob("*.npz")]
        total = 0
        for state, path in sorted(kept, key=lambda file: -file[0].st_mtime):
            total += state.st_size
            if total > MOST_CACHED:
                path.unlink()


# ------------------------------------------------------------------------------- films


def middles(items, number):
    """At most so many items, each in the middle of one of as many even parts."""
    number = min(number, len(items))
    return [items[(2 * k + 1) * len(items) // (2 * number)] for k in range(number)]


def _film(clip, number, recipe):
    """A few small frames (n, height, width[, 3]) of a clip in uint8; None of vectors.

    As they were before a Recipe brought them to one size, and took them for grey.
    """
    sources = middles(clip.sources, number)
    each = -(-number // len(sources))
    parts = []
    for source in sources:
        if not isinstance(source, np.ndarray):
            few = {"every": 1, "evenly": 2 * each + 1, "size": None, "grey": None}
            source = frames.read_frames(source, **recipe.reading | few)[1::2]
        parts += middles(source, each)
    film = np.stack([frames.prepared(part, None) for part in middles(parts, number)])
    if film.ndim < 3:
        return None
    film = block_means(film, SIDE)
    if not are_coloured([film]):
        film = film.mean(axis=3)
    low = film.min()
    high = film.max()
    if low < 0 or high > 255 or high < DARK:  # numbers of another range than bytes
        film = (film - low) * (255 / (high - low) if high > low else 0)
    return film.round().astype(np.uint8)


def films_of(names, clip, clips, recipe, chosen=None, number=FILM):
    """A few small frames (n, height, width[, 3]) in uint8 of each set, or None.

    None where there is none. names, clip: of all sets of a Collection, which was built
    from clips by a Recipe; chosen: the indices of the sets that are wanted, None for all.
    """
    whose = clip_names(names, clip)
    whose = whose if chosen is None else [whose[i] for i in chosen]

    def film_of(clip):
        try:
            return _film(clip, number, recipe)
        except Exception:  # of a damaged file
            return None

    named = {*whose}
    wanted = [clip for clip in clips if clip.name in named]
    films = dict(zip([clip.name for clip in wanted], threaded(film_of, wanted)))
    return [films.get(name) for name in whose]


def pictures_of(names, clip, clips, recipe, chosen=None):
    """A small image (height, width[, 3]) of each set, a strip of frames; as films_of."""
    return [
        None if film is None else strip(film)
        for film in films_of(names, clip, clips, recipe, chosen, STRIP)
    ]


def strip(film):
    """Of a film (n, height, width[, 3]), STRIP frames beside each other, or as many as it has."""
    gap = np.full((film.shape[1], BETWEEN, *film.shape[3:]), 255, film.dtype)
    parts = [part for frame in middles(film, STRIP) for part in (gap, frame)]
    return np.concatenate(parts[1:], axis=1)


def block_means(film, most):
    """Frames (n, height, width[, 3]) as means of blocks: no side is above most pixels."""
    block = -(-max(film.shape[1:3]) // most)
    h, w = (max(1, side // block) for side in film.shape[1:3])
    film = np.asarray(film, float)[:, : h * block, : w * block]
    blocks = film.reshape(len(film), h, -1, w, film.shape[2] // w, *film.shape[3:])
    return blocks.mean(axis=(2, 4))
