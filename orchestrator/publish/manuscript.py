"""Compares the macros and tables of a manuscript with the results of a sweep."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from orchestrator.publish.macros import MacroFile, macro_names, read
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import MacroNumber, MacrosView

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

MOST_FILES: Final = 500
MOST_BYTES: Final = 8 * 2**20
_TAKEN: Final = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]+)\}|\\input\s+([^\s{}\\]+)")
_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_NUMBER: Final = re.compile(r"\**[+-]?\.?\d|…|–$|diverged$|failed$")


@dataclass(frozen=True, slots=True)
class WholeTable:
    """A LaTeX file of a manuscript that holds a table of a sweep."""

    path: Path
    sweep: int
    sweep_name: str  # as TeX has it
    table: str
    rows: tuple["TexRow", ...]

    def differences(self, today: "WholeTable") -> Iterator[tuple[int, str]]:
        """Each cell of the manuscript's table that differs from the current table, as a line number and a message."""
        if self.sweep_name != today.sweep_name:
            yield 1, f"sweep {self.sweep} is another one there: its name is {today.sweep_name}, not {self.sweep_name}"
            return
        now = {row.key: row for row in today.rows}
        for row in self.rows:
            other = now.pop(row.key, None)
            if other is None:
                yield row.line, f"{row.label}: the table has no such row any more"
            elif len(other.cells) != len(row.cells):
                yield row.line, f"{row.label}: {len(row.cells)} columns in the paper, {len(other.cells)} now"
            else:
                yield from ((row.line, difference) for difference in row.differences(other))
        for other in now.values():
            yield self.rows[-1].line if self.rows else 1, f"{other.label}: a row of the table that the paper lacks"


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A number of a manuscript that differs from the recorded result, and where the manuscript uses it."""

    where: str  # file and line of the macro
    name: str
    message: str
    used: Sequence[str]  # files and lines where the manuscript prints it


@dataclass(frozen=True, slots=True)
class Manuscript:
    """The macro and table files that a LaTeX paper includes, and where it uses macros."""

    files: Sequence[MacroFile]
    uses: Mapping[str, Sequence[str]]  # files and lines, by the name of a macro
    tables: Sequence[WholeTable] = ()
    outside: Sequence[str] = ()  # included files in other folders, which are not read

    def compare(self, file: MacroFile, today: MacrosView) -> Iterator[Disagreement]:
        """Each macro of a file of the manuscript that differs from the recorded result."""
        if today.uid != file.address.uid:
            sweep = f"sweep {file.address.sweep} ({today.sweep_name})"
            message = f"{sweep} is another one there: its id is {today.uid}, not {file.address.uid}"
            uses = [use for name in file.numbers for use in self.uses.get(name, ())]
            yield Disagreement(f"{file.path}:1", "", message, uses)
            return
        current = {_key(number): number for number in today.numbers}
        for name, (line, number) in file.numbers.items():
            message = _difference(number, current.get(_key(number)))
            if name in file.edited:
                message = "; ".join(filter(None, ("its line was edited by hand", message)))
            if message:
                yield Disagreement(f"{file.path}:{line}", name, message, self.uses.get(name, ()))

    def strange(self) -> Iterator[Disagreement]:
        """The macros that the manuscript uses with the prefix of a macro file, but that no file defines."""
        known = {name for file in self.files for name in file.numbers}
        starts = tuple({macro_names(file.address.prefix, [(file.address.table,)])[0] for file in self.files})
        for name, places in self.uses.items():
            if name not in known and name.startswith(starts):
                yield Disagreement(places[0], name, "no file of macros defines it", places)


def read_manuscript(paper: Path) -> Manuscript:
    """Reads a LaTeX paper with all files that it includes from its own folder.

    Raises NotFoundError if there is no such file, ConflictError if it includes neither macros nor a table.
    """
    if not paper.is_file():
        raise NotFoundError(f"no LaTeX file {paper}; give the main file of the paper")
    files: list[MacroFile] = []
    uses: dict[str, list[str]] = {}
    tables: list[WholeTable] = []
    outside: list[str] = []
    for path, text in _texts(paper, outside):
        if (table := read_table(path, text)) is not None:
            tables.append(table)
        elif (macros := read(path, text)) is not None:
            files.append(macros)
        else:
            for number, line in enumerate(_without_comments(text), 1):
                for name in re.findall(r"\\([A-Za-z]+)", line):
                    uses.setdefault(name, []).append(f"{path}:{number}")
    if not files and not tables:
        made = "`metricsweep table 7 main --macros main.tex` writes one"
        if paper.suffix in (".yaml", ".yml"):
            made = f"a spec is checked by `metricsweep submit --dry-run {paper}`"
        raise ConflictError(f"{paper} includes neither a macro file nor a table of a sweep; {made}")
    return Manuscript(files, uses, tables, outside)


def _texts(paper: Path, outside: list[str]) -> Iterator[tuple[Path, str]]:
    """The files of a paper, each once; TeX resolves paths from the folder of the paper.

    Files in other folders are added to `outside` and not read.
    """
    folder = paper.parent.resolve()
    waiting, seen = [paper], set[Path]()
    while waiting:
        path = waiting.pop()
        if path.resolve() in seen or not path.is_file():
            continue
        seen.add(path.resolve())
        if len(seen) > MOST_FILES or path.stat().st_size > MOST_BYTES:
            raise ConflictError(f"{path}: the paper has too many or too large files; at most {MOST_FILES} are read")
        text = path.read_text(encoding="utf-8", errors="replace")
        yield path, text
        for match in _TAKEN.finditer("\n".join(_without_comments(text))):
            name = (match[1] or match[2]).strip().strip('"')
            for candidate in (name, f"{name}.tex"):
                if os.path.isfile(included := paper.parent / candidate):  # noqa: PTH113 - a Path raises for a long name
                    if included.resolve().is_relative_to(folder):
                        waiting.append(included)
                    elif candidate not in outside:
                        outside.append(candidate)
                    break


def _without_comments(text: str) -> list[str]:
    return [_COMMENT.sub(r"\1", line) for line in text.splitlines()]


def read_table(path: Path, text: str) -> WholeTable | None:
    """Reads the table of a sweep in a LaTeX file; `None` if the file holds no such table."""
    lines = text.splitlines()
    head = next((found for line in lines[:_FIRST_LINES] if (found := _HEAD.fullmatch(line[:_LONGEST].strip()))), None)
    if head is None:
        return None
    plain = head["table"].replace("\\_", "_").replace("{}", "")
    return WholeTable(path, int(head["sweep"]), head["name"], plain, tuple(_rows(lines)))


@dataclass(frozen=True, slots=True)
class TexRow:
    """A row of a LaTeX table in a manuscript: its line, headings and cells."""

    line: int
    key: tuple[str, int]  # its headings, and its number among the rows with these headings
    label: str
    titles: tuple[str, ...]
    cells: tuple[str, ...]

    def differences(self, now: "TexRow") -> Iterator[str]:
        """A message for each cell of the row that differs from the current row."""
        for at, (old, new) in enumerate(zip(self.cells, now.cells, strict=True)):
            if old != new:
                title = self.titles[at] if at < len(self.titles) and self.titles[at] else f"column {at + 1}"
                yield f"{self.label}, {title}: {old or 'nothing'} in the paper, {new or 'nothing'} now"


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
            stub = next((at for at, cell in enumerate(cells) if _NUMBER.match(cell)), len(cells))
            above = [cell or before for cell, before in zip(cells[:stub], [*above, *[""] * stub], strict=False)]
            label = " ".join(cell for cell in above if cell and cell != "–") or f"row {len(seen) + 1}"
            seen[label] = seen.get(label, 0) + 1
            yield TexRow(number, (label, seen[label]), label, titles, tuple(cells))


def _cells(line: str) -> list[str]:
    cells: list[str] = []
    for cell in re.split(r"(?<!\\)&", line.removesuffix("\\\\")):
        spanned = _SPANNED.match(cell.strip())
        cells += [_plain(spanned[2] if spanned else cell), *[""] * (int(spanned[1]) - 1 if spanned else 0)]
    return cells


def _plain(cell: str) -> str:
    """The visible text of a cell, without spacing; bold is `**`."""
    text = _BOLD.sub(r"**\1**", _DROPPED.sub("", cell))
    for name, sign in _SIGNS.items():
        text = text.replace(name, sign)
    text = re.sub(r"\\[a-zA-Z]+\*?|(?<!\\)[{}$]", "", text)
    return re.sub(r"\\([&%#_{}$])", r"\1", text).replace("--", "–").strip()


def _key(number: MacroNumber) -> tuple[object, ...]:
    return frozenset(number.labels.items()), number.metric, number.split, number.selection


def _difference(then: MacroNumber, now: MacroNumber | None) -> str:
    if now is None:
        return "the table has no such number any more"
    pairs = ((field, getattr(then, field), getattr(now, field)) for field in ("value", "interval", "std", "seeds"))
    return "; ".join(f"{field}: {old} in the paper, {new} now" for field, old, new in pairs if old != new)
