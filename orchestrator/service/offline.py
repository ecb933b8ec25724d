"""What is asked without a server: edited specs, what a spec would become, and the papers' tables.

Each function imports what it needs when it is called: a command waits for nothing that it does not use, least of all
for the database's libraries.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    from orchestrator.publish import paper, papers

    return [paper.summary(papers.load(name)) for name in papers.names()]


def published_file(table_id: str, file_format: str) -> "Rendered":
    """One of the papers' tables as a file of its own."""
    from orchestrator.publish import paper, papers

    return paper.render(papers.load(table_id), file_format)


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
