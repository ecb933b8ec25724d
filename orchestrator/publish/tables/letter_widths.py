"""How wide a text is in Helvetica, Arial or Liberation Sans, which share their widths: no font file is needed."""

import unicodedata
from typing import Final

# Advance widths of characters 32 to 126 in thousandths of the size, from Adobe's metrics of the core fonts.
_REGULAR: Final = (
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
)  # fmt: skip
_BOLD: Final = (
    278, 333, 474, 556, 556, 889, 722, 238, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 333, 333, 584, 584, 584, 611, 975, 722, 722, 722, 722, 667, 611, 778, 722, 278, 556, 722, 611, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 333, 278, 333, 584, 556, 333, 556, 611, 556, 611,
    556, 333, 611, 611, 278, 278, 556, 278, 889, 611, 611, 611, 611, 389, 556, 333, 611, 556, 778, 556, 556, 500, 389,
    280, 389, 584,
)  # fmt: skip
_OTHERS: Final = {
    "…": 1000,
    "—": 1000,
    "–": 556,
    "±": 549,
    "−": 584,
    "×": 584,
    "↓": 500,
    "↑": 500,
    "⇑": 600,
    "⇓": 600,
    "Δ": 600,
    "ω": 790,
    "ψ": 720,
    "π": 700,
    "φ": 660,
    "œ": 945,
    "æ": 890,
}
_LETTER: Final = 600  # Latin and Greek letters beyond ASCII, about
_CAPITAL: Final = 1010  # of Greek and Cyrillic the widest, Ю: a text that is taken to be too narrow would be cut off
_FIRST_CYRILLIC: Final = 0x400
_CYRILLIC: Final = 810
_WIDE: Final = 1000  # from here on (Hebrew, Indic scripts, CJK, emoji) characters may fill a square
_FIRST_WIDE: Final = 0x590


def width(text: str, size: float, *, bold: bool = False) -> float:
    """The width of `text` in the unit of `size`; exact for ASCII, an estimate beyond it."""
    table = _BOLD if bold else _REGULAR
    return sum(_advance(character, table) for character in text) * size / 1000


def _advance(character: str, table: tuple[int, ...]) -> int:
    code = ord(character)
    if 32 <= code <= 126:
        return table[code - 32]
    if character in _OTHERS:
        return _OTHERS[character]
    letter = ord(unicodedata.normalize("NFD", character)[0])  # of an accented one
    if 32 <= letter <= 126:
        return table[letter - 32]
    if code >= _FIRST_WIDE:
        return _WIDE
    if character.isupper():
        return _CAPITAL
    return _CYRILLIC if code >= _FIRST_CYRILLIC else _LETTER
