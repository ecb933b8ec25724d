"""Pictures within figures: PNG files, as the addresses with their content by which a drawing holds them."""

import base64
import struct
import zlib
from typing import Any, Final

import altair as alt
import numpy as np
from numpy.typing import NDArray

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_RGB: Final = 2  # of PNG's kinds of colour
MOST_PIXELS: Final = 40_000_000
"""Of one picture: whoever draws a larger one is not asked to unpack it."""


def size(content: bytes) -> tuple[int, int]:
    """The width and height that a PNG file states; raises ValueError where it is none, or too large."""
    if content[:8] != _SIGNATURE or content[12:16] != b"IHDR":
        raise ValueError("it is no PNG file")
    try:
        width, height = struct.unpack(">II", content[16:24])
    except struct.error:
        raise ValueError("it ends early") from None
    if not 0 < width * height <= MOST_PIXELS:
        raise ValueError(f"it has {width:,} x {height:,} pixels; at most {MOST_PIXELS:,} in all are drawn")
    return width, height


def png(pixels: NDArray[np.uint8]) -> bytes:
    """Pixels [h, w, 3] as a PNG file."""
    height, width, _ = pixels.shape
    # Each row begins with its filter, which is none.
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, _RGB, 0, 0, 0)
    packed = zlib.compress(rows.tobytes(), 9)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def address(content: bytes) -> str:
    """A PNG file as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(content).decode("ascii")


def chart(width: int, height: int, *, aspect: bool = True) -> Any:
    """Layers that show the field `picture` in a panel of this size; without `aspect` stretched over all of it."""
    picture = (
        alt.Chart().transform_filter("isValid(datum.picture)").mark_image(aspect=aspect, width=width, height=height)
    )
    return alt.layer(picture.encode(url="picture:N", x=alt.value(width / 2), y=alt.value(height / 2)))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
