"""Makes the tables of a bundle again from its data alone, and says whether they are the same to the byte."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import IO, Any

from pydantic import TypeAdapter, ValidationError

from orchestrator.publish import formats
from orchestrator.publish.bundle import columns, contents
from orchestrator.publish.bundle.archive import Reader, opened
from orchestrator.publish.bundle.contents import Head, Rendering
from orchestrator.publish.tables import published_comparison
from orchestrator.publish.tables.table_data import Numbers, Table
from orchestrator.views.errors import DamagedError, NotFoundError
from orchestrator.views.outcomes import SweepOutcomes
from workers.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A table made again in one format."""

    rendering: Rendering
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
    versions: Mapping[str, tuple[str, str]]
    """What made the bundle and what makes it again, where they are not the same."""

    @property
    def identical(self) -> bool:
        """Whether every table is."""
        return all(one.identical for one in self.tables)


def rebuild(source: IO[bytes], table: str | None = None, file_format: str | None = None) -> RebuildReport:
    """Check an archive and make its tables again, or one of them, or those of one format.

    Raises DamagedError for what is no intact bundle, and NotFoundError where no such table is in it.
    """
    with opened(source) as archive:
        try:
            wanted = _wanted(archive.manifest, table, file_format)
            head = Head.model_validate_json(archive.read(contents.SWEEP))
            outcomes = _outcomes(archive, head)
            catalog = Catalog.model_validate_json(archive.read(contents.CATALOG))
            rebuilt = tuple(_rebuilt(archive, outcomes, catalog, wanted))
        except (ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DamagedError(f"the bundle cannot be understood: {error}") from error
        return RebuildReport(archive.id, head, len(archive.manifest["files"]), rebuilt, _versions(archive.manifest))


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
        cells=columns.read_cells(archive.read(contents.CELLS)),
        candidates=columns.read_candidates(archive.read(contents.CANDIDATES)),
        trials=columns.read_trials(archive.read(contents.TRIALS), archive.read(contents.METRICS)),
    )


def _rebuilt(archive: Reader, outcomes: SweepOutcomes, catalog: Catalog, wanted: list[Rendering]) -> Iterator[Rebuilt]:
    built: dict[tuple[str, Numbers], Table] = {}
    for one in wanted:
        key = (one.table, one.numbers)
        if key not in built:
            built[key] = published_comparison.build(outcomes, one.table, catalog, numbers=one.numbers)
        content = formats.render(built[key], one.format).content
        yield Rebuilt(one, content, _difference(archive.read(one.file), content))


def _difference(inside: bytes, again: bytes) -> str:
    """Where two files differ first."""
    if inside == again:
        return ""
    try:
        pairs = zip_longest(inside.decode().splitlines(), again.decode().splitlines())
    except UnicodeDecodeError:
        return f"{len(inside):,} bytes inside, {len(again):,} rebuilt"
    for number, (old, new) in enumerate(pairs, 1):
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
