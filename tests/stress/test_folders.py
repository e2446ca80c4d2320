"""The command on hostile folders, and everything that writes on a disk that fills."""

import os
import tempfile
from pathlib import Path

import imageio.v3
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grassmann_sc as core
from commands import compare, frames, put, put_classes
from grassmann_classify.words import printable
from grassmann_sc import files, learn
from grassmann_sc.large.codes import load_codes, write_codes
from hostile import FULL, is_full, small_disk
from problems import generators

RNG = np.random.default_rng(0)
NOISE = RNG.bytes(300)
FF = os.fsdecode(b"\xff")


def folder_of_images(name, prefix=""):
    images = {f"{name}/{prefix}{i}.png": frames(RNG)[0] for i in range(4)}
    return {
        path: imageio.v3.imwrite("<bytes>", image, extension=".png")
        for path, image in images.items()
    }


def files_npy(*names):
    return {name: frames(RNG) for name in names}


# What makes a folder hostile: files; the names of good clips and of bad ones, which are
# the files unless they are given.
HOSTILE = {
    "empty folders": ({"empty": None, "a/no_images": None}, [], ["a/no_images"]),
    "dead links": (
        {"a/broken.npy": "nowhere.npy", "a/itself.npy": "itself.npy"},
        [],
        None,
    ),
    "links in a loop": ({"a/up": "..", "loop": "."}, [], []),
    "odd names": (
        files_npy(
            *(
                f"b/{name}.npy"
                for name in [
                    "new\nline",
                    "  spaces  ",
                    "ünï 中文 🙂",
                    "quote'\"",
                    "-dash",
                    "%s{}\\n",
                    "a" * 240,
                    FF + FF,
                ]
            )
        ),
        None,
        [],
    ),
    "a bad odd name": ({f"b/{FF}\n 🙂.npy": b"nothing"}, [], None),
    **{
        f"a class {name!r}": (
            files_npy(*(f"{name}/{i}.npy" for i in range(4))),
            None,
            [],
        )
        for name in ["new\nline", "ünï 中文", " ", "-c", FF]
    },
    "another size": ({"a/large.npy": RNG.integers(0, 9, (4, 7, 7))}, [], None),
    "vectors": ({"a/vectors.npy": RNG.standard_normal((5, 11))}, [], None),
    "numbers": ({"a/float.npy": RNG.standard_normal((4, 6, 5))}, None, []),
    "damaged clips": (
        {
            f"a/{name}.{suffix}": data
            for suffix in ("npy", "npz", "mat", "gif", "tif", "mp4", "avi")
            for name, data in {"empty": b"", "damaged": NOISE}.items()
        },
        [],
        None,
    ),
    "one frame": ({"a/one_frame.npy": frames(RNG, 1)}, [], None),
    "NaN": ({"a/NaN.npy": np.full((4, 6, 5), np.nan)}, [], None),
    "black": ({"a/black.npy": np.zeros((4, 6, 5))}, [], None),
    "texts": ({"a/texts.npy": np.array([["a", "b"]] * 3)}, [], None),
    "images": (folder_of_images("a/images"), ["a/images"], []),
    "odd images": (folder_of_images("a/odd", f"{FF}\n"), ["a/odd"], []),
    "broken images": (
        {**folder_of_images("a/broken"), "a/broken/2.png": b"no picture"},
        [],
        ["a/broken/2.png"],
    ),
    "strangers": (
        dict.fromkeys(
            ["README.txt", "a/notes.txt", "a/.hidden.npy", ".hidden/x.npy"], b"nothing"
        ),
        [],
        [],
    ),
    "a broken class": ({f"d/{i}.npy": b"nothing" for i in range(3)}, [], None),
}
OPTIONS = [["--no-pictures", *more] for more in ([], ["--kernels"], ["--atoms", "2"])]


@pytest.mark.parametrize("name", HOSTILE)
@settings(max_examples=2)
@given(
    generators,
    st.sets(st.sampled_from([*HOSTILE]), max_size=4),
    st.sampled_from([*OPTIONS, []]),
    st.sampled_from([["abc", 4], ["ab", 4], ["a", 4], ["ab", 1]]),
)
def test_good_clips_are_used_and_others_named(name, rng, more, options, classes):
    """Unless there is nothing to learn from, which is said."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        root = Path(folder, "data")
        good = {*put_classes(root, rng, *classes)}
        bad = set()
        for kind in {name, *more}:
            content, ours, theirs = HOSTILE[kind]
            for path in content:
                put(root / path, content[path])
            good |= {*(content if ours is None else ours)}
            bad |= {*(content if theirs is None else theirs)}
        if os.geteuid() and more:
            put(root / "a/locked.npy", frames(RNG))
            (root / "a/locked.npy").chmod(0)
            bad |= {"a/locked.npy"}
        end, results = compare(root, Path(folder, "out"), *options)
        assert results or end is not None
        if len(classes[0]) > 1 and classes[1] > 1:
            assert results, end
            named = "\n".join(results["failed"])
            assert not [path for path in bad if printable(path) not in named]
            assert results["n_sets"] == len(good)


# --------------------------------------------------------------------- disks that fill


def fill_dictionary(rng, folder, enlarge):
    """The file is the old one or the new one, as save said."""
    path = folder / "dictionary.npz"
    held = None
    for d, p in ((5, 2), (int(rng.integers(10, 200)), 3)):
        atoms = core.random_subspaces(20, d, p, 2)
        held = held if is_full(lambda atoms=atoms: files.save(path, atoms)) else atoms
        if held is None:
            assert not path.exists()
        else:
            assert np.array_equal(files.load(path).atoms, held)


def fill_checkpoint(rng, folder, enlarge):
    """There is no checkpoint, or one that can be resumed."""
    X = core.random_subspaces(30, int(rng.integers(10, 200)), 2, 1)
    path = folder / "checkpoint.npz"
    options = dict(n_atoms=5, lam=0.2, n_iter=4, tol=0, rng=0)

    def take_more(state):  # the disk fills as learning goes on
        with open(folder / "more", "ab") as file:
            file.write(bytes(2**13))

    full = is_full(lambda: learn.gdl(X, checkpoint=path, callback=take_more, **options))
    assert full or path.exists()
    enlarge()
    resumed = learn.gdl(X, resume=path if path.exists() else None, **options)
    assert np.array_equal(resumed.atoms, learn.gdl(X, **options).atoms)


def fill_results(rng, folder, enlarge):
    """compare leaves whole files of all clips or an error that tells of the disk; all
    once the disk is larger.
    """
    data = Path("data_of_disks")  # on another disk
    clips = [*data.glob("*/*")]
    options = ["--kernels"] * int(rng.integers(2)) + ["--no-pictures"]
    for larger in (False, True):
        if larger:
            enlarge()
        end, results = compare(data, folder / "out", *options)
        assert end is not None or results
        assert end is None or any(os.strerror(number) in end for number in FULL)
        assert end is None or not larger
        assert not results or results["n_sets"] == len(clips)
        assert not results or not results["failed"]
        for path in folder.rglob("out*/*.npz"):
            with np.load(path) as arrays:
                assert all(arrays[name] is not None for name in arrays.files)


def fill_codes(rng, folder, enlarge):
    """What is left of codes that need more, in a file and in a folder of parts, is
    right: four blocks, of 17 MB or 80 kB in parts.
    """
    X = core.random_subspaces(13_000, 8, 2, rng)
    D = core.random_subspaces(500, 8, 2, rng)
    expected = core.glc(X, D, 2)
    for sparse, size in ((False, 40_000_000), (True, 200_000)):
        options = dict(n_neighbors=2, sparse_output=sparse)
        with small_disk(size) as (other, _):
            path = other / "codes"
            assert is_full(lambda p=path, o=options: write_codes(p, X, D, **o))
            codes = core.dense_codes(load_codes(path))
            assert 0 < len(codes) < len(X)
            assert np.abs(codes - expected[: len(codes)]).max() < 1e-9


FILLS = [
    fill_dictionary,
    fill_checkpoint,
    fill_results,
    fill_codes,
]


@pytest.mark.parametrize("fill", FILLS, ids=lambda fill: fill.__name__)
@settings(max_examples=8)
@given(rng=generators, size=st.integers(2**13, 2**18))
def test_a_full_disk_leaves_whole_files(fill, rng, size):
    """And of unfinished ones nothing."""
    put_classes(Path("data_of_disks"), RNG, "ab")
    with small_disk(size) as (folder, enlarge):
        fill(rng, folder, enlarge)
        assert not [path for path in folder.rglob("*") if "unfinished" in path.name]
