"""Pictures as files, for the examples."""

import matplotlib.pyplot as plt

from examples.options import DPI, FORMATS
from grassmann_sc import files


def save_picture(path, ax, options=None):
    """The picture of these axes as a file, whole or not at all; its folder is made. Returns its
    path.

    path: without a suffix. options: .format and .dpi, as the scripts are asked for them.
    """
    kind = getattr(options, "format", FORMATS[0])
    dpi = getattr(options, "dpi", DPI)
    path = path.with_name(f"{path.name}.{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, lambda file: ax.figure.savefig(file, dpi=dpi, format=kind))
    plt.close(ax.figure)
    return path
