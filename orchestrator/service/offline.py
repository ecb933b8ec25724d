"""What needs no server: edited specs, previews, papers' tables, imported rows, and checks of manuscripts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.publish import formats
from orchestrator.publish.macros import macros_of
from orchestrator.publish.manuscript import Disagreement, WholeTable, read_manuscript, read_table
from orchestrator.publish.tables import build
from orchestrator.views.errors import ConflictError, NotFoundError
from orchestrator.views.evidence import MacroAddress, MacrosView

if TYPE_CHECKING:
    from orchestrator.plan.csv_import import FileRows
    from orchestrator.settings import Settings
    from orchestrator.views.evidence import PublishedSummary
    from orchestrator.views.pages import Rendered
    from orchestrator.views.sweeps import Preview


def preview(body: bytes, settings: "Settings") -> "Preview":
    """What a spec would become: known and measured is what the home folder's database holds."""
    from orchestrator.plan.validated import read
    from orchestrator.publish import papers
    from orchestrator.service.forecast import forecast_here
    from workers import catalog as catalogs

    catalog = catalogs.load(settings.parts)
    return forecast_here(read(body, catalog, papers.PrintedLines()), settings, catalog)


def with_values(body: bytes, assignments: Sequence[str]) -> bytes:
    """The same spec with `path=value` set for each of `assignments`; raises InvalidSpecError, or TooLargeError."""
    from orchestrator.plan import edit

    return edit.edited(body, assignments)


def with_metrics(body: bytes, spec: Mapping[str, Any], names: Sequence[str]) -> bytes:
    """The same spec with further metrics in its recipe and its tables; `spec` is what it was read as.

    Raises InvalidSpecError where it has no table, or TooLargeError.
    """
    from orchestrator.plan import edit

    return edit.with_metrics(body, spec, names)


def subset_of(body: bytes, only: Sequence[str], without: Sequence[str]) -> bytes:
    """The same spec with each `axis=label,label` added to its `only` and `without`; raises as `with_values` does."""
    from orchestrator.plan import edit

    return edit.excerpt(body, only, without)


def published_tables() -> "list[PublishedSummary]":
    """The papers' tables that are known."""
    from orchestrator.publish import paper_tables, papers

    return [paper_tables.summary(papers.load(name)) for name in papers.names()]


def published_file(table_id: str, file_format: str) -> "Rendered":
    """One of the papers' tables as a file of its own."""
    from orchestrator.publish import paper_tables, papers

    return paper_tables.render(papers.load(table_id), file_format)


def published_like(
    table_id: str,
    body: bytes,
    name: str | None,
    file_format: str,
    settings: "Settings",
) -> "Rendered":
    """One of the papers' tables in the layout of a spec's table (its first one by default).

    Raises InvalidSpecError for a wrong spec, NotFoundError where there is no such table or format.
    """
    from orchestrator.plan.validated import read
    from orchestrator.publish import formats, papers
    from orchestrator.publish.tables import build
    from orchestrator.views.runs import NO_SWEEP, SweepOutcomes
    from orchestrator.views.states import SweepState
    from workers import catalog as catalogs

    catalog = catalogs.load(settings.parts)
    checked = read(body, catalog, papers.PrintedLines())
    spec = checked.spec.model_dump(mode="json")
    chosen = name if name is not None else next(iter(spec["tables"]), "")
    if chosen in spec["tables"]:
        spec["tables"][chosen]["published"] = papers.load(table_id).id
    cells, candidates = tuple(checked.plan.cells), tuple(checked.plan.candidates)
    outcomes = SweepOutcomes(NO_SWEEP, checked.spec.name, SweepState.QUEUED, spec, cells, candidates, ())
    return formats.render(build.build(outcomes, chosen, catalog, numbers="published"), file_format)


def imported_rows(content: bytes, name: str, **options: Any) -> "FileRows":
    """Rows of a table out of somebody else's file, by `ImportOptions`; `name` is what messages call the file.

    Raises InvalidImportError with every problem, or TooLargeError.
    """
    from orchestrator.plan import csv_import
    from orchestrator.plan.csv_import import ImportOptions

    return csv_import.imported(content, ImportOptions(**options), name)


def with_imported(body: bytes, table: str | None, rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The same spec whose table (its first one by default) has these rows too; raises as `with_values` does."""
    from orchestrator.plan import edit

    return edit.with_rows(body, table, rows)


Whole = Callable[[int, str], str]
"""The LaTeX of a sweep's table today; NotFoundError where it is not there."""
Records = Callable[[MacroAddress], MacrosView]
"""What the table behind some macros says today; NotFoundError where it is not there."""


@dataclass(frozen=True, slots=True)
class ManuscriptReport:
    """What became of the numbers of a manuscript."""

    files: int
    numbers: int
    used: int
    disagreements: tuple[Disagreement, ...]
    tables: int = 0
    """Taken in whole."""
    outside: tuple[str, ...] = ()
    """Files of other folders, which were not read."""

    @property
    def agrees(self) -> bool:
        """Whether every number that the paper prints is what the records say."""
        return not any(one.used for one in self.disagreements)


def check(paper: Path, records: Records, whole: Whole | None = None) -> ManuscriptReport:
    """Every macro of a paper, and every table that it takes in, beside the records.

    NotFoundError, ConflictError and DamagedError for what is no paper.
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
    disagreements += [one for table in read.tables for one in _of_table(table, whole)]
    names = {name for file in read.files for name in file.numbers}
    return ManuscriptReport(
        len(read.files), len(names), len(names & read.uses.keys()), tuple(disagreements), len(read.tables),
        tuple(read.outside),
    )  # fmt: skip


def _of_table(table: WholeTable, whole: Whole | None) -> Iterator[Disagreement]:
    """Where a table that was taken in whole is not what the records say."""
    try:
        today = read_table(table.path, whole(table.sweep, table.table)) if whole else None
    except NotFoundError as error:
        yield Disagreement(f"{table.path}:1", "", f"its table is not there: {error}", [str(table.path)])
        return
    for line, said in table.differences(today) if today else ():
        yield Disagreement(f"{table.path}:{line}", "", said, [str(table.path)])


def bundled(bundles: Iterable[Path]) -> tuple[Records, Whole]:
    """The records of some bundles, told apart by the id of their sweeps; raises DamagedError."""
    from orchestrator.publish.bundle import rebuilding  # pyarrow, which a client of a server lacks

    known = {}
    for path in bundles:
        with path.open("rb") as source:
            packed = rebuilding.unpacked(source)
        if packed.head.uid in known:
            raise ConflictError(
                f"{path}: two bundles of the same sweep {packed.head.id} ({packed.head.name}); name one"
            )
        known[packed.head.uid] = packed

    def today(of: MacroAddress) -> MacrosView:
        packed = known.get(of.uid)
        if packed is None:
            raise NotFoundError(f"no bundle is of sweep {of.sweep} with the id {of.uid}")
        return macros_of(packed.outcomes, of.uid, of.table, packed.catalog, of.prefix)

    def whole(sweep: int, table: str) -> str:
        packed = next((one for one in known.values() if one.head.id == sweep), None)
        if packed is None:
            raise NotFoundError(f"no bundle is of sweep {sweep}")
        return formats.render(build.build(packed.outcomes, table, packed.catalog), "latex").content.decode()

    return today, whole
