"""Reading frames: what was written comes back, whatever the container; errors name the
file and the frame.
"""

import ast
import os
import re
import struct
import sys
import zipfile
import zlib

import numpy as np
import pytest
import scipy.io
from PIL import Image, ImageOps

from grassmann_sc import frames as library
from grassmann_sc.frames import contents, pick, read_frames, read_shape

FRAMES = np.random.default_rng(0).integers(0, 256, (12, 16, 24), np.uint8)
COLOUR = np.random.default_rng(1).integers(0, 256, (12, 16, 24, 3), np.uint8)
SMOOTH = np.rint(
    127
    + 100
    * np.sin(
        np.arange(12)[:, None, None] / 3
        + np.arange(32)[:, None] / 9
        + np.arange(48) / 11
    )
).astype(np.uint8)


def folder(path, frames, suffix=".png", names=None):
    path.mkdir()
    for i, frame in enumerate(frames):
        Image.fromarray(frame).save(
            path / f"{names[i] if names else f'frame{i}'}{suffix}"
        )
    return path


def video(path, frames, **options):
    pytest.importorskip("av", reason="videos need the extra 'video'")
    pytest.importorskip("imageio.v3").imwrite(
        path,
        np.stack([frames] * 3, axis=-1) if frames.ndim == 3 else frames,
        plugin="pyav",
        codec="libx264",
        fps=25,
        **options,
    )
    return path


def matlab(path, at, byte, **options):
    """A MATLAB file with another byte in the type and length of its numbers, which end
    it.
    """
    scipy.io.savemat(path, {"video": np.arange(3.0)}, **options)
    data = bytearray(path.read_bytes())
    body = zlib.decompress(data[136:]) if options else bytes(data[128:])
    body = bytearray(body)
    body[len(body) - 32 + at] = byte  # the 8 bytes before three of float64
    if options:
        body = zlib.compress(body)
        data[132:136] = len(body).to_bytes(4, "little")
        data[136:] = body
    else:
        data[128:] = body
    path.write_bytes(data)


def many_cells(path):
    """A .mat file of one cell whose header declares 2^30: SciPy reads them all."""
    scipy.io.savemat(path, {"cells": np.array([np.ones(3)], object)})
    data = path.read_bytes()
    shape, more = (np.array([5, 8, 1, n], "<i4").tobytes() for n in (1, 2**30))
    path.write_bytes(data.replace(shape, more, 1))


def cells_for_numbers(path):
    """A .mat file of a cell that says it is an array of double: SciPy ends the process."""
    scipy.io.savemat(path, {"video": np.array([np.ones(3)], object)})
    kind = np.array([6, 8, 1], "<i4").tobytes()  # flags of a cell
    path.write_bytes(path.read_bytes().replace(kind, kind[:8] + b"\x06\0\0\0", 1))


def zip_of_bytes(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("video", b"no array")


def test_a_folder_of_images_in_natural_order(tmp_path):
    path = folder(tmp_path / "clip", FRAMES)  # frame0 ... frame11: 10 comes after 9
    (path / "notes.txt").write_text("not a frame")
    (path / ".hidden.png").write_bytes(b"")
    frames = read_frames(str(path))
    assert frames.dtype == np.uint8
    np.testing.assert_array_equal(frames, FRAMES)


@pytest.mark.parametrize(
    "name, write",
    [
        ("a.npy", lambda path: np.save(path, FRAMES)),
        ("a.npz", lambda path: np.savez(path, anything=FRAMES)),
        ("b.npz", lambda path: np.savez(path, frames=FRAMES, label=[1])),
        ("a.mat", lambda path: scipy.io.savemat(path, {"video": FRAMES})),
        (
            "a.tif",
            lambda path: Image.fromarray(FRAMES[0]).save(
                path, save_all=True, append_images=map(Image.fromarray, FRAMES[1:])
            ),
        ),
        ("a.NPY", lambda path: np.save(open(path, "wb"), FRAMES)),
    ],
)
def test_arrays_and_image_stacks_come_back_exactly(tmp_path, name, write):
    write(tmp_path / name)
    np.testing.assert_array_equal(read_frames(tmp_path / name), FRAMES)


def test_videos_come_back_but_for_compression(tmp_path):
    frames = read_frames(video(tmp_path / "clip.mp4", SMOOTH))
    assert frames.shape == SMOOTH.shape and frames.dtype == np.uint8
    assert np.abs(frames.astype(int) - SMOOTH).mean() < 3
    colour = read_frames(tmp_path / "clip.mp4", grey=False)
    assert colour.shape == (*SMOOTH.shape, 3)
    assert np.abs(colour.astype(int) - SMOOTH[..., None]).mean() < 3


def test_a_video_is_a_file_whatever_its_name(tmp_path, monkeypatch):
    """FFmpeg takes what stands before a colon for a protocol."""
    name = "clip.mp4" if os.name == "nt" else "12:30.mp4"
    video(tmp_path / "clip.mp4", SMOOTH).rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert read_frames(name).shape == SMOOTH.shape


def test_colours_of_a_video_are_red_green_and_blue(tmp_path):
    frames = np.full((4, 32, 48, 3), [200, 120, 40], np.uint8)
    colour = read_frames(video(tmp_path / "clip.mp4", frames), grey=False)
    assert np.abs(colour.astype(int) - frames).max() < 20


def test_grey_is_the_luma(tmp_path):
    luma = np.rint(COLOUR @ [0.299, 0.587, 0.114])
    np.testing.assert_array_equal(read_frames(folder(tmp_path / "rgb", COLOUR)), luma)
    np.testing.assert_array_equal(read_frames(tmp_path / "rgb", grey=False), COLOUR)
    np.save(tmp_path / "a.npy", COLOUR / 255)
    np.testing.assert_allclose(
        read_frames(tmp_path / "a.npy"),
        COLOUR @ [0.299, 0.587, 0.114] / 255,
        rtol=1e-12,
    )
    np.save(tmp_path / "one.npy", FRAMES[..., None])
    np.testing.assert_array_equal(read_frames(tmp_path / "one.npy"), FRAMES)


def test_depth_and_palettes_are_kept(tmp_path):
    deep = FRAMES.astype(np.uint16) * 257
    np.testing.assert_array_equal(read_frames(folder(tmp_path / "deep", deep)), deep)
    (tmp_path / "palette").mkdir()
    for i, frame in enumerate(FRAMES):
        Image.fromarray(frame).convert("P").save(tmp_path / "palette" / f"{i}.png")
        Image.fromarray(np.dstack([frame] * 3 + [frame // 2])).save(
            tmp_path / "palette" / f"{i}_alpha.png"
        )
    np.testing.assert_array_equal(
        read_frames(tmp_path / "palette"), np.repeat(FRAMES, 2, axis=0)
    )


@pytest.mark.parametrize(
    "options, expected",
    [
        ({"every": 5}, [0, 5, 10]),
        ({"at_most": 4}, [0, 1, 2, 3]),
        ({"at_most": 99}, range(12)),
        ({"every": 2, "at_most": 3}, [0, 2, 4]),
        ({"evenly": 4}, [0, 4, 7, 11]),
        ({"evenly": 1}, [0]),
        ({"every": 3, "evenly": 3}, [0, 4 * 3 // 2 // 3 * 3, 9]),
    ],
)
def test_sampling(tmp_path, options, expected):
    folder(tmp_path / "clip", FRAMES)
    np.save(tmp_path / "a.npy", FRAMES)
    video(tmp_path / "clip.mp4", SMOOTH)
    np.testing.assert_array_equal(
        read_frames(tmp_path / "clip", **options), FRAMES[list(expected)]
    )
    np.testing.assert_array_equal(
        read_frames(tmp_path / "a.npy", **options), FRAMES[list(expected)]
    )
    np.testing.assert_array_equal(
        read_frames(tmp_path / "clip.mp4", **options),
        read_frames(tmp_path / "clip.mp4")[list(expected)],
    )


def test_evenly_repeats_frames_of_a_short_clip(tmp_path):
    np.save(tmp_path / "a.npy", FRAMES[:2])
    np.testing.assert_array_equal(
        read_frames(tmp_path / "a.npy", evenly=4), FRAMES[[0, 0, 1, 1]]
    )


def test_sampling_opens_only_what_it_takes(tmp_path):
    path = folder(tmp_path / "clip", FRAMES)
    (path / "frame1.png").write_bytes(b"broken")
    assert len(read_frames(path, every=2)) == 6


def test_resizing_averages(tmp_path):
    """By a factor of two, bilinear with antialiasing has the weights 1 3 3 1 of four
    neighbours; means stay.
    """
    step = np.zeros((1, 8, 16), np.uint8)
    step[:, :, 8:] = 160
    np.save(tmp_path / "a.npy", step)
    resized = read_frames(tmp_path / "a.npy", size=(4, 8))
    assert resized.shape == (1, 4, 8) and resized.dtype == np.uint8
    np.testing.assert_array_equal(
        resized[0], np.tile([0, 0, 0, 20, 140, 160, 160, 160], (4, 1))
    )
    np.save(tmp_path / "b.npy", step.astype(float) / 160)
    resized = read_frames(tmp_path / "b.npy", size=(4, 8))
    assert resized.dtype == np.float32
    np.testing.assert_allclose(
        resized[0, 0], [0, 0, 0, 1 / 8, 7 / 8, 1, 1, 1], atol=1e-6
    )
    assert read_frames(
        folder(tmp_path / "rgb", COLOUR), grey=False, size=(5, 7)
    ).shape == (
        12,
        5,
        7,
        3,
    )


def test_frames_of_many_sizes_are_resized_to_one(tmp_path):
    path = folder(tmp_path / "clip", [FRAMES[0], FRAMES[1, :9, :9], FRAMES[2]])
    assert read_frames(path, size=(8, 8)).shape == (3, 8, 8)


def test_features_and_frame_axes(tmp_path):
    features = np.random.default_rng(0).random((9, 5))
    np.save(tmp_path / "a.npy", features)
    np.testing.assert_array_equal(read_frames(tmp_path / "a.npy"), features)
    with pytest.raises(
        ValueError,
        match="a.npy: frames must be images to be resized, got vectors of length 5",
    ):
        read_frames(tmp_path / "a.npy", size=(3, 3))
    scipy.io.savemat(
        tmp_path / "a.mat", {"video": np.moveaxis(FRAMES, 0, 2), "rate": 25}
    )
    np.testing.assert_array_equal(
        read_frames(tmp_path / "a.mat", key="video", frame_axis=-1), FRAMES
    )


def broken_video(path, keep, frames=SMOOTH):
    data = video(path, frames).read_bytes()
    path.write_bytes(keep(data))


def stack(path, frames):
    first, *others = map(Image.fromarray, frames)
    first.save(path, save_all=True, append_images=others)
    return path


def sound(path):
    """A video file without a video."""
    av = pytest.importorskip("av", reason="videos need the extra 'video'")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("aac", rate=16000, layout="mono")
        wave = np.sin(np.arange(4000, dtype=np.float32) / 9)[None]
        frame = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
        frame.sample_rate = 16000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)


def spoil_image(path):
    (folder(path, FRAMES[:3]) / "frame1.png").write_bytes(
        (path / "frame1.png").read_bytes()[:60]
    )


BROKEN = {
    "garbage.mp4": (
        lambda path: broken_video(path, lambda data: b"no video" * 99),
        "not a video, or cut short",
    ),
    "cut.mp4": (
        lambda path: broken_video(path, lambda data: data[: len(data) // 3]),
        "not a video, or cut short",
    ),
    "cut_header.mp4": (
        lambda path: broken_video(path, lambda data: data[: data.index(b"moov") + 4]),
        "not a video, or cut short",
    ),
    "cut.avi": (
        lambda path: broken_video(
            path, lambda data: data[: len(data) * 2 // 3], np.tile(FRAMES, (1, 8, 4))
        ),
        r"cannot be decoded .* cut off, it announces 12 frames",
    ),
    "zeros.mp4": (
        lambda path: broken_video(path, lambda data: bytes(len(data))),
        "not a video, or cut short",
    ),
    "sound.mp4": (lambda path: sound(path), "no video stream$"),
    "table.txt": (
        lambda path: np.savetxt(path, FRAMES[0]),
        "not a video, or cut short",
    ),
    "a.svg": (
        lambda path: path.write_text('<svg xmlns="http://www.w3.org/2000/svg"/>'),
        "not a video, or cut short",
    ),
    "nothing.mp4": (lambda path: path.write_bytes(b""), "the file is empty"),
    "no_images": (lambda path: path.mkdir(), "holds no image"),
    "spoilt": (spoil_image, "frame1.png: frame 1 cannot be read as an image"),
    "sizes": (
        lambda path: folder(path, [FRAMES[0], FRAMES[1], FRAMES[2, :9]]),
        r"frame2.png: frames must have one size, frame 0 has \(16, 24\) and frame 2 \(9, 24\)",
    ),
    "text.npy": (lambda path: path.write_text("hello"), "cannot be read"),
    "objects.npy": (
        lambda path: np.save(path, np.array([{}])),
        "cannot be read: .*Python objects",
    ),
    "cut.npz": (lambda path: path.write_bytes(b"PK\x03\x04broken"), "cannot be read"),
    "two.npz": (
        lambda path: np.savez(path, a=FRAMES, b=FRAMES),
        "it holds several arrays, a, b, and none named frames; key='a' would read it",
    ),
    "empty.npy": (lambda path: np.save(path, FRAMES[:0]), "holds no frame"),
    "flat.npy": (
        lambda path: np.save(path, FRAMES.ravel()),
        r"frames must be real numbers .* got "
        r"uint8 \(4608,\)",
    ),
    "complex.npy": (
        lambda path: np.save(path, FRAMES * 1j),
        "frames must be real numbers .* got complex128",
    ),
    "text.mat": (lambda path: path.write_bytes(b"hello" * 50), "cannot be read"),
    "type.mat": (lambda path: matlab(path, 0, 99), "cannot be read: it is damaged"),
    "length.mat": (lambda path: matlab(path, 7, 99), "cannot be read: it is damaged"),
    "packed_type.mat": (
        lambda path: matlab(path, 0, 99, do_compression=True),
        "cannot be read: it is damaged",
    ),
    "cells.mat": (
        lambda path: many_cells(path),
        "cannot be read: cells must be an array of numbers, got cell",
    ),
    "numbers.mat": (
        lambda path: cells_for_numbers(path),
        "cannot be read: it is damaged",
    ),
    "bytes.npz": (
        lambda path: zip_of_bytes(path),
        "(frames must be real|cannot be read: the magic string)",
    ),
    "several_frames": (
        lambda path: (folder(path, FRAMES[:3]), stack(path / "a.gif", FRAMES)),
        "must hold clips or images of one frame, not both, got frame0.png beside a.gif",
    ),
    "array_beside": (
        lambda path: (folder(path, FRAMES[:3]), np.save(path / "a.npy", FRAMES)),
        "must hold clips or images of one frame, not both, got frame0.png beside a.npy",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_named(tmp_path, name):
    make, match = BROKEN[name]
    make(tmp_path / name)
    with pytest.raises(ValueError, match=f"{re.escape(str(tmp_path / name))}.*{match}"):
        read_frames(tmp_path / name)


def test_frames_of_grey_and_colour_are_told_from_frames_of_other_sizes(tmp_path):
    folder(tmp_path / "a", [*COLOUR[:2], FRAMES[0]])
    with pytest.raises(ValueError, match="must have one size.*; grey=True would read"):
        read_frames(tmp_path / "a", grey=False)
    both = read_frames(tmp_path / "a", grey=None)
    np.testing.assert_array_equal(both[:2], COLOUR[:2])
    np.testing.assert_array_equal(both[2], FRAMES[0][..., None].repeat(3, axis=2))
    assert read_frames(tmp_path / "a").shape == (3, *FRAMES.shape[1:])


def test_images_of_several_depths_are_refused(tmp_path):
    folder(tmp_path / "a", [FRAMES[0], FRAMES[1].astype(np.uint16)])
    with pytest.raises(
        ValueError, match="frames must have one type, got uint8, uint16"
    ):
        read_frames(tmp_path / "a")


@pytest.mark.parametrize("name", ["a.tif", "a.mp4", "a.mkv"])
def test_frames_at_even_steps_are_held_alone(tmp_path, monkeypatch, name):
    """A .mkv file does not announce how many there are."""
    path = (stack if name == "a.tif" else video)(tmp_path / name, SMOOTH)
    assert (read_shape(path)[0] is None) == (name == "a.mkv")
    whole = read_frames(path)
    held = []
    prepare = library.prepared
    monkeypatch.setattr(
        library,
        "prepared",
        lambda frame, **how: held.append(1) or prepare(frame, **how),
    )
    for n in (1, 4, 2 * len(whole)):
        held.clear()
        frames = read_frames(path, evenly=n)
        assert np.array_equal(frames, np.array(pick(whole, evenly=n)))
        assert len(held) == n


SOUND = {
    "folder": lambda path: folder(path, FRAMES),
    "colours": lambda path: folder(path, COLOUR),
    "single.gif": lambda path: stack(path, FRAMES[:1]),
    "a.gif": lambda path: stack(path, COLOUR),
    "a.tif": lambda path: stack(path, FRAMES),
    "deep.TIFF": lambda path: stack(path, FRAMES.astype(np.uint16)),
    "sizes.tif": lambda path: stack(path, [FRAMES[0], FRAMES[1, :9], FRAMES[2]]),
    "a.webp": lambda path: stack(path, COLOUR),
    "a.mp4": lambda path: video(path, SMOOTH),
    "a.avi": lambda path: video(path, SMOOTH),
    "a.npy": lambda path: np.save(path, COLOUR),
    "vectors.npy": lambda path: np.save(path, FRAMES[0] / 9),
    "a.npz": lambda path: np.savez_compressed(
        path, frames=FRAMES[..., None], other=FRAMES[0]
    ),
    "a.mat": lambda path: scipy.io.savemat(path, {"video": FRAMES}),
}


@pytest.mark.parametrize("name", [*SOUND, *BROKEN])
def test_headers_tell_what_reading_gives(tmp_path, name):
    """The same shape, or the same error; of damaged files headers may tell less."""
    make = SOUND[name] if name in SOUND else BROKEN[name][0]
    make(tmp_path / name)
    for options in (
        {},
        {"every": 2, "at_most": 3},
        {"evenly": 5},
        {"size": (8, 9)},
        {"key": "frames"},
        {"every": 9, "size": (16, 24)},
    ):
        try:
            expected = read_frames(tmp_path / name, **options).shape
        except ValueError as error:
            expected = str(error)
        try:
            answer = read_shape(tmp_path / name, **options)
        except ValueError as error:
            answer = str(error)
        if name in SOUND or isinstance(answer, str) and name != "bytes.npz":
            assert answer == expected


def test_headers_decode_nothing(tmp_path, monkeypatch):
    BROKEN["cut.avi"][0](tmp_path / "a.avi")  # reading it is an error
    assert read_shape(tmp_path / "a.avi") == (12, 8 * 16, 4 * 24)
    np.savez(tmp_path / "a.npz", FRAMES)
    stack(tmp_path / "a.gif", FRAMES)
    monkeypatch.setattr(Image.Image, "convert", lambda *_: pytest.fail("decoded"))
    monkeypatch.setattr(
        np.lib.format, "read_array", lambda *_, **how: pytest.fail("read")
    )
    assert (
        read_shape(tmp_path / "a.npz") == read_shape(tmp_path / "a.gif") == FRAMES.shape
    )


def test_a_folder_tells_clips_from_the_images_of_one(tmp_path):
    folder(tmp_path / "inner", FRAMES[:1])
    stack(tmp_path / "10.gif", FRAMES[:1])
    stack(tmp_path / "2.TIF", FRAMES[:1])
    for name in ("notes.txt", "._x.gif", ".DS_Store"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "broken.gif").write_bytes(b"")
    names = [[path.name for path in kind] for kind in contents(tmp_path)]
    assert names == [[], ["2.TIF", "10.gif", "broken.gif"], ["inner"]]
    stack(tmp_path / "a.GIF", FRAMES)
    (tmp_path / "b.MP4").write_bytes(b"")
    names = [[path.name for path in kind] for kind in contents(tmp_path)]
    assert names == [["a.GIF", "b.MP4", "broken.gif"], ["2.TIF", "10.gif"], ["inner"]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_of_the_name_of_an_image_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.gif")
    assert contents(tmp_path).clips == [tmp_path / "pipe.gif"]


def test_links_that_lead_back_are_no_content(tmp_path):
    """One to a folder whose name is only the beginning of another's does not."""
    root = tmp_path / "clips"
    root.mkdir()
    (tmp_path / "clip").mkdir()
    for target in (root, tmp_path, tmp_path / "clip"):
        (root / f"to_{target.name}").symlink_to(target)
    assert contents(root).folders == [root / "to_clip"]


@pytest.mark.parametrize(
    "options, error, match",
    [
        ({"every": 0}, ValueError, "every must be >= 1, got 0"),
        ({"every": None}, TypeError, "every must be an integer, got None"),
        ({"at_most": 1.5}, TypeError, r"at_most must be an integer, got 1\.5"),
        (
            {"at_most": 3, "evenly": 3},
            ValueError,
            "at_most or evenly, not both, got 3 and 3",
        ),
        ({"size": 32}, TypeError, r"size must be \(height, width\), got 32"),
        ({"size": (0, 3)}, ValueError, "size must be >= 1, got 0"),
        (
            {"key": "missing"},
            ValueError,
            "key must name one of its arrays, a; got 'missing'",
        ),
    ],
)
def test_bad_options(tmp_path, options, error, match):
    np.savez(tmp_path / "a.npz", a=FRAMES)
    with pytest.raises(error, match=match):
        read_frames(tmp_path / "a.npz", **options)
    with pytest.raises(
        FileNotFoundError, match="nowhere: there is no such file or folder"
    ):
        read_frames(tmp_path / "nowhere")


def test_a_missing_reader_names_its_extra(tmp_path, monkeypatch):
    path = video(tmp_path / "clip.mp4", SMOOTH)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match="^videos need PyAV: .* -m pip install av"):
        read_frames(path)


def test_no_more_frames_are_asked_for_than_are_picked():
    items = iter(range(100))
    assert pick(items, every=3, at_most=2) == [0, 3]
    assert next(items) == 4
    assert [*pick(range(9), every=4, at_most=2**62)] == [0, 4, 8]
    assert pick(range(10**15), every=2, evenly=3) == [0, 5 * 10**14, 10**15 - 2]
    assert len(pick(range(10**15))) == 10**15


def test_frames_of_the_size_asked_for_are_of_the_type_of_others(tmp_path):
    path = tmp_path / "a.npy"
    pixels = np.random.default_rng(0).random((3, 8, 6))
    np.save(path, pixels)
    read = read_frames(path, size=(8, 6))
    assert read.dtype == np.float32 and np.array_equal(read, pixels.astype(np.float32))


def test_a_link_to_itself_is_no_folder(tmp_path):
    link = tmp_path / "itself"
    link.symlink_to("itself")
    with pytest.raises(OSError):
        contents(link)
    assert contents(tmp_path).folders == []


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "webp", "tif"])
def test_photographs_stand_upright(tmp_path, orientation, ending):
    """As viewers show them, however the camera was held."""
    pixels = np.zeros((24, 40), np.uint8)
    pixels[:8, :16] = 200
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"photo.{ending}"
    Image.fromarray(pixels).save(path, exif=exif, quality=95)
    as_png = Image.fromarray(pixels)
    as_png.getexif()[0x0112] = orientation
    shown = np.array(ImageOps.exif_transpose(as_png))
    (frame,) = read_frames(path, grey=True)
    assert frame.shape == shown.shape == read_shape(path)[1:]
    assert np.abs(frame.astype(int) - shown).max() <= 3


@pytest.mark.parametrize(
    "entry, upright",
    [
        (struct.pack(">HHIHH", 0x0112, 3, 1, 6, 0), (40, 24)),
        (struct.pack(">HHIHH", 0x0112, 3, 1, 0, 0), (24, 40)),
        (struct.pack(">HHIHH", 0x0112, 3, 1, 9, 0), (24, 40)),
        (struct.pack(">HHI4s", 0x0112, 2, 4, b"six\0"), (24, 40)),
    ],
)
def test_photographs_of_odd_headers_are_read(tmp_path, entry, upright):
    """Beside a width that is a text, which Pillow reads and could not write again."""
    width = struct.pack(">HHI4s", 0x0100, 2, 4, b"big\0")
    exif = b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 2) + width + entry + bytes(4)
    path = tmp_path / "photo.jpg"
    Image.fromarray(np.zeros((24, 40), np.uint8)).save(path, exif=exif)
    assert read_frames(path).shape == (1, *upright) == read_shape(path)


ONE = 1 << 16
MATRICES = {  # x' = a x + c y, y' = b x + d y: (a, b, c, d), and what becomes of frames
    "clockwise": ((0, ONE, -ONE, 0), lambda frames: np.rot90(frames, -1, (1, 2))),
    "upside down": ((-ONE, 0, 0, -ONE), lambda frames: frames[:, ::-1, ::-1]),
    "mirrored": ((-ONE, 0, 0, ONE), lambda frames: frames[:, :, ::-1]),
    "transposed": ((0, ONE, ONE, 0), lambda frames: frames.swapaxes(1, 2)),
    "nothing": ((0, 0, 0, 0), lambda frames: frames),
}


@pytest.mark.parametrize("matrix, turned", MATRICES.values(), ids=MATRICES)
def test_videos_of_a_turned_camera_stand_upright(tmp_path, matrix, turned):
    av = pytest.importorskip("av")
    path = tmp_path / "flat.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width = 64
        stream.height = 48
        stream.pix_fmt = "yuv420p"
        image = np.zeros((48, 64, 3), np.uint8)
        image[:10, :20] = 255
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    content = bytearray(path.read_bytes())
    place = content.find(b"tkhd") + 44  # of the matrix in the track's header
    assert struct.unpack(">5i", content[place : place + 20]) == (ONE, 0, 0, 0, ONE)
    a, b, c, d = matrix
    content[place : place + 20] = struct.pack(">5i", a, b, 0, c, d)
    other = tmp_path / "other.mp4"
    other.write_bytes(content)
    upright = turned(read_frames(path, grey=True))
    assert np.array_equal(read_frames(other, grey=True), upright)
    assert read_shape(other) == upright.shape


def test_a_name_with_an_underscore_is_no_number(tmp_path):
    path = tmp_path / "takes.csv"
    path.write_text("take,x\n1_2,3\n1_10,4\n")
    assert read_frames(path).tolist() == [[3.0], [4.0]]


def test_a_column_that_begins_late_is_named(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("x,y\n" + "1,\n" * 300 + "1,2\n" * 50)
    table = library.read_table(path)
    assert table.names == ["x"] and table.dropped == [("y", "")]


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_a_parser_that_failed_beside_another_thread_is_asked_again(
    tmp_path, monkeypatch, ending
):
    """As that of Python 3.11, by which NumPy reads headers, may fail."""
    pixels = np.random.default_rng(0).random((3, 8, 6))
    path = tmp_path / f"a{ending}"
    np.save(path, pixels) if ending == ".npy" else np.savez(path, frames=pixels)
    parse = ast.literal_eval
    calls = []

    def fails_first(text):
        calls.append(text)
        if len(calls) % 2:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(text)

    monkeypatch.setattr(ast, "literal_eval", fails_first)
    assert read_shape(path) == (3, 8, 6) and len(calls) == 2
    assert np.array_equal(read_frames(path), pixels) and len(calls) == 4
