"""Pictures as files, for the examples."""

from pathlib import Path

import matplotlib.pyplot as plt

from examples.options import DPI, FORMATS
from grassmann_sc import files

LIST = "pictures.txt"  # in a folder: the names of those that the next run removes


def save_picture(path, ax, options=None, listed=False):
    """The picture of these axes as a file, whole or not at all; its folder is made. Returns its
    path.

    path: without a suffix. options: .format and .dpi, as the scripts are asked for them. listed:
    remove_pictures will remove it.
    """
    kind = getattr(options, "format", FORMATS[0])
    dpi = getattr(options, "dpi", DPI)
    path = path.with_name(f"{path.name}.{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    if listed:
        with open(path.with_name(LIST), "a", encoding="utf-8") as file:
            file.write(f"{path.name}\n")
    try:
        files.write_whole(path, lambda file: ax.figure.savefig(file, dpi=dpi, format=kind))
    finally:
        plt.close(ax.figure)
    return path


def remove_pictures(folder):
    """Remove the pictures that the list of a folder names, and the list."""
    try:
        names = (folder / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return
    for name in names:
        if Path(name).name == name and Path(name).suffix[1:] in FORMATS:
            (folder / name).unlink(missing_ok=True)
    (folder / LIST).unlink()
