"""The numbers that a paper printed, put where a layout wants them: its own table, made from the cells of a sweep."""

from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator.publish.papers import Number, PublishedTable, held_labels, load
from orchestrator.publish.select import selection
from orchestrator.spec.table import DELTA, TableSpec
from orchestrator.views.errors import ConflictError
from orchestrator.views.outcomes import CellSummary, Statistic, SweepOutcomes
from orchestrator.views.planned import Cell, Labels
from workers.catalog import Catalog

UNKNOWN: Final = 0
"""The number of repeats of a printed mean: papers seldom say."""
_BY_SEC: Final = "_sec"
"""The end of the name of a metric that is another one by the rule of SEC's code."""


def source(layout: TableSpec, name: str) -> PublishedTable:
    """The printed table that a layout is filled from; ConflictError where it names none."""
    if layout.published is None:
        raise ConflictError(f"table '{name}' says nothing of a printed table; add `published: <name>` to it")
    return load(layout.published)


def summaries(outcomes: SweepOutcomes, layout: TableSpec, table: PublishedTable, catalog: Catalog) -> list[CellSummary]:
    """For each cell of the sweep what the printed table says of it; a cell that it does not have is empty."""
    checkpoint = selection(outcomes.spec).checkpoint
    found = []
    for cell in outcomes.cells:
        labels = held_labels(outcomes.spec, cell.labels, table, catalog)
        found.append(_summary(cell, dict(_numbers(labels, layout, table, checkpoint))))
    return found


def number(table: PublishedTable, labels: Labels, metric: str) -> Number | None:
    """What is printed for a cell; a variant, `nmi@geometric` or `nmi_sec`, is printed as what it is a variant of.

    Papers that test on several sets print each as a data set: `lfw:accuracy` is the accuracy on LFW.
    """
    place, colon, tested = metric.partition(":")
    if colon and f"{place}:" not in {DELTA, "separated:"}:
        return number(table, {**labels, "dataset": place}, tested)
    found = table.find(labels, metric)
    stem, at, cut = metric.partition("@")
    if found is None and stem.endswith(_BY_SEC):
        return table.find(labels, f"{stem.removesuffix(_BY_SEC)}{at}{cut}")
    return table.find(labels, stem) if found is None and cut.isalpha() and len(cut) > 1 else found


def _numbers(labels: Labels, layout: TableSpec, table: PublishedTable, checkpoint: str) -> Iterator[tuple[str, Number]]:
    """What is printed for a cell, by the key under which its columns look: a difference goes by its own name."""
    for column in layout.metric_columns:
        if (found := number(table, labels, column.name)) is not None:
            yield column.name if column.delta else column.key(checkpoint), found


def _summary(cell: Cell, numbers: Mapping[str, Number]) -> CellSummary:
    values = {key: Statistic(one.value, one.std, UNKNOWN) for key, one in numbers.items() if one.value is not None}
    return CellSummary(
        cell=cell.index,
        status="diverged" if numbers and not values else "complete",
        candidate=0 if values else None,
        labels=next((one.tuned for one in numbers.values()), {}),
        selection_key="",
        score=None,
        metrics=values,
        candidates=UNKNOWN,
    )
