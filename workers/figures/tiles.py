"""Sheets of pictures: rows of tiles, each a picture in its frame with a few words below."""

import io
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_FRAME: Final = 4  # pixels around an image
_GAP: Final = 6
_LINE: Final = 14  # of text
_TEXT: Final = 11
_DASH: Final = 6
_BLACK, _WHITE, _GREY = (0, 0, 0), (255, 255, 255), (110, 110, 110)
_BLUE, _ORANGE = (0, 90, 181), (213, 94, 0)  # told apart by the colour-blind too

Frame = Literal["thin", "whole", "dashed"]
"""Thin and grey, whole and blue, or dashed and orange: no meaning is in the colour alone."""


class Tile(NamedTuple):
    """A picture, uint8 [h, w] or [h, w, 3], with its frame and at most two lines of words."""

    pixels: NDArray[np.uint8]
    frame: Frame
    words: Sequence[str]


def tiled(rows: Sequence[Sequence[Tile]], side: int) -> bytes:
    """Rows of tiles as a PNG file: pictures fitted into squares of `side` pixels, words cut where they do not fit."""
    width, height = side + 2 * _FRAME + _GAP, side + 2 * _FRAME + 2 * _LINE + _GAP
    columns = max(len(row) for row in rows)
    sheet = Image.new("RGB", (columns * width + _GAP, len(rows) * height + _GAP), _WHITE)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(_TEXT)
    for line, row in enumerate(rows):
        for column, tile in enumerate(row):
            left, top = _GAP + column * width, _GAP + line * height
            fitted = _fitted(tile.pixels, side)
            middle = (left + _FRAME + (side - fitted.width) // 2, top + _FRAME + (side - fitted.height) // 2)
            sheet.paste(fitted, middle)
            _frame(pen, left, top, side + 2 * _FRAME, tile.frame)
            below = top + side + 2 * _FRAME
            for offset, text in enumerate(tile.words):
                short = _shortened(text, font, side + 2 * _FRAME)
                pen.text((left, below + offset * _LINE), short, fill=_BLACK, font=font)
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _fitted(pixels: NDArray[np.uint8], side: int) -> Image.Image:
    """The picture with its longer side at `side` pixels; small ones keep their sharp pixels."""
    image = Image.fromarray(pixels).convert("RGB")
    scale = side / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)


def _frame(pen: ImageDraw.ImageDraw, left: int, top: int, size: int, frame: Frame) -> None:
    right, bottom = left + size - 1, top + size - 1
    if frame != "dashed":
        thick, colour = (_FRAME, _BLUE) if frame == "whole" else (1, _GREY)
        pen.rectangle((left, top, right, bottom), outline=colour, width=thick)
        return
    for start in range(0, size, 2 * _DASH):
        end = min(start + _DASH, size) - 1
        for inset in (0, size - _FRAME):
            pen.rectangle((left + start, top + inset, left + end, top + inset + _FRAME - 1), fill=_ORANGE)
            pen.rectangle((left + inset, top + start, left + inset + _FRAME - 1, top + end), fill=_ORANGE)


def _shortened(text: str, font: Any, width: int) -> str:
    """The text as far as it fits."""
    if font.getlength(text) <= width:
        return text
    while text and font.getlength(f"{text}...") > width:
        text = text[:-1]
    return f"{text}..."
