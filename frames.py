"""Files to frames, and frames to descriptors.

read_frames reads a clip from images, a video, an array or a table, with a frame a row:
(n_frames, height, width). describe turns the frames into the rows of an array (n, d),
whose span is the clip's subspace: raw pixels, HOG, LBP, LBP-TOP or the gait energy
image, as in the experiments of Harandi et al. 2015. Videos need the extra "video", HOG
and LBP scikit-image, the extra "image".
"""

from __future__ import annotations

import contextlib
import csv
import functools
import itertools
import math
import os
import re
import warnings
import zlib
from collections import namedtuple
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "read_frames",
    "describe",
    "raw",
    "thumbnail",
    "colour",
    "chromaticity",
    "hog",
    "lbp",
    "lbp_top",
    "gait_energy_image",
]

STACKS = {".gif", ".tif", ".tiff", ".webp"}  # images that may hold several frames
IMAGES = {
    ".bmp",
    ".gif",
    ".jpeg",
    ".jpg",
    ".pbm",
    ".pgm",
    ".png",
    ".ppm",
    ".tif",
    ".tiff",
    ".webp",
}
TABLES = {".csv", ".tsv"}
# cells of a table where a number is missing
MISSING = set("nan,na,n/a,null,none,?,".split(","))
# names of columns that are no sensor's
CLOCK = r"(unix)?(time|timestamps?|date|datetime)([ _(\[]+(s|sec|ms|us|ns)[)\]]*)?"
EXIF_ORIENTATION = 0x0112
TURNS = {  # of its values, Pillow's names
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
PEEKED = 200  # rows of a table that tell which of its columns hold numbers
VIDEOS = {
    ".avi",
    ".flv",
    ".m4v",
    ".mkv",
    ".mov",
    ".mp4",
    ".mpeg",
    ".mpg",
    ".ogv",
    ".ts",
    ".webm",
    ".wmv",
}
LUMA = [0.299, 0.587, 0.114]  # shares of red, green and blue in grey
# a video with less of the frames that it announces; some containers miscount a few
CUT_OFF = 0.9
MOST_POINTS = 24  # of an LBP, the largest number in its source
MATLAB_HEADER = 128  # bytes
MATLAB_MATRIX = 14  # an element of elements
MATLAB_PACKED = 15  # and the type of a compressed one
MATLAB_NUMBERS = 6  # the least class of arrays of numbers
MATLAB_TYPES = {*range(1, 8), 9, 12, 13, MATLAB_MATRIX, MATLAB_PACKED, 16, 17, 18}
PATTERN_BITS = 8  # neighbours of a pixel in LBP-TOP, as in its source


# Of a folder: files that are clips, image files of one frame in natural order, folders
Contents = namedtuple("Contents", "clips images folders")
# Of a table, a row a time step: numbers (n, d) of the chosen columns, NaN where they are
# missing; names of these columns; [text (n,), ...] of others; [(name, first entry), ...]
# of columns that were not chosen because their first entry is no number
Table = namedtuple("Table", "numbers names texts dropped")


class Avoidable(ValueError):
    """An error that another argument would avoid, or another layout of the files.

    what: is wrong, without advice
    argument, value: None, or the name of the argument, "size" or "key", and a value of
        it
    """

    def __init__(self, what, argument=None, value=None):
        advice = "" if argument is None else f"; {argument}={value} would read it"
        super().__init__(what + advice)
        self.what = what
        self.argument = argument
        self.value = value


# -------------------------------------------------------------------- frames from files


def read_frames(
    path: str | os.PathLike,
    *,
    grey: bool | None = True,
    size: tuple[int, int] | None = None,
    every: int = 1,
    at_most: int | None = None,
    evenly: int | None = None,
    key: str | None = None,
    frame_axis: int = 0,
    columns: Sequence[str] | None = None,
) -> np.ndarray:
    """Frames of a clip: (n_frames, height, width), or (n_frames, d) of vectors.

    Photographs and videos stand upright, as they say that the camera was held.
    path: a folder of images of one frame each, in the natural order of their names (2
        before 10); an image file of one or more frames; an .npy, .npz or .mat file with
        an array (n_frames, d), (n_frames, height, width[, 3 or 4]); a .csv or .tsv
        table with a row a time step; anything else is decoded as a video (needs PyAV:
        pip install av)
    grey: luma 0.299 R + 0.587 G + 0.114 B; if False, colour frames stay (n_frames,
        height, width, 3); None: all are in colour, grey ones with three equal colours
    size: (height, width) to resize images to, bilinear with antialiasing; bytes stay
        bytes, other types become float32
    every, at_most, evenly: every k-th frame, of these the first n or n at even steps
        from the first to the last, which repeat frames where there are fewer
    key, frame_axis: the name of the array in an .npz or .mat file that holds several;
        its axis of frames (MATLAB's height x width x n_frames: -1)
    columns: of a table, by their names in the first line or by their numbers from 1;
        None: all of numbers, but clocks, as "time", and those that a first line leaves
        without a name

    FileNotFoundError, ImportError where a reader is missing; ValueError that names the
    file, and the frame if there is one, if it is empty, cannot be read or decoded, or
    its frames differ in size; if a folder holds clips beside its images; if feature
    vectors are to be resized.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(os.path.join(folder, "clip.npy"), np.zeros((12, 60, 80), np.uint8))
    ...     frames.read_frames(os.path.join(folder, "clip.npy"), size=(30, 40), every=3).shape
    (4, 30, 40)
    """
    path = _existing(path)
    size = None if size is None else _check_size(size)
    choose = _chooser(every, at_most, evenly)
    grey = None if grey is None else core.check_flag(grey, "grey")
    prepare = functools.partial(prepared, grey=grey, size=size, name=path)
    if path.is_dir():
        files = choose(_images_of(path))
        frames = [prepare(next(_image_frames(file, i))) for i, file in enumerate(files)]
        return _stacked(path, frames, files)
    if path.suffix.lower() in ARRAYS.keys() | TABLES:
        frames = _frames_of_array(path, key, columns, frame_axis, choose, prepare)
        return _stacked(path, frames)
    is_image = path.suffix.lower() in IMAGES
    decode = functools.partial(_video_frames, path, grey)
    if is_image:
        decode = functools.partial(_image_frames, path)
    if evenly is None:
        # what is passed over is not prepared, and no frame is kept as it was
        frames = (
            None if i % every else prepare(frame) for i, frame in enumerate(decode())
        )
        return _stacked(path, choose(frames))
    n_frames = len(_image_shapes(path)) if is_image else _video_shape(path)[0]
    return _stacked(path, [*map(prepare, _evenly(decode, n_frames or 0, choose))])


def read_shape(
    path,
    size=None,
    every=1,
    at_most=None,
    evenly=None,
    key=None,
    frame_axis=0,
    columns=None,
):
    """The shape of what read_frames returns with these arguments, from headers alone.

    Colours count as grey. Nothing but a video's first frame is decoded, so that a file
    may turn out to be damaged later; tables are read. The number of frames of a video is
    what the file announces, None if it announces none. Errors are those of read_frames.
    """
    path = _existing(path)
    size = None if size is None else _check_size(size)
    choose = _chooser(every, at_most, evenly)
    if path.is_dir():
        files = choose(_images_of(path))
        shapes = [
            shape
            for file in (files if size is None else files[:1])
            for shape in _image_shapes(file)[:1]
        ]
        _check_one_size(path, shapes, files)
        n_frames = len(files)
        shape = shapes[0]
    elif path.suffix.lower() in ARRAYS.keys() | TABLES:
        shape, dtype = _array_header(path, key, columns)
        axis = _axis_of_frames(path, shape, dtype, frame_axis)
        shape = [*shape]
        n_frames = shape.pop(axis)
        n_frames = len(choose(range(n_frames)))
        shape = shape[:2]
    elif path.suffix.lower() in IMAGES:
        shapes = choose(_image_shapes(path))
        _check_one_size(path, shapes if size is None else [])
        n_frames = len(shapes)
        shape = shapes[0]
    else:
        n_frames, *shape = _video_shape(path, upright=True)
        n_frames = n_frames and len(choose(range(n_frames)))
    if n_frames == 0:
        raise ValueError(f"{path}: holds no frame")
    if size is not None:
        _check_image(shape, path)
        shape = size
    return n_frames, *shape


def contents(folder, passed_over=lambda path: False):
    """What a folder holds, as Contents: the one rule of what is a clip.

    A video, an array, and an image file of several frames are clips. Tables are clips
    where nothing else is: beside clips or images they tell something about these. Image
    files of one frame are not: all of a folder together are the frames of one clip.
    Their headers tell them apart; a .gif or .tif without a legible one is taken for what
    the others in the folder are. A folder that holds images beside clips is no clip.
    Hidden files, links that lead back, and what passed_over(path) is true of do not
    count.
    """
    clips = Contents([], [], [])
    doubtful = []
    tables = []
    for path in itertools.filterfalse(passed_over, visible(folder)):
        suffix = path.suffix.lower()
        if path.is_dir():
            clips.folders.append(path)
        elif suffix in ARRAYS.keys() | VIDEOS:
            clips.clips.append(path)
        elif suffix in TABLES:
            tables.append(path)
        elif suffix in STACKS:
            several = _holds_several(path)
            {None: doubtful, True: clips.clips, False: clips.images}[several].append(
                path
            )
        elif suffix in IMAGES:
            clips.images.append(path)
    beside = clips.images if clips.images and not clips.clips else clips.clips
    beside.extend(doubtful)
    if not clips.clips and not clips.images:
        clips.clips.extend(tables)
    return Contents(
        sorted(clips.clips),
        sorted(clips.images, key=lambda file: shared.natural_order(file.name)),
        clips.folders,
    )


def visible(folder):
    """The content of a folder, sorted by name.

    Hidden files are left out, and so are links to a folder that the path leads through.
    """
    folder = Path(folder)
    here = Path(os.path.abspath(folder))  # we did not come through parents of ".."
    # resolve fails for a link to itself
    through = [Path(os.path.realpath(way)) for way in (folder, here, *here.parents)]

    def leads_back(path):
        target = os.path.realpath(path)
        return any(way.is_relative_to(target) for way in through)

    return sorted(
        path
        for path in folder.iterdir()
        if not path.name.startswith(".")
        and not (path.is_symlink() and leads_back(path))
    )


def _existing(path):
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise TypeError(f"path must be a path, got {path!r}")
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    return _plain(path)


def _plain(path):
    """The path, unless it is one of a pipe or a device, which would keep us waiting."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ValueError(f"{path}: must be a plain file or a folder, got another kind")
    return path


def _chooser(every, at_most, evenly):
    """The function pick with these arguments, checked."""
    if at_most is not None and evenly is not None:
        raise ValueError(
            f"give at_most or evenly, not both, got {at_most} and {evenly}"
        )
    return functools.partial(
        pick,
        every=core.check_integer(every, "every", 1),
        at_most=at_most
        if at_most is None
        else core.check_integer(at_most, "at_most", 1),
        evenly=evenly if evenly is None else core.check_integer(evenly, "evenly", 1),
    )


def pick(items, every=1, at_most=None, evenly=None):
    """Every k-th item, of these the first at_most, or so many at even steps.

    In a list; of a range, however long, in one if it can be.
    """
    if isinstance(items, range):
        items = items[::every][:at_most]
    else:
        items = list(itertools.islice(itertools.islice(items, 0, None, every), at_most))
    if evenly is None or not items:
        return items
    return [
        items[i] for i in np.linspace(0, len(items) - 1, evenly).round().astype(int)
    ]


def _evenly(decode, n_frames, choose):
    """The frames of decode() that are chosen of all, in a list; no others are held.

    n_frames: how many a header announces. If there are others, they are decoded again.
    """
    places = choose(range(n_frames))
    kept = dict.fromkeys(places)
    count = 0
    for i, frame in enumerate(decode()):
        count += 1
        if i in kept:
            kept[i] = frame
    if count != n_frames:
        return _evenly(decode, count, choose)
    return [kept[i] for i in places]


def _stacked(path, frames, files=None):
    """The frames, of these files or all of one, as an array."""
    if not frames:
        raise ValueError(f"{path}: holds no frame")
    _check_one_size(path, [frame.shape for frame in frames], files)
    kinds = [*dict.fromkeys(str(frame.dtype) for frame in frames)]
    if len(kinds) > 1:
        raise ValueError(f"{path}: frames must have one type, got {', '.join(kinds)}")
    return np.stack(frames)


def _check_one_size(path, shapes, files=None):
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            is_size = shape[:2] != shapes[0][:2]  # else one is grey, the other colour
            raise Avoidable(
                f"{files[i] if files else path}: frames must have one size, frame 0 "
                f"has {shapes[0]} and frame {i} {shape}",
                *(("size", "(height, width)") if is_size else ("grey", True)),
            )


# ---------------------------------------------------------------------------- images


def _images_of(folder):
    """The images of a folder whose frames are one clip."""
    clips = contents(folder)
    if not clips.images:
        raise ValueError(
            f"{folder}: holds no image of one frame ({', '.join(sorted(IMAGES))})"
        )
    if clips.clips:
        raise Avoidable(
            f"{folder}: must hold clips or images of one frame, not both, got "
            f"{clips.images[0].name} beside {clips.clips[0].name}; the images of a "
            "clip need a folder of their own"
        )
    return clips.images


def _holds_several(file):
    """Does an image file hold several frames? None if its header cannot be read."""
    try:
        state = _plain(file).stat()
    except (OSError, ValueError):
        return None
    return _held_several(file, state.st_mtime_ns, state.st_size)


@functools.lru_cache(2**16)
def _held_several(file, time, size):
    """The same of a file that was last changed at this time.

    It is kept, as a folder is looked at repeatedly.
    """
    from PIL import Image  # matplotlib brings it

    try:
        with Image.open(file) as image:
            return getattr(image, "is_animated", False)
    except Exception:  # whatever a decoder raises on a stranger's file
        return None


def _image_shapes(file):
    """[(height, width), ...] of the frames of an image file."""
    from PIL import Image

    sizes = []
    try:
        with Image.open(_plain(file)) as image:
            lies = _orientation(image) >= 5  # its height is stored as its width
            for i in range(getattr(image, "n_frames", 1)):
                if image.format == "TIFF":  # whose frames have sizes of their own
                    image.seek(i)
                sizes.append(image.size if lies else image.size[::-1])
    except Exception as error:
        raise _no_image(file, len(sizes), error) from error
    return sizes


def _image_frames(file, first=0):
    """The frames of an image file, upright as viewers show them.

    first: what to call the first one.
    """
    from PIL import Image, ImageSequence

    i = first
    try:
        # not by its name: of a TIFF Pillow would map the bytes, and turn the map wrongly
        with open(_plain(file), "rb") as content, Image.open(content) as image:
            turn = TURNS.get(_orientation(image))
            for page in ImageSequence.Iterator(image):
                page = _plain_mode(page)
                if turn:
                    page = page.transpose(Image.Transpose[turn])
                yield np.array(page)
                i += 1
    except Exception as error:
        raise _no_image(file, i, error) from error


def _orientation(image):
    """How a photograph says that the camera was held: 1 to 8, as EXIF has it."""
    # Pillow turns TIFF itself; other formats tell it at their end, if at all
    if image.format not in ("JPEG", "MPO", "WEBP"):
        return 1
    number = image.getexif().get(EXIF_ORIENTATION)
    return number if number in TURNS else 1


def _no_image(file, i, error):
    return ValueError(
        f"{file}: frame {i} cannot be read as an image: "
        f"{str(error) or type(error).__name__}"
    )


def _plain_mode(page):
    """An image of grey levels of any depth as it is, any other as bytes, grey or RGB."""
    if page.mode in ("L", "F") or page.mode.startswith("I"):
        return page
    return page.convert("L" if page.mode in ("1", "LA", "La") else "RGB")


# ---------------------------------------------------------------------------- videos


def _video_shape(path, upright=False):
    """(n_frames, height, width) of a video, from its header.

    n_frames is None if the header does not have it. upright: of frames as they are
    shown, which the first one tells.
    """
    if path.stat().st_size == 0:
        raise ValueError(f"{path}: the file is empty")
    av = shared.import_extra("av", "videos need PyAV", "av")
    try:
        with open(path, "rb") as file, av.open(file) as container:
            if container.format.name == "tty":
                raise ValueError("FFmpeg would draw a text")
            shapes = [
                (
                    stream.frames or None,
                    stream.codec_context.height,
                    stream.codec_context.width,
                )
                for stream in container.streams.video
                if stream.codec_context  # None of what FFmpeg cannot decode
            ]
            if upright and shapes:
                with contextlib.suppress(Exception):  # which reading the frames says
                    frame = next(container.decode(video=0))
                    n_frames, *sides = shapes[0]
                    shown = _upright(np.broadcast_to(0, sides), _display_matrix(frame))
                    shapes[0] = n_frames, *shown.shape
    except (EOFError, ValueError, av.error.FFmpegError) as error:
        raise ValueError(f"{path}: not a video, or cut short") from error
    if not shapes:
        raise ValueError(f"{path}: not a video, or cut short: no video stream")
    if 0 in shapes[0]:
        raise ValueError(f"{path}: not a video, or cut short: its frames have no size")
    return shapes[0]


def _display_matrix(frame):
    """[[a, b], [c, d]]: a video is shown at x' = a x + c y, y' = b x + d y."""
    try:
        data = frame.side_data["DISPLAYMATRIX"]
    except KeyError:
        return np.eye(2)
    return np.frombuffer(data, np.int32).reshape(3, 3)[:2, :2].astype(float)


def _upright(image, matrix):
    """The image (height, width, ...) of a video's frame as its display matrix says."""
    (a, b), (c, d) = matrix
    if abs(b * c) > abs(a * d):  # it lies on its side
        image = image.swapaxes(0, 1)
        a = c
        d = b
    return image[:: -1 if d < 0 else 1, :: -1 if a < 0 else 1]


def _video_frames(path, grey):
    _video_shape(path)  # says what is wrong with a header
    import av
    from av.video.reformatter import VideoReformatter

    i = 0
    # its threads end with it; those of PyAV's own live on, and stop a later fork
    reformatter = VideoReformatter()
    try:
        # a name such as 12:30.mp4 would be a protocol
        with open(path, "rb") as file, av.open(file) as container:
            for frame in container.decode(video=0):
                image = reformatter.reformat(frame, format="gray" if grey else "rgb24")
                if i == 0:
                    matrix = _display_matrix(frame)  # that of all frames
                yield _upright(image.to_ndarray(), matrix)
                i += 1
            # 0 where the container does not say
            announced = container.streams.video[0].frames
        if i < CUT_OFF * announced:
            raise EOFError(f"the file is cut off, it announces {announced} frames")
    except Exception as error:  # whatever a decoder raises on a stranger's file
        raise ValueError(
            f"{path}: frame {i} cannot be decoded as a video: {error}"
        ) from error


# ---------------------------------------------------------------------------- arrays


def _frames_of_array(path, key, columns, frame_axis, choose, prepare):
    if path.suffix.lower() in TABLES:
        frames = read_table(path, columns).numbers
    else:
        frames = _by_reader(path, key, "array")
    axis = _axis_of_frames(path, frames.shape, frames.dtype, frame_axis)
    frames = np.moveaxis(frames, axis, 0)
    return [prepare(np.array(frames[i])) for i in choose(range(len(frames)))]


def _axis_of_frames(path, shape, dtype, frame_axis):
    """The axis of frames, counted from 0; ValueError unless the others are a frame's."""
    n = len(shape)
    if dtype.kind in "biuf" and n in (2, 3, 4):
        axis = core.check_integer(frame_axis, "frame_axis", -n, n - 1) % n
        if n < 4 or shape[2 if axis == 3 else 3] in (1, 3, 4):
            return axis
    raise ValueError(
        f"{path}: frames must be real numbers (n_frames, d), (n_frames, height, width) or "
        f"(n_frames, height, width, 1, 3 or 4), got {dtype} {shape}"
    )


@contextlib.contextmanager
def _unreadable(path):
    """Name the file in whatever a reader raises.

    Also in a MemoryError, where a huge shape is declared.
    """
    try:
        yield
    except Avoidable as error:
        raise Avoidable(f"{path}: {error.what}", error.argument, error.value) from error
    except Exception as error:
        raise ValueError(
            f"{path}: cannot be read: {str(error) or type(error).__name__}"
        ) from error


def _array_header(path, key, columns):
    """The shape and dtype of that array, of which an .npz file's header alone is read."""
    if path.suffix.lower() in TABLES:
        numbers = read_table(path, columns).numbers
        return numbers.shape, numbers.dtype
    return _by_reader(path, key, "header")


def _by_reader(path, key, what):
    """The array or the header of a file, of ARRAYS."""
    read = getattr(ARRAYS[path.suffix.lower()], what)
    with _unreadable(path):
        try:
            return read(path, key)
        except SystemError:  # of the parser of Python 3.11, beside that of a thread
            return read(path, key)


def _plain_array(path, key):
    return np.lib.format.open_memmap(path, mode="r")


def _plain_header(path, key):
    array = _plain_array(path, key)
    return array.shape, array.dtype


def _packed_array(path, key):
    with np.load(path, allow_pickle=False) as file:
        return np.asarray(file[_array_name(file.files, key)])


def _packed_header(path, key):
    """The shape and the dtype of an array of an .npz file."""
    with np.load(path, allow_pickle=False) as file:
        name = _array_name(file.files, key)
        with file.zip.open(
            name if name in file.zip.namelist() else f"{name}.npy"
        ) as member:
            version, _ = np.lib.format.read_magic(member)
            header = f"read_array_header_{min(version, 2)}_0"
            shape, _, dtype = getattr(np.lib.format, header)(member)
    return shape, dtype


def _matlab_array(path, key):
    import scipy.io

    name, _ = _matlab_variable(path, key)
    return np.asarray(scipy.io.loadmat(path, variable_names=[name])[name])


def _matlab_header(path, key):
    _, shape = _matlab_variable(path, key)
    return shape, np.dtype(float)  # reading tells another dtype


def _matlab_variable(path, key):
    """The name and the shape of that variable of a checked .mat file."""
    import scipy.io

    _check_elements(path)
    try:
        variables = {name: rest for name, *rest in scipy.io.whosmat(path)}
    except NotImplementedError:
        raise ValueError(
            "files of MATLAB 7.3 (HDF5) are not supported, save it with -v7"
        ) from None
    name = _array_name([*variables], key)
    shape, kind = variables[name]
    if not re.fullmatch("double|single|logical|u?int[0-9]+", kind):
        # of damaged cells SciPy reads as many as their header says
        raise ValueError(f"{name} must be an array of numbers, got {kind}")
    return name, shape


# The one place where files that hold an array get their reader: what is a clip, reading
# and the look at headers take it from here. array(path, key): the array of this name if
# there are several; header(path, key): its shape and dtype
Reader = namedtuple("Reader", "array header")
ARRAYS = {
    ".npy": Reader(_plain_array, _plain_header),
    ".npz": Reader(_packed_array, _packed_header),
    ".mat": Reader(_matlab_array, _matlab_header),
}


def _check_elements(path):
    """Check that elements of a MATLAB file (version 5) have known types and lengths.

    Each must end within its parent, and an array of numbers holds no other arrays.
    SciPy's reader takes types and lengths as they come, and others end the process.
    """
    data = path.read_bytes()
    order = {b"IM": "little", b"MI": "big"}.get(data[126:128])
    if order is None or 1 not in (data[124], data[125]):
        return  # another version, whose reader errs on its own

    def walk(data, pad, within=0):
        at = 0
        while at < len(data):
            kind = int.from_bytes(data[at : at + 4], order)
            size = int.from_bytes(data[at + 4 : at + 8], order)
            start = at + 8
            # a small element, whose data follow its type and size at once
            if kind >> 16:
                size = kind >> 16
                kind &= 0xFFFF
                start = at + 4
            misplaced = within >= MATLAB_NUMBERS and kind >= MATLAB_MATRIX
            if kind not in MATLAB_TYPES or misplaced or start + size > len(data):
                raise ValueError("it is damaged: an element is of no type or too long")
            at = start + size
            if kind == MATLAB_PACKED:
                walk(zlib.decompress(data[start:at]), 1)
            elif kind == MATLAB_MATRIX:
                flags = int.from_bytes(data[start + 8 : start + 12], order)
                walk(data[start:at], 8, flags & 0xFF)
            at += -at % pad

    walk(memoryview(data)[MATLAB_HEADER:], 1)


def _array_name(names, key):
    """The name of the one array, or of that which key names, "frames" unless given."""
    if key is None and len(names) == 1:
        return names[0]
    name = "frames" if key is None else key
    if name in names:
        return name
    columns = ", ".join(names) or "none"
    if key is not None or not names:
        raise ValueError(f"key must name one of its arrays, {columns}; got {key!r}")
    raise Avoidable(
        f"it holds several arrays, {columns}, and none named frames",
        "key",
        repr(names[0]),
    )


def prepared(frame, grey=True, size=None, name=""):
    """A frame (height, width[, channels]) or (d,), resized; grey: as read_frames has it.

    ValueError that begins with the name, if there is one, if a vector is to be resized.
    """
    if size is not None:
        _check_image(frame.shape, name)
    if frame.ndim == 3 and frame.shape[2] in (1, 4):
        frame = frame[..., 0] if frame.shape[2] == 1 else frame[..., :3]
    if grey and frame.ndim == 3:
        luma = frame @ np.array(LUMA)
        frame = (luma if frame.dtype.kind == "f" else np.rint(luma)).astype(frame.dtype)
    if grey is None and frame.ndim == 2:
        frame = np.repeat(frame[..., None], 3, axis=2)
    if size is None:
        return frame
    frame = frame if frame.dtype == np.uint8 else frame.astype(np.float32)
    if frame.ndim == 2 or (frame.dtype == np.uint8 and frame.shape[2] == 3):
        return _resized(frame, size)
    return np.stack(
        [_resized(channel, size) for channel in np.moveaxis(frame, 2, 0)], axis=-1
    )


def _check_image(shape, name):
    """Can a frame of this shape be resized?"""
    if len(shape) == 1:
        raise ValueError(
            f"{name}{': ' if name else ''}frames must be images to be resized, got "
            f"vectors of length {shape[0]}"
        )


def _resized(frame, size):
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(frame))
    return np.array(image.resize(size[::-1], Image.Resampling.BILINEAR))


# ----------------------------------------------------------------------------- tables


def read_table(path, columns=None, texts=(), gaps=False):
    """The Table of a .csv or .tsv file in UTF-8, a row a time step.

    Columns are separated by tabs if its first line has one, else by ; if it has one,
    else by commas; where they are not separated by commas, 1,5 is a number. The first
    line names the columns if none of its cells is a number, if these are whole and one of
    its names stands above numbers alone, or if its cells are 0, 1, 2, ..., as pandas
    writes them. The two cells 0, 1 above nothing but 0 and 1 are a row.

    columns, texts: by name or number from 1, or as "2-5"; columns None: all whose first
        entry is a number, but texts, clocks, as "time" or "timestamp (ms)", and those
        that a first line leaves without a name
    gaps: may numbers be missing?

    ValueError names the file, the line and the column.
    """
    path = _existing(path)
    if columns is not None:
        shared.check_sequence(columns, "columns", "names or numbers")
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            return _table_of(path, file, columns, texts, gaps)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: must be a table in UTF-8, got {error}") from None


def _table_of(path, file, columns, texts, gaps):
    first = next((line for line in file if line.strip()), "")
    file.seek(0)
    bare = re.sub(r'"[^"]*"', "", first)  # a name in quotes may hold any mark
    between = next((mark for mark in "\t;" if mark in bare), ",")
    reader = csv.reader(file, delimiter=between)
    rows = (
        (reader.line_num, row)
        for row in reader
        if len(row) > 1 or "".join(row).strip()  # no blank line
    )
    peeked = [*itertools.islice(rows, PEEKED)]
    if not peeked:
        raise ValueError(f"{path}: holds no row")
    number = functools.partial(_number, decimal="." if between == "," else ",")
    names, has_header = _names_of([row for _, row in peeked], number)
    peeked = peeked[has_header:]
    if not peeked:
        raise ValueError(f"{path}: holds no row below its first line")
    text_places = _places_of(path, texts, names)
    dropped = []
    if columns is None:
        firsts = _first_entries(peeked, names, number, text_places)
        chosen = [j for j, entry in firsts.items() if not isinstance(entry, str)]
        dropped = [(names[j], firsts[j]) for j in firsts if j not in chosen]
    else:
        chosen = _places_of(path, columns, names)
        both = [names[j] for j in chosen if j in text_places]
        if both:
            raise ValueError(
                f"{path}: column {both[0]} must not be a number and a text, as a label, "
                "at once"
            )
    if not chosen:
        begin = ", ".join(repr(cell) for _, cell in dropped)
        raise ValueError(
            f"{path}: must hold a column of numbers, got the columns {', '.join(names)}"
            + f", which begin with {begin} below their names" * bool(begin)
        )
    cells_of_text = [[] for _ in text_places]

    def cells():
        for line, row in itertools.chain(peeked, rows):
            if len(row) != len(names):
                raise ValueError(
                    f"{path}: line {line} must have as many columns as the first, "
                    f"{len(names)}, got {len(row)}"
                )
            for text, j in zip(cells_of_text, text_places):
                text.append(row[j].strip())
            for j in chosen:
                value = number(row[j])
                if value is None or not gaps and not math.isfinite(value):
                    raise ValueError(
                        f"{path}: line {line}: column {names[j]} must hold a finite "
                        f"number, got {row[j].strip()!r}"
                    )
                yield value

    numbers = np.fromiter(cells(), float).reshape(-1, len(chosen))
    taken = [names[j] if names.count(names[j]) == 1 else str(j + 1) for j in chosen]
    return Table(numbers, taken, [*map(np.array, cells_of_text)], dropped)


def _names_of(rows, number):
    """(Names of the columns, are they those of a header?) by the cells of first rows."""
    names = [cell.strip() for cell in rows[0]]
    names[0] = names[0].lstrip("# ")  # as np.savetxt writes it
    filled = [name for name in names if name]
    values = [*map(number, filled)]  # None: a text; Na may be sodium
    numbers = [value for value in values if value is not None and value == value]
    below = [
        [cell.strip() for row in rows[1:] for cell in row[j : j + 1] if cell.strip()]
        for j in range(len(names))
    ]
    whole = all(
        name.isdecimal()
        for name, value in zip(filled, values)
        if value is not None and value == value
    )
    name_above_numbers = whole and any(
        name[:1].isalpha()
        and number(name) is None
        and None not in (entries := [*map(number, cells)])
        and any(entry == entry for entry in entries)
        for name, cells in zip(names, below)
    )
    counted = len(filled) > 1 and filled == [*map(str, range(len(filled)))]
    if len(names) == 2 and {*itertools.chain(*below)} <= {"0", "1"}:
        counted = False  # as likely a row
    if counted or name_above_numbers or None in values and not numbers:
        return names, True
    return [str(j + 1) for j in range(len(names))], False


def _first_entries(rows, names, number, texts):
    """{column: its first entry that is not missing, a number or a text}.

    It is "" where the first PEEKED rows tell of none. Columns without a name, a clock's
    and those of these texts are left out.
    """
    entries = {}
    for j, name in enumerate(names):
        if not name or j in texts or re.fullmatch(CLOCK, name, re.IGNORECASE):
            continue
        for cell in (row[j].strip() for _, row in rows if j < len(row)):
            value = number(cell)
            if value is None or value == value:
                entries[j] = cell if value is None else value
                break
        else:
            if len(rows) + 1 >= PEEKED:  # it may hold numbers further down
                entries[j] = ""
    return entries


def _places_of(path, columns, names):
    """The places of columns that are named, or numbered from 1, in a table."""
    places = []
    for column in map(str, columns):
        ends = [int(end) for end in column.split("-") if end.isdecimal()]
        if names.count(column) == 1:
            places.append(names.index(column))
        elif (
            column not in names
            and "-".join(map(str, ends)) == column
            and ends
            and 1 <= ends[0] <= ends[-1] <= len(names)
            and len(ends) < 3
        ):
            places += range(ends[0] - 1, ends[-1])
        else:
            raise ValueError(
                f"{path}: must have one column {column}, got the columns "
                f"{', '.join(names)}"
            )
    if len({*places}) < len({*map(str, columns)}):  # one by its name and its number
        raise ValueError(
            f"{path}: columns must differ from each other, got "
            f"{', '.join(map(str, columns))} of {', '.join(names)}"
        )
    return places


def _number(cell, decimal):
    """The number in a cell, NaN if it is missing, None if it is text."""
    if "_" in cell:  # a name, which Python's float may take for a number
        return None
    try:
        return float(cell.replace(decimal, "."))
    except ValueError:
        return math.nan if cell.strip().lower() in MISSING else None


# -------------------------------------------------------------------------- descriptors


def describe(
    frames: ArrayLike, kind: str | Callable = "raw", **options: Any
) -> np.ndarray:
    """Descriptors (n, d) of the frames (n_frames, height, width).

    float64, but for raw pixels, which keep their type.

    kind: a name of DESCRIPTORS: "raw", "thumbnail", "hog", "lbp" (a row a frame),
        "lbp_top" (a row a sub-video), "gei" (one row), ...; or a callable kind(frames,
        **options) that returns such an array
    options: of the function of that name below; ValueError and TypeError name what
        does not fit

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> walk = np.zeros((5, 16, 12))
    >>> frames.describe(walk).shape, frames.describe(walk, "gei", align=False).shape
    ((5, 192), (1, 192))
    """
    if not callable(kind) and not (isinstance(kind, str) and kind in DESCRIPTORS):
        raise ValueError(
            f"kind must be one of {', '.join(DESCRIPTORS)} or a callable, got {kind!r}"
        )
    descriptor = kind if callable(kind) else DESCRIPTORS[kind].function
    rows = np.asarray(descriptor(frames, **options))
    if rows.ndim != 2 or rows.size == 0 or rows.dtype.kind not in "biuf":
        raise ValueError(
            f"kind must return real numbers (n, d), {kind!r} returned {rows.dtype} "
            f"{rows.shape}"
        )
    return rows


def raw(frames: ArrayLike) -> np.ndarray:
    """The pixels of each frame (n_frames, ...) in a row, (n_frames, d).

    ValueError unless frames are real, finite and of one shape.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> frames.raw(np.arange(8).reshape(2, 2, 2)).tolist()
    [[0, 1, 2, 3], [4, 5, 6, 7]]
    """
    return shared.check_frames(frames, "frames")


def thumbnail(frames: ArrayLike, *, size: tuple[int, int] = (8, 8)) -> np.ndarray:
    """Return the mean of the pixels in each cell of a grid over each frame, (n_frames, d).

    Cells are in reading order, d = height width of the size, or of the frame where that
    is less; their sides differ by at most a pixel. It is what a camera far away would
    see: enough for what moves and how, little of what it looks like. float32 stays
    float32, other numbers become float64.

    ValueError for frames of other axes, or a size that is not positive.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> frames.thumbnail(np.arange(16).reshape(1, 4, 4), size=(2, 2)).tolist()
    [[2.5, 4.5, 10.5, 12.5]]
    """
    frames = shared.check_clip(frames, "frames")
    kind = shared.float_type(frames)
    for axis, cells in enumerate(_check_size(size), start=1):
        side = frames.shape[axis]
        edges = np.linspace(0, side, min(cells, side) + 1).astype(int)
        counts = np.diff(edges).astype(kind).reshape((-1, 1)[: 3 - axis])
        frames = np.add.reduceat(frames, edges[:-1], axis=axis, dtype=kind) / counts
    return frames.reshape(len(frames), -1)


def colour(frames: ArrayLike) -> np.ndarray:
    """Return the red, green and blue of each pixel in a row, (n_frames, 3 height width).

    frames (n_frames, height, width, 3), or (n_frames, height, width) of grey, whose
    three colours are equal; few pixels tell enough, as of read_frames(path, grey=False,
    size=(16, 16)).

    ValueError for frames of other axes, or where they are not finite.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> frames.colour([[[[255, 0, 0], [0, 0, 255]]]]).tolist()
    [[255, 0, 0, 0, 0, 255]]
    """
    frames = np.asarray(frames)
    if frames.ndim == 3:
        frames = np.repeat(frames[..., None], 3, axis=3)
    if frames.ndim != 4 or frames.shape[3] != 3:
        raise ValueError(
            "frames must have shape (n_frames, height, width, 3) or (n_frames, height, "
            f"width), got {frames.shape}"
        )
    return shared.check_frames(frames.reshape(*frames.shape[:2], -1), "frames")


def chromaticity(frames: ArrayLike, *, bins: int = 16) -> np.ndarray:
    """Return how often each chromaticity occurs in each frame, (n_frames, (bins + 1)²).

    A pixel's is (R, G) / (R + G + B), which neither its brightness nor its place
    changes; of black it is that of grey. A pixel counts for the four nodes of a grid of
    bins x bins cells around it, by linear interpolation. Rows are square roots of the
    counts, whose inner product is the Bhattacharyya coefficient of two frames, but for
    their number of pixels.

    frames: as colour has them, of numbers that are not negative; else ValueError, as for
    bins that are not positive.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> red, dark_red = [[[[200, 0, 0]]]], [[[[90, 0, 0]]]]
    >>> frames.chromaticity(red, bins=1).tolist(), frames.chromaticity(dark_red, bins=1).tolist()
    ([[0.0, 0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0, 0.0]])
    """
    bins = core.check_integer(bins, "bins", 1)
    pixels = colour(frames)
    if pixels.min() < 0:
        raise ValueError(f"frames must not be negative, got {pixels.min()}")
    n = len(pixels)
    pixels = pixels.reshape(n, -1, 3).astype(float)
    total = pixels.sum(axis=2, keepdims=True)
    share = np.divide(pixels, total, out=np.full_like(pixels, 1 / 3), where=total > 0)
    first = np.minimum((bins * share).astype(int), bins - 1)
    behind = bins * share - first
    row = np.arange(n)[:, None] * (bins + 1) ** 2
    counts = np.zeros(n * (bins + 1) ** 2)
    for i, j in itertools.product((0, 1), repeat=2):
        node = row + (first[..., 0] + i) * (bins + 1) + first[..., 1] + j
        weight = np.abs(1 - i - behind[..., 0]) * np.abs(1 - j - behind[..., 1])
        counts += np.bincount(node.ravel(), weight.ravel(), len(counts))
    return np.sqrt(counts).reshape(n, -1)


def hog(frames: ArrayLike, **options: Any) -> np.ndarray:
    """Histograms of oriented gradients of each frame, (n_frames, d).

    scikit-image's with its defaults: 9 orientations, cells of 8 x 8 pixels, blocks of 3
    x 3 cells, L2-Hys; the options are those of skimage.feature.hog. Source: Dalal and
    Triggs 2005.

    ValueError for frames of other axes, or options that do not fit them; ImportError
    without scikit-image.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> frames.hog(np.zeros((5, 24, 32))).shape  # two blocks of 9 cells of 9 orientations
    (5, 162)
    """
    frames = shared.check_clip(frames, "frames")
    feature = shared.import_extra(
        "skimage.feature", "hog needs scikit-image", "scikit-image"
    )
    try:
        rows = np.stack(
            [feature.hog(frame, feature_vector=True, **options) for frame in frames]
        ).astype(np.float64, copy=False)
    except (TypeError, ValueError, ArithmeticError, np.ma.MaskError) as error:
        raise ValueError(
            "options must fit skimage.feature.hog and frames of "
            f"{frames.shape[1:]}, got {options}: {error}"
        ) from error
    if not np.isfinite(rows).all():
        raise ValueError(
            "frames must have gradients whose squares are within float64, got pixels "
            f"up to {np.abs(frames).max():g}"
        )
    return rows


def lbp(
    frames: ArrayLike,
    *,
    n_points: int = 8,
    radius: float = 1,
    grid: tuple[int, int] = (1, 1),
) -> np.ndarray:
    """Return histograms of local binary patterns over a grid of cells of each frame.

    The patterns are scikit-image's. (n_frames, rows columns bins); each cell's
    histogram sums to 1; cells in reading order. Pixels nearer than the radius to the
    border are left out, because some of their neighbours do not exist. The patterns are
    the uniform ones, n_points (n_points - 1) + 3 bins with that of all others, 59 for 8
    points. Points between pixels are interpolated, so that patterns withstand a linear
    rise of the grey levels; with n_points=4, radius=1 none is, and any strict rise
    leaves them alone. Source: Ojala et al. 2002.

    ValueError for frames of other axes, numbers out of range, or a grid finer than the
    pixels; ImportError without scikit-image.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> histograms = frames.lbp(np.zeros((5, 24, 32), np.uint8), grid=(2, 2))
    >>> histograms.shape, histograms.sum(axis=1).tolist()  # 59 bins a cell
    ((5, 236), [4.0, 4.0, 4.0, 4.0, 4.0])
    """
    frames = shared.check_clip(frames, "frames")
    feature = shared.import_extra(
        "skimage.feature", "local_binary_pattern needs scikit-image", "scikit-image"
    )
    n_points = core.check_integer(n_points, "n_points", 1, MOST_POINTS)
    n_bins = n_points * (n_points - 1) + 3
    radius = core.check_number(radius, "radius", above=0)
    border = math.ceil(radius)
    height, width = frames.shape[1:]
    rows, columns = shared.check_integers(grid, "grid", 2, "(rows, columns)")
    if rows > height - 2 * border or columns > width - 2 * border:
        raise ValueError(
            "grid must have at most as many cells as pixels within a border of the "
            f"radius {radius:g}, rows and columns, got {grid} for frames of "
            f"{(height, width)}"
        )
    histograms = []
    with warnings.catch_warnings():
        # to floats: is meant
        warnings.filterwarnings("ignore", "Applying `local_binary_pattern`")
        for frame in frames:
            # scikit-image writes no memory map, but asks that it could
            patterns = feature.local_binary_pattern(
                np.array(frame), n_points, radius, "nri_uniform"
            ).astype(int)
            patterns = patterns[border : height - border, border : width - border]
            histograms.append(
                [
                    np.bincount(cell.ravel(), minlength=n_bins) / cell.size
                    for band in np.array_split(patterns, rows)
                    for cell in np.array_split(band, columns, axis=1)
                ]
            )
    return np.reshape(histograms, (len(frames), -1))


def lbp_top(
    frames: ArrayLike,
    *,
    length: int | None = None,
    step: int | None = None,
    radii: Sequence[int] = (1, 1, 1),
    uniform: bool = True,
) -> np.ndarray:
    """LBP from three orthogonal planes of each sub-video, (n_sub_videos, 3 bins).

    Histograms on XY, XT and YT, each of sum 1. A voxel's pattern in a plane has bit k
    set where the k-th of its 8 neighbours on the plane's ellipse, at (r_a cos(2 pi k /
    8), r_b sin(2 pi k / 8)) rounded to voxels, is at least as bright as it; voxels
    nearer than a radius to any face are left out. No grey level is interpolated: no
    strictly rising change of them alters a pattern.

    length, step: frames of a sub-video and from one's start to the next's (default:
        the whole clip; the paper's DynTex++: 10 and 3)
    radii: in x, y and t
    uniform: 59 bins, the 58 patterns with at most two changes around the circle in
        ascending order and one for all others, instead of 256

    Source: Zhao and Pietikainen 2007.

    ValueError for frames of other axes, or radii that leave no voxel.

    >>> import numpy as np
    >>> from grassmann_sc import frames
    >>> frames.lbp_top(np.zeros((12, 8, 8)), length=10, step=1).shape  # three sub-videos
    (3, 177)
    """
    frames = shared.check_clip(frames, "frames")
    rx, ry, rt = shared.check_integers(
        radii, "radii", 3, "three integers, in x, y and t"
    )
    n = len(frames)
    length = n if length is None else core.check_integer(length, "length", 1, n)
    step = length if step is None else core.check_integer(step, "step", 1)
    if length <= 2 * rt or frames.shape[1] <= 2 * ry or frames.shape[2] <= 2 * rx:
        raise ValueError(
            "length and frames must leave a voxel that is the radii "
            f"{(rx, ry, rt)} from every face, got sub-videos of {length} frames of "
            f"{frames.shape[1:]} pixels"
        )
    bin_of = (
        _uniform_bins()
        if core.check_flag(uniform, "uniform")
        else np.arange(2**PATTERN_BITS)
    )
    n_bins = bin_of.max() + 1
    counts = np.empty((n - 2 * rt, 3, n_bins))
    for t in range(len(counts)):  # a frame at a time keeps memory small
        slab = frames[t : t + 2 * rt + 1]
        for plane, axes in enumerate([(2, 1), (2, 0), (1, 0)]):  # XY, XT, YT of t, y, x
            bins = bin_of[_patterns(slab, (rt, ry, rx), *axes)]
            counts[t, plane] = np.bincount(bins, minlength=n_bins)
    inner = np.lib.stride_tricks.sliding_window_view(counts, length - 2 * rt, axis=0)
    inner = inner[::step].sum(axis=-1)  # (n_sub_videos, 3, bins)
    return (inner / inner.sum(axis=2, keepdims=True)).reshape(len(inner), -1)


def _patterns(slab, radii, cosine_axis, sine_axis):
    """8-bit patterns, in a plane, of a slab's middle voxels."""
    shape = [side - 2 * r for side, r in zip(slab.shape, radii)]

    def moved(shift):
        return slab[
            tuple(slice(r + s, r + s + n) for r, s, n in zip(radii, shift, shape))
        ]

    centre = moved((0, 0, 0))
    codes = np.zeros(shape, np.uint8)
    for bit in range(PATTERN_BITS):
        angle = 2 * np.pi * bit / PATTERN_BITS
        shift = [0, 0, 0]
        shift[cosine_axis] = round(radii[cosine_axis] * np.cos(angle))
        shift[sine_axis] = round(radii[sine_axis] * np.sin(angle))
        codes |= (moved(shift) >= centre).astype(np.uint8) << np.uint8(bit)
    return codes.ravel()


def _uniform_bins():
    """Bin of each 8-bit pattern.

    It is 0 to 57 for those with at most two changes around the circle, 58 for all
    others.
    """
    bits = np.arange(2**PATTERN_BITS)[:, None] >> np.arange(PATTERN_BITS) & 1
    uniform = (bits != np.roll(bits, 1, axis=1)).sum(axis=1) <= 2
    return np.where(uniform, np.cumsum(uniform) - 1, uniform.sum())


def gait_energy_image(
    silhouettes: ArrayLike, *, size: tuple[int, int] | None = None, align: bool = True
) -> np.ndarray:
    """The mean silhouette of a walk, (1, height width), entries in [0, 1].

    Each is the share of frames in which a pixel is body.

    silhouettes: (n_frames, height, width), body where > 0
    align: first cut each silhouette to its bounding box, scale it to the full height
        with its proportions kept and centre it on its mean column, as its source does;
        frames without body are left out. If False, the frames are averaged as they are
    size: (height, width) of the result (default: the frames'); needs align

    Source: Han and Bhanu 2006.

    ValueError for frames of other axes, a size without align, and with align frames
    without body or of body alone; ImportError without scikit-image where it scales.

    >>> from grassmann_sc import frames
    >>> frames.gait_energy_image([[[0, 1]], [[1, 1]]], align=False)  # two frames of two pixels
    array([[0.5, 1. ]])
    """
    silhouettes = shared.check_clip(silhouettes, "silhouettes") > 0
    if not core.check_flag(align, "align"):
        if size is not None:
            raise ValueError(f"size needs align=True, got {size}")
        return silhouettes.mean(axis=0).reshape(1, -1)
    if silhouettes.all():
        raise ValueError(
            "silhouettes must be 0 outside the body, no pixel of "
            f"{len(silhouettes)} frames is"
        )
    height, width = silhouettes.shape[1:] if size is None else _check_size(size)
    bodies = [body for body in silhouettes if body.any()]
    if not bodies:
        raise ValueError(
            f"silhouettes must hold a pixel > 0, all {len(silhouettes)} frames are "
            "empty"
        )
    return np.mean([_aligned(body, height, width) for body in bodies], axis=0).reshape(
        1, -1
    )


def _aligned(body, height, width):
    """A silhouette scaled to the full height, its mean column in the middle."""
    rows = np.flatnonzero(body.any(axis=1))
    columns = np.flatnonzero(body.any(axis=0))
    body = body[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].astype(np.float64)
    reach = 8 * width * body.shape[0] / height
    centre = None
    if body.shape[1] > 2 * reach + 1:
        # a line of noise: scaled as a whole, it would fill memory
        middle = np.average(np.arange(body.shape[1]) + 0.5, weights=body.sum(axis=0))
        first = max(0, int(middle - reach))
        body = body[:, first : int(middle + reach) + 1]
        centre = (middle - first) / body.shape[1]  # as a share of what is scaled
    scaled_width = max(1, round(body.shape[1] * height / body.shape[0]))
    if body.shape != (height, scaled_width):
        transform = shared.import_extra(
            "skimage.transform", "resize needs scikit-image", "scikit-image"
        )
        body = transform.resize(
            body, (height, scaled_width), order=1, anti_aliasing=True
        )
    if centre is None:
        centre = np.average(np.arange(scaled_width) + 0.5, weights=body.sum(axis=0))
    else:
        centre *= scaled_width
    # column of the result where the body begins
    left = int(np.floor(width / 2 - centre + 0.5))
    return np.pad(body, [(0, 0), (width, width)])[:, width - left : 2 * width - left]


# ------------------------------------------------------------- descriptors by their names


def _hog_cells(shape):
    """Cells of about a fifth of a frame (height, width), in blocks of 2 x 2."""
    cell = max(4, min(shape) // 5)
    return {"pixels_per_cell": [cell, cell], "cells_per_block": [2, 2]}


# The one place where a descriptor gets its name: describe, the command's options and
# help, and tests take it from here. function: frames to rows; per_frame: a row a frame,
# so that it may be one of several to choose from; suited: where it is tried unasked,
# its options for frames of a shape (height, width); needs: the package that it imports;
# moving: it is tried with frames in order alone; colour: it takes frames in colour
Kind = namedtuple(
    "Kind",
    "function per_frame suited needs moving colour",
    defaults=[False, None, None, False, False],
)
DESCRIPTORS = {
    "raw": Kind(raw, True, lambda shape: {}),
    "hog": Kind(hog, True, _hog_cells, "skimage"),
    "lbp": Kind(
        lbp,
        True,
        lambda shape: {"grid": [min(2, side - 2) for side in shape]},
        "skimage",
    ),
    "thumbnail": Kind(thumbnail, True, lambda shape: {}, moving=True),
    "colour": Kind(colour, True, lambda shape: {}, colour=True),
    "chromaticity": Kind(chromaticity, True, lambda shape: {}, colour=True),
    "lbp_top": Kind(lbp_top),
    "gei": Kind(gait_energy_image),
}


def descriptors_to_choose():
    """The names of descriptors that recipes may choose from: those with a row a frame."""
    return [name for name, kind in DESCRIPTORS.items() if kind.per_frame]


# --------------------------------------------------------------- checks of arguments


def _check_size(size):
    return tuple(shared.check_integers(size, "size", 2, "(height, width)"))
