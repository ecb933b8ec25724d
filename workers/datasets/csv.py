"""A CSV file that lists images with their classes and splits."""

import csv
import io
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from annotated_types import Ge

from workers.catalog.recipe import below_root
from workers.catalog.wording import counted, listed, near
from workers.contract import DataDamagedError, DataMissingError, DataOptionError
from workers.data import listing
from workers.data.listing import Listed, Source
from workers.data.pictures import Form, Picture, find, inside, reading, shown

_SHOWN: Final = 20  # problems in a message
_DELIMITERS: Final = ",;\t"


class Csv:
    """The images that the CSV `file` below the data root lists, one a line, after a line with names of columns.

    Columns: `path`, relative to `folder` or else to the folder of the file; `label`, the name of the class; and
    `split`, whose values in `train`, `test` or `unused` decide. With `split: null` the first half of the classes in the
    order of their names trains. Commas, semicolons or tabs separate columns; the text is UTF-8, or UTF-16 with a byte
    order mark. No class may be in both splits, unless `disjoint: false`. Images are turned as the orientation in their
    EXIF data says.
    """

    label = "CSV list"
    channels = 3
    manifest = None

    def __init__(  # noqa: PLR0913 - hyper-parameters
        self,
        root: Path,
        scratch: Path,
        *,
        file: str,
        folder: str | None = None,
        path: str = "path",
        label: str = "label",
        split: str | None = "split",
        train: tuple[str, ...] = ("train",),
        test: tuple[str, ...] = ("test",),
        unused: tuple[str, ...] = (),
        disjoint: bool = True,
        side: Annotated[int, Ge(1)] = 256,
        resize: Literal["shorter", "square"] = "shorter",
        on_error: Literal["stop", "skip"] = "stop",
        content: str | None = None,
    ) -> None:
        self.expected = content
        place = find(root, [inside(file)])
        below = place.parent if folder is None else root / inside(folder)
        values = {"train": train, "test": test, "unused": unused}
        table = _Table(place, below, {"path": path, "label": label, "split": split}, values)
        halves = table.halves(disjoint=disjoint)
        source = Source(f"csv-{place.stem}", Form(resize, side, upright=True), scratch, on_error=on_error)
        self.train, self.test, self.content, self.notes = listing.load(source, *halves)


@dataclass
class _Table:
    """The lines of a CSV file, and what is wrong with them, by line."""

    file: Path
    folder: Path
    columns: Mapping[str, str | None]  # the name of the column for each hyper-parameter `path`, `label` and `split`
    values: Mapping[str, tuple[str, ...]]  # the values of the column `split` for each of train, test, unused
    wrong: list[tuple[int, str]] = field(default_factory=list)
    missing: int = 0  # how many of these are missing files

    def halves(self, *, disjoint: bool) -> tuple[list[Listed], list[Listed]]:
        """The images that train and those that test; raises DataMissingError or DataDamagedError with all problems."""
        splits = {value.casefold(): half for half, values in self.values.items() for value in values}
        if len(splits) < sum(map(len, self.values.values())):
            raise DataOptionError(f"dataset: `train`, `test` and `unused` name a split twice: {dict(self.values)}")
        halves: dict[str, list[Listed]] = {"train": [], "test": [], "unused": []}
        paths: dict[str, int] = {}
        first: dict[tuple[str, str], int] = {}  # the first line of each class in each split
        strange: dict[str, list[int]] = {}  # the lines of each unknown split
        for line, name, label, split in self._rows():
            half = splits.get(split.casefold(), "") if self.columns["split"] is not None else "train"
            if not half:
                strange.setdefault(split, []).append(line)
            if half == "unused":
                continue
            if not label:
                self._report(line, "no label")
            self._check_path(line, name, paths)
            first.setdefault((label, half), line)
            halves.get(half, []).append(Listed(Picture(self.folder / name), label))
        for split, lines in strange.items():
            found = f"split {split!r}" if split else "no split"
            known = ", ".join(f"{key}: {listed(values)}" for key, values in self.values.items() if values)
            self._report(lines[0], f"{found} (in {counted(len(lines), 'line')}); expected {known}")
        if self.columns["split"] is None:
            classes = sorted({image.label for image in halves["train"]}, key=str)
            tested = {*classes[len(classes) // 2 :]}
            halves["test"] = [image for image in halves["train"] if image.label in tested]
            halves["train"] = [image for image in halves["train"] if image.label not in tested]
        elif disjoint:
            for (label, half), line in first.items():
                if half == "test" and label and (other := first.get((label, "train"))):
                    self._report(line, f"class {label!r} is in test, and in train in line {other} (see `disjoint`)")
        self._refuse()
        if empty := [half for half in listing.HALVES if not halves[half]]:
            raise DataDamagedError(f"{shown(self.file)}: no line is in {' or '.join(empty)}")
        return halves["train"], halves["test"]

    def _check_path(self, line: int, name: str, paths: dict[str, int]) -> None:
        """Check that a path is below the folder, listed once, and that the file exists."""
        if not name:
            self._report(line, "no path")
        elif not below_root(name):
            self._report(line, f"{shown(name)} is not a path below {shown(self.folder.name)}")
        elif (other := paths.setdefault(os.path.normpath(name), line)) != line:
            self._report(line, f"{shown(name)} is in line {other} too")
        elif not (self.folder / name).is_file():
            self.missing += 1
            self._report(line, f"{shown(name)} is missing")

    def _report(self, line: int, problem: str) -> None:
        self.wrong.append((line, problem))

    def _refuse(self) -> None:
        if not self.wrong:
            return
        lines = [f"line {line}: {problem}" for line, problem in sorted(self.wrong)]
        more = f"; and {len(lines) - _SHOWN:,} more" if len(lines) > _SHOWN else ""
        found = f"{shown(self.file)}: {counted(len(lines), 'problem')}: {'; '.join(lines[:_SHOWN])}{more}"
        only_missing = self.missing == len(lines)
        where = f"; paths are relative to {shown(self.folder.absolute())}" if self.missing else ""
        raise (DataMissingError if only_missing else DataDamagedError)(found + where)

    def _rows(self) -> Iterator[tuple[int, str, str, str]]:
        """The line number, path, label and split (empty without a column) of each line that is not blank."""
        text = self._text()
        delimiter = max(_DELIMITERS, key=text.partition("\n")[0].count)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True)
        try:
            names = [name.strip() for name in next(reader, [])]
            at = self._columns(names)
            line = reader.line_num
            for row in reader:
                line, number = reader.line_num, line + 1  # a quoted value may contain line breaks
                if not any(map(str.strip, row)):
                    continue
                if len(row) != len(names):
                    self._report(number, f"{counted(len(row), 'value')}, expected {len(names)}")
                    continue
                path, label, split = (row[place].strip() if place is not None else "" for place in at)
                yield number, path, label, split
        except csv.Error as error:
            raise DataDamagedError(f"{shown(self.file)}: line {reader.line_num}: {error}") from error

    def _columns(self, names: list[str]) -> list[int | None]:
        """The places of the columns path, label and split; raises DataDamagedError for all that are missing."""
        wrong = []
        for parameter, name in self.columns.items():
            if name is not None and names.count(name) != 1:
                found = f"{names.count(name)} columns" if name in names else "no column"
                hint = f" (did you mean {meant!r}?)" if (meant := near(name, names)) and meant != name else ""
                wrong.append(f"{found} {name!r}{hint}: set `{parameter}`")
        if wrong:
            known = listed(names) if names else "none"
            raise DataDamagedError(f"{shown(self.file)}: line 1: {'; '.join(wrong)}; the columns are {known}")
        return [None if name is None else names.index(name) for name in self.columns.values()]

    def _text(self) -> str:
        with reading(self.file, "save it as UTF-8"):
            content = self.file.read_bytes()
            if content.startswith((b"\xff\xfe", b"\xfe\xff")):
                return content.decode("utf-16")
            try:
                return content.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                line = content.count(b"\n", 0, error.start) + 1
                raise ValueError(f"line {line} is not UTF-8, at byte {error.start:,}") from error
