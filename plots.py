"""Pictures: atoms as images, principal angles, Gram and confusion matrices, sheets of
frames, codes by class, maps of sets, answers over time, convergence.

Every function takes its data first and ax=None by keyword, draws into these axes or
into a new figure, and returns the axes. None of them shows or saves anything or changes
matplotlib's settings. The colours suit colour-blind readers.
"""

from __future__ import annotations

import contextlib
import itertools
import textwrap
from collections.abc import Sequence

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.sparse
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

import grassmann_sc as core
from grassmann_sc import shared

__all__ = [
    "plot_atoms",
    "plot_principal_angles",
    "plot_angles_pair",
    "plot_gram",
    "plot_confusion",
    "plot_sheet",
    "plot_map",
    "plot_timeline",
    "plot_codes",
    "plot_convergence",
]

BLUE = "#0072B2"  # the colours of Okabe and Ito
VERMILION = "#D55E00"
GREY = "0.6"
CLASS_COLORS = [BLUE, "#E69F00", "#009E73", VERMILION, "#CC79A7", "#56B4E9", "black"]
CLASS_HATCHES = ["", "...", "xxx", "++"]  # of classes beyond the colours
UNLIKE_ALL = {"facecolor": "white", "edgecolor": GREY, "hatch": "////", "linewidth": 0}
CLASS_MARKERS = "os^Dv*PX<>"  # their number and that of the colours share no factor
# (colour, marker) of 70 classes; neighbours differ in both
LOOKS = [*zip(CLASS_COLORS * len(CLASS_MARKERS), CLASS_MARKERS * len(CLASS_COLORS))]
FONT = 8  # points, for names that are thinned out or cut to fit
LEGIBLE = 3  # points; smaller names are left out
CHAR_WIDTH = 0.65  # in font sizes
LINE_HEIGHT = 1.3
LONGEST_NAME = 16  # characters
LONGEST_TITLE = 20  # font sizes
LEGEND_ROW = 0.2  # inches
LEGEND_COLUMN = 1.5
MOST_ROWS = 20
GAP = 0.3  # in a sheet, in units of the size of a square image
WIDEST_IMAGE = 1.8
SHEET = 8.4  # width up to which rows of a sheet stand beside each other
BESIDE = 0.5  # between these
FEWEST_ROWS = 3  # below each other, before others stand beside them


# ------------------------------------------------------------------------- the pictures


def plot_atoms(
    D: ArrayLike,
    image_shape: tuple[int, int],
    *,
    labels: core.Labels | None = None,
    ax: plt.Axes | None = None,
) -> plt.Axes:
    """The leading basis vectors of each atom as images.

    Atoms in a grid, an atom's directions from left to right. A basis vector's sign says
    nothing, so each image is divided by its entry of largest magnitude: 1 is red, 0
    white, -1 blue. D: (N, d, p), N >= 1; of more than three directions the first three
    are drawn. image_shape: (height, width) with height * width = d. labels: N names,
    written above the atoms (default: 0 to N - 1).

    ValueError for D or labels of other shapes, or an image_shape of other size.

    >>> from grassmann_sc import plots, random_subspaces
    >>> ax = plots.plot_atoms(random_subspaces(4, 48, 3, rng=0), (6, 8))
    """
    D = shared.shaped_array(D, "D", ("N", "d", "p"))
    N, d, p = D.shape
    h, w = shared.check_integers(
        image_shape, "image_shape", 2, "two integers (height, width)"
    )
    if h * w != d:
        raise ValueError(
            f"image_shape must have height * width = d = {d}, got {image_shape}"
        )
    k = min(p, 3)
    labels = range(N) if labels is None else labels
    core.check_labels(labels, N)
    vectors = D[:, :, :k].transpose(0, 2, 1)  # (N, k, d)
    at = np.abs(vectors).argmax(axis=2)[..., None]  # (N, k, 1)
    largest = np.take_along_axis(vectors, at, axis=2)
    images = (vectors / np.where(largest == 0, 1, largest)).reshape(N, k, h, w)
    canvas, corners, band = _mosaic(images)
    inches = min(0.6 / w, 9 / max(canvas.shape))  # a pixel
    ax = _axes(
        ax, max(2.8, canvas.shape[1] * inches + 0.2), canvas.shape[0] * inches + 1
    )
    ax.imshow(
        canvas,
        cmap=matplotlib.colormaps["RdBu_r"].with_extremes(bad="0.88"),
        vmin=-1,
        vmax=1,
        interpolation="nearest",
    )
    order = "leading direction" if k == 1 else f"{k} leading directions, left to right"
    ax.set(
        xticks=[],
        yticks=[],
        xlabel=f"{order}\n(white: 0; red, blue: opposite signs)",
    )
    # after the layout
    pixel = 0.9 * min(np.divide(_size_in_points(ax), canvas.shape[::-1]))
    fontsize = min(FONT, pixel * band / LINE_HEIGHT)
    if fontsize > LEGIBLE:
        for label, (x, y) in zip(labels, corners):
            label = _cut(label, pixel * k * w / fontsize)
            ax.text(x - 0.5, y - 0.7, label, fontsize=fontsize, va="bottom")
    return ax


def plot_principal_angles(
    X: ArrayLike, *, labels: core.Labels | None = None, ax: plt.Axes | None = None
) -> plt.Axes:
    """Draw principal angles within a set in degrees as a matrix, grouped by class.

    X (n, d, p), n >= 1: the root mean square of the p angles of each pair,
    geodesic_distance / sqrt(p). labels: n classes, which sort the set; the colours span
    the pairs, the diagonal of zeros lies below them. See also plot_angles_pair.

    ValueError unless X holds bases, and labels are n.

    >>> from grassmann_sc import plots, random_subspaces
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> ax = plots.plot_principal_angles(X, labels=["ape", "bee"] * 3)
    """
    X = shared.shaped_array(X, "X", ("N", "d", "p"))
    angles = np.degrees(core.geodesic_distance(X) / np.sqrt(X.shape[2]))  # (n, n)
    return _class_matrix(angles, labels, 90, "RMS principal angle (degrees)", "min", ax)


def plot_angles_pair(
    X: ArrayLike,
    Y: ArrayLike,
    *,
    names: Sequence[str] = ("X", "Y"),
    ax: plt.Axes | None = None,
) -> plt.Axes:
    """Principal angles in degrees between two subspaces as bars, ascending.

    They bear the names of both. X (d, p), Y (d, q); min(p, q) angles. names: of both,
    for the axis.

    ValueError unless X and Y are bases of one d.

    >>> import numpy as np
    >>> from grassmann_sc import plots
    >>> axes = np.eye(4)
    >>> ax = plots.plot_angles_pair(axes[:, [0, 1]], axes[:, [0, 2]], names=("ape", "bee"))
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.0, 90.0]
    """
    core.check_labels(names, 2, "names", "subspaces")
    first, second = names
    X = shared.shaped_array(X, "X", ("d", "p"))
    Y = shared.shaped_array(Y, "Y", ("d", "q"))
    angles = np.degrees(core.principal_angles(X, Y))
    ax = _axes(ax, 6, 4)
    bars = ax.bar(np.arange(1, len(angles) + 1), angles, color=BLUE)
    texts = [f"{angle:.1f}°" if angle >= 0.1 else f"{angle:.1g}°" for angle in angles]
    width = 0.8 * _size_in_points(ax)[0] / len(angles)
    if max(map(len, texts)) * CHAR_WIDTH * FONT < width:
        ax.bar_label(bars, texts, fontsize=FONT, padding=2)
    ax.set(
        xlabel=f"index\n{_cut(first, LONGEST_TITLE)} (dimension {X.shape[1]}) and "
        f"{_cut(second, LONGEST_TITLE)} ({Y.shape[1]})",
        ylabel="principal angle (degrees)",
        ylim=(0, 97),
        yticks=range(0, 91, 15),
    )
    ax.locator_params(axis="x", integer=True)
    return ax


def plot_gram(
    K: ArrayLike, labels: core.Labels | None = None, *, ax: plt.Axes | None = None
) -> plt.Axes:
    """A Gram matrix as a picture, sorted by class.

    Inner products of sets of one class should outshine the others. K: (n, n),
    symmetric, as projection_kernel gives it. labels: n classes. The colours span the
    pairs of different sets.

    ValueError unless K is symmetric, and labels are n.

    >>> from grassmann_sc import plots, projection_kernel, random_subspaces
    >>> K = projection_kernel(random_subspaces(6, 10, 2, rng=0))
    >>> ax = plots.plot_gram(K, ["ape", "bee"] * 3)
    """
    K = core.check_symmetric(K, "K")
    return _class_matrix(K, labels, K[0, 0], "inner product", "both", ax)


def plot_confusion(
    truth: core.Labels,
    predicted: core.Labels,
    *,
    n_splits: int = 1,
    ax: plt.Axes | None = None,
) -> plt.Axes:
    """How often sets of each class (rows) were taken for each class (columns).

    Counts are shaded by their share of the row.

    truth, predicted: n classes each, n >= 1; classes that occur in either have a row
    and a column, in sorted order. n_splits: how many splits the counts sum, which the
    axis says where they are several.

    ValueError for labels of two lengths, or none; TypeError for what is no sequence.

    >>> from grassmann_sc import plots
    >>> ax = plots.plot_confusion(["ape", "ape", "bee"], ["ape", "bee", "bee"])
    >>> [text.get_text() for text in ax.texts]  # zeros are left out
    ['1', '1', '1']
    """
    n_splits = core.check_integer(n_splits, "n_splits", 1)
    counts, classes = _counts(truth, predicted)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    ax = _axes(ax, 6, 5)
    image = ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="share of the class")
    edges = np.arange(len(classes) + 1)
    _mark_classes(ax, "x", classes, edges, "white")
    _mark_classes(ax, "y", classes, edges, "white")
    # at which a count fits its cell
    characters = CHAR_WIDTH * len(str(counts.max())) * len(classes)
    fontsize = 0.7 * min(_size_in_points(ax)) / characters
    if fontsize > LEGIBLE:
        for row, column in np.argwhere(counts):
            ax.text(
                column,
                row,
                counts[row, column],
                ha="center",
                va="center",
                fontsize=min(FONT, fontsize),
                color="white" if shares[row, column] > 0.5 else "black",
            )
    summed = f" ({n_splits} splits summed)" if n_splits > 1 else ""
    ax.set(xlabel=f"predicted class{summed}", ylabel="true class")
    return ax


def plot_sheet(
    rows: Sequence[Sequence], *, ax: plt.Axes | None = None, note: str = ""
) -> plt.Axes:
    """A sheet of images in rows, with words under each: a set beside what explains it.

    rows: sequences of (image (height, width), words), or in colour (height, width, 3), of
    bytes or of 0 to 1; images are of any sizes, rows of any lengths, and None in place of
    a pair leaves a gap. Short rows stand beside each other, in their order. words: lines,
    each shown without its middle if it is too wide. note: a line under the sheet.

    ValueError if there is no image, TypeError for cells that are no pairs.

    >>> import numpy as np
    >>> from grassmann_sc import plots
    >>> image = np.zeros((6, 8))
    >>> row = [(image, "ape\\nclip 7"), None, (image, "0.31\\nclip 2")]
    >>> len(plots.plot_sheet([row, row]).images)
    4
    """
    read = [row for row in _read_sheet(rows) if row]
    cells = [cell for row in read for cell in row if cell is not None]
    if not cells:
        raise ValueError("rows must hold at least one image, got none")
    # of a cell; all are of one
    width = max(0.75 * image.shape[1] / image.shape[0] for image, _ in cells)
    width = min(WIDEST_IMAGE, max(1.0, width))
    longest = max(sum(GAP if cell is None else width for cell in row) for row in read)
    beside = int(max(1, (SHEET + BESIDE) // (longest + BESIDE)))
    beside = min(beside, -(-len(read) // min(len(read), FEWEST_ROWS)))
    right = beside * (longest + BESIDE) - BESIDE
    placed = []
    top = 0.0
    for first in range(0, len(read), beside):
        band = read[first : first + beside]
        height = max(
            _image_size(cell[0], width)[1] for row in band for cell in row if cell
        )
        most = max(len(cell[1].split("\n")) for row in band for cell in row if cell)
        for k, row in enumerate(band):
            x = k * (longest + BESIDE)
            for cell in row:
                if cell is not None:
                    placed.append((*cell, x + width / 2, top + height / 2))
                x += GAP if cell is None else width
        top += height + 0.15 + 0.1 * most
    if not isinstance(note, str):
        raise TypeError(f"note must be a string, got {note!r:.60}")
    note = textwrap.fill(note, int(72 * max(4.2, 1.4 * right) / FONT))
    spare = 1.1 + 0.25 * note.count("\n") if note else 0.8  # for title and note
    ax = _axes(ax, max(4.2, 1.4 * right + 0.2), 1.4 * top + spare)
    for image, words, x, y in placed:
        w, h = np.divide(_image_size(image, width), 2)
        ax.imshow(image, cmap="gray", extent=(x - w, x + w, y + h, y - h))
        text = "\n".join(_cut(line, 14 * width) for line in words.split("\n"))
        ax.text(x, y + h + 0.05, text, ha="center", va="top", fontsize=FONT - 1)
    ax.set(
        xlim=(-0.02, right),
        ylim=(top, -0.05),
        xticks=[],
        yticks=[],
        xlabel=_drawable(note),
        frame_on=False,
    )
    return ax


def _read_sheet(rows):
    """Rows of (image, words) or None, checked."""
    shared.check_sequence(rows, "rows", "sequences of (image, words)")
    for r, row in enumerate(rows):
        shared.check_sequence(row, f"rows[{r}]", "pairs (image, words)")
        read = [_read_cell(cell, f"rows[{r}][{c}]") for c, cell in enumerate(row)]
        yield read if any(read) else []


def _read_cell(cell, name):
    if cell is None:
        return None
    if not (isinstance(cell, (tuple, list)) and len(cell) == 2):
        raise TypeError(f"{name} must be (image, words) or None, got {cell!r:.60}")
    colours = [3] if getattr(cell[0], "ndim", 2) == 3 else []
    image = shared.shaped_array(cell[0], f"{name}[0]", ("height", "width", *colours))
    if colours and cell[0].dtype == np.uint8:  # as imshow takes colours of floats
        image = image / 255
    return image, str(cell[1])


def _image_size(image, width):
    """Width and height of an image in a cell of this width, which is one high."""
    h, w = image.shape[:2]
    scale = min(width / w, 1 / h) / 1.1
    return w * scale, h * scale


def plot_map(
    K: ArrayLike, labels: core.Labels | None = None, *, ax: plt.Axes | None = None
) -> plt.Axes:
    """Sets as points in the plane: the principal coordinates of chordal distances.

    The distances of points come nearest to those of the sets. With K centred = V L V^T
    the point of set i is (sqrt(l_1) v_i1, sqrt(l_2) v_i2): classical multidimensional
    scaling of the distances sqrt(K_ii + K_jj - 2 K_ij). The axes tell the share of the
    sum of squared distances that they show. Where points coincide, the lower ones are
    larger and show as rings. K: (n, n) Gram matrix of the sets, as projection_kernel
    gives it. labels: n classes, told apart by colour and marker.

    ValueError unless K is symmetric, and labels are n.

    >>> from grassmann_sc import plots, projection_kernel, random_subspaces
    >>> K = projection_kernel(random_subspaces(6, 10, 2, rng=0))
    >>> ax = plots.plot_map(K, ["ape", "bee"] * 3)
    """
    K = core.check_symmetric(K, "K").astype(float)
    n = len(K)
    order, classes, edges = _by_class(
        np.zeros(n) if labels is None else labels, n, "labels"
    )
    points, shares = _principal_coordinates(K)
    above = _number_above(points[order])[order.argsort()]
    with_legend = labels is not None and len(classes) <= 60
    columns = _legend_columns(classes, 5) if with_legend else 1
    ax = _axes(ax, 5 + LEGEND_COLUMN * columns, 5)
    members = np.split(order, edges[1:-1])
    for label, some, (color, marker) in zip(classes, members, itertools.cycle(LOOKS)):
        size = 40 if marker == "*" else 22  # of equal weight to the eye
        ax.scatter(
            *points[some].T,
            s=size * (1 + above[some]),
            color=color,
            marker=marker,
            linewidth=0.4,
            edgecolor="white",
            label=_cut(label, LONGEST_NAME * CHAR_WIDTH),
        )
    if with_legend:
        legend = _legend(ax, *ax.get_legend_handles_labels(), columns)
        for handle in legend.legend_handles:
            handle.set_sizes([22])
    ax.set(
        aspect="equal",
        adjustable="datalim",
        xlabel=f"first principal coordinate ({100 * shares[0]:.0f} %)",
        ylabel=f"second ({100 * shares[1]:.0f} %)",
    )
    return ax


def plot_timeline(
    stretches: Sequence[Sequence],
    truth: Sequence[Sequence] = (),
    *,
    unlike: str | None = None,
    unit: str = "seconds",
    ax: plt.Axes | None = None,
) -> plt.Axes:
    """Recordings as bars over time, the first on top, in the colours of classes.

    stretches: (recording, start, end, label), a bar a recording. truth: the same, thin
    bars above those of their recordings. unlike: the label, if any, that is hatched, of
    what is unlike all classes. unit: of starts and ends.

    ValueError for stretches that are no four entries, or none; TypeError for what is no
    sequence.

    >>> from grassmann_sc import plots
    >>> answers = [("day.csv", 0, 40, "walk"), ("day.csv", 40, 65, None)]
    >>> ax = plots.plot_timeline(answers, [("day.csv", 0, 42, "walk")])
    """
    parts = "tuples (recording, start, end, label)"
    shared.check_sequence(stretches, "stretches", parts, "stretch")
    shared.check_sequence(truth, "truth", parts)
    for rows, name in ((stretches, "stretches"), (truth, "truth")):
        for i, row in enumerate(rows):
            if not isinstance(row, (tuple, list)) or len(row) != 4:
                raise ValueError(
                    f"{name}[{i}] must be (recording, start, end, label), got {row!r}"
                )
            core.finite_array(row[1:3], f"{name}[{i}], start and end")
    recordings = dict.fromkeys(str(recording) for recording, *_ in stretches)
    if not isinstance(unlike, (str, type(None))):
        raise TypeError(f"unlike must be a label or None, got {unlike!r:.60}")
    place = {name: k for k, name in enumerate(recordings)}
    labels = [*({label for *_, label in [*stretches, *truth]} - {unlike})]
    order, _, _ = _by_class(labels, None, "labels")
    classes = [labels[i] for i in order]
    looks = [
        {"facecolor": color, "edgecolor": "white", "hatch": hatch, "linewidth": 0}
        for hatch, color in itertools.product(CLASS_HATCHES, CLASS_COLORS)
    ]
    looks = dict(zip(classes, itertools.cycle(looks))) | {unlike: UNLIKE_ALL}
    height = 1.2 + 0.45 * len(place)
    columns = _legend_columns(looks, height)
    ax = _axes(ax, 6.5 + LEGEND_COLUMN * columns, height)
    width = LONGEST_NAME * CHAR_WIDTH
    ticks = {}
    handles = {}
    for bars, low, height in ((stretches, 0, 0.5), (truth, -0.3, 0.26)):
        for recording, start, end, label in bars:
            name = str(recording)
            if name in place:
                y = place[name] + low
                ax.broken_barh([(start, end - start)], (y, height), **looks[label])
                text = "unlike all" if label is None and unlike is None else label
                text = _cut(text, 1.2 * width)
                handles[label] = Patch(label=text, **looks[label])
                ticks[y + height / 2] = "truth" if low else name
    order = [handles[label] for label in [*classes, unlike] if label in handles]
    _legend(ax, order, [handle.get_label() for handle in order], columns)
    ax.set_yticks([*ticks], [_cut(name, 1.5 * width) for name in ticks.values()])
    ax.set(
        ylim=(len(place) - 0.4, -0.4),
        xlabel=_drawable(f"time in {unit}"),
        ylabel="recording",
    )
    ax.tick_params(axis="y", length=0, labelsize=FONT)
    ax.spines[["top", "right", "left"]].set_visible(False)
    return ax


def plot_codes(
    codes: core.Codes,
    labels: core.Labels,
    *,
    atom_labels: core.Labels | None = None,
    ax: plt.Axes | None = None,
) -> plt.Axes:
    """Codes as a picture, a sample a row, sorted by class.

    White is zero; the strongest percent of the codes share a colour. The bar of codes
    without negative ones begins at zero. Where samples or atoms outnumber the pixels, a
    spot shows the strongest code that it covers. codes: (n, N), dense or scipy.sparse.
    labels: n classes. atom_labels: N classes, which sort the atoms too.

    ValueError for empty codes, or labels of another length.

    >>> from grassmann_sc import gsc, plots, random_subspaces
    >>> X = random_subspaces(6, 10, 2, rng=0)
    >>> ax = plots.plot_codes(gsc(X, X[:4], lam=0.1), ["ape", "bee"] * 3)
    """
    is_sparse = scipy.sparse.issparse(codes)
    core.finite_array(
        scipy.sparse.coo_array(codes).data if is_sparse else codes, "codes"
    )
    shape = np.shape(codes)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"codes must have shape (n, N) and not be empty, got {shape}")
    codes = scipy.sparse.coo_array(codes, dtype=float)
    codes.sum_duplicates()
    codes.eliminate_zeros()
    n, N = shape
    order, classes, edges = _by_class(labels, n, "labels")
    atom_order, atom_classes, atom_edges = _by_class(
        np.zeros(N) if atom_labels is None else atom_labels, N, "atom_labels", "atoms"
    )
    ax = _axes(ax, 7, 5)
    limit = np.percentile(np.abs(codes.data), 99) if codes.nnz else 1
    signed = codes.data.min(initial=0) < 0
    image = ax.imshow(
        _spots(codes, order, atom_order, ax),
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        interpolation="nearest",
        aspect="auto",
        extent=(-0.5, N - 0.5, n - 0.5, -0.5),
    )
    bar = ax.figure.colorbar(
        image, ax=ax, label="code", extend="both" if signed else "max"
    )
    bar.ax.set_ylim(-limit if signed else 0, limit)
    ax.set(
        xlabel="atom" if atom_labels is None else "atoms by class",
        ylabel="samples by class",
    )
    ax.locator_params(axis="x", integer=True)
    _mark_classes(ax, "y", classes, edges, GREY)
    if atom_labels is not None:
        _mark_classes(ax, "x", atom_classes, atom_edges, GREY)
    return ax


def _spots(codes, order, atom_order, ax):
    """The sorted codes as a picture of at most one spot for two pixels each way.

    The strongest code of a spot wins.
    """
    n, N = codes.shape
    width, height = np.multiply(_size_in_points(ax), ax.figure.dpi / 144)
    picture = np.zeros((min(n, max(1, int(height))), min(N, max(1, int(width)))))
    weak_first = np.abs(codes.data).argsort(kind="stable")
    rows = order.argsort()[codes.row[weak_first]]  # where each sample and atom goes
    columns = atom_order.argsort()[codes.col[weak_first]]
    spots = rows * len(picture) // n, columns * picture.shape[1] // N
    picture[spots] = codes.data[weak_first]
    return picture


def plot_convergence(costs: ArrayLike, *, ax: plt.Axes | None = None) -> plt.Axes:
    """The cost of dictionary learning after each half-step.

    costs: (n_half_steps,), after coding, after the update of the atoms, after coding,
    ..., as learn.gdl records them.

    ValueError unless costs are finite numbers in one axis.

    >>> from grassmann_sc import plots
    >>> ax = plots.plot_convergence([9.0, 7.0, 6.0, 5.5])
    >>> ax.get_lines()[0].get_ydata().tolist()
    [9.0, 7.0, 6.0, 5.5]
    """
    costs = shared.shaped_array(costs, "costs", ("n_half_steps",))
    ax = _axes(ax, 6, 4)
    iteration = np.arange(len(costs)) / 2
    ax.plot(iteration, costs, color=GREY, linewidth=1, zorder=1)
    size = 30 if len(costs) <= 60 else 8
    ax.scatter(
        iteration[::2], costs[::2], s=size, color=BLUE, marker="o", label="after coding"
    )
    ax.scatter(
        iteration[1::2],
        costs[1::2],
        s=size,
        facecolor="white",
        edgecolor=VERMILION,
        marker="s",
        label="after the atom update",
    )
    ax.set(xlabel="iteration", ylabel="cost, summed over the samples")
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False)
    return ax


# ----------------------------------------------------------------- what is in a picture


def _apart(places, least):
    """Indices of ascending places that leave at least so much between each other."""
    kept = [0]
    for i in range(1, len(places)):
        if places[i] - places[kept[-1]] >= least:
            kept.append(i)
    return kept


def _counts(truth, predicted):
    """(counts (C, C), classes) of labels."""
    shared.check_sequence(truth, "truth", "labels", "class")
    n = len(truth)
    core.check_labels(truth, n, "truth", "sets")
    core.check_labels(predicted, n, "predicted", "sets")
    order, classes, edges = _by_class([*truth, *predicted], 2 * n, "truth")
    index = np.repeat(np.arange(len(classes)), np.diff(edges))[order.argsort()]
    pairs = index[:n] * len(classes) + index[n:]
    return np.bincount(pairs, minlength=len(classes) ** 2).reshape(
        -1, len(classes)
    ), classes


def _mosaic(images):
    """(N, k, h, w) images on a canvas, NaN between.

    With each atom's top left pixel (x, y), and the free rows above it.
    """
    N, k, h, w = images.shape
    gap = max(1, w // 10)  # between images
    band = max(2, round(0.35 * min(h, w)))  # above them, for a label
    cell_h = h + band
    cell_w = k * (w + gap) + gap
    columns = min(N, round(np.sqrt(1.3 * N * cell_h / cell_w)) or 1)
    rows = -(-N // columns)
    canvas = np.full((rows * cell_h + gap, columns * cell_w + gap), np.nan)
    corners = [
        (gap + i % columns * cell_w, band + i // columns * cell_h) for i in range(N)
    ]
    for atom, (x, y) in zip(images, corners):
        for j, image in enumerate(atom):
            left = x + j * (w + gap)
            canvas[y : y + h, left : left + w] = image
    return canvas, corners, band


def _principal_coordinates(K):
    """Points (n, 2) of classical scaling, and the axes' share of the sum of squares."""
    n = len(K)
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = scipy.linalg.eigh(centred, subset_by_index=(max(n - 2, 0), n - 1))
    # one point has one coordinate: 0 is the other
    values = np.pad(np.maximum(values[::-1], 0), (0, 2 - len(values)))
    vectors = np.pad(vectors[:, ::-1], ((0, 0), (0, 2 - vectors.shape[1])))
    peak = vectors[np.abs(vectors).argmax(axis=0), np.arange(2)]
    vectors *= np.where(peak < 0, -1, 1)  # a sign that does not vary
    total = max(centred.trace(), np.finfo(float).tiny)
    return vectors * np.sqrt(values), values / total


def _number_above(points):
    """How many of the later points (n, 2) lie where each lies.

    Points a hundredth of the picture apart count as one.
    """
    side = max(float(np.ptp(points, axis=0).max()), np.finfo(float).tiny)
    places = np.round(100 * points / side).astype(int)
    return np.triu((places[:, None] == places).all(axis=2), 1).sum(axis=1)


def _class_matrix(values, labels, alone, meaning, extend, ax):
    """A matrix (n, n) of pairs of subspaces, sorted by class unless labels are None.

    The colours span the pairs, or end at alone where these are all 0.
    """
    n = len(values)
    order, classes, edges = _by_class(
        range(n) if labels is None else labels, n, "labels"
    )
    others = values[~np.eye(n, dtype=bool)]
    low, high = (others.min(), others.max()) if others.any() else (0, alone)
    ax = _axes(ax, 6, 5)
    image = ax.imshow(
        values[order][:, order],
        cmap="viridis",
        vmin=low,
        vmax=high,
        interpolation="nearest",
    )
    ax.figure.colorbar(image, ax=ax, label=meaning, extend=extend)
    name = "subspace" if labels is None else "subspaces by class"
    ax.set(xlabel=name, ylabel=name)
    ax.locator_params(integer=True)
    for axis in "" if labels is None else "xy":
        _mark_classes(ax, axis, classes, edges, "white")
    return ax


# -------------------------------------------------------------------- classes and names


def _mark_classes(ax, axis, classes, edges, color):
    """Lines between classes and names at their centres, as many as fit."""
    size = _size_in_points(ax)
    length = 0.8 * size["xy".index(axis)]  # less what the layout may take
    draw_line = ax.axvline if axis == "x" else ax.axhline
    for edge in edges[1:-1]:
        draw_line(
            edge - 0.5, color=color, linewidth=min(0.8, 0.02 * length / len(classes))
        )
    width = min(LONGEST_NAME * CHAR_WIDTH, 0.25 * min(size) / FONT)
    names = [_cut(name, width) for name in classes]
    centres = (edges[:-1] + edges[1:] - 1) / 2
    at = centres / edges[-1] * length
    longest = max(map(len, names)) * CHAR_WIDTH * FONT
    upright = axis == "x" and longest > np.diff(at).min(initial=length)
    kept = _apart(at, LINE_HEIGHT * FONT if upright or axis == "y" else 0)
    ticks = ax.xaxis if axis == "x" else ax.yaxis
    ticks.set_ticks(
        centres[kept],
        labels=[names[i] for i in kept],
        fontsize=FONT,
        rotation=90 if upright else 0,
    )


def _by_class(labels, n, name, owners="sets"):
    """The order that sorts n items by class, the classes, and their limits.

    A class begins and the last ends at limits (n_classes + 1,).
    """
    classes, index = core.check_labels(labels, n, name, owners)
    keys = [shared.natural_order(label) for label in classes.tolist()]
    natural = range(len(keys))
    with contextlib.suppress(TypeError):  # classes of several types stay as they are
        natural = sorted(natural, key=keys.__getitem__)
    index = np.argsort(natural)[index]
    order = index.argsort(kind="stable")
    limits = np.searchsorted(index[order], np.arange(len(keys) + 1))
    return order, classes[[*natural]].tolist(), limits


def _legend_columns(names, height):
    """In how many columns the names fit beside axes of so many inches."""
    return -(-len(names) // min(MOST_ROWS, int(height / LEGEND_ROW)))


def _legend(ax, handles, names, columns):
    """The legend right of the axes."""
    return ax.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(1, 1),
        fontsize=FONT,
        frameon=False,
        ncols=columns,
    )


def _cut(text, width):
    """The text, without its middle if it is wider than so many font sizes.

    Names that begin with _, which Matplotlib hides, get a space first.
    """
    text = str(text)
    text = f" {text}" if text.startswith("_") else text
    most = max(1, int(width / CHAR_WIDTH))
    if len(text) > most:
        text = text[: most // 2] + "…" + text[len(text) - (most - 1) // 2 :]
    return _drawable(text)


def _drawable(text):
    """The text as Matplotlib draws it: no formula, and ? for what is no UTF-8."""
    return text.encode("utf-8", "replace").decode().replace("$", r"\$")


# ---------------------------------------------------------------------- axes and checks


def _axes(ax, width, height):
    """The axes to draw into; new ones for None."""
    if ax is None:
        return plt.subplots(figsize=(width, height), layout="constrained")[1]
    if not hasattr(ax, "imshow"):
        raise TypeError(f"ax must be axes of Matplotlib or None, got {ax!r}")
    return ax


def _size_in_points(ax):
    """Width and height of the axes."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi
