"""Clips in folders: which files and folders are clips, of which class and group.

A folder holds class folders; a class folder holds clips, or folders of clips, whose
names are then the clips' groups (persons, scenes). A clip is a video, an .npy, .npz or
.mat file, an image file of several frames (.gif, .tif, .webp), or a folder of images of
one frame each; or, where there is none of these, a table: see frames.contents. Folders
of results are passed over.
"""

import os
import re
from collections import Counter
from pathlib import Path, PurePosixPath

from grassmann_classify.clips import Clip
from grassmann_classify.splits import (
    check_names,
    check_parts,
    read_rows,
    rows_by_clip,
)
from grassmann_classify.words import first_of, plural, printable, to_stderr
from grassmann_sc import frames

NOTHING = frames.Contents([], [], [])
MARK = ".grassmann-classify"  # a file in each folder of results
COLUMNS = ("clip", "label", "group", "split")  # of a file of labels
OTHER_NAMES = {
    "clip": ["clip", "filename", "file", "path"],
    "label": ["label", "class"],
}
DEEPEST = 3  # levels of folders in which a hint looks for an example


def contents(folder):
    """frames.contents without folders of results; NOTHING if it cannot be opened."""
    try:
        content = frames.contents(folder)
    except OSError:
        return NOTHING
    folders = [path for path in content.folders if not _is_ours(path)]
    return content._replace(folders=folders)


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
        example = folder in place.parents and _example(place)
        if is_clip or example:
            example = example or is_clip[0]
            raise ValueError(
                f"--out must not lie in a class folder or a clip of {folder}, got {out}: "
                f"{place} holds {example.relative_to(place)}"
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
        images = contents(class_folder).images
        inside = _clips_of_class(class_folder)
        for path, group, source in inside:
            name = printable(path.relative_to(folder).as_posix(), but="")
            clips.append(Clip(name, label, group_of(path, group, group_by), [source]))
        if images and inside:
            notes.append(
                f"{plural(len(images), 'image')} in {label}/, as {images[0].name}, "
                "beside clips"
            )
        elif images and run is None:
            why = frames.Avoidable(
                f"{label}/ holds {plural(len(images), 'image')} directly: the images of a "
                "clip need a folder of their own",
                "run",
                10,
            )
            unusable.append(Clip(label, label, None, [why]))
        elif images:
            for i in range(0, len(images) - run + 1, run):
                group = group_of(images[i], None, group_by)
                name = f"{label}/{i // run}"
                clips.append(Clip(name, label, group, images[i : i + run]))
        elif not inside:
            notes.append(f"{label}/, which holds no clip")
    clips = _without_tables(clips)
    classes = {clip.label for clip in clips}
    if len(classes) < fewest:
        least = "two or more class folders" if fewest > 1 else "a class folder"
        raise ValueError(
            f"{folder}: must hold {least} of clips (videos, folders of images, arrays, "
            f"tables); found {plural(len(clips), 'clip')} of "
            f"{plural(len(classes), 'class')} among {content_in_words(folder)}"
            f"{_hint(folder, unusable)}"
        )
    for text in notes:
        to_stderr(f"passed over: {text}")
    say_alone(clips, "lie in no folder of a group")
    return sorted(clips + unusable, key=lambda clip: clip.label) if unusable else clips


def _hint(folder, unusable):
    """What an error suggests for a folder without class folders."""
    labels = next(filter(_is_of_labels, frames.visible(folder)), None)
    if labels:
        return f"; {labels.name} has labels: --labels {printable(labels)} takes them"
    if unusable:
        what = unusable[0].sources[0].what
        return f"; {what}, or --run 10 cuts them into clips of 10"
    content = contents(folder)
    inner = classes = [path for path in content.folders if _example(path)]
    while len(inner) == 1:
        inner = [path for path in contents(inner[0]).folders if _example(path)]
    if len(inner) > 1 and inner != classes:
        first, second = (path.relative_to(folder) for path in inner[:2])
        return (
            f"; the classes seem to lie deeper, as {first} and {second}: name "
            f"{inner[0].parent}"
        )
    hint = ""
    clips = content.clips + content.images
    if clips and is_table(clips[0]):
        hint = (
            f"; if {clips[0].name} is a recording with a column of labels, --label-column "
            "names that column; if it is a clip, put it into the folder of its class, or "
            "--labels names a file of labels"
        )
    elif clips:
        name = clips[0].name
        hint = (
            f"; clips of all classes lie in one folder, as {name}: put those of each class "
            f"into a folder of its own, as {folder}/CLASS/{name}"
        )
    folder = Path(os.path.abspath(folder))
    beside = [path for path in contents(folder.parent).folders if path != folder]
    example = next(filter(_example, beside), None)
    if example and not classes:
        hint += (
            f"; or, if {folder.name} is a class as {example.name} beside it is, name "
            f"{folder.parent}"
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
    return {"clip", "label"} <= {*_usual_names(header)}


def find_new_clips(path):
    """The clips, without labels, in a folder at any depth, or one clip."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    paths = [*_clips_within(path)]
    is_one = paths == [path]
    if is_one and path.is_dir() and not contents(path).images:
        raise ValueError(
            f"{path}: must hold clips (videos, folders of images, arrays, tables), got "
            f"{content_in_words(path)}"
        )
    above = path.parent if is_one else path
    names = [printable(inner.relative_to(above).as_posix(), but="") for inner in paths]
    return _without_tables(
        [Clip(name, None, None, [inner]) for name, inner in zip(names, paths)]
    )


def _without_tables(clips):
    """The clips; without tables if there are others, which the tables tell something of."""
    tables = [clip for clip in clips if is_table(clip.sources[0])]
    others = [clip for clip in clips if not is_table(clip.sources[0])]
    if not tables or all(_is_empty(clip.sources[0]) for clip in others):
        return clips
    to_stderr(
        f"passed over: {plural(len(tables), 'table')} beside clips of another kind, as "
        f"{tables[0].name}"
    )
    return others


def is_table(source):
    """Is the source of a clip a table?"""
    return isinstance(source, Path) and source.suffix.lower() in frames.TABLES


def _is_empty(source):
    """Is a clip, which is no table, a folder without images?"""
    return isinstance(source, Path) and source.is_dir() and not contents(source).images


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


def find_labelled(folder, path):
    """(Clips in a folder at any depth that a CSV file labels, their parts or None).

    The first line names the columns clip and label, by these or OTHER_NAMES, and if need
    be group and split, in any order. A clip is named by its path within the folder,
    without its ending if that tells which it is. split holds train, test or nothing;
    parts is then {clip: [train, test or nothing]}. Clips without a line, or without a
    label, are passed over.
    """
    names, rows = read_rows(path)
    header = _usual_names(names)
    if not {"clip", "label"} <= {*header} or len({*header}) < len(header):
        raise ValueError(
            f"{path}: the first line must name the columns clip (or filename, file, path) "
            "and label (or class), and if need be group and split, each once, got "
            f"{','.join(names)!r}"
        )
    clips = {clip.name: clip for clip in find_new_clips(folder)}
    clips = {name: clip for name, clip in clips.items() if not _is_same(clip, path)}
    stems = {name: str(PurePosixPath(name).with_suffix("")) for name in clips}
    counts = Counter(stems.values())
    whole = {stem: name for name, stem in stems.items() if counts[stem] == 1}

    def name_of(cell):
        name = printable(PurePosixPath(cell.replace("\\", "/")), but="")
        return name if name in clips else whole.get(name, name)

    by_clip = rows_by_clip(path, header, rows, name_of)
    check_names(path, by_clip, clips)
    labelled = []
    parts = {}
    for name, (line, row) in by_clip.items():
        cells = dict(zip(header, map(str.strip, row)))
        parts[name] = [cells.get("split", "")]
        check_parts(path, line, parts[name])
        if cells["label"]:
            label = printable(cells["label"], but="")
            group = cells.get("group") or None
            labelled.append(clips[name]._replace(label=label, group=group))
    if len(labelled) < len(clips):
        to_stderr(
            f"{plural(len(clips) - len(labelled), 'clip')} of {folder} without a label in "
            f"{path}: passed over"
        )
    others = [name for name in header if name not in COLUMNS]
    if others:
        to_stderr(f"{path}: passed over the columns {', '.join(others)}")
    say_alone(labelled, "have none")
    return labelled, parts if "split" in header else None


def _is_same(clip, path):
    """Is the file of a clip this one?"""
    return clip.sources[0].exists() and clip.sources[0].samefile(path)


def _usual_names(names):
    """The names of columns, with clip and label in place of OTHER_NAMES."""
    names = [*map(str.strip, names)]
    for usual, others in OTHER_NAMES.items():
        places = [k for k, name in enumerate(names) if name.lower() in others]
        if usual not in names and places:
            names[places[0]] = usual
    return names


def say_alone(clips, lacking):
    """Say that groups are passed over, where some clips are lacking one."""
    alone = sum(clip.group is None for clip in clips)
    if 0 < alone < len(clips):
        to_stderr(f"groups are passed over: {alone} of {len(clips)} clips {lacking}")


def _clips_within(path):
    """The paths of clips in a folder, and of folders without any clip."""
    content = contents(path) if path.is_dir() else NOTHING
    if content.images or not any(content):
        yield path
    for entry in sorted(content.clips + content.folders):
        if entry in content.folders:
            yield from _clips_within(entry)
        else:
            yield entry


def _clips_of_class(folder):
    """[(path, its group's name or None, source), ...] of a class folder."""
    try:
        [*folder.iterdir()]
    except OSError:
        return [(folder, None, folder)]
    content = contents(folder)
    clips = [(path, None, path) for path in content.clips]
    for entry in content.folders:
        inner = contents(entry)
        nested = [(path, entry.name, path) for path in inner.clips]
        if inner.images:
            clips.append((entry, entry.name if nested else None, entry))
        else:
            nested += [
                (path, entry.name, _source_of(path))
                for path in inner.folders
                if not any(contents(path)) or _example(path)
            ]
            nested = nested or [(entry, None, entry)]
        clips += nested
    return sorted(clips, key=lambda clip: clip[0])


def _source_of(folder):
    """A folder of images, or the error of a folder whose clips lie too deep."""
    if not any(contents(folder)) or contents(folder).images:
        return folder
    return frames.Avoidable(
        f"{folder}: clips lie too deep, as {_example(folder)}: they belong into the folder "
        "of a class, or of a group within it"
    )


def _example(folder, depth=DEEPEST):
    """A clip in a folder, or in one of its folders down to this depth, or None."""
    content = contents(folder)
    for path in content.clips + content.images:
        return path
    inner = content.folders if depth > 1 else []
    return next(filter(None, (_example(path, depth - 1) for path in inner)), None)


def group_of(path, group, group_by):
    """The group of a clip: its folder's, or what group_by matches in its file's name."""
    if group_by is None:
        return group
    match = re.search(group_by, path.name)
    if not match:
        raise ValueError(
            f"{path}: the name has no group, {group_by!r} does not match it"
        )
    return match.group(1) if match.re.groups else match.group()
