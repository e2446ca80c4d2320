"""Damaged and crafted files of the campaign: dictionaries, checkpoints and clips.

A dictionary or a checkpoint that is not what was written is refused by a ValueError that names the
file. A clip gives frames, or such an error.
"""

import functools
import hashlib
import io
import json
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import scipy.io

import grassmann_sc as core
from benchmarks.campaign_calls import Failed, place_of, rng_of
from benchmarks.campaign_inputs import Hang, limit_memory, watchdog
from grassmann_sc import files, frames, learn

# ---------------------------------------------------------------------------- files as they are


@functools.cache
def samples():
    return core.random_subspaces(12, 6, 2, 3)


def resume(path):
    return learn.gdl(samples(), 3, 0.1, n_iter=2, rng=0, resume=path)


def read(path):
    """Frames of a clip, all of them in memory."""
    return np.array(frames.read_frames(path))


def load_sets(path):
    from examples.clips import load_npz

    return load_npz(path)


@functools.cache
def whole_files():
    """{name: (bytes, what reads them, must any change be refused)}."""
    import imageio.v3
    from PIL import Image

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 12, 10)).astype(np.uint8)
    files.save("whole", samples()[:5], lam=0.1, labels=["a", "b", "a", "b", "c"])
    found = {"dictionary.npz": (Path("whole").read_bytes(), files.load, True)}
    learn.gdl(samples(), 3, 0.1, n_iter=1, rng=0, checkpoint="whole")
    found["checkpoint.npz"] = Path("whole").read_bytes(), resume, True
    writers = {
        "clip.npy": lambda file: np.save(file, images),
        "clip.npz": lambda file: np.savez(file, frames=images),
        "packed.npz": lambda file: np.savez_compressed(file, frames=images, other=images[0]),
        "clip.mat": lambda file: scipy.io.savemat(file, {"frames": images}),
        "packed.mat": lambda file: scipy.io.savemat(file, {"frames": images * 1.0},
                                                    do_compression=True),
        "clip.gif": lambda file: imageio.v3.imwrite(file, images, extension=".gif"),
        "clip.png": lambda file: Image.fromarray(images[0]).save(file, "png"),
        "clip.tif": lambda file: Image.fromarray(images[0]).save(file, "tiff"),
    }
    for name, write in writers.items():
        file = io.BytesIO()
        write(file)
        found[name] = file.getvalue(), read, False
    file = io.BytesIO()
    np.savez(file, **stacked_sets(images))
    found["sets.npz"] = file.getvalue(), load_sets, False
    return found


def stacked_sets(images):
    return {"frames": images, "offset": np.arange(7), "label": np.array(list("aabbab")),
            "train0": np.arange(4), "test0": np.array([4, 5])}


# -------------------------------------------------------------------------------- damage


def truncated(rng, data):
    return data[:int(rng.integers(len(data)))]


def with_flipped_bits(rng, data):
    data = bytearray(data)
    for at in rng.integers(0, len(data), int(rng.integers(1, 6))):
        data[at] ^= 1 << int(rng.integers(8))
    return bytes(data)


def with_other_bytes(rng, data):
    data = bytearray(data)
    at = int(rng.integers(len(data)))
    data[at:at + 8] = rng.bytes(len(data[at:at + 8]))
    return bytes(data)


def with_a_damaged_head(rng, data):
    data = bytearray(data)
    for at in rng.integers(0, min(200, len(data)), 3):
        data[at] = int(rng.choice([0, 255, 40, 41, 39, 48 + rng.integers(10)]))
    return bytes(data)


def with_a_hole(rng, data):
    at, end = sorted(rng.integers(0, len(data) + 1, 2))
    return data[:at] + bytes(int(end - at)) + data[end:]


def with_more(rng, data):
    return data + rng.bytes(int(rng.integers(1, 100)))


def without_a_part(rng, data):
    at, end = sorted(rng.integers(0, len(data) + 1, 2))
    return data[:at] + data[end:]


DAMAGES = [truncated, truncated, with_flipped_bits, with_flipped_bits, with_other_bytes,
           with_a_damaged_head, with_a_hole, with_more, without_a_part]


def damaged(seed, case):
    """First every crafted file, then files damaged at random."""
    limit_memory()
    crafted = crafted_files()
    if case < len(crafted):
        name, about, data, reader, strict = crafted[case]
    else:
        rng = rng_of("damaged", seed, case)
        name = list(whole_files())[case % len(whole_files())]
        whole, reader, strict = whole_files()[name]
        damage = DAMAGES[rng.integers(len(DAMAGES))]
        data = damage(rng, whole)
        about = damage.__name__.replace("_", " ")
        strict = strict and data != whole
    path = os.path.abspath(name)
    Path(path).write_bytes(data)
    check_reading(reader, path, f"{name}, {about}", strict)


def check_reading(reader, path, what, strict):
    try:
        with watchdog():
            result = reader(path)
    except Hang:
        raise Failed(f"hangs: {what}", f"{os.path.basename(path)} hangs") from None
    except ValueError as error:
        if reader is not load_sets and os.path.basename(path) not in str(error):
            raise Failed(f"does not name the file: {what}: {error} ({place_of(error)})",
                         f"does not name the file, {place_of(error)}") from None
        return
    except BaseException as error:
        kind = type(error).__name__
        raise Failed(f"{kind}: {what}: {str(error)[:300]} ({place_of(error)})",
                     f"{kind} of {os.path.basename(path)}, {place_of(error)}") from None
    if strict:
        raise Failed(f"{what}: accepted")
    if reader is read and result.ndim < 2:
        raise Failed(f"no frames: {what}: {result.shape}")


# ------------------------------------------------------------------- crafted with right checksums

HUGE = 2**62


def npy(array=None, header=None):
    """An array as .npy, or any header with nothing behind it."""
    file = io.BytesIO()
    if header is None:
        np.save(file, array)
        return file.getvalue()
    text = header.encode().ljust(128 - 10 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def shaped(shape, dtype="<f8"):
    return npy(header=f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}")


def sealed(members, compression=zipfile.ZIP_STORED):
    """A file of these members whose checksum is right."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in members:
            archive.writestr(f"{name}.npy", data)
        archive.comment = bytes(64)
    body = file.getvalue()[:-64]
    return body + hashlib.sha256(body).hexdigest().encode()


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename.removesuffix(".npy"): archive.read(info)
                for info in archive.infolist()}


HEADERS = {
    "a shape of 2**62": shaped((HUGE,)),
    "a shape of 2**124": shaped((HUGE, HUGE)),
    "a negative shape": shaped((-1, 2)),
    "a shape of text": shaped("'abc'"),
    "40 axes": shaped((1,) * 40),
    "objects": shaped((3,), "|O"),
    "records": npy(header="{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,), }"),
    "an unclosed header": npy(header="{'descr': '<f8', 'fortran_order': False, 'shape': (3,"),
    "a header of code": npy(header="__import__('os').getcwd()"),
    "a header of brackets": npy(header="[" * 110),
    "a header of a number": npy(header="10**9"),
    "no dtype": shaped((3,), "abc"),
    "bytes of nothing": b"",
    "an unknown version": b"\x93NUMPY\x09\x00" + bytes(100),
}


def crafted_files():
    """(name, what is wrong, bytes, what reads them, must they be refused), a fixed list."""
    return crafted_archives() + crafted_clips()


@functools.cache
def crafted_archives():
    found = []
    for name in ("dictionary.npz", "checkpoint.npz"):
        data, reader, _ = whole_files()[name]
        members = members_of(data)
        for member in members:
            for about, header in HEADERS.items():
                found.append((name, f"{about} in {member}", {**members, member: header}, reader))
            without = {key: value for key, value in members.items() if key != member}
            if member not in ("lam", "labels") or "key" in members:
                found.append((name, f"no {member}", without, reader))
        wrong = wrong_dictionaries if name == "dictionary.npz" else wrong_checkpoints
        found += [(name, f"{member} = {about}", {**members, member: npy(value)}, reader)
                  for member, about, value in wrong()]
        found.append((name, "an unknown member", {**members, "more": npy(np.ones(2))}, reader))
    crafted = [(name, about, sealed(parts.items()), reader, True)
               for name, about, parts, reader in found]
    members = list(members_of(whole_files()["dictionary.npz"][0]).items())
    packed = sealed(members, zipfile.ZIP_DEFLATED)
    twice = sealed([*members, members[0]])
    checkpoint = whole_files()["checkpoint.npz"][0]
    dictionary = whole_files()["dictionary.npz"][0]
    return [*crafted, ("dictionary.npz", "compressed", packed, files.load, True),
            ("dictionary.npz", "a member twice", twice, files.load, True),
            ("dictionary.npz", "a checkpoint", checkpoint, files.load, True),
            ("checkpoint.npz", "a dictionary", dictionary, resume, True)]


def wrong_dictionaries():
    D = samples()[:5]
    bad = D.copy()
    bad[0, 0, 0] = np.nan
    return [
        ("atoms", "NaN", bad), ("atoms", "not orthonormal", 2 * D), ("atoms", "2-d", D[0]),
        ("atoms", "none", D[:0]), ("atoms", "integers", np.ones((2, 3, 1), int)),
        ("atoms", "half precision", D.astype(np.float16)), ("atoms", "no column", D[:, :, :0]),
        ("lam", "NaN", np.array(np.nan)), ("lam", "negative", np.array(-1.0)),
        ("lam", "inf", np.array(np.inf)), ("lam", "two", np.ones(2)),
        ("labels", "too few", np.arange(3)), ("labels", "2-d", np.ones((5, 1))),
        ("labels", "dates", np.zeros(5, "M8[D]")), ("format", "another", np.array("thing")),
        ("format", "two", np.array(["dictionary"] * 2)), ("version", "2", np.array(2)),
        ("version", "two", np.array([1, 1])), ("version", "text", np.array("1")),
    ]


def wrong_checkpoints():
    D = samples()[:3]
    bad = D.copy()
    bad[0, 0, 0] = np.nan
    codes = np.zeros((12, 3))
    state = np.random.default_rng(0).bit_generator.state
    other = np.random.Generator(np.random.MT19937(0)).bit_generator.state
    huge = {**state, "state": {"state": 10**60, "inc": -1}}
    texts = {"nothing": "", "not JSON": "abc", "deep": "[" * 100_000, "a list": "[]",
             "null": "null", "no state": '{"bit_generator": "PCG64"}',
             "huge": json.dumps(huge),
             "of another generator": json.dumps(other, default=lambda array: array.tolist())}
    return [
        ("atoms", "NaN", bad), ("atoms", "not orthonormal", 2 * D), ("atoms", "2-d", D[0]),
        ("atoms", "two", D[:2]), ("atoms", "another d", core.random_subspaces(3, 5, 2, 0)),
        ("atoms", "another p", core.random_subspaces(3, 6, 1, 0)),
        ("codes", "NaN", codes * np.nan), ("codes", "too few", codes[1:]),
        ("codes", "1-d", codes[0]), ("costs", "NaN", np.full(3, np.nan)),
        ("costs", "an even number", np.ones(2)), ("costs", "none", np.ones(0)),
        ("costs", "2-d", np.ones((1, 3))), ("n_replaced", "negative", np.array(-1)),
        ("n_replaced", "two", np.array([1, 1])), ("lam", "negative", np.array(-1.0)),
        ("lam", "two", np.ones(2)), ("lam", "inf", np.array(np.inf)),
        ("lam", "another", np.array(0.2)), ("key", "another", np.array("abc")),
        ("key", "two", np.array(["a", "b"])), ("version", "2", np.array(2)),
        *[("rng", about, np.array(text)) for about, text in texts.items()],
    ]


@functools.cache
def crafted_clips():
    """Clips with hostile headers, arrays that are no clips, and files that lie about their kind."""
    found = []
    images = np.zeros((6, 12, 10), np.uint8)
    for about, header in HEADERS.items():
        found.append(("clip.npy", about, header))
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            found.append(("clip.npz", about, sealed([("frames", header)], compression)))
        sets = {name: npy(array) for name, array in stacked_sets(images).items()}
        for name in ("frames", "offset", "label", "train0"):
            found.append(("sets.npz", f"{about} in {name}",
                          sealed({**sets, name: header}.items())))
    arrays = {"0-d": np.array(1), "1-d": np.ones(3), "5-d": np.ones((1, 1, 1, 1, 1)),
              "no frame": np.ones((0, 3, 3)), "no pixel": np.ones((3, 0, 3)),
              "complex": np.ones((2, 3)) * 1j, "texts": np.array([["a", "b"]]),
              "dates": np.zeros((2, 3), "M8[D]"), "2 channels": np.ones((2, 3, 3, 2))}
    for about, array in arrays.items():
        found.append(("clip.npy", about, npy(array)))
        found.append(("clip.npz", about, sealed([("frames", npy(array))])))
    matlab = {"a struct": {"a": 1}, "text": "abc", "a cell": np.array([np.ones(3), "a"], object)}
    for about, value in matlab.items():
        file = io.BytesIO()
        scipy.io.savemat(file, {"frames": value})
        found.append(("clip.mat", about, file.getvalue()))
    whole = {name: whole_files()[name][0] for name in whole_files()}
    for suffix in ("npy", "npz", "mat", "gif", "png", "tif", "mp4", "avi"):
        for about, data in {"empty": b"", "text": b"hello\n" * 30, "a zip": whole["clip.npz"],
                            "a picture": whole["clip.png"], "zeros": bytes(5000),
                            "MATLAB 7.3": b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM"
                                          + bytes(512)}.items():
            found.append((f"clip.{suffix}", about, data))
    return [(name, about, data, load_sets if name == "sets.npz" else read, False)
            for name, about, data in found]
