"""The picture of retrievals: every image where it belongs, and right told from wrong without colour."""

import io

import numpy as np
from PIL import Image

from workers.figures.arrays import RetrievalRow, contact_sheet

SIDE = 32
TILE = SIDE + 2 * 4 + 6
LINE = SIDE + 2 * 4 + 2 * 14 + 6


def sheet(rows: list[RetrievalRow], shape: tuple[int, ...] = (8, 8), name: str = "a class") -> np.ndarray:
    """The pixels of a sheet whose image `i` is of the shade 10 i."""
    content = contact_sheet(rows, lambda i: np.full(shape, 10 * i, np.uint8), lambda _: name, SIDE)
    assert content.startswith(b"\x89PNG")
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def tile(pixels: np.ndarray, column: int, line: int) -> np.ndarray:
    """A picture with its frame."""
    left, top = 6 + column * TILE, 6 + line * LINE
    return pixels[top : top + SIDE + 8, left : left + SIDE + 8]


ROWS = [RetrievalRow(1, [2, 3], [True, False], [0.9, 0.8]), RetrievalRow(4, [5, 6], [False, False], [0.7, 0.6])]


def test_every_image_stands_in_its_place() -> None:
    pixels = sheet(ROWS)
    assert pixels.shape == (2 * LINE + 6, 3 * TILE + 6, 3)
    for line, row in enumerate(ROWS):
        for column, index in enumerate([row.query, *row.nearest]):
            inner = tile(pixels, column, line)[4:-4, 4:-4]
            assert (inner == 10 * index).all()


def test_right_and_wrong_differ_without_colour() -> None:
    grey = sheet(ROWS).mean(axis=2)
    query, right, wrong = (tile(grey, column, 0)[0] for column in range(3))
    paper = 255.0
    assert (right < paper).all()  # a whole frame
    assert set(np.diff(np.flatnonzero(np.diff(wrong != paper)))) <= {6}  # dashes
    assert (query < paper).all()
    assert (tile(grey, 0, 0)[1, 1:-1] == paper).all()  # a thin one
    assert (tile(grey, 1, 0)[3] < paper).all()
    words = [tile(grey[44:], column, 0)[:14] for column in (1, 2)]
    assert not np.array_equal(*words)


def test_pictures_keep_their_proportions_and_colours() -> None:
    pixels = sheet([RetrievalRow(20, [10], [True], [1.0])], shape=(10, 20, 3))
    inner = tile(pixels, 1, 0)[4:-4, 4:-4]
    assert (inner[8:24] == 100).all()
    assert (inner[:8] == 255).all()
    assert (inner[24:] == 255).all()


def test_long_names_stay_in_their_column() -> None:
    short, long = (sheet(ROWS, name=name) for name in ("a", "Black-footed Albatross of the northern Pacific"))
    below = 6 + SIDE + 8 + 14
    changed = np.flatnonzero((short[below : below + 14] != long[below : below + 14]).any(axis=(0, 2)))
    assert len(changed)
    assert {int(place - 6) % TILE for place in changed} <= set(range(SIDE + 9))


def test_the_same_sheet_twice() -> None:
    assert np.array_equal(sheet(ROWS), sheet(ROWS))
