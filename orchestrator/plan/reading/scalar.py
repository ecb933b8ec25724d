"""YAML 1.2's core schema: what a plain scalar is, and its value."""

import re
from collections.abc import Callable, Mapping
from typing import Final

Scalar = str | int | float | bool | None

CORE: Final = "tag:yaml.org,2002:"
"""What the tags of the schema begin with; written `!!`."""

MAX_INTEGER: Final = 2**63 - 1
MIN_INTEGER: Final = -(2**63)
_LONGEST_INTEGER: Final = 30  # digits; longer fits no 64 bits, and Python's own limit is an error of another kind

_INTEGER: Final = r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"
_NUMBER: Final = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

PLAIN: Final[Mapping[str, tuple[str, str]]] = {
    "null": (r"~|null|Null|NULL|", "~nN"),
    "bool": (r"true|True|TRUE|false|False|FALSE", "tTfF"),
    "int": (_INTEGER, "-+0123456789"),
    "float": (rf"{_NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
}
"""By tag, in order of precedence: the pattern of its plain scalars and the characters that these begin with."""


def tag_of(text: str) -> str:
    """The tag that a plain scalar has by what it looks like, such as `int`; `str` where it looks like nothing else."""
    return next((tag for tag, pattern in _BY_FIRST.get(text[:1], ()) if pattern.fullmatch(text)), "str")


def read(tag: str, text: str) -> Scalar:
    """The value of a scalar by its tag, such as `int`; ValueError says what is wrong with it."""
    if tag not in _READERS:
        raise ValueError(f"the tag '!!{tag}' is not allowed; a spec holds plain values only")
    return _READERS[tag](text)


_PATTERNS: Final = {tag: (re.compile(pattern), first) for tag, (pattern, first) in PLAIN.items()}
_BY_FIRST: Final = {
    first: [(tag, pattern) for tag, (pattern, firsts) in _PATTERNS.items() if first in firsts]
    for first in {one for _, firsts in _PATTERNS.values() for one in firsts}
} | {"": [("null", _PATTERNS["null"][0])]}


def _null(text: str) -> None:
    if text not in ("", "~") and text.lower() != "null":
        raise ValueError(f"'{_short(text)}' is not null")


def _bool(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(f"'{_short(text)}' is neither true nor false")
    return text.lower() == "true"


def _int(text: str) -> int:
    if not re.fullmatch(_INTEGER, text):
        raise ValueError(f"'{_short(text)}' is not a whole number")
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    if len(text) > _LONGEST_INTEGER or not MIN_INTEGER <= int(text, base) <= MAX_INTEGER:
        raise ValueError(f"the number {_short(text)} does not fit 64 bits")
    return int(text, base)


def _float(text: str) -> float:
    if not re.fullmatch(_NUMBER, text):
        raise ValueError(f"'{_short(text)}' is not a finite number")
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {_short(text)} is out of range")
    return number


def _str(text: str) -> str:
    try:  # JSON writes a character beyond U+FFFF as two escapes
        text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("this text holds half of a surrogate pair") from None
    if "\0" in text:
        raise ValueError("this text holds a NUL character")
    return text


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


_READERS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "null": _null, "bool": _bool, "int": _int, "float": _float, "str": _str,
}  # fmt: skip
