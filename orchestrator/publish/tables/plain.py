"""A label as one printable line, as every format writes it, and about how wide that line is."""

import re
import unicodedata
from typing import Final

_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs"})  # control characters, direction marks, half surrogates
_FIXED_BLANKS: Final = "\u00a0\u2009\u202f"
_NARROW: Final = frozenset(" ijlftrI.,:;!|/()[]'")
_FIRST_WIDE: Final = 0x2E80  # from here on (Chinese, Japanese, Korean, emoji) characters fill a square


def one_line(text: str) -> str:
    """`text` without what cannot be printed (or not in XML), every run of blanks one space, none at the ends."""
    blanks = "".join(" " if one.isspace() and one not in _FIXED_BLANKS else one for one in text)
    kept = (one for one in blanks if unicodedata.category(one) not in _UNPRINTABLE and one not in "\ufffe\uffff")
    return re.sub(" +", " ", "".join(kept)).strip()


def width(text: str, size: float) -> float:
    """About how wide a text is in a sans-serif font of that size, in the same unit; rather too wide than too narrow."""
    return size * sum(_advance(character) for character in text)


def _advance(character: str) -> float:
    if ord(character) >= _FIRST_WIDE or character in "…—":
        return 1.0
    if character in _NARROW:
        return 0.3
    return 0.7 if character.isupper() or character in "mw%@" else 0.55
