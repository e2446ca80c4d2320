"""Damaged and crafted files. A dictionary or a checkpoint that is not what was written is
refused by a ValueError that names the file; a clip gives frames, or such an error.
Entries that do not fit, of files that are sealed well, are those of test_files_kept.py.
"""

import functools
import hashlib
import io
import os
import struct
import zipfile
from pathlib import Path

import imageio.v3
import numpy as np
import pytest
import scipy.io
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

import grassmann_sc as core
from grassmann_classify import Settings, fit, load, save
from grassmann_classify.arrays import load_npz
from grassmann_sc import files, frames, learn

SAMPLES = core.random_subspaces(12, 6, 2, 3)
IMAGES = np.random.default_rng(0).integers(0, 256, (6, 12, 10)).astype(np.uint8)
SETS = {
    "frames": IMAGES,
    "offset": np.arange(7),
    "label": np.array(list("aabbab")),
    "train0": np.arange(4),
    "test0": np.array([4, 5]),
}
LEARN = dict(n_atoms=3, lam=0.1, rng=0)
LABELLED = {
    "sets": [np.roll(IMAGES, i, axis=1 + i % 2) for i in range(8)],
    "labels": [*"abababab"],
    "settings": Settings(methods=["gsc"], lam=[0.1], p=[1, 2], kernels=False),
}
MATLAB = {"a struct": {"a": 1}, "a text": "abc"}
MATLAB["cells"] = np.array([np.ones(3), "a"], object)
READERS = {  # of the files of these names; all others are clips
    "dictionary.npz": files.load,
    "checkpoint.npz": lambda path: learn.gdl(SAMPLES, **LEARN, n_iter=2, resume=path),
    "sets.npz": load_npz,
    "model.npz": load,
}
STRICT = {
    "dictionary.npz",
    "checkpoint.npz",
    "model.npz",
}  # of which any change must be refused
WRITERS = {
    "dictionary.npz": lambda file: files.save(
        file, SAMPLES[:5], labels=[*"ababc"], lam=1
    ),
    "checkpoint.npz": lambda file: learn.gdl(
        SAMPLES, **LEARN, n_iter=1, checkpoint=file
    ),
    "model.npz": lambda file: save(file, fit(**LABELLED)),
    "clip.npy": lambda file: np.save(file, IMAGES),
    "clip.npz": lambda file: np.savez(file, frames=IMAGES),
    "packed.npz": lambda file: np.savez_compressed(
        file, frames=IMAGES, other=IMAGES[0]
    ),
    "clip.mat": lambda file: scipy.io.savemat(file, {"frames": IMAGES}),
    "packed.mat": lambda file: scipy.io.savemat(
        file, {"frames": IMAGES * 1.0}, do_compression=True
    ),
    **{
        f"{about}.mat": functools.partial(scipy.io.savemat, mdict={"frames": value})
        for about, value in MATLAB.items()
    },
    "clip.gif": lambda file: imageio.v3.imwrite(file, IMAGES),
    "clip.png": lambda file: Image.fromarray(IMAGES[0]).save(file),
    "clip.tif": lambda file: Image.fromarray(IMAGES[0]).save(file),
    "sets.npz": lambda file: np.savez(file, **SETS),
}


@pytest.fixture(scope="module")
def whole(folder):
    """{name: bytes}."""
    for name, write in WRITERS.items():
        write(name)
    return {name: Path(name).read_bytes() for name in WRITERS}


def check_reading(name, data, may_be_read=False):
    Path(name).write_bytes(data)
    path = os.path.abspath(name)
    try:
        content = READERS.get(name, lambda path: np.array(frames.read_frames(path)))(
            path
        )
    except ValueError as error:
        assert name == "sets.npz" or name in str(error), "the file is not named"
        return
    assert may_be_read or name not in STRICT, "accepted"
    assert name in READERS or content.ndim > 1, "no frames"


@settings(max_examples=1500)
@given(st.data(), st.sampled_from([*WRITERS]), st.integers(1, 100))
def test_damaged_files_are_refused_or_read(whole, data, name, length):
    """Cut, with a hole, without a part, with other bytes or bits, with more."""
    old = whole[name]
    places = st.integers(0, len(old)) | st.integers(0, min(200, len(old)))
    at, end = sorted([data.draw(places), data.draw(places)])
    more = data.draw(st.binary(min_size=1, max_size=8))
    flipped = bytes([old[at % len(old)] ^ 1 << length % 8])
    changes = {
        "cut": old[:at],
        "a hole": old[:at] + bytes(end - at) + old[end:],
        "a part less": old[:at] + old[end:],
        "other bytes": old[:at] + more + old[at + len(more) :],
        "more": old + more * length,
        "flipped": old[:at] + flipped + old[at + 1 :],
    }
    new = changes[data.draw(st.sampled_from([*changes]))]
    check_reading(name, new, new == old)


# ------------------------------------------------------------------------- crafted files


def npy(array):
    """An array as .npy."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def headed(header):
    """A file .npy of any header, with nothing behind it."""
    text = header.encode().ljust(128 - 10 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def shaped(shape, dtype="<f8"):
    return headed(f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}")


def sealed(members, compression):
    """A file of these members whose checksum is right."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
        archive.comment = bytes(64)
    body = file.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


HUGE = 2**62
HEADERS = {
    "a shape of 2**62": shaped((HUGE,)),
    "a shape of 2**124": shaped((HUGE, HUGE)),
    "a negative shape": shaped((-1, 2)),
    "a shape of text": shaped("'abc'"),
    "40 axes": shaped((1,) * 40),
    "objects": shaped((3,), "|O"),
    "records": shaped((0,), [("a", "<f8")]),
    "an unclosed header": headed(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,"
    ),
    "a header of code": headed("__import__('os').getcwd()"),
    "a header of brackets": headed("[" * 110),
    "a header of a number": headed("10**9"),
    "no dtype": shaped((3,), "abc"),
    "bytes of nothing": b"",
    "an unknown version": b"\x93NUMPY\x09\x00" + bytes(100),
}
ARRAYS = {
    "0-d": np.array(1),
    "1-d": np.ones(3),
    "5-d": np.ones((1, 1, 1, 1, 1)),
    "no frame": np.ones((0, 3, 3)),
    "no pixel": np.ones((3, 0, 3)),
    "complex": np.ones((2, 3)) * 1j,
    "texts": np.array([["a", "b"]]),
    "dates": np.zeros((2, 3), "M8[D]"),
    "2 channels": np.ones((2, 3, 3, 2)),
}
LIES = HEADERS | {
    "a text": b"hello\n" * 30,
    "zeros": bytes(5000),
    "MATLAB 7.3": b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(512),
}
CONTENTS = LIES | {about: npy(array) for about, array in ARRAYS.items()}


@settings(max_examples=1500)
@given(
    st.data(),
    st.sampled_from([*WRITERS, "clip.mp4", "clip.avi"]),
    st.sampled_from([*CONTENTS]),
)
def test_files_that_lie_are_refused_or_read(whole, data, name, about):
    """Hostile headers, arrays that are no clips, and files of another kind."""
    # arrays of a checkpoint that are sealed are those that were written
    assume(name != "checkpoint.npz" or about not in ARRAYS)
    new = CONTENTS[about]
    other = data.draw(st.none() | st.sampled_from(sorted({*WRITERS} - {name})))
    if other:
        new = whole[other]
    elif name.endswith(".npz"):
        with zipfile.ZipFile(io.BytesIO(whole[name])) as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        member = data.draw(st.sampled_from(sorted(members)))
        kind = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
        new = sealed(members | {member: new}, kind)
    check_reading(name, new, not other and about in ARRAYS)
