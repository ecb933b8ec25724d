"""Compares the numbers of a manuscript, its macros and its tables, with those of a sweep."""

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


def read_table(path: Path, text: str) -> WholeTable | None:
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


MOST_FILES: Final = 500
MOST_BYTES: Final = 8 * 2**20
_TAKEN: Final = re.compile(r"\\(?:input|include|subfile)\s*\{([^{}]+)\}|\\input\s+([^\s{}\\]+)")
_COMMENT: Final = re.compile(r"(?<!\\)((?:\\\\)*)%.*")


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A number of a manuscript that is not what the records say."""

    where: str  # file and line of the macro
    name: str
    said: str
    used: Sequence[str]  # files and lines where the manuscript prints it


@dataclass(frozen=True, slots=True)
class Manuscript:
    """What a paper takes in and prints."""

    files: Sequence[MacroFile]
    uses: Mapping[str, Sequence[str]]  # by the name of a macro: files and lines
    tables: Sequence[WholeTable] = ()
    outside: Sequence[str] = ()  # files that it takes in from elsewhere, which are not read

    def compare(self, file: MacroFile, today: MacrosView) -> Iterator[Disagreement]:
        """Each macro of a file that says something else than the records do today."""
        if today.uid != file.address.uid:
            their, ours = f"sweep {file.address.sweep} ({today.sweep_name})", file.address.uid
            said = f"{their} is another one there: its id is {today.uid}, not {ours}"
            uses = [use for name in file.numbers for use in self.uses.get(name, ())]
            yield Disagreement(f"{file.path}:1", "", said, uses)
            return
        current = {_key(number): number for number in today.numbers}
        for name, (line, number) in file.numbers.items():
            said = _difference(number, current.get(_key(number)))
            if name in file.edited:
                said = "; ".join(filter(None, ("its line was edited by hand", said)))
            if said:
                yield Disagreement(f"{file.path}:{line}", name, said, self.uses.get(name, ()))

    def strange(self) -> Iterator[Disagreement]:
        """Macros with the prefix of a file that no file defines."""
        known = {name for file in self.files for name in file.numbers}
        starts = tuple({f"{file.address.prefix}{_camel(file.address.table)}" for file in self.files})
        for name, places in self.uses.items():
            if name not in known and starts and name.startswith(starts):
                yield Disagreement(places[0], name, "no file of macros defines it", places)


def read_manuscript(paper: Path) -> Manuscript:
    """A paper with all that it takes in from its folder; NotFoundError where it is not there.

    ConflictError where it takes in neither macros nor a table.
    """
    if not paper.is_file():
        raise NotFoundError(f"there is no file {paper}")
    files: list[MacroFile] = []
    uses: dict[str, list[str]] = {}
    tables: list[WholeTable] = []
    outside: list[str] = []
    for path, text in _texts(paper, outside):
        if (table := read_table(path, text)) is not None:
            tables.append(table)
        elif (sheet := read(path, text)) is not None:
            files.append(sheet)
        else:
            _note(path, text, uses)
    if not files and not tables:
        made = "`metricsweep table 7 main --macros main.tex` writes one"
        if paper.suffix in (".yaml", ".yml"):
            made = f"a spec is checked by `metricsweep submit --dry-run {paper}`"
        raise ConflictError(f"{paper} takes in no file of macros, nor a table; {made}")
    starts = tuple({file.address.prefix for file in files})
    return Manuscript(
        files, {name: places for name, places in uses.items() if name.startswith(starts)}, tables, outside
    )


def _texts(paper: Path, outside: list[str]) -> Iterator[tuple[Path, str]]:
    """The files of a paper, each once; paths are those from the folder of the paper, as TeX finds them.

    What lies elsewhere is noted and not read.
    """
    folder = paper.parent.resolve()
    waiting, seen = [paper], set[Path]()
    while waiting:
        path = waiting.pop()
        if path.resolve() in seen or not path.is_file():
            continue
        seen.add(path.resolve())
        if len(seen) > MOST_FILES or path.stat().st_size > MOST_BYTES:
            raise ConflictError(f"{path}: a paper of more than {MOST_FILES} files, or of larger ones, is not read")
        text = path.read_text(encoding="utf-8", errors="replace")
        yield path, text
        for match in _TAKEN.finditer(_bare(text)):
            name = (match[1] or match[2]).strip().strip('"')
            for candidate in (name, f"{name}.tex"):
                if _lies(there := paper.parent / candidate):
                    if there.resolve().is_relative_to(folder):
                        waiting.append(there)
                    elif candidate not in outside:
                        outside.append(candidate)
                    break


def _lies(path: Path) -> bool:
    """Whether there is such a file; what cannot be the name of one is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _note(path: Path, text: str, uses: dict[str, list[str]]) -> None:
    for number, line in enumerate(_bare(text).splitlines(), 1):
        for name in re.findall(r"\\([A-Za-z]+)", line):
            uses.setdefault(name, []).append(f"{path}:{number}")


def _bare(text: str) -> str:
    """A text without its comments, line by line."""
    return "\n".join(_COMMENT.sub(r"\1", line) for line in text.splitlines())


def _key(one: MacroNumber) -> tuple[object, ...]:
    return frozenset(one.labels.items()), one.metric, one.split, one.selection


def _difference(then: MacroNumber, now: MacroNumber | None) -> str:
    if now is None:
        return "the table has no such number any more"
    fields = [
        f"{title}: {old} in the paper, {new} now"
        for title, old, new in (
            ("value", then.value, now.value), ("interval", then.interval, now.interval), ("std", then.std, now.std),
            ("seeds", then.seeds, now.seeds),
        ) if old != new
    ]  # fmt: skip
    return "; ".join(fields)


def _camel(table: str) -> str:
    return macro_names("", [(table,)])[0]
