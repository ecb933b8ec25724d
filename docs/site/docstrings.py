"""Docstrings as Sphinx reads them: ours are plain text in which only backticks mean something."""

import re
from typing import Any


def as_markup(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Double the backticks of code, and let no other character mean anything; in place."""
    lines[:] = [_plain(line) for line in lines]


def _plain(line: str) -> str:
    pieces = re.split(r"(`+[^`]+`+)", line)
    return "".join(
        f"``{piece.strip('`')}``" if place % 2 else re.sub(r"([*|\\])|_(?=\W|$)", r"\\\g<0>", piece)
        for place, piece in enumerate(pieces)
    )
