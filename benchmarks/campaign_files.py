"""Damaged and crafted files of the campaign: dictionaries, checkpoints and clips.

A dictionary or a checkpoint that is not what was written is refused by a ValueError
that names the file. A clip gives frames, or such an error.
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
from benchmarks.campaign_calls import Failed, failing, hold, place_of, rng_of
from benchmarks.campaign_inputs import BAD_ARRAYS, Hang, limit_memory, watchdog
from grassmann_classify.npz import load_npz
from grassmann_sc import files, frames, learn

SAMPLES = core.random_subspaces(12, 6, 2, 3)


READERS = {  # of the files of these names; all others are clips
    "dictionary.npz": files.load,
    "checkpoint.npz": lambda path: learn.gdl(
        SAMPLES, 3, 0.1, n_iter=2, rng=0, resume=path
    ),
    "sets.npz": load_npz,
}
STRICT = {"dictionary.npz", "checkpoint.npz"}  # of which any change must be refused


@functools.cache
def whole_files():
    """{name: bytes}."""
    import imageio.v3
    from PIL import Image

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (6, 12, 10)).astype(np.uint8)
    files.save("whole", SAMPLES[:5], lam=0.1, labels=["a", "b", "a", "b", "c"])
    found = {"dictionary.npz": Path("whole").read_bytes()}
    learn.gdl(SAMPLES, 3, 0.1, n_iter=1, rng=0, checkpoint="whole")
    found["checkpoint.npz"] = Path("whole").read_bytes()
    writers = {
        "clip.npy": lambda file: np.save(file, images),
        "clip.npz": lambda file: np.savez(file, frames=images),
        "packed.npz": lambda file: np.savez_compressed(
            file, frames=images, other=images[0]
        ),
        "clip.mat": lambda file: scipy.io.savemat(file, {"frames": images}),
        "packed.mat": lambda file: scipy.io.savemat(
            file, {"frames": images * 1.0}, do_compression=True
        ),
        "clip.gif": lambda file: imageio.v3.imwrite(file, images, extension=".gif"),
        "clip.png": lambda file: Image.fromarray(images[0]).save(file, "png"),
        "clip.tif": lambda file: Image.fromarray(images[0]).save(file, "tiff"),
        "sets.npz": lambda file: np.savez(file, **stacked_sets(images)),
    }
    return found | {name: written(write) for name, write in writers.items()}


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def stacked_sets(images):
    return {
        "frames": images,
        "offset": np.arange(7),
        "label": np.array(list("aabbab")),
        "train0": np.arange(4),
        "test0": np.array([4, 5]),
    }


def with_flipped_bits(rng, data):
    changed = np.frombuffer(data, np.uint8).copy()
    for at in rng.integers(0, len(data), rng.integers(1, 6)):
        changed[at] ^= 1 << rng.integers(8)
    return changed.tobytes()


def with_a_damaged_head(rng, data):
    changed = np.frombuffer(data, np.uint8).copy()
    bad = [*b"\0\xff()'", 48 + rng.integers(10)]
    changed[rng.integers(0, min(200, len(data)), 3)] = rng.choice(bad, 3)
    return changed.tobytes()


def with_another_part(rng, data, make, length=None):
    at, end = sorted(rng.integers(0, len(data) + 1, 2))
    end = end if length is None else min(at + length, len(data))
    return data[:at] + make(int(end - at)) + data[end:]


DAMAGES = {
    "truncated": lambda rng, data: data[: int(rng.integers(len(data)))],
    "with flipped bits": with_flipped_bits,
    "with other bytes": lambda rng, data: with_another_part(rng, data, rng.bytes, 8),
    "with a damaged head": with_a_damaged_head,
    "with a hole": lambda rng, data: with_another_part(rng, data, bytes),
    "without a part": lambda rng, data: with_another_part(rng, data, lambda n: b""),
    "with more": lambda rng, data: data + rng.bytes(int(rng.integers(1, 100))),
}


def damaged(seed, case):
    """First every crafted file, then files damaged at random."""
    limit_memory()
    crafted = crafted_archives() + crafted_clips()
    if case < len(crafted):
        name, about, data = crafted[case]
    else:
        rng = rng_of("damaged", seed, case)
        name = list(whole_files())[case % len(whole_files())]
        about = str(rng.choice([*DAMAGES, "truncated", "with flipped bits"]))
        data = DAMAGES[about](rng, whole_files()[name])
    Path(name).write_bytes(data)
    with failing(f"{name}, {about}"):
        check_reading(name, data == whole_files().get(name))


def check_reading(name, is_whole):
    try:
        with watchdog():
            reader = READERS.get(name, lambda path: np.array(frames.read_frames(path)))
            result = reader(os.path.abspath(name))
    except Hang:
        raise Failed("hangs", f"{name} hangs") from None
    except ValueError as error:
        place = f"does not name the file, {place_of(error)}"
        return hold(
            name == "sets.npz" or name in str(error), f"{place}: {error}", place
        )
    hold(is_whole or name not in STRICT, "accepted")
    if name not in READERS:
        hold(result.ndim > 1, f"no frames: {result.shape}")


HUGE = 2**62


def npy(array=None, header=None):
    """An array as .npy, or any header with nothing behind it."""
    if header is None:
        return written(lambda file: np.save(file, array))
    text = header.encode().ljust(128 - 10 - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def shaped(shape, dtype="<f8"):
    return npy(
        header=f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}"
    )


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
        return {
            info.filename.removesuffix(".npy"): archive.read(info)
            for info in archive.infolist()
        }


HEADERS = {
    "a shape of 2**62": shaped((HUGE,)),
    "a shape of 2**124": shaped((HUGE, HUGE)),
    "a negative shape": shaped((-1, 2)),
    "a shape of text": shaped("'abc'"),
    "40 axes": shaped((1,) * 40),
    "objects": shaped((3,), "|O"),
    "records": npy(
        header="{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (0,), }"
    ),
    "an unclosed header": npy(
        header="{'descr': '<f8', 'fortran_order': False, 'shape': (3,"
    ),
    "a header of code": npy(header="__import__('os').getcwd()"),
    "a header of brackets": npy(header="[" * 110),
    "a header of a number": npy(header="10**9"),
    "no dtype": shaped((3,), "abc"),
    "bytes of nothing": b"",
    "an unknown version": b"\x93NUMPY\x09\x00" + bytes(100),
}


@functools.cache
def crafted_archives():
    """(name, what is wrong, bytes) of dictionaries and checkpoints."""
    found = []
    for name in sorted(STRICT):
        members = members_of(whole_files()[name])
        for member in members:
            for about, header in HEADERS.items():
                found.append(
                    (name, f"{about} in {member}", {**members, member: header})
                )
            without = {key: value for key, value in members.items() if key != member}
            if member not in ("lam", "labels") or "key" in members:
                found.append((name, f"no {member}", without))
        found += [
            (name, f"{member}: {about}", {**members, member: changed})
            for member, about, changed in wrong_members(name, members)
        ]
        found.append((name, "an unknown member", {**members, "more": npy(np.ones(2))}))
    crafted = [(name, about, sealed(parts.items())) for name, about, parts in found]
    members = list(members_of(whole_files()["dictionary.npz"]).items())
    return [
        *crafted,
        ("dictionary.npz", "compressed", sealed(members, zipfile.ZIP_DEFLATED)),
        ("dictionary.npz", "a member twice", sealed([*members, members[0]])),
        ("dictionary.npz", "a checkpoint", whole_files()["checkpoint.npz"]),
        ("checkpoint.npz", "a dictionary", whole_files()["dictionary.npz"]),
    ]


CHANGES = BAD_ARRAYS | {
    "two": lambda valid, rng: np.stack([valid, valid]),
    "another": lambda valid, rng: (
        np.array("thing") if valid.dtype.kind == "U" else valid + 1
    ),
    "half precision": lambda valid, rng: valid.astype(np.float16),
    "integers": lambda valid, rng: valid.astype(int),
    "dates": lambda valid, rng: np.zeros(valid.shape, "M8[D]"),
}
FINITE = {
    "an entry of 4e307",
    "times 4e307",
    "times 1e-320",
    "zeros",
    "negative",
    "another",
    "half precision",
}
LEGAL = {
    "atoms": {"negative", "a column less"},
    "lam": FINITE - {"negative"},
    "codes": FINITE,
    # changes, of a member
    "costs": FINITE,
    "n_replaced": {"another"},
    "labels": {"zeros"},
}


def wrong_members(name, members):
    """(member, what is wrong, its bytes): each array changed as arguments are, and
    more.
    """
    rng = np.random.default_rng(0)
    for member, data in members.items():
        valid = np.load(io.BytesIO(data))
        for about, change in CHANGES.items():
            try:
                changed = npy(change(valid, rng))
            except (ValueError, TypeError, IndexError):  # there is no such array
                continue
            if changed != data and about not in LEGAL.get(member, set()):
                yield member, about, changed
    if name == "checkpoint.npz":
        yield "atoms", "another d", npy(core.random_subspaces(3, 5, 2, 0))
        yield "atoms", "another p", npy(core.random_subspaces(3, 6, 1, 0))
        yield from (
            ("rng", about, npy(np.array(text))) for about, text in WRONG_STATES.items()
        )


STATE = np.random.default_rng(0).bit_generator.state
WRONG_STATES = {  # of generators of random numbers
    "nothing": "",
    "not JSON": "abc",
    "deep": "[" * 100_000,
    "a list": "[]",
    "null": "null",
    "no state": '{"bit_generator": "PCG64"}',
    "huge": json.dumps({**STATE, "state": {"state": 10**60, "inc": -1}}),
}


@functools.cache
def crafted_clips():
    """Clips with hostile headers, arrays that are no clips, and files that lie about
    their kind.
    """
    found = []
    images = np.zeros((6, 12, 10), np.uint8)
    for about, header in HEADERS.items():
        found.append(("clip.npy", about, header))
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            found.append(("clip.npz", about, sealed([("frames", header)], compression)))
        sets = {name: npy(array) for name, array in stacked_sets(images).items()}
        for name in ("frames", "offset", "label", "train0"):
            found.append(
                (
                    "sets.npz",
                    f"{about} in {name}",
                    sealed({**sets, name: header}.items()),
                )
            )
    arrays = {
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
    for about, array in arrays.items():
        found.append(("clip.npy", about, npy(array)))
        found.append(("clip.npz", about, sealed([("frames", npy(array))])))
    matlab = {
        "a struct": {"a": 1},
        "text": "abc",
        "a cell": np.array([np.ones(3), "a"], object),
    }
    for about, value in matlab.items():
        found.append(
            (
                "clip.mat",
                about,
                written(lambda file: scipy.io.savemat(file, {"frames": value})),
            )
        )
    lies = {
        "empty": b"",
        "text": b"hello\n" * 30,
        "a zip": whole_files()["clip.npz"],
        "a picture": whole_files()["clip.png"],
        "zeros": bytes(5000),
        "MATLAB 7.3": b"MATLAB 7.3 MAT-file".ljust(124) + b"\0\2IM" + bytes(512),
    }
    for suffix in ("npy", "npz", "mat", "gif", "png", "tif", "mp4", "avi"):
        found += [(f"clip.{suffix}", about, data) for about, data in lies.items()]
    return found
