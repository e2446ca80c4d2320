"""Save pictures as files, and keep the folder of results, for the examples."""

import re
from pathlib import Path

import matplotlib.pyplot as plt

from examples.options import DPI, FORMATS
from grassmann_sc import files

LINE = 20  # letters under an image of a sheet
LIST = "files.txt"  # the names of the files that the next run removes
KINDS = {f".{kind}" for kind in (*FORMATS, "json", "npz", "csv", "html")}


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


def row_of(image, words, *parts):
    """A row of plots.plot_sheet: an image, and what explains it.

    parts: [(image or None, words), ...] each, with a gap before each part.
    """
    row = [(image, words)]
    for part in parts:
        shown = [one for one in part if one[0] is not None]
        row += [None, *shown] if shown else []
    return row


def caption(name, label=None):
    """The name of a clip in two lines, without its class folder and its ending.

    If it is longer, without the part before the second line's.

    >>> caption("run/person_03_outdoors_take_2.avi", "run")
    'person_03_outdoors\\n_take_2'
    """
    name = re.sub(r"\.\w{1,4}$", "", name.removeprefix(f"{label}/"))
    if len(name) <= LINE:
        return name
    breaks = [m.start() for m in re.finditer(r"[\W_]", name[: LINE + 1])]
    at = max([k for k in breaks if k >= LINE // 2], default=LINE)
    end = name[at:]
    return f"{name[:at]}\n{end if len(end) <= LINE else '…' + end[1 - LINE :]}"


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
