"""Pictures as files, for the examples."""

import matplotlib.pyplot as plt

from grassmann_sc import files


def save_picture(path, ax):
    """The picture of these axes as a file, whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_whole(path, lambda file: ax.figure.savefig(file, dpi=120, format="png"))
    plt.close(ax.figure)
    return path
