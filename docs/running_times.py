"""The running times of the paper's page as a picture: python -m docs.running_times

Reads the seconds from the table of docs/paper.rst, which examples.table_running_time
measured, and draws them beside the paper's into docs/pictures/running_time.png.
"""

import re

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "docs.running_times")

import matplotlib

from docs.snippets import keep
from docs.sources import ROOT
from examples import table_running_time

PAGE = ROOT / "docs" / "paper.rst"
PICTURE = ROOT / "docs" / "pictures" / "running_time.png"


def measured():
    """{row of table_running_time: seconds for each d} as the page has them."""
    text = PAGE.read_text(encoding="utf-8").partition("seconds of one core")[2]
    seconds = {}
    for task in table_running_time.TASKS:
        row = re.search(rf"^{task}  +(.*)$", text, re.MULTILINE)[1]
        seconds[task] = [float(cell.split()[0]) for cell in re.split(" {2,}", row)]
    return seconds


def draw():
    """Axes with the times against d."""
    ax = table_running_time.draw(measured())
    ax.set(xlabel="d, of subspaces of dimension 3 of R^d", ylabel="seconds")
    return ax


def main():
    """Draw the picture and say where it is."""
    matplotlib.use("agg")
    keep(draw().figure, PICTURE)
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
