"""A CSV file of somebody else's: its columns by name and its lines, refused where it is too large or malformed."""

import csv
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.views.errors import TooLargeError
from workers.catalog import Problem, brief, meant, shown

MAX_BYTES: Final = 4 * 1024 * 1024
MOST_LINES: Final = 20_000
MOST_COLUMNS: Final = 5_000
MOST_CELLS: Final = 500_000
LONGEST_NAME: Final = 500

_NUMBER: Final = re.compile(r"[+-]?(\d{1,30}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")
_UNPRINTABLE: Final = re.compile(r"[^\t\n\r -~\u00a0-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Line:
    """One line below the header."""

    number: int  # as an editor counts them
    cells: Mapping[str, str]  # by column, without the blanks around them


@dataclass(frozen=True, slots=True)
class CsvFile:
    """The columns of a file, and the lines below them."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def require(self, wanted: Collection[str], problems: list[Problem]) -> bool:
        """Whether it has all of the columns; notes those that it lacks or has twice."""
        known = len(problems)
        for column in dict.fromkeys(wanted):
            times = self.columns.count(column)
            if times != 1:
                said = f"there is no column {shown(column)}; {meant(column, self.columns)}"
                problems.append(Problem("line 1", said if not times else f"the column {shown(column)} stands twice"))
        return len(problems) == known


def read(content: bytes, problems: list[Problem]) -> CsvFile:
    """The file; notes what is wrong with its form, by line. TooLargeError where it is too large."""
    if len(content) > MAX_BYTES:
        raise TooLargeError(f"The file has {len(content):,} bytes; at most {MAX_BYTES:,} are allowed.")
    text = _decoded(content, problems)
    if problems:
        return CsvFile((), ())
    if "\r" in text.replace("\r\n", ""):
        problems.append(Problem("", "lines end with a carriage return alone; save the file with line feeds"))
        return CsvFile((), ())
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    lines: list[Line] = []
    columns: tuple[str, ...] = ()
    try:
        for cells in reader:
            if not any(one.strip() for one in cells):
                continue
            if not columns:
                columns = _columns(cells, problems)
                if problems:
                    break
                continue
            lines.append(_line(reader.line_num, cells, columns, problems))
            if len(lines) > MOST_LINES or len(lines) * len(columns) > MOST_CELLS:
                raise TooLargeError(f"The file has more than {MOST_LINES:,} lines, or {MOST_CELLS:,} cells.")
    except csv.Error as error:
        problems.append(Problem(f"line {reader.line_num}", f"is no CSV: {brief(str(error), 100)}"))
    if not columns and not problems:
        problems.append(Problem("", "the file is empty; expected a line of column names, and lines below it"))
    elif not lines and not problems:
        problems.append(Problem("", "there is no line below that of the column names"))
    return CsvFile(columns, tuple(lines))


def number(line: Line, column: str, problems: list[Problem]) -> float | None:
    """The finite number in a cell, none where it is empty; notes what is none."""
    text = line.cells[column]
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        problems.append(Problem(place(line, column), _no_number(text)))
        return None
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        problems.append(Problem(place(line, column), f"{shown(text)} is beyond what a number holds"))
        return None
    return value


def place(line: Line, column: str) -> str:
    """Where a cell stands."""
    return f"line {line.number}, column {shown(column)}"


def _no_number(text: str) -> str:
    if text.casefold().lstrip("+-") in {"nan", "inf", "infinity", "none", "null"}:
        return f"{shown(text)} is no finite number; a run that diverged has no mean: take its line away, and say so"
    if text.endswith("%"):
        return f"expected a number, found {shown(text)}; write it without the sign, and say `percent` as the unit"
    if "±" in text:
        return f"expected a number, found {shown(text)}; write mean and deviation in columns of their own"
    return f"expected a number such as 65.1 or 6.51e1, found {shown(text)}"


def _decoded(content: bytes, problems: list[Problem]) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        problems.append(Problem("", "the text is UTF-16; save it as UTF-8"))
        return ""
    try:
        text = content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        problems.append(Problem(f"line {line}", f"the text is not UTF-8: byte 0x{content[error.start]:02x}"))
        return ""
    for bad in list(_UNPRINTABLE.finditer(text))[:20]:
        line = text.count("\n", 0, bad.start()) + 1
        problems.append(Problem(f"line {line}", f"the character U+{ord(bad.group()):04X} is not allowed"))
    return text


def _columns(cells: list[str], problems: list[Problem]) -> tuple[str, ...]:
    if len(cells) > MOST_COLUMNS:
        raise TooLargeError(f"The file has {len(cells):,} columns; at most {MOST_COLUMNS:,} are allowed.")
    if len(cells) == 1 and any(sign in cells[0] for sign in ";\t"):
        problems.append(Problem("line 1", "the columns are not separated by commas; save the file so"))
    for at, one in enumerate(cells):
        if len(one) > LONGEST_NAME or not one.isprintable():
            problems.append(Problem("line 1", f"column {at + 1} has no name of at most {LONGEST_NAME} characters"))
    return tuple(one.strip() for one in cells)


def _line(number_: int, cells: list[str], columns: tuple[str, ...], problems: list[Problem]) -> Line:
    if len(cells) != len(columns):
        said = f"has {len(cells)} cells, where the first line has {len(columns)}"
        problems.append(Problem(f"line {number_}", said))
        cells = [*cells, *[""] * len(columns)][: len(columns)]
    return Line(number_, {column: one.strip() for column, one in zip(columns, cells, strict=True)})
