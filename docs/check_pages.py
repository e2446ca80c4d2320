"""Are all links within a folder of pages whole? python -m docs.check_pages docs/html

Every href and src of every page that leads to no other site must name a file that is
there, and an anchor in it if it names one; every picture must be one. Exits with what
is missing.
"""

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

PICTURES = {".png": b"\x89PNG", ".svg": b"<"}


class Page(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.links.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def missing(folder):
    """What the pages of a folder name and is not there: a line each."""
    pages = {
        path: Page(path) for path in sorted(Path(folder).resolve().rglob("*.html"))
    }
    lines = [] if pages else [f"{folder} holds no page"]
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (
                (path.parent / unquote(parts.path)).resolve() if parts.path else path
            )
            if not target.exists():
                lines.append(f"{path}: {link} is not there")
            elif (
                target in pages and unquote(parts.fragment) not in pages[target].anchors
            ):
                lines.append(f"{path}: {link} names no anchor")
            elif not target.read_bytes().startswith(PICTURES.get(target.suffix, b"")):
                lines.append(f"{path}: {link} is no picture")
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m docs.check_pages",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", help="of the pages")
    broken = missing(parser.parse_args().folder)
    sys.exit("\n".join(broken) if broken else None)
