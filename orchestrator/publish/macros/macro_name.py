"""The name of a macro: letters alone, made of a table, the labels of a cell and a metric."""

import re
import unicodedata
from collections.abc import Iterable
from typing import Final

from orchestrator.views.errors import ConflictError

PREFIX: Final = "ms"
_SIGNS: Final = {"@": "At", ".": "Point", "-": "Minus", "+": "Plus", "=": "Is", "%": "Percent", "/": "Over"}
_DIGITS: Final = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
_PIECE: Final = re.compile(r"[A-Za-z]+|[0-9]|[@.+=%/-]")
_MOST: Final = 20


def checked_prefix(prefix: str) -> str:
    """A prefix that may begin macros; ConflictError for one that TeX would not read as letters."""
    if not re.fullmatch(rf"[A-Za-z]{{1,{_MOST}}}", prefix):
        raise ConflictError(
            f"{prefix!r} cannot begin macros of LaTeX: 1 to {_MOST} letters from a to z can, such as ms"
        )
    return prefix


def macro_names(prefix: str, places: Iterable[tuple[str, ...]]) -> list[str]:
    """A name for each place, in their order; places that would share one get letters at the end."""
    names: list[str] = []
    taken: set[str] = set()
    for parts in places:
        stem = prefix + "".join(map(_word, parts))
        name, again = stem, 0
        while name in taken:
            again += 1
            name = f"{stem}X{_letters(again)}"
        taken.add(name)
        names.append(name)
    return names


def _word(text: str) -> str:
    """`semi_hard` -> SemiHard, `recall@1` -> RecallAtOne; a letter with an accent loses it."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    pieces = _PIECE.findall(plain)
    return "".join(
        _DIGITS[int(one)] if one.isdigit() else _SIGNS.get(one) or one[0].upper() + one[1:] for one in pieces
    )


def _letters(number: int) -> str:
    """1 -> A, 26 -> Z, 27 -> AA."""
    text = ""
    while number:
        number, digit = divmod(number - 1, 26)
        text = chr(ord("A") + digit) + text
    return text
