"""Makes the tables of a bundle again from its data alone, and says whether they are the same to the byte."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import IO, Any, Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.publish import formats, ledger, ledger_files
from orchestrator.publish.bundle import contents
from orchestrator.publish.bundle.contents import (
    Head,
    PackedLedger,
    PackedVerdicts,
    Reader,
    Rendering,
    opened,
    read_looks,
    verdict_files,
)
from orchestrator.publish.ledger import WITHIN, findings
from orchestrator.publish.tables import build
from orchestrator.publish.tables.table_data import Numbers, Table
from orchestrator.views.errors import DamagedError, NotFoundError
from orchestrator.views.runs import SweepOutcomes
from workers.catalog import Catalog

_MEANINGLESS: Final = (ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading data that make no sense may raise."""


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What a bundle's tables are computed from."""

    head: Head
    outcomes: SweepOutcomes
    catalog: Catalog
    trials: bytes
    """The file of its trials."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A table, a ledger, or a table's verdicts, made again in one format."""

    rendering: Rendering | PackedLedger | PackedVerdicts
    content: bytes
    difference: str  # how it differs from the one in the bundle; "" where it does not

    @property
    def identical(self) -> bool:
        """Whether every byte is the same."""
        return not self.difference


@dataclass(frozen=True, slots=True)
class RebuildReport:
    """What became of a bundle."""

    id: str  # the SHA-256 of its manifest
    head: Head
    files: int
    tables: tuple[Rebuilt, ...]
    ledgers: tuple[Rebuilt, ...]
    verdicts: tuple[Rebuilt, ...]
    versions: Mapping[str, tuple[str, str]]
    """What made the bundle and what makes it again, where they are not the same."""

    @property
    def identical(self) -> bool:
        """Whether all of it is."""
        return all(one.identical for one in self.made)

    @property
    def made(self) -> tuple[Rebuilt, ...]:
        """All that was made again."""
        return (*self.tables, *self.ledgers, *self.verdicts)


def rebuild(source: IO[bytes], table: str | None = None, file_format: str | None = None) -> RebuildReport:
    """Check an archive and make its tables and ledgers again, or one table, or those of one format.

    Raises DamagedError for what is no intact bundle, and NotFoundError where no such table is in it.
    """
    with opened(source) as archive:
        try:
            wanted = _wanted(archive.manifest, table, file_format)
            data = _data(archive)
            rebuilt = tuple(_rebuilt(archive, data.outcomes, data.catalog, wanted))
            books = () if table else tuple(_ledgers(archive, data, file_format))
            words = tuple(_verdicts(archive, data, table)) if file_format in (None, "json") else ()
        except _MEANINGLESS as error:
            raise DamagedError(f"the bundle cannot be understood: {error}") from error
        count, versions = len(archive.manifest["files"]), _versions(archive.manifest)
        return RebuildReport(archive.id, data.head, count, rebuilt, books, words, versions)


def unpacked(source: IO[bytes]) -> Unpacked:
    """What the tables of an archive are computed from, checked; raises DamagedError."""
    with opened(source) as archive:
        try:
            return _data(archive)
        except _MEANINGLESS as error:
            raise DamagedError(f"the bundle cannot be understood: {error}") from error


def _data(archive: Reader) -> Unpacked:
    head = Head.model_validate_json(archive.read(contents.SWEEP))
    catalog = Catalog.model_validate_json(archive.read(contents.CATALOG))
    return Unpacked(head, _outcomes(archive, head), catalog, archive.read(contents.TRIALS))


def _ledgers(archive: Reader, data: Unpacked, format_name: str | None) -> Iterator[Rebuilt]:
    known = TypeAdapter(list[PackedLedger]).validate_python(archive.manifest["ledgers"])
    wanted = [one for one in known if format_name in (None, one.format)]
    found = findings(data.outcomes, data.catalog, WITHIN) if wanted else []
    views = {paper: ledger.ledger(paper, found, WITHIN) for paper in dict.fromkeys(one.paper for one in wanted)}
    for one in wanted:
        content = ledger_files.render(views[one.paper], one.format).content
        yield Rebuilt(one, content, _difference(archive.read(one.file), content))


def _verdicts(archive: Reader, data: Unpacked, table: str | None) -> Iterator[Rebuilt]:
    known = TypeAdapter(list[PackedVerdicts]).validate_python(archive.manifest["verdicts"])
    again = {one.table: content for one, content in verdict_files(
        data.outcomes, data.catalog, read_looks(archive.read(contents.LOOKS)))}  # fmt: skip
    for one in known:
        if table in (None, one.table):
            content = again.get(one.table, b"")
            yield Rebuilt(one, content, _difference(archive.read(one.file), content))


def _wanted(manifest: Mapping[str, Any], table: str | None, format_name: str | None) -> list[Rendering]:
    known = TypeAdapter(list[Rendering]).validate_python(manifest["tables"])
    found = [one for one in known if table in (None, one.table) and format_name in (None, one.format)]
    if not found and (known or table or format_name):
        names = ", ".join(dict.fromkeys(one.table for one in known)) or "none"
        kinds = ", ".join(dict.fromkeys(one.format for one in known)) or "none"
        raise NotFoundError(f"the bundle has no such table; its tables: {names}; their formats: {kinds}")
    return found


def _outcomes(archive: Reader, head: Head) -> SweepOutcomes:
    return SweepOutcomes(
        sweep=head.id,
        name=head.name,
        state=head.state,
        spec=json.loads(archive.read(contents.SPEC)),
        cells=contents.read_cells(archive.read(contents.CELLS)),
        candidates=contents.read_candidates(archive.read(contents.CANDIDATES)),
        trials=contents.read_trials(archive.read(contents.TRIALS), archive.read(contents.METRICS)),
        queries=contents.source(archive.read(contents.QUERIES) if archive.holds(contents.QUERIES) else None),
    )


def _rebuilt(archive: Reader, outcomes: SweepOutcomes, catalog: Catalog, wanted: list[Rendering]) -> Iterator[Rebuilt]:
    built: dict[tuple[str, Numbers], Table] = {}
    for one in wanted:
        key = (one.table, one.numbers)
        if key not in built:
            built[key] = build.build(outcomes, one.table, catalog, numbers=one.numbers)
        content = formats.render(built[key], one.format).content
        yield Rebuilt(one, content, _difference(archive.read(one.file), content))


def _difference(inside: bytes, again: bytes) -> str:
    """Where two files differ first."""
    if inside == again:
        return ""
    before, after = (one.decode(errors="replace").splitlines() for one in (inside, again))
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
