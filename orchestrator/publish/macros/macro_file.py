r"""A file of macros: `\msMainTripletRecallAtOne` prints the value, `[interval]`, `[std]` and `[seeds]` the others."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from orchestrator.publish.tables.tex_characters import escape
from orchestrator.views.errors import DamagedError
from orchestrator.views.macros import MacroAddress, MacroNumber, MacrosView

MAGIC: Final = "% metricsweep-macros 1 "
_NUMBER: Final = "% number "
_MINUS: Final = re.compile(r"(?<![\w.])-(?=[\d.])")
_HEAD: Final = r"""\makeatletter
\providecommand{\ms@number}[6]{%
  \@ifundefined{#1}{}{\PackageError{metricsweep}{#1 is there already}{Use another --prefix.}}%
  \@namedef{ms@#1@value}{#2}\@namedef{ms@#1@interval}{#3}\@namedef{ms@#1@std}{#4}\@namedef{ms@#1@seeds}{#5}%
  \@namedef{ms@#1@all}{#2 #6}%
  \expandafter\newcommand\csname #1\endcsname[1][value]{\ms@get{#1}{##1}}}
\providecommand{\ms@get}[2]{\@ifundefined{ms@#1@#2}%
  {\PackageError{metricsweep}{#1 has no #2}{It has value, interval, std, seeds and all.}}{\@nameuse{ms@#1@#2}}}"""


@dataclass(frozen=True, slots=True)
class MacroFile:
    """A file of macros as it lies on disk."""

    path: Path
    address: MacroAddress
    numbers: dict[str, tuple[int, MacroNumber]]
    """By name, with the line where it stands."""
    edited: frozenset[str]
    """Those whose line is not as it was written."""


def written(view: MacrosView) -> str:
    r"""The file; it is taken in by `\input` before or in the document, and needs no package."""
    return "\n".join(_lines(view)) + "\n"


def _lines(view: MacrosView) -> Iterator[str]:
    yield MAGIC + json.dumps(view.model_dump(include=set(MacroAddress.model_fields)))
    yield f"% Table {escape(view.table)} of sweep {view.sweep} ({escape(view.sweep_name)}), made by metricsweep."
    yield "% `metricsweep check PAPER.tex` says which numbers have changed since. Do not edit: it would be found."
    yield f"% {escape(view.caption)}"
    yield _HEAD
    for one in view.numbers:
        yield _NUMBER + json.dumps(one.model_dump())
        yield _macro(one)
    yield "\\makeatother"


def _macro(one: MacroNumber) -> str:
    runs = f"(95 % CI {one.interval}, n = {one.seeds})" if one.seeds > 1 else f"(n = {one.seeds})"
    fields = (one.value, one.interval, one.std, str(one.seeds), runs)
    texts = (_MINUS.sub(lambda _: r"\ensuremath{-}", escape(text)) for text in fields)
    return f"\\ms@number{{{one.name}}}" + "".join(f"{{{text}}}" for text in texts)


def read(path: Path, text: str) -> MacroFile | None:
    """The macros in a file; none where it is another kind of file. DamagedError says which line cannot be read."""
    lines = text.splitlines()
    at = next((at for at, line in enumerate(lines[:5]) if line.startswith(MAGIC)), None)
    if at is None:
        return None
    numbers: dict[str, tuple[int, MacroNumber]] = {}
    edited: set[str] = set()
    line = at
    try:
        address = MacroAddress.model_validate_json(lines[at].removeprefix(MAGIC))
        for line in range(at, len(lines)):
            if lines[line].startswith(_NUMBER):
                number = MacroNumber.model_validate_json(lines[line].removeprefix(_NUMBER))
                numbers[number.name] = (line + 2, number)
                edited |= {number.name} if lines[line + 1] != _macro(number) else set()
        return MacroFile(path, address, numbers, frozenset(edited))
    except (ValueError, ValidationError, KeyError, TypeError, IndexError) as error:
        raise DamagedError(f"{path}, line {line + 1}: the macros cannot be read; write them again") from error
