"""A table that a paper takes in whole, as `metricsweep table` wrote it, beside what it would be today."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_HEAD: Final = re.compile(
    r"% Table '(?P<table>.+)' of sweep (?P<sweep>\d{1,9}) \((?P<name>.*)\), made by metricsweep\."
)
_FIRST_LINES: Final = 20
_LONGEST: Final = 1000  # characters of the line that names a table
_SPANNED: Final = re.compile(r"\\multicolumn\{(\d{1,4})\}\{[lcr](?:@\{\\hspace\{[^{}]*\}\})?\}\{(.*)\}\s*$")
_DROPPED: Final = re.compile(r"\\phantom\{(?:[^{}]|\{[^{}]*\})*\}|\\makebox\[[^\]]*\]\[l\]|\\multirow\{\d+\}\{\*\}")
_BOLD: Final = re.compile(r"\\textbf\{([^{}]*)\}")
_SIGNS: Final = {
    r"\pm": "±",
    r"\ldots": "…",
    r"\uparrow": "↑",
    r"\downarrow": "↓",
    r"\Uparrow": "⇑",
    r"\Downarrow": "⇓",
}


@dataclass(frozen=True, slots=True)
class WholeTable:
    """A file that holds a table."""

    path: Path
    sweep: int
    sweep_name: str  # as TeX has it
    table: str
    rows: tuple["TexRow", ...]

    def differences(self, today: "WholeTable") -> Iterator[tuple[int, str]]:
        """Line and words of each cell that is not what the table of today has."""
        if self.sweep_name != today.sweep_name:
            yield 1, f"sweep {self.sweep} is another one there: its name is {today.sweep_name}, not {self.sweep_name}"
            return
        now = {one.key: one for one in today.rows}
        for row in self.rows:
            other = now.get(row.key)
            if other is None:
                yield row.line, f"{row.label}: the table has no such row any more"
            elif len(other.cells) != len(row.cells):
                yield row.line, f"{row.label}: {len(row.cells)} columns in the paper, {len(other.cells)} now"
            else:
                yield from ((row.line, said) for said in row.differences(other))
        known = {one.key for one in self.rows}
        for other in today.rows:
            if other.key not in known:
                yield self.rows[-1].line if self.rows else 1, f"{other.label}: a row of the table that the paper lacks"


@dataclass(frozen=True, slots=True)
class TexRow:
    """A line of a tabular."""

    line: int
    key: tuple[str, int]  # its headings, and the how many-th row with these it is
    label: str
    titles: tuple[str, ...]
    cells: tuple[str, ...]

    def differences(self, now: "TexRow") -> Iterator[str]:
        """In words, what of it is otherwise."""
        for at, (old, new) in enumerate(zip(self.cells, now.cells, strict=True)):
            if old != new:
                title = self.titles[at] if at < len(self.titles) and self.titles[at] else f"column {at + 1}"
                yield f"{self.label}, {title}: {old or 'nothing'} in the paper, {new or 'nothing'} now"


def read(path: Path, text: str) -> WholeTable | None:
    """The table in a file; none where it is another kind of file."""
    lines = text.splitlines()
    head = next((found for line in lines[:_FIRST_LINES] if (found := _HEAD.fullmatch(line[:_LONGEST].strip()))), None)
    if head is None:
        return None
    plain = head["table"].replace("\\_", "_").replace("{}", "")
    return WholeTable(path, int(head["sweep"]), head["name"], plain, tuple(_rows(lines)))


def _rows(lines: list[str]) -> Iterator[TexRow]:
    titles: tuple[str, ...] = ()
    above: list[str] = []
    within, body = False, False
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if text.startswith("\\begin{tabular}"):
            within, body, above = True, False, []
        elif text.startswith("\\end{tabular}"):
            within = False
        elif within and text.startswith("\\midrule"):
            body = True
        elif within and text.endswith("\\\\") and not body:
            titles = tuple(_cells(text))
        elif within and text.endswith("\\\\"):
            cells = _cells(text)
            stub = next((at for at, one in enumerate(cells) if _is_number(one)), len(cells))
            above = [one or before for one, before in zip(cells[:stub], [*above, *[""] * stub], strict=False)]
            label = " ".join(one for one in above if one and one != "–") or f"row {len(seen) + 1}"
            seen[label] = seen.get(label, 0) + 1
            yield TexRow(number, (label, seen[label]), label, titles, tuple(cells))


def _cells(line: str) -> list[str]:
    found: list[str] = []
    for cell in re.split(r"(?<!\\)&", line.removesuffix("\\\\")):
        spanned = _SPANNED.match(cell.strip())
        found += [_plain(spanned[2] if spanned else cell), *[""] * (int(spanned[1]) - 1 if spanned else 0)]
    return found


def _plain(cell: str) -> str:
    """What of a cell a reader sees, without what only takes room; bold is `**`."""
    text = _BOLD.sub(r"**\1**", _DROPPED.sub("", cell))
    for name, sign in _SIGNS.items():
        text = text.replace(name, sign)
    text = re.sub(r"\\[a-zA-Z]+\*?|(?<!\\)[{}$]", "", text)
    return re.sub(r"\\([&%#_{}$])", r"\1", text).replace("--", "–").strip()


def _is_number(text: str) -> bool:
    return bool(re.match(r"\**[+-]?\.?\d|…|–$|diverged$|failed$", text))
