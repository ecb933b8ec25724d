"""A picture of retrievals: each query and its nearest images in a row, framed by whether they are of its class."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.figures.tiles import Tile, tiled

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
    one and the word wrong. Beside the word stands the cosine.
    """

    def tiles(row: RetrievalRow) -> list[Tile]:
        shown = [Tile(picture(row.query), "thin", ["query", name(row.query)])]
        for index, correct, cosine in zip(row.nearest, row.correct, row.cosine, strict=True):
            words = [f"{'right' if correct else 'wrong'}, {cosine:.2g}", name(index)]
            shown.append(Tile(picture(index), "whole" if correct else "dashed", words))
        return shown

    return tiled([tiles(row) for row in rows], side)
