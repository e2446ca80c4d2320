"""A few frames of a clip as a small animation that a page can hold."""

import base64
import io

from PIL import Image

MOST_BYTES = 12_000
QUALITIES = (50, 30, 15, 5)
EACH = 200  # milliseconds of a frame


def can_move():
    """Does this Pillow write WebP? Its wheels do."""
    from PIL import features  # not before a page is saved

    return features.check("webp")


def animated(film):
    """A film (n, height, width) in uint8 as WebP: bytes, at most MOST_BYTES of them.

    If it is too long for these at the least quality, with every second frame.
    """
    images = [Image.fromarray(frame) for frame in film]
    for quality in QUALITIES:
        file = io.BytesIO()
        more = {"append_images": images[1:], "save_all": True, "loop": 0}
        images[0].save(file, "WEBP", quality=quality, duration=EACH, **more)
        if len(file.getvalue()) <= MOST_BYTES:
            return file.getvalue()
    return animated(film[::2])


def still(film):
    """Its middle frame as WebP."""
    file = io.BytesIO()
    Image.fromarray(film[len(film) // 2]).save(file, "WEBP", quality=QUALITIES[0])
    return file.getvalue()


def as_url(content, kind="image/webp"):
    """The bytes of an image as the address of an image of a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
