"""What needs no server: edited specs, previews, papers' tables, imported rows, and checks of manuscripts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.plan import csv_import
from orchestrator.plan.check import read_spec
from orchestrator.plan.edit import edited as with_values
from orchestrator.plan.edit import excerpt as subset_of
from orchestrator.plan.edit import with_figures, with_metrics
from orchestrator.plan.edit import with_rows as with_imported
from orchestrator.publish import formats, paper_tables, papers
from orchestrator.publish.macros import macros_of
from orchestrator.publish.manuscript import Disagreement, WholeTable, read_manuscript, read_table
from orchestrator.publish.tables import build
from orchestrator.service.forecast import forecast_here
from orchestrator.settings import Settings
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import MacroAddress, MacrosView, PublishedSummary
from orchestrator.views.pages import Rendered
from orchestrator.views.runs import NO_SWEEP, SweepResults
from orchestrator.views.states import SweepState
from orchestrator.views.sweeps import Preview
from workers import catalog as catalogs
from workers.catalog import Catalog

__all__ = ["subset_of", "with_figures", "with_imported", "with_metrics", "with_values"]  # for the commands


def preview(body: bytes, settings: Settings) -> Preview:
    """The size, known results and cost of the sweep of a spec, from the database of the home folder."""
    catalog = catalogs.load(settings.parts)
    return forecast_here(read_spec(body, catalog, papers.printed_lines(catalog.published)), settings, catalog)


def published_tables(catalog: Catalog) -> list[PublishedSummary]:
    """The papers' tables that metricsweep knows, and own ones."""
    return [paper_tables.summary(papers.load(name, catalog.published)) for name in papers.names(catalog.published)]


def published_file(table_id: str, file_format: str, settings: Settings) -> Rendered:
    """One of the papers' tables as a file of its own."""
    return paper_tables.render(papers.load(table_id, catalogs.load(settings.parts).published), file_format)


def published_like(table_id: str, body: bytes, name: str | None, file_format: str, settings: Settings) -> Rendered:
    """One of the papers' tables in the layout of a spec's table (by default its first).

    Raises InvalidSpecError for a wrong spec, NotFoundError for an unknown table or format.
    """
    catalog = catalogs.load(settings.parts)
    checked = read_spec(body, catalog, papers.printed_lines(catalog.published))
    spec = checked.spec.model_dump(mode="json")
    chosen = name if name is not None else next(iter(spec["tables"]), "")
    if chosen in spec["tables"]:
        spec["tables"][chosen]["published"] = papers.load(table_id, catalog.published).id
    cells, candidates = tuple(checked.plan.cells), tuple(checked.plan.candidates)
    results = SweepResults(NO_SWEEP, checked.spec.name, SweepState.QUEUED, spec, cells, candidates, ())
    return formats.render(build.build(results, chosen, catalog, numbers="published"), file_format)


def imported_rows(content: bytes, name: str, **options: Any) -> csv_import.FileRows:
    """Rows of a table from another project's file; `options` are those of `ImportOptions`, `name` is for messages.

    Raises InvalidImportError with every problem, or TooLargeError.
    """
    return csv_import.imported(content, csv_import.ImportOptions(**options), name)


Whole = Callable[[int, str], str]
"""The current LaTeX of a sweep's table; raises NotFoundError."""
Records = Callable[[MacroAddress], MacrosView]
"""The current macros of a table; raises NotFoundError."""


@dataclass(frozen=True, slots=True)
class ManuscriptReport:
    """The check of a manuscript's numbers against the recorded results."""

    files: int
    numbers: int
    used: int
    disagreements: tuple[Disagreement, ...]
    tables: int = 0
    """Tables that are included whole."""
    outside: tuple[str, ...] = ()
    """Files in other folders, which were not read."""

    @property
    def agrees(self) -> bool:
        """Whether every number that the manuscript prints is the recorded one."""
        return not any(disagreement.used for disagreement in self.disagreements)


def check(paper: Path, records: Records, whole: Whole | None = None) -> ManuscriptReport:
    """Compare every macro of a paper, and every table that it includes, with the recorded results.

    Raises NotFoundError, ConflictError or DamagedError if the files are not a paper.
    """
    read = read_manuscript(paper)
    disagreements = [*read.strange()]
    for file in read.files:
        try:
            today = records(file.address)
        except NotFoundError as error:
            uses = [use for name in file.numbers for use in read.uses.get(name, ())]
            disagreements.append(Disagreement(f"{file.path}:1", "", f"its numbers are not there: {error}", uses))
            continue
        disagreements += read.compare(file, today)
    for table in read.tables:
        disagreements += _of_table(table, whole)
    names = {name for file in read.files for name in file.numbers}
    return ManuscriptReport(
        len(read.files), len(names), len(names & read.uses.keys()), tuple(disagreements), len(read.tables),
        tuple(read.outside),
    )  # fmt: skip


def _of_table(table: WholeTable, whole: Whole | None) -> Iterator[Disagreement]:
    """Where an included table differs from the recorded results."""
    try:
        today = read_table(table.path, whole(table.sweep, table.table)) if whole else None
    except NotFoundError as error:
        yield Disagreement(f"{table.path}:1", "", f"its table is not there: {error}", [str(table.path)])
        return
    for line, message in table.differences(today) if today else ():
        yield Disagreement(f"{table.path}:{line}", "", message, [str(table.path)])


def bundled(bundles: Iterable[Path]) -> tuple[Records, Whole]:
    """The results of sweeps, read from their bundles; raises DamagedError, and ConflictError for a sweep twice."""
    from orchestrator.publish.bundle import rebuilding  # needs pyarrow, which a bare client does not have

    known = {}
    for path in bundles:
        packed = rebuilding.unpacked(path)
        if packed.head.uid in known:
            raise ConflictError(
                f"{path}: two bundles of the same sweep {packed.head.id} ({packed.head.name}); name one"
            )
        known[packed.head.uid] = packed

    def today(of: MacroAddress) -> MacrosView:
        packed = known.get(of.uid)
        if packed is None:
            raise NotFoundError(f"no bundle is of sweep {of.sweep} with the id {of.uid}")
        return macros_of(packed.results, of.uid, of.table, packed.catalog, of.prefix)

    def whole(sweep: int, table: str) -> str:
        packed = next((packed for packed in known.values() if packed.head.id == sweep), None)
        if packed is None:
            raise NotFoundError(f"no bundle is of sweep {sweep}")
        return formats.render(build.build(packed.results, table, packed.catalog), "latex").content.decode()

    return today, whole
