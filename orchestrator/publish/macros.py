"""The numbers of a table as LaTeX macros or JSON, for the text of a paper."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count, product
from pathlib import Path
from string import ascii_uppercase
from typing import Final

from orchestrator.publish.aggregate import interval
from orchestrator.publish.labels import escape
from orchestrator.publish.tables import build
from orchestrator.publish.tables.table_data import Column, TableCell
from orchestrator.views.errors import ConflictError, DamagedError
from orchestrator.views.evidence import MacroAddress, MacroNumber, MacrosView
from orchestrator.views.runs import Labels, SweepResults
from orchestrator.views.tables import printed
from workers.catalog import Catalog

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

PREFIX: Final = "ms"
_SIGNS: Final = {"@": "At", ".": "Point", "-": "Minus", "+": "Plus", "=": "Is", "%": "Percent", "/": "Over"}
_DIGITS: Final = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
_PIECE: Final = re.compile(r"[A-Za-z]+|[0-9]|[@.+=%/-]")
_MOST: Final = 20

_ONE_RUN = "one run"
NO_NUMBER = "no number"


def macros_of(results: SweepResults, uid: str, name: str, catalog: Catalog, prefix: str = PREFIX) -> MacrosView:
    """A table's numbers as LaTeX macros.

    Raises NotFoundError for an unknown table `name`, ConflictError without numbers or if `prefix` is not all letters.
    """
    if not re.fullmatch(rf"[A-Za-z]{{1,{_MOST}}}", prefix):
        raise ConflictError(
            f"LaTeX macros cannot begin with {prefix!r}; expected 1 to {_MOST} letters from a to z, such as ms"
        )
    built = build.build(results, name, catalog)
    labels = {cell.index: cell.labels for cell in results.cells}
    places = [(column, place, labels[cell]) for column, place, cell in built.metric_cells()]
    if not places:
        raise ConflictError(f"table '{name}' of sweep {results.sweep} has no number yet; macros need one")
    parts = (
        (name, *named.values(), column.name, *([f"on_{column.selection}"] if column.selection else []))
        for column, _, named in places
    )
    numbers = [
        _number(macro, *place, built.sweep) for macro, place in zip(macro_names(prefix, parts), places, strict=True)
    ]
    return MacrosView(
        sweep=results.sweep, uid=uid, sweep_name=results.name, table=name, prefix=prefix, caption=built.words.text,
        numbers=numbers,
    )  # fmt: skip


def _number(name: str, column: Column, cell: TableCell, labels: Labels, sweep: int) -> MacroNumber:
    measured = cell.statistic
    std = range_ = _ONE_RUN if measured is not None and measured.n == 1 else NO_NUMBER
    if measured is not None and measured.std is not None:
        std = printed(measured.std, column.unit, column.decimals)
    if measured is not None and (bounds := interval(measured)) is not None:
        low, high = (printed(bound, column.unit, column.decimals) for bound in bounds)
        range_ = f"[{low}, {high}]"
    return MacroNumber(
        name=name, labels=dict(labels), metric=column.name, split=column.split, selection=column.selection or "",
        sweep=sweep, cell=cell.cell or 0, value=cell.text or NO_NUMBER, interval=range_, std=std,
        seeds=measured.n if measured else 0,
    )  # fmt: skip


def macro_names(prefix: str, places: Iterable[tuple[str, ...]]) -> list[str]:
    """A LaTeX macro name for each place of a table, in their order; letters at the end distinguish equal names."""
    names: dict[str, None] = {}
    for parts in places:
        stem = prefix + "".join(map(_word, parts))
        choices = chain([stem], (f"{stem}X{letters}" for letters in _letters()))
        names[next(name for name in choices if name not in names)] = None
    return list(names)


def _word(text: str) -> str:
    """`semi_hard` -> SemiHard, `recall@1` -> RecallAtOne; a letter with an accent loses it."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return "".join(
        _DIGITS[int(piece)] if piece.isdigit() else _SIGNS.get(piece) or piece[0].upper() + piece[1:]
        for piece in _PIECE.findall(plain)
    )


def _letters() -> Iterator[str]:
    """A, B, ... Z, AA, AB, ..."""
    return ("".join(letters) for length in count(1) for letters in product(ascii_uppercase, repeat=length))


def written(view: MacrosView) -> str:
    r"""The macros as a LaTeX file for `\input` before or in the document; it needs no package."""
    lines = [
        MAGIC + json.dumps(view.model_dump(include=set(MacroAddress.model_fields))),
        f"% Table {escape(view.table)} of sweep {view.sweep} ({escape(view.sweep_name)}), made by metricsweep.",
        "% `metricsweep check PAPER.tex` says which numbers have changed since. Do not edit: it would be found.",
        f"% {escape(view.caption)}",
        _HEAD,
    ]
    for number in view.numbers:
        lines += [_NUMBER + json.dumps(number.model_dump()), _macro(number)]
    return "\n".join((*lines, "\\makeatother", ""))


def _macro(number: MacroNumber) -> str:
    runs = f"(95 % CI {number.interval}, n = {number.seeds})" if number.seeds > 1 else f"(n = {number.seeds})"
    fields = (number.value, number.interval, number.std, str(number.seeds), runs)
    texts = (_MINUS.sub(lambda _: r"\ensuremath{-}", escape(text)) for text in fields)
    return f"\\ms@number{{{number.name}}}" + "".join(f"{{{text}}}" for text in texts)


@dataclass(frozen=True, slots=True)
class MacroFile:
    """A LaTeX file of macros that this service wrote, read from disk."""

    path: Path
    address: MacroAddress
    numbers: dict[str, tuple[int, MacroNumber]]
    """By name, with the line number."""
    edited: frozenset[str]
    """The names of macros whose line was changed by hand."""


def read(path: Path, text: str) -> MacroFile | None:
    """Reads a LaTeX file of macros; `None` for another kind of file. DamagedError names a line that cannot be read."""
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
    except (ValueError, IndexError) as error:
        raise DamagedError(f"{path}, line {line + 1}: the macros cannot be read; write them again") from error
