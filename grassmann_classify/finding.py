"""Clips in folders: which files and folders are clips, of which class and group.

A folder holds class folders; a class folder holds clips, or folders of clips, whose
names are then the clips' groups (persons, scenes). A clip is a video, an .npy, .npz or
.mat file, an image file of several frames (.gif, .tif, .webp), or a folder of images of
one frame each; or, where there is none of these, a table: see frames.contents.
"""

import os
import re
from collections import Counter
from pathlib import Path, PurePosixPath

from grassmann_classify.clips import Clip
from grassmann_classify.splits import check_names
from grassmann_classify.spreadsheets import read_rows
from grassmann_classify.words import first_of, plural, printable, to_stderr
from grassmann_sc import frames

MARK = ".grassmann-classify"  # a file in each folder of results
NOTHING = frames.Contents([], [], [])
# of columns of a file of labels
OTHER_NAMES = {
    "clip": ["clip", "filename", "file", "path"],
    "label": ["label", "class"],
}
DEEPEST = 3  # levels of folders in which a hint looks for an example


def contents(folder):
    """frames.contents without folders of results."""
    found = frames.contents(folder)
    return found._replace(
        folders=[path for path in found.folders if not _is_ours(path)]
    )


def is_results(folder):
    """Did a run make this folder for its results?"""
    return os.path.lexists(folder / MARK)


def _is_ours(folder):
    """Is this a folder of results, or does it hold nothing but such folders?"""
    if is_results(folder):
        return True
    try:
        inside = frames.visible(folder)
    except OSError:
        return False
    return bool(inside) and all(path.is_dir() and _is_ours(path) for path in inside)


def check_apart(out, *folders):
    """ValueError if results were to go into a class folder or a clip of these folders."""
    place = Path(out).resolve()
    while not place.is_dir():
        place = place.parent
    if any(map(is_results, [place, *place.parents])):
        return
    for folder in folders:
        folder = folder.resolve()
        is_clip = place == folder and frames.contents(folder).images
        example = folder in place.parents and _example(place, DEEPEST)
        if is_clip or example:
            held = example or is_clip[0]
            raise ValueError(
                f"--out must not lie in a class folder or a clip of {folder}, got {out}: "
                f"{place} holds {held.relative_to(place)}"
            )


def find_clips(folder, group_by=None, run=None, fewest=2):
    """The clips DIR/class/clip and DIR/class/group/clip, sorted by class/clip.

    frames.contents tells what is a clip. Other files are left out; a folder that cannot
    be opened, or holds no clip where one is expected, is a clip that will fail.
    group_by: regular expression whose match in a clip's file name (its first group, if
    it has one) is the clip's group. run: in class folders that hold nothing but images,
    this many in the order of their names make a clip. Names are made printable. fewest:
    ValueError if there are fewer classes.
    """
    folder = Path(folder)
    clips = []
    unusable = []
    notes = []
    for class_folder in contents(folder).folders:
        label = printable(class_folder.name, but="")
        found, images = _clips_of_class(class_folder)
        if images and found:
            notes.append(
                f"{plural(len(images), 'image')} in {label}/, as {images[0].name}, beside "
                "clips"
            )
        elif images and run is None:
            unusable.append(_of_images(folder, label, images))
        elif images:
            clips += [
                Clip(
                    f"{label}/{i // run}",
                    label,
                    group_of(images[i], None, group_by),
                    images[i : i + run],
                )
                for i in range(0, len(images) - run + 1, run)
            ]
        elif not found:
            notes.append(f"{label}/, which holds no clip")
        for path, group, source in found:
            name = printable(path.relative_to(folder).as_posix(), but="")
            clips.append(Clip(name, label, group_of(path, group, group_by), [source]))
    clips = _without_tables(clips)
    classes = {clip.label for clip in clips}
    if len(classes) < fewest:
        least = "two or more class folders" if fewest > 1 else "a class folder"
        raise ValueError(
            f"{folder}: must hold {least} of clips (videos, folders "
            f"of images, arrays, tables); found {plural(len(clips), 'clip')} of "
            f"{plural(len(classes), 'class')} among {held_in(folder)}"
            f"{_hint(folder, classes, unusable)}"
        )
    for text in notes:
        to_stderr(f"passed over: {text}")
    say_alone(clips, "lie in no folder of a group")
    return sorted(clips + unusable, key=lambda clip: clip.label) if unusable else clips


def _of_images(folder, label, images):
    """The Clip, which cannot be used, of images that lie directly in a class folder."""
    why = frames.Avoidable(
        f"{label}/ holds {plural(len(images), 'image')} directly: if {label} is a class, put each "
        "clip into a folder of its own, or --run 10 cuts them into clips of 10; if it is a clip, "
        f"put it into the folder of its class, as {printable(folder)}/CLASS/{label}",
        "run",
        10,
    )
    return Clip(label, label, None, [why])


def _hint(folder, classes, unusable):
    """What an error suggests for a folder without class folders."""
    content = contents(folder)
    content = content._replace(
        folders=[path for path in content.folders if _example(path, DEEPEST)]
    )
    here = content.clips + content.images
    labels = next(filter(_is_of_labels, frames.visible(folder)), None)
    hint = ""
    if labels:
        hint = f"; {labels.name} has labels: --labels {printable(labels)} takes them"
    elif here and is_table(here[0]):
        hint = (
            f"; if {here[0].name} is a recording with a column of labels, --label-column "
            "names that column; if it is a clip, put it into the folder of its class, or "
            "--labels names a file of labels"
        )
    elif here:
        hint = (
            f"; clips of all classes lie in one folder, as {here[0].name}: put those of each "
            f"class into a folder of its own, as {folder}/CLASS/{here[0].name}"
        )
    elif classes:
        inner = content.folders
        while len(inner) == 1:
            (alone,) = inner
            inner = [
                path for path in _readable(alone).folders if _example(path, DEEPEST)
            ]
        if len(inner) > 1 and inner[0].parent != folder:
            hint = (
                f"; the classes seem to lie deeper, as {inner[0].relative_to(folder)} and "
                f"{inner[1].relative_to(folder)}: name {inner[0].parent}"
            )
    elif unusable:
        hint = f"; {unusable[0].sources[0].what}"
    if content.folders or labels:
        return hint
    above = Path(os.path.abspath(folder)).parent
    beside = [path for path in _readable(above).folders if not path.samefile(folder)]
    class_beside = next((path for path in beside if _example(path, 2)), None)
    if class_beside:
        hint += (
            f"; or, if {Path(folder).resolve().name} is a class as {class_beside.name} beside "
            f"it is, name {above}"
        )
    return hint


def _is_of_labels(path):
    """Is this a .csv file whose first line names clips and labels?"""
    if path.suffix.lower() != ".csv" or not path.is_file():
        return False
    try:
        header, _ = read_rows(path)
    except (OSError, ValueError):
        return False
    return {"clip", "label"} <= {*_meant(header)}


def find_new_clips(path):
    """The clips, without labels, in a folder at any depth, or one clip."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    found = list(_clips_within(path))
    if found == [path] and path.is_dir() and not contents(path).images:
        raise ValueError(
            f"{path}: must hold clips (videos, folders of images, arrays, tables), got "
            f"{held_in(path)}"
        )
    above = path.parent if found == [path] else path
    clips = [
        Clip(printable(clip.relative_to(above).as_posix(), but=""), None, None, [clip])
        for clip in found
    ]
    return _without_tables(clips)


def _without_tables(clips):
    """The clips; without tables if there are others, of which these tell something."""
    others = [clip for clip in clips if not is_table(clip.sources[0])]
    if all(_is_empty(clip.sources[0]) for clip in others):
        return clips
    tables = [clip.name for clip in clips if is_table(clip.sources[0])]
    if tables:
        to_stderr(
            f"passed over: {plural(len(tables), 'table')} beside clips of another kind, "
            f"as {tables[0]}"
        )
    return others


def is_table(source):
    """Is the source of a clip a table?"""
    return isinstance(source, Path) and source.suffix.lower() in frames.TABLES


def held_in(path):
    """What a folder holds, in words, as 40 .csv files, 2 folders; or the file itself."""
    if not path.is_dir():
        return path.name
    kinds = Counter(
        "folder" if one.is_dir() else f"{one.suffix.lower() or 'other'} file"
        for one in frames.visible(path)
    )
    held = [plural(n, kind) for kind, n in kinds.most_common()]
    return first_of(held, ", ") or "nothing"


def _is_empty(source):
    """Is a clip, which is no table, a folder without images?"""
    return isinstance(source, Path) and source.is_dir() and not _readable(source).images


def find_labelled(folder, path):
    """(Clips in a folder at any depth that a CSV file labels, their parts or None).

    The first line names the columns clip and label, by these or OTHER_NAMES, and if need
    be group and split, in any order. A clip is named by its path within the folder,
    without its ending if that tells which it is. split holds train, test or nothing;
    parts is then {clip: [train, test or nothing]}. Clips without a line, or without a
    label, are passed over.
    """
    names, rows = read_rows(path)
    header = _meant(names)
    columns = ("clip", "label", "group", "split")
    if {"clip", "label"} - {*header} or len({*header}) < len(header):
        raise ValueError(
            f"{path}: the first line must name the columns clip (or filename, file, path) "
            "and label (or class), and if need be group and split, each once, got "
            f"{','.join(names)!r}"
        )
    there = {
        clip.name: clip
        for clip in find_new_clips(folder)
        if not (clip.sources[0].exists() and clip.sources[0].samefile(path))
    }
    short = {name: str(PurePosixPath(name).with_suffix("")) for name in there}
    counts = Counter(short.values())
    named = {stem: name for name, stem in short.items() if counts[stem] == 1}
    named |= {name: name for name in there}
    lines = {}
    found = []
    parts = {}
    for line, row in rows:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: line {line} must have {plural(len(header), 'column')}, got "
                f"{len(row)}"
            )
        held = dict(zip(header, map(str.strip, row)))
        if not held["clip"]:
            raise ValueError(f"{path}: line {line} must name a clip, got none")
        name = printable(PurePosixPath(held["clip"].replace("\\", "/")), but="")
        name = named.get(name, name)
        if name in lines:
            raise ValueError(
                f"{path}: must name a clip once, got {name} in lines {lines[name]} "
                f"and {line}"
            )
        lines[name] = line
        parts[name] = [held.get("split", "")]
        if not {*parts[name]} <= {"train", "test", ""}:
            raise ValueError(
                f"{path}: split must be train, test or nothing, got "
                f"{held['split']!r} in line {line}"
            )
        if name in there and held["label"]:
            label = printable(held["label"], but="")
            group = held.get("group") or None
            found.append(there[name]._replace(label=label, group=group))
    check_names(path, lines, there.keys(), set())
    if len(found) < len(there):
        to_stderr(
            f"{plural(len(there) - len(found), 'clip')} of {folder} without a label in {path}: "
            "passed over"
        )
    others = [name for name in header if name not in columns]
    if others:
        to_stderr(f"{path}: passed over the columns {', '.join(others)}")
    say_alone(found, "have none")
    return found, parts if "split" in header else None


def _meant(names):
    """The names of columns, with clip and label in place of other names for these."""
    names = [*map(str.strip, names)]
    for name, others in OTHER_NAMES.items():
        found = [one for one in names if one.lower() in others]
        if name not in names and found:
            names[names.index(found[0])] = name
    return names


def say_alone(clips, lacking):
    """Say that groups are passed over, where some clips are lacking one."""
    alone = sum(clip.group is None for clip in clips)
    if 0 < alone < len(clips):
        to_stderr(f"groups are passed over: {alone} of {len(clips)} clips {lacking}")


def _clips_within(path):
    """The paths of clips in a folder, and of folders without any clip."""
    if path.is_file():
        yield path
        return
    content = _readable(path)
    if content.images or not any(content):
        yield path
    for entry in sorted(content.clips + content.folders):
        if entry in content.folders:
            yield from _clips_within(entry)
        else:
            yield entry


def _clips_of_class(folder):
    """([(path, its group's name or None, source), ...], images) of a class folder."""
    content = _readable(folder, None)
    if content is None:
        return [(folder, None, folder)], []
    found = [(path, None, path) for path in content.clips]
    for entry in content.folders:
        inner = _readable(entry)
        nested = [(path, entry.name, path) for path in inner.clips]
        if inner.images:
            found.append((entry, entry.name if inner.clips else None, entry))
        else:
            nested += [
                (path, entry.name, _source_of(path))
                for path in inner.folders
                if not any(_readable(path)) or _example(path, DEEPEST)
            ]
        found += nested or [(entry, None, entry)] * (not inner.images)
    return sorted(found, key=lambda clip: clip[0]), content.images


def _source_of(folder):
    """A folder of images, or the error of a folder whose clips lie too deep."""
    if not any(_readable(folder)) or _readable(folder).images:
        return folder
    return frames.Avoidable(
        f"{folder}: clips lie too deep, as "
        f"{_example(folder, DEEPEST)}: they belong into the folder of a class, "
        "or of a group within it"
    )


def _example(folder, depth):
    """A clip in a folder, or in one of its folders down to this depth, or None."""
    content = _readable(folder)
    for path in content.clips + content.images:
        return path
    inner = content.folders if depth > 1 else []
    return next(filter(None, (_example(path, depth - 1) for path in inner)), None)


def _readable(folder, otherwise=NOTHING):
    """The contents of a folder, or otherwise if it cannot be opened."""
    try:
        return contents(folder)
    except OSError:
        return otherwise


def group_of(path, group, group_by):
    """The group of a clip: that given, or what group_by finds in its file's name."""
    if group_by is None:
        return group
    try:
        match = re.search(group_by, path.name)
    except re.error as error:
        raise ValueError(
            f"group_by must be a regular expression, got {group_by!r}: {error}"
        ) from None
    if not match:
        raise ValueError(
            f"{path}: the name has no group, {group_by!r} does not match it"
        )
    return match.group(1) if match.re.groups else match.group()
