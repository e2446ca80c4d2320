"""Who imports whom: python -m docs.layout

Reads the toolkit's modules and draws who imports whom into docs/pictures/layout.png.
All import the core, and most shared.py: their arrows are left out; dashed: an import
within a function. Likewise the application into docs/pictures/application.png, where
arrows that follow from others are left out.
"""

import ast

from examples.common import of_nothing, parsed

parsed(__name__, of_nothing, "docs.layout")

import matplotlib
import matplotlib.pyplot as plt

from docs.snippets import DPI, keep
from docs.sources import CORE, ROOT, modules, own_files
from setup import APPLICATION

PICTURE = ROOT / "docs" / "pictures" / "layout.png"
OF_APPLICATION = ROOT / "docs" / "pictures" / "application.png"
COLORS = {
    "": "#9FD3F5",
    "baselines": "#F3C96B",
    "large": "#A8D8A0",
}  # of the root, and of a folder
LEVEL = 1.8  # between modules and what they import
STEP = 0.5  # between neighbours
WIDTH = 0.62  # inches
HEIGHT = 0.95


def imported_modules(path, names, package=CORE):
    """{module of a package: is it imported within functions alone} of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    top = {id(node) for node in tree.body}
    imports = {}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").partition(".")[0] == package
        ):
            for alias in node.names:
                name = f"{node.module}.{alias.name}".removeprefix(f"{package}.")
                name = name if name in names else name.rpartition(".")[0]
                if name in names:
                    later = id(node) not in top
                    imports[name] = imports.get(name, True) and later
    return imports


def plan():
    """{module: what it imports} of all modules but those that all import."""
    paths = {n: path for n, path in modules().items() if n not in (CORE, "shared")}
    return {name: imported_modules(path, paths) for name, path in paths.items()}


def plan_of_application():
    """{module: what it imports, but for what follows from that} of the application."""
    files = [name for name in own_files() if name.startswith(f"{APPLICATION}/")]
    paths = {ROOT.joinpath(name).stem: ROOT / name for name in files}
    paths.pop("__init__")
    imports = {
        name: imported_modules(path, paths, APPLICATION) for name, path in paths.items()
    }

    def below(module):
        return {module}.union(*map(below, imports[module]))

    return {
        name: {
            other: later
            for other, later in others.items()
            if not any(other in below(third) for third in others if third != other)
        }
        for name, others in imports.items()
    }


def levels(imports):
    """How far each module stands above the core: 0 if it imports nothing else at its
    top.
    """
    height = {}

    def of(module):
        if module not in height:
            below = [of(other) for other, later in imports[module].items() if not later]
            height[module] = 1 + max(below, default=-1)
        return height[module]

    for module in imports:
        of(module)
    return height


def places(imports):
    """(x, y) of each module: higher than what it imports, those of a folder to the
    right, else as what imports them stands from left to right. Neighbours differ in
    height, so that names fit.
    """
    height = levels(imports)
    rows = [
        [m for m in imports if height[m] == level]
        for level in range(max(height.values()) + 1)
    ]
    widest = max(map(len, rows))
    place = {}
    for level in reversed(range(len(rows))):

        def wish(module):
            above = [place[m][0] for m in place if module in imports[m]]
            return "." in module, sum(above) / len(above) if above else widest, module

        for k, module in enumerate(sorted(rows[level], key=wish)):
            x = (k + 0.5) * widest / len(rows[level])
            place[module] = (x, LEVEL * level + STEP * (k % 3))
    return place


def draw(imports, core=True):
    """Axes with a box a module, arrows to what it imports, and the core below all."""
    place = places(imports)
    widest = max(x for x, _ in place.values()) + 0.5
    bottom = -STEP
    if core:
        place[CORE] = (widest / 2, -LEVEL / 2)
        bottom -= LEVEL / 2
    top = max(y for _, y in place.values()) + STEP
    size = (WIDTH * (widest + 2 * STEP), HEIGHT * (top - bottom))
    ax = plt.figure(figsize=size, dpi=DPI).add_axes((0, 0, 1, 1))
    boxes = {}
    for module, (x, y) in place.items():
        folder = module.rpartition(".")[0]
        name = (
            f"{CORE}, shared: imported by all"
            if module == CORE
            else module.replace(".", "/\n")
        )
        boxes[module] = ax.text(
            x,
            y,
            name,
            ha="center",
            va="center",
            fontsize=9,
            zorder=2,
            bbox={"boxstyle": "round", "facecolor": COLORS[folder], "edgecolor": "0.3"},
        )
    ax.set(xlim=(-STEP, widest + STEP), ylim=(bottom, top))
    ax.axis("off")
    ax.figure.canvas.draw()  # gives the boxes their sizes
    for module, others in imports.items():
        for other, later in others.items():
            ax.annotate(
                "",
                place[other],
                place[module],
                zorder=1,
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": "0.45",
                    "linewidth": 0.9,
                    "shrinkA": 0,
                    "shrinkB": 1,
                    "patchA": boxes[module].get_bbox_patch(),
                    "patchB": boxes[other].get_bbox_patch(),
                    "linestyle": "--" if later else "-",
                },
            )
    return ax


def main():
    """Draw the picture and say where it is."""
    matplotlib.use("agg")
    for figure, path in (
        (draw(plan()).figure, PICTURE),
        (draw(plan_of_application(), core=False).figure, OF_APPLICATION),
    ):
        keep(figure, path)
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
