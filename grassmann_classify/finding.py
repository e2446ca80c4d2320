"""Clips in folders: which files and folders are clips, of which class and group.

A folder holds class folders; a class folder holds clips, or folders of clips, whose
names are then the clips' groups (persons, scenes). A clip is a video, an .npy, .npz or
.mat file, an image file of several frames (.gif, .tif, .webp), or a folder of images of
one frame each; or, where there is none of these, a table: see frames.contents. Folders
of results, and models, are passed over.
"""

import re
from collections import Counter
from itertools import chain
from pathlib import Path

import numpy as np

from grassmann_classify.clips import Clip
from grassmann_classify.splits import read_parts, read_rows
from grassmann_classify.words import (
    first_of,
    grouped,
    is_unnamed,
    plural,
    printable,
    to_stderr,
)
from grassmann_sc import frames

NOTHING = frames.Contents([], [], [])
MARK = ".grassmann-classify"  # a file in each folder of results
COLUMNS = ("clip", "label", "group", "split")  # of a file of labels
OTHER_NAMES = {"filename": "clip", "file": "clip", "path": "clip", "class": "label"}
DEEPEST = 4  # levels of folders in which a hint looks for an example


# ----------------------------------------------------------------- what folders hold


def contents(folder):
    """frames.contents without results and models; NOTHING if it cannot be opened."""
    try:
        return frames.contents(
            folder, lambda path: _is_ours(path) if path.is_dir() else _is_model(path)
        )
    except OSError:
        return NOTHING


def _is_model(path):
    """Does this file hold a model that was kept?"""
    if path.suffix.lower() != ".npz":
        return False
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return "model" in arrays.files and arrays["format"] == "model"
    except Exception:  # no format, or whatever NumPy raises: a clip that will fail
        return False


def _is_ours(folder):
    """Is this a folder of results, or does it hold nothing but such folders?"""
    try:
        if (folder / MARK).exists():
            return True
        inside = frames.visible(folder)
    except OSError:
        return False
    return bool(inside) and all(path.is_dir() and _is_ours(path) for path in inside)


def _paths_within(path):
    """The paths of clips in a folder, and of folders without any clip."""
    content = contents(path) if path.is_dir() else NOTHING
    if content.images or not any(content):
        yield path
    for entry in sorted(content.clips + content.folders):
        yield from _paths_within(entry)


def _tables_within(path):
    """The paths of the tables in a folder, whatever lies beside them."""
    for entry in sorted(frames.visible(path)) if path.is_dir() else [path]:
        if entry.is_dir():
            yield from [] if _is_ours(entry) else _tables_within(entry)
        elif is_table(entry):
            yield entry


def _example(folder, depth=DEEPEST):
    """A clip in a folder, or in one of its folders down to this depth, or None."""
    content = contents(folder)
    inner = (_example(path, depth - 1) for path in content.folders if depth > 1)
    return next(filter(None, chain(content.clips, content.images, inner)), None)


def is_table(source):
    """Is the source of a clip a table?"""
    is_one = isinstance(source, Path) and source.suffix.lower() in frames.TABLES
    return is_one and not source.is_dir()


def content_in_words(path):
    """What a folder holds, as 40 .csv files, 2 folders; or the name of a file."""
    if not path.is_dir():
        return path.name
    kinds = Counter(
        "folder" if inner.is_dir() else f"{inner.suffix.lower() or 'other'} file"
        for inner in frames.visible(path)
    )
    parts = [plural(n, kind) for kind, n in kinds.most_common()]
    return first_of(parts, ", ") or "nothing"


# --------------------------------------------------------------------- labelled clips


def find_clips(folder, group_by=None, recipe=None, fewest=2):
    """The clips DIR/class/clip and DIR/class/group/clip, sorted by class/clip.

    frames.contents tells what is a clip. Other files are left out; a folder that holds
    no clip where one is expected, or clips too deep, is a clip that will fail.
    group_by: regular expression whose match in a clip's file name (its first group, if
    it has one) is the clip's group. recipe: if it has a window, so many images of a
    class folder that holds nothing else make a clip, in the order of their names, and of
    one group. Names are made printable.
    fewest: ValueError if there are fewer classes.
    """
    folder = Path(folder)
    clips = []
    for class_folder in contents(folder).folders:
        label = printable(class_folder.name, but="")
        images = frames.contents(class_folder).images  # an error if it cannot be opened
        inside = [path for path in _paths_within(class_folder) if path != class_folder]
        for path in inside:
            name = printable(path.relative_to(folder).as_posix(), but="")
            inner = path.relative_to(class_folder).parts
            group = inner[0] if len(inner) > 1 or contents(path).clips else None
            too_deep = frames.Avoidable(
                f"{path}: clips lie too deep: they belong into the folder of a class, or of "
                "a group within it, or --labels names a file of labels"
            )
            source = path if len(inner) < 3 else too_deep
            clips.append(Clip(name, label, group_of(path, group, group_by), [source]))
        if inside and images:
            to_stderr(
                f"passed over: {plural(len(images), 'image')} in {label}/, as "
                f"{images[0].name}, beside clips"
            )
        elif images and recipe and recipe.window:
            clips += _windows_of(images, label, recipe, group_by)
        elif images:
            window = max(1, min(10, len(images) // 2))
            why = (
                f"{label}/ holds {plural(len(images), 'image')} directly: the images of a "
                "clip need a folder of their own, in that of their class"
            )
            clips.append(
                Clip(label, label, None, [frames.Avoidable(why, "window", window)])
            )
        elif not inside:
            to_stderr(f"passed over: {label}/, which holds no clip")
    clips = _checked(clips)
    n_classes = len({clip.label for clip in clips})
    if n_classes < fewest:
        raise ValueError(
            f"{folder}: must hold {plural(fewest, 'class folder')} of clips or more (videos, "
            f"folders of images, arrays, tables); found {plural(len(clips), 'clip')} of "
            f"{plural(n_classes, 'class')} among {content_in_words(folder)}"
            f"{_hint(folder)}"
        )
    say_alone(clips, "lie in no folder of a group")
    return clips


def _windows_of(images, label, recipe, group_by):
    """Clips of a window's images of one group each, in the order of their names."""
    if recipe.evenly or recipe.step:
        flag = "--evenly" if recipe.evenly else "--step"
        raise ValueError(
            f"{flag} takes frames of a clip, and the images in {label}/ are of none: "
            "--window, alone or with --every, makes clips of them"
        )
    window = recipe.window
    clips = []
    groups = grouped((group_of(image, None, group_by), image) for image in images)
    for group, part in sorted(groups.items()):
        part = frames.pick(part, recipe.every)
        if len(part) % window:
            last = plural(len(part) % window, "image")
            whose = "" if group is None else f", {printable(group)}"
            to_stderr(f"left out: the last {last} of {label}/{whose}")
        for i in range(0, len(part) - window + 1, window):
            some = part[i : i + window]
            clips.append(Clip(f"{label}/{len(clips)}", label, group, some))
    return clips


def group_of(path, group, group_by):
    """The group of a clip: its folder's, or what group_by matches in its file's name."""
    if group_by is None:
        return group
    matched = group_matched(path, group_by)
    if not matched:
        raise ValueError(
            f"{path}: the name has no group, --group-by {group_by!r} matches nothing of it"
        )
    return matched


def group_matched(path, group_by):
    """What group_by, or its first group, matches in a file's name; None if nothing."""
    match = re.search(group_by, path.name)
    return match and (match.group(1) if match.re.groups else match.group()) or None


def say_alone(clips, lacking):
    """Say that groups are passed over, where some clips are lacking one."""
    alone = sum(clip.group is None for clip in clips)
    if 0 < alone < len(clips):
        to_stderr(f"groups are passed over: {alone} of {len(clips)} clips {lacking}")


def _hint(folder):
    """What an error suggests for a folder without class folders."""
    labels = next(filter(_is_of_labels, frames.visible(folder)), None)
    if labels:
        return f"; {labels.name} has labels: --labels {printable(labels)} takes them"
    clip = _example(folder)
    if clip is None or len(clip.relative_to(folder).parts) == 2:  # as it should lie
        return ""
    if clip.parent == folder:
        recording = (
            f"if {clip.name} is a recording with a column of labels, --label-column names "
            "that column; "
        ) * is_table(clip)
        return (
            f"; {recording}if {clip.name} is a clip, it belongs into the folder of its "
            f"class: if {folder.name} is one, name the folder above; else --labels may name "
            "a file of labels"
        )
    return (
        f"; a clip of it is {clip.relative_to(folder)}: name the folder above those of "
        f"the classes, which holds CLASS/{clip.name}"
    )


def _is_of_labels(path):
    """Is this a .csv file whose first line names clips and labels?"""
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    try:
        header, _ = read_rows(path)
    except (OSError, ValueError):
        return False
    return {"clip", "label"} <= {*_usual_names(header)}


def find_labelled(folder, path):
    """(Clips in a folder at any depth that a CSV file labels, their Parts or None).

    The first line names the columns clip and label, by these or OTHER_NAMES, and if need
    be group and split, in any order. A clip is named by its path within the folder,
    without its ending if that tells which it is. split holds train, test or nothing.
    Clips without a line, or without a label, are passed over.
    """
    names, rows = read_rows(path)
    header = _usual_names(names)
    if not {"clip", "label"} <= {*header} or len({*header}) < len(header):
        raise ValueError(
            f"{path}: the first line must name the columns clip (or filename, file, path) "
            "and label (or class), and if need be group and split, each once, got "
            f"{','.join(names)!r}"
        )
    clips = {
        clip.name: clip
        for clip in find_new_clips(folder)
        if not (clip.sources[0].exists() and clip.sources[0].samefile(path))
    }
    columns = [name for name in header if name == "split"]
    cells_of, parts = read_parts(
        path,
        header,
        rows,
        columns,
        clips,
        f"split of {printable(path.name)}",
    )
    groups = {name: cells.get("group", "") for name, cells in cells_of.items()}
    labelled = [
        clip._replace(
            label=printable(cells_of[name]["label"], but=""),
            group=None if is_unnamed(groups[name]) else groups[name],
        )
        for name, clip in clips.items()
        if name in cells_of and not is_unnamed(cells_of[name]["label"])
    ]
    if len(labelled) < len(clips):
        to_stderr(
            f"{plural(len(clips) - len(labelled), 'clip')} of {folder} without a label in "
            f"{path}: passed over"
        )
    others = [name for name in header if name not in COLUMNS]
    if others:
        to_stderr(f"{path}: passed over the columns {', '.join(others)}")
    say_alone(labelled, "have none")
    return labelled, parts if columns else None


def _usual_names(names):
    """The names of columns, with clip and label in place of OTHER_NAMES."""
    names = [*map(str.strip, names)]
    usual = {name: name for name in COLUMNS} | OTHER_NAMES
    for k, name in enumerate(names):
        own = usual.get(name.lower(), name)
        names[k] = name if own in names else own
    return names


# -------------------------------------------------------------------------- new clips


def find_new_clips(path, group_by=None, recordings=False):
    """The clips, without labels, in a folder at any depth, or one clip.

    group_by: as find_clips has it; a clip that it does not match has no group.
    recordings: are tables asked for? Then other clips beside them are passed over.
    """
    tables = [*_tables_within(path)] if recordings else []
    paths = tables or [*_paths_within(path)]
    is_single = paths == [path]
    if is_single and path.is_dir() and not contents(path).images:
        raise ValueError(
            f"{path}: must hold clips (videos, folders of images, arrays, tables), got "
            f"{content_in_words(path)}"
        )
    above = path.parent if is_single else path
    clips = []
    for inner in paths:
        name = inner.relative_to(above).as_posix()
        name = inner.resolve().name if is_single and name in (".", "..") else name
        group = group_matched(inner, group_by) if group_by else None
        clips.append(Clip(printable(name, but=""), None, group, [inner]))
    return _checked(clips)


def _checked(clips):
    """The clips; without tables if there are others, which the tables tell something of.

    ValueError if two clips have one name, as of a line feed and of its escape.
    """
    tables = [clip for clip in clips if is_table(clip.sources[0])]
    others = [clip for clip in clips if not is_table(clip.sources[0])]
    if tables and not all(map(_is_empty, others)):
        to_stderr(
            f"passed over: {plural(len(tables), 'table')} beside clips of another kind, "
            f"as {tables[0].name}"
        )
        clips = others
    named = grouped((clip.name, str(clip.sources[0])) for clip in clips)
    for name, sources in named.items():
        if len(sources) > 1:
            raise ValueError(
                f"clips must have names that differ when they are printed, got {name} of "
                f"{sources[0]!r} and of {sources[1]!r}"
            )
    return clips


def _is_empty(clip):
    """Is the source of a clip a folder without images?"""
    source = clip.sources[0]
    return isinstance(source, Path) and source.is_dir() and not contents(source).images
