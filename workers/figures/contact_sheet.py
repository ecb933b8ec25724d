"""A picture of retrievals: each query and its nearest images in a row, framed by whether they are of its class."""

import io
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

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

Picture = Callable[[int], NDArray[np.uint8]]
"""The pixels of an image by its index, uint8 [h, w] or [h, w, 3]."""


class RetrievalRow(NamedTuple):
    """A query and what was found for it: indices of images, closest first."""

    query: int
    nearest: Sequence[int]
    correct: Sequence[bool]
    cosine: Sequence[float]


def contact_sheet(rows: Sequence[RetrievalRow], picture: Picture, name: Callable[[int], str], side: int) -> bytes:
    """The sheet as a PNG file: pictures fitted into squares of `side` pixels, each with the `name` of its class.

    A query has a thin grey frame; what is of its class a whole blue one and the word right, what is not a dashed orange
    one and the word wrong: no meaning is in the colour alone. Beside the word stands the cosine.
    """
    width, height = side + 2 * _FRAME + _GAP, side + 2 * _FRAME + 2 * _LINE + _GAP
    columns = 1 + max(len(row.nearest) for row in rows)
    sheet = Image.new("RGB", (columns * width + _GAP, len(rows) * height + _GAP), _WHITE)
    pen = ImageDraw.Draw(sheet)
    font = ImageFont.load_default(_TEXT)

    def tile(column: int, line: int, index: int, correct: bool | None, words: str) -> None:
        left, top = _GAP + column * width, _GAP + line * height
        fitted = _fitted(picture(index), side)
        middle = (left + _FRAME + (side - fitted.width) // 2, top + _FRAME + (side - fitted.height) // 2)
        sheet.paste(fitted, middle)
        _frame(pen, left, top, side + 2 * _FRAME, correct)
        below = top + side + 2 * _FRAME
        for offset, text in enumerate((words, name(index))):
            short = _shortened(text, font, side + 2 * _FRAME)
            pen.text((left, below + offset * _LINE), short, fill=_BLACK, font=font)

    for line, row in enumerate(rows):
        tile(0, line, row.query, None, "query")
        for column, (index, correct, cosine) in enumerate(zip(row.nearest, row.correct, row.cosine, strict=True), 1):
            tile(column, line, index, correct, f"{'right' if correct else 'wrong'}, {cosine:.2g}")
    stream = io.BytesIO()
    sheet.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _fitted(pixels: NDArray[np.uint8], side: int) -> Image.Image:
    """The picture with its longer side at `side` pixels; small ones keep their sharp pixels."""
    image = Image.fromarray(pixels).convert("RGB")
    scale = side / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.NEAREST if scale > 1 else Image.Resampling.LANCZOS)


def _frame(pen: ImageDraw.ImageDraw, left: int, top: int, size: int, correct: bool | None) -> None:
    """Thin and grey for a query, whole and blue for what is correct, dashed and orange for what is not."""
    right, bottom = left + size - 1, top + size - 1
    if correct is not False:
        thick, colour = (_FRAME, _BLUE) if correct else (1, _GREY)
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
