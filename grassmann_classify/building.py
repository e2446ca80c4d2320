"""From clips to subspaces, by threads, one clip each; what was built is kept by content."""

import hashlib
import json
import os
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import numpy as np

import grassmann_sc as core
from grassmann_classify.clips import (
    Built,
    Collection,
    check_any,
    chosen_frames,
    read_options,
    reason_of,
    threaded,
)
from grassmann_classify.headers import check_all, size_in_words, survey
from grassmann_classify.recipes import describe
from grassmann_classify.settings import GIVEN, USUAL_P
from grassmann_classify.words import plural, to_stderr
from grassmann_sc import checks, files, frames, subspaces

VERSION = 3  # of the cache: raise it when the same recipe gives other numbers


def build(clip, recipe, keep_rows=False):
    """The subspaces of a clip, one for each run, as Built.

    keep_rows: with the rows (n_rows, d) of each run: normalised frames or descriptors,
    stacked as stack or arma says (the span of stacked frames models the same dynamics).
    Of subspaces that are given, the first p columns are taken.
    """
    if recipe.features == GIVEN:
        bases = [source.columns[:, : recipe.p] for source in clip.sources]
        return Built(np.stack(bases), None, ())
    parts = [_frames_of(source, recipe) for source in clip.sources]
    rows = [describe(part, recipe) for part in parts]
    rows = resampled(
        np.concatenate(rows) if len(rows) > 1 else rows[0], recipe.resample
    )
    if recipe.single:
        rows = rows.astype(np.float32, copy=False)
    raw = recipe.features == "raw" and recipe.describe is None
    shape = parts[0].shape[1:] if raw else ()
    return built(rows, recipe, keep_rows)._replace(frame=shape)


def built(rows, recipe, keep_rows=False):
    """The subspaces of descriptors (n, d), a row a frame, as Built without frame."""
    runs = _runs(rows, recipe.run, recipe.step)
    n_blocks = recipe.arma or recipe.stack
    spectra = None
    if recipe.arma:
        bases = [
            subspaces.from_video(run, recipe.p, recipe.arma, center=recipe.center)
            for run in runs
        ]
    elif recipe.fewer:
        spectra = padded(
            [
                subspaces.singular_directions(
                    subspaces.block_hankel(run, n_blocks),
                    recipe.p,
                    center=recipe.center,
                )
                for run in runs
            ]
        )
        bases = common_bases(spectra)
    else:
        bases = [
            subspaces.from_image_set(
                subspaces.block_hankel(run, n_blocks), recipe.p, center=recipe.center
            )
            for run in runs
        ]
    kept = [kept_rows(run, recipe) for run in runs] if keep_rows else None
    return Built(np.stack(bases), kept, (), spectra)


def padded(spectra):
    """U (n, d, r) and s (n, r) of [(U (d, r_i), s (r_i,)), ...], filled up by zeros."""
    U, s = zip(*spectra)
    s = checks.joined([one[None, None] for one in s])[:, 0]
    return checks.joined([one[None] for one in U]), s


def common_bases(spectra):
    """The bases (n, d, p) of the p that all of U (n, d, r), s (n, r) have."""
    U, s = spectra
    return U[:, :, : np.count_nonzero(s, axis=1).min()]


def _frames_of(source, recipe):
    if not isinstance(source, np.ndarray):
        return frames.read_frames(source, **read_options(recipe))
    chosen = source[frames.pick(range(len(source)), **chosen_frames(recipe))]
    if recipe.size is None:
        return chosen
    return np.stack([frames.prepared(frame, size=recipe.size) for frame in chosen])


def resampled(rows, n):
    """The rows at n even steps in time, interpolated linearly."""
    if n is None:
        return rows
    whole, share = np.divmod(np.linspace(0, len(rows) - 1, n), 1)
    before = whole.astype(int)
    share = share[:, None]
    return (1 - share) * rows[before] + share * rows[
        np.minimum(before + 1, len(rows) - 1)
    ]


def _runs(rows, length, step):
    """The rows in pieces of this length, without the remainder; None: in one piece.

    step: from the first row of a piece to that of the next; None: the length.
    """
    if length is None:
        return [rows]
    if len(rows) < length:
        raise ValueError(f"a run takes {length} frames, got {len(rows)}")
    firsts = range(0, len(rows) - length + 1, step or length)
    return [rows[i : i + length] for i in firsts]


def kept_rows(rows, recipe):
    """The rows of a run, a row a frame, that a kernel takes: stacked and normalised.

    With an ARMA model they are centred before they are stacked, as from_video does.
    """
    n_blocks = recipe.arma or recipe.stack
    if recipe.arma:
        return subspaces.block_hankel(_normalised(rows, recipe), n_blocks)
    return _normalised(subspaces.block_hankel(rows, n_blocks), recipe)


def _normalised(rows, recipe):
    rows = core.real_array(rows, "rows").copy()
    subspaces.normalise(rows, recipe.center, False)
    return rows


def build_all(
    clips,
    recipe,
    cache=None,
    keep_rows=False,
    strict=False,
    most_rows=np.inf,
    shape=None,
    seen=None,
):
    """A Collection of all clips that can be built, by threads, one clip each.

    strict: the first failure raises. cache: the folder where results are kept, by
    content; what was built before a Ctrl-C stays there; if it cannot be written to, no
    clip is lost. keep_rows: with the rows of all sets, unless they take more than
    most_rows bytes together. shape: d, the least p and the (height, width) of frames
    that all clips must have; None: those of most clips. seen: the Survey of these
    clips; those that it finds unusable are not decoded.
    """
    seen = seen or survey(clips, recipe, shape)
    if strict:
        # advice names options of commands, which this function has not
        check_all(seen._replace(avoidable={}))
    kept = []

    def job(clip):
        try:
            keep = keep_rows and sum(kept) <= most_rows
            built, why = _cached(clip, recipe, cache, keep)
            kept.extend(rows.nbytes for rows in built.rows or [])
            return clip, built, why
        except Exception as error:  # whatever a damaged file raises
            why = reason_of(clip, error)
            if strict:
                raise ValueError(why) from error
            return clip, why, None

    legible = [clip for clip in clips if clip.name not in seen.why]
    check_any(legible, seen.why)
    done = threaded(job, legible, "reading")
    why = seen.why | {
        clip.name: result for clip, result, _ in done if isinstance(result, str)
    }
    built = [(clip, result) for clip, result, _ in done if not isinstance(result, str)]
    not_kept = [error for _, _, error in done if error]
    if not_kept:
        to_stderr(
            f"{plural(len(not_kept), 'clip')} could not be kept in {cache} and would be "
            f"built again: {not_kept[0]}"
        )
    del done
    fit, other = _of_one_shape(built, shape) if built else ([], {})
    if strict and other:
        raise ValueError(next(iter(other.values())))
    why |= other
    unread = {clip.name: why[clip.name] for clip in clips if clip.name in why}
    check_any(fit, unread)
    del built
    return _collect(fit, unread, keep_rows and sum(kept) <= most_rows)


def _of_one_shape(built, shape):
    """(Clips of this shape, {name: why it is left out} of the other clips).

    shape None: d as most clips have it, and p at least the smaller of the median and
    USUAL_P.
    """
    who = "most clips have" if shape is None else "the model has"
    asked = shape is None  # else --p is what the model has
    of_built = [result.bases.shape[1:] for _, result in built]
    if shape is None:
        d = Counter(d for d, _ in of_built).most_common(1)[0][0]
        shape = d, min(USUAL_P, int(np.median([p for _, p in of_built]))), None
    d, least, frame = shape
    fit = []
    other = {}
    for clip, result in built:
        here, p = result.bases.shape[1:]
        if here != d:
            other[clip.name] = f"{clip.name}: has d = {here} and {who} {d}"
        elif frame is not None and result.frame != frame:
            other[clip.name] = (
                f"{clip.name}: has frames of {size_in_words(result.frame)} and {who} "
                f"{size_in_words(frame)}"
            )
        elif p < least:
            other[clip.name] = (
                f"{clip.name}: has frames of rank {p} and {who} {least} or more"
                + f"; --p {p} takes it" * asked
            )
        else:
            fit.append((clip, result))
    return fit, other


def _collect(built, unread, keep_rows):
    """The Collection of what was built; empties the list built to free memory."""
    clips = [clip for clip, _ in built]
    counts = [len(result.bases) for _, result in built]
    first = built[0][1]
    p = min(result.bases.shape[2] for _, result in built)
    of_all = [result.spectra for _, result in built]
    weighted = None not in of_all
    r = max(U.shape[2] for U, _ in of_all) if weighted else p
    del of_all
    end = sum(counts)
    U = np.zeros((end, first.bases.shape[1], r), first.bases.dtype)
    s = np.zeros((end, r), U.dtype)
    sets = []
    while built:  # from the last to the first, so that memory is freed as U fills
        result = built.pop()[1]
        rows = slice(end - len(result.bases), end)
        if weighted:
            of_clip = result.spectra[1].shape[1]
            U[rows, :, :of_clip], s[rows, :of_clip] = result.spectra
        else:
            U[rows] = result.bases[:, :, :p]
        end = rows.start
        sets[:0] = result.rows if keep_rows else []
    X = U[:, :, :p]
    spectra = (U, s) if weighted else None
    each = np.repeat(np.arange(len(clips)), counts)
    names = []
    for clip, k in zip(clips, counts):
        names += [f"{clip.name}#{run}" for run in range(k)] if k > 1 else [clip.name]
    groups = None
    if all(clip.group is not None for clip in clips):
        groups = np.array([str(clip.group) for clip in clips])[each]
    labels = np.array([clip.label for clip in clips])[each]
    return Collection(
        X, sets or None, names, labels, groups, first.frame, each, unread, spectra
    )


def _cached(clip, recipe, cache, keep_rows):
    """(What build gives, if possible from the cache; why it was not kept or None)."""
    if cache is None or recipe.features == GIVEN:
        return build(clip, recipe, keep_rows), None
    path = Path(cache) / (_digest(clip, recipe) + ".npz")
    try:
        with np.load(path, allow_pickle=False) as file:
            spectra = (file["U"], file["s"]) if "s" in file else None
            bases = common_bases(spectra) if spectra else file["bases"]
            rows = [file[f"rows{i}"] for i in range(len(bases))] if keep_rows else None
            frame = tuple(map(int, file["frame"]))
            return Built(bases, rows, frame, spectra), None
    except Exception:  # missing, without rows or damaged: built again
        pass
    result = build(clip, recipe, keep_rows)
    rows = {f"rows{i}": rows for i, rows in enumerate(result.rows or [])}
    shape = np.array(result.frame, int)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        points = {"bases": result.bases}
        if result.spectra:
            points = dict(zip("Us", result.spectra))
        arrays = {**points, "frame": shape, **rows}
        files.write_whole(path, lambda file: np.savez(file, **arrays))
    except OSError as error:
        return result, str(error)
    return result, None


def _digest(clip, recipe):
    """Hash of what a clip's subspace depends on: the files' bytes and the recipe."""
    described = json.dumps([VERSION, asdict(recipe)], default=str)
    digest = hashlib.blake2b(described.encode(), digest_size=16)
    for source in clip.sources:
        if isinstance(source, np.ndarray):
            digest.update(f"{source.dtype}{source.shape}".encode())
            digest.update(np.ascontiguousarray(source).tobytes())
        elif source.is_dir():
            for file in sorted(source.iterdir()):
                if file.is_file():
                    digest.update(
                        os.fsencode(file.name) + f"\0{file.stat().st_size}\0".encode()
                    )
                    digest.update(file.read_bytes())
        else:
            digest.update(source.suffix.lower().encode())
            with open(source, "rb") as file:
                while chunk := file.read(2**22):
                    digest.update(chunk)
    return digest.hexdigest()
