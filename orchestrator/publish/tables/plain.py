"""Text as one printable line: what every format makes of a label before it escapes it."""

import re
import unicodedata
from typing import Final

_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs"})  # control characters, direction marks, half surrogates
_FIXED_BLANKS: Final = "\u00a0\u2009\u202f"


def one_line(text: str) -> str:
    """`text` without what cannot be printed (or not in XML), every run of blanks one space, none at the ends."""
    blanks = "".join(" " if one.isspace() and one not in _FIXED_BLANKS else one for one in text)
    kept = (one for one in blanks if unicodedata.category(one) not in _UNPRINTABLE and one not in "\ufffe\uffff")
    return re.sub(" +", " ", "".join(kept)).strip()
