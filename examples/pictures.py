"""Save pictures as files, and keep the folder of results, for the examples."""

from pathlib import Path

import matplotlib.pyplot as plt

from examples.options import DPI, FORMATS
from grassmann_sc import files

LIST = "files.txt"  # the names of the files that the next run removes
KINDS = {f".{kind}" for kind in (*FORMATS, "json", "npz", "csv")}


def save_picture(path, ax, options=None, write=files.write_whole):
    """Save the picture of these axes, whole or not at all; returns its path.

    path: without a suffix; its folder is made. options: .format and .dpi, as the
    scripts take them. write: as files.write_whole.
    """
    kind = getattr(options, "format", FORMATS[0])
    dpi = getattr(options, "dpi", DPI)
    path = path.with_name(f"{path.name}.{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        write(path, lambda file: ax.figure.savefig(file, dpi=dpi, format=kind))
    finally:
        plt.close(ax.figure)
    return path


class Results:
    """A folder of results; the first file written removes those of the last run."""

    def __init__(self, folder):
        self.folder = folder
        self.names = None

    def write(self, path, write):
        """As files.write_whole, of a file in the folder."""
        if self.names is None:
            remove_files(self.folder)
            self.names = set()
        if path.name not in self.names:
            self.names.add(path.name)
            with open(self.folder / LIST, "a", encoding="utf-8") as file:
                file.write(f"{path.name}\n")
        files.write_whole(path, write)


def remove_files(folder):
    """Remove the files that the list of a folder names, and the list."""
    try:
        names = (
            (folder / LIST).read_text(encoding="utf-8", errors="replace").splitlines()
        )
    except FileNotFoundError:
        return
    for name in names:
        if Path(name).name == name and Path(name).suffix in KINDS:
            (folder / name).unlink(missing_ok=True)
    (folder / LIST).unlink()
