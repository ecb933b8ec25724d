"""Text from elsewhere made fit for a terminal or a log: nothing in it moves the cursor, colours or reorders."""

import re
from typing import Final

_UNFIT: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1 controls but tab and line feed: ESC and CSI begin a terminal's commands
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks and overrides: text that reads otherwise
    "\u2028\u2029"  # line ends that no `grep` sees
    "\u200b\ufeff\U000e0000-\U000e007f"  # invisible: two names that look the same
    "\ud800-\udfff"  # lone surrogates, which no output can encode
    "]"
)


def printable(text: str) -> str:
    r"""The text with every unfit character written out, ESC as `\x1b`; tabs and line ends stay."""
    return _UNFIT.sub(lambda found: _written(found.group()), text)


def printable_json(text: str) -> str:
    r"""A JSON document with the unfit characters as `\uXXXX`: the same document to any parser."""
    return _UNFIT.sub(lambda found: "".join(f"\\u{unit:04x}" for unit in _units(found.group())), text)


def one_line(text: str) -> str:
    r"""The text on one line, tabs and line ends written out as well."""
    return printable(text).replace("\t", "\\t").replace("\n", "\\n")


def _written(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _units(character: str) -> list[int]:
    """Its UTF-16 code units, as JSON writes them."""
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]
