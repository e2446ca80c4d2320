"""The pages' snippets, run as they are printed: programs, what each prints, the
pictures they draw.

A page is Markdown or reStructuredText. Its Python blocks are one program, in order; the
block of text after one is what it prints, the picture after one is what it draws.
"""

import contextlib
import io
import re
import textwrap
from collections import namedtuple

import matplotlib
import PIL
from PIL import Image, ImageChops
from PIL.PngImagePlugin import PngInfo

DPI = 80
COLOURS = 256  # of a picture that is kept: they take a third of the bytes of all
# in its metadata
DRAWN_BY = f"Matplotlib {matplotlib.__version__}, Pillow {PIL.__version__}"

PIECE = re.compile(
    r"^(?P<fence> *```)(?P<marked>\w*)\n(?P<body>.*?)^ *```$"
    r"|^!\[[^\]]*\]\((?P<shown>\S+)\)$"
    r"|^\.\. code-block:: (?P<language>\w+)\n\n(?P<block>(?: {3}[^\n]*\n|\n)+)"
    r"|^\.\. (?:image|figure):: (?P<picture>\S+)$",
    re.DOTALL | re.MULTILINE,
)

# kind: the language of a block, "" or "text" for what is printed; or "picture", text is
# its path
Piece = namedtuple("Piece", "kind text")


def pieces(path):
    """The blocks and pictures of a page, in order."""
    return [_piece(match) for match in PIECE.finditer(path.read_text(encoding="utf-8"))]


def _piece(match):
    picture = match["shown"] or match["picture"]
    if picture:
        return Piece("picture", picture)
    if match["fence"]:
        return Piece(match["marked"], match["body"])
    return Piece(match["language"], textwrap.dedent(match["block"]).rstrip() + "\n")


def run(path, draw=None):
    """[(what a program printed, what the page says)] of those after which the page says
    something.

    draw(figure, path of the picture) keeps what is drawn before a picture. What stands
    under a script's main clause is not run.
    """
    import matplotlib.pyplot as plt

    names = {"__name__": "page"}
    pairs = []
    printed = ""
    for kind, text in pieces(path):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(text, f"<{path.name}>", "exec"), names)
            printed = out.getvalue()
        elif kind in ("", "text") and printed:
            pairs.append((printed, text))
            printed = ""
        elif kind == "picture" and plt.get_fignums():
            if draw is not None:
                draw(plt.gcf(), (path.parent / text).resolve())
            plt.close("all")
    return pairs


def keep(figure, path):
    """Write a figure as a small PNG; a file that shows it already stays as it is, to
    the byte.
    """
    drawn = small_picture(figure)
    if not shows(path, drawn):
        drawn_by = PngInfo()
        drawn_by.add_text("Software", DRAWN_BY)
        drawn.save(path, optimize=True, pnginfo=drawn_by)


def small_picture(figure):
    """A figure as the picture of few colours that is kept."""
    file = io.BytesIO()
    figure.savefig(file, dpi=DPI)
    return Image.open(file).convert("RGB").quantize(COLOURS)


def shows(path, drawn):
    """Does the picture at path have the pixels of the one that is drawn?"""
    if not path.is_file():
        return False
    with Image.open(path) as kept:
        if kept.size != drawn.size:
            return False
        difference = ImageChops.difference(kept.convert("RGB"), drawn.convert("RGB"))
    return difference.getbbox() is None


def is_out_of_date(path, figure):
    """Does the picture at path, drawn by these versions of Matplotlib and Pillow, show
    something else? Others may draw lines, letters and colours with other pixels, and
    round a side to the next one: then the size is compared.
    """
    drawn = small_picture(figure)
    with Image.open(path) as kept:
        if kept.info.get("Software") == DRAWN_BY:
            return not shows(path, drawn)
        return any(abs(a - b) > 1 for a, b in zip(kept.size, drawn.size, strict=True))
