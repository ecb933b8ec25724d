"""Reads other people's numbers from a CSV file into rows of a table."""

import csv
import math
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from orchestrator.spec.layouts import MOST_NUMBERS, MOST_ROWS, Share
from orchestrator.views.errors import InvalidImportError, TooLargeError
from workers.catalog import Findings, Problem, brief, shown, suggestion

MAX_BYTES: Final = 4 * 1024 * 1024
MOST_LINES: Final = 20_000
MOST_COLUMNS: Final = 5_000
MOST_CELLS: Final = 500_000
LONGEST_NAME: Final = 500

_NUMBER: Final = re.compile(r"[+-]?(\d{1,30}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,3})?")
_UNPRINTABLE: Final = re.compile(r"[^\t\n\r -~\u00a0-\U0010ffff]")


Layout = Literal["summary", "wandb", "mlflow"]
"""`summary`: a line per number with mean, std and n; `runs`: a line per run, as W&B and MLflow export them."""


SUMMARY: Final = {"metric": "metric", "mean": "mean", "std": "std", "n": "n"}
"""The columns of a summary, by what they hold."""
_STATES: Final[Mapping[str, tuple[str, ...]]] = {"wandb": ("State", "state"), "mlflow": ("status", "Status")}
_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {"mlflow": ("metrics.", "params.", "tags.")}
_FINISHED: Final = "finished"

_Labels = tuple[tuple[str, str], ...]
_Place = tuple[str, _Labels, str]  # the row's label, the labels of the column axes, the metric


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a CSV file of imported numbers is read: its layout, its unit and source, and which columns hold what."""

    layout: Layout
    unit: Share
    source: str
    rows: tuple[str, ...] = ()  # the columns whose texts are the label of a row
    label: str = ""  # the label of the only row, if no column has labels
    axes: Mapping[str, str] = field(default_factory=dict)  # by column axis of the table, the column of the file
    metrics: Mapping[str, str] = field(default_factory=dict)  # by metric of the table, what the file calls it
    renamed: Mapping[str, str] = field(default_factory=dict)  # by a text in an axis' column, the label that it means
    where: Mapping[str, str] = field(default_factory=dict)  # by column, the text of the lines that are taken
    columns: Mapping[str, str] = field(default_factory=dict)  # by `metric`, `mean`, `std`, `n`: the column of a summary
    seed: str = ""  # the column that tells runs of one number apart
    against: Mapping[str, str] | None = None  # the labels of the sweep's row that they are tested against


@dataclass(frozen=True, slots=True)
class FileRows:
    """The imported rows for a table of the spec, and sentences on what was left out of the file."""

    rows: list[dict[str, Any]]
    notes: list[str]


def imported(content: bytes, options: ImportOptions, name: str = "the file") -> FileRows:
    """Converts a CSV file to imported rows. Raises InvalidImportError with every problem by line, or TooLargeError."""
    problems = Findings()
    file = read(content, problems)
    reading = _Reading(file, options, problems)
    numbers = {} if problems else reading.numbers()
    rows = _rows(numbers, options)
    if not problems and not rows:
        problems.append(Problem("", "no line has a number of the requested metrics"))
    if len(rows) > MOST_ROWS:
        problems.append(Problem("", f"there are {len(rows):,} rows; a table takes {MOST_ROWS}: name others by --where"))
    for row in rows:
        if len(row["numbers"]) > MOST_NUMBERS:
            problems.append(Problem("", f"row {shown(row['label'])} has more than {MOST_NUMBERS} numbers"))
    if problems:
        raise InvalidImportError(problems.report(), name)
    return FileRows(rows, reading.notes)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a CSV file below its header."""

    number: int  # as an editor counts them
    cells: Mapping[str, str]  # by column, without the blanks around them


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A parsed CSV file: its columns, and the lines below them."""

    columns: tuple[str, ...]
    lines: tuple[Line, ...]

    def require(self, required: Collection[str], problems: list[Problem]) -> bool:
        """Whether the CSV file has all `required` columns; appends a problem for each missing or repeated column."""
        known = len(problems)
        for column in dict.fromkeys(required):
            times = self.columns.count(column)
            if times != 1:
                message = f"there is no column {shown(column)}; {suggestion(column, self.columns)}"
                problems.append(Problem("line 1", message if not times else f"the column {shown(column)} stands twice"))
        return len(problems) == known


def read(content: bytes, problems: list[Problem]) -> CsvFile:
    """Parses a CSV file; appends each malformed line to `problems`. Raises TooLargeError if it is too large."""
    if len(content) > MAX_BYTES:
        raise TooLargeError(f"The CSV file has {len(content):,} bytes; at most {MAX_BYTES:,} are allowed.")
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
                raise TooLargeError(f"The CSV file has more than {MOST_LINES:,} lines, or {MOST_CELLS:,} cells.")
    except csv.Error as error:
        problems.append(Problem(f"line {reader.line_num}", f"is no CSV: {brief(str(error), 100)}"))
    if not columns and not problems:
        problems.append(Problem("", "the file is empty; expected a line of column names, and lines below it"))
    elif not lines and not problems:
        problems.append(Problem("", "there is no line below that of the column names"))
    return CsvFile(columns, tuple(lines))


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
        raise TooLargeError(f"The CSV file has {len(cells):,} columns; at most {MOST_COLUMNS:,} are allowed.")
    if len(cells) == 1 and any(sign in cells[0] for sign in ";\t"):
        problems.append(Problem("line 1", "the columns are not separated by commas; save the file so"))
    for at, one in enumerate(cells):
        if len(one) > LONGEST_NAME or not one.isprintable():
            problems.append(Problem("line 1", f"column {at + 1} has no name of at most {LONGEST_NAME} characters"))
    return tuple(one.strip() for one in cells)


def _line(number_: int, cells: list[str], columns: tuple[str, ...], problems: list[Problem]) -> Line:
    if len(cells) != len(columns):
        message = f"has {len(cells)} cells, where the first line has {len(columns)}"
        problems.append(Problem(f"line {number_}", message))
        cells = [*cells, *[""] * len(columns)][: len(columns)]
    return Line(number_, {column: one.strip() for column, one in zip(columns, cells, strict=True)})


@dataclass
class _Reading:
    """Reads one file."""

    file: CsvFile
    options: ImportOptions
    problems: Findings
    notes: list[str] = field(default_factory=list)

    def numbers(self) -> dict[_Place, dict[str, Any]]:
        return self._summary() if self.options.layout == "summary" else self._of_runs()

    # A line a number

    def _summary(self) -> dict[_Place, dict[str, Any]]:
        columns = {**SUMMARY, **self.options.columns}
        optional = [what for what in ("std", "n") if what not in self.options.columns]
        lacking = [what for what in optional if columns[what] not in self.file.columns]
        required = [column for what, column in columns.items() if what not in lacking]
        if not self.file.require([*required, *self._placing()], self.problems):
            return {}
        names = {theirs: ours for ours, theirs in self.options.metrics.items()}
        numbers: dict[_Place, dict[str, Any]] = {}
        first: dict[_Place, int] = {}
        for line in self._lines():
            theirs = line.cells[columns["metric"]]
            if names and theirs not in names:
                continue
            at = (self._label(line), self._labels(line), names.get(theirs, theirs))
            if not theirs:
                self._note(place(line, columns["metric"]), "is empty; expected the name of a metric")
            elif at in numbers:
                self._note(f"line {line.number}", f"gives the same number as line {first[at]}")
            elif (statistic := self._statistic(line, columns, lacking)) is not None:
                numbers[at], first[at] = statistic, line.number
        return numbers

    def _statistic(self, line: Line, columns: Mapping[str, str], lacking: list[str]) -> dict[str, Any] | None:
        """Mean, deviation and n of a line; None where the line lacks them."""
        mean = number(line, columns["mean"], self.problems)
        if mean is None and not line.cells[columns["mean"]]:
            self._note(place(line, columns["mean"]), "is empty; expected a number")
        statistic: dict[str, Any] = {"mean": mean}
        std = None if "std" in lacking else number(line, columns["std"], self.problems)
        if std is not None and std < 0:
            self._note(place(line, columns["std"]), f"a deviation is not below zero, found {std:g}")
        runs = None if "n" in lacking else number(line, columns["n"], self.problems)
        if runs is not None and not (runs.is_integer() and 1 <= runs <= 1_000_000):
            self._note(place(line, columns["n"]), f"expected a number of runs, 1 or more, found {runs:g}")
        elif runs == 1 and std is not None:
            self._note(place(line, columns["std"]), "is given of one run, which has no deviation; leave it empty")
        statistic |= {"std": std} if std is not None else {}
        statistic |= {"n": int(runs)} if runs is not None else {}
        return None if mean is None else statistic

    # A line a run

    def _of_runs(self) -> dict[_Place, dict[str, Any]]:
        if not self.options.metrics:
            self._note("", "no metric is named; say which column has which, such as recall@1=test/R1")
            return {}
        columns = {ours: self._column(theirs) for ours, theirs in self.options.metrics.items()}
        seed = [self._column(self.options.seed)] if self.options.seed else []
        if not self.file.require([*columns.values(), *seed, *self._placing()], self.problems):
            return {}
        values: dict[_Place, list[float]] = {}
        seeds: dict[tuple[_Place, str], int] = {}
        empty: dict[str, list[int]] = {}
        for line in self._finished():
            for ours, column in columns.items():
                value = number(line, column, self.problems)
                if value is None:
                    empty.setdefault(column, []).extend([] if line.cells[column] else [line.number])
                    continue
                at = (self._label(line), self._labels(line), ours)
                values.setdefault(at, []).append(value)
                if seed and (earlier := seeds.setdefault((at, line.cells[seed[0]]), line.number)) != line.number:
                    message = (
                        f"{shown(line.cells[seed[0]])} is that of line {earlier} already, which counts to the same"
                    )
                    self._note(
                        place(line, seed[0]), f"{message} number; name what tells them apart by --row or --where"
                    )
        for column, lines in empty.items():
            if lines:
                message = f"finished runs without {shown(column)}, which may have diverged, are left out: {len(lines)}"
                self.notes.append(
                    f"{message}, from line {lines[0]} on" if len(lines) > 1 else f"{message}, line {lines[0]}"
                )
        return {at: _statistic(found) for at, found in values.items()}

    def _finished(self) -> Iterator[Line]:
        state = next((one for one in _STATES[self.options.layout] if one in self.file.columns), None)
        if state is None:
            self.notes.append("the file has no column that says which runs finished; all of them count")
        left: dict[str, int] = {}
        for line in self._lines():
            state_text = _FINISHED if state is None else line.cells[state].casefold()
            if state_text == _FINISHED:
                yield line
            else:
                left[state_text] = left.get(state_text, 0) + 1
        if left:
            states = ", ".join(f"{times} {word or 'without a state'}" for word, times in left.items())
            self.notes.append(f"runs that did not finish are left out: {states}")

    # What both have

    def _placing(self) -> list[str]:
        axes = map(self._column, self.options.axes.values())
        return [*map(self._column, self.options.rows), *axes, *map(self._column, self.options.where)]

    def _column(self, name: str) -> str:
        """The column of a name, which MLflow prefixes by `metrics.`, `params.` or `tags.`."""
        if name in self.file.columns:
            return name
        prefixed = [f"{one}{name}" for one in _PREFIXES.get(self.options.layout, ())]
        return next((one for one in prefixed if one in self.file.columns), name)

    def _lines(self) -> Iterator[Line]:
        conditions = {self._column(column): text for column, text in self.options.where.items()}
        for line in self.file.lines:
            if all(line.cells[column] == text for column, text in conditions.items()):
                yield line

    def _label(self, line: Line) -> str:
        texts = [line.cells[self._column(column)] for column in self.options.rows]
        label = " ".join(text for text in texts if text) or self.options.label
        if not label:
            where = place(line, self._column(self.options.rows[0])) if self.options.rows else f"line {line.number}"
            self._note(where, "the row has no label; name a column by --row, or give --label")
        elif len(label) > 200:
            self._note(f"line {line.number}", "the label of its row has more than 200 characters")
        return label

    def _labels(self, line: Line) -> _Labels:
        texts = ((axis, line.cells[self._column(column)]) for axis, column in self.options.axes.items())
        return tuple((axis, self.options.renamed.get(text, text)) for axis, text in texts)

    def _note(self, where: str, message: str) -> None:
        self.problems.append(Problem(where, message))


def place(line: Line, column: str) -> str:
    """The place of a CSV cell in messages: its line and column."""
    return f"line {line.number}, column {shown(column)}"


def number(line: Line, column: str, problems: list[Problem]) -> float | None:
    """Parses the number in a CSV cell, None if the cell is empty; appends any other text to `problems`."""
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


def _no_number(text: str) -> str:
    if text.casefold().lstrip("+-") in {"nan", "inf", "infinity", "none", "null"}:
        return f"{shown(text)} is no finite number; a run that diverged has no mean: take its line away, and say so"
    if text.endswith("%"):
        return f"expected a number, found {shown(text)}; write it without the sign, and say `percent` as the unit"
    if "±" in text:
        return f"expected a number, found {shown(text)}; write mean and deviation in columns of their own"
    return f"expected a number such as 65.1 or 6.51e1, found {shown(text)}"


def _statistic(values: list[float]) -> dict[str, Any]:
    """Mean, sample standard deviation (n - 1; None for a single run) and n."""
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return {"mean": mean, "n": n}
    return {"mean": mean, "std": math.sqrt(math.fsum((one - mean) ** 2 for one in values) / (n - 1)), "n": n}


def _rows(numbers: Mapping[_Place, Mapping[str, Any]], options: ImportOptions) -> list[dict[str, Any]]:
    rows: dict[str, list[dict[str, Any]]] = {}
    for (label, labels, metric), found in numbers.items():
        of = {"of": dict(labels)} if labels else {}
        rows.setdefault(label, []).append({"metric": metric, **of, **found})
    against = {"against": dict(options.against)} if options.against else {}
    head = {"source": options.source, "unit": options.unit, **against}
    return [{"label": label, **head, "numbers": found} for label, found in rows.items()]
