"""Pictures: what was drawn, read back from the axes."""

import itertools

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import scipy.sparse
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from grassmann_sc import (
    chordal_distance,
    plots,
    projection_kernel,
    random_subspaces,
)
from oracles import TIGHT

matplotlib.use("Agg")

X = random_subspaces(12, 20, 3, rng=0)
CODES = np.random.default_rng(0).standard_normal((12, 8))
CODES *= np.random.default_rng(1).random((12, 8)) < 0.4
CLASSES = ["b", "a", "c"] * 4
DRAW = {  # each picture on ordinary data
    "atoms": lambda **kw: plots.plot_atoms(X, (4, 5), **kw),
    "pair": lambda **kw: plots.plot_angles_pair(X[0], X[1], **kw),
    "set": lambda **kw: plots.plot_principal_angles(X, labels=CLASSES, **kw),
    "codes": lambda **kw: plots.plot_codes(
        CODES, CLASSES, atom_labels=[1, 0] * 4, **kw
    ),
    "gram": lambda **kw: plots.plot_gram(projection_kernel(X), CLASSES, **kw),
    "confusion": lambda **kw: plots.plot_confusion(CLASSES, CLASSES[::-1], **kw),
    "sheet": lambda **kw: plots.plot_sheet(
        [[(np.eye(4), "a"), None, (np.eye(5), "b\nc")]] * 3, note="d", **kw
    ),
    "map": lambda **kw: plots.plot_map(projection_kernel(X), CLASSES, **kw),
    "timeline": lambda **kw: plots.plot_timeline(
        [("r", 0, 4, "a"), ("r", 4, 6, None), ("s", 1, 3, "b")],
        [("r", 0, 5, "a")],
        **kw,
    ),
    "named pair": lambda **kw: plots.plot_angles_pair(
        X[0], X[1], names=("a", "b"), **kw
    ),
    "convergence": lambda **kw: plots.plot_convergence([5, 4, 3.5, 3.2], **kw),
}
pytestmark = [
    pytest.mark.filterwarnings("error"),
    # of what an old one calls
    pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib"),
]
each_picture = pytest.mark.parametrize("draw", DRAW.values(), ids=DRAW)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def picture(ax):
    """The values behind the one image on the axes; NaN where there is none."""
    (image,) = ax.images
    return np.ma.filled(image.get_array().astype(float), np.nan)


def names(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def lines_at(ax):
    """Positions of the lines across the axes: vertical ones, horizontal ones."""
    ends = [np.asarray(line.get_xydata()) for line in ax.lines]
    return [sorted(e[0, k] for e in ends if e[0, k] == e[1, k]) for k in (0, 1)]


def overlaps(boxes):
    return [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


@each_picture
def test_draws_into_the_axes_given_and_nothing_else(draw, monkeypatch):
    ax, other = Figure().subplots(1, 2)  # a figure that pyplot does not know
    settings = dict(matplotlib.rcParams)
    monkeypatch.setattr(
        plt, "show", lambda *args, **kw: pytest.fail("show() was called")
    )
    assert draw(ax=ax) is ax
    assert not plt.get_fignums()
    assert not other.has_data() and ax.has_data()
    assert dict(matplotlib.rcParams) == settings


@each_picture
def test_makes_one_figure_without_axes_and_names_what_it_shows(draw):
    ax = draw()
    assert plt.get_fignums() == [ax.figure.number]
    assert ax.get_xlabel() and (ax.get_ylabel() or not len(ax.get_yticks()))
    ax.figure.canvas.draw()
    texts = [t for t in ax.get_xticklabels() + ax.texts if t.get_text()]
    assert not overlaps([t.get_window_extent() for t in texts])


def spots(canvas, image):
    """Top left corners of the places on the canvas that show the image."""
    windows = np.lib.stride_tricks.sliding_window_view(canvas, image.shape)
    return np.argwhere((np.abs(windows - image) <= TIGHT).all(axis=(2, 3))).tolist()


@pytest.mark.parametrize(
    "N, p, shown",
    [(1, 1, 1), (5, 2, 2), (12, 6, 3)],
)
def test_atoms_show_each_direction_once_in_order(N, p, shown):
    D = random_subspaces(N, 20, p, rng=1)
    canvas = picture(plots.plot_atoms(D, (4, 5)))
    assert np.isfinite(canvas).sum() == N * shown * 20
    places = []
    for direction in D[:, :, :shown].transpose(0, 2, 1).reshape(-1, 4, 5):
        corners = spots(canvas, direction / direction.flat[np.abs(direction).argmax()])
        assert len(corners) == 1
        places += corners
    assert places == sorted(places)  # atoms and their directions in reading order


def test_atoms_ignore_signs_and_mark_zero_white():
    signs = np.random.default_rng(0).choice([-1, 1], (12, 1, 3))
    ax = plots.plot_atoms(X * signs, (4, 5))
    np.testing.assert_array_equal(picture(ax), picture(plots.plot_atoms(X, (4, 5))))
    (image,) = ax.images
    assert image.get_clim() == (-1, 1)
    assert np.nanmax(picture(ax)) == 1
    assert min(image.to_rgba(0.0)) > 0.95
    assert max(image.to_rgba(np.ma.masked_invalid([[np.nan]]))[0, 0, :3]) < 0.9


def test_atoms_are_named_without_overlap():
    assert [t.get_text() for t in plots.plot_atoms(X, (4, 5)).texts] == [
        str(i) for i in range(12)
    ]
    ax = plots.plot_atoms(
        X, (4, 5), labels=[f"a long name of class number {i}" for i in range(12)]
    )
    for i, text in enumerate(t.get_text() for t in ax.texts):
        assert text.startswith("a l")
        assert "…" in text
        assert text.endswith(f"{i}")
    assert len(ax.texts) == 12
    ax.figure.canvas.draw()
    assert not overlaps([t.get_window_extent() for t in ax.texts])


def test_hundreds_of_atoms_are_drawn_without_illegible_names():
    ax = plots.plot_atoms(np.tile(X, (60, 1, 1)), (4, 5))
    assert np.isfinite(picture(ax)).sum() == 720 * 3 * 20
    assert all(t.get_fontsize() > 3 for t in ax.texts)


def test_angles_of_a_pair_are_bars_in_degrees():
    angles = np.array([0, 1e-9, 30, 90])
    X, Y = np.zeros((2, 8, 4))
    X[:4] = np.eye(4)
    Y[:4] = np.diag(np.cos(np.radians(angles)))
    Y[4:] = np.diag(np.sin(np.radians(angles)))
    ax = plots.plot_angles_pair(X, Y)
    np.testing.assert_allclose(
        [bar.get_height() for bar in ax.patches], angles, atol=TIGHT
    )
    centres = [bar.get_x() + bar.get_width() / 2 for bar in ax.patches]
    assert centres == pytest.approx([1, 2, 3, 4])
    assert "degrees" in ax.get_ylabel()
    assert ax.get_ylim()[0] == 0
    assert ax.get_ylim()[1] >= 90
    assert [t.get_text() for t in ax.texts] == ["0°", "1e-09°", "30.0°", "90.0°"]


def test_angles_of_subspaces_of_unequal_dimension():
    assert len(plots.plot_angles_pair(X[0], X[1][:, :1]).patches) == 1
    assert (
        len(plots.plot_angles_pair(np.eye(40)[:, :30], np.eye(40)[:, 5:]).patches) == 30
    )


def test_angles_of_a_set_are_sorted_by_class():
    """Coordinate planes: a pair has angles 0 or 90 degrees, and a root mean square of
    0, 90/sqrt(2) or 90.
    """
    planes = [(0, 1), (2, 3), (0, 2), (0, 1)]
    X = np.stack([np.eye(4)[:, list(plane)] for plane in planes])
    mixed = 90 / 2**0.5
    ax = plots.plot_principal_angles(X, labels=["u", "a", "u", "a"])  # order 1, 3, 0, 2
    expected = [
        [0, 90, 90, mixed],
        [90, 0, 0, mixed],
        [90, 0, 0, mixed],
        [mixed, mixed, mixed, 0],
    ]
    np.testing.assert_allclose(picture(ax), expected, atol=TIGHT)
    assert names(ax.xaxis) == names(ax.yaxis) == ["a", "u"]
    assert ax.get_xticks().tolist() == ax.get_yticks().tolist() == [0.5, 2.5]
    assert lines_at(ax) == [[1.5], [1.5]]


def test_colours_of_a_set_span_the_pairs_of_different_subspaces():
    ax = plots.plot_principal_angles(X)
    others = picture(ax)[~np.eye(12, dtype=bool)]
    assert ax.images[0].get_clim() == (others.min(), others.max())
    assert "degrees" in ax.images[0].colorbar.ax.get_ylabel()
    assert picture(plots.plot_principal_angles(X[:1])).tolist() == [[0]]


FORMS = [
    np.asarray,
    np.float32,
    np.ndarray.tolist,
    scipy.sparse.csr_array,
    scipy.sparse.coo_matrix,
]


@pytest.mark.parametrize("form", FORMS)
def test_codes_are_sorted_by_class(form):
    ax = plots.plot_codes(form(CODES), CLASSES)
    order = [1, 4, 7, 10, 0, 3, 6, 9, 2, 5, 8, 11]
    codes = np.float32(CODES) if form is np.float32 else CODES
    np.testing.assert_allclose(picture(ax), codes[order], atol=TIGHT)
    assert names(ax.yaxis) == ["a", "b", "c"]
    assert ax.get_yticks().tolist() == [1.5, 5.5, 9.5]
    assert lines_at(ax) == [[], [3.5, 7.5]]
    assert ax.images[0].get_extent() == [-0.5, 7.5, 11.5, -0.5]


def test_atoms_of_codes_are_sorted_by_class():
    labels = [(1, 2), "x"] * 4  # a tuple and a string: in order of appearance
    ax = plots.plot_codes(CODES, [0] * 12, atom_labels=labels)
    np.testing.assert_allclose(
        picture(ax), CODES[:, [0, 2, 4, 6, 1, 3, 5, 7]], atol=TIGHT
    )
    assert names(ax.xaxis) == ["(1, 2)", "x"]
    assert lines_at(ax) == [[3.5], []]


def test_colours_of_codes_are_symmetric_and_zero_is_white():
    (image,) = plots.plot_codes(CODES, CLASSES).images
    low, high = image.get_clim()
    assert low == -high
    assert high == np.percentile(np.abs(CODES[CODES != 0]), 99)
    assert min(image.to_rgba(0.0)) > 0.95
    assert (picture(plots.plot_codes(np.zeros((2, 3)), [0, 1])) == 0).all()
    stored = scipy.sparse.csr_array((np.zeros(2), ([0, 1], [0, 1])), shape=(2, 3))
    assert (picture(plots.plot_codes(stored, [0, 1])) == 0).all()
    for kind in (scipy.sparse.lil_array, scipy.sparse.dok_array):
        (same,) = plots.plot_codes(kind(CODES), CLASSES).images
        np.testing.assert_array_equal(same.get_array(), image.get_array())


MANY_NAMES = [f"the class with the number {i}" for i in range(40)] * 2
DRAW_MANY = {
    "angles": lambda ax: plots.plot_principal_angles(
        random_subspaces(80, 6, 2, rng=0), labels=MANY_NAMES, ax=ax
    ),
    "codes": lambda ax: plots.plot_codes(
        np.eye(80), MANY_NAMES, atom_labels=MANY_NAMES, ax=ax
    ),
}


def test_the_strongest_code_of_a_spot_is_shown():
    """100,000 samples cannot each have a pixel; codes far apart all stay in sight."""
    places = np.array([0, 1, 50_000, 99_999]), np.array([0, 0, 500, 999])
    codes = scipy.sparse.csr_array(
        (np.array([-2, 1e-3, 3, 4]), places), shape=(100_000, 1000)
    )
    shown = picture(plots.plot_codes(codes, np.zeros(100_000)))
    assert shown.size < 10**6
    assert sorted(shown[shown != 0]) == [-2, 3, 4]
    assert shown[0, 0] == -2
    assert shown[-1, -1] == 4


@pytest.mark.parametrize("size", [(6.4, 4.8), (3, 3), (12, 2.5)])
@pytest.mark.parametrize("draw", DRAW_MANY.values(), ids=DRAW_MANY)
def test_many_long_class_names_do_not_overlap(draw, size):
    fig, ax = plt.subplots(figsize=size, layout="constrained")
    draw(ax)
    fig.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        boxes = [t.get_window_extent() for t in axis.get_ticklabels()]
        assert 5 <= len(boxes) <= 40
        assert not overlaps(boxes)
        assert all(len(name) <= 16 for name in names(axis))
        assert len(set(names(axis))) == len(boxes)


def test_convergence_tells_the_half_steps_apart():
    costs = np.array([9, 7, 6, 5.5, 5.4])
    ax = plots.plot_convergence(costs)
    points = np.column_stack([[0, 0.5, 1, 1.5, 2], costs])
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), points)
    coding, update = ax.collections
    np.testing.assert_array_equal(coding.get_offsets(), [[0, 9], [1, 6], [2, 5.4]])
    np.testing.assert_array_equal(update.get_offsets(), [[0.5, 7], [1.5, 5.5]])
    legend = [t.get_text() for t in ax.get_legend().get_texts()]
    assert legend == ["after coding", "after the atom update"]
    assert to_hex(coding.get_facecolor()[0]) != to_hex(update.get_edgecolor()[0])
    assert len(plots.plot_convergence([3.0]).collections[0].get_offsets()) == 1


def test_gram_is_sorted_by_class():
    K = projection_kernel(X)
    order = np.argsort(CLASSES, kind="stable")
    ax = plots.plot_gram(K, CLASSES)
    np.testing.assert_array_equal(picture(ax), K[order][:, order])
    assert names(ax.xaxis) == names(ax.yaxis) == ["a", "b", "c"]
    assert lines_at(ax) == [[3.5, 7.5], [3.5, 7.5]]
    others = K[~np.eye(12, dtype=bool)]
    assert ax.images[0].get_clim() == (others.min(), others.max())
    np.testing.assert_array_equal(picture(plots.plot_gram(K)), K)
    assert picture(plots.plot_gram([[3.0]])).tolist() == [[3]]


def test_confusion_counts_and_shades_by_class():
    ax = plots.plot_confusion(["b", "a", "b", "b", "b"], ["b", "b", "a", "b", "c"])
    np.testing.assert_allclose(picture(ax), [[0, 1, 0], [0.25, 0.5, 0.25], [0, 0, 0]])
    assert names(ax.xaxis) == names(ax.yaxis) == ["a", "b", "c"]
    written = {t.get_position(): t.get_text() for t in ax.texts}  # (column, row)
    assert written == {(1, 0): "1", (0, 1): "1", (1, 1): "2", (2, 1): "1"}
    assert not plots.plot_confusion(range(400), range(400)).texts  # not legible


def test_confusion_says_how_many_splits_are_summed_and_takes_tuples_as_labels():
    pairs = [("a", 1), ("b", 2)]
    ax = plots.plot_confusion(pairs, pairs, n_splits=3)
    assert len(ax.texts) == 2
    assert ax.get_xlabel() == "predicted class (3 splits summed)"


@pytest.mark.parametrize("p", [1, 3])
def test_map_keeps_the_distances_of_a_plane(p):
    """Sets whose chordal distances are those of points in the plane lie where they
    should, up to a rotation.
    """
    a, b, c = (np.eye(3 * p)[:, i * p : (i + 1) * p] for i in range(3))  # equidistant
    sets = np.stack([a, b, c, a])
    ax = plots.plot_map(projection_kernel(sets), [1, 2, 3, 1])
    # by class: a, a, b, c
    points = np.concatenate([dots.get_offsets() for dots in ax.collections])
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.testing.assert_allclose(
        distances, chordal_distance(sets[[0, 3, 1, 2]]), atol=1e-7
    )
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["1", "2", "3"]
    shares = [
        float(label.partition("(")[2].partition(" ")[0])
        for label in (ax.get_xlabel(), ax.get_ylabel())
    ]
    assert sum(shares) == pytest.approx(100, abs=1)


def test_points_of_the_map_that_coincide_are_seen_as_rings():
    sets = random_subspaces(3, 9, 2, rng=0)[[0, 0, 1, 2, 0]]
    # by class: 0 and 2, 0 and 0, 1
    ax = plots.plot_map(projection_kernel(sets), list("abcab"))
    assert [(dots.get_sizes() / 22).tolist() for dots in ax.collections] == [
        [3, 1],
        [2, 1],
        [1],
    ]


def test_a_sheet_shows_rows_of_any_lengths_with_gaps_and_no_words_over_images():
    long = "a name that is much too long for its place"
    rows = [
        [(np.ones((4, 9)), "one"), None, (np.eye(3), f"two\n{long}\nthird\nfourth")],
        [(np.eye(5), "three"), None, (np.eye(7), "four")],
        [],
    ]
    plots.plot_sheet(rows, note="no text \udce9, $1").figure.canvas.draw()
    ax = plots.plot_sheet(rows, note="what it shows")
    assert [text.get_text().split("\n")[0] for text in ax.texts] == [
        "one",
        "two",
        "three",
        "four",
    ]
    lines = ax.texts[1].get_text().split("\n")
    assert lines[2:] == ["third", "fourth"] and "…" in lines[1] and len(lines[1]) < 40
    centres = [sum(image.get_extent()[:2]) / 2 for image in ax.images]
    assert centres[0] == pytest.approx(centres[2]) and centres[1] == pytest.approx(
        centres[3]
    )
    assert centres[1] - centres[0] == pytest.approx(0.75 * 9 / 4 + plots.GAP)
    assert ax.get_xlabel() == "what it shows"
    ax.figure.canvas.draw()
    images = [image.get_window_extent() for image in ax.images]
    for text in ax.texts:
        box = text.get_window_extent()
        assert not any(box.overlaps(image) for image in images)
        assert 0 <= box.x0 and box.x1 <= ax.figure.bbox.width and box.y0 >= 0


def test_a_sheet_shows_colours_of_bytes_and_of_shares():
    image = np.random.default_rng(0).integers(0, 256, (4, 5, 3), np.uint8)
    ax = plots.plot_sheet([[(image, "bytes"), (image / 255, "shares")]])
    for drawn in ax.images:
        np.testing.assert_allclose(drawn.get_array(), image / 255)
    with pytest.raises(ValueError, match=r"rows\[0\]\[0\]\[0\] must have shape"):
        plots.plot_sheet([[(image[..., :2], "two")]])


def test_short_rows_of_a_sheet_stand_beside_each_other_in_their_order():
    """Twelve pairs of strips fill the width; rows of four strips stand alone."""
    strip = np.ones((3, 12))
    pairs = plots.plot_sheet([[(strip, f"{i}"), None, (strip, "")] for i in range(12)])
    corners = [image.get_extent() for image in pairs.images[::2]]
    places = [(round(-y, 6), round(x, 6)) for x, _, y, _ in corners]
    assert places == sorted(places, key=lambda at: (-at[0], at[1]))
    assert len({x for _, x in places}) == 2 and len({y for y, _ in places}) == 6
    width, height = pairs.figure.get_size_inches()
    assert 9 < width < 13 and height < width
    alone = plots.plot_sheet([[(strip, "")] * 4] * 5)
    assert len({image.get_extent()[0] for image in alone.images}) == 4
    few = plots.plot_sheet([[(np.eye(4), "")] * 2] * 3)
    assert len({image.get_extent()[2] for image in few.images}) == 3


def test_the_bar_of_codes_without_signs_begins_at_zero():
    for codes, low in ((np.eye(4), 0), (np.eye(4) - 0.5, -0.5)):
        ax = plots.plot_codes(codes, range(4))
        assert ax.images[0].colorbar.ax.get_ylim()[0] == low


def test_map_tells_many_classes_apart():
    n = 40
    ax = plots.plot_map(projection_kernel(random_subspaces(n, 9, 2, rng=0)), range(n))
    looks = {
        (tuple(dots.get_facecolor()[0]), dots.get_paths()[0].vertices.tobytes())
        for dots in ax.collections
    }
    assert len(looks) == len(ax.get_legend().get_texts()) == n
    assert plots.plot_map([[2.0]]).get_legend() is None


NAMES_OF_12 = "labels must have length 12, one for each of the .*, got "


def test_legends_of_many_classes_leave_the_picture_its_width():
    labels = [f"activity {i:02}" for i in range(50)]
    K = projection_kernel(random_subspaces(50, 6, 2, rng=0))
    stretches = [("day", i, i + 1, label) for i, label in enumerate(labels)]
    for ax in (plots.plot_map(K, labels), plots.plot_timeline(stretches)):
        ax.figure.draw_without_rendering()
        assert ax.get_window_extent().width / ax.figure.dpi > 4
        legend = ax.get_legend().get_window_extent()
        assert legend.x1 < ax.figure.bbox.x1 and legend.y0 > 0


WRONG = [
    (
        lambda: plots.plot_gram(np.ones((2, 3))),
        r"K must be a square matrix .*, got shape \(2, 3\)",
    ),
    (lambda: plots.plot_gram(np.eye(3), [1]), "labels must have length 3, .*, got 1"),
    (
        lambda: plots.plot_map(np.triu(np.ones((2, 2)))),
        "K must be symmetric, got entries",
    ),
    (lambda: plots.plot_map(np.full((2, 2), np.nan)), "K must be finite, got nan"),
    (lambda: plots.plot_map(np.eye(3), [1]), "labels must have length 3, .*, got 1"),
    (
        lambda: plots.plot_confusion([], []),
        "truth must hold at least one class, got none",
    ),
    (
        lambda: plots.plot_confusion([1], [1, 2]),
        "predicted must have length 1, .*, got 2",
    ),
    (
        lambda: plots.plot_sheet([[], [None]]),
        "rows must hold at least one image, got none",
    ),
    (
        lambda: plots.plot_sheet([[(np.ones(3), "a")]]),
        r"rows\[0\]\[0\]\[0\] must have shape \(height, width\), got \(3,\)",
    ),
    (
        lambda: plots.plot_atoms(X[0], (4, 5)),
        r"D must have shape \(N, d, p\), got \(20, 3\)",
    ),
    (
        lambda: plots.plot_atoms(X[:0], (4, 5)),
        r"D must have shape \(N, d, p\), got \(0, 20, 3\)",
    ),
    (
        lambda: plots.plot_atoms(X, (5, 5)),
        r"image_shape must have height \* width = d = 20, got \(5, 5\)",
    ),
    (
        lambda: plots.plot_atoms(X, (4, 5, 1)),
        r"image_shape must be two integers .*, got \(4, 5, 1\)",
    ),
    (lambda: plots.plot_atoms(X, (-4, -5)), "image_shape must be >= 1, got -4"),
    (lambda: plots.plot_atoms(X, (4, 5), labels=["a", "b"]), NAMES_OF_12 + "2"),
    (
        lambda: plots.plot_principal_angles(X[0]),
        r"X must have shape \(N, d, p\), got \(20, 3\)",
    ),
    (
        lambda: plots.plot_angles_pair(X, X),
        r"X must have shape \(d, p\), got \(12, 20, 3\)",
    ),
    (
        lambda: plots.plot_angles_pair(X[0], X[1, :9]),
        "same d, got 20 and 9|columns",
    ),
    (lambda: plots.plot_principal_angles(2 * X), "X must have orthonormal columns"),
    (lambda: plots.plot_principal_angles(X, labels=[1, 2]), NAMES_OF_12 + "2"),
    (
        lambda: plots.plot_codes(CODES[0], [1]),
        r"codes must have shape \(n, N\) .*, got \(8,\)",
    ),
    (
        lambda: plots.plot_codes(scipy.sparse.csr_array((0, 8)), []),
        r"codes must .* not be empty, got \(0, 8\)",
    ),
    (
        lambda: plots.plot_codes(scipy.sparse.csr_array([[1, np.nan]]), [1]),
        "codes must be finite, got nan",
    ),
    (lambda: plots.plot_codes(CODES, [1]), NAMES_OF_12 + "1"),
    (
        lambda: plots.plot_codes(CODES, CLASSES, atom_labels=[1]),
        "atom_labels must have length 8, one for each of the atoms, got 1",
    ),
    (
        lambda: plots.plot_convergence([]),
        r"costs must have shape \(n_half_steps,\), got \(0,\)",
    ),
    (
        lambda: plots.plot_convergence([[1.0]]),
        r"costs must have shape .*, got \(1, 1\)",
    ),
    (lambda: plots.plot_convergence([1, np.inf]), "costs must be finite, got inf"),
]
WRONG_TYPES = [
    (
        lambda: plots.plot_atoms(X * 1j, (4, 5)),
        "D must hold real numbers, got dtype complex128",
    ),
    (
        lambda: plots.plot_confusion([1], None),
        "predicted must be a sequence of hashables, got None",
    ),
    (lambda: plots.plot_atoms(X, 20), "image_shape must be two integers .*, got 20"),
    (
        lambda: plots.plot_atoms(X[:2], (4, 5), labels="ab"),
        "labels must be a sequence of hashables, got 'ab'",
    ),
    (
        lambda: plots.plot_convergence(["1"]),
        "costs must hold real numbers, got dtype <U1",
    ),
]


@pytest.mark.parametrize(
    "error, draw, match",
    [
        *((ValueError, *case) for case in WRONG),
        *((TypeError, *case) for case in WRONG_TYPES),
    ],
)
def test_bad_input_leaves_no_figure(error, draw, match):
    with pytest.raises(error, match=match):
        draw()
    assert not plt.get_fignums()


# --------------------------------------------------------------- pairs, order


def test_a_pair_is_named_with_both_dimensions():
    ax = plots.plot_angles_pair(X[0], X[1][:, :2], names=("the query", 7))
    assert ax.get_xlabel() == "index\nthe query (dimension 3) and 7 (2)"
    assert len(ax.patches) == 2
    with pytest.raises(ValueError, match="names must have length 2, .*, got 3"):
        plots.plot_angles_pair(X[0], X[1], names="abc".split() * 3)


def test_classes_with_numbers_are_in_the_order_of_readers():
    classes = ["s10", "s2", "s1", "s10"] * 3
    assert names(plots.plot_gram(projection_kernel(X), classes).yaxis) == [
        "s1",
        "s2",
        "s10",
    ]


@pytest.mark.parametrize("N", [2, 3, 9, 40])
def test_axes_of_atoms_have_whole_numbers(N):
    ax = plots.plot_codes(np.ones((12, N)), CLASSES)
    assert all(value == int(value) for value in ax.get_xticks())


def test_a_timeline_has_a_bar_a_recording_the_truth_above_and_hatches_what_is_unlike():
    answers = [("r", 0, 4, "a"), ("r", 4, 6, "odd"), ("s", 1, 3, "b")]
    ax = plots.plot_timeline(answers, [("r", 0, 5, "a")], unlike="odd", unit="rows")
    bars = [(c.get_paths()[0].get_extents(), c) for c in ax.collections]
    boxes = [(box.x0, box.x1) for box, _ in bars]
    assert boxes == [(0, 4), (4, 6), (1, 3), (0, 5)]
    first, odd, second, truth = bars
    assert truth[0].y1 < first[0].y0 == odd[0].y0 and first[0].y1 < second[0].y0
    assert ax.yaxis_inverted() and ax.get_xlabel() == "time in rows"
    looks = [tuple(c.get_facecolor()[0]) for _, c in bars]
    assert looks[0] == looks[3] != looks[2] and odd[1].get_hatch() == "////"
    assert not first[1].get_hatch()
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["a", "b", "odd"]
    assert {text.get_text() for text in ax.get_yticklabels()} == {"r", "s", "truth"}
    with pytest.raises(
        ValueError, match="stretches must hold at least one stretch, got none"
    ):
        plots.plot_timeline([])
    with pytest.raises(ValueError, match=r"stretches\[0\], start and end"):
        plots.plot_timeline([("a", 0, np.nan, "x")])


def test_labels_that_are_zero_or_begin_with_an_underscore_are_in_the_legend():
    ax = plots.plot_timeline([("a", 0, 1, 0), ("a", 1, 2, 1), ("a", 2, 3, None)])
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert words == ["0", "1", "unlike all"]
    names = ["_noise_", "b", "folder \udcff"]  # a byte that is no UTF-8
    ax = plots.plot_map(projection_kernel(X), names * 4)
    ax.figure.canvas.draw()
    words = [text.get_text().strip() for text in ax.get_legend().get_texts()]
    assert words == ["_noise_", "b", "folder ?"]


def test_classes_beyond_the_colours_have_patterns():
    labels = [f"{i}" for i in range(9)]
    ax = plots.plot_timeline([("r", i, i + 1, label) for i, label in enumerate(labels)])
    looks = [(tuple(c.get_facecolor()[0]), c.get_hatch()) for c in ax.collections]
    assert len({*looks}) == 9 and looks[7][0] == looks[0][0]


def test_timelines_have_labels_of_any_kind_and_texts_that_are_no_formula():
    day = np.datetime64("2020-01-01")
    after = np.datetime64("2020-01-02")
    ax = plots.plot_timeline([("r", 0, 1, day), ("r", 1, 2, after)], unit=r"$\x$")
    ax.figure.canvas.draw()
    words = (
        [text.get_text() for text in ax.figure.legends[0].get_texts()]
        if (ax.figure.legends)
        else [text.get_text() for text in ax.get_legend().get_texts()]
    )
    assert words == ["2020-01-01", "2020-01-02"]
    sheet = plots.plot_sheet([[(np.eye(4), "a")]], note="clips of $HOME_$USER")
    sheet.figure.canvas.draw()
    assert sheet.get_xlabel().replace("\\", "") == "clips of $HOME_$USER"
