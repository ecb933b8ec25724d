"""The numbers of a table as LaTeX macros or JSON, for the text of a paper."""

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from orchestrator.publish.aggregate import interval
from orchestrator.publish.labels import escape
from orchestrator.publish.tables import build
from orchestrator.publish.tables.table_data import Column, Table, TableCell
from orchestrator.views.errors import ConflictError, DamagedError
from orchestrator.views.evidence import MacroAddress, MacroNumber, MacrosView
from orchestrator.views.runs import Statistic, SweepOutcomes
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


ONE_RUN = "one run"
NO_NUMBER = "no number"


def macros_of(outcomes: SweepOutcomes, uid: str, name: str, catalog: Catalog, prefix: str = PREFIX) -> MacrosView:
    """The table `name` as macros; NotFoundError where there is none, ConflictError where it has no number to name."""
    checked_prefix(prefix)
    built = build.build(outcomes, name, catalog)
    places = list(_places(built))
    if not places:
        raise ConflictError(f"table '{name}' of sweep {outcomes.sweep} has no cell with a metric, so no number to name")
    labels = {cell.index: cell.labels for cell in outcomes.cells}
    parts = (
        (name, *labels[cell.cell or 0].values(), column.name, *([f"on_{column.selection}"] if column.selection else []))
        for column, cell in places
    )
    numbers = [
        _number(one, labels[place.cell or 0], column, place, built.sweep)
        for one, (column, place) in zip(macro_names(prefix, parts), places, strict=True)
    ]
    return MacrosView(
        sweep=outcomes.sweep, uid=uid, sweep_name=outcomes.name, table=name, prefix=prefix, caption=built.caption,
        numbers=numbers,
    )  # fmt: skip


def _places(built: Table) -> Iterator[tuple[Column, TableCell]]:
    for panel in built.panels:
        for row in panel.rows:
            for column, place in zip(panel.columns, row.cells, strict=True):
                if column.kind == "metric" and place.cell is not None:
                    yield column, place


def _number(name: str, labels: Mapping[str, str], column: Column, place: TableCell, sweep: int) -> MacroNumber:
    statistic = place.statistic
    return MacroNumber(
        name=name, labels=dict(labels), metric=column.name, split=column.split, selection=column.selection or "",
        sweep=sweep, cell=place.cell or 0, value=place.text or NO_NUMBER, interval=_interval(statistic, column),
        std=_std(statistic, column), seeds=statistic.n if statistic else 0,
    )  # fmt: skip


def _interval(found: Statistic | None, column: Column) -> str:
    if found is None:
        return NO_NUMBER
    bounds = interval(found)
    if bounds is None:
        return ONE_RUN if found.n == 1 else NO_NUMBER
    low, high = (printed(bound, column.unit, column.decimals) for bound in bounds)
    return f"[{low}, {high}]"


def _std(found: Statistic | None, column: Column) -> str:
    if found is None or found.std is None:
        return ONE_RUN if found is not None and found.n == 1 else NO_NUMBER
    return printed(found.std, column.unit, column.decimals)
