"""Pictures: atoms as images, principal angles, Gram and confusion matrices, codes by class, maps of sets, convergence.

Every function takes its data first and `ax=None` by keyword, draws into these axes or into a new figure, and returns
the axes. None of them shows or saves anything or changes matplotlib's settings. The colours suit colour-blind readers.
"""

import operator

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.sparse
from matplotlib.ticker import MaxNLocator

from grassmann_sc import geodesic_distance, principal_angles

BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "0.6"  # Okabe and Ito's, and a shade of grey
COLORS, MARKERS = [BLUE, "#E69F00", "#009E73", VERMILION, "#CC79A7", "#56B4E9", "black"], "os^Dv*PX<>"  # of classes
FONT = 8  # points, for names that are thinned out or cut to the room they have
CHAR, LINE = 0.65, 1.3  # width of a character and height of a line, in font sizes


def plot_atoms(D, image_shape, *, n_directions=None, labels=None, ax=None):
    """The leading basis vectors of each atom as images: atoms in a grid, an atom's directions from left to right.

    A basis vector's sign says nothing, so each image is divided by its entry of largest magnitude: 1 is red, 0 white,
    -1 blue.

    D : (N, d, p), N >= 1 ; image_shape : (height, width) with height * width = d
    n_directions : how many of an atom's p directions (default: 3, or p if less)
    labels : N names, written above the atoms (default: 0 to N - 1)
    """
    D = _real(D, "D", "(N, d, p)")
    N, d, p = D.shape
    h, w = _image_shape(image_shape, d)
    k = min(p, 3) if n_directions is None else n_directions
    if not isinstance(k, (int, np.integer)) or not 1 <= k <= p:
        raise ValueError(f"n_directions must be an integer in 1..{p}, got {n_directions!r}")
    labels = _list(range(N) if labels is None else labels, N, "labels")
    vectors = D[:, :, :k].transpose(0, 2, 1)  # (N, k, d)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=2)[..., None], axis=2)  # (N, k, 1)
    canvas, corners, band = _mosaic((vectors / np.where(largest == 0, 1, largest)).reshape(N, k, h, w))
    if ax is None:
        inches = min(0.6 / w, 9 / max(canvas.shape))  # a pixel
        ax = _new_axes(max(2.8, canvas.shape[1] * inches + 0.2), canvas.shape[0] * inches + 0.6)
    cmap = matplotlib.colormaps["RdBu_r"].with_extremes(bad="0.88")
    ax.imshow(canvas, cmap=cmap, vmin=-1, vmax=1, interpolation="nearest")
    order = "leading direction" if k == 1 else f"{k} leading directions, left to right"
    ax.set(xticks=[], yticks=[], xlabel=f"{order}\n(white: 0; red, blue: opposite signs)")
    points = 0.9 * min(np.divide(_size(ax), canvas.shape[::-1]))  # a pixel, when the layout is done
    size = min(FONT, points * band / LINE)
    for label, (x, y) in zip(labels if size > 3 else [], corners):  # smaller is not legible
        ax.text(x - 0.5, y - 0.7, _cut(label, points * k * w / size), fontsize=size, va="bottom")
    return ax


def plot_principal_angles(X, Y=None, *, labels=None, ax=None):
    """Principal angles in degrees: between two subspaces as bars, or within a set as a matrix grouped by class.

    X (d, p), Y (d, q) : bars of the min(p, q) angles, ascending
    X (n, d, p), n >= 1, without Y : the root mean square of the p angles of each pair, geodesic_distance / sqrt(p)
    labels : n classes, which sort the set; the colours span the pairs, the diagonal of zeros lies below them
    """
    if Y is not None:
        if labels is not None:
            raise ValueError("labels must be None for a pair of subspaces X, Y: they group a set X (n, d, p)")
        return _angle_bars(np.degrees(principal_angles(_real(X, "X", "(d, p)"), _real(Y, "Y", "(d, q)"))), ax)
    X = _real(X, "X", "(n, d, p)")
    n = len(X)
    order, classes, edges = _by_class(range(n) if labels is None else labels, n, "labels")
    angles = np.degrees(geodesic_distance(X[order]) / np.sqrt(X.shape[2]))  # (n, n)
    others = angles[~np.eye(n, dtype=bool)]
    return _class_matrix(angles, (others.min(initial=90), others.max(initial=0) or 90), None if labels is None else (classes, edges),
                         "RMS principal angle (degrees)", "min", ax)


def plot_gram(K, labels=None, *, ax=None):
    """A Gram matrix as a picture, sorted by class: inner products of sets of one class should outshine the others.

    K : (n, n), symmetric, as projection_kernel gives it ; labels : n classes ; the colours span the pairs of different sets
    """
    K = _gram_matrix(K)
    n = len(K)
    order, classes, edges = _by_class(range(n) if labels is None else labels, n, "labels")
    others = K[~np.eye(n, dtype=bool)]
    limits = (others.min(), others.max()) if n > 1 else (0, K[0, 0])
    named = None if labels is None else (classes, edges)
    return _class_matrix(K[order][:, order], limits, named, "inner product", "both", ax)


def plot_confusion(truth, predicted, *, ax=None):
    """How often sets of each class (rows) were taken for each class (columns): counts, shaded by their share of the row.

    truth, predicted : n classes each, n >= 1; classes that occur in either have a row and a column, in sorted order
    """
    truth, predicted = list(truth), list(predicted)
    _list(predicted, len(truth), "predicted")
    if not truth:
        raise ValueError("truth must hold at least one class, got none")
    order, classes, edges = _by_class(truth + predicted, 2 * len(truth), "truth")
    index = np.empty(len(order), int)
    index[order] = np.repeat(np.arange(len(classes)), np.diff(edges))
    counts = np.zeros((len(classes), len(classes)), int)
    np.add.at(counts, (index[:len(truth)], index[len(truth):]), 1)
    ax = _new_axes(6, 5) if ax is None else ax
    image = ax.imshow(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), cmap="Blues", vmin=0, vmax=1,
                      interpolation="nearest")
    _colorbar(image, "share of the class")
    edges = np.arange(len(classes) + 1)
    _mark_classes(ax, "x", classes, edges, "white")
    _mark_classes(ax, "y", classes, edges, "white")
    room = 0.7 * min(_size(ax)) / len(classes) / (CHAR * len(str(counts.max())))  # font size at which a count fits its cell
    if room > 3:
        for row, column in np.argwhere(counts):
            share = counts[row, column] / counts[row].sum()
            ax.text(column, row, counts[row, column], ha="center", va="center", fontsize=min(FONT, room),
                    color="white" if share > 0.5 else "black")
    ax.set(xlabel="predicted class", ylabel="true class")
    return ax


def plot_map(K, labels=None, *, ax=None):
    """Sets as points in the plane whose distances come nearest to their chordal distances: their principal coordinates.

    With K centred = V L V^T the point of set i is (sqrt(l_1) v_i1, sqrt(l_2) v_i2): classical multidimensional scaling of the
    distances sqrt(K_ii + K_jj - 2 K_ij). The axes tell the share of the sum of squared distances that they show.

    K : (n, n) Gram matrix of the sets, as projection_kernel gives it ; labels : n classes, told apart by colour and marker
    """
    K = _gram_matrix(K).astype(float)
    n = len(K)
    order, classes, edges = _by_class(np.zeros(n) if labels is None else labels, n, "labels")
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    top = min(2, n)
    values, vectors = scipy.linalg.eigh(centred, subset_by_index=(n - top, n - 1))
    values, vectors = np.pad(np.maximum(values[::-1], 0), (0, 2 - top)), np.pad(vectors[:, ::-1], ((0, 0), (0, 2 - top)))
    vectors *= np.where(vectors[np.abs(vectors).argmax(axis=0), np.arange(2)] < 0, -1, 1)  # a sign that does not vary
    points, total = vectors * np.sqrt(values), max(centred.trace(), np.finfo(float).tiny)
    ax = _new_axes(6.5, 5) if ax is None else ax
    for i, label in enumerate(classes):
        members = order[edges[i]:edges[i + 1]]
        ax.scatter(*points[members].T, s=18, color=COLORS[i % len(COLORS)], marker=MARKERS[i // len(COLORS) % len(MARKERS)],
                   linewidth=0, label=_cut(label, 16 * CHAR))
    if labels is not None and len(classes) <= 60:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=FONT, frameon=False, ncols=-(-len(classes) // 20))
    ax.set(aspect="equal", xlabel=f"first principal coordinate ({100 * values[0] / total:.0f} %)",
           ylabel=f"second ({100 * values[1] / total:.0f} %)")
    ax.set_adjustable("datalim")
    return ax


def plot_codes(codes, labels, *, atom_labels=None, ax=None):
    """Codes as a picture, a sample a row, sorted by class.

    White is zero; the strongest percent of the codes share a colour. Where samples or atoms outnumber the pixels, a spot
    shows the strongest code that it covers.

    codes : (n, N), dense or scipy.sparse ; labels : n classes ; atom_labels : N classes, which sort the atoms too
    """
    codes = scipy.sparse.coo_array(_real(codes, "codes", "(n, N)"), dtype=float)
    n, N = codes.shape
    order, *classes = _by_class(labels, n, "labels")
    atom_order, *atom_classes = _by_class(np.zeros(N) if atom_labels is None else atom_labels, N, "atom_labels")
    ax = _new_axes(7, 5) if ax is None else ax
    limit = np.percentile(np.abs(codes.data), 99) if codes.nnz else 1
    image = ax.imshow(_spots(codes, order, atom_order, ax), cmap="RdBu_r", vmin=-limit, vmax=limit,
                      interpolation="nearest", aspect="auto", extent=(-0.5, N - 0.5, n - 0.5, -0.5))
    _colorbar(image, "code", extend="both")
    ax.set(xlabel="atom" if atom_labels is None else "atoms by class", ylabel="samples by class")
    _mark_classes(ax, "y", *classes, GREY)
    if atom_labels is not None:
        _mark_classes(ax, "x", *atom_classes, GREY)
    return ax


def plot_convergence(costs, *, ax=None):
    """The cost of dictionary learning after each half-step.

    costs : (n_half_steps,), after coding, after the update of the atoms, after coding, ..., as learn.gdl records them
    """
    costs = _real(costs, "costs", "(n_half_steps,)")
    ax = _new_axes(6, 4) if ax is None else ax
    iteration = np.arange(len(costs)) / 2
    ax.plot(iteration, costs, color=GREY, linewidth=1, zorder=1)
    size = 30 if len(costs) <= 60 else 8
    ax.scatter(iteration[::2], costs[::2], s=size, color=BLUE, marker="o", label="after coding")
    ax.scatter(iteration[1::2], costs[1::2], s=size, facecolor="white", edgecolor=VERMILION, marker="s",
               label="after the atom update")
    ax.set(xlabel="iteration", ylabel="cost, summed over the samples")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend(frameon=False)
    return ax


def _mosaic(images):
    """(N, k, h, w) images on a canvas, NaN between; each atom's top left pixel (x, y), and the free rows above it."""
    N, k, h, w = images.shape
    gap, band = max(1, w // 10), max(2, round(0.35 * h))  # between images, and above them for a label
    cell_h, cell_w = h + band, k * (w + gap) + gap
    columns = min(N, round(np.sqrt(1.3 * N * cell_h / cell_w)) or 1)
    canvas = np.full((-(-N // columns) * cell_h + gap, columns * cell_w + gap), np.nan)
    corners = [(gap + i % columns * cell_w, band + i // columns * cell_h) for i in range(N)]
    for atom, (x, y) in zip(images, corners):
        for j, image in enumerate(atom):
            canvas[y:y + h, x + j * (w + gap):x + j * (w + gap) + w] = image
    return canvas, corners, band


def _spots(codes, order, atom_order, ax):
    """The sorted codes as a picture of at most one spot for two pixels each way; the strongest code of a spot wins."""
    at, atom_at = order.argsort(), atom_order.argsort()  # where each sample and atom goes
    width, height = (max(1, int(side * ax.figure.dpi / 144)) for side in _size(ax))
    picture = np.zeros((min(codes.shape[0], height), min(codes.shape[1], width)))
    weak_first = np.abs(codes.data).argsort(kind="stable")
    rows, columns = at[codes.row[weak_first]], atom_at[codes.col[weak_first]]
    rows, columns = rows * len(picture) // codes.shape[0], columns * picture.shape[1] // codes.shape[1]
    picture[rows, columns] = codes.data[weak_first]
    return picture


def _class_matrix(values, limits, classes, meaning, extend, ax):
    """A matrix of pairs of subspaces, sorted already; classes: their names and edges, or None."""
    ax = _new_axes(6, 5) if ax is None else ax
    image = ax.imshow(values, cmap="viridis", vmin=limits[0], vmax=limits[1], interpolation="nearest")
    _colorbar(image, meaning, extend=extend)
    ax.set(xlabel="subspaces by class" if classes else "subspace", ylabel="subspaces by class" if classes else "subspace")
    for axis in "xy" if classes else "":
        _mark_classes(ax, axis, *classes, "white")
    return ax


def _angle_bars(angles, ax):
    ax = _new_axes(6, 4) if ax is None else ax
    ax.bar(np.arange(1, len(angles) + 1), angles, color=BLUE)
    texts = [f"{angle:.1f}°" if angle >= 0.1 else f"{angle:.1g}°" for angle in angles]
    if max(map(len, texts)) * CHAR * FONT < 0.8 * _size(ax)[0] / len(angles):
        for i, (angle, text) in enumerate(zip(angles, texts), start=1):
            ax.text(i, angle + 1, text, ha="center", va="bottom", fontsize=FONT)
    ax.set(xlabel="index", ylabel="principal angle (degrees)", ylim=(0, 97), yticks=range(0, 91, 15))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    return ax


def _mark_classes(ax, axis, classes, edges, color):
    """Lines between classes and names at their centres, as many as have room."""
    length = 0.8 * _size(ax)["xy".index(axis)]  # points, less what the layout may take
    line = ax.axvline if axis == "x" else ax.axhline
    for edge in edges[1:-1]:
        line(edge - 0.5, color=color, linewidth=min(0.8, 0.02 * length / len(classes)))
    names = [_cut(c, min(16 * CHAR, 0.25 * min(_size(ax)) / FONT)) for c in classes]
    centres = (edges[:-1] + edges[1:] - 1) / 2
    at = centres / edges[-1] * length
    upright = axis == "x" and max(map(len, names)) * CHAR * FONT > np.diff(at).min(initial=length)
    need = LINE * FONT if upright or axis == "y" else 0
    kept = []
    for i in range(len(names)):
        if not kept or at[i] - at[kept[-1]] >= need:
            kept.append(i)
    ticks = {"labels": [names[i] for i in kept], "fontsize": FONT, "rotation": 90 if upright else 0}
    getattr(ax, axis + "axis").set_ticks(centres[kept], **ticks)


def _by_class(labels, n, name):
    """The order that sorts n items by class, the classes, and where each begins and the last ends (n_classes + 1,)."""
    labels = _list(labels, n, name)
    classes = list(dict.fromkeys(labels))
    try:
        classes.sort()
    except TypeError:  # classes of several types stay in order of appearance
        pass
    number = {label: i for i, label in enumerate(classes)}
    index = np.array([number[label] for label in labels])
    order = index.argsort(kind="stable")
    return order, classes, np.searchsorted(index[order], np.arange(len(classes) + 1))


def _cut(text, sizes):
    """The text, without its middle if it is longer than so many font sizes."""
    text, room = str(text), max(1, int(sizes / CHAR))
    return text if len(text) <= room else text[:room // 2] + "…" + text[len(text) - (room - 1) // 2:]


def _new_axes(width, height):
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def _size(ax):
    """Width and height of the axes in points."""
    ax.apply_aspect()
    box = ax.get_window_extent()
    return box.width * 72 / ax.figure.dpi, box.height * 72 / ax.figure.dpi


def _colorbar(image, label, **options):
    image.axes.figure.colorbar(image, ax=image.axes, label=label, **options)


def _real(A, name, shape):
    """A, an array or sparse in coordinate form: real, finite, not empty, with as many dimensions as the shape."""
    A = scipy.sparse.coo_array(A) if scipy.sparse.issparse(A) else np.asarray(A)
    values = A.data if scipy.sparse.issparse(A) else A
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got dtype {values.dtype}")
    if len(A.shape) != len(shape.strip("(,)").split(",")) or 0 in A.shape:
        raise ValueError(f"{name} must have shape {shape} and not be empty, got {A.shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got {values[~np.isfinite(values)][0]}")
    return A


def _gram_matrix(K):
    K = _real(K, "K", "(n, n)")
    if K.shape[0] != K.shape[1] or not np.abs(K - K.T).max() <= 1e-3 * np.abs(K).max():
        raise ValueError(f"K must be square and symmetric, got shape {K.shape}")
    return K


def _list(labels, n, name):
    labels = list(labels)
    if len(labels) != n:
        raise ValueError(f"{name} must hold {n} entries, got {len(labels)}")
    return labels


def _image_shape(image_shape, d):
    try:
        h, w = map(operator.index, image_shape)
    except (TypeError, ValueError):
        raise TypeError(f"image_shape must be two integers (height, width), got {image_shape!r}") from None
    if h < 1 or h * w != d:
        raise ValueError(f"image_shape must have height * width = d = {d}, got {image_shape}")
    return h, w
