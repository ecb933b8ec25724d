"""Makes the tables of a bundle again from its data alone, and compares them byte by byte."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import IO, Any, Final

from pydantic import BaseModel, TypeAdapter

from orchestrator.publish import formats, reproduction_files
from orchestrator.publish.bundle import contents
from orchestrator.publish.bundle.contents import Reader, json_file, opened, read_looks
from orchestrator.publish.reproduction import WITHIN, findings, published_tables, reproduction
from orchestrator.publish.tables import build
from orchestrator.publish.tables.evidence import judged
from orchestrator.publish.tables.select import layout_of
from orchestrator.publish.tables.table_data import Numbers
from orchestrator.views.errors import BusyError, DamagedError, MetricsweepError, NotFoundError, timely
from orchestrator.views.runs import SweepLook, SweepResults
from orchestrator.views.sweeps import SweepHead
from workers.catalog import Catalog

_MEANINGLESS: Final = (ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""The errors that reading meaningless data may raise."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """The data of a bundle from which its tables are computed."""

    head: SweepHead
    results: SweepResults
    catalog: Catalog
    trials: bytes  # the Parquet file


class Rendering(BaseModel):
    """The manifest entry of a file that follows from the data: a table, a reproduction report or verdicts."""

    table: str  # or the paper of a reproduction report
    numbers: str  # whose numbers the table shows; `reproduction` or `verdicts` for the others
    format: str
    file: str


class Rebuilt(Rendering):
    """A table, a reproduction report or verdicts of a bundle, made again from its data in one format."""

    content: bytes
    difference: str  # from the file in the bundle; empty if they are equal

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


_COMPARED: Final[tuple[Numbers, ...]] = ("own", "both", "verdict")
"""The views of a table that names a published table."""


def renderings(
    results: SweepResults, catalog: Catalog, looks: Sequence[SweepLook], skipped: list[dict[str, str]]
) -> Iterator[tuple[Rendering, bytes]]:
    """The files that follow from the data of a sweep: tables, then reproduction reports, then verdicts.

    Tables that cannot be built are added to `skipped`, with the reason.
    """
    verdicts = []
    for name in results.spec.get("tables") or {}:
        for numbers in _COMPARED if layout_of(results.spec, name).published else _COMPARED[:1]:
            try:
                built = build.build(results, name, catalog, numbers=numbers)
            except BusyError:
                raise
            except MetricsweepError as error:
                skipped.append({"table": name, "numbers": numbers, "reason": str(error)})
                continue
            for format_name in timely(formats.names()):
                made = formats.render(built, format_name)
                file = f"tables/{name}/{numbers}/{format_name}{PurePath(made.filename).suffix}"
                yield Rendering(table=name, numbers=numbers, format=format_name, file=file), made.content
            if numbers == "own":
                verdicts.append(judged(built, results, looks))
    papers = dict.fromkeys(table.paper for table in published_tables(results.spec, catalog.published).values())
    found = findings(results, catalog, WITHIN) if papers else []
    for paper in papers:
        view = reproduction(paper, found, WITHIN, catalog.published)
        for format_name in reproduction_files.formats():
            made = reproduction_files.render(view, format_name)
            file = f"reproduction/{paper.lower()}{PurePath(made.filename).suffix}"
            yield Rendering(table=paper, numbers="reproduction", format=format_name, file=file), made.content
    labels = {cell.index: cell.labels for cell in results.cells}
    for table in verdicts:
        if table.pairs:
            name = table.table.name
            content = json_file(table.view(labels).model_dump(mode="json"))
            yield Rendering(table=name, numbers="verdicts", format="json", file=f"verdicts/{name}.json"), content


def rebuild(source: IO[bytes], table: str | None = None, file_format: str | None = None) -> RebuildReport:
    """Check a bundle and make its tables, reports and verdicts again; optionally only one table or one format.

    Raises DamagedError if it is not an intact bundle, and NotFoundError if it has no such table.
    """
    with _understood(source) as archive:
        wanted = _wanted(archive.manifest, table, file_format)
        data, looks = _data(archive), read_looks(archive.read(contents.LOOKS))
        again = {made.file: content for made, content in renderings(data.results, data.catalog, looks, [])}
        made = []
        for rendering in wanted:
            content = again.get(rendering.file, b"")
            difference = _difference(archive.read(rendering.file), content)
            made.append(Rebuilt(**rendering.model_dump(), content=content, difference=difference))
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


def _wanted(manifest: Mapping[str, Any], table: str | None, format_name: str | None) -> list[Rendering]:
    known = TypeAdapter(list[Rendering]).validate_python(manifest["made"])
    found = [made for made in known if table in (None, made.table) and format_name in (None, made.format)]
    if not found and (known or table or format_name):
        tables = [made for made in known if made.numbers not in ("reproduction", "verdicts")]
        names = ", ".join(dict.fromkeys(made.table for made in tables)) or "none"
        kinds = ", ".join(dict.fromkeys(made.format for made in tables)) or "none"
        raise NotFoundError(f"the bundle has no such table; its tables: {names}; their formats: {kinds}")
    return found


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
