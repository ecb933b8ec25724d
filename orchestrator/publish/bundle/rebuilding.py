"""Makes the tables of a bundle again from its data alone, and compares them byte by byte."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.publish import formats, reproduction, reproduction_files
from orchestrator.publish.bundle import contents
from orchestrator.publish.bundle.contents import (
    PackedReproduction,
    PackedVerdicts,
    Reader,
    Rendering,
    opened,
    read_looks,
    verdict_files,
)
from orchestrator.publish.reproduction import WITHIN, findings
from orchestrator.publish.tables import build
from orchestrator.publish.tables.table_data import Numbers, Table
from orchestrator.views.errors import DamagedError, NotFoundError
from orchestrator.views.runs import SweepResults
from orchestrator.views.sweeps import SweepHead
from workers.catalog import Catalog

_MEANINGLESS: Final = (ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""The errors that reading meaningless data may raise."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The data of a bundle from which its tables are computed."""

    head: SweepHead
    results: SweepResults
    catalog: Catalog
    trials: bytes  # the Parquet file


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A table, a reproduction report or verdicts of a bundle, made again from its data in one format."""

    table: str  # or the paper of a reproduction report
    numbers: str  # whose numbers the table shows; `reproduction` or `verdicts` for the others
    format: str
    file: str
    content: bytes
    difference: str  # from the file in the bundle; "" if there is none

    @property
    def identical(self) -> bool:
        """Whether the file in the bundle and the file made again agree in every byte."""
        return not self.difference


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """The comparison of the files of a bundle with the files that are made again from its data."""

    id: str  # the SHA-256 of its manifest
    head: SweepHead
    files: int
    made: tuple[Rebuilt, ...]  # tables, then reproduction reports, then verdicts
    versions: Mapping[str, tuple[str, str]]
    """By package the version that made the bundle and the present version, if they differ."""

    @property
    def identical(self) -> bool:
        """Whether every file of the bundle agrees in every byte with the file made again."""
        return all(rebuilt.identical for rebuilt in self.made)


def rebuild(source: IO[bytes], table: str | None = None, file_format: str | None = None) -> RebuildReport:
    """Check a bundle and make its tables, reports and verdicts again; optionally only one table or one format.

    Raises DamagedError if it is not an intact bundle, and NotFoundError if it has no such table.
    """
    with _understood(source) as archive:
        wanted = _wanted(archive.manifest, table, file_format)
        data = _data(archive)
        made = [*_tables(archive, data, wanted)]
        made += [] if table else _reproductions(archive, data, file_format)
        made += _verdicts(archive, data, table) if file_format in (None, "json") else []
        count, versions = len(archive.manifest["files"]), _versions(archive.manifest)
        return RebuildReport(archive.id, data.head, count, tuple(made), versions)


def unpacked(file: Path) -> Unpacked:
    """Reads and checks the data of a bundle from which its tables are computed; raises DamagedError."""
    with file.open("rb") as source, _understood(source) as archive:
        return _data(archive)


@contextmanager
def _understood(source: IO[bytes]) -> Iterator[Reader]:
    """An opened archive; errors while its data is read become DamagedError."""
    with opened(source) as archive:
        try:
            yield archive
        except _MEANINGLESS as error:
            raise DamagedError(f"the data of the bundle cannot be read: {error}") from error


def _data(archive: Reader) -> Unpacked:
    head = SweepHead.model_validate_json(archive.read(contents.SWEEP))
    trials = archive.read(contents.TRIALS)
    results = SweepResults(
        sweep=head.id,
        name=head.name,
        state=head.state,
        spec=json.loads(archive.read(contents.SPEC)),
        cells=contents.read_cells(archive.read(contents.CELLS)),
        candidates=contents.read_candidates(archive.read(contents.CANDIDATES)),
        trials=contents.read_trials(trials, archive.read(contents.METRICS)),
        queries=contents.source(archive.read(contents.QUERIES) if archive.holds(contents.QUERIES) else None),
    )
    return Unpacked(head, results, Catalog.model_validate_json(archive.read(contents.CATALOG)), trials)


def _reproductions(archive: Reader, data: Unpacked, format_name: str | None) -> Iterator[Rebuilt]:
    known = TypeAdapter(list[PackedReproduction]).validate_python(archive.manifest["reproductions"])
    wanted = [report for report in known if format_name in (None, report.format)]
    found = findings(data.results, data.catalog, WITHIN) if wanted else []
    views = {
        paper: reproduction.reproduction(paper, found, WITHIN, data.catalog.published)
        for paper in dict.fromkeys(report.paper for report in wanted)
    }
    for report in wanted:
        content = reproduction_files.render(views[report.paper], report.format).content
        yield _rebuilt(archive, (report.paper, "reproduction", report.format, report.file), content)


def _verdicts(archive: Reader, data: Unpacked, table: str | None) -> Iterator[Rebuilt]:
    known = TypeAdapter(list[PackedVerdicts]).validate_python(archive.manifest["verdicts"])
    looks = read_looks(archive.read(contents.LOOKS))
    again = {packed.table: content for packed, content in verdict_files(data.results, data.catalog, looks)}
    for packed in known:
        if table in (None, packed.table):
            yield _rebuilt(archive, (packed.table, "verdicts", "json", packed.file), again.get(packed.table, b""))


def _wanted(manifest: Mapping[str, Any], table: str | None, format_name: str | None) -> list[Rendering]:
    known = TypeAdapter(list[Rendering]).validate_python(manifest["tables"])
    found = [
        rendering for rendering in known if table in (None, rendering.table) and format_name in (None, rendering.format)
    ]
    if not found and (known or table or format_name):
        names = ", ".join(dict.fromkeys(rendering.table for rendering in known)) or "none"
        kinds = ", ".join(dict.fromkeys(rendering.format for rendering in known)) or "none"
        raise NotFoundError(f"the bundle has no such table; its tables: {names}; their formats: {kinds}")
    return found


def _tables(archive: Reader, data: Unpacked, wanted: list[Rendering]) -> Iterator[Rebuilt]:
    built: dict[tuple[str, Numbers], Table] = {}
    for table in wanted:
        key = (table.table, table.numbers)
        if key not in built:
            built[key] = build.build(data.results, table.table, data.catalog, numbers=table.numbers)
        yield _rebuilt(archive, (*key, table.format, table.file), formats.render(built[key], table.format).content)


def _rebuilt(archive: Reader, place: tuple[str, str, str, str], content: bytes) -> Rebuilt:
    return Rebuilt(*place, content, _difference(archive.read(place[-1]), content))


def _difference(inside: bytes, again: bytes) -> str:
    """Where two files first differ."""
    if inside == again:
        return ""
    before, after = (content.decode(errors="replace").splitlines() for content in (inside, again))
    for number, (old, new) in enumerate(zip_longest(before, after), 1):
        if old != new:
            return f"line {number}: {_shown(old)} inside, {_shown(new)} rebuilt"
    return "their line ends"


def _shown(line: str | None) -> str:
    return "nothing" if line is None else repr(line if len(line) <= 120 else f"{line[:117]}...")


def _versions(manifest: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    before, now = manifest.get("made_with") or {}, contents.made_with()
    return {
        name: (str(before.get(name, "none")), now.get(name, "none"))
        for name in sorted({*before, *now})
        if before.get(name, "none") != now.get(name, "none")
    }
