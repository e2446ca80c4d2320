"""The command grassmann-classify, run in this process, and clips in class folders."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np

from grassmann_classify.__main__ import main

QUICK = "--p 2 --repeats 1 --lam 0.1 --neighbors 1 --C 1 --skip".split()


def run(*words):
    """What the command ends with: None, a status or a message; never a traceback."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            main([str(word) for word in words], "grassmann-classify")
            end = None
        except SystemExit as error:
            end = error.code
    assert "Traceback" not in output.getvalue()
    assert end in (None, 0, 1, 2) or isinstance(end, str)
    return end


def compare(data, out, *options):
    """How compare ends, and its results, {} without any."""
    before = {*Path(out).parent.glob("*/results.json")}
    end = run("compare", data, "--out", out, *QUICK, *options)
    new = {*Path(out).parent.glob("*/results.json")} - before
    file = min(new, default=Path(out, "nothing"))
    return end, json.loads(file.read_text()) if file.exists() else {}


def frames(rng, n=4):
    return rng.integers(0, 256, (n, 6, 5)).astype(np.uint8)


def put(path, content):
    """Write frames, bytes, a folder (None) or a link to a name there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        path.mkdir()
    elif isinstance(content, str):
        path.symlink_to(content)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.save(path, content)


def put_classes(root, rng, names, n_clips=4):
    """Class folders of so many good clips; their names."""
    clips = [f"{name}/{i}.npy" for name in names for i in range(n_clips)]
    for clip in clips:
        put(root / clip, frames(rng))
    return clips
